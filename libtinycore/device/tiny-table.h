/* SPDX-License-Identifier: MIT
 *
 * tiny-table.h: the laws of tiny-plugin.h, applied: copying sized structs, answers as GErrors,
 * what the core gives to plugins. */
#pragma once

#include <glib.h>

#include "base/tiny-error.h"
#include "tiny-plugin.h"

G_BEGIN_DECLS

/* A plugin's error on the stack; only what must be zero is set, the texts start empty. */
static inline void
tiny_plugin_error_init (TinyPluginError *error)
{
  error->struct_size = sizeof *error;
  error->flags = 0;
  error->vendor_code = 0;
  error->reserved[0] = error->reserved[1] = 0;
  error->text[0] = error->hint[0] = 0;
}

/* A plugin's answer as a GError: "CPU: alloc: out of memory (free some buffers)". Any answer that
 * is not negative is success and gives TRUE. @plugin_error may be NULL. */
gboolean tiny_status_check (TinyStatus status,
                            const TinyPluginError *plugin_error,
                            const char *device,
                            const char *what,
                            GError **error);

/* Whether @message, of an error of tiny_status_check(), has nothing from the plugin. */
gboolean tiny_status_is_silent (TinyError code, const char *message);

/* Copies min(struct_size, size) bytes of a struct that begins with its size into zeroed @to and
 * touches nothing behind. A struct shorter than @least, or reserved words that are set, refuse it;
 * @reserved_offset says where in @to the @n_reserved words lie. @what names it in messages. */
gboolean tiny_table_copy (void *to,
                          gsize size,
                          const void *from,
                          gsize least,
                          gsize reserved_offset,
                          guint n_reserved,
                          const char *what,
                          GError **error);

/* Copies and checks a plugin's device table. Errors: %TINY_ERROR_PLUGIN, with @name before. */
gboolean tiny_device_table_copy (TinyDeviceTable *to,
                                 const TinyDeviceTable *from,
                                 const char *name,
                                 GError **error);

/* What plugins are given. */
const TinyHost *tiny_host_get (void);

G_END_DECLS
