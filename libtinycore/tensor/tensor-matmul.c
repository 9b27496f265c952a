/* SPDX-License-Identifier: MIT
 *
 * tensor-matmul.c: products of matrices, as a product broadcast over (…, M, N, K) and its sum over
 * K. The kernel compiler finds the matrix product in it. */
#include "ir/tiny-shape.h"
#include "tensor/tiny-build.h"
#include "tensor/tiny-layout.h"
#include "tensor/tiny-tensor-nn.h"

TinyNode *
tiny_build_matmul (TinyBuild *self, TinyNode *x, TinyNode *y)
{
  if (x == NULL || y == NULL)
    return NULL;
  g_autofree char *x_text = tiny_shape_to_string (x->shape);
  g_autofree char *y_text = tiny_shape_to_string (y->shape);
  if (x->shape->n == 0 || y->shape->n == 0)
    return tiny_build_fail (self, "%s @ %s: a scalar is no matrix", x_text, y_text);
  gint64 inner_x = x->shape->v[x->shape->n - 1];
  gint64 inner_y = y->shape->v[y->shape->n == 1 ? 0 : y->shape->n - 2];
  if (inner_x != inner_y)
    return tiny_build_fail (
        self, "inner sizes %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT " differ for %s @ %s",
        inner_x, inner_y, x_text, y_text);
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
  return wide == dtype ? sum : tiny_build_cast (self, sum, dtype);
}

TinyTensor *
tiny_tensor_matmul (TinyTensor *self, TinyTensor *y)
{
  TinyBuild b;
  TinyTensor *both[] = { self, y };
  TinyNode *node = NULL;
  if (tiny_build_begin (&b, "matmul", 2, both))
    node = tiny_build_matmul (&b, b.x[0], b.x[1]);
  return tiny_build_end (&b, node);
}

TinyTensor *
tiny_tensor_dot (TinyTensor *self, TinyTensor *y)
{
  return tiny_tensor_matmul (self, y);
}

TinyTensor *
tiny_tensor_linear (TinyTensor *self, TinyTensor *weight, TinyTensor *bias)
{
  TinyBuild b;
  TinyTensor *all[] = { self, weight, bias };
  TinyNode *node = NULL;
  if (tiny_build_begin (&b, "linear", bias == NULL ? 2 : 3, all)) {
    if (b.x[1]->shape->n != 2)
      tiny_build_fail (&b, "the weight has %u axes, not 2", b.x[1]->shape->n);
    else
      node = tiny_build_matmul (&b, b.x[0], tiny_build_transpose (&b, b.x[1], 0, 1));
    if (bias != NULL)
      node = tiny_build_add (&b, node, b.x[2]);
  }
  return tiny_build_end (&b, node);
}
