/* SPDX-License-Identifier: MIT
 *
 * tiny-device.c: an opened device: its table, its queue, its code and its lost state. */
#include "device/tiny-device.h"

#include <string.h>

#include "base/tiny-error.h"
#include "device/device-private.h"
#include "device/tiny-pool.h"

struct _TinyDevice {
  GObject parent_instance;
  TinyBackend *backend, *code_backend;
  const TinyRenderer *renderer;
  char *name, *id;
  TinyPluginDevice *handle;
  TinyDeviceTable table;
  TinyDeviceInfo info;
  TinyTarget target;
  TinyPluginQueue *queue;
  GMutex submit_lock; /* the queue is used by one thread at a time */
  TinyPool *pool;
  gint lost;
};

G_DEFINE_FINAL_TYPE (TinyDevice, tiny_device, G_TYPE_OBJECT)

static gboolean
check_table (TinyDevice *self, GError **error)
{
  const TinyDeviceTable *table = &self->table;
  const struct {
    gboolean there;
    const char *slot;
  } required[] = {
    { table->close != NULL, "close" },
    { table->info != NULL, "info" },
    { table->alloc != NULL, "alloc" },
    { table->free != NULL, "free" },
    { table->queue_create != NULL, "queue_create" },
    { table->queue_destroy != NULL, "queue_destroy" },
    { table->submit != NULL, "submit" },
    { table->program_load != NULL, "program_load" },
    { table->program_unload != NULL, "program_unload" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (required); i++)
    if (!required[i].there) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                   "%s: the device table lacks the required slot %s", self->name,
                   required[i].slot);
      return FALSE;
    }
  return TRUE;
}

static gboolean
open_device (TinyDevice *self, GError **error)
{
  TinyPluginError plugin_error = TINY_PLUGIN_ERROR_INIT;
  const TinyDeviceTable *table = NULL;
  const TinyPluginModule *module = tiny_backend_get_module (self->backend);
  TinyPluginDevice *handle = NULL;
  TinyStatus status = module->open (self->id, &handle, &table, &plugin_error);
  if (!tiny_status_check (status, &plugin_error, self->name, "open", error))
    return FALSE;
  if (!tiny_table_copy (&self->table, sizeof self->table, table,
                        G_STRUCT_OFFSET (TinyDeviceTable, map), "the device table", error)
      || !check_table (self, error))
    return FALSE;
  self->handle = handle;
  self->info.struct_size = sizeof self->info;
  status = self->table.info (handle, &self->info, &plugin_error);
  if (!tiny_status_check (status, &plugin_error, self->name, "info", error))
    return FALSE;
  status = self->table.queue_create (handle, &self->queue, &plugin_error);
  return tiny_status_check (status, &plugin_error, self->name, "queue_create", error);
}

TinyDevice *
tiny_device_new (TinyBackend *backend,
                 const char *id,
                 const char *name,
                 TinyBackend *code_backend,
                 const TinyRenderer *renderer,
                 const char *arch,
                 GError **error)
{
  g_autoptr (TinyDevice) self = g_object_new (TINY_TYPE_DEVICE, NULL);
  TinyPluginError plugin_error = TINY_PLUGIN_ERROR_INIT;
  self->backend = g_object_ref (backend);
  self->code_backend = g_object_ref (code_backend);
  self->renderer = renderer;
  self->name = g_strdup (name);
  self->id = g_strdup (id);
  self->target.struct_size = sizeof self->target;
  TinyStatus status = renderer->target (arch ? arch : "", &self->target, &plugin_error);
  g_autofree char *what = g_strdup_printf ("renderer %s, architecture “%s”", renderer->name,
                                           arch ? arch : "");
  if (!tiny_status_check (status, &plugin_error, name, what, error) || !open_device (self, error))
    return NULL;
  self->pool = tiny_pool_new (self);
  return g_steal_pointer (&self);
}

static void
tiny_device_finalize (GObject *object)
{
  TinyDevice *self = TINY_DEVICE (object);
  g_clear_pointer (&self->pool, tiny_pool_free);
  if (self->queue != NULL)
    self->table.queue_destroy (self->handle, self->queue);
  if (self->handle != NULL)
    self->table.close (self->handle);
  g_clear_object (&self->backend);
  g_clear_object (&self->code_backend);
  g_free (self->name);
  g_free (self->id);
  g_mutex_clear (&self->submit_lock);
  G_OBJECT_CLASS (tiny_device_parent_class)->finalize (object);
}

static void
tiny_device_class_init (TinyDeviceClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = tiny_device_finalize;
}

static void
tiny_device_init (TinyDevice *self)
{
  g_mutex_init (&self->submit_lock);
}

