/* SPDX-License-Identifier: MIT
 *
 * cpu-llvm-ahead.c: reading ahead in what is read once, from one end to the other.
 *
 * Processors read ahead by themselves, but not from one page into the next: there each stream waits
 * for the page's address and for its first lines. A load whose address changes with every loop around it, and with
 * the grid, reads each element once, so what comes next lies in memory rather than in a cache; where
 * the innermost loop walks over it without gaps, the line two pages further on is asked for. A
 * prefetch of what is not there does nothing. */
#include "cpu-llvm.h"

enum {
  AHEAD_BYTES = 8192, /* two pages: a whole one is on its way while one is read */
  LINE_BYTES = 64,
  MIN_BYTES = 65536, /* what is smaller may well be in a cache */
  MAX_STEP = 512,    /* bytes from one round to the next: further apart it is another stream */
  MAX_TERMS = 12     /* how deep an index is looked into */
};

/* What the index @at grows by from one round of @loop, a RANGE or GRID, to the next; false where that
 * cannot be told. */
static bool
read_step (
    const Emitter *e, const TinyInstr *at, const TinyInstr *loop, int depth, int64_t *out)
{
  *out = 0;
  if (at == loop || (at->op == TINY_INSTR_GRID && loop->op == at->op && at->arg == loop->arg)) {
    *out = 1;
    return true;
  }
  if (at->op == TINY_INSTR_CONST || at->op == TINY_INSTR_RANGE || at->op == TINY_INSTR_GRID
      || at->op == TINY_INSTR_VARIABLE)
    return true;
  if (at->n_sources != 2 || depth == MAX_TERMS)
    return false;
  const TinyInstr *x = emit_source_instr (e, at, 0), *y = emit_source_instr (e, at, 1);
  int64_t left, right;
  if (!read_step (e, x, loop, depth + 1, &left) || !read_step (e, y, loop, depth + 1, &right))
    return false;
  if (at->op == TINY_INSTR_ADD) {
    *out = left + right;
    return true;
  }
  const TinyInstr *factor = y->op == TINY_INSTR_CONST ? y : x;
  *out = (left + right) * factor->arg;
  return at->op == TINY_INSTR_MUL && factor->op == TINY_INSTR_CONST;
}

/* Whether loads outside of the innermost loop read @buffer, too. */
static bool
is_read_elsewhere (const Emitter *e, const TinyInstr *buffer)
{
  uint32_t inside = 0;
  for (uint32_t i = 0; i < e->linear->n_instrs; i++) {
    const TinyInstr *at = &e->linear->instrs[i];
    if (i == e->blocks[e->depth - 1].instr)
      inside = 1;
    else if (inside > 0 && (at->op == TINY_INSTR_RANGE || at->op == TINY_INSTR_IF))
      inside++;
    else if (inside > 0 && (at->op == TINY_INSTR_END || at->op == TINY_INSTR_ENDIF))
      inside--;
    if (inside == 0 && at->op == TINY_INSTR_LOAD && emit_source_instr (e, at, 0) == buffer)
      return true;
  }
  return false;
}

/* Whether each round of each loop, and each grid point, reads something else. */
static bool
reads_once (const Emitter *e, const TinyInstr *buffer, const TinyInstr *index)
{
  int64_t step;
  if (is_read_elsewhere (e, buffer))
    return false;
  for (unsigned i = 0; i < e->depth; i++) {
    const TinyInstr *loop = &e->linear->instrs[e->blocks[i].instr];
    if (loop->op == TINY_INSTR_RANGE && (!read_step (e, index, loop, 0, &step) || step == 0))
      return false;
  }
  for (int axis = 0; axis < 3; axis++) {
    TinyInstr grid = { .op = TINY_INSTR_GRID, .arg = axis };
    if (e->linear->grid[axis] > 1 && (!read_step (e, index, &grid, 0, &step) || step == 0))
      return false;
  }
  return true;
}

/* Notes that the line of @ahead is asked for in this round; false when it was. */
static bool
note_line (Emitter *e, EmitAhead ahead)
{
  if (e->n_ahead > 0 && e->ahead[0].loop != ahead.loop)
    e->n_ahead = 0;
  for (unsigned i = 0; i < e->n_ahead; i++) {
    const EmitAhead *other = &e->ahead[i];
    int64_t distance = ahead.offset - other->offset;
    if (other->buffer == ahead.buffer && other->base == ahead.base && distance > -LINE_BYTES
        && distance < LINE_BYTES)
      return false;
  }
  if (e->n_ahead == CPU_ARRAY_SIZE (e->ahead))
    return false;
  e->ahead[e->n_ahead++] = ahead;
  return true;
}

void
emit_ahead (Emitter *e, const TinyInstr *load, LlvmRef address)
{
  const TinyInstr *buffer = emit_source_instr (e, load, 0);
  const TinyInstr *index = emit_source_instr (e, load, 1);
  if (buffer->op != TINY_INSTR_PARAM || e->depth == 0)
    return;
  const TinyInstr *loop = &e->linear->instrs[e->blocks[e->depth - 1].instr];
  const TinyParam *param = &e->linear->params[buffer->arg];
  int64_t n_bytes = dtype_bits (buffer->dtype) / 8, step, constant;
  if ((param->flags & TINY_PARAM_WRITE) != 0 || loop->op != TINY_INSTR_RANGE
      || param->n_elements < (uint64_t) (MIN_BYTES / n_bytes)
      || !read_step (e, index, loop, 0, &step) || step <= 0 || step * n_bytes > MAX_STEP
      || !reads_once (e, buffer, index))
    return;
  const TinyInstr *base = emit_split_index (e, index, &constant);
  if (!note_line (
          e, (EmitAhead){ e->blocks[e->depth - 1].instr, buffer, base, constant * n_bytes }))
    return;
  const Llvm *llvm = e->llvm;
  LlvmRef distance = emit_int (e, 64, AHEAD_BYTES);
  LlvmRef place = llvm->BuildGEP2 (e->builder, llvm->IntTypeInContext (e->context, 8), address,
                                   &distance, 1, "");
  const int to_read = 0, keep = 3, data = 1;
  LlvmRef arguments[4]
      = { place, emit_int (e, 32, to_read), emit_int (e, 32, keep), emit_int (e, 32, data) };
  emit_intrinsic (e, "llvm.prefetch", llvm->PointerTypeInContext (e->context, 0), arguments, 4);
}
