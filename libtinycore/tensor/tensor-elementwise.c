/* SPDX-License-Identifier: MIT
 *
 * tensor-elementwise.c: arithmetic element by element.
 *
 * Building blocks, then the operations whose definition is more than a formula in operations.pyi. */
#include <math.h>

#include "ir/tiny-limit.h"
#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-layout.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

/* ---- broadcasting ---- */
static gboolean
broadcast_shape (TinyBuild *self,
                 guint n,
                 TinyNode *const *x,
                 gint64 *out,
                 TinyNode **out_limits,
                 guint *out_rank)
{
  guint rank = 0;
  for (guint i = 0; i < n; i++)
    rank = MAX (rank, x[i]->shape->n);
  *out_rank = rank;
  for (guint axis = 0; axis < rank; axis++) {
    out[axis] = 1;
    out_limits[axis] = NULL;
    for (guint i = 0; i < n; i++) {
      guint missing = rank - x[i]->shape->n;
      gint64 size = axis < missing ? 1 : x[i]->shape->v[axis - missing];
      if (size == 1)
        continue;
      if (out[axis] != 1 && out[axis] != size) {
        g_autofree char *a = tiny_shape_to_string (x[0]->shape);
        g_autofree char *b = tiny_shape_to_string (x[i]->shape);
        g_autofree char *c = i > 1 ? tiny_shape_to_string (x[1]->shape) : NULL;
        tiny_build_fail (self, "shapes %s%s%s and %s do not broadcast", a, c ? ", " : "",
                         c ? c : "", b);
        return FALSE;
      }
      TinyNode *limit = tiny_limit_get (x[i], axis - missing);
      if (out[axis] != 1 && out_limits[axis] != limit) {
        tiny_build_fail (
            self, "sizes along axis %u differ: one is a variable, or both are different ones",
            axis);
        return FALSE;
      }
      out[axis] = size;
      out_limits[axis] = limit;
    }
  }
  return TRUE;
}

/* @x in that shape, where it is repeated along a limited axis with its limit. */
static TinyNode *
broadcast (
    TinyBuild *self, TinyNode *x, const gint64 *shape, TinyNode *const *limits, guint rank)
{
  if (x->shape->n == 0)
    return x;
  x = tiny_node_broadcast (self->graph, x, shape, rank);
  for (guint i = 0; i < rank; i++)
    if (limits[i] != NULL)
      x = tiny_node_limit (self->graph, x, i, limits[i]);
  return x;
}

/* Whether all have the same axes or none: shapes of one graph are equal where they are the same. */
static gboolean
are_alike (guint n, TinyNode *const *x)
{
  const TinyInts *shape = NULL;
  for (guint i = 0; i < n; i++) {
    if (x[i]->shape->n == 0)
      continue;
    if (x[i]->limits != NULL || (shape != NULL && x[i]->shape != shape))
      return FALSE;
    shape = x[i]->shape;
  }
  return TRUE;
}

/* An elementwise @op whose sources have the right dtypes already. */
static TinyNode *
elementwise (TinyBuild *self, TinyOp op, TinyDType dtype, guint n, TinyNode **x)
{
  gint64 shape[32];
  TinyNode *limits[32];
  guint rank;
  if (are_alike (n, x))
    return tiny_layout_elementwise (self->graph, op, dtype, n, x);
  if (!broadcast_shape (self, n, x, shape, limits, &rank)
      || !tiny_build_check_shape (self, shape, MIN (rank, TINY_MAX_RANK)))
    return NULL;
  TinyNode *sources[3];
  for (guint i = 0; i < n; i++)
    sources[i] = broadcast (self, x[i], shape, limits, rank);
  return tiny_layout_elementwise (self->graph, op, dtype, n, sources);
}

/* ---- building blocks ---- */
TinyNode *
tiny_build_cast (TinyBuild *self, TinyNode *x, TinyDType dtype)
{
  if (x == NULL || !tiny_build_check_dtype (self, dtype))
    return NULL;
  if (x->dtype == dtype)
    return x;
  if (dtype == TINY_DTYPE_BOOL)
    return tiny_layout_binary (self->graph, TINY_OP_CMPNE, x, tiny_build_like (self, x, 0));
  return tiny_layout_cast (self->graph, x, dtype);
}

