/* SPDX-License-Identifier: MIT
 *
 * manifest-match.c: whether this machine has what a manifest asks for.
 *
 * A manifest that names modaliases or device nodes wants any one of them; every CPU feature it
 * names must be there; one that names nothing fits everywhere. Only names are read, no device is
 * opened. */
#include <fnmatch.h>
#include <glob.h>
#include <string.h>

#include "plugin/tiny-manifest.h"

/* The modaliases of all devices of the buses that accelerators hang on, read once. */
static const GPtrArray *
get_modaliases (void)
{
  static gsize all = 0;
  if (g_once_init_enter (&all)) {
    static const char *const patterns[]
        = { "/sys/bus/pci/devices/*/modalias", "/sys/bus/usb/devices/*/modalias",
            "/sys/bus/platform/devices/*/modalias" };
    GPtrArray *found = g_ptr_array_new_with_free_func (g_free);
    glob_t paths = { 0 };
    for (guint i = 0; i < G_N_ELEMENTS (patterns); i++)
      glob (patterns[i], i ? GLOB_APPEND | GLOB_NOSORT : GLOB_NOSORT, NULL, &paths);
    for (gsize i = 0; i < paths.gl_pathc; i++) {
      char *text = NULL;
      if (g_file_get_contents (paths.gl_pathv[i], &text, NULL, NULL))
        g_ptr_array_add (found, g_strchomp (text));
    }
    globfree (&paths);
    g_once_init_leave (&all, (gsize) found);
  }
  return (const GPtrArray *) all;
}

static gboolean
has_modalias (char *const *wanted)
{
  const GPtrArray *all = get_modaliases ();
  for (guint i = 0; wanted[i] != NULL; i++)
    for (guint j = 0; j < all->len; j++)
      if (fnmatch (wanted[i], all->pdata[j], 0) == 0)
        return TRUE;
  return FALSE;
}

static gboolean
has_node (char *const *wanted)
{
  for (guint i = 0; wanted[i] != NULL; i++) {
    glob_t paths = { 0 };
    gboolean found = glob (wanted[i], GLOB_NOSORT, NULL, &paths) == 0 && paths.gl_pathc > 0;
    globfree (&paths);
    if (found)
      return TRUE;
  }
  return FALSE;
}

/* The first feature the CPU lacks, or NULL. */
static const char *
find_missing_feature (char *const *wanted)
{
  g_autofree char *text = NULL;
  if (!g_file_get_contents ("/proc/cpuinfo", &text, NULL, NULL))
    return NULL; /* then the plugin has to look itself */
  const char *line = strstr (text, "\nflags");
  line = line ? line : strstr (text, "\nFeatures");
  g_autofree char *first
      = line ? g_strndup (line + 1, strcspn (line + 1, "\n")) : g_strdup ("");
  g_auto (GStrv) has = g_strsplit_set (first, " \t:", -1);
  for (guint i = 0; wanted[i] != NULL; i++)
    if (!g_strv_contains ((const char *const *) has, wanted[i]))
      return wanted[i];
  return NULL;
}

gboolean
tiny_manifest_matches (const TinyManifest *self, char **out_reason)
{
  gboolean asks_hardware = self->modalias[0] != NULL || self->device_nodes[0] != NULL;
  if (asks_hardware && !has_modalias (self->modalias) && !has_node (self->device_nodes)) {
    g_autofree char *modalias = g_strjoinv (", ", self->modalias);
    g_autofree char *nodes = g_strjoinv (", ", self->device_nodes);
    *out_reason = g_strdup_printf ("this machine has no such hardware (looked for %s%s%s)",
                                   modalias, modalias[0] && nodes[0] ? ", " : "", nodes);
    return FALSE;
  }
  const char *missing
      = self->cpu_features[0] != NULL ? find_missing_feature (self->cpu_features) : NULL;
  if (missing != NULL)
    *out_reason = g_strdup_printf ("this CPU has no %s", missing);
  return missing == NULL;
}
