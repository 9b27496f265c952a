/* SPDX-License-Identifier: MIT
 *
 * nvidia.h: what the backends for NVIDIA GPUs have in common. Everything here is hidden in their modules. */
#pragma once

#include <stdbool.h>

#include "tiny-plugin-kit.h"

/* ---- nvidia-arch.c: architectures as text, such as "sm_90a,threads=132,l2=52428800,cuda=13,nvrtc=1305" ----
 *
 * The number and suffix as NVIDIA's compiler knows them, then what else code depends on: multiprocessors, bytes of
 * the second cache, the driver's major CUDA version (0: any), and NVRTC's version as major * 100 + minor. */
/* clang-format off */
#define NVIDIA_FIELDS(F) F (threads) F (l2) F (cuda) F (nvrtc)
/* clang-format on */
#define NVIDIA_FIELD(name) uint64_t name;
typedef struct {
  NVIDIA_FIELDS (NVIDIA_FIELD)
  uint32_t sm;   /* 90 */
  char head[12]; /* "sm_90a" */
} NvidiaArch;

/* One row of nvidia-archs.def. */
typedef struct {
  uint32_t sm;
  bool has_a;
  uint32_t shared_kib, n_warps, n_processors, l2_kib;
  const char *chip;
} NvidiaRow;

enum { NVIDIA_LOCAL_BYTES = 49152, NVIDIA_MAX_ITEMS = 1024, NVIDIA_MAX_PARAMS = 256 };
enum { NVIDIA_ARGUMENT_BYTES = 4096 }; /* of a launch, on any driver */

/* The row of compute capability @sm, or NULL. */
const NvidiaRow *nvidia_find_row (uint32_t sm);
/* Reads @text: a whole architecture, which begins with sm_, or a change of @arch. */
TinyStatus nvidia_arch_parse (const char *text, NvidiaArch *arch, TinyPluginError *error);
TinyStatus nvidia_arch_print (const NvidiaArch *arch, char out[256], TinyPluginError *error);
TinyStatus nvidia_target (const char *text, TinyTarget *out, TinyPluginError *error);

/* ---- nvidia-dialect.c: CUDA C that includes nothing ---- */
extern const TinyDialect nvidia_dialect;

/* ---- nvidia-nvrtc.c: NVIDIA's compiler, opened at run time ---- */
typedef struct NvidiaNvrtc NvidiaNvrtc;
/* The newest library that compiles for @arch and whose code the driver takes. From any thread. */
TinyStatus
nvidia_find_nvrtc (const NvidiaArch *arch, const NvidiaNvrtc **out, TinyPluginError *error);
uint32_t nvidia_nvrtc_version (const NvidiaNvrtc *self);
/* Compiles to a cubin, in memory of @host. */
TinyStatus nvidia_compile (const TinyHost *host,
                           const TinyCompileArgs *args,
                           void **out,
                           uint64_t *out_size,
                           TinyPluginError *error);

/* ---- nvidia-cubin.c: what NVRTC makes ---- */
/* A kernel of a cubin, by what its launch needs to know. */
typedef struct {
  uint32_t sm;              /* 90 */
  uint32_t n_registers;     /* of a thread */
  uint32_t shared_bytes;    /* of a block, with what the system keeps for itself */
  uint32_t local_bytes;     /* of a thread: spilled registers and arrays */
  uint32_t argument_bytes;  /* of its parameters */
  uint64_t code_at, n_code; /* where its instructions lie */
} NvidiaKernel;

/* Finds the function @name, or where that is NULL the first one. CORRUPT of what is no whole cubin, or lacks it. */
TinyStatus nvidia_cubin_read (const void *data,
                              uint64_t size,
                              const char *name,
                              NvidiaKernel *out,
                              TinyPluginError *error);
/* Figures of a cubin's kernel and its instructions as text, from memory of @host. */
TinyStatus nvidia_describe (
    const TinyHost *host, const void *data, uint64_t size, char **out, TinyPluginError *error);
