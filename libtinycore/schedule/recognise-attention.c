/* SPDX-License-Identifier: MIT
 *
 * recognise-attention.c: what keys score against queries, as weights of their values.
 *
 * The kernel has the scores four times, as a softmax has what it is of: of the weight at hand and of all that are
 * summed, each with the maximum inside. Each is taken apart into multiples of a sum of products, of a mask and of
 * the maximum, and has to be the first but for the counters along keys and depth. */
#include <math.h>

#include "schedule/recognise.h"

enum { N_BATCHES = TINY_ATTENTION_QUERY - TINY_ATTENTION_BATCH };

/* by_dot · dot + by_mask · mask + by_maximum · maximum, and nothing of keys where @beyond is above 0. */
typedef struct {
  TinyNode *dot, *mask, *maximum;
  double by_dot, by_mask, by_maximum;
  const Affine *beyond;
  Access a, b, of_mask;
} Scores;

/* ---- taking scores apart ---- */

/* A whole number that loops count; NULL: it is none. */
static const Affine *
read_counter (Recognition *self, TinyNode *node)
{
  TinyNode *const *s = node->sources;
  if (node->dtype == TINY_DTYPE_INDEX)
    return affine_read (self->pool, node);
  if (node->dtype != TINY_DTYPE_I32 && node->dtype != TINY_DTYPE_I64)
    return NULL;
  if (node->op == TINY_OP_CONST)
    return affine_const (self->pool, node->arg);
  if (node->op == TINY_OP_CAST)
    return read_counter (self, s[0]);
  const Affine *x = node->n_sources == 2 ? read_counter (self, s[0]) : NULL,
               *y = x != NULL ? read_counter (self, s[1]) : NULL;
  if (y == NULL)
    return NULL;
  if (node->op == TINY_OP_ADD || node->op == TINY_OP_SUB)
    return affine_sum (self->pool, x, 1, y, node->op == TINY_OP_ADD ? 1 : -1, 0);
  if (node->op == TINY_OP_MUL && (x->n == 0 || y->n == 0))
    return x->n == 0 ? affine_scale (self->pool, y, x->offset, 0)
                     : affine_scale (self->pool, x, y->offset, 0);
  return NULL;
}

/* The sum of loops that is above 0 where @gate is @value. */
static const Affine *
read_beyond (Recognition *self, TinyNode *gate, gboolean value)
{
  if (gate->op == TINY_OP_CMPNE && tiny_node_is_const_int (gate->sources[1], 1))
    return read_beyond (self, gate->sources[0], !value);
  if (gate->op != TINY_OP_CMPLT)
    return NULL;
  const Affine *x = read_counter (self, gate->sources[0]),
               *y = read_counter (self, gate->sources[1]);
  if (x == NULL || y == NULL)
    return NULL;
  return value ? affine_sum (self->pool, y, 1, x, -1, 0)
               : affine_sum (self->pool, x, 1, y, -1, 1);
}

static gboolean
is_nothing (const TinyNode *node)
{
  return node->op == TINY_OP_CONST && tiny_dtype_is_float (node->dtype)
         && tiny_node_get_float (node) == -INFINITY;
}

static gboolean read_scores (Recognition *self, TinyNode *node, double factor, Scores *out);

/* The value of @where, with its other one, -∞, where keys are beyond. */
static gboolean
read_causal (Recognition *self, TinyNode *where, double factor, Scores *out)
{
  const gboolean is_first = is_nothing (where->sources[1]);
  if (out->beyond != NULL || factor <= 0 || (!is_first && !is_nothing (where->sources[2])))
    return FALSE;
  out->beyond = read_beyond (self, where->sources[0], is_first);
  return out->beyond != NULL
         && read_scores (self, where->sources[is_first ? 2 : 1], factor, out);
}

