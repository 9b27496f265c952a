/* SPDX-License-Identifier: MIT
 *
 * optimizer-rules.c: how parameters change, as lazy expressions; formulas and sources are at the functions that
 * make optimisers (tiny-optimizer.h). */
#include <math.h>

#include "nn/module-private.h"
#include "nn/optimizer-private.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

gboolean
tiny_optimizer_put (TinyOptimizer *self, TinyTensor *target, TinyTensor *value, GError **error)
{
  if (self->skip != NULL)
    value = tiny_tensor_where (self->skip, target, value);
  return tiny_tensor_assign (target, value, error);
}

TinyTensor *
tiny_mix (double a, TinyTensor *x, double b, TinyTensor *y)
{
  return tiny_tensor_add (tiny_tensor_mul_number (x, a), tiny_tensor_mul_number (y, b));
}

static TinyTensor *
norm_of (TinyTensor *x)
{
  return tiny_tensor_sqrt (tiny_tensor_sum (tiny_tensor_square (x), NULL, 0, FALSE));
}

/* ---- SGD and what is made of it ---- */

TinyTensor *
tiny_group_damp (TinyGroup *group, TinyTensor *x, TinySetting setting)
{
  return group->momentum != NULL ? tiny_tensor_mul (x, group->momentum)
                                 : tiny_tensor_mul_number (x, group->settings[setting]);
}

TinyTensor *
tiny_group_mix_first (TinyGroup *group, TinyTensor *m, TinyTensor *g)
{
  double beta = group->settings[TINY_SETTING_BETA1];
  return group->momentum != NULL ? tiny_tensor_lerp (g, m, group->momentum)
                                 : tiny_mix (beta, m, 1 - beta, g);
}

/* The momentum with @g in it, or what looks ahead of it; @g itself without. */
static TinyTensor *
with_momentum (TinyOptimizer *self, TinyGroup *group, guint i, TinyTensor *g, GError **error)
{
  g_autoptr (TinyTensor) kept = g_object_ref_sink (g);
  if (group->first == NULL)
    return g_object_ref (kept);
  TinyTensor *m = group->first->pdata[i], *added = kept;
  if (group->damping != NULL)
    added = tiny_tensor_mul (added, group->damping->pdata[i]);
  TinyTensor *next = tiny_tensor_add (tiny_group_damp (group, m, TINY_SETTING_MOMENTUM), added);
  if (!tiny_optimizer_put (self, m, next, error))
    return NULL;
  if (group->damping != NULL
      && !tiny_optimizer_put (
          self, group->damping->pdata[i],
          tiny_tensor_full (group->dtype, NULL, 0, 1 - group->settings[TINY_SETTING_DAMPENING]),
          error))
    return NULL;
  if (group->settings[TINY_SETTING_NESTEROV] == 0)
    return g_object_ref (m);
  return g_object_ref_sink (
      tiny_tensor_add (kept, tiny_group_damp (group, m, TINY_SETTING_MOMENTUM)));
}

/* (transfer full): the change of parameter @i, before the rate. */
static TinyTensor *
sgd_change (
    TinyOptimizer *self, TinyGroup *group, guint i, TinyTensor *gradient, GError **error)
{
  TinyTensor *g = gradient;
  if (group->settings[TINY_SETTING_WEIGHT_DECAY] != 0)
    g = tiny_tensor_add (g,
                         tiny_tensor_mul_number (group->parameters->pdata[i],
                                                 group->settings[TINY_SETTING_WEIGHT_DECAY]));
  g_autoptr (TinyTensor) change = with_momentum (self, group, i, g, error);
  return change == NULL ? NULL : g_object_ref_sink (tiny_tensor_mul (change, group->lr));
}

