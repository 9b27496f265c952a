/* SPDX-License-Identifier: MIT
 *
 * test-recording.c: a replay runs the kernels that the plain step runs: what a recorded function leaves takes no more work
 * than itself, and what it replaces is let go of. */
#include <math.h>
#include <string.h>
#include <tiny.h>

#include "../default-device.h"
#include "engine/tiny-runtime.h"

enum { ROWS = 64, WIDTH = 16, N_INPUTS = 3 };

static TinyTensor *
wave (double scale)
{
  float data[ROWS * WIDTH];
  for (guint i = 0; i < G_N_ELEMENTS (data); i++)
    data[i] = (float) (sin (scale * i) * scale);
  return g_object_ref_sink (tiny_tensor_new_from_data (
      NULL, TINY_DTYPE_F32, (gint64[]){ ROWS, WIDTH }, 2, data, sizeof data));
}

/* The gradients of queries, keys and values in one. */
static gboolean
step (TinyTensor *const *inputs,
      guint n_inputs,
      TinyTensor **outputs,
      guint n_outputs,
      gpointer user_data,
      GError **error)
{
  TinyTensor *gradients[N_INPUTS];
  for (guint i = 0; i < N_INPUTS; i++)
    tiny_tensor_clear_grad (inputs[i]);
  TinyTensor *scores = tiny_tensor_matmul (inputs[0], tiny_tensor_transpose (inputs[1], 0, 1));
  TinyTensor *result = tiny_tensor_matmul (tiny_tensor_softmax (scores, -1), inputs[2]);
  g_autoptr (TinyTensor) loss
      = g_object_ref_sink (tiny_tensor_sum (tiny_tensor_sin (result), NULL, 0, FALSE));
  if (!tiny_tensor_backward (loss, error))
    return FALSE;
  for (guint i = 0; i < N_INPUTS; i++)
    gradients[i] = tiny_tensor_get_grad (inputs[i]);
  outputs[0] = g_object_ref_sink (tiny_tensor_cat (gradients, N_INPUTS, 0));
  return tiny_tensor_realize (outputs[0], error);
}

/* Kernels of the step without a recording. */
static guint64
count_plain (TinyTensor *const *inputs)
{
  TinyCounters before, after;
  TinyTensor *output = NULL;
  g_autoptr (GError) error = NULL;
  tiny_runtime_get_counters (&before);
  step (inputs, N_INPUTS, &output, 1, NULL, &error);
  g_assert_no_error (error);
  g_object_unref (output);
  tiny_runtime_get_counters (&after);
  return after.n_kernels - before.n_kernels;
}

static void
assert_gradient (TinyTensor *input, TinyTensor *all, guint i)
{
  g_autoptr (GError) error = NULL;
  float got[ROWS * WIDTH], wanted[N_INPUTS * ROWS * WIDTH];
  g_assert_true (tiny_tensor_copy_data (tiny_tensor_get_grad (input), got, sizeof got, &error));
  g_assert_no_error (error);
  g_assert_true (tiny_tensor_copy_data (all, wanted, sizeof wanted, &error));
  g_assert_cmpmem (got, sizeof got, wanted + i * G_N_ELEMENTS (got), sizeof got);
}

static void
test_gradients (void)
{
  if (skips_without_device ())
    return;
  TinyTensor *inputs[N_INPUTS], *output = NULL;
  g_autoptr (GError) error = NULL;
  for (guint i = 0; i < N_INPUTS; i++)
    tiny_tensor_set_requires_grad (inputs[i] = wave (0.25 * (i + 1)), TRUE);
  const guint64 n_kernels = count_plain (inputs);
  TinyTensor *before = tiny_tensor_get_grad (inputs[0]);
  g_object_add_weak_pointer (G_OBJECT (before), (gpointer *) &before);
  g_autoptr (TinyJit) jit = tiny_jit_new (step, NULL, NULL, 1);
  for (guint i = 0; i < 3; i++) {
    tiny_jit_call (jit, inputs, N_INPUTS, &output, &error);
    g_assert_no_error (error);
    if (i == 0) { /* which is not recorded: the recording finds the gradients of this call */
      g_assert_null (before);
      before = tiny_tensor_get_grad (inputs[0]);
      g_object_add_weak_pointer (G_OBJECT (before), (gpointer *) &before);
    }
  }
  g_assert_cmpuint (tiny_jit_get_n_kernels (jit), ==, n_kernels);
  g_assert_null (before);
  for (guint i = 0; i < N_INPUTS; i++)
    assert_gradient (inputs[i], output, i);
  for (guint i = 0; i < N_INPUTS; i++)
    g_object_unref (inputs[i]);
}

