/* SPDX-License-Identifier: MIT
 *
 * scan-process.c: the helper process that loads a plugin so that the program need not.
 *
 * The helper ends what a plugin started, in whatever session (tools/supervise.h), before it ends itself, or when it is told
 * that the time is over. It leads a process group of its own, which is killed as a whole after that. It has its own standard
 * streams and reports on one descriptor: a greeting before it touches the plugin, and one line of
 * JSON at the end. Without the greeting the helper itself does not work, and nothing is held
 * against the plugin; with it, but without the last line, the plugin has failed, whatever the exit
 * status says. The time counts from the greeting on. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/tiny-clean.h"
#include "base/tiny-descriptor.h"
#include "base/tiny-env.h"
#include "base/tiny-memory.h"
#include "plugin/tiny-discovery.h"
#include "plugin/tiny-helper.h"
#include "plugin/tiny-json.h"
#include "plugin/tiny-library.h"
#include "plugin/tiny-scan.h"

enum {
  REPORT_FD = 3,
  MAX_REPORT = 1 << 20,
  MAX_SAID = 4096,
  MAX_QUOTED = 200, /* of it, in a message */
  STARTS_WITHIN_MS = 20000,
  STOPS_WITHIN_MS = 2000
};

static const char *
get_named_helper (void)
{
  const char *named = tiny_env_is_privileged () ? NULL : g_getenv ("TINY_SCAN_HELPER");
  return named != NULL && named[0] != 0 ? named : NULL;
}

gboolean
tiny_scan_check_named_helper (GError **error)
{
  g_autofree char *helper = get_named_helper () != NULL ? tiny_scan_find_helper (error) : NULL;
  return helper != NULL || get_named_helper () == NULL;
}

char *
tiny_scan_find_helper (GError **error)
{
  const char *wanted = get_named_helper ();
  if (wanted != NULL) {
    if (g_file_test (wanted, G_FILE_TEST_IS_EXECUTABLE)
        && g_file_test (wanted, G_FILE_TEST_IS_REGULAR))
      return g_strdup (wanted);
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                 "TINY_SCAN_HELPER names %s, which is no program", wanted);
    return NULL;
  }
  const char *installed = TINY_HELPER_DIR "/tiny-scan";
  if (g_file_test (installed, G_FILE_TEST_IS_EXECUTABLE))
    return g_strdup (installed);
  char *found = tiny_find_beside_library ("libexec/tinycore-1.0/tiny-scan");
  if (found == NULL)
    g_set_error (
        error, TINY_ERROR, TINY_ERROR_PLUGIN,
        "the helper program that loads plugins safely is not installed (%s), so none is "
        "loaded",
        installed);
  return found;
}

/* ---- running it ---- */
typedef struct {
  pid_t pid;
  int report, said; /* our ends */
  TinyVector report_text;
  GString *said_text;
  gint64 begin_us;
  gboolean is_over; /* reaped */
  int status;       /* of waitpid() */
} Process;

static gboolean
make_pipe (int ends[2])
{
  return pipe2 (ends, O_CLOEXEC) == 0;
}

static void
close_pipe (int ends[2])
{
  for (guint i = 0; i < 2; i++)
    if (ends[i] >= 0)
      close (ends[i]);
}

static int
spawn (const char *helper, const TinyHelperTask *task, int report, int said, pid_t *out_pid)
{
  char seconds[16], descriptor[16];
  g_snprintf (seconds, sizeof seconds, "%u", task->timeout_ms / 1000 + 2);
  g_snprintf (descriptor, sizeof descriptor, "%d", REPORT_FD);
  const char *argv[] = { helper, descriptor, seconds, task->module, task->what, NULL };
  const TinySpawnEnd ends[] = { { said, 1 }, { said, 2 }, { report, REPORT_FD } };
  return tiny_spawn (helper, argv, NULL, TRUE, ends, G_N_ELEMENTS (ends), out_pid);
}

