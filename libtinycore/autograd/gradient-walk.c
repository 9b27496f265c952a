/* SPDX-License-Identifier: MIT
 *
 * gradient-walk.c: walks the graph under outputs from users to sources and adds up gradients.
 *
 * There is no tape: the graph that computes the outputs is all that is needed. Only nodes of float
 * dtype on a path from a wanted node to an output are visited. */
#include "autograd/gradient-walk.h"

#include "autograd/gradient-rules.h"
#include "ir/tiny-shape.h"
#include "tensor/tiny-layout.h"

/* Elementwise sources of shape () stand for one value everywhere: they get the sum. */
static TinyNode *
fit_to_source (TinyGraph *graph, TinyNode *gradient, const TinyNode *source)
{
  if (gradient->shape->n == source->shape->n || source->shape->n != 0)
    return gradient;
  gint64 axes[32];
  for (guint i = 0; i < gradient->shape->n; i++)
    axes[i] = i;
  gradient = tiny_layout_reduce (graph, gradient, TINY_OP_ADD, axes, gradient->shape->n);
  return tiny_node_reshape (graph, gradient, NULL, 0);
}

static TinyNode *
fit_to_node (TinyGraph *graph, TinyNode *gradient, const TinyNode *node)
{
  if (tiny_shape_equal (gradient->shape, node->shape))
    return gradient;
  return tiny_node_broadcast (graph, gradient, node->shape->v, node->shape->n);
}

TinyNode *
tiny_gradient_or_zeros (TinyGraph *graph, TinyNode *x, const TinyNode *like)
{
  if (x == NULL)
    x = tiny_node_const_float (graph, (TinyDType) like->dtype, 0);
  return fit_to_node (graph, x, like);
}

typedef struct {
  TinyGraph *graph;
  guint8 *wanted;        /* by node id: a target is below */
  TinyNodeMap gradients; /* what has come for a node so far */
} Walk;

static void
add_gradient (Walk *self, TinyNode *node, TinyNode *part)
{
  part = fit_to_source (self->graph, part, node);
  TinyNode *before = tiny_node_map_get (&self->gradients, node);
  if (before != NULL)
    part
        = tiny_layout_binary (self->graph, TINY_OP_ADD, fit_to_node (self->graph, before, node),
                              fit_to_node (self->graph, part, node));
  tiny_node_map_set (&self->gradients, node, part);
}

static void
pass_on (Walk *self, TinyNode *node)
{
  TinyGradientRule rule = tiny_gradient_rule ((TinyOp) node->op);
  TinyNode *out[4] = { NULL };
  TinyNode *gradient = tiny_node_map_get (&self->gradients, node);
  if (rule == NULL)
    return;
  rule (self->graph, node, fit_to_node (self->graph, gradient, node), out);
  for (guint i = 0; i < node->n_sources && i < G_N_ELEMENTS (out); i++)
    if (out[i] != NULL && self->wanted[node->sources[i]->id])
      add_gradient (self, node->sources[i], out[i]);
}

static void
find_wanted (Walk *self, GPtrArray *order, guint n, TinyNode *const *targets)
{
  for (guint i = 0; i < n; i++)
    self->wanted[targets[i]->id] = 1;
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (!tiny_dtype_is_float (node->dtype) || tiny_gradient_rule ((TinyOp) node->op) == NULL)
      continue;
    for (guint s = 0; s < node->n_sources && !self->wanted[node->id]; s++)
      self->wanted[node->id] = self->wanted[node->sources[s]->id];
  }
}

gboolean
tiny_gradients_of_nodes (TinyGraph *graph,
                         guint n_outputs,
                         TinyNode *const *outputs,
                         TinyNode *const *seeds,
                         guint n,
                         TinyNode *const *targets,
                         TinyNode **out,
                         GError **error)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, outputs, n_outputs);
  g_autofree guint8 *wanted = g_new0 (guint8, tiny_graph_get_n_nodes (graph));
  Walk self = { graph, wanted, { 0 } };
  find_wanted (&self, order, n, targets);
  for (guint i = 0; i < n_outputs; i++)
    if (wanted[outputs[i]->id])
      add_gradient (&self, outputs[i], seeds[i]);
  for (guint i = order->len; i-- > 0;)
    if (tiny_node_map_get (&self.gradients, order->pdata[i]) != NULL)
      pass_on (&self, order->pdata[i]);
  for (guint i = 0; i < n; i++) {
    out[i] = tiny_node_map_get (&self.gradients, targets[i]);
    if (out[i] != NULL)
      out[i] = fit_to_node (graph, out[i], targets[i]);
  }
  tiny_node_map_clear (&self.gradients);
  return TRUE;
}
