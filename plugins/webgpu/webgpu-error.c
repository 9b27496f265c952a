/* SPDX-License-Identifier: MIT
 *
 * webgpu-error.c: how complaints of the library become answers.
 *
 * WebGPU reports errors beside the calls that cause them: to error scopes, of which one catches each
 * kind, or to the device's callbacks. Every call that can fail runs between webgpu_scope_open() and
 * webgpu_scope_close(), under the device's lock because scopes are a stack of the device. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "webgpu.h"

TinyStatus
webgpu_fail (TinyPluginError *error, TinyStatus status, const char *format, ...)
{
  if (error == NULL || error->struct_size < sizeof *error)
    return status;
  va_list arguments;
  va_start (arguments, format);
  vsnprintf (error->text, sizeof error->text, format, arguments);
  va_end (arguments);
  error->hint[0] = '\0';
  error->vendor_code = 0;
  return status;
}

void
webgpu_hint (TinyPluginError *error, const char *format, ...)
{
  if (error == NULL || error->struct_size < sizeof *error)
    return;
  va_list arguments;
  va_start (arguments, format);
  vsnprintf (error->hint, sizeof error->hint, format, arguments);
  va_end (arguments);
}

void
webgpu_copy_text (char *out, size_t size, WGPUStringView text)
{
  size_t n = text.data == NULL            ? 0
             : text.length == WGPU_STRLEN ? strlen (text.data)
                                          : text.length;
  if (n > size - 1) {
    n = size - 1;
    while (n > 0 && ((unsigned char) text.data[n] & 0xC0) == 0x80)
      n--; /* not in the middle of a character */
  }
  if (n > 0)
    memcpy (out, text.data, n);
  out[n] = '\0';
}

uint64_t
webgpu_now_ns (void)
{
  struct timespec now;
  clock_gettime (CLOCK_MONOTONIC, &now);
  return (uint64_t) now.tv_sec * UINT64_C (1000000000) + (uint64_t) now.tv_nsec;
}

/* ---- the device's callbacks ---- */
void
webgpu_on_lost (const WGPUDevice *handle,
                WGPUDeviceLostReason reason,
                WGPUStringView message,
                void *data,
                void *unused)
{
  TinyPluginDevice *device = data;
  if (atomic_load (&device->is_lost))
    return;
  webgpu_copy_text (device->lost_text, sizeof device->lost_text, message);
  atomic_store (&device->is_lost, true);
}

void
webgpu_on_error (const WGPUDevice *handle,
                 WGPUErrorType type,
                 WGPUStringView message,
                 void *data,
                 void *unused)
{
  TinyPluginDevice *device = data;
  if (device->stray_text[0] == '\0')
    webgpu_copy_text (device->stray_text, sizeof device->stray_text, message);
}

/* ---- scopes ---- */
static void
on_popped (WGPUPopErrorScopeStatus status,
           WGPUErrorType type,
           WGPUStringView message,
           void *answer,
           void *unused)
{
  bool is_good = status == WGPUPopErrorScopeStatus_Success;
  ((WebgpuAnswer *) answer)->error = is_good ? type : WGPUErrorType_NoError;
  webgpu_answer (answer, is_good, NULL, message);
}

/* The last is unknown to wgpu-native, which ends the program when it is asked. */
static const WGPUErrorFilter filters[]
    = { WGPUErrorFilter_Validation, WGPUErrorFilter_OutOfMemory, WGPUErrorFilter_Internal };

static unsigned
count_filters (void)
{
  return wgpu.DevicePoll != NULL ? 2 : 3;
}

void
webgpu_scope_open (TinyPluginDevice *device)
{
  for (unsigned i = 0; i < count_filters (); i++)
    wgpu.DevicePushErrorScope (device->handle, filters[i]);
}

static TinyStatus
fail_caught (const WebgpuAnswer *caught,
             const char *what,
             TinyStatus invalid,
             TinyPluginError *error)
{
  WGPUErrorType type = caught->error;
  if (strstr (caught->text, "Not enough memory left") != NULL) /* invalid, says wgpu-native */
    type = WGPUErrorType_OutOfMemory;
  switch (type) {
  case WGPUErrorType_OutOfMemory:
    return webgpu_fail (error, TINY_STATUS_OUT_OF_MEMORY, "%s: out of device memory: %s", what,
                        caught->text);
  case WGPUErrorType_Validation:
    return webgpu_fail (error, invalid, "%s: %s", what, caught->text);
  default:
    return webgpu_fail (error, TINY_STATUS_DRIVER, "%s: internal error: %s", what,
                        caught->text);
  }
}

static bool
pop (TinyPluginDevice *device, WebgpuAnswer *caught)
{
  *caught = (WebgpuAnswer){ .error = WGPUErrorType_NoError };
  const WGPUPopErrorScopeCallbackInfo info = WEBGPU_ANSWER_MODE (on_popped, caught);
  WGPUFuture future = wgpu.DevicePopErrorScope (device->handle, info);
  return webgpu_wait (device->handle, future, caught);
}

bool
webgpu_is_lost (TinyPluginDevice *device)
{
  WebgpuAnswer caught;
  if (atomic_load (&device->is_lost) || wgpu.DevicePoll == NULL)
    return atomic_load (&device->is_lost);
  wgpu.DevicePushErrorScope (device->handle, WGPUErrorFilter_Validation);
  WGPUCommandEncoder encoder = wgpu.DeviceCreateCommandEncoder (device->handle, NULL);
  if (encoder != NULL)
    wgpu.CommandEncoderRelease (encoder);
  if (pop (device, &caught) && caught.error != WGPUErrorType_NoError
      && strstr (caught.text, "lost") != NULL)
    webgpu_on_lost (&device->handle, WGPUDeviceLostReason_Unknown,
                    (WGPUStringView){ caught.text, WGPU_STRLEN }, device, NULL);
  return atomic_load (&device->is_lost);
}

TinyStatus
webgpu_scope_close (TinyPluginDevice *device,
                    const char *what,
                    TinyStatus invalid,
                    TinyPluginError *error)
{
  TinyStatus status = TINY_STATUS_OK;
  for (unsigned i = 0; i < count_filters (); i++) {
    WebgpuAnswer caught;
    if (!pop (device, &caught))
      return webgpu_fail (error, TINY_STATUS_TIMEOUT, "%s: the library does not answer", what);
    if (caught.error != WGPUErrorType_NoError && status == TINY_STATUS_OK)
      status = fail_caught (&caught, what, invalid, error);
  }
  if (atomic_load (&device->is_lost)) {
    status = webgpu_fail (error, TINY_STATUS_DEVICE_LOST, "%s: the device was lost: %s", what,
                          device->lost_text[0] ? device->lost_text : "no reason is given");
    webgpu_hint (error, "close and open it again; the kernel's log may say why");
  } else if (device->stray_text[0] != '\0') {
    if (status == TINY_STATUS_OK)
      status = webgpu_fail (error, TINY_STATUS_DRIVER, "%s: %s", what, device->stray_text);
    device->stray_text[0] = '\0';
  }
  return status;
}
