/* SPDX-License-Identifier: MIT
 *
 * series.c: the order of commands, on a device that only claims operations: launches over the same buffers, told
 * apart by their numbers. */
#include <string.h>

#include "fresh.h"

typedef struct {
  ConfStep step;
  ConfRaw raw;
  TinyPluginProgram *program;
  guint number;
  char *failure;
} Rig;

static void
rig_end (Rig *self)
{
  conf_raw_unload (&self->raw, self->program);
  conf_step_clear (&self->step);
  conf_raw_end (&self->raw);
}

static gboolean
rig_begin (Rig *self, ConfTrial *trial, const ConfSubject *subject)
{
  memset (self, 0, sizeof *self);
  if (!conf_raw_begin (&self->raw, trial, subject))
    return FALSE;
  if (conf_step_init (&self->step, trial, subject))
    self->program = conf_step_build (&self->step, &self->raw);
  if (self->program == NULL)
    rig_end (self);
  return self->program != NULL;
}

enum { N_LAUNCHES = 12, MOST_BUFFERS = TINY_OPERATION_MAX_OPERANDS };

/* The memory of N_LAUNCHES launches, and the commands between it and the same buffers. */
typedef struct {
  guint8 *in[N_LAUNCHES][MOST_BUFFERS], *out[N_LAUNCHES];
  TinyPluginBuffer *buffers[MOST_BUFFERS];
  TinySpan spans[MOST_BUFFERS];
  GArray *commands;
} Series;

static void
series_add (Series *self, guint type, guint buffer, guint8 *host)
{
  const TinyCommand command
      = { .struct_size = sizeof command,
          .type = type,
          .dst = type == TINY_COMMAND_UPLOAD ? self->spans[buffer] : (TinySpan){ NULL, 0, 0 },
          .src = type == TINY_COMMAND_UPLOAD ? (TinySpan){ NULL, 0, 0 } : self->spans[buffer],
          .host = host };
  g_array_append_val (self->commands, command);
}

/* Inputs go up, the operation is launched, and its output comes down, again and again over the same buffers: each
 * launch sees what was uploaded just before, and each download what was computed just before. */
static gboolean
series_begin (Series *self, Rig *rig)
{
  memset (self, 0, sizeof *self);
  self->commands = g_array_new (FALSE, TRUE, sizeof (TinyCommand));
  if (!conf_step_alloc (&rig->step, &rig->raw, self->buffers))
    return FALSE;
  conf_step_get_spans (&rig->step, self->buffers, self->spans);
  for (guint i = 0; i < rig->step.n_buffers; i++)
    self->spans[i].n_bytes = conf_raw_round (&rig->raw, rig->step.n_bytes[i]);
  for (guint s = 0; s < N_LAUNCHES; s++) {
    for (guint i = 1; i < rig->step.n_buffers; i++) {
      self->in[s][i] = g_malloc0 (self->spans[i].n_bytes + 8);
      conf_step_fill (&rig->step, i, rig->number * 1000 + s, self->in[s][i]);
      series_add (self, TINY_COMMAND_UPLOAD, i, self->in[s][i]);
    }
    const TinyCommand launch = conf_step_dispatch (&rig->step, rig->program, self->spans);
    g_array_append_val (self->commands, launch);
    self->out[s] = g_malloc0 (self->spans[0].n_bytes + 8);
    series_add (self, TINY_COMMAND_DOWNLOAD, 0, self->out[s]);
  }
  return TRUE;
}

static void
series_end (Series *self, Rig *rig)
{
  conf_step_free (&rig->step, &rig->raw, self->buffers);
  for (guint s = 0; s < N_LAUNCHES; s++) {
    for (guint i = 0; i < MOST_BUFFERS; i++)
      g_free (self->in[s][i]);
    g_free (self->out[s]);
  }
  g_array_unref (self->commands);
}

/* args: whether all is one submission. */
static void
run_series (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  Rig rig;
  Series series;
  if (!rig_begin (&rig, trial, subject))
    return;
  gboolean good = series_begin (&series, &rig);
  const TinyCommand *all = (const TinyCommand *) (gconstpointer) series.commands->data;
  if (self->args[0])
    good
        = good && conf_raw_submit (&rig.raw, all, series.commands->len, "a series of launches");
  for (guint i = 0; i < series.commands->len && good && !self->args[0]; i++)
    good = conf_raw_submit (&rig.raw, &all[i], 1, "one of a series of launches");
  for (guint s = 0; s < N_LAUNCHES && good; s++)
    good = conf_step_check (&rig.step, trial, series.out[s], s, "one of a series of launches");
  series_end (&series, &rig);
  rig_end (&rig);
}

