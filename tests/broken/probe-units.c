/* SPDX-License-Identifier: MIT
 *
 * probe-units.c: what matrix units give: fragments, one behind the other, through units by themselves, in series, with what
 * they add afterwards. */
#include "probe.h"

#define OP(name) TINY_INSTR_##name
enum { READ = TINY_PARAM_READ, WRITE = TINY_PARAM_WRITE, SETS = 4 };

static void
say_row (const TinyUnit *unit, unsigned number)
{
  char where[32], text[3 * 48 + 1];
  for (unsigned i = 0; i < 48; i++)
    snprintf (text + 3 * i, 4, "%02x ",
              (i < 16   ? unit->a
               : i < 32 ? unit->b
                        : unit->c)[i % 16]);
  snprintf (where, sizeof where, "unit-%u", number);
  say (where, "%u %u %u: %ux%ux%u, %u: %s", unit->a_dtype, unit->b_dtype, unit->c_dtype,
       unit->m_bits, unit->n_bits, unit->k_bits, unit->n_thread_bits, text);
}

/* The work-item's fragment number @set of @param. */
static Value
fragment_at (
    const Probe *self, Rewrite *k, Value item, unsigned items, unsigned lanes, unsigned set)
{
  const Value first = kernel_int (self, k, (int64_t) set * items * lanes);
  return op2 (k, OP (ADD), first, op2 (k, OP (MUL), item, kernel_int (self, k, lanes)));
}

static void
probe_row (const Probe *self, unsigned number)
{
  const TinyUnit *unit = &self->target.units[number];
  const unsigned items = 1u << unit->n_thread_bits,
                 lanes[]
                 = { tiny_count_in_unit (unit, unit->c), tiny_count_in_unit (unit, unit->a),
                     tiny_count_in_unit (unit, unit->b), tiny_count_in_unit (unit, unit->c) };
  const unsigned dtypes[] = { unit->c_dtype, unit->a_dtype, unit->b_dtype, unit->c_dtype };
  char name[32];
  Value params[4], of[4][2];
  snprintf (name, sizeof name, "unit_%u", number);
  Rewrite *k = kernel_new (name, 4);
  kernel_whole (k)->group[0] = items;
  for (unsigned i = 0; i < 4; i++) {
    kernel_param (k, i, dtypes[i], i == 0 ? READ | WRITE : READ,
                  (uint64_t) SETS * items * lanes[i]);
    params[i] = emit (k, OP (PARAM), dtypes[i], 1, i, 0, NULL);
  }
  const Value item = emit (k, OP (GROUP), self->target.index_dtype, 1, 0, 0, NULL);
  for (unsigned i = 1; i < 4; i++)
    for (unsigned set = 0; set < 2; set++)
      of[i][set] = emit (
          k, OP (LOAD), dtypes[i], lanes[i], 0, 2,
          (const Value[]){ params[i], fragment_at (self, k, item, items, lanes[i], set) });
  const Value sum = emit (k, OP (UNIT), unit->c_dtype, lanes[0], number, 3,
                          (const Value[]){ of[1][0], of[2][1], of[3][0] });
  const Value results[SETS] = { sum,
                                emit (k, OP (UNIT), unit->c_dtype, lanes[0], number, 3,
                                      (const Value[]){ of[1][1], of[2][0], sum }),
                                of[3][0], of[3][1] };
  for (unsigned set = 0; set < SETS; set++)
    emit (k, OP (STORE), TINY_DTYPE_VOID, lanes[0], 0, 3,
          (const Value[]){ params[0], fragment_at (self, k, item, items, lanes[0], set),
                           results[set] });
  kernel_run (self, k);
}

void
probe_units (Probe *self)
{
  for (unsigned i = 0; i < TINY_MAX_UNITS && self->target.units[i].a_dtype != TINY_DTYPE_VOID;
       i++) {
    say_row (&self->target.units[i], i);
    if (tiny_count_in_unit (&self->target.units[i], self->target.units[i].c) > 0)
      probe_row (self, i);
  }
}
