/* SPDX-License-Identifier: MIT
 *
 * function-call.c: placeholders, the call itself, and the checks of what comes back. */
#include "autograd/function-call.h"

#include "base/interrupt-check.h"
#include "ir/tiny-shape.h"
#include "tensor/tiny-build.h"
#include "tensor/tiny-tensor-private.h"

/* Slots of PARAMs that are no placeholders are small. */
#define FIRST_SLOT ((gint64) 1 << 32)

static gint64 next_slot = FIRST_SLOT;         /* under the runtime's lock */
static _Thread_local FunctionCall *innermost; /* of this thread's */

/* ---- lists of tensors ---- */
static void
unref_any (gpointer tensor)
{
  g_clear_object (&tensor);
}

GPtrArray *
tensor_list_new (void)
{
  return g_ptr_array_new_with_free_func (unref_any);
}

GPtrArray *
tensor_list_new_for_error (GError *error)
{
  GPtrArray *list = tensor_list_new ();
  g_ptr_array_add (list, g_object_ref_sink (tiny_tensor_new_for_error (error)));
  return list;
}

GPtrArray *
tiny_tensors (TinyTensor *first, ...)
{
  GPtrArray *list = tensor_list_new ();
  va_list args;
  va_start (args, first);
  for (TinyTensor *tensor = first; tensor != NULL; tensor = va_arg (args, TinyTensor *))
    g_ptr_array_add (list, g_object_ref_sink (tensor));
  va_end (args);
  return list;
}

/* Element @i of what a callback gave, which is ours; NULL with an error where it is no good one. */
static TinyTensor *
take_tensor (const char *name, gpointer given, gsize i, GError **error)
{
  if (given == NULL || !TINY_IS_TENSOR (given)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "%s: result %" G_GSIZE_FORMAT " of the function is no tensor", name, i);
    return NULL;
  }
  TinyTensor *tensor = g_object_is_floating (given) ? g_object_ref_sink (given) : given;
  if (tensor->error == NULL)
    return tensor;
  g_propagate_error (error, g_error_copy (tensor->error));
  g_object_unref (tensor);
  return NULL;
}

GPtrArray *
tensor_list_check (
    const char *name, GPtrArray *given, gboolean may_lack, GError *failure, GError **error)
{
  g_autoptr (GPtrArray) list = tensor_list_new ();
  if (given == NULL && failure == NULL)
    failure = g_error_new (TINY_ERROR, TINY_ERROR_INVALID,
                           "%s: the function returned nothing, and no error", name);
  if (given != NULL) {
    /* Bindings make arrays that own nothing, C ones that do: the elements are ours in any case. */
    gsize n;
    g_autofree gpointer *tensors = g_ptr_array_steal (given, &n);
    g_ptr_array_unref (given);
    for (gsize i = 0; i < n; i++) {
      gboolean lacks = tensors[i] == NULL && may_lack;
      GError *wrong = NULL;
      g_ptr_array_add (list, lacks ? NULL : take_tensor (name, tensors[i], i, &wrong));
      if (failure == NULL)
        failure = wrong;
      else
        g_clear_error (&wrong);
    }
  }
  if (failure == NULL)
    return g_steal_pointer (&list);
  g_propagate_error (error, failure);
  return NULL;
}

GPtrArray *
function_call_checked (const char *name,
                       TinyFunction function,
                       gpointer user_data,
                       TinyTensor *const *inputs,
                       guint n,
                       GError **error)
{
  GError *failure = NULL;
  GPtrArray *given
      = tiny_interrupt_check_now (&failure) ? function (inputs, n, user_data, &failure) : NULL;
  return tensor_list_check (name, given, FALSE, failure, error);
}

/* ---- a call ---- */
gboolean
function_call_fail (FunctionCall *self, const char *format, ...)
{
  if (self->error != NULL)
    return FALSE;
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  self->error = g_error_new (TINY_ERROR, TINY_ERROR_INVALID, "%s: %s", self->name, text);
  return FALSE;
}

