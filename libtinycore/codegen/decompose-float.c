/* SPDX-License-Identifier: MIT
 *
 * decompose-float.c: small floats from f32 and back in integer arithmetic, and division, square
 * root and truncation where the target has none.
 *
 * Errors in units of the last place: conversions none (to nearest, ties to even, subnormals kept);
 * FDIV by RECIP and RECIP and SQRT from nothing at most 2; TRUNC none. */
#include <math.h>

#include "codegen/decompose-private.h"

static const TinyDTypeInfo *
info_of (TinyDType dtype)
{
  return &tiny_dtype_infos[dtype];
}

gint
dec_bias (TinyDType dtype)
{
  return (1 << (info_of (dtype)->exponent_bits - 1)) - 1;
}

static gint64
bit (guint n)
{
  return (gint64) (G_GUINT64_CONSTANT (1) << n);
}

/* The @n low bits. */
static gint64
low_bits (guint n)
{
  return (gint64) ((G_GUINT64_CONSTANT (1) << n) - 1);
}

/* The bits of an infinity, or of f8e4m3's NaN: the first code that is no finite number. */
static gint64
first_special (TinyDType dtype)
{
  if (dtype == TINY_DTYPE_F8E4M3)
    return 0x7f;
  return (bit (info_of (dtype)->exponent_bits) - 1) << info_of (dtype)->mantissa_bits;
}

static gboolean
is_small (TinyDType dtype)
{
  return tiny_dtype_is_float (dtype) && tiny_dtype_get_n_bytes (dtype) <= 2;
}

static TinyNode *
size_of (Decompose *d, TinyNode *bits)
{
  return dec_with_int (d, TINY_OP_AND, bits,
                       low_bits (8 * tiny_dtype_get_n_bytes (bits->dtype) - 1));
}

/* 1.0 * 2^n of a float dtype, n a signed integer in its normal range. */
static TinyNode *
power_of_two (Decompose *d, TinyNode *n, TinyDType dtype)
{
  TinyNode *biased = dec_with_int (d, TINY_OP_ADD, n, dec_bias (dtype));
  return dec_bits (d, dec_with_int (d, TINY_OP_SHL, biased, info_of (dtype)->mantissa_bits),
                   dtype);
}

/* ---- small floats ---- */
TinyNode *
dec_float_from_code (Decompose *d, TinyNode *code, TinyDType dtype)
{
  const TinyDTypeInfo *small = info_of (dtype);
  guint n_bits = 8 * small->n_bytes, shift = 23 - small->mantissa_bits;
  if (small->exponent_bits == 8) /* bf16 is the upper half of an f32 */
    return dec_bits (d, dec_with_int (d, TINY_OP_SHL, code, shift), TINY_DTYPE_F32);

  TinyNode *size = dec_with_int (d, TINY_OP_AND, code, bit (n_bits - 1) - 1);
  TinyNode *sign = dec_with_int (
      d, TINY_OP_SHL, dec_with_int (d, TINY_OP_AND, code, bit (n_bits - 1)), 32 - n_bits);
  TinyNode *moved = dec_with_int (d, TINY_OP_SHL, size, shift);
  TinyNode *normal
      = dec_with_int (d, TINY_OP_ADD, moved, (gint64) (127 - dec_bias (dtype)) << 23);
  /* A subnormal is a count of the smallest one; casting counts needs no subnormal f32. */
  TinyNode *count = dec_cast (d, dec_bits (d, size, TINY_DTYPE_I32), TINY_DTYPE_F32);
  double unit = ldexp (1.0, 1 - dec_bias (dtype) - (gint) small->mantissa_bits);
  TinyNode *subnormal
      = dec_bits (d, dec_with_float (d, TINY_OP_MUL, count, unit), TINY_DTYPE_U32);
  TinyNode *special = dtype == TINY_DTYPE_F8E4M3
                          ? dec_int (d, TINY_DTYPE_U32, code, 0x7fc00000)
                          : dec_with_int (d, TINY_OP_OR, moved, 0x7f800000);
  TinyNode *least = dec_int (d, TINY_DTYPE_U32, code, bit (small->mantissa_bits));
  TinyNode *last = dec_int (d, TINY_DTYPE_U32, code, first_special (dtype) - 1);
  TinyNode *bits = dec_where (d, dec_binary (d, TINY_OP_CMPLT, size, least), subnormal, normal);
  bits = dec_where (d, dec_binary (d, TINY_OP_CMPLT, last, size), special, bits);
  return dec_bits (d, dec_binary (d, TINY_OP_OR, bits, sign), TINY_DTYPE_F32);
}

