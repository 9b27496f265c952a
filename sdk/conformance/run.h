/* SPDX-License-Identifier: MIT
 *
 * run.h: a run of the suite, from a command line to an exit status. */
#pragma once

#include "pool.h"
#include "subject.h"

G_BEGIN_DECLS

/* plugins.md calls it C10; README.md says what each is. */
enum {
  CONF_EXIT_PASSED = 0,
  CONF_EXIT_FAILED = 1,
  CONF_EXIT_USAGE = 2,
  CONF_EXIT_BELOW = 3, /* nothing ran, or not all that must pass has passed */
  CONF_EXIT_CRASHED = 4,
  CONF_EXIT_ABSENT = 77
};

typedef struct {
  const char *program; /* our own file */
  const char *spec, *manifest;
  ConfLevel level;
  char **filters; /* NULL: all */
  guint n_jobs;
  guint64 seed;
  double timeout_scale;
  gboolean resume, list, tap, ladder, fail_fast;
  const char *expect, *json, *junit, *html, *verify;
  double part; /* of a certificate that is run again */
} ConfOptions;

typedef struct {
  const ConfOptions *options;
  ConfWanted *wanted;
  TinyScan *scan;
  ConfFolder *folder;    /* of this run's own files, removed at its end */
  ConfWorkerSetup setup; /* of workers */
  JsonObject *facts;     /* of the opened subject, as a worker tells them; or NULL */
  GPtrArray *planned;    /* of ConfPlanned, in the order of the list */
  JsonArray *absent;     /* {"name", "reason"} */
  gint64 begin_us;
  gint stop;                   /* somebody wants it to end */
  gboolean has_failed;         /* a case, with fail_fast: that stops it */
  struct ConfJournal *journal; /* while it runs, or NULL */
} ConfRunning;

/* Finds the subject, looks at it and lists its cases. Gives FALSE with @out_status where there is
 * nothing to be run; what was seen of a subject that cannot be tested is in planned. */
gboolean conf_running_begin (ConfRunning *self, const ConfOptions *options, int *out_status);
/* Runs those of planned that have no result. */
void conf_running_run (ConfRunning *self);
void conf_running_end (ConfRunning *self);

/* All of it. Returns the exit status. */
int conf_run (const ConfOptions *options);
int conf_verify (const ConfOptions *options);
int conf_ladder (const ConfOptions *options);

const char *conf_level_to_string (ConfLevel level);
/* CONF_N_LEVELS where it is none. */
ConfLevel conf_level_from_string (const char *text);

G_END_DECLS
