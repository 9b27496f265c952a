/* SPDX-License-Identifier: MIT
 *
 * tiny-render.h: a linear program as source text, by a dialect's table. */
#pragma once

#include <glib.h>

#include "tiny-plugin.h"

G_BEGIN_DECLS

/* Errors: %TINY_ERROR_UNSUPPORTED for an op the dialect has no spelling for. Thread-safe. */
char *tiny_render_source (const TinyLinear *linear, const TinyDialect *dialect, GError **error);

G_END_DECLS
