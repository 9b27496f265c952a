/* SPDX-License-Identifier: MIT
 *
 * tiny-shape.h: shapes of tensor-stage nodes. */
#pragma once

#include "ir/tiny-node.h"

G_BEGIN_DECLS

/* Called by tiny_node_new(): the shape that the op gives over its sources' shapes, or NULL when
 * the node belongs to no tensor graph. */
const TinyInts *tiny_shape_of_node (TinyGraph *graph, const TinyNode *node);

gint64 tiny_shape_get_n_elements (const TinyInts *shape);
gboolean tiny_shape_equal (const TinyInts *a, const TinyInts *b);
/* "(3, 4)", free with g_free(). */
char *tiny_shape_to_string (const TinyInts *shape);

/* Movement shorthands. They return @x itself when nothing moves and merge with a movement of the
 * same op below. The caller has checked the arguments. */
TinyNode *tiny_node_reshape (TinyGraph *graph, TinyNode *x, const gint64 *dims, guint n);
TinyNode *tiny_node_expand (TinyGraph *graph, TinyNode *x, const gint64 *dims, guint n);
TinyNode *tiny_node_permute (TinyGraph *graph, TinyNode *x, const gint64 *axes, guint n);
TinyNode *tiny_node_pad (TinyGraph *graph, TinyNode *x, const gint64 *pairs, guint n);
TinyNode *tiny_node_shrink (TinyGraph *graph, TinyNode *x, const gint64 *pairs, guint n);
TinyNode *tiny_node_flip (TinyGraph *graph, TinyNode *x, const gint64 *axes, guint n);
/* See SHEAR in ops.def: mul, step, offset, divisor and the new size of axis @p. */
TinyNode *tiny_node_shear (TinyGraph *graph,
                           TinyNode *x,
                           guint p,
                           guint k,
                           gint64 mul,
                           gint64 step,
                           gint64 offset,
                           gint64 divisor,
                           gint64 size);
/* Movement @op of @x with its numbers as they are in a node's ints. */
TinyNode *
tiny_node_move (TinyGraph *graph, TinyOp op, TinyNode *x, const gint64 *ints, guint n);
/* @positions has the shape of @x but along @axis. */
TinyNode *tiny_node_gather (TinyGraph *graph, TinyNode *x, guint axis, TinyNode *positions);
TinyNode *
tiny_node_reduce_axes (TinyGraph *graph, TinyNode *x, TinyOp op, const gint64 *axes, guint n);
/* @x of a broadcastable shape, seen as @dims. */
TinyNode *tiny_node_broadcast (TinyGraph *graph, TinyNode *x, const gint64 *dims, guint n);

G_END_DECLS
