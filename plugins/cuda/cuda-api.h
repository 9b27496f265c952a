/* SPDX-License-Identifier: MIT
 *
 * cuda-api.h: declarations of the part of NVIDIA's driver API that the backend uses, as its documentation has them:
 * types, numbers and functions, and nothing else.
 *
 * The functions are fields of CudaApi, filled from the library that was opened. CUDA_FUNCTIONS lists them with the
 * suffix that the library's symbol has: 1 is needed, 0 is used where it is there. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct CudaContextObject *CudaContext;
typedef struct CudaStreamObject *CudaStream;
typedef struct CudaEventObject *CudaEvent;
typedef struct CudaModuleObject *CudaModule;
typedef struct CudaFunctionObject *CudaFunction;
typedef uint64_t CudaAddress; /* on the device */

/* Answers of calls; the third column is our own: the status that always fits, or 0. */
/* clang-format off */
#define CUDA_ERRORS(ERROR) \
  ERROR (INVALID_VALUE, 1, 0) \
  ERROR (OUT_OF_MEMORY, 2, TINY_STATUS_OUT_OF_MEMORY) \
  ERROR (NOT_INITIALIZED, 3, TINY_STATUS_DRIVER) \
  ERROR (DEINITIALIZED, 4, TINY_STATUS_DRIVER) \
  ERROR (STUB_LIBRARY, 34, TINY_STATUS_DRIVER) \
  ERROR (CALL_REQUIRES_NEWER_DRIVER, 36, TINY_STATUS_DRIVER) \
  ERROR (DEVICE_UNAVAILABLE, 46, TINY_STATUS_BUSY) \
  ERROR (NO_DEVICE, 100, TINY_STATUS_NO_DEVICE) \
  ERROR (INVALID_DEVICE, 101, TINY_STATUS_NO_DEVICE) \
  ERROR (INVALID_IMAGE, 200, 0) \
  ERROR (INVALID_CONTEXT, 201, 0) \
  ERROR (NO_BINARY_FOR_GPU, 209, 0) \
  ERROR (ECC_UNCORRECTABLE, 214, TINY_STATUS_DEVICE_LOST) \
  ERROR (INVALID_PTX, 218, 0) \
  ERROR (NVLINK_UNCORRECTABLE, 220, TINY_STATUS_DEVICE_LOST) \
  ERROR (UNSUPPORTED_PTX_VERSION, 222, 0) \
  ERROR (INVALID_SOURCE, 300, 0) \
  ERROR (FILE_NOT_FOUND, 301, 0) \
  ERROR (INVALID_HANDLE, 400, 0) \
  ERROR (NOT_FOUND, 500, 0) \
  ERROR (NOT_READY, 600, 0) \
  ERROR (ILLEGAL_ADDRESS, 700, TINY_STATUS_DEVICE_LOST) \
  ERROR (LAUNCH_OUT_OF_RESOURCES, 701, TINY_STATUS_LAUNCH) \
  ERROR (LAUNCH_TIMEOUT, 702, TINY_STATUS_DEVICE_LOST) \
  ERROR (ASSERT, 710, TINY_STATUS_DEVICE_LOST) \
  ERROR (HARDWARE_STACK_ERROR, 714, TINY_STATUS_DEVICE_LOST) \
  ERROR (ILLEGAL_INSTRUCTION, 715, TINY_STATUS_DEVICE_LOST) \
  ERROR (MISALIGNED_ADDRESS, 716, TINY_STATUS_DEVICE_LOST) \
  ERROR (INVALID_ADDRESS_SPACE, 717, TINY_STATUS_DEVICE_LOST) \
  ERROR (INVALID_PC, 718, TINY_STATUS_DEVICE_LOST) \
  ERROR (LAUNCH_FAILED, 719, TINY_STATUS_DEVICE_LOST) \
  ERROR (COOPERATIVE_LAUNCH_TOO_LARGE, 720, TINY_STATUS_LAUNCH) \
  ERROR (TENSOR_MEMORY_LEAK, 721, TINY_STATUS_DEVICE_LOST) \
  ERROR (NOT_PERMITTED, 800, TINY_STATUS_PERMISSION) \
  ERROR (SYSTEM_NOT_READY, 802, TINY_STATUS_BUSY) \
  ERROR (SYSTEM_DRIVER_MISMATCH, 803, TINY_STATUS_DRIVER) \
  ERROR (COMPAT_NOT_SUPPORTED_ON_DEVICE, 804, TINY_STATUS_DRIVER) \
  ERROR (INVALID_CLUSTER_SIZE, 912, TINY_STATUS_LAUNCH) \
  ERROR (UNKNOWN, 999, 0)
