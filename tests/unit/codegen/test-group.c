/* SPDX-License-Identifier: MIT
 *
 * test-group.c: work-groups: what fits them, that limits hold however small, and that kernels by
 * hand compute what their IR says. REF runs them and finds items that do not wait. */
#include <string.h>

#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "kernels.h"

/* The sum of the rows of (rows, columns). */
static TinyNode *
build_row_sum (Build *b, gint64 rows, gint64 columns)
{
  TinyNode *i = build_range (b, rows), *k = build_range (b, columns);
  TinyNode *p = build_param (b, TINY_DTYPE_F32, 1, rows * columns);
  TinyNode *sum
      = build_reduce (b, TINY_OP_ADD, build_load (b, p, INDEX (b, i, k), NULL), 1, &k);
  return build_sink (b,
                     build_store (b, build_param (b, TINY_DTYPE_F32, 0, rows), i, sum, NULL));
}

static TinyNode *
build_softmax (Build *b, gint64 rows, gint64 columns)
{
  gint64 n = rows * columns;
  TinyNode *i = build_range (b, rows), *k = build_range (b, columns);
  TinyNode *x = build_load (b, build_param (b, TINY_DTYPE_F32, 1, n), INDEX (b, i, k), NULL);
  TinyNode *top = build_reduce (b, TINY_OP_MAX, x, 1, &k);
  TinyNode *e = tiny_node_unary (b->graph, TINY_OP_EXP2, build_op (b, TINY_OP_SUB, x, top));
  TinyNode *sum = build_reduce (b, TINY_OP_ADD, e, 1, &k);
  TinyNode *value
      = build_op (b, TINY_OP_MUL, e, tiny_node_unary (b->graph, TINY_OP_RECIP, sum));
  return build_sink (
      b, build_store (b, build_param (b, TINY_DTYPE_F32, 0, n), INDEX (b, i, k), value, NULL));
}

/* A row's exponentials in LOCAL memory: one store fills it, another reads it. */
static TinyNode *
build_kept_row (Build *b, gint64 rows, gint64 columns)
{
  gint64 n = rows * columns;
  TinyNode *i = build_range (b, rows), *k = build_range (b, columns),
           *j = build_range (b, columns);
  TinyNode *sum_loop = build_range (b, columns);
  TinyNode *memory = tiny_node_new (b->graph, TINY_OP_LOCAL, TINY_DTYPE_F32, 1, 1, &i, 0,
                                    tiny_graph_ints (b->graph, &columns, 1), NULL);
  TinyNode *x = build_load (b, build_param (b, TINY_DTYPE_F32, 1, n), INDEX (b, i, k), NULL);
  TinyNode *sum
      = build_reduce (b, TINY_OP_ADD, build_load (b, memory, sum_loop, NULL), 1, &sum_loop);
  TinyNode *value = build_op (b, TINY_OP_SUB, build_load (b, memory, j, NULL), sum);
  TinyNode *stores[] = {
    build_store (b, memory, k, tiny_node_unary (b->graph, TINY_OP_EXP2, x), NULL),
    build_store (b, build_param (b, TINY_DTYPE_F32, 0, n), INDEX (b, i, j), value, NULL),
  };
  return tiny_node_sink (b->graph, 2, stores, "kept");
}

static TinyNode *
build_matmul (Build *b, gint64 M, gint64 N, gint64 K, guint transposed)
{
  TinyNode *i = build_range (b, M), *j = build_range (b, N), *k = build_range (b, K);
  TinyNode *at_x = transposed & 1 ? INDEX (b, k, i) : INDEX (b, i, k);
  TinyNode *at_y = transposed & 2 ? INDEX (b, j, k) : INDEX (b, k, j);
  TinyNode *x = build_load (b, build_param (b, TINY_DTYPE_F32, 1, M * K), at_x, NULL);
  TinyNode *y = build_load (b, build_param (b, TINY_DTYPE_F32, 2, K * N), at_y, NULL);
  TinyNode *sum = build_reduce (b, TINY_OP_ADD, build_op (b, TINY_OP_MUL, x, y), 1, &k);
  return build_sink (b, build_store (b, build_param (b, TINY_DTYPE_F32, 0, M * N),
                                     INDEX (b, i, j), sum, NULL));
}

