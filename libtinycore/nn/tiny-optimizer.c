/* SPDX-License-Identifier: MIT
 *
 * tiny-optimizer.c: groups of parameters, their state, and steps; optimizer-rules.c has the formulas.
 *
 * What changes from step to step (rates, moments, the powers of Adam's betas) is in device memory, so a
 * captured step stays right when it is replayed. */
#include "nn/tiny-optimizer.h"

#include <math.h>

#include "nn/module-private.h"
#include "nn/optimizer-private.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

G_DEFINE_FINAL_TYPE (TinyOptimizer, tiny_optimizer, G_TYPE_OBJECT)

static void
group_free (gpointer data)
{
  TinyGroup *group = data;
  GPtrArray *const lists[] = { group->parameters, group->first, group->second, group->damping };
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++)
    if (lists[i] != NULL)
      g_ptr_array_unref (lists[i]);
  g_clear_object (&group->lr);
  g_clear_object (&group->powers);
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
check_rate (TinyOptimizer *self, const char *what, double value, GError **error)
{
  if (value >= 0 && isfinite (value))
    return TRUE;
  g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "%s: the %s %g is not 0 or more",
               tiny_rule_get_name (self->rule), what, value);
  return FALSE;
}

/* Remembers the first of numbers that is not from 0 to below @end. */
static void
check_number (TinyOptimizer *self, const char *what, double value, double end)
{
  if (self->error == NULL && !(value >= 0 && value < end))
    g_set_error (&self->error, TINY_ERROR, TINY_ERROR_INVALID, "%s: the %s %g is not %s",
                 tiny_rule_get_name (self->rule), what, value,
                 isfinite (end) ? "from 0 to below 1" : "0 or more");
}

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

/* A value for each parameter, each in memory of its own: zeros like it, or a 1. */
static GPtrArray *
state_like (GPtrArray *parameters, gboolean is_one)
{
  GPtrArray *result = g_ptr_array_new_with_free_func (g_object_unref);
  for (guint i = 0; i < parameters->len; i++) {
    TinyTensor *p = parameters->pdata[i];
    TinyTensor *value = is_one ? tiny_tensor_full (TINY_DTYPE_F32, NULL, 0, 1)
                               : tiny_tensor_zeros (p->dtype, p->shape, p->n_dims);
    value = g_object_ref_sink (tiny_tensor_to (value, p->device));
    tiny_tensor_own_memory (value, NULL);
    g_ptr_array_add (result, value);
  }
  return result;
}

static TinyTensor *
numbers_on (const char *device, const float *values, gint64 n, guint n_dims)
{
  return g_object_ref_sink (tiny_tensor_new_from_data (device, TINY_DTYPE_F32, &n, n_dims,
                                                       values, (gsize) n * sizeof *values));
}

gboolean
tiny_optimizer_add_group (TinyOptimizer *self,
                          TinyTensor *const *parameters,
                          guint n,
                          double lr,
                          double weight_decay,
                          GError **error)
{
  g_return_val_if_fail (TINY_IS_OPTIMIZER (self) && (parameters != NULL || n == 0), FALSE);
  if (!check_rate (self, "learning rate", lr, error)
      || !check_rate (self, "weight decay", weight_decay, error)
      || !check_parameters (self, parameters, n, error))
    return FALSE;
  gboolean is_adam = self->rule == TINY_RULE_ADAM || self->rule == TINY_RULE_ADAMW
                     || self->rule == TINY_RULE_LAMB;
  TinyGroup *group = g_new0 (TinyGroup, 1);
  const char *device = n > 0 ? parameters[0]->device : NULL;
  group->rate = group->initial_rate = lr;
  group->weight_decay = weight_decay;
  group->parameters = g_ptr_array_new_with_free_func (g_object_unref);
  for (guint i = 0; i < n; i++)
    g_ptr_array_add (group->parameters, g_object_ref (parameters[i]));
  group->lr = numbers_on (device, (float[]){ (float) lr }, 1, 0);
  if (is_adam || self->momentum != 0)
    group->first = state_like (group->parameters, FALSE);
  if (is_adam) {
    group->second = state_like (group->parameters, FALSE);
    group->powers = numbers_on (device, (float[]){ 1, 1 }, 2, 1);
  }
  if (self->dampening != 0)
    group->damping = state_like (group->parameters, TRUE);
  g_ptr_array_add (self->groups, group);
  return TRUE;
}

