/* SPDX-License-Identifier: MIT
 *
 * test-codegen.c: kernels compiled in many ways all compute what their IR says. */
#include <math.h>
#include <string.h>

#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "linear-interpreter.h"

enum { MAX_PARAMS = 8 };

/* ---- targets ---- */
static TinyTarget
scalar_target (void)
{
  TinyTarget target = { .struct_size = sizeof target, .index_dtype = TINY_DTYPE_I32 };
  for (guint i = 0; i < TINY_N_DTYPES; i++)
    target.ops[i] = ~G_GUINT64_CONSTANT (0);
  target.dtypes_storage = target.dtypes_compute = 0xffff;
  target.max_lanes = 1;
  target.max_params = 32;
  for (guint i = 0; i < 3; i++)
    target.max_grid[i] = G_MAXINT32;
  return target;
}

static TinyTarget
vector_target (void)
{
  TinyTarget target = scalar_target ();
  target.flags = TINY_TARGET_MASKED | TINY_TARGET_GRID_CHUNKS | TINY_TARGET_UNALIGNED;
  target.index_dtype = TINY_DTYPE_I64;
  target.vector_bits = 512;
  target.n_vector_registers = 32;
  target.max_lanes = 64;
  target.n_threads = 2;
  target.cache_bytes[0] = 48 << 10;
  target.cache_bytes[1] = 2 << 20;
  return target;
}

static TinyTarget
narrow_target (void)
{
  TinyTarget target = vector_target ();
  target.flags = TINY_TARGET_GRID_CHUNKS;
  target.index_dtype = TINY_DTYPE_I32;
  target.vector_bits = 128;
  target.n_vector_registers = 16;
  target.max_lanes = 4;
  for (guint i = 0; i < TINY_N_DTYPES; i++)
    target.ops[i] &= ~TINY_INSTR_BIT (TINY_INSTR_MULACC);
  return target;
}

/* ---- kernels ---- */
typedef struct {
  TinyGraph *graph;
  guint n_ranges, n_params;
} Build;

static TinyNode *
range (Build *b, gint64 extent)
{
  return tiny_node_range_const (b->graph, b->n_ranges++, TINY_RANGE_LOOP, extent);
}

static TinyNode *
num (Build *b, gint64 value)
{
  return tiny_node_const_index (b->graph, value);
}

static TinyNode *
op2 (Build *b, TinyOp op, TinyNode *x, TinyNode *y)
{
  return tiny_node_binary (b->graph, op, x, y);
}

/* Row-major index of @ranges of the extents they have. */
static TinyNode *
row_major (Build *b, guint n, TinyNode *const *ranges)
{
  TinyNode *index = num (b, 0);
  for (guint i = 0; i < n; i++) {
    index = op2 (b, TINY_OP_MUL, index, num (b, tiny_range_get_extent (ranges[i])));
    index = op2 (b, TINY_OP_ADD, index, ranges[i]);
  }
  return index;
}
#define INDEX(b, ...)                                                                          \
  row_major (b, sizeof ((TinyNode *[]){ __VA_ARGS__ }) / sizeof (TinyNode *),                  \
             (TinyNode *[]){ __VA_ARGS__ })

static TinyNode *
param (Build *b, TinyDType dtype, guint slot, gint64 n)
{
  const TinyInts *ints = tiny_graph_ints (b->graph, &n, 1);
  return tiny_node_new (b->graph, TINY_OP_PARAM, dtype, 1, 0, NULL, slot, ints, NULL);
}

static TinyNode *
load (Build *b, TinyNode *p, TinyNode *index, TinyNode *gate)
{
  TinyNode *zero = tiny_node_const_int (b->graph, p->dtype, 0);
  TinyNode *sources[] = { p, index, gate, zero };
  return tiny_node_new (b->graph, TINY_OP_LOAD, p->dtype, 1, gate ? 4 : 2, sources, 0, NULL,
                        NULL);
}

static TinyNode *
store (Build *b, TinyNode *p, TinyNode *index, TinyNode *value, TinyNode *gate)
{
  TinyNode *sources[] = { p, index, value, gate };
  return tiny_node_new (b->graph, TINY_OP_STORE, TINY_DTYPE_VOID, 1, gate ? 4 : 3, sources, 0,
                        NULL, NULL);
}

