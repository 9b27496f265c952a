/* SPDX-License-Identifier: MIT
 *
 * folder.c: a folder of this run's own.
 *
 * Its owner keeps a lock on the file "lock" in it, which ends with the process however that ends: one whose
 * lock is free is nobody's. The file gets its name when it is locked, so that none is seen before. */
#include "folder.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX   "tiny-conformance-"
#define LOCK     "lock"
#define NEW_LOCK "lock-of-none"

struct ConfFolder {
  char *path;
  int lock; /* open and locked, or -1 */
};

void
conf_folder_remove_tree (const char *path)
{
  g_autoptr (GDir) dir
      = g_file_test (path, G_FILE_TEST_IS_SYMLINK) ? NULL : g_dir_open (path, 0, NULL);
  for (const char *name = dir ? g_dir_read_name (dir) : NULL; name != NULL;
       name = g_dir_read_name (dir)) {
    g_autofree char *inner = g_build_filename (path, name, NULL);
    conf_folder_remove_tree (inner);
  }
  g_remove (path);
}

/* ---- others' ---- */
/* Whether it is of a run of this user that is over. */
static gboolean
is_left (const char *path)
{
  struct stat info;
  g_autofree char *lock = g_build_filename (path, LOCK, NULL);
  if (lstat (path, &info) != 0 || !S_ISDIR (info.st_mode) || info.st_uid != getuid ())
    return FALSE;
  int fd = open (lock, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  const gboolean is_free = fd >= 0 && flock (fd, LOCK_EX | LOCK_NB) == 0;
  if (fd >= 0)
    close (fd);
  return is_free;
}

static void
remove_left (void)
{
  const char *around = g_get_tmp_dir ();
  g_autoptr (GDir) dir = g_dir_open (around, 0, NULL);
  for (const char *name = dir ? g_dir_read_name (dir) : NULL; name != NULL;
       name = g_dir_read_name (dir)) {
    g_autofree char *path = g_build_filename (around, name, NULL);
    if (g_str_has_prefix (name, PREFIX) && is_left (path))
      conf_folder_remove_tree (path);
  }
}

/* ---- our own ---- */
ConfFolder *
conf_folder_new (GError **error)
{
  remove_left ();
  char *path = g_dir_make_tmp (PREFIX "XXXXXX", error);
  if (path == NULL)
    return NULL;
  ConfFolder *self = g_new (ConfFolder, 1);
  g_autofree char *before = g_build_filename (path, NEW_LOCK, NULL);
  g_autofree char *lock = g_build_filename (path, LOCK, NULL);
  *self = (ConfFolder){ path, open (before, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600) };
  /* Where there are no locks, it is a folder that nobody else removes. */
  if (self->lock >= 0 && flock (self->lock, LOCK_EX | LOCK_NB) == 0)
    g_rename (before, lock);
  return self;
}

const char *
conf_folder_get_path (const ConfFolder *self)
{
  return self->path;
}

void
conf_folder_free (ConfFolder *self)
{
  if (self == NULL)
    return;
  conf_folder_remove_tree (self->path);
  if (self->lock >= 0)
    close (self->lock);
  g_free (self->path);
  g_free (self);
}

void
conf_folder_fail (const GError *error)
{
  g_printerr ("tinycore conformance: no folder for temporary files: %s; TMPDIR names another\n",
              error->message);
}
