/* SPDX-License-Identifier: MIT
 *
 * tiny-device-spec.c: the grammar of DEV=, as a pure function.
 *
 * A cursor walks over the text; every piece ends at one of a set of characters. */
#include "plugin/tiny-device-spec.h"

#include <string.h>

#include "base/tiny-error.h"

typedef struct {
  const char *text, *at;
  GError **error;
} Parser;

static gboolean
fail_at (Parser *parser, const char *where, const char *why)
{
  glong column = g_utf8_pointer_to_offset (parser->text, where);
  g_set_error (parser->error, TINY_ERROR, TINY_ERROR_INVALID,
               "DEV: %s at character %ld\n  %s\n  %*s^", why, column + 1, parser->text,
               (int) column, "");
  return FALSE;
}

static char *
take_until (Parser *parser, const char *ends)
{
  gsize length = strcspn (parser->at, ends);
  char *out = g_strndup (parser->at, length);
  parser->at += length;
  return out;
}

static gboolean
is_word (const char *text)
{
  for (; *text != 0; text++)
    if (!g_ascii_isalnum (*text) && *text != '_' && *text != '-')
      return FALSE;
  return TRUE;
}

/* NAME or MODE+NAME. */
static gboolean
parse_name (Parser *parser, TinyDeviceTarget *target)
{
  const char *start = parser->at;
  target->name = take_until (parser, ":|;?+");
  if (*parser->at == '+') {
    target->mode = g_steal_pointer (&target->name);
    if (target->mode[0] == 0 || !is_word (target->mode))
      return fail_at (parser, start, "a mode or interface name is missing before “+”");
    start = ++parser->at;
    target->name = take_until (parser, ":|;?");
  }
  if (target->name[0] == 0)
    return fail_at (parser, start, "the name of a backend is missing");
  for (guint i = 0; target->name[i] != 0; i++)
    if (!g_ascii_isalnum (target->name[i]) && target->name[i] != '_' && target->name[i] != '-')
      return fail_at (parser, start + i,
                      "a backend's name has letters, digits, “-” and “_” only");
  return TRUE;
}

static gboolean
read_number (const char **at, guint *out)
{
  guint64 value = 0;
  const char *start = *at;
  for (; g_ascii_isdigit (**at) && *at - start < 6; (*at)++)
    value = value * 10 + (guint64) (**at - '0');
  *out = (guint) value;
  return *at > start;
}

/* Whether @field is a selector; if so, it is stored. A wrong range is an error. */
static gboolean
parse_selector (Parser *parser, const char *field, TinyDeviceTarget *target, gboolean *out_is)
{
  const char *at = field;
  *out_is = FALSE;
  if (g_str_equal (field, "*")) {
    target->select = TINY_SELECT_ALL;
    *out_is = TRUE;
    return TRUE;
  }
  if (!read_number (&at, &target->first))
    return TRUE;
  target->last = target->first;
  if (*at == '-' && g_ascii_isdigit (at[1])) {
    at++;
    read_number (&at, &target->last);
  }
  if (*at != 0)
    return g_ascii_isdigit (*at) ? fail_at (parser, parser->at, "an index is too large") : TRUE;
  if (target->last < target->first)
    return fail_at (parser, parser->at, "a range ends before it begins");
  target->select = TINY_SELECT_RANGE;
  *out_is = TRUE;
  return TRUE;
}

/* "@" ID, which may have colons of its own and ends at a double one. */
static gboolean
parse_id (Parser *parser, TinyDeviceTarget *target)
{
  const char *start = ++parser->at;
  gsize length = strcspn (start, "|;?");
  const char *end = g_strstr_len (start, (gssize) length, "::");
  if (end != NULL)
    length = (gsize) (end - start);
  if (length == 0)
    return fail_at (parser, start, "an identifier is missing after “@”");
  target->select = TINY_SELECT_ID;
  target->id = g_strndup (start, length);
  parser->at = start + length;
  if (end != NULL)
    parser->at++; /* on to the second colon, which opens the renderer */
  return TRUE;
}

