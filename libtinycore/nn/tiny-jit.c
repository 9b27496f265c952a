/* SPDX-License-Identifier: MIT
 *
 * tiny-jit.c: a function of the program around a recorder. */
#include "nn/tiny-jit.h"

#include "base/tiny-env.h"
#include "base/tiny-guard.h"
#include "engine/tiny-runtime.h"
#include "nn/recording.h"
#include "nn/tiny-recorder.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

struct _TinyJit {
  GObject parent_instance;
  TinyJitFunction function;
  gpointer user_data;
  GDestroyNotify destroy;
  TinyRecorder *recorder;
  guint n_calls, n_outputs;
  gboolean is_recorded;
  TinyTensor **outputs; /* of the last call */
  GPtrArray *results;   /* by number of a recording: its outputs, or NULL */
};

enum { MOST_OUTPUTS = 1 << 16 };

G_DEFINE_FINAL_TYPE (TinyJit, tiny_jit, G_TYPE_OBJECT)

static void
drop_outputs (TinyJit *self)
{
  for (guint i = 0; i < self->n_outputs; i++)
    g_clear_object (&self->outputs[i]);
}

static void
drop_results (TinyJit *self)
{
  for (guint k = 0; k < self->results->len; k++) {
    TinyTensor **results = self->results->pdata[k];
    for (guint i = 0; results != NULL && i < self->n_outputs; i++)
      g_clear_object (&results[i]);
    g_free (results);
  }
  g_ptr_array_set_size (self->results, 0);
}

static void
tiny_jit_finalize (GObject *object)
{
  TinyJit *self = TINY_JIT (object);
  g_clear_object (&self->recorder);
  drop_outputs (self);
  drop_results (self);
  g_ptr_array_unref (self->results);
  g_free (self->outputs);
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
  self->recorder = tiny_recorder_new ();
  self->results = g_ptr_array_new ();
}

TinyJit *
tiny_jit_new (TinyJitFunction function,
              gpointer user_data,
              GDestroyNotify destroy,
              guint n_outputs)
{
  TinyJit *self = g_object_new (TINY_TYPE_JIT, NULL);
  if (n_outputs > MOST_OUTPUTS) {
    function = NULL; /* as without one, calls are refused */
    n_outputs = 0;
  }
  self->function = function;
  self->user_data = user_data;
  self->destroy = destroy;
  self->n_outputs = n_outputs;
  self->outputs = g_new0 (TinyTensor *, n_outputs + 1);
  return self;
}

static gboolean
run (TinyJit *self, TinyTensor *const *inputs, guint n, GError **error)
{
  drop_outputs (self);
  g_autoptr (GError) failure = NULL;
  if (!self->function (inputs, n, self->outputs, self->n_outputs, self->user_data, &failure)) {
    if (failure == NULL)
      failure = g_error_new_literal (TINY_ERROR, TINY_ERROR_INVALID,
                                     "jit: the function failed, and gave no error");
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  return tiny_tensor_realize_many (self->outputs, self->n_outputs, error);
}

/* Later inputs are others: a result that is an input is another tensor of the same values. */
static void
part_from_inputs (TinyJit *self, TinyTensor *const *inputs, guint n)
{
  for (guint i = 0; i < self->n_outputs; i++)
    for (guint j = 0; j < n; j++)
      if (self->outputs[i] == inputs[j]) {
        TinyTensor *other = g_object_ref_sink (tiny_tensor_cast (inputs[j], inputs[j]->dtype));
        g_object_unref (self->outputs[i]);
        self->outputs[i] = other;
      }
}

/* The results of the recording of that number are those of the last call. */
static TinyTensor **
get_results (TinyJit *self, guint number)
{
  while (self->results->len <= number)
    g_ptr_array_add (self->results, NULL);
  if (self->results->pdata[number] == NULL)
    self->results->pdata[number] = g_new0 (TinyTensor *, self->n_outputs + 1);
  return self->results->pdata[number];
}

static gboolean
record (TinyJit *self, TinyTensor *const *inputs, guint n, GError **error)
{
  if (!tiny_recorder_begin (self->recorder, inputs, n, error))
    return FALSE;
  if (!run (self, inputs, n, error)) {
    tiny_recorder_cancel (self->recorder);
    return FALSE;
  }
  part_from_inputs (self, inputs, n);
  gint number = tiny_recorder_finish (self->recorder, self->outputs, self->n_outputs, error);
  if (number < 0)
    return FALSE;
  self->is_recorded = TRUE;
  TinyTensor **results = get_results (self, (guint) number);
  for (guint i = 0; i < self->n_outputs; i++)
    g_set_object (&results[i], self->outputs[i]);
  return TRUE;
}

static gboolean
replay (TinyJit *self, TinyTensor *const *inputs, guint n, GError **error)
{
  GError *failure = NULL;
  gint number = tiny_recorder_try_replay (self->recorder, inputs, n, &failure);
  if (failure != NULL) {
    g_propagate_error (error, failure);
    return FALSE;
  }
  if (number < 0)
    return record (self, inputs, n, error);
  TinyTensor **results = get_results (self, (guint) number);
  for (guint i = 0; i < self->n_outputs; i++)
    g_set_object (&self->outputs[i], results[i]);
  return TRUE;
}

static gboolean
call_locked (TinyJit *self, TinyTensor *const *inputs, guint n, GError **error)
{
  if (!recording_realize_inputs (inputs, n, error))
    return FALSE;
  if (self->is_recorded)
    return replay (self, inputs, n, error);
  if (self->n_calls++ > 0 && !tiny_env_get_int (TINY_ENV_CHECK))
    return record (self, inputs, n, error);
  return tiny_recorder_prepare (self->recorder, inputs, n, error)
         && run (self, inputs, n, error);
}

gboolean
tiny_jit_call (TinyJit *self,
               TinyTensor *const *inputs,
               guint n_inputs,
               TinyTensor **outputs,
               GError **error)
{
  tiny_return_error_unless (TINY_IS_JIT (self), error, FALSE, "no jit given");
  tiny_return_error_unless (TINY_IS_LIST (inputs, n_inputs), error, FALSE,
                            "inputs are counted, but none are given");
  tiny_return_error_unless (self->function != NULL, error, FALSE,
                            "it was made without a function, or for too many outputs");
  tiny_runtime_open_default_device ();
  if (!tiny_runtime_lock_or_stop (error))
    return FALSE;
  gboolean good = call_locked (self, inputs, n_inputs, error);
  for (guint i = 0; good && outputs != NULL && i < self->n_outputs; i++)
    outputs[i] = self->outputs[i];
  tiny_runtime_unlock ();
  return good;
}

void
tiny_jit_reset (TinyJit *self)
{
  g_return_if_fail (TINY_IS_JIT (self));
  tiny_runtime_lock ();
  tiny_recorder_cancel (self->recorder);
  drop_results (self);
  self->is_recorded = FALSE;
  self->n_calls = MIN (self->n_calls, 1);
  tiny_runtime_unlock ();
}

guint
tiny_jit_get_n_kernels (TinyJit *self)
{
  g_return_val_if_fail (TINY_IS_JIT (self), 0);
  return tiny_recorder_get_n_kernels (self->recorder);
}
