/* SPDX-License-Identifier: MIT
 *
 * tiny-optimizer.h: changes parameters along their gradients.
 *
 * An optimiser has groups of parameters with a learning rate and a weight decay of their own; what makes it
 * puts all into group 0. All that changes from step to step is in device memory, so that #TinyJit can
 * capture a step. Numbers that cannot be (a negative rate, a NaN) are the error of the first step. */
#pragma once

#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

#define TINY_TYPE_OPTIMIZER (tiny_optimizer_get_type ())
TINY_API
G_DECLARE_FINAL_TYPE (TinyOptimizer, tiny_optimizer, TINY, OPTIMIZER, GObject)

/**
 * TinyOptimizer:
 *
 * Parameters and how they change.
 *
 * Since: 0.1
 */

/* ---- kinds ---- */
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
 * tiny_optimizer_set_dampening:
 * @self: what tiny_sgd_new() made with a momentum and without @nesterov
 * @dampening: what a gradient lacks when it is added to the momentum: m = momentum * m +
 *   (1 - @dampening) * g, but for a parameter's first
 * @error: return location
 *
 * Before the first step.
 *
 * Errors: %TINY_ERROR_INVALID for another optimiser, after a step, or a number that cannot be.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_optimizer_set_dampening (TinyOptimizer *self,
                                                double dampening,
                                                GError **error);

/**
 * tiny_adam_new:
 * @parameters: (array length=n): tensors that require gradients
 * @n: how many
 * @lr: the learning rate
 * @beta1: 0.9
 * @beta2: 0.999
 * @epsilon: 1e-8
 * @weight_decay: 0 for none; this times p is added to the gradient
 *
 * Adam (Kingma and Ba 2015): m = β₁ m + (1 - β₁) g; v = β₂ v + (1 - β₂) g²;
 * p -= lr · m / (1 - β₁ᵗ) / (√(v / (1 - β₂ᵗ)) + ε), t counted from 1.
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
 * tiny_adamw_new:
 * @parameters: (array length=n): tensors that require gradients
 * @n: how many
 * @lr: the learning rate
 * @beta1: 0.9
 * @beta2: 0.999
 * @epsilon: 1e-8
 * @weight_decay: such as 0.01; lr times this times p is taken from p
 *
 * Adam whose weight decay is no part of the gradient (Loshchilov and Hutter 2019).
 *
 * Returns: (transfer full): an optimiser
 *
 * Since: 0.1
 */
TINY_API TinyOptimizer *tiny_adamw_new (TinyTensor *const *parameters,
                                        guint n,
                                        double lr,
                                        double beta1,
                                        double beta2,
                                        double epsilon,
                                        double weight_decay);

/**
 * tiny_lamb_new:
 * @parameters: (array length=n): tensors that require gradients
 * @n: how many
 * @lr: the learning rate
 * @beta1: 0.9
 * @beta2: 0.999
 * @epsilon: 1e-6
 * @weight_decay: 0 for none
 *
 * LAMB (You et al. 2020): p -= lr · ‖p‖ / ‖u‖ · u, where u is AdamW's change, weight decay included; the
 * ratio is 1 where a norm is 0.
 *
 * Returns: (transfer full): an optimiser
 *
 * Since: 0.1
 */
TINY_API TinyOptimizer *tiny_lamb_new (TinyTensor *const *parameters,
                                       guint n,
                                       double lr,
                                       double beta1,
                                       double beta2,
                                       double epsilon,
                                       double weight_decay);

/**
 * tiny_lars_new:
 * @parameters: (array length=n): tensors that require gradients
 * @n: how many
 * @lr: the learning rate
 * @momentum: such as 0.9
 * @weight_decay: such as 1e-4
 * @nesterov: whether the momentum looks ahead
 * @trust: such as 1e-3
 *
 * LARS (You, Gitman and Ginsburg 2017): SGD of lr · r · (g + weight_decay · p), where r is
 * @trust · ‖p‖ / (‖g‖ + weight_decay · ‖p‖), or 1 where a norm is 0.
 *
 * Returns: (transfer full): an optimiser
 *
 * Since: 0.1
 */
TINY_API TinyOptimizer *tiny_lars_new (TinyTensor *const *parameters,
                                       guint n,
                                       double lr,
                                       double momentum,
                                       double weight_decay,
                                       gboolean nesterov,
                                       double trust);

/**
 * tiny_muon_new:
 * @parameters: (array length=n): tensors that require gradients, of 1 axis or more; others than matrices count
 *   as a matrix of their first axis
 * @n: how many
 * @lr: the learning rate, such as 0.02
 * @momentum: such as 0.95
 * @weight_decay: such as 0.1; lr times this times p is taken from p
 * @n_steps: steps of Newton and Schulz, such as 5
 * @nesterov: whether the momentum looks ahead
 *
 * Muon (Jordan et al. 2024): SGD whose change is made about orthogonal: x = u / (‖u‖ + 1e-7), then @n_steps times
 * a = x xᵀ; x = 3.4445 x + (-4.775 a + 2.0315 a a) x, on the transposed matrix where there are more rows
 * than columns.
 *
 * Returns: (transfer full): an optimiser
 *
 * Since: 0.1
 */
