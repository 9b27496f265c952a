/* SPDX-License-Identifier: MIT
 *
 * tiny-memo.c: a map from nodes to nodes: open addressing, linear probing, half full at most. */
#include "rewrite/tiny-memo.h"

void
tiny_memo_set (TinyMemo *self, TinyNode *key, TinyNode *value)
{
  if (self->slots == NULL || self->n >= 1u << (self->n_bits - 1)) {
    TinyMemo old = *self;
    self->n_bits = old.slots == NULL ? 6 : old.n_bits + 1;
    self->slots = g_new0 (TinyNode *, (gsize) 2 << self->n_bits);
    for (guint i = 0; old.slots != NULL && i < 1u << old.n_bits; i++)
      if (old.slots[2 * i] != NULL) {
        guint to = tiny_memo_find (self, old.slots[2 * i]);
        self->slots[2 * to] = old.slots[2 * i];
        self->slots[2 * to + 1] = old.slots[2 * i + 1];
      }
    g_free (old.slots);
  }
  guint i = tiny_memo_find (self, key);
  self->n += self->slots[2 * i] == NULL;
  self->slots[2 * i] = key;
  self->slots[2 * i + 1] = value;
}

TinyNode *
tiny_substitute (
    TinyGraph *graph, TinyNode *node, TinyNode *const *from, TinyNode *const *to, guint n)
{
  g_auto (TinyMemo) memo = { 0 };
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &node, 1);
  g_autoptr (GPtrArray) sources = g_ptr_array_new ();
  for (guint i = 0; i < n; i++)
    tiny_memo_set (&memo, from[i], to[i]);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *old = order->pdata[i], *new = old;
    if (tiny_memo_get (&memo, old) != NULL)
      continue;
    g_ptr_array_set_size (sources, (gint) old->n_sources);
    for (guint s = 0; s < old->n_sources; s++)
      sources->pdata[s] = tiny_memo_get (&memo, old->sources[s]);
    if (old->n_sources > 0)
      new = tiny_node_with_sources (graph, old, (TinyNode *const *) sources->pdata);
    tiny_memo_set (&memo, old, new);
  }
  return tiny_memo_get (&memo, node);
}
