/* SPDX-License-Identifier: MIT
 *
 * tiny-optimizer.h: changes parameters along their gradients.
 *
 * An optimiser has groups of parameters with settings of their own, such as a learning rate; what makes it
 * puts all into group 0. All that changes from step to step is in device memory, so that #TinyJit can
 * capture a step. Numbers that cannot be (a negative rate, a NaN) are the error of the first step. Threads that use one
 * take turns. */
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
 * @weight_decay * p, and Nesterov's g + momentum * m instead of m (Sutskever et al. 2013). With the setting
 * "dampening" (tiny_optimizer_set_setting()), m = momentum * m + (1 - dampening) * g but for a parameter's first step.
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

/**
 * tiny_rmsprop_new:
 * @parameters: (array length=n): tensors that require gradients
 * @n: how many
 * @lr: the learning rate
 * @alpha: 0.99
 * @epsilon: 1e-8
 * @weight_decay: 0 for none
 * @momentum: 0 for none
 * @centered: whether the mean of gradients is taken from their squares
 *
 * RMSprop (Tieleman and Hinton 2012): v = α v + (1 - α) g²; p -= lr · g / (√v + ε), or with momentum m = momentum · m + g / (√v + ε);
 * p -= lr · m.
 *
 * Returns: (transfer full): an optimiser
 *
 * Since: 0.1
 */
TINY_API TinyOptimizer *tiny_rmsprop_new (TinyTensor *const *parameters,
                                          guint n,
                                          double lr,
                                          double alpha,
                                          double epsilon,
                                          double weight_decay,
                                          double momentum,
                                          gboolean centered);

/**
 * tiny_adagrad_new:
 * @parameters: (array length=n): tensors that require gradients
 * @n: how many
 * @lr: the learning rate
 * @lr_decay: 0 for none
 * @weight_decay: 0 for none
 * @initial_accumulator_value: what sums begin with, such as 0
 * @epsilon: 1e-10
 *
 * Adagrad (Duchi, Hazan and Singer 2011): s += g²; p -= lr / (1 + (t - 1) lr_decay) · g / (√s + ε), t counted from 1.
 *
 * Returns: (transfer full): an optimiser
 *
 * Since: 0.1
 */
TINY_API TinyOptimizer *tiny_adagrad_new (TinyTensor *const *parameters,
                                          guint n,
                                          double lr,
                                          double lr_decay,
                                          double weight_decay,
                                          double initial_accumulator_value,
                                          double epsilon);

/**
 * tiny_adadelta_new:
 * @parameters: (array length=n): tensors that require gradients
 * @n: how many
 * @lr: the learning rate, such as 1
 * @rho: 0.9
 * @epsilon: 1e-6
 * @weight_decay: 0 for none
 *
 * Adadelta (Zeiler 2012): v = ρ v + (1 - ρ) g²; d = √((u + ε) / (v + ε)) g; u = ρ u + (1 - ρ) d²; p -= lr · d.
 *
 * Returns: (transfer full): an optimiser
 *
 * Since: 0.1
 */
TINY_API TinyOptimizer *tiny_adadelta_new (TinyTensor *const *parameters,
                                           guint n,
                                           double lr,
                                           double rho,
                                           double epsilon,
                                           double weight_decay);

/**
 * tiny_adamax_new:
 * @parameters: (array length=n): tensors that require gradients
 * @n: how many
 * @lr: the learning rate
 * @beta1: 0.9
 * @beta2: 0.999
 * @epsilon: 1e-8
 * @weight_decay: 0 for none
 *
 * Adamax (Kingma and Ba 2015): m as Adam's; u = max (β₂ u, |g| + ε); p -= lr / (1 - β₁ᵗ) · m / u.
 *
 * Returns: (transfer full): an optimiser
 *
 * Since: 0.1
 */
TINY_API TinyOptimizer *tiny_adamax_new (TinyTensor *const *parameters,
                                         guint n,
                                         double lr,
                                         double beta1,
                                         double beta2,
                                         double epsilon,
                                         double weight_decay);

/**
 * tiny_nadam_new:
 * @parameters: (array length=n): tensors that require gradients
 * @n: how many
 * @lr: the learning rate
 * @beta1: 0.9
 * @beta2: 0.999
 * @epsilon: 1e-8
 * @weight_decay: 0 for none
 * @momentum_decay: 0.004
 *
 * NAdam (Dozat 2016): Adam with Nesterov's momentum, μ = β₁ (1 - ½ 0.96^(t · @momentum_decay)).
 *
 * Returns: (transfer full): an optimiser
 *
 * Since: 0.1
 */
TINY_API TinyOptimizer *tiny_nadam_new (TinyTensor *const *parameters,
                                        guint n,
                                        double lr,
                                        double beta1,
                                        double beta2,
                                        double epsilon,
                                        double weight_decay,
                                        double momentum_decay);