static gboolean
start (Process *self, const char *helper, const TinyHelperTask *task, GError **error)
{
  int report[2] = { -1, -1 }, said[2] = { -1, -1 };
  int failure = 0;
  if (!make_pipe (report) || !make_pipe (said))
    failure = errno;
  else
    failure = spawn (helper, task, report[1], said[1], &self->pid);
  if (failure != 0) {
    close_pipe (report);
    close_pipe (said);
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                 "the helper program %s cannot be run: %s", helper, g_strerror (failure));
    return FALSE;
  }
  close (report[1]);
  close (said[1]);
  self->report = report[0];
  self->said = said[0];
  fcntl (self->report, F_SETFL, O_NONBLOCK);
  fcntl (self->said, F_SETFL, O_NONBLOCK);
  return TRUE;
}

/* Bytes beyond MAX_REPORT are thrown away. */
static void
take_report (Process *self, const char *part, gsize n)
{
  if (self->report_text.n_bytes + n <= MAX_REPORT)
    tiny_vector_append (&self->report_text, part, n);
}

/* Only the end is kept. */
static void
take_said (Process *self, const char *part, gsize n)
{
  GString *text = self->said_text;
  g_string_append_len (text, part, (gssize) n);
  if (text->len > 2 * MAX_SAID)
    g_string_erase (text, 0, (gssize) (text->len - MAX_SAID));
}

/* Takes what is there; TRUE while more may come. */
static gboolean
drain (Process *self, int fd, void take (Process *, const char *, gsize))
{
  char part[4096];
  for (;;) {
    gssize n = read (fd, part, sizeof part);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return n < 0 && errno == EAGAIN;
    take (self, part, (gsize) n);
  }
}

static void
reap (Process *self, int flags)
{
  pid_t got;
  do
    got = waitpid (self->pid, &self->status, flags);
  while (got < 0 && errno == EINTR);
  if (got < 0)
    self->status = -1; /* the program ignores its children; only the report counts then */
  self->is_over = got != 0;
}

static gboolean
has_greeted (const Process *self)
{
  const gsize n = strlen (TINY_SCAN_GREETING);
  return self->report_text.n_bytes >= n
         && memcmp (self->report_text.data, TINY_SCAN_GREETING, n) == 0;
}

/* Until the helper has ended or its time is over. */
static void
wait_for (Process *self, guint timeout_ms)
{
  gboolean report_open = TRUE, said_open = TRUE, greeted = FALSE;
  while (!self->is_over) {
    gint64 most_ms = greeted ? timeout_ms : STARTS_WITHIN_MS;
    gint64 left_ms = most_ms - (g_get_monotonic_time () - self->begin_us) / 1000;
    if (left_ms <= 0)
      return;
    struct pollfd polled[] = { { report_open ? self->report : -1, POLLIN, 0 },
                               { said_open ? self->said : -1, POLLIN, 0 } };
    gboolean any_open = report_open || said_open;
    poll (polled, 2, any_open ? (int) MIN (left_ms, 50) : 1);
    report_open = report_open && drain (self, self->report, take_report);
    said_open = said_open && drain (self, self->said, take_said);
    if (!greeted && has_greeted (self)) {
      greeted = TRUE;
      self->begin_us = g_get_monotonic_time ();
    }
    reap (self, WNOHANG);
  }
}

/* Tells the helper that the time is over, and gives it some to end what the plugin started. */
static void
stop (Process *self)
{
  kill (self->pid, SIGTERM);
  for (guint i = 0; i < STOPS_WITHIN_MS && !self->is_over; i++) {
    g_usleep (1000);
    reap (self, WNOHANG);
  }
}

static void
finish (Process *self)
{
  if (!self->is_over)
    stop (self);
  kill (-self->pid, SIGKILL); /* the group, where the helper could not do that */
  if (!self->is_over) {
    kill (self->pid, SIGKILL);
    reap (self, 0);
  }
  drain (self, self->report, take_report);
  drain (self, self->said, take_said);
  close (self->report);
  close (self->said);
}

/* ---- judging ---- */
/* The last thing the plugin said, as a clause, or "". */
static char *
quote_said (const GString *said)
{
  g_autofree char *valid = g_utf8_make_valid (said->str, (gssize) said->len);
  g_auto (GStrv) lines = g_strsplit (g_strchomp (valid), "\n", -1);
  guint n = g_strv_length (lines);
  if (n == 0 || g_strstrip (lines[n - 1])[0] == 0)
    return g_strdup ("");
  g_autofree char *last = tiny_clean_text (lines[n - 1], MAX_QUOTED);
  return g_strdup_printf (", saying “%s”", last);
}

