/* SPDX-License-Identifier: MIT
 *
 * command-new-plugin.c: tinycore new-plugin: a backend to begin with.
 *
 * A template is one of the examples of sdk/examples as it is installed, a project that builds and passes
 * conformance, with the packaging that all have alike (every.d). "sample" in it, in any case of letters, becomes the
 * new name. */
#include <errno.h>
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>

#include "base/tiny-error.h"
#include "base/tiny-whole-file.h"
#include "plugin/tiny-discovery.h"
#include "tools/commands.h"

enum { MAX_NAME = 32 }; /* as of manifests */

/* What of a template's text becomes what. */
typedef struct {
  char *to[3]; /* for the words of placeholders */
} Words;
static const char *const placeholders[] = { "sample", "SAMPLE", "Sample" };

static void
words_clear (Words *self)
{
  for (guint i = 0; i < G_N_ELEMENTS (self->to); i++)
    g_free (self->to[i]);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Words, words_clear)

static char *
replace (const Words *words, const char *text)
{
  g_autoptr (GString) result = g_string_new (text);
  for (guint i = 0; i < G_N_ELEMENTS (placeholders); i++)
    g_string_replace (result, placeholders[i], words->to[i], 0);
  return g_string_free (g_steal_pointer (&result), FALSE);
}

static gboolean
fail_io (GError **error, const char *path)
{
  g_set_error (error, TINY_ERROR, TINY_ERROR_IO, "%s: %s", path, g_strerror (errno));
  return FALSE;
}

static gboolean
copy_file (const Words *words, const char *from, const char *to, GError **error)
{
  g_autofree char *text = NULL;
  GStatBuf status;
  if (!g_file_get_contents (from, &text, NULL, error))
    return FALSE;
  g_autofree char *changed = replace (words, text);
  if (!tiny_whole_file_write (to, changed, -1, error))
    return FALSE;
  /* In a template that is installed nothing is a program. */
  const gboolean is_script = g_str_has_prefix (text, "#!");
  return (g_stat (to, &status) == 0
          && g_chmod (to,
                      (status.st_mode & 0777) | (is_script ? (status.st_mode & 0444) >> 2 : 0))
                 == 0)
         || fail_io (error, to);
}

static gboolean
copy_folder (const Words *words, const char *from, const char *to, GError **error)
{
  g_autoptr (GDir) folder = g_dir_open (from, 0, error);
  if (folder == NULL)
    return FALSE;
  if (g_mkdir_with_parents (to, 0777) != 0)
    return fail_io (error, to);
  for (const char *name; (name = g_dir_read_name (folder)) != NULL;) {
    g_autofree char *changed = replace (words, name);
    g_autofree char *source = g_build_filename (from, name, NULL);
    g_autofree char *target = g_build_filename (to, changed, NULL);
    gboolean good = g_file_test (source, G_FILE_TEST_IS_DIR)
                        ? copy_folder (words, source, target, error)
                        : copy_file (words, source, target, error);
    if (!good)
      return FALSE;
  }
  return TRUE;
}

/* ---- what is asked for ---- */

/* A name is part of file names, of C identifiers and of DEV=. */
static gboolean
read_name (const char *name, Words *out, GError **error)
{
  const char *good = "abcdefghijklmnopqrstuvwxyz0123456789";
  g_autofree char *lower = g_ascii_strdown (name, -1);
  gsize length = strlen (name);
  if (length > MAX_NAME || !g_ascii_isalpha (lower[0]) || strspn (lower, good) != length) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "new-plugin: “%s” cannot be a backend's name: a letter, then letters and "
                 "digits, %d in all at most",
                 name, MAX_NAME);
    return FALSE;
  }
  g_autoptr (GPtrArray) found = tiny_discover (NULL, NULL, NULL);
  for (guint i = 0; i < found->len; i++) {
    const TinyFound *other = found->pdata[i];
    if (g_ascii_strcasecmp (other->name, name) != 0)
      continue;
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "new-plugin: there is a backend %s already (%s), which would hide the new one",
                 other->name, other->path);
    return FALSE;
  }
  out->to[1] = g_ascii_strup (name, -1);
  out->to[2] = g_strdup (lower);
  out->to[2][0] = g_ascii_toupper (lower[0]);
  out->to[0] = g_steal_pointer (&lower);
  return TRUE;
}

