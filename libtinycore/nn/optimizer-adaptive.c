/* SPDX-License-Identifier: MIT
 *
 * optimizer-adaptive.c: optimisers that scale each element by what its gradients were; formulas and sources are at
 * the functions that make them (tiny-optimizer.h). Adam itself is in optimizer-rules.c. */
#include <math.h>

#include "nn/module-private.h"
#include "nn/optimizer-private.h"
#include "tensor/tiny-tensor-operations.h"

#define AT(name) (group->settings[TINY_SETTING_##name])

/* √v + ε */
static TinyTensor *
size_of (TinyGroup *group, TinyTensor *v)
{
  return tiny_tensor_add_number (tiny_tensor_sqrt (v), AT (EPSILON));
}

/* ---- numbers that are the same for all elements in a step ---- */

/* μ = β₁ (1 - ½ 0.96^(t ψ)), of the step after @ahead more. */
static TinyTensor *
nadam_momentum (TinyGroup *group, const TinyCount *count, double ahead)
{
  TinyTensor *t = tiny_tensor_add_number (count->steps, ahead);
  TinyTensor *power
      = tiny_tensor_exp (tiny_tensor_mul_number (t, log (0.96) * AT (MOMENTUM_DECAY)));
  power = tiny_tensor_add_number (tiny_tensor_mul_number (power, -0.5), 1);
  return tiny_group_damp (group, power, TINY_SETTING_BETA1);
}

/* The factors of the gradient and of the first moment, and 1 / (1 - β₂ᵗ). */
static gboolean
nadam_numbers (TinyOptimizer *self,
               TinyGroup *group,
               const TinyCount *count,
               TinyTensor *out[3],
               GError **error)
{
  g_autoptr (TinyTensor) now = g_object_ref_sink (nadam_momentum (group, count, 0));
  g_autoptr (TinyTensor) next = g_object_ref_sink (nadam_momentum (group, count, 1));
  TinyTensor *p = count->product;
  if (!tiny_optimizer_put (self, p, tiny_tensor_mul (p, now), error))
    return FALSE;
  TinyTensor *rest = tiny_tensor_sub (tiny_tensor_scalar (1), now);
  out[0] = tiny_tensor_div (rest, tiny_tensor_sub (tiny_tensor_scalar (1), p), NULL);
  rest = tiny_tensor_sub (tiny_tensor_scalar (1), tiny_tensor_mul (p, next));
  out[1] = tiny_tensor_div (next, rest, NULL);
  out[2] = tiny_correction (count->steps, AT (BETA2), NULL);
  return TRUE;
}

/* ρ = ρ∞ - 2 t β₂ᵗ / (1 - β₂ᵗ) with ρ∞ = 2 / (1 - β₂) - 1: nearly equal numbers at first. With y = -t log β₂ it is
 * c + 2 / -log β₂ · (1 - y / (eʸ - 1)), c a small constant, and what is in parentheses is, where y is small, the series of Bernoulli's
 * numbers y/2 - y²/12 + y⁴/720 - …. */
static TinyTensor *
radam_length (TinyGroup *group, const TinyCount *count)
{
  double beta = AT (BETA2), rate = -log (beta);
  double constant = 2 / (1 - beta) - 1 - 2 / rate;
  g_autoptr (TinyTensor) y = g_object_ref_sink (tiny_tensor_mul_number (count->steps, rate));
  g_autoptr (TinyTensor) z = g_object_ref_sink (tiny_tensor_square (y));
  static const double terms[] = { 1.0 / 1209600, -1.0 / 30240, 1.0 / 720, -1.0 / 12 };
  TinyTensor *series = tiny_tensor_mul_number (z, -1.0 / 47900160);
  for (guint i = 0; i < G_N_ELEMENTS (terms); i++)
    series = tiny_tensor_mul (tiny_tensor_add_number (series, terms[i]), z);
  series = tiny_tensor_add (series, tiny_tensor_mul_number (y, 0.5));
  TinyTensor *far = tiny_tensor_div (y, tiny_tensor_expm1 (y), NULL);
  far = tiny_tensor_sub (tiny_tensor_scalar (1), far);
  TinyTensor *part
      = tiny_tensor_where (tiny_tensor_lt (y, tiny_tensor_scalar (1)), series, far);
  return tiny_tensor_add_number (tiny_tensor_mul_number (part, 2 / rate), constant);
}

