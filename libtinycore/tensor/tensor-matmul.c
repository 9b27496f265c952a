/* SPDX-License-Identifier: MIT
 *
 * tensor-matmul.c: products of matrices, as a product broadcast over (…, M, N, K) and its sum over
 * K. The kernel compiler finds the matrix product in it. */
#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-layout.h"
#include "tensor/tiny-tensor-operations.h"

static gboolean
check_inner (TinyBuild *self, const TinyInts *x, const TinyInts *y)
{
  gint64 inner_x = x->n > 0 ? x->v[x->n - 1] : 0;
  gint64 inner_y = y->n > 0 ? y->v[y->n == 1 ? 0 : y->n - 2] : 0;
  if (x->n > 0 && y->n > 0 && inner_x == inner_y)
    return TRUE;
  g_autofree char *x_text = tiny_shape_to_string (x), *y_text = tiny_shape_to_string (y);
  if (x->n == 0 || y->n == 0)
    tiny_build_fail (self, "%s @ %s: a scalar is no matrix", x_text, y_text);
  else
    tiny_build_fail (
        self, "inner sizes %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT " differ for %s @ %s",
        inner_x, inner_y, x_text, y_text);
  return FALSE;
}

TinyNode *
tiny_build_matmul (TinyBuild *self, TinyNode *x, TinyNode *y)
{
  if (x == NULL || y == NULL || !check_inner (self, x->shape, y->shape))
    return NULL;
  gboolean row = x->shape->n == 1, column = y->shape->n == 1;
  if (row)
    x = tiny_build_unsqueeze (self, x, 0);
  if (column)
    y = tiny_build_unsqueeze (self, y, 1);
  /* x (…, M, 1, K), y (…, 1, N, K) */
  TinyDType dtype = tiny_dtype_promote ((TinyDType) x->dtype, (TinyDType) y->dtype);
  TinyDType wide = tiny_dtype_is_float (dtype) && tiny_dtype_get_n_bytes (dtype) < 4
                       ? TINY_DTYPE_F32
                       : dtype;
  if (dtype == TINY_DTYPE_BOOL)
    wide = dtype = TINY_DTYPE_I32;
  x = tiny_build_unsqueeze (self, tiny_build_cast (self, x, wide), x->shape->n - 1);
  y = tiny_build_transpose (self, tiny_build_cast (self, y, wide), y->shape->n - 1,
                            y->shape->n - 2);
  y = tiny_build_unsqueeze (self, y, y->shape->n - 2);
  TinyNode *product = tiny_build_mul (self, x, y);
  if (product == NULL)
    return NULL;
  gint64 rank = product->shape->n, axes[] = { rank - 1, rank - 2, rank - 3 };
  TinyNode *sum = tiny_build_sum (self, product, axes, 1);
  sum = tiny_build_squeeze (self, sum, axes, 1);
  gint64 dropped[2];
  guint n_dropped = 0;
  if (row)
    dropped[n_dropped++] = rank - 3;
  if (column)
    dropped[n_dropped++] = rank - 2;
  sum = tiny_build_squeeze (self, sum, dropped, n_dropped);
  /* The low bits of a wider sum are those of a narrow one. */
  return tiny_build_cast (self, sum, dtype);
}

TinyNode *
op_matmul (TinyBuild *b, TinyNode *self, TinyNode *other)
{
  return tiny_build_matmul (b, self, other);
}

TinyNode *
op_linear (TinyBuild *b, TinyNode *self, TinyNode *weight, TinyNode *bias)
{
  if (weight->shape->n != 2)
    return tiny_build_fail (b, "the weight has %u axes, not 2", weight->shape->n);
  TinyNode *product = tiny_build_matmul (b, self, tiny_build_transpose (b, weight, 0, 1));
  return bias == NULL ? product : tiny_build_add (b, product, bias);
}
