/* SPDX-License-Identifier: MIT
 *
 * faults-lanes.c: gates, registers and local memory that are wrong in one dtype, one place or one depth only. */
#include "broken.h"

#define RULE(name) static Value name (Rewrite *r, const TinyInstr *instr, const Value *s)
#define OP(name)   TINY_INSTR_##name

/* @value, of 64 bits, with the lower 32 only; or itself. */
static Value
in_32_bits (Rewrite *r, Value value)
{
  const unsigned dtype = at (r, value)->dtype;
  const unsigned narrow = dtype == TINY_DTYPE_I64   ? TINY_DTYPE_I32
                          : dtype == TINY_DTYPE_U64 ? TINY_DTYPE_U32
                          : dtype == TINY_DTYPE_F64 ? TINY_DTYPE_F32
                                                    : dtype;
  return narrow == dtype ? value : cast (r, dtype, cast (r, narrow, value));
}

/* How many blocks of @op are open where the instruction is. */
static int
depth_of (const Rewrite *r, unsigned op, unsigned end)
{
  int depth = 0;
  for (uint32_t i = 0; i < r->at; i++)
    depth += (r->in->instrs[i].op == op) - (r->in->instrs[i].op == end);
  return depth;
}

/* ---- gates ---- */
static int
has_gate (const Rewrite *r, const TinyInstr *instr, const Value *s)
{
  return is_access (r, instr, s) && instr->n_sources == 4;
}

/* Reads, and then chooses. */
RULE (gate_behind_load)
{
  if (!has_gate (r, instr, s) || instr->op != OP (LOAD))
    return KEEP;
  const Value gate = s[2], other = s[3];
  const Value x = emit (r, OP (LOAD), instr->dtype, instr->lanes, 0, 2, s);
  return choose (r, spread (r, gate, instr->lanes), x, other);
}

/* Stores in any case: where the gate is closed what was there. */
RULE (gate_in_value)
{
  if (!has_gate (r, instr, s) || instr->op != OP (STORE))
    return KEEP;
  const TinyInstr *memory = at (r, s[0]);
  if (memory->op == OP (PARAM))
    r->params[memory->arg].flags |= TINY_PARAM_READ;
  const Value was = emit (r, OP (LOAD), at (r, s[2])->dtype, instr->lanes, 0, 2, s);
  const Value value = choose (r, spread (r, s[3], instr->lanes), s[2], was);
  return emit (r, OP (STORE), TINY_DTYPE_VOID, instr->lanes, 0, 3,
               (const Value[]){ s[0], s[1], value });
}

RULE (gate_of_any_lane)
{
  const unsigned at_gate = instr->op == OP (STORE) ? 3 : 2;
  if (!has_gate (r, instr, s) || at (r, s[at_gate])->lanes < 2)
    return KEEP;
  Value any = lane (r, s[at_gate], 0);
  for (unsigned i = 1; i < instr->lanes; i++)
    any = op2 (r, OP (OR), any, lane (r, s[at_gate], i));
  return with (r, instr, s, at_gate, spread (r, any, instr->lanes));
}

RULE (gate_of_all_lanes)
{
  const unsigned at_gate = instr->op == OP (STORE) ? 3 : 2;
  if (!has_gate (r, instr, s) || at (r, s[at_gate])->lanes < 2)
    return KEEP;
  Value all = lane (r, s[at_gate], 0);
  for (unsigned i = 1; i < instr->lanes; i++)
    all = op2 (r, OP (AND), all, lane (r, s[at_gate], i));
  return with (r, instr, s, at_gate, spread (r, all, instr->lanes));
}

RULE (alternative_of_lane_0)
{
  if (!has_gate (r, instr, s) || instr->op != OP (LOAD) || instr->lanes < 2)
    return KEEP;
  return with (r, instr, s, 3, spread (r, lane (r, s[3], 0), instr->lanes));
}

RULE (alternative_of_32_bits)
{
  if (!has_gate (r, instr, s) || instr->op != OP (LOAD) || bytes_of_dtype (instr->dtype) != 8)
    return KEEP;
  return with (r, instr, s, 3, in_32_bits (r, s[3]));
}

/* An immediate is the same for all elements. */
RULE (alternative_of_constants)
{
  if (!has_gate (r, instr, s) || instr->op != OP (LOAD) || at (r, s[3])->op == OP (CONST))
    return KEEP;
  return with (r, instr, s, 3, number (r, s[3], 0));
}

RULE (gate_of_local)
{
  if (!has_gate (r, instr, s) || at (r, s[0])->op != OP (LOCAL))
    return KEEP;
  return emit (r, instr->op, instr->dtype, instr->lanes, 0, instr->op == OP (STORE) ? 3 : 2, s);
}

