/* SPDX-License-Identifier: MIT
 *
 * test-ops.c: what each operation means, against the C library and values worked out by hand, as
 * the oracle evaluates the graphs. No device is needed. */
#include <math.h>

#include "../case-fails.h"
#include "oracle.h"
#include "tensor/tiny-random.h"
#include "tensor/tiny-tensor-operations.h"

#define T(name) tiny_tensor_##name
#define AXES(...)                                                                              \
  (gint[]) { __VA_ARGS__ }
#define SIZES(...)                                                                             \
  (gint64[]) { __VA_ARGS__ }

static const Oracle no_params;

/* Consumes @tensor. */
static void
check (TinyTensor *tensor, const char *shape_text, guint n, const double *expected)
{
  g_autoptr (TinyTensor) owned = g_object_ref_sink (tensor);
  gsize n_found;
  g_assert_no_error (T (get_error) (owned));
  g_autofree double *found = oracle_eval (&no_params, owned, &n_found);
  guint rank;
  const gint64 *shape = T (get_shape) (owned, &rank);
  g_autoptr (GString) text = g_string_new (NULL);
  for (guint i = 0; i < rank; i++)
    g_string_append_printf (text, i ? " %d" : "%d", (int) shape[i]);
  g_assert_cmpstr (text->str, ==, shape_text);
  g_assert_cmpuint (n_found, ==, n);
  for (guint i = 0; i < n; i++)
    if (isnan (expected[i])
            ? !isnan (found[i])
            : !(found[i] == expected[i]
                || fabs (found[i] - expected[i]) <= 1e-12 * fabs (expected[i]))) {
      CASE_FAILS ("element %u is %.17g, not %.17g", i, found[i], expected[i]);
      return;
    }
}
#define CHECK(tensor, shape, ...)                                                              \
  check (tensor, shape, G_N_ELEMENTS (((double[]){ __VA_ARGS__ })), (double[]){ __VA_ARGS__ })

/* first, first + 1, … of f64 in a shape. */
static TinyTensor *
count (double first, const gint64 *shape, guint n)
{
  gint64 size = 1;
  for (guint i = 0; i < n; i++)
    size *= shape[i];
  return T (reshape) (T (arange) (TINY_DTYPE_F64, first, first + (double) size, 1), shape, n);
}
#define COUNT(first, ...)                                                                      \
  count (first, SIZES (__VA_ARGS__), G_N_ELEMENTS ((SIZES (__VA_ARGS__))))

/* ---- elementwise, against libm ---- */
static double
c_recip (double x)
{
  return 1 / x;
}
static double
c_rsqrt (double x)
{
  return 1 / sqrt (x);
}
static double
c_sigmoid (double x)
{
  return 1 / (1 + exp (-x));
}
static double
c_relu (double x)
{
  return x < 0 ? 0 : x;
}
static double
c_silu (double x)
{
  return x / (1 + exp (-x));
}
static double
c_gelu (double x)
{
  return 0.5 * x * (1 + tanh (sqrt (2 / G_PI) * (x + 0.044715 * x * x * x)));
}
static double
c_sign (double x)
{
  return isnan (x) ? x : (x > 0) - (x < 0);
}
static double
c_square (double x)
{
  return x * x;
}
static double
c_neg (double x)
{
  return -x;
}
static double
c_isnan (double x)
{
  return isnan (x);
}
static double
c_isinf (double x)
{
  return isinf (x) != 0;
}
static double
c_not (double x)
{
  return x == 0;
}

static TinyTensor *
f_gelu (TinyTensor *x)
{
  return T (gelu) (x, "tanh");
}

static const struct {
  const char *name;
  TinyTensor *(*function) (TinyTensor *);
  double (*reference) (double);
} unaries[] = {
  { "neg", T (neg), c_neg },
  { "recip", T (reciprocal), c_recip },
  { "sqrt", T (sqrt), sqrt },
  { "rsqrt", T (rsqrt), c_rsqrt },
  { "exp", T (exp), exp },
  { "exp2", T (exp2), exp2 },
  { "log", T (log), log },
  { "log2", T (log2), log2 },
  { "sin", T (sin), sin },
  { "cos", T (cos), cos },
  { "tan", T (tan), tan },
  { "tanh", T (tanh), tanh },
  { "sigmoid", T (sigmoid), c_sigmoid },
  { "relu", T (relu), c_relu },
  { "gelu", f_gelu, c_gelu },
  { "silu", T (silu), c_silu },
  { "abs", T (abs), fabs },
  { "sign", T (sign), c_sign },
  { "square", T (square), c_square },
  { "floor", T (floor), floor },
  { "ceil", T (ceil), ceil },
  { "round", T (round), rint },
  { "trunc", T (trunc), trunc },
  { "logical_not", T (logical_not), c_not },
  { "isnan", T (isnan), c_isnan },
  { "isinf", T (isinf), c_isinf },
};