/* trust ‖p‖ / (‖g‖ + decay ‖p‖), 1 where a norm is 0. */
static TinyTensor *
lars_ratio (TinyGroup *group, TinyTensor *p, TinyTensor *g)
{
  g_autoptr (TinyTensor) p_norm = g_object_ref_sink (norm_of (tiny_tensor_detach (p)));
  g_autoptr (TinyTensor) g_norm = g_object_ref_sink (norm_of (g));
  TinyTensor *both = tiny_tensor_add (
      g_norm, tiny_tensor_mul_number (p_norm, group->settings[TINY_SETTING_WEIGHT_DECAY]));
  TinyTensor *ratio = tiny_tensor_div (
      tiny_tensor_mul_number (p_norm, group->settings[TINY_SETTING_TRUST]), both, NULL);
  TinyTensor *is_good
      = tiny_tensor_logical_and (tiny_tensor_gt (p_norm, tiny_tensor_scalar (0)),
                                 tiny_tensor_gt (g_norm, tiny_tensor_scalar (0)));
  return tiny_tensor_where (is_good, ratio, tiny_tensor_scalar_float (1));
}

static TinyTensor *
lars_change (
    TinyOptimizer *self, TinyGroup *group, guint i, TinyTensor *gradient, GError **error)
{
  TinyTensor *p = group->parameters->pdata[i];
  TinyTensor *ratio = lars_ratio (group, p, gradient);
  TinyTensor *g = tiny_mix (1, gradient, group->settings[TINY_SETTING_WEIGHT_DECAY], p);
  g = tiny_tensor_mul (g, tiny_tensor_mul (ratio, group->lr));
  return with_momentum (self, group, i, g, error);
}

/* About the orthogonal matrix that is nearest to @x (M, N). */
static TinyTensor *
orthogonal (TinyTensor *x, double n_steps)
{
  static const double factors[] = { 3.4445, -4.775, 2.0315 };
  g_autoptr (GPtrArray) kept = tiny_kept_new ();
  gboolean is_tall = x->error == NULL && x->n_dims == 2 && x->shape[0] > x->shape[1];
  tiny_keep (kept, x);
  x = tiny_tensor_div (x, tiny_tensor_add_number (norm_of (x), 1e-7), NULL);
  x = tiny_keep (kept, is_tall ? tiny_tensor_transpose (x, 0, 1) : x);
  for (guint step = 0; step < n_steps; step++) {
    TinyTensor *a = tiny_keep (kept, tiny_tensor_matmul (x, tiny_tensor_transpose (x, 0, 1)));
    TinyTensor *b = tiny_mix (factors[1], a, factors[2], tiny_tensor_matmul (a, a));
    x = tiny_keep (kept, tiny_tensor_add (tiny_tensor_mul_number (x, factors[0]),
                                          tiny_tensor_matmul (b, x)));
  }
  return is_tall ? tiny_tensor_transpose (x, 0, 1) : tiny_tensor_new_alias (x);
}

static TinyTensor *
muon_change (
    TinyOptimizer *self, TinyGroup *group, guint i, TinyTensor *gradient, GError **error)
{
  TinyTensor *p = group->parameters->pdata[i];
  g_autoptr (TinyTensor) u = with_momentum (self, group, i, gradient, error);
  if (u == NULL)
    return NULL;
  gint64 rows = p->n_dims > 0 ? p->shape[0] : 1;
  gint64 columns = rows == 0 ? 0 : tiny_tensor_get_n_elements (p) / rows;
  TinyTensor *x = orthogonal (tiny_tensor_reshape (u, (gint64[]){ rows, columns }, 2),
                              group->settings[TINY_SETTING_STEPS]);
  x = tiny_tensor_reshape (x, p->shape, p->n_dims);
  x = tiny_mix (1, x, group->settings[TINY_SETTING_WEIGHT_DECAY], p);
  return g_object_ref_sink (tiny_tensor_mul (x, group->lr));
}

/* ---- Adam and what is made of it ---- */

TinyTensor *
tiny_correction (TinyTensor *steps, double beta, TinyTensor *changing)
{
  TinyTensor *logarithms = changing != NULL
                               ? tiny_tensor_mul (steps, tiny_tensor_log (changing))
                               : tiny_tensor_mul_number (steps, log (beta));
  TinyTensor *power = tiny_tensor_expm1 (logarithms);
  return tiny_tensor_neg (tiny_tensor_reciprocal (power));
}

static gboolean
is_adam (TinyRule rule)
{
  return rule == TINY_RULE_ADAM || rule == TINY_RULE_ADAMW || rule == TINY_RULE_LAMB;
}

