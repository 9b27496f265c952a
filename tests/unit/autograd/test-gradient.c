/* SPDX-License-Identifier: MIT
 *
 * test-gradient.c: every differentiable operation's gradient, and that of its gradient, against
 * central differences in f64 (relative error at most 1e-5), and that every op with a rule occurs.
 *
 * The functions are evaluated by the oracle, so no device is needed. A case is a row: a function of
 * up to three tensors, their shapes and the range their values are drawn from. */
#include <math.h>

#include "../tensor/oracle.h"
#include "autograd/gradient-rules.h"
#include "autograd/tiny-gradient.h"
#include "engine/tiny-runtime.h"
#include "ir/tiny-shape.h"
#include "tensor/tiny-layout.h"
#include "tensor/tiny-tensor-math.h"
#include "tensor/tiny-tensor-nn.h"
#include "tensor/tiny-tensor-private.h"
#include "tensor/tiny-tensor-shape.h"

typedef TinyTensor *(*Function) (TinyTensor *const *x);

typedef struct {
  const char *name;
  Function function;
  guint n;
  gint64 shapes[3][5]; /* ended by 0 */
  double low, high;
} Case;

#define FUNCTION(name, expression)                                                             \
  static TinyTensor *f_##name (TinyTensor *const *x) { return expression; }
#define T(name) tiny_tensor_##name
#define AXES(...)                                                                              \
  (gint[]) { __VA_ARGS__ }
#define SIZES(...)                                                                             \
  (gint64[]) { __VA_ARGS__ }

/* A node of the IR that no public operation makes. */
static TinyTensor *
raw (TinyTensor *const *x, TinyOp op, guint n)
{
  tiny_runtime_lock ();
  TinyNode *sources[3];
  for (guint i = 0; i < n; i++)
    sources[i] = tiny_tensor_get_node (x[i]);
  TinyTensor *result = tiny_tensor_new_for_node (
      tiny_layout_elementwise (tiny_runtime_get_graph (), op, TINY_DTYPE_F64, n, sources),
      NULL);
  tiny_runtime_unlock ();
  return result;
}

static TinyTensor *
shear (TinyTensor *x, const gint64 *v)
{
  tiny_runtime_lock ();
  TinyNode *node = tiny_node_shear (tiny_runtime_get_graph (), tiny_tensor_get_node (x),
                                    (guint) v[0], (guint) v[1], v[2], v[3], v[4], v[5], v[6]);
  TinyTensor *result = tiny_tensor_new_for_node (node, NULL);
  tiny_runtime_unlock ();
  return result;
}

