/* SPDX-License-Identifier: MIT
 *
 * tiny-recorders.h: the recordings that run, and what is theirs.
 *
 * Threads share one graph, in which equal expressions are one node. So a root, and what waits to be assigned, say by number
 * for which recording they were made: what another thread realises neither becomes part of a recording nor takes anything out of
 * it. All of it under the runtime's lock. */
#pragma once

#include "engine/tiny-plan.h"

G_BEGIN_DECLS

/* All that this thread realises goes to @launches, which has a number from here on, until the end. */
void tiny_recorders_begin (TinyLaunches *launches);
/* Also on another thread; what waits to be assigned for it is anybody's then. Its number, or 0: it does not run. */
guint64 tiny_recorders_end (TinyLaunches *launches);
gboolean tiny_recorders_is_any (void);

/* The number of this thread's recording, or 0. */
guint64 tiny_recorders_get_own (void);
/* Likewise; 0 also in stretches of which nothing is recorded: for what is assigned now. */
guint64 tiny_recorders_get_target (void);
/* What others keep of this thread's recording as long as it runs; NULL where it keeps nothing, or there is none. */
typedef enum { TINY_RECORDED_FOUND, TINY_RECORDED_RANDOM, TINY_N_RECORDED } TinyRecorded;
void tiny_recorders_set_part (TinyRecorded part, gpointer data);
gpointer tiny_recorders_get_part (TinyRecorded part);
/* @number while that recording runs, else 0: nobody's. */
guint64 tiny_recorders_get_running (guint64 number);
/* For which recording @root was made. */
guint64 tiny_recorders_get_owner (const TinyRoot *root);
/* Whether @root is of another recording than this thread's, or was made by other threads while this one records: it keeps its
 * expression where that is realised here. */
gboolean tiny_recorders_is_apart (const TinyRoot *root);

/* This thread works for the recording of that number, or for none, until it works for itself again. */
typedef struct {
  TinyLaunches *recorder;
  guint64 own;
} TinyActing;
TinyActing tiny_recorders_act_for (guint64 number);
void tiny_recorders_act_again (TinyActing before);

G_END_DECLS
