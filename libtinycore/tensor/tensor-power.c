/* SPDX-License-Identifier: MIT
 *
 * tensor-power.c: powers of numbers and of e. */
#include <math.h>

#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-layout.h"

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
  TinyNode *bits = op_bitcast (b, power, TINY_DTYPE_I32);
  TinyNode *mask = tiny_node_const_int (b->graph, TINY_DTYPE_I32, -4096);
  TinyNode *head
      = op_bitcast (b, tiny_build_binary (b, TINY_OP_AND, bits, mask), TINY_DTYPE_F32);
  TinyNode *tail = tiny_build_sub (b, power, head);
  TinyNode *lost = tiny_build_sub (b, self, tiny_build_mul_number (b, head, high));
  lost = tiny_build_sub (b, lost, tiny_build_mul_number (b, head, low));
  lost = tiny_build_sub (b, lost, tiny_build_mul_number (b, tail, G_LN2));
  /* Beyond, the result is 0 or infinite; infinities have no difference. */
  TinyNode *is_near
      = tiny_build_binary (b, TINY_OP_CMPLT, op_abs (b, self), tiny_build_like (b, self, 128));
  lost = tiny_build_where (b, is_near, lost, tiny_build_like (b, self, 0));
  lost = tiny_build_unary (b, TINY_OP_DETACH, lost);
  return tiny_build_mul (b, tiny_build_unary (b, TINY_OP_EXP2, power),
                         tiny_build_add (b, lost, tiny_build_like (b, lost, 1)));
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
  TinyNode *size = tiny_build_unary (
      self, TINY_OP_EXP2,
      tiny_build_mul (self, y, tiny_build_unary (self, TINY_OP_LOG2, base)));
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
      TinyNode *power = power_whole (self, x, (guint) fabs (n));
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
  if (tiny_dtype_is_float (self->dtype) || tiny_dtype_is_float (other->dtype))
    return power_of_floats (b, tiny_build_cast (b, self, dtype), other);
  if (tiny_node_is_const (other) && other->arg >= 0 && other->arg <= 64)
    return power_whole (b, tiny_build_cast (b, self, dtype), (guint) other->arg);
  return power_of_integers (b, self, other);
}
