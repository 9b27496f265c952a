/* SPDX-License-Identifier: MIT
 *
 * tiny-custom.c: puts GRADIENTs on what a function gives. */
#include "autograd/tiny-custom.h"

#include "autograd/custom-rules.h"
#include "autograd/function-call.h"
#include "tensor/tiny-build.h"
#include "tensor/tiny-tensor-private.h"

static gboolean
begin (FunctionCall *self,
       const char *name,
       TinyFunction function,
       gpointer user_data,
       TinyTensor *const *inputs,
       guint n)
{
  if (!function_call_begin (self, name, function, inputs, n))
    return FALSE;
  for (guint i = 0; i < n; i++)
    function_call_pass_input (self);
  return function_call_run (self, function, user_data);
}

/* The results, those of @sources, with a GRADIENT where they have a gradient. */
static void
add_results (FunctionCall *self,
             GPtrArray *results,
             gint64 rule,
             guint n_remade,
             const GPtrArray *sources)
{
  TinyGraph *graph = tiny_runtime_get_graph ();
  guint n = self->outputs->len;
  for (guint i = 0; i < n; i++) {
    TinyNode *node = sources->pdata[i];
    if (tiny_dtype_is_float (node->dtype))
      node = custom_make_node (graph, rule, i, n, n_remade, (TinyNode *const *) sources->pdata,
                               sources->len);
    function_call_add_result (self, results, node, self->outputs->pdata[i]);
  }
}

static GPtrArray *
list_sources (FunctionCall *self)
{
  GPtrArray *sources = g_ptr_array_new ();
  for (guint i = 0; i < self->outputs->len; i++)
    g_ptr_array_add (sources, function_call_get_output (self, i));
  for (guint i = 0; i < self->inputs->len; i++)
    g_ptr_array_add (sources, function_call_get_input (self, i));
  return sources;
}

GPtrArray *
tiny_custom_gradient (TinyFunction function,
                      gpointer user_data,
                      TinyBackwardFunction backward,
                      gpointer backward_data,
                      GDestroyNotify backward_destroy,
                      TinyTensor *const *inputs,
                      guint n_inputs)
{
  FunctionCall call;
  GPtrArray *results = tensor_list_new ();
  gboolean good
      = begin (&call, "custom_gradient", function, user_data, inputs, n_inputs)
        && (backward != NULL || function_call_fail (&call, "there is no gradient function"));
  if (good) {
    g_autoptr (GPtrArray) sources = list_sources (&call);
    gint64 rule = custom_attach (backward, backward_data, backward_destroy);
    add_results (&call, results, rule, 0, sources);
  }
  results = function_call_end (&call, results);
  if (!good && backward_destroy != NULL)
    backward_destroy (backward_data);
  return results;
}

/* ---- checkpoints ---- */
static gboolean
is_constant (const TinyNode *node)
{
  while (tiny_op_is_movement ((TinyOp) node->op))
    node = node->sources[0];
  return node->op == TINY_OP_CONST || node->op == TINY_OP_IOTA;
}

/* Adds to @sources what the outputs are made of beside the inputs, as far as it does not depend on
 * these itself. Leaves no output that does not depend on an input. */
static void
add_captured (FunctionCall *self, GPtrArray *sources)
{
  enum { NEITHER, DEPENDS, CAPTURED };
  TinyGraph *graph = tiny_runtime_get_graph ();
  g_auto (TinyNodeMap) kind = { 0 };
  g_autoptr (GPtrArray) order
      = tiny_graph_toposort (graph, (TinyNode *const *) sources->pdata, self->outputs->len);
  for (guint i = 0; i < self->inputs->len; i++)
    tiny_node_map_set (&kind, function_call_get_input (self, i), GINT_TO_POINTER (DEPENDS));
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    gboolean depends = FALSE;
    if (tiny_node_map_get (&kind, node) != NULL)
      continue;
    for (guint s = 0; s < node->n_sources; s++)
      depends
          = depends || tiny_node_map_get (&kind, node->sources[s]) == GINT_TO_POINTER (DEPENDS);
    if (!depends)
      continue;
    tiny_node_map_set (&kind, node, GINT_TO_POINTER (DEPENDS));
    for (guint s = 0; s < node->n_sources; s++) {
      TinyNode *source = node->sources[s];
      if (tiny_node_map_get (&kind, source) != NULL || !tiny_dtype_is_float (source->dtype)
          || is_constant (source))
        continue;
      tiny_node_map_set (&kind, source, GINT_TO_POINTER (CAPTURED));
      g_ptr_array_add (sources, source);
    }
  }
  /* An output that is no more than something from outside is among what gets a gradient. */
  for (guint i = 0; i < self->outputs->len; i++) {
    TinyNode *output = sources->pdata[i];
    if (tiny_node_map_get (&kind, output) == NULL && tiny_dtype_is_float (output->dtype)) {
      tiny_node_map_set (&kind, output, GINT_TO_POINTER (CAPTURED));
      g_ptr_array_add (sources, output);
    }
  }
}

GPtrArray *
tiny_checkpoint (TinyFunction function,
                 gpointer user_data,
                 TinyTensor *const *inputs,
                 guint n_inputs)
{
  FunctionCall call;
  GPtrArray *results = tensor_list_new ();
  if (begin (&call, "checkpoint", function, user_data, inputs, n_inputs)) {
    g_autoptr (GPtrArray) sources = list_sources (&call);
    add_captured (&call, sources);
    add_results (&call, results, CUSTOM_CHECKPOINT, n_inputs, sources);
  }
  return function_call_end (&call, results);
}

TinyTensor *
tiny_tensor_contiguous_backward (TinyTensor *self)
{
  TinyBuild b;
  TinyNode *node = NULL;
  if (tiny_build_begin (&b, "contiguous_backward", 1, &self)) {
    TinyNode *sources[] = { b.x[0], b.x[0] };
    node = b.x[0];
    if (tiny_dtype_is_float (node->dtype))
      node = custom_make_node (b.graph, CUSTOM_CONTIGUOUS, 0, 1, 0, sources, 2);
  }
  return tiny_build_end (&b, node);
}
