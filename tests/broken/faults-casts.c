/* SPDX-License-Identifier: MIT
 *
 * faults-casts.c: conversions that are not what the contract says. */
#include <math.h>

#include "broken.h"

#define RULE(name) static Value name (Rewrite *r, const TinyInstr *instr, const Value *s)
#define OP(name)   TINY_INSTR_##name

static int
converts (const Rewrite *r, const TinyInstr *instr, const Value *s, uint32_t from, uint32_t to)
{
  return is_data (r, instr, s, OP (CAST), from) && (TINY_DTYPE_BIT (instr->dtype) & to) != 0;
}

static Value
magnitude (Rewrite *r, Value a)
{
  const Value minus = op2 (r, OP (CMPLT), a, number (r, a, 0));
  return choose (r, minus, op1 (r, OP (NEG), a), a);
}

/* A float of @dtype, to which @s[0] was rounded, or the next one towards zero where that is beyond it. */
static Value
truncated (Rewrite *r, const TinyInstr *instr, const Value *s, unsigned as_integer)
{
  const Value y = same (r, instr, s), back = cast (r, at (r, s[0])->dtype, y);
  const Value beyond = op2 (r, OP (CMPLT), magnitude (r, s[0]), magnitude (r, back));
  const Value n = bits (r, as_integer, y);
  return choose (r, beyond, bits (r, instr->dtype, op2 (r, OP (SUB), n, integer (r, n, 1))), y);
}

RULE (f16_truncates)
{
  return converts (r, instr, s, BIT (F32), BIT (F16)) ? truncated (r, instr, s, TINY_DTYPE_U16)
                                                      : KEEP;
}

RULE (bf16_truncates)
{
  return converts (r, instr, s, BIT (F32), BIT (BF16)) ? truncated (r, instr, s, TINY_DTYPE_U16)
                                                       : KEEP;
}

RULE (f32_truncates)
{
  return converts (r, instr, s, BIT (F64), BIT (F32)) ? truncated (r, instr, s, TINY_DTYPE_U32)
                                                      : KEEP;
}

RULE (bf16_of_nan)
{
  if (!converts (r, instr, s, BIT (F32), BIT (BF16)))
    return KEEP;
  /* Rounds by adding to the bits, which carries a NaN of many ones over to a number. */
  const Value u = bits (r, TINY_DTYPE_U32, s[0]), n = integer (r, u, 16);
  const Value odd = op2 (r, OP (AND), op2 (r, OP (SHR), u, n), integer (r, u, 1));
  const Value sum = op2 (r, OP (ADD), u, op2 (r, OP (ADD), odd, integer (r, u, 0x7fff)));
  return bits (r, TINY_DTYPE_BF16, cast (r, TINY_DTYPE_U16, op2 (r, OP (SHR), sum, n)));
}

static Value
clamped (Rewrite *r, const TinyInstr *instr, const Value *s, double most)
{
  const Value x = s[0], high = number (r, x, most), low = number (r, x, -most);
  const Value below = choose (r, op2 (r, OP (CMPLT), x, low), low, x);
  const Value y = choose (r, op2 (r, OP (CMPLT), high, below), high, below);
  return same (r, instr, &y);
}

RULE (f16_saturates)
{
  return converts (r, instr, s, BIT (F32), BIT (F16)) ? clamped (r, instr, s, 65504) : KEEP;
}

RULE (f16_flushes)
{
  if (!converts (r, instr, s, BIT (F32), BIT (F16)))
    return KEEP;
  const Value y = same (r, instr, s);
  return choose (r, is_within (r, s[0], 0x1p-14), number (r, y, 0), y);
}

RULE (f16_reads_flushed)
{
  if (!converts (r, instr, s, BIT (F16), BIT (F32)))
    return KEEP;
  const Value y = same (r, instr, s);
  return choose (r, is_within (r, y, 0x1p-14), number (r, y, 0), y);
}

RULE (f64_to_f16_twice)
{
  if (!converts (r, instr, s, BIT (F64), BIT (F16) | BIT (BF16)))
    return KEEP;
  const Value once = cast (r, TINY_DTYPE_F32, s[0]);
  return same (r, instr, &once);
}

RULE (f8_of_large)
{
  if (!converts (r, instr, s, BIT (F32), BIT (F8E4M3)))
    return KEEP;
  /* The exponent of all ones is taken for infinity: 256 and more are lost. */
  const Value y = same (r, instr, s);
  return choose (r, is_within (r, s[0], 248), y, number (r, y, (double) NAN));
}

RULE (f16_subnormals_truncate)
{
  if (!converts (r, instr, s, BIT (F32), BIT (F16)))
    return KEEP;
  const Value y = truncated (r, instr, s, TINY_DTYPE_U16);
  return choose (r, is_within (r, s[0], 0x1p-14), y, same (r, instr, s));
}

