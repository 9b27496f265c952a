/* SPDX-License-Identifier: MIT
 *
 * subject.c: from what the user named to what is tested. */
#include "subject.h"

#include <dlfcn.h>
#include <string.h>

#include "base/tiny-error.h"
#include "base/tiny-whole-file.h"
#include "engine/tiny-plan.h"
#include "plugin/tiny-device-spec.h"
#include "plugin/tiny-discovery.h"
#include "plugin/tiny-elf.h"

enum { FILE_TIMEOUT_MS = 60000 }; /* of a file whose manifest says none */

/* ---- what was named ---- */
void
conf_wanted_free (ConfWanted *self)
{
  if (self == NULL)
    return;
  g_clear_pointer (&self->manifest, tiny_manifest_free);
  g_free (self->spec);
  g_free (self->device);
  g_free (self->path);
  g_free (self->manifest_path);
  conf_folder_free (self->made_folder);
  g_free (self);
}

static gboolean
is_manifest_of (const char *path, const char *file, TinyManifest **out)
{
  g_autoptr (TinyManifest) manifest = tiny_manifest_load (path, NULL);
  g_autofree char *module = manifest ? g_canonicalize_filename (manifest->module, NULL) : NULL;
  if (module == NULL || !g_str_equal (module, file))
    return FALSE;
  *out = g_steal_pointer (&manifest);
  return TRUE;
}

/* One in the file's own folder that names it, or one that discovery finds. */
static void
find_manifest (ConfWanted *self)
{
  g_autofree char *folder = g_path_get_dirname (self->path);
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  for (const char *name = dir ? g_dir_read_name (dir) : NULL;
       name != NULL && self->manifest == NULL; name = g_dir_read_name (dir)) {
    g_autofree char *path = g_build_filename (folder, name, NULL);
    if (g_str_has_suffix (name, ".json") && is_manifest_of (path, self->path, &self->manifest))
      self->manifest_path = g_steal_pointer (&path);
  }
  if (self->manifest != NULL)
    return;
  g_autoptr (GPtrArray) all = tiny_discover (NULL, NULL, NULL);
  for (guint i = 0; i < all->len && self->manifest == NULL; i++) {
    const TinyFound *found = all->pdata[i];
    if (found->manifest != NULL && found->shadower == NULL)
      is_manifest_of (found->path, self->path, &self->manifest);
  }
}

static gboolean
find_file (ConfWanted *self, const char *manifest, GError **error)
{
  self->path = g_canonicalize_filename (self->spec, NULL);
  if (!g_file_test (self->path, G_FILE_TEST_EXISTS)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "%s: there is no such file",
                 self->spec);
    return FALSE;
  }
  if (!g_file_test (self->path, G_FILE_TEST_IS_REGULAR)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "%s: it is no file", self->spec);
    return FALSE;
  }
  if (manifest == NULL) {
    find_manifest (self);
  } else {
    self->manifest_path = g_canonicalize_filename (manifest, NULL);
    self->manifest = tiny_manifest_load (manifest, error);
    if (self->manifest == NULL) {
      g_prefix_error (error, "%s: ", manifest);
      return FALSE;
    }
    g_autofree char *module = g_canonicalize_filename (self->manifest->module, NULL);
    if (!g_str_equal (module, self->path)) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "%s: its module is %s, not %s",
                   manifest, module, self->path);
      return FALSE;
    }
  }
  if (self->manifest != NULL)
    self->device = g_strdup (self->manifest->name);
  return TRUE;
}

static gboolean
fail_unknown (const GPtrArray *all, const char *name, GError **error)
{
  GString *there = g_string_new (NULL);
  for (guint i = 0; i < all->len; i++) {
    const TinyFound *found = all->pdata[i];
    if (found->manifest != NULL && found->shadower == NULL)
      g_string_append_printf (there, "%s%s", there->len ? ", " : "", found->name);
  }
  g_set_error (error, TINY_ERROR, TINY_ERROR_NO_DEVICE,
               "there is no backend “%s”; there is: %s (a file is named with its folder, "
               "./%s)",
               name, there->len ? there->str : "none", name);
  g_string_free (there, TRUE);
  return FALSE;
}

static gboolean
take_found (ConfWanted *self, const TinyFound *found, GError **error)
{
  g_autofree char *reason = NULL;
  if (found->manifest == NULL) {
    g_set_error (error, TINY_ERROR, found->error ? TINY_ERROR_FORMAT : TINY_ERROR_NO_DEVICE,
                 "%s: %s", found->name,
                 found->error ? found->error->message : "hidden by an empty manifest");
    return FALSE;
  }
  if (!tiny_manifest_matches (found->manifest, &reason)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_NO_DEVICE, "%s: %s", found->name, reason);
    return FALSE;
  }
  self->manifest = tiny_manifest_load (found->path, error);
  if (self->manifest == NULL)
    return FALSE;
  self->path = g_canonicalize_filename (self->manifest->module, NULL);
  self->device = g_strdup (self->spec);
  return TRUE;
}

static gboolean
find_device (ConfWanted *self, GError **error)
{
  g_autoptr (TinyDeviceSpec) spec = tiny_device_spec_parse (self->spec, error);
  if (spec == NULL)
    return FALSE;
  const GPtrArray *chain = spec->chains->len > 0 ? spec->chains->pdata[0] : NULL;
  if (spec->is_help || spec->chains->len != 1 || chain->len != 1) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "“%s”: one device is tested at a time, named in the grammar of DEV=, or a "
                 "plugin's file",
                 self->spec);
    return FALSE;
  }
  const TinyDeviceTarget *target = chain->pdata[0];
  g_autoptr (GPtrArray) all = tiny_discover (NULL, NULL, NULL);
  for (guint i = 0; i < all->len; i++) {
    const TinyFound *found = all->pdata[i];
    if (found->shadower == NULL && g_ascii_strcasecmp (found->name, target->name) == 0)
      return take_found (self, found, error);
  }
  return fail_unknown (all, target->name, error);
}

