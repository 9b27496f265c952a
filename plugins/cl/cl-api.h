/* SPDX-License-Identifier: MIT
 *
 * cl-api.h: declarations of the part of the standard OpenCL C API that the backend uses, as the Khronos
 * specification of OpenCL 1.2 to 3.0 has them: types, numbers and functions, and nothing else.
 *
 * The functions are fields of ClApi, filled from the loader that was opened. CL_FUNCTIONS lists them:
 * 1 is needed, 0 is used where there is OpenCL 2; the last column passes a call on. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef int32_t cl_int;
typedef uint32_t cl_uint, cl_bool;
typedef uint64_t cl_ulong, cl_bitfield;
typedef intptr_t cl_properties;
typedef struct _cl_platform_id *cl_platform_id;
typedef struct _cl_device_id *cl_device_id;
typedef struct _cl_context *cl_context;
typedef struct _cl_command_queue *cl_command_queue;
typedef struct _cl_mem *cl_mem;
typedef struct _cl_program *cl_program;
typedef struct _cl_kernel *cl_kernel;
typedef struct _cl_event *cl_event;
typedef struct {
  size_t origin, size;
} cl_buffer_region;

/* What a call answers; the third column is our own: the status that always fits, or 0. */
/* clang-format off */
#define CL_ERRORS(ERROR) \
  ERROR (DEVICE_NOT_FOUND, -1, TINY_STATUS_NO_DEVICE) \
  ERROR (DEVICE_NOT_AVAILABLE, -2, TINY_STATUS_DEVICE_LOST) \
  ERROR (COMPILER_NOT_AVAILABLE, -3, TINY_STATUS_UNSUPPORTED) \
  ERROR (MEM_OBJECT_ALLOCATION_FAILURE, -4, TINY_STATUS_OUT_OF_MEMORY) \
  ERROR (OUT_OF_RESOURCES, -5, 0) \
  ERROR (OUT_OF_HOST_MEMORY, -6, TINY_STATUS_OUT_OF_MEMORY) \
  ERROR (PROFILING_INFO_NOT_AVAILABLE, -7, 0) \
  ERROR (MEM_COPY_OVERLAP, -8, TINY_STATUS_INVALID) \
  ERROR (BUILD_PROGRAM_FAILURE, -11, 0) \
  ERROR (MISALIGNED_SUB_BUFFER_OFFSET, -13, TINY_STATUS_INVALID) \
  ERROR (EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, -14, 0) \
  ERROR (INVALID_VALUE, -30, TINY_STATUS_INVALID) \
  ERROR (INVALID_DEVICE, -33, 0) \
  ERROR (INVALID_CONTEXT, -34, 0) \
  ERROR (INVALID_QUEUE_PROPERTIES, -35, 0) \
  ERROR (INVALID_COMMAND_QUEUE, -36, TINY_STATUS_DEVICE_LOST) \
  ERROR (INVALID_MEM_OBJECT, -38, 0) \
  ERROR (INVALID_BINARY, -42, TINY_STATUS_CORRUPT) \
  ERROR (INVALID_BUILD_OPTIONS, -43, 0) \
  ERROR (INVALID_PROGRAM, -44, 0) \
  ERROR (INVALID_PROGRAM_EXECUTABLE, -45, 0) \
  ERROR (INVALID_KERNEL_NAME, -46, 0) \
  ERROR (INVALID_KERNEL_DEFINITION, -47, 0) \
  ERROR (INVALID_ARG_INDEX, -49, 0) \
  ERROR (INVALID_ARG_SIZE, -51, 0) \
  ERROR (INVALID_KERNEL_ARGS, -52, 0) \
  ERROR (INVALID_WORK_GROUP_SIZE, -54, 0) \
  ERROR (INVALID_WORK_ITEM_SIZE, -55, 0) \
  ERROR (INVALID_EVENT, -58, 0) \
  ERROR (INVALID_OPERATION, -59, TINY_STATUS_INVALID) \
  ERROR (INVALID_BUFFER_SIZE, -61, TINY_STATUS_OUT_OF_MEMORY) \
  ERROR (INVALID_GLOBAL_WORK_SIZE, -63, 0) \
  ERROR (PLATFORM_NOT_FOUND_KHR, -1001, TINY_STATUS_DRIVER)
/* clang-format on */
#define CL_ERROR_NUMBER(name, number, status) CL_##name = (number),
enum { CL_SUCCESS = 0, CL_ERRORS (CL_ERROR_NUMBER) CL_TRUE = 1, CL_FALSE = 0 };
#undef CL_ERROR_NUMBER

