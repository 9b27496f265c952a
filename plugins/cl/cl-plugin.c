/* SPDX-License-Identifier: MIT
 *
 * cl-plugin.c: the module's table and its one exported symbol. */
#include <string.h>

#include "cl.h"

TINY_PLUGIN_NOTE (0);

const TinyHost *cl_host;

static TinyStatus
init (const TinyHost *host, ClError *error)
{
  cl_host = host;
  return TINY_STATUS_OK;
}

static void
fini (void)
{
}

static TinyStatus
scan (TinyCandidate *out, uint32_t *n, ClError *error)
{
  const uint32_t room = *n;
  CL_TRY (cl_find_devices (error));
  for (*n = 0; *n < cl_n_devices; ++*n)
    if (*n < room)
      out[*n] = cl_devices[*n].candidate;
  return TINY_STATUS_OK;
}

static TinyStatus
open_device (const char *id, ClDevice **out, const TinyDeviceTable **out_table, ClError *error)
{
  CL_TRY (cl_find_devices (error));
  *out_table = &cl_device_table;
  for (*out = cl_devices; *out < cl_devices + cl_n_devices; ++*out)
    if (strcmp ((*out)->candidate.id, id) == 0)
      return TINY_STATUS_OK;
  return cl_fail (error, TINY_STATUS_NO_DEVICE, "no OpenCL device '%s'", id);
}

static const TinyRenderer renderer = {
  .struct_size = sizeof (TinyRenderer),
  .name = "CL",
  .code_version = "1",
  .dialect = &cl_dialect,
  .target = cl_target,
  .compile = cl_compile,
};

static const TinyPluginModule module = {
  .struct_size = sizeof (TinyPluginModule),
  .abi_major = TINY_PLUGIN_ABI_MAJOR,
  .abi_minor = TINY_PLUGIN_ABI_MINOR,
  .n_renderers = 1,
  .name = "CL",
  .vendor = "tinycore",
  .version = CL_VERSION,
  .license = "MIT",
  .renderers = &renderer,
  .init = init,
  .fini = fini,
  .scan = scan,
  .open = open_device,
};

TINY_PLUGIN_EXPORT const TinyPluginModule *tiny_plugin_entry_1 (uint32_t host_minor,
                                                                ClError *error);

const TinyPluginModule *
tiny_plugin_entry_1 (uint32_t host_minor, ClError *error)
{
  return &module;
}
