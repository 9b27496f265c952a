/* SPDX-License-Identifier: MIT
 *
 * test-recorder.c: which recording a call takes, and recordings that other threads meet: they neither end them nor leave
 * anything behind when they drop them, as collectors of garbage do. */
#include <tiny.h>

#include "../default-device.h"

static TinyTensor *
line (void)
{
  return g_object_ref_sink (
      tiny_tensor_cast (tiny_tensor_arange (TINY_DTYPE_I32, 0, 4, 1), TINY_DTYPE_F32));
}

static void
assert_last (TinyTensor *tensor, float want)
{
  g_autoptr (GError) error = NULL;
  float values[4] = { 0 };
  g_assert_true (tiny_tensor_copy_data (tensor, values, sizeof values, &error));
  g_assert_no_error (error);
  g_assert_cmpfloat (values[3], ==, want);
}

static TinyRecorder *
begin (TinyTensor *x)
{
  g_autoptr (GError) error = NULL;
  TinyRecorder *recorder = tiny_recorder_new ();
  g_assert_true (tiny_recorder_begin (recorder, &x, 1, &error));
  g_assert_no_error (error);
  return recorder;
}

typedef struct {
  TinyRecorder *recorder;
  TinyTensor *output;
} Other;

static gpointer
end (gpointer data)
{
  Other *self = data;
  g_autoptr (GError) error = NULL;
  for (guint i = 0; i < 20; i++) {
    g_assert_false (tiny_recorder_end (self->recorder, &self->output, 1, &error));
    g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
    g_clear_error (&error);
    tiny_recorder_get_n_kernels (self->recorder);
  }
  return NULL;
}

/* Who did not begin a recording is refused, before it ends, as it ends and after. */
static void
test_end (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) x = line ();
  g_autoptr (TinyRecorder) recorder = begin (x);
  g_autoptr (TinyTensor) y = g_object_ref_sink (tiny_tensor_mul_number (x, 2));
  Other other = { recorder, y };
  g_thread_join (g_thread_new ("ends", end, &other));
  GThread *threads[]
      = { g_thread_new ("ends", end, &other), g_thread_new ("ends", end, &other) };
  g_assert_true (tiny_recorder_end (recorder, &y, 1, &error));
  g_assert_no_error (error);
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
  const float next[] = { 1, 2, 3, 4 };
  g_assert_true (tiny_tensor_write_data (x, next, sizeof next, &error));
  g_assert_true (tiny_recorder_replay (recorder, &x, 1, &error));
  g_assert_no_error (error);
  assert_last (y, 8);
  g_assert_cmpuint (tiny_recorder_get_n_kernels (recorder), ==, 1);
  /* Another shape is another recording, which nobody made. */
  g_autoptr (TinyTensor) row = g_object_ref_sink (tiny_tensor_unsqueeze (x, 0));
  g_assert_false (tiny_recorder_replay (recorder, &row, 1, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, "recorded as (4,) of f32"));
  g_clear_error (&error);
  g_assert_cmpint (tiny_recorder_try_replay (recorder, &row, 1, &error), ==, -1);
  g_assert_no_error (error);
}

static gpointer
drop (gpointer recorder)
{
  g_object_unref (recorder);
  return NULL;
}

static gpointer
cancel (gpointer recorder)
{
  tiny_recorder_cancel (recorder);
  g_object_unref (recorder);
  return NULL;
}

/* What this thread does next is recorded nowhere: it realises, draws, asks for modes and gradients, reads, and records. */
static void
test_drop (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (GError) error = NULL;
  const GThreadFunc ways[] = { drop, cancel };
  g_autoptr (TinyModule) net = tiny_dropout_new (0.5);
  g_autoptr (TinyTensor) x = line ();
  for (guint i = 0; i < G_N_ELEMENTS (ways); i++) {
    TinyRecorder *gone = begin (x);
    g_autoptr (TinyTensor) y = g_object_ref_sink (tiny_tensor_mul_number (x, 2));
    g_assert_true (tiny_tensor_realize (y, &error));
    g_autoptr (TinyTensor) drawn
        = g_object_ref_sink (tiny_tensor_uniform (TINY_DTYPE_F32, (gint64[]){ 4 }, 1, 0, 1));
    g_thread_join (g_thread_new ("drops", ways[i], gone));
    g_autoptr (TinyTensor) again
        = g_object_ref_sink (tiny_tensor_uniform (TINY_DTYPE_F32, (gint64[]){ 4 }, 1, 0, 1));
    g_assert_true (tiny_module_get_training (net));
    g_assert_null (tiny_tensor_get_grad (x));
    TinyTensor *all[] = { drawn, again };
    g_assert_true (tiny_tensor_realize_many (all, 2, &error));
    assert_last (y, 6);
    g_autoptr (TinyRecorder) recorder = begin (x);
    g_autoptr (TinyTensor) z = g_object_ref_sink (tiny_tensor_add (y, x));
    g_assert_true (tiny_recorder_end (recorder, &z, 1, &error));
    g_assert_no_error (error);
    assert_last (z, 9);
  }
}

