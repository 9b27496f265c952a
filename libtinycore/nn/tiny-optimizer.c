/* SPDX-License-Identifier: MIT
 *
 * tiny-optimizer.c: groups of parameters, their state, and steps; optimizer-rules.c has the formulas.
 *
 * What changes from step to step (rates, moments, the steps that Adam counts) is in device memory, so a
 * captured step stays right when it is replayed. */
#include "nn/tiny-optimizer.h"

#include <math.h>
#include <string.h>

#include "base/tiny-guard.h"
#include "engine/tiny-runtime.h"
#include "nn/module-private.h"
#include "nn/optimizer-private.h"
#include "tensor/tiny-found.h"
#include "tensor/tiny-grad-mode.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"
#include "tensor/tiny-tensor-shard.h"

G_DEFINE_FINAL_TYPE (TinyOptimizer, tiny_optimizer, G_TYPE_OBJECT)

static void
group_free (gpointer data)
{
  TinyGroup *group = data;
  GPtrArray *const lists[]
      = { group->parameters, group->first, group->second, group->third, group->damping };
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++)
    if (lists[i] != NULL)
      g_ptr_array_unref (lists[i]);
  g_clear_object (&group->lr);
  g_clear_object (&group->momentum);
  g_clear_pointer (&group->counts, g_ptr_array_unref);
  g_free (group);
}

static void
tiny_optimizer_finalize (GObject *object)
{
  TinyOptimizer *self = TINY_OPTIMIZER (object);
  g_clear_pointer (&self->groups, g_ptr_array_unref);
  g_clear_error (&self->error);
  G_OBJECT_CLASS (tiny_optimizer_parent_class)->finalize (object);
}

static void
tiny_optimizer_class_init (TinyOptimizerClass *class)
{
  G_OBJECT_CLASS (class)->finalize = tiny_optimizer_finalize;
}

static void
tiny_optimizer_init (TinyOptimizer *self)
{
  self->groups = g_ptr_array_new_with_free_func (group_free);
}

/* ---- making ---- */
static gboolean
is_there (TinyOptimizer *self, TinyTensor *const *parameters, guint n, TinyTensor *p)
{
  for (guint i = 0; i < self->groups->len; i++) {
    TinyGroup *group = self->groups->pdata[i];
    if (g_ptr_array_find (group->parameters, p, NULL))
      return TRUE;
  }
  for (guint i = 0; i < n; i++)
    if (parameters[i] == p)
      return TRUE;
  return FALSE;
}

static gboolean
check_parameters (TinyOptimizer *self, TinyTensor *const *parameters, guint n, GError **error)
{
  const char *name = tiny_rule_get_name (self->rule);
  if (parameters == NULL && n > 0) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "%s: %u parameters, none given", name,
                 n);
    return FALSE;
  }
  for (guint i = 0; i < n; i++) {
    TinyTensor *p = parameters[i];
    if (p != NULL && p->error != NULL) {
      g_propagate_error (error, g_error_copy (p->error));
      g_prefix_error (error, "%s: parameter %u: ", name, i);
      return FALSE;
    }
    const char *why = p == NULL                                       ? "is NULL"
                      : !tiny_dtype_is_float (p->dtype)               ? "is not of floats"
                      : is_there (self, parameters, i, p)             ? "is there already"
                      : self->rule == TINY_RULE_MUON && p->n_dims < 1 ? "is no matrix"
                                                                      : NULL;
    if (why != NULL) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "%s: parameter %u %s", name, i, why);
      return FALSE;
    }
  }
  return TRUE;
}

/* A value for each parameter, each in memory of its own: like it, with @all elements that number; or one number. */
static GPtrArray *
state_like (TinyGroup *group, double all, const double *number)
{
  GPtrArray *result = g_ptr_array_new_with_free_func (g_object_unref);
  for (guint i = 0; i < group->parameters->len; i++) {
    TinyTensor *p = group->parameters->pdata[i];
    TinyTensor *value = number != NULL ? tiny_tensor_full (group->dtype, NULL, 0, *number)
                                       : tiny_tensor_full (p->dtype, p->shape, p->n_dims, all);
    value = g_object_ref_sink (tiny_tensor_shard_like (value, p));
    tiny_tensor_own_memory (value, "optimizer", NULL);
    g_ptr_array_add (result, value);
  }
  return result;
}