static TinyNode *
widen (Decompose *d, TinyNode *x)
{
  TinyNode *code = dec_cast (d, dec_bits (d, x, dec_unsigned (x->dtype)), TINY_DTYPE_U32);
  return dec_float_from_code (d, code, x->dtype);
}

/* @size as a small float's code where it is below the normal range: adding a number whose last
 * place is the smallest subnormal rounds there. */
static TinyNode *
narrow_subnormal (Decompose *d, TinyNode *size, TinyDType dtype)
{
  gint exponent = 1 - dec_bias (dtype) - (gint) info_of (dtype)->mantissa_bits + 23;
  TinyNode *sum = dec_with_float (d, TINY_OP_ADD, dec_bits (d, size, TINY_DTYPE_F32),
                                  ldexp (1.0, exponent));
  return dec_with_int (d, TINY_OP_AND, dec_bits (d, sum, TINY_DTYPE_U32), bit (23) - 1);
}

static TinyNode *
is_nan (Decompose *d, TinyNode *x)
{
  if ((d->target->flags & TINY_TARGET_REASSOCIATES) == 0)
    return dec_binary (d, TINY_OP_CMPNE, x, x);
  TinyNode *size = size_of (d, dec_bits (d, x, TINY_DTYPE_U32));
  return dec_binary (d, TINY_OP_CMPLT, dec_int (d, TINY_DTYPE_U32, x, 0x7f800000), size);
}

/* The upper half of an f32, rounded: a carry goes into the exponent, at last to infinity. */
static TinyNode *
upper_half (Decompose *d, TinyNode *x)
{
  TinyNode *bits = dec_bits (d, x, TINY_DTYPE_U32);
  TinyNode *odd = dec_with_int (d, TINY_OP_AND, dec_with_int (d, TINY_OP_SHR, bits, 16), 1);
  TinyNode *rounded
      = dec_binary (d, TINY_OP_ADD, bits, dec_with_int (d, TINY_OP_ADD, odd, 0x7fff));
  return dec_where (d, is_nan (d, x), dec_int (d, TINY_DTYPE_U32, x, 0x7fc0),
                    dec_with_int (d, TINY_OP_SHR, rounded, 16));
}

TinyNode *
dec_float_to_code (Decompose *d, TinyNode *x, TinyDType dtype)
{
  const TinyDTypeInfo *small = info_of (dtype);
  if (small->exponent_bits == 8)
    return upper_half (d, x);
  guint n_bits = 8 * small->n_bytes, shift = 23 - small->mantissa_bits;
  TinyNode *bits = dec_bits (d, x, TINY_DTYPE_U32), *size = size_of (d, bits);
  TinyNode *sign = dec_with_int (d, TINY_OP_SHR, bits, 31);
  sign = dec_with_int (d, TINY_OP_SHL, sign, n_bits - 1);
  /* Half of the last place less one, and one more where the kept part is odd: ties to even. */
  TinyNode *odd = dec_with_int (d, TINY_OP_AND, dec_with_int (d, TINY_OP_SHR, size, shift), 1);
  TinyNode *rounded = dec_binary (d, TINY_OP_ADD, size,
                                  dec_with_int (d, TINY_OP_ADD, odd, bit (shift - 1) - 1));
  TinyNode *code = dec_with_int (d, TINY_OP_SHR, rounded, shift);
  gint64 rebias = (gint64) (127 - dec_bias (dtype)) << small->mantissa_bits;
  if (rebias != 0) {
    TinyNode *least = dec_int (d, TINY_DTYPE_U32, x, (gint64) (128 - dec_bias (dtype)) << 23);
    TinyNode *is_low = dec_binary (d, TINY_OP_CMPLT, size, least);
    code = dec_where (d, is_low, narrow_subnormal (d, size, dtype),
                      dec_with_int (d, TINY_OP_ADD, code, -rebias));
  }
  TinyNode *special = dec_int (d, TINY_DTYPE_U32, x, first_special (dtype));
  code = dec_where (d, dec_binary (d, TINY_OP_CMPLT, code, special), code, special);
  TinyNode *infinity = dec_int (d, TINY_DTYPE_U32, x, 0x7f800000);
  gint64 nan = dtype == TINY_DTYPE_F8E4M3
                   ? 0x7f
                   : first_special (dtype) | bit (small->mantissa_bits - 1);
  code = dec_where (d, dec_binary (d, TINY_OP_CMPLT, infinity, size),
                    dec_int (d, TINY_DTYPE_U32, x, nan), code);
  return dec_binary (d, TINY_OP_OR, code, sign);
}

