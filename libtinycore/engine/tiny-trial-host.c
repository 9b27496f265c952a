/* SPDX-License-Identifier: MIT
 *
 * tiny-trial-host.c: where the programs of a search are run.
 *
 * One helper process serves all searches of this process, one kernel after the other; it is made when
 * the first begins. A launch cannot be stopped, but a process can: one whose program is not done in
 * time is killed, and the next request begins with a new one, which is told the kernel and the program
 * that others are compared with; the others it gets when they are run. Devices that were not opened by
 * their name, and those that only one process can have, are used from this process. */
#include "engine/tiny-trial-host.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/tiny-clean.h"
#include "base/tiny-descriptor.h"
#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "base/tiny-fork.h"
#include "base/tiny-memory.h"
#include "base/tiny-timing.h"
#include "base/tiny-version.h"
#include "device/tiny-program.h"
#include "engine/tiny-debug.h"
#include "engine/tiny-plan.h"
#include "engine/trial-message.h"
#include "ir/tiny-text.h"
#include "plugin/tiny-scan.h"

enum {
  HELPER_FD = 3,
  SLACK_MS = 100,     /* for the way there and back */
  OTHER_SECONDS = 60, /* for all that is not a candidate's run */
  MAX_PAYLOAD = 1 << 20,
};

typedef struct {
  pid_t pid;
  int socket;
  gboolean is_reaped;
  guint n_forks; /* when it was started: it is that process's alone */
} Helper;

typedef struct {
  TinyCode code;
  TinyProgram *program; /* in this process */
  guint helper;         /* that has it, by number */
} Program;

struct TinyTrialHost {
  TinyDevice *device;
  TinyVector open; /* the payload of TRIAL_OPEN */
  double timeout_ms;
  GArray *programs; /* Program, by number - 1 */
  TinyTrial *local; /* in this process; else NULL, and … */
  Helper *helper;   /* … this, or NULL after it was ended */
  guint n_helpers;  /* so far */
  gboolean has_kept;
};

/* ---- the process ---- */
static GMutex idle_lock;
static Helper *idle; /* between searches */

static void
helper_end (Helper *self)
{
  if (self == NULL)
    return;
  int status;
  close (self->socket);
  if (!self->is_reaped && self->n_forks == tiny_fork_count ()) {
    kill (self->pid, SIGKILL);
    while (waitpid (self->pid, &status, 0) < 0 && errno == EINTR)
      ;
  }
  g_free (self);
}

static Helper *
helper_new (GError **error)
{
  TINY_TIMED ("engine", "start trials");
  int ends[2];
  pid_t pid;
  g_autofree char *path = tiny_scan_find_helper (error);
  if (path == NULL)
    return NULL;
  if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_IO, "search: %s", g_strerror (errno));
    return NULL;
  }
  g_auto (GStrv) environment = tiny_env_for_helper ();
  const char *argv[] = { path, G_STRINGIFY (3), TINY_SCAN_TRIALS, NULL };
  const TinySpawnEnd given[] = { { ends[1], HELPER_FD }, { 2, 1 } };
  const int failure
      = tiny_spawn (path, argv, environment, FALSE, given, G_N_ELEMENTS (given), &pid);
  close (ends[1]);
  if (failure != 0) {
    close (ends[0]);
    g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
                 "the helper program %s cannot be run: %s", path, g_strerror (failure));
    return NULL;
  }
  Helper *self = g_new (Helper, 1);
  *self = (Helper){ pid, ends[0], FALSE, tiny_fork_count () };
  return self;
}

static Helper *
take_idle (void)
{
  g_mutex_lock (&idle_lock);
  Helper *out = g_steal_pointer (&idle);
  g_mutex_unlock (&idle_lock);
  if (out != NULL && out->n_forks != tiny_fork_count ())
    g_clear_pointer (&out, helper_end);
  return out;
}

