/* SPDX-License-Identifier: MIT
 *
 * rules-divmod.c: FLOORDIV and FLOORMOD of INDEX sums by constants.
 *
 * Everything rests on floor ((d * q + r) / d) = q + floor (r / d) for whole q. The numerator is
 * taken apart into a multiple of the divisor and a rest with small coefficients; then the range of
 * the rest may decide, or a common factor cancels, or what lies below a factor of the divisor
 * drops out. Measure: the divisor, then the sum of the sizes of coefficients under it. */
#include "rewrite/tiny-bounds.h"
#include "rewrite/tiny-simplify.h"
#include "rewrite/tiny-sum.h"

/* x = c * quotient + rest; the rest has no multiple of c and a constant in [0, c). */
typedef struct {
  TinyMatch *match;
  gboolean is_mod;
  gint64 c;
  TinySum quotient, rest;
} Division;

static TinyNode *
new_const (TinyMatch *m, gint64 value)
{
  return tiny_const_like (m->graph, m->root, value);
}

/* Of a quotient, a coefficient that is no multiple of c stays whole: else much would stand there
 * twice. */
static gint64
get_quotient (const Division *d, gint64 coef, gint64 c)
{
  return d->is_mod || coef % c == 0 ? coef / c : 0;
}

static gboolean
split (Division *d, const TinySum *sum, gint64 c)
{
  tiny_sum_clear (&d->quotient);
  tiny_sum_clear (&d->rest);
  for (guint i = 0; i < sum->n; i++) {
    TinyTerm t = sum->terms[i];
    gint64 q = get_quotient (d, t.coef, c);
    if ((q != 0 && !tiny_sum_add_term (&d->quotient, t.atom, q))
        || (t.coef != q * c && !tiny_sum_add_term (&d->rest, t.atom, t.coef - q * c)))
      return FALSE;
  }
  return tiny_sum_add_constant (&d->quotient, tiny_floor_div (sum->constant, c))
         && tiny_sum_add_constant (&d->rest, tiny_floor_mod (sum->constant, c));
}

/* quotient + node */
static TinyNode *
add_quotient (Division *d, TinyNode *node)
{
  TinySum sum = d->quotient;
  if (!tiny_sum_add (&sum, node, 1) || !tiny_sum_normalize (&sum, d->match->graph))
    return NULL;
  return tiny_sum_build (&sum, d->match->graph, d->match->root);
}

static TinyNode *
build (Division *d, TinySum *sum)
{
  if (!tiny_sum_normalize (sum, d->match->graph))
    return NULL;
  return tiny_sum_build (sum, d->match->graph, d->match->root);
}

static TinyNode *
divide (Division *d, TinySum *sum, gint64 c)
{
  TinyNode *x = build (d, sum);
  if (x == NULL || c == 1)
    return d->is_mod && x != NULL ? new_const (d->match, 0) : x;
  return tiny_node_binary (d->match->graph, d->match->root->op, x, new_const (d->match, c));
}

/* @rest lies in one period of c: floor (rest / c) is one number. */
static gboolean
is_in_one_period (const TinySum *rest, gint64 c, gint64 *out_quotient)
{
  gint64 min, max;
  if (!tiny_sum_get_bounds (rest, &min, &max))
    return FALSE;
  *out_quotient = tiny_floor_div (min, c);
  return *out_quotient == tiny_floor_div (max, c);
}

static TinyNode *
fold_period (Division *d, TinySum *quotient, TinySum *rest)
{
  gint64 q;
  if (!is_in_one_period (rest, d->c, &q))
    return NULL;
  TinySum result = d->is_mod ? *rest : *quotient;
  if (!tiny_sum_add_constant (&result, d->is_mod ? -q * d->c : q))
    return NULL;
  return build (d, &result);
}

/* The same with other remainders of the coefficients: those closest to zero, or to the coefficient's
 * own sign. */
static TinyNode *
fold_congruent (Division *d, gboolean closest)
{
  TinySum quotient = d->quotient, rest = d->rest;
  gboolean changed = FALSE;
  for (guint i = 0; i < rest.n; i++) {
    gint64 coef = rest.terms[i].coef;
    gint64 step = closest ? tiny_floor_div (coef + d->c / 2, d->c) : coef / d->c;
    if (step == 0)
      continue;
    changed = TRUE;
    rest.terms[i].coef -= step * d->c;
    if (!tiny_sum_add_term (&quotient, rest.terms[i].atom, step))
      return NULL;
  }
  return changed ? fold_period (d, &quotient, &rest) : NULL;
}

