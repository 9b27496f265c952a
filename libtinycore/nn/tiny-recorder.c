/* SPDX-License-Identifier: MIT
 *
 * tiny-recorder.c: the engine's capture, in the terms of tensors. */
#include "nn/recorder-private.h"

#include <string.h>

#include "base/tiny-guard.h"
#include "engine/runtime-private.h"
#include "engine/tiny-capture.h"
#include "ir/tiny-shape.h"
#include "ir/tiny-shard.h"
#include "tensor/tiny-random.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"
#include "tensor/tiny-view.h"

struct _TinyRecorder {
  GObject parent_instance;
  TinyCapture *capture;
  TinyRandomCapture *random; /* what its replays draw */
  gboolean is_recording;
  GPtrArray *inputs;  /* of the recording: what later ones have to look like */
  GPtrArray *bases;   /* of each what it was a view of in the end, or the input itself */
  GPtrArray *outputs; /* of the recording: their sizes may be variables */
  guint64 n_roots;    /* that there were before it */
  TinyNode **nodes;   /* room for the nodes of as many, so that replaying allocates nothing */
};

G_DEFINE_FINAL_TYPE (TinyRecorder, tiny_recorder, G_TYPE_OBJECT)

/* What inputs that are views had to themselves was the recording's. */
static void
reread_inputs (TinyRecorder *self)
{
  for (guint i = 0; i < self->inputs->len; i++) {
    TinyTensor *input = self->inputs->pdata[i];
    if (input->base != NULL)
      tiny_view_refresh (tiny_view_get_base (input));
  }
}

void
tiny_recorder_cancel (TinyRecorder *self)
{
  g_return_if_fail (TINY_IS_RECORDER (self));
  if (self->is_recording) {
    tiny_runtime_lock ();
    tiny_capture_end (self->capture, NULL);
    reread_inputs (self);
    tiny_runtime_unlock ();
  }
  self->is_recording = FALSE;
  g_clear_pointer (&self->capture, tiny_capture_free);
  g_clear_pointer (&self->random, tiny_random_capture_free);
  g_ptr_array_set_size (self->inputs, 0);
  g_ptr_array_set_size (self->bases, 0);
  g_ptr_array_set_size (self->outputs, 0);
}

static void
tiny_recorder_finalize (GObject *object)
{
  TinyRecorder *self = TINY_RECORDER (object);
  tiny_recorder_cancel (self);
  g_ptr_array_unref (self->inputs);
  g_ptr_array_unref (self->bases);
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
  self->bases = g_ptr_array_new_with_free_func (g_object_unref);
  self->outputs = g_ptr_array_new_with_free_func (g_object_unref);
}

TinyRecorder *
tiny_recorder_new (void)
{
  return g_object_new (TINY_TYPE_RECORDER, NULL);
}

/* Each on several devices is a node for each of them. How many there are; @out may be NULL. */
static guint
nodes_of (TinyTensor *const *tensors, guint n, TinyNode **out)
{
  guint n_nodes = 0;
  for (guint i = 0; i < n; i++) {
    TinyNode *memory = tiny_runtime_get_memory (tiny_tensor_get_node (tensors[i]));
    for (guint k = 0; k < tiny_runtime_count_pieces (memory); k++, n_nodes++)
      if (out != NULL)
        out[n_nodes] = tiny_runtime_get_piece (memory, k);
  }
  return n_nodes;
}

