/* SPDX-License-Identifier: MIT
 *
 * tensor-scan.c: what has come together up to each position along an axis.
 *
 * In two stages, recursively: the axis becomes blocks of BLOCK, each position combines those before it in its
 * block (a reduction of a window that ends there), and the totals of the blocks are scanned the same way and stored.
 * So an axis of n takes about n * BLOCK steps, is read twice and written once (but for exponentials, whose blocks are
 * stored), and log n / log BLOCK kernels each make totals and results. Blocks are small: in blocks of 32, rows of 2048 took a processor 2.8 times as long as in
 * blocks of 8. */
#include <math.h>

#include "ir/tiny-shape.h"
#include "ir/tiny-limit.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-layout.h"

enum { BLOCK = 8, WHOLE = 16 /* the longest that is one block */, MAX_RANK = 32 };

typedef struct {
  TinyOp op; /* ADD MUL MAX; EXP2 stands for the logarithm of the sum of exponentials */
  TinyNode *neutral;
} Scan;

/* @x with @before and @after neutral elements around it. */
static TinyNode *
extend (TinyBuild *b, const Scan *scan, TinyNode *x, guint axis, gint64 before, gint64 after)
{
  TinyNode *parts[3];
  gint64 dims[MAX_RANK], pairs[2 * MAX_RANK] = { 0 };
  guint n = 0;
  pairs[2 * axis] = before;
  pairs[2 * axis + 1] = after;
  if (scan->op == TINY_OP_ADD)
    return tiny_build_pad (b, x, pairs, 0);
  for (guint i = 0; i < x->shape->n; i++)
    dims[i] = x->shape->v[i];
  for (guint side = 0; side < 2; side++) {
    dims[axis] = side == 0 ? before : after;
    if (side == 1)
      parts[n++] = x;
    if (dims[axis] > 0)
      parts[n++] = tiny_node_broadcast (b->graph, scan->neutral, dims, x->shape->n);
  }
  return n == 1 ? x : tiny_build_cat (b, parts, n, axis);
}

/* Along @axis of size n, as (…, n, …, n): position, then what it may look at, the position itself last. These lie
 * one behind the other for each position, so that vectors are read. */
static TinyNode *
spread_block (TinyBuild *b, const Scan *scan, TinyNode *x, guint axis)
{
  gint64 n = x->shape->v[axis];
  x = extend (b, scan, x, axis, n - 1, 0);
  return x == NULL ? NULL : op_unfold (b, x, axis, n, 1);
}

/* log (sum (exp (x))); the largest is subtracted first, if it is finite. */
static TinyNode *
log_sum_exp (TinyBuild *b, TinyNode *x, guint axis)
{
  gint64 axes[] = { axis };
  TinyNode *largest = tiny_build_reduce (b, TINY_OP_MAX, x, axes, 1);
  largest = tiny_build_unary (b, TINY_OP_DETACH, largest);
  largest = tiny_build_where (b, op_isfinite (b, largest), largest, tiny_build_like (b, x, 0));
  TinyNode *sum = tiny_build_reduce (
      b, TINY_OP_ADD, tiny_build_exp (b, tiny_build_sub (b, x, largest)), axes, 1);
  return tiny_build_add (b, op_log (b, sum), largest);
}

static TinyNode *
scan_block (TinyBuild *b, const Scan *scan, TinyNode *x, guint axis)
{
  gint64 over[] = { x->shape->n };
  TinyNode *all = spread_block (b, scan, x, axis);
  if (all == NULL)
    return NULL;
  TinyNode *combined = scan->op == TINY_OP_EXP2 ? log_sum_exp (b, all, x->shape->n)
                                                : tiny_build_reduce (b, scan->op, all, over, 1);
  return tiny_build_squeeze (b, combined, over, 1);
}

/* The totals of the blocks along @axis, stored. They are made of @blocks again, so that @local goes into the result
 * alone and need not be stored; exponentials would cost more than storing it. */
static TinyNode *
total (TinyBuild *b, const Scan *scan, TinyNode *blocks, TinyNode *local, guint axis)
{
  gint64 over[] = { axis }, n = blocks->shape->v[axis];
  TinyNode *totals = scan->op == TINY_OP_EXP2
                         ? tiny_build_slice (b, local, axis, n - 1, 1, 1)
                         : tiny_build_reduce (b, scan->op, blocks, over, 1);
  return tiny_build_unary (b, TINY_OP_CONTIGUOUS, tiny_build_squeeze (b, totals, over, 1));
}

static TinyNode *
combine (TinyBuild *b, const Scan *scan, TinyNode *x, TinyNode *y)
{
  return scan->op == TINY_OP_EXP2 ? op_logaddexp (b, x, y)
                                  : tiny_build_binary (b, scan->op, x, y);
}

