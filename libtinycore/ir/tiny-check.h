/* SPDX-License-Identifier: MIT
 *
 * tiny-check.h: what holds of a node by itself, at every stage: the number of its sources, dtypes,
 * lanes, shapes and arguments.
 *
 * The parser asks before it makes a node, the verifier afterwards, and the check of linear
 * programs shares the part that needs no graph. */
#pragma once

#include "ir/tiny-node.h"

G_BEGIN_DECLS

typedef enum {
  TINY_STAGE_TENSOR,   /* tensor graph: nodes have shapes */
  TINY_STAGE_KERNEL,   /* one kernel: loops are implied */
  TINY_STAGE_EXPANDED, /* vectors and unrolled copies are explicit */
} TinyStage;

typedef enum {
  TINY_ARG_NUMBER, /* a plain integer */
  TINY_ARG_RANGE,  /* number and kind of a RANGE */
  TINY_ARG_OP,     /* an op */
} TinyArgStyle;

/* A row of op-rules.def. */
typedef struct {
  const char *kinds;
  guint stages; /* 1 << TinyStage */
  TinyArgStyle arg_style;
  const char *arg, *ints, *text;
} TinyOpRule;

extern const TinyOpRule tiny_op_rules[TINY_N_OPS];

/* TRUE when operands of @op may be of @dtype. */
gboolean tiny_op_takes_dtype (TinyOp op, TinyDType dtype);

/* An operation or a value without its graph. */
typedef struct {
  TinyOp op;
  TinyDType dtype;
  guint lanes;
  gint64 arg;
} TinyOperand;

/* Number of sources, dtypes and lanes. NULL when all is well, else what is wrong, to be freed. */
char *tiny_check_operands (const TinyOperand *self, const TinyOperand *sources, guint n);

/* The same, with shapes and arguments, for what tiny_node_new() would be given: after it, that
 * call cannot fail, and sizes of shapes fit in 62 bits. NULL when all is well, else what is
 * wrong, to be freed. */
char *tiny_check_node (TinyOp op,
                       TinyDType dtype,
                       guint lanes,
                       guint n_sources,
                       TinyNode *const *sources,
                       gint64 arg,
                       const TinyInts *ints,
                       const char *text);

G_END_DECLS
