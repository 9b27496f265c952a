/* SPDX-License-Identifier: MIT
 *
 * test-gradient.c: every differentiable operation's gradient, and that of its gradient, against
 * central differences in f64 (relative error at most 1e-5), and that every op with a rule occurs.
 *
 * The functions are evaluated by the oracle, so no device is needed. */
#include <math.h>

#include "../case-fails.h"
#include "../tensor/cases.h"
#include "../tensor/oracle.h"
#include "autograd/gradient-rules.h"
#include "autograd/tiny-gradient.h"
#include "base/tiny-stats.h"
#include "engine/tiny-runtime.h"
#include "ir/tiny-shape.h"
#include "tensor/tiny-layout.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

static gint64
n_elements (const gint64 *shape, guint *out_rank)
{
  gint64 n = 1;
  for (*out_rank = 0; *out_rank < 5 && shape[*out_rank] != 0; ++*out_rank)
    n *= shape[*out_rank];
  return n;
}

/* sum (f (x) * weights), with weights that make every element count differently. */
static TinyTensor *
weighted_loss (const Case *self, TinyTensor *const *x)
{
  TinyTensor *y = g_object_ref_sink (self->function (x));
  g_assert_no_error (tiny_tensor_get_error (y));
  gint64 n = tiny_tensor_get_n_elements (y);
  TinyTensor *weights = tiny_tensor_add_number (
      tiny_tensor_sin (tiny_tensor_arange (TINY_DTYPE_F64, 1, (double) n + 1, 1)), 1.5);
  TinyTensor *flat = tiny_tensor_reshape (y, (gint64[]){ -1 }, 1);
  TinyTensor *loss = tiny_tensor_sum (tiny_tensor_mul (flat, weights), NULL, 0, FALSE);
  g_object_unref (y);
  return loss;
}

typedef struct {
  Oracle oracle;
  double *values[3];
  gint64 n[3];
  TinyTensor *x[3];
} Setting;

static void
set_up (Setting *self, const Case *test)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (g_str_hash (test->name));
  self->oracle.n_params = test->n;
  for (guint i = 0; i < test->n; i++) {
    guint rank;
    self->n[i] = n_elements (test->shapes[i], &rank);
    self->values[i] = g_new (double, self->n[i]);
    for (gint64 j = 0; j < self->n[i]; j++)
      self->values[i][j] = g_rand_double_range (random, test->low, test->high);
    self->oracle.params[i] = self->values[i];
    self->x[i] = g_object_ref_sink (oracle_param (i, TINY_DTYPE_F64, test->shapes[i], rank));
  }
}

static void
tear_down (Setting *self, const Case *test)
{
  for (guint i = 0; i < test->n; i++) {
    g_free (self->values[i]);
    g_object_unref (self->x[i]);
  }
}

static double
value_of (const Setting *self, TinyTensor *scalar)
{
  g_autofree double *value = oracle_eval (&self->oracle, scalar, NULL);
  return *value;
}

/* Each element of each input, moved up and down a little. */
static void
check_gradients (Setting *self, const Case *test, TinyTensor *loss)
{
  TinyTensor *gradients[3];
  g_autoptr (GError) error = NULL;
  g_assert_true (tiny_gradient (loss, self->x, test->n, gradients, &error));
  g_assert_no_error (error);
  for (guint i = 0; i < test->n; i++) {
    gsize n;
    g_autofree double *analytic = oracle_eval (&self->oracle, gradients[i], &n);
    g_assert_cmpint (n, ==, self->n[i]);
    for (gsize j = 0; j < n; j++) {
      double at = self->values[i][j], step = 1e-5;
      self->values[i][j] = at + step;
      double above = value_of (self, loss);
      self->values[i][j] = at - step;
      double below = value_of (self, loss);
      self->values[i][j] = at;
      double numeric = (above - below) / (2 * step);
      double error_size = fabs (analytic[j] - numeric) / MAX (1, fabs (numeric));
      if (!(error_size <= 1e-5)) {
        CASE_FAILS ("%s: d/dx%u[%zu] is %.10g, by differences %.10g", test->name, i, j,
                    analytic[j], numeric);
        break;
      }
    }
    g_object_unref (gradients[i]);
  }
}

