/* SPDX-License-Identifier: MIT
 *
 * tiny-json.h: reading small JSON files that may be damaged or hostile.
 *
 * Size and depth are bounded before the parser sees the text. Members are read by type: one that
 * is absent gives the default, one of another type is an error that names it. */
#pragma once

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/* The root object of a text, or NULL with %TINY_ERROR_FORMAT. */
JsonNode *tiny_json_parse (const char *text, gssize size, GError **error);
/* As above from a file of at most @most bytes; also %TINY_ERROR_IO. */
JsonNode *tiny_json_load (const char *path, gsize most, GError **error);

/* Readers for a chain of calls: each does nothing once @error is set. */
const char *tiny_json_get_text (JsonObject *object, const char *key, GError **error);
gint64
tiny_json_get_int (JsonObject *object, const char *key, gint64 otherwise, GError **error);
gboolean tiny_json_get_bool (JsonObject *object, const char *key, GError **error);
char **tiny_json_get_texts (JsonObject *object, const char *key, GError **error);
JsonObject *tiny_json_get_object (JsonObject *object, const char *key, GError **error);
JsonArray *tiny_json_get_array (JsonObject *object, const char *key, GError **error);

G_END_DECLS
