/* SPDX-License-Identifier: MIT
 *
 * json-text.c: the one reader of JSON text: RFC 8259, and nothing beyond it.
 *
 * One pass, each byte once. Depth, numbers, names and the memory of what is made are bounded on the way, so that no check
 * reads a text otherwise than the parser does. Only objects are read, member by member: a caller that visits them has one
 * in memory at a time. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/tiny-error.h"
#include "base/tiny-memory.h"
#include "base/tiny-text-hash.h"
#include "plugin/tiny-json.h"

/* A number is read into memory of its own. Members are found by json-glib's hash, for which anybody can choose names. */
enum { MAX_DEPTH = 32, MAX_NUMBER = 1024, MAX_MEMBERS = 4096 };
/* The bytes that json-glib and the allocator take for each, which is what a text of small ones becomes. */
enum { VALUE_TAKES = 96, LIST_TAKES = 192, OBJECT_TAKES = 352, MEMBER_TAKES = 96 };
/* A value of the root may take that many times the bytes of the text, or the floor. */
enum { MOST_TIMES = 24, MOST_FLOOR = 32 << 20 };

typedef struct {
  const char *text, *at, *end;
  guint depth;
  gsize left; /* bytes that the value which is being read may still take */
  GError **error;
} Reader;

static gboolean fail (const Reader *self, const char *format, ...) G_GNUC_PRINTF (2, 3);

static gboolean
fail (const Reader *self, const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  *self->error = g_error_new_valist (TINY_ERROR, TINY_ERROR_FORMAT, format, arguments);
  va_end (arguments);
  return FALSE;
}

/* The text is none of JSON's where the reader is. */
static gboolean
refuse (const Reader *self, const char *wanted)
{
  gsize line = 1, column = 1;
  for (const char *at = self->text; at < self->at; at++) {
    column = *at == '\n' ? 1 : column + 1;
    line += *at == '\n';
  }
  if (self->at == self->end)
    return fail (self, "not JSON: line %zu:%zu: it ends where %s is wanted", line, column,
                 wanted);
  return fail (self, "not JSON: line %zu:%zu: “%.1s” where %s is wanted", line, column,
               (guchar) *self->at < 0x80 && g_ascii_isgraph (*self->at) ? self->at : "?",
               wanted);
}

static gboolean
take_room (Reader *self, gsize n_bytes)
{
  if (n_bytes > self->left)
    return fail (self, "what it holds up to byte %zu takes too much memory for its %zu bytes",
                 (gsize) (self->at - self->text), (gsize) (self->end - self->text));
  self->left -= n_bytes;
  return TRUE;
}

static void
skip_space (Reader *self)
{
  while (self->at < self->end && memchr (" \t\n\r", *self->at, 4) != NULL)
    self->at++;
}

/* TRUE: it was there. */
static gboolean
skip (Reader *self, char c)
{
  skip_space (self);
  const gboolean is_there = self->at < self->end && *self->at == c;
  self->at += is_there;
  return is_there;
}

/* ---- texts ---- */
/* Four hexadecimal digits, or -1. */
static int
read_unit (Reader *self)
{
  int unit = 0;
  for (guint i = 0; i < 4; i++) {
    const int digit = self->at < self->end ? g_ascii_xdigit_value (*self->at) : -1;
    if (digit < 0)
      return -1;
    unit = unit * 16 + digit;
    self->at++;
  }
  return unit;
}

/* Behind "\u"; at most 6 bytes at *@out, which is moved behind them. */
static gboolean
read_escaped_unit (Reader *self, char **out)
{
  const gsize place = (gsize) (self->at - self->text) - 2;
  int unit = read_unit (self);
  if (unit < 0)
    return refuse (self, "a hexadecimal digit");
  if (unit == 0)
    return fail (self, "a text with \\u0000 at byte %zu, which ends texts", place);
  if ((unit & 0xfc00) == 0xd800) {
    const gboolean is_pair
        = self->end - self->at >= 2 && self->at[0] == '\\' && self->at[1] == 'u';
    self->at += is_pair ? 2 : 0;
    const int low = is_pair ? read_unit (self) : -1;
    if ((low & ~0x3ff) != 0xdc00)
      return refuse (self, "the other half of a surrogate pair");
    unit = 0x10000 + ((unit & 0x3ff) << 10) + (low & 0x3ff);
  } else if ((unit & 0xfc00) == 0xdc00)
    return refuse (self, "the first half of a surrogate pair before it");
  *out += g_unichar_to_utf8 ((gunichar) unit, *out);
  return TRUE;
}

static gboolean
read_escape (Reader *self, char **out)
{
  static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
  const char c = self->at < self->end ? *self->at : '\0';
  const char *found = c != '\0' ? strchr (names, c) : NULL;
  if (found == NULL && c != 'u')
    return refuse (self, "an escape");
  self->at++;
  if (found == NULL)
    return read_escaped_unit (self, out);
  *(*out)++ = meant[found - names];
  return TRUE;
}

