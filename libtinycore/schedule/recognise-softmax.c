/* SPDX-License-Identifier: MIT
 *
 * recognise-softmax.c: powers of each element's distance from the largest, divided by their sum.
 *
 * The kernel has the power twice, of the element that is written and of all that are summed, each with the maximum
 * inside: three reductions' worth of loops over one buffer, which have to be the same but for the counter along one
 * axis. How the exponent is written does not matter: it is taken apart into multiples of what is loaded and of the
 * maximum. */
#include <math.h>

#include "schedule/recognise.h"

enum { N_KEPT = TINY_SOFTMAX_AXIS - TINY_SOFTMAX_KEPT };

/* by_x · x + by_maximum · maximum */
typedef struct {
  TinyNode *load, *maximum;
  double by_x, by_maximum;
  Access x;
} Sum;

gboolean
recognise_terms (TinyNode *node, double factor, Terms *out)
{
  TinyNode *const *s = node->sources;
  if (node->op == TINY_OP_NEG)
    return recognise_terms (s[0], -factor, out);
  if (node->op == TINY_OP_ADD || node->op == TINY_OP_SUB)
    return recognise_terms (s[0], factor, out)
           && recognise_terms (s[1], node->op == TINY_OP_ADD ? factor : -factor, out);
  for (guint i = 0; i < 2 && node->op == TINY_OP_MUL; i++)
    if (tiny_node_is_const (s[i]))
      return recognise_terms (s[1 - i], factor * tiny_node_get_float (s[i]), out);
  guint i = 0;
  while (i < out->n && out->terms[i].node != node)
    i++;
  if (i == RECOGNISE_MAX_TERMS)
    return FALSE;
  out->n = MAX (out->n, i + 1);
  out->terms[i].node = node;
  out->terms[i].factor += factor;
  return TRUE;
}

static gboolean
read_sum (Recognition *self, TinyNode *node, Sum *out)
{
  Terms terms = { 0 };
  if (!recognise_terms (node, 1, &terms) || terms.n > 2)
    return FALSE;
  for (guint i = 0; i < terms.n; i++) {
    TinyNode *term = terms.terms[i].node;
    if (term->op == TINY_OP_REDUCE) {
      out->maximum = term;
      out->by_maximum = terms.terms[i].factor;
    } else {
      out->load = term;
      out->by_x = terms.terms[i].factor;
    }
  }
  return out->load != NULL && terms.n == 1u + (out->maximum != NULL)
         && recognise_load (self, out->load, &out->x) && out->x.gate == NULL;
}

/* An exponential whose exponent is at most 0 but for rounding: what is taken off is the maximum of the same. */
typedef struct {
  Sum exponent, inside; /* inside: what the maximum is of */
  TinyNode *range;      /* along which */
} Exponential;

static gboolean
read_exponential (Recognition *self, TinyNode *node, Exponential *out)
{
  *out = (Exponential){ { NULL } };
  Sum *exponent = &out->exponent, *inside = &out->inside;
  if (node->op != TINY_OP_EXP2 || !read_sum (self, node->sources[0], exponent)
      || exponent->maximum == NULL)
    return FALSE;
  const TinyNode *maximum = exponent->maximum;
  if (maximum->arg != TINY_OP_MAX || maximum->n_sources != 2
      || !read_sum (self, maximum->sources[0], inside) || inside->maximum != NULL)
    return FALSE;
  out->range = maximum->sources[1];
  /* Factors are rounded one by one, and what is taken off cancels: it need not be to the bit. */
  const double wanted = -exponent->by_x / inside->by_x;
  return inside->by_x > 0 && fabs (exponent->by_maximum - wanted) <= 1e-3 * fabs (wanted);
}

/* Whether @x and @y are the same memory where @of_x and @of_y count alike; what either does not depend on may be
 * NULL. */
