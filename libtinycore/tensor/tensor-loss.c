/* SPDX-License-Identifier: MIT
 *
 * tensor-loss.c: how far from what was wanted: losses element by element, then combined. */
#include <math.h>

#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"

typedef enum { MEAN, SUM, NONE } Reduction;

static gboolean
take_reduction (TinyBuild *b, const char *word, Reduction *out)
{
  guint which = 0;
  gboolean known = tiny_build_word (b, word, "mean|sum|none", &which);
  *out = (Reduction) which;
  return known;
}

/* The sum of all elements, of shape (). */
static TinyNode *
total (TinyBuild *b, TinyNode *x)
{
  gint64 axes[TINY_MAX_RANK];
  if (x == NULL || x->shape->n == 0)
    return x;
  for (guint i = 0; i < x->shape->n; i++)
    axes[i] = i;
  return tiny_build_squeeze (b, tiny_build_sum (b, x, axes, x->shape->n), axes, x->shape->n);
}

static TinyNode *
reduce (TinyBuild *b, TinyNode *loss, const char *reduction)
{
  Reduction how;
  gint64 axes[TINY_MAX_RANK];
  if (!take_reduction (b, reduction, &how) || loss == NULL || how == NONE
      || loss->shape->n == 0)
    return b->error == NULL ? loss : NULL;
  if (how == SUM)
    return total (b, loss);
  for (guint i = 0; i < loss->shape->n; i++)
    axes[i] = i;
  return tiny_build_squeeze (b, tiny_build_mean (b, loss, axes, loss->shape->n), axes,
                             loss->shape->n);
}

static TinyNode *
at_least (TinyBuild *b, TinyNode *x, double number)
{
  return op_clamp_min (b, x, tiny_build_like (b, x, number));
}

/* Integers as @like's floats: a target may count, or be 0 or 1. */
static TinyNode *
as_float (TinyBuild *b, TinyNode *x, const TinyNode *like)
{
  return tiny_dtype_is_float (x->dtype) ? x : tiny_build_cast (b, x, (TinyDType) like->dtype);
}

/* ---- by distance ---- */
TinyNode *
op_mse_loss (TinyBuild *b, TinyNode *self, TinyNode *target, const char *reduction)
{
  return reduce (b, op_square (b, tiny_build_sub (b, self, target)), reduction);
}

TinyNode *
op_l1_loss (TinyBuild *b, TinyNode *self, TinyNode *target, const char *reduction)
{
  return reduce (b, op_abs (b, tiny_build_sub (b, self, target)), reduction);
}

/* d²/2 where d is below @delta, beyond that the tangent. */
static TinyNode *
huber (TinyBuild *b, TinyNode *x, TinyNode *y, double delta)
{
  TinyNode *d = op_abs (b, tiny_build_sub (b, x, y));
  return tiny_build_where (
      b, tiny_build_less (b, d, tiny_build_like (b, d, delta)),
      tiny_build_mul_number (b, tiny_build_mul (b, d, d), 0.5),
      tiny_build_mul_number (b, tiny_build_add_number (b, d, -0.5 * delta), delta));
}

TinyNode *
op_huber_loss (
    TinyBuild *b, TinyNode *self, TinyNode *target, const char *reduction, double delta)
{
  if (!(delta > 0))
    return tiny_build_fail (b, "delta %g is not above 0", delta);
  return reduce (b, huber (b, self, target, delta), reduction);
}

TinyNode *
op_smooth_l1_loss (
    TinyBuild *b, TinyNode *self, TinyNode *target, const char *reduction, double beta)
{
  if (!(beta >= 0))
    return tiny_build_fail (b, "beta %g is not 0 or more", beta);
  if (beta == 0)
    return op_l1_loss (b, self, target, reduction);
  return reduce (b, tiny_build_mul_number (b, huber (b, self, target, beta), 1 / beta),
                 reduction);
}

/* ---- between probabilities ---- */

/* log (x), at least -100 so that a loss stays finite. */
static TinyNode *
bounded_log (TinyBuild *b, TinyNode *x)
{
  return at_least (b, op_log (b, x), -100);
}