const char *
tiny_device_get_name (TinyDevice *self)
{
  return self->name;
}

const char *
tiny_device_get_id (TinyDevice *self)
{
  return self->id;
}

TinyBackend *
tiny_device_get_backend (TinyDevice *self)
{
  return self->backend;
}

const TinyDeviceInfo *
tiny_device_get_info (TinyDevice *self)
{
  return &self->info;
}

const TinyTarget *
tiny_device_get_target (TinyDevice *self)
{
  return &self->target;
}

const TinyRenderer *
tiny_device_get_renderer (TinyDevice *self)
{
  return self->renderer;
}

const char *
tiny_device_get_code_stamp (TinyDevice *self)
{
  return tiny_backend_get_stamp (self->code_backend);
}

TinyPluginDevice *
tiny_device_get_handle (TinyDevice *self)
{
  return self->handle;
}

const TinyDeviceTable *
tiny_device_get_table (TinyDevice *self)
{
  return &self->table;
}

gboolean
tiny_device_check (TinyDevice *self,
                   TinyStatus status,
                   const TinyPluginError *plugin_error,
                   const char *what,
                   GError **error)
{
  if (G_UNLIKELY (status == TINY_STATUS_DEVICE_LOST))
    g_atomic_int_set (&self->lost, 1);
  return tiny_status_check (status, plugin_error, self->name, what, error);
}

gboolean
tiny_device_check_alive (TinyDevice *self, GError **error)
{
  if (G_LIKELY (!g_atomic_int_get (&self->lost)))
    return TRUE;
  g_set_error (error, TINY_ERROR, TINY_ERROR_DEVICE_LOST, "%s: the device was lost earlier",
               self->name);
  return FALSE;
}

gboolean
tiny_device_submit (TinyDevice *self,
                    const TinyCommand *commands,
                    guint n_commands,
                    guint64 *out_ns,
                    GError **error)
{
  if (!tiny_device_check_alive (self, error))
    return FALSE;
  /* The error is large: it is only cleared where the plugin looks. */
  TinyPluginError plugin_error;
  memset (&plugin_error, 0, G_STRUCT_OFFSET (TinyPluginError, text) + 1);
  plugin_error.struct_size = sizeof plugin_error;
  plugin_error.hint[0] = 0;
  const TinySubmit submit = { .struct_size = sizeof submit,
                              .commands = commands,
                              .n_commands = n_commands,
                              .out_ns = out_ns };
  g_mutex_lock (&self->submit_lock);
  TinyStatus status = self->table.submit (self->handle, self->queue, &submit, &plugin_error);
  g_mutex_unlock (&self->submit_lock);
  return status >= 0 || tiny_device_check (self, status, &plugin_error, "submit", error);
}

GBytes *
tiny_device_compile (TinyDevice *self, const TinyCompileArgs *args, GError **error)
{
  TinyPluginError plugin_error = TINY_PLUGIN_ERROR_INIT;
  void *data = NULL;
  uint64_t size = 0;
  TinyStatus status = self->renderer->compile (args, &data, &size, &plugin_error);
  if (!tiny_status_check (status, &plugin_error, self->name, "compile", error))
    return NULL;
  return g_bytes_new_with_free_func (data, size, tiny_host_get ()->free, data);
}

char *
tiny_device_disassemble (TinyDevice *self, GBytes *binary, GError **error)
{
  if (self->renderer->disassemble == NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED, "%s: renderer %s cannot disassemble",
                 self->name, self->renderer->name);
    return NULL;
  }
  TinyPluginError plugin_error = TINY_PLUGIN_ERROR_INIT;
  gsize size;
  const void *data = g_bytes_get_data (binary, &size);
  char *text = NULL;
  TinyStatus status = self->renderer->disassemble (data, size, &text, &plugin_error);
  if (!tiny_status_check (status, &plugin_error, self->name, "disassemble", error))
    return NULL;
  char *copy = g_strdup (text);
  tiny_host_get ()->free (text);
  return copy;
}

TinyPluginBuffer *
tiny_device_take_memory (TinyDevice *self, gsize n_bytes, gsize *out_size, GError **error)
{
  return tiny_pool_take (self->pool, n_bytes, out_size, error);
}

void
tiny_device_give_memory (TinyDevice *self, TinyPluginBuffer *memory, gsize size)
{
  tiny_pool_give (self->pool, memory, size);
}

void
tiny_device_get_memory (TinyDevice *self, TinyDeviceMemory *out)
{
  tiny_pool_get_memory (self->pool, out);
}

void
tiny_device_trim (TinyDevice *self)
{
  tiny_pool_trim (self->pool);
}
