/* SPDX-License-Identifier: MIT
 *
 * pool.h: cases, run in workers. */
#pragma once

#include "conformance.h"
#include "worker.h"

G_BEGIN_DECLS

/* A case, as the process that reports knows it. */
typedef struct {
  char *name; /* "group/name" */
  ConfLevel level;
  guint flags, seconds;
  gint64 begin_us; /* it was begun then, or 0 */
  JsonObject *
      result; /* as conf_trial_run() gives, or with "outcome" "crashed", "ended" or "hung" and "stack"; NULL: it has not run */
  gboolean was_kept; /* of an earlier run */
} ConfPlanned;

void conf_planned_free (ConfPlanned *self);

typedef struct {
  const ConfWorkerSetup *setup;
  guint n_jobs;
  double timeout_scale;
  volatile gint *stop; /* becomes nonzero: run no more */
  /* Called once for each case, after its result was set; once more if that was changed by what
   * happened to its process later. */
  void (*done) (ConfPlanned *planned, gpointer data);
  /* Called now and then while cases run, several times a second. */
  void (*tick) (gpointer data);
  gpointer data;
  gsize n_kept;          /* bytes of the answers that it keeps */
  guint longest_seconds; /* of its cases that passed and have no time of their own */
} ConfPool;

/* Runs those of @cases (of ConfPlanned) that have no result. */
void conf_pool_run (ConfPool *self, const GPtrArray *cases);

/* A result that the case itself could not give. */
JsonObject *conf_result_new (const char *name, const char *outcome, const char *message);
/* The same of what ended a worker. */
JsonObject *conf_result_new_ended (const char *name, const ConfWorker *worker);

G_END_DECLS
