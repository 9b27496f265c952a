/* SPDX-License-Identifier: MIT
 *
 * rules-valid.c: gates: what is only looked at where a condition holds.
 *
 * Measure: WHEREs around loads fall in number; then clauses of gates; then the size of what stands
 * under a gate (tiny_simplify_given() gives back only what is smaller). */
#include "rewrite/tiny-given.h"
#include "rewrite/tiny-simplify.h"
#include "rewrite/tiny-sum.h"

static TinyNode *
new_not (TinyGraph *graph, TinyNode *x)
{
  return tiny_node_binary (graph, TINY_OP_CMPNE, x, tiny_const_like (graph, x, 1));
}

/* @load under @gate too, where it is @otherwise. NULL when it has another alternative already. */
static TinyNode *
gate_load (TinyGraph *graph, TinyNode *load, TinyNode *gate, TinyNode *otherwise)
{
  if (load->n_sources == 4) {
    if (load->sources[3] != otherwise || load->sources[2]->lanes != gate->lanes)
      return NULL;
    gate = tiny_node_binary (graph, TINY_OP_AND, load->sources[2], gate);
  } else if (load->n_sources != 2) {
    return NULL;
  }
  TinyNode *sources[] = { load->sources[0], load->sources[1], gate, otherwise };
  return tiny_node_new (graph, TINY_OP_LOAD, load->dtype, load->lanes, 4, sources, load->arg,
                        load->ints, load->text);
}

static TinyNode *
where_load (TinyMatch *m)
{
  TinyNode *value = m->root->sources[1];
  return gate_load (m->graph, value, TINY_MATCH (m, 'c'), TINY_MATCH (m, 'z'));
}

static TinyNode *
where_not_load (TinyMatch *m)
{
  return gate_load (m->graph, m->root->sources[2], new_not (m->graph, TINY_MATCH (m, 'c')),
                    TINY_MATCH (m, 'z'));
}

/* Zero is zero in every dtype. */
static TinyNode *
where_cast_load (TinyMatch *m)
{
  TinyNode *load = m->root->sources[1]->sources[0];
  if (TINY_MATCH (m, 'z')->arg != 0)
    return NULL;
  TinyNode *gated
      = gate_load (m->graph, load, TINY_MATCH (m, 'c'), tiny_const_like (m->graph, load, 0));
  return gated == NULL ? NULL : tiny_node_cast (m->graph, gated, m->root->dtype);
}

static TinyNode *
load_always (TinyMatch *m)
{
  return tiny_node_new (m->graph, TINY_OP_LOAD, m->root->dtype, m->root->lanes, 2,
                        m->root->sources, m->root->arg, m->root->ints, m->root->text);
}

static TinyNode *
store_always (TinyMatch *m)
{
  return tiny_node_new (m->graph, TINY_OP_STORE, m->root->dtype, m->root->lanes, 3,
                        m->root->sources, m->root->arg, m->root->ints, m->root->text);
}

/* ---- facts from gates ---- */
static TinyNode *
simplify_given (TinyMatch *m, TinyNode *node, TinyNode *gate)
{
  TinyNode *clauses[TINY_MAX_CLAUSES];
  guint n = gate->lanes == 1 ? tiny_gate_get_clauses (gate, clauses) : 0;
  return tiny_simplify_given_clauses (m->graph, m->rewriter, node, clauses, n);
}

static TinyNode *
access_given (TinyMatch *m)
{
  gboolean is_load = m->root->op == TINY_OP_LOAD;
  TinyNode *gate = m->root->sources[is_load ? 2 : 3];
  TinyNode *index = simplify_given (m, m->root->sources[1], gate);
  if (index == m->root->sources[1])
    return NULL;
  TinyNode *sources[4]
      = { m->root->sources[0], index, m->root->sources[2], m->root->sources[3] };
  return tiny_node_with_sources (m->graph, m->root, sources);
}

static TinyNode *
where_given (TinyMatch *m)
{
  TinyNode *x = m->root->sources[1];
  TinyNode *simple = simplify_given (m, x, m->root->sources[0]);
  return simple == x
             ? NULL
             : tiny_node_where (m->graph, m->root->sources[0], simple, m->root->sources[2]);
}

static gboolean
is_scalar (TinyMatch *m)
{
  return m->root->lanes == 1;
}

static TinyNode *
join (TinyGraph *graph, TinyNode **clauses, guint n)
{
  TinyNode *result = clauses[0];
  for (guint i = 1; i < n; i++)
    result = tiny_node_binary (graph, TINY_OP_AND, result, clauses[i]);
  return result;
}

/* Both operands of an AND are computed, so a gate inside a clause guards its load whatever the
 * other clauses say: such clauses stay as they are. */
static gboolean
reads_memory (TinyGraph *graph, TinyNode *clause)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &clause, 1);
  for (guint i = 0; i < order->len; i++)
    if (((TinyNode *) order->pdata[i])->op == TINY_OP_LOAD)
      return TRUE;
  return FALSE;
}

static void
simplify_each (TinyMatch *m, TinyNode **clauses, guint n, TinyNode **given, guint n_given)
{
  for (guint i = 0; i < n; i++)
    if (!reads_memory (m->graph, clauses[i]))
      clauses[i]
          = tiny_simplify_given_clauses (m->graph, m->rewriter, clauses[i], given, n_given);
}

/* Each clause once, in structural order, simplified by the others. Clauses of one operand have
 * met already. */
static TinyNode *
and_given (TinyMatch *m)
{
  TinyNode *clauses[2 * TINY_MAX_CLAUSES];
  guint n = tiny_gate_get_clauses (m->root->sources[0], clauses), used = 0;
  guint n_second = n == 0 ? 0 : tiny_gate_get_clauses (m->root->sources[1], clauses + n);
  if (n_second == 0 || n + n_second > TINY_MAX_CLAUSES)
    return NULL;
  simplify_each (m, clauses + n, n_second, clauses, n);
  simplify_each (m, clauses, n, clauses + n, n_second);
  n += n_second;
  for (guint i = 1; i < n; i++) {
    TinyNode *clause = clauses[i];
    guint j = i;
    for (; j > 0 && tiny_node_compare_structure (clauses[j - 1], clause) > 0; j--)
      clauses[j] = clauses[j - 1];
    clauses[j] = clause;
  }
  for (guint i = 0; i < n; i++)
    if (used == 0 || clauses[used - 1] != clauses[i])
      clauses[used++] = clauses[i];
  return join (m->graph, clauses, used);
}

static const TinyRule rows[] = {
  { "where-load", "where.any(c, load(...), #z)", .build = where_load },
  { "where-not-load", "where.any(c, #z, load(...))", .build = where_not_load },
  { "where-cast-load", "where.any(c, cast(load(...)), #z)", .build = where_cast_load },
  { "load-always", "load(p, i, true, z)", .build = load_always },
  { "load-never", "load(p, i, false, z)", "z" },
  { "store-always", "store(p, i, x, true)", .build = store_always },
  { "load-given", "load(p, i, g, z)", .build = access_given },
  { "store-given", "store(p, i, x, g)", .build = access_given },
  { "where-given", "where.index(c, x, y)", .build = where_given },
  { "and-given", "and.bool(x, y)", .guard = is_scalar, .build = and_given },
};

TINY_RULE_TABLE (tiny_rules_valid, "valid", rows);
