/* SPDX-License-Identifier: MIT
 *
 * tir-test.c: runs golden files: tir-test [--update] FILE…
 *
 * A file holds a line "// run: pass arguments", the input, a line "// expect:" and the output. The
 * output is the text form of what the pass made of the input, or "// error: message". With
 * --update the output in the file is replaced by what came out. */
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "ir/tiny-text.h"
#include "tir-passes.h"

static const char run_mark[] = "// run:", expect_mark[] = "// expect:";

/* The start of the line that begins with @mark, or NULL. */
static char *
find_line (char *text, const char *mark)
{
  for (char *line = text; line != NULL; line = strchr (line, '\n')) {
    line += *line == '\n';
    if (g_str_has_prefix (line, mark))
      return line;
  }
  return NULL;
}

static char *
run_pass (const char *name, const char *args, const char *input, GError **error)
{
  const TirPassRow *row = tir_passes;
  while (row->name != NULL && strcmp (row->name, name) != 0)
    row++;
  if (row->name == NULL) {
    g_set_error (error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED, "no pass is called %s", name);
    return NULL;
  }
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  g_autoptr (GError) failure = NULL;
  TinyNode *root = tiny_graph_parse (graph, input, &failure);
  if (root != NULL)
    root = row->run (graph, root, args, &failure);
  if (root != NULL)
    return tiny_graph_print (graph, root);
  return g_strdup_printf ("// error: %s\n", failure->message);
}

/* Tells where the two first differ. */
static void
show_difference (const char *path, const char *expected, const char *found)
{
  g_auto (GStrv) a = g_strsplit (expected, "\n", -1), b = g_strsplit (found, "\n", -1);
  guint i = 0;
  while (a[i] != NULL && b[i] != NULL && strcmp (a[i], b[i]) == 0)
    i++;
  g_printerr (
      "%s: line %u of the output differs\n  expected: %s\n  found:    %s\nwhole output:\n%s",
      path, i + 1, a[i] != NULL ? a[i] : "(the end)", b[i] != NULL ? b[i] : "(the end)", found);
}

static gboolean
run_file (const char *path, gboolean update, GError **error)
{
  g_autofree char *text = NULL;
  if (!g_file_get_contents (path, &text, NULL, error))
    return FALSE;
  char *run = find_line (text, run_mark), *expect = find_line (text, expect_mark);
  if (run == NULL || expect == NULL || expect < run) {
    g_set_error (error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED, "wants lines \"%s\" and \"%s\"",
                 run_mark, expect_mark);
    return FALSE;
  }
  const char *input = run + strcspn (run, "\n");
  g_autofree char *command
      = g_strndup (run + strlen (run_mark), (gsize) (input - run) - strlen (run_mark));
  g_strstrip (command);
  char *args = command + strcspn (command, " ");
  if (*args != 0)
    *args++ = 0;
  g_autofree char *source = g_strndup (input, (gsize) (expect - input));
  g_autofree char *output = run_pass (command, args, source, error);
  if (output == NULL)
    return FALSE;

  char *expected = expect + strlen (expect_mark);
  expected += *expected == '\n';
  if (strcmp (expected, output) == 0)
    return TRUE;
  if (!update) {
    show_difference (path, expected, output);
    g_set_error (error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED, "the output is not as expected");
    return FALSE;
  }
  g_autofree char *head = g_strndup (text, (gsize) (expect - text));
  g_autofree char *updated = g_strconcat (head, expect_mark, "\n", output, NULL);
  return g_file_set_contents (path, updated, -1, error);
}

int
main (int argc, char **argv)
{
  gboolean update = FALSE;
  g_auto (GStrv) paths = NULL;
  g_autoptr (GError) error = NULL;
  const GOptionEntry entries[] = {
    { "update", 0, 0, G_OPTION_ARG_NONE, &update, "replace the expected output", NULL },
    { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &paths, NULL, "FILE…" },
    { NULL },
  };
  g_autoptr (GOptionContext) context = g_option_context_new (NULL);
  g_option_context_add_main_entries (context, entries, NULL);
  if (!g_option_context_parse (context, &argc, &argv, &error) || paths == NULL) {
    g_printerr ("tir-test: %s\n", error != NULL ? error->message : "no file given");
    return 2;
  }
  int n_failed = 0;
  for (guint i = 0; paths[i] != NULL; i++) {
    g_autoptr (GError) failure = NULL;
    if (run_file (paths[i], update, &failure))
      continue;
    g_printerr ("%s: %s\n", paths[i], failure->message);
    n_failed++;
  }
  return n_failed > 0;
}
