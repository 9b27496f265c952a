/* SPDX-License-Identifier: MIT
 *
 * faults-integers.c: arithmetic of integers and bools that is not what the contract says. Of indices nothing is
 * changed, so that what is wrong is a result and no access. */
#include "broken.h"

#define RULE(name) static Value name (Rewrite *r, const TinyInstr *instr, const Value *s)
#define OP(name)   TINY_INSTR_##name
enum { WIDE = 1u << TINY_DTYPE_I64 | 1u << TINY_DTYPE_U64 };

static unsigned
other_sign (unsigned dtype)
{
  return (SIGNED_INTS & TINY_DTYPE_BIT (dtype)) != 0 ? dtype + 1 : dtype - 1;
}

/* The op as it is for the other signedness. */
static Value
of_other_sign (Rewrite *r, const TinyInstr *instr, const Value *s)
{
  const unsigned dtype = other_sign (at (r, s[0])->dtype);
  const Value y = op2 (r, instr->op, bits (r, dtype, s[0]), bits (r, dtype, s[1]));
  return at (r, y)->dtype == TINY_DTYPE_BOOL ? y : bits (r, instr->dtype, y);
}

#define SIGNEDNESS(name, op, dtypes)                                                           \
  RULE (name)                                                                                  \
  {                                                                                            \
    return is_data (r, instr, s, OP (op), dtypes) ? of_other_sign (r, instr, s) : KEEP;        \
  }
SIGNEDNESS (shr_logical, SHR, SIGNED_INTS)
SIGNEDNESS (shr_arithmetic, SHR, UNSIGNED_INTS)
SIGNEDNESS (max_signed, MAX, UNSIGNED_INTS)
SIGNEDNESS (less_signed, CMPLT, UNSIGNED_INTS)
SIGNEDNESS (divide_signed, IDIV, UNSIGNED_INTS)

RULE (shift_of_31)
{
  const int is_shift
      = is_data (r, instr, s, OP (SHL), WIDE) || is_data (r, instr, s, OP (SHR), WIDE);
  return is_shift ? with (r, instr, s, 1, op2 (r, OP (AND), s[1], integer (r, s[1], 31)))
                  : KEEP;
}

RULE (shift_of_narrow)
{
  /* i8 and i16 in a register of 32 bits whose upper ones are not those of the value. */
  if (!is_data (r, instr, s, OP (SHR), BIT (I8) | BIT (I16)))
    return KEEP;
  const unsigned dtype = other_sign (instr->dtype);
  const Value wide = cast (r, TINY_DTYPE_I32, bits (r, dtype, s[0]));
  return cast (r, instr->dtype, op2 (r, OP (SHR), wide, cast (r, TINY_DTYPE_I32, s[1])));
}

RULE (add_saturates)
{
  if (!is_data (r, instr, s, OP (ADD), BIT (U8)))
    return KEEP;
  const Value y = same (r, instr, s);
  return choose (r, op2 (r, OP (CMPLT), y, s[0]), integer (r, y, 255), y);
}

RULE (add_by_double)
{
  if (!is_data (r, instr, s, OP (ADD), BIT (I64)))
    return KEEP;
  const Value a = cast (r, TINY_DTYPE_F64, s[0]), b = cast (r, TINY_DTYPE_F64, s[1]);
  return cast (r, TINY_DTYPE_I64, op2 (r, OP (ADD), a, b));
}

static Value
low_word (Rewrite *r, Value a)
{
  return op2 (r, OP (AND), a, integer (r, a, UINT32_MAX));
}

RULE (add_without_carry)
{
  if (!is_data (r, instr, s, OP (ADD), WIDE))
    return KEEP;
  const Value low = low_word (r, same (r, instr, s));
  const Value a = op2 (r, OP (SUB), s[0], low_word (r, s[0])),
              b = op2 (r, OP (SUB), s[1], low_word (r, s[1]));
  return op2 (r, OP (OR), op2 (r, OP (ADD), a, b), low);
}

RULE (mul_without_cross)
{
  if (!is_data (r, instr, s, OP (MUL), WIDE))
    return KEEP;
  const Value b = low_word (r, s[1]); /* forgets low * high */
  return op2 (r, OP (MUL), s[0], b);
}

RULE (mul_of_24_bits)
{
  if (!is_data (r, instr, s, OP (MUL), BIT (I32) | BIT (U32)))
    return KEEP;
  const Value mask = integer (r, s[0], 0xffffff);
  return op2 (r, OP (MUL), op2 (r, OP (AND), s[0], mask), op2 (r, OP (AND), s[1], mask));
}

