/* SPDX-License-Identifier: MIT
 *
 * tiny-gradient-hook.h: functions that see, and may change, the gradient of a tensor. */
#pragma once

#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

/**
 * TinyGradientHook:
 * @gradient: the gradient of a tensor, of its shape and dtype
 * @user_data: (closure): what goes with the function
 * @error: return location
 *
 * A function of a gradient, as tiny_tensor_add_gradient_hook() takes it.
 *
 * Returns: (transfer full) (nullable): a tensor of the same shape and dtype in the place of @gradient, or %NULL: that stays
 *
 * Since: 0.1
 */
typedef TinyTensor *(*TinyGradientHook) (TinyTensor *gradient,
                                         gpointer user_data,
                                         GError **error);

/**
 * tiny_tensor_add_gradient_hook:
 * @self: a tensor that gradients flow to
 * @hook: (scope notified) (closure user_data) (destroy destroy): a function
 * @user_data: for @hook
 * @destroy: (nullable): frees @user_data
 * @error: return location
 *
 * Calls @hook whenever the gradient of @self is found: within tiny_tensor_backward() and tiny_tensor_gradient(), before it is
 * added to what @self has or goes on to what @self is made of. The gradient is a lazy tensor then, as all are: nothing was
 * computed, and a hook that reads it computes it.
 *
 * Of a tensor that requires gradients (tiny_tensor_set_requires_grad()) that is the gradient of all its uses. Of one that is
 * computed it is that of uses from its first hook on: what was made of @self before does not know of them. Hooks are called in
 * the order of their coming.
 * A recorded function (#TinyJit) calls it while it is recorded, and replays what it made of the gradient.
 *
 * Errors: what @self carries; %TINY_ERROR_INVALID when no gradient flows to it. What @hook fails with, or gives that does not
 * fit, comes from where the gradient is taken.
 *
 * Returns: a number for tiny_tensor_remove_gradient_hook(), or 0 where it did not work
 *
 * Since: 0.1
 */
TINY_API guint tiny_tensor_add_gradient_hook (TinyTensor *self,
                                              TinyGradientHook hook,
                                              gpointer user_data,
                                              GDestroyNotify destroy,
                                              GError **error);

/**
 * tiny_tensor_remove_gradient_hook:
 * @self: a tensor
 * @id: what tiny_tensor_add_gradient_hook() gave
 *
 * Ends that hook, also for what was made of @self meanwhile. A hook may end itself: its @user_data is freed once it has returned.
 *
 * Returns: whether it was there
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_tensor_remove_gradient_hook (TinyTensor *self, guint id);

G_END_DECLS
