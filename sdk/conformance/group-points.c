/* SPDX-License-Identifier: MIT
 *
 * group-points.c: the timeline of an asynchronous queue: points ascend, what is behind a point that was
 * waited for is there, what was refused does not run, and waiting ends when it was told to.
 *
 * Work here is a launch that takes as long as it is told, and a download of its result into memory
 * of its own. Commands, spans and variables are overwritten as soon as submit() has returned. */
#include <string.h>

#include "device/device-private.h"
#include "fresh.h"

enum { N = 256, N_BYTES = N * sizeof (guint32), N_TRIES = 3 };
enum { LONG_US = 40000, MOST_ROUNDS = 1 << 28, MOST_SECONDS = 30, STUCK_SECONDS = 5 };
static const guint64 no_time = G_GUINT64_CONSTANT (0xfefefefefefefefe);

/* out[i] = in[i], stirred as often as the variable says */
typedef struct {
  ConfRaw raw;
  ConfScript script;
  TinyPluginProgram *program;
  TinyPluginBuffer *out, *in;
  guint32 most_rounds; /* of one launch */
  guint32 long_rounds; /* that take about @long_us */
  gint64 long_us;
} Rig;

/* One submission. */
typedef struct {
  guint64 point, ns[2];
  guint32 rounds, words[N];
} Flight;

/* ---- submitting and waiting ---- */
static TinyStatus
launch_on (Rig *self, TinyPluginQueue *queue, Flight *flight, guint32 rounds)
{
  gint64 variable = rounds;
  TinySpan spans[] = { { self->out, 0, N_BYTES }, { self->in, 0, N_BYTES } };
  TinyCommand commands[]
      = { conf_dispatch (self->program, conf_script_get (&self->script), spans, &variable),
          { .struct_size = sizeof (TinyCommand),
            .type = TINY_COMMAND_DOWNLOAD,
            .src = { self->out, 0, N_BYTES },
            .host = flight->words } };
  TinySubmit work = { .struct_size = sizeof work,
                      .commands = commands,
                      .n_commands = G_N_ELEMENTS (commands),
                      .out_ns = flight->ns,
                      .out_point = &flight->point };
  *flight = (Flight){ .rounds = rounds, .ns = { no_time, no_time } };
  TinyStatus status
      = self->raw.table->submit (self->raw.device, queue, &work, &self->raw.error);
  memset (&variable, 0x55, sizeof variable);
  memset (spans, 0x55, sizeof spans);
  memset (commands, 0x55, sizeof commands);
  memset (&work, 0x55, sizeof work);
  return status;
}

static gboolean
launch (Rig *self, Flight *flight, guint32 rounds)
{
  TinyStatus status = launch_on (self, self->raw.queue, flight, rounds);
  return conf_check (self->raw.trial, status == TINY_STATUS_OK, "submit: %s: %s",
                     conf_status_to_string (status), self->raw.error.text);
}

static TinyStatus
wait_on (Rig *self, TinyPluginQueue *queue, guint64 point, guint64 timeout_ns)
{
  memset (&self->raw.error, 0, sizeof self->raw.error);
  self->raw.error.struct_size = sizeof self->raw.error;
  return point == 0 ? TINY_STATUS_OK
                    : self->raw.table->wait (self->raw.device, queue, point, timeout_ns,
                                             &self->raw.error);
}

/* That all of it is there, which its point, or none, says. */
static gboolean
check_done (Rig *self, const Flight *flight, const char *when)
{
  for (guint i = 0; i < N; i++) {
    guint32 wanted = conf_stir (i, flight->rounds);
    if (!conf_check (self->raw.trial, flight->words[i] == wanted,
                     "%s: element %u of what was behind point %" G_GUINT64_FORMAT
                     " is %u, and %u is right",
                     when, i, flight->point, flight->words[i], wanted))
      return FALSE;
  }
  return conf_check (self->raw.trial, flight->ns[0] != no_time && flight->ns[1] != no_time,
                     "%s: the times behind point %" G_GUINT64_FORMAT " are not written", when,
                     flight->point);
}

