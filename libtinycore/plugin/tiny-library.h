/* SPDX-License-Identifier: MIT
 *
 * tiny-library.h: where the loader would find a library, without loading it, and whose package it is. */
#pragma once

#include "plugin/tiny-elf.h"

G_BEGIN_DECLS

/* The file that loading @needer would take for the DT_NEEDED text @name (transfer full), or NULL: its
 * run paths, LD_LIBRARY_PATH, the loader's cache, the usual folders. Only files for this machine count. */
char *tiny_library_find (const TinyElf *needer, const char *name);

/* The first library that @path or one of those it needs wants and that is not there; *@out_needer
 * is who wants it, or NULL for @path itself (transfer full both). NULL: nothing is missing. */
char *tiny_library_find_missing (const char *path, char **out_needer);

/* The package that has, or would bring, a library, as dpkg, apt or rpm know it (transfer full), or NULL.
 * Runs those programs: takes a second at worst. */
char *tiny_library_find_package (const char *name);

/* The file that this code was loaded from (transfer full), or NULL; a program's is what the kernel says and not the
 * name that its caller gave it. */
char *tiny_library_get_own_path (void);

G_END_DECLS
