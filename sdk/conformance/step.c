/* SPDX-License-Identifier: MIT
 *
 * step.c: a program that the subject surely has. */
#include "step.h"

#include <string.h>

#include "device/device-private.h"
#include "device/tiny-table.h"

enum { N_WORDS = 256 };

gboolean
conf_only_claims (const ConfSubject *subject)
{
  return subject->backend != NULL && tiny_backend_runs_beside_host (subject->backend);
}

gboolean
conf_claim (ConfTrial *trial,
            const ConfSubject *subject,
            const TinyOperation *operation,
            TinyClaim *out)
{
  TinyPluginError error;
  tiny_plugin_error_init (&error);
  *out = (TinyClaim){ .struct_size = sizeof *out };
  TinyStatus status = tiny_renderer_call_claim (tiny_device_get_claimer (subject->device),
                                                tiny_device_get_claim_arch (subject->device),
                                                operation, out, &error);
  /* One that knows no such flag may fail: that is declined, and says why. */
  if (operation->flags != 0 && error.text[0] != 0
      && (status == TINY_STATUS_INVALID || status == TINY_STATUS_UNSUPPORTED)) {
    *out = (TinyClaim){ .struct_size = sizeof *out };
    g_snprintf (out->reason, sizeof out->reason, "%.200s", error.text);
    return TRUE;
  }
  return conf_check (trial, status == TINY_STATUS_OK, "claim(): %s: %s",
                     conf_status_to_string (status), error.text);
}

/* ---- making one ---- */
void
conf_step_init_add (ConfScript *script, guint add)
{
  conf_script_init (script, add == 5 ? "add_five" : "add_more");
  conf_script_set_grid (script, 0, N_WORDS);
  guint32 out = conf_emit_param (script, TINY_DTYPE_U32, TINY_PARAM_WRITE, N_WORDS);
  guint32 in = conf_emit_param (script, TINY_DTYPE_U32, TINY_PARAM_READ, N_WORDS);
  guint32 i = conf_emit_index (script, 0);
  guint32 x = CONF_EMIT (script, LOAD, U32, in, i);
  guint32 more = conf_emit_int (script, TINY_DTYPE_U32, add);
  guint32 sum = CONF_EMIT (script, ADD, U32, x, more);
  CONF_EMIT (script, STORE, VOID, out, i, sum);
}

static void
write_program (ConfStep *self)
{
  conf_step_init_add (&self->script, 5);
  self->n_buffers = 2;
  self->n_bytes[0] = self->n_bytes[1] = N_WORDS * sizeof (guint32);
}

void
conf_step_init_for (ConfStep *self, const ConfSubject *subject, const TinyOperation *operation)
{
  *self = (ConfStep){ .subject = subject,
                      .is_claimed = TRUE,
                      .operation = *operation,
                      .n_buffers = operation->n_buffers };
  for (guint i = 0; i < operation->n_buffers; i++)
    self->n_bytes[i] = conf_operation_get_n_bytes (operation, i);
}

gboolean
conf_step_init (ConfStep *self, ConfTrial *trial, const ConfSubject *subject)
{
  *self = (ConfStep){ .subject = subject };
  if (!conf_only_claims (subject)) {
    write_program (self);
    return TRUE;
  }
  for (guint i = 0; i < conf_offers_count (); i++) {
    ConfOffer offer;
    TinyClaim claim;
    conf_offers_get (i, &offer);
    if (!conf_claim (trial, subject, &offer.operation, &claim))
      return FALSE;
    if (claim.verdict == TINY_CLAIM_ACCEPTED) {
      conf_step_init_for (self, subject, &offer.operation);
      return TRUE;
    }
  }
  return conf_check (trial, FALSE, "claim() accepts nothing of all that is offered");
}

void
conf_step_clear (ConfStep *self)
{
  if (!self->is_claimed && self->script.instrs != NULL)
    conf_script_clear (&self->script);
}

GBytes *
conf_step_compile (ConfStep *self, GError **error)
{
  TinyDevice *device = self->subject->device;
  if (self->is_claimed)
    return tiny_device_compile_operation (device, &self->operation, "step", error);
  return conf_linear_compile (tiny_device_get_renderer (device), self->subject->target,
                              tiny_device_get_name (device), conf_script_get (&self->script),
                              error);
}

TinyStatus
conf_step_load (
    ConfStep *self, ConfRaw *raw, const void *data, gsize size, TinyPluginProgram **out)
{
  if (!self->is_claimed)
    return conf_raw_load (raw, self->subject->target, conf_script_get (&self->script), data,
                          size, out);
  const TinyProgramArgs args = { .struct_size = sizeof args,
                                 .name = "step",
                                 .arch = tiny_device_get_claim_arch (self->subject->device),
                                 .data = data,
                                 .size = size,
                                 .n_params = self->n_buffers,
                                 .group = { 1, 1, 1 } };
  *out = NULL;
  tiny_plugin_error_init (&raw->error);
  return raw->table->program_load (raw->device, &args, out, &raw->error);
}

