/* SPDX-License-Identifier: MIT
 *
 * tensor-sort.c: elements in order.
 *
 * A stable merge sort made of gathers. Keys are integers of the order of the elements. Blocks of a
 * few are sorted by counting for each element how many come before it. Two sorted runs are merged
 * by finding for each place of the result, by bisection, how many elements of the first run are
 * before it (the merge path, Green, McColl and Bader 2012), so a pass over n elements is one kernel
 * of log n reads each and two that move them. Only what is asked for is kept of each merge: the k
 * largest of n take n + k log n reads. */
#include <math.h>

#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-order.h"
#include "tensor/tiny-positions.h"

enum { MAX_BLOCK = 32 };

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

/* ---- keys ---- */

/* The bits of a float as an integer that orders as it does: below 0 the rest is reversed. */
static TinyNode *
float_key (TinyBuild *b, TinyNode *x)
{
  gboolean is_double = x->dtype == TINY_DTYPE_F64;
  TinyDType dtype = is_double ? TINY_DTYPE_I64 : TINY_DTYPE_I32;
  x = tiny_build_cast (b, x, is_double ? TINY_DTYPE_F64 : TINY_DTYPE_F32);
  TinyNode *zero = tiny_build_like (b, x, 0);
  TinyNode *is_zero = tiny_build_binary (b, TINY_OP_CMPEQ, x, zero); /* of either sign */
  TinyNode *bits = op_bitcast (b, tiny_build_where (b, is_zero, zero, x), dtype);
  gint64 most = is_double ? G_MAXINT64 : G_MAXINT32;
  TinyNode *reversed = tiny_build_binary (b, TINY_OP_XOR, bits, integer (b, bits, most));
  TinyNode *key
      = tiny_build_where (b, tiny_build_less (b, bits, integer (b, bits, 0)), reversed, bits);
  TinyNode *is_nan = tiny_build_binary (b, TINY_OP_CMPNE, x, x);
  return tiny_build_where (b, is_nan, integer (b, bits, most), key);
}

static TinyNode *
key_of (TinyBuild *b, TinyNode *x, gboolean descending)
{
  TinyNode *key = x;
  if (tiny_dtype_is_float (x->dtype))
    key = float_key (b, x);
  else if (tiny_dtype_get_n_bytes ((TinyDType) x->dtype) < 4)
    key = tiny_build_cast (b, x, TINY_DTYPE_I32);
  return descending ? op_bitwise_not (b, key) : key;
}

static gint64
last_key (const TinyNode *key)
{
  switch (key->dtype) {
  case TINY_DTYPE_I32:
    return G_MAXINT32;
  case TINY_DTYPE_U32:
    return G_MAXUINT32;
  case TINY_DTYPE_I64:
    return G_MAXINT64;
  default:
    return -1; /* all bits of u64 */
  }
}

/* @keys (R, N) followed by last ones up to @n. */
static TinyNode *
pad_keys (TinyBuild *b, TinyNode *keys, gint64 n)
{
  gint64 have = keys->shape->v[1];
  if (n == have)
    return keys;
  TinyNode *padded = tiny_build_pad (b, keys, (gint64[]){ 0, 0, 0, n - have }, 0);
  TinyNode *inside = tiny_build_less (b, tiny_build_count_along (b, TINY_DTYPE_I32, 1, n, 2),
                                      tiny_build_number (b, TINY_DTYPE_I32, (double) have));
  return tiny_build_where (b, inside, padded, integer (b, keys, last_key (keys)));
}

/* ---- sorting ---- */

/* Runs, all in order: keys, and for each where it came from in its row. (R, n_runs * length) */
typedef struct {
  TinyNode *keys, *from;
  gint64 n_rows, n_runs, length;
} Runs;

static TinyNode *
reshape_runs (TinyBuild *b, TinyNode *x, gint64 rows, gint64 length)
{
  return tiny_build_reshape (b, x, (gint64[]){ rows, length }, 2);
}

/* For each place of a block which element goes there: the one that has as many before it.
 * keys (K, B) to (K, keep) */
