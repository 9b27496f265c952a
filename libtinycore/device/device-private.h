/* SPDX-License-Identifier: MIT
 *
 * device-private.h: what buffers and programs need of their device. */
#pragma once

#include "device/tiny-device.h"

G_BEGIN_DECLS

TinyPluginDevice *tiny_device_get_handle (TinyDevice *self);
const TinyDeviceTable *tiny_device_get_table (TinyDevice *self);
/* Remembers a lost device; otherwise as tiny_status_check(). */
gboolean tiny_device_check (TinyDevice *self,
                            TinyStatus status,
                            const TinyPluginError *plugin_error,
                            const char *what,
                            GError **error);
gboolean tiny_device_check_alive (TinyDevice *self, GError **error);

/* The pool: memory of at least @n_bytes, rounded up to *out_size, and back. */
TinyPluginBuffer *tiny_device_take_memory (TinyDevice *self, gsize n_bytes, gsize *out_size, GError **error);
void tiny_device_give_memory (TinyDevice *self, TinyPluginBuffer *memory, gsize size);

G_END_DECLS
