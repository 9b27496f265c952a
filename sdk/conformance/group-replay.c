/* SPDX-License-Identifier: MIT
 *
 * group-replay.c: what the core records of a function and submits again is what the function gives,
 * with other inputs, with inputs whose memory was written anew, and with state that goes from call to
 * call. Numbers are small integers, so that every order of adding them is exact. */
#include <string.h>

#include "conformance.h"
#include "nn/tiny-jit.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor.h"

enum { SIDE = 24, N_CALLS = 8, N_VALUES = SIDE * SIDE };

static TinyTensor *
new_matrix (const ConfSubject *subject, guint salt)
{
  const gint64 shape[] = { SIDE, SIDE };
  float values[N_VALUES];
  for (guint i = 0; i < N_VALUES; i++)
    values[i] = (float) (gint) ((i * 7 + salt * 13) % 9) - 4;
  return g_object_ref_sink (tiny_tensor_new_from_data (
      tiny_device_get_name (subject->device), TINY_DTYPE_F32, shape, 2, values, sizeof values));
}

/* ---- what is recorded ---- */
typedef struct {
  TinyTensor *state; /* or NULL */
} Context;

/* One kernel. */
static gboolean
run_sum (TinyTensor *const *in,
         guint n,
         TinyTensor **out,
         guint n_out,
         gpointer data,
         GError **error)
{
  out[0] = g_object_ref_sink (tiny_tensor_add (tiny_tensor_mul (in[0], in[0]), in[1]));
  return tiny_tensor_realize (out[0], error);
}

/* Several that depend on each other, and a reduction. */
static gboolean
run_layers (TinyTensor *const *in,
            guint n,
            TinyTensor **out,
            guint n_out,
            gpointer data,
            GError **error)
{
  const gint axis = 1;
  g_autoptr (TinyTensor) hidden
      = g_object_ref_sink (tiny_tensor_relu (tiny_tensor_matmul (in[0], in[1])));
  if (!tiny_tensor_realize (hidden, error))
    return FALSE;
  out[0] = g_object_ref_sink (tiny_tensor_add (
      hidden, tiny_tensor_sum (tiny_tensor_add (hidden, in[0]), &axis, 1, TRUE)));
  return tiny_tensor_realize (out[0], error);
}

/* State that is written by every call and read by the next. */
static gboolean
run_state (TinyTensor *const *in,
           guint n,
           TinyTensor **out,
           guint n_out,
           gpointer data,
           GError **error)
{
  Context *context = data;
  if (!tiny_tensor_assign (context->state, tiny_tensor_add (context->state, in[0]), error)
      || !tiny_tensor_realize (context->state, error))
    return FALSE;
  out[0] = g_object_ref_sink (tiny_tensor_add (context->state, in[1]));
  return tiny_tensor_realize (out[0], error);
}

static const TinyJitFunction functions[] = { run_sum, run_layers, run_state };

/* ---- comparing ---- */
static gboolean
compare (ConfTrial *trial, TinyTensor *replayed, TinyTensor *eager, guint call)
{
  float a[N_VALUES], b[N_VALUES];
  GError *error = NULL;
  if (!tiny_tensor_copy_data (replayed, a, sizeof a, &error)
      || !tiny_tensor_copy_data (eager, b, sizeof b, &error))
    return conf_check_error (trial, error, "reading results");
  for (guint i = 0; i < N_VALUES; i++)
    if (!conf_check (trial, a[i] == b[i],
                     "call %u: element %u of the recorded function is %g, and it gives %g",
                     call, i, (double) a[i], (double) b[i]))
      return FALSE;
  return TRUE;
}

/* args: the function, and whether inputs are the same tensors whose memory is written anew. */
static void
run_replay (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  gboolean rewrites = self->args[1] != 0;
  TinyJitFunction function = functions[self->args[0]];
  GError *error = NULL;
  Context recorded = { 0 }, eager = { 0 };
  if (!conf_needs (trial, subject->device, "device"))
    return;
  recorded.state = new_matrix (subject, 100);
  eager.state = new_matrix (subject, 100);
  g_autoptr (TinyJit) jit = tiny_jit_new (function, &recorded, NULL, 1);
  g_autoptr (TinyTensor) kept = new_matrix (subject, 0);
  g_autoptr (TinyTensor) other = new_matrix (subject, 50);
  for (guint call = 0; call < N_CALLS && !conf_has_failed (trial); call++) {
    g_autoptr (TinyTensor) fresh = new_matrix (subject, call);
    TinyTensor *x = rewrites ? kept : fresh, *output = NULL, *wanted = NULL;
    if (rewrites) {
      float values[N_VALUES];
      if (!tiny_tensor_copy_data (fresh, values, sizeof values, &error)
          || !tiny_tensor_write_data (kept, values, sizeof values, &error))
        conf_check_error (trial, g_steal_pointer (&error), "writing an input");
    }
    TinyTensor *inputs[] = { x, other };
    if (!tiny_jit_call (jit, inputs, 2, &output, &error)
        || !function (inputs, 2, &wanted, 1, &eager, &error))
      conf_check_error (trial, g_steal_pointer (&error), "call");
    else
      compare (trial, output, wanted, call);
    g_clear_object (&wanted);
  }
  conf_check (trial, conf_has_failed (trial) || tiny_jit_get_n_kernels (jit) > 0,
              "nothing was recorded");
  g_object_unref (recorded.state);
  g_object_unref (eager.state);
}

static void
list (const ConfSubject *subject, ConfList *out)
{
  static const char *const names[] = { "one-kernel", "layers", "state" };
  if (subject->device == NULL)
    return;
  if ((subject->target->ops[TINY_DTYPE_F32] & TINY_INSTR_BIT (TINY_INSTR_ADD)) == 0) {
    conf_list_absent (out, "the target has no floats", "functions");
    return;
  }
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    for (gint64 rewrites = 0; rewrites < 2; rewrites++) {
      const ConfCase it = { .run = run_replay, .args = { i, rewrites } };
      conf_list_add (out, &it, "%s/%s", names[i], rewrites ? "written-anew" : "other-inputs");
    }
}

const ConfGroup conf_group_replay
    = { "replay", "what was recorded gives what the function gives", list };
