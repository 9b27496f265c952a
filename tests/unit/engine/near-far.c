/* SPDX-License-Identifier: MIT
 *
 * near-far.c: see near-far.h. The plugin's path comes from the build (CPU_PLUGIN). */
#include "near-far.h"

#include <dlfcn.h>

const TinyPluginModule *own_module;

TinyDevice *
near_far_open (const char *name,
               TinyStatus (*open) (const char *id,
                                   TinyPluginDevice **out,
                                   const TinyDeviceTable **out_table,
                                   TinyPluginError *error))
{
  g_autoptr (GError) error = NULL;
  static TinyPluginModule modules[2];
  TinyPluginModule *module = &modules[open != NULL];
  TinyPluginError plugin_error = { .struct_size = sizeof plugin_error };
  void *handle = dlopen (CPU_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  g_assert_nonnull (handle);
  TinyPluginEntry entry;
  *(void **) &entry = dlsym (handle, TINY_PLUGIN_ENTRY_SYMBOL);
  own_module = entry (0, &plugin_error);
  *module = *own_module;
  if (open != NULL)
    module->open = open;
  g_autoptr (TinyBackend) backend = tiny_backend_new (module, CPU_PLUGIN, &error);
  g_assert_no_error (error);
  const TinyDeviceOptions options = { .name = name, .id = "cpu" };
  TinyDevice *device = tiny_device_new (backend, &options, &error);
  g_assert_no_error (error);
  return device;
}
