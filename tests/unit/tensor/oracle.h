/* SPDX-License-Identifier: MIT
 *
 * oracle.h: the values of tensor-stage nodes, by plain loops.
 *
 * Shares no code with the scheduler, the code generator or a backend: what they make of a graph is
 * compared with what this says. Leaves are CONST, IOTA, BUFFER and PARAM; a PARAM's values are
 * given by the test, so that no device is needed. */
#pragma once

#include "ir/tiny-node.h"
#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

typedef struct {
  guint n_params;
  const double *params[16];
} Oracle;

/* The elements of @node in row-major order, free with g_free(). */
double *oracle_eval_node (const Oracle *self, TinyNode *node, gsize *out_n);
/* Of a tensor, which must not be in error state. Does not realise it. */
double *oracle_eval (const Oracle *self, TinyTensor *tensor, gsize *out_n);
/* (transfer floating): a tensor that reads param @slot. */
TinyTensor *oracle_param (guint slot, TinyDType dtype, const gint64 *shape, guint n);

G_END_DECLS