ConfWanted *
conf_wanted_new (const char *spec, const char *manifest, GError **error)
{
  g_autoptr (ConfWanted) self = g_new0 (ConfWanted, 1);
  self->spec = g_strdup (spec);
  gboolean is_file = strchr (spec, G_DIR_SEPARATOR) != NULL || g_str_has_suffix (spec, ".so");
  if (!is_file && manifest != NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "--manifest goes with a plugin's file, and “%s” is a device", spec);
    return NULL;
  }
  return (is_file ? find_file (self, manifest, error) : find_device (self, error))
             ? g_steal_pointer (&self)
             : NULL;
}

/* ---- before it is loaded for use ---- */
/* A manifest of what the module says of itself, where its file has none. */
static gboolean
make_manifest (ConfWanted *self, const char *name, GError **error)
{
  g_autoptr (JsonBuilder) builder = json_builder_new ();
  json_builder_begin_object (builder);
  json_builder_set_member_name (builder, "format_version");
  json_builder_add_int_value (builder, 1);
  json_builder_set_member_name (builder, "name");
  json_builder_add_string_value (builder, name);
  json_builder_set_member_name (builder, "abi");
  json_builder_add_int_value (builder, TINY_PLUGIN_ABI_MAJOR);
  json_builder_set_member_name (builder, "module");
  json_builder_add_string_value (builder, self->path);
  json_builder_set_member_name (builder, "class");
  json_builder_add_string_value (builder, "simulator"); /* nobody's choice but ours */
  json_builder_end_object (builder);
  g_autoptr (JsonNode) root = json_builder_get_root (builder);
  g_autofree char *text = json_to_string (root, TRUE);
  self->made_folder = conf_folder_new (error);
  if (self->made_folder == NULL)
    return FALSE;
  self->manifest_path
      = g_build_filename (conf_folder_get_path (self->made_folder), "subject.json", NULL);
  if (!tiny_whole_file_write (self->manifest_path, text, -1, error))
    return FALSE;
  self->manifest = tiny_manifest_load (self->manifest_path, error);
  return self->manifest != NULL;
}

TinyScan *
conf_wanted_scan (ConfWanted *self, GError **error)
{
  TinyManifest unnamed = { .module = self->path, .timeout_ms = FILE_TIMEOUT_MS };
  g_autoptr (GError) why = NULL;
  if (!tiny_elf_check (self->path, &why))
    return tiny_scan_new_failed ((TinyError) why->code, g_strdup (why->message));
  g_autoptr (TinyScan) scan = tiny_scan_run (self->manifest ? self->manifest : &unnamed, error);
  if (scan == NULL)
    return NULL;
  if (self->manifest == NULL && scan->is_loaded) {
    if (!make_manifest (self, scan->name, error))
      return NULL;
    self->device = g_strdup (self->manifest->name);
  }
  return g_steal_pointer (&scan);
}

/* ---- opened ---- */
/* The module's own table, which the core keeps a copy of. */
static const TinyPluginModule *
find_module (const char *path)
{
  TinyPluginEntry entry = NULL;
  TinyPluginError error = { .struct_size = sizeof error };
  void *handle = dlopen (path, RTLD_LAZY | RTLD_NOLOAD);
  if (handle != NULL)
    entry = (TinyPluginEntry) dlsym (handle, TINY_PLUGIN_ENTRY_SYMBOL);
  return entry != NULL ? entry (TINY_PLUGIN_ABI_MINOR, &error) : NULL;
}

/* By which open() knows it: of the device with this name's index. */
static char *
find_id (TinyDevice *device)
{
  g_autoptr (TinyDeviceSpec) spec
      = tiny_device_spec_parse (tiny_device_get_name (device), NULL);
  g_autofree TinyCandidates *candidates
      = tiny_backend_scan (tiny_device_get_backend (device), NULL);
  const GPtrArray *chain
      = spec != NULL && spec->chains->len > 0 ? spec->chains->pdata[0] : NULL;
  const TinyDeviceTarget *target = chain != NULL && chain->len > 0 ? chain->pdata[0] : NULL;
  guint index = target != NULL && target->select == TINY_SELECT_RANGE ? target->first : 0;
  if (candidates == NULL || index >= candidates->n)
    return g_strdup ("");
  return g_utf8_make_valid (candidates->at[index].id, -1);
}

ConfSubject *
conf_subject_open (const ConfSubject *bare, GError **error)
{
  TinyDevice *device = tiny_engine_get_device (bare->spec, error);
  if (device == NULL)
    return NULL;
  ConfSubject *self = g_new (ConfSubject, 1);
  *self = (ConfSubject){
    .spec = g_strdup (bare->spec),
    .path = g_strdup (bare->path),
    .id = find_id (device),
    .seed = bare->seed,
    .module = find_module (bare->path),
    .backend = tiny_device_get_backend (device),
    .device = device,
    .target = tiny_device_get_target (device),
    .reference = tiny_engine_get_device ("REF", NULL),
  };
  return self;
}

void
conf_subject_free (ConfSubject *self)
{
  if (self == NULL)
    return;
  g_free ((char *) self->spec);
  g_free ((char *) self->path);
  g_free ((char *) self->id);
  g_free (self);
}