/* (x - y) / (x (1 - x)), the slope of the loss of x where y is wanted, of a product of at least 1e-12: finite at 0
 * and 1, where x gets away from what is wrong. */
static TinyNode *
crossentropy_slope (TinyBuild *b, TinyNode *x, TinyNode *y, TinyNode *other)
{
  return tiny_build_div (b, tiny_build_sub (b, x, y),
                         at_least (b, tiny_build_mul (b, x, other), 1e-12));
}

static gboolean
check_same (TinyBuild *b, const TinyNode *x, const TinyNode *y)
{
  if (tiny_shape_equal (x->shape, y->shape))
    return TRUE;
  g_autofree char *first = tiny_shape_to_string (x->shape);
  g_autofree char *second = tiny_shape_to_string (y->shape);
  tiny_build_fail (b, "predictions and targets are of one shape, not %s and %s", first, second);
  return FALSE;
}

TinyNode *
op_binary_crossentropy (
    TinyBuild *b, TinyNode *self, TinyNode *target, TinyNode *weight, const char *reduction)
{
  target = as_float (b, target, self);
  if (!check_same (b, self, target))
    return NULL;
  TinyNode *other = tiny_build_add_number (b, op_neg (b, self), 1);
  TinyNode *hit = bounded_log (b, self), *miss = bounded_log (b, other);
  TinyNode *loss = op_neg (
      b, tiny_build_add (
             b, tiny_build_mul (b, target, hit),
             tiny_build_mul (b, tiny_build_add_number (b, op_neg (b, target), 1), miss)));
  loss = tiny_build_sloped (b, loss, self, crossentropy_slope (b, self, target, other));
  /* And of the target, whose own part adds nothing. */
  loss = tiny_build_add (b, loss,
                         tiny_build_sloped (b, tiny_build_like (b, loss, -0.0), target,
                                            tiny_build_sub (b, miss, hit)));
  return reduce (b, weight == NULL ? loss : tiny_build_mul (b, loss, weight), reduction);
}

/* log (1 + exp (-|x|)), and where x is negative. Written without |x|, whose gradient at 0 is 0. */
static TinyNode *
soft_part (TinyBuild *b, TinyNode *x, TinyNode **is_negative)
{
  *is_negative = tiny_build_less (b, x, tiny_build_like (b, x, 0));
  return op_log (b,
                 tiny_build_add_number (
                     b, op_exp (b, tiny_build_where (b, *is_negative, x, op_neg (b, x))), 1));
}

/* (1 - y) x + p log (1 + exp (-x)) with p = 1 + (pos_weight - 1) y; of a negative x the logarithm is
 * -x + log (1 + exp (x)), and that -x is taken off first, as it would cancel. */
TinyNode *
op_binary_crossentropy_logits (TinyBuild *b,
                               TinyNode *self,
                               TinyNode *target,
                               TinyNode *weight,
                               const char *reduction,
                               TinyNode *pos_weight)
{
  target = as_float (b, target, self);
  if (!check_same (b, self, target))
    return NULL;
  TinyNode *is_negative, *soft = soft_part (b, self, &is_negative);
  TinyNode *rest = tiny_build_add_number (b, op_neg (b, target), 1),
           *of_negative = op_neg (b, target);
  if (pos_weight != NULL) {
    TinyNode *p = tiny_build_add_number (
        b, tiny_build_mul (b, tiny_build_add_number (b, pos_weight, -1), target), 1);
    of_negative = tiny_build_sub (b, rest, p);
    soft = tiny_build_mul (b, soft, p);
  }
  rest = tiny_build_mul (b, tiny_build_where (b, is_negative, of_negative, rest), self);
  TinyNode *loss = tiny_build_add (b, rest, soft);
  return reduce (b, weight == NULL ? loss : tiny_build_mul (b, loss, weight), reduction);
}

