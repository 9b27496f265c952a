/* SPDX-License-Identifier: MIT
 *
 * tiny-cursor.c: the words of the text form, from left to right. */
#include "ir/tiny-cursor.h"

#include <errno.h>
#include <string.h>

#include "base/tiny-error.h"
#include "base/tiny-memory.h"
#include "ir/tiny-text.h"

/* Longer than any that is written. */
enum { MAX_NAME = 4096, MAX_LIST = 8192 };

gboolean
tiny_cursor_fail (TinyCursor *self, const char *at, const char *format, ...)
{
  guint line = 1;
  const char *line_start = self->start;
  for (const char *p = self->start; p < at; p++)
    if (*p == '\n') {
      line++;
      line_start = p + 1;
    }
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  g_autofree char *valid = g_utf8_make_valid (message, -1);
  g_set_error (self->error, TINY_ERROR, TINY_ERROR_FORMAT, "%u:%u: %s", line,
               (guint) (at - line_start) + 1, valid);
  return FALSE;
}

void
tiny_cursor_skip_space (TinyCursor *self)
{
  for (;;) {
    if (self->p[0] == '/' && self->p[1] == '/')
      self->p += strcspn (self->p, "\n");
    else if (g_ascii_isspace (*self->p))
      self->p++;
    else
      return;
  }
}

gboolean
tiny_cursor_take (TinyCursor *self, char c)
{
  tiny_cursor_skip_space (self);
  if (*self->p != c)
    return FALSE;
  self->p++;
  return TRUE;
}

const char *
tiny_cursor_found (const char *at, char buffer[24])
{
  if (*at == 0)
    return "the end";
  gsize n = 1;
  while (n < 16 && (g_ascii_isalnum (at[n]) || at[n] == '_') && g_ascii_isalnum (at[0]))
    n++;
  g_snprintf (buffer, 24, "'%.*s'", (int) n, at);
  return buffer;
}

gboolean
tiny_cursor_take_adjacent (TinyCursor *self, char c)
{
  return *self->p == c && tiny_cursor_take (self, c);
}

gboolean
tiny_cursor_expect (TinyCursor *self, char c)
{
  char buffer[24];
  return tiny_cursor_take (self, c)
         || tiny_cursor_fail (self, self->p, "expected '%c', found %s", c,
                              tiny_cursor_found (self->p, buffer));
}

gsize
tiny_word_length (const char *p)
{
  gsize n = 0;
  while (g_ascii_isalnum (p[n]) || p[n] == '_')
    n++;
  return n;
}

gboolean
tiny_word_is (const char *word, gsize n, const char *text)
{
  return text != NULL && strlen (text) == n && memcmp (word, text, n) == 0;
}

gboolean
tiny_cursor_read_type (TinyCursor *self, TinyDType *out_dtype, guint *out_lanes)
{
  const char *at = self->p;
  gsize n = tiny_word_length (at);
  char name[32];
  *out_lanes = 1;
  if (n > 0 && n < sizeof name) {
    memcpy (name, at, n);
    name[n] = 0;
    self->p += n;
    if (tiny_dtype_from_string (name, out_dtype))
      return TRUE;
    char *x = strrchr (name, 'x');
    if (x != NULL && x[1] >= '1' && x[1] <= '9') {
      char *end;
      guint64 lanes = g_ascii_strtoull (x + 1, &end, 10);
      if (*end == 0 && lanes > G_MAXUINT16)
        return tiny_cursor_fail (self, at, "more than %d lanes", G_MAXUINT16);
      *x = 0;
      *out_lanes = (guint) lanes;
      if (*end == 0 && tiny_dtype_from_string (name, out_dtype))
        return TRUE;
    }
  }
  char buffer[24];
  return tiny_cursor_fail (self, at, "expected a dtype, found %s",
                           tiny_cursor_found (at, buffer));
}

