/* SPDX-License-Identifier: MIT
 *
 * plugin-store.h: bundles installed into a data folder, the user's or the system's.
 *
 *   DATA/tinycore-1.0/plugins.d/NAME.json          the manifest, which leads to
 *   DATA/tinycore-1.0/plugins/NAME-HASH/…          the bundle as it was, and record.json: where from, when
 *
 * A manifest is replaced as a whole and last, so at every moment one complete version, or none, is
 * installed. What was not installed by this is never touched. */
#pragma once

#include "tools/bundle.h"

G_BEGIN_DECLS

/* What is known of an installed bundle. */
typedef struct {
  char *name, *version, *vendor;
  char *manifest; /* paths */
  char *folder;
  char *certificate; /* or NULL */
  char *source, *hash, *when;
  gboolean is_system;
} Installed;

/* The folder DATA/tinycore-1.0 (transfer full). */
char *plugin_store_get_folder (gboolean is_system);

/* Whether the bundle may be installed: names, manifest, abi-check, certificate, a scan in the helper process.
 * @out_notes (of char *) gets what is worth knowing. Errors say which. */
gboolean plugin_store_check (const Bundle *bundle, GPtrArray *out_notes, GError **error);

/* Checks the bundle so before it writes anything. */
gboolean plugin_store_install (const Bundle *bundle,
                               gboolean is_system,
                               GPtrArray *out_notes,
                               GError **error);

/* Removes what install wrote for the backend @name (any case), and folders that are empty then. Errors:
 * %TINY_ERROR_NO_DEVICE for what is not installed so. */
gboolean plugin_store_remove (const char *name, gboolean is_system, GError **error);

/* Of Installed, by name; freed with the array. */
GPtrArray *plugin_store_list (gboolean is_system);

G_END_DECLS