static TinyNode *
order_block (TinyBuild *b, TinyNode *keys, gint64 keep)
{
  gint64 block = keys->shape->v[1], last[] = { 2 };
  TinyNode *one = tiny_build_unsqueeze (b, keys, 2), *other = tiny_build_unsqueeze (b, keys, 1);
  TinyNode *i = tiny_build_count_along (b, TINY_DTYPE_I32, 1, block, 3);
  TinyNode *j = tiny_build_count_along (b, TINY_DTYPE_I32, 2, block, 3);
  TinyNode *is_tie
      = both (b, tiny_build_binary (b, TINY_OP_CMPEQ, other, one), tiny_build_less (b, j, i));
  TinyNode *is_before
      = tiny_build_binary (b, TINY_OP_OR, tiny_build_less (b, other, one), is_tie);
  TinyNode *rank = tiny_build_sum (b, is_before, last, 1); /* (K, B, 1) */
  rank = tiny_build_store (b, tiny_build_squeeze (b, rank, last, 1));
  TinyNode *place = tiny_build_count_along (b, TINY_DTYPE_I32, 1, keep, 3);
  TinyNode *is_there
      = tiny_build_binary (b, TINY_OP_CMPEQ, tiny_build_unsqueeze (b, rank, 1), place);
  TinyNode *found = tiny_build_where (b, is_there, j, tiny_build_like (b, j, 0));
  return tiny_build_squeeze (b, tiny_build_sum (b, found, last, 1), last, 1);
}

static void
sort_blocks (TinyBuild *b, TinyNode *keys, gint64 block, gint64 keep, Runs *out)
{
  gint64 n_rows = keys->shape->v[0], n_runs = keys->shape->v[1] / block;
  gint64 length = MIN (block, keep);
  keys = reshape_runs (b, tiny_build_store (b, keys), n_rows * n_runs, block);
  TinyNode *order = order_block (b, keys, length);
  *out = (Runs){ NULL, NULL, n_rows, n_runs, length };
  if (order == NULL)
    return;
  if (n_runs > 1) {
    order = tiny_build_store (b, order);
    out->keys = tiny_build_store (b, tiny_node_gather (b->graph, keys, 1, order));
  }
  TinyNode *base = tiny_build_count_along (b, TINY_DTYPE_I32, 1, n_runs, 3);
  base = tiny_build_mul (b, base, tiny_build_like (b, base, (double) block));
  order = tiny_build_reshape (b, order, (gint64[]){ n_rows, n_runs, length }, 3);
  out->from = tiny_build_add (b, order, base);
  out->from = tiny_build_store (b, reshape_runs (b, out->from, n_rows * n_runs, length));
}

/* How many of the first run are among the first p of both, for each p below @n; keys (K, 2L).
 * The least i such that the next of the first run comes after the last taken of the second. */
static TinyNode *
merge_path (TinyBuild *b, TinyNode *keys, gint64 length, TinyNode *p)
{
  TinyNode *zero = tiny_build_like (b, p, 0), *one = tiny_build_like (b, p, 1);
  TinyNode *n = tiny_build_like (b, p, (double) length);
  TinyNode *low = op_maximum (b, tiny_build_sub (b, p, n), zero);
  TinyNode *high = op_minimum (b, p, n);
  for (gint64 left = length; left > 0 && low != NULL; left >>= 1) {
    TinyNode *middle = tiny_build_binary (b, TINY_OP_SHR, tiny_build_add (b, low, high), one);
    TinyNode *opposite = tiny_build_sub (
        b, tiny_build_add (b, p, tiny_build_like (b, p, (double) length - 1)), middle);
    TinyNode *first = tiny_node_gather (b->graph, keys, 1, middle);
    TinyNode *second = tiny_node_gather (b->graph, keys, 1, opposite);
    TinyNode *is_open = tiny_build_less (b, low, high);
    TinyNode *is_after = tiny_build_less (b, second, first);
    low = tiny_build_where (b, both (b, is_open, tiny_build_not (b, is_after)),
                            tiny_build_add (b, middle, one), low);
    high = tiny_build_where (b, both (b, is_open, is_after), middle, high);
  }
  return low;
}

static void
merge_runs (TinyBuild *b, Runs *runs, gint64 keep)
{
  gint64 length = runs->length, n_pairs = runs->n_rows * runs->n_runs / 2;
  gint64 dims[] = { n_pairs, MIN (2 * length, keep) };
  TinyNode *keys = reshape_runs (b, runs->keys, n_pairs, 2 * length);
  TinyNode *from = reshape_runs (b, runs->from, n_pairs, 2 * length);
  TinyNode *p = tiny_build_count_along (b, TINY_DTYPE_I32, 1, dims[1], 2);
  p = tiny_build_expand (b, p, dims, 2);
  TinyNode *i = p == NULL ? NULL : merge_path (b, keys, length, p);
  if (i == NULL) {
    runs->keys = runs->from = NULL;
    return;
  }
  i = tiny_build_store (b, i);
  TinyNode *n = tiny_build_like (b, i, (double) length);
  TinyNode *j = tiny_build_sub (b, p, i), *second = tiny_build_add (b, j, n);
  TinyNode *is_after = tiny_build_less (b, tiny_node_gather (b->graph, keys, 1, second),
                                        tiny_node_gather (b->graph, keys, 1, i));
  TinyNode *only_first = tiny_build_not (b, tiny_build_less (b, j, n));
  TinyNode *takes_first
      = both (b, tiny_build_less (b, i, n),
              tiny_build_binary (b, TINY_OP_OR, only_first, tiny_build_not (b, is_after)));
  TinyNode *source = tiny_build_where (b, takes_first, i, second);
  runs->n_runs /= 2;
  runs->length = dims[1];
  runs->keys = tiny_build_store (b, tiny_node_gather (b->graph, keys, 1, source));
  runs->from = tiny_build_store (b, tiny_node_gather (b->graph, from, 1, source));
}

