/* SPDX-License-Identifier: MIT
 *
 * decompose-integer.c: arithmetic, comparison and division of integers and bools from the least
 * set of ops, and what is the same for floats. */
#include "codegen/decompose-private.h"

TinyDType
dec_unsigned (TinyDType dtype)
{
  static const TinyDType by_size[] = {
    [1] = TINY_DTYPE_U8, [2] = TINY_DTYPE_U16, [4] = TINY_DTYPE_U32, [8] = TINY_DTYPE_U64
  };
  return by_size[tiny_dtype_get_n_bytes (dtype)];
}

TinyDType
dec_signed (TinyDType dtype)
{
  static const TinyDType by_size[] = {
    [1] = TINY_DTYPE_I8, [2] = TINY_DTYPE_I16, [4] = TINY_DTYPE_I32, [8] = TINY_DTYPE_I64
  };
  return by_size[tiny_dtype_get_n_bytes (dtype)];
}

static TinyNode * not(Decompose * d, TinyNode *gate)
{
  return dec_with_int (d, TINY_OP_XOR, gate, 1);
}

/* ---- bool arithmetic is logic ---- */
static TinyNode *
bool_logic (Decompose *d, TinyOp op, TinyDType dtype, TinyNode *const *x)
{
  switch (op) {
  case TINY_OP_MUL:
    return dec_binary (d, TINY_OP_AND, x[0], x[1]);
  case TINY_OP_CMPNE:
    return dec_binary (d, TINY_OP_XOR, x[0], x[1]);
  case TINY_OP_CMPLT:
    return dec_binary (d, TINY_OP_AND, not(d, x[0]), x[1]);
  case TINY_OP_MULACC:
    return dec_binary (d, TINY_OP_OR, dec_binary (d, TINY_OP_AND, x[0], x[1]), x[2]);
  case TINY_OP_WHERE:
    return dec_binary (d, TINY_OP_OR, dec_binary (d, TINY_OP_AND, x[0], x[1]),
                       dec_binary (d, TINY_OP_AND, not(d, x[0]), x[2]));
  default: /* ADD, MAX */
    return dec_binary (d, TINY_OP_OR, x[0], x[1]);
  }
}

/* ---- simple arithmetic ---- */
static TinyNode *
neg (Decompose *d, TinyOp op, TinyDType dtype, TinyNode *const *x)
{
  if (!tiny_dtype_is_float (dtype) && dec_has (d, TINY_OP_SUB, dtype))
    return dec_binary (d, TINY_OP_SUB, dec_int (d, dtype, x[0], 0), x[0]);
  return dec_with_int (d, TINY_OP_MUL, x[0], -1);
}

static TinyNode *
sub (Decompose *d, TinyOp op, TinyDType dtype, TinyNode *const *x)
{
  return dec_binary (d, TINY_OP_ADD, x[0], dec_unary (d, TINY_OP_NEG, x[1]));
}

static TinyNode *
mulacc (Decompose *d, TinyOp op, TinyDType dtype, TinyNode *const *x)
{
  return dec_binary (d, TINY_OP_ADD, dec_binary (d, TINY_OP_MUL, x[0], x[1]), x[2]);
}

/* Of a number and a NaN: the second operand. */
static TinyNode *
max (Decompose *d, TinyOp op, TinyDType dtype, TinyNode *const *x)
{
  return dec_where (d, dec_binary (d, TINY_OP_CMPLT, x[1], x[0]), x[0], x[1]);
}

static TinyNode *
cmpeq (Decompose *d, TinyOp op, TinyDType dtype, TinyNode *const *x)
{
  return not(d, dec_binary (d, TINY_OP_CMPNE, x[0], x[1]));
}

