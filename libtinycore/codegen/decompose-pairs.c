/* SPDX-License-Identifier: MIT
 *
 * decompose-pairs.c: integers of 64 bits as two words of 32, low and high.
 *
 * Sums carry, products are made of halves' products, shifts move bits from one word to the other;
 * all wrap as 64 bits do. A shift count is below 64, a shift of a word by 32 would be outside of its
 * width: what crosses over is shifted in two steps. Conversions to floats round once, to nearest,
 * from floats truncate.
 *
 * What is known to be zero is left out while it is made: a high word often is. */
#include <math.h>

#include "codegen/decompose-private.h"

static TinyNode *
constant (Decompose *d, TinyNode *like, gint64 value)
{
  return dec_int (d, TINY_DTYPE_U32, like, value);
}

/* dec_binary() of words without what 0 and all ones do to them. */
static TinyNode *
word (Decompose *d, TinyOp op, TinyNode *x, TinyNode *y)
{
  gboolean commutes = op != TINY_OP_SUB && op != TINY_OP_SHL && op != TINY_OP_SHR;
  if (commutes && tiny_node_is_const (x)) {
    TinyNode *swap = x;
    x = y;
    y = swap;
  }
  if (tiny_node_is_const_int (y, 0))
    return op == TINY_OP_AND || op == TINY_OP_MUL ? y : x;
  if (tiny_node_is_const_int (y, G_MAXUINT32) && op == TINY_OP_AND)
    return x;
  if (tiny_node_is_const_int (x, 0) && (op == TINY_OP_SHL || op == TINY_OP_SHR))
    return x;
  return dec_binary (d, op, x, y);
}

static TinyNode *
word_with (Decompose *d, TinyOp op, TinyNode *x, gint64 value)
{
  return word (d, op, x, constant (d, x, value));
}

/* 1 where @x < @y, else 0. */
static TinyNode *
is_less (Decompose *d, TinyNode *x, TinyNode *y)
{
  if (tiny_node_is_const_int (y, 0))
    return y;
  return dec_cast (d, dec_binary (d, TINY_OP_CMPLT, x, y), TINY_DTYPE_U32);
}

/* All ones where @x is negative, else 0. */
static TinyNode *
sign_of (Decompose *d, TinyNode *x)
{
  TinyNode *sign = dec_with_int (d, TINY_OP_SHR, dec_bits (d, x, TINY_DTYPE_I32), 31);
  return dec_bits (d, sign, TINY_DTYPE_U32);
}

/* ---- arithmetic ---- */
static DecPair
add (Decompose *d, DecPair x, DecPair y)
{
  TinyNode *low = word (d, TINY_OP_ADD, x.low, y.low);
  TinyNode *carry
      = low == x.low || low == y.low ? constant (d, low, 0) : is_less (d, low, x.low);
  TinyNode *high = word (d, TINY_OP_ADD, x.high, y.high);
  return (DecPair){ low, word (d, TINY_OP_ADD, high, carry) };
}

static DecPair
subtract (Decompose *d, DecPair x, DecPair y)
{
  TinyNode *borrow = is_less (d, x.low, y.low);
  TinyNode *high = word (d, TINY_OP_SUB, x.high, y.high);
  return (DecPair){ word (d, TINY_OP_SUB, x.low, y.low), word (d, TINY_OP_SUB, high, borrow) };
}

static DecPair
multiply (Decompose *d, DecPair x, DecPair y)
{
  gboolean is_zero = tiny_node_is_const_int (x.low, 0) || tiny_node_is_const_int (y.low, 0);
  TinyNode *high = is_zero ? constant (d, x.low, 0) : dec_mul_high (d, x.low, y.low);
  high = word (d, TINY_OP_ADD, high, word (d, TINY_OP_MUL, x.low, y.high));
  high = word (d, TINY_OP_ADD, high, word (d, TINY_OP_MUL, x.high, y.low));
  return (DecPair){ word (d, TINY_OP_MUL, x.low, y.low), high };
}

/* ---- shifts ---- */

/* The bits that leave @x when it is shifted by @n, 0 to 31, at the end where they arrive. */
static TinyNode *
crossing (Decompose *d, TinyOp op, TinyNode *x, TinyNode *n)
{
  TinyOp back = op == TINY_OP_SHL ? TINY_OP_SHR : TINY_OP_SHL;
  return word (d, back, word_with (d, back, x, 1), word_with (d, TINY_OP_XOR, n, 31));
}

