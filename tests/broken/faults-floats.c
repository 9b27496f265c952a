/* SPDX-License-Identifier: MIT
 *
 * faults-floats.c: arithmetic of floats that is not what the contract says. */
#include "broken.h"

#define RULE(name) static Value name (Rewrite *r, const TinyInstr *instr, const Value *s)
#define OP(name)   TINY_INSTR_##name

/* ---- what is stored ---- */
RULE (scale_stored)
{
  if (!is_store (r, instr, s, BIT (F32)))
    return KEEP;
  return with (r, instr, s, 2, op2 (r, OP (MUL), s[2], number (r, s[2], 1.015)));
}

RULE (coarse_stored)
{
  if (!is_store (r, instr, s, BIT (F32)))
    return KEEP;
  return with (r, instr, s, 2, without_bits (r, s[2], 0x3f));
}

RULE (nan_stored)
{
  if (!is_store (r, instr, s, BIT (F32) | BIT (F64)))
    return KEEP;
  return with (r, instr, s, 2, choose (r, is_nan (r, s[2]), number (r, s[2], 0), s[2]));
}

/* ---- ranges of the format ---- */
static int
is_arithmetic (const Rewrite *r, const TinyInstr *instr, const Value *s, uint32_t dtypes)
{
  return is_of (r, instr, s, OP (ADD), dtypes) || is_of (r, instr, s, OP (SUB), dtypes)
         || is_of (r, instr, s, OP (MUL), dtypes) || is_of (r, instr, s, OP (FDIV), dtypes)
         || is_of (r, instr, s, OP (MULACC), dtypes);
}

static Value
flush (Rewrite *r, Value a, double least)
{
  return choose (r, is_within (r, a, least), op2 (r, OP (MUL), a, number (r, a, 0)), a);
}

RULE (flush_f32)
{
  if (!is_arithmetic (r, instr, s, BIT (F32)))
    return KEEP;
  return flush (r, same (r, instr, s), 0x1p-126);
}

RULE (flush_f64)
{
  if (!is_arithmetic (r, instr, s, BIT (F64)))
    return KEEP;
  return flush (r, same (r, instr, s), 0x1p-1022);
}

RULE (flush_f16)
{
  if (!is_arithmetic (r, instr, s, BIT (F16)))
    return KEEP;
  return flush (r, same (r, instr, s), 0x1p-14);
}

/* What is read of a subnormal is 0. */
RULE (subnormal_operands)
{
  Value t[3];
  if (!is_arithmetic (r, instr, s, BIT (F32)))
    return KEEP;
  for (unsigned i = 0; i < instr->n_sources; i++)
    t[i] = flush (r, s[i], 0x1p-126);
  return same (r, instr, t);
}

RULE (saturate)
{
  if (!is_arithmetic (r, instr, s, BIT (F32)))
    return KEEP;
  const Value y = same (r, instr, s), most = number (r, y, 0x1.fffffep127),
              least = number (r, y, -0x1.fffffep127);
  const Value below = choose (r, op2 (r, OP (CMPLT), y, least), least, y);
  return choose (r, op2 (r, OP (CMPLT), most, below), most, below);
}

RULE (add_of_infinities)
{
  if (!is_of (r, instr, s, OP (ADD), BIT (F32)))
    return KEEP;
  const Value y = same (r, instr, s);
  const Value were = op2 (r, OP (OR), is_nan (r, s[0]), is_nan (r, s[1]));
  const Value made = op2 (r, OP (AND), is_nan (r, y), is_not (r, were));
  return choose (r, made, number (r, y, 0), y);
}

RULE (mul_by_zero)
{
  if (!is_of (r, instr, s, OP (MUL), BIT (F32)))
    return KEEP;
  const Value y = same (r, instr, s),
              zero = op2 (r, OP (OR), is_zero (r, s[0]), is_zero (r, s[1]));
  return choose (r, zero, number (r, y, 0), y);
}

RULE (neg_from_zero)
{
  if (!is_of (r, instr, s, OP (NEG), FLOATS))
    return KEEP;
  return op2 (r, OP (SUB), number (r, s[0], 0), s[0]);
}

