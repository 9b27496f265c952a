/* SPDX-License-Identifier: MIT
 *
 * tiny-layers.h: the plain layers: linear, embedding, dropout, activations, shapes, chains.
 *
 * Names, shapes and distributions of tensors are those of PyTorch's layers, whose state dicts load
 * (tiny_module_load_state_dict()). Weights are of the default float (tiny_set_default_float()) and
 * drawn from the process's sequence of random numbers (tiny_tensor_manual_seed()) when a layer is made, uniform over
 * ±1 / sqrt (fan-in) where the layer does not say otherwise. A layer made with sizes that cannot be gives tensors
 * that say so (tiny_module_get_error()). */
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
 * tiny_embedding_new:
 * @n: how many rows, such as tokens of a vocabulary
 * @size: features of a row
 *
 * Integers (…) to (…, D): the rows of tensor "weight" (V, D), drawn from the normal distribution, by
 * tiny_tensor_index_select(): a negative token counts from the end, one outside of the table is a row of zeros.
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_embedding_new (gint64 n, gint64 size);

/**
 * tiny_dropout_new:
 * @p: the part of the elements that become 0, from 0 to 1
 *
 * In training mode each element becomes 0 with probability @p and the others are scaled by
 * 1 / (1 - @p); else nothing changes. What is dropped follows from a counter in device memory,
 * which moves at each forward: a recording (#TinyJit) that ends with a step of an optimiser drops others in
 * every replay.
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_dropout_new (double p);

/**
 * tiny_activation_new:
 * @name: such as "relu" or "gelu"; tiny_activation_list() has all
 *
 * A function without parameters, by its name, with PyTorch's defaults and over the last axis where it takes one.
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_activation_new (const char *name);

/**
 * tiny_activation_list:
 *
 * All activations that are layers: what there is to choose from.
 *
 * Returns: (transfer none) (array zero-terminated=1): the names that tiny_activation_new() knows
 *
 * Since: 0.1
 */
TINY_API const char *const *tiny_activation_list (void);

/**
 * tiny_prelu_new:
 * @n: 1, or how many channels there are
 * @slope: its value at the start, such as 0.25
 *
 * tiny_tensor_prelu() with tensor "weight" (N): x where it is positive, a slope times x elsewhere.
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_prelu_new (gint64 n, double slope);

/**
 * tiny_flatten_new:
 * @start: the first axis, such as 1
 * @end: the last, such as -1
 *
 * Joins axes: tiny_tensor_flatten().
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_flatten_new (gint start, gint end);

/**
 * tiny_max_pool2d_new:
 * @kernel: side of the windows
 * @stride: distance of windows; 0: that of @kernel
 * @padding: what surrounds each side
 *
 * tiny_tensor_max_pool2d().
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_max_pool2d_new (gint64 kernel, gint64 stride, gint64 padding);

/**
 * tiny_avg_pool2d_new:
 * @kernel: side of the windows
 * @stride: distance of windows; 0: that of @kernel
 * @padding: zeros on each side, which count
 *
 * tiny_tensor_avg_pool2d().
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_avg_pool2d_new (gint64 kernel, gint64 stride, gint64 padding);

/**
 * TinyModuleFunction:
 * @x: an input
 *
 * A layer without parameters, such as tiny_tensor_relu().
 *
 * Returns: (transfer floating): the result
 *
 * Since: 0.1
 */
typedef TinyTensor *(*TinyModuleFunction) (TinyTensor *x);

/**
 * tiny_function_new:
 * @function: (scope forever): what forward does
 *
 * A layer of a function in C; other languages subclass #TinyModule. Without @function forward fails.
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_function_new (TinyModuleFunction function);

/**
 * tiny_sequential_new:
 *
 * A chain of modules, empty at first, which gives its input as it is.
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
 * What cannot be appended, such as @self or %NULL, makes @self fail when it is applied; so does appending to a
 * module of another kind.
 *
 * Since: 0.1
 */
TINY_API void tiny_sequential_append (TinyModule *self, TinyModule *module);

G_END_DECLS
