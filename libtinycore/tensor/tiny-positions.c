/* SPDX-License-Identifier: MIT
 *
 * tiny-positions.c: writing at positions that are data, without stores at computed addresses.
 *
 * Few positions are compared with every place. Of many that would be places times positions: these are sorted, so that
 * those of one place follow each other, and each place looks up where its own begin and how many there are. A sum
 * over them is one over all positions that masks what comes after: its loop ends there (codegen/pass-bound.c), and so
 * for the largest; products are made of neighbours by doubling. What is added up, is in the order in which it was given. */
#include "tensor/tiny-positions.h"

#include <math.h>

#include "ir/tiny-shape.h"
#include "tensor/tiny-order.h"

enum {
  MANY_POSITIONS = 256,       /* fewer are never sorted, … */
  MANY_COMPARISONS = 1 << 24, /* nor to spare fewer of these: a dozen kernels cost as much */
};

TinyNode *
tiny_build_count_along (TinyBuild *self, TinyDType dtype, guint axis, gint64 n, guint rank)
{
  gint64 dims[TINY_MAX_RANK + 1];
  for (guint i = 0; i < rank; i++)
    dims[i] = i == axis ? n : 1;
  return tiny_build_reshape (self, tiny_build_iota (self, dtype, n), dims, rank);
}

TinyNode *
tiny_build_wide_enough (TinyBuild *self, TinyNode *positions, gint64 n)
{
  if (positions == NULL)
    return NULL;
  gboolean wide = tiny_dtype_get_n_bytes ((TinyDType) positions->dtype) > 4
                  || positions->dtype == TINY_DTYPE_U32 || n > G_MAXINT32;
  return tiny_build_cast (self, positions, wide ? TINY_DTYPE_I64 : TINY_DTYPE_I32);
}

/* ---- by comparison ---- */
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

/* ---- by sorting ---- */
gboolean
tiny_build_is_sorted (const TinyNode *positions, guint axis, gint64 n, const TinyNode *values)
{
  gint64 m = positions->shape->v[axis];
  return m >= MANY_POSITIONS
         && (double) n * (double) tiny_shape_get_n_elements (values->shape) > MANY_COMPARISONS;
}

/* Positions in order, those of one place in the order in which they were given. */
typedef struct {
  TinyNode *order; /* (…, M, …) */
  TinyNode *first,
      *count; /* (…, N, …): where those of a place begin in the order, how many there are */
} Sorted;

/* Of numbers below @n. */
static guint
count_bits (gint64 n)
{
  guint bits = 0;
  while ((gint64) 1 << bits < n)
    bits++;
  return bits;
}

/* A position and which one it is as one number: no two are equal, and nothing else is moved. */
static TinyNode *
number_positions (TinyBuild *b, TinyNode *positions, guint axis, gint64 n, guint *out_shift)
{
  guint bits = count_bits (positions->shape->v[axis]);
  if (n >= G_MAXINT64 >> bits)
    return tiny_build_fail (b, "more positions than there are numbers for");
  gboolean wide = n >= G_MAXINT32 >> bits;
  TinyDType dtype = wide ? TINY_DTYPE_I64 : TINY_DTYPE_I32;
  TinyNode *last = tiny_node_const_int (b->graph, (TinyDType) positions->dtype, n);
  TinyNode *place
      = tiny_build_where (b, tiny_build_is_inside (b, positions, n), positions, last);
  place = tiny_build_cast (b, place, dtype);
  TinyNode *scale = tiny_node_const_int (b->graph, dtype, (gint64) 1 << bits);
  TinyNode *which
      = tiny_build_count_along (b, dtype, axis, positions->shape->v[axis], positions->shape->n);
  *out_shift = bits;
  return tiny_build_add (b, tiny_build_mul (b, place, scale), which);
}

static gboolean
sort_positions (TinyBuild *b, TinyNode *positions, guint axis, gint64 n, Sorted *out)
{
  gint64 dims[TINY_MAX_RANK];
  guint rank = positions->shape->n, shift = 0;
  TinyNode *keys = number_positions (b, positions, axis, n, &shift);
  TinyNode *sorted = tiny_build_sort_distinct (b, tiny_build_store (b, keys), axis, shift,
                                               shift + count_bits (n + 1));
  if (sorted == NULL)
    return FALSE;
  TinyDType dtype = (TinyDType) sorted->dtype;
  sorted = tiny_build_store (b, sorted);
  TinyNode *mask = tiny_node_const_int (b->graph, dtype, ((gint64) 1 << shift) - 1);
  out->order
      = tiny_build_cast (b, tiny_build_binary (b, TINY_OP_AND, sorted, mask), TINY_DTYPE_I32);
  for (guint i = 0; i < rank; i++)
    dims[i] = i == axis ? n + 1 : positions->shape->v[i];
  TinyNode *place = tiny_build_count_along (b, dtype, axis, n + 1, rank);
  place = tiny_build_mul (b, place, tiny_node_const_int (b->graph, dtype, (gint64) 1 << shift));
  place = tiny_build_expand (b, place, dims, rank);
  TinyNode *begins = tiny_build_store (b, tiny_build_rank_in (b, sorted, place, axis, FALSE));
  out->first = tiny_build_slice (b, begins, axis, 0, 1, n);
  TinyNode *end = tiny_build_slice (b, begins, axis, 1, 1, n);
  out->count = tiny_build_store (b, tiny_build_sub (b, end, out->first));
  return out->count != NULL;
}

