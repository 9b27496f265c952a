/* SPDX-License-Identifier: MIT
 *
 * faults-values.c: results that are wrong at single values: ties, zeros with a sign, counts at the edge, exact quotients. */
#include "broken.h"

#define RULE(name) static Value name (Rewrite *r, const TinyInstr *instr, const Value *s)
#define OP(name)   TINY_INSTR_##name
enum { WIDE = 1u << TINY_DTYPE_I64 | 1u << TINY_DTYPE_U64 };

static int
converts (const Rewrite *r, const TinyInstr *instr, const Value *s, uint32_t from, unsigned to)
{
  return is_data (r, instr, s, OP (CAST), from) && instr->dtype == to;
}

static Value
both (Rewrite *r, Value a, Value b)
{
  return op2 (r, OP (AND), a, b);
}

/* ---- ties ---- */
/* A float whose last @n_bits are a one and zeros lies between two of so many bits less: the odd one is taken. */
static Value
ties_to_odd (Rewrite *r, const TinyInstr *instr, const Value *s, unsigned n_bits)
{
  const unsigned from = at (r, s[0])->dtype;
  const Value u = bits (r, from == TINY_DTYPE_F64 ? TINY_DTYPE_U64 : TINY_DTYPE_U32, s[0]);
  const Value one = integer (r, u, 1), half = integer (r, u, INT64_C (1) << (n_bits - 1)),
              rest = both (r, u, integer (r, u, (INT64_C (1) << n_bits) - 1));
  const Value y = same (r, instr, s), is_tie = is_not (r, op2 (r, OP (CMPNE), rest, half));
  const Value last = both (r, op2 (r, OP (SHR), u, integer (r, u, n_bits)), one);
  const Value is_odd = op2 (r, OP (CMPNE), last, integer (r, u, 0));
  const Value up = bits (r, from, op2 (r, OP (ADD), u, one)),
              down = bits (r, from, op2 (r, OP (SUB), u, one));
  const Value beside = choose (r, is_odd, down, up);
  return choose (r, is_tie, same (r, instr, &beside), y);
}

