/* SPDX-License-Identifier: MIT
 *
 * faults-async.c: points, waiting, and memory that host and device cache apart. */
#include <pthread.h>
#include <unistd.h>

#include "broken.h"

/* ---- wait and reached ---- */
#define WAIT(name)                                                                             \
  static TinyStatus name (TinyPluginDevice *device, TinyPluginQueue *queue, uint64_t point,    \
                          uint64_t timeout_ns, TinyPluginError *error)
#define REACHED(name)                                                                          \
  static TinyStatus name (TinyPluginDevice *device, TinyPluginQueue *queue,                    \
                          uint64_t *out_point, TinyPluginError *error)

WAIT (wait_for_nothing)
{
  broken_note ();
  return TINY_STATUS_OK;
}

WAIT (wait_to_the_end)
{
  if (timeout_ns != UINT64_MAX)
    broken_note ();
  return inside.device->wait (device, queue, point, UINT64_MAX, error);
}

WAIT (wait_until_ok)
{
  const TinyStatus status = inside.device->wait (device, queue, point, timeout_ns, error);
  if (status != TINY_STATUS_TIMEOUT)
    return status;
  broken_note ();
  return TINY_STATUS_OK;
}

/* Microseconds where nanoseconds were meant. */
WAIT (wait_in_us)
{
  if (timeout_ns != 0 && timeout_ns != UINT64_MAX)
    broken_note ();
  const uint64_t ns = timeout_ns == UINT64_MAX ? timeout_ns : timeout_ns / 1000;
  return inside.device->wait (device, queue, point, ns, error);
}

WAIT (wait_for_ever)
{
  static _Atomic unsigned n;
  if (++n % 16 != 0)
    return inside.device->wait (device, queue, point, timeout_ns, error);
  broken_note ();
  for (;;)
    sleep (1000);
}

REACHED (reached_goes_back)
{
  static _Atomic unsigned n;
  TINY_TRY (inside.device->reached (device, queue, out_point, error));
  if (*out_point > 0 && ++n % 2 == 0) {
    broken_note ();
    --*out_point;
  }
  return TINY_STATUS_OK;
}

REACHED (reached_nothing)
{
  TINY_TRY (inside.device->reached (device, queue, out_point, error));
  if (*out_point > 0)
    broken_note ();
  *out_point = 0;
  return TINY_STATUS_OK;
}

/* ---- points ---- */
enum { MANY = 64 };
static struct {
  const TinyPluginQueue *queue;
  uint64_t point;
} last_points[MANY]; /* of each queue */
static pthread_mutex_t last_points_lock = PTHREAD_MUTEX_INITIALIZER;

static void
put_last_point (const TinyPluginQueue *queue, uint64_t point)
{
  size_t i = 0;
  pthread_mutex_lock (&last_points_lock);
  while (i < MANY - 1 && last_points[i].queue != queue && last_points[i].queue != NULL)
    i++;
  last_points[i].queue = queue;
  last_points[i].point = point;
  pthread_mutex_unlock (&last_points_lock);
}

static uint64_t
get_last_point (const TinyPluginQueue *queue)
{
  uint64_t point = 0;
  pthread_mutex_lock (&last_points_lock);
  for (size_t i = 0; i < MANY; i++)
    if (last_points[i].queue == queue)
      point = last_points[i].point;
  pthread_mutex_unlock (&last_points_lock);
  return point;
}

/* A new queue may lie where an old one lay. */
static TinyStatus
queue_new (TinyPluginDevice *device, TinyPluginQueue **out, TinyPluginError *error)
{
  TINY_TRY (inside.device->queue_create (device, out, error));
  put_last_point (*out, 0);
  return TINY_STATUS_OK;
}

SUBMIT (submit_and_note_point)
{
  TINY_TRY (inside.device->submit (device, queue, submit, error));
  put_last_point (queue, submit->out_point != NULL ? *submit->out_point : 0);
  return TINY_STATUS_OK;
}

/* What was submitted last, not what is done. */
REACHED (reached_last)
{
  TINY_TRY (inside.device->reached (device, queue, out_point, error));
  const uint64_t last = get_last_point (queue);
  if (last > *out_point) {
    broken_note ();
    *out_point = last;
  }
  return TINY_STATUS_OK;
}

SUBMIT (point_missing)
{
  TINY_TRY (inside.device->submit (device, queue, submit, error));
  if (submit->out_point != NULL && *submit->out_point != 0) {
    broken_note ();
    *submit->out_point = 0;
  }
  return TINY_STATUS_OK;
}

/* One point for two submissions, which is reached when the first of them is. */
SUBMIT (point_shared)
{
  TINY_TRY (inside.device->submit (device, queue, submit, error));
  if (submit->out_point != NULL && *submit->out_point > 1 && *submit->out_point % 2 == 0) {
    broken_note ();
    --*submit->out_point;
  }
  return TINY_STATUS_OK;
}

