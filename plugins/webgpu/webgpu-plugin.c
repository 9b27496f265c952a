/* SPDX-License-Identifier: MIT
 *
 * webgpu-plugin.c: the module: what it is called, which adapters there are, its one renderer. */
#include <stdio.h>
#include <string.h>

#include "webgpu.h"

TINY_PLUGIN_NOTE (0);

const TinyHost *webgpu_host;

static const TinyRenderer renderers[] = { {
    .struct_size = sizeof (TinyRenderer),
    .name = "WGSL",
    .code_version = "1",
    .dialect = &webgpu_dialect,
    .target = webgpu_target,
    .compile = webgpu_compile,
} };

static TinyStatus
init (const TinyHost *host, TinyPluginError *error)
{
  webgpu_host = host;
  return TINY_STATUS_OK;
}

static void
fini (void)
{
  webgpu_library_close ();
  webgpu_host = NULL;
}

static uint32_t
class_of (WGPUAdapterType type)
{
  /* Software in place of a device serves to test and is never the best there is. */
  return type == WGPUAdapterType_CPU ? TINY_CLASS_SIMULATOR : TINY_CLASS_GPU;
}

static TinyStatus
scan (TinyCandidate *out, uint32_t *n, TinyPluginError *error)
{
  WebgpuAdapter adapters[MAX_ADAPTERS];
  uint32_t found, room = *n;
  TinyStatus status = webgpu_adapters (adapters, &found, error);
  if (status != TINY_STATUS_OK)
    return status;
  for (uint32_t i = 0; i < found; i++) {
    const WebgpuAdapter *adapter = &adapters[i];
    if (i < room) {
      memcpy (out[i].id, adapter->id, sizeof out[i].id);
      memcpy (out[i].name, adapter->name, sizeof out[i].name);
      memcpy (out[i].driver, adapter->driver, sizeof out[i].driver);
      out[i].device_class = class_of (adapter->type);
    }
    wgpu.AdapterRelease (adapter->handle);
  }
  *n = found;
  return TINY_STATUS_OK;
}

static TinyStatus
open_device (const char *id,
             TinyPluginDevice **out,
             const TinyDeviceTable **out_table,
             TinyPluginError *error)
{
  *out_table = &webgpu_device_table;
  return webgpu_device_open (id, out, error);
}

static const TinyPluginModule module = {
  .struct_size = sizeof module,
  .abi_major = TINY_PLUGIN_ABI_MAJOR,
  .abi_minor = TINY_PLUGIN_ABI_MINOR,
  .n_renderers = 1,
  .name = "WEBGPU",
  .vendor = "tinycore",
  .version = WEBGPU_VERSION,
  .license = "MIT",
  .renderers = renderers,
  .init = init,
  .fini = fini,
  .scan = scan,
  .open = open_device,
};

TINY_PLUGIN_EXPORT const TinyPluginModule *tiny_plugin_entry_1 (uint32_t host_minor,
                                                                TinyPluginError *error);

const TinyPluginModule *
tiny_plugin_entry_1 (uint32_t host_minor, TinyPluginError *error)
{
  return &module;
}