static TinyNode *
reduce (Build *b, TinyOp op, TinyNode *value, guint n, TinyNode *const *ranges)
{
  TinyNode *sources[8] = { value };
  memcpy (sources + 1, ranges, n * sizeof *sources);
  return tiny_node_new (b->graph, TINY_OP_REDUCE, value->dtype, 1, n + 1, sources, op, NULL,
                        NULL);
}

static TinyNode *
sink1 (Build *b, TinyNode *s)
{
  return tiny_node_sink (b->graph, 1, &s, "test");
}

/* ---- running ---- */
static void
fill (GRand *rand, TinyDType dtype, gpointer buffer, gint64 n)
{
  for (gint64 i = 0; i < n; i++)
    if (dtype == TINY_DTYPE_F32)
      ((float *) buffer)[i] = (float) g_rand_double_range (rand, -1, 1);
    else if (dtype == TINY_DTYPE_F64)
      ((double *) buffer)[i] = g_rand_double_range (rand, -1, 1);
    else if (dtype == TINY_DTYPE_I32)
      ((gint32 *) buffer)[i] = g_rand_int_range (rand, -50, 50);
    else if (dtype == TINY_DTYPE_I64)
      ((gint64 *) buffer)[i] = g_rand_int_range (rand, -50, 50);
    else
      ((guint8 *) buffer)[i] = g_rand_int_range (rand, 0, dtype == TINY_DTYPE_BOOL ? 2 : 200);
}

static void
expect_equal (TinyDType dtype, gpointer got, gpointer wanted, gint64 n, const char *opts)
{
  for (gint64 i = 0; i < n; i++) {
    double x, y, slack = 0;
    if (dtype == TINY_DTYPE_F32) {
      x = ((float *) got)[i];
      y = ((float *) wanted)[i];
      slack = 2e-5 * (1 + fabs (y));
    } else if (dtype == TINY_DTYPE_F64) {
      x = ((double *) got)[i];
      y = ((double *) wanted)[i];
      slack = 1e-12 * (1 + fabs (y));
    } else {
      gsize size = tiny_dtype_get_n_bytes (dtype);
      x = memcmp ((char *) got + i * size, (char *) wanted + i * size, size);
      y = 0;
    }
    if (!(fabs (x - y) <= slack) && !(isnan (x) && isnan (y)) && x != y)
      g_error ("element %d: got %.9g, wanted %.9g, with \"%s\"", (int) i, x, y, opts);
  }
}

/* Compiles the kernel for @target and compares every parameter afterwards. Returns the opts. */
static char *
check_kernel (Build *b, TinyNode *sink, const TinyTarget *target, const char *opts_text)
{
  g_autoptr (GError) error = NULL;
  g_autofree TinyOpt *opts = NULL;
  guint n_opts = 0;
  if (opts_text != NULL) {
    opts = tiny_opts_from_string (opts_text, &n_opts, &error);
    g_assert_no_error (error);
  }
  g_autoptr (TinyLinearProgram) program
      = tiny_codegen_compile (b->graph, sink, target, opts, n_opts, &error);
  g_assert_no_error (error);
  GRand *rand = g_rand_new_with_seed (7);
  const TinyLinear *linear = &program->linear;
  gpointer got[MAX_PARAMS], wanted[MAX_PARAMS];
  for (guint i = 0; i < linear->n_params; i++) {
    const TinyParam *p = &linear->params[i];
    gsize n_bytes = p->n_elements * tiny_dtype_get_n_bytes (p->dtype);
    got[i] = g_malloc0 (n_bytes + 1);
    fill (rand, p->dtype, got[i], p->n_elements);
    wanted[i] = g_memdup2 (got[i], n_bytes + 1);
  }
  gint64 variables[] = { 3, 5 };
  interpret_linear (linear, got, variables);
  interpret_kernel (b->graph, sink, wanted, variables);
  for (guint i = 0; i < linear->n_params; i++) {
    expect_equal (linear->params[i].dtype, got[i], wanted[i], linear->params[i].n_elements,
                  program->opts);
    g_free (got[i]);
    g_free (wanted[i]);
  }
  g_rand_free (rand);
  return g_strdup (program->opts);
}

static void
check_everywhere (Build *b, TinyNode *sink)
{
  TinyTarget targets[] = { scalar_target (), vector_target (), narrow_target () };
  for (guint i = 0; i < G_N_ELEMENTS (targets); i++) {
    g_free (check_kernel (b, sink, &targets[i], ""));
    g_free (check_kernel (b, sink, &targets[i], NULL));
  }
}

