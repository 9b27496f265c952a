/* SPDX-License-Identifier: MIT
 *
 * Proves that long sums of floats err by little more than one rounding, whatever their length, axes and target: one
 * addition after the other would be many times off the limits here. What is not rounded stays as it is, and so does
 * the order of a kernel under TINY_NO_OPT. */
#include "kernels.h"

#include <math.h>

#include "base/tiny-env.h"

typedef struct {
  const char *name;
  gint64 rows, columns,
      extents[3];      /* of the result; of the axes that are summed over, outermost first */
  gboolean multiplies; /* by a matrix of as many columns */
} SumRow;

static const SumRow rows[] = {
  { "divisible", 1, 8, { 4096 }, FALSE },      { "prime", 1, 8, { 4099 }, FALSE },
  { "long", 1, 2, { 50000 }, FALSE },          { "two-axes", 1, 8, { 40, 80 }, FALSE },
  { "three-axes", 1, 8, { 64, 9, 7 }, FALSE }, { "small-inner", 1, 8, { 1021, 3 }, FALSE },
  { "rows", 8, 1, { 20000 }, FALSE },          { "product", 16, 32, { 2048 }, TRUE },
  { "product-prime", 16, 32, { 1021 }, TRUE }, { "window", 16, 32, { 9, 7, 32 }, TRUE },
};

static double
read_number (TinyDType dtype, gconstpointer data, gint64 i)
{
  return dtype == TINY_DTYPE_F64 ? ((const double *) data)[i] : ((const float *) data)[i];
}

/* Numbers in [0, 1), the last bits of which are lost in long sums. */
static gpointer
new_numbers (TinyDType dtype, gint64 n)
{
  GRand *rand = g_rand_new_with_seed ((guint32) n);
  gpointer data = g_malloc0 ((gsize) n * 8 + 8);
  for (gint64 i = 0; i < n; i++)
    if (dtype == TINY_DTYPE_F64)
      ((double *) data)[i] = g_rand_double (rand);
    else
      ((float *) data)[i] = (float) g_rand_double (rand);
  g_rand_free (rand);
  return data;
}

/* out[i, j] = sum over k of x[i, k, j], or of x[i, k] y[k, j] */
static TinyNode *
build_sum (Build *b, const SumRow *row, TinyDType dtype, gint64 *out_length)
{
  TinyNode *i = build_range (b, row->rows), *j = build_range (b, row->columns), *k[3];
  TinyNode *at = build_number (b, 0);
  gint64 length = 1, n = row->rows * row->columns;
  guint n_axes = 0;
  for (; n_axes < 3 && row->extents[n_axes] > 0; n_axes++) {
    k[n_axes] = build_range (b, row->extents[n_axes]);
    at = build_op (b, TINY_OP_ADD,
                   build_op (b, TINY_OP_MUL, at, build_number (b, row->extents[n_axes])),
                   k[n_axes]);
    length *= row->extents[n_axes];
  }
  TinyNode *line
      = build_op (b, TINY_OP_ADD, build_op (b, TINY_OP_MUL, i, build_number (b, length)), at);
  TinyNode *x, *y, *columns = build_number (b, row->columns);
  if (row->multiplies) {
    TinyNode *other = build_op (b, TINY_OP_ADD, build_op (b, TINY_OP_MUL, at, columns), j);
    x = build_load (b, build_param (b, dtype, 1, row->rows * length), line, NULL);
    y = build_load (b, build_param (b, dtype, 2, row->columns * length), other, NULL);
    x = build_op (b, TINY_OP_MUL, x, y);
  } else {
    TinyNode *place = build_op (b, TINY_OP_ADD, build_op (b, TINY_OP_MUL, line, columns), j);
    x = build_load (b, build_param (b, dtype, 1, n * length), place, NULL);
  }
  *out_length = length;
  return build_sink (b, build_store (b, build_param (b, dtype, 0, n), INDEX (b, i, j),
                                     build_reduce (b, TINY_OP_ADD, x, n_axes, k), NULL));
}

static void
run (const TinyLinear *linear, gpointer *buffers, const char *opts)
{
  if (linear->group[0] * linear->group[1] * linear->group[2] > 1)
    run_on_ref (linear, buffers, NULL, opts);
  else
    interpret_linear (linear, buffers, NULL);
}

/* The largest relative error of an element of the result, in units of the dtype's rounding. */
static double
find_error (const SumRow *row, TinyDType dtype, gint64 length, gpointer *buffers)
{
  double largest = 0;
  for (gint64 i = 0; i < row->rows; i++)
    for (gint64 j = 0; j < row->columns; j++) {
      long double exact = 0;
      for (gint64 k = 0; k < length; k++)
        exact += row->multiplies ? (long double) read_number (dtype, buffers[1], i * length + k)
                                       * read_number (dtype, buffers[2], k * row->columns + j)
                                 : (long double) read_number (
                                     dtype, buffers[1], (i * length + k) * row->columns + j);
      long double found = read_number (dtype, buffers[0], i * row->columns + j);
      largest = MAX (largest, (double) fabsl ((found - exact) / exact));
    }
  return largest / (dtype == TINY_DTYPE_F64 ? 0x1p-53 : 0x1p-24);
}

