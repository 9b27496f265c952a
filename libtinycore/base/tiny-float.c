/* SPDX-License-Identifier: MIT
 *
 * tiny-float.c: conversions of small floats, in integer arithmetic.
 *
 * One pair of functions serves every format: a row says how many bits mantissa and exponent have
 * and whether the largest exponent is kept for infinities and NaNs (IEEE 754) or only its last
 * code is a NaN (f8e4m3). */
#include "base/tiny-float.h"

#include <math.h>
#include <string.h>

typedef struct {
  guint mantissa_bits, exponent_bits;
  gboolean has_infinity;
} Format;

static const Format formats[TINY_N_DTYPES] = {
  [TINY_DTYPE_F8E4M3] = { 3, 4, FALSE }, [TINY_DTYPE_F8E5M2] = { 2, 5, TRUE },
  [TINY_DTYPE_F16] = { 10, 5, TRUE },    [TINY_DTYPE_BF16] = { 7, 8, TRUE },
  [TINY_DTYPE_F32] = { 23, 8, TRUE },    [TINY_DTYPE_F64] = { 52, 11, TRUE },
};

static inline int
bias (const Format *format)
{
  return (1 << (format->exponent_bits - 1)) - 1;
}

/* The first code, without sign, that is no finite number. */
static inline guint64
first_special (const Format *format)
{
  guint64 top = ((G_GUINT64_CONSTANT (1) << format->exponent_bits) - 1)
                << format->mantissa_bits;
  guint64 fraction = (G_GUINT64_CONSTANT (1) << format->mantissa_bits) - 1;
  return format->has_infinity ? top : top | fraction;
}

static inline guint64
quiet_nan (const Format *format)
{
  guint64 quiet = G_GUINT64_CONSTANT (1) << (format->mantissa_bits - 1);
  return format->has_infinity ? first_special (format) | quiet : first_special (format);
}

guint64
tiny_float_to_bits (TinyDType dtype, double value)
{
  const Format *format = &formats[dtype];
  g_return_val_if_fail (format->mantissa_bits > 0, 0);
  if (isnan (value))
    return quiet_nan (format);
  guint64 bits;
  memcpy (&bits, &value, sizeof bits);
  if (dtype == TINY_DTYPE_F64)
    return bits;

  guint64 sign = (bits >> 63) << (format->mantissa_bits + format->exponent_bits);
  if (isinf (value))
    return format->has_infinity ? sign | first_special (format) : quiet_nan (format);
  int exponent = (int) (bits >> 52 & 0x7ff) - 1023;
  int least = 1 - bias (format);
  if (exponent == -1023) /* zero, or a subnormal double: below every format's range */
    return sign;

  /* |value| is mantissa * 2^(exponent - 52); round it to a multiple of the format's unit there. */
  guint64 mantissa
      = (bits & ((G_GUINT64_CONSTANT (1) << 52) - 1)) | G_GUINT64_CONSTANT (1) << 52;
  int shift = 52 - (int) format->mantissa_bits + (exponent < least ? least - exponent : 0);
  if (shift > 53) /* less than half of the smallest subnormal */
    return sign;
  guint64 kept = mantissa >> shift;
  guint64 rest = mantissa & ((G_GUINT64_CONSTANT (1) << shift) - 1);
  guint64 half = G_GUINT64_CONSTANT (1) << (shift - 1);
  if (rest > half || (rest == half && (kept & 1)))
    kept++;
  /* A carry out of the mantissa moves into the exponent by itself: codes are consecutive. */
  if (exponent >= least)
    kept += (guint64) (exponent - least) << format->mantissa_bits;
  if (kept >= first_special (format))
    return format->has_infinity ? sign | first_special (format) : quiet_nan (format);
  return sign | kept;
}

double
tiny_float_from_bits (TinyDType dtype, guint64 bits)
{
  const Format *format = &formats[dtype];
  g_return_val_if_fail (format->mantissa_bits > 0, 0);
  if (dtype == TINY_DTYPE_F64) {
    double value;
    memcpy (&value, &bits, sizeof value);
    return value;
  }
  guint n_bits = format->mantissa_bits + format->exponent_bits;
  gboolean negative = bits >> n_bits & 1;
  guint64 code = bits & ((G_GUINT64_CONSTANT (1) << n_bits) - 1);
  if (code >= first_special (format)) {
    if (!format->has_infinity || code > first_special (format))
      return NAN;
    return negative ? -INFINITY : INFINITY;
  }
  int exponent = (int) (code >> format->mantissa_bits);
  guint64 mantissa = code & ((G_GUINT64_CONSTANT (1) << format->mantissa_bits) - 1);
  if (exponent > 0)
    mantissa |= G_GUINT64_CONSTANT (1) << format->mantissa_bits;
  double value = ldexp ((double) mantissa,
                        MAX (exponent, 1) - bias (format) - (int) format->mantissa_bits);
  return negative ? -value : value;
}

double
tiny_float_round (TinyDType dtype, double value)
{
  if (dtype == TINY_DTYPE_F64)
    return value;
  if (dtype == TINY_DTYPE_F32)
    return (float) value;
  return tiny_float_from_bits (dtype, tiny_float_to_bits (dtype, value));
}

double
tiny_float_get_largest (TinyDType dtype)
{
  g_return_val_if_fail (formats[dtype].mantissa_bits > 0, 0);
  return tiny_float_from_bits (dtype, first_special (&formats[dtype]) - 1);
}
