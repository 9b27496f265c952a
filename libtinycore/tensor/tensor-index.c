/* SPDX-License-Identifier: MIT
 *
 * tensor-index.c: picking by position: labels compared with a counter, and reads at positions that
 * are data, which become the address of a load. */
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

/* ---- reading at positions ---- */
static gboolean
check_positions (TinyBuild *self, TinyNode *indices)
{
  if (tiny_dtype_is_integer (indices->dtype))
    return TRUE;
  tiny_build_fail (self, "the indices are integers, not %s",
                   tiny_dtype_to_string ((TinyDType) indices->dtype));
  return FALSE;
}

/* x (…, N, R…), indices I: as a vector, repeated over the other axes of x; then I where N was. */
static TinyNode *
gather_node (TinyBuild *self, TinyNode *x, guint axis, TinyNode *indices)
{
  gint64 dims[TINY_MAX_RANK + 1], n = tiny_shape_get_n_elements (indices->shape);
  guint rank = x->shape->n, n_inner = indices->shape->n, total = rank + n_inner - 1;
  if (!check_positions (self, indices))
    return NULL;
  if (total > TINY_MAX_RANK)
    return tiny_build_fail (self, "the result would have %u axes, more than %d", total,
                            TINY_MAX_RANK);
  for (guint i = 0; i < rank; i++)
    dims[i] = i == axis ? n : 1;
  TinyNode *positions = tiny_build_reshape (self, indices, dims, rank);
  for (guint i = 0; i < rank; i++)
    dims[i] = i == axis ? n : x->shape->v[i];
  if (!tiny_build_check_shape (self, dims, rank))
    return NULL;
  positions = tiny_build_expand (self, positions, dims, rank);
  TinyNode *found = tiny_node_gather (self->graph, x, axis, positions);
  for (guint i = 0; i < total; i++)
    dims[i] = i < axis             ? x->shape->v[i]
              : i < axis + n_inner ? indices->shape->v[i - axis]
                                   : x->shape->v[i + 1 - n_inner];
  return tiny_build_reshape (self, found, dims, total);
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

static TinyNode *
take_along_axis_node (TinyBuild *self, TinyNode *x, guint axis, TinyNode *indices)
{
  gint64 dims[TINY_MAX_RANK];
  guint rank = x->shape->n;
  if (!check_positions (self, indices))
    return NULL;
  if (indices->shape->n != rank)
    return tiny_build_fail (self, "the indices have %u axes, the tensor %u", indices->shape->n,
                            rank);
  for (guint i = 0; i < rank; i++)
    dims[i] = i == axis ? indices->shape->v[i] : x->shape->v[i];
  TinyNode *positions = tiny_build_expand (self, indices, dims, rank);
  return positions == NULL ? NULL : tiny_node_gather (self->graph, x, axis, positions);
}

TinyTensor *
tiny_tensor_take_along_axis (TinyTensor *self, gint axis, TinyTensor *indices)
{
  TinyBuild b;
  TinyTensor *both[] = { self, indices };
  TinyNode *node = NULL;
  guint at;
  if (tiny_build_begin (&b, "take_along_axis", 2, both)
      && tiny_build_axis (&b, b.x[0], axis, &at))
    node = take_along_axis_node (&b, b.x[0], at, b.x[1]);
  return tiny_build_end (&b, node);
}
