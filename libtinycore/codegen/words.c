/* SPDX-License-Identifier: MIT
 *
 * words.c: STOREs of bytes and halves become STOREs of whole words.
 *
 * A kernel writes each element of its output once. Those loops whose rounds go through its elements
 * one after the other, the fastest first and as many of them as make up whole words, become one loop
 * over words, and the value is copied for each element of a word. So one round of one loop writes all
 * of a word and no other round does. Where the whole output is no whole number of words, its last
 * elements are computed at the last one's place and what is behind it is padding.
 *
 * Other stores in the same loops are copied alike, so that they stay together. Those that cannot be
 * (they have but some of these loops) keep loops of their own, if they neither read what the others
 * write nor these what they write. LOCAL memory that is filled anew in each round of such a loop
 * leaves no way: schedule/ makes no such kernel.
 *
 * An assignment to a part of the output keeps the form in which pass-stores.c knows it:
 * where (any element of the word changes, the new word, the old one). */
#include "codegen/words.h"

#include "base/tiny-error.h"
#include "rewrite/tiny-given.h"

enum { MAX_LOOPS = 64, MAX_COPIES = 4 };

/* A store's loops by their strides in its index, the smallest first. */
typedef struct {
  guint n;
  TinyNode *loops[MAX_LOOPS];
  gint64 strides[MAX_LOOPS];
} Order;

/* The first of these loops as one of @n_rounds rounds, and what they are in copy i of a round. */
typedef struct {
  Order order;
  guint n_loops, n_copies;
  gint64 n, n_rounds; /* elements; rounds */
  TinyNode *round;    /* its counter, NULL: there is one round */
  TinyNode *at[MAX_COPIES][MAX_LOOPS];
  TinyNode *gates[MAX_COPIES]; /* NULL: always inside of the output */
  guint n_inside;              /* copies that are inside in some round: the first so many */
} Split;

typedef struct {
  TinyCodegen *cg;
  TinyGraph *graph;
  GPtrArray *stores; /* as they are by now */
  guint n_numbers;
} Words;

static TinyNode *
number (Words *self, gint64 value)
{
  return tiny_node_const_index (self->graph, value);
}

static gboolean
is_packed (const Words *self, const TinyNode *store)
{
  return store->sources[0]->op == TINY_OP_PARAM
         && tiny_words_packs (self->cg->target, store->sources[0]->dtype);
}

/* ---- which loops ---- */

/* FALSE: the loops do not go through the output's elements one by one. */
static gboolean
find_order (Words *self, TinyNode *store, Order *out)
{
  TinyGraph *graph = self->graph;
  TinyNode *param = store->sources[0], *index = store->sources[1];
  g_autofree TinyNode **loops = tiny_codegen_get_loops (graph, store, &out->n);
  g_autofree TinyNode **zeros = g_new (TinyNode *, out->n + 1);
  gint64 n = 1;
  if (out->n > MAX_LOOPS)
    return FALSE;
  for (guint i = 0; i < out->n; i++) {
    gint64 stride;
    guint at = i;
    zeros[i] = number (self, 0);
    if (!tiny_index_stride (graph, index, loops[i], &stride))
      return FALSE;
    for (; at > 0 && out->strides[at - 1] > stride; at--) {
      out->strides[at] = out->strides[at - 1];
      out->loops[at] = out->loops[at - 1];
    }
    out->strides[at] = stride;
    out->loops[at] = loops[i];
  }
  for (guint i = 0; i < out->n; i++) {
    if (out->strides[i] != n)
      return FALSE;
    n *= tiny_range_get_extent (out->loops[i]);
  }
  index = tiny_codegen_replace (graph, index, loops, zeros, out->n);
  return tiny_node_is_const_int (index, 0)
         && n == (param->ints != NULL && param->ints->n > 0 ? param->ints->v[0] : 1);
}

