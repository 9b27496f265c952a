/* SPDX-License-Identifier: MIT
 *
 * run.c: a run of the suite, from a command line to an exit status. */
#include "run.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "certificate.h"

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
    gboolean is_begun = planned->result != NULL && self->options->filters == NULL;
    if (!is_begun && !is_wanted (self->options, planned))
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
  if (isatty (2) && !self->options->tap)
    fprintf (stderr, "\r\033[K%u of %u  %.60s\r", n_done, self->planned->len, planned->name);
}

static void
run_cases (ConfRunning *self)
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
write_json (JsonObject *certificate, const char *path)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (JsonNode) root = json_node_new (JSON_NODE_OBJECT);
  json_node_set_object (root, certificate);
  g_autofree char *text = json_to_string (root, TRUE);
  g_autofree char *line = g_strconcat (text, "\n", NULL);
  if (g_file_set_contents (path, line, -1, &error))
    return TRUE;
  g_printerr ("tinycore conformance: %s\n", error->message);
  return FALSE;
}

static int
report (ConfRunning *self)
{
  g_autoptr (JsonObject) certificate = conf_certificate_new (self);
  int status = conf_certificate_status (certificate);
  gboolean written = TRUE;
  if (self->options->tap)
    conf_report_tap (certificate);
  else
    conf_report_text (certificate);
  if (self->options->json != NULL)
    written = write_json (certificate, self->options->json) && written;
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

int
conf_run (const ConfOptions *options)
{
  ConfRunning self = { 0 };
  int status = CONF_EXIT_PASSED;
  gboolean can_run = conf_running_begin (&self, options, &status);
  gboolean was_seen = self.planned->len > 0;
  if (can_run)
    narrow (&self);
  if (can_run && options->list)
    print_list (&self);
  else if (can_run || (was_seen && status == CONF_EXIT_FAILED)) {
    if (can_run)
      run_cases (&self);
    status = report (&self);
  }
  conf_running_end (&self);
  return status;
}
