/* SPDX-License-Identifier: MIT
 *
 * cuda-calls.h: the functions of the driver API that there are, with the suffixes of their symbols. */
#pragma once

#include "cuda-front.h"

CUDA_EXPORT cuInit (unsigned flags);
CUDA_EXPORT cuDriverGetVersion (int *out_version);
CUDA_EXPORT cuDeviceGetCount (int *out_n);
CUDA_EXPORT cuDeviceGet (CUdevice *out_device, int ordinal);
CUDA_EXPORT cuDeviceGetByPCIBusId (CUdevice *out_device, const char *id);
CUDA_EXPORT cuDeviceGetPCIBusId (char *out, int n, CUdevice device);
CUDA_EXPORT cuDeviceGetName (char *out, int n, CUdevice device);
CUDA_EXPORT cuDeviceGetUuid_v2 (guint8 out[16], CUdevice device);
CUDA_EXPORT cuDeviceTotalMem_v2 (gsize *out, CUdevice device);
CUDA_EXPORT cuDeviceGetAttribute (int *out, int attribute, CUdevice device);
CUDA_EXPORT cuDeviceCanAccessPeer (int *out, CUdevice device, CUdevice peer);
CUDA_EXPORT cuDevicePrimaryCtxRetain (CUcontext *out, CUdevice device);
CUDA_EXPORT cuDevicePrimaryCtxRelease_v2 (CUdevice device);
CUDA_EXPORT cuCtxPushCurrent_v2 (CUcontext context);
CUDA_EXPORT cuCtxPopCurrent_v2 (CUcontext *out);
CUDA_EXPORT cuCtxGetCurrent (CUcontext *out);
CUDA_EXPORT cuCtxSetCurrent (CUcontext context);
CUDA_EXPORT cuCtxGetDevice (CUdevice *out);
CUDA_EXPORT cuCtxSynchronize (void);
CUDA_EXPORT cuCtxEnablePeerAccess (CUcontext peer, unsigned flags);
CUDA_EXPORT cuGetErrorName (CUresult status, const char **out);
CUDA_EXPORT cuGetErrorString (CUresult status, const char **out);
CUDA_EXPORT cuGetProcAddress (const char *name, void **out, int version, guint64 flags);
CUDA_EXPORT
cuGetProcAddress_v2 (const char *name, void **out, int version, guint64 flags, int *out_status);
CUDA_EXPORT cuMemGetInfo_v2 (gsize *out_free, gsize *out_total);
CUDA_EXPORT cuMemAlloc_v2 (CUdeviceptr *out, gsize n_bytes);
CUDA_EXPORT cuMemFree_v2 (CUdeviceptr address);
CUDA_EXPORT
cuMemGetAddressRange_v2 (CUdeviceptr *out_start, gsize *out_n_bytes, CUdeviceptr address);
CUDA_EXPORT cuMemHostAlloc (void **out, gsize n_bytes, unsigned flags);
CUDA_EXPORT cuMemFreeHost (void *bytes);
CUDA_EXPORT cuMemHostRegister_v2 (void *bytes, gsize n_bytes, unsigned flags);
CUDA_EXPORT cuMemHostUnregister (void *bytes);
CUDA_EXPORT cuMemHostGetDevicePointer_v2 (CUdeviceptr *out, void *bytes, unsigned flags);
CUDA_EXPORT cuPointerGetAttribute (void *out, int attribute, CUdeviceptr address);
CUDA_EXPORT
cuMemcpyHtoDAsync_v2 (CUdeviceptr to, const void *from, gsize n_bytes, CUstream stream);
CUDA_EXPORT cuMemcpyDtoHAsync_v2 (void *to, CUdeviceptr from, gsize n_bytes, CUstream stream);
CUDA_EXPORT
cuMemcpyDtoDAsync_v2 (CUdeviceptr to, CUdeviceptr from, gsize n_bytes, CUstream stream);
CUDA_EXPORT cuMemcpyHtoD_v2 (CUdeviceptr to, const void *from, gsize n_bytes);
CUDA_EXPORT cuMemcpyDtoH_v2 (void *to, CUdeviceptr from, gsize n_bytes);
CUDA_EXPORT cuMemcpyPeerAsync (CUdeviceptr to,
                               CUcontext to_context,
                               CUdeviceptr from,
                               CUcontext from_context,
                               gsize n_bytes,
                               CUstream stream);
CUDA_EXPORT cuMemsetD8Async (CUdeviceptr to, guint8 value, gsize n, CUstream stream);
CUDA_EXPORT cuMemsetD32Async (CUdeviceptr to, unsigned value, gsize n, CUstream stream);
CUDA_EXPORT cuModuleLoadDataEx (
    CUmodule *out, const void *image, unsigned n, const int *options, void **values);
CUDA_EXPORT cuModuleLoadData (CUmodule *out, const void *image);
CUDA_EXPORT cuModuleUnload (CUmodule module);
CUDA_EXPORT cuModuleGetFunction (CUfunction *out, CUmodule module, const char *name);
CUDA_EXPORT
cuModuleGetGlobal_v2 (CUdeviceptr *out, gsize *out_n_bytes, CUmodule module, const char *name);
CUDA_EXPORT cuFuncGetAttribute (int *out, int attribute, CUfunction function);
CUDA_EXPORT cuFuncSetAttribute (CUfunction function, int attribute, int value);
CUDA_EXPORT cuOccupancyMaxActiveBlocksPerMultiprocessor (int *out,
                                                         CUfunction function,
                                                         int n_threads,
                                                         gsize n_dynamic);
CUDA_EXPORT cuLaunchKernel (CUfunction function,
                            unsigned grid_x,
                            unsigned grid_y,
                            unsigned grid_z,
                            unsigned block_x,
                            unsigned block_y,
                            unsigned block_z,
                            unsigned n_dynamic,
                            CUstream stream,
                            void **params,
                            void **extra);
CUDA_EXPORT cuStreamCreate (CUstream *out, unsigned flags);
CUDA_EXPORT cuStreamCreateWithPriority (CUstream *out, unsigned flags, int priority);
CUDA_EXPORT cuStreamDestroy_v2 (CUstream stream);
CUDA_EXPORT cuStreamQuery (CUstream stream);
CUDA_EXPORT cuStreamSynchronize (CUstream stream);
CUDA_EXPORT cuEventCreate (CUevent *out, unsigned flags);
CUDA_EXPORT cuEventDestroy_v2 (CUevent event);
CUDA_EXPORT cuEventRecord (CUevent event, CUstream stream);
CUDA_EXPORT cuStreamWaitEvent (CUstream stream, CUevent event, unsigned flags);
CUDA_EXPORT cuEventQuery (CUevent event);
CUDA_EXPORT cuEventSynchronize (CUevent event);
CUDA_EXPORT cuEventElapsedTime (float *out_ms, CUevent start, CUevent end);
CUDA_EXPORT cuEventElapsedTime_v2 (float *out_ms, CUevent start, CUevent end);
