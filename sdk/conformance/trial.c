/* SPDX-License-Identifier: MIT
 *
 * trial.c: lists of cases, and what a case says while it runs.
 *
 * A trial keeps what it is told as JSON, since all of it goes to another process. What a case may
 * say is limited, so that one that goes wrong a million times is read by somebody. */
#include "trial.h"

#include <math.h>
#include <string.h>

#include "base/tiny-clean.h"

enum { MAX_MESSAGES = 20, MAX_TEXT = 64 << 10, MAX_RECORDS = 2000, MAX_FILES = 4 };

/* ---- lists ---- */
static void
listed_free (gpointer data)
{
  ConfListed *self = data;
  g_free (self->name);
  g_free (self);
}

static void
absent_free (gpointer data)
{
  ConfAbsent *self = data;
  g_free (self->name);
  g_free (self->reason);
  g_free (self);
}

static char *
make_name (const ConfList *list, const char *format, va_list arguments)
{
  g_autofree char *own = g_strdup_vprintf (format, arguments);
  g_autofree char *clean
      = tiny_clean_text (own, strlen (own)); /* it may hold a plugin's word */
  return g_strconcat (list->group->name, "/", g_strdelimit (clean, "\n\t ", '?'), NULL);
}

void
conf_list_add (ConfList *list, const ConfCase *self, const char *format, ...)
{
  ConfListed *listed = g_new (ConfListed, 1);
  va_list arguments;
  va_start (arguments, format);
  *listed = (ConfListed){ make_name (list, format, arguments), list->group, *self };
  va_end (arguments);
  listed->self.name = listed->name + strlen (list->group->name) + 1;
  g_ptr_array_add (list->cases, listed);
  if (!g_hash_table_insert (list->by_name, listed->name, listed) && list->mistake == NULL)
    list->mistake = g_strdup_printf ("there are two cases %s", listed->name);
  if (self->run == NULL && list->mistake == NULL)
    list->mistake = g_strdup_printf ("case %s runs nothing", listed->name);
}

void
conf_list_absent (ConfList *list, const char *reason, const char *format, ...)
{
  ConfAbsent *absent = g_new (ConfAbsent, 1);
  va_list arguments;
  va_start (arguments, format);
  g_autofree char *clean
      = tiny_clean_text (reason, strlen (reason)); /* of a claim() that declined */
  *absent = (ConfAbsent){ make_name (list, format, arguments),
                          g_strdup (g_strdelimit (clean, "\n\t", ' ')) };
  va_end (arguments);
  g_ptr_array_add (list->absent, absent);
}

ConfList *
conf_list_new (const ConfSubject *subject)
{
  ConfList *self = g_new0 (ConfList, 1);
  self->cases = g_ptr_array_new_with_free_func (listed_free);
  self->absent = g_ptr_array_new_with_free_func (absent_free);
  self->by_name = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; conf_groups[i] != NULL; i++) {
    self->group = conf_groups[i];
    self->group->list (subject, self);
  }
  return self;
}

void
conf_list_free (ConfList *self)
{
  if (self == NULL)
    return;
  g_hash_table_unref (self->by_name);
  g_ptr_array_unref (self->cases);
  g_ptr_array_unref (self->absent);
  g_free (self->mistake);
  g_free (self);
}

const ConfListed *
conf_list_find (const ConfList *self, const char *name)
{
  return g_hash_table_lookup (self->by_name, name);
}

/* ---- trials ---- */
struct _ConfTrial {
  gboolean has_failed;
  guint n_failures;
  JsonArray *messages, *records, *errors, *files;
};

static void
say (ConfTrial *trial, const char *format, va_list arguments)
{
  trial->has_failed = TRUE;
  if (trial->n_failures++ >= MAX_MESSAGES)
    return;
  g_autofree char *text = g_strdup_vprintf (format, arguments);
  g_autofree char *clean = tiny_clean_text (text, MAX_TEXT);
  json_array_add_string_element (trial->messages, clean);
}

void
conf_fail (ConfTrial *trial, const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  say (trial, format, arguments);
  va_end (arguments);
}