static TinyNode *
narrow (Decompose *d, TinyNode *x, TinyDType dtype)
{
  TinyNode *code = dec_float_to_code (d, x, dtype);
  return dec_bits (d, dec_cast (d, code, dec_unsigned (dtype)), dtype);
}

TinyNode *
dec_narrow_exact (Decompose *d, TinyNode *x, TinyDType dtype)
{
  if (info_of (dtype)->exponent_bits != 8)
    return dec_cast (d, x, dtype);
  TinyNode *code = dec_with_int (d, TINY_OP_SHR, dec_bits (d, x, TINY_DTYPE_U32), 16);
  return dec_bits (d, dec_cast (d, code, dec_unsigned (dtype)), dtype);
}

/* @x of a wider dtype in f32, rounded to odd: what is lost sets the last bit, so that rounding
 * once more to a small float is as if it had been done directly (Boldo, Melquiond, "When double
 * rounding is odd", 2005). */
static TinyNode *
to_odd_f32 (Decompose *d, TinyNode *x)
{
  TinyNode *near = dec_cast (d, x, TINY_DTYPE_F32), *back = dec_cast (d, near, x->dtype);
  TinyNode *is_negative = dec_binary (d, TINY_OP_CMPLT, x, dec_int (d, x->dtype, x, 0));
  TinyNode *beyond = dec_where (d, is_negative, dec_binary (d, TINY_OP_CMPLT, back, x),
                                dec_binary (d, TINY_OP_CMPLT, x, back));
  TinyNode *bits = dec_bits (d, near, TINY_DTYPE_U32);
  TinyNode *below = dec_where (d, beyond, dec_with_int (d, TINY_OP_ADD, bits, -1), bits);
  TinyNode *odd = dec_with_int (d, TINY_OP_OR, below, 1);
  TinyNode *is_exact = dec_binary (d, TINY_OP_CMPEQ, back, x);
  if (tiny_dtype_is_float (x->dtype)) /* a NaN differs from itself and keeps its bits */
    is_exact = dec_binary (d, TINY_OP_OR, is_exact, dec_binary (d, TINY_OP_CMPNE, x, x));
  return dec_bits (d, dec_where (d, is_exact, bits, odd), TINY_DTYPE_F32);
}

/* ---- casts ---- */
static TinyNode *
cast (Decompose *d, TinyOp op, TinyDType dtype, TinyNode *const *x)
{
  TinyNode *value = x[0];
  if (is_small (value->dtype) && dtype == TINY_DTYPE_F32)
    return widen (d, value);
  if (is_small (value->dtype))
    return dec_cast (d, dec_cast (d, value, TINY_DTYPE_F32), dtype);
  if (is_small (dtype) && value->dtype == TINY_DTYPE_F32)
    return narrow (d, value, dtype);
  if (is_small (dtype)) {
    gboolean is_exact = tiny_dtype_get_n_bytes (value->dtype) <= 2;
    TinyNode *wide = is_exact ? dec_cast (d, value, TINY_DTYPE_F32) : to_odd_f32 (d, value);
    return dec_cast (d, wide, dtype);
  }
  if (dtype == TINY_DTYPE_BOOL)
    return dec_binary (d, TINY_OP_CMPNE, value, dec_int (d, value->dtype, value, 0));
  if (value->dtype == TINY_DTYPE_BOOL)
    return dec_where (d, value, dec_int (d, dtype, value, 1), dec_int (d, dtype, value, 0));
  return NULL;
}

/* A WHERE moves bits. */
static TinyNode *
where_of_bits (Decompose *d, TinyOp op, TinyDType dtype, TinyNode *const *x)
{
  TinyDType bits = dec_unsigned (dtype);
  return dec_bits (d, dec_where (d, x[0], dec_bits (d, x[1], bits), dec_bits (d, x[2], bits)),
                   dtype);
}

/* ---- division, square root ---- */
/* x s * (1 / (y s)), s = 2^k where |y| < 2^-k, 2^-k where |y| > 2^k, else 1: the reciprocal is a
 * normal number for every y. x 2^k overflows where x / y does; x 2^-k loses bits where x / y is
 * subnormal. */
