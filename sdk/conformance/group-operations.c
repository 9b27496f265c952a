/* SPDX-License-Identifier: MIT
 *
 * group-operations.c: what claim() accepts is computed, by the operation's definition, and what it declines has a
 * reason.
 *
 * The suite offers operations of every kind (operation-offers.c), past the scheduler. One that is accepted has to
 * compile, to load, and to give what it means, each element within its own bound, on whole numbers exactly, writing
 * and reading no element that its operands do not name. One that is declined is no part of the score; where all are,
 * nothing was executed, which is a failure. */
#include <string.h>

#include "device/device-private.h"
#include "device/tiny-table.h"
#include "operation-factors.h"
#include "step.h"

enum { LEAST_ZONE = 256, ZONE_BYTE = 0xa5 };

/* ---- a launch between zones that nothing may write ---- */
typedef struct {
  ConfRaw raw;
  ConfStep step;
  TinyPluginProgram *program;
  gsize zone;
  guint8 *given[TINY_OPERATION_MAX_OPERANDS], *got[TINY_OPERATION_MAX_OPERANDS];
  TinyPluginBuffer *buffers[TINY_OPERATION_MAX_OPERANDS];
} Launch;

static gsize
get_whole (const Launch *self, guint i)
{
  return conf_raw_round (&self->raw, self->step.n_bytes[i]) + 2 * self->zone;
}

static gboolean
launch_begin (Launch *self,
              ConfTrial *trial,
              const ConfSubject *subject,
              const TinyOperation *operation)
{
  memset (self, 0, sizeof *self);
  if (!conf_raw_begin (&self->raw, trial, subject))
    return FALSE;
  conf_step_init_for (&self->step, subject, operation);
  const gsize alignment = MAX (self->raw.info->alignment, 1);
  self->zone = (LEAST_ZONE + alignment - 1) / alignment * alignment;
  self->program = conf_step_build (&self->step, &self->raw);
  gboolean good = self->program != NULL;
  for (guint i = 0; i < self->step.n_buffers; i++) {
    const gsize n = get_whole (self, i);
    self->given[i] = g_malloc (n);
    self->got[i] = g_malloc (n);
    self->buffers[i] = good ? conf_raw_alloc (&self->raw, n) : NULL;
    good = good && self->buffers[i] != NULL;
  }
  return good;
}

static void
launch_end (Launch *self)
{
  for (guint i = 0; i < self->step.n_buffers; i++) {
    g_free (self->given[i]);
    g_free (self->got[i]);
    conf_raw_free (&self->raw, self->buffers[i]);
  }
  conf_raw_unload (&self->raw, self->program);
  conf_step_clear (&self->step);
  conf_raw_end (&self->raw);
}

/* That of buffer @i nothing has changed but, in the output, what its view names. */
static gboolean
check_around (ConfTrial *trial, const Launch *self, guint i)
{
  const gsize inside = self->step.n_bytes[i];
  for (gsize k = 0; k < get_whole (self, i); k++) {
    const gboolean is_inside = k >= self->zone && k < self->zone + inside;
    if (self->got[i][k] == self->given[i][k] || (i == 0 && is_inside))
      continue;
    return conf_check (trial, FALSE,
                       is_inside ? "buffer %u, an input: byte %" G_GSIZE_FORMAT " was changed"
                                 : "byte %2$" G_GSIZE_FORMAT
                                   " of buffer %1$u, whose span begins at %3$" G_GSIZE_FORMAT
                                   " and ends at %4$" G_GSIZE_FORMAT ", was written",
                       i, k, self->zone, self->zone + inside);
  }
  return TRUE;
}

static gboolean
launch (Launch *self, ConfTrial *trial, ConfNumbers numbers, guint64 salt)
{
  static const char *const names[] = { "whole numbers", "signed numbers", "positive numbers" };
  const guint n_buffers = self->step.n_buffers;
  TinySpan spans[TINY_OPERATION_MAX_OPERANDS];
  guint8 *inner[TINY_OPERATION_MAX_OPERANDS];
  for (guint i = 0; i < n_buffers; i++) {
    memset (self->given[i], ZONE_BYTE, get_whole (self, i));
    inner[i] = self->got[i] + self->zone;
    conf_operation_fill (&self->step.operation, i, numbers, salt, self->given[i] + self->zone);
    spans[i] = (TinySpan){ self->buffers[i], self->zone, self->step.n_bytes[i] };
    if (!conf_raw_upload (&self->raw, self->buffers[i], 0, self->given[i], get_whole (self, i)))
      return FALSE;
  }
  const TinyCommand command = conf_step_dispatch (&self->step, self->program, spans);
  if (!conf_raw_submit (&self->raw, &command, 1, "dispatch of what was accepted"))
    return FALSE;
  for (guint i = 0; i < n_buffers; i++)
    if (!conf_raw_download (&self->raw, self->buffers[i], 0, self->got[i], get_whole (self, i))
        || !check_around (trial, self, i))
      return FALSE;
  return conf_operation_check (trial, &self->step.operation, inner, names[numbers]);
}