static gboolean
is_same (const Access *x, TinyNode *of_x, const Access *y, TinyNode *of_y)
{
  if (x->param != y->param || x->at->offset != y->at->offset || x->at->n != y->at->n
      || affine_get_mul (x->at, of_x) != affine_get_mul (y->at, of_y)
      || tiny_range_get_extent (of_x) != tiny_range_get_extent (of_y))
    return FALSE;
  for (guint i = 0; i < x->at->n; i++)
    if (x->at->terms[i].atom != of_x
        && affine_get_mul (y->at, x->at->terms[i].atom) != x->at->terms[i].mul)
      return FALSE;
  return TRUE;
}

/* The loop of the output along which @sum runs in what is summed. */
static TinyNode *
find_axis (const Recognition *self, const Exponential *own, const Exponential *summed)
{
  const Affine *at = self->accesses[TINY_ROLE_OUTPUT].at;
  TinyNode *found = NULL;
  for (guint i = 0; i < at->n; i++) {
    TinyNode *range = at->terms[i].atom;
    if (affine_get_mul (summed->exponent.x.at, range) != 0
        || affine_get_mul (own->exponent.x.at, range) == 0)
      continue;
    if (found != NULL)
      return NULL;
    found = range;
  }
  return found;
}

static gboolean
fits (const Exponential *own, TinyNode *axis, const Exponential *summed, TinyNode *range)
{
  return own->exponent.by_x == summed->exponent.by_x
         && own->exponent.by_maximum == summed->exponent.by_maximum
         && is_same (&own->exponent.x, axis, &summed->exponent.x, range)
         && is_same (&own->exponent.x, axis, &own->inside.x, own->range)
         && is_same (&own->exponent.x, axis, &summed->inside.x, summed->range);
}

TinyNode *
recognise_quotient (TinyNode *value, TinyNode **out_sum)
{
  TinyNode *x = NULL;
  if (value->op == TINY_OP_FDIV) {
    x = value->sources[0];
    *out_sum = value->sources[1];
  }
  for (guint i = 0; i < 2 && value->op == TINY_OP_MUL && x == NULL; i++)
    if (value->sources[i]->op == TINY_OP_RECIP) {
      *out_sum = value->sources[i]->sources[0];
      x = value->sources[1 - i];
    }
  return x != NULL && (*out_sum)->op == TINY_OP_REDUCE && (*out_sum)->arg == TINY_OP_ADD
                 && (*out_sum)->n_sources == 2
             ? x
             : NULL;
}

gboolean
recognise_softmax (Recognition *self)
{
  TinyOperation *out = self->out;
  Exponential own, summed;
  TinyNode *sum = NULL, *power = recognise_quotient (self->core, &sum);
  if (power == NULL || out->activation != TINY_ACTIVATION_NONE || out->scale != 1
      || self->accesses[TINY_ROLE_BIAS].param != NULL
      || !tiny_dtype_is_float (out->compute_dtype) || !read_exponential (self, power, &own)
      || !read_exponential (self, sum->sources[0], &summed))
    return FALSE;
  TinyNode *axis = find_axis (self, &own, &summed);
  if (axis == NULL || !fits (&own, axis, &summed, sum->sources[1]))
    return FALSE;
  self->accesses[TINY_ROLE_A] = own.exponent.x;
  if (!recognise_list_loops (self))
    return FALSE;
  for (guint i = 0; i < self->n_loops; i++) /* by itself, so that it is joined with none */
    self->loops[i].is_reduced = self->loops[i].range == axis;
  recognise_join_loops (self, FALSE);
  out->kind = TINY_OPERATION_SOFTMAX;
  out->n_axes = TINY_SOFTMAX_AXIS + 1;
  /* 1 / ln 2 is rounded where the kernel is not in f64. */
  const double scale = own.exponent.by_x * G_LN2;
  const double eps = out->compute_dtype == TINY_DTYPE_F64 ? 1e-15 : 1e-7;
  out->scale = fabs (scale - 1) < eps ? 1 : scale;
  guint n_kept = 0;
  for (guint i = 0; i < self->n_loops; i++)
    if (self->loops[i].is_reduced)
      recognise_set_axis (self, TINY_SOFTMAX_AXIS, &self->loops[i]);
    else if (n_kept < N_KEPT)
      recognise_set_axis (self, TINY_SOFTMAX_KEPT + n_kept++, &self->loops[i]);
  return recognise_add_operands (self);
}