TinyNode *
tiny_build_float (TinyBuild *self, TinyNode *x)
{
  return x == NULL || tiny_dtype_is_float (x->dtype)
             ? x
             : tiny_build_cast (self, x, tiny_get_default_float ());
}

gboolean
tiny_build_take (TinyBuild *self, TinyTakes takes, guint n, TinyNode **x)
{
  TinyDType number = TINY_DTYPE_VOID; /* what bool becomes: the others' dtype */
  TinyDType wide = TINY_DTYPE_VOID;   /* and where floats are taken integers as well */
  if (takes == TINY_TAKES_ANY)
    return self->error == NULL;
  for (guint i = 0; i < n; i++) {
    if (x[i] != NULL && tiny_dtype_is_float (x[i]->dtype))
      wide = wide == TINY_DTYPE_VOID ? (TinyDType) x[i]->dtype
                                     : tiny_dtype_promote (wide, (TinyDType) x[i]->dtype);
    if (x[i] != NULL && x[i]->dtype != TINY_DTYPE_BOOL)
      number = number == TINY_DTYPE_VOID ? (TinyDType) x[i]->dtype
                                         : tiny_dtype_promote (number, (TinyDType) x[i]->dtype);
  }
  if (number == TINY_DTYPE_VOID)
    number = TINY_DTYPE_I32;
  if (wide == TINY_DTYPE_VOID)
    wide = tiny_get_default_float ();
  for (guint i = 0; i < n; i++) {
    if (x[i] == NULL)
      continue;
    TinyDType dtype = (TinyDType) x[i]->dtype;
    if (takes == TINY_TAKES_NUMBER && dtype == TINY_DTYPE_BOOL)
      x[i] = tiny_build_cast (self, x[i], number);
    else if (takes == TINY_TAKES_FLOAT && !tiny_dtype_is_float (dtype))
      x[i] = tiny_build_cast (self, x[i], wide);
    else if ((takes == TINY_TAKES_INTEGRAL && tiny_dtype_is_float (dtype))
             || (takes == TINY_TAKES_INTEGER && !tiny_dtype_is_integer (dtype)))
      tiny_build_fail (self, "takes integers%s, not %s",
                       takes == TINY_TAKES_INTEGRAL ? " or bool" : "",
                       tiny_dtype_to_string (dtype));
  }
  return self->error == NULL;
}

TinyNode *
tiny_build_unary (TinyBuild *self, TinyOp op, TinyNode *x)
{
  return x == NULL ? NULL : tiny_layout_unary (self->graph, op, x);
}

TinyNode *
tiny_build_binary (TinyBuild *self, TinyOp op, TinyNode *x, TinyNode *y)
{
  if (x == NULL || y == NULL)
    return NULL;
  TinyDType dtype = tiny_dtype_promote ((TinyDType) x->dtype, (TinyDType) y->dtype);
  TinyNode *sources[] = { tiny_build_cast (self, x, dtype), tiny_build_cast (self, y, dtype) };
  if (tiny_op_infos[op].op_class == TINY_OP_CLASS_COMPARE)
    dtype = TINY_DTYPE_BOOL;
  return elementwise (self, op, dtype, 2, sources);
}

TinyNode *
tiny_build_div (TinyBuild *self, TinyNode *x, TinyNode *y)
{
  if (x == NULL || y == NULL)
    return NULL;
  /* An integer takes the other side's float dtype, so they meet before they become floats. */
  TinyDType dtype = tiny_dtype_promote ((TinyDType) x->dtype, (TinyDType) y->dtype);
  if (!tiny_dtype_is_float (dtype))
    dtype = tiny_get_default_float ();
  return tiny_build_binary (self, TINY_OP_FDIV, tiny_build_cast (self, x, dtype),
                            tiny_build_cast (self, y, dtype));
}