enum { /* bits */
       CL_DEVICE_TYPE_CPU = 1 << 1,
       CL_DEVICE_TYPE_GPU = 1 << 2,
       CL_DEVICE_TYPE_ACCELERATOR = 1 << 3,
       CL_FP_DENORM = 1 << 0,
       CL_FP_INF_NAN = 1 << 1,
       CL_FP_ROUND_TO_NEAREST = 1 << 2,
       CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT = 1 << 7,
       CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE = 1 << 0,
       CL_QUEUE_PROFILING_ENABLE = 1 << 1,
       CL_MEM_READ_WRITE = 1 << 0,
       CL_MEM_USE_HOST_PTR = 1 << 3,
       CL_MEM_SVM_FINE_GRAIN_BUFFER = 1 << 10,
       CL_DEVICE_SVM_FINE_GRAIN_BUFFER = 1 << 1
};
#define CL_DEVICE_TYPE_ALL UINT64_C (0xffffffff)

enum { /* what can be asked for */
       CL_PLATFORM_VERSION = 0x0901,
       CL_PLATFORM_NAME = 0x0902,
       CL_DEVICE_TYPE = 0x1000,
       CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
       CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
       CL_DEVICE_MAX_WORK_ITEM_SIZES = 0x1005,
       CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
       CL_DEVICE_MAX_PARAMETER_SIZE = 0x1017,
       CL_DEVICE_MEM_BASE_ADDR_ALIGN = 0x1019, /* in bits */
       CL_DEVICE_SINGLE_FP_CONFIG = 0x101b,
       CL_DEVICE_GLOBAL_MEM_CACHE_SIZE = 0x101e,
       CL_DEVICE_GLOBAL_MEM_SIZE = 0x101f,
       CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
       CL_DEVICE_ENDIAN_LITTLE = 0x1026,
       CL_DEVICE_AVAILABLE = 0x1027,
       CL_DEVICE_COMPILER_AVAILABLE = 0x1028,
       CL_DEVICE_QUEUE_PROPERTIES = 0x102a,
       CL_DEVICE_NAME = 0x102b,
       CL_DEVICE_VENDOR = 0x102c,
       CL_DRIVER_VERSION = 0x102d,
       CL_DEVICE_PROFILE = 0x102e,
       CL_DEVICE_VERSION = 0x102f,
       CL_DEVICE_EXTENSIONS = 0x1030,
       CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT = 0x103a,
       CL_DEVICE_SVM_CAPABILITIES = 0x1053,
       CL_MEM_SIZE = 0x1102,
       CL_MEM_CONTEXT = 0x1106,
       CL_PROGRAM_BINARY_SIZES = 0x1165,
       CL_PROGRAM_BINARIES = 0x1166,
       CL_PROGRAM_BUILD_LOG = 0x1183,
       CL_BUFFER_CREATE_TYPE_REGION = 0x1220,
       CL_PROFILING_COMMAND_START = 0x1282,
       CL_PROFILING_COMMAND_END = 0x1283
};

