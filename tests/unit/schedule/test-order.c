/* SPDX-License-Identifier: MIT
 *
 * test-order.c: kernels run in an order in which little memory is held. */
#include "ir/tiny-shape.h"
#include "schedule/tiny-schedule.h"

#define DIMS(...) ((gint64[]){ __VA_ARGS__ }), G_N_ELEMENTS (((gint64[]){ __VA_ARGS__ }))

enum { N = 256, ROWS = 8, LAYERS = 6 };

static TinyNode *
param (TinyGraph *graph, gint64 slot, gint64 rows)
{
  return tiny_node_new (graph, TINY_OP_PARAM, TINY_DTYPE_F32, 1, 0, NULL, slot,
                        tiny_graph_ints (graph, DIMS (rows, N)), "CPU");
}

/* (M, N) @ (N, N) */
static TinyNode *
matmul (TinyGraph *graph, TinyNode *x, TinyNode *y)
{
  const gint64 M = x->shape->v[0];
  x = tiny_node_expand (graph, tiny_node_reshape (graph, x, DIMS (M, 1, N)), DIMS (M, N, N));
  y = tiny_node_permute (graph, y, DIMS (1, 0));
  y = tiny_node_expand (graph, tiny_node_reshape (graph, y, DIMS (1, N, N)), DIMS (M, N, N));
  TinyNode *product = tiny_node_binary (graph, TINY_OP_MUL, x, y);
  product = tiny_node_reduce_axes (graph, product, TINY_OP_ADD, (gint64[]){ 2 }, 1);
  return tiny_node_reshape (graph, product, DIMS (M, N));
}

/* A layer's output goes as soon as the gradient of its weight is there, not when all layers are through. */
static void
test_layers (void)
{
  TinyGraph *graph = tiny_graph_new ();
  TinyNode *roots[LAYERS + 1], *x = param (graph, 0, N);
  gint64 slot = 1;
  for (guint i = 0; i < LAYERS; i++) {
    x = matmul (graph, x, param (graph, slot++, N));
    roots[i + 1] = matmul (graph, param (graph, slot++, ROWS), x);
  }
  roots[0] = tiny_node_unary (graph, TINY_OP_SQRT, x);
  g_autoptr (GError) error = NULL;
  g_autoptr (TinySchedule) schedule = tiny_schedule_new (
      graph, tiny_node_sink (graph, G_N_ELEMENTS (roots), roots, NULL), &error);
  g_assert_no_error (error);
  g_assert_cmpuint (schedule->n_arenas, ==, 1);
  g_assert_cmpint (schedule->arenas[0].n_bytes, <=, 2 * N * N * (gint64) sizeof (float));
}

/* Elements that a KERNEL leaves out are zero before it, but not before the others have read what was there. */
static void
test_zeros (void)
{
  static const char text[] = "%y = param.f32{slot=0, shape=[256]}\n"
                             "%x = param.f32{slot=1, shape=[256]}\n"
                             "%i = range.index{number=0, kind=loop}(128)\n"
                             "sink(store(%y, %i, load.f32(%x, %i)))\n";
  g_autoptr (GError) error = NULL;
  for (guint reads = 0; reads < 2; reads++) { /* another input, or the one that it becomes */
    TinyGraph *graph = tiny_graph_new ();
    TinyNode *x = param (graph, 0, 1), *other = param (graph, 1, 1),
             *source = reads ? x : other;
    TinyNode *sources[] = { x, tiny_node_new (graph, TINY_OP_KERNEL, TINY_DTYPE_F32, 1, 1,
                                              &source, 0, x->ints, text) };
    TinyNode *roots[]
        = { tiny_node_new (graph, TINY_OP_ASSIGN, TINY_DTYPE_F32, 1, 2, sources, 0, NULL, NULL),
            tiny_node_unary (graph, TINY_OP_SQRT,
                             tiny_node_binary (graph, TINY_OP_ADD, x, other)) };
    g_autoptr (TinySchedule) schedule = tiny_schedule_new (
        graph, tiny_node_sink (graph, G_N_ELEMENTS (roots), roots, NULL), &error);
    g_assert_no_error (error);
    gboolean is_written = FALSE;
    for (guint i = 0; i < schedule->n_items; i++) {
      const TinyScheduleItem *item = &schedule->items[i];
      for (guint j = item->n_written; j < item->n_buffers; j++)
        g_assert_false (item->buffers[j] == 0 && is_written);
      for (guint j = 0; j < item->n_written; j++)
        is_written = is_written || item->buffers[j] == 0;
    }
    g_assert_true (is_written);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/schedule/order/layers", test_layers);
  g_test_add_func ("/schedule/order/zeros", test_zeros);
  return g_test_run ();
}
