/* SPDX-License-Identifier: MIT
 *
 * ptx-number.h: floating-point formats of PTX, rounded in software. */
#pragma once

#include "ptx-program.h"
#include <string.h>

/* A number before it is rounded: mantissa · 2^exponent, and a little more where @is_more. */
typedef struct {
  gboolean is_negative, is_more;
  guint64 mantissa;
  gint exponent;
} PtxExact;

/* The value of the bits of one number of @type, all of which are doubles. */
double ptx_decode (PtxType type, guint64 bits);
/* A finite double as it is. */
PtxExact ptx_exact (double value);
/* a + b, which a double need not hold. */
PtxExact ptx_exact_sum (double a, double b);
/* Rounded once. Too large is infinity, where the format has it and @is_saturated does not forbid it. */
guint64 ptx_pack (PtxType type, PtxExact exact, guint round, gboolean is_saturated);
/* Any double, NaN and infinities too. */
guint64 ptx_encode (PtxType type, double value, guint round, gboolean is_saturated);
guint64 ptx_nan (PtxType type);

static inline float
ptx_float_of (guint64 bits)
{
  guint32 low = bits;
  float value;
  memcpy (&value, &low, sizeof value);
  return value;
}

static inline guint64
ptx_bits_of_float (float value)
{
  guint32 bits;
  memcpy (&bits, &value, sizeof bits);
  return bits;
}

static inline double
ptx_double_of (guint64 bits)
{
  double value;
  memcpy (&value, &bits, sizeof value);
  return value;
}

static inline guint64
ptx_bits_of_double (double value)
{
  guint64 bits;
  memcpy (&bits, &value, sizeof bits);
  return bits;
}
