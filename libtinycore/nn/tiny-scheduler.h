/* SPDX-License-Identifier: MIT
 *
 * tiny-scheduler.h: learning rates as functions of time.
 *
 * A scheduler sets the rates of all groups of its optimiser when it is made and at each step of it, in terms of
 * their rates before (as PyTorch's do, whose names these have), so that several can be chained. Rates are
 * in device memory: captured steps follow. All makers give %TINY_ERROR_INVALID for numbers that cannot be. */
#pragma once

#include "nn/tiny-optimizer.h"

G_BEGIN_DECLS

#define TINY_TYPE_SCHEDULER (tiny_scheduler_get_type ())
TINY_API
G_DECLARE_FINAL_TYPE (TinyScheduler, tiny_scheduler, TINY, SCHEDULER, GObject)

/**
 * TinyScheduler:
 *
 * A learning rate that changes.
 *
 * Since: 0.1
 */

/**
 * tiny_scheduler_step:
 * @self: a scheduler
 * @error: return location
 *
 * Goes on by one and sets the rates.
 *
 * Errors: %TINY_ERROR_INVALID after the end of a cycle, or where a metric is needed.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_scheduler_step (TinyScheduler *self, GError **error);

/**
 * tiny_scheduler_step_metric:
 * @self: what tiny_reduce_lr_on_plateau_new() made
 * @metric: what is watched, such as a loss
 * @error: return location
 *
 * Goes on by one and lowers the rates if @metric has not become better for long enough.
 *
 * Errors: %TINY_ERROR_INVALID for another scheduler.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_scheduler_step_metric (TinyScheduler *self,
                                              double metric,
                                              GError **error);

/**
 * tiny_scheduler_get_epoch:
 * @self: a scheduler
 *
 * How far @self is, PyTorch's `last_epoch`: 0 when it was made.
 *
 * Returns: how many steps it has made
 *
 * Since: 0.1
 */
TINY_API guint64 tiny_scheduler_get_epoch (TinyScheduler *self);

/**
 * tiny_step_lr_new:
 * @optimizer: whose rates
 * @step_size: how many steps lie between changes
 * @gamma: what rates are multiplied by
 * @error: return location
 *
 * Every @step_size steps, times @gamma.
 *
 * Returns: (transfer full) (nullable): a scheduler
 *
 * Since: 0.1
 */
TINY_API TinyScheduler *
tiny_step_lr_new (TinyOptimizer *optimizer, guint step_size, double gamma, GError **error);

/**
 * tiny_multi_step_lr_new:
 * @optimizer: whose rates
 * @milestones: (array length=n): steps, ascending
 * @n: how many
 * @gamma: what rates are multiplied by
 * @error: return location
 *
 * At each of the steps, times @gamma.
 *
 * Returns: (transfer full) (nullable): a scheduler
 *
 * Since: 0.1
 */
TINY_API TinyScheduler *tiny_multi_step_lr_new (
    TinyOptimizer *optimizer, const guint64 *milestones, guint n, double gamma, GError **error);

/**
 * tiny_exponential_lr_new:
 * @optimizer: whose rates
 * @gamma: what rates are multiplied by
 * @error: return location
 *
 * At each step, times @gamma.
 *
 * Returns: (transfer full) (nullable): a scheduler
 *
 * Since: 0.1
 */
TINY_API TinyScheduler *
tiny_exponential_lr_new (TinyOptimizer *optimizer, double gamma, GError **error);

/**
 * tiny_constant_lr_new:
 * @optimizer: whose rates
 * @factor: what rates are multiplied by, above 0
 * @total: for how many steps
 * @error: return location
 *
 * Times @factor, until @total steps have been made.
 *
 * Returns: (transfer full) (nullable): a scheduler
 *
 * Since: 0.1
 */
TINY_API TinyScheduler *
tiny_constant_lr_new (TinyOptimizer *optimizer, double factor, guint total, GError **error);

/**
 * tiny_linear_lr_new:
 * @optimizer: whose rates
 * @start: what rates are multiplied by at first, above 0, such as 1e-3
 * @end: and at the end, such as 1
 * @total: how many steps lie between
 * @error: return location
 *
 * Along a line: a warm-up where @start is below @end.
 *
 * Returns: (transfer full) (nullable): a scheduler
 *
 * Since: 0.1
 */
TINY_API TinyScheduler *tiny_linear_lr_new (
    TinyOptimizer *optimizer, double start, double end, guint total, GError **error);

/**
 * tiny_polynomial_lr_new:
 * @optimizer: whose rates
 * @total: how many steps it takes to 0
 * @power: of the polynomial, such as 1
 * @error: return location
 *
 * Times (1 - step / @total) to the power @power.
 *
 * Returns: (transfer full) (nullable): a scheduler
 *
 * Since: 0.1
 */
TINY_API TinyScheduler *
tiny_polynomial_lr_new (TinyOptimizer *optimizer, guint total, double power, GError **error);

/**
 * tiny_cosine_annealing_lr_new:
 * @optimizer: whose rates
 * @period: how many steps it takes to @lowest
 * @lowest: the lowest rate
 * @error: return location
 *
 * Along half a cosine down to @lowest, and up again (Loshchilov and Hutter 2017).
 *
 * Returns: (transfer full) (nullable): a scheduler
 *
 * Since: 0.1
 */
