/* SPDX-License-Identifier: MIT
 *
 * cl-plugin.c: the module's table and its one exported symbol. */
#include "cl.h"

static TinyStatus
scan (TinyCandidate *out, uint32_t *n, ClError *error)
{
  TINY_TRY (cl_find_devices (error));
  return tiny_scan_copy (&cl_devices[0].candidate, cl_n_devices, sizeof cl_devices[0], out, n);
}

static TinyStatus
open_device (const char *id, ClDevice **out, const TinyDeviceTable **out_table, ClError *error)
{
  ClDevice *device = cl_devices;
  cl_int code = CL_SUCCESS;
  TINY_TRY (cl_find_devices (error));
  while (device < cl_devices + cl_n_devices && strcmp (device->candidate.id, id) != 0)
    device++;
  if (device == cl_devices + cl_n_devices)
    return tiny_fail (error, TINY_STATUS_NO_DEVICE, "no OpenCL device '%s'", id);
  if (device->context == NULL)
    device->context = cl.CreateContext (NULL, 1, &device->device, NULL, NULL, &code);
  *out = device;
  *out_table = &cl_device_table;
  return cl_check (error, TINY_STATUS_DRIVER, code, device->candidate.name);
}

static const TinyRenderer renderer = {
  .struct_size = sizeof (TinyRenderer),
  .name = "CL",
  .code_version = "2",
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
