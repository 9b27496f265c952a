/* SPDX-License-Identifier: MIT
 *
 * registry-code.c: which backend makes the code for a device that has no renderer of its own, and runs it where
 * the device only computes what it claims. */
#include "base/tiny-error.h"
#include "plugin/registry-private.h"

const char *
tiny_registry_find_text (char *const *list, const char *text)
{
  for (guint i = 0; list[i] != NULL; i++)
    if (g_ascii_strcasecmp (list[i], text) == 0)
      return list[i];
  return NULL;
}

const TinyScan *
tiny_registry_scan_code (TinyRegistry *self, const TinyFound *found, GError **error)
{
  const TinyScan *scan = tiny_registry_scan (self, found, TRUE, error);
  return scan != NULL && tiny_scan_check_loaded (scan, found, error) ? scan : NULL;
}

/* The backend whose default renderer stands in where nobody is named: a real one, else any. What is to
 * run kernels as well (@runs) is the processor's, nothing else unasked. */
const TinyFound *
tiny_registry_find_default_code (TinyRegistry *self, const TinyFound *self_found, gboolean runs)
{
  static const guint order[] = { TINY_CLASS_CPU, TINY_CLASS_GPU, TINY_CLASS_NPU,
                                 TINY_CLASS_REMOTE, TINY_CLASS_SIMULATOR };
  const GPtrArray *all = tiny_registry_get_found (self);
  for (guint o = 0; o < (runs ? 1 : G_N_ELEMENTS (order)); o++)
    for (guint i = 0; i < all->len; i++) {
      const TinyFound *found = all->pdata[i];
      if (found->shadower == NULL && found->manifest != NULL && found != self_found
          && found->manifest->device_class == order[o] && found->manifest->renderers[0] != NULL
          && tiny_registry_scan_code (self, found, NULL) != NULL)
        return found;
    }
  return NULL;
}

/* The backend whose manifest lists a renderer of that name. */
const TinyFound *
tiny_registry_find_by_renderer (TinyRegistry *self, const char *renderer)
{
  const GPtrArray *all = tiny_registry_get_found (self);
  for (guint i = 0; i < all->len; i++) {
    const TinyFound *found = all->pdata[i];
    if (found->shadower == NULL && found->manifest != NULL
        && tiny_registry_find_text (found->manifest->renderers, renderer) != NULL)
      return found;
  }
  return NULL;
}

gboolean
tiny_registry_fail_foreign (TinyRegistry *self, const char *wanted, GError **error)
{
  GString *list = g_string_new (NULL);
  const GPtrArray *all = tiny_registry_get_found (self);
  for (guint i = 0; i < all->len; i++) {
    const TinyFound *found = all->pdata[i];
    if (found->shadower != NULL || found->manifest == NULL
        || found->manifest->renderers[0] == NULL)
      continue;
    g_autofree char *renderers = g_strjoinv (", ", found->manifest->renderers);
    g_string_append_printf (list, "%s%s (%s)", list->len ? "; " : "", found->name, renderers);
  }
  g_set_error (error, TINY_ERROR, TINY_ERROR_NO_DEVICE,
               "no backend or renderer is called “%s”; there is: %s", wanted,
               list->len ? list->str : "none");
  g_string_free (list, TRUE);
  return FALSE;
}

void
tiny_registry_fail_default_code (const TinyFound *found, gboolean runs, GError **error)
{
  if (runs)
    g_set_error (
        error, TINY_ERROR, TINY_ERROR_NO_DEVICE,
        "%s computes only the operations that it claims, and no backend of class cpu is "
        "usable for the rest: install one, or name another backend after it",
        found->name);
  else
    g_set_error (
        error, TINY_ERROR, TINY_ERROR_NO_DEVICE,
        "%s has no renderer of its own, and no other backend is usable for making code",
        found->name);
}
