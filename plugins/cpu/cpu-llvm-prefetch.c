/* SPDX-License-Identifier: MIT
 *
 * cpu-llvm-prefetch.c: loads that ask for what the next grid point reads.
 *
 * A loop that reads what an earlier loop of the same grid point has read leaves memory idle (a
 * softmax goes through a row three times). Where the kernel goes through more memory than the second
 * cache holds, such a loop asks for the same place of the next grid point. What is read once is
 * cpu-llvm-ahead.c's affair. */
#include <stdlib.h>

#include "cpu-llvm.h"

enum {
  LINE_BYTES = 64,
  MAX_LOADS = 64 /* that are looked at */
};

/* An index as constant + grid * (point along axis 0) + round * (rounds of a loop). */
typedef struct {
  bool is_known;
  uint32_t loop; /* its RANGE, 0: none (instruction 0 is never one with a bound) */
  int64_t constant, grid, round;
} Index;

typedef struct {
  const TinyInstr *load;
  uint32_t loop;    /* the innermost RANGE around it */
  int64_t n_rounds; /* of that */
  Index index;
  int64_t n_bytes; /* of an element */
} Load;

typedef struct {
  Emitter *e;
  Index *indices; /* of each instruction */
  Load loads[MAX_LOADS];
  unsigned n_loads;
} Prefetch;

/* ---- what indices are made of ---- */

static Index
add_indices (Index x, Index y, int64_t sign)
{
  Index sum = { .is_known = x.is_known && y.is_known
                            && (x.loop == 0 || y.loop == 0 || x.loop == y.loop) };
  sum.loop = x.loop != 0 ? x.loop : y.loop;
  sum.constant = x.constant + sign * y.constant;
  sum.grid = x.grid + sign * y.grid;
  sum.round = x.round + sign * y.round;
  return sum;
}

static Index
scale_index (Index x, Index by)
{
  const int64_t most = INT64_C (1) << 31;
  bool fits = by.is_known && by.loop == 0 && by.grid == 0 && llabs (by.constant) < most
              && llabs (x.constant) < most && llabs (x.grid) < most && llabs (x.round) < most;
  return (Index){ x.is_known && fits, x.loop, x.constant * (fits ? by.constant : 0),
                  x.grid * (fits ? by.constant : 0), x.round * (fits ? by.constant : 0) };
}

static Index
find_index (const Prefetch *self, const TinyInstr *instr)
{
  const Emitter *e = self->e;
  Index of[2] = { { 0 }, { 0 } };
  if (dtype_is_float (instr->dtype) || dtype_bits (instr->dtype) < 32 || instr->lanes != 1)
    return (Index){ false };
  for (unsigned i = 0; i < instr->n_sources && i < 2; i++)
    of[i] = self->indices[emit_source_instr (e, instr, i) - e->linear->instrs];
  switch (instr->op) {
  case TINY_INSTR_CONST:
    return (Index){ .is_known = true, .constant = instr->arg };
  case TINY_INSTR_GRID:
    return (Index){ .is_known = instr->arg == 0, .grid = 1 };
  case TINY_INSTR_RANGE:
    return (
        Index){ .is_known = true, .loop = (uint32_t) (instr - e->linear->instrs), .round = 1 };
  case TINY_INSTR_ADD:
    return add_indices (of[0], of[1], 1);
  case TINY_INSTR_SUB:
    return add_indices (of[0], of[1], -1);
  case TINY_INSTR_MUL:
    return of[0].loop == 0 && of[0].grid == 0 ? scale_index (of[1], of[0])
                                              : scale_index (of[0], of[1]);
  default:
    return (Index){ false };
  }
}

/* ---- loads ---- */

/* A whole vector from a parameter's memory, whose place is known and begins a line. A BOOL is
 * converted: its value is no load. */
static bool
describe_load (const Prefetch *self, const TinyInstr *instr, uint32_t loop, Load *out)
{
  const Emitter *e = self->e;
  if (instr->op != TINY_INSTR_LOAD || instr->n_sources != 2 || instr->lanes == 1
      || instr->lanes > CPU_MAX_LANES)
    return false;
  const TinyInstr *buffer = emit_source_instr (e, instr, 0);
  Index index = self->indices[emit_source_instr (e, instr, 1) - e->linear->instrs];
  const TinyInstr *bound = emit_source_instr (e, &e->linear->instrs[loop], 0);
  *out = (Load){ instr, loop, bound->arg, index, dtype_bits (buffer->dtype) / 8 };
  return buffer->op == TINY_INSTR_PARAM && buffer->dtype != TINY_DTYPE_BOOL && index.is_known
         && index.loop == loop && bound->op == TINY_INSTR_CONST
         && index.constant * out->n_bytes % LINE_BYTES == 0;
}

