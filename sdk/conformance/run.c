/* SPDX-License-Identifier: MIT
 *
 * run.c: a run of the suite, from a command line to an exit status. */
#include "run.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "certificate.h"
#include "expect.h"
#include "journal.h"

/* ---- what is run ---- */
static gboolean
is_wanted (const ConfOptions *options, const ConfPlanned *planned)
{
  if (planned->level > options->level)
    return FALSE;
  gboolean any = options->filters == NULL;
  for (guint i = 0; !any && options->filters[i] != NULL; i++)
    any = g_pattern_match_simple (options->filters[i], planned->name);
  return any;
}

/* What is not wanted is no part of the run, except what was seen while it began. */
static void
narrow (ConfRunning *self)
{
  for (guint i = self->planned->len; i-- > 0;) {
    const ConfPlanned *planned = self->planned->pdata[i];
    gboolean has_failed
        = planned->result != NULL && json_object_has_member (planned->result, "messages");
    if (!has_failed && !is_wanted (self->options, planned))
      g_ptr_array_remove_index (self->planned, i);
  }
}

/* ---- while it runs ---- */
static ConfRunning *interrupted; /* by a signal */

static void
on_interrupt (int number)
{
  g_atomic_int_set (&interrupted->stop, 1);
  signal (number, SIG_DFL); /* the second time it means it */
}

static void
show_progress (ConfPlanned *planned, gpointer data)
{
  ConfRunning *self = data;
  static guint n_done;
  n_done++;
  conf_journal_add (self->journal, planned->result);
  const char *outcome = json_object_get_string_member (planned->result, "outcome");
  if (self->options->fail_fast && !g_str_equal (outcome, "passed")
      && !g_str_equal (outcome, "recorded")) {
    self->has_failed = TRUE;
    g_atomic_int_set (&self->stop, 1);
  }
  if (isatty (2) && !self->options->tap)
    fprintf (stderr, "\r\033[K%u of %u  %.60s\r", n_done, self->planned->len, planned->name);
}

void
conf_running_run (ConfRunning *self)
{
  const ConfPool pool = { .setup = &self->setup,
                          .n_jobs = self->options->n_jobs,
                          .timeout_scale = self->options->timeout_scale,
                          .stop = &self->stop,
                          .done = show_progress,
                          .data = self };
  interrupted = self;
  signal (SIGINT, on_interrupt);
  signal (SIGTERM, on_interrupt);
  conf_pool_run (&pool, self->planned);
  signal (SIGINT, SIG_DFL);
  signal (SIGTERM, SIG_DFL);
  if (isatty (2) && !self->options->tap)
    fputs ("\r\033[K", stderr);
}

/* ---- after it ---- */
static gboolean
write_file (const char *path, const char *text)
{
  g_autoptr (GError) error = NULL;
  if (path == NULL || g_file_set_contents (path, text, -1, &error))
    return TRUE;
  g_printerr ("tinycore conformance: %s\n", error->message);
  return FALSE;
}

static gboolean
write_files (const ConfOptions *options, JsonObject *certificate)
{
  g_autoptr (JsonNode) root = json_node_new (JSON_NODE_OBJECT);
  json_node_set_object (root, certificate);
  g_autofree char *text = json_to_string (root, TRUE);
  g_autofree char *json = g_strconcat (text, "\n", NULL);
  g_autofree char *junit = conf_report_junit (certificate);
  g_autofree char *html = conf_report_html (certificate);
  gboolean good = write_file (options->json, json);
  good = write_file (options->junit, junit) && good;
  return write_file (options->html, html) && good;
}

static int
report (ConfRunning *self)
{
  g_autoptr (JsonObject) certificate = conf_certificate_new (self);
  int status = conf_certificate_status (certificate);
  if (self->options->tap)
    conf_report_tap (certificate);
  else
    conf_report_text (certificate);
  gboolean written = write_files (self->options, certificate);
  return written || status != CONF_EXIT_PASSED ? status : CONF_EXIT_FAILED;
}

static void
print_list (const ConfRunning *self)
{
  for (guint i = 0; i < self->planned->len; i++) {
    const ConfPlanned *planned = self->planned->pdata[i];
    printf ("%-8s%s\n", conf_level_to_string (planned->level), planned->name);
  }
}

static gboolean
has_finished (const ConfRunning *self)
{
  for (guint i = 0; i < self->planned->len; i++)
    if (((const ConfPlanned *) self->planned->pdata[i])->result == NULL)
      return FALSE;
  return TRUE;
}

/* With the whole list at hand. */
static int
run_listed (ConfRunning *self, ConfExpect *expect)
{
  if (expect != NULL)
    conf_expect_check (expect, self->planned);
  narrow (self);
  if (self->options->list) {
    print_list (self);
    return CONF_EXIT_PASSED;
  }
  self->journal = conf_journal_new (self);
  conf_running_run (self);
  conf_journal_free (g_steal_pointer (&self->journal), has_finished (self));
  if (expect != NULL)
    conf_expect_apply (expect, self->planned);
  return report (self);
}

int
conf_run (const ConfOptions *options)
{
  ConfRunning self = { 0 };
  int status = CONF_EXIT_PASSED;
  g_autoptr (GError) error = NULL;
  g_autoptr (ConfExpect) expect
      = options->expect ? conf_expect_load (options->expect, &error) : NULL;
  if (error != NULL) {
    g_printerr ("tinycore conformance: %s\n", error->message);
    return CONF_EXIT_USAGE;
  }
  if (conf_running_begin (&self, options, &status))
    status = run_listed (&self, expect);
  else if (status != CONF_EXIT_ABSENT
           && self.planned->len > 0) /* what was seen of it is a failure */
    status = report (&self);
  conf_running_end (&self);
  return status;
}
