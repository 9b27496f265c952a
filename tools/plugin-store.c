/* SPDX-License-Identifier: MIT
 *
 * plugin-store.c: installs, lists and removes bundles. */
#include "tools/plugin-store.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/tiny-error.h"
#include "base/tiny-whole-file.h"
#include "plugin/tiny-abi-check.h"
#include "plugin/tiny-discovery.h"
#include "plugin/tiny-elf.h"
#include "plugin/tiny-json.h"
#include "plugin/tiny-registry.h"
#include "plugin/tiny-scan.h"
#include "sdk/conformance/verdict.h"

#define RECORD "record.json"

enum { MAX_RECORD = 64 << 10 };

char *
plugin_store_get_folder (gboolean is_system)
{
  const char *data = is_system ? g_get_system_data_dirs ()[0] : g_get_user_data_dir ();
  return g_build_filename (data ? data : "/usr/local/share", "tinycore-1.0", NULL);
}

static gboolean
fail_errno (GError **error, const char *path)
{
  int failure = errno;
  g_set_error (error, TINY_ERROR,
               failure == EACCES || failure == EPERM ? TINY_ERROR_PERMISSION : TINY_ERROR_IO,
               "%s: %s", path, g_strerror (failure));
  return FALSE;
}

/* ---- folders ---- */
static gboolean
make_folder (const char *path, GError **error)
{
  g_autofree char *parent = g_path_get_dirname (path);
  if (g_file_test (path, G_FILE_TEST_IS_DIR))
    return TRUE;
  if (!make_folder (parent, error))
    return FALSE;
  if (g_mkdir (path, 0755) == 0)
    return g_chmod (path, 0755) == 0 || fail_errno (error, path);
  /* Another installation may have made it meanwhile. */
  return (errno == EEXIST && g_file_test (path, G_FILE_TEST_IS_DIR))
         || fail_errno (error, path);
}

/* Never follows a link out of the tree. */
static void
remove_tree (const char *path)
{
  struct stat info;
  if (lstat (path, &info) == 0 && S_ISDIR (info.st_mode)) {
    g_autoptr (GDir) dir = g_dir_open (path, 0, NULL);
    for (const char *name = dir ? g_dir_read_name (dir) : NULL; name != NULL;
         name = g_dir_read_name (dir)) {
      g_autofree char *inner = g_build_filename (path, name, NULL);
      remove_tree (inner);
    }
  }
  g_remove (path);
}

/* One install or removal at a time; the file descriptor, or -1. */
static int
lock_folder (const char *folder, GError **error)
{
  int fd = open (folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 || flock (fd, LOCK_EX) != 0)
    fail_errno (error, folder);
  return fd;
}

static char *
find_manifest (const char *folder, const char *name)
{
  g_autofree char *lower = g_ascii_strdown (name, -1);
  g_autofree char *file = g_strconcat (lower, ".json", NULL);
  return g_build_filename (folder, "plugins.d", file, NULL);
}

/* ---- records ---- */
static void
installed_free (gpointer data)
{
  Installed *self = data;
  char *texts[]
      = { self->name,        self->version, self->vendor, self->manifest, self->folder,
          self->certificate, self->source,  self->hash,   self->when };
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    g_free (texts[i]);
  g_free (self);
}

/* The folder below plugins/ that a manifest's module lies in, if there is a record (transfer full), or NULL. */
static char *
find_home (const char *folder, const TinyManifest *manifest)
{
  g_autofree char *plugins = g_strconcat (folder, "/plugins/", NULL);
  if (!g_str_has_prefix (manifest->module, plugins))
    return NULL;
  const char *rest = manifest->module + strlen (plugins);
  g_autofree char *home = g_strdup_printf ("%s%.*s", plugins, (int) strcspn (rest, "/"), rest);
  g_autofree char *record = g_build_filename (home, RECORD, NULL);
  return g_file_test (record, G_FILE_TEST_IS_REGULAR) ? g_steal_pointer (&home) : NULL;
}

