/* SPDX-License-Identifier: MIT
 *
 * recognise.h: a kernel as one operation that a plugin may have a unit for.
 *
 * What is recognised is exactly what the kernel computes: each part of its expression has been found in the
 * operation, none is left over. A kernel that is more, less or only alike is none. */
#pragma once

#include "schedule/affine.h"
#include "tiny-plugin.h"

G_BEGIN_DECLS

/* Describes @kernel, a SINK of one STORE, in @out; buffers are its slots. FALSE: it is no operation that
 * has a name. */
gboolean
schedule_recognise (TinyGraph *graph, AffinePool *pool, TinyNode *kernel, TinyOperation *out);

/* ---- for the recognisers of each kind ---- */

/* An access to memory at a sum of loop counters. */
typedef struct {
  TinyNode *param;
  const Affine *at;
  TinyNode *gate; /* where it is read; elsewhere it is 0. NULL: everywhere */
} Access;

typedef struct {
  TinyGraph *graph;
  AffinePool *pool;
  TinyNode *store;
  Access output;
  TinyNode *core;                            /* of the value: what the epilogue is around */
  Access bias;                               /* @param NULL: none */
  TinyNode *ranges[TINY_OPERATION_MAX_AXES]; /* of each axis, or NULL */
  TinyOperation *out;
} Recognition;

/* Reads @node, a LOAD, perhaps CAST, of a buffer that the kernel does not write. */
gboolean recognise_load (Recognition *self, TinyNode *node, Access *out);
/* Takes scale, bias, activation and conversion off the stored value: what is left is @core. */
void recognise_epilogue (Recognition *self);

/* Lets axis @axis be the loop @range. */
void recognise_set_axis (Recognition *self, guint axis, TinyNode *range);
/* Appends the operand that @access is, once all axes are known. FALSE: a loop of it is no axis. */
gboolean recognise_add_operand (Recognition *self, TinyOperandRole role, const Access *access);
/* Appends the output, the operands, of which roles go from A on, and the bias. */
gboolean recognise_add_operands (Recognition *self, const Access *accesses, guint n);

gboolean recognise_matmul (Recognition *self);

G_END_DECLS