static TinyNode *
cmpne (Decompose *d, TinyOp op, TinyDType dtype, TinyNode *const *x)
{
  if (dec_has (d, TINY_OP_CMPEQ, x[0]->dtype))
    return not(d, dec_binary (d, TINY_OP_CMPEQ, x[0], x[1]));
  TinyNode *differ = dec_binary (d, TINY_OP_OR, dec_binary (d, TINY_OP_CMPLT, x[0], x[1]),
                                 dec_binary (d, TINY_OP_CMPLT, x[1], x[0]));
  if (!tiny_dtype_is_float (x[0]->dtype))
    return differ;
  /* A NaN is neither smaller nor larger, and not equal: its bits are above infinity's. */
  const TinyDTypeInfo *info = &tiny_dtype_infos[x[0]->dtype];
  TinyDType bits_type = dec_signed (x[0]->dtype);
  gint64 infinity = ((G_GINT64_CONSTANT (1) << info->exponent_bits) - 1) << info->mantissa_bits;
  for (guint i = 0; i < 2; i++) {
    TinyNode *size = dec_with_int (d, TINY_OP_AND, dec_bits (d, x[i], bits_type),
                                   tiny_dtype_get_max (bits_type));
    TinyNode *is_nan
        = dec_binary (d, TINY_OP_CMPLT, dec_int (d, bits_type, size, infinity), size);
    differ = dec_binary (d, TINY_OP_OR, differ, is_nan);
  }
  return differ;
}

/* ---- division ---- */

/* The schoolbook product in four half-width ones. */
TinyNode *
dec_mul_high (Decompose *d, TinyNode *x, TinyNode *y)
{
  guint half = 4 * tiny_dtype_get_n_bytes (x->dtype);
  gint64 mask = (G_GINT64_CONSTANT (1) << half) - 1;
  if (x->dtype == TINY_DTYPE_U32 && dec_has (d, TINY_OP_MUL, TINY_DTYPE_U64)
      && dec_has (d, TINY_OP_CAST, TINY_DTYPE_U64)) {
    TinyNode *product = dec_binary (d, TINY_OP_MUL, dec_cast (d, x, TINY_DTYPE_U64),
                                    dec_cast (d, y, TINY_DTYPE_U64));
    return dec_cast (d, dec_with_int (d, TINY_OP_SHR, product, 32), TINY_DTYPE_U32);
  }
  TinyNode *x0 = dec_with_int (d, TINY_OP_AND, x, mask),
           *x1 = dec_with_int (d, TINY_OP_SHR, x, half);
  TinyNode *y0 = dec_with_int (d, TINY_OP_AND, y, mask),
           *y1 = dec_with_int (d, TINY_OP_SHR, y, half);
  TinyNode *low = dec_with_int (d, TINY_OP_SHR, dec_binary (d, TINY_OP_MUL, x0, y0), half);
  TinyNode *middle = dec_binary (d, TINY_OP_ADD, dec_binary (d, TINY_OP_MUL, x1, y0), low);
  TinyNode *other = dec_binary (d, TINY_OP_ADD, dec_binary (d, TINY_OP_MUL, x0, y1),
                                dec_with_int (d, TINY_OP_AND, middle, mask));
  TinyNode *high = dec_binary (d, TINY_OP_ADD, dec_binary (d, TINY_OP_MUL, x1, y1),
                               dec_with_int (d, TINY_OP_SHR, middle, half));
  return dec_binary (d, TINY_OP_ADD, high, dec_with_int (d, TINY_OP_SHR, other, half));
}

/* By a constant: multiply and shift (Granlund, Montgomery, "Division by Invariant Integers using
 * Multiplication", PLDI 1994, figure 4.1). */
static TinyNode *
divide_by_constant (Decompose *d, TinyNode *x, guint64 divisor)
{
  guint n_bits = 8 * tiny_dtype_get_n_bytes (x->dtype), l = 0;
  while (l < 64 && (G_GUINT64_CONSTANT (1) << l) < divisor)
    l++;
  if (l < 64 && divisor == G_GUINT64_CONSTANT (1) << l)
    return l == 0 ? x : dec_with_int (d, TINY_OP_SHR, x, l);
  /* multiplier = 2^n_bits * (2^l - divisor) / divisor + 1, bit by bit. */
  guint64 rest = (l < 64 ? G_GUINT64_CONSTANT (1) << l : 0) - divisor, multiplier = 0;
  for (guint i = 0; i < n_bits; i++) {
    gboolean carry = rest >> 63;
    rest <<= 1;
    gboolean fits = carry || rest >= divisor;
    if (fits)
      rest -= divisor;
    multiplier = multiplier << 1 | fits;
  }
  TinyNode *t = dec_mul_high (d, x, dec_int (d, x->dtype, x, (gint64) (multiplier + 1)));
  TinyNode *half = dec_with_int (d, TINY_OP_SHR, dec_binary (d, TINY_OP_SUB, x, t), 1);
  return dec_with_int (d, TINY_OP_SHR, dec_binary (d, TINY_OP_ADD, t, half), l - 1);
}