/* 1 / (1 - β₁ᵗ), and r √(1 - β₂ᵗ), 0 where ρ is at most 5. */
static void
radam_numbers (TinyGroup *group, const TinyCount *count, TinyTensor *out[3])
{
  double most = 2 / (1 - AT (BETA2)) - 1;
  g_autoptr (TinyTensor) length = g_object_ref_sink (radam_length (group, count));
  g_autoptr (TinyTensor) is_long
      = g_object_ref_sink (tiny_tensor_gt (length, tiny_tensor_scalar (5)));
  g_autoptr (TinyTensor) safe
      = g_object_ref_sink (tiny_tensor_where (is_long, length, tiny_tensor_scalar_float (6)));
  TinyTensor *r
      = tiny_tensor_mul (tiny_tensor_add_number (safe, -4), tiny_tensor_add_number (safe, -2));
  r = tiny_tensor_div (tiny_tensor_mul_number (r, most / ((most - 4) * (most - 2))), safe,
                       NULL);
  r = tiny_tensor_sqrt (
      tiny_tensor_div (r, tiny_correction (count->steps, AT (BETA2), NULL), NULL));
  out[0] = tiny_correction (count->steps, AT (BETA1), group->momentum);
  out[1] = tiny_tensor_where (is_long, r, tiny_tensor_scalar_float (0));
}

gboolean
tiny_adaptive_numbers (
    TinyOptimizer *self, TinyGroup *group, TinyCount *count, TinyTensor *out[3], GError **error)
{
  switch (self->rule) {
  case TINY_RULE_ADAGRAD: /* 1 / (1 + (t - 1) decay) */
    out[0] = tiny_tensor_mul_number (tiny_tensor_add_number (count->steps, -1), AT (LR_DECAY));
    out[0] = tiny_tensor_reciprocal (tiny_tensor_add_number (out[0], 1));
    return TRUE;
  case TINY_RULE_ADAMAX:
    out[0] = tiny_correction (count->steps, AT (BETA1), group->momentum);
    return TRUE;
  case TINY_RULE_NADAM:
    return nadam_numbers (self, group, count, out, error);
  case TINY_RULE_RADAM:
    radam_numbers (group, count, out);
    return TRUE;
  default:
    return TRUE;
  }
}

/* ---- (transfer floating): the change of parameter @i by @g, before the rate; NULL after an error ---- */
static TinyTensor *
rmsprop_change (TinyOptimizer *self, TinyGroup *group, guint i, TinyTensor *g, GError **error)
{
  TinyTensor *v = group->second->pdata[i], *size = v;
  double keep = AT (ALPHA);
  if (!tiny_optimizer_put (self, v, tiny_mix (keep, v, 1 - keep, tiny_tensor_square (g)),
                           error))
    return NULL;
  if (AT (CENTERED) != 0) {
    TinyTensor *mean = group->third->pdata[i];
    if (!tiny_optimizer_put (self, mean, tiny_mix (keep, mean, 1 - keep, g), error))
      return NULL;
    size = tiny_tensor_sub (v, tiny_tensor_square (mean));
  }
  TinyTensor *change = tiny_tensor_div (g, size_of (group, size), NULL);
  if (AT (MOMENTUM) == 0)
    return change;
  TinyTensor *m = group->first->pdata[i];
  change = tiny_tensor_add (tiny_group_damp (group, m, TINY_SETTING_MOMENTUM), change);
  return tiny_optimizer_put (self, m, change, error) ? tiny_tensor_new_alias (m) : NULL;
}

static TinyTensor *
adagrad_change (TinyOptimizer *self,
                TinyGroup *group,
                guint i,
                TinyTensor *g,
                TinyTensor *const numbers[3],
                GError **error)
{
  TinyTensor *sum = group->second->pdata[i];
  if (!tiny_optimizer_put (self, sum, tiny_tensor_add (sum, tiny_tensor_square (g)), error))
    return NULL;
  return tiny_tensor_mul (tiny_tensor_div (g, size_of (group, sum), NULL), numbers[0]);
}