/* A convolution of three taps over (rows, columns) of 8 channels to 8, with zeros at the ends. */
static TinyNode *
build_taps (Build *b, gint64 rows, gint64 columns)
{
  TinyNode *o = build_range (b, 8), *i = build_range (b, rows), *j = build_range (b, columns);
  TinyNode *k[] = { build_range (b, 8), build_range (b, 3) };
  TinyNode *column
      = build_op (b, TINY_OP_ADD, build_op (b, TINY_OP_ADD, j, k[1]), build_number (b, -1));
  TinyNode *gate
      = build_op (b, TINY_OP_AND, build_op (b, TINY_OP_CMPLT, build_number (b, -1), column),
                  build_op (b, TINY_OP_CMPLT, column, build_number (b, columns)));
  TinyNode *at = build_op (b, TINY_OP_ADD, INDEX (b, k[0], i, j),
                           build_op (b, TINY_OP_ADD, k[1], build_number (b, -1)));
  TinyNode *x
      = build_load (b, build_param (b, TINY_DTYPE_F32, 1, 8 * rows * columns), at, gate);
  TinyNode *w = build_load (b, build_param (b, TINY_DTYPE_F32, 2, 8 * 8 * 3),
                            INDEX (b, o, k[0], k[1]), NULL);
  TinyNode *sum = build_reduce (b, TINY_OP_ADD, build_op (b, TINY_OP_MUL, x, w), 2, k);
  return build_sink (b, build_store (b, build_param (b, TINY_DTYPE_F32, 0, 8 * rows * columns),
                                     INDEX (b, o, i, j), sum, NULL));
}

static TinyLinearProgram *
compile (Build *b, TinyNode *sink, const TinyTarget *target, const char *text, GError **error)
{
  guint n;
  g_autofree TinyOpt *opts = text ? tiny_opts_from_string (text, &n, error) : NULL;
  return tiny_codegen_compile (b->graph, sink, target, opts, text ? n : 0, error);
}

static guint
count_instrs (const TinyLinear *linear, TinyInstrOp op)
{
  guint n = 0;
  for (guint i = 0; i < linear->n_instrs; i++)
    n += linear->instrs[i].op == op;
  return n;
}