static void
give_idle (Helper *helper)
{
  g_mutex_lock (&idle_lock);
  Helper *other = g_steal_pointer (&idle);
  idle = helper;
  g_mutex_unlock (&idle_lock);
  helper_end (other);
}

/* ---- asking it ---- */
/* Waits for @events; FALSE: it is @end_us. */
static gboolean
wait_until (const Helper *self, short events, gint64 end_us)
{
  const gint64 left_us = end_us - g_get_monotonic_time ();
  struct pollfd polled = { self->socket, events, 0 };
  if (left_us > 0)
    poll (&polled, 1, (int) MIN (left_us / 1000 + 1, G_MAXINT));
  return left_us > 0;
}

/* Sends or receives all of it; FALSE: the process is gone, or it is @end_us. */
static gboolean
move_all (Helper *self, guint8 *data, gsize n, gboolean sends, gint64 end_us)
{
  while (n > 0 && wait_until (self, sends ? POLLOUT : POLLIN, end_us)) {
    const gssize moved = sends ? send (self->socket, data, n, MSG_NOSIGNAL | MSG_DONTWAIT)
                               : recv (self->socket, data, n, MSG_DONTWAIT);
    if (moved == 0 || (moved < 0 && errno != EINTR && errno != EAGAIN))
      return FALSE;
    data += MAX (moved, 0);
    n -= (gsize) MAX (moved, 0);
  }
  return n == 0;
}

static gboolean
exchange (Helper *self,
          TrialRequest *request,
          const void *payload,
          gint64 end_us,
          TrialAnswer *out,
          char **out_text)
{
  if (!move_all (self, (guint8 *) request, sizeof *request, TRUE, end_us)
      || !move_all (self, (guint8 *) payload, request->n_payload, TRUE, end_us)
      || !move_all (self, (guint8 *) out, sizeof *out, FALSE, end_us)
      || out->n_payload > MAX_PAYLOAD)
    return FALSE;
  *out_text = g_try_malloc0 (out->n_payload + 1);
  return *out_text != NULL
         && move_all (self, (guint8 *) *out_text, out->n_payload, FALSE, end_us);
}

/* Programs that run there may write into the socket. */
static gboolean
is_answer_to (const TrialAnswer *answer, const TrialRequest *request)
{
  return answer->status == TRIAL_GOOD
         || (answer->status == TRIAL_FAILED && answer->code <= TINY_ERROR_IO)
         || (answer->status == TRIAL_DIFFERS && request->verb == TRIAL_COMPARE);
}

/* Ends the process; says what became of it. */
static void
report_end (TinyTrialHost *self, gboolean is_late, double timeout_ms, GError **error)
{
  enum { TRIES = 100, US = 2000 };
  int status = 0;
  pid_t ended = 0;
  for (guint i = 0; i < TRIES && !is_late && ended == 0; i++) {
    ended = waitpid (self->helper->pid, &status, WNOHANG);
    if (ended == 0)
      g_usleep (US);
  }
  if (ended > 0 && WIFSIGNALED (status))
    g_set_error (error, TINY_ERROR, TINY_ERROR_TIMEOUT,
                 "it ended the process it ran in with signal %d (%s)", WTERMSIG (status),
                 g_strsignal (WTERMSIG (status)));
  else if (!is_late)
    g_set_error (error, TINY_ERROR, TINY_ERROR_TIMEOUT, "it ended the process it ran in");
  else
    g_set_error (error, TINY_ERROR, TINY_ERROR_TIMEOUT, "it was stopped after %.0f ms",
                 timeout_ms);
  self->helper->is_reaped = ended != 0;
  g_clear_pointer (&self->helper, helper_end);
}

