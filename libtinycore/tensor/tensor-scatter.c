/* SPDX-License-Identifier: MIT
 *
 * tensor-scatter.c: writing at positions that are data. */
#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-layout.h"
#include "tensor/tiny-positions.h"
#include "tensor/tiny-tensor-operations.h"

/* ---- building blocks ---- */
TinyNode *
tiny_build_count_along (TinyBuild *self, TinyDType dtype, guint axis, gint64 n, guint rank)
{
  gint64 dims[TINY_MAX_RANK + 1];
  for (guint i = 0; i < rank; i++)
    dims[i] = i == axis ? n : 1;
  return tiny_build_reshape (self, tiny_build_iota (self, dtype, n), dims, rank);
}

TinyNode *
tiny_build_combine (TinyBuild *self,
                    TinyNode *positions,
                    TinyNode *x,
                    guint axis,
                    gint64 n,
                    TinyOp op,
                    double none)
{
  if (positions == NULL || x == NULL)
    return NULL;
  guint rank = x->shape->n;
  gint64 over[] = { axis + 1 };
  TinyDType dtype = (TinyDType) positions->dtype;
  TinyNode *wanted = tiny_build_count_along (self, dtype, axis, n, rank + 1);
  TinyNode *is_it = tiny_build_binary (self, TINY_OP_CMPEQ, wanted,
                                       tiny_build_unsqueeze (self, positions, axis));
  TinyNode *parts = tiny_build_where (self, is_it, tiny_build_unsqueeze (self, x, axis),
                                      tiny_build_like (self, x, none));
  return tiny_build_squeeze (self, tiny_build_reduce (self, op, parts, over, 1), over, 1);
}

/* Positions in a dtype that holds all of an axis of @n. */
static TinyNode *
wide_enough (TinyBuild *self, TinyNode *positions, gint64 n)
{
  gboolean wide = tiny_dtype_get_n_bytes ((TinyDType) positions->dtype) > 4
                  || positions->dtype == TINY_DTYPE_U32 || n > G_MAXINT32;
  return tiny_build_cast (self, positions, wide ? TINY_DTYPE_I64 : TINY_DTYPE_I32);
}

TinyNode *
tiny_build_put (TinyBuild *self, TinyNode *x, guint axis, TinyNode *positions, TinyNode *values)
{
  if (x == NULL || positions == NULL || values == NULL)
    return NULL;
  if (tiny_shape_get_n_elements (values->shape) == 0
      || tiny_shape_get_n_elements (x->shape) == 0)
    return x;
  guint rank = x->shape->n;
  positions = wide_enough (self, positions, x->shape->v[axis]);
  TinyNode *order
      = tiny_build_count_along (self, TINY_DTYPE_I32, axis, positions->shape->v[axis], rank);
  TinyNode *last
      = tiny_build_combine (self, positions, order, axis, x->shape->v[axis], TINY_OP_MAX, -1);
  TinyNode *is_written
      = tiny_build_binary (self, TINY_OP_CMPLT, tiny_build_like (self, last, -1), last);
  last = tiny_build_expand (self, last, x->shape->v, rank);
  TinyNode *found = last == NULL ? NULL : tiny_node_gather (self->graph, values, axis, last);
  return tiny_build_where (self, is_written, found, x);
}

TinyNode *
tiny_build_scatter_sum (
    TinyBuild *self, TinyNode *x, guint axis, TinyNode *positions, TinyNode *values)
{
  if (x == NULL || positions == NULL || values == NULL)
    return NULL;
  positions = wide_enough (self, positions, x->shape->v[axis]);
  return tiny_build_combine (self, positions, values, axis, x->shape->v[axis], TINY_OP_ADD, 0);
}
