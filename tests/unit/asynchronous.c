/* SPDX-License-Identifier: MIT
 *
 * asynchronous.c: see there. */
#include "asynchronous.h"

#include <string.h>

typedef struct {
  TinyCommand *commands;
  TinySpan *spans;
  guint n_commands;
  uint64_t *out_ns;
  guint64 point;
  gboolean fails;
} Work;

struct TinyPluginQueue {
  TinyPluginDevice *device;
  TinyPluginQueue *own;
  GThread *thread;
  GQueue pending; /* Work; the head may be running */
  guint64 given, reached;
  TinyStatus status; /* negative: broken */
  gboolean ends;
};

Asynchronous asynchronous;
static const TinyDeviceTable *base;
static GMutex lock;
static GCond changed;
static GList *queues;

/* ---- doing the work ---- */
static void
work_free (gpointer data)
{
  Work *work = data;
  g_free (work->commands);
  g_free (work->spans);
  g_free (work);
}

static gboolean
may_run (const TinyPluginQueue *queue)
{
  return queue->pending.head != NULL
         && (queue->status < 0 || asynchronous.is_lost || asynchronous.gate != 0);
}

/* Under the lock, which is open while the work is done. */
static void
run_first (TinyPluginQueue *queue)
{
  Work *work = queue->pending.head->data;
  if (asynchronous.gate > 0)
    asynchronous.gate--;
  g_mutex_unlock (&lock);
  const TinySubmit submit = { .struct_size = sizeof submit,
                              .commands = work->commands,
                              .n_commands = work->n_commands,
                              .out_ns = work->out_ns };
  TinyPluginError error = { .struct_size = sizeof error };
  TinyStatus status = work->fails ? TINY_STATUS_LAUNCH
                                  : base->submit (queue->device, queue->own, &submit, &error);
  g_mutex_lock (&lock);
  if (status < 0)
    queue->status = status;
  else if (!asynchronous.is_lost)
    queue->reached = work->point;
  work_free (g_queue_pop_head (&queue->pending));
}

static gpointer
run_queue (gpointer data)
{
  TinyPluginQueue *queue = data;
  g_mutex_lock (&lock);
  while (!queue->ends || queue->pending.head != NULL) {
    while (!may_run (queue) && !queue->ends)
      g_cond_wait (&changed, &lock);
    if (queue->status < 0 || asynchronous.is_lost) /* what is behind a failure does not run */
      g_queue_clear_full (&queue->pending, work_free);
    else if (queue->pending.head != NULL)
      run_first (queue);
    g_cond_broadcast (&changed);
  }
  g_mutex_unlock (&lock);
  return NULL;
}

/* ---- the table ---- */
static TinyStatus
queue_create (TinyPluginDevice *device, TinyPluginQueue **out, TinyPluginError *error)
{
  TinyPluginQueue *queue = g_new0 (TinyPluginQueue, 1);
  queue->device = device;
  if (base->queue_create != NULL)
    base->queue_create (device, &queue->own, error);
  g_mutex_lock (&lock);
  queues = g_list_prepend (queues, queue);
  asynchronous.n_queues++;
  g_mutex_unlock (&lock);
  queue->thread = g_thread_new ("queue", run_queue, queue);
  *out = queue;
  return TINY_STATUS_OK;
}

/* The core has waited for all of it. */
static void
queue_destroy (TinyPluginDevice *device, TinyPluginQueue *queue)
{
  g_mutex_lock (&lock);
  g_assert_true (queue->pending.head == NULL || queue->status < 0 || asynchronous.is_lost);
  queue->ends = TRUE;
  g_cond_broadcast (&changed);
  g_mutex_unlock (&lock);
  g_thread_join (queue->thread);
  g_mutex_lock (&lock);
  queues = g_list_remove (queues, queue);
  g_mutex_unlock (&lock);
  if (base->queue_destroy != NULL)
    base->queue_destroy (device, queue->own);
  g_free (queue);
}

static TinyStatus
answer (const TinyPluginQueue *queue, TinyPluginError *error)
{
  TinyStatus status = asynchronous.is_lost ? TINY_STATUS_DEVICE_LOST : queue->status;
  g_strlcpy (error->text, status == TINY_STATUS_DEVICE_LOST ? "it is gone" : "a kernel failed",
             sizeof error->text);
  return status;
}

/* A copy: nothing of @submit lives longer than the call. */
static Work *
work_new (const TinySubmit *submit)
{
  Work *work = g_new0 (Work, 1);
  guint n = 0;
  for (guint i = 0; i < submit->n_commands; i++)
    n += submit->commands[i].n_buffers;
  work->commands = g_memdup2 (submit->commands, submit->n_commands * sizeof (TinyCommand));
  work->spans = g_new0 (TinySpan, n + 1);
  work->n_commands = submit->n_commands;
  work->out_ns = submit->out_ns;
  for (guint i = 0, at = 0; i < submit->n_commands; at += work->commands[i++].n_buffers) {
    if (work->commands[i].n_buffers > 0)
      memcpy (work->spans + at, work->commands[i].buffers,
              work->commands[i].n_buffers * sizeof (TinySpan));
    work->commands[i].buffers = work->spans + at;
  }
  return work;
}

