/* SPDX-License-Identifier: MIT
 *
 * tiny-backend.h: one loaded plugin module, as the core sees it.
 *
 * The plugin's table is copied, as far as both sides know it, into memory of the core; required
 * slots that are missing refuse the plugin by name, optional ones stay NULL and are asked for
 * through functions that answer TINY_ERROR_UNSUPPORTED. */
#pragma once

#include <glib-object.h>

#include "base/tiny-macros.h"
#include "tiny-plugin.h"

G_BEGIN_DECLS

#define TINY_TYPE_BACKEND (tiny_backend_get_type ())
G_DECLARE_FINAL_TYPE (TinyBackend, tiny_backend, TINY, BACKEND, GObject)

/* Checks and copies what an entry function returned, and initialises the module. @path names the
 * file in messages and in code stamps, NULL for one that is in no file.
 *
 * Errors: %TINY_ERROR_PLUGIN for a table that breaks a law of tiny-plugin.h, %TINY_ERROR_ABI for
 * one that serves other cores, or what init() reports. */
TinyBackend *tiny_backend_new (const TinyPluginModule *module, const char *path, GError **error);

const char *tiny_backend_get_name (TinyBackend *self);
const char *tiny_backend_get_path (TinyBackend *self);
/* Changes whenever the plugin's file does; part of the key of cached code. */
const char *tiny_backend_get_stamp (TinyBackend *self);
const TinyPluginModule *tiny_backend_get_module (TinyBackend *self);
/* The renderer of that name (any case), the first for "" or NULL; NULL if there is none. */
const TinyRenderer *tiny_backend_find_renderer (TinyBackend *self, const char *name);
/* Fills @out with at most @max candidates; returns their number, or -1. */
int tiny_backend_scan (TinyBackend *self, TinyCandidate *out, guint max, GError **error);

/* A plugin's answer as a GError: "CPU: alloc: out of memory …". Returns TRUE for OK. */
gboolean tiny_status_check (TinyStatus status,
                            const TinyPluginError *plugin_error,
                            const char *device,
                            const char *what,
                            GError **error);
#define TINY_PLUGIN_ERROR_INIT { .struct_size = sizeof (TinyPluginError) }

/* Copies min(struct_size, size) bytes of a table that begins with its size into zeroed @to. */
gboolean tiny_table_copy (void *to, gsize size, const void *from, gsize least, const char *what, GError **error);

/* What plugins are given. */
const TinyHost *tiny_host_get (void);

G_END_DECLS
