/* SPDX-License-Identifier: MIT
 *
 * tiny-arena.h: memory that is given back all at once.
 *
 * A bump allocator over growing blocks; what it hands out is aligned to 16 bytes, zeroed, and
 * lives until the arena is freed. One thread at a time. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct TinyArena TinyArena;

TinyArena *tiny_arena_new (void);
void tiny_arena_free (TinyArena *self);
gpointer tiny_arena_alloc (TinyArena *self, gsize n_bytes);
/* FALSE: there is no memory. Else the next @n_bytes are handed out of what is there. */
gboolean tiny_arena_reserve (TinyArena *self, gsize n_bytes);
gpointer tiny_arena_copy (TinyArena *self, gconstpointer data, gsize n_bytes);
char *tiny_arena_strdup (TinyArena *self, const char *text);
gsize tiny_arena_get_n_bytes (TinyArena *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TinyArena, tiny_arena_free)

G_END_DECLS
