/* SPDX-License-Identifier: MIT
 *
 * tangent-rules.c: derivatives forward, along with the values.
 *
 * Most rules are those of the gradient, read the other way. An elementwise op multiplies by the same
 * factor in both directions, so its gradient rule, given a source's tangent in place of the result's
 * gradient, gives that source's part. What is linear in its first source is applied to the tangent. A
 * reduction that is not linear sums what the gradient rule says each element counts. */
#include "autograd/tangent-rules.h"

#include "autograd/custom-rules.h"
#include "autograd/gradient-rules.h"
#include "ir/tiny-shape.h"
#include "tensor/tiny-layout.h"

enum { MOST_SOURCES = 4 }; /* of what has a rule */

#define RULE(name) static TinyNode *name (TinyGraph *graph, TinyNode *node, TinyNode *const *t)

static TinyNode *
fit (TinyGraph *graph, TinyNode *x, const TinyNode *like)
{
  if (x == NULL || tiny_shape_equal (x->shape, like->shape))
    return x;
  return tiny_node_broadcast (graph, x, like->shape->v, like->shape->n);
}

RULE (rule_elementwise)
{
  TinyGradientRule rule = tiny_gradient_rule ((TinyOp) node->op);
  TinyNode *sum = NULL;
  for (guint i = 0; i < node->n_sources; i++) {
    TinyNode *parts[MOST_SOURCES] = { NULL };
    if (t[i] == NULL)
      continue;
    rule (graph, node, fit (graph, t[i], node), parts);
    if (parts[i] != NULL)
      sum = sum == NULL ? parts[i] : tiny_layout_binary (graph, TINY_OP_ADD, sum, parts[i]);
  }
  return sum;
}

RULE (rule_cast)
{
  return t[0] == NULL ? NULL : tiny_layout_cast (graph, t[0], (TinyDType) node->dtype);
}

RULE (rule_where)
{
  if (t[1] == NULL && t[2] == NULL)
    return NULL;
  TinyNode *zero = tiny_node_const_float (graph, (TinyDType) node->dtype, 0);
  return tiny_layout_where (graph, node->sources[0], t[1] != NULL ? t[1] : zero,
                            t[2] != NULL ? t[2] : zero);
}

RULE (rule_linear)
{
  TinyNode *sources[MOST_SOURCES];
  if (t[0] == NULL)
    return NULL;
  for (guint i = 0; i < node->n_sources; i++)
    sources[i] = i == 0 ? t[0] : node->sources[i];
  return tiny_node_with_sources (graph, node, sources);
}

/* What counts nothing gives an exact 0: multiplying would make NaN of an infinity. */
RULE (rule_reduce)
{
  if (node->arg == TINY_OP_ADD || t[0] == NULL)
    return rule_linear (graph, node, t);
  TinyDType dtype = (TinyDType) node->dtype;
  TinyNode *one = tiny_node_const_float (graph, dtype, 1), *counts[MOST_SOURCES] = { NULL };
  tiny_gradient_rule (TINY_OP_REDUCE) (graph, node, fit (graph, one, node), counts);
  TinyNode *zero = tiny_node_const_float (graph, dtype, 0);
  TinyNode *nothing = tiny_layout_binary (graph, TINY_OP_CMPEQ, counts[0], zero);
  TinyNode *part = tiny_layout_binary (graph, TINY_OP_MUL, counts[0], t[0]);
  return tiny_layout_reduce (graph, tiny_layout_where (graph, nothing, zero, part), TINY_OP_ADD,
                             node->ints->v, node->ints->n);
}

/* What has no tangent has 0. */
RULE (rule_unshard)
{
  g_autofree TinyNode **pieces = g_new (TinyNode *, node->n_sources);
  for (guint i = 0; i < node->n_sources; i++) {
    TinyNode *zero = tiny_node_const_float (graph, (TinyDType) node->dtype, 0);
    pieces[i] = fit (graph, t[i] != NULL ? t[i] : zero, node->sources[i]);
  }
  return tiny_node_with_sources (graph, node, pieces);
}

RULE (rule_assign) { return t[1]; }

RULE (rule_pass) { return t[0]; }

/* Comparisons, bits, integer arithmetic, TRUNC and DETACH have no rule: nothing flows. What a GRADIENT
 * does is in custom-rules.c. */