#define BUILD()                                                                                \
  g_autoptr (TinyGraph) graph = tiny_graph_new ();                                             \
  Build build = { .graph = graph }, *b = &build

static void
test_elementwise (void)
{
  gint64 sizes[] = { 1, 2, 7, 16, 64, 100, 1009, 4096 };
  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++) {
    BUILD ();
    TinyNode *r = range (b, sizes[i]);
    TinyNode *x = load (b, param (b, TINY_DTYPE_F32, 1, sizes[i]), r, NULL);
    TinyNode *y = load (b, param (b, TINY_DTYPE_F32, 2, 1), num (b, 0), NULL);
    TinyNode *value = op2 (b, TINY_OP_ADD, op2 (b, TINY_OP_MUL, x, x), y);
    check_everywhere (
        b, sink1 (b, store (b, param (b, TINY_DTYPE_F32, 0, sizes[i]), r, value, NULL)));
  }
}

static void
test_transpose (void)
{
  BUILD ();
  TinyNode *i = range (b, 13), *j = range (b, 34);
  TinyNode *x = load (b, param (b, TINY_DTYPE_I32, 1, 13 * 34), INDEX (b, j, i), NULL);
  check_everywhere (
      b, sink1 (b, store (b, param (b, TINY_DTYPE_I32, 0, 13 * 34), INDEX (b, i, j), x, NULL)));
}

/* The index of an element through a reshape that splits and joins axes. */
static void
test_reshape (void)
{
  BUILD ();
  TinyNode *r = range (b, 12 * 32);
  TinyNode *row = op2 (b, TINY_OP_FLOORDIV, r, num (b, 32));
  TinyNode *column = op2 (b, TINY_OP_FLOORMOD, r, num (b, 32));
  TinyNode *index = op2 (b, TINY_OP_ADD, op2 (b, TINY_OP_MUL, column, num (b, 12)), row);
  TinyNode *same = op2 (b, TINY_OP_ADD, op2 (b, TINY_OP_MUL, row, num (b, 32)), column);
  TinyNode *p = param (b, TINY_DTYPE_F32, 1, 12 * 32);
  TinyNode *value = op2 (b, TINY_OP_ADD, load (b, p, index, NULL), load (b, p, same, NULL));
  check_everywhere (
      b, sink1 (b, store (b, param (b, TINY_DTYPE_F32, 0, 12 * 32), r, value, NULL)));
}

static void
test_sum (void)
{
  gint64 shapes[][2] = { { 1, 1 }, { 1, 37 }, { 5, 64 }, { 64, 5 }, { 17, 129 }, { 3, 1024 } };
  TinyOp ops[] = { TINY_OP_ADD, TINY_OP_MAX, TINY_OP_MUL };
  TinyDType dtypes[] = { TINY_DTYPE_F32, TINY_DTYPE_I32, TINY_DTYPE_F64 };
  for (guint s = 0; s < G_N_ELEMENTS (shapes) * 2; s++)
    for (guint o = 0; o < G_N_ELEMENTS (ops); o++)
      for (guint d = 0; d < G_N_ELEMENTS (dtypes); d++) {
        BUILD ();
        gint64 rows = shapes[s / 2][0], columns = shapes[s / 2][1];
        TinyNode *i = range (b, rows), *k = range (b, columns);
        TinyNode *index = s % 2 ? INDEX (b, k, i) : INDEX (b, i, k);
        TinyNode *x = load (b, param (b, dtypes[d], 1, rows * columns), index, NULL);
        TinyNode *sum = reduce (b, ops[o], x, 1, &k);
        check_everywhere (b, sink1 (b, store (b, param (b, dtypes[d], 0, rows), i, sum, NULL)));
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
    TinyNode *i = range (b, shapes[s][0]), *k = range (b, shapes[s][1]);
    TinyNode *x = load (b, param (b, TINY_DTYPE_F32, 1, n), INDEX (b, i, k), NULL);
    TinyNode *top = reduce (b, TINY_OP_MAX, x, 1, &k);
    TinyNode *e = tiny_node_unary (graph, TINY_OP_EXP2, op2 (b, TINY_OP_SUB, x, top));
    TinyNode *sum = reduce (b, TINY_OP_ADD, e, 1, &k);
    TinyNode *value = op2 (b, TINY_OP_MUL, e, tiny_node_unary (graph, TINY_OP_RECIP, sum));
    check_everywhere (
        b, sink1 (b, store (b, param (b, TINY_DTYPE_F32, 0, n), INDEX (b, i, k), value, NULL)));
  }
}

