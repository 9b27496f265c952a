/* SPDX-License-Identifier: MIT
 *
 * tiny-registry.c: which backends there are, and what is wrong with the others.
 *
 * The ladder, each rung climbed only when asked for: read manifests and match hardware → look at
 * the module's ELF file → load and scan it in the helper process, remembered → load it here. */
#include "plugin/tiny-registry.h"

#include <string.h>

#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "plugin/registry-private.h"
#include "plugin/tiny-record.h"
#include "plugin/tiny-crash.h"
#include "plugin/tiny-elf.h"
#include "plugin/tiny-library.h"
#include "plugin/tiny-worker.h"

G_DEFINE_FINAL_TYPE (TinyRegistry, tiny_registry, G_TYPE_OBJECT)

/* ---- life ---- */
static void
weak_ref_free (gpointer data)
{
  g_weak_ref_clear (data);
  g_free (data);
}

static void
forget_found (TinyRegistry *self)
{
  GPtrArray **arrays[] = { &self->found, &self->places };
  for (guint i = 0; i < G_N_ELEMENTS (arrays); i++)
    if (*arrays[i] != NULL)
      g_ptr_array_add (self->retired, g_steal_pointer (arrays[i]));
}

static void
tiny_registry_init (TinyRegistry *self)
{
  g_mutex_init (&self->lock);
  g_cond_init (&self->done);
  self->begun = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  self->retired = g_ptr_array_new_with_free_func ((GDestroyNotify) g_ptr_array_unref);
  self->added = g_ptr_array_new_with_free_func (g_free);
  self->scanned = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  self->backends = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_object_unref);
  self->loaded = g_hash_table_new_full (g_str_hash, g_str_equal, g_free,
                                        (GDestroyNotify) tiny_scan_free);
  self->devices = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, weak_ref_free);
}

static void
tiny_registry_finalize (GObject *object)
{
  TinyRegistry *self = TINY_REGISTRY (object);
  g_hash_table_unref (self->devices);
  g_hash_table_unref (self->loaded);
  g_hash_table_unref (self->backends);
  g_hash_table_unref (self->scanned);
  g_clear_pointer (&self->cache, tiny_scan_cache_free);
  g_clear_pointer (&self->manifests, tiny_manifest_cache_free);
  forget_found (self);
  g_ptr_array_unref (self->retired);
  g_hash_table_unref (self->begun);
  g_ptr_array_unref (self->added);
  g_strfreev (self->folders);
  g_free (self->crashes);
  g_cond_clear (&self->done);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (tiny_registry_parent_class)->finalize (object);
}

static void
tiny_registry_class_init (TinyRegistryClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = tiny_registry_finalize;
}

TinyRegistry *
tiny_registry_new (const char *const *folders, const char *cache_dir)
{
  TinyRegistry *self = g_object_new (TINY_TYPE_REGISTRY, NULL);
  self->folders = g_strdupv ((char **) folders);
  self->cache = tiny_scan_cache_new (cache_dir);
  self->manifests = tiny_manifest_cache_new (cache_dir);
  self->crashes = cache_dir ? g_build_filename (cache_dir, "crashes", NULL) : NULL;
  return self;
}

TinyRegistry *
tiny_registry_get_default (void)
{
  static TinyRegistry *registry = NULL;
  if (g_once_init_enter (&registry)) {
    const char *wanted = tiny_env_get_text (TINY_ENV_CACHE_DIR);
    g_autofree char *folder
        = tiny_env_is_privileged () ? NULL
          : wanted                  ? g_strdup (wanted)
                   : g_build_filename (g_get_user_cache_dir (), "tinycore-1.0", NULL);
    g_once_init_leave (&registry, tiny_registry_new (NULL, folder));
  }
  return registry;
}

/* ---- who is in it ---- */
void
tiny_registry_enter (TinyRegistry *self)
{
  g_mutex_lock (&self->lock);
  self->n_users++;
}

void
tiny_registry_leave (TinyRegistry *self)
{
  if (--self->n_users == 0) {
    if (self->is_short)
      forget_found (self);
    g_ptr_array_set_size (self->retired, 0);
    tiny_scan_cache_settle (self->cache);
  }
  g_mutex_unlock (&self->lock);
}

