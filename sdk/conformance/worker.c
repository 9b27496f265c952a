/* SPDX-License-Identifier: MIT
 *
 * worker.c: starts a worker, hears it, and finds out what ended it.
 *
 * A worker leads a process group, which is killed as a whole, so that nothing that a plugin started
 * stays behind, and has a folder for temporary files, which is removed then with what a compiler that was
 * stopped left in it. It has standard streams of its own, whose end is kept, and one socket for requests
 * and answers; a line of it that does not begin as JSON belongs to the last words (crash.c). A plugin may have damaged
 * the worker's memory, so that anything may come: a worker whose answer is none, or does not end, is killed. */
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/tiny-clean.h"
#include "base/tiny-descriptor.h"
#include "base/tiny-error.h"
#include "answer.h"
#include "folder.h"
#include "serve.h"

enum { MAX_SAID = 4096, MAX_QUOTED = 300, MAX_STACK = 16 << 10, ENDS_WITHIN_MS = 10000 };

/* ---- starting ---- */
static int
spawn (const ConfWorkerSetup *setup,
       ConfWorkerKind kind,
       int socket,
       int said,
       const char *temporary,
       pid_t *out_pid)
{
  g_auto (GStrv) environment
      = g_environ_setenv (g_strdupv (setup->environment), "TMPDIR", temporary, TRUE);
  static const char *const kinds[] = { "open", "fresh", "climb" };
  g_autofree char *seed = g_strdup_printf ("%" G_GUINT64_FORMAT, setup->seed);
  const char *argv[] = { setup->program, "--serve", kinds[kind], setup->device,
                         setup->path,    setup->id, seed,        NULL };
  const TinySpawnEnd ends[] = { { said, 1 }, { said, 2 }, { socket, CONF_WORKER_FD } };
  return tiny_spawn (setup->program, argv, environment, TRUE, ends, G_N_ELEMENTS (ends),
                     out_pid);
}

ConfWorker *
conf_worker_new (const ConfWorkerSetup *setup, ConfWorkerKind kind, GError **error)
{
  int sockets[2] = { -1, -1 }, said[2] = { -1, -1 };
  ConfWorker *self = g_new0 (ConfWorker, 1);
  self->temporary = g_build_filename (setup->folder, "XXXXXX", NULL);
  int failure = socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0
                        && pipe2 (said, O_CLOEXEC) == 0 && g_mkdtemp (self->temporary)
                    ? spawn (setup, kind, sockets[1], said[1], self->temporary, &self->pid)
                    : errno;
  self->socket = sockets[0];
  self->said = said[0];
  self->said_text = g_string_new (NULL);
  for (guint i = 0; i < 2; i++) {
    int other = i == 0 ? sockets[1] : said[1];
    if (other >= 0)
      close (other);
  }
  if (failure == 0) {
    fcntl (self->socket, F_SETFL, O_NONBLOCK);
    fcntl (self->said, F_SETFL, O_NONBLOCK);
    return self;
  }
  g_set_error (error, TINY_ERROR, TINY_ERROR_IO, "%s cannot be run: %s", setup->program,
               g_strerror (failure));
  self->end = CONF_END_EXIT; /* there is no process to be ended */
  conf_worker_free (self);
  return NULL;
}

/* ---- its end ---- */
static void
reap (ConfWorker *self, ConfEnd end)
{
  int status = 0;
  if (self->end != CONF_END_NONE)
    return;
  kill (-self->pid, SIGKILL);
  kill (self->pid, SIGKILL);
  while (waitpid (self->pid, &status, 0) < 0 && errno == EINTR)
    ;
  self->status = status;
  self->end = end;
}

/* Its socket is closed: it ends, or it closed a descriptor that is none of its business and is
 * given some time. */
