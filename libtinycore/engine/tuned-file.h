/* SPDX-License-Identifier: MIT
 *
 * tuned-file.h: the files of TINY_TUNED, whose form is that of tiny-tuned.h. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

#define TUNED_HEADER "tinycore-tuned 1" /* the first line of a file */
enum { TUNED_MAX_LINE = 32 << 10, TUNED_DIGEST_LENGTH = 32 };

typedef struct {
  char *opts;
  const char *file; /* that it is of */
} TunedEntry;

/* (transfer full): "digest target" → TunedEntry, of no file. */
GHashTable *tuned_entries_new (void);
/* Adds the entries of a file; those of files before it stay. Lines that are no entries are skipped with a warning. Errors,
 * which name the file and leave all as it was: %TINY_ERROR_IO, %TINY_ERROR_FORMAT, %TINY_ERROR_OUT_OF_MEMORY. */
gboolean tuned_entries_add (GHashTable *entries, const char *file, GError **error);

G_END_DECLS
