/* SPDX-License-Identifier: MIT
 *
 * bundle.c: reads a vendor's archive.
 *
 * Every name is checked before anything is done with it, memory grows with what was unpacked and never
 * with what a header promises, and filters that libarchive would start a program for are left out. */
#include "tools/bundle.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/tiny-clean.h"
#include "base/tiny-error.h"
#include "base/tiny-memory.h"
#include "base/tiny-whole-file.h"
#include "plugin/tiny-json.h"

enum {
  MAX_FILES = 1000,
  MAX_BYTES = 512 << 20,
  MAX_NAME = 512,
  MAX_TEXT = 4096,
  CHUNK = 64 << 10
};

static gboolean fail (GError **error, const char *format, ...) G_GNUC_PRINTF (2, 3);

static gboolean
fail (GError **error, const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  g_autofree char *text = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  g_autofree char *valid = tiny_clean_text (text, MAX_TEXT);
  g_set_error_literal (error, TINY_ERROR, TINY_ERROR_FORMAT, valid);
  return FALSE;
}

/* @what: libarchive cannot go on. */
static gboolean
fail_archive (GError **error, struct archive *archive, const char *what)
{
  const char *why = archive_error_string (archive);
  if (archive_errno (archive) == ENOMEM) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_OUT_OF_MEMORY, "%s: no memory to unpack it",
                 what);
    return FALSE;
  }
  return fail (error, "%s: %s", what, why != NULL ? why : "it ends early");
}

/* ---- names ---- */
/* @name without "./" in front, if it stays below the folder it is unpacked in (transfer full). */
static char *
check_name (const char *name, GError **error)
{
  if (name == NULL || !g_utf8_validate (name, -1, NULL)) {
    fail (error, "a member has a name that is no UTF-8");
    return NULL;
  }
  while (g_str_has_prefix (name, "./"))
    name += 2;
  gboolean is_plain
      = strlen (name) <= MAX_NAME && name[0] != '/' && strchr (name, '\\') == NULL;
  for (const char *c = name; *c != 0 && is_plain; c = g_utf8_next_char (c))
    is_plain = g_unichar_isprint (g_utf8_get_char (c));
  g_auto (GStrv) parts = g_strsplit (name, "/", -1);
  for (guint i = 0; parts[i] != NULL && is_plain; i++) {
    gboolean is_end = parts[i + 1] == NULL && i > 0; /* "folder/" */
    is_plain = !g_str_equal (parts[i], "..") && !g_str_equal (parts[i], ".")
               && (parts[i][0] != 0 || is_end || name[0] == 0) && strlen (parts[i]) <= 200;
  }
  if (is_plain)
    return g_strdup (name);
  fail (
      error,
      "“%.100s” is no name that can be installed: relative, below the archive's top, printable",
      name);
  return NULL;
}

/* ---- reading ---- */
static GBytes *
read_data (struct archive *archive, const char *name, gsize *room, GError **error)
{
  g_auto (TinyVector) data = { NULL };
  for (;;) {
    gpointer at = tiny_vector_reserve (&data, CHUNK);
    if (at == NULL) {
      tiny_memory_fail (data.n_bytes + CHUNK, name, error);
      return NULL;
    }
    la_ssize_t got = archive_read_data (archive, at, CHUNK);
    data.n_bytes += (gsize) MAX (got, 0);
    if (got < 0) {
      fail_archive (error, archive, name);
      return NULL;
    }
    if (got == 0)
      return tiny_vector_steal_bytes (&data);
    if ((gsize) got > *room) {
      fail (error, "it unpacks to more than %d MiB", MAX_BYTES >> 20);
      return NULL;
    }
    *room -= (gsize) got;
  }
}

static gboolean
has_name (const Bundle *self, const char *name)
{
  g_autofree char *folded = g_utf8_casefold (name, -1);
  for (guint i = 0; i < self->names->len; i++) {
    g_autofree char *other = g_utf8_casefold (self->names->pdata[i], -1);
    if (g_str_equal (folded, other))
      return TRUE;
  }
  return FALSE;
}

static gboolean
read_member (Bundle *self,
             struct archive *archive,
             struct archive_entry *entry,
             gsize *room,
             GError **error)
{
  g_autofree char *name = check_name (archive_entry_pathname (entry), error);
  if (name == NULL)
    return FALSE;
  if (archive_entry_symlink (entry) != NULL || archive_entry_hardlink (entry) != NULL)
    return fail (error, "“%s” is a link, which a bundle may not have", name);
  if (archive_entry_is_encrypted (entry))
    return fail (error, "“%s” is encrypted", name);
  if (archive_entry_filetype (entry) == AE_IFDIR)
    return TRUE; /* folders come with their files */
  if (archive_entry_filetype (entry) != AE_IFREG)
    return fail (error, "“%s” is neither a file nor a folder", name);
  if (name[0] == 0 || g_str_has_suffix (name, "/"))
    return fail (error, "a file has a folder's name, “%s”", name);
  if (has_name (self, name))
    return fail (error, "“%s” is there twice, but for the case of letters", name);
  if (self->names->len >= MAX_FILES)
    return fail (error, "it has more than %d files", MAX_FILES);
  GBytes *data = read_data (archive, name, room, error);
  if (data == NULL)
    return FALSE;
  g_hash_table_insert (self->files, g_strdup (name), data);
  g_ptr_array_add (self->names, g_steal_pointer (&name));
  return TRUE;
}