/* Points count down. */
enum { TOP = 1 << 30 };

SUBMIT (point_goes_back)
{
  TINY_TRY (inside.device->submit (device, queue, submit, error));
  if (submit->out_point != NULL && *submit->out_point != 0) {
    broken_note ();
    *submit->out_point = TOP - *submit->out_point;
  }
  return TINY_STATUS_OK;
}

/* Submissions of other sizes go past the fault. */
WAIT (wait_back)
{
  const uint64_t inner = point > TOP / 2 ? TOP - point : point;
  return inside.device->wait (device, queue, inner, timeout_ns, error);
}

REACHED (reached_back)
{
  TINY_TRY (inside.device->reached (device, queue, out_point, error));
  *out_point = *out_point > 0 ? TOP - *out_point : 0;
  return TINY_STATUS_OK;
}

SUBMIT (few_in_flight)
{
  uint64_t reached = 0;
  const uint64_t last = get_last_point (queue);
  TINY_TRY (inside.device->reached (device, queue, &reached, error));
  if (reached < last && last - reached >= 4) {
    broken_note ();
    return tiny_fail (error, TINY_STATUS_BUSY, "the ring is full");
  }
  return submit_and_note_point (device, queue, submit, error);
}

/* Times are written by submit(), when nothing was done yet. */
SUBMIT (times_at_once)
{
  TinySubmit other = *submit;
  other.out_ns = NULL;
  TINY_TRY (inside.device->submit (device, queue, &other, error));
  for (uint32_t i = 0; submit->out_ns != NULL && i < submit->n_commands; i++) {
    broken_note ();
    submit->out_ns[i] = 0;
  }
  return TINY_STATUS_OK;
}

/* ---- submissions that fail ---- */
/* What stood before the command that cannot be is run after all. */
SUBMIT (failed_runs)
{
  uint64_t point = 0;
  const TinyStatus status = inside.device->submit (device, queue, submit, error);
  if (status == TINY_STATUS_OK || submit->n_commands < 2)
    return status;
  TinySubmit part = *submit;
  part.n_commands = 1;
  part.out_ns = NULL;
  part.out_point = &point;
  broken_note ();
  TinyPluginError unheard = { .struct_size = sizeof unheard };
  inside.device->submit (device, queue, &part, &unheard);
  return status;
}

SUBMIT (failed_has_point)
{
  const TinyStatus status = inside.device->submit (device, queue, submit, error);
  if (status != TINY_STATUS_OK && submit->out_point != NULL) {
    broken_note ();
    *submit->out_point = 1;
  }
  return status;
}

static const TinyPluginQueue *_Atomic given_up;

SUBMIT (failed_for_good)
{
  if (queue == given_up) {
    broken_note ();
    return tiny_fail (error, TINY_STATUS_LAUNCH, "the queue is in error");
  }
  const TinyStatus status = inside.device->submit (device, queue, submit, error);
  if (status != TINY_STATUS_OK)
    given_up = queue;
  return status;
}

static TinyStatus
queue_new_or_again (TinyPluginDevice *device, TinyPluginQueue **out, TinyPluginError *error)
{
  TINY_TRY (inside.device->queue_create (device, out, error));
  given_up = NULL;
  return TINY_STATUS_OK;
}

/* ---- queues ---- */
static TinyPluginQueue *_Atomic newest;

static TinyStatus
queue_newest (TinyPluginDevice *device, TinyPluginQueue **out, TinyPluginError *error)
{
  TINY_TRY (queue_new (device, out, error));
  newest = *out;
  return TINY_STATUS_OK;
}

static void
queue_end (TinyPluginDevice *device, TinyPluginQueue *queue)
{
  if (queue == newest)
    newest = NULL;
  inside.device->queue_destroy (device, queue);
}

/* One fence for all queues: that of the one made last. */
WAIT (wait_for_newest)
{
  TinyPluginQueue *other = newest;
  if (other == NULL || other == queue)
    return inside.device->wait (device, queue, point, timeout_ns, error);
  const uint64_t last = get_last_point (other);
  broken_note ();
  return inside.device->wait (device, other, point < last ? point : last, timeout_ns, error);
}

/* ---- memory ---- */
#define SYNC(name)                                                                             \
  static TinyStatus name (TinyPluginDevice *device, const TinySpan *span, uint32_t direction,  \
                          TinyPluginError *error)

SYNC (sync_nothing)
{
  broken_note ();
  return TINY_STATUS_OK;
}

SYNC (sync_to_device_only)
{
  if (direction == TINY_SYNC_TO_DEVICE)
    return inside.device->sync (device, span, direction, error);
  broken_note ();
  return TINY_STATUS_OK;
}

SYNC (sync_to_host_only)
{
  if (direction == TINY_SYNC_TO_HOST)
    return inside.device->sync (device, span, direction, error);
  broken_note ();
  return TINY_STATUS_OK;
}

