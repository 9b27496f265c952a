/* SPDX-License-Identifier: MIT
 *
 * replay-private.h: what the files of a player share. */
#pragma once

#include "device/device-private.h"
#include "tools/replay.h"

typedef struct {
  char *name, *version;
} Maker; /* a backend of the record */

typedef struct {
  TinyDevice *device;
  guint64 maker;       /* the number of its backend in the record */
  char *id;            /* in the record */
  guint index;         /* here */
  gboolean is_foreign; /* another backend, or architecture, than was recorded */
} Player;

typedef struct {
  Player *player;
  TinyPluginBuffer *handle;
  guint64 n_bytes;
  guint32 dtype; /* as written last; VOID: not known */
  char *writer;
} Buffer;

typedef struct {
  Player *player;
  TinyPluginProgram *handle;
  const ReplayCode *code; /* NULL: not known */
  char *name;
  guint32 n_params, n_variables;
} Program;

/* A point of the record, and that of the same work here. */
typedef struct {
  guint64 recorded, point;
} Point;

typedef struct {
  Player *player;
  TinyPluginQueue *handle;
  GArray *points; /* Point */
} Queue;

/* What a submission brings to the host. */
typedef struct {
  Player *player;
  guint64 queue; /* its number, or 0 */
  guint64 point, n;
  guint n_downloads;      /* that were not compared yet */
  guint8 **host;          /* by command; NULL: it moves nothing */
  TinyRecordSpan *source; /* of downloads */
} Submitted;

struct ReplayPlayer {
  const ReplayOptions *options;
  GHashTable *makers, *players, *buffers, *programs, *queues, *submitted; /* by number */
  GHashTable *codes; /* binary of the record → ReplayCode */
  guint n_calls, n_compared;
};

/* A call that is being played. What fails sets *@error, what differs @difference. */
typedef struct {
  ReplayPlayer *self;
  const TinyRecordFrame *frame;
  ReplayDifference *difference;
  GError **error;
} Step;

/* FALSE with the error: the record says what cannot be. */
gboolean replay_fail (const Step *step, const char *what);
/* What a call answered against what it did: TRUE if it is the same. What the program ended in has no answer. */
gboolean
replay_compare_status (const Step *step, TinyStatus status, const TinyPluginError *error);
/* The device that the call is of. */
Player *replay_find_player (const Step *step);
/* What is kept in @table by @number. */
void replay_keep (GHashTable *table, guint64 number, gpointer thing);
gpointer replay_look_up (GHashTable *table, guint64 number);
/* To a whole number of what the device moves. */
gsize replay_round_up (const Player *player, gsize n_bytes);

/* ---- two players (replay-beside.c) ---- */
gboolean replay_clear_buffer (const Step *step, const Player *player, TinySpan span);
/* After dispatch @from, as it was submitted as @command, is done: keeps or compares what it wrote. */
gboolean replay_note_written (const Step *step,
                              const Player *player,
                              guint index,
                              const TinyRecordCommand *from,
                              const TinyCommand *command);

/* ---- queues, submissions and what comes back (replay-work.c) ---- */
gboolean replay_step_queue (const Step *step);
/* Waits for what was done when the program had waited, or seen, that @recorded was. */
gboolean replay_step_wait (const Step *step, guint64 recorded);
gboolean replay_step_submit (const Step *step);
gboolean replay_step_downloaded (const Step *step);
void replay_wait_for_all (ReplayPlayer *self);
void replay_free_submitted (gpointer data);
