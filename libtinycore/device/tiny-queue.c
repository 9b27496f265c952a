/* SPDX-License-Identifier: MIT
 *
 * tiny-queue.c: where commands go.
 *
 * What the core adds to the plugin's submit() is a check of a flag, a lock, and an error struct of
 * which only the heads of the texts are cleared. */
#include "device/tiny-queue.h"

#include "device/device-private.h"

struct _TinyQueue {
  GObject parent_instance;
  TinyDevice *device;
  gboolean holds_device;
  TinyPluginQueue *handle;
  gboolean has_handle;
  GMutex lock;
};

G_DEFINE_FINAL_TYPE (TinyQueue, tiny_queue, G_TYPE_OBJECT)

TinyQueue *
tiny_queue_new_own (TinyDevice *device, GError **error)
{
  TinyPluginError plugin_error;
  tiny_plugin_error_init (&plugin_error);
  g_autoptr (TinyQueue) self = g_object_new (TINY_TYPE_QUEUE, NULL);
  self->device = device;
  if (device->table.queue_create == NULL)
    return g_steal_pointer (&self);
  TinyStatus status = device->table.queue_create (device->handle, &self->handle, &plugin_error);
  if (!tiny_device_check (device, status, &plugin_error, "making a queue", error))
    return NULL;
  self->has_handle = TRUE;
  return g_steal_pointer (&self);
}

TinyQueue *
tiny_queue_new (TinyDevice *device, GError **error)
{
  if (!tiny_device_check_alive (device, "making a queue", error))
    return NULL;
  TinyQueue *self = tiny_queue_new_own (device, error);
  if (self != NULL) {
    g_object_ref (device);
    self->holds_device = TRUE;
  }
  return self;
}

static void
tiny_queue_finalize (GObject *object)
{
  TinyQueue *self = TINY_QUEUE (object);
  if (self->has_handle)
    self->device->table.queue_destroy (self->device->handle, self->handle);
  if (self->holds_device)
    g_object_unref (self->device);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (tiny_queue_parent_class)->finalize (object);
}

static void
tiny_queue_class_init (TinyQueueClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = tiny_queue_finalize;
}

static void
tiny_queue_init (TinyQueue *self)
{
  g_mutex_init (&self->lock);
}

gboolean
tiny_queue_submit (
    TinyQueue *self, const TinyCommand *commands, guint n, guint64 *out_ns, GError **error)
{
  TinyDevice *device = self->device;
  if (!tiny_device_check_alive (device, "running commands", error))
    return FALSE;
  TinyPluginError plugin_error;
  tiny_plugin_error_init (&plugin_error);
  const TinySubmit submit = {
    .struct_size = sizeof submit,
    .commands = commands,
    .n_commands = n,
    .out_ns = out_ns,
  };
  g_mutex_lock (&self->lock);
  TinyStatus status
      = device->table.submit (device->handle, self->handle, &submit, &plugin_error);
  g_mutex_unlock (&self->lock);
  return G_LIKELY (status >= 0)
         || tiny_device_check (device, status, &plugin_error, "running commands", error);
}
