/* SPDX-License-Identifier: MIT
 *
 * first-add.c: the least a program can do: adds two tensors of 1000 elements, looks at the sum.
 *
 * bench/bars times the whole process; what main () took is printed apart. */
#include <stdio.h>

#include <tiny.h>

enum { N = 1000 };

int
main (void)
{
  gint64 start = g_get_monotonic_time ();
  static float left[N], right[N];
  for (guint i = 0; i < N; i++) {
    left[i] = (float) i;
    right[i] = 1;
  }
  TinyTensor *a
      = tiny_tensor_new_from_data (NULL, TINY_DTYPE_F32, (gint64[]){ N }, 1, left, sizeof left);
  TinyTensor *b = tiny_tensor_new_from_data (NULL, TINY_DTYPE_F32, (gint64[]){ N }, 1, right,
                                             sizeof right);
  g_autoptr (TinyTensor) c = g_object_ref_sink (tiny_tensor_add (a, b));
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = tiny_tensor_get_data (c, &error);
  if (bytes == NULL) {
    fprintf (stderr, "first-add: %s\n", error->message);
    return 1;
  }
  const float *sum = g_bytes_get_data (bytes, NULL);
  for (guint i = 0; i < N; i++)
    if (sum[i] != (float) (i + 1)) {
      fprintf (stderr, "first-add: element %u is %g\n", i, sum[i]);
      return 1;
    }
  printf ("{\"main_ms\": %.3f}\n", (double) (g_get_monotonic_time () - start) * 1e-3);
  return 0;
}