/* The bytes up to the quotation mark that ends the text, or to where it cannot go on. */
static gsize
measure_text (const Reader *self)
{
  const char *at = self->at;
  while (at < self->end && *at != '"' && (guchar) *at >= ' ')
    at += *at == '\\' && self->end - at > 1 ? 2 : 1;
  return (gsize) (at - self->at);
}

/* (transfer full): the text whose quotation mark is next, or NULL. */
static char *
read_text (Reader *self)
{
  if (!skip (self, '"')) {
    refuse (self, "a text in \"\"");
    return NULL;
  }
  /* No escape is shorter than what it means. */
  const gsize most = measure_text (self) + 1;
  g_autofree char *text
      = take_room (self, most) ? tiny_memory_try (most, "a text", self->error) : NULL;
  char *out = text;
  while (text != NULL) {
    const char *from = self->at;
    while (self->at < self->end && *self->at != '"' && *self->at != '\\'
           && (guchar) *self->at >= ' ')
      self->at++;
    out = (char *) memcpy (out, from, (gsize) (self->at - from)) + (self->at - from);
    if (self->at < self->end && *self->at == '"') {
      self->at++;
      *out = '\0';
      break;
    }
    if (self->at == self->end || *self->at != '\\') {
      refuse (self, "the end of a text");
      return NULL;
    }
    self->at++;
    if (!read_escape (self, &out))
      return NULL;
  }
  return g_steal_pointer (&text);
}

/* ---- numbers ---- */
static gsize
skip_digits (Reader *self)
{
  const char *from = self->at;
  while (self->at < self->end && g_ascii_isdigit (*self->at))
    self->at++;
  return (gsize) (self->at - from);
}

static gboolean
skip_one_of (Reader *self, const char *any)
{
  const gboolean is_there
      = self->at < self->end && *self->at != '\0' && strchr (any, *self->at) != NULL;
  self->at += is_there;
  return is_there;
}

static JsonNode *
read_number (Reader *self)
{
  const char *from = self->at;
  skip_one_of (self, "-");
  const char *first = self->at;
  const gsize n_whole = skip_digits (self);
  gboolean is_whole = TRUE, good = n_whole > 0 && (n_whole == 1 || *first != '0');
  if (good && skip_one_of (self, ".")) {
    is_whole = FALSE;
    good = skip_digits (self) > 0;
  }
  if (good && skip_one_of (self, "eE")) {
    is_whole = FALSE;
    skip_one_of (self, "+-");
    good = skip_digits (self) > 0;
  }
  if (!good) {
    refuse (self, "a number");
    return NULL;
  }
  if (self->at - from > MAX_NUMBER) {
    fail (self, "a number of more than %d bytes at byte %zu", MAX_NUMBER,
          (gsize) (from - self->text));
    return NULL;
  }
  g_autofree char *number = g_strndup (from, (gsize) (self->at - from));
  errno = 0;
  const gint64 whole = is_whole ? g_ascii_strtoll (number, NULL, 10) : 0;
  const gboolean is_beyond = is_whole && errno == ERANGE;
  const double real = is_whole ? 0 : g_ascii_strtod (number, NULL);
  if (is_beyond || !isfinite (real)) {
    fail (self, "the number %.40s at byte %zu is beyond all that are read", number,
          (gsize) (from - self->text));
    return NULL;
  }
  JsonNode *node = json_node_alloc ();
  return is_whole ? json_node_init_int (node, whole) : json_node_init_double (node, real);
}

/* ---- values ---- */
static JsonNode *read_value (Reader *self);

static gboolean
enter (Reader *self)
{
  self->at++;
  return ++self->depth <= MAX_DEPTH
         || fail (self, "nested deeper than %d at byte %zu", MAX_DEPTH,
                  (gsize) (self->at - self->text) - 1);
}

/* TRUE: there is another one; *@is_good is FALSE if the text is wrong. */
static gboolean
has_next (Reader *self, char last, guint n, gboolean *is_good)
{
  if (!*is_good || skip (self, last))
    return FALSE;
  if (n > 0 && !skip (self, ','))
    *is_good = refuse (self, last == ']' ? "a comma or ]" : "a comma or }");
  return *is_good;
}

static JsonNode *
read_list (Reader *self)
{
  gboolean good = enter (self) && take_room (self, LIST_TAKES);
  g_autoptr (JsonArray) out = json_array_new ();
  for (guint n = 0; has_next (self, ']', n, &good); n++) {
    JsonNode *value = read_value (self);
    good = value != NULL;
    if (good)
      json_array_add_element (out, value);
  }
  self->depth--;
  return good ? json_node_init_array (json_node_alloc (), out) : NULL;
}

/* (transfer full): the name of member @n, up to its value; NULL with an error. */
static char *
read_name (Reader *self, guint n, guint most)
{
  if (n == most) {
    fail (self, "more than %u members in one object at byte %zu", most,
          (gsize) (self->at - self->text));
    return NULL;
  }
  g_autofree char *name = take_room (self, MEMBER_TAKES) ? read_text (self) : NULL;
  if (name != NULL && !skip (self, ':')) {
    refuse (self, "a colon");
    return NULL;
  }
  return g_steal_pointer (&name);
}