/* By a variable: one bit of the quotient after the other. Long, but right for every width and
 * nothing but shifts and subtractions; by zero it gives all ones. */
static TinyNode *
divide_bitwise (Decompose *d, TinyNode *x, TinyNode *y)
{
  TinyNode *rest = dec_int (d, x->dtype, x, 0), *quotient = rest;
  for (gint i = (gint) (8 * tiny_dtype_get_n_bytes (x->dtype)) - 1; i >= 0; i--) {
    TinyNode *bit = dec_with_int (d, TINY_OP_AND, dec_with_int (d, TINY_OP_SHR, x, i), 1);
    /* The rest can have lost its top bit to the shift: then it is larger than any divisor. */
    TinyNode *top
        = dec_with_int (d, TINY_OP_SHR, rest, 8 * tiny_dtype_get_n_bytes (x->dtype) - 1);
    rest = dec_binary (d, TINY_OP_OR, dec_with_int (d, TINY_OP_SHL, rest, 1), bit);
    TinyNode *fits
        = dec_binary (d, TINY_OP_OR, not(d, dec_binary (d, TINY_OP_CMPLT, rest, y)),
                      dec_binary (d, TINY_OP_CMPLT, dec_int (d, x->dtype, x, 0), top));
    TinyNode *less = dec_binary (d, TINY_OP_SUB, rest, y);
    TinyNode *with
        = dec_binary (d, TINY_OP_OR, quotient,
                      dec_int (d, x->dtype, x, (gint64) (G_GUINT64_CONSTANT (1) << i)));
    rest = dec_where (d, fits, less, rest);
    quotient = dec_where (d, fits, with, quotient);
  }
  return quotient;
}

/* ---- 64 bits by 32-bit divisions (Knuth, "The Art of Computer Programming" 2, 4.3.1, algorithm D;
 * the reduction of a long divisor is Warren's, "Hacker's Delight", 9-5) ---- */
static TinyNode *
upper (Decompose *d, TinyNode *x)
{
  return dec_cast (d, dec_with_int (d, TINY_OP_SHR, x, 32), TINY_DTYPE_U32);
}

/* How far @x, a u32 that is not 0, can be shifted left without loss; of 0: 31. */
static TinyNode *
count_zeros (Decompose *d, TinyNode *x)
{
  TinyNode *n = dec_int (d, x->dtype, x, 0);
  for (guint step = 16; step >= 1; step /= 2) {
    TinyNode *least = dec_int (d, x->dtype, x, G_GINT64_CONSTANT (1) << (32 - step));
    TinyNode *is_low = dec_binary (d, TINY_OP_CMPLT, x, least);
    x = dec_where (d, is_low, dec_with_int (d, TINY_OP_SHL, x, step), x);
    n = dec_where (d, is_low, dec_with_int (d, TINY_OP_ADD, n, step), n);
  }
  return n;
}

/* The next 16 bits of a quotient: of *rest 2^16 + @digit by @y, whose highest bit is 1; *rest is below
 * @y, and the new one comes in its place. The first guess, by the divisor's upper half, is at most
 * two too large. */
static TinyNode *
next_digit (Decompose *d, TinyNode **rest, TinyNode *digit, TinyNode *y)
{
  const gint64 base = 1 << 16;
  TinyNode *high = dec_with_int (d, TINY_OP_SHR, y, 16);
  TinyNode *low = dec_with_int (d, TINY_OP_AND, y, base - 1);
  TinyNode *guess = dec_binary (d, TINY_OP_IDIV, *rest, high);
  TinyNode *left = dec_binary (d, TINY_OP_SUB, *rest, dec_binary (d, TINY_OP_MUL, guess, high));
  TinyNode *largest = dec_int (d, y->dtype, y, base - 1),
           *limit = dec_int (d, y->dtype, y, base);
  for (guint i = 0; i < 2; i++) {
    TinyNode *have = dec_binary (d, TINY_OP_OR, dec_with_int (d, TINY_OP_SHL, left, 16), digit);
    TinyNode *wanted = dec_binary (d, TINY_OP_MUL, guess, low);
    TinyNode *is_large
        = dec_binary (d, TINY_OP_OR, dec_binary (d, TINY_OP_CMPLT, largest, guess),
                      dec_binary (d, TINY_OP_CMPLT, have, wanted));
    is_large
        = dec_binary (d, TINY_OP_AND, is_large, dec_binary (d, TINY_OP_CMPLT, left, limit));
    guess = dec_where (d, is_large, dec_with_int (d, TINY_OP_ADD, guess, -1), guess);
    left = dec_where (d, is_large, dec_binary (d, TINY_OP_ADD, left, high), left);
  }
  TinyNode *all = dec_binary (d, TINY_OP_OR, dec_with_int (d, TINY_OP_SHL, *rest, 16), digit);
  *rest = dec_binary (d, TINY_OP_SUB, all, dec_binary (d, TINY_OP_MUL, guess, y));
  return guess;
}

