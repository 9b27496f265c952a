/* SPDX-License-Identifier: MIT
 *
 * keep-computed.c: counts how often a value was computed, and asks for it as well when that was often.
 *
 * A value is worth its memory if much leads to each of its elements. A value of more than 1 MiB is worth it only if that
 * happens at its own size: what is spread from something smaller, or follows from it in few operations, is computed with
 * what reads it. Kept values have a budget in all, of which each takes at most a quarter of what is left, so that small
 * ones always fit. Whoever holds an expression that reads the value keeps it; nothing else does. A recording has what it
 * was told to have, and nothing is added to it. Where a value is computed again and again and cannot be kept, a warning
 * says so, once for each reason. */
#include "engine/keep-computed.h"

#include "engine/runtime-private.h"
#include "engine/tiny-history.h"
#include "engine/tiny-recorders.h"
#include "ir/tiny-shape.h"

enum {
  OFTEN = 2, /* times: once more and it is stored. A training step computes its loss twice */
  MOST_REPEATS = 7,
  MANY_REPEATED = 100, /* reductions in a row: so many, so often, are not meant */
  FEW = 4,             /* nodes: nothing among them is worth anything */
  MANY_OPS = 16        /* without a reduction */
};
#define SMALL_BYTES ((gint64) 1 << 20)

gssize keep_computed_budget = 64 << 20;

/* Bytes of kept values that are alive. Atomic: whoever has a buffer last may be any thread. */
static gssize kept_bytes;

/* The computation that leads to a node, and who has the node. */
typedef struct {
  guint n_ops;   /* as a tree, and no more than MANY_OPS; a reduction is as many */
  guint n_whole; /* those since its elements came from fewer */
  guint n_again; /* as n_ops, without end: the longest chain of those held MOST_REPEATS times */
  guint n_readers; /* in the order, once for each source that it is */
  /* Gradients flow through it to what wants them: stored, it would keep its expression and all before it. */
  gboolean flows;
  /* It is held by what is not realised now, through movement or through what is not kept. */
  gboolean is_held;
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

static gboolean
is_larger (const TinyNode *node, const TinyNode *source)
{
  return node->shape != NULL && source->shape != NULL
         && tiny_shape_get_n_elements (node->shape) > tiny_shape_get_n_elements (source->shape);
}

/* Adds what leads to the sources of @node, whose place is known, and counts it as their reader. */
static void
add_sources (Past *pasts, const TinyNode *node, Past *past)
{
  for (guint s = 0; s < node->n_sources; s++) {
    Past *source = &pasts[node->sources[s]->place];
    source->n_readers++;
    past->n_ops = MIN (past->n_ops + source->n_ops, MANY_OPS);
    past->n_whole = MIN (
        past->n_whole + (is_larger (node, node->sources[s]) ? 0 : source->n_whole), MANY_OPS);
    past->n_again = MAX (past->n_again, source->n_again);
    past->flows = past->flows || (source->flows && tiny_history_flows (node, s));
  }
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
    const guint n_own = node->op == TINY_OP_REDUCE ? MANY_OPS : is_arithmetic (node);
    pasts[i] = (Past){ .n_ops = n_own,
                       .n_whole = n_own,
                       .flows = node->mark == wants || tiny_history_has (node)
                                || tiny_history_is_end (node) };
    Past past = pasts[i];
    add_sources (pasts, node, &past);
    past.n_again = node->n_repeats == MOST_REPEATS ? past.n_again + n_own : 0;
    pasts[i] = past;
  }
  return g_steal_pointer (&pasts);
}

/* True if whoever has @node has no more of it than its source is. */
static gboolean
is_transparent (const Past *pasts, const TinyNode *node)
{
  return tiny_op_is_movement ((TinyOp) node->op)
         || (node->op == TINY_OP_DETACH && !pasts[node->sources[0]->place].flows);
}

static gboolean
is_worth (const Past *pasts, const TinyNode *node)
{
  const Past *past = &pasts[node->place];
  const gboolean is_end = node->op == TINY_OP_CONTIGUOUS || node->op == TINY_OP_DETACH;
  const guint n_ops = count_bytes (node) <= SMALL_BYTES ? past->n_ops : past->n_whole;
  return (is_arithmetic (node) || (is_end && node->limits == NULL))
         && !is_transparent (pasts, node) && n_ops >= MANY_OPS && !past->flows;
}

/* A GWeakNotify. */
static void
give_back (gpointer n_bytes, GObject *buffer)
{
  g_atomic_pointer_add (&kept_bytes, -(gssize) GPOINTER_TO_SIZE (n_bytes));
}

