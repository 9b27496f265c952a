/* SPDX-License-Identifier: MIT
 *
 * rescale.h: sums of exponentials in parts, each beside its own maximum. */
#pragma once

#include "ir/tiny-node.h"

G_BEGIN_DECLS

/* 2^(k (x - maximum)), taken apart. */
typedef struct {
  TinyNode *x, *maximum; /* of equal shape */
  TinyNode *k;           /* a positive constant; NULL: 1 */
} Exponential;

/* FALSE: @node is none. */
gboolean schedule_take_exponential (TinyNode *node, Exponential *out);
/* 2^(k (x - y)) with the k of @e. */
TinyNode *
schedule_exponential (TinyGraph *graph, const Exponential *e, TinyNode *x, TinyNode *y);
/* @maximum, but no less than the least finite number. */
TinyNode *schedule_hold (TinyGraph *graph, TinyNode *maximum);

/* What is to be summed along @axis in place of summing @value along it, when that axis becomes the
 * axes @axis and @axis + 1 of @dims, of @rank; NULL: @value is no exponential of a difference to a
 * maximum that is made in the same parts. */
TinyNode *schedule_rescale_parts (
    TinyGraph *graph, TinyNode *value, const gint64 *dims, guint rank, guint axis);

G_END_DECLS
