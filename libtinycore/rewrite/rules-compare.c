/* SPDX-License-Identifier: MIT
 *
 * rules-compare.c: comparisons of INDEX expressions.
 *
 * Both sides become one difference: common terms cancel, the common factor of all coefficients is
 * divided out, and positive terms go left, negative ones right, the constant to the side that has
 * none. (Comparisons decided by ranges are settled by the bounds, in rules-simple.)
 * Measure: the number of terms on both sides, then the sum of coefficients, then operations under
 * the comparison. */
#include "rewrite/tiny-bounds.h"
#include "rewrite/tiny-simplify.h"
#include "rewrite/tiny-sum.h"

static TinyNode *
compare (TinyMatch *m, TinyNode *x, TinyNode *y)
{
  return tiny_node_binary (m->graph, m->root->op, x, y);
}

/* Terms of @diff with the sign of @sign. */
static void
take_side (const TinySum *diff, int sign, TinySum *out)
{
  tiny_sum_clear (out);
  for (guint i = 0; i < diff->n; i++)
    if ((diff->terms[i].coef > 0) == (sign > 0))
      tiny_sum_add_term (out, diff->terms[i].atom, diff->terms[i].coef * sign);
}

/* diff = g * terms + constant: compares terms with a constant. */
static void
divide_out (TinySum *diff, gint64 g)
{
  for (guint i = 0; i < diff->n; i++)
    diff->terms[i].coef /= g;
  /* g*t + k < 0: t < -k/g, so t + floor (k / g) < 0, as t is whole; equality has g | k. */
  diff->constant = tiny_floor_div (diff->constant, g);
}

/* diff = f * high + low with 0 <= low < f and f | constant: low does not matter to the sign. */
static gboolean
drop_low_terms (TinySum *diff)
{
  for (guint i = 0; i < diff->n; i++) {
    gint64 f = tiny_gcd (diff->terms[i].coef, 0), min, max;
    if (f == 1 || diff->constant % f != 0)
      continue;
    TinySum low;
    guint used = 0;
    tiny_sum_clear (&low);
    for (guint j = 0; j < diff->n; j++)
      if (diff->terms[j].coef % f != 0)
        tiny_sum_add_term (&low, diff->terms[j].atom, diff->terms[j].coef);
    if (low.n == 0 || !tiny_sum_get_bounds (&low, &min, &max) || min < 0 || max >= f)
      continue;
    for (guint j = 0; j < diff->n; j++)
      if (diff->terms[j].coef % f == 0)
        diff->terms[used++] = diff->terms[j];
    diff->n = used;
    return TRUE;
  }
  return FALSE;
}

static TinyNode *
build_comparison (TinyMatch *m, const TinySum *diff)
{
  TinySum left, right;
  take_side (diff, 1, &left);
  take_side (diff, -1, &right);
  /* The constant goes where nothing else is, else to the right. */
  if (left.n == 0)
    left.constant = diff->constant;
  else
    right.constant = -diff->constant;
  return compare (m, tiny_sum_build (&left, m->graph, m->root->sources[0]),
                  tiny_sum_build (&right, m->graph, m->root->sources[0]));
}

static TinyNode *
fold_difference (TinyMatch *m)
{
  TinyNode *x = m->root->sources[0], *y = m->root->sources[1];
  gboolean plain_x = x->op != TINY_OP_ADD && x->op != TINY_OP_MUL;
  gboolean plain_y = y->op != TINY_OP_ADD && y->op != TINY_OP_MUL;
  gint64 min, max;
  if (plain_x && plain_y)
    return NULL;
  TinySum diff;
  tiny_sum_clear (&diff);
  if (!tiny_sum_add (&diff, x, 1) || !tiny_sum_add (&diff, y, -1)
      || !tiny_sum_normalize (&diff, m->graph))
    return NULL;
  gboolean is_equality = m->root->op != TINY_OP_CMPLT;
  if (tiny_sum_get_bounds (&diff, &min, &max)
      && (min > 0 || max < 0 || (min == 0 && !is_equality))) {
    gboolean value = is_equality ? m->root->op == TINY_OP_CMPNE : max < 0;
    return tiny_node_new (m->graph, TINY_OP_CONST, TINY_DTYPE_BOOL, m->root->lanes, 0, NULL,
                          value, NULL, NULL);
  }
  gint64 g = 0;
  do {
    g = 0;
    for (guint i = 0; i < diff.n; i++)
      g = tiny_gcd (g, diff.terms[i].coef);
    if (g > 1 && is_equality && diff.constant % g != 0)
      return tiny_node_new (m->graph, TINY_OP_CONST, TINY_DTYPE_BOOL, m->root->lanes, 0, NULL,
                            m->root->op == TINY_OP_CMPNE, NULL, NULL);
    if (g > 1)
      divide_out (&diff, g);
  } while (!is_equality && diff.n > 0 && drop_low_terms (&diff));
  /* Equality has no direction: the first term is positive. */
  if (is_equality && diff.n > 0 && diff.terms[0].coef < 0) {
    for (guint i = 0; i < diff.n; i++)
      diff.terms[i].coef = -diff.terms[i].coef;
    diff.constant = -diff.constant;
  }
  return build_comparison (m, &diff);
}

static gboolean
is_positive (TinyMatch *m)
{
  return TINY_MATCH (m, 'd')->arg > 0;
}