static gboolean
land (Rig *self, TinyPluginQueue *queue, const Flight *flight, const char *when)
{
  TinyStatus status = wait_on (self, queue, flight->point, UINT64_MAX);
  return conf_check (self->raw.trial, status == TINY_STATUS_OK,
                     "%s: wait() for point %" G_GUINT64_FORMAT ": %s: %s", when, flight->point,
                     conf_status_to_string (status), self->raw.error.text)
         && check_done (self, flight, when);
}

/* ---- the rig ---- */
static void
rig_end (Rig *self)
{
  conf_raw_unload (&self->raw, self->program);
  conf_raw_free (&self->raw, self->out);
  conf_raw_free (&self->raw, self->in);
  conf_script_clear (&self->script);
  conf_raw_end (&self->raw);
}

static gboolean
rig_begin (Rig *self, ConfTrial *trial, const ConfSubject *subject)
{
  guint32 words[N];
  memset (self, 0, sizeof *self);
  if (!conf_raw_begin (&self->raw, trial, subject))
    return FALSE;
  self->most_rounds = (guint32) conf_most_rounds (subject->target, MOST_ROUNDS);
  conf_script_init_stir (&self->script, N);
  for (guint i = 0; i < N; i++)
    words[i] = i;
  self->program = conf_raw_build (&self->raw, subject, &self->script);
  self->out = conf_raw_alloc (&self->raw, N_BYTES);
  self->in = conf_raw_alloc (&self->raw, N_BYTES);
  if (!conf_has_failed (trial) && conf_raw_upload (&self->raw, self->in, 0, words, N_BYTES))
    return TRUE;
  rig_end (self);
  return FALSE;
}

/* Finds out what takes long enough to be looked at while it runs. */
static gboolean
rig_measure (Rig *self)
{
  Flight flight;
  for (guint32 rounds = 1000; rounds < self->most_rounds; rounds *= 4) {
    gint64 begin = g_get_monotonic_time ();
    if (!launch (self, &flight, rounds) || !land (self, self->raw.queue, &flight, "a launch"))
      return FALSE;
    self->long_rounds = rounds;
    self->long_us = g_get_monotonic_time () - begin;
    if (self->long_us >= LONG_US)
      break;
  }
  return conf_check (self->raw.trial, flight.ns[0] > 0,
                     "a launch of %" G_GINT64_FORMAT " µs is said to have taken 0 ns",
                     self->long_us);
}

/* ---- cases ---- */
/* As many as may be in flight; each is there when its point is reached. */
static void
run_ascending (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  g_autofree Flight *flights = g_new0 (Flight, TINY_MAX_IN_FLIGHT);
  guint64 last = 0, reached = 0;
  guint n = 0;
  Rig rig;
  if (!rig_begin (&rig, trial, subject))
    return;
  for (; n < TINY_MAX_IN_FLIGHT && launch (&rig, &flights[n], n + 1); n++) {
    guint64 point = flights[n].point;
    conf_check (trial, point == 0 || point > last,
                "submission %u has point %" G_GUINT64_FORMAT
                ", the one before it had %" G_GUINT64_FORMAT,
                n, point, last);
    for (guint i = 0; point == 0 && i <= n && !conf_has_failed (trial); i++)
      check_done (&rig, &flights[i], "after a submission without a point");
    last = MAX (last, point);
  }
  for (guint i = 0; i < n && !conf_has_failed (trial); i++)
    land (&rig, rig.raw.queue, &flights[i], "many in flight");
  if (last > 0)
    wait_on (&rig, rig.raw.queue, last, UINT64_MAX);
  if (!conf_has_failed (trial)) {
    TinyStatus status
        = rig.raw.table->reached (rig.raw.device, rig.raw.queue, &reached, &rig.raw.error);
    conf_check (trial, status == TINY_STATUS_OK && reached >= last,
                "reached(): %s, point %" G_GUINT64_FORMAT ", after point %" G_GUINT64_FORMAT
                " was waited for",
                conf_status_to_string (status), reached, last);
  }
  rig_end (&rig);
}

