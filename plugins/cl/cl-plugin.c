/* SPDX-License-Identifier: MIT
 *
 * cl-plugin.c: the module's table and its one exported symbol. */
#include <stdio.h>
#include <string.h>

#include "cl.h"

TINY_PLUGIN_NOTE (0);

const TinyHost *cl_host;

static TinyStatus
init (const TinyHost *host, TinyPluginError *error)
{
  if (host == NULL || host->struct_size < sizeof *host || host->alloc == NULL)
    return cl_fail (error, TINY_STATUS_INVALID, "init: incomplete host table");
  cl_host = host;
  return TINY_STATUS_OK;
}

static void
fini (void)
{
  cl_forget_units ();
}

static TinyStatus
scan (TinyCandidate *out, uint32_t *n, TinyPluginError *error)
{
  TinyStatus status = cl_find_units (error);
  if (status != TINY_STATUS_OK)
    return status;
  for (uint32_t i = 0; i < *n && i < cl_count_units (); i++) {
    const ClUnit *unit = cl_get_unit (i);
    out[i]
        = (TinyCandidate){ .struct_size = sizeof out[i], .device_class = unit->device_class };
    memcpy (out[i].id, unit->id, sizeof out[i].id);
    memcpy (out[i].name, unit->name, sizeof out[i].name);
    memcpy (out[i].driver, unit->driver, sizeof out[i].driver);
  }
  *n = cl_count_units ();
  return TINY_STATUS_OK;
}

static const TinyRenderer renderers[] = { {
    .struct_size = sizeof (TinyRenderer),
    .name = "CL",
    .code_version = "1",
    .dialect = &cl_dialect,
    .target = cl_target,
    .compile = cl_compile,
} };

static const TinyPluginModule module = {
  .struct_size = sizeof (TinyPluginModule),
  .abi_major = TINY_PLUGIN_ABI_MAJOR,
  .abi_minor = TINY_PLUGIN_ABI_MINOR,
  .n_renderers = CL_ARRAY_SIZE (renderers),
  .name = "CL",
  .vendor = "tinycore",
  .version = CL_VERSION,
  .license = "MIT",
  .renderers = renderers,
  .init = init,
  .fini = fini,
  .scan = scan,
  .open = cl_open,
};

TINY_PLUGIN_EXPORT const TinyPluginModule *tiny_plugin_entry_1 (uint32_t host_minor,
                                                                TinyPluginError *error);

const TinyPluginModule *
tiny_plugin_entry_1 (uint32_t host_minor, TinyPluginError *error)
{
  return &module;
}