static const double points[]
    = { -3.5, -2.5, -1.5, -0.5, -0.3, 0.3, 0.5, 1, 1.5, 2.5, 3.25, NAN, INFINITY, -2, 0 };

static void
test_unary (gconstpointer data)
{
  guint which = GPOINTER_TO_UINT (data);
  const gint64 n = G_N_ELEMENTS (points);
  Oracle oracle = { 1, { points } };
  g_autoptr (TinyTensor) y
      = g_object_ref_sink (unaries[which].function (oracle_param (0, TINY_DTYPE_F64, &n, 1)));
  g_autofree double *found = oracle_eval (&oracle, y, NULL);
  for (gint64 i = 0; i < n; i++) {
    double expected = unaries[which].reference (points[i]);
    /* Of infinity, the functions made of sin and exp2 promise nothing. */
    if (isinf (points[i]) && !isfinite (expected) && !isfinite (found[i]))
      continue;
    if (isnan (expected) ? !isnan (found[i])
                         : !(fabs (found[i] - expected) <= 1e-12 * MAX (1, fabs (expected))
                             || found[i] == expected))
      CASE_FAILS ("%s (%g) is %.17g, not %.17g", unaries[which].name, points[i], found[i],
                  expected);
  }
}

static void
test_binary (void)
{
  CHECK (T (add) (COUNT (0, 2, 1), COUNT (10, 3)), "2 3", 10, 11, 12, 11, 12, 13);
  CHECK (T (sub) (COUNT (0, 3), T (scalar) (1)), "3", -1, 0, 1);
  CHECK (T (div) (T (arange) (TINY_DTYPE_I32, 1, 3, 1), T (scalar) (4), NULL), "2", 0.25, 0.5);
  TinyTensor *sevens[] = { T (full) (TINY_DTYPE_I32, SIZES (1), 1, 7),
                           T (full) (TINY_DTYPE_I32, SIZES (1), 1, -7) };
  g_autoptr (TinyTensor) x = g_object_ref_sink (T (cat) (sevens, 2, 0));
  g_autoptr (TinyTensor) minus = g_object_ref_sink (T (scalar) (-2));
  CHECK (T (floor_divide) (x, T (scalar) (2)), "2", 3, -4);
  CHECK (T (floor_divide) (x, minus), "2", -4, 3);
  CHECK (T (mod) (x, T (scalar) (2)), "2", 1, 1);
  CHECK (T (mod) (x, minus), "2", -1, -1);
  CHECK (T (minimum) (x, T (scalar) (0)), "2", 0, -7);
  CHECK (T (rshift) (x, T (scalar) (1)), "2", 3, -4);
  CHECK (T (bitwise_not) (x), "2", -8, 6);
  CHECK (T (pow) (COUNT (-2, 5), T (scalar) (3)), "5", -8, -1, 0, 1, 8);
  CHECK (T (pow) (COUNT (-2, 5), COUNT (-2, 5)), "5", 0.25, -1, 1, 1, 4);
  CHECK (T (le) (COUNT (0, 3), T (scalar) (1)), "3", 1, 1, 0);
  CHECK (T (ge) (COUNT (0, 3), T (scalar) (1)), "3", 0, 1, 1);
  CHECK (T (le) (T (full) (TINY_DTYPE_F32, NULL, 0, NAN), T (scalar) (1)), "", 0);
  CHECK (T (logical_xor) (COUNT (0, 2), T (scalar) (1)), "2", 1, 0);
  CHECK (T (clamp) (COUNT (0, 4), T (scalar) (0.5), T (scalar) (2)), "4", 0.5, 1, 2, 2);
  CHECK (T (where) (T (lt) (COUNT (0, 3), T (scalar) (1)), T (scalar) (5), COUNT (0, 3)), "3",
         5, 1, 2);
  CHECK (T (bitcast) (T (ones) (TINY_DTYPE_F32, NULL, 0), TINY_DTYPE_I32), "", 0x3f800000);
}

