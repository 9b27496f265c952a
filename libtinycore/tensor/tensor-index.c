/* SPDX-License-Identifier: MIT
 *
 * tensor-index.c: picking by position: labels compared with a counter, and reads at positions that
 * are data, which become the address of a load. */
#include "ir/tiny-limit.h"
#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-layout.h"
#include "tensor/tiny-part.h"
#include "tensor/tiny-positions.h"
#include "tensor/tiny-tensor-operations.h"

/* labels (…, 1) == (0 1 … n-1) */
TinyNode *
tiny_build_one_hot (TinyBuild *self, TinyNode *labels, gint64 n)
{
  if (labels == NULL)
    return NULL;
  TinyDType dtype = tiny_dtype_get_n_bytes ((TinyDType) labels->dtype) > 4 ? TINY_DTYPE_I64
                                                                           : TINY_DTYPE_I32;
  TinyNode *column
      = tiny_build_unsqueeze (self, tiny_build_cast (self, labels, dtype), labels->shape->n);
  return tiny_build_binary (self, TINY_OP_CMPEQ, column, tiny_build_iota (self, dtype, n));
}

TinyNode *
tiny_build_is_inside (TinyBuild *self, TinyNode *positions, gint64 size)
{
  if (positions == NULL)
    return NULL;
  TinyNode *end = tiny_node_const_int (self->graph, (TinyDType) positions->dtype, size);
  TinyNode *below = tiny_build_binary (self, TINY_OP_CMPLT, positions, end);
  if (tiny_dtype_is_unsigned (positions->dtype))
    return below;
  return tiny_build_binary (self, TINY_OP_AND, below,
                            tiny_build_binary (self, TINY_OP_CMPLT,
                                               tiny_build_like (self, positions, -1),
                                               positions));
}

/* ---- reading at positions ---- */

/* x (…, N, R…), indices I: as a vector, repeated over the other axes of x; then I where N was. */
TinyNode *
tiny_build_select (TinyBuild *self, TinyNode *x, guint axis, TinyNode *indices)
{
  if (x == NULL || indices == NULL)
    return NULL;
  gint64 dims[TINY_MAX_RANK + 1], n = tiny_shape_get_n_elements (indices->shape);
  guint rank = x->shape->n, n_inner = indices->shape->n, total = rank + n_inner - 1;
  if (total > TINY_MAX_RANK)
    return tiny_build_fail (self, "the result would have %u axes, more than %d", total,
                            TINY_MAX_RANK);
  for (guint i = 0; i < rank; i++)
    dims[i] = i == axis ? n : 1;
  TinyNode *positions = tiny_build_reshape (self, indices, dims, rank);
  for (guint i = 0; i < rank; i++)
    dims[i] = i == axis ? n : x->shape->v[i];
  if (!tiny_build_check_shape (self, dims, rank))
    return NULL;
  positions = tiny_build_expand (self, positions, dims, rank);
  if (positions != NULL)
    positions = tiny_node_limit_like (self->graph, positions, x, 1u << axis);
  TinyNode *found = tiny_node_gather (self->graph, x, axis, positions);
  for (guint i = 0; i < total; i++)
    dims[i] = i < axis             ? x->shape->v[i]
              : i < axis + n_inner ? indices->shape->v[i - axis]
                                   : x->shape->v[i + 1 - n_inner];
  return tiny_build_reshape (self, found, dims, total);
}

TinyNode *
op_index_select (TinyBuild *self, TinyNode *x, guint axis, TinyNode *indices)
{
  return tiny_build_select (self, x, axis, tiny_build_positions (self, x, axis, indices));
}

/* x[start : start + length] along @axis: at start + (0 1 … length-1) */
TinyNode *
op_narrow (TinyBuild *self, TinyNode *x, guint axis, TinyNode *start, gint64 length)
{
  gint64 size = x->shape->v[axis], lo, hi;
  if (!tiny_build_get_bounds (self, start, &lo, &hi))
    return tiny_build_fail (self, "the start is no single integer");
  gboolean is_data = lo > hi;
  if (lo == hi && lo < 0)
    lo = hi = lo + size;
  if (length < 0 || length > size || (!is_data && (lo < 0 || hi > size - length)))
    return lo == hi ? tiny_build_fail (self,
                                       "%" G_GINT64_FORMAT " elements from %" G_GINT64_FORMAT
                                       " on leave axis %u of %" G_GINT64_FORMAT,
                                       length, lo, axis, size)
                    : tiny_build_fail (self,
                                       "%" G_GINT64_FORMAT " elements from %" G_GINT64_FORMAT
                                       " … %" G_GINT64_FORMAT
                                       " on leave axis %u of %" G_GINT64_FORMAT,
                                       length, is_data ? 0 : lo, is_data ? 0 : hi, axis, size);
  if (is_data && tiny_limit_get (x, axis) != NULL)
    return tiny_build_fail (self,
                            "the size of axis %u is a variable: a start that is data does "
                            "not go with that",
                            axis);
  if (tiny_limit_get (x, axis) != NULL) {
    TinyPart part;
    TinyNode *stop = tiny_build_add (self, start,
                                     tiny_node_const_int (self->graph, TINY_DTYPE_I32, length));
    return tiny_part_find (self, x, axis, start, stop, &part)
               ? tiny_part_read (self, x, axis, &part)
               : NULL;
  }
  if (is_data)
    start = tiny_build_positions (self, x, axis, start);
  TinyPart part = { .start = lo, .at = is_data || lo < hi ? start : NULL, .n = length };
  return self->error != NULL ? NULL : tiny_part_read (self, x, axis, &part);
}
