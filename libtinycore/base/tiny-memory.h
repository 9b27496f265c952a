/* SPDX-License-Identifier: MIT
 *
 * tiny-memory.h: memory whose size a file or a program decides. Where there is none, that is an error; GLib's g_malloc()
 * ends the program and is for small sizes that the code decides. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* At least one byte, or NULL with %TINY_ERROR_OUT_OF_MEMORY: "@what: no memory for @n_bytes bytes". */
gpointer tiny_memory_try (gsize n_bytes, const char *what, GError **error);

/* Sets that error. FALSE. */
gboolean tiny_memory_fail (gsize n_bytes, const char *what, GError **error);

/* Bytes one after the other, in memory that grows. */
typedef struct {
  guint8 *data;
  gsize n_bytes, room;
  gboolean is_short; /* there was no memory for some, and none were added since */
} TinyVector;

/* FALSE: the vector is short, and the bytes are what they were. Who adds many may look at the end. */
gboolean tiny_vector_append (TinyVector *self, gconstpointer data, gsize n_bytes);
/* Room for @n_bytes more at the end, which count when @n_bytes is increased; NULL: the vector is short. */
gpointer tiny_vector_reserve (TinyVector *self, gsize n_bytes);
/* (transfer full): the bytes, of which none are left; NULL: the vector was short. */
GBytes *tiny_vector_steal_bytes (TinyVector *self);
void tiny_vector_clear (TinyVector *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (TinyVector, tiny_vector_clear)

G_END_DECLS
