/* SPDX-License-Identifier: MIT
 *
 * test-panels.c: copies that only contractions read are written as panels, others are left in rows;
 * what is computed stays the same. */
#include <string.h>

#include "evaluate.h"
#include "ir/tiny-shape.h"
#include "ir/tiny-text.h"
#include "schedule/weights.h"

enum { BLOCK = 4, M = 5, N = 12, K = 6 };

/* %p: the weights, (K, N) in memory, made from (N, K) in slot 1. */
#define WEIGHTS                                                                                \
  "%x = param.f32{slot=0, shape=[5, 6], device=\"CPU\"}\n"                                     \
  "%w = param.f32{slot=1, shape=[12, 6], device=\"CPU\"}\n"                                    \
  "%p = contiguous.f32(permute.f32{axes=[1, 0]}(%w))\n"
#define PRODUCT(name, x, w)                                                                    \
  "%" name "x = expand.f32{shape=[5, 6, 12]}(reshape.f32{shape=[5, 6, 1]}(" x "))\n"           \
  "%" name "w = expand.f32{shape=[5, 6, 12]}(reshape.f32{shape=[1, 6, 12]}(" w "))\n"          \
  "%" name " = reshape.f32{shape=[5, 12]}(reduce.f32{op=add, axes=[1]}(mul.f32(%" name         \
  "x, %" name "w)))\n"

static GPtrArray *
make_inputs (void)
{
  static const gint64 sizes[] = { M * K, N * K, N * K };
  GPtrArray *inputs = g_ptr_array_new_with_free_func ((GDestroyNotify) array_free);
  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++) {
    Array *array = array_new (TINY_DTYPE_F32, sizes[i]);
    for (gint64 k = 0; k < array->n; k++)
      array->v[k].f = (double) ((k * 7 + i) % 11) - 5;
    g_ptr_array_add (inputs, array);
  }
  return inputs;
}

/* Schedules @text and compares what it computes. Returns how many loops along blocks its kernels
 * have: two for each buffer in panels, in its writer and its reader. */
static guint
count_block_loops (const char *text)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) inputs = make_inputs ();
  ScheduleWeights old = schedule_weights;
  TinyGraph *graph = tiny_graph_new ();
  TinyNode *sink = tiny_graph_parse (graph, text, &error);
  guint n = 0;
  g_assert_no_error (error);
  schedule_weights.launch = 0; /* the two copies stay two kernels */
  schedule_weights.pack_block = BLOCK;
  schedule_weights.pack_min_reuse = schedule_weights.pack_min_work = 2;
  g_autoptr (GPtrArray) expected = evaluate_graph (graph, sink, inputs);
  g_autoptr (TinySchedule) schedule = tiny_schedule_new (graph, sink, &error);
  schedule_weights = old;
  g_assert_no_error (error);
  verify_schedule (schedule);
  g_autoptr (GPtrArray) found = evaluate_schedule (schedule, inputs);
  for (guint i = 0; i < found->len; i++) {
    g_autofree char *difference = NULL;
    g_assert_true (arrays_equal (expected->pdata[i], found->pdata[i], &difference));
  }
  for (guint i = 0; i < schedule->n_items; i++) {
    g_autoptr (GPtrArray) order
        = tiny_graph_toposort (schedule->graph, &schedule->items[i].kernel, 1);
    for (guint k = 0; k < order->len; k++) {
      const TinyNode *node = order->pdata[k];
      n += node->op == TINY_OP_RANGE && tiny_range_get_extent (node) == BLOCK;
    }
  }
  return n;
}

static void
test_product (void)
{
  g_assert_cmpuint (count_block_loops (WEIGHTS PRODUCT ("m", "%x", "%p") "sink(%m)"), ==, 2);
}

/* Both operands' columns are one loop of the kernel, which is split once. */
static void
test_two (void)
{
  const char *text
      = WEIGHTS "%v = param.f32{slot=2, shape=[12, 6], device=\"CPU\"}\n"
                "%q = contiguous.f32(permute.f32{axes=[1, 0]}(%v))\n" PRODUCT ("m", "%x", "%p")
                    PRODUCT ("o", "%x", "%q") "sink(add.f32(%m, max.f32(%o, 0.0)))";
  g_assert_cmpuint (count_block_loops (text), ==, 3);
}

/* Someone else reads the copy, or it is a result: it stays in rows. */
static void
test_others (void)
{
  g_assert_cmpuint (count_block_loops (WEIGHTS PRODUCT ("m", "%x", "%p") "sink(%m, %p)"), ==,
                    0);
  const char *text
      = WEIGHTS PRODUCT ("m", "%x", "%p") "%s = reduce.f32{op=max, axes=[0]}(%p)\nsink(%m, %s)";
  g_assert_cmpuint (count_block_loops (text), ==, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/schedule/panels/product", test_product);
  g_test_add_func ("/schedule/panels/two", test_two);
  g_test_add_func ("/schedule/panels/others", test_others);
  return g_test_run ();
}
