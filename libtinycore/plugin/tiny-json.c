/* SPDX-License-Identifier: MIT
 *
 * tiny-json.c: JSON files, and the members of objects by type. The text is read in json-text.c. */
#include "plugin/tiny-json.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/tiny-error.h"
#include "base/tiny-memory.h"

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
  /* One more byte shows a file that is longer than it was. */
  const gsize room = (gsize) MIN ((guint64) info.st_size, most) + 1;
  g_autofree char *text = tiny_memory_try (room, path, error);
  if (text == NULL) {
    close (fd);
    return NULL;
  }
  gsize size = 0;
  gssize got = 1;
  while (size < room && got > 0) {
    got = read (fd, text + size, room - size);
    if (got > 0)
      size += (gsize) got;
  }
  close (fd);
  if (got < 0 || size == room) {
    g_set_error (error, TINY_ERROR, got < 0 ? TINY_ERROR_IO : TINY_ERROR_FORMAT,
                 got < 0            ? "cannot be read"
                 : room == most + 1 ? "larger than %" G_GSIZE_FORMAT " bytes"
                                    : "it became longer while it was read",
                 most);
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

static char *
copy_text (const char *text, const char *key, GError **error)
{
  const gsize n = strlen (text) + 1;
  char *copy = tiny_memory_try (n, key, error);
  return copy != NULL ? memcpy (copy, text, n) : NULL;
}

char *
tiny_json_dup_text (JsonObject *object, const char *key, GError **error)
{
  const char *text = tiny_json_get_text (object, key, error);
  return text != NULL ? copy_text (text, key, error) : NULL;
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
  const guint n = array != NULL ? json_array_get_length (array) : 0;
  for (guint i = 0; i < n && (i == 0 || out->pdata[i - 1] != NULL); i++)
    g_ptr_array_add (out, copy_text (json_array_get_string_element (array, i), key, error));
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
