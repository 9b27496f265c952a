/* SPDX-License-Identifier: MIT
 *
 * cl-arch.c: architectures as text, and the target that one describes.
 *
 * The text holds all that code for a device depends on, so that kernels can be made for a device
 * that is not there. "" is the device that is opened, else the best one; a text that does not begin
 * with "cl" changes that: "groups" or "-fp64,bits=128". */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cl.h"

#define CL_WORD(id, text) text,
static const char *const words[] = { CL_WORDS (CL_WORD) };
#undef CL_WORD

#define CL_NUMBER(name) { #name, offsetof (ClArch, name) },
static const struct {
  const char *name;
  size_t offset;
} numbers[] = { CL_NUMBERS (CL_NUMBER) };
#undef CL_NUMBER

void
cl_arch_to_string (const ClArch *arch, char out[256])
{
  int used = snprintf (out, 256, "cl");
  for (unsigned i = 0; i < CL_N_WORDS; i++)
    if ((arch->words & 1u << i) != 0)
      used += snprintf (out + used, 256 - (size_t) used, ",%s", words[i]);
  for (unsigned i = 0; i < CL_ARRAY_SIZE (numbers); i++) {
    uint64_t value = *(const uint64_t *) ((const char *) arch + numbers[i].offset);
    if (value != 0)
      used += snprintf (out + used, 256 - (size_t) used, ",%s=%llu", numbers[i].name,
                        (unsigned long long) value);
  }
}

static bool
is_word (const char *item, size_t n, const char *word)
{
  return strlen (word) == n && memcmp (item, word, n) == 0;
}

static bool
read_item (const char *item, size_t n, ClArch *arch)
{
  bool removes = *item == '-';
  size_t sign = removes || *item == '+', key = strcspn (item, "=,");
  for (unsigned i = 0; i < CL_N_WORDS; i++)
    if (is_word (item + sign, n - sign, words[i])) {
      arch->words = removes ? arch->words & ~(1u << i) : arch->words | 1u << i;
      return true;
    }
  for (unsigned i = 0; i < CL_ARRAY_SIZE (numbers); i++)
    if (key < n && is_word (item, key, numbers[i].name)) {
      char *end = NULL;
      uint64_t value = strtoull (item + key + 1, &end, 10);
      if (end != item + n || end == item + key + 1 || item[key + 1] == '-')
        return false;
      *(uint64_t *) ((char *) arch + numbers[i].offset) = value;
      return true;
    }
  return false;
}

TinyStatus
cl_arch_parse (const char *text, const ClArch *base, ClArch *out, TinyPluginError *error)
{
  bool is_whole = strncmp (text, "cl", 2) == 0 && (text[2] == ',' || text[2] == '\0');
  *out = is_whole ? (ClArch){ 0 } : *base;
  text += is_whole ? 2 : 0;
  while (*text != '\0') {
    text += *text == ',';
    size_t n = strcspn (text, ",");
    if (!read_item (text, n, out)) {
      cl_fail (error, TINY_STATUS_INVALID, "unknown word '%.*s' in an architecture", (int) n,
               text);
      if (error != NULL)
        snprintf (error->hint, sizeof error->hint, "such as cl,int64,bits=128 or groups,-fp64");
      return TINY_STATUS_INVALID;
    }
    text += n;
  }
  return TINY_STATUS_OK;
}

