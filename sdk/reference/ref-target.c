/* SPDX-License-Identifier: MIT
 *
 * ref-target.c: what REF says of itself, as a list of words after DEV=REF::.
 *
 * By itself it has every op, no vector registers and no work-groups, so that the core keeps kernels
 * simple. The words make it look like other hardware to the core: "groups,items=16,local=2048" has
 * work-groups of up to 16 items and 2 KiB of LOCAL memory, "words,params=8" nothing but dtypes of 32
 * bits in memory and 8 buffers in a program. The interpreter is the same; compile() refuses what the
 * words took away. */
#include "ref.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP_ITEMS = 256, GROUP_LOCAL_BYTES = 16384, LANE_BITS = 32 };

static void
set_nothing (TinyTarget *target, uint32_t number)
{
}

static void
set_items (TinyTarget *target, uint32_t number)
{
  target->flags |= TINY_TARGET_GROUPS;
  target->max_group_total = number;
  for (int i = 0; i < 3; i++)
    target->max_group[i] = number;
}

static void
set_groups (TinyTarget *target, uint32_t number)
{
  set_items (target, GROUP_ITEMS);
  target->local_bytes = GROUP_LOCAL_BYTES;
}

static void
set_local (TinyTarget *target, uint32_t number)
{
  target->local_bytes = number;
}

static void
set_grid (TinyTarget *target, uint32_t number)
{
  for (int i = 0; i < 3; i++)
    target->max_grid[i] = number;
}

static void
set_lanes (TinyTarget *target, uint32_t number)
{
  target->max_lanes = number;
  target->vector_bits = number > 1 ? number * LANE_BITS : 0;
}

static void
set_registers (TinyTarget *target, uint32_t number)
{
  target->n_vector_registers = number;
}

static void
set_params (TinyTarget *target, uint32_t number)
{
  target->max_params = number;
}

/* Leaves dtypes of @storage, and bools that are computed. */
static void
keep (TinyTarget *target, uint32_t storage)
{
  target->dtypes_storage = storage;
  target->dtypes_compute = storage | BOOLS;
  for (unsigned dtype = TINY_DTYPE_BOOL; dtype <= TINY_DTYPE_F64; dtype++)
    if ((target->dtypes_compute & TINY_DTYPE_BIT (dtype)) == 0)
      target->ops[dtype] = 0;
}

/* Leaves dtypes of 32 bits, and bools that are not stored. */
static void
set_words (TinyTarget *target, uint32_t number)
{
  target->index_dtype = TINY_DTYPE_I32;
  keep (target, TINY_DTYPE_BIT (TINY_DTYPE_I32) | TINY_DTYPE_BIT (TINY_DTYPE_U32)
                    | TINY_DTYPE_BIT (TINY_DTYPE_F32));
  target->ops[TINY_DTYPE_BOOL]
      &= ~(TINY_INSTR_BIT (TINY_INSTR_LOAD) | TINY_INSTR_BIT (TINY_INSTR_STORE));
}

/* Leaves what C has: integers of all sizes, f32 and f64, no smaller floats. */
static void
set_c (TinyTarget *target, uint32_t number)
{
  keep (target, ALL
                    & ~(TINY_DTYPE_BIT (TINY_DTYPE_F8E4M3) | TINY_DTYPE_BIT (TINY_DTYPE_F8E5M2)
                        | TINY_DTYPE_BIT (TINY_DTYPE_F16) | TINY_DTYPE_BIT (TINY_DTYPE_BF16)));
}

/* f16 stored and computed with, beside "words". */
static void
set_f16 (TinyTarget *target, uint32_t number)
{
  target->dtypes_storage |= TINY_DTYPE_BIT (TINY_DTYPE_F16);
  target->dtypes_compute |= TINY_DTYPE_BIT (TINY_DTYPE_F16);
  target->ops[TINY_DTYPE_F16]
      = target->ops[TINY_DTYPE_F32] & ~TINY_INSTR_BIT (TINY_INSTR_BITCAST);
}

