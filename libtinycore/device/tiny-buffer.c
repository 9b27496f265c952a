/* SPDX-License-Identifier: MIT
 *
 * tiny-buffer.c: memory of a device. A plain counted struct: there are many and they are short-lived. */
#include "device/tiny-buffer.h"

#include "base/tiny-error.h"
#include "device/device-private.h"

struct TinyBuffer {
  gatomicrefcount refs;
  TinyDevice *device;
  TinyBuffer *parent; /* of a view */
  gsize offset, n_bytes;
  GMutex lock; /* around the first allocation */
  TinyPluginBuffer *memory;
  gsize memory_size;
};

static TinyBuffer *
new_buffer (TinyDevice *device, gsize n_bytes)
{
  TinyBuffer *self = g_new0 (TinyBuffer, 1);
  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->device = g_object_ref (device);
  self->n_bytes = n_bytes;
  return self;
}

TinyBuffer *
tiny_buffer_new (TinyDevice *device, gsize n_bytes)
{
  return new_buffer (device, n_bytes);
}

TinyBuffer *
tiny_buffer_new_view (TinyBuffer *parent, gsize offset, gsize n_bytes)
{
  g_return_val_if_fail (offset <= parent->n_bytes && n_bytes <= parent->n_bytes - offset, NULL);
  TinyBuffer *root = parent->parent ? parent->parent : parent;
  TinyBuffer *self = new_buffer (parent->device, n_bytes);
  self->parent = tiny_buffer_ref (root);
  self->offset = parent->offset + offset;
  return self;
}

TinyBuffer *
tiny_buffer_ref (TinyBuffer *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
tiny_buffer_unref (TinyBuffer *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  if (self->memory != NULL)
    tiny_device_give_memory (self->device, self->memory, self->memory_size);
  g_clear_pointer (&self->parent, tiny_buffer_unref);
  g_object_unref (self->device);
  g_mutex_clear (&self->lock);
  g_free (self);
}

gboolean
tiny_buffer_ensure (TinyBuffer *self, GError **error)
{
  if (self->parent != NULL)
    return tiny_buffer_ensure (self->parent, error);
  if (g_atomic_pointer_get (&self->memory) != NULL)
    return TRUE;
  g_mutex_lock (&self->lock);
  if (self->memory == NULL) {
    TinyPluginBuffer *memory
        = tiny_device_take_memory (self->device, self->n_bytes, &self->memory_size, error);
    g_atomic_pointer_set (&self->memory, memory);
  }
  g_mutex_unlock (&self->lock);
  return self->memory != NULL;
}

TinyDevice *
tiny_buffer_get_device (TinyBuffer *self)
{
  return self->device;
}

const char *
tiny_buffer_get_device_name (TinyBuffer *self)
{
  return tiny_device_get_name (self->device);
}

gsize
tiny_buffer_get_n_bytes (TinyBuffer *self)
{
  return self->n_bytes;
}

gsize
tiny_buffer_get_offset (TinyBuffer *self)
{
  return self->offset;
}

TinyPluginBuffer *
tiny_buffer_get_handle (TinyBuffer *self)
{
  return self->parent ? self->parent->memory : self->memory;
}

static gboolean
transfer (TinyBuffer *self,
          TinyCommandType type,
          gsize offset,
          gpointer data,
          gsize n_bytes,
          GError **error)
{
  if (offset > self->n_bytes || n_bytes > self->n_bytes - offset) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "%s: bytes %" G_GSIZE_FORMAT " to %" G_GSIZE_FORMAT
                 " are outside a buffer of %" G_GSIZE_FORMAT,
                 tiny_buffer_get_device_name (self), offset, offset + n_bytes, self->n_bytes);
    return FALSE;
  }
  if (!tiny_buffer_ensure (self, error))
    return FALSE;
  if (n_bytes == 0)
    return TRUE;
  TinySpan span = { tiny_buffer_get_handle (self), self->offset + offset, n_bytes };
  TinyCommand command = { .struct_size = sizeof command, .type = type, .host = data };
  if (type == TINY_COMMAND_UPLOAD)
    command.dst = span;
  else
    command.src = span;
  return tiny_device_submit (self->device, &command, 1, NULL, error);
}

gboolean
tiny_buffer_upload (TinyBuffer *self, gsize offset, gconstpointer data, gsize n_bytes, GError **error)
{
  return transfer (self, TINY_COMMAND_UPLOAD, offset, (gpointer) data, n_bytes, error);
}

gboolean
tiny_buffer_download (TinyBuffer *self, gsize offset, gpointer data, gsize n_bytes, GError **error)
{
  return transfer (self, TINY_COMMAND_DOWNLOAD, offset, data, n_bytes, error);
}

gpointer
tiny_buffer_map (TinyBuffer *self)
{
  const TinyDeviceTable *table = tiny_device_get_table (self->device);
  void *address = NULL;
  if (table->map == NULL || !tiny_buffer_ensure (self, NULL))
    return NULL;
  TinyPluginError plugin_error = TINY_PLUGIN_ERROR_INIT;
  if (table->map (tiny_device_get_handle (self->device), tiny_buffer_get_handle (self), &address,
                  &plugin_error)
      < 0)
    return NULL;
  return (guint8 *) address + self->offset;
}