static gboolean
read_term (Recognition *self, TinyNode *node, double factor, Scores *out)
{
  if (node->op == TINY_OP_WHERE)
    return read_causal (self, node, factor, out);
  if (tiny_node_is_const (node))
    return tiny_node_get_float (node) == 0;
  const gboolean is_maximum = node->op == TINY_OP_REDUCE && node->arg == TINY_OP_MAX;
  TinyNode **slot = is_maximum                   ? &out->maximum
                    : node->op == TINY_OP_REDUCE ? &out->dot
                                                 : &out->mask;
  double *by = is_maximum                   ? &out->by_maximum
               : node->op == TINY_OP_REDUCE ? &out->by_dot
                                            : &out->by_mask;
  if (*slot != NULL && *slot != node)
    return FALSE;
  *slot = node;
  *by += factor;
  return TRUE;
}

static gboolean
read_scores (Recognition *self, TinyNode *node, double factor, Scores *out)
{
  Terms terms = { .n = 0 };
  gboolean good = recognise_terms (node, factor, &terms);
  for (guint i = 0; i < terms.n && good; i++)
    good = read_term (self, terms.terms[i].node, terms.terms[i].factor, out);
  return good;
}

/* A load, perhaps times a number, which becomes part of @by. */
static gboolean
read_factor (Recognition *self, TinyNode *node, Access *out, double *by)
{
  for (guint i = 0; i < 2 && node->op == TINY_OP_MUL; i++)
    if (tiny_node_is_const (node->sources[i])) {
      *by *= tiny_node_get_float (node->sources[i]);
      node = node->sources[1 - i];
    }
  return recognise_load (self, node, out) && out->gate == NULL;
}

/* The operands that @scores are made of. */
static gboolean
read_operands (Recognition *self, Scores *scores)
{
  const TinyNode *dot = scores->dot;
  if (dot == NULL || dot->arg != TINY_OP_ADD || dot->n_sources != 2
      || dot->dtype != self->out->compute_dtype || dot->sources[0]->op != TINY_OP_MUL)
    return FALSE;
  TinyNode *const *factors = dot->sources[0]->sources;
  if (!read_factor (self, factors[0], &scores->a, &scores->by_dot)
      || !read_factor (self, factors[1], &scores->b, &scores->by_dot))
    return FALSE;
  return scores->mask == NULL
         || (recognise_load (self, scores->mask, &scores->of_mask)
             && scores->of_mask.gate == NULL);
}

/* ---- powers ---- */

/* A power whose exponent is of scores less the largest of the same. */
typedef struct {
  Scores exponent, inside;
  TinyNode *key; /* along which the largest is */
} Power;

static gboolean
is_close (double x, double y)
{
  return fabs (x - y)
         <= 1e-3 * fabs (y); /* factors are rounded one by one, and what is taken off cancels */
}

static gboolean
read_power (Recognition *self, TinyNode *node, Power *out)
{
  *out = (Power){ { NULL } };
  Scores *exponent = &out->exponent, *inside = &out->inside;
  if (node->op != TINY_OP_EXP2 || node->dtype != self->out->compute_dtype
      || !read_scores (self, node->sources[0], 1, exponent) || exponent->maximum == NULL
      || !read_operands (self, exponent))
    return FALSE;
  const TinyNode *maximum = exponent->maximum;
  if (maximum->n_sources != 2 || !read_scores (self, maximum->sources[0], 1, inside)
      || inside->maximum != NULL || !read_operands (self, inside))
    return FALSE;
  out->key = maximum->sources[1];
  const double ratio = -exponent->by_maximum;
  return ratio > 0 && is_close (inside->by_dot * ratio, exponent->by_dot)
         && is_close (inside->by_mask * ratio, exponent->by_mask);
}

/* ---- the same scores ---- */
static gboolean
is_same_access (Recognition *self, const Access *x, const Access *y, const TinyNodeMap *to)
{
  return x->param == y->param
         && (x->param == NULL || affine_replace (self->pool, x->at, to) == y->at);
}

