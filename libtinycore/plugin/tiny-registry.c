/* SPDX-License-Identifier: MIT
 *
 * tiny-registry.c: which backends there are, and what is wrong with the others.
 *
 * The ladder, each rung climbed only when asked for: read manifests and match hardware → look at
 * the module's ELF file → load and scan it in the helper process, remembered → load it here. */
#include "plugin/tiny-registry.h"

#include <string.h>
#include <sys/auxv.h>

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
  g_clear_pointer (&self->found, g_ptr_array_unref);
  g_clear_pointer (&self->places, g_ptr_array_unref);
}

static void
tiny_registry_init (TinyRegistry *self)
{
  g_mutex_init (&self->lock);
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
  g_ptr_array_unref (self->added);
  g_strfreev (self->folders);
  g_free (self->crashes);
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
    /* The environment names the folder: a privileged program neither believes nor writes what is there. */
    gboolean privileged = getauxval (AT_SECURE) != 0;
    const char *wanted = privileged ? NULL : tiny_env_get_text (TINY_ENV_CACHE_DIR);
    g_autofree char *folder
        = privileged ? NULL
          : wanted   ? g_strdup (wanted)
                     : g_build_filename (g_get_user_cache_dir (), "tinycore-1.0", NULL);
    g_once_init_leave (&registry, tiny_registry_new (NULL, folder));
  }
  return registry;
}

void
tiny_registry_add_path (TinyRegistry *self, const char *folder)
{
  g_mutex_lock (&self->lock);
  g_ptr_array_add (self->added, g_strdup (folder));
  forget_found (self);
  g_mutex_unlock (&self->lock);
}

void
tiny_registry_retry (TinyRegistry *self, const char *name)
{
  g_mutex_lock (&self->lock);
  forget_found (self);
  const TinyFound *found = name ? tiny_registry_find (self, name) : NULL;
  if (name == NULL || (found != NULL && found->manifest != NULL)) {
    tiny_scan_cache_forget (self->cache, found ? found->manifest : NULL);
    tiny_crash_forget (self->crashes, found ? found->manifest : NULL);
  }
  g_hash_table_remove_all (self->scanned);
  g_mutex_unlock (&self->lock);
}