void
tiny_optimizer_make_state (TinyOptimizer *self, TinyGroup *group)
{
  const TinyRuleState *state = tiny_rule_get_state (self->rule);
  gboolean has_momentum = group->settings[TINY_SETTING_MOMENTUM] != 0;
  GPtrArray *parameters = group->parameters;
  const char *device
      = parameters->len > 0 ? ((TinyTensor *) parameters->pdata[0])->device : NULL;
  double dampening = group->settings[TINY_SETTING_DAMPENING];
  double share
      = self->has_stepped ? 1 - dampening : 1; /* nothing of a first gradient is lost */
  if (group->first == NULL && state->first != NULL
      && (has_momentum || strcmp (state->first, "momentum_buffer") != 0))
    group->first = state_like (group, 0, NULL);
  if (group->damping == NULL && dampening != 0)
    group->damping = state_like (group, 0, &share);
  if (group->third == NULL
      && (group->settings[TINY_SETTING_CENTERED] != 0
          || group->settings[TINY_SETTING_AMSGRAD] != 0))
    group->third = state_like (group, 0, NULL);
  if (state->second == NULL || group->second != NULL)
    return;
  group->second = state_like (group, group->settings[TINY_SETTING_INITIAL], NULL);
  if (!state->counts || parameters->len == 0)
    return;
  group->counts = g_ptr_array_new_with_free_func (tiny_count_unref);
  TinyCount *count = tiny_count_new (self->rule, device, group->dtype);
  for (guint i = 0; i < parameters->len; i++)
    g_ptr_array_add (group->counts, i == 0 ? count : g_rc_box_acquire (count));
}

static gboolean
add_group (TinyOptimizer *self,
           TinyTensor *const *parameters,
           guint n,
           const double settings[TINY_N_SETTINGS],
           GError **error)
{
  if (!tiny_settings_check (self->rule, settings, error)
      || !check_parameters (self, parameters, n, error))
    return FALSE;
  TinyGroup *group = g_new0 (TinyGroup, 1);
  memcpy (group->settings, settings, sizeof group->settings);
  group->initial_rate = NAN;
  group->parameters = g_ptr_array_new_with_free_func (g_object_unref);
  group->dtype = n > 0 ? TINY_DTYPE_F64 : TINY_DTYPE_F32;
  for (guint i = 0; i < n; i++) {
    g_ptr_array_add (group->parameters, g_object_ref (parameters[i]));
    if (parameters[i]->dtype != TINY_DTYPE_F64)
      group->dtype = TINY_DTYPE_F32;
  }
  group->lr = tiny_numbers_new (n > 0 ? parameters[0]->device : NULL, group->dtype, 1, 0,
                                settings[TINY_SETTING_LR]);
  tiny_optimizer_make_state (self, group);
  g_ptr_array_add (self->groups, group);
  return TRUE;
}

gboolean
tiny_optimizer_add_group (TinyOptimizer *self,
                          TinyTensor *const *parameters,
                          guint n,
                          double lr,
                          double weight_decay,
                          GError **error)
{
  tiny_return_error_unless (TINY_IS_OPTIMIZER (self), error, FALSE, "no optimizer given");
  tiny_return_error_unless (TINY_IS_LIST (parameters, n), error, FALSE,
                            "parameters are counted, but none are given");
  TINY_RUNTIME_HOLD;
  double settings[TINY_N_SETTINGS] = { 0 };
  if (self->groups->len > 0) /* there is none where it was made as any object is */
    memcpy (settings, ((TinyGroup *) self->groups->pdata[0])->settings, sizeof settings);
  settings[TINY_SETTING_LR] = lr;
  settings[TINY_SETTING_WEIGHT_DECAY] = weight_decay;
  return add_group (self, parameters, n, settings, error);
}

TinyOptimizer *
tiny_optimizer_new_of (TinyRule rule,
                       TinyTensor *const *parameters,
                       guint n,
                       const double settings[TINY_N_SETTINGS])
{
  static const double none[TINY_N_SETTINGS];
  TinyOptimizer *self = g_object_new (TINY_TYPE_OPTIMIZER, NULL);
  self->rule = rule;
  if (!add_group (self, parameters, n, settings, &self->error))
    add_group (self, NULL, 0, none, NULL);
  return self;
}

const GError *
tiny_optimizer_get_error (TinyOptimizer *self)
{
  g_return_val_if_fail (TINY_IS_OPTIMIZER (self), NULL);
  return self->error;
}

/* ---- rates ---- */
guint
tiny_optimizer_get_n_groups (TinyOptimizer *self)
{
  g_return_val_if_fail (TINY_IS_OPTIMIZER (self), 0);
  TINY_RUNTIME_HOLD;
  return self->groups->len;
}

TinyGroup *
tiny_optimizer_find_group (TinyOptimizer *self, guint i, GError **error)
{
  if (i < self->groups->len)
    return self->groups->pdata[i];
  g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "%s: there is no group %u of %u",
               tiny_rule_get_name (self->rule), i, self->groups->len);
  return NULL;
}

