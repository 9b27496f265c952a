/* SPDX-License-Identifier: MIT
 *
 * tiny-scan-cache.c: the results of scans, kept between runs: a file for each module. */
#include "plugin/tiny-scan-cache.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/tiny-whole-file.h"
#include "plugin/tiny-json.h"

enum { FORMAT = 4, MAX_BYTES = 1 << 20, FAILURE_LASTS_S = 24 * 3600, PASSING_LASTS_S = 1 };

typedef struct {
  char *key; /* what the result depends on */
  TinyScan *scan;
  GPtrArray *retired; /* where the result goes in the end; the cache's */
} Entry;

struct TinyScanCache {
  char *folder;        /* of the files, or NULL */
  GHashTable *entries; /* module path → Entry */
  GPtrArray *retired;  /* results that others may still look at */
};

static void
entry_free (gpointer data)
{
  Entry *self = data;
  g_free (self->key);
  g_ptr_array_add (self->retired, self->scan);
  g_ptr_array_unref (self->retired);
  g_free (self);
}

/* Takes both. */
static Entry *
new_entry (TinyScanCache *self, char *key, TinyScan *scan)
{
  Entry *entry = g_new0 (Entry, 1);
  *entry = (Entry){ key, scan, g_ptr_array_ref (self->retired) };
  return entry;
}

TinyScanCache *
tiny_scan_cache_new (const char *folder)
{
  TinyScanCache *self = g_new0 (TinyScanCache, 1);
  self->folder = folder ? g_build_filename (folder, "scans", NULL) : NULL;
  self->entries = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, entry_free);
  self->retired = g_ptr_array_new_with_free_func ((GDestroyNotify) tiny_scan_free);
  return self;
}

void
tiny_scan_cache_free (TinyScanCache *self)
{
  if (self == NULL)
    return;
  g_free (self->folder);
  g_hash_table_unref (self->entries);
  g_ptr_array_unref (self->retired);
  g_free (self);
}

void
tiny_scan_cache_settle (TinyScanCache *self)
{
  g_ptr_array_set_size (self->retired, 0);
}

/* ---- what a result depends on ---- */
static void
append_file (GString *out, const char *path)
{
  struct stat info;
  if (stat (path, &info) < 0)
    g_string_append (out, "absent");
  else
    g_string_append_printf (out, "%lld:%lld.%09ld:%lld.%09ld:%llu", (long long) info.st_size,
                            (long long) info.st_mtim.tv_sec, (long) info.st_mtim.tv_nsec,
                            (long long) info.st_ctim.tv_sec, (long) info.st_ctim.tv_nsec,
                            (unsigned long long) info.st_ino);
}

/* A value that is a path, or several, stands for what lies there too. */
static void
append_value (GString *out, const char *value)
{
  g_autofree char *valid = g_utf8_make_valid (value, -1);
  g_string_append_printf (out, "=%s", valid);
  g_auto (GStrv) parts = g_strsplit (value, G_SEARCHPATH_SEPARATOR_S, -1);
  for (guint i = 0; parts[i] != NULL; i++)
    if (g_path_is_absolute (parts[i])) {
      g_string_append_c (out, ' ');
      append_file (out, parts[i]);
    }
}

static char *
make_key (const TinyManifest *manifest)
{
  GString *out = g_string_new (NULL);
  append_file (out, manifest->module);
  g_string_append_printf (out, " %u", manifest->timeout_ms);
  g_autofree char *forbidden = tiny_manifest_find_forbidden (manifest);
  if (forbidden != NULL) /* when it no longer is, the device may work */
    g_string_append_printf (out, " (%s)", forbidden);
  for (guint i = 0; manifest->probe_env[i] != NULL; i++) {
    const char *value = g_getenv (manifest->probe_env[i]);
    g_string_append_printf (out, " %s", manifest->probe_env[i]);
    if (value != NULL)
      append_value (out, value);
  }
  for (guint i = 0; manifest->probe_files[i] != NULL; i++) {
    g_string_append_printf (out, " %s ", manifest->probe_files[i]);
    append_file (out, manifest->probe_files[i]);
  }
  return g_string_free (out, FALSE);
}

/* ---- the files ---- */
static char *
core_stamp (void)
{
  return g_strdup_printf ("%s abi %u.%u", TINY_VERSION, TINY_PLUGIN_ABI_MAJOR,
                          TINY_PLUGIN_ABI_MINOR);
}

static char *
path_of (TinyScanCache *self, const char *module)
{
  g_autofree char *sum = g_compute_checksum_for_string (G_CHECKSUM_SHA256, module, -1);
  g_autofree char *name = g_strconcat (sum, ".json", NULL);
  return g_build_filename (self->folder, name, NULL);
}

/* NULL without an error: of another version of the core, which is no damage, only of no use. */
static Entry *
entry_from_json (TinyScanCache *self, JsonObject *root, const char *module, GError **error)
{
  GError *wrong = NULL;
  g_autofree char *stamp = core_stamp ();
  const char *core = tiny_json_get_text (root, "core", &wrong);
  const char *key = tiny_json_get_text (root, "key", &wrong);
  const char *its_module = tiny_json_get_text (root, "module", &wrong);
  gint64 format = tiny_json_get_int (root, "format", -1, &wrong);
  TinyScan *scan = NULL;
  if (wrong == NULL && format < 0)
    g_set_error_literal (&wrong, TINY_ERROR, TINY_ERROR_FORMAT, "“format” is missing");
  else if (wrong == NULL && format == FORMAT && g_strcmp0 (core, stamp) == 0) {
    if (key == NULL || g_strcmp0 (its_module, module) != 0)
      g_set_error_literal (&wrong, TINY_ERROR, TINY_ERROR_FORMAT, "it is of another module");
    else
      scan = tiny_scan_from_json (root, &wrong);
  }
  if (wrong != NULL)
    g_propagate_error (error, wrong);
  return scan != NULL ? new_entry (self, g_strdup (key), scan) : NULL;
}