TinyNode *
tiny_build_where (TinyBuild *self, TinyNode *gate, TinyNode *x, TinyNode *y)
{
  if (gate == NULL || x == NULL || y == NULL)
    return NULL;
  TinyDType dtype = tiny_dtype_promote ((TinyDType) x->dtype, (TinyDType) y->dtype);
  TinyNode *sources[] = { tiny_build_cast (self, gate, TINY_DTYPE_BOOL),
                          tiny_build_cast (self, x, dtype), tiny_build_cast (self, y, dtype) };
  return elementwise (self, TINY_OP_WHERE, dtype, 3, sources);
}

TinyNode *
tiny_build_not (TinyBuild *self, TinyNode *x)
{
  return tiny_build_binary (self, TINY_OP_CMPNE, tiny_build_cast (self, x, TINY_DTYPE_BOOL),
                            tiny_build_number (self, TINY_DTYPE_BOOL, 1));
}

TinyNode *
tiny_build_sloped (TinyBuild *self, TinyNode *value, TinyNode *x, TinyNode *slope)
{
  if (value == NULL || x == NULL || slope == NULL)
    return NULL;
  TinyNode *sources[] = { value, x, slope }, *limits[32];
  gint64 shape[32];
  guint rank;
  if (!broadcast_shape (self, 3, sources, shape, limits, &rank))
    return NULL;
  for (guint i = 0; i < 3; i++) {
    sources[i] = tiny_build_cast (self, sources[i], (TinyDType) value->dtype);
    if (sources[i]->shape->n == 0)
      sources[i] = tiny_node_broadcast (self->graph, sources[i], shape, rank);
    sources[i] = broadcast (self, sources[i], shape, limits, rank);
  }
  return tiny_layout_elementwise (self->graph, TINY_OP_SLOPED, (TinyDType) value->dtype, 3,
                                  sources);
}

TinyNode *
tiny_build_beside (TinyBuild *self, TinyNode *value, TinyNode *x)
{
  gint64 axes[32];
  TinyNode *below = self->viewed != NULL ? self->base : x; /* see tiny_view_begin() */
  if (value == NULL || !tiny_dtype_is_float (value->dtype)
      || !tiny_tensor_reaches_variable (below))
    return value;
  for (guint i = 0; i < x->shape->n; i++)
    axes[i] = i;
  TinyNode *sum = tiny_layout_reduce (self->graph, x, TINY_OP_ADD, axes, x->shape->n);
  sum = tiny_node_reshape (self->graph, sum, NULL, 0);
  return tiny_build_sloped (self, value, sum, tiny_build_like (self, value, 0));
}

TinyNode *
tiny_build_polynomial (TinyBuild *self,
                       TinyNode *x,
                       const double *narrow,
                       guint n_narrow,
                       const double *wide,
                       guint n_wide)
{
  if (x == NULL)
    return NULL;
  const double *c = x->dtype == TINY_DTYPE_F64 ? wide : narrow;
  guint n = x->dtype == TINY_DTYPE_F64 ? n_wide : n_narrow;
  TinyNode *sum = tiny_build_like (self, x, c[n - 1]);
  for (guint i = n - 1; i-- > 0;)
    sum = tiny_build_add (self, tiny_build_mul (self, sum, x), tiny_build_like (self, x, c[i]));
  return sum;
}

TinyNode *
tiny_build_exp (TinyBuild *self, TinyNode *x)
{
  return tiny_build_unary (self, TINY_OP_EXP2,
                           tiny_build_mul (self, x, tiny_build_like (self, x, 1 / G_LN2)));
}

/* x <= y. Of integers the opposite of y < x; of floats that would be true of a NaN. */
TinyNode *
op_le (TinyBuild *self, TinyNode *x, TinyNode *y)
{
  if (x == NULL || y == NULL)
    return NULL;
  if (!tiny_dtype_is_float (x->dtype) && !tiny_dtype_is_float (y->dtype))
    return tiny_build_not (self, tiny_build_binary (self, TINY_OP_CMPLT, y, x));
  return tiny_build_binary (self, TINY_OP_OR, tiny_build_binary (self, TINY_OP_CMPLT, x, y),
                            tiny_build_binary (self, TINY_OP_CMPEQ, x, y));
}