static TinyNode *
fdiv_by_recip (Decompose *d, TinyOp op, TinyDType dtype, TinyNode *const *x)
{
  const gint k = (dec_bias (dtype) + (gint) info_of (dtype)->mantissa_bits) / 2;
  TinyNode *size = dec_bits (d, size_of (d, dec_bits (d, x[1], dec_signed (dtype))), dtype);
  TinyNode *large = dec_float (d, dtype, x[1], ldexp (1.0, k));
  TinyNode *scale
      = dec_where (d, dec_binary (d, TINY_OP_CMPLT, large, size),
                   dec_float (d, dtype, x[1], ldexp (1.0, -k)), dec_float (d, dtype, x[1], 1));
  scale = dec_where (d, dec_is_below (d, size, ldexp (1.0, -k)), large, scale);
  TinyNode *scaled = dec_binary (d, TINY_OP_MUL, x[1], scale);
  return dec_binary (d, TINY_OP_MUL, dec_binary (d, TINY_OP_MUL, x[0], scale),
                     dec_unary (d, TINY_OP_RECIP, scaled));
}

DecomposeSplit
dec_split (Decompose *d, TinyNode *x)
{
  TinyDType dtype = x->dtype, bits_type = dec_signed (dtype);
  guint m = info_of (dtype)->mantissa_bits;
  DecomposeSplit s;
  s.size = dec_bits (d, size_of (d, dec_bits (d, x, bits_type)), dtype);
  TinyNode *least = dec_float (d, dtype, x, ldexp (1.0, 1 - dec_bias (dtype)));
  TinyNode *is_low = dec_binary (d, TINY_OP_CMPLT, s.size, least);
  TinyNode *scaled = dec_with_float (d, TINY_OP_MUL, s.size, ldexp (1.0, (gint) m + 1));
  TinyNode *bits = dec_bits (d, dec_where (d, is_low, scaled, s.size), bits_type);
  TinyNode *offset
      = dec_where (d, is_low, dec_int (d, bits_type, x, -dec_bias (dtype) - (gint) m - 1),
                   dec_int (d, bits_type, x, -dec_bias (dtype)));
  s.exponent = dec_binary (d, TINY_OP_ADD, dec_with_int (d, TINY_OP_SHR, bits, m), offset);
  TinyNode *fraction = dec_with_int (d, TINY_OP_AND, bits, bit (m) - 1);
  s.mantissa = dec_bits (
      d, dec_with_int (d, TINY_OP_OR, fraction, (gint64) dec_bias (dtype) << m), dtype);
  return s;
}

TinyNode *
dec_scale (Decompose *d, TinyNode *x, TinyNode *n)
{
  TinyNode *half = dec_with_int (d, TINY_OP_SHR, n, 1);
  TinyNode *other = dec_binary (d, TINY_OP_SUB, n, half);
  TinyNode *once = dec_binary (d, TINY_OP_MUL, x, power_of_two (d, half, x->dtype));
  return dec_binary (d, TINY_OP_MUL, once, power_of_two (d, other, x->dtype));
}

TinyNode *
dec_is_below (Decompose *d, TinyNode *x, double value)
{
  return dec_binary (d, TINY_OP_CMPLT, x, dec_float (d, x->dtype, x, value));
}

static TinyNode *
with_sign_of (Decompose *d, TinyNode *size, TinyNode *x)
{
  TinyDType bits_type = dec_unsigned (x->dtype);
  TinyNode *sign = dec_with_int (d, TINY_OP_AND, dec_bits (d, x, bits_type),
                                 bit (8 * tiny_dtype_get_n_bytes (x->dtype) - 1));
  return dec_bits (d, dec_binary (d, TINY_OP_OR, dec_bits (d, size, bits_type), sign),
                   x->dtype);
}

/* Newton's iteration y += y * (1 - m y), from the line 48/17 - 32/17 m that is within 1/17 of
 * 1 / m on [1/2, 1]; here m is in [1, 2), so the line is 24/17 - 8/17 m. */
static TinyNode *
recip (Decompose *d, TinyOp op, TinyDType dtype, TinyNode *const *x)
{
  if (dec_has (d, TINY_OP_FDIV, dtype))
    return dec_binary (d, TINY_OP_FDIV, dec_float (d, dtype, x[0], 1), x[0]);
  DecomposeSplit s = dec_split (d, x[0]);
  TinyNode *one = dec_float (d, dtype, x[0], 1);
  TinyNode *y = dec_mulacc (d, s.mantissa, dec_float (d, dtype, x[0], -8.0 / 17),
                            dec_float (d, dtype, x[0], 24.0 / 17));
  for (guint i = 0; i < (dtype == TINY_DTYPE_F64 ? 4 : 3); i++) {
    TinyNode *rest
        = dec_binary (d, TINY_OP_SUB, one, dec_binary (d, TINY_OP_MUL, s.mantissa, y));
    y = dec_mulacc (d, y, rest, y);
  }
  y = dec_scale (d, y, dec_unary (d, TINY_OP_NEG, s.exponent));
  TinyNode *zero = dec_float (d, dtype, x[0], 0),
           *infinity = dec_float (d, dtype, x[0], INFINITY);
  y = dec_where (d, dec_is_below (d, s.size, INFINITY), y, zero);
  y = dec_where (d, dec_binary (d, TINY_OP_CMPLT, zero, s.size), y, infinity);
  y = dec_where (d, dec_binary (d, TINY_OP_CMPNE, x[0], x[0]), x[0], y);
  return with_sign_of (d, y, x[0]);
}

