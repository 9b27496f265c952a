/* SPDX-License-Identifier: MIT
 *
 * nvidia-arch.c: architectures as text, and the target that one describes. */
#include <limits.h>

#include "nvidia.h"

#define NAME(name) #name,
static const char *const names[] = { NVIDIA_FIELDS (NAME) };
#undef NAME
#define ARCH(sm, a, shared, warps, processors, l2, chip)                                       \
  { sm, a, shared, warps, processors, l2, chip },
static const NvidiaRow rows[] = {
#include "nvidia-archs.def"
};
#undef ARCH

const NvidiaRow *
nvidia_find_row (uint32_t sm)
{
  for (size_t i = 0; i < TINY_KIT_N (rows); i++)
    if (rows[i].sm == sm)
      return &rows[i];
  return NULL;
}

static TinyStatus
fail_head (const char *text, TinyPluginError *error)
{
  char all[128] = "";
  for (size_t i = 0; i < TINY_KIT_N (rows); i++)
    snprintf (all + strlen (all), sizeof all - strlen (all), "%s%u", i ? ", " : "", rows[i].sm);
  tiny_fail (error, TINY_STATUS_INVALID, "'%.*s' is no architecture of NVIDIA's that is known",
             (int) strcspn (text, ","), text);
  return tiny_hint (TINY_STATUS_INVALID, error,
                    "sm_ and one of %s, from 90 on with or without an a behind it", all);
}

/* "sm_90a" at the start of @text: its number and suffix, with what its row says of the rest. */
static TinyStatus
parse_head (const char *text, NvidiaArch *arch, TinyPluginError *error)
{
  const size_t size = strcspn (text, ",");
  char *end;
  const unsigned long sm = strtoul (text + 3, &end, 10);
  const NvidiaRow *row = sm <= INT_MAX && text[3] >= '1' && text[3] <= '9'
                             ? nvidia_find_row ((uint32_t) sm)
                             : NULL;
  if (row == NULL || end + (row->has_a && *end == 'a') != text + size)
    return fail_head (text, error);
  *arch = (NvidiaArch){ .sm = row->sm,
                        .threads = row->n_processors,
                        .l2 = (uint64_t) row->l2_kib * 1024 };
  snprintf (arch->head, sizeof arch->head, "%.*s", (int) size, text);
  return TINY_STATUS_OK;
}

TinyStatus
nvidia_arch_parse (const char *text, NvidiaArch *arch, TinyPluginError *error)
{
  if (strncmp (text, "sm_", 3) == 0) {
    TINY_TRY (parse_head (text, arch, error));
    text += strcspn (text, ",");
  }
  return tiny_arch_parse (arch->head, names, TINY_KIT_N (names), text, NULL, (uint64_t *) arch,
                          error);
}

TinyStatus
nvidia_arch_print (const NvidiaArch *arch, char out[256], TinyPluginError *error)
{
  return tiny_arch_print (arch->head, names, TINY_KIT_N (names), (const uint64_t *) arch, out)
             ? TINY_STATUS_OK
             : tiny_fail (error, TINY_STATUS_INVALID,
                          "an architecture of more than 255 letters");
}

/* ---- the target ---- */
#define BIT(name) TINY_DTYPE_BIT (TINY_DTYPE_##name)
#define OP(name)  TINY_INSTR_BIT (TINY_INSTR_##name)

/* Formats that the architecture converts by one instruction; the core makes the other conversions. */
static void
declare_casts (const NvidiaArch *arch, TinyTarget *out)
{
  if (arch->sm >= 80)
    out->ops[TINY_DTYPE_BF16] |= OP (CAST);
  if (arch->sm >= 89) {
    out->ops[TINY_DTYPE_F8E4M3] |= OP (CAST);
    out->ops[TINY_DTYPE_F8E5M2] |= OP (CAST);
  }
}

/* An architecture that nobody named is the opened device's, or one that many GPUs are newer than. */
TinyStatus
nvidia_target (const char *text, TinyTarget *out, TinyPluginError *error)
{
  NvidiaArch arch;
  const NvidiaNvrtc *nvrtc;
  TINY_TRY (TINY_CHECK_OUT (out, error));
  TINY_TRY (nvidia_arch_parse (out->arch[0] != '\0' ? out->arch : "sm_80", &arch, error));
  TINY_TRY (nvidia_arch_parse (text, &arch, error));
  /* without a compiler there is a target all the same: compile() says what is missing */
  if (arch.nvrtc == 0 && nvidia_find_nvrtc (&arch, &nvrtc, NULL) == TINY_STATUS_OK)
    arch.nvrtc = nvidia_nvrtc_version (nvrtc);
  TINY_FILL (out, .flags = TINY_TARGET_MASKED | TINY_TARGET_GROUPS,
             .index_dtype = TINY_DTYPE_I32, .vector_bits = 128, .n_vector_registers = 32,
             .max_lanes = 16, .n_threads = (uint32_t) arch.threads,
             .max_params = NVIDIA_MAX_PARAMS, .max_grid = { INT_MAX, 65535, 65535 },
             .max_group = { NVIDIA_MAX_ITEMS, NVIDIA_MAX_ITEMS, 64 },
             .max_group_total = NVIDIA_MAX_ITEMS, .local_bytes = NVIDIA_LOCAL_BYTES,
             .cache_bytes = { 0, arch.l2, 0 });
  tiny_target_declare (out, ((BIT (U64) << 1) - BIT (BOOL)) | BIT (F16) | BIT (F32) | BIT (F64),
                       BIT (BF16) | BIT (F8E4M3) | BIT (F8E5M2),
                       OP (EXP2) | OP (LOG2) | OP (SIN));
  declare_casts (&arch, out);
  return nvidia_arch_print (&arch, out->arch, error);
}
