/* SPDX-License-Identifier: MIT */
#include "kernel-values.h"

#include <math.h>
#include <string.h>

#include "base/tiny-float.h"

static guint
pick (GRand *random, guint n)
{
  return (guint) g_rand_int_range (random, 0, (gint32) n);
}

static gint64
hostile_integer (GRand *random, gint64 n_elements)
{
  const gint64 one = 1, n = n_elements;
  const gint64 all[] = { 0,
                         1,
                         -1,
                         n - 1,
                         n,
                         -n,
                         n + 1,
                         2 * n,
                         one << 31,
                         (one << 32) - 1,
                         one << 32,
                         (one << 32) + 1,
                         -(one << 31) - 1,
                         one << 40,
                         one << 48,
                         one << 61,
                         (one << 61) - 1,
                         one << 62,
                         (one << 62) + 1,
                         (one << 62) + (one << 20),
                         G_MAXINT64,
                         G_MAXINT64 - (one << 20),
                         G_MININT64,
                         G_MININT64 + 5,
                         -(one << 62) };
  const gint64 value = all[pick (random, G_N_ELEMENTS (all))];
  return pick (random, 4) > 0 ? value : (gint64) ((guint64) value + pick (random, 64));
}

static double
hostile_float (GRand *random, gint64 n)
{
  const double all[]
      = { 0,      -0.0,   1,    -1,    0.5,      (double) n, (double) (n - 1), -(double) n,
          0x1p31, 0x1p32, 1e12, -1e12, 0x1p62,   0x1p63,     -0x1p63,          0x1p64,
          1e30,   1e-40,  NAN,  -NAN,  INFINITY, -INFINITY };
  return all[pick (random, G_N_ELEMENTS (all))];
}

void
kernel_fill (GRand *random, TinyDType dtype, guint8 *data, gint64 n, gint64 n_elements)
{
  const gsize size = tiny_dtype_get_n_bytes (dtype);
  const guint share = pick (random, 3); /* of what is hostile: none, half, all */
  for (gint64 i = 0; i < n; i++) {
    const gboolean hostile = share == 2 || (share == 1 && pick (random, 2));
    const gint64 small = (gint64) pick (random, (guint) MAX (n_elements, 1));
    guint64 bits;
    if (tiny_dtype_is_float (dtype))
      bits = tiny_float_to_bits (dtype,
                                 hostile ? hostile_float (random, n_elements) : (double) small);
    else
      bits = (guint64) (hostile ? hostile_integer (random, n_elements) : small);
    bits = dtype == TINY_DTYPE_BOOL && !hostile ? bits & 1
                                                : bits; /* any other byte is true as well */
    memcpy (data + (gsize) i * size, &bits, size); /* the low ones of a little-endian machine */
  }
}