/* Takes the fewest loops that make up whole words, or all. */
static void
take_loops (Split *split, gint64 per_word)
{
  split->n = 1;
  split->n_copies = per_word;
  for (split->n_loops = 0; split->n_loops < split->order.n; split->n_loops++) {
    if (split->n % per_word == 0)
      break;
    split->n *= tiny_range_get_extent (split->order.loops[split->n_loops]);
  }
  split->n_rounds = (split->n + per_word - 1) / per_word;
}

/* Makes the new loop and what the old ones are in it. */
static void
make_loop (Words *self, Split *split)
{
  TinyGraph *graph = self->graph;
  gint64 n_last = split->n - (split->n_rounds - 1) * split->n_copies; /* in the last round */
  TinyNode *base = number (self, 0);
  if (split->n_rounds > 1) {
    split->round
        = tiny_node_range_const (graph, self->n_numbers++, TINY_RANGE_LOOP, split->n_rounds);
    base = tiny_fold_binary (graph, TINY_OP_MUL, split->round, number (self, split->n_copies));
  }
  split->n_inside = split->n_rounds > 1 ? split->n_copies : (guint) n_last;
  for (guint copy = 0; copy < split->n_inside; copy++) {
    TinyNode *element = tiny_fold_binary (graph, TINY_OP_ADD, base, number (self, copy));
    gint64 below = 1;
    if (copy >= n_last) {
      TinyNode *gate
          = tiny_fold_binary (graph, TINY_OP_CMPLT, element, number (self, split->n));
      split->gates[copy] = gate;
      element = tiny_node_where (graph, gate, element, number (self, split->n - 1));
    }
    for (guint i = 0; i < split->n_loops; i++) {
      gint64 extent = tiny_range_get_extent (split->order.loops[i]);
      TinyNode *own = tiny_fold_binary (graph, TINY_OP_FLOORDIV, element, number (self, below));
      if (i + 1 < split->n_loops)
        own = tiny_fold_binary (graph, TINY_OP_FLOORMOD, own, number (self, extent));
      split->at[copy][i] = own;
      below *= extent;
    }
  }
}

/* ---- which stores ---- */
static guint
count_loops_of (Words *self, const Split *split, TinyNode *node)
{
  guint n = 0;
  for (guint i = 0; i < split->n_loops; i++)
    n += tiny_node_depends_on (self->graph, node, split->order.loops[i]);
  return n;
}

/* Whether @store may be copied in the same loop. */
static gboolean
fits (Words *self, const Split *split, TinyNode *store)
{
  Order order;
  if (store->sources[0]->op == TINY_OP_LOCAL
      || count_loops_of (self, split, store) != split->n_loops)
    return FALSE;
  if (!is_packed (self, store))
    return TRUE;
  if (!find_order (self, store, &order)
      || tiny_words_count (store->sources[0]->dtype) > split->n_copies)
    return FALSE;
  for (guint i = 0; i < split->n_loops; i++)
    if (order.loops[i] != split->order.loops[i])
      return FALSE;
  return split->n % tiny_words_count (store->sources[0]->dtype) == 0
         || order.n == split->n_loops;
}

static gboolean
reads (Words *self, TinyNode *store, const TinyNode *memory)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (self->graph, &store, 1);
  for (guint i = 0; i < order->len; i++) {
    const TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_LOAD && node->sources[0] == memory)
      return TRUE;
  }
  return FALSE;
}

/* Whether some LOCAL is filled anew in each round of one of the loops, and @store reads it. */
static gboolean
reads_local_of (Words *self, const Split *split, TinyNode *store)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (self->graph, &store, 1);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op != TINY_OP_LOCAL)
      continue;
    for (guint s = 0; s < node->n_sources; s++)
      for (guint j = 0; j < split->n_loops; j++)
        if (node->sources[s] == split->order.loops[j])
          return TRUE;
  }
  return FALSE;
}

static gboolean
is_tied (Words *self, TinyNode *a, TinyNode *b)
{
  return reads (self, a, b->sources[0]) || reads (self, b, a->sources[0]);
}