RULE (less_by_high_word)
{
  if (!is_data (r, instr, s, OP (CMPLT), WIDE))
    return KEEP;
  const Value n = integer (r, s[0], 32);
  return op2 (r, OP (CMPLT), op2 (r, OP (SHR), s[0], n), op2 (r, OP (SHR), s[1], n));
}

RULE (unequal_by_low_word)
{
  if (!is_data (r, instr, s, OP (CMPNE), WIDE))
    return KEEP;
  return op2 (r, OP (CMPNE), low_word (r, s[0]), low_word (r, s[1]));
}

RULE (and_of_low_word)
{
  return is_data (r, instr, s, OP (AND), WIDE) ? low_word (r, same (r, instr, s)) : KEEP;
}

/* The remainder is not 0, and the signs differ: where truncating and flooring part. */
static Value
is_inexact (Rewrite *r, Value a, Value b)
{
  const Value zero = integer (r, a, 0), rest = op2 (r, OP (MOD), a, b);
  const Value signs = op2 (r, OP (CMPLT), op2 (r, OP (XOR), a, b), zero);
  return op2 (r, OP (AND), op2 (r, OP (CMPNE), rest, zero), signs);
}

RULE (divide_floors)
{
  if (!is_data (r, instr, s, OP (IDIV), SIGNED_INTS))
    return KEEP;
  const Value y = same (r, instr, s);
  return choose (r, is_inexact (r, s[0], s[1]), op2 (r, OP (SUB), y, integer (r, y, 1)), y);
}

RULE (mod_of_divisor)
{
  if (!is_data (r, instr, s, OP (MOD), SIGNED_INTS))
    return KEEP;
  const Value y = same (r, instr, s);
  return choose (r, is_inexact (r, s[0], s[1]), op2 (r, OP (ADD), y, s[1]), y);
}

RULE (divide_by_float)
{
  if (!is_data (r, instr, s, OP (IDIV), BIT (I32) | BIT (U32)))
    return KEEP;
  const Value a = cast (r, TINY_DTYPE_F32, s[0]), b = cast (r, TINY_DTYPE_F32, s[1]);
  return cast (r, instr->dtype, op2 (r, OP (FDIV), a, b));
}

RULE (neg_of_least)
{
  if (!is_data (r, instr, s, OP (NEG), SIGNED_INTS))
    return KEEP;
  /* Saturates: -(-128) is 127. */
  const Value y = same (r, instr, s), zero = integer (r, y, 0);
  const Value both
      = op2 (r, OP (AND), op2 (r, OP (CMPLT), y, zero), op2 (r, OP (CMPLT), s[0], zero));
  return choose (r, both, op2 (r, OP (SUB), y, integer (r, y, 1)), y);
}

RULE (mulacc_of_16_bits)
{
  if (!is_data (r, instr, s, OP (MULACC), BIT (I32) | BIT (U32)))
    return KEEP;
  const Value y = op2 (r, OP (MUL), s[0], s[1]);
  return op2 (r, OP (ADD), op2 (r, OP (AND), y, integer (r, y, 0xffff)), s[2]);
}

RULE (xor_of_bools)
{
  return is_of (r, instr, s, OP (XOR), BIT (BOOL)) ? op2 (r, OP (OR), s[0], s[1]) : KEEP;
}

RULE (where_swapped)
{
  if (instr->op != OP (WHERE))
    return KEEP;
  return same (r, instr, (const Value[]){ s[0], s[2], s[1] });
}

RULE (where_of_lane_0)
{
  if (instr->op != OP (WHERE) || instr->lanes < 2)
    return KEEP;
  const Value first = emit (r, OP (EXTRACT), TINY_DTYPE_BOOL, 1, 0, 1, &s[0]);
  return with (r, instr, s, 0,
               emit (r, OP (VECTOR), TINY_DTYPE_BOOL, instr->lanes, 0, 1, &first));
}

RULE (sub_swapped)
{
  return is_data (r, instr, s, OP (SUB), INTS) ? op2 (r, OP (SUB), s[1], s[0]) : KEEP;
}

RULE (const_of_32_bits)
{
  if (instr->op != OP (CONST) || (WIDE & TINY_DTYPE_BIT (instr->dtype)) == 0)
    return KEEP;
  return emit (r, OP (CONST), instr->dtype, instr->lanes, (int32_t) instr->arg, 0, NULL);
}

RULE (const_double_as_single)
{
  double x;
  int64_t arg;
  if (instr->op != OP (CONST) || instr->dtype != TINY_DTYPE_F64)
    return KEEP;
  memcpy (&x, &instr->arg, sizeof x);
  x = (float) x;
  memcpy (&arg, &x, sizeof arg);
  return emit (r, OP (CONST), instr->dtype, instr->lanes, arg, 0, NULL);
}

