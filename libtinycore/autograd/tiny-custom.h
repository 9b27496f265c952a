/* SPDX-License-Identifier: MIT
 *
 * tiny-custom.h: functions with a gradient of their own, and such as are computed again for it. */
#pragma once

#include "autograd/tiny-function.h"

G_BEGIN_DECLS

/**
 * TinyBackwardFunction:
 * @gradients: (array length=n_gradients): the gradient with respect to each result, of its shape and
 *   dtype
 * @n_gradients: how many
 * @inputs: (array length=n_inputs): what the function was called with
 * @n_inputs: how many
 * @outputs: (array length=n_outputs): what it gave
 * @n_outputs: how many
 * @user_data: (closure): what goes with the function
 * @error: return location
 *
 * The gradient of a function, as tiny_custom_gradient() takes it. What it needs of the computation
 * beside the inputs may be results that nobody else uses. It may get tensors that stand for others,
 * which have no values (see #TinyFunction).
 *
 * Returns: (transfer full) (element-type TinyTensor) (nullable): for each input its gradient, of its
 *   shape and dtype; %NULL in place of one that there is none of. %NULL with @error set
 *
 * Since: 0.1
 */
typedef GPtrArray *(*TinyBackwardFunction) (TinyTensor *const *gradients,
                                            guint n_gradients,
                                            TinyTensor *const *inputs,
                                            guint n_inputs,
                                            TinyTensor *const *outputs,
                                            guint n_outputs,
                                            gpointer user_data,
                                            GError **error);

/**
 * tiny_custom_gradient:
 * @function: (scope call) (closure user_data): what is computed
 * @user_data: for @function
 * @backward: (scope notified) (closure backward_data) (destroy backward_destroy): its gradient
 * @backward_data: for @backward
 * @backward_destroy: (nullable): frees @backward_data, when nothing is left that @backward is for
 * @inputs: (array length=n_inputs): tensors
 * @n_inputs: how many
 *
 * Calls @function, whose gradient is what @backward says, not that of what it computes. @backward is
 * called whenever a gradient is taken; it need not be linear in the gradients that it gets. What it
 * computes may be differentiated again, like all else. Tensors that @function uses beside its inputs
 * get no gradient through it.
 *
 * Derivatives forward (tiny_jvp()) are made of @backward, which then has to be linear.
 *
 * Errors: what an input carries, what @function fails with. What @backward fails with, or
 * %TINY_ERROR_INVALID when its gradients do not fit, comes from where the gradient is taken.
 *
 * Returns: (transfer container) (element-type TinyTensor): the results of @function; one tensor in
 *   error state where something is wrong
 *
 * Since: 0.1
 */
TINY_API GPtrArray *tiny_custom_gradient (TinyFunction function,
                                          gpointer user_data,
                                          TinyBackwardFunction backward,
                                          gpointer backward_data,
                                          GDestroyNotify backward_destroy,
                                          TinyTensor *const *inputs,
                                          guint n_inputs);

/**
 * tiny_checkpoint:
 * @function: (scope call) (closure user_data): what is computed
 * @user_data: for @function
 * @inputs: (array length=n_inputs): tensors
 * @n_inputs: how many
 *
 * Calls @function; what it computes on the way to its results is not kept for gradients, but
 * computed again from @inputs when gradients need it, and not before. That takes the time of
 * @function once more and the memory of what is between @inputs and the results. @function is called
 * once only; other tensors that it uses get their gradients too.
 *
 * Errors: what an input carries, what @function fails with.
 *
 * Returns: (transfer container) (element-type TinyTensor): the results of @function; one tensor in
 *   error state where something is wrong
 *
 * Since: 0.1
 */
TINY_API GPtrArray *tiny_checkpoint (TinyFunction function,
                                     gpointer user_data,
                                     TinyTensor *const *inputs,
                                     guint n_inputs);

/**
 * tiny_tensor_contiguous_backward:
 * @self: a tensor
 *
 * @self, whose gradient is stored before anything else is made of it, as tiny_tensor_contiguous()
 * does with values.
 *
 * Returns: (transfer floating): the same values
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_contiguous_backward (TinyTensor *self);

G_END_DECLS
