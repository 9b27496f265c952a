/* SPDX-License-Identifier: MIT
 *
 * command-devices.c: tinycore devices: what was found, and why some of it cannot be used. */
#include <stdio.h>
#include <string.h>

#include "plugin/tiny-registry.h"
#include "tools/commands.h"

static void
print_json (const TinyEntry *entry)
{
  g_autoptr (JsonBuilder) builder = json_builder_new ();
  json_builder_begin_object (builder);
  tinycore_add_text (builder, "name", entry->name);
  json_builder_set_member_name (builder, "index");
  json_builder_add_int_value (builder, entry->index);
  tinycore_add_text (builder, "state", tiny_entry_state_to_string (entry->state));
  json_builder_set_member_name (builder, "renderers");
  json_builder_begin_array (builder);
  for (guint i = 0; entry->renderers != NULL && entry->renderers[i] != NULL; i++)
    json_builder_add_string_value (builder, entry->renderers[i]);
  json_builder_end_array (builder);
  tinycore_add_text (builder, "architecture", entry->arch);
  json_builder_set_member_name (builder, "memory_bytes");
  json_builder_add_int_value (builder, (gint64) entry->memory_bytes);
  tinycore_add_text (builder, "plugin", entry->module_path);
  tinycore_add_text (builder, "reason", entry->reason);
  tinycore_add_text (builder, "title", entry->title);
  tinycore_add_text (builder, "id", entry->id);
  tinycore_add_text (builder, "class", entry->device_class);
  tinycore_add_text (builder, "version", entry->version);
  json_builder_end_object (builder);
  tinycore_print_json (builder);
}

/* @text within @width characters; … where it is cut. */
static char *
elide (const char *text, glong width)
{
  if (g_utf8_strlen (text, -1) <= width)
    return g_strdup (text);
  g_autofree char *start = g_utf8_substring (text, 0, width - 1);
  return g_strconcat (g_strchomp (start), "…", NULL);
}

/* @reason on a line of @width: where it does not fit, its beginning and what it ends with in parentheses, which says
 * what to do. */
static char *
shorten (const char *reason, glong width)
{
  enum { HEAD = 48 };
  g_autofree char *line = g_strdelimit (g_strdup (reason), "\n", ' ');
  const char *hint = g_utf8_strlen (line, -1) > width ? strchr (line, '(') : NULL;
  if (hint == NULL)
    return elide (line, width);
  g_autofree char *before = g_strndup (line, (gsize) (hint - line));
  g_autofree char *head = elide (g_strchomp (before), HEAD);
  g_autofree char *both = g_strconcat (head, " ", hint, NULL);
  return elide (both, width);
}

static void
print_text (const TinyEntry *entry, gboolean is_long)
{
  enum { WIDTH = 120, NAME_AND_STATE = 24 };
  g_autofree char *name = entry->index > 0
                              ? g_strdup_printf ("%s:%d", entry->name, entry->index)
                              : g_strdup (entry->name);
  g_autofree char *renderers = entry->renderers ? g_strjoinv (",", entry->renderers) : NULL;
  g_autofree char *why
      = entry->reason != NULL ? shorten (entry->reason, WIDTH - NAME_AND_STATE) : NULL;
  const char *title = entry->title != NULL ? entry->title : "";
  printf ("%-10s %-12s %s\n", name, tiny_entry_state_to_string (entry->state),
          is_long || why == NULL ? title : why);
  if (!is_long)
    return;
  if (renderers != NULL && renderers[0] != 0)
    printf ("           renderers    %s\n", renderers);
  if (entry->arch != NULL && entry->arch[0] != 0)
    printf ("           architecture %s\n", entry->arch);
  if (entry->memory_bytes > 0)
    printf ("           memory       %.1f GiB\n", (double) entry->memory_bytes / (1 << 30));
  if (entry->module_path != NULL)
    printf ("           plugin       %s\n", entry->module_path);
  if (entry->reason != NULL)
    printf ("           reason       %s\n", entry->reason);
}

