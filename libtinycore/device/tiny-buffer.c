/* SPDX-License-Identifier: MIT
 *
 * tiny-buffer.c: a piece of a device's memory.
 *
 * The block is set once and stays until the end, so whoever has seen it may use it without a lock;
 * only making it takes one. On devices with host memory, copies are memcpy(). On others they are
 * commands on a queue of their own, so that they run beside kernels. Of kernels that run on an
 * asynchronous device the block knows the last: copies wait for it, and nothing is pending when they
 * return. */
#include "device/tiny-buffer.h"

#include <string.h>

#include "base/tiny-error.h"
#include "base/tiny-reuse.h"
#include "base/tiny-trace.h"
#include "device/device-private.h"

struct _TinyBuffer {
  GObject parent_instance;
  TinyDevice *device;
  TinyBuffer *base; /* of a view: the buffer with the memory; else NULL */
  gsize offset, n_bytes;
  TinyBlock *block; /* not of views */
  guint version;    /* not of views */
  gint is_shared;   /* not of views */
  gint is_recorded; /* likewise */
};

G_DEFINE_FINAL_TYPE (TinyBuffer, tiny_buffer, G_TYPE_OBJECT)

static GMutex ensure_lock;

/* Gives up its memory, or that of which it is a view. */
static void
clear (TinyBuffer *self)
{
  if (self->block != NULL)
    tiny_pool_give (self->device->pool, self->block);
  self->block = NULL;
  g_clear_object (&self->base);
  g_clear_object (&self->device);
}

/* ---- buffers that come again ----
 * Each operation that is realised by itself makes one and drops one, and GObject takes longer over that than all else here:
 * some are kept for what is made next. */
static struct {
  GMutex lock;
  TinyBuffer *list[TINY_REUSE_OBJECTS + 1];
  guint n;
} spare;

/* Keeps @self, whose last reference this takes then. What others tie to an object is its data. One that is kept has no
 * device: it is nobody's to drop, and kept twice two would get it. */
static gboolean
recycle (TinyBuffer *self)
{
  GObject *object = (GObject *) self;
  g_return_val_if_fail (self->device != NULL, TRUE);
  if (g_atomic_int_get (&object->ref_count) > 1
      || ((gsize) object->qdata & ~(gsize) G_DATALIST_FLAGS_MASK) != 0)
    return FALSE;
  clear (self);
  memset (&self->device, 0, sizeof *self - G_STRUCT_OFFSET (TinyBuffer, device));
  g_mutex_lock (&spare.lock);
  if (spare.n < TINY_REUSE_OBJECTS)
    spare.list[spare.n++] = g_steal_pointer (&self);
  g_mutex_unlock (&spare.lock);
  g_clear_object (&self);
  return TRUE;
}

static TinyBuffer *
take_spare (void)
{
  g_mutex_lock (&spare.lock);
  TinyBuffer *self = spare.n > 0 ? spare.list[--spare.n] : NULL;
  g_mutex_unlock (&spare.lock);
  return self;
}

TinyBuffer *
tiny_buffer_new (TinyDevice *device, gsize n_bytes)
{
  TinyBuffer *self = take_spare ();
  if (self == NULL)
    self = g_object_new (TINY_TYPE_BUFFER, NULL);
  self->device = g_object_ref (device);
  self->n_bytes = n_bytes;
  return self;
}

TinyBuffer *
tiny_buffer_new_view (TinyBuffer *base, gsize offset, gsize n_bytes)
{
  g_return_val_if_fail (offset <= base->n_bytes && n_bytes <= base->n_bytes - offset, NULL);
  TinyBuffer *self = tiny_buffer_new (base->device, n_bytes);
  self->base = g_object_ref (base->base ? base->base : base);
  self->offset = base->offset + offset;
  return self;
}