static gboolean
scale (TinyTensor *const *inputs,
       G_GNUC_UNUSED guint n_inputs,
       TinyTensor **outputs,
       G_GNUC_UNUSED guint n_outputs,
       gpointer weights,
       G_GNUC_UNUSED GError **error)
{
  outputs[0] = g_object_ref_sink (
      tiny_tensor_sum (tiny_tensor_mul (inputs[0], weights), (gint[]){ 1 }, 1, FALSE));
  return TRUE;
}

/* The first call runs the function, the second records it with what the first has planned. */
static void
test_one_schedule (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (TinyTensor) x = wave (0.5), weights = wave (0.25);
  g_assert_true (tiny_tensor_realize_many ((TinyTensor *[]){ x, weights }, 2, NULL));
  g_autoptr (TinyJit) jit = tiny_jit_new (scale, weights, NULL, 1);
  TinyCounters first = { 0 }, now;
  for (guint i = 0; i < 3; i++) {
    TinyTensor *output;
    g_assert_true (tiny_jit_call (jit, &x, 1, &output, NULL));
    tiny_runtime_get_counters (&now);
    first = i == 0 ? now : first;
    g_assert_cmpuint (now.n_schedules, ==, first.n_schedules);
  }
  g_assert_cmpuint (tiny_jit_get_n_kernels (jit), >, 0);
}

typedef struct {
  TinyModule *layer;
  TinyOptimizer *optimizer; /* or NULL: it only goes forward */
} Fresh;

static gboolean
run_fresh (TinyTensor *const *inputs,
           G_GNUC_UNUSED guint n_inputs,
           TinyTensor **outputs,
           G_GNUC_UNUSED guint n_outputs,
           gpointer user_data,
           GError **error)
{
  Fresh *self = user_data;
  outputs[0] = g_object_ref_sink (tiny_tensor_sum (
      tiny_tensor_sin (tiny_module_forward (self->layer, inputs[0])), NULL, 0, FALSE));
  if (self->optimizer == NULL)
    return TRUE;
  tiny_optimizer_zero_grad (self->optimizer);
  return tiny_tensor_backward (outputs[0], error)
         && tiny_optimizer_step (self->optimizer, outputs, 1, error);
}

/* The weights of a new layer wait to be assigned: they are a schedule of their own, so the step is scheduled once. */
static void
test_fresh (gconstpointer trains)
{
  if (skips_without_device ())
    return;
  g_autoptr (TinyModule) layer = tiny_linear_new (WIDTH, WIDTH / 2, TRUE);
  g_autoptr (GPtrArray) weights = tiny_module_get_parameters (layer);
  g_autoptr (TinyOptimizer) sgd
      = tiny_sgd_new ((TinyTensor *const *) weights->pdata, weights->len, 0.125, 0, 0, FALSE);
  g_autoptr (TinyTensor) x = wave (0.5);
  Fresh fresh = { layer, trains != NULL ? sgd : NULL };
  g_autoptr (TinyJit) jit = tiny_jit_new (run_fresh, &fresh, NULL, 1);
  TinyCounters before, first = { 0 }, now;
  tiny_runtime_get_counters (&before);
  for (guint i = 0; i < 3; i++) {
    g_autoptr (GError) error = NULL;
    tiny_jit_call (jit, &x, 1, NULL, &error);
    g_assert_no_error (error);
    tiny_runtime_get_counters (&now);
    first = i == 0 ? now : first;
    g_assert_cmpuint (now.n_schedules, ==, first.n_schedules);
  }
  g_assert_cmpuint (first.n_schedules - before.n_schedules, <=, 2);
}

/* An assignment that waits and can never be made fails who reads it, and neither the recording nor what else waits. */
static void
test_hopeless (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) hopeless = wave (0.5), waits = wave (0.25), x = wave (1);
  TinyTensor *nowhere = tiny_tensor_to (wave (0.5), "NULL");
  g_assert_true (tiny_tensor_assign (
      hopeless, tiny_tensor_to (tiny_tensor_sin (nowhere), tiny_tensor_get_device (x)), NULL));
  g_assert_true (tiny_tensor_assign (waits, tiny_tensor_add_number (waits, 1), NULL));
  g_autoptr (TinyJit) jit = tiny_jit_new (scale, x, NULL, 1);
  for (guint i = 0; i < 3; i++) {
    TinyTensor *output;
    tiny_jit_call (jit, &x, 1, &output, &error);
    g_assert_no_error (error);
  }
  g_assert_true (tiny_tensor_is_realized (waits));
  g_assert_null (tiny_tensor_get_data (hopeless, &error));
  g_assert_nonnull (strstr (error->message, "runs nothing"));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/nn/recording/gradients", test_gradients);
  g_test_add_data_func ("/nn/recording/fresh/forward", NULL, test_fresh);
  g_test_add_data_func ("/nn/recording/fresh/training", "trains", test_fresh);
  g_test_add_func ("/nn/recording/one-schedule", test_one_schedule);
  g_test_add_func ("/nn/recording/hopeless", test_hopeless);
  return g_test_run ();
}