static TinyOptimizer *
optimizer_new (const TinyOptimizer *numbers,
               TinyTensor *const *parameters,
               guint n,
               double lr,
               double weight_decay)
{
  TinyOptimizer *self = g_object_new (TINY_TYPE_OPTIMIZER, NULL);
  self->rule = numbers->rule;
  self->momentum = numbers->momentum;
  self->beta1 = numbers->beta1;
  self->beta2 = numbers->beta2;
  self->epsilon = numbers->epsilon;
  self->trust = numbers->trust;
  self->n_steps = numbers->n_steps;
  self->nesterov = numbers->nesterov;
  check_number (self, "momentum", self->momentum, INFINITY);
  check_number (self, "beta1", self->beta1, 1);
  check_number (self, "beta2", self->beta2, 1);
  check_number (self, "epsilon", self->epsilon, INFINITY);
  check_number (self, "trust", self->trust, INFINITY);
  if (self->nesterov && self->momentum == 0 && self->error == NULL)
    g_set_error (&self->error, TINY_ERROR, TINY_ERROR_INVALID,
                 "%s: without momentum nothing looks ahead", tiny_rule_get_name (self->rule));
  if (!tiny_optimizer_add_group (self, parameters, n, lr, weight_decay,
                                 self->error == NULL ? &self->error : NULL))
    tiny_optimizer_add_group (self, NULL, 0, 0, 0, NULL);
  return self;
}

TinyOptimizer *
tiny_sgd_new (TinyTensor *const *parameters,
              guint n,
              double lr,
              double momentum,
              double weight_decay,
              gboolean nesterov)
{
  const TinyOptimizer numbers
      = { .rule = TINY_RULE_SGD, .momentum = momentum, .nesterov = nesterov };
  return optimizer_new (&numbers, parameters, n, lr, weight_decay);
}

static TinyOptimizer *
adam_new (TinyRule rule,
          TinyTensor *const *parameters,
          guint n,
          double lr,
          const double betas[2],
          double epsilon,
          double weight_decay)
{
  const TinyOptimizer numbers
      = { .rule = rule, .beta1 = betas[0], .beta2 = betas[1], .epsilon = epsilon };
  return optimizer_new (&numbers, parameters, n, lr, weight_decay);
}

TinyOptimizer *
tiny_adam_new (TinyTensor *const *parameters,
               guint n,
               double lr,
               double beta1,
               double beta2,
               double epsilon,
               double weight_decay)
{
  return adam_new (TINY_RULE_ADAM, parameters, n, lr, (double[]){ beta1, beta2 }, epsilon,
                   weight_decay);
}

TinyOptimizer *
tiny_adamw_new (TinyTensor *const *parameters,
                guint n,
                double lr,
                double beta1,
                double beta2,
                double epsilon,
                double weight_decay)
{
  return adam_new (TINY_RULE_ADAMW, parameters, n, lr, (double[]){ beta1, beta2 }, epsilon,
                   weight_decay);
}

TinyOptimizer *
tiny_lamb_new (TinyTensor *const *parameters,
               guint n,
               double lr,
               double beta1,
               double beta2,
               double epsilon,
               double weight_decay)
{
  return adam_new (TINY_RULE_LAMB, parameters, n, lr, (double[]){ beta1, beta2 }, epsilon,
                   weight_decay);
}

TinyOptimizer *
tiny_lars_new (TinyTensor *const *parameters,
               guint n,
               double lr,
               double momentum,
               double weight_decay,
               gboolean nesterov,
               double trust)
{
  const TinyOptimizer numbers
      = { .rule = TINY_RULE_LARS, .momentum = momentum, .nesterov = nesterov, .trust = trust };
  return optimizer_new (&numbers, parameters, n, lr, weight_decay);
}

TinyOptimizer *
tiny_muon_new (TinyTensor *const *parameters,
               guint n,
               double lr,
               double momentum,
               double weight_decay,
               guint n_steps,
               gboolean nesterov)
{
  const TinyOptimizer numbers = {
    .rule = TINY_RULE_MUON, .momentum = momentum, .nesterov = nesterov, .n_steps = n_steps
  };
  TinyOptimizer *self = optimizer_new (&numbers, parameters, n, lr, weight_decay);
  if (n_steps > 100 && self->error == NULL)
    g_set_error (&self->error, TINY_ERROR, TINY_ERROR_INVALID,
                 "muon: %u steps are more than 100", n_steps);
  return self;
}

gboolean
tiny_optimizer_set_dampening (TinyOptimizer *self, double dampening, GError **error)
{
  g_return_val_if_fail (TINY_IS_OPTIMIZER (self), FALSE);
  if (self->rule != TINY_RULE_SGD || self->momentum == 0 || self->nesterov || self->has_stepped
      || !isfinite (dampening)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "%s: a dampening of %g is not possible: it is for SGD with a momentum that "
                 "does not look "
                 "ahead, before the first step",
                 tiny_rule_get_name (self->rule), dampening);
    return FALSE;
  }
  self->dampening = dampening;
  for (guint i = 0; i < self->groups->len; i++) {
    TinyGroup *group = self->groups->pdata[i];
    g_clear_pointer (&group->damping, g_ptr_array_unref);
    if (dampening != 0)
      group->damping = state_like (group->parameters, TRUE);
  }
  return TRUE;
}

