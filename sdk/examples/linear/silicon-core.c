/* SPDX-License-Identifier: MIT
 *
 * silicon-core.c: a core: executes the instructions of tiny-sample-isa.h, for all lanes of a register at a time. */
#include "silicon-core.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef union {
  int32_t i[SAMPLE_LANES];
  uint32_t u[SAMPLE_LANES];
  float f[SAMPLE_LANES];
} Register;

typedef struct {
  Register registers[SAMPLE_REGISTERS];
  Register *stash;
  uint32_t mask[SAMPLE_DEPTH + 1][SAMPLE_LANES]; /* 0 or 1; the last is in force */
  uint32_t depth;
  uint32_t local[SAMPLE_LOCAL_WORDS];
  uint32_t grid[3];
  const RingCommand *command;
  char *fault; /* of 256 bytes */
} Core;

static bool
fail (Core *core, uint32_t at, const char *what, unsigned lane, int64_t index)
{
  snprintf (core->fault, 256,
            "%s, index %lld, by lane %u at instruction %u of group (%u, %u, %u)", what,
            (long long) index, lane, at, core->grid[0], core->grid[1], core->grid[2]);
  return false;
}

/* LOAD and STORE. A lane whose gate is 0 touches nothing. */
static bool
access_buffer (Core *core, const SampleInstr *in, uint32_t at)
{
  const bool loads = in->op == SAMPLE_LOAD;
  const uint32_t *mask = core->mask[core->depth];
  const Register *index = &core->registers[in->a],
                 *gate = &core->registers[loads ? in->b : in->c];
  const RingCommand *command = core->command;
  const bool is_there = in->p < command->n_buffers;
  uint32_t *memory = is_there ? (uint32_t *) (uintptr_t) command->buffers[in->p] : NULL;
  const int64_t n = is_there ? (int64_t) (command->sizes[in->p] / 4) : 0;
  for (unsigned l = 0; l < SAMPLE_LANES; l++) {
    if (!mask[l])
      continue;
    if (!gate->u[l]) {
      if (loads)
        core->registers[in->d].u[l] = core->registers[in->c].u[l];
      continue;
    }
    if (index->i[l] < 0 || index->i[l] >= n)
      return fail (core, at, loads ? "load outside a buffer" : "store outside a buffer", l,
                   index->i[l]);
    if (loads)
      core->registers[in->d].u[l] = memory[index->i[l]];
    else
      memory[index->i[l]] = core->registers[in->b].u[l];
  }
  return true;
}

static bool
access_local (Core *core, const SampleInstr *in, uint32_t at)
{
  const bool loads = in->op == SAMPLE_LOAD_LOCAL;
  const uint32_t *mask = core->mask[core->depth];
  const Register *gate = &core->registers[loads ? in->b : in->c];
  for (unsigned l = 0; l < SAMPLE_LANES; l++) {
    const int64_t index = (int64_t) in->p + core->registers[in->a].i[l];
    if (mask[l] && gate->u[l] && (index < in->p || index >= SAMPLE_LOCAL_WORDS))
      return fail (core, at, "access outside local memory", l, index);
    if (mask[l] && gate->u[l] && !loads)
      core->local[index] = core->registers[in->b].u[l];
    else if (mask[l] && loads)
      core->registers[in->d].u[l]
          = gate->u[l] ? core->local[index] : core->registers[in->c].u[l];
  }
  return true;
}

static int32_t
to_i32 (float x)
{
  return x >= 2147483648.0f   ? INT32_MAX
         : x > -2147483648.0f ? (int32_t) x
         : x == x             ? INT32_MIN
                              : 0;
}

static uint32_t
to_u32 (float x)
{
  return x >= 4294967296.0f ? UINT32_MAX : x >= 1 ? (uint32_t) x : (uint32_t) to_i32 (x);
}

static uint32_t
divide (uint32_t a, uint32_t b, bool is_signed, bool wants_rest)
{
  const int32_t x = (int32_t) a, y = (int32_t) b;
  if (b == 0)
    return wants_rest ? a : 0;
  if (!is_signed)
    return wants_rest ? a % b : a / b;
  if (y == -1)
    return wants_rest ? 0 : 0u - a;
  return (uint32_t) (wants_rest ? x % y : x / y);
}

#define EACH(field, value)                                                                     \
  for (unsigned l = 0; l < SAMPLE_LANES; l++)                                                  \
  d->field[l] = mask[l] ? (value) : d->field[l]
