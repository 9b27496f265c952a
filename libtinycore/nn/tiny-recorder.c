/* SPDX-License-Identifier: MIT
 *
 * tiny-recorder.c: the engine's capture, in the terms of tensors. */
#include "nn/recorder-private.h"

#include <string.h>

#include "engine/tiny-capture.h"
#include "tensor/tiny-random.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

struct _TinyRecorder {
  GObject parent_instance;
  TinyCapture *capture;
  TinyRandomCapture *random; /* what its replays draw */
  gboolean is_recording;
  GPtrArray *inputs;  /* of the recording: what later ones have to look like */
  GPtrArray *outputs; /* of the recording: their sizes may be variables */
  TinyNode **nodes;   /* room for the nodes of as many, so that replaying allocates nothing */
};

G_DEFINE_FINAL_TYPE (TinyRecorder, tiny_recorder, G_TYPE_OBJECT)

void
tiny_recorder_cancel (TinyRecorder *self)
{
  g_return_if_fail (TINY_IS_RECORDER (self));
  if (self->is_recording)
    tiny_capture_end (self->capture, NULL);
  self->is_recording = FALSE;
  g_clear_pointer (&self->capture, tiny_capture_free);
  g_clear_pointer (&self->random, tiny_random_capture_free);
  g_ptr_array_set_size (self->inputs, 0);
  g_ptr_array_set_size (self->outputs, 0);
}

static void
tiny_recorder_finalize (GObject *object)
{
  TinyRecorder *self = TINY_RECORDER (object);
  tiny_recorder_cancel (self);
  g_ptr_array_unref (self->inputs);
  g_ptr_array_unref (self->outputs);
  g_free (self->nodes);
  G_OBJECT_CLASS (tiny_recorder_parent_class)->finalize (object);
}

static void
tiny_recorder_class_init (TinyRecorderClass *class)
{
  G_OBJECT_CLASS (class)->finalize = tiny_recorder_finalize;
}

static void
tiny_recorder_init (TinyRecorder *self)
{
  self->inputs = g_ptr_array_new_with_free_func (g_object_unref);
  self->outputs = g_ptr_array_new_with_free_func (g_object_unref);
}

TinyRecorder *
tiny_recorder_new (void)
{
  return g_object_new (TINY_TYPE_RECORDER, NULL);
}

static void
nodes_of (TinyTensor *const *tensors, guint n, TinyNode **out)
{
  for (guint i = 0; i < n; i++)
    out[i] = tiny_tensor_get_node (tensors[i]);
}

static TinyBuffer *
get_memory (TinyTensor *tensor)
{
  TinyNode *node = tiny_tensor_get_node (tensor);
  while (node->op == TINY_OP_RESHAPE || node->op == TINY_OP_LIMIT)
    node = node->sources[0];
  return node->op == TINY_OP_BUFFER ? tiny_runtime_get_buffer (node) : NULL;
}

/* ---- recording ---- */

static gboolean
is_variable (TinyTensor *tensor)
{
  const TinyNode *node = TINY_IS_TENSOR (tensor) ? tiny_tensor_get_node (tensor) : NULL;
  return node != NULL && node->op == TINY_OP_VARIABLE;
}

gboolean
recorder_realize_inputs (TinyTensor *const *inputs, guint n, GError **error)
{
  for (guint i = 0; i < n; i++) {
    if (is_variable (inputs[i]))
      continue;
    if (!tiny_tensor_realize (inputs[i], error)) {
      g_prefix_error (error, "jit: input %u: ", i);
      return FALSE;
    }
    if (tiny_tensor_get_node (inputs[i])->limits != NULL) {
      g_set_error (
          error, TINY_ERROR, TINY_ERROR_INVALID,
          "jit: input %u has a size that is a variable: pass all of the tensor, and the "
          "variable",
          i);
      return FALSE;
    }
  }
  return TRUE;
}

/* Inputs that are equal expressions would have the same memory. */
static gboolean
own_inputs (TinyTensor *const *inputs, guint n, GError **error)
{
  for (guint i = 0; i < n; i++)
    if (TINY_IS_TENSOR (inputs[i]) && !is_variable (inputs[i])
        && !tiny_tensor_own_memory (inputs[i], error))
      return FALSE;
  if (!recorder_realize_inputs (inputs, n, error))
    return FALSE;
  for (guint i = 0; i < n; i++)
    if (!is_variable (inputs[i]) && get_memory (inputs[i]) == NULL) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "jit: input %u has no elements", i);
      return FALSE;
    }
  return TRUE;
}

static gboolean
begin_locked (TinyRecorder *self, TinyTensor *const *inputs, guint n, GError **error)
{
  if (self->capture != NULL) {
    g_set_error_literal (error, TINY_ERROR, TINY_ERROR_INVALID,
                         "jit: there is a recording already");
    return FALSE;
  }
  /* What was assigned before is not the recording's to compute; what is assigned meanwhile is. */
  if (!own_inputs (inputs, n, error) || !tiny_runtime_realize_assignments (error))
    return FALSE;
  g_free (self->nodes);
  self->nodes = g_new0 (TinyNode *, n + 1);
  nodes_of (inputs, n, self->nodes);
  self->capture = tiny_capture_begin (self->nodes, n, error);
  self->is_recording = self->capture != NULL;
  if (self->is_recording)
    self->random = tiny_random_capture_begin ();
  for (guint i = 0; i < n && self->is_recording; i++)
    g_ptr_array_add (self->inputs, g_object_ref (inputs[i]));
  return self->is_recording;
}

