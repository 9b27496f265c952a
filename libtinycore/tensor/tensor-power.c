/* SPDX-License-Identifier: MIT
 *
 * tensor-power.c: powers of numbers and of e. */
#include <float.h>
#include <math.h>

#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-layout.h"

/* The first 12 bits of f32 numbers: the product of two of those is exact, and so is what is left of @x. */
static TinyNode *
head_of (TinyBuild *b, TinyNode *x)
{
  TinyNode *mask = tiny_node_const_int (b->graph, TINY_DTYPE_I32, -4096);
  TinyNode *bits = op_bitcast (b, x, TINY_DTYPE_I32);
  return op_bitcast (b, tiny_build_binary (b, TINY_OP_AND, bits, mask), TINY_DTYPE_F32);
}

/* |x| for a comparison, which asks for no slope. */
static TinyNode *
size_of (TinyBuild *b, TinyNode *x)
{
  TinyNode *zero = tiny_build_like (b, x, 0);
  return tiny_build_where (b, tiny_build_less (b, zero, x), x, tiny_build_sub (b, zero, x));
}

/* 2^power (1 + lost), the rest without a gradient, which is 0 where |@x| is not below @limit: there the result is 0 or
 * infinite, and infinities have no difference. */
static TinyNode *
power_and_rest (TinyBuild *b, TinyNode *power, TinyNode *lost, TinyNode *x, double limit)
{
  TinyNode *is_near
      = tiny_build_binary (b, TINY_OP_CMPLT, size_of (b, x), tiny_build_like (b, x, limit));
  lost = tiny_build_where (b, is_near, lost, tiny_build_like (b, lost, 0));
  lost = tiny_build_unary (b, TINY_OP_DETACH, lost);
  return tiny_build_mul (b, tiny_build_unary (b, TINY_OP_EXP2, power),
                         tiny_build_add_number (b, lost, 1));
}

/* 2^(x / ln 2). The product is rounded, which costs |x| units of the last place: with t the product,
 * e^x = 2^t e^(x - t ln 2), and e^d = 1 + d for so small a d. It is found without a longer format:
 * t is split into 12 bits and the rest, and so is ln 2, so that x - head * high is exact. */
TinyNode *
op_exp (TinyBuild *b, TinyNode *self)
{
  if (self == NULL || self->dtype != TINY_DTYPE_F32)
    return tiny_build_exp (b, self);
  const double high = 2839.0 / 4096, low = G_LN2 - high;
  TinyNode *power = tiny_build_mul_number (b, self, 1 / G_LN2);
  TinyNode *head = head_of (b, power), *tail = tiny_build_sub (b, power, head);
  TinyNode *lost = tiny_build_sub (b, self, tiny_build_mul_number (b, head, high));
  lost = tiny_build_sub (b, lost, tiny_build_mul_number (b, head, low));
  lost = tiny_build_sub (b, lost, tiny_build_mul_number (b, tail, G_LN2));
  return power_and_rest (b, power, lost, self, 128);
}

/* log2 (x) of f32 numbers above 0 as *@out_head, of 12 bits, and what there is beyond: 2^e m as in the
 * decomposition of LOG2, m from sqrt (1/2) to sqrt (2), and 2 / ln 2 atanh (s) with s = (m - 1) / (m + 1) = s' + s",
 * where s' has 12 bits, so that the rest of that division, and s' times the first 12 bits of 2 / ln 2, are exact. */
