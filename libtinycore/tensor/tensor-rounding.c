/* SPDX-License-Identifier: MIT
 *
 * tensor-rounding.c: to whole numbers, and divisions that give them. */
#include <math.h>

#include "tensor/operations-private.h"
#include "tensor/tiny-layout.h"

TinyNode *
op_trunc (TinyBuild *self, TinyNode *x)
{
  return x == NULL || !tiny_dtype_is_float (x->dtype)
             ? x
             : tiny_build_unary (self, TINY_OP_TRUNC, x);
}

TinyNode *
op_floor (TinyBuild *self, TinyNode *x)
{
  if (x == NULL || !tiny_dtype_is_float (x->dtype))
    return x;
  TinyNode *whole = op_trunc (self, x);
  return tiny_build_where (self, tiny_build_binary (self, TINY_OP_CMPLT, x, whole),
                           tiny_build_add_number (self, whole, -1), whole);
}

TinyNode *
op_ceil (TinyBuild *self, TinyNode *x)
{
  if (x == NULL || !tiny_dtype_is_float (x->dtype))
    return x;
  TinyNode *whole = op_trunc (self, x);
  return tiny_build_where (self, tiny_build_binary (self, TINY_OP_CMPLT, whole, x),
                           tiny_build_add_number (self, whole, 1), whole);
}

TinyNode *
op_round (TinyBuild *self, TinyNode *x)
{
  if (x == NULL || !tiny_dtype_is_float (x->dtype))
    return x;
  TinyNode *below = op_floor (self, x);
  TinyNode *rest = tiny_build_sub (self, x, below);
  TinyNode *half = tiny_build_like (self, x, 0.5);
  TinyNode *halved = tiny_build_mul (self, below, half);
  TinyNode *odd = tiny_build_binary (self, TINY_OP_CMPNE, op_floor (self, halved), halved);
  TinyNode *tie_up = tiny_build_binary (
      self, TINY_OP_AND, tiny_build_binary (self, TINY_OP_CMPEQ, rest, half), odd);
  TinyNode *up = tiny_build_binary (
      self, TINY_OP_OR, tiny_build_binary (self, TINY_OP_CMPLT, half, rest), tie_up);
  return tiny_build_where (self, up, tiny_build_add_number (self, below, 1), below);
}

/* The quotient, or what is left, of integers: 0 of a division by 0, which the ops leave open. */
static TinyNode *
divide_integers (TinyBuild *b, TinyOp op, TinyNode *x, TinyNode *y)
{
  if (x == NULL || y == NULL || (tiny_node_is_const (y) && y->arg != 0))
    return tiny_build_binary (b, op, x, y);
  TinyNode *zero = tiny_build_number (b, (TinyDType) y->dtype, 0);
  TinyNode *is_none = tiny_build_binary (b, TINY_OP_CMPEQ, y, zero);
  TinyNode *by = tiny_build_where (b, is_none, tiny_build_like (b, y, 1), y);
  TinyNode *result = tiny_build_binary (b, op, x, by);
  return op == TINY_OP_MOD ? result : tiny_build_where (b, is_none, zero, result);
}

/* The quotient rounded towards zero. */
static TinyNode *
truncated_quotient (TinyBuild *b, TinyNode *x, TinyNode *y)
{
  TinyDType dtype = tiny_dtype_promote ((TinyDType) x->dtype, (TinyDType) y->dtype);
  if (tiny_dtype_is_float (dtype))
    return op_trunc (b, tiny_build_div (b, x, y));
  return divide_integers (b, TINY_OP_IDIV, x, y);
}

/* ---- the remainder of floats, which is exact ---- */

/* A size of floats as mantissa * 2^(exponent - bias - bits of the mantissa), both as signed integers. */
typedef struct {
  TinyNode *mantissa, *exponent;
} Parts;

static TinyNode *
with_int (TinyBuild *b, TinyOp op, TinyNode *x, gint64 number)
{
  return tiny_build_binary (b, op, x,
                            tiny_node_const_int (b->graph, (TinyDType) x->dtype, number));
}

static Parts
take_apart (TinyBuild *b, TinyNode *size, TinyDType word, gint64 n_bits)
{
  const gint64 hidden = G_GINT64_CONSTANT (1) << n_bits;
  TinyNode *bits = op_bitcast (b, size, word), *one = tiny_build_number (b, word, 1);
  TinyNode *exponent = with_int (b, TINY_OP_SHR, bits, n_bits);
  TinyNode *is_normal = tiny_build_less (b, tiny_build_number (b, word, 0), exponent);
  TinyNode *fraction = with_int (b, TINY_OP_AND, bits, hidden - 1);
  return (Parts){ tiny_build_where (b, is_normal, with_int (b, TINY_OP_OR, fraction, hidden),
                                    fraction),
                  tiny_build_where (b, is_normal, exponent, one) };
}

/* 2^n, n within the range of normal numbers. */
static TinyNode *
two_to (TinyBuild *b, TinyNode *n, TinyDType dtype, gint64 n_bits)
{
  const gint64 bias = dtype == TINY_DTYPE_F64 ? 1023 : 127;
  return op_bitcast (b, with_int (b, TINY_OP_SHL, with_int (b, TINY_OP_ADD, n, bias), n_bits),
                     dtype);
}

