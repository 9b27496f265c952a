/* SPDX-License-Identifier: MIT
 *
 * run.h: a run of the suite, from a command line to an exit status. */
#pragma once

#include "pool.h"
#include "subject.h"
#include "verdict.h"

G_BEGIN_DECLS

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
  double
      progress; /* seconds between two lines that say how far it is, where nobody sees a terminal; 0: none */
} ConfOptions;

typedef struct {
  const ConfOptions *options;
  ConfWanted *wanted;
  TinyScan *scan;
  char *digest;          /* of the plugin's file, as it was when it was looked at */
  ConfFolder *folder;    /* of this run's own files, removed at its end */
  ConfWorkerSetup setup; /* of workers */
  JsonObject *facts;     /* of the opened subject, as a worker tells them; or NULL */
  GPtrArray *planned;    /* of ConfPlanned, in the order of the list */
  JsonArray *absent;     /* {"name", "reason"} */
  guint n_jobs;          /* workers at once: one where the device opens once */
  gint64 begin_us;
  gint64 said_us;              /* when it was said how far it is */
  gint stop;                   /* somebody wants it to end */
  gboolean has_failed;         /* a case, with fail_fast: that stops it */
  struct ConfJournal *journal; /* while it runs, or NULL */
} ConfRunning;

/* What the driver of the device that is tested is called, as scan() said, or "". */
const char *conf_running_get_driver (const ConfRunning *self);

/* Finds the subject, looks at it and lists its cases. Gives FALSE with @out_status where there is
 * nothing to be run; what was seen of a subject that cannot be tested is in planned. */
gboolean conf_running_begin (ConfRunning *self, const ConfOptions *options, int *out_status);
/* Whether @planned is of @level or one before it, and matches one of @filters (NULL: all do). */
gboolean conf_is_wanted (const ConfPlanned *planned, ConfLevel level, char *const *filters);
/* Keeps of what is absent that which the run's filters choose. */
void conf_running_narrow_absent (ConfRunning *self);
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
