/* SPDX-License-Identifier: MIT
 *
 * scale.h: how large a case is on a device that has little memory or is slow.
 *
 * A device's own words on its memory bound a case's buffers. The time that a part of a case took bounds the whole: the
 * part is judged as the whole is, so that a slow device is asked the same, of fewer elements. */
#pragma once

#include "device/tiny-device.h"

G_BEGIN_DECLS

/* As many of @n elements as @device has room for, where each takes @n_bytes in all buffers of a case together, and
 * @n_largest in one of them. Half of the memory stays free for others. */
gsize conf_scale_to_memory (TinyDevice *device, gsize n, gsize n_bytes, gsize n_largest);
/* As many of @n elements as take a moment, where @n_part of them took @ns on the device. At least @n_part. */
gsize conf_scale_to_time (gsize n, gsize n_part, guint64 ns);

G_END_DECLS
