/* SPDX-License-Identifier: MIT
 *
 * guarded.h: memory between pages that nobody may touch. */
#pragma once

#include <glib.h>

enum { GUARDED_MAX_BYTES = 1 << 14, GUARDED_ALIGNMENT = 64 };

/* All around it faults for two gigabytes to either side. */
typedef struct {
  guint8 *pages, *data; /* data: the first byte that is in use */
  gsize n_bytes;
} Guarded;

void guarded_init (Guarded *self);
/* Puts @n_bytes of @data there: from the first byte that may be touched on, or (@at_end) up to the last, as far as
 * its alignment lets it. @writable: else a write faults as well. */
void guarded_place (
    Guarded *self, gconstpointer data, gsize n_bytes, gboolean at_end, gboolean writable);
/* FALSE: a byte beside it on its pages has changed. */
gboolean guarded_is_clean (const Guarded *self);
