/* SPDX-License-Identifier: MIT
 *
 * tensor-index.c: picking by position: comparisons with a counter, summed where they pick. */
#include "ir/tiny-shape.h"
#include "tensor/tiny-build.h"
#include "tensor/tiny-layout.h"
#include "tensor/tiny-tensor-shape.h"

/* labels (…, 1) == (0 1 … n-1) */
TinyNode *
tiny_build_one_hot (TinyBuild *self, TinyNode *labels, gint64 n)
{
  if (labels == NULL)
    return NULL;
  TinyDType dtype = tiny_dtype_get_n_bytes ((TinyDType) labels->dtype) > 4 ? TINY_DTYPE_I64
                                                                           : TINY_DTYPE_I32;
  TinyNode *column
      = tiny_build_unsqueeze (self, tiny_build_cast (self, labels, dtype), labels->shape->n);
  return tiny_build_binary (self, TINY_OP_CMPEQ, column, tiny_build_iota (self, dtype, n));
}

TinyTensor *
tiny_tensor_one_hot (TinyTensor *self, gint64 n_classes)
{
  TinyBuild b;
  TinyNode *node = NULL;
  if (tiny_build_begin (&b, "one_hot", 1, &self)
      && tiny_build_check_shape (&b, &n_classes, 1)) {
    if (!tiny_dtype_is_integer (b.x[0]->dtype))
      tiny_build_fail (&b, "labels are integers, not %s",
                       tiny_dtype_to_string ((TinyDType) b.x[0]->dtype));
    else
      node = tiny_build_cast (&b, tiny_build_one_hot (&b, b.x[0], n_classes), TINY_DTYPE_I32);
  }
  return tiny_build_end (&b, node);
}

/* x (N, R), picks (M, N): sum over N of where (picks, x, 0), (M, R) */
static TinyNode *
gather_node (TinyBuild *self, TinyNode *x, guint axis, TinyNode *indices)
{
  if (indices->shape->n != 1 || !tiny_dtype_is_integer (indices->dtype)) {
    g_autofree char *text = tiny_shape_to_string (indices->shape);
    return tiny_build_fail (self, "the indices are a vector of integers, not %s of %s", text,
                            tiny_dtype_to_string ((TinyDType) indices->dtype));
  }
  gint64 n = x->shape->v[axis], m = indices->shape->v[0], dims[TINY_MAX_RANK + 1];
  guint rank = x->shape->n;
  TinyNode *picks = tiny_build_one_hot (self, indices, n);
  for (guint i = 0; i <= rank; i++)
    dims[i] = i == axis ? m : i == axis + 1 ? n : 1;
  picks = tiny_build_reshape (self, picks, dims, rank + 1);
  TinyNode *parts = tiny_build_where (self, picks, tiny_build_unsqueeze (self, x, axis),
                                      tiny_build_like (self, x, 0));
  gint64 over[] = { axis + 1 };
  TinyNode *sum = tiny_build_sum (self, parts, over, 1);
  return tiny_build_cast (self, tiny_build_squeeze (self, sum, over, 1), (TinyDType) x->dtype);
}

TinyTensor *
tiny_tensor_gather (TinyTensor *self, gint axis, TinyTensor *indices)
{
  TinyBuild b;
  TinyTensor *both[] = { self, indices };
  TinyNode *node = NULL;
  guint at;
  if (tiny_build_begin (&b, "gather", 2, both) && tiny_build_axis (&b, b.x[0], axis, &at))
    node = gather_node (&b, b.x[0], at, b.x[1]);
  return tiny_build_end (&b, node);
}
