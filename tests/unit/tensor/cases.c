/* SPDX-License-Identifier: MIT
 *
 * cases.c: a row and a function for each operation. */
#include "cases.h"

#include <math.h>

#include "engine/tiny-runtime.h"
#include "ir/tiny-shape.h"
#include "tensor/tiny-layout.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

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

#define TENSORS(...)                                                                           \
  (TinyTensor *[]) { __VA_ARGS__ }

/* 0 @step 2 @step … modulo @size, @n of them */
static TinyTensor *
at (gint64 n, gint64 step, gint64 size)
{
  TinyTensor *counted = T (arange) (TINY_DTYPE_I32, 0, (double) (n * step), (double) step);
  return T (mod) (counted, T (scalar) ((double) size));
}

typedef enum { SORT, TOPK, KTHVALUE, MEDIAN } Sorted;

/* The values of what gives positions as well. */
static TinyTensor *
first (TinyTensor *x, Sorted what, gint64 k, gint axis)
{
  TinyTensor *values = NULL;
  if (what == SORT)
    T (sort) (x, axis, TRUE, FALSE, &values, NULL);
  else if (what == TOPK)
    T (topk) (x, k, axis, TRUE, TRUE, &values, NULL);
  else if (what == KTHVALUE)
    T (kthvalue) (x, k, axis, FALSE, &values, NULL);
  else
    T (median) (x, axis, FALSE, &values, NULL);
  g_object_force_floating (G_OBJECT (values));
  return values;
}

/* Result @i of several, consumed. */
static TinyTensor *
nth (GPtrArray *results, guint i)
{
  TinyTensor *result = g_object_ref (results->pdata[i]);
  g_ptr_array_unref (results);
  g_object_force_floating (G_OBJECT (result));
  return result;
}

/* x[-1::-2, None] = y, then x[[-1 + 0, -1 + 2 …]] = z, on a tensor that is computed. */
static TinyTensor *
set_index (TinyTensor *const *x)
{
  TinyTensor *self = T (mul_number) (x[0], 2), *row = T (sub) (at (2, 2, 4), T (scalar) (1));
  gint64 back[] = { -1, TINY_SLICE_BEGIN, -2 };
  gboolean good = T (set_index) (self, "sn", back, 3, NULL, 0, x[1], NULL)
                  && T (set_index) (self, "t", NULL, 0, &row, 1, x[2], NULL);
  g_assert_true (good);
  return self;
}

/* One of several results; the other goes. */
static TinyTensor *
one_of (TinyTensor *wanted, TinyTensor *other)
{
  g_object_unref (other);
  g_object_force_floating (G_OBJECT (wanted));
  return wanted;
}

#define PAIR(name, call, arguments, which)                                                     \
  static TinyTensor *f_##name (TinyTensor *const *x)                                           \
  {                                                                                            \
    TinyTensor *y[2];                                                                          \
    tiny_tensor_##call arguments;                                                              \
    return one_of (y[which], y[1 - (which)]);                                                  \
  }

/* Q of the factors of @x, and R, side by side. */
static TinyTensor *
tall_q (TinyTensor *x)
{
  TinyTensor *q, *r;
  T (qr) (x, "reduced", &q, &r);
  TinyTensor *both = T (cat) ((TinyTensor *[]){ q, r }, 2, 0);
  g_object_unref (q);
  g_object_unref (r);
  return both;
}

/* What has no sign of U, S and V side by side, of a matrix whose singular values differ. */
static TinyTensor *
svd_parts (TinyTensor *x)
{
  gint64 m = T (get_shape) (x, NULL)[0], n = T (get_shape) (x, NULL)[1];
  TinyDType dtype = T (get_dtype) (x);
  TinyTensor *u, *s, *vh, *steps = T (arange) (dtype, 4, 4 + 4 * (double) n, 4);
  T (svd) (T (add) (x, T (mul) (T (eye) (dtype, m, n), steps)), FALSE, &u, &s, &vh);
  TinyTensor *parts[]
      = { T (reshape) (T (square) (u), SIZES (-1), 1), T (reshape) (s, SIZES (-1), 1),
          T (reshape) (T (square) (vh), SIZES (-1), 1) };
  TinyTensor *all = T (cat) (parts, 3, 0);
  g_object_unref (u);
  g_object_unref (s);
  g_object_unref (vh);
  return all;
}

