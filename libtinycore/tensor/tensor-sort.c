/* SPDX-License-Identifier: MIT
 *
 * tensor-sort.c: elements in order.
 *
 * Long rows are sorted by digits (tiny-radix.c); the others, and those of which few are wanted, by a stable merge
 * sort made of gathers. Keys are integers of the order of the elements. Blocks of a few are sorted by counting for
 * each element how many come before it. Two sorted runs are merged by finding for each place of the result, by
 * bisection, how many elements of the first run are before it (the merge path, Green, McColl and Bader 2012), so a
 * pass over n elements is one kernel of log n reads each and two that move them. Only what is asked for is kept of
 * each merge: the k largest of n take n + k log n reads. */
#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-nth.h"
#include "tensor/tiny-order.h"
#include "tensor/tiny-positions.h"
#include "tensor/tiny-radix.h"

enum { MAX_BLOCK = 32, STEP = 16, FEW = 8, LEAST_CHUNKED = 512, MOST_CHUNKED = 64 };

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

/* Runs, all in order: keys, and for each where it came from in its row, if that is wanted. (R, n_runs * length) */
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
sort_blocks (
    TinyBuild *b, TinyNode *keys, gint64 block, gint64 keep, gboolean wants_from, Runs *out)
{
  gint64 n_rows = keys->shape->v[0], n_runs = keys->shape->v[1] / block;
  gint64 length = MIN (block, keep);
  keys = reshape_runs (b, tiny_build_store (b, keys), n_rows * n_runs, block);
  TinyNode *order = order_block (b, keys, length);
  *out = (Runs){ NULL, NULL, n_rows, n_runs, length };
  if (order == NULL)
    return;
  if (n_runs > 1 || !wants_from) {
    order = tiny_build_store (b, order);
    out->keys = tiny_build_store (b, tiny_node_gather (b->graph, keys, 1, order));
  }
  if (!wants_from)
    return;
  TinyNode *base = tiny_build_count_along (b, TINY_DTYPE_I32, 1, n_runs, 3);
  base = tiny_build_mul (b, base, tiny_build_like (b, base, (double) block));
  order = tiny_build_reshape (b, order, (gint64[]){ n_rows, n_runs, length }, 3);
  out->from = tiny_build_add (b, order, base);
  out->from = tiny_build_store (b, reshape_runs (b, out->from, n_rows * n_runs, length));
}

/* How many of the first run are among the first p of both, for each p of @p, from @low to @high, which are up to
 * @most apart; keys (K, 2L). The least i such that the next of the first run comes after the last taken of the
 * second. */
