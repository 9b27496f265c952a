/* SPDX-License-Identifier: MIT
 *
 * tiny-json.c: reading small JSON files that may be damaged or hostile. */
#include "plugin/tiny-json.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/tiny-error.h"

enum { MAX_DEPTH = 32 };

/* Of what is beyond its types the parser makes another number. @out_n: how long it is. */
static gboolean
check_number (const char *text, gsize size, gsize at, gsize *out_n, GError **error)
{
  gsize n = 0;
  while (at + n < size && strchr ("+-.0123456789eE", text[at + n]) != NULL)
    n++;
  g_autofree char *number = g_strndup (text + at, n);
  const gboolean is_whole = strpbrk (number, ".eE") == NULL;
  *out_n = n;
  errno = 0;
  if (is_whole)
    g_ascii_strtoll (number, NULL, 10);
  if (is_whole ? errno != ERANGE : isfinite (g_ascii_strtod (number, NULL)))
    return TRUE;
  g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
               "the number %.40s at byte %" G_GSIZE_FORMAT " is beyond all that are read",
               number, at);
  return FALSE;
}

/* The parser recurses, so a text of brackets could exhaust its stack; a text that a NUL is written in it
 * would cut off there. @out_n_members: how many members its objects have together. */
static gboolean
check_tokens (const char *text, gsize size, gsize *out_n_members, GError **error)
{
  guint depth = 0;
  gboolean in_string = FALSE;
  *out_n_members = 0;
  for (gsize i = 0; i < size; i++) {
    char c = text[i];
    gsize n = 0;
    if (in_string && c == '\\') {
      if (size - i >= 6 && strncmp (text + i, "\\u0000", 6) == 0) {
        g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
                     "a text with \\u0000 at byte %" G_GSIZE_FORMAT ", which ends texts", i);
        return FALSE;
      }
      i++;
    } else if (c == '"')
      in_string = !in_string;
    else if (!in_string && (g_ascii_isdigit (c) || c == '-')) {
      if (!check_number (text, size, i, &n, error))
        return FALSE;
      i += n - 1;
    } else if (!in_string && (c == '[' || c == '{') && ++depth > MAX_DEPTH) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
                   "nested deeper than %d at byte %" G_GSIZE_FORMAT, MAX_DEPTH, i);
      return FALSE;
    } else if (!in_string && (c == ']' || c == '}') && depth > 0)
      depth--;
    else
      *out_n_members += !in_string && c == ':';
  }
  return TRUE;
}

/* How many members are left of those that the text has. */
static gsize
count_members (JsonNode *node)
{
  gsize n = 0;
  if (JSON_NODE_HOLDS_ARRAY (node)) {
    JsonArray *array = json_node_get_array (node);
    for (guint i = 0; i < json_array_get_length (array); i++)
      n += count_members (json_array_get_element (array, i));
  } else if (JSON_NODE_HOLDS_OBJECT (node)) {
    JsonObjectIter iter;
    JsonNode *value;
    json_object_iter_init (&iter, json_node_get_object (node));
    for (; json_object_iter_next (&iter, NULL, &value); n++)
      n += count_members (value);
  }
  return n;
}

/* What the parser has seen: how many members of each object, and a name that one has twice. */
typedef struct {
  GHashTable *n_members;
  char *twice;
} Seen;

static void
see_member (G_GNUC_UNUSED JsonParser *parser,
            JsonObject *object,
            const char *name,
            gpointer data)
{
  Seen *seen = data;
  guint n = GPOINTER_TO_UINT (g_hash_table_lookup (seen->n_members, object)) + 1;
  g_hash_table_insert (seen->n_members, object, GUINT_TO_POINTER (n));
  if (n > json_object_get_size (object) && seen->twice == NULL)
    seen->twice = g_strdup (name);
}

/* The parser keeps the later one of two; others keep the first, so that a text means two things. */
static gboolean
check_names (const char *text, gsize length, GError **error)
{
  Seen seen = { .n_members = g_hash_table_new (NULL, NULL) };
  g_autoptr (JsonParser) parser = json_parser_new ();
  g_signal_connect (parser, "object-member", G_CALLBACK (see_member), &seen);
  json_parser_load_from_data (parser, text, (gssize) length, NULL);
  const gboolean is_good = seen.twice == NULL;
  if (!is_good)
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT, "“%s” is there twice in one object",
                 seen.twice);
  g_hash_table_unref (seen.n_members);
  g_free (seen.twice);
  return is_good;
}