/* ---- --explain ---- */
static void
explain_as_json (const GPtrArray *candidacies, const GPtrArray *searched, const char *choice)
{
  for (guint i = 0; i < searched->len; i++) {
    const TinySearched *place = searched->pdata[i];
    g_autoptr (JsonBuilder) builder = json_builder_new ();
    json_builder_begin_object (builder);
    tinycore_add_text (builder, "searched", place->path);
    tinycore_add_text (builder, "rule", place->rule);
    tinycore_add_text (builder, "found", place->text);
    json_builder_end_object (builder);
    tinycore_print_json (builder);
  }
  for (guint i = 0; i < candidacies->len; i++) {
    const TinyCandidacy *candidacy = candidacies->pdata[i];
    g_autoptr (JsonBuilder) builder = json_builder_new ();
    json_builder_begin_object (builder);
    tinycore_add_text (builder, "name", candidacy->name);
    tinycore_add_text (builder, "manifest", candidacy->manifest_path);
    tinycore_add_text (builder, "rule", candidacy->rule);
    tinycore_add_text (builder, "state", tiny_entry_state_to_string (candidacy->state));
    json_builder_set_member_name (builder, "chosen");
    json_builder_add_boolean_value (builder, candidacy->is_chosen);
    tinycore_add_text (builder, "verdict", candidacy->verdict);
    json_builder_set_member_name (builder, "rungs");
    json_builder_begin_array (builder);
    for (guint r = 0; r < candidacy->rungs->len; r++) {
      const TinyRung *rung = candidacy->rungs->pdata[r];
      json_builder_begin_object (builder);
      tinycore_add_text (builder, "rung", rung->rung);
      json_builder_set_member_name (builder, "good");
      json_builder_add_boolean_value (builder, rung->is_good);
      json_builder_set_member_name (builder, "recalled");
      json_builder_add_boolean_value (builder, rung->is_recalled);
      tinycore_add_text (builder, "text", rung->text);
      json_builder_set_member_name (builder, "us");
      json_builder_add_int_value (builder, (gint64) rung->took_us);
      json_builder_end_object (builder);
    }
    json_builder_end_array (builder);
    json_builder_end_object (builder);
    tinycore_print_json (builder);
  }
  g_autoptr (JsonBuilder) builder = json_builder_new ();
  json_builder_begin_object (builder);
  tinycore_add_text (builder, "choice", choice);
  json_builder_end_object (builder);
  tinycore_print_json (builder);
}

static void
explain_as_text (const GPtrArray *candidacies, const GPtrArray *searched, const char *choice)
{
  printf ("searched, in this order; of one name the first counts\n");
  for (guint i = 0; i < searched->len; i++) {
    const TinySearched *place = searched->pdata[i];
    printf ("  %-27s %s: %s\n", place->rule, place->path, place->text);
  }
  for (guint i = 0; i < candidacies->len; i++) {
    const TinyCandidacy *candidacy = candidacies->pdata[i];
    printf ("\n%-10s %s\n  %-10s %s, by %s\n", candidacy->name, candidacy->verdict, "found",
            candidacy->manifest_path, candidacy->rule);
    for (guint r = 0; r < candidacy->rungs->len; r++) {
      const TinyRung *rung = candidacy->rungs->pdata[r];
      printf ("  %-10s %s%s (%s%.2f ms)\n", rung->rung,
              rung->is_good ? "" : "stops here: ", rung->text,
              rung->is_recalled ? "remembered; it took " : "", (double) rung->took_us / 1e3);
    }
  }
  printf ("\n%s\n", choice);
}

static int
explain (TinyRegistry *registry, gboolean json)
{
  g_autoptr (GPtrArray) searched = NULL;
  g_autofree char *choice = NULL;
  g_autoptr (GPtrArray) candidacies = tiny_registry_explain (registry, &searched, &choice);
  (json ? explain_as_json : explain_as_text) (candidacies, searched, choice);
  return 0;
}

int
tinycore_devices (int argc, char **argv)
{
  gboolean json = FALSE, retry = FALSE, explains = FALSE, is_long = FALSE;
  int status = 0;
  const GOptionEntry entries[] = {
    { "json", 0, 0, G_OPTION_ARG_NONE, &json, "one JSON object a line", NULL },
    { "verbose", 'v', 0, G_OPTION_ARG_NONE, &is_long,
      "also renderers, architecture, memory, plugin, and reasons in full", NULL },
    { "explain", 0, 0, G_OPTION_ARG_NONE, &explains,
      "every candidate, what each was found to be, and why it is chosen or not", NULL },
    { "retry", 0, 0, G_OPTION_ARG_NONE, &retry, "look again at what crashed or hung before",
      NULL },
    G_OPTION_ENTRY_NULL,
  };
  if (!tinycore_parse (
          &argc, &argv, NULL,
          "Lists backends and their devices, best first, a line each, and why some "
          "cannot be used.\nDEV=[MODE+]NAME[:SELECTOR][:RENDERER[:ARCH]] chooses one; "
          "alternatives are separated by |.",
          entries, &status))
    return status;
  if (argc > 1) {
    g_printerr ("tinycore: devices takes no “%s”; usage: tinycore devices [--json] [--verbose] "
                "[--retry] [--explain]\n",
                argv[1]);
    return EXIT_USAGE;
  }
  TinyRegistry *registry = tiny_registry_get_default ();
  if (retry)
    tiny_registry_retry (registry, NULL);
  if (explains)
    return explain (registry, json);
  g_autoptr (GPtrArray) list = tiny_registry_list (registry);
  for (guint i = 0; i < list->len; i++)
    if (json)
      print_json (list->pdata[i]);
    else
      print_text (list->pdata[i], is_long);
  if (list->len == 0 && !json)
    printf ("no backends were found; install a package such as tinycore-plugin-cpu, or name a "
            "folder of manifests in TINY_PLUGIN_PATH\n");
  return 0;
}
