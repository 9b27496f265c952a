/* SPDX-License-Identifier: MIT
 *
 * tiny-worker.c: the process of a worker: its start, its lanes, its end and the reason of that.
 *
 * The process is noticed to be gone by its sockets, which sleepers wait in, and looked for now and then
 * should something that it started hold them. */
#include "plugin/tiny-worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/tiny-descriptor.h"
#include "base/tiny-error.h"
#include "base/tiny-fork.h"
#include "base/tiny-timing.h"
#include "plugin/tiny-helper.h"
#include "plugin/tiny-scan.h"

#define STARTING "starting" /* as the name of a function */

enum {
  MAX_LANES = 32,
  STARTS_WITHIN_MS = 20000,
  ENDS_WITHIN_MS = 2000,
  SLICE_MS = 100,       /* after which a sleeper looks whether the process is there */
  KEPT_BYTES = 4 << 20, /* of a lane's data; what is beyond goes back to the system */
};

struct TinyWorkerLane {
  TinyWorker *worker;
  int socket;
  WorkerHead *head;
  gsize used, most_used; /* of the data */
  guint32 n_asked;       /* as in the head, where the other side may write */
  WorkerVerb verb;       /* last asked */
};

struct TinyWorker {
  gint ref_count;
  guint n_forks; /* when it was started */
  pid_t pid;
  int control; /* the process's first socket */
  guint timeout_ms;
  gint64 look_ns;
  GMutex lock;
  GCond given;      /* a lane became idle, or all is lost */
  GPtrArray *lanes; /* TinyWorkerLane */
  GPtrArray *idle;  /* those that nobody has, the last used at the end */
  gint is_lost, has_device;
  char *reason; /* why it is lost */
};

/* ---- errors ---- */
static TinyStatus fail (TinyPluginError *error, TinyStatus status, const char *format, ...)
    G_GNUC_PRINTF (3, 4);

static TinyStatus
fail (TinyPluginError *error, TinyStatus status, const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  g_vsnprintf (error->text, sizeof error->text, format, arguments);
  va_end (arguments);
  return status;
}

static TinyStatus
fail_lost (TinyWorker *self, TinyPluginError *error)
{
  g_strlcpy (error->hint, "open the device again to go on", sizeof error->hint);
  if (self->n_forks != tiny_fork_count ())
    return fail (error, TINY_STATUS_DEVICE_LOST,
                 "it runs in a process that belongs to the one that this was forked from");
  g_mutex_lock (&self->lock);
  fail (error, TINY_STATUS_DEVICE_LOST, "%s", self->reason);
  g_mutex_unlock (&self->lock);
  return TINY_STATUS_DEVICE_LOST;
}

gboolean
tiny_worker_is_lost (TinyWorker *self)
{
  return g_atomic_int_get (&self->is_lost) || self->n_forks != tiny_fork_count ();
}

gboolean
tiny_worker_has_device (TinyWorker *self)
{
  return g_atomic_int_get (&self->has_device);
}

void
tiny_worker_set_device (TinyWorker *self, gboolean has_device)
{
  g_atomic_int_set (&self->has_device, has_device);
}

TinyStatus
tiny_worker_too_large (TinyPluginError *error)
{
  return fail (error, TINY_STATUS_OUT_OF_MEMORY,
               "more than the %d MiB that go to another process at once", WORKER_ROOM >> 20);
}

/* ---- the end of the process ---- */

/* Its status of waitpid(), -1 where somebody else has taken it; FALSE while it runs. It stays a zombie, so
 * that its group is still its own. */
static gboolean
has_ended (pid_t pid, int *out_status)
{
  siginfo_t info = { .si_pid = 0 };
  int got;
  do
    got = waitid (P_PID, (id_t) pid, &info, WEXITED | WNOHANG | WNOWAIT);
  while (got < 0 && errno == EINTR);
  *out_status = -1;
  if (got == 0 && info.si_pid != 0)
    *out_status = info.si_code == CLD_EXITED ? W_EXITCODE (info.si_status, 0)
                                             : W_EXITCODE (0, info.si_status);
  return got < 0 || info.si_pid != 0;
}

static int
kill_and_reap (pid_t pid)
{
  int status = -1;
  pid_t got;
  kill (-pid, SIGKILL);
  kill (pid, SIGKILL);
  do
    got = waitpid (pid, &status, 0);
  while (got < 0 && errno == EINTR);
  return got == pid ? status : -1;
}

