/* SPDX-License-Identifier: MIT
 *
 * optimizer-private.h: what an optimiser is made of, for its rules and for loss scaling. */
#pragma once

#include "nn/tiny-optimizer.h"

G_BEGIN_DECLS

typedef enum {
  TINY_RULE_SGD,
  TINY_RULE_ADAM,
  TINY_RULE_ADAMW,
  TINY_RULE_LAMB,
  TINY_RULE_LARS,
  TINY_RULE_MUON,
  TINY_RULE_RMSPROP,
  TINY_RULE_ADAGRAD,
  TINY_RULE_ADADELTA,
  TINY_RULE_ADAMAX,
  TINY_RULE_NADAM,
  TINY_RULE_RADAM,
} TinyRule;

/* The numbers of a rule, each group's own; optimizer-settings.c has what is known of each. */
typedef enum {
  TINY_SETTING_LR,
  TINY_SETTING_WEIGHT_DECAY,
  TINY_SETTING_MOMENTUM,
  TINY_SETTING_DAMPENING,
  TINY_SETTING_NESTEROV,
  TINY_SETTING_BETA1,
  TINY_SETTING_BETA2,
  TINY_SETTING_EPSILON,
  TINY_SETTING_TRUST,
  TINY_SETTING_STEPS, /* of Newton and Schulz */
  TINY_SETTING_ALPHA,
  TINY_SETTING_RHO,
  TINY_SETTING_CENTERED,
  TINY_SETTING_LR_DECAY,
  TINY_SETTING_MOMENTUM_DECAY,
  TINY_SETTING_INITIAL, /* of the sums of squares */
  TINY_SETTING_MAXIMIZE,
  TINY_SETTING_AMSGRAD,
  TINY_N_SETTINGS,
} TinySetting;

/* What a rule keeps for each parameter, by PyTorch's names; NULL: nothing. */
typedef struct {
  const char *name; /* of the rule */
  const char *first, *second,
      *third;      /* first: "momentum_buffer" only where there is momentum */
  gboolean counts; /* steps */
  guint n_numbers; /* that are the same for all elements in a step */
} TinyRuleState;

/* How many steps there were, of parameters that were in the same ones; counted by references. */
typedef struct TinyCount TinyCount;
struct TinyCount {
  TinyTensor *steps; /* () */
  TinyTensor
      *corrections; /* the rule's numbers of the step; of Adam 1 / (1 - beta^steps) of both */
  TinyTensor *product; /* NAdam: (): all its momenta multiplied */
  /* While a step is made: */
  TinyTensor *numbers[3];      /* (nullable): what is in corrections */
  gboolean has_step, has_rest; /* parameters with a gradient, and without one */
  TinyCount *apart;            /* (unowned) (nullable): what those with one share from now on */
};

/* Lists have an element for each parameter, or are NULL where the rule has no such state. */
typedef struct {
  TinyDType dtype; /* of numbers beside the parameters: f64 where those all are, else f32 */
  GPtrArray *parameters;
  GPtrArray *first, *second, *third; /* moments and their like */
  GPtrArray
      *damping;   /* SGD with dampening: (): what of the gradient goes into the next moment */
  TinyTensor *lr; /* () */
  TinyTensor *momentum; /* (nullable): (): it, or the first beta, once a schedule changes it */
  GPtrArray *counts;    /* of rules that count: TinyCount, of which parameters may share one */
  guint n_divided;      /* how often who shares one has changed */
  double settings[TINY_N_SETTINGS];
  double initial_rate; /* when the first schedule was made; NaN before */
} TinyGroup;

struct _TinyOptimizer {
  GObject parent_instance;
  TinyRule rule;
  GPtrArray *groups;
  GError *error; /* what was wrong when it was made */
  gboolean has_stepped;
  TinyTensor *skip; /* (nullable): bool, (), while a step is made: everything stays as it is */
};