/* The constant of an equality stands right, and x = y has one order. */
static TinyNode *
order_equality (TinyMatch *m)
{
  TinyNode *x = m->root->sources[0], *y = m->root->sources[1];
  if (y->op == TINY_OP_CONST || x->op == TINY_OP_ADD || y->op == TINY_OP_ADD
      || x->op == TINY_OP_MUL || y->op == TINY_OP_MUL
      || tiny_node_compare_structure (x, y) <= 0)
    return NULL;
  return compare (m, y, x);
}

/* Of two limits of one expression on the same side, source @at of both: the lower, or the higher,
 * stays. */
static TinyNode *
keep_limit (TinyMatch *m, guint at, gboolean lower)
{
  TinyNode *first = m->root->sources[0], *second = m->root->sources[1];
  return (first->sources[at]->arg < second->sources[at]->arg) == lower ? first : second;
}

static TinyNode *
join_upper (TinyMatch *m)
{
  return keep_limit (m, 1, m->root->op == TINY_OP_AND);
}

static TinyNode *
join_lower (TinyMatch *m)
{
  return keep_limit (m, 0, m->root->op == TINY_OP_OR);
}

static gboolean
differ (TinyMatch *m)
{
  return TINY_MATCH (m, 'a') != TINY_MATCH (m, 'b');
}

/* a < x and x < b with nothing between. */
static gboolean
is_empty (TinyMatch *m)
{
  return TINY_MATCH (m, 'a')->arg + 1 >= TINY_MATCH (m, 'b')->arg;
}

static gboolean
is_everything (TinyMatch *m)
{
  return TINY_MATCH (m, 'a')->arg < TINY_MATCH (m, 'b')->arg;
}

static gboolean
keeps_index (TinyMatch *m)
{
  TinyNode *x = TINY_MATCH (m, 'x');
  TinyDType from = m->root->sources[0]->dtype;
  gint64 min, max;
  tiny_node_get_bounds (x, &min, &max);
  return tiny_dtype_is_integer (x->dtype)
         && (x->dtype == TINY_DTYPE_INDEX || x->dtype == from
             || (min >= tiny_dtype_get_min (from) && max <= tiny_dtype_get_max (from)
                 && x->dtype != TINY_DTYPE_U64))
         && min >= tiny_dtype_get_min (from) && max <= tiny_dtype_get_max (from);
}

/* A constant compared with a cast: compare before the cast. */
static TinyNode *
compare_before_cast (TinyMatch *m)
{
  TinyNode *x = TINY_MATCH (m, 'x'), *c = TINY_MATCH (m, 'c');
  if (!keeps_index (m) || c->arg < tiny_dtype_get_min (x->dtype)
      || c->arg > tiny_dtype_get_max (x->dtype) || c->dtype == TINY_DTYPE_U64)
    return NULL;
  TinyNode *limit = tiny_const_like (m->graph, x, c->arg);
  gboolean left = m->root->sources[0] == c;
  return compare (m, left ? limit : x, left ? x : limit);
}

static const TinyRule rows[] = {
  { "cmplt-difference", "cmplt.index(x, y)", .build = fold_difference },
  { "cmpne-difference", "cmpne.index(x, y)", .build = fold_difference },
  { "cmpeq-difference", "cmpeq.index(x, y)", .build = fold_difference },
  { "cmpne-order", "cmpne.index(x, y)", .build = order_equality },
  { "cmpeq-order", "cmpeq.index(x, y)", .build = order_equality },
  { "floordiv-below", "cmplt.index(floordiv(x, #d), #c)", "cmplt(x, {c*d})", is_positive },
  { "floordiv-above", "cmplt.index(#c, floordiv(x, #d))", "cmplt({(c+1)*d-1}, x)",
    is_positive },
  { "not-below", "cmpne.bool(cmplt.index(x, #c), true)", "cmplt({c-1}, x)" },
  { "not-above", "cmpne.bool(cmplt.index(#c, x), true)", "cmplt(x, {c+1})" },
  { "and-below", "and.bool(cmplt.int(x, #a), cmplt.int(x, #b))", .build = join_upper },
  { "or-below", "or.bool(cmplt.int(x, #a), cmplt.int(x, #b))", .build = join_upper },
  { "and-above", "and.bool(cmplt.int(#a, x), cmplt.int(#b, x))", .build = join_lower },
  { "or-above", "or.bool(cmplt.int(#a, x), cmplt.int(#b, x))", .build = join_lower },
  { "and-empty", "and.bool(cmplt.index(#a, x), cmplt.index(x, #b))", "false", is_empty },
  { "or-everything", "or.bool(cmplt.int(#a, x), cmplt.int(x, #b))", "true", is_everything },
  { "and-apart", "and.bool(cmpeq.bits(x, #a), cmpeq.bits(x, #b))", "false", differ },
  { "cmplt-cast", "cmplt.int(cast(x:int), #c)", .build = compare_before_cast },
  { "cast-cmplt", "cmplt.int(#c, cast(x:int))", .build = compare_before_cast },
  { "cmpne-cast-index", "cmpne.int(cast(x:int), #c)", .build = compare_before_cast },
  { "cmpeq-cast-index", "cmpeq.int(cast(x:int), #c)", .build = compare_before_cast },
};

TINY_RULE_TABLE (tiny_rules_compare, "compare", rows);
