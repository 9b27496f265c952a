/* SPDX-License-Identifier: MIT
 *
 * tiny-whole-file.c: see tiny-whole-file.h.
 *
 * A file has no name before all of it is there, where the system has such files (open(2), O_TMPFILE): who is killed
 * leaves no part of one. Else it has another name, ending in six letters, beside its place. */
#include "base/tiny-whole-file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/tiny-descriptor.h"
#include "base/tiny-error.h"

enum {
  MAX_LINKS = 40 /* as many as Linux follows */,
  PERMISSIONS = 0777,
  OF_NEW = 0666,
  N_RANDOM = 6,
  MAX_NAMES = 100
};

static gboolean
fail (const char *path, const char *why, GError **error)
{
  g_set_error (error, TINY_ERROR, TINY_ERROR_IO, "%s: %s", *path != '\0' ? path : "“”", why);
  return FALSE;
}

/* The place that links at the end of @path lead to, which may be empty. */
static char *
follow (const char *path)
{
  char *at = g_strdup (path);
  for (guint i = 0; i < MAX_LINKS; i++) {
    g_autofree char *to = g_file_read_link (at, NULL);
    if (to == NULL)
      break;
    g_autofree char *folder = g_path_get_dirname (at);
    g_free (at);
    at = g_path_is_absolute (to) ? g_steal_pointer (&to) : g_build_filename (folder, to, NULL);
  }
  return at;
}

/* ---- files without a name ---- */

/* The name of an open file that has none. */
static char *
name_of (int fd)
{
  return g_strdup_printf ("/proc/self/fd/%d", fd);
}