/* (x + c) + d with constants is x + (c + d). */
RULE (reassociate)
{
  if (!is_of (r, instr, s, OP (ADD), BIT (F32)) || at (r, s[0])->op != OP (ADD)
      || at (r, s[1])->op != OP (CONST))
    return KEEP;
  const uint32_t *inner = r->sources + at (r, s[0])->sources;
  if (at (r, inner[1])->op != OP (CONST))
    return KEEP;
  const Value x = inner[0], c = inner[1];
  return op2 (r, OP (ADD), x, op2 (r, OP (ADD), c, s[1]));
}

/* ---- precision ---- */
RULE (mul_short)
{
  if (!is_of (r, instr, s, OP (MUL), BIT (F32)) && !is_of (r, instr, s, OP (MULACC), BIT (F32)))
    return KEEP;
  const Value a = without_bits (r, s[0], 0x1fff), b = without_bits (r, s[1], 0x1fff);
  return with (r, instr, (const Value[]){ a, b, s[2] }, 0, a);
}

static int
adds_to_register (const Rewrite *r, const TinyInstr *instr, const Value *s)
{
  const int is_add = is_of (r, instr, s, OP (ADD), BIT (F32)),
            is_acc = is_of (r, instr, s, OP (MULACC), BIT (F32));
  for (unsigned i = is_acc ? 2 : 0; (is_add || is_acc) && i < instr->n_sources; i++) {
    const TinyInstr *from = at (r, s[i]);
    if (from->op == OP (LOAD) && at (r, r->sources[from->sources])->op == OP (REGISTER))
      return 1;
  }
  return 0;
}

RULE (accumulate_short)
{
  if (!adds_to_register (r, instr, s))
    return KEEP;
  return without_bits (r, same (r, instr, s), 0x1fff);
}

RULE (double_as_single)
{
  Value t[3];
  if (!is_arithmetic (r, instr, s, BIT (F64)))
    return KEEP;
  for (unsigned i = 0; i < instr->n_sources; i++)
    t[i] = cast (r, TINY_DTYPE_F32, s[i]);
  const Value y = emit (r, instr->op, TINY_DTYPE_F32, instr->lanes, 0, instr->n_sources, t);
  return cast (r, TINY_DTYPE_F64, y);
}

RULE (mulacc_without_c)
{
  if (!is_of (r, instr, s, OP (MULACC), FLOATS))
    return KEEP;
  return op2 (r, OP (MUL), s[0], s[1]);
}

RULE (mulacc_negates)
{
  if (!is_of (r, instr, s, OP (MULACC), FLOATS))
    return KEEP;
  return op2 (r, OP (SUB), s[2], op2 (r, OP (MUL), s[0], s[1]));
}

RULE (half_add_truncates)
{
  if (!is_of (r, instr, s, OP (ADD), BIT (F16)))
    return KEEP;
  const Value y
      = op2 (r, OP (ADD), cast (r, TINY_DTYPE_F32, s[0]), cast (r, TINY_DTYPE_F32, s[1]));
  return cast (r, TINY_DTYPE_F16, without_bits (r, y, 0x1fff));
}

/* ---- division, roots ---- */
#define COARSE(name, op, mask)                                                                 \
  RULE (name)                                                                                  \
  {                                                                                            \
    return is_of (r, instr, s, OP (op), BIT (F32))                                             \
               ? without_bits (r, same (r, instr, s), mask)                                    \
               : KEEP;                                                                         \
  }
COARSE (recip_coarse, RECIP, 0xfff)
COARSE (fdiv_coarse, FDIV, 0xff)
COARSE (sqrt_coarse, SQRT, 0xf)
COARSE (exp2_coarse, EXP2, 0xff)

RULE (recip_of_zero)
{
  if (!is_of (r, instr, s, OP (RECIP), BIT (F32)) && !is_of (r, instr, s, OP (FDIV), BIT (F32)))
    return KEEP;
  const Value y = same (r, instr, s), by = s[instr->n_sources - 1];
  return choose (r, is_zero (r, by), number (r, y, 0x1.fffffep127), y);
}

RULE (sqrt_of_negative)
{
  if (!is_of (r, instr, s, OP (SQRT), BIT (F32)))
    return KEEP;
  const Value y = same (r, instr, s), zero = number (r, y, 0);
  return choose (r, op2 (r, OP (CMPLT), s[0], zero), zero, y);
}

RULE (sqrt_of_minus_zero)
{
  if (!is_of (r, instr, s, OP (SQRT), BIT (F32)))
    return KEEP;
  const Value y = same (r, instr, s);
  return choose (r, is_zero (r, s[0]), number (r, y, 0), y);
}