static void
fail (TinyHelperResult *out, TinyError code, const Process *process, const char *format, ...)
    G_GNUC_PRINTF (4, 5);

static void
fail (TinyHelperResult *out, TinyError code, const Process *process, const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  g_autofree char *what = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  g_autofree char *said = quote_said (process->said_text);
  out->code = code;
  out->failure = g_strconcat (what, said, NULL);
}

/* The least of the limits of memory that this process hands on, in MiB, or 0. */
static guint64
find_limit (void)
{
  static const int kinds[] = { RLIMIT_AS, RLIMIT_DATA };
  guint64 least = 0;
  struct rlimit most;
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++)
    if (getrlimit (kinds[i], &most) == 0 && most.rlim_cur != RLIM_INFINITY
        && (least == 0 || most.rlim_cur < least))
      least = MAX (most.rlim_cur, 1);
  return least == 0 ? 0 : MAX (least >> 20, 1);
}

/* No plugin gets this by itself: the system does it for want of memory, or a person. */
static gboolean
is_killing (int number)
{
  return number == SIGKILL || number == SIGTERM || number == SIGINT || number == SIGHUP;
}

static void
judge (TinyHelperResult *out,
       const Process *process,
       gboolean timed_out,
       const TinyHelperTask *task)
{
  int status = process->status;
  out->signal = !timed_out && status != -1 && WIFSIGNALED (status) ? WTERMSIG (status) : 0;
  gboolean is_whole
      = g_str_has_suffix (out->report, task->what ? TINY_HELPER_INSPECT_END : "\n");
  if (timed_out)
    fail (out, TINY_ERROR_TIMEOUT, process, "it hung: not done after %u ms", task->timeout_ms);
  else if (is_killing (out->signal))
    fail (
        out, TINY_ERROR_OUT_OF_MEMORY, process,
        "the process that looked at it was killed with signal %d (%s), by the system for want "
        "of memory or by somebody",
        out->signal, g_strsignal (out->signal));
  else if (out->signal != 0)
    fail (out, TINY_ERROR_PLUGIN, process, "it crashed with signal %d (%s)", WTERMSIG (status),
          g_strsignal (WTERMSIG (status)));
  else if (!is_whole || (status != -1 && WEXITSTATUS (status) != 0))
    fail (out, TINY_ERROR_PLUGIN, process,
          "it ended the process that loaded it, with exit status %d",
          status == -1 ? 0 : WEXITSTATUS (status));
}

/* "this program may have N MiB of memory …", or NULL. */
static char *
describe_limit (void)
{
  const guint64 limit = find_limit ();
  return limit == 0
             ? NULL
             : g_strdup_printf ("this program and its helpers may have %" G_GUINT64_FORMAT
                                " MiB of memory each (ulimit -v or -d)",
                                limit);
}

void
tiny_helper_result_clear (TinyHelperResult *self)
{
  g_clear_pointer (&self->report, g_free);
  g_clear_pointer (&self->failure, g_free);
}

/* (transfer full): the text behind the greeting, which ends in NUL. */
static char *
steal_report (Process *self)
{
  const gsize n = strlen (TINY_SCAN_GREETING);
  char *text = (char *) self->report_text.data;
  memmove (text, text + n, self->report_text.n_bytes - n);
  self->report_text = (TinyVector){ NULL };
  return text;
}

