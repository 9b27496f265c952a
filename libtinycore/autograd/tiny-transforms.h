/* SPDX-License-Identifier: MIT
 *
 * tiny-transforms.h: functions of functions: a whole batch at once, derivatives forward and back.
 *
 * Each of them calls its function once, with tensors that stand for the inputs, and works on the
 * graph that comes out. They nest: the function may call any of them. What is wrong, with an input,
 * in the function, or of what it gives, comes back as a list of one tensor in error state. */
#pragma once

#include "autograd/tiny-function.h"

G_BEGIN_DECLS

/**
 * tiny_vmap:
 * @function: (scope call) (closure user_data): what is done with each element of the batch
 * @user_data: for @function
 * @inputs: (array length=n_inputs): tensors
 * @n_inputs: how many
 * @in_axes: (array length=n_in_axes) (nullable): which axis of each input is the batch's, negative
 *   ones counted from the end; %TINY_NO_AXIS: all of it goes to each element. %NULL: 0 for each
 * @n_in_axes: as many as there are inputs, or 0
 * @out_axes: (array length=n_out_axes) (nullable): where the batch's axis is in each result;
 *   %TINY_NO_AXIS: the result is the same for all, and has none. %NULL: 0 for each
 * @n_out_axes: as many as @function gives results, or 0
 *
 * Applies @function to each element of a batch, all at once: it is called with tensors that stand
 * for one element, and each operation of what it gives is replaced by one on the whole batch.
 * It cannot draw random numbers: see tiny_vmap_with_randomness().
 *
 * Errors: what an input carries, what @function fails with; %TINY_ERROR_INVALID when axes do not
 * fit, sizes of the batch differ, or @function assigns to a tensor from outside.
 *
 * Returns: (transfer container) (element-type TinyTensor): the results, in the order in which
 *   @function gives them; one tensor in error state where something is wrong
 *
 * Since: 0.1
 */
TINY_API GPtrArray *tiny_vmap (TinyFunction function,
                               gpointer user_data,
                               TinyTensor *const *inputs,
                               guint n_inputs,
                               const gint *in_axes,
                               guint n_in_axes,
                               const gint *out_axes,
                               guint n_out_axes);

/**
 * tiny_vmap_with_randomness:
 * @function: (scope call) (closure user_data): what is done with each element of the batch
 * @user_data: for @function
 * @inputs: (array length=n_inputs): tensors
 * @n_inputs: how many
 * @in_axes: (array length=n_in_axes) (nullable): as of tiny_vmap()
 * @n_in_axes: as many as there are inputs, or 0
 * @out_axes: (array length=n_out_axes) (nullable): as of tiny_vmap()
 * @n_out_axes: as many as @function gives results, or 0
 * @randomness: (nullable): what random numbers that @function draws are: "error": refused; "different": each
 *   element of the batch has its own, those that a draw of the whole batch would give, (B, …) for (…); "same": they are
 *   drawn once for all. %NULL: error
 *
 * As tiny_vmap(), for functions that draw random numbers. Of calls in calls each has its own rule.
 *
 * Errors: as those of tiny_vmap(); %TINY_ERROR_INVALID for another word. tiny_tensor_randperm() cannot be different.
 *
 * Returns: (transfer container) (element-type TinyTensor): as of tiny_vmap()
 *
 * Since: 0.1
 */
TINY_API GPtrArray *tiny_vmap_with_randomness (TinyFunction function,
                                               gpointer user_data,
                                               TinyTensor *const *inputs,
                                               guint n_inputs,
                                               const gint *in_axes,
                                               guint n_in_axes,
                                               const gint *out_axes,
                                               guint n_out_axes,
                                               const char *randomness);

