/* SPDX-License-Identifier: MIT
 *
 * tiny-whole-file.h: files that are there whole or not at all: all that the library writes where a user says.
 *
 * A file is written beside the place it is for and renamed at the end. A symbolic link is followed: the file it leads
 * to is replaced, and may be missing. A file keeps the permissions of the one that it replaces; those of a new one
 * follow the umask. A folder, a device and a pipe are refused. */
#pragma once

#include <glib.h>
#include <stdio.h>

G_BEGIN_DECLS

typedef struct {
  FILE *file; /* to write to */
  /* private */
  char *path, *beside;
} TinyWholeFile;

/* FALSE: nothing to close. Errors are TINY_ERROR_IO and begin with @path. */
gboolean tiny_whole_file_open (TinyWholeFile *self, const char *path, GError **error);
/* The file takes its place if @is_good, or is removed without an error. FALSE: it did not take its place. */
gboolean tiny_whole_file_close (TinyWholeFile *self, gboolean is_good, GError **error);

/* @n_bytes may be -1 for a text. */
gboolean
tiny_whole_file_write (const char *path, const char *data, gssize n_bytes, GError **error);
/* The same, but a device or a pipe is written to, and so is the standard output whatever it is. */
gboolean
tiny_whole_file_report (const char *path, const char *data, gssize n_bytes, GError **error);

G_END_DECLS
