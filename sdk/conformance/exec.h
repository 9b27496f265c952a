/* SPDX-License-Identifier: MIT
 *
 * exec.h: a program written by hand and its run, for the cases of group exec (group-exec.c, exec-structure.c). */
#pragma once

#include "fresh.h"

G_BEGIN_DECLS

typedef struct {
  ConfRaw raw;
  ConfScript script;
  TinyPluginProgram *program;
} ConfRig;

/* An empty script, to be written. FALSE where the trial has failed; conf_rig_end() is due otherwise. */
gboolean
conf_rig_begin (ConfRig *self, ConfTrial *trial, const ConfSubject *subject, const char *name);
void conf_rig_end (ConfRig *self);
/* Runs it on @n_buffers buffers of @sizes words, up from and down to @words. */
gboolean conf_rig_run (ConfRig *self,
                       const ConfSubject *subject,
                       guint n_buffers,
                       guint32 *const *words,
                       const gsize *sizes,
                       const gint64 *variables);

/* Why a target has no such grid (groups along three axes, items of a group along three), or NULL. */
const char *conf_find_grid_limit (const TinyTarget *target, const guint64 size[6]);

/* Cases of loops, branches and local memory. */
void conf_list_structure (ConfList *out, const TinyTarget *target);
/* Cases of what is nested or comes twice, and of the bits of NaNs. */
void conf_list_nested (ConfList *out, const TinyTarget *target);
/* Cases of every dtype through registers, local memory and gates; of many of a thing, and deep ones (exec-carried.c). */
void conf_list_carried (ConfList *out, const TinyTarget *target);
/* The same of vectors (exec-lanes.c). */
void conf_list_lanes (ConfList *out, const TinyTarget *target);
/* True if the target keeps @dtype in memory and in registers. */
gboolean conf_has_dtype (const TinyTarget *target, TinyDType dtype);

G_END_DECLS
