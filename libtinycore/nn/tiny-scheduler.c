/* SPDX-License-Identifier: MIT
 *
 * tiny-scheduler.c: learning rates as functions of time.
 *
 * A rate follows from the one before (next()); where a schedule begins again, from that at the start (first()). */
#include "nn/tiny-scheduler.h"

#include <math.h>

#include "base/tiny-error.h"
#include "base/tiny-guard.h"
#include "nn/optimizer-private.h"

typedef enum {
  STEP,
  MULTI_STEP,
  EXPONENTIAL,
  CONSTANT,
  LINEAR,
  POLYNOMIAL,
  COSINE,
  RESTARTS,
  ONE_CYCLE,
  LAMBDA,
  PLATEAU,
  SEQUENTIAL,
  CHAINED,
} Kind;

struct _TinyScheduler {
  GObject parent_instance;
  Kind kind;
  TinyOptimizer *optimizer;
  guint64 epoch;
  double factor, end; /* gamma, factor, power, or the numbers of the kind's maker */
  guint64 total;      /* step_size, total or period */
  double lowest;
  /* warm restarts */
  guint64 at, period, growth;
  /* one cycle */
  double highest, start_divisor, rising;
  gboolean has_momentum; /* which goes from the larger to the smaller and back */
  double least_momentum, largest_momentum;
  /* a function */
  TinyRateFunction function;
  gpointer user_data;
  GDestroyNotify destroy;
  /* plateau */
  gboolean largest;
  double best, threshold;
  guint patience, n_bad, cooldown, n_cooling;
  /* sequences and chains */
  GPtrArray *schedulers;
  GArray *milestones;
};

G_DEFINE_FINAL_TYPE (TinyScheduler, tiny_scheduler, G_TYPE_OBJECT)

static void
tiny_scheduler_finalize (GObject *object)
{
  TinyScheduler *self = TINY_SCHEDULER (object);
  g_clear_object (&self->optimizer);
  g_clear_pointer (&self->schedulers, g_ptr_array_unref);
  g_clear_pointer (&self->milestones, g_array_unref);
  if (self->destroy != NULL)
    self->destroy (self->user_data);
  G_OBJECT_CLASS (tiny_scheduler_parent_class)->finalize (object);
}

static void
tiny_scheduler_class_init (TinySchedulerClass *class)
{
  G_OBJECT_CLASS (class)->finalize = tiny_scheduler_finalize;
}

static void
tiny_scheduler_init (TinyScheduler *self)
{
  self->kind = PLATEAU; /* of no optimiser, where it is made as any object is */
}

/* ---- rates ---- */
static guint
count_milestones (const TinyScheduler *self, guint64 epoch)
{
  guint n = 0;
  for (guint i = 0; i < self->milestones->len; i++)
    n += g_array_index (self->milestones, guint64, i) == epoch;
  return n;
}

/* Along half a cosine from @a to @b. */
static double
anneal (double a, double b, double part)
{
  return b + (a - b) / 2 * (1 + cos (G_PI * part));
}

/* From @first to @turn while the rate rises, and to @last while it falls. */
static double
one_cycle (const TinyScheduler *self, double first, double turn, double last)
{
  double top = self->rising * (double) self->total - 1, at = (double) self->epoch;
  if (at <= top)
    return anneal (first, turn, top == 0 ? 1 : at / top);
  return anneal (turn, last, (at - top) / ((double) self->total - 1 - top));
}

static double
one_cycle_rate (const TinyScheduler *self)
{
  double first = self->highest / self->start_divisor;
  return one_cycle (self, first, self->highest, first / self->end);
}

static double
next_cosine (const TinyScheduler *self, double base, double rate)
{
  double period = (double) self->total, at = (double) self->epoch;
  if ((self->epoch + 2 * self->total - 1 - self->total) % (2 * self->total) == 0)
    return rate + (base - self->lowest) * (1 - cos (G_PI / period)) / 2;
  return (1 + cos (G_PI * at / period)) / (1 + cos (G_PI * (at - 1) / period))
             * (rate - self->lowest)
         + self->lowest;
}

/* The rate at the start of a schedule, from @base. */
static double
first (const TinyScheduler *self, double base)
{
  switch (self->kind) {
  case CONSTANT:
  case LINEAR:
    return base * self->factor;
  case ONE_CYCLE:
    return self->highest / self->start_divisor;
  case LAMBDA:
    return base * self->function (0, self->user_data);
  default:
    return base;
  }
}

