/* SPDX-License-Identifier: MIT
 *
 * tiny-registry.c: the backends that were found, and devices opened by name. */
#include "plugin/tiny-registry.h"

#include <gmodule.h>
#include <json-glib/json-glib.h>
#include <string.h>

#include "base/tiny-env.h"
#include "base/tiny-error.h"

struct _TinyRegistry {
  GObject parent_instance;
};
G_DEFINE_FINAL_TYPE (TinyRegistry, tiny_registry, G_TYPE_OBJECT)
static void
tiny_registry_class_init (TinyRegistryClass *klass)
{
}
static void
tiny_registry_init (TinyRegistry *self)
{
}
TinyRegistry *
tiny_registry_get_default (void)
{
  static TinyRegistry *registry;
  if (!registry)
    registry = g_object_new (TINY_TYPE_REGISTRY, NULL);
  return registry;
}
TinyDevice *
tiny_registry_open (TinyRegistry *self, const char *spec, GError **error)
{
  if (!spec)
    spec = tiny_env_get_text (TINY_ENV_DEV);
  if (!spec)
    spec = "CPU";
  g_auto (GStrv) parts = g_strsplit (spec, ":", 3);
  g_autofree char *lower = g_ascii_strdown (parts[0], -1);
  g_autofree char *file = g_strdup_printf ("%s.json", lower);
  g_auto (GStrv) dirs = g_strsplit (tiny_env_get_text (TINY_ENV_PLUGIN_PATH), ":", -1);
  for (guint i = 0; dirs[i]; i++) {
    g_autofree char *path = g_build_filename (dirs[i], file, NULL);
    g_autoptr (JsonParser) parser = json_parser_new ();
    if (!json_parser_load_from_file (parser, path, NULL))
      continue;
    JsonObject *o = json_node_get_object (json_parser_get_root (parser));
    g_autofree char *so = g_build_filename (dirs[i], json_object_get_string_member (o, "module"), NULL);
    TinyBackend *b = tiny_backend_load (so, error);
    g_autoptr (GArray) c = b ? tiny_backend_scan (b, error) : NULL;
    if (!c || c->len < 1)
      return NULL;
    TinyDeviceOptions options = { .name = spec, .id = g_array_index (c, TinyCandidate, 0).id, .renderer = parts[1], .arch = parts[1] ? parts[2] : NULL };
    return tiny_device_new (b, &options, error);
  }
  g_set_error (error, TINY_ERROR, TINY_ERROR_NO_DEVICE, "no backend %s", spec);
  return NULL;
}
