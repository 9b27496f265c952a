/* SPDX-License-Identifier: MIT
 *
 * form.c: members by name and type. */
#include "form.h"

#include "base/tiny-error.h"

static gboolean
is_of_type (JsonNode *node, GType type)
{
  if (type == G_TYPE_NONE)
    return JSON_NODE_HOLDS_OBJECT (node);
  if (type == G_TYPE_INVALID)
    return JSON_NODE_HOLDS_ARRAY (node);
  GType its = JSON_NODE_HOLDS_VALUE (node) ? json_node_get_value_type (node) : G_TYPE_INVALID;
  return its == type || (type == G_TYPE_DOUBLE && its == G_TYPE_INT64);
}

gboolean
conf_form_check_members (
    JsonObject *object, const char *where, const ConfMember *members, guint n, GError **error)
{
  for (guint i = 0; i < n; i++) {
    JsonNode *node = json_object_get_member (object, members[i].name);
    if (node == NULL ? members[i].is_optional : is_of_type (node, members[i].type))
      continue;
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT, "%s%s is %s", where, members[i].name,
                 node ? "of another type" : "missing");
    return FALSE;
  }
  return TRUE;
}

gboolean
conf_form_check_array (
    JsonObject *object, const char *name, const ConfMember *members, guint n, GError **error)
{
  const ConfMember whole = { name, G_TYPE_INVALID, TRUE };
  JsonNode *array = json_object_get_member (object, name);
  if (!conf_form_check_members (object, "", &whole, 1, error))
    return FALSE;
  for (guint i = 0; array && i < json_array_get_length (json_node_get_array (array)); i++) {
    JsonNode *node = json_array_get_element (json_node_get_array (array), i);
    g_autofree char *where = g_strdup_printf ("%s[%u].", name, i);
    if (!is_of_type (node, n > 0 ? G_TYPE_NONE : G_TYPE_STRING)) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT, "%s[%u] is of another type", name, i);
      return FALSE;
    }
    if (n > 0
        && !conf_form_check_members (json_node_get_object (node), where, members, n, error))
      return FALSE;
  }
  return TRUE;
}

gboolean
conf_form_check_word (JsonObject *object,
                      const char *name,
                      const char *const *known,
                      GError **error)
{
  const char *text = json_object_get_string_member_with_default (object, name, "");
  if (g_strv_contains (known, text))
    return TRUE;
  g_autofree char *list = g_strjoinv (", ", (char **) known);
  g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT, "%s is “%s”, none of %s", name, text,
               list);
  return FALSE;
}
