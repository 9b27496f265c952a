/* SPDX-License-Identifier: MIT
 *
 * abi-manifest.c: a plugin's manifest, member by member, and whether it is that of the file.
 *
 * Names stand in the plugin's table, which only running it would give; but as constants they stand
 * in the file as well, so that one which does not occur there is not in the table either. */
#include <string.h>
#include <sys/stat.h>

#include "plugin/abi-private.h"
#include "plugin/tiny-discovery.h"
#include "plugin/tiny-json.h"
#include "tiny-plugin.h"

/* ---- finding it ---- */
static gboolean
is_same_file (const char *a, const char *b)
{
  struct stat x, y;
  return stat (a, &x) == 0 && stat (b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static gboolean
names_module (const char *manifest, const char *module)
{
  g_autoptr (TinyManifest) read = tiny_manifest_load (manifest, NULL);
  return read != NULL && is_same_file (read->module, module);
}

/* Beside the file. */
static char *
find_beside (const char *module)
{
  g_autofree char *folder = g_path_get_dirname (module);
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  for (const char *name = dir ? g_dir_read_name (dir) : NULL; name != NULL;
       name = g_dir_read_name (dir)) {
    g_autofree char *path = g_build_filename (folder, name, NULL);
    if (g_str_has_suffix (name, ".json") && names_module (path, module))
      return g_steal_pointer (&path);
  }
  return NULL;
}

/* Beside the file and called like it, but for another: tiny-npu.so and npu.json. */
static char *
find_namesake (const char *module)
{
  g_autofree char *folder = g_path_get_dirname (module), *base = g_path_get_basename (module);
  if (g_str_has_suffix (base, ".so"))
    base[strlen (base) - strlen (".so")] = 0;
  const char *const stems[]
      = { g_str_has_prefix (base, "tiny-") ? base + strlen ("tiny-") : base, base };
  for (guint i = 0; i < G_N_ELEMENTS (stems); i++) {
    g_autofree char *name = g_strconcat (stems[i], ".json", NULL);
    g_autofree char *path = g_build_filename (folder, name, NULL);
    if (g_file_test (path, G_FILE_TEST_IS_REGULAR))
      return g_steal_pointer (&path);
  }
  return NULL;
}

/* One that names the file, beside it or installed, goes before one that is only called so. */
char *
tiny_abi_find_manifest (const char *path)
{
  char *beside = find_beside (path);
  if (beside != NULL)
    return beside;
  g_autoptr (GPtrArray) all = tiny_discover (NULL, NULL, NULL);
  for (guint i = 0; i < all->len; i++) {
    const TinyFound *found = all->pdata[i];
    if (found->manifest != NULL && is_same_file (found->manifest->module, path))
      return g_strdup (found->path);
  }
  return find_namesake (path);
}

static char *
find_manifest (const TinyAbiSubject *self)
{
  return self->manifest != NULL ? g_canonicalize_filename (self->manifest, NULL)
                                : tiny_abi_find_manifest (self->path);
}

/* ---- its members ---- */
static void complain (GPtrArray *out, const char *format, ...) G_GNUC_PRINTF (2, 3);

static void
complain (GPtrArray *out, const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  g_ptr_array_add (out, g_strdup_vprintf (format, arguments));
  va_end (arguments);
}

static void
check_absolute (char *const *paths, const char *what, GPtrArray *wrong)
{
  for (guint i = 0; paths[i] != NULL; i++)
    if (!g_path_is_absolute (paths[i]))
      complain (wrong, "“%s” has “%s”, which is no absolute path", what, paths[i]);
}

static gboolean
is_variable (const char *name)
{
  for (const char *c = name; *c != 0; c++)
    if (!g_ascii_isalnum (*c) && *c != '_')
      return FALSE;
  return name[0] != 0 && !g_ascii_isdigit (name[0]);
}

static void
check_exports (const TinyManifest *manifest, GPtrArray *wrong)
{
  static const char *const forms[] = { "c", "files", NULL };
  for (guint i = 0; i < manifest->exports->len; i++) {
    const TinyManifestExport *export = manifest->exports->pdata[i];
    if (!g_strv_contains (forms, export->form))
      complain (wrong, "the export “%s” has the form “%s”, not c or files", export->name,
                export->form);
    if (export->folder != NULL && !g_file_test (export->folder, G_FILE_TEST_IS_DIR))
      complain (wrong, "the export “%s” names the folder %s, which is not there", export->name,
                export->folder);
    if (export->renderer[0] != 0
        && !g_strv_contains ((const char *const *) manifest->renderers, export->renderer))
      complain (wrong, "the export “%s” is for “%s”, which is not among “renderers”",
                export->name, export->renderer);
  }
}

static void
check_members (const TinyManifest *manifest, GPtrArray *wrong)
{
  check_absolute (manifest->device_nodes, "device_nodes", wrong);
  check_absolute (manifest->probe_files, "files", wrong);
  for (guint i = 0; manifest->modalias[i] != NULL; i++)
    if (strchr (manifest->modalias[i], ':') == NULL || manifest->modalias[i][0] == '*')
      complain (wrong,
                "“modalias” has “%s”, which does not begin with a bus, as in pci:v000010DE*",
                manifest->modalias[i]);
  for (guint i = 0; manifest->probe_env[i] != NULL; i++)
    if (!is_variable (manifest->probe_env[i]))
      complain (wrong, "“env” has “%s”, which is no name of a variable",
                manifest->probe_env[i]);
  check_exports (manifest, wrong);
}

/* What works and could be better. */
static void
advise (const TinyManifest *manifest, JsonObject *root, GPtrArray *out)
{
  const struct {
    const char *key, *value;
  } texts[] = { { "vendor", manifest->vendor },
                { "version", manifest->version },
                { "license", manifest->license },
                { "class", json_object_has_member (root, "class") ? "said" : "" } };
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    if (texts[i].value[0] == 0)
      complain (out, "“%s” is not said", texts[i].key);
  g_autoptr (GPtrArray) unknown = tiny_manifest_find_unknown (root);
  for (guint i = 0; i < unknown->len; i++)
    complain (out, "“%s” is ignored: nobody knows it", (const char *) unknown->pdata[i]);
  const char *module = tiny_json_get_text (root, "module", NULL);
  if (module != NULL && g_path_is_absolute (module))
    complain (out, "“module” is an absolute path: relative to the manifest, both can be moved");
}

void
tiny_abi_check_manifest (const TinyAbiSubject *self, TinyAbiFinding *out)
{
  g_autofree char *path = find_manifest (self);
  if (path == NULL) {
    tiny_abi_say (
        out, TINY_ABI_WARNING,
        "write NAME.json beside it, or name it with --manifest: without one no program "
        "finds the plugin",
        "there is no manifest");
    return;
  }
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyManifest) manifest = tiny_manifest_load (path, &error);
  g_autoptr (JsonNode) root
      = manifest ? tiny_json_load (path, TINY_MANIFEST_MAX_BYTES, &error) : NULL;
  if (root == NULL) {
    tiny_abi_say (out, TINY_ABI_FAILED, "docs/plugins.md lists the members", "%s: %s", path,
                  error->message);
    return;
  }
  g_autoptr (GPtrArray) wrong = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GPtrArray) advice = g_ptr_array_new_with_free_func (g_free);
  check_members (manifest, wrong);
  advise (manifest, json_node_get_object (root), advice);
  g_autofree char *mistakes = tiny_abi_join (wrong), *better = tiny_abi_join (advice);
  if (wrong->len > 0)
    tiny_abi_say (out, TINY_ABI_FAILED, "docs/plugins.md lists the members", "%s: %s", path,
                  mistakes);
  else if (advice->len > 0)
    tiny_abi_say (out, TINY_ABI_WARNING, "docs/plugins.md lists the members", "%s: %s", path,
                  better);
  else
    tiny_abi_say (out, TINY_ABI_OK, NULL, "%s", path);
}