/* ---- the target ---- */
static void
fill_ops (const ClArch *arch, TinyTarget *out)
{
#define OP(name) TINY_INSTR_BIT (TINY_INSTR_##name)
  const uint64_t memory = OP (LOAD) | OP (STORE) | OP (WHERE) | OP (BITCAST);
  const uint64_t compare = OP (CMPLT) | OP (CMPNE) | OP (CMPEQ);
  const uint64_t logic = OP (AND) | OP (OR) | OP (XOR);
  const uint64_t arithmetic = OP (NEG) | OP (ADD) | OP (SUB) | OP (MUL) | OP (MAX) | OP (CAST);
  const uint64_t floats = OP (RECIP) | OP (SQRT) | OP (FDIV) | OP (TRUNC) | OP (MULACC);
  const uint64_t ints = OP (IDIV) | OP (MOD) | OP (SHL) | OP (SHR);
  const uint64_t math = CL_HAS (arch, MATH) ? OP (EXP2) | OP (LOG2) | OP (SIN) : 0;
  const uint64_t all_floats = memory | compare | arithmetic | floats;
  const unsigned last_int = CL_HAS (arch, INT64) ? TINY_DTYPE_U64 : TINY_DTYPE_U32;

  out->ops[TINY_DTYPE_BOOL] = memory | compare | logic | OP (CAST);
  for (unsigned dtype = TINY_DTYPE_I8; dtype <= last_int; dtype++)
    out->ops[dtype] = memory | compare | logic | arithmetic | ints;
  out->ops[TINY_DTYPE_F16] = CL_HAS (arch, FP16) ? all_floats : memory | OP (CAST);
  out->ops[TINY_DTYPE_BF16] = out->ops[TINY_DTYPE_F8E4M3] = out->ops[TINY_DTYPE_F8E5M2]
      = memory;
  out->ops[TINY_DTYPE_F32] = all_floats | math;
  out->ops[TINY_DTYPE_F64] = CL_HAS (arch, FP64) ? all_floats : 0;
  for (unsigned dtype = TINY_DTYPE_BOOL; dtype < TINY_N_DTYPES; dtype++) {
    out->dtypes_storage |= out->ops[dtype] != 0 ? TINY_DTYPE_BIT (dtype) : 0;
    if ((out->ops[dtype] & (OP (ADD) | OP (AND))) != 0)
      out->dtypes_compute |= TINY_DTYPE_BIT (dtype);
  }
#undef OP
}

/* What a text that names no device changes: @given as the core knows it, or the best there is. */
static TinyStatus
find_base (const char *text, const char *given, ClArch *out, TinyPluginError *error)
{
  *out = (ClArch){ 0 };
  if (strncmp (text, "cl", 2) == 0)
    return TINY_STATUS_OK;
  if (*given != '\0')
    return cl_arch_parse (given, out, out, error);
  TinyStatus status = cl_find_units (error);
  if (status == TINY_STATUS_OK)
    *out = cl_get_unit (0)->arch;
  return status;
}

TinyStatus
cl_target (const char *text, TinyTarget *out, TinyPluginError *error)
{
  if (out == NULL || out->struct_size < sizeof *out)
    return cl_fail (error, TINY_STATUS_INVALID, "target: struct_size too small");
  ClArch arch, base;
  TinyStatus status = find_base (text, out->arch, &base, error);
  if (status == TINY_STATUS_OK)
    status = cl_arch_parse (text, &base, &arch, error);
  if (status != TINY_STATUS_OK)
    return status;

  *out = (TinyTarget){ .struct_size = sizeof *out };
  out->flags = TINY_TARGET_MASKED | TINY_TARGET_UNALIGNED;
  out->flags |= CL_HAS (&arch, GROUPS) ? TINY_TARGET_GROUPS : TINY_TARGET_GRID_CHUNKS;
  out->flags |= CL_HAS (&arch, FLUSH) ? TINY_TARGET_FLUSHES_SUBNORMALS : 0;
  cl_arch_to_string (&arch, out->arch);
  fill_ops (&arch, out);
  /* a processor adds to addresses as it is, a GPU has 32-bit arithmetic */
  bool is_small = CL_HAS (&arch, GROUPS) || !CL_HAS (&arch, INT64);
  out->index_dtype = is_small ? TINY_DTYPE_I32 : TINY_DTYPE_I64;
  out->vector_bits = (uint32_t) arch.bits;
  out->n_vector_registers = arch.bits >= 512 || CL_HAS (&arch, GROUPS) ? 32 : 16;
  out->max_lanes = 16;
  out->n_threads = (uint32_t) arch.threads;
  out->max_params = (uint32_t) (arch.params < CL_MAX_PARAMS ? arch.params : CL_MAX_PARAMS);
  out->max_group_total = CL_HAS (&arch, GROUPS) && arch.group > 0 ? (uint32_t) arch.group : 1;
  for (int axis = 0; axis < 3; axis++) {
    out->max_grid[axis] = INT_MAX;
    out->max_group[axis] = out->max_group_total;
  }
  out->local_bytes = (uint32_t) arch.local;
  out->cache_bytes[0] = arch.l1;
  out->cache_bytes[1] = arch.l2;
  out->cache_bytes[2] = arch.l3;
  return TINY_STATUS_OK;
}
