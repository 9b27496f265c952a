/* SPDX-License-Identifier: MIT
 *
 * tiny-codegen.h: one kernel to a linear program for one target. */
#pragma once

#include "ir/tiny-node.h"

G_BEGIN_DECLS

typedef enum {
  TINY_OPT_LANES,  /* split `amount` off the inner end of an axis as vector lanes */
  TINY_OPT_UPCAST, /* … of an output axis as register copies; amount 0: the whole axis */
  TINY_OPT_UNROLL, /* … of a reduced axis, unrolled */
  TINY_OPT_PAD,    /* round an axis up to a multiple of `amount`; accesses get gates */
  TINY_OPT_GRID,   /* spread the whole axis over the grid */
  TINY_OPT_SWAP,   /* exchange two axes' places in the loop nest; amount is the other axis */
  TINY_OPT_SPLIT,  /* split `amount` off as a loop of its own, which becomes axis + 1 */
  TINY_OPT_STAGE, /* copy what one round of an output axis reads of operand `amount` to local memory;
                   * operands are the LOADs of parameters in the kernel's order */
  TINY_OPT_MERGE, /* make one axis of this and the next one, `amount`; before anything else */
  TINY_OPT_GROUP, /* split `amount` off over the items of a work-group; amount 0: the whole axis */
  TINY_N_OPTS
} TinyOptKind;

/* One optimisation: a value. Axes are the kernel's ranges in loop order, outputs first; splitting
 * axis i leaves the outer part at i. */
typedef struct {
  TinyOptKind kind;
  guint axis;
  gint64 amount;
} TinyOpt;

/* A linear program with all that it points to. Plain memory, free with tiny_linear_program_free. */
typedef struct {
  TinyLinear linear; /* what plugins see */
  char *opts;        /* the optimisations applied, as text */
  gint64 n_flops;    /* estimate of arithmetic */
  TinyDType dtype;   /* that most of it is in; VOID where there is none */
  gint64 n_bytes;    /* estimate of memory touched at least once */
} TinyLinearProgram;

/* @kernel is a SINK as schedule/ makes it, in @graph, which grows. @opts NULL: by heuristic.
 * Thread-safe on different graphs.
 *
 * Errors: %TINY_ERROR_UNSUPPORTED when the target lacks what no decomposition gives,
 * %TINY_ERROR_INVALID for opts that do not apply. */
TinyLinearProgram *tiny_codegen_compile (TinyGraph *graph,
                                         TinyNode *kernel,
                                         const TinyTarget *target,
                                         const TinyOpt *opts,
                                         guint n_opts,
                                         GError **error);
void tiny_linear_program_free (TinyLinearProgram *self);

/* "lanes(1,16) upcast(0,6)" and back; "none" reads as no optimisations. */
char *tiny_opts_to_string (const TinyOpt *opts, guint n);
TinyOpt *tiny_opts_from_string (const char *text, guint *out_n, GError **error);

/* The listing DEBUG=6 shows. */
char *tiny_linear_to_string (const TinyLinear *linear);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TinyLinearProgram, tiny_linear_program_free)

G_END_DECLS
