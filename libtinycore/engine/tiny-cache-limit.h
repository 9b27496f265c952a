/* SPDX-License-Identifier: MIT
 *
 * tiny-cache-limit.h: a folder of files that does not grow beyond a size. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Says that @n_bytes were written to a file of @folder. Where its files take more than @limit bytes
 * together, those that were not modified for longest go, until a quarter of @limit is free. Any
 * number of threads and processes may do so at once. */
void tiny_cache_limit_add (const char *folder, gint64 n_bytes, gint64 limit);

/* Makes the file count as used now. */
void tiny_cache_limit_touch (const char *path);

G_END_DECLS
