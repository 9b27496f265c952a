/* SPDX-License-Identifier: MIT
 *
 * recording.h: what a stretch of a program computed, and when computing it again is what the program would do. */
#pragma once

#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

/* All under the runtime's lock. */
typedef struct Recording Recording;
Recording *recording_begin (TinyTensor *const *inputs, guint n, GError **error);
gboolean recording_end (Recording *self, TinyTensor *const *outputs, guint n, GError **error);
/* Whether this thread records it. */
gboolean recording_is_own (Recording *self);
/* Also while it is recorded, which ends then, on whichever thread. */
void recording_free (Recording *self);

/* FALSE with an error unless it has @n inputs. */
gboolean recording_check_n (Recording *self, guint n, GError **error);
/* True if a replay is what the program does; else FALSE with the reason. The inputs are as many as recorded, and in memory.
 * @all (n_all): this recording and those beside it. */
gboolean recording_fits (Recording *self,
                         TinyTensor *const *inputs,
                         Recording *const *all,
                         guint n_all,
                         GError **why);
/* Learns of another recording of the same stretch with other inputs, which of its own were nothing but inputs. */
void recording_compare (Recording *self, Recording *other);
/* Where nothing changed. */
gboolean recording_replay (Recording *self, TinyTensor *const *inputs, GError **error);
guint recording_get_n_kernels (Recording *self);

gboolean recording_is_variable (TinyTensor *tensor);
/* True if input @i, @now, is of the kind that it was, @before: the same variable, or of the same shape, dtype and device. */
gboolean recording_check_kind (guint i, TinyTensor *before, TinyTensor *now, GError **why);
/* Puts tensors in memory; variables stay what they are. */
gboolean recording_realize_inputs (TinyTensor *const *inputs, guint n, GError **error);
/* Puts in memory what waits and is not a recording's to compute. Plans of a run after that serve the recording. */
gboolean recording_prepare (TinyTensor *const *inputs, guint n, GError **error);

G_END_DECLS
