/* SPDX-License-Identifier: MIT
 *
 * script.h: linear programs written by hand, for what no kernel of the core's would show: any grid,
 * any number of parameters, local memory and barriers. */
#pragma once

#include "raw.h"

G_BEGIN_DECLS

typedef struct {
  char name[64];
  GArray *instrs, *sources, *params; /* TinyInstr, guint32, TinyParam */
  TinyLinear linear;                 /* what conf_script_get() gives */
} ConfScript;

void conf_script_init (ConfScript *self, const char *name);
void conf_script_clear (ConfScript *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (ConfScript, conf_script_clear)

/* An instruction; returns its number. */
guint32 conf_emit (ConfScript *self,
                   TinyInstrOp op,
                   TinyDType dtype,
                   gint64 arg,
                   guint n,
                   const guint32 *sources);
#define CONF_EMIT(self, op, dtype, ...)                                                        \
  conf_emit (self, TINY_INSTR_##op, TINY_DTYPE_##dtype, 0,                                     \
             sizeof ((guint32[]){ __VA_ARGS__ }) / sizeof (guint32),                           \
             (guint32[]){ __VA_ARGS__ })
guint32 conf_emit_arg (ConfScript *self, TinyInstrOp op, TinyDType dtype, gint64 arg);
/* A vector, or a STORE of one. */
guint32 conf_emit_lanes (ConfScript *self,
                         TinyInstrOp op,
                         TinyDType dtype,
                         guint lanes,
                         guint n,
                         const guint32 *sources);
/* An integer. */
guint32 conf_emit_int (ConfScript *self, TinyDType dtype, gint64 value);
/* The next buffer parameter. */
guint32 conf_emit_param (ConfScript *self, TinyDType dtype, guint32 flags, guint64 n_elements);
/* The next variable, an i32 or another integer. */
guint32 conf_emit_variable (ConfScript *self);
guint32 conf_emit_variable_of (ConfScript *self, TinyDType dtype);
/* @axis's index in the whole grid, an i32: GRID * group + GROUP. The group has to be set before. */
guint32 conf_emit_index (ConfScript *self, guint axis);
void conf_script_set_group (ConfScript *self, guint axis, guint items);
void conf_script_set_grid (ConfScript *self, guint axis, guint groups);

/* A program that takes as long as its variable says: out[i] = in[i], stirred so often, for @n elements of u32; the
 * parameters are out, in. conf_stir() is what comes of one. */
void conf_script_init_stir (ConfScript *self, guint n);
guint32 conf_stir (guint32 x, guint32 rounds);

/* The program so far; valid until the next instruction. */
const TinyLinear *conf_script_get (ConfScript *self);

/* Renders, where there is a dialect, and compiles for @target. */
GBytes *conf_linear_compile (const TinyRenderer *renderer,
                             const TinyTarget *target,
                             const char *device,
                             const TinyLinear *linear,
                             GError **error);

/* Compiles and loads; NULL where the trial has failed. */
TinyPluginProgram *
conf_raw_build (ConfRaw *self, const ConfSubject *subject, ConfScript *script);
/* program_load() of a binary; fills self->error. */
TinyStatus conf_raw_load (ConfRaw *self,
                          const TinyTarget *target,
                          const TinyLinear *linear,
                          const void *data,
                          gsize size,
                          TinyPluginProgram **out);
void conf_raw_unload (ConfRaw *self, TinyPluginProgram *program);
/* A DISPATCH of it; @spans and @variables are only pointed at. */
TinyCommand conf_dispatch (TinyPluginProgram *program,
                           const TinyLinear *linear,
                           const TinySpan *spans,
                           const gint64 *variables);

G_END_DECLS