/* clang-format off */
FUNCTION (add, T (add) (x[0], x[1]))
FUNCTION (sub, T (sub) (x[0], x[1]))
FUNCTION (mul, T (mul) (x[0], x[1]))
FUNCTION (div, T (div) (x[0], x[1]))
FUNCTION (pow, T (pow) (x[0], x[1]))
FUNCTION (pow_3, T (pow) (x[0], T (scalar) (3)))
FUNCTION (pow_minus_2, T (pow) (x[0], T (scalar) (-2)))
FUNCTION (pow_1_5, T (pow) (x[0], T (scalar) (1.5)))
FUNCTION (maximum, T (maximum) (x[0], x[1]))
FUNCTION (minimum, T (minimum) (x[0], x[1]))
FUNCTION (mod, T (mod) (x[0], T (scalar) (3)))
FUNCTION (where, T (where) (T (gt) (x[0], T (scalar) (0)), x[1], x[2]))
FUNCTION (neg, T (neg) (x[0]))
FUNCTION (recip, T (recip) (x[0]))
FUNCTION (sqrt, T (sqrt) (x[0]))
FUNCTION (rsqrt, T (rsqrt) (x[0]))
FUNCTION (exp, T (exp) (x[0]))
FUNCTION (exp2, T (exp2) (x[0]))
FUNCTION (log, T (log) (x[0]))
FUNCTION (log2, T (log2) (x[0]))
FUNCTION (sin, T (sin) (x[0]))
FUNCTION (cos, T (cos) (x[0]))
FUNCTION (tan, T (tan) (x[0]))
FUNCTION (tanh, T (tanh) (x[0]))
FUNCTION (sigmoid, T (sigmoid) (x[0]))
FUNCTION (relu, T (relu) (x[0]))
FUNCTION (gelu, T (gelu) (x[0]))
FUNCTION (silu, T (silu) (x[0]))
FUNCTION (abs, T (abs) (x[0]))
FUNCTION (square, T (square) (x[0]))
FUNCTION (clamp, T (clamp) (x[0], -0.5, 0.7))
FUNCTION (floor, T (mul) (x[0], T (floor) (x[0])))
FUNCTION (sign, T (mul) (x[0], T (sign) (x[0])))
FUNCTION (mulacc, raw (x, TINY_OP_MULACC, 3))
FUNCTION (cast, T (cast) (T (cast) (x[0], TINY_DTYPE_F64), TINY_DTYPE_F64))
FUNCTION (detach, T (add) (T (mul) (x[0], x[1]), T (sub) (T (detach) (x[0]), T (detach) (x[0]))))
FUNCTION (contiguous, T (contiguous) (T (permute) (x[0], AXES (1, 0), 2)))
FUNCTION (sum, T (sum) (x[0], AXES (1), 1, FALSE))
FUNCTION (sum_keep, T (sum) (x[0], AXES (0, 2), 2, TRUE))
FUNCTION (sum_all, T (sum) (x[0], NULL, 0, FALSE))
FUNCTION (mean, T (mean) (x[0], AXES (-1), 1, FALSE))
FUNCTION (max, T (max) (x[0], AXES (1), 1, FALSE))
FUNCTION (min, T (min) (x[0], AXES (0), 1, FALSE))
FUNCTION (prod, T (prod) (x[0], AXES (1), 1, FALSE))
FUNCTION (var, T (var) (x[0], AXES (1), 1, 1, FALSE))
FUNCTION (std, T (std) (x[0], AXES (0, 1), 2, 0, FALSE))
FUNCTION (reshape, T (reshape) (x[0], SIZES (4, -1), 2))
FUNCTION (permute, T (permute) (x[0], AXES (2, 0, 1), 3))
FUNCTION (transpose, T (transpose) (x[0], 0, -1))
FUNCTION (expand, T (expand) (x[0], SIZES (2, 4, 3), 3))
FUNCTION (pad, T (pad) (x[0], SIZES (1, 2, 0, 1), 4, 0))
FUNCTION (pad_value, T (pad) (x[0], SIZES (1, -1, 0, 1), 4, 7))
FUNCTION (shrink, T (shrink) (x[0], SIZES (1, 3, 0, 2), 4))
FUNCTION (flip, T (flip) (x[0], AXES (0, 1), 2))
FUNCTION (slice, T (slice) (x[0], 0, 1, 8, 3))
FUNCTION (slice_back, T (slice) (x[0], 0, -2, TINY_SLICE_BEGIN, -2))
FUNCTION (shear_window, shear (T (expand) (T (reshape) (x[0], SIZES (7, 1), 2), SIZES (7, 3), 2), SIZES (0, 1, 2, 1, 0, 1, 3)))
FUNCTION (shear_divisor, shear (x[0], SIZES (0, 1, 3, -1, 1, 2, 6)))
FUNCTION (shear_negative, shear (x[0], SIZES (0, 1, -2, 1, 5, 1, 4)))
FUNCTION (repeat, T (repeat) (x[0], SIZES (2, 3), 2))
FUNCTION (cat, T (cat) (x, 2, 1))
FUNCTION (stack, T (stack) (x, 2, 1))
FUNCTION (gather, T (gather) (x[0], 0, T (arange) (TINY_DTYPE_I32, 3, -1, -2)))
FUNCTION (matmul, T (matmul) (x[0], x[1]))
FUNCTION (linear, T (linear) (x[0], x[1], x[2]))
FUNCTION (conv2d, T (conv2d) (x[0], x[1], x[2], 1, 0, 1, 1))
FUNCTION (conv2d_stride, T (conv2d) (x[0], x[1], x[2], 2, 1, 1, 1))
FUNCTION (conv2d_dilation, T (conv2d) (x[0], x[1], NULL, 1, 2, 2, 1))
FUNCTION (conv2d_groups, T (conv2d) (x[0], x[1], x[2], 2, 1, 1, 2))
FUNCTION (conv2d_chain, T (conv2d) (T (relu) (T (conv2d) (x[0], x[1], NULL, 1, 1, 1, 1)), x[2], NULL, 1, 0, 1, 1))
FUNCTION (max_pool2d, T (max_pool2d) (x[0], 2, 0, 0))
FUNCTION (max_pool2d_overlap, T (max_pool2d) (x[0], 3, 2, 1))
FUNCTION (avg_pool2d, T (avg_pool2d) (x[0], 2, 0, 0))
FUNCTION (avg_pool2d_overlap, T (avg_pool2d) (x[0], 3, 1, 1))
FUNCTION (batch_norm, T (batch_norm) (x[0], x[1], x[2], T (mean) (x[0], AXES (0, 2), 2, FALSE), T (var) (x[0], AXES (0, 2), 2, 0, FALSE), 1e-3))
FUNCTION (layer_norm, T (layer_norm) (x[0], 2, x[1], x[2], 1e-3))
FUNCTION (softmax, T (softmax) (x[0], 1))
FUNCTION (log_softmax, T (log_softmax) (x[0], 0))
FUNCTION (cross_entropy, T (cross_entropy) (x[0], T (arange) (TINY_DTYPE_I32, 0, 3, 1)))
FUNCTION (scalar_source, T (mul) (T (sum) (x[0], NULL, 0, FALSE), x[1]))