/* How many earlier loops read what @load does. */
static unsigned
count_readings (const Prefetch *self, const Load *load)
{
  unsigned n = 0;
  for (unsigned i = 0; i < self->n_loads; i++) {
    const Load *other = &self->loads[i];
    n += other->loop != load->loop && other->n_rounds == load->n_rounds
         && emit_source_instr (self->e, other->load, 0)
                == emit_source_instr (self->e, load->load, 0)
         && other->index.constant == load->index.constant
         && other->index.grid == load->index.grid && other->index.round == load->index.round;
  }
  return n;
}

/* How many bytes after its own place @load asks for; 0: it does not. */
static int64_t
choose_distance (const Prefetch *self, const Load *load)
{
  const int64_t row = load->index.grid * load->n_bytes;
  const int64_t n_bytes = load->n_rounds * load->index.round * load->n_bytes;
  const bool goes_on = row == n_bytes && row != 0;
  if (!goes_on || count_readings (self, load) != 1)
    return 0;
  /* Two rows stay near: the one that is worked on and the next. */
  return row <= (int64_t) cpu_cache_bytes (2) / 4 ? row : 0;
}

/* ---- the code ---- */

static void
emit_prefetch (Emitter *e, LlvmRef load, int64_t distance)
{
  const Llvm *llvm = e->llvm;
  llvm->PositionBuilderBefore (e->builder, load);
  LlvmRef i8 = llvm->IntTypeInContext (e->context, 8), by = emit_int (e, 64, distance);
  LlvmRef address = llvm->BuildGEP2 (e->builder, i8, llvm->GetOperand (load, 0), &by, 1, "");
  LlvmRef arguments[]
      = { address, emit_int (e, 32, 0), emit_int (e, 32, 3), emit_int (e, 32, 1) };
  emit_intrinsic (e, "llvm.prefetch", llvm->PointerTypeInContext (e->context, 0), arguments, 4);
}

/* Looks at the loads directly inside of the loop that is open, in order. */
static void
look_at_loads (Prefetch *self)
{
  Emitter *e = self->e;
  uint32_t open[EMIT_MAX_DEPTH], depth = 0;
  for (uint32_t i = 0; i < e->linear->n_instrs; i++) {
    const TinyInstr *instr = &e->linear->instrs[i];
    self->indices[i] = find_index (self, instr);
    if (instr->op == TINY_INSTR_RANGE || instr->op == TINY_INSTR_IF)
      open[depth++] = i;
    else if (instr->op == TINY_INSTR_END || instr->op == TINY_INSTR_ENDIF)
      depth--;
    Load load;
    /* A loop inside of another is a contraction's: it reads from near, or what it reads is packed. */
    if (depth != 1 || e->linear->instrs[open[0]].op != TINY_INSTR_RANGE
        || self->n_loads == MAX_LOADS || !describe_load (self, instr, open[0], &load))
      continue;
    int64_t distance = choose_distance (self, &load);
    self->loads[self->n_loads++] = load;
    if (distance != 0)
      emit_prefetch (e, e->values[i], distance);
  }
}

bool
emit_prefetches (Emitter *e)
{
  const TinyLinear *linear = e->linear;
  const uint64_t near = cpu_cache_bytes (2);
  uint64_t n_bytes = 0;
  for (uint32_t i = 0; i < linear->n_params; i++)
    n_bytes += linear->params[i].n_elements * (dtype_bits (linear->params[i].dtype) / 8);
  if (near == 0 || n_bytes <= near || linear->grid[1] != 1 || linear->grid[2] != 1)
    return true;
  Prefetch self = { .e = e };
  self.indices = calloc (linear->n_instrs, sizeof *self.indices);
  if (self.indices == NULL) {
    e->lacks_memory = true;
    return false;
  }
  LlvmRef here = e->llvm->GetInsertBlock (e->builder);
  look_at_loads (&self);
  e->llvm->PositionBuilderAtEnd (e->builder, here);
  free (self.indices);
  return true;
}