/* @x (R, N): where its first @keep in order are. */
static TinyNode *
order_rows (TinyBuild *b, TinyNode *x, gint64 keep, gboolean descending)
{
  gint64 n = x->shape->v[1], n_runs = 1;
  while ((n - 1) / n_runs + 1 > MAX_BLOCK)
    n_runs *= 2;
  gint64 block = (n - 1) / n_runs + 1;
  TinyNode *keys = key_of (b, x, descending);
  if (keys == NULL)
    return NULL;
  Runs runs;
  sort_blocks (b, pad_keys (b, keys, block * n_runs), block, keep, &runs);
  while (runs.n_runs > 1 && runs.from != NULL)
    merge_runs (b, &runs, keep);
  return runs.from;
}

TinyNode *
tiny_build_order (TinyBuild *self, TinyNode *x, guint axis, gint64 keep, gboolean descending)
{
  if (x == NULL)
    return NULL;
  gint64 dims[TINY_MAX_RANK + 1], n = x->shape->v[axis];
  guint rank = x->shape->n;
  gint64 n_elements = tiny_shape_get_n_elements (x->shape);
  for (guint i = 0; i < rank; i++)
    dims[i] = i == axis ? keep : x->shape->v[i];
  if (n_elements == 0 || keep == 0 || n == 1)
    return tiny_node_broadcast (self->graph, tiny_build_number (self, TINY_DTYPE_I32, 0), dims,
                                rank);
  if (n > G_MAXINT32 / 2)
    return tiny_build_fail (self, "%" G_GINT64_FORMAT " elements are too many to sort", n);
  gint64 last = x->shape->v[rank - 1];
  x = tiny_build_transpose (self, x, axis, rank - 1);
  x = tiny_build_reshape (self, x, (gint64[]){ n_elements / n, n }, 2);
  TinyNode *order = order_rows (self, x, keep, descending);
  dims[axis] = last;
  dims[rank - 1] = keep;
  order = tiny_build_reshape (self, order, dims, rank);
  return tiny_build_transpose (self, order, axis, rank - 1);
}

/* ---- operations ---- */
static gboolean
check_some (TinyBuild *b, TinyNode *x, guint axis, gint64 least, gint64 k)
{
  if (k >= least && k <= x->shape->v[axis])
    return TRUE;
  tiny_build_fail (b, "k is %" G_GINT64_FORMAT ", the axis has %" G_GINT64_FORMAT " elements",
                   k, x->shape->v[axis]);
  return FALSE;
}

static void
take_first (
    TinyBuild *b, TinyNode *x, guint axis, gint64 keep, gboolean descending, TinyNode **out)
{
  TinyNode *order = tiny_build_order (b, x, axis, keep, descending);
  out[0] = order == NULL ? NULL : tiny_node_gather (b->graph, x, axis, order);
  out[1] = order;
}

void
op_sort (TinyBuild *b,
         TinyNode *self,
         guint axis,
         gboolean descending,
         gboolean stable,
         TinyNode **out)
{
  (void) stable; /* it always is */
  take_first (b, self, axis, self->shape->v[axis], descending, out);
}

TinyNode *
op_argsort (TinyBuild *b, TinyNode *self, guint axis, gboolean descending, gboolean stable)
{
  (void) stable;
  return tiny_build_order (b, self, axis, self->shape->v[axis], descending);
}

TinyNode *
op_msort (TinyBuild *b, TinyNode *self)
{
  TinyNode *out[2] = { NULL };
  if (self->shape->n == 0)
    return self;
  take_first (b, self, 0, self->shape->v[0], FALSE, out);
  return out[0];
}

void
op_topk (TinyBuild *b,
         TinyNode *self,
         gint64 k,
         guint axis,
         gboolean largest,
         gboolean sorted,
         TinyNode **out)
{
  (void) sorted;
  if (check_some (b, self, axis, 0, k))
    take_first (b, self, axis, k, largest, out);
}

