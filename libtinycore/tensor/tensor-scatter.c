/* SPDX-License-Identifier: MIT
 *
 * tensor-scatter.c: writing at positions that are data. */
#include <math.h>

#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-layout.h"
#include "tensor/tiny-positions.h"
#include "tensor/tiny-tensor-operations.h"

/* ---- checks ---- */
static gboolean
misfit (TinyBuild *b, const char *what, const TinyNode *x, const TinyNode *index, guint axis)
{
  g_autofree char *own = tiny_shape_to_string (x->shape);
  g_autofree char *other = tiny_shape_to_string (index->shape);
  return tiny_build_fail (b, "indices of shape %s do not fit %s of shape %s along axis %u",
                          other, what, own, axis)
         != NULL;
}

/* Indices are at most as large as what they are about, but along @axis (all axes: TINY_MAX_RANK). */
static gboolean
check_fits (
    TinyBuild *b, const char *what, const TinyNode *x, const TinyNode *index, guint axis)
{
  gboolean fits = x->shape->n == index->shape->n;
  for (guint i = 0; fits && i < x->shape->n; i++)
    fits = i == axis || index->shape->v[i] <= x->shape->v[i];
  return fits || misfit (b, what, x, index, axis);
}

static TinyNode *
shrink_to (TinyBuild *b, TinyNode *x, const gint64 *dims)
{
  gint64 pairs[2 * TINY_MAX_RANK];
  for (guint i = 0; i < x->shape->n; i++) {
    pairs[2 * i] = 0;
    pairs[2 * i + 1] = dims[i];
  }
  return tiny_build_shrink (b, x, pairs);
}

/* ---- reading ---- */
TinyNode *
op_gather (TinyBuild *b, TinyNode *self, guint axis, TinyNode *index)
{
  gint64 dims[TINY_MAX_RANK];
  if (!check_fits (b, "a tensor", self, index, axis))
    return NULL;
  for (guint i = 0; i < self->shape->n; i++)
    dims[i] = i == axis ? self->shape->v[i] : index->shape->v[i];
  index = tiny_build_positions (b, self, axis, index);
  self = shrink_to (b, self, dims);
  return index == NULL || self == NULL ? NULL : tiny_node_gather (b->graph, self, axis, index);
}

TinyNode *
op_take_along_dim (TinyBuild *b, TinyNode *self, TinyNode *indices, guint axis)
{
  gint64 dims[TINY_MAX_RANK], own[TINY_MAX_RANK];
  guint rank = self->shape->n;
  if (indices->shape->n != rank)
    return tiny_build_fail (b, "the indices have %u axes, the tensor %u", indices->shape->n,
                            rank);
  for (guint i = 0; i < rank; i++) {
    gint64 size = self->shape->v[i], wanted = indices->shape->v[i];
    if (i != axis && size != wanted && size != 1 && wanted != 1) {
      misfit (b, "a tensor", self, indices, axis);
      return NULL;
    }
    dims[i] = i == axis || size == 1 ? wanted : size;
    own[i] = i == axis ? size : dims[i];
  }
  indices = tiny_build_expand (b, tiny_build_positions (b, self, axis, indices), dims, rank);
  self = tiny_build_expand (b, self, own, rank);
  return self == NULL || indices == NULL ? NULL
                                         : tiny_node_gather (b->graph, self, axis, indices);
}

TinyNode *
op_take (TinyBuild *b, TinyNode *self, TinyNode *index)
{
  gint64 n = tiny_shape_get_n_elements (self->shape);
  return op_index_select (b, tiny_build_reshape (b, self, &n, 1), 0, index);
}

/* ---- writing ---- */

