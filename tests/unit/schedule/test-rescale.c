/* SPDX-License-Identifier: MIT
 *
 * A softmax over rows that are reduced in parts reads them twice, not three times, and gives what
 * its formula says: for rows with infinities and NaNs, for parts that hold nothing but -infinity
 * beside others that do not. What only looks like it is left as it is. */
#include <math.h>
#include <string.h>

#include "../case-fails.h"
#include "evaluate.h"
#include "ir/tiny-text.h"
#include "schedule/weights.h"

enum { N_ROWS = 8, N = 96 };

/* Part after part of @row is filled with what makes it special. */
static void
fill_row (double *row, guint which, GRand *random)
{
  for (guint i = 0; i < N; i++)
    row[i] = g_rand_double_range (random, -3, 3) - (which == 5 ? 500 : 0);
  for (guint i = 0; i < N; i++)
    if (which == 2 || which == 5 ? i < N / 2 : which == 3)
      row[i] = -INFINITY;
  if (which == 1)
    row[7] = -INFINITY;
  if (which == 4)
    row[50] = INFINITY;
  if (which == 6)
    row[33] = NAN;
}

/* e = exp2 (@exponent) of %x, its maximum over the row %m and a number; out = e / sum of e. Returns
 * whether parts were held against their own maxima. */
static gboolean
check (const char *exponent)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GRand) random = g_rand_new_with_seed (3);
  TinyGraph *graph = tiny_graph_new ();
  g_autofree char *text
      = g_strdup_printf ("%%x = param.f32{slot=0, shape=[%d, %d], device=\"REF\"}\n"
                         "%%m = expand.f32{shape=[%d, %d]}(reshape.f32{shape=[%d, 1]}("
                         "reduce.f32{op=max, axes=[1]}(%%x)))\n"
                         "%%e = exp2.f32(%s)\n"
                         "%%s = expand.f32{shape=[%d, %d]}(reduce.f32{op=add, axes=[1]}(%%e))\n"
                         "sink(mul.f32(%%e, recip.f32(%%s)))\n",
                         N_ROWS, N, N_ROWS, N, N_ROWS, exponent, N_ROWS, N);
  TinyNode *sink = tiny_graph_parse (graph, text, &error);
  g_assert_no_error (error);
  g_autoptr (GPtrArray) inputs = g_ptr_array_new_with_free_func ((GDestroyNotify) array_free);
  Array *x = array_new (TINY_DTYPE_F32, N_ROWS * N);
  for (guint r = 0; r < N_ROWS; r++) {
    double row[N];
    fill_row (row, r, random);
    for (guint i = 0; i < N; i++)
      x->v[r * N + i].f = row[i];
  }
  g_ptr_array_add (inputs, x);
  g_autoptr (GPtrArray) expected = evaluate_graph (graph, sink, inputs);
  g_autoptr (TinySchedule) schedule = tiny_schedule_new (graph, sink, &error);
  g_assert_no_error (error);
  verify_schedule (schedule);
  g_autoptr (GPtrArray) found = evaluate_schedule (schedule, inputs);
  g_autofree char *difference = NULL;
  if (!arrays_equal (expected->pdata[0], found->pdata[0], &difference))
    CASE_FAILS ("%s: %s", exponent, difference);
  g_autofree char *kernels = tiny_schedule_to_string (schedule);
  return strstr (kernels, "3.402823") != NULL;
}

static void
test_rescale (void)
{
  const ScheduleWeights old = schedule_weights;
  schedule_weights.launch = 0;
  schedule_weights.split_max_outputs = 20;
  schedule_weights.split_min_reduced = schedule_weights.split_min_total = 16;
  schedule_weights.split_least = 2;
  schedule_weights.split_most = 8;
  g_assert_true (check ("sub.f32(%x, %m)"));
  g_assert_true (check ("mul.f32(sub.f32(%x, %m), 1.5)"));
  g_assert_true (check ("mul.f32(0.5, sub.f32(%x, %m))"));
  /* Where the exponent grows away from the maximum, a part's own is the wrong one. */
  g_assert_false (check ("mul.f32(sub.f32(%x, %m), -0.01)"));
  g_assert_false (check ("sub.f32(mul.f32(%x, 2.0), %m)"));
  /* A factor that is 1.5 in half of the row. */
  g_assert_false (check ("mul.f32(sub.f32(%x, %m), pad.f32{pairs=[0, 0, 0, 48]}("
                         "expand.f32{shape=[8, 48]}(reshape.f32{shape=[1, 1]}(1.5))))"));
  schedule_weights = old;
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/schedule/rescale", test_rescale);
  return g_test_run ();
}
