/* SPDX-License-Identifier: MIT
 *
 * tiny-elf.h: looks at a shared object without running any of it. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Whether @path is a shared object for this machine that exports this ABI's entry symbol and, where
 * it has a note of the ABI it speaks (TINY_PLUGIN_NOTE), whether this core serves it.
 * Errors: %TINY_ERROR_PLUGIN, %TINY_ERROR_ABI, %TINY_ERROR_IO, each saying what was found. */
gboolean tiny_elf_check (const char *path, GError **error);

G_END_DECLS
