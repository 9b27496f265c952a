/* SPDX-License-Identifier: MIT
 *
 * optimizer-rules.c: how parameters change, as lazy expressions; formulas and sources are at the functions that
 * make optimisers (tiny-optimizer.h). */
#include "nn/module-private.h"
#include "nn/optimizer-private.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

const char *
tiny_rule_get_name (TinyRule rule)
{
  static const char *const names[] = { "sgd", "adam", "adamw", "lamb", "lars", "muon" };
  return names[rule];
}

gboolean
tiny_optimizer_put (TinyOptimizer *self, TinyTensor *target, TinyTensor *value, GError **error)
{
  if (self->skip != NULL)
    value = tiny_tensor_where (self->skip, target, value);
  return tiny_tensor_assign (target, value, error);
}

/* a * x + b * y */
static TinyTensor *
mix (double a, TinyTensor *x, double b, TinyTensor *y)
{
  return tiny_tensor_add (tiny_tensor_mul_number (x, a), tiny_tensor_mul_number (y, b));
}

static TinyTensor *
norm_of (TinyTensor *x)
{
  return tiny_tensor_sqrt (tiny_tensor_sum (tiny_tensor_square (x), NULL, 0, FALSE));
}

/* ---- SGD and what is made of it ---- */

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
  TinyTensor *next = tiny_tensor_add (tiny_tensor_mul_number (m, self->momentum), added);
  if (!tiny_optimizer_put (self, m, next, error))
    return NULL;
  if (group->damping != NULL
      && !tiny_optimizer_put (self, group->damping->pdata[i],
                              tiny_tensor_full (TINY_DTYPE_F32, NULL, 0, 1 - self->dampening),
                              error))
    return NULL;
  if (!self->nesterov)
    return g_object_ref (m);
  return g_object_ref_sink (tiny_tensor_add (kept, tiny_tensor_mul_number (m, self->momentum)));
}

/* (transfer full): the change of parameter @i, before the rate. */
static TinyTensor *
sgd_change (
    TinyOptimizer *self, TinyGroup *group, guint i, TinyTensor *gradient, GError **error)
{
  TinyTensor *g = gradient;
  if (group->weight_decay != 0)
    g = tiny_tensor_add (
        g, tiny_tensor_mul_number (group->parameters->pdata[i], group->weight_decay));
  g_autoptr (TinyTensor) change = with_momentum (self, group, i, g, error);
  return change == NULL ? NULL : g_object_ref_sink (tiny_tensor_mul (change, group->lr));
}

/* trust ‖p‖ / (‖g‖ + decay ‖p‖), 1 where a norm is 0. */
static TinyTensor *
lars_ratio (TinyOptimizer *self, TinyGroup *group, TinyTensor *p, TinyTensor *g)
{
  g_autoptr (TinyTensor) p_norm = g_object_ref_sink (norm_of (tiny_tensor_detach (p)));
  g_autoptr (TinyTensor) g_norm = g_object_ref_sink (norm_of (g));
  TinyTensor *both
      = tiny_tensor_add (g_norm, tiny_tensor_mul_number (p_norm, group->weight_decay));
  TinyTensor *ratio
      = tiny_tensor_div (tiny_tensor_mul_number (p_norm, self->trust), both, NULL);
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
  TinyTensor *ratio = lars_ratio (self, group, p, gradient);
  TinyTensor *g = mix (1, gradient, group->weight_decay, p);
  g = tiny_tensor_mul (g, tiny_tensor_mul (ratio, group->lr));
  return with_momentum (self, group, i, g, error);
}

