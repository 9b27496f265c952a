/* SPDX-License-Identifier: MIT
 *
 * views.h: movement nodes built in the order that reads best: EXPAND outermost, PAD innermost. */
#pragma once

#include "schedule/plan.h"

G_BEGIN_DECLS

/* The axis of @from that a RESHAPE to @to leaves alone as axis @axis of @to, or -1. */
int view_find_axis (const TinyInts *from, const TinyInts *to, guint axis);

/* Whether all elements of @x along @axis are the same, as far as movement shows. */
gboolean view_is_constant_along (const TinyNode *x, guint axis);

/* @x, constant along @axis, with that axis of @size. */
TinyNode *view_extend (TinyGraph *graph, TinyNode *x, guint axis, gint64 size);

/* The movement @op with @ints over @x. @users counts the users of each node: an elementwise node
 * with at most one is rebuilt over moved operands. Reads out of range become PADs. */
TinyNode *view_apply (TinyGraph *graph,
                      const TinyNodeNumbers *users,
                      TinyOp op,
                      const gint64 *ints,
                      guint n,
                      TinyNode *x);

/* The positions that a SHEAR reads, before division. */
void view_shear_bounds (const TinyNode *x, const gint64 *ints, gint64 *out_lo, gint64 *out_hi);

G_END_DECLS
