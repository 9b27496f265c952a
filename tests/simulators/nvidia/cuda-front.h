/* SPDX-License-Identifier: MIT
 *
 * cuda-front.h: a libcuda.so.1 over the PTX interpreter: the part of the driver API that plugins/cuda uses.
 *
 * It is strict where the real one is lenient. Streams are threads with drawn delays. Variables of the environment, all
 * beginning with SIMULATED_GPU_:
 *   ARCH     sm_90a; MEMORY bytes, 8 GiB; DRIVER 13000; NAME
 *   SEED     of delays and of the order of warps; DELAY_US the longest delay, 200
 *   CHECK    1: races in shared memory are faults; STEPS instructions of warps a launch may take
 *   FAULTS   FUNCTION[:N]=CODE,…: the N-th call of a function (each, without N) gives CODE and does nothing
 *   STORE    the folder where the shim of NVRTC keeps PTX (shim-nvrtc.c) */
#pragma once

#include "ptx-program.h"
#include <stddef.h>

typedef int CUresult;
typedef int CUdevice;
typedef guint64 CUdeviceptr;
typedef struct CudaContext *CUcontext;
typedef struct CudaStream *CUstream;
typedef struct CudaEvent *CUevent;
typedef struct CudaModule *CUmodule;
typedef struct CudaFunction *CUfunction;

/* number, name, words */
#define CUDA_ERRORS(E)                                                                         \
  E (0, SUCCESS, "no error")                                                                   \
  E (1, INVALID_VALUE, "invalid argument")                                                     \
  E (2, OUT_OF_MEMORY, "out of memory")                                                        \
  E (3, NOT_INITIALIZED, "initialization error")                                               \
  E (4, DEINITIALIZED, "driver shutting down")                                                 \
  E (34, STUB_LIBRARY, "CUDA driver is a stub library")                                        \
  E (46, DEVICE_UNAVAILABLE, "CUDA-capable device(s) is/are busy or unavailable")              \
  E (100, NO_DEVICE, "no CUDA-capable device is detected")                                     \
  E (101, INVALID_DEVICE, "invalid device ordinal")                                            \
  E (200, INVALID_IMAGE, "device kernel image is invalid")                                     \
  E (201, INVALID_CONTEXT, "invalid device context")                                           \
  E (209, NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device")       \
  E (214, ECC_UNCORRECTABLE, "uncorrectable ECC error encountered")                            \
  E (218, INVALID_PTX, "a PTX JIT compilation failed")                                         \
  E (222, UNSUPPORTED_PTX_VERSION,                                                             \
     "the provided PTX was compiled with an unsupported toolchain")                            \
  E (400, INVALID_HANDLE, "invalid resource handle")                                           \
  E (500, NOT_FOUND, "named symbol not found")                                                 \
  E (600, NOT_READY, "device not ready")                                                       \
  E (700, ILLEGAL_ADDRESS, "an illegal memory access was encountered")                         \
  E (701, LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch")                  \
  E (702, LAUNCH_TIMEOUT, "the launch timed out and was terminated")                           \
  E (704, PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled")                       \
  E (710, ASSERT, "device-side assert triggered")                                              \
  E (712, HOST_MEMORY_ALREADY_REGISTERED,                                                      \
     "part or all of the requested memory range is already mapped")                            \
  E (713, HOST_MEMORY_NOT_REGISTERED,                                                          \
     "pointer does not correspond to a registered memory region")                              \
  E (715, ILLEGAL_INSTRUCTION, "an illegal instruction was encountered")                       \
  E (716, MISALIGNED_ADDRESS, "misaligned address")                                            \
  E (717, INVALID_ADDRESS_SPACE, "operation not supported on global/shared address space")     \
  E (719, LAUNCH_FAILED, "unspecified launch failure")                                         \
  E (800, NOT_PERMITTED, "operation not permitted")                                            \
  E (801, NOT_SUPPORTED, "operation not supported")                                            \
  E (803, SYSTEM_DRIVER_MISMATCH,                                                              \
     "system has unsupported display driver / cuda driver combination")                        \
  E (999, UNKNOWN, "unknown error")
#define CUDA_ERROR_NUMBER(number, name, words) CUDA_ERROR_##name = (number),
enum { CUDA_ERRORS (CUDA_ERROR_NUMBER) };

#define CUDA_EXPORT __attribute__ ((visibility ("default"))) CUresult

/* ---- the device and its one context (cuda-device.c) ---- */
struct CudaContext {
  gint n_retained;
  gint sticky; /* the fault after which every call gives the same */
  GMutex lock;
  GPtrArray *streams; /* of CudaStream, all that there are */
};

typedef struct {
  GMutex lock;
  pid_t process; /* 0: not initialised */
  PtxMemory *memory;
  char *arch; /* "sm_90a" */
  guint32 sm; /* 90 */
  guint64 n_bytes, seed, max_steps, delay_us;
  int driver_version;
  gboolean is_checked;
  guint64 n_drawn;
  struct CudaContext primary;
  GHashTable *calls;  /* name → number of calls, for faults */
  GHashTable *pinned; /* address → CudaPinned */
} CudaDriver;
extern CudaDriver cuda_driver;

typedef enum { CUDA_ALWAYS, CUDA_INITIALISED, CUDA_CONTEXT } CudaNeed;

/* The beginning of a function: faults that are asked for, and what it needs. */
CUresult cuda_enter (const char *name, CudaNeed need);
#define CUDA_ENTER(need)                                                                       \
  do {                                                                                         \
    CUresult entered = cuda_enter (__func__, need);                                            \
    if (entered != 0)                                                                          \
      return entered;                                                                          \
  } while (0)
/* The current one, not NULL behind CUDA_ENTER (CUDA_CONTEXT). */
CUcontext cuda_current (void);
/* The context is at fault from now on; the first one stays. */
void cuda_break (CUcontext context, int code, const char *text);
guint64 cuda_draw (void);

typedef struct {
  gsize n_bytes;
  gboolean is_owned; /* by cuMemHostAlloc () */
} CudaPinned;
/* True if all of it was allocated or registered for the device. */
gboolean cuda_is_pinned (const void *bytes, gsize n_bytes);

/* ---- streams (cuda-stream.c) ---- */
typedef void (*CudaWork) (CUcontext context, gpointer data);
/* Runs @work behind all that is in @stream, or now where that is NULL, and frees @data. */
CUresult cuda_enqueue (CUstream stream, CudaWork work, gpointer data, GDestroyNotify free_data);
/* Waits for all streams. */
CUresult cuda_wait_all (CUcontext context);

/* ---- modules (cuda-module.c) ---- */
struct CudaFunction {
  const PtxFunction *function;
  gint max_dynamic, n_registers;
  struct CudaModule *module;
};
/* The PTX of a cubin, by the store: NULL and the reason. */
char *cuda_find_ptx (const void *image, gsize n_bytes, char **out_reason);

/* ---- the store of PTX (ptx-store.c) ---- */
/* The size of an ELF file from its headers, and its machine code's digest; NULL where it is no cubin. */
char *ptx_store_digest (const void *cubin, gsize n_bytes);
gsize ptx_store_size (const void *image);
char *ptx_store_path (const char *digest);
gboolean ptx_store_sm (const void *cubin, guint *out_sm);
