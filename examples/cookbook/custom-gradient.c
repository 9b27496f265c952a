/* SPDX-License-Identifier: MIT
 *
 * custom-gradient.c: rounding, whose gradient is taken to be 1 (straight through). */
#include <stdio.h>

#include <tiny.h>

static GPtrArray *
round_it (TinyTensor *const *x, guint n, gpointer user_data, GError **error)
{
  return tiny_tensors (tiny_tensor_round (x[0]), NULL);
}

static GPtrArray *
straight_through (TinyTensor *const *gradients,
                  guint n_gradients,
                  TinyTensor *const *x,
                  guint n_x,
                  TinyTensor *const *y,
                  guint n_y,
                  gpointer user_data,
                  GError **error)
{
  return tiny_tensors (gradients[0], NULL);
}

int
main (void)
{
  g_autoptr (TinyTensor) x = g_object_ref_sink (tiny_tensor_linspace (TINY_DTYPE_F32, 0, 2, 4));
  g_autoptr (GPtrArray) y
      = tiny_custom_gradient (round_it, NULL, straight_through, NULL, NULL, &x, 1);
  g_autoptr (TinyTensor) loss
      = g_object_ref_sink (tiny_tensor_sum (tiny_tensor_square (y->pdata[0]), NULL, 0, FALSE));
  g_autoptr (GPtrArray) gradient = tiny_tensor_gradient (loss, &x, 1, NULL);
  g_autofree char *rounded = tiny_tensor_to_string (y->pdata[0]);
  g_autofree char *slope = tiny_tensor_to_string (gradient->pdata[0]);
  printf ("%s\n%s\n", rounded, slope);
  return 0;
}
