/* SPDX-License-Identifier: MIT
 *
 * gradient-walk.h: gradients of nodes. */
#pragma once

#include "ir/tiny-node.h"

G_BEGIN_DECLS

/* For each of @targets the sum over the outputs of their gradients, of output i weighted with
 * seeds[i], which has its shape or is one value for all; NULL where no output depends on it. */
gboolean tiny_gradients_of_nodes (TinyGraph *graph,
                                  guint n_outputs,
                                  TinyNode *const *outputs,
                                  TinyNode *const *seeds,
                                  guint n,
                                  TinyNode *const *targets,
                                  TinyNode **out,
                                  GError **error);

/* The same of the last of @order, which tiny_history_toposort() made of it alone. */
gboolean tiny_gradients_of_order (TinyGraph *graph,
                                  GPtrArray *order,
                                  TinyNode *seed,
                                  guint n,
                                  TinyNode *const *targets,
                                  TinyNode **out,
                                  GError **error);

/* As the first, where no target is computed from another: what an output depends on through one of them
 * counts for that one only. */
gboolean tiny_partial_gradients_of_nodes (TinyGraph *graph,
                                          guint n_outputs,
                                          TinyNode *const *outputs,
                                          TinyNode *const *seeds,
                                          guint n,
                                          TinyNode *const *targets,
                                          TinyNode **out,
                                          GError **error);

/* @x, or zeros where it is NULL, in the shape of @like. */
TinyNode *tiny_gradient_or_zeros (TinyGraph *graph, TinyNode *x, const TinyNode *like);

/* What is said where gradients would flow to what is gone, see engine/tiny-history.h. */
void tiny_gradient_refuse_stale (GError **error);

G_END_DECLS
