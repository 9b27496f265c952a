/* SPDX-License-Identifier: MIT
 *
 * tuned-file.c: see tuned-file.h. */
#include "engine/tuned-file.h"

#include <string.h>

#include "base/tiny-error.h"
#include "base/tiny-opened-file.h"
#include "codegen/tiny-codegen.h"

enum { MAX_FILE = 64 << 20 };

static void
entry_free (gpointer data)
{
  TunedEntry *self = data;
  g_free (self->opts);
  g_free (self);
}

GHashTable *
tuned_entries_new (void)
{
  return g_hash_table_new_full (g_str_hash, g_str_equal, g_free, entry_free);
}

/* Adds the entry of a line; gives the fault of one that is none, or NULL. */
static const char *
read_entry (GHashTable *entries, const char *line, const char *file)
{
  if (strlen (line) > TUNED_MAX_LINE)
    return "it is longer than any";
  g_auto (GStrv) fields = g_strsplit (line, " ", 3);
  if (g_strv_length (fields) != 3)
    return "wanted: digest, target, optimisations";
  if (strlen (fields[0]) != TUNED_DIGEST_LENGTH
      || strspn (fields[0], "0123456789abcdef") != TUNED_DIGEST_LENGTH)
    return "the digest is not 32 hexadecimal digits";
  char *comment = strchr (fields[2], '#');
  if (comment != NULL)
    *comment = 0;
  g_strstrip (fields[2]);
  guint n;
  g_autofree TinyOpt *opts = tiny_opts_from_string (fields[2], &n, NULL);
  if (opts == NULL || fields[2][0] == 0)
    return "these are no optimisations";
  char *key = g_strdup_printf ("%s %s", fields[0], fields[1]);
  const TunedEntry *known = g_hash_table_lookup (entries, key);
  if (known != NULL && known->file != g_intern_string (file)) {
    g_free (key);
    return NULL;
  }
  TunedEntry *entry = g_new (TunedEntry, 1);
  *entry = (TunedEntry){ g_strdup (fields[2]), g_intern_string (file) };
  g_hash_table_insert (entries, key, entry);
  return NULL;
}

/* The first line of *@at without its end, and *@at is behind it; NULL: there is none. */
static char *
take_line (char **at)
{
  char *line = *at, *end = line != NULL ? strchr (line, '\n') : NULL;
  *at = end != NULL ? end + 1 : NULL;
  if (end != NULL)
    *end = 0;
  return line;
}

/* @at is behind the first line. */
static void
read_lines (GHashTable *entries, char *at, const char *file)
{
  guint n_bad = 0, first_bad = 0, number = 1;
  const char *first_why = NULL;
  for (char *line; (line = take_line (&at)) != NULL;) {
    number++;
    g_strstrip (line);
    /* Two processes that begin a file at the same time both begin it. */
    if (line[0] == 0 || line[0] == '#' || g_str_equal (line, TUNED_HEADER))
      continue;
    const char *why
        = g_utf8_validate (line, -1, NULL) ? read_entry (entries, line, file) : "it is no text";
    if (why != NULL && n_bad++ == 0) {
      first_bad = number;
      first_why = why;
    }
  }
  if (n_bad == 1)
    g_warning ("%s:%u: %s; the line is skipped", file, first_bad, first_why);
  else if (n_bad > 1)
    g_warning ("%s:%u: %s; this line and %u more are skipped", file, first_bad, first_why,
               n_bad - 1);
}

/* (transfer full): all of it, with a NUL behind. */
static char *
read_text (const char *path, GError **error)
{
  g_autoptr (TinyOpenedFile) file = tiny_opened_file_new (path, error);
  const guint64 size = file != NULL ? tiny_opened_file_get_size (file) : 0;
  if (size > MAX_FILE) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
                 "%s: wanted at most %d bytes, found %" G_GUINT64_FORMAT, path, MAX_FILE, size);
    return NULL;
  }
  GBytes *bytes
      = file != NULL ? tiny_opened_file_read_bytes (file, 0, (gsize) size, error) : NULL;
  gsize n;
  return bytes != NULL ? g_bytes_unref_to_data (bytes, &n) : NULL;
}

gboolean
tuned_entries_add (GHashTable *entries, const char *file, GError **error)
{
  g_autofree char *text = read_text (file, error);
  char *at = text;
  if (text == NULL)
    return FALSE;
  if (!g_str_equal (g_strchomp (take_line (&at)), TUNED_HEADER)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT, "%s:1: wanted \"" TUNED_HEADER "\"",
                 file);
    return FALSE;
  }
  read_lines (entries, at, file);
  return TRUE;
}
