/* SPDX-License-Identifier: MIT
 *
 * webgpu-device.c: an adapter opened, its memory, and how its complaints become answers.
 *
 * WebGPU reports errors beside the calls that cause them: to error scopes, of which one catches each
 * kind, or to the device's callbacks. Every call that can fail runs between webgpu_scope_open() and
 * webgpu_scope_close(), under the device's lock because scopes are a stack of the device. */
#include "webgpu.h"

WEBGPU_ON (on_device, WGPURequestDeviceStatus, device, WGPUDevice device)
WEBGPU_ON (on_popped, WGPUPopErrorScopeStatus, type, WGPUErrorType type)

/* ---- complaints ---- */
static void
on_lost (const WGPUDevice *handle,
         WGPUDeviceLostReason reason,
         WGPUStringView message,
         void *device,
         void *unused)
{
  Device *self = device;
  if (!atomic_load (&self->is_lost))
    webgpu_copy_text (self->lost_text, sizeof self->lost_text, message);
  atomic_store (&self->is_lost, true);
}

static void
on_error (const WGPUDevice *handle,
          WGPUErrorType type,
          WGPUStringView message,
          void *device,
          void *unused)
{
  Device *self = device;
  if (self->stray_text[0] == '\0')
    webgpu_copy_text (self->stray_text, sizeof self->stray_text, message);
}

/* Internal errors have no scope in wgpu-native, which ends the program when it is asked for one. */
#define LAST_FILTER                                                                            \
  (wgpu.DevicePoll != NULL ? WGPUErrorFilter_OutOfMemory : WGPUErrorFilter_Internal)

void
webgpu_scope_open (Device *self)
{
  pthread_mutex_lock (&self->lock);
  for (unsigned filter = WGPUErrorFilter_Validation; filter <= LAST_FILTER; filter++)
    wgpu.DevicePushErrorScope (self->handle, (WGPUErrorFilter) filter);
}

/* The kind of error that the last scope caught, and its text. */
static WGPUErrorType
pop (Device *self, char text[900])
{
  WebgpuAnswer *answer = webgpu_ask ();
  const WGPUPopErrorScopeCallbackInfo info = WEBGPU_ASK (on_popped, answer);
  webgpu_wait (self->handle, wgpu.DevicePopErrorScope (self->handle, info), answer);
  memcpy (text, answer->text, sizeof answer->text);
  if (strstr (text, "Not enough memory left") != NULL) /* invalid, says wgpu-native */
    return WGPUErrorType_OutOfMemory;
  return !answer->is_done  ? WGPUErrorType_Unknown
         : answer->is_good ? (WGPUErrorType) answer->value
                           : WGPUErrorType_NoError;
}

bool
webgpu_is_lost (Device *self)
{
  char text[900];
  if (atomic_load (&self->is_lost) || wgpu.DevicePoll == NULL)
    return atomic_load (&self->is_lost);
  wgpu.DevicePushErrorScope (self->handle, WGPUErrorFilter_Validation);
  wgpu.CommandEncoderRelease (wgpu.DeviceCreateCommandEncoder (self->handle, NULL));
  if (pop (self, text) != WGPUErrorType_NoError && strstr (text, "lost") != NULL)
    on_lost (NULL, WGPUDeviceLostReason_Unknown, (WGPUStringView){ text, WGPU_STRLEN }, self,
             NULL);
  return atomic_load (&self->is_lost);
}

