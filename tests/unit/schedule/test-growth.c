/* SPDX-License-Identifier: MIT
 *
 * test-growth.c: twice the kernels take twice the work, counted in what passes look at and in nodes, not in time; the
 * kernels of a long program are few different ones. */
#include "base/tiny-stats.h"
#include "ir/tiny-shape.h"
#include "schedule/tiny-schedule.h"

enum { N = 16, STEPS = 150 };

#define DIMS(...)                                                                              \
  (const gint64[]) { __VA_ARGS__ }

static TinyNode *
make_input (TinyGraph *graph, guint slot, gint64 n)
{
  return tiny_node_new (graph, TINY_OP_PARAM, TINY_DTYPE_F32, 1, 0, NULL, slot,
                        tiny_graph_ints (graph, DIMS (n, N), 2), "CPU");
}

/* (M, K) @ (K, N) */
static TinyNode *
matmul (TinyGraph *graph, TinyNode *x, TinyNode *w)
{
  const gint64 m = x->shape->v[0], k = x->shape->v[1], n = w->shape->v[1];
  const gint64 all[] = { m, k, n };
  x = tiny_node_expand (graph, tiny_node_reshape (graph, x, DIMS (m, k, 1), 3), all, 3);
  w = tiny_node_expand (graph, tiny_node_reshape (graph, w, DIMS (1, k, n), 3), all, 3);
  x = tiny_node_binary (graph, TINY_OP_MUL, x, w);
  x = tiny_node_reduce_axes (graph, x, TINY_OP_ADD, DIMS (1), 1);
  return tiny_node_reshape (graph, x, DIMS (m, n), 2);
}

static TinyNode *
turn (TinyGraph *graph, TinyNode *x)
{
  return tiny_node_permute (graph, x, DIMS (1, 0), 2);
}

static TinyNode *
get_row (TinyGraph *graph, TinyNode *x, guint t)
{
  return tiny_node_shrink (graph, x, DIMS (t, t + 1, 0, N), 2);
}

/* y = sin (y @ w), n times. */
static TinyNode *
make_chain (TinyGraph *graph, guint n)
{
  TinyNode *y = make_input (graph, 0, 1), *w = make_input (graph, 1, N);
  for (guint t = 0; t < n; t++)
    y = tiny_node_unary (graph, TINY_OP_SIN, matmul (graph, y, w));
  return tiny_node_sink (graph, 1, &y, "CPU");
}

/* h = sin (h @ w + x[t]), n times, and the gradients of its sum: each step back reads what a step forward left. */
static TinyNode *
make_recurrence (TinyGraph *graph, guint n)
{
  TinyNode *x = make_input (graph, 0, n), *w = make_input (graph, 1, N);
  TinyNode *roots[3] = { NULL }, *gradient = make_input (graph, 2, 1);
  g_autofree TinyNode **h = g_new (TinyNode *, n + 1);
  h[0] = make_input (graph, 3, 1);
  for (guint t = 0; t < n; t++)
    h[t + 1] = tiny_node_unary (
        graph, TINY_OP_SIN,
        tiny_node_binary (graph, TINY_OP_ADD, matmul (graph, h[t], w), get_row (graph, x, t)));
  for (guint t = n; t-- > 0;) {
    TinyNode *outer;
    gradient = tiny_node_binary (graph, TINY_OP_MUL, gradient, h[t + 1]);
    outer = matmul (graph, turn (graph, h[t]), gradient);
    roots[1]
        = roots[1] == NULL ? outer : tiny_node_binary (graph, TINY_OP_ADD, roots[1], outer);
    gradient = matmul (graph, gradient, turn (graph, w));
  }
  roots[0] = h[n];
  roots[2] = gradient;
  return tiny_node_sink (graph, 3, roots, "CPU");
}

/* c = f (c) × x + sin (sin (c) @ w), n times, and the sum of all: each c is stored, and the way from one to the next is
 * short, but that from the last to the first is too long for a kernel. */
static TinyNode *
make_cell (TinyGraph *graph, guint n)
{
  static const TinyOp f[] = { TINY_OP_NEG, TINY_OP_SIN, TINY_OP_NEG, TINY_OP_SIN, TINY_OP_NEG };
  TinyNode *c = make_input (graph, 0, 1), *w = make_input (graph, 1, N), *sum = c, *x = c;
  for (guint t = 0; t < n; t++) {
    TinyNode *h = matmul (graph, tiny_node_unary (graph, TINY_OP_SIN, c), w);
    h = tiny_node_unary (graph, TINY_OP_SIN, h);
    for (guint i = 0; i < G_N_ELEMENTS (f); i++)
      c = tiny_node_unary (graph, f[i], c);
    c = tiny_node_binary (graph, TINY_OP_MUL, c, x);
    c = tiny_node_binary (graph, TINY_OP_ADD, c, h);
    sum = tiny_node_binary (graph, TINY_OP_ADD, sum,
                            tiny_node_binary (graph, TINY_OP_MUL, c, h));
  }
  return tiny_node_sink (graph, 1, &sum, "CPU");
}

