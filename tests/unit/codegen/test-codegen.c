/* SPDX-License-Identifier: MIT
 *
 * test-codegen.c: kernels compiled in many ways all compute what their IR says. */
#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "codegen/tiny-decompose.h"
#include "kernels.h"

static void
test_elementwise (void)
{
  gint64 sizes[] = { 1, 2, 7, 16, 64, 100, 1009, 4096 };
  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++) {
    BUILD ();
    TinyNode *r = build_range (b, sizes[i]);
    TinyNode *x = build_load (b, build_param (b, TINY_DTYPE_F32, 1, sizes[i]), r, NULL);
    TinyNode *y
        = build_load (b, build_param (b, TINY_DTYPE_F32, 2, 1), build_number (b, 0), NULL);
    TinyNode *value = build_op (b, TINY_OP_ADD, build_op (b, TINY_OP_MUL, x, x), y);
    check_everywhere (
        b, build_sink (b, build_store (b, build_param (b, TINY_DTYPE_F32, 0, sizes[i]), r,
                                       value, NULL)));
  }
}

static void
test_transpose (void)
{
  BUILD ();
  TinyNode *i = build_range (b, 13), *j = build_range (b, 34);
  TinyNode *x
      = build_load (b, build_param (b, TINY_DTYPE_I32, 1, 13 * 34), INDEX (b, j, i), NULL);
  check_everywhere (b,
                    build_sink (b, build_store (b, build_param (b, TINY_DTYPE_I32, 0, 13 * 34),
                                                INDEX (b, i, j), x, NULL)));
}

/* The index of an element through a reshape that splits and joins axes. */
static void
test_reshape (void)
{
  BUILD ();
  TinyNode *r = build_range (b, 12 * 32);
  TinyNode *row = build_op (b, TINY_OP_FLOORDIV, r, build_number (b, 32));
  TinyNode *column = build_op (b, TINY_OP_FLOORMOD, r, build_number (b, 32));
  TinyNode *index
      = build_op (b, TINY_OP_ADD, build_op (b, TINY_OP_MUL, column, build_number (b, 12)), row);
  TinyNode *same
      = build_op (b, TINY_OP_ADD, build_op (b, TINY_OP_MUL, row, build_number (b, 32)), column);
  TinyNode *p = build_param (b, TINY_DTYPE_F32, 1, 12 * 32);
  TinyNode *value = build_op (b, TINY_OP_ADD, build_load (b, p, index, NULL),
                              build_load (b, p, same, NULL));
  check_everywhere (b,
                    build_sink (b, build_store (b, build_param (b, TINY_DTYPE_F32, 0, 12 * 32),
                                                r, value, NULL)));
}

/* One row of a table becomes another, where the row is read from memory and may be none of them. */
static void
test_assign_row (void)
{
  gint64 rows[] = { 2, 30, 100 };
  for (guint n = 0; n < G_N_ELEMENTS (rows); n++)
    for (gint64 sign = -1; sign <= 1; sign += 2) {
      BUILD ();
      TinyNode *i = build_range (b, rows[n]), *j = build_range (b, 24);
      TinyNode *table = build_param (b, TINY_DTYPE_F32, 0, 24 * rows[n]), *at = INDEX (b, i, j);
      TinyNode *row
          = build_load (b, build_param (b, TINY_DTYPE_I32, 1, 1), build_number (b, 0), NULL);
      row = build_op (b, TINY_OP_MUL, row, tiny_node_const_int (graph, TINY_DTYPE_I32, sign));
      TinyNode *is_row
          = build_op (b, TINY_OP_CMPEQ, tiny_node_cast (graph, i, TINY_DTYPE_I32), row);
      TinyNode *new = build_load (b, build_param (b, TINY_DTYPE_F32, 2, 24), j, NULL);
      TinyNode *value = tiny_node_where (graph, is_row, new, build_load (b, table, at, NULL));
      check_everywhere (b, build_sink (b, build_store (b, table, at, value, NULL)));
    }
}

static void
test_sum (void)
{
  gint64 shapes[][2]
      = { { 1, 1 }, { 1, 37 }, { 5, 64 }, { 64, 5 }, { 17, 129 }, { 3, 1024 }, { 5, 521 } };
  TinyOp ops[] = { TINY_OP_ADD, TINY_OP_MAX, TINY_OP_MUL };
  TinyDType dtypes[] = { TINY_DTYPE_F32, TINY_DTYPE_I32, TINY_DTYPE_F64 };
  for (guint s = 0; s < G_N_ELEMENTS (shapes) * 2; s++)
    for (guint o = 0; o < G_N_ELEMENTS (ops); o++)
      for (guint d = 0; d < G_N_ELEMENTS (dtypes); d++) {
        BUILD ();
        gint64 rows = shapes[s / 2][0], columns = shapes[s / 2][1];
        TinyNode *i = build_range (b, rows), *k = build_range (b, columns);
        TinyNode *index = s % 2 ? INDEX (b, k, i) : INDEX (b, i, k);
        TinyNode *x
            = build_load (b, build_param (b, dtypes[d], 1, rows * columns), index, NULL);
        TinyNode *sum = build_reduce (b, ops[o], x, 1, &k);
        check_everywhere (b, build_sink (b, build_store (b, build_param (b, dtypes[d], 0, rows),
                                                         i, sum, NULL)));
      }
}