/* The rate at step self->epoch, which is not 0; @rate was the one before. */
static double
next (const TinyScheduler *self, double base, double rate)
{
  double at = (double) self->epoch, total = (double) self->total;
  switch (self->kind) {
  case STEP:
    return self->epoch % self->total == 0 ? rate * self->factor : rate;
  case MULTI_STEP:
    return rate * pow (self->factor, count_milestones (self, self->epoch));
  case EXPONENTIAL:
    return rate * self->factor;
  case CONSTANT:
    return self->epoch == self->total ? rate / self->factor : rate;
  case LINEAR:
    return self->epoch > self->total
               ? rate
               : rate
                     * (1
                        + (self->end - self->factor)
                              / (total * self->factor + (at - 1) * (self->end - self->factor)));
  case POLYNOMIAL:
    return self->epoch > self->total
               ? rate
               : rate * pow ((1 - at / total) / (1 - (at - 1) / total), self->factor);
  case COSINE:
    return next_cosine (self, base, rate);
  case RESTARTS:
    return anneal (base, self->lowest, (double) self->at / (double) self->period);
  case ONE_CYCLE:
    return one_cycle_rate (self);
  case LAMBDA:
    return base * self->function (self->epoch, self->user_data);
  case PLATEAU:
  case SEQUENTIAL:
  case CHAINED:
    break;
  }
  g_assert_not_reached ();
}

typedef enum { BEGIN, AGAIN, GO_ON } Move;

static gboolean
set_momenta (TinyScheduler *self, GError **error)
{
  double momentum
      = one_cycle (self, self->largest_momentum, self->least_momentum, self->largest_momentum);
  for (guint i = 0; i < self->optimizer->groups->len; i++)
    if (!tiny_optimizer_set_group_momentum (self->optimizer, i, momentum, error))
      return FALSE;
  return TRUE;
}

/* Sets all rates: what they are at the start times the first factor (begin), that from the rates at the
 * start (again), or those of the next step. */
static gboolean
set_rates (TinyScheduler *self, Move move, GError **error)
{
  for (guint i = 0; i < self->optimizer->groups->len; i++) {
    TinyGroup *group = self->optimizer->groups->pdata[i];
    if (isnan (group->initial_rate))
      group->initial_rate = group->settings[TINY_SETTING_LR];
    double rate = move == BEGIN ? first (self, group->settings[TINY_SETTING_LR])
                  : move == AGAIN
                      ? first (self, group->initial_rate)
                      : next (self, group->initial_rate, group->settings[TINY_SETTING_LR]);
    /* Rounding may leave what ends at 0 just below it. */
    rate = rate < 0 && rate > -1e-12 ? 0 : rate;
    if (!tiny_optimizer_set_group_lr (self->optimizer, i, rate, error))
      return FALSE;
  }
  return !self->has_momentum || set_momenta (self, error);
}

static gboolean
begin_again (TinyScheduler *self, GError **error)
{
  self->epoch = self->at = 0;
  if (self->kind == CHAINED || self->kind == SEQUENTIAL) {
    for (guint i = 0; i < (self->kind == CHAINED ? self->schedulers->len : 1); i++)
      if (!begin_again (self->schedulers->pdata[i], error))
        return FALSE;
    return TRUE;
  }
  return set_rates (self, AGAIN, error);
}

static gboolean
step_sequence (TinyScheduler *self, GError **error)
{
  guint at = 0;
  gboolean begins = FALSE;
  for (guint i = 0; i < self->milestones->len; i++) {
    guint64 milestone = g_array_index (self->milestones, guint64, i);
    at += milestone <= self->epoch;
    begins = begins || milestone == self->epoch;
  }
  return begins ? begin_again (self->schedulers->pdata[at], error)
                : tiny_scheduler_step (self->schedulers->pdata[at], error);
}