/* Its memory, or on several devices the first piece of it. */
static TinyBuffer *
get_memory (TinyTensor *tensor)
{
  TinyNode *node = tiny_runtime_get_memory (tiny_tensor_get_node (tensor));
  return tiny_runtime_is_memory (node)
             ? tiny_runtime_get_buffer (tiny_runtime_get_piece (node, 0))
             : NULL;
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

/* Inputs that are equal expressions would have the same memory; and of views only the recording has it. */
static gboolean
own_inputs (TinyTensor *const *inputs, guint n, GError **error)
{
  for (guint i = 0; i < n; i++)
    if (TINY_IS_TENSOR (inputs[i]) && !is_variable (inputs[i])
        && !tiny_tensor_stand_apart (inputs[i], error))
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
  const guint n_nodes = nodes_of (inputs, n, NULL);
  g_free (self->nodes);
  self->nodes = g_new0 (TinyNode *, n_nodes + 1);
  nodes_of (inputs, n, self->nodes);
  self->capture = tiny_capture_begin (self->nodes, n_nodes, error);
  self->is_recording = self->capture != NULL;
  self->n_roots = tiny_runtime_count_roots ();
  if (self->is_recording)
    self->random = tiny_random_capture_begin ();
  for (guint i = 0; i < n && self->is_recording; i++) {
    g_ptr_array_add (self->inputs, g_object_ref (inputs[i]));
    g_ptr_array_add (self->bases, g_object_ref (tiny_view_get_base (inputs[i])));
  }
  return self->is_recording;
}

gboolean
tiny_recorder_begin (TinyRecorder *self, TinyTensor *const *inputs, guint n, GError **error)
{
  tiny_return_error_unless (TINY_IS_RECORDER (self), error, FALSE, "no recorder given");
  tiny_return_error_unless (TINY_IS_LIST (inputs, n), error, FALSE,
                            "inputs are counted, but none are given");
  tiny_runtime_open_default_device ();
  tiny_runtime_lock ();
  gboolean good = begin_locked (self, inputs, n, error);
  tiny_runtime_unlock ();
  return good;
}

/* Whether @output stays a view: of what is there at each replay, and is no input. */
static gboolean
stays_view (TinyRecorder *self, TinyTensor *output)
{
  TinyTensor *base = tiny_view_get_base (output);
  for (TinyTensor *at = output; at != NULL; at = at->base)
    if (g_ptr_array_find (self->inputs, at, NULL))
      return FALSE;
  return get_memory (base) != NULL && !g_ptr_array_find (self->bases, base, NULL);
}

/* An output that is an input, or a view of one, gets memory of its own: later inputs are others. */
static gboolean
own_outputs (TinyRecorder *self, TinyTensor *const *outputs, guint n, GError **error)
{
  for (guint i = 0; i < n; i++)
    if (!stays_view (self, outputs[i]))
      tiny_view_unlink (outputs[i]);
  for (guint i = 0; i < n; i++) {
    if (g_ptr_array_find (self->inputs, outputs[i], NULL)) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                   "jit: output %u is an input itself, not another tensor with its values", i);
      return FALSE;
    }
    const TinyBuffer *memory = get_memory (outputs[i]);
    for (guint j = 0; memory != NULL && j < self->inputs->len; j++)
      if (get_memory (self->inputs->pdata[j]) == memory
          && (!tiny_tensor_own_memory (outputs[i], error)
              || !tiny_tensor_realize (outputs[i], error)))
        return FALSE;
  }
  return TRUE;
}

gboolean
tiny_recorder_end (TinyRecorder *self, TinyTensor *const *outputs, guint n, GError **error)
{
  tiny_return_error_unless (TINY_IS_RECORDER (self), error, FALSE, "no recorder given");
  tiny_return_error_unless (TINY_IS_LIST (outputs, n), error, FALSE,
                            "outputs are counted, but none are given");
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
  reread_inputs (self);
  /* What there was before and was only computed meanwhile stays what it is. */
  good = good
         && tiny_tensor_part_older (tiny_capture_get_written (self->capture), self->n_roots,
                                    error);
  for (guint i = 0; good && i < n; i++)
    g_ptr_array_add (self->outputs, g_object_ref (outputs[i]));
  if (!good)
    tiny_recorder_cancel (self);
  tiny_runtime_unlock ();
  return good;
}

/* ---- replaying ---- */
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
  const TinyNode *memory = tiny_runtime_get_memory (tiny_tensor_get_node (tensor));
  if (memory->op == TINY_OP_UNSHARD && memory->arg != TINY_SHARD_WHOLE)
    g_string_append_printf (text, " cut along axis %" G_GINT64_FORMAT, memory->arg);
  return g_string_free (text, FALSE);
}

