/* SPDX-License-Identifier: MIT
 *
 * tiny-jit.c: the object around the engine's capture, in the terms of tensors. */
#include "nn/tiny-jit.h"

#include <string.h>

#include "engine/tiny-capture.h"
#include "tensor/tiny-tensor-private.h"
#include "tensor/tiny-tensor-operations.h"

struct _TinyJit {
  GObject parent_instance;
  TinyJitFunction function;
  gpointer user_data;
  GDestroyNotify destroy;
  TinyCapture *capture;
  guint n_calls, n_outputs;
  GPtrArray *inputs;    /* of the recording: what later ones have to look like */
  TinyNode **nodes;     /* room for the nodes of as many, so that replaying allocates nothing */
  TinyTensor **outputs; /* of the last call */
};

G_DEFINE_FINAL_TYPE (TinyJit, tiny_jit, G_TYPE_OBJECT)

static void
drop_outputs (TinyJit *self)
{
  for (guint i = 0; i < self->n_outputs; i++)
    g_clear_object (&self->outputs[i]);
}

static void
tiny_jit_finalize (GObject *object)
{
  TinyJit *self = TINY_JIT (object);
  g_clear_pointer (&self->capture, tiny_capture_free);
  g_clear_pointer (&self->inputs, g_ptr_array_unref);
  drop_outputs (self);
  g_free (self->outputs);
  g_free (self->nodes);
  if (self->destroy != NULL)
    self->destroy (self->user_data);
  G_OBJECT_CLASS (tiny_jit_parent_class)->finalize (object);
}

static void
tiny_jit_class_init (TinyJitClass *class)
{
  G_OBJECT_CLASS (class)->finalize = tiny_jit_finalize;
}

static void
tiny_jit_init (TinyJit *self)
{
}

TinyJit *
tiny_jit_new (TinyJitFunction function,
              gpointer user_data,
              GDestroyNotify destroy,
              guint n_outputs)
{
  g_return_val_if_fail (function != NULL, NULL);
  TinyJit *self = g_object_new (TINY_TYPE_JIT, NULL);
  self->function = function;
  self->user_data = user_data;
  self->destroy = destroy;
  self->n_outputs = n_outputs;
  self->outputs = g_new0 (TinyTensor *, n_outputs + 1);
  self->inputs = g_ptr_array_new_with_free_func (g_object_unref);
  return self;
}

static gboolean
is_variable (TinyTensor *tensor)
{
  TinyNode *node = tiny_tensor_get_node (tensor);
  return node != NULL && node->op == TINY_OP_VARIABLE;
}

static gboolean
run (TinyJit *self, TinyTensor *const *inputs, guint n, GError **error)
{
  drop_outputs (self);
  if (!self->function (inputs, n, self->outputs, self->n_outputs, self->user_data, error))
    return FALSE;
  return tiny_tensor_realize_many (self->outputs, self->n_outputs, error);
}

static void
nodes_of (TinyTensor *const *tensors, guint n, TinyNode **out)
{
  for (guint i = 0; i < n; i++)
    out[i] = tiny_tensor_get_node (tensors[i]);
}

/* NULL: none, it is a variable. */
static TinyBuffer *
get_memory (TinyTensor *tensor)
{
  TinyNode *node = tiny_tensor_get_node (tensor);
  if (node->op == TINY_OP_VARIABLE)
    return NULL;
  while (node->op == TINY_OP_RESHAPE || node->op == TINY_OP_LIMIT)
    node = node->sources[0];
  return tiny_runtime_get_buffer (node);
}

/* An output that is an input, or a view of one, becomes a copy: later inputs are others. */
static gboolean
own_outputs (TinyJit *self, TinyTensor *const *inputs, guint n, GError **error)
{
  for (guint i = 0; i < self->n_outputs; i++) {
    TinyTensor *output = self->outputs[i];
    gboolean is_own = TRUE;
    for (guint j = 0; j < n; j++)
      is_own = is_own && get_memory (output) != get_memory (inputs[j]);
    if (is_own)
      continue;
    TinyTensor *copy = tiny_tensor_contiguous (tiny_tensor_unsqueeze (output, 0));
    self->outputs[i]
        = g_object_ref_sink (tiny_tensor_reshape (copy, output->shape, output->n_dims));
    g_object_unref (output);
  }
  return tiny_tensor_realize_many (self->outputs, self->n_outputs, error);
}

static gboolean
record (TinyJit *self, TinyTensor *const *inputs, guint n, GError **error)
{
  g_free (self->nodes);
  self->nodes = g_new0 (TinyNode *, n + 1);
  nodes_of (inputs, n, self->nodes);
  self->capture = tiny_capture_begin (self->nodes, n, error);
  if (self->capture == NULL)
    return FALSE;
  gboolean good = run (self, inputs, n, error) && own_outputs (self, inputs, n, error);
  good = tiny_capture_end (self->capture, good ? error : NULL) && good;
  if (!good) {
    g_clear_pointer (&self->capture, tiny_capture_free);
    return FALSE;
  }
  for (guint i = 0; i < n; i++)
    g_ptr_array_add (self->inputs, g_object_ref (inputs[i]));
  return TRUE;
}