/* The dtype of a + b, by the lattice. */
static void
test_promotion (void)
{
  static const TinyDType rows[][3] = {
    { TINY_DTYPE_BOOL, TINY_DTYPE_I8, TINY_DTYPE_I8 },
    { TINY_DTYPE_I8, TINY_DTYPE_U8, TINY_DTYPE_I16 },
    { TINY_DTYPE_U8, TINY_DTYPE_U16, TINY_DTYPE_U16 },
    { TINY_DTYPE_I32, TINY_DTYPE_U32, TINY_DTYPE_I64 },
    { TINY_DTYPE_I64, TINY_DTYPE_U64, TINY_DTYPE_F32 },
    { TINY_DTYPE_I64, TINY_DTYPE_F16, TINY_DTYPE_F16 },
    { TINY_DTYPE_F16, TINY_DTYPE_BF16, TINY_DTYPE_F32 },
    { TINY_DTYPE_F16, TINY_DTYPE_F16, TINY_DTYPE_F16 },
    { TINY_DTYPE_F32, TINY_DTYPE_F64, TINY_DTYPE_F64 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    for (guint swap = 0; swap < 2; swap++) {
      g_autoptr (TinyTensor) sum = g_object_ref_sink (
          T (add) (T (zeros) (rows[i][swap], NULL, 0), T (zeros) (rows[i][1 - swap], NULL, 0)));
      g_assert_cmpint (T (get_dtype) (sum), ==, rows[i][2]);
    }
  static const struct {
    TinyDType dtype;
    double value;
    TinyDType expected;
  } weak[] = {
    { TINY_DTYPE_F16, 0.5, TINY_DTYPE_F16 }, { TINY_DTYPE_U8, 1, TINY_DTYPE_U8 },
    { TINY_DTYPE_I32, 0.5, TINY_DTYPE_F32 }, { TINY_DTYPE_BOOL, 1, TINY_DTYPE_I32 },
    { TINY_DTYPE_F64, 0.1, TINY_DTYPE_F64 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (weak); i++) {
    g_autoptr (TinyTensor) sum = g_object_ref_sink (
        T (add) (T (scalar) (weak[i].value), T (zeros) (weak[i].dtype, NULL, 0)));
    g_assert_cmpint (T (get_dtype) (sum), ==, weak[i].expected);
  }
  CHECK (T (add) (T (scalar) (0.1), T (zeros) (TINY_DTYPE_F64, NULL, 0)), "", 0.1);
}

static void
check_dtype (TinyTensor *tensor, TinyDType wanted)
{
  g_autoptr (TinyTensor) owned = g_object_ref_sink (tensor);
  g_assert_no_error (T (get_error) (owned));
  g_assert_cmpint (T (get_dtype) (owned), ==, wanted);
}

/* What is calculated from plain numbers is one; a condition does not say what they become. */
static void
test_weak (void)
{
#define ZERO(dtype) T (zeros) (TINY_DTYPE_##dtype, NULL, 0)
  check_dtype (T (mul) (T (scalar) (2), T (scalar) (3)), TINY_DTYPE_I32);
  check_dtype (T (add) (T (scalar) (2), T (scalar_float) (3)), TINY_DTYPE_F32);
  check_dtype (T (add) (T (mul) (T (scalar) (2), T (scalar) (3)), ZERO (U8)), TINY_DTYPE_U8);
  check_dtype (T (add) (ZERO (F16), T (add) (T (scalar) (1), T (scalar) (0.5))),
               TINY_DTYPE_F16);
  check_dtype (T (add) (T (exp) (T (scalar) (1)), ZERO (BF16)), TINY_DTYPE_BF16);
  check_dtype (T (div) (T (scalar) (1), T (scalar) (2), NULL), TINY_DTYPE_F32);
  check_dtype (T (mul) (ZERO (I64), T (neg) (T (scalar) (2))), TINY_DTYPE_I64);
  check_dtype (T (mul) (ZERO (I64), T (cast) (T (scalar) (2), TINY_DTYPE_F16)), TINY_DTYPE_F16);
  CHECK (T (add) (T (full) (TINY_DTYPE_U8, NULL, 0, 1), T (neg) (T (scalar) (3))), "", 254);
  check_dtype (T (mul) (ZERO (I64), T (lshift) (T (scalar) (1), T (scalar) (4))),
               TINY_DTYPE_I64);
  check_dtype (T (logical_not) (T (scalar) (1)), TINY_DTYPE_BOOL);
  CHECK (T (add) (T (mul) (T (scalar) (0.5), T (scalar) (3)), ZERO (F64)), "", 1.5);
  check_dtype (T (where) (ZERO (F64), T (scalar) (1), T (scalar) (2.5)), TINY_DTYPE_F32);
  check_dtype (T (where) (ZERO (I64), T (scalar) (1), T (scalar) (2)), TINY_DTYPE_I32);
  check_dtype (T (where) (ZERO (F64), T (scalar) (1), ZERO (F16)), TINY_DTYPE_F16);
  CHECK (T (where) (COUNT (0, 2), T (scalar) (300), T (scalar) (-1)), "2", -1, 300);
  CHECK (T (where) (T (cast) (COUNT (0, 2), TINY_DTYPE_U8), T (scalar) (300), T (scalar) (2)),
         "2", 2, 300);
  check_dtype (T (masked_fill) (ZERO (U8), ZERO (F64), T (scalar) (3)), TINY_DTYPE_U8);
  check_dtype (T (masked_fill) (ZERO (F16), ZERO (I64), T (scalar) (0.5)), TINY_DTYPE_F16);
}

static void
test_movement (void)
{
  CHECK (T (permute) (COUNT (0, 1, 2, 3), AXES (2, 0, 1), 3), "3 1 2", 0, 3, 1, 4, 2, 5);
  CHECK (T (reshape) (COUNT (0, 2, 3), SIZES (3, -1), 2), "3 2", 0, 1, 2, 3, 4, 5);
  CHECK (T (pad) (COUNT (1, 2), SIZES (1, 2), 2, "constant", 9), "5", 9, 1, 2, 9, 9);
  CHECK (T (pad) (COUNT (1, 4), SIZES (-1, 1), 2, "constant", 0), "4", 2, 3, 4, 0);
  CHECK (T (flip) (COUNT (0, 2, 2), AXES (-1), 1), "2 2", 1, 0, 3, 2);
  CHECK (T (slice) (COUNT (0, 7), 0, 1, TINY_SLICE_END, 2), "3", 1, 3, 5);
  CHECK (T (slice) (COUNT (0, 7), 0, -1, TINY_SLICE_BEGIN, -3), "3", 6, 3, 0);
  CHECK (T (slice) (COUNT (0, 7), 0, -3, -1, 1), "2", 4, 5);
  CHECK (T (slice) (COUNT (0, 4), 0, TINY_SLICE_END, TINY_SLICE_BEGIN, -1), "4", 3, 2, 1, 0);
  CHECK (T (sum) (T (slice) (COUNT (0, 4), 0, 3, 1, 1), NULL, 0, FALSE), "", 0);
  CHECK (T (repeat) (COUNT (0, 2), SIZES (2, 2), 2), "2 4", 0, 1, 0, 1, 0, 1, 0, 1);
  TinyTensor *parts[] = { COUNT (0, 2, 1), COUNT (5, 2, 2) };
  CHECK (T (cat) (parts, 2, 1), "2 3", 0, 5, 6, 1, 7, 8);
  TinyTensor *rows[] = { COUNT (0, 2), COUNT (5, 2) };
  CHECK (T (stack) (rows, 2, -1), "2 2", 0, 5, 1, 6);
  CHECK (T (flatten) (COUNT (0, 1, 2, 2), 1, -1), "1 4", 0, 1, 2, 3);
  CHECK (T (squeeze) (T (unsqueeze) (COUNT (0, 2), -1), (gint[]){ 1 }, 1), "2", 0, 1);
  CHECK (T (expand) (COUNT (0, 2, 1), SIZES (-1, 2), 2), "2 2", 0, 0, 1, 1);
  CHECK (T (eye) (TINY_DTYPE_F32, 2, 3), "2 3", 1, 0, 0, 0, 1, 0);
  CHECK (T (linspace) (TINY_DTYPE_F64, 0, 1, 5), "5", 0, 0.25, 0.5, 0.75, 1);
  CHECK (T (one_hot) (T (arange) (TINY_DTYPE_U8, 1, 3, 1), 3), "2 3", 0, 1, 0, 0, 0, 1);
  CHECK (T (index_select) (COUNT (0, 3, 2), 0, T (arange) (TINY_DTYPE_I32, 2, 0, -1)), "2 2", 4,
         5, 2, 3);
  /* -1 is the last, 2 is outside */
  CHECK (T (index_select) (COUNT (1, 2, 2), 1, T (arange) (TINY_DTYPE_I32, -1, 3, 1)), "2 4", 2,
         1, 2, 0, 4, 3, 4, 0);
  TinyTensor *square = T (reshape) (T (arange) (TINY_DTYPE_I64, 0, 4, 1), SIZES (2, 2), 2);
  CHECK (T (index_select) (COUNT (5, 3), 0, square), "2 2", 5, 6, 7, 0);
  TinyTensor *labels = T (reshape) (T (arange) (TINY_DTYPE_U8, 1, 3, 1), SIZES (2, 1), 2);
  CHECK (T (gather) (COUNT (0, 2, 3), -1, labels), "2 1", 1, 5);
}

static void
test_reduce (void)
{
  CHECK (T (sum) (COUNT (0, 2, 3), AXES (0), 1, FALSE), "3", 3, 5, 7);
  CHECK (T (sum) (COUNT (0, 2, 3), AXES (0), 1, TRUE), "1 3", 3, 5, 7);
  CHECK (T (sum) (T (full) (TINY_DTYPE_U8, SIZES (300), 1, 200), NULL, 0, FALSE), "", 60000);
  CHECK (T (sum) (T (full) (TINY_DTYPE_BOOL, SIZES (5), 1, 1), NULL, 0, FALSE), "", 5);
  CHECK (T (mean) (T (full) (TINY_DTYPE_F16, SIZES (3000), 1, 100), NULL, 0, FALSE), "", 100);
  CHECK (T (max) (T (neg) (COUNT (1, 2, 2)), AXES (1), 1, FALSE), "2", -1, -3);
  CHECK (T (min) (T (arange) (TINY_DTYPE_U8, 3, 9, 1), NULL, 0, FALSE), "", 3);
  CHECK (T (prod) (COUNT (1, 5), NULL, 0, FALSE), "", 120);
  CHECK (T (var) (COUNT (1, 4), NULL, 0, 1, FALSE), "", 5.0 / 3);
  CHECK (T (std) (COUNT (1, 4), NULL, 0, 0, FALSE), "", sqrt (1.25));
  CHECK (T (argmax) (T (mod) (COUNT (0, 6), T (scalar) (3)), 0, FALSE), "", 2);
  CHECK (T (argmin) (T (mod) (COUNT (1, 6), T (scalar) (3)), 0, FALSE), "", 2);
  CHECK (T (any) (T (eye) (TINY_DTYPE_I32, 2, 3), AXES (0), 1, FALSE), "3", 1, 1, 0);
  CHECK (T (all) (T (eye) (TINY_DTYPE_I32, 1, 3), AXES (0), 1, FALSE), "3", 1, 0, 0);
  CHECK (T (all) (T (zeros) (TINY_DTYPE_F32, SIZES (0), 1), NULL, 0, FALSE), "", 1);
}

static void
test_matmul (void)
{
  CHECK (T (matmul) (COUNT (0, 2, 2), COUNT (0, 2, 2)), "2 2", 2, 3, 6, 11);
  CHECK (T (matmul) (COUNT (0, 3), COUNT (0, 3)), "", 5);
  CHECK (T (matmul) (COUNT (0, 2), COUNT (0, 2, 2)), "2", 2, 3);
  CHECK (T (matmul) (COUNT (0, 2, 1, 2), COUNT (0, 2, 1)), "2 1 1", 1, 3);
  CHECK (T (linear) (COUNT (0, 1, 2), COUNT (0, 2, 2), COUNT (10, 2)), "1 2", 11, 14);
}

/* A convolution by its definition. */
static void
test_conv (gconstpointer data)
{
  const gint64 *c = data; /* stride, padding, dilation, groups */
  enum { B = 2, C = 4, Y = 7, X = 6, O = 6, KY = 3, KX = 2 };
  gint64 stride = c[0], padding = c[1], dilation = c[2], groups = c[3];
  gint64 n_in = C / groups, n_out = O / groups;
  gint64 oy = (Y + 2 * padding - dilation * (KY - 1) - 1) / stride + 1;
  gint64 ox = (X + 2 * padding - dilation * (KX - 1) - 1) / stride + 1;
  double x[B * C * Y * X], w[O * C * KY * KX];
  for (guint i = 0; i < G_N_ELEMENTS (x); i++)
    x[i] = (double) (i * 7 % 13) - 6;
  for (guint i = 0; i < G_N_ELEMENTS (w); i++)
    w[i] = (double) (i * 5 % 11) - 5;
  Oracle oracle = { 2, { x, w } };
  TinyTensor *tx = oracle_param (0, TINY_DTYPE_F64, SIZES (B, C, Y, X), 4);
  TinyTensor *tw = oracle_param (1, TINY_DTYPE_F64, SIZES (O, n_in, KY, KX), 4);
  g_autoptr (TinyTensor) result = g_object_ref_sink (
      T (conv2d) (tx, tw, NULL, &stride, 1, &padding, 1, &dilation, 1, groups));
  g_autofree double *found = oracle_eval (&oracle, result, NULL);
  g_assert_cmpint (T (get_n_elements) (result), ==, B * O * oy * ox);
  gsize at = 0;
  for (gint64 b = 0; b < B; b++)
    for (gint64 o = 0; o < O; o++)
      for (gint64 i = 0; i < oy; i++)
        for (gint64 j = 0; j < ox; j++, at++) {
          double sum = 0;
          for (gint64 k = 0; k < n_in; k++)
            for (gint64 ky = 0; ky < KY; ky++)
              for (gint64 kx = 0; kx < KX; kx++) {
                gint64 yy = i * stride + ky * dilation - padding;
                gint64 xx = j * stride + kx * dilation - padding;
                gint64 channel = o / n_out * n_in + k;
                if (yy >= 0 && yy < Y && xx >= 0 && xx < X)
                  sum += x[((b * C + channel) * Y + yy) * X + xx]
                         * w[((o * n_in + k) * KY + ky) * KX + kx];
              }
          g_assert_cmpfloat (found[at], ==, sum);
        }
}

static void
test_nn (void)
{
  CHECK (T (max_pool2d) (COUNT (0, 1, 1, 2, 4), SIZES (2), 1, NULL, 0, NULL, 0, NULL, 0, FALSE),
         "1 1 1 2", 5, 7);
  CHECK (T (max_pool2d) (T (neg) (COUNT (1, 1, 1, 2, 2)), SIZES (3), 1, SIZES (2), 1, SIZES (1),
                         1, NULL, 0, FALSE),
         "1 1 1 1", -1);
  CHECK (T (avg_pool2d) (COUNT (0, 1, 1, 2, 4), SIZES (2), 1, NULL, 0, NULL, 0, FALSE, TRUE, 0),
         "1 1 1 2", 2.5, 4.5);
  double e1 = exp (-1.0), s = 1 + e1;
  CHECK (T (softmax) (COUNT (1000, 2), 0), "2", e1 / s, 1 / s);
  CHECK (T (log_softmax) (COUNT (1000, 2), 0), "2", -1 - log (s), -log (s));
  CHECK (T (cross_entropy) (COUNT (0, 2, 2), T (arange) (TINY_DTYPE_U8, 0, 2, 1), NULL, -100,
                            "mean", 0),
         "", 0.5 * (1 + log (s) + log (s)));
  CHECK (T (layer_norm) (COUNT (0, 1, 2), SIZES (2), 1, NULL, NULL, 0), "1 2", -1, 1);
  CHECK (T (batch_norm) (COUNT (0, 1, 2), COUNT (0, 2),
                         T (full) (TINY_DTYPE_F64, SIZES (2), 1, 4), COUNT (2, 2), COUNT (5, 2),
                         FALSE, 0),
         "1 2", 5, 6);
}

/* Random123's known answers for threefry2x32 with 20 rounds. */
static void
test_threefry (void)
{
  static const guint32 rows[][6] = {
    { 0, 0, 0, 0, 0x6b200159, 0x99ba4efe },
    { ~0u, ~0u, ~0u, ~0u, 0x1cb996fc, 0xbb002be7 },
    { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xc4923a9c, 0x483df7a0 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    guint32 out[2];
    tiny_threefry2x32 (rows[i] + 2, rows[i], out);
    g_assert_cmphex (out[0], ==, rows[i][4]);
    g_assert_cmphex (out[1], ==, rows[i][5]);
  }
}

/* The graph draws what the function on the host draws, and a seed gives the same again. */
static void
test_random (void)
{
  for (guint again = 0; again < 2; again++) {
    T (manual_seed) (G_GUINT64_CONSTANT (0x123456789abcdef0));
    g_autoptr (TinyTensor) x = g_object_ref_sink (T (rand) (TINY_DTYPE_F32, SIZES (100), 1));
    g_autoptr (TinyTensor) z = g_object_ref_sink (T (randn) (TINY_DTYPE_F64, SIZES (2000), 1));
    g_autoptr (TinyTensor) k
        = g_object_ref_sink (T (randint) (TINY_DTYPE_I32, SIZES (1000), 1, -3, 4));
    g_autofree double *found = oracle_eval (&no_params, x, NULL);
    for (guint32 i = 0; i < 100; i++) {
      guint32 out[2];
      tiny_threefry2x32 ((guint32[]){ 0x9abcdef0, 0x12345678 }, (guint32[]){ i, 0 }, out);
      g_assert_cmpfloat (found[i], ==, (out[0] >> 8) / 16777216.0);
    }
    g_autofree double *normal = oracle_eval (&no_params, z, NULL);
    double sum = 0, squares = 0;
    for (guint i = 0; i < 2000; i++) {
      sum += normal[i];
      squares += normal[i] * normal[i];
    }
    g_assert_cmpfloat (fabs (sum / 2000), <, 0.1);
    g_assert_cmpfloat (fabs (squares / 2000 - 1), <, 0.1);
    g_autofree double *whole = oracle_eval (&no_params, k, NULL);
    guint seen = 0;
    for (guint i = 0; i < 1000; i++) {
      g_assert_true (whole[i] >= -3 && whole[i] < 4 && whole[i] == floor (whole[i]));
      seen |= 1u << (guint) (whole[i] + 3);
    }
    g_assert_cmphex (seen, ==, 0x7f);
  }
}

/* ---- what cannot be ---- */
static void
check_error (TinyTensor *tensor, const char *message)
{
  g_autoptr (TinyTensor) first = g_object_ref_sink (tensor);
  g_autoptr (TinyTensor) later = g_object_ref_sink (T (neg) (T (sum) (first, NULL, 0, FALSE)));
  g_autoptr (GError) error = NULL;
  g_assert_nonnull (T (get_error) (first));
  g_assert_cmpstr (T (get_error) (first)->message, ==, message);
  g_assert_cmpstr (T (get_error) (later)->message, ==, message);
  g_assert_false (T (realize) (later, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  g_assert_null (T (get_shape) (first, NULL));
  g_assert_cmpint (T (get_n_elements) (first), ==, 0);
}

static void
test_errors (void)
{
  check_error (T (matmul) (COUNT (0, 3, 4), COUNT (0, 5, 6)),
               "matmul: inner sizes 4 and 5 differ for (3, 4) @ (5, 6)");
  check_error (T (add) (COUNT (0, 2), COUNT (0, 3)),
               "add: shapes (2,) and (3,) do not broadcast");
  check_error (T (sum) (COUNT (0, 2), AXES (1), 1, FALSE),
               "sum: axis 1 is outside of shape (2,)");
  check_error (T (sum) (COUNT (0, 2), AXES (0, -1), 2, FALSE), "sum: axis -1 is named twice");
  check_error (T (sum) (COUNT (0, 2), NULL, 2, FALSE), "sum: 2 axes wanted, none given");
  check_error (T (zeros) (TINY_DTYPE_F32, SIZES (-1), 1),
               "zeros: size -1 of axis 0 is negative");
  check_error (T (zeros) (TINY_DTYPE_F32, SIZES (1 << 30, 1 << 30), 2),
               "zeros: more than 2^48 elements are not possible");
  check_error (T (zeros) (TINY_DTYPE_F32, NULL, 2),
               "zeros: 2 axes wanted, no sizes given (at most 16)");
  check_error (T (zeros) (TINY_DTYPE_F32, (gint64[20]){ 0 }, 20),
               "zeros: 20 axes, at most 16 are possible");
  check_error (T (zeros) (99, NULL, 0), "zeros: 99 is no dtype of a tensor");
  check_error (T (add) (NULL, COUNT (0, 2)), "add: argument 1 is no tensor");
  check_error (T (cat) (NULL, 0, 0), "cat: no tensors are given");
  check_error (T (cat) (NULL, G_MAXUINT, 0), "cat: 4294967295 tensors wanted, none given");
  check_error (T (index_put) (COUNT (0, 2), NULL, G_MAXUINT, COUNT (0, 2), FALSE),
               "index_put: 4294967295 tensors wanted, none given");
  check_error (T (repeat) (COUNT (0, 2), NULL, 1),
               "repeat: repeats: 1 numbers wanted, none given");
  check_error (T (reshape) (COUNT (0, 6), SIZES (4, -1), 2),
               "reshape: (6,) of 6 elements does not fit (4, -1)");
  check_error (T (permute) (COUNT (0, 2, 3), AXES (0), 1),
               "permute: 1 axes named, the tensor has 2");
  check_error (T (expand) (COUNT (0, 2), SIZES (3), 1),
               "expand: (2,) does not broadcast to (3,)");
  check_error (T (max) (T (zeros) (TINY_DTYPE_F32, SIZES (0), 1), NULL, 0, FALSE),
               "max: there is no largest or smallest of no elements");
  check_error (T (bitwise_and) (COUNT (0, 2), COUNT (0, 2)),
               "bitwise_and: takes integers or bool, not f64");
  check_error (T (slice) (COUNT (0, 2), 0, 0, 1, 0), "slice: step is 0");
  check_error (T (conv2d) (COUNT (0, 1, 2, 4, 4), COUNT (0, 1, 3, 2, 2), NULL, NULL, 0, NULL, 0,
                           NULL, 0, 1),
               "conv2d: channels of (1, 2, 4, 4) and (1, 3, 2, 2) do not fit for 1 groups");
  check_error (T (conv2d) (COUNT (0, 1, 2, 4, 4), COUNT (0, 1, 2, 5, 5), NULL, NULL, 0, NULL, 0,
                           NULL, 0, 1),
               "conv2d: a window of 5 with dilation 1 and padding 0 does not fit (1, 2, 4, 4)");
  check_error (T (cross_entropy) (COUNT (0, 2, 2), COUNT (0, 2), NULL, -100, "mean", 0),
               "cross_entropy: labels are integers, not f64");
  check_error (T (rand) (TINY_DTYPE_I32, SIZES (2), 1), "rand: takes a float dtype, not i32");
  check_error (T (new_from_data) (NULL, TINY_DTYPE_F32, SIZES (2), 1, "abc", 3),
               "new_from_data: (2,) of f32 has 8 bytes, 3 are given");
}

/* Floating arguments are consumed, others are kept. */
/* Differences without end are empty at once, or an error. */
static void
test_diff (void)
{
  const gint64 many = G_GINT64_CONSTANT (1) << 32;
  check (T (diff) (T (arange) (TINY_DTYPE_F64, 0, 1e9, 1), 1000000000, 0), "0", 0, NULL);
  check_error (T (diff) (T (expand) (COUNT (0, 1), &many, 1), G_MAXINT32, 0),
               "diff: 2147483647 times are more than 1024");
  check_error (T (diff) (COUNT (0, 2), -1, 0), "diff: -1 times cannot be");
}

static void
test_ownership (void)
{
  TinyTensor *kept = g_object_ref_sink (COUNT (0, 3));
  TinyTensor *floating = COUNT (0, 3);
  gpointer watched_kept = kept, watched_floating = floating;
  g_object_add_weak_pointer (G_OBJECT (kept), &watched_kept);
  g_object_add_weak_pointer (G_OBJECT (floating), &watched_floating);
  TinyTensor *sum = g_object_ref_sink (T (mul) (T (add) (kept, floating), kept));
  g_assert_nonnull (watched_kept);
  g_assert_null (watched_floating);
  g_object_unref (sum);
  g_object_unref (kept);
  g_assert_null (watched_kept);
  TinyTensor *twice = COUNT (0, 3);
  sum = g_object_ref_sink (T (mul) (twice, twice));
  g_object_unref (sum);
  TinyTensor *still = COUNT (0, 2);
  T (set_requires_grad) (still, FALSE);
  g_assert_true (g_object_is_floating (still));
  g_object_unref (g_object_ref_sink (still));
}

int
main (int argc, char *argv[])
{
  static const gint64 convolutions[][4]
      = { { 1, 0, 1, 1 }, { 2, 1, 1, 1 }, { 1, 2, 2, 1 }, { 1, 1, 1, 2 }, { 3, 0, 2, 2 } };
  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (unaries); i++) {
    g_autofree char *path = g_strdup_printf ("/tensor/ops/unary/%s", unaries[i].name);
    g_test_add_data_func (path, GUINT_TO_POINTER (i), test_unary);
  }
  g_test_add_func ("/tensor/ops/binary", test_binary);
  g_test_add_func ("/tensor/ops/promotion", test_promotion);
  g_test_add_func ("/tensor/ops/weak", test_weak);
  g_test_add_func ("/tensor/ops/movement", test_movement);
  g_test_add_func ("/tensor/ops/reduce", test_reduce);
  g_test_add_func ("/tensor/ops/matmul", test_matmul);
  for (guint i = 0; i < G_N_ELEMENTS (convolutions); i++) {
    g_autofree char *path = g_strdup_printf ("/tensor/ops/conv2d/%u", i);
    g_test_add_data_func (path, convolutions[i], test_conv);
  }
  g_test_add_func ("/tensor/ops/nn", test_nn);
  g_test_add_func ("/tensor/random/threefry", test_threefry);
  g_test_add_func ("/tensor/random/graph", test_random);
  g_test_add_func ("/tensor/errors", test_errors);
  g_test_add_func ("/tensor/diff", test_diff);
  g_test_add_func ("/tensor/ownership", test_ownership);
  return g_test_run ();
}
