/* SPDX-License-Identifier: MIT
 *
 * ref-units.c: matrix units. The rows are those of hardware that there is, so that whoever has no such hardware sees the
 * core use them; REF computes them all by the one formula. */
#include "ref.h"

#include <stdlib.h>

/* clang-format off */
#define M(n) (TINY_UNIT_M | (n))
#define N(n) (TINY_UNIT_N | (n))
#define K(n) (TINY_UNIT_K | (n))
#define SAME TINY_UNIT_SAME
#define DTYPES(a, b, c) TINY_DTYPE_##a, TINY_DTYPE_##b, TINY_DTYPE_##c
/* A work-item's own first: a target without groups has them alone. */
static const TinyUnit rows[] = {
  /* x86 AMX: tiles of 16 rows of 64 bytes; b has what is summed together side by side */
  { DTYPES (BF16, BF16, F32), 4, 4, 5, 0, 0, 8, { 0 },
    { K (0), K (1), K (2), K (3), K (4), M (0), M (1), M (2), M (3) },
    { K (0), N (0), N (1), N (2), N (3), K (1), K (2), K (3), K (4) },
    { N (0), N (1), N (2), N (3), M (0), M (1), M (2), M (3) } },
  { DTYPES (I8, I8, I32), 4, 4, 6, 0, 0, 8, { 0 },
    { K (0), K (1), K (2), K (3), K (4), K (5), M (0), M (1), M (2), M (3) },
    { K (0), K (1), N (0), N (1), N (2), N (3), K (2), K (3), K (4), K (5) },
    { N (0), N (1), N (2), N (3), M (0), M (1), M (2), M (3) } },
  /* NVIDIA mma.sync m16n8k16, and m8n8k4 of f64 */
  { DTYPES (F16, F16, F32), 4, 3, 4, 5, 0, 0, { 0 },
    { K (1), K (2), M (0), M (1), M (2), K (0), M (3), K (3) },
    { K (1), K (2), N (0), N (1), N (2), K (0), K (3) },
    { N (1), N (2), M (0), M (1), M (2), N (0), M (3) } },
  { DTYPES (F64, F64, F64), 3, 3, 2, 5, 0, 0, { 0 },
    { K (0), K (1), M (0), M (1), M (2) },
    { K (0), K (1), N (0), N (1), N (2) },
    { N (1), N (2), M (0), M (1), M (2), N (0) } },
  /* AMD WMMA of gfx11: the upper half of a wave holds the factors again */
  { DTYPES (F16, F16, F32), 4, 4, 4, 5, 0, 0, { 0 },
    { M (0), M (1), M (2), M (3), SAME, K (0), K (1), K (2), K (3) },
    { N (0), N (1), N (2), N (3), SAME, K (0), K (1), K (2), K (3) },
    { N (0), N (1), N (2), N (3), M (0), M (1), M (2), M (3) } },
  /* Apple simdgroup_matrix */
  { DTYPES (F32, F32, F32), 3, 3, 3, 5, 0, 0, { 0 },
    { K (1), M (0), M (1), K (2), M (2), K (0) },
    { N (1), K (0), K (1), N (2), K (2), N (0) },
    { N (1), M (0), M (1), N (2), M (2), N (0) } },
};
/* clang-format on */

static const uint8_t *
list_of (const TinyUnit *unit, unsigned matrix)
{
  return matrix == 0 ? unit->a : matrix == 1 ? unit->b : unit->c;
}

void
ref_set_units (TinyTarget *target)
{
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const uint32_t dtypes = TINY_DTYPE_BIT (rows[i].a_dtype) | TINY_DTYPE_BIT (rows[i].b_dtype)
                            | TINY_DTYPE_BIT (rows[i].c_dtype);
    if (1u << rows[i].n_thread_bits > target->max_group[0]
        || 1u << rows[i].n_thread_bits > target->max_group_total
        || (target->dtypes_storage & dtypes) != dtypes)
      return; /* rows have their numbers */
    target->units[i] = rows[i];
  }
}