/* Says of each store, in @joins, whether it is copied with @store: those in the same loops are, but
 * for what does not fit and what is tied to that. FALSE: @store itself would be. */
static gboolean
choose_stores (Words *self, const Split *split, TinyNode *store, gboolean *joins)
{
  guint n = self->stores->len;
  TinyNode **stores = (TinyNode **) self->stores->pdata;
  g_autofree gboolean *overlaps = g_new0 (gboolean, n);
  gboolean changed = TRUE;
  if (reads_local_of (self, split, store))
    return FALSE;
  for (guint i = 0; i < n; i++) {
    overlaps[i] = count_loops_of (self, split, stores[i]) > 0;
    joins[i] = stores[i] == store || (overlaps[i] && fits (self, split, stores[i]));
  }
  while (changed) {
    changed = FALSE;
    for (guint i = 0; i < n; i++)
      for (guint j = 0; j < n; j++) {
        if (!joins[i] || !overlaps[j] || joins[j] || !is_tied (self, stores[i], stores[j]))
          continue;
        if (stores[i] == store)
          return FALSE;
        joins[i] = FALSE;
        changed = TRUE;
      }
  }
  return TRUE;
}

/* ---- the new stores ---- */
static TinyNode *
in_copy (Words *self, const Split *split, TinyNode *node, guint copy)
{
  return tiny_codegen_replace (self->graph, node, split->order.loops, split->at[copy],
                               split->n_loops);
}

static TinyNode *
both (Words *self, TinyNode *a, TinyNode *b)
{
  return a == NULL ? b : b == NULL ? a : tiny_fold_binary (self->graph, TINY_OP_AND, a, b);
}

static void
add_store (Words *self,
           GPtrArray *out,
           TinyNode *buffer,
           TinyNode *index,
           TinyNode *value,
           TinyNode *gate)
{
  TinyNode *sources[] = { buffer, index, value, gate };
  g_ptr_array_add (out, tiny_node_new (self->graph, TINY_OP_STORE, TINY_DTYPE_VOID, 1,
                                       gate != NULL ? 4 : 3, sources, 0, NULL, NULL));
}

static void
copy_store (Words *self, const Split *split, TinyNode *store, GPtrArray *out)
{
  for (guint copy = 0; copy < split->n_inside; copy++) {
    TinyNode *s[4];
    for (guint i = 0; i < store->n_sources; i++)
      s[i] = in_copy (self, split, store->sources[i], copy);
    add_store (self, out, s[0], s[1], s[2],
               both (self, split->gates[copy], store->n_sources > 3 ? s[3] : NULL));
  }
}

/* What a store changes: where (@condition, @value, what was there); without one, all. */
typedef struct {
  TinyNode *condition, *value;
} Change;

static gboolean
is_there (const TinyNode *store, const TinyNode *value)
{
  return value->op == TINY_OP_LOAD && value->n_sources == 2
         && value->sources[0] == store->sources[0] && value->sources[1] == store->sources[1];
}

static Change
find_change (Words *self, TinyNode *store)
{
  TinyNode *value = store->sources[2];
  if (store->n_sources > 3)
    return (Change){ store->sources[3], value };
  if (value->op == TINY_OP_WHERE && is_there (store, value->sources[2]))
    return (Change){ value->sources[0], value->sources[1] };
  if (value->op == TINY_OP_WHERE && is_there (store, value->sources[1]))
    return (Change){ tiny_node_binary (self->graph, TINY_OP_CMPNE, value->sources[0],
                                       tiny_node_const_int (self->graph, TINY_DTYPE_BOOL, 1)),
                     value->sources[2] };
  return (Change){ NULL, value };
}

/* @word with the bits of one element, @n_bits at place @place, alone. */
static TinyNode *
only_element (Words *self, TinyNode *word, guint place, guint n_bits)
{
  guint64 mask = ((G_GUINT64_CONSTANT (1) << n_bits) - 1) << (place * n_bits);
  return tiny_node_binary (self->graph, TINY_OP_AND, word,
                           tiny_node_const_int (self->graph, TINY_DTYPE_U32, (gint64) mask));
}

