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
FUNCTION (recip, T (reciprocal) (x[0]))
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
FUNCTION (gather, T (index_select) (x[0], 0, T (arange) (TINY_DTYPE_I32, 3, -1, -2)))
FUNCTION (gather_rows, T (index_select) (x[0], 0, T (mod) (T (arange) (TINY_DTYPE_I32, 0, 15, 3), T (scalar) (9))))
FUNCTION (take_along_axis, T (gather) (x[0], 1, T (reshape) (T (mod) (T (arange) (TINY_DTYPE_I32, 0, 18, 2), T (scalar) (5)), SIZES (3, 3), 2)))
FUNCTION (matmul, T (matmul) (x[0], x[1]))
FUNCTION (einsum, T (einsum) ("bij,bjk->bki", x, 2))
FUNCTION (einsum_diagonal, T (einsum) ("ii,ij...->j...", x, 2))
FUNCTION (einsum_three, T (einsum) ("ia,ib,ab", x, 3))
FUNCTION (tensordot, T (tensordot) (x[0], x[1], 2, NULL, 0, NULL, 0))
FUNCTION (kron, T (kron) (x[0], x[1]))
FUNCTION (trace, T (trace) (T (mul) (x[0], x[0])))
FUNCTION (cross, T (cross) (x[0], x[1], 1))
FUNCTION (addmm, T (addmm) (x[0], x[1], x[2], 0.5, 2))
#define REGULAR(x) T (add) (x, T (mul_number) (T (eye) (TINY_DTYPE_F64, 3, 3), 4))
FUNCTION (cholesky, T (cholesky) (T (matmul) (REGULAR (x[0]), T (transpose) (REGULAR (x[0]), -1, -2)), FALSE))
FUNCTION (solve, T (solve) (REGULAR (x[0]), x[1]))
FUNCTION (solve_triangular, T (solve_triangular) (REGULAR (x[0]), x[1], TRUE, TRUE, FALSE))
FUNCTION (inv, T (inv) (REGULAR (x[0])))
FUNCTION (det, T (det) (x[0]))
FUNCTION (qr_q, tall_q (x[0]))
FUNCTION (lstsq, T (lstsq) (x[0], x[1]))
FUNCTION (matrix_power, T (matrix_power) (x[0], 3))
FUNCTION (newton_schulz, T (newton_schulz) (REGULAR (x[0]), 2, NULL, 0, 1e-7))
FUNCTION (fft, T (fft) (x[0], 0, -1, "backward"))
FUNCTION (fft_prime, T (ifft) (x[0], 17, 0, "backward"))
FUNCTION (fft_radix, T (rfft) (x[0], 24, 0, "ortho"))
FUNCTION (irfft, T (irfft) (x[0], 5, -1, "forward"))
FUNCTION (rfftn, T (rfftn) (x[0], NULL, 0, "backward"))
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
#define CONV_TRANSPOSE(stride, padding, more, groups, dilation) SIZES (stride), 1, SIZES (padding), 1, SIZES (more), 1, groups, SIZES (dilation), 1
FUNCTION (conv1d, T (conv1d) (x[0], x[1], x[2], SIZES (2), 1, SIZES (0, 1), 2, NULL, 0, 1))
FUNCTION (conv2d_each, T (conv2d) (x[0], x[1], NULL, SIZES (1, 2), 2, SIZES (2, 1, 0, 1), 4, SIZES (2, 1), 2, 1))
FUNCTION (conv3d, T (conv3d) (x[0], x[1], NULL, NULL, 0, SIZES (1, 0, 1), 3, NULL, 0, 2))
FUNCTION (conv_transpose1d, T (conv_transpose1d) (x[0], x[1], x[2], CONV_TRANSPOSE (2, 1, 1, 1, 1)))
FUNCTION (conv_transpose2d, T (conv_transpose2d) (x[0], x[1], x[2], CONV_TRANSPOSE (2, 1, 1, 2, 1)))
FUNCTION (conv_transpose2d_dilation, T (conv_transpose2d) (x[0], x[1], NULL, CONV_TRANSPOSE (1, 0, 0, 1, 2)))
FUNCTION (conv_transpose3d, T (conv_transpose3d) (x[0], x[1], NULL, CONV_TRANSPOSE (1, 0, 0, 1, 1)))
FUNCTION (max_pool1d, T (max_pool1d) (x[0], SIZES (3), 1, SIZES (2), 1, SIZES (1), 1, SIZES (2), 1, TRUE))
FUNCTION (max_pool3d, T (max_pool3d) (x[0], SIZES (2), 1, NULL, 0, NULL, 0, NULL, 0, FALSE))
FUNCTION (avg_pool2d_ceil, T (avg_pool2d) (x[0], SIZES (3, 2), 2, SIZES (2), 1, SIZES (1, 0), 2, TRUE, FALSE, 0))
FUNCTION (avg_pool2d_ceil_pad, T (avg_pool2d) (x[0], SIZES (3), 1, SIZES (2), 1, SIZES (1), 1, TRUE, TRUE, 0))
FUNCTION (avg_pool3d, T (avg_pool3d) (x[0], SIZES (2), 1, SIZES (1), 1, NULL, 0, FALSE, TRUE, 3))
FUNCTION (max_unpool2d, T (max_unpool2d) (x[0], T (reshape) (T (arange) (TINY_DTYPE_I64, 1, 16, 4), SIZES (1, 1, 2, 2), 4), SIZES (2), 1, NULL, 0, NULL, 0, NULL, 0))
FUNCTION (adaptive_avg_pool2d, T (adaptive_avg_pool2d) (x[0], SIZES (2, 3), 2))
FUNCTION (adaptive_max_pool2d, T (adaptive_max_pool2d) (x[0], SIZES (2, 3), 2))
FUNCTION (batch_norm_train, T (batch_norm) (x[0], NULL, NULL, x[1], x[2], TRUE, 1e-3))
FUNCTION (instance_norm, T (instance_norm) (x[0], NULL, NULL, x[1], x[2], TRUE, 1e-3))
FUNCTION (group_norm, T (group_norm) (x[0], 2, x[1], x[2], 1e-3))
FUNCTION (rms_norm, T (rms_norm) (x[0], SIZES (3), 1, x[1], 0))
FUNCTION (local_response_norm, T (local_response_norm) (x[0], 3, 0.1, 0.75, 1))
FUNCTION (norm, T (norm) (x[0], 2, AXES (1), 1, FALSE))
FUNCTION (norm_3, T (norm) (x[0], 3, NULL, 0, TRUE))
FUNCTION (norm_inf, T (norm) (x[0], INFINITY, AXES (0), 1, FALSE))
FUNCTION (normalize, T (normalize) (x[0], 2, 1, 1e-12))
FUNCTION (attention, T (scaled_dot_product_attention) (x[0], x[1], x[2], NULL, 0, FALSE, 0, FALSE))
FUNCTION (attention_causal, T (scaled_dot_product_attention) (x[0], x[1], x[2], NULL, 0, TRUE, 0.3, TRUE))
FUNCTION (attention_mask, T (scaled_dot_product_attention) (x[0], x[0], x[1], x[2], 0, FALSE, 0, FALSE))
FUNCTION (batch_norm, T (batch_norm) (x[0], T (mean) (x[0], AXES (0, 2), 2, FALSE), T (var) (x[0], AXES (0, 2), 2, 0, FALSE), x[1], x[2], FALSE, 1e-3))
FUNCTION (layer_norm, T (layer_norm) (x[0], SIZES (3, 2), 2, x[1], x[2], 1e-3))
FUNCTION (softmax, T (softmax) (x[0], 1))
FUNCTION (log_softmax, T (log_softmax) (x[0], 0))
FUNCTION (cross_entropy, T (cross_entropy) (x[0], T (arange) (TINY_DTYPE_I32, 0, 3, 1), NULL, -100, "mean", 0))
FUNCTION (cross_entropy_weight, T (cross_entropy) (x[0], T (reshape) (T (arange) (TINY_DTYPE_I32, 0, 4, 1), SIZES (2, 2), 2), x[1], 2, "mean", 0.2))
FUNCTION (cross_entropy_shares, T (cross_entropy) (x[0], x[1], NULL, -100, "sum", 0.1))
FUNCTION (nll_loss, T (nll_loss) (x[0], T (arange) (TINY_DTYPE_I64, 0, 3, 1), x[1], 1, "mean"))
FUNCTION (sparse_crossentropy, T (sparse_categorical_crossentropy) (x[0], T (arange) (TINY_DTYPE_I32, -1, 2, 1), -1, 0.1, "mean"))
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
FUNCTION (cosine_embedding_loss, T (cosine_embedding_loss) (x[0], x[1], T (linspace) (TINY_DTYPE_F64, -1, 1, 2), -0.9, "mean"))
FUNCTION (hinge_embedding_loss, T (hinge_embedding_loss) (x[0], T (linspace) (TINY_DTYPE_F64, -1, 1, 2), 0.5, "mean"))
FUNCTION (margin_ranking_loss, T (margin_ranking_loss) (x[0], x[1], T (linspace) (TINY_DTYPE_F64, -1, 1, 2), 0.1, "sum"))
FUNCTION (soft_margin_loss, T (soft_margin_loss) (x[0], x[1], "mean"))
FUNCTION (triplet_margin_loss, T (triplet_margin_loss) (x[0], x[1], x[2], 1, 2, 1e-6, TRUE, "mean"))
FUNCTION (scalar_source, T (mul) (T (sum) (x[0], NULL, 0, FALSE), x[1]))