gboolean
tiny_scheduler_step (TinyScheduler *self, GError **error)
{
  tiny_return_error_unless (TINY_IS_SCHEDULER (self), error, FALSE, "no scheduler given");
  if (self->kind == PLATEAU || (self->kind == ONE_CYCLE && self->epoch >= self->total)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 self->kind == PLATEAU
                     ? "scheduler: a plateau is one of a metric: give it one"
                     : "scheduler: the cycle has ended after %" G_GUINT64_FORMAT " steps",
                 self->total);
    return FALSE;
  }
  self->epoch++;
  if (self->kind == RESTARTS && ++self->at >= self->period) {
    self->at -= self->period;
    self->period *= self->growth;
  }
  if (self->kind == SEQUENTIAL)
    return step_sequence (self, error);
  for (guint i = 0; self->kind == CHAINED && i < self->schedulers->len; i++)
    if (!tiny_scheduler_step (self->schedulers->pdata[i], error))
      return FALSE;
  return self->kind == CHAINED || set_rates (self, GO_ON, error);
}

static gboolean
lower_rates (TinyScheduler *self, GError **error)
{
  for (guint i = 0; self->optimizer != NULL && i < self->optimizer->groups->len; i++) {
    double rate = tiny_optimizer_get_group_lr (self->optimizer, i);
    double lower = MAX (rate * self->factor, self->lowest);
    if (rate - lower > 1e-8 && !tiny_optimizer_set_group_lr (self->optimizer, i, lower, error))
      return FALSE;
  }
  return TRUE;
}

gboolean
tiny_scheduler_step_metric (TinyScheduler *self, double metric, GError **error)
{
  tiny_return_error_unless (TINY_IS_SCHEDULER (self), error, FALSE, "no scheduler given");
  if (self->kind != PLATEAU) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "scheduler: this one does not go by a metric");
    return FALSE;
  }
  self->epoch++;
  gboolean is_better = self->largest ? metric > self->best * (1 + self->threshold)
                                     : metric < self->best * (1 - self->threshold);
  self->best = is_better ? metric : self->best;
  self->n_bad = is_better ? 0 : self->n_bad + 1;
  if (self->n_cooling > 0) {
    self->n_cooling--;
    self->n_bad = 0;
  }
  if (self->n_bad <= self->patience)
    return TRUE;
  self->n_cooling = self->cooldown;
  self->n_bad = 0;
  return lower_rates (self, error);
}

guint64
tiny_scheduler_get_epoch (TinyScheduler *self)
{
  g_return_val_if_fail (TINY_IS_SCHEDULER (self), 0);
  return self->epoch;
}

/* ---- making ---- */
static TinyScheduler *
scheduler_new (Kind kind, TinyOptimizer *optimizer, double factor, guint64 total)
{
  TinyScheduler *self = g_object_new (TINY_TYPE_SCHEDULER, NULL);
  self->kind = kind;
  self->optimizer = g_object_ref (optimizer);
  self->factor = factor;
  self->total = total;
  return self;
}

static gboolean
check (gboolean is_good, const char *name, double a, double b, GError **error)
{
  if (!is_good)
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "%s: %g and %g make no schedule", name,
                 a, b);
  return is_good;
}

/* Takes @self; gives it once its first rates are set. */
static TinyScheduler *
begin (TinyScheduler *self, GError **error)
{
  g_autoptr (TinyScheduler) owned = self;
  return set_rates (self, self->kind == ONE_CYCLE || self->kind == LAMBDA ? AGAIN : BEGIN,
                    error)
             ? g_steal_pointer (&owned)
             : NULL;
}

static gboolean
is_positive (double value)
{
  return value > 0 && isfinite (value);
}

TinyScheduler *
tiny_step_lr_new (TinyOptimizer *optimizer, guint step_size, double gamma, GError **error)
{
  tiny_return_error_unless (TINY_IS_OPTIMIZER (optimizer), error, NULL, "no optimizer given");
  if (!check (step_size > 0 && gamma >= 0 && isfinite (gamma), "step_lr", step_size, gamma,
              error))
    return NULL;
  return begin (scheduler_new (STEP, optimizer, gamma, step_size), error);
}

static GArray *
ascending (const char *name, const guint64 *milestones, guint n, GError **error)
{
  for (guint i = 1; i < n; i++)
    if (milestones[i] < milestones[i - 1]) {
      check (FALSE, name, (double) milestones[i - 1], (double) milestones[i], error);
      return NULL;
    }
  GArray *result = g_array_new (FALSE, FALSE, sizeof *milestones);
  if (n > 0)
    g_array_append_vals (result, milestones, n);
  return result;
}

