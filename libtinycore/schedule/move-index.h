/* SPDX-License-Identifier: MIT
 *
 * move-index.h: from an index of a moved value to one of what was moved; private to the room. */
#pragma once

#include "schedule/plan.h"

G_BEGIN_DECLS

typedef struct {
  TinyGraph *graph;
  AffinePool *pool;
  GPtrArray *used; /* Affine: every address and condition */
} Indexing;

/* The conjunction of conditions: NULL is true, a CONST false is false. */
TinyNode *index_both (TinyGraph *graph, TinyNode *x, TinyNode *y);
/* @x as a node that the kernel has. */
TinyNode *index_use (const Indexing *self, const Affine *x);
/* Fills @out with the index of @node's source where @index is that of @node; returns the condition that the movement
 * adds. */
TinyNode *index_move (const Indexing *self,
                      TinyNode *node,
                      const Affine *const *index,
                      const Affine **out);

G_END_DECLS
