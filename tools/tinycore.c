/* SPDX-License-Identifier: MIT
 *
 * tinycore.c: the command; its subcommands are the rows of one table. */
#include "tools/commands.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "base/tiny-arguments.h"
#include "base/tiny-clean.h"
#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "base/tiny-whole-file.h"
#include "engine/tiny-plan.h"
#include "engine/tiny-runtime.h"
#include "plugin/tiny-discovery.h"

static const struct {
  const char *name;
  int (*run) (int argc, char **argv);
  const char *meaning;
} commands[] = {
  { "devices", tinycore_devices, "list backends and devices, and why some cannot be used" },
  { "plugin", tinycore_plugin, "install, remove and list vendors' plugins" },
  { "inspect", tinycore_inspect, "show all that a plugin declares" },
  { "abi-check", tinycore_abi_check, "look at a plugin's file before it is shipped" },
  { "train", tinycore_train, "train a network: tinycore train fashion-mnist" },
  { "compile", tinycore_compile, "compile the kernels of an IR file" },
  { "explain", tinycore_explain, "show how an IR file becomes kernels" },
  { "export", tinycore_export, "write a model as a program that needs nothing of tinycore" },
  { "tune", tinycore_tune, "search for faster kernels of a model and write a file of them" },
  { "bench", tinycore_bench, "measure cases such as matmul:1024" },
  { "replay", tinycore_replay, "play again what a program asked of its devices" },
  { "new-plugin", tinycore_new_plugin, "make a backend to begin with" },
  { "conformance", tinycore_conformance, "check a backend against the contract" },
};

static void
print_help (FILE *out)
{
  fputs ("usage: tinycore COMMAND [ARGS…]\n\n", out);
  for (guint i = 0; i < G_N_ELEMENTS (commands); i++)
    fprintf (out, "  %-11s %s\n", commands[i].name, commands[i].meaning);
  fputs ("\nDEV=… chooses the device (DEV=help lists them), DEBUG=1…7 shows what happens.\n"
         "tinycore COMMAND --help says more; so does man tinycore.\n",
         out);
}

int
tinycore_fail (GError *error)
{
  fflush (stdout);
  g_printerr ("tinycore: %s\n", error->message);
  g_error_free (error);
  return EXIT_FAILED;
}

int
tinycore_fail_usage (const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  g_autofree char *text = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  fflush (stdout);
  g_printerr ("%s: %s; see --help\n", g_get_prgname (), text);
  return EXIT_USAGE;
}

TinyDevice *
tinycore_open_device (const char *dev, GError **error)
{
  if (dev != NULL)
    tiny_env_set_text (TINY_ENV_DEV, dev);
  const char *name = tiny_runtime_get_default_device (error);
  return name ? tiny_engine_get_device (name, error) : NULL;
}

gboolean
tinycore_write (const char *path, const void *data, gsize size, GError **error)
{
  if (path != NULL)
    return tiny_whole_file_report (path, data, (gssize) size, error);
  gboolean good = (size == 0 || fwrite (data, 1, size, stdout) == size) && fflush (stdout) == 0;
  if (!good)
    g_set_error (error, TINY_ERROR, TINY_ERROR_IO, "standard output: %s", g_strerror (errno));
  return good;
}

char *
tinycore_find_installed (const char *variable, const char *installed, const char *moved)
{
  const char *wanted = tiny_env_is_privileged () ? NULL : g_getenv (variable);
  if (wanted != NULL && wanted[0] != '\0')
    return g_strdup (wanted);
  char *beside = tiny_find_beside_library (moved);
  if (beside != NULL)
    return beside;
  return g_file_test (installed, G_FILE_TEST_EXISTS) ? g_strdup (installed) : NULL;
}

gboolean
tinycore_parse (int *argc,
                char ***argv,
                const char *parameters,
                const char *summary,
                const GOptionEntry *entries,
                int *out_status)
{
  g_autoptr (GOptionContext) context = g_option_context_new (parameters);
  g_autoptr (GError) error = NULL;
  g_option_context_set_summary (context, summary);
  g_option_context_add_main_entries (context, entries, NULL);
  if (tiny_arguments_check (entries, *argc, *argv, &error)
      && g_option_context_parse (context, argc, argv, &error))
    return TRUE;
  g_printerr ("tinycore: %s\n", error->message);
  *out_status = EXIT_USAGE;
  return FALSE;
}

void
tinycore_add_text (JsonBuilder *builder, const char *name, const char *value)
{
  json_builder_set_member_name (builder, name);
  if (value != NULL)
    json_builder_add_string_value (builder, value);
  else
    json_builder_add_null_value (builder);
}

void
tinycore_print_json (JsonBuilder *builder)
{
  g_autoptr (JsonNode) root = json_builder_get_root (builder);
  g_autofree char *text = json_to_string (root, FALSE);
  puts (text);
}

static int
run (int argc, char **argv)
{
  const char *name = argc > 1 ? argv[1] : "--help";
  const char *dev = g_getenv ("DEV");
  if (dev != NULL && (g_str_equal (dev, "help") || g_str_equal (dev, "?")))
    return tinycore_devices (1, argv);
  if (g_str_equal (name, "--help") || g_str_equal (name, "-h") || g_str_equal (name, "help")) {
    print_help (argc > 1 ? stdout : stderr);
    return argc > 1 ? 0 : EXIT_USAGE;
  }
  if (g_str_equal (name, "--version")) {
    printf ("tinycore %s\n", TINY_VERSION);
    return 0;
  }
  for (guint i = 0; i < G_N_ELEMENTS (commands); i++)
    if (g_str_equal (commands[i].name, name)) {
      g_autofree char *full = g_strdup_printf ("tinycore %s", name);
      g_set_prgname (full);
      return commands[i].run (argc - 1, argv + 1);
    }
  g_printerr ("tinycore: there is no command “%s”\n\n", name);
  print_help (stderr);
  return EXIT_USAGE;
}

/* A result that could not be written is no success. */
int
main (int argc, char **argv)
{
  setlocale (LC_ALL, "");
  tiny_clean_printerr ();
  int status = run (argc, argv);
  gboolean written = fflush (stdout) == 0 && !ferror (stdout);
  if (!written)
    g_printerr ("tinycore: standard output cannot be written\n");
  return written || status != 0 ? status : EXIT_FAILED;
}