static char *
describe (TinyTensor *tensor)
{
  GString *text = g_string_new ("(");
  for (guint i = 0; i < tensor->n_dims; i++)
    g_string_append_printf (text, i > 0 ? ", %" G_GINT64_FORMAT : "%" G_GINT64_FORMAT,
                            tensor->shape[i]);
  g_string_append_printf (text, "%s of %s on %s", tensor->n_dims == 1 ? ",)" : ")",
                          tiny_dtype_to_string (tensor->dtype),
                          tensor->device != NULL ? tensor->device : "any device");
  return g_string_free (text, FALSE);
}

/* Whether input @i, @now, is of the kind that it was in the recording. */
static gboolean
check_kind (guint i, TinyTensor *before, TinyTensor *now, GError **error)
{
  if (now->dtype == before->dtype && now->device == before->device
      && now->n_dims == before->n_dims
      && memcmp (now->shape, before->shape, now->n_dims * sizeof *now->shape) == 0)
    return TRUE;
  g_autofree char *was = describe (before), *is = describe (now);
  g_set_error (
      error, TINY_ERROR, TINY_ERROR_INVALID,
      "jit: input %u was recorded as %s and is now %s: record anew with tiny_jit_reset ()", i,
      was, is);
  return FALSE;
}

/* Sizes of outputs that are variables have the new values. */
static void
resize_outputs (TinyJit *self, TinyTensor *const *inputs, guint n)
{
  for (guint i = 0; i < n; i++) {
    TinyTensor *before = self->inputs->pdata[i];
    if (!is_variable (inputs[i])
        || tiny_tensor_get_node (before) == tiny_tensor_get_node (inputs[i]))
      continue;
    for (guint k = 0; k < self->n_outputs; k++)
      tiny_tensor_resize (self->outputs[k], tiny_tensor_get_node (before),
                          tiny_tensor_get_node (inputs[i]));
    g_set_object ((TinyTensor **) &self->inputs->pdata[i], inputs[i]);
  }
}

static gboolean
replay (TinyJit *self, TinyTensor *const *inputs, guint n, GError **error)
{
  if (n != self->inputs->len) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "jit: recorded with %u inputs, called with %u", self->inputs->len, n);
    return FALSE;
  }
  for (guint i = 0; i < n; i++)
    if (!check_kind (i, self->inputs->pdata[i], inputs[i], error))
      return FALSE;
  nodes_of (inputs, n, self->nodes);
  if (!tiny_capture_replay (self->capture, self->nodes, n, error))
    return FALSE;
  resize_outputs (self, inputs, n);
  return TRUE;
}

/* A variable stays one, whatever else is in memory. */
static gboolean
prepare_input (guint i, TinyTensor *input, GError **error)
{
  if (TINY_IS_TENSOR (input) && is_variable (input))
    return TRUE;
  if (!tiny_tensor_realize (input, error)) {
    g_prefix_error (error, "jit: input %u: ", i);
    return FALSE;
  }
  if (tiny_tensor_get_node (input)->limits != NULL) {
    g_set_error (
        error, TINY_ERROR, TINY_ERROR_INVALID,
        "jit: input %u has a size that is a variable: pass all of the tensor, and the variable",
        i);
    return FALSE;
  }
  if (tiny_tensor_get_n_elements (input) == 0) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "jit: input %u has no elements", i);
    return FALSE;
  }
  return TRUE;
}

static gboolean
call_locked (TinyJit *self, TinyTensor *const *inputs, guint n, GError **error)
{
  for (guint i = 0; i < n; i++)
    if (!prepare_input (i, inputs[i], error))
      return FALSE;
  if (self->capture != NULL)
    return replay (self, inputs, n, error);
  return self->n_calls++ == 0 ? run (self, inputs, n, error) : record (self, inputs, n, error);
}

gboolean
tiny_jit_call (TinyJit *self,
               TinyTensor *const *inputs,
               guint n_inputs,
               TinyTensor **outputs,
               GError **error)
{
  g_return_val_if_fail (TINY_IS_JIT (self), FALSE);
  tiny_runtime_open_default_device ();
  tiny_runtime_lock ();
  gboolean good = call_locked (self, inputs, n_inputs, error);
  tiny_runtime_unlock ();
  for (guint i = 0; good && outputs != NULL && i < self->n_outputs; i++)
    outputs[i] = self->outputs[i];
  return good;
}

void
tiny_jit_reset (TinyJit *self)
{
  g_return_if_fail (TINY_IS_JIT (self));
  tiny_runtime_lock ();
  g_clear_pointer (&self->capture, tiny_capture_free);
  g_ptr_array_set_size (self->inputs, 0);
  self->n_calls = MIN (self->n_calls, 1);
  tiny_runtime_unlock ();
}

guint
tiny_jit_get_n_kernels (TinyJit *self)
{
  g_return_val_if_fail (TINY_IS_JIT (self), 0);
  return self->capture == NULL ? 0 : tiny_capture_get_n_kernels (self->capture);
}