TINY_API TinyScheduler *tiny_cosine_annealing_lr_new (TinyOptimizer *optimizer,
                                                      guint period,
                                                      double lowest,
                                                      GError **error);

/**
 * tiny_cosine_annealing_warm_restarts_new:
 * @optimizer: whose rates
 * @period: how many steps the first period has
 * @growth: how many times as long the next is, such as 1
 * @lowest: the lowest rate
 * @error: return location
 *
 * Along half a cosine down to @lowest, then from the start again (Loshchilov and Hutter 2017).
 *
 * Returns: (transfer full) (nullable): a scheduler
 *
 * Since: 0.1
 */
TINY_API TinyScheduler *tiny_cosine_annealing_warm_restarts_new (
    TinyOptimizer *optimizer, guint period, guint growth, double lowest, GError **error);

/**
 * tiny_one_cycle_lr_new:
 * @optimizer: whose rates
 * @highest: the highest rate
 * @total: how many steps there will be
 * @rising: the part of them in which the rate rises, such as 0.3
 * @start_divisor: @highest over the first rate, such as 25
 * @end_divisor: the first rate over the last, such as 1e4
 * @error: return location
 *
 * Along half a cosine up, and along another down (Smith and Topin 2019). The momentum stays, unless
 * tiny_scheduler_cycle_momentum() is called.
 *
 * Returns: (transfer full) (nullable): a scheduler
 *
 * Since: 0.1
 */
TINY_API TinyScheduler *tiny_one_cycle_lr_new (TinyOptimizer *optimizer,
                                               double highest,
                                               guint total,
                                               double rising,
                                               double start_divisor,
                                               double end_divisor,
                                               GError **error);

/**
 * tiny_scheduler_cycle_momentum:
 * @self: what tiny_one_cycle_lr_new() made
 * @least: the momentum where the rate is highest, such as 0.85
 * @largest: the momentum at the begin and at the end, below 1, such as 0.95
 * @error: return location
 *
 * From now on the momentum of all groups, or the first beta of Adam and its like, goes down while the rate rises,
 * and back while it falls. It is in device memory then: captured steps follow.
 *
 * Errors: %TINY_ERROR_INVALID for another scheduler, and for numbers that cannot be.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_scheduler_cycle_momentum (TinyScheduler *self,
                                                 double least,
                                                 double largest,
                                                 GError **error);

/**
 * TinyRateFunction:
 * @epoch: how many steps have been made
 * @user_data: what tiny_lambda_lr_new() was given
 *
 * A rate as a function of time: called when the schedule is made and at each of its steps.
 *
 * Returns: what the rates at the start are multiplied by
 *
 * Since: 0.1
 */
typedef double (*TinyRateFunction) (guint64 epoch, gpointer user_data);

/**
 * tiny_lambda_lr_new:
 * @optimizer: whose rates
 * @function: (scope notified) (closure user_data) (destroy destroy): a factor for each step
 * @user_data: for @function
 * @destroy: (nullable): frees @user_data, also when there is an error
 * @error: return location
 *
 * The rates at the start times what a function says.
 *
 * Returns: (transfer full) (nullable): a scheduler
 *
 * Since: 0.1
 */
TINY_API TinyScheduler *tiny_lambda_lr_new (TinyOptimizer *optimizer,
                                            TinyRateFunction function,
                                            gpointer user_data,
                                            GDestroyNotify destroy,
                                            GError **error);

/**
 * tiny_reduce_lr_on_plateau_new:
 * @optimizer: whose rates
 * @largest: whether larger metrics are better
 * @factor: what rates are multiplied by, below 1, such as 0.1
 * @patience: how many steps without a better metric are waited for, such as 10
 * @threshold: by how much of the best a metric has to be better, such as 1e-4
 * @cooldown: how many steps nothing is counted after a change, such as 0
 * @lowest: the lowest rate
 * @error: return location
 *
 * Times @factor when a metric (tiny_scheduler_step_metric()) does not become better.
 *
 * Returns: (transfer full) (nullable): a scheduler
 *
 * Since: 0.1
 */
TINY_API TinyScheduler *tiny_reduce_lr_on_plateau_new (TinyOptimizer *optimizer,
                                                       gboolean largest,
                                                       double factor,
                                                       guint patience,
                                                       double threshold,
                                                       guint cooldown,
                                                       double lowest,
                                                       GError **error);

/**
 * tiny_sequential_lr_new:
 * @schedulers: (array length=n): schedulers of one optimiser
 * @n: how many
 * @milestones: (array length=n_milestones): the steps at which each but the first begins, ascending
 * @n_milestones: one less than @n
 * @error: return location
 *
 * One after the other, each from the rates at the start.
 *
 * Returns: (transfer full) (nullable): a scheduler
 *
 * Since: 0.1
 */
TINY_API TinyScheduler *tiny_sequential_lr_new (TinyScheduler *const *schedulers,
                                                guint n,
                                                const guint64 *milestones,
                                                guint n_milestones,
                                                GError **error);

/**
 * tiny_chained_scheduler_new:
 * @schedulers: (array length=n): schedulers of one optimiser
 * @n: how many
 * @error: return location
 *
 * All at once: each changes what the one before has set.
 *
 * Returns: (transfer full) (nullable): a scheduler
 *
 * Since: 0.1
 */
TINY_API TinyScheduler *
tiny_chained_scheduler_new (TinyScheduler *const *schedulers, guint n, GError **error);

G_END_DECLS
