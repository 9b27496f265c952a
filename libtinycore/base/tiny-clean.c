/* SPDX-License-Identifier: MIT
 *
 * tiny-clean.c: texts of others, made fit for messages and terminals. */
#include "base/tiny-clean.h"

#include <stdio.h>
#include <string.h>

enum { WORST = 3, CUT = 1024 }; /* bytes for a byte that is no UTF-8; of a text without room */

/* @to behind one letter; @at behind what it was in the text. */
static char *
add_letter (char *to, const char **at, const char *end)
{
  const gunichar letter = g_utf8_get_char_validated (*at, end - *at);
  const gboolean is_valid = letter < (gunichar) -2;
  const gboolean steers
      = is_valid && letter != '\n' && letter != '\t'
        && (g_unichar_iscntrl (letter) || g_unichar_type (letter) == G_UNICODE_FORMAT);
  *at += is_valid ? g_unichar_to_utf8 (letter, NULL) : 1;
  return to + g_unichar_to_utf8 (!is_valid ? 0xfffd : steers ? '?' : letter, to);
}

char *
tiny_clean_text (const char *text, gsize size)
{
  gsize n = text != NULL ? strnlen (text, size) : 0;
  char *out = n < G_MAXSSIZE / WORST ? g_try_malloc (WORST * n + 1) : NULL;
  if (out == NULL) {
    n = MIN (n, CUT);
    out = g_malloc (WORST * n + 1);
  }
  char *to = out;
  for (const char *at = text; n > 0 && at < text + n;)
    to = add_letter (to, &at, text + n);
  *to = 0;
  char *exact = g_try_realloc (out, (gsize) (to - out) + 1);
  return exact != NULL ? exact : out;
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