static const TinyTangentRule rules[TINY_N_OPS] = {
  [TINY_OP_CAST] = rule_cast,          [TINY_OP_NEG] = rule_elementwise,
  [TINY_OP_RECIP] = rule_elementwise,  [TINY_OP_SQRT] = rule_elementwise,
  [TINY_OP_EXP2] = rule_elementwise,   [TINY_OP_LOG2] = rule_elementwise,
  [TINY_OP_SIN] = rule_elementwise,    [TINY_OP_ADD] = rule_elementwise,
  [TINY_OP_SUB] = rule_elementwise,    [TINY_OP_MUL] = rule_elementwise,
  [TINY_OP_FDIV] = rule_elementwise,   [TINY_OP_MAX] = rule_elementwise,
  [TINY_OP_MULACC] = rule_elementwise, [TINY_OP_SLOPED] = rule_elementwise,
  [TINY_OP_WHERE] = rule_where,        [TINY_OP_REDUCE] = rule_reduce,
  [TINY_OP_CONTIGUOUS] = rule_linear,  [TINY_OP_ASSIGN] = rule_assign,
  [TINY_OP_COPY] = rule_linear,        [TINY_OP_RESHAPE] = rule_linear,
  [TINY_OP_EXPAND] = rule_linear,      [TINY_OP_PERMUTE] = rule_linear,
  [TINY_OP_PAD] = rule_linear,         [TINY_OP_SHRINK] = rule_linear,
  [TINY_OP_FLIP] = rule_linear,        [TINY_OP_SHEAR] = rule_linear,
  [TINY_OP_GATHER] = rule_linear,      [TINY_OP_AFTER] = rule_pass,
  [TINY_OP_UNSHARD] = rule_unshard,
};

TinyTangentRule
tiny_tangent_rule (TinyOp op)
{
  return rules[op];
}

/* ---- the walk ---- */
static gboolean
find_tangent (TinyGraph *graph,
              TinyNode *node,
              const TinyNodeMap *tangents,
              TinyNode **out,
              GError **error)
{
  g_autofree TinyNode **many
      = node->n_sources > MOST_SOURCES ? g_new0 (TinyNode *, node->n_sources) : NULL;
  TinyNode *few[MOST_SOURCES] = { NULL }, **t = many != NULL ? many : few;
  TinyTangentRule rule = tiny_tangent_rule ((TinyOp) node->op);
  gboolean is_custom = node->op == TINY_OP_GRADIENT, flows = FALSE;
  gboolean is_kernel = node->op == TINY_OP_KERNEL;
  *out = NULL;
  if ((rule == NULL && !is_custom && !is_kernel) || !tiny_dtype_is_float (node->dtype))
    return TRUE;
  for (guint i = 0; i < node->n_sources; i++) {
    t[i] = tiny_node_map_get (tangents, node->sources[i]);
    flows = flows || t[i] != NULL;
  }
  if (!flows)
    return TRUE;
  if (is_kernel) {
    custom_refuse_kernel (error);
    return FALSE;
  }
  if (!is_custom)
    *out = rule (graph, node, t);
  else if (!custom_find_tangent (graph, node, t, out, error))
    return FALSE;
  *out = fit (graph, *out, node);
  return TRUE;
}

/* By id: the nodes of @order whose tangents those of @nodes are made of. How a GRADIENT's outputs were computed is of
 * no account where its rule says more. */
static guint8 *
find_needed (TinyGraph *graph, const GPtrArray *order, guint n, TinyNode *const *nodes)
{
  guint8 *is_needed = g_new0 (guint8, tiny_graph_get_n_nodes (graph) + 1);
  for (guint i = 0; i < n; i++)
    is_needed[nodes[i]->id] = 1;
  for (guint i = order->len; i-- > 0;) {
    const TinyNode *node = order->pdata[i];
    gboolean is_rule = node->op == TINY_OP_GRADIENT && node->arg >= CUSTOM_FACTOR;
    for (guint s = is_rule ? custom_count_outputs (node) : 0; s < node->n_sources; s++)
      is_needed[node->sources[s]->id] |= is_needed[node->id];
  }
  return is_needed;
}

gboolean
tiny_tangents_of_nodes (TinyGraph *graph,
                        guint n,
                        TinyNode *const *nodes,
                        guint n_from,
                        TinyNode *const *from,
                        TinyNode *const *to,
                        TinyNode **out,
                        GError **error)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, nodes, n);
  g_auto (TinyNodeMap) tangents = { 0 };
  for (guint i = 0; i < n_from; i++)
    tiny_node_map_set (&tangents, from[i], to[i]);
  g_autofree guint8 *is_needed = find_needed (graph, order, n, nodes);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i], *tangent;
    if (!is_needed[node->id] || tiny_node_map_get (&tangents, node) != NULL)
      continue;
    if (!find_tangent (graph, node, &tangents, &tangent, error))
      return FALSE;
    tiny_node_map_set (&tangents, node, tangent);
  }
  for (guint i = 0; i < n; i++)
    out[i] = tiny_node_map_get (&tangents, nodes[i]);
  return TRUE;
}