static TinyNode *
search_path (TinyBuild *b,
             TinyNode *keys,
             gint64 length,
             TinyNode *p,
             TinyNode *low,
             TinyNode *high,
             gint64 most)
{
  TinyNode *one = tiny_build_like (b, p, 1);
  TinyNode *last = tiny_build_add (b, p, tiny_build_like (b, p, (double) length - 1));
  for (gint64 left = most; left > 0 && low != NULL; left >>= 1) {
    TinyNode *middle = tiny_build_binary (b, TINY_OP_SHR, tiny_build_add (b, low, high), one);
    TinyNode *opposite = tiny_build_sub (b, last, middle);
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

/* The same of all the row: p (K, P). */
static TinyNode *
search_row (TinyBuild *b, TinyNode *keys, gint64 length, TinyNode *p)
{
  TinyNode *n = tiny_build_like (b, p, (double) length), *zero = tiny_build_like (b, p, 0);
  return search_path (b, keys, length, p, op_maximum (b, tiny_build_sub (b, p, n), zero),
                      op_minimum (b, p, n), length);
}

/* … of each p below @n_wanted: of one of STEP by all of the row, of those after it from there. */
static TinyNode *
merge_path (TinyBuild *b, TinyNode *keys, gint64 length, gint64 n_wanted, TinyNode *p)
{
  gint64 dims[] = { keys->shape->v[0], (n_wanted - 1) / STEP + 1 };
  if (length < 2 * STEP)
    return search_row (b, keys, length, p);
  TinyNode *few = tiny_build_count_along (b, TINY_DTYPE_I32, 1, dims[1], 2);
  few = tiny_build_mul (b, few, tiny_build_like (b, few, STEP));
  few = search_row (b, keys, length, tiny_build_expand (b, few, dims, 2));
  few = tiny_build_store (b, few);
  if (few == NULL)
    return NULL;
  TinyNode *n = tiny_build_like (b, p, (double) length);
  TinyNode *step = tiny_build_like (b, p, STEP);
  TinyNode *from
      = tiny_node_gather (b->graph, few, 1, tiny_build_binary (b, TINY_OP_FLOORDIV, p, step));
  TinyNode *beyond = tiny_build_binary (b, TINY_OP_FLOORMOD, p, step);
  return search_path (b, keys, length, p, op_maximum (b, from, tiny_build_sub (b, p, n)),
                      op_minimum (b, tiny_build_add (b, from, beyond), n), STEP - 1);
}

static void
merge_runs (TinyBuild *b, Runs *runs, gint64 keep)
{
  gint64 length = runs->length, n_pairs = runs->n_rows * runs->n_runs / 2;
  gint64 dims[] = { n_pairs, MIN (2 * length, keep) };
  TinyNode *keys = reshape_runs (b, runs->keys, n_pairs, 2 * length);
  TinyNode *p = tiny_build_count_along (b, TINY_DTYPE_I32, 1, dims[1], 2);
  p = tiny_build_expand (b, p, dims, 2);
  TinyNode *i = p == NULL ? NULL : merge_path (b, keys, length, dims[1], p);
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
  if (runs->from == NULL)
    return;
  TinyNode *from = reshape_runs (b, runs->from, n_pairs, 2 * length);
  runs->from = tiny_build_store (b, tiny_node_gather (b->graph, from, 1, source));
}

/* @keys (R, N): the first @keep in order. */
static void
merge_rows (TinyBuild *b, TinyNode *keys, gint64 keep, gboolean wants_from, Runs *out)
{
  gint64 n = keys->shape->v[1], n_runs = 1;
  while ((n - 1) / n_runs + 1 > MAX_BLOCK)
    n_runs *= 2;
  gint64 block = (n - 1) / n_runs + 1;
  sort_blocks (b, pad_keys (b, keys, block * n_runs), block, keep, wants_from, out);
  while (out->n_runs > 1 && out->keys != NULL)
    merge_runs (b, out, keep);
}

/* The same of the bits from @first_bit on, the others being in order; the largest key is below 2^@n_bits, or that is
 * all bits. Long rows are sorted by digits, unless few are wanted of them. */
static void
sort_rows (TinyBuild *b,
           TinyNode *keys,
           gint64 keep,
           guint first_bit,
           guint n_bits,
           gboolean wants_from,
           Runs *out)
{
  gint64 n = keys->shape->v[1];
  TinyRadix radix = { first_bit, n_bits, wants_from, keys, NULL };
  if (keep <= n / FEW || !tiny_radix_is_worth_it (keys)) {
    merge_rows (b, keys, keep, wants_from, out);
    return;
  }
  tiny_radix_sort (b, &radix);
  *out = (Runs){ radix.keys, radix.from, keys->shape->v[0], 1, n };
  if (wants_from && radix.from != NULL && keep < n)
    out->from = tiny_build_slice (b, radix.from, 1, 0, 1, keep);
}

static TinyNode *order_rows (TinyBuild *b, TinyNode *keys, gint64 keep);

/* Where those chunks of @size of @keys (R, N) are that hold the first @keep, of one chunk behind the other: (R,
 * @keep * @size). No other chunk can hold one: the first of @keep chunks come before all of it. */
static TinyNode *
find_chunks (TinyBuild *b, TinyNode *keys, gint64 keep, gint64 size)
{
  gint64 dims[] = { keys->shape->v[0], keys->shape->v[1] / size, size }, last[] = { 2 };
  Runs runs;
  TinyNode *first = tiny_build_reversed (b, tiny_build_reshape (b, keys, dims, 3));
  first = tiny_build_reversed (b, tiny_build_reduce (b, TINY_OP_MAX, first, last, 1));
  first = tiny_build_store (b, tiny_build_squeeze (b, first, last, 1));
  TinyNode *which = first == NULL ? NULL : order_rows (b, first, keep);
  if (which == NULL)
    return NULL;
  sort_rows (b, which, keep, 0, 8 * sizeof (gint32), FALSE, &runs); /* ties stay in order */
  TinyNode *at = tiny_build_unsqueeze (b, runs.keys, 2);
  at = tiny_build_add (b, tiny_build_mul_number (b, at, (double) size),
                       tiny_build_count_along (b, TINY_DTYPE_I32, 2, size, 3));
  return tiny_build_reshape (b, at, (gint64[]){ dims[0], keep * size }, 2);
}

/* Where the first @keep of @keys (R, N) are, in order; of few only chunks that begin early are looked at. */
static TinyNode *
order_rows (TinyBuild *b, TinyNode *keys, gint64 keep)
{
  Runs runs;
  gint64 n = keys->shape->v[1], size = 1;
  if (n < LEAST_CHUNKED || keep > n / MOST_CHUNKED) {
    sort_rows (b, keys, keep, 0, 8 * (guint) tiny_dtype_get_n_bytes ((TinyDType) keys->dtype),
               TRUE, &runs);
    return runs.from;
  }
  while (4 * size * size * keep <= n)
    size *= 2;
  keys = tiny_build_store (b, pad_keys (b, keys, (n + size - 1) / size * size));
  TinyNode *at = keys == NULL ? NULL : find_chunks (b, keys, keep, size);
  TinyNode *found
      = at == NULL ? NULL
                   : order_rows (
                       b, tiny_build_store (b, tiny_node_gather (b->graph, keys, 1, at)), keep);
  return found == NULL ? NULL : tiny_node_gather (b->graph, at, 1, found);
}

/* @axis of @x last, and rows of it. */
static TinyNode *
rows_of (TinyBuild *b, TinyNode *x, guint axis)
{
  gint64 n = x->shape->v[axis], n_elements = tiny_shape_get_n_elements (x->shape);
  x = tiny_build_transpose (b, x, axis, x->shape->n - 1);
  return tiny_build_reshape (b, x, (gint64[]){ n_elements / n, n }, 2);
}

/* @rows (R, @keep) of something like @x as they were. */
static TinyNode *
unmake_rows (TinyBuild *b, TinyNode *rows, const TinyNode *x, guint axis, gint64 keep)
{
  gint64 dims[TINY_MAX_RANK + 1];
  guint rank = x->shape->n;
  for (guint i = 0; i < rank; i++)
    dims[i] = x->shape->v[i];
  dims[axis] = x->shape->v[rank - 1];
  dims[rank - 1] = keep;
  rows = tiny_build_reshape (b, rows, dims, rank);
  return tiny_build_transpose (b, rows, axis, rank - 1);
}

static gboolean
check_n (TinyBuild *b, gint64 n)
{
  return n <= G_MAXINT32 / 2
         || tiny_build_fail (b, "%" G_GINT64_FORMAT " elements are too many to sort", n)
                != NULL;
}

TinyNode *
tiny_build_sort_distinct (
    TinyBuild *self, TinyNode *x, guint axis, guint first_bit, guint n_bits)
{
  Runs runs;
  if (x == NULL || !check_n (self, x->shape->v[axis]))
    return NULL;
  if (tiny_build_is_empty (x) || x->shape->v[axis] == 1)
    return x;
  sort_rows (self, rows_of (self, x, axis), x->shape->v[axis], first_bit, n_bits, FALSE, &runs);
  return unmake_rows (self, runs.keys, x, axis, x->shape->v[axis]);
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
  if (!check_n (self, n))
    return NULL;
  TinyNode *keys = key_of (self, rows_of (self, x, axis), descending);
  return keys == NULL ? NULL : unmake_rows (self, order_rows (self, keys, keep), x, axis, keep);
}

/* The positions along @axis, which becomes 1, of what has @n before it in order. */
static TinyNode *
find_nth (TinyBuild *b, TinyNode *x, guint axis, gint64 n)
{
  TinyNode *keys = x->shape->v[axis] == 1 || tiny_build_is_empty (x)
                       ? NULL
                       : key_of (b, rows_of (b, x, axis), FALSE);
  if (keys == NULL || !check_n (b, x->shape->v[axis]) || !tiny_nth_is_worth_it (keys))
    return tiny_build_slice (b, tiny_build_order (b, x, axis, n + 1, FALSE), axis, n, 1, 1);
  return unmake_rows (b, tiny_build_nth (b, keys, n), x, axis, 1);
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
  out[1] = find_nth (b, self, axis, k - 1);
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
