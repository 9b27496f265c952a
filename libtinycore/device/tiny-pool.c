/* SPDX-License-Identifier: MIT
 *
 * tiny-pool.c: device memory, kept for reuse. */
#include "device/tiny-pool.h"

#include "base/tiny-error.h"
#include "device/device-private.h"

enum { LEAST = 256, STEPS = 8, WORD = 4 };
/* What may wait: this much, or a quarter of what is in use. */
static const guint64 may_wait = (guint64) 128 << 20;

struct TinyPool {
  TinyDevice *device;
  GMutex lock;
  GHashTable *classes; /* size → GQueue of TinyBlock.in_class, newest first */
  GQueue age;          /* TinyBlock.in_age, newest first */
  TinyDeviceMemory memory;
};

static void
free_class (gpointer data)
{
  g_free (data); /* its links are the blocks' own */
}

TinyPool *
tiny_pool_new (TinyDevice *device)
{
  TinyPool *self = g_new0 (TinyPool, 1);
  self->device = device;
  g_mutex_init (&self->lock);
  g_queue_init (&self->age);
  self->classes = g_hash_table_new_full (NULL, NULL, NULL, free_class);
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

static gsize
class_of (gsize n_bytes)
{
  if (n_bytes <= LEAST)
    return LEAST;
  gsize power = (gsize) 1 << (g_bit_storage (n_bytes - 1) - 1);
  gsize step = MAX (power / STEPS, LEAST);
  return (n_bytes + step - 1) / step * step;
}

/* ---- the plugin's side ---- */
static void
free_block (TinyPool *self, TinyBlock *block)
{
  tiny_queue_wait (self->device->queue, block->used, G_MAXUINT64, NULL);
  TinyDevice *runner = self->device->runner;
  if (block->beside != NULL && !tiny_device_is_abandoned (runner))
    runner->table.free (runner->handle, block->beside);
  if (!tiny_device_is_abandoned (self->device))
    self->device->table.free (self->device->handle, block->handle);
  if (block->destroy != NULL)
    block->destroy (block->owner);
  g_slice_free (TinyBlock, block);
}

static TinyBlock *
allocate (TinyPool *self, gsize size, TinyStatus *out_status, TinyPluginError *plugin_error)
{
  TinyDevice *device = self->device;
  TinyPluginBuffer *handle = NULL;
  *out_status = device->table.alloc (device->handle, size, &handle, plugin_error);
  if (*out_status >= 0 && handle == NULL) {
    g_strlcpy (plugin_error->text, "the plugin says OK and gives no buffer",
               sizeof plugin_error->text);
    *out_status = TINY_STATUS_INTERNAL;
  }
  if (*out_status < 0)
    return NULL;
  TinyBlock *block = g_slice_new0 (TinyBlock);
  block->handle = handle;
  block->n_bytes = size;
  block->in_class.data = block->in_age.data = block;
  if (device->table.map != NULL && (device->info.flags & TINY_DEVICE_HOST_MEMORY) != 0
      && device->table.map (device->handle, handle, &block->host, plugin_error) < 0)
    block->host = NULL;
  return block;
}

static void
fail (TinyPool *self,
      TinyStatus status,
      const TinyPluginError *plugin_error,
      gsize n_bytes,
      GError **error)
{
  TinyDeviceMemory memory;
  tiny_pool_get_memory (self, &memory);
  g_autofree char *size = g_format_size (n_bytes);
  g_autofree char *live = g_format_size (memory.live_bytes);
  g_autofree char *what
      = g_strdup_printf ("allocating %s (%s in use by this program)", size, live);
  tiny_device_check (self->device, status, plugin_error, what, error);
}

/* ---- waiting blocks; under the lock ---- */
static void
unlink_block (TinyPool *self, TinyBlock *block)
{
  GQueue *waiting = g_hash_table_lookup (self->classes, GSIZE_TO_POINTER (block->n_bytes));
  g_queue_unlink (waiting, &block->in_class);
  g_queue_unlink (&self->age, &block->in_age);
  self->memory.pooled_bytes -= block->n_bytes;
}

static void
link_block (TinyPool *self, TinyBlock *block)
{
  gpointer key = GSIZE_TO_POINTER (block->n_bytes);
  GQueue *waiting = g_hash_table_lookup (self->classes, key);
  if (waiting == NULL)
    g_hash_table_insert (self->classes, key, waiting = g_new0 (GQueue, 1));
  g_queue_push_head_link (waiting, &block->in_class);
  g_queue_push_head_link (&self->age, &block->in_age);
  self->memory.pooled_bytes += block->n_bytes;
}

static void
count_live (TinyPool *self, gsize n_bytes)
{
  self->memory.live_bytes += n_bytes;
  self->memory.peak_bytes = MAX (self->memory.peak_bytes, self->memory.live_bytes);
}

static TinyBlock *
take_waiting (TinyPool *self, gsize size)
{
  TinyBlock *block = NULL;
  g_mutex_lock (&self->lock);
  GQueue *waiting = g_hash_table_lookup (self->classes, GSIZE_TO_POINTER (size));
  if (waiting != NULL && waiting->head != NULL) {
    block = waiting->head->data;
    unlink_block (self, block);
    count_live (self, size);
    self->memory.n_reuses++;
    block->written = 0; /* of the last user's values nobody asks any more */
  }
  g_mutex_unlock (&self->lock);
  return block;
}

/* ---- the buffers' side ---- */
TinyBlock *
tiny_pool_take (TinyPool *self, gsize n_bytes, GError **error)
{
  if (!tiny_device_check_alive (self->device, "allocating", error))
    return NULL;
  guint64 most = self->device->info.max_buffer_bytes;
  if (n_bytes > G_MAXSSIZE / 2 || (most != 0 && n_bytes > most)) {
    g_autofree char *limit = g_format_size (most != 0 ? most : G_MAXSSIZE / 2);
    g_set_error (error, TINY_ERROR, TINY_ERROR_OUT_OF_MEMORY,
                 "%s: a buffer of %" G_GSIZE_FORMAT
                 " bytes is larger than the device's limit, %s",
                 self->device->name, n_bytes, limit);
    return NULL;
  }
  gsize size = class_of (n_bytes);
  if (most != 0 && size > most)
    size = MIN ((n_bytes + WORD - 1) / WORD * WORD, most);
  TinyBlock *block = take_waiting (self, size);
  if (block != NULL)
    return block;
  TinyStatus status;
  TinyPluginError plugin_error;
  tiny_plugin_error_init (&plugin_error);
  block = allocate (self, size, &status, &plugin_error);
  if (block == NULL && status == TINY_STATUS_OUT_OF_MEMORY) {
    tiny_pool_trim (self);
    tiny_plugin_error_init (&plugin_error);
    block = allocate (self, size, &status, &plugin_error);
  }
  if (block == NULL) {
    fail (self, status, &plugin_error, n_bytes, error);
    return NULL;
  }
  g_mutex_lock (&self->lock);
  count_live (self, size);
  self->memory.n_allocations++;
  g_mutex_unlock (&self->lock);
  return block;
}

/* Takes from the oldest until no more than allowed waits; the blocks to free, as in_age links. */
static void
collect_surplus (TinyPool *self, GQueue *out)
{
  guint64 most = MAX (may_wait, self->memory.live_bytes / 4);
  if (g_atomic_int_get (&self->device->lost))
    most = 0;
  while (self->memory.pooled_bytes > most) {
    TinyBlock *block = self->age.tail->data;
    unlink_block (self, block);
    g_queue_push_head_link (out, &block->in_age);
  }
}

static void
free_all (TinyPool *self, GQueue *blocks)
{
  for (GList *link = g_queue_pop_head_link (blocks); link != NULL;
       link = g_queue_pop_head_link (blocks))
    free_block (self, link->data);
}

void
tiny_pool_give (TinyPool *self, TinyBlock *block)
{
  GQueue surplus = G_QUEUE_INIT;
  g_mutex_lock (&self->lock);
  self->memory.live_bytes -= block->n_bytes;
  if (block->is_foreign)
    g_queue_push_head_link (&surplus, &block->in_age);
  else {
    link_block (self, block);
    collect_surplus (self, &surplus);
  }
  g_mutex_unlock (&self->lock);
  free_all (self, &surplus);
}

TinyBlock *
tiny_pool_adopt (TinyPool *self, TinyPluginBuffer *handle, gsize n_bytes)
{
  TinyBlock *block = g_slice_new0 (TinyBlock);
  block->handle = handle;
  block->n_bytes = n_bytes;
  block->is_foreign = TRUE;
  block->in_class.data = block->in_age.data = block;
  g_mutex_lock (&self->lock);
  count_live (self, n_bytes);
  g_mutex_unlock (&self->lock);
  return block;
}

void
tiny_pool_trim (TinyPool *self)
{
  GQueue all = G_QUEUE_INIT;
  g_mutex_lock (&self->lock);
  while (self->age.tail != NULL) {
    TinyBlock *block = self->age.tail->data;
    unlink_block (self, block);
    g_queue_push_head_link (&all, &block->in_age);
  }
  g_mutex_unlock (&self->lock);
  free_all (self, &all);
}

void
tiny_pool_get_memory (TinyPool *self, TinyDeviceMemory *out)
{
  g_mutex_lock (&self->lock);
  *out = self->memory;
  g_mutex_unlock (&self->lock);
}

void
tiny_pool_reset_peak (TinyPool *self)
{
  g_mutex_lock (&self->lock);
  self->memory.peak_bytes = self->memory.live_bytes;
  g_mutex_unlock (&self->lock);
}