static Entry *
read_file (TinyScanCache *self, const char *module)
{
  if (self->folder == NULL)
    return NULL;
  g_autoptr (GError) error = NULL;
  g_autofree char *path = path_of (self, module);
  gsize size;
  g_autofree char *text = tiny_whole_file_find (path, MAX_BYTES, &size);
  if (text == NULL && errno != EFBIG) /* it is none, or a stranger's */
    return NULL;
  g_autoptr (JsonNode) root
      = tiny_json_parse (text != NULL ? text : "", text != NULL ? (gssize) size : 0, &error);
  Entry *entry
      = root ? entry_from_json (self, json_node_get_object (root), module, &error) : NULL;
  if (error == NULL || g_error_matches (error, TINY_ERROR, TINY_ERROR_OUT_OF_MEMORY))
    return entry; /* there is nothing wrong with the file */
  g_warning ("%s is damaged and will be rebuilt: %s", path, error->message);
  g_unlink (path);
  return NULL;
}

/* Removes the files of all modules, or of those that are gone. Their names do not tell, so all are read: a scan, after which
 * this is done, takes longer. */
static void
sweep (TinyScanCache *self, gboolean all)
{
  GDir *dir = self->folder ? g_dir_open (self->folder, 0, NULL) : NULL;
  const char *name;
  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL) {
    g_autofree char *path = g_build_filename (self->folder, name, NULL);
    g_autoptr (JsonNode) root = !all && g_str_has_suffix (name, ".json")
                                    ? tiny_json_load (path, MAX_BYTES, NULL)
                                    : NULL;
    const char *module
        = root ? tiny_json_get_text (json_node_get_object (root), "module", NULL) : NULL;
    if (all || (module != NULL && g_access (module, F_OK) != 0))
      g_unlink (path);
  }
  g_clear_pointer (&dir, g_dir_close);
}

static void
write_file (TinyScanCache *self, const char *module, const Entry *entry)
{
  if (self->folder == NULL || entry->scan->is_passing)
    return;
  g_autoptr (JsonNode) root = tiny_scan_to_json (entry->scan);
  JsonObject *object = json_node_get_object (root);
  g_autofree char *stamp = core_stamp ();
  json_object_set_int_member (object, "format", FORMAT);
  json_object_set_string_member (object, "core", stamp);
  json_object_set_string_member (object, "module", module);
  json_object_set_string_member (object, "key", entry->key);
  g_autofree char *text = json_to_string (root, TRUE);
  g_autofree char *path = path_of (self, module);
  if (strlen (text) > MAX_BYTES) /* nobody would read it */
    g_unlink (path);
  else if (!tiny_whole_file_keep (path, NULL, 0, text, strlen (text)))
    g_debug ("the result of a scan is not kept: %s: %s", path, g_strerror (errno));
  sweep (self, FALSE);
}

/* ---- results ---- */
/* A failure may have a cause that no key shows, such as a driver installed since. One for want of memory is kept for the
 * listing that it belongs to, in this process only. */
static gboolean
is_stale (const TinyScan *scan)
{
  gint64 age = g_get_real_time () / G_USEC_PER_SEC - scan->when;
  if (scan->is_passing)
    return age < 0 || age > PASSING_LASTS_S;
  return !scan->is_quarantined && scan->reason != NULL && (age < 0 || age > FAILURE_LASTS_S);
}

const TinyScan *
tiny_scan_cache_get (TinyScanCache *self, const TinyManifest *manifest)
{
  const Entry *entry = g_hash_table_lookup (self->entries, manifest->module);
  if (entry == NULL) {
    Entry *kept = read_file (self, manifest->module);
    if (kept != NULL)
      g_hash_table_insert (self->entries, g_strdup (manifest->module), kept);
    entry = kept;
  }
  if (entry == NULL || is_stale (entry->scan))
    return NULL;
  g_autofree char *key = make_key (manifest);
  return g_str_equal (key, entry->key) ? entry->scan : NULL;
}

const TinyScan *
tiny_scan_cache_put (TinyScanCache *self, const TinyManifest *manifest, TinyScan *scan)
{
  Entry *entry = new_entry (self, make_key (manifest), scan);
  g_hash_table_replace (self->entries, g_strdup (manifest->module), entry);
  write_file (self, manifest->module, entry);
  return scan;
}

void
tiny_scan_cache_forget (TinyScanCache *self, const TinyManifest *manifest)
{
  if (manifest == NULL) {
    g_hash_table_remove_all (self->entries);
    sweep (self, TRUE);
    return;
  }
  g_hash_table_remove (self->entries, manifest->module);
  g_autofree char *path = self->folder ? path_of (self, manifest->module) : NULL;
  if (path != NULL)
    g_unlink (path);
}
