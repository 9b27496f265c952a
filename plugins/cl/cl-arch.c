/* SPDX-License-Identifier: MIT
 *
 * cl-arch.c: architectures as text, and the target that one describes.
 *
 * A text holds all that code for a device depends on, so that kernels can be made for one that is
 * not there. "" is the device that is opened, else the best one; a text that does not begin with "cl"
 * changes that: "groups" or "-fp64,bits=128". */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cl.h"

#define NAME(name) #name,
static const char *const names[] = { CL_FIELDS (NAME) }; /* of the numbers that ClArch is */
#undef NAME

void
cl_arch_to_string (const ClArch *arch, char out[256])
{
  const uint64_t *values = (const uint64_t *) arch;
  int used = snprintf (out, 256, "cl");
  for (unsigned i = 0; i < CL_ARRAY_SIZE (names); i++)
    if (values[i] != 0)
      used += snprintf (out + used, 256 - (size_t) used, values[i] == 1 ? ",%s" : ",%s=%llu",
                        names[i], (unsigned long long) values[i]);
}

/* [+|-]NAME or NAME=NUMBER */
static bool
read_item (const char *item, size_t n, ClArch *arch)
{
  const size_t sign = *item == '-' || *item == '+', key = strcspn (item, "=,") - sign;
  char *end = (char *) item + n;
  unsigned i = 0;
  while (i < CL_ARRAY_SIZE (names)
         && (strlen (names[i]) != key || memcmp (item + sign, names[i], key) != 0))
    i++;
  uint64_t value = sign + key == n ? *item != '-' : strtoull (item + sign + key + 1, &end, 10);
  if (i < CL_ARRAY_SIZE (names))
    ((uint64_t *) arch)[i] = value;
  return i < CL_ARRAY_SIZE (names) && end == item + n && value <= INT64_MAX;
}

TinyStatus
cl_arch_parse (const char *text, ClArch *out, ClError *error)
{
  if (strncmp (text, "cl", 2) == 0 && (text[2] == ',' || text[2] == '\0')) {
    *out = (ClArch){ 0 };
    text += 2;
  }
  for (size_t n; *text != '\0'; text += n) {
    text += *text == ',';
    n = strcspn (text, ",");
    if (!read_item (text, n, out))
      return cl_fail (error, TINY_STATUS_INVALID,
                      "'%.*s' is no part of an architecture such as cl,int64,bits=128", (int) n,
                      text);
  }
  return TINY_STATUS_OK;
}

static void
fill_ops (const ClArch *arch, TinyTarget *out)
{
#define OP(name) TINY_INSTR_BIT (TINY_INSTR_##name)
  const uint64_t memory = OP (LOAD) | OP (STORE) | OP (WHERE) | OP (BITCAST);
  const uint64_t common = memory | OP (CMPLT) | OP (CMPNE) | OP (CMPEQ) | OP (CAST);
  const uint64_t logic = OP (AND) | OP (OR) | OP (XOR);
  const uint64_t numbers = common | OP (NEG) | OP (ADD) | OP (SUB) | OP (MUL) | OP (MAX);
  const uint64_t ints = numbers | logic | OP (IDIV) | OP (MOD) | OP (SHL) | OP (SHR);
  const uint64_t floats
      = numbers | OP (RECIP) | OP (SQRT) | OP (FDIV) | OP (TRUNC) | OP (MULACC);

  out->ops[TINY_DTYPE_BOOL] = common | logic;
  for (unsigned dtype = TINY_DTYPE_I8; dtype <= TINY_DTYPE_U64; dtype++)
    out->ops[dtype] = dtype <= TINY_DTYPE_U32 || arch->int64 ? ints : 0;
  out->ops[TINY_DTYPE_BF16] = out->ops[TINY_DTYPE_F8E4M3] = out->ops[TINY_DTYPE_F8E5M2]
      = memory;
  out->ops[TINY_DTYPE_F16] = arch->fp16 ? floats : memory | OP (CAST);
  out->ops[TINY_DTYPE_F32] = floats | (arch->math ? OP (EXP2) | OP (LOG2) | OP (SIN) : 0);
  out->ops[TINY_DTYPE_F64] = arch->fp64 ? floats : 0;
  for (unsigned dtype = TINY_DTYPE_BOOL; dtype < TINY_N_DTYPES; dtype++) {
    out->dtypes_storage |= out->ops[dtype] != 0 ? TINY_DTYPE_BIT (dtype) : 0;
    out->dtypes_compute |= out->ops[dtype] & (OP (ADD) | OP (AND)) ? TINY_DTYPE_BIT (dtype) : 0;
  }
#undef OP
}

TinyStatus
cl_target (const char *text, TinyTarget *out, ClError *error)
{
  ClArch arch = { 0 };
  if (out->arch[0] == '\0' && strncmp (text, "cl", 2) != 0)
    CL_TRY (cl_find_devices (error));
  if (out->arch[0] == '\0' && cl_n_devices > 0)
    arch = cl_devices[0].arch;
  CL_TRY (cl_arch_parse (out->arch, &arch, error));
  CL_TRY (cl_arch_parse (text, &arch, error));
  const uint32_t group = arch.groups && arch.group ? (uint32_t) arch.group : 1;
  *out = (TinyTarget){
    .struct_size = sizeof *out,
    .flags = TINY_TARGET_MASKED | TINY_TARGET_UNALIGNED
             | (arch.groups ? TINY_TARGET_GROUPS : TINY_TARGET_GRID_CHUNKS)
             | (arch.flush ? TINY_TARGET_FLUSHES_SUBNORMALS : 0),
    /* a processor adds to addresses as they are, a GPU has 32-bit arithmetic */
    .index_dtype = arch.groups || !arch.int64 ? TINY_DTYPE_I32 : TINY_DTYPE_I64,
    .vector_bits = (uint32_t) arch.bits,
    .n_vector_registers = arch.groups || arch.bits >= 512 ? 32 : 16,
    .max_lanes = 16,
    .n_threads = (uint32_t) arch.threads,
    .max_params = (uint32_t) arch.params,
    .max_grid = { INT_MAX, INT_MAX, INT_MAX },
    .max_group = { group, group, group },
    .max_group_total = group,
    .local_bytes = (uint32_t) (arch.local < INT_MAX ? arch.local : INT_MAX),
    .cache_bytes = { arch.l1, arch.l2, arch.l3 }
  };
  cl_arch_to_string (&arch, out->arch);
  fill_ops (&arch, out);
  return TINY_STATUS_OK;
}