const Case cases[] = {
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
  CASE (gather_rows, 1, -1, 1, { 12, 4 }),
  CASE (take_along_axis, 1, -1, 1, { 3, 4 }),
  CASE (matmul, 2, -1, 1, { 2, 3, 4 }, { 4, 2 }),
  CASE (einsum, 2, -1, 1, { 2, 3, 2 }, { 2, 2, 3 }),
  CASE (einsum_diagonal, 2, -1, 1, { 3, 3 }, { 3, 2, 2 }),
  CASE (einsum_three, 3, -1, 1, { 3, 2 }, { 3, 2 }, { 2, 2 }),
  CASE (tensordot, 2, -1, 1, { 2, 3, 2 }, { 3, 2, 2 }),
  CASE (kron, 2, -1, 1, { 2, 2 }, { 2, 3 }),
  CASE (trace, 1, -1, 1, { 3, 4 }),
  CASE (cross, 2, -1, 1, { 2, 3 }, { 2, 3 }),
  CASE (addmm, 3, -1, 1, { 3 }, { 2, 2 }, { 2, 3 }),
  CASE (cholesky, 1, -1, 1, { 3, 3 }),
  CASE (solve, 2, -1, 1, { 3, 3 }, { 3, 2 }),
  CASE (solve_triangular, 2, -1, 1, { 3, 3 }, { 3, 2 }),
  CASE (inv, 1, -1, 1, { 3, 3 }),
  CASE (det, 1, -1, 1, { 2, 3, 3 }),
  CASE (qr_q, 1, -1, 1, { 3, 2 }),
  CASE (lstsq, 2, -1, 1, { 3, 2 }, { 3, 2 }),
  CASE (matrix_power, 1, -1, 1, { 2, 2 }),
  CASE (newton_schulz, 1, -1, 1, { 3, 3 }),
  CASE (fft, 1, -1, 1, { 2, 6, 2 }),
  CASE (fft_prime, 1, -1, 1, { 3, 2 }),
  CASE (fft_radix, 1, -1, 1, { 5 }),
  CASE (irfft, 1, -1, 1, { 2, 3, 2 }),
  CASE (rfftn, 1, -1, 1, { 3, 4 }),
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
  CASE (conv1d, 3, -1, 1, { 2, 2, 6 }, { 3, 2, 3 }, { 3 }),
  CASE (conv2d_each, 2, -1, 1, { 1, 2, 5, 5 }, { 2, 2, 2, 3 }),
  CASE (conv3d, 2, -1, 1, { 1, 2, 2, 3, 3 }, { 2, 1, 2, 2, 2 }),
  CASE (conv_transpose1d, 3, -1, 1, { 2, 2, 4 }, { 2, 3, 3 }, { 3 }),
  CASE (conv_transpose2d, 3, -1, 1, { 1, 4, 3, 2 }, { 4, 1, 3, 2 }, { 2 }),
  CASE (conv_transpose2d_dilation, 2, -1, 1, { 1, 2, 3, 3 }, { 2, 2, 2, 2 }),
  CASE (conv_transpose3d, 2, -1, 1, { 1, 1, 2, 2, 3 }, { 1, 2, 2, 1, 2 }),
  CASE (max_pool1d, 1, -1, 1, { 2, 2, 8 }),
  CASE (max_pool3d, 1, -1, 1, { 1, 1, 2, 4, 5 }),
  CASE (avg_pool2d_ceil, 1, -1, 1, { 1, 2, 4, 5 }),
  CASE (avg_pool2d_ceil_pad, 1, -1, 1, { 1, 2, 4, 4 }),
  CASE (avg_pool3d, 1, -1, 1, { 1, 1, 2, 3, 3 }),
  CASE (max_unpool2d, 1, -1, 1, { 1, 1, 2, 2 }),
  CASE (adaptive_avg_pool2d, 1, -1, 1, { 1, 2, 4, 5 }),
  CASE (adaptive_max_pool2d, 1, -1, 1, { 1, 2, 4, 5 }),
  CASE (batch_norm_train, 3, -1, 1, { 2, 3, 4 }, { 3 }, { 3 }),
  CASE (instance_norm, 3, -1, 1, { 2, 3, 4 }, { 3 }, { 3 }),
  CASE (group_norm, 3, -1, 1, { 2, 4, 3 }, { 4 }, { 4 }),
  CASE (rms_norm, 2, 0.3, 1, { 2, 3 }, { 3 }),
  CASE (local_response_norm, 1, -1, 1, { 1, 4, 3 }),
  CASE (norm, 1, -1, 1, { 3, 4 }),
  CASE (norm_3, 1, -1, 1, { 3, 2 }),
  CASE (norm_inf, 1, -1, 1, { 4, 3 }),
  CASE (normalize, 1, -1, 1, { 3, 4 }),
  CASE (attention, 3, -1, 1, { 2, 3, 4 }, { 2, 5, 4 }, { 2, 5, 3 }),
  CASE (attention_causal, 3, -1, 1, { 1, 4, 3, 2 }, { 1, 2, 3, 2 }, { 1, 2, 3, 2 }),
  CASE (attention_mask, 3, -1, 1, { 2, 3, 4 }, { 2, 3, 2 }, { 3, 3 }),
  CASE (batch_norm, 3, -1, 1, { 2, 3, 4 }, { 3 }, { 3 }),
  CASE (layer_norm, 3, -1, 1, { 2, 3, 2 }, { 3, 2 }, { 3, 2 }),
  CASE (softmax, 1, -1, 1, { 2, 4 }),
  CASE (log_softmax, 1, -1, 1, { 4, 2 }),
  CASE (cross_entropy, 1, -1, 1, { 3, 4 }),
  CASE (cross_entropy_weight, 2, 0.1, 1, { 2, 4, 2 }, { 4 }),
  CASE (cross_entropy_shares, 2, -1, 1, { 3, 4 }, { 3, 4 }),
  CASE (nll_loss, 2, 0.1, 1, { 3, 4 }, { 4 }),
  CASE (sparse_crossentropy, 1, -1, 1, { 3, 4 }),
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
