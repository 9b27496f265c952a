/* SPDX-License-Identifier: MIT
 *
 * test-plans.c: graphs that differ in places and numbers alone share a plan, and have the right contents, on the reference
 * backend. */
#include "base/tiny-env.h"
#include "engine/tiny-plan.h"
#include "engine/tiny-request.h"
#include "ir/tiny-shape.h"
#include "realize.h"

/* x with a number where it says, x + 1 from there on, and the number. */
static TinyNode *
number_at (TinyGraph *g, TinyNode *x, gint64 at, double value, TinyDType dtype)
{
  const gint64 n = x->shape->v[0], one = 1;
  TinyNode *part = tiny_node_cast (g, tiny_node_const_float (g, dtype, value), TINY_DTYPE_F32);
  TinyNode *yes = tiny_node_const_int (g, TINY_DTYPE_BOOL, 1);
  part = tiny_node_pad (g, tiny_node_broadcast (g, part, &one, 1), (gint64[]){ at, n - 1 - at },
                        1);
  yes = tiny_node_pad (g, tiny_node_broadcast (g, yes, &one, 1), (gint64[]){ at, n - 1 - at },
                       1);
  TinyNode *read = tiny_node_shrink (g, x, (gint64[]){ at, at + 1 }, 1);
  x = tiny_node_where (g, yes, part, x);
  return tiny_node_binary (g, TINY_OP_ADD, x, tiny_node_broadcast (g, read, &n, 1));
}

/* @x from row @start on, two rows of 128. */
static TinyNode *
rows_from (TinyNode *x, gint64 start)
{
  TinyGraph *g = tiny_runtime_get_graph ();
  const gint64 ints[] = { start, start + 2, 0, x->shape->v[1] };
  return tiny_node_shrink (g, x, ints, 2);
}

static void
assert_sum (TinyNode *node, float expected)
{
  TinyGraph *g = tiny_runtime_get_graph ();
  TinyRoot root = { 0 };
  tiny_runtime_add_root (&root,
                         tiny_node_reduce_axes (g, node, TINY_OP_ADD, (gint64[]){ 0, 1 }, 2));
  realize (&root);
  assert_floats (&root, &expected, 1);
  tiny_runtime_remove_root (&root);
}

/* A batch that is cut from more rows is an input of its own: one plan serves all places. Where the rest of the memory has
 * a part in what is computed, it is read as a whole. */
static void
test_runs (void)
{
  enum { ROWS = 20, WIDTH = 128 };
  static float values[ROWS * WIDTH];
  TinyCounters before, after;
  for (guint i = 0; i < ROWS * WIDTH; i++)
    values[i] = (float) (i / WIDTH);
  tiny_runtime_lock ();
  TinyRoot x = { 0 };
  tiny_runtime_add_root (&x, node_of_floats (values, (gint64[]){ ROWS, WIDTH }, 2));
  tiny_runtime_get_counters (&before);
  for (gint64 i = 0; i < ROWS - 2; i++)
    assert_sum (rows_from (x.node, i), (float) (WIDTH * (2 * i + 1)));
  tiny_runtime_get_counters (&after);
  g_assert_cmpuint (after.n_schedules - before.n_schedules, ==, 1);
  for (gint64 i = 0; i < ROWS - 4; i++) {
    TinyGraph *g = tiny_runtime_get_graph ();
    TinyNode *pair
        = tiny_node_binary (g, TINY_OP_SUB, rows_from (x.node, i + 2), rows_from (x.node, i));
    assert_sum (pair, 2 * WIDTH * 2);
  }
  /* The rows that are read are written over as well: the next row to each. */
  TinyGraph *g = tiny_runtime_get_graph ();
  TinyNode *next = tiny_node_pad (g, rows_from (x.node, 1), (gint64[]){ 0, ROWS - 2, 0, 0 }, 2);
  TinyRoot root = { 0 };
  tiny_runtime_add_root (&root,
                         tiny_node_binary (g, TINY_OP_ASSIGN, x.node,
                                           tiny_node_binary (g, TINY_OP_ADD, x.node, next)));
  realize (&root);
  tiny_runtime_remove_root (&root);
  assert_sum (rows_from (x.node, 0), WIDTH * (1 + 3));
  tiny_runtime_remove_root (&x);
  tiny_runtime_unlock ();
}

static const gint64 parts[][3]
    = { { 1, 1, 64 },  { 1, 2, 128 }, { 2, 4, 128 }, { 4, 4, 64 },  { 1, 4, 64 },
        { 4, 1, 128 }, { 2, 2, 128 }, { 4, 1, 64 },  { 2, 1, 128 }, { 1, 2, 64 } };

/* A part whose elements do not follow each other in memory is no run: columns, rows of several matrices. The part is one of
 * (4, 4, 128) that begins where memory does; the elements are their numbers. */
