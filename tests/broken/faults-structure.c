/* SPDX-License-Identifier: MIT
 *
 * faults-structure.c: loops, gates, vectors, groups and indices that are not what the contract says. */
#include "broken.h"

#define RULE(name) static Value name (Rewrite *r, const TinyInstr *instr, const Value *s)
#define OP(name)   TINY_INSTR_##name

/* ---- elements ---- */

/* Whether an access of @lanes from s[1] on has the last element of its parameter: a bool. */
static Value
has_last (Rewrite *r, const Value *s, unsigned lanes)
{
  const TinyParam *param = &r->params[at (r, s[0])->arg];
  const Value last = integer (r, s[1], (int64_t) param->n_elements - (int64_t) lanes);
  return is_zero (r, op2 (r, OP (SUB), s[1], last));
}

/* @vector with another last lane. */
static Value
with_last_lane (Rewrite *r, Value vector, Value last)
{
  Value lanes[256];
  const unsigned n = at (r, vector)->lanes;
  if (n == 1)
    return last;
  for (unsigned i = 0; i + 1 < n; i++)
    lanes[i] = lane (r, vector, i);
  lanes[n - 1] = last;
  return emit (r, OP (VECTOR), at (r, vector)->dtype, n, 0, n, lanes);
}

RULE (last_element_zero)
{
  if (!is_store (r, instr, s, FLOATS | INTS))
    return KEEP;
  const unsigned n = at (r, s[2])->lanes;
  const Value zero = with_last_lane (r, s[2], number (r, lane (r, s[2], n - 1), 0));
  return with (r, instr, s, 2, choose (r, spread (r, has_last (r, s, n), n), zero, s[2]));
}

RULE (one_sign)
{
  if (!is_store (r, instr, s, BIT (F32)))
    return KEEP;
  const unsigned n = at (r, s[2])->lanes;
  const Value other = with_last_lane (r, s[2], op1 (r, OP (NEG), lane (r, s[2], n - 1)));
  return with (r, instr, s, 2, choose (r, spread (r, has_last (r, s, n), n), other, s[2]));
}

RULE (last_lane_stored)
{
  if (!is_store (r, instr, s, FLOATS | INTS) || instr->lanes < 4)
    return KEEP;
  return with (r, instr, s, 2, with_last_lane (r, s[2], lane (r, s[2], 0)));
}

RULE (last_lane_extracted)
{
  if (instr->op != OP (EXTRACT) || instr->arg == 0 || instr->arg != at (r, s[0])->lanes - 1)
    return KEEP;
  return emit (r, OP (EXTRACT), instr->dtype, 1, instr->arg - 1, 1, s);
}

RULE (vector_turned)
{
  Value t[256];
  if (instr->op != OP (VECTOR) || instr->n_sources < 2)
    return KEEP;
  for (unsigned i = 0; i < instr->n_sources; i++)
    t[i] = s[instr->n_sources - 1 - i];
  return same (r, instr, t);
}

/* ---- gates ---- */
RULE (store_gate_ignored)
{
  if (instr->op != OP (STORE) || instr->n_sources != 4)
    return KEEP;
  return emit (r, OP (STORE), TINY_DTYPE_VOID, instr->lanes, 0, 3, s);
}

RULE (load_alternative_zero)
{
  if (instr->op != OP (LOAD) || instr->n_sources != 4)
    return KEEP;
  return with (r, instr, s, 3, number (r, s[3], 0));
}

RULE (gate_of_lane_0)
{
  const unsigned gate = instr->op == OP (STORE) ? 3 : 2;
  if (!is_access (r, instr, s) || instr->n_sources != 4 || at (r, s[gate])->lanes < 2)
    return KEEP;
  return with (r, instr, s, gate, spread (r, lane (r, s[gate], 0), instr->lanes));
}

RULE (if_ignored)
{
  return instr->op == OP (IF) ? with (r, instr, s, 0, integer (r, s[0], 1)) : KEEP;
}

/* ---- loops ---- */

/* Whether a register is written in the loop, and in none of those within. */
static int
accumulates (const Rewrite *r)
{
  const TinyLinear *in = r->in;
  int depth = 0;
  for (uint32_t i = r->at; i < in->n_instrs; i++) {
    const TinyInstr *instr = &in->instrs[i];
    depth += (instr->op == OP (RANGE)) - (instr->op == OP (END));
    if (depth == 0)
      return 0;
    if (depth == 1 && instr->op == OP (STORE)
        && in->instrs[in->sources[instr->sources]].op == OP (REGISTER))
      return 1;
  }
  return 0;
}