gboolean
tiny_cursor_read_integer (TinyCursor *self, gint64 *out)
{
  tiny_cursor_skip_space (self);
  const char *at = self->p;
  char *end, buffer[24];
  if (!g_ascii_isdigit (at[*at == '-']))
    return tiny_cursor_fail (self, at, "expected an integer, found %s",
                             tiny_cursor_found (at, buffer));
  errno = 0;
  *out = g_ascii_strtoll (at, &end, 10);
  if (errno != 0)
    return tiny_cursor_fail (self, at, "integer beyond 64 bits");
  self->p = end;
  return TRUE;
}

gboolean
tiny_cursor_read_list (TinyCursor *self, GArray *out)
{
  if (!tiny_cursor_expect (self, '['))
    return FALSE;
  if (tiny_cursor_take (self, ']'))
    return TRUE;
  do {
    gint64 value;
    if (!tiny_cursor_read_integer (self, &value))
      return FALSE;
    if (out->len == MAX_LIST)
      return tiny_cursor_fail (self, self->p, "a list of more than %d numbers", MAX_LIST);
    g_array_append_val (out, value);
  } while (tiny_cursor_take (self, ','));
  return tiny_cursor_expect (self, ']');
}

/* At the backslash: the byte that is meant, which is not 0. */
static gboolean
read_escape (TinyCursor *self, char *out)
{
  static const char escapes[] = "n\nt\tr\r\"\"\\\\";
  const char *at = self->p, *escape = at[1] != 0 ? strchr (escapes, at[1]) : NULL;
  if (at[1] == 'x' && g_ascii_isxdigit (at[2]) && g_ascii_isxdigit (at[3])) {
    *out = (char) (g_ascii_xdigit_value (at[2]) * 16 + g_ascii_xdigit_value (at[3]));
    self->p += 4;
    return *out != 0 || tiny_cursor_fail (self, at, "a text cannot hold \\x00");
  }
  if (escape == NULL || (escape - escapes) % 2 != 0)
    return tiny_cursor_fail (self, at, "unknown escape in a text");
  *out = escape[1];
  self->p += 2;
  return TRUE;
}

gboolean
tiny_cursor_read_string (TinyCursor *self, char **out)
{
  if (!tiny_cursor_expect (self, '"'))
    return FALSE;
  const char *end = self->p;
  while (*end != '"' && *end != 0 && *end != '\n')
    end += end[0] == '\\' && end[1] != 0 ? 2 : 1;
  /* No escape is shorter than what it means. */
  g_autofree char *text = tiny_memory_try ((gsize) (end - self->p) + 1, "a text", self->error);
  gsize n = 0;
  while (text != NULL && *self->p != '"') {
    if (*self->p == 0 || *self->p == '\n')
      return tiny_cursor_fail (self, self->p, "text without an end");
    if (*self->p != '\\')
      text[n++] = *self->p++;
    else if (!read_escape (self, &text[n++]))
      return FALSE;
  }
  if (text == NULL)
    return FALSE;
  self->p++;
  text[n] = 0;
  *out = g_steal_pointer (&text);
  return TRUE;
}

/* A word, or several with dots between them. */
static gsize
name_length (const char *p)
{
  gsize n = tiny_word_length (p), more;
  while (n > 0 && p[n] == '.' && (more = tiny_word_length (p + n + 1)) > 0)
    n += more + 1;
  return n;
}

gboolean
tiny_text_is_name (const char *name)
{
  gsize n = strlen (name);
  return n > 0 && name_length (name) == n && strspn (name, "0123456789") < n;
}

gboolean
tiny_cursor_read_name (TinyCursor *self, char **out)
{
  self->p++; /* % */
  gsize n = name_length (self->p);
  if (n == 0)
    return tiny_cursor_fail (self, self->p, "a name is missing after %%");
  if (n > MAX_NAME)
    return tiny_cursor_fail (self, self->p, "a name of more than %d bytes", MAX_NAME);
  *out = g_strndup (self->p, n);
  self->p += n;
  return TRUE;
}
