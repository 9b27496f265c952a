/* SPDX-License-Identifier: MIT
 *
 * rewrite.c: a linear program becomes another one, instruction by instruction. */
#include "rewrite.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 12, MAX_SOURCES = 256 };

/* Tests have memory. */
static void *
grow (void *memory, size_t n, size_t size)
{
  memory = realloc (memory, (n + 1) * size);
  if (memory == NULL)
    abort ();
  return memory;
}

void
rewrite_run (Rewrite *self, const TinyLinear *in, RewriteRule rule, TinyLinear *out)
{
  *self = (Rewrite){ .in = in };
  self->place = grow (NULL, in->n_instrs, sizeof *self->place);
  self->params = grow (NULL, in->n_params, sizeof *self->params);
  if (in->n_params > 0)
    memcpy (self->params, in->params, in->n_params * sizeof *self->params);
  for (self->at = 0; self->at < in->n_instrs; self->at++) {
    const TinyInstr *instr = &in->instrs[self->at];
    Value s[MAX_SOURCES] = { 0 };
    for (unsigned i = 0; i < instr->n_sources && i < MAX_SOURCES; i++)
      s[i] = self->place[in->sources[instr->sources + i]];
    const Value value = rule (self, instr, s);
    self->has_changed |= value != KEEP;
    self->place[self->at] = value == KEEP ? same (self, instr, s) : value;
  }
  *out = *in;
  out->instrs = self->instrs;
  out->sources = self->sources;
  out->params = self->params;
  out->n_instrs = self->n_instrs;
  out->n_sources = self->n_sources;
}

void
rewrite_end (Rewrite *self)
{
  free (self->instrs);
  free (self->sources);
  free (self->params);
  free (self->place);
}

/* ---- to look ---- */
const TinyInstr *
at (const Rewrite *self, Value value)
{
  return &self->instrs[value];
}

int
is_of (
    const Rewrite *self, const TinyInstr *instr, const Value *s, unsigned op, uint32_t dtypes)
{
  if (instr->op != op || instr->n_sources == 0)
    return 0;
  return (TINY_DTYPE_BIT (at (self, s[op == TINY_INSTR_WHERE])->dtype) & dtypes) != 0;
}

static int
comes_from_memory (const Rewrite *self, Value value, unsigned depth)
{
  const TinyInstr *instr = at (self, value);
  if (instr->op == TINY_INSTR_LOAD)
    return 1;
  int found = 0;
  for (unsigned i = 0; i < instr->n_sources && depth < MAX_DEPTH && !found; i++)
    found = comes_from_memory (self, self->sources[instr->sources + i], depth + 1);
  return found;
}

int
is_data (
    const Rewrite *self, const TinyInstr *instr, const Value *s, unsigned op, uint32_t dtypes)
{
  if (!is_of (self, instr, s, op, dtypes))
    return 0;
  int found = 0;
  for (unsigned i = 0; i < instr->n_sources && !found; i++)
    found = comes_from_memory (self, s[i], 0);
  return found;
}

int
is_access (const Rewrite *self, const TinyInstr *instr, const Value *s)
{
  return (instr->op == TINY_INSTR_LOAD || instr->op == TINY_INSTR_STORE)
         && at (self, s[0])->op != TINY_INSTR_REGISTER;
}

int
is_store (const Rewrite *self, const TinyInstr *instr, const Value *s, uint32_t dtypes)
{
  return instr->op == TINY_INSTR_STORE && at (self, s[0])->op == TINY_INSTR_PARAM
         && (TINY_DTYPE_BIT (at (self, s[2])->dtype) & dtypes) != 0;
}

int
is_of_memory (
    const Rewrite *self, const TinyInstr *instr, const Value *s, unsigned op, unsigned memory)
{
  return instr->op == op && at (self, s[0])->op == memory;
}

unsigned
bytes_of_dtype (unsigned dtype)
{
  const uint32_t one = BIT (BOOL) | BIT (I8) | BIT (U8) | BIT (F8E4M3) | BIT (F8E5M2),
                 two = BIT (I16) | BIT (U16) | BIT (F16) | BIT (BF16),
                 eight = BIT (I64) | BIT (U64) | BIT (F64), bit = TINY_DTYPE_BIT (dtype);
  return (one & bit) ? 1 : (two & bit) ? 2 : (eight & bit) ? 8 : 4;
}

