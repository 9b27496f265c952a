/* SPDX-License-Identifier: MIT
 *
 * tiny-manifest.c: what a backend's package says of it, and whether to believe it. */
#include "plugin/tiny-manifest.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/tiny-error.h"
#include "plugin/tiny-json.h"
#include "plugin/tiny-library.h"

enum {
  FORMAT_VERSION = 1,
  MAX_TEXT = 256,
  DEFAULT_TIMEOUT_MS = 5000,
  DEFAULT_CALL_TIMEOUT_MS = 120000,
  MAX_TIMEOUT_MS = 60000
};

static const char *const classes[] = {
  [TINY_CLASS_CPU] = "cpu",
  [TINY_CLASS_GPU] = "gpu",
  [TINY_CLASS_NPU] = "npu",
  [TINY_CLASS_REMOTE] = "remote",
  [TINY_CLASS_SIMULATOR] = "simulator",
};

const char *
tiny_device_class_to_string (guint device_class)
{
  return device_class < G_N_ELEMENTS (classes) && classes[device_class] ? classes[device_class]
                                                                        : "unknown";
}

guint
tiny_device_class_from_string (const char *text)
{
  for (guint i = 0; i < G_N_ELEMENTS (classes); i++)
    if (classes[i] != NULL && g_str_equal (classes[i], text))
      return i;
  return 0;
}

/* ---- reading ---- */
/* Texts end up in messages and on terminals: short, and of characters that can be seen. */
static void
check_text (const char *text, const char *key, GError **error)
{
  glong length = g_utf8_strlen (text, -1);
  gboolean is_plain = TRUE;
  for (const char *c = text; *c != 0; c = g_utf8_next_char (c))
    is_plain = is_plain && g_unichar_isprint (g_utf8_get_char (c));
  if (*error != NULL || (length <= MAX_TEXT && is_plain))
    return;
  if (length > MAX_TEXT)
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
                 "“%s” has a text of %ld characters, %d are the most", key, length, MAX_TEXT);
  else
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
                 "“%s” has a text with a character that cannot be shown", key);
}

static char *
dup_text (JsonObject *object, const char *key, GError **error)
{
  char *text = tiny_json_dup_text (object, key, error);
  check_text (text ? text : "", key, error);
  return text != NULL ? text : g_strdup ("");
}

static char **
dup_texts (JsonObject *object, const char *key, GError **error)
{
  char **texts = tiny_json_get_texts (object, key, error);
  for (guint i = 0; texts[i] != NULL; i++)
    check_text (texts[i], key, error);
  return texts;
}

static guint
read_uint (JsonObject *object, const char *key, guint otherwise, guint most, GError **error)
{
  gint64 value = tiny_json_get_int (object, key, otherwise, error);
  if ((value < 0 || value > most) && error != NULL && *error == NULL)
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
                 "“%s” is %" G_GINT64_FORMAT ", not from 0 to %u", key, value, most);
  return (guint) CLAMP (value, 0, most);
}

static gboolean
is_name (const char *text)
{
  gsize length = strlen (text);
  if (length == 0 || length > 32 || !g_ascii_isalpha (text[0]))
    return FALSE;
  for (gsize i = 0; i < length; i++)
    if (!g_ascii_isalnum (text[i]) && text[i] != '_' && text[i] != '-')
      return FALSE;
  return g_ascii_strcasecmp (text, "help") != 0;
}

static gboolean
check_format (JsonObject *object, GError **error)
{
  GError *wrong = NULL;
  gint64 version = tiny_json_get_int (object, "format_version", -1, &wrong);
  if (wrong == NULL && version != FORMAT_VERSION)
    g_set_error (&wrong, TINY_ERROR, TINY_ERROR_FORMAT,
                 version < 0 ? "“format_version” is missing"
                             : "“format_version” is %" G_GINT64_FORMAT ", this core reads %d",
                 version, FORMAT_VERSION);
  if (wrong != NULL)
    g_propagate_error (error, wrong);
  return wrong == NULL;
}

