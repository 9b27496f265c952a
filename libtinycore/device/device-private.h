/* SPDX-License-Identifier: MIT
 *
 * device-private.h: what the files of this room share about a device. */
#pragma once

#include "device/tiny-device.h"
#include "device/tiny-pool.h"
#include "device/tiny-queue.h"
#include "device/tiny-table.h"

G_BEGIN_DECLS

struct _TinyDevice {
  GObject parent_instance;
  TinyBackend *backend, *code;
  const TinyRenderer *renderer; /* of code */
  char *name;
  TinyPluginDevice *handle;
  TinyDeviceTable table; /* the core's copy */
  TinyDeviceInfo info;
  TinyTarget target;
  TinyQueue *queue; /* the device's own; holds no reference to it */
  TinyQueue
      *transfers; /* of copies to and from the host, which need not wait for kernels; made when
                           it is first wanted; @queue where the device has no other */
  GMutex transfers_lock;
  GMutex
      memory_lock; /* while a part of one of its units is exchanged, or a block is imported beside */
  TinyPool *pool;
  TinyDevice *runner; /* of kernels, on this device's memory; NULL: it runs them itself */
  gint lost;
  gint
      abandoned; /* there is no way to wait for what runs, so nothing that it may use is ever given back */
};

static inline gboolean
tiny_device_is_abandoned (TinyDevice *self)
{
  return G_UNLIKELY (g_atomic_int_get (&self->abandoned));
}

/* The lock of the module whose table, or entry, is at @key. It lives as long as the process, as modules do, and
 * is the same for all backends of that module. */
GMutex *tiny_module_find_lock (gconstpointer key);

/* module.open() under the module's lock. */
TinyStatus tiny_backend_open_device (TinyBackend *self,
                                     const char *id,
                                     TinyPluginDevice **out,
                                     const TinyDeviceTable **out_table,
                                     TinyPluginError *plugin_error);

/* renderer.target() under the module's lock. */
TinyStatus tiny_renderer_call_target (const TinyRenderer *renderer,
                                      const char *arch,
                                      TinyTarget *target,
                                      TinyPluginError *plugin_error);
/* renderer.compile() and so on. All renderers that these are given are the copies of a backend. */
TinyStatus tiny_renderer_call_compile (const TinyRenderer *renderer,
                                       const TinyCompileArgs *args,
                                       void **out_data,
                                       uint64_t *out_size,
                                       TinyPluginError *plugin_error);
TinyStatus tiny_renderer_call_disassemble (const TinyRenderer *renderer,
                                           const void *data,
                                           uint64_t size,
                                           char **out_text,
                                           TinyPluginError *plugin_error);
TinyStatus tiny_renderer_call_claim (const TinyRenderer *renderer,
                                     const char *arch,
                                     const TinyOperation *operation,
                                     TinyClaim *out,
                                     TinyPluginError *plugin_error);

/* tiny_status_check() that remembers a lost device. */
gboolean tiny_device_check (TinyDevice *self,
                            TinyStatus status,
                            const TinyPluginError *plugin_error,
                            const char *what,
                            GError **error);

/* FALSE with TINY_ERROR_DEVICE_LOST, at once, when the device was lost before. */
gboolean tiny_device_fail_lost (TinyDevice *self, const char *what, GError **error);
static inline gboolean
tiny_device_check_alive (TinyDevice *self, const char *what, GError **error)
{
  return G_LIKELY (!g_atomic_int_get (&self->lost))
         || tiny_device_fail_lost (self, what, error);
}

/* As tiny_device_submit() for one copy to or from the host, after what is at @after on the device's own
 * queue and fails if that did, without waiting for its turn between kernels that run at the time. */
gboolean tiny_device_transfer (TinyDevice *self,
                               const TinyCommand *command,
                               guint64 after,
                               GError **error);

/* A queue that its device owns. */
TinyQueue *tiny_queue_new_own (TinyDevice *device, GError **error);

G_END_DECLS
