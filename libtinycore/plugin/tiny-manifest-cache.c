/* SPDX-License-Identifier: MIT
 *
 * tiny-manifest-cache.c: manifests as they were parsed, kept in one file between runs.
 *
 * The file, in this machine's byte order: MAGIC, the checksum of what follows, the stamp of the core, the number of
 * entries, and the entries. Each begins with its size, the numbers that identify the manifest's file and its path; then come
 * its members, one after the other: numbers as they are, texts with their zero, lists with their length first. What is
 * read is read once, never mapped, and nothing of it is believed: every step stays inside the entry, every text is
 * UTF-8, and a manifest has to pass the checks that one of JSON passes. Its texts stay where they were read. */
#include "plugin/tiny-manifest-cache.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "base/tiny-error.h"
#include "base/tiny-memory.h"
#include "base/tiny-whole-file.h"

/* FORMAT counts changes of the members of TinyManifest and of what they mean. The longest text is a path and a text of a
 * manifest behind it. */
enum {
  FORMAT = 3,
  MAX_BYTES = 4 << 20,
  MAX_ENTRIES = 1000,
  MAX_TEXT = 8 << 10,
  N_IDENTITY = 7
};

/* A change within the file system's clock tick after reading leaves times as they were. */
enum { TICK_NS = 100000000, COARSE_TICK_S = 2 };

static const char MAGIC[8] = "TINYMAN";

struct TinyManifestCache {
  char *path; /* of the file, or NULL */
  gboolean is_read, is_foreign, is_changed;
  guint n_parsed;
  GHashTable *entries; /* path, which lies in it → GBytes: an entry without its size */
};

TinyManifestCache *
tiny_manifest_cache_new (const char *folder)
{
  TinyManifestCache *self = g_new0 (TinyManifestCache, 1);
  self->path = folder ? g_build_filename (folder, "manifests.bin", NULL) : NULL;
  self->entries
      = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, (GDestroyNotify) g_bytes_unref);
  return self;
}

void
tiny_manifest_cache_free (TinyManifestCache *self)
{
  if (self == NULL)
    return;
  g_free (self->path);
  g_hash_table_unref (self->entries);
  g_free (self);
}

guint
tiny_manifest_cache_count_parsed (const TinyManifestCache *self)
{
  return self->n_parsed;
}

/* ---- bytes ---- */
typedef struct {
  const guint8 *at, *end;
  gboolean is_bad; /* nothing more is given */
} Reader;

static gconstpointer
take (Reader *self, gsize n)
{
  const guint8 *at = self->at;
  if (self->is_bad || n > (gsize) (self->end - at)) {
    self->is_bad = TRUE;
    return NULL;
  }
  self->at += n;
  return at;
}

static guint32
take_uint (Reader *self)
{
  gconstpointer from = take (self, sizeof (guint32));
  guint32 out = 0;
  if (from != NULL)
    memcpy (&out, from, sizeof out);
  return out;
}

/* Nearly all texts are ASCII, which is seen eight bytes at a time. */
static gboolean
is_text (const char *text, gsize n)
{
  guint64 word, all = 0;
  gsize i = 0;
  for (; i + sizeof word <= n; i += sizeof word) {
    memcpy (&word, text + i, sizeof word);
    all |= word;
  }
  for (; i < n; i++)
    all |= (guint8) text[i];
  return (all & G_GUINT64_CONSTANT (0x8080808080808080)) == 0
         || g_utf8_validate (text, (gssize) n, NULL);
}

/* Transfer none; "" where there is none. */
static const char *
take_text (Reader *self)
{
  const gsize most = self->is_bad ? 0 : MIN ((gsize) (self->end - self->at), MAX_TEXT);
  const guint8 *zero = most > 0 ? memchr (self->at, 0, most) : NULL;
  const char *text = (const char *) self->at;
  if (zero == NULL || !is_text (text, (gsize) (zero - self->at))) {
    self->is_bad = TRUE;
    return "";
  }
  self->at = zero + 1;
  return text;
}

/* Into a part of the room for all lists, which lies from @room to @end and is zero. */
static char **
take_texts (Reader *self, char ***room, char *const *end)
{
  guint32 n = take_uint (self);
  char **out = *room;
  if (n >= (gsize) (end - out)) {
    self->is_bad = TRUE;
    return out;
  }
  for (guint32 i = 0; i < n; i++)
    out[i] = (char *) take_text (self);
  *room = out + n + 1;
  return out;
}