/* Whether the pieces are the same on each device. */
static gboolean
is_cut_alike (TinyTensor *a, TinyTensor *b)
{
  TinyNode *of_a = tiny_runtime_get_memory (tiny_tensor_get_node (a));
  TinyNode *of_b = tiny_runtime_get_memory (tiny_tensor_get_node (b));
  guint n = tiny_runtime_count_pieces (of_a);
  gboolean is_one = of_a->op != TINY_OP_UNSHARD && of_b->op != TINY_OP_UNSHARD;
  gboolean alike = of_a->op == of_b->op && n == tiny_runtime_count_pieces (of_b);
  for (guint i = 0; alike && !is_one && i < n; i++)
    alike = of_a->arg == of_b->arg
            && tiny_shape_equal (of_a->sources[i]->shape, of_b->sources[i]->shape);
  return alike || is_one;
}

/* Whether input @i, @now, is of the kind that it was in the recording. */
static gboolean
check_kind (guint i, TinyTensor *before, TinyTensor *now, GError **error)
{
  if (now->dtype == before->dtype && now->device == before->device
      && now->n_dims == before->n_dims && is_cut_alike (before, now)
      && memcmp (now->shape, before->shape, now->n_dims * sizeof *now->shape) == 0)
    return TRUE;
  g_autofree char *was = describe (before), *is = describe (now);
  g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
               "jit: input %u was recorded as %s and is now %s: the recording is of the first: "
               "reset it to make "
               "another",
               i, was, is);
  return FALSE;
}

/* Whether what was recorded writes to what input @i is a view of. */
static gboolean
writes_through (TinyRecorder *self, guint i)
{
  TinyTensor *base = self->bases->pdata[i];
  return base != self->inputs->pdata[i]
         && tiny_view_is_written (base, tiny_capture_get_written (self->capture));
}

/* What it is a view of has to be the same then, or to be an input now and then. */
static gboolean
check_view (TinyRecorder *self, guint i, TinyTensor *const *inputs, GError **error)
{
  TinyTensor *before = self->inputs->pdata[i], *base = self->bases->pdata[i], *now = inputs[i];
  if (now == before || !writes_through (self, i))
    return TRUE;
  guint at;
  TinyTensor *wanted = g_ptr_array_find (self->inputs, base, &at) ? inputs[at] : base;
  if (tiny_view_get_base (now) == wanted && tiny_view_is_same_part (before, now))
    return TRUE;
  g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
               "jit: input %u was recorded as a view of memory that is written, and is now "
               "another: give it a copy, "
               "such as clone(), or reset it to record anew",
               i);
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
    if (!check_kind (i, self->inputs->pdata[i], inputs[i], error)
        || !check_view (self, i, inputs, error))
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

/* What the replay wrote to inputs that are views belongs where these are views of. */
static gboolean
write_back (TinyRecorder *self, TinyTensor *const *inputs, guint n, GError **error)
{
  GHashTable *written = tiny_capture_get_written (self->capture);
  for (guint i = 0; i < n; i++) {
    TinyTensor *input = inputs[i];
    if (is_variable (input) || input->base == NULL || !tiny_view_is_written (input, written))
      continue;
    g_autoptr (TinyTensor) value
        = g_object_ref_sink (tiny_tensor_new_for_node (input->root.node, input->device));
    tiny_view_refresh (tiny_view_get_base (input));
    if (!tiny_tensor_assign (input, value, error))
      return FALSE;
  }
  tiny_view_refresh_written (written);
  return TRUE;
}

gboolean
tiny_recorder_replay (TinyRecorder *self, TinyTensor *const *inputs, guint n, GError **error)
{
  tiny_return_error_unless (TINY_IS_RECORDER (self), error, FALSE, "no recorder given");
  tiny_return_error_unless (TINY_IS_LIST (inputs, n), error, FALSE,
                            "inputs are counted, but none are given");
  tiny_runtime_lock ();
  gboolean good
      = recorder_realize_inputs (inputs, n, error) && check_inputs (self, inputs, n, error);
  if (good) {
    const guint n_nodes = nodes_of (inputs, n, self->nodes);
    good = tiny_random_capture_before_replay (self->random, error)
           && tiny_capture_replay (self->capture, self->nodes, n_nodes, error)
           && write_back (self, inputs, n, error);
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