static void
check_values (const TinyManifest *self, const char *class_name, GError **error)
{
  if (!is_name (self->name))
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
                 "“name” is “%s”, not a letter and up to 31 letters, digits, “-” or “_”",
                 self->name);
  else if (self->module == NULL)
    g_set_error_literal (error, TINY_ERROR, TINY_ERROR_FORMAT, "“module” is missing");
  else if (self->max_devices > TINY_MANIFEST_MAX_DEVICES)
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT, "“max_devices” is more than %d",
                 TINY_MANIFEST_MAX_DEVICES);
  else if (self->device_class == 0)
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
                 "“class” is “%s”, not cpu, gpu, npu, remote or simulator", class_name);
  else if (self->abi != TINY_PLUGIN_ABI_MAJOR)
    g_set_error (error, TINY_ERROR, TINY_ERROR_ABI, "it is for plugin ABI %u, this core has %u",
                 self->abi, TINY_PLUGIN_ABI_MAJOR);
  else if (self->abi_minor_min > TINY_PLUGIN_ABI_MINOR)
    g_set_error (error, TINY_ERROR, TINY_ERROR_ABI,
                 "it needs a core with plugin ABI %u.%u or newer, this one has %u.%u",
                 self->abi, self->abi_minor_min, TINY_PLUGIN_ABI_MAJOR, TINY_PLUGIN_ABI_MINOR);
}

static void
check_export (const TinyManifestExport *export, GError **error)
{
  if (!is_name (export->name))
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
                 "“exports” has “%s”, not a letter and up to 31 letters, digits, “-” or “_”",
                 export->name);
}

static void
export_free (gpointer data)
{
  TinyManifestExport *self = data;
  g_free (self->name);
  g_free (self->renderer);
  g_free (self->form);
  g_free (self->folder);
  g_free (self);
}

TinyManifest *
tiny_manifest_new_empty (void)
{
  TinyManifest *self = g_new0 (TinyManifest, 1);
  self->exports = g_ptr_array_new_with_free_func (export_free);
  return self;
}

void
tiny_manifest_add_export (TinyManifest *self,
                          const char *name,
                          const char *renderer,
                          const char *form,
                          const char *folder)
{
  TinyManifestExport *export = g_new0 (TinyManifestExport, 1);
  export->name = g_strdup (name);
  export->renderer = g_strdup (renderer);
  export->form = g_strdup (form);
  export->folder = g_strdup (folder);
  g_ptr_array_add (self->exports, export);
}

gboolean
tiny_manifest_check (const TinyManifest *self, GError **error)
{
  GError *wrong = NULL;
  const char *class_name = tiny_device_class_to_string (self->device_class);
  gboolean has_class = tiny_device_class_from_string (class_name) == self->device_class;
  check_values (self, class_name, &wrong);
  for (guint i = 0; i < self->exports->len && wrong == NULL; i++)
    check_export (self->exports->pdata[i], &wrong);
  if (wrong != NULL)
    g_propagate_error (error, wrong);
  return wrong == NULL && has_class;
}

static void
read_exports (TinyManifest *self, JsonObject *object, GError **error)
{
  JsonObject *exports = tiny_json_get_object (object, "exports", error);
  g_autoptr (GList) names = exports != NULL ? json_object_get_members (exports) : NULL;
  for (GList *at = names; at != NULL && *error == NULL; at = at->next) {
    JsonObject *entry = tiny_json_get_object (exports, at->data, error);
    g_autofree char *renderer = dup_text (entry, "renderer", error);
    g_autofree char *form = dup_text (entry, "form", error);
    g_autofree char *folder = dup_text (entry, "folder", error);
    g_autofree char *here = g_path_get_dirname (self->path);
    g_autofree char *absolute = folder[0] != 0 ? g_canonicalize_filename (folder, here) : NULL;
    tiny_manifest_add_export (self, at->data, renderer, form, absolute);
    if (*error == NULL)
      check_export (self->exports->pdata[self->exports->len - 1], error);
  }
}