/* The ops that every target has, and division and square root, which others only come near. */
static void
set_least (TinyTarget *target, uint32_t number)
{
  const uint64_t least = TINY_INSTR_BIT (TINY_INSTR_LOAD) | TINY_INSTR_BIT (TINY_INSTR_STORE)
                         | TINY_INSTR_BIT (TINY_INSTR_CAST)
                         | TINY_INSTR_BIT (TINY_INSTR_BITCAST) | TINY_INSTR_BIT (TINY_INSTR_ADD)
                         | TINY_INSTR_BIT (TINY_INSTR_MUL) | TINY_INSTR_BIT (TINY_INSTR_CMPLT)
                         | TINY_INSTR_BIT (TINY_INSTR_AND) | TINY_INSTR_BIT (TINY_INSTR_OR)
                         | TINY_INSTR_BIT (TINY_INSTR_XOR) | TINY_INSTR_BIT (TINY_INSTR_SHL)
                         | TINY_INSTR_BIT (TINY_INSTR_SHR) | TINY_INSTR_BIT (TINY_INSTR_WHERE)
                         | TINY_INSTR_BIT (TINY_INSTR_FDIV) | TINY_INSTR_BIT (TINY_INSTR_SQRT);
  for (unsigned dtype = TINY_DTYPE_BOOL; dtype <= TINY_DTYPE_F64; dtype++)
    target->ops[dtype] &= least;
}

/* After "groups": those of several work-items, too. */
static void
set_units (TinyTarget *target, uint32_t number)
{
  ref_set_units (target);
}

/* The words, and the largest number that each takes; 0: it takes none. */
static const struct {
  const char *name;
  void (*set) (TinyTarget *target, uint32_t number);
  uint32_t most;
} words[] = {
  { "ref", set_nothing, 0 },
  { "groups", set_groups, 0 },             /* 256 items and 16 KiB of LOCAL memory */
  { "items", set_items, MAX_GROUP },       /* of a group, along each axis and in all */
  { "local", set_local, 1 << 20 },         /* bytes of LOCAL memory */
  { "grid", set_grid, INT32_MAX },         /* groups along each axis */
  { "lanes", set_lanes, MAX_LANES },       /* of vectors, which the core then uses */
  { "registers", set_registers, 1 << 16 }, /* that the core makes use of */
  { "params", set_params, MAX_PARAMS },    /* buffers of a program */
  { "words", set_words, 0 },               /* dtypes of 32 bits only */
  { "c", set_c, 0 },                       /* dtypes of C only: no floats below 32 bits */
  { "f16", set_f16, 0 },                   /* after "words": that one too */
  { "units", set_units, 0 },               /* matrix units */
  { "least", set_least, 0 },               /* the ops that every target has */
};

/* Applies one word of @length bytes. */
static TinyStatus
apply_word (TinyTarget *target, const char *word, size_t length, TinyPluginError *error)
{
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    size_t n = strlen (words[i].name);
    if (length < n || memcmp (word, words[i].name, n) != 0)
      continue;
    if (words[i].most == 0 && length == n) {
      words[i].set (target, 0);
      return TINY_STATUS_OK;
    }
    if (words[i].most == 0 || word[n] != '=')
      continue;
    char *end;
    long number = strtol (word + n + 1, &end, 10);
    if (end != word + length || number < 1 || (uint32_t) number > words[i].most)
      return tiny_fail (error, TINY_STATUS_INVALID,
                        "REF's \"%s\" takes a number from 1 to %" PRIu32 ", not \"%.*s\"",
                        words[i].name, words[i].most, (int) length, word);
    words[i].set (target, (uint32_t) number);
    return TINY_STATUS_OK;
  }
  return tiny_fail (
      error, TINY_STATUS_INVALID,
      "REF has no architecture \"%.*s\"; it knows ref, groups, items=N, local=N, "
      "grid=N, lanes=N, params=N, words, c, f16, units and least, with commas between them",
      (int) length, word);
}

