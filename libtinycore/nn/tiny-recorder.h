/* SPDX-License-Identifier: MIT
 *
 * tiny-recorder.h: what a stretch of a program computes, recorded once and replayed.
 *
 * #TinyJit is this around a C function; here the program says itself where the stretch begins and ends, as
 * languages do whose functions throw. */
#pragma once

#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

/**
 * TinyRecorder:
 *
 * A recording that the program itself begins and ends.
 *
 * Since: 0.1
 */
#define TINY_TYPE_RECORDER (tiny_recorder_get_type ())
TINY_API
G_DECLARE_FINAL_TYPE (TinyRecorder, tiny_recorder, TINY, RECORDER, GObject)

/**
 * tiny_recorder_new:
 *
 * Makes a recorder, for programs that begin and end a recording themselves; #TinyJit does it for a function.
 *
 * Returns: (transfer full): a recorder without a recording
 *
 * Since: 0.1
 */
TINY_API TinyRecorder *tiny_recorder_new (void);

/**
 * tiny_recorder_prepare:
 * @self: a recorder
 * @inputs: (array length=n_inputs): the tensors that tiny_recorder_begin() will be given
 * @n_inputs: how many
 * @error: return location
 *
 * Realises the inputs and what waits to be assigned, such as weights of layers that were made just now. A call of the
 * stretch after this is planned as a recording is: recorded next, it is not scheduled again.
 *
 * Errors: what an input carries, those of realising.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_recorder_prepare (TinyRecorder *self,
                                         TinyTensor *const *inputs,
                                         guint n_inputs,
                                         GError **error);

/**
 * tiny_recorder_begin:
 * @self: a recorder
 * @inputs: (array length=n_inputs): tensors that replays will exchange, realised here in memory of their own; views stay views
 * @n_inputs: how many
 * @error: return location
 *
 * Begins to record all that this thread realises, until tiny_recorder_end() on the same thread, or tiny_recorder_cancel()
 * or the last g_object_unref() on any. What the host reads meanwhile and decides on is frozen in the recording; random numbers
 * are not: each replay draws those that would be drawn in its place. What other threads assign and realise meanwhile is no part of it.
 *
 * A recording depends on the shapes, dtypes and devices of its inputs and on what it finds besides: whether tensors have gradients that it reads, modes of modules, settings of
 * optimisers, the default float and device, which inputs are the same tensor, views of one another, or known to the function in another way. Where that is
 * another there may be another recording: the last eight are kept.
 *
 * Errors: what an input carries, those of realising; %TINY_ERROR_INVALID when there is a recording of this, this thread
 * records already, an input has no elements, or there are more or fewer inputs than in the first recording.
 *
 * Returns: whether it records now
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_recorder_begin (TinyRecorder *self,
                                       TinyTensor *const *inputs,
                                       guint n_inputs,
                                       GError **error);

/**
 * tiny_recorder_end:
 * @self: a recorder that records
 * @outputs: (array length=n_outputs): the results, realised here as part of the recording
 * @n_outputs: how many
 * @error: return location
 *
 * Ends recording. Each replay computes @outputs anew, in the same memory; one that is a view of an input gets memory
 * of its own. Gradients that tensors were given meanwhile are results as well: after each replay they have those.
 *
 * Errors: %TINY_ERROR_INVALID when nothing is being recorded, or another thread records, which goes on then; what an output
 * carries, those of realising, %TINY_ERROR_INVALID when an output is one of the inputs itself: the recording is lost then.
 *
 * Returns: whether there is a recording now
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_recorder_end (TinyRecorder *self,
                                     TinyTensor *const *outputs,
                                     guint n_outputs,
                                     GError **error);

/**
 * tiny_recorder_finish:
 * @self: a recorder that records
 * @outputs: (array length=n_outputs): the results
 * @n_outputs: how many
 * @error: return location
 *
 * tiny_recorder_end(), for who may have several recordings.
 *
 * Errors: those of tiny_recorder_end().
 *
 * Returns: the number of the recording, which may have been that of one that was dropped for it; -1 with an error
 *
 * Since: 0.1
 */
TINY_API gint tiny_recorder_finish (TinyRecorder *self,
                                    TinyTensor *const *outputs,
                                    guint n_outputs,
                                    GError **error);

/**
 * tiny_recorder_cancel:
 * @self: a recorder
 *
 * Forgets what is being recorded; where nothing is, all that was.
 *
 * Since: 0.1
 */
TINY_API void tiny_recorder_cancel (TinyRecorder *self);

/**
 * tiny_recorder_replay:
 * @self: a recorder with a recording
 * @inputs: (array length=n_inputs): in the place of those that were recorded, realised here if they are not
 * @n_inputs: how many
 * @error: return location
 *
 * Computes what was recorded with other inputs, after what waits to be assigned, and what is made of memory that is
 * written now. The outputs of the recording have the results. Inputs that are views are read anew, and what is written
 * to one is written to what it is a view of; all views of what was written follow.
 *
 * Errors: %TINY_ERROR_INVALID when there is no recording, there are more or fewer inputs than in it, or there is
 * none for these inputs or for what is found now (tiny_recorder_begin()); those of running.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_recorder_replay (TinyRecorder *self,
                                        TinyTensor *const *inputs,
                                        guint n_inputs,
                                        GError **error);

/**
 * tiny_recorder_try_replay:
 * @self: a recorder with a recording
 * @inputs: (array length=n_inputs): in the place of those that were recorded
 * @n_inputs: how many
 * @error: return location
 *
 * tiny_recorder_replay(), for who makes another recording where there is none for these inputs or for what is found now.
 *
 * Errors: those of tiny_recorder_replay() but for that.
 *
 * Returns: the number of the recording that was replayed; -1 without one, or with an error
 *
 * Since: 0.1
 */
TINY_API gint tiny_recorder_try_replay (TinyRecorder *self,
                                        TinyTensor *const *inputs,
                                        guint n_inputs,
                                        GError **error);

/**
 * tiny_recorder_get_n_kernels:
 * @self: a recorder
 *
 * The size of the recording: what tiny_recorder_replay() launches.
 *
 * Returns: how many kernels the recording has that was made or replayed last; 0 without one
 *
 * Since: 0.1
 */
TINY_API guint tiny_recorder_get_n_kernels (TinyRecorder *self);

G_END_DECLS
