/* SPDX-License-Identifier: MIT
 *
 * webgpu-adapter.c: which adapters there are.
 *
 * The standard gives one adapter for each wish (fast, sparing, software); wgpu-native's extension
 * lists all. The order is the library's, so that WEBGPU:0 is what it would choose first. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "webgpu.h"

static void
on_adapter (WGPURequestAdapterStatus status,
            WGPUAdapter adapter,
            WGPUStringView message,
            void *answer,
            void *unused)
{
  webgpu_answer (answer, status == WGPURequestAdapterStatus_Success, adapter, message);
}

static WGPUAdapter
request (WGPUPowerPreference preference, bool software, char text[256])
{
  WebgpuAnswer answer = { 0 };
  const WGPURequestAdapterOptions options = { .featureLevel = WGPUFeatureLevel_Core,
                                              .powerPreference = preference,
                                              .forceFallbackAdapter = software };
  const WGPURequestAdapterCallbackInfo info = WEBGPU_ANSWER_MODE (on_adapter, &answer);
  WGPUFuture future = wgpu.InstanceRequestAdapter (wgpu_instance, &options, info);
  bool answered = webgpu_wait (NULL, future, &answer);
  snprintf (text, 256, "%.255s", answered ? answer.text : "the library does not answer");
  return answer.object;
}

static uint32_t
list_handles (WGPUAdapter *out, char text[256])
{
  uint32_t n = 0;
  if (wgpu.InstanceEnumerateAdapters != NULL) {
    const WGPUInstanceEnumerateAdapterOptions options = { 0 };
    size_t found = wgpu.InstanceEnumerateAdapters (wgpu_instance, &options, NULL);
    if (found > 0 && found <= MAX_ADAPTERS)
      n = (uint32_t) wgpu.InstanceEnumerateAdapters (wgpu_instance, &options, out);
    return n;
  }
  const struct {
    WGPUPowerPreference preference;
    bool software;
  } wishes[] = { { WGPUPowerPreference_HighPerformance, false },
                 { WGPUPowerPreference_LowPower, false },
                 { WGPUPowerPreference_Undefined, true } };
  for (unsigned i = 0; i < sizeof wishes / sizeof *wishes; i++) {
    WGPUAdapter adapter = request (wishes[i].preference, wishes[i].software, text);
    if (adapter != NULL)
      out[n++] = adapter;
  }
  return n;
}

static void
describe (const WGPUAdapterInfo *info, WebgpuAdapter *out)
{
  static const char *const interfaces[]
      = { "any", "null", "web", "d3d11", "d3d12", "metal", "vulkan", "gl", "gles" };
  unsigned interface = (unsigned) info->backendType;
  snprintf (out->id, sizeof out->id, "%s-%x-%x",
            interface < sizeof interfaces / sizeof *interfaces ? interfaces[interface]
                                                               : "other",
            info->vendorID, info->deviceID);
  webgpu_copy_text (out->name, sizeof out->name, info->device);
  webgpu_copy_text (out->driver, sizeof out->driver, info->description);
  out->type = info->adapterType;
}

/* The same hardware comes once for each wish, or by way of OpenGL as well. */
static bool
is_wanted (const WebgpuAdapter *all, uint32_t n, const WGPUAdapterInfo *info, const char *id)
{
  if (info->backendType == WGPUBackendType_OpenGL
      || info->backendType == WGPUBackendType_OpenGLES
      || info->backendType == WGPUBackendType_Null)
    return false;
  for (uint32_t i = 0; i < n && wgpu.InstanceEnumerateAdapters == NULL; i++)
    if (strcmp (all[i].id, id) == 0)
      return false;
  return true;
}

static void
add (WebgpuAdapter *all, uint32_t *n, WGPUAdapter handle)
{
  WGPUAdapterInfo info = { 0 };
  WebgpuAdapter *one = &all[*n];
  if (wgpu.AdapterGetInfo (handle, &info) != WGPUStatus_Success) {
    wgpu.AdapterRelease (handle);
    return;
  }
  memset (one, 0, sizeof *one);
  describe (&info, one);
  if (is_wanted (all, *n, &info, one->id)) {
    unsigned before = 0;
    size_t length = strlen (one->id);
    for (uint32_t i = 0; i < *n; i++)
      before += strncmp (all[i].id, one->id, length) == 0 && all[i].id[length] == ':';
    snprintf (one->id + length, sizeof one->id - length, ":%u", before);
    one->handle = handle;
    (*n)++;
  } else {
    wgpu.AdapterRelease (handle);
  }
  wgpu.AdapterInfoFreeMembers (info);
}

TinyStatus
webgpu_adapters (WebgpuAdapter *out, uint32_t *out_n, TinyPluginError *error)
{
  WGPUAdapter handles[MAX_ADAPTERS];
  char text[256] = "";
  *out_n = 0;
  TinyStatus status = webgpu_library_open (error);
  if (status != TINY_STATUS_OK)
    return status;
  uint32_t n = list_handles (handles, text);
  for (uint32_t i = 0; i < n; i++)
    add (out, out_n, handles[i]);
  if (*out_n > 0)
    return TINY_STATUS_OK;
  status = webgpu_fail (error, TINY_STATUS_NO_DEVICE, "the WebGPU library finds no adapter%s%s",
                        text[0] ? ": " : "", text);
  webgpu_hint (error, "install a Vulkan driver, such as mesa-vulkan-drivers");
  return status;
}
