/* SPDX-License-Identifier: MIT
 *
 * tensor-creation.c: tensors made of constants and counters: they have no memory until realised. */
#include <math.h>

#include "ir/tiny-shape.h"
#include "tensor/tiny-build.h"
#include "tensor/tiny-tensor-private.h"

static TinyNode *
full_node (TinyBuild *self, TinyDType dtype, const gint64 *shape, guint n, double value)
{
  if (!tiny_build_check_dtype (self, dtype) || !tiny_build_check_shape (self, shape, n))
    return NULL;
  return tiny_node_broadcast (self->graph, tiny_build_number (self, dtype, value), shape, n);
}

static TinyTensor *
full (const char *name, TinyDType dtype, const gint64 *shape, guint n, double value)
{
  TinyBuild b;
  TinyNode *node = NULL;
  if (tiny_build_begin (&b, name, 0, NULL))
    node = full_node (&b, dtype, shape, n, value);
  return tiny_build_end (&b, node);
}

TinyTensor *
tiny_tensor_zeros (TinyDType dtype, const gint64 *shape, guint n_dims)
{
  return full ("zeros", dtype, shape, n_dims, 0);
}

TinyTensor *
tiny_tensor_ones (TinyDType dtype, const gint64 *shape, guint n_dims)
{
  return full ("ones", dtype, shape, n_dims, 1);
}

TinyTensor *
tiny_tensor_full (TinyDType dtype, const gint64 *shape, guint n_dims, double value)
{
  return full ("full", dtype, shape, n_dims, value);
}

static TinyTensor *
weak (TinyWeak kind, double value)
{
  TinyTensor *self = full ("scalar", kind == TINY_WEAK_INT ? TINY_DTYPE_I32 : TINY_DTYPE_F32,
                           NULL, 0, value);
  self->weak = kind;
  self->weak_value = value;
  return self;
}

TinyTensor *
tiny_tensor_scalar (double value)
{
  return weak (value == floor (value) && fabs (value) < 2147483648.0 ? TINY_WEAK_INT
                                                                     : TINY_WEAK_FLOAT,
               value);
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

TinyTensor *
tiny_tensor_arange (TinyDType dtype, double start, double stop, double step)
{
  TinyBuild b;
  TinyNode *node = NULL;
  if (tiny_build_begin (&b, "arange", 0, NULL) && tiny_build_check_dtype (&b, dtype)) {
    double n = ceil ((stop - start) / step);
    gboolean whole = start == floor (start) && step == floor (step);
    if (!isfinite (start) || !isfinite (stop) || !isfinite (step) || step == 0 || n > 1e14)
      tiny_build_fail (&b, "from %g to %g in steps of %g is no finite row", start, stop, step);
    else if (tiny_dtype_is_float (dtype))
      node = tiny_build_cast (&b,
                              progression (&b, dtype == TINY_DTYPE_F64 ? dtype : TINY_DTYPE_F32,
                                           start, step, (gint64) MAX (n, 0)),
                              dtype);
    else if (!whole)
      tiny_build_fail (&b, "%s cannot hold steps of %g from %g", tiny_dtype_to_string (dtype),
                       step, start);
    else
      node = progression (&b, dtype, start, step, (gint64) MAX (n, 0));
  }
  return tiny_build_end (&b, node);
}

TinyTensor *
tiny_tensor_linspace (TinyDType dtype, double start, double stop, gint64 n)
{
  TinyBuild b;
  TinyNode *node = NULL;
  if (tiny_build_begin (&b, "linspace", 0, NULL) && tiny_build_check_dtype (&b, dtype)
      && tiny_build_check_shape (&b, &n, 1)) {
    TinyDType wide = dtype == TINY_DTYPE_F64 ? dtype : TINY_DTYPE_F32;
    double step = n > 1 ? (stop - start) / (double) (n - 1) : 0;
    node = tiny_build_cast (&b, progression (&b, wide, start, step, n), dtype);
  }
  return tiny_build_end (&b, node);
}

TinyTensor *
tiny_tensor_eye (TinyDType dtype, gint64 n, gint64 m)
{
  TinyBuild b;
  TinyNode *node = NULL;
  if (tiny_build_begin (&b, "eye", 0, NULL) && tiny_build_check_dtype (&b, dtype)
      && tiny_build_check_shape (&b, (gint64[]){ n, m }, 2)) {
    TinyNode *row = tiny_build_iota (&b, TINY_DTYPE_I32, n);
    TinyNode *column = tiny_build_iota (&b, TINY_DTYPE_I32, m);
    row = tiny_build_reshape (&b, row, (gint64[]){ n, 1 }, 2);
    node = tiny_build_cast (&b, tiny_build_binary (&b, TINY_OP_CMPEQ, row, column), dtype);
  }
  return tiny_build_end (&b, node);
}