/* @x (…, M, …) along @axis at @at (…, N, K, …), whose other axes may be 1: (…, N, K, …) */
static TinyNode *
look_up (TinyBuild *b, TinyNode *x, guint axis, TinyNode *at)
{
  if (x == NULL || at == NULL)
    return NULL;
  gint64 from[TINY_MAX_RANK + 1], to[TINY_MAX_RANK + 1];
  guint rank = at->shape->n;
  for (guint i = 0; i < rank; i++) {
    gint64 size = i == axis ? at->shape->v[axis] : x->shape->v[i < axis ? i : i - 1];
    from[i] = size;
    to[i] = i == axis + 1 ? at->shape->v[axis + 1] : size;
  }
  x = tiny_build_expand (b, tiny_build_unsqueeze (b, x, axis), from, rank);
  at = tiny_build_expand (b, at, to, rank);
  return x == NULL || at == NULL ? NULL : tiny_node_gather (b->graph, x, axis + 1, at);
}

/* Whether those along all other axes are the same, and each has a lane of vectors of its own. */
static gboolean
are_lanes (const TinyNode *positions, guint axis)
{
  return axis > 0 && axis + 1 == positions->shape->n
         && positions->shape->v[axis] == tiny_shape_get_n_elements (positions->shape);
}

/* (…, M, …) and (…, M, …) to (…, N, …): a loop over those of each place, which @none ends. */
static TinyNode *
reduce_sorted (TinyBuild *b,
               TinyNode *positions,
               TinyNode *values,
               guint axis,
               gint64 n,
               TinyOp op,
               double none)
{
  Sorted sorted;
  gint64 m = positions->shape->v[axis], over[] = { axis + 1 };
  if (are_lanes (
          positions,
          axis)) { /* whose loops would end where the longest does: rows of them have one each */
    TinyNode *turned = tiny_build_transpose (b, values, 0, axis);
    turned = reduce_sorted (b, tiny_build_transpose (b, positions, 0, axis), turned, 0, n, op,
                            none);
    return tiny_build_transpose (b, tiny_build_store (b, turned), 0, axis);
  }
  if (!sort_positions (b, positions, axis, n, &sorted))
    return NULL;
  TinyNode *k = tiny_build_count_along (b, TINY_DTYPE_I32, axis + 1, m, values->shape->n + 1);
  TinyNode *count = tiny_build_unsqueeze (b, sorted.count, axis + 1);
  TinyNode *at = tiny_build_add (b, tiny_build_unsqueeze (b, sorted.first, axis + 1), k);
  TinyNode *which = look_up (b, tiny_build_store (b, sorted.order), axis, at);
  TinyNode *parts = tiny_build_where (b, tiny_build_less (b, k, count),
                                      look_up (b, tiny_build_store (b, values), axis, which),
                                      tiny_build_like (b, values, none));
  parts = tiny_build_reduce (b, op, parts, over, 1);
  return tiny_build_squeeze (b, parts, over, 1);
}

/* ---- either ---- */
TinyNode *
tiny_build_count_at (TinyBuild *self, TinyNode *positions, guint axis, gint64 n)
{
  Sorted sorted;
  if (positions == NULL)
    return NULL;
  if (tiny_build_is_sorted (positions, axis, n, positions))
    return sort_positions (self, positions, axis, n, &sorted) ? sorted.count : NULL;
  TinyNode *one = tiny_build_number (self, TINY_DTYPE_I32, 1);
  TinyNode *each
      = tiny_node_broadcast (self->graph, one, positions->shape->v, positions->shape->n);
  return tiny_build_combine (self, positions, each, axis, n, TINY_OP_ADD, 0);
}

