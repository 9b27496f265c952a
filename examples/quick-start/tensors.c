/* SPDX-License-Identifier: MIT
 *
 * tensors.c: making tensors and computing with them. */
#include <stdio.h>

#include <tiny.h>

int
main (void)
{
  const float data[] = { 1, 2, 3, 4, 5, 6 };
  g_autoptr (TinyTensor) a = g_object_ref_sink (tiny_tensor_new_from_data (
      NULL, TINY_DTYPE_F32, (gint64[]){ 2, 3 }, 2, data, sizeof data));
  g_autoptr (TinyTensor) row
      = g_object_ref_sink (tiny_tensor_arange (TINY_DTYPE_F32, 10, 40, 10));

  /* Operations take the floating references of their arguments: what is not kept needs no owner. */
  g_autoptr (TinyTensor) b = g_object_ref_sink (
      tiny_tensor_mul (tiny_tensor_add (a, row), tiny_tensor_scalar (0.5)));
  g_autoptr (TinyTensor) product
      = g_object_ref_sink (tiny_tensor_matmul (a, tiny_tensor_transpose (a, 0, 1)));

  /* Nothing has been computed so far; reading does it. */
  g_autofree char *text = tiny_tensor_to_string (b);
  g_autofree char *more = tiny_tensor_to_string (product);
  printf ("%s\n%s\n", text, more);

  /* What is wrong is an error in the tensor, which comes to light where it is read. */
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) wrong = g_object_ref_sink (tiny_tensor_matmul (a, a));
  if (!tiny_tensor_realize (wrong, &error))
    printf ("%s\n", error->message);
  return 0;
}