/* Of u64 by u64. A divisor of one word takes two steps of two words by one. One of two words takes a
 * single step, by its highest 32 bits, for a quotient that is at most one too large. */
static TinyNode *
divide_words (Decompose *d, TinyNode *x, TinyNode *y)
{
  const TinyDType u32 = TINY_DTYPE_U32, u64 = TINY_DTYPE_U64;
  TinyNode *x_low = dec_cast (d, x, u32), *x_high = upper (d, x);
  TinyNode *y_low = dec_cast (d, y, u32), *y_high = upper (d, y);
  TinyNode *is_short = dec_with_int (d, TINY_OP_CMPEQ, y_high, 0);
  TinyNode *shift = count_zeros (d, dec_where (d, is_short, y_low, y_high));
  TinyNode *by
      = upper (d, dec_binary (d, TINY_OP_SHL,
                              dec_where (d, is_short, dec_with_int (d, TINY_OP_SHL, y, 32), y),
                              dec_cast (d, shift, u64)));
  TinyNode *first = dec_binary (d, TINY_OP_IDIV, x_high, y_low);
  TinyNode *rest
      = dec_binary (d, TINY_OP_SUB, x_high, dec_binary (d, TINY_OP_MUL, first, y_low));
  TinyNode *dividend
      = dec_binary (d, TINY_OP_OR, dec_with_int (d, TINY_OP_SHL, dec_cast (d, rest, u64), 32),
                    dec_cast (d, x_low, u64));
  dividend = dec_binary (d, TINY_OP_SHL, dividend, dec_cast (d, shift, u64));
  dividend = dec_where (d, is_short, dividend, dec_with_int (d, TINY_OP_SHR, x, 1));
  TinyNode *low = dec_cast (d, dividend, u32);
  rest = upper (d, dividend);
  TinyNode *quotient = next_digit (d, &rest, dec_with_int (d, TINY_OP_SHR, low, 16), by);
  TinyNode *other = next_digit (d, &rest, dec_with_int (d, TINY_OP_AND, low, 0xffff), by);
  quotient = dec_binary (d, TINY_OP_OR, dec_with_int (d, TINY_OP_SHL, quotient, 16), other);

  TinyNode *one_word
      = dec_binary (d, TINY_OP_OR, dec_with_int (d, TINY_OP_SHL, dec_cast (d, first, u64), 32),
                    dec_cast (d, quotient, u64));
  TinyNode *guess
      = dec_binary (d, TINY_OP_SHR, quotient, dec_with_int (d, TINY_OP_XOR, shift, 31));
  TinyNode *is_zero = dec_with_int (d, TINY_OP_CMPEQ, guess, 0);
  guess = dec_where (d, is_zero, guess, dec_with_int (d, TINY_OP_ADD, guess, -1));
  TinyNode *wide = dec_cast (d, guess, u64);
  TinyNode *left = dec_binary (d, TINY_OP_SUB, x, dec_binary (d, TINY_OP_MUL, wide, y));
  TinyNode *fits = not(d, dec_binary (d, TINY_OP_CMPLT, left, y));
  wide = dec_where (d, fits, dec_with_int (d, TINY_OP_ADD, wide, 1), wide);
  return dec_where (d, is_short, one_word, wide);
}

