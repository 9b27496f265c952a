/* SPDX-License-Identifier: MIT
 *
 * cpu-llvm-outside.c: masked accesses that must not go near memory where no lane is on.
 *
 * A masked access without a lane that is on touches nothing, but the processor looks its page up all the
 * same. A page that is not there raises no fault, it costs a microcode assist: about 500 cycles on Zen 5.
 * A roll, a cat or a pad makes such accesses over the length of a whole array, and there being a page
 * depends on where the buffer lies. So an access that may lie outside of its buffer goes to the scratch
 * place when no lane is on. That costs a test and a conditional move each time, up to half of the time of
 * a copy within the nearest cache; an access that stays near its buffer is left alone. */
#include "cpu-llvm.h"

enum {
  /* How deep an index is looked into. */
  MAX_TERMS = 12,
  /* Bytes outside on a side that are left alone: a page, … */
  NEAR_BYTES = 4096,
  /* … and no more of a large buffer than this share: an assist takes as long as so many accesses. */
  NEAR_SHARE = 128,
  /* The C library gives a large buffer a mapping of its own; a smaller one has neighbours. */
  LARGE_BYTES = 128 * 1024
};

/* The least and the most that an integer may be. */
typedef struct {
  int64_t least, most;
} Bounds;

static Bounds
multiply (Bounds x, Bounds y)
{
  const int64_t corners[4]
      = { x.least * y.least, x.least * y.most, x.most * y.least, x.most * y.most };
  Bounds product = { corners[0], corners[0] };
  for (int i = 1; i < 4; i++) {
    product.least = corners[i] < product.least ? corners[i] : product.least;
    product.most = corners[i] > product.most ? corners[i] : product.most;
  }
  return product;
}

static bool
combine (const TinyInstr *at, Bounds x, Bounds y, Bounds *out)
{
  const bool by_constant = y.least == y.most && y.least > 0;
  switch (at->op) {
  case TINY_INSTR_ADD:
    *out = (Bounds){ x.least + y.least, x.most + y.most };
    return true;
  case TINY_INSTR_SUB:
    *out = (Bounds){ x.least - y.most, x.most - y.least };
    return true;
  case TINY_INSTR_MUL:
    *out = multiply (x, y);
    return true;
  case TINY_INSTR_MAX:
    *out = (Bounds){ x.least > y.least ? x.least : y.least, x.most > y.most ? x.most : y.most };
    return true;
  case TINY_INSTR_WHERE:
    *out = (Bounds){ x.least < y.least ? x.least : y.least, x.most > y.most ? x.most : y.most };
    return true;
  case TINY_INSTR_IDIV:
    if (by_constant)
      *out = (Bounds){ x.least / y.least, x.most / y.least };
    return by_constant;
  case TINY_INSTR_MOD:
    if (by_constant)
      *out = (Bounds){ x.least < 0 ? 1 - y.least : 0, x.most > 0 ? y.least - 1 : 0 };
    return by_constant;
  default:
    return false;
  }
}

/* False where the bounds are not known, or so far apart that they might wrap. */
static bool
find_bounds (const Emitter *e, const TinyInstr *at, int depth, Bounds *out)
{
  const int64_t far = dtype_bits (at->dtype) == 64 ? INT64_C (1) << 31 : INT64_C (1) << 30;
  const unsigned first = at->op == TINY_INSTR_WHERE;
  Bounds x, y;
  if (depth == MAX_TERMS || at->lanes != 1 || dtype_is_float (at->dtype)
      || dtype_bits (at->dtype) < 32)
    return false;
  if (at->op == TINY_INSTR_CONST)
    *out = (Bounds){ at->arg, at->arg };
  else if (at->op == TINY_INSTR_GRID)
    *out = (Bounds){ 0, (int64_t) e->linear->grid[at->arg] - 1 };
  else if (at->n_sources <= first
           || !find_bounds (e, emit_source_instr (e, at, first), depth + 1, &x))
    return false;
  else if (at->op == TINY_INSTR_RANGE)
    *out = (Bounds){ 0, x.most - 1 };
  else if (at->op == TINY_INSTR_CAST)
    *out = x;
  else if (at->n_sources != first + 2
           || !find_bounds (e, emit_source_instr (e, at, first + 1), depth + 1, &y)
           || !combine (at, x, y, out))
    return false;
  return out->least > (dtype_is_signed (at->dtype) ? -far : -1) && out->most < far;
}

bool
emit_may_leave (const Emitter *e, const TinyInstr *access, unsigned lanes)
{
  const TinyInstr *buffer = emit_source_instr (e, access, 0);
  Bounds at;
  /* LLVM makes branches of a masked access for which there is no instruction. */
  const uint64_t wanted = dtype_bits (buffer->dtype) < 32 ? CPU_BIT (AVX512BW) : CPU_BIT (AVX);
  if (e->arch->kind != CPU_ARCH_X86_64 || (e->arch->features & wanted) == 0
      || buffer->op != TINY_INSTR_PARAM)
    return false;
  if (!find_bounds (e, emit_source_instr (e, access, 1), 0, &at))
    return true;
  const int64_t n_bytes = dtype_bits (buffer->dtype) / 8;
  const int64_t size = (int64_t) e->linear->params[buffer->arg].n_elements * n_bytes;
  const int64_t share = size / NEAR_SHARE;
  const int64_t near = size < LARGE_BYTES || share > NEAR_BYTES ? NEAR_BYTES : share;
  return -at.least * n_bytes > near || (at.most + lanes) * n_bytes > size + near;
}
