/* SPDX-License-Identifier: MIT
 *
 * command-abi-check.c: tinycore abi-check: a plugin's file looked at before it is shipped. */
#include <json-glib/json-glib.h>
#include <stdio.h>
#include <string.h>

#include "base/tiny-error.h"
#include "plugin/tiny-abi-check.h"
#include "plugin/tiny-elf.h"
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

/* What was not looked at is told in one line at the end. */
static void
print_text (const TinyAbiFinding *finding)
{
  if (finding->state == TINY_ABI_UNKNOWN)
    return;
  printf ("%-8s %-12s %s\n", tiny_abi_state_to_string (finding->state), finding->check,
          finding->text);
  if (finding->hint != NULL)
    printf ("%-8s %-12s → %s\n", "", "", finding->hint);
}

static void
print_findings (const GPtrArray *findings, gboolean json)
{
  guint n_unknown = 0;
  for (guint i = 0; i < findings->len; i++) {
    n_unknown += ((const TinyAbiFinding *) findings->pdata[i])->state == TINY_ABI_UNKNOWN;
    if (json)
      print_json (findings->pdata[i]);
    else
      print_text (findings->pdata[i]);
  }
  if (n_unknown > 0 && !json)
    printf ("%-8s %-12s the %u other checks were not made, see “file”\n", "unknown", "",
            n_unknown);
}

/* A path that is mistaken is one mistake and not one for each check. */
static gboolean
check_is_elf (const char *path)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyElf) elf = tiny_elf_open (path, &error);
  if (!g_error_matches (error, TINY_ERROR, TINY_ERROR_IO)
      && !g_error_matches (error, TINY_ERROR, TINY_ERROR_FORMAT))
    return TRUE;
  g_printerr ("tinycore abi-check: %s: %s\n", path, error->message);
  return FALSE;
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
  if (!check_is_elf (argv[1]))
    return EXIT_FAILED;
  g_autoptr (GPtrArray) findings = tiny_abi_check (argv[1], manifest);
  print_findings (findings, json);
  return tiny_abi_is_good (findings) ? 0 : EXIT_FAILED;
}
