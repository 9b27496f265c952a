/* SPDX-License-Identifier: MIT
 *
 * tensor-search.c: where something belongs in what is sorted, and how much falls between two ends. */
#include <math.h>

#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-order.h"
#include "tensor/tiny-positions.h"

enum { FEW = 32 /* elements that are compared with each */ };

static TinyNode *
integer (TinyBuild *b, const TinyNode *like, gint64 value)
{
  return tiny_node_const_int (b->graph, (TinyDType) like->dtype, value);
}

static TinyNode *
both (TinyBuild *b, TinyNode *x, TinyNode *y)
{
  return tiny_build_binary (b, TINY_OP_AND, x, y);
}

/* ---- looking up in what is sorted ---- */

/* Of a part that is halved: what is before it comes before. No read is outside of the axis, and none is asked
 * whether it is. */
TinyNode *
tiny_build_rank_in (
    TinyBuild *self, TinyNode *sorted, TinyNode *values, guint axis, gboolean right)
{
  if (sorted == NULL || values == NULL)
    return NULL;
  gint64 n = sorted->shape->v[axis];
  TinyDType dtype = n > G_MAXINT32 / 2 ? TINY_DTYPE_I64 : TINY_DTYPE_I32;
  TinyDType common = tiny_dtype_promote ((TinyDType) sorted->dtype, (TinyDType) values->dtype);
  sorted = tiny_build_cast (self, sorted, common);
  values = tiny_build_cast (self, values, common);
  TinyNode *found = tiny_node_broadcast (self->graph, tiny_build_number (self, dtype, 0),
                                         values->shape->v, values->shape->n);
  if (n == 0 || tiny_shape_get_n_elements (values->shape) == 0)
    return tiny_build_cast (self, found, TINY_DTYPE_I32);
  TinyNode *is_nan = tiny_dtype_is_float (common)
                         ? tiny_build_binary (self, TINY_OP_CMPNE, values, values)
                         : NULL;
  for (gint64 size = n; size > 0 && found != NULL; size = size > 1 ? size - size / 2 : 0) {
    gint64 step = MAX (size / 2, 1);
    TinyNode *last = tiny_build_add (self, found, integer (self, found, step - 1));
    TinyNode *here = tiny_node_gather (self->graph, sorted, axis, last);
    TinyNode *passed
        = right ? op_le (self, here, values) : tiny_build_less (self, here, values);
    if (is_nan != NULL) /* it comes after all */
      passed = tiny_build_binary (self, TINY_OP_OR, passed, is_nan);
    found = tiny_build_where (self, passed,
                              tiny_build_add (self, found, integer (self, found, step)), found);
  }
  return tiny_build_cast (self, found, TINY_DTYPE_I32);
}

TinyNode *
op_searchsorted (
    TinyBuild *b, TinyNode *self, TinyNode *values, gboolean right, TinyNode *sorter)
{
  guint rank = self->shape->n, axis = rank - 1;
  if (rank == 0)
    return tiny_build_fail (b, "what is sorted has an axis");
  if (sorter != NULL) {
    if (!tiny_dtype_is_integer (sorter->dtype)
        || !tiny_shape_equal (sorter->shape, self->shape))
      return tiny_build_fail (b, "the sorter has integers in the shape of what it sorts");
    self = tiny_node_gather (b->graph, self, axis, sorter);
  }
  if (rank == 1) {
    gint64 n = tiny_shape_get_n_elements (values->shape);
    const TinyInts *shape = values->shape;
    TinyNode *flat = tiny_build_reshape (b, values, &n, 1);
    return tiny_build_reshape (b, tiny_build_rank_in (b, self, flat, 0, right), shape->v,
                               shape->n);
  }
  gboolean fits = values->shape->n == rank;
  for (guint i = 0; fits && i < axis; i++)
    fits = values->shape->v[i] == self->shape->v[i];
  if (!fits) {
    g_autofree char *own = tiny_shape_to_string (self->shape);
    g_autofree char *other = tiny_shape_to_string (values->shape);
    return tiny_build_fail (b, "%s and %s differ in more than the last axis", own, other);
  }
  return tiny_build_rank_in (b, self, values, axis, right);
}

TinyNode *
op_bucketize (TinyBuild *b, TinyNode *self, TinyNode *boundaries, gboolean right)
{
  if (boundaries->shape->n != 1)
    return tiny_build_fail (b, "the boundaries are a vector, not %u axes",
                            boundaries->shape->n);
  return op_searchsorted (b, boundaries, self, right, NULL);
}

