/* SPDX-License-Identifier: MIT
 *
 * certificate.c: what a run found, as one document. */
#include "certificate.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "elf-note.h"

static const char *
text_of (JsonObject *object, const char *name)
{
  return json_object_get_string_member_with_default (object, name, "");
}

/* ---- the parts ---- */
/* Of the device that was opened, as scan() said. */
static const char *
find_driver (const TinyScan *scan, const char *id)
{
  for (guint i = 0; scan != NULL && i < scan->devices->len; i++) {
    const TinyScanDevice *device = scan->devices->pdata[i];
    if (g_str_equal (device->id, id))
      return device->driver;
  }
  return "";
}

static gint64
size_of (const char *path)
{
  GStatBuf info = { 0 };
  return g_stat (path, &info) == 0 ? info.st_size : 0;
}

static JsonObject *
make_subject (const ConfRunning *running)
{
  JsonObject *out = running->facts ? json_object_ref (running->facts) : json_object_new ();
  const char *path = running->wanted->path;
  g_autofree char *file = g_path_get_basename (path);
  g_autofree char *digest = conf_file_digest (path);
  g_autofree char *build_id = conf_file_build_id (path);
  json_object_set_string_member (out, "spec", running->options->spec);
  json_object_set_string_member (out, "file", file);
  json_object_set_string_member (out, "sha256", digest);
  json_object_set_string_member (out, "build_id", build_id);
  json_object_set_string_member (out, "driver",
                                 find_driver (running->scan, text_of (out, "id")));
  json_object_set_int_member (out, "bytes", size_of (path));
  return out;
}

static JsonObject *
make_run (const ConfRunning *running)
{
  const ConfOptions *options = running->options;
  JsonObject *out = json_object_new ();
  JsonArray *filters = json_array_new ();
  struct utsname system;
  uname (&system);
  g_autoptr (GDateTime) now = g_date_time_new_now_utc ();
  g_autofree char *date = g_date_time_format_iso8601 (now);
  g_autofree char *host
      = g_strdup_printf ("%s %s %s", system.sysname, system.release, system.machine);
  g_autofree char *seed = g_strdup_printf ("%" G_GUINT64_FORMAT, options->seed);
  for (guint i = 0; options->filters != NULL && options->filters[i] != NULL; i++)
    json_array_add_string_element (filters, options->filters[i]);
  json_object_set_string_member (out, "level", conf_level_to_string (options->level));
  json_object_set_string_member (out, "seed", seed);
  json_object_set_array_member (out, "filters", filters);
  json_object_set_string_member (out, "date", date);
  json_object_set_double_member (
      out, "seconds", (double) (g_get_monotonic_time () - running->begin_us) / G_USEC_PER_SEC);
  json_object_set_string_member (out, "host", host);
  guint n_kept = 0;
  for (guint i = 0; i < running->planned->len; i++)
    n_kept += ((const ConfPlanned *) running->planned->pdata[i])->was_kept;
  json_object_set_int_member (out, "kept", n_kept); /* of an interrupted run */
  json_object_set_boolean_member (out, "complete", running->stop == 0);
  if (running->has_failed)
    json_object_set_string_member (out, "stopped", "at the first case that failed");
  return out;
}

static JsonObject *
make_suite (const ConfRunning *running)
{
  JsonObject *out = json_object_new ();
  g_autofree char *build_id = conf_file_build_id (running->options->program);
  json_object_set_string_member (out, "build_id", build_id);
  json_object_set_string_member (out, "version", TINY_VERSION);
  json_object_set_int_member (out, "abi_major", TINY_PLUGIN_ABI_MAJOR);
  json_object_set_int_member (out, "abi_minor", TINY_PLUGIN_ABI_MINOR);
  return out;
}

static JsonArray *
make_cases (const ConfRunning *running)
{
  JsonArray *out = json_array_new ();
  for (guint i = 0; i < running->planned->len; i++) {
    const ConfPlanned *planned = running->planned->pdata[i];
    JsonObject *object
        = planned->result ? json_object_ref (planned->result) : json_object_new ();
    if (planned->result == NULL) {
      json_object_set_string_member (object, "name", planned->name);
      json_object_set_string_member (object, "outcome", "not run");
    }
    json_object_set_string_member (object, "level", conf_level_to_string (planned->level));
    json_object_set_boolean_member (object, "must", (planned->flags & CONF_RECORD) == 0);
    json_array_add_object_element (out, object);
  }
  return out;
}

/* ---- the score ---- */
static void
count (JsonObject *score, const char *what)
{
  gint64 now = json_object_get_int_member_with_default (score, what, 0);
  json_object_set_int_member (score, what, now + 1);
}

static const char *
expectation_of (JsonObject *object)
{
  return json_object_has_member (object, "expectation")
             ? text_of (json_object_get_object_member (object, "expectation"), "state")
             : "";
}

ConfReported
conf_certificate_case (JsonArray *cases, guint i)
{
  JsonObject *object = json_array_get_object_element (cases, i);
  ConfReported out = { text_of (object, "name"), text_of (object, "outcome"), object, FALSE };
  const char *expectation = expectation_of (object);
  gboolean is_failure
      = g_str_equal (out.outcome, "failed") || g_str_equal (out.outcome, "crashed")
        || g_str_equal (out.outcome, "ended") || g_str_equal (out.outcome, "hung");
  /* An expectation is of a failure that was seen and understood: never of a crash. */
  gboolean is_expected
      = g_str_equal (expectation, "holds") && g_str_equal (out.outcome, "failed");
  out.is_bad = (is_failure && !is_expected) || g_str_equal (expectation, "stale")
               || g_str_equal (expectation, "expired");
  return out;
}

