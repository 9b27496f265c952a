/* SPDX-License-Identifier: MIT
 *
 * tiny-settings.h: what environment variables say, changed while the program runs. */
#pragma once

#include <glib.h>

#include "base/tiny-macros.h"

G_BEGIN_DECLS

/**
 * tiny_get_setting:
 * @name: a variable that the library reads, such as "DEBUG"
 *
 * What it says now: the environment's, its default, or what tiny_set_setting() made of it.
 *
 * Returns: (transfer full) (nullable): its value; %NULL where it has none, or no such variable is read
 *
 * Since: 0.1
 */
TINY_API char *tiny_get_setting (const char *name);

/**
 * tiny_set_setting:
 * @name: a variable that the library reads, such as "DEBUG"
 * @value: (nullable): its value from now on; %NULL: none
 * @error: return location
 *
 * Changes it for this process, from now on; what was chosen by it before stays, such as the device of `DEV`. Not to be
 * called while another thread computes.
 *
 * Errors: %TINY_ERROR_INVALID when no such variable is read, or it wants another number than that.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_set_setting (const char *name, const char *value, GError **error);

G_END_DECLS
