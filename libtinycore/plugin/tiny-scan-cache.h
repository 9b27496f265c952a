/* SPDX-License-Identifier: MIT
 *
 * tiny-scan-cache.h: the results of scans, kept between runs, in a file for each module.
 *
 * A result counts as long as the module's file (size, times, inode), the environment variables and
 * the files that the manifest names are what they were. A file is replaced as a whole, so it is
 * complete or absent; several processes may use them. One that cannot be written is done without, a
 * damaged one is rebuilt with a warning. */
#pragma once

#include "plugin/tiny-scan.h"

G_BEGIN_DECLS

typedef struct TinyScanCache TinyScanCache;

/* @folder: below which scans/ lies; NULL: nothing is kept beyond this process. Nothing is read
 * before it is needed. */
TinyScanCache *tiny_scan_cache_new (const char *folder);
void tiny_scan_cache_free (TinyScanCache *self);

/* What is known of the manifest's module (transfer none, until results settle), or NULL. */
const TinyScan *tiny_scan_cache_get (TinyScanCache *self, const TinyManifest *manifest);
/* Remembers a result, which it takes, and writes its file; files of modules that are gone are removed. */
const TinyScan *
tiny_scan_cache_put (TinyScanCache *self, const TinyManifest *manifest, TinyScan *scan);
/* Frees results that were replaced or forgotten: nobody looks at any. */
void tiny_scan_cache_settle (TinyScanCache *self);
/* Forgets a module; NULL: all. */
void tiny_scan_cache_forget (TinyScanCache *self, const TinyManifest *manifest);

G_END_DECLS
