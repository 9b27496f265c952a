/* SPDX-License-Identifier: MIT
 *
 * tiny-interrupt.h: how a thread that computes is told to stop. */
#pragma once

#include <glib.h>

#include "base/tiny-macros.h"

G_BEGIN_DECLS

/**
 * TinyInterruptFunction:
 * @user_data: what tiny_set_interrupt_check() was given
 *
 * Says whether the thread that calls it shall stop. Must not call the library: it is not asked while it runs.
 *
 * Returns: whether to stop
 *
 * Since: 0.1
 */
typedef gboolean (*TinyInterruptFunction) (gpointer user_data);

/**
 * tiny_set_interrupt_check:
 * @check: (nullable) (scope notified) (closure user_data) (destroy destroy): what is asked; %NULL: nothing
 * @user_data: for @check
 * @destroy: (nullable): called with @user_data when @check is not asked any more
 *
 * Has @check asked some forty times a second while this thread schedules, compiles and computes. Where it says so, that
 * fails with %TINY_ERROR_INTERRUPTED: all tensors are as they were before, and the same can be asked for again. It is for
 * languages whose handlers of signals run only between calls. C programs cancel the thread's own #GCancellable (see
 * g_cancellable_push_current()), which the library looks at likewise; that fails with %G_IO_ERROR_CANCELLED.
 *
 * A thread that waits for one that computes asks as well, and stops waiting.
 * A search of BEAM stops between two candidates and leaves nothing.
 * The check is asked between parts of the work. A kernel that was begun runs to its end, and so does all of a call from
 * the first kernel on that writes memory which a tensor had before, such as that of an assignment or of a recording.
 * A device that works on by itself ends all that it was given.
 *
 * Since: 0.1
 */
TINY_API void tiny_set_interrupt_check (TinyInterruptFunction check,
                                        gpointer user_data,
                                        GDestroyNotify destroy);

G_END_DECLS
