/* SPDX-License-Identifier: MIT
 *
 * tiny-scan-cache.c: the results of scans, kept in one file between runs. */
#include "plugin/tiny-scan-cache.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

#include "plugin/tiny-json.h"

enum { FORMAT = 3, MAX_BYTES = 4 << 20, FAILURE_LASTS_S = 24 * 3600 };

typedef struct {
  char *key; /* what the result depends on */
  TinyScan *scan;
  GPtrArray *retired; /* where the result goes in the end; the cache's */
} Entry;

struct TinyScanCache {
  char *path; /* of the file, or NULL */
  gboolean is_read;
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

static GHashTable *
new_table (void)
{
  return g_hash_table_new_full (g_str_hash, g_str_equal, g_free, entry_free);
}

TinyScanCache *
tiny_scan_cache_new (const char *folder)
{
  TinyScanCache *self = g_new0 (TinyScanCache, 1);
  self->path = folder ? g_build_filename (folder, "registry.json", NULL) : NULL;
  self->entries = new_table ();
  self->retired = g_ptr_array_new_with_free_func ((GDestroyNotify) tiny_scan_free);
  return self;
}

void
tiny_scan_cache_free (TinyScanCache *self)
{
  if (self == NULL)
    return;
  g_free (self->path);
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

/* ---- the file ---- */
static char *
core_stamp (void)
{
  return g_strdup_printf ("%s abi %u.%u", TINY_VERSION, TINY_PLUGIN_ABI_MAJOR,
                          TINY_PLUGIN_ABI_MINOR);
}

static gboolean
read_entries (TinyScanCache *self, JsonObject *root, GHashTable *out, GError **error)
{
  GError *wrong = NULL;
  g_autofree char *stamp = core_stamp ();
  const char *core = tiny_json_get_text (root, "core", &wrong);
  gint64 format = tiny_json_get_int (root, "format", -1, &wrong);
  JsonObject *modules = tiny_json_get_object (root, "modules", &wrong);
  /* Another version's file is no damage; it is simply of no use. */
  gboolean foreign = format != FORMAT || core == NULL || !g_str_equal (core, stamp);
  if (wrong == NULL && format < 0)
    g_set_error_literal (&wrong, TINY_ERROR, TINY_ERROR_FORMAT, "“format” is missing");
  JsonObjectIter iter;
  const char *path;
  JsonNode *node;
  if (wrong == NULL && !foreign && modules != NULL) {
    json_object_iter_init (&iter, modules);
    while (wrong == NULL && json_object_iter_next (&iter, &path, &node)) {
      JsonObject *object = JSON_NODE_HOLDS_OBJECT (node) ? json_node_get_object (node) : NULL;
      const char *key = tiny_json_get_text (object, "key", &wrong);
      TinyScan *scan = key != NULL ? tiny_scan_from_json (object, &wrong) : NULL;
      if (scan == NULL)
        continue;
      g_hash_table_replace (out, g_strdup (path), new_entry (self, g_strdup (key), scan));
    }
  }
  if (wrong == NULL)
    return TRUE;
  g_propagate_error (error, wrong);
  return FALSE;
}

static GHashTable *
read_file (TinyScanCache *self)
{
  GHashTable *out = new_table ();
  g_autoptr (GError) error = NULL;
  if (self->path == NULL || g_access (self->path, F_OK) != 0)
    return out;
  g_autoptr (JsonNode) root = tiny_json_load (self->path, MAX_BYTES, &error);
  if (root != NULL && read_entries (self, json_node_get_object (root), out, &error))
    return out;
  if (!g_error_matches (error, TINY_ERROR, TINY_ERROR_IO))
    g_warning ("%s is damaged and will be rebuilt: %s", self->path, error->message);
  g_unlink (self->path);
  g_hash_table_remove_all (out);
  return out;
}

static void
read_once (TinyScanCache *self)
{
  if (self->is_read)
    return;
  self->is_read = TRUE;
  g_hash_table_unref (self->entries);
  self->entries = read_file (self);
}

static char *
to_text (GHashTable *entries)
{
  g_autoptr (JsonObject) root = json_object_new ();
  JsonObject *modules = json_object_new ();
  g_autofree char *stamp = core_stamp ();
  GHashTableIter iter;
  gpointer path, value;
  g_hash_table_iter_init (&iter, entries);
  while (g_hash_table_iter_next (&iter, &path, &value)) {
    const Entry *entry = value;
    JsonNode *node = tiny_scan_to_json (entry->scan);
    json_object_set_string_member (json_node_get_object (node), "key", entry->key);
    json_object_set_member (modules, path, node);
  }
  json_object_set_int_member (root, "format", FORMAT);
  json_object_set_string_member (root, "core", stamp);
  json_object_set_object_member (root, "modules", modules);
  g_autoptr (JsonNode) node = json_node_alloc ();
  json_node_init_object (node, root);
  return json_to_string (node, TRUE);
}

/* What another process wrote in the meantime is kept, except for the module whose entry is ours to
 * say; NULL: all of them are. */
static void
merge_file (TinyScanCache *self, const char *changed)
{
  g_autoptr (GHashTable) theirs = read_file (self);
  GHashTableIter iter;
  gpointer path, entry;
  g_hash_table_iter_init (&iter, theirs);
  while (g_hash_table_iter_next (&iter, &path, &entry)) {
    if (g_str_equal (path, changed))
      continue;
    g_hash_table_iter_steal (&iter);
    g_hash_table_replace (self->entries, path, entry);
  }
}

static void
write_file (TinyScanCache *self, const char *changed)
{
  if (self->path == NULL)
    return;
  if (changed != NULL)
    merge_file (self, changed);
  g_autofree char *text = to_text (self->entries);
  g_autofree char *folder = g_path_get_dirname (self->path);
  g_mkdir_with_parents (folder, 0700);
  g_autoptr (GError) error = NULL;
  if (!g_file_set_contents_full (self->path, text, -1, G_FILE_SET_CONTENTS_CONSISTENT, 0600,
                                 &error))
    g_debug ("scan results are not kept: %s", error->message);
}

/* ---- results ---- */
/* A failure may have a cause that no key shows, such as a driver installed since. */
static gboolean
is_stale (const TinyScan *scan)
{
  gint64 age = g_get_real_time () / G_USEC_PER_SEC - scan->when;
  return !scan->is_quarantined && scan->reason != NULL && (age < 0 || age > FAILURE_LASTS_S);
}

const TinyScan *
tiny_scan_cache_get (TinyScanCache *self, const TinyManifest *manifest)
{
  read_once (self);
  const Entry *entry = g_hash_table_lookup (self->entries, manifest->module);
  if (entry == NULL || is_stale (entry->scan))
    return NULL;
  g_autofree char *key = make_key (manifest);
  return g_str_equal (key, entry->key) ? entry->scan : NULL;
}

const TinyScan *
tiny_scan_cache_put (TinyScanCache *self, const TinyManifest *manifest, TinyScan *scan)
{
  read_once (self);
  g_hash_table_replace (self->entries, g_strdup (manifest->module),
                        new_entry (self, make_key (manifest), scan));
  write_file (self, manifest->module);
  return scan;
}

void
tiny_scan_cache_forget (TinyScanCache *self, const TinyManifest *manifest)
{
  read_once (self);
  if (manifest == NULL)
    g_hash_table_remove_all (self->entries);
  else
    g_hash_table_remove (self->entries, manifest->module);
  write_file (self, manifest ? manifest->module : NULL);
}