/* Whether @x, with keys counted by @key, is @y with keys counted by @other. */
static gboolean
is_same (Recognition *self, const Scores *x, TinyNode *key, const Scores *y, TinyNode *other)
{
  TinyNode *depth = x->dot->sources[1], *other_depth = y->dot->sources[1];
  if (tiny_range_get_extent (key) != tiny_range_get_extent (other)
      || tiny_range_get_extent (depth) != tiny_range_get_extent (other_depth)
      || (x->beyond != NULL) != (y->beyond != NULL))
    return FALSE;
  g_auto (TinyNodeMap) to = { 0 };
  tiny_node_map_set (&to, key, (gpointer) affine_range (self->pool, other));
  tiny_node_map_set (&to, depth, (gpointer) affine_range (self->pool, other_depth));
  if (x->beyond != NULL && affine_replace (self->pool, x->beyond, &to) != y->beyond)
    return FALSE;
  const gboolean is_swapped = !is_same_access (self, &x->a, &y->a, &to);
  return is_same_access (self, &x->of_mask, &y->of_mask, &to)
         && is_same_access (self, &x->a, is_swapped ? &y->b : &y->a, &to)
         && is_same_access (self, &x->b, is_swapped ? &y->a : &y->b, &to);
}

static gboolean
fits (Recognition *self, const Power *own, TinyNode *key, const Power *summed, TinyNode *other)
{
  return own->exponent.by_dot == summed->exponent.by_dot
         && own->exponent.by_mask == summed->exponent.by_mask
         && own->exponent.by_maximum == summed->exponent.by_maximum
         && is_same (self, &own->exponent, key, &summed->exponent, other)
         && is_same (self, &own->exponent, key, &own->inside, own->key)
         && is_same (self, &own->exponent, key, &summed->inside, summed->key);
}

/* ---- axes ---- */
static Loop *
find_loop (Recognition *self, const TinyNode *range)
{
  for (guint i = 0; i < self->n_loops; i++)
    if (self->loops[i].range == range)
      return &self->loops[i];
  return NULL;
}

/* The loop that counts queries where keys beyond them are left out: beyond = key - query - (n_keys - n_queries). */
static TinyNode *
find_query (const Affine *beyond, TinyNode *key)
{
  TinyNode *query = NULL;
  for (guint i = 0; i < beyond->n; i++)
    if (beyond->terms[i].atom != key)
      query = beyond->terms[i].atom;
  if (beyond->n != 2 || query == NULL || query->op != TINY_OP_RANGE
      || affine_get_mul (beyond, key) != 1 || affine_get_mul (beyond, query) != -1)
    return NULL;
  const gint64 more = tiny_range_get_extent (key) - tiny_range_get_extent (query);
  return more >= 0 && beyond->offset == -more ? query : NULL;
}

/* The longest loop of the output that A, or the value, depends on alone. */
static Loop *
find_longest (Recognition *self, TinyOperandRole role)
{
  Loop *longest = NULL;
  for (guint i = 0; i < self->n_loops; i++) {
    Loop *loop = &self->loops[i];
    const gboolean is_value = role == TINY_ROLE_B2;
    if (!loop->is_reduced && recognise_is_in (loop, role)
        && !recognise_is_in (loop, TINY_ROLE_B)
        && !recognise_is_in (loop, is_value ? TINY_ROLE_A : TINY_ROLE_B2)
        && !(is_value && recognise_is_in (loop, TINY_ROLE_MASK))
        && (longest == NULL || longest->extent < loop->extent))
      longest = loop;
  }
  return longest;
}