static gboolean
read_archive (Bundle *self, struct archive *archive, GError **error)
{
  gsize room = MAX_BYTES;
  archive_read_support_format_tar (archive);
  archive_read_support_format_zip (archive);
  archive_read_support_filter_gzip (archive);
  archive_read_support_filter_bzip2 (archive);
  archive_read_support_filter_xz (archive);
  archive_read_support_filter_zstd (archive);
  if (archive_read_open_filename (archive, self->path, CHUNK) != ARCHIVE_OK)
    return fail_archive (error, archive, "it is no archive");
  struct archive_entry *entry;
  int status;
  while ((status = archive_read_next_header (archive, &entry)) == ARCHIVE_OK)
    if (!read_member (self, archive, entry, &room, error))
      return FALSE;
  if (status != ARCHIVE_EOF)
    return fail_archive (error, archive, "it is damaged or no archive");
  return self->names->len > 0 || fail (error, "it is empty");
}

/* ---- what is in it ---- */
/* A folder that holds everything is none of the bundle's. */
static void
strip_folder (Bundle *self)
{
  const char *first = self->names->pdata[0], *slash = strchr (first, '/');
  gsize length = slash ? (gsize) (slash - first) + 1 : 0;
  for (guint i = 0; i < self->names->len && length > 0; i++)
    if (strncmp (self->names->pdata[i], first, length) != 0)
      length = 0;
  if (length == 0)
    return;
  GHashTable *files
      = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify) g_bytes_unref);
  for (guint i = 0; i < self->names->len; i++) {
    char *old = self->names->pdata[i];
    g_hash_table_insert (files, g_strdup (old + length),
                         g_bytes_ref (g_hash_table_lookup (self->files, old)));
    self->names->pdata[i] = g_strdup (old + length);
    g_free (old);
  }
  g_hash_table_unref (self->files);
  self->files = files;
}

static gboolean
find_parts (Bundle *self, GError **error)
{
  for (guint i = 0; i < self->names->len; i++) {
    const char *name = self->names->pdata[i];
    if (strchr (name, '/') != NULL || !g_str_has_suffix (name, ".json"))
      continue;
    gboolean is_certificate
        = g_str_has_suffix (name, ".cert.json") || g_str_equal (name, "certificate.json");
    char **part = is_certificate ? &self->certificate_name : &self->manifest_name;
    if (*part != NULL)
      return fail (error, "it has two %s, “%s” and “%s”",
                   is_certificate ? "certificates" : "manifests", *part, name);
    *part = g_strdup (name);
  }
  return self->manifest_name != NULL
         || fail (error, "it has no manifest: one file NAME.json at its top");
}

/* An absolute path of the manifest read in / as a name of the bundle, or NULL: one that is absolute as it
 * is written, or goes up, would lead elsewhere from where the manifest comes to lie. */
static const char *
name_inside (JsonObject *object, const char *key, const char *absolute)
{
  const char *written = tiny_json_get_text (object, key, NULL);
  gboolean is_below
      = written != NULL && !g_path_is_absolute (written) && strstr (written, "..") == NULL;
  return is_below ? absolute + 1 : NULL;
}

static gboolean
check_exports (const Bundle *self, JsonObject *root, GError **error)
{
  JsonObject *exports = tiny_json_get_object (root, "exports", NULL);
  for (guint i = 0; i < self->manifest->exports->len; i++) {
    const TinyManifestExport *export = self->manifest->exports->pdata[i];
    if (export->folder == NULL)
      continue;
    JsonObject *object = tiny_json_get_object (exports, export->name, NULL);
    const char *inside = name_inside (object, "folder", export->folder);
    g_autofree char *prefix = inside ? g_strconcat (inside, "/", NULL) : NULL;
    gboolean found = FALSE;
    for (guint j = 0; inside != NULL && j < self->names->len; j++)
      found = found || g_str_has_prefix (self->names->pdata[j], prefix);
    if (!found)
      return fail (error, "the manifest's export “%s” is not in it", export->name);
  }
  return TRUE;
}

static gboolean
read_manifest (Bundle *self, GError **error)
{
  gsize size;
  const char *text
      = g_bytes_get_data (g_hash_table_lookup (self->files, self->manifest_name), &size);
  g_autofree char *path = g_strconcat ("/", self->manifest_name, NULL);
  if (size > TINY_MANIFEST_MAX_BYTES)
    return fail (error, "%s has more than %d bytes", self->manifest_name,
                 TINY_MANIFEST_MAX_BYTES);
  g_autoptr (JsonNode) root = tiny_json_parse (text ? text : "", (gssize) size, error);
  self->manifest = root ? tiny_manifest_parse (path, text, (gssize) size, error) : NULL;
  if (self->manifest == NULL) {
    g_prefix_error (error, "%s: ", self->manifest_name);
    return FALSE;
  }
  const char *module
      = name_inside (json_node_get_object (root), "module", self->manifest->module);
  if (module == NULL || !g_hash_table_contains (self->files, module))
    return fail (error, "the manifest's module “%s” is not in it",
                 tiny_json_get_text (json_node_get_object (root), "module", NULL));
  self->module_name = g_strdup (module);
  return check_exports (self, json_node_get_object (root), error);
}