static void
see_end (ConfWorker *self)
{
  int status = 0;
  pid_t got = 0;
  for (guint i = 0; got == 0 && i < ENDS_WITHIN_MS / 10; i++) {
    got = waitpid (self->pid, &status, WNOHANG);
    if (got == 0)
      g_usleep (10000);
  }
  if (got != self->pid) {
    reap (self, CONF_END_TIME);
    return;
  }
  kill (-self->pid, SIGKILL);
  self->status = status;
  self->end = WIFSIGNALED (status) ? CONF_END_SIGNAL : CONF_END_EXIT;
}

void
conf_worker_stop (ConfWorker *self)
{
  reap (self, CONF_END_TIME);
}

static void
refuse (ConfWorker *self, GError *why)
{
  const gboolean is_short = g_error_matches (why, TINY_ERROR, TINY_ERROR_OUT_OF_MEMORY);
  reap (self, is_short ? CONF_END_MEMORY : CONF_END_WORDS);
  if (self->wrong == NULL)
    self->wrong = why;
  else
    g_error_free (why);
}

void
conf_worker_refuse (ConfWorker *self, const char *why)
{
  refuse (self, g_error_new_literal (TINY_ERROR, TINY_ERROR_FORMAT, why));
}

void
conf_worker_free (ConfWorker *self)
{
  if (self == NULL)
    return;
  reap (self, CONF_END_EXIT);
  if (self->socket >= 0)
    close (self->socket);
  if (self->said >= 0)
    close (self->said);
  tiny_vector_clear (&self->received);
  g_string_free (self->said_text, TRUE);
  if (self->stack != NULL)
    g_string_free (self->stack, TRUE);
  g_clear_error (&self->wrong);
  conf_folder_remove_tree (self->temporary);
  g_free (self->temporary);
  g_free (self);
}

/* ---- hearing it ---- */
gboolean
conf_worker_ask (ConfWorker *self, const char *request)
{
  g_autofree char *line = g_strconcat (request, "\n", NULL);
  gssize n = (gssize) strlen (line);
  return send (self->socket, line, (gsize) n, MSG_NOSIGNAL) == n;
}

/* FALSE: no more is wanted now. */
typedef gboolean (*Add) (ConfWorker *self, const char *part, gsize n);

static gboolean
add_answer (ConfWorker *self, const char *part, gsize n)
{
  return tiny_vector_append (&self->received, part, n)
         && self->received.n_bytes <= CONF_MAX_ANSWER;
}

static gboolean
add_said (ConfWorker *self, const char *part, gsize n)
{
  g_string_append_len (self->said_text, part, (gssize) n);
  if (self->said_text->len > MAX_SAID)
    g_string_erase (self->said_text, 0, (gssize) (self->said_text->len - MAX_SAID));
  return TRUE;
}

/* Takes what is there, of one that writes for ever a part; FALSE at the end. */
static gboolean
drain (ConfWorker *self, int fd, Add add)
{
  char part[16384];
  for (gsize total = 0; total <= CONF_MAX_ANSWER;) {
    gssize n = read (fd, part, sizeof part);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return n < 0 && errno == EAGAIN;
    if (!add (self, part, (gsize) n))
      return TRUE;
    total += (gsize) n;
  }
  return TRUE;
}

