/* SPDX-License-Identifier: MIT
 *
 * tangent-rules.h: from an op to the rule of its tangent, for derivatives forward. */
#pragma once

#include "ir/tiny-node.h"

G_BEGIN_DECLS

/* The tangent of @node, given those of its sources in @tangents (NULL: 0), each of its source's
 * shape; NULL where it is 0. */
typedef TinyNode *(*TinyTangentRule) (TinyGraph *graph,
                                      TinyNode *node,
                                      TinyNode *const *tangents);

/* NULL: the tangent is 0, whatever those of the sources are. */
TinyTangentRule tiny_tangent_rule (TinyOp op);

/* For each of @nodes its tangent where each from[i] has the tangent to[i]; NULL where it is 0.
 * Returns FALSE where there is none to be had. */
gboolean tiny_tangents_of_nodes (TinyGraph *graph,
                                 guint n,
                                 TinyNode *const *nodes,
                                 guint n_from,
                                 TinyNode *const *from,
                                 TinyNode *const *to,
                                 TinyNode **out,
                                 GError **error);

G_END_DECLS