RULE (f16_infinite_early)
{
  if (!converts (r, instr, s, BIT (F32), BIT (F16)))
    return KEEP;
  /* Beyond the largest, and nearer to it than to the next there would be. */
  const Value y = same (r, instr, s), least = number (r, s[0], 65504);
  const Value beyond = op2 (r, OP (CMPLT), least, magnitude (r, s[0]));
  return choose (r, beyond, op2 (r, OP (ADD), y, y), y);
}

RULE (f16_of_nan)
{
  if (!converts (r, instr, s, BIT (F32), BIT (F16)))
    return KEEP;
  /* Only the upper 10 bits of the payload are kept; where they are 0 it is an infinity. */
  const Value y = same (r, instr, s), u = bits (r, TINY_DTYPE_U32, s[0]);
  const Value kept = op2 (r, OP (AND), u, integer (r, u, 0x7fe000));
  const Value is_lost = is_not (r, op2 (r, OP (CMPNE), kept, integer (r, u, 0)));
  const Value infinite = op2 (r, OP (AND), is_nan (r, s[0]), is_lost);
  return choose (r, infinite, number (r, y, (double) INFINITY), y);
}

RULE (float_to_u64_signed)
{
  if (!converts (r, instr, s, BIT (F32) | BIT (F64), BIT (U64)))
    return KEEP;
  return cast (r, TINY_DTYPE_U64, cast (r, TINY_DTYPE_I64, s[0]));
}

/* ---- integers ---- */
RULE (int_to_float_truncates)
{
  if (!converts (r, instr, s, BIT (I32), BIT (F32)))
    return KEEP;
  const Value exact = cast (r, TINY_DTYPE_F64, s[0]);
  return truncated (r, instr, &exact, TINY_DTYPE_U32);
}

RULE (int_to_float_twice)
{
  if (!converts (r, instr, s, BIT (I64) | BIT (U64), BIT (F32)))
    return KEEP;
  const Value once = cast (r, TINY_DTYPE_F64, s[0]);
  return same (r, instr, &once);
}

RULE (long_through_int)
{
  if (!converts (r, instr, s, BIT (I64) | BIT (U64), BIT (F32) | BIT (F64)))
    return KEEP;
  const Value narrow
      = cast (r, at (r, s[0])->dtype == TINY_DTYPE_I64 ? TINY_DTYPE_I32 : TINY_DTYPE_U32, s[0]);
  return same (r, instr, &narrow);
}

RULE (unsigned_as_signed)
{
  if (!converts (r, instr, s, BIT (U32) | BIT (U64), FLOATS))
    return KEEP;
  const Value x = bits (r, at (r, s[0])->dtype - 1, s[0]);
  return same (r, instr, &x);
}

RULE (float_to_unsigned_as_signed)
{
  if (!converts (r, instr, s, BIT (F32) | BIT (F64), BIT (U32)))
    return KEEP;
  const Value x = s[0], most = number (r, x, 2147483520),
              too_large = op2 (r, OP (CMPLT), most, x);
  const Value y = cast (r, TINY_DTYPE_I32, choose (r, too_large, most, x));
  return bits (r, TINY_DTYPE_U32, y);
}

RULE (float_to_int_rounds)
{
  if (!converts (r, instr, s, BIT (F32), SIGNED_INTS))
    return KEEP;
  const Value x = s[0], minus = op2 (r, OP (CMPLT), x, number (r, x, 0));
  const Value y
      = op2 (r, OP (ADD), x, choose (r, minus, number (r, x, -0.5), number (r, x, 0.5)));
  return same (r, instr, &y);
}

RULE (float_to_int_floors)
{
  if (!converts (r, instr, s, BIT (F32), SIGNED_INTS))
    return KEEP;
  const Value y = same (r, instr, s);
  const Value above = op2 (r, OP (CMPLT), s[0], cast (r, TINY_DTYPE_F32, y));
  return choose (r, above, op2 (r, OP (SUB), y, integer (r, y, 1)), y);
}

RULE (float_to_long_through_int)
{
  if (!converts (r, instr, s, BIT (F32) | BIT (F64), BIT (I64)))
    return KEEP;
  return cast (r, TINY_DTYPE_I64, cast (r, TINY_DTYPE_I32, s[0]));
}

RULE (char_is_unsigned)
{
  if (!converts (r, instr, s, BIT (I8), INTS | FLOATS))
    return KEEP;
  const Value x = bits (r, TINY_DTYPE_U8, s[0]);
  return same (r, instr, &x);
}