const TinyUnit *
ref_find_unit (int64_t number)
{
  const int64_t n = sizeof rows / sizeof *rows;
  return number >= 0 && number < n ? &rows[number] : NULL;
}

bool
ref_is_fragment (unsigned dtype, unsigned lanes)
{
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const unsigned dtypes[] = { rows[i].a_dtype, rows[i].b_dtype, rows[i].c_dtype };
    for (unsigned matrix = 0; matrix < 3; matrix++)
      if (dtypes[matrix] == dtype
          && tiny_count_in_unit (&rows[i], list_of (&rows[i], matrix)) == lanes)
        return true;
  }
  return false;
}

bool
ref_may_be_wide (const TinyInstr *instrs, const uint32_t *sources, const TinyInstr *instr)
{
  const bool stores = instr->op == TINY_INSTR_STORE;
  const bool accesses = stores || instr->op == TINY_INSTR_LOAD;
  const bool moves = instr->op == TINY_INSTR_UNIT || instr->op == TINY_INSTR_CONST
                     || instr->op == TINY_INSTR_REGISTER
                     || (accesses && instr->n_sources <= (stores ? 3 : 2));
  const TinyInstr *value
      = stores ? &instrs[sources[instr->sources + instr->n_sources - 1u]] : instr;
  return moves && ref_is_fragment (value->dtype, instr->lanes);
}

/* One element of c + a b, with each product and sum rounded to c's dtype. */
static uint64_t
multiply (const TinyUnit *unit, const uint64_t *a, const uint64_t *b, uint64_t c)
{
  const unsigned dtype = unit->c_dtype;
  for (uint32_t k = 0; k < 1u << unit->k_bits; k++) {
    const uint64_t x = ref_element (TINY_INSTR_CAST, unit->a_dtype, dtype, a[k], 0, 0);
    const uint64_t y = ref_element (TINY_INSTR_CAST, unit->b_dtype, dtype, b[k], 0, 0);
    const uint64_t product = ref_element (TINY_INSTR_MUL, dtype, dtype, x, y, 0);
    c = ref_element (TINY_INSTR_ADD, dtype, dtype, c, product, 0);
  }
  return c;
}

bool
ref_multiply (const TinyUnit *unit,
              const uint64_t *const fragments[3],
              uint64_t stride,
              uint64_t *result)
{
  const uint32_t n_items = 1u << unit->n_thread_bits, n_columns = 1u << unit->n_bits,
                 n_sums = 1u << unit->k_bits;
  /* a by rows, b by columns */
  uint64_t *a = malloc (((UINT64_C (1) << unit->m_bits) + n_columns) * n_sums * sizeof *a);
  if (a == NULL)
    return false;
  uint64_t *b = a + (UINT64_C (1) << unit->m_bits) * n_sums;
  for (uint32_t item = 0; item < n_items; item++) {
    for (uint32_t i = 0; i < tiny_count_in_unit (unit, unit->a); i++) {
      const TinyUnitPlace at = tiny_find_in_unit (unit, unit->a, item, i);
      a[at.m * n_sums + at.k] = fragments[0][item * stride + i];
    }
    for (uint32_t i = 0; i < tiny_count_in_unit (unit, unit->b); i++) {
      const TinyUnitPlace at = tiny_find_in_unit (unit, unit->b, item, i);
      b[at.n * n_sums + at.k] = fragments[1][item * stride + i];
    }
  }
  for (uint32_t item = 0; item < n_items; item++)
    for (uint32_t i = 0; i < tiny_count_in_unit (unit, unit->c); i++) {
      const TinyUnitPlace at = tiny_find_in_unit (unit, unit->c, item, i);
      result[item * stride + i] = multiply (unit, a + at.m * n_sums, b + at.n * n_sums,
                                            fragments[2][item * stride + i]);
    }
  free (a);
  return true;
}
