/* SPDX-License-Identifier: MIT
 *
 * tensor-reduce.c: sums and other combinations over axes. */
#include <math.h>

#include "ir/tiny-limit.h"
#include "ir/tiny-shape.h"
#include "rewrite/tiny-bounds.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-layout.h"
#include "tensor/tiny-tensor-operations.h"

/* ---- building blocks ---- */
gint64
tiny_build_count (TinyNode *x, const gint64 *axes, guint n)
{
  gint64 count = 1;
  for (guint i = 0; i < n; i++)
    count *= x->shape->v[axes[i]];
  return count;
}

/* @x, @value where an element is of no account along one of @axes; all of these are meant from here on. */
static TinyNode *
mask (TinyBuild *self, TinyNode *x, TinyNode *value, const gint64 *axes, guint n)
{
  for (guint i = 0; x != NULL && i < n; i++) {
    guint axis = (guint) axes[i];
    TinyNode *limit = tiny_limit_get (x, axis);
    gint64 dims[32], size = x->shape->v[axis];
    if (limit == NULL)
      continue;
    for (guint k = 0; k < x->shape->n; k++)
      dims[k] = k == axis ? size : 1;
    TinyNode *counter = tiny_build_iota (self, TINY_DTYPE_I32, size);
    TinyNode *is_there = tiny_build_binary (self, TINY_OP_CMPLT, counter, limit);
    is_there = tiny_build_reshape (self, is_there, dims, x->shape->n);
    is_there = tiny_node_limit (self->graph, is_there, axis, limit);
    x = tiny_build_where (self, is_there, x, value);
    x = x != NULL ? tiny_node_limit (self->graph, x, axis, NULL) : NULL;
  }
  return x;
}

/* @x, of which nothing needs to be computed or stored where it is of no account. */
static TinyNode *
leave_open (TinyBuild *self, TinyNode *x)
{
  const TinyNode *limited = x;
  for (guint i = 0; x != NULL && i < limited->shape->n; i++) {
    TinyNode *limit = tiny_limit_get (limited, i);
    if (limit == NULL)
      continue;
    x = mask (self, x, tiny_node_open (self->graph, (TinyDType) x->dtype), (gint64[]){ i }, 1);
    x = x != NULL ? tiny_node_limit (self->graph, x, i, limit) : NULL;
  }
  return x;
}

/* What is of no account adds nothing. */
static TinyNode *
reduce_limited (TinyBuild *self, TinyOp op, TinyNode *x, const gint64 *axes, guint n)
{
  if (x->limits == NULL)
    return tiny_layout_reduce (self->graph, x, op, axes, n);
  for (guint i = 0; i < n && op == TINY_OP_MAX; i++) {
    TinyNode *limit = tiny_limit_get (x, (guint) axes[i]);
    gint64 lo = 1, hi;
    if (limit != NULL)
      tiny_node_get_bounds (limit, &lo, &hi);
    if (lo < 1)
      return tiny_build_fail (
          self,
          "there is no largest or smallest of no elements, and the size of axis %u, "
          "a variable, may be 0",
          (guint) axes[i]);
  }
  TinyNode *identity = tiny_build_like (self, x, op == TINY_OP_MUL ? 1 : 0);
  if (op == TINY_OP_MAX && tiny_dtype_is_float (x->dtype))
    identity = tiny_build_like (self, x, -INFINITY);
  else if (op == TINY_OP_MAX)
    identity = tiny_node_const_int (self->graph, (TinyDType) x->dtype,
                                    tiny_dtype_get_min ((TinyDType) x->dtype));
  x = mask (self, x, identity, axes, n);
  return x == NULL ? NULL : leave_open (self, tiny_layout_reduce (self->graph, x, op, axes, n));
}

/* The number of elements along @axes less @correction, at least 0, in @like's dtype. */
static TinyNode *
count_in (TinyBuild *self,
          TinyNode *like,
          TinyNode *x,
          const gint64 *axes,
          guint n,
          gint64 correction)
{
  if (like == NULL || x == NULL)
    return NULL;
  gint64 known = 1;
  TinyNode *count = NULL;
  for (guint i = 0; i < n; i++) {
    TinyNode *limit = tiny_limit_get (x, (guint) axes[i]);
    if (limit == NULL)
      known *= x->shape->v[axes[i]];
    else
      count = count == NULL ? limit : tiny_build_mul (self, count, limit);
  }
  if (count == NULL)
    return tiny_build_like (self, like, (double) MAX (known - correction, 0));
  count = tiny_build_cast (self, count, (TinyDType) like->dtype);
  count = tiny_build_mul (self, count, tiny_build_like (self, like, (double) known));
  count = tiny_build_sub (self, count, tiny_build_like (self, like, (double) correction));
  return tiny_build_binary (self, TINY_OP_MAX, count, tiny_build_like (self, like, 0));
}