/* Compared with each where these are few, else looked up. */
TinyNode *
op_isin (TinyBuild *b, TinyNode *self, TinyNode *test_elements, gboolean invert)
{
  gint64 n = tiny_shape_get_n_elements (test_elements->shape);
  gint64 n_self = tiny_shape_get_n_elements (self->shape);
  const TinyInts *shape = self->shape;
  TinyNode *found, *x = tiny_build_reshape (b, self, &n_self, 1);
  TinyNode *tests = tiny_build_reshape (b, test_elements, &n, 1);
  if (n <= FEW) {
    TinyNode *is_equal
        = tiny_build_binary (b, TINY_OP_CMPEQ, tiny_build_unsqueeze (b, x, 1), tests);
    found
        = tiny_build_squeeze (b, op_any (b, is_equal, (gint64[]){ 1 }, 1), (gint64[]){ 1 }, 1);
  } else {
    TinyNode *order = tiny_build_order (b, tests, 0, n, FALSE);
    TinyNode *sorted = order == NULL ? NULL : tiny_node_gather (b->graph, tests, 0, order);
    sorted = tiny_build_store (b, sorted);
    TinyNode *place = tiny_build_rank_in (b, sorted, x, 0, FALSE);
    found = place == NULL ? NULL
                          : tiny_build_binary (b, TINY_OP_CMPEQ, x,
                                               tiny_node_gather (b->graph, sorted, 0, place));
    /* Beyond the last a read gives 0, which is no element. */
    found = both (b, found, tiny_build_is_inside (b, place, n));
  }
  found
      = tiny_build_reshape (b, invert ? tiny_build_not (b, found) : found, shape->v, shape->n);
  return found;
}

/* ---- counting ---- */

/* Which of @bins between two ends, -1 outside. */
static TinyNode *
bin_of (TinyBuild *b, TinyNode *x, TinyNode *low, TinyNode *high, gint64 bins)
{
  TinyNode *n = tiny_build_like (b, x, (double) bins);
  TinyNode *share = tiny_build_div (b, tiny_build_mul (b, tiny_build_sub (b, x, low), n),
                                    tiny_build_sub (b, high, low));
  TinyNode *inside = both (b, op_le (b, low, x), op_le (b, x, high));
  TinyNode *none = tiny_build_number (b, TINY_DTYPE_I32, -1);
  TinyNode *last = tiny_build_number (b, TINY_DTYPE_I32, (double) bins - 1);
  share = tiny_build_where (b, inside, share, tiny_build_like (b, x, 0));
  TinyNode *bin = op_minimum (b, tiny_build_cast (b, share, TINY_DTYPE_I32), last);
  return tiny_build_where (b, inside, bin, none);
}

TinyNode *
op_histc (TinyBuild *b, TinyNode *self, gint64 bins, double min, double max)
{
  gint64 n = tiny_shape_get_n_elements (self->shape);
  if (!tiny_dtype_is_float (self->dtype))
    return tiny_build_fail (b, "takes floats, not %s",
                            tiny_dtype_to_string ((TinyDType) self->dtype));
  if (bins < 1 || bins > G_MAXINT32 || !(min <= max) || isinf (min) || isinf (max))
    return tiny_build_fail (b, "%" G_GINT64_FORMAT " bins from %g to %g", bins, min, max);
  if (n == 0)
    return tiny_node_broadcast (b->graph, tiny_build_like (b, self, 0), &bins, 1);
  TinyNode *x = tiny_build_reshape (b, self, &n, 1);
  TinyNode *low = tiny_build_like (b, x, min), *high = tiny_build_like (b, x, max);
  if (min == max) {
    low = tiny_build_reshape (b, op_min (b, x, (gint64[]){ 0 }, 1), NULL, 0);
    high = tiny_build_reshape (b, op_max (b, x, (gint64[]){ 0 }, 1), NULL, 0);
    TinyNode *is_point = tiny_build_binary (b, TINY_OP_CMPEQ, low, high);
    TinyNode *one = tiny_build_like (b, x, 1);
    low = tiny_build_where (b, is_point, tiny_build_sub (b, low, one), low);
    high = tiny_build_where (b, is_point, tiny_build_add (b, high, one), high);
  }
  TinyNode *bin = tiny_build_store (b, bin_of (b, x, low, high, bins));
  TinyNode *counts
      = tiny_build_cast (b, tiny_build_count_at (b, bin, 0, bins), (TinyDType) self->dtype);
  if (min != max)
    return counts;
  TinyNode *zero = tiny_build_like (b, x, 0); /* times a bound that is not finite: NaN */
  TinyNode *unfit
      = tiny_build_add (b, tiny_build_mul (b, low, zero), tiny_build_mul (b, high, zero));
  return tiny_build_add (b, counts, unfit);
}