/**
 * tiny_radam_new:
 * @parameters: (array length=n): tensors that require gradients
 * @n: how many
 * @lr: the learning rate
 * @beta1: 0.9
 * @beta2: 0.999
 * @epsilon: 1e-8
 * @weight_decay: 0 for none
 *
 * RAdam (Liu et al. 2020): Adam whose second moment is used once it is of enough gradients, and then in part.
 *
 * Returns: (transfer full): an optimiser
 *
 * Since: 0.1
 */
TINY_API TinyOptimizer *tiny_radam_new (TinyTensor *const *parameters,
                                        guint n,
                                        double lr,
                                        double beta1,
                                        double beta2,
                                        double epsilon,
                                        double weight_decay);

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
 * More parameters, with the other settings of group 0.
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
 * How many groups of parameters with settings of their own there are: tiny_optimizer_add_group() adds one.
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
 * tiny_optimizer_set_group_momentum:
 * @self: an optimiser
 * @group: which of its groups
 * @momentum: the momentum from now on, or the first beta of Adam and its like
 * @error: return location
 *
 * From the first call on it lives in device memory: steps that are captured later follow it, as they do the rate.
 *
 * Errors: %TINY_ERROR_INVALID when there is no such group, or the number cannot be.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_optimizer_set_group_momentum (TinyOptimizer *self,
                                                     guint group,
                                                     double momentum,
                                                     GError **error);

/**
 * tiny_optimizer_get_group_lr:
 * @self: an optimiser
 * @group: which of its groups
 *
 * The rate of one group as it is now, after schedules and tiny_optimizer_set_group_lr().
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
 * The rate as it is now, where there is one group; of several that of the first.
 *
 * Returns: the learning rate of group 0
 *
 * Since: 0.1
 */
TINY_API double tiny_optimizer_get_lr (TinyOptimizer *self);

/**
 * tiny_optimizer_list_settings:
 * @self: an optimiser
 *
 * The settings of its kind, by PyTorch's names: "lr", "weight_decay", and of "momentum", "dampening", "nesterov" (0 or 1),
 * "beta1", "beta2", "eps", "trust" (of LARS), "ns_steps" (of Muon), "alpha" and "centered" (0 or 1, of RMSprop), "rho" (of Adadelta),
 * "lr_decay" and "initial_accumulator_value" (of Adagrad), "momentum_decay" (of NAdam), "amsgrad" (0 or 1, of Adam and AdamW: the size of
 * steps follows from the largest second moment so far, Reddi et al. 2018) those that it has; "maximize" (0 or 1) of all: up the gradient.
 *
 * Returns: (transfer full) (array zero-terminated=1): their names
 *
 * Since: 0.1
 */
TINY_API char **tiny_optimizer_list_settings (TinyOptimizer *self);

/**
 * tiny_optimizer_set_setting:
 * @self: an optimiser
 * @group: which of its groups
 * @name: one of tiny_optimizer_list_settings()
 * @value: its value from now on
 * @error: return location
 *
 * Changes how a group is changed by steps. What a recording (#TinyJit) holds keeps the values that it was recorded with,
 * but for "lr".
 *
 * Errors: %TINY_ERROR_INVALID when there is no such group or setting, or the value cannot be with the others.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_optimizer_set_setting (
    TinyOptimizer *self, guint group, const char *name, double value, GError **error);

/**
 * tiny_optimizer_get_setting:
 * @self: an optimiser
 * @group: which of its groups
 * @name: one of tiny_optimizer_list_settings()
 * @out_value: (out): its value
 * @error: return location
 *
 * Errors: %TINY_ERROR_INVALID when there is no such group or setting.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_optimizer_get_setting (
    TinyOptimizer *self, guint group, const char *name, double *out_value, GError **error);

/**
 * tiny_optimizer_get_error:
 * @self: an optimiser
 *
 * What was wrong with the arguments that the optimiser was made with, which is the error of its first step.
 *
 * Returns: (transfer none) (nullable): the error; %NULL when there is none
 *
 * Since: 0.1
 */
TINY_API const GError *tiny_optimizer_get_error (TinyOptimizer *self);

/* ---- steps ---- */
/**
 * tiny_optimizer_step:
 * @self: an optimiser
 * @others: (array length=n_others) (nullable): tensors to realise along with the new parameters
 * @n_others: how many
 * @error: return location
 *
 * Assigns new values to all parameters that have a gradient, and realises them together with the
 * optimiser's state, what modules have moved (tiny_module_move_buffer()) and @others. Everything is one schedule, which
 * #TinyJit can capture. The gradients stay, and those of the next loss are added to them, until tiny_optimizer_zero_grad().
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
 * Its state: "0.lr" of group 0, "0.step", and "0.3.exp_avg", "0.3.exp_avg_sq" or "0.3.momentum_buffer" of parameter 3
 * of that group, as far as there are: PyTorch's names and meanings. They are the optimiser's own, not copies.
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

G_END_DECLS
