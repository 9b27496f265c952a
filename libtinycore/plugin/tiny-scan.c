/* SPDX-License-Identifier: MIT
 *
 * tiny-scan.c: the result of scanning a module, its JSON form, and the scan itself.
 *
 * The scan does what using the plugin will do, in the same order: load, entry, table, init, scan,
 * open, info, close, fini. What survives this in the helper process may be loaded for use. */
#include "plugin/tiny-scan.h"

#include "base/tiny-clean.h"
#include "device/tiny-device.h"
#include "plugin/tiny-json.h"
#include "plugin/tiny-library.h"

enum { MAX_NAME = 256, MAX_RENDERERS = 256 };

static void
device_free (gpointer data)
{
  TinyScanDevice *self = data;
  g_free (self->id);
  g_free (self->title);
  g_free (self->driver);
  g_free (self->arch);
  g_free (self->error);
  g_free (self);
}

static TinyScan *
scan_new (void)
{
  TinyScan *self = g_new0 (TinyScan, 1);
  self->devices = g_ptr_array_new_with_free_func (device_free);
  self->renderers = g_new0 (char *, 1);
  self->name = g_strdup ("");
  self->vendor = g_strdup ("");
  self->version = g_strdup ("");
  self->when = g_get_real_time () / G_USEC_PER_SEC;
  return self;
}

TinyScan *
tiny_scan_new_failed (TinyError code, char *reason)
{
  TinyScan *self = scan_new ();
  self->code = code;
  self->reason = reason;
  return self;
}

void
tiny_scan_free (TinyScan *self)
{
  if (self == NULL)
    return;
  g_ptr_array_unref (self->devices);
  g_strfreev (self->renderers);
  g_free (self->name);
  g_free (self->vendor);
  g_free (self->version);
  g_free (self->missing);
  g_free (self->reason);
  g_free (self);
}

gboolean
tiny_scan_can_isolate (const TinyScan *self)
{
  return !self->runs_beside_host || self->imports_host;
}

/* ---- JSON ---- */
static void
set_text (JsonObject *object, const char *key, const char *text)
{
  if (text != NULL && text[0] != 0)
    json_object_set_string_member (object, key, text);
}

static JsonObject *
device_to_json (const TinyScanDevice *device)
{
  JsonObject *out = json_object_new ();
  set_text (out, "id", device->id);
  set_text (out, "title", device->title);
  set_text (out, "driver", device->driver);
  set_text (out, "arch", device->arch);
  set_text (out, "class", tiny_device_class_to_string (device->device_class));
  json_object_set_int_member (out, "memory_bytes", (gint64) device->memory_bytes);
  if (device->error != NULL)
    json_object_set_int_member (out, "code", device->code);
  set_text (out, "error", device->error);
  json_object_set_int_member (out, "open_us", device->open_us);
  return out;
}

JsonNode *
tiny_scan_to_json (const TinyScan *self)
{
  JsonObject *out = json_object_new ();
  JsonArray *renderers = json_array_new (), *devices = json_array_new ();
  for (guint i = 0; self->renderers[i] != NULL; i++)
    json_array_add_string_element (renderers, self->renderers[i]);
  for (guint i = 0; i < self->devices->len; i++)
    json_array_add_object_element (devices, device_to_json (self->devices->pdata[i]));
  json_object_set_boolean_member (out, "loaded", self->is_loaded);
  json_object_set_boolean_member (out, "quarantined", self->is_quarantined);
  if (self->reason != NULL)
    json_object_set_int_member (out, "code", self->code);
  set_text (out, "reason", self->reason);
  set_text (out, "name", self->name);
  set_text (out, "vendor", self->vendor);
  set_text (out, "version", self->version);
  set_text (out, "missing", self->missing);
  json_object_set_boolean_member (out, "any_renderer", self->takes_any_renderer);
  json_object_set_boolean_member (out, "beside_host", self->runs_beside_host);
  json_object_set_boolean_member (out, "imports_host", self->imports_host);
  json_object_set_array_member (out, "renderers", renderers);
  json_object_set_array_member (out, "devices", devices);
  json_object_set_int_member (out, "when", self->when);
  json_object_set_int_member (out, "took_us", self->took_us);
  json_object_set_int_member (out, "load_us", self->load_us);
  json_object_set_int_member (out, "scan_us", self->scan_us);
  JsonNode *node = json_node_alloc ();
  json_node_init_object (node, out);
  json_object_unref (out);
  return node;
}

