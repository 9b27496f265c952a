/* SPDX-License-Identifier: MIT
 *
 * test-length.c: a kernel has no more than some 2000 instructions for an element, however many
 * operations a program has in a row or beside each other. */
#include "ir/tiny-shape.h"
#include "schedule/tiny-schedule.h"
#include "schedule/weights.h"

#define DIMS(...) ((gint64[]){ __VA_ARGS__ }), G_N_ELEMENTS (((gint64[]){ __VA_ARGS__ }))

static TinyNode *
param (TinyGraph *graph, gint slot, const gint64 *dims, guint n)
{
  return tiny_node_new (graph, TINY_OP_PARAM, TINY_DTYPE_F32, 1, 0, NULL, slot,
                        tiny_graph_ints (graph, dims, n), "CPU");
}

static TinyNode *
row_of_sines (TinyGraph *graph)
{
  TinyNode *x = param (graph, 0, DIMS (1000));
  for (guint i = 0; i < 196; i++)
    x = tiny_node_unary (graph, TINY_OP_SIN, x);
  return x;
}

static TinyNode *
sum_of_sines (TinyGraph *graph)
{
  TinyNode *x = param (graph, 0, DIMS (1000)), *sum = x;
  for (guint i = 0; i < 196; i++) {
    TinyNode *scaled = tiny_node_binary (graph, TINY_OP_MUL, x,
                                         tiny_node_const_float (graph, TINY_DTYPE_F32, i + 2));
    sum = tiny_node_binary (graph, TINY_OP_ADD, sum,
                            tiny_node_unary (graph, TINY_OP_SIN, scaled));
  }
  return sum;
}

/* A value of 256 MB made of 64 KB, which one kernel need not store. */
static TinyNode *
sines_of_pairs (TinyGraph *graph)
{
  TinyNode *x = tiny_node_expand (graph, param (graph, 0, DIMS (8192, 1)), DIMS (8192, 8192));
  TinyNode *y = tiny_node_expand (graph, param (graph, 1, DIMS (1, 8192)), DIMS (8192, 8192));
  x = tiny_node_binary (graph, TINY_OP_ADD, x, y);
  for (guint i = 0; i < 20; i++)
    x = tiny_node_unary (graph, TINY_OP_SIN, x);
  return tiny_node_reduce_axes (graph, x, TINY_OP_ADD, DIMS (1));
}

static const struct {
  const char *name;
  TinyNode *(*make) (TinyGraph *graph);
  guint least, most; /* kernels */
} cases[] = { { "row-of-sines", row_of_sines, 14, 15 },
              { "sum-of-sines", sum_of_sines, 14, 17 },
              { "sines-of-pairs", sines_of_pairs, 1, 1 } };

static guint
count_length (TinyGraph *graph, TinyNode *kernel)
{
  guint length = 0;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &kernel, 1);
  for (guint i = 0; i < order->len; i++)
    length += tiny_op_count_steps (((const TinyNode *) order->pdata[i])->op);
  return length;
}

static void
test_case (gconstpointer data)
{
  const guint c = GPOINTER_TO_UINT (data);
  g_autoptr (GError) error = NULL;
  TinyGraph *graph = tiny_graph_new ();
  TinyNode *root = cases[c].make (graph);
  g_autoptr (TinySchedule) schedule
      = tiny_schedule_new (graph, tiny_node_sink (graph, 1, &root, NULL), &error);
  g_assert_no_error (error);
  g_assert_cmpuint (schedule->n_items, >=, cases[c].least);
  g_assert_cmpuint (schedule->n_items, <=, cases[c].most);
  for (guint i = 0; i < schedule->n_items && schedule->n_items > 1; i++)
    g_assert_cmpuint (count_length (schedule->graph, schedule->items[i].kernel), <,
                      schedule_weights.max_length + 200);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *path = g_strconcat ("/schedule/length/", cases[i].name, NULL);
    g_test_add_data_func (path, GUINT_TO_POINTER (i), test_case);
  }
  return g_test_run ();
}
