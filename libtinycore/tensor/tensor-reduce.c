/* SPDX-License-Identifier: MIT
 *
 * tensor-reduce.c: sums and other combinations over axes. */
#include <math.h>

#include "ir/tiny-shape.h"
#include "tensor/tiny-build.h"
#include "tensor/tiny-layout.h"
#include "tensor/tiny-tensor-math.h"

/* ---- building blocks ---- */
gint64
tiny_build_count (TinyNode *x, const gint64 *axes, guint n)
{
  gint64 count = 1;
  for (guint i = 0; i < n; i++)
    count *= x->shape->v[axes[i]];
  return count;
}

TinyNode *
tiny_build_reduce (TinyBuild *self, TinyOp op, TinyNode *x, const gint64 *axes, guint n)
{
  if (x == NULL)
    return NULL;
  if (tiny_shape_get_n_elements (x->shape) > 0)
    return tiny_layout_reduce (self->graph, x, op, axes, n);
  if (op == TINY_OP_MAX && tiny_build_count (x, axes, n) == 0)
    return tiny_build_fail (self, "there is no largest or smallest of no elements");
  gint64 dims[32];
  for (guint i = 0; i < x->shape->n; i++)
    dims[i] = x->shape->v[i];
  for (guint i = 0; i < n; i++)
    dims[axes[i]] = 1;
  TinyNode *neutral = tiny_build_like (self, x, op == TINY_OP_MUL ? 1 : 0);
  return tiny_node_broadcast (self->graph, neutral, dims, x->shape->n);
}

/* What narrow integers are added up in. */
static TinyDType
sum_dtype (TinyDType dtype)
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
  x = tiny_build_cast (self, x, sum_dtype ((TinyDType) x->dtype));
  return tiny_build_reduce (self, TINY_OP_ADD, x, axes, n);
}

/* Narrow floats stay wide until they are divided, so that large sums do not overflow. */
TinyNode *
tiny_build_mean (TinyBuild *self, TinyNode *x, const gint64 *axes, guint n)
{
  if (x == NULL)
    return NULL;
  TinyDType dtype = tiny_dtype_is_float (x->dtype) ? (TinyDType) x->dtype : TINY_DTYPE_F32;
  TinyNode *wide = tiny_build_cast (self, x, dtype == TINY_DTYPE_F64 ? dtype : TINY_DTYPE_F32);
  TinyNode *sum = tiny_build_reduce (self, TINY_OP_ADD, wide, axes, n);
  TinyNode *scale = tiny_build_like (self, sum, 1.0 / (double) tiny_build_count (x, axes, n));
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
  gint64 count = tiny_build_count (x, axes, n) - correction;
  TinyNode *scale = tiny_build_like (self, sum, 1.0 / (double) MAX (count, 0));
  return tiny_build_cast (self, tiny_build_mul (self, sum, scale), dtype);
}

/* ---- public functions ---- */
typedef TinyNode *(*Combine) (TinyBuild *self, TinyNode *x, const gint64 *axes, guint n);

static TinyNode *
max_node (TinyBuild *self, TinyNode *x, const gint64 *axes, guint n)
{
  if (x->dtype != TINY_DTYPE_BOOL)
    return tiny_build_reduce (self, TINY_OP_MAX, x, axes, n);
  TinyNode *numbers = tiny_build_cast (self, x, TINY_DTYPE_I32);
  return tiny_build_cast (self, tiny_build_reduce (self, TINY_OP_MAX, numbers, axes, n),
                          TINY_DTYPE_BOOL);
}

/* An order-reversing map that is its own inverse: negation, of integers reversal of the bits. */
static TinyNode *
reversed (TinyBuild *self, TinyNode *x)
{
  if (x == NULL || tiny_dtype_is_float (x->dtype))
    return tiny_build_unary (self, TINY_OP_NEG, x);
  if (x->dtype == TINY_DTYPE_BOOL)
    return tiny_build_not (self, x);
  return tiny_build_binary (self, TINY_OP_XOR, x,
                            tiny_node_const_int (self->graph, (TinyDType) x->dtype, -1));
}

static TinyNode *
min_node (TinyBuild *self, TinyNode *x, const gint64 *axes, guint n)
{
  return reversed (self, max_node (self, reversed (self, x), axes, n));
}

static TinyNode *
prod_node (TinyBuild *self, TinyNode *x, const gint64 *axes, guint n)
{
  x = tiny_build_cast (self, x, sum_dtype ((TinyDType) x->dtype));
  return tiny_build_reduce (self, TINY_OP_MUL, x, axes, n);
}

static TinyNode *
any_node (TinyBuild *self, TinyNode *x, const gint64 *axes, guint n)
{
  x = tiny_build_cast (self, x, TINY_DTYPE_BOOL);
  if (tiny_shape_get_n_elements (x->shape) == 0)
    return tiny_build_reduce (self, TINY_OP_ADD, x, axes, n);
  return max_node (self, x, axes, n);
}