static void
add_input (FunctionCall *self, TinyTensor *tensor)
{
  if (tensor == NULL || !TINY_IS_TENSOR (tensor)) {
    function_call_fail (self, "input %u is no tensor", self->inputs->len);
    return;
  }
  if (tensor->error != NULL && self->error == NULL)
    self->error = g_error_copy (tensor->error);
  g_ptr_array_add (self->inputs, g_object_ref_sink (tensor));
}

gboolean
function_call_begin (FunctionCall *self,
                     const char *name,
                     TinyFunction function,
                     TinyTensor *const *inputs,
                     guint n)
{
  *self = (FunctionCall){ .name = name,
                          .inputs = tensor_list_new (),
                          .arguments = tensor_list_new (),
                          .placeholders = tensor_list_new (),
                          .outer = innermost };
  if (inputs == NULL && n > 0)
    function_call_fail (self, "input 0 is no tensor");
  for (guint i = 0; inputs != NULL && i < n; i++)
    add_input (self, inputs[i]);
  if (function == NULL)
    function_call_fail (self, "there is no function");
  innermost = self;
  tiny_runtime_lock ();
  self->first_slot = next_slot;
  next_slot += (gint64) n + 1;
  return self->error == NULL;
}

static void
keep_placeholder (FunctionCall *self, TinyNode *node, const char *device)
{
  g_ptr_array_add (self->placeholders,
                   g_object_ref_sink (tiny_tensor_new_for_node (node, device)));
}

void
function_call_pass_input (FunctionCall *self)
{
  TinyTensor *input = self->inputs->pdata[self->arguments->len];
  g_ptr_array_add (self->arguments, g_object_ref (input));
  if (input->error == NULL)
    keep_placeholder (self, tiny_tensor_get_node (input), input->device);
}

void
function_call_add_placeholder (FunctionCall *self, const gint64 *dims, guint n)
{
  TinyGraph *graph = tiny_runtime_get_graph ();
  TinyTensor *input = self->inputs->pdata[self->arguments->len];
  TinyNode *node = tiny_node_new (graph, TINY_OP_PARAM, input->dtype, 1, 0, NULL,
                                  self->first_slot + self->n_slots++,
                                  tiny_graph_ints (graph, dims, n), input->device);
  g_ptr_array_add (self->arguments,
                   g_object_ref_sink (tiny_tensor_new_for_node (node, input->device)));
  keep_placeholder (self, node, input->device);
}

TinyTensor *
function_call_add_hidden (FunctionCall *self, TinyDType dtype)
{
  TinyGraph *graph = tiny_runtime_get_graph ();
  TinyNode *node = tiny_node_new (graph, TINY_OP_PARAM, dtype, 1, 0, NULL,
                                  self->first_slot + self->n_slots++,
                                  tiny_graph_ints (graph, NULL, 0), NULL);
  return g_object_ref_sink (tiny_tensor_new_for_node (node, NULL));
}

TinyNode *
function_call_make_placeholder (const TinyNode *like)
{
  return tiny_node_new (tiny_runtime_get_graph (), TINY_OP_PARAM, (TinyDType) like->dtype, 1, 0,
                        NULL, next_slot++, like->shape, NULL);
}

static gboolean
is_known_slot (const FunctionCall *self, gint64 slot)
{
  for (; self != NULL; self = self->outer)
    if (slot >= self->first_slot && slot < self->first_slot + self->n_slots)
      return TRUE;
  return slot < FIRST_SLOT;
}

/* What a function kept of an earlier call has no value in this one. */
static gboolean
check_outputs (FunctionCall *self)
{
  TinyGraph *graph = tiny_runtime_get_graph ();
  for (guint i = 0; i < self->outputs->len; i++) {
    TinyNode *root = function_call_get_output (self, i);
    g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &root, 1);
    for (guint k = 0; k < order->len; k++) {
      const TinyNode *node = order->pdata[k];
      if (node->op == TINY_OP_PARAM && !is_known_slot (self, node->arg))
        return function_call_fail (
            self, "result %u is made of an argument of another call, which is over", i);
    }
  }
  return TRUE;
}

