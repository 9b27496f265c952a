/* SPDX-License-Identifier: MIT
 *
 * tiny-program.c: a binary loaded on a device. */
#include "device/tiny-program.h"

#include <string.h>

#include "device/device-private.h"

struct TinyProgram {
  TinyDevice *device;
  TinyPluginProgram *handle;
};

TinyProgram *
tiny_program_new (TinyDevice *device,
                  const char *name,
                  GBytes *binary,
                  guint n_params,
                  guint n_variables,
                  const guint32 group[3],
                  GError **error)
{
  gsize size;
  const void *data = g_bytes_get_data (binary, &size);
  TinyProgramArgs args = { .struct_size = sizeof args,
                           .name = name,
                           .arch = tiny_device_get_target (device)->arch,
                           .data = data,
                           .size = size,
                           .n_params = n_params,
                           .n_variables = n_variables };
  memcpy (args.group, group, sizeof args.group);
  TinyPluginError plugin_error = TINY_PLUGIN_ERROR_INIT;
  TinyPluginProgram *handle = NULL;
  if (!tiny_device_check_alive (device, error))
    return NULL;
  TinyStatus status = tiny_device_get_table (device)->program_load (
      tiny_device_get_handle (device), &args, &handle, &plugin_error);
  g_autofree char *what = g_strdup_printf ("loading program %s", name);
  if (!tiny_device_check (device, status, &plugin_error, what, error))
    return NULL;
  TinyProgram *self = g_new0 (TinyProgram, 1);
  self->device = g_object_ref (device);
  self->handle = handle;
  return self;
}

void
tiny_program_free (TinyProgram *self)
{
  if (self == NULL)
    return;
  tiny_device_get_table (self->device)
      ->program_unload (tiny_device_get_handle (self->device), self->handle);
  g_object_unref (self->device);
  g_free (self);
}

TinyPluginProgram *
tiny_program_get_handle (TinyProgram *self)
{
  return self->handle;
}