TinyNode *
tiny_build_reduce (TinyBuild *self, TinyOp op, TinyNode *x, const gint64 *axes, guint n)
{
  if (x == NULL)
    return NULL;
  if (tiny_shape_get_n_elements (x->shape) > 0)
    return reduce_limited (self, op, x, axes, n);
  if (op == TINY_OP_MAX && tiny_build_count (x, axes, n) == 0)
    return tiny_build_fail (self, "there is no largest or smallest of no elements");
  gint64 dims[32];
  for (guint i = 0; i < x->shape->n; i++)
    dims[i] = x->shape->v[i];
  for (guint i = 0; i < n; i++)
    dims[axes[i]] = 1;
  TinyNode *neutral = tiny_build_like (self, x, op == TINY_OP_MUL ? 1 : 0);
  neutral = tiny_build_beside (self, neutral, x);
  return tiny_node_broadcast (self->graph, neutral, dims, x->shape->n);
}

TinyDType
tiny_build_sum_dtype (TinyDType dtype)
{
  if (tiny_dtype_is_float (dtype) || tiny_dtype_get_n_bytes (dtype) >= 4)
    return dtype;
  return tiny_dtype_is_unsigned (dtype) ? TINY_DTYPE_U32 : TINY_DTYPE_I32;
}

TinyNode *
tiny_build_sum (TinyBuild *self, TinyNode *x, const gint64 *axes, guint n)
{
  if (x == NULL)
    return NULL;
  x = tiny_build_cast (self, x, tiny_build_sum_dtype ((TinyDType) x->dtype));
  return tiny_build_reduce (self, TINY_OP_ADD, x, axes, n);
}

/* 1 / (the number of elements less @correction), by which sums are multiplied. */
static TinyNode *
inverse_count (TinyBuild *self,
               TinyNode *like,
               TinyNode *x,
               const gint64 *axes,
               guint n,
               gint64 correction)
{
  if (x->limits == NULL) {
    double count = (double) tiny_build_count (x, axes, n) - (double) correction;
    return tiny_build_like (self, like, 1.0 / MAX (count, 0));
  }
  return tiny_build_unary (self, TINY_OP_RECIP, count_in (self, like, x, axes, n, correction));
}

/* Narrow floats stay wide until they are divided, so that large sums do not overflow. */
TinyNode *
tiny_build_mean (TinyBuild *self, TinyNode *x, const gint64 *axes, guint n)
{
  if (x == NULL)
    return NULL;
  TinyDType dtype
      = tiny_dtype_is_float (x->dtype) ? (TinyDType) x->dtype : tiny_get_default_float ();
  TinyNode *wide = tiny_build_cast (self, x, dtype == TINY_DTYPE_F64 ? dtype : TINY_DTYPE_F32);
  TinyNode *sum = tiny_build_reduce (self, TINY_OP_ADD, wide, axes, n);
  TinyNode *scale = inverse_count (self, sum, x, axes, n, 0);
  return tiny_build_cast (self, tiny_build_mul (self, sum, scale), dtype);
}

TinyNode *
tiny_build_var (TinyBuild *self,
                TinyNode *x,
                TinyNode *mean,
                const gint64 *axes,
                guint n,
                gint64 correction)
{
  x = tiny_build_float (self, x);
  if (x == NULL || mean == NULL)
    return NULL;
  TinyDType dtype = (TinyDType) x->dtype;
  TinyDType wide = dtype == TINY_DTYPE_F64 ? dtype : TINY_DTYPE_F32;
  TinyNode *distance = tiny_build_cast (self, tiny_build_sub (self, x, mean), wide);
  TinyNode *sum = tiny_build_reduce (self, TINY_OP_ADD,
                                     tiny_build_mul (self, distance, distance), axes, n);
  TinyNode *scale = inverse_count (self, sum, x, axes, n, correction);
  return tiny_build_cast (self, tiny_build_mul (self, sum, scale), dtype);
}

