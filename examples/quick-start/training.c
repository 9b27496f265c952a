/* SPDX-License-Identifier: MIT
 *
 * training.c: two layers that learn whether the two numbers of a row have the same sign. */
#include <stdio.h>

#include <tiny.h>

int
main (void)
{
  tiny_tensor_manual_seed (1);
  g_autoptr (TinyTensor) x
      = g_object_ref_sink (tiny_tensor_randn (TINY_DTYPE_F32, (gint64[]){ 256, 2 }, 2));
  g_autoptr (TinyTensor) same = g_object_ref_sink (
      tiny_tensor_gt (tiny_tensor_prod (x, (gint[]){ 1 }, 1, FALSE), tiny_tensor_scalar (0)));
  g_autoptr (TinyTensor) y = g_object_ref_sink (tiny_tensor_cast (same, TINY_DTYPE_I32));

  g_autoptr (TinyModule) model = tiny_sequential_new ();
  tiny_sequential_append (model, tiny_linear_new (2, 32, TRUE));
  tiny_sequential_append (model, tiny_activation_new ("relu"));
  tiny_sequential_append (model, tiny_linear_new (32, 2, TRUE));
  g_autoptr (GPtrArray) weights = tiny_module_get_parameters (model);
  g_autoptr (TinyOptimizer) adam = tiny_adam_new ((TinyTensor *const *) weights->pdata,
                                                  weights->len, 0.02, 0.9, 0.999, 1e-8, 0);
  g_autoptr (GError) error = NULL;
  for (guint step = 0; step <= 100; step++) {
    double value;
    g_autoptr (TinyTensor) loss = g_object_ref_sink (
        tiny_tensor_cross_entropy (tiny_module_forward (model, x), y, NULL, -100, "mean", 0));
    tiny_optimizer_zero_grad (adam);
    if (!tiny_tensor_backward (loss, &error) || !tiny_optimizer_step (adam, &loss, 1, &error)
        || !tiny_tensor_item (loss, &value, &error)) {
      fprintf (stderr, "%s\n", error->message);
      return 1;
    }
    if (step % 50 == 0)
      printf ("step %3u  loss %.2f\n", step, value);
  }
  return 0;
}