gboolean
tiny_optimizer_set_group_lr (TinyOptimizer *self, guint group, double lr, GError **error)
{
  tiny_return_error_unless (TINY_IS_OPTIMIZER (self), error, FALSE, "no optimizer given");
  TINY_RUNTIME_HOLD;
  TinyGroup *to = tiny_optimizer_find_group (self, group, error);
  if (to == NULL)
    return FALSE;
  double settings[TINY_N_SETTINGS];
  memcpy (settings, to->settings, sizeof settings);
  settings[TINY_SETTING_LR] = lr;
  if (!tiny_settings_check (self->rule, settings, error)
      || !tiny_number_set (to->lr, lr, error))
    return FALSE;
  to->settings[TINY_SETTING_LR] = lr;
  return TRUE;
}

double
tiny_optimizer_get_group_lr (TinyOptimizer *self, guint group)
{
  g_return_val_if_fail (TINY_IS_OPTIMIZER (self), 0);
  TINY_RUNTIME_HOLD;
  const TinyGroup *from = tiny_optimizer_find_group (self, group, NULL);
  return from == NULL ? 0 : from->settings[TINY_SETTING_LR];
}

gboolean
tiny_optimizer_set_lr (TinyOptimizer *self, double lr, GError **error)
{
  tiny_return_error_unless (TINY_IS_OPTIMIZER (self), error, FALSE, "no optimizer given");
  TINY_RUNTIME_HOLD;
  for (guint i = 0; i < self->groups->len; i++)
    if (!tiny_optimizer_set_group_lr (self, i, lr, error))
      return FALSE;
  return TRUE;
}

double
tiny_optimizer_get_lr (TinyOptimizer *self)
{
  return tiny_optimizer_get_group_lr (self, 0);
}

/* ---- steps ---- */

/* Before anything is assigned: what is still waiting for its first value gets it, so that every
 * step of the same kind is the same schedule. */
static gboolean
realize_state (TinyOptimizer *self, GError **error)
{
  g_autoptr (GPtrArray) all = g_ptr_array_new ();
  for (guint k = 0; k < self->groups->len; k++) {
    const TinyGroup *group = self->groups->pdata[k];
    GPtrArray *const lists[]
        = { group->parameters, group->first, group->second, group->third, group->damping };
    for (guint i = 0; i < G_N_ELEMENTS (lists); i++)
      for (guint j = 0; lists[i] != NULL && j < lists[i]->len; j++)
        if (!tiny_tensor_is_realized (lists[i]->pdata[j]))
          g_ptr_array_add (all, lists[i]->pdata[j]);
  }
  return tiny_tensor_realize_many ((TinyTensor *const *) all->pdata, all->len, error);
}

/* A TinyFoundNumber: what numbers and state a step is made of, but for those in device memory. */
static gint64
hash_settings (gpointer data)
{
  const TinyOptimizer *self = data;
  guint64 hash = self->groups->len;
  for (guint k = 0; k < self->groups->len; k++) {
    const TinyGroup *group = self->groups->pdata[k];
    for (guint i = 0; i < TINY_N_SETTINGS; i++) {
      const gboolean is_in_memory
          = i == TINY_SETTING_LR
            || (group->momentum != NULL
                && (i == TINY_SETTING_MOMENTUM || i == TINY_SETTING_BETA1));
      guint64 bits;
      memcpy (&bits, &group->settings[i], sizeof bits);
      hash = (hash ^ (is_in_memory ? 0 : bits)) * G_GUINT64_CONSTANT (0x9E3779B97F4A7C15);
      hash ^= hash >> 29;
    }
    hash = hash * 8 + (group->momentum != NULL) + 2 * (group->first != NULL)
           + 4 * (group->third != NULL);
    hash = (hash ^ group->n_divided) * G_GUINT64_CONSTANT (0x9E3779B97F4A7C15);
  }
  return (gint64) hash;
}

static gboolean
step (TinyOptimizer *self, TinyTensor *const *others, guint n_others, GError **error)
{
  g_autoptr (GPtrArray) changed = g_ptr_array_new ();
  tiny_found_note (self, hash_settings, "the settings of an optimiser");
  if (!realize_state (self, error))
    return FALSE;
  for (guint i = 0; i < self->groups->len; i++)
    if (!tiny_optimizer_apply (self, self->groups->pdata[i], changed, error))
      return FALSE;
  for (guint i = 0; i < n_others; i++)
    g_ptr_array_add (changed, others[i]);
  tiny_module_collect_moved (changed);
  gboolean good
      = tiny_tensor_realize_many ((TinyTensor *const *) changed->pdata, changed->len, error);
  /* Also after a failure, or one module's would be that of all steps to come. */
  tiny_module_forget_moved ();
  if (!good)
    return FALSE;
  self->has_stepped = TRUE;
  return TRUE;
}