/* clang-format off */
FUNCTION (add, T (add) (x[0], x[1]))
FUNCTION (sub, T (sub) (x[0], x[1]))
FUNCTION (mul, T (mul) (x[0], x[1]))
FUNCTION (div, T (div) (x[0], x[1], NULL))
FUNCTION (pow, T (pow) (x[0], x[1]))
FUNCTION (pow_3, T (pow) (x[0], T (scalar) (3)))
FUNCTION (pow_minus_2, T (pow) (x[0], T (scalar) (-2)))
FUNCTION (pow_1_5, T (pow) (x[0], T (scalar) (1.5)))
FUNCTION (maximum, T (maximum) (x[0], x[1]))
FUNCTION (minimum, T (minimum) (x[0], x[1]))
FUNCTION (mod, T (mod) (x[0], T (scalar) (3)))
FUNCTION (where, T (where) (T (gt) (x[0], T (scalar) (0)), x[1], x[2]))
FUNCTION (neg, T (neg) (x[0]))
FUNCTION (reciprocal, T (reciprocal) (x[0]))
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
FUNCTION (gelu, T (gelu) (x[0], "none"))
FUNCTION (gelu_tanh, T (gelu) (x[0], "tanh"))
FUNCTION (silu, T (silu) (x[0]))
FUNCTION (abs, T (abs) (x[0]))
FUNCTION (square, T (square) (x[0]))
FUNCTION (clamp, T (clamp) (x[0], T (scalar) (-0.5), T (scalar) (0.7)))
FUNCTION (floor, T (mul) (x[0], T (floor) (x[0])))
FUNCTION (sign, T (mul) (x[0], T (sign) (x[0])))
FUNCTION (exp_large, T (exp) (x[0]))
FUNCTION (expm1, T (expm1) (x[0]))
FUNCTION (log10, T (log10) (x[0]))
FUNCTION (log1p, T (log1p) (x[0]))
FUNCTION (erf, T (erf) (x[0]))
FUNCTION (erfc, T (erfc) (x[0]))
FUNCTION (erfinv, T (erfinv) (x[0]))
FUNCTION (lgamma, T (lgamma) (x[0]))
FUNCTION (lgamma_below, T (lgamma) (x[0]))
FUNCTION (digamma, T (digamma) (x[0]))
FUNCTION (digamma_below, T (digamma) (x[0]))
FUNCTION (asin, T (asin) (x[0]))
FUNCTION (acos, T (acos) (x[0]))
FUNCTION (atan, T (atan) (x[0]))
FUNCTION (sinh, T (sinh) (x[0]))
FUNCTION (cosh, T (cosh) (x[0]))
FUNCTION (asinh, T (asinh) (x[0]))
FUNCTION (acosh, T (acosh) (x[0]))
FUNCTION (atanh, T (atanh) (x[0]))
FUNCTION (sinc, T (sinc) (x[0]))
FUNCTION (tan_far, T (tan) (x[0]))
FUNCTION (relu6, T (relu6) (x[0]))
FUNCTION (hardtanh, T (hardtanh) (x[0], -0.5, 0.7))
FUNCTION (hardsigmoid, T (hardsigmoid) (x[0]))
FUNCTION (hardswish, T (hardswish) (x[0]))
FUNCTION (selu, T (selu) (x[0]))
FUNCTION (logsigmoid, T (logsigmoid) (x[0]))
FUNCTION (mish, T (mish) (x[0]))
FUNCTION (softsign, T (softsign) (x[0]))
FUNCTION (quick_gelu, T (quick_gelu) (x[0]))
FUNCTION (frac, T (frac) (x[0]))
FUNCTION (leaky_relu, T (leaky_relu) (x[0], 0.1))
FUNCTION (elu, T (elu) (x[0], 1.5))
FUNCTION (celu, T (celu) (x[0], 1.5))
FUNCTION (softplus, T (softplus) (x[0], 2, 3))
FUNCTION (hardshrink, T (hardshrink) (x[0], 0.5))
FUNCTION (softshrink, T (softshrink) (x[0], 0.5))
FUNCTION (threshold, T (threshold) (x[0], 0.1, 3))
FUNCTION (logit, T (logit) (x[0], 0.1))
FUNCTION (glu, T (glu) (x[0], 1))
FUNCTION (prelu, T (prelu) (x[0], x[1]))
FUNCTION (fmod, T (fmod) (x[0], x[1]))
FUNCTION (mod_both, T (mod) (x[0], x[1]))
FUNCTION (atan2, T (atan2) (x[0], x[1]))
FUNCTION (hypot, T (hypot) (x[0], x[1]))
FUNCTION (copysign, T (copysign) (x[0], x[1]))
FUNCTION (logaddexp, T (logaddexp) (x[0], x[1]))
FUNCTION (logaddexp2, T (logaddexp2) (x[0], x[1]))
FUNCTION (xlogy, T (xlogy) (x[0], x[1]))
FUNCTION (fmax, T (fmax) (x[0], x[1]))
FUNCTION (fmin, T (fmin) (x[0], x[1]))
FUNCTION (lerp, T (lerp) (x[0], x[1], x[2]))
FUNCTION (addcmul, T (addcmul) (x[0], x[1], x[2], 0.5))
FUNCTION (addcdiv, T (addcdiv) (x[0], x[1], x[2], 0.5))
FUNCTION (clamp_both, T (clamp) (x[0], x[1], x[2]))
FUNCTION (clamp_min, T (clamp_min) (x[0], x[1]))
FUNCTION (clamp_max, T (clamp_max) (x[0], x[1]))
FUNCTION (add_number, T (add_number) (x[0], 0.5))
FUNCTION (mul_number, T (mul_number) (x[0], -1.5))
FUNCTION (deg2rad, T (deg2rad) (x[0]))
FUNCTION (rad2deg, T (rad2deg) (x[0]))
FUNCTION (nan_to_num, T (nan_to_num) (x[0], 7, 8, -9))
FUNCTION (masked_fill, T (masked_fill) (x[0], T (gt) (x[0], x[1]), T (scalar) (2)))
FUNCTION (dropout, (T (manual_seed) (5), T (dropout) (x[0], 0.4)))
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
FUNCTION (cumsum, T (cumsum) (x[0], 1))
FUNCTION (cumprod, T (cumprod) (x[0], 0))
FUNCTION (logcumsumexp, T (logcumsumexp) (x[0], 1))
FUNCTION (logsumexp, T (logsumexp) (x[0], AXES (1), 1, FALSE))
FUNCTION (nansum, T (nansum) (x[0], AXES (1), 1, FALSE))
FUNCTION (nanmean, T (nanmean) (x[0], AXES (1), 1, FALSE))
FUNCTION (diff, T (diff) (x[0], 2, 1))
FUNCTION (softmin, T (softmin) (x[0], 1))
PAIR (cummax, cummax, (x[0], 1, &y[0], &y[1]), 0)
PAIR (cummin, cummin, (x[0], 0, &y[0], &y[1]), 0)
PAIR (var_mean, var_mean, (x[0], AXES (1), 1, 1, FALSE, &y[0], &y[1]), 0)
PAIR (std_mean, std_mean, (x[0], AXES (1), 1, 1, FALSE, &y[0], &y[1]), 0)
PAIR (std_mean_second, std_mean, (x[0], AXES (1), 1, 1, FALSE, &y[0], &y[1]), 1)
PAIR (aminmax, aminmax, (x[0], AXES (1), 1, FALSE, &y[0], &y[1]), 1)
FUNCTION (reshape, T (reshape) (x[0], SIZES (4, -1), 2))
FUNCTION (flatten, T (flatten) (x[0], 1, -1))
FUNCTION (squeeze, T (squeeze) (x[0], NULL, 0))
FUNCTION (unsqueeze, T (unsqueeze) (x[0], 1))
FUNCTION (permute, T (permute) (x[0], AXES (2, 0, 1), 3))
FUNCTION (transpose, T (transpose) (x[0], 0, -1))
FUNCTION (expand, T (expand) (x[0], SIZES (2, 4, 3), 3))
FUNCTION (pad, T (pad) (x[0], SIZES (1, 2, 0, 1), 4, "constant", 0))
FUNCTION (pad_value, T (pad) (x[0], SIZES (1, -1, 0, 1), 4, "constant", 7))
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
FUNCTION (pad_reflect, T (pad) (x[0], SIZES (0, 0, 3, 2), 4, "reflect", 0))
FUNCTION (pad_replicate, T (pad) (x[0], SIZES (2, -1, 0, 3), 4, "replicate", 0))
FUNCTION (pad_circular, T (pad) (x[0], SIZES (2, 3, 0, 0), 4, "circular", 0))
FUNCTION (pad_to, T (pad_to) (x[0], SIZES (3, -1), 2, 2))
FUNCTION (shrink_to, T (shrink_to) (x[0], SIZES (-1, 1), 2))
FUNCTION (tile, T (tile) (x[0], SIZES (2), 1))
FUNCTION (repeat_interleave, T (repeat_interleave) (x[0], 2, 0))
FUNCTION (roll, T (roll) (x[0], SIZES (1, -1), 2, SIZES (0, 1), 2))
FUNCTION (rot90, T (rot90) (x[0], 3, AXES (0, -1), 2))
FUNCTION (flipud, T (flipud) (x[0]))
FUNCTION (fliplr, T (fliplr) (x[0]))
FUNCTION (movedim, T (movedim) (x[0], SIZES (0, 1), 2, SIZES (-1, 0), 2))
FUNCTION (unflatten, T (unflatten) (x[0], 1, SIZES (2, -1), 2))
FUNCTION (rearrange, T (rearrange) (x[0], "a (b c) ... -> ... (c a) b 1", "b", SIZES (2), 1))
FUNCTION (narrow, T (narrow) (x[0], 1, T (scalar) (-2), 1))
FUNCTION (select, T (select) (x[0], 0, -1))
FUNCTION (split, nth (T (split) (x[0], SIZES (2, 1), 2, 1), 0))
FUNCTION (chunk, nth (T (chunk) (x[0], 2, 0), 1))
FUNCTION (unbind, nth (T (unbind) (x[0], 1), 2))
FUNCTION (unfold, T (unfold) (x[0], 0, 3, 2))
FUNCTION (diagonal, T (diagonal) (x[0], -1, 2, 0))
FUNCTION (diag, T (diag) (x[0], -1))
FUNCTION (triu, T (triu) (x[0], -1))
FUNCTION (tril, T (tril) (x[0], 1))
FUNCTION (hstack, T (hstack) (x, 2))
FUNCTION (vstack, T (vstack) (x, 2))
FUNCTION (dstack, T (dstack) (x, 2))
FUNCTION (meshgrid, nth (T (meshgrid) (x, 2, "xy"), 0))
FUNCTION (index_select, T (index_select) (x[0], 0, T (arange) (TINY_DTYPE_I32, 3, -1, -2)))
FUNCTION (index_select_rows, T (index_select) (x[0], 0, T (mod) (T (arange) (TINY_DTYPE_I32, 0, 15, 3), T (scalar) (9))))
FUNCTION (gather_along, T (gather) (x[0], 1, T (reshape) (T (mod) (T (arange) (TINY_DTYPE_I32, 0, 18, 2), T (scalar) (5)), SIZES (3, 3), 2)))
FUNCTION (take_along_dim, T (take_along_dim) (x[0], T (reshape) (at (3, 2, 4), SIZES (3, 1), 2), 1))
FUNCTION (take, T (take) (x[0], T (sub) (at (4, 5, 6), T (scalar) (1))))
FUNCTION (scatter, T (scatter) (x[0], 0, T (reshape) (at (6, 2, 5), SIZES (3, 2), 2), x[1], NULL))
FUNCTION (scatter_multiply, T (scatter) (x[0], 1, T (reshape) (at (6, 1, 2), SIZES (2, 3), 2), x[1], "multiply"))
FUNCTION (scatter_add, T (scatter_add) (x[0], 1, T (reshape) (at (6, 2, 4), SIZES (2, 3), 2), x[1]))
FUNCTION (scatter_reduce_mean, T (scatter_reduce) (x[0], 0, T (reshape) (at (6, 2, 5), SIZES (3, 2), 2), x[1], "mean", TRUE))
FUNCTION (scatter_reduce_amax, T (scatter_reduce) (x[0], 1, T (reshape) (at (6, 1, 2), SIZES (2, 3), 2), x[1], "amax", FALSE))
FUNCTION (scatter_reduce_amin, T (scatter_reduce) (x[0], 1, T (reshape) (at (6, 1, 2), SIZES (2, 3), 2), x[1], "amin", TRUE))
FUNCTION (index_add, T (index_add) (x[0], 0, at (3, 1, 2), x[1], 0.5))
FUNCTION (index_copy, T (index_copy) (x[0], 1, at (2, 2, 3), x[1]))
FUNCTION (index_fill, T (index_fill) (x[0], 1, at (2, 2, 3), T (reshape) (x[1], NULL, 0)))
FUNCTION (index_view, T (index) (x[0], "ins.", SIZES (-1, 2, TINY_SLICE_BEGIN, -2), 4, NULL, 0))
FUNCTION (index_pick, T (index) (x[0], ":t", NULL, 0, TENSORS (T (reshape) (at (4, 2, 3), SIZES (2, 2), 2)), 1))
FUNCTION (index_picks, T (index) (x[0], "st.t", SIZES (1, 3, 1), 3, TENSORS (at (3, 2, 3), T (sub) (at (3, 1, 2), T (scalar) (1))), 2))
FUNCTION (index_put, T (index_put) (x[0], TENSORS (at (3, 2, 4), at (3, 1, 2)), 2, x[1], FALSE))
FUNCTION (index_put_equal, T (index_put) (x[0], TENSORS (at (5, 2, 4)), 1, x[1], FALSE))
FUNCTION (index_put_add, T (index_put) (x[0], TENSORS (at (5, 2, 4)), 1, x[1], TRUE))
FUNCTION (set_index, set_index (x))
FUNCTION (sort, first (x[0], SORT, 0, 1))
FUNCTION (sort_merged, first (x[0], SORT, 0, 0))
FUNCTION (msort, T (msort) (x[0]))
FUNCTION (topk, first (x[0], TOPK, 3, 0))
FUNCTION (kthvalue, first (x[0], KTHVALUE, 2, 1))
FUNCTION (median, first (x[0], MEDIAN, 0, 1))
FUNCTION (masked_select, T (masked_select) (x[0], T (eq) (at (4, 1, 2), T (scalar) (1))))
FUNCTION (masked_scatter, T (masked_scatter) (x[0], T (eq) (at (4, 1, 2), T (scalar) (1)), x[1]))
FUNCTION (matmul, T (matmul) (x[0], x[1]))
FUNCTION (dot, T (dot) (x[0], x[1]))
FUNCTION (mm, T (mm) (x[0], x[1]))
FUNCTION (mv, T (mv) (x[0], x[1]))
FUNCTION (bmm, T (bmm) (x[0], x[1]))
FUNCTION (outer, T (outer) (x[0], x[1]))
FUNCTION (inner, T (inner) (x[0], x[1]))
FUNCTION (einsum, T (einsum) ("bij,bjk->bki", x, 2))
FUNCTION (einsum_diagonal, T (einsum) ("ii,ij...->j...", x, 2))
FUNCTION (einsum_three, T (einsum) ("ia,ib,ab", x, 3))
FUNCTION (tensordot, T (tensordot) (x[0], x[1], 2, NULL, 0, NULL, 0))
FUNCTION (kron, T (kron) (x[0], x[1]))
FUNCTION (trace, T (trace) (T (mul) (x[0], x[0])))
FUNCTION (cross, T (cross) (x[0], x[1], 1))
FUNCTION (addmm, T (addmm) (x[0], x[1], x[2], 0.5, 2))
FUNCTION (baddbmm, T (baddbmm) (x[0], x[1], x[2], 0.5, 2))
#define REGULAR(x) T (add) (x, T (mul_number) (T (eye) (T (get_dtype) (x), 3, 3), 4))
FUNCTION (cholesky, T (cholesky) (T (matmul) (REGULAR (x[0]), T (transpose) (REGULAR (x[0]), -1, -2)), FALSE))
FUNCTION (solve, T (solve) (REGULAR (x[0]), x[1]))
FUNCTION (solve_triangular, T (solve_triangular) (REGULAR (x[0]), x[1], TRUE, TRUE, FALSE))
FUNCTION (inv, T (inv) (REGULAR (x[0])))
FUNCTION (det, T (det) (x[0]))
PAIR (slogdet, slogdet, (REGULAR (x[0]), &y[0], &y[1]), 1)
FUNCTION (qr_q, tall_q (x[0]))
FUNCTION (svd, svd_parts (x[0]))
FUNCTION (svd_wide, svd_parts (x[0]))
FUNCTION (lstsq, T (lstsq) (x[0], x[1]))
FUNCTION (matrix_power, T (matrix_power) (x[0], 3))
FUNCTION (newton_schulz, T (newton_schulz) (REGULAR (x[0]), 2, NULL, 0, 1e-7))
FUNCTION (fft, T (fft) (x[0], 0, -1, "backward"))
FUNCTION (ifft_prime, T (ifft) (x[0], 17, 0, "backward"))
FUNCTION (rfft_radix, T (rfft) (x[0], 24, 0, "ortho"))
FUNCTION (irfft, T (irfft) (x[0], 5, -1, "forward"))
FUNCTION (rfftn, T (rfftn) (x[0], NULL, 0, "backward"))
FUNCTION (fftn, T (fftn) (x[0], NULL, 0, "ortho"))
FUNCTION (ifftn, T (ifftn) (x[0], SIZES (1, 0), 2, "backward"))
FUNCTION (complex_mul, T (complex_mul) (x[0], x[1]))
FUNCTION (interpolate, T (interpolate) (x[0], SIZES (5, 3), 2, NULL, 0, "bilinear", FALSE))
FUNCTION (interpolate_nearest, T (interpolate) (x[0], NULL, 0, (double[]){ 1.5 }, 1, "nearest-exact", FALSE))
FUNCTION (linear, T (linear) (x[0], x[1], x[2]))
FUNCTION (conv2d, T (conv2d) (x[0], x[1], x[2], NULL, 0, NULL, 0, NULL, 0, 1))
FUNCTION (conv2d_stride, T (conv2d) (x[0], x[1], x[2], SIZES (2), 1, SIZES (1), 1, NULL, 0, 1))
FUNCTION (conv2d_dilation, T (conv2d) (x[0], x[1], NULL, NULL, 0, SIZES (2), 1, SIZES (2), 1, 1))
FUNCTION (conv2d_groups, T (conv2d) (x[0], x[1], x[2], SIZES (2), 1, SIZES (1), 1, NULL, 0, 2))
FUNCTION (conv2d_chain, T (conv2d) (T (relu) (T (conv2d) (x[0], x[1], NULL, NULL, 0, SIZES (1), 1, NULL, 0, 1)), x[2], NULL, NULL, 0, NULL, 0, NULL, 0, 1))
FUNCTION (max_pool2d, T (max_pool2d) (x[0], SIZES (2), 1, NULL, 0, NULL, 0, NULL, 0, FALSE))
FUNCTION (max_pool2d_overlap, T (max_pool2d) (x[0], SIZES (3), 1, SIZES (2), 1, SIZES (1), 1, NULL, 0, FALSE))
FUNCTION (avg_pool2d, T (avg_pool2d) (x[0], SIZES (2), 1, NULL, 0, NULL, 0, FALSE, TRUE, 0))
FUNCTION (avg_pool2d_overlap, T (avg_pool2d) (x[0], SIZES (3), 1, SIZES (1), 1, SIZES (1), 1, FALSE, TRUE, 0))
FUNCTION (avg_pool1d, T (avg_pool1d) (x[0], SIZES (3), 1, SIZES (2), 1, SIZES (1), 1, FALSE, FALSE, 0))
#define CONV_TRANSPOSE(stride, padding, more, groups, dilation) SIZES (stride), 1, SIZES (padding), 1, SIZES (more), 1, groups, SIZES (dilation), 1
FUNCTION (conv1d, T (conv1d) (x[0], x[1], x[2], SIZES (2), 1, SIZES (0, 1), 2, NULL, 0, 1))
FUNCTION (conv2d_each, T (conv2d) (x[0], x[1], NULL, SIZES (1, 2), 2, SIZES (2, 1, 0, 1), 4, SIZES (2, 1), 2, 1))
FUNCTION (conv3d, T (conv3d) (x[0], x[1], NULL, NULL, 0, SIZES (1, 0, 1), 3, NULL, 0, 2))
FUNCTION (conv_transpose1d, T (conv_transpose1d) (x[0], x[1], x[2], CONV_TRANSPOSE (2, 1, 1, 1, 1)))
FUNCTION (conv_transpose2d, T (conv_transpose2d) (x[0], x[1], x[2], CONV_TRANSPOSE (2, 1, 1, 2, 1)))
FUNCTION (conv_transpose2d_dilation, T (conv_transpose2d) (x[0], x[1], NULL, CONV_TRANSPOSE (1, 0, 0, 1, 2)))
FUNCTION (conv_transpose3d, T (conv_transpose3d) (x[0], x[1], NULL, CONV_TRANSPOSE (1, 0, 0, 1, 1)))
FUNCTION (max_pool1d, T (max_pool1d) (x[0], SIZES (3), 1, SIZES (2), 1, SIZES (1), 1, SIZES (2), 1, TRUE))
PAIR (max_pool1d_with_indices, max_pool1d_with_indices, (x[0], SIZES (3), 1, SIZES (2), 1, SIZES (1), 1, NULL, 0, FALSE, &y[0], &y[1]), 0)
PAIR (max_pool2d_with_indices, max_pool2d_with_indices, (x[0], SIZES (2), 1, NULL, 0, NULL, 0, NULL, 0, FALSE, &y[0], &y[1]), 0)
FUNCTION (max_pool3d, T (max_pool3d) (x[0], SIZES (2), 1, NULL, 0, NULL, 0, NULL, 0, FALSE))
PAIR (max_pool3d_with_indices, max_pool3d_with_indices, (x[0], SIZES (2), 1, NULL, 0, NULL, 0, NULL, 0, FALSE, &y[0], &y[1]), 0)
FUNCTION (avg_pool2d_ceil, T (avg_pool2d) (x[0], SIZES (3, 2), 2, SIZES (2), 1, SIZES (1, 0), 2, TRUE, FALSE, 0))
FUNCTION (avg_pool2d_ceil_pad, T (avg_pool2d) (x[0], SIZES (3), 1, SIZES (2), 1, SIZES (1), 1, TRUE, TRUE, 0))
FUNCTION (avg_pool3d, T (avg_pool3d) (x[0], SIZES (2), 1, SIZES (1), 1, NULL, 0, FALSE, TRUE, 3))
FUNCTION (max_unpool2d, T (max_unpool2d) (x[0], T (reshape) (T (arange) (TINY_DTYPE_I64, 1, 16, 4), SIZES (1, 1, 2, 2), 4), SIZES (2), 1, NULL, 0, NULL, 0, NULL, 0))
FUNCTION (adaptive_avg_pool2d, T (adaptive_avg_pool2d) (x[0], SIZES (2, 3), 2))
FUNCTION (adaptive_max_pool2d, T (adaptive_max_pool2d) (x[0], SIZES (2, 3), 2))
FUNCTION (adaptive_avg_pool1d, T (adaptive_avg_pool1d) (x[0], SIZES (3), 1))
FUNCTION (adaptive_max_pool1d, T (adaptive_max_pool1d) (x[0], SIZES (3), 1))
FUNCTION (adaptive_avg_pool3d, T (adaptive_avg_pool3d) (x[0], SIZES (1, 2, 2), 3))
FUNCTION (adaptive_max_pool3d, T (adaptive_max_pool3d) (x[0], SIZES (1, 2, 2), 3))
FUNCTION (batch_norm_train, T (batch_norm) (x[0], NULL, NULL, x[1], x[2], TRUE, 1e-3))
FUNCTION (instance_norm, T (instance_norm) (x[0], NULL, NULL, x[1], x[2], TRUE, 1e-3))
FUNCTION (group_norm, T (group_norm) (x[0], 2, x[1], x[2], 1e-3))
FUNCTION (rms_norm, T (rms_norm) (x[0], SIZES (3), 1, x[1], 0))
FUNCTION (local_response_norm, T (local_response_norm) (x[0], 3, 0.1, 0.75, 1))
FUNCTION (norm, T (norm) (x[0], 2, AXES (1), 1, FALSE))
FUNCTION (norm_3, T (norm) (x[0], 3, NULL, 0, TRUE))
FUNCTION (norm_inf, T (norm) (x[0], INFINITY, AXES (0), 1, FALSE))
FUNCTION (normalize, T (normalize) (x[0], 2, 1, 1e-12))
FUNCTION (scaled_dot_product_attention, T (scaled_dot_product_attention) (x[0], x[1], x[2], NULL, 0, FALSE, 0, FALSE))
FUNCTION (scaled_dot_product_attention_causal, T (scaled_dot_product_attention) (x[0], x[1], x[2], NULL, 0, TRUE, 0.3, TRUE))
FUNCTION (scaled_dot_product_attention_mask, T (scaled_dot_product_attention) (x[0], x[0], x[1], x[2], 0, FALSE, 0, FALSE))
FUNCTION (batch_norm, T (batch_norm) (x[0], T (mean) (x[0], AXES (0, 2), 2, FALSE), T (var) (x[0], AXES (0, 2), 2, 0, FALSE), x[1], x[2], FALSE, 1e-3))
FUNCTION (layer_norm, T (layer_norm) (x[0], SIZES (3, 2), 2, x[1], x[2], 1e-3))
FUNCTION (layernorm, T (layernorm) (x[0], AXES (0, -1), 2, 1e-3))
FUNCTION (batchnorm, T (batchnorm) (x[0], x[1], NULL, x[2], x[1], AXES (1), 1))
FUNCTION (softmax, T (softmax) (x[0], 1))
FUNCTION (log_softmax, T (log_softmax) (x[0], 0))
FUNCTION (cross_entropy, T (cross_entropy) (x[0], T (arange) (TINY_DTYPE_I32, 0, 3, 1), NULL, -100, "mean", 0))
FUNCTION (cross_entropy_weight, T (cross_entropy) (x[0], T (reshape) (T (arange) (TINY_DTYPE_I32, 0, 4, 1), SIZES (2, 2), 2), x[1], 2, "mean", 0.2))
FUNCTION (cross_entropy_shares, T (cross_entropy) (x[0], x[1], NULL, -100, "sum", 0.1))
FUNCTION (nll_loss, T (nll_loss) (x[0], T (arange) (TINY_DTYPE_I64, 0, 3, 1), x[1], 1, "mean"))
FUNCTION (sparse_categorical_crossentropy, T (sparse_categorical_crossentropy) (x[0], T (arange) (TINY_DTYPE_I32, -1, 2, 1), -1, 0.1, "mean"))
FUNCTION (binary_crossentropy, T (binary_crossentropy) (x[0], x[1], x[2], "mean"))
FUNCTION (binary_crossentropy_logits, T (binary_crossentropy_logits) (x[0], x[1], NULL, "none", x[2]))
FUNCTION (mse_loss, T (mse_loss) (x[0], x[1], "mean"))
FUNCTION (l1_loss, T (l1_loss) (x[0], x[1], "none"))
FUNCTION (smooth_l1_loss, T (smooth_l1_loss) (x[0], x[1], "sum", 0.5))
FUNCTION (huber_loss, T (huber_loss) (x[0], x[1], "mean", 0.4))
FUNCTION (kl_div, T (kl_div) (x[0], x[1], "batchmean", FALSE))
FUNCTION (kl_div_log, T (kl_div) (x[0], x[1], "mean", TRUE))
FUNCTION (poisson_nll_loss, T (poisson_nll_loss) (x[0], T (mul) (x[1], T (scalar) (3)), FALSE, TRUE, 1e-8, "mean"))
FUNCTION (gaussian_nll_loss, T (gaussian_nll_loss) (x[0], x[1], x[2], TRUE, 1e-6, "mean"))
FUNCTION (cosine_similarity, T (cosine_similarity) (x[0], x[1], -1, 1e-8))
FUNCTION (cosine_embedding_loss, T (cosine_embedding_loss) (x[0], x[1], T (linspace) (T (get_dtype) (x[0]), -1, 1, 2), -0.9, "mean"))
FUNCTION (hinge_embedding_loss, T (hinge_embedding_loss) (x[0], T (linspace) (T (get_dtype) (x[0]), -1, 1, 2), 0.5, "mean"))
FUNCTION (margin_ranking_loss, T (margin_ranking_loss) (x[0], x[1], T (linspace) (T (get_dtype) (x[0]), -1, 1, 2), 0.1, "sum"))
FUNCTION (soft_margin_loss, T (soft_margin_loss) (x[0], x[1], "mean"))
FUNCTION (triplet_margin_loss, T (triplet_margin_loss) (x[0], x[1], x[2], 1, 2, 1e-6, TRUE, "mean"))
FUNCTION (scalar_source, T (mul) (T (sum) (x[0], NULL, 0, FALSE), x[1]))

