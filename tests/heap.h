/* SPDX-License-Identifier: MIT
 *
 * heap.h: the heap of a test program (heap.c), which counts what is taken of it, and refuses memory when it is told to. */
#pragma once

#include <glib.h>

/* Counts; under a sanitizer, which has a heap of its own, all are 0. A mapping without a file is a block. */
gint64 heap_get_n_blocks (void);
gint64 heap_get_n_bytes (void);
/* The most bytes since heap_reset_peak(). */
gint64 heap_get_peak (void);
void heap_reset_peak (void);

/* Who is refused memory that malloc(), its kin or mmap() without a file give. Modules are parts of their paths with "|"
 * between them; that of the program is its own. A request is of the module whose code makes it, of GLib where g_malloc()
 * does. GPtrArray and GHashTable grow undisturbed: what they list are requests of their own, and larger. */
typedef struct {
  const char *always; /* modules each of whose requests counts; NULL: none */
  const char *large;  /* modules whose requests from @least bytes on count; NULL: all */
  gsize least;
  gconstpointer helper; /* a function whose requests are its caller's; or NULL */
  guint times;          /* so many are refused one after the other; 0 is 1 */
} HeapAskers;

/* Refuses the @nth request of @askers from now on, and what they want repeated; 1 is the first. */
void heap_refuse (const HeapAskers *askers, guint nth);
/* The bytes that were refused, 0 if none were; @out_code: (nullable): where it was asked for them. */
gsize heap_stop_refusing (gconstpointer *out_code);