static const Case cases[] = {
#define CASE(name, n, low, high, ...) { #name, f_##name, n, { __VA_ARGS__ }, low, high }
  CASE (add, 2, -1, 1, { 2, 3 }, { 3 }),
  CASE (sub, 2, -1, 1, { 2, 3 }, { 2, 1 }),
  CASE (mul, 2, -1, 1, { 2, 1, 3 }, { 4, 1 }),
  CASE (div, 2, 0.5, 2, { 2, 3 }, { 3 }),
  CASE (pow, 2, 0.5, 2, { 2, 3 }, { 3 }),
  CASE (pow_3, 1, -1, 1, { 5 }),
  CASE (pow_minus_2, 1, 0.5, 1, { 5 }),
  CASE (pow_1_5, 1, 0.5, 2, { 5 }),
  CASE (maximum, 2, -1, 1, { 2, 5 }, { 5 }),
  CASE (minimum, 2, -1, 1, { 2, 5 }, { 5 }),
  CASE (mod, 1, -2.9, -0.1, { 5 }),
  CASE (where, 3, -1, 1, { 2, 4 }, { 4 }, { 2, 1 }),
  CASE (neg, 1, -1, 1, { 5 }),
  CASE (recip, 1, 0.5, 2, { 5 }),
  CASE (sqrt, 1, 0.5, 2, { 5 }),
  CASE (rsqrt, 1, 0.5, 2, { 5 }),
  CASE (exp, 1, -1, 1, { 5 }),
  CASE (exp2, 1, -1, 1, { 5 }),
  CASE (log, 1, 0.5, 2, { 5 }),
  CASE (log2, 1, 0.5, 2, { 5 }),
  CASE (sin, 1, -3, 3, { 5 }),
  CASE (cos, 1, -3, 3, { 5 }),
  CASE (tan, 1, -1, 1, { 5 }),
  CASE (tanh, 1, -1, 1, { 5 }),
  CASE (sigmoid, 1, -2, 2, { 5 }),
  CASE (relu, 1, -1, 1, { 8 }),
  CASE (gelu, 1, -2, 2, { 5 }),
  CASE (silu, 1, -2, 2, { 5 }),
  CASE (abs, 1, -1, 1, { 8 }),
  CASE (square, 1, -1, 1, { 5 }),
  CASE (clamp, 1, -1, 1, { 8 }),
  CASE (floor, 1, -2, 2, { 8 }),
  CASE (sign, 1, -1, 1, { 8 }),
  CASE (mulacc, 3, -1, 1, { 2, 3 }, { 2, 3 }, { 2, 3 }),
  CASE (cast, 1, -1, 1, { 5 }),
  CASE (detach, 2, -1, 1, { 5 }, { 5 }),
  CASE (contiguous, 1, -1, 1, { 2, 3 }),
  CASE (sum, 1, -1, 1, { 2, 3, 2 }),
  CASE (sum_keep, 1, -1, 1, { 2, 3, 2 }),
  CASE (sum_all, 1, -1, 1, { 2, 3 }),
  CASE (mean, 1, -1, 1, { 2, 3 }),
  CASE (max, 1, -1, 1, { 3, 5 }),
  CASE (min, 1, -1, 1, { 5, 3 }),
  CASE (prod, 1, 0.5, 2, { 3, 4 }),
  CASE (var, 1, -1, 1, { 3, 4 }),
  CASE (std, 1, -1, 1, { 3, 4, 2 }),
  CASE (reshape, 1, -1, 1, { 2, 6 }),
  CASE (permute, 1, -1, 1, { 2, 3, 4 }),
  CASE (transpose, 1, -1, 1, { 2, 3, 4 }),
  CASE (expand, 1, -1, 1, { 4, 1 }),
  CASE (pad, 1, -1, 1, { 2, 3 }),
  CASE (pad_value, 1, -1, 1, { 3, 2 }),
  CASE (shrink, 1, -1, 1, { 4, 3 }),
  CASE (flip, 1, -1, 1, { 3, 4 }),
  CASE (slice, 1, -1, 1, { 9, 2 }),
  CASE (slice_back, 1, -1, 1, { 7 }),
  CASE (shear_window, 1, -1, 1, { 7 }),
  CASE (shear_divisor, 1, -1, 1, { 8, 3 }),
  CASE (shear_negative, 1, -1, 1, { 7, 2 }),
  CASE (repeat, 1, -1, 1, { 2, 2 }),
  CASE (cat, 2, -1, 1, { 2, 3 }, { 2, 2 }),
  CASE (stack, 2, -1, 1, { 2, 3 }, { 2, 3 }),
  CASE (gather, 1, -1, 1, { 4, 2 }),
  CASE (matmul, 2, -1, 1, { 2, 3, 4 }, { 4, 2 }),
  CASE (linear, 3, -1, 1, { 2, 3 }, { 4, 3 }, { 4 }),
  CASE (conv2d, 3, -1, 1, { 2, 2, 4, 5 }, { 3, 2, 3, 3 }, { 3 }),
  CASE (conv2d_stride, 3, -1, 1, { 1, 2, 6, 5 }, { 2, 2, 3, 2 }, { 2 }),
  CASE (conv2d_dilation, 2, -1, 1, { 1, 2, 4, 4 }, { 2, 2, 2, 3 }),
  CASE (conv2d_groups, 3, -1, 1, { 1, 4, 5, 5 }, { 6, 2, 3, 3 }, { 6 }),
  CASE (conv2d_chain, 3, -1, 1, { 1, 1, 4, 4 }, { 2, 1, 3, 3 }, { 2, 2, 2, 2 }),
  CASE (max_pool2d, 1, -1, 1, { 1, 2, 4, 5 }),
  CASE (max_pool2d_overlap, 1, -1, 1, { 1, 2, 5, 5 }),
  CASE (avg_pool2d, 1, -1, 1, { 1, 2, 4, 4 }),
  CASE (avg_pool2d_overlap, 1, -1, 1, { 1, 2, 4, 4 }),
  CASE (batch_norm, 3, -1, 1, { 2, 3, 4 }, { 3 }, { 3 }),
  CASE (layer_norm, 3, -1, 1, { 2, 3, 2 }, { 3, 2 }, { 2 }),
  CASE (softmax, 1, -1, 1, { 2, 4 }),
  CASE (log_softmax, 1, -1, 1, { 4, 2 }),
  CASE (cross_entropy, 1, -1, 1, { 3, 4 }),
  CASE (scalar_source, 2, -1, 1, { 4 }, { 2, 3 }),
};
/* clang-format on */

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
      if (!(error_size <= 1e-5))
        g_error ("%s: d/dx%u[%zu] is %.10g, by differences %.10g", test->name, i, j,
                 analytic[j], numeric);
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

/* Every rule is exercised by some case: a new row in the table of rules wants a row above. COPY
 * and ASSIGN need devices and are tested elsewhere. */
static void
test_coverage (void)
{
  gboolean seen[TINY_N_OPS] = { [TINY_OP_COPY] = TRUE, [TINY_OP_ASSIGN] = TRUE };
  seen[TINY_OP_CAST] = TRUE; /* test_cast */
  for (guint k = 0; k < G_N_ELEMENTS (cases); k++) {
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
      g_error ("no case has a %s", tiny_op_to_string ((TinyOp) op));
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
  g_assert_cmpstr (error->message, ==, "gradient: the loss is one float, not (2,) of f32");
  g_clear_error (&error);
  g_autoptr (TinyTensor) broken = g_object_ref_sink (
      tiny_tensor_sum (tiny_tensor_reshape (two, (gint64[]){ 3 }, 1), NULL, 0, FALSE));
  g_assert_false (tiny_tensor_backward (broken, &error));
  g_assert_cmpstr (error->message, ==, "reshape: (2,) of 2 elements does not fit (3,)");
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
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
  return g_test_run ();
}
