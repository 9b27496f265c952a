/* SPDX-License-Identifier: MIT
 *
 * tiny-layout.h: tensor-stage nodes built so that views stay outermost.
 *
 * An operation on a permuted view becomes a permuted view of the operation: relu (PERMUTE (x)) is
 * made as PERMUTE (relu (x)). What is stored then keeps the order in memory of what it is made
 * from, so a network of channels-last convolutions stays channels-last by itself although its user
 * sees (N, C, H, W). Callers have checked shapes and dtypes. */
#pragma once

#include "ir/tiny-node.h"

G_BEGIN_DECLS

/* An elementwise @op over @sources of equal shapes or shape (). */
TinyNode *tiny_layout_elementwise (
    TinyGraph *graph, TinyOp op, TinyDType dtype, guint n, TinyNode *const *sources);

static inline TinyNode *
tiny_layout_unary (TinyGraph *graph, TinyOp op, TinyNode *x)
{
  return tiny_layout_elementwise (graph, op, (TinyDType) x->dtype, 1, &x);
}

static inline TinyNode *
tiny_layout_binary (TinyGraph *graph, TinyOp op, TinyNode *x, TinyNode *y)
{
  TinyNode *sources[] = { x, y };
  gboolean compares = tiny_op_infos[op].op_class == TINY_OP_CLASS_COMPARE;
  return tiny_layout_elementwise (graph, op, compares ? TINY_DTYPE_BOOL : (TinyDType) x->dtype,
                                  2, sources);
}

static inline TinyNode *
tiny_layout_where (TinyGraph *graph, TinyNode *gate, TinyNode *x, TinyNode *y)
{
  TinyNode *sources[] = { gate, x, y };
  return tiny_layout_elementwise (graph, TINY_OP_WHERE, (TinyDType) x->dtype, 3, sources);
}

static inline TinyNode *
tiny_layout_cast (TinyGraph *graph, TinyNode *x, TinyDType dtype)
{
  return x->dtype == dtype ? x : tiny_layout_elementwise (graph, TINY_OP_CAST, dtype, 1, &x);
}

/* @x combined by @op over @axes, which become 1; sums and products of small floats are
 * accumulated in f32 and given back in @x's dtype. */
TinyNode *
tiny_layout_reduce (TinyGraph *graph, TinyNode *x, TinyOp op, const gint64 *axes, guint n_axes);

/* The sum of @x over @axes where @x may be a sheared sum: both sums become one, so that the
 * sheared one (the windows of a convolution's gradient) is never stored. */
TinyNode *
tiny_layout_reduce_windows (TinyGraph *graph, TinyNode *x, const gint64 *axes, guint n_axes);

G_END_DECLS