/* The rule's numbers after one more step, of Adam the corrections of both moments. They are stored: each is computed
 * once, not once for each element of each parameter. */
static gboolean
count_step (TinyOptimizer *self, TinyGroup *group, TinyCount *count, GError **error)
{
  guint n = tiny_rule_get_state (self->rule)->n_numbers;
  TinyTensor *numbers[3] = { NULL };
  if (!tiny_optimizer_put (self, count->steps, tiny_tensor_add_number (count->steps, 1), error))
    return FALSE;
  if (is_adam (self->rule)) {
    numbers[0]
        = tiny_correction (count->steps, group->settings[TINY_SETTING_BETA1], group->momentum);
    numbers[1] = tiny_correction (count->steps, group->settings[TINY_SETTING_BETA2], NULL);
  } else if (!tiny_adaptive_numbers (self, group, count, numbers, error))
    return FALSE;
  for (guint i = 0; i < n; i++)
    numbers[i] = tiny_tensor_reshape (numbers[i], (gint64[]){ 1 }, 1);
  if (n > 0 && !tiny_tensor_assign (count->corrections, tiny_tensor_cat (numbers, n, 0), error))
    return FALSE;
  for (guint i = 0; i < n; i++)
    count->numbers[i] = g_object_ref_sink (
        tiny_tensor_reshape (tiny_tensor_slice (count->corrections, 0, i, i + 1, 1), NULL, 0));
  return TRUE;
}

static gboolean
count_steps (TinyOptimizer *self, TinyGroup *group, GPtrArray *changed, GError **error)
{
  if (!tiny_counts_split (self, group, error))
    return FALSE;
  for (guint k = 0; k < group->counts->len; k++) {
    TinyCount *count = group->counts->pdata[k];
    TinyTensor *const counted[] = { count->steps, count->corrections, count->product };
    if (!count->has_step || count->has_rest)
      continue;
    count->has_step = FALSE; /* once for all that share it */
    if (!count_step (self, group, count, error))
      return FALSE;
    for (guint i = 0; i < G_N_ELEMENTS (counted); i++)
      if (counted[i] != NULL)
        g_ptr_array_add (changed, counted[i]);
  }
  return TRUE;
}

/* ‖p‖ / ‖u‖ · u, u where a norm is 0. */
static TinyTensor *
lamb_scaled (TinyTensor *p, TinyTensor *change)
{
  g_autoptr (TinyTensor) u = g_object_ref_sink (change);
  g_autoptr (TinyTensor) p_norm = g_object_ref_sink (norm_of (tiny_tensor_detach (p)));
  g_autoptr (TinyTensor) u_norm = g_object_ref_sink (norm_of (u));
  TinyTensor *is_good
      = tiny_tensor_logical_and (tiny_tensor_gt (p_norm, tiny_tensor_scalar (0)),
                                 tiny_tensor_gt (u_norm, tiny_tensor_scalar (0)));
  TinyTensor *ratio = tiny_tensor_where (is_good, tiny_tensor_div (p_norm, u_norm, NULL),
                                         tiny_tensor_scalar_float (1));
  return tiny_tensor_mul (u, ratio);
}

