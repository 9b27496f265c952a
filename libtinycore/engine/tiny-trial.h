/* SPDX-License-Identifier: MIT
 *
 * tiny-trial.h: memory of a kernel's own on which programs for it are run, timed and compared. */
#pragma once

#include "engine/tiny-code.h"

G_BEGIN_DECLS

typedef struct TinyTrial TinyTrial;

/* Memory for the @n_params parameters of @kernel, filled with finite pseudo-random values (the same
 * in every run). Errors: %TINY_ERROR_OUT_OF_MEMORY, those of submitting. */
TinyTrial *tiny_trial_new (TinyDevice *device,
                           TinyNode *kernel,
                           const TinyParam *params,
                           guint n_params,
                           GError **error);
void tiny_trial_free (TinyTrial *self);

/* Fills the parameters that programs write again: what they also read with its values, the others
 * with values that no program leaves there by chance. */
gboolean tiny_trial_reset (TinyTrial *self, GError **error);

/* One launch; @out_ns is what the device says it took, or the host's clock. @slice: only the first
 * place along the grid's last axis. */
gboolean tiny_trial_run (TinyTrial *self,
                         TinyProgram *program,
                         const guint32 grid[3],
                         gboolean slice,
                         guint64 *out_ns,
                         GError **error);
/* As above, all of it, straight after another such launch: threads are awake, caches filled. */
gboolean tiny_trial_run_warm (TinyTrial *self,
                              TinyProgram *program,
                              const guint32 grid[3],
                              guint64 *out_ns,
                              GError **error);
/* The least of some launches, at least 1, one straight after the other: more of those that take
 * microseconds, and no more when it has become clear that @best_ns will not be reached. @first_ns: what
 * one took before. */
gboolean tiny_trial_time (TinyTrial *self,
                          TinyProgram *program,
                          const guint32 grid[3],
                          guint64 first_ns,
                          guint64 best_ns,
                          guint64 *out_ns,
                          GError **error);
/* Which part of the grid a slice is: 1 / n. */
guint32 tiny_trial_count_slices (const guint32 grid[3]);

/* What the last run, after a reset, wrote becomes what others are compared with. Errors:
 * %TINY_ERROR_UNSUPPORTED when it wrote nothing: the device does not run programs. */
gboolean tiny_trial_keep_outputs (TinyTrial *self, GError **error);
/* Compares what the last run wrote; FALSE without @error set: it differs, and *out_why (transfer
 * full) says where. Floats may differ by rounding: a few ULP of the kernel's least precise dtype,
 * and some times the square root of the length for each reduction's dtype, relative to the value
 * and to the root mean square of the output. The same NaN or infinity is equal. */
gboolean tiny_trial_compare_outputs (TinyTrial *self, char **out_why, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TinyTrial, tiny_trial_free)

G_END_DECLS
