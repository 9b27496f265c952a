/* SPDX-License-Identifier: MIT
 *
 * faults-units.c: matrix units whose rows say what is not so, and whose sums are not the formula's. */
#include "broken.h"

#define RULE(name) static Value name (Rewrite *r, const TinyInstr *instr, const Value *s)
#define OP(name)   TINY_INSTR_##name

/* ---- rows ---- */
static TinyStatus
real_target (const char *arch, TinyTarget *out, TinyPluginError *error)
{
  const char *wanted = getenv ("TINY_BROKEN_ARCH");
  return inside.renderer->target (*arch == '\0' && wanted != NULL ? wanted : arch, out, error);
}

static void
exchange (uint8_t *list, unsigned i, unsigned k)
{
  const uint8_t kept = list[i];
  list[i] = list[k];
  list[k] = kept;
}

/* In every row of several work-items, or of one. */
#define CLAIM(name, is_shared, change)                                                         \
  static TinyStatus name (const char *arch, TinyTarget *out, TinyPluginError *error)           \
  {                                                                                            \
    TINY_TRY (real_target (arch, out, error));                                                 \
    broken_note ();                                                                            \
    for (TinyUnit *unit = out->units; unit->a_dtype != TINY_DTYPE_VOID; unit++)                \
      if ((unit->n_thread_bits > 0) == (is_shared))                                            \
        change;                                                                                \
    return TINY_STATUS_OK;                                                                     \
  }
CLAIM (lanes_of_a, 1, exchange (unit->a, 0, 2))
CLAIM (lanes_of_b, 1, exchange (unit->b, 1, 3))
CLAIM (lanes_of_c, 1, exchange (unit->c, 0, 4))
CLAIM (item_for_element, 1, exchange (unit->c, unit->n_thread_bits - 1u, unit->n_thread_bits))
CLAIM (plain_rows_of_b, 0, {
  const uint8_t pair = unit->b[0];
  memmove (unit->b, unit->b + 1, 4);
  unit->b[4] = pair;
})
CLAIM (turned_c, 0, {
  for (unsigned i = 0; i < 4; i++)
    exchange (unit->c, i, i + 4);
})
CLAIM (turned_a, 0, exchange (unit->a, 0, 5))
CLAIM (bit_twice, 0, unit->a[0] = unit->a[1])
CLAIM (bit_missing, 0, unit->c[7] = 0)
CLAIM (items_without_groups, 0, unit->n_thread_bits = 3)

/* ---- sums ---- */
RULE (forgets_c)
{
  if (instr->op != OP (UNIT))
    return KEEP;
  return with (r, instr, s, 2, emit (r, OP (CONST), instr->dtype, instr->lanes, 0, 0, NULL));
}

RULE (adds_twice)
{
  return instr->op == OP (UNIT) ? with (r, instr, s, 2, same (r, instr, s)) : KEEP;
}

/* The factors change places where they can. */
RULE (exchanges_factors)
{
  if (instr->op != OP (UNIT) || at (r, s[0])->dtype != at (r, s[1])->dtype
      || at (r, s[0])->lanes != at (r, s[1])->lanes)
    return KEEP;
  return same (r, instr, (const Value[]){ s[1], s[0], s[2] });
}

/* The sum is made where c is, and what reads c later finds it. */
RULE (makes_sum_in_c)
{
  static Value c, sum;
  if (r->at == 0)
    c = sum = UINT32_MAX;
  if (instr->op == OP (UNIT)) {
    c = s[2];
    return sum = same (r, instr, s);
  }
  if (instr->op == OP (STORE) && instr->n_sources == 3 && s[2] == c)
    return with (r, instr, s, 2, sum);
  return KEEP;
}

/* Sums of the half of the bits of c's dtype. */
RULE (rounds_to_bf16)
{
  const unsigned most_lanes = 64;
  if (instr->op != OP (UNIT) || instr->dtype != TINY_DTYPE_F32 || instr->lanes > most_lanes)
    return KEEP;
  return without_bits (r, same (r, instr, s), 0xffff);
}

/* A factor of the second unit in a program is the first one's: a register of fragments that is not loaded anew. */
RULE (keeps_first_factor)
{
  static Value first;
  if (r->at == 0)
    first = UINT32_MAX;
  if (instr->op != OP (UNIT))
    return KEEP;
  if (first == UINT32_MAX || at (r, first)->lanes != at (r, s[0])->lanes) {
    first = s[0];
    return KEEP;
  }
  return with (r, instr, s, 0, first);
}

#define CASES "units/*"
#define SAYS(function)                                                                         \
  .arch = "groups,units", .renderer = { .target = function }, .cases = CASES
#define SAYS_ONE(function) .arch = "units", .renderer = { .target = function }, .cases = CASES
#define DOES(rule)         .arch = "groups,units", .rewrite = rule, .cases = CASES
static const Fault rows[] = {
  /* clang-format off */
  { "unit-lanes-a", "two bits of the work-item's number are exchanged in a", "a lane table copied wrong", SAYS (lanes_of_a) },
  { "unit-lanes-b", "two bits of the work-item's number are exchanged in b", "a lane table copied wrong", SAYS (lanes_of_b) },
  { "unit-lanes-c", "two bits of the work-item's number are exchanged in c", "a lane table copied wrong", SAYS (lanes_of_c) },
  { "unit-item-element", "a bit of the work-item's number and one of the element's are exchanged in c", "fragments of another generation", SAYS (item_for_element) },
  { "unit-pairs", "b is said to lie in plain rows", "pairs of a dot product forgotten", SAYS_ONE (plain_rows_of_b) },
  { "unit-turned-c", "c is said to lie by columns", "row-major and column-major confused", SAYS_ONE (turned_c) },
  { "unit-turned-a", "a bit of a's row and one of its column are exchanged", "row-major and column-major confused", SAYS_ONE (turned_a) },
  { "unit-bit-twice", "a row has a bit of a twice", "a table with a mistake", SAYS_ONE (bit_twice) },
  { "unit-bit-missing", "a row lacks a bit of c", "a table with a mistake", SAYS_ONE (bit_missing) },
  { "unit-no-groups", "a unit takes eight work-items on a target without groups", "a table for another device", SAYS_ONE (items_without_groups) },
  { "unit-forgets-c", "a unit gives a b, without c", "the variant without an accumulator", DOES (forgets_c) },
  { "unit-twice", "a product is added twice", "an instruction issued again", DOES (adds_twice) },
  { "unit-exchanged", "a and b change places", "operands of a language by rows in one by columns", DOES (exchanges_factors) },
  { "unit-in-place", "c has the sum in it afterwards", "accumulators that are taken over", DOES (makes_sum_in_c) },
  { "unit-rounds", "sums lose their lower half", "accumulators of the factors' dtype", DOES (rounds_to_bf16) },
  { "unit-first-factor", "every unit of a program takes the first a", "a fragment that is not loaded anew", DOES (keeps_first_factor) },
  /* clang-format on */
};

FAULT_TABLE (faults_units);
