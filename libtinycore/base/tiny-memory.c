/* SPDX-License-Identifier: MIT
 *
 * tiny-memory.c: see tiny-memory.h. */
#include "base/tiny-memory.h"

#include <string.h>

#include "base/tiny-error.h"

enum { FIRST_ROOM = 256 };

gboolean
tiny_memory_fail (gsize n_bytes, const char *what, GError **error)
{
  g_set_error (error, TINY_ERROR, TINY_ERROR_OUT_OF_MEMORY,
               "%s: no memory for %" G_GSIZE_FORMAT " bytes", what, n_bytes);
  return FALSE;
}

gpointer
tiny_memory_try (gsize n_bytes, const char *what, GError **error)
{
  gpointer memory = g_try_malloc (MAX (n_bytes, 1));
  if (memory == NULL)
    tiny_memory_fail (n_bytes, what, error);
  return memory;
}

gpointer
tiny_vector_reserve (TinyVector *self, gsize n_bytes)
{
  self->is_short = self->is_short || n_bytes > G_MAXSIZE / 2 - self->n_bytes;
  if (self->is_short)
    return NULL;
  if (self->n_bytes + n_bytes > self->room || self->data == NULL) {
    const gsize room = MAX (MAX (self->room * 2, self->n_bytes + n_bytes), FIRST_ROOM);
    guint8 *data = g_try_realloc (self->data, room);
    if (data == NULL) {
      self->is_short = TRUE;
      return NULL;
    }
    self->data = data;
    self->room = room;
  }
  return self->data + self->n_bytes;
}

gboolean
tiny_vector_append (TinyVector *self, gconstpointer data, gsize n_bytes)
{
  gpointer at = tiny_vector_reserve (self, n_bytes);
  if (at == NULL)
    return FALSE;
  if (n_bytes > 0)
    memcpy (at, data, n_bytes);
  self->n_bytes += n_bytes;
  return TRUE;
}

GBytes *
tiny_vector_steal_bytes (TinyVector *self)
{
  GBytes *bytes = NULL;
  if (self->is_short)
    g_free (self->data);
  else
    bytes = g_bytes_new_take (self->data, self->n_bytes);
  *self = (TinyVector){ NULL };
  return bytes;
}

void
tiny_vector_clear (TinyVector *self)
{
  g_free (self->data);
  *self = (TinyVector){ NULL };
}
