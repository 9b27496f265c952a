/* SPDX-License-Identifier: MIT
 *
 * registry-export.c: from a target's name to the renderer that writes code for it, without a device. */
#include <string.h>

#include "base/tiny-error.h"
#include "plugin/registry-private.h"

/* Who writes it, and how. Borrowed. */
typedef struct {
  const TinyFound *found;
  const char *renderer, *arch, *form, *folder;
} Writer;

void
tiny_code_target_clear (TinyCodeTarget *self)
{
  g_clear_object (&self->backend);
  g_clear_pointer (&self->form, g_free);
  g_clear_pointer (&self->folder, g_free);
}

static gboolean
counts (const TinyFound *found)
{
  return found->shadower == NULL && found->manifest != NULL;
}

static gboolean
find_export (TinyRegistry *self, const char *name, Writer *out)
{
  const GPtrArray *all = tiny_registry_get_found (self);
  for (guint i = 0; i < all->len; i++) {
    const TinyFound *found = all->pdata[i];
    for (guint j = 0; counts (found) && j < found->manifest->exports->len; j++) {
      const TinyManifestExport *export = found->manifest->exports->pdata[j];
      if (g_ascii_strcasecmp (export->name, name) != 0)
        continue;
      *out = (Writer){ found, export->renderer, "", export->form, export->folder };
      return TRUE;
    }
  }
  return FALSE;
}

static char *
list_exports (TinyRegistry *self)
{
  const GPtrArray *all = tiny_registry_get_found (self);
  GString *list = g_string_new (NULL);
  for (guint i = 0; i < all->len; i++) {
    const TinyFound *found = all->pdata[i];
    for (guint j = 0; counts (found) && j < found->manifest->exports->len; j++)
      g_string_append_printf (
          list, "%s%s", list->len > 0 ? ", " : "",
          ((const TinyManifestExport *) found->manifest->exports->pdata[j])->name);
  }
  return g_string_free (list, FALSE);
}

char *
tiny_registry_list_code_targets (TinyRegistry *self)
{
  tiny_registry_enter (self);
  char *list = list_exports (self);
  tiny_registry_leave (self);
  return list;
}

static gboolean
load (TinyRegistry *self, const Writer *writer, TinyCodeTarget *out, GError **error)
{
  const TinyScan *scan = tiny_registry_scan (self, writer->found, TRUE, error);
  if (scan == NULL || !tiny_scan_check_loaded (scan, writer->found, error))
    return FALSE;
  TinyBackend *backend = tiny_registry_load (self, writer->found, FALSE, error);
  if (backend == NULL)
    return FALSE;
  const TinyRenderer *renderer = tiny_backend_find_renderer (backend, writer->renderer);
  if (renderer == NULL) {
    g_autofree char *list = tiny_backend_list_renderers (backend);
    g_set_error (error, TINY_ERROR, TINY_ERROR_NO_DEVICE,
                 "backend %s has no renderer “%s”; it has: %s", writer->found->name,
                 writer->renderer, list[0] ? list : "none");
    return FALSE;
  }
  out->target = (TinyTarget){ 0 };
  if (!tiny_renderer_read_target (renderer, writer->arch, writer->found->name, &out->target,
                                  error))
    return FALSE;
  out->backend = g_object_ref (backend);
  out->renderer = renderer;
  out->form = g_strdup (writer->form);
  out->folder = g_strdup (writer->folder);
  return TRUE;
}

gboolean
tiny_registry_find_code_target (TinyRegistry *self,
                                const char *name,
                                TinyCodeTarget *out,
                                GError **error)
{
  Writer writer = { NULL };
  g_auto (GStrv) fields = g_strsplit (name, ":", 3);
  gboolean good = FALSE;
  tiny_registry_enter (self);
  if (!find_export (self, name, &writer) && fields[0] != NULL) {
    guint n = g_strv_length (fields);
    writer = (Writer){ .found = tiny_registry_find (self, fields[0]),
                       .renderer = n > 1 ? fields[1] : "",
                       .arch = n > 2 ? fields[2] : "",
                       .form = "files" };
  }
  if (writer.found != NULL && writer.found->manifest != NULL) {
    good = load (self, &writer, out, error);
    if (!good)
      g_prefix_error (error, "target “%s”: ", name);
  } else {
    g_autofree char *list = list_exports (self);
    g_set_error (
        error, TINY_ERROR, TINY_ERROR_NO_DEVICE,
        "there is no target “%s”; there is: %s, or BACKEND:RENDERER[:ARCH] of a renderer "
        "that writes source",
        name, list[0] ? list : "none");
  }
  tiny_registry_leave (self);
  return good;
}