/* Reduces of reduces over one and the same range, and an output loop over it as well. */
static void
test_softmax (void)
{
  gint64 shapes[][2] = { { 3, 10 }, { 4, 64 }, { 2, 131 } };
  for (guint s = 0; s < G_N_ELEMENTS (shapes); s++) {
    BUILD ();
    gint64 n = shapes[s][0] * shapes[s][1];
    TinyNode *i = build_range (b, shapes[s][0]), *k = build_range (b, shapes[s][1]);
    TinyNode *x = build_load (b, build_param (b, TINY_DTYPE_F32, 1, n), INDEX (b, i, k), NULL);
    TinyNode *top = build_reduce (b, TINY_OP_MAX, x, 1, &k);
    TinyNode *e = tiny_node_unary (graph, TINY_OP_EXP2, build_op (b, TINY_OP_SUB, x, top));
    TinyNode *sum = build_reduce (b, TINY_OP_ADD, e, 1, &k);
    TinyNode *value = build_op (b, TINY_OP_MUL, e, tiny_node_unary (graph, TINY_OP_RECIP, sum));
    check_everywhere (b, build_sink (b, build_store (b, build_param (b, TINY_DTYPE_F32, 0, n),
                                                     INDEX (b, i, k), value, NULL)));
  }
}

static void
test_matmul (void)
{
  gint64 shapes[][3]
      = { { 1, 1, 1 },    { 4, 4, 4 },   { 7, 5, 3 },    { 24, 32, 9 }, { 12, 64, 8 },
          { 17, 20, 33 }, { 31, 70, 5 }, { 13, 131, 3 }, { 64, 48, 7 } };
  for (guint s = 0; s < G_N_ELEMENTS (shapes) * 4; s++) {
    BUILD ();
    gint64 M = shapes[s / 4][0], N = shapes[s / 4][1], K = shapes[s / 4][2];
    TinyNode *i = build_range (b, M), *j = build_range (b, N), *k = build_range (b, K);
    TinyNode *a_index = s & 1 ? INDEX (b, k, i) : INDEX (b, i, k);
    TinyNode *b_index = s & 2 ? INDEX (b, j, k) : INDEX (b, k, j);
    TinyNode *x = build_load (b, build_param (b, TINY_DTYPE_F32, 1, M * K), a_index, NULL);
    TinyNode *y = build_load (b, build_param (b, TINY_DTYPE_F32, 2, K * N), b_index, NULL);
    TinyNode *sum = build_reduce (b, TINY_OP_ADD, build_op (b, TINY_OP_MUL, x, y), 1, &k);
    check_everywhere (b,
                      build_sink (b, build_store (b, build_param (b, TINY_DTYPE_F32, 0, M * N),
                                                  INDEX (b, i, j), sum, NULL)));
  }
}

/* A padded convolution: gates, several reduced axes, sums of ranges in addresses. */
static void
test_convolution (void)
{
  gint64 shapes[][4] = { { 3, 2, 8, 8 }, { 2, 5, 7, 16 }, { 4, 3, 6, 20 }, { 2, 64, 3, 40 } };
  for (guint s = 0; s < G_N_ELEMENTS (shapes); s++) {
    BUILD ();
    gint64 CI = shapes[s][0], CO = shapes[s][1], H = shapes[s][2], W = shapes[s][3];
    TinyNode *co = build_range (b, CO), *y = build_range (b, H), *x = build_range (b, W);
    TinyNode *k[3] = { build_range (b, CI), build_range (b, 3), build_range (b, 3) };
    TinyNode *row
        = build_op (b, TINY_OP_ADD, build_op (b, TINY_OP_ADD, y, k[1]), build_number (b, -1));
    TinyNode *column
        = build_op (b, TINY_OP_ADD, build_op (b, TINY_OP_ADD, x, k[2]), build_number (b, -1));
    TinyNode *gate = NULL, *bounds[] = { build_number (b, H), build_number (b, W) },
             *at[] = { row, column };
    for (guint i = 0; i < 2; i++) {
      TinyNode *low = build_op (b, TINY_OP_CMPLT, build_number (b, -1), at[i]);
      TinyNode *both
          = build_op (b, TINY_OP_AND, low, build_op (b, TINY_OP_CMPLT, at[i], bounds[i]));
      gate = gate ? build_op (b, TINY_OP_AND, gate, both) : both;
    }
    TinyNode *index = build_op (
        b, TINY_OP_ADD, build_op (b, TINY_OP_MUL, k[0], build_number (b, H * W)),
        build_op (b, TINY_OP_ADD, build_op (b, TINY_OP_MUL, row, build_number (b, W)), column));
    TinyNode *image
        = build_load (b, build_param (b, TINY_DTYPE_F32, 1, CI * H * W), index, gate);
    TinyNode *w = build_load (b, build_param (b, TINY_DTYPE_F32, 2, CO * CI * 9),
                              INDEX (b, co, k[0], k[1], k[2]), NULL);
    TinyNode *sum = build_reduce (b, TINY_OP_ADD, build_op (b, TINY_OP_MUL, image, w), 3, k);
    TinyNode *relu
        = build_op (b, TINY_OP_MAX, sum, tiny_node_const_float (graph, TINY_DTYPE_F32, 0));
    check_everywhere (
        b, build_sink (b, build_store (b, build_param (b, TINY_DTYPE_F32, 0, CO * H * W),
                                       INDEX (b, co, y, x), relu, NULL)));
  }
}