/* Another process may hold its socket open. */
static gboolean
is_alive (const ConfWorker *self)
{
  siginfo_t info = { 0 };
  return waitid (P_PID, (id_t) self->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0
         || info.si_pid == 0;
}

static void
forget_taken (ConfWorker *self)
{
  TinyVector *received = &self->received;
  received->n_bytes -= self->n_taken;
  if (self->n_taken > 0)
    memmove (received->data, received->data + self->n_taken, received->n_bytes);
  self->n_taken = 0;
}

void
conf_worker_read (ConfWorker *self)
{
  if (self->end != CONF_END_NONE)
    return;
  forget_taken (self);
  gboolean is_open = is_alive (self);
  is_open = drain (self, self->socket, add_answer) && is_open;
  drain (self, self->said, add_said);
  if (self->received.is_short) {
    GError *error = NULL;
    tiny_memory_fail (2 * self->received.n_bytes, "its answer", &error);
    refuse (self, error);
  } else if (!is_open) {
    see_end (self);
    drain (self, self->said, add_said);
  }
}

static JsonNode *
take_answer (ConfWorker *self, const char *line, gsize size)
{
  g_autoptr (GError) error = NULL;
  JsonNode *node = conf_answer_parse (line, size, &error);
  self->n_answer = size;
  if (node == NULL)
    refuse (self, g_steal_pointer (&error));
  return node;
}

JsonNode *
conf_worker_take (ConfWorker *self)
{
  for (;;) {
    const gsize left = self->received.n_bytes - self->n_taken;
    const char *start = (const char *) self->received.data + self->n_taken;
    const char *end = left > 0 ? memchr (start, '\n', left) : NULL;
    const gsize n = end != NULL ? (gsize) (end - start) : 0;
    if (end == NULL && left > CONF_MAX_ANSWER)
      conf_worker_refuse (self, "an answer does not end");
    if (end == NULL || self->wrong != NULL)
      return NULL;
    self->n_taken += n + 1;
    if (start[0] == '{')
      return take_answer (self, start, n);
    if (start[0] == '!' && self->stack == NULL)
      self->stack = g_string_new (NULL);
    else if (self->stack != NULL && start[0] != '!' && self->stack->len < MAX_STACK)
      g_string_append_len (self->stack, start, (gssize) MIN (n + 1, MAX_STACK));
  }
}

JsonNode *
conf_worker_wait (ConfWorker *self, gint64 timeout_us)
{
  gint64 end_us = g_get_monotonic_time () + timeout_us;
  for (;;) {
    JsonNode *answer = conf_worker_take (self);
    if (answer
        == NULL) { /* only then: reading moves what was received to the front, thousands of lines of a list */
      conf_worker_read (self);
      answer = conf_worker_take (self);
    }
    if (answer != NULL || self->end != CONF_END_NONE)
      return answer;
    gint64 left_us = end_us - g_get_monotonic_time ();
    if (left_us <= 0) {
      conf_worker_stop (self);
      return NULL;
    }
    struct pollfd polled[] = { { self->socket, POLLIN, 0 }, { self->said, POLLIN, 0 } };
    poll (polled, 2, (int) MIN (left_us / 1000 + 1, 60000));
  }
}

/* ---- in words ---- */
char *
conf_worker_quote (const ConfWorker *self)
{
  return g_strchomp (tiny_clean_text (self->said_text->str, self->said_text->len));
}

char *
conf_worker_explain (const ConfWorker *self)
{
  g_autofree char *said = conf_worker_quote (self);
  const char *last = strrchr (said, '\n') ? strrchr (said, '\n') + 1 : said;
  GString *out = g_string_new (NULL);
  if (self->end == CONF_END_SIGNAL)
    g_string_printf (out, "crashed with signal %d (%s)", WTERMSIG (self->status),
                     g_strsignal (WTERMSIG (self->status)));
  else if (self->end == CONF_END_EXIT)
    g_string_printf (out, "ended the process that it ran in, with exit status %d",
                     WEXITSTATUS (self->status));
  else if (self->end == CONF_END_WORDS)
    g_string_printf (out, "sent what is no answer of a worker, so its memory is damaged: %s",
                     self->wrong->message);
  else if (self->end == CONF_END_MEMORY)
    g_string_printf (
        out, "was stopped because the suite ran out of memory: %s; run it again with more",
        self->wrong->message);
  else
    g_string_printf (out, "hung: it was not done in time");
  g_autofree char *quoted = tiny_clean_text (last, MAX_QUOTED);
  if (last[0] != 0)
    g_string_append_printf (out, ", saying “%s”", quoted);
  return g_string_free (out, FALSE);
}