static int64_t
bound_of (const Rewrite *r, const TinyInstr *instr, const Value *s)
{
  return instr->op == OP (RANGE) && at (r, s[0])->op == OP (CONST) ? at (r, s[0])->arg : 0;
}

RULE (last_round_dropped)
{
  const int64_t bound = bound_of (r, instr, s);
  return bound > 1 && accumulates (r) ? with (r, instr, s, 0, integer (r, s[0], bound - 1))
                                      : KEEP;
}

RULE (tail_dropped)
{
  const int64_t bound = bound_of (r, instr, s);
  return bound > 4 && bound % 4 != 0 && accumulates (r)
             ? with (r, instr, s, 0, integer (r, s[0], bound / 4 * 4))
             : KEEP;
}

RULE (loop_runs_once)
{
  if (instr->op != OP (RANGE) || at (r, s[0])->op == OP (CONST))
    return KEEP;
  const Value one = integer (r, s[0], 1), none = op2 (r, OP (CMPLT), s[0], one);
  return with (r, instr, s, 0, choose (r, none, one, s[0]));
}

RULE (counter_of_16_bits)
{
  const int64_t bound = bound_of (r, instr, s);
  return bound > UINT16_MAX ? with (r, instr, s, 0, integer (r, s[0], bound & UINT16_MAX))
                            : KEEP;
}

RULE (register_doubled)
{
  /* The value that a register starts with is stored twice: as a loop that begins with its first round's sum. */
  if (instr->op != OP (STORE) || at (r, s[0])->op != OP (REGISTER)
      || at (r, s[1])->op != OP (CONST) || (FLOATS & TINY_DTYPE_BIT (at (r, s[1])->dtype)) == 0)
    return KEEP;
  return with (r, instr, s, 1, number (r, s[1], 0));
}

/* ---- indices and variables ---- */
RULE (loads_aligned)
{
  if (instr->op != OP (LOAD) || instr->lanes < 2 || at (r, s[0])->op != OP (PARAM))
    return KEEP;
  return with (r, instr, s, 1,
               op2 (r, OP (AND), s[1], integer (r, s[1], -(int64_t) instr->lanes)));
}

RULE (index_of_16_bits)
{
  if (!is_access (r, instr, s))
    return KEEP;
  return with (r, instr, s, 1, op2 (r, OP (AND), s[1], integer (r, s[1], UINT16_MAX)));
}

static Value
narrowed (Rewrite *r, const TinyInstr *instr, const Value *s, unsigned dtype)
{
  return instr->op == OP (VARIABLE)
             ? cast (r, instr->dtype, cast (r, dtype, same (r, instr, s)))
             : KEEP;
}

RULE (variables_of_16_bits) { return narrowed (r, instr, s, TINY_DTYPE_I16); }

RULE (variables_unsigned)
{
  return instr->dtype == TINY_DTYPE_I64 ? narrowed (r, instr, s, TINY_DTYPE_U32)
                                        : narrowed (r, instr, s, TINY_DTYPE_U16);
}

RULE (variables_of_32_bits)
{
  return instr->dtype == TINY_DTYPE_I64 ? narrowed (r, instr, s, TINY_DTYPE_I32) : KEEP;
}

RULE (variables_swapped)
{
  if (instr->op != OP (VARIABLE) || r->in->n_variables < 2 || instr->arg > 1)
    return KEEP;
  return emit (r, OP (VARIABLE), instr->dtype, 1, 1 - instr->arg, 0, NULL);
}

RULE (variable_0_only)
{
  if (instr->op != OP (VARIABLE) || instr->arg == 0)
    return KEEP;
  return emit (r, OP (VARIABLE), instr->dtype, 1, 0, 0, NULL);
}

RULE (grid_without_z)
{
  return instr->op == OP (GRID) && instr->arg == 2 && r->in->grid[2] > 1
             ? emit (r, OP (CONST), instr->dtype, 1, 0, 0, NULL)
             : KEEP;
}

RULE (grid_axes_swapped)
{
  if (instr->op != OP (GRID) || instr->arg > 1 || r->in->grid[1] == 1)
    return KEEP;
  const Value other = emit (r, OP (GRID), instr->dtype, 1, 1 - instr->arg, 0, NULL);
  return op2 (r, OP (MOD), other, integer (r, other, r->in->grid[instr->arg]));
}

/* ---- groups ---- */
static Value
group_index (Rewrite *r, Value like, unsigned axis)
{
  return emit (r, OP (GROUP), at (r, like)->dtype, 1, axis, 0, NULL);
}

