/* SPDX-License-Identifier: MIT
 *
 * choose-device.c: the best device that there is, or the one that the user named in DEV. */
#include <stdio.h>

#include <tiny.h>

int
main (void)
{
  g_autoptr (GError) error = NULL;
  const char *name = tiny_get_default_device (&error);
  if (name == NULL) {
    fprintf (stderr, "%s\n", error->message);
    return 1;
  }
  g_autoptr (TinyTensor) x
      = g_object_ref_sink (tiny_tensor_ones (TINY_DTYPE_F32, (gint64[]){ 3 }, 1));
  g_autoptr (TinyTensor) y = g_object_ref_sink (tiny_tensor_to (x, "REF"));
  if (!tiny_tensor_realize_many ((TinyTensor *[]){ x, y }, 2, &error)
      || !tiny_set_default_device ("REF", &error)) {
    fprintf (stderr, "%s\n", error->message);
    return 1;
  }
  printf ("%s: %s and %s\n", name, tiny_tensor_get_device (x), tiny_tensor_get_device (y));
  printf ("from now on: %s\n", tiny_get_default_device (NULL));
  return 0;
}
