/* SPDX-License-Identifier: MIT
 *
 * tiny-json.h: reading small JSON files that may be damaged or hostile.
 *
 * The text is JSON as RFC 8259 has it: no comments, no other quotation marks, no name twice in one object. Its depth and
 * the memory of what it holds are bounded while it is read. Members are read by type: one that is absent gives the
 * default, one of another type is an error that names it. */
#pragma once

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/* FALSE, with @error: no more members are wanted. */
typedef gboolean (*TinyJsonVisit) (const char *name,
                                   JsonNode *value,
                                   gpointer user_data,
                                   GError **error);
/* Calls @visit with each member of the root object of a text, one after another, none of which it keeps by itself;
 * FALSE with %TINY_ERROR_FORMAT, or what @visit says, when some have been seen already. */
gboolean tiny_json_visit (
    const char *text, gssize size, TinyJsonVisit visit, gpointer user_data, GError **error);
/* The root object of a text, or NULL with %TINY_ERROR_FORMAT. */
JsonNode *tiny_json_parse (const char *text, gssize size, GError **error);
/* As above from a file of at most @most bytes; also %TINY_ERROR_IO. */
JsonNode *tiny_json_load (const char *path, gsize most, GError **error);

/* Readers for a chain of calls: each does nothing once @error is set. */
const char *tiny_json_get_text (JsonObject *object, const char *key, GError **error);
/* (transfer full) (nullable): a copy of it; also %TINY_ERROR_OUT_OF_MEMORY. */
char *tiny_json_dup_text (JsonObject *object, const char *key, GError **error);
gint64
tiny_json_get_int (JsonObject *object, const char *key, gint64 otherwise, GError **error);
gboolean tiny_json_get_bool (JsonObject *object, const char *key, GError **error);
/* (transfer full): a list with NULL at its end, which has as many as there is memory for; also
 * %TINY_ERROR_OUT_OF_MEMORY. */
char **tiny_json_get_texts (JsonObject *object, const char *key, GError **error);
JsonObject *tiny_json_get_object (JsonObject *object, const char *key, GError **error);
JsonArray *tiny_json_get_array (JsonObject *object, const char *key, GError **error);

G_END_DECLS
