/* SPDX-License-Identifier: MIT
 *
 * remake.h: a finished kernel over other loops and other buffers. */
#pragma once

#include "schedule/plan.h"

G_BEGIN_DECLS

typedef struct {
  AffinePool *pool;
  TinyNodeMap loops;  /* of a RANGE: the Affine that takes its place; filled by the caller */
  TinyNodeMap nodes;  /* of a node: what became of it; PARAMs are put in by the caller */
  TinyNodeMap stores; /* of a PARAM as it was: the STORE of the new kernel whose value a LOAD
                         from it takes */
  gboolean clashes;   /* a LOAD is of another element than such a STORE */
} Remake;

void remake_init (Remake *self, Plan *plan);
void remake_clear (Remake *self);
/* Finds what each of @order becomes, the nodes of a kernel with sources before users, or up to a clash. */
void remake_nodes (Remake *self, const GPtrArray *order);
/* What @root becomes. */
TinyNode *remake_node (Remake *self, TinyNode *root);

/* alike.c: @kernel with equal reductions as the same node. */
TinyNode *schedule_name_alike (Plan *plan, TinyNode *kernel);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Remake, remake_clear)

G_END_DECLS
