/* SPDX-License-Identifier: MIT
 *
 * webgpu-device.c: an adapter opened, and its memory. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "webgpu.h"

/* ---- opening ---- */
static void
on_device (WGPURequestDeviceStatus status,
           WGPUDevice handle,
           WGPUStringView message,
           void *answer,
           void *unused)
{
  webgpu_answer (answer, status == WGPURequestDeviceStatus_Success, handle, message);
}

/* With all that the adapter can do. */
static TinyStatus
request_device (TinyPluginDevice *self, TinyPluginError *error)
{
  static const WGPUFeatureName wishes[]
      = { WGPUFeatureName_TimestampQuery, WGPUFeatureName_ShaderF16 };
  WGPUFeatureName features[2];
  size_t n_features = 0;
  for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++)
    if (wgpu.AdapterHasFeature (self->adapter, wishes[i]))
      features[n_features++] = wishes[i];
  WebgpuAnswer answer = { 0 };
  const WGPUDeviceDescriptor descriptor
      = { .requiredFeatureCount = n_features,
          .requiredFeatures = features,
          .requiredLimits = &self->limits,
          .deviceLostCallbackInfo = { .mode = WGPUCallbackMode_AllowSpontaneous,
                                      .callback = webgpu_on_lost,
                                      .userdata1 = self },
          .uncapturedErrorCallbackInfo = { .callback = webgpu_on_error, .userdata1 = self } };
  const WGPURequestDeviceCallbackInfo info = WEBGPU_ANSWER_MODE (on_device, &answer);
  WGPUFuture future = wgpu.AdapterRequestDevice (self->adapter, &descriptor, info);
  if (!webgpu_wait (NULL, future, &answer) || answer.object == NULL)
    return webgpu_fail (error, TINY_STATUS_DRIVER, "%s: the adapter gives no device: %s",
                        self->info.name, answer.text);
  self->handle = answer.object;
  self->queue = wgpu.DeviceGetQueue (self->handle);
  self->ns_per_tick
      = wgpu.QueueGetTimestampPeriod != NULL ? wgpu.QueueGetTimestampPeriod (self->queue) : 1;
  if (wgpu.AdapterHasFeature (self->adapter, WGPUFeatureName_TimestampQuery)) {
    const WGPUQuerySetDescriptor queries = { .type = WGPUQueryType_Timestamp, .count = 2 };
    self->queries = wgpu.DeviceCreateQuerySet (self->handle, &queries);
    self->ticks
        = webgpu_new_buffer (self, 16, WGPUBufferUsage_QueryResolve | WGPUBufferUsage_CopySrc);
  }
  return TINY_STATUS_OK;
}

static void
fill_info (TinyPluginDevice *self, const WebgpuAdapter *adapter)
{
  const WGPULimits *limits = &self->limits;
  const WebgpuArch arch
      = { .f16 = wgpu.AdapterHasFeature (self->adapter, WGPUFeatureName_ShaderF16),
          .max_buffers = limits->maxStorageBuffersPerShaderStage,
          .max_groups = limits->maxComputeWorkgroupsPerDimension,
          .local_bytes = limits->maxComputeWorkgroupStorageSize,
          .items = limits->maxComputeInvocationsPerWorkgroup,
          .items_per_axis
          = { limits->maxComputeWorkgroupSizeX, limits->maxComputeWorkgroupSizeY,
              limits->maxComputeWorkgroupSizeZ } };
  self->info = (TinyDeviceInfo){ .struct_size = sizeof self->info,
                                 .max_buffer_bytes = limits->maxBufferSize,
                                 .alignment = limits->minStorageBufferOffsetAlignment,
                                 .n_threads = 64 };
  snprintf (self->info.name, sizeof self->info.name, "%s", adapter->name);
  webgpu_arch_to_string (&arch, self->info.arch);
}

static void
close_device (TinyPluginDevice *self)
{
  if (self->staging != NULL)
    wgpu.BufferRelease (self->staging);
  if (self->uniforms != NULL)
    wgpu.BufferRelease (self->uniforms);
  if (self->ticks != NULL)
    wgpu.BufferRelease (self->ticks);
  if (self->queries != NULL)
    wgpu.QuerySetRelease (self->queries);
  if (self->queue != NULL)
    wgpu.QueueRelease (self->queue);
  if (self->handle != NULL) {
    wgpu.DeviceDestroy (self->handle);
    wgpu.DeviceRelease (self->handle);
    wgpu.InstanceProcessEvents (wgpu_instance); /* callbacks know the device until here */
  }
  if (self->adapter != NULL)
    wgpu.AdapterRelease (self->adapter);
  pthread_mutex_destroy (&self->lock);
  free (self);
}

