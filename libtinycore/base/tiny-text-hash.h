/* SPDX-License-Identifier: MIT
 *
 * tiny-text-hash.h: hashes of what files name. Whoever writes a file knows g_str_hash (), and a hundred thousand names of
 * one hash take minutes to look up; these depend on a number that each process draws. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Not the same from one process to the next. */
guint64 tiny_hash_secret (void);
/* A GHashFunc for texts. */
guint tiny_text_hash (gconstpointer text);

G_END_DECLS
