/* SPDX-License-Identifier: MIT
 *
 * gradient-parts.h: the sum of what comes for one node. */
#pragma once

#include "ir/tiny-node.h"

G_BEGIN_DECLS

/* The sum of @parts, at least one, of the same shape. */
TinyNode *gradient_parts_sum (TinyGraph *graph, TinyNode *const *parts, guint n);

G_END_DECLS