gboolean
function_call_run (FunctionCall *self, TinyFunction function, gpointer user_data)
{
  if (self->error != NULL)
    return FALSE;
  /* The function may wait for others, who want the lock. */
  tiny_runtime_unlock ();
  self->outputs = function_call_checked (self->name, function, user_data,
                                         (TinyTensor *const *) self->arguments->pdata,
                                         self->arguments->len, &self->error);
  tiny_runtime_lock ();
  return self->outputs != NULL && check_outputs (self);
}

GPtrArray *
function_call_end (FunctionCall *self, GPtrArray *results)
{
  innermost = self->outer;
  tiny_runtime_unlock ();
  for (guint i = 0; self->error == NULL && i < results->len; i++) {
    const TinyTensor *result = results->pdata[i];
    if (result->error != NULL)
      self->error = g_error_copy (result->error);
  }
  if (self->error != NULL) {
    g_ptr_array_unref (results);
    results = tensor_list_new_for_error (self->error);
  }
  g_ptr_array_unref (self->inputs);
  g_ptr_array_unref (self->arguments);
  g_ptr_array_unref (self->placeholders);
  g_clear_pointer (&self->outputs, g_ptr_array_unref);
  return results;
}

/* ---- nodes ---- */
TinyNode *
function_call_get_input (FunctionCall *self, guint i)
{
  return tiny_tensor_get_node (self->inputs->pdata[i]);
}

TinyNode *
function_call_get_argument (FunctionCall *self, guint i)
{
  return tiny_tensor_get_node (self->placeholders->pdata[i]);
}

TinyNode *
function_call_get_output (FunctionCall *self, guint i)
{
  return tiny_tensor_get_node (self->outputs->pdata[i]);
}

void
function_call_add_result (FunctionCall *self,
                          GPtrArray *results,
                          TinyNode *node,
                          TinyTensor *like)
{
  TinyBuild b;
  tiny_build_begin (&b, self->name, 0, NULL);
  b.device = like->device;
  g_ptr_array_add (results, g_object_ref_sink (tiny_build_end (&b, node)));
}

gboolean
function_call_check_float (FunctionCall *self, const char *what, guint i, TinyNode *x)
{
  return tiny_dtype_is_float (x->dtype)
         || function_call_fail (self, "%s %u is of %s, which has no derivative", what, i,
                                tiny_dtype_to_string ((TinyDType) x->dtype));
}

gboolean
function_call_check_like (
    FunctionCall *self, const char *what, guint i, TinyNode *x, TinyNode *like)
{
  if (x->dtype == like->dtype && tiny_shape_equal (x->shape, like->shape))
    return TRUE;
  g_autofree char *has = tiny_shape_to_string (x->shape);
  g_autofree char *wanted = tiny_shape_to_string (like->shape);
  return function_call_fail (self, "%s %u is %s of %s, not %s of %s", what, i, has,
                             tiny_dtype_to_string ((TinyDType) x->dtype), wanted,
                             tiny_dtype_to_string ((TinyDType) like->dtype));
}

void
function_call_fill_in (FunctionCall *self, TinyNode **nodes, guint n)
{
  TinyGraph *graph = tiny_runtime_get_graph ();
  guint n_inputs = self->inputs->len;
  g_autofree TinyNode **from = g_new (TinyNode *, n_inputs + 1);
  g_autofree TinyNode **to = g_new (TinyNode *, n_inputs + 1);
  for (guint i = 0; i < n_inputs; i++) {
    from[i] = function_call_get_argument (self, i);
    to[i] = function_call_get_input (self, i);
  }
  TinyNode *all = tiny_node_sink (graph, n, nodes, NULL);
  all = tiny_graph_substitute (graph, all, from, to, n_inputs);
  for (guint i = 0; i < n; i++)
    nodes[i] = all->sources[i];
}
