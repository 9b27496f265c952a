/* SPDX-License-Identifier: MIT
 *
 * tiny-sum.c: sums of atoms times constants: collect, order, join, build. */
#include "rewrite/tiny-sum.h"

#include <string.h>

#include "rewrite/tiny-bounds.h"
#include "rewrite/tiny-simplify.h"

/* Range numbers first: loops in their order. */
static inline guint64
get_arg_key (const TinyNode *node)
{
  guint64 arg = (guint64) node->arg;
  return node->op == TINY_OP_RANGE ? arg << 32 | arg >> 32 : arg;
}

static int
compare_ints (const TinyInts *a, const TinyInts *b)
{
  if (a == NULL || b == NULL)
    return (a != NULL) - (b != NULL);
  for (guint i = 0; i < MIN (a->n, b->n); i++)
    if (a->v[i] != b->v[i])
      return a->v[i] < b->v[i] ? -1 : 1;
  return a->n < b->n ? -1 : a->n > b->n;
}

#define COMPARE(x, y)                                                                          \
  if ((x) != (y))                                                                              \
  return (x) < (y) ? -1 : 1

/* Nodes are hash-consed: the first differing source decides, so this is a walk down one path. */
int
tiny_node_compare_structure (const TinyNode *a, const TinyNode *b)
{
  while (a != b) {
    COMPARE (a->op, b->op);
    COMPARE (a->dtype, b->dtype);
    COMPARE (get_arg_key (a), get_arg_key (b));
    COMPARE (a->lanes, b->lanes);
    COMPARE (a->n_sources, b->n_sources);
    if (a->ints != b->ints)
      return compare_ints (a->ints, b->ints);
    if (a->text != b->text)
      return g_strcmp0 (a->text, b->text);
    guint i = 0;
    while (i + 1 < a->n_sources && a->sources[i] == b->sources[i])
      i++;
    if (a->n_sources == 0)
      return 0;
    const TinyNode *next = a->sources[i];
    b = b->sources[i];
    a = next;
  }
  return 0;
}

void
tiny_sum_clear (TinySum *self)
{
  self->n = 0;
  self->constant = 0;
}

static gboolean
is_in_range (gint64 value)
{
  return value >= tiny_dtype_get_min (TINY_DTYPE_INDEX)
         && value <= tiny_dtype_get_max (TINY_DTYPE_INDEX);
}

gboolean
tiny_sum_add_constant (TinySum *self, gint64 value)
{
  return is_in_range (value) && !__builtin_add_overflow (self->constant, value, &self->constant)
         && is_in_range (self->constant);
}

gboolean
tiny_sum_add_term (TinySum *self, TinyNode *atom, gint64 coef)
{
  if (self->n == TINY_SUM_MAX_TERMS || !is_in_range (coef))
    return FALSE;
  self->terms[self->n++] = (TinyTerm){ atom, coef };
  return TRUE;
}

gboolean
tiny_sum_add (TinySum *self, TinyNode *node, gint64 scale)
{
  TinyTerm stack[TINY_SUM_MAX_TERMS];
  guint depth = 0;
  stack[depth++] = (TinyTerm){ node, scale };
  while (depth > 0) {
    TinyTerm top = stack[--depth];
    gint64 product;
    node = top.atom;
    switch (node->op) {
    case TINY_OP_ADD:
    case TINY_OP_SUB:
      if (depth + 2 > TINY_SUM_MAX_TERMS)
        return FALSE;
      stack[depth++]
          = (TinyTerm){ node->sources[1], node->op == TINY_OP_SUB ? -top.coef : top.coef };
      stack[depth++] = (TinyTerm){ node->sources[0], top.coef };
      break;
    case TINY_OP_NEG:
      stack[depth++] = (TinyTerm){ node->sources[0], -top.coef };
      break;
    case TINY_OP_CONST:
      if (__builtin_mul_overflow (node->arg, top.coef, &product)
          || !tiny_sum_add_constant (self, product))
        return FALSE;
      break;
    case TINY_OP_MUL:
      if (node->sources[1]->op == TINY_OP_CONST) {
        if (__builtin_mul_overflow (node->sources[1]->arg, top.coef, &product)
            || !is_in_range (product))
          return FALSE;
        stack[depth++] = (TinyTerm){ node->sources[0], product };
        break;
      }
      G_GNUC_FALLTHROUGH;
    default:
      if (!tiny_sum_add_term (self, node, top.coef))
        return FALSE;
    }
  }
  return TRUE;
}

static gboolean
join_terms (TinySum *self)
{
  for (guint i = 1; i < self->n; i++) {
    TinyTerm term = self->terms[i];
    guint j = i;
    for (; j > 0 && tiny_node_compare_structure (self->terms[j - 1].atom, term.atom) > 0; j--)
      self->terms[j] = self->terms[j - 1];
    self->terms[j] = term;
  }
  guint used = 0;
  for (guint i = 0; i < self->n;) {
    TinyTerm term = self->terms[i];
    for (i++; i < self->n && self->terms[i].atom == term.atom; i++)
      if (__builtin_add_overflow (term.coef, self->terms[i].coef, &term.coef)
          || !is_in_range (term.coef))
        return FALSE;
    if (term.coef != 0)
      self->terms[used++] = term;
  }
  self->n = used;
  return TRUE;
}

static void
remove_term (TinySum *self, guint i)
{
  memmove (&self->terms[i], &self->terms[i + 1], (self->n - i - 1) * sizeof (TinyTerm));
  self->n--;
}