static TinyNode *
log2_in_parts (TinyBuild *b, TinyNode *x, TinyNode **out_head)
{
  const double scale = 2 / G_LN2, high = 2954.0 / 1024;
  const double c[] = { scale / 3, scale / 5, scale / 7, scale / 9, scale / 11 };
  const gint root = 0x3f3504f3, one = 0x3f800000; /* the bits of sqrt (1/2) and 1 */
  TinyNode *is_tiny = tiny_build_less (b, x, tiny_build_like (b, x, FLT_MIN));
  TinyNode *lifted = tiny_build_where (b, is_tiny, tiny_build_mul_number (b, x, 0x1p24), x);
  TinyNode *bits
      = tiny_build_add_number (b, op_bitcast (b, lifted, TINY_DTYPE_I32), one - root);
  TinyNode *e = tiny_build_binary (b, TINY_OP_SHR, bits, tiny_build_like (b, bits, 23));
  e = tiny_build_sub (b, tiny_build_cast (b, e, TINY_DTYPE_F32),
                      tiny_build_where (b, is_tiny, tiny_build_like (b, x, 127 + 24),
                                        tiny_build_like (b, x, 127)));
  bits = tiny_build_binary (b, TINY_OP_AND, bits, tiny_build_like (b, bits, 0x7fffff));
  TinyNode *m = op_bitcast (b, tiny_build_add_number (b, bits, root), TINY_DTYPE_F32);
  TinyNode *f = tiny_build_add_number (b, m, -1), *sum = tiny_build_add_number (b, m, 1);
  TinyNode *s = tiny_build_div (b, f, sum), *s_head = head_of (b, s), *m_head = head_of (b, m);
  TinyNode *rest = tiny_build_sub (b, f, s_head);
  rest = tiny_build_sub (b, rest, tiny_build_mul (b, s_head, m_head));
  rest = tiny_build_sub (b, rest, tiny_build_mul (b, s_head, tiny_build_sub (b, m, m_head)));
  TinyNode *z = tiny_build_mul (b, s, s);
  TinyNode *cubic = tiny_build_polynomial (b, z, c, G_N_ELEMENTS (c), c, G_N_ELEMENTS (c));
  TinyNode *small = tiny_build_mul (b, tiny_build_mul (b, s, z), cubic);
  small = tiny_build_add (b, small,
                          tiny_build_mul_number (b, tiny_build_div (b, rest, sum), scale));
  small = tiny_build_add (b, small, tiny_build_mul_number (b, s_head, scale - high));
  TinyNode *large = tiny_build_mul_number (b, s_head, high);
  TinyNode *head = head_of (b, tiny_build_add (b, e, tiny_build_add (b, large, small)));
  TinyNode *tail = tiny_build_add (b, tiny_build_sub (b, e, head), large);
  tail = tiny_build_add (b, tail, small);
  TinyNode *is_finite = tiny_build_less (b, x, tiny_build_like (b, x, INFINITY));
  *out_head = tiny_build_where (b, is_finite, head, x);
  return tiny_build_where (b, is_finite, tail, tiny_build_like (b, x, 0));
}

/* x^y of numbers above 0, where f32 is all that there is for y log2 (x), 1e-7 of which may be 1e-5 of the result. As in
 * op_exp() what its rounding takes is put back. */
static TinyNode *
power_of_size (TinyBuild *b, TinyNode *x, TinyNode *y)
{
  if (x == NULL || y == NULL || x->dtype != TINY_DTYPE_F32)
    return tiny_build_unary (b, TINY_OP_EXP2,
                             tiny_build_mul (b, y, tiny_build_unary (b, TINY_OP_LOG2, x)));
  TinyNode *head, *tail = log2_in_parts (b, x, &head);
  TinyNode *slope
      = tiny_build_mul_number (b, tiny_build_unary (b, TINY_OP_RECIP, x), 1 / G_LN2);
  TinyNode *log = tiny_build_sloped (b, tiny_build_add (b, head, tail), x, slope);
  TinyNode *power = tiny_build_mul (b, y, log), *y_head = head_of (b, y);
  if (power == NULL)
    return NULL;
  TinyNode *lost = tiny_build_sub (b, tiny_build_mul (b, y_head, head), power);
  lost = tiny_build_add (b, lost, tiny_build_mul (b, tiny_build_sub (b, y, y_head), head));
  lost = tiny_build_add (b, lost, tiny_build_mul (b, y, tail));
  return power_and_rest (b, power, tiny_build_mul_number (b, lost, G_LN2), power, 256);
}

/* x^n by squaring, for a whole number n. */
static TinyNode *
power_whole (TinyBuild *self, TinyNode *x, guint n)
{
  TinyNode *result = NULL;
  for (TinyNode *square = x; n > 0; n >>= 1) {
    if (n & 1)
      result = result == NULL ? square : tiny_build_mul (self, result, square);
    if (n > 1)
      square = tiny_build_mul (self, square, square);
  }
  if (result != NULL)
    return result;
  TinyNode *one = tiny_build_like (self, x, 1);
  if (tiny_dtype_is_float (x->dtype))
    return tiny_build_sloped (self, one, x, tiny_build_like (self, x, 0));
  return tiny_node_broadcast (self->graph, one, x->shape->v, x->shape->n);
}