/* The counter of the loop that is open, or DROP. */
static Value
open_counter (const Rewrite *r)
{
  int depth = 0;
  for (uint32_t i = r->at; i-- > 0;) {
    depth += r->in->instrs[i].op == OP (END);
    if (r->in->instrs[i].op == OP (RANGE) && depth-- == 0)
      return r->place[i];
  }
  return DROP;
}

/* @value as it is in round 0 of the loop of @counter. */
static Value
in_first_round (Rewrite *r, Value value, Value counter, unsigned depth)
{
  Value s[4];
  const TinyInstr was = *at (r, value);
  if (value == counter)
    return emit (r, OP (CONST), was.dtype, 1, 0, 0, NULL);
  if (was.n_sources == 0 || was.n_sources > 4 || depth > 12 || was.op == OP (LOAD)
      || was.op == OP (RANGE))
    return value;
  int differs = 0;
  for (unsigned i = 0; i < was.n_sources; i++) {
    const Value source = r->sources[at (r, value)->sources + i];
    s[i] = in_first_round (r, source, counter, depth + 1);
    differs |= s[i] != source;
  }
  return differs ? emit (r, was.op, was.dtype, was.lanes, was.arg, was.n_sources, s) : value;
}

RULE (gate_of_first_round)
{
  const unsigned at_gate = instr->op == OP (STORE) ? 3 : 2;
  const Value counter = has_gate (r, instr, s) ? open_counter (r) : DROP;
  if (counter == DROP)
    return KEEP;
  const Value gate = in_first_round (r, s[at_gate], counter, 0);
  return gate == s[at_gate] ? KEEP : with (r, instr, s, at_gate, gate);
}

RULE (branch_of_first_round)
{
  const Value counter = instr->op == OP (IF) ? open_counter (r) : DROP;
  const Value condition = counter == DROP ? s[0] : in_first_round (r, s[0], counter, 0);
  return counter == DROP || condition == s[0] ? KEEP : with (r, instr, s, 0, condition);
}

/* ---- depth ---- */
RULE (third_branch)
{
  return instr->op == OP (IF) && depth_of (r, OP (IF), OP (ENDIF)) >= 2
             ? with (r, instr, s, 0, integer (r, s[0], 1))
             : KEEP;
}

RULE (fourth_loop)
{
  if (instr->op != OP (RANGE) || depth_of (r, OP (RANGE), OP (END)) < 3)
    return KEEP;
  const Value one = integer (r, s[0], 1);
  return with (r, instr, s, 0, choose (r, op2 (r, OP (CMPLT), one, s[0]), one, s[0]));
}

RULE (bound_of_low_word)
{
  if (instr->op != OP (RANGE) || instr->dtype != TINY_DTYPE_I64)
    return KEEP;
  return with (r, instr, s, 0, cast (r, TINY_DTYPE_I64, cast (r, TINY_DTYPE_U32, s[0])));
}

RULE (ninth_register)
{
  if (instr->op != OP (REGISTER))
    return KEEP;
  unsigned n = 0;
  Value first = DROP;
  for (uint32_t i = 0; i < r->at; i++) {
    const TinyInstr *other = &r->in->instrs[i];
    if (other->op != OP (REGISTER) || other->dtype != instr->dtype
        || other->lanes != instr->lanes)
      continue;
    first = n++ == 0 ? r->place[i] : first;
  }
  return n >= 8 ? first : KEEP;
}

/* ---- registers ---- */
RULE (register_of_32_bits)
{
  if (!is_of_memory (r, instr, s, OP (STORE), OP (REGISTER)))
    return KEEP;
  const Value narrow = in_32_bits (r, s[1]);
  return narrow == s[1] ? KEEP : with (r, instr, s, 1, narrow);
}

RULE (register_of_halves)
{
  /* An i8 or i16 lives in an unsigned one. */
  if (!is_of_memory (r, instr, s, OP (LOAD), OP (REGISTER)) || bytes_of_dtype (instr->dtype) > 2
      || (SIGNED_INTS & TINY_DTYPE_BIT (instr->dtype)) == 0)
    return KEEP;
  const Value x = same (r, instr, s);
  return op2 (r, OP (AND), x, integer (r, x, instr->dtype == TINY_DTYPE_I8 ? 0x7f : 0x7fff));
}

RULE (register_of_lane_0)
{
  if (!is_of_memory (r, instr, s, OP (STORE), OP (REGISTER)) || at (r, s[1])->lanes < 2)
    return KEEP;
  return with (r, instr, s, 1, spread (r, lane (r, s[1], 0), at (r, s[1])->lanes));
}