/* Clean and short, whoever wrote it: a plugin may have made the report in the helper's place. */
static char *
dup_text_or_null (JsonObject *object, const char *key, GError **error)
{
  const char *text = tiny_json_get_text (object, key, error);
  return text != NULL ? tiny_clean_text (text, TINY_SCAN_MOST_TEXT) : NULL;
}

static char *
dup_text (JsonObject *object, const char *key, GError **error)
{
  char *text = dup_text_or_null (object, key, error);
  return text != NULL ? text : g_strdup ("");
}

static char **
dup_renderers (JsonObject *object, GError **error)
{
  char **texts = tiny_json_get_texts (object, "renderers", error);
  for (guint i = 0; texts[i] != NULL; i++) {
    char *text = i < MAX_RENDERERS ? tiny_clean_text (texts[i], TINY_SCAN_MOST_TEXT) : NULL;
    g_free (texts[i]);
    texts[i] = text;
  }
  return texts;
}

static TinyError
read_code (JsonObject *object, GError **error)
{
  gint64 code = tiny_json_get_int (object, "code", TINY_ERROR_PLUGIN, error);
  return code >= 0 && code <= TINY_ERROR_IO ? (TinyError) code : TINY_ERROR_PLUGIN;
}

static TinyScanDevice *
device_from_json (JsonObject *object, GError **error)
{
  TinyScanDevice *out = g_new0 (TinyScanDevice, 1);
  g_autofree char *class_name = dup_text (object, "class", error);
  out->id = dup_text (object, "id", error);
  out->title = dup_text (object, "title", error);
  out->driver = dup_text (object, "driver", error);
  out->arch = dup_text (object, "arch", error);
  out->device_class = tiny_device_class_from_string (class_name);
  out->memory_bytes = (guint64) tiny_json_get_int (object, "memory_bytes", 0, error);
  out->error = dup_text_or_null (object, "error", error);
  out->code = read_code (object, error);
  out->open_us = (guint) tiny_json_get_int (object, "open_us", 0, error);
  return out;
}

TinyScan *
tiny_scan_from_json (JsonObject *object, GError **error)
{
  g_autoptr (TinyScan) self = scan_new ();
  GError *wrong = NULL;
  g_clear_pointer (&self->name, g_free);
  g_clear_pointer (&self->vendor, g_free);
  g_clear_pointer (&self->version, g_free);
  g_clear_pointer (&self->renderers, g_strfreev);
  self->is_loaded = tiny_json_get_bool (object, "loaded", &wrong);
  self->is_quarantined = tiny_json_get_bool (object, "quarantined", &wrong);
  self->reason = dup_text_or_null (object, "reason", &wrong);
  self->code = read_code (object, &wrong);
  self->name = dup_text (object, "name", &wrong);
  self->vendor = dup_text (object, "vendor", &wrong);
  self->version = dup_text (object, "version", &wrong);
  self->missing = dup_text_or_null (object, "missing", &wrong);
  self->takes_any_renderer = tiny_json_get_bool (object, "any_renderer", &wrong);
  self->runs_beside_host = tiny_json_get_bool (object, "beside_host", &wrong);
  self->imports_host = tiny_json_get_bool (object, "imports_host", &wrong);
  self->renderers = dup_renderers (object, &wrong);
  self->when = tiny_json_get_int (object, "when", 0, &wrong);
  self->took_us = (guint) tiny_json_get_int (object, "took_us", 0, &wrong);
  self->load_us = (guint) tiny_json_get_int (object, "load_us", 0, &wrong);
  self->scan_us = (guint) tiny_json_get_int (object, "scan_us", 0, &wrong);
  JsonArray *devices = tiny_json_get_array (object, "devices", &wrong);
  for (guint i = 0; devices != NULL && i < json_array_get_length (devices); i++) {
    JsonNode *node = json_array_get_element (devices, i);
    if (JSON_NODE_HOLDS_OBJECT (node))
      g_ptr_array_add (self->devices, device_from_json (json_node_get_object (node), &wrong));
  }
  if (wrong == NULL)
    return g_steal_pointer (&self);
  g_propagate_error (error, wrong);
  return NULL;
}

TinyScan *
tiny_scan_copy (const TinyScan *self)
{
  g_autoptr (JsonNode) node = tiny_scan_to_json (self);
  TinyScan *copy = tiny_scan_from_json (json_node_get_object (node), NULL);
  if (copy != NULL)
    copy->is_passing = self->is_passing;
  return copy;
}

