/* SPDX-License-Identifier: MIT
 *
 * step.h: a program that the subject surely has, with numbers to check it by: for cases to which it does not matter
 * what is computed.
 *
 * Of a device that runs kernels it is x + 5 of 256 words; of one that only claims operations, the first that it
 * accepts of those that the suite offers (operation.h). */
#pragma once

#include "operation.h"
#include "script.h"

G_BEGIN_DECLS

/* Whether the device runs no kernels: they run on another one, which is not tested. */
gboolean conf_only_claims (const ConfSubject *subject);
#define CONF_NO_KERNELS                                                                        \
  "the device runs no kernels: another one does, which is tested by itself"

/* What claim() says of @operation, past the core. FALSE where the trial has failed: the answer is none. */
gboolean conf_claim (ConfTrial *trial,
                     const ConfSubject *subject,
                     const TinyOperation *operation,
                     TinyClaim *out);

typedef struct {
  const ConfSubject *subject;
  gboolean is_claimed;
  TinyOperation operation;
  ConfScript script;
  guint n_buffers; /* the first is the output */
  gsize n_bytes[TINY_OPERATION_MAX_OPERANDS];
} ConfStep;

/* x + @add of 256 words: the step of a device that runs kernels is that of 5. */
void conf_step_init_add (ConfScript *self, guint add);

/* FALSE where the trial has failed: nothing is accepted. */
gboolean conf_step_init (ConfStep *self, ConfTrial *trial, const ConfSubject *subject);
/* That of an operation that was accepted. */
void
conf_step_init_for (ConfStep *self, const ConfSubject *subject, const TinyOperation *operation);
void conf_step_clear (ConfStep *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (ConfStep, conf_step_clear)

/* Calls compile(), from any thread. */
GBytes *conf_step_compile (ConfStep *self, GError **error);
/* program_load() of a binary; fills @raw's error. */
TinyStatus conf_step_load (
    ConfStep *self, ConfRaw *raw, const void *data, gsize size, TinyPluginProgram **out);
/* Both; NULL where the trial has failed. */
TinyPluginProgram *conf_step_build (ConfStep *self, ConfRaw *raw);

/* Buffers for a launch; FALSE where the trial has failed. Freed by conf_step_free(), also then. */
gboolean conf_step_alloc (ConfStep *self, ConfRaw *raw, TinyPluginBuffer **out);
void conf_step_free (ConfStep *self, ConfRaw *raw, TinyPluginBuffer **buffers);
void
conf_step_get_spans (const ConfStep *self, TinyPluginBuffer *const *buffers, TinySpan *out);
TinyCommand
conf_step_dispatch (ConfStep *self, TinyPluginProgram *program, const TinySpan *spans);

/* Numbers of @salt for an input, or what is in the output before. */
void conf_step_fill (const ConfStep *self, guint i, guint64 salt, guint8 *data);
/* Says what of @out is not what inputs of @salt give. Of any thread: the trial is NULL there. */
gboolean conf_step_check (
    const ConfStep *self, ConfTrial *trial, const guint8 *out, guint64 salt, const char *what);
/* Up, launched, down, and checked. */
gboolean conf_step_use (ConfStep *self, ConfRaw *raw, TinyPluginProgram *program, guint64 salt);

/* ---- series.c ---- */
/* Cases of the order of commands, for a device that only claims, and its soak (args: threads, seconds). */
void conf_list_series (ConfList *out);
void conf_soak_series (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self);

G_END_DECLS
