/* SPDX-License-Identifier: MIT
 *
 * tiny-optimizer.h: changes parameters along their gradients. */
#pragma once

#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

#define TINY_TYPE_OPTIMIZER (tiny_optimizer_get_type ())
TINY_API
G_DECLARE_FINAL_TYPE (TinyOptimizer, tiny_optimizer, TINY, OPTIMIZER, GObject)

/**
 * tiny_sgd_new:
 * @parameters: (array length=n): tensors that require gradients
 * @n: how many
 * @lr: the learning rate
 * @momentum: 0 for none
 * @weight_decay: 0 for none
 * @nesterov: whether the momentum looks ahead
 *
 * Stochastic gradient descent: m = momentum * m + g; p -= lr * m, with g the gradient plus
 * @weight_decay * p, and Nesterov's g + momentum * m instead of m (Sutskever et al. 2013).
 *
 * Returns: (transfer full): an optimiser
 *
 * Since: 0.1
 */
TINY_API TinyOptimizer *tiny_sgd_new (TinyTensor *const *parameters,
                                      guint n,
                                      double lr,
                                      double momentum,
                                      double weight_decay,
                                      gboolean nesterov);

/**
 * tiny_adam_new:
 * @parameters: (array length=n): tensors that require gradients
 * @n: how many
 * @lr: the learning rate
 * @beta1: 0.9
 * @beta2: 0.999
 * @epsilon: 1e-8
 * @weight_decay: 0 for Adam (Kingma and Ba 2015), else AdamW's (Loshchilov and Hutter 2019)
 *
 * Returns: (transfer full): an optimiser
 *
 * Since: 0.1
 */
TINY_API TinyOptimizer *tiny_adam_new (TinyTensor *const *parameters,
                                       guint n,
                                       double lr,
                                       double beta1,
                                       double beta2,
                                       double epsilon,
                                       double weight_decay);

/**
 * tiny_optimizer_step:
 * @self: an optimiser
 * @others: (array length=n_others) (nullable): tensors to realise along with the new parameters
 * @n_others: how many
 * @error: return location
 *
 * Assigns new values to all parameters that have a gradient, realises them together with the
 * optimiser's state and @others, and clears the gradients. Everything is one schedule, which
 * #TinyJit can capture.
 *
 * Errors: what a gradient carries, those of realising.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_optimizer_step (TinyOptimizer *self,
                                       TinyTensor *const *others,
                                       guint n_others,
                                       GError **error);

/**
 * tiny_optimizer_set_lr:
 * @self: an optimiser
 * @lr: the learning rate from now on
 * @error: return location
 *
 * Takes effect in captured steps too: the rate lives in device memory.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_optimizer_set_lr (TinyOptimizer *self, double lr, GError **error);

/**
 * tiny_optimizer_get_lr:
 * @self: an optimiser
 *
 * Returns: the learning rate
 *
 * Since: 0.1
 */
TINY_API double tiny_optimizer_get_lr (TinyOptimizer *self);

G_END_DECLS