/* Inside a remainder, another of a multiple of the period adds nothing. */
static TinyNode *
fold_inner_mod (Division *d)
{
  TinySum sum;
  gboolean changed = FALSE;
  tiny_sum_clear (&sum);
  for (guint i = 0; i < d->rest.n; i++) {
    TinyTerm t = d->rest.terms[i];
    gint64 period;
    gboolean drops = t.atom->op == TINY_OP_FLOORMOD && tiny_node_is_const (t.atom->sources[1])
                     && t.atom->sources[1]->arg != 0
                     && !__builtin_mul_overflow (t.atom->sources[1]->arg, t.coef, &period)
                     && period % d->c == 0;
    changed = changed || drops;
    if (!tiny_sum_add (&sum, drops ? t.atom->sources[0] : t.atom, t.coef))
      return NULL;
  }
  if (!changed || !tiny_sum_add_constant (&sum, d->rest.constant))
    return NULL;
  return divide (d, &sum, d->c);
}

/* All coefficients and the divisor have a common factor. */
static TinyNode *
fold_gcd (Division *d)
{
  gint64 g = d->c;
  for (guint i = 0; i < d->rest.n; i++)
    g = tiny_gcd (g, d->rest.terms[i].coef);
  if (g == 1)
    return NULL;
  TinySum scaled = d->rest;
  for (guint i = 0; i < scaled.n; i++)
    scaled.terms[i].coef /= g;
  gint64 low = scaled.constant % g; /* the constant is not negative */
  scaled.constant /= g;
  TinyNode *inner = divide (d, &scaled, d->c / g);
  if (inner == NULL || !d->is_mod)
    return inner == NULL ? NULL : add_quotient (d, inner);
  TinySum result;
  tiny_sum_clear (&result);
  if (!tiny_sum_add (&result, inner, g) || !tiny_sum_add_constant (&result, low))
    return NULL;
  return build (d, &result);
}

/* rest = f * high + low with 0 <= low < f and f a divisor of c: low counts only in a remainder. */
static TinyNode *
fold_low_terms_by (Division *d, gint64 f)
{
  TinySum high, low;
  tiny_sum_clear (&high);
  tiny_sum_clear (&low);
  for (guint i = 0; i < d->rest.n; i++) {
    TinyTerm t = d->rest.terms[i];
    if (!tiny_sum_add_term (t.coef % f == 0 ? &high : &low, t.atom,
                            t.coef % f == 0 ? t.coef / f : t.coef))
      return NULL;
  }
  low.constant = d->rest.constant % f;
  high.constant = d->rest.constant / f;
  gint64 period;
  if (!is_in_one_period (&low, f, &period) || !tiny_sum_add_constant (&high, period)
      || !tiny_sum_add_constant (&low, -period * f))
    return NULL;
  TinyNode *inner = divide (d, &high, d->c / f);
  if (inner == NULL || !d->is_mod)
    return inner == NULL ? NULL : add_quotient (d, inner);
  return tiny_sum_add (&low, inner, f) ? build (d, &low) : NULL;
}

static TinyNode *
fold_low_terms (Division *d)
{
  if (d->rest.n < 2 && d->rest.constant == 0)
    return NULL;
  gint64 last = 0;
  for (guint i = 0; i < d->rest.n; i++) {
    gint64 f = tiny_gcd (d->c, d->rest.terms[i].coef);
    if (f == 1 || f == d->c || f == last)
      continue;
    last = f;
    TinyNode *result = fold_low_terms_by (d, f);
    if (result != NULL)
      return result;
  }
  return NULL;
}

/* floor ((floor (y / a) + k) / c) = floor ((y + k * a) / (a * c)); (y % a) // c = (y // c) % (a // c)
 * when c divides a. */
