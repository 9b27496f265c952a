/* SPDX-License-Identifier: MIT
 *
 * custom-rules.h: the rules of GRADIENT nodes: gradients that are not those of what was computed.
 *
 * GRADIENT has outputs and inputs as sources, and is one of the outputs. The GRADIENTs of one call
 * have the same rule and sources; the rule is asked once for all of them, with all their gradients. */
#pragma once

#include "autograd/tiny-custom.h"
#include "ir/tiny-node.h"
#include "tensor/tiny-build.h"
#include "tensor/tiny-factor.h"
#include "tensor/tiny-positions.h"

G_BEGIN_DECLS

/* Rules of our own; larger numbers are functions of the program. */
enum {
  CUSTOM_CHECKPOINT, /* that of the outputs, which are computed again from the first inputs */
  CUSTOM_CONTIGUOUS = TINY_RULE_STORED, /* that of the output, stored */
  CUSTOM_SCATTER = TINY_RULE_SCATTER,   /* and up: those at the positions, see there */
  CUSTOM_FACTOR = TINY_RULE_FACTOR,     /* and up: those of factors of matrices */
  CUSTOM_N_RULES = TINY_RULE_FACTOR_END
};

/* True of a rule that holds of its inputs alone; the others hold of how the outputs were computed. */
static inline gboolean
custom_is_factor (const TinyNode *node)
{
  return node->arg >= CUSTOM_FACTOR && node->arg < CUSTOM_N_RULES;
}
static inline guint
custom_count_outputs (const TinyNode *node)
{
  return (guint) node->ints->v[1];
}
static inline guint
custom_count_inputs (const TinyNode *node)
{
  return node->n_sources - (guint) node->ints->v[1];
}
static inline TinyNode *const *
custom_get_inputs (const TinyNode *node)
{
  return node->sources + node->ints->v[1];
}
/* The output that it is. */
static inline TinyNode *
custom_get_value (const TinyNode *node)
{
  return node->sources[node->ints->v[0]];
}
/* Whether two GRADIENTs are of one call. */
gboolean custom_is_same_call (const TinyNode *a, const TinyNode *b);

/* The number of a rule that calls @function; under the lock. */
gint64 custom_attach (TinyBackwardFunction function, gpointer data, GDestroyNotify destroy);
/* The GRADIENT that is output @i of a call. */
TinyNode *custom_make_node (TinyGraph *graph,
                            gint64 rule,
                            guint i,
                            guint n_outputs,
                            guint n_remade,
                            TinyNode *const *sources,
                            guint n_sources);

/* out[k]: the gradient of input k, or NULL, given those of the outputs. */
gboolean custom_find_gradients (TinyGraph *graph,
                                TinyNode *node,
                                TinyNode *const *gradients,
                                TinyNode **out,
                                GError **error);
/* What is said where a KERNEL would need a derivative. */
void custom_refuse_kernel (GError **error);
/* The tangent of @node in *@out, or NULL where it is 0, given those of its sources. */
gboolean custom_find_tangent (TinyGraph *graph,
                              TinyNode *node,
                              TinyNode *const *tangents,
                              TinyNode **out,
                              GError **error);
/* @node over sources of which x[i] is batched, or NULL when it is the same for all. */
TinyNode *
custom_make_batched (TinyGraph *graph, TinyNode *node, TinyNode *const *x, gint64 size);

G_END_DECLS