static void
read_members (TinyManifest *self, JsonObject *object, GError **error)
{
  self->name = dup_text (object, "name", error);
  self->vendor = dup_text (object, "vendor", error);
  self->version = dup_text (object, "version", error);
  self->license = dup_text (object, "license", error);
  self->package = dup_text (object, "package", error);
  g_autofree char *module = dup_text (object, "module", error);
  if (module[0] != 0) {
    g_autofree char *folder = g_path_get_dirname (self->path);
    self->module = g_canonicalize_filename (module, folder);
  }
  self->abi = read_uint (object, "abi", 0, G_MAXUINT16, error);
  self->abi_minor_min = read_uint (object, "abi_minor_min", 0, G_MAXUINT16, error);
  self->renderers = dup_texts (object, "renderers", error);
  self->max_devices = read_uint (object, "max_devices", 0, TINY_MANIFEST_MAX_DEVICES, error);
  JsonObject *match = tiny_json_get_object (object, "match", error);
  self->modalias = dup_texts (match, "modalias", error);
  self->device_nodes = dup_texts (match, "device_nodes", error);
  self->cpu_features = dup_texts (match, "cpu_features", error);
  JsonObject *probe = tiny_json_get_object (object, "probe", error);
  self->timeout_ms = read_uint (probe, "timeout_ms", DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS, error);
  self->timeout_ms = self->timeout_ms ? self->timeout_ms : DEFAULT_TIMEOUT_MS;
  JsonObject *isolated = tiny_json_get_object (object, "isolated", error);
  self->call_timeout_ms
      = read_uint (isolated, "timeout_ms", DEFAULT_CALL_TIMEOUT_MS, G_MAXINT, error);
  self->probe_env = dup_texts (probe, "env", error);
  self->probe_files = dup_texts (probe, "files", error);
  read_exports (self, object, error);
  g_autofree char *class_name = dup_text (object, "class", error);
  self->device_class
      = class_name[0] ? tiny_device_class_from_string (class_name) : TINY_CLASS_CPU;
  if (*error == NULL)
    check_values (self, class_name, error);
}

static TinyManifest *
read_manifest (const char *path, JsonNode *root, GError **error)
{
  JsonObject *object = json_node_get_object (root);
  if (!check_format (object, error))
    return NULL;
  g_autoptr (TinyManifest) self = tiny_manifest_new_empty ();
  GError *wrong = NULL;
  self->path = g_canonicalize_filename (path, NULL);
  read_members (self, object, &wrong);
  if (wrong == NULL)
    return g_steal_pointer (&self);
  g_propagate_error (error, wrong);
  return NULL;
}

/* Every member that read_members() reads. */
static const struct {
  const char *object, *key;
} members[] = {
#define TINY_MEMBER(object, key, type, otherwise, meaning) { object, key },
#include "plugin/manifest-members.def"
#undef TINY_MEMBER
};

static gboolean
is_known (const char *object, const char *key)
{
  for (guint i = 0; i < G_N_ELEMENTS (members); i++)
    if (g_str_equal (members[i].object, object) && g_str_equal (members[i].key, key))
      return TRUE;
  return FALSE;
}

/* @name is the member that @object is of, or "". */
static void
add_unknown (JsonObject *object, const char *name, GPtrArray *out)
{
  g_autoptr (GList) keys = json_object_get_members (object);
  for (GList *at = keys; at != NULL; at = at->next) {
    const char *key = at->data;
    JsonNode *value = json_object_get_member (object, key);
    JsonObject *inner = JSON_NODE_HOLDS_OBJECT (value) ? json_node_get_object (value) : NULL;
    gboolean by_name = g_str_equal (key, "exports"); /* its members are the exports' names */
    g_autoptr (GList) exports = inner && by_name ? json_object_get_values (inner) : NULL;
    if (!is_known (name, key))
      g_ptr_array_add (out, g_strconcat (name, name[0] ? "." : "", key, NULL));
    else if (inner != NULL && !by_name)
      add_unknown (inner, key, out);
    else
      for (GList *export = exports; export != NULL; export = export->next)
        if (JSON_NODE_HOLDS_OBJECT ((JsonNode *) export->data))
          add_unknown (json_node_get_object (export->data), key, out);
  }
}