JsonNode *
tiny_json_parse (const char *text, gssize size, GError **error)
{
  gsize length = size < 0 ? strlen (text) : (gsize) size, n_members;
  g_autoptr (GError) why = NULL;
  if (memchr (text, 0, length) != NULL || !g_utf8_validate (text, (gssize) length, NULL)) {
    g_set_error_literal (error, TINY_ERROR, TINY_ERROR_FORMAT, "not JSON: it is no UTF-8 text");
    return NULL;
  }
  if (!check_tokens (text, length, &n_members, error))
    return NULL;
  g_autoptr (JsonParser) parser = json_parser_new_immutable ();
  if (!json_parser_load_from_data (parser, text, (gssize) length, &why)) {
    gboolean has_place
        = g_str_has_prefix (why->message, "<data>:"); /* "<data>:LINE:COLUMN: …" */
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT, "not JSON: %s%s",
                 has_place ? "line " : "",
                 has_place ? why->message + strlen ("<data>:") : why->message);
    return NULL;
  }
  JsonNode *root = json_parser_get_root (parser);
  if (root != NULL && count_members (root) != n_members && !check_names (text, length, error))
    return NULL;
  if (root == NULL || !JSON_NODE_HOLDS_OBJECT (root)) {
    g_set_error_literal (error, TINY_ERROR, TINY_ERROR_FORMAT, "not a JSON object");
    return NULL;
  }
  return json_node_ref (root);
}

JsonNode *
tiny_json_load (const char *path, gsize most, GError **error)
{
  struct stat info;
  int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0 || fstat (fd, &info) < 0 || !S_ISREG (info.st_mode)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_IO, "cannot be read: %s",
                 fd < 0 ? g_strerror (errno) : "it is no file");
    if (fd >= 0)
      close (fd);
    return NULL;
  }
  g_autofree char *text = g_malloc (most + 1);
  gsize size = 0;
  gssize got = 1;
  while (size <= most && got > 0) {
    got = read (fd, text + size, most + 1 - size);
    if (got > 0)
      size += (gsize) got;
  }
  close (fd);
  if (got < 0 || size > most) {
    g_set_error (error, TINY_ERROR, got < 0 ? TINY_ERROR_IO : TINY_ERROR_FORMAT,
                 got < 0 ? "cannot be read" : "larger than %" G_GSIZE_FORMAT " bytes", most);
    return NULL;
  }
  return tiny_json_parse (text, (gssize) size, error);
}

/* ---- members ---- */
static JsonNode *
find (JsonObject *object,
      const char *key,
      const char *wanted,
      gboolean fits (JsonNode *),
      GError **error)
{
  JsonNode *node = object ? json_object_get_member (object, key) : NULL;
  if (node == NULL || JSON_NODE_HOLDS_NULL (node) || (error != NULL && *error != NULL))
    return NULL;
  if (fits (node))
    return node;
  g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT, "“%s” is not %s", key, wanted);
  return NULL;
}

static gboolean
is_text (JsonNode *node)
{
  return JSON_NODE_HOLDS_VALUE (node) && json_node_get_value_type (node) == G_TYPE_STRING;
}

static gboolean
is_int (JsonNode *node)
{
  return JSON_NODE_HOLDS_VALUE (node) && json_node_get_value_type (node) == G_TYPE_INT64;
}

static gboolean
is_bool (JsonNode *node)
{
  return JSON_NODE_HOLDS_VALUE (node) && json_node_get_value_type (node) == G_TYPE_BOOLEAN;
}

static gboolean
is_array (JsonNode *node)
{
  return JSON_NODE_HOLDS_ARRAY (node);
}

static gboolean
is_object (JsonNode *node)
{
  return JSON_NODE_HOLDS_OBJECT (node);
}

static gboolean
is_texts (JsonNode *node)
{
  if (!is_array (node))
    return FALSE;
  JsonArray *array = json_node_get_array (node);
  for (guint i = 0; i < json_array_get_length (array); i++)
    if (!is_text (json_array_get_element (array, i)))
      return FALSE;
  return TRUE;
}

const char *
tiny_json_get_text (JsonObject *object, const char *key, GError **error)
{
  JsonNode *node = find (object, key, "a text", is_text, error);
  return node ? json_node_get_string (node) : NULL;
}

gint64
tiny_json_get_int (JsonObject *object, const char *key, gint64 otherwise, GError **error)
{
  JsonNode *node = find (object, key, "a whole number", is_int, error);
  return node ? json_node_get_int (node) : otherwise;
}

gboolean
tiny_json_get_bool (JsonObject *object, const char *key, GError **error)
{
  JsonNode *node = find (object, key, "true or false", is_bool, error);
  return node != NULL && json_node_get_boolean (node);
}

char **
tiny_json_get_texts (JsonObject *object, const char *key, GError **error)
{
  JsonNode *node = find (object, key, "a list of texts", is_texts, error);
  GPtrArray *out = g_ptr_array_new ();
  JsonArray *array = node ? json_node_get_array (node) : NULL;
  for (guint i = 0; array != NULL && i < json_array_get_length (array); i++)
    g_ptr_array_add (out, g_strdup (json_array_get_string_element (array, i)));
  g_ptr_array_add (out, NULL);
  return (char **) g_ptr_array_free (out, FALSE);
}

JsonObject *
tiny_json_get_object (JsonObject *object, const char *key, GError **error)
{
  JsonNode *node = find (object, key, "an object", is_object, error);
  return node ? json_node_get_object (node) : NULL;
}

JsonArray *
tiny_json_get_array (JsonObject *object, const char *key, GError **error)
{
  JsonNode *node = find (object, key, "a list", is_array, error);
  return node ? json_node_get_array (node) : NULL;
}