static void
test_no_run (gconstpointer data)
{
  enum { N = 4, WIDTH = 128 };
  const gint64 *ends = parts[GPOINTER_TO_UINT (data)];
  static float values[N * N * WIDTH];
  float expected = 0, got;
  for (guint i = 0; i < G_N_ELEMENTS (values); i++) {
    values[i] = (float) i;
    if (i / (N * WIDTH) < ends[0] && i / WIDTH % N < ends[1] && i % WIDTH < ends[2])
      expected += (float) i;
  }
  tiny_runtime_lock ();
  TinyGraph *g = tiny_runtime_get_graph ();
  TinyRoot x = { 0 }, sum = { 0 };
  tiny_runtime_add_root (&x, node_of_floats (values, (gint64[]){ N, N, WIDTH }, 3));
  const gint64 ints[] = { 0, ends[0], 0, ends[1], 0, ends[2] };
  tiny_runtime_add_root (&sum, tiny_node_reduce_axes (g, tiny_node_shrink (g, x.node, ints, 3),
                                                      TINY_OP_ADD, (gint64[]){ 0, 1, 2 }, 3));
  read_floats (&sum, &got, 1);
  if (!(fabsf (got - expected) <= 1e-6F * expected))
    CASE_FAILS ("the sum of (%d, %d, %d) is %g, and %g is right", (int) ends[0], (int) ends[1],
                (int) ends[2], (double) got, (double) expected);
  tiny_runtime_remove_root (&sum);
  tiny_runtime_remove_root (&x);
  tiny_runtime_unlock ();
}

/* Realises @n sums of a large graph that differ in place @i alone, or in where its mask begins; how many plans were made. */
static guint64
count_large (guint n, gboolean is_mask)
{
  enum { LARGE = 1 << 20 };
  TinyCounters before, after;
  tiny_runtime_get_counters (&before);
  for (guint i = 0; i < n; i++) {
    TinyGraph *g = tiny_runtime_get_graph ();
    const gint64 dims[] = { LARGE };
    TinyNode *x = node_of_floats ((float[]){ 0, 1, 2, 3, 4, 5, 6, 7 }, (gint64[]){ 8 }, 1);
    x = tiny_node_shrink (g, x, (gint64[]){ is_mask ? 1 : i, is_mask ? 2 : i + 1 }, 1);
    x = is_mask ? tiny_node_pad (g, x, (gint64[]){ i, LARGE - 1 - i }, 1)
                : tiny_node_broadcast (g, x, dims, 1);
    TinyRoot root = { 0 };
    tiny_runtime_add_root (&root,
                           tiny_node_reduce_axes (g, x, TINY_OP_ADD, (gint64[]){ 0 }, 1));
    realize (&root);
    assert_floats (&root, (float[]){ is_mask ? 1 : (float) i * LARGE }, 1);
    tiny_runtime_remove_root (&root);
  }
  tiny_runtime_get_counters (&after);
  return after.n_schedules - before.n_schedules;
}

static const TinyDType dtypes[]
    = { TINY_DTYPE_F32, TINY_DTYPE_F16, TINY_DTYPE_F64, TINY_DTYPE_I32,
        TINY_DTYPE_U8,  TINY_DTYPE_I64, TINY_DTYPE_U32 };

/* Graphs that differ in places and numbers alone share a plan after a few, with numbers that 32 bits do not hold as well. */
static void
test_numbers (gconstpointer data)
{
  enum { N = 40 };
  const TinyDType dtype = dtypes[GPOINTER_TO_UINT (data)];
  TinyCounters before, after;
  tiny_runtime_lock ();
  tiny_runtime_get_counters (&before);
  for (guint i = 0; i < N; i++) {
    TinyGraph *g = tiny_runtime_get_graph ();
    float values[N], expected[N];
    double number = i == 7 && dtype == TINY_DTYPE_F64   ? 1.0 / 3
                    : i == 7 && dtype == TINY_DTYPE_U32 ? 4294967040.0
                                                        : i;
    for (guint k = 0; k < N; k++)
      values[k] = k * k;
    for (guint k = 0; k < N; k++)
      expected[k] = (k == i ? (float) number : values[k]) + values[i];
    TinyNode *x = node_of_floats (values, (gint64[]){ N }, 1);
    TinyRoot root = { 0 };
    tiny_runtime_add_root (&root, number_at (g, x, i, number, dtype));
    realize (&root);
    assert_floats (&root, expected, N);
    tiny_runtime_remove_root (&root);
  }
  tiny_runtime_get_counters (&after);
  g_assert_cmpuint (after.n_schedules - before.n_schedules, <=, 8);
  tiny_runtime_unlock ();
}

