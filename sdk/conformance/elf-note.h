/* SPDX-License-Identifier: MIT
 *
 * elf-note.h: what tells one binary from another. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* The linker's build-id as hexadecimal digits, "" where there is none. */
char *conf_file_build_id (const char *path);
/* SHA-256 of the file, "" where it cannot be read, is no ELF file or larger than a plugin may be. */
char *conf_file_digest (const char *path);

G_END_DECLS