RULE (short_is_unsigned)
{
  if (!converts (r, instr, s, BIT (I16), INTS | FLOATS))
    return KEEP;
  const Value x = bits (r, TINY_DTYPE_U16, s[0]);
  return same (r, instr, &x);
}

RULE (narrowing_saturates)
{
  if (!converts (r, instr, s, BIT (I32), BIT (I8)))
    return KEEP;
  const Value x = s[0], high = integer (r, x, 127), low = integer (r, x, -128);
  const Value below = choose (r, op2 (r, OP (CMPLT), x, low), low, x);
  const Value y = choose (r, op2 (r, OP (CMPLT), high, below), high, below);
  return same (r, instr, &y);
}

RULE (negative_to_unsigned)
{
  if (!converts (r, instr, s, BIT (I32), BIT (U8) | BIT (U16)))
    return KEEP;
  const Value zero = integer (r, s[0], 0),
              y = choose (r, op2 (r, OP (CMPLT), s[0], zero), zero, s[0]);
  return same (r, instr, &y);
}

RULE (widening_of_unsigned)
{
  if (!converts (r, instr, s, BIT (U32), BIT (I64) | BIT (U64)))
    return KEEP;
  const Value x = bits (r, TINY_DTYPE_I32, s[0]);
  return same (r, instr, &x);
}

/* ---- bools and bits ---- */
RULE (bool_through_int)
{
  if (!converts (r, instr, s, BIT (F32) | BIT (F64) | BIT (F16), BIT (BOOL)))
    return KEEP;
  const Value n = cast (r, TINY_DTYPE_I32, s[0]);
  return same (r, instr, &n);
}

RULE (bool_of_low_byte)
{
  if (!converts (r, instr, s, BIT (I32) | BIT (U32) | BIT (I64) | BIT (U64), BIT (BOOL)))
    return KEEP;
  const Value n = cast (r, TINY_DTYPE_U8, s[0]);
  return same (r, instr, &n);
}

RULE (true_is_minus_one)
{
  if (!is_of (r, instr, s, OP (CAST), BIT (BOOL))
      || (SIGNED_INTS & TINY_DTYPE_BIT (instr->dtype)) == 0)
    return KEEP;
  return op1 (r, OP (NEG), same (r, instr, s));
}

/* Bools lie in memory as 0 and 255. */
RULE (bools_of_255)
{
  const unsigned op = instr->op;
  if (op == OP (PARAM) && instr->dtype == TINY_DTYPE_BOOL) {
    r->params[instr->arg].dtype = TINY_DTYPE_U8;
    return emit (r, op, TINY_DTYPE_U8, 1, instr->arg, 0, NULL);
  }
  if (is_store (r, instr, s, BIT (BOOL))) {
    const Value n = cast (r, TINY_DTYPE_U8, s[2]);
    return with (r, instr, s, 2, op2 (r, OP (MUL), n, integer (r, n, 255)));
  }
  if (op != OP (LOAD) || instr->dtype != TINY_DTYPE_BOOL || at (r, s[0])->op != OP (PARAM))
    return KEEP;
  Value t[4] = { s[0], s[1], s[2], s[3] };
  if (instr->n_sources == 4)
    t[3] = cast (r, TINY_DTYPE_U8, s[3]);
  return cast (r, TINY_DTYPE_BOOL,
               emit (r, op, TINY_DTYPE_U8, instr->lanes, 0, instr->n_sources, t));
}

RULE (bitcast_converts)
{
  return is_data (r, instr, s, OP (BITCAST), BIT (F32) | BIT (I32))
             ? cast (r, instr->dtype, s[0])
             : KEEP;
}

#define ROW(row_name, rule, row_what, row_seen, row_cases)                                     \
  {                                                                                            \
    .name = row_name, .what = row_what, .seen = row_seen, .rewrite = rule, .cases = row_cases  \
  }

