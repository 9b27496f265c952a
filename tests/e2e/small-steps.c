/* SPDX-License-Identifier: MIT
 *
 * small-steps.c: small-steps train|killed|threads|devices: a program that test-replay.py records. Trains a layer for
 * two steps and prints what it came to; is killed after that; computes in four threads; computes on REF what the
 * default device goes on with. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiny.h>

enum { BATCH = 8, IN = 6, CLASSES = 3, N_THREADS = 4 };

static TinyTensor *
numbers (const char *device, guint rows, guint columns)
{
  float values[BATCH * IN];
  const gint64 shape[] = { rows, columns };
  for (guint i = 0; i < rows * columns; i++)
    values[i] = (float) (i * 7 % 13) / 8 - 0.6f;
  return g_object_ref_sink (tiny_tensor_new_from_data (device, TINY_DTYPE_F32, shape, 2, values,
                                                       rows * columns * sizeof (float)));
}

static gboolean
train (GError **error)
{
  gint32 classes[BATCH];
  const gint64 n = BATCH;
  for (guint i = 0; i < BATCH; i++)
    classes[i] = (gint32) (i % CLASSES);
  tiny_tensor_manual_seed (3);
  g_autoptr (TinyModule) layer = tiny_linear_new (IN, CLASSES, TRUE);
  g_autoptr (GPtrArray) parameters = tiny_module_get_parameters (layer);
  g_autoptr (TinyOptimizer) adam = tiny_adam_new ((TinyTensor *const *) parameters->pdata,
                                                  parameters->len, 1e-2, 0.9, 0.999, 1e-8, 0);
  g_autoptr (TinyTrainer) trainer = tiny_trainer_new (layer, adam);
  for (guint step = 0; step < 2; step++) {
    g_autoptr (TinyTensor) x = numbers (NULL, BATCH, IN);
    g_autoptr (TinyTensor) y = g_object_ref_sink (
        tiny_tensor_new_from_data (NULL, TINY_DTYPE_I32, &n, 1, classes, sizeof classes));
    double loss;
    if (!tiny_trainer_step (trainer, x, y, &loss, error))
      return FALSE;
    printf ("loss %.6f\n", loss);
  }
  return TRUE;
}

static gboolean
compute (const char *device, GError **error)
{
  g_autoptr (TinyTensor) x = numbers (device, BATCH, IN);
  g_autoptr (TinyTensor) y = g_object_ref_sink (tiny_tensor_to (tiny_tensor_square (x), NULL));
  g_autoptr (TinyTensor) sum = g_object_ref_sink (tiny_tensor_sum (y, NULL, 0, FALSE));
  float total;
  if (!tiny_tensor_copy_data (sum, &total, sizeof total, error))
    return FALSE;
  printf ("sum %.6f\n", (double) total);
  return TRUE;
}

static gpointer
run_thread (gpointer unused)
{
  GError *error = NULL;
  for (guint i = 0; i < 5 && error == NULL; i++)
    compute (NULL, &error);
  return error;
}

static gboolean
compute_in_threads (GError **error)
{
  GThread *threads[N_THREADS];
  GError *first = NULL;
  for (guint i = 0; i < N_THREADS; i++)
    threads[i] = g_thread_new ("compute", run_thread, NULL);
  for (guint i = 0; i < N_THREADS; i++) {
    GError *wrong = g_thread_join (threads[i]);
    if (first == NULL)
      first = wrong;
    else
      g_clear_error (&wrong);
  }
  if (first != NULL)
    g_propagate_error (error, first);
  return first == NULL;
}

int
main (int argc, char **argv)
{
  const char *what = argc > 1 ? argv[1] : "train";
  g_autoptr (GError) error = NULL;
  gboolean good = g_str_equal (what, "threads")   ? compute_in_threads (&error)
                  : g_str_equal (what, "devices") ? compute ("REF", &error)
                                                  : train (&error);
  fflush (stdout);
  if (good && g_str_equal (what, "killed"))
    raise (SIGKILL);
  if (!good)
    g_printerr ("small-steps: %s\n", error->message);
  return good ? 0 : 1;
}
