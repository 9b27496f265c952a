/* SPDX-License-Identifier: MIT
 *
 * command-inspect.c: tinycore inspect: all that a plugin declares.
 *
 * The plugin runs in the helper process (inspect-module.h), whose lines are the output of --json and are
 * laid out for people otherwise. What it did before it crashed is shown as well. */
#include <stdio.h>
#include <string.h>

#include "base/tiny-error.h"
#include "ir/tiny-dtype.h"
#include "plugin/tiny-abi-check.h"
#include "plugin/tiny-discovery.h"
#include "plugin/tiny-elf.h"
#include "plugin/tiny-helper.h"
#include "plugin/tiny-json.h"
#include "tools/commands.h"
#include "tools/inspect-module.h"

/* Opens every device for every renderer, and compiles: more than a scan does. */
enum { SCANS = 4, DEFAULT_TIMEOUT_MS = 5000 };

typedef struct {
  char *module;   /* the file */
  char *manifest; /* its path, or NULL */
  TinyManifest *read;
} Subject;

static void
subject_clear (Subject *self)
{
  g_clear_pointer (&self->module, g_free);
  g_clear_pointer (&self->manifest, g_free);
  g_clear_pointer (&self->read, tiny_manifest_free);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Subject, subject_clear)

/* ---- who is meant ---- */
static gboolean
find_by_name (const char *name, Subject *out, GError **error)
{
  g_autoptr (GPtrArray) all = tiny_discover (NULL, NULL, NULL);
  GString *names = g_string_new (NULL);
  const TinyFound *match = NULL;
  for (guint i = 0; i < all->len; i++) {
    const TinyFound *found = all->pdata[i];
    if (found->shadower != NULL)
      continue;
    g_string_append_printf (names, "%s%s", names->len ? ", " : "", found->name);
    if (match == NULL && g_ascii_strcasecmp (found->name, name) == 0)
      match = found;
  }
  g_autofree char *list = g_string_free (names, FALSE);
  if (match == NULL)
    g_set_error (error, TINY_ERROR, TINY_ERROR_NO_DEVICE,
                 "there is no backend “%s”; there is: %s, or the path of a plugin", name,
                 list[0] ? list : "none");
  else if (match->is_mask)
    g_set_error (error, TINY_ERROR, TINY_ERROR_NO_DEVICE, "%s: hidden by the empty file %s",
                 name, match->path);
  else if (match->manifest == NULL)
    g_propagate_error (error, g_error_copy (match->error));
  if (match == NULL || match->manifest == NULL)
    return FALSE;
  out->manifest = g_strdup (match->path);
  out->module = g_strdup (match->manifest->module);
  return TRUE;
}

static gboolean
find_subject (const char *name, Subject *out, GError **error)
{
  if (strchr (name, '/') != NULL || g_str_has_suffix (name, ".so")) {
    out->module = g_canonicalize_filename (name, NULL);
    out->manifest = tiny_abi_find_manifest (out->module);
  } else if (!find_by_name (name, out, error)) {
    return FALSE;
  }
  if (out->manifest != NULL)
    out->read = tiny_manifest_load (out->manifest, NULL);
  return TRUE;
}

/* ---- what needs no helper ---- */
static void
add_list (JsonBuilder *line, const char *name, char *const *texts)
{
  json_builder_set_member_name (line, name);
  json_builder_begin_array (line);
  for (guint i = 0; texts[i] != NULL; i++)
    json_builder_add_string_value (line, texts[i]);
  json_builder_end_array (line);
}

static char *
finish_line (JsonBuilder *line)
{
  json_builder_end_object (line);
  g_autoptr (JsonNode) root = json_builder_get_root (line);
  return json_to_string (root, FALSE);
}

static JsonBuilder *
begin_line (const char *part)
{
  JsonBuilder *line = json_builder_new ();
  json_builder_begin_object (line);
  tinycore_add_text (line, "part", part);
  return line;
}

static char *
describe_manifest (const Subject *self)
{
  g_autoptr (JsonBuilder) line = begin_line ("manifest");
  const TinyManifest *read = self->read;
  g_autoptr (GError) error = NULL;
  tinycore_add_text (line, "path", self->manifest);
  if (read == NULL) {
    g_autoptr (TinyManifest) again = tiny_manifest_load (self->manifest, &error);
    tinycore_add_text (line, "error", error ? error->message : "it changed meanwhile");
    return finish_line (line);
  }
  tinycore_add_text (line, "name", read->name);
  tinycore_add_text (line, "vendor", read->vendor);
  tinycore_add_text (line, "version", read->version);
  tinycore_add_text (line, "license", read->license);
  tinycore_add_text (line, "package", read->package);
  tinycore_add_text (line, "class", tiny_device_class_to_string (read->device_class));
  json_builder_set_member_name (line, "timeout_ms");
  json_builder_add_int_value (line, read->timeout_ms);
  add_list (line, "renderers", read->renderers);
  add_list (line, "modalias", read->modalias);
  add_list (line, "device_nodes", read->device_nodes);
  add_list (line, "cpu_features", read->cpu_features);
  add_list (line, "probe_env", read->probe_env);
  add_list (line, "probe_files", read->probe_files);
  json_builder_set_member_name (line, "exports");
  json_builder_begin_array (line);
  for (guint i = 0; i < read->exports->len; i++)
    json_builder_add_string_value (
        line, ((const TinyManifestExport *) read->exports->pdata[i])->name);
  json_builder_end_array (line);
  return finish_line (line);
}

