/* SPDX-License-Identifier: MIT
 *
 * tiny-gradient.c: walks the graph under a loss from users to sources and adds up gradients.
 *
 * There is no tape: the graph that computes the loss is all that is needed. Only nodes of float
 * dtype on a path from a wanted tensor to the loss are visited. */
#include "autograd/tiny-gradient.h"

#include "autograd/gradient-rules.h"
#include "ir/tiny-shape.h"
#include "tensor/tiny-layout.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

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

static void
pass_on (TinyGraph *graph, TinyNode *node, const guint8 *wanted, TinyNodeMap *gradients)
{
  TinyGradientRule rule = tiny_gradient_rule ((TinyOp) node->op);
  TinyNode *out[4] = { NULL };
  TinyNode *gradient = tiny_node_map_get (gradients, node);
  if (rule == NULL)
    return;
  rule (graph, node, fit_to_node (graph, gradient, node), out);
  for (guint i = 0; i < node->n_sources && i < G_N_ELEMENTS (out); i++) {
    TinyNode *source = node->sources[i];
    if (out[i] == NULL || !wanted[source->id])
      continue;
    TinyNode *part = fit_to_source (graph, out[i], source);
    TinyNode *before = tiny_node_map_get (gradients, source);
    if (before != NULL)
      part = tiny_layout_binary (graph, TINY_OP_ADD, fit_to_node (graph, before, source),
                                 fit_to_node (graph, part, source));
    tiny_node_map_set (gradients, source, part);
  }
}

/* The gradient of @loss for each of @targets; NULL where it does not depend on one. */
static void
compute_gradients (
    TinyGraph *graph, TinyNode *loss, guint n, TinyNode *const *targets, TinyNode **out)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &loss, 1);
  g_autofree guint8 *wanted = g_new0 (guint8, tiny_graph_get_n_nodes (graph));
  for (guint i = 0; i < n; i++)
    wanted[targets[i]->id] = 1;
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (!tiny_dtype_is_float (node->dtype) || tiny_gradient_rule ((TinyOp) node->op) == NULL)
      continue;
    for (guint s = 0; s < node->n_sources && !wanted[node->id]; s++)
      wanted[node->id] = wanted[node->sources[s]->id];
  }
  g_auto (TinyNodeMap) gradients = { 0 };
  if (wanted[loss->id])
    tiny_node_map_set (&gradients, loss,
                       tiny_node_const_float (graph, (TinyDType) loss->dtype, 1));
  for (guint i = order->len; i-- > 0;)
    if (tiny_node_map_get (&gradients, order->pdata[i]) != NULL)
      pass_on (graph, order->pdata[i], wanted, &gradients);
  for (guint i = 0; i < n; i++) {
    out[i] = tiny_node_map_get (&gradients, targets[i]);
    if (out[i] != NULL)
      out[i] = fit_to_node (graph, out[i], targets[i]);
  }
}

static gboolean
check_loss (TinyTensor *loss, GError **error)
{
  if (tiny_tensor_get_error (loss) != NULL) {
    g_propagate_error (error, g_error_copy (tiny_tensor_get_error (loss)));
    return FALSE;
  }
  if (!tiny_dtype_is_float (tiny_tensor_get_dtype (loss))
      || tiny_tensor_get_n_elements (loss) != 1) {
    g_autofree char *shape = tiny_shape_to_string (tiny_tensor_get_node (loss)->shape);
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "gradient: the loss is one float, not %s of %s", shape,
                 tiny_dtype_to_string (tiny_tensor_get_dtype (loss)));
    return FALSE;
  }
  return TRUE;
}

static gboolean
check_sizes (TinyGraph *graph, TinyNode *loss, GError **error)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &loss, 1);
  for (guint i = 0; i < order->len; i++)
    if (((TinyNode *) order->pdata[i])->op == TINY_OP_LIMIT) {
      g_set_error_literal (error, TINY_ERROR, TINY_ERROR_INVALID,
                           "gradient: the loss depends on an axis whose size is a variable, "
                           "through which there is none");
      return FALSE;
    }
  return TRUE;
}

