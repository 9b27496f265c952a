/* SPDX-License-Identifier: MIT
 *
 * expect.c: failures that are known. */
#include "expect.h"

#include <stdio.h>
#include <string.h>

#include "base/tiny-error.h"
#include "plugin/tiny-json.h"

enum { MAX_BYTES = 1 << 20, MAX_DAYS = 366 };

typedef struct {
  char *pattern, *reason, *link, *expires;
  gboolean is_expired;
} Entry;

struct ConfExpect {
  char *path;
  GPtrArray *entries; /* of Entry */
};

static void
entry_free (gpointer data)
{
  Entry *self = data;
  g_free (self->pattern);
  g_free (self->reason);
  g_free (self->link);
  g_free (self->expires);
  g_free (self);
}

void
conf_expect_free (ConfExpect *self)
{
  if (self == NULL)
    return;
  g_ptr_array_unref (self->entries);
  g_free (self->path);
  g_free (self);
}

/* ---- reading ---- */
/* "2027-03-31" */
static gboolean
read_date (const char *text, GDate *out)
{
  guint year, month, day;
  char rest;
  if (strlen (text) != 10 || sscanf (text, "%4u-%2u-%2u%c", &year, &month, &day, &rest) != 3
      || !g_date_valid_dmy ((GDateDay) day, (GDateMonth) month, (GDateYear) year))
    return FALSE;
  g_date_clear (out, 1);
  g_date_set_dmy (out, (GDateDay) day, (GDateMonth) month, (GDateYear) year);
  return TRUE;
}

/* What is wrong with it, or NULL. */
static const char *
judge (Entry *entry)
{
  GDate expires, today;
  g_autoptr (GDateTime) now = g_date_time_new_now_utc ();
  g_date_clear (&today, 1);
  g_date_set_dmy (&today, (GDateDay) g_date_time_get_day_of_month (now),
                  (GDateMonth) g_date_time_get_month (now),
                  (GDateYear) g_date_time_get_year (now));
  if (entry->pattern[0] == 0)
    return "“case” is missing";
  if (strspn (entry->reason, " \t\n") == strlen (entry->reason))
    return "“reason” is missing";
  if (!g_str_has_prefix (entry->link, "https://") && !g_str_has_prefix (entry->link, "http://"))
    return "“link” is missing, an address beginning with https:// or http://";
  if (!read_date (entry->expires, &expires))
    return "“expires” is missing, a date such as 2027-03-31";
  if (g_date_days_between (&today, &expires) > MAX_DAYS)
    return "“expires” is more than a year ahead";
  entry->is_expired = g_date_compare (&expires, &today) < 0;
  return NULL;
}

static char *
dup_member (JsonObject *object, const char *name, GError **error)
{
  char *text = tiny_json_dup_text (object, name, error);
  return text != NULL ? text : g_strdup ("");
}

static gboolean
add_entry (ConfExpect *self, JsonNode *node, GError **error)
{
  guint number = self->entries->len;
  Entry *entry = g_new0 (Entry, 1);
  g_ptr_array_add (self->entries, entry);
  if (!JSON_NODE_HOLDS_OBJECT (node)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT, "expectation %u is no object", number);
    return FALSE;
  }
  JsonObject *object = json_node_get_object (node);
  g_autoptr (GError) why = NULL;
  entry->pattern = dup_member (object, "case", &why);
  entry->reason = dup_member (object, "reason", &why);
  entry->link = dup_member (object, "link", &why);
  entry->expires = dup_member (object, "expires", &why);
  if (g_error_matches (why, TINY_ERROR, TINY_ERROR_OUT_OF_MEMORY)) {
    g_propagate_error (error, g_steal_pointer (&why));
    return FALSE;
  }
  const char *wrong = why ? why->message : judge (entry);
  if (wrong == NULL && json_object_get_size (object) != 4)
    wrong = "it has other members than case, reason, link and expires";
  if (wrong != NULL)
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT, "expectation %u (“%s”): %s", number,
                 entry->pattern, wrong);
  return wrong == NULL;
}

