/* SPDX-License-Identifier: MIT
 *
 * webgpu-fault.c: a WebGPU library that hands every call on to a real one and, when told, goes wrong.
 *
 * The real library is named in TINY_TEST_WEBGPU. webgpu_fault() arms one fault, by name:
 *   lost          the device is destroyed while it is waited for
 *   memory        every new buffer is reported as too much for the device
 *   limits        the structs that describe an adapter are of another layout
 *   small         bindings of more than 64 KiB are refused
 *   adapters      there is none
 *   device        the adapter gives none */
#include <string.h>

#include "webgpu-forward.h"

EXPORT void webgpu_fault (const char *name);

static const char *fault = "";
static WGPUDevice last_device;
static int n_refused; /* buffers that a popped scope has to tell of */

void
webgpu_fault (const char *name)
{
  fault = name;
}

static int
is_armed (const char *name)
{
  return strcmp (fault, name) == 0;
}

/* ---- what can go wrong ---- */
EXPORT WGPUStatus wgpuAdapterGetLimits (WGPUAdapter adapter, WGPULimits *limits);
WGPUStatus
wgpuAdapterGetLimits (WGPUAdapter adapter, WGPULimits *limits)
{
  WGPUStatus status = real_AdapterGetLimits (adapter, limits);
  if (is_armed ("limits")) /* as if one member less came before the others */
    memmove (&limits->maxTextureDimension1D, &limits->maxTextureDimension2D,
             sizeof *limits - offsetof (WGPULimits, maxTextureDimension2D));
  if (is_armed ("small"))
    limits->maxStorageBufferBindingSize = 1 << 16;
  return status;
}

EXPORT size_t wgpuInstanceEnumerateAdapters (WGPUInstance instance,
                                             const WGPUInstanceEnumerateAdapterOptions *options,
                                             WGPUAdapter *out);
size_t
wgpuInstanceEnumerateAdapters (WGPUInstance instance,
                               const WGPUInstanceEnumerateAdapterOptions *options,
                               WGPUAdapter *out)
{
  return is_armed ("adapters") ? 0 : real_InstanceEnumerateAdapters (instance, options, out);
}

EXPORT WGPUFuture wgpuAdapterRequestDevice (WGPUAdapter adapter,
                                            const WGPUDeviceDescriptor *descriptor,
                                            WGPURequestDeviceCallbackInfo info);
WGPUFuture
wgpuAdapterRequestDevice (WGPUAdapter adapter,
                          const WGPUDeviceDescriptor *descriptor,
                          WGPURequestDeviceCallbackInfo info)
{
  WGPULimits limits = *descriptor->requiredLimits;
  WGPUDeviceDescriptor changed = *descriptor;
  changed.requiredLimits = &limits;
  if (is_armed ("device"))
    limits.maxBindGroups = 1 << 20;
  return real_AdapterRequestDevice (adapter, &changed, info);
}

EXPORT WGPUQueue wgpuDeviceGetQueue (WGPUDevice device);
WGPUQueue
wgpuDeviceGetQueue (WGPUDevice device)
{
  last_device = device;
  return real_DeviceGetQueue (device);
}

/* Where a driver's loss is seen: after the submission, when it is waited for. */
EXPORT WGPUBool wgpuDevicePoll (WGPUDevice device, WGPUBool wait, const uint64_t *index);
WGPUBool
wgpuDevicePoll (WGPUDevice device, WGPUBool wait, const uint64_t *index)
{
  if (is_armed ("lost") && wait)
    real_DeviceDestroy (last_device);
  return real_DevicePoll (device, wait, index);
}

EXPORT WGPUBuffer wgpuDeviceCreateBuffer (WGPUDevice device,
                                          const WGPUBufferDescriptor *descriptor);
WGPUBuffer
wgpuDeviceCreateBuffer (WGPUDevice device, const WGPUBufferDescriptor *descriptor)
{
  n_refused += is_armed ("memory");
  return real_DeviceCreateBuffer (device, descriptor);
}

static void
swallow (WGPUPopErrorScopeStatus status,
         WGPUErrorType type,
         WGPUStringView message,
         void *a,
         void *b)
{
}

EXPORT WGPUFuture wgpuDevicePopErrorScope (WGPUDevice device,
                                           WGPUPopErrorScopeCallbackInfo info);
WGPUFuture
wgpuDevicePopErrorScope (WGPUDevice device, WGPUPopErrorScopeCallbackInfo info)
{
  if (n_refused == 0)
    return real_DevicePopErrorScope (device, info);
  n_refused--;
  WGPUPopErrorScopeCallbackInfo quiet = info;
  quiet.callback = swallow;
  WGPUFuture future = real_DevicePopErrorScope (device, quiet);
  const WGPUStringView text = { "not enough memory left", WGPU_STRLEN };
  info.callback (WGPUPopErrorScopeStatus_Success, WGPUErrorType_OutOfMemory, text,
                 info.userdata1, info.userdata2);
  return future;
}