static TinyTensor *
adam_change (TinyOptimizer *self,
             TinyGroup *group,
             guint i,
             TinyTensor *gradient,
             TinyTensor *const scales[3],
             GError **error)
{
  TinyTensor *p = group->parameters->pdata[i];
  TinyTensor *m = group->first->pdata[i], *v = group->second->pdata[i];
  g_autoptr (TinyTensor) g = g_object_ref_sink (
      self->rule == TINY_RULE_ADAM && group->settings[TINY_SETTING_WEIGHT_DECAY] != 0
          ? tiny_tensor_add (
              gradient, tiny_tensor_mul_number (p, group->settings[TINY_SETTING_WEIGHT_DECAY]))
          : tiny_tensor_new_alias (gradient));
  TinyTensor *square = tiny_tensor_square (g);
  if (!tiny_optimizer_put (self, m, tiny_group_mix_first (group, m, g), error)
      || !tiny_optimizer_put (self, v,
                              tiny_mix (group->settings[TINY_SETTING_BETA2], v,
                                        1 - group->settings[TINY_SETTING_BETA2], square),
                              error))
    return NULL;
  if (group->settings[TINY_SETTING_AMSGRAD] != 0) {
    TinyTensor *largest = group->third->pdata[i];
    if (!tiny_optimizer_put (self, largest, tiny_tensor_maximum (largest, v), error))
      return NULL;
    v = largest;
  }
  TinyTensor *size = tiny_tensor_sqrt (tiny_tensor_mul (v, scales[1]));
  TinyTensor *change = tiny_tensor_div (
      tiny_tensor_mul (m, scales[0]),
      tiny_tensor_add_number (size, group->settings[TINY_SETTING_EPSILON]), NULL);
  if (self->rule != TINY_RULE_ADAM && group->settings[TINY_SETTING_WEIGHT_DECAY] != 0)
    change = tiny_tensor_add (
        change, tiny_tensor_mul_number (p, group->settings[TINY_SETTING_WEIGHT_DECAY]));
  if (self->rule == TINY_RULE_LAMB)
    change = lamb_scaled (p, change);
  return g_object_ref_sink (tiny_tensor_mul (change, group->lr));
}

/* (transfer full): what is taken from parameter @i. */
static TinyTensor *
change_of (TinyOptimizer *self,
           TinyGroup *group,
           guint i,
           TinyTensor *gradient,
           TinyTensor *const scales[3],
           GError **error)
{
  switch (self->rule) {
  case TINY_RULE_SGD:
    return sgd_change (self, group, i, gradient, error);
  case TINY_RULE_LARS:
    return lars_change (self, group, i, gradient, error);
  case TINY_RULE_MUON:
    return muon_change (self, group, i, gradient, error);
  case TINY_RULE_ADAM:
  case TINY_RULE_ADAMW:
  case TINY_RULE_LAMB:
    return adam_change (self, group, i, gradient, scales, error);
  case TINY_RULE_RMSPROP:
  case TINY_RULE_ADAGRAD:
  case TINY_RULE_ADADELTA:
  case TINY_RULE_ADAMAX:
  case TINY_RULE_NADAM:
  case TINY_RULE_RADAM:
    return tiny_adaptive_change (self, group, i, gradient, scales, error);
  }
  g_assert_not_reached ();
}

static void
add_state (TinyGroup *group, guint i, GPtrArray *changed)
{
  GPtrArray *const lists[]
      = { group->parameters, group->first, group->second, group->third, group->damping };
  for (guint k = 0; k < G_N_ELEMENTS (lists); k++)
    if (lists[k] != NULL)
      g_ptr_array_add (changed, lists[k]->pdata[i]);
}

gboolean
tiny_optimizer_apply (TinyOptimizer *self, TinyGroup *group, GPtrArray *changed, GError **error)
{
  static TinyTensor *const none[3];
  gboolean good = group->counts == NULL || count_steps (self, group, changed, error);
  for (guint i = 0; good && i < group->parameters->len; i++) {
    TinyTensor *p = group->parameters->pdata[i], *gradient = tiny_tensor_get_grad (p);
    if (gradient == NULL)
      continue;
    const TinyCount *count = group->counts != NULL ? group->counts->pdata[i] : NULL;
    g_autoptr (TinyTensor) down = g_object_ref_sink (group->settings[TINY_SETTING_MAXIMIZE] != 0
                                                         ? tiny_tensor_neg (gradient)
                                                         : tiny_tensor_new_alias (gradient));
    g_autoptr (TinyTensor) change
        = change_of (self, group, i, down, count != NULL ? count->numbers : none, error);
    good = change != NULL && tiny_optimizer_put (self, p, tiny_tensor_sub (p, change), error);
    add_state (group, i, changed);
  }
  for (guint k = 0; group->counts != NULL && k < group->counts->len; k++) {
    TinyCount *count = group->counts->pdata[k];
    for (guint i = 0; i < G_N_ELEMENTS (count->numbers); i++)
      g_clear_object (&count->numbers[i]);
  }
  return good;
}
