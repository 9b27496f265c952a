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

/* A key for whoever draws in a way of its own; under the runtime's lock. */
void tiny_random_key (guint32 key[2]);
/* The same as nodes: @x holds the counter's words (u32) and becomes the result. */
void tiny_build_threefry (TinyBuild *self, const guint32 key[2], TinyNode *x[2]);

G_END_DECLS