JsonObject *
conf_score_new (JsonArray *cases, JsonArray *absent)
{
  static const char *const counts[] = { "must",     "passed",  "failed",   "crashed", "hung",
                                        "expected", "not run", "recorded", "absent" };
  JsonObject *out = json_object_new ();
  for (guint i = 0; i < G_N_ELEMENTS (counts); i++)
    json_object_set_int_member (out, counts[i], 0);
  for (guint i = 0; i < json_array_get_length (cases); i++) {
    ConfReported it = conf_certificate_case (cases, i);
    gboolean must = json_object_get_boolean_member (it.object, "must");
    const char *outcome = g_str_equal (it.outcome, "ended") ? "crashed" : it.outcome;
    if (must)
      count (out, "must");
    if (it.is_bad && (g_str_equal (outcome, "passed") || g_str_equal (outcome, "recorded")))
      outcome = "failed"; /* it was expected to fail, or that is over */
    else if (!it.is_bad && g_str_equal (outcome, "failed"))
      outcome = "expected";
    count (out, outcome);
  }
  json_object_set_int_member (out, "absent", json_array_get_length (absent));
  return out;
}

/* "core" and the like: the highest level of which all that must pass has passed, in a whole run. */
static const char *
certify (const ConfRunning *running, JsonArray *cases)
{
  guint reached = 0;
  if (running->options->filters != NULL || running->stop != 0 || running->facts == NULL)
    return "none";
  for (guint level = 0; level <= running->options->level; level++, reached++)
    for (guint i = 0; i < json_array_get_length (cases); i++) {
      ConfReported it = conf_certificate_case (cases, i);
      gboolean must = json_object_get_boolean_member (it.object, "must");
      if (must && conf_level_from_string (text_of (it.object, "level")) == level
          && (it.is_bad || !g_str_equal (it.outcome, "passed")))
        return reached > 0 ? conf_level_to_string (reached - 1) : "none";
    }
  return conf_level_to_string (reached - 1);
}

JsonObject *
conf_certificate_new (const ConfRunning *running)
{
  JsonObject *out = json_object_new ();
  JsonArray *cases = make_cases (running);
  json_object_set_string_member (out, "format", CONF_FORMAT);
  json_object_set_object_member (out, "subject", make_subject (running));
  json_object_set_object_member (out, "suite", make_suite (running));
  json_object_set_object_member (out, "run", make_run (running));
  json_object_set_object_member (out, "score", conf_score_new (cases, running->absent));
  json_object_set_string_member (out, "certified", certify (running, cases));
  json_object_set_array_member (out, "cases", cases);
  json_object_set_array_member (out, "absent", json_array_ref (running->absent));
  json_object_set_array_member (out, "worst", conf_worst_errors_new (cases));
  if (running->facts != NULL)
    json_object_set_array_member (out, "capabilities", conf_capabilities_new (running->facts));
  json_object_set_int_member (out, "status", conf_certificate_status (out));
  return out;
}

int
conf_certificate_status (JsonObject *certificate)
{
  gint64 must = conf_certificate_score (certificate, "must");
  gint64 passed = conf_certificate_score (certificate, "passed");
  gint64 failed = conf_certificate_score (certificate, "failed");
  JsonArray *cases = conf_certificate_cases (certificate);
  if (conf_certificate_score (certificate, "crashed") > 0
      || conf_certificate_score (certificate, "hung") > 0)
    return CONF_EXIT_CRASHED;
  if (failed > 0)
    return CONF_EXIT_FAILED;
  if (passed == 0 || conf_certificate_score (certificate, "not run") > 0)
    return CONF_EXIT_BELOW;
  if (must == passed)
    return CONF_EXIT_PASSED;
  /* What is left are failures that were expected: of what everybody must pass none may be. */
  for (guint i = 0; i < json_array_get_length (cases); i++) {
    ConfReported it = conf_certificate_case (cases, i);
    if (g_str_equal (it.outcome, "failed")
        && g_str_equal (text_of (it.object, "level"), conf_level_to_string (CONF_CORE)))
      return CONF_EXIT_BELOW;
  }
  return CONF_EXIT_PASSED;
}

/* ---- reading ---- */
JsonArray *
conf_certificate_cases (JsonObject *certificate)
{
  return json_object_get_array_member (certificate, "cases");
}

gint64
conf_certificate_score (JsonObject *certificate, const char *what)
{
  return json_object_get_int_member_with_default (
      json_object_get_object_member (certificate, "score"), what, 0);
}

const char *
conf_certificate_text (JsonObject *certificate, const char *part, const char *name)
{
  return text_of (json_object_get_object_member (certificate, part), name);
}

const char *
conf_text_at (JsonObject *object, const char *name, guint i)
{
  JsonArray *array = json_object_has_member (object, name)
                         ? json_object_get_array_member (object, name)
                         : NULL;
  return array != NULL && i < json_array_get_length (array)
             ? json_array_get_string_element (array, i)
             : NULL;
}