gboolean
tiny_optimizer_step_unless (TinyOptimizer *self,
                            TinyTensor *skip,
                            TinyTensor *const *others,
                            guint n_others,
                            GError **error)
{
  if (self->error != NULL) {
    g_propagate_error (error, g_error_copy (self->error));
    return FALSE;
  }
  if (!tiny_runtime_lock_or_stop (error))
    return FALSE;
  gboolean with_gradients = tiny_set_grad_enabled (FALSE);
  self->skip = skip;
  gboolean good = step (self, others, n_others, error);
  self->skip = NULL;
  tiny_set_grad_enabled (with_gradients);
  tiny_runtime_unlock ();
  return good;
}

gboolean
tiny_optimizer_step (TinyOptimizer *self,
                     TinyTensor *const *others,
                     guint n_others,
                     GError **error)
{
  tiny_return_error_unless (TINY_IS_OPTIMIZER (self), error, FALSE, "no optimizer given");
  tiny_return_error_unless (TINY_IS_LIST (others, n_others), error, FALSE,
                            "others are counted, but none are given");
  return tiny_optimizer_step_unless (self, NULL, others, n_others, error);
}

void
tiny_optimizer_zero_grad (TinyOptimizer *self)
{
  g_return_if_fail (TINY_IS_OPTIMIZER (self));
  TINY_RUNTIME_HOLD;
  for (guint k = 0; k < self->groups->len; k++) {
    const TinyGroup *group = self->groups->pdata[k];
    for (guint i = 0; i < group->parameters->len; i++)
      tiny_tensor_clear_grad (group->parameters->pdata[i]);
  }
}

/* ---- state ---- */
static void
add_one (GHashTable *state, guint group, guint i, TinyTensor *value, const char *name)
{
  g_hash_table_insert (state, g_strdup_printf ("%u.%u.%s", group, i, name),
                       g_object_ref (value));
}

static void
add_list (GHashTable *state, guint group, GPtrArray *list, const char *name)
{
  for (guint i = 0; list != NULL && i < list->len; i++)
    add_one (state, group, i, list->pdata[i], name);
}

GHashTable *
tiny_optimizer_get_state_dict (TinyOptimizer *self)
{
  g_return_val_if_fail (TINY_IS_OPTIMIZER (self), NULL);
  TINY_RUNTIME_HOLD;
  const TinyRuleState *names = tiny_rule_get_state (self->rule);
  GHashTable *state = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_object_unref);
  for (guint i = 0; i < self->groups->len; i++) {
    const TinyGroup *group = self->groups->pdata[i];
    g_hash_table_insert (state, g_strdup_printf ("%u.lr", i), g_object_ref (group->lr));
    for (guint k = 0; group->counts != NULL && k < group->counts->len; k++) {
      const TinyCount *count = group->counts->pdata[k];
      add_one (state, i, k, count->steps, "step");
      if (count->product != NULL)
        add_one (state, i, k, count->product, "mu_product");
    }
    add_list (state, i, group->first, names->first);
    add_list (state, i, group->second, names->second);
    add_list (state, i, group->third, names->third);
    add_list (state, i, group->damping, "damping");
  }
  return state;
}

gboolean
tiny_optimizer_load_state_dict (TinyOptimizer *self, GHashTable *state, GError **error)
{
  tiny_return_error_unless (TINY_IS_OPTIMIZER (self), error, FALSE, "no optimizer given");
  tiny_return_error_unless (state != NULL, error, FALSE, "no state given");
  TINY_RUNTIME_HOLD;
  for (guint i = 0; i < self->groups->len; i++)
    if (!tiny_counts_unshare (self, self->groups->pdata[i], error))
      return FALSE;
  g_autoptr (GHashTable) own = tiny_optimizer_get_state_dict (self);
  gboolean good = tiny_state_copy (own, state, TRUE, error);
  for (guint i = 0; i < self->groups->len; i++)
    tiny_counts_share (self->groups->pdata[i]);
  if (!good)
    return FALSE;
  for (guint i = 0; i < self->groups->len; i++) {
    TinyGroup *group = self->groups->pdata[i];
    if (!tiny_tensor_item (group->lr, &group->settings[TINY_SETTING_LR], error))
      return FALSE;
  }
  return TRUE;
}