/* ---- manifests ---- */
const GPtrArray *
tiny_registry_get_found (TinyRegistry *self)
{
  if (self->found == NULL)
    self->found = tiny_discover_cached ((const char *const *) self->folders, self->added,
                                        self->manifests, &self->places);
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

const TinyScan *
tiny_registry_scan (TinyRegistry *self, const TinyFound *found, gboolean again, GError **error)
{
  /* What this process has loaded it goes on with, whatever lies at that path now. */
  const TinyScan *loaded
      = found->manifest ? g_hash_table_lookup (self->loaded, found->manifest->module) : NULL;
  if (loaded != NULL)
    return loaded;
  if (!check_found (found, error) || !tiny_registry_check_module (found, error))
    return NULL;
  const char *module = found->manifest->module;
  const TinyScan *known = tiny_scan_cache_get (self->cache, found->manifest);
  /* A time-out may have been the machine's fault rather than the plugin's. */
  gboolean is_settled
      = known != NULL && known->is_quarantined && known->code != TINY_ERROR_TIMEOUT;
  gboolean good = known != NULL && (known->reason == NULL || is_settled);
  for (guint i = 0; good && known->reason == NULL && i < known->devices->len; i++)
    good = ((const TinyScanDevice *) known->devices->pdata[i])->error == NULL;
  if (known != NULL && (good || !again || g_hash_table_contains (self->scanned, module)))
    return known;
  TinyScan *scan = tiny_scan_run (found->manifest, error);
  if (scan == NULL) {
    g_prefix_error (error, "%s: ", found->name);
    return NULL;
  }
  diagnose (scan, found->manifest);
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
    gboolean is_said = texts[i].said[0] != 0 && (i == 0 || texts[i].is[0] != 0);
    if (!is_said || g_ascii_strcasecmp (texts[i].said, texts[i].is) == 0)
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

/* What a program before this one died of is not tried again in this. */
static TinyBackend *
load_suspect (const TinyFound *found, const TinyCrash *crash, GError **error)
{
  g_autofree char *what = tiny_crash_to_string (crash);
  g_warning (
      "%s: %s, so it runs in a process of its own now, until its file changes or “tinycore "
      "devices --retry” is given",
      found->name, what);
  return tiny_worker_load_backend (found->manifest, error);
}

TinyBackend *
tiny_registry_load (TinyRegistry *self,
                    const TinyFound *found,
                    gboolean isolated,
                    GError **error)
{
  const TinyManifest *manifest = found->manifest;
  g_autofree char *key = g_strconcat (isolated ? "ISOLATED+" : "", manifest->module, NULL);
  TinyBackend *backend = g_hash_table_lookup (self->backends, key);
  if (backend != NULL)
    return backend;
  g_autoptr (TinyCrash) crash = isolated ? NULL : tiny_crash_recall (self->crashes, manifest);
  if (isolated)
    backend = tiny_worker_load_backend (manifest, error);
  else if (crash != NULL)
    backend = load_suspect (found, crash, error);
  else
    backend = tiny_backend_load_watched (manifest->module,
                                         tiny_crash_watch (self->crashes, manifest), error);
  if (backend != NULL && tiny_record_is_on ())
    backend = tiny_record_backend (backend, isolated || crash != NULL, error);
  const TinyScan *scan = backend ? tiny_registry_recall (self, found) : NULL;
  if (backend != NULL)
    g_hash_table_insert (self->backends, g_steal_pointer (&key), backend);
  if (scan != NULL)
    g_hash_table_insert (self->loaded, g_strdup (manifest->module), tiny_scan_copy (scan));
  if (backend == NULL)
    g_prefix_error (error, "%s: ", found->name);
  return backend;
}

/* ---- listing ---- */
const char *
tiny_entry_state_to_string (TinyEntryState state)
{
  static const char *const names[]
      = { "ready", "no hardware", "broken", "quarantined", "masked", "shadowed" };
  return state < G_N_ELEMENTS (names) ? names[state] : "unknown";
}

void
tiny_entry_free (TinyEntry *self)
{
  if (self == NULL)
    return;
  char **texts[]
      = { &self->name,       &self->reason,       &self->title,   &self->id,
          &self->driver,     &self->device_class, &self->arch,    &self->vendor,
          &self->version,    &self->license,      &self->package, &self->manifest_path,
          &self->module_path };
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    g_free (*texts[i]);
  g_strfreev (self->renderers);
  g_free (self);
}

static TinyEntry *
new_entry (const TinyFound *found)
{
  const TinyManifest *manifest = found->manifest;
  TinyEntry *out = g_new0 (TinyEntry, 1);
  out->name = g_strdup (found->name);
  out->index = -1;
  out->title = g_strdup ("");
  out->id = g_strdup ("");
  out->driver = g_strdup ("");
  out->arch = g_strdup ("");
  out->device_class
      = g_strdup (manifest ? tiny_device_class_to_string (manifest->device_class) : "");
  out->renderers = manifest ? g_strdupv (manifest->renderers) : g_new0 (char *, 1);
  out->vendor = g_strdup (manifest ? manifest->vendor : "");
  out->version = g_strdup (manifest ? manifest->version : "");
  out->license = g_strdup (manifest ? manifest->license : "");
  out->package = g_strdup (manifest ? manifest->package : "");
  out->module_path = g_strdup (manifest ? manifest->module : "");
  out->manifest_path = g_strdup (found->path);
  return out;
}

static void
add_failed (GPtrArray *out, const TinyFound *found, TinyEntryState state, const char *reason)
{
  TinyEntry *entry = new_entry (found);
  g_autofree char *prefix = g_strdup_printf ("%s: ", found->name);
  entry->state = state;
  entry->reason
      = g_strdup (g_str_has_prefix (reason, prefix) ? reason + strlen (prefix) : reason);
  g_ptr_array_add (out, entry);
}

static TinyEntryState
state_of (TinyError code)
{
  return code == TINY_ERROR_NO_DEVICE ? TINY_ENTRY_NO_HARDWARE : TINY_ENTRY_BROKEN;
}

/* A backend that works, but not in this process. */
static char *
explain_isolation (TinyRegistry *self, const TinyFound *found)
{
  g_autoptr (TinyCrash) crash = tiny_crash_recall (self->crashes, found->manifest);
  g_autofree char *what = crash != NULL ? tiny_crash_to_string (crash) : NULL;
  return what != NULL ? g_strdup_printf ("runs in a process of its own, as %s; until its file "
                                         "changes or --retry is given",
                                         what)
                      : NULL;
}

static void
add_device (
    TinyRegistry *self, GPtrArray *out, const TinyFound *found, const TinyScan *scan, guint i)
{
  const TinyScanDevice *device = scan->devices->pdata[i];
  if (device->error != NULL)
    add_failed (out, found, state_of (device->code), device->error);
  else
    g_ptr_array_add (out, new_entry (found));
  TinyEntry *entry = out->pdata[out->len - 1];
  if (device->error == NULL)
    entry->reason = explain_isolation (self, found);
  entry->index = (int) i;
  g_strfreev (entry->renderers);
  entry->renderers = g_strdupv (scan->renderers);
  const struct {
    char **to;
    const char *text;
  } texts[] = { { &entry->title, device->title },
                { &entry->id, device->id },
                { &entry->driver, device->driver },
                { &entry->arch, device->arch },
                { &entry->device_class, device->device_class
                                            ? tiny_device_class_to_string (device->device_class)
                                            : entry->device_class } };
  for (guint t = 0; t < G_N_ELEMENTS (texts); t++) {
    char *copy = g_strdup (texts[t].text);
    g_free (*texts[t].to);
    *texts[t].to = copy;
  }
  entry->memory_bytes = device->memory_bytes;
}

static void
add_found (TinyRegistry *self, GPtrArray *out, const TinyFound *found)
{
  g_autofree char *reason = NULL;
  g_autoptr (GError) error = NULL;
  if (found->shadower != NULL) {
    reason = g_strdup_printf ("hidden by %s", found->shadower);
    add_failed (out, found, TINY_ENTRY_SHADOWED, reason);
    return;
  }
  if (found->is_mask) {
    reason = g_strdup_printf ("hidden by the empty file %s", found->path);
    add_failed (out, found, TINY_ENTRY_MASKED, reason);
    return;
  }
  if (found->manifest != NULL && !tiny_manifest_matches (found->manifest, &reason)) {
    add_failed (out, found, TINY_ENTRY_NO_HARDWARE, reason);
    return;
  }
  const TinyScan *scan = tiny_registry_scan (self, found, FALSE, &error);
  if (scan == NULL)
    add_failed (out, found, TINY_ENTRY_BROKEN, error->message);
  else if (scan->is_quarantined)
    add_failed (out, found, TINY_ENTRY_QUARANTINED, scan->reason ? scan->reason : "it failed");
  else if (!tiny_scan_check_devices (scan, found, &error))
    add_failed (out, found, state_of ((TinyError) error->code), error->message);
  else
    for (guint i = 0; i < scan->devices->len; i++)
      add_device (self, out, found, scan, i);
}

/* Ready ones first, then by class; within that as they were found. */
static int
rank_of (const TinyEntry *entry)
{
  static const char *const classes[] = { "gpu", "npu", "cpu", "remote", "simulator" };
  int rank = 10 * (int) entry->state;
  for (guint i = 0; i < G_N_ELEMENTS (classes); i++)
    if (g_str_equal (classes[i], entry->device_class))
      return rank + (int) i;
  return rank + (int) G_N_ELEMENTS (classes);
}

static gint
compare_entries (gconstpointer a, gconstpointer b)
{
  return rank_of (*(TinyEntry *const *) a) - rank_of (*(TinyEntry *const *) b);
}

GPtrArray *
tiny_registry_list (TinyRegistry *self)
{
  GPtrArray *out = g_ptr_array_new_with_free_func ((GDestroyNotify) tiny_entry_free);
  g_mutex_lock (&self->lock);
  const GPtrArray *all = tiny_registry_get_found (self);
  for (guint i = 0; i < all->len; i++)
    add_found (self, out, all->pdata[i]);
  g_mutex_unlock (&self->lock);
  g_ptr_array_sort (out, compare_entries);
  return out;
}

char *
tiny_registry_summarise (TinyRegistry *self)
{
  GString *out = g_string_new (NULL);
  const GPtrArray *all = tiny_registry_get_found (self);
  for (guint i = 0; i < all->len; i++) {
    const TinyFound *found = all->pdata[i];
    g_autofree char *reason = NULL;
    if (found->shadower != NULL)
      continue;
    const TinyScan *scan = tiny_registry_recall (self, found);
    const char *state = found->is_mask            ? "masked"
                        : found->manifest == NULL ? "unusable manifest"
                        : !tiny_manifest_matches (found->manifest, &reason) ? "no hardware"
                        : scan == NULL                                      ? NULL
                        : scan->is_quarantined                              ? "quarantined"
                        : scan->reason != NULL || !tiny_scan_check_loaded (scan, found, NULL)
                            ? "not working"
                            : "ready";
    g_string_append_printf (out, "%s%s", out->len ? ", " : "", found->name);
    if (state != NULL)
      g_string_append_printf (out, " (%s)", state);
  }
  if (out->len == 0)
    g_string_append (
        out, "none, since no manifest of a backend was found; install a package such as "
             "tinycore-plugin-cpu, or name a folder of manifests in "
             "TINY_PLUGIN_PATH; " TINY_MANIFEST_DIR " is searched too");
  return g_string_free (out, FALSE);
}
