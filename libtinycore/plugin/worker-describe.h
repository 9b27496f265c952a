/* SPDX-License-Identifier: MIT
 *
 * worker-describe.h: what a module's tables hold beside functions, as bytes. */
#pragma once

#include <glib.h>

#include "tiny-plugin.h"

G_BEGIN_DECLS

/* (transfer full) (nullable): NULL: there is no memory. */
GBytes *worker_description_write (const TinyPluginModule *module);
/* Texts of what is filled belong to @bytes, the arrays to the caller. Functions that the module has are stubs.
 * Errors: %TINY_ERROR_PLUGIN for bytes that are no description, %TINY_ERROR_OUT_OF_MEMORY. */
gboolean worker_description_read (GBytes *bytes,
                                  TinyPluginModule *out,
                                  TinyRenderer **out_renderers,
                                  TinyDialect **out_dialects,
                                  GError **error);

G_END_DECLS
