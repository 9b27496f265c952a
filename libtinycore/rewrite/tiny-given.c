/* SPDX-License-Identifier: MIT
 *
 * tiny-given.c: simplifies what only matters where a gate is true.
 *
 * The gate is an AND of clauses. A clause is true wherever it occurs in the expression; one that
 * compares with a constant bounds the other side. What is bounded is replaced by a variable with
 * those bounds, the whole simplified, and the variable replaced back. For a bounded sum, one of
 * its atoms is solved for, so that the sum is found in larger sums too; and each of its atoms is
 * bounded by what the others leave. */
#include "rewrite/tiny-given.h"

#include <string.h>

#include "rewrite/tiny-bounds.h"
#include "rewrite/tiny-memo.h"
#include "rewrite/tiny-simplify.h"
#include "rewrite/tiny-sum.h"

enum { MAX_FACTS = TINY_MAX_CLAUSES, FIRST_VARIABLE = 1 << 20 };

typedef struct {
  TinyNode *expression;
  gint64 min, max;
} Fact;

typedef struct {
  TinyGraph *graph;
  TinyRewriter *rewriter; /* NULL: none to remember for us */
  guint n_clauses, n_facts;
  TinyNode *clauses[MAX_FACTS];
  Fact facts[MAX_FACTS];
} Facts;

guint
tiny_gate_get_clauses (TinyNode *gate, TinyNode **out_clauses)
{
  TinyNode *stack[TINY_MAX_CLAUSES];
  guint depth = 0, n = 0;
  stack[depth++] = gate;
  while (depth > 0) {
    TinyNode *top = stack[--depth];
    if (n + depth + 2 > TINY_MAX_CLAUSES)
      return 0;
    if (top->op == TINY_OP_AND) {
      stack[depth++] = top->sources[1];
      stack[depth++] = top->sources[0];
    } else {
      out_clauses[n++] = top;
    }
  }
  return n;
}

TinyNode *
tiny_gate_is_in_range (TinyGraph *graph, TinyNode *x, TinyNode *range)
{
  return tiny_node_binary (
      graph, TINY_OP_AND,
      tiny_node_binary (graph, TINY_OP_CMPLT, tiny_node_const_index (graph, -1), x),
      tiny_node_binary (graph, TINY_OP_CMPLT, x, range->sources[0]));
}

static void
add_fact (Facts *self, TinyNode *expression, gint64 min, gint64 max)
{
  if (expression->op == TINY_OP_CONST || expression->dtype != TINY_DTYPE_INDEX)
    return;
  guint i = 0;
  while (i < self->n_facts && self->facts[i].expression != expression)
    i++;
  if (i == MAX_FACTS)
    return;
  Fact *fact = &self->facts[i];
  if (i == self->n_facts) {
    self->n_facts++;
    fact->expression = expression;
    tiny_node_get_bounds (expression, &fact->min, &fact->max);
  }
  fact->min = MAX (fact->min, min);
  fact->max = MIN (fact->max, max);
}

/* What the bounds of a sum leave to each of its atoms. */
static void
add_facts_of_terms (Facts *self, const Fact *fact)
{
  TinySum sum;
  gint64 all_min, all_max, min, max;
  tiny_sum_clear (&sum);
  if (!tiny_sum_add (&sum, fact->expression, 1) || sum.n < 2
      || !tiny_sum_get_bounds (&sum, &all_min, &all_max))
    return;
  for (guint i = 0; i < sum.n; i++) {
    TinyTerm t = sum.terms[i];
    tiny_node_get_bounds (t.atom, &min, &max);
    gint64 low = (t.coef > 0 ? min : max) * t.coef, high = (t.coef > 0 ? max : min) * t.coef;
    gint64 most = fact->max - (all_min - low), least = fact->min - (all_max - high);
    if (t.coef > 0)
      add_fact (self, t.atom, -tiny_floor_div (-least, t.coef), tiny_floor_div (most, t.coef));
    else
      add_fact (self, t.atom, -tiny_floor_div (-most, t.coef), tiny_floor_div (least, t.coef));
  }
}

