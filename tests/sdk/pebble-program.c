/* SPDX-License-Identifier: MIT
 *
 * pebble-program.c: five results on PEBBLE, a line each: the number, or why there is none and what opening it again gives. */
#include <stdio.h>
#include <tiny.h>

static gboolean
compute (double number, double *out, GError **error)
{
  const gint64 shape[] = { 2 };
  const float data[] = { (float) number, 2 };
  TinyTensor *x
      = tiny_tensor_new_from_data ("PEBBLE", TINY_DTYPE_F32, shape, 1, data, sizeof data);
  g_autoptr (TinyTensor) sum
      = g_object_ref_sink (tiny_tensor_sum (tiny_tensor_mul_number (x, 3), NULL, 0, FALSE));
  return tiny_tensor_item (sum, out, error);
}

int
main (void)
{
  for (int i = 1; i <= 5; i++) {
    g_autoptr (GError) error = NULL, again = NULL;
    double found;
    if (compute (i, &found, &error))
      printf ("%g\n", found);
    else
      printf ("%s; again: %s\n", error->message,
              tiny_open_device ("PEBBLE", &again) != NULL ? "opened" : again->message);
  }
  return 0;
}
