/* SPDX-License-Identifier: MIT
 *
 * Attention over rows that are too long for memory of a kernel goes through them in blocks: one kernel, no
 * temporaries however long the rows are, and results as the formula says where the maximum changes from block to
 * block, where blocks or all of a row are -infinity, and for infinities and NaNs. */
#include <math.h>
#include <string.h>

#include "evaluate.h"
#include "ir/tiny-text.h"
#include "schedule/weights.h"

enum { N_ROWS = 8, WIDTH = 4 };

/* A number that is added to the scores of row @which. */
static double
get_mask (guint which, guint i, guint n, GRand *random)
{
  if ((which == 1 && i < n / 2) || (which == 2 && i % 7 != 0) || which == 3)
    return -INFINITY;
  if (which == 4 && i == n / 3)
    return INFINITY;
  if (which == 5 && i == n / 3)
    return NAN;
  double noise = g_rand_double_range (random, -1, 1);
  return which == 6 ? noise + 200. * i / n : which == 7 ? noise - 200. * i / n : noise;
}

static Array *
make_input (guint n, GRand *random)
{
  Array *x = array_new (TINY_DTYPE_F32, n);
  for (guint i = 0; i < n; i++)
    x->v[i].f = g_rand_double_range (random, -1, 1);
  return x;
}

static GPtrArray *
make_inputs (guint n)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (5);
  GPtrArray *inputs = g_ptr_array_new_with_free_func ((GDestroyNotify) array_free);
  g_ptr_array_add (inputs, make_input (N_ROWS * WIDTH, random));
  g_ptr_array_add (inputs, make_input (n * WIDTH, random));
  g_ptr_array_add (inputs, make_input (n * WIDTH, random));
  Array *mask = array_new (TINY_DTYPE_F32, N_ROWS * n);
  for (guint r = 0; r < N_ROWS; r++)
    for (guint i = 0; i < n; i++)
      mask->v[r * n + i].f = (float) get_mask (r, i, n, random);
  g_ptr_array_add (inputs, mask);
  return inputs;
}

/* Weights @weights, made of the scores %s, the row's maximum %m and the sum %l of %e, times v. N rows of keys. */
static char *
write_graph (guint n, const char *exponential, const char *weights)
{
  static const char *const text
      = "%q = param.f32{slot=0, shape=[8, 4], device=\"REF\"}\n"
        "%k = param.f32{slot=1, shape=[N, 4], device=\"REF\"}\n"
        "%v = param.f32{slot=2, shape=[N, 4], device=\"REF\"}\n"
        "%mask = param.f32{slot=3, shape=[8, N], device=\"REF\"}\n"
        "%qs = expand.f32{shape=[8, N, 4]}(reshape.f32{shape=[8, 1, 4]}(%q))\n"
        "%ks = expand.f32{shape=[8, N, 4]}(reshape.f32{shape=[1, N, 4]}(%k))\n"
        "%sum = reduce.f32{op=add, axes=[2]}(mul.f32(%qs, %ks))\n"
        "%s = add.f32(reshape.f32{shape=[8, N]}(%sum), %mask)\n"
        "%m = expand.f32{shape=[8, N]}(reduce.f32{op=max, axes=[1]}(%s))\n"
        "%e = EXPONENTIAL\n"
        "%l = expand.f32{shape=[8, N]}(reduce.f32{op=add, axes=[1]}(%e))\n"
        "%p = WEIGHTS\n"
        "%ps = expand.f32{shape=[8, 4, N]}(reshape.f32{shape=[8, 1, N]}(%p))\n"
        "%vt = reshape.f32{shape=[1, 4, N]}(permute.f32{axes=[1, 0]}(%v))\n"
        "%vs = expand.f32{shape=[8, 4, N]}(%vt)\n"
        "sink(reshape.f32{shape=[8, 4]}(reduce.f32{op=add, axes=[2]}(mul.f32(%ps, %vs))))\n";
  g_autofree char *size = g_strdup_printf ("%u", n);
  g_autoptr (GString) result = g_string_new (text);
  g_string_replace (result, "EXPONENTIAL", exponential, 0);
  g_string_replace (result, "WEIGHTS", weights, 0);
  g_string_replace (result, "N", size, 0);
  return g_string_free (g_steal_pointer (&result), FALSE);
}

/* Elements of the largest LOCAL. */
static gint64
find_largest_local (const TinySchedule *schedule)
{
  gint64 most = 0;
  for (guint i = 0; i < schedule->n_items; i++) {
    g_autoptr (GPtrArray) order
        = tiny_graph_toposort (schedule->graph, &schedule->items[i].kernel, 1);
    for (guint k = 0; k < order->len; k++) {
      TinyNode *node = order->pdata[k];
      if (node->op == TINY_OP_LOCAL)
        most = MAX (most, node->ints->v[0]);
    }
  }
  return most;
}

/* True where rows were taken in blocks. */
static gboolean
check (guint n, const char *exponential, const char *weights)
{
  g_autoptr (GError) error = NULL;
  TinyGraph *graph = tiny_graph_new ();
  g_autofree char *text = write_graph (n, exponential, weights);
  g_autoptr (GPtrArray) inputs = make_inputs (n);
  TinyNode *sink = tiny_graph_parse (graph, text, &error);
  g_assert_no_error (error);
  g_autoptr (GPtrArray) expected = evaluate_graph (graph, sink, inputs);
  g_autoptr (TinySchedule) schedule = tiny_schedule_new (graph, sink, &error);
  g_assert_no_error (error);
  verify_schedule (schedule);
  g_autoptr (GPtrArray) found = evaluate_schedule (schedule, inputs);
  g_autofree char *difference = NULL;
  if (!arrays_equal (expected->pdata[0], found->pdata[0], &difference))
    g_error ("%u: %s, %s: %s", n, exponential, weights, difference);
  if (schedule->n_items != 1 || schedule->n_arenas > 0)
    return FALSE;
  gint64 most = find_largest_local (schedule);
  return most > 0 && most < n;
}

static void
set_weights (void)
{
  schedule_weights.far_bytes = 0;
  schedule_weights.recompute_growth = 0.5;
  schedule_weights.row_block = 4;
  schedule_weights.pack_block = 2;
  schedule_weights.launch = 1e9;
  schedule_weights.pack_min_work = 1 << 30;
  schedule_weights.split_min_total = 1 << 30;
}

static void
test_row_blocks (void)
{
  static const char softmax[] = "exp2.f32(mul.f32(sub.f32(%s, %m), 1.5))";
  static const char divided[] = "mul.f32(%e, recip.f32(%l))";
  const ScheduleWeights old = schedule_weights;
  set_weights ();
  g_assert_false (check (16, softmax, divided));
  schedule_weights.local_bytes = 512;
  g_assert_true (check (16, softmax, divided));
  g_assert_true (check (32, softmax, divided));
  g_assert_true (check (16, "max.f32(%s, 0.0)", "%e"));
  g_assert_true (check (16, softmax, "mul.f32(mul.f32(%s, %l), %e)"));
  /* No maximum of its own holds this one. */
  g_assert_false (check (16, "exp2.f32(sub.f32(mul.f32(%s, 2.0), %m))", divided));
  schedule_weights = old;
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/schedule/row-blocks", test_row_blocks);
  return g_test_run ();
}
