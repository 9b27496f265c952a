/* SPDX-License-Identifier: MIT
 *
 * registry-explain.c: what became of each manifest, rung by rung, and who is chosen.
 *
 * It climbs the same ladder by the same functions as opening does, and asks opening itself for the
 * choice, so that what is said is what happens. */
#include <string.h>

#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "plugin/registry-private.h"
#include "plugin/tiny-scan.h"

/* ---- parts ---- */
static void
rung_free (gpointer data)
{
  TinyRung *self = data;
  g_free (self->text);
  g_free (self);
}

static void
candidacy_free (gpointer data)
{
  TinyCandidacy *self = data;
  g_free (self->name);
  g_free (self->manifest_path);
  g_free (self->verdict);
  g_ptr_array_unref (self->rungs);
  g_free (self);
}

static void
searched_free (gpointer data)
{
  TinySearched *self = data;
  g_free (self->rule);
  g_free (self->path);
  g_free (self->text);
  g_free (self);
}

/* Takes @text. */
static TinyRung *
add_rung (TinyCandidacy *self, const char *rung, gboolean is_good, char *text, gint64 took_us)
{
  TinyRung *out = g_new0 (TinyRung, 1);
  out->rung = rung;
  out->is_good = is_good;
  out->text = text;
  out->took_us = (guint64) MAX (took_us, 0);
  g_ptr_array_add (self->rungs, out);
  return out;
}

static char *
without_name (const TinyFound *found, const char *text)
{
  g_autofree char *prefix = g_strdup_printf ("%s: ", found->name);
  return g_strdup (g_str_has_prefix (text, prefix) ? text + strlen (prefix) : text);
}

/* ---- the rungs ---- */
static gboolean
climb_manifest (TinyCandidacy *self, const TinyFound *found)
{
  gboolean good = found->shadower == NULL && found->manifest != NULL;
  char *text
      = found->shadower  ? g_strdup_printf ("hidden by %s, which comes first", found->shadower)
        : found->is_mask ? g_strdup ("empty: it hides every later one of its name")
        : found->manifest == NULL
            ? g_strdup (found->error->message)
            : g_strdup_printf ("%s %s, a %s", found->manifest->name, found->manifest->version,
                               tiny_device_class_to_string (found->manifest->device_class));
  self->state = found->shadower  ? TINY_ENTRY_SHADOWED
                : found->is_mask ? TINY_ENTRY_MASKED
                                 : TINY_ENTRY_BROKEN;
  add_rung (self, "manifest", good, text, found->took_us);
  return good;
}

static gboolean
climb_hardware (TinyCandidacy *self, const TinyFound *found)
{
  const TinyManifest *manifest = found->manifest;
  g_autofree char *reason = NULL;
  gint64 before = g_get_monotonic_time ();
  gboolean good = tiny_manifest_matches (manifest, &reason);
  gint64 took = g_get_monotonic_time () - before;
  gboolean asks
      = manifest->modalias[0] || manifest->device_nodes[0] || manifest->cpu_features[0];
  self->state = TINY_ENTRY_NO_HARDWARE;
  add_rung (self, "hardware", good,
            good ? g_strdup (asks ? "this machine has what the manifest asks for"
                                  : "the manifest asks for none")
                 : g_steal_pointer (&reason),
            took);
  return good;
}

static gboolean
climb_file (TinyCandidacy *self, const TinyFound *found)
{
  g_autoptr (GError) error = NULL;
  gint64 before = g_get_monotonic_time ();
  gboolean good = tiny_registry_check_module (found, &error);
  gint64 took = g_get_monotonic_time () - before;
  self->state = TINY_ENTRY_BROKEN;
  add_rung (self, "file", good,
            good ? g_strdup_printf ("%s is a plugin for this core", found->manifest->module)
                 : without_name (found, error->message),
            took);
  return good;
}

static void
add_devices (TinyCandidacy *self, const TinyScan *scan, gboolean is_recalled)
{
  for (guint i = 0; i < scan->devices->len; i++) {
    const TinyScanDevice *device = scan->devices->pdata[i];
    char *text = g_strdup_printf ("%s:%u (%s) %s%s", self->name, i, device->id,
                                  device->error ? "cannot be opened: " : "opens: ",
                                  device->error ? device->error : device->title);
    TinyRung *rung = add_rung (self, "device", device->error == NULL, text, device->open_us);
    rung->is_recalled = is_recalled;
    if (device->error == NULL)
      self->state = TINY_ENTRY_READY;
    else if (self->state != TINY_ENTRY_READY)
      self->state
          = device->code == TINY_ERROR_NO_DEVICE ? TINY_ENTRY_NO_HARDWARE : TINY_ENTRY_BROKEN;
  }
}

static char *
describe_scan (const TinyScan *scan)
{
  return g_strdup_printf ("%u device%s; loaded in %.1f ms, scanned in %.1f ms",
                          scan->devices->len, scan->devices->len == 1 ? "" : "s",
                          scan->load_us / 1e3, scan->scan_us / 1e3);
}

static void
climb_scan (TinyRegistry *registry, TinyCandidacy *self, const TinyFound *found)
{
  g_autoptr (GError) error = NULL;
  gboolean is_recalled = tiny_registry_recall (registry, found) != NULL;
  const TinyScan *scan = tiny_registry_scan (registry, found, FALSE, &error);
  gboolean good = scan != NULL && tiny_scan_check_devices (scan, found, &error);
  TinyRung *rung = add_rung (self, "scan", good,
                             good ? describe_scan (scan) : without_name (found, error->message),
                             scan ? scan->took_us : 0);
  rung->is_recalled = is_recalled;
  self->state = scan != NULL && scan->is_quarantined                   ? TINY_ENTRY_QUARANTINED
                : error != NULL && error->code == TINY_ERROR_NO_DEVICE ? TINY_ENTRY_NO_HARDWARE
                                                                       : TINY_ENTRY_BROKEN;
  if (good)
    add_devices (self, scan, is_recalled);
}

