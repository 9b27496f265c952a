/* SPDX-License-Identifier: MIT
 *
 * ptx-reader.c: words, signs and numbers of a PTX text, and scopes of names. */
#include "ptx-reader.h"
#include <string.h>

const PtxTypeRow ptx_types[PTX_N_TYPES] = {
#define PTX_TYPE_ROW(name, kind, bits, lanes)                                                  \
  [PTX_##name] = { #name, PTX_KIND_##kind, bits, lanes },
  PTX_TYPES (PTX_TYPE_ROW)
};

void
ptx_reader_fail (PtxReader *reader, const char *format, ...)
{
  if (reader->error != NULL)
    return;
  va_list arguments;
  va_start (arguments, format);
  g_autofree char *text = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  reader->error = g_strdup_printf ("line %u: %s", reader->token.line, text);
  reader->at = reader->end;
  reader->token.kind = PTX_TOKEN_END;
}

static gboolean
is_letter (char c)
{
  return g_ascii_isalnum (c) || c == '_' || c == '$' || c == '%' || c == '.';
}

/* "::" is inside of a word, ":" alone ends a label. */
static const char *
end_of_word (const char *at, const char *end)
{
  while (at < end) {
    if (is_letter (*at))
      at++;
    else if (end - at > 2 && at[0] == ':' && at[1] == ':' && is_letter (at[2]))
      at += 2;
    else
      break;
  }
  return at;
}

static void
skip_space (PtxReader *reader)
{
  while (reader->at < reader->end) {
    gsize left = reader->end - reader->at;
    if (left > 1 && reader->at[0] == '/' && reader->at[1] == '/') {
      const char *line_end = memchr (reader->at, '\n', left);
      reader->at = line_end != NULL ? line_end : reader->end;
    } else if (left > 1 && reader->at[0] == '/' && reader->at[1] == '*') {
      const char *close = g_strstr_len (reader->at + 2, left - 2, "*/");
      const char *to = close != NULL ? close + 2 : reader->end;
      for (; reader->at < to; reader->at++)
        reader->line += *reader->at == '\n';
    } else if (g_ascii_isspace (*reader->at)) {
      reader->line += *reader->at++ == '\n';
    } else {
      break;
    }
  }
}

/* 0f and 0d with the bits in hexadecimal */
static gboolean
read_float_bits (PtxToken *token, const char *text)
{
  gsize n = strlen (text);
  gboolean is_single = n == 10 && g_ascii_tolower (text[1]) == 'f';
  gboolean is_double = n == 18 && g_ascii_tolower (text[1]) == 'd';
  if (text[0] != '0' || (!is_single && !is_double)
      || strspn (text + 2, "0123456789abcdefABCDEF") != n - 2)
    return FALSE;
  token->number = is_single ? PTX_SINGLE : PTX_DOUBLE;
  token->bits = g_ascii_strtoull (text + 2, NULL, 16);
  return TRUE;
}

static gboolean
read_integer (PtxToken *token, const char *text)
{
  static const char *const prefixes[] = { "0x", "0X", "0b", "0B" };
  guint base = 10, skip = 0;
  for (guint i = 0; i < G_N_ELEMENTS (prefixes); i++)
    if (g_str_has_prefix (text, prefixes[i])) {
      base = i < 2 ? 16 : 2;
      skip = 2;
    }
  if (base == 10 && text[0] == '0' && text[1] != '\0' && text[1] != 'U')
    base = 8;
  char *end;
  token->number = PTX_INTEGER;
  token->bits = g_ascii_strtoull (text + skip, &end, base);
  return end > text + skip && (*end == '\0' || (*end == 'U' && end[1] == '\0'));
}

static gboolean
read_decimal (PtxToken *token, const char *text)
{
  char *end;
  double value = g_ascii_strtod (text, &end);
  token->number = PTX_DOUBLE;
  memcpy (&token->bits, &value, sizeof value);
  return end > text && *end == '\0' && strpbrk (text, ".eE") != NULL;
}

/* The sign of an exponent belongs to a decimal number. */
static const char *
end_of_number (const PtxReader *reader)
{
  const char *end = end_of_word (reader->at, reader->end);
  gboolean is_plain
      = reader->at + 1 < end && reader->at[0] == '0' && g_ascii_isalpha (reader->at[1]);
  if (!is_plain && end < reader->end && (*end == '-' || *end == '+')
      && g_ascii_tolower (end[-1]) == 'e')
    end = end_of_word (end + 1, reader->end);
  return end;
}

static void
read_number (PtxReader *reader)
{
  PtxToken *token = &reader->token;
  const char *end = end_of_number (reader);
  char text[80];
  token->kind = PTX_TOKEN_NUMBER;
  token->n_chars = end - reader->at;
  g_strlcpy (text, reader->at, MIN (token->n_chars + 1, sizeof text));
  reader->at = end;
  if (token->n_chars >= sizeof text
      || !(read_float_bits (token, text) || read_integer (token, text)
           || read_decimal (token, text)))
    ptx_reader_fail (reader, "“%s” is no number", text);
}

void
ptx_reader_next (PtxReader *reader)
{
  skip_space (reader);
  reader->token = (PtxToken){ .text = reader->at, .line = reader->line };
  if (reader->at == reader->end)
    return;
  char c = *reader->at;
  if (g_ascii_isdigit (c)) {
    read_number (reader);
  } else if (is_letter (c)) {
    reader->token.kind = PTX_TOKEN_WORD;
    reader->at = end_of_word (reader->at, reader->end);
  } else if (c == '"') {
    const char *close = memchr (reader->at + 1, '"', reader->end - reader->at - 1);
    reader->token.kind = PTX_TOKEN_STRING;
    reader->at = close != NULL ? close + 1 : reader->end;
  } else {
    reader->token.kind = PTX_TOKEN_SIGN;
    reader->token.sign = c;
    reader->at++;
  }
  if (reader->error == NULL)
    reader->token.n_chars = reader->at - reader->token.text;
}

gboolean
ptx_reader_is_sign (const PtxReader *reader, char sign)
{
  return reader->token.kind == PTX_TOKEN_SIGN && reader->token.sign == sign;
}

gboolean
ptx_reader_is_word (const PtxReader *reader, const char *word)
{
  return reader->token.kind == PTX_TOKEN_WORD && reader->token.n_chars == strlen (word)
         && memcmp (reader->token.text, word, reader->token.n_chars) == 0;
}

gboolean
ptx_reader_take_sign (PtxReader *reader, char sign)
{
  gboolean is_there = ptx_reader_is_sign (reader, sign);
  if (is_there)
    ptx_reader_next (reader);
  return is_there;
}

gboolean
ptx_reader_take_word (PtxReader *reader, const char *word)
{
  gboolean is_there = ptx_reader_is_word (reader, word);
  if (is_there)
    ptx_reader_next (reader);
  return is_there;
}

static void
fail_at_token (PtxReader *reader, const char *wanted)
{
  if (reader->token.kind == PTX_TOKEN_END)
    ptx_reader_fail (reader, "%s is wanted, the text ends", wanted);
  else
    ptx_reader_fail (reader, "%s is wanted, “%.*s” is there", wanted,
                     (int) MIN (reader->token.n_chars, 60), reader->token.text);
}

void
ptx_reader_want (PtxReader *reader, char sign)
{
  char wanted[] = { '\'', sign, '\'', '\0' };
  if (!ptx_reader_take_sign (reader, sign))
    fail_at_token (reader, wanted);
}

const char *
ptx_reader_want_word (PtxReader *reader, const char *what)
{
  if (reader->token.kind != PTX_TOKEN_WORD) {
    fail_at_token (reader, what);
    return "";
  }
  const char *word = g_string_chunk_insert_len (reader->module->strings, reader->token.text,
                                                reader->token.n_chars);
  ptx_reader_next (reader);
  return word;
}

guint64
ptx_reader_want_integer (PtxReader *reader, const char *what, guint64 most)
{
  guint64 value = reader->token.bits;
  if (reader->token.kind != PTX_TOKEN_NUMBER || reader->token.number != PTX_INTEGER)
    fail_at_token (reader, what);
  else if (value > most)
    ptx_reader_fail (reader,
                     "%s is at most %" G_GUINT64_FORMAT ", %" G_GUINT64_FORMAT " is there",
                     what, most, value);
  else
    ptx_reader_next (reader);
  return reader->error == NULL ? value : 0;
}

PtxType
ptx_type_of (const char *name, gsize n_chars)
{
  for (PtxType type = PTX_none + 1; type < PTX_N_TYPES; type++)
    if (strlen (ptx_types[type].name) == n_chars
        && memcmp (ptx_types[type].name, name, n_chars) == 0)
      return type;
  return PTX_none;
}

/* ---- names ---- */

void
ptx_reader_open_scope (PtxReader *reader)
{
  g_ptr_array_add (reader->scopes,
                   g_hash_table_new_full (g_str_hash, g_str_equal, NULL, g_free));
  if (reader->scopes->len > PTX_MAX_DEPTH)
    ptx_reader_fail (reader, "scopes are at most %d deep", PTX_MAX_DEPTH);
}

void
ptx_reader_close_scope (PtxReader *reader)
{
  g_ptr_array_set_size (reader->scopes, reader->scopes->len - 1);
}

void
ptx_reader_name (PtxReader *reader, const char *name, const PtxName *what)
{
  GHashTable *scope = reader->scopes->pdata[reader->scopes->len - 1];
  if (!g_hash_table_insert (scope, (char *) name, g_memdup2 (what, sizeof *what)))
    ptx_reader_fail (reader, "%s is defined twice", name);
}

guint32
ptx_reader_entry (PtxReader *reader, PtxEntry what, guint dimension, guint64 value)
{
  GArray *entries = reader->function->entries;
  for (guint i = 0; i < entries->len; i++) {
    const PtxEntryValue *entry = &g_array_index (entries, PtxEntryValue, i);
    if (entry->what == what && entry->dimension == dimension && entry->value == value)
      return entry->index;
  }
  PtxEntryValue entry = { reader->function->n_registers++, what, dimension, value };
  g_array_append_val (entries, entry);
  return entry.index;
}

/* name, what it holds, bits, how many dimensions */
static const struct {
  const char *name;
  PtxEntry what;
  guint8 bits, n_dimensions;
} specials[] = {
  { "%tid", PTX_ENTRY_TID, 32, 3 },
  { "%ntid", PTX_ENTRY_NTID, 32, 3 },
  { "%ctaid", PTX_ENTRY_CTAID, 32, 3 },
  { "%nctaid", PTX_ENTRY_NCTAID, 32, 3 },
  { "%laneid", PTX_ENTRY_LANEID, 32, 0 },
  { "%warpid", PTX_ENTRY_WARPID, 32, 0 },
  { "%nwarpid", PTX_ENTRY_NWARPID, 32, 0 },
  { "%lanemask_eq", PTX_ENTRY_LANEMASK_EQ, 32, 0 },
  { "%lanemask_lt", PTX_ENTRY_LANEMASK_LT, 32, 0 },
  { "%lanemask_le", PTX_ENTRY_LANEMASK_LE, 32, 0 },
  { "%lanemask_gt", PTX_ENTRY_LANEMASK_GT, 32, 0 },
  { "%lanemask_ge", PTX_ENTRY_LANEMASK_GE, 32, 0 },
  { "%smid", PTX_ENTRY_SMID, 32, 0 },
  { "%nsmid", PTX_ENTRY_NSMID, 32, 0 },
  { "%gridid", PTX_ENTRY_GRIDID, 64, 0 },
  { "%clock", PTX_ENTRY_CLOCK, 32, 0 },
  { "%clock64", PTX_ENTRY_CLOCK, 64, 0 },
  { "%globaltimer", PTX_ENTRY_CLOCK, 64, 0 },
  { "%dynamic_smem_size", PTX_ENTRY_DYNAMIC_SIZE, 32, 0 },
  { "%cluster_ctaid", PTX_ENTRY_ZERO, 32, 3 },
  { "%cluster_ctarank", PTX_ENTRY_ZERO, 32, 0 },
  { "%cluster_nctaid", PTX_ENTRY_ONE, 32, 3 },
  { "%cluster_nctarank", PTX_ENTRY_ONE, 32, 0 },
};

static gboolean
find_special (PtxReader *reader, const char *name, PtxName *out_name)
{
  gsize n = strcspn (name, ".");
  guint dimension = name[n] == '.' && name[n + 1] != '\0' && name[n + 2] == '\0'
                        ? (guint) (name[n + 1] - 'x')
                        : 3;
  for (guint i = 0; i < G_N_ELEMENTS (specials); i++) {
    gboolean is_right = specials[i].n_dimensions == 0 ? name[n] == '\0' : dimension < 3;
    if (is_right && strlen (specials[i].name) == n && memcmp (specials[i].name, name, n) == 0) {
      guint32 index = ptx_reader_entry (reader, specials[i].what,
                                        specials[i].n_dimensions ? dimension : 0, 0);
      *out_name = (PtxName){ .kind = PTX_NAME_ENTRY, .index = index, .bits = specials[i].bits };
      return TRUE;
    }
  }
  return FALSE;
}

/* "%r12" of ".reg .b32 %r<20>": kept under its prefix */
static gboolean
find_numbered (GHashTable *scope, const char *name, PtxName *out_name)
{
  gsize n = strlen (name), digits = n;
  while (digits > 0 && g_ascii_isdigit (name[digits - 1]))
    digits--;
  if (digits == n || n - digits > 6 || (name[digits] == '0' && n - digits > 1))
    return FALSE;
  g_autofree char *prefix = g_strdup_printf ("%.*s<", (int) digits, name);
  const PtxName *found = g_hash_table_lookup (scope, prefix);
  guint64 number = g_ascii_strtoull (name + digits, NULL, 10);
  if (found == NULL || number >= found->value)
    return FALSE;
  *out_name = *found;
  out_name->index += number;
  return TRUE;
}

gboolean
ptx_reader_find (PtxReader *reader, const char *text, gsize n_chars, PtxName *out_name)
{
  g_autofree char *name = g_strndup (text, n_chars);
  for (guint i = reader->scopes->len; i-- > 0;) {
    const PtxName *found = g_hash_table_lookup (reader->scopes->pdata[i], name);
    if (found != NULL)
      *out_name = *found;
    if (found != NULL && found->kind == PTX_NAME_VALUE && found->space == PTX_SHARED
        && reader->function != NULL)
      *out_name
          = (PtxName){ .kind = PTX_NAME_ENTRY,
                       .bits = 64,
                       .index = ptx_reader_entry (reader, PTX_ENTRY_DYNAMIC_SHARED, 0, 0) };
    if (found != NULL || find_numbered (reader->scopes->pdata[i], name, out_name))
      return TRUE;
  }
  return reader->function != NULL && find_special (reader, name, out_name);
}
