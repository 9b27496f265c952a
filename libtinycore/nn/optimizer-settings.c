/* SPDX-License-Identifier: MIT
 *
 * optimizer-settings.c: the numbers of groups by name: which a rule has, and which values they can have; and
 * what rules keep. */
#include <math.h>

#include "base/tiny-guard.h"
#include "engine/tiny-runtime.h"
#include "nn/optimizer-private.h"

#define BIT(rule) (1u << TINY_RULE_##rule)
#define MOMENTS                                                                                \
  (BIT (ADAM) | BIT (ADAMW) | BIT (LAMB) | BIT (ADAMAX) | BIT (NADAM) | BIT (RADAM))
#define MOMENTA (BIT (SGD) | BIT (LARS) | BIT (MUON))

/* A value is from 0 to @end, or to before it. */
static const struct {
  const char *name, *meaning;
  double end;
  guint rules;
  gboolean with_end;
} table[TINY_N_SETTINGS] = {
  [TINY_SETTING_LR] = { "lr", "learning rate", INFINITY, ~0u },
  [TINY_SETTING_WEIGHT_DECAY] = { "weight_decay", "weight decay", INFINITY, ~0u },
  [TINY_SETTING_MOMENTUM] = { "momentum", "momentum", INFINITY, MOMENTA | BIT (RMSPROP) },
  [TINY_SETTING_DAMPENING] = { "dampening", "dampening", INFINITY, BIT (SGD) },
  [TINY_SETTING_NESTEROV] = { "nesterov", "nesterov", 1, MOMENTA, TRUE },
  [TINY_SETTING_BETA1] = { "beta1", "beta1", 1, MOMENTS },
  [TINY_SETTING_BETA2] = { "beta2", "beta2", 1, MOMENTS },
  [TINY_SETTING_EPSILON]
  = { "eps", "epsilon", INFINITY, MOMENTS | BIT (RMSPROP) | BIT (ADAGRAD) | BIT (ADADELTA) },
  [TINY_SETTING_TRUST] = { "trust", "trust", INFINITY, BIT (LARS) },
  [TINY_SETTING_STEPS] = { "ns_steps", "number of steps", 100, BIT (MUON), TRUE },
  [TINY_SETTING_ALPHA] = { "alpha", "alpha", 1, BIT (RMSPROP), TRUE },
  [TINY_SETTING_RHO] = { "rho", "rho", 1, BIT (ADADELTA), TRUE },
  [TINY_SETTING_CENTERED] = { "centered", "centered", 1, BIT (RMSPROP), TRUE },
  [TINY_SETTING_LR_DECAY] = { "lr_decay", "decay of the rate", INFINITY, BIT (ADAGRAD) },
  [TINY_SETTING_MOMENTUM_DECAY]
  = { "momentum_decay", "decay of the momentum", INFINITY, BIT (NADAM) },
  [TINY_SETTING_INITIAL]
  = { "initial_accumulator_value", "first sum", INFINITY, BIT (ADAGRAD) },
  [TINY_SETTING_MAXIMIZE] = { "maximize", "maximize", 1, ~0u, TRUE },
  [TINY_SETTING_AMSGRAD] = { "amsgrad", "amsgrad", 1, BIT (ADAM) | BIT (ADAMW), TRUE },
};

static const TinyRuleState states[] = {
  [TINY_RULE_SGD] = { "sgd", "momentum_buffer" },
  [TINY_RULE_ADAM] = { "adam", "exp_avg", "exp_avg_sq", "max_exp_avg_sq", TRUE, 2 },
  [TINY_RULE_ADAMW] = { "adamw", "exp_avg", "exp_avg_sq", "max_exp_avg_sq", TRUE, 2 },
  [TINY_RULE_LAMB] = { "lamb", "exp_avg", "exp_avg_sq", NULL, TRUE, 2 },
  [TINY_RULE_LARS] = { "lars", "momentum_buffer" },
  [TINY_RULE_MUON] = { "muon", "momentum_buffer" },
  [TINY_RULE_RMSPROP] = { "rmsprop", "momentum_buffer", "square_avg", "grad_avg", TRUE },
  [TINY_RULE_ADAGRAD] = { "adagrad", NULL, "sum", NULL, TRUE, 1 },
  [TINY_RULE_ADADELTA] = { "adadelta", "acc_delta", "square_avg", NULL, TRUE },
  [TINY_RULE_ADAMAX] = { "adamax", "exp_avg", "exp_inf", NULL, TRUE, 1 },
  [TINY_RULE_NADAM] = { "nadam", "exp_avg", "exp_avg_sq", NULL, TRUE, 3 },
  [TINY_RULE_RADAM] = { "radam", "exp_avg", "exp_avg_sq", NULL, TRUE, 2 },
};

const TinyRuleState *
tiny_rule_get_state (TinyRule rule)
{
  return &states[rule];
}

const char *
tiny_rule_get_name (TinyRule rule)
{
  return states[rule].name;
}

