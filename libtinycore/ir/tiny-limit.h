/* SPDX-License-Identifier: MIT
 *
 * tiny-limit.h: sizes that are known when a program is launched.
 *
 * A tensor whose size along an axis is an expression of variables has the shape of its largest size, and memory for
 * that; LIMIT says how much of the axis is meant. What that makes of each node follows from its sources, as its
 * shape does: node->limits. So scheduling and code generation know shapes of numbers only, and every operation is
 * right for such axes that is made of nodes whose limits follow: elementwise ones, movement that leaves the axis
 * whole. An operation that combines along the axis has to mask first what is of no account (tiny_build_reduce());
 * one that does not, or that looks at its largest size, leaves a node whose limits are a refusal, which no tensor
 * may have. The other way, sizes in shapes that are expressions, would reach every place that counts elements; what
 * it would save is memory, and masks that simplification and tiny_pass_bound() take out of the loops again.
 *
 * limits is NULL where all sizes are those of the shape; else a SINK of one source for each axis, the size or -1
 * for that of the shape; or a SINK with a text: why there is no such value. */
#pragma once

#include "ir/tiny-node.h"

G_BEGIN_DECLS

enum { TINY_LIMIT_MAX_RANK = 32 };

TinyNode *tiny_limits_of_node (TinyGraph *graph, const TinyNode *node);
/* For the next. */
TinyNode *tiny_limits_find (const TinyNode *limits, guint axis);
/* The size of @node along @axis, of variables; NULL: that of its shape. */
static inline TinyNode *
tiny_limit_get (const TinyNode *node, guint axis)
{
  return node->limits != NULL ? tiny_limits_find (node->limits, axis) : NULL;
}
/* Why @node is no value that a tensor may have, or NULL. */
static inline const char *
tiny_limit_get_refusal (const TinyNode *node)
{
  return node->limits != NULL ? node->limits->text : NULL;
}
/* LIMIT; NULL as @size: from here on all of the axis is meant. */
TinyNode *tiny_node_limit (TinyGraph *graph, TinyNode *x, guint axis, TinyNode *size);
/* @x with the limits of @like, a node of the same shape, along all axes but those of @except. */
TinyNode *
tiny_node_limit_like (TinyGraph *graph, TinyNode *x, const TinyNode *like, guint32 except);
/* What @size, a constant or calculated from VARIABLEs whose arg is their value, is. */
gint64 tiny_limit_evaluate (const TinyNode *size);

G_END_DECLS