/* Waits a little for a process that should be ending; then there is none. */
static int
end_process (pid_t pid, guint within_ms)
{
  int status;
  gint64 start = g_get_monotonic_time ();
  gboolean ended = has_ended (pid, &status);
  while (!ended && g_get_monotonic_time () - start < (gint64) within_ms * 1000) {
    g_usleep (500);
    ended = has_ended (pid, &status);
  }
  int reaped = kill_and_reap (pid);
  return ended ? status : reaped;
}

/* The function that the process died of, as far as is known: the one in whose thread it happened, else the
 * one that @lane waits for. */
static const char *
name_culprit (TinyWorker *self, const TinyWorkerLane *lane)
{
  static const char *const names[] = {
#define WORKER_VERB(id, text) text,
#include "plugin/worker-verbs.def"
#undef WORKER_VERB
  };
  for (guint i = 0; i < self->lanes->len; i++) {
    const TinyWorkerLane *other = self->lanes->pdata[i];
    if (other->head->is_crashed)
      lane = other;
  }
  return lane->n_asked <= 1 ? STARTING : names[lane->verb];
}

static char *
describe_end (int status, const char *function)
{
  if (status != -1 && WIFEXITED (status) && WEXITSTATUS (status) == TINY_HELPER_OTHER
      && g_str_equal (function, STARTING))
    return g_strdup (TINY_HELPER_OTHER_TEXT);
  if (status != -1 && WIFSIGNALED (status) && WTERMSIG (status) == SIGKILL)
    return g_strdup_printf ("its process was killed (signal 9) during %s", function);
  if (status != -1 && WIFSIGNALED (status))
    return g_strdup_printf ("its process crashed with signal %d (%s) in %s", WTERMSIG (status),
                            g_strsignal (WTERMSIG (status)), function);
  if (status != -1)
    return g_strdup_printf ("it ended its process, with exit status %d, in %s",
                            WEXITSTATUS (status), function);
  return g_strdup_printf ("its process ended in %s", function);
}

/* Once: kills what is left, and keeps the reason. */
static void
lose (TinyWorker *self, const TinyWorkerLane *lane, guint late_ms)
{
  g_mutex_lock (&self->lock);
  if (!self->is_lost) {
    const char *function = name_culprit (self, lane);
    int status = late_ms > 0 ? kill_and_reap (self->pid) : end_process (self->pid, 1000);
    self->reason = late_ms > 0 ? g_strdup_printf ("it hung in %s: not done after %u ms, so its "
                                                  "process was stopped",
                                                  function, late_ms)
                               : describe_end (status, function);
    g_atomic_int_set (&self->is_lost, TRUE);
    g_cond_broadcast (&self->given);
  }
  g_mutex_unlock (&self->lock);
}

/* ---- waiting ---- */

/* Sleeps until the other side has written something; FALSE when it is gone. */
static gboolean
sleep_in (TinyWorker *self, int socket, int most_ms)
{
  struct pollfd polled = { socket, POLLIN, 0 };
  int got = poll (&polled, 1, most_ms), status;
  if (got > 0)
    return worker_receive (socket, NULL, MSG_DONTWAIT) != 0;
  return !has_ended (self->pid, &status);
}

static gboolean
wait_for_answer (TinyWorkerLane *lane, guint timeout_ms)
{
  TinyWorker *self = lane->worker;
  WorkerHead *head = lane->head;
  const guint32 wanted = lane->n_asked;
  if (worker_look (&head->answered, wanted, self->look_ns))
    return TRUE;
  const gint64 start = g_get_monotonic_time ();
  for (gboolean is_there = TRUE;;) {
    atomic_store (&head->program_sleeps, 1);
    if (atomic_load (&head->answered) == wanted) {
      atomic_store (&head->program_sleeps, 0);
      return TRUE;
    }
    if (!is_there || g_atomic_int_get (&self->is_lost)) {
      lose (self, lane, 0);
      return FALSE;
    }
    gint64 spent_ms = (g_get_monotonic_time () - start) / 1000;
    if (timeout_ms > 0 && spent_ms >= timeout_ms) {
      lose (self, lane, timeout_ms);
      return FALSE;
    }
    gint64 left_ms = timeout_ms > 0 ? timeout_ms - spent_ms : SLICE_MS;
    is_there = sleep_in (self, lane->socket, (int) MIN (left_ms, SLICE_MS));
  }
}

/* ---- lanes ---- */
static void
lane_free (gpointer data)
{
  TinyWorkerLane *self = data;
  if (self->head != NULL)
    munmap (self->head, WORKER_HEAD + WORKER_ROOM);
  if (self->socket >= 0)
    close (self->socket);
  g_free (self);
}

