/* SPDX-License-Identifier: MIT
 *
 * test-realize.c: graphs become buffers with the right contents, on the reference backend. */
#include "base/tiny-env.h"
#include "engine/tiny-capture.h"
#include "engine/tiny-plan.h"
#include "ir/tiny-shape.h"
#include "realize.h"

/* An elementwise chain is computed, and again from the cached schedule on other memory. */
static void
test_elementwise (void)
{
  tiny_runtime_lock ();
  TinyGraph *g = tiny_runtime_get_graph ();
  TinyCounters before, after;
  for (guint round = 0; round < 2; round++) {
    const float values[] = { 1, 2, 3, 4, 5, 6 };
    TinyNode *x = node_of_floats (values, (gint64[]){ 2, 3 }, 2);
    TinyNode *y = tiny_node_binary (g, TINY_OP_MUL, x, x);
    TinyRoot root = { 0 };
    tiny_runtime_add_root (
        &root,
        tiny_node_binary (g, TINY_OP_ADD, y, tiny_node_const_float (g, TINY_DTYPE_F32, 1)));
    tiny_runtime_get_counters (&before);
    realize (&root);
    tiny_runtime_get_counters (&after);
    g_assert_cmpuint (after.n_schedules - before.n_schedules, ==, round == 0 ? 1 : 0);
    assert_floats (&root, (float[]){ 2, 5, 10, 17, 26, 37 }, 6);
    tiny_runtime_remove_root (&root);
  }
  tiny_runtime_unlock ();
}

/* Realising a part of another root makes that root read the result. */
static void
test_shared (void)
{
  tiny_runtime_lock ();
  TinyGraph *g = tiny_runtime_get_graph ();
  TinyNode *x = node_of_floats ((float[]){ 1, 2, 3, 4 }, (gint64[]){ 4 }, 1);
  TinyRoot part = { 0 }, whole = { 0 };
  tiny_runtime_add_root (&part, tiny_node_binary (g, TINY_OP_ADD, x, x));
  tiny_runtime_add_root (&whole,
                         tiny_node_reduce_axes (g, part.node, TINY_OP_ADD, (gint64[]){ 0 }, 1));
  realize (&part);
  g_assert_true (whole.node->sources[0] == part.node);
  realize (&whole);
  assert_floats (&whole, (float[]){ 20 }, 1);
  tiny_runtime_remove_root (&part);
  tiny_runtime_remove_root (&whole);
  tiny_runtime_unlock ();
}

/* An ASSIGN changes the memory in place; who still needs the old contents gets them. */
static void
test_assign (void)
{
  tiny_runtime_lock ();
  TinyGraph *g = tiny_runtime_get_graph ();
  TinyNode *x = node_of_floats ((float[]){ 1, 2, 3, 4 }, (gint64[]){ 4 }, 1);
  TinyRoot variable = { 0 }, reader = { 0 };
  tiny_runtime_add_root (&reader, tiny_node_binary (g, TINY_OP_MUL, x, x));
  TinyNode *sources[] = { x, tiny_node_binary (g, TINY_OP_ADD, x,
                                               tiny_node_const_float (g, TINY_DTYPE_F32, 10)) };
  TinyNode *assign
      = tiny_node_new (g, TINY_OP_ASSIGN, TINY_DTYPE_F32, 1, 2, sources, 0, NULL, NULL);
  tiny_runtime_add_root (&variable, assign);
  TinyBuffer *memory = tiny_runtime_get_buffer (x);
  realize (&variable);
  g_assert_true (tiny_runtime_get_buffer (variable.node) == memory);
  assert_floats (&variable, (float[]){ 11, 12, 13, 14 }, 4);
  assert_floats (&reader, (float[]){ 1, 4, 9, 16 }, 4);
  tiny_runtime_remove_root (&variable);
  tiny_runtime_remove_root (&reader);
  tiny_runtime_unlock ();
}

/* What no root reaches is swept, its memory with it; what is reached survives with its value. */
static void
test_sweep (void)
{
  tiny_runtime_lock ();
  TinyGraph *g = tiny_runtime_get_graph ();
  TinyRoot kept = { 0 };
  tiny_runtime_add_root (&kept, node_of_floats ((float[]){ 7, 8 }, (gint64[]){ 2 }, 1));
  for (guint i = 0; i < 100; i++)
    node_of_floats ((float[]){ 1, 2 }, (gint64[]){ 2 }, 1);
  guint before = tiny_graph_get_n_nodes (g);
  tiny_runtime_sweep (TRUE);
  g_assert_cmpuint (tiny_graph_get_n_nodes (tiny_runtime_get_graph ()), <, before);
  assert_floats (&kept, (float[]){ 7, 8 }, 2);
  tiny_runtime_remove_root (&kept);
  tiny_runtime_unlock ();
}