static void
test_matmul (void)
{
  gint64 shapes[][3]
      = { { 1, 1, 1 }, { 4, 4, 4 }, { 7, 5, 3 }, { 24, 32, 9 }, { 12, 64, 8 }, { 17, 20, 33 } };
  for (guint s = 0; s < G_N_ELEMENTS (shapes) * 4; s++) {
    BUILD ();
    gint64 M = shapes[s / 4][0], N = shapes[s / 4][1], K = shapes[s / 4][2];
    TinyNode *i = range (b, M), *j = range (b, N), *k = range (b, K);
    TinyNode *a_index = s & 1 ? INDEX (b, k, i) : INDEX (b, i, k);
    TinyNode *b_index = s & 2 ? INDEX (b, j, k) : INDEX (b, k, j);
    TinyNode *x = load (b, param (b, TINY_DTYPE_F32, 1, M * K), a_index, NULL);
    TinyNode *y = load (b, param (b, TINY_DTYPE_F32, 2, K * N), b_index, NULL);
    TinyNode *sum = reduce (b, TINY_OP_ADD, op2 (b, TINY_OP_MUL, x, y), 1, &k);
    check_everywhere (b, sink1 (b, store (b, param (b, TINY_DTYPE_F32, 0, M * N),
                                          INDEX (b, i, j), sum, NULL)));
  }
}

/* A padded convolution: gates, several reduced axes, sums of ranges in addresses. */
static void
test_convolution (void)
{
  gint64 shapes[][4] = { { 3, 2, 8, 8 }, { 2, 5, 7, 16 }, { 4, 3, 6, 20 } };
  for (guint s = 0; s < G_N_ELEMENTS (shapes); s++) {
    BUILD ();
    gint64 CI = shapes[s][0], CO = shapes[s][1], H = shapes[s][2], W = shapes[s][3];
    TinyNode *co = range (b, CO), *y = range (b, H), *x = range (b, W);
    TinyNode *k[3] = { range (b, CI), range (b, 3), range (b, 3) };
    TinyNode *row = op2 (b, TINY_OP_ADD, op2 (b, TINY_OP_ADD, y, k[1]), num (b, -1));
    TinyNode *column = op2 (b, TINY_OP_ADD, op2 (b, TINY_OP_ADD, x, k[2]), num (b, -1));
    TinyNode *gate = NULL, *bounds[] = { num (b, H), num (b, W) }, *at[] = { row, column };
    for (guint i = 0; i < 2; i++) {
      TinyNode *low = op2 (b, TINY_OP_CMPLT, num (b, -1), at[i]);
      TinyNode *both = op2 (b, TINY_OP_AND, low, op2 (b, TINY_OP_CMPLT, at[i], bounds[i]));
      gate = gate ? op2 (b, TINY_OP_AND, gate, both) : both;
    }
    TinyNode *index = op2 (b, TINY_OP_ADD, op2 (b, TINY_OP_MUL, k[0], num (b, H * W)),
                           op2 (b, TINY_OP_ADD, op2 (b, TINY_OP_MUL, row, num (b, W)), column));
    TinyNode *image = load (b, param (b, TINY_DTYPE_F32, 1, CI * H * W), index, gate);
    TinyNode *w = load (b, param (b, TINY_DTYPE_F32, 2, CO * CI * 9),
                        INDEX (b, co, k[0], k[1], k[2]), NULL);
    TinyNode *sum = reduce (b, TINY_OP_ADD, op2 (b, TINY_OP_MUL, image, w), 3, k);
    TinyNode *relu
        = op2 (b, TINY_OP_MAX, sum, tiny_node_const_float (graph, TINY_DTYPE_F32, 0));
    check_everywhere (b, sink1 (b, store (b, param (b, TINY_DTYPE_F32, 0, CO * H * W),
                                          INDEX (b, co, y, x), relu, NULL)));
  }
}