/* ---- operations ---- */
TinyNode *
op_sum (TinyBuild *b, TinyNode *self, const gint64 *axes, guint n_axes)
{
  return tiny_build_sum (b, self, axes, n_axes);
}

TinyNode *
op_mean (TinyBuild *b, TinyNode *self, const gint64 *axes, guint n_axes)
{
  return tiny_build_mean (b, self, axes, n_axes);
}

/* Whether a NaN is among what is combined. */
static TinyNode *
has_nan (TinyBuild *b, TinyNode *x, const gint64 *axes, guint n)
{
  TinyNode *ones = tiny_build_cast (b, op_isnan (b, x), TINY_DTYPE_I32);
  return tiny_build_cast (b, tiny_build_reduce (b, TINY_OP_MAX, ones, axes, n),
                          TINY_DTYPE_BOOL);
}

/* MAX of floats may drop NaNs. */
TinyNode *
op_max (TinyBuild *b, TinyNode *self, const gint64 *axes, guint n_axes)
{
  if (self == NULL || self->dtype != TINY_DTYPE_BOOL) {
    TinyNode *largest = tiny_build_reduce (b, TINY_OP_MAX, self, axes, n_axes);
    if (largest == NULL || largest == self || !tiny_dtype_is_float (self->dtype))
      return largest;
    return tiny_build_where (b, has_nan (b, self, axes, n_axes), tiny_build_like (b, self, NAN),
                             largest);
  }
  TinyNode *numbers = tiny_build_cast (b, self, TINY_DTYPE_I32);
  return tiny_build_cast (b, tiny_build_reduce (b, TINY_OP_MAX, numbers, axes, n_axes),
                          TINY_DTYPE_BOOL);
}

TinyNode *
tiny_build_reversed (TinyBuild *b, TinyNode *x)
{
  return x != NULL && tiny_dtype_is_float (x->dtype) ? tiny_build_unary (b, TINY_OP_NEG, x)
                                                     : op_bitwise_not (b, x);
}

TinyNode *
op_min (TinyBuild *b, TinyNode *self, const gint64 *axes, guint n_axes)
{
  return tiny_build_reversed (b, op_max (b, tiny_build_reversed (b, self), axes, n_axes));
}

TinyNode *
op_logsumexp (TinyBuild *b, TinyNode *self, const gint64 *axes, guint n_axes)
{
  if (tiny_build_is_empty (self)) /* of no elements none is the largest */
    return op_log (b, tiny_build_sum (b, self, axes, n_axes));
  TinyNode *shift = tiny_build_reduce (b, TINY_OP_MAX, self, axes, n_axes);
  if (shift == NULL)
    return NULL;
  shift = tiny_layout_unary (b->graph, TINY_OP_DETACH, shift);
  shift = tiny_build_where (b, op_isfinite (b, shift), shift, tiny_build_like (b, shift, 0));
  TinyNode *shifted = tiny_build_exp (b, tiny_build_sub (b, self, shift));
  return tiny_build_add (b, op_log (b, tiny_build_sum (b, shifted, axes, n_axes)), shift);
}

TinyNode *
op_prod (TinyBuild *b, TinyNode *self, const gint64 *axes, guint n_axes)
{
  TinyNode *wide = tiny_build_cast (b, self, tiny_build_sum_dtype ((TinyDType) self->dtype));
  return tiny_build_reduce (b, TINY_OP_MUL, wide, axes, n_axes);
}

TinyNode *
op_any (TinyBuild *b, TinyNode *self, const gint64 *axes, guint n_axes)
{
  self = tiny_build_cast (b, self, TINY_DTYPE_BOOL);
  if (self != NULL && tiny_shape_get_n_elements (self->shape) == 0)
    return tiny_build_reduce (b, TINY_OP_ADD, self, axes, n_axes);
  return op_max (b, self, axes, n_axes);
}

TinyNode *
op_all (TinyBuild *b, TinyNode *self, const gint64 *axes, guint n_axes)
{
  return tiny_build_not (b, op_any (b, tiny_build_not (b, self), axes, n_axes));
}

TinyNode *
op_var (TinyBuild *b, TinyNode *self, const gint64 *axes, guint n_axes, gint64 correction)
{
  TinyNode *mean = tiny_build_mean (b, self, axes, n_axes);
  return tiny_build_var (b, self, mean, axes, n_axes, correction);
}

