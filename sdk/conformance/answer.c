/* SPDX-License-Identifier: MIT
 *
 * answer.c: a table of the answers, a row for each member; serve.c and trial.c write what is read here. */
#include "answer.h"

#include <string.h>

#include "base/tiny-error.h"
#include "plugin/tiny-json.h"
#include "conformance.h"
#include "form.h"
#include "ladder.h"

#define CHECK_MEMBERS(object, where, members, error)                                           \
  conf_form_check_members (object, where, members, G_N_ELEMENTS (members), error)

static gboolean
fail (GError **error, const char *text)
{
  g_set_error_literal (error, TINY_ERROR, TINY_ERROR_FORMAT, text);
  return FALSE;
}

static gboolean
is_within (JsonObject *object, const char *name, gint64 most, GError **error)
{
  const gint64 value = json_object_get_int_member (object, name);
  if (value >= 0 && value <= most)
    return TRUE;
  g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
               "%s is %" G_GINT64_FORMAT ", which is not from 0 to %" G_GINT64_FORMAT, name,
               value, most);
  return FALSE;
}

/* "group/name", as conf_list_add() makes it. */
static gboolean
check_name (JsonObject *object, GError **error)
{
  const char *name = json_object_get_string_member (object, "name");
  const gsize length = strlen (name);
  gboolean is_good = length <= CONF_MAX_NAME && name[0] != '/' && strchr (name, '/') != NULL;
  for (gsize i = 0; i < length && is_good; i++)
    is_good = (guchar) name[i] > ' ' && name[i] != 0x7f;
  return is_good || fail (error, "name is none of a case");
}

/* ---- a row for each answer ---- */
typedef gboolean (*Check) (JsonObject *object, GError **error);

/* A worker that has not opened the subject tells nothing. */
static gboolean
check_ready (JsonObject *object, GError **error)
{
  static const ConfMember members[] = {
    { "name", G_TYPE_STRING, FALSE },
    { "vendor", G_TYPE_STRING, FALSE },
    { "version", G_TYPE_STRING, FALSE },
    { "device", G_TYPE_STRING, FALSE },
    { "id", G_TYPE_STRING, FALSE },
    { "title", G_TYPE_STRING, FALSE },
    { "arch", G_TYPE_STRING, FALSE },
    { "renderer", G_TYPE_STRING, FALSE },
    { "only_claims", G_TYPE_BOOLEAN, FALSE },
    { "memory_bytes", G_TYPE_INT64, FALSE },
    { "device_flags", G_TYPE_INT64, FALSE },
    { "target_flags", G_TYPE_INT64, FALSE },
    { "dtypes_storage", G_TYPE_INT64, FALSE },
    { "dtypes_compute", G_TYPE_INT64, FALSE },
    { "ops", G_TYPE_INVALID, FALSE },
    { "has_reference", G_TYPE_BOOLEAN, FALSE },
  };
  if (json_object_get_size (object) == 0)
    return TRUE;
  if (!CHECK_MEMBERS (object, "", members, error))
    return FALSE;
  JsonArray *ops = json_object_get_array_member (object, "ops");
  gboolean is_good = json_array_get_length (ops) == TINY_N_DTYPES;
  for (guint i = 0; i < json_array_get_length (ops) && is_good; i++) {
    JsonNode *node = json_array_get_element (ops, i);
    is_good = JSON_NODE_HOLDS_VALUE (node) && json_node_get_value_type (node) == G_TYPE_INT64;
  }
  return is_good || fail (error, "ops is no list of a number for each dtype");
}

static gboolean
check_case (JsonObject *object, GError **error)
{
  static const ConfMember members[] = { { "name", G_TYPE_STRING, FALSE },
                                        { "level", G_TYPE_INT64, FALSE },
                                        { "flags", G_TYPE_INT64, FALSE },
                                        { "seconds", G_TYPE_INT64, FALSE } };
  const gint64 flags = CONF_RECORD | CONF_ALONE | CONF_FRESH;
  return CHECK_MEMBERS (object, "", members, error) && check_name (object, error)
         && is_within (object, "level", CONF_N_LEVELS - 1, error)
         && is_within (object, "flags", flags, error)
         && is_within (object, "seconds", CONF_MAX_SECONDS, error);
}

static gboolean
check_absent (JsonObject *object, GError **error)
{
  static const ConfMember members[]
      = { { "name", G_TYPE_STRING, FALSE }, { "reason", G_TYPE_STRING, FALSE } };
  return CHECK_MEMBERS (object, "", members, error);
}

