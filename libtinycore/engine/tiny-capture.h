/* SPDX-License-Identifier: MIT
 *
 * tiny-capture.h: captures what a function realises and replays it.
 *
 * The first call runs the function plainly, the second records every launch made while it runs,
 * later ones replay those launches as one submission with the new inputs in place of the old. */
#pragma once

#include "engine/tiny-runtime.h"

G_BEGIN_DECLS

typedef struct TinyCapture TinyCapture;

/* Between begin and end all launches of this thread are recorded. @inputs are realised buffers
 * and VARIABLEs, which replays will exchange and bind anew. Errors: %TINY_ERROR_INVALID when a capture is already running. */
TinyCapture *tiny_capture_begin (TinyNode *const *inputs, guint n_inputs, GError **error);
/* One more, before anything that is recorded touches it. */
gboolean tiny_capture_add_input (TinyCapture *self, TinyNode *input, GError **error);
/* Whether this thread is the one that began it, and it has not ended. */
gboolean tiny_capture_is_own (TinyCapture *self);
/* Also on another thread, for what is dropped. Errors: %TINY_ERROR_INVALID when what was recorded uses a variable that is no input, or the host
 * touched a tensor meanwhile. */
gboolean tiny_capture_end (TinyCapture *self, GError **error);
/* Runs the recorded launches with @inputs (BUFFER nodes of the same dtypes and sizes, VARIABLEs with other values), after
 * all that waits to be assigned, and what is made of the memory that they write. */
gboolean tiny_capture_replay (TinyCapture *self,
                              TinyNode *const *inputs,
                              guint n_inputs,
                              GError **error);
/* (transfer none): what the recording, or the last replay, wrote: a set of TinyBuffer, until the next. */
GHashTable *tiny_capture_get_written (TinyCapture *self);
/* Whether replays write to the memory of input @number. */
gboolean tiny_capture_writes_input (TinyCapture *self, guint number);
gboolean tiny_capture_has_input (TinyCapture *self, TinyBuffer *buffer);
/* Whether they read or write @buffer without its being an input. */
gboolean tiny_capture_touches (TinyCapture *self, TinyBuffer *buffer, gboolean *out_writes);
guint tiny_capture_get_n_kernels (TinyCapture *self);
/* What was recorded, for those who watch (engine/tiny-plan.h). */
struct TinyLaunches *tiny_capture_get_launches (TinyCapture *self);
void tiny_capture_free (TinyCapture *self);

G_END_DECLS
