/* SPDX-License-Identifier: MIT
 *
 * tiny-counters.h: what the process has computed so far, for programs. */
#pragma once

#include <glib.h>

#include "base/tiny-macros.h"

G_BEGIN_DECLS

/**
 * tiny_get_counter:
 * @name: "kernels", "flops", "bytes", "ns-run", "schedules", "compiles"
 *
 * How many there were since the process began or tiny_reset_counters(): kernels launched, and what they calculated,
 * read and wrote by their own count; nanoseconds of submitting them, which on a synchronous device is computing
 * them; graphs that were planned; programs that were compiled rather than found in a cache. A replay of a recording
 * launches, calculates, reads and writes as much as what was recorded.
 *
 * Returns: the number; 0 of any other name
 *
 * Since: 0.1
 */
TINY_API guint64 tiny_get_counter (const char *name);

/**
 * tiny_reset_counters:
 *
 * Begins to count anew.
 *
 * Since: 0.1
 */
TINY_API void tiny_reset_counters (void);

G_END_DECLS
