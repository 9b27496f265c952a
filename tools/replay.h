/* SPDX-License-Identifier: MIT
 *
 * replay.h: a record (plugin/tiny-record.h) played again: what command-replay.c shows. */
#pragma once

#include "device/tiny-device.h"
#include "plugin/tiny-record.h"

/* Where and how what was played is not what was recorded. */
typedef struct {
  guint64 call;
  const char *function;
  guint command;   /* of a submission */
  char *kernel;    /* that wrote the buffer last, or NULL */
  guint64 buffer;  /* 0: none is concerned */
  guint64 element; /* the first that differs */
  guint64 n_different, n_elements;
  char *expected, *found;
} ReplayDifference;
void replay_difference_clear (ReplayDifference *self);

typedef struct {
  const char *device; /* as DEV=; NULL: the one that was recorded */
  gboolean binaries;  /* loads the recorded binaries */
  double tolerance;   /* negative: by dtype; exact where the backend is the recorded one */
  TinyRecord *record;
  /* Of two players, one beside the other, in turns: what the kernels of the first wrote, GBytes; NULL: one plays
   * alone. The second takes them out and compares. */
  GQueue *written;
  gboolean is_judged; /* it is the second */
} ReplayOptions;

typedef struct ReplayPlayer ReplayPlayer;
ReplayPlayer *replay_player_new (const ReplayOptions *options);
/* Gives back what was opened. */
void replay_player_free (ReplayPlayer *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (ReplayPlayer, replay_player_free)
/* Makes the call of @frame, or compares what came back. @difference is filled with the first difference, whose function
 * is set then. FALSE with @error: it cannot be played. */
gboolean replay_player_step (ReplayPlayer *self,
                             const TinyRecordFrame *frame,
                             ReplayDifference *difference,
                             GError **error);
/* What was made and what was compared; "REF on …" for people (transfer none), or NULL. */
guint replay_player_get_n_calls (const ReplayPlayer *self);
guint replay_player_get_n_compared (const ReplayPlayer *self);
const char *replay_player_get_device_name (const ReplayPlayer *self);

/* ---- code (replay-code.c) ---- */

/* A program for the device that plays. */
typedef struct {
  GBytes *binary;
  char *name, *arch;
  guint32 n_params, n_variables, grid[3], group[3];
  gboolean has_grid; /* else that of the record */
  guint32 *dtypes;   /* of the parameters that it writes; VOID of others; NULL: not known */
} ReplayCode;
void replay_code_free (ReplayCode *self);

/* Makes what @compile, a COMPILE frame, made: again from its arguments, or with @foreign for another backend from
 * the kernel's IR. NULL with *@out_status and the text in @plugin_error, or with @error: it cannot be tried. */
ReplayCode *replay_code_make (const ReplayOptions *options,
                              TinyDevice *device,
                              gboolean foreign,
                              const TinyRecordFrame *compile,
                              TinyStatus *out_status,
                              TinyPluginError *plugin_error,
                              GError **error);

/* ---- values (replay-compare.c) ---- */

/* The largest difference that is none, as a part of the larger of both or of the largest of all. */
double replay_get_tolerance (guint32 dtype);
/* FALSE: they differ, and @out says where. @dtype VOID: bytes. */
gboolean replay_compare (guint32 dtype,
                         double tolerance,
                         gconstpointer expected,
                         gconstpointer found,
                         gsize n_bytes,
                         ReplayDifference *out);

/* ---- for people (replay-list.c) ---- */
void replay_list_frame (const TinyRecord *record, const TinyRecordFrame *frame, gboolean json);
/* "ok", or what a status stands for. */
const char *replay_status_to_string (TinyStatus status);
