/* SPDX-License-Identifier: MIT
 *
 * command-plugin.c: tinycore plugin install, remove, list and bundle. */
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>

#include "base/tiny-error.h"
#include "tools/bundle.h"
#include "tools/commands.h"
#include "tools/plugin-store.h"

typedef struct {
  gboolean is_system, json;
  char *output, *certificate;
} Options;

static int
install (const char *path, const Options *options)
{
  GError *error = NULL;
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (Bundle) bundle = bundle_read (path, &error);
  if (bundle == NULL)
    return tinycore_fail (error);
  if (!plugin_store_install (bundle, options->is_system, notes, &error)) {
    g_prefix_error (&error, "%s: ", path);
    return tinycore_fail (error);
  }
  g_autofree char *folder = plugin_store_get_folder (options->is_system);
  printf ("installed %s %s in %s\n", bundle->manifest->name, bundle->manifest->version, folder);
  for (guint i = 0; i < notes->len; i++)
    printf ("note: %s\n", (const char *) notes->pdata[i]);
  return 0;
}

static int
remove_one (const char *name, const Options *options)
{
  GError *error = NULL;
  if (!plugin_store_remove (name, options->is_system, &error))
    return tinycore_fail (error);
  printf ("removed %s\n", name);
  return 0;
}

static void
print_installed (const Installed *installed, gboolean json)
{
  if (!json) {
    printf ("%-10s %-12s %s\n", installed->name, installed->version, installed->manifest);
    printf (
        "           from         %s\n           on           %s\n           certificate  %s\n",
        installed->source ? installed->source : "", installed->when ? installed->when : "",
        installed->certificate ? installed->certificate : "none");
    return;
  }
  g_autoptr (JsonBuilder) builder = json_builder_new ();
  json_builder_begin_object (builder);
  tinycore_add_text (builder, "name", installed->name);
  tinycore_add_text (builder, "version", installed->version);
  tinycore_add_text (builder, "vendor", installed->vendor);
  tinycore_add_text (builder, "manifest", installed->manifest);
  tinycore_add_text (builder, "folder", installed->folder);
  tinycore_add_text (builder, "certificate", installed->certificate);
  tinycore_add_text (builder, "source", installed->source);
  tinycore_add_text (builder, "sha256", installed->hash);
  tinycore_add_text (builder, "when", installed->when);
  json_builder_set_member_name (builder, "system");
  json_builder_add_boolean_value (builder, installed->is_system);
  json_builder_end_object (builder);
  tinycore_print_json (builder);
}

/* The user's, then the system's. */
static int
list (const Options *options)
{
  guint n = 0;
  for (gboolean is_system = options->is_system; is_system <= TRUE; is_system++) {
    g_autoptr (GPtrArray) all = plugin_store_list (is_system);
    for (guint i = 0; i < all->len; i++)
      print_installed (all->pdata[i], options->json);
    n += all->len;
  }
  if (n == 0 && !options->json)
    printf ("no bundle is installed; tinycore devices lists what packages and folders bring\n");
  return 0;
}

static int
bundle (const char *manifest, const Options *options)
{
  GError *error = NULL;
  if (options->output == NULL) {
    g_printerr ("tinycore: --output is missing: the file to write, such as npu.tar.gz\n");
    return EXIT_USAGE;
  }
  if (!bundle_make (manifest, options->certificate, options->output, &error))
    return tinycore_fail (error);
  /* What nobody could install is not made. */
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (Bundle) made = bundle_read (options->output, &error);
  if (made == NULL || !plugin_store_check (made, notes, &error)) {
    g_unlink (options->output);
    return tinycore_fail (error);
  }
  for (guint i = 0; i < notes->len; i++)
    printf ("note: %s\n", (const char *) notes->pdata[i]);
  printf ("%s: %s %s, %u files\n", options->output, made->manifest->name,
          made->manifest->version, made->names->len);
  return 0;
}

static int
run (int argc, char **argv, const Options *options)
{
  const char *what = argc > 1 ? argv[1] : "";
  if (g_str_equal (what, "list") && argc == 2)
    return list (options);
  if (g_str_equal (what, "install") && argc == 3)
    return install (argv[2], options);
  if (g_str_equal (what, "remove") && argc == 3)
    return remove_one (argv[2], options);
  if (g_str_equal (what, "bundle") && argc == 3)
    return bundle (argv[2], options);
  g_printerr (
      "usage: tinycore plugin install BUNDLE [--system]\n"
      "       tinycore plugin remove NAME [--system]\n"
      "       tinycore plugin list [--system] [--json]\n"
      "       tinycore plugin bundle MANIFEST.json --output FILE [--certificate FILE]\n");
  return EXIT_USAGE;
}

int
tinycore_plugin (int argc, char **argv)
{
  Options options = { FALSE };
  int status = 0;
  const GOptionEntry entries[] = {
    { "system", 0, 0, G_OPTION_ARG_NONE, &options.is_system,
      "for all users, instead of you alone", NULL },
    { "json", 0, 0, G_OPTION_ARG_NONE, &options.json, "list: one JSON object a line", NULL },
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, &options.output,
      "bundle: file to write, .tar.gz, .tar.zst, .tar.xz, .tar or .zip", "FILE" },
    { "certificate", 0, 0, G_OPTION_ARG_FILENAME, &options.certificate,
      "bundle: certificate of conformance to put into it", "FILE" },
    G_OPTION_ENTRY_NULL,
  };
  if (tinycore_parse (
          &argc, &argv, "install BUNDLE | remove NAME | list | bundle MANIFEST.json",
          "Installs vendors' bundles, each a plugin in one archive.", entries, &status))
    status = run (argc, argv, &options);
  g_free (options.output);
  g_free (options.certificate);
  return status;
}
