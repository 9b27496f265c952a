/* SPDX-License-Identifier: MIT
 *
 * tiny-tensor-nn.h: products, convolutions and the functions that networks are made of.
 *
 * Letters of shapes: B batch, C channels, Y X rows and columns, K classes. */
#pragma once

#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

/**
 * tiny_tensor_matmul:
 * @self: a tensor
 * @y: a tensor
 *
 * The matrix product (…, M, K) @ (…, K, N) = (…, M, N); leading axes broadcast, a vector is a row on
 * the left and a column on the right. f16 and bf16 accumulate in f32.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_matmul (TinyTensor *self, TinyTensor *y);

/**
 * tiny_tensor_dot:
 * @self: a tensor
 * @y: a tensor
 *
 * The same as tiny_tensor_matmul().
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_dot (TinyTensor *self, TinyTensor *y);

/**
 * tiny_tensor_linear:
 * @self: of shape (…, I)
 * @weight: of shape (O, I)
 * @bias: (nullable): of shape (O)
 *
 * @self @ @weightᵀ + @bias, (…, O).
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *
tiny_tensor_linear (TinyTensor *self, TinyTensor *weight, TinyTensor *bias);

/**
 * tiny_tensor_conv2d:
 * @self: of shape (B, C, Y, X)
 * @weight: of shape (O, C / @groups, KY, KX)
 * @bias: (nullable): of shape (O)
 * @stride: of both directions, at least 1
 * @padding: zeros on each side
 * @dilation: distance between taps, at least 1
 * @groups: divides C and O
 *
 * The convolution (without flipping the kernel) of images, (B, O, Y', X') with
 * Y' = (Y + 2 padding - dilation (KY - 1) - 1) / stride + 1. The result is stored channels-last.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_conv2d (TinyTensor *self,
                                         TinyTensor *weight,
                                         TinyTensor *bias,
                                         gint64 stride,
                                         gint64 padding,
                                         gint64 dilation,
                                         gint64 groups);

/**
 * tiny_tensor_max_pool2d:
 * @self: of shape (B, C, Y, X)
 * @kernel: side of the window
 * @stride: distance of windows; 0: @kernel
 * @padding: on each side, at most half of @kernel
 *
 * The largest of each window; padding never wins.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *
tiny_tensor_max_pool2d (TinyTensor *self, gint64 kernel, gint64 stride, gint64 padding);

/**
 * tiny_tensor_avg_pool2d:
 * @self: of shape (B, C, Y, X)
 * @kernel: side of the window
 * @stride: distance of windows; 0: @kernel
 * @padding: on each side, at most half of @kernel
 *
 * The mean of each window; padding counts as zeros.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *
tiny_tensor_avg_pool2d (TinyTensor *self, gint64 kernel, gint64 stride, gint64 padding);

/**
 * tiny_tensor_batch_norm:
 * @self: of shape (B, C, …)
 * @weight: of shape (nullable): (C)
 * @bias: (nullable): of shape (C)
 * @mean: of shape (C)
 * @var: of shape (C)
 * @epsilon: added to @var
 *
 * (@self - @mean) / sqrt (@var + @epsilon) * @weight + @bias.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_batch_norm (TinyTensor *self,
                                             TinyTensor *weight,
                                             TinyTensor *bias,
                                             TinyTensor *mean,
                                             TinyTensor *var,
                                             double epsilon);

/**
 * tiny_tensor_layer_norm:
 * @self: a tensor
 * @n_axes: how many of the last axes are normalised together
 * @weight: (nullable): of the shape of those axes
 * @bias: (nullable): likewise
 * @epsilon: added to the variance
 *
 * @self with mean 0 and variance 1 over its last axes, times @weight plus @bias.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_layer_norm (
    TinyTensor *self, guint n_axes, TinyTensor *weight, TinyTensor *bias, double epsilon);

/**
 * tiny_tensor_softmax:
 * @self: a tensor
 * @axis: an axis
 *
 * exp (@self) / sum (exp (@self)) over @axis, as float.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_softmax (TinyTensor *self, gint axis);

/**
 * tiny_tensor_log_softmax:
 * @self: a tensor
 * @axis: an axis
 *
 * The logarithm of tiny_tensor_softmax().
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_log_softmax (TinyTensor *self, gint axis);

/**
 * tiny_tensor_cross_entropy:
 * @self: scores before softmax, (B, K)
 * @labels: integers from 0 to K-1, (B)
 *
 * The mean over B of -log_softmax (@self) at the label. A label outside counts as 0 loss.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_cross_entropy (TinyTensor *self, TinyTensor *labels);

/**
 * tiny_tensor_dropout:
 * @self: a tensor
 * @p: probability of zero, from 0 to below 1
 *
 * Zeroes elements with probability @p and divides the others by 1 - @p. The numbers are drawn when this is called:
 * a captured step (#TinyJit) replays the same ones.
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_dropout (TinyTensor *self, double p);

G_END_DECLS