static void
run_times (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  Rig rig;
  Series series;
  if (!rig_begin (&rig, trial, subject))
    return;
  if (series_begin (&series, &rig)) {
    const guint n = series.commands->len;
    g_autofree guint64 *times = g_new (guint64, n + 1);
    TinySubmit work = { .struct_size = sizeof work,
                        .commands = (const TinyCommand *) (gconstpointer) series.commands->data,
                        .n_commands = n,
                        .out_ns = times };
    memset (times, 0xfe, (n + 1) * sizeof *times);
    gint64 begin = g_get_monotonic_time ();
    TinyStatus status = conf_table_submit (rig.raw.table, rig.raw.device, rig.raw.queue, &work,
                                           &rig.raw.error);
    const guint64 all_ns = (guint64) (g_get_monotonic_time () - begin + 1) * 1000;
    guint64 sum = 0;
    conf_check (trial, status == TINY_STATUS_OK, "submit: %s", rig.raw.error.text);
    for (guint i = 0; i < n; i++) {
      conf_check (trial, times[i] <= all_ns,
                  "command %u took %" G_GUINT64_FORMAT " ns, and all of it %" G_GUINT64_FORMAT,
                  i, times[i], all_ns);
      sum += MIN (times[i], all_ns);
    }
    conf_check (trial, sum <= all_ns, "the commands took longer than all of it");
    conf_check (trial, times[n] == G_GUINT64_CONSTANT (0xfefefefefefefefe),
                "a time is written behind the last");
  }
  series_end (&series, &rig);
  rig_end (&rig);
}

/* In a thread, with a queue of its own, and a program of its own or everybody's. */
static gpointer
work (gpointer data)
{
  Rig *self = data;
  TinyPluginError error = { .struct_size = sizeof error };
  TinyPluginQueue *queue = NULL;
  if (self->raw.table->queue_create != NULL
      && self->raw.table->queue_create (self->raw.device, &queue, &error) != TINY_STATUS_OK) {
    self->failure = g_strdup (error.text);
    return NULL;
  }
  for (guint round = 0; round < 4 && self->failure == NULL; round++) {
    Series series;
    gboolean good = series_begin (&series, self);
    TinySubmit work = { .struct_size = sizeof work,
                        .commands = (const TinyCommand *) (gconstpointer) series.commands->data,
                        .n_commands = series.commands->len };
    if (!good
        || conf_table_submit (self->raw.table, self->raw.device, queue, &work, &error)
               != TINY_STATUS_OK)
      self->failure = g_strdup_printf ("submit: %s", error.text);
    for (guint s = 0; s < N_LAUNCHES && self->failure == NULL; s++)
      if (!conf_step_check (&self->step, NULL, series.out[s], self->number * 1000 + s, ""))
        self->failure = g_strdup_printf ("launch %u of round %u is wrong", s, round);
    series_end (&series, self);
  }
  if (self->raw.table->queue_destroy != NULL)
    self->raw.table->queue_destroy (self->raw.device, queue);
  return NULL;
}

/* @n threads, each with its queue, all with one program. */
static void
work_together (ConfTrial *trial, const Rig *rig, guint n)
{
  enum { MOST = 8 };
  Rig workers[MOST];
  GThread *threads[MOST];
  n = MIN (n, MOST);
  for (guint i = 0; i < n; i++) {
    workers[i] = *rig;
    workers[i].number = i;
    threads[i] = g_thread_new ("conformance", work, &workers[i]);
  }
  for (guint i = 0; i < n; i++) {
    g_thread_join (threads[i]);
    conf_check (trial, workers[i].failure == NULL, "thread %u: %s", i, workers[i].failure);
    g_free (workers[i].failure);
  }
}

/* args: how many threads. */
static void
run_threads (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  Rig rig;
  if (!rig_begin (&rig, trial, subject))
    return;
  work_together (trial, &rig, (guint) self->args[0]);
  rig_end (&rig);
}

void
conf_list_series (ConfList *out)
{
  static const struct {
    const char *name;
    ConfCase self;
  } cases[] = {
    { "series/one-submit", { .run = run_series, .args = { 1 } } },
    { "series/many-submits", { .run = run_series, .args = { 0 } } },
    { "times", { .run = run_times, .flags = CONF_ALONE } },
    { "threads/2", { .run = run_threads, .args = { 2 } } },
    { "threads/8", { .run = run_threads, .level = CONF_FULL, .args = { 8 } } },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    conf_list_add (out, &cases[i].self, "%s", cases[i].name);
}

/* ---- soak ---- */
/* args: threads, seconds: series after series. The first quarter fills what is kept for reuse; the rest takes
 * nothing more. */
static gboolean
soak (ConfTrial *trial, Rig *rig, guint n, gint64 seconds)
{
  const gint64 end_us = g_get_monotonic_time () + seconds * G_USEC_PER_SEC;
  guint n_done = 0;
  for (; g_get_monotonic_time () < end_us && !conf_has_failed (trial); n_done++)
    work_together (trial, rig, n);
  conf_record (trial, "rounds", n_done, "rounds");
  return !conf_has_failed (trial);
}

void
conf_soak_series (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { LEAK_BYTES = 1 << 20 };
  const guint n = (guint) self->args[0];
  Rig rig;
  if (!rig_begin (&rig, trial, subject))
    return;
  soak (trial, &rig, n, (self->args[1] + 3) / 4);
  const ConfUsage before = conf_usage_get ();
  soak (trial, &rig, n, self->args[1] - self->args[1] / 4);
  const ConfUsage after = conf_usage_get ();
  conf_check (trial, after.n_fds <= before.n_fds && after.n_threads <= before.n_threads,
              "%u descriptors became %u, %u threads %u", before.n_fds, after.n_fds,
              before.n_threads, after.n_threads);
  conf_check (trial, after.malloc_bytes - before.malloc_bytes <= LEAK_BYTES,
              "it took %" G_GINT64_FORMAT " bytes of malloc() and kept them",
              after.malloc_bytes - before.malloc_bytes);
  rig_end (&rig);
}