#define TIES(name, from, to, n_bits)                                                           \
  RULE (name)                                                                                  \
  {                                                                                            \
    return converts (r, instr, s, BIT (from), TINY_DTYPE_##to)                                 \
               ? ties_to_odd (r, instr, s, n_bits)                                             \
               : KEEP;                                                                         \
  }
TIES (f16_ties, F32, F16, 13)
TIES (bf16_ties, F32, BF16, 16)
TIES (f32_ties, F64, F32, 29)

/* ---- zeros, infinities, subnormals ---- */
static Value
without_minus_zero (Rewrite *r, Value y)
{
  return choose (r, is_zero (r, y), number (r, y, 0), y);
}

RULE (product_of_zero)
{
  return is_data (r, instr, s, OP (MUL), BIT (F32)) ? without_minus_zero (r, same (r, instr, s))
                                                    : KEEP;
}

RULE (cast_of_minus_zero)
{
  return converts (r, instr, s, BIT (F32), TINY_DTYPE_F16)
             ? without_minus_zero (r, same (r, instr, s))
             : KEEP;
}

RULE (trunc_of_minus_zero)
{
  return is_data (r, instr, s, OP (TRUNC), BIT (F32))
             ? without_minus_zero (r, same (r, instr, s))
             : KEEP;
}

RULE (unequal_by_difference)
{
  if (!is_data (r, instr, s, OP (CMPNE), BIT (F32)))
    return KEEP;
  const Value d = op2 (r, OP (SUB), s[0], s[1]);
  return op2 (r, OP (CMPNE), d, number (r, d, 0));
}

RULE (less_by_difference)
{
  if (!is_data (r, instr, s, OP (CMPLT), BIT (I32)))
    return KEEP;
  const Value d = op2 (r, OP (SUB), s[0], s[1]);
  return op2 (r, OP (CMPLT), d, integer (r, d, 0));
}

RULE (less_of_subnormals)
{
  if (!is_data (r, instr, s, OP (CMPLT), BIT (F32)))
    return KEEP;
  Value flushed[2];
  for (unsigned i = 0; i < 2; i++)
    flushed[i] = choose (r, is_within (r, s[i], 0x1p-126), number (r, s[i], 0), s[i]);
  return same (r, instr, flushed);
}

RULE (sqrt_of_subnormals)
{
  if (!is_data (r, instr, s, OP (SQRT), BIT (F32)))
    return KEEP;
  const Value y = same (r, instr, s);
  return choose (r, is_within (r, s[0], 0x1p-126), number (r, y, 0), y);
}

RULE (recip_of_large)
{
  if (!is_data (r, instr, s, OP (RECIP), BIT (F32))
      && !is_data (r, instr, s, OP (FDIV), BIT (F32)))
    return KEEP;
  const Value y = same (r, instr, s);
  return choose (r, is_within (r, y, 0x1p-126), number (r, y, 0), y);
}

RULE (widening_of_subnormals)
{
  if (!converts (r, instr, s, BIT (F32), TINY_DTYPE_F64))
    return KEEP;
  const Value y = same (r, instr, s);
  return choose (r, is_within (r, s[0], 0x1p-126), number (r, y, 0), y);
}

RULE (bits_of_subnormals)
{
  if (!is_data (r, instr, s, OP (BITCAST), BIT (I32)) || instr->dtype != TINY_DTYPE_F32)
    return KEEP;
  const Value y = same (r, instr, s);
  return choose (r, is_within (r, y, 0x1p-126), number (r, y, 0), y);
}

RULE (less_of_zeros)
{
  if (!is_data (r, instr, s, OP (CMPLT), BIT (F32)))
    return KEEP;
  /* Both zeros, and the first has the sign. */
  const Value u = bits (r, TINY_DTYPE_U32, s[0]);
  const Value negative = is_not (r, op2 (r, OP (CMPNE), u, integer (r, u, 0x80000000)));
  const Value v = bits (r, TINY_DTYPE_U32, s[1]),
              positive = is_not (r, op2 (r, OP (CMPNE), v, integer (r, v, 0)));
  return op2 (r, OP (OR), same (r, instr, s), both (r, negative, positive));
}

RULE (sin_of_minus_zero)
{
  return is_data (r, instr, s, OP (SIN), BIT (F32)) ? without_minus_zero (r, same (r, instr, s))
                                                    : KEEP;
}

RULE (recip_of_minus_zero)
{
  if (!is_data (r, instr, s, OP (RECIP), BIT (F32)))
    return KEEP;
  const Value x = without_minus_zero (r, s[0]);
  return same (r, instr, &x);
}

RULE (sum_of_zeros)
{
  if (!is_data (r, instr, s, OP (ADD), BIT (F32)))
    return KEEP;
  return without_minus_zero (r, same (r, instr, s));
}

RULE (exp2_of_infinity)
{
  if (!is_data (r, instr, s, OP (EXP2), BIT (F32)))
    return KEEP;
  const Value zero = op2 (r, OP (SUB), s[0], s[0]); /* NaN of an infinity */
  return op2 (r, OP (ADD), same (r, instr, s), zero);
}

/* ---- integers ---- */
static Value
if_count (Rewrite *r, const TinyInstr *instr, const Value *s, int64_t count, int64_t otherwise)
{
  const Value y = same (r, instr, s);
  const Value other = op2 (r, OP (CMPNE), s[1], integer (r, s[1], count));
  return choose (r, other, y, integer (r, y, otherwise));
}

RULE (shift_by_none)
{
  return is_data (r, instr, s, OP (SHR), BIT (U32)) ? if_count (r, instr, s, 0, 0) : KEEP;
}

RULE (shift_by_most)
{
  return is_data (r, instr, s, OP (SHL), BIT (U32) | BIT (I32)) ? if_count (r, instr, s, 31, 0)
                                                                : KEEP;
}

RULE (shift_by_word)
{
  return is_data (r, instr, s, OP (SHR), BIT (U64)) ? if_count (r, instr, s, 32, 0) : KEEP;
}

/* Quotients without a remainder, of a negative, are one too low. */
RULE (divide_exact)
{
  if (!is_data (r, instr, s, OP (IDIV), BIT (I32)))
    return KEEP;
  const Value y = same (r, instr, s), zero = integer (r, y, 0);
  const Value rest = op2 (r, OP (MOD), s[0], s[1]);
  const Value is_exact = is_not (r, op2 (r, OP (CMPNE), rest, zero));
  const Value wrong = both (r, is_exact, op2 (r, OP (CMPLT), s[0], zero));
  return choose (r, wrong, op2 (r, OP (SUB), y, integer (r, y, 1)), y);
}

/* The least one divided by -1. */
static Value
is_least_by_minus_one (Rewrite *r, const Value *s)
{
  const Value least = integer (r, s[0], INT32_MIN), minus = integer (r, s[1], -1);
  return both (r, is_not (r, op2 (r, OP (CMPNE), s[0], least)),
               is_not (r, op2 (r, OP (CMPNE), s[1], minus)));
}

RULE (divide_least)
{
  if (!is_data (r, instr, s, OP (IDIV), BIT (I32)))
    return KEEP;
  const Value y = same (r, instr, s);
  return choose (r, is_least_by_minus_one (r, s), integer (r, y, INT32_MAX), y);
}

RULE (mod_least)
{
  if (!is_data (r, instr, s, OP (MOD), BIT (I32)))
    return KEEP;
  const Value y = same (r, instr, s);
  return choose (r, is_least_by_minus_one (r, s), integer (r, y, -1), y);
}

RULE (mod_positive)
{
  if (!is_data (r, instr, s, OP (MOD), SIGNED_INTS))
    return KEEP;
  const Value y = same (r, instr, s), zero = integer (r, y, 0);
  return choose (r, op2 (r, OP (CMPLT), y, zero), op2 (r, OP (SUB), zero, y), y);
}

RULE (divide_by_double)
{
  if (!is_data (r, instr, s, OP (IDIV), BIT (I64)))
    return KEEP;
  const Value a = cast (r, TINY_DTYPE_F64, s[0]), b = cast (r, TINY_DTYPE_F64, s[1]);
  return cast (r, instr->dtype, op2 (r, OP (FDIV), a, b));
}

RULE (sub_without_borrow)
{
  if (!is_data (r, instr, s, OP (SUB), WIDE))
    return KEEP;
  const Value mask = integer (r, s[0], UINT32_MAX), low = both (r, same (r, instr, s), mask);
  const Value a = op2 (r, OP (SUB), s[0], both (r, s[0], mask)),
              b = op2 (r, OP (SUB), s[1], both (r, s[1], mask));
  return op2 (r, OP (OR), op2 (r, OP (SUB), a, b), low);
}

RULE (sub_saturates)
{
  if (!is_data (r, instr, s, OP (SUB), BIT (U8) | BIT (U16)))
    return KEEP;
  const Value y = same (r, instr, s);
  return choose (r, op2 (r, OP (CMPLT), s[0], s[1]), integer (r, y, 0), y);
}

RULE (double_to_long)
{
  if (!converts (r, instr, s, BIT (F64), TINY_DTYPE_I64))
    return KEEP;
  return same (r, instr, (const Value[]){ cast (r, TINY_DTYPE_F32, s[0]) });
}

RULE (long_to_int)
{
  if (!converts (r, instr, s, BIT (I64), TINY_DTYPE_I32))
    return KEEP;
  const Value most = integer (r, s[0], INT32_MAX), y = same (r, instr, s);
  return choose (r, op2 (r, OP (CMPLT), most, s[0]), integer (r, y, INT32_MAX), y);
}

#define ROW(row_name, rule, row_what, row_seen, row_cases)                                     \
  {                                                                                            \
    .name = row_name, .what = row_what, .seen = row_seen, .rewrite = rule, .cases = row_cases  \
  }

static const Fault rows[] = {
  /* clang-format off */
  ROW ("f16-ties-odd", f16_ties, "f32 to f16 rounds ties to the odd one", "a half that is added before a shift", "numerics/cast-f16/f32/*"),
  ROW ("bf16-ties-odd", bf16_ties, "f32 to bf16 rounds ties to the odd one", "a half that is added before a shift", "numerics/cast-bf16/f32/*"),
  ROW ("f64-f32-ties-odd", f32_ties, "f64 to f32 rounds ties to the odd one", "a half that is added before a shift", "numerics/cast-f32/f64/*"),
  ROW ("mul-minus-0", product_of_zero, "a product that is -0 is 0", "legacy multiplies of GPUs", "numerics/mul/f32/*"),
  ROW ("cast-minus-0", cast_of_minus_zero, "-0 to f16 is 0", "a zero that is a case of its own", "numerics/cast-f16/f32/*"),
  ROW ("trunc-minus-0", trunc_of_minus_zero, "TRUNC of -0.5 is 0, not -0", "rounding by an integer and back", "numerics/trunc/f32/*"),
  ROW ("unequal-by-difference", unequal_by_difference, "CMPNE is x - y != 0: inf differs from inf", "comparisons by a subtraction", "numerics/cmpne/f32/*"),
  ROW ("less-by-difference", less_by_difference, "CMPLT of i32 is x - y < 0, which wraps", "comparisons by a subtraction", "numerics/cmplt/i32/*"),
  ROW ("less-flushes", less_of_subnormals, "CMPLT takes subnormals for 0, undeclared", "DAZ in comparisons only", "numerics/cmplt/f32/*"),
  ROW ("sqrt-flushes", sqrt_of_subnormals, "SQRT of a subnormal is 0, undeclared", "x * rsqrt (x) with a special case", "numerics/sqrt/f32/*"),
  ROW ("recip-flushes", recip_of_large, "a quotient that is subnormal is 0, undeclared", "reciprocals without subnormals", "numerics/recip/f32/*|numerics/fdiv/f32/*"),
  ROW ("f32-f64-flushes", widening_of_subnormals, "f32 to f64 takes subnormals for 0", "cvtss2sd with DAZ", "numerics/cast-f64/f32/*"),
  ROW ("bitcast-flushes", bits_of_subnormals, "BITCAST of i32 to f32 takes subnormals for 0", "moves through a unit that flushes", "numerics/bitcast-f32/i32/*|exec/bits/*"),
  ROW ("less-minus-0", less_of_zeros, "-0 < 0", "an order of all bits", "numerics/cmplt/f32/*"),
  ROW ("sin-minus-0", sin_of_minus_zero, "SIN of -0 is 0", "reductions that add", "numerics/sin/f32/*"),
  ROW ("recip-minus-0", recip_of_minus_zero, "1 / -0 is infinity with the other sign", "a zero that is a case of its own", "numerics/recip/f32/*"),
  ROW ("add-minus-0", sum_of_zeros, "-0 + -0 is 0", "sums that begin at 0", "numerics/add/f32/*"),
  ROW ("exp2-of-infinity", exp2_of_infinity, "EXP2 of infinities is NaN", "a fraction by a subtraction", "numerics/exp2/f32/*"),
  ROW ("shr-by-0", shift_by_none, "SHR of u32 by 0 is 0", "a shift left by 32 less the count", "numerics/shr/u32/*"),
  ROW ("shl-by-31", shift_by_most, "SHL of 32 bits by 31 is 0", "counts compared with one less than the width", "numerics/shl/?32/*"),
  ROW ("u64-shr-by-32", shift_by_word, "SHR of u64 by 32 is 0", "64 bits emulated in two words", "numerics/shr/u64/*"),
  ROW ("idiv-exact", divide_exact, "IDIV of a negative without a remainder is one too low", "a correction that comes too often", "numerics/idiv/i32/*"),
  ROW ("idiv-least", divide_least, "the least i32 by -1 is the largest", "a saturating quotient", "numerics/idiv/i32/*"),
  ROW ("mod-least", mod_least, "the least i32 leaves -1 when divided by -1", "a remainder of a quotient that saturates", "numerics/mod/i32/*"),
  ROW ("mod-positive", mod_positive, "MOD of signed integers is not negative", "remainders of magnitudes", "numerics/mod/i32/*"),
  ROW ("i64-idiv-by-f64", divide_by_double, "IDIV of i64 goes through f64", "processors without the division", "numerics/idiv/i64/*"),
  ROW ("i64-sub-borrow", sub_without_borrow, "SUB of 64 bits loses the borrow between words", "64 bits emulated in two words", "numerics/sub/?64/*"),
  ROW ("u8-sub-saturates", sub_saturates, "SUB of u8 and u16 saturates", "psubusb where psubb was meant", "numerics/sub/u8/*"),
  ROW ("f64-i64-through-f32", double_to_long, "f64 to i64 goes through f32", "a forgotten wide conversion", "numerics/cast-i64/f64/*"),
  ROW ("i64-i32-saturates", long_to_int, "i64 to i32 saturates", "vqmovn where vmovn was meant", "numerics/cast-i32/i64/*"),
  /* clang-format on */
};
FAULT_TABLE (faults_values);