static TinyNode *
scan_along (TinyBuild *b, const Scan *scan, TinyNode *x, guint axis)
{
  if (x == NULL || scan->neutral == NULL)
    return NULL;
  gint64 n = x->shape->v[axis], dims[MAX_RANK];
  guint rank = x->shape->n;
  if (n <= 1)
    return x;
  if (n <= WHOLE)
    return scan_block (b, scan, x, axis);
  gint64 n_blocks = (n + BLOCK - 1) / BLOCK;
  x = extend (b, scan, x, axis, 0, n_blocks * BLOCK - n);
  if (x == NULL)
    return NULL;
  for (guint i = 0; i <= rank; i++)
    dims[i] = i < axis        ? x->shape->v[i]
              : i == axis     ? n_blocks
              : i == axis + 1 ? BLOCK
                              : x->shape->v[i - 1];
  TinyNode *blocks = tiny_build_reshape (b, x, dims, rank + 1);
  TinyNode *local = scan_block (b, scan, blocks, axis + 1);
  TinyNode *totals = total (b, scan, blocks, local, axis + 1);
  TinyNode *scanned = scan_along (b, scan, totals, axis);
  if (scanned == NULL)
    return NULL;
  /* Sums are stored as they are made, in vectors, and read one block further on. The gradient of logarithms reads
   * them again as they are read here: so they are stored. */
  if (scan->op != TINY_OP_EXP2)
    scanned = tiny_build_unary (b, TINY_OP_CONTIGUOUS, scanned);
  TinyNode *before
      = extend (b, scan, tiny_build_slice (b, scanned, axis, 0, 1, n_blocks - 1), axis, 1, 0);
  if (scan->op == TINY_OP_EXP2)
    before = tiny_build_unary (b, TINY_OP_CONTIGUOUS, before);
  TinyNode *result = combine (b, scan, local, tiny_build_unsqueeze (b, before, axis + 1));
  dims[axis] = n_blocks * BLOCK;
  for (guint i = axis + 1; i < rank; i++)
    dims[i] = x->shape->v[i];
  result = tiny_build_reshape (b, result, dims, rank);
  return tiny_build_slice (b, result, axis, 0, 1, n);
}

/* What is before a position alone counts there, so sizes that are variables are those of the result as well. */
static TinyNode *
scan (TinyBuild *b, const Scan *scan, TinyNode *x, guint axis)
{
  if (x == NULL)
    return NULL;
  TinyNode *whole = x;
  for (guint i = 0; i < x->shape->n; i++)
    if (tiny_limit_get (x, i) != NULL)
      whole = tiny_node_limit (b->graph, whole, i, NULL);
  TinyNode *result = scan_along (b, scan, whole, axis);
  return result != NULL ? tiny_node_limit_like (b->graph, result, x, 0) : NULL;
}

TinyNode *
op_cumsum (TinyBuild *b, TinyNode *self, guint axis)
{
  TinyNode *x = tiny_build_cast (b, self, tiny_build_sum_dtype ((TinyDType) self->dtype));
  return scan (b, &(Scan){ TINY_OP_ADD, tiny_build_like (b, x, 0) }, x, axis);
}

TinyNode *
op_cumprod (TinyBuild *b, TinyNode *self, guint axis)
{
  TinyNode *x = tiny_build_cast (b, self, tiny_build_sum_dtype ((TinyDType) self->dtype));
  return scan (b, &(Scan){ TINY_OP_MUL, tiny_build_like (b, x, 1) }, x, axis);
}

TinyNode *
op_logcumsumexp (TinyBuild *b, TinyNode *self, guint axis)
{
  return scan (b, &(Scan){ TINY_OP_EXP2, tiny_build_like (b, self, -INFINITY) }, self, axis);
}

static TinyNode *
scan_largest (TinyBuild *b, TinyNode *x, guint axis)
{
  if (x == NULL)
    return NULL;
  TinyDType dtype = (TinyDType) x->dtype;
  TinyNode *least = tiny_dtype_is_float (dtype)
                        ? tiny_build_number (b, dtype, -INFINITY)
                        : tiny_node_const_int (b->graph, dtype, tiny_dtype_get_min (dtype));
  return scan (b, &(Scan){ TINY_OP_MAX, least }, x, axis);
}

/* The last position so far that is as large as all before: those are records, and the latest of
 * them is the largest. NaN is larger than all. */
static TinyNode *
latest_record (TinyBuild *b, TinyNode *x, guint axis)
{
  gint64 dims[MAX_RANK], n = x->shape->v[axis];
  for (guint i = 0; i < x->shape->n; i++)
    dims[i] = i == axis ? n : 1;
  TinyNode *largest = scan_largest (b, x, axis);
  TinyNode *is_record = tiny_build_binary (b, TINY_OP_CMPEQ, x, largest);
  if (tiny_dtype_is_float (x->dtype)) {
    TinyNode *is_nan = op_isnan (b, x);
    TinyNode *seen = scan_largest (b, tiny_build_cast (b, is_nan, TINY_DTYPE_I32), axis);
    seen = tiny_build_cast (b, seen, TINY_DTYPE_BOOL);
    is_record = tiny_build_where (b, seen, is_nan, is_record);
  }
  TinyNode *position = tiny_build_iota (b, TINY_DTYPE_I32, n);
  position = tiny_build_reshape (b, position, dims, x->shape->n);
  TinyNode *none = tiny_build_number (b, TINY_DTYPE_I32, 0);
  return scan_largest (b, tiny_build_where (b, is_record, position, none), axis);
}

static void
extremes (TinyBuild *b, TinyNode *self, TinyNode *x, guint axis, TinyNode **out)
{
  if (self->shape->v[axis] == 0) {
    out[0] = self;
    out[1] = tiny_build_cast (b, self, TINY_DTYPE_I32);
    return;
  }
  if (self->shape->v[axis] > G_MAXINT32) {
    tiny_build_fail (b, "positions are i32: axis %u of %" G_GINT64_FORMAT " is too long", axis,
                     self->shape->v[axis]);
    return;
  }
  out[1] = latest_record (b, x, axis);
  out[0] = out[1] == NULL ? NULL : op_gather (b, self, axis, out[1]);
}

void
op_cummax (TinyBuild *b, TinyNode *self, guint axis, TinyNode **out)
{
  extremes (b, self, tiny_build_numeric (b, self), axis, out);
}

void
op_cummin (TinyBuild *b, TinyNode *self, guint axis, TinyNode **out)
{
  TinyNode *x = tiny_build_numeric (b, self);
  x = tiny_dtype_is_float (x->dtype) ? tiny_build_unary (b, TINY_OP_NEG, x)
                                     : op_bitwise_not (b, x);
  extremes (b, self, x, axis, out);
}