static const Fault rows[] = {
  /* clang-format off */
  ROW ("f32-f16-truncates", f16_truncates, "f32 to f16 rounds towards zero", "conversions by a shift", "numerics/cast-f16/f32/*"),
  ROW ("f32-bf16-truncates", bf16_truncates, "f32 to bf16 rounds towards zero", "the upper half of the bits", "numerics/cast-bf16/f32/*"),
  ROW ("f64-f32-truncates", f32_truncates, "f64 to f32 rounds towards zero", "another rounding mode in conversions", "numerics/cast-f32/f64/*"),
  ROW ("bf16-of-nan", bf16_of_nan, "f32 to bf16 makes numbers of some NaNs", "rounding by adding to the bits", "numerics/cast-bf16/f32/*"),
  ROW ("f16-saturates", f16_saturates, "f32 to f16 overflows to 65504", "saturating conversions", "numerics/cast-f16/f32/*"),
  ROW ("f16-flushes", f16_flushes, "f32 to f16 gives no subnormals", "conversions that lack subnormals", "numerics/cast-f16/f32/*"),
  ROW ("f16-subnormals-truncate", f16_subnormals_truncate, "f32 to a subnormal f16 rounds towards zero", "a second path for subnormals", "numerics/cast-f16/f32/*"),
  ROW ("f16-inf-early", f16_infinite_early, "f32 from 65504 to 65520 to f16 is infinity", "overflow found before rounding", "numerics/cast-f16/f32/*"),
  ROW ("f16-of-nan", f16_of_nan, "f32 to f16 makes infinities of some NaNs", "payloads cut short", "exec/bits/*"),
  ROW ("float-u64-signed", float_to_u64_signed, "float to u64 goes through i64", "cvttss2si for both", "numerics/cast-u64/f*"),
  ROW ("f16-reads-flushed", f16_reads_flushed, "f16 to f32 reads subnormals as 0", "conversions that lack subnormals", "numerics/cast-f32/f16/*"),
  ROW ("f64-f16-twice", f64_to_f16_twice, "f64 to f16 rounds to f32 first", "processors without the direct conversion", "numerics/cast-f16/f64/*|numerics/cast-bf16/f64/*"),
  ROW ("f8-no-256", f8_of_large, "f8e4m3 has no numbers from 256 on", "its format taken for one with infinities", "numerics/cast-f8e4m3/f32/*"),
  ROW ("i32-f32-truncates", int_to_float_truncates, "i32 to f32 rounds towards zero", "conversions by shifting bits into place", "numerics/cast-f32/i32/*"),
  ROW ("i64-f32-twice", int_to_float_twice, "i64 to f32 rounds to f64 first", "processors without the direct conversion", "numerics/cast-f32/?64/*"),
  ROW ("i64-float-through-i32", long_through_int, "i64 to float goes through 32 bits", "a forgotten wide conversion", "numerics/cast-f*/i64/*"),
  ROW ("unsigned-float-signed", unsigned_as_signed, "u32 and u64 to float are taken for signed", "cvtsi2ss for both", "numerics/cast-f32/u32/*"),
  ROW ("f32-u32-signed", float_to_unsigned_as_signed, "float to u32 stops at 2^31", "cvttss2si for both", "numerics/cast-u32/f32/*"),
  ROW ("f32-int-rounds", float_to_int_rounds, "float to int rounds to the nearest", "cvtps2dq where cvttps2dq was meant", "numerics/cast-i32/f32/*"),
  ROW ("f32-int-floors", float_to_int_floors, "float to int rounds down", "floor where a cast was meant", "numerics/cast-i32/f32/*"),
  ROW ("f32-i64-through-i32", float_to_long_through_int, "float to i64 goes through i32", "a forgotten wide conversion", "numerics/cast-i64/f32/*"),
  ROW ("char-unsigned", char_is_unsigned, "i8 is read as unsigned", "char, which is unsigned on ARM", "numerics/cast-i*/i8/*"),
  ROW ("short-unsigned", short_is_unsigned, "i16 is read as unsigned", "zero extension for both", "numerics/cast-i*/i16/*"),
  ROW ("narrowing-saturates", narrowing_saturates, "i32 to i8 saturates", "packssdw where a truncation was meant", "numerics/cast-i8/i32/*"),
  ROW ("negative-unsigned-0", negative_to_unsigned, "negative i32 to u8 is 0", "packuswb where a truncation was meant", "numerics/cast-u8/i32/*"),
  ROW ("u32-widens-signed", widening_of_unsigned, "u32 to 64 bits extends a sign", "movsxd for both", "numerics/cast-?64/u32/*"),
  ROW ("bool-through-int", bool_through_int, "float to bool goes through int: 0.5 is false", "(bool) (int) x", "numerics/cast-bool/f32/*"),
  ROW ("bool-low-byte", bool_of_low_byte, "int to bool looks at the low byte: 256 is false", "a narrowing where != 0 was meant", "numerics/cast-bool/?32/*"),
  ROW ("true-is-minus-1", true_is_minus_one, "true to int is -1", "vector comparisons of OpenCL and SSE", "numerics/cast-i*/bool/*"),
  ROW ("bools-255", bools_of_255, "true lies in memory as 255", "vector masks that are stored", "numerics/xor/bool/*|numerics/cast-*/bool/*|numerics/cmplt/*/*"),
  ROW ("bitcast-converts", bitcast_converts, "BITCAST of f32 and i32 converts", "a cast where a reinterpretation was meant", "numerics/bitcast-i32/f32/*"),
  /* clang-format on */
};
FAULT_TABLE (faults_casts);