/* Lists by hand, the group that each makes and its barriers. */
static void
test_by_hand (void)
{
  static const struct {
    TinyNode *(*build) (Build *b, gint64 rows, gint64 columns);
    const char *opts;
    guint group[3], n_barriers;
  } cases[] = {
    { build_row_sum, "group(0,4)", { 4, 1, 1 }, 0 },
    { build_row_sum, "group(1,8)", { 8, 1, 1 }, 2 },
    { build_row_sum, "group(1,8) grid(0,0)", { 8, 1, 1 }, 1 },
    { build_row_sum, "group(1,16) group(0,4) grid(0,0)", { 16, 4, 1 }, 1 },
    { build_row_sum, "group(1,32) grid(0,0)", { 32, 1, 1 }, 2 }, /* in two steps */
    { build_row_sum, "pad(1,48) group(1,3) upcast(0,2) unroll(1,2)", { 3, 1, 1 }, 2 },
    { build_row_sum, "pad(1,48) group(1,3) lanes(0,4)", { 3, 1, 1 }, 2 },
    { build_row_sum, "group(0,2) group(1,0) grid(0,0)", { 2, 32, 1 }, 2 },
    /* Two sums and a store, one after the other by the same items. */
    { build_softmax, "group(2,16) group(3,16) grid(0,0) group(1,16)", { 16, 1, 1 }, 2 },
    { build_softmax, "group(3,8) grid(0,0) group(1,4)", { 8, 4, 1 }, 1 },
    { build_kept_row, "grid(0,0) group(1,16) group(2,16) group(3,16)", { 16, 1, 1 }, 2 },
    { build_kept_row, "group(0,4) group(1,4)", { 4, 4, 1 }, 2 },
    { build_kept_row, "grid(0,0) group(2,8)", { 8, 1, 1 }, 1 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    BUILD ();
    TinyTarget target = group_target ();
    TinyNode *sink = cases[i].build (b, 12, 32);
    g_test_message ("%s", cases[i].opts);
    g_free (check_kernel (b, sink, &target, cases[i].opts));
    g_autoptr (GError) error = NULL;
    g_autoptr (TinyLinearProgram) program = compile (b, sink, &target, cases[i].opts, &error);
    g_assert_no_error (error);
    for (guint d = 0; d < 3; d++)
      g_assert_cmpuint (program->linear.group[d], ==, cases[i].group[d]);
    g_assert_cmpuint (count_instrs (&program->linear, TINY_INSTR_BARRIER), ==,
                      cases[i].n_barriers);
  }
}

/* Operands in LOCAL memory: a few rounds of the reduction for the whole group. Two barriers in each
 * round, whatever the number of operands; none where each item has a copy to itself. */
static void
test_staged (void)
{
  static const struct {
    const char *opts;
    guint n_barriers;
    gboolean is_convolution;
  } cases[] = {
    { "split(2,4) stage(2,0)", 0 },
    { "split(2,4) stage(2,0) stage(2,1) grid(0,0) unroll(3,4)", 0 },
    { "group(1,8) group(0,4) split(2,8) stage(2,0) stage(2,1)", 2 },
    { "group(1,8) group(0,4) grid(0,0) grid(1,0) split(2,8) stage(2,1)", 2 },
    { "group(1,8) upcast(1,2) group(0,4) upcast(0,3) split(2,6) stage(2,0) stage(2,1)", 2 },
    { "lanes(1,4) group(1,4) pad(0,10) group(0,5) upcast(0,2) split(2,3) stage(2,0) stage(2,1)",
      2 },
    { "group(1,8) group(0,4) split(2,12) grid(0,0) grid(1,0) stage(1,0) stage(1,1)", 1 },
    { "group(2,12) group(1,4) split(2,2) stage(2,0)",
      2 }, /* items share the reduction as well */
    { "group(2,8) group(0,4) split(3,2) stage(3,0) stage(3,1)", 2, TRUE },
    { "group(2,4) upcast(2,2) group(0,4) upcast(0,2) split(3,4) stage(3,1) unroll(5,3)", 2,
      TRUE },
  };
  for (guint i = 0; i < 4 * G_N_ELEMENTS (cases); i++) {
    BUILD ();
    TinyTarget target = group_target ();
    target.local_bytes = 16 << 10;
    const char *opts = cases[i / 4].opts;
    TinyNode *sink = cases[i / 4].is_convolution ? build_taps (b, 3, 8)
                                                 : build_matmul (b, 12, 16, 24, i % 4);
    g_free (check_kernel (b, sink, &target, opts));
    g_autoptr (TinyLinearProgram) program = compile (b, sink, &target, opts, NULL);
    g_test_message ("%s", opts);
    g_assert_cmpuint (count_instrs (&program->linear, TINY_INSTR_BARRIER), ==,
                      cases[i / 4].n_barriers);
  }
}

/* What is large enough is computed in tiles through LOCAL memory, however sizes divide; every output
 * has one item where neighbours in memory are outputs' neighbours. */
static void
test_tiles (void)
{
  static const gint64 shapes[][3]
      = { { 64, 64, 32 }, { 33, 70, 24 }, { 130, 32, 7 }, { 50, 50, 50 }, { 1, 4096, 8 } };
  for (guint s = 0; s < 4 * G_N_ELEMENTS (shapes); s++) {
    BUILD ();
    const gint64 *n = shapes[s / 4];
    TinyTarget target = s % 2 ? tiny_group_target () : group_target ();
    target.max_grid[0] = G_MAXUINT16;
    g_autofree char *opts
        = check_kernel (b, build_matmul (b, n[0], n[1], n[2], s % 4), &target, NULL);
    g_test_message ("%s", opts);
    if (s == 0) {
      g_assert_nonnull (strstr (opts, "group(1,8) upcast(1,"));
      g_assert_nonnull (strstr (opts, "split(2,16) stage(2,0) stage(2,1)"));
    }
  }
  BUILD ();
  TinyTarget target = group_target ();
  g_free (check_kernel (b, build_taps (b, 40, 30), &target, NULL));
}

/* Neighbouring items read neighbours: along the row where a group sums one, along the columns where
 * these lie together, and some of both where there are few columns. */
static void
test_neighbours (void)
{
  static const struct {
    gint64 rows, columns;
    gboolean transposed;
    const char *opts;
  } cases[] = {
    { 8192, 128, FALSE, "group(1,64) grid(0,0)" },
    { 64, 1000, FALSE, "pad(1,64) group(1,64) grid(0,0)" },
    { 8192, 128, TRUE, "group(0,64) grid(0,0)" },
    { 64, 128, TRUE, "group(0,16) group(1,4) grid(0,0)" },
    { 8192, 4, FALSE, "group(0,64) grid(0,0)" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    BUILD ();
    TinyTarget target = group_target ();
    TinyNode *r = build_range (b, cases[i].rows), *k = build_range (b, cases[i].columns);
    TinyNode *p = build_param (b, TINY_DTYPE_F32, 1, cases[i].rows * cases[i].columns);
    TinyNode *at = cases[i].transposed ? INDEX (b, k, r) : INDEX (b, r, k);
    TinyNode *sum = build_reduce (b, TINY_OP_ADD, build_load (b, p, at, NULL), 1, &k);
    TinyNode *sink = build_sink (
        b, build_store (b, build_param (b, TINY_DTYPE_F32, 0, cases[i].rows), r, sum, NULL));
    g_autoptr (TinyLinearProgram) program = compile (b, sink, &target, NULL, NULL);
    g_assert_cmpstr (program->opts, ==, cases[i].opts);
  }
}

/* What does not fit says why. */
static void
test_objections (void)
{
  static const struct {
    gboolean has_groups;
    const char *opts, *says;
  } cases[] = {
    { FALSE, "group(0,4)", "group(0,4): the target has no work-groups" },
    { TRUE, "group(0,5)", "group(0,5): the amount does not divide the axis" },
    { TRUE, "group(0,6)", "group(0,6): the target's work-groups are smaller" },
    { TRUE, "group(1,4) group(0,3)", "group(0,3): the target's work-groups are smaller" },
    { TRUE, "grid(0,0) group(0,2)", "group(0,2): the axis is on the grid" },
    { TRUE, "pad(0,41) grid(0,0)", "grid(0,0): the target's grid is smaller" },
    { TRUE, "group(1,4) upcast(0,6)", "upcast(0,6): the kernel's own memory would not fit" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    BUILD ();
    TinyTarget target = cases[i].has_groups ? tiny_group_target () : scalar_target ();
    target.max_group[0] = target.max_group[1] = 4;
    target.local_bytes = 128;
    g_autoptr (GError) error = NULL;
    g_autoptr (TinyLinearProgram) program
        = compile (b, build_row_sum (b, 12, 32), &target, cases[i].opts, &error);
    g_assert_null (program);
    g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
    g_assert_cmpstr (error->message, ==, cases[i].says);
  }
}

/* The heuristic keeps every limit, however small, and gives work to groups where there are some. */
static void
test_limits (void)
{
  static const guint limits[][4] = { /* items, LOCAL bytes, grid, lanes */
                                     { 1, 0, 1, 1 },   { 2, 64, 2, 1 }, { 3, 128, 3, 2 },
                                     { 7, 100, 5, 4 }, { 64, 0, 7, 1 }, { 256, 32768, 65535, 4 }
  };
  static const gint64 shapes[][2]
      = { { 1, 1 }, { 1, 100 }, { 67, 5 }, { 48, 64 }, { 131, 17 } };
  TinyNode *(*const builds[]) (Build *, gint64, gint64)
      = { build_row_sum, build_softmax, build_kept_row };
  for (guint l = 0; l < G_N_ELEMENTS (limits); l++)
    for (guint s = 0; s < G_N_ELEMENTS (shapes) * G_N_ELEMENTS (builds); s++) {
      BUILD ();
      TinyTarget target = group_target ();
      target.max_group_total = limits[l][0];
      target.local_bytes = limits[l][1];
      target.max_lanes = limits[l][3];
      for (guint d = 0; d < 3; d++) {
        target.max_group[d] = limits[l][0];
        target.max_grid[d] = limits[l][2];
      }
      const gint64 *shape = shapes[s / G_N_ELEMENTS (builds)];
      TinyNode *sink = builds[s % G_N_ELEMENTS (builds)](b, shape[0], shape[1]);
      target = with_room (&target, sink);
      g_autofree char *opts = check_kernel (b, sink, &target, NULL);
      if (limits[l][0] == 256 && shape[1] == 64)
        g_assert_nonnull (strstr (opts, "group("));
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  tiny_env_set_int (TINY_ENV_VERIFY, 1);
  g_test_add_func ("/codegen/group/by-hand", test_by_hand);
  g_test_add_func ("/codegen/group/staged", test_staged);
  g_test_add_func ("/codegen/group/tiles", test_tiles);
  g_test_add_func ("/codegen/group/neighbours", test_neighbours);
  g_test_add_func ("/codegen/group/objections", test_objections);
  g_test_add_func ("/codegen/group/limits", test_limits);
  return g_test_run ();
}