GPtrArray *
tiny_manifest_find_unknown (JsonObject *root)
{
  GPtrArray *out = g_ptr_array_new_with_free_func (g_free);
  add_unknown (root, "", out);
  return out;
}

TinyManifest *
tiny_manifest_parse (const char *path, const char *text, gssize size, GError **error)
{
  g_autoptr (JsonNode) root = tiny_json_parse (text, size, error);
  return root ? read_manifest (path, root, error) : NULL;
}

TinyManifest *
tiny_manifest_load (const char *path, GError **error)
{
  g_autoptr (JsonNode) root = tiny_json_load (path, TINY_MANIFEST_MAX_BYTES, error);
  return root ? read_manifest (path, root, error) : NULL;
}

void
tiny_manifest_free (TinyManifest *self)
{
  if (self == NULL)
    return;
  char **texts[] = { &self->path,    &self->module,  &self->name,   &self->vendor,
                     &self->version, &self->license, &self->package };
  char ***lists[] = { &self->renderers,    &self->modalias,  &self->device_nodes,
                      &self->cpu_features, &self->probe_env, &self->probe_files };
  for (guint i = 0; self->kept == NULL && i < G_N_ELEMENTS (texts); i++)
    g_free (*texts[i]);
  for (guint i = 0; self->kept == NULL && i < G_N_ELEMENTS (lists); i++)
    g_strfreev (*lists[i]);
  g_clear_pointer (&self->kept, g_bytes_unref);
  g_free (self->kept_lists);
  g_clear_pointer (&self->exports, g_ptr_array_unref);
  g_free (self);
}

/* ---- trust ---- */
static gboolean
owner_is_trusted (uid_t owner)
{
  static gsize library_owner = 0; /* plus one */
  if (g_once_init_enter (&library_owner)) {
    g_autofree char *own = tiny_library_get_own_path ();
    struct stat status;
    uid_t found = 0;
    if (own != NULL && stat (own, &status) == 0)
      found = status.st_uid;
    g_once_init_leave (&library_owner, (gsize) found + 1);
  }
  return owner == 0 || owner == geteuid () || owner == (uid_t) (library_owner - 1);
}

gboolean
tiny_stat_check_trust (const char *path,
                       const struct stat *info,
                       gboolean any_owner,
                       GError **error)
{
  /* A group that has its only member's number is no other person. */
  gboolean own_group = info->st_gid == info->st_uid;
  gboolean by_group = (info->st_mode & S_IWGRP) != 0 && !own_group;
  gboolean by_others = (info->st_mode & S_IWOTH) != 0;
  if ((by_group || by_others) && (info->st_mode & S_ISVTX) != 0) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_PERMISSION,
                 "%s can be written by others and is not trusted: use a folder of your own",
                 path); /* such as /tmp, which has to stay as it is */
    return FALSE;
  }
  if (by_group || by_others) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_PERMISSION,
                 "%s can be written by others and is not trusted: chmod %s '%s'", path,
                 by_group ? "go-w" : "o-w", path);
    return FALSE;
  }
  if (!any_owner && !owner_is_trusted (info->st_uid)) {
    g_set_error (
        error, TINY_ERROR, TINY_ERROR_PERMISSION,
        "%s belongs to user %u, neither to you nor to root, and is not trusted: chown %u "
        "'%s'",
        path, info->st_uid, geteuid (), path);
    return FALSE;
  }
  return TRUE;
}

static gboolean
check_one (const char *path, gboolean any_owner, GError **error)
{
  struct stat info;
  if (stat (path, &info) == 0)
    return tiny_stat_check_trust (path, &info, any_owner, error);
  g_set_error (error, TINY_ERROR, TINY_ERROR_IO, "%s: %s", path, g_strerror (errno));
  return FALSE;
}

gboolean
tiny_file_check_trust (const char *path, gboolean any_owner, GError **error)
{
  g_autofree char *folder = g_path_get_dirname (path);
  return check_one (folder, any_owner, error) && check_one (path, any_owner, error);
}
