/* SPDX-License-Identifier: MIT
 *
 * reads-failures.c: a program on an asynchronous device whose work is late, fails, or is lost.
 *
 * Built against an installation alone. usage: reads-failures late|fault|lost; it says what went wrong. */
#include <stdio.h>
#include <string.h>
#include <tiny.h>

enum { N = 100 };

static TinyTensor *
keep (TinyTensor *tensor)
{
  return g_object_ref_sink (tensor);
}

static TinyTensor *
twos (void)
{
  float data[N];
  for (guint i = 0; i < N; i++)
    data[i] = 2;
  return keep (
      tiny_tensor_new_from_data (NULL, TINY_DTYPE_F32, (gint64[]){ N }, 1, data, sizeof data));
}

static void
realize (TinyTensor *tensor, const char *name)
{
  g_autoptr (GError) error = NULL;
  gint64 start = g_get_monotonic_time ();
  if (!tiny_tensor_realize (tensor, &error))
    printf ("realize %s: %s\n", name, error->message);
  else if (g_get_monotonic_time () - start > 250000)
    printf ("realize %s waited\n", name);
}

static void
read_values (TinyTensor *tensor, const char *name)
{
  g_autoptr (GError) error = NULL;
  float data[N];
  if (!tiny_tensor_copy_data (tensor, data, sizeof data, &error))
    printf ("read %s: %d: %s\n", name, error->code, error->message);
  else
    printf ("read %s: %g %g\n", name, data[0], data[N - 1]);
}

int
main (int argc, char **argv)
{
  const gboolean late = strcmp (argv[1], "late") == 0;
  g_autoptr (TinyTensor) x = twos ();
  if (late) { /* kernels are compiled and caches warm */
    g_autoptr (TinyTensor) first = keep (tiny_tensor_add (x, x));
    realize (first, "first");
    read_values (first, "first");
  }
  g_autoptr (TinyTensor) a = keep (tiny_tensor_add (x, x));
  gint64 start = g_get_monotonic_time ();
  realize (a, "a");
  if (late) {
    read_values (a, "a");
    printf (g_get_monotonic_time () - start >= 300000 ? "in time\n" : "too early\n");
    return 0;
  }
  g_autoptr (TinyTensor) b = keep (tiny_tensor_mul (a, a));
  realize (b, "b"); /* fails, or is lost, some time */
  read_values (b, "b");
  read_values (b, "b");
  g_autoptr (TinyTensor) c = keep (tiny_tensor_add (b, x));
  realize (c, "c");
  read_values (a, "a");
  read_values (x, "x");
  g_autoptr (TinyTensor) d = keep (tiny_tensor_mul (a, a));
  realize (d, "d");
  read_values (d, "d");
  return 0;
}
