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
 * touches nothing behind. A struct shorter than @least is refused. @what names it in messages. */
gboolean tiny_table_copy (
    void *to, gsize size, const void *from, gsize least, const char *what, GError **error);

/* The structs that plugins pass: by address, to be copied, or filled where the core made room. */
typedef enum {
  TINY_TABLE_MODULE,
  TINY_TABLE_RENDERER,
  TINY_TABLE_DIALECT,
  TINY_TABLE_DEVICE,
  TINY_TABLE_INFO,
  TINY_TABLE_TARGET,
  TINY_TABLE_CANDIDATE,
  TINY_TABLE_CLAIM,
  TINY_N_TABLES
} TinyTableKind;

typedef struct {
  const char *name;  /* in messages */
  gsize size, least; /* bytes of ours; bytes that are needed, 0: it is filled in our memory */
  guint32 flags;     /* those that are known; they are the second field */
  gsize reserved, n_reserved; /* where its reserved words are, and how many */
  gsize padding;              /* where reserved0 is, or 0 */
} TinyTableRow;

extern const TinyTableRow tiny_table_rows[TINY_N_TABLES];

/* Whether the core knows all flags of a whole struct of that kind, and nothing reserved is set.
 * Errors: %TINY_ERROR_PLUGIN, with @who before. */
gboolean
tiny_table_check (TinyTableKind kind, const void *table, const char *who, GError **error);
/* tiny_table_copy() and tiny_table_check() of what a plugin passes by address. @who may be NULL. */
gboolean tiny_table_take (
    TinyTableKind kind, void *to, const void *from, const char *who, GError **error);

/* Copies and checks a plugin's device table. Errors: %TINY_ERROR_PLUGIN, with @name before. */
gboolean tiny_device_table_copy (TinyDeviceTable *to,
                                 const TinyDeviceTable *from,
                                 const char *name,
                                 GError **error);

/* Whether the values of a target are among those that tiny-plugin.h allows: a kernel is made by them.
 * Errors: %TINY_ERROR_PLUGIN, which name the field, with @who before. */
gboolean tiny_target_check (const TinyTarget *target, const char *who, GError **error);

/* What plugins are given. */
const TinyHost *tiny_host_get (void);

G_END_DECLS