TinyScheduler *
tiny_multi_step_lr_new (
    TinyOptimizer *optimizer, const guint64 *milestones, guint n, double gamma, GError **error)
{
  tiny_return_error_unless (TINY_IS_OPTIMIZER (optimizer), error, NULL, "no optimizer given");
  tiny_return_error_unless (TINY_IS_LIST (milestones, n), error, NULL,
                            "milestones are counted, but none are given");
  GArray *steps = ascending ("multi_step_lr", milestones, n, error);
  if (steps == NULL)
    return NULL;
  TinyScheduler *self = scheduler_new (MULTI_STEP, optimizer, gamma, 0);
  self->milestones = steps;
  if (check (gamma >= 0 && isfinite (gamma), "multi_step_lr", n, gamma, error))
    return begin (self, error);
  g_object_unref (self);
  return NULL;
}

TinyScheduler *
tiny_exponential_lr_new (TinyOptimizer *optimizer, double gamma, GError **error)
{
  tiny_return_error_unless (TINY_IS_OPTIMIZER (optimizer), error, NULL, "no optimizer given");
  if (!check (gamma >= 0 && isfinite (gamma), "exponential_lr", 1, gamma, error))
    return NULL;
  return begin (scheduler_new (EXPONENTIAL, optimizer, gamma, 0), error);
}

TinyScheduler *
tiny_constant_lr_new (TinyOptimizer *optimizer, double factor, guint total, GError **error)
{
  tiny_return_error_unless (TINY_IS_OPTIMIZER (optimizer), error, NULL, "no optimizer given");
  if (!check (is_positive (factor), "constant_lr", factor, total, error))
    return NULL;
  return begin (scheduler_new (CONSTANT, optimizer, factor, total), error);
}

TinyScheduler *
tiny_linear_lr_new (
    TinyOptimizer *optimizer, double start, double end, guint total, GError **error)
{
  tiny_return_error_unless (TINY_IS_OPTIMIZER (optimizer), error, NULL, "no optimizer given");
  if (!check (is_positive (start) && end >= 0 && isfinite (end) && total > 0, "linear_lr",
              start, end, error))
    return NULL;
  TinyScheduler *self = scheduler_new (LINEAR, optimizer, start, total);
  self->end = end;
  return begin (self, error);
}

TinyScheduler *
tiny_polynomial_lr_new (TinyOptimizer *optimizer, guint total, double power, GError **error)
{
  tiny_return_error_unless (TINY_IS_OPTIMIZER (optimizer), error, NULL, "no optimizer given");
  if (!check (total > 0 && is_positive (power), "polynomial_lr", total, power, error))
    return NULL;
  return begin (scheduler_new (POLYNOMIAL, optimizer, power, total), error);
}

TinyScheduler *
tiny_cosine_annealing_lr_new (TinyOptimizer *optimizer,
                              guint period,
                              double lowest,
                              GError **error)
{
  tiny_return_error_unless (TINY_IS_OPTIMIZER (optimizer), error, NULL, "no optimizer given");
  if (!check (period > 0 && lowest >= 0 && isfinite (lowest), "cosine_annealing_lr", period,
              lowest, error))
    return NULL;
  TinyScheduler *self = scheduler_new (COSINE, optimizer, 1, period);
  self->lowest = lowest;
  return begin (self, error);
}

TinyScheduler *
tiny_cosine_annealing_warm_restarts_new (
    TinyOptimizer *optimizer, guint period, guint growth, double lowest, GError **error)
{
  tiny_return_error_unless (TINY_IS_OPTIMIZER (optimizer), error, NULL, "no optimizer given");
  if (!check (period > 0 && growth > 0 && lowest >= 0 && isfinite (lowest),
              "cosine_annealing_warm_restarts", period, lowest, error))
    return NULL;
  TinyScheduler *self = scheduler_new (RESTARTS, optimizer, 1, period);
  self->lowest = lowest;
  self->period = period;
  self->growth = growth;
  return begin (self, error);
}

TinyScheduler *
tiny_one_cycle_lr_new (TinyOptimizer *optimizer,
                       double highest,
                       guint total,
                       double rising,
                       double start_divisor,
                       double end_divisor,
                       GError **error)
{
  tiny_return_error_unless (TINY_IS_OPTIMIZER (optimizer), error, NULL, "no optimizer given");
  if (!check (is_positive (highest) && total > 1 && rising >= 0 && rising <= 1
                  && is_positive (start_divisor) && is_positive (end_divisor),
              "one_cycle_lr", highest, rising, error))
    return NULL;
  TinyScheduler *self = scheduler_new (ONE_CYCLE, optimizer, 1, total);
  self->highest = highest;
  self->rising = rising;
  self->start_divisor = start_divisor;
  self->end = end_divisor;
  return begin (self, error);
}

