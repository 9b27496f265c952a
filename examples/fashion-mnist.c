/* SPDX-License-Identifier: MIT
 *
 * fashion-mnist.c: trains a small convolutional network on Fashion-MNIST, in one screen.
 *
 * DEV=CPU ./fashion-mnist [STEPS]     (the data: apt install dataset-fashion-mnist) */
#include <stdio.h>
#include <stdlib.h>

#include <tiny.h>

static gboolean
train (guint n_steps, GError **error)
{
  g_auto (TinyDataSet) data = { 0 };
  if (!tiny_data_set_load ("fashion-mnist", NULL, &data, error))
    return FALSE;
  const gint64 image[] = { 1, 28, 28 };
  g_autoptr (TinyLoader) batches = tiny_loader_new (data.images.data, data.labels.data, image,
                                                    3, 128, TRUE, /* seed */ 1, error);
  g_autoptr (TinyLoader) tests = tiny_loader_new (data.test_images.data, data.test_labels.data,
                                                  image, 3, 500, FALSE, 0, error);
  if (batches == NULL || tests == NULL)
    return FALSE;

  tiny_tensor_manual_seed (1);
  g_autoptr (TinyModule) net = tiny_image_classifier_new (data.n_classes);
  g_autoptr (GPtrArray) parameters = tiny_module_get_parameters (net);
  g_autoptr (TinyOptimizer) adam = tiny_adam_new ((TinyTensor *const *) parameters->pdata,
                                                  parameters->len, 1e-3, 0.9, 0.999, 1e-8, 0);
  g_autoptr (TinyTrainer) trainer = tiny_trainer_new (net, adam);

  for (guint step = 0; step < n_steps; step++) {
    g_autoptr (TinyTensor) x = NULL, y = NULL;
    double loss;
    if (step % tiny_loader_get_n_batches (batches) == 0)
      tiny_loader_start_epoch (batches, step / tiny_loader_get_n_batches (batches));
    tiny_loader_next (batches, &x, &y);
    if (!tiny_trainer_step (trainer, x, y, &loss, error))
      return FALSE;
    if (step % 20 == 0 || step + 1 == n_steps)
      printf ("step %4u  loss %.4f\n", step, loss);
  }
  double accuracy;
  if (!tiny_trainer_evaluate (trainer, tests, &accuracy, error))
    return FALSE;
  printf ("test accuracy %.4f, %u kernels a step\n", accuracy,
          tiny_trainer_get_n_kernels (trainer));
  return TRUE;
}

int
main (int argc, char *argv[])
{
  g_autoptr (GError) error = NULL;
  if (train (argc > 1 ? (guint) atoi (argv[1]) : 468, &error))
    return 0;
  fprintf (stderr, "fashion-mnist: %s\n", error->message);
  return 1;
}