/* A gather, an index vector as data, division of numbers that may be negative. */
static void
test_gather (void)
{
  BUILD ();
  TinyNode *i = build_range (b, 50), *j = build_range (b, 33);
  TinyNode *row = build_load (b, build_param (b, TINY_DTYPE_I32, 1, 50), i, NULL);
  TinyNode *wrapped = build_op (
      b, TINY_OP_FLOORMOD, tiny_node_cast (graph, row, TINY_DTYPE_INDEX), build_number (b, 10));
  TinyNode *index
      = build_op (b, TINY_OP_ADD, build_op (b, TINY_OP_MUL, wrapped, build_number (b, 33)), j);
  TinyNode *x = build_load (b, build_param (b, TINY_DTYPE_F32, 2, 330), index, NULL);
  TinyNode *less
      = build_op (b, TINY_OP_ADD, build_op (b, TINY_OP_MUL, j, build_number (b, -3)), i);
  TinyNode *quotient = build_op (b, TINY_OP_FLOORDIV, less, build_number (b, 7));
  TinyNode *value
      = build_op (b, TINY_OP_ADD, x, tiny_node_cast (graph, quotient, TINY_DTYPE_F32));
  check_everywhere (b, build_sink (b, build_store (b, build_param (b, TINY_DTYPE_F32, 0, 1650),
                                                   INDEX (b, i, j), value, NULL)));
}

/* Several stores, of the same loops, of fewer, and of others in another order. */
static void
test_stores (void)
{
  BUILD ();
  TinyNode *i = build_range (b, 9), *j = build_range (b, 32);
  TinyNode *p = build_param (b, TINY_DTYPE_F32, 0, 288);
  TinyNode *x = build_load (b, build_param (b, TINY_DTYPE_F32, 4, 288), INDEX (b, i, j), NULL);
  TinyNode *sum = build_reduce (b, TINY_OP_ADD, x, 1, &j);
  TinyNode *most = build_reduce (b, TINY_OP_MAX, x, 1, &j);
  TinyNode *columns = build_reduce (b, TINY_OP_ADD, x, 1, &i);
  TinyNode *gate = build_op (b, TINY_OP_CMPLT, build_number (b, 3), j);
  TinyNode *stores[] = {
    build_store (b, p, INDEX (b, i, j), build_op (b, TINY_OP_ADD, x, sum), gate),
    build_store (b, build_param (b, TINY_DTYPE_F32, 1, 9), i, most, NULL),
    build_store (b, build_param (b, TINY_DTYPE_F32, 2, 32), j, columns, NULL),
    build_store (b, build_param (b, TINY_DTYPE_F32, 3, 288), INDEX (b, j, i),
                 build_op (b, TINY_OP_MUL, x, build_load (b, p, INDEX (b, i, j), NULL)), NULL),
  };
  check_everywhere (b, tiny_node_sink (graph, 2, stores, "two"));
  check_everywhere (b, tiny_node_sink (graph, 3, stores, "three"));
  /* The last reads what the first writes, before it does so. */
  check_everywhere (b, tiny_node_sink (graph, 1, stores + 3, "four"));
}

/* Copies of a store of which one does not depend on the outermost loop that the others are in. */
static void
test_copies (void)
{
  BUILD ();
  TinyTarget target = scalar_target ();
  TinyNode *i = build_range (b, 3), *j = build_range (b, 5), *k = build_range (b, 4);
  TinyNode *at = INDEX (b, j, k);
  TinyNode *x = build_load (b, build_param (b, TINY_DTYPE_F32, 1, 20), at, NULL);
  TinyNode *gate
      = build_op (b, TINY_OP_CMPLT, build_op (b, TINY_OP_MUL, i, k), build_number (b, 1));
  TinyNode *store = build_store (b, build_param (b, TINY_DTYPE_F32, 0, 20), at, x, gate);
  g_autofree char *opts
      = check_kernel (b, tiny_node_sink (graph, 1, &store, NULL), &target, "upcast(2,4)");
  g_assert_cmpstr (opts, ==, "upcast(2,4)");
}