/* Which of @positions at each place is the last, or -1. */
static TinyNode *
find_last (TinyBuild *self, TinyNode *positions, guint axis, gint64 n)
{
  Sorted sorted;
  gint64 m = positions->shape->v[axis];
  if (!tiny_build_is_sorted (positions, axis, n, positions)) {
    TinyNode *order
        = tiny_build_count_along (self, TINY_DTYPE_I32, axis, m, positions->shape->n);
    return tiny_build_combine (self, positions, order, axis, n, TINY_OP_MAX, -1);
  }
  if (!sort_positions (self, positions, axis, n, &sorted))
    return NULL;
  TinyNode *none = tiny_build_like (self, sorted.count, -1);
  TinyNode *at = tiny_build_add (self, tiny_build_add (self, sorted.first, sorted.count), none);
  TinyNode *order = tiny_build_store (self, sorted.order);
  TinyNode *is_any
      = tiny_build_less (self, tiny_build_like (self, sorted.count, 0), sorted.count);
  return order == NULL || at == NULL
             ? NULL
             : tiny_build_where (self, is_any, tiny_node_gather (self->graph, order, axis, at),
                                 none);
}

TinyNode *
tiny_build_put (TinyBuild *self, TinyNode *x, guint axis, TinyNode *positions, TinyNode *values)
{
  if (x == NULL || positions == NULL || values == NULL)
    return NULL;
  if (tiny_build_is_empty (values) || tiny_build_is_empty (x))
    return x;
  guint rank = x->shape->n;
  gint64 n = x->shape->v[axis];
  positions = tiny_build_wide_enough (self, positions, n);
  if (positions != NULL && positions->shape->v[axis] == 1) {
    /* one writes, or nobody: nothing to look for */
    TinyNode *place
        = tiny_build_count_along (self, (TinyDType) positions->dtype, axis, n, rank);
    return tiny_build_where (self, tiny_build_binary (self, TINY_OP_CMPEQ, place, positions),
                             values, x);
  }
  TinyNode *last = positions == NULL ? NULL : find_last (self, positions, axis, n);
  if (last == NULL)
    return NULL;
  last = tiny_build_store (self, last);
  TinyNode *is_written = tiny_build_less (self, tiny_build_like (self, last, -1), last);
  last = tiny_build_expand (self, last, x->shape->v, rank);
  TinyNode *found = last == NULL ? NULL : tiny_node_gather (self->graph, values, axis, last);
  return tiny_build_where (self, is_written, found, x);
}

/* Of sorted positions the gradient would add up over places and positions: it has a rule. */
TinyNode *
tiny_build_scatter_sum (
    TinyBuild *self, TinyNode *x, guint axis, TinyNode *positions, TinyNode *values)
{
  if (x == NULL || positions == NULL || values == NULL)
    return NULL;
  gint64 n = x->shape->v[axis];
  positions = tiny_build_wide_enough (self, positions, n);
  if (positions == NULL || !tiny_build_is_sorted (positions, axis, n, values))
    return tiny_build_combine (self, positions, values, axis, n, TINY_OP_ADD, 0);
  TinyNode *sum = reduce_sorted (self, positions, values, axis, n, TINY_OP_ADD, 0);
  if (sum == NULL || sum->dtype != values->dtype || !tiny_dtype_is_float (sum->dtype))
    return sum;
  TinyNode *sources[] = { sum, values, positions };
  gint64 rule = TINY_RULE_SCATTER + (gint64) (sum->shape->n - 1 - axis);
  return tiny_node_new (self->graph, TINY_OP_GRADIENT, (TinyDType) sum->dtype, 1, 3, sources,
                        rule, tiny_graph_ints (self->graph, (gint64[]){ 0, 1, 0 }, 3), NULL);
}

/* @x, sorted, with what is @distance before it, where that belongs to the same place. */
static TinyNode *
multiply_before (TinyBuild *b, TinyNode *x, TinyNode *place, guint axis, gint64 distance)
{
  gint64 pairs[2 * TINY_MAX_RANK] = { 0 }, m = x->shape->v[axis];
  pairs[2 * axis] = distance;
  TinyNode *before
      = tiny_build_pad (b, tiny_build_slice (b, x, axis, 0, 1, m - distance), pairs, 1);
  TinyNode *other
      = tiny_build_pad (b, tiny_build_slice (b, place, axis, 0, 1, m - distance), pairs, -1);
  TinyNode *is_same = tiny_build_binary (b, TINY_OP_CMPEQ, place, other);
  return tiny_build_where (b, is_same, tiny_build_mul (b, x, before), x);
}