static void
collect_facts (Facts *self)
{
  gint64 least = tiny_dtype_get_min (TINY_DTYPE_INDEX),
         most = tiny_dtype_get_max (TINY_DTYPE_INDEX);
  for (guint i = 0; i < self->n_clauses; i++) {
    TinyNode *clause = self->clauses[i];
    if (clause->op == TINY_OP_CMPLT && clause->sources[1]->op == TINY_OP_CONST)
      add_fact (self, clause->sources[0], least, clause->sources[1]->arg - 1);
    else if (clause->op == TINY_OP_CMPLT && clause->sources[0]->op == TINY_OP_CONST)
      add_fact (self, clause->sources[1], clause->sources[0]->arg + 1, most);
    else if (clause->op == TINY_OP_CMPEQ && clause->sources[1]->op == TINY_OP_CONST)
      add_fact (self, clause->sources[0], clause->sources[1]->arg, clause->sources[1]->arg);
  }
  for (guint i = 0, n = self->n_facts; i < n; i++) {
    Fact fact = self->facts[i];
    add_facts_of_terms (self, &fact);
  }
}

static gboolean
is_news (const Fact *fact)
{
  gint64 min, max;
  tiny_node_get_bounds (fact->expression, &min, &max);
  return fact->min <= fact->max && (fact->min > min || fact->max < max);
}

/* The number of nodes under @node, and FALSE in @out_gain when none of them is one whose form depends
 * on bounds, or when one is a LOAD: loads happen whether the fact holds or not, so neither their
 * index nor their gate may rely on it. */
static guint
measure (TinyGraph *graph, TinyNode *node, gboolean *out_gain)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &node, 1);
  guint size = 0;
  gboolean loads = FALSE;
  *out_gain = FALSE;
  for (guint i = 0; i < order->len; i++) {
    TinyNode *n = order->pdata[i];
    loads = loads || n->op == TINY_OP_LOAD;
    gboolean divides = n->op == TINY_OP_FLOORDIV || n->op == TINY_OP_FLOORMOD;
    gboolean decides = n->op == TINY_OP_WHERE || n->op == TINY_OP_MAX
                       || tiny_op_infos[n->op].op_class == TINY_OP_CLASS_COMPARE;
    *out_gain = *out_gain || divides || decides;
    size += divides ? 4 : 1;
  }
  *out_gain = *out_gain && !loads;
  return size;
}

static TinyNode *
new_variable (Facts *self, const Fact *fact, guint number)
{
  if (fact->min == fact->max)
    return tiny_const_like (self->graph, fact->expression, fact->min);
  struct {
    TinyInts ints;
    gint64 v[2];
  } bounds = { { 2 }, { fact->min, fact->max } };
  return tiny_node_new (self->graph, TINY_OP_VARIABLE, TINY_DTYPE_INDEX,
                        fact->expression->lanes, 0, NULL, FIRST_VARIABLE + number, &bounds.ints,
                        "given");
}

static TinyNode *
simplify (Facts *self, TinyNode *node)
{
  return self->rewriter == NULL ? tiny_simplify_index (self->graph, node)
                                : tiny_rewriter_run (self->rewriter, node);
}

/* @node under from -> to, simplified, and back; the smaller of both. */
static TinyNode *
try_substitution (Facts *self,
                  TinyNode *node,
                  guint n,
                  TinyNode **from,
                  TinyNode **to,
                  guint n_back,
                  TinyNode **back_from,
                  TinyNode **back_to)
{
  TinyNode *there = tiny_substitute (self->graph, node, from, to, n);
  if (there == node)
    return node;
  TinyNode *simple = simplify (self, there);
  TinyNode *back = tiny_substitute (self->graph, simple, back_from, back_to, n_back);
  back = simplify (self, back);
  gboolean gain;
  return back != node && measure (self->graph, back, &gain) < measure (self->graph, node, &gain)
             ? back
             : node;
}

static TinyNode *
use_clauses (Facts *self, TinyNode *node)
{
  TinyNode *to[MAX_FACTS];
  for (guint i = 0; i < self->n_clauses; i++)
    to[i] = tiny_const_like (self->graph, self->clauses[i], 1);
  TinyNode *result = tiny_substitute (self->graph, node, self->clauses, to, self->n_clauses);
  return result == node ? node : simplify (self, result);
}

