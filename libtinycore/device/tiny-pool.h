/* SPDX-License-Identifier: MIT
 *
 * tiny-pool.h: device memory, kept for reuse.
 *
 * Sizes are rounded up to classes an eighth apart. What comes back waits in its class, the newest
 * is taken first; when more waits than allowed, the oldest goes back to the plugin. When the
 * device has no more, everything that waits goes back and the allocation is tried once again.
 *
 * A block may come back and be taken again while the device's queue works on it: what the next user
 * submits runs behind that. Only the host, and the plugin's free(), have to wait for it. */
#pragma once

#include "device/tiny-device.h"

G_BEGIN_DECLS

typedef struct TinyPool TinyPool;

/* One allocation of the plugin's. */
typedef struct {
  TinyPluginBuffer *handle;
  void *host; /* its address in host memory, or NULL */
  gsize n_bytes;
  gboolean is_foreign; /* the program's own: not for others when it comes back */
  GDestroyNotify
      destroy; /* of foreign memory: called with @owner when the plugin has let go of it */
  gpointer owner;
  TinyPluginBuffer
      *beside;           /* the same memory as a buffer of the device's runner, once wanted */
  guint64 used, written; /* points on the device's own queue of the last work that touches it */
  GList in_class, in_age; /* links while it waits */
} TinyBlock;

/* @device outlives the pool. */
TinyPool *tiny_pool_new (TinyDevice *device);
void tiny_pool_free (TinyPool *self);
TinyBlock *tiny_pool_take (TinyPool *self, gsize n_bytes, GError **error);
void tiny_pool_give (TinyPool *self, TinyBlock *block);
/* A block of memory that the plugin imported. */
TinyBlock *tiny_pool_adopt (TinyPool *self, TinyPluginBuffer *handle, gsize n_bytes);
void tiny_pool_trim (TinyPool *self);
void tiny_pool_get_memory (TinyPool *self, TinyDeviceMemory *out);
void tiny_pool_reset_peak (TinyPool *self);

G_END_DECLS
