/* SPDX-License-Identifier: MIT
 *
 * tiny-pool.h: device memory kept for reuse.
 *
 * Sizes are rounded up to classes an eighth apart; what comes back waits in its class. When the
 * device has no more, everything that waits is given back and the allocation tried once again. */
#pragma once

#include "device/tiny-device.h"

G_BEGIN_DECLS

typedef struct TinyPool TinyPool;

/* @device outlives the pool. */
TinyPool *tiny_pool_new (TinyDevice *device);
void tiny_pool_free (TinyPool *self);
TinyPluginBuffer *tiny_pool_take (TinyPool *self, gsize n_bytes, gsize *out_size, GError **error);
void tiny_pool_give (TinyPool *self, TinyPluginBuffer *memory, gsize size);
void tiny_pool_trim (TinyPool *self);
void tiny_pool_get_memory (TinyPool *self, TinyDeviceMemory *out);

G_END_DECLS