static TinyNode *
fold_nested (Division *d)
{
  if (d->is_mod || d->rest.n != 1 || d->rest.terms[0].coef != 1)
    return NULL;
  TinyNode *atom = d->rest.terms[0].atom;
  if ((atom->op != TINY_OP_FLOORDIV && atom->op != TINY_OP_FLOORMOD)
      || !tiny_node_is_const (atom->sources[1]) || atom->sources[1]->arg <= 0)
    return NULL;
  TinyGraph *graph = d->match->graph;
  gint64 a = atom->sources[1]->arg, product, shift;
  if (atom->op == TINY_OP_FLOORMOD) {
    if (a % d->c != 0 || d->rest.constant != 0)
      return NULL;
    TinyNode *inner = tiny_node_binary (graph, TINY_OP_FLOORDIV, atom->sources[0],
                                        new_const (d->match, d->c));
    return add_quotient (
        d, tiny_node_binary (graph, TINY_OP_FLOORMOD, inner, new_const (d->match, a / d->c)));
  }
  TinySum sum;
  tiny_sum_clear (&sum);
  if (__builtin_mul_overflow (a, d->c, &product)
      || product > tiny_dtype_get_max (TINY_DTYPE_INDEX)
      || __builtin_mul_overflow (a, d->rest.constant, &shift)
      || !tiny_sum_add (&sum, atom->sources[0], 1) || !tiny_sum_add_constant (&sum, shift))
    return NULL;
  TinyNode *inner = divide (d, &sum, product);
  return inner == NULL ? NULL : add_quotient (d, inner);
}

static TinyNode *
negate_divisor (TinyMatch *m)
{
  TinyNode *x
      = tiny_node_binary (m->graph, TINY_OP_MUL, TINY_MATCH (m, 'x'), new_const (m, -1));
  TinyNode *result
      = tiny_node_binary (m->graph, m->root->op, x, new_const (m, -TINY_MATCH (m, 'c')->arg));
  if (m->root->op == TINY_OP_FLOORDIV)
    return result;
  return tiny_node_binary (m->graph, TINY_OP_MUL, result, new_const (m, -1));
}

static TinyNode *
fold_divmod (TinyMatch *m)
{
  gint64 c = TINY_MATCH (m, 'c')->arg;
  if (c == 0)
    return NULL;
  if (c < 0)
    return negate_divisor (m);
  TinyNode *x = TINY_MATCH (m, 'x');
  Division d;
  TinySum sum;
  d.match = m;
  d.is_mod = m->root->op == TINY_OP_FLOORMOD;
  d.c = c;
  tiny_sum_clear (&sum);
  if (!tiny_sum_add (&sum, x, 1) || !split (&d, &sum, c))
    return NULL;
  TinyNode *result = fold_period (&d, &d.quotient, &d.rest);
  if (result == NULL)
    result = fold_congruent (&d, TRUE);
  if (result == NULL)
    result = fold_congruent (&d, FALSE);
  if (result == NULL && d.is_mod)
    result = fold_inner_mod (&d);
  if (result == NULL)
    result = fold_gcd (&d);
  if (result == NULL)
    result = fold_low_terms (&d);
  if (result == NULL)
    result = fold_nested (&d);
  if (result != NULL || (d.quotient.n == 0 && d.quotient.constant == 0))
    return result;
  TinyNode *inner = divide (&d, &d.rest, c);
  return d.is_mod || inner == NULL ? inner : add_quotient (&d, inner);
}

static gboolean
excludes_zero (TinyMatch *m)
{
  gint64 min, max;
  tiny_node_get_bounds (TINY_MATCH (m, 'y'), &min, &max);
  return min > 0 || max < 0;
}

static const TinyRule rows[] = {
  { "floordiv", "floordiv.index(x, #c)", .build = fold_divmod },
  { "floormod", "floormod.index(x, #c)", .build = fold_divmod },
  { "floordiv-self", "floordiv.index(y, y)", "1", excludes_zero },
  { "floormod-self", "floormod.index(y, y)", "0", excludes_zero },
  { "floordiv-product", "floordiv.index(mul(x, y), y)", "x", excludes_zero },
  { "floormod-product", "floormod.index(mul(x, y), y)", "0", excludes_zero },
  { "floormod-again", "floormod.index(floormod(x, y), y)", "floormod(x, y)", excludes_zero },
};

TINY_RULE_TABLE (tiny_rules_divmod, "divmod", rows);