#define BY_TYPE(field, of_float, of_signed, of_word)                                           \
  do {                                                                                         \
    if (in->type == SAMPLE_F32)                                                                \
      EACH (field, of_float);                                                                  \
    else if (in->type == SAMPLE_I32)                                                           \
      EACH (field##_INT, of_signed);                                                           \
    else                                                                                       \
      EACH (field##_INT, of_word);                                                             \
  } while (0)
#define f_INT u
#define u_INT u
#define F(x)  x->f[l]
#define I(x)  x->i[l]
#define U(x)  x->u[l]

static void
convert (Register *d, const Register *a, const uint32_t *mask, const SampleInstr *in)
{
  const bool from_float = in->type == SAMPLE_F32, to_float = in->p == SAMPLE_F32;
  if (in->p == SAMPLE_BOOL)
    BY_TYPE (u, F (a) != 0, U (a) != 0, U (a) != 0);
  else if (from_float == to_float)
    EACH (u, U (a));
  else if (to_float && in->type == SAMPLE_I32)
    EACH (f, (float) I (a));
  else if (to_float)
    EACH (f, (float) U (a));
  else if (in->p == SAMPLE_I32)
    EACH (i, to_i32 (F (a)));
  else
    EACH (u, to_u32 (F (a)));
}

/* What compares and what works on bits, lane by lane. */
static void
compute_bits (Core *core, const SampleInstr *in)
{
  const uint32_t *mask = core->mask[core->depth];
  Register *d = &core->registers[in->d];
  const Register *a = &core->registers[in->a], *b = &core->registers[in->b],
                 *c = &core->registers[in->c];
  switch (in->op) {
  case SAMPLE_LESS:
    BY_TYPE (u, F (a) < F (b), I (a) < I (b), U (a) < U (b));
    break;
  case SAMPLE_DIFFERS:
    BY_TYPE (u, F (a) != F (b), U (a) != U (b), U (a) != U (b));
    break;
  case SAMPLE_EQUALS:
    BY_TYPE (u, F (a) == F (b), U (a) == U (b), U (a) == U (b));
    break;
  case SAMPLE_AND:
    EACH (u, U (a) & U (b));
    break;
  case SAMPLE_OR:
    EACH (u, U (a) | U (b));
    break;
  case SAMPLE_XOR:
    EACH (u, U (a) ^ U (b));
    break;
  case SAMPLE_SHL:
    EACH (u, U (a) << (U (b) & 31));
    break;
  case SAMPLE_SHR:
    BY_TYPE (u, 0, (uint32_t) (I (a) >> (U (b) & 31)), U (a) >> (U (b) & 31));
    break;
  case SAMPLE_SELECT:
    EACH (u, U (a) ? U (b) : U (c));
    break;
  default:
    break;
  }
}

/* What computes numbers, lane by lane. */
static void
compute (Core *core, const SampleInstr *in)
{
  const uint32_t *mask = core->mask[core->depth];
  Register *d = &core->registers[in->d];
  const Register *a = &core->registers[in->a], *b = &core->registers[in->b],
                 *c = &core->registers[in->c];
  switch (in->op) {
  case SAMPLE_INC:
    EACH (u, U (a) + 1);
    break;
  case SAMPLE_MOVE:
    EACH (u, U (a));
    break;
  case SAMPLE_CAST:
    convert (d, a, mask, in);
    break;
  case SAMPLE_NEG:
    BY_TYPE (f, -F (a), 0u - U (a), 0u - U (a));
    break;
  case SAMPLE_RECIP:
    EACH (f, 1 / F (a));
    break;
  case SAMPLE_SQRT:
    EACH (f, sqrtf (F (a)));
    break;
  case SAMPLE_TRUNC:
    EACH (f, truncf (F (a)));
    break;
  case SAMPLE_ADD:
    BY_TYPE (f, F (a) + F (b), U (a) + U (b), U (a) + U (b));
    break;
  case SAMPLE_SUB:
    BY_TYPE (f, F (a) - F (b), U (a) - U (b), U (a) - U (b));
    break;
  case SAMPLE_MUL:
    BY_TYPE (f, F (a) * F (b), U (a) * U (b), U (a) * U (b));
    break;
  case SAMPLE_DIV:
    BY_TYPE (f, F (a) / F (b), divide (U (a), U (b), true, false),
             divide (U (a), U (b), false, false));
    break;
  case SAMPLE_MOD:
    EACH (u, divide (U (a), U (b), in->type == SAMPLE_I32, true));
    break;
  case SAMPLE_MAX: /* of a NaN the other */
    BY_TYPE (f, F (a) > F (b) || F (b) != F (b) ? F (a) : F (b), I (a) > I (b) ? U (a) : U (b),
             U (a) > U (b) ? U (a) : U (b));
    break;
  case SAMPLE_MULACC:
    EACH (f, fmaf (F (a), F (b), F (c)));
    break;
  default:
    compute_bits (core, in);
  }
}

/* MASK: FALSE where no lane is left. */
static bool
narrow (Core *core, const Register *condition)
{
  uint32_t *mask = core->mask[core->depth], any = 0;
  for (unsigned l = 0; l < SAMPLE_LANES; l++)
    any |= mask[l] &= condition->u[l] != 0;
  return any != 0;
}

/* What is known without computing. */
static void
fetch (Core *core, const SampleInstr *in)
{
  const uint32_t *mask = core->mask[core->depth];
  Register *d = &core->registers[in->d];
  if (in->op == SAMPLE_CONST)
    EACH (u, in->n);
  else if (in->op == SAMPLE_GRID)
    EACH (u, core->grid[in->n]);
  else if (in->op == SAMPLE_VARIABLE)
    EACH (u, (uint32_t) core->command->variables[in->n]);
  else if (in->op == SAMPLE_FETCH)
    EACH (u, core->stash[in->n].u[l]);
  else if (in->op == SAMPLE_GROUP) {
    const uint32_t *group = core->command->group;
    const uint32_t below = in->n == 0 ? 1 : in->n == 1 ? group[0] : group[0] * group[1];
    EACH (u, l / below % group[in->n]);
  }
}

static bool
run_group (Core *core)
{
  const SampleInstr *code = (const SampleInstr *) (uintptr_t) core->command->code;
  const uint32_t *group = core->command->group, n_items = group[0] * group[1] * group[2];
  core->depth = 0;
  for (unsigned l = 0; l < SAMPLE_LANES; l++) {
    core->mask[0][l] = l < n_items;
    core->registers[0].u[l] = 1;
  }
  memset (core->local, 0xff, sizeof core->local); /* undefined: a NaN or -1 */
  for (uint32_t at = 0; at < core->command->n_instrs; at++) {
    const SampleInstr *in = &code[at];
    switch (in->op) {
    case SAMPLE_END:
      return true;
    case SAMPLE_PUSH:
      if (core->depth == SAMPLE_DEPTH)
        return fail (core, at, "too many masks", 0, 0);
      memcpy (core->mask[core->depth + 1], core->mask[core->depth], sizeof core->mask[0]);
      core->depth++;
      break;
    case SAMPLE_POP:
      core->depth--;
      break;
    case SAMPLE_MASK:
      if (!narrow (core, &core->registers[in->a]))
        at = in->n - 1;
      break;
    case SAMPLE_JUMP:
      at = in->n - 1;
      break;
    case SAMPLE_LOAD:
    case SAMPLE_STORE:
      if (!access_buffer (core, in, at))
        return false;
      break;
    case SAMPLE_LOAD_LOCAL:
    case SAMPLE_STORE_LOCAL:
      if (!access_local (core, in, at))
        return false;
      break;
    case SAMPLE_STASH: {
      const uint32_t *mask = core->mask[core->depth];
      Register *d = &core->stash[in->n];
      EACH (u, core->registers[in->a].u[l]);
      break;
    }
    case SAMPLE_CONST:
    case SAMPLE_GRID:
    case SAMPLE_GROUP:
    case SAMPLE_VARIABLE:
    case SAMPLE_FETCH:
      fetch (core, in);
      break;
    default:
      compute (core, in);
    }
  }
  return true;
}

bool
core_run (const RingCommand *command, char *fault)
{
  const uint32_t *grid = command->grid;
  Core *core = calloc (1, sizeof *core);
  Register *stash = calloc (command->n_stash + 1, sizeof *stash);
  bool good = core != NULL && stash != NULL;
  if (good)
    *core = (Core){ .stash = stash, .command = command, .fault = fault };
  else
    snprintf (fault, 256, "no memory for a core");
  for (uint32_t z = 0; good && z < grid[2]; z++)
    for (uint32_t y = 0; good && y < grid[1]; y++)
      for (uint32_t x = 0; good && x < grid[0]; x++) {
        memcpy (core->grid, (uint32_t[]){ x, y, z }, sizeof core->grid);
        good = run_group (core);
      }
  free (stash);
  free (core);
  return good;
}
