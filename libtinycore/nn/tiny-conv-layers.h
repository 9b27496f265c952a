/* SPDX-License-Identifier: MIT
 *
 * tiny-conv-layers.h: convolutions and their transposes, in one to five directions.
 *
 * Sizes are one number for all directions or one for each, as in tiny_tensor_conv2d(); images may lack the axis B. */
#pragma once

#include "nn/tiny-module.h"

G_BEGIN_DECLS

/**
 * tiny_conv_new:
 * @n_dims: directions
 * @n_in: channels of the input
 * @n_out: channels of the output
 * @kernel: (array length=n_kernel): sides of the kernel
 * @n_kernel: 1 or @n_dims
 * @stride: (array length=n_stride) (nullable): distances of windows; %NULL: 1
 * @n_stride: 0, 1 or @n_dims
 * @padding: (array length=n_padding) (nullable): zeros on each side; %NULL: none
 * @n_padding: 0, 1, @n_dims, or twice that: before and after of each direction, the last direction first
 * @dilation: (array length=n_dilation) (nullable): distances of what a window reads; %NULL: 1
 * @n_dilation: 0, 1 or @n_dims
 * @groups: groups of channels
 * @bias: whether there is a bias
 *
 * (B, C, S…) to (B, O, S'…): tiny_tensor_conv2d() with tensors "weight" (O, C/G, K…) and "bias" (O), uniform over
 * ±1 / sqrt (C/G · K…).
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_conv_new (guint n_dims,
                                    gint64 n_in,
                                    gint64 n_out,
                                    const gint64 *kernel,
                                    guint n_kernel,
                                    const gint64 *stride,
                                    guint n_stride,
                                    const gint64 *padding,
                                    guint n_padding,
                                    const gint64 *dilation,
                                    guint n_dilation,
                                    gint64 groups,
                                    gboolean bias);

/**
 * tiny_conv1d_new:
 * @n_in: channels of the input
 * @n_out: channels of the output
 * @kernel: size of the kernel
 * @stride: distance of windows
 * @padding: zeros on each side
 * @dilation: distance of what a window reads
 * @groups: groups of channels
 * @bias: whether there is a bias
 *
 * tiny_conv_new() in one direction.
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_conv1d_new (gint64 n_in,
                                      gint64 n_out,
                                      gint64 kernel,
                                      gint64 stride,
                                      gint64 padding,
                                      gint64 dilation,
                                      gint64 groups,
                                      gboolean bias);

/**
 * tiny_conv2d_new:
 * @n_in: channels of the input
 * @n_out: channels of the output
 * @kernel: side of the kernel
 * @stride: distance of windows
 * @padding: zeros on each side
 * @groups: groups of channels
 * @bias: whether there is a bias
 *
 * tiny_conv_new() in two directions, with the same numbers in both.
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_conv2d_new (gint64 n_in,
                                      gint64 n_out,
                                      gint64 kernel,
                                      gint64 stride,
                                      gint64 padding,
                                      gint64 groups,
                                      gboolean bias);

/**
 * tiny_conv_transpose_new:
 * @n_dims: directions
 * @n_in: channels of the input
 * @n_out: channels of the output
 * @kernel: (array length=n_kernel): sides of the kernel
 * @n_kernel: 1 or @n_dims
 * @stride: (array length=n_stride) (nullable): distances of windows in the result; %NULL: 1
 * @n_stride: 0, 1 or @n_dims
 * @padding: (array length=n_padding) (nullable): what is cut off on each side; %NULL: nothing
 * @n_padding: 0, 1 or @n_dims
 * @output_padding: (array length=n_output_padding) (nullable): more elements at the end; %NULL: none
 * @n_output_padding: 0, 1 or @n_dims
 * @dilation: (array length=n_dilation) (nullable): distances within a window; %NULL: 1
 * @n_dilation: 0, 1 or @n_dims
 * @groups: groups of channels
 * @bias: whether there is a bias
 *
 * (B, C, S…) to (B, O, S'…): tiny_tensor_conv_transpose2d() with tensors "weight" (C, O/G, K…) and "bias" (O),
 * uniform over ±1 / sqrt (O/G · K…).
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_conv_transpose_new (guint n_dims,
                                              gint64 n_in,
                                              gint64 n_out,
                                              const gint64 *kernel,
                                              guint n_kernel,
                                              const gint64 *stride,
                                              guint n_stride,
                                              const gint64 *padding,
                                              guint n_padding,
                                              const gint64 *output_padding,
                                              guint n_output_padding,
                                              const gint64 *dilation,
                                              guint n_dilation,
                                              gint64 groups,
                                              gboolean bias);

G_END_DECLS
