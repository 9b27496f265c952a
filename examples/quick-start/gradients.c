/* SPDX-License-Identifier: MIT
 *
 * gradients.c: the gradient of a loss with respect to what it was computed from. */
#include <stdio.h>

#include <tiny.h>

int
main (void)
{
  g_autoptr (TinyTensor) x
      = g_object_ref_sink (tiny_tensor_linspace (TINY_DTYPE_F32, -1, 1, 5));
  tiny_tensor_set_requires_grad (x, TRUE);

  g_autoptr (TinyTensor) loss
      = g_object_ref_sink (tiny_tensor_sum (tiny_tensor_square (x), NULL, 0, FALSE));
  g_autoptr (GError) error = NULL;
  if (!tiny_tensor_backward (loss, &error)) { /* before the loss is read */
    fprintf (stderr, "%s\n", error->message);
    return 1;
  }
  g_autofree char *value = tiny_tensor_to_string (loss);
  g_autofree char *gradient = tiny_tensor_to_string (tiny_tensor_get_grad (x));
  printf ("%s\n%s\n", value, gradient);
  return 0;
}
