/* SPDX-License-Identifier: MIT
 *
 * tiny-cache.c: compiled programs on disk, by content.
 *
 * File layout: 8 bytes of magic, 32 bytes SHA-256 of the key, a NUL and the payload, the payload. An entry under another
 * key than its own is damaged; one that somebody else may have written is not read. */
#include "engine/tiny-cache.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>

#include "base/tiny-env.h"
#include "base/tiny-whole-file.h"
#include "engine/tiny-cache-limit.h"

enum { MAGIC_SIZE = 8, DIGEST_SIZE = 32, HEADER_SIZE = MAGIC_SIZE + DIGEST_SIZE };
enum {
  MOST = 1 << 30 /* bytes of an entry */,
  FAILED_PART = 16
}; /* of the limit, for sources that a compiler refused */
static const char magic[MAGIC_SIZE] = "TINYPRG2";

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
digest_of (const char *key, const guint8 *data, gsize size, guint8 out[DIGEST_SIZE])
{
  g_autoptr (GChecksum) sum = g_checksum_new (G_CHECKSUM_SHA256);
  gsize length = DIGEST_SIZE;
  g_checksum_update (sum, (const guint8 *) key, (gssize) strlen (key) + 1);
  g_checksum_update (sum, data, (gssize) size);
  g_checksum_get_digest (sum, out, &length);
}

static gboolean
is_of (const char *key, const char *content, gsize size)
{
  guint8 digest[DIGEST_SIZE];
  if (size < HEADER_SIZE || memcmp (content, magic, MAGIC_SIZE) != 0)
    return FALSE;
  digest_of (key, (const guint8 *) content + HEADER_SIZE, size - HEADER_SIZE, digest);
  return memcmp (digest, content + MAGIC_SIZE, DIGEST_SIZE) == 0;
}

GBytes *
tiny_cache_load (const char *key)
{
  if (is_off ())
    return NULL;
  gsize size;
  g_autofree char *path = path_of (key);
  g_autofree char *content = tiny_whole_file_find (path, MOST, &size);
  if (content == NULL && errno != EPERM && errno != EFBIG)
    return NULL;
  if (content == NULL || !is_of (key, content, size)) {
    g_warning ("the cached program %s is %s and will be made anew", path,
               content != NULL  ? "damaged"
               : errno == EPERM ? "no file that only this user can write"
                                : "larger than any");
    g_unlink (path);
    return NULL;
  }
  tiny_cache_limit_touch (path);
  g_autoptr (GBytes) whole = g_bytes_new_take (g_steal_pointer (&content), size);
  return g_bytes_new_from_bytes (whole, HEADER_SIZE, size - HEADER_SIZE);
}

static void
warn_once (const char *path, int error)
{
  static gint warned = 0;
  if (g_atomic_int_compare_and_exchange (&warned, 0, 1))
    g_warning ("compiled programs cannot be cached: %s%s: %s",
               tiny_env_get_text (TINY_ENV_CACHE_DIR) != NULL ? "TINY_CACHE_DIR names " : "",
               path, g_strerror (error));
}

static gboolean
write_file (const char *path, const void *head, gsize head_size, const void *data, gsize size)
{
  const gboolean good = tiny_whole_file_keep (path, head, head_size, data, size);
  if (!good)
    warn_once (path, errno);
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
  digest_of (key, data, size, head + MAGIC_SIZE);
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