TinyBuffer *
tiny_buffer_new_import (TinyDevice *device, gpointer handle, GError **error)
{
  TinyPluginError plugin_error;
  TinyPluginBuffer *imported = NULL;
  uint64_t n_bytes = 0;
  tiny_plugin_error_init (&plugin_error);
  if (!tiny_device_check_alive (device, "importing memory", error))
    return NULL;
  TinyStatus status = TINY_STATUS_UNSUPPORTED;
  if (device->table.import != NULL && handle != NULL)
    status = device->table.import (device->handle, handle, &imported, &n_bytes, &plugin_error);
  if (status >= 0 && imported == NULL) {
    status = TINY_STATUS_INTERNAL;
    g_strlcpy (plugin_error.text, "import() gave no memory", sizeof plugin_error.text);
  }
  if (!tiny_device_check (device, status, &plugin_error, "importing memory", error))
    return NULL;
  TinyBuffer *self = tiny_buffer_new (device, n_bytes);
  self->block = tiny_pool_adopt (device->pool, imported, n_bytes);
  return self;
}

gboolean
tiny_buffer_can_be_host (TinyDevice *device, gconstpointer memory)
{
  return device->table.import_host != NULL && memory != NULL
         && (device->info.flags & TINY_DEVICE_HOST_MEMORY) != 0
         && GPOINTER_TO_SIZE (memory) % MAX (device->info.alignment, 1) == 0;
}

TinyBuffer *
tiny_buffer_new_host (TinyDevice *device,
                      gpointer memory,
                      gsize n_bytes,
                      GDestroyNotify destroy,
                      gpointer owner,
                      GError **error)
{
  TinyPluginError plugin_error;
  TinyPluginBuffer *imported = NULL;
  tiny_plugin_error_init (&plugin_error);
  if (!tiny_device_check_alive (device, "importing host memory", error))
    return NULL;
  TinyStatus status = TINY_STATUS_UNSUPPORTED;
  if (tiny_buffer_can_be_host (device, memory))
    status
        = device->table.import_host (device->handle, memory, n_bytes, &imported, &plugin_error);
  if (status >= 0 && imported == NULL)
    status = TINY_STATUS_INTERNAL;
  if (!tiny_device_check (device, status, &plugin_error, "importing host memory", error))
    return NULL;
  TinyBuffer *self = tiny_buffer_new (device, n_bytes);
  self->block = tiny_pool_adopt (device->pool, imported, n_bytes);
  self->block->host = memory;
  self->block->destroy = destroy;
  self->block->owner = owner;
  tiny_buffer_share (self);
  return self;
}

TinyBuffer *
tiny_buffer_ref (TinyBuffer *self)
{
  return g_object_ref (self);
}

void
tiny_buffer_unref (TinyBuffer *self)
{
  if (self != NULL && !recycle (self))
    g_object_unref (self);
}

static void
tiny_buffer_finalize (GObject *object)
{
  clear (TINY_BUFFER (object));
  G_OBJECT_CLASS (tiny_buffer_parent_class)->finalize (object);
}

static void
tiny_buffer_class_init (TinyBufferClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = tiny_buffer_finalize;
}

static void
tiny_buffer_init (TinyBuffer *self)
{
}

TinyDevice *
tiny_buffer_get_device (TinyBuffer *self)
{
  return self->device;
}

const char *
tiny_buffer_get_device_name (TinyBuffer *self)
{
  return self->device->name;
}

static GQuark
get_label_quark (void)
{
  return g_quark_from_static_string ("tiny-buffer-label");
}

void
tiny_buffer_set_label (TinyBuffer *self, const char *label)
{
  g_object_set_qdata (G_OBJECT (self), get_label_quark (), (gpointer) label);
}

const char *
tiny_buffer_get_label (TinyBuffer *self)
{
  return g_object_get_qdata (G_OBJECT (self), get_label_quark ());
}

gsize
tiny_buffer_get_n_bytes (TinyBuffer *self)
{
  return self->n_bytes;
}

/* ---- memory ---- */
static TinyBlock *
get_block (TinyBuffer *self)
{
  return g_atomic_pointer_get (&(self->base ? self->base : self)->block);
}

