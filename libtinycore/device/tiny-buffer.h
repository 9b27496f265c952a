/* SPDX-License-Identifier: MIT
 *
 * tiny-buffer.h: a piece of a device's memory.
 *
 * Memory is taken from the device's pool at the first use (tiny_buffer_ensure) and given back to it
 * with the last reference; its contents are undefined until written. A view is a part of another
 * buffer, which it keeps alive. All calls are thread-safe; ordering writes and reads of the same
 * bytes is the caller's. */
#pragma once

#include "device/tiny-device.h"

G_BEGIN_DECLS

#define TINY_TYPE_BUFFER (tiny_buffer_get_type ())
TINY_API
G_DECLARE_FINAL_TYPE (TinyBuffer, tiny_buffer, TINY, BUFFER, GObject)

/* A buffer without memory yet. 0 bytes are legal. */
TinyBuffer *tiny_buffer_new (TinyDevice *device, gsize n_bytes);
/* Bytes [offset, offset + n_bytes) of @base, which has them and may be a view itself. */
TinyBuffer *tiny_buffer_new_view (TinyBuffer *base, gsize offset, gsize n_bytes);
/**
 * tiny_buffer_new_import: (skip)
 * @device: a device
 * @handle: memory made with the device's own driver in tiny_device_get_context(), such as a cl_mem
 * @error: return location
 *
 * That memory as a buffer, of its size; nothing is copied, and the driver keeps it as long as the
 * buffer lives. Whoever writes to it by other means does so while the buffer's device does not use it,
 * and says so with tiny_buffer_touch(). Errors: %TINY_ERROR_UNSUPPORTED where the device imports nothing,
 * %TINY_ERROR_INVALID for what is no memory of that context, %TINY_ERROR_DEVICE_LOST.
 *
 * Returns: (transfer full): the buffer, or %NULL
 */
TINY_API TinyBuffer *
tiny_buffer_new_import (TinyDevice *device, gpointer handle, GError **error);
/* Host memory of somebody else's, which calls @destroy (@owner) when it is not needed any more, from any thread. It
 * is shared, see tiny_buffer_share(). Errors, after which @destroy is not called: %TINY_ERROR_UNSUPPORTED where the
 * device takes no such memory, %TINY_ERROR_INVALID for memory that is not aligned as it wants,
 * %TINY_ERROR_DEVICE_LOST. */
TinyBuffer *tiny_buffer_new_host (TinyDevice *device,
                                  gpointer memory,
                                  gsize n_bytes,
                                  GDestroyNotify destroy,
                                  gpointer owner,
                                  GError **error);
/* Whether tiny_buffer_new_host() can work for that memory. */
gboolean tiny_buffer_can_be_host (TinyDevice *device, gconstpointer memory);
TinyBuffer *tiny_buffer_ref (TinyBuffer *self);
void tiny_buffer_unref (TinyBuffer *self); /* NULL is fine */

TinyDevice *tiny_buffer_get_device (TinyBuffer *self);
const char *tiny_buffer_get_device_name (TinyBuffer *self);
/* The program's name for its values, for DEBUG=2: interned, NULL without one. */
void tiny_buffer_set_label (TinyBuffer *self, const char *label);
const char *tiny_buffer_get_label (TinyBuffer *self);
gsize tiny_buffer_get_n_bytes (TinyBuffer *self);

/* Takes memory if there is none yet. Errors: %TINY_ERROR_OUT_OF_MEMORY with sizes, after the pool
 * was emptied and the plugin asked again; %TINY_ERROR_DEVICE_LOST. */
gboolean tiny_buffer_ensure (TinyBuffer *self, GError **error);
/* The plugin's handle, NULL before tiny_buffer_ensure(), and where in it this buffer begins. */
TinyPluginBuffer *tiny_buffer_get_handle (TinyBuffer *self);
/* As a buffer of @device, which is its own or runs kernels on that one's memory; NULL on failure. */
TinyPluginBuffer *
tiny_buffer_get_handle_on (TinyBuffer *self, TinyDevice *device, GError **error);
guint64 tiny_buffer_get_offset (TinyBuffer *self);
/* The whole buffer as a span; it has memory. */
TinySpan tiny_buffer_get_span (TinyBuffer *self);

/* Copies @n bytes between host memory and bytes from @offset on. Errors: %TINY_ERROR_INVALID for
 * bytes that the buffer does not have, those of tiny_buffer_ensure() and tiny_device_submit(). */
gboolean
tiny_buffer_upload (TinyBuffer *self, gsize offset, const void *data, gsize n, GError **error);
gboolean
tiny_buffer_download (TinyBuffer *self, gsize offset, void *data, gsize n, GError **error);
/* A host address of its first byte, valid as long as the buffer, or NULL where the device has none or
 * is lost, or there is no memory. What is there may be read and written between the calls below. */
void *tiny_buffer_map (TinyBuffer *self);
/* Before and after the host touches @n mapped bytes from @offset on: waits for what the device still does with
 * them, and makes them visible where memory is not coherent. Errors: those of tiny_queue_wait(), for reading only
 * of what was to be written here. */
gboolean tiny_buffer_begin_access (
    TinyBuffer *self, gboolean writes, gsize offset, gsize n, GError **error);
gboolean tiny_buffer_end_access (
    TinyBuffer *self, gboolean writes, gsize offset, gsize n, GError **error);

/* The point of results on a device that runs nothing. */
#define TINY_POINT_NEVER G_MAXUINT64
/* The device's own queue works on it until @point. After %TINY_POINT_NEVER reading on the host fails with
 * %TINY_ERROR_UNSUPPORTED until all of it comes from the host. */
void tiny_buffer_mark (TinyBuffer *self, guint64 point, gboolean is_written);
/* FALSE with its error when the values that it should have were never computed. Does not wait. */
gboolean tiny_buffer_check (TinyBuffer *self, GError **error);

/* Says that its bytes changed; an upload does so itself. The version is another one afterwards. */
void tiny_buffer_touch (TinyBuffer *self);
guint tiny_buffer_get_version (TinyBuffer *self);
/* A recording reads or writes it, and goes on to: whoever has it keeps it. */
void tiny_buffer_set_recorded (TinyBuffer *self);
gboolean tiny_buffer_is_recorded (TinyBuffer *self);
/* Others may write to its memory at any time from now on: whoever asks for its version finds another one each time. */
void tiny_buffer_share (TinyBuffer *self);

G_END_DECLS