gboolean
tiny_helper_run (const TinyHelperTask *task, TinyHelperResult *out, GError **error)
{
  *out = (TinyHelperResult){ NULL };
  g_autofree char *helper = tiny_scan_find_helper (error);
  Process process = { .report = -1, .said = -1 };
  if (helper == NULL || !start (&process, helper, task, error))
    return FALSE;
  process.said_text = g_string_new (NULL);
  process.begin_us = g_get_monotonic_time ();
  wait_for (&process, task->timeout_ms);
  gboolean timed_out = !process.is_over, works = FALSE;
  finish (&process);
  works = has_greeted (&process);
  if (!tiny_vector_append (&process.report_text, "", 1)) {
    works = tiny_memory_fail (process.report_text.n_bytes, task->module, error);
  } else if (works) {
    out->report = steal_report (&process);
    judge (out, &process, timed_out, task);
    out->took_us = (guint) (g_get_monotonic_time () - process.begin_us);
  } else {
    g_autofree char *said = quote_said (process.said_text);
    const int number
        = process.status != -1 && WIFSIGNALED (process.status) ? WTERMSIG (process.status) : 0;
    g_autofree char *limit = describe_limit ();
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                 "the helper program %s does not work%s%s%s%s", helper, said,
                 is_killing (number) ? ": it was killed before it began" : "",
                 limit != NULL ? "; " : "", limit != NULL ? limit : "");
  }
  tiny_vector_clear (&process.report_text);
  g_string_free (process.said_text, TRUE);
  return works;
}

/* ---- scans ---- */
static TinyScan *
quarantine (TinyError code, char *reason)
{
  TinyScan *out = tiny_scan_new_failed (code, reason);
  out->is_quarantined = TRUE;
  return out;
}

/* ---- shortage ---- */
gboolean
tiny_scan_is_shortage (TinyError code, const char *text)
{
  static const int reasons[] = { ENOMEM, EAGAIN, EMFILE, ENFILE };
  gboolean lacks = text != NULL && code == TINY_ERROR_OUT_OF_MEMORY;
  for (guint i = 0; text != NULL && i < G_N_ELEMENTS (reasons); i++)
    lacks = lacks || strstr (text, g_strerror (reasons[i])) != NULL;
  return lacks;
}

static void
add_passing (char **text, const char *limit)
{
  char *longer = g_strconcat (*text, limit != NULL ? "; " : "", limit != NULL ? limit : "",
                              "; this says nothing of the plugin, which is tried again", NULL);
  g_free (*text);
  *text = longer;
}

/* A shortage is no verdict: it is named, and not kept. Where memory is limited, whatever fails may do so for want of it. */
static void
excuse_shortage (TinyScan *self, gboolean timed_out)
{
  g_autofree char *limit = timed_out ? NULL : describe_limit ();
  const gboolean is_limited = limit != NULL;
  if (self->reason != NULL && self->code != TINY_ERROR_NO_DEVICE
      && (is_limited || tiny_scan_is_shortage (self->code, self->reason))) {
    add_passing (&self->reason, limit);
    self->is_passing = TRUE;
  }
  for (guint i = 0; i < self->devices->len; i++) {
    TinyScanDevice *device = self->devices->pdata[i];
    if (device->error == NULL
        || !(is_limited || tiny_scan_is_shortage (device->code, device->error)))
      continue;
    add_passing (&device->error, limit);
    self->is_passing = TRUE;
  }
  if (self->is_passing)
    self->is_quarantined = FALSE;
}

TinyScan *
tiny_scan_run (const TinyManifest *manifest, GError **error)
{
  const TinyHelperTask task
      = { .module = manifest->module, .timeout_ms = manifest->timeout_ms };
  g_auto (TinyHelperResult) result = { NULL };
  if (!tiny_helper_run (&task, &result, error))
    return NULL;
  TinyScan *out = NULL;
  if (result.failure != NULL) {
    out = quarantine (result.code, g_steal_pointer (&result.failure));
  } else {
    g_autoptr (GError) wrong = NULL;
    g_autoptr (JsonNode) root
        = tiny_json_parse (result.report, (gssize) strcspn (result.report, "\n"), &wrong);
    out = root ? tiny_scan_from_json (json_node_get_object (root), &wrong) : NULL;
    if (g_error_matches (wrong, TINY_ERROR, TINY_ERROR_OUT_OF_MEMORY)) {
      g_propagate_error (error, g_steal_pointer (&wrong));
      return NULL;
    }
    if (out == NULL)
      out = quarantine (TINY_ERROR_PLUGIN,
                        g_strdup_printf ("its report is damaged: %s", wrong->message));
  }
  out->took_us = result.took_us;
  excuse_shortage (out, result.failure != NULL && result.code == TINY_ERROR_TIMEOUT);
  return out;
}