static gboolean
take_block (TinyBuffer *self, GError **error)
{
  /* Taking memory happens outside the lock, which all buffers share; a loser gives its own back. */
  TinyBlock *block = tiny_pool_take (self->device->pool, self->n_bytes, error);
  if (block == NULL)
    return FALSE;
  g_mutex_lock (&ensure_lock);
  if (self->block == NULL)
    g_atomic_pointer_set (&self->block, g_steal_pointer (&block));
  g_mutex_unlock (&ensure_lock);
  if (block != NULL)
    tiny_pool_give (self->device->pool, block);
  return TRUE;
}

gboolean
tiny_buffer_ensure (TinyBuffer *self, GError **error)
{
  return G_LIKELY (get_block (self) != NULL)
         || take_block (self->base ? self->base : self, error);
}

TinyPluginBuffer *
tiny_buffer_get_handle (TinyBuffer *self)
{
  const TinyBlock *block = get_block (self);
  return block ? block->handle : NULL;
}

static gboolean
import_beside (TinyDevice *runner, TinyBlock *block, GError **error)
{
  TinyPluginError plugin_error;
  tiny_plugin_error_init (&plugin_error);
  const gsize alignment = MAX (runner->info.alignment, 1);
  TinyStatus status = TINY_STATUS_INVALID;
  if (block->host == NULL || GPOINTER_TO_SIZE (block->host) % alignment != 0)
    g_snprintf (plugin_error.text, sizeof plugin_error.text,
                "map() gave %p, wanted is host memory aligned to %" G_GSIZE_FORMAT, block->host,
                alignment);
  else
    status = runner->table.import_host (runner->handle, block->host, block->n_bytes,
                                        &block->beside, &plugin_error);
  if (status >= 0 && block->beside == NULL)
    status = TINY_STATUS_INTERNAL;
  return tiny_device_check (runner, status, &plugin_error, "importing host memory", error);
}

TinyPluginBuffer *
tiny_buffer_get_handle_on (TinyBuffer *self, TinyDevice *device, GError **error)
{
  TinyBlock *block = get_block (self);
  if (device == self->device)
    return block->handle;
  /* It may be another one of the same name, opened since. */
  if (!tiny_device_check_alive (self->device, "using its memory", error))
    return NULL;
  g_mutex_lock (&self->device->memory_lock);
  const gboolean good = block->beside != NULL || import_beside (device, block, error);
  g_mutex_unlock (&self->device->memory_lock);
  return good ? block->beside : NULL;
}

guint64
tiny_buffer_get_offset (TinyBuffer *self)
{
  return self->offset;
}

TinySpan
tiny_buffer_get_span (TinyBuffer *self)
{
  return (TinySpan){ tiny_buffer_get_handle (self), self->offset, self->n_bytes };
}

void *
tiny_buffer_map (TinyBuffer *self)
{
  const TinyBlock *block = get_block (self);
  if (block == NULL || block->host == NULL || tiny_device_is_lost (self->device))
    return NULL;
  return (guint8 *) block->host + self->offset;
}

/* ---- what the device still does ---- */

static guint64
get_point (const guint64 *point)
{
  return __atomic_load_n (point, __ATOMIC_ACQUIRE);
}

static void
raise_point (guint64 *point, guint64 to)
{
  guint64 now = __atomic_load_n (point, __ATOMIC_RELAXED);
  while (now < to
         && !__atomic_compare_exchange_n (point, &now, to, TRUE, __ATOMIC_RELEASE,
                                          __ATOMIC_RELAXED))
    ;
}

void
tiny_buffer_mark (TinyBuffer *self, guint64 point, gboolean is_written)
{
  TinyBlock *block = get_block (self);
  if (point != TINY_POINT_NEVER)
    raise_point (&block->used, point);
  if (is_written)
    raise_point (&block->written, point);
}

gboolean
tiny_buffer_check (TinyBuffer *self, GError **error)
{
  const TinyBlock *block = get_block (self);
  const guint64 point = block == NULL ? 0 : get_point (&block->written);
  return point == TINY_POINT_NEVER || tiny_queue_check (self->device->queue, point, error);
}

