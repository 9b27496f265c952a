/* SPDX-License-Identifier: MIT
 *
 * keep-computed.c: counts how often a value was computed, and asks for it as well when that was often.
 *
 * A value is worth its memory if much leads to it, and if it is small: a large one is computed in one kernel with what reads
 * it, as attention is in its gradient, which one more output would take apart. Whoever holds an expression that reads the value keeps it; nothing else
 * does. A recording has what it was told to have, and nothing is added to it. */
#include "engine/keep-computed.h"

#include "engine/runtime-private.h"
#include "engine/tiny-history.h"
#include "engine/tiny-recorders.h"
#include "ir/tiny-shape.h"

enum {
  OFTEN = 2,    /* times: once more and it is stored. A training step computes its loss twice */
  FEW = 4,      /* nodes: nothing among them is worth anything */
  MANY_OPS = 16 /* without a reduction */
};
#define SMALL_BYTES ((gint64) 1 << 20)

/* The computation that leads to a node. */
typedef struct {
  guint n_ops; /* as a tree, and no more than MANY_OPS; a reduction is as many */
  gboolean has_memory;
  gboolean
      flows; /* gradients, to what wants them: stored, it would keep its expression and all before it */
} Past;

static gint64
count_bytes (const TinyNode *node)
{
  return tiny_shape_get_n_elements (node->shape)
         * (gint64) tiny_dtype_get_n_bytes ((TinyDType) node->dtype);
}

/* Arithmetic, or a function with a gradient of its own. */
static gboolean
is_arithmetic (const TinyNode *node)
{
  const gboolean is_any = tiny_op_is_elementwise ((TinyOp) node->op)
                          || node->op == TINY_OP_REDUCE || node->op == TINY_OP_GATHER
                          || node->op == TINY_OP_SLOPED || node->op == TINY_OP_GRADIENT;
  return is_any && node->shape != NULL && node->limits == NULL;
}

/* The past of each node of the order, by its place; NULL where something is on several devices or has sizes that are variables. */
static Past *
find_pasts (const GPtrArray *order)
{
  g_autofree Past *pasts = g_new (Past, order->len);
  const guint32 wants = tiny_graph_begin_mark (tiny_runtime_get_graph ());
  TinyRoot *head = tiny_runtime_get_wanting_roots ();
  for (TinyRoot *root = head->next_wanting; root != head; root = root->next_wanting)
    root->node->mark = wants;
  for (guint i = 0; i < order->len; i++) {
    const TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_UNSHARD || node->op == TINY_OP_LIMIT)
      return NULL;
    Past past
        = { node->op == TINY_OP_REDUCE ? MANY_OPS : is_arithmetic (node),
            node->op == TINY_OP_BUFFER,
            node->mark == wants || tiny_history_has (node) || tiny_history_is_end (node) };
    for (guint s = 0; s < node->n_sources; s++) {
      const Past *source = &pasts[node->sources[s]->place];
      past.n_ops = MIN (past.n_ops + source->n_ops, MANY_OPS);
      past.has_memory = past.has_memory || source->has_memory;
      past.flows = past.flows || (source->flows && tiny_history_flows (node, s));
    }
    pasts[i] = past;
  }
  return g_steal_pointer (&pasts);
}

static gboolean
is_worth (const TinyNode *node, const Past *past)
{
  return is_arithmetic (node) && past->n_ops >= MANY_OPS && past->has_memory && !past->flows
         && count_bytes (node) <= SMALL_BYTES;
}

void
keep_computed_note (const TinyRequest *request)
{
  if (request->order->len < FEW || tiny_recorders_is_any ())
    return;
  g_autofree Past *pasts = find_pasts (request->order);
  if (pasts == NULL)
    return;
  const guint32 is_part = tiny_graph_begin_mark (tiny_runtime_get_graph ());
  for (guint i = 0; i < request->order->len; i++) {
    TinyNode *node = request->order->pdata[i];
    node->mark = is_part;
    if (node->n_computed > 0) /* it was held, and is read by what is held now */
      node->n_computed = OFTEN;
  }
  TinyRoot *head = tiny_runtime_get_active_roots ();
  for (TinyRoot *root = head->next_active; root != head; root = root->next_active) {
    TinyNode *node = root->node;
    while (tiny_op_is_movement ((TinyOp) node->op) || node->op == TINY_OP_DETACH)
      node = node->sources[0];
    if (node->mark == is_part && node->n_computed == 0 && is_worth (node, &pasts[node->place]))
      node->n_computed = 1;
  }
}

void
keep_computed_add (TinyRequest *request)
{
  if (request->order->len < FEW || tiny_recorders_is_any ())
    return;
  const guint32 is_stored = tiny_graph_begin_mark (tiny_runtime_get_graph ());
  for (guint i = 0; i < request->nodes->len; i++)
    ((TinyNode *) request->nodes->pdata[i])->mark = is_stored;
  for (guint i = request->order->len; i-- > 0;) {
    TinyNode *node = request->order->pdata[i];
    const gboolean is_needed = node->n_computed < OFTEN || node->mark == is_stored;
    for (guint s = 0; is_needed && s < node->n_sources; s++) {
      TinyNode *source = node->sources[s];
      if (source->n_computed < OFTEN || source->mark == is_stored)
        continue;
      source->mark = is_stored;
      g_ptr_array_add (request->nodes, source);
      g_array_append_val (request->owners, ((guint64[]){ 0 })[0]);
    }
  }
}