static gboolean
ask (TinyTrialHost *self,
     TrialRequest request,
     const void *payload,
     double timeout_ms,
     TrialAnswer *out,
     char **out_text,
     GError **error)
{
  g_autofree char *text = NULL;
  const gint64 end_us = g_get_monotonic_time () + (gint64) (timeout_ms * 1000);
  request.seconds = (guint32) (timeout_ms / 1000) + 2;
  if (!exchange (self->helper, &request, payload, end_us, out, &text)) {
    report_end (self, g_get_monotonic_time () >= end_us, timeout_ms, error);
    return FALSE;
  }
  g_autofree char *clean = tiny_clean_text (text, out->n_payload);
  if (!is_answer_to (out, &request)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_TIMEOUT,
                 "its process was stopped: the program or its driver wrote into the socket of "
                 "the search (status %u)",
                 out->status);
    g_clear_pointer (&self->helper, helper_end);
    return FALSE;
  }
  if (out->status == TRIAL_FAILED)
    g_set_error_literal (error, TINY_ERROR, (TinyError) out->code, clean);
  if (out_text != NULL)
    *out_text = g_steal_pointer (&clean);
  return out->status == TRIAL_GOOD;
}

static gboolean
ask_simply (TinyTrialHost *self, TrialRequest request, const void *payload, GError **error)
{
  TrialAnswer answer;
  return ask (self, request, payload, OTHER_SECONDS * 1000.0, &answer, NULL, error);
}

/* FALSE: there was no memory for all @n_bytes, or they are too many for a request. */
static gboolean
is_whole (const TinyVector *payload, gsize n_bytes, const char *what, GError **error)
{
  if (n_bytes > TRIAL_MAX_REQUEST) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED,
                 "%s has %" G_GSIZE_FORMAT " bytes, more than the %d that can be tried", what,
                 n_bytes, TRIAL_MAX_REQUEST);
    return FALSE;
  }
  return !payload->is_short || tiny_memory_fail (n_bytes, what, error);
}

static gboolean
send_program (TinyTrialHost *self, guint id, GError **error)
{
  Program *program = &g_array_index (self->programs, Program, id - 1);
  if (program->helper == self->n_helpers)
    return TRUE;
  g_auto (TinyVector) payload = { NULL };
  gsize size;
  const guint8 *data = g_bytes_get_data (program->code.binary, &size);
  tiny_vector_append (&payload, &program->code.head, sizeof program->code.head);
  tiny_vector_append (&payload, data, size);
  if (!is_whole (&payload, sizeof program->code.head + size, "search: the binary of a program",
                 error)
      || !ask_simply (
          self,
          (TrialRequest){ .verb = TRIAL_ADD, .id = id, .n_payload = (guint32) payload.n_bytes },
          payload.data, error))
    return FALSE;
  program->helper = self->n_helpers;
  return TRUE;
}

static gboolean
run_there (TinyTrialHost *self,
           TrialRequest request,
           double timeout_ms,
           guint64 *out_ns,
           GError **error)
{
  TrialAnswer answer;
  if (!send_program (self, request.id, error)
      || !ask (self, request, NULL, timeout_ms, &answer, NULL, error))
    return FALSE;
  *out_ns = answer.ns;
  return TRUE;
}

/* Tells a new process of the kernel; FALSE also when it opened something else by that name. */
static gboolean
open_there (TinyTrialHost *self, GError **error)
{
  TrialAnswer answer;
  g_autofree char *arch = NULL;
  self->n_helpers++;
  if (!ask (self,
            (TrialRequest){ .verb = TRIAL_OPEN, .n_payload = (guint32) self->open.n_bytes },
            self->open.data, OTHER_SECONDS * 1000.0, &answer, &arch, error))
    return FALSE;
  if (g_strcmp0 (arch, tiny_device_get_arch (self->device)) == 0)
    return TRUE;
  g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN, "%s is another device in another process",
               tiny_device_get_name (self->device));
  return FALSE;
}