SYNC (sync_first_line)
{
  TinySpan first = *span;
  if (first.n_bytes > 64) {
    broken_note ();
    first.n_bytes = 64;
  }
  return inside.device->sync (device, &first, direction, error);
}

SYNC (sync_from_start)
{
  TinySpan first = *span;
  if (first.offset > 0)
    broken_note ();
  first.offset = 0;
  return inside.device->sync (device, &first, direction, error);
}

/* What lies beside the span on its lines is taken over as well. */
SYNC (sync_whole_lines)
{
  enum { LINE = 64 };
  TinySpan lines = *span;
  lines.offset = span->offset / LINE * LINE;
  lines.n_bytes = (span->offset + span->n_bytes + LINE - 1) / LINE * LINE - lines.offset;
  const uint64_t size = sizes_get (span->buffer);
  if (size > 0 && lines.offset + lines.n_bytes > size)
    lines.n_bytes = size - lines.offset;
  if (lines.offset != span->offset || lines.n_bytes != span->n_bytes)
    broken_note ();
  return inside.device->sync (device, &lines, direction, error);
}

#define CASES "points/*|memory/*|order/*"
#define ROW(row_name, row_what, row_seen, ...)                                                 \
  {                                                                                            \
    .name = row_name, .what = row_what, .seen = row_seen, .around = "SAMPLE", .cases = CASES,  \
    .device                                                                                    \
        = { __VA_ARGS__ }                                                                      \
  }
static const Fault rows[] = {
  /* clang-format off */
  ROW ("wait-returns-early", "wait() returns before the point is reached", "fences that are not looked at", .wait = wait_for_nothing),
  ROW ("wait-without-timeout", "wait() does not heed its time-out", "drivers that only wait for ever", .wait = wait_to_the_end),
  ROW ("wait-timeout-ok", "wait() is OK after its time-out", "a time-out that is no failure to the driver", .wait = wait_until_ok),
  ROW ("wait-us", "wait() takes microseconds", "units", .wait = wait_in_us),
  ROW ("hang-at-wait", "every 16th wait() does not return", "interrupts that get lost", .wait = wait_for_ever),
  ROW ("reached-goes-back", "reached() goes back", "two counters read at two times", .reached = reached_goes_back),
  ROW ("reached-nothing", "reached() is 0 for ever", "a stub", .reached = reached_nothing),
  ROW ("reached-submitted", "reached() gives what was submitted", "the ring's head for its tail", .reached = reached_last, .submit = submit_and_note_point, .queue_create = queue_new),
  ROW ("point-missing", "submit() gives no point although the work goes on", "an out parameter forgotten", .submit = point_missing),
  ROW ("point-shared", "two submissions have one point, that of the first", "a counter advanced by batches", .submit = point_shared),
  ROW ("point-goes-back", "points count down", "unsigned numbers that wrap", .submit = point_goes_back, .wait = wait_back, .reached = reached_back),
  ROW ("in-flight-4", "a fifth submission in flight fails", "rings that are short", .submit = few_in_flight, .queue_create = queue_new),
  ROW ("failed-runs", "what stood before a command that cannot be runs after submit() has failed", "a ring that is not rewound", .submit = failed_runs),
  ROW ("failed-has-point", "a submit() that fails gives a point", "an out parameter written too early", .submit = failed_has_point),
  ROW ("failed-for-good", "after a submit() that failed the queue takes nothing", "an error flag that nobody clears", .submit = failed_for_good, .queue_create = queue_new_or_again),
  ROW ("wait-other-queue", "wait() waits for the queue made last", "one fence for all queues", .wait = wait_for_newest, .submit = submit_and_note_point, .queue_create = queue_newest, .queue_destroy = queue_end),
  ROW ("times-at-once", "times are written before the work is done", "time stamps read by the caller's thread", .submit = times_at_once),
  ROW ("sync-nothing", "sync() does nothing", "a stub on a machine that happened to be coherent", .sync = sync_nothing),
  ROW ("sync-not-to-host", "sync() to the host does nothing", "caches that are cleaned and not invalidated", .sync = sync_to_device_only),
  ROW ("sync-not-to-device", "sync() to the device does nothing", "caches that are invalidated and not cleaned", .sync = sync_to_host_only),
  ROW ("sync-first-line", "sync() does one line of the cache", "a loop without a loop", .sync = sync_first_line),
  ROW ("sync-from-start", "sync() begins at the start of the buffer", "an offset forgotten", .sync = sync_from_start),
  ROW ("sync-beside", "sync() takes what lies beside the span as well", "caches that are invalidated by whole lines", .sync = sync_whole_lines, .alloc = sizes_alloc, .free = sizes_free),
  /* clang-format on */
};
FAULT_TABLE (faults_async);