static gboolean
read_entries (ConfExpect *self, JsonObject *root, GError **error)
{
  g_autoptr (GError) why = NULL;
  gint64 version = tiny_json_get_int (root, "format_version", 0, &why);
  JsonArray *array = tiny_json_get_array (root, "expectations", &why);
  if (why != NULL) {
    g_propagate_error (error, g_steal_pointer (&why));
    return FALSE;
  }
  if (version != 1 || array == NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
                 "“format_version”: 1 and the array “expectations” are wanted");
    return FALSE;
  }
  for (guint i = 0; i < json_array_get_length (array); i++)
    if (!add_entry (self, json_array_get_element (array, i), error))
      return FALSE;
  return TRUE;
}

ConfExpect *
conf_expect_load (const char *path, GError **error)
{
  g_autoptr (JsonNode) root = tiny_json_load (path, MAX_BYTES, error);
  g_autoptr (ConfExpect) self = g_new0 (ConfExpect, 1);
  self->path = g_strdup (path);
  self->entries = g_ptr_array_new_with_free_func (entry_free);
  if (root != NULL && read_entries (self, json_node_get_object (root), error))
    return g_steal_pointer (&self);
  g_prefix_error (error, "%s: ", path);
  return NULL;
}

/* ---- applying ---- */
void
conf_expect_check (ConfExpect *self, GPtrArray *planned)
{
  guint n = planned->len;
  for (guint e = 0; e < self->entries->len; e++) {
    const Entry *entry = self->entries->pdata[e];
    gboolean any = FALSE;
    for (guint i = 0; i < n && !any; i++)
      any = g_pattern_match_simple (entry->pattern,
                                    ((const ConfPlanned *) planned->pdata[i])->name);
    if (any)
      continue;
    ConfPlanned *added = g_new0 (ConfPlanned, 1);
    g_autofree char *text = g_strdup_printf (
        "%s expects a failure of “%s”, and there is no such case", self->path, entry->pattern);
    added->name = g_strdup_printf ("expectations/%u", e);
    added->result = conf_result_new (added->name, "failed", text);
    g_ptr_array_add (planned, added);
  }
}

static void
annotate (const Entry *entry, JsonObject *result)
{
  const char *outcome = json_object_get_string_member (result, "outcome");
  gboolean is_good = g_str_equal (outcome, "passed") || g_str_equal (outcome, "recorded");
  gboolean is_crash = !is_good && !g_str_equal (outcome, "failed");
  const char *state = is_good ? "stale" : entry->is_expired ? "expired" : "holds";
  g_autofree char *text
      = is_good
            ? g_strdup_printf ("it passes: take “%s” out of the expectations", entry->pattern)
        : is_crash ? g_strdup_printf ("what ends or hangs the process is never excused")
        : entry->is_expired ? g_strdup_printf ("it was expected to fail until %s: %s (%s)",
                                               entry->expires, entry->reason, entry->link)
                            : g_strdup_printf ("expected to fail until %s: %s (%s)",
                                               entry->expires, entry->reason, entry->link);
  JsonObject *object = json_object_new ();
  json_object_set_string_member (object, "state", state);
  json_object_set_string_member (object, "text", text);
  json_object_set_string_member (object, "reason", entry->reason);
  json_object_set_string_member (object, "link", entry->link);
  json_object_set_string_member (object, "expires", entry->expires);
  json_object_set_object_member (result, "expectation", object);
}

void
conf_expect_apply (ConfExpect *self, const GPtrArray *planned)
{
  for (guint i = 0; i < planned->len; i++) {
    const ConfPlanned *it = planned->pdata[i];
    for (guint e = 0; e < self->entries->len && it->result != NULL; e++) {
      const Entry *entry = self->entries->pdata[e];
      if (g_pattern_match_simple (entry->pattern, it->name)) {
        annotate (entry, it->result);
        break;
      }
    }
  }
}
