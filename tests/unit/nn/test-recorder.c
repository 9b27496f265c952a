/* SPDX-License-Identifier: MIT
 *
 * test-recorder.c: recordings that other threads meet: they neither end them nor leave anything behind when they
 * drop them, as collectors of garbage do. */
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

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/nn/recorder/end", test_end);
  g_test_add_func ("/nn/recorder/drop", test_drop);
  return g_test_run ();
}