TinyStatus
webgpu_device_open (const char *id, TinyPluginDevice **out, TinyPluginError *error)
{
  WebgpuAdapter adapters[MAX_ADAPTERS];
  const WebgpuAdapter *found = NULL;
  uint32_t n;
  TinyStatus status = webgpu_adapters (adapters, &n, error);
  if (status != TINY_STATUS_OK)
    return status;
  TinyPluginDevice *self = calloc (1, sizeof *self);
  for (uint32_t i = 0; i < n; i++) {
    if (self != NULL && found == NULL && (*id == '\0' || strcmp (adapters[i].id, id) == 0))
      found = &adapters[i];
    else
      wgpu.AdapterRelease (adapters[i].handle);
  }
  if (found == NULL) {
    free (self);
    return webgpu_fail (error, TINY_STATUS_NO_DEVICE, "there is no adapter “%s” any more", id);
  }
  pthread_mutex_init (&self->lock, NULL);
  self->adapter = found->handle;
  if (!webgpu_check_limits (self->adapter, &self->limits)) {
    status
        = webgpu_fail (error, TINY_STATUS_DRIVER,
                       "the WebGPU library's structs are not those of the standard interface");
    webgpu_hint (error, "use a release of wgpu-native or Dawn of the end of 2025 or later");
  } else {
    fill_info (self, found);
    status = request_device (self, error);
  }
  if (status == TINY_STATUS_OK)
    *out = self;
  else
    close_device (self);
  return status;
}

static TinyStatus
info (TinyPluginDevice *self, TinyDeviceInfo *out, TinyPluginError *error)
{
  if (out == NULL || out->struct_size < sizeof *out)
    return webgpu_fail (error, TINY_STATUS_INVALID, "device info is too small");
  *out = self->info;
  return TINY_STATUS_OK;
}

/* ---- memory ---- */
WGPUBuffer
webgpu_new_buffer (TinyPluginDevice *device, uint64_t n_bytes, WGPUBufferUsage usage)
{
  const WGPUBufferDescriptor descriptor = { .usage = usage, .size = n_bytes };
  return wgpu.DeviceCreateBuffer (device->handle, &descriptor);
}

static TinyStatus
alloc (TinyPluginDevice *self, uint64_t n_bytes, TinyPluginBuffer **out, TinyPluginError *error)
{
  enum { LEAST = 16 };
  uint64_t size = n_bytes < LEAST ? LEAST : (n_bytes + 3) & ~UINT64_C (3);
  if (n_bytes > self->limits.maxBufferSize || size > self->limits.maxBufferSize)
    return webgpu_fail (error, TINY_STATUS_OUT_OF_MEMORY,
                        "a buffer of %" PRIu64
                        " bytes is larger than the device's limit, %" PRIu64,
                        n_bytes, self->limits.maxBufferSize);
  TinyPluginBuffer *buffer = calloc (1, sizeof *buffer);
  if (buffer == NULL)
    return webgpu_fail (error, TINY_STATUS_OUT_OF_MEMORY, "out of host memory");
  pthread_mutex_lock (&self->lock);
  webgpu_scope_open (self);
  buffer->n_bytes = n_bytes;
  buffer->handle = webgpu_new_buffer (
      self, size, WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst);
  TinyStatus status = webgpu_scope_close (self, "a buffer", TINY_STATUS_INVALID, error);
  pthread_mutex_unlock (&self->lock);
  if (status == TINY_STATUS_OK && buffer->handle != NULL) {
    *out = buffer;
    return TINY_STATUS_OK;
  }
  if (buffer->handle != NULL)
    wgpu.BufferRelease (buffer->handle);
  free (buffer);
  return status != TINY_STATUS_OK
             ? status
             : webgpu_fail (error, TINY_STATUS_OUT_OF_MEMORY, "the library gives no buffer");
}

static void
free_buffer (TinyPluginDevice *self, TinyPluginBuffer *buffer)
{
  wgpu.BufferDestroy (buffer->handle);
  wgpu.BufferRelease (buffer->handle);
  free (buffer);
}

/* All queues of a device are the device's one. */
static TinyStatus
queue_create (TinyPluginDevice *self, TinyPluginQueue **out, TinyPluginError *error)
{
  *out = (TinyPluginQueue *) self;
  return TINY_STATUS_OK;
}

static void
queue_destroy (TinyPluginDevice *self, TinyPluginQueue *queue)
{
}

const TinyDeviceTable webgpu_device_table = {
  .struct_size = sizeof (TinyDeviceTable),
  .close = close_device,
  .info = info,
  .alloc = alloc,
  .free = free_buffer,
  .queue_create = queue_create,
  .queue_destroy = queue_destroy,
  .submit = webgpu_submit,
  .program_load = webgpu_program_load,
  .program_unload = webgpu_program_unload,
};
