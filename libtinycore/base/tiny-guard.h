/* SPDX-License-Identifier: MIT
 *
 * tiny-guard.h: how public functions refuse what is no argument at all: NULL for an object, a count without a list.
 *
 * Where there is a GError the caller is told in words. Functions without a place for one (getters, plain setters) keep
 * g_return_if_fail(): GLib's message, nothing done, 0 or NULL. */
#pragma once

#include <string.h>

#include "base/tiny-error.h"

/* Whether @list can have @n elements. */
#define TINY_IS_LIST(list, n) ((list) != NULL || (n) == 0)

/* In the public function tiny_NAME(): @error says "NAME: @message" and @value is returned, unless @condition. */
#define tiny_return_error_unless(condition, error, value, message)                             \
  G_STMT_START                                                                                 \
  {                                                                                            \
    if (!(condition)) {                                                                        \
      g_set_error ((error), TINY_ERROR, TINY_ERROR_INVALID, "%s: %s",                          \
                   G_STRFUNC + strlen ("tiny_"), (message));                                   \
      return value;                                                                            \
    }                                                                                          \
  }                                                                                            \
  G_STMT_END
