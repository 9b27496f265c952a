/* SPDX-License-Identifier: MIT
 *
 * registry-list.c: every backend and device as an entry, for people and for messages. */
#include <string.h>

#include "base/tiny-error.h"
#include "plugin/registry-private.h"
#include "plugin/tiny-crash.h"

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
explain_isolation (TinyRegistry *self, const TinyFound *found, const TinyScan *scan)
{
  g_autoptr (TinyCrash) crash = tiny_crash_recall (self->crashes, found->manifest);
  g_autofree char *what = crash != NULL ? tiny_crash_to_string (crash) : NULL;
  if (what != NULL && !tiny_scan_can_isolate (scan))
    return g_strdup_printf (
        "runs in the program itself though %s: its device lacks import_host()", what);
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
    entry->reason = explain_isolation (self, found, scan);
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
  tiny_registry_enter (self);
  const GPtrArray *all = tiny_registry_get_found (self);
  for (guint i = 0; i < all->len; i++)
    add_found (self, out, all->pdata[i]);
  tiny_registry_leave (self);
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
      g_string_append_printf (out, " (%s%s%s)", state, found->error ? ": " : "",
                              found->error ? found->error->message : "");
  }
  if (out->len == 0)
    g_string_append (
        out, "none, since no manifest of a backend was found; install a package such as "
             "tinycore-plugin-cpu, or name a folder of manifests in "
             "TINY_PLUGIN_PATH; " TINY_MANIFEST_DIR " is searched too");
  return g_string_free (out, FALSE);
}
