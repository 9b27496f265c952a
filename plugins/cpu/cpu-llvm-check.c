/* SPDX-License-Identifier: MIT
 *
 * cpu-llvm-check.c: refuses a malformed instruction before LLVM sees it.
 *
 * LLVM crashes on operands of wrong types, so each instruction is checked as it is reached. */
#include "cpu-llvm.h"

enum { VALUE = 1, SAME = 2, PLACE = 4 }; /* see has_right_sources() */
static const struct {
  uint8_t least, most, flags;
} shapes[TINY_N_INSTRS] = {
  [TINY_INSTR_LOAD] = { 1, 4, PLACE },    [TINY_INSTR_STORE] = { 2, 4, PLACE },
  [TINY_INSTR_CAST] = { 1, 1, VALUE },    [TINY_INSTR_BITCAST] = { 1, 1, 0 },
  [TINY_INSTR_NEG] = { 1, 1, SAME },      [TINY_INSTR_RECIP] = { 1, 1, SAME },
  [TINY_INSTR_SQRT] = { 1, 1, SAME },     [TINY_INSTR_TRUNC] = { 1, 1, SAME },
  [TINY_INSTR_ADD] = { 2, 2, SAME },      [TINY_INSTR_SUB] = { 2, 2, SAME },
  [TINY_INSTR_MUL] = { 2, 2, SAME },      [TINY_INSTR_FDIV] = { 2, 2, SAME },
  [TINY_INSTR_IDIV] = { 2, 2, SAME },     [TINY_INSTR_MOD] = { 2, 2, SAME },
  [TINY_INSTR_MAX] = { 2, 2, SAME },      [TINY_INSTR_AND] = { 2, 2, SAME },
  [TINY_INSTR_OR] = { 2, 2, SAME },       [TINY_INSTR_XOR] = { 2, 2, SAME },
  [TINY_INSTR_SHL] = { 2, 2, VALUE },     [TINY_INSTR_SHR] = { 2, 2, VALUE },
  [TINY_INSTR_CMPLT] = { 2, 2, VALUE },   [TINY_INSTR_CMPNE] = { 2, 2, VALUE },
  [TINY_INSTR_CMPEQ] = { 2, 2, VALUE },   [TINY_INSTR_WHERE] = { 3, 3, VALUE },
  [TINY_INSTR_MULACC] = { 3, 3, SAME },   [TINY_INSTR_VECTOR] = { 1, 255, SAME },
  [TINY_INSTR_EXTRACT] = { 1, 1, 0 },     [TINY_INSTR_RANGE] = { 1, 255, 0 },
  [TINY_INSTR_END] = { 1, 255, PLACE },   [TINY_INSTR_IF] = { 1, 255, 0 },
  [TINY_INSTR_ENDIF] = { 1, 255, PLACE }, [TINY_INSTR_BARRIER] = { 0, 255, 0 },
  [TINY_INSTR_UNIT] = { 3, 3, 0 },
};

static bool
has_value (const TinyInstr *instr)
{
  switch (instr->op) {
  case TINY_INSTR_STORE:
  case TINY_INSTR_END:
  case TINY_INSTR_IF:
  case TINY_INSTR_ENDIF:
  case TINY_INSTR_BARRIER:
    return false;
  default:
    return true;
  }
}

static bool
is_place (const TinyInstr *instr)
{
  return instr->op == TINY_INSTR_PARAM || instr->op == TINY_INSTR_LOCAL
         || instr->op == TINY_INSTR_REGISTER;
}

/* Sources come before their user and have values; only source 0 of a PLACE op is memory or a block.
 * VALUE: each has one lane or the instruction's number; SAME: also the instruction's dtype. */
static bool
has_right_sources (Emitter *e, const TinyInstr *instr)
{
  const TinyLinear *linear = e->linear;
  uint32_t self = (uint32_t) (instr - linear->instrs);
  unsigned flags = shapes[instr->op].flags;
  /* Further sources of the blocks only order; they are not used. */
  unsigned n_used = shapes[instr->op].most == 255 && instr->op != TINY_INSTR_VECTOR
                        ? shapes[instr->op].least
                        : instr->n_sources;
  for (unsigned i = 0; i < instr->n_sources; i++) {
    uint32_t at = linear->sources[instr->sources + i];
    if (at >= self)
      return emit_fail (e, instr, "a source comes later") != NULL;
    if (i >= n_used || (i == 0 && (flags & PLACE)))
      continue;
    const TinyInstr *source = &linear->instrs[at];
    if (!has_value (source) || is_place (source))
      return emit_fail (e, instr, "a source has no value") != NULL;
    if (source->lanes > CPU_MAX_LANES && !emit_is_fragment (e, instr))
      return emit_fail (e, instr, "a source has more lanes than there are") != NULL;
    if ((flags & (VALUE | SAME)) && source->lanes != 1 && source->lanes != instr->lanes)
      return emit_fail (e, instr, "a source has another number of lanes") != NULL;
    if ((flags & SAME) && source->dtype != instr->dtype)
      return emit_fail (e, instr, "a source has another dtype") != NULL;
  }
  return true;
}

