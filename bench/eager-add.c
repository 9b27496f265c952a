/* SPDX-License-Identifier: MIT
 *
 * eager-add.c: microseconds of `c = a + b; realise c; drop c`, with nothing captured.
 *
 * usage: eager-add [ITERATIONS [ELEMENTS]]. After the first the schedule comes from the cache. */
#include <stdio.h>
#include <stdlib.h>

#include <tiny.h>

enum { ROUNDS = 9 };

static TinyTensor *
new_input (gint64 n)
{
  return g_object_ref_sink (tiny_tensor_uniform (TINY_DTYPE_F32, &n, 1, 0, 1));
}

static int
compare_doubles (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;
  return x < y ? -1 : x > y;
}

static gboolean
add_often (TinyTensor *a, TinyTensor *b, gint64 iterations, GError **error)
{
  for (gint64 i = 0; i < iterations; i++) {
    g_autoptr (TinyTensor) c = g_object_ref_sink (tiny_tensor_add (a, b));
    if (!tiny_tensor_realize (c, error))
      return FALSE;
  }
  return TRUE;
}

int
main (int argc, char **argv)
{
  gint64 iterations = argc > 1 ? strtoll (argv[1], NULL, 10) : 10000;
  gint64 n = argc > 2 ? strtoll (argv[2], NULL, 10) : 1000;
  g_autoptr (TinyTensor) a = new_input (n);
  g_autoptr (TinyTensor) b = new_input (n);
  g_autoptr (GError) error = NULL;
  double us[ROUNDS];
  gboolean good = iterations > 0 && tiny_tensor_realize (a, &error)
                  && tiny_tensor_realize (b, &error) && add_often (a, b, 100, &error);
  for (guint r = 0; good && r < ROUNDS; r++) {
    gint64 start = g_get_monotonic_time ();
    good = add_often (a, b, iterations, &error);
    us[r] = (double) (g_get_monotonic_time () - start) / (double) iterations;
  }
  if (!good) {
    fprintf (stderr, "eager-add: %s\n", error ? error->message : "iterations are at least 1");
    return 1;
  }
  qsort (us, ROUNDS, sizeof *us, compare_doubles);
  printf ("{\"us_median\": %.3f, \"us_min\": %.3f}\n", us[ROUNDS / 2], us[0]);
  return 0;
}
