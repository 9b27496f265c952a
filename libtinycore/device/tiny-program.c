/* SPDX-License-Identifier: MIT
 *
 * tiny-program.c: a binary loaded on a device, ready to dispatch. */
#include "device/tiny-program.h"

#include <string.h>

#include "device/device-private.h"

struct _TinyProgram {
  GObject parent_instance;
  TinyDevice *device;
  TinyPluginProgram *handle;
  gboolean is_loaded;
};

G_DEFINE_FINAL_TYPE (TinyProgram, tiny_program, G_TYPE_OBJECT)

TinyProgram *
tiny_program_new (TinyDevice *device,
                  const char *name,
                  GBytes *blob,
                  guint n_params,
                  guint n_variables,
                  const guint32 group[3],
                  GError **error)
{
  gsize size;
  const void *data = g_bytes_get_data (blob, &size);
  TinyProgramArgs args = {
    .struct_size = sizeof args,
    .name = name,
    .arch = device->runner != NULL ? device->info.arch : device->target.arch,
    .data = data,
    .size = size,
    .n_params = n_params,
    .n_variables = n_variables,
  };
  memcpy (args.group, group, sizeof args.group);
  g_autofree char *what = g_strdup_printf ("loading program %s", name);
  if (!tiny_device_check_alive (device, what, error))
    return NULL;
  g_autoptr (TinyProgram) self = g_object_new (TINY_TYPE_PROGRAM, NULL);
  self->device = g_object_ref (device);
  TinyPluginError plugin_error;
  tiny_plugin_error_init (&plugin_error);
  TinyStatus status
      = device->table.program_load (device->handle, &args, &self->handle, &plugin_error);
  if (!tiny_device_check (device, status, &plugin_error, what, error))
    return NULL;
  self->is_loaded = TRUE;
  return g_steal_pointer (&self);
}

static void
tiny_program_finalize (GObject *object)
{
  TinyProgram *self = TINY_PROGRAM (object);
  if (!tiny_device_is_abandoned (self->device) && self->is_loaded) {
    tiny_queue_drain (self->device->queue);
    self->device->table.program_unload (self->device->handle, self->handle);
  }
  g_clear_object (&self->device);
  G_OBJECT_CLASS (tiny_program_parent_class)->finalize (object);
}

static void
tiny_program_class_init (TinyProgramClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = tiny_program_finalize;
}

static void
tiny_program_init (TinyProgram *self)
{
}

TinyDevice *
tiny_program_get_device (TinyProgram *self)
{
  return self->device;
}

TinyPluginProgram *
tiny_program_get_handle (TinyProgram *self)
{
  return self->handle;
}