static void
put_uint (TinyVector *out, guint32 value)
{
  tiny_vector_append (out, &value, sizeof value);
}

static void
put_text (TinyVector *out, const char *text)
{
  tiny_vector_append (out, text, strlen (text) + 1);
}

static void
put_texts (TinyVector *out, char *const *texts)
{
  guint n = g_strv_length ((char **) texts);
  put_uint (out, n);
  for (guint i = 0; i < n; i++)
    put_text (out, texts[i]);
}

/* As FNV-1a, of eight bytes at a time; against damage, not against people. */
static guint64
sum_of (const guint8 *data, gsize n)
{
  guint64 sum = 0xcbf29ce484222325 ^ n;
  for (gsize i = 0; i < n; i += sizeof (guint64)) {
    guint64 word = 0;
    memcpy (&word, data + i, MIN (sizeof word, n - i));
    sum = (sum ^ word) * 0x100000001b3;
    sum ^= sum >> 32;
  }
  return sum;
}

static char *
core_stamp (void)
{
  return g_strdup_printf ("%s abi %u.%u format %d of %" G_GSIZE_FORMAT, TINY_VERSION,
                          TINY_PLUGIN_ABI_MAJOR, TINY_PLUGIN_ABI_MINOR, FORMAT,
                          sizeof (TinyManifest));
}

/* ---- a manifest ---- */
static void
identify (const struct stat *info, guint64 *out)
{
  out[0] = info->st_dev;
  out[1] = info->st_ino;
  out[2] = (guint64) info->st_size;
  out[3] = (guint64) info->st_mtim.tv_sec;
  out[4] = (guint64) info->st_mtim.tv_nsec;
  out[5] = (guint64) info->st_ctim.tv_sec;
  out[6] = (guint64) info->st_ctim.tv_nsec;
}

static void
put_exports (TinyVector *out, const GPtrArray *exports)
{
  put_uint (out, exports->len);
  for (guint i = 0; i < exports->len; i++) {
    const TinyManifestExport *export = exports->pdata[i];
    put_text (out, export->name);
    put_text (out, export->renderer);
    put_text (out, export->form);
    put_text (out, export->folder ? export->folder : "");
  }
}

/* NULL: there is no memory. */
static GBytes *
manifest_to_bytes (const TinyManifest *self, const struct stat *info)
{
  TinyVector out = { NULL };
  guint64 identity[N_IDENTITY];
  identify (info, identity);
  tiny_vector_append (&out, identity, sizeof identity);
  const char *const texts[] = { self->path,    self->module,  self->name,   self->vendor,
                                self->version, self->license, self->package };
  const guint32 numbers[] = { self->abi,         self->abi_minor_min, self->device_class,
                              self->max_devices, self->timeout_ms,    self->call_timeout_ms };
  char *const *const lists[] = { self->renderers,    self->modalias,  self->device_nodes,
                                 self->cpu_features, self->probe_env, self->probe_files };
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    put_text (&out, texts[i]);
  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++)
    put_uint (&out, numbers[i]);
  guint n_places = 0;
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++)
    n_places += g_strv_length ((char **) lists[i]) + 1;
  put_uint (&out, n_places);
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++)
    put_texts (&out, lists[i]);
  put_exports (&out, self->exports);
  return tiny_vector_steal_bytes (&out);
}

static void
take_exports (Reader *reader, TinyManifest *self)
{
  guint32 n = take_uint (reader);
  for (guint32 i = 0; i < n && !reader->is_bad; i++) {
    const char *name = take_text (reader), *renderer = take_text (reader);
    const char *form = take_text (reader), *folder = take_text (reader);
    tiny_manifest_add_export (self, name, renderer, form, folder[0] ? folder : NULL);
  }
}