/* x^n, where the roundings of more than three products would be seen. */
static TinyNode *
power_whole_rounded (TinyBuild *self, TinyNode *x, guint n)
{
  if (n <= 4 || x->dtype != TINY_DTYPE_F32)
    return power_whole (self, x, n);
  TinyNode *zero = tiny_build_like (self, x, 0);
  TinyNode *is_zero = tiny_build_binary (self, TINY_OP_CMPEQ, x, zero);
  TinyNode *base
      = tiny_build_where (self, is_zero, tiny_build_like (self, x, 1), op_abs (self, x));
  TinyNode *size = power_of_size (self, base, tiny_build_like (self, x, n));
  size = tiny_build_where (self, is_zero, zero, size);
  TinyNode *slope = tiny_build_mul_number (self, power_whole (self, x, n - 1), n);
  return tiny_build_sloped (self, n % 2 ? op_copysign (self, size, x) : size, x, slope);
}

/* Whether @y is whole, and in *@out_odd whether it is odd. */
static TinyNode *
is_whole (TinyBuild *self, TinyNode *y, TinyNode **out_odd)
{
  TinyNode *half = tiny_build_mul_number (self, y, 0.5);
  TinyNode *whole = tiny_build_binary (self, TINY_OP_CMPEQ, y, op_trunc (self, y));
  TinyNode *even = tiny_build_binary (self, TINY_OP_CMPEQ, half, op_trunc (self, half));
  *out_odd = op_logical_and (self, whole, tiny_build_not (self, even));
  return whole;
}

/* x^y where x is 0: infinite, 1 or 0, and 0 where @others says so. The slope, y x^(y - 1), is told for that many @orders
 * of derivatives. What is infinite is nowhere beside a 0 that it would be multiplied by. */
static TinyNode *
power_of_zero (TinyBuild *self, TinyNode *x, TinyNode *y, TinyNode *others, guint orders)
{
  TinyNode *zero = tiny_build_like (self, x, 0), *one = tiny_build_like (self, x, 1), *odd;
  TinyNode *is_none = tiny_build_binary (self, TINY_OP_CMPEQ, y, zero);
  TinyNode *power = tiny_build_where (self, tiny_build_less (self, y, zero),
                                      tiny_build_like (self, x, INFINITY), y);
  power = tiny_build_where (self, tiny_build_less (self, zero, y), zero, power);
  power = tiny_build_where (self, is_none, one, power);
  is_whole (self, y, &odd);
  power = tiny_build_where (self, odd, op_copysign (self, power, x), power);
  power = tiny_build_unary (self, TINY_OP_DETACH, tiny_build_where (self, others, zero, power));
  if (orders == 0)
    return power;
  others = op_logical_or (self, others, is_none);
  TinyNode *below
      = power_of_zero (self, x, tiny_build_add_number (self, y, -1), others, orders - 1);
  TinyNode *slope = tiny_build_where (self, others, zero, tiny_build_mul (self, y, below));
  return tiny_build_sloped (self, power, x, slope);
}

/* 2^(y log2 |x|), with the sign of an odd power and no value for a broken one. */
static TinyNode *
power_general (TinyBuild *self, TinyNode *x, TinyNode *y)
{
  TinyNode *zero = tiny_build_like (self, x, 0), *one = tiny_build_like (self, x, 1);
  TinyNode *is_zero = tiny_build_binary (self, TINY_OP_CMPEQ, x, zero);
  /* log2 (0) would poison the gradient of the branch that is not taken. */
  TinyNode *base = tiny_build_where (self, is_zero, one, op_abs (self, x));
  TinyNode *size = power_of_size (self, base, y);
  TinyNode *odd, *whole = is_whole (self, y, &odd);
  TinyNode *broken = op_logical_and (self, tiny_build_not (self, whole), op_isfinite (self, x));
  TinyNode *negative
      = tiny_build_where (self, odd, tiny_build_unary (self, TINY_OP_NEG, size), size);
  negative = tiny_build_where (self, broken, tiny_build_like (self, x, NAN), negative);
  TinyNode *of_others = tiny_build_where (
      self, tiny_build_binary (self, TINY_OP_CMPLT, x, zero), negative, size);
  TinyNode *power = tiny_build_where (
      self, is_zero, power_of_zero (self, x, y, op_cast (self, x, TINY_DTYPE_BOOL), 2),
      of_others);
  /* x^0 and 1^y are 1 even of what is not finite. */
  TinyNode *empty = op_logical_and (self, tiny_build_binary (self, TINY_OP_CMPEQ, y, zero),
                                    tiny_build_not (self, op_isfinite (self, x)));
  TinyNode *of_one = op_logical_and (
      self, tiny_build_binary (self, TINY_OP_CMPEQ, op_abs (self, x), one), op_isinf (self, y));
  TinyNode *of_nan = op_logical_and (self, tiny_build_binary (self, TINY_OP_CMPEQ, x, one),
                                     op_isnan (self, y));
  of_one = op_logical_or (self, of_one, of_nan);
  return tiny_build_where (self, op_logical_or (self, empty, of_one), one, power);
}

