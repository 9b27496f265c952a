/* SPDX-License-Identifier: MIT
 *
 * fuzz.h: readers of what may come from a stranger, and the heap that counts what they take. */
#pragma once

#include <glib.h>

/* A reader, and inputs that it accepts, from which others are made. */
typedef struct {
  const char *name;
  /* True if it accepts them. */
  gboolean (*read) (const guint8 *data, gsize size);
  void (*add_seeds) (GPtrArray *seeds); /* of GBytes */
} FuzzTarget;

extern const FuzzTarget fuzz_targets[];
extern const guint fuzz_n_targets;

/* The heap of this program (heap.c). Under a sanitizer, which has a heap of its own, all are 0. */
gint64 heap_get_n_blocks (void);
gint64 heap_get_n_bytes (void);
/* The most bytes since heap_reset_peak(). */
gint64 heap_get_peak (void);
void heap_reset_peak (void);
