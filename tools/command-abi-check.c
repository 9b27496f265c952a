/* SPDX-License-Identifier: MIT
 *
 * command-abi-check.c: tinycore abi-check: a plugin's file looked at before it is shipped. */
#include <json-glib/json-glib.h>
#include <stdio.h>
#include <string.h>

#include "plugin/tiny-abi-check.h"
#include "tools/commands.h"

static void
print_json (const TinyAbiFinding *finding)
{
  g_autoptr (JsonBuilder) builder = json_builder_new ();
  json_builder_begin_object (builder);
  tinycore_add_text (builder, "check", finding->check);
  tinycore_add_text (builder, "state", tiny_abi_state_to_string (finding->state));
  tinycore_add_text (builder, "text", finding->text);
  tinycore_add_text (builder, "hint", finding->hint);
  json_builder_end_object (builder);
  tinycore_print_json (builder);
}

static void
print_text (const TinyAbiFinding *finding)
{
  printf ("%-8s %-12s %s\n", tiny_abi_state_to_string (finding->state), finding->check,
          finding->text);
  if (finding->hint != NULL)
    printf ("%-8s %-12s → %s\n", "", "", finding->hint);
}

int
tinycore_abi_check (int argc, char **argv)
{
  gboolean json = FALSE;
  int status = 0;
  g_autofree char *manifest = NULL;
  const GOptionEntry entries[] = {
    { "json", 0, 0, G_OPTION_ARG_NONE, &json, "one JSON object a check", NULL },
    { "manifest", 0, 0, G_OPTION_ARG_FILENAME, &manifest,
      "the plugin's manifest; else one beside it, or an installed one that names it", "FILE" },
    G_OPTION_ENTRY_NULL,
  };
  if (!tinycore_parse (&argc, &argv, "FILE.so",
                       "Looks at a plugin's file before it is shipped, running nothing of it.",
                       entries, &status))
    return status;
  if (argc != 2) {
    g_printerr ("usage: tinycore abi-check FILE.so [--manifest FILE] [--json]\n");
    return EXIT_USAGE;
  }
  g_autoptr (GPtrArray) findings = tiny_abi_check (argv[1], manifest);
  for (guint i = 0; i < findings->len; i++)
    if (json)
      print_json (findings->pdata[i]);
    else
      print_text (findings->pdata[i]);
  return tiny_abi_is_good (findings) ? 0 : EXIT_FAILED;
}