gboolean
tiny_scheduler_cycle_momentum (TinyScheduler *self,
                               double least,
                               double largest,
                               GError **error)
{
  tiny_return_error_unless (TINY_IS_SCHEDULER (self), error, FALSE, "no scheduler given");
  if (self->kind != ONE_CYCLE) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "scheduler: only that of one cycle changes the momentum");
    return FALSE;
  }
  if (!check (least >= 0 && least <= largest && largest < 1, "cycle_momentum", least, largest,
              error))
    return FALSE;
  self->has_momentum = TRUE;
  self->least_momentum = least;
  self->largest_momentum = largest;
  return set_momenta (self, error);
}

TinyScheduler *
tiny_lambda_lr_new (TinyOptimizer *optimizer,
                    TinyRateFunction function,
                    gpointer user_data,
                    GDestroyNotify destroy,
                    GError **error)
{
  gboolean is_good = TINY_IS_OPTIMIZER (optimizer) && function != NULL;
  if (!is_good && destroy != NULL)
    destroy (user_data);
  tiny_return_error_unless (is_good, error, NULL, "no optimizer, or no function, is given");
  TinyScheduler *self = scheduler_new (LAMBDA, optimizer, 1, 0);
  self->function = function;
  self->user_data = user_data;
  self->destroy = destroy;
  return begin (self, error);
}

TinyScheduler *
tiny_reduce_lr_on_plateau_new (TinyOptimizer *optimizer,
                               gboolean largest,
                               double factor,
                               guint patience,
                               double threshold,
                               guint cooldown,
                               double lowest,
                               GError **error)
{
  tiny_return_error_unless (TINY_IS_OPTIMIZER (optimizer), error, NULL, "no optimizer given");
  if (!check (factor >= 0 && factor < 1 && threshold >= 0 && lowest >= 0 && isfinite (lowest),
              "reduce_lr_on_plateau", factor, threshold, error))
    return NULL;
  TinyScheduler *self = scheduler_new (PLATEAU, optimizer, factor, 0);
  self->largest = largest;
  self->best = largest ? -INFINITY : INFINITY;
  self->patience = patience;
  self->threshold = threshold;
  self->cooldown = cooldown;
  self->lowest = lowest;
  return self;
}

static TinyScheduler *
several_new (
    Kind kind, const char *name, TinyScheduler *const *schedulers, guint n, GError **error)
{
  gboolean is_good = schedulers != NULL && n > 0;
  for (guint i = 0; is_good && i < n; i++)
    is_good = TINY_IS_SCHEDULER (schedulers[i]) && schedulers[i]->kind != PLATEAU
              && schedulers[i]->optimizer == schedulers[0]->optimizer;
  if (!is_good) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "%s: it takes one or more schedulers of one optimiser, none of a metric",
                 name);
    return NULL;
  }
  TinyScheduler *self = scheduler_new (kind, schedulers[0]->optimizer, 1, 0);
  self->schedulers = g_ptr_array_new_with_free_func (g_object_unref);
  for (guint i = 0; i < n; i++)
    g_ptr_array_add (self->schedulers, g_object_ref (schedulers[i]));
  return self;
}

TinyScheduler *
tiny_sequential_lr_new (TinyScheduler *const *schedulers,
                        guint n,
                        const guint64 *milestones,
                        guint n_milestones,
                        GError **error)
{
  tiny_return_error_unless (TINY_IS_LIST (milestones, n_milestones), error, NULL,
                            "milestones are counted, but none are given");
  if (!check (n_milestones + 1 == n, "sequential_lr", n, n_milestones, error))
    return NULL;
  GArray *steps = ascending ("sequential_lr", milestones, n_milestones, error);
  if (steps == NULL)
    return NULL;
  g_autoptr (TinyScheduler) self
      = several_new (SEQUENTIAL, "sequential_lr", schedulers, n, error);
  if (self == NULL) {
    g_array_unref (steps);
    return NULL;
  }
  self->milestones = steps;
  return begin_again (self, error) ? g_steal_pointer (&self) : NULL;
}

TinyScheduler *
tiny_chained_scheduler_new (TinyScheduler *const *schedulers, guint n, GError **error)
{
  return several_new (CHAINED, "chained_scheduler", schedulers, n, error);
}