/* FALSE with its error if a kernel was to write the values and ran nowhere. */
static gboolean
check_computed (TinyBuffer *self, GError **error)
{
  if (G_LIKELY (get_point (&get_block (self)->written) != TINY_POINT_NEVER))
    return TRUE;
  g_set_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED,
               "%s: the device compiles kernels and runs nothing, so what they compute has no "
               "values; choose another with DEV=",
               self->device->name);
  return FALSE;
}

static gboolean
sync_memory (TinyBuffer *self, gsize offset, gsize n, guint32 direction, GError **error)
{
  TinyDevice *device = self->device;
  TinyPluginError plugin_error;
  if ((device->info.flags & TINY_DEVICE_NON_COHERENT) == 0 || n == 0)
    return TRUE;
  tiny_plugin_error_init (&plugin_error);
  const TinySpan span = { get_block (self)->handle, self->offset + offset, n };
  TinyStatus status = device->table.sync (device->handle, &span, direction, &plugin_error);
  return tiny_device_check (device, status, &plugin_error, "synchronising memory", error);
}

gboolean
tiny_buffer_begin_access (
    TinyBuffer *self, gboolean writes, gsize offset, gsize n, GError **error)
{
  TinyQueue *queue = self->device->queue;
  TinyBlock *block = get_block (self);
  if (!writes)
    return check_computed (self, error)
           && tiny_queue_wait (queue, get_point (&block->written), G_MAXUINT64, error)
           && sync_memory (self, offset, n, TINY_SYNC_TO_HOST, error);
  tiny_queue_wait (queue, get_point (&block->used), G_MAXUINT64, NULL);
  /* Values that were never computed are not missed any more if all of them come from the host now. */
  if (n == (self->base ? self->base : self)->n_bytes)
    __atomic_store_n (&block->written, 0, __ATOMIC_RELEASE);
  return tiny_device_check_alive (self->device, "waiting to write", error);
}

gboolean
tiny_buffer_end_access (
    TinyBuffer *self, gboolean writes, gsize offset, gsize n, GError **error)
{
  return !writes || sync_memory (self, offset, n, TINY_SYNC_TO_DEVICE, error);
}

/* ---- versions ---- */
void
tiny_buffer_touch (TinyBuffer *self)
{
  g_atomic_int_inc ((gint *) &(self->base ? self->base : self)->version);
}

void
tiny_buffer_set_recorded (TinyBuffer *self)
{
  g_atomic_int_set (&(self->base ? self->base : self)->is_recorded, TRUE);
}

gboolean
tiny_buffer_is_recorded (TinyBuffer *self)
{
  return g_atomic_int_get (&(self->base ? self->base : self)->is_recorded);
}

void
tiny_buffer_share (TinyBuffer *self)
{
  g_atomic_int_set (&(self->base ? self->base : self)->is_shared, TRUE);
}

guint
tiny_buffer_get_version (TinyBuffer *self)
{
  if (g_atomic_int_get (&(self->base ? self->base : self)->is_shared))
    tiny_buffer_touch (self);
  return (guint) g_atomic_int_get ((gint *) &(self->base ? self->base : self)->version);
}

/* ---- copies ---- */
static gboolean
prepare (TinyBuffer *self, const char *what, gsize offset, gsize n, GError **error)
{
  if (offset > self->n_bytes || n > self->n_bytes - offset) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "%s: %s: bytes from %" G_GSIZE_FORMAT " to %" G_GSIZE_FORMAT
                 " of a buffer that has %" G_GSIZE_FORMAT,
                 self->device->name, what, offset, offset + n, self->n_bytes);
    return FALSE;
  }
  return tiny_device_check_alive (self->device, what, error)
         && tiny_buffer_ensure (self, error);
}

static gboolean
move (
    TinyBuffer *self, TinyCommandType type, gsize offset, guint8 *host, gsize n, GError **error)
{
  TinyCommand command = { .struct_size = sizeof command, .type = type, .host = host };
  *(type == TINY_COMMAND_UPLOAD ? &command.dst : &command.src)
      = (TinySpan){ tiny_buffer_get_handle (self), self->offset + offset, n };
  guint64 after = type == TINY_COMMAND_DOWNLOAD ? get_point (&get_block (self)->written) : 0;
  return tiny_device_transfer (self->device, &command, after, error);
}