/* What the tables above cannot say. */
static bool
has_right_types (Emitter *e, const TinyInstr *instr)
{
  const TinyInstr *a = instr->n_sources > 0 ? emit_source_instr (e, instr, 0) : NULL;
  const TinyInstr *b = instr->n_sources > 1 ? emit_source_instr (e, instr, 1) : NULL;
  bool is_right = true;
  switch (instr->op) {
  case TINY_INSTR_CMPLT:
  case TINY_INSTR_CMPNE:
  case TINY_INSTR_CMPEQ:
    is_right = a->dtype == b->dtype && instr->dtype == TINY_DTYPE_BOOL;
    break;
  case TINY_INSTR_WHERE: {
    const TinyInstr *c = emit_source_instr (e, instr, 2);
    is_right
        = a->dtype == TINY_DTYPE_BOOL && b->dtype == instr->dtype && c->dtype == instr->dtype;
    break;
  }
  case TINY_INSTR_SHL:
  case TINY_INSTR_SHR:
    is_right = a->dtype == instr->dtype && !dtype_is_float (b->dtype);
    break;
  case TINY_INSTR_EXTRACT:
    is_right = a->dtype == instr->dtype && instr->lanes == 1;
    break;
  case TINY_INSTR_RANGE:
    is_right = a->lanes == 1 && !dtype_is_float (a->dtype);
    break;
  case TINY_INSTR_LOAD:
    if (a->op != TINY_INSTR_REGISTER && instr->n_sources > 3) {
      const TinyInstr *d = emit_source_instr (e, instr, 3);
      is_right = d->dtype == instr->dtype && (d->lanes == 1 || d->lanes == instr->lanes);
    }
    break;
  case TINY_INSTR_ADD:
  case TINY_INSTR_SUB:
  case TINY_INSTR_MUL:
  case TINY_INSTR_NEG:
  case TINY_INSTR_MAX:
  case TINY_INSTR_MULACC:
    is_right = instr->dtype != TINY_DTYPE_F16 && instr->dtype != TINY_DTYPE_BF16
               && instr->dtype != TINY_DTYPE_F8E4M3 && instr->dtype != TINY_DTYPE_F8E5M2;
    break;
  }
  return is_right || emit_fail (e, instr, "dtypes of its sources") != NULL;
}

bool
emit_has_all_sources (Emitter *e)
{
  const TinyLinear *linear = e->linear;
  for (uint32_t i = 0; i < linear->n_instrs; i++) {
    const TinyInstr *instr = &linear->instrs[i];
    if (instr->sources > linear->n_sources
        || instr->n_sources > linear->n_sources - instr->sources)
      return emit_fail (e, instr, "number of sources") != NULL;
    for (unsigned k = 0; k < instr->n_sources; k++)
      if (linear->sources[instr->sources + k] >= i)
        return emit_fail (e, instr, "a source comes later") != NULL;
  }
  return true;
}

static bool
has_right_count (Emitter *e, const TinyInstr *instr)
{
  const uint32_t n = e->linear->n_sources;
  return (instr->n_sources >= shapes[instr->op].least
          && instr->n_sources <= shapes[instr->op].most && instr->sources <= n
          && instr->n_sources <= n - instr->sources)
         || emit_fail (e, instr, "number of sources") != NULL;
}

bool
emit_is_right (Emitter *e, const TinyInstr *instr)
{
  if (instr->op == TINY_INSTR_UNIT && e->tiles.of != NULL)
    return has_right_count (e, instr) && has_right_sources (e, instr);
  if (instr->op >= TINY_N_INSTRS
      || (emit_ops[instr->op] == NULL && emit_structure[instr->op] == NULL))
    return emit_fail (e, instr, "the CPU has no such op") != NULL;
  if (has_value (instr) && dtype_bits (instr->dtype) == 0)
    return emit_fail (e, instr, "no dtype of the CPU") != NULL;
  if (!has_right_count (e, instr))
    return false;
  if (instr->lanes < 1 || (instr->lanes > CPU_MAX_LANES && !emit_is_fragment (e, instr)))
    return emit_fail (e, instr, "lanes") != NULL;
  return has_right_sources (e, instr) && has_right_types (e, instr);
}
