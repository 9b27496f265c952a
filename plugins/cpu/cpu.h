/* SPDX-License-Identifier: MIT
 *
 * cpu.h: what the files of the CPU backend share.
 *
 * A kernel, whoever compiled it, is one C function (CpuKernel) that runs the grid points
 * begin .. end-1 in linear order, axis 0 fastest. Everything here is hidden in the module.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tiny-plugin-kit.h"

#define CPU_ARRAY_SIZE(array) (sizeof (array) / sizeof ((array)[0]))

enum {
  CPU_MAX_PARAMS = 128,
  CPU_MAX_LANES = 64,
  CPU_MAX_VARIABLES = 128,
  CPU_MAX_THREADS = 1024
};
enum { CPU_LOCAL_BYTES = 1 << 20 }; /* of LOCAL memory, on the stack of the thread that runs */
enum { CPU_PORTABLE_LOCAL_BYTES = 32 << 10 }; /* the same, where the stack may be any */
#define CPU_PORTABLE_ARCH "c11"
/* Before a kernel's name in its function's: a kernel may be called float, main, memset or as a
 * function of a prelude. */
#define CPU_ENTRY_PREFIX "tiny_kernel_"

typedef void (*CpuKernel) (void **buffers,
                           const int64_t *variables,
                           int64_t begin,
                           int64_t end);

/* The module's view of the core, set by init(). */
extern const TinyHost *cpu_host;

/* ---- cpu-target.c: architectures as text ---- */
typedef enum { CPU_ARCH_X86_64 = 0, CPU_ARCH_AARCH64 = 1, CPU_N_ARCHS = 2 } CpuArchKind;

/* An architecture: a bit for each row of cpu-features.def. */
typedef struct {
  CpuArchKind kind;
  uint64_t features;
} CpuArch;

#define CPU_FEATURE(arch, id, name, llvm, ...) CPU_FEATURE_##id,
enum {
#include "cpu-features.def"
  CPU_N_FEATURES
};
#undef CPU_FEATURE
#define CPU_BIT(id) (UINT64_C (1) << CPU_FEATURE_##id)

TinyStatus cpu_arch_parse (const char *text, CpuArch *out, TinyPluginError *error);
void cpu_arch_to_string (const CpuArch *arch, char out[256]);
bool cpu_arch_host (CpuArch *out);
/* The process may use AMX's tiles from now on. False: the system does not let it. */
bool cpu_arch_take_tiles (void);
/* Features of @program that the machine at hand lacks, as text; false when it has them all. */
bool cpu_arch_missing (const CpuArch *program, char out[256]);
/* The n-th feature's name for LLVM and for clang's -m; NULL when @arch lacks it. */
const char *cpu_arch_llvm_feature (const CpuArch *arch, unsigned n);
const char *cpu_arch_clang_feature (const CpuArch *arch, unsigned n);
/* A processor of these features whose scheduling model is used. */
const char *cpu_arch_tune (const CpuArch *arch);
unsigned cpu_arch_vector_bits (const CpuArch *arch);
/* The size of a cache of this machine, within cpu-caches.h's ranges; level 1 is the data cache. */
uint64_t cpu_cache_bytes (int level);
TinyStatus cpu_target (const char *arch, TinyTarget *out, TinyPluginError *error);

/* ---- cpu-llvm-unit.c: matrix units ---- */
/* As cpu_target(), with the units that LLVM's code uses. */
TinyStatus cpu_llvm_target (const char *arch, TinyTarget *out, TinyPluginError *error);

/* ---- cpu-llvm.c, cpu-clang.c: the renderers ---- */
TinyStatus cpu_llvm_compile (const TinyCompileArgs *args,
                             void **out_data,
                             uint64_t *out_size,
                             TinyPluginError *error);
/* Frees what compiling keeps for the next time. */
void cpu_llvm_finish (void);
TinyStatus
cpu_llvm_disassemble (const void *data, uint64_t size, char **out_text, TinyPluginError *error);
extern const TinyDialect cpu_dialect;
TinyStatus cpu_clang_compile (const TinyCompileArgs *args,
                              void **out_data,
                              uint64_t *out_size,
                              TinyPluginError *error);

/* ---- cpu-portable.c: the renderer of plain C ---- */
extern const TinyDialect cpu_portable_dialect;
/* What its code is compiled for to run here. */
extern const char cpu_portable_host_arch[];
TinyStatus cpu_portable_target (const char *arch, TinyTarget *out, TinyPluginError *error);
TinyStatus cpu_portable_compile (const TinyCompileArgs *args,
                                 void **out_data,
                                 uint64_t *out_size,
                                 TinyPluginError *error);

/* ---- cpu-object.c: the loader ---- */
typedef struct {
  void *memory; /* one mapping */
  uint64_t n_bytes;
  CpuKernel entry;
  bool uses_tiles;  /* of AMX */
  uint32_t grid[3]; /* the extents it was compiled for; zeros when it does not say */
} CpuObject;

TinyStatus cpu_object_load (
    const void *data, uint64_t size, const char *name, CpuObject *out, TinyPluginError *error);
void cpu_object_unload (CpuObject *object);
/* Finds the code of an object without loading it: for the disassembler. */
typedef void (*CpuSectionFunc) (const char *name,
                                const uint8_t *code,
                                uint64_t n_bytes,
                                void *user_data);
TinyStatus cpu_object_for_each_code (const void *data,
                                     uint64_t size,
                                     uint16_t *out_machine,
                                     CpuSectionFunc func,
                                     void *user_data,
                                     TinyPluginError *error);

/* ---- cpu-threads.c: TINY_THREADS and TINY_AFFINITY ---- */
typedef struct {
  unsigned n_threads;    /* with the caller */
  unsigned n_processors; /* 0: threads run where the system puts them */
  uint16_t processors[CPU_MAX_THREADS];
} CpuThreads;
TinyStatus cpu_threads_read (CpuThreads *out, TinyPluginError *error);
/* As above; 1 when the variables do not read. */
unsigned cpu_n_threads (void);

/* ---- cpu-pool.c: worker threads ---- */
typedef struct CpuPool CpuPool;
TinyStatus cpu_pool_new (const CpuThreads *threads, CpuPool **out, TinyPluginError *error);
void cpu_pool_free (CpuPool *pool);
unsigned cpu_pool_get_n_threads (const CpuPool *pool);
/* Runs all of the grid, on the caller alone when the pool serves someone else. Returns the time
 * that one grid point took on the caller's thread, in picoseconds; 0: others did them all. */
uint64_t cpu_pool_run (CpuPool *pool,
                       CpuKernel kernel,
                       void **buffers,
                       const int64_t *variables,
                       int64_t n_points);

/* ---- cpu-device.c ---- */
TinyStatus cpu_scan (TinyCandidate *out, uint32_t *n, TinyPluginError *error);
TinyStatus cpu_open (const char *id,
                     TinyPluginDevice **out,
                     const TinyDeviceTable **out_table,
                     TinyPluginError *error);
