/* SPDX-License-Identifier: MIT
 *
 * tiny-pool.c: device memory kept for reuse, by size class. */
#include "device/tiny-pool.h"

#include "base/tiny-error.h"
#include "device/device-private.h"

enum { LEAST = 256, STEPS = 8, MAX_POOLED = 256 << 20 };

struct TinyPool {
  TinyDevice *device;
  GMutex lock;
  GHashTable *classes; /* size → GPtrArray of TinyPluginBuffer */
  TinyDeviceMemory memory;
};

TinyPool *
tiny_pool_new (TinyDevice *device)
{
  TinyPool *self = g_new0 (TinyPool, 1);
  self->device = device;
  g_mutex_init (&self->lock);
  self->classes
      = g_hash_table_new_full (NULL, NULL, NULL, (GDestroyNotify) g_ptr_array_unref);
  return self;
}

void
tiny_pool_free (TinyPool *self)
{
  if (self == NULL)
    return;
  tiny_pool_trim (self);
  g_hash_table_unref (self->classes);
  g_mutex_clear (&self->lock);
  g_free (self);
}

/* The size class: an eighth of a power of two apart, so at most an eighth is wasted. */
static gsize
class_of (gsize n_bytes)
{
  if (n_bytes <= LEAST)
    return LEAST;
  gsize power = (gsize) 1 << (g_bit_storage (n_bytes - 1) - 1);
  gsize step = MAX (power / STEPS, LEAST);
  return (n_bytes + step - 1) / step * step;
}

static TinyPluginBuffer *
take_waiting (TinyPool *self, gsize size)
{
  TinyPluginBuffer *memory = NULL;
  g_mutex_lock (&self->lock);
  GPtrArray *waiting = g_hash_table_lookup (self->classes, GSIZE_TO_POINTER (size));
  if (waiting != NULL && waiting->len > 0) {
    memory = g_ptr_array_remove_index_fast (waiting, waiting->len - 1);
    self->memory.pooled -= size;
    self->memory.live += size;
    self->memory.peak = MAX (self->memory.peak, self->memory.live);
  }
  g_mutex_unlock (&self->lock);
  return memory;
}

TinyPluginBuffer *
tiny_pool_take (TinyPool *self, gsize n_bytes, gsize *out_size, GError **error)
{
  if (!tiny_device_check_alive (self->device, error))
    return NULL;
  if (n_bytes > G_MAXSIZE / 4) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_OUT_OF_MEMORY,
                 "%s: a buffer of %" G_GSIZE_FORMAT " bytes is beyond any memory",
                 tiny_device_get_name (self->device), n_bytes);
    return NULL;
  }
  gsize size = class_of (n_bytes);
  *out_size = size;
  TinyPluginBuffer *memory = take_waiting (self, size);
  if (memory != NULL)
    return memory;
  const TinyDeviceTable *table = tiny_device_get_table (self->device);
  TinyPluginError plugin_error = TINY_PLUGIN_ERROR_INIT;
  TinyPluginDevice *handle = tiny_device_get_handle (self->device);
  TinyStatus status = table->alloc (handle, size, &memory, &plugin_error);
  if (status == TINY_STATUS_OUT_OF_MEMORY) {
    tiny_pool_trim (self);
    status = table->alloc (handle, size, &memory, &plugin_error);
  }
  if (status < 0) {
    g_autofree char *what = g_strdup_printf ("allocating %" G_GSIZE_FORMAT " bytes", n_bytes);
    tiny_device_check (self->device, status, &plugin_error, what, error);
    return NULL;
  }
  g_mutex_lock (&self->lock);
  self->memory.live += size;
  self->memory.peak = MAX (self->memory.peak, self->memory.live);
  g_mutex_unlock (&self->lock);
  return memory;
}

void
tiny_pool_give (TinyPool *self, TinyPluginBuffer *memory, gsize size)
{
  gboolean keep;
  g_mutex_lock (&self->lock);
  self->memory.live -= size;
  keep = self->memory.pooled + size <= MAX_POOLED;
  if (keep) {
    GPtrArray *waiting = g_hash_table_lookup (self->classes, GSIZE_TO_POINTER (size));
    if (waiting == NULL) {
      waiting = g_ptr_array_new ();
      g_hash_table_insert (self->classes, GSIZE_TO_POINTER (size), waiting);
    }
    g_ptr_array_add (waiting, memory);
    self->memory.pooled += size;
  }
  g_mutex_unlock (&self->lock);
  if (!keep)
    tiny_device_get_table (self->device)->free (tiny_device_get_handle (self->device), memory);
}

void
tiny_pool_trim (TinyPool *self)
{
  GHashTableIter iter;
  gpointer value;
  g_mutex_lock (&self->lock);
  g_hash_table_iter_init (&iter, self->classes);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    GPtrArray *waiting = value;
    for (guint i = 0; i < waiting->len; i++)
      tiny_device_get_table (self->device)
          ->free (tiny_device_get_handle (self->device), waiting->pdata[i]);
    g_ptr_array_set_size (waiting, 0);
  }
  self->memory.pooled = 0;
  g_mutex_unlock (&self->lock);
}

void
tiny_pool_get_memory (TinyPool *self, TinyDeviceMemory *out)
{
  g_mutex_lock (&self->lock);
  *out = self->memory;
  g_mutex_unlock (&self->lock);
}
