/* SPDX-License-Identifier: MIT
 *
 * replay-compare.c: what came back against what was recorded.
 *
 * Another backend rounds otherwise. A difference counts when it is more than a part of the larger of the two values,
 * or of the largest of the whole buffer: a sum of large terms that is nearly zero has their rounding. */
#include <math.h>
#include <string.h>

#include "base/tiny-float.h"
#include "ir/tiny-dtype.h"
#include "tools/replay.h"

void
replay_difference_clear (ReplayDifference *self)
{
  g_clear_pointer (&self->kernel, g_free);
  g_clear_pointer (&self->expected, g_free);
  g_clear_pointer (&self->found, g_free);
}

double
replay_get_tolerance (guint32 dtype)
{
  switch (dtype) {
  case TINY_DTYPE_F64:
    return 1e-9;
  case TINY_DTYPE_F32:
    return 1e-4;
  case TINY_DTYPE_F16:
    return 4e-3;
  case TINY_DTYPE_BF16:
    return 3e-2;
  case TINY_DTYPE_F8E4M3:
  case TINY_DTYPE_F8E5M2:
    return 0.25;
  default:
    return 0;
  }
}

static double
read_float (TinyDType dtype, gconstpointer at)
{
  guint64 bits = 0;
  float single;
  memcpy (&bits, at, tiny_dtype_get_n_bytes (dtype));
  if (dtype == TINY_DTYPE_F32) {
    memcpy (&single, at, sizeof single);
    return (double) single;
  }
  return tiny_float_from_bits (dtype, bits);
}

static double
find_largest (TinyDType dtype, const guint8 *data, gsize n, gsize width)
{
  double largest = 0;
  for (gsize i = 0; i < n; i++) {
    const double value = fabs (read_float (dtype, data + i * width));
    if (isfinite (value))
      largest = MAX (largest, value);
  }
  return largest;
}

static gboolean
is_close (double expected, double found, double tolerance, double largest)
{
  if (isnan (expected) || isnan (found))
    return isnan (expected) && isnan (found);
  if (!isfinite (expected) || !isfinite (found))
    return !(expected < found) && !(expected > found);
  return fabs (expected - found)
         <= tolerance * MAX (largest, MAX (fabs (expected), fabs (found)));
}

static char *
value_to_string (TinyDType dtype, const guint8 *at, gsize width)
{
  guint64 bits = 0;
  memcpy (&bits, at, width);
  if (tiny_dtype_is_float (dtype))
    return g_strdup_printf ("%.9g", read_float (dtype, at));
  if (tiny_dtype_is_signed (dtype)) {
    const guint shift = (guint) (64 - 8 * width);
    return g_strdup_printf ("%" G_GINT64_FORMAT, (gint64) (bits << shift) >> shift);
  }
  return g_strdup_printf ("%" G_GUINT64_FORMAT, bits);
}

gboolean
replay_compare (guint32 dtype,
                double tolerance,
                gconstpointer expected,
                gconstpointer found,
                gsize n_bytes,
                ReplayDifference *out)
{
  TinyDType type
      = dtype > TINY_DTYPE_VOID && dtype < TINY_DTYPE_INDEX ? (TinyDType) dtype : TINY_DTYPE_U8;
  if (n_bytes % tiny_dtype_get_n_bytes (type) != 0)
    type = TINY_DTYPE_U8;
  const gsize width = tiny_dtype_get_n_bytes (type), n = n_bytes / width;
  const guint8 *a = expected, *b = found;
  const gboolean is_near = tolerance > 0 && tiny_dtype_is_float (type);
  const double largest = is_near ? find_largest (type, a, n, width) : 0;
  out->n_different = 0;
  out->n_elements = n;
  for (gsize i = 0; i < n; i++) {
    const guint8 *x = a + i * width, *y = b + i * width;
    if (memcmp (x, y, width) == 0
        || (is_near
            && is_close (read_float (type, x), read_float (type, y), tolerance, largest)))
      continue;
    if (out->n_different++ > 0)
      continue;
    out->element = i;
    out->expected = value_to_string (type, x, width);
    out->found = value_to_string (type, y, width);
  }
  return out->n_different == 0;
}