RULE (register_of_bool)
{
  /* Once true, always true. */
  if (!is_of_memory (r, instr, s, OP (STORE), OP (REGISTER))
      || at (r, s[1])->dtype != TINY_DTYPE_BOOL || at (r, s[1])->op == OP (CONST))
    return KEEP;
  const Value was = emit (r, OP (LOAD), TINY_DTYPE_BOOL, at (r, s[1])->lanes, 0, 1, s);
  return with (r, instr, s, 1, op2 (r, OP (OR), was, s[1]));
}

/* ---- local memory ---- */
RULE (local_of_words)
{
  /* Stores of bytes and halves clear the element behind. */
  if (!is_of_memory (r, instr, s, OP (STORE), OP (LOCAL))
      || bytes_of_dtype (at (r, s[0])->dtype) > 2 || at (r, s[2])->lanes > 1)
    return KEEP;
  const Value stored = same (r, instr, s), next = op2 (r, OP (ADD), s[1], integer (r, s[1], 1));
  const Value last = integer (r, s[1], at (r, s[0])->arg - 1), zero = number (r, s[2], 0);
  emit (r, OP (STORE), TINY_DTYPE_VOID, 1, 0, 4,
        (const Value[]){ s[0], next, zero, op2 (r, OP (CMPLT), s[1], last) });
  return stored;
}

RULE (local_of_32_bits)
{
  if (!is_of_memory (r, instr, s, OP (STORE), OP (LOCAL)))
    return KEEP;
  const Value narrow = in_32_bits (r, s[2]);
  return narrow == s[2] ? KEEP : with (r, instr, s, 2, narrow);
}

RULE (local_signs)
{
  /* Bytes and halves are read without a sign. */
  if (!is_of_memory (r, instr, s, OP (LOAD), OP (LOCAL)) || bytes_of_dtype (instr->dtype) > 2
      || (SIGNED_INTS & TINY_DTYPE_BIT (instr->dtype)) == 0)
    return KEEP;
  const Value x = same (r, instr, s);
  return op2 (r, OP (AND), x, integer (r, x, instr->dtype == TINY_DTYPE_I8 ? 0x7f : 0x7fff));
}

RULE (local_aligned)
{
  if (!is_access (r, instr, s) || at (r, s[0])->op != OP (LOCAL) || instr->lanes < 2)
    return KEEP;
  return with (r, instr, s, 1,
               op2 (r, OP (AND), s[1], integer (r, s[1], -(int64_t) instr->lanes)));
}

RULE (second_local)
{
  if (instr->op != OP (LOCAL))
    return KEEP;
  for (uint32_t i = 0; i < r->at; i++)
    if (r->in->instrs[i].op == OP (LOCAL) && r->in->instrs[i].dtype == instr->dtype
        && r->in->instrs[i].arg >= instr->arg)
      return r->place[i];
  return KEEP;
}

/* ---- memory ---- */
enum { MOST_LATE = 64 };
static _Thread_local Value late[MOST_LATE][4];
static _Thread_local uint32_t n_late;

/* Stores outside of blocks to what is read as well are done at the end. */
RULE (stores_at_end)
{
  if (r->at == 0)
    n_late = 0;
  const int is_outside
      = depth_of (r, OP (RANGE), OP (END)) == 0 && depth_of (r, OP (IF), OP (ENDIF)) == 0;
  if (is_of_memory (r, instr, s, OP (STORE), OP (PARAM)) && instr->n_sources == 3 && is_outside
      && n_late < MOST_LATE && (r->params[at (r, s[0])->arg].flags & TINY_PARAM_READ) != 0
      && r->at + 1 < r->in->n_instrs) {
    for (unsigned i = 0; i < 3; i++)
      late[n_late][i] = s[i];
    late[n_late++][3] = instr->lanes;
    return DROP;
  }
  if (r->at + 1 < r->in->n_instrs || n_late == 0)
    return KEEP;
  const Value last = same (r, instr, s);
  for (uint32_t i = 0; i < n_late; i++)
    emit (r, OP (STORE), TINY_DTYPE_VOID, late[i][3], 0, 3, late[i]);
  return last;
}

/* ---- constants ---- */
RULE (constants_of_bytes)
{
  return instr->op == OP (CONST) && instr->arg < 0
                 && (TINY_DTYPE_BIT (instr->dtype) & (BIT (I8) | BIT (I16))) != 0
             ? emit (r, OP (CONST), instr->dtype, instr->lanes, instr->arg & 0x7f, 0, NULL)
             : KEEP;
}

