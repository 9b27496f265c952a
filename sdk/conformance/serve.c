/* SPDX-License-Identifier: MIT
 *
 * serve.c: a worker: opens the subject, lists its cases and runs those that it is asked for. */
#include "serve.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/tiny-clean.h"
#include "base/tiny-error.h"
#include "ladder.h"
#include "step.h"
#include "subject.h"
#include "trial.h"

/* ---- what it says ---- */
static gboolean
write_all (const char *text, gsize n)
{
  while (n > 0) {
    gssize written = write (CONF_WORKER_FD, text, n);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return FALSE;
    text += written;
    n -= (gsize) written;
  }
  return TRUE;
}

/* {"WORD": @value}, which it takes. */
static void
answer (const char *word, JsonNode *value)
{
  g_autoptr (JsonNode) root = json_node_new (JSON_NODE_OBJECT);
  JsonObject *object = json_object_new ();
  json_object_set_member (object, word, value);
  json_node_take_object (root, object);
  g_autofree char *text = json_to_string (root, FALSE);
  g_autofree char *line = g_strconcat (text, "\n", NULL);
  if (!write_all (line, strlen (line)))
    _exit (1); /* nobody listens any more */
}

static void
answer_object (const char *word, JsonObject *object)
{
  JsonNode *node = json_node_new (JSON_NODE_OBJECT);
  json_node_take_object (node, object);
  answer (word, node);
}

static void
set_text (JsonObject *object, const char *name, const char *text)
{
  g_autofree char *clean = tiny_clean_text (text, G_MAXINT);
  json_object_set_string_member (object, name, clean);
}

static void
answer_error (const GError *error)
{
  JsonObject *object = json_object_new ();
  set_text (object, "text", error->message);
  json_object_set_int_member (object, "code",
                              error->domain == TINY_ERROR ? error->code : TINY_ERROR_PLUGIN);
  answer_object ("error", object);
}

/* ---- what the subject is ---- */
static JsonArray *
list_ops (const TinyTarget *target)
{
  JsonArray *out = json_array_new ();
  for (guint dtype = 0; dtype < TINY_N_DTYPES; dtype++)
    json_array_add_int_element (out, (gint64) target->ops[dtype]);
  return out;
}

static JsonObject *
describe (const ConfSubject *subject)
{
  JsonObject *out = json_object_new ();
  const TinyPluginModule *module = tiny_backend_get_module (subject->backend);
  const TinyDeviceInfo *info = tiny_device_get_info (subject->device);
  set_text (out, "name", module->name);
  set_text (out, "vendor", module->vendor);
  set_text (out, "version", module->version);
  set_text (out, "device", tiny_device_get_name (subject->device));
  set_text (out, "id", subject->id);
  set_text (out, "title", tiny_device_get_title (subject->device));
  /* Of a device that only claims, the target is another one's. */
  const gboolean only_claims = conf_only_claims (subject);
  set_text (out, "arch", tiny_device_get_claim_arch (subject->device));
  set_text (out, "renderer",
            only_claims ? tiny_device_get_claimer (subject->device)->name
                        : tiny_device_get_renderer (subject->device)->name);
  json_object_set_boolean_member (out, "only_claims", only_claims);
  json_object_set_int_member (out, "memory_bytes", (gint64) info->memory_bytes);
  json_object_set_int_member (out, "device_flags", info->flags);
  json_object_set_int_member (out, "target_flags", subject->target->flags);
  json_object_set_int_member (out, "dtypes_storage", subject->target->dtypes_storage);
  json_object_set_int_member (out, "dtypes_compute", subject->target->dtypes_compute);
  json_object_set_array_member (out, "ops", list_ops (subject->target));
  json_object_set_boolean_member (out, "has_reference", subject->reference != NULL);
  return out;
}

/* ---- what it is asked ---- */
static void
list (const ConfList *cases)
{
  for (guint i = 0; i < cases->cases->len; i++) {
    const ConfListed *listed = cases->cases->pdata[i];
    JsonObject *object = json_object_new ();
    json_object_set_string_member (object, "name", listed->name);
    json_object_set_int_member (object, "level", listed->self.level);
    json_object_set_int_member (object, "flags", listed->self.flags);
    json_object_set_int_member (object, "seconds", listed->self.seconds);
    answer_object ("case", object);
  }
  for (guint i = 0; i < cases->absent->len; i++) {
    const ConfAbsent *absent = cases->absent->pdata[i];
    JsonObject *object = json_object_new ();
    json_object_set_string_member (object, "name", absent->name);
    set_text (object, "reason", absent->reason);
    answer_object ("absent", object);
  }
  JsonNode *end = json_node_init_int (json_node_alloc (), cases->cases->len);
  answer ("end", end);
}

static void
run (const ConfList *cases, const ConfSubject *subject, const char *name)
{
  const ConfListed *listed = conf_list_find (cases, name);
  if (listed == NULL) {
    g_autoptr (GError) error
        = g_error_new (TINY_ERROR, TINY_ERROR_INVALID, "there is no case “%s”", name);
    answer_error (error);
    return;
  }
  answer ("result", conf_trial_run (listed, subject));
}

static void
confine (void)
{
  struct rlimit none = { 0, 0 };
  setrlimit (RLIMIT_CORE, &none);
  prctl (PR_SET_PDEATHSIG, SIGKILL);
}

static void
say_rung (const char *word, const char *text, gint64 number)
{
  JsonNode *node = json_node_alloc ();
  g_autofree char *clean = text ? tiny_clean_text (text, strlen (text)) : NULL;
  if (text != NULL)
    json_node_init_string (node, clean);
  else
    json_node_init_int (node, number);
  answer (word, node);
}

static void
climb (const char *path)
{
  conf_climb (path, say_rung);
  _exit (0);
}

int
conf_serve (int argc, char **argv)
{
  if (argc != 6)
    return 2;
  const ConfSubject bare = { .spec = argv[2],
                             .path = argv[3],
                             .id = argv[4],
                             .seed = g_ascii_strtoull (argv[5], NULL, 10) };
  gboolean is_fresh = g_str_equal (argv[1], "fresh");
  g_autoptr (GError) error = NULL;
  confine ();
  conf_crash_watch (CONF_WORKER_FD);
  if (g_str_equal (argv[1], "climb"))
    climb (bare.path);
  g_autoptr (ConfSubject) opened = is_fresh ? NULL : conf_subject_open (&bare, &error);
  if (error != NULL) {
    answer_error (error);
    conf_crash_expect_exit ();
    return 1;
  }
  const ConfSubject *subject = opened ? opened : &bare;
  g_autoptr (ConfList) cases = conf_list_new (subject);
  if (cases->mistake != NULL)
    g_error ("%s", cases->mistake);
  answer_object ("ready", opened ? describe (opened) : json_object_new ());
  int descriptor = dup (CONF_WORKER_FD);
  FILE *requests = fdopen (descriptor, "r");
  char *line = NULL;
  size_t room = 0;
  for (gssize n = getline (&line, &room, requests); n > 0;
       n = getline (&line, &room, requests)) {
    g_strchomp (line);
    if (g_str_equal (line, "list"))
      list (cases);
    else if (g_str_has_prefix (line, "run "))
      run (cases, subject, line + strlen ("run "));
  }
  /* The plugin's own way out is a case of its own; nothing is left to be done here. */
  _exit (0);
}
