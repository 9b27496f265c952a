/* SPDX-License-Identifier: MIT
 *
 * tiny-whole-file.h: files that are there whole or not at all: all that the library writes where a user says.
 *
 * A file is written in the folder that it is for, and gets its name at the end: no part is left of one whose writer is killed,
 * where the file system has files without a name. A symbolic link is followed: the file it leads
 * to is replaced, and may be missing. A file keeps the permissions of the one that it replaces; those of a new one
 * follow the umask. A folder, a device and a pipe are refused. A full disk and a limit of sizes are errors.
 *
 * What the library keeps for itself is kept and found by the last two functions: it is this user's alone. */
#pragma once

#include <glib.h>
#include <stdio.h>

G_BEGIN_DECLS

typedef struct {
  FILE *file; /* to write to */
  /* private */
  int fd;
  gboolean is_named; /* @beside */
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

/* The same for a file in a folder of the library's own, which is made if it is missing: it takes the place of whatever
 * is there, a link too, nobody else can read it, and nobody waits for the disk: its reader sees by a checksum what a
 * power failure left. @head may be NULL. FALSE with errno. */
gboolean tiny_whole_file_keep (
    const char *path, gconstpointer head, gsize n_head, gconstpointer data, gsize n);
/* (transfer full): what was kept, with a NUL behind it; NULL with errno: EPERM, it is no regular file, or not one of this
 * user's or the superuser's that nobody else can write, and EFBIG, it has more than @most bytes. */
char *tiny_whole_file_find (const char *path, gsize most, gsize *out_n);

G_END_DECLS