static gboolean
gradient_locked (
    TinyTensor *loss, TinyTensor *const *xs, guint n, TinyTensor **out_grads, GError **error)
{
  if (!check_loss (loss, error))
    return FALSE;
  TinyGraph *graph = tiny_runtime_get_graph ();
  g_autofree TinyNode **targets = g_new0 (TinyNode *, n + 1);
  g_autofree TinyNode **found = g_new0 (TinyNode *, n + 1);
  for (guint i = 0; i < n; i++) {
    if (xs[i] == NULL || !TINY_IS_TENSOR (xs[i]) || tiny_tensor_get_error (xs[i]) != NULL) {
      if (xs[i] != NULL && TINY_IS_TENSOR (xs[i]))
        g_propagate_error (error, g_error_copy (tiny_tensor_get_error (xs[i])));
      else
        g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "gradient: x %u is no tensor", i);
      return FALSE;
    }
    targets[i] = tiny_tensor_get_node (xs[i]);
    if (!tiny_dtype_is_float (targets[i]->dtype)) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                   "gradient: x %u is of %s, which has no gradient", i,
                   tiny_dtype_to_string ((TinyDType) targets[i]->dtype));
      return FALSE;
    }
  }
  if (!check_sizes (graph, tiny_tensor_get_node (loss), error))
    return FALSE;
  compute_gradients (graph, tiny_tensor_get_node (loss), n, targets, found);
  for (guint i = 0; i < n; i++) {
    if (found[i] == NULL)
      found[i] = fit_to_node (
          graph, tiny_node_const_float (graph, (TinyDType) targets[i]->dtype, 0), targets[i]);
    out_grads[i] = g_object_ref_sink (
        tiny_tensor_new_for_node (found[i], tiny_tensor_get_device (xs[i])));
  }
  return TRUE;
}

gboolean
tiny_gradient (
    TinyTensor *loss, TinyTensor *const *xs, guint n, TinyTensor **out_grads, GError **error)
{
  g_return_val_if_fail (TINY_IS_TENSOR (loss), FALSE);
  tiny_runtime_lock ();
  gboolean good = gradient_locked (loss, xs, n, out_grads, error);
  tiny_runtime_unlock ();
  return good;
}

/* What was there plus what came. */
static void
accumulate (TinyTensor *variable, TinyTensor *gradient)
{
  TinyTensor *sum = gradient;
  if (variable->grad != NULL)
    sum = g_object_ref_sink (tiny_tensor_add (variable->grad, gradient));
  else
    g_object_ref (sum);
  g_set_object (&variable->grad, sum);
  g_object_unref (sum);
}

static gboolean
backward_locked (TinyTensor *loss, GError **error)
{
  if (!check_loss (loss, error))
    return FALSE;
  TinyGraph *graph = tiny_runtime_get_graph ();
  TinyNode *root = tiny_tensor_get_node (loss);
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &root, 1);
  guint32 seen = tiny_graph_begin_mark (graph);
  for (guint i = 0; i < order->len; i++)
    ((TinyNode *) order->pdata[i])->mark = seen;
  g_autoptr (GPtrArray) variables = g_ptr_array_new ();
  for (TinyTensor *t = tiny_tensor_get_first_variable (); t != NULL; t = t->next)
    if (tiny_dtype_is_float (t->dtype) && tiny_tensor_get_node (t)->mark == seen)
      g_ptr_array_add (variables, t);
  if (variables->len == 0) {
    g_set_error_literal (error, TINY_ERROR, TINY_ERROR_INVALID,
                         "gradient: the loss depends on no tensor that requires one; once "
                         "realised, a loss no longer knows what it was made of");
    return FALSE;
  }
  g_autofree TinyTensor **gradients = g_new0 (TinyTensor *, variables->len + 1);
  if (!gradient_locked (loss, (TinyTensor *const *) variables->pdata, variables->len, gradients,
                        error))
    return FALSE;
  for (guint i = 0; i < variables->len; i++) {
    accumulate (variables->pdata[i], gradients[i]);
    g_object_unref (gradients[i]);
  }
  return TRUE;
}

gboolean
tiny_tensor_backward (TinyTensor *loss, GError **error)
{
  g_return_val_if_fail (TINY_IS_TENSOR (loss), FALSE);
  tiny_runtime_lock ();
  gboolean good = backward_locked (loss, error);
  tiny_runtime_unlock ();
  return good;
}
