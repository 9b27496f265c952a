/* SPDX-License-Identifier: MIT
 *
 * rules-reduce.c: reductions over ranges with less to do.
 *
 * The order in which a REDUCE combines is its maker's choice, so reductions of one op nest freely;
 * nothing else about floats is assumed: factors leave sums of integers only, and a sum of equal
 * floats is folded only where each partial sum is exact.
 * Measure: the number of REDUCEs, then of their ranges, then of operations inside. */
#include "rewrite/tiny-bounds.h"
#include "rewrite/tiny-given.h"
#include "rewrite/tiny-memo.h"
#include "rewrite/tiny-simplify.h"
#include "rewrite/tiny-sum.h"

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

/* ---- one element picked out of a sum ---- */
/* sum over r of where (r = e and gate, x (r), 0) = where (0 <= e < n and gate, x (e), 0). Adding
 * 0.0 is what the other elements did: to -0.0. */
static TinyNode *
pick (TinyMatch *m, TinyNode *const *clauses, guint n, guint equality, guint at, TinyNode *x)
{
  TinyGraph *graph = m->graph;
  TinyNode *range = m->root->sources[at], *zero = TINY_MATCH (m, 'z');
  TinyNode *e = tiny_sum_solve (graph, clauses[equality]->sources[0],
                                clauses[equality]->sources[1], range);
  if (e == NULL)
    return NULL;
  TinyNode *gate = tiny_gate_is_in_range (graph, e, range);
  TinyNode *safe = tiny_node_where (graph, gate, e, tiny_node_const_index (graph, 0));
  for (guint i = 0; i < n; i++)
    if (i != equality)
      gate = tiny_node_binary (graph, TINY_OP_AND, gate,
                               tiny_substitute (graph, clauses[i], &range, &safe, 1));
  TinyNode *value
      = tiny_node_where (graph, gate, tiny_substitute (graph, x, &range, &safe, 1), zero);
  if (tiny_dtype_is_float (m->root->dtype))
    value = tiny_node_binary (graph, TINY_OP_ADD, value, zero);
  TinyNode *ranges[MAX_RANGES];
  guint n_ranges = 0;
  for (guint i = 1; i < m->root->n_sources; i++)
    if (i != at)
      ranges[n_ranges++] = m->root->sources[i];
  return new_reduce (graph, m->root, value, ranges, n_ranges);
}

static TinyNode *
pick_among (TinyMatch *m, TinyNode *const *clauses, guint n, TinyOp op, TinyNode *x)
{
  if (!is_over_ranges (m->root) || m->root->lanes != 1 || TINY_MATCH (m, 'z')->arg != 0)
    return NULL;
  for (guint i = 0; i < n; i++)
    for (guint at = 1; clauses[i]->op == op && at < m->root->n_sources; at++) {
      TinyNode *range = m->root->sources[at], *result;
      if (range->op != TINY_OP_RANGE || range->dtype != TINY_DTYPE_INDEX
          || !tiny_node_is_const (range->sources[0]) || range->sources[0]->arg < 2)
        continue;
      result = pick (m, clauses, n, i, at, x);
      if (result != NULL)
        return result;
    }
  return NULL;
}

static TinyNode *
pick_equal (TinyMatch *m)
{
  TinyNode *where = m->root->sources[0], *clauses[TINY_MAX_CLAUSES];
  guint n = tiny_gate_get_clauses (where->sources[0], clauses);
  return pick_among (m, clauses, n, TINY_OP_CMPEQ, where->sources[1]);
}

static TinyNode *
pick_load (TinyMatch *m)
{
  TinyNode *load = m->root->sources[0], *clauses[TINY_MAX_CLAUSES];
  guint n = tiny_gate_get_clauses (load->sources[2], clauses);
  TinyNode *plain = tiny_node_new (m->graph, TINY_OP_LOAD, load->dtype, load->lanes, 2,
                                   load->sources, load->arg, load->ints, load->text);
  return pick_among (m, clauses, n, TINY_OP_CMPEQ, plain);
}

static TinyNode *
pick_not_unequal (TinyMatch *m)
{
  TinyNode *where = m->root->sources[0];
  return pick_among (m, &where->sources[0], 1, TINY_OP_CMPNE, where->sources[2]);
}

static const TinyRule rows[] = {
  { "reduce-ones", "reduce(...)", .build = drop_constants },
  { "reduce-unused", "reduce(...)", .build = drop_unused },
  { "reduce-reduce", "reduce(reduce(...), ...)", .build = merge_reduce },
  { "reduce-masked", "reduce{add}(where(c, reduce(...), #z), ...)", .build = merge_masked },
  { "reduce-pick", "reduce{add}(where(c, x, #z), ...)", .build = pick_equal },
  { "reduce-pick-load", "reduce{add}(load(p, i, c, #z), ...)", .build = pick_load },
  { "reduce-pick-not", "reduce{add}(where(c, #z, x), ...)", .build = pick_not_unequal },
  { "reduce-factor", "reduce{add}(mul(x, y), ...)", .build = move_factor_out },
};

TINY_RULE_TABLE (tiny_rules_reduce, "reduce", rows);