/* A gather, an index vector as data, division of numbers that may be negative. */
static void
test_gather (void)
{
  BUILD ();
  TinyNode *i = range (b, 50), *j = range (b, 33);
  TinyNode *row = load (b, param (b, TINY_DTYPE_I32, 1, 50), i, NULL);
  TinyNode *wrapped
      = op2 (b, TINY_OP_FLOORMOD, tiny_node_cast (graph, row, TINY_DTYPE_INDEX), num (b, 10));
  TinyNode *index = op2 (b, TINY_OP_ADD, op2 (b, TINY_OP_MUL, wrapped, num (b, 33)), j);
  TinyNode *x = load (b, param (b, TINY_DTYPE_F32, 2, 330), index, NULL);
  TinyNode *less = op2 (b, TINY_OP_ADD, op2 (b, TINY_OP_MUL, j, num (b, -3)), i);
  TinyNode *quotient = op2 (b, TINY_OP_FLOORDIV, less, num (b, 7));
  TinyNode *value = op2 (b, TINY_OP_ADD, x, tiny_node_cast (graph, quotient, TINY_DTYPE_F32));
  check_everywhere (b, sink1 (b, store (b, param (b, TINY_DTYPE_F32, 0, 1650), INDEX (b, i, j),
                                        value, NULL)));
}

/* Several stores, of the same loops, of fewer, and of others in another order. */
static void
test_stores (void)
{
  BUILD ();
  TinyNode *i = range (b, 9), *j = range (b, 32);
  TinyNode *p = param (b, TINY_DTYPE_F32, 0, 288);
  TinyNode *x = load (b, param (b, TINY_DTYPE_F32, 4, 288), INDEX (b, i, j), NULL);
  TinyNode *sum = reduce (b, TINY_OP_ADD, x, 1, &j);
  TinyNode *most = reduce (b, TINY_OP_MAX, x, 1, &j);
  TinyNode *columns = reduce (b, TINY_OP_ADD, x, 1, &i);
  TinyNode *gate = op2 (b, TINY_OP_CMPLT, num (b, 3), j);
  TinyNode *stores[] = {
    store (b, p, INDEX (b, i, j), op2 (b, TINY_OP_ADD, x, sum), gate),
    store (b, param (b, TINY_DTYPE_F32, 1, 9), i, most, NULL),
    store (b, param (b, TINY_DTYPE_F32, 2, 32), j, columns, NULL),
    store (b, param (b, TINY_DTYPE_F32, 3, 288), INDEX (b, j, i),
           op2 (b, TINY_OP_MUL, x, load (b, p, INDEX (b, i, j), NULL)), NULL),
  };
  check_everywhere (b, tiny_node_sink (graph, 2, stores, "two"));
  check_everywhere (b, tiny_node_sink (graph, 3, stores, "three"));
  /* The last reads what the first writes, before it does so. */
  check_everywhere (b, tiny_node_sink (graph, 1, stores + 3, "four"));
}

/* Loops that never run, parameters that are not used, variables. */
static void
test_degenerate (void)
{
  BUILD ();
  TinyNode *i = range (b, 6), *none = range (b, 0);
  TinyNode *x = load (b, param (b, TINY_DTYPE_F32, 3, 6), i, NULL);
  TinyNode *empty = reduce (b, TINY_OP_ADD, op2 (b, TINY_OP_MUL, x, x), 1, &none);
  TinyNode *variable
      = tiny_node_new (graph, TINY_OP_VARIABLE, TINY_DTYPE_INDEX, 1, 0, NULL, 1, NULL, NULL);
  TinyNode *value
      = op2 (b, TINY_OP_ADD, empty, tiny_node_cast (graph, variable, TINY_DTYPE_F32));
  TinyNode *stores[] = { store (b, param (b, TINY_DTYPE_F32, 0, 6), i, value, NULL),
                         store (b, param (b, TINY_DTYPE_F32, 1, 6), none, x, NULL) };
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
  const char *text = "pad(1,16) lanes(1,16) split(0,4) upcast(0,0) swap(0,1) grid(0,0)";
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

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  tiny_env_set_int (TINY_ENV_VERIFY, 1);
  g_test_add_func ("/codegen/elementwise", test_elementwise);
  g_test_add_func ("/codegen/transpose", test_transpose);
  g_test_add_func ("/codegen/reshape", test_reshape);
  g_test_add_func ("/codegen/sum", test_sum);
  g_test_add_func ("/codegen/softmax", test_softmax);
  g_test_add_func ("/codegen/matmul", test_matmul);
  g_test_add_func ("/codegen/convolution", test_convolution);
  g_test_add_func ("/codegen/gather", test_gather);
  g_test_add_func ("/codegen/stores", test_stores);
  g_test_add_func ("/codegen/degenerate", test_degenerate);
  g_test_add_func ("/codegen/opts-text", test_opts_text);
  return g_test_run ();
}
