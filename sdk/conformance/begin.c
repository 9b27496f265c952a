/* SPDX-License-Identifier: MIT
 *
 * begin.c: the start of a run: the subject is found, looked at from a safe distance, opened in a
 * worker, and asked for its cases.
 *
 * What goes wrong here is a case of the group "load", so that a plugin that crashes when it is
 * loaded is a failed case as any other; a device that is not there is none. */
#include <string.h>

#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "device/tiny-table.h"
#include "answer.h"
#include "elf-note.h"
#include "run.h"

enum { OPEN_SECONDS = 120 };

static const char *const level_names[CONF_N_LEVELS] = { "core", "full", "models", "stress" };

const char *
conf_level_to_string (ConfLevel level)
{
  return level < CONF_N_LEVELS ? level_names[level] : "unknown";
}

ConfLevel
conf_level_from_string (const char *text)
{
  for (guint i = 0; i < CONF_N_LEVELS; i++)
    if (g_str_equal (text, level_names[i]))
      return (ConfLevel) i;
  return CONF_N_LEVELS;
}

/* ---- the group "load" ---- */
static ConfPlanned *
add_load (ConfRunning *self, const char *name, JsonObject *result)
{
  ConfPlanned *planned = g_new0 (ConfPlanned, 1);
  planned->name = g_strdup (name);
  planned->level = CONF_CORE;
  planned->result = result;
  g_ptr_array_add (self->planned, planned);
  return planned;
}

static void
pass_load (ConfRunning *self, const char *name)
{
  JsonObject *result = json_object_new ();
  json_object_set_string_member (result, "name", name);
  json_object_set_string_member (result, "outcome", "passed");
  add_load (self, name, result);
}

static gboolean
is_absence (gint code)
{
  return code == TINY_ERROR_NO_DEVICE || code == TINY_ERROR_DRIVER
         || code == TINY_ERROR_PERMISSION;
}

static gboolean
say_absent (const ConfRunning *self, const char *reason, int *out_status)
{
  g_printerr ("tinycore conformance: %s is not here: %s\n", self->options->spec, reason);
  *out_status = CONF_EXIT_ABSENT;
  return FALSE;
}

/* ---- looking ---- */
static const char *
outcome_of_scan (const TinyScan *scan)
{
  if (!scan->is_quarantined)
    return "failed";
  return scan->code == TINY_ERROR_TIMEOUT              ? "hung"
         : g_str_has_prefix (scan->reason, "it ended") ? "ended"
                                                       : "crashed";
}

/* A module that says itself why its device is not here is right. */
static char *
find_silence (const TinyScan *scan)
{
  if (scan->is_loaded && scan->reason == NULL && scan->renderers[0] == NULL
      && !scan->takes_any_renderer)
    return g_strdup ("the module has no renderer, and not TINY_MODULE_ANY_RENDERER");
  if (scan->reason == NULL || scan->is_quarantined || !is_absence ((gint) scan->code))
    return NULL;
  if (scan->is_loaded && scan->code == TINY_ERROR_NO_DEVICE && scan->devices->len == 0
      && g_str_equal (scan->reason, TINY_SCAN_NO_REASON))
    return g_strconcat (scan->reason, ", and does not say why", NULL);
  return tiny_status_is_silent (scan->code, scan->reason)
             ? g_strconcat (scan->reason, ", and the plugin does not say why", NULL)
             : NULL;
}

/* Whether anything can be opened; if not, and it ought to be so, the case says why. */
static gboolean
judge_scan (ConfRunning *self, int *out_status)
{
  const TinyScan *scan = self->scan;
  const TinyManifest *manifest = self->wanted->manifest;
  g_autofree char *mismatch = NULL;
  if (scan->is_loaded && g_ascii_strcasecmp (scan->name, manifest->name) != 0)
    mismatch = g_strdup_printf ("the manifest %s says “%s”, the module says “%s”",
                                manifest->path, manifest->name, scan->name);
  g_autofree char *silence = find_silence (scan);
  const char *reason = mismatch ? mismatch : silence ? silence : scan->reason;
  if (reason == NULL)
    return TRUE;
  if (reason == scan->reason && !scan->is_quarantined && is_absence ((gint) scan->code))
    return say_absent (self, reason, out_status);
  add_load (self, "load/scan", conf_result_new ("load/scan", outcome_of_scan (scan), reason));
  *out_status = CONF_EXIT_FAILED;
  return FALSE;
}