static TinyNode *
at_place (Words *self, TinyNode *value, guint place, guint n_bits)
{
  TinyNode *bits = tiny_words_from_value (self->graph, value);
  if (place == 0)
    return bits;
  return tiny_node_binary (
      self->graph, TINY_OP_SHL, bits,
      tiny_node_const_int (self->graph, TINY_DTYPE_U32, (gint64) place * n_bits));
}

/* Takes those out of the @n conditions that all have in common, and returns these joined; NULL:
 * there are none. What is left of a condition is NULL when it is always true then. */
static TinyNode *
take_common (Words *self, TinyNode **conditions, guint n)
{
  TinyNode *first[TINY_MAX_CLAUSES], *clauses[TINY_MAX_CLAUSES], *common = NULL;
  guint n_first = tiny_gate_get_clauses (conditions[0], first), n_common = 0;
  for (guint i = 0; i < n_first; i++) {
    gboolean everywhere = TRUE;
    for (guint c = 1; c < n && everywhere; c++) {
      guint n_clauses = tiny_gate_get_clauses (conditions[c], clauses);
      everywhere = FALSE;
      for (guint j = 0; j < n_clauses; j++)
        everywhere = everywhere || clauses[j] == first[i];
    }
    if (everywhere)
      first[n_common++] = first[i];
  }
  for (guint i = 0; i < n_common; i++)
    common = both (self, common, first[i]);
  for (guint c = 0; c < n && n_common > 0; c++) {
    guint n_clauses = tiny_gate_get_clauses (conditions[c], clauses);
    TinyNode *rest = NULL;
    for (guint j = 0; j < n_clauses; j++) {
      gboolean is_common = FALSE;
      for (guint i = 0; i < n_common; i++)
        is_common = is_common || clauses[j] == first[i];
      if (!is_common)
        rest = both (self, rest, clauses[j]);
    }
    conditions[c] = rest;
  }
  return common;
}

/* The word of copies @first to @first + @n - 1, @old being what is there. */
static TinyNode *
make_word (
    Words *self, const Split *split, TinyNode *store, guint first, guint n, TinyNode *old)
{
  TinyGraph *graph = self->graph;
  guint n_bits = 8 * (guint) tiny_dtype_get_n_bytes (store->sources[0]->dtype);
  Change change = find_change (self, store);
  TinyNode *conditions[MAX_COPIES] = { NULL }, *word = NULL, *any = NULL, *common = NULL;
  gboolean always = FALSE;
  for (guint i = 0; i < n && change.condition != NULL; i++)
    conditions[i] = in_copy (self, split, change.condition, first + i);
  if (change.condition != NULL)
    common = take_common (self, conditions, n);
  for (guint i = 0; i < n; i++) {
    TinyNode *part = at_place (self, in_copy (self, split, change.value, first + i), i, n_bits);
    TinyNode *condition = change.condition != NULL ? conditions[i] : NULL;
    if (condition != NULL)
      part = tiny_node_where (graph, condition, part, only_element (self, old, i, n_bits));
    always = always || condition == NULL;
    any = any == NULL || condition == NULL
              ? condition
              : tiny_fold_binary (graph, TINY_OP_OR, any, condition);
    word = word == NULL ? part : tiny_node_binary (graph, TINY_OP_OR, word, part);
  }
  TinyNode *changes = both (self, common, always ? NULL : any);
  return changes != NULL ? tiny_node_where (graph, changes, word, old) : word;
}

