/* SPDX-License-Identifier: MIT
 *
 * tiny-jit.c: a function of the program around a recorder. */
#include "nn/tiny-jit.h"

#include "base/tiny-guard.h"
#include "engine/tiny-runtime.h"
#include "nn/recorder-private.h"
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
tiny_jit_finalize (GObject *object)
{
  TinyJit *self = TINY_JIT (object);
  g_clear_object (&self->recorder);
  drop_outputs (self);
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

static gboolean
record (TinyJit *self, TinyTensor *const *inputs, guint n, GError **error)
{
  if (!tiny_recorder_begin (self->recorder, inputs, n, error))
    return FALSE;
  gboolean good = run (self, inputs, n, error);
  if (good)
    part_from_inputs (self, inputs, n);
  self->is_recorded
      = good && tiny_recorder_end (self->recorder, self->outputs, self->n_outputs, error);
  if (!self->is_recorded)
    tiny_recorder_cancel (self->recorder);
  return self->is_recorded;
}

static gboolean
call_locked (TinyJit *self, TinyTensor *const *inputs, guint n, GError **error)
{
  if (!recorder_realize_inputs (inputs, n, error))
    return FALSE;
  if (self->is_recorded)
    return tiny_recorder_replay (self->recorder, inputs, n, error);
  return self->n_calls++ == 0 ? run (self, inputs, n, error) : record (self, inputs, n, error);
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
  tiny_runtime_lock ();
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