static TinyTensor *
adadelta_change (TinyOptimizer *self, TinyGroup *group, guint i, TinyTensor *g, GError **error)
{
  TinyTensor *changes = group->first->pdata[i], *v = group->second->pdata[i];
  double keep = AT (RHO);
  if (!tiny_optimizer_put (self, v, tiny_mix (keep, v, 1 - keep, tiny_tensor_square (g)),
                           error))
    return NULL;
  TinyTensor *ratio = tiny_tensor_div (tiny_tensor_add_number (changes, AT (EPSILON)),
                                       tiny_tensor_add_number (v, AT (EPSILON)), NULL);
  g_autoptr (TinyTensor) change
      = g_object_ref_sink (tiny_tensor_mul (tiny_tensor_sqrt (ratio), g));
  TinyTensor *next = tiny_mix (keep, changes, 1 - keep, tiny_tensor_square (change));
  return tiny_optimizer_put (self, changes, next, error) ? tiny_tensor_new_alias (change)
                                                         : NULL;
}

/* What Adamax, NAdam and RAdam make of their moments. */
static TinyTensor *
moments_change (TinyOptimizer *self,
                TinyGroup *group,
                guint i,
                TinyTensor *g,
                TinyTensor *const numbers[3],
                GError **error)
{
  TinyTensor *m = group->first->pdata[i], *v = group->second->pdata[i];
  g_autoptr (TinyTensor) second = g_object_ref_sink (
      self->rule == TINY_RULE_ADAMAX
          ? tiny_tensor_maximum (tiny_tensor_mul_number (v, AT (BETA2)),
                                 tiny_tensor_add_number (tiny_tensor_abs (g), AT (EPSILON)))
          : tiny_mix (AT (BETA2), v, 1 - AT (BETA2), tiny_tensor_square (g)));
  if (!tiny_optimizer_put (self, m, tiny_group_mix_first (group, m, g), error)
      || !tiny_optimizer_put (self, v, second, error))
    return NULL;
  if (self->rule == TINY_RULE_ADAMAX)
    return tiny_tensor_mul (tiny_tensor_div (m, v, NULL), numbers[0]);
  if (self->rule == TINY_RULE_NADAM)
    return tiny_tensor_div (
        tiny_tensor_add (tiny_tensor_mul (g, numbers[0]), tiny_tensor_mul (m, numbers[1])),
        size_of (group, tiny_tensor_mul (v, numbers[2])), NULL);
  TinyTensor *is_scaled = tiny_tensor_gt (numbers[1], tiny_tensor_scalar (0));
  TinyTensor *scale = tiny_tensor_div (numbers[1], size_of (group, v), NULL);
  scale = tiny_tensor_where (is_scaled, scale, tiny_tensor_scalar_float (1));
  return tiny_tensor_mul (tiny_tensor_mul (m, numbers[0]), scale);
}

TinyTensor *
tiny_adaptive_change (TinyOptimizer *self,
                      TinyGroup *group,
                      guint i,
                      TinyTensor *gradient,
                      TinyTensor *const numbers[3],
                      GError **error)
{
  TinyTensor *decay = tiny_tensor_mul_number (group->parameters->pdata[i], AT (WEIGHT_DECAY));
  g_autoptr (TinyTensor) g = g_object_ref_sink (tiny_tensor_add (gradient, decay));
  TinyTensor *change;
  if (self->rule == TINY_RULE_RMSPROP)
    change = rmsprop_change (self, group, i, g, error);
  else if (self->rule == TINY_RULE_ADAGRAD)
    change = adagrad_change (self, group, i, g, numbers, error);
  else if (self->rule == TINY_RULE_ADADELTA)
    change = adadelta_change (self, group, i, g, error);
  else
    change = moments_change (self, group, i, g, numbers, error);
  return change == NULL ? NULL : g_object_ref_sink (tiny_tensor_mul (change, group->lr));
}