/* wait() that only looks, one that ends before the work does, one that has time enough. */
static void
try_timeouts (Rig *rig, gboolean *out_looked)
{
  ConfTrial *trial = rig->raw.trial;
  TinyPluginQueue *queue = rig->raw.queue;
  const gint64 short_us = rig->long_us / 4;
  Flight flight;
  if (!launch (rig, &flight, rig->long_rounds))
    return;
  gint64 begin = g_get_monotonic_time ();
  TinyStatus status = wait_on (rig, queue, flight.point, 0);
  gint64 looked_us = g_get_monotonic_time () - begin;
  conf_check (trial,
              status == TINY_STATUS_OK
                  || (status == TINY_STATUS_TIMEOUT && rig->raw.error.text[0] != 0),
              "wait() that only looks: %s: “%s”", conf_status_to_string (status),
              rig->raw.error.text);
  *out_looked = *out_looked || looked_us < rig->long_us / 2;
  if (status == TINY_STATUS_OK)
    check_done (rig, &flight, "after wait() that only looks");
  begin = g_get_monotonic_time ();
  status = wait_on (rig, queue, flight.point, (guint64) short_us * 1000);
  gint64 waited_us = g_get_monotonic_time () - begin;
  conf_check (trial, status == TINY_STATUS_OK || waited_us >= short_us * 9 / 10,
              "wait() for up to %" G_GINT64_FORMAT " µs gave up after %" G_GINT64_FORMAT,
              short_us, waited_us);
  if (status == TINY_STATUS_OK)
    check_done (rig, &flight, "after wait() for a part of its time");
  status = wait_on (rig, queue, flight.point, MOST_SECONDS * G_GUINT64_CONSTANT (1000000000));
  conf_check (trial, status == TINY_STATUS_OK, "wait() for up to %d s: %s: %s",
              (int) MOST_SECONDS, conf_status_to_string (status), rig->raw.error.text);
  land (rig, queue, &flight, "after waiting in parts");
}

static void
run_timeout (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  gboolean looked = FALSE;
  Rig rig;
  if (!rig_begin (&rig, trial, subject))
    return;
  if (rig_measure (&rig)) {
    for (guint i = 0; i < N_TRIES && !conf_has_failed (trial) && !(looked && i > 0); i++)
      try_timeouts (&rig, &looked);
    conf_check (trial, looked || conf_has_failed (trial),
                "wait() that only looks takes more than half of the %" G_GINT64_FORMAT
                " µs that the work does",
                rig.long_us);
  }
  rig_end (&rig);
}

/* reached() never goes back, never runs ahead, and comes to the end. */
static void
run_reached (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { MANY = 4 };
  Flight flights[MANY];
  guint64 before = 0, now = 0;
  guint n = 0, n_done = 0;
  Rig rig;
  if (!rig_begin (&rig, trial, subject))
    return;
  if (rig_measure (&rig))
    while (n < MANY && launch (&rig, &flights[n], rig.long_rounds + n))
      n++;
  const guint64 last = n > 0 ? flights[n - 1].point : 0;
  gint64 end = g_get_monotonic_time () + STUCK_SECONDS * G_USEC_PER_SEC + 50 * rig.long_us;
  while (now < last && !conf_has_failed (trial)) {
    TinyStatus status
        = rig.raw.table->reached (rig.raw.device, rig.raw.queue, &now, &rig.raw.error);
    conf_check (trial, status == TINY_STATUS_OK, "reached(): %s: %s",
                conf_status_to_string (status), rig.raw.error.text);
    conf_check (trial, now >= before,
                "reached() went back from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT, before,
                now);
    conf_check (trial, now <= last,
                "reached() says %" G_GUINT64_FORMAT
                ", and the last point is %" G_GUINT64_FORMAT,
                now, last);
    for (; n_done < n && flights[n_done].point <= now && !conf_has_failed (trial); n_done++)
      check_done (&rig, &flights[n_done], "when reached() said so");
    conf_check (trial, g_get_monotonic_time () < end,
                "reached() says %" G_GUINT64_FORMAT " and does not come to %" G_GUINT64_FORMAT,
                now, last);
    before = now;
  }
  if (n > 0) /* the memory is ours until then */
    wait_on (&rig, rig.raw.queue, last, UINT64_MAX);
  rig_end (&rig);
}