TinyNode *
op_abs (TinyBuild *self, TinyNode *x)
{
  if (x == NULL || tiny_dtype_is_unsigned (x->dtype) || x->dtype == TINY_DTYPE_BOOL)
    return x;
  if (!tiny_dtype_is_float (x->dtype))
    return tiny_build_binary (self, TINY_OP_MAX, x, tiny_build_unary (self, TINY_OP_NEG, x));
  /* 0 - x is +0 for both zeros, whose slope is 0. */
  TinyNode *zero = tiny_build_like (self, x, 0);
  TinyNode *value = tiny_build_where (self, tiny_build_binary (self, TINY_OP_CMPLT, zero, x), x,
                                      tiny_build_sub (self, zero, x));
  return tiny_build_sloped (self, value, x, op_sign (self, x));
}

static gboolean
is_number (TinyNode *x)
{
  return tiny_node_is_const (x) && !isnan (tiny_node_get_float (x));
}

/* The larger of x and y, NaN where either is: MAX itself may drop it, but beside a number. */
static TinyNode *
larger (TinyBuild *self, TinyNode *x, TinyNode *y)
{
  TinyNode *largest = tiny_build_binary (self, TINY_OP_MAX, x, y);
  if (!tiny_dtype_is_float (x->dtype) || is_number (x) || is_number (y))
    return largest;
  TinyNode *is_nan = op_logical_or (self, op_isnan (self, x), op_isnan (self, y));
  return tiny_build_where (self, is_nan, tiny_build_add (self, x, y), largest);
}

/* The smaller is the larger of the negatives; of integers, of the reversed bits, which cannot
 * overflow and works without signs. */
TinyNode *
op_minimum (TinyBuild *self, TinyNode *x, TinyNode *y)
{
  if (x == NULL || y == NULL)
    return NULL;
  TinyDType dtype = tiny_dtype_promote ((TinyDType) x->dtype, (TinyDType) y->dtype);
  gboolean x_is_number = is_number (x), y_is_number = is_number (y);
  x = tiny_build_cast (self, x, dtype);
  y = tiny_build_cast (self, y, dtype);
  if (dtype == TINY_DTYPE_BOOL)
    return tiny_build_binary (self, TINY_OP_AND, x, y);
  if (!tiny_dtype_is_float (dtype))
    return tiny_build_where (self, tiny_build_binary (self, TINY_OP_CMPLT, x, y), x, y);
  /* The negative of a number as a number. */
  TinyNode *minus_x = x_is_number ? tiny_build_number (self, dtype, -tiny_node_get_float (x))
                                  : tiny_build_unary (self, TINY_OP_NEG, x);
  TinyNode *minus_y = y_is_number ? tiny_build_number (self, dtype, -tiny_node_get_float (y))
                                  : tiny_build_unary (self, TINY_OP_NEG, y);
  return tiny_build_unary (self, TINY_OP_NEG, larger (self, minus_x, minus_y));
}

TinyNode *
op_maximum (TinyBuild *self, TinyNode *x, TinyNode *y)
{
  if (x == NULL || y == NULL)
    return NULL;
  TinyDType dtype = tiny_dtype_promote ((TinyDType) x->dtype, (TinyDType) y->dtype);
  if (dtype == TINY_DTYPE_BOOL)
    return tiny_build_binary (self, TINY_OP_OR, x, y);
  return larger (self, tiny_build_cast (self, x, dtype), tiny_build_cast (self, y, dtype));
}

TinyNode *
op_sign (TinyBuild *self, TinyNode *x)
{
  if (x == NULL)
    return NULL;
  TinyNode *zero = tiny_build_like (self, x, 0), *one = tiny_build_like (self, x, 1);
  TinyNode *positive = tiny_build_binary (self, TINY_OP_CMPLT, zero, x);
  if (tiny_dtype_is_unsigned (x->dtype))
    return tiny_build_where (self, positive, one, zero);
  /* Zeros keep their sign and NaNs stay; the gradient is 0. */
  TinyNode *rest = tiny_dtype_is_float (x->dtype) ? tiny_build_sloped (self, x, x, zero) : x;
  return tiny_build_where (self, positive, one,
                           tiny_build_where (self,
                                             tiny_build_binary (self, TINY_OP_CMPLT, x, zero),
                                             tiny_build_like (self, x, -1), rest));
}

