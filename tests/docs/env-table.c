/* SPDX-License-Identifier: MIT
 *
 * env-table.c: prints the generated tables of docs/env.md: the library's variables from
 * base/tiny-env.def, the backends' from their READMEs, given as arguments. */
#include <stdio.h>
#include <string.h>

#include <glib.h>

static const struct {
  const char *name, *text, *meaning;
  gboolean is_int;
  int number;
} variables[] = {
#define TINY_ENV_INT(id, name, helpers, value, least, most, meaning)                           \
  { name, NULL, meaning, TRUE, value },
#define TINY_ENV_TEXT(id, name, helpers, value, meaning) { name, value, meaning, FALSE, 0 },
#include "base/tiny-env.def"
};

static void
print_own (void)
{
  puts ("<!-- generated: library -->\n| name | default | meaning |\n|---|---|---|");
  for (guint i = 0; i < G_N_ELEMENTS (variables); i++) {
    printf ("| `%s` | ", variables[i].name);
    if (variables[i].is_int)
      printf ("%d", variables[i].number);
    else
      printf ("%s", variables[i].text != NULL ? variables[i].text : "unset");
    printf (" | %s |\n", variables[i].meaning);
  }
}

static gboolean
print_table_of (const char *path)
{
  g_autofree char *folder = g_path_get_dirname (path), *name = g_path_get_basename (folder);
  g_autofree char *text = NULL;
  g_autoptr (GError) error = NULL;
  if (!g_file_get_contents (path, &text, NULL, &error)) {
    g_printerr ("env-table: %s\n", error->message);
    return FALSE;
  }
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  printf ("\n<!-- generated: %s -->\n", name);
  gboolean is_inside = FALSE;
  for (guint i = 0; lines[i] != NULL; i++) {
    is_inside
        = lines[i][0] == '|' && (is_inside || g_str_has_prefix (lines[i], "| variable |"));
    if (is_inside)
      puts (lines[i]);
  }
  return TRUE;
}

int
main (int argc, char **argv)
{
  if (argc < 2) {
    g_printerr ("usage: env-table README…\n");
    return 2;
  }
  print_own ();
  gboolean is_good = TRUE;
  for (int i = 1; i < argc; i++)
    is_good = print_table_of (argv[i]) && is_good;
  return is_good ? 0 : 1;
}
