/* SPDX-License-Identifier: MIT
 *
 * tiny-arguments.c: what GOption takes of a command line in silence, and nobody means.
 *
 * Reads a command line as GOption does, and changes nothing of it: "--name value", "--name=value", "-n value",
 * "-nvalue", letters in one word, and nothing but arguments behind "--". */
#include "base/tiny-arguments.h"

#include <string.h>

typedef struct {
  const GOptionEntry *entry; /* NULL: an argument */
  const char *value;         /* NULL: it has none */
} Given;

static gboolean
has_value (const GOptionEntry *entry)
{
  return entry->arg != G_OPTION_ARG_NONE;
}

static const GOptionEntry *
find_long (const GOptionEntry *entries, const char *name, gsize length)
{
  for (; entries->long_name != NULL; entries++)
    if (strlen (entries->long_name) == length
        && strncmp (entries->long_name, name, length) == 0)
      return entries;
  return NULL;
}

static const GOptionEntry *
find_short (const GOptionEntry *entries, char letter)
{
  for (; entries->long_name != NULL; entries++)
    if (entries->short_name != 0 && entries->short_name == letter)
      return entries;
  return NULL;
}

/* What the word at @at gives, with the one behind it where that is its value; returns how many words that is. */
static int
read_word (const GOptionEntry *entries, int n, char *const *at, GArray *out)
{
  const char *word = at[0], *next = n > 1 ? at[1] : NULL;
  if (g_str_has_prefix (word, "--")) {
    const gsize length = strcspn (word + 2, "=");
    const GOptionEntry *entry = find_long (entries, word + 2, length);
    const gboolean is_joined = word[2 + length] == '=';
    if (entry == NULL)
      return 1;
    const Given given = { entry, !has_value (entry) ? NULL
                                 : is_joined        ? word + 3 + length
                                                    : next };
    g_array_append_val (out, given);
    return has_value (entry) && !is_joined && next != NULL ? 2 : 1;
  }
  for (guint i = 1; word[i] != 0; i++) {
    const GOptionEntry *entry = find_short (entries, word[i]);
    if (entry == NULL)
      return 1;
    const gboolean is_joined = word[i + 1] != 0;
    const Given given = { entry, !has_value (entry) ? NULL : is_joined ? word + i + 1 : next };
    g_array_append_val (out, given);
    if (has_value (entry))
      return is_joined || next == NULL ? 1 : 2;
  }
  return 1;
}

static GArray *
read_all (const GOptionEntry *entries, int argc, char *const *argv)
{
  GArray *out = g_array_new (FALSE, FALSE, sizeof (Given));
  gboolean is_over = FALSE;
  for (int i = 1; i < argc;) {
    const gboolean is_option = !is_over && argv[i][0] == '-' && argv[i][1] != 0;
    if (is_option && strcmp (argv[i], "--") == 0) {
      is_over = TRUE;
      i++;
    } else if (is_option) {
      i += read_word (entries, argc - i, argv + i, out);
    } else {
      const Given argument = { NULL, argv[i++] };
      g_array_append_val (out, argument);
    }
  }
  return out;
}

static gboolean
check_value (const Given *given, GError **error)
{
  const GOptionEntry *entry = given->entry;
  if (given->value == NULL)
    return TRUE; /* GOption says that it is missing */
  if (given->value[0] == 0 && entry == NULL)
    g_set_error_literal (error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                         "“” is an empty argument: leave it out, or say what is meant");
  else if (given->value[0] == 0)
    g_set_error (error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                 "--%s “” is empty: it wants %s, or leave it out", entry->long_name,
                 entry->arg_description ? entry->arg_description : "a value");
  if (given->value[0] == 0)
    return FALSE;
  g_autofree char *text = g_locale_to_utf8 (given->value, -1, NULL, NULL, NULL);
  if (text != NULL || entry == NULL || entry->arg == G_OPTION_ARG_FILENAME
      || entry->arg == G_OPTION_ARG_FILENAME_ARRAY)
    return TRUE; /* names of files may be any bytes */
  g_autofree char *escaped = g_strescape (given->value, NULL);
  const char *charset = NULL;
  g_get_charset (&charset);
  g_set_error (error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
               "--%s “%s” is no text in %s, which the locale says", entry->long_name, escaped,
               charset);
  return FALSE;
}

static gboolean
counts_once (const GOptionEntry *entry)
{
  return entry != NULL && has_value (entry) && entry->arg != G_OPTION_ARG_STRING_ARRAY
         && entry->arg != G_OPTION_ARG_FILENAME_ARRAY;
}

gboolean
tiny_arguments_check (const GOptionEntry *entries, int argc, char *const *argv, GError **error)
{
  g_autoptr (GArray) all = read_all (entries, argc, argv);
  for (guint i = 0; i < all->len; i++) {
    const Given *given = &g_array_index (all, Given, i);
    if (!check_value (given, error))
      return FALSE;
    for (guint j = 0; j < i && counts_once (given->entry); j++)
      if (g_array_index (all, Given, j).entry == given->entry) {
        g_set_error (error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                     "--%s is given twice, and one counts", given->entry->long_name);
        return FALSE;
      }
  }
  return TRUE;
}

const char **
tiny_arguments_list_given (const GOptionEntry *entries, int argc, char *const *argv)
{
  g_autoptr (GArray) all = read_all (entries, argc, argv);
  GPtrArray *out = g_ptr_array_new ();
  for (guint i = 0; i < all->len; i++)
    if (g_array_index (all, Given, i).entry != NULL)
      g_ptr_array_add (out, (gpointer) g_array_index (all, Given, i).entry->long_name);
  g_ptr_array_add (out, NULL);
  return (const char **) g_ptr_array_free (out, FALSE);
}
