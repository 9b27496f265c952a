/* SPDX-License-Identifier: MIT
 *
 * run.c: a run of the suite, from a command line to an exit status. */
#include "run.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/tiny-whole-file.h"
#include "certificate.h"
#include "elf-note.h"
#include "expect.h"
#include "journal.h"

enum { TERMINAL_COLUMNS = 80 };

/* ---- what is run ---- */
gboolean
conf_is_wanted (const ConfPlanned *planned, ConfLevel level, char *const *filters)
{
  if (planned->level > level)
    return FALSE;
  gboolean any = filters == NULL || filters[0] == NULL;
  for (guint i = 0; !any && filters[i] != NULL; i++)
    any = g_pattern_match_simple (filters[i], planned->name);
  return any;
}

/* Whether a text can match both globs. */
static gboolean
do_meet (const char *a, const char *b)
{
  if (a[0] == '*')
    return do_meet (a + 1, b) || (b[0] != 0 && do_meet (a, b + 1));
  if (b[0] == '*')
    return do_meet (b, a);
  if (a[0] == 0 || b[0] == 0)
    return a[0] == b[0];
  return (a[0] == b[0] || a[0] == '?' || b[0] == '?') && do_meet (a + 1, b + 1);
}

/* What is absent is named by a whole name, the start of names, or a glob. */
void
conf_running_narrow_absent (ConfRunning *self)
{
  char *const *filters = self->options->filters;
  if (filters == NULL || filters[0] == NULL)
    return;
  JsonArray *kept = json_array_new ();
  for (guint i = 0; i < json_array_get_length (self->absent); i++) {
    JsonObject *row = json_array_get_object_element (self->absent, i);
    const char *name = json_object_get_string_member (row, "name");
    g_autofree char *below = g_strconcat (name, "/*", NULL);
    gboolean is_wanted = FALSE;
    for (guint k = 0; filters[k] != NULL && !is_wanted; k++)
      is_wanted = do_meet (filters[k], name) || do_meet (filters[k], below);
    if (is_wanted)
      json_array_add_object_element (kept, json_object_ref (row));
  }
  json_array_unref (self->absent);
  self->absent = kept;
}

/* What is not wanted is no part of the run, except what was seen while it began. */
static void
narrow (ConfRunning *self)
{
  for (guint i = self->planned->len; i-- > 0;) {
    const ConfPlanned *planned = self->planned->pdata[i];
    gboolean has_failed
        = planned->result != NULL && json_object_has_member (planned->result, "messages");
    if (!has_failed && !conf_is_wanted (planned, self->options->level, self->options->filters))
      g_ptr_array_remove_index (self->planned, i);
  }
  conf_running_narrow_absent (self);
}

/* ---- while it runs ---- */
static ConfRunning *interrupted; /* by a signal */

static void
on_interrupt (int number)
{
  g_atomic_int_set (&interrupted->stop, 1);
  signal (number, SIG_DFL); /* the second time it means it */
}

static gboolean
has_failed (const ConfPlanned *planned)
{
  const char *outcome = json_object_get_string_member (planned->result, "outcome");
  return !g_str_equal (outcome, "passed") && !g_str_equal (outcome, "recorded");
}

typedef struct {
  guint n_done, n_failed, n_kept, n_running;
  const ConfPlanned *oldest; /* of those that run, or NULL */
} Progress;

static Progress
count_done (const ConfRunning *self)
{
  Progress out = { 0 };
  for (guint i = 0; i < self->planned->len; i++) {
    const ConfPlanned *planned = self->planned->pdata[i];
    if (planned->result != NULL) {
      out.n_done++;
      out.n_failed += has_failed (planned);
      out.n_kept += planned->was_kept;
    } else if (planned->begin_us != 0) {
      out.n_running++;
      if (out.oldest == NULL || planned->begin_us < out.oldest->begin_us)
        out.oldest = planned;
    }
  }
  return out;
}

/* How far it is, which case runs for how long, and how long the rest may take: where a case has run for longer than
 * that already, nobody knows. */
