/* SPDX-License-Identifier: MIT
 *
 * tensor-creation.c: tensors made of constants and counters: they have no memory until realised. */
#include <math.h>

#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

TinyNode *
op_full (TinyBuild *self, TinyDType dtype, const gint64 *shape, guint n, double value)
{
  if (!tiny_build_check_dtype (self, dtype) || !tiny_build_check_shape (self, shape, n))
    return NULL;
  return tiny_node_broadcast (self->graph, tiny_build_number (self, dtype, value), shape, n);
}

TinyNode *
op_zeros (TinyBuild *b, TinyDType dtype, const gint64 *shape, guint n_dims)
{
  return op_full (b, dtype, shape, n_dims, 0);
}

TinyNode *
op_ones (TinyBuild *b, TinyDType dtype, const gint64 *shape, guint n_dims)
{
  return op_full (b, dtype, shape, n_dims, 1);
}

TinyNode *
op_full_like (TinyBuild *b, TinyNode *self, double fill_value, TinyDType dtype)
{
  dtype = dtype == TINY_DTYPE_VOID ? (TinyDType) self->dtype : dtype;
  return op_full (b, dtype, self->shape->v, self->shape->n, fill_value);
}

TinyNode *
op_zeros_like (TinyBuild *b, TinyNode *self, TinyDType dtype)
{
  return op_full_like (b, self, 0, dtype);
}

TinyNode *
op_ones_like (TinyBuild *b, TinyNode *self, TinyDType dtype)
{
  return op_full_like (b, self, 1, dtype);
}

static TinyTensor *
weak (TinyWeak kind, double value)
{
  TinyDType whole = fabs (value) < 2147483648.0 ? TINY_DTYPE_I32 : TINY_DTYPE_I64;
  TinyDType dtype = kind == TINY_WEAK_INT ? whole : tiny_get_default_float ();
  TinyTensor *self = tiny_tensor_full (dtype, NULL, 0, value);
  self->weak = kind;
  self->weak_value = value;
  return self;
}

TinyTensor *
tiny_tensor_scalar (double value)
{
  const double exact = 9007199254740992.0; /* up to here a double holds every whole number */
  gboolean is_whole = value == floor (value) && fabs (value) <= exact;
  return weak (is_whole ? TINY_WEAK_INT : TINY_WEAK_FLOAT, value);
}

TinyTensor *
tiny_tensor_scalar_float (double value)
{
  return weak (TINY_WEAK_FLOAT, value);
}

/* start + i * step, computed in @wide. */
static TinyNode *
progression (TinyBuild *self, TinyDType wide, double start, double step, gint64 n)
{
  TinyNode *i = tiny_build_iota (self, wide, n);
  TinyNode *scaled = tiny_build_mul (self, i, tiny_build_number (self, wide, step));
  return tiny_build_add (self, scaled, tiny_build_number (self, wide, start));
}

TinyNode *
op_arange (TinyBuild *b, TinyDType dtype, double start, double stop, double step)
{
  if (!tiny_build_check_dtype (b, dtype))
    return NULL;
  double n = ceil ((stop - start) / step);
  if (!isfinite (start) || !isfinite (stop) || !isfinite (step) || step == 0 || n > 1e14)
    return tiny_build_fail (b, "from %g to %g in steps of %g is no finite row", start, stop,
                            step);
  gint64 count = (gint64) MAX (n, 0);
  TinyDType wide = dtype == TINY_DTYPE_F64 ? dtype : TINY_DTYPE_F32;
  if (tiny_dtype_is_float (dtype))
    return tiny_build_cast (b, progression (b, wide, start, step, count), dtype);
  if (start != floor (start) || step != floor (step))
    return tiny_build_fail (b, "%s cannot hold steps of %g from %g",
                            tiny_dtype_to_string (dtype), step, start);
  return progression (b, dtype, start, step, count);
}

TinyNode *
op_linspace (TinyBuild *b, TinyDType dtype, double start, double stop, gint64 steps)
{
  if (!tiny_build_check_dtype (b, dtype) || !tiny_build_check_shape (b, &steps, 1))
    return NULL;
  TinyDType wide = dtype == TINY_DTYPE_F64 ? dtype : TINY_DTYPE_F32;
  double step = steps > 1 ? (stop - start) / (double) (steps - 1) : 0;
  return tiny_build_cast (b, progression (b, wide, start, step, steps), dtype);
}

TinyNode *
op_eye (TinyBuild *b, TinyDType dtype, gint64 n, gint64 m)
{
  if (!tiny_build_check_dtype (b, dtype) || !tiny_build_check_shape (b, (gint64[]){ n, m }, 2))
    return NULL;
  TinyNode *row = tiny_build_iota (b, TINY_DTYPE_I32, n);
  TinyNode *column = tiny_build_iota (b, TINY_DTYPE_I32, m);
  row = tiny_build_reshape (b, row, (gint64[]){ n, 1 }, 2);
  return tiny_build_cast (b, tiny_build_binary (b, TINY_OP_CMPEQ, row, column), dtype);
}