static gboolean
set_axes (Recognition *self, TinyNode *key, TinyNode *query)
{
  guint n_batches = 0;
  Loop *causal = query != NULL ? find_loop (self, query) : NULL;
  if (query != NULL && causal == NULL)
    return FALSE;
  if (causal != NULL)
    causal->is_reduced = TRUE; /* by itself, so that it is joined with none */
  recognise_join_loops (self, FALSE);
  Loop *of_keys = find_loop (self, key), *of_depth = find_loop (self, self->inner->sources[1]);
  causal = query != NULL ? find_loop (self, query) : find_longest (self, TINY_ROLE_A);
  if (of_keys == NULL || of_depth == NULL || !recognise_is_in (of_keys, TINY_ROLE_B)
      || !recognise_is_in (of_keys, TINY_ROLE_B2) || recognise_is_in (of_keys, TINY_ROLE_A)
      || !recognise_is_in (of_depth, TINY_ROLE_A) || !recognise_is_in (of_depth, TINY_ROLE_B))
    return FALSE;
  recognise_set_axis (self, TINY_ATTENTION_QUERY, causal);
  recognise_set_axis (self, TINY_ATTENTION_KEY, of_keys);
  recognise_set_axis (self, TINY_ATTENTION_DEPTH, of_depth);
  recognise_set_axis (self, TINY_ATTENTION_VALUE, find_longest (self, TINY_ROLE_B2));
  for (guint i = 0; i < self->n_loops; i++)
    if (!self->loops[i].is_used && n_batches < N_BATCHES)
      recognise_set_axis (self, TINY_ATTENTION_BATCH + n_batches++, &self->loops[i]);
  return recognise_add_operands (self);
}

/* Takes weights times values apart. */
static gboolean
read_weighted (Recognition *self, Power *own, Power *summed, TinyNode **out_key)
{
  const TinyNode *core = self->core;
  TinyNode *sum = NULL;
  if (core->op != TINY_OP_REDUCE || core->arg != TINY_OP_ADD || core->n_sources != 2
      || core->sources[0]->op != TINY_OP_MUL || core->dtype != self->out->compute_dtype)
    return FALSE;
  TinyNode *const *factors = core->sources[0]->sources;
  for (guint i = 0; i < 2; i++) {
    TinyNode *power = recognise_quotient (factors[i], &sum);
    if (power == NULL || !recognise_load (self, factors[1 - i], &self->accesses[TINY_ROLE_B2]))
      continue;
    *out_key = core->sources[1];
    return self->accesses[TINY_ROLE_B2].gate == NULL && read_power (self, power, own)
           && read_power (self, sum->sources[0], summed)
           && fits (self, own, *out_key, summed, sum->sources[1]);
  }
  return FALSE;
}

gboolean
recognise_attention (Recognition *self)
{
  TinyOperation *out = self->out;
  Power own, summed;
  TinyNode *key, *query = NULL;
  if (out->activation != TINY_ACTIVATION_NONE || out->scale != 1
      || self->accesses[TINY_ROLE_BIAS].param != NULL
      || !tiny_dtype_is_float (out->compute_dtype)
      || !read_weighted (self, &own, &summed, &key))
    return FALSE;
  const Scores *scores = &own.exponent;
  if (scores->beyond != NULL && (query = find_query (scores->beyond, key)) == NULL)
    return FALSE;
  /* 1 / ln 2 is rounded where the kernel is not in f64. */
  const double eps = out->compute_dtype == TINY_DTYPE_F64 ? 1e-15 : 1e-7;
  if (scores->mask != NULL && fabs (scores->by_mask * G_LN2 - 1) >= eps)
    return FALSE;
  const double scale = scores->by_dot * G_LN2;
  out->scale = fabs (scale - 1) < eps ? 1 : scale;
  self->inner = scores->dot;
  /* The query has its number in a row of A, whichever of the factors that is. */
  const gboolean is_swapped = affine_get_mul (scores->a.at, key) != 0;
  self->accesses[TINY_ROLE_A] = is_swapped ? scores->b : scores->a;
  self->accesses[TINY_ROLE_B] = is_swapped ? scores->a : scores->b;
  self->accesses[TINY_ROLE_MASK] = scores->of_mask;
  out->kind = TINY_OPERATION_ATTENTION;
  out->n_axes = TINY_ATTENTION_VALUE + 1;
  out->flags = query != NULL ? TINY_OPERATION_CAUSAL : 0;
  return recognise_list_loops (self) && set_axes (self, key, query);
}