/* Makes one and sends it; NULL with errno set. */
static TinyWorkerLane *
lane_new (TinyWorker *worker)
{
  const gsize n_bytes = WORKER_HEAD + WORKER_ROOM;
  int ends[2] = { -1, -1 }, memory = worker_memory_new ("tiny-lane", n_bytes);
  TinyWorkerLane *self = g_new0 (TinyWorkerLane, 1);
  self->worker = worker;
  self->socket = -1;
  if (memory >= 0 && socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0) {
    self->socket = ends[0];
    void *mapped = mmap (NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    self->head = mapped != MAP_FAILED ? mapped : NULL;
  }
  gboolean good = self->head != NULL;
  if (good) {
    self->head->magic = WORKER_MAGIC;
    self->head->format = WORKER_FORMAT;
    g_strlcpy (self->head->version, TINY_VERSION, sizeof self->head->version);
    self->head->asked = self->n_asked = 1; /* that it is mapped there */
    good = worker_send (worker->control, memory) && worker_send (worker->control, ends[1]);
    good = good || errno == EPIPE; /* it is gone already: whoever waits for it says how */
  }
  int reason = errno;
  if (ends[1] >= 0)
    close (ends[1]);
  if (memory >= 0)
    close (memory);
  errno = reason;
  if (good)
    return self;
  lane_free (self);
  errno = reason;
  return NULL;
}

static TinyWorkerLane *
take_lane (TinyWorker *self)
{
  TinyWorkerLane *lane = NULL;
  g_mutex_lock (&self->lock);
  while (lane == NULL && !self->is_lost) {
    if (self->idle->len > 0)
      lane = g_ptr_array_steal_index (self->idle, self->idle->len - 1);
    else if (self->lanes->len < MAX_LANES && (lane = lane_new (self)) != NULL)
      g_ptr_array_add (self->lanes, lane);
    else if (self->lanes->len > 0) /* without descriptors, for example: one at a time */
      g_cond_wait (&self->given, &self->lock);
    else
      break;
  }
  g_mutex_unlock (&self->lock);
  return lane;
}

void
tiny_worker_end (TinyWorkerLane *lane)
{
  TinyWorker *self = lane->worker;
  if (lane->most_used > KEPT_BYTES)
    madvise (worker_data (lane->head) + KEPT_BYTES, WORKER_ROOM - KEPT_BYTES, MADV_REMOVE);
  tiny_worker_lane_reset (lane);
  lane->most_used = 0;
  g_mutex_lock (&self->lock);
  g_ptr_array_add (self->idle, lane);
  g_cond_signal (&self->given);
  g_mutex_unlock (&self->lock);
}

TinyWorkerLane *
tiny_worker_begin (TinyWorker *self, TinyStatus *out_status, TinyPluginError *error)
{
  *out_status = TINY_STATUS_DEVICE_LOST;
  TinyWorkerLane *lane = tiny_worker_is_lost (self) ? NULL : take_lane (self);
  if (lane != NULL && lane->n_asked == 1 && !wait_for_answer (lane, STARTS_WITHIN_MS)) {
    tiny_worker_end (lane);
    lane = NULL;
  }
  if (lane == NULL)
    fail_lost (self, error);
  return lane;
}

WorkerHead *
tiny_worker_lane_get_head (TinyWorkerLane *lane)
{
  return lane->head;
}

gpointer
tiny_worker_lane_place (TinyWorkerLane *lane,
                        gsize n_bytes,
                        gsize alignment,
                        guint64 *out_address)
{
  gsize at = (lane->used + alignment - 1) & ~(alignment - 1);
  if (at > WORKER_ROOM || n_bytes > WORKER_ROOM - at)
    return NULL;
  lane->used = at + n_bytes;
  lane->most_used = MAX (lane->most_used, lane->used);
  *out_address = lane->head->base + WORKER_HEAD + at;
  return worker_data (lane->head) + at;
}

guint64
tiny_worker_lane_copy (TinyWorkerLane *lane, gconstpointer data, gsize n_bytes)
{
  guint64 address = 0;
  gpointer place = tiny_worker_lane_place (lane, n_bytes, 16, &address);
  if (place != NULL && n_bytes > 0)
    memcpy (place, data, n_bytes);
  return address;
}

void
tiny_worker_lane_reset (TinyWorkerLane *lane)
{
  lane->used = 0;
}

gboolean
tiny_worker_lane_send (TinyWorkerLane *lane, int fd)
{
  return worker_send (lane->socket, fd);
}

TinyStatus
tiny_worker_lane_ask (TinyWorkerLane *lane,
                      WorkerVerb verb,
                      guint timeout_ms,
                      TinyPluginError *error)
{
  TinyWorker *self = lane->worker;
  WorkerHead *head = lane->head;
  lane->verb = verb;
  head->verb = verb;
  worker_raise (&head->asked, ++lane->n_asked, &head->worker_sleeps, lane->socket);
  if (!wait_for_answer (lane, timeout_ms > 0 ? timeout_ms : self->timeout_ms))
    return fail_lost (self, error);
  TinyStatus status = head->status;
  if (status < 0) {
    error->vendor_code = head->error.vendor_code;
    memcpy (error->text, head->error.text, sizeof error->text);
    memcpy (error->hint, head->error.hint, sizeof error->hint);
  }
  return status;
}

TinyStatus
tiny_worker_call (TinyWorker *self,
                  WorkerVerb verb,
                  guint64 numbers[WORKER_NUMBERS],
                  TinyPluginError *error)
{
  TinyStatus status;
  TinyWorkerLane *lane = tiny_worker_begin (self, &status, error);
  if (lane == NULL)
    return status;
  memcpy (lane->head->numbers, numbers, sizeof lane->head->numbers);
  status = tiny_worker_lane_ask (lane, verb, 0, error);
  memcpy (numbers, lane->head->numbers, sizeof lane->head->numbers);
  tiny_worker_end (lane);
  return status;
}

/* ---- the process ---- */

/* With no standard streams but ours for errors, signals as a new program has them, in a group of its own. */
static int
spawn (const char *helper, int control, pid_t *out_pid)
{
  char descriptor[16];
  g_snprintf (descriptor, sizeof descriptor, "%d", WORKER_FD);
  const char *argv[] = { helper, descriptor, TINY_SCAN_WORKER, NULL };
  const int errors = fcntl (2, F_GETFD) < 0 ? -1 : 2;
  const TinySpawnEnd ends[] = { { control, WORKER_FD }, { errors, 1 }, { errors, 2 } };
  return tiny_spawn (helper, argv, NULL, TRUE, ends, G_N_ELEMENTS (ends), out_pid);
}

TinyWorker *
tiny_worker_new (guint timeout_ms, GError **error)
{
  g_autofree char *helper = tiny_scan_find_helper (error);
  int ends[2] = { -1, -1 };
  if (helper == NULL)
    return NULL;
  TinyWorker *self = g_new0 (TinyWorker, 1);
  self->ref_count = 1;
  self->n_forks = tiny_fork_count ();
  self->timeout_ms = timeout_ms;
  self->look_ns = worker_get_look_ns ();
  g_mutex_init (&self->lock);
  g_cond_init (&self->given);
  self->lanes = g_ptr_array_new_with_free_func (lane_free);
  self->idle = g_ptr_array_new ();
  int failure = socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0
                    ? spawn (helper, ends[1], &self->pid)
                    : errno;
  self->control = ends[0];
  if (ends[1] >= 0)
    close (ends[1]);
  if (failure == 0) {
    TinyWorkerLane *lane = lane_new (self);
    failure = lane != NULL ? 0 : errno;
    if (lane != NULL) {
      g_ptr_array_add (self->lanes, lane);
      g_ptr_array_add (self->idle, lane);
    }
  }
  if (failure == 0)
    return self;
  g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
               "the process for it (%s) cannot be started: %s", helper, g_strerror (failure));
  tiny_worker_unref (self);
  return NULL;
}

TinyWorker *
tiny_worker_ref (TinyWorker *self)
{
  g_atomic_int_inc (&self->ref_count);
  return self;
}

/* Lets the plugin end in order; whatever comes of that is of no interest any more. */
static void
finish (TinyWorker *self)
{
  guint64 numbers[WORKER_NUMBERS] = { 0 };
  TinyPluginError ignored;
  tiny_plugin_error_init (&ignored);
  self->timeout_ms = ENDS_WITHIN_MS;
  if (self->lanes->len > 0)
    tiny_worker_call (self, WORKER_UNLOAD, numbers, &ignored);
  if (!self->is_lost)
    end_process (self->pid, ENDS_WITHIN_MS);
}

void
tiny_worker_unref (TinyWorker *self)
{
  if (self == NULL || !g_atomic_int_dec_and_test (&self->ref_count))
    return;
  if (self->pid > 0 && !tiny_worker_is_lost (self))
    finish (self);
  if (self->control >= 0)
    close (self->control);
  g_ptr_array_unref (self->idle);
  g_ptr_array_unref (self->lanes);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->given);
  g_free (self->reason);
  g_free (self);
}