static gboolean
look (ConfRunning *self, int *out_status)
{
  g_autoptr (GError) error = NULL;
  self->wanted = conf_wanted_new (self->options->spec, self->options->manifest, &error);
  if (self->wanted != NULL)
    self->scan = conf_wanted_scan (self->wanted, &error);
  if (self->scan != NULL)
    return judge_scan (self, out_status);
  g_printerr ("tinycore conformance: %s\n", error->message);
  *out_status = g_error_matches (error, TINY_ERROR, TINY_ERROR_INVALID)     ? CONF_EXIT_USAGE
                : g_error_matches (error, TINY_ERROR, TINY_ERROR_NO_DEVICE) ? CONF_EXIT_ABSENT
                                                                            : CONF_EXIT_FAILED;
  return FALSE;
}

/* ---- workers ---- */
/* A helper's, with the subject's manifest first and caches of this run's own. */
static char **
make_environment (const ConfRunning *self)
{
  char **out = tiny_env_for_helper ();
  const char *files = g_environ_getenv (out, "TINY_PLUGIN_FILES");
  const char *first = self->wanted->manifest_path;
  if (first != NULL) {
    g_autofree char *both = files ? g_strconcat (first, ":", files, NULL) : g_strdup (first);
    out = g_environ_setenv (out, "TINY_PLUGIN_FILES", both, TRUE);
  }
  out = g_environ_setenv (out, "TINY_CACHE_DIR", conf_folder_get_path (self->folder), TRUE);
  return g_environ_setenv (out, "DEV", self->wanted->device, TRUE);
}

static void
add_case (ConfRunning *self, JsonObject *object)
{
  ConfPlanned *planned = g_new0 (ConfPlanned, 1);
  planned->name = g_strdup (json_object_get_string_member (object, "name"));
  planned->level = (ConfLevel) json_object_get_int_member (object, "level");
  planned->flags = (guint) json_object_get_int_member (object, "flags");
  planned->seconds = (guint) json_object_get_int_member (object, "seconds");
  g_ptr_array_add (self->planned, planned);
}

/* One answer of the list; the reason why it is none, or NULL. */
static const char *
take_listed (ConfRunning *self, GHashTable *names, JsonObject *answer)
{
  JsonNode *ready = json_object_get_member (answer, "ready");
  JsonNode *listed = json_object_get_member (answer, "case");
  JsonNode *absent = json_object_get_member (answer, "absent");
  if (ready != NULL) {
    if (self->facts != NULL || json_object_get_size (json_node_get_object (ready)) == 0)
      return "it does not say once what it opened";
    self->facts = json_object_ref (json_node_get_object (ready));
    pass_load (self, "load/open");
    return NULL;
  }
  if (self->facts == NULL || (listed == NULL && absent == NULL))
    return "it is no part of a list of cases";
  if (json_array_get_length (self->absent) >= CONF_MAX_LISTED
      || self->planned->len >= CONF_MAX_LISTED)
    return "its list of cases does not end";
  if (absent != NULL) {
    json_array_add_object_element (self->absent,
                                   json_object_ref (json_node_get_object (absent)));
    return NULL;
  }
  add_case (self, json_node_get_object (listed));
  const ConfPlanned *planned = self->planned->pdata[self->planned->len - 1];
  return g_hash_table_add (names, planned->name) ? NULL : "it lists a case twice";
}

/* Hears the whole list; FALSE where the worker does not come to its end. */
static gboolean
hear_list (ConfRunning *self, ConfWorker *worker, JsonObject **out_error)
{
  const gint64 limit_us
      = (gint64) (self->options->timeout_scale * OPEN_SECONDS * G_USEC_PER_SEC);
  gint64 end_us = g_get_monotonic_time () + limit_us;
  gsize n_bytes = 0;
  g_autoptr (GHashTable) names = g_hash_table_new (g_str_hash, g_str_equal);
  conf_worker_ask (worker, "list");
  for (;;) {
    const gint64 left_us = end_us - g_get_monotonic_time ();
    if (left_us <= 0) {
      conf_worker_stop (worker);
      return FALSE;
    }
    g_autoptr (JsonNode) answer = conf_worker_wait (worker, left_us);
    JsonObject *object = answer ? json_node_get_object (answer) : NULL;
    if (object == NULL)
      return FALSE;
    if (json_object_has_member (object, "error")) {
      *out_error = json_object_ref (json_object_get_object_member (object, "error"));
      return FALSE;
    }
    if (json_object_has_member (object, "end") && self->facts != NULL)
      return TRUE;
    const char *wrong = take_listed (self, names, object);
    n_bytes += worker->n_answer;
    if (wrong == NULL && n_bytes > CONF_MAX_LIST)
      wrong = "its list of cases does not end";
    if (wrong != NULL) {
      conf_worker_refuse (worker, wrong);
      return FALSE;
    }
    if (json_object_has_member (object, "ready"))
      end_us = g_get_monotonic_time () + limit_us;
  }
}