TinyNode *
tiny_build_root (TinyBuild *self, TinyNode *x)
{
  if (x == NULL)
    return NULL;
  TinyNode *zero = tiny_build_like (self, x, 0), *one = tiny_build_like (self, x, 1);
  TinyNode *is_zero = tiny_build_binary (self, TINY_OP_CMPEQ, x, zero);
  TinyNode *root
      = tiny_build_unary (self, TINY_OP_SQRT, tiny_build_where (self, is_zero, one, x));
  return tiny_build_where (self, is_zero, zero, root);
}

TinyNode *
op_std (TinyBuild *b, TinyNode *self, const gint64 *axes, guint n_axes, gint64 correction)
{
  return tiny_build_root (b, op_var (b, self, axes, n_axes, correction));
}

/* Where the largest is, n - i; the largest of those belongs to the first of them. */
static TinyNode *
position (TinyBuild *b, TinyNode *x, TinyNode *best, guint axis)
{
  if (best == NULL)
    return NULL;
  gint64 axes[] = { axis }, dims[32], size = x->shape->v[axis];
  for (guint i = 0; i < x->shape->n; i++)
    dims[i] = i == axis ? size : 1;
  TinyNode *n = tiny_build_number (b, TINY_DTYPE_I32, (double) size);
  TinyNode *left = tiny_build_sub (b, n, tiny_build_iota (b, TINY_DTYPE_I32, size));
  left = tiny_build_reshape (b, left, dims, x->shape->n);
  TinyNode *is_best = tiny_build_binary (b, TINY_OP_CMPEQ, x, best);
  if (tiny_dtype_is_float (x->dtype)) /* NaN is the best there is */
    is_best = op_logical_or (b, is_best, op_isnan (b, x));
  TinyNode *scores
      = tiny_build_where (b, is_best, left, tiny_build_number (b, TINY_DTYPE_I32, 0));
  return tiny_build_sub (b, n, tiny_build_reduce (b, TINY_OP_MAX, scores, axes, 1));
}

TinyNode *
op_argmax (TinyBuild *b, TinyNode *self, guint axis)
{
  return position (b, self, op_max (b, self, (gint64[]){ axis }, 1), axis);
}

TinyNode *
op_argmin (TinyBuild *b, TinyNode *self, guint axis)
{
  return position (b, self, op_min (b, self, (gint64[]){ axis }, 1), axis);
}

void
op_aminmax (TinyBuild *b, TinyNode *self, const gint64 *axes, guint n_axes, TinyNode **out)
{
  out[0] = op_min (b, self, axes, n_axes);
  out[1] = op_max (b, self, axes, n_axes);
}

void
op_var_mean (TinyBuild *b,
             TinyNode *self,
             const gint64 *axes,
             guint n_axes,
             gint64 correction,
             TinyNode **out)
{
  out[1] = tiny_build_mean (b, self, axes, n_axes);
  out[0] = tiny_build_var (b, self, out[1], axes, n_axes, correction);
}

void
op_std_mean (TinyBuild *b,
             TinyNode *self,
             const gint64 *axes,
             guint n_axes,
             gint64 correction,
             TinyNode **out)
{
  op_var_mean (b, self, axes, n_axes, correction, out);
  out[0] = tiny_build_root (b, out[0]);
}

TinyNode *
op_diff (TinyBuild *b, TinyNode *self, gint64 n, guint axis)
{
  enum { MOST = 1024 }; /* the factors of a sum of that many differences are beyond f64 */
  if (n < 0)
    return tiny_build_fail (b, "%" G_GINT64_FORMAT " times cannot be", n);
  if (n >= self->shape->v[axis])
    return tiny_build_slice (b, self, axis, 0, 1, 0);
  if (n > MOST)
    return tiny_build_fail (b, "%" G_GINT64_FORMAT " times are more than %d", n, MOST);
  for (; n > 0 && self != NULL; n--) {
    gint64 rest = self->shape->v[axis] - 1;
    TinyNode *after = tiny_build_slice (b, self, axis, 1, 1, rest);
    TinyNode *before = tiny_build_slice (b, self, axis, 0, 1, rest);
    self = self->dtype == TINY_DTYPE_BOOL ? op_logical_xor (b, after, before)
                                          : tiny_build_sub (b, after, before);
  }
  return self;
}
