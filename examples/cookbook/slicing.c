/* SPDX-License-Identifier: MIT
 *
 * slicing.c: x[1:, ::2] and x[0, :] = -1. */
#include <stdio.h>

#include <tiny.h>

int
main (void)
{
  g_autoptr (TinyTensor) x = g_object_ref_sink (tiny_tensor_reshape (
      tiny_tensor_arange (TINY_DTYPE_I32, 0, 12, 1), (gint64[]){ 3, 4 }, 2));

  /* A letter for each part of the subscript: s a slice, i a number, : a whole axis. */
  const gint64 part[] = { 1, TINY_SLICE_END, 1, TINY_SLICE_BEGIN, TINY_SLICE_END, 2 };
  g_autoptr (TinyTensor) y
      = g_object_ref_sink (tiny_tensor_index (x, "ss", part, G_N_ELEMENTS (part), NULL, 0));
  g_autofree char *before = tiny_tensor_to_string (y);

  g_autoptr (GError) error = NULL;
  if (!tiny_tensor_set_index (x, "i:", (gint64[]){ 0 }, 1, NULL, 0, tiny_tensor_scalar (-1),
                              &error)) {
    fprintf (stderr, "%s\n", error->message);
    return 1;
  }
  g_autofree char *after = tiny_tensor_to_string (x);
  printf ("%s\n%s\n", before, after);
  return 0;
}
