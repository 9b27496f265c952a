/* SPDX-License-Identifier: MIT
 *
 * batch-rules.h: from an op to the rule that applies it to a whole batch.
 *
 * A batched value has one more axis than the value it stands for, the outermost. */
#pragma once

#include "ir/tiny-node.h"

G_BEGIN_DECLS

/* @node for all of a batch of @size; x[i] is source i batched, or NULL where it is the same for
 * all (of one at least it is not). NULL with @error set where that cannot be. */
typedef TinyNode *(*TinyBatchRule) (
    TinyGraph *graph, TinyNode *node, TinyNode *const *x, gint64 size, GError **error);

/* Every op of a tensor graph that has sources has one. */
TinyBatchRule tiny_batch_rule (TinyOp op);

/* Each of @nodes where each from[i] is batched as to[i]; NULL where it is the same for all. */
gboolean tiny_batch_nodes (TinyGraph *graph,
                           gint64 size,
                           guint n,
                           TinyNode *const *nodes,
                           guint n_from,
                           TinyNode *const *from,
                           TinyNode *const *to,
                           TinyNode **out,
                           GError **error);

/* @x repeated along a new outermost axis. */
TinyNode *tiny_batch_repeat (TinyGraph *graph, TinyNode *x, gint64 size);
/* @x with axis @from as axis @to. */
TinyNode *tiny_batch_move_axis (TinyGraph *graph, TinyNode *x, guint from, guint to);

G_END_DECLS
