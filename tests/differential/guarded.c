/* SPDX-License-Identifier: MIT */
#include "guarded.h"

#include <string.h>
#include <sys/mman.h>

enum { REST = 0xa5 };
static const gsize side = (gsize) 1 << 31;

void
guarded_init (Guarded *self)
{
  guint8 *all = mmap (NULL, 2 * side + GUARDED_MAX_BYTES, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  g_assert_true (all != MAP_FAILED);
  *self = (Guarded){ .pages = all + side };
}

void
guarded_place (
    Guarded *self, gconstpointer data, gsize n_bytes, gboolean at_end, gboolean writable)
{
  const gsize room = (n_bytes + GUARDED_ALIGNMENT - 1) / GUARDED_ALIGNMENT * GUARDED_ALIGNMENT;
  g_assert_cmpuint (room, <=, GUARDED_MAX_BYTES);
  g_assert_cmpint (mprotect (self->pages, GUARDED_MAX_BYTES, PROT_READ | PROT_WRITE), ==, 0);
  self->data = self->pages + (at_end ? GUARDED_MAX_BYTES - room : 0);
  self->n_bytes = n_bytes;
  memset (self->pages, REST, GUARDED_MAX_BYTES);
  memcpy (self->data, data, n_bytes);
  if (!writable)
    g_assert_cmpint (mprotect (self->pages, GUARDED_MAX_BYTES, PROT_READ), ==, 0);
}

gboolean
guarded_is_clean (const Guarded *self)
{
  for (const guint8 *p = self->pages; p < self->pages + GUARDED_MAX_BYTES; p++)
    if (*p != REST && (p < self->data || p >= self->data + self->n_bytes))
      return FALSE;
  return TRUE;
}
