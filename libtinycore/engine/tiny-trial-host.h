/* SPDX-License-Identifier: MIT
 *
 * tiny-trial-host.h: where the programs of a search are run: in a process of its own, which can be
 * stopped, or in this one. */
#pragma once

#include "engine/tiny-code.h"
#include "engine/tiny-trial.h"

G_BEGIN_DECLS

enum {
  TINY_TRIAL_MAX_STOPPED = 16
}; /* then a search has seen enough, and no other process is begun */

/* A TinyTrial (tiny-trial.h has what its functions do) and the programs for it. */
typedef struct TinyTrialHost TinyTrialHost;

/* A run that takes longer than @timeout_ms is stopped; not in this process, which is used for a device
 * that no other process can open by its name. Errors: those of tiny_trial_new(). */
TinyTrialHost *tiny_trial_host_new (TinyDevice *device,
                                    TinyNode *kernel,
                                    const TinyParam *params,
                                    guint n_params,
                                    double timeout_ms,
                                    GError **error);
void tiny_trial_host_free (TinyTrialHost *self);
/* Whether runs can be stopped. */
gboolean tiny_trial_host_can_stop (TinyTrialHost *self);

/* Takes a program; its number, from 1 on. The first is the one that others are compared with. */
gboolean
tiny_trial_host_add (TinyTrialHost *self, const TinyCode *code, guint *out_id, GError **error);
/* Errors: %TINY_ERROR_TIMEOUT when it was stopped or ended the process it ran in: the others are as
 * good as before. The first program gets more time. */
gboolean tiny_trial_host_run (
    TinyTrialHost *self, guint id, gboolean slice, guint64 *out_ns, GError **error);
/* These take as many times longer as they run it. */
gboolean
tiny_trial_host_run_warm (TinyTrialHost *self, guint id, guint64 *out_ns, GError **error);
gboolean tiny_trial_host_time (TinyTrialHost *self,
                               guint id,
                               guint64 first_ns,
                               guint64 best_ns,
                               guint64 *out_ns,
                               GError **error);
gboolean tiny_trial_host_reset (TinyTrialHost *self, GError **error);
gboolean tiny_trial_host_keep_outputs (TinyTrialHost *self, GError **error);
gboolean tiny_trial_host_compare_outputs (TinyTrialHost *self, char **out_why, GError **error);

/* In the process of its own: answers on @socket until the other side is gone. */
void tiny_trial_serve (int socket);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TinyTrialHost, tiny_trial_host_free)

G_END_DECLS