/* NULL where the entry is not of that file as it is now, or damaged, or there is no memory. */
static TinyManifest *
manifest_from_bytes (GBytes *bytes, const char *path, const struct stat *info)
{
  gsize size;
  guint64 identity[N_IDENTITY];
  const guint8 *data = g_bytes_get_data (bytes, &size);
  Reader reader = { data, data + size, FALSE };
  gconstpointer its = take (&reader, sizeof identity);
  identify (info, identity);
  if (its == NULL || memcmp (its, identity, sizeof identity) != 0)
    return NULL;
  g_autoptr (TinyManifest) self = tiny_manifest_new_empty ();
  self->kept = g_bytes_ref (bytes);
  char **const texts[] = { &self->path,    &self->module,  &self->name,   &self->vendor,
                           &self->version, &self->license, &self->package };
  guint *const numbers[] = { &self->abi,         &self->abi_minor_min, &self->device_class,
                             &self->max_devices, &self->timeout_ms,    &self->call_timeout_ms };
  char ***const lists[] = { &self->renderers,    &self->modalias,  &self->device_nodes,
                            &self->cpu_features, &self->probe_env, &self->probe_files };
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    *texts[i] = (char *) take_text (&reader);
  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++)
    *numbers[i] = take_uint (&reader);
  /* A list has a number of four bytes, and each of its texts one byte at least. */
  const guint32 n_places = take_uint (&reader), most = (guint32) (reader.end - reader.at);
  reader.is_bad = reader.is_bad || n_places < G_N_ELEMENTS (lists) || n_places > most;
  const guint32 n_room = reader.is_bad ? G_N_ELEMENTS (lists) : n_places;
  char **room = self->kept_lists = g_try_new0 (char *, n_room);
  if (room == NULL)
    return NULL;
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++)
    *lists[i] = take_texts (&reader, &room, self->kept_lists + n_room);
  take_exports (&reader, self);
  gboolean good = !reader.is_bad && reader.at == reader.end && g_str_equal (self->path, path)
                  && g_path_is_absolute (self->module) && tiny_manifest_check (self, NULL);
  return good ? g_steal_pointer (&self) : NULL;
}

/* ---- the file ---- */
/* Its bytes if it is this user's alone; NULL without an error where there is none. */
static GBytes *
read_own (TinyManifestCache *self, GError **error)
{
  struct stat info;
  int fd = open (self->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (fd < 0 || fstat (fd, &info) < 0 || !S_ISREG (info.st_mode) || info.st_uid != geteuid ()) {
    self->is_foreign = fd >= 0 || errno != ENOENT; /* and stays as it is */
    if (fd >= 0)
      close (fd);
    return NULL;
  }
  g_autofree guint8 *data = NULL;
  gsize size = 0;
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    g_set_error_literal (error, TINY_ERROR, TINY_ERROR_PERMISSION, "others can write it");
  else if (info.st_size > MAX_BYTES)
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT, "larger than %d bytes", MAX_BYTES);
  else {
    data = tiny_memory_try ((gsize) info.st_size, self->path, error);
    gssize got = data != NULL;
    while (got > 0 && size < (gsize) info.st_size)
      if ((got = read (fd, data + size, (gsize) info.st_size - size)) > 0)
        size += (gsize) got;
  }
  close (fd);
  return size > 0 ? g_bytes_new_take (g_steal_pointer (&data), size) : NULL;
}

static gboolean
read_entries (TinyManifestCache *self, GBytes *file)
{
  gsize size;
  const guint8 *data = g_bytes_get_data (file, &size);
  Reader reader = { data, data + size, FALSE };
  gconstpointer magic = take (&reader, sizeof MAGIC), sum = take (&reader, sizeof (guint64));
  guint64 here = sum ? sum_of (reader.at, (gsize) (reader.end - reader.at)) : 0;
  if (sum == NULL || memcmp (magic, MAGIC, sizeof MAGIC) != 0
      || memcmp (sum, &here, sizeof here) != 0)
    return FALSE;
  g_autofree char *stamp = core_stamp ();
  if (!g_str_equal (take_text (&reader), stamp))
    return !reader.is_bad; /* another version's is no damage, only of no use */
  guint32 n = take_uint (&reader);
  for (guint32 i = 0; i < n && !reader.is_bad; i++) {
    guint32 length = take_uint (&reader);
    const guint8 *entry = take (&reader, length);
    Reader inside = { entry, entry ? entry + length : NULL, entry == NULL };
    take (&inside, N_IDENTITY * sizeof (guint64));
    const char *path = take_text (&inside);
    reader.is_bad = reader.is_bad || inside.is_bad;
    if (!reader.is_bad)
      g_hash_table_replace (self->entries, (char *) path,
                            g_bytes_new_from_bytes (file, (gsize) (entry - data), length));
  }
  return !reader.is_bad && reader.at == reader.end;
}

static void
read_once (TinyManifestCache *self)
{
  g_autoptr (GError) error = NULL;
  if (self->is_read)
    return;
  self->is_read = TRUE;
  g_autoptr (GBytes) file = self->path != NULL ? read_own (self, &error) : NULL;
  if (g_error_matches (error, TINY_ERROR, TINY_ERROR_OUT_OF_MEMORY)) {
    self->is_foreign = TRUE; /* for this run */
    return;
  }
  if (error == NULL && (file == NULL || read_entries (self, file)))
    return;
  g_warning ("%s is damaged and will be rebuilt: %s", self->path,
             error ? error->message : "it does not hold together");
  g_hash_table_remove_all (self->entries);
  self->is_changed = TRUE;
}

