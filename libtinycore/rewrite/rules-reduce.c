/* SPDX-License-Identifier: MIT
 *
 * rules-reduce.c: reductions over ranges with less to do.
 *
 * The order in which a REDUCE combines is its maker's choice, so reductions of one op nest freely;
 * nothing else about floats is assumed: factors leave sums of integers only, and a sum of equal
 * floats is folded only where each partial sum is exact.
 * Measure: the number of REDUCEs, then of their ranges, then of operations inside. */
#include "rewrite/tiny-bounds.h"
#include "rewrite/tiny-simplify.h"

#include <math.h>
#include <string.h>

enum { MAX_RANGES = 16 };

static gboolean
is_over_ranges (TinyNode *reduce)
{
  return reduce->n_sources > 1 && reduce->n_sources <= MAX_RANGES && reduce->ints == NULL;
}

/* @like's op over @value and ranges; @value itself where there are none. */
static TinyNode *
new_reduce (TinyGraph *graph, TinyNode *like, TinyNode *value, TinyNode *const *ranges, guint n)
{
  TinyNode *sources[2 * MAX_RANGES + 1];
  if (n == 0)
    return value;
  sources[0] = value;
  memcpy (sources + 1, ranges, n * sizeof (TinyNode *));
  return tiny_node_new (graph, TINY_OP_REDUCE, like->dtype, like->lanes, n + 1, sources,
                        like->arg, like->ints, like->text);
}

/* Loops of extent one have become 0. */
static TinyNode *
drop_constants (TinyMatch *m)
{
  TinyNode *ranges[MAX_RANGES];
  guint n = 0;
  if (!is_over_ranges (m->root))
    return NULL;
  for (guint i = 1; i < m->root->n_sources; i++)
    if (m->root->sources[i]->op != TINY_OP_CONST)
      ranges[n++] = m->root->sources[i];
  return n + 1 == m->root->n_sources
             ? NULL
             : new_reduce (m->graph, m->root, m->root->sources[0], ranges, n);
}

/* All ranges of both, the outer first. */
static TinyNode *
merge (TinyMatch *m, TinyNode *inner, TinyNode *value)
{
  TinyNode *ranges[2 * MAX_RANGES];
  guint n = 0;
  if (!is_over_ranges (m->root) || !is_over_ranges (inner) || inner->arg != m->root->arg
      || inner->lanes != m->root->lanes || inner->n_sources + m->root->n_sources > MAX_RANGES)
    return NULL;
  for (guint i = 1; i < m->root->n_sources; i++)
    ranges[n++] = m->root->sources[i];
  for (guint i = 1; i < inner->n_sources; i++) {
    for (guint j = 1; j < m->root->n_sources; j++)
      if (m->root->sources[j] == inner->sources[i])
        return NULL;
    ranges[n++] = inner->sources[i];
  }
  return new_reduce (m->graph, m->root, value, ranges, n);
}

static TinyNode *
merge_reduce (TinyMatch *m)
{
  TinyNode *inner = m->root->sources[0];
  return merge (m, inner, inner->sources[0]);
}

/* sum of where (mask, sum of x, 0): the mask goes to the elements. */
static TinyNode *
merge_masked (TinyMatch *m)
{
  TinyNode *where = m->root->sources[0], *inner = where->sources[1];
  if (TINY_MATCH (m, 'z')->arg != 0 || inner->arg != TINY_OP_ADD)
    return NULL;
  for (guint i = 1; i < inner->n_sources; i++)
    if (tiny_node_depends_on (m->graph, where->sources[0], inner->sources[i]))
      return NULL;
  return merge (
      m, inner,
      tiny_node_where (m->graph, where->sources[0], inner->sources[0], where->sources[2]));
}

/* @value combined @count times with itself, or NULL. */
static TinyNode *
repeat (TinyMatch *m, TinyNode *value, gint64 count)
{
  TinyDType dtype = m->root->dtype;
  if (m->root->arg == TINY_OP_MAX || dtype == TINY_DTYPE_BOOL)
    return value;
  if (m->root->arg != TINY_OP_ADD)
    return NULL;
  if (!tiny_dtype_is_float (dtype))
    return tiny_node_binary (m->graph, TINY_OP_MUL, value,
                             tiny_const_like (m->graph, value, count));
  /* Whole numbers below 2^(mantissa + 1) add up exactly, in any order. */
  if (value->op != TINY_OP_CONST)
    return NULL;
  double each = tiny_node_get_float (value), total = each * (double) count;
  if (each != floor (each) || (each == 0 && signbit (each))
      || fabs (total) > ldexp (1, (int) tiny_dtype_infos[dtype].mantissa_bits + 1)
      || dtype == TINY_DTYPE_F8E4M3)
    return NULL;
  gint64 bits;
  memcpy (&bits, &total, sizeof bits);
  return tiny_node_new (m->graph, TINY_OP_CONST, dtype, value->lanes, 0, NULL, bits, NULL,
                        NULL);
}

static TinyNode *
drop_unused (TinyMatch *m)
{
  TinyNode *ranges[MAX_RANGES], *value = m->root->sources[0];
  guint n = 0;
  gint64 count = 1;
  if (!is_over_ranges (m->root))
    return NULL;
  for (guint i = 1; i < m->root->n_sources; i++) {
    TinyNode *range = m->root->sources[i];
    gboolean used = range->op != TINY_OP_RANGE || !tiny_node_is_const (range->sources[0])
                    || range->sources[0]->arg < 1
                    || tiny_node_depends_on (m->graph, value, range);
    if (used)
      ranges[n++] = range;
    else if (__builtin_mul_overflow (count, range->sources[0]->arg, &count)
             || count > tiny_dtype_get_max (TINY_DTYPE_INDEX))
      return NULL;
  }
  if (n + 1 == m->root->n_sources)
    return NULL;
  value = repeat (m, value, count);
  return value == NULL ? NULL : new_reduce (m->graph, m->root, value, ranges, n);
}

static gboolean
depends_on_ranges (TinyMatch *m, TinyNode *x)
{
  for (guint i = 1; i < m->root->n_sources; i++)
    if (m->root->sources[i]->op != TINY_OP_RANGE
        || tiny_node_depends_on (m->graph, x, m->root->sources[i]))
      return TRUE;
  return FALSE;
}

/* sum of x * y = (sum of x) * y, y the same in all loops. */
static TinyNode *
move_factor_out (TinyMatch *m)
{
  TinyNode *y = TINY_MATCH (m, 'y');
  if (!is_over_ranges (m->root) || tiny_dtype_is_float (m->root->dtype)
      || depends_on_ranges (m, y))
    return NULL;
  TinyNode *sum = new_reduce (m->graph, m->root, TINY_MATCH (m, 'x'), m->root->sources + 1,
                              m->root->n_sources - 1);
  return tiny_node_binary (m->graph, TINY_OP_MUL, sum, y);
}

static const TinyRule rows[] = {
  { "reduce-ones", "reduce(...)", .build = drop_constants },
  { "reduce-unused", "reduce(...)", .build = drop_unused },
  { "reduce-reduce", "reduce(reduce(...), ...)", .build = merge_reduce },
  { "reduce-masked", "reduce{add}(where(c, reduce(...), #z), ...)", .build = merge_masked },
  { "reduce-factor", "reduce{add}(mul(x, y), ...)", .build = move_factor_out },
};

TINY_RULE_TABLE (tiny_rules_reduce, "reduce", rows);