/* The first input's last element, times two, plus the second input; counts its calls. */
static gboolean
add_last (TinyTensor *const *inputs,
          guint n_inputs,
          TinyTensor **outputs,
          guint n_outputs,
          gpointer n_calls,
          GError **error)
{
  TinyTensor *last
      = tiny_tensor_slice (tiny_tensor_flatten (inputs[0], 0, -1), 0, -1, G_MAXINT64, 1);
  TinyTensor *sum = tiny_tensor_add (tiny_tensor_mul_number (last, 2), inputs[1]);
  outputs[0] = g_object_ref_sink (
      tiny_tensor_expand (tiny_tensor_cast (sum, TINY_DTYPE_F32), (gint64[]){ 4 }, 1));
  ++*(guint *) n_calls;
  return TRUE;
}

/* Inputs of another shape or dtype, another variable and a number in its place are another recording each: all are kept. */
static void
test_kinds (void)
{
  if (skips_without_device ())
    return;
  guint n_calls = 0;
  g_autoptr (TinyVariable) place = tiny_variable_new ("place", 0, 9);
  g_autoptr (TinyVariable) wide = tiny_variable_new ("place", 0, 99);
  g_autoptr (TinyTensor) x = line ();
  g_autoptr (TinyTensor) less = g_object_ref_sink (tiny_tensor_slice (x, 0, 0, 3, 1));
  g_autoptr (TinyTensor) whole = g_object_ref_sink (tiny_tensor_cast (x, TINY_DTYPE_I32));
  g_autoptr (TinyTensor) number = g_object_ref_sink (
      tiny_tensor_new_from_data (NULL, TINY_DTYPE_I32, NULL, 0, &(gint32){ 5 }, 4));
  g_autoptr (TinyJit) jit = tiny_jit_new (add_last, &n_calls, NULL, 1);
  for (int i = 0; i < 4; i++) {
    g_autoptr (TinyTensor) p = g_object_ref_sink (tiny_variable_bind (place, i));
    g_autoptr (TinyTensor) q = g_object_ref_sink (tiny_variable_bind (wide, 90 + i));
    TinyTensor *const calls[][2]
        = { { x, p }, { less, p }, { whole, p }, { x, q }, { x, number } };
    const float wanted[] = { 6.0F + i, 4.0F + i, 6.0F + i, 96.0F + i, 11 };
    for (guint k = 0; k < G_N_ELEMENTS (calls); k++) {
      g_autoptr (GError) error = NULL;
      TinyTensor *found = NULL;
      g_assert_true (tiny_jit_call (jit, calls[k], 2, &found, &error));
      assert_last (found, wanted[k]);
    }
  }
  /* The first call of all runs it plainly. */
  g_assert_cmpuint (n_calls, ==, 1 + 5);
}

/* Calls with @n elements; how often the function has run by then. */
static guint
call_with (TinyJit *jit, gint64 n, const guint *n_calls)
{
  g_autoptr (GError) error = NULL;
  TinyTensor *found = NULL;
  g_autoptr (TinyTensor) x
      = g_object_ref_sink (tiny_tensor_arange (TINY_DTYPE_F32, 0, (double) n, 1));
  g_autoptr (TinyTensor) one = g_object_ref_sink (tiny_tensor_ones (TINY_DTYPE_F32, NULL, 0));
  tiny_jit_call (jit, (TinyTensor *[]){ x, one }, 2, &found, &error);
  g_assert_no_error (error);
  assert_last (found, 2 * (float) (n - 1) + 1);
  return *n_calls;
}

/* The last eight recordings are kept: the ninth takes the place of the oldest, which is made once more. */
static void
test_most (void)
{
  enum { KEPT = 8 };
  guint n_calls = 0;
  if (skips_without_device ())
    return;
  g_autoptr (TinyJit) jit = tiny_jit_new (add_last, &n_calls, NULL, 1);
  call_with (jit, 1, &n_calls); /* plainly */
  for (gint64 n = 1; n <= KEPT + 1; n++)
    g_assert_cmpuint (call_with (jit, n, &n_calls), ==, 1 + n);
  for (gint64 n = 2; n <= KEPT + 1; n++)
    g_assert_cmpuint (call_with (jit, n, &n_calls), ==, 1 + KEPT + 1);
  g_assert_cmpuint (call_with (jit, 1, &n_calls), ==, 1 + KEPT + 2);
  g_assert_cmpuint (call_with (jit, 3, &n_calls), ==, 1 + KEPT + 2);
  g_assert_cmpuint (call_with (jit, 2, &n_calls), ==, 1 + KEPT + 3);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/nn/recorder/end", test_end);
  g_test_add_func ("/nn/recorder/drop", test_drop);
  g_test_add_func ("/nn/recorder/kinds", test_kinds);
  g_test_add_func ("/nn/recorder/most", test_most);
  return g_test_run ();
}
