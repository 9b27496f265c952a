/* SPDX-License-Identifier: MIT
 *
 * pass-stores.c: a STORE writes what changes, and loops over nothing else.
 *
 * Of an axis whose size is a variable only the elements are stored that there are: where (i < n, value, open).
 *
 * An assignment to a part of a tensor comes as the whole of it: where (here, new, old), stored over
 * old. The elements outside need no store: `here` becomes its gate. Where the gate pins a loop to one
 * round (row = position), there is no loop. A store that others in its loops wait for, or that waits for
 * them, stays in these loops. */
#include "codegen/codegen-private.h"
#include "rewrite/tiny-given.h"
#include "rewrite/tiny-sum.h"

#include <string.h>

static gboolean
is_there (const TinyNode *store, const TinyNode *value)
{
  return value->op == TINY_OP_LOAD && value->n_sources == 2
         && value->sources[0] == store->sources[0] && value->sources[1] == store->sources[1];
}

static TinyNode *
gate_store (TinyGraph *graph, TinyNode *store, TinyNode *value, TinyNode *gate)
{
  if (store->n_sources > 3)
    gate = tiny_fold_binary (graph, TINY_OP_AND, store->sources[3], gate);
  TinyNode *sources[] = { store->sources[0], store->sources[1], value, gate };
  return tiny_node_new (graph, TINY_OP_STORE, TINY_DTYPE_VOID, 1, 4, sources, 0, NULL, NULL);
}

/* @value where it is of account, which is where @out_gate is true; NULL there: everywhere. What is calculated from
 * any value is any value. */
static TinyNode *
close_value (TinyGraph *graph, TinyNode *value, guint depth, TinyNode **out_gate)
{
  enum { MAX_DEPTH = 24 };
  TinyNode *sources[3];
  *out_gate = NULL;
  if (value->op == TINY_OP_WHERE && tiny_node_is_open (value->sources[2])) {
    TinyNode *inner = close_value (graph, value->sources[1], depth + 1, out_gate);
    *out_gate = *out_gate == NULL || *out_gate == value->sources[0]
                    ? value->sources[0]
                    : tiny_fold_binary (graph, TINY_OP_AND, value->sources[0], *out_gate);
    return inner;
  }
  if (!tiny_op_is_elementwise (value->op) || value->op == TINY_OP_WHERE || depth == MAX_DEPTH)
    return value;
  for (guint i = 0; i < value->n_sources; i++) {
    TinyNode *gate;
    sources[i] = close_value (graph, value->sources[i], depth + 1, &gate);
    if (*out_gate == NULL || gate == *out_gate)
      *out_gate = gate != NULL ? gate : *out_gate;
    else if (gate != NULL)
      *out_gate = tiny_fold_binary (graph, TINY_OP_AND, *out_gate, gate);
  }
  return tiny_node_with_sources (graph, value, sources);
}

static TinyNode *
leave_what_is_there (TinyGraph *graph, TinyNode *store)
{
  TinyNode *gate, *value = close_value (graph, store->sources[2], 0, &gate);
  if (gate != NULL)
    return gate_store (graph, store, value, gate);
  if (value->op != TINY_OP_WHERE)
    return store;
  TinyNode *condition = value->sources[0];
  if (is_there (store, value->sources[2]))
    return gate_store (graph, store, value->sources[1], condition);
  if (is_there (store, value->sources[1]))
    return gate_store (graph, store, value->sources[2],
                       tiny_node_binary (graph, TINY_OP_CMPNE, condition,
                                         tiny_node_const_int (graph, TINY_DTYPE_BOOL, 1)));
  return store;
}

/* The store with @range put to what clause @at of its gate says; NULL: it does not say. */
static TinyNode *
pin (TinyGraph *graph,
     TinyNode *store,
     TinyNode *range,
     TinyNode *const *clauses,
     guint n,
     guint at)
{
  TinyNode *e = tiny_sum_solve (graph, clauses[at]->sources[0], clauses[at]->sources[1], range);
  if (e == NULL)
    return NULL;
  TinyNode *gate = tiny_gate_is_in_range (graph, e, range);
  TinyNode *safe = tiny_node_where (graph, gate, e, tiny_node_const_index (graph, 0));
  for (guint i = 0; i < n; i++)
    if (i != at)
      gate = tiny_fold_binary (graph, TINY_OP_AND, gate,
                               tiny_codegen_replace (graph, clauses[i], &range, &safe, 1));
  TinyNode *sources[]
      = { store->sources[0], tiny_codegen_replace (graph, store->sources[1], &range, &safe, 1),
          tiny_codegen_replace (graph, store->sources[2], &range, &safe, 1), gate };
  return tiny_node_new (graph, TINY_OP_STORE, TINY_DTYPE_VOID, 1, 4, sources, 0, NULL, NULL);
}

/* One loop less, or NULL. */
static TinyNode *
pin_a_loop (TinyGraph *graph, TinyNode *store)
{
  TinyNode *clauses[TINY_MAX_CLAUSES];
  guint n = store->n_sources > 3 ? tiny_gate_get_clauses (store->sources[3], clauses) : 0,
        n_loops;
  g_autofree TinyNode **loops = tiny_codegen_get_loops (graph, store, &n_loops);
  for (guint i = 0; i < n; i++)
    for (guint j = 0; j < n_loops && clauses[i]->op == TINY_OP_CMPEQ; j++) {
      TinyNode *pinned = pin (graph, store, loops[j], clauses, n, i);
      if (pinned != NULL)
        return pinned;
    }
  return NULL;
}

static gboolean
reads (TinyGraph *graph, TinyNode *store, const TinyNode *memory)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &store, 1);
  for (guint i = 0; i < order->len; i++) {
    const TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_LOAD && node->sources[0] == memory)
      return TRUE;
  }
  return FALSE;
}

/* Whether another store of @sink reads what store @at writes, as it was before, or the other way
 * round: each round of the loops they share does both. */
static gboolean
is_tied (TinyGraph *graph, TinyNode *sink, guint at)
{
  TinyNode *store = sink->sources[at];
  for (guint i = 0; i < sink->n_sources; i++)
    if (i != at
        && (reads (graph, sink->sources[i], store->sources[0])
            || reads (graph, store, sink->sources[i]->sources[0])))
      return TRUE;
  return FALSE;
}

gboolean
tiny_pass_stores (TinyCodegen *cg, GError **error)
{
  TinyGraph *graph = cg->graph;
  guint n = cg->root->n_sources;
  g_autofree TinyNode **stores = g_new (TinyNode *, n + 1);
  for (guint i = 0; i < n; i++) {
    TinyNode *store = cg->root->sources[i];
    gboolean is_local = store->sources[0]->op == TINY_OP_LOCAL;
    gboolean stays = n > 1 && is_tied (graph, cg->root, i);
    for (TinyNode *next = store; next != NULL && !is_local;
         next = stays ? NULL : pin_a_loop (graph, store))
      store = leave_what_is_there (graph, next);
    stores[i] = store;
  }
  cg->root = tiny_node_sink (graph, n, stores, cg->root->text);
  return TRUE;
}
