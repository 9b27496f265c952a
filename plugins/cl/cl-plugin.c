/* SPDX-License-Identifier: MIT
 *
 * cl-plugin.c: the module's table and its one exported symbol. */
#include "cl.h"

static TinyStatus
scan (TinyCandidate *out, uint32_t *n, ClError *error)
{
  const uint32_t room = *n;
  TINY_TRY (cl_find_devices (error));
  for (*n = 0; *n < cl_n_devices; ++*n)
    if (*n < room)
      out[*n] = cl_devices[*n].candidate;
  return TINY_STATUS_OK;
}

static TinyStatus
open_device (const char *id, ClDevice **out, const TinyDeviceTable **out_table, ClError *error)
{
  TINY_TRY (cl_find_devices (error));
  *out_table = &cl_device_table;
  for (*out = cl_devices; *out < cl_devices + cl_n_devices; ++*out)
    if (strcmp ((*out)->candidate.id, id) == 0)
      return TINY_STATUS_OK;
  return tiny_fail (error, TINY_STATUS_NO_DEVICE, "no OpenCL device '%s'", id);
}

static const TinyRenderer renderer = {
  .struct_size = sizeof (TinyRenderer),
  .name = "CL",
  .code_version = "1",
  .dialect = &cl_dialect,
  .target = cl_target,
  .compile = cl_compile,
};

TINY_KIT_MODULE (cl_host,
                 .name = "CL",
                 .vendor = "tinycore",
                 .version = CL_VERSION,
                 .license = "MIT",
                 .n_renderers = 1,
                 .renderers = &renderer,
                 .scan = scan,
                 .open = open_device)