/* Makes the process again that was stopped, and what others are compared with. */
static gboolean
revive (TinyTrialHost *self, GError **error)
{
  guint64 ns;
  if (self->helper != NULL)
    return TRUE;
  if (self->n_helpers > TINY_TRIAL_MAX_STOPPED) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_TIMEOUT, "%u programs were stopped before it",
                 self->n_helpers);
    return FALSE;
  }
  self->helper = helper_new (error);
  if (self->helper == NULL)
    return FALSE;
  if (!open_there (self, error)) {
    g_clear_pointer (&self->helper, helper_end);
    return FALSE;
  }
  const TrialRequest reset = { .verb = TRIAL_RESET }, keep = { .verb = TRIAL_KEEP },
                     first = { .verb = TRIAL_RUN, .id = 1 };
  return !self->has_kept
         || (ask_simply (self, reset, NULL, error)
             && run_there (self, first, OTHER_SECONDS * 1000.0, &ns, error)
             && ask_simply (self, keep, NULL, error) && ask_simply (self, reset, NULL, error));
}

/* ---- what a search sees ---- */
static void
program_clear (gpointer data)
{
  Program *self = data;
  g_clear_object (&self->program);
  tiny_code_clear (&self->code);
}

static gboolean
make_open (TinyTrialHost *self,
           TinyNode *kernel,
           const TinyParam *params,
           guint n_params,
           GError **error)
{
  const char *name = tiny_device_get_name (self->device);
  TrialOpen head = { .n_params = n_params, .n_name = (guint32) strlen (name) + 1 };
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  g_autofree char *text = tiny_graph_print (graph, tiny_graph_import (graph, kernel));
  g_strlcpy (head.version, tiny_get_version (), sizeof head.version);
  tiny_vector_append (&self->open, &head, sizeof head);
  tiny_vector_append (&self->open, params, n_params * sizeof *params);
  tiny_vector_append (&self->open, name, head.n_name);
  tiny_vector_append (&self->open, text, strlen (text) + 1);
  return is_whole (&self->open, strlen (text), "search: a kernel's text", error);
}

/* A process that has the kernel; what was idle may have ended since. */
static gboolean
start_there (TinyTrialHost *self)
{
  g_autoptr (GError) error = NULL;
  if (!tiny_engine_owns_device (self->device))
    return FALSE;
  self->helper = take_idle ();
  if (self->helper != NULL && open_there (self, NULL))
    return TRUE;
  g_clear_pointer (&self->helper, helper_end);
  self->helper = helper_new (&error);
  if (self->helper != NULL && open_there (self, &error))
    return TRUE;
  g_clear_pointer (&self->helper, helper_end);
  if (TINY_DEBUG (2))
    g_printerr ("search: programs are tried in this process and cannot be stopped: %s\n",
                error->message);
  return FALSE;
}

TinyTrialHost *
tiny_trial_host_new (TinyDevice *device,
                     TinyNode *kernel,
                     const TinyParam *params,
                     guint n_params,
                     double timeout_ms,
                     GError **error)
{
  g_autoptr (TinyTrialHost) self = g_new0 (TinyTrialHost, 1);
  self->device = device;
  self->timeout_ms = timeout_ms;
  self->programs = g_array_new (FALSE, TRUE, sizeof (Program));
  g_array_set_clear_func (self->programs, program_clear);
  if (!make_open (self, kernel, params, n_params, error))
    return NULL;
  if (!start_there (self)) {
    self->local = tiny_trial_new (device, kernel, params, n_params, error);
    if (self->local == NULL)
      return NULL;
  }
  return g_steal_pointer (&self);
}

void
tiny_trial_host_free (TinyTrialHost *self)
{
  if (self == NULL)
    return;
  g_array_unref (self->programs);
  g_clear_pointer (&self->local, tiny_trial_free);
  if (self->helper != NULL)
    give_idle (self->helper);
  tiny_vector_clear (&self->open);
  g_free (self);
}

gboolean
tiny_trial_host_can_stop (TinyTrialHost *self)
{
  return self->local == NULL;
}

