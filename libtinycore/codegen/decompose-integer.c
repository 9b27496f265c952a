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

static TinyNode *
divide_unsigned (Decompose *d, TinyNode *x, TinyNode *y)
{
  if (dec_has (d, TINY_OP_IDIV, x->dtype))
    return dec_binary (d, TINY_OP_IDIV, x, y);
  if (y->op == TINY_OP_CONST && y->arg != 0)
    return divide_by_constant (d, x, (guint64) y->arg);
  return divide_bitwise (d, x, y);
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
