/* SPDX-License-Identifier: MIT
 *
 * cases.c: a row and a function for each operation. */
#include "cases.h"

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
FUNCTION (narrow, T (narrow) (x[0], 1, -2, 1))
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
FUNCTION (gather, T (index_select) (x[0], 0, T (arange) (TINY_DTYPE_I32, 3, -1, -2)))
FUNCTION (gather_rows, T (index_select) (x[0], 0, T (mod) (T (arange) (TINY_DTYPE_I32, 0, 15, 3), T (scalar) (9))))
FUNCTION (gather_along, T (gather) (x[0], 1, T (reshape) (T (mod) (T (arange) (TINY_DTYPE_I32, 0, 18, 2), T (scalar) (5)), SIZES (3, 3), 2)))
FUNCTION (take_along_dim, T (take_along_dim) (x[0], T (reshape) (at (3, 2, 4), SIZES (3, 1), 2), 1))
FUNCTION (take, T (take) (x[0], T (sub) (at (4, 5, 6), T (scalar) (1))))
FUNCTION (scatter, T (scatter) (x[0], 0, T (reshape) (at (6, 2, 5), SIZES (3, 2), 2), x[1], NULL))
FUNCTION (scatter_multiply, T (scatter) (x[0], 1, T (reshape) (at (6, 1, 2), SIZES (2, 3), 2), x[1], "multiply"))
FUNCTION (scatter_add, T (scatter_add) (x[0], 1, T (reshape) (at (6, 2, 4), SIZES (2, 3), 2), x[1]))
FUNCTION (scatter_mean, T (scatter_reduce) (x[0], 0, T (reshape) (at (6, 2, 5), SIZES (3, 2), 2), x[1], "mean", TRUE))
FUNCTION (scatter_amax, T (scatter_reduce) (x[0], 1, T (reshape) (at (6, 1, 2), SIZES (2, 3), 2), x[1], "amax", FALSE))
FUNCTION (scatter_amin, T (scatter_reduce) (x[0], 1, T (reshape) (at (6, 1, 2), SIZES (2, 3), 2), x[1], "amin", TRUE))
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
  CASE (gather, 1, -1, 1, { 4, 2 }),
  CASE (gather_rows, 1, -1, 1, { 12, 4 }),
  CASE (gather_along, 1, -1, 1, { 3, 4 }),
  CASE (take_along_dim, 1, -1, 1, { 3, 4 }),
  CASE (take, 1, -1, 1, { 2, 3 }),
  CASE (scatter, 2, -1, 1, { 4, 3 }, { 3, 3 }),
  CASE (scatter_multiply, 2, -1, 1, { 2, 3 }, { 2, 3 }),
  CASE (scatter_add, 2, -1, 1, { 2, 3 }, { 2, 3 }),
  CASE (scatter_mean, 2, -1, 1, { 4, 2 }, { 3, 2 }),
  CASE (scatter_amax, 2, -1, 1, { 2, 3 }, { 2, 3 }),
  CASE (scatter_amin, 2, -1, 1, { 2, 3 }, { 2, 3 }),
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

const guint n_cases = G_N_ELEMENTS (cases);