/* Where a target is 0 there is no loss, whatever the logarithm. */
TinyNode *
op_kl_div (
    TinyBuild *b, TinyNode *self, TinyNode *target, const char *reduction, gboolean log_target)
{
  target = as_float (b, target, self);
  TinyNode *zero = tiny_build_like (b, target, 0), *loss;
  if (log_target) {
    loss = tiny_build_mul (b, op_exp (b, target), tiny_build_sub (b, target, self));
  } else {
    TinyNode *is_some = tiny_build_less (b, zero, target);
    TinyNode *safe = tiny_build_where (b, is_some, target, tiny_build_like (b, target, 1));
    TinyNode *own
        = tiny_build_where (b, is_some, tiny_build_mul (b, target, op_log (b, safe)), zero);
    loss = tiny_build_sub (b, own, tiny_build_mul (b, target, self));
  }
  if (g_strcmp0 (reduction, "batchmean") != 0 || loss == NULL)
    return reduce (b, loss, reduction);
  if (loss->shape->n > 0 && !tiny_build_check_number (b, loss, 0))
    return NULL;
  gint64 n = loss->shape->n > 0 ? loss->shape->v[0] : 1;
  return tiny_build_mul_number (b, total (b, loss), 1.0 / (double) n);
}

TinyNode *
op_poisson_nll_loss (TinyBuild *b,
                     TinyNode *self,
                     TinyNode *target,
                     gboolean log_input,
                     gboolean full,
                     double eps,
                     const char *reduction)
{
  target = as_float (b, target, self);
  TinyNode *loss
      = log_input
            ? tiny_build_sub (b, op_exp (b, self), tiny_build_mul (b, target, self))
            : tiny_build_sub (
                b, self,
                tiny_build_mul (b, target, op_log (b, tiny_build_add_number (b, self, eps))));
  if (full) {
    /* Stirling's approximation of log (target!), of what is above 1. */
    TinyNode *one = tiny_build_like (b, target, 1),
             *is_large = tiny_build_less (b, one, target);
    TinyNode *n = tiny_build_where (b, is_large, target, one);
    TinyNode *stirling = tiny_build_sub (b, tiny_build_mul (b, n, op_log (b, n)), n);
    stirling = tiny_build_add (
        b, stirling,
        tiny_build_mul_number (b, op_log (b, tiny_build_mul_number (b, n, 2 * G_PI)), 0.5));
    loss = tiny_build_add (b, loss,
                           tiny_build_where (b, is_large, stirling, tiny_build_like (b, n, 0)));
  }
  return reduce (b, loss, reduction);
}

TinyNode *
op_gaussian_nll_loss (TinyBuild *b,
                      TinyNode *self,
                      TinyNode *target,
                      TinyNode *var,
                      gboolean full,
                      double eps,
                      const char *reduction)
{
  target = as_float (b, target, self);
  if (var->shape->n + 1 == self->shape->n)
    var = tiny_build_unsqueeze (b, var, var->shape->n);
  /* A variance below the bound is treated as it, also in its gradient. */
  TinyNode *bound
      = tiny_build_sloped (b, at_least (b, var, eps), var, tiny_build_like (b, var, 1));
  TinyNode *square = op_square (b, tiny_build_sub (b, self, target));
  TinyNode *loss = tiny_build_mul_number (
      b, tiny_build_add (b, op_log (b, bound), tiny_build_div (b, square, bound)), 0.5);
  return reduce (b, full ? tiny_build_add_number (b, loss, 0.5 * log (2 * G_PI)) : loss,
                 reduction);
}

/* ---- of pairs ---- */
static TinyNode *
dot_along (TinyBuild *b, TinyNode *x, TinyNode *y, guint axis)
{
  gint64 axes[] = { axis };
  return tiny_build_squeeze (b, tiny_build_sum (b, tiny_build_mul (b, x, y), axes, 1), axes, 1);
}

TinyNode *
op_cosine_similarity (TinyBuild *b, TinyNode *self, TinyNode *other, guint axis, double eps)
{
  TinyNode *sum = tiny_build_add (b, self, other); /* of the shape both broadcast to */
  if (sum == NULL)
    return NULL;
  axis += sum->shape->n - self->shape->n;
  self = tiny_build_expand (b, self, sum->shape->v, sum->shape->n);
  other = tiny_build_expand (b, other, sum->shape->v, sum->shape->n);
  TinyNode *lengths
      = tiny_build_mul (b, at_least (b, dot_along (b, self, self, axis), eps * eps),
                        at_least (b, dot_along (b, other, other, axis), eps * eps));
  return tiny_build_div (b, dot_along (b, self, other, axis), op_sqrt (b, lengths));
}