/* NaN stays NaN, whatever the bound. */
static void
test_nan (void)
{
  tiny_runtime_lock ();
  for (guint i = 0; i < 8; i++) {
    TinyGraph *g = tiny_runtime_get_graph ();
    const gint64 n = 2;
    float got[2];
    TinyNode *x = node_of_floats ((float[]){ NAN, -1 }, (gint64[]){ 2 }, 1);
    TinyNode *bound = tiny_node_const_float (g, TINY_DTYPE_F32, i + 0.5);
    TinyRoot root = { 0 };
    tiny_runtime_add_root (
        &root, tiny_node_binary (g, TINY_OP_MAX, x, tiny_node_broadcast (g, bound, &n, 1)));
    read_floats (&root, got, 2);
    if (!isnan (got[0]) || got[1] != (float) i + 0.5F)
      CASE_FAILS ("the larger of NaN, -1 and %g is %g, %g", i + 0.5, (double) got[0],
                  (double) got[1]);
    tiny_runtime_remove_root (&root);
  }
  tiny_runtime_unlock ();
}

/* Large graphs that combine values share a plan unless it is their masks that differ. */
static void
test_large (void)
{
  tiny_runtime_lock ();
  g_assert_cmpuint (count_large (6, TRUE), ==, 6);
  g_assert_cmpuint (count_large (6, FALSE), ==, 4);
  tiny_runtime_unlock ();
}

/* How many schedules four sums of cubes and of fourth powers in turn take. */
static guint64
count_alternating (void)
{
  TinyCounters before, after;
  tiny_runtime_get_counters (&before);
  for (guint i = 0; i < 4; i++) {
    TinyGraph *g = tiny_runtime_get_graph ();
    TinyNode *x = node_of_floats ((float[]){ 1, 2, 3 }, (gint64[]){ 1, 3 }, 2);
    TinyNode *power = tiny_node_binary (g, TINY_OP_MUL, x, x);
    assert_sum (tiny_node_binary (g, TINY_OP_MUL, power, i % 2 == 0 ? x : power),
                i % 2 == 0 ? 36 : 98);
  }
  tiny_runtime_get_counters (&after);
  return after.n_schedules - before.n_schedules;
}

/* Kept plans have a bound in bytes: the oldest use goes first, and the newest stays. */
static void
test_most_bytes (void)
{
  const gsize most = tiny_request_most_bytes;
  tiny_runtime_lock ();
  g_assert_cmpuint (count_alternating (), ==, 2);
  g_assert_cmpuint (count_alternating (), ==, 0);
  tiny_request_most_bytes = 0;
  assert_sum (node_of_floats ((float[]){ 1, 2, 3 }, (gint64[]){ 1, 3 }, 2), 6);
  g_assert_cmpuint (count_alternating (), ==, 4);
  tiny_request_most_bytes = most;
  tiny_runtime_unlock ();
}

/* Places that 32 bits do not hold are constants of their plans: as variables they were others, outside of memory. */
static void
test_far (void)
{
  const gint64 n = (gint64) 1 << 34, step = (gint64) 1 << 31;
  tiny_runtime_lock ();
  TinyGraph *g = tiny_runtime_get_graph ();
  for (guint i = 0; i < 7; i++) {
    const gint64 at = i * step;
    const float expected = (float) at;
    TinyRoot root = { 0 };
    TinyNode *x = tiny_node_new (g, TINY_OP_IOTA, TINY_DTYPE_I64, 1, 0, NULL, 0,
                                 tiny_graph_ints (g, &n, 1), NULL);
    x = tiny_node_shrink (g, x, (gint64[]){ at, at + 1 }, 1);
    tiny_runtime_add_root (&root, tiny_node_cast (g, x, TINY_DTYPE_F32));
    realize (&root);
    assert_floats (&root, &expected, 1);
    tiny_runtime_remove_root (&root);
  }
  tiny_runtime_unlock ();
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  tiny_env_set_text (TINY_ENV_DEV, "REF");
  for (guint i = 0; i < G_N_ELEMENTS (dtypes); i++) {
    g_autofree char *path
        = g_strconcat ("/engine/plans/numbers/", tiny_dtype_to_string (dtypes[i]), NULL);
    g_test_add_data_func (path, GUINT_TO_POINTER (i), test_numbers);
  }
  g_test_add_func ("/engine/plans/nan", test_nan);
  g_test_add_func ("/engine/plans/large", test_large);
  g_test_add_func ("/engine/plans/far", test_far);
  g_test_add_func ("/engine/plans/runs", test_runs);
  g_test_add_func ("/engine/plans/most-bytes", test_most_bytes);
  add_row_tests ("/engine/plans/no-runs", NULL, G_N_ELEMENTS (parts), test_no_run);
  return g_test_run ();
}
