/* SPDX-License-Identifier: MIT
 *
 * tensor-activations.c: the activations, and operations like them, that are more than a formula. */
#include <float.h>
#include <math.h>

#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-layout.h"

TinyNode *
op_gelu (TinyBuild *b, TinyNode *self, const char *approximate)
{
  guint which;
  if (!tiny_build_word (b, approximate, "none|tanh", &which))
    return NULL;
  if (which == 0) {
    TinyNode *scaled = tiny_build_mul (b, self, tiny_build_like (b, self, G_SQRT2 / 2));
    TinyNode *twice = tiny_build_add (b, op_erf (b, scaled), tiny_build_like (b, self, 1));
    return tiny_build_mul (b, tiny_build_mul (b, self, tiny_build_like (b, self, 0.5)), twice);
  }
  TinyNode *cube = tiny_build_mul (b, self, tiny_build_mul (b, self, self));
  TinyNode *sum
      = tiny_build_add (b, self, tiny_build_mul (b, cube, tiny_build_like (b, self, 0.044715)));
  TinyNode *inner = tiny_build_mul (b, sum, tiny_build_like (b, self, sqrt (2 / G_PI)));
  inner = tiny_build_mul (b, inner, tiny_build_like (b, self, 2));
  return tiny_build_mul (b, self, op_sigmoid (b, inner));
}

/* weight (C) stands along axis 1 */
TinyNode *
op_prelu (TinyBuild *b, TinyNode *self, TinyNode *weight)
{
  if (self == NULL || weight == NULL)
    return NULL;
  gint64 n = tiny_shape_get_n_elements (weight->shape), dims[TINY_MAX_RANK];
  guint rank = self->shape->n;
  gint64 n_channels = rank > 1 ? self->shape->v[1] : 1;
  if (weight->shape->n > 1 || (n != 1 && n != n_channels))
    return tiny_build_fail (
        b, "the weight has %" G_GINT64_FORMAT " elements, wanted is 1 or %" G_GINT64_FORMAT, n,
        n_channels);
  for (guint i = 0; i < rank; i++)
    dims[i] = i == 1 ? n : 1;
  weight = tiny_build_reshape (b, weight, dims, rank > 1 ? rank : 0);
  TinyNode *is_above = tiny_build_binary (b, TINY_OP_CMPLT, tiny_build_like (b, self, 0), self);
  return tiny_build_where (b, is_above, self, tiny_build_mul (b, self, weight));
}

TinyNode *
op_glu (TinyBuild *b, TinyNode *self, guint axis)
{
  gint64 size = self->shape->v[axis];
  if (size % 2 != 0)
    return tiny_build_fail (b, "axis %u has an odd size, %" G_GINT64_FORMAT, axis, size);
  TinyNode *values = tiny_build_slice (b, self, axis, 0, 1, size / 2);
  TinyNode *gates = tiny_build_slice (b, self, axis, size / 2, 1, size / 2);
  return tiny_build_mul (b, values, op_sigmoid (b, gates));
}

/* The largest finite number of a float dtype. */
static double
largest_of (TinyDType dtype)
{
  switch (dtype) {
  case TINY_DTYPE_F64:
    return DBL_MAX;
  case TINY_DTYPE_F32:
    return FLT_MAX;
  case TINY_DTYPE_BF16:
    return ldexp (255, 120);
  case TINY_DTYPE_F16:
    return 65504;
  case TINY_DTYPE_F8E5M2:
    return 57344;
  default:
    return 448;
  }
}

TinyNode *
op_nan_to_num (TinyBuild *b, TinyNode *self, double nan, double posinf, double neginf)
{
  if (self == NULL || !tiny_dtype_is_float (self->dtype))
    return self;
  double largest = largest_of ((TinyDType) self->dtype);
  posinf = posinf == INFINITY ? largest : posinf;
  neginf = neginf == -INFINITY ? -largest : neginf;
  TinyNode *above
      = tiny_build_binary (b, TINY_OP_CMPEQ, self, tiny_build_like (b, self, INFINITY));
  TinyNode *below
      = tiny_build_binary (b, TINY_OP_CMPEQ, self, tiny_build_like (b, self, -INFINITY));
  TinyNode *result = tiny_build_where (b, above, tiny_build_like (b, self, posinf), self);
  result = tiny_build_where (b, below, tiny_build_like (b, self, neginf), result);
  return tiny_build_where (b, op_isnan (b, self), tiny_build_like (b, self, nan), result);
}

TinyNode *
op_isclose (
    TinyBuild *b, TinyNode *self, TinyNode *other, double rtol, double atol, gboolean equal_nan)
{
  TinyDType dtype = tiny_dtype_promote ((TinyDType) self->dtype, (TinyDType) other->dtype);
  TinyNode *x = tiny_build_cast (b, self, dtype), *y = tiny_build_cast (b, other, dtype);
  TinyNode *same = tiny_build_binary (b, TINY_OP_CMPEQ, x, y);
  if (equal_nan)
    same = op_logical_or (b, same, op_logical_and (b, op_isnan (b, x), op_isnan (b, y)));
  TinyNode *apart = tiny_build_float (b, op_abs (b, tiny_build_sub (b, x, y)));
  TinyNode *size = tiny_build_float (b, op_abs (b, y));
  TinyNode *allowed
      = tiny_build_add (b, tiny_build_mul (b, size, tiny_build_like (b, size, rtol)),
                        tiny_build_like (b, size, atol));
  TinyNode *near = op_logical_and (b, op_isfinite (b, y), op_le (b, apart, allowed));
  return op_logical_or (b, same, near);
}