static void
test_first (gconstpointer data)
{
  const Case *test = data;
  Setting setting = { 0 };
  set_up (&setting, test);
  g_autoptr (TinyTensor) loss = g_object_ref_sink (weighted_loss (test, setting.x));
  check_gradients (&setting, test, loss);
  tear_down (&setting, test);
}

/* The gradient of the squared gradients: rules are made of ops that have rules. */
static void
test_second (gconstpointer data)
{
  const Case *test = data;
  Setting setting = { 0 };
  set_up (&setting, test);
  g_autoptr (TinyTensor) loss = g_object_ref_sink (weighted_loss (test, setting.x));
  TinyTensor *gradients[3], *sum = NULL;
  g_assert_true (tiny_gradient (loss, setting.x, test->n, gradients, NULL));
  for (guint i = 0; i < test->n; i++) {
    TinyTensor *part = tiny_tensor_sum (tiny_tensor_square (gradients[i]), NULL, 0, FALSE);
    sum = sum == NULL ? part : tiny_tensor_add (sum, part);
    g_object_unref (gradients[i]);
  }
  g_object_ref_sink (sum);
  check_gradients (&setting, test, sum);
  g_object_unref (sum);
  tear_down (&setting, test);
}

/* Every rule is exercised by some case: a new row in the table of rules wants a row above. COPY,
 * UNSHARD and ASSIGN need devices and are tested elsewhere. */
static void
test_coverage (void)
{
  gboolean seen[TINY_N_OPS] = { [TINY_OP_COPY] = TRUE, [TINY_OP_ASSIGN] = TRUE };
  seen[TINY_OP_CAST] = TRUE; /* test_cast */
  seen[TINY_OP_UNSHARD] = TRUE;
  seen[TINY_OP_AFTER] = TRUE; /* test-custom.c: no operation makes it, only gradients do */
  for (guint k = 0; k < n_cases; k++) {
    Setting setting = { 0 };
    set_up (&setting, &cases[k]);
    g_autoptr (TinyTensor) y = g_object_ref_sink (cases[k].function (setting.x));
    tiny_runtime_lock ();
    TinyNode *root = tiny_tensor_get_node (y);
    g_autoptr (GPtrArray) order = tiny_graph_toposort (tiny_runtime_get_graph (), &root, 1);
    for (guint i = 0; i < order->len; i++)
      seen[((TinyNode *) order->pdata[i])->op] = TRUE;
    tiny_runtime_unlock ();
    tear_down (&setting, &cases[k]);
  }
  for (guint op = 0; op < TINY_N_OPS; op++)
    if (tiny_gradient_rule ((TinyOp) op) != NULL && !seen[op])
      CASE_FAILS ("no case has a %s", tiny_op_to_string ((TinyOp) op));
}

/* A gradient comes back in the dtype of what it is for. */
static void
test_cast (void)
{
  double values[] = { 1, 2, 3 };
  Oracle oracle = { 1, { values } };
  g_autoptr (TinyTensor) x
      = g_object_ref_sink (oracle_param (0, TINY_DTYPE_F16, (gint64[]){ 3 }, 1));
  TinyTensor *wide = tiny_tensor_cast (x, TINY_DTYPE_F64);
  g_autoptr (TinyTensor) loss
      = g_object_ref_sink (tiny_tensor_sum (tiny_tensor_square (wide), NULL, 0, FALSE));
  TinyTensor *gradient;
  g_assert_true (tiny_gradient (loss, &x, 1, &gradient, NULL));
  g_assert_cmpint (tiny_tensor_get_dtype (gradient), ==, TINY_DTYPE_F16);
  g_autofree double *result = oracle_eval (&oracle, gradient, NULL);
  for (guint i = 0; i < 3; i++)
    g_assert_cmpfloat (result[i], ==, 2 * values[i]);
  g_object_unref (gradient);
}