gboolean
tiny_trial_host_add (TinyTrialHost *self, const TinyCode *code, guint *out_id, GError **error)
{
  Program added = { .code.head = code->head, .code.binary = g_bytes_ref (code->binary) };
  const TinyCodeHead *head = &code->head;
  if (self->local != NULL)
    added.program = tiny_program_new (self->device, head->name, code->binary, head->n_params,
                                      head->n_variables, head->group, error);
  g_array_append_val (self->programs, added);
  *out_id = self->programs->len;
  return self->local != NULL ? added.program != NULL
                             : revive (self, error) && send_program (self, *out_id, error);
}

/* @n_runs: of as long as one may take. */
static gboolean
run_remote (
    TinyTrialHost *self, TrialRequest request, guint n_runs, guint64 *out_ns, GError **error)
{
  double timeout_ms = self->timeout_ms * n_runs + SLACK_MS;
  if (request.id == 1)
    timeout_ms += OTHER_SECONDS * 1000.0;
  return revive (self, error) && run_there (self, request, timeout_ms, out_ns, error);
}

gboolean
tiny_trial_host_run (
    TinyTrialHost *self, guint id, gboolean slice, guint64 *out_ns, GError **error)
{
  const Program *program = &g_array_index (self->programs, Program, id - 1);
  if (self->local != NULL)
    return tiny_trial_run (self->local, program->program, program->code.head.grid, slice,
                           out_ns, error);
  return run_remote (self, (TrialRequest){ .verb = TRIAL_RUN, .id = id, .slice = slice }, 1,
                     out_ns, error);
}

gboolean
tiny_trial_host_run_warm (TinyTrialHost *self, guint id, guint64 *out_ns, GError **error)
{
  const Program *program = &g_array_index (self->programs, Program, id - 1);
  if (self->local != NULL)
    return tiny_trial_run_warm (self->local, program->program, program->code.head.grid, out_ns,
                                error);
  return run_remote (self, (TrialRequest){ .verb = TRIAL_RUN_WARM, .id = id }, 2, out_ns,
                     error);
}

gboolean
tiny_trial_host_time (TinyTrialHost *self,
                      guint id,
                      guint64 first_ns,
                      guint64 best_ns,
                      guint64 *out_ns,
                      GError **error)
{
  enum { RUNS = 3 }; /* that long ones get */
  const Program *program = &g_array_index (self->programs, Program, id - 1);
  const TrialRequest request
      = { .verb = TRIAL_TIME, .id = id, .first_ns = first_ns, .best_ns = best_ns };
  if (self->local != NULL)
    return tiny_trial_time (self->local, program->program, program->code.head.grid, first_ns,
                            best_ns, out_ns, error);
  return run_remote (self, request, RUNS, out_ns, error);
}

gboolean
tiny_trial_host_reset (TinyTrialHost *self, GError **error)
{
  if (self->local != NULL)
    return tiny_trial_reset (self->local, error);
  return revive (self, error)
         && ask_simply (self, (TrialRequest){ .verb = TRIAL_RESET }, NULL, error);
}

gboolean
tiny_trial_host_keep_outputs (TinyTrialHost *self, GError **error)
{
  self->has_kept = self->local != NULL
                       ? tiny_trial_keep_outputs (self->local, error)
                       : ask_simply (self, (TrialRequest){ .verb = TRIAL_KEEP }, NULL, error);
  return self->has_kept;
}

gboolean
tiny_trial_host_compare_outputs (TinyTrialHost *self, char **out_why, GError **error)
{
  TrialAnswer answer;
  g_autofree char *text = NULL;
  if (self->local != NULL)
    return tiny_trial_compare_outputs (self->local, out_why, error);
  gboolean same = ask (self, (TrialRequest){ .verb = TRIAL_COMPARE }, NULL,
                       OTHER_SECONDS * 1000.0, &answer, &text, error);
  if (!same && text != NULL && answer.status == TRIAL_DIFFERS)
    *out_why = g_steal_pointer (&text);
  return same;
}
