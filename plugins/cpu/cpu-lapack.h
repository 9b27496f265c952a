/* SPDX-License-Identifier: MIT
 *
 * cpu-lapack.h: linear algebra by a LAPACK that is opened when it is first wanted. */
#pragma once

#include "cpu.h"

/* The kinds that are asked about. */
#define CPU_LAPACK_KINDS                                                                       \
  (TINY_OPERATION_BIT (TINY_OPERATION_CHOLESKY) | TINY_OPERATION_BIT (TINY_OPERATION_LU)       \
   | TINY_OPERATION_BIT (TINY_OPERATION_TRIANGULAR) | TINY_OPERATION_BIT (TINY_OPERATION_QR)   \
   | TINY_OPERATION_BIT (TINY_OPERATION_SVD) | TINY_OPERATION_BIT (TINY_OPERATION_EIGH))

/* ---- cpu-lapack-library.c ---- */
typedef struct {
#define LAPACK_SYMBOL(name, params) void (*name) params;
#include "cpu-lapack.def"
#undef LAPACK_SYMBOL
} CpuLapackFunctions;

typedef struct {
  CpuLapackFunctions of_f32, of_f64;
  /* The threads that it makes of its own, or NULL. */
  void (*set_threads) (int n);
  int (*get_threads) (void);
  /* Those that it makes for the thread that asks, where they are OpenMP's, or NULL. */
  void (*set_own_threads) (int n);
  int (*get_own_threads) (void);
} CpuLapack;

/* The library, opened by the first call; NULL: none was found that has all symbols. From any thread. */
const CpuLapack *cpu_lapack_get (void);

/* A failure where TINY_LAPACK_LIBRARY names what is none; opens nothing where it is unset. */
TinyStatus cpu_lapack_check (TinyPluginError *error);

/* ---- cpu-lapack.c ---- */
TinyStatus cpu_lapack_claim (const char *arch,
                             const TinyOperation *operation,
                             TinyClaim *out,
                             TinyPluginError *error);
TinyStatus cpu_lapack_compile (const TinyCompileArgs *args,
                               void **out_data,
                               uint64_t *out_size,
                               TinyPluginError *error);
/* True if @data, a program's, is what cpu_lapack_compile() made. */
bool cpu_lapack_is_program (const void *data, uint64_t size);
/* CORRUPT for what it did not make, DRIVER where the library is gone. */
TinyStatus cpu_lapack_load (const void *data,
                            uint64_t size,
                            const char *name,
                            TinyOperation *out,
                            TinyPluginError *error);
/* The bytes of buffer @i. */
uint64_t cpu_lapack_count_bytes (const TinyOperation *operation, uint32_t i);

/* ---- cpu-lapack-run.c ---- */
TinyStatus cpu_lapack_run (CpuPool *pool,
                           const TinyOperation *operation,
                           void *const *buffers,
                           TinyPluginError *error);
