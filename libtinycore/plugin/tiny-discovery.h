/* SPDX-License-Identifier: MIT
 *
 * tiny-discovery.h: the manifests there are, in the order in which they count.
 *
 * TINY_PLUGIN_FILES, TINY_PLUGIN_PATH, folders that the program added, /etc, beside the library, the
 * user's data folder, the system's. The first manifest of a name counts, further ones are shadowed;
 * an empty one hides the name. In privileged programs the environment's and the user's are left
 * out. */
#pragma once

#include "plugin/tiny-manifest-cache.h"

G_BEGIN_DECLS

/* What stands for one manifest file. */
typedef struct {
  char *name;       /* the manifest's, or the file's without .json where that cannot be read */
  char *stem;       /* its file's name without .json */
  char *path;       /* of the manifest */
  char *shadower;   /* the path of the manifest that hides this one, or NULL */
  const char *rule; /* why it was found: TinyPlace.rule */
  guint took_us;    /* to read it */
  gboolean is_mask;
  gboolean any_owner;     /* the person who runs the program named its folder */
  TinyManifest *manifest; /* or NULL and @error */
  GError *error;
} TinyFound;

/* A file or folder that was looked into. */
typedef struct {
  const char *rule; /* "TINY_PLUGIN_PATH", "the user's data folder", … */
  char *path;
  char *error; /* why it could not be read, or NULL; one that is not there is none */
  gboolean is_there;
  guint n_manifests;
} TinyPlace;

/* Every manifest, of TinyFound; a folder that is there and cannot be read stands for itself, with an error.
 * @folders: only these are searched; NULL: all as above, with @added (of char *) at their place.
 * @out_places (of TinyPlace, transfer full) may be NULL. */
GPtrArray *
tiny_discover (const char *const *folders, const GPtrArray *added, GPtrArray **out_places);
/* The same; what is parsed is kept in @cache, and what was kept is not parsed. */
GPtrArray *tiny_discover_cached (const char *const *folders,
                                 const GPtrArray *added,
                                 TinyManifestCache *cache,
                                 GPtrArray **out_places);

/* @way from the library's folder, from the one above or from the second above, such as "libexec/…" or
 * "share/…" of a tree that was moved as a whole; NULL where no such thing is. */
char *tiny_find_beside_library (const char *way);

G_END_DECLS
