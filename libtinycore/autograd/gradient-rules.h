/* SPDX-License-Identifier: MIT
 *
 * gradient-rules.h: from an op to the rule of its gradient. */
#pragma once

#include "ir/tiny-node.h"

G_BEGIN_DECLS

/* Writes to out[i] the gradient with respect to source i of @node, given that with respect to
 * @node, which has @node's shape; leaves NULL where there is none. */
typedef void (*TinyGradientRule) (TinyGraph *graph,
                                  TinyNode *node,
                                  TinyNode *gradient,
                                  TinyNode **out);

/* NULL: no gradient flows through the op. */
TinyGradientRule tiny_gradient_rule (TinyOp op);

/* Where the memory under @node is, or NULL when there is none. */
const char *tiny_gradient_find_device (TinyGraph *graph, TinyNode *node);

G_END_DECLS