/* Positions and values as large as @x on the other axes; what is added to them writes nothing. */
static gboolean
prepare (TinyBuild *b,
         TinyNode *x,
         guint axis,
         TinyNode *index,
         TinyNode **positions,
         TinyNode **values)
{
  gint64 pairs[2 * TINY_MAX_RANK] = { 0 };
  TinyNode *source = *values;
  if (!check_fits (b, "a tensor", x, index, axis))
    return FALSE;
  if (source->shape->n == 0 && index->shape->n > 0)
    source = tiny_build_expand (b, source, index->shape->v, index->shape->n);
  if (source == NULL || !check_fits (b, "values", source, index, TINY_MAX_RANK))
    return FALSE;
  source = shrink_to (b, source, index->shape->v);
  for (guint i = 0; i < x->shape->n; i++)
    if (i != axis)
      pairs[2 * i + 1] = x->shape->v[i] - index->shape->v[i];
  index
      = tiny_build_wide_enough (b, tiny_build_positions (b, x, axis, index), x->shape->v[axis]);
  *positions = index == NULL ? NULL : tiny_build_pad (b, index, pairs, -1);
  *values = tiny_build_pad (b, tiny_build_cast (b, source, (TinyDType) x->dtype), pairs, 0);
  return *positions != NULL && *values != NULL;
}

enum { REDUCE_SUM, REDUCE_PROD, REDUCE_MEAN, REDUCE_AMAX, REDUCE_AMIN };

/* @x and the values combined, where there are any. */
static TinyNode *
combine_with (TinyBuild *b,
              TinyNode *x,
              guint axis,
              TinyNode *positions,
              TinyNode *values,
              guint reduce,
              gboolean include_self)
{
  gint64 n = x->shape->v[axis];
  if (tiny_shape_get_n_elements (values->shape) == 0
      || tiny_shape_get_n_elements (x->shape) == 0)
    return x;
  TinyOp op = reduce == REDUCE_PROD   ? TINY_OP_MUL
              : reduce == REDUCE_AMAX ? TINY_OP_MAX
                                      : TINY_OP_ADD;
  TinyNode *found = op == TINY_OP_ADD ? tiny_build_scatter_sum (b, x, axis, positions, values)
                    : op == TINY_OP_MAX
                        ? tiny_build_scatter_largest (b, x, axis, positions, values)
                        : tiny_build_scatter_product (b, positions, values, axis, n);
  TinyNode *all = found == NULL       ? NULL
                  : op == TINY_OP_MAX ? op_maximum (b, x, found)
                                      : tiny_build_binary (b, op, x, found);
  if (reduce != REDUCE_MEAN && include_self)
    return all;
  TinyNode *one = tiny_build_number (b, TINY_DTYPE_I32, 1);
  TinyNode *count = tiny_build_count_at (b, positions, axis, n);
  TinyNode *is_hit = tiny_build_binary (b, TINY_OP_CMPLT, tiny_build_like (b, count, 0), count);
  TinyNode *result = include_self ? all : found;
  if (reduce == REDUCE_MEAN) {
    count = include_self ? tiny_build_add (b, count, one) : op_maximum (b, count, one);
    count = tiny_build_cast (b, count, (TinyDType) x->dtype);
    result = tiny_dtype_is_float (x->dtype) ? tiny_build_div (b, result, count)
                                            : op_floor_divide (b, result, count);
  }
  return tiny_build_where (b, is_hit, result, x);
}

TinyNode *
op_scatter_reduce (TinyBuild *b,
                   TinyNode *self,
                   guint axis,
                   TinyNode *index,
                   TinyNode *src,
                   const char *reduce,
                   gboolean include_self)
{
  TinyNode *positions, *x = self;
  guint which;
  if (!tiny_build_word (b, reduce, "sum|prod|mean|amax|amin", &which)
      || !prepare (b, self, axis, index, &positions, &src))
    return NULL;
  gboolean is_bool = self->dtype == TINY_DTYPE_BOOL;
  if (is_bool) {
    x = tiny_build_cast (b, x, TINY_DTYPE_I32);
    src = tiny_build_cast (b, src, TINY_DTYPE_I32);
  }
  if (which == REDUCE_AMIN)
    x = tiny_build_reversed (b, combine_with (b, tiny_build_reversed (b, x), axis, positions,
                                              tiny_build_reversed (b, src), REDUCE_AMAX,
                                              include_self));
  else
    x = combine_with (b, x, axis, positions, src, which, include_self);
  return is_bool ? tiny_build_cast (b, x, TINY_DTYPE_BOOL) : x;
}