TinyPluginProgram *
conf_step_build (ConfStep *self, ConfRaw *raw)
{
  GError *error = NULL;
  TinyPluginProgram *program = NULL;
  g_autoptr (GBytes) binary = conf_step_compile (self, &error);
  if (!conf_check_error (raw->trial, error, "compile"))
    return NULL;
  gsize size;
  const void *data = g_bytes_get_data (binary, &size);
  TinyStatus status = conf_step_load (self, raw, data, size, &program);
  conf_check (raw->trial, status == TINY_STATUS_OK, "program_load: %s: %s",
              conf_status_to_string (status), raw->error.text);
  return status == TINY_STATUS_OK ? program : NULL;
}

/* ---- launching it ---- */
gboolean
conf_step_alloc (ConfStep *self, ConfRaw *raw, TinyPluginBuffer **out)
{
  gboolean good = TRUE;
  for (guint i = 0; i < self->n_buffers; i++) {
    out[i] = conf_raw_alloc (raw, conf_raw_round (raw, self->n_bytes[i]));
    good = good && out[i] != NULL;
  }
  return good;
}

void
conf_step_free (ConfStep *self, ConfRaw *raw, TinyPluginBuffer **buffers)
{
  for (guint i = 0; i < self->n_buffers; i++)
    conf_raw_free (raw, buffers[i]);
}

void
conf_step_get_spans (const ConfStep *self, TinyPluginBuffer *const *buffers, TinySpan *out)
{
  for (guint i = 0; i < self->n_buffers; i++)
    out[i] = (TinySpan){ buffers[i], 0, self->n_bytes[i] };
}

TinyCommand
conf_step_dispatch (ConfStep *self, TinyPluginProgram *program, const TinySpan *spans)
{
  if (!self->is_claimed)
    return conf_dispatch (program, conf_script_get (&self->script), spans, NULL);
  return (TinyCommand){ .struct_size = sizeof (TinyCommand),
                        .type = TINY_COMMAND_DISPATCH,
                        .program = program,
                        .buffers = spans,
                        .n_buffers = self->n_buffers,
                        .grid = { 1, 1, 1 } };
}

/* ---- its numbers ---- */
static guint32
get_word (guint i, guint64 salt)
{
  return 7 * i + (guint32) salt * 1000003u;
}

void
conf_step_fill (const ConfStep *self, guint i, guint64 salt, guint8 *data)
{
  if (self->is_claimed)
    conf_operation_fill (&self->operation, i, CONF_NUMBERS_WHOLE, salt, data);
  for (guint32 k = 0; k < N_WORDS && !self->is_claimed; k++) {
    const guint32 word = i == 0 ? 0 : get_word (k, salt);
    memcpy (data + k * sizeof word, &word, sizeof word);
  }
}

static gboolean
check_operation (
    const ConfStep *self, ConfTrial *trial, const guint8 *out, guint64 salt, const char *what)
{
  guint8 *buffers[TINY_OPERATION_MAX_OPERANDS] = { (guint8 *) out };
  for (guint i = 1; i < self->n_buffers; i++) {
    buffers[i] = g_malloc (self->n_bytes[i] + 8);
    conf_step_fill (self, i, salt, buffers[i]);
  }
  gboolean good = conf_operation_check (trial, &self->operation, buffers, what);
  for (guint i = 1; i < self->n_buffers; i++)
    g_free (buffers[i]);
  return good;
}

gboolean
conf_step_check (
    const ConfStep *self, ConfTrial *trial, const guint8 *out, guint64 salt, const char *what)
{
  if (self->is_claimed)
    return check_operation (self, trial, out, salt, what);
  for (guint32 i = 0; i < N_WORDS; i++) {
    guint32 got, x = get_word (i, salt);
    memcpy (&got, out + i * sizeof got, sizeof got);
    if (got != x + 5)
      return trial != NULL
             && conf_check (trial, FALSE, "%s: element %u of x + 5 is %u, for x = %u", what, i,
                            got, x);
  }
  return TRUE;
}

gboolean
conf_step_use (ConfStep *self, ConfRaw *raw, TinyPluginProgram *program, guint64 salt)
{
  TinyPluginBuffer *buffers[TINY_OPERATION_MAX_OPERANDS] = { NULL };
  TinySpan spans[TINY_OPERATION_MAX_OPERANDS];
  gboolean good = conf_step_alloc (self, raw, buffers);
  g_autofree guint8 *out = g_malloc0 (conf_raw_round (raw, self->n_bytes[0]) + 8);
  for (guint i = 0; i < self->n_buffers && good; i++) {
    const gsize n = conf_raw_round (raw, self->n_bytes[i]);
    g_autofree guint8 *data = g_malloc0 (n + 8);
    conf_step_fill (self, i, salt, data);
    good = conf_raw_upload (raw, buffers[i], 0, data, n);
  }
  conf_step_get_spans (self, buffers, spans);
  const TinyCommand command = conf_step_dispatch (self, program, spans);
  good = good && conf_raw_submit (raw, &command, 1, "dispatch")
         && conf_raw_download (raw, buffers[0], 0, out, conf_raw_round (raw, self->n_bytes[0]))
         && conf_step_check (self, raw->trial, out, salt, "a launch");
  conf_step_free (self, raw, buffers);
  return good;
}