static double
measure (const SumRow *row, TinyDType dtype, const TinyTarget *target)
{
  BUILD ();
  g_autoptr (GError) error = NULL;
  gint64 length;
  TinyNode *sink = build_sum (b, row, dtype, &length);
  g_autoptr (TinyLinearProgram) program
      = tiny_codegen_compile (graph, sink, target, NULL, 0, &error);
  g_assert_no_error (error);
  gpointer buffers[3];
  for (guint i = 0; i < program->linear.n_params; i++)
    buffers[i] = new_numbers (dtype, (gint64) program->linear.params[i].n_elements);
  run (&program->linear, buffers, program->opts);
  double off = find_error (row, dtype, length, buffers);
  for (guint i = 0; i < program->linear.n_params; i++)
    g_free (buffers[i]);
  return off;
}

static void
test_errors (gconstpointer data)
{
  const SumRow *row = data;
  TinyTarget targets[]
      = { scalar_target (), vector_target (), narrow_target (), group_target () };
  const TinyDType dtypes[] = { TINY_DTYPE_F32, TINY_DTYPE_F64 };
  for (guint i = 0; i < G_N_ELEMENTS (targets); i++)
    for (guint d = 0; d < G_N_ELEMENTS (dtypes); d++) {
      double off = measure (row, dtypes[d], &targets[i]);
      g_test_message ("%s on target %u: off by %.1f", row->name, i, off);
      g_assert_cmpfloat (off, <, row->multiplies ? 10 : 4);
    }
}

static guint
count_loops (TinyNode *sink, TinyGraph *graph)
{
  g_autoptr (GError) error = NULL;
  TinyTarget target = scalar_target ();
  guint n = 0;
  g_autoptr (TinyLinearProgram) program
      = tiny_codegen_compile (graph, sink, &target, NULL, 0, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < program->linear.n_instrs; i++)
    n += program->linear.instrs[i].op == TINY_INSTR_RANGE;
  return n;
}

/* Integers do not round, and the largest of numbers is one of them. */
static void
test_exact (void)
{
  const struct {
    TinyDType dtype;
    TinyOp op;
    guint n_loops;
  } cases[] = { { TINY_DTYPE_I32, TINY_OP_ADD, 1 },
                { TINY_DTYPE_F32, TINY_OP_MAX, 1 },
                { TINY_DTYPE_F32, TINY_OP_ADD, 3 } };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    BUILD ();
    TinyNode *k = build_range (b, 4099);
    TinyNode *x = build_load (b, build_param (b, cases[i].dtype, 1, 4099), k, NULL);
    TinyNode *sink = build_sink (
        b, build_store (b, build_param (b, cases[i].dtype, 0, 1), build_number (b, 0),
                        build_reduce (b, cases[i].op, x, 1, &k), NULL));
    g_assert_cmpuint (count_loops (sink, graph), ==, cases[i].n_loops);
  }
}

/* Both reductions of one loop stay in one. */
static void
test_together (void)
{
  BUILD ();
  TinyNode *k = build_range (b, 4099);
  TinyNode *x = build_load (b, build_param (b, TINY_DTYPE_F32, 1, 4099), k, NULL);
  TinyNode *sum = build_reduce (b, TINY_OP_ADD, x, 1, &k);
  TinyNode *top = build_reduce (b, TINY_OP_MAX, x, 1, &k);
  TinyNode *sink = build_sink (b, build_store (b, build_param (b, TINY_DTYPE_F32, 0, 1),
                                               build_number (b, 0),
                                               build_op (b, TINY_OP_SUB, sum, top), NULL));
  g_assert_cmpuint (count_loops (sink, graph), ==, 3);
  check_everywhere (b, sink);
}

static void
test_no_opt (void)
{
  TinyTarget target = scalar_target ();
  if (!g_test_subprocess ()) {
    g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
    g_test_trap_assert_passed ();
    return;
  }
  g_setenv ("TINY_NO_OPT", "1", TRUE);
  g_assert_cmpint (tiny_env_get_int (TINY_ENV_NO_OPT), ==, 1);
  g_assert_cmpfloat (measure (&rows[0], TINY_DTYPE_F32, &target), >, 20);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autofree char *path = g_strdup_printf ("/codegen/blocks/errors/%s", rows[i].name);
    g_test_add_data_func (path, &rows[i], test_errors);
  }
  g_test_add_func ("/codegen/blocks/exact", test_exact);
  g_test_add_func ("/codegen/blocks/together", test_together);
  g_test_add_func ("/codegen/blocks/no-opt", test_no_opt);
  return g_test_run ();
}
