/* SPDX-License-Identifier: MIT
 *
 * tiny-jit.h: a function of tensors whose kernels are recorded once and replayed. */
#pragma once

#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

/**
 * TinyJit:
 *
 * A function whose kernels are recorded at its second call and replayed from the third on. For C: other languages have
 * their own functions between tiny_recorder_begin() and tiny_recorder_end().
 *
 * Since: 0.1
 */
#define TINY_TYPE_JIT (tiny_jit_get_type ())
TINY_API G_DECLARE_FINAL_TYPE (TinyJit, tiny_jit, TINY, JIT, GObject)

    /**
 * TinyJitFunction: (skip)
 * @inputs: (array length=n_inputs): realised tensors
 * @n_inputs: how many
 * @outputs: (array length=n_outputs) (out caller-allocates): where to put results, as new
 *   references to realised tensors
 * @n_outputs: how many
 * @user_data: what tiny_jit_new() was given
 * @error: return location
 *
 * What is captured. It realises all that it computes, and reads nothing back: values that the
 * host decides on would be frozen in the recording. What changes from call to call is among @inputs: tensors, and
 * variables (tiny_variable_bind()). Random numbers are drawn anew by each replay, those that a plain call
 * would draw in its place, after whatever tiny_tensor_manual_seed() said; tiny_tensor_randperm() is refused.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
    typedef gboolean (*TinyJitFunction) (TinyTensor *const *inputs,
                                         guint n_inputs,
                                         TinyTensor **outputs,
                                         guint n_outputs,
                                         gpointer user_data,
                                         GError **error);

/**
 * tiny_jit_new: (skip)
 * @function: (scope notified): what to capture
 * @user_data: for @function
 * @destroy: (nullable): frees @user_data
 * @n_outputs: how many tensors @function gives, at most 65536
 *
 * Makes a function whose kernels are recorded at its second call and replayed from the third on: see
 * #TinyJitFunction for what it may do. Without @function, or with more outputs than that, calls are refused.
 *
 * Returns: (transfer full): a function that has not run yet
 *
 * Since: 0.1
 */
TINY_API TinyJit *tiny_jit_new (TinyJitFunction function,
                                gpointer user_data,
                                GDestroyNotify destroy,
                                guint n_outputs);

/**
 * tiny_jit_call: (skip)
 * @self: a function
 * @inputs: (array length=n_inputs): tensors, realised here if they are not, and variables with their values
 * @n_inputs: how many, the same in every call
 * @outputs: (array) (out caller-allocates) (nullable): where to put the results, borrowed: their
 *   contents change with the next call
 * @error: return location
 *
 * The first call runs the function, the second runs and records it, later ones replay the recording
 * with the new inputs in place of the old. A variable has its new value there, and nothing is compiled for it. Where an input
 * has another shape, dtype or device, as a smaller last batch has, or the recording found something else besides
 * (tiny_recorder_begin()), the function is run and recorded once more, into other results. The last eight recordings are kept.
 *
 * Threads may call one function: their calls are one after the other. The results are those of the last call, of whichever thread: who
 * reads them holds a lock of its own from the call to the end of reading, or has a function of its own.
 *
 * Errors: those of the function. %TINY_ERROR_INVALID, with the reason, when there are more or fewer inputs than in the
 * recording; and of the recording itself: an input is empty, the function uses a variable that is no input, or reads or writes a tensor on the host. Nothing is
 * recorded then, and the next call records again.
 *
 * Returns: whether it worked
 *
 * Since: 0.1
 */
TINY_API gboolean tiny_jit_call (TinyJit *self,
                                 TinyTensor *const *inputs,
                                 guint n_inputs,
                                 TinyTensor **outputs,
                                 GError **error);

/**
 * tiny_jit_reset:
 * @self: a function
 *
 * Forgets the recording: the next call records anew, whatever its inputs look like.
 *
 * Since: 0.1
 */
TINY_API void tiny_jit_reset (TinyJit *self);

/**
 * tiny_jit_get_n_kernels:
 * @self: a function
 *
 * The size of the recording: what is left to do in a call.
 *
 * Returns: how many kernels a replay launches; 0 before there is a recording
 *
 * Since: 0.1
 */
TINY_API guint tiny_jit_get_n_kernels (TinyJit *self);

G_END_DECLS