/**
 * tiny_jvp:
 * @function: (scope call) (closure user_data): a differentiable function
 * @user_data: for @function
 * @inputs: (array length=n_inputs): where it is evaluated
 * @n_inputs: how many
 * @tangents: (array length=n_tangents): the direction, for each input a tensor of its shape and
 *   dtype
 * @n_tangents: as many as there are inputs
 * @out_outputs: (out) (optional) (transfer container) (element-type TinyTensor): the results of
 *   @function
 *
 * The derivative of @function in a direction (forward mode): the product of its Jacobian and
 * @tangents. It costs about as much as @function itself, whatever the sizes.
 *
 * Errors: what a tensor carries, what @function fails with; %TINY_ERROR_INVALID when an input is of
 * no float dtype or a tangent does not fit.
 *
 * Returns: (transfer container) (element-type TinyTensor): for each result its derivative, zeros
 *   where it does not depend on the inputs; one tensor in error state where something is wrong
 *
 * Since: 0.1
 */
TINY_API GPtrArray *tiny_jvp (TinyFunction function,
                              gpointer user_data,
                              TinyTensor *const *inputs,
                              guint n_inputs,
                              TinyTensor *const *tangents,
                              guint n_tangents,
                              GPtrArray **out_outputs);

/**
 * tiny_vjp:
 * @function: (scope call) (closure user_data): a differentiable function
 * @user_data: for @function
 * @inputs: (array length=n_inputs): where it is evaluated
 * @n_inputs: how many
 * @cotangents: (array length=n_cotangents) (nullable): for each result what it is weighted with, of
 *   its shape and dtype; %NULL: there is one result, of one element
 * @n_cotangents: as many as @function gives results, or 0
 * @out_outputs: (out) (optional) (transfer container) (element-type TinyTensor): the results of
 *   @function
 *
 * The gradient of @function's results, weighted with @cotangents, with respect to its inputs
 * (reverse mode): the product of @cotangents and its Jacobian.
 *
 * Errors: as those of tiny_jvp().
 *
 * Returns: (transfer container) (element-type TinyTensor): for each input its gradient; one tensor
 *   in error state where something is wrong
 *
 * Since: 0.1
 */
TINY_API GPtrArray *tiny_vjp (TinyFunction function,
                              gpointer user_data,
                              TinyTensor *const *inputs,
                              guint n_inputs,
                              TinyTensor *const *cotangents,
                              guint n_cotangents,
                              GPtrArray **out_outputs);

/**
 * tiny_jacobian:
 * @function: (scope call) (closure user_data): a differentiable function
 * @user_data: for @function
 * @inputs: (array length=n_inputs): where it is evaluated
 * @n_inputs: how many
 *
 * All first derivatives. Each is computed for all its columns at once forward, or for all its rows
 * at once in reverse, whichever are fewer.
 *
 * Errors: as those of tiny_jvp().
 *
 * Returns: (transfer container) (element-type TinyTensor): for result 0 the derivative by each
 *   input, then for result 1 …; the shape is the result's followed by the input's. One tensor in
 *   error state where something is wrong
 *
 * Since: 0.1
 */
TINY_API GPtrArray *tiny_jacobian (TinyFunction function,
                                   gpointer user_data,
                                   TinyTensor *const *inputs,
                                   guint n_inputs);

/**
 * tiny_hessian:
 * @function: (scope call) (closure user_data): a twice differentiable function that gives one float
 * @user_data: for @function
 * @inputs: (array length=n_inputs): where it is evaluated
 * @n_inputs: how many
 *
 * All second derivatives: the Jacobian, forward, of the gradient.
 *
 * Errors: as those of tiny_jvp(), and %TINY_ERROR_INVALID when @function gives anything but one
 * float.
 *
 * Returns: (transfer container) (element-type TinyTensor): by input 0 and each input, then by input
 *   1 and each …; the shape is that of the one followed by that of the other. One tensor in error
 *   state where something is wrong
 *
 * Since: 0.1
 */
TINY_API GPtrArray *tiny_hessian (TinyFunction function,
                                  gpointer user_data,
                                  TinyTensor *const *inputs,
                                  guint n_inputs);

G_END_DECLS
