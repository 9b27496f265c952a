/* SPDX-License-Identifier: MIT
 *
 * cpu-llvm-stream.c: stores that go past the caches.
 *
 * A store to memory that is in no cache has its line read first and written back later; a
 * non-temporal one moves it once. That pays when the line would be gone before anybody reads it,
 * which is so when a kernel goes through more memory than the last cache holds. Machines report that of a whole
 * socket, which others share: no thread is believed to have more of it than most processors' threads do.
 *
 * Such a store has to fill whole lines, by itself or together with its neighbours in the same
 * block, else each part of a line goes to memory by itself. Its address must be a multiple of its
 * size: buffers and spans begin at lines (cpu-device.c sees to that), and of the index it is proven
 * here. */
#include <stdlib.h>

#include "cpu-llvm.h"

enum { LINE_BYTES = 64, MOST_LOG2 = 32, MOST_LAST_BYTES = 32 << 20 };

typedef struct {
  Emitter *e;
  bool may[CPU_MAX_PARAMS]; /* parameters whose stores may go past the caches */
  uint8_t *divisors;        /* of each instruction, log2 of a power of two that divides it */
} Streams;

/* ---- what an index is a multiple of ---- */

static unsigned
min_unsigned (unsigned x, unsigned y)
{
  return x < y ? x : y;
}

static unsigned
find_divisor (const Streams *self, const TinyInstr *instr)
{
  const Emitter *e = self->e;
  unsigned of[2] = { 0, 0 };
  if (dtype_is_float (instr->dtype) || dtype_bits (instr->dtype) < 32 || instr->lanes != 1)
    return 0;
  for (unsigned i = 0; i < instr->n_sources && i < 2; i++)
    of[i] = self->divisors[emit_source_instr (e, instr, i) - e->linear->instrs];
  switch (instr->op) {
  case TINY_INSTR_CONST:
    return instr->arg == 0
               ? MOST_LOG2
               : min_unsigned ((unsigned) __builtin_ctzll ((uint64_t) instr->arg), MOST_LOG2);
  case TINY_INSTR_ADD:
  case TINY_INSTR_SUB:
    return min_unsigned (of[0], of[1]);
  case TINY_INSTR_MUL:
    return min_unsigned (of[0] + of[1], MOST_LOG2);
  case TINY_INSTR_CAST:
    return dtype_is_float (emit_source_instr (e, instr, 0)->dtype) ? 0 : of[0];
  default:
    return 0;
  }
}

/* ---- which parameters ---- */

static bool
find_params (Streams *self)
{
  const TinyLinear *linear = self->e->linear;
  const uint64_t near = cpu_cache_bytes (2), said = cpu_cache_bytes (3);
  const uint64_t last = said < MOST_LAST_BYTES ? said : MOST_LAST_BYTES;
  uint64_t n_bytes[CPU_MAX_PARAMS], total = 0;
  bool found = false;
  for (uint32_t i = 0; i < linear->n_params; i++) {
    n_bytes[i] = linear->params[i].n_elements * (dtype_bits (linear->params[i].dtype) / 8);
    total += n_bytes[i];
  }
  if (self->e->arch->kind != CPU_ARCH_X86_64 || last == 0 || total <= last)
    return false;
  for (uint32_t i = 0; i < linear->n_params; i++) {
    /* What the kernel reads itself is wanted in a cache; what is small may be soon. */
    self->may[i] = linear->params[i].flags == TINY_PARAM_WRITE && n_bytes[i] > near;
    found = found || self->may[i];
  }
  return found;
}

/* ---- which stores ---- */

/* The bytes that @instr stores if it is a store without a gate to one of the parameters, else 0. */
static unsigned
get_store_bytes (const Streams *self, const TinyInstr *instr)
{
  if (instr->op != TINY_INSTR_STORE || instr->n_sources != 3)
    return 0;
  const TinyInstr *buffer = emit_source_instr (self->e, instr, 0);
  const TinyInstr *value = emit_source_instr (self->e, instr, 2);
  unsigned lanes = instr->lanes > value->lanes ? instr->lanes : value->lanes;
  return buffer->op == TINY_INSTR_PARAM && self->may[buffer->arg]
             ? lanes * (dtype_bits (buffer->dtype) / 8)
             : 0;
}

static bool
ends_block (const TinyInstr *instr)
{
  return instr->op == TINY_INSTR_RANGE || instr->op == TINY_INSTR_END
         || instr->op == TINY_INSTR_IF || instr->op == TINY_INSTR_ENDIF;
}

/* Whether the stores of the same width around @instr fill its line with it. */
static bool
fills_line (const Streams *self, const TinyInstr *instr, unsigned n_bytes)
{
  const Emitter *e = self->e;
  const TinyInstr *first = instr, *end = e->linear->instrs + e->linear->n_instrs;
  const TinyInstr *buffer = emit_source_instr (e, instr, 0);
  const int64_t element = dtype_bits (buffer->dtype) / 8, n_parts = LINE_BYTES / n_bytes;
  int64_t at, other_at;
  const TinyInstr *base = emit_split_index (e, emit_source_instr (e, instr, 1), &at);
  uint64_t divisor = UINT64_C (1) << self->divisors[base - e->linear->instrs];
  if (divisor * (uint64_t) element < LINE_BYTES)
    return false;
  const int64_t line = at * element & -LINE_BYTES;
  uint64_t filled = 0;
  while (first > e->linear->instrs && !ends_block (first - 1))
    first--;
  for (const TinyInstr *other = first; other < end && !ends_block (other); other++) {
    if (get_store_bytes (self, other) != n_bytes || emit_source_instr (e, other, 0) != buffer
        || emit_split_index (e, emit_source_instr (e, other, 1), &other_at) != base)
      continue;
    int64_t from = other_at * element - line;
    if (from >= 0 && from < LINE_BYTES && from % n_bytes == 0)
      filled |= UINT64_C (1) << (from / n_bytes);
  }
  return filled == (UINT64_C (1) << n_parts) - 1 && (at * element - line) % n_bytes == 0;
}

static void
stream_store (Emitter *e, LlvmRef store, unsigned n_bytes)
{
  const Llvm *llvm = e->llvm;
  LlvmRef one = llvm->ValueAsMetadata (emit_int (e, 32, 1));
  LlvmRef node = llvm->MDNodeInContext2 (e->context, &one, 1);
  llvm->SetAlignment (store, n_bytes);
  llvm->SetMetadata (store, llvm->GetMDKindIDInContext (e->context, "nontemporal", 11),
                     llvm->MetadataAsValue (e->context, node));
}

bool
emit_streams (Emitter *e)
{
  const TinyLinear *linear = e->linear;
  Streams self = { .e = e };
  bool found = false;
  if (!find_params (&self))
    return false;
  self.divisors = calloc (linear->n_instrs, sizeof *self.divisors);
  e->lacks_memory |= self.divisors == NULL;
  for (uint32_t i = 0; i < linear->n_instrs && self.divisors != NULL; i++)
    self.divisors[i] = (uint8_t) find_divisor (&self, &linear->instrs[i]);
  for (uint32_t i = 0; i < linear->n_instrs && self.divisors != NULL; i++) {
    unsigned n_bytes = get_store_bytes (&self, &linear->instrs[i]);
    if (n_bytes < 16 || n_bytes > LINE_BYTES || (n_bytes & (n_bytes - 1)) != 0
        || !fills_line (&self, &linear->instrs[i], n_bytes))
      continue;
    stream_store (e, e->values[i], n_bytes);
    found = true;
  }
  free (self.divisors);
  return found;
}
