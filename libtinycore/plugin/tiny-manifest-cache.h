/* SPDX-License-Identifier: MIT
 *
 * tiny-manifest-cache.h: manifests as they were parsed, kept in one file between runs.
 *
 * What was parsed counts as long as the manifest is the same file, by device, inode, size and both times, and the
 * core the same. Folders are listed and files checked for who may write them on every start, so the cache
 * decides nothing: it saves parsing. A file of others, or that others can write, is not used. It is replaced as a
 * whole, so it is complete or absent, and several processes may use it; one that cannot be written is done without, a
 * damaged one is rebuilt with a warning. */
#pragma once

#include "plugin/tiny-manifest.h"

G_BEGIN_DECLS

typedef struct TinyManifestCache TinyManifestCache;

/* @folder: where manifests.bin lies; NULL: nothing is kept, as privileged programs want it. Nothing is read before
 * it is needed. */
TinyManifestCache *tiny_manifest_cache_new (const char *folder);
void tiny_manifest_cache_free (TinyManifestCache *self);

/* The manifest @path, which is canonical and of which stat() says @info: as remembered, or parsed now.
 * Errors: those of tiny_manifest_load(), never remembered. */
TinyManifest *tiny_manifest_cache_load (TinyManifestCache *self,
                                        const char *path,
                                        const struct stat *info,
                                        GError **error);
/* Writes the file if something was parsed that it lacks. */
void tiny_manifest_cache_save (TinyManifestCache *self);
/* How many were parsed so far. */
guint tiny_manifest_cache_count_parsed (const TinyManifestCache *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TinyManifestCache, tiny_manifest_cache_free)

G_END_DECLS