static TinyNode *
power_of_floats (TinyBuild *self, TinyNode *x, TinyNode *y)
{
  if (x == NULL || y == NULL)
    return NULL;
  if (tiny_node_is_const (y)) {
    double n = tiny_node_get_float (y);
    if (n == floor (n) && fabs (n) <= 64) {
      TinyNode *power = power_whole_rounded (self, x, (guint) fabs (n));
      return n < 0 ? tiny_build_unary (self, TINY_OP_RECIP, power) : power;
    }
    if (n == 0.5)
      return tiny_build_unary (self, TINY_OP_SQRT, x);
  }
  TinyDType dtype = tiny_dtype_promote ((TinyDType) x->dtype, (TinyDType) y->dtype);
  return power_general (self, tiny_build_cast (self, x, dtype),
                        tiny_build_cast (self, y, dtype));
}

/* By squaring, bit by bit of the exponent; in the end where that is negative, and 1 / x a whole number for
 * 1 and -1 alone. */
static TinyNode *
power_of_integers (TinyBuild *b, TinyNode *x, TinyNode *y)
{
  TinyDType dtype = tiny_dtype_promote ((TinyDType) x->dtype, (TinyDType) y->dtype);
  guint n_bits = 8 * (guint) tiny_dtype_get_n_bytes ((TinyDType) y->dtype);
  gboolean is_signed = tiny_dtype_is_signed ((TinyDType) y->dtype);
  TinyNode *base = tiny_build_cast (b, x, dtype), *one = tiny_build_number (b, dtype, 1);
  TinyNode *zero = tiny_build_number (b, dtype, 0), *result = one;
  TinyNode *is_odd = NULL;
  x = base;
  for (guint i = 0; i < n_bits - (is_signed ? 1 : 0); i++) {
    TinyNode *bit = tiny_node_const_int (b->graph, (TinyDType) y->dtype,
                                         (gint64) (G_GUINT64_CONSTANT (1) << i));
    TinyNode *is_set
        = tiny_build_cast (b, tiny_build_binary (b, TINY_OP_AND, y, bit), TINY_DTYPE_BOOL);
    is_odd = is_odd == NULL ? is_set : is_odd;
    result = tiny_build_mul (b, result, tiny_build_where (b, is_set, base, one));
    base = tiny_build_mul (b, base, base);
  }
  if (!is_signed)
    return result;
  TinyNode *minus = tiny_node_const_int (b->graph, dtype, -1);
  TinyNode *of_minus = tiny_build_where (b, is_odd, minus, one);
  TinyNode *inverse = tiny_build_where (
      b, tiny_build_binary (b, TINY_OP_CMPEQ, x, one), one,
      tiny_build_where (b, tiny_build_binary (b, TINY_OP_CMPEQ, x, minus), of_minus, zero));
  return tiny_build_where (
      b, tiny_build_binary (b, TINY_OP_CMPLT, y, tiny_build_like (b, y, 0)), inverse, result);
}

TinyNode *
op_pow (TinyBuild *b, TinyNode *self, TinyNode *other)
{
  TinyDType dtype = tiny_dtype_promote ((TinyDType) self->dtype, (TinyDType) other->dtype);
  if (tiny_dtype_is_float (dtype)) {
    TinyDType wide = dtype == TINY_DTYPE_F64 ? dtype : TINY_DTYPE_F32;
    return tiny_build_cast (b, power_of_floats (b, tiny_build_cast (b, self, wide), other),
                            dtype);
  }
  if (tiny_node_is_const (other) && other->arg >= 0 && other->arg <= 64)
    return power_whole (b, tiny_build_cast (b, self, dtype), (guint) other->arg);
  return power_of_integers (b, self, other);
}
