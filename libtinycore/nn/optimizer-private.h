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
} TinyRule;

/* Lists have an element for each parameter, or are NULL where the rule has no such state. */
typedef struct {
  GPtrArray *parameters;
  GPtrArray *first, *second; /* moments */
  GPtrArray *
      damping; /* SGD with dampening: f32, (): what of the gradient goes into the next moment */
  TinyTensor *lr;     /* f32, () */
  TinyTensor *powers; /* Adam and its like: f32, (2): beta1^t, beta2^t */
  double rate, initial_rate, weight_decay;
} TinyGroup;

struct _TinyOptimizer {
  GObject parent_instance;
  TinyRule rule;
  GPtrArray *groups;
  GError *error; /* what was wrong when it was made */
  double momentum, dampening, beta1, beta2, epsilon, trust;
  guint n_steps; /* of Newton and Schulz */
  gboolean nesterov, has_stepped;
  TinyTensor *skip; /* (nullable): bool, (), while a step is made: everything stays as it is */
};

const char *tiny_rule_get_name (TinyRule rule);
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