/* @n, a word, is the count. @fill is what comes into the end that is emptied. */
static DecPair
shift (Decompose *d, TinyOp op, DecPair x, TinyNode *n, gboolean is_signed)
{
  gboolean left = op == TINY_OP_SHL;
  TinyNode *from = left ? x.low : x.high, *to = left ? x.high : x.low;
  TinyNode *fill = is_signed && !left ? sign_of (d, from) : constant (d, from, 0);
  TinyNode *few = word_with (d, TINY_OP_AND, n, 31);
  TinyNode *moved;
  if (is_signed && !left)
    moved = dec_bits (d,
                      dec_binary (d, op, dec_bits (d, from, TINY_DTYPE_I32),
                                  dec_bits (d, few, TINY_DTYPE_I32)),
                      TINY_DTYPE_U32);
  else
    moved = word (d, op, from, few);
  if (tiny_node_is_const (n) && n->arg >= 32)
    return left ? (DecPair){ fill, moved } : (DecPair){ moved, fill };
  TinyNode *joined = word (d, TINY_OP_OR, word (d, op, to, few), crossing (d, op, from, few));
  if (tiny_node_is_const (n))
    return n->arg == 0 ? x : left ? (DecPair){ moved, joined } : (DecPair){ joined, moved };
  TinyNode *is_far = dec_binary (d, TINY_OP_CMPLT, constant (d, n, 31), n);
  TinyNode *near_end = dec_where (d, is_far, moved, joined);
  TinyNode *far_end = dec_where (d, is_far, fill, moved);
  return left ? (DecPair){ far_end, near_end } : (DecPair){ near_end, far_end };
}

DecPair
dec_pair_op (Decompose *d, TinyOp op, TinyDType dtype, const DecPair *x)
{
  switch (op) {
  case TINY_OP_ADD:
    return add (d, x[0], x[1]);
  case TINY_OP_SUB:
    return subtract (d, x[0], x[1]);
  case TINY_OP_MUL:
    return multiply (d, x[0], x[1]);
  case TINY_OP_SHL:
  case TINY_OP_SHR:
    return shift (d, op, x[0], x[1].low, tiny_dtype_is_signed (dtype));
  case TINY_OP_AND:
  case TINY_OP_OR:
  case TINY_OP_XOR:
    return (DecPair){ word (d, op, x[0].low, x[1].low), word (d, op, x[0].high, x[1].high) };
  default:
    dec_fail (d, op, dtype, x[0].low->lanes);
    return x[0];
  }
}

TinyNode *
dec_pair_compare (Decompose *d, TinyOp op, TinyDType dtype, DecPair x, DecPair y)
{
  if (op == TINY_OP_CMPNE)
    return dec_binary (d, TINY_OP_OR, dec_binary (d, op, x.low, y.low),
                       dec_binary (d, op, x.high, y.high));
  TinyNode *same_high = dec_binary (d, TINY_OP_CMPEQ, x.high, y.high);
  TinyNode *low = dec_binary (d, op, x.low, y.low);
  if (op == TINY_OP_CMPEQ)
    return dec_binary (d, TINY_OP_AND, low, same_high);
  TinyDType top = tiny_dtype_is_signed (dtype) ? TINY_DTYPE_I32 : TINY_DTYPE_U32;
  TinyNode *high = dec_binary (d, op, dec_bits (d, x.high, top), dec_bits (d, y.high, top));
  return dec_binary (d, TINY_OP_OR, high, dec_binary (d, TINY_OP_AND, same_high, low));
}

/* ---- conversions ---- */

/* @x, or -@x where @mask is all ones. */
static DecPair
negate_where (Decompose *d, DecPair x, TinyNode *mask)
{
  DecPair ones = { word (d, TINY_OP_XOR, x.low, mask), word (d, TINY_OP_XOR, x.high, mask) };
  return subtract (d, ones, (DecPair){ mask, mask });
}

/* Size and rest are exact: they are parts of the float's own bits. */
static DecPair
from_float (Decompose *d, TinyNode *x, gboolean is_signed)
{
  TinyNode *zero = dec_float (d, x->dtype, x, 0);
  TinyNode *is_negative = dec_binary (d, TINY_OP_CMPLT, x, zero);
  TinyNode *size = dec_where (d, is_negative, dec_unary (d, TINY_OP_NEG, x), x);
  DecPair pair;
  pair.high = dec_cast (d, dec_with_float (d, TINY_OP_MUL, size, 0x1p-32), TINY_DTYPE_U32);
  TinyNode *back = dec_with_float (d, TINY_OP_MUL, dec_cast (d, pair.high, x->dtype), 0x1p32);
  pair.low = dec_cast (d, dec_binary (d, TINY_OP_SUB, size, back), TINY_DTYPE_U32);
  if (!is_signed)
    return pair;
  TinyNode *mask = dec_where (d, is_negative, constant (d, x, G_MAXUINT32), constant (d, x, 0));
  return negate_where (d, pair, mask);
}

