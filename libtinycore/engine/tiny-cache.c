/* SPDX-License-Identifier: MIT
 *
 * tiny-cache.c: compiled programs on disk, by content.
 *
 * File layout: 8 bytes of magic, 32 bytes SHA-256 of the payload, the payload. */
#include "engine/tiny-cache.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "base/tiny-descriptor.h"
#include "base/tiny-env.h"
#include "engine/tiny-cache-limit.h"

enum { MAGIC_SIZE = 8, DIGEST_SIZE = 32, HEADER_SIZE = MAGIC_SIZE + DIGEST_SIZE };
enum { FAILED_PART = 16 }; /* of the limit, for sources that a compiler refused */
static const char magic[MAGIC_SIZE] = "TINYPRG1";

const char *
tiny_cache_get_dir (void)
{
  static gsize dir = 0;
  if (g_once_init_enter (&dir)) {
    const char *wanted = tiny_env_get_text (TINY_ENV_CACHE_DIR);
    char *path = wanted ? g_strdup (wanted)
                        : g_build_filename (g_get_user_cache_dir (), "tinycore-1.0", NULL);
    g_once_init_leave (&dir, (gsize) path);
  }
  return (const char *) dir;
}

/* A privileged program would run what lies in a folder of its user. */
static gboolean
is_off (void)
{
  return tiny_env_get_int (TINY_ENV_NO_CACHE) != 0 || tiny_env_is_privileged ();
}

static char *
path_of (const char *key)
{
  return g_build_filename (tiny_cache_get_dir (), "programs", key, NULL);
}

static void
digest_of (const guint8 *data, gsize size, guint8 out[DIGEST_SIZE])
{
  g_autoptr (GChecksum) sum = g_checksum_new (G_CHECKSUM_SHA256);
  gsize length = DIGEST_SIZE;
  g_checksum_update (sum, data, (gssize) size);
  g_checksum_get_digest (sum, out, &length);
}

GBytes *
tiny_cache_load (const char *key)
{
  if (is_off ())
    return NULL;
  g_autofree char *path = path_of (key);
  char *content;
  gsize size;
  if (!g_file_get_contents (path, &content, &size, NULL))
    return NULL;
  guint8 digest[DIGEST_SIZE];
  gboolean good = size >= HEADER_SIZE && memcmp (content, magic, MAGIC_SIZE) == 0;
  if (good) {
    digest_of ((guint8 *) content + HEADER_SIZE, size - HEADER_SIZE, digest);
    good = memcmp (digest, content + MAGIC_SIZE, DIGEST_SIZE) == 0;
  }
  if (!good) {
    g_warning ("the cached program %s is damaged and will be made anew", path);
    g_unlink (path);
    g_free (content);
    return NULL;
  }
  tiny_cache_limit_touch (path);
  g_autoptr (GBytes) whole = g_bytes_new_take (content, size);
  return g_bytes_new_from_bytes (whole, HEADER_SIZE, size - HEADER_SIZE);
}

static void
warn_once (const char *path, int error)
{
  static gint warned = 0;
  if (g_atomic_int_compare_and_exchange (&warned, 0, 1))
    g_warning ("compiled programs cannot be cached: %s: %s", path, g_strerror (error));
}

/* Writes @path through a temporary file beside it. */
static gboolean
write_file (const char *path, const void *head, gsize head_size, const void *data, gsize size)
{
  g_autofree char *temporary = g_strconcat (path, ".XXXXXX", NULL);
  int fd = g_mkstemp_full (temporary, O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0 && errno == ENOENT) {
    g_autofree char *folder = g_path_get_dirname (path);
    if (g_mkdir_with_parents (folder, 0700) != 0) {
      warn_once (folder, errno);
      return FALSE;
    }
    g_strlcpy (temporary + strlen (path), ".XXXXXX", sizeof ".XXXXXX");
    fd = g_mkstemp_full (temporary, O_WRONLY | O_CLOEXEC, 0600);
  }
  if (fd < 0) {
    warn_once (temporary, errno);
    return FALSE;
  }
  gboolean good = tiny_write_all (fd, head, head_size) && tiny_write_all (fd, data, size);
  int error = errno;
  if (close (fd) != 0 && good) {
    error = errno;
    good = FALSE;
  }
  if (good && g_rename (temporary, path) != 0) {
    error = errno;
    good = FALSE;
  }
  if (!good) {
    g_unlink (temporary);
    warn_once (path, error);
  }
  return good;
}

/* The files beside @path keep below a part of the limit. */
static void
count_written (const char *path, gsize n_bytes, gint64 part)
{
  gint64 limit = ((gint64) tiny_env_get_int (TINY_ENV_CACHE_MB) << 20) / part;
  g_autofree char *folder = g_path_get_dirname (path);
  if (limit > 0)
    tiny_cache_limit_add (folder, (gint64) n_bytes, limit);
}

void
tiny_cache_store (const char *key, GBytes *payload)
{
  if (is_off ())
    return;
  gsize size;
  const guint8 *data = g_bytes_get_data (payload, &size);
  guint8 head[HEADER_SIZE];
  memcpy (head, magic, MAGIC_SIZE);
  digest_of (data, size, head + MAGIC_SIZE);
  g_autofree char *path = path_of (key);
  if (write_file (path, head, sizeof head, data, size))
    count_written (path, sizeof head + size, 1);
}

char *
tiny_cache_keep_failed (const char *name, const char *text)
{
  if (tiny_env_is_privileged ())
    return NULL;
  char *path = g_build_filename (tiny_cache_get_dir (), "failed", name, NULL);
  if (write_file (path, NULL, 0, text, strlen (text))) {
    count_written (path, strlen (text), FAILED_PART);
    return path;
  }
  g_free (path);
  return NULL;
}
