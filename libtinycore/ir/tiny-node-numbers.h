/* SPDX-License-Identifier: MIT
 *
 * tiny-node-numbers.h: a number for each of nearly all nodes of a graph, in a quarter of a map's memory. */
#pragma once

#include <string.h>

#include "ir/tiny-node.h"

G_BEGIN_DECLS

/* By id; beyond @size all are 0. */
typedef struct {
  guint32 *numbers;
  guint size;
} TinyNodeNumbers;

static inline void
tiny_node_numbers_clear (TinyNodeNumbers *self)
{
  g_clear_pointer (&self->numbers, g_free);
  self->size = 0;
}

static inline guint
tiny_node_numbers_get (const TinyNodeNumbers *self, const TinyNode *node)
{
  return node->id < self->size ? self->numbers[node->id] : 0;
}

static inline void
tiny_node_numbers_set (TinyNodeNumbers *self, const TinyNode *node, guint number)
{
  enum { LEAST = 64 };
  if (G_UNLIKELY (node->id >= self->size)) {
    const guint old = self->size;
    self->size = MAX (LEAST, MAX (2 * old, node->id + 1));
    self->numbers = g_renew (guint32, self->numbers, self->size);
    memset (self->numbers + old, 0, (self->size - old) * sizeof *self->numbers);
  }
  self->numbers[node->id] = number;
}

G_END_DECLS