/* ---- to make ---- */
Value
emit (Rewrite *self,
      unsigned op,
      unsigned dtype,
      unsigned lanes,
      int64_t arg,
      unsigned n,
      const Value *s)
{
  Value copy[MAX_SOURCES]; /* @s may lie in what grows */
  if (n > 0)
    memcpy (copy, s, n * sizeof *s);
  if (self->n_instrs == self->max_instrs) {
    self->max_instrs = self->max_instrs * 2 + 64;
    self->instrs = grow (self->instrs, self->max_instrs, sizeof *self->instrs);
  }
  if (self->n_sources + n > self->max_sources) {
    self->max_sources = self->max_sources * 2 + MAX_SOURCES;
    self->sources = grow (self->sources, self->max_sources, sizeof *self->sources);
  }
  self->instrs[self->n_instrs] = (TinyInstr){ .op = (uint16_t) op,
                                              .dtype = (uint8_t) dtype,
                                              .lanes = (uint16_t) lanes,
                                              .n_sources = (uint16_t) n,
                                              .sources = self->n_sources,
                                              .arg = arg };
  if (n > 0)
    memcpy (self->sources + self->n_sources, copy, n * sizeof *copy);
  self->n_sources += n;
  return self->n_instrs++;
}

Value
same (Rewrite *self, const TinyInstr *instr, const Value *s)
{
  return emit (self, instr->op, instr->dtype, instr->lanes, instr->arg, instr->n_sources, s);
}

Value
with (Rewrite *self, const TinyInstr *instr, const Value *s, unsigned i, Value value)
{
  Value copy[MAX_SOURCES];
  memcpy (copy, s, instr->n_sources * sizeof *s);
  copy[i] = value;
  return same (self, instr, copy);
}

Value
op1 (Rewrite *self, unsigned op, Value a)
{
  return emit (self, op, at (self, a)->dtype, at (self, a)->lanes, 0, 1, &a);
}

Value
op2 (Rewrite *self, unsigned op, Value a, Value b)
{
  const int compares
      = op == TINY_INSTR_CMPLT || op == TINY_INSTR_CMPNE || op == TINY_INSTR_CMPEQ;
  const unsigned dtype = compares ? TINY_DTYPE_BOOL : at (self, a)->dtype;
  return emit (self, op, dtype, at (self, a)->lanes, 0, 2, (const Value[]){ a, b });
}

Value
choose (Rewrite *self, Value condition, Value a, Value b)
{
  return emit (self, TINY_INSTR_WHERE, at (self, a)->dtype, at (self, a)->lanes, 0, 3,
               (const Value[]){ condition, a, b });
}

Value
cast (Rewrite *self, unsigned dtype, Value a)
{
  return emit (self, TINY_INSTR_CAST, dtype, at (self, a)->lanes, 0, 1, &a);
}

Value
bits (Rewrite *self, unsigned dtype, Value a)
{
  return emit (self, TINY_INSTR_BITCAST, dtype, at (self, a)->lanes, 0, 1, &a);
}

Value
integer (Rewrite *self, Value like, int64_t x)
{
  return emit (self, TINY_INSTR_CONST, at (self, like)->dtype, at (self, like)->lanes, x, 0,
               NULL);
}

Value
number (Rewrite *self, Value like, double x)
{
  int64_t arg = (int64_t) x;
  if ((FLOATS & TINY_DTYPE_BIT (at (self, like)->dtype)) != 0)
    memcpy (&arg, &x, sizeof arg);
  return integer (self, like, arg);
}

Value
is_within (Rewrite *self, Value a, double most)
{
  const Value below = op2 (self, TINY_INSTR_CMPLT, a, number (self, a, most));
  return op2 (self, TINY_INSTR_AND, below,
              op2 (self, TINY_INSTR_CMPLT, number (self, a, -most), a));
}

Value
is_nan (Rewrite *self, Value a)
{
  return op2 (self, TINY_INSTR_CMPNE, a, a);
}

Value
is_not (Rewrite *self, Value a)
{
  return op2 (self, TINY_INSTR_XOR, a, integer (self, a, 1));
}

Value
is_zero (Rewrite *self, Value a)
{
  return is_not (self, op2 (self, TINY_INSTR_CMPNE, a, number (self, a, 0)));
}

Value
without_bits (Rewrite *self, Value a, uint32_t mask)
{
  const Value all = bits (self, TINY_DTYPE_U32, a);
  return bits (
      self, TINY_DTYPE_F32,
      op2 (self, TINY_INSTR_AND, all, integer (self, all, (int64_t) (uint32_t) ~mask)));
}

Value
spread (Rewrite *self, Value scalar, unsigned lanes)
{
  return at (self, scalar)->lanes == lanes
             ? scalar
             : emit (self, TINY_INSTR_VECTOR, at (self, scalar)->dtype, lanes, 0, 1, &scalar);
}

Value
lane (Rewrite *self, Value vector, unsigned i)
{
  const TinyInstr of = *at (self, vector);
  return of.lanes == 1 ? vector : emit (self, TINY_INSTR_EXTRACT, of.dtype, 1, i, 1, &vector);
}