static gboolean
is_of (guint setting, TinyRule rule)
{
  return (table[setting].rules & 1u << rule) != 0;
}

gboolean
tiny_settings_check (TinyRule rule, const double settings[TINY_N_SETTINGS], GError **error)
{
  const char *rule_name = tiny_rule_get_name (rule);
  for (guint i = 0; i < TINY_N_SETTINGS; i++) {
    double value = settings[i], end = table[i].end;
    if (!is_of (i, rule)
        || (value >= 0 && (value < end || (table[i].with_end && value == end))))
      continue;
    g_autofree char *most
        = isinf (end)
              ? g_strdup ("0 or more")
              : g_strdup_printf ("from 0 to %s%g", table[i].with_end ? "" : "below ", end);
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "%s: the %s %g is not %s", rule_name,
                 table[i].meaning, value, most);
    return FALSE;
  }
  if (settings[TINY_SETTING_MOMENTUM] == 0
      && (settings[TINY_SETTING_NESTEROV] != 0 || settings[TINY_SETTING_DAMPENING] != 0)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "%s: without momentum nothing looks ahead or is damped", rule_name);
    return FALSE;
  }
  if (settings[TINY_SETTING_NESTEROV] != 0 && settings[TINY_SETTING_DAMPENING] != 0) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "%s: a momentum that looks ahead has no dampening", rule_name);
    return FALSE;
  }
  return TRUE;
}

char **
tiny_optimizer_list_settings (TinyOptimizer *self)
{
  g_return_val_if_fail (TINY_IS_OPTIMIZER (self), NULL);
  g_autoptr (GStrvBuilder) names = g_strv_builder_new ();
  for (guint i = 0; i < TINY_N_SETTINGS; i++)
    if (is_of (i, self->rule))
      g_strv_builder_add (names, table[i].name);
  return g_strv_builder_end (names);
}

/* The setting of that name, or -1 and an error. */
static int
find_setting (TinyOptimizer *self, const char *name, GError **error)
{
  for (guint i = 0; i < TINY_N_SETTINGS; i++)
    if (is_of (i, self->rule) && g_strcmp0 (name, table[i].name) == 0)
      return (int) i;
  g_auto (GStrv) names = tiny_optimizer_list_settings (self);
  g_autofree char *known = g_strjoinv (", ", names);
  g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
               "%s: there is no setting “%s”: there are %s", tiny_rule_get_name (self->rule),
               name == NULL ? "" : name, known);
  return -1;
}

gboolean
tiny_optimizer_set_setting (
    TinyOptimizer *self, guint group, const char *name, double value, GError **error)
{
  tiny_return_error_unless (TINY_IS_OPTIMIZER (self), error, FALSE, "no optimizer given");
  TINY_RUNTIME_HOLD;
  int setting = find_setting (self, name, error);
  TinyGroup *to = setting < 0 ? NULL : tiny_optimizer_find_group (self, group, error);
  if (to == NULL)
    return FALSE;
  if (setting == TINY_SETTING_LR)
    return tiny_optimizer_set_group_lr (self, group, value, error);
  double before = to->settings[setting];
  to->settings[setting] = value;
  if (!tiny_settings_check (self->rule, to->settings, error)) {
    to->settings[setting] = before;
    return FALSE;
  }
  tiny_optimizer_make_state (self, to);
  return to->momentum == NULL
         || (setting != TINY_SETTING_MOMENTUM && setting != TINY_SETTING_BETA1)
         || tiny_number_set (to->momentum, value, error);
}

gboolean
tiny_optimizer_set_group_momentum (TinyOptimizer *self,
                                   guint group,
                                   double momentum,
                                   GError **error)
{
  tiny_return_error_unless (TINY_IS_OPTIMIZER (self), error, FALSE, "no optimizer given");
  TINY_RUNTIME_HOLD;
  TinyGroup *to = tiny_optimizer_find_group (self, group, error);
  TinySetting setting
      = is_of (TINY_SETTING_BETA1, self->rule) ? TINY_SETTING_BETA1 : TINY_SETTING_MOMENTUM;
  if (to == NULL)
    return FALSE;
  if (to->momentum == NULL)
    to->momentum = tiny_numbers_new (tiny_tensor_get_device (to->lr), to->dtype, 1, 0, 0);
  return tiny_optimizer_set_setting (self, group, table[setting].name, momentum, error);
}

gboolean
tiny_optimizer_get_setting (
    TinyOptimizer *self, guint group, const char *name, double *out_value, GError **error)
{
  tiny_return_error_unless (TINY_IS_OPTIMIZER (self), error, FALSE, "no optimizer given");
  tiny_return_error_unless (out_value != NULL, error, FALSE, "no room for the value given");
  TINY_RUNTIME_HOLD;
  int setting = find_setting (self, name, error);
  const TinyGroup *from = setting < 0 ? NULL : tiny_optimizer_find_group (self, group, error);
  if (from == NULL)
    return FALSE;
  *out_value = from->settings[setting];
  return TRUE;
}