static guint64
count_sweeps (void)
{
  TinyCounters counters;
  tiny_runtime_sweep (FALSE);
  tiny_runtime_get_counters (&counters);
  return counters.n_sweeps;
}

/* A graph that grows and is all held is never copied; once nobody holds it, it is swept. */
static void
test_held (void)
{
  enum { FEWEST = 5000, MOST = 60000 };
  TinyRoot kept = { 0 };
  tiny_runtime_lock ();
  tiny_runtime_sweep (TRUE);
  TinyGraph *g = tiny_runtime_get_graph ();
  TinyNode *sum = node_of_floats ((float[]){ 1 }, (gint64[]){ 1 }, 1);
  const guint64 before = count_sweeps ();
  for (guint i = 0; i < MOST; i++) {
    sum = tiny_node_binary (g, TINY_OP_ADD, sum, sum);
    if (i % FEWEST != FEWEST - 1)
      continue;
    TinyRoot next = { 0 };
    tiny_runtime_add_root (&next, sum);
    g_assert_cmpuint (count_sweeps (), ==, before);
    if (kept.node != NULL)
      tiny_runtime_remove_root (&kept);
    tiny_runtime_add_root (&kept, sum);
    tiny_runtime_remove_root (&next);
  }
  tiny_runtime_remove_root (&kept);
  tiny_runtime_sweep (TRUE);
  g_assert_cmpuint (tiny_graph_get_n_nodes (tiny_runtime_get_graph ()), <, FEWEST);
  for (guint i = 0; i < 2 * FEWEST; i++)
    node_of_floats ((float[]){ 1 }, (gint64[]){ 1 }, 1);
  g_assert_cmpuint (count_sweeps (), ==, before + 2);
  tiny_runtime_unlock ();
}

/* A captured run replays on other input memory. */
static void
test_capture (void)
{
  g_autoptr (GError) error = NULL;
  tiny_runtime_lock ();
  TinyGraph *g = tiny_runtime_get_graph ();
  TinyRoot input = { 0 }, other = { 0 }, output = { 0 };
  tiny_runtime_add_root (&input, node_of_floats ((float[]){ 1, 2 }, (gint64[]){ 2 }, 1));
  tiny_runtime_add_root (&other, node_of_floats ((float[]){ 5, 6 }, (gint64[]){ 2 }, 1));
  tiny_runtime_add_root (&output, tiny_node_binary (g, TINY_OP_ADD, input.node, input.node));
  TinyCapture *capture = tiny_capture_begin (&input.node, 1, &error);
  g_assert_no_error (error);
  realize (&output);
  g_assert_true (tiny_capture_end (capture, &error));
  g_assert_cmpuint (tiny_capture_get_n_kernels (capture), ==, 1);
  g_assert_true (tiny_capture_replay (capture, &other.node, 1, &error));
  assert_floats (&output, (float[]){ 10, 12 }, 2);
  g_assert_true (tiny_capture_replay (capture, &input.node, 1, &error));
  assert_floats (&output, (float[]){ 2, 4 }, 2);
  g_assert_false (tiny_capture_replay (capture, NULL, 0, &error));
  g_assert_nonnull (error);
  tiny_capture_free (capture);
  tiny_runtime_remove_root (&input);
  tiny_runtime_remove_root (&other);
  tiny_runtime_remove_root (&output);
  tiny_runtime_unlock ();
}

/* What is done to the graph without its lock ends the program there, instead of later and elsewhere. */
static void
test_lock (gconstpointer needs_lock)
{
  if (g_test_subprocess ()) {
    ((void (*) (void)) needs_lock) ();
    return;
  }
  g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
  g_test_trap_assert_failed ();
  g_test_trap_assert_stderr ("*assertion failed: (depth > 0*");
}

static guint64
get_live_bytes (void)
{
  TinyDeviceMemory memory;
  tiny_device_get_memory (tiny_engine_get_device (tiny_runtime_get_default_device (NULL), NULL),
                          &memory);
  return memory.live_bytes;
}