/* True if a second worker cannot open the device while the first has it, as somebody has it. */
static gboolean
opens_once (ConfRunning *self)
{
  gint64 limit_us = (gint64) (self->options->timeout_scale * OPEN_SECONDS * G_USEC_PER_SEC);
  g_autoptr (ConfWorker) second = conf_worker_new (&self->setup, CONF_WORKER_OPEN, NULL);
  g_autoptr (JsonNode) answer = second != NULL ? conf_worker_wait (second, limit_us) : NULL;
  JsonObject *object = answer != NULL ? json_node_get_object (answer) : NULL;
  if (object == NULL || !json_object_has_member (object, "error"))
    return FALSE;
  JsonObject *error = json_object_get_object_member (object, "error");
  return json_object_get_int_member (error, "code") == TINY_ERROR_PERMISSION;
}

static void
choose_jobs (ConfRunning *self)
{
  self->n_jobs = self->options->n_jobs;
  if (self->n_jobs > 1 && !self->options->list && opens_once (self)) {
    self->n_jobs = 1;
    g_printerr (
        "tinycore conformance: the device can be open in one process only, so one worker "
        "runs at a time\n");
  }
}

/* Keeps of a list that is not whole what was seen before it. */
static void
forget_list (ConfRunning *self)
{
  for (guint i = self->planned->len; i-- > 0;)
    if (((const ConfPlanned *) self->planned->pdata[i])->result == NULL)
      g_ptr_array_remove_index (self->planned, i);
  json_array_unref (self->absent);
  self->absent = json_array_new ();
}

static gboolean
ask_for_cases (ConfRunning *self, int *out_status)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (JsonObject) failure = NULL;
  g_autoptr (ConfWorker) worker = conf_worker_new (&self->setup, CONF_WORKER_OPEN, &error);
  *out_status = CONF_EXIT_FAILED;
  if (worker == NULL) {
    g_printerr ("tinycore conformance: %s\n", error->message);
    return FALSE;
  }
  if (hear_list (self, worker, &failure)) {
    choose_jobs (self);
    *out_status = CONF_EXIT_PASSED;
    return TRUE;
  }
  if (failure == NULL) {
    const char *name = self->facts ? "load/list" : "load/open";
    forget_list (self);
    add_load (self, name, conf_result_new_ended (name, worker));
    return FALSE;
  }
  const char *text = json_object_get_string_member (failure, "text");
  if (is_absence ((gint) json_object_get_int_member (failure, "code")))
    return say_absent (self, text, out_status);
  add_load (self, "load/open", conf_result_new ("load/open", "failed", text));
  return FALSE;
}

/* ---- all of it ---- */
static char *
first_id (const TinyScan *scan)
{
  return g_strdup (
      scan->devices->len > 0 ? ((const TinyScanDevice *) scan->devices->pdata[0])->id : "");
}

gboolean
conf_running_begin (ConfRunning *self, const ConfOptions *options, int *out_status)
{
  g_autoptr (GError) error = NULL;
  self->options = options;
  self->begin_us = g_get_monotonic_time ();
  self->planned = g_ptr_array_new_with_free_func ((GDestroyNotify) conf_planned_free);
  self->absent = json_array_new ();
  self->folder = conf_folder_new (&error);
  if (self->folder == NULL) {
    conf_folder_fail (error);
    *out_status = CONF_EXIT_FAILED;
    return FALSE;
  }
  if (!look (self, out_status))
    return FALSE;
  self->digest = conf_file_digest (self->wanted->path);
  pass_load (self, "load/scan");
  self->setup = (ConfWorkerSetup){
    .program = (char *) options->program,
    .environment = make_environment (self),
    .folder = conf_folder_get_path (self->folder),
    .device = self->wanted->device,
    .path = self->wanted->path,
    .id = first_id (self->scan),
    .seed = options->seed,
  };
  return ask_for_cases (self, out_status);
}

void
conf_running_end (ConfRunning *self)
{
  g_clear_pointer (&self->folder, conf_folder_free);
  g_clear_pointer (&self->digest, g_free);
  g_clear_pointer (&self->wanted, conf_wanted_free);
  g_clear_pointer (&self->scan, tiny_scan_free);
  g_clear_pointer (&self->setup.environment, g_strfreev);
  g_clear_pointer (&self->setup.id, g_free);
  g_clear_pointer (&self->facts, json_object_unref);
  g_clear_pointer (&self->planned, g_ptr_array_unref);
  g_clear_pointer (&self->absent, json_array_unref);
}