TINY_API TinyOptimizer *tiny_muon_new (TinyTensor *const *parameters,
                                       guint n,
                                       double lr,
                                       double momentum,
                                       double weight_decay,
                                       guint n_steps,
                                       gboolean nesterov);

/* ---- groups ---- */
/**
 * tiny_optimizer_add_group:
 * @self: an optimiser
 * @parameters: (array length=n): tensors that require gradients
 * @n: how many
 * @lr: their learning rate
 * @weight_decay: their weight decay
 * @error: return location
 *
 * More parameters, which otherwise change as those before.
 *
 * Errors: %TINY_ERROR_INVALID for a parameter that is there already, and numbers that cannot be; what a
 * parameter carries.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_optimizer_add_group (TinyOptimizer *self,
                                            TinyTensor *const *parameters,
                                            guint n,
                                            double lr,
                                            double weight_decay,
                                            GError **error);

/**
 * tiny_optimizer_get_n_groups:
 * @self: an optimiser
 *
 * Returns: how many groups there are, at least 1
 *
 * Since: 0.1
 */
TINY_API guint tiny_optimizer_get_n_groups (TinyOptimizer *self);

/**
 * tiny_optimizer_set_group_lr:
 * @self: an optimiser
 * @group: which of its groups
 * @lr: the learning rate from now on
 * @error: return location
 *
 * Takes effect in captured steps too: the rate lives in device memory.
 *
 * Errors: %TINY_ERROR_INVALID when there is no such group, or the rate is negative or not finite.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_optimizer_set_group_lr (TinyOptimizer *self,
                                               guint group,
                                               double lr,
                                               GError **error);

/**
 * tiny_optimizer_get_group_lr:
 * @self: an optimiser
 * @group: which of its groups
 *
 * Returns: its learning rate; 0 when there is no such group
 *
 * Since: 0.1
 */
TINY_API double tiny_optimizer_get_group_lr (TinyOptimizer *self, guint group);

/**
 * tiny_optimizer_set_lr:
 * @self: an optimiser
 * @lr: the learning rate from now on
 * @error: return location
 *
 * tiny_optimizer_set_group_lr() of all groups.
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
 * Returns: the learning rate of group 0
 *
 * Since: 0.1
 */
TINY_API double tiny_optimizer_get_lr (TinyOptimizer *self);

/* ---- steps ---- */
/**
 * tiny_optimizer_step:
 * @self: an optimiser
 * @others: (array length=n_others) (nullable): tensors to realise along with the new parameters
 * @n_others: how many
 * @error: return location
 *
 * Assigns new values to all parameters that have a gradient, realises them together with the
 * optimiser's state, what modules have moved (tiny_module_move_buffer()) and @others, and clears the
 * gradients. Everything is one schedule, which #TinyJit can capture. Gradients of several losses add up
 * until then.
 *
 * Errors: what a gradient carries, those of realising; what the optimiser was made with.
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
 * tiny_optimizer_zero_grad:
 * @self: an optimiser
 *
 * Forgets the gradients of all its parameters.
 *
 * Since: 0.1
 */
TINY_API void tiny_optimizer_zero_grad (TinyOptimizer *self);

/**
 * tiny_optimizer_get_state_dict:
 * @self: an optimiser
 *
 * Its state: "0.lr" of group 0, "0.powers", and "0.3.first" and "0.3.second" of the moments of parameter 3 of that
 * group, as far as there are. They are the optimiser's own, not copies.
 *
 * Returns: (transfer container) (element-type utf8 TinyTensor): names and tensors, which it owns
 *
 * Since: 0.1
 */
TINY_API GHashTable *tiny_optimizer_get_state_dict (TinyOptimizer *self);

/**
 * tiny_optimizer_load_state_dict:
 * @self: an optimiser of as many parameters of the same shapes
 * @state: (element-type utf8 TinyTensor): what tiny_optimizer_get_state_dict() gave
 * @error: return location
 *
 * Goes on where another has stopped.
 *
 * Errors: those of tiny_module_load_state_dict(). Nothing has changed then.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_optimizer_load_state_dict (TinyOptimizer *self,
                                                  GHashTable *state,
                                                  GError **error);

/* ---- between backward and step ---- */
/**
 * tiny_clip_grad_norm:
 * @parameters: (array length=n): tensors with gradients
 * @n: how many
 * @max_norm: how large all gradients together may be
 * @norm: which norm: 2, 1, infinity, or another number above 0
 *
 * Scales all gradients by @max_norm / (their norm + 1e-6) where that is below 1. Nothing runs.
 *
 * Returns: (transfer floating): the norm before, of shape (); it carries what is wrong, in which case nothing is
 *   scaled
 *
 * Since: 0.1
 */
TINY_API TinyTensor *
tiny_clip_grad_norm (TinyTensor *const *parameters, guint n, double max_norm, double norm);

/**
 * tiny_clip_grad_value:
 * @parameters: (array length=n): tensors with gradients
 * @n: how many
 * @value: how large an element of a gradient may be
 * @error: return location
 *
 * Moves elements of gradients to -@value … @value. Nothing runs.
 *
 * Errors: %TINY_ERROR_INVALID when @value is negative or not a number.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_clip_grad_value (TinyTensor *const *parameters,
                                        guint n,
                                        double value,
                                        GError **error);

G_END_DECLS