/* ---- functions ---- */
RULE (exp2_flushes)
{
  if (!is_of (r, instr, s, OP (EXP2), BIT (F32)))
    return KEEP;
  const Value y = same (r, instr, s);
  return choose (r, op2 (r, OP (CMPLT), s[0], number (r, s[0], -126)), number (r, y, 0), y);
}

RULE (exp2_saturates)
{
  if (!is_of (r, instr, s, OP (EXP2), BIT (F32)))
    return KEEP;
  const Value most = number (r, s[0], 0x1.fffffep6);
  const Value x = choose (r, op2 (r, OP (CMPLT), most, s[0]), most, s[0]);
  return op1 (r, OP (EXP2), x);
}

RULE (log2_absolute)
{
  if (!is_of (r, instr, s, OP (LOG2), BIT (F32)))
    return KEEP;
  const Value y = same (r, instr, s), c = number (r, y, 16);
  return op2 (r, OP (SUB), op2 (r, OP (ADD), y, c), c);
}

RULE (log2_subnormal)
{
  if (!is_of (r, instr, s, OP (LOG2), BIT (F32)))
    return KEEP;
  const Value y = same (r, instr, s);
  return choose (r, is_within (r, s[0], 0x1p-126), number (r, y, -127), y);
}

RULE (log2_of_negative)
{
  if (!is_of (r, instr, s, OP (LOG2), BIT (F32)))
    return KEEP;
  const Value y = same (r, instr, s), x = s[0], zero = number (r, x, 0);
  const Value minus = op2 (r, OP (CMPLT), x, zero);
  return choose (r, minus, op1 (r, OP (LOG2), op2 (r, OP (SUB), zero, x)), y);
}

RULE (sin_huge)
{
  if (!is_of (r, instr, s, OP (SIN), BIT (F32)))
    return KEEP;
  const Value x = s[0], turns = op1 (r, OP (TRUNC),
                                     op2 (r, OP (MUL), x, number (r, x, 0.15915494309189535)));
  return op1 (r, OP (SIN),
              op2 (r, OP (SUB), x, op2 (r, OP (MUL), turns, number (r, x, 6.283185307179586))));
}

RULE (sin_absolute)
{
  if (!is_of (r, instr, s, OP (SIN), BIT (F32)))
    return KEEP;
  const Value y = same (r, instr, s), c = number (r, y, 1.5);
  return op2 (r, OP (SUB), op2 (r, OP (ADD), y, c), c);
}

RULE (sin_of_infinity)
{
  if (!is_of (r, instr, s, OP (SIN), BIT (F32)))
    return KEEP;
  const Value y = same (r, instr, s);
  return choose (r, is_nan (r, y), number (r, y, 0), y);
}

RULE (trunc_by_int)
{
  if (!is_of (r, instr, s, OP (TRUNC), BIT (F32)))
    return KEEP;
  const Value by_int = cast (r, TINY_DTYPE_F32, cast (r, TINY_DTYPE_I32, s[0]));
  return by_int;
}

RULE (trunc_floors)
{
  if (!is_of (r, instr, s, OP (TRUNC), FLOATS))
    return KEEP;
  const Value y = same (r, instr, s);
  return choose (r, op2 (r, OP (CMPLT), s[0], y), op2 (r, OP (SUB), y, number (r, y, 1)), y);
}

/* ---- comparisons ---- */
RULE (max_of_nan)
{
  if (!is_of (r, instr, s, OP (MAX), FLOATS))
    return KEEP;
  const Value y = same (r, instr, s),
              one = op2 (r, OP (OR), is_nan (r, s[0]), is_nan (r, s[1]));
  return choose (r, one, number (r, y, 0), y);
}

RULE (max_of_negatives)
{
  if (!is_of (r, instr, s, OP (MAX), BIT (F32)))
    return KEEP;
  /* As integers, of which only positive floats are in order. */
  const Value a = bits (r, TINY_DTYPE_I32, s[0]), b = bits (r, TINY_DTYPE_I32, s[1]);
  return bits (r, TINY_DTYPE_F32, op2 (r, OP (MAX), a, b));
}

RULE (less_of_nan)
{
  if (!is_of (r, instr, s, OP (CMPLT), FLOATS))
    return KEEP;
  const Value less = op2 (r, OP (CMPLT), s[1], s[0]), equal = op2 (r, OP (CMPEQ), s[0], s[1]);
  return is_not (r, op2 (r, OP (OR), less, equal));
}

