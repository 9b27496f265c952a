/* SPDX-License-Identifier: MIT
 *
 * cl-arch.c: architectures as text, and the target that one describes.
 *
 * A text holds all that code for a device depends on, so that kernels can be made for one that is
 * not there. "" is the device that is opened, else the best one; a text that does not begin with "cl"
 * changes that: "groups" or "-fp64,bits=128". */
#include <limits.h>

#include "cl.h"

TinyStatus
cl_target (const char *text, TinyTarget *out, ClError *error)
{
  ClArch arch = { 0 };
  TINY_TRY (TINY_CHECK_OUT (out, error));
  if (out->arch[0] == '\0' && strncmp (text, "cl", 2) != 0)
    TINY_TRY (cl_find_devices (error));
  if (out->arch[0] == '\0' && cl_n_devices > 0)
    arch = cl_devices[0].arch;
  TINY_TRY (tiny_arch_parse (CL_ARCH, out->arch, NULL, (uint64_t *) &arch, error));
  TINY_TRY (tiny_arch_parse (CL_ARCH, text, NULL, (uint64_t *) &arch, error));
#define BIT(name) TINY_DTYPE_BIT (TINY_DTYPE_##name)
  const uint32_t compute = (BIT (I64) - BIT (BOOL)) | BIT (F32) | (arch.fp16 ? BIT (F16) : 0)
                           | (arch.fp64 ? BIT (F64) : 0)
                           | (arch.int64 ? BIT (I64) | BIT (U64) : 0);
  const uint32_t storage = BIT (F16) | BIT (BF16) | BIT (F8E4M3) | BIT (F8E5M2);
#define OP(name) TINY_INSTR_BIT (TINY_INSTR_##name)
  const uint64_t math = arch.math ? OP (EXP2) | OP (LOG2) | OP (SIN) : 0;
  const uint32_t group = arch.groups && arch.group ? (uint32_t) arch.group : 1;
  TINY_FILL (
      out,
      .flags = TINY_TARGET_MASKED | TINY_TARGET_UNALIGNED
               | (arch.groups ? TINY_TARGET_GROUPS : TINY_TARGET_GRID_CHUNKS)
               | (arch.flush ? TINY_TARGET_FLUSHES_SUBNORMALS : 0),
      /* a processor adds to addresses as they are, a GPU has 32-bit arithmetic */
      .index_dtype = arch.groups || !arch.int64 ? TINY_DTYPE_I32 : TINY_DTYPE_I64,
      .vector_bits = (uint32_t) arch.bits,
      .n_vector_registers = arch.groups || arch.bits >= 512 ? 32 : 16, .max_lanes = 16,
      .n_threads = (uint32_t) arch.threads,
      .max_params = arch.params - 1 < CL_MAX_PARAMS ? (uint32_t) arch.params : CL_MAX_PARAMS,
      .max_grid = { INT_MAX, INT_MAX, INT_MAX },
      .max_group = { group, group, arch.z && arch.z < group ? (uint32_t) arch.z : group },
      .max_group_total = group,
      .local_bytes = (uint32_t) (arch.local < INT_MAX ? arch.local : INT_MAX),
      .cache_bytes = { arch.l1, arch.l2, arch.l3 });
  if (!tiny_arch_print (CL_ARCH, (const uint64_t *) &arch, out->arch))
    return tiny_fail (error, TINY_STATUS_INVALID, "an architecture of more than 255 letters");
  tiny_target_declare (out, compute, storage, math);
  return TINY_STATUS_OK;
}