TinyStatus
ref_target (const char *arch, TinyTarget *out, TinyPluginError *error)
{
  if (arch == NULL || *arch == '\0')
    arch = "ref";
  TINY_TRY (TINY_CHECK_OUT (out, error));
  TINY_FILL (out, .flags = TINY_TARGET_MASKED | TINY_TARGET_UNALIGNED, .dtypes_storage = ALL,
             .dtypes_compute = ALL, .index_dtype = TINY_DTYPE_I64, .max_lanes = MAX_LANES,
             .n_threads = 1, .max_params = MAX_PARAMS,
             .max_grid = { INT32_MAX, INT32_MAX, INT32_MAX }, .max_group = { 1, 1, 1 },
             .max_group_total = 1, .local_bytes = 1 << 20);
  for (unsigned op = 0; op < TINY_N_INSTRS; op++)
    for (unsigned dtype = TINY_DTYPE_BOOL; dtype <= TINY_DTYPE_F64; dtype++)
      if ((ref_ops[op].form == 'E' || ref_ops[op].form == 'M')
          && (ref_ops[op].dtypes & TINY_DTYPE_BIT (dtype)) != 0)
        out->ops[dtype] |= TINY_INSTR_BIT (op);
  if (strlen (arch) >= sizeof out->arch)
    return tiny_fail (error, TINY_STATUS_INVALID, "REF's architecture is too long");
  snprintf (out->arch, sizeof out->arch, "%s", arch);
  for (const char *word = arch;;) {
    size_t length = strcspn (word, ",");
    TinyStatus status = apply_word (out, word, length, error);
    if (status != TINY_STATUS_OK || word[length] == '\0')
      return status;
    word += length + 1;
  }
}

/* ---- whether a program keeps to it ---- */
static const char *
check_instr (const TinyTarget *target, const TinyLinear *linear, const TinyInstr *instr)
{
  char form = instr->op < TINY_N_INSTRS ? ref_ops[instr->op].form : 0;
  uint32_t known = target->dtypes_storage, dtype = TINY_DTYPE_BIT (instr->dtype);
  if (instr->op != TINY_INSTR_PARAM && instr->op != TINY_INSTR_LOCAL)
    known |= BOOLS | TINY_DTYPE_BIT (TINY_DTYPE_VOID);
  if ((known & dtype) == 0)
    return "is of a dtype that the target does not have";
  const bool is_fragment = target->units[0].a_dtype != TINY_DTYPE_VOID
                           && ref_may_be_wide (linear->instrs, linear->sources, instr);
  if (instr->lanes > target->max_lanes && !is_fragment)
    return "has more lanes than the target";
  if (form == 'U'
      && (instr->arg < 0 || instr->arg >= TINY_MAX_UNITS
          || target->units[instr->arg].a_dtype == TINY_DTYPE_VOID))
    return "is a matrix unit that the target does not have";
  if (form != 'E' || instr->n_sources == 0)
    return NULL;
  uint32_t at = instr->sources + (instr->op == TINY_INSTR_WHERE);
  const TinyInstr *operand = &linear->instrs[linear->sources[at]];
  uint64_t ops = target->ops[operand->dtype];
  if (instr->op == TINY_INSTR_CAST)
    ops &= target->ops[instr->dtype];
  return (ops & TINY_INSTR_BIT (instr->op)) != 0 ? NULL : "is not declared by the target";
}

TinyStatus
ref_check_target (const char *arch, const TinyLinear *linear, TinyPluginError *error)
{
  TinyTarget target = { .struct_size = sizeof target };
  TinyStatus status = ref_target (arch, &target, error);
  if (status != TINY_STATUS_OK)
    return status;
  if (linear->n_params > target.max_params)
    return tiny_fail (error, TINY_STATUS_COMPILE, "%s: has %u buffers, the target allows %u",
                      linear->name, linear->n_params, target.max_params);
  for (uint32_t i = 0; i < linear->n_instrs; i++) {
    const char *wrong = check_instr (&target, linear, &linear->instrs[i]);
    if (wrong != NULL)
      return tiny_fail (error, TINY_STATUS_COMPILE, "%s: instruction %u (%s) %s", linear->name,
                        i, ref_ops[linear->instrs[i].op].name, wrong);
  }
  return TINY_STATUS_OK;
}