static Installed *
read_installed (const char *folder, const char *manifest_path, gboolean is_system)
{
  g_autoptr (TinyManifest) manifest = tiny_manifest_load (manifest_path, NULL);
  g_autofree char *home = manifest ? find_home (folder, manifest) : NULL;
  g_autofree char *path = home ? g_build_filename (home, RECORD, NULL) : NULL;
  g_autoptr (JsonNode) root = path ? tiny_json_load (path, MAX_RECORD, NULL) : NULL;
  if (root == NULL)
    return NULL;
  JsonObject *record = json_node_get_object (root);
  const char *certificate = tiny_json_get_text (record, "certificate", NULL);
  Installed *self = g_new0 (Installed, 1);
  self->name = g_strdup (manifest->name);
  self->version = g_strdup (manifest->version);
  self->vendor = g_strdup (manifest->vendor);
  self->manifest = g_strdup (manifest_path);
  self->certificate = certificate ? g_build_filename (home, certificate, NULL) : NULL;
  self->source = g_strdup (tiny_json_get_text (record, "source", NULL));
  self->hash = g_strdup (tiny_json_get_text (record, "sha256", NULL));
  self->when = g_strdup (tiny_json_get_text (record, "when", NULL));
  self->folder = g_steal_pointer (&home);
  self->is_system = is_system;
  return self;
}

static gint
compare_installed (gconstpointer a, gconstpointer b)
{
  return g_ascii_strcasecmp ((*(Installed *const *) a)->name, (*(Installed *const *) b)->name);
}

GPtrArray *
plugin_store_list (gboolean is_system)
{
  GPtrArray *out = g_ptr_array_new_with_free_func (installed_free);
  g_autofree char *folder = plugin_store_get_folder (is_system);
  g_autofree char *manifests = g_build_filename (folder, "plugins.d", NULL);
  g_autoptr (GDir) dir = g_dir_open (manifests, 0, NULL);
  for (const char *name = dir ? g_dir_read_name (dir) : NULL; name != NULL;
       name = g_dir_read_name (dir)) {
    g_autofree char *path = g_build_filename (manifests, name, NULL);
    Installed *installed
        = g_str_has_suffix (name, ".json") ? read_installed (folder, path, is_system) : NULL;
    if (installed != NULL)
      g_ptr_array_add (out, installed);
  }
  g_ptr_array_sort (out, compare_installed);
  return out;
}

static gboolean
write_record (const Bundle *bundle, const char *home, GError **error)
{
  g_autoptr (JsonObject) record = json_object_new ();
  g_autoptr (GDateTime) now = g_date_time_new_now_utc ();
  g_autofree char *when = g_date_time_format_iso8601 (now);
  g_autofree char *path = g_build_filename (home, RECORD, NULL);
  g_autofree char *source = g_utf8_make_valid (bundle->path, -1); /* as JSON has to be */
  json_object_set_string_member (record, "source", source);
  json_object_set_string_member (record, "sha256", bundle->hash);
  json_object_set_string_member (record, "when", when);
  if (bundle->certificate_name != NULL)
    json_object_set_string_member (record, "certificate", bundle->certificate_name);
  g_autoptr (JsonNode) root = json_node_alloc ();
  json_node_init_object (root, record);
  g_autofree char *text = json_to_string (root, TRUE);
  /* Whatever umask says, as of all that is installed. */
  return tiny_whole_file_write (path, text, -1, error)
         && (g_chmod (path, 0644) == 0 || fail_errno (error, path));
}

/* ---- checks ---- */
static gboolean
check_abi (const char *module, const char *manifest, GPtrArray *notes, GError **error)
{
  g_autoptr (GPtrArray) findings = tiny_abi_check (module, manifest);
  GString *wrong = g_string_new (NULL);
  for (guint i = 0; i < findings->len; i++) {
    const TinyAbiFinding *finding = findings->pdata[i];
    if (finding->state == TINY_ABI_FAILED)
      g_string_append_printf (wrong, "%s%s: %s", wrong->len ? "; " : "", finding->check,
                              finding->text);
    else if (finding->state == TINY_ABI_WARNING)
      g_ptr_array_add (notes, g_strdup_printf ("%s: %s", finding->check, finding->text));
  }
  gboolean good = tiny_abi_is_good (findings);
  if (!good)
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                 "its module is not to be installed (tinycore abi-check says what to do): %s",
                 wrong->str);
  g_string_free (wrong, TRUE);
  return good;
}