/* What submit() refuses has no point and runs no more, what was there before it goes on, and the queue as well. */
static void
run_refused (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  guint32 words[N], found[N];
  guint64 point = 0;
  Flight before, after;
  Rig rig;
  if (!rig_begin (&rig, trial, subject))
    return;
  TinyPluginBuffer *scratch = conf_raw_alloc (&rig.raw, N_BYTES);
  memset (words, 1, sizeof words);
  if (scratch != NULL && conf_raw_upload (&rig.raw, scratch, 0, words, N_BYTES)
      && rig_measure (&rig) && launch (&rig, &before, rig.long_rounds)) {
    const TinyCommand commands[] = { { .struct_size = sizeof (TinyCommand),
                                       .type = TINY_COMMAND_UPLOAD,
                                       .dst = { scratch, 0, N_BYTES },
                                       .host = words },
                                     { .struct_size = sizeof (TinyCommand), .type = 99 } };
    const TinySubmit work = { .struct_size = sizeof work,
                              .commands = commands,
                              .n_commands = G_N_ELEMENTS (commands),
                              .out_point = &point };
    memset (words, 2, sizeof words);
    TinyStatus status
        = rig.raw.table->submit (rig.raw.device, rig.raw.queue, &work, &rig.raw.error);
    memset (words, 3, sizeof words);
    conf_check (trial, status < 0, "submit of an unknown command: %s",
                conf_status_to_string (status));
    conf_check (trial, point == 0, "a submit that failed has point %" G_GUINT64_FORMAT, point);
    land (&rig, rig.raw.queue, &before, "behind which a submit failed");
    if (!conf_has_failed (trial) && launch (&rig, &after, 5)
        && land (&rig, rig.raw.queue, &after, "after a submit that failed")) {
      conf_check (trial, after.point == 0 || after.point > before.point,
                  "after a submit that failed point %" G_GUINT64_FORMAT
                  " follows %" G_GUINT64_FORMAT,
                  after.point, before.point);
      if (conf_raw_download (&rig.raw, scratch, 0, found, N_BYTES))
        conf_check (trial, found[0] != 0x03030303u && found[N - 1] != 0x03030303u,
                    "a command of a submit that failed ran after it returned");
    }
  }
  conf_raw_free (&rig.raw, scratch);
  rig_end (&rig);
}

/* Each queue has its own timeline: long work on one, short work on the other. */
static void
run_queues (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { SHORT = 6 };
  Flight long_one, short_ones[SHORT];
  ConfRaw other;
  Rig rig, beside;
  guint n = 0;
  if (!rig_begin (&rig, trial, subject))
    return;
  if (rig_measure (&rig) && conf_raw_begin (&other, trial, subject)) {
    beside = rig; /* the same program, a result of its own */
    beside.out = conf_raw_alloc (&other, N_BYTES);
    gboolean good = beside.out != NULL && launch (&rig, &long_one, rig.long_rounds);
    while (good && n < SHORT
           && conf_check (
               trial, launch_on (&beside, other.queue, &short_ones[n], n + 7) == TINY_STATUS_OK,
               "submit on another queue: %s", beside.raw.error.text))
      n++;
    for (guint i = 0; i < n; i++)
      land (&beside, other.queue, &short_ones[i], "beside long work on another queue");
    if (good)
      land (&rig, rig.raw.queue, &long_one, "beside short work on another queue");
    conf_raw_free (&other, beside.out);
    conf_raw_end (&other);
  }
  rig_end (&rig);
}

static void
list (const ConfSubject *subject, ConfList *out)
{
  static const struct {
    const char *name;
    ConfCase self;
  } cases[] = {
    { "ascending", { .run = run_ascending } },
    { "timeout", { .run = run_timeout, .flags = CONF_ALONE } },
    { "reached", { .run = run_reached } },
    { "refused", { .run = run_refused } },
    { "queues", { .run = run_queues } },
  };
  if (subject->device == NULL)
    return;
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    if (subject->device->table.wait != NULL)
      conf_list_add (out, &cases[i].self, "%s", cases[i].name);
    else
      conf_list_absent (out, "the device is synchronous: it has no wait()", "%s",
                        cases[i].name);
}

const ConfGroup conf_group_points
    = { "points", "an asynchronous queue's timeline says what is done, and waits", list };
