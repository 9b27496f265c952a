/* SPDX-License-Identifier: MIT
 *
 * tiny-progress.h: how far something long is, in one line of a terminal. */
#pragma once

#include <glib-object.h>

#include "base/tiny-macros.h"

G_BEGIN_DECLS

/**
 * TinyProgressMode:
 * @TINY_PROGRESS_AUTO: when standard error is a terminal
 * @TINY_PROGRESS_NEVER: never
 * @TINY_PROGRESS_ALWAYS: also into files and pipes, there as a line of its own at most every second
 *
 * When a #TinyProgress is shown.
 *
 * Since: 0.1
 */
typedef enum {
  TINY_PROGRESS_AUTO,
  TINY_PROGRESS_NEVER,
  TINY_PROGRESS_ALWAYS,
} TinyProgressMode;

#define TINY_TYPE_PROGRESS (tiny_progress_get_type ())
TINY_API
G_DECLARE_FINAL_TYPE (TinyProgress, tiny_progress, TINY, PROGRESS, GObject)

/**
 * TinyProgress:
 *
 * A progress bar on standard error. Every function may be called from any thread.
 *
 * Since: 0.1
 */

/**
 * tiny_progress_new:
 * @label: (nullable): what goes on, such as "epoch 1"
 * @total: how many steps there are; 0 when nobody knows
 * @mode: when it is shown
 *
 * Nothing is done yet and nothing is shown yet.
 *
 * Returns: (transfer full): a progress bar
 *
 * Since: 0.1
 */
TINY_API TinyProgress *
tiny_progress_new (const char *label, guint64 total, TinyProgressMode mode);

/**
 * tiny_progress_update:
 * @self: a progress bar
 * @done: how many steps are done
 * @note: (nullable): what else there is to say, such as a loss
 *
 * Shows it, ten times in a second at most.
 *
 * Since: 0.1
 */
TINY_API void tiny_progress_update (TinyProgress *self, guint64 done, const char *note);

/**
 * tiny_progress_finish:
 * @self: a progress bar
 *
 * Shows it a last time and ends its line. More updates do nothing. It is done when the object goes, too.
 *
 * Since: 0.1
 */
TINY_API void tiny_progress_finish (TinyProgress *self);

/**
 * tiny_progress_to_string:
 * @self: a progress bar
 *
 * The line that is shown: "epoch 1  40% [########            ] 4/10  2.0/s  0:03 left  loss 0.5".
 *
 * Returns: (transfer full): text
 *
 * Since: 0.1
 */
TINY_API char *tiny_progress_to_string (TinyProgress *self);

G_END_DECLS