static TinyStatus
submit (TinyPluginDevice *device,
        TinyPluginQueue *queue,
        const TinySubmit *submit,
        TinyPluginError *error)
{
  g_assert_nonnull (submit->out_point);
  g_assert_cmpuint (*submit->out_point, ==, 0);
  g_mutex_lock (&lock);
  TinyStatus status = answer (queue, error);
  if (status >= 0) {
    Work *work = work_new (submit);
    /* They need not be numbers in a row. */
    work->point
        = asynchronous.goes_back ? 1 : queue->given + 1 + asynchronous.n_submissions % 2 * 4;
    queue->given = *submit->out_point = work->point;
    work->fails = asynchronous.n_submissions++ == asynchronous.fail_at;
    g_queue_push_tail (&queue->pending, work);
    asynchronous.most_in_flight
        = MAX (asynchronous.most_in_flight, (gint) queue->pending.length);
    g_cond_broadcast (&changed);
  }
  g_mutex_unlock (&lock);
  return status;
}

static TinyStatus
wait_for (TinyPluginDevice *device,
          TinyPluginQueue *queue,
          uint64_t point,
          uint64_t timeout_ns,
          TinyPluginError *error)
{
  gint64 end = timeout_ns == UINT64_MAX
                   ? G_MAXINT64
                   : g_get_monotonic_time () + (gint64) (timeout_ns / 1000);
  TinyStatus status = TINY_STATUS_OK;
  g_mutex_lock (&lock);
  g_assert_cmpuint (point, <=, queue->given);
  gboolean in_time = TRUE;
  while (queue->reached < point && (status = answer (queue, error)) >= 0 && in_time)
    in_time = g_cond_wait_until (&changed, &lock, end);
  if (queue->reached < point && status >= 0)
    status = TINY_STATUS_TIMEOUT;
  if (status >= 0 || status == TINY_STATUS_TIMEOUT)
    error->text[0] = 0;
  g_mutex_unlock (&lock);
  return status;
}

static TinyStatus
reached (TinyPluginDevice *device,
         TinyPluginQueue *queue,
         uint64_t *out_point,
         TinyPluginError *error)
{
  g_mutex_lock (&lock);
  *out_point = queue->reached;
  TinyStatus status = answer (queue, error);
  g_mutex_unlock (&lock);
  return status;
}

static gboolean
uses (const Work *work, const TinyPluginBuffer *buffer)
{
  for (guint i = 0; i < work->n_commands; i++) {
    const TinyCommand *command = &work->commands[i];
    gboolean does = command->dst.buffer == buffer || command->src.buffer == buffer;
    for (guint k = 0; k < command->n_buffers; k++)
      does = does || command->buffers[k].buffer == buffer;
    if (does)
      return TRUE;
  }
  return FALSE;
}

static void
free_buffer (TinyPluginDevice *device, TinyPluginBuffer *buffer)
{
  g_mutex_lock (&lock);
  for (GList *q = queues; q != NULL && !asynchronous.is_lost; q = q->next)
    for (GList *w = ((TinyPluginQueue *) q->data)->pending.head; w != NULL; w = w->next)
      g_assert_false (uses (w->data, buffer));
  g_mutex_unlock (&lock);
  base->free (device, buffer);
}

static void
program_unload (TinyPluginDevice *device, TinyPluginProgram *program)
{
  g_mutex_lock (&lock);
  for (GList *q = queues; q != NULL && !asynchronous.is_lost; q = q->next)
    g_assert_null (((TinyPluginQueue *) q->data)->pending.head);
  g_mutex_unlock (&lock);
  base->program_unload (device, program);
}

TinyDeviceTable
asynchronous_wrap (const TinyDeviceTable *own)
{
  TinyDeviceTable table = { 0 };
  base = own;
  memcpy (&table, own, MIN (own->struct_size, sizeof table));
  table.struct_size = sizeof table;
  table.queue_create = queue_create;
  table.queue_destroy = queue_destroy;
  table.submit = submit;
  table.wait = wait_for;
  table.reached = reached;
  table.free = free_buffer;
  table.program_unload = program_unload;
  return table;
}

/* ---- what tests say ---- */
void
asynchronous_reset (void)
{
  g_mutex_lock (&lock);
  asynchronous = (Asynchronous){ .gate = -1, .fail_at = -1 };
  g_mutex_unlock (&lock);
}

void
asynchronous_fail (gint n)
{
  g_mutex_lock (&lock);
  asynchronous.fail_at = asynchronous.n_submissions + n;
  g_mutex_unlock (&lock);
}

void
asynchronous_set_gate (gint n)
{
  g_mutex_lock (&lock);
  asynchronous.gate = n;
  g_cond_broadcast (&changed);
  g_mutex_unlock (&lock);
}

static gpointer
open_gate (gpointer data)
{
  g_usleep (GPOINTER_TO_UINT (data) * 1000);
  asynchronous_set_gate (-1);
  return NULL;
}

GThread *
asynchronous_open_gate_later (guint ms)
{
  return g_thread_new ("gate", open_gate, GUINT_TO_POINTER (ms));
}

void
asynchronous_lose (void)
{
  g_mutex_lock (&lock);
  asynchronous.is_lost = TRUE;
  g_cond_broadcast (&changed);
  g_mutex_unlock (&lock);
}