const Case cases[] = {
#define CASE(name, n, low, high, ...) { #name, f_##name, n, { __VA_ARGS__ }, low, high, FALSE }
#define FORMULA(name, n, low, high, ...) { #name, f_##name, n, { __VA_ARGS__ }, low, high, TRUE }
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
  CASE (reciprocal, 1, 0.5, 2, { 5 }),
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
  FORMULA (gelu_tanh, 1, -2, 2, { 5 }),
  CASE (silu, 1, -2, 2, { 5 }),
  CASE (abs, 1, -1, 1, { 8 }),
  CASE (square, 1, -1, 1, { 5 }),
  CASE (clamp, 1, -1, 1, { 8 }),
  CASE (floor, 1, -2, 2, { 8 }),
  CASE (sign, 1, -1, 1, { 8 }),
  FORMULA (exp_large, 1, 20, 30, { 8 }),
  FORMULA (expm1, 1, -1, 1, { 8 }),
  FORMULA (log10, 1, 0.5, 2, { 8 }),
  FORMULA (log1p, 1, -0.5, 1, { 8 }),
  FORMULA (erf, 1, -2, 2, { 8 }),
  FORMULA (erfc, 1, -1, 3, { 8 }),
  FORMULA (erfinv, 1, -0.9, 0.9, { 8 }),
  FORMULA (lgamma, 1, 0.3, 5, { 8 }),
  FORMULA (lgamma_below, 1, -1.8, -1.2, { 8 }),
  FORMULA (digamma, 1, 0.3, 5, { 8 }),
  FORMULA (digamma_below, 1, -1.8, -1.2, { 8 }),
  FORMULA (asin, 1, -0.9, 0.9, { 8 }),
  FORMULA (acos, 1, -0.9, 0.9, { 8 }),
  FORMULA (atan, 1, -3, 3, { 8 }),
  FORMULA (sinh, 1, -2, 2, { 8 }),
  FORMULA (cosh, 1, -2, 2, { 8 }),
  FORMULA (asinh, 1, -2, 2, { 8 }),
  FORMULA (acosh, 1, 1.2, 4, { 8 }),
  FORMULA (atanh, 1, -0.9, 0.9, { 8 }),
  FORMULA (sinc, 1, -2, 2, { 8 }),
  FORMULA (tan_far, 1, 1.7, 4, { 8 }),
  FORMULA (relu6, 1, -1, 8, { 8 }),
  FORMULA (hardtanh, 1, -1, 1, { 8 }),
  FORMULA (hardsigmoid, 1, -4, 4, { 8 }),
  FORMULA (hardswish, 1, -4, 4, { 8 }),
  FORMULA (selu, 1, -2, 2, { 8 }),
  FORMULA (logsigmoid, 1, -3, 3, { 8 }),
  FORMULA (mish, 1, -3, 3, { 8 }),
  FORMULA (softsign, 1, -2, 2, { 8 }),
  FORMULA (quick_gelu, 1, -2, 2, { 8 }),
  FORMULA (frac, 1, -2.9, 2.9, { 8 }),
  FORMULA (leaky_relu, 1, -1, 1, { 8 }),
  FORMULA (elu, 1, -2, 2, { 8 }),
  FORMULA (celu, 1, -2, 2, { 8 }),
  FORMULA (softplus, 1, -3, 3, { 8 }),
  FORMULA (hardshrink, 1, -1, 1, { 8 }),
  FORMULA (softshrink, 1, -1, 1, { 8 }),
  FORMULA (threshold, 1, -1, 1, { 8 }),
  FORMULA (logit, 1, 0.01, 0.99, { 8 }),
  FORMULA (glu, 1, -1, 1, { 3, 4 }),
  FORMULA (prelu, 2, -1, 1, { 2, 3, 2 }, { 3 }),
  FORMULA (fmod, 2, 1, 3, { 5 }, { 5 }),
  FORMULA (mod_both, 2, 1, 3, { 5 }, { 5 }),
  FORMULA (atan2, 2, -2, 2, { 2, 5 }, { 5 }),
  FORMULA (hypot, 2, -2, 2, { 2, 5 }, { 5 }),
  FORMULA (copysign, 2, -2, 2, { 2, 5 }, { 5 }),
  FORMULA (logaddexp, 2, -2, 2, { 2, 5 }, { 5 }),
  FORMULA (logaddexp2, 2, -2, 2, { 2, 5 }, { 5 }),
  FORMULA (xlogy, 2, 0.2, 2, { 2, 5 }, { 5 }),
  FORMULA (fmax, 2, -2, 2, { 2, 5 }, { 5 }),
  FORMULA (fmin, 2, -2, 2, { 2, 5 }, { 5 }),
  FORMULA (lerp, 3, -1, 1, { 2, 3 }, { 3 }, { 2, 1 }),
  FORMULA (addcmul, 3, -1, 1, { 2, 3 }, { 3 }, { 2, 1 }),
  FORMULA (addcdiv, 3, 0.5, 2, { 2, 3 }, { 3 }, { 2, 1 }),
  FORMULA (clamp_both, 3, -1, 1, { 2, 5 }, { 5 }, { 2, 1 }),
  FORMULA (clamp_min, 2, -1, 1, { 2, 5 }, { 5 }),
  FORMULA (clamp_max, 2, -1, 1, { 2, 5 }, { 5 }),
  FORMULA (add_number, 1, -1, 1, { 5 }),
  FORMULA (mul_number, 1, -1, 1, { 5 }),
  FORMULA (deg2rad, 1, -180, 180, { 5 }),
  FORMULA (rad2deg, 1, -3, 3, { 5 }),
  FORMULA (nan_to_num, 1, -1, 1, { 8 }),
  FORMULA (masked_fill, 2, -1, 1, { 2, 5 }, { 5 }),
  CASE (dropout, 1, -1, 1, { 9 }),
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
  CASE (cumsum, 1, -1, 1, { 2, 70 }),
  FORMULA (cumprod, 1, 0.9, 1.1, { 5, 2 }),
  FORMULA (logcumsumexp, 1, -2, 2, { 2, 66 }),
  FORMULA (logsumexp, 1, -2, 2, { 2, 5 }),
  FORMULA (nansum, 1, -2, 2, { 2, 5 }),
  FORMULA (nanmean, 1, -2, 2, { 2, 5 }),
  FORMULA (diff, 1, -2, 2, { 2, 5 }),
  FORMULA (softmin, 1, -1, 1, { 2, 4 }),
  CASE (cummax, 1, -1, 1, { 2, 70 }),
  FORMULA (cummin, 1, -1, 1, { 5, 2 }),
  FORMULA (var_mean, 1, -1, 1, { 2, 5 }),
  FORMULA (std_mean, 1, -1, 1, { 2, 5 }),
  FORMULA (std_mean_second, 1, -1, 1, { 2, 5 }),
  FORMULA (aminmax, 1, -1, 1, { 3, 5 }),
  CASE (reshape, 1, -1, 1, { 2, 6 }),
  CASE (flatten, 1, -1, 1, { 2, 3, 2 }),
  CASE (squeeze, 1, -1, 1, { 2, 1, 3 }),
  CASE (unsqueeze, 1, -1, 1, { 2, 3 }),
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
  CASE (pad_reflect, 1, -1, 1, { 2, 4 }),
  CASE (pad_replicate, 1, -1, 1, { 3, 2 }),
  CASE (pad_circular, 1, -1, 1, { 3, 2 }),
  CASE (pad_to, 1, -1, 1, { 2, 3 }),
  CASE (shrink_to, 1, -1, 1, { 2, 3 }),
  CASE (tile, 1, -1, 1, { 2, 3 }),
  CASE (repeat_interleave, 1, -1, 1, { 2, 3 }),
  CASE (roll, 1, -1, 1, { 2, 3 }),
  CASE (rot90, 1, -1, 1, { 2, 3 }),
  CASE (flipud, 1, -1, 1, { 2, 3 }),
  CASE (fliplr, 1, -1, 1, { 2, 3 }),
  CASE (movedim, 1, -1, 1, { 2, 3, 2 }),
  CASE (unflatten, 1, -1, 1, { 2, 4 }),
  CASE (rearrange, 1, -1, 1, { 2, 4, 3 }),
  CASE (narrow, 1, -1, 1, { 2, 3 }),
  CASE (select, 1, -1, 1, { 2, 3 }),
  CASE (split, 1, -1, 1, { 2, 3 }),
  CASE (chunk, 1, -1, 1, { 3, 2 }),
  CASE (unbind, 1, -1, 1, { 2, 3 }),
  CASE (unfold, 1, -1, 1, { 7, 2 }),
  CASE (diagonal, 1, -1, 1, { 3, 2, 4 }),
  CASE (diag, 1, -1, 1, { 3 }),
  CASE (triu, 1, -1, 1, { 3, 2 }),
  CASE (tril, 1, -1, 1, { 2, 4 }),
  CASE (hstack, 2, -1, 1, { 2, 3 }, { 2, 1 }),
  CASE (vstack, 2, -1, 1, { 3 }, { 2, 3 }),
  CASE (dstack, 2, -1, 1, { 3 }, { 1, 3, 2 }),
  CASE (meshgrid, 2, -1, 1, { 3 }, { 2 }),
  CASE (index_select, 1, -1, 1, { 4, 2 }),
  CASE (index_select_rows, 1, -1, 1, { 12, 4 }),
  CASE (gather_along, 1, -1, 1, { 3, 4 }),
  CASE (take_along_dim, 1, -1, 1, { 3, 4 }),
  CASE (take, 1, -1, 1, { 2, 3 }),
  CASE (scatter, 2, -1, 1, { 4, 3 }, { 3, 3 }),
  CASE (scatter_multiply, 2, -1, 1, { 2, 3 }, { 2, 3 }),
  CASE (scatter_add, 2, -1, 1, { 2, 3 }, { 2, 3 }),
  CASE (scatter_reduce_mean, 2, -1, 1, { 4, 2 }, { 3, 2 }),
  CASE (scatter_reduce_amax, 2, -1, 1, { 2, 3 }, { 2, 3 }),
  CASE (scatter_reduce_amin, 2, -1, 1, { 2, 3 }, { 2, 3 }),
  CASE (index_add, 2, -1, 1, { 4, 2 }, { 3, 2 }),
  CASE (index_copy, 2, -1, 1, { 2, 3 }, { 2, 2 }),
  CASE (index_fill, 2, -1, 1, { 2, 3 }, { 1 }),
  CASE (index_view, 1, -1, 1, { 2, 5, 3 }),
  CASE (index_pick, 1, -1, 1, { 2, 3, 2 }),
  CASE (index_picks, 1, -1, 1, { 3, 3, 2, 2 }),
  CASE (index_put, 2, -1, 1, { 4, 2, 2 }, { 3, 1 }),
  CASE (index_put_equal, 2, -1, 1, { 4, 3 }, { 5, 3 }),
  CASE (index_put_add, 2, -1, 1, { 4, 3 }, { 5, 3 }),
  CASE (set_index, 3, -1, 1, { 4, 3 }, { 2, 1, 3 }, { 3 }),
  CASE (sort, 1, -1, 1, { 2, 5 }),
  CASE (sort_merged, 1, -1, 1, { 35 }),
  CASE (msort, 1, -1, 1, { 5, 2 }),
  CASE (topk, 1, -1, 1, { 5, 2 }),
  CASE (kthvalue, 1, -1, 1, { 2, 5 }),
  CASE (median, 1, -1, 1, { 2, 4 }),
  CASE (masked_select, 1, -1, 1, { 2, 4 }),
  CASE (masked_scatter, 2, -1, 1, { 2, 4 }, { 5 }),
  CASE (matmul, 2, -1, 1, { 2, 3, 4 }, { 4, 2 }),
  CASE (dot, 2, -1, 1, { 4 }, { 4 }),
  CASE (mm, 2, -1, 1, { 2, 3 }, { 3, 2 }),
  CASE (mv, 2, -1, 1, { 2, 3 }, { 3 }),
  CASE (bmm, 2, -1, 1, { 2, 2, 3 }, { 2, 3, 2 }),
  CASE (outer, 2, -1, 1, { 2 }, { 3 }),
  CASE (inner, 2, -1, 1, { 2, 3 }, { 4, 3 }),
  CASE (einsum, 2, -1, 1, { 2, 3, 2 }, { 2, 2, 3 }),
  CASE (einsum_diagonal, 2, -1, 1, { 3, 3 }, { 3, 2, 2 }),
  CASE (einsum_three, 3, -1, 1, { 3, 2 }, { 3, 2 }, { 2, 2 }),
  CASE (tensordot, 2, -1, 1, { 2, 3, 2 }, { 3, 2, 2 }),
  CASE (kron, 2, -1, 1, { 2, 2 }, { 2, 3 }),
  CASE (trace, 1, -1, 1, { 3, 4 }),
  CASE (cross, 2, -1, 1, { 2, 3 }, { 2, 3 }),
  CASE (addmm, 3, -1, 1, { 3 }, { 2, 2 }, { 2, 3 }),
  CASE (baddbmm, 3, -1, 1, { 2, 2, 3 }, { 2, 2, 2 }, { 2, 2, 3 }),
  CASE (cholesky, 1, -1, 1, { 3, 3 }),
  CASE (solve, 2, -1, 1, { 3, 3 }, { 3, 2 }),
  CASE (solve_triangular, 2, -1, 1, { 3, 3 }, { 3, 2 }),
  CASE (inv, 1, -1, 1, { 3, 3 }),
  CASE (det, 1, -1, 1, { 2, 3, 3 }),
  CASE (slogdet, 1, -1, 1, { 2, 3, 3 }),
  CASE (qr_q, 1, -1, 1, { 3, 2 }),
  CASE (svd, 1, -1, 1, { 3, 2 }),
  CASE (svd_wide, 1, -1, 1, { 2, 3 }),
  CASE (lstsq, 2, -1, 1, { 3, 2 }, { 3, 2 }),
  CASE (matrix_power, 1, -1, 1, { 2, 2 }),
  CASE (newton_schulz, 1, -1, 1, { 3, 3 }),
  CASE (fft, 1, -1, 1, { 2, 6, 2 }),
  CASE (ifft_prime, 1, -1, 1, { 3, 2 }),
  CASE (rfft_radix, 1, -1, 1, { 5 }),
  CASE (irfft, 1, -1, 1, { 2, 3, 2 }),
  CASE (rfftn, 1, -1, 1, { 3, 4 }),
  CASE (fftn, 1, -1, 1, { 3, 2, 2 }),
  CASE (ifftn, 1, -1, 1, { 2, 3, 2 }),
  CASE (complex_mul, 2, -1, 1, { 3, 2 }, { 2, 1, 2 }),
  CASE (interpolate, 1, -1, 1, { 1, 2, 3, 4 }),
  CASE (interpolate_nearest, 1, -1, 1, { 1, 2, 4 }),
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
  CASE (avg_pool1d, 1, -1, 1, { 1, 2, 7 }),
  CASE (conv1d, 3, -1, 1, { 2, 2, 6 }, { 3, 2, 3 }, { 3 }),
  CASE (conv2d_each, 2, -1, 1, { 1, 2, 5, 5 }, { 2, 2, 2, 3 }),
  CASE (conv3d, 2, -1, 1, { 1, 2, 2, 3, 3 }, { 2, 1, 2, 2, 2 }),
  CASE (conv_transpose1d, 3, -1, 1, { 2, 2, 4 }, { 2, 3, 3 }, { 3 }),
  CASE (conv_transpose2d, 3, -1, 1, { 1, 4, 3, 2 }, { 4, 1, 3, 2 }, { 2 }),
  CASE (conv_transpose2d_dilation, 2, -1, 1, { 1, 2, 3, 3 }, { 2, 2, 2, 2 }),
  CASE (conv_transpose3d, 2, -1, 1, { 1, 1, 2, 2, 3 }, { 1, 2, 2, 1, 2 }),
  CASE (max_pool1d, 1, -1, 1, { 2, 2, 8 }),
  CASE (max_pool1d_with_indices, 1, -1, 1, { 2, 2, 7 }),
  CASE (max_pool2d_with_indices, 1, -1, 1, { 1, 2, 4, 4 }),
  CASE (max_pool3d, 1, -1, 1, { 1, 1, 2, 4, 5 }),
  CASE (max_pool3d_with_indices, 1, -1, 1, { 1, 1, 2, 2, 4 }),
  CASE (avg_pool2d_ceil, 1, -1, 1, { 1, 2, 4, 5 }),
  CASE (avg_pool2d_ceil_pad, 1, -1, 1, { 1, 2, 4, 4 }),
  CASE (avg_pool3d, 1, -1, 1, { 1, 1, 2, 3, 3 }),
  CASE (max_unpool2d, 1, -1, 1, { 1, 1, 2, 2 }),
  CASE (adaptive_avg_pool2d, 1, -1, 1, { 1, 2, 4, 5 }),
  CASE (adaptive_max_pool2d, 1, -1, 1, { 1, 2, 4, 5 }),
  CASE (adaptive_avg_pool1d, 1, -1, 1, { 2, 2, 5 }),
  CASE (adaptive_max_pool1d, 1, -1, 1, { 2, 2, 5 }),
  CASE (adaptive_avg_pool3d, 1, -1, 1, { 1, 1, 2, 3, 4 }),
  CASE (adaptive_max_pool3d, 1, -1, 1, { 1, 1, 2, 3, 4 }),
  CASE (batch_norm_train, 3, -1, 1, { 2, 3, 4 }, { 3 }, { 3 }),
  CASE (instance_norm, 3, -1, 1, { 2, 3, 4 }, { 3 }, { 3 }),
  CASE (group_norm, 3, -1, 1, { 2, 4, 3 }, { 4 }, { 4 }),
  CASE (rms_norm, 2, 0.3, 1, { 2, 3 }, { 3 }),
  CASE (local_response_norm, 1, -1, 1, { 1, 4, 3 }),
  CASE (norm, 1, -1, 1, { 3, 4 }),
  CASE (norm_3, 1, -1, 1, { 3, 2 }),
  CASE (norm_inf, 1, -1, 1, { 4, 3 }),
  CASE (normalize, 1, -1, 1, { 3, 4 }),
  CASE (scaled_dot_product_attention, 3, -1, 1, { 2, 3, 4 }, { 2, 5, 4 }, { 2, 5, 3 }),
  CASE (scaled_dot_product_attention_causal, 3, -1, 1, { 1, 4, 3, 2 }, { 1, 2, 3, 2 }, { 1, 2, 3, 2 }),
  CASE (scaled_dot_product_attention_mask, 3, -1, 1, { 2, 3, 4 }, { 2, 3, 2 }, { 3, 3 }),
  CASE (batch_norm, 3, -1, 1, { 2, 3, 4 }, { 3 }, { 3 }),
  CASE (layer_norm, 3, -1, 1, { 2, 3, 2 }, { 3, 2 }, { 3, 2 }),
  CASE (layernorm, 1, -1, 1, { 2, 2, 3 }),
  CASE (batchnorm, 3, -1, 1, { 2, 3, 2 }, { 3 }, { 3 }),
  CASE (softmax, 1, -1, 1, { 2, 4 }),
  CASE (log_softmax, 1, -1, 1, { 4, 2 }),
  CASE (cross_entropy, 1, -1, 1, { 3, 4 }),
  CASE (cross_entropy_weight, 2, 0.1, 1, { 2, 4, 2 }, { 4 }),
  CASE (cross_entropy_shares, 2, -1, 1, { 3, 4 }, { 3, 4 }),
  CASE (nll_loss, 2, 0.1, 1, { 3, 4 }, { 4 }),
  CASE (sparse_categorical_crossentropy, 1, -1, 1, { 3, 4 }),
  CASE (binary_crossentropy, 3, 0.1, 0.9, { 2, 3 }, { 2, 3 }, { 3 }),
  CASE (binary_crossentropy_logits, 3, -1, 1, { 2, 3 }, { 2, 3 }, { 3 }),
  CASE (mse_loss, 2, -1, 1, { 2, 3 }, { 2, 3 }),
  CASE (l1_loss, 2, -1, 1, { 2, 3 }, { 2, 3 }),
  CASE (smooth_l1_loss, 2, -1, 1, { 2, 4 }, { 2, 4 }),
  CASE (huber_loss, 2, -1, 1, { 2, 4 }, { 2, 4 }),
  CASE (kl_div, 2, 0.1, 1, { 2, 3 }, { 2, 3 }),
  CASE (kl_div_log, 2, -1, 1, { 2, 3 }, { 2, 3 }),
  CASE (poisson_nll_loss, 2, 0.5, 1, { 2, 3 }, { 2, 3 }),
  CASE (gaussian_nll_loss, 3, 0.5, 1, { 2, 3 }, { 2, 3 }, { 2 }),
  CASE (cosine_similarity, 2, -1, 1, { 3, 4 }, { 3, 4 }),
  CASE (cosine_embedding_loss, 2, -1, 1, { 2, 4 }, { 2, 4 }),
  CASE (hinge_embedding_loss, 1, -1, 1, { 3, 2 }),
  CASE (margin_ranking_loss, 2, -1, 1, { 3, 2 }, { 3, 2 }),
  CASE (soft_margin_loss, 2, -1, 1, { 2, 3 }, { 2, 3 }),
  CASE (triplet_margin_loss, 3, -1, 1, { 2, 3 }, { 2, 3 }, { 2, 3 }),
  CASE (scalar_source, 2, -1, 1, { 4 }, { 2, 3 }),
};
/* clang-format on */

const guint n_cases = G_N_ELEMENTS (cases);
