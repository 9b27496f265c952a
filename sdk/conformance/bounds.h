/* SPDX-License-Identifier: MIT
 *
 * bounds.h: which results of an operation are right, on a target.
 *
 * bounds.def has what an op may be off; what a target declares of itself, and nothing else, widens it:
 *
 *  - TINY_TARGET_FLUSHES_SUBNORMALS: where floats are computed, a subnormal operand may be taken for a 0
 *    and a subnormal result given as one. What only moves values (LOAD STORE WHERE BITCAST) moves them all.
 *    A divisor beyond 2^126 may be one whose reciprocal was flushed.
 *  - TINY_TARGET_REASSOCIATES: signs of zeros, and sums, products and quotients where an infinity or a
 *    NaN arises, may be any.
 *  - an op that it does not declare is made by the core, and has the bound of that.
 *
 * A NaN is any NaN. */
#pragma once

#include "oracle.h"

G_BEGIN_DECLS

enum { CONF_BOUNDS_VERSION = 1 };

/* The most that the result of @op, CAST apart, on operands of @dtype may be off, in units of its last
 * place; 0: it is exact. @target NULL: one that declares every op. */
double conf_bound_get_ulps (TinyOp op, TinyDType dtype, const TinyTarget *target);
/* Whether @target's own instruction does it, of dtypes @from and, for a CAST, @to. */
gboolean conf_is_native (const TinyTarget *target, TinyOp op, TinyDType from, TinyDType to);

/* One operation on values as CONSTs hold them (ir/tiny-eval.h). */
typedef struct {
  TinyOp op;
  TinyDType from, to; /* of its operands (a WHERE's last two) and its result */
  guint n;
  gint64 args[3];
} ConfOperation;

typedef enum {
  CONF_WRONG,
  CONF_RIGHT,
  CONF_UNSPECIFIED, /* the contract does not say what comes out */
} ConfVerdict;

/* What a device gave for an operation, and how it was found. */
typedef struct {
  ConfVerdict verdict;
  ConfTruth truth; /* of the operands as they are */
  double
      ulps; /* how far it is off; 0 where it has the right bits, infinite where that means nothing */
  double most;      /* that it may be */
  gboolean flushed; /* right only because subnormals may be zeros */
} ConfJudgement;

/* @got is encoded as the operands are. */
void conf_judge (const ConfOperation *operation,
                 const TinyTarget *target,
                 gint64 got,
                 ConfJudgement *out);

G_END_DECLS