static TinyCandidacy *
climb (TinyRegistry *registry, const TinyFound *found)
{
  TinyCandidacy *self = g_new0 (TinyCandidacy, 1);
  self->name = g_strdup (found->name);
  self->manifest_path = g_strdup (found->path);
  self->rule = found->rule;
  self->rungs = g_ptr_array_new_with_free_func (rung_free);
  if (climb_manifest (self, found) && climb_hardware (self, found) && climb_file (self, found))
    climb_scan (registry, self, found);
  return self;
}

/* ---- the choice ---- */
/* "DEV=CL" when the environment names a device, else NULL. */
static char *
find_asked (TinyRegistry *self)
{
  const char *dev = tiny_env_get_text (TINY_ENV_DEV),
             *old = tiny_env_get_text (TINY_ENV_BACKEND);
  const char *spelling = dev || old ? NULL : tiny_registry_find_old_spelling (self);
  return dev        ? g_strconcat ("DEV=", dev, NULL)
         : old      ? g_strconcat ("BACKEND=", old, NULL)
         : spelling ? g_strconcat (spelling, "=1", NULL)
                    : NULL;
}

static gboolean
is_of (const char *choice, const char *name)
{
  gsize length = strlen (name);
  if (choice != NULL && choice[strcspn (choice, "+:")] == '+') /* ISOLATED+ */
    choice = strchr (choice, '+') + 1;
  return choice != NULL && strncmp (choice, name, length) == 0
         && (choice[length] == 0 || choice[length] == ':');
}

static char *
judge (TinyRegistry *registry,
       const TinyCandidacy *self,
       const TinyFound *found,
       const char *choice,
       const char *asked)
{
  if (self->is_chosen)
    return asked ? g_strdup_printf ("chosen: %s names it", asked)
                 : g_strdup ("chosen: the first that works, in the order gpu, npu, cpu");
  if (self->state != TINY_ENTRY_READY)
    return g_strdup_printf ("not chosen: %s", tiny_entry_state_to_string (self->state));
  if (asked != NULL)
    return g_strdup_printf ("not chosen: %s names another", asked);
  const guint class = tiny_registry_find_class (registry, found);
  if (class == TINY_CLASS_SIMULATOR || class == TINY_CLASS_REMOTE)
    return g_strdup_printf ("not chosen: a %s is used only where DEV= names it",
                            tiny_device_class_to_string (class));
  return g_strdup_printf ("not chosen: %s comes before it", choice ? choice : "another");
}

static GPtrArray *
list_places (const GPtrArray *places)
{
  GPtrArray *out = g_ptr_array_new_with_free_func (searched_free);
  for (guint i = 0; i < places->len; i++) {
    const TinyPlace *place = places->pdata[i];
    TinySearched *searched = g_new0 (TinySearched, 1);
    searched->rule = g_strdup (place->rule);
    searched->path = g_strdup (place->path);
    searched->text = place->error       ? g_strdup (place->error)
                     : !place->is_there ? g_strdup ("not there")
                                        : g_strdup_printf ("%u manifest%s", place->n_manifests,
                                                           place->n_manifests == 1 ? "" : "s");
    g_ptr_array_add (out, searched);
  }
  return out;
}

GPtrArray *
tiny_registry_explain (TinyRegistry *self, GPtrArray **out_searched, char **out_choice)
{
  GPtrArray *out = g_ptr_array_new_with_free_func (candidacy_free);
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GError) error = NULL;
  tiny_registry_enter (self);
  const GPtrArray *all = tiny_registry_get_found (self), *places = self->places;
  for (guint i = 0; i < all->len; i++)
    g_ptr_array_add (out, climb (self, all->pdata[i]));
  g_autofree char *asked = find_asked (self);
  const char *choice = tiny_registry_open_any (self, NULL, TINY_WANT_NAME, names, &error)
                           ? names->pdata[0]
                           : NULL;
  for (guint i = 0; i < all->len; i++) {
    const TinyFound *found = all->pdata[i];
    TinyCandidacy *candidacy = out->pdata[i];
    candidacy->is_chosen = found->shadower == NULL && is_of (choice, found->name);
    candidacy->verdict = judge (self, candidacy, found, choice, asked);
  }
  if (out_searched != NULL)
    *out_searched = list_places (places);
  tiny_registry_leave (self);
  if (out_choice != NULL)
    *out_choice = g_strdup (choice ? choice : error->message);
  return out;
}

gboolean
registry_warn_of_absent (TinyRegistry *self)
{
  static gint is_said = FALSE;
  if (!g_atomic_int_compare_and_exchange (&is_said, FALSE, TRUE))
    return TRUE;
  for (guint i = 0; i < self->places->len; i++) {
    const TinyPlace *place = self->places->pdata[i];
    const gboolean is_file = g_str_equal (place->rule, "TINY_PLUGIN_FILES");
    if (!place->is_there && (is_file || g_str_equal (place->rule, "TINY_PLUGIN_PATH")))
      g_warning ("%s: %s is not there: the variable lists %s, separated by colons", place->rule,
                 place->path,
                 is_file ? "manifests of backends (NAME.json)" : "folders of manifests");
  }
  g_autoptr (GError) error = NULL;
  if (!tiny_scan_check_named_helper (&error))
    g_warning ("%s", error->message);
  return TRUE;
}