/* The certificate of a bundle that has one (transfer full). */
static JsonNode *
read_certificate (const Bundle *bundle, GError **error)
{
  gsize size;
  const char *name = bundle->certificate_name;
  const char *text = g_bytes_get_data (g_hash_table_lookup (bundle->files, name), &size);
  g_autoptr (GError) why = NULL;
  g_autoptr (JsonNode) root = tiny_json_parse (text ? text : "", (gssize) size, error);
  if (root == NULL)
    g_prefix_error (error, "%s: ", name);
  else if (!conf_certificate_check_form (json_node_get_object (root), &why))
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
                 "%s is no certificate: tinycore conformance --json writes one (%s)", name,
                 why->message);
  else
    return g_steal_pointer (&root);
  return NULL;
}

/* What its cases say, whatever else it says: one of a run that failed is refused, and what certifies nothing is
 * shown as that. Whether its cases come out so is not known before they are run again (--verify). */
static gboolean
judge_certificate (const char *name, JsonObject *certificate, GPtrArray *notes, GError **error)
{
  g_autoptr (GPtrArray) wrong = conf_certificate_contradictions (certificate);
  const char *level = conf_certified_level (certificate);
  gint64 failed = 0;
  static const char *const failures[] = { "failed", "crashed", "hung" };
  if (wrong->len > 0) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN, "its certificate %s was changed: %s",
                 name, (const char *) wrong->pdata[0]);
    return FALSE;
  }
  for (guint i = 0; i < G_N_ELEMENTS (failures); i++)
    failed += conf_certificate_score (certificate, failures[i]);
  if (failed > 0 && g_str_equal (level, "none")) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                 "its certificate %s is of a run that failed: %" G_GINT64_FORMAT
                 " cases failed, and %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT
                 " that must pass did",
                 name, failed, conf_certificate_score (certificate, "passed"),
                 conf_certificate_score (certificate, "must"));
    return FALSE;
  }
  if (g_str_equal (level, "none"))
    g_ptr_array_add (notes, g_strdup ("its certificate is of a part of the suite, or of a run "
                                      "that did not end: it certifies nothing"));
  else if (failed > 0)
    g_ptr_array_add (notes, g_strdup_printf ("its certificate is of level %s; of what is above "
                                             "that, %" G_GINT64_FORMAT " cases failed",
                                             level, failed));
  return TRUE;
}

/* A certificate is of one binary, which its subject names by its build-id. */
static gboolean
check_certificate (const Bundle *bundle, const char *module, GPtrArray *notes, GError **error)
{
  if (bundle->certificate_name == NULL) {
    g_ptr_array_add (notes, g_strdup ("it brings no certificate of conformance"));
    return TRUE;
  }
  g_autoptr (JsonNode) root = read_certificate (bundle, error);
  g_autoptr (TinyElf) elf = root ? tiny_elf_open (module, error) : NULL;
  if (elf == NULL)
    return FALSE;
  JsonObject *certificate = json_node_get_object (root);
  g_autofree char *id = tiny_elf_read_build_id (elf);
  const char *its = conf_certificate_text (certificate, "subject", "build_id");
  if (id != NULL && g_ascii_strcasecmp (its, id) == 0)
    return judge_certificate (bundle->certificate_name, certificate, notes, error);
  g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
               "its certificate %s is for another binary: build-id %s, the module's is %s",
               bundle->certificate_name, its[0] ? its : "not said", id ? id : "none");
  return FALSE;
}

