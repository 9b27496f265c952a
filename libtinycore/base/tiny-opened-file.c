/* SPDX-License-Identifier: MIT
 *
 * tiny-opened-file.c: see tiny-opened-file.h. */
#include "base/tiny-opened-file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/tiny-error.h"

struct TinyOpenedFile {
  gatomicrefcount n_refs;
  char *path;
  int fd;
  guint64 size;
};

/* (nullable): why it cannot be read. A pipe would be waited for, and opening does not do that. */
static const char *
open_file (TinyOpenedFile *self)
{
  struct stat info;
  self->fd = open (self->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (self->fd < 0 || fstat (self->fd, &info) != 0)
    return g_strerror (errno);
  self->size = (guint64) info.st_size;
  return S_ISDIR (info.st_mode)    ? "it is a folder"
         : !S_ISREG (info.st_mode) ? "it is no regular file"
                                   : NULL;
}

TinyOpenedFile *
tiny_opened_file_new (const char *path, GError **error)
{
  g_autoptr (TinyOpenedFile) self = g_new0 (TinyOpenedFile, 1);
  g_atomic_ref_count_init (&self->n_refs);
  self->path = g_strdup (path);
  const char *why = open_file (self);
  if (why == NULL)
    return g_steal_pointer (&self);
  g_set_error (error, TINY_ERROR, TINY_ERROR_IO, "%s: %s", *path != '\0' ? path : "“”", why);
  return NULL;
}

TinyOpenedFile *
tiny_opened_file_ref (TinyOpenedFile *self)
{
  g_atomic_ref_count_inc (&self->n_refs);
  return self;
}

void
tiny_opened_file_unref (TinyOpenedFile *self)
{
  if (!g_atomic_ref_count_dec (&self->n_refs))
    return;
  if (self->fd >= 0)
    close (self->fd);
  g_free (self->path);
  g_free (self);
}

const char *
tiny_opened_file_get_path (const TinyOpenedFile *self)
{
  return self->path;
}

guint64
tiny_opened_file_get_size (const TinyOpenedFile *self)
{
  return self->size;
}

gboolean
tiny_opened_file_read (
    const TinyOpenedFile *self, guint64 offset, gpointer out, gsize n, GError **error)
{
  gsize found = 0;
  gssize got = 1;
  while (found < n && got > 0) {
    got = pread (self->fd, (guint8 *) out + found, n - found, (off_t) (offset + found));
    if (got < 0 && errno == EINTR)
      got = 1;
    else if (got > 0)
      found += (gsize) got;
  }
  if (found == n)
    return TRUE;
  g_set_error (error, TINY_ERROR, TINY_ERROR_IO,
               "%s: wanted %" G_GSIZE_FORMAT " bytes from byte %" G_GUINT64_FORMAT
               " on, found %" G_GSIZE_FORMAT ": %s",
               self->path, n, offset, found,
               got < 0 ? g_strerror (errno) : "it became shorter while it was read");
  return FALSE;
}

GBytes *
tiny_opened_file_read_bytes (const TinyOpenedFile *self,
                             guint64 offset,
                             gsize n,
                             GError **error)
{
  g_autofree guint8 *data = n < G_MAXSIZE ? g_try_malloc (n + 1) : NULL;
  if (data == NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_OUT_OF_MEMORY,
                 "%s: no memory for %" G_GSIZE_FORMAT " bytes of it", self->path, n);
    return NULL;
  }
  if (!tiny_opened_file_read (self, offset, data, n, error))
    return NULL;
  data[n] = 0;
  return g_bytes_new_take (g_steal_pointer (&data), n);
}
