/* SPDX-License-Identifier: MIT
 *
 * tiny-tensor-math.h: arithmetic element by element, and reductions.
 *
 * Shapes broadcast as in NumPy. Dtypes promote: bool to integers to floats, two of different width
 * to the smallest that holds both; a scalar (tiny_tensor_scalar()) takes the other side's dtype.
 * All functions consume floating arguments and return floating references, and a shape or dtype
 * that does not fit makes the result carry an error of %TINY_ERROR_INVALID. */
#pragma once

#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

/**
 * tiny_tensor_add:
 * @self: a tensor
 * @y: a tensor whose shape broadcasts with @self's
 *
 * @self + @y. On bool: or.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_add (TinyTensor *self, TinyTensor *y);

/**
 * tiny_tensor_sub:
 * @self: a tensor
 * @y: a tensor whose shape broadcasts with @self's
 *
 * @self - @y.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_sub (TinyTensor *self, TinyTensor *y);

/**
 * tiny_tensor_mul:
 * @self: a tensor
 * @y: a tensor whose shape broadcasts with @self's
 *
 * @self * @y. On bool: and.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_mul (TinyTensor *self, TinyTensor *y);

/**
 * tiny_tensor_div:
 * @self: a tensor
 * @y: a tensor whose shape broadcasts with @self's
 *
 * @self / @y as floats; integers become f32 first.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_div (TinyTensor *self, TinyTensor *y);

/**
 * tiny_tensor_idiv:
 * @self: a tensor
 * @y: a tensor whose shape broadcasts with @self's
 *
 * @self / @y rounded down, of integers or floats. An integer divided by zero is unspecified.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_idiv (TinyTensor *self, TinyTensor *y);

/**
 * tiny_tensor_mod:
 * @self: a tensor
 * @y: a tensor whose shape broadcasts with @self's
 *
 * @self - @y * idiv (@self, @y): has the sign of @y.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_mod (TinyTensor *self, TinyTensor *y);

/**
 * tiny_tensor_pow:
 * @self: a tensor
 * @y: a tensor whose shape broadcasts with @self's
 *
 * @self to the power @y, as floats. A negative base has a value where the exponent is whole.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_pow (TinyTensor *self, TinyTensor *y);

/**
 * tiny_tensor_maximum:
 * @self: a tensor
 * @y: a tensor whose shape broadcasts with @self's
 *
 * The larger of @self and @y.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_maximum (TinyTensor *self, TinyTensor *y);

/**
 * tiny_tensor_minimum:
 * @self: a tensor
 * @y: a tensor whose shape broadcasts with @self's
 *
 * The smaller of @self and @y.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_minimum (TinyTensor *self, TinyTensor *y);

/**
 * tiny_tensor_eq:
 * @self: a tensor
 * @y: a tensor whose shape broadcasts with @self's
 *
 * Where @self equals @y, as bool. A NaN equals nothing.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_eq (TinyTensor *self, TinyTensor *y);

/**
 * tiny_tensor_ne:
 * @self: a tensor
 * @y: a tensor whose shape broadcasts with @self's
 *
 * Where @self differs from @y, as bool. A NaN differs from everything.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_ne (TinyTensor *self, TinyTensor *y);

/**
 * tiny_tensor_lt:
 * @self: a tensor
 * @y: a tensor whose shape broadcasts with @self's
 *
 * Where @self < @y, as bool.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_lt (TinyTensor *self, TinyTensor *y);

/**
 * tiny_tensor_le:
 * @self: a tensor
 * @y: a tensor whose shape broadcasts with @self's
 *
 * Where @self <= @y, as bool.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_le (TinyTensor *self, TinyTensor *y);

/**
 * tiny_tensor_gt:
 * @self: a tensor
 * @y: a tensor whose shape broadcasts with @self's
 *
 * Where @self > @y, as bool.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_gt (TinyTensor *self, TinyTensor *y);

/**
 * tiny_tensor_ge:
 * @self: a tensor
 * @y: a tensor whose shape broadcasts with @self's
 *
 * Where @self >= @y, as bool.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_ge (TinyTensor *self, TinyTensor *y);

/**
 * tiny_tensor_logical_and:
 * @self: a tensor
 * @y: a tensor whose shape broadcasts with @self's
 *
 * Where both are not zero, as bool.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_logical_and (TinyTensor *self, TinyTensor *y);

/**
 * tiny_tensor_logical_or:
 * @self: a tensor
 * @y: a tensor whose shape broadcasts with @self's
 *
 * Where either is not zero, as bool.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_logical_or (TinyTensor *self, TinyTensor *y);

/**
 * tiny_tensor_logical_xor:
 * @self: a tensor
 * @y: a tensor whose shape broadcasts with @self's
 *
 * Where exactly one is not zero, as bool.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_logical_xor (TinyTensor *self, TinyTensor *y);

/**
 * tiny_tensor_bitwise_and:
 * @self: a tensor
 * @y: a tensor whose shape broadcasts with @self's
 *
 * The bits that both have; integers and bool.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_bitwise_and (TinyTensor *self, TinyTensor *y);

/**
 * tiny_tensor_bitwise_or:
 * @self: a tensor
 * @y: a tensor whose shape broadcasts with @self's
 *
 * The bits that either has; integers and bool.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_bitwise_or (TinyTensor *self, TinyTensor *y);

/**
 * tiny_tensor_bitwise_xor:
 * @self: a tensor
 * @y: a tensor whose shape broadcasts with @self's
 *
 * The bits that exactly one has; integers and bool.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_bitwise_xor (TinyTensor *self, TinyTensor *y);

/**
 * tiny_tensor_shift_left:
 * @self: a tensor
 * @y: a tensor whose shape broadcasts with @self's
 *
 * @self << @y of integers. A count outside 0 … bits-1 is unspecified.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_shift_left (TinyTensor *self, TinyTensor *y);

/**
 * tiny_tensor_shift_right:
 * @self: a tensor
 * @y: a tensor whose shape broadcasts with @self's
 *
 * @self >> @y of integers; keeps the sign of signed ones. A count outside 0 … bits-1 is unspecified.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_shift_right (TinyTensor *self, TinyTensor *y);

/**
 * tiny_tensor_neg:
 * @self: a tensor
 *
 * -@self.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_neg (TinyTensor *self);

/**
 * tiny_tensor_recip:
 * @self: a tensor
 *
 * 1 / @self, as float.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_recip (TinyTensor *self);

/**
 * tiny_tensor_sqrt:
 * @self: a tensor
 *
 * The square root, as float.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_sqrt (TinyTensor *self);

/**
 * tiny_tensor_rsqrt:
 * @self: a tensor
 *
 * 1 / sqrt (@self), as float.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_rsqrt (TinyTensor *self);

/**
 * tiny_tensor_exp:
 * @self: a tensor
 *
 * e to the power @self, as float.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_exp (TinyTensor *self);

/**
 * tiny_tensor_exp2:
 * @self: a tensor
 *
 * 2 to the power @self, as float.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_exp2 (TinyTensor *self);

/**
 * tiny_tensor_log:
 * @self: a tensor
 *
 * The natural logarithm, as float.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_log (TinyTensor *self);

/**
 * tiny_tensor_log2:
 * @self: a tensor
 *
 * The logarithm to base 2, as float.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_log2 (TinyTensor *self);

/**
 * tiny_tensor_sin:
 * @self: a tensor
 *
 * The sine of radians, as float.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_sin (TinyTensor *self);

/**
 * tiny_tensor_cos:
 * @self: a tensor
 *
 * The cosine of radians, as float.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_cos (TinyTensor *self);

/**
 * tiny_tensor_tan:
 * @self: a tensor
 *
 * The tangent of radians, as float.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_tan (TinyTensor *self);

/**
 * tiny_tensor_tanh:
 * @self: a tensor
 *
 * The hyperbolic tangent, as float.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_tanh (TinyTensor *self);

/**
 * tiny_tensor_sigmoid:
 * @self: a tensor
 *
 * 1 / (1 + exp (-@self)), as float.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_sigmoid (TinyTensor *self);

/**
 * tiny_tensor_relu:
 * @self: a tensor
 *
 * The larger of @self and 0; its gradient at 0 is 0.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_relu (TinyTensor *self);

/**
 * tiny_tensor_gelu:
 * @self: a tensor
 *
 * @self * Φ(@self) in the approximation with tanh (Hendrycks and Gimpel 2016, section 2), as float.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_gelu (TinyTensor *self);

/**
 * tiny_tensor_silu:
 * @self: a tensor
 *
 * @self * sigmoid (@self), as float.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_silu (TinyTensor *self);

/**
 * tiny_tensor_abs:
 * @self: a tensor
 *
 * The magnitude.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_abs (TinyTensor *self);

/**
 * tiny_tensor_sign:
 * @self: a tensor
 *
 * -1, 0 or 1; NaN of a NaN.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_sign (TinyTensor *self);

/**
 * tiny_tensor_square:
 * @self: a tensor
 *
 * @self * @self.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_square (TinyTensor *self);

/**
 * tiny_tensor_floor:
 * @self: a tensor
 *
 * Rounded down.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_floor (TinyTensor *self);

/**
 * tiny_tensor_ceil:
 * @self: a tensor
 *
 * Rounded up.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_ceil (TinyTensor *self);

/**
 * tiny_tensor_round:
 * @self: a tensor
 *
 * Rounded to the nearest whole number, halves to the even one.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_round (TinyTensor *self);

/**
 * tiny_tensor_trunc:
 * @self: a tensor
 *
 * Rounded towards zero.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_trunc (TinyTensor *self);

/**
 * tiny_tensor_logical_not:
 * @self: a tensor
 *
 * Where @self is zero, as bool.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_logical_not (TinyTensor *self);

/**
 * tiny_tensor_bitwise_not:
 * @self: a tensor
 *
 * All bits reversed; integers and bool.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_bitwise_not (TinyTensor *self);

/**
 * tiny_tensor_isnan:
 * @self: a tensor
 *
 * Where @self is not a number, as bool.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_isnan (TinyTensor *self);

/**
 * tiny_tensor_isinf:
 * @self: a tensor
 *
 * Where @self is infinite, as bool.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_isinf (TinyTensor *self);

/**
 * tiny_tensor_clamp:
 * @self: a tensor
 * @low: the least value
 * @high: the greatest value
 *
 * @self with what is outside @low … @high moved to the nearer of them. Infinite bounds bound nothing.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_clamp (TinyTensor *self, double low, double high);

/**
 * tiny_tensor_where:
 * @gate: a tensor, taken as bool
 * @x: values where @gate is true
 * @y: values elsewhere
 *
 * @x where @gate is true, @y elsewhere.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_where (TinyTensor *gate, TinyTensor *x, TinyTensor *y);

/**
 * tiny_tensor_cast:
 * @self: a tensor
 * @dtype: a dtype
 *
 * The values in another dtype. Floats to integers truncate; to bool: what is not zero.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_cast (TinyTensor *self, TinyDType dtype);

/**
 * tiny_tensor_bitcast:
 * @self: a tensor
 * @dtype: a dtype of the same size
 *
 * The bits taken as another dtype.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_bitcast (TinyTensor *self, TinyDType dtype);

/**
 * tiny_tensor_add_number:
 * @self: a tensor
 * @y: a number
 *
 * @self + @y in @self's dtype, or f32 when that is an integer's and @y is not whole.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_add_number (TinyTensor *self, double y);

/**
 * tiny_tensor_mul_number:
 * @self: a tensor
 * @y: a number
 *
 * @self * @y, dtypes as in tiny_tensor_add_number().
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_mul_number (TinyTensor *self, double y);

/**
 * tiny_tensor_sum:
 * @self: a tensor
 * @axes: (array length=n_axes) (nullable): axes, negative ones from the end; %NULL: all
 * @n_axes: how many
 * @keepdim: whether reduced axes stay, of size 1
 *
 * The sum over @axes. Narrow integers and bool add up in 32 bits, f16 and bf16 accumulate in f32.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *
tiny_tensor_sum (TinyTensor *self, const gint *axes, guint n_axes, gboolean keepdim);

/**
 * tiny_tensor_mean:
 * @self: a tensor
 * @axes: (array length=n_axes) (nullable): axes, negative ones from the end; %NULL: all
 * @n_axes: how many
 * @keepdim: whether reduced axes stay, of size 1
 *
 * The mean over @axes, as float.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *
tiny_tensor_mean (TinyTensor *self, const gint *axes, guint n_axes, gboolean keepdim);

/**
 * tiny_tensor_max:
 * @self: a tensor
 * @axes: (array length=n_axes) (nullable): axes, negative ones from the end; %NULL: all
 * @n_axes: how many
 * @keepdim: whether reduced axes stay, of size 1
 *
 * The largest over @axes, none of which may be empty.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *
tiny_tensor_max (TinyTensor *self, const gint *axes, guint n_axes, gboolean keepdim);

/**
 * tiny_tensor_min:
 * @self: a tensor
 * @axes: (array length=n_axes) (nullable): axes, negative ones from the end; %NULL: all
 * @n_axes: how many
 * @keepdim: whether reduced axes stay, of size 1
 *
 * The smallest over @axes, none of which may be empty.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *
tiny_tensor_min (TinyTensor *self, const gint *axes, guint n_axes, gboolean keepdim);

/**
 * tiny_tensor_prod:
 * @self: a tensor
 * @axes: (array length=n_axes) (nullable): axes, negative ones from the end; %NULL: all
 * @n_axes: how many
 * @keepdim: whether reduced axes stay, of size 1
 *
 * The product over @axes.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *
tiny_tensor_prod (TinyTensor *self, const gint *axes, guint n_axes, gboolean keepdim);

/**
 * tiny_tensor_any:
 * @self: a tensor
 * @axes: (array length=n_axes) (nullable): axes, negative ones from the end; %NULL: all
 * @n_axes: how many
 * @keepdim: whether reduced axes stay, of size 1
 *
 * Whether any over @axes is not zero, as bool.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *
tiny_tensor_any (TinyTensor *self, const gint *axes, guint n_axes, gboolean keepdim);

/**
 * tiny_tensor_all:
 * @self: a tensor
 * @axes: (array length=n_axes) (nullable): axes, negative ones from the end; %NULL: all
 * @n_axes: how many
 * @keepdim: whether reduced axes stay, of size 1
 *
 * Whether none over @axes is zero, as bool.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *
tiny_tensor_all (TinyTensor *self, const gint *axes, guint n_axes, gboolean keepdim);

/**
 * tiny_tensor_var:
 * @self: a tensor
 * @axes: (array length=n_axes) (nullable): axes, negative ones from the end; %NULL: all
 * @n_axes: how many
 * @correction: 1 for the unbiased estimate, 0 for the population's
 * @keepdim: whether reduced axes stay, of size 1
 *
 * The variance over @axes: squared distances to the mean, their sum divided by the count less @correction.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_var (
    TinyTensor *self, const gint *axes, guint n_axes, gint correction, gboolean keepdim);

/**
 * tiny_tensor_std:
 * @self: a tensor
 * @axes: (array length=n_axes) (nullable): axes, negative ones from the end; %NULL: all
 * @n_axes: how many
 * @correction: 1 for the unbiased estimate, 0 for the population's
 * @keepdim: whether reduced axes stay, of size 1
 *
 * The square root of tiny_tensor_var().
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_std (
    TinyTensor *self, const gint *axes, guint n_axes, gint correction, gboolean keepdim);

/**
 * tiny_tensor_argmax:
 * @self: a tensor
 * @axis: an axis
 * @keepdim: whether reduced axes stay, of size 1
 *
 * The position of the largest along @axis, the first of equals, as i32.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_argmax (TinyTensor *self, gint axis, gboolean keepdim);

/**
 * tiny_tensor_argmin:
 * @self: a tensor
 * @axis: an axis
 * @keepdim: whether reduced axes stay, of size 1
 *
 * The position of the smallest along @axis, the first of equals, as i32.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_argmin (TinyTensor *self, gint axis, gboolean keepdim);

G_END_DECLS
