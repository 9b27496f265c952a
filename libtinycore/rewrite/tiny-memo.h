/* SPDX-License-Identifier: MIT
 *
 * tiny-memo.h: a map from nodes to nodes whose cost is that of what is in it, however large the
 * graph is; private to the room. */
#pragma once

#include "ir/tiny-node.h"

G_BEGIN_DECLS

typedef struct {
  TinyNode **slots; /* key, value, key, value … */
  guint n_bits;     /* of the number of slot pairs */
  guint n;
} TinyMemo;

static inline void
tiny_memo_clear (TinyMemo *self)
{
  g_clear_pointer (&self->slots, g_free);
}

static inline guint
tiny_memo_find (const TinyMemo *self, const TinyNode *key)
{
  /* Eight neighbours by id, which often belong to one expression, are neighbours here too. */
  guint mask = (1u << self->n_bits) - 1;
  guint i = ((key->id >> 3) * 2654435769u) >> (35 - self->n_bits) << 3 | (key->id & 7);
  while (self->slots[2 * i] != NULL && self->slots[2 * i] != key)
    i = (i + 1) & mask;
  return i;
}

static inline TinyNode *
tiny_memo_get (const TinyMemo *self, const TinyNode *key)
{
  return self->slots == NULL ? NULL : self->slots[2 * tiny_memo_find (self, key) + 1];
}

void tiny_memo_set (TinyMemo *self, TinyNode *key, TinyNode *value);

/* Like tiny_graph_substitute(), at the cost of what is under @node only. */
TinyNode *tiny_substitute (
    TinyGraph *graph, TinyNode *node, TinyNode *const *from, TinyNode *const *to, guint n);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (TinyMemo, tiny_memo_clear)

G_END_DECLS
