/* SPDX-License-Identifier: MIT
 *
 * tiny-cache.h: compiled programs on disk, by content.
 *
 * An entry is one file named by its key. Entries are written whole to a temporary name and then
 * renamed, and carry a checksum of the key and the contents: what is found is complete, right and this user's, or is
 * not used. Any number of
 * processes may share a cache. A folder that cannot be written is warned of once. Those unused for
 * longest go when together they take more than TINY_CACHE_MB. Privileged programs (set-user-ID) keep and find
 * nothing. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* (transfer full): the payload stored under @key (hexadecimal), or NULL. A damaged entry is
 * removed, with one warning. */
GBytes *tiny_cache_load (const char *key);
void tiny_cache_store (const char *key, GBytes *payload);

/* Keeps @text under failed/@name for a person to read; (transfer full): its path, or NULL. */
char *tiny_cache_keep_failed (const char *name, const char *text);

/* Folder of this user's caches of tinycore; TINY_CACHE_DIR, or below the XDG cache folder. */
const char *tiny_cache_get_dir (void);

G_END_DECLS