/* clang-format on */
#define CUDA_ERROR_NUMBER(name, number, status) CUDA_##name = (number),
enum { CUDA_SUCCESS = 0, CUDA_ERRORS (CUDA_ERROR_NUMBER) };
#undef CUDA_ERROR_NUMBER

enum { /* bits */
       CUDA_STREAM_NON_BLOCKING = 1,
       CUDA_EVENT_BLOCKING_SYNC = 1,
       CUDA_EVENT_DISABLE_TIMING = 2,
       CUDA_HOST_PORTABLE = 1
};

enum { /* attributes of a device */
       CUDA_MULTIPROCESSORS = 16,
       CUDA_L2_BYTES = 38,
       CUDA_CAPABILITY_MAJOR = 75,
       CUDA_CAPABILITY_MINOR = 76
};

enum { /* of memory */
       CUDA_POINTER_MEMORY_TYPE = 2,
       CUDA_POINTER_DEVICE_ORDINAL = 9,
       CUDA_MEMORY_DEVICE = 2
};

/* In the list of a launch: what follows is its arguments, their size, or nothing. */
#define CUDA_LAUNCH_BUFFER ((void *) 1)
#define CUDA_LAUNCH_SIZE   ((void *) 2)
#define CUDA_LAUNCH_END    ((void *) 0)

/* clang-format off */
#define CUDA_FUNCTIONS(F) \
  F (1, Init, "", (unsigned flags)) \
  F (1, DriverGetVersion, "", (int *version)) \
  F (1, DeviceGet, "", (int *out, int ordinal)) \
  F (1, DeviceGetName, "", (char *name, int size, int device)) \
  F (1, DeviceGetAttribute, "", (int *out, int attribute, int device)) \
  F (1, DeviceGetByPCIBusId, "", (int *out, const char *id)) \
  F (1, DeviceTotalMem, "_v2", (size_t *out, int device)) \
  F (1, DevicePrimaryCtxRetain, "", (CudaContext *out, int device)) \
  F (1, DevicePrimaryCtxRelease, "_v2", (int device)) \
  F (1, CtxPushCurrent, "_v2", (CudaContext context)) \
  F (1, CtxPopCurrent, "_v2", (CudaContext *out)) \
  F (1, MemAlloc, "_v2", (CudaAddress *out, size_t size)) \
  F (1, MemFree, "_v2", (CudaAddress memory)) \
  F (1, MemHostAlloc, "", (void **out, size_t size, unsigned flags)) \
  F (1, MemFreeHost, "", (void *memory)) \
  F (1, MemcpyHtoDAsync, "_v2", (CudaAddress dst, const void *src, size_t size, CudaStream stream)) \
  F (1, MemcpyDtoHAsync, "_v2", (void *dst, CudaAddress src, size_t size, CudaStream stream)) \
  F (1, MemcpyDtoDAsync, "_v2", (CudaAddress dst, CudaAddress src, size_t size, CudaStream stream)) \
  F (1, PointerGetAttribute, "", (void *out, int attribute, CudaAddress memory)) \
  F (0, MemGetAddressRange, "_v2", (CudaAddress *base, size_t *size, CudaAddress memory)) \
  F (1, StreamCreate, "", (CudaStream *out, unsigned flags)) \
  F (1, StreamDestroy, "_v2", (CudaStream stream)) \
  F (1, StreamSynchronize, "", (CudaStream stream)) \
  F (1, EventCreate, "", (CudaEvent *out, unsigned flags)) \
  F (1, EventDestroy, "_v2", (CudaEvent event)) \
  F (1, EventRecord, "", (CudaEvent event, CudaStream stream)) \
  F (1, EventQuery, "", (CudaEvent event)) \
  F (1, EventSynchronize, "", (CudaEvent event)) \
  F (1, EventElapsedTime, "", (float *ms, CudaEvent start, CudaEvent end)) \
  F (1, ModuleLoadData, "", (CudaModule *out, const void *image)) \
  F (1, ModuleUnload, "", (CudaModule module)) \
  F (1, ModuleGetFunction, "", (CudaFunction *out, CudaModule module, const char *name)) \
  F (1, LaunchKernel, "", (CudaFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned x, unsigned y, unsigned z, unsigned shared, CudaStream stream, void **arguments, void **extra))
/* clang-format on */

#define CUDA_FIELD(needed, name, suffix, parameters) int (*name) parameters;
typedef struct {
  CUDA_FUNCTIONS (CUDA_FIELD)
} CudaApi;
#undef CUDA_FIELD