RULE (constants_beyond_32)
{
  if (instr->op != OP (CONST) || instr->lanes != 1)
    return KEEP;
  unsigned n = 0;
  int64_t args[32];
  for (uint32_t i = 0; i < r->at; i++) {
    const TinyInstr *other = &r->in->instrs[i];
    if (other->op == OP (CONST) && other->dtype == instr->dtype && other->lanes == 1)
      args[n++ % 32] = other->arg;
  }
  return n >= 32 && args[n % 32] != instr->arg
             ? emit (r, OP (CONST), instr->dtype, 1, args[n % 32], 0, NULL)
             : KEEP;
}

#define ROW(row_name, rule, row_what, row_seen)                                                \
  {                                                                                            \
    .name = row_name, .what = row_what, .seen = row_seen, .rewrite = rule,                     \
    .cases = "exec/*|kernels/*|claims/*"                                                       \
  }
#define ON(row_name, rule, row_around, row_arch, row_what, row_seen)                           \
  {                                                                                            \
    .name = row_name, .what = row_what, .seen = row_seen, .rewrite = rule,                     \
    .around = row_around, .arch = row_arch, .cases = "exec/*|kernels/*|claims/*"               \
  }
#define LANES "lanes=16"

static const Fault rows[] = {
  /* clang-format off */
  ON ("gate-behind-load", gate_behind_load, "CPU", NULL, "a load whose gate is closed touches memory", "a select where a branch was meant"),
  ON ("gate-in-value", gate_in_value, "CPU", NULL, "a store whose gate is closed stores what was there", "a blend where a branch was meant"),
  ON ("gate-of-any-lane", gate_of_any_lane, "CPU", NULL, "accesses of vectors go in where any lane's gate is open", "a branch where a mask was meant"),
  ON ("gate-of-all-lanes", gate_of_all_lanes, "CPU", NULL, "accesses of vectors go in where all lanes' gates are open", "a branch where a mask was meant"),
  ON ("alternative-lane-0", alternative_of_lane_0, NULL, LANES, "loads of vectors behind gates take lane 0's alternative for all", "a splat where a blend was meant"),
  ROW ("alternative-32-bits", alternative_of_32_bits, "alternatives of 64 bits have 32", "immediates of 32 bits"),
  ROW ("alternative-constant", alternative_of_constants, "alternatives that are no constants are 0", "masked loads that merge with immediates only"),
  ROW ("gate-of-local", gate_of_local, "accesses of LOCAL memory ignore their gate", "predicates on one path only"),
  ROW ("gate-first-round", gate_of_first_round, "gates in loops are those of the first round", "a gate taken out of its loop"),
  ROW ("branch-first-round", branch_of_first_round, "IFs in loops go where the first round goes", "a branch taken out of its loop"),
  ROW ("branches-2-deep", third_branch, "an IF within two others always goes in", "a stack of masks that is short"),
  ROW ("loops-3-deep", fourth_loop, "a loop within three others runs once", "hardware loops, of which there are three"),
  ROW ("bound-low-word", bound_of_low_word, "bounds of loops of i64 have their low word only", "loop registers of 32 bits"),
  ROW ("registers-8", ninth_register, "the ninth register of a dtype is the first", "register files that are short"),
  ROW ("register-32-bits", register_of_32_bits, "registers of 64 bits have 32", "registers of 32 bits"),
  ROW ("register-no-sign", register_of_halves, "registers of i8 and i16 lose the sign", "narrow integers zero-extended in registers"),
  ON ("register-lane-0", register_of_lane_0, NULL, LANES, "registers of vectors have lane 0 in all", "accumulators that are scalars"),
  ROW ("register-bool", register_of_bool, "registers of bools stay true", "flags that are never cleared"),
  ROW ("local-words", local_of_words, "stores of bytes and halves to LOCAL memory clear the one behind", "local memory that is written by words"),
  ROW ("local-32-bits", local_of_32_bits, "LOCAL memory of 64 bits has 32", "local memory of words"),
  ROW ("local-no-sign", local_signs, "what is read of LOCAL bytes and halves has no sign", "one load for both"),
  ON ("local-aligned", local_aligned, NULL, LANES, "vectors of LOCAL memory round their index down", "banks that drop the low bits of an address"),
  ROW ("local-second", second_local, "a second LOCAL array of a dtype is the first", "one base for all"),
  ROW ("stores-at-end", stores_at_end, "what a program stores it does not read back", "store buffers without forwarding"),
  ROW ("constants-of-bytes", constants_of_bytes, "CONST of i8 and i16 loses its sign", "literals that are unsigned"),
  ROW ("constants-32", constants_beyond_32, "the 33rd constant of a dtype is the first", "constant pools that are short"),
  /* clang-format on */
};
FAULT_TABLE (faults_lanes);