/* Exact values where differences cannot tell: ties, zeros, edges. */
static void
check_exact (TinyTensor *y, TinyTensor *x, const Oracle *oracle, const double *expected)
{
  g_autoptr (TinyTensor) loss = g_object_ref_sink (tiny_tensor_sum (y, NULL, 0, FALSE));
  TinyTensor *gradient;
  gsize n;
  g_assert_true (tiny_gradient (loss, &x, 1, &gradient, NULL));
  g_autofree double *result = oracle_eval (oracle, gradient, &n);
  for (gsize i = 0; i < n; i++)
    g_assert_cmpfloat (result[i], ==, expected[i]);
  g_object_unref (gradient);
}

static void
test_edges (void)
{
  double values[] = { 0, 2, 2, -1 };
  Oracle oracle = { 1, { values } };
  g_autoptr (TinyTensor) x
      = g_object_ref_sink (oracle_param (0, TINY_DTYPE_F64, (gint64[]){ 4 }, 1));
  check_exact (tiny_tensor_relu (x), x, &oracle, (double[]){ 0, 1, 1, 0 });
  check_exact (tiny_tensor_abs (x), x, &oracle, (double[]){ 0, 1, 1, -1 });
  check_exact (tiny_tensor_max (x, NULL, 0, FALSE), x, &oracle, (double[]){ 0, 0.5, 0.5, 0 });
  check_exact (tiny_tensor_prod (x, NULL, 0, FALSE), x, &oracle, (double[]){ -4, 0, 0, 0 });
  check_exact (tiny_tensor_pow (x, tiny_tensor_scalar (2)), x, &oracle,
               (double[]){ 0, 4, 4, -2 });
  check_exact (tiny_tensor_pow (x, tiny_tensor_scalar (0)), x, &oracle,
               (double[]){ 0, 0, 0, 0 });
}

