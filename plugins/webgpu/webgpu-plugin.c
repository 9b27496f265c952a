/* SPDX-License-Identifier: MIT
 *
 * webgpu-plugin.c: the module: what it is called, which adapters there are, its one renderer.
 *
 * The standard gives one adapter for each wish (fast, sparing, software); wgpu-native's extension
 * lists all. The order is the library's, so that WEBGPU:0 is what it would choose first. */
#include "webgpu.h"

enum { MAX_ADAPTERS = 32 };
/* candidate.id: "vulkan-10005-0:0": interface, vendor, device, how many before */
typedef struct {
  WGPUAdapter handle;
  TinyCandidate candidate;
} Adapter;

/* ---- adapters ---- */
WEBGPU_ON (on_adapter, WGPURequestAdapterStatus, adapter, WGPUAdapter adapter)

/* @out_why: what the library said of the last. */
static size_t
request_each (WGPUAdapter out[MAX_ADAPTERS], const char **out_why)
{
  static const WGPURequestAdapterOptions wishes[]
      = { { .powerPreference = WGPUPowerPreference_HighPerformance },
          { .powerPreference = WGPUPowerPreference_LowPower },
          { .forceFallbackAdapter = true } };
  size_t n = 0;
  for (size_t i = 0; i < TINY_KIT_N (wishes); i++) {
    WebgpuAnswer *answer = webgpu_ask ();
    const WGPURequestAdapterCallbackInfo info = WEBGPU_ASK (on_adapter, answer);
    webgpu_wait (NULL, wgpu.InstanceRequestAdapter (wgpu_instance, &wishes[i], info), answer);
    *out_why = answer->text;
    if (answer->value != 0)
      out[n++] = (WGPUAdapter) answer->value;
  }
  return n;
}

/* Describes @handle behind the @n in @all. False: the same hardware comes by way of OpenGL as well, and
 * once for each wish. */
static bool
describe (WGPUAdapter handle, Adapter *all, uint32_t n)
{
  /* By WGPUBackendType; others show the same hardware again. */
  static const char *const interfaces[]
      = { NULL, NULL, "web", "d3d11", "d3d12", "metal", "vulkan" };
  WGPUAdapterInfo info = { 0 };
  if (wgpu.AdapterGetInfo (handle, &info) != WGPUStatus_Success)
    return false;
  const unsigned type = info.backendType;
  const char *interface = type < TINY_KIT_N (interfaces) ? interfaces[type] : NULL;
  /* Software in place of a device serves to test and is never the best there is. */
  all[n] = (Adapter){ .handle = handle,
                      .candidate = { .struct_size = sizeof (TinyCandidate),
                                     .device_class = info.adapterType == WGPUAdapterType_CPU
                                                         ? TINY_CLASS_SIMULATOR
                                                         : TINY_CLASS_GPU } };
  TinyCandidate *out = &all[n].candidate;
  int length = snprintf (out->id, sizeof out->id, "%s-%x-%x:", interface ? interface : "",
                         info.vendorID, info.deviceID);
  unsigned before = 0;
  for (uint32_t i = 0; i < n; i++)
    before += strncmp (all[i].candidate.id, out->id, (size_t) length) == 0;
  snprintf (out->id + length, sizeof out->id - (size_t) length, "%u", before);
  webgpu_copy_text (out->name, sizeof out->name, info.device);
  webgpu_copy_text (out->driver, sizeof out->driver, info.description);
  wgpu.AdapterInfoFreeMembers (info);
  return interface != NULL && (before == 0 || wgpu.InstanceEnumerateAdapters != NULL);
}

/* The handles are the caller's to release. */
static TinyStatus
list (Adapter out[MAX_ADAPTERS], uint32_t *out_n, Error *error)
{
  const WGPUInstanceEnumerateAdapterOptions every = { 0 };
  WGPUAdapter handles[MAX_ADAPTERS];
  const char *why = "";
  size_t n = 0;
  TINY_TRY (webgpu_library_open (error));
  if (wgpu.InstanceEnumerateAdapters == NULL)
    n = request_each (handles, &why);
  else if (wgpu.InstanceEnumerateAdapters (wgpu_instance, &every, NULL) <= MAX_ADAPTERS)
    n = wgpu.InstanceEnumerateAdapters (wgpu_instance, &every, handles);
  *out_n = 0;
  for (size_t i = 0; i < n; i++)
    if (describe (handles[i], out, *out_n))
      ++*out_n;
    else
      wgpu.AdapterRelease (handles[i]);
  if (*out_n > 0)
    return TINY_STATUS_OK;
  return tiny_hint (tiny_fail (error, TINY_STATUS_NO_DEVICE,
                               "the WebGPU library finds no adapter%s%s", *why ? ": " : "",
                               why),
                    error, "install a Vulkan driver, such as mesa-vulkan-drivers");
}

static TinyStatus
scan (TinyCandidate *out, uint32_t *n, Error *error)
{
  Adapter adapters[MAX_ADAPTERS];
  uint32_t found;
  TINY_TRY (list (adapters, &found, error));
  for (uint32_t i = 0; i < found; i++)
    wgpu.AdapterRelease (adapters[i].handle);
  return tiny_scan_copy (&adapters[0].candidate, found, sizeof *adapters, out, n);
}

static TinyStatus
open_device (const char *id, Device **out, const TinyDeviceTable **out_table, Error *error)
{
  Adapter adapters[MAX_ADAPTERS];
  uint32_t n, found = 0;
  *out_table = &webgpu_device_table;
  TINY_TRY (list (adapters, &n, error));
  while (found < n && *id != '\0' && strcmp (adapters[found].candidate.id, id) != 0)
    found++;
  TinyStatus status
      = found < n
            ? webgpu_device_open (adapters[found].handle, adapters[found].candidate.name, out,
                                  error)
            : tiny_fail (error, TINY_STATUS_NO_DEVICE, "there is no adapter “%s” any more", id);
  for (uint32_t i = 0; i < n; i++)
    wgpu.AdapterRelease (adapters[i].handle);
  return status;
}

/* ---- the module ---- */
static const TinyRenderer renderer = {
  .struct_size = sizeof (TinyRenderer),
  .name = "WGSL",
  .code_version = "3",
  .dialect = &webgpu_dialect,
  .target = webgpu_target,
  .compile = webgpu_compile,
};

TINY_KIT_MODULE (webgpu_host,
                 .name = "WEBGPU",
                 .vendor = "tinycore",
                 .version = WEBGPU_VERSION,
                 .license = "MIT",
                 .n_renderers = 1,
                 .renderers = &renderer,
                 .fini = webgpu_library_close,
                 .scan = scan,
                 .open = open_device)