static gboolean
is_divided (const TinyNode *node, TinyOp op, const TinyNode *x, const TinyNode *divisor)
{
  return node->op == op && node->sources[0] == x
         && (divisor == NULL || node->sources[1] == divisor);
}

/* x % d * c + x // d * (d*c) = x * c, and x % d * c + x // d % e * (d*c) = x % (d*e) * c.
 * 1: done once; 0: nothing to do; -1: overflow. */
static int
recombine (TinySum *self, TinyGraph *graph)
{
  for (guint i = 0; i < self->n; i++) {
    TinyTerm m = self->terms[i];
    if (m.atom->op != TINY_OP_FLOORMOD || m.atom->sources[1]->op != TINY_OP_CONST)
      continue;
    TinyNode *x = m.atom->sources[0], *d = m.atom->sources[1];
    gint64 wanted, period;
    if (d->arg <= 0 || __builtin_mul_overflow (m.coef, d->arg, &wanted))
      continue;
    for (guint j = 0; j < self->n; j++) {
      TinyTerm q = self->terms[j];
      if (q.coef != wanted)
        continue;
      gboolean outer = q.atom->op == TINY_OP_FLOORMOD
                       && is_divided (q.atom->sources[0], TINY_OP_FLOORDIV, x, d)
                       && tiny_node_is_const (q.atom->sources[1])
                       && q.atom->sources[1]->arg > 0;
      if (!outer && !is_divided (q.atom, TINY_OP_FLOORDIV, x, d))
        continue;
      if (outer) {
        if (__builtin_mul_overflow (d->arg, q.atom->sources[1]->arg, &period)
            || !is_in_range (period))
          continue;
        x = tiny_node_binary (graph, TINY_OP_FLOORMOD, x, tiny_const_like (graph, d, period));
      }
      remove_term (self, MAX (i, j));
      remove_term (self, MIN (i, j));
      return tiny_sum_add (self, x, m.coef) ? 1 : -1;
    }
  }
  return 0;
}

gboolean
tiny_sum_normalize (TinySum *self, TinyGraph *graph)
{
  for (;;) {
    if (!join_terms (self))
      return FALSE;
    int done = recombine (self, graph);
    if (done <= 0)
      return done == 0;
  }
}

TinyNode *
tiny_sum_build (const TinySum *self, TinyGraph *graph, TinyNode *like)
{
  TinyNode *result = NULL;
  for (guint i = 0; i < self->n; i++) {
    TinyNode *term = self->terms[i].atom;
    if (self->terms[i].coef != 1)
      term = tiny_node_binary (graph, TINY_OP_MUL, term,
                               tiny_const_like (graph, like, self->terms[i].coef));
    result = result == NULL ? term : tiny_node_binary (graph, TINY_OP_ADD, result, term);
  }
  if (result == NULL)
    return tiny_const_like (graph, like, self->constant);
  if (self->constant == 0)
    return result;
  return tiny_node_binary (graph, TINY_OP_ADD, result,
                           tiny_const_like (graph, like, self->constant));
}

gboolean
tiny_sum_get_bounds (const TinySum *self, gint64 *out_min, gint64 *out_max)
{
  __int128 min = self->constant, max = self->constant;
  for (guint i = 0; i < self->n; i++) {
    gint64 low, high, coef = self->terms[i].coef;
    tiny_node_get_bounds (self->terms[i].atom, &low, &high);
    min += (__int128) (coef > 0 ? low : high) * coef;
    max += (__int128) (coef > 0 ? high : low) * coef;
  }
  *out_min = (gint64) CLAMP (min, G_MININT64, G_MAXINT64);
  *out_max = (gint64) CLAMP (max, G_MININT64, G_MAXINT64);
  return min >= tiny_dtype_get_min (TINY_DTYPE_INDEX)
         && max <= tiny_dtype_get_max (TINY_DTYPE_INDEX);
}

TinyNode *
tiny_sum_solve (TinyGraph *graph, TinyNode *x, TinyNode *y, TinyNode *range)
{
  TinySum sum;
  guint at = 0;
  if (x->dtype != TINY_DTYPE_INDEX) {
    /* A range in another integer dtype that holds all its values. */
    TinyNode *cast = y->op == TINY_OP_CAST && y->sources[0] == range ? y : x;
    TinyNode *other = cast == x ? y : x;
    if (cast->op != TINY_OP_CAST || cast->sources[0] != range || x->dtype == TINY_DTYPE_U64
        || !tiny_dtype_is_integer (x->dtype) || tiny_node_depends_on (graph, other, range)
        || tiny_node_get_max (range) > tiny_dtype_get_max (x->dtype))
      return NULL;
    return tiny_node_cast (graph, other, TINY_DTYPE_INDEX);
  }
  tiny_sum_clear (&sum);
  if (!tiny_sum_add (&sum, x, 1) || !tiny_sum_add (&sum, y, -1)
      || !tiny_sum_normalize (&sum, graph))
    return NULL;
  while (at < sum.n && sum.terms[at].atom != range)
    at++;
  if (at == sum.n || (sum.terms[at].coef != 1 && sum.terms[at].coef != -1))
    return NULL;
  gint64 sign = -sum.terms[at].coef;
  sum.terms[at] = sum.terms[--sum.n];
  for (guint i = 0; i < sum.n; i++)
    if (tiny_node_depends_on (graph, sum.terms[i].atom, range))
      return NULL;
    else
      sum.terms[i].coef *= sign;
  sum.constant *= sign;
  return tiny_sum_normalize (&sum, graph) ? tiny_sum_build (&sum, graph, range) : NULL;
}