/* Bytes within one of the device's units: taken out of the whole unit, or put into it, which nobody else may do to
 * that unit meanwhile. */
static gboolean
move_part (TinyBuffer *self,
           TinyCommandType type,
           gsize offset,
           gsize skip,
           guint8 *host,
           gsize n,
           GError **error)
{
  const gsize unit = self->device->info.transfer_bytes;
  guint8 bytes[64];
  if (type == TINY_COMMAND_DOWNLOAD) {
    const gboolean good = move (self, type, offset - skip, bytes, unit, error);
    if (good)
      memcpy (host, bytes + skip, n);
    return good;
  }
  g_mutex_lock (&self->device->memory_lock);
  gboolean good = move (self, TINY_COMMAND_DOWNLOAD, offset - skip, bytes, unit, error);
  if (good) {
    memcpy (bytes + skip, host, n);
    good = move (self, type, offset - skip, bytes, unit, error);
  }
  g_mutex_unlock (&self->device->memory_lock);
  return good;
}

/* An upload finds nothing pending, see upload(). */
static gboolean
transfer (
    TinyBuffer *self, TinyCommandType type, gsize offset, guint8 *host, gsize n, GError **error)
{
  const gsize unit = MAX (self->device->info.transfer_bytes, 1);
  for (gsize size; n > 0; offset += size, host += size, n -= size) {
    const gsize skip = (self->offset + offset) % unit;
    const gboolean is_whole = skip == 0 && n >= unit;
    size = is_whole ? n - n % unit : MIN (n, unit - skip);
    if (!(is_whole ? move (self, type, offset, host, size, error)
                   : move_part (self, type, offset, skip, host, size, error)))
      return FALSE;
  }
  return TRUE;
}

static gboolean
upload (TinyBuffer *self, gsize offset, const void *data, gsize n, GError **error)
{
  if (!prepare (self, "upload", offset, n, error))
    return FALSE;
  guint8 *host = tiny_buffer_map (self);
  tiny_buffer_touch (self);
  if (n == 0)
    return TRUE;
  if (!tiny_buffer_begin_access (self, TRUE, offset, n, error))
    return FALSE;
  if (host == NULL)
    return transfer (self, TINY_COMMAND_UPLOAD, offset, (guint8 *) data, n, error);
  memcpy (host + offset, data, n);
  return tiny_buffer_end_access (self, TRUE, offset, n, error);
}

static gboolean
download (TinyBuffer *self, gsize offset, void *data, gsize n, GError **error)
{
  if (!prepare (self, "download", offset, n, error))
    return FALSE;
  const guint8 *host = tiny_buffer_map (self);
  if (n == 0)
    return TRUE;
  if (host == NULL)
    return check_computed (self, error)
           && transfer (self, TINY_COMMAND_DOWNLOAD, offset, data, n, error);
  if (!tiny_buffer_begin_access (self, FALSE, offset, n, error))
    return FALSE;
  memcpy (data, host + offset, n);
  return tiny_buffer_end_access (self, FALSE, offset, n, error);
}

static void
end_transfer (TinyBuffer *self, gint64 start, const char *name, gsize n)
{
  const TinyTraceArg args[]
      = { { "device", self->device->name, 0 }, { "bytes", NULL, (double) n } };
  tiny_trace_end (start, "transfer", name, args, G_N_ELEMENTS (args));
}

gboolean
tiny_buffer_upload (TinyBuffer *self, gsize offset, const void *data, gsize n, GError **error)
{
  gint64 start = tiny_trace_begin ();
  gboolean good = upload (self, offset, data, n, error);
  end_transfer (self, start, "upload", n);
  return good;
}

gboolean
tiny_buffer_download (TinyBuffer *self, gsize offset, void *data, gsize n, GError **error)
{
  gint64 start = tiny_trace_begin ();
  gboolean good = download (self, offset, data, n, error);
  end_transfer (self, start, "download", n);
  return good;
}