TinyStatus
webgpu_scope_close (
    Device *self, const char *what, TinyStatus invalid, TinyStatus status, Error *error)
{
  bool is_caught = false;
  for (unsigned filter = WGPUErrorFilter_Validation; filter <= LAST_FILTER; filter++) {
    char text[900];
    const WGPUErrorType type = pop (self, text);
    if (type == WGPUErrorType_NoError || is_caught)
      continue;
    is_caught = true;
    status = type == WGPUErrorType_Validation    ? invalid
             : type == WGPUErrorType_OutOfMemory ? TINY_STATUS_OUT_OF_MEMORY
                                                 : TINY_STATUS_DRIVER;
    tiny_fail (error, status, "%s: %s%s", what,
               type == WGPUErrorType_OutOfMemory ? "out of device memory: " : "", text);
  }
  if (atomic_load (&self->is_lost))
    status = tiny_hint (tiny_fail (error, TINY_STATUS_DEVICE_LOST,
                                   "%s: the device was lost: %s", what,
                                   self->lost_text[0] ? self->lost_text : "no reason is given"),
                        error, "close and open it again; the kernel's log may say why");
  else if (self->stray_text[0] != '\0' && status == TINY_STATUS_OK)
    status = tiny_fail (error, TINY_STATUS_DRIVER, "%s: %s", what, self->stray_text);
  self->stray_text[0] = '\0';
  pthread_mutex_unlock (&self->lock);
  return status;
}

/* ---- memory ---- */
WGPUBuffer
webgpu_new_buffer (Device *self, uint64_t n_bytes, WGPUBufferUsage usage)
{
  const WGPUBufferDescriptor descriptor = { .usage = usage, .size = n_bytes };
  return wgpu.DeviceCreateBuffer (self->handle, &descriptor);
}

/* A TinyPluginBuffer is a WGPUBuffer. */
static void
free_buffer (Device *self, TinyPluginBuffer *buffer)
{
  wgpu.BufferDestroy ((WGPUBuffer) buffer);
  wgpu.BufferRelease ((WGPUBuffer) buffer);
}

static TinyStatus
alloc (Device *self, uint64_t n_bytes, TinyPluginBuffer **out, Error *error)
{
  webgpu_scope_open (self);
  *out = (TinyPluginBuffer *) webgpu_new_buffer (
      self, n_bytes < 16 ? 16 : (n_bytes + 3) & ~UINT64_C (3),
      WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst);
  TinyStatus status
      = webgpu_scope_close (self, "a buffer", TINY_STATUS_OUT_OF_MEMORY, TINY_STATUS_OK, error);
  if (status != TINY_STATUS_OK)
    free_buffer (self, *out);
  return status;
}

/* ---- opening ---- */

/* With all that the adapter can do. */
static TinyStatus
request_device (Device *self, WGPUAdapter adapter, Error *error)
{
  WGPUFeatureName features[2];
  size_t n_features = 0;
  const bool has_times = wgpu.AdapterHasFeature (adapter, WGPUFeatureName_TimestampQuery);
  if (has_times)
    features[n_features++] = WGPUFeatureName_TimestampQuery;
  if (wgpu.AdapterHasFeature (adapter, WGPUFeatureName_ShaderF16))
    features[n_features++] = WGPUFeatureName_ShaderF16;
  WebgpuAnswer *answer = webgpu_ask ();
  const WGPUDeviceDescriptor descriptor = {
    .requiredFeatureCount = n_features,
    .requiredFeatures = features,
    .requiredLimits = &self->limits,
    .deviceLostCallbackInfo
    = { .mode = WGPUCallbackMode_AllowSpontaneous, .callback = on_lost, .userdata1 = self },
    .uncapturedErrorCallbackInfo = { .callback = on_error, .userdata1 = self }
  };
  const WGPURequestDeviceCallbackInfo info = WEBGPU_ASK (on_device, answer);
  webgpu_wait (NULL, wgpu.AdapterRequestDevice (adapter, &descriptor, info), answer);
  self->handle = (WGPUDevice) answer->value;
  if (self->handle == NULL)
    return tiny_fail (error, TINY_STATUS_DRIVER, "%s: the adapter gives no device: %s",
                      self->info.name, answer->text);
  self->queue = wgpu.DeviceGetQueue (self->handle);
  webgpu_scope_open (self);
  self->staging = webgpu_new_buffer (self, STAGING_BYTES,
                                     WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst);
  self->uniforms = webgpu_new_buffer (self, MAX_UNIFORM_BYTES,
                                      WGPUBufferUsage_Uniform | WGPUBufferUsage_CopyDst);
  self->ticks
      = webgpu_new_buffer (self, 16, WGPUBufferUsage_QueryResolve | WGPUBufferUsage_CopySrc);
  const WGPUQuerySetDescriptor queries = { .type = WGPUQueryType_Timestamp, .count = 2 };
  if (has_times)
    self->queries = wgpu.DeviceCreateQuerySet (self->handle, &queries);
  return webgpu_scope_close (self, self->info.name, TINY_STATUS_DRIVER, TINY_STATUS_OK, error);
}