void
op_kthvalue (TinyBuild *b, TinyNode *self, gint64 k, guint axis, TinyNode **out)
{
  if (!check_some (b, self, axis, 1, k))
    return;
  TinyNode *order = tiny_build_order (b, self, axis, k, FALSE);
  out[1] = tiny_build_slice (b, order, axis, k - 1, 1, 1);
  out[0] = out[1] == NULL ? NULL : tiny_node_gather (b->graph, self, axis, out[1]);
}

/* The lower of two; a NaN where there is one. */
void
op_median (TinyBuild *b, TinyNode *self, guint axis, TinyNode **out)
{
  gint64 n = self->shape->v[axis];
  if (n == 0) {
    tiny_build_fail (b, "there is no median of no elements");
    return;
  }
  op_kthvalue (b, self, (n - 1) / 2 + 1, axis, out);
  if (out[1] == NULL || !tiny_dtype_is_float (self->dtype))
    return;
  TinyNode *is_nan = tiny_build_binary (b, TINY_OP_CMPNE, self, self);
  TinyNode *has_nan = op_any (b, is_nan, (gint64[]){ axis }, 1);
  TinyNode *first_nan = op_argmax (b, tiny_build_cast (b, is_nan, TINY_DTYPE_I32), axis);
  out[1] = tiny_build_where (b, has_nan, first_nan, out[1]);
  out[0] = out[1] == NULL ? NULL : tiny_node_gather (b->graph, self, axis, out[1]);
}

/* ---- looking up in what is sorted ---- */

/* Halves of the axis, the largest power of two first: a step is made when all up to it come
 * before. */
TinyNode *
tiny_build_rank_in (
    TinyBuild *self, TinyNode *sorted, TinyNode *values, guint axis, gboolean right)
{
  if (sorted == NULL || values == NULL)
    return NULL;
  gint64 n = sorted->shape->v[axis], step = 1;
  TinyDType dtype = n > G_MAXINT32 / 2 ? TINY_DTYPE_I64 : TINY_DTYPE_I32;
  TinyDType common = tiny_dtype_promote ((TinyDType) sorted->dtype, (TinyDType) values->dtype);
  sorted = tiny_build_cast (self, sorted, common);
  values = tiny_build_cast (self, values, common);
  TinyNode *found = tiny_node_broadcast (self->graph, tiny_build_number (self, dtype, 0),
                                         values->shape->v, values->shape->n);
  if (n == 0 || tiny_shape_get_n_elements (values->shape) == 0)
    return tiny_build_cast (self, found, TINY_DTYPE_I32);
  while (step <= n / 2)
    step *= 2;
  TinyNode *end = tiny_build_number (self, dtype, (double) n + 1);
  TinyNode *is_nan = tiny_dtype_is_float (common)
                         ? tiny_build_binary (self, TINY_OP_CMPNE, values, values)
                         : NULL;
  for (; step > 0 && found != NULL; step /= 2) {
    TinyNode *next = tiny_build_add (self, found, integer (self, found, step));
    TinyNode *before = tiny_build_add (self, found, integer (self, found, step - 1));
    TinyNode *here = tiny_node_gather (self->graph, sorted, axis, before);
    TinyNode *passed
        = right ? op_le (self, here, values) : tiny_build_less (self, here, values);
    if (is_nan != NULL) /* it comes after all */
      passed = tiny_build_binary (self, TINY_OP_OR, passed, is_nan);
    found = tiny_build_where (self, both (self, tiny_build_less (self, next, end), passed),
                              next, found);
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
  if (n <= MAX_BLOCK) {
    TinyNode *is_equal
        = tiny_build_binary (b, TINY_OP_CMPEQ, tiny_build_unsqueeze (b, x, 1), tests);
    found
        = tiny_build_squeeze (b, op_any (b, is_equal, (gint64[]){ 1 }, 1), (gint64[]){ 1 }, 1);
  } else {
    TinyNode *sorted[2] = { NULL };
    take_first (b, tests, 0, n, FALSE, sorted);
    sorted[0] = tiny_build_store (b, sorted[0]);
    TinyNode *place = tiny_build_rank_in (b, sorted[0], x, 0, FALSE);
    found = place == NULL
                ? NULL
                : tiny_build_binary (b, TINY_OP_CMPEQ, x,
                                     tiny_node_gather (b->graph, sorted[0], 0, place));
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
  TinyNode *one
      = tiny_node_broadcast (b->graph, tiny_build_number (b, TINY_DTYPE_I32, 1), &n, 1);
  return tiny_build_cast (b, tiny_build_combine (b, bin, one, 0, bins, TINY_OP_ADD, 0),
                          (TinyDType) self->dtype);
}