/* clang-format off */
#define CL_FUNCTIONS(F) \
  F (1, cl_int, GetPlatformIDs, (cl_uint room, cl_platform_id *out, cl_uint *out_n), (room, out, out_n)) \
  F (1, cl_int, GetPlatformInfo, (cl_platform_id platform, cl_uint what, size_t room, void *out, size_t *out_size), (platform, what, room, out, out_size)) \
  F (1, cl_int, GetDeviceIDs, (cl_platform_id platform, cl_bitfield type, cl_uint room, cl_device_id *out, cl_uint *out_n), (platform, type, room, out, out_n)) \
  F (1, cl_int, GetDeviceInfo, (cl_device_id device, cl_uint what, size_t room, void *out, size_t *out_size), (device, what, room, out, out_size)) \
  F (1, cl_context, CreateContext, (const cl_properties *properties, cl_uint n, const cl_device_id *devices, void (*notify) (const char *, const void *, size_t, void *), void *data, cl_int *out_code), (properties, n, devices, notify, data, out_code)) \
  F (1, cl_command_queue, CreateCommandQueue, (cl_context context, cl_device_id device, cl_bitfield properties, cl_int *out_code), (context, device, properties, out_code)) \
  F (1, cl_int, ReleaseCommandQueue, (cl_command_queue queue), (queue)) \
  F (1, cl_int, Finish, (cl_command_queue queue), (queue)) \
  F (1, cl_mem, CreateBuffer, (cl_context context, cl_bitfield flags, size_t size, void *host, cl_int *out_code), (context, flags, size, host, out_code)) \
  F (1, cl_mem, CreateSubBuffer, (cl_mem memory, cl_bitfield flags, cl_uint type, const void *region, cl_int *out_code), (memory, flags, type, region, out_code)) \
  F (1, cl_int, GetMemObjectInfo, (cl_mem memory, cl_uint what, size_t room, void *out, size_t *out_size), (memory, what, room, out, out_size)) \
  F (1, cl_int, RetainMemObject, (cl_mem memory), (memory)) \
  F (1, cl_int, ReleaseMemObject, (cl_mem memory), (memory)) \
  F (1, cl_program, CreateProgramWithSource, (cl_context context, cl_uint n, const char **texts, const size_t *sizes, cl_int *out_code), (context, n, texts, sizes, out_code)) \
  F (1, cl_program, CreateProgramWithBinary, (cl_context context, cl_uint n, const cl_device_id *devices, const size_t *sizes, const unsigned char **data, cl_int *out_status, cl_int *out_code), (context, n, devices, sizes, data, out_status, out_code)) \
  F (1, cl_int, BuildProgram, (cl_program program, cl_uint n, const cl_device_id *devices, const char *options, void (*notify) (cl_program, void *), void *data), (program, n, devices, options, notify, data)) \
  F (1, cl_int, GetProgramInfo, (cl_program program, cl_uint what, size_t room, void *out, size_t *out_size), (program, what, room, out, out_size)) \
  F (1, cl_int, GetProgramBuildInfo, (cl_program program, cl_device_id device, cl_uint what, size_t room, void *out, size_t *out_size), (program, device, what, room, out, out_size)) \
  F (1, cl_int, ReleaseProgram, (cl_program program), (program)) \
  F (1, cl_int, CreateKernelsInProgram, (cl_program program, cl_uint room, cl_kernel *out, cl_uint *out_n), (program, room, out, out_n)) \
  F (1, cl_int, SetKernelArg, (cl_kernel kernel, cl_uint i, size_t size, const void *value), (kernel, i, size, value)) \
  F (1, cl_int, ReleaseKernel, (cl_kernel kernel), (kernel)) \
  F (1, cl_int, EnqueueReadBuffer, (cl_command_queue queue, cl_mem memory, cl_bool blocks, size_t at, size_t size, void *host, cl_uint n, const cl_event *after, cl_event *out), (queue, memory, blocks, at, size, host, n, after, out)) \
  F (1, cl_int, EnqueueWriteBuffer, (cl_command_queue queue, cl_mem memory, cl_bool blocks, size_t at, size_t size, const void *host, cl_uint n, const cl_event *after, cl_event *out), (queue, memory, blocks, at, size, host, n, after, out)) \
  F (1, cl_int, EnqueueCopyBuffer, (cl_command_queue queue, cl_mem src, cl_mem dst, size_t src_at, size_t dst_at, size_t size, cl_uint n, const cl_event *after, cl_event *out), (queue, src, dst, src_at, dst_at, size, n, after, out)) \
  F (1, cl_int, EnqueueNDRangeKernel, (cl_command_queue queue, cl_kernel kernel, cl_uint n_dims, const size_t *offset, const size_t *global, const size_t *local, cl_uint n, const cl_event *after, cl_event *out), (queue, kernel, n_dims, offset, global, local, n, after, out)) \
  F (1, cl_int, EnqueueBarrierWithWaitList, (cl_command_queue queue, cl_uint n, const cl_event *after, cl_event *out), (queue, n, after, out)) \
  F (1, cl_int, WaitForEvents, (cl_uint n, const cl_event *events), (n, events)) \
  F (1, cl_int, GetEventProfilingInfo, (cl_event event, cl_uint what, size_t room, void *out, size_t *out_size), (event, what, room, out, out_size)) \
  F (1, cl_int, ReleaseEvent, (cl_event event), (event)) \
  F (0, void *, SVMAlloc, (cl_context context, cl_bitfield flags, size_t size, cl_uint alignment), (context, flags, size, alignment)) \
  F (0, void, SVMFree, (cl_context context, void *memory), (context, memory))
/* clang-format on */

#define CL_FIELD(needed, type, name, parameters, arguments) type (*name) parameters;
typedef struct {
  CL_FUNCTIONS (CL_FIELD)
} ClApi;
#undef CL_FIELD