gboolean
conf_check (ConfTrial *trial, gboolean good, const char *format, ...)
{
  va_list arguments;
  if (good)
    return TRUE;
  va_start (arguments, format);
  say (trial, format, arguments);
  va_end (arguments);
  return FALSE;
}

gboolean
conf_check_error (ConfTrial *trial, GError *error, const char *what)
{
  if (error == NULL)
    return TRUE;
  conf_fail (trial, "%s: %s", what, error->message);
  g_error_free (error);
  return FALSE;
}

gboolean
conf_needs (ConfTrial *trial, gconstpointer member, const char *what)
{
  return conf_check (trial, member != NULL, "there is no %s to test with", what);
}

gboolean
conf_has_failed (const ConfTrial *trial)
{
  return trial->has_failed;
}

/* JSON has no other numbers. */
static double
make_finite (double value)
{
  return isnan (value) ? G_MAXDOUBLE : CLAMP (value, -G_MAXDOUBLE, G_MAXDOUBLE);
}

static JsonObject *
add_object (JsonArray *array)
{
  JsonObject *object = json_object_new ();
  json_array_add_object_element (array, object);
  return object;
}

void
conf_record (ConfTrial *trial, const char *what, double value, const char *unit)
{
  if (json_array_get_length (trial->records) >= MAX_RECORDS)
    return;
  JsonObject *object = add_object (trial->records);
  json_object_set_string_member (object, "what", what);
  json_object_set_double_member (object, "value", make_finite (value));
  json_object_set_string_member (object, "unit", unit);
}

void
conf_record_error (ConfTrial *trial,
                   TinyInstrOp op,
                   TinyDType dtype,
                   double worst,
                   double most,
                   const char *unit)
{
  if (json_array_get_length (trial->errors) >= MAX_RECORDS)
    return;
  JsonObject *object = add_object (trial->errors);
  json_object_set_int_member (object, "op", op);
  json_object_set_int_member (object, "dtype", dtype);
  json_object_set_double_member (object, "worst", make_finite (worst));
  json_object_set_double_member (object, "most", make_finite (most));
  json_object_set_string_member (object, "unit", unit);
}

void
conf_attach (ConfTrial *trial, const char *suffix, const char *text)
{
  if (json_array_get_length (trial->files) >= MAX_FILES)
    return;
  g_autofree char *valid = g_utf8_make_valid (text, (gssize) strnlen (text, MAX_TEXT));
  JsonObject *object = add_object (trial->files);
  json_object_set_string_member (object, "suffix", suffix);
  json_object_set_string_member (object, "text", valid);
}

/* Takes @array, and keeps it where it holds anything. */
static void
set_array (JsonObject *object, const char *name, JsonArray *array)
{
  if (json_array_get_length (array) > 0)
    json_object_set_array_member (object, name, array);
  else
    json_array_unref (array);
}

JsonNode *
conf_trial_run (const ConfListed *listed, const ConfSubject *subject)
{
  ConfTrial trial = { .messages = json_array_new (),
                      .records = json_array_new (),
                      .errors = json_array_new (),
                      .files = json_array_new () };
  gint64 begin = g_get_monotonic_time ();
  listed->self.run (&trial, subject, &listed->self);
  gint64 us = g_get_monotonic_time () - begin;
  if (trial.n_failures > MAX_MESSAGES) {
    g_autofree char *more
        = g_strdup_printf ("and %u more failures", trial.n_failures - MAX_MESSAGES);
    json_array_add_string_element (trial.messages, more);
  }
  JsonObject *object = json_object_new ();
  gboolean is_record = (listed->self.flags & CONF_RECORD) != 0;
  json_object_set_string_member (object, "name", listed->name);
  json_object_set_string_member (object, "outcome",
                                 is_record          ? "recorded"
                                 : trial.has_failed ? "failed"
                                                    : "passed");
  json_object_set_int_member (object, "us", us);
  set_array (object, "messages", trial.messages);
  set_array (object, "records", trial.records);
  set_array (object, "errors", trial.errors);
  set_array (object, "files", trial.files);
  JsonNode *node = json_node_alloc ();
  json_node_take_object (json_node_init (node, JSON_NODE_OBJECT), object);
  return node;
}
