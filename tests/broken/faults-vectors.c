/* SPDX-License-Identifier: MIT
 *
 * faults-vectors.c: vectors whose lanes change places, or whose ops lack what those of scalars have. */
#include "broken.h"

#define RULE(name) static Value name (Rewrite *r, const TinyInstr *instr, const Value *s)
#define OP(name)   TINY_INSTR_##name

enum { MOST_LANES = 256 };

/* The vector whose lane i is lane @from (i) of @vector. */
static Value
turned (Rewrite *r, Value vector, unsigned (*from) (unsigned i, unsigned n))
{
  Value lanes[MOST_LANES];
  const unsigned n = at (r, vector)->lanes, dtype = at (r, vector)->dtype;
  if (n == 1 || n > MOST_LANES)
    return vector;
  for (unsigned i = 0; i < n; i++)
    lanes[i] = lane (r, vector, from (i, n));
  return emit (r, OP (VECTOR), dtype, n, 0, n, lanes);
}

/* ---- lanes ---- */
RULE (stores_aligned)
{
  if (!is_of_memory (r, instr, s, OP (STORE), OP (PARAM)) || instr->lanes < 2)
    return KEEP;
  return with (r, instr, s, 1,
               op2 (r, OP (AND), s[1], integer (r, s[1], -(int64_t) instr->lanes)));
}

/* Accesses by words of 4 elements: an address within one is that of the word. */
RULE (accesses_of_4)
{
  if (!is_access (r, instr, s) || at (r, s[0])->op != OP (PARAM) || instr->lanes < 4)
    return KEEP;
  return with (r, instr, s, 1, op2 (r, OP (AND), s[1], integer (r, s[1], -4)));
}

static unsigned
from_other_end (unsigned i, unsigned n)
{
  return n - 1 - i;
}
static unsigned
from_neighbour (unsigned i, unsigned n)
{
  return i ^ (n > 1);
}
static unsigned
from_next (unsigned i, unsigned n)
{
  return (i + 1) % n;
}
static unsigned
from_lower_half (unsigned i, unsigned n)
{
  return n >= 16 ? i % (n / 2) : i;
}

/* As packing instructions that work in halves leave them. */
static unsigned
from_quarter (unsigned i, unsigned n)
{
  const unsigned quarter = n / 4;
  return n < 8 ? i : i / quarter == 1 ? i + quarter : i / quarter == 2 ? i - quarter : i;
}

/* Both ways, so that what only passes through is right. */
static Value
turned_in_registers (Rewrite *r,
                     const TinyInstr *instr,
                     const Value *s,
                     unsigned (*in) (unsigned i, unsigned n))
{
  if (!is_access (r, instr, s) || at (r, s[0])->op != OP (PARAM) || instr->lanes < 2
      || instr->n_sources == 4)
    return KEEP;
  if (instr->op == OP (LOAD))
    return turned (r, same (r, instr, s), in);
  return with (r, instr, s, 2, turned (r, s[2], in));
}

RULE (registers_turned) { return turned_in_registers (r, instr, s, from_other_end); }
RULE (registers_swapped) { return turned_in_registers (r, instr, s, from_neighbour); }

RULE (vector_rotated)
{
  return instr->op == OP (VECTOR) && instr->n_sources > 4
             ? turned (r, same (r, instr, s), from_next)
             : KEEP;
}

RULE (load_halves)
{
  return instr->op == OP (LOAD) && instr->lanes >= 16 && at (r, s[0])->op == OP (PARAM)
             ? turned (r, same (r, instr, s), from_lower_half)
             : KEEP;
}

RULE (extract_of_4)
{
  return instr->op == OP (EXTRACT) && instr->arg >= 4
             ? emit (r, OP (EXTRACT), instr->dtype, 1, instr->arg % 4, 1, s)
             : KEEP;
}

static Value
only_lane_0 (Rewrite *r, Value scalar, unsigned lanes)
{
  Value s[MOST_LANES];
  const Value zero = number (r, scalar, 0);
  for (unsigned i = 0; i < lanes; i++)
    s[i] = i == 0 ? scalar : zero;
  return emit (r, OP (VECTOR), at (r, scalar)->dtype, lanes, 0, lanes, s);
}

RULE (broadcast_to_lane_0)
{
  return instr->op == OP (VECTOR) && instr->n_sources == 1 && instr->lanes > 1
                 && instr->lanes <= MOST_LANES
             ? only_lane_0 (r, s[0], instr->lanes)
             : KEEP;
}

RULE (constant_to_lane_0)
{
  if (instr->op != OP (CONST) || instr->lanes < 2 || instr->lanes > MOST_LANES)
    return KEEP;
  return only_lane_0 (r, emit (r, OP (CONST), instr->dtype, 1, instr->arg, 0, NULL),
                      instr->lanes);
}

RULE (narrowing_in_quarters)
{
  if (instr->op != OP (CAST) || instr->lanes < 8
      || bytes_of_dtype (instr->dtype) >= bytes_of_dtype (at (r, s[0])->dtype))
    return KEEP;
  return turned (r, same (r, instr, s), from_quarter);
}

RULE (widening_in_quarters)
{
  if (instr->op != OP (CAST) || instr->lanes < 8
      || bytes_of_dtype (instr->dtype) <= bytes_of_dtype (at (r, s[0])->dtype))
    return KEEP;
  return turned (r, same (r, instr, s), from_quarter);
}

