/* SPDX-License-Identifier: MIT
 *
 * cpu-llvm-table.c: values that can only be one of sixteen are looked up.
 *
 * What is computed in 16 lanes from x AND 15 and from things that are the same in all lanes, such as the
 * weight of a code of four bits times the scale of its block, has as many values as a register has
 * lanes. It is computed once for the numbers 0 to 15, mostly while compiling, and one permutation picks
 * from that: it reads the low four bits of its index and so stands for the mask too. The same
 * operations are done on the same numbers, so the results are the same to the bit. */
#include "cpu-llvm.h"

#include <string.h>

enum { N_CODES = 16, MIN_OPS = 3 /* that one permutation stands for */ };

static bool
can_look_up (const Emitter *e, const TinyInstr *instr)
{
  return e->tables != NULL && instr->lanes == N_CODES && dtype_bits (instr->dtype) == 32
         && emit_ops[instr->op] != NULL && instr->op != TINY_INSTR_EXTRACT
         && instr->op != TINY_INSTR_VECTOR;
}

/* The codes themselves: x AND m, m a constant below 16. */
static bool
begin_table (Emitter *e, const TinyInstr *instr, EmitTable *out)
{
  if (instr->op != TINY_INSTR_AND)
    return false;
  for (unsigned i = 0; i < 2; i++) {
    const TinyInstr *mask = emit_source_instr (e, instr, i);
    const TinyInstr *x = emit_source_instr (e, instr, 1 - i);
    if (mask->op != TINY_INSTR_CONST || mask->arg < 0 || mask->arg >= N_CODES || x->lanes == 1)
      continue;
    LlvmRef codes[N_CODES];
    for (int code = 0; code < N_CODES; code++)
      codes[code] = emit_int (e, 32, code & mask->arg);
    *out = (EmitTable){ e->llvm->ConstVector (codes, N_CODES), e->values[x - e->linear->instrs],
                        1 };
    return true;
  }
  return false;
}

/* Whether all sources of @instr are of one table, or the same in all lanes. */
static bool
join_tables (const Emitter *e, const TinyInstr *instr, EmitTable *out)
{
  *out = (EmitTable){ 0 };
  for (unsigned i = 0; i < instr->n_sources; i++) {
    const TinyInstr *source = emit_source_instr (e, instr, i);
    const EmitTable *table = &e->tables[source - e->linear->instrs];
    bool is_uniform = source->lanes == 1 || source->op == TINY_INSTR_CONST
                      || (source->op == TINY_INSTR_VECTOR && source->n_sources == 1);
    if (is_uniform)
      continue;
    if (table->entries == NULL || (out->index != NULL && out->index != table->index))
      return false;
    out->index = table->index;
    out->n_ops += table->n_ops;
  }
  out->n_ops++;
  return out->index != NULL;
}

/* What @emit makes of @instr with the entries of the sources' tables in the sources' place. */
static LlvmRef
compute_entries (Emitter *e, const TinyInstr *instr, EmitFunc emit)
{
  LlvmRef kept[4];
  for (unsigned i = 0; i < instr->n_sources; i++) {
    uint32_t at = e->linear->sources[instr->sources + i];
    kept[i] = e->values[at];
    if (e->tables[at].entries != NULL)
      e->values[at] = e->tables[at].entries;
  }
  LlvmRef entries = emit (e, instr);
  for (unsigned i = instr->n_sources; i-- > 0;)
    e->values[e->linear->sources[instr->sources + i]] = kept[i];
  return entries;
}

static LlvmRef
pick (Emitter *e, unsigned dtype, const EmitTable *table)
{
  const char *name = dtype_is_float (dtype) ? "llvm.x86.avx512.permvar.sf.512"
                                            : "llvm.x86.avx512.permvar.si.512";
  unsigned id = e->llvm->LookupIntrinsicID (name, strlen (name));
  if (id == 0)
    return NULL;
  LlvmRef function = e->llvm->GetIntrinsicDeclaration (e->module, id, NULL, 0);
  LlvmRef arguments[2] = { table->entries, table->index };
  return e->llvm->BuildCall2 (e->builder, e->llvm->GlobalGetValueType (function), function,
                              arguments, 2, "");
}

LlvmRef
emit_with_table (Emitter *e, const TinyInstr *instr, EmitFunc emit)
{
  EmitTable table;
  if (!can_look_up (e, instr))
    return emit (e, instr);
  if (begin_table (e, instr, &table)) {
    e->tables[instr - e->linear->instrs] = table;
    return emit (e, instr);
  }
  if (instr->n_sources > 3 || !join_tables (e, instr, &table))
    return emit (e, instr);
  table.entries = compute_entries (e, instr, emit);
  if (table.entries == NULL)
    return NULL;
  e->tables[instr - e->linear->instrs] = table;
  LlvmRef picked = table.n_ops >= MIN_OPS ? pick (e, instr->dtype, &table) : NULL;
  return picked != NULL ? picked : emit (e, instr);
}