TinyNode *
op_isinf (TinyBuild *self, TinyNode *x)
{
  if (x == NULL || !tiny_dtype_is_float (x->dtype))
    return x == NULL ? NULL : tiny_build_binary (self, TINY_OP_CMPNE, x, x);
  return tiny_build_binary (self, TINY_OP_CMPEQ, op_abs (self, x),
                            tiny_build_like (self, x, INFINITY));
}

TinyNode *
tiny_build_numeric (TinyBuild *self, TinyNode *x)
{
  return x != NULL && x->dtype == TINY_DTYPE_BOOL ? tiny_build_cast (self, x, TINY_DTYPE_I32)
                                                  : x;
}

/* The dtype that a plain number's partner gets: its own, unless it cannot hold it. */
static TinyNode *
ready_for_number (TinyBuild *self, TinyNode *x, double value)
{
  if (!tiny_dtype_is_float (x->dtype) && value != floor (value))
    return tiny_build_float (self, x);
  return tiny_build_numeric (self, x);
}

TinyNode *
op_add_number (TinyBuild *b, TinyNode *self, double other)
{
  return tiny_build_add_number (b, ready_for_number (b, self, other), other);
}

TinyNode *
op_mul_number (TinyBuild *b, TinyNode *self, double other)
{
  return tiny_build_mul_number (b, ready_for_number (b, self, other), other);
}

/* What is within the bounds has the gradient, and what equals one; beyond, that bound has it: as of a choice. */
TinyNode *
op_clamp (TinyBuild *b, TinyNode *self, TinyNode *min, TinyNode *max)
{
  if (min == NULL && max == NULL)
    return tiny_build_fail (b, "at least one of min and max is wanted");
  TinyNode *value = self, *choice = self;
  if (min != NULL)
    value = op_maximum (b, value, min);
  if (max != NULL)
    value = op_minimum (b, value, max);
  if (value == NULL || !tiny_dtype_is_float (value->dtype))
    return value;
  if (min != NULL)
    choice = tiny_build_where (b, tiny_build_less (b, choice, min), min, choice);
  if (max != NULL)
    choice = tiny_build_where (b, tiny_build_less (b, max, choice), max, choice);
  return tiny_build_sloped (b, value, choice, tiny_build_like (b, value, 1));
}

TinyNode *
op_clamp_min (TinyBuild *b, TinyNode *self, TinyNode *min)
{
  return op_clamp (b, self, min, NULL);
}

TinyNode *
op_clamp_max (TinyBuild *b, TinyNode *self, TinyNode *max)
{
  return op_clamp (b, self, NULL, max);
}

TinyNode *
op_where (TinyBuild *b, TinyNode *self, TinyNode *input, TinyNode *other)
{
  if (tiny_dtype_is_float (self->dtype) && input->dtype == TINY_DTYPE_BOOL)
    return tiny_build_fail (
        b,
        "it is the condition's method, and %s is none beside the bool of the first "
        "argument: condition.where (input, other)",
        tiny_dtype_to_string ((TinyDType) self->dtype));
  return tiny_build_where (b, self, input, other);
}

TinyNode *
op_cast (TinyBuild *b, TinyNode *self, TinyDType dtype)
{
  return tiny_build_cast (b, self, dtype);
}

TinyNode *
op_bitcast (TinyBuild *b, TinyNode *self, TinyDType dtype)
{
  if (!tiny_build_check_dtype (b, dtype) || self->dtype == dtype)
    return self;
  if (dtype == TINY_DTYPE_BOOL)
    return tiny_build_fail (b, "no bits make a bool: compare, or cast");
  /* A bool is a byte of 0 or 1; what other bytes would be as bool no device agrees on. */
  if (self->dtype == TINY_DTYPE_BOOL)
    self = tiny_build_cast (b, self, TINY_DTYPE_U8);
  TinyDType from = (TinyDType) self->dtype;
  if (tiny_dtype_get_n_bytes (from) != tiny_dtype_get_n_bytes (dtype))
    return tiny_build_fail (b, "%s and %s have different sizes", tiny_dtype_to_string (from),
                            tiny_dtype_to_string (dtype));
  return from == dtype ? self
                       : tiny_layout_elementwise (b->graph, TINY_OP_BITCAST, dtype, 1, &self);
}