/* args: the number of the offer, whose claim() accepted it when cases were listed. */
static void
run_offer (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  ConfOffer offer;
  TinyClaim claim;
  Launch it;
  conf_offers_get ((guint) self->args[0], &offer);
  if (!conf_claim (trial, subject, &offer.operation, &claim)
      || !conf_check (trial, claim.verdict == TINY_CLAIM_ACCEPTED,
                      "claim() accepted it before, and declines it now: %s", claim.reason))
    return;
  if (launch_begin (&it, trial, subject, &offer.operation)) {
    const guint n = conf_operation_has_floats (&offer.operation) ? CONF_N_NUMBERS : 1;
    gint64 begin = 0;
    for (guint numbers = 0; numbers < n && !conf_has_failed (trial); numbers++)
      launch (&it, trial, (ConfNumbers) numbers, subject->seed + numbers);
    if (!conf_has_failed (trial)) { /* what it takes, beside what was said */
      TinySpan spans[TINY_OPERATION_MAX_OPERANDS];
      for (guint i = 0; i < it.step.n_buffers; i++)
        spans[i] = (TinySpan){ it.buffers[i], it.zone, it.step.n_bytes[i] };
      const TinyCommand command = conf_step_dispatch (&it.step, it.program, spans);
      begin = g_get_monotonic_time ();
      conf_raw_submit (&it.raw, &command, 1, "dispatch");
      conf_record (trial, "a launch", (double) (g_get_monotonic_time () - begin) * 1000, "ns");
      conf_record (trial, "what claim() says of it", (double) claim.cost_ns, "ns");
    }
  }
  launch_end (&it);
}

/* ---- the answers ---- */
static void
check_answer (ConfTrial *trial, const TinyClaim *claim, const char *name)
{
  const guint64 hour = G_GUINT64_CONSTANT (3600000000000);
  conf_check (trial, claim->flags == 0 && claim->verdict <= TINY_CLAIM_ACCEPTED,
              "%s: an answer that is none: verdict %u, flags %u", name, claim->verdict,
              claim->flags);
  if (!conf_check (trial, memchr (claim->reason, 0, sizeof claim->reason) != NULL,
                   "%s: the reason has no NUL", name))
    return;
  conf_check (trial, g_utf8_validate (claim->reason, -1, NULL), "%s: the reason is no UTF-8",
              name);
  if (claim->verdict == TINY_CLAIM_DECLINED)
    conf_check (trial, claim->reason[0] != 0, "%s: declined without a reason", name);
  else
    conf_check (trial, claim->cost_ns > 0 && claim->cost_ns < hour,
                "%s: accepted at a cost of %" G_GUINT64_FORMAT " ns", name, claim->cost_ns);
}

static void
run_answers (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  guint n_accepted = 0;
  for (guint i = 0; i < conf_offers_count (); i++) {
    ConfOffer offer;
    TinyClaim claim, again;
    conf_offers_get (i, &offer);
    if (!conf_claim (trial, subject, &offer.operation, &claim)
        || !conf_claim (trial, subject, &offer.operation, &again))
      return;
    check_answer (trial, &claim, offer.name);
    conf_check (trial, memcmp (&claim, &again, sizeof claim) == 0,
                "%s: asked twice, it answers otherwise", offer.name);
    n_accepted += claim.verdict == TINY_CLAIM_ACCEPTED;
  }
  conf_check (trial, n_accepted > 0, "claim() accepts nothing of all that is offered");
}

/* Several threads get the same answers. */
typedef struct {
  const ConfSubject *subject;
  GArray *claims;
} Asker;

static gpointer
ask_all (gpointer data)
{
  Asker *self = data;
  TinyDevice *device = self->subject->device;
  for (guint round = 0; round < 20; round++)
    for (guint i = 0; i < conf_offers_count (); i++) {
      ConfOffer offer;
      TinyPluginError error;
      TinyClaim claim = { .struct_size = sizeof claim };
      tiny_plugin_error_init (&error);
      conf_offers_get (i, &offer);
      tiny_renderer_call_claim (tiny_device_get_claimer (device),
                                tiny_device_get_claim_arch (device), &offer.operation, &claim,
                                &error);
      if (round == 0)
        g_array_append_val (self->claims, claim);
      else if (memcmp (&claim, &g_array_index (self->claims, TinyClaim, i), sizeof claim) != 0)
        return self;
    }
  return NULL;
}

static void
run_threads (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { N_THREADS = 4 };
  Asker askers[N_THREADS];
  GThread *threads[N_THREADS];
  for (guint i = 0; i < N_THREADS; i++) {
    askers[i] = (Asker){ subject, g_array_new (FALSE, TRUE, sizeof (TinyClaim)) };
    threads[i] = g_thread_new ("conformance", ask_all, &askers[i]);
  }
  for (guint i = 0; i < N_THREADS; i++)
    conf_check (trial, g_thread_join (threads[i]) == NULL,
                "asked from several threads, it answers otherwise");
  for (guint i = 0; i < N_THREADS; i++) {
    conf_check (trial,
                memcmp (askers[i].claims->data, askers[0].claims->data,
                        askers[0].claims->len * sizeof (TinyClaim))
                    == 0,
                "two threads are answered otherwise");
  }
  for (guint i = 0; i < N_THREADS; i++)
    g_array_unref (askers[i].claims);
}