static char *
describe_file (const Subject *self, GError **error)
{
  g_autoptr (TinyElf) elf = tiny_elf_open (self->module, error);
  if (elf == NULL) {
    g_prefix_error (error, "%s: ", self->module);
    return NULL;
  }
  g_autoptr (JsonBuilder) line = begin_line ("file");
  g_autofree char *build_id = tiny_elf_read_build_id (elf);
  guint64 size = 0;
  g_autofree guint32 *abi = tiny_elf_read_note (elf, "TINY-ABI", 1, &size);
  g_autofree char *note
      = abi != NULL && size >= 16
            ? g_strdup_printf ("%u.%u, from %u.%u on", abi[0], abi[1], abi[0], abi[2])
            : NULL;
  tinycore_add_text (line, "path", self->module);
  json_builder_set_member_name (line, "bytes");
  json_builder_add_int_value (line, (gint64) elf->size);
  tinycore_add_text (line, "machine", tiny_elf_name_machine (elf->head.e_machine));
  tinycore_add_text (line, "build_id", build_id);
  tinycore_add_text (line, "abi_note", note);
  g_ptr_array_add (elf->needed, NULL);
  add_list (line, "needs", (char **) elf->needed->pdata);
  return finish_line (line);
}

/* ---- for people ---- */
static const char *
text_of (JsonObject *line, const char *key)
{
  const char *text = tiny_json_get_text (line, key, NULL);
  return text ? text : "";
}

static void print_row (const char *key, const char *format, ...) G_GNUC_PRINTF (2, 3);

static void
print_row (const char *key, const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  g_autofree char *text = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  if (text[0] != 0)
    printf ("  %-13s %s\n", key, text);
}

/* A list or a number as a text, "" for an empty one. */
static char *
join (JsonObject *line, const char *key)
{
  JsonArray *array = tiny_json_get_array (line, key, NULL);
  GString *out = g_string_new (NULL);
  for (guint i = 0; array != NULL && i < json_array_get_length (array); i++) {
    JsonNode *node = json_array_get_element (array, i);
    g_string_append (out, i ? " " : "");
    if (json_node_get_value_type (node) == G_TYPE_STRING)
      g_string_append (out, json_node_get_string (node));
    else
      g_string_append_printf (out, "%" G_GINT64_FORMAT, json_node_get_int (node));
  }
  return g_string_free (out, FALSE);
}

/* Every member but those that the heading has. */
static void
print_members (JsonObject *line, const char *const *without)
{
  g_autoptr (GList) members = json_object_get_members (line);
  for (GList *at = members; at != NULL; at = at->next) {
    const char *key = at->data;
    JsonNode *node = json_object_get_member (line, key);
    if (g_str_equal (key, "part") || g_strv_contains (without, key)
        || JSON_NODE_HOLDS_OBJECT (node) || JSON_NODE_HOLDS_NULL (node))
      continue;
    g_autofree char *list = JSON_NODE_HOLDS_ARRAY (node) ? join (line, key) : NULL;
    GType type = list ? G_TYPE_STRING : json_node_get_value_type (node);
    if (type == G_TYPE_STRING)
      print_row (key, "%s", list ? list : json_node_get_string (node));
    else if (type == G_TYPE_BOOLEAN)
      print_row (key, "%s", json_node_get_boolean (node) ? "yes" : "no");
    else
      print_row (key, "%" G_GINT64_FORMAT, json_node_get_int (node));
  }
}

static const char *
mark_of (JsonObject *op, const char *dtype)
{
  JsonObject *cell = op ? tiny_json_get_object (op, dtype, NULL) : NULL;
  const char *state = cell ? text_of (cell, "state") : "";
  return g_str_equal (state, "native")       ? "yes"
         : g_str_equal (state, "emulated")   ? "made"
         : g_str_equal (state, "impossible") ? "no"
                                             : "";
}

/* "sin" is "add cmplt …" on f32, f64. */
static void
print_makings (JsonObject *ops, const char *name)
{
  JsonObject *op = tiny_json_get_object (ops, name, NULL);
  g_autoptr (GPtrArray) said = g_ptr_array_new ();
  g_autoptr (GList) dtypes = json_object_get_members (op);
  for (GList *at = dtypes; at != NULL; at = at->next) {
    JsonObject *cell = tiny_json_get_object (op, at->data, NULL);
    const char *as = text_of (cell, "as"), *reason = text_of (cell, "reason");
    const char *how = as[0] ? as : reason;
    if (how[0] == 0 || g_ptr_array_find_with_equal_func (said, how, g_str_equal, NULL))
      continue;
    g_ptr_array_add (said, (gpointer) how);
    GString *where = g_string_new (NULL);
    for (GList *other = at; other != NULL; other = other->next) {
      JsonObject *its = tiny_json_get_object (op, other->data, NULL);
      if (g_str_equal (text_of (its, as[0] ? "as" : "reason"), how))
        g_string_append_printf (where, " %s", (const char *) other->data);
    }
    printf ("    %s%s: %s%s\n", name, where->str, as[0] ? "" : "not possible: ", how);
    g_string_free (where, TRUE);
  }
}

