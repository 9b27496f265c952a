/* SPDX-License-Identifier: MIT
 *
 * bundle-make.c: writes a bundle: the manifest at its top, the module beside it, exports below
 * exports/NAME. Times and owners are left out, and names are sorted, so that the same files give the same
 * archive. */
#include <archive.h>
#include <archive_entry.h>
#include <glib/gstdio.h>
#include <string.h>

#include "base/tiny-error.h"
#include "base/tiny-whole-file.h"
#include "plugin/tiny-json.h"
#include "tools/bundle.h"

typedef struct {
  struct archive *archive;
  const char *output;
} Writer;

static gboolean
fail_archive (const Writer *self, GError **error)
{
  const char *why = archive_error_string (self->archive);
  const int reason = archive_errno (self->archive); /* of the system, or the library's own */
  const gboolean is_system = reason > 0;
  g_set_error (error, TINY_ERROR, TINY_ERROR_IO, "%s: %s%s%s", self->output,
               why ? why : "cannot be written", is_system ? ": " : "",
               is_system ? g_strerror (reason) : "");
  return FALSE;
}

static gboolean
add_bytes (Writer *self, const char *name, const char *data, gsize size, GError **error)
{
  struct archive_entry *entry = archive_entry_new ();
  archive_entry_set_pathname_utf8 (entry, name);
  archive_entry_set_filetype (entry, AE_IFREG);
  archive_entry_set_perm (entry, 0644);
  archive_entry_set_size (entry, (la_int64_t) size);
  archive_entry_set_mtime (entry, 0, 0);
  gboolean good = archive_write_header (self->archive, entry) == ARCHIVE_OK
                  && archive_write_data (self->archive, data, size) == (la_ssize_t) size;
  archive_entry_free (entry);
  return good || fail_archive (self, error);
}

static gboolean
add_file (Writer *self, const char *name, const char *path, GError **error)
{
  g_autofree char *data = NULL;
  gsize size;
  g_autoptr (GError) why = NULL;
  if (g_file_get_contents (path, &data, &size, &why))
    return add_bytes (self, name, data, size, error);
  g_set_error_literal (error, TINY_ERROR, TINY_ERROR_IO, why->message);
  return FALSE;
}

static gint
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(char *const *) a, *(char *const *) b);
}

static gboolean
add_folder (Writer *self, const char *name, const char *path, GError **error)
{
  g_autoptr (GDir) dir = g_dir_open (path, 0, NULL);
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  if (dir == NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_IO, "%s: the folder of an export cannot be read",
                 path);
    return FALSE;
  }
  for (const char *row = g_dir_read_name (dir); row != NULL; row = g_dir_read_name (dir))
    g_ptr_array_add (names, g_strdup (row));
  g_ptr_array_sort (names, compare_names);
  for (guint i = 0; i < names->len; i++) {
    g_autofree char *inner = g_build_filename (name, names->pdata[i], NULL);
    g_autofree char *its = g_build_filename (path, names->pdata[i], NULL);
    gboolean is_folder = g_file_test (its, G_FILE_TEST_IS_DIR);
    if (!(is_folder ? add_folder : add_file) (self, inner, its, error))
      return FALSE;
  }
  return TRUE;
}

/* The manifest as it is in the bundle. */
static char *
rewrite_manifest (const TinyManifest *manifest, const char *path, GError **error)
{
  g_autofree char *text = NULL, *module = g_path_get_basename (manifest->module);
  if (!g_file_get_contents (path, &text, NULL, error))
    return NULL;
  g_autoptr (JsonNode) root = json_from_string (text, error);
  if (root == NULL)
    return NULL;
  JsonObject *object = json_node_get_object (root);
  JsonObject *exports = tiny_json_get_object (object, "exports", NULL);
  json_object_set_string_member (object, "module", module);
  for (guint i = 0; i < manifest->exports->len; i++) {
    const TinyManifestExport *export = manifest->exports->pdata[i];
    g_autofree char *folder = g_build_filename ("exports", export->name, NULL);
    if (export->folder != NULL)
      json_object_set_string_member (tiny_json_get_object (exports, export->name, NULL),
                                     "folder", folder);
  }
  return json_to_string (root, TRUE);
}

/* Where the manifest says, or beside it: the one that a build makes to be installed already says where the module
 * will be. */