/* ---- what a later core may say ---- */
typedef enum {
  CHANGE_KIND,
  CHANGE_VERSION,
  CHANGE_FLAG,
  CHANGE_ACTIVATION,
  CHANGE_ROLE,
  CHANGE_COMPUTE,
  CHANGE_RESERVED,
  CHANGE_RESERVED_VIEW,
  N_CHANGES
} Change;
static const char *const change_names[N_CHANGES]
    = { "kind", "version", "flag", "activation", "role", "dtype", "reserved", "reserved-view" };

static void
change_operation (TinyOperation *operation, Change change)
{
  TinyOperandView *last = &operation->operands[operation->n_operands - 1];
  switch (change) {
  case CHANGE_KIND:
    operation->kind = 77;
    break;
  case CHANGE_VERSION:
    operation->version = TINY_OPERATION_VERSION + 1;
    break;
  case CHANGE_FLAG:
    operation->flags |= 1u << 30;
    break;
  case CHANGE_ACTIVATION:
    operation->activation = 77;
    break;
  case CHANGE_ROLE:
    last = &operation->operands[operation->n_operands++];
    *last = operation->operands[operation->n_operands - 2];
    last->role = 77;
    last->buffer = operation->n_buffers++;
    break;
  case CHANGE_COMPUTE:
    operation->compute_dtype = 77;
    break;
  case CHANGE_RESERVED:
    operation->reserved[G_N_ELEMENTS (operation->reserved) - 1] = 1;
    break;
  default:
    last->reserved[0] = 1;
    break;
  }
}

/* What is accepted is, with something that nobody knows yet, declined. */
static void
run_unknown (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const Change change = (Change) self->args[0];
  guint n_asked = 0;
  for (guint i = 0; i < conf_offers_count (); i++) {
    ConfOffer offer;
    TinyClaim claim;
    TinyPluginError error;
    conf_offers_get (i, &offer);
    if (!conf_claim (trial, subject, &offer.operation, &claim))
      return;
    if (claim.verdict != TINY_CLAIM_ACCEPTED)
      continue;
    n_asked++;
    change_operation (&offer.operation, change);
    tiny_plugin_error_init (&error);
    claim = (TinyClaim){ .struct_size = sizeof claim };
    TinyStatus status = tiny_renderer_call_claim (tiny_device_get_claimer (subject->device),
                                                  tiny_device_get_claim_arch (subject->device),
                                                  &offer.operation, &claim, &error);
    conf_check (trial, status != TINY_STATUS_OK || claim.verdict == TINY_CLAIM_DECLINED,
                "%s with an unknown %s is accepted", offer.name, change_names[change]);
    if (status == TINY_STATUS_OK)
      check_answer (trial, &claim, offer.name);
    else
      conf_check (trial, error.text[0] != 0, "%s: %s, and no text", offer.name,
                  conf_status_to_string (status));
  }
  conf_check (trial, n_asked > 0, "claim() accepts nothing of all that is offered");
}

/* ---- listing ---- */
static void
list_offers (const ConfSubject *subject, ConfList *out)
{
  for (guint i = 0; i < conf_offers_count (); i++) {
    ConfOffer offer;
    TinyClaim claim;
    conf_offers_get (i, &offer);
    const ConfCase self = { .run = run_offer, .level = offer.level, .args = { i } };
    tiny_device_claim (subject->device, &offer.operation, &claim);
    g_autofree char *reason = g_utf8_make_valid (claim.reason, -1);
    if (claim.verdict == TINY_CLAIM_ACCEPTED)
      conf_list_add (out, &self, "%s", offer.name);
    else
      conf_list_absent (out, reason[0] ? reason : "declined without a reason", "%s",
                        offer.name);
  }
}

static void
list (const ConfSubject *subject, ConfList *out)
{
  const ConfCase answers = { .run = run_answers }, threads = { .run = run_threads };
  if (subject->device == NULL)
    return;
  conf_list_factors (subject, out);
  if (!tiny_device_has_claims (subject->device)) {
    conf_list_absent (out, "the renderer has no claim()", "claim");
    return;
  }
  conf_list_add (out, &answers, "claim/answers");
  conf_list_add (out, &threads, "claim/threads");
  for (guint i = 0; i < N_CHANGES; i++) {
    const ConfCase unknown = { .run = run_unknown, .args = { i } };
    conf_list_add (out, &unknown, "claim/unknown-%s", change_names[i]);
  }
  list_offers (subject, out);
}

const ConfGroup conf_group_operations
    = { "operations", "what is claimed is computed, and what is declined has a reason", list };
