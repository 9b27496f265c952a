/* SPDX-License-Identifier: MIT
 *
 * pool.c: cases, run in workers.
 *
 * A worker runs one case after the other until one fails: what that left behind is nobody else's.
 * Cases that want a process of their own get it, and those that want to be alone come last, one at a
 * time. What ends a worker is the failure of the case that it ran, or ran last. */
#include "pool.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/tiny-clean.h"
#include "base/tiny-error.h"
#include "answer.h"

/* A case of a slow device is not hung: it may take longer than others took that passed. */
enum { CASE_SECONDS = 60, START_SECONDS = 60, TIMES_LONGEST = 20, POLL_MS = 200 };

/* One place for a worker. */
typedef struct {
  ConfWorker *worker; /* or NULL */
  ConfPlanned *now, *last;
  gint64 end_us; /* of the case, or of starting */
  gboolean is_ready;
} Slot;

void
conf_planned_free (ConfPlanned *self)
{
  g_free (self->name);
  g_clear_pointer (&self->result, json_object_unref);
  g_free (self);
}

/* ---- results that workers do not give ---- */
JsonObject *
conf_result_new (const char *name, const char *outcome, const char *message)
{
  JsonObject *out = json_object_new ();
  JsonArray *messages = json_array_new ();
  g_autofree char *clean = tiny_clean_text (message, strlen (message));
  json_array_add_string_element (messages, clean);
  json_object_set_string_member (out, "name", name);
  json_object_set_string_member (out, "outcome", outcome);
  json_object_set_array_member (out, "messages", messages);
  return out;
}

JsonObject *
conf_result_new_ended (const char *name, const ConfWorker *worker)
{
  static const char *const outcomes[]
      = { "ended", "crashed", "ended", "hung", "crashed", "ended" };
  g_autofree char *message = conf_worker_explain (worker);
  g_autofree char *said = conf_worker_quote (worker);
  JsonObject *out = conf_result_new (name, outcomes[worker->end], message);
  if (worker->stack != NULL) {
    g_autofree char *stack = tiny_clean_text (worker->stack->str, worker->stack->len);
    json_object_set_string_member (out, "stack", stack);
  }
  if (said[0] != 0)
    json_object_set_string_member (out, "said", said);
  return out;
}

/* ---- one place ---- */
/* A case that only measures is recorded however it ends: its messages say what could not be measured. */
static void
set_result (ConfPool *self, ConfPlanned *planned, JsonObject *result)
{
  if ((planned->flags & CONF_RECORD) != 0)
    json_object_set_string_member (result, "outcome", "recorded");
  g_clear_pointer (&planned->result, json_object_unref);
  planned->result = result;
  self->done (planned, self->data);
}

static gint64
time_of (ConfPool *self, guint seconds)
{
  return g_get_monotonic_time () + (gint64) (self->timeout_scale * seconds * G_USEC_PER_SEC);
}

static guint
seconds_of (const ConfPool *self, const ConfPlanned *planned)
{
  return MAX (planned->seconds ? planned->seconds : CASE_SECONDS,
              TIMES_LONGEST * self->longest_seconds);
}

static void
note_time (ConfPool *self, const ConfPlanned *planned)
{
  const gint64 us = g_get_monotonic_time () - planned->begin_us;
  if (planned->seconds == 0)
    self->longest_seconds = MAX (self->longest_seconds, (guint) (us / G_USEC_PER_SEC));
}

static void
drop (Slot *slot)
{
  g_clear_pointer (&slot->worker, conf_worker_free);
  slot->last = NULL;
  slot->is_ready = FALSE;
}

/* A crash after the last case was done: by a thread that it left behind. */
static void
blame_last (ConfPool *self, Slot *slot)
{
  ConfPlanned *last = slot->last;
  JsonObject *result = conf_result_new_ended (last->name, slot->worker);
  json_array_add_string_element (json_object_get_array_member (result, "messages"),
                                 "this happened after the case was done");
  set_result (self, last, result);
}

static void
begin (ConfPool *self, Slot *slot, ConfPlanned *planned)
{
  g_autoptr (GError) error = NULL;
  gboolean is_fresh = (planned->flags & CONF_FRESH) != 0;
  g_autofree char *request = g_strconcat ("run ", planned->name, NULL);
  if (slot->worker != NULL) {
    conf_worker_read (slot->worker);
    if (slot->worker->end != CONF_END_NONE && slot->last != NULL)
      blame_last (self, slot);
  }
  if (slot->worker != NULL && (is_fresh || slot->worker->end != CONF_END_NONE))
    drop (slot);
  if (slot->worker == NULL)
    slot->worker = conf_worker_new (self->setup,
                                    is_fresh ? CONF_WORKER_FRESH : CONF_WORKER_OPEN, &error);
  if (slot->worker == NULL) {
    set_result (self, planned, conf_result_new (planned->name, "failed", error->message));
    return;
  }
  conf_worker_ask (slot->worker, request); /* a worker that is gone is seen when it is read */
  slot->now = planned;
  planned->begin_us = g_get_monotonic_time ();
  slot->end_us = time_of (self, slot->is_ready ? seconds_of (self, planned) : START_SECONDS);
}