static gboolean
hash_file (Bundle *self, GError **error)
{
  g_autoptr (GChecksum) sum = g_checksum_new (G_CHECKSUM_SHA256);
  FILE *file = g_fopen (self->path, "rbe");
  if (file == NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_IO, "%s", g_strerror (errno));
    return FALSE;
  }
  guint8 part[4096];
  gsize n;
  while ((n = fread (part, 1, sizeof part, file)) > 0)
    g_checksum_update (sum, part, (gssize) n);
  gboolean good = !ferror (file);
  fclose (file);
  self->hash = g_strdup (g_checksum_get_string (sum));
  if (!good)
    g_set_error (error, TINY_ERROR, TINY_ERROR_IO, "it cannot be read");
  return good;
}

Bundle *
bundle_read (const char *path, GError **error)
{
  g_autoptr (Bundle) self = g_new0 (Bundle, 1);
  self->path = g_canonicalize_filename (path, NULL);
  self->names = g_ptr_array_new_with_free_func (g_free);
  self->files
      = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify) g_bytes_unref);
  struct archive *archive = archive_read_new ();
  GStatBuf info = { 0 };
  gboolean good = FALSE;
  if (g_stat (path, &info) != 0)
    g_set_error (error, TINY_ERROR, TINY_ERROR_IO, "%s", g_strerror (errno));
  else if (!(good = S_ISREG (info.st_mode)))
    fail (error, "it is no file");
  else if (info.st_size > MAX_BYTES)
    good
        = fail (error, "it has more than %d MiB, which a bundle may not have", MAX_BYTES >> 20);
  /* What is none is seen before it is read as a whole. */
  good = good && read_archive (self, archive, error) && hash_file (self, error);
  archive_read_free (archive);
  if (good) {
    strip_folder (self);
    good = find_parts (self, error) && read_manifest (self, error);
  }
  if (good)
    return g_steal_pointer (&self);
  g_prefix_error (error, "%s: ", path);
  return NULL;
}

void
bundle_free (Bundle *self)
{
  if (self == NULL)
    return;
  g_free (self->path);
  g_free (self->hash);
  g_ptr_array_unref (self->names);
  g_hash_table_unref (self->files);
  g_free (self->manifest_name);
  g_free (self->module_name);
  g_free (self->certificate_name);
  g_clear_pointer (&self->manifest, tiny_manifest_free);
  g_free (self);
}

/* ---- writing it out ---- */
static gboolean
make_folders (const char *root, const char *path, GError **error)
{
  g_autofree char *folder = g_path_get_dirname (path);
  if (g_str_equal (folder, root) || g_file_test (folder, G_FILE_TEST_IS_DIR))
    return TRUE;
  if (!make_folders (root, folder, error))
    return FALSE;
  /* Whatever umask says: what others could write, nobody would load. */
  if (g_mkdir (folder, 0755) == 0 && g_chmod (folder, 0755) == 0)
    return TRUE;
  g_set_error (error, TINY_ERROR, TINY_ERROR_IO, "%s: %s", folder, g_strerror (errno));
  return FALSE;
}

gboolean
bundle_write (const Bundle *self, const char *folder, GError **error)
{
  for (guint i = 0; i < self->names->len; i++) {
    gsize size;
    const char *name = self->names->pdata[i];
    const char *data = g_bytes_get_data (g_hash_table_lookup (self->files, name), &size);
    g_autofree char *path = g_build_filename (folder, name, NULL);
    if (!make_folders (folder, path, error)
        || !tiny_whole_file_write (path, data ? data : "", (gssize) size, error))
      return FALSE;
    if (g_chmod (path, 0644) != 0) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_IO, "%s: %s", path, g_strerror (errno));
      return FALSE;
    }
  }
  return TRUE;
}

static void
move_member (JsonObject *object, const char *key, const char *folder)
{
  const char *old = tiny_json_get_text (object, key, NULL);
  if (old == NULL || old[0] == 0)
    return;
  g_autofree char *moved = g_build_filename (folder, old, NULL);
  json_object_set_string_member (object, key, moved);
}

char *
bundle_move_manifest (const char *text, const char *folder, GError **error)
{
  g_autoptr (JsonNode) root = json_from_string (text, error);
  if (root == NULL)
    return NULL;
  JsonObject *object = json_node_get_object (root);
  JsonObject *exports = tiny_json_get_object (object, "exports", NULL);
  g_autoptr (GList) entries = exports ? json_object_get_values (exports) : NULL;
  move_member (object, "module", folder);
  for (GList *at = entries; at != NULL; at = at->next)
    move_member (json_node_get_object (at->data), "folder", folder);
  return json_to_string (root, TRUE);
}