TinyNode *
op_scatter_add (TinyBuild *b, TinyNode *self, guint axis, TinyNode *index, TinyNode *src)
{
  return op_scatter_reduce (b, self, axis, index, src, "sum", TRUE);
}

TinyNode *
op_scatter (TinyBuild *b,
            TinyNode *self,
            guint axis,
            TinyNode *index,
            TinyNode *src,
            const char *reduce)
{
  TinyNode *positions;
  guint which;
  if (reduce != NULL)
    return !tiny_build_word (b, reduce, "add|multiply", &which)
               ? NULL
               : op_scatter_reduce (b, self, axis, index, src, which == 0 ? "sum" : "prod",
                                    TRUE);
  if (!prepare (b, self, axis, index, &positions, &src))
    return NULL;
  return tiny_build_put (b, self, axis, positions, src);
}

/* ---- whole rows ---- */

/* A vector of positions along @axis, and values of the shape that these take of @x. */
static gboolean
prepare_rows (TinyBuild *b,
              TinyNode *x,
              guint axis,
              TinyNode *index,
              TinyNode **positions,
              TinyNode **values)
{
  gint64 dims[TINY_MAX_RANK], own[TINY_MAX_RANK], n = tiny_shape_get_n_elements (index->shape);
  if (index->shape->n > 1)
    return tiny_build_fail (b, "the indices are a vector, not %u axes", index->shape->n)
           != NULL;
  for (guint i = 0; i < x->shape->n; i++) {
    dims[i] = i == axis ? n : x->shape->v[i];
    own[i] = i == axis ? n : 1;
  }
  TinyNode *source = tiny_build_cast (b, *values, (TinyDType) x->dtype);
  gboolean fits = source != NULL
                  && (source->shape->n == 0 || source->shape->n == x->shape->n
                      || (source->shape->n == x->shape->n - 1 && n == 1));
  if (source != NULL && source->shape->n > 0 && source->shape->n < x->shape->n && fits)
    source = tiny_build_unsqueeze (b, source, axis);
  for (guint i = 0; fits && source->shape->n > 0 && i < x->shape->n; i++)
    fits = source->shape->v[i] == dims[i];
  if (!fits)
    return source == NULL ? FALSE : misfit (b, "values", source, index, axis);
  *positions
      = tiny_build_reshape (b, tiny_build_positions (b, x, axis, index), own, x->shape->n);
  *values = tiny_build_expand (b, source, dims, x->shape->n);
  return *positions != NULL && *values != NULL;
}

TinyNode *
op_index_add (
    TinyBuild *b, TinyNode *self, guint axis, TinyNode *index, TinyNode *source, double alpha)
{
  TinyNode *positions;
  if (alpha != 1)
    source = tiny_build_mul (b, source, tiny_build_like (b, source, alpha));
  if (source == NULL || !prepare_rows (b, self, axis, index, &positions, &source))
    return NULL;
  return combine_with (b, self, axis, positions, source, REDUCE_SUM, TRUE);
}

TinyNode *
op_index_copy (TinyBuild *b, TinyNode *self, guint axis, TinyNode *index, TinyNode *source)
{
  TinyNode *positions;
  return prepare_rows (b, self, axis, index, &positions, &source)
             ? tiny_build_put (b, self, axis, positions, source)
             : NULL;
}

TinyNode *
op_index_fill (TinyBuild *b, TinyNode *self, guint axis, TinyNode *index, TinyNode *value)
{
  TinyNode *positions;
  if (value->shape->n != 0)
    return tiny_build_fail (b, "the value is one number, without axes");
  return prepare_rows (b, self, axis, index, &positions, &value)
             ? tiny_build_put (b, self, axis, positions, value)
             : NULL;
}