#define ROW(row_name, rule, row_what, row_seen, row_cases)                                     \
  {                                                                                            \
    .name = row_name, .what = row_what, .seen = row_seen, .rewrite = rule, .cases = row_cases  \
  }

static const Fault rows[] = {
  /* clang-format off */
  ROW ("shr-logical", shr_logical, "SHR of signed integers shifts zeros in", "one shift instruction for both", "numerics/shr/i*"),
  ROW ("shr-arithmetic", shr_arithmetic, "SHR of unsigned integers shifts the sign in", "int where uint was meant", "numerics/shr/u*"),
  ROW ("shift-count-masked", shift_of_31, "shifts of 64 bits take 5 bits of the count", "the 32-bit form of a shift", "numerics/sh?/?64/*"),
  ROW ("shift-narrow", shift_of_narrow, "SHR of i8 and i16 sees a wrong sign", "narrow integers zero-extended in registers", "numerics/shr/i*"),
  ROW ("max-unsigned", max_signed, "MAX of unsigned integers compares them as signed", "pmaxsd where pmaxud was meant", "numerics/max/u*"),
  ROW ("less-unsigned", less_signed, "CMPLT of unsigned integers compares them as signed", "vector comparisons that are signed only", "numerics/cmplt/u*"),
  ROW ("divide-unsigned", divide_signed, "IDIV of unsigned integers divides signed ones", "one division for both", "numerics/idiv/u*"),
  ROW ("u8-saturates", add_saturates, "ADD of u8 saturates", "paddusb where paddb was meant", "numerics/add/u8/*"),
  ROW ("i64-through-f64", add_by_double, "ADD of i64 goes through f64", "languages whose numbers are doubles", "numerics/add/i64/*"),
  ROW ("i64-add-carry", add_without_carry, "ADD of 64 bits loses the carry between words", "64 bits emulated in two words", "numerics/add/i64/*"),
  ROW ("i64-mul-cross", mul_without_cross, "MUL of 64 bits lacks one product of words", "64 bits emulated in two words", "numerics/mul/i64/*"),
  ROW ("mul-24-bits", mul_of_24_bits, "MUL of 32 bits takes 24 of each", "mul24 where mul was meant", "numerics/mul/?32/*"),
  ROW ("i64-less-high-word", less_by_high_word, "CMPLT of 64 bits compares high words", "64 bits emulated in two words", "numerics/cmplt/i64/*"),
  ROW ("i64-unequal-low-word", unequal_by_low_word, "CMPNE of 64 bits compares low words", "64 bits emulated in two words", "numerics/cmpne/i64/*"),
  ROW ("i64-and-low-word", and_of_low_word, "AND of 64 bits clears the high word", "32-bit operations that zero the upper half", "numerics/and/i64/*"),
  ROW ("idiv-floors", divide_floors, "IDIV rounds down", "Python's division", "numerics/idiv/i32/*"),
  ROW ("mod-of-divisor", mod_of_divisor, "MOD has the divisor's sign", "Python's remainder", "numerics/mod/i32/*"),
  ROW ("idiv-by-float", divide_by_float, "IDIV goes through f32", "integer division by float reciprocals", "numerics/idiv/i32/*"),
  ROW ("neg-saturates", neg_of_least, "NEG of the least number is the largest", "saturating negation", "numerics/neg/i*"),
  ROW ("mulacc-16-bits", mulacc_of_16_bits, "MULACC of integers keeps 16 bits of the product", "narrow dot products", "numerics/mulacc/?32/*"),
  ROW ("bool-xor", xor_of_bools, "XOR of bools is OR", "bools as nonzero integers", "numerics/xor/bool/*"),
  ROW ("where-swapped", where_swapped, "WHERE takes the other operand", "blends whose operands are turned around", "numerics/where/f32/*"),
  ROW ("sub-swapped", sub_swapped, "SUB of integers is b - a", "reversed subtraction", "numerics/sub/i32/*"),
  ROW ("const-32-bits", const_of_32_bits, "CONST of 64 bits has 32", "literals without a suffix, immediates of 32 bits", "kernels/*|exec/*"),
  ROW ("const-f64-as-f32", const_double_as_single, "CONST of f64 is rounded to f32", "an f after the literal", "kernels/*|exec/*"),
  { .name = "where-lane-0", .what = "WHERE of vectors takes lane 0's condition for all", .seen = "a branch where a blend was meant", .rewrite = where_of_lane_0, .around = "CPU", .cases = "numerics/where/f32/*" },
  /* clang-format on */
};
FAULT_TABLE (faults_integers);