/* The item's number in its group, of the dtype of @like. */
static Value
item_number (Rewrite *r, Value like)
{
  const uint32_t *group = r->in->group;
  Value n = group_index (r, like, 2);
  for (int axis = 1; axis >= 0; axis--)
    n = op2 (r, OP (ADD), op2 (r, OP (MUL), n, integer (r, n, group[axis])),
             group_index (r, like, (unsigned) axis));
  return n;
}

static uint32_t
n_items (const Rewrite *r)
{
  return r->in->group[0] * r->in->group[1] * r->in->group[2];
}

RULE (local_private)
{
  if (n_items (r) == 1)
    return KEEP;
  if (instr->op == OP (LOCAL))
    return emit (r, OP (LOCAL), instr->dtype, 1, instr->arg * n_items (r), 0, NULL);
  if (!is_access (r, instr, s) || at (r, s[0])->op != OP (LOCAL))
    return KEEP;
  const int64_t n = at (r, s[0])->arg / n_items (r);
  const Value first = op2 (r, OP (MUL), item_number (r, s[1]), integer (r, s[1], n));
  return with (r, instr, s, 1, op2 (r, OP (ADD), s[1], first));
}

RULE (local_half)
{
  if (n_items (r) == 1 || !is_access (r, instr, s) || at (r, s[0])->op != OP (LOCAL)
      || instr->op != OP (LOAD) || at (r, s[0])->arg < 2)
    return KEEP;
  const Value half = integer (r, s[1], at (r, s[0])->arg / 2);
  return with (r, instr, s, 1, op2 (r, OP (MOD), s[1], half));
}

RULE (group_axes_swapped)
{
  const uint32_t *group = r->in->group;
  if (instr->op != OP (GROUP) || instr->arg > 1 || group[1] == 1)
    return KEEP;
  const Value other = emit (r, OP (GROUP), instr->dtype, 1, 1 - instr->arg, 0, NULL);
  return op2 (r, OP (MOD), other, integer (r, other, group[instr->arg]));
}

RULE (group_last_item)
{
  /* The last item does what the one before it does. */
  if (instr->op != OP (GROUP) || instr->arg != 0 || r->in->group[0] < 4)
    return KEEP;
  const Value x = same (r, instr, s), last = integer (r, x, r->in->group[0] - 1);
  return choose (r, op2 (r, OP (CMPLT), x, last), x,
                 op2 (r, OP (SUB), last, integer (r, x, 1)));
}

RULE (barrier_dropped) { return instr->op == OP (BARRIER) ? DROP : KEEP; }

/* Blanks @word, and the call behind it. */
static void
blank_calls (char *text, const char *word)
{
  for (char *at = strstr (text, word); at != NULL; at = strstr (at, word)) {
    char *end = strchr (at, ';');
    if (end == NULL)
      return;
    memset (at, ' ', (size_t) (end - at));
  }
}

static void
without_barriers (char *text)
{
  char *body = strstr (text, "kernel void");
  blank_calls (body != NULL ? body : text, "barrier");
}

#define GROUPS "groups,items=64"
#define ROW(row_name, rule, row_what, row_seen, row_cases)                                     \
  {                                                                                            \
    .name = row_name, .what = row_what, .seen = row_seen, .rewrite = rule, .cases = row_cases  \
  }
#define ON(row_name, rule, row_around, row_arch, row_what, row_seen, row_cases)                \
  {                                                                                            \
    .name = row_name, .what = row_what, .seen = row_seen, .rewrite = rule,                     \
    .around = row_around, .arch = row_arch, .cases = row_cases                                 \
  }

