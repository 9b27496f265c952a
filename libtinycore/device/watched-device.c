/* SPDX-License-Identifier: MIT
 *
 * watched-device.c: a table before a plugin's, so that it is known in which of its functions a thread is. */
#include "device/tiny-watch.h"

/* The last one that device-calls.def has. */
G_STATIC_ASSERT (G_STRUCT_OFFSET (TinyDeviceTable, reserved)
                 == G_STRUCT_OFFSET (TinyDeviceTable, import_host) + sizeof (void *));

typedef struct {
  TinyWatch *watch;
  TinyPluginDevice *handle; /* the plugin's */
  TinyDeviceTable table;
} Watched;

#define TINY_DEVICE_CALL(name, parameters, arguments)                                          \
  static TinyStatus watched_##name parameters                                                  \
  {                                                                                            \
    const Watched *self = (const Watched *) device;                                            \
    TinyPluginDevice *handle = self->handle;                                                   \
    const TinyWatchPlace before = tiny_watch_enter (self->watch, #name);                       \
    TinyStatus status = self->table.name arguments;                                            \
    tiny_watch_leave (self->watch, before);                                                    \
    return status;                                                                             \
  }
#define TINY_DEVICE_VOID(name, parameters, arguments)                                          \
  static void watched_##name parameters                                                        \
  {                                                                                            \
    const Watched *self = (const Watched *) device;                                            \
    TinyPluginDevice *handle = self->handle;                                                   \
    const TinyWatchPlace before = tiny_watch_enter (self->watch, #name);                       \
    self->table.name arguments;                                                                \
    tiny_watch_leave (self->watch, before);                                                    \
  }
#include "device/device-calls.def"
#undef TINY_DEVICE_CALL
#undef TINY_DEVICE_VOID

static void
watched_close (TinyPluginDevice *device)
{
  Watched *self = (Watched *) device;
  const TinyWatchPlace before = tiny_watch_enter (self->watch, "close");
  self->table.close (self->handle);
  tiny_watch_leave (self->watch, before);
  g_free (self);
}

void
tiny_watch_device (TinyWatch *self, TinyPluginDevice **handle, TinyDeviceTable *table)
{
  Watched *watched = g_new0 (Watched, 1);
  *watched = (Watched){ self, *handle, *table };
  *handle = (TinyPluginDevice *) watched;
  table->close = watched_close;
#define TINY_DEVICE_CALL(name, parameters, arguments)                                          \
  if (table->name != NULL)                                                                     \
    table->name = watched_##name;
#define TINY_DEVICE_VOID TINY_DEVICE_CALL
#include "device/device-calls.def"
#undef TINY_DEVICE_CALL
#undef TINY_DEVICE_VOID
}