/* @rest * 2^@n modulo @by, which @inverse is 1 over: the quotient as floats have it is at most one off, and the
 * difference right however much of its terms is cut off. */
static TinyNode *
shift_rest (
    TinyBuild *b, TinyNode *rest, TinyNode *n, TinyNode *by, TinyNode *inverse, gint64 n_bits)
{
  TinyDType dtype = (TinyDType) inverse->dtype, word = (TinyDType) rest->dtype;
  TinyNode *quotient = tiny_build_mul (b, tiny_build_cast (b, rest, dtype), inverse);
  quotient
      = tiny_build_cast (b, tiny_build_mul (b, quotient, two_to (b, n, dtype, n_bits)), word);
  rest = tiny_build_sub (b, tiny_build_binary (b, TINY_OP_SHL, rest, n),
                         tiny_build_mul (b, quotient, by));
  TinyNode *is_below = with_int (b, TINY_OP_CMPLT, rest, 0);
  rest = tiny_build_where (b, is_below, tiny_build_add (b, rest, by), rest);
  return tiny_build_where (b, tiny_build_less (b, rest, by), rest,
                           tiny_build_sub (b, rest, by));
}

/* What is left of @x, a size, after as many of @y as are in it: long division of the mantissas, as many bits of the
 * quotient at a time as floats are sure of. Right where both are finite, @y is not 0 and not larger than @x. */
static TinyNode *
rest_of_sizes (TinyBuild *b, TinyNode *x, TinyNode *y)
{
  TinyDType dtype = (TinyDType) x->dtype;
  const gboolean is_double = dtype == TINY_DTYPE_F64;
  const TinyDType word = is_double ? TINY_DTYPE_I64 : TINY_DTYPE_I32;
  const gint64 n_bits = is_double ? 52 : 23, step = n_bits - 3, most = is_double ? 2045 : 253;
  Parts of_x = take_apart (b, x, word, n_bits), of_y = take_apart (b, y, word, n_bits);
  TinyNode *zero = tiny_build_number (b, word, 0),
           *whole = tiny_build_number (b, word, (double) step);
  TinyNode *by = op_maximum (b, of_y.mantissa, tiny_build_number (b, word, 1));
  TinyNode *rest = tiny_build_binary (b, TINY_OP_MOD, of_x.mantissa, by);
  TinyNode *left = tiny_build_sub (b, of_x.exponent, of_y.exponent);
  TinyNode *inverse = tiny_build_unary (b, TINY_OP_RECIP, tiny_build_cast (b, by, dtype));
  /* Each count is made of the whole one: of the counts before, LLVM's constant propagation takes time that doubles with
   * each. */
  for (gint64 done = 0; done < most; done += step) {
    TinyNode *more = with_int (b, TINY_OP_ADD, left, -done);
    TinyNode *n = op_minimum (b, op_maximum (b, more, zero), whole);
    rest = shift_rest (b, rest, n, by, inverse, n_bits);
  }
  /* In two steps, for the scale of what is subnormal would be too. */
  const gint64 bias = is_double ? 1023 : 127;
  TinyNode *scale = with_int (b, TINY_OP_ADD, of_y.exponent, -bias - n_bits);
  TinyNode *large = op_maximum (b, scale, tiny_node_const_int (b->graph, word, 1 - bias));
  TinyNode *value
      = tiny_build_mul (b, tiny_build_cast (b, rest, dtype), two_to (b, large, dtype, n_bits));
  return tiny_build_mul (b, value, two_to (b, tiny_build_sub (b, scale, large), dtype, n_bits));
}

/* In which floats of @dtype are divided. */
static TinyDType
wide_of (TinyDType dtype)
{
  return tiny_dtype_is_float (dtype) && dtype != TINY_DTYPE_F64 ? TINY_DTYPE_F32 : dtype;
}

/* Whether quotients by @y are as large as what is divided, or smaller, and lose nothing but what is below the least number: it is
 * a power of two. */
static gboolean
is_power_of_two (TinyNode *y)
{
  gint exponent;
  return tiny_node_is_const (y) && fabs (frexp (tiny_node_get_float (y), &exponent)) == 0.5
         && exponent > 0 && exponent < 16;
}

