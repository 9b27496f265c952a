/* SPDX-License-Identifier: MIT
 *
 * ptx-number.c: numbers of each format to doubles and back, rounded once in the mode that is asked for. */
#include "ptx-number.h"
#include <math.h>
#include <string.h>

typedef struct {
  guint n_exponent, n_mantissa, n_below; /* bits, and those below that are zeros */
  guint64 nan, largest;
  gboolean has_infinity;
} Format;

static const Format formats[PTX_N_TYPES] = {
  [PTX_f16] = { 5, 10, 0, 0x7fff, 0x7bff, TRUE },
  [PTX_bf16] = { 8, 7, 0, 0x7fff, 0x7f7f, TRUE },
  [PTX_tf32] = { 8, 10, 13, 0x3ffff, 0x3fbff, TRUE },
  [PTX_f32] = { 8, 23, 0, 0x7fffffff, 0x7f7fffff, TRUE },
  [PTX_f64] = { 11, 52, 0, 0x7ff8000000000000, 0x7fefffffffffffff, TRUE },
  [PTX_e4m3] = { 4, 3, 0, 0x7f, 0x7e, FALSE },
  [PTX_e5m2] = { 5, 2, 0, 0x7f, 0x7b, TRUE },
};

guint64
ptx_nan (PtxType type)
{
  return formats[type].nan << formats[type].n_below;
}

static int
bias_of (const Format *format)
{
  return (1 << (format->n_exponent - 1)) - 1;
}

double
ptx_decode (PtxType type, guint64 bits)
{
  if (type == PTX_f32)
    return ptx_float_of (bits);
  if (type == PTX_f64)
    return ptx_double_of (bits);
  const Format *format = &formats[type];
  bits >>= format->n_below;
  guint64 magnitude = ptx_truncate (format->n_exponent + format->n_mantissa, bits);
  gboolean is_negative = bits >> (format->n_exponent + format->n_mantissa) & 1;
  guint64 mantissa = ptx_truncate (format->n_mantissa, magnitude);
  int exponent = magnitude >> format->n_mantissa;
  double value;
  if (magnitude > format->largest)
    value = format->has_infinity && mantissa == 0 ? (double) INFINITY : (double) NAN;
  else if (exponent == 0)
    value = ldexp (mantissa, 1 - bias_of (format) - (int) format->n_mantissa);
  else
    value = ldexp (mantissa | (guint64) 1 << format->n_mantissa,
                   exponent - bias_of (format) - (int) format->n_mantissa);
  return is_negative ? -value : value;
}

PtxExact
ptx_exact (double value)
{
  guint64 bits = ptx_bits_of_double (value), mantissa = ptx_truncate (52, bits);
  int exponent = bits >> 52 & 0x7ff;
  return (PtxExact){ bits >> 63, FALSE, exponent != 0 ? mantissa | (guint64) 1 << 52 : mantissa,
                     MAX (exponent, 1) - 1075 };
}

/* The rounding error of a sum: Knuth, "The Art of Computer Programming", volume 2, 4.2.2, theorem B. */
PtxExact
ptx_exact_sum (double a, double b)
{
  double sum = a + b, part = sum - a;
  double error = (a - (sum - part)) + (b - part);
  if (error == 0 || !isfinite (sum))
    return ptx_exact (sum);
  if ((error < 0) != (sum < 0))
    sum = nextafter (sum, 0);
  PtxExact exact = ptx_exact (sum);
  exact.is_more = TRUE;
  return exact;
}

/* True if what is cut off, @rest of @half · 2 and something where @is_more, rounds away from zero. */
static gboolean
rounds_up (guint round,
           gboolean is_negative,
           gboolean is_odd,
           guint64 rest,
           guint64 half,
           gboolean is_more)
{
  gboolean is_inexact = rest != 0 || is_more;
  switch (round) {
  case PTX_RZ:
    return FALSE;
  case PTX_RM:
    return is_negative && is_inexact;
  case PTX_RP:
    return !is_negative && is_inexact;
  case PTX_RNA:
    return half != 0 && rest >= half;
  default:
    return half != 0 && (rest > half || (rest == half && (is_more || is_odd)));
  }
}

static guint64
too_large (const Format *format, guint round, gboolean is_negative, gboolean is_saturated)
{
  gboolean is_cut = round == PTX_RZ || (round == PTX_RM && !is_negative)
                    || (round == PTX_RP && is_negative);
  return is_saturated || is_cut ? format->largest
         : format->has_infinity ? format->largest + 1
                                : format->nan;
}

guint64
ptx_pack (PtxType type, PtxExact exact, guint round, gboolean is_saturated)
{
  const Format *format = &formats[type];
  guint64 sign = (guint64) exact.is_negative << (format->n_exponent + format->n_mantissa),
          mantissa = exact.mantissa;
  if (mantissa == 0)
    return sign << format->n_below;
  int least = 1 - bias_of (format), top = exact.exponent + 63 - __builtin_clzll (mantissa);
  int low = MAX (top, least) - (int) format->n_mantissa, shift = low - exact.exponent;
  guint64 kept = shift >= 64 ? 0 : shift > 0 ? mantissa >> shift : mantissa << -shift;
  guint64 rest = shift >= 64 ? mantissa : shift > 0 ? ptx_truncate (shift, mantissa) : 0;
  /* A rest 65 bits or more below the last is less than half of it. */
  gboolean is_tiny = shift > 64;
  guint64 half = shift > 0 && shift <= 64 ? (guint64) 1 << (shift - 1) : 0;
  kept += rounds_up (round, exact.is_negative, kept & 1, is_tiny ? 1 : rest, half,
                     exact.is_more);
  if (kept >> (format->n_mantissa + 1) != 0) {
    kept >>= 1;
    low++;
  }
  gboolean is_normal = kept >> format->n_mantissa != 0;
  gint64 exponent = is_normal ? low + (int) format->n_mantissa + bias_of (format) : 0;
  guint64 bits
      = exponent < 1 << format->n_exponent
            ? (guint64) exponent << format->n_mantissa | ptx_truncate (format->n_mantissa, kept)
            : G_MAXUINT64;
  if (bits > format->largest)
    bits = too_large (format, round, exact.is_negative, is_saturated);
  return (sign | bits) << format->n_below;
}

guint64
ptx_encode (PtxType type, double value, guint round, gboolean is_saturated)
{
  const Format *format = &formats[type];
  if (isnan (value))
    return ptx_nan (type);
  if (!isinf (value))
    return ptx_pack (type, ptx_exact (value), round, is_saturated);
  guint64 sign = (guint64) (value < 0) << (format->n_exponent + format->n_mantissa);
  return (sign | too_large (format, PTX_RN, value < 0, is_saturated)) << format->n_below;
}
