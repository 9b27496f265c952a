/* SPDX-License-Identifier: MIT
 *
 * tiny-version.h: which release this is. */
#pragma once

#include <glib.h>

#include "base/tiny-macros.h"

G_BEGIN_DECLS

/**
 * tiny_get_version:
 *
 * Of the library that the program runs with, which may be another than the one it was built with. From any thread.
 *
 * Returns: (transfer none): numbers with points between, such as "0.1.0"
 *
 * Since: 0.1
 */
TINY_API const char *tiny_get_version (void);

G_END_DECLS
