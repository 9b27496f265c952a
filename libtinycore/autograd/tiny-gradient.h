/* SPDX-License-Identifier: MIT
 *
 * tiny-gradient.h: gradients of tensors. */
#pragma once

#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

/**
 * tiny_tensor_backward:
 * @loss: a float tensor of one element
 * @error: return location
 *
 * Adds the gradient of @loss to what tiny_tensor_get_grad() gives for every tensor that @loss is
 * computed from and that requires one (tiny_tensor_set_requires_grad()). Nothing runs: gradients
 * are lazy tensors, of which gradients can be taken again. What was realised or read before keeps
 * what it was made of, until something of that is assigned to or written: a loss is no use after the
 * step of an optimiser.
 *
 * Errors: what @loss carries; %TINY_ERROR_INVALID when it is not one float, depends on no tensor
 * that requires a gradient or only through what was detached or made while gradients were disabled, or on
 * something realised of what was assigned to since.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_tensor_backward (TinyTensor *loss, GError **error);

/**
 * tiny_tensor_backward_with:
 * @self: a float tensor
 * @gradient: (nullable): the gradient of what is computed from @self with respect to it, of its
 *   shape and dtype; %NULL: @self is the loss itself, of one element
 * @error: return location
 *
 * As tiny_tensor_backward(), for a tensor that is no loss: adds the gradient of the sum of @self
 * times @gradient.
 *
 * Errors: as those of tiny_tensor_backward(); what @gradient carries; %TINY_ERROR_INVALID when it
 * does not fit.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_tensor_backward_with (TinyTensor *self,
                                             TinyTensor *gradient,
                                             GError **error);

/**
 * tiny_gradient:
 * @loss: a float tensor of one element
 * @xs: (array length=n): tensors
 * @n: how many
 * @out_grads: (out caller-allocates) (array length=n): where to put the gradient of each, a new
 *   reference; zeros for what @loss does not depend on
 * @error: return location
 *
 * The gradient of @loss with respect to each of @xs. Two of them that are the same expression
 * count as one and have the same gradient.
 *
 * Errors: what an argument carries; %TINY_ERROR_INVALID when @loss is not one float or an x is not
 * of a float dtype.
 *
 * Returns: whether it worked; if not, @out_grads holds nothing to free
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_gradient (
    TinyTensor *loss, TinyTensor *const *xs, guint n, TinyTensor **out_grads, GError **error);

/**
 * tiny_tensor_gradient:
 * @self: a float tensor
 * @targets: (array length=n_targets): tensors of float dtypes
 * @n_targets: how many
 * @gradient: (nullable): the gradient of what is computed from @self with respect to it, of its
 *   shape and dtype; %NULL: @self has one element, and it is 1
 *
 * The gradient of the sum of @self times @gradient with respect to each of @targets: zeros for
 * what @self does not depend on. Gradients are lazy tensors, of which gradients can be taken again.
 *
 * They follow the graph as it is: they go through what was assigned to a tensor, unless that requires
 * gradients itself, and stop at tiny_tensor_detach(), at what was made while gradients were disabled
 * (tiny_set_grad_enabled()), at results of a captured function (#TinyJit), and in one at what was assigned and
 * realised if it read its own old value. They go through what was realised otherwise.
 *
 * Returns: (transfer container) (element-type TinyTensor): as many gradients as targets; in error
 *   state when an argument is or does not fit
 *
 * Since: 0.1
 */
TINY_API GPtrArray *tiny_tensor_gradient (TinyTensor *self,
                                          TinyTensor *const *targets,
                                          guint n_targets,
                                          TinyTensor *gradient);

/**
 * tiny_tensor_depends_on:
 * @self: a tensor
 * @other: another
 *
 * Looks whether @self is made of @other in a way that gradients could take: not through tiny_tensor_detach(), nor what was
 * made while gradients were disabled. The gradient may be zeros all the same.
 *
 * Returns: whether that is so
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_tensor_depends_on (TinyTensor *self, TinyTensor *other);

G_END_DECLS