/* fmod () of C. */
static TinyNode *
floats_rest (TinyBuild *b, TinyNode *x, TinyNode *y)
{
  TinyNode *whole = truncated_quotient (b, x, y);
  if (whole == NULL)
    return NULL;
  if (is_power_of_two (y)) {
    TinyNode *rest = tiny_build_sub (b, x, tiny_build_mul (b, y, whole));
    rest = tiny_build_where (b, tiny_build_less (b, op_abs (b, x), op_abs (b, y)), x, rest);
    return tiny_build_sloped (b, op_copysign (b, rest, x), x, tiny_build_like (b, x, 1));
  }
  TinyNode *x_size = op_abs (b, x), *y_size = op_abs (b, y);
  TinyNode *rest = op_copysign (b, rest_of_sizes (b, x_size, y_size), x);
  rest = tiny_build_where (b, tiny_build_less (b, x_size, y_size), x, rest);
  TinyNode *has_none
      = op_logical_or (b, tiny_build_not (b, op_isfinite (b, x)), op_isnan (b, y));
  has_none = op_logical_or (b, has_none,
                            tiny_build_binary (b, TINY_OP_CMPEQ, y, tiny_build_like (b, y, 0)));
  rest = tiny_build_where (b, has_none, tiny_build_like (b, x, NAN), rest);
  TinyNode *of_x = tiny_build_sloped (b, rest, x, tiny_build_like (b, x, 1));
  TinyNode *of_y = tiny_build_sloped (b, tiny_build_like (b, y, -0.0), y,
                                      tiny_build_unary (b, TINY_OP_NEG, whole));
  return tiny_build_add (b, of_x, of_y);
}

/* ---- quotients ---- */

/* Rounded down, as Python has it: what is left is taken away first, so that the quotient is whole but for one rounding. Infinity
 * leaves no rest; in infinity whatever has the other sign is once less than never. */
static TinyNode *
floats_rounded_down (TinyBuild *b, TinyNode *x, TinyNode *y)
{
  TinyNode *zero = tiny_build_like (b, x, 0), *quotient = tiny_build_div (b, x, y);
  TinyNode *rest = floats_rest (b, x, y);
  if (rest == NULL)
    return NULL;
  TinyNode *times = tiny_build_div (b, tiny_build_sub (b, x, rest), y);
  TinyNode *differ = tiny_build_binary (b, TINY_OP_CMPNE, tiny_build_less (b, rest, zero),
                                        tiny_build_less (b, y, zero));
  differ = op_logical_and (b, differ, tiny_build_binary (b, TINY_OP_CMPNE, rest, zero));
  TinyNode *whole = op_round (b, times);
  whole = tiny_build_where (b, differ, tiny_build_add_number (b, whole, -1), whole);
  TinyNode *is_none = tiny_build_binary (b, TINY_OP_CMPEQ, whole, zero);
  whole = tiny_build_where (b, is_none, op_copysign (b, whole, quotient), whole);
  TinyNode *by_zero = tiny_build_binary (b, TINY_OP_CMPEQ, y, zero);
  return tiny_build_where (b, by_zero, quotient, whole);
}

/* Rounded down: one less than the truncated quotient where the signs differ and a rest is left. */
TinyNode *
op_floor_divide (TinyBuild *self, TinyNode *x, TinyNode *y)
{
  if (x == NULL || y == NULL)
    return NULL;
  TinyDType dtype = tiny_dtype_promote ((TinyDType) x->dtype, (TinyDType) y->dtype);
  TinyDType wide = wide_of (dtype);
  x = tiny_build_cast (self, x, wide);
  y = tiny_build_cast (self, y, wide);
  if (tiny_dtype_is_float (dtype))
    return tiny_build_cast (self, floats_rounded_down (self, x, y), dtype);
  TinyNode *quotient = divide_integers (self, TINY_OP_IDIV, x, y);
  if (tiny_dtype_is_unsigned (dtype))
    return quotient;
  TinyNode *zero = tiny_build_number (self, dtype, 0);
  TinyNode *rest = divide_integers (self, TINY_OP_MOD, x, y);
  TinyNode *differ = tiny_build_binary (self, TINY_OP_CMPNE,
                                        tiny_build_binary (self, TINY_OP_CMPLT, x, zero),
                                        tiny_build_binary (self, TINY_OP_CMPLT, y, zero));
  TinyNode *lower = tiny_build_binary (
      self, TINY_OP_AND, tiny_build_binary (self, TINY_OP_CMPNE, rest, zero), differ);
  return tiny_build_where (self, lower, tiny_build_add_number (self, quotient, -1), quotient);
}

TinyNode *
op_div (TinyBuild *b, TinyNode *self, TinyNode *other, const char *rounding_mode)
{
  guint which;
  if (rounding_mode == NULL)
    return tiny_build_div (b, self, other);
  if (!tiny_build_word (b, rounding_mode, "trunc|floor", &which))
    return NULL;
  self = tiny_build_numeric (b, self);
  other = tiny_build_numeric (b, other);
  return which == 0 ? truncated_quotient (b, self, other) : op_floor_divide (b, self, other);
}

TinyNode *
op_fmod (TinyBuild *b, TinyNode *self, TinyNode *other)
{
  /* u64 and a signed integer have no common one: they meet in f32. */
  TinyDType dtype = tiny_dtype_promote ((TinyDType) self->dtype, (TinyDType) other->dtype);
  if (!tiny_dtype_is_float (dtype))
    return divide_integers (b, TINY_OP_MOD, tiny_build_cast (b, self, dtype),
                            tiny_build_cast (b, other, dtype));
  TinyDType wide = wide_of (dtype);
  return tiny_build_cast (
      b, floats_rest (b, tiny_build_cast (b, self, wide), tiny_build_cast (b, other, wide)),
      dtype);
}