/* ---- what others call ---- */
/* Whether a later change of the file would show in what stat() says. */
static gboolean
is_settled (const struct stat *info)
{
  gint64 tick = info->st_mtim.tv_nsec == 0 && info->st_ctim.tv_nsec == 0
                    ? (gint64) COARSE_TICK_S * G_USEC_PER_SEC
                    : TICK_NS / 1000;
  gint64 last
      = MAX ((gint64) info->st_mtim.tv_sec * G_USEC_PER_SEC + info->st_mtim.tv_nsec / 1000,
             (gint64) info->st_ctim.tv_sec * G_USEC_PER_SEC + info->st_ctim.tv_nsec / 1000);
  return g_get_real_time () - last > tick;
}

static void
remember (TinyManifestCache *self, const TinyManifest *manifest, const struct stat *before)
{
  struct stat after;
  guint64 was[N_IDENTITY], is[N_IDENTITY];
  if (self->path == NULL || self->is_foreign || !is_settled (before)
      || stat (manifest->path, &after) != 0)
    return;
  identify (before, was);
  identify (&after, is);
  if (memcmp (was, is, sizeof was) != 0) /* it may be of the one or of the other */
    return;
  GBytes *entry = manifest_to_bytes (manifest, before);
  if (entry == NULL)
    return;
  const char *path = (const char *) g_bytes_get_data (entry, NULL) + sizeof was;
  g_hash_table_replace (self->entries, (char *) path, entry);
  self->is_changed = TRUE;
}

TinyManifest *
tiny_manifest_cache_load (TinyManifestCache *self,
                          const char *path,
                          const struct stat *info,
                          GError **error)
{
  read_once (self);
  GBytes *bytes = g_hash_table_lookup (self->entries, path);
  TinyManifest *manifest = bytes ? manifest_from_bytes (bytes, path, info) : NULL;
  if (manifest != NULL)
    return manifest;
  self->n_parsed++;
  manifest = tiny_manifest_load (path, error);
  if (manifest != NULL)
    remember (self, manifest, info);
  return manifest;
}

/* The part behind the checksum; NULL: there is no memory. Manifests that are gone are forgotten; those of folders that this
 * program does not search are kept. */
static GBytes *
to_bytes (TinyManifestCache *self)
{
  TinyVector out = { NULL };
  g_autofree char *stamp = core_stamp ();
  GHashTableIter iter;
  gpointer path, value;
  g_hash_table_iter_init (&iter, self->entries);
  while (g_hash_table_iter_next (&iter, &path, &value))
    if (access (path, F_OK) != 0 || g_hash_table_size (self->entries) > MAX_ENTRIES)
      g_hash_table_iter_remove (&iter);
  put_text (&out, stamp);
  put_uint (&out, g_hash_table_size (self->entries));
  g_hash_table_iter_init (&iter, self->entries);
  while (g_hash_table_iter_next (&iter, &path, &value)) {
    put_uint (&out, (guint32) g_bytes_get_size (value));
    tiny_vector_append (&out, g_bytes_get_data (value, NULL), g_bytes_get_size (value));
  }
  return tiny_vector_steal_bytes (&out);
}

void
tiny_manifest_cache_save (TinyManifestCache *self)
{
  if (self->path == NULL || self->is_foreign || !self->is_changed)
    return;
  self->is_changed = FALSE;
  g_autoptr (GBytes) bytes = to_bytes (self);
  gsize n = 0;
  const guint8 *data = bytes != NULL ? g_bytes_get_data (bytes, &n) : NULL;
  guint8 head[sizeof MAGIC + sizeof (guint64)];
  const guint64 sum = sum_of (data, n);
  memcpy (head, MAGIC, sizeof MAGIC);
  memcpy (head + sizeof MAGIC, &sum, sizeof sum);
  const char *why = bytes == NULL                 ? "there is no memory"
                    : n + sizeof head > MAX_BYTES ? "there are too many"
                    : tiny_whole_file_keep (self->path, head, sizeof head, data, n)
                        ? NULL
                        : g_strerror (errno);
  if (why != NULL)
    g_debug ("manifests are not kept in %s: %s", self->path, why);
}