gboolean
tiny_recorder_begin (TinyRecorder *self, TinyTensor *const *inputs, guint n, GError **error)
{
  g_return_val_if_fail (TINY_IS_RECORDER (self), FALSE);
  tiny_runtime_open_default_device ();
  tiny_runtime_lock ();
  gboolean good = begin_locked (self, inputs, n, error);
  tiny_runtime_unlock ();
  return good;
}

/* An output that is an input, or a view of one, gets memory of its own: later inputs are others. */
static gboolean
own_outputs (TinyRecorder *self, TinyTensor *const *outputs, guint n, GError **error)
{
  for (guint i = 0; i < n; i++) {
    if (g_ptr_array_find (self->inputs, outputs[i], NULL)) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                   "jit: output %u is an input itself, not another tensor with its values", i);
      return FALSE;
    }
    const TinyBuffer *memory = get_memory (outputs[i]);
    for (guint j = 0; memory != NULL && j < self->inputs->len; j++)
      if (get_memory (self->inputs->pdata[j]) == memory) {
        const TinyTensor *output = outputs[i];
        TinyTensor *copy = tiny_tensor_contiguous (tiny_tensor_unsqueeze (outputs[i], 0));
        g_autoptr (TinyTensor) shaped
            = g_object_ref_sink (tiny_tensor_reshape (copy, output->shape, output->n_dims));
        if (!tiny_tensor_realize (shaped, error))
          return FALSE;
        tiny_tensor_set_node (outputs[i], tiny_tensor_get_node (shaped));
      }
  }
  return TRUE;
}

gboolean
tiny_recorder_end (TinyRecorder *self, TinyTensor *const *outputs, guint n, GError **error)
{
  g_return_val_if_fail (TINY_IS_RECORDER (self), FALSE);
  if (!self->is_recording) {
    g_set_error_literal (error, TINY_ERROR, TINY_ERROR_INVALID,
                         "jit: nothing is being recorded");
    return FALSE;
  }
  tiny_runtime_lock ();
  gboolean good = tiny_tensor_realize_many (outputs, n, error)
                  && tiny_runtime_realize_assignments (error)
                  && own_outputs (self, outputs, n, error)
                  && tiny_random_capture_end (self->random, error);
  self->is_recording = FALSE;
  good = tiny_capture_end (self->capture, good ? error : NULL) && good;
  for (guint i = 0; good && i < n; i++)
    g_ptr_array_add (self->outputs, g_object_ref (outputs[i]));
  if (!good)
    tiny_recorder_cancel (self);
  tiny_runtime_unlock ();
  return good;
}

/* ---- replaying ---- */
static char *
describe (const TinyTensor *tensor)
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
check_kind (guint i, const TinyTensor *before, const TinyTensor *now, GError **error)
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

static gboolean
check_inputs (TinyRecorder *self, TinyTensor *const *inputs, guint n, GError **error)
{
  if (self->capture == NULL || self->is_recording) {
    g_set_error_literal (error, TINY_ERROR, TINY_ERROR_INVALID, "jit: there is no recording");
    return FALSE;
  }
  if (n != self->inputs->len) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "jit: recorded with %u inputs, called with %u", self->inputs->len, n);
    return FALSE;
  }
  for (guint i = 0; i < n; i++)
    if (!check_kind (i, self->inputs->pdata[i], inputs[i], error))
      return FALSE;
  return TRUE;
}

/* Sizes of outputs that are variables have the new values. */
static void
resize_outputs (TinyRecorder *self, TinyTensor *const *inputs, guint n)
{
  for (guint i = 0; i < n; i++) {
    TinyTensor *before = self->inputs->pdata[i];
    if (!is_variable (inputs[i])
        || tiny_tensor_get_node (before) == tiny_tensor_get_node (inputs[i]))
      continue;
    for (guint k = 0; k < self->outputs->len; k++)
      tiny_tensor_resize (self->outputs->pdata[k], tiny_tensor_get_node (before),
                          tiny_tensor_get_node (inputs[i]));
    g_set_object ((TinyTensor **) &self->inputs->pdata[i], inputs[i]);
  }
}

gboolean
tiny_recorder_replay (TinyRecorder *self, TinyTensor *const *inputs, guint n, GError **error)
{
  g_return_val_if_fail (TINY_IS_RECORDER (self), FALSE);
  tiny_runtime_lock ();
  gboolean good
      = recorder_realize_inputs (inputs, n, error) && check_inputs (self, inputs, n, error);
  if (good) {
    nodes_of (inputs, n, self->nodes);
    good = tiny_random_capture_before_replay (self->random, error)
           && tiny_capture_replay (self->capture, self->nodes, n, error);
    if (good)
      resize_outputs (self, inputs, n);
    else
      tiny_random_capture_note_failure (self->random);
  }
  tiny_runtime_unlock ();
  return good;
}

guint
tiny_recorder_get_n_kernels (TinyRecorder *self)
{
  g_return_val_if_fail (TINY_IS_RECORDER (self), 0);
  return self->capture == NULL || self->is_recording
             ? 0
             : tiny_capture_get_n_kernels (self->capture);
}