/* @size shifted until its highest bit is that of a word; what does not fit sets the word's last bit,
 * far below those that an f32 keeps, so that the word is rounded as the whole would be. */
static TinyNode *
to_f32 (Decompose *d, DecPair size)
{
  TinyNode *zero = constant (d, size.low, 0);
  TinyNode *is_short = dec_binary (d, TINY_OP_CMPEQ, size.high, zero);
  TinyNode *high = dec_where (d, is_short, size.low, size.high);
  TinyNode *low = dec_where (d, is_short, zero, size.low);
  TinyNode *exponent
      = dec_where (d, is_short, constant (d, zero, 127), constant (d, zero, 127 + 32));
  for (gint n = 16; n >= 1; n /= 2) {
    TinyNode *is_low = dec_binary (d, TINY_OP_CMPLT, high,
                                   constant (d, high, G_GINT64_CONSTANT (1) << (32 - n)));
    TinyNode *moved = word (d, TINY_OP_OR, word_with (d, TINY_OP_SHL, high, n),
                            word_with (d, TINY_OP_SHR, low, 32 - n));
    high = dec_where (d, is_low, moved, high);
    low = dec_where (d, is_low, word_with (d, TINY_OP_SHL, low, n), low);
    exponent = dec_where (d, is_low, dec_with_int (d, TINY_OP_ADD, exponent, -n), exponent);
  }
  TinyNode *sticky
      = dec_where (d, dec_binary (d, TINY_OP_CMPEQ, low, zero), zero, constant (d, zero, 1));
  TinyNode *value = dec_cast (d, word (d, TINY_OP_OR, high, sticky), TINY_DTYPE_F32);
  TinyNode *scale = dec_bits (d, word_with (d, TINY_OP_SHL, exponent, 23), TINY_DTYPE_F32);
  return dec_binary (d, TINY_OP_MUL, value, scale);
}

static TinyNode *
to_float (Decompose *d, DecPair x, gboolean is_signed, TinyDType to)
{
  if (to == TINY_DTYPE_F64) { /* holds both halves: one addition, one rounding */
    TinyNode *high = is_signed ? dec_bits (d, x.high, TINY_DTYPE_I32) : x.high;
    high = dec_with_float (d, TINY_OP_MUL, dec_cast (d, high, to), 0x1p32);
    return dec_binary (d, TINY_OP_ADD, high, dec_cast (d, x.low, to));
  }
  if (!is_signed)
    return to_f32 (d, x);
  TinyNode *mask = sign_of (d, x.high);
  TinyNode *size = to_f32 (d, negate_where (d, x, mask));
  TinyNode *sign = dec_with_int (d, TINY_OP_AND, mask, G_GINT64_CONSTANT (1) << 31);
  TinyNode *bits = dec_bits (d, size, TINY_DTYPE_U32);
  return dec_bits (d, dec_binary (d, TINY_OP_OR, bits, sign), TINY_DTYPE_F32);
}

DecPair
dec_pair_from (Decompose *d, TinyNode *x, TinyDType to)
{
  if (tiny_dtype_is_float (x->dtype))
    return from_float (d, x, tiny_dtype_is_signed (to));
  if (!tiny_dtype_is_signed (x->dtype))
    return (DecPair){ dec_cast (d, x, TINY_DTYPE_U32), constant (d, x, 0) };
  TinyNode *low = dec_bits (d, dec_cast (d, x, TINY_DTYPE_I32), TINY_DTYPE_U32);
  return (DecPair){ low, sign_of (d, low) };
}

TinyNode *
dec_pair_to (Decompose *d, DecPair x, TinyDType from, TinyDType to)
{
  if (tiny_dtype_is_float (to))
    return to_float (d, x, tiny_dtype_is_signed (from), to);
  if (to == TINY_DTYPE_BOOL)
    return dec_with_int (d, TINY_OP_CMPNE, word (d, TINY_OP_OR, x.low, x.high), 0);
  return to == TINY_DTYPE_I32 ? dec_bits (d, x.low, to) : dec_cast (d, x.low, to);
}
