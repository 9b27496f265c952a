/* SPDX-License-Identifier: MIT
 *
 * certificate.c: what a run found, as one document. */
#include "certificate.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "elf-note.h"

/* ---- the parts ---- */
const char *
conf_running_get_driver (const ConfRunning *self)
{
  for (guint i = 0; self->scan != NULL && i < self->scan->devices->len; i++) {
    const TinyScanDevice *device = self->scan->devices->pdata[i];
    if (g_strcmp0 (device->id, self->setup.id) == 0)
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
  json_object_set_string_member (out, "driver", conf_running_get_driver (running));
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

/* ---- all of it ---- */
JsonObject *
conf_certificate_new (const ConfRunning *running)
{
  JsonObject *out = json_object_new ();
  JsonArray *cases = make_cases (running);
  JsonObject *score = conf_score_new (cases, running->absent);
  json_object_set_string_member (out, "format", CONF_FORMAT);
  json_object_set_object_member (out, "subject", make_subject (running));
  json_object_set_object_member (out, "suite", make_suite (running));
  json_object_set_object_member (out, "run", make_run (running));
  json_object_set_object_member (out, "score", score);
  json_object_set_array_member (out, "cases", cases);
  json_object_set_array_member (out, "absent", json_array_ref (running->absent));
  json_object_set_array_member (out, "worst", conf_worst_errors_new (cases));
  if (running->facts != NULL)
    json_object_set_array_member (out, "capabilities", conf_capabilities_new (running->facts));
  json_object_set_string_member (out, "certified", conf_certified_level (out));
  json_object_set_int_member (out, "status", conf_score_status (score, cases));
  return out;
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
