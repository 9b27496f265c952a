/* SPDX-License-Identifier: MIT
 *
 * tiny-factor.h: linear algebra that a library of the device computes in one, where there is one.
 *
 * Elsewhere, and where our own code is estimated to be faster, a method of tensor-linalg.c, tensor-lu.c, tensor-qr.c or
 * tensor-svd.c builds kernels. Both give the same results but for rounding and for signs that are free. Matrices are (B, M, N). */
#pragma once

#include "tensor/tiny-build.h"

G_BEGIN_DECLS

/* The arg of GRADIENTs of factors, one for each kind and set of flags; their formulas are in
 * factor-gradients.c. SOLVE: X of A, B. INV: X of A. MIRROR: S of A. LU has the rows' order as its second input. */
enum {
  TINY_RULE_FACTOR = 128,
  TINY_RULE_FACTOR_FLAGS = 8, /* rules of one kind */
  TINY_RULE_SOLVE
  = TINY_RULE_FACTOR
    + (TINY_OPERATION_EIGH + 1 - TINY_OPERATION_CHOLESKY) * TINY_RULE_FACTOR_FLAGS,
  TINY_RULE_INV,
  TINY_RULE_MIRROR,
  TINY_RULE_FACTOR_END
};
static inline gint64
tiny_factor_get_rule (guint kind, guint flags)
{
  return TINY_RULE_FACTOR + (kind - TINY_OPERATION_CHOLESKY) * TINY_RULE_FACTOR_FLAGS + flags;
}

/* How many columns the results of a QR or SVD have; 0 where the kind has no such axis. */
typedef struct {
  gint64 left, right;
} TinyFactorSizes;

/* The symmetric matrices (B, N, N) of which @a holds the lower triangle, or the upper one; the other is not read. The
 * gradient is symmetric: each element of a pair of equals has half of it. */
TinyNode *tiny_factor_mirror (TinyBuild *self, TinyNode *a, gboolean upper);

/* Fills @out, the outputs in the contract's order, with what the device computes of @inputs: A, and of a
 * TRIANGULAR the right side. FALSE: it does not, or an error was set. */
gboolean tiny_factor_compute (TinyBuild *self,
                              guint kind,
                              guint flags,
                              TinyNode *const *inputs,
                              const TinyFactorSizes *sizes,
                              TinyNode **out);
/* Gives @outputs, functions of @inputs, the gradients of @rule. */
void tiny_factor_set_rule (TinyBuild *self,
                           gint64 rule,
                           guint n_outputs,
                           TinyNode **outputs,
                           guint n_inputs,
                           TinyNode *const *inputs);

/* A factor and what is known of its gradient; a gradient of NULL is 0. */
typedef struct {
  guint n_outputs, n_inputs;
  TinyNode *const *gradients, *const *outputs, *const *inputs;
} TinyFactorCall;

/* out[k]: the gradient of input k by @rule, or NULL; under the lock. All may have more leading axes than
 * when they were built. */
gboolean tiny_factor_find_gradients (TinyGraph *graph,
                                     const char *device,
                                     gint64 rule,
                                     const TinyFactorCall *call,
                                     TinyNode **out,
                                     GError **error);

G_END_DECLS