static gboolean
parse_fields (Parser *parser, TinyDeviceTarget *target)
{
  gboolean first = TRUE;
  while (*parser->at == ':') {
    parser->at++;
    if (first && *parser->at == '@') {
      if (!parse_id (parser, target))
        return FALSE;
      first = FALSE;
      continue;
    }
    const char *start = parser->at;
    g_autofree char *field = g_strndup (start, strcspn (start, ":|;?"));
    gboolean is_selector = FALSE;
    if (first && !parse_selector (parser, field, target, &is_selector))
      return FALSE;
    first = FALSE;
    parser->at = start + strlen (field);
    if (is_selector)
      continue;
    if (target->n_fields == G_N_ELEMENTS (target->fields))
      return fail_at (parser, start - 1, "there is one field too many");
    target->fields[target->n_fields++] = g_steal_pointer (&field);
  }
  return TRUE;
}

static gboolean
parse_options (Parser *parser, TinyDeviceTarget *target)
{
  g_autoptr (GPtrArray) options = g_ptr_array_new_with_free_func (g_free);
  while (*parser->at == '?' || *parser->at == '&') {
    const char *start = ++parser->at;
    char *option = take_until (parser, "&|;");
    g_ptr_array_add (options, option);
    const char *equals = strchr (option, '=');
    if (equals == NULL || equals == option)
      return fail_at (parser, start, "an option must read key=value");
  }
  if (options->len == 0)
    return TRUE;
  g_ptr_array_add (options, NULL);
  target->options = g_strdupv ((char **) options->pdata);
  return TRUE;
}

static void
target_free (gpointer data)
{
  TinyDeviceTarget *self = data;
  g_free (self->mode);
  g_free (self->name);
  g_free (self->id);
  for (guint i = 0; i < G_N_ELEMENTS (self->fields); i++)
    g_free (self->fields[i]);
  g_strfreev (self->options);
  g_free (self->text);
  g_free (self);
}

static gboolean
parse_target (Parser *parser, GPtrArray *chain)
{
  const char *start = parser->at;
  TinyDeviceTarget *target = g_new0 (TinyDeviceTarget, 1);
  g_ptr_array_add (chain, target);
  if (!parse_name (parser, target) || !parse_fields (parser, target)
      || !parse_options (parser, target))
    return FALSE;
  target->text = g_strndup (start, (gsize) (parser->at - start));
  return TRUE;
}

static gboolean
parse_all (Parser *parser, TinyDeviceSpec *spec)
{
  for (;;) {
    GPtrArray *chain = g_ptr_array_new_with_free_func (target_free);
    g_ptr_array_add (spec->chains, chain);
    while (parse_target (parser, chain) && *parser->at == '|')
      parser->at++;
    TinyDeviceTarget *last = chain->pdata[chain->len - 1];
    if (last->text == NULL)
      return FALSE;
    if (*parser->at == 0)
      return TRUE;
    if (*parser->at != ';')
      return fail_at (parser, parser->at, "this does not belong here");
    parser->at++;
  }
}

TinyDeviceSpec *
tiny_device_spec_parse (const char *text, GError **error)
{
  Parser parser = { text, text, error };
  g_autoptr (TinyDeviceSpec) spec = g_new0 (TinyDeviceSpec, 1);
  spec->chains = g_ptr_array_new_with_free_func ((GDestroyNotify) g_ptr_array_unref);
  if (!g_utf8_validate (text, -1, NULL)) {
    g_set_error_literal (error, TINY_ERROR, TINY_ERROR_INVALID, "DEV: the text is no UTF-8");
    return NULL;
  }
  if (g_ascii_strcasecmp (text, "help") == 0 || g_str_equal (text, "?"))
    spec->is_help = TRUE;
  else if (!parse_all (&parser, spec))
    return NULL;
  return g_steal_pointer (&spec);
}

void
tiny_device_spec_free (TinyDeviceSpec *self)
{
  if (self == NULL)
    return;
  g_ptr_array_unref (self->chains);
  g_free (self);
}