/* backward() reaches what requires gradients, adds up, and stops at detach. */
static void
test_backward (void)
{
  double values[2][2] = { { 3, 4 }, { 5, 6 } };
  Oracle oracle = { 2, { values[0], values[1] } };
  g_autoptr (TinyTensor) x
      = g_object_ref_sink (oracle_param (0, TINY_DTYPE_F64, (gint64[]){ 2 }, 1));
  g_autoptr (TinyTensor) y
      = g_object_ref_sink (oracle_param (1, TINY_DTYPE_F64, (gint64[]){ 2 }, 1));
  tiny_tensor_set_requires_grad (x, TRUE);
  for (guint i = 1; i <= 2; i++) {
    g_autoptr (TinyTensor) loss
        = g_object_ref_sink (tiny_tensor_sum (tiny_tensor_mul (x, y), NULL, 0, FALSE));
    g_assert_true (tiny_tensor_backward (loss, NULL));
    g_autofree double *gradient = oracle_eval (&oracle, tiny_tensor_get_grad (x), NULL);
    g_assert_cmpfloat (gradient[0], ==, 5 * i);
    g_assert_cmpfloat (gradient[1], ==, 6 * i);
    g_assert_null (tiny_tensor_get_grad (y));
  }
  tiny_tensor_clear_grad (x);
  g_autoptr (TinyTensor) cut = g_object_ref_sink (
      tiny_tensor_sum (tiny_tensor_mul (tiny_tensor_detach (x), y), NULL, 0, FALSE));
  g_autoptr (GError) error = NULL;
  gboolean reached = tiny_tensor_backward (cut, &error);
  g_autofree double *none
      = reached ? oracle_eval (&oracle, tiny_tensor_get_grad (x), NULL) : NULL;
  g_assert_true (none == NULL || none[0] == 0);
  g_autoptr (TinyTensor) apart
      = g_object_ref_sink (tiny_tensor_sum (tiny_tensor_square (y), NULL, 0, FALSE));
  g_clear_error (&error);
  g_assert_false (tiny_tensor_backward (apart, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
}

static void
test_errors (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) two
      = g_object_ref_sink (tiny_tensor_ones (TINY_DTYPE_F32, (gint64[]){ 2 }, 1));
  g_assert_false (tiny_tensor_backward (two, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "gradient: the loss is one float, not (2,) of f32: take its sum() or "
                   "mean(), or give a gradient");
  g_clear_error (&error);
  g_autoptr (TinyTensor) broken = g_object_ref_sink (
      tiny_tensor_sum (tiny_tensor_reshape (two, (gint64[]){ 3 }, 1), NULL, 0, FALSE));
  g_assert_false (tiny_tensor_backward (broken, &error));
  g_assert_cmpstr (error->message, ==, "reshape: (2,) of 2 elements does not fit (3,)");
}

static guint
count_slopes (TinyTensor *y)
{
  g_autoptr (TinyTensor) owned = g_object_ref_sink (y);
  TinyNode *root = tiny_tensor_get_node (y);
  g_autoptr (GPtrArray) order = tiny_graph_toposort (tiny_runtime_get_graph (), &root, 1);
  guint n = 0;
  for (guint i = 0; i < order->len; i++)
    n += ((const TinyNode *) order->pdata[i])->op == TINY_OP_SLOPED;
  return n;
}

/* A size that is only compared, or whose slope is told beside it, has no slope of its own: sigmoid () has those of its
 * value and of its slope, and tanh () its own besides. */
static void
test_slopes (void)
{
  g_autoptr (TinyTensor) x = g_object_ref_sink (tiny_tensor_arange (TINY_DTYPE_F32, 0, 8, 1));
  g_assert_cmpuint (count_slopes (tiny_tensor_exp (x)), ==, 0);
  g_assert_cmpuint (count_slopes (tiny_tensor_sigmoid (x)), ==, 2);
  g_assert_cmpuint (count_slopes (tiny_tensor_tanh (x)), ==, 3);
}

/* All that is below a loss is listed once, not for each question that is asked of it. */
static void
test_order (void)
{
  enum { N = 1000 };
  g_autoptr (GError) error = NULL;
  TinyStats before, work;
  g_autoptr (TinyTensor) x = g_object_ref_sink (tiny_tensor_arange (TINY_DTYPE_F32, 0, 8, 1));
  tiny_tensor_set_requires_grad (x, TRUE);
  TinyTensor *y = x;
  for (guint i = 0; i < N; i++)
    y = tiny_tensor_neg (tiny_tensor_sqrt (y));
  g_autoptr (TinyTensor) loss = g_object_ref_sink (tiny_tensor_sum (y, NULL, 0, FALSE));
  TinyNode *root = tiny_tensor_get_node (loss);
  g_autoptr (GPtrArray) order = tiny_graph_toposort (tiny_runtime_get_graph (), &root, 1);
  g_assert_cmpuint (order->len, >=, 2 * N);
  tiny_stats_get (&before);
  tiny_tensor_backward (loss, &error);
  tiny_stats_since (&before, &work);
  g_assert_no_error (error);
  g_assert_cmpuint (work.n_listed, <, order->len + N);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < n_cases; i++) {
    g_autofree char *first = g_strdup_printf ("/autograd/gradient/first/%s", cases[i].name);
    g_autofree char *second = g_strdup_printf ("/autograd/gradient/second/%s", cases[i].name);
    g_test_add_data_func (first, &cases[i], test_first);
    g_test_add_data_func (second, &cases[i], test_second);
  }
  g_test_add_func ("/autograd/gradient/coverage", test_coverage);
  g_test_add_func ("/autograd/gradient/cast", test_cast);
  g_test_add_func ("/autograd/gradient/edges", test_edges);
  g_test_add_func ("/autograd/gradient/backward", test_backward);
  g_test_add_func ("/autograd/gradient/errors", test_errors);
  g_test_add_func ("/autograd/gradient/order", test_order);
  g_test_add_func ("/autograd/gradient/slopes", test_slopes);
  return g_test_run ();
}