/* ---- ops of vectors that lack what those of scalars have ---- */
static int
is_vector_of (
    const Rewrite *r, const TinyInstr *instr, const Value *s, unsigned op, uint32_t dtypes)
{
  return instr->lanes > 1 && is_of (r, instr, s, op, dtypes);
}

RULE (vector_mul_of_words)
{
  if (!is_vector_of (r, instr, s, OP (MUL), BIT (I64) | BIT (U64)))
    return KEEP;
  const Value mask = integer (r, s[0], UINT32_MAX);
  return op2 (r, OP (MUL), op2 (r, OP (AND), s[0], mask), op2 (r, OP (AND), s[1], mask));
}

RULE (vector_unsigned_to_float)
{
  if (!is_vector_of (r, instr, s, OP (CAST), BIT (U32))
      || (FLOATS & TINY_DTYPE_BIT (instr->dtype)) == 0)
    return KEEP;
  return cast (r, instr->dtype, bits (r, TINY_DTYPE_I32, s[0]));
}

RULE (vector_less_signed)
{
  if (!is_vector_of (r, instr, s, OP (CMPLT), BIT (U8) | BIT (U16)))
    return KEEP;
  const unsigned to = at (r, s[0])->dtype == TINY_DTYPE_U8 ? TINY_DTYPE_I8 : TINY_DTYPE_I16;
  return op2 (r, OP (CMPLT), bits (r, to, s[0]), bits (r, to, s[1]));
}

RULE (vector_shift_of_bytes)
{
  /* Bytes are shifted as halves: bits of the neighbour come in, here ones. */
  if (!is_vector_of (r, instr, s, OP (SHR), BIT (U8)))
    return KEEP;
  const Value ones = integer (r, s[0], 0xff), x = same (r, instr, s);
  return op2 (r, OP (OR), x, op2 (r, OP (XOR), ones, op2 (r, OP (SHR), ones, s[1])));
}

RULE (vector_divide_by_float)
{
  if (!is_vector_of (r, instr, s, OP (IDIV), BIT (I32)))
    return KEEP;
  return cast (
      r, TINY_DTYPE_I32,
      op2 (r, OP (FDIV), cast (r, TINY_DTYPE_F32, s[0]), cast (r, TINY_DTYPE_F32, s[1])));
}

RULE (vector_where_of_4)
{
  if (instr->op != OP (WHERE) || instr->lanes < 8 || instr->lanes > MOST_LANES)
    return KEEP;
  Value mask[MOST_LANES];
  for (unsigned i = 0; i < instr->lanes; i++)
    mask[i] = lane (r, s[0], i % 4);
  return with (r, instr, s, 0,
               emit (r, OP (VECTOR), TINY_DTYPE_BOOL, instr->lanes, 0, instr->lanes, mask));
}

#define ROW(row_name, rule, row_what, row_seen)                                                \
  {                                                                                            \
    .name = row_name, .what = row_what, .seen = row_seen, .rewrite = rule, .around = "CPU",    \
    .cases = "exec/*|kernels/*|claims/*|numerics/idiv/i32/*|numerics/mul/i64/*"                \
  }

static const Fault rows[] = {
  /* clang-format off */
  ROW ("stores-aligned", stores_aligned, "stores of vectors round their index down", "units that drop the low bits of an address"),
  ROW ("accesses-of-4", accesses_of_4, "vectors lie at multiples of 4 elements", "units that drop the low bits of an address"),
  ROW ("lanes-turned", registers_turned, "lanes are turned around between load and store", "big-endian lanes"),
  ROW ("lanes-swapped", registers_swapped, "neighbouring lanes are swapped between load and store", "interleaved registers"),
  ROW ("vector-rotated", vector_rotated, "VECTOR of more than 4 scalars is rotated by one", "shuffles with a wrong base"),
  ROW ("load-halves", load_halves, "loads of 16 lanes and more give the lower half twice", "registers half as wide"),
  ROW ("extract-of-4", extract_of_4, "EXTRACT counts lanes modulo 4", "lane numbers of two bits"),
  ROW ("broadcast-lane-0", broadcast_to_lane_0, "a broadcast sets lane 0 only", "a move where a splat was meant"),
  ROW ("constant-lane-0", constant_to_lane_0, "CONST of vectors sets lane 0 only", "a move where a splat was meant"),
  ROW ("narrowing-quarters", narrowing_in_quarters, "CAST of 8 lanes and more to fewer bytes swaps the middle quarters", "packs that work in halves"),
  ROW ("widening-quarters", widening_in_quarters, "CAST of 8 lanes and more to more bytes swaps the middle quarters", "unpacks that work in halves"),
  ROW ("vector-mul-words", vector_mul_of_words, "MUL of vectors of 64 bits multiplies low words", "pmuludq for both"),
  ROW ("vector-unsigned-float", vector_unsigned_to_float, "CAST of vectors of u32 to floats is that of i32", "cvtdq2ps for both"),
  ROW ("vector-less-signed", vector_less_signed, "CMPLT of vectors of u8 and u16 is signed", "pcmpgtb for both"),
  ROW ("vector-shr-bytes", vector_shift_of_bytes, "SHR of vectors of u8 lets bits of the neighbour in", "bytes shifted as halves"),
  ROW ("vector-idiv-float", vector_divide_by_float, "IDIV of vectors of i32 goes through f32", "divisions that vectors lack"),
  ROW ("vector-where-of-4", vector_where_of_4, "WHERE of 8 lanes and more repeats the first four conditions", "masks of four bits"),
  /* clang-format on */
};
FAULT_TABLE (faults_vectors);