static char *
find_module (const TinyManifest *manifest, const char *path, GError **error)
{
  g_autofree char *folder = g_path_get_dirname (path);
  g_autofree char *name = g_path_get_basename (manifest->module);
  g_autofree char *beside = g_build_filename (folder, name, NULL);
  if (g_file_test (manifest->module, G_FILE_TEST_IS_REGULAR))
    return g_strdup (manifest->module);
  if (g_file_test (beside, G_FILE_TEST_IS_REGULAR))
    return g_steal_pointer (&beside);
  g_set_error (error, TINY_ERROR, TINY_ERROR_IO,
               "the module of %s is neither %s nor %s: build it first", path, manifest->module,
               beside);
  return NULL;
}

static gboolean
add_all (Writer *self,
         const TinyManifest *manifest,
         const char *path,
         const char *certificate,
         GError **error)
{
  g_autofree char *text = rewrite_manifest (manifest, path, error);
  g_autofree char *lower = g_ascii_strdown (manifest->name, -1);
  g_autofree char *top = g_strconcat (lower, ".json", NULL);
  g_autofree char *beside = g_strconcat (lower, ".cert.json", NULL);
  g_autofree char *module = g_path_get_basename (manifest->module);
  g_autofree char *its_file = find_module (manifest, path, error);
  if (its_file == NULL || text == NULL || !add_bytes (self, top, text, strlen (text), error)
      || !add_file (self, module, its_file, error)
      || (certificate != NULL && !add_file (self, beside, certificate, error)))
    return FALSE;
  for (guint i = 0; i < manifest->exports->len; i++) {
    const TinyManifestExport *export = manifest->exports->pdata[i];
    g_autofree char *folder = g_build_filename ("exports", export->name, NULL);
    if (export->folder != NULL && !add_folder (self, folder, export->folder, error))
      return FALSE;
  }
  return archive_write_close (self->archive) == ARCHIVE_OK || fail_archive (self, error);
}

static gboolean
choose_kind (Writer *self, GError **error)
{
  static const struct {
    const char *end;
    int (*format) (struct archive *);
    int (*filter) (struct archive *);
  } kinds[] = {
    { ".tar.gz", archive_write_set_format_pax_restricted, archive_write_add_filter_gzip },
    { ".tgz", archive_write_set_format_pax_restricted, archive_write_add_filter_gzip },
    { ".tar.zst", archive_write_set_format_pax_restricted, archive_write_add_filter_zstd },
    { ".tar.xz", archive_write_set_format_pax_restricted, archive_write_add_filter_xz },
    { ".tar", archive_write_set_format_pax_restricted, archive_write_add_filter_none },
    { ".zip", archive_write_set_format_zip, archive_write_add_filter_none },
  };
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++)
    if (g_str_has_suffix (self->output, kinds[i].end)) {
      if (kinds[i].format (self->archive) != ARCHIVE_OK
          || kinds[i].filter (self->archive) != ARCHIVE_OK)
        return fail_archive (self, error);
      archive_write_set_filter_option (self->archive, "gzip", "timestamp", NULL);
      return TRUE;
    }
  g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
               "%s: the name of a bundle ends in .tar.gz, .tar.zst, .tar.xz, .tar or .zip",
               self->output);
  return FALSE;
}

gboolean
bundle_make (const char *manifest_path,
             const char *certificate,
             const char *output,
             GError **error)
{
  g_autofree char *path = g_canonicalize_filename (manifest_path, NULL);
  g_autoptr (TinyManifest) manifest = tiny_manifest_load (path, error);
  if (manifest == NULL) {
    g_prefix_error (error, "%s: ", manifest_path);
    return FALSE;
  }
  Writer writer = { archive_write_new (), output };
  TinyWholeFile file = { NULL };
  archive_write_set_bytes_in_last_block (writer.archive, 1); /* no padding */
  gboolean good = choose_kind (&writer, error) && tiny_whole_file_open (&file, output, error);
  if (good && archive_write_open_FILE (writer.archive, file.file) != ARCHIVE_OK)
    good = fail_archive (&writer, error);
  good = good && add_all (&writer, manifest, path, certificate, error);
  archive_write_free (writer.archive);
  return file.file == NULL ? FALSE : tiny_whole_file_close (&file, good, error);
}