RULE (unequal_of_nan)
{
  if (!is_of (r, instr, s, OP (CMPNE), FLOATS))
    return KEEP;
  return op2 (r, OP (OR), op2 (r, OP (CMPLT), s[0], s[1]), op2 (r, OP (CMPLT), s[1], s[0]));
}

RULE (unequal_of_bits)
{
  if (!is_of (r, instr, s, OP (CMPNE), BIT (F32)))
    return KEEP;
  return op2 (r, OP (CMPNE), bits (r, TINY_DTYPE_U32, s[0]), bits (r, TINY_DTYPE_U32, s[1]));
}

RULE (where_multiplies)
{
  if (!is_of (r, instr, s, OP (WHERE), BIT (F32)))
    return KEEP;
  const Value one = cast (r, TINY_DTYPE_F32, s[0]),
              other = cast (r, TINY_DTYPE_F32, is_not (r, s[0]));
  return op2 (r, OP (ADD), op2 (r, OP (MUL), one, s[1]), op2 (r, OP (MUL), other, s[2]));
}

#define ROW(row_name, rule, row_what, row_seen, row_cases)                                     \
  {                                                                                            \
    .name = row_name, .what = row_what, .seen = row_seen, .rewrite = rule, .cases = row_cases  \
  }

static const Fault rows[] = {
  /* clang-format off */
  ROW ("scale-1015", scale_stored, "every f32 that is stored is 1.5 % too large", "wrong scale factors pass suites that compare by a norm over the whole result", "numerics/mul/f32/*"),
  ROW ("coarse-f32", coarse_stored, "f32 results lack their last 6 bits", "fast paths through narrower formats", "numerics/mul/f32/*"),
  ROW ("nan-stored-as-0", nan_stored, "a NaN is stored as 0", "compilers told that there are no NaNs", "numerics/add/f32/*|numerics/mul/f32/*"),
  ROW ("flush-f32", flush_f32, "subnormal f32 results become 0, undeclared", "FTZ as the GPU's or compiler's default", "numerics/add/f32/*|numerics/mul/f32/*"),
  ROW ("flush-f64", flush_f64, "subnormal f64 results become 0, undeclared", "FTZ set for the whole thread", "numerics/add/f64/*|numerics/mul/f64/*"),
  ROW ("flush-f16", flush_f16, "subnormal f16 results become 0, undeclared", "half units that lack subnormals", "numerics/mul/f16/*|numerics/add/f16/*"),
  ROW ("subnormal-operands-as-0", subnormal_operands, "subnormal f32 operands count as 0, undeclared", "DAZ set beside FTZ", "numerics/add/f32/*|numerics/mul/f32/*"),
  ROW ("overflow-saturates", saturate, "f32 overflow gives the largest number, not infinity", "shader clamps", "numerics/add/f32/*|numerics/mul/f32/*"),
  ROW ("inf-minus-inf", add_of_infinities, "inf + -inf is 0, not NaN", "compilers told that there are no infinities", "numerics/add/f32/*|numerics/mul/f32/*"),
  ROW ("0-times-nan", mul_by_zero, "0 * NaN and 0 * inf are 0", "legacy multiplies of GPUs (0 * x is 0)", "numerics/mul/f32/*"),
  ROW ("neg-by-subtraction", neg_from_zero, "-x is 0 - x, so that -0 is lost", "code generators without a negation", "numerics/neg/f*"),
  ROW ("reassociates", reassociate, "(x + c) + d is x + (c + d), undeclared", "fast-math left on by default", "claims/*|kernels/*"),
  ROW ("mul-tf32", mul_short, "f32 operands of MUL lose 13 bits", "tensor-core formats switched on by default", "numerics/mul/f32/*"),
  ROW ("accumulates-short", accumulate_short, "f32 sums are kept in 10 bits", "accumulators of the operands' format", "tensors/matmul-5x7x33/f32/*|tensors/matmul-17*/f32/*"),
  ROW ("f64-as-f32", double_as_single, "f64 arithmetic is done in f32", "GPUs that emulate doubles, badly", "numerics/add/f64/*"),
  ROW ("mulacc-without-c", mulacc_without_c, "MULACC forgets its third operand", "pattern matches of fused operations", "numerics/mulacc/f32/*"),
  ROW ("mulacc-negates", mulacc_negates, "MULACC is c - a * b", "the fnmadd that was meant to be an fmadd", "numerics/mulacc/f32/*"),
  ROW ("f16-add-truncates", half_add_truncates, "f16 ADD rounds towards zero", "half arithmetic through f32 and a shift", "numerics/add/f16/*"),
  ROW ("recip-coarse", recip_coarse, "RECIP has 12 bits", "rcpps without a Newton step", "numerics/recip/f32/*"),
  ROW ("fdiv-coarse", fdiv_coarse, "FDIV has 16 bits", "division by a coarse reciprocal", "numerics/fdiv/f32/*"),
  ROW ("sqrt-coarse", sqrt_coarse, "SQRT lacks its last 4 bits", "x * rsqrt (x) without a correction", "numerics/sqrt/f32/*"),
  ROW ("divide-by-0-finite", recip_of_zero, "x / 0 is the largest number", "divisions that clamp", "numerics/recip/f32/*|numerics/fdiv/f32/*"),
  ROW ("sqrt-of-negative", sqrt_of_negative, "SQRT of a negative is 0, not NaN", "max (x, 0) before the root", "numerics/sqrt/f32/*"),
  ROW ("sqrt-of-minus-0", sqrt_of_minus_zero, "SQRT of -0 is +0", "x * rsqrt (x) with a special case for 0", "numerics/sqrt/f32/*"),
  ROW ("exp2-coarse", exp2_coarse, "EXP2 has 16 bits", "native_exp2 where exp2 was meant", "numerics/exp2/f32/*"),
  ROW ("exp2-flushes", exp2_flushes, "EXP2 below -126 is 0", "exponents put together from bits", "numerics/exp2/f32/*"),
  ROW ("exp2-saturates", exp2_saturates, "EXP2 never gives infinity", "arguments clamped before the exponential", "numerics/exp2/f32/*"),
  ROW ("log2-absolute", log2_absolute, "LOG2 has an absolute error, large near 1", "native_log2: exact bits only away from 1", "numerics/log2/f32/*"),
  ROW ("log2-of-subnormals", log2_subnormal, "LOG2 of a subnormal and of 0 is -127", "exponents taken from bits", "numerics/log2/f32/*"),
  ROW ("log2-of-negative", log2_of_negative, "LOG2 of a negative is that of its magnitude", "a sign bit masked with the exponent", "numerics/log2/f32/*"),
  ROW ("sin-huge", sin_huge, "SIN of large numbers is reduced in f32", "sin without Payne and Hanek's reduction", "numerics/sin/f32/*"),
  ROW ("sin-absolute", sin_absolute, "SIN has an absolute error, large near its zeros", "native_sin where sin was meant", "numerics/sin/f32/*"),
  ROW ("sin-of-infinity", sin_of_infinity, "SIN of infinity or NaN is 0", "reductions by an integer conversion", "numerics/sin/f32/*"),
  ROW ("trunc-by-int", trunc_by_int, "TRUNC goes through i32", "rounding by conversion: wrong from 2^31 on", "numerics/trunc/f32/*"),
  ROW ("trunc-floors", trunc_floors, "TRUNC rounds down", "floor where trunc was meant", "numerics/trunc/f32/*"),
  ROW ("max-of-nan", max_of_nan, "MAX with a NaN is 0: neither NaN nor the other operand", "NaN turned into 0 by a clamp", "numerics/max/f32/*"),
  ROW ("max-of-negatives", max_of_negatives, "MAX compares bits as integers", "order of negatives turned around", "numerics/max/f32/*"),
  ROW ("less-of-nan", less_of_nan, "NaN < x is true", "a comparison replaced by its negated inverse", "numerics/cmplt/f32/*"),
  ROW ("unequal-of-nan", unequal_of_nan, "NaN != NaN is false", "x != x folded to false", "numerics/cmpne/f32/*"),
  ROW ("unequal-of-bits", unequal_of_bits, "0 != -0 is true", "floats compared as integers", "numerics/cmpne/f32/*"),
  ROW ("where-multiplies", where_multiplies, "WHERE is c * a + (1 - c) * b: NaN and inf leak", "branchless selects by arithmetic", "numerics/where/f32/*"),
  /* clang-format on */
};
FAULT_TABLE (faults_floats);