static void
print_ops (JsonObject *ops)
{
  g_autoptr (GList) names = json_object_get_members (ops);
  printf ("  %-8s", "ops");
  for (TinyDType dtype = TINY_DTYPE_BOOL; dtype < TINY_DTYPE_INDEX; dtype++)
    printf (" %-6s", tiny_dtype_to_string (dtype));
  for (GList *at = names; at != NULL; at = at->next) {
    JsonObject *op = tiny_json_get_object (ops, at->data, NULL);
    printf ("\n  %-8s", (const char *) at->data);
    for (TinyDType dtype = TINY_DTYPE_BOOL; dtype < TINY_DTYPE_INDEX; dtype++)
      printf (" %-6s", mark_of (op, tiny_dtype_to_string (dtype)));
  }
  printf ("\n  made of, in the core:\n");
  for (GList *at = names; at != NULL; at = at->next)
    print_makings (ops, at->data);
}

static void
print_part (JsonObject *line)
{
  static const char *const without[] = { "name", "ops", NULL };
  static const char *const device_without[] = { "id", "name", NULL };
  static const char *const path_without[] = { "path", NULL };
  const char *part = text_of (line, "part");
  gboolean is_device = g_str_equal (part, "device");
  gboolean has_path = json_object_has_member (line, "path");
  const char *head = text_of (line, is_device ? "id" : has_path ? "path" : "name");
  printf ("%s%s%s\n", part, head[0] ? " " : "", head);
  print_members (line, is_device ? device_without : has_path ? path_without : without);
  JsonObject *ops = tiny_json_get_object (line, "ops", NULL);
  if (ops != NULL)
    print_ops (ops);
}

/* ---- the command ---- */
typedef struct {
  gboolean json;
  char *calling; /* what was called last */
} Printer;

static void
print_line (Printer *self, const char *text)
{
  g_autoptr (JsonNode) root = tiny_json_parse (text, -1, NULL);
  if (root == NULL)
    return; /* half a line, of a plugin that was ended */
  JsonObject *line = json_node_get_object (root);
  const char *part = text_of (line, "part");
  if (g_str_equal (part, "calling")) {
    g_free (self->calling);
    self->calling = g_strdup (text_of (line, "function"));
    return;
  }
  if (g_str_equal (part, "end"))
    return;
  if (self->json)
    puts (text);
  else
    print_part (line);
}

static int
run_helper (const Subject *subject, Printer *printer)
{
  g_auto (TinyHelperResult) result = { NULL };
  GError *error = NULL;
  guint timeout_ms = subject->read ? subject->read->timeout_ms : DEFAULT_TIMEOUT_MS;
  const TinyHelperTask task = { .module = subject->module,
                                .what = TINY_HELPER_INSPECT,
                                .timeout_ms = SCANS * timeout_ms };
  if (!tiny_helper_run (&task, &result, &error))
    return tinycore_fail (error);
  g_auto (GStrv) lines = g_strsplit (result.report, "\n", -1);
  for (guint i = 0; lines[i] != NULL; i++)
    if (lines[i][0] != 0)
      print_line (printer, lines[i]);
  if (result.failure == NULL)
    return 0;
  g_set_error (&error, TINY_ERROR, (gint) result.code, "%s: in %s %s", subject->module,
               printer->calling ? printer->calling : "the helper", result.failure);
  return tinycore_fail (error);
}

static int
inspect (const Subject *subject, gboolean json)
{
  Printer printer = { .json = json };
  GError *error = NULL;
  if (subject->manifest != NULL) {
    g_autofree char *manifest = describe_manifest (subject);
    print_line (&printer, manifest);
  }
  g_autofree char *file = describe_file (subject, &error);
  if (file != NULL)
    print_line (&printer, file);
  if (file == NULL || !tiny_elf_check (subject->module, &error))
    return tinycore_fail (error);
  int status = run_helper (subject, &printer);
  g_free (printer.calling);
  return status;
}

int
tinycore_inspect (int argc, char **argv)
{
  gboolean json = FALSE;
  int status = 0;
  GError *error = NULL;
  const GOptionEntry entries[] = {
    { "json", 0, 0, G_OPTION_ARG_NONE, &json, "one JSON object a part", NULL },
    G_OPTION_ENTRY_NULL,
  };
  if (!tinycore_parse (&argc, &argv, "NAME|FILE.so",
                       "Shows all that a plugin declares, and which ops the core makes for it.",
                       entries, &status))
    return status;
  if (argc != 2) {
    g_printerr ("usage: tinycore inspect NAME|FILE.so [--json]\n");
    return EXIT_USAGE;
  }
  g_auto (Subject) subject = { NULL };
  if (!find_subject (argv[1], &subject, &error))
    return tinycore_fail (error);
  return inspect (&subject, json);
}