static gboolean
check_scan (const TinyManifest *manifest, GPtrArray *notes, GError **error)
{
  g_autoptr (TinyScan) scan = tiny_scan_run (manifest, error);
  if (scan == NULL)
    return FALSE;
  if (scan->is_quarantined || !scan->is_loaded) {
    g_set_error (error, TINY_ERROR, (gint) scan->code, "tried in a process of its own, %s",
                 scan->reason);
    return FALSE;
  }
  if (g_ascii_strcasecmp (scan->name, manifest->name) != 0) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                 "the manifest says “%s”, the module says “%s”", manifest->name, scan->name);
    return FALSE;
  }
  if (scan->devices->len == 0)
    g_ptr_array_add (notes, g_strdup_printf ("no device for it here: %s", scan->reason));
  return TRUE;
}

/* All of it in a folder that nobody else can look into, and that is gone afterwards. */
gboolean
plugin_store_check (const Bundle *bundle, GPtrArray *notes, GError **error)
{
  g_autofree char *stage = g_dir_make_tmp ("tinycore-plugin-XXXXXX", error);
  if (stage == NULL)
    return FALSE;
  g_autofree char *manifest = g_build_filename (stage, bundle->manifest_name, NULL);
  g_autofree char *module = g_build_filename (stage, bundle->module_name, NULL);
  g_autoptr (TinyManifest) staged = NULL;
  gboolean good = bundle_write (bundle, stage, error)
                  && (staged = tiny_manifest_load (manifest, error)) != NULL
                  && check_abi (module, manifest, notes, error)
                  && check_certificate (bundle, module, notes, error)
                  && check_scan (staged, notes, error);
  remove_tree (stage);
  /* No path of a folder that is gone. */
  if (!good && error != NULL && *error != NULL) {
    GString *text = g_string_new ((*error)->message);
    g_autofree char *prefix = g_strconcat (stage, "/", NULL);
    g_string_replace (text, prefix, "", 0);
    g_free ((*error)->message);
    (*error)->message = g_string_free (text, FALSE);
  }
  for (guint i = 0; i < notes->len; i++) {
    GString *text = g_string_new (notes->pdata[i]);
    g_autofree char *prefix = g_strconcat (stage, "/", NULL);
    g_string_replace (text, prefix, "", 0);
    g_free (notes->pdata[i]);
    notes->pdata[i] = g_string_free (text, FALSE);
  }
  return good;
}

/* ---- installing ---- */
/* A manifest of that name that somebody else put there is not ours to replace. */
static gboolean
check_place (const char *folder, const char *manifest, char **out_old_home, GError **error)
{
  *out_old_home = NULL;
  if (!g_file_test (manifest, G_FILE_TEST_EXISTS))
    return TRUE;
  g_autoptr (TinyManifest) there = tiny_manifest_load (manifest, NULL);
  *out_old_home = there ? find_home (folder, there) : NULL;
  if (*out_old_home != NULL)
    return TRUE;
  g_set_error (error, TINY_ERROR, TINY_ERROR_PERMISSION,
               "%s is there and was not installed by this command: remove it first", manifest);
  return FALSE;
}

static gboolean
place (const Bundle *bundle, const char *folder, const char *manifest, GError **error)
{
  g_autofree char *old_home = NULL;
  if (!check_place (folder, manifest, &old_home, error))
    return FALSE;
  g_autofree char *lower = g_ascii_strdown (bundle->manifest->name, -1);
  g_autofree char *version = g_strdup_printf ("%s-%.16s", lower, bundle->hash);
  g_autofree char *home = g_build_filename (folder, "plugins", version, NULL);
  g_autofree char *part = g_strconcat (home, ".part", NULL);
  g_autofree char *relative = g_build_filename ("..", "plugins", version, NULL);
  gsize size;
  const char *data
      = g_bytes_get_data (g_hash_table_lookup (bundle->files, bundle->manifest_name), &size);
  g_autofree char *original = g_strndup (data, size);
  g_autofree char *text = bundle_move_manifest (original, relative, error);
  if (text == NULL)
    return FALSE;
  remove_tree (part); /* of one that was ended half way */
  gboolean is_same = g_strcmp0 (old_home, home) == 0;
  if (old_home != NULL && !is_same) /* what was learnt of it */
    tiny_registry_retry (tiny_registry_get_default (), bundle->manifest->name);
  gboolean good
      = is_same
        || (make_folder (part, error) && bundle_write (bundle, part, error)
            && write_record (bundle, part, error)
            && (remove_tree (home), g_rename (part, home) == 0 || fail_errno (error, home)));
  good = good && tiny_whole_file_write (manifest, text, -1, error)
         && (g_chmod (manifest, 0644) == 0 || fail_errno (error, manifest));
  if (!good) {
    remove_tree (part);
    if (!is_same)
      remove_tree (home);
  } else if (old_home != NULL && !is_same) {
    remove_tree (old_home); /* programs that have it open keep it */
  }
  return good;
}