/* Two members of one name make a text mean two things: some readers take the first and some the last. */
static gboolean
refuse_twice (const Reader *self, const char *name)
{
  return fail (self, "“%s” is there twice in one object", name);
}

static JsonNode *
read_object (Reader *self)
{
  gboolean good = enter (self) && take_room (self, OBJECT_TAKES);
  g_autoptr (JsonObject) out = json_object_new ();
  for (guint n = 0; has_next (self, '}', n, &good); n++) {
    g_autofree char *name = read_name (self, n, MAX_MEMBERS);
    good = name != NULL && (!json_object_has_member (out, name) || refuse_twice (self, name));
    JsonNode *value = good ? read_value (self) : NULL;
    good = value != NULL;
    if (good)
      json_object_set_member (out, name, value);
  }
  self->depth--;
  return good ? json_node_init_object (json_node_alloc (), out) : NULL;
}

static JsonNode *
read_word (Reader *self)
{
  static const struct {
    const char *text;
    gboolean is_null, is_true;
  } words[] = { { "true", FALSE, TRUE }, { "false", FALSE, FALSE }, { "null", TRUE, FALSE } };
  for (guint i = 0; i < G_N_ELEMENTS (words); i++) {
    const gsize n = strlen (words[i].text);
    if ((gsize) (self->end - self->at) < n || memcmp (self->at, words[i].text, n) != 0)
      continue;
    self->at += n;
    JsonNode *node = json_node_alloc ();
    return words[i].is_null ? json_node_init_null (node)
                            : json_node_init_boolean (node, words[i].is_true);
  }
  refuse (self, "a value");
  return NULL;
}

static JsonNode *
read_value (Reader *self)
{
  skip_space (self);
  const char c = self->at < self->end ? *self->at : '\0';
  if (!take_room (self, VALUE_TAKES))
    return NULL;
  if (c == '{')
    return read_object (self);
  if (c == '[')
    return read_list (self);
  if (c == '-' || g_ascii_isdigit (c))
    return read_number (self);
  if (c != '"')
    return read_word (self);
  g_autofree char *text = read_text (self);
  return text != NULL ? json_node_init_string (json_node_alloc (), text) : NULL;
}

/* ---- the root ---- */
static gboolean
visit_members (Reader *self, gboolean is_kept, TinyJsonVisit visit, gpointer user_data)
{
  const gsize most = MAX (MOST_FLOOR, (gsize) (self->end - self->text) * MOST_TIMES);
  self->left = most;
  gboolean good = enter (self);
  g_autoptr (GHashTable) names
      = g_hash_table_new_full (tiny_text_hash, g_str_equal, g_free, NULL);
  for (guint n = 0; has_next (self, '}', n, &good); n++) {
    self->left = is_kept ? self->left : most;
    char *name = read_name (self, n, is_kept ? MAX_MEMBERS : G_MAXUINT);
    if (name == NULL)
      return FALSE;
    if (!g_hash_table_add (names, name))
      return refuse_twice (self, g_hash_table_lookup (names, name));
    JsonNode *value = read_value (self);
    good = value != NULL && visit (name, value, user_data, self->error);
    g_clear_pointer (&value, json_node_unref);
  }
  skip_space (self);
  return good && (self->at == self->end || refuse (self, "its end"));
}

/* @is_kept: what is visited stays in memory. */
static gboolean
read_root (const char *text,
           gssize size,
           gboolean is_kept,
           TinyJsonVisit visit,
           gpointer user_data,
           GError **error)
{
  const gsize length = size < 0 ? strlen (text) : (gsize) size;
  GError *wrong = NULL;
  Reader self = { .text = text, .at = text, .end = text + length, .error = &wrong };
  if (memchr (text, 0, length) != NULL || !g_utf8_validate (text, (gssize) length, NULL))
    fail (&self, "not JSON: it is no UTF-8 text");
  else {
    skip_space (&self);
    if (self.at == self.end || *self.at != '{')
      fail (&self, "not a JSON object: it %s",
            self.at == self.end ? "is empty" : "does not begin with {");
    else
      visit_members (&self, is_kept, visit, user_data);
  }
  if (wrong == NULL)
    return TRUE;
  g_propagate_error (error, wrong);
  return FALSE;
}

gboolean
tiny_json_visit (
    const char *text, gssize size, TinyJsonVisit visit, gpointer user_data, GError **error)
{
  return read_root (text, size, FALSE, visit, user_data, error);
}

static gboolean
keep_member (const char *name,
             JsonNode *value,
             gpointer user_data,
             G_GNUC_UNUSED GError **error)
{
  json_object_set_member (user_data, name, json_node_ref (value));
  return TRUE;
}

JsonNode *
tiny_json_parse (const char *text, gssize size, GError **error)
{
  g_autoptr (JsonObject) root = json_object_new ();
  return read_root (text, size, TRUE, keep_member, root, error)
             ? json_node_init_object (json_node_alloc (), root)
             : NULL;
}