/* Memory is free when nobody has what is in it any more, long before a sweep; what waits to be computed from it keeps it. */
static void
test_memory (void)
{
  const float values[64] = { 1, 2, 3 }, negative[] = { -1, -2, -3 };
  TinyRoot root = { 0 }, reader = { 0 }, again = { 0 };
  tiny_runtime_lock ();
  tiny_runtime_sweep (TRUE);
  const guint64 before = get_live_bytes ();
  TinyNode *x = node_of_floats (values, (gint64[]){ 64 }, 1);
  tiny_runtime_add_root (&root, x);
  tiny_runtime_add_root (&reader, tiny_node_unary (tiny_runtime_get_graph (), TINY_OP_NEG, x));
  tiny_runtime_unlock ();
  const guint64 one = get_live_bytes () - before;
  tiny_runtime_remove_root (&root);
  g_assert_cmpuint (get_live_bytes () - before, ==, one);
  realize (&reader); /* its own, and that of x no more */
  g_assert_cmpuint (get_live_bytes () - before, ==, one);
  assert_floats (&reader, negative, 3);
  tiny_runtime_add_root (&again, reader.node);
  tiny_runtime_remove_root (&reader);
  g_assert_cmpuint (get_live_bytes () - before, ==, one);
  assert_floats (&again, negative, 3);
  tiny_runtime_remove_root (&again);
  g_assert_cmpuint (get_live_bytes (), ==, before);
}

/* Readers of an assigned value are not computed with the assignment: they go on from the memory. Readers of the value before
 * is, and so is what reads an assignment to memory that another one writes to after it. */
static void
test_readers (void)
{
  const gint64 n = 2;
  tiny_runtime_lock ();
  TinyGraph *g = tiny_runtime_get_graph ();
  TinyNode *memory = node_of_floats ((float[]){ 1, 2 }, &n, 1);
  TinyNode *value = node_of_floats ((float[]){ 3, 5 }, &n, 1);
  TinyNode *sources[] = { memory, tiny_node_unary (g, TINY_OP_NEG, value) };
  TinyNode *first
      = tiny_node_new (g, TINY_OP_ASSIGN, TINY_DTYPE_F32, 1, 2, sources, 0, NULL, NULL);
  TinyRoot assigned = { 0 }, later = { 0 }, reader = { 0 }, older = { 0 };
  tiny_runtime_add_root (&assigned, first);
  tiny_runtime_add_root (&reader, tiny_node_binary (g, TINY_OP_MUL, first, value));
  tiny_runtime_add_root (&older, tiny_node_binary (g, TINY_OP_ADD, memory, value));
  realize (&assigned);
  g_assert_true (tiny_runtime_is_realized (older.node));
  g_assert_false (tiny_runtime_is_realized (reader.node));
  assert_floats (&older, (float[]){ 4, 7 }, 2);
  sources[1] = tiny_node_binary (g, TINY_OP_ADD, value, value);
  tiny_runtime_add_root (
      &later, tiny_node_new (g, TINY_OP_ASSIGN, TINY_DTYPE_F32, 1, 2, sources, 0, NULL, NULL));
  realize (&later);
  g_assert_true (tiny_runtime_is_realized (reader.node));
  assert_floats (&reader, (float[]){ -9, -25 }, 2);
  assert_floats (&later, (float[]){ 6, 10 }, 2);
  TinyRoot *const roots[] = { &assigned, &later, &reader, &older };
  for (guint i = 0; i < G_N_ELEMENTS (roots); i++)
    tiny_runtime_remove_root (roots[i]);
  tiny_runtime_unlock ();
}

/* The sum of all elements of @node, which is no root: nothing else is stored. */
static float
read_sum (TinyNode *node)
{
  float sum;
  TinyRoot root = { 0 };
  const gint64 axes[] = { 0, 1 };
  tiny_runtime_add_root (
      &root, tiny_node_reduce_axes (tiny_runtime_get_graph (), node, TINY_OP_ADD, axes, 2));
  read_floats (&root, &sum, 1);
  tiny_runtime_remove_root (&root);
  return sum;
}

/* A state that is read only through something else is stored when it is needed again: each round launches what the one
 * before did, and finds its plan. What is much larger than all that it was made of is not stored. */
