/* SPDX-License-Identifier: MIT
 *
 * allocation.h: something done again and again, while one request for memory after the other is refused. */
#pragma once

#include <dlfcn.h>
#include <string.h>

#include "../heap.h"
#include "../unit/case-fails.h"
#include "base/tiny-error.h"

enum { ALLOCATION_LARGE = 128 << 10, ALLOCATION_ROUNDS = 4, ALLOCATION_MOST = 4000 };

/* FALSE with an error. It leaves no memory behind, and works twice. */
typedef gboolean (*AllocationAct) (gpointer data, GError **error);

/* Says where a request was refused, and what came of it. */
static inline void
allocation_say (guint nth, gsize n_bytes, gconstpointer code, const GError *error)
{
  Dl_info info;
  if (dladdr (code, &info) == 0)
    memset (&info, 0, sizeof info);
  g_autofree char *module
      = info.dli_fname != NULL ? g_path_get_basename (info.dli_fname) : NULL;
  g_test_message ("%u: %zu bytes for %s+0x%zx: %s", nth, n_bytes, module != NULL ? module : "?",
                  (gsize) code - (gsize) info.dli_fbase - 1,
                  error != NULL ? error->message : "none was needed");
}

/* Each request of @askers is refused once. The result is an error of memory, or right; nothing is left of it, and after it
 * the act works. The number of requests. */
static inline guint
allocation_refuse_each (const HeapAskers *askers, AllocationAct act, gpointer data)
{
  g_autoptr (GError) first = NULL;
  gint64 usual = 0; /* blocks that a driver keeps each time */
  guint n = 0;
  for (guint round = 0; round < ALLOCATION_ROUNDS; round++) {
    const gint64 before = heap_get_n_blocks ();
    if (!act (data, &first)) {
      CASE_FAILS ("it does not work with all memory: %s", first->message);
      return 0;
    }
    usual = round < 2 ? 0 : MAX (usual, heap_get_n_blocks () - before);
  }
  for (gboolean is_refused = TRUE; is_refused && n < ALLOCATION_MOST;) {
    gint64 left = G_MAXINT64;
    for (guint round = 0; round < ALLOCATION_ROUNDS && left > usual && is_refused; round++) {
      g_autoptr (GError) error = NULL;
      gconstpointer code;
      const gint64 before = heap_get_n_blocks ();
      heap_refuse (askers, n + 1);
      const gboolean good = act (data, &error);
      const gsize n_refused = heap_stop_refusing (&code);
      is_refused = n_refused > 0;
      if (good == (error != NULL))
        CASE_FAILS ("request %u: it says %s and %s", n + 1, good ? "yes" : "no",
                    error != NULL ? error->message : "nothing");
      if (round == 0 && is_refused)
        allocation_say (n + 1, n_refused, code, error);
      if (error != NULL && !g_error_matches (error, TINY_ERROR, TINY_ERROR_OUT_OF_MEMORY))
        CASE_FAILS ("request %u: not an error of memory: %s", n + 1, error->message);
      g_clear_error (&error);
      left = heap_get_n_blocks () - before;
    }
    if (left > usual && is_refused)
      CASE_FAILS ("request %u: it leaves %" G_GINT64_FORMAT
                  " blocks behind, not %" G_GINT64_FORMAT,
                  n + 1, left, usual);
    n += is_refused;
  }
  if (!act (data, &first))
    CASE_FAILS ("it does not work any more: %s", first->message);
  g_test_message ("%u requests were refused", n);
  return n;
}