/* About the orthogonal matrix that is nearest to @x (M, N). */
static TinyTensor *
orthogonal (TinyOptimizer *self, TinyTensor *x)
{
  static const double factors[] = { 3.4445, -4.775, 2.0315 };
  g_autoptr (GPtrArray) kept = tiny_kept_new ();
  gboolean is_tall = x->error == NULL && x->n_dims == 2 && x->shape[0] > x->shape[1];
  tiny_keep (kept, x);
  x = tiny_tensor_div (x, tiny_tensor_add_number (norm_of (x), 1e-7), NULL);
  x = tiny_keep (kept, is_tall ? tiny_tensor_transpose (x, 0, 1) : x);
  for (guint step = 0; step < self->n_steps; step++) {
    TinyTensor *a = tiny_keep (kept, tiny_tensor_matmul (x, tiny_tensor_transpose (x, 0, 1)));
    TinyTensor *b = mix (factors[1], a, factors[2], tiny_tensor_matmul (a, a));
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
  TinyTensor *x = orthogonal (self, tiny_tensor_reshape (u, (gint64[]){ rows, columns }, 2));
  x = tiny_tensor_reshape (x, p->shape, p->n_dims);
  x = mix (1, x, group->weight_decay, p);
  return g_object_ref_sink (tiny_tensor_mul (x, group->lr));
}

/* ---- Adam and what is made of it ---- */

/* 1 / (1 - β1^t) and 1 / (1 - β2^t), after a step of t. */
static gboolean
adam_scales (TinyOptimizer *self, TinyGroup *group, TinyTensor *out[2], GError **error)
{
  TinyTensor *betas[] = {
    tiny_tensor_full (TINY_DTYPE_F32, (gint64[]){ 1 }, 1, self->beta1),
    tiny_tensor_full (TINY_DTYPE_F32, (gint64[]){ 1 }, 1, self->beta2),
  };
  TinyTensor *powers = tiny_tensor_mul (group->powers, tiny_tensor_cat (betas, 2, 0));
  if (!tiny_optimizer_put (self, group->powers, powers, error))
    return FALSE;
  for (guint i = 0; i < 2; i++) {
    TinyTensor *power
        = tiny_tensor_reshape (tiny_tensor_slice (group->powers, 0, i, i + 1, 1), NULL, 0);
    out[i] = g_object_ref_sink (
        tiny_tensor_reciprocal (tiny_tensor_sub (tiny_tensor_scalar (1), power)));
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
             TinyTensor *const scales[2],
             GError **error)
{
  TinyTensor *p = group->parameters->pdata[i];
  TinyTensor *m = group->first->pdata[i], *v = group->second->pdata[i];
  g_autoptr (TinyTensor) g = g_object_ref_sink (
      self->rule == TINY_RULE_ADAM && group->weight_decay != 0
          ? tiny_tensor_add (gradient, tiny_tensor_mul_number (p, group->weight_decay))
          : tiny_tensor_new_alias (gradient));
  TinyTensor *square = tiny_tensor_square (g);
  if (!tiny_optimizer_put (self, m, mix (self->beta1, m, 1 - self->beta1, g), error)
      || !tiny_optimizer_put (self, v, mix (self->beta2, v, 1 - self->beta2, square), error))
    return NULL;
  TinyTensor *size = tiny_tensor_sqrt (tiny_tensor_mul (v, scales[1]));
  TinyTensor *change = tiny_tensor_div (tiny_tensor_mul (m, scales[0]),
                                        tiny_tensor_add_number (size, self->epsilon), NULL);
  if (self->rule != TINY_RULE_ADAM && group->weight_decay != 0)
    change = tiny_tensor_add (change, tiny_tensor_mul_number (p, group->weight_decay));
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
           TinyTensor *const scales[2],
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
  }
  g_assert_not_reached ();
}

static void
add_state (TinyGroup *group, guint i, GPtrArray *changed)
{
  GPtrArray *const lists[] = { group->parameters, group->first, group->second, group->damping };
  for (guint k = 0; k < G_N_ELEMENTS (lists); k++)
    if (lists[k] != NULL)
      g_ptr_array_add (changed, lists[k]->pdata[i]);
}

gboolean
tiny_optimizer_apply (TinyOptimizer *self, TinyGroup *group, GPtrArray *changed, GError **error)
{
  TinyTensor *scales[2] = { NULL };
  gboolean good = group->powers == NULL || adam_scales (self, group, scales, error);
  if (good && group->powers != NULL)
    g_ptr_array_add (changed, group->powers);
  for (guint i = 0; good && i < group->parameters->len; i++) {
    TinyTensor *p = group->parameters->pdata[i], *gradient = tiny_tensor_get_grad (p);
    if (gradient == NULL)
      continue;
    g_autoptr (TinyTensor) change = change_of (self, group, i, gradient, scales, error);
    good = change != NULL && tiny_optimizer_put (self, p, tiny_tensor_sub (p, change), error);
    add_state (group, i, changed);
  }
  g_clear_object (&scales[0]);
  g_clear_object (&scales[1]);
  return good;
}