static void
close_device (Device *self)
{
  if (self->handle != NULL) {
    wgpu.BufferRelease (self->staging);
    wgpu.BufferRelease (self->uniforms);
    wgpu.BufferRelease (self->ticks);
    if (self->queries != NULL)
      wgpu.QuerySetRelease (self->queries);
    wgpu.QueueRelease (self->queue);
    wgpu.DeviceDestroy (self->handle);
    wgpu.DeviceRelease (self->handle);
    wgpu.InstanceProcessEvents (wgpu_instance); /* callbacks know the device until here */
  }
  pthread_mutex_destroy (&self->lock);
  free (self);
}

TinyStatus
webgpu_device_open (WGPUAdapter adapter, const char *name, Device **out, Error *error)
{
  WGPULimits limits;
  if (!webgpu_check_limits (adapter, &limits))
    return tiny_hint (
        tiny_fail (error, TINY_STATUS_DRIVER,
                   "the WebGPU library's structs are not those of the standard interface"),
        error, "use a release of wgpu-native or Dawn of the end of 2025 or later");
  Device *self = calloc (1, sizeof *self);
  if (self == NULL)
    return TINY_STATUS_OUT_OF_MEMORY;
  WebgpuArch arch = { .f16 = wgpu.AdapterHasFeature (adapter, WGPUFeatureName_ShaderF16),
                      .buffers = limits.maxStorageBuffersPerShaderStage,
                      .local = limits.maxComputeWorkgroupStorageSize,
                      .items = limits.maxComputeInvocationsPerWorkgroup,
                      .x = limits.maxComputeWorkgroupSizeX,
                      .y = limits.maxComputeWorkgroupSizeY,
                      .z = limits.maxComputeWorkgroupSizeZ };
  pthread_mutex_init (&self->lock, NULL);
  self->limits = limits;
  self->info = (TinyDeviceInfo){ .struct_size = sizeof self->info,
                                 .max_buffer_bytes = limits.maxBufferSize & ~UINT64_C (3),
                                 .alignment = limits.minStorageBufferOffsetAlignment,
                                 .n_threads = 64,
                                 .transfer_bytes = 4 };
  snprintf (self->info.name, sizeof self->info.name, "%s", name);
  TinyStatus status = request_device (self, adapter, error);
  if (status == TINY_STATUS_OK)
    status = webgpu_probe (self, &arch, error);
  tiny_arch_print (WEBGPU_ARCH, (const uint64_t *) &arch, self->info.arch);
  if (status == TINY_STATUS_OK)
    *out = self;
  else
    close_device (self);
  return status;
}

static TinyStatus
get_info (Device *self, TinyDeviceInfo *out, Error *error)
{
  TINY_TRY (TINY_CHECK_OUT (out, error));
  tiny_fill_struct (out, &self->info, sizeof *out);
  return TINY_STATUS_OK;
}

const TinyDeviceTable webgpu_device_table = {
  .struct_size = sizeof (TinyDeviceTable),
  .close = close_device,
  .info = get_info,
  .alloc = alloc,
  .free = free_buffer,
  .submit = webgpu_submit,
  .program_load = webgpu_program_load,
  .program_unload = webgpu_program_unload,
};
