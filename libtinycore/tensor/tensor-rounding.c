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

static TinyNode *
both (TinyBuild *self, TinyNode *a, TinyNode *b)
{
  return tiny_build_binary (self, TINY_OP_AND, a, b);
}

/* The quotient of floats rounded down. Infinity leaves no rest that could be taken away, so there is no number of times
 * that something is in it; and in infinity whatever has the other sign is once less than never (as Python has it). */
static TinyNode *
floats_rounded_down (TinyBuild *self, TinyNode *x, TinyNode *y)
{
  TinyNode *zero = tiny_build_like (self, x, 0),
           *infinity = tiny_build_like (self, x, INFINITY);
  TinyNode *less = tiny_build_like (self, x, -INFINITY);
  TinyNode *whole = op_floor (self, tiny_build_div (self, x, y));
  TinyNode *below = both (self, tiny_build_binary (self, TINY_OP_CMPLT, x, zero),
                          tiny_build_binary (self, TINY_OP_CMPEQ, y, infinity));
  TinyNode *above = both (self, tiny_build_binary (self, TINY_OP_CMPLT, zero, x),
                          tiny_build_binary (self, TINY_OP_CMPEQ, y, less));
  TinyNode *differ = tiny_build_binary (self, TINY_OP_OR, below, above);
  TinyNode *endless
      = both (self, op_isinf (self, x), tiny_build_binary (self, TINY_OP_CMPNE, y, zero));
  whole = tiny_build_where (self, differ, tiny_build_like (self, x, -1), whole);
  return tiny_build_where (self, endless, tiny_build_like (self, x, NAN), whole);
}

/* Rounded down: one less than the truncated quotient where the signs differ and a rest is left. */
TinyNode *
op_floor_divide (TinyBuild *self, TinyNode *x, TinyNode *y)
{
  if (x == NULL || y == NULL)
    return NULL;
  TinyDType dtype = tiny_dtype_promote ((TinyDType) x->dtype, (TinyDType) y->dtype);
  x = tiny_build_cast (self, x, dtype);
  y = tiny_build_cast (self, y, dtype);
  if (tiny_dtype_is_float (dtype))
    return floats_rounded_down (self, x, y);
  TinyNode *quotient = tiny_build_binary (self, TINY_OP_IDIV, x, y);
  if (tiny_dtype_is_unsigned (dtype))
    return quotient;
  TinyNode *zero = tiny_build_number (self, dtype, 0);
  TinyNode *rest = tiny_build_binary (self, TINY_OP_MOD, x, y);
  TinyNode *differ = tiny_build_binary (self, TINY_OP_CMPNE,
                                        tiny_build_binary (self, TINY_OP_CMPLT, x, zero),
                                        tiny_build_binary (self, TINY_OP_CMPLT, y, zero));
  TinyNode *lower = tiny_build_binary (
      self, TINY_OP_AND, tiny_build_binary (self, TINY_OP_CMPNE, rest, zero), differ);
  return tiny_build_where (self, lower, tiny_build_add_number (self, quotient, -1), quotient);
}

/* The quotient rounded towards zero. */
static TinyNode *
truncated_quotient (TinyBuild *b, TinyNode *x, TinyNode *y)
{
  TinyDType dtype = tiny_dtype_promote ((TinyDType) x->dtype, (TinyDType) y->dtype);
  if (tiny_dtype_is_float (dtype))
    return op_trunc (b, tiny_build_div (b, x, y));
  return tiny_build_binary (b, TINY_OP_IDIV, x, y);
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
  self = tiny_build_cast (b, self, dtype);
  other = tiny_build_cast (b, other, dtype);
  if (!tiny_dtype_is_float (dtype))
    return tiny_build_binary (b, TINY_OP_MOD, self, other);
  TinyNode *whole = truncated_quotient (b, self, other);
  TinyNode *rest = tiny_build_sub (b, self, tiny_build_mul (b, other, whole));
  return tiny_build_where (b, op_logical_and (b, op_isinf (b, other), op_isfinite (b, self)),
                           self, rest);
}