/* ---- the scan ---- */
/* A text field of a struct, which may lack its NUL. */
#define CLEAN(field) tiny_clean_text (field, sizeof (field))

static void
keep_error (GError *error, TinyError *out_code, char **out_text)
{
  *out_code = error->domain == TINY_ERROR ? (TinyError) error->code : TINY_ERROR_PLUGIN;
  *out_text = g_strdup (error->message);
}

static TinyScanDevice *
scan_device (TinyBackend *backend, const TinyCandidate *candidate, gboolean *imports_host)
{
  TinyScanDevice *out = g_new0 (TinyScanDevice, 1);
  g_autoptr (GError) error = NULL;
  TinyDeviceInfo info;
  TinyDeviceTable table;
  out->id = CLEAN (candidate->id);
  out->driver = CLEAN (candidate->driver);
  out->device_class = candidate->device_class;
  gint64 before = g_get_monotonic_time ();
  gboolean good = tiny_backend_try_device (backend, candidate->id, &info, &table, &error);
  out->open_us = (guint) (g_get_monotonic_time () - before);
  if (!good) {
    keep_error (error, &out->code, &out->error);
    out->title = CLEAN (candidate->name);
    out->arch = g_strdup ("");
    return out;
  }
  out->title = info.name[0] ? CLEAN (info.name) : CLEAN (candidate->name);
  out->arch = CLEAN (info.arch);
  out->memory_bytes = info.memory_bytes;
  *imports_host = *imports_host && table.import_host != NULL;
  return out;
}

/* The loader names the library that is missing, but not always who wants it, nor in words for people. */
static void
find_missing (TinyScan *self, const char *module_path)
{
  g_autofree char *needer = NULL;
  self->missing = tiny_library_find_missing (module_path, &needer);
  if (self->missing == NULL)
    return;
  g_free (self->reason);
  self->code = TINY_ERROR_DRIVER;
  self->reason = g_strdup_printf ("it needs the library %s%s%s, which is not there",
                                  self->missing, needer ? ", for " : "", needer ? needer : "");
}

TinyScan *
tiny_scan_module (const char *module_path)
{
  TinyScan *self = scan_new ();
  g_autoptr (GError) error = NULL;
  gint64 before = g_get_monotonic_time ();
  g_autoptr (TinyBackend) backend = tiny_backend_load (module_path, &error);
  gint64 loaded = g_get_monotonic_time ();
  self->load_us = (guint) (loaded - before);
  if (backend == NULL) {
    keep_error (error, &self->code, &self->reason);
    find_missing (self, module_path);
    return self;
  }
  const TinyPluginModule *module = tiny_backend_get_module (backend);
  GPtrArray *renderers = g_ptr_array_new ();
  const gboolean is_beside = tiny_backend_runs_beside_host (backend);
  for (guint i = 0; i < module->n_renderers && !is_beside; i++)
    g_ptr_array_add (renderers, tiny_clean_text (module->renderers[i].name, MAX_NAME));
  g_ptr_array_add (renderers, NULL);
  g_strfreev (self->renderers);
  self->renderers = (char **) g_ptr_array_free (renderers, FALSE);
  const struct {
    char **to;
    const char *text;
  } texts[] = { { &self->name, module->name },
                { &self->vendor, module->vendor },
                { &self->version, module->version } };
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++) {
    g_free (*texts[i].to);
    *texts[i].to = tiny_clean_text (texts[i].text, MAX_NAME);
  }
  self->takes_any_renderer = tiny_backend_takes_any_renderer (backend) || is_beside;
  self->runs_beside_host = is_beside;
  self->imports_host = TRUE;
  self->is_loaded = TRUE;
  g_autofree TinyCandidates *candidates = tiny_backend_scan (backend, &error);
  self->scan_us = (guint) (g_get_monotonic_time () - loaded);
  for (guint i = 0; candidates != NULL && i < candidates->n; i++)
    g_ptr_array_add (self->devices,
                     scan_device (backend, &candidates->at[i], &self->imports_host));
  if (candidates == NULL)
    keep_error (error, &self->code, &self->reason);
  else if (candidates->n == 0) {
    self->code = TINY_ERROR_NO_DEVICE;
    self->reason = g_strdup (TINY_SCAN_NO_REASON);
  }
  return self;
}
