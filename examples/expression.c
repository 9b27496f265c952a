/* SPDX-License-Identifier: MIT
 *
 * expression.c: a first program: some arithmetic, a gradient, an error. */
#include <stdio.h>

#include <tiny.h>

static void
show (const char *what, TinyTensor *tensor)
{
  g_autofree char *text = tiny_tensor_to_string (tensor);
  printf ("%s:\n%s\n", what, text);
}

int
main (void)
{
  const float data[] = { 1, 2, 3, 4, 5, 6 };
  g_autoptr (TinyTensor) x = g_object_ref_sink (tiny_tensor_new_from_data (
      NULL, TINY_DTYPE_F32, (gint64[]){ 2, 3 }, 2, data, sizeof data));
  tiny_tensor_set_requires_grad (x, TRUE);

  /* Nothing is computed before it is shown, and nothing in between needs to be freed. */
  g_autoptr (TinyTensor) loss
      = g_object_ref_sink (tiny_tensor_sum (tiny_tensor_square (x), NULL, 0, FALSE));
  if (tiny_tensor_backward (loss, NULL))
    show ("the gradient of a sum of squares", tiny_tensor_get_grad (x));
  show ("the sum", loss);

  g_autoptr (TinyTensor) wrong = g_object_ref_sink (tiny_tensor_matmul (x, x));
  show ("what cannot be", wrong);
  return 0;
}