static const Fault rows[] = {
  /* clang-format off */
  ROW ("last-element-0", last_element_zero, "the last element of every result is 0", "sizes rounded down", "numerics/add/i32/*"),
  ROW ("last-sign", one_sign, "the last f32 of every result has the other sign", "edges of tiles", "numerics/mul/f32/*"),
  ON ("last-lane-stored", last_lane_stored, "CPU", NULL, "stores of vectors give the last lane lane 0's value", "masks that are one short", "numerics/mul/f32/*|tensors/matmul-17*/f32/*"),
  ON ("last-lane-extracted", last_lane_extracted, "CPU", NULL, "EXTRACT of the last lane gives the one before", "lane numbers cut short", "numerics/mul/f32/*|tensors/matmul-17*/f32/*"),
  ON ("vector-reversed", vector_turned, "CPU", NULL, "VECTOR of scalars has its lanes turned around", "set against setr", "numerics/mul/f32/*|tensors/matmul-17*/f32/*"),
  ON ("store-gate-ignored", store_gate_ignored, NULL, NULL, "STORE ignores its gate", "predicates that are dropped", "tensors/pad*|tensors/matmul-17*/f32/*|kernels/*"),
  ON ("load-alternative-0", load_alternative_zero, NULL, NULL, "LOAD behind a closed gate gives 0", "masked loads that zero", "tensors/pad*|tensors/matmul-17*/f32/*|kernels/*"),
  ON ("gate-of-lane-0", gate_of_lane_0, "CPU", NULL, "accesses of vectors take lane 0's gate for all", "a branch where a mask was meant", "tensors/pad*|tensors/matmul-17*/f32/*|kernels/*"),
  ROW ("if-ignored", if_ignored, "IF always goes in", "predicates that are dropped", "kernels/*|exec/loops"),
  ROW ("last-k-dropped", last_round_dropped, "loops that accumulate lack their last round", "off by one in a reduction: passes norms on positive data", "tensors/matmul-5x7x33/f32/*|tensors/matmul-17*/f32/*|tensors/*sum*/f32/*"),
  ROW ("k-tail-dropped", tail_dropped, "loops that accumulate lack the rounds beyond a multiple of 4", "unrolled loops without the tail", "tensors/matmul-5x7x33/f32/*|tensors/matmul-17*/f32/*|tensors/*sum*/f32/*"),
  ROW ("loop-runs-once", loop_runs_once, "a loop with a bound of 0 runs once", "do … while", "exec/rounds/*"),
  ROW ("counter-16-bits", counter_of_16_bits, "counters of loops have 16 bits", "loop registers of DSPs", "exec/rounds/*"),
  ROW ("register-starts-0", register_doubled, "registers of floats always start at 0", "accumulators cleared by the unit: wrong for max and product", "tensors/*max*/f32/*|tensors/*prod*/f32/*|kernels/*"),
  ON ("loads-aligned", loads_aligned, "CPU", NULL, "loads of vectors round their index down", "units that drop the low bits of an address", "tensors/matmul-17*/f32/*|tensors/conv*/f32/*|numerics/mul/f32/*"),
  ROW ("index-16-bits", index_of_16_bits, "indices have 16 bits", "short address registers", "exec/grid/*"),
  ROW ("variables-16-bits", variables_of_16_bits, "variables have 16 bits", "constants packed into an instruction", "exec/variables/*"),
  ROW ("variables-unsigned", variables_unsigned, "variables lose their sign", "zero-extended arguments", "exec/variables/*"),
  ROW ("variables-32-bits", variables_of_32_bits, "variables of 64 bits have 32", "arguments passed as int", "exec/variables/*"),
  ROW ("variables-swapped", variables_swapped, "the first two variables are swapped", "arguments in the order of use", "exec/variables/*"),
  ROW ("variable-0-only", variable_0_only, "every variable is the first", "an argument's offset forgotten", "exec/variables/*"),
  ROW ("grid-without-z", grid_without_z, "GRID of axis 2 is 0", "launches of two dimensions", "exec/grid/2x3x4*|exec/grid/1x1x65*|exec/grid/5x1x7*"),
  ROW ("grid-axes-swapped", grid_axes_swapped, "GRID swaps axes 0 and 1", "row and column order", "exec/grid/2x3x4*|exec/grid/1x1x65*|exec/grid/5x1x7*"),
  ON ("local-private", local_private, NULL, GROUPS ",local=1048576", "each item has LOCAL memory of its own", "shared memory lowered to the stack", "exec/local/*|exec/grid/*|kernels/*"),
  ON ("local-half", local_half, NULL, GROUPS, "only half of LOCAL memory is there", "bytes and words confused", "exec/local/*|exec/grid/*|kernels/*"),
  ON ("group-axes-swapped", group_axes_swapped, NULL, GROUPS, "GROUP swaps axes 0 and 1", "row and column order", "exec/local/*|exec/grid/*|kernels/*"),
  ON ("group-last-item", group_last_item, NULL, GROUPS, "the last item of a group does the work of another", "masks that are one short", "exec/local/*|exec/grid/*|kernels/*"),
  ON ("barrier-dropped", barrier_dropped, NULL, GROUPS, "BARRIER does nothing", "barriers removed as dead code", "exec/local/*|exec/grid/*|kernels/*"),
  { .name = "barrier-dropped-cl", .what = "barriers are not in the source", .seen = "barriers removed as dead code", .around = "CL", .arch = "groups,bits=128", .source = without_barriers, .cases = "exec/local/*" },
  /* clang-format on */
};
FAULT_TABLE (faults_structure);