static TinyNode *
use_atoms (Facts *self, TinyNode *node)
{
  TinyNode *from[MAX_FACTS], *to[MAX_FACTS], *back_from[MAX_FACTS], *back_to[MAX_FACTS];
  guint n = 0, n_back = 0;
  for (guint i = 0; i < self->n_facts; i++) {
    if (!is_news (&self->facts[i]))
      continue;
    from[n] = self->facts[i].expression;
    to[n] = new_variable (self, &self->facts[i], i);
    if (to[n]->op == TINY_OP_VARIABLE) {
      back_from[n_back] = to[n];
      back_to[n_back++] = from[n];
    }
    n++;
  }
  return n == 0 ? node : try_substitution (self, node, n, from, to, n_back, back_from, back_to);
}

static TinyNode *
use_sum (Facts *self, TinyNode *node, const Fact *fact)
{
  TinySum sum;
  tiny_sum_clear (&sum);
  if (!is_news (fact) || !tiny_sum_add (&sum, fact->expression, 1) || sum.n < 2)
    return node;
  for (guint i = 0; i < sum.n; i++) {
    gint64 coef = sum.terms[i].coef;
    if (coef != 1 && coef != -1)
      continue;
    /* expression = coef * atom + others: atom = coef * (variable - others). */
    TinySum solved;
    TinyNode *variable = new_variable (self, fact, MAX_FACTS), *atom = sum.terms[i].atom;
    tiny_sum_clear (&solved);
    gboolean ok = tiny_sum_add (&solved, variable, coef);
    for (guint j = 0; j < sum.n; j++)
      ok = ok
           && (j == i || tiny_sum_add (&solved, sum.terms[j].atom, -coef * sum.terms[j].coef));
    if (!ok || !tiny_sum_add_constant (&solved, -coef * sum.constant)
        || !tiny_sum_normalize (&solved, self->graph))
      continue;
    TinyNode *to = tiny_sum_build (&solved, self->graph, atom);
    TinyNode *expression = fact->expression;
    return try_substitution (self, node, 1, &atom, &to, variable->op == TINY_OP_VARIABLE,
                             &variable, &expression);
  }
  return node;
}

/* Whether @clause can say anything about @node. */
static gboolean
is_related (TinyGraph *graph, TinyNode *clause, TinyNode *node)
{
  guint n, m;
  TinyNode *const *a = tiny_node_get_ranges (graph, clause, &n);
  TinyNode *const *b = tiny_node_get_ranges (graph, node, &m);
  for (guint i = 0, j = 0; i < n && j < m;) {
    if (a[i] == b[j])
      return TRUE;
    if (a[i]->id < b[j]->id)
      i++;
    else
      j++;
  }
  return n == 0;
}

TinyNode *
tiny_simplify_given_clauses (
    TinyGraph *graph, TinyRewriter *rewriter, TinyNode *node, TinyNode *const *clauses, guint n)
{
  Facts facts = { .graph = graph };
  gboolean gain;
  if (node->op == TINY_OP_CONST || node->op == TINY_OP_RANGE)
    return node;
  for (guint i = 0; i < MIN (n, MAX_FACTS); i++)
    if (clauses[i]->op != TINY_OP_CONST && is_related (graph, clauses[i], node))
      facts.clauses[facts.n_clauses++] = clauses[i];
  if (facts.n_clauses == 0)
    return node;
  measure (graph, node, &gain);
  if (!gain)
    return node;
  facts.rewriter = rewriter == NULL ? NULL : tiny_rewriter_get_inner (rewriter);
  node = use_clauses (&facts, node);
  collect_facts (&facts);
  node = use_atoms (&facts, node);
  for (guint i = 0; i < facts.n_facts; i++)
    if (facts.facts[i].expression->op == TINY_OP_ADD)
      node = use_sum (&facts, node, &facts.facts[i]);
  return node;
}

TinyNode *
tiny_simplify_given (TinyGraph *graph, TinyNode *node, TinyNode *gate)
{
  TinyNode *clauses[TINY_MAX_CLAUSES];
  guint n = gate->lanes == 1 ? tiny_gate_get_clauses (gate, clauses) : 0;
  return tiny_simplify_given_clauses (graph, NULL, node, clauses, n);
}