/* @beside, which ends in XXXXXX, gets its name where there are no files without one: *@out_is_named. -1 with errno. */
static int
open_new (char *beside, int mode, gboolean *out_is_named)
{
  g_autofree char *folder = g_path_get_dirname (beside);
  int fd = open (folder, O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
  g_autofree char *name = name_of (fd);
  if (fd >= 0 && access (name, F_OK) != 0) { /* there is no /proc, and it would never get one */
    close (fd);
    fd = -1;
  }
  *out_is_named = fd < 0;
  return fd >= 0 ? fd : g_mkstemp_full (beside, O_RDWR | O_CLOEXEC, mode);
}

static void
make_name (char *beside)
{
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
  char *at = beside + strlen (beside) - N_RANDOM;
  for (guint i = 0; i < N_RANDOM; i++)
    at[i] = letters[g_random_int_range (0, (gint32) strlen (letters))];
}

/* FALSE with errno. What is at @path is replaced at once, for which the file is whole under another name for a moment. */
static gboolean
take_place (int fd, gboolean is_named, char *beside, const char *path)
{
  g_autofree char *name = name_of (fd);
  if (!is_named && linkat (AT_FDCWD, name, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0)
    return TRUE;
  for (guint i = 0; !is_named && errno == EEXIST && i < MAX_NAMES; i++) {
    make_name (beside);
    is_named = linkat (AT_FDCWD, name, AT_FDCWD, beside, AT_SYMLINK_FOLLOW) == 0;
  }
  if (!is_named)
    return FALSE;
  if (g_rename (beside, path) == 0)
    return TRUE;
  const int reason = errno;
  g_unlink (beside);
  errno = reason;
  return FALSE;
}

/* Puts what was written to @fd, which it closes, at @path if it @is_good, or removes it. FALSE with errno. */
static gboolean
finish (int fd, gboolean is_good, gboolean is_named, char *beside, const char *path)
{
  const gboolean good = is_good && take_place (fd, is_named, beside, path);
  int reason = errno;
  if (!is_good && is_named)
    g_unlink (beside);
  if (close (fd) != 0 && good)
    reason = errno;
  errno = reason;
  return good;
}

/* The stream's only way to the file. */
static gssize
write_part (void *cookie, const char *data, gsize n)
{
  return tiny_write_all (GPOINTER_TO_INT (cookie), data, n) ? (gssize) n : 0;
}

static FILE *
open_stream (int fd)
{
  const cookie_io_functions_t functions = { .write = write_part };
  return fopencookie (GINT_TO_POINTER (fd), "wb", functions);
}

gboolean
tiny_whole_file_open (TinyWholeFile *self, const char *path, GError **error)
{
  struct stat info;
  const gboolean is_there = stat (path, &info) == 0;
  if (*path == '\0' || (!is_there && errno != ENOENT))
    return fail (path, g_strerror (errno), error);
  if (is_there && !S_ISREG (info.st_mode))
    return fail (path, S_ISDIR (info.st_mode) ? "it is a folder" : "it is no regular file",
                 error);
  g_autofree char *place = follow (path), *folder = g_path_get_dirname (place);
  g_autofree char *beside = g_build_filename (folder, ".writing-XXXXXX", NULL);
  gboolean is_named;
  const int fd = open_new (beside, OF_NEW, &is_named);
  if (fd < 0) {
    g_autofree char *why = g_strconcat ("it cannot be made: ", g_strerror (errno), NULL);
    return fail (path, why, error);
  }
  FILE *file = NULL;
  if ((is_there && fchmod (fd, info.st_mode & PERMISSIONS) != 0)
      || (file = open_stream (fd)) == NULL) {
    fail (path, g_strerror (errno), error);
    finish (fd, FALSE, is_named, beside, place);
    return FALSE;
  }
  *self = (TinyWholeFile){ file, fd, is_named, g_steal_pointer (&place),
                           g_steal_pointer (&beside) };
  return TRUE;
}

gboolean
tiny_whole_file_close (TinyWholeFile *self, gboolean is_good, GError **error)
{
  gboolean good = is_good && fflush (self->file) == 0 && fsync (self->fd) == 0;
  int reason = errno;
  fclose (self->file);
  if (!finish (self->fd, good, self->is_named, self->beside, self->path) && good) {
    good = FALSE;
    reason = errno;
  }
  if (is_good && !good)
    fail (self->path, g_strerror (reason), error);
  g_free (self->path);
  g_free (self->beside);
  *self = (TinyWholeFile){ NULL };
  return good;
}

gboolean
tiny_whole_file_write (const char *path, const char *data, gssize n_bytes, GError **error)
{
  const gsize n = n_bytes < 0 ? strlen (data) : (gsize) n_bytes;
  TinyWholeFile self;
  if (!tiny_whole_file_open (&self, path, error))
    return FALSE;
  gboolean good = n == 0 || fwrite (data, 1, n, self.file) == n;
  if (!good)
    fail (path, g_strerror (errno), error);
  return tiny_whole_file_close (&self, good, error);
}

gboolean
tiny_whole_file_report (const char *path, const char *data, gssize n_bytes, GError **error)
{
  const gsize n = n_bytes < 0 ? strlen (data) : (gsize) n_bytes;
  struct stat info, ours;
  const gboolean is_there = stat (path, &info) == 0;
  const gboolean is_stdout = is_there && fstat (STDOUT_FILENO, &ours) == 0
                             && ours.st_dev == info.st_dev && ours.st_ino == info.st_ino;
  if (!is_stdout && (!is_there || S_ISREG (info.st_mode) || S_ISDIR (info.st_mode)))
    return tiny_whole_file_write (path, data, n_bytes, error);
  if (is_stdout)
    fflush (stdout);
  const int fd = is_stdout ? fcntl (STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                           : open (path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
  gboolean good = fd >= 0 && tiny_write_all (fd, data, n);
  const int reason = errno;
  if (fd >= 0)
    close (fd);
  return good || fail (path, g_strerror (reason), error);
}

/* ---- what the library keeps for itself ---- */
static int
open_beside (char *beside, gboolean *out_is_named)
{
  const gsize n = strlen (beside);
  int fd = open_new (beside, 0600, out_is_named);
  if (fd >= 0 || errno != ENOENT)
    return fd;
  g_autofree char *folder = g_path_get_dirname (beside);
  if (g_mkdir_with_parents (folder, 0700) != 0)
    return -1;
  memset (beside + n - N_RANDOM, 'X', N_RANDOM);
  return open_new (beside, 0600, out_is_named);
}

gboolean
tiny_whole_file_keep (
    const char *path, gconstpointer head, gsize n_head, gconstpointer data, gsize n)
{
  g_autofree char *beside = g_strconcat (path, ".XXXXXX", NULL);
  gboolean is_named;
  const int fd = open_beside (beside, &is_named);
  if (fd < 0)
    return FALSE;
  const gboolean good = tiny_write_all (fd, head, n_head) && tiny_write_all (fd, data, n);
  const int reason = errno;
  const gboolean is_kept = finish (fd, good, is_named, beside, path);
  if (!good)
    errno = reason;
  return is_kept;
}

/* 0, or why it is not read. */
static int
check_kept (int fd, gsize most, struct stat *info)
{
  if (fstat (fd, info) != 0)
    return errno;
  if (!S_ISREG (info->st_mode) || (info->st_uid != geteuid () && info->st_uid != 0)
      || (info->st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return EPERM;
  return (guint64) info->st_size > most ? EFBIG : 0;
}

char *
tiny_whole_file_find (const char *path, gsize most, gsize *out_n)
{
  struct stat info;
  const int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    errno = errno == ELOOP ? EPERM : errno;
    return NULL;
  }
  int reason = check_kept (fd, most, &info);
  g_autofree char *content = reason == 0 ? g_try_malloc ((gsize) info.st_size + 1) : NULL;
  if (reason == 0 && content == NULL)
    reason = ENOMEM;
  if (reason == 0 && !tiny_read_all (fd, content, (gsize) info.st_size))
    reason = EIO; /* it was shortened meanwhile */
  close (fd);
  errno = reason;
  if (reason != 0)
    return NULL;
  content[info.st_size] = '\0';
  *out_n = (gsize) info.st_size;
  return g_steal_pointer (&content);
}
