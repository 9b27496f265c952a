/* SPDX-License-Identifier: MIT
 *
 * test-deep.c: chains longer than any stack is deep are scheduled on a small one, in time that grows with their length.
 * Time is the processor's, so that other programs on the machine are no part of it. */
#include <pthread.h>
#include <time.h>

#include "ir/tiny-shape.h"
#include "schedule/tiny-schedule.h"

#define DIMS(...)                                                                              \
  (const gint64[]) { __VA_ARGS__ }

static TinyNode *
turn (TinyGraph *graph, TinyNode *x, guint i)
{
  return tiny_node_flip (graph, x, DIMS (i % 2), 1);
}

static TinyNode *
pad (TinyGraph *graph, TinyNode *x, guint i)
{
  return i % 2 ? tiny_node_shrink (graph, x, DIMS (0, 4, 0, 6), 2)
               : tiny_node_pad (graph, x, DIMS (0, 0, 1, 0), 2);
}

static TinyNode *
copy (TinyGraph *graph, TinyNode *x, guint i)
{
  if (i % 2)
    return tiny_node_shrink (graph, x, DIMS (1, 5, 0, 6), 2);
  x = tiny_node_expand (graph, tiny_node_reshape (graph, x, DIMS (4, 1, 6), 3), DIMS (4, 2, 6),
                        3);
  return tiny_node_reshape (graph, x, DIMS (8, 6), 2);
}

/* Quotients of quotients: each round reads the elements in another order. */
static TinyNode *
shuffle (TinyGraph *graph, TinyNode *x, guint i)
{
  return i % 2 ? tiny_node_reshape (graph, x, DIMS (4, 6), 2)
               : tiny_node_permute (graph, x, DIMS (1, 0), 2);
}

static TinyNode *
pick (TinyGraph *graph, TinyNode *x, guint i)
{
  const gint64 n = 4;
  TinyNode *at = tiny_node_new (graph, TINY_OP_IOTA, TINY_DTYPE_I32, 1, 0, NULL, 0,
                                tiny_graph_ints (graph, &n, 1), NULL);
  at = tiny_node_binary (
      graph, TINY_OP_XOR, at,
      tiny_node_broadcast (graph, tiny_node_const_int (graph, TINY_DTYPE_I32, i % 4), &n, 1));
  at = tiny_node_reshape (graph, at, DIMS (4, 1), 2);
  return tiny_node_gather (graph, x, 0, tiny_node_expand (graph, at, DIMS (4, 6), 2));
}

static TinyNode *
compute (TinyGraph *graph, TinyNode *x, guint i)
{
  TinyNode *number = tiny_node_const_float (graph, TINY_DTYPE_F32, i % 5);
  number = tiny_node_broadcast (graph, number, x->shape->v, 2);
  return tiny_node_binary (graph, i % 2 ? TINY_OP_ADD : TINY_OP_MUL, x, number);
}

/* Movements between which something is computed: none of them becomes one with the next. */
static TinyNode *
move_computed (TinyGraph *graph, TinyNode *x, guint i)
{
  return turn (graph, compute (graph, x, i), i / 2);
}

static TinyNode *
all (TinyGraph *graph, TinyNode *x, guint i)
{
  i %= 7;
  return i < 2   ? turn (graph, x, i)
         : i < 4 ? pad (graph, x, i)
         : i < 6 ? shuffle (graph, x, i)
                 : tiny_node_unary (graph, TINY_OP_NEG, x);
}

static const struct {
  const char *name;
  TinyNode *(*step) (TinyGraph *graph, TinyNode *x, guint i);
  guint n;
} chains[] = {
  { "turn", turn, 100000 },      { "pad", pad, 100000 },
  { "copy", copy, 20000 },       { "shuffle", shuffle, 10000 },
  { "pick", pick, 20000 },       { "all", all, 20000 },
  { "compute", compute, 20000 }, { "move-computed", move_computed, 20000 },
};

static double
read_processor_s (void)
{
  struct timespec now;
  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
}

static double
time_chain (guint which, guint n, gboolean reduces)
{
  g_autoptr (GError) error = NULL;
  TinyGraph *graph = tiny_graph_new ();
  TinyNode *x = tiny_node_new (graph, TINY_OP_PARAM, TINY_DTYPE_F32, 1, 0, NULL, 0,
                               tiny_graph_ints (graph, DIMS (4, 6), 2), "CPU");
  for (guint i = 0; i < n; i++)
    x = chains[which].step (graph, x, i);
  if (reduces)
    x = tiny_node_reduce_axes (graph, x, TINY_OP_ADD, DIMS (0), 1);
  const double start = read_processor_s ();
  g_autoptr (TinySchedule) schedule
      = tiny_schedule_new (graph, tiny_node_sink (graph, 1, &x, "CPU"), &error);
  g_assert_no_error (error);
  g_assert_cmpuint (schedule->n_items, >=, 1);
  return read_processor_s () - start;
}

static void *
run_chain (void *data)
{
  guint which = GPOINTER_TO_UINT (data), n = chains[which].n;
  double tenth = time_chain (which, n / 10, FALSE), whole = time_chain (which, n, FALSE);
  time_chain (which, n / 10, TRUE);
  g_test_message ("%u steps: %.3f s, %u: %.3f s", n / 10, tenth, n, whole);
  /* Ten times the time and what caches cost besides; a walk over all paths would never end, a quadratic one take
   * a hundred times. */
  g_assert_cmpfloat (whole, <, 40 * tenth + 0.1);
  return NULL;
}

static void
test_chain (gconstpointer data)
{
  enum { STACK_BYTES = 256 << 10 };
  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init (&attributes);
  g_assert_cmpint (pthread_attr_setstacksize (&attributes, STACK_BYTES), ==, 0);
  g_assert_cmpint (pthread_create (&thread, &attributes, run_chain, (void *) data), ==, 0);
  pthread_join (thread, NULL);
  pthread_attr_destroy (&attributes);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (chains); i++) {
    g_autofree char *path = g_strconcat ("/schedule/deep/", chains[i].name, NULL);
    g_test_add_data_func (path, GUINT_TO_POINTER (i), test_chain);
  }
  return g_test_run ();
}