/* Loops that never run, parameters that are not used, variables. */
static void
test_degenerate (void)
{
  BUILD ();
  TinyNode *i = build_range (b, 6), *none = build_range (b, 0);
  TinyNode *x = build_load (b, build_param (b, TINY_DTYPE_F32, 3, 6), i, NULL);
  TinyNode *empty = build_reduce (b, TINY_OP_ADD, build_op (b, TINY_OP_MUL, x, x), 1, &none);
  TinyNode *variable
      = tiny_node_new (graph, TINY_OP_VARIABLE, TINY_DTYPE_INDEX, 1, 0, NULL, 1, NULL, NULL);
  TinyNode *value
      = build_op (b, TINY_OP_ADD, empty, tiny_node_cast (graph, variable, TINY_DTYPE_F32));
  TinyNode *stores[]
      = { build_store (b, build_param (b, TINY_DTYPE_F32, 0, 6), i, value, NULL),
          build_store (b, build_param (b, TINY_DTYPE_F32, 1, 6), none, x, NULL) };
  check_everywhere (b, tiny_node_sink (graph, 1, stores, NULL));
  TinyTarget target = scalar_target ();
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyLinearProgram) program = tiny_codegen_compile (
      graph, tiny_node_sink (graph, 1, stores + 1, "9 lives"), &target, NULL, 0, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (program->linear.n_instrs, ==, 0);
  g_assert_cmpuint (program->linear.n_params, ==, 4);
  g_assert_cmpstr (program->linear.name, ==, "k9_lives");
}

static void
test_opts_text (void)
{
  g_autoptr (GError) error = NULL;
  guint n;
  const char *text = "pad(1,16) lanes(1,16) group(1,8) split(0,4) upcast(0,0) swap(0,1) "
                     "grid(0,0) stage(0,1)";
  g_autofree TinyOpt *opts = tiny_opts_from_string (text, &n, &error);
  g_assert_no_error (error);
  g_autofree char *again = tiny_opts_to_string (opts, n);
  g_assert_cmpstr (again, ==, text);
  const char *bad[]
      = { "lanes", "lanes(1)", "lanes(,1)", "lane(1,2)", "lanes(1,2", "lanes(1,2)x" };
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_autofree TinyOpt *none = tiny_opts_from_string (bad[i], &n, &error);
    g_assert_null (none);
    g_assert_error (error, TINY_ERROR, TINY_ERROR_FORMAT);
    g_clear_error (&error);
  }
}

/* A softmax is as fast as its exponentials are short. */
static void
test_exp2_is_short (void)
{
  BUILD ();
  TinyTarget target = vector_target ();
  guint n_operations = 0;
  target.ops[TINY_DTYPE_F32] &= ~TINY_INSTR_BIT (TINY_INSTR_EXP2);
  TinyNode *x = build_load (b, build_param (b, TINY_DTYPE_F32, 1, 8), build_range (b, 8), NULL);
  TinyNode *power = tiny_node_unary (graph, TINY_OP_EXP2, x);
  TinyNode *made = tiny_decompose (graph, power, &target, NULL);
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &made, 1);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    n_operations += tiny_op_is_elementwise (node->op) && node->op != TINY_OP_BITCAST;
  }
  g_assert_cmpuint (n_operations, >, 1);
  g_assert_cmpuint (n_operations, <=, 21);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  tiny_env_set_int (TINY_ENV_VERIFY, 1);
  g_test_add_func ("/codegen/elementwise", test_elementwise);
  g_test_add_func ("/codegen/transpose", test_transpose);
  g_test_add_func ("/codegen/assign-row", test_assign_row);
  g_test_add_func ("/codegen/reshape", test_reshape);
  g_test_add_func ("/codegen/sum", test_sum);
  g_test_add_func ("/codegen/softmax", test_softmax);
  g_test_add_func ("/codegen/matmul", test_matmul);
  g_test_add_func ("/codegen/convolution", test_convolution);
  g_test_add_func ("/codegen/gather", test_gather);
  g_test_add_func ("/codegen/stores", test_stores);
  g_test_add_func ("/codegen/copies", test_copies);
  g_test_add_func ("/codegen/degenerate", test_degenerate);
  g_test_add_func ("/codegen/opts-text", test_opts_text);
  g_test_add_func ("/codegen/exp2-is-short", test_exp2_is_short);
  return g_test_run ();
}