/* ---- rates ---- */
guint
tiny_optimizer_get_n_groups (TinyOptimizer *self)
{
  g_return_val_if_fail (TINY_IS_OPTIMIZER (self), 0);
  return self->groups->len;
}

gboolean
tiny_optimizer_set_group_lr (TinyOptimizer *self, guint group, double lr, GError **error)
{
  g_return_val_if_fail (TINY_IS_OPTIMIZER (self), FALSE);
  if (!check_rate (self, "learning rate", lr, error))
    return FALSE;
  if (group >= self->groups->len) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "%s: there is no group %u of %u",
                 tiny_rule_get_name (self->rule), group, self->groups->len);
    return FALSE;
  }
  TinyGroup *to = self->groups->pdata[group];
  float rate = (float) lr;
  if (!tiny_tensor_write_data (to->lr, &rate, sizeof rate, error))
    return FALSE;
  to->rate = lr;
  return TRUE;
}

double
tiny_optimizer_get_group_lr (TinyOptimizer *self, guint group)
{
  g_return_val_if_fail (TINY_IS_OPTIMIZER (self), 0);
  return group < self->groups->len ? ((TinyGroup *) self->groups->pdata[group])->rate : 0;
}

gboolean
tiny_optimizer_set_lr (TinyOptimizer *self, double lr, GError **error)
{
  g_return_val_if_fail (TINY_IS_OPTIMIZER (self), FALSE);
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
        = { group->parameters, group->first, group->second, group->damping };
    for (guint i = 0; i < G_N_ELEMENTS (lists); i++)
      for (guint j = 0; lists[i] != NULL && j < lists[i]->len; j++)
        if (!tiny_tensor_is_realized (lists[i]->pdata[j]))
          g_ptr_array_add (all, lists[i]->pdata[j]);
  }
  return tiny_tensor_realize_many ((TinyTensor *const *) all->pdata, all->len, error);
}

static gboolean
step (TinyOptimizer *self, TinyTensor *const *others, guint n_others, GError **error)
{
  g_autoptr (GPtrArray) changed = g_ptr_array_new ();
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
  tiny_runtime_lock ();
  self->skip = skip;
  gboolean good = step (self, others, n_others, error);
  self->skip = NULL;
  tiny_optimizer_zero_grad (self);
  tiny_runtime_unlock ();
  return good;
}

gboolean
tiny_optimizer_step (TinyOptimizer *self,
                     TinyTensor *const *others,
                     guint n_others,
                     GError **error)
{
  g_return_val_if_fail (TINY_IS_OPTIMIZER (self) && (others != NULL || n_others == 0), FALSE);
  return tiny_optimizer_step_unless (self, NULL, others, n_others, error);
}

void
tiny_optimizer_zero_grad (TinyOptimizer *self)
{
  g_return_if_fail (TINY_IS_OPTIMIZER (self));
  for (guint k = 0; k < self->groups->len; k++) {
    const TinyGroup *group = self->groups->pdata[k];
    for (guint i = 0; i < group->parameters->len; i++)
      tiny_tensor_clear_grad (group->parameters->pdata[i]);
  }
}

/* ---- state ---- */
static void
add_list (GHashTable *state, guint group, GPtrArray *list, const char *name)
{
  for (guint i = 0; list != NULL && i < list->len; i++)
    g_hash_table_insert (state, g_strdup_printf ("%u.%u.%s", group, i, name),
                         g_object_ref (list->pdata[i]));
}

GHashTable *
tiny_optimizer_get_state_dict (TinyOptimizer *self)
{
  g_return_val_if_fail (TINY_IS_OPTIMIZER (self), NULL);
  GHashTable *state = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_object_unref);
  for (guint i = 0; i < self->groups->len; i++) {
    const TinyGroup *group = self->groups->pdata[i];
    g_hash_table_insert (state, g_strdup_printf ("%u.lr", i), g_object_ref (group->lr));
    if (group->powers != NULL)
      g_hash_table_insert (state, g_strdup_printf ("%u.powers", i),
                           g_object_ref (group->powers));
    add_list (state, i, group->first, "first");
    add_list (state, i, group->second, "second");
    add_list (state, i, group->damping, "damping");
  }
  return state;
}

gboolean
tiny_optimizer_load_state_dict (TinyOptimizer *self, GHashTable *state, GError **error)
{
  g_return_val_if_fail (TINY_IS_OPTIMIZER (self) && state != NULL, FALSE);
  g_autoptr (GHashTable) own = tiny_optimizer_get_state_dict (self);
  if (!tiny_state_copy (own, state, TRUE, error))
    return FALSE;
  for (guint i = 0; i < self->groups->len; i++) {
    TinyGroup *group = self->groups->pdata[i];
    if (!tiny_tensor_item (group->lr, &group->rate, error))
      return FALSE;
  }
  return TRUE;
}