gboolean
tiny_registry_begin (TinyRegistry *self, const char *kind, const char *key)
{
  g_autofree char *name = g_strconcat (kind, " ", key, NULL);
  if (!g_hash_table_contains (self->begun, name)) {
    g_hash_table_add (self->begun, g_steal_pointer (&name));
    g_mutex_unlock (&self->lock);
    return TRUE;
  }
  while (g_hash_table_contains (self->begun, name))
    g_cond_wait (&self->done, &self->lock);
  return FALSE;
}

void
tiny_registry_end (TinyRegistry *self, const char *kind, const char *key)
{
  g_autofree char *name = g_strconcat (kind, " ", key, NULL);
  g_mutex_lock (&self->lock);
  g_hash_table_remove (self->begun, name);
  g_cond_broadcast (&self->done);
}

void
tiny_registry_add_path (TinyRegistry *self, const char *folder)
{
  tiny_registry_enter (self);
  g_ptr_array_add (self->added, g_strdup (folder));
  forget_found (self);
  tiny_registry_leave (self);
}

void
tiny_registry_retry (TinyRegistry *self, const char *name)
{
  tiny_registry_enter (self);
  forget_found (self);
  const TinyFound *found = name ? tiny_registry_find (self, name) : NULL;
  if (name == NULL || (found != NULL && found->manifest != NULL)) {
    tiny_scan_cache_forget (self->cache, found ? found->manifest : NULL);
    tiny_crash_forget (self->crashes, found ? found->manifest : NULL);
  }
  g_hash_table_remove_all (self->scanned);
  tiny_registry_leave (self);
}

/* ---- manifests ---- */
const GPtrArray *
tiny_registry_get_found (TinyRegistry *self)
{
  if (self->found != NULL)
    return self->found;
  self->found = tiny_discover_cached ((const char *const *) self->folders, self->added,
                                      self->manifests, &self->places);
  self->is_short = FALSE;
  for (guint i = 0; i < self->found->len; i++) {
    const GError *wrong = ((TinyFound *) self->found->pdata[i])->error;
    self->is_short
        = self->is_short
          || (wrong != NULL && tiny_scan_is_shortage ((TinyError) wrong->code, wrong->message));
  }
  return self->found;
}

const TinyFound *
tiny_registry_find (TinyRegistry *self, const char *name)
{
  const GPtrArray *all = tiny_registry_get_found (self);
  for (guint i = 0; i < all->len; i++) {
    const TinyFound *found = all->pdata[i];
    if (found->shadower == NULL && g_ascii_strcasecmp (found->name, name) == 0)
      return found;
  }
  return NULL;
}

/* ---- scans ---- */
static gboolean
check_found (const TinyFound *found, GError **error)
{
  if (found->is_mask)
    g_set_error (error, TINY_ERROR, TINY_ERROR_NO_DEVICE, "%s: hidden by the empty file %s",
                 found->name, found->path);
  else if (found->manifest == NULL)
    g_propagate_prefixed_error (error, g_error_copy (found->error), "%s: ", found->name);
  return found->manifest != NULL;
}

const TinyScan *
tiny_registry_recall (TinyRegistry *self, const TinyFound *found)
{
  if (found->manifest == NULL)
    return NULL;
  const TinyScan *loaded = g_hash_table_lookup (self->loaded, found->manifest->module);
  return loaded ? loaded : tiny_scan_cache_get (self->cache, found->manifest);
}

/* A failure that the file itself explains is not remembered: looking costs microseconds. */
gboolean
tiny_registry_check_module (const TinyFound *found, GError **error)
{
  const char *module = found->manifest->module;
  if (!g_file_test (module, G_FILE_TEST_EXISTS)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                 "%s: its module %s is not there (manifest %s)", found->name, module,
                 found->path);
    return FALSE;
  }
  if (tiny_file_check_trust (module, found->any_owner, error) && tiny_elf_check (module, error))
    return TRUE;
  g_prefix_error (error, "%s: ", found->name);
  return FALSE;
}

static void
append (char **text, const char *more)
{
  char *longer = g_strdup_printf ("%s; %s", *text, more);
  g_free (*text);
  *text = longer;
}

/* What this process can add to what went wrong in the helper: the package of a missing library, the
 * device node that this user may not open. */