/* Products have no gradient that a sum could give (one factor may be 0): those of 2, 4, 8 … neighbours have. */
static TinyNode *
multiply_sorted (TinyBuild *b, TinyNode *positions, TinyNode *values, guint axis, gint64 n)
{
  Sorted sorted;
  gint64 m = positions->shape->v[axis];
  if (!sort_positions (b, positions, axis, n, &sorted))
    return NULL;
  TinyNode *order = tiny_build_store (b, sorted.order);
  TinyNode *one = tiny_build_like (b, sorted.count, 1);
  TinyNode *last = tiny_build_sub (b, tiny_build_add (b, sorted.first, sorted.count), one);
  if (order == NULL || last == NULL)
    return NULL;
  TinyNode *place = tiny_build_store (b, tiny_node_gather (b->graph, positions, axis, order));
  TinyNode *x = tiny_build_store (b, tiny_node_gather (b->graph, values, axis, order));
  for (gint64 distance = 1; x != NULL && distance < m; distance *= 2)
    x = tiny_build_store_gradients (b, multiply_before (b, x, place, axis, distance));
  TinyNode *is_any = tiny_build_less (b, tiny_build_like (b, sorted.count, 0), sorted.count);
  return x == NULL ? NULL
                   : tiny_build_where (b, is_any, tiny_node_gather (b->graph, x, axis, last),
                                       tiny_build_like (b, x, 1));
}

TinyNode *
tiny_build_scatter_product (
    TinyBuild *self, TinyNode *positions, TinyNode *values, guint axis, gint64 n)
{
  return positions != NULL && values != NULL
                 && tiny_build_is_sorted (positions, axis, n, values)
             ? multiply_sorted (self, positions, values, axis, n)
             : tiny_build_combine (self, positions, values, axis, n, TINY_OP_MUL, 1);
}

/* Equals share the gradient: it is that of the mean of those that are the largest of their place. */
static TinyNode *
find_largest (TinyBuild *self, TinyNode *x, guint axis, TinyNode *positions, TinyNode *values)
{
  if (x == NULL || positions == NULL || values == NULL)
    return NULL;
  const double none = tiny_build_get_lowest (x);
  const gint64 n = x->shape->v[axis];
  if (!tiny_build_is_sorted (positions, axis, n, values))
    return tiny_build_combine (self, positions, values, axis, n, TINY_OP_MAX, none);
  TinyNode *largest = tiny_build_store (self, reduce_sorted (self, positions,
                                                             tiny_build_detach (self, values),
                                                             axis, n, TINY_OP_MAX, none));
  if (largest == NULL || !tiny_dtype_is_float (values->dtype))
    return largest;
  TinyNode *is_it = tiny_build_binary (
      self, TINY_OP_CMPEQ, values, tiny_node_gather (self->graph, largest, axis, positions));
  TinyNode *each = tiny_build_cast (self, is_it, (TinyDType) values->dtype);
  TinyNode *count
      = tiny_build_store (self, tiny_build_scatter_sum (self, x, axis, positions, each));
  if (count == NULL)
    return NULL;
  TinyNode *share
      = tiny_build_div (self, values, tiny_node_gather (self->graph, count, axis, positions));
  share = tiny_build_where (self, is_it, share, tiny_build_like (self, values, 0));
  TinyNode *mean = tiny_build_scatter_sum (self, x, axis, positions, share);
  return tiny_build_sloped (self, largest, mean, tiny_build_like (self, largest, 1));
}

/* MAX may drop NaNs, and what it met before. */
TinyNode *
tiny_build_scatter_largest (
    TinyBuild *self, TinyNode *x, guint axis, TinyNode *positions, TinyNode *values)
{
  if (x == NULL || positions == NULL || values == NULL || !tiny_dtype_is_float (x->dtype))
    return find_largest (self, x, axis, positions, values);
  const gint64 n = x->shape->v[axis];
  TinyNode *is_nan = tiny_build_binary (self, TINY_OP_CMPNE, values, values);
  TinyNode *lowest = tiny_build_like (self, values, tiny_build_get_lowest (x));
  TinyNode *found = find_largest (self, x, axis, positions,
                                  tiny_build_where (self, is_nan, lowest, values));
  TinyNode *ones = tiny_build_cast (self, is_nan, TINY_DTYPE_I32);
  TinyNode *has_nan = tiny_build_is_sorted (positions, axis, n, values)
                          ? reduce_sorted (self, positions, ones, axis, n, TINY_OP_MAX, 0)
                          : tiny_build_combine (self, positions, ones, axis, n, TINY_OP_MAX, 0);
  has_nan = tiny_build_cast (self, has_nan, TINY_DTYPE_BOOL);
  return found == NULL || has_nan == NULL
             ? NULL
             : tiny_build_where (self, has_nan, tiny_build_like (self, found, NAN), found);
}