static void
remove_empty (const char *folder)
{
  static const char *const inner[] = { "plugins", "plugins.d" };
  for (guint i = 0; i < G_N_ELEMENTS (inner); i++) {
    g_autofree char *path = g_build_filename (folder, inner[i], NULL);
    g_rmdir (path);
  }
  g_rmdir (folder);
}

/* Another manifest of its name that comes first makes what was installed invisible. */
static void
note_shadow (const char *manifest, GPtrArray *notes)
{
  g_autoptr (GPtrArray) all = tiny_discover (NULL, NULL, NULL);
  gboolean is_found = FALSE;
  for (guint i = 0; i < all->len; i++) {
    const TinyFound *found = all->pdata[i];
    if (!g_str_equal (found->path, manifest))
      continue;
    is_found = TRUE;
    if (found->shadower != NULL)
      g_ptr_array_add (notes, g_strdup_printf ("it is hidden by %s", found->shadower));
    else if (found->error != NULL)
      g_ptr_array_add (notes, g_strdup (found->error->message));
  }
  if (!is_found)
    g_ptr_array_add (
        notes, g_strdup_printf ("%s is not among the folders that are searched", manifest));
}

gboolean
plugin_store_install (const Bundle *bundle,
                      gboolean is_system,
                      GPtrArray *out_notes,
                      GError **error)
{
  g_autofree char *folder = plugin_store_get_folder (is_system);
  g_autofree char *manifest = find_manifest (folder, bundle->manifest->name);
  g_autofree char *manifests = g_path_get_dirname (manifest), *old_home = NULL;
  if (!check_place (folder, manifest, &old_home, error)
      || !plugin_store_check (bundle, out_notes, error))
    return FALSE;
  int lock = -1;
  gboolean good = make_folder (manifests, error) && (lock = lock_folder (folder, error)) >= 0
                  && make_folder (manifests, error) && place (bundle, folder, manifest, error);
  if (!good)
    remove_empty (folder);
  if (lock >= 0)
    close (lock);
  if (good)
    note_shadow (manifest, out_notes);
  return good;
}

gboolean
plugin_store_remove (const char *name, gboolean is_system, GError **error)
{
  g_autofree char *folder = plugin_store_get_folder (is_system);
  g_autoptr (GPtrArray) all = plugin_store_list (is_system);
  const Installed *installed = NULL;
  for (guint i = 0; i < all->len && installed == NULL; i++)
    if (g_ascii_strcasecmp (((const Installed *) all->pdata[i])->name, name) == 0)
      installed = all->pdata[i];
  if (installed == NULL) {
    g_set_error (
        error, TINY_ERROR, TINY_ERROR_NO_DEVICE,
        "“%s” was not installed by this command into %s; tinycore plugin list shows what was",
        name, folder);
    return FALSE;
  }
  int lock = lock_folder (folder, error);
  if (lock < 0)
    return FALSE;
  tiny_registry_retry (tiny_registry_get_default (),
                       installed->name); /* and what was learnt of it */
  gboolean good
      = g_unlink (installed->manifest) == 0 || fail_errno (error, installed->manifest);
  if (good)
    remove_tree (installed->folder);
  remove_empty (folder);
  close (lock);
  return good;
}