static void
finish (ConfPool *self, Slot *slot, JsonObject *result)
{
  ConfPlanned *planned = g_steal_pointer (&slot->now);
  const char *outcome = json_object_get_string_member_with_default (result, "outcome", "");
  gboolean is_good
      = g_str_equal (outcome, "passed")
        || (g_str_equal (outcome, "recorded") && !json_object_has_member (result, "messages"));
  if (!is_good && slot->worker->end == CONF_END_NONE) {
    g_autofree char *said = conf_worker_quote (slot->worker);
    if (said[0] != 0)
      json_object_set_string_member (result, "said", said);
  }
  if (g_str_equal (outcome, "passed"))
    note_time (self, planned);
  set_result (self, planned, result);
  slot->last = planned;
  if (!is_good || (planned->flags & CONF_FRESH) != 0)
    drop (slot);
}

/* Long words of workers are kept up to a sum: after it only the outcomes. */
static JsonObject *
keep (ConfPool *self, JsonObject *result, gsize n_bytes)
{
  self->n_kept += n_bytes;
  if (self->n_kept <= CONF_MAX_KEPT)
    return json_object_ref (result);
  JsonObject *out = conf_result_new (json_object_get_string_member (result, "name"),
                                     json_object_get_string_member (result, "outcome"),
                                     "what it said is left out: the run has too much of that");
  json_object_set_int_member (out, "us", json_object_get_int_member (result, "us"));
  return out;
}

/* One answer of the worker of @slot. */
static void
hear (ConfPool *self, Slot *slot, JsonObject *answer)
{
  JsonNode *result = json_object_get_member (answer, "result");
  JsonNode *error = json_object_get_member (answer, "error");
  JsonObject *object = result  ? json_node_get_object (result)
                       : error ? json_node_get_object (error)
                               : NULL;
  if (json_object_has_member (answer, "ready") && !slot->is_ready) {
    slot->is_ready = TRUE;
    slot->end_us = time_of (self, seconds_of (self, slot->now));
  } else if (error != NULL) {
    finish (self, slot,
            conf_result_new (slot->now->name, "failed",
                             json_object_get_string_member (object, "text")));
  } else if (result != NULL
             && g_str_equal (json_object_get_string_member (object, "name"), slot->now->name)) {
    finish (self, slot, keep (self, object, slot->worker->n_answer));
  } else {
    conf_worker_refuse (slot->worker, "an answer to what it was not asked");
  }
}

static void
attend (ConfPool *self, Slot *slot)
{
  conf_worker_read (slot->worker);
  while (slot->now != NULL) {
    g_autoptr (JsonNode) answer = conf_worker_take (slot->worker);
    if (answer == NULL)
      break;
    hear (self, slot, json_node_get_object (answer));
  }
  if (slot->now == NULL)
    return;
  if (slot->worker->end == CONF_END_NONE && g_get_monotonic_time () >= slot->end_us)
    conf_worker_stop (slot->worker);
  if (slot->worker->end != CONF_END_NONE)
    finish (self, slot, conf_result_new_ended (slot->now->name, slot->worker));
}

/* ---- all ---- */
static void
wait_for_any (const Slot *slots, guint n)
{
  g_autofree struct pollfd *polled = g_new0 (struct pollfd, 2 * n);
  for (guint i = 0; i < n; i++) {
    gboolean is_busy = slots[i].now != NULL && slots[i].worker->end == CONF_END_NONE;
    polled[2 * i] = (struct pollfd){ is_busy ? slots[i].worker->socket : -1, POLLIN, 0 };
    polled[2 * i + 1] = (struct pollfd){ is_busy ? slots[i].worker->said : -1, POLLIN, 0 };
  }
  poll (polled, 2 * n, POLL_MS);
}

static void
run_some (ConfPool *self, GQueue *queue, Slot *slots, guint n)
{
  for (;;) {
    guint n_busy = 0;
    for (guint i = 0; i < n; i++) {
      while (slots[i].now == NULL && g_atomic_int_get (self->stop) == 0
             && !g_queue_is_empty (queue))
        begin (self, &slots[i], g_queue_pop_head (queue));
      n_busy += slots[i].now != NULL;
    }
    if (n_busy == 0 || g_atomic_int_get (self->stop) != 0)
      return;
    wait_for_any (slots, n);
    self->tick (self->data);
    for (guint i = 0; i < n; i++)
      if (slots[i].now != NULL)
        attend (self, &slots[i]);
  }
}

void
conf_pool_run (ConfPool *self, const GPtrArray *cases)
{
  GQueue together = G_QUEUE_INIT, alone = G_QUEUE_INIT;
  guint n = MAX (self->n_jobs, 1);
  g_autofree Slot *slots = g_new0 (Slot, n);
  for (guint i = 0; i < cases->len; i++) {
    ConfPlanned *planned = cases->pdata[i];
    if (planned->result == NULL)
      g_queue_push_tail ((planned->flags & CONF_ALONE) != 0 ? &alone : &together, planned);
  }
  run_some (self, &together, slots, n);
  for (guint i = 1; i < n; i++)
    drop (&slots[i]);
  run_some (self, &alone, slots, 1);
  if (slots[0].worker != NULL) {
    conf_worker_read (slots[0].worker);
    if (slots[0].worker->end != CONF_END_NONE && slots[0].last != NULL)
      blame_last (self, &slots[0]);
  }
  drop (&slots[0]);
  g_queue_clear (&together);
  g_queue_clear (&alone);
}