static TinyNode *
divide_unsigned (Decompose *d, TinyNode *x, TinyNode *y)
{
  if (dec_has (d, TINY_OP_IDIV, x->dtype))
    return dec_binary (d, TINY_OP_IDIV, x, y);
  if (y->op == TINY_OP_CONST && y->arg != 0)
    return divide_by_constant (d, x, (guint64) y->arg);
  return x->dtype == TINY_DTYPE_U64 ? divide_words (d, x, y) : divide_bitwise (d, x, y);
}

static TinyNode *
idiv (Decompose *d, TinyOp op, TinyDType dtype, TinyNode *const *x)
{
  if (tiny_dtype_is_unsigned (dtype))
    return divide_unsigned (d, x[0], x[1]);
  /* Sizes divided, then the sign. The least number is its own size as unsigned. */
  TinyDType size_type = dec_unsigned (dtype);
  TinyNode *sizes[2], *negative[2], *zero = dec_int (d, dtype, x[0], 0);
  for (guint i = 0; i < 2; i++) {
    negative[i] = dec_binary (d, TINY_OP_CMPLT, x[i], zero);
    TinyNode *size = dec_where (d, negative[i], dec_unary (d, TINY_OP_NEG, x[i]), x[i]);
    sizes[i] = dec_bits (d, size, size_type);
  }
  TinyNode *quotient = dec_bits (d, divide_unsigned (d, sizes[0], sizes[1]), dtype);
  TinyNode *differ = dec_binary (d, TINY_OP_XOR, negative[0], negative[1]);
  return dec_where (d, differ, dec_unary (d, TINY_OP_NEG, quotient), quotient);
}

static TinyNode *
mod (Decompose *d, TinyOp op, TinyDType dtype, TinyNode *const *x)
{
  TinyNode *quotient = dec_binary (d, TINY_OP_IDIV, x[0], x[1]);
  return dec_binary (d, TINY_OP_SUB, x[0], dec_binary (d, TINY_OP_MUL, quotient, x[1]));
}

/* Rounding down: where the rest has another sign than the divisor, one step further. */
static TinyNode *
floor_division (Decompose *d, TinyOp op, TinyDType dtype, TinyNode *const *x)
{
  gboolean divides = op == TINY_OP_FLOORDIV;
  if (tiny_dtype_is_unsigned (dtype))
    return dec_binary (d, divides ? TINY_OP_IDIV : TINY_OP_MOD, x[0], x[1]);
  TinyNode *rest = dec_binary (d, TINY_OP_MOD, x[0], x[1]), *zero = dec_int (d, dtype, rest, 0);
  TinyNode *signs
      = dec_binary (d, TINY_OP_CMPLT, dec_binary (d, TINY_OP_XOR, rest, x[1]), zero);
  TinyNode *wrong
      = dec_binary (d, TINY_OP_AND, signs, dec_binary (d, TINY_OP_CMPNE, rest, zero));
  if (!divides)
    return dec_where (d, wrong, dec_binary (d, TINY_OP_ADD, rest, x[1]), rest);
  TinyNode *quotient = dec_binary (d, TINY_OP_IDIV, x[0], x[1]);
  return dec_where (d, wrong, dec_with_int (d, TINY_OP_ADD, quotient, -1), quotient);
}

const DecomposeRow decompose_integer_rows[] = {
  { TINY_OP_ADD, "B", bool_logic },
  { TINY_OP_MUL, "B", bool_logic },
  { TINY_OP_MAX, "B", bool_logic },
  { TINY_OP_MULACC, "B", bool_logic },
  { TINY_OP_CMPLT, "B", bool_logic },
  { TINY_OP_CMPNE, "B", bool_logic },
  { TINY_OP_WHERE, "B", bool_logic },
  { TINY_OP_NEG, "IUF", neg },
  { TINY_OP_SUB, "IUF", sub },
  { TINY_OP_MULACC, "IUF", mulacc },
  { TINY_OP_MAX, "IUF", max },
  { TINY_OP_CMPEQ, "BIUF", cmpeq },
  { TINY_OP_CMPNE, "IUF", cmpne },
  { TINY_OP_IDIV, "IU", idiv },
  { TINY_OP_MOD, "IU", mod },
  { TINY_OP_FLOORDIV, "IU", floor_division },
  { TINY_OP_FLOORMOD, "IU", floor_division },
  { 0 },
};