const TinyRuleState *tiny_rule_get_state (TinyRule rule);
const char *tiny_rule_get_name (TinyRule rule);
TinyOptimizer *tiny_optimizer_new_of (TinyRule rule,
                                      TinyTensor *const *parameters,
                                      guint n,
                                      const double settings[TINY_N_SETTINGS]);
/* (transfer floating): a * x + b * y. */
TinyTensor *tiny_mix (double a, TinyTensor *x, double b, TinyTensor *y);
/* (transfer floating): @x times the momentum, or the first beta: @setting, or what a schedule made of it. */
TinyTensor *tiny_group_damp (TinyGroup *group, TinyTensor *x, TinySetting setting);
/* (transfer floating): the first moment @m with the gradient @g in it, by the first beta. */
TinyTensor *tiny_group_mix_first (TinyGroup *group, TinyTensor *m, TinyTensor *g);
/* (transfer floating): 1 / (1 - β^t), which is exact to rounding also where β^t is next to 1; @changing: (nullable): β,
 * where it is no number. */
TinyTensor *tiny_correction (TinyTensor *steps, double beta, TinyTensor *changing);
/* (transfer full): @n times @value, of an optimiser's numbers; and another value for one that is (). */
TinyTensor *
tiny_numbers_new (const char *device, TinyDType dtype, gint64 n, guint n_dims, double value);
gboolean tiny_number_set (TinyTensor *self, double value, GError **error);
/* optimizer-counts.c: a count of no steps. */
TinyCount *tiny_count_new (TinyRule rule, const char *device, TinyDType dtype);
void tiny_count_unref (gpointer count);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (TinyCount, tiny_count_unref)
/* Parameters that have a gradient now share no count with others: theirs has steps and no rest. */
gboolean tiny_counts_split (TinyOptimizer *self, TinyGroup *group, GError **error);
/* A count of its own for each parameter, as state that is loaded may have; and one for those whose are equal. */
gboolean tiny_counts_unshare (TinyOptimizer *self, TinyGroup *group, GError **error);
void tiny_counts_share (TinyGroup *group);
/* Of a rule of optimizer-adaptive.c: its numbers of a step, floating, and (transfer full) (nullable): what is taken from
 * parameter @i. */
gboolean tiny_adaptive_numbers (TinyOptimizer *self,
                                TinyGroup *group,
                                TinyCount *count,
                                TinyTensor *out[3],
                                GError **error);
TinyTensor *tiny_adaptive_change (TinyOptimizer *self,
                                  TinyGroup *group,
                                  guint i,
                                  TinyTensor *gradient,
                                  TinyTensor *const numbers[3],
                                  GError **error);
/* Whether @settings can be those of a group of that rule. */
gboolean
tiny_settings_check (TinyRule rule, const double settings[TINY_N_SETTINGS], GError **error);
/* Makes what state @group needs by its settings and does not have yet. */
void tiny_optimizer_make_state (TinyOptimizer *self, TinyGroup *group);
/* (nullable): group @i; an error when there is none. */
TinyGroup *tiny_optimizer_find_group (TinyOptimizer *self, guint i, GError **error);
/* Makes @value the contents of @target, unless the step is skipped. Takes a floating @value. */
gboolean
tiny_optimizer_put (TinyOptimizer *self, TinyTensor *target, TinyTensor *value, GError **error);
/* Assigns the new values of all parameters of @group that have gradients, and its state; adds what it
 * assigned to to @changed. */
gboolean tiny_optimizer_apply (TinyOptimizer *self,
                               TinyGroup *group,
                               GPtrArray *changed,
                               GError **error);
/* tiny_optimizer_step() that changes nothing where @skip (nullable) is TRUE. */
gboolean tiny_optimizer_step_unless (TinyOptimizer *self,
                                     TinyTensor *skip,
                                     TinyTensor *const *others,
                                     guint n_others,
                                     GError **error);

G_END_DECLS
