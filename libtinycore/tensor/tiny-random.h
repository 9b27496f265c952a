/* SPDX-License-Identifier: MIT
 *
 * tiny-random.h: the counter-based generator behind all random numbers. */
#pragma once

#include <glib.h>

#include "tensor/tiny-build.h"

G_BEGIN_DECLS

/* Threefry2x32 with 20 rounds, on the host. */
void tiny_threefry2x32 (const guint32 key[2], const guint32 counter[2], guint32 out[2]);
/* What all numbers that are drawn from now on depend on; under the runtime's lock. */
typedef struct {
  guint64 seed;
  guint32 n_draws; /* since it was set */
} TinyRandomState;
TinyRandomState tiny_random_get_state (void);
void tiny_random_set_state (TinyRandomState state);

/* The draws of a function that this thread captures; under the runtime's lock. To be ended before the
 * capture is, and asked before each replay. */
typedef struct TinyRandomCapture TinyRandomCapture;
TinyRandomCapture *tiny_random_capture_begin (void);
gboolean tiny_random_capture_end (TinyRandomCapture *self, GError **error);
gboolean tiny_random_capture_before_replay (TinyRandomCapture *self, GError **error);
/* A replay did not run, or not to the end. */
void tiny_random_capture_note_failure (TinyRandomCapture *self);
void tiny_random_capture_free (TinyRandomCapture *self);
/* FALSE: nothing is captured. Else the seed's words and the number of draws before the capture, each
 * (1,), and that number as it is in the recording. */
gboolean
tiny_random_capture_get_words (TinyBuild *build, TinyNode *out[3], guint32 *out_n_before);
void tiny_random_capture_note_seed (void);
/* Whether what is drawn now will be drawn anew by replays. */
gboolean tiny_random_capture_is_on (void);

/* What a function draws that is called once for a whole batch. */
typedef enum {
  TINY_RANDOMNESS_ERROR,
  TINY_RANDOMNESS_DIFFERENT,
  TINY_RANDOMNESS_SAME
} TinyRandomness;
typedef struct TinyRandomBatch {
  TinyRandomness randomness;
  TinyTensor *index; /* which of the batch, u32 without axes */
  gint64 size;
  struct TinyRandomBatch *outer; /* of this thread */
} TinyRandomBatch;
void tiny_random_enter_batch (TinyRandomBatch *self);
void tiny_random_leave_batch (TinyRandomBatch *self);
/* Makes @counters (n) those of one of the batches that this thread is in, so that a batch of m draws what
 * (m, n) would; NULL: of a draw that cannot be different. FALSE with an error where nothing may be drawn. */
gboolean tiny_random_spread (TinyBuild *self, gint64 n, TinyNode **counters);

/* A key for whoever draws in a way of its own; under the runtime's lock. */
void tiny_random_key (guint32 key[2]);
/* The same as nodes: @x holds the counter's words (u32) and becomes the result. */
void tiny_build_threefry (TinyBuild *self, const guint32 key[2], TinyNode *x[2]);
void tiny_build_threefry_by (TinyBuild *self, TinyNode *const key[2], TinyNode *x[2]);
/* @number as a u32 that programs get at launch, so that one is compiled for all draws. */
TinyNode *tiny_random_number (TinyBuild *self, guint32 number);

G_END_DECLS