/* @near where the target is 1, @far where it is -1, 0 elsewhere. */
static TinyNode *
by_sign (TinyBuild *b, TinyNode *target, TinyNode *near, TinyNode *far)
{
  TinyNode *zero = tiny_build_like (b, near, 0);
  TinyNode *is_near
      = tiny_build_binary (b, TINY_OP_CMPEQ, target, tiny_build_like (b, target, 1));
  TinyNode *is_far
      = tiny_build_binary (b, TINY_OP_CMPEQ, target, tiny_build_like (b, target, -1));
  return tiny_build_where (b, is_near, near, tiny_build_where (b, is_far, far, zero));
}

TinyNode *
op_cosine_embedding_loss (TinyBuild *b,
                          TinyNode *self,
                          TinyNode *other,
                          TinyNode *target,
                          double margin,
                          const char *reduction)
{
  target = as_float (b, target, self);
  if (self->shape->n < 1)
    return tiny_build_fail (b, "takes vectors, not a number");
  TinyNode *cosine = op_cosine_similarity (b, self, other, self->shape->n - 1, 1e-6);
  TinyNode *near = tiny_build_add_number (b, op_neg (b, cosine), 1);
  TinyNode *far = at_least (b, tiny_build_add_number (b, cosine, -margin), 0);
  return near == NULL ? NULL : reduce (b, by_sign (b, target, near, far), reduction);
}

TinyNode *
op_hinge_embedding_loss (
    TinyBuild *b, TinyNode *self, TinyNode *target, double margin, const char *reduction)
{
  target = as_float (b, target, self);
  TinyNode *far = at_least (b, tiny_build_add_number (b, op_neg (b, self), margin), 0);
  return reduce (b, by_sign (b, target, self, far), reduction);
}

TinyNode *
op_margin_ranking_loss (TinyBuild *b,
                        TinyNode *self,
                        TinyNode *other,
                        TinyNode *target,
                        double margin,
                        const char *reduction)
{
  target = as_float (b, target, self);
  TinyNode *above = tiny_build_mul (b, target, tiny_build_sub (b, self, other));
  return reduce (b, at_least (b, tiny_build_add_number (b, op_neg (b, above), margin), 0),
                 reduction);
}

TinyNode *
op_soft_margin_loss (TinyBuild *b, TinyNode *self, TinyNode *target, const char *reduction)
{
  target = as_float (b, target, self);
  TinyNode *x = tiny_build_mul (b, self, target), *is_negative,
           *soft = soft_part (b, x, &is_negative);
  TinyNode *rest = tiny_build_where (b, is_negative, op_neg (b, x), tiny_build_like (b, x, 0));
  return reduce (b, tiny_build_add (b, rest, soft), reduction);
}

/* The length of each difference along the last axis. */
static TinyNode *
distance (TinyBuild *b, TinyNode *x, TinyNode *y, double p, double eps)
{
  TinyNode *d = tiny_build_add_number (b, tiny_build_sub (b, x, y), eps);
  if (d == NULL || d->shape->n == 0)
    return tiny_build_fail (b, "takes vectors, not numbers");
  gint64 axes[] = { d->shape->n - 1 };
  return tiny_build_squeeze (b, op_norm (b, d, p, axes, 1), axes, 1);
}

TinyNode *
op_triplet_margin_loss (TinyBuild *b,
                        TinyNode *self,
                        TinyNode *positive,
                        TinyNode *negative,
                        double margin,
                        double p,
                        double eps,
                        gboolean swap,
                        const char *reduction)
{
  TinyNode *near = distance (b, self, positive, p, eps);
  TinyNode *far = distance (b, self, negative, p, eps);
  if (swap)
    far = op_minimum (b, far, distance (b, positive, negative, p, eps));
  return reduce (
      b, at_least (b, tiny_build_add_number (b, tiny_build_sub (b, near, far), margin), 0),
      reduction);
}