static TinyNode *
all_node (TinyBuild *self, TinyNode *x, const gint64 *axes, guint n)
{
  return tiny_build_not (self, any_node (self, tiny_build_not (self, x), axes, n));
}

static TinyTensor *
combine (const char *name,
         Combine function,
         TinyTensor *x,
         const gint *axes,
         guint n_axes,
         gboolean keepdim)
{
  TinyBuild b;
  TinyNode *node = NULL;
  gint64 order[TINY_MAX_RANK + 1];
  guint n;
  if (tiny_build_begin (&b, name, 1, &x)
      && tiny_build_axes (&b, b.x[0], axes, n_axes, order, &n)) {
    node = function (&b, b.x[0], order, n);
    if (!keepdim)
      node = tiny_build_squeeze (&b, node, order, n);
  }
  return tiny_build_end (&b, node);
}

#define REDUCTION(name, function)                                                              \
  TinyTensor *tiny_tensor_##name (TinyTensor *self, const gint *axes, guint n_axes,            \
                                  gboolean keepdim)                                            \
  {                                                                                            \
    return combine (#name, function, self, axes, n_axes, keepdim);                             \
  }

/* clang-format off */
REDUCTION (sum, tiny_build_sum)
REDUCTION (mean, tiny_build_mean)
REDUCTION (max, max_node)
REDUCTION (min, min_node)
REDUCTION (prod, prod_node)
REDUCTION (any, any_node)
REDUCTION (all, all_node)
/* clang-format on */

static TinyTensor *
spread (const char *name,
        gboolean root,
        TinyTensor *x,
        const gint *axes,
        guint n_axes,
        gint correction,
        gboolean keepdim)
{
  TinyBuild b;
  TinyNode *node = NULL;
  gint64 order[TINY_MAX_RANK + 1];
  guint n;
  if (tiny_build_begin (&b, name, 1, &x)
      && tiny_build_axes (&b, b.x[0], axes, n_axes, order, &n)) {
    TinyNode *mean = tiny_build_mean (&b, b.x[0], order, n);
    node = tiny_build_var (&b, b.x[0], mean, order, n, correction);
    if (root)
      node = tiny_build_unary (&b, TINY_OP_SQRT, node);
    if (!keepdim)
      node = tiny_build_squeeze (&b, node, order, n);
  }
  return tiny_build_end (&b, node);
}

TinyTensor *
tiny_tensor_var (
    TinyTensor *self, const gint *axes, guint n_axes, gint correction, gboolean keepdim)
{
  return spread ("var", FALSE, self, axes, n_axes, correction, keepdim);
}

TinyTensor *
tiny_tensor_std (
    TinyTensor *self, const gint *axes, guint n_axes, gint correction, gboolean keepdim)
{
  return spread ("std", TRUE, self, axes, n_axes, correction, keepdim);
}

/* Where the largest is, n - i; the largest of those belongs to the first of them. */
static TinyTensor *
position (const char *name, gboolean largest, TinyTensor *x, gint axis, gboolean keepdim)
{
  TinyBuild b;
  TinyNode *node = NULL;
  guint at;
  if (tiny_build_begin (&b, name, 1, &x) && tiny_build_axis (&b, b.x[0], axis, &at)) {
    gint64 axes[] = { at }, dims[32], size = b.x[0]->shape->v[at];
    TinyNode *best = largest ? max_node (&b, b.x[0], axes, 1) : min_node (&b, b.x[0], axes, 1);
    for (guint i = 0; i < b.x[0]->shape->n; i++)
      dims[i] = i == at ? size : 1;
    TinyNode *n = tiny_build_number (&b, TINY_DTYPE_I32, (double) size);
    TinyNode *left = tiny_build_sub (&b, n, tiny_build_iota (&b, TINY_DTYPE_I32, size));
    left = tiny_build_reshape (&b, left, dims, b.x[0]->shape->n);
    TinyNode *is_best = tiny_build_binary (&b, TINY_OP_CMPEQ, b.x[0], best);
    TinyNode *scores
        = tiny_build_where (&b, is_best, left, tiny_build_number (&b, TINY_DTYPE_I32, 0));
    node = tiny_build_sub (&b, n, tiny_build_reduce (&b, TINY_OP_MAX, scores, axes, 1));
    if (!keepdim)
      node = tiny_build_squeeze (&b, node, axes, 1);
  }
  return tiny_build_end (&b, node);
}

TinyTensor *
tiny_tensor_argmax (TinyTensor *self, gint axis, gboolean keepdim)
{
  return position ("argmax", TRUE, self, axis, keepdim);
}

TinyTensor *
tiny_tensor_argmin (TinyTensor *self, gint axis, gboolean keepdim)
{
  return position ("argmin", FALSE, self, axis, keepdim);
}