static void
count_kept (TinyNode *memory)
{
  if (tiny_runtime_get_memory (memory)->op != TINY_OP_BUFFER)
    return;
  TinyBuffer *buffer = tiny_runtime_get_buffer (memory);
  const gsize n_bytes = tiny_buffer_get_n_bytes (buffer);
  g_atomic_pointer_add (&kept_bytes, (gssize) n_bytes);
  g_object_weak_ref (G_OBJECT (buffer), give_back, GSIZE_TO_POINTER (n_bytes));
}

static guint32
mark_stored (const TinyRequest *request)
{
  const guint32 is_stored = tiny_graph_begin_mark (tiny_runtime_get_graph ());
  for (guint i = 0; i < request->nodes->len; i++)
    ((TinyNode *) request->nodes->pdata[i])->mark = is_stored;
  return is_stored;
}

/* Such as a loop that carries what it does not store, and computes all rounds in each: said once of each reason. */
static void
warn_of_repeats (guint n_ops, const char *why, gint *is_said)
{
  if (n_ops >= MANY_REPEATED * MANY_OPS && g_atomic_int_compare_and_exchange (is_said, 0, 1))
    g_warning (
        "what a value is made of is computed again and again, as the value is held and %s: "
        "realize () what a loop carries or reads often, or detach () it where no gradient "
        "is wanted",
        why);
}

void
keep_computed_note (const TinyRequest *request)
{
  if (request->order->len < FEW || tiny_recorders_is_any ())
    return;
  for (guint i = request->n_asked; i < request->results->len; i++)
    count_kept (request->results->pdata[i]);
  g_autofree Past *pasts = find_pasts (request->order);
  if (pasts == NULL)
    return;
  const guint32 is_stored = mark_stored (request);
  static gint is_said;
  guint n_again = 0;
  for (guint i = request->order->len; i-- > 0;) {
    TinyNode *node = request->order->pdata[i];
    Past *past = &pasts[i];
    if (node->mark == is_stored && (past->flows || !is_transparent (pasts, node)))
      continue; /* nothing under it is computed for whoever has it */
    past->is_held = past->is_held || node->n_users > past->n_readers;
    if (past->is_held) {
      node->n_repeats = MIN (node->n_repeats + 1, MOST_REPEATS);
      n_again = MAX (n_again, past->n_again);
    }
    if (node->n_computed > 0) /* it was held, and is read by what is held now */
      node->n_computed = OFTEN;
    else if (past->is_held && is_worth (pasts, node))
      node->n_computed = 1;
    for (guint s = 0; s < node->n_sources; s++)
      if (past->is_held && (past->flows || is_transparent (pasts, node)))
        pasts[node->sources[s]->place].is_held = TRUE;
  }
  warn_of_repeats (n_again, "never stored", &is_said);
}

/* True if there is memory for @node beside what is kept, of which @planned bytes are not there yet. */
static gboolean
fits (const TinyNode *node, gssize planned)
{
  const gssize left
      = keep_computed_budget - (gssize) g_atomic_pointer_get (&kept_bytes) - planned;
  return count_bytes (node) <= left / 4;
}

void
keep_computed_add (TinyRequest *request)
{
  request->n_asked = request->nodes->len;
  if (request->order->len < FEW || tiny_recorders_is_any ())
    return;
  static gint is_said;
  gssize planned = 0;
  guint n_refused = 0;
  const guint32 is_stored = mark_stored (request),
                is_refused = tiny_graph_begin_mark (tiny_runtime_get_graph ());
  for (guint i = request->order->len; i-- > 0;) {
    TinyNode *node = request->order->pdata[i];
    const gboolean is_needed
        = node->n_computed < OFTEN || node->mark == is_stored || node->mark == is_refused;
    for (guint s = 0; is_needed && s < node->n_sources; s++) {
      TinyNode *source = node->sources[s];
      if (source->n_computed < OFTEN || source->mark == is_stored || source->mark == is_refused)
        continue;
      if (!fits (source, planned)) {
        source->mark = is_refused;
        n_refused++;
        continue;
      }
      source->mark = is_stored;
      planned += count_bytes (source);
      g_ptr_array_add (request->nodes, source);
      g_array_append_val (request->owners, ((guint64[]){ 0 })[0]);
    }
  }
  warn_of_repeats (n_refused * MANY_OPS, "too large to be stored unasked", &is_said);
}
