/* SPDX-License-Identifier: MIT
 *
 * model.h: what every element of a tensor may be: a value, and how far rounding may take a device
 * from it.
 *
 * The value of a node is computed by plain loops over whole nodes, without the scheduler, the code
 * generator or a backend. A bound of 0 means that every correct device gives these very bits;
 * an infinite bound, that the result is not defined or hangs on a rounding. */
#pragma once

#include "ir/tiny-node.h"

G_BEGIN_DECLS

/* What computes: how far its results may be off is in bounds.h. NULL: one that declares everything. */
extern const TinyTarget *model_target;
/* That its own FDIV, RECIP and SQRT are known to be rounded correctly. */
extern gboolean model_rounds_correctly;

typedef struct {
  gint64 bits;  /* as in a CONST (ir/tiny-eval.h) */
  double bound; /* on the distance of a device's result; of integers 0 or infinite,
                   or how far those are that were made of a float's bits */
  double
      slack; /* what a sum of it may be off besides: by a product's own rounding, or by that of the addends of
                   a sum that rounds in no order, should they be added to others */
  double size; /* of such a sum: of its addends together; of others 0 */
  int quantum; /* and the exponent of their last bit */
} Cell;

/* The cells of @roots, in row-major order; free each with g_free(). Gives FALSE when the graph has
 * a node of more than @max_elements. */
gboolean
model_eval (TinyGraph *graph, TinyNode *const *roots, guint n, gint64 max_elements, Cell **out);

/* Whether a device's value, encoded as @cell's, is one that the model admits. */
gboolean model_admits (TinyDType dtype, const Cell *cell, gint64 bits);

/* Element @i of @data as a CONST holds it. */
gint64 model_decode (TinyDType dtype, gconstpointer data, gsize i);

G_END_DECLS