/* y = 1 / sqrt (m) by Newton, y += y/2 (1 - m y y), from a line through [1, 4); then m y, and one
 * correction by its own rest. The exponent is made even first. */
static TinyNode *
square_root (Decompose *d, TinyOp op, TinyDType dtype, TinyNode *const *x)
{
  DecomposeSplit s = dec_split (d, x[0]);
  TinyNode *one = dec_float (d, dtype, x[0], 1);
  TinyNode *odd = dec_with_int (d, TINY_OP_AND, s.exponent, 1);
  TinyNode *zero_int = dec_int (d, odd->dtype, odd, 0);
  TinyNode *is_odd = dec_binary (d, TINY_OP_CMPLT, zero_int, odd);
  TinyNode *m
      = dec_where (d, is_odd, dec_with_float (d, TINY_OP_MUL, s.mantissa, 2), s.mantissa);
  TinyNode *half_exponent
      = dec_with_int (d, TINY_OP_SHR, dec_binary (d, TINY_OP_SUB, s.exponent, odd), 1);
  TinyNode *y
      = dec_mulacc (d, m, dec_float (d, dtype, x[0], -0.15), dec_float (d, dtype, x[0], 1.06));
  for (guint i = 0; i < (dtype == TINY_DTYPE_F64 ? 5 : 4); i++) {
    TinyNode *square = dec_binary (d, TINY_OP_MUL, dec_binary (d, TINY_OP_MUL, m, y), y);
    TinyNode *rest = dec_binary (d, TINY_OP_SUB, one, square);
    y = dec_mulacc (d, dec_with_float (d, TINY_OP_MUL, y, 0.5), rest, y);
  }
  TinyNode *root = dec_binary (d, TINY_OP_MUL, m, y);
  TinyNode *rest = dec_binary (d, TINY_OP_SUB, m, dec_binary (d, TINY_OP_MUL, root, root));
  root = dec_mulacc (d, dec_with_float (d, TINY_OP_MUL, y, 0.5), rest, root);
  root = dec_binary (d, TINY_OP_MUL, root, power_of_two (d, half_exponent, dtype));
  /* Zeros, infinity and NaN are their own roots; what is negative has none. */
  TinyNode *zero = dec_float (d, dtype, x[0], 0);
  TinyNode *is_plain = dec_binary (d, TINY_OP_AND, dec_is_below (d, s.size, INFINITY),
                                   dec_binary (d, TINY_OP_CMPLT, zero, s.size));
  root = dec_where (d, is_plain, root, x[0]);
  return dec_where (d, dec_is_below (d, x[0], 0), dec_float (d, dtype, x[0], NAN), root);
}

/* Through an integer; from 2^mantissa_bits on every float is whole. The sign keeps -0. */
static TinyNode *
trunc_by_integer (Decompose *d, TinyOp op, TinyDType dtype, TinyNode *const *x)
{
  TinyDType bits_type = dec_signed (dtype);
  TinyNode *size = dec_bits (d, size_of (d, dec_bits (d, x[0], bits_type)), dtype);
  TinyNode *is_low = dec_is_below (d, size, ldexp (1.0, (gint) info_of (dtype)->mantissa_bits));
  TinyNode *safe = dec_where (d, is_low, size, dec_float (d, dtype, x[0], 0));
  TinyNode *whole = dec_cast (d, dec_cast (d, safe, bits_type), dtype);
  return dec_where (d, is_low, with_sign_of (d, whole, x[0]), x[0]);
}

const DecomposeRow decompose_float_rows[] = {
  { TINY_OP_CAST, "BIUF", cast },
  { TINY_OP_WHERE, "F", where_of_bits },
  { TINY_OP_FDIV, "F", fdiv_by_recip },
  { TINY_OP_RECIP, "F", recip },
  { TINY_OP_SQRT, "F", square_root },
  { TINY_OP_TRUNC, "F", trunc_by_integer },
  { 0 },
};
