/* SPDX-License-Identifier: MIT
 *
 * ptx.h: an interpreter of PTX, the machine of the simulated NVIDIA GPU.
 *
 * ptx_module_new () reads a text; ptx_launch () runs one of its kernels over a PtxMemory, the device's address space.
 * A kernel that does what the machine forbids ends with a PtxFault; nothing it does can reach memory of the program. */
#pragma once

#include <glib.h>

#define PTX_ERROR (g_quark_from_static_string ("ptx-error"))
enum { PTX_ERROR_SYNTAX, PTX_ERROR_MEMORY, PTX_ERROR_LAUNCH };

/* The driver's numbers of what ends a kernel. */
enum {
  PTX_FAULT_NONE = 0,
  PTX_FAULT_ADDRESS = 700,
  PTX_FAULT_TIMEOUT = 702,
  PTX_FAULT_ASSERT = 710,
  PTX_FAULT_INSTRUCTION = 715,
  PTX_FAULT_MISALIGNED = 716,
  PTX_FAULT_SPACE = 717,
  PTX_FAULT_LAUNCH = 719, /* barriers that cannot be met, and races where they are looked for */
};

typedef struct {
  int code;
  guint64 address;
  char text[256]; /* kernel, line, thread, and what it did */
} PtxFault;

/* ---- memory ---- */
typedef struct PtxMemory PtxMemory;

/* @n_bytes: the size of the device. */
PtxMemory *ptx_memory_new (guint64 n_bytes);
void ptx_memory_free (PtxMemory *memory);
/* A range of at least @n_bytes, aligned to 512 and filled with poison; 0 where there is no room. */
guint64 ptx_memory_take (PtxMemory *memory, guint64 n_bytes);
/* FALSE where @address is not the start of a range. */
gboolean ptx_memory_give (PtxMemory *memory, guint64 address);
/* NULL unless the whole of [@address, @address + @n_bytes) is in one range. */
void *ptx_memory_at (PtxMemory *memory, guint64 address, guint64 n_bytes);
/* The range that @address is in: FALSE where it is in none. */
gboolean
ptx_memory_range (PtxMemory *memory, guint64 address, guint64 *out_start, guint64 *out_n_bytes);
guint64 ptx_memory_free_bytes (PtxMemory *memory);
/* Words about an address that is in no range. */
char *ptx_memory_explain (PtxMemory *memory, guint64 address);

/* ---- programs ---- */
typedef struct PtxModule PtxModule;
typedef struct PtxFunction PtxFunction;

typedef struct {
  guint32 n_param_bytes, n_shared_bytes, n_local_bytes, n_registers;
  guint32 max_threads; /* 0: not said */
  guint32 required[3]; /* .reqntid; 0: not said */
} PtxKernelInfo;

/* @memory keeps the module's variables, and outlives it. */
PtxModule *ptx_module_new (const char *text, gssize n_bytes, PtxMemory *memory, GError **error);
void ptx_module_free (PtxModule *module);
const PtxFunction *ptx_module_find (const PtxModule *module, const char *kernel);
/* A variable of the module. */
gboolean ptx_module_variable (const PtxModule *module,
                              const char *name,
                              guint64 *out_address,
                              guint64 *out_n_bytes);
const char *ptx_module_target (const PtxModule *module);
PtxKernelInfo ptx_function_info (const PtxFunction *kernel);

typedef struct {
  guint32 grid[3], block[3];
  guint32 n_dynamic_shared;
  const void *params;
  gsize n_param_bytes;
  guint64 seed;        /* order of warps and blocks, and poison */
  guint64 max_steps;   /* instructions of warps; 0: as many as take some minutes */
  guint32 n_threads;   /* of the host; 0: as many as there are processors, at most 4 */
  gboolean is_checked; /* races in shared memory are faults */
} PtxLaunch;

/* TRUE when all blocks ended; else @out_fault says why they did not. */
gboolean ptx_launch (const PtxFunction *kernel, const PtxLaunch *launch, PtxFault *out_fault);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (PtxMemory, ptx_memory_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PtxModule, ptx_module_free)