static char *
find_template (const char *kind, GError **error)
{
  g_autofree char *folder = tinycore_find_installed ("TINY_TEMPLATE_DIR", TINY_TEMPLATE_DIR,
                                                     "share/tinycore-1.0/templates");
  if (folder == NULL || !g_file_test (folder, G_FILE_TEST_IS_DIR)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_IO,
                 "new-plugin: the templates are not installed (%s); they come with the package "
                 "tinycore-sdk",
                 folder != NULL ? folder : TINY_TEMPLATE_DIR);
    return NULL;
  }
  g_autofree char *path = g_build_filename (folder, kind, NULL);
  if (kind[0] != '\0' && strchr (kind, '/') == NULL && kind[0] != '.'
      && g_file_test (path, G_FILE_TEST_IS_DIR))
    return g_steal_pointer (&path);
  g_autoptr (GString) kinds = g_string_new (NULL);
  g_autoptr (GDir) all = g_dir_open (folder, 0, NULL);
  for (const char *name; all != NULL && (name = g_dir_read_name (all)) != NULL;)
    if (strchr (name, '.') == NULL)
      g_string_append_printf (kinds, "%s%s", kinds->len > 0 ? ", " : "", name);
  g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
               "new-plugin: there is no kind “%s”; there is: %s", kind, kinds->str);
  return NULL;
}

/* The guide as it is installed, or in the tree. */
static char *
find_guide (const char *templates)
{
  static const char *const places[] = { "../../doc/tinycore-sdk/sdk/guide.md", "../guide.md" };
  for (guint i = 0; i < G_N_ELEMENTS (places); i++) {
    g_autofree char *path = g_canonicalize_filename (places[i], templates);
    if (g_file_test (path, G_FILE_TEST_EXISTS))
      return g_steal_pointer (&path);
  }
  return g_strdup ("sdk/guide.md");
}

static gboolean
is_empty (const char *path)
{
  g_autoptr (GDir) folder = g_dir_open (path, 0, NULL);
  return folder != NULL ? g_dir_read_name (folder) == NULL
                        : !g_file_test (path, G_FILE_TEST_EXISTS);
}

static gboolean
make_plugin (const char *name, const char *kind, const char *folder, GError **error)
{
  g_auto (Words) words = { { NULL } };
  if (!read_name (name, &words, error))
    return FALSE;
  g_autofree char *template = find_template (kind, error);
  if (template == NULL)
    return FALSE;
  g_autofree char *own = g_strdup_printf ("tiny-%s", words.to[0]);
  folder = folder != NULL ? folder : own;
  if (!is_empty (folder)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "new-plugin: %s is there already and not an empty folder; --dir names another",
                 folder);
    return FALSE;
  }
  g_autofree char *templates = g_path_get_dirname (template);
  g_autofree char *every = g_build_filename (templates, "every.d", NULL);
  if (!copy_folder (&words, template, folder, error)
      || !copy_folder (&words, every, folder, error))
    return FALSE;
  g_autofree char *guide = find_guide (templates);
  printf ("%s: a backend %s of kind %s that works as it stands. Next:\n\n"
          "  cd %s\n"
          "  meson setup build && ninja -C build\n"
          "  meson test -C build                   # conformance, level core: minutes\n"
          "  tinycore conformance --ladder --manifest build/uninstalled.json "
          "build/tiny-%s.so\n\n"
          "README.md there says what to replace, the guide (%s) how.\n"
          "dpkg-buildpackage -us -uc makes a Debian package of it.\n",
          folder, words.to[1], kind, folder, words.to[0], guide);
  return TRUE;
}

int
tinycore_new_plugin (int argc, char **argv)
{
  g_autofree char *kind = NULL, *folder = NULL;
  int status = 0;
  const GOptionEntry entries[] = {
    { "kind", 0, 0, G_OPTION_ARG_STRING, &kind,
      "how kernels reach it: dialect, linear or offload (dialect)", "KIND" },
    { "dir", 0, 0, G_OPTION_ARG_FILENAME, &folder, "folder to make (tiny-NAME)", "DIR" },
    G_OPTION_ENTRY_NULL,
  };
  if (!tinycore_parse (&argc, &argv, "NAME",
                       "Makes a backend to begin with, which builds and passes conformance.",
                       entries, &status))
    return status;
  if (argc != 2) {
    g_printerr (
        "usage: tinycore new-plugin NAME [--kind dialect|linear|offload] [--dir DIR]\n");
    return EXIT_USAGE;
  }
  GError *error = NULL;
  if (!make_plugin (argv[1], kind != NULL ? kind : "dialect", folder, &error))
    return tinycore_fail (error);
  return 0;
}