/* A result with one of @outcomes, which a worker tells or the run that heard its end. */
static gboolean
check_outcome (JsonObject *object, const char *const *outcomes, GError **error)
{
  static const ConfMember members[] = { { "name", G_TYPE_STRING, FALSE },
                                        { "outcome", G_TYPE_STRING, FALSE },
                                        { "us", G_TYPE_INT64, TRUE },
                                        { "stack", G_TYPE_STRING, TRUE },
                                        { "said", G_TYPE_STRING, TRUE } };
  static const ConfMember records[] = { { "what", G_TYPE_STRING, FALSE },
                                        { "value", G_TYPE_DOUBLE, FALSE },
                                        { "unit", G_TYPE_STRING, FALSE } };
  static const ConfMember errors[] = { { "op", G_TYPE_INT64, FALSE },
                                       { "dtype", G_TYPE_INT64, FALSE },
                                       { "unit", G_TYPE_STRING, FALSE },
                                       { "worst", G_TYPE_DOUBLE, FALSE },
                                       { "most", G_TYPE_DOUBLE, FALSE } };
  static const ConfMember files[]
      = { { "suffix", G_TYPE_STRING, FALSE }, { "text", G_TYPE_STRING, FALSE } };
  return CHECK_MEMBERS (object, "", members, error)
         && conf_form_check_word (object, "outcome", outcomes, error)
         && (!json_object_has_member (object, "us")
             || is_within (object, "us", G_MAXINT64, error))
         && conf_form_check_array (object, "messages", NULL, 0, error)
         && conf_form_check_array (object, "records", records, G_N_ELEMENTS (records), error)
         && conf_form_check_array (object, "errors", errors, G_N_ELEMENTS (errors), error)
         && conf_form_check_array (object, "files", files, G_N_ELEMENTS (files), error);
}

static gboolean
check_result (JsonObject *object, GError **error)
{
  static const char *const outcomes[] = { "passed", "failed", "recorded", NULL };
  static const ConfMember time[] = { { "us", G_TYPE_INT64, FALSE } };
  return CHECK_MEMBERS (object, "", time, error) && check_outcome (object, outcomes, error);
}

static gboolean
check_error (JsonObject *object, GError **error)
{
  static const ConfMember members[]
      = { { "text", G_TYPE_STRING, FALSE }, { "code", G_TYPE_INT64, FALSE } };
  return CHECK_MEMBERS (object, "", members, error);
}

static gboolean
check_rung (JsonObject *object, GError **error)
{
  return is_within (object, "rung", CONF_N_RUNGS - 1, error);
}

static const struct {
  ConfMember member;
  Check check; /* of the member's object, or where it is none of the answer */
} answers[] = {
  { { "ready", G_TYPE_NONE, FALSE }, check_ready },
  { { "case", G_TYPE_NONE, FALSE }, check_case },
  { { "absent", G_TYPE_NONE, FALSE }, check_absent },
  { { "end", G_TYPE_INT64, FALSE }, NULL },
  { { "result", G_TYPE_NONE, FALSE }, check_result },
  { { "error", G_TYPE_NONE, FALSE }, check_error },
  { { "rung", G_TYPE_INT64, FALSE }, check_rung },
  { { "gap", G_TYPE_STRING, FALSE }, NULL },
  { { "top", G_TYPE_INT64, FALSE }, NULL },
};

static gboolean
check (JsonObject *object, GError **error)
{
  for (guint i = 0; i < G_N_ELEMENTS (answers); i++) {
    const ConfMember *member = &answers[i].member;
    if (!json_object_has_member (object, member->name))
      continue;
    if (json_object_get_size (object) != 1)
      return fail (error, "it is several answers in one");
    if (!conf_form_check_members (object, "", member, 1, error))
      return FALSE;
    if (answers[i].check == NULL)
      return TRUE;
    JsonObject *inner = member->type == G_TYPE_NONE
                            ? json_object_get_object_member (object, member->name)
                            : object;
    g_autofree char *where = g_strdup_printf ("%s: ", member->name);
    if (answers[i].check (inner, error))
      return TRUE;
    g_prefix_error_literal (error, where);
    return FALSE;
  }
  return fail (error, "no worker answers that");
}

JsonNode *
conf_answer_parse (const char *line, gsize size, GError **error)
{
  g_autoptr (JsonNode) node = tiny_json_parse (line, (gssize) size, error);
  if (node == NULL || !check (json_node_get_object (node), error))
    return NULL;
  return g_steal_pointer (&node);
}

JsonNode *
conf_answer_parse_kept (const char *line, gsize size, GError **error)
{
  static const char *const outcomes[]
      = { "passed", "failed", "recorded", "crashed", "ended", "hung", NULL };
  g_autoptr (JsonNode) node = tiny_json_parse (line, (gssize) size, error);
  JsonObject *object = node != NULL ? json_node_get_object (node) : NULL;
  if (object == NULL || !check_outcome (object, outcomes, error))
    return NULL;
  json_object_remove_member (object, "expectation"); /* which this run's file says */
  return g_steal_pointer (&node);
}
