/* SPDX-License-Identifier: MIT
 *
 * tiny-manifest.h: what a backend's package says of it, read before anything of it is loaded.
 *
 * manifest-members.def has its members; what is there besides is ignored. */
#pragma once

#include <json-glib/json-glib.h>
#include <sys/stat.h>

#include "tiny-plugin.h"

G_BEGIN_DECLS

typedef struct {
  char *name;     /* as users name it */
  char *renderer; /* "": the default */
  char *form;
  char *folder; /* absolute, or NULL */
} TinyManifestExport;

typedef struct {
  char *path;                                        /* of the manifest */
  char *module;                                      /* absolute */
  char *name, *vendor, *version, *license, *package; /* "" when not said */
  guint abi, abi_minor_min;
  guint device_class; /* TINY_CLASS_* */
  guint max_devices;  /* that can be had by number; 0: those that are found */
  char **renderers;
  char **modalias, **device_nodes, **cpu_features;
  guint timeout_ms;
  guint call_timeout_ms; /* in a process of its own: of one call */
  char **probe_env, **probe_files;
  GPtrArray *exports; /* of TinyManifestExport */
  /* Of one that was kept: what its texts lie in, and the room of its lists. NULL: each is an allocation of its own. */
  GBytes *kept;
  char **kept_lists;
} TinyManifest;

enum { TINY_MANIFEST_MAX_BYTES = 64 << 10, TINY_MANIFEST_MAX_DEVICES = 64 };

/* Errors: %TINY_ERROR_FORMAT saying which member is wrong, %TINY_ERROR_IO, %TINY_ERROR_ABI. */
TinyManifest *tiny_manifest_load (const char *path, GError **error);
TinyManifest *
tiny_manifest_parse (const char *path, const char *text, gssize size, GError **error);
void tiny_manifest_free (TinyManifest *self);

/* For who has the members from elsewhere: one with all NULL and no exports; what is added is copied (@folder: absolute, or
 * NULL); whether the whole could have been parsed. */
TinyManifest *tiny_manifest_new_empty (void);
void tiny_manifest_add_export (TinyManifest *self,
                               const char *name,
                               const char *renderer,
                               const char *form,
                               const char *folder);
gboolean tiny_manifest_check (const TinyManifest *self, GError **error);

/* The members that no core reads, as "match.modalais", of char * (transfer full). */
GPtrArray *tiny_manifest_find_unknown (JsonObject *root);

/* "cpu", "gpu", …; 0 for an unknown word. */
const char *tiny_device_class_to_string (guint device_class);
guint tiny_device_class_from_string (const char *text);

/* Whether this machine has what the manifest asks for; if not, @out_reason (or NULL) says what. Touches
 * only /sys, /proc and /dev's names. */
gboolean tiny_manifest_matches (const TinyManifest *self, char **out_reason);

/* The first device node that is there and that this user may not open, with its owner, its group and what to do
 * (transfer full), or NULL. */
char *tiny_manifest_find_forbidden (const TinyManifest *self);

/* Refuses files, and the folders they are in, that somebody else could have written; the message
 * holds the command that repairs it. With @any_owner only the permissions count.
 * Errors: %TINY_ERROR_PERMISSION, %TINY_ERROR_IO. */
gboolean tiny_file_check_trust (const char *path, gboolean any_owner, GError **error);
/* The same for the file or folder @path alone, of which stat() says @info. */
gboolean tiny_stat_check_trust (const char *path,
                                const struct stat *info,
                                gboolean any_owner,
                                GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TinyManifest, tiny_manifest_free)

G_END_DECLS