static void
test_state (void)
{
  enum { N = 4, ROUNDS = 24, WARM = 6, WIDE = 1024 };
  const float weights[N * N]
      = { 0.5, 0.25, 0, 0.125, 0, 0.5, 0.25, 0, 0.25, 0, 0.5, 0.25, 0.125, 0, 0, 0.5 };
  const gint64 square[] = { N, N }, one_row[] = { 1, N };
  float expected[N] = { 1, 2, 3, 4 };
  TinyCounters before, after;
  tiny_runtime_lock ();
  TinyRoot h = { 0 }, w = { 0 };
  tiny_runtime_add_root (&h, node_of_floats (expected, one_row, 2));
  tiny_runtime_add_root (&w, node_of_floats (weights, square, 2));
  for (guint i = 0; i < ROUNDS; i++) {
    TinyGraph *g = tiny_runtime_get_graph ();
    float next[N] = { 0 }, sum = 0;
    if (i == WARM)
      tiny_runtime_get_counters (&before);
    TinyNode *x
        = tiny_node_binary (g, TINY_OP_MUL, tiny_node_broadcast (g, h.node, square, 2), w.node);
    x = tiny_node_reduce_axes (g, x, TINY_OP_ADD, (gint64[]){ 1 }, 1);
    tiny_runtime_remove_root (&h);
    tiny_runtime_add_root (&h, tiny_node_reshape (g, x, one_row, 2));
    for (guint k = 0; k < N * N; k++)
      next[k / N] += expected[k % N] * weights[k];
    memcpy (expected, next, sizeof next);
    for (guint k = 0; k < N; k++)
      sum += next[k];
    g_assert_cmpfloat_with_epsilon (read_sum (h.node), sum, 1e-5 * sum);
  }
  tiny_runtime_get_counters (&after);
  g_assert_cmpuint (after.n_kernels - before.n_kernels, <=, 3 * (ROUNDS - WARM));
  g_assert_cmpuint (after.n_schedules, ==, before.n_schedules);
  g_assert_false (tiny_runtime_is_realized (h.node));
  TinyGraph *g = tiny_runtime_get_graph ();
  TinyNode *wide = tiny_node_reduce_axes (g, w.node, TINY_OP_ADD, (gint64[]){ 0, 1 }, 2);
  wide = tiny_node_broadcast (g, wide, (gint64[]){ WIDE, WIDE }, 2);
  tiny_runtime_remove_root (&h);
  tiny_runtime_add_root (&h, tiny_node_unary (g, TINY_OP_NEG, wide));
  for (guint i = 0; i < 3; i++) {
    g_assert_cmpfloat (read_sum (h.node), ==, -3.25F * WIDE * WIDE);
    g_assert_false (tiny_runtime_is_realized (h.node));
  }
  tiny_runtime_remove_root (&h);
  tiny_runtime_remove_root (&w);
  tiny_runtime_unlock ();
}

/* A value that is held and read through something else is stored when it is needed the third time, neither before nor later. */
static void
test_third_time (void)
{
  const float values[] = { 1, 2, 3, 4 };
  TinyRoot h = { 0 }, x = { 0 };
  tiny_runtime_lock ();
  tiny_runtime_add_root (&x, node_of_floats (values, (gint64[]){ 2, 2 }, 2));
  TinyGraph *g = tiny_runtime_get_graph ();
  TinyNode *sums = tiny_node_reduce_axes (g, x.node, TINY_OP_ADD, (gint64[]){ 1 }, 1);
  tiny_runtime_add_root (&h, tiny_node_unary (g, TINY_OP_NEG, sums));
  for (guint i = 1; i <= 3; i++) {
    TinyNode *square = tiny_node_binary (g, TINY_OP_MUL, h.node, h.node);
    g_assert_cmpfloat (read_sum (tiny_node_reshape (g, square, (gint64[]){ 1, 2 }, 2)), ==,
                       9 + 49);
    g_assert_cmpint (tiny_runtime_is_realized (h.node), ==, i == 3);
  }
  tiny_runtime_remove_root (&h);
  tiny_runtime_remove_root (&x);
  tiny_runtime_unlock ();
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  tiny_env_set_text (TINY_ENV_DEV, "REF");
  g_test_add_func ("/engine/realize/elementwise", test_elementwise);
  g_test_add_func ("/engine/realize/shared", test_shared);
  g_test_add_func ("/engine/realize/assign", test_assign);
  g_test_add_func ("/engine/realize/sweep", test_sweep);
  g_test_add_func ("/engine/realize/held", test_held);
  g_test_add_func ("/engine/realize/memory", test_memory);
  g_test_add_func ("/engine/realize/readers", test_readers);
  g_test_add_func ("/engine/realize/state", test_state);
  g_test_add_func ("/engine/realize/third-time", test_third_time);
  g_test_add_func ("/engine/jit/capture", test_capture);
  g_test_add_data_func ("/engine/realize/lock/unlock", tiny_runtime_unlock, test_lock);
  g_test_add_data_func ("/engine/realize/lock/hold", tiny_runtime_hold, test_lock);
  g_test_add_data_func ("/engine/realize/lock/release", tiny_runtime_release, test_lock);
  return g_test_run ();
}
