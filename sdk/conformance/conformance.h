/* SPDX-License-Identifier: MIT
 *
 * conformance.h: what a check of a backend is made of: groups list cases, a case runs as a trial.
 *
 * The suite looks at one *subject*: a plugin's file as it is shipped, and one device of it. A group
 * lists its cases from what the subject declares, so that the list is the same in every process
 * that has the same subject and seed; a case is named, and run, by "group/name". Cases run in child
 * processes (serve.c), in any order, each on a subject that earlier cases may have used and that was not
 * left broken by them; what ends a child or takes too long is a failure of its one case.
 *
 * A score is what passed of what must: a case that is listed and must pass counts until it has. */
#pragma once

#include <gio/gio.h>

#include "device/tiny-device.h"

G_BEGIN_DECLS

/* Each level has the cases of those before it. */
typedef enum {
  CONF_CORE,   /* a minute: whatever runs anything needs this */
  CONF_FULL,   /* ten minutes: all that the contract says */
  CONF_MODELS, /* training and inference from end to end */
  CONF_STRESS, /* long runs, many threads */
  CONF_N_LEVELS
} ConfLevel;

/* What is tested. Members that could not be had are NULL, and the case that needs one says so by
 * conf_needs(). Everything is owned by the subject and stays as long as it. */
typedef struct {
  const char *spec; /* as the user wrote it: a device or a file */
  const char *path; /* of the plugin's file */
  const char *id;   /* the device's, as scan() gave it */
  guint64 seed;     /* of everything random */
  /* The tables as the plugin has them, for cases that call it past the core. The module was
   * initialised, by the core, and is not to be ended (fini): cases of that kind load a copy. */
  const TinyPluginModule *module;
  /* The same through the core. Tensors are made on tiny_device_get_name (device). */
  TinyBackend *backend;
  TinyDevice *device;
  const TinyTarget *target;
  TinyDevice *reference; /* REF */
} ConfSubject;

/* ---- cases ---- */
typedef struct _ConfTrial ConfTrial;
typedef struct _ConfList ConfList;
typedef struct _ConfCase ConfCase;

typedef void (*ConfRun) (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self);

enum {
  CONF_RECORD = 1u, /* measures and does not judge: no part of the score */
  CONF_ALONE = 2u,  /* measures time or takes all memory: no other case runs beside it */
  /* Runs in a process of its own that has not loaded the plugin: of the subject only spec, path, id
   * and seed are there. Its group lists it for such a subject as well. */
  CONF_FRESH = 4u
};
struct _ConfCase {
  const char
      *name; /* "add/f32/signed": unique in its group, of letters that a file name may have */
  ConfRun run;
  ConfLevel level;
  guint32 flags;
  guint seconds;      /* it may take, 0: 60 */
  gint64 args[6];     /* the group's own: an op, a dtype … */
  gconstpointer data; /* likewise; static */
};

typedef struct {
  const char *name;  /* "memory" */
  const char *about; /* one line, what it proves */
  void (*list) (const ConfSubject *subject, ConfList *list);
} ConfGroup;

/* Adds a copy of @self. Its name is made from @format. */
void conf_list_add (ConfList *list, const ConfCase *self, const char *format, ...)
    G_GNUC_PRINTF (3, 4);
/* That something is listed as not there: the device does not declare it, which is its right. It is
 * counted and shown, and is no part of the score. The name is a case's, or the start of some before a
 * slash, or has * for any letters. Every name that another subject has is a case or absent: none goes in silence. */
void conf_list_absent (ConfList *list, const char *reason, const char *format, ...)
    G_GNUC_PRINTF (3, 4);

/* All groups, in the order in which they run; NULL-terminated (groups.c). */
extern const ConfGroup *const conf_groups[];

/* As many rounds as all loops of a program may make on @target, @most at most. */
static inline gint64
conf_most_rounds (const TinyTarget *target, gint64 most)
{
  const gboolean is_less = target->max_rounds != 0 && target->max_rounds < (guint64) most;
  return is_less ? (gint64) target->max_rounds : most;
}

/* ---- what a case says while it runs; from its own thread only ---- */

/* The case has failed; it may go on and say more. The text names what was asked for and what came. */
void conf_fail (ConfTrial *trial, const char *format, ...) G_GNUC_PRINTF (2, 3);
/* The same where @good is false. Gives @good. */
gboolean conf_check (ConfTrial *trial, gboolean good, const char *format, ...)
    G_GNUC_PRINTF (3, 4);
/* Takes @error: fails with "WHAT: its message" where there is one. Gives whether there was none. */
gboolean conf_check_error (ConfTrial *trial, GError *error, const char *what);
/* As conf_check: that a member of the subject is there. */
gboolean conf_needs (ConfTrial *trial, gconstpointer member, const char *what);
gboolean conf_has_failed (const ConfTrial *trial);

/* Keeps a number that was measured: ("launch", 4200, "ns"). */
void conf_record (ConfTrial *trial, const char *what, double value, const char *unit);
/* Keeps the worst error of @op on @dtype: as it was and as the most it may be, in units of the last
 * place ("ulp") or as a part of the bound ("bound"). */
void conf_record_error (ConfTrial *trial,
                        TinyInstrOp op,
                        TinyDType dtype,
                        double worst,
                        double most,
                        const char *unit);
/* Keeps @text as a file of the report, such as a kernel that goes wrong: @suffix is ".tir" or the
 * like. */
void conf_attach (ConfTrial *trial, const char *suffix, const char *text);

G_END_DECLS