static void
pack_store (Words *self, const Split *split, TinyNode *store, GPtrArray *out)
{
  TinyGraph *graph = self->graph;
  TinyNode *buffer = tiny_words_buffer (graph, store->sources[0]);
  gint64 per_word = tiny_words_count (store->sources[0]->dtype);
  Order order;
  gboolean found = find_order (self, store, &order);
  g_assert (found);
  TinyNode *rest = number (self, 0);
  for (guint i = split->n_loops; i < order.n; i++)
    rest = tiny_fold_binary (graph, TINY_OP_ADD, rest,
                             tiny_fold_binary (graph, TINY_OP_MUL, order.loops[i],
                                               number (self, order.strides[i] / per_word)));
  if (split->round != NULL)
    rest = tiny_fold_binary (graph, TINY_OP_ADD, rest,
                             tiny_fold_binary (graph, TINY_OP_MUL, split->round,
                                               number (self, split->n_copies / per_word)));
  if (store->n_sources > 3) /* what stays as it is has to be read now */
    ((TinyParam *) self->cg->program->linear.params)[buffer->arg].flags |= TINY_PARAM_READ;
  for (guint first = 0; first < split->n_inside; first += per_word) {
    TinyNode *index
        = tiny_fold_binary (graph, TINY_OP_ADD, rest, number (self, first / per_word));
    TinyNode *place[] = { buffer, index, split->gates[first],
                          tiny_node_const_int (graph, TINY_DTYPE_U32, 0) };
    TinyNode *old = tiny_node_new (graph, TINY_OP_LOAD, TINY_DTYPE_U32, 1,
                                   split->gates[first] != NULL ? 4 : 2, place, 0, NULL, NULL);
    guint n = MIN ((guint) per_word, split->n_inside - first);
    add_store (self, out, buffer, index, make_word (self, split, store, first, n, old),
               split->gates[first]);
  }
}

static gboolean
rewrite_store (Words *self, TinyNode *store, GError **error)
{
  Split split = { .n = 1 };
  g_autofree gboolean *joins = g_new0 (gboolean, self->stores->len);
  gboolean good = find_order (self, store, &split.order);
  if (good) {
    take_loops (&split, tiny_words_count (store->sources[0]->dtype));
    good = choose_stores (self, &split, store, joins);
  }
  if (!good) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED,
                 "the target %s has no store of %s, and the loops of this kernel make up no "
                 "whole words of 32 bits",
                 self->cg->target->arch, tiny_dtype_to_string (store->sources[0]->dtype));
    return FALSE;
  }
  make_loop (self, &split);
  g_autoptr (GPtrArray) before = g_steal_pointer (&self->stores);
  self->stores = g_ptr_array_new ();
  for (guint i = 0; i < before->len; i++) {
    TinyNode *other = before->pdata[i];
    if (!joins[i])
      g_ptr_array_add (self->stores, other);
    else if (is_packed (self, other))
      pack_store (self, &split, other, self->stores);
    else
      copy_store (self, &split, other, self->stores);
  }
  return TRUE;
}

/* The one with the smallest elements left, so that others' words are filled along. */
static TinyNode *
find_packed (Words *self)
{
  TinyNode *best = NULL;
  for (guint i = 0; i < self->stores->len; i++) {
    TinyNode *store = self->stores->pdata[i];
    if (is_packed (self, store)
        && (best == NULL
            || tiny_words_count (store->sources[0]->dtype)
                   > tiny_words_count (best->sources[0]->dtype)))
      best = store;
  }
  return best;
}

TinyNode *
tiny_words_rewrite_stores (TinyCodegen *cg, GError **error)
{
  Words self
      = { cg, cg->graph, g_ptr_array_new (), tiny_codegen_count_ranges (cg->graph, cg->root) };
  TinyNode *store, *made = NULL;
  for (guint i = 0; i < cg->root->n_sources; i++)
    g_ptr_array_add (self.stores, cg->root->sources[i]);
  gboolean good = TRUE;
  while (good && (store = find_packed (&self)) != NULL)
    good = rewrite_store (&self, store, error);
  if (good)
    made = tiny_node_sink (cg->graph, self.stores->len, (TinyNode *const *) self.stores->pdata,
                           cg->root->text);
  g_ptr_array_unref (self.stores);
  return made;
}