static void
diagnose (TinyScan *scan, const TinyManifest *manifest)
{
  g_autofree char *forbidden = tiny_manifest_find_forbidden (manifest);
  gboolean has_package = manifest->package[0] != 0; /* it is said with every missing driver */
  g_autofree char *package
      = scan->missing && !has_package ? tiny_library_find_package (scan->missing) : NULL;
  if (package != NULL) {
    g_autofree char *text = g_strdup_printf ("the package %s has it", package);
    append (&scan->reason, text);
  }
  if (forbidden != NULL && scan->reason != NULL && !scan->is_quarantined) {
    append (&scan->reason, forbidden);
    scan->code = TINY_ERROR_PERMISSION;
  }
  for (guint i = 0; forbidden != NULL && i < scan->devices->len; i++) {
    TinyScanDevice *device = scan->devices->pdata[i];
    if (device->error == NULL)
      continue;
    append (&device->error, forbidden);
    device->code = TINY_ERROR_PERMISSION;
  }
}

/* What is known and need not be looked for again, or NULL. */
static const TinyScan *
recall_settled (TinyRegistry *self, const TinyFound *found, gboolean again)
{
  const TinyScan *known = tiny_scan_cache_get (self->cache, found->manifest);
  /* A time-out may have been the machine's fault rather than the plugin's. */
  gboolean is_settled
      = known != NULL && known->is_quarantined && known->code != TINY_ERROR_TIMEOUT;
  gboolean good = known != NULL && (known->reason == NULL || is_settled);
  for (guint i = 0; good && known->reason == NULL && i < known->devices->len; i++)
    good = ((const TinyScanDevice *) known->devices->pdata[i])->error == NULL;
  return good || !again || g_hash_table_contains (self->scanned, found->manifest->module)
             ? known
             : NULL;
}

const TinyScan *
tiny_registry_scan (TinyRegistry *self, const TinyFound *found, gboolean again, GError **error)
{
  /* What this process has loaded it goes on with, whatever lies at that path now. */
  const TinyScan *known
      = found->manifest ? g_hash_table_lookup (self->loaded, found->manifest->module) : NULL;
  if (known != NULL)
    return known;
  if (!check_found (found, error) || !tiny_registry_check_module (found, error))
    return NULL;
  const char *module = found->manifest->module;
  do
    if ((known = recall_settled (self, found, again)) != NULL)
      return known;
  while (!tiny_registry_begin (self, "scan", module));
  TinyScan *scan = tiny_scan_run (found->manifest, error);
  if (scan != NULL)
    diagnose (scan, found->manifest);
  tiny_registry_end (self, "scan", module);
  if (scan == NULL) {
    g_prefix_error (error, "%s: ", found->name);
    return NULL;
  }
  g_hash_table_add (self->scanned, g_strdup (module));
  return tiny_scan_cache_put (self->cache, found->manifest, scan);
}

static gboolean
fail (GError **error, const TinyFound *found, TinyError code, const char *reason)
{
  const char *package = found->manifest->package;
  gboolean say_package = code == TINY_ERROR_DRIVER && package[0] != 0;
  g_autofree char *prefix = g_strdup_printf ("%s: ", found->name);
  if (g_str_has_prefix (reason, prefix))
    reason += strlen (prefix);
  g_set_error (error, TINY_ERROR, (gint) code, "%s%s%s%s%s", prefix, reason,
               say_package ? " (its driver comes with the package " : "",
               say_package ? package : "", say_package ? ")" : "");
  return FALSE;
}

/* A manifest and a module that are not of one package are a mistake, whichever of the two is right. */
static gboolean
check_agreement (const TinyScan *scan, const TinyFound *found, GError **error)
{
  const struct {
    const char *what, *said, *is;
  } texts[] = { { "name", found->name, scan->name },
                { "vendor", found->manifest->vendor, scan->vendor },
                { "version", found->manifest->version, scan->version } };
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++) {
    if (texts[i].said[0] == 0 || g_ascii_strcasecmp (texts[i].said, texts[i].is) == 0)
      continue;
    g_set_error (
        error, TINY_ERROR, TINY_ERROR_PLUGIN,
        "%s: the manifest %s says “%s”, the module it names says “%s” (%s); install both from "
        "one package",
        found->name, found->path, texts[i].said, texts[i].is, texts[i].what);
    return FALSE;
  }
  return TRUE;
}

