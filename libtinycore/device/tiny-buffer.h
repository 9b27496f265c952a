/* SPDX-License-Identifier: MIT
 *
 * tiny-buffer.h: memory of a device, allocated when it is first needed, counted by references. */
#pragma once

#include "device/tiny-device.h"

G_BEGIN_DECLS

typedef struct TinyBuffer TinyBuffer;

/* A buffer of @n_bytes that has no memory yet. Never fails. */
TinyBuffer *tiny_buffer_new (TinyDevice *device, gsize n_bytes);
/* The part of @parent that starts at @offset and has @n_bytes. */
TinyBuffer *tiny_buffer_new_view (TinyBuffer *parent, gsize offset, gsize n_bytes);
TinyBuffer *tiny_buffer_ref (TinyBuffer *self);
void tiny_buffer_unref (TinyBuffer *self);

/* Gives it memory, of undefined contents. Errors: %TINY_ERROR_OUT_OF_MEMORY, _DEVICE_LOST. */
gboolean tiny_buffer_ensure (TinyBuffer *self, GError **error);

TinyDevice *tiny_buffer_get_device (TinyBuffer *self);
const char *tiny_buffer_get_device_name (TinyBuffer *self);
gsize tiny_buffer_get_n_bytes (TinyBuffer *self);
/* Of a view: where it starts in the handle's memory; else 0. */
gsize tiny_buffer_get_offset (TinyBuffer *self);
/* The plugin's handle, once ensured. */
TinyPluginBuffer *tiny_buffer_get_handle (TinyBuffer *self);

/* Copies to and from host memory; the range lies inside the buffer. */
gboolean tiny_buffer_upload (TinyBuffer *self, gsize offset, gconstpointer data, gsize n_bytes, GError **error);
gboolean tiny_buffer_download (TinyBuffer *self, gsize offset, gpointer data, gsize n_bytes, GError **error);
/* A host address of the contents, valid as long as the buffer; NULL where the device has none. */
gpointer tiny_buffer_map (TinyBuffer *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TinyBuffer, tiny_buffer_unref)

G_END_DECLS