static char *
describe_progress (const ConfRunning *self)
{
  const gint64 now = g_get_monotonic_time ();
  const Progress at = count_done (self);
  const double seconds = (double) (now - self->begin_us) / G_USEC_PER_SEC;
  const double rate = (at.n_done - at.n_kept) / MAX (seconds, 0.1);
  const double runs = at.oldest ? (double) (now - at.oldest->begin_us) / G_USEC_PER_SEC : 0;
  const double left = rate > 0 ? (self->planned->len - at.n_done) / rate : 0;
  GString *out = g_string_new (NULL);
  g_string_printf (out, "%u of %u cases done, %u failed, %.1f a second", at.n_done,
                   self->planned->len, at.n_failed, rate);
  if (left >= MAX (runs, 1))
    g_string_append_printf (out, ", about %.0f s left", left);
  if (at.oldest != NULL)
    g_string_append_printf (out, "; %s runs for %.0f s", at.oldest->name, runs);
  if (at.n_running > 1)
    g_string_append_printf (out, " and %u more", at.n_running - 1);
  return g_string_free (out, FALSE);
}

/* Now and then: on a terminal in place, once a second; else as a line of its own, for logs, where a run would say
 * nothing for minutes. */
static void
say_progress (gpointer data)
{
  ConfRunning *self = data;
  const gint64 now = g_get_monotonic_time ();
  const gboolean is_terminal = isatty (2) && !self->options->tap;
  const double every = is_terminal ? 1 : self->options->progress;
  if (every <= 0 || (double) (now - self->said_us) < every * G_USEC_PER_SEC)
    return;
  self->said_us = now;
  g_autofree char *text = describe_progress (self);
  FILE *to = self->options->tap ? stdout : stderr;
  if (is_terminal)
    fprintf (to, "\r\033[K%.*s\r", TERMINAL_COLUMNS - 1, text);
  else
    fprintf (to, "%s%s\n", self->options->tap ? "# " : "", text);
  fflush (to);
}

static void
keep_done (ConfPlanned *planned, gpointer data)
{
  ConfRunning *self = data;
  conf_journal_add (self->journal, planned->result);
  if (self->options->fail_fast && has_failed (planned)) {
    self->has_failed = TRUE;
    g_atomic_int_set (&self->stop, 1);
  }
}

void
conf_running_run (ConfRunning *self)
{
  ConfPool pool = { .setup = &self->setup,
                    .n_jobs = self->n_jobs,
                    .timeout_scale = self->options->timeout_scale,
                    .stop = &self->stop,
                    .done = keep_done,
                    .tick = say_progress,
                    .data = self };
  interrupted = self;
  self->said_us = g_get_monotonic_time ();
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
  if (path == NULL || tiny_whole_file_report (path, text, -1, &error))
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
  g_autofree char *digest = self->digest ? conf_file_digest (self->wanted->path) : NULL;
  if (self->digest != NULL && !g_str_equal (digest, self->digest)) {
    /* Some cases ran on one file and some on another. */
    if (self->options->tap)
      printf ("Bail out! the file changed\n");
    g_printerr ("tinycore conformance: %s changed during the run, which says nothing of either "
                "file; nothing is written\n",
                self->wanted->path);
    return CONF_EXIT_FAILED;
  }
  g_autoptr (JsonObject) certificate = conf_certificate_new (self);
  int status = (int) json_object_get_int_member (certificate, "status");
  if (self->options->tap)
    conf_report_tap (certificate);
  else
    conf_report_text (certificate);
  if (self->planned->len == 0)
    g_printerr ("tinycore conformance: no case is called so; --list names all\n");
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
  for (guint i = 0; i < json_array_get_length (self->absent); i++) {
    JsonObject *row = json_array_get_object_element (self->absent, i);
    printf ("absent  %s: %s\n", json_object_get_string_member (row, "name"),
            json_object_get_string_member (row, "reason"));
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
  if (self->options->tap)
    conf_report_tap_begin ();
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
           && self.planned->len > 0) { /* what was seen of it is a failure */
    if (options->tap)
      conf_report_tap_begin ();
    int seen = report (&self);
    status = seen != CONF_EXIT_PASSED ? seen : status;
  }
  conf_running_end (&self);
  return status;
}