gboolean
tiny_scan_check_loaded (const TinyScan *scan, const TinyFound *found, GError **error)
{
  if (scan->is_quarantined) {
    g_autoptr (GDateTime) when = g_date_time_new_from_unix_local (scan->when);
    g_autofree char *date = when ? g_date_time_format (when, "%F %H:%M") : g_strdup ("?");
    g_set_error (error, TINY_ERROR, (gint) scan->code,
                 "%s: in quarantine since %s: %s; it is tried again when %s changes, or with "
                 "“tinycore devices --retry”",
                 found->name, date, scan->reason ? scan->reason : "it failed",
                 found->manifest->module);
    return FALSE;
  }
  if (!scan->is_loaded)
    return fail (error, found, scan->code, scan->reason ? scan->reason : "it cannot be loaded");
  return check_agreement (scan, found, error);
}

gboolean
tiny_scan_check_devices (const TinyScan *scan, const TinyFound *found, GError **error)
{
  if (!tiny_scan_check_loaded (scan, found, error))
    return FALSE;
  if (scan->devices->len > 0)
    return TRUE;
  return fail (error, found, scan->code, scan->reason ? scan->reason : "it finds no device");
}

/* What a program before this one died of is not tried again in this, where there is another way. */
static TinyBackend *
load_suspect (TinyRegistry *self,
              const TinyFound *found,
              const TinyCrash *crash,
              gboolean can_isolate,
              GError **error)
{
  g_autofree char *what = tiny_crash_to_string (crash);
  if (!can_isolate) {
    g_warning ("%s: %s, and it cannot run in a process of its own, as its device lacks "
               "import_host(): it is used in "
               "this one again",
               found->name, what);
    return tiny_backend_load_watched (found->manifest->module,
                                      tiny_crash_watch (self->crashes, found->manifest), error);
  }
  g_warning (
      "%s: %s, so it runs in a process of its own now, until its file changes or “tinycore "
      "devices --retry” is given",
      found->name, what);
  return tiny_worker_load_backend (found->manifest, error);
}

/* Without the lock. */
static TinyBackend *
load_new (TinyRegistry *self,
          const TinyFound *found,
          gboolean isolated,
          gboolean can_isolate,
          GError **error)
{
  const TinyManifest *manifest = found->manifest;
  g_autoptr (TinyCrash) crash = isolated ? NULL : tiny_crash_recall (self->crashes, manifest);
  TinyBackend *backend;
  if (isolated)
    backend = tiny_worker_load_backend (manifest, error);
  else if (crash != NULL)
    backend = load_suspect (self, found, crash, can_isolate, error);
  else
    backend = tiny_backend_load_watched (manifest->module,
                                         tiny_crash_watch (self->crashes, manifest), error);
  return backend != NULL && tiny_record_is_on ()
             ? tiny_record_backend (backend, isolated || crash != NULL, error)
             : backend;
}

TinyBackend *
tiny_registry_load (TinyRegistry *self,
                    const TinyFound *found,
                    gboolean isolated,
                    GError **error)
{
  const char *module = found->manifest->module;
  g_autofree char *key = g_strconcat (isolated ? "ISOLATED+" : "", module, NULL);
  const TinyScan *scanned = tiny_registry_recall (self, found);
  const gboolean can_isolate = scanned == NULL || tiny_scan_can_isolate (scanned);
  TinyBackend *backend;
  do
    if ((backend = g_hash_table_lookup (self->backends, key)) != NULL)
      return backend;
  while (!tiny_registry_begin (self, "load", key));
  backend = load_new (self, found, isolated, can_isolate, error);
  tiny_registry_end (self, "load", key);
  const TinyScan *scan = backend ? tiny_registry_recall (self, found) : NULL;
  if (backend != NULL)
    g_hash_table_insert (self->backends, g_steal_pointer (&key), backend);
  if (scan != NULL && !g_hash_table_contains (self->loaded, module))
    g_hash_table_insert (self->loaded, g_strdup (module), tiny_scan_copy (scan));
  if (backend == NULL)
    g_prefix_error (error, "%s: ", found->name);
  return backend;
}
