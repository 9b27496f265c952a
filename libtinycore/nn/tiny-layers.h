/* SPDX-License-Identifier: MIT
 *
 * tiny-layers.h: the layers there are.
 *
 * Weights are drawn from the process's sequence of random numbers (tiny_tensor_manual_seed()) when
 * a layer is made, uniform over ±1 / sqrt (fan-in) where the layer does not say otherwise. */
#pragma once

#include "nn/tiny-module.h"

G_BEGIN_DECLS

/**
 * tiny_linear_new:
 * @n_in: features of the input
 * @n_out: features of the output
 * @bias: whether there is a bias
 *
 * (…, I) to (…, O): x @ weightᵀ + bias, with tensors "weight" (O, I) and "bias" (O).
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_linear_new (gint64 n_in, gint64 n_out, gboolean bias);

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
 * tiny_tensor_conv2d() with tensors "weight" (O, C/G, K, K) and "bias" (O).
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
 * tiny_batch_norm2d_new:
 * @n: channels
 *
 * tiny_tensor_batch_norm() with epsilon 1e-5 and tensors "weight" and "bias". In training mode with
 * the batch's statistics, which move "running_mean" and "running_var" by a tenth at each forward;
 * else with those. The moved statistics are computed when they are next realised, as
 * #TinyTrainer does with every step.
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_batch_norm2d_new (gint64 n);

/**
 * tiny_embedding_new:
 * @n: how many rows, such as tokens of a vocabulary
 * @size: features of a row
 *
 * Integers (…) to (…, D): the rows of tensor "weight" (V, D), drawn from the normal distribution, by
 * tiny_tensor_index_select(): a token outside of the table is a row of zeros.
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_embedding_new (gint64 n, gint64 size);

/**
 * TinyModuleFunction:
 * @x: an input
 *
 * A layer without parameters, such as tiny_tensor_relu().
 *
 * Returns: (transfer floating): the result
 */
typedef TinyTensor *(*TinyModuleFunction) (TinyTensor *x);

/**
 * tiny_function_new:
 * @function: (scope forever): what forward does
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_function_new (TinyModuleFunction function);

/**
 * tiny_sequential_new:
 *
 * A chain of modules, empty at first.
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_sequential_new (void);

/**
 * tiny_sequential_append:
 * @self: what tiny_sequential_new() made
 * @module: (transfer full): the next module, named by its number
 *
 * Since: 0.1
 */
TINY_API void tiny_sequential_append (TinyModule *self, TinyModule *module);

G_END_DECLS
