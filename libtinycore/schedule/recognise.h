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
 * has a name. Kernels whose loops are those of the tensors' axes (Stage.keeps_axes) are recognised best. */
gboolean
schedule_recognise (TinyGraph *graph, AffinePool *pool, TinyNode *kernel, TinyOperation *out);

/* ---- for the recognisers of each kind ---- */
enum { RECOGNISE_N_ROLES = TINY_ROLE_B2 + 1, RECOGNISE_MAX_LOOPS = 24 };

/* An access to memory at a sum of loop counters. */
typedef struct {
  TinyNode *param; /* NULL: there is none */
  const Affine *at;
  TinyNode *gate; /* where it is read; elsewhere it is 0. NULL: everywhere */
  gint64 moved;   /* what a recogniser adds to its offset */
} Access;

/* A loop of the kernel, or several that run through all memory like one. */
typedef struct {
  TinyNode *range;
  gint64 extent;
  gint64 strides[RECOGNISE_N_ROLES]; /* of each access */
  gboolean is_reduced, is_used;      /* is_used: by an axis of the operation */
} Loop;

typedef struct {
  TinyGraph *graph;
  AffinePool *pool;
  TinyNode *store, *core; /* core: of the value, what the epilogue is around */
  TinyNode *inner;        /* a REDUCE inside of it whose loop counts as well, or NULL */
  Access accesses[RECOGNISE_N_ROLES];
  Loop loops[RECOGNISE_MAX_LOOPS];
  guint n_loops;
  TinyOperation *out;
} Recognition;

/* Reads @node, a LOAD, perhaps CAST, of a buffer that the kernel does not write. */
gboolean recognise_load (Recognition *self, TinyNode *node, Access *out);
/* Takes scale, bias, activation and conversion off the stored value: what is left is @core. */
void recognise_epilogue (Recognition *self);
/* Takes the sum of products of two loads that @core is: A and B as they come. */
gboolean recognise_products (Recognition *self);
/* A sum as multiples of what is no sum. */
enum { RECOGNISE_MAX_TERMS = 4 };
typedef struct {
  guint n;
  struct {
    TinyNode *node;
    double factor;
  } terms[RECOGNISE_MAX_TERMS];
} Terms;
/* Adds the terms of @factor times @node. FALSE: they are too many. */
gboolean recognise_terms (TinyNode *node, double factor, Terms *out);
/* x of x / sum, however it is written, and in @out_sum the REDUCE; NULL: it is none. */
TinyNode *recognise_quotient (TinyNode *value, TinyNode **out_sum);
/* Exchanges A and B. */
void recognise_swap (Recognition *self);
/* Lists the loops of the accesses, the output's first, outermost first. FALSE: not all that they depend on are loops
 * of the output or of @core. */
gboolean recognise_list_loops (Recognition *self);
/* Makes one of loops that follow each other in all accesses; or only of those that A does not depend on. */
void recognise_join_loops (Recognition *self, gboolean only_without_a);
/* Whether @loop is part of the address of that operand. */
static inline gboolean
recognise_is_in (const Loop *loop, TinyOperandRole role)
{
  return loop->strides[role] != 0;
}

/* Lets @loop, or nothing, be axis @axis. */
void recognise_set_axis (Recognition *self, guint axis, Loop *loop);
/* Appends the operands once all axes are known. FALSE: a loop is no axis. */
gboolean recognise_add_operands (Recognition *self);

gboolean recognise_matmul (Recognition *self);
gboolean recognise_convolution (Recognition *self);
gboolean recognise_reduction (Recognition *self);
gboolean recognise_softmax (Recognition *self);
gboolean recognise_attention (Recognition *self);

G_END_DECLS