/* ---- agreement ---- */
static gboolean
holds_text (const char *bytes, gsize size, const char *text)
{
  return memmem (bytes, size, text, strlen (text) + 1) != NULL; /* with its NUL */
}

static void
compare_note (const TinyAbiSubject *self, const TinyManifest *manifest, GPtrArray *wrong)
{
  guint64 size = 0;
  g_autofree guint32 *abi = tiny_elf_read_note (self->elf, "TINY-ABI", 1, &size);
  if (abi == NULL || size < 4 * sizeof *abi)
    return;
  if (abi[0] != manifest->abi || abi[2] != manifest->abi_minor_min)
    complain (wrong,
              "the manifest is for plugin ABI %u from minor %u on, the note says %u from %u on",
              manifest->abi, manifest->abi_minor_min, abi[0], abi[2]);
}

static void
compare_texts (const TinyAbiSubject *self, const TinyManifest *manifest, GPtrArray *wrong)
{
  g_autofree char *bytes = tiny_elf_read (self->elf, 0, self->elf->size);
  const struct {
    const char *key, *value;
  } texts[] = { { "name", manifest->name },
                { "vendor", manifest->vendor },
                { "version", manifest->version },
                { "license", manifest->license } };
  for (guint i = 0; bytes != NULL && i < G_N_ELEMENTS (texts); i++)
    if (texts[i].value[0] != 0 && !holds_text (bytes, self->elf->size, texts[i].value))
      complain (wrong, "“%s” is “%s”, which is nowhere in the file", texts[i].key,
                texts[i].value);
  for (guint i = 0; bytes != NULL && manifest->renderers[i] != NULL; i++)
    if (!holds_text (bytes, self->elf->size, manifest->renderers[i]))
      complain (wrong, "“renderers” has “%s”, which is nowhere in the file",
                manifest->renderers[i]);
}

void
tiny_abi_check_agreement (const TinyAbiSubject *self, TinyAbiFinding *out)
{
  g_autofree char *path = find_manifest (self);
  g_autoptr (TinyManifest) manifest = path ? tiny_manifest_load (path, NULL) : NULL;
  if (manifest == NULL) {
    tiny_abi_say (out, path ? TINY_ABI_UNKNOWN : TINY_ABI_NOTE, NULL,
                  "not looked at, see “manifest”");
    return;
  }
  g_autoptr (GPtrArray) wrong = g_ptr_array_new_with_free_func (g_free);
  if (!is_same_file (manifest->module, self->path))
    complain (wrong, "“module” is %s, another file or none", manifest->module);
  compare_note (self, manifest, wrong);
  compare_texts (self, manifest, wrong);
  g_autofree char *list = tiny_abi_join (wrong);
  if (wrong->len > 0)
    tiny_abi_say (
        out, TINY_ABI_FAILED,
        "name, vendor, version, license and renderers of the manifest are those of the "
        "module table, and “module” leads from the manifest's folder to the file",
        "%s", list);
  else
    tiny_abi_say (out, TINY_ABI_OK, NULL, "file, ABI and names are those of the manifest");
}
