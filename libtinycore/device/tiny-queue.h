/* SPDX-License-Identifier: MIT
 *
 * tiny-queue.h: where commands go; one after the other on one queue.
 *
 * Every device has one of its own (tiny_device_get_queue); further ones can be made. A queue may be
 * used from several threads: submissions take turns. */
#pragma once

#include "device/tiny-device.h"

G_BEGIN_DECLS

#define TINY_TYPE_QUEUE (tiny_queue_get_type ())
TINY_API
G_DECLARE_FINAL_TYPE (TinyQueue, tiny_queue, TINY, QUEUE, GObject)

TinyQueue *tiny_queue_new (TinyDevice *device, GError **error);
/* As tiny_device_submit(). */
gboolean tiny_queue_submit (
    TinyQueue *self, const TinyCommand *commands, guint n, guint64 *out_ns, GError **error);

G_END_DECLS
