/* SPDX-License-Identifier: MIT
 *
 * cpu-llvm-ahead.c: asking ahead for what comes from memory.
 *
 * What is read once, from one end to the other:
 * Processors read ahead by themselves, but not from one page into the next: there each stream waits
 * for the page's address and for its first lines. A load whose address changes with every loop around it, and with
 * the grid, reads each element once, so what comes next lies in memory rather than in a cache; where
 * the innermost loop walks over it without gaps, the line two pages further on is asked for.
 *
 * What is read in panels: tiles of a product read a panel of weights again and again, and memory is
 * idle meanwhile; then all of them wait for the first lines of the next one. So a load of a panel asks
 * for the same place of the next.
 *
 * A prefetch of what is not there does nothing. */
#include "cpu-llvm.h"

enum {
  AHEAD_BYTES = 8192, /* two pages: a whole one is on its way while one is read */
  LINE_BYTES = 64,
  MIN_BYTES = 65536, /* what is smaller may well be in a cache */
  MAX_STEP = 512,    /* bytes from one round to the next: further apart it is another stream */
  PANEL_SHARE = 4,   /* of the second cache: two panels, and what the tiles read besides */
  MAX_TILES
  = 16, /* that read a panel: behind more of them one wait is little, and all would ask */
  MAX_TERMS = 12 /* how deep an index is looked into */
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

/* The rounds of @loop, or 0 where they are not known. */
static int64_t
count_rounds (const Emitter *e, const TinyInstr *loop)
{
  const TinyInstr *bound = emit_source_instr (e, loop, 0);
  return loop->op == TINY_INSTR_RANGE && bound->op == TINY_INSTR_CONST ? bound->arg : 0;
}

/* How far the same place of the next panel is, in elements; 0: @index does not go over panels that are read again.
 * Inside of the loops that do not change it (the tiles) is one panel of *@out_n elements, outside the next. */
static int64_t
find_next_panel (const Emitter *e, const TinyInstr *index, int64_t *out_n)
{
  const TinyInstr grid = { .op = TINY_INSTR_GRID, .arg = 0 };
  int64_t n_tiles = 1, step = 0;
  *out_n = 1;
  for (unsigned i = e->depth; i-- > 0;) {
    const TinyInstr *loop = &e->linear->instrs[e->blocks[i].instr];
    const int64_t n_rounds = count_rounds (e, loop);
    if (n_rounds == 0 || !read_step (e, index, loop, 0, &step))
      return 0;
    if (step == 0)
      n_tiles *= n_rounds;
    else if (n_tiles > 1 && n_rounds > 1)
      return n_tiles <= MAX_TILES ? step : 0;
    else
      *out_n *= n_rounds * (*out_n == 1 ? step : 1);
  }
  return n_tiles > 1 && n_tiles <= MAX_TILES && e->linear->grid[0] > 1
                 && read_step (e, index, &grid, 0, &step)
             ? step
             : 0;
}

/* How many bytes ahead a vector of the panels in @param is asked for, or 0: all of them are near, or two are not. */
static int64_t
measure_panels (const Emitter *e,
                const TinyInstr *load,
                const TinyInstr *index,
                const TinyParam *param,
                int64_t n_bytes)
{
  const int64_t near = (int64_t) cpu_cache_bytes (2);
  int64_t n, next = find_next_panel (e, index, &n);
  return load->lanes > 1 && next > 0 && (int64_t) param->n_elements * n_bytes > near
                 && n * n_bytes <= near / PANEL_SHARE
             ? next * n_bytes
             : 0;
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
      || !read_step (e, index, loop, 0, &step) || step <= 0 || step * n_bytes > MAX_STEP)
    return;
  const bool is_once = reads_once (e, buffer, index);
  const int64_t n_ahead
      = is_once ? AHEAD_BYTES : measure_panels (e, load, index, param, n_bytes);
  if (n_ahead == 0)
    return;
  const TinyInstr *base = emit_split_index (e, index, &constant);
  if (!note_line (
          e, (EmitAhead){ e->blocks[e->depth - 1].instr, buffer, base, constant * n_bytes }))
    return;
  const Llvm *llvm = e->llvm;
  LlvmRef distance = emit_int (e, 64, n_ahead);
  LlvmRef place = llvm->BuildGEP2 (e->builder, llvm->IntTypeInContext (e->context, 8), address,
                                   &distance, 1, "");
  const int to_read = 0, keep = is_once ? 3 : 2, data = 1; /* 2: not into the nearest cache */
  LlvmRef arguments[4]
      = { place, emit_int (e, 32, to_read), emit_int (e, 32, keep), emit_int (e, 32, data) };
  emit_intrinsic (e, "llvm.prefetch", llvm->PointerTypeInContext (e->context, 0), arguments, 4);
}
