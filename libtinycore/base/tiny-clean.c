/* SPDX-License-Identifier: MIT
 *
 * tiny-clean.c: texts of others, made fit for messages and terminals. */
#include "base/tiny-clean.h"

#include <stdio.h>
#include <string.h>

char *
tiny_clean_text (const char *text, gsize size)
{
  if (text == NULL)
    return g_strdup ("");
  g_autofree char *valid = g_utf8_make_valid (text, (gssize) strnlen (text, size));
  GString *out = g_string_sized_new (strlen (valid));
  for (const char *c = valid; *c != 0; c = g_utf8_next_char (c)) {
    gunichar letter = g_utf8_get_char (c);
    gboolean steers = g_unichar_iscntrl (letter) || g_unichar_type (letter) == G_UNICODE_FORMAT;
    g_string_append_unichar (out, steers && letter != '\n' && letter != '\t' ? '?' : letter);
  }
  return g_string_free (out, FALSE);
}

void
tiny_clean_message (TinyMessage *self)
{
  GError *error = *self != NULL ? **self : NULL;
  if (error == NULL || g_utf8_validate (error->message, -1, NULL))
    return;
  char *valid = g_utf8_make_valid (error->message, -1);
  g_free (error->message);
  error->message = valid;
}

static void
print (const char *text)
{
  const char *charset = NULL;
  g_autofree char *clean = tiny_clean_text (text, strlen (text));
  g_autofree char *converted
      = g_get_console_charset (&charset)
            ? NULL
            : g_convert_with_fallback (clean, -1, charset, "UTF-8", "?", NULL, NULL, NULL);
  fputs (converted ? converted : clean, stderr);
  fflush (stderr);
}

void
tiny_clean_printerr (void)
{
  g_set_printerr_handler (print);
}