/* The sum of 32 n inputs, by pairs: more than a kernel reads. */
static TinyNode *
make_sum (TinyGraph *graph, guint n)
{
  g_autofree TinyNode **sums = g_new (TinyNode *, 32 * n);
  for (guint i = 0; i < 32 * n; i++)
    sums[i] = make_input (graph, i, 1);
  for (guint left = 32 * n; left > 1; left = (left + 1) / 2)
    for (guint i = 0; i < left / 2; i++) {
      sums[i] = tiny_node_binary (graph, TINY_OP_ADD, sums[2 * i], sums[2 * i + 1]);
      if (left % 2 == 1 && i + 1 == left / 2)
        sums[i + 1] = sums[left - 1];
    }
  return tiny_node_sink (graph, 1, sums, "CPU");
}

static const struct {
  const char *name;
  TinyNode *(*make) (TinyGraph *graph, guint n);
  /* Asked for in a step: two kernels that cannot be one are not made anew to see it, a kernel whose loops stay is
   * lowered once, and a kernel that was made for another step is not made again. */
  guint most_nodes;
  /* In maps, in a step: what an order of nodes numbers needs none, a number for each node is no map, and a map whose size
   * is known does not grow. */
  guint most_places;
  /* In a step: a kernel that is made of what it was made of before is not searched again for what it reads. */
  guint most_looks;
  /* In orders of a graph, in a step: passes share an order of the same roots. */
  guint most_listed;
} cases[] = {
  { "chain", make_chain, 2, 44, 58, 84 },
  { "recurrence", make_recurrence, 53, 215, 385, 370 },
  { "cell", make_cell, 76, 670, 310, 990 },
  { "sum", make_sum, 12, 360, 620, 540 },
};

static TinyStats
count (guint which, guint n, guint *out_n_different)
{
  g_autoptr (GError) error = NULL;
  TinyStats before, work;
  TinyGraph *graph = tiny_graph_new ();
  TinyNode *sink = cases[which].make (graph, n);
  tiny_stats_get (&before);
  g_autoptr (TinySchedule) schedule = tiny_schedule_new (graph, sink, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (schedule->n_items, >=, n);
  tiny_schedule_join_series (schedule);
  tiny_stats_since (&before, &work);
  g_autoptr (GHashTable) kernels = g_hash_table_new (NULL, NULL);
  for (guint i = 0; i < schedule->n_items; i++)
    g_hash_table_add (kernels, schedule->items[i].kernel);
  *out_n_different = g_hash_table_size (kernels);
  g_test_message ("%u steps, %u kernels, %u of them different: %" G_GUINT64_FORMAT
                  " nodes, %" G_GUINT64_FORMAT " places in maps, %" G_GUINT64_FORMAT
                  " looks, %" G_GUINT64_FORMAT " listed",
                  n, schedule->n_items, *out_n_different, work.n_nodes_asked,
                  work.n_map_entries, work.n_looks, work.n_listed);
  return work;
}

static void
test_growth (gconstpointer data)
{
  const guint which = GPOINTER_TO_UINT (data);
  const double most = 2.3;
  guint n_different[2];
  const TinyStats one = count (which, STEPS, &n_different[0]);
  const TinyStats two = count (which, 2 * STEPS, &n_different[1]);
  g_assert_cmpfloat ((double) two.n_nodes_asked, <, most * (double) one.n_nodes_asked);
  g_assert_cmpfloat ((double) two.n_map_entries, <, most * (double) one.n_map_entries);
  g_assert_cmpfloat ((double) two.n_looks, <, most * (double) one.n_looks);
  g_assert_cmpuint (one.n_nodes_asked, <, STEPS * cases[which].most_nodes);
  g_assert_cmpuint (one.n_map_entries, <, STEPS * cases[which].most_places);
  g_assert_cmpuint (one.n_looks, <, STEPS * cases[which].most_looks);
  g_assert_cmpuint (one.n_listed, <, STEPS * cases[which].most_listed);
  g_assert_cmpuint (n_different[1], <=, n_different[0] + 4);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *path = g_strconcat ("/schedule/growth/", cases[i].name, NULL);
    g_test_add_data_func (path, GUINT_TO_POINTER (i), test_growth);
  }
  return g_test_run ();
}
