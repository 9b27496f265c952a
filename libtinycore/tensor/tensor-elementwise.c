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

/* An elementwise @op whose sources have the right dtypes already. */
static TinyNode *
elementwise (TinyBuild *self, TinyOp op, TinyDType dtype, guint n, TinyNode **x)
{
  gint64 shape[32];
  TinyNode *limits[32];
  guint rank;
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
             : tiny_build_cast (self, x, TINY_DTYPE_F32);
}

gboolean
tiny_build_take (TinyBuild *self, TinyTakes takes, guint n, TinyNode **x)
{
  gboolean has_float = FALSE;
  for (guint i = 0; i < n; i++)
    has_float = has_float || (x[i] != NULL && tiny_dtype_is_float (x[i]->dtype));
  for (guint i = 0; i < n; i++) {
    if (x[i] == NULL)
      continue;
    TinyDType dtype = (TinyDType) x[i]->dtype;
    if (takes == TINY_TAKES_NUMBER && dtype == TINY_DTYPE_BOOL)
      x[i] = tiny_build_cast (self, x[i], TINY_DTYPE_I32);
    else if (takes == TINY_TAKES_FLOAT && !has_float)
      x[i] = tiny_build_cast (self, x[i], TINY_DTYPE_F32);
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

static TinyNode *
compare (TinyBuild *self, TinyOp op, TinyNode *x, TinyNode *y)
{
  return tiny_build_binary (self, op, x, y);
}

/* x <= y. Of integers the opposite of y < x; of floats that would be true of a NaN. */
TinyNode *
op_le (TinyBuild *self, TinyNode *x, TinyNode *y)
{
  if (x == NULL || y == NULL)
    return NULL;
  if (!tiny_dtype_is_float (x->dtype) && !tiny_dtype_is_float (y->dtype))
    return tiny_build_not (self, compare (self, TINY_OP_CMPLT, y, x));
  return tiny_build_binary (self, TINY_OP_OR, compare (self, TINY_OP_CMPLT, x, y),
                            compare (self, TINY_OP_CMPEQ, x, y));
}

static TinyNode *
add_number (TinyBuild *self, TinyNode *x, double value)
{
  return tiny_build_add (self, x, tiny_build_like (self, x, value));
}

static TinyNode *
mul_number (TinyBuild *self, TinyNode *x, double value)
{
  return tiny_build_mul (self, x, tiny_build_like (self, x, value));
}

TinyNode *
op_trunc (TinyBuild *self, TinyNode *x)
{
  return x == NULL || !tiny_dtype_is_float (x->dtype)
             ? x
             : tiny_build_unary (self, TINY_OP_TRUNC, x);
}

TinyNode *
op_floor (TinyBuild *self, TinyNode *x)
{
  if (x == NULL || !tiny_dtype_is_float (x->dtype))
    return x;
  TinyNode *whole = op_trunc (self, x);
  return tiny_build_where (self, compare (self, TINY_OP_CMPLT, x, whole),
                           add_number (self, whole, -1), whole);
}

TinyNode *
op_abs (TinyBuild *self, TinyNode *x)
{
  if (x == NULL || tiny_dtype_is_unsigned (x->dtype) || x->dtype == TINY_DTYPE_BOOL)
    return x;
  return tiny_build_binary (self, TINY_OP_MAX, x, tiny_build_unary (self, TINY_OP_NEG, x));
}

/* ---- what each operation is ---- */
/* Bool counts as i32 where a number is asked for. */
static TinyNode *
numeric (TinyBuild *self, TinyNode *x)
{
  return x != NULL && x->dtype == TINY_DTYPE_BOOL ? tiny_build_cast (self, x, TINY_DTYPE_I32)
                                                  : x;
}

TinyNode *
op_ceil (TinyBuild *self, TinyNode *x)
{
  if (x == NULL || !tiny_dtype_is_float (x->dtype))
    return x;
  TinyNode *whole = op_trunc (self, x);
  return tiny_build_where (self, compare (self, TINY_OP_CMPLT, whole, x),
                           add_number (self, whole, 1), whole);
}

TinyNode *
op_round (TinyBuild *self, TinyNode *x)
{
  if (x == NULL || !tiny_dtype_is_float (x->dtype))
    return x;
  TinyNode *below = op_floor (self, x);
  TinyNode *rest = tiny_build_sub (self, x, below);
  TinyNode *half = tiny_build_like (self, x, 0.5);
  TinyNode *halved = tiny_build_mul (self, below, half);
  TinyNode *odd = compare (self, TINY_OP_CMPNE, op_floor (self, halved), halved);
  TinyNode *tie_up
      = tiny_build_binary (self, TINY_OP_AND, compare (self, TINY_OP_CMPEQ, rest, half), odd);
  TinyNode *up
      = tiny_build_binary (self, TINY_OP_OR, compare (self, TINY_OP_CMPLT, half, rest), tie_up);
  return tiny_build_where (self, up, add_number (self, below, 1), below);
}

/* Rounded down: one less than the truncated quotient where the signs differ and a rest is left. */
TinyNode *
op_floor_divide (TinyBuild *self, TinyNode *x, TinyNode *y)
{
  if (x == NULL || y == NULL)
    return NULL;
  TinyDType dtype = tiny_dtype_promote ((TinyDType) x->dtype, (TinyDType) y->dtype);
  x = tiny_build_cast (self, x, dtype);
  y = tiny_build_cast (self, y, dtype);
  if (tiny_dtype_is_float (dtype))
    return op_floor (self, tiny_build_div (self, x, y));
  TinyNode *quotient = tiny_build_binary (self, TINY_OP_IDIV, x, y);
  if (tiny_dtype_is_unsigned (dtype))
    return quotient;
  TinyNode *zero = tiny_build_number (self, dtype, 0);
  TinyNode *rest = tiny_build_binary (self, TINY_OP_MOD, x, y);
  TinyNode *differ = compare (self, TINY_OP_CMPNE, compare (self, TINY_OP_CMPLT, x, zero),
                              compare (self, TINY_OP_CMPLT, y, zero));
  TinyNode *lower = tiny_build_binary (self, TINY_OP_AND,
                                       compare (self, TINY_OP_CMPNE, rest, zero), differ);
  return tiny_build_where (self, lower, add_number (self, quotient, -1), quotient);
}

/* x^n by squaring, for a whole number n. */
static TinyNode *
power_whole (TinyBuild *self, TinyNode *x, guint n)
{
  TinyNode *result = NULL;
  for (TinyNode *square = x; n > 0; n >>= 1) {
    if (n & 1)
      result = result == NULL ? square : tiny_build_mul (self, result, square);
    if (n > 1)
      square = tiny_build_mul (self, square, square);
  }
  if (result != NULL)
    return result;
  return tiny_node_broadcast (self->graph, tiny_build_like (self, x, 1), x->shape->v,
                              x->shape->n);
}

/* 2^(y log2 |x|), with the sign of an odd power and no value for a broken one. */
static TinyNode *
power_general (TinyBuild *self, TinyNode *x, TinyNode *y)
{
  TinyNode *zero = tiny_build_like (self, x, 0), *one = tiny_build_like (self, x, 1);
  TinyNode *is_zero = compare (self, TINY_OP_CMPEQ, x, zero);
  /* log2 (0) would poison the gradient of the branch that is not taken. */
  TinyNode *base = tiny_build_where (self, is_zero, one, op_abs (self, x));
  TinyNode *size = tiny_build_unary (
      self, TINY_OP_EXP2,
      tiny_build_mul (self, y, tiny_build_unary (self, TINY_OP_LOG2, base)));
  TinyNode *half = mul_number (self, y, 0.5);
  TinyNode *whole = compare (self, TINY_OP_CMPEQ, y, op_trunc (self, y));
  TinyNode *even = compare (self, TINY_OP_CMPEQ, half, op_trunc (self, half));
  TinyNode *negative = tiny_build_where (
      self, whole,
      tiny_build_where (self, even, size, tiny_build_unary (self, TINY_OP_NEG, size)),
      tiny_build_like (self, x, NAN));
  TinyNode *of_zero
      = tiny_build_where (self, compare (self, TINY_OP_CMPLT, zero, y), zero,
                          tiny_build_where (self, compare (self, TINY_OP_CMPEQ, y, zero), one,
                                            tiny_build_like (self, x, INFINITY)));
  TinyNode *of_others
      = tiny_build_where (self, compare (self, TINY_OP_CMPLT, x, zero), negative, size);
  return tiny_build_where (self, is_zero, of_zero, of_others);
}

TinyNode *
op_pow (TinyBuild *self, TinyNode *x, TinyNode *y)
{
  x = tiny_build_float (self, x);
  if (x == NULL || y == NULL)
    return NULL;
  if (tiny_node_is_const (y)) {
    double n = tiny_node_get_float (y);
    if (n == floor (n) && fabs (n) <= 64) {
      TinyNode *power = power_whole (self, x, (guint) fabs (n));
      return n < 0 ? tiny_build_unary (self, TINY_OP_RECIP, power) : power;
    }
    if (n == 0.5)
      return tiny_build_unary (self, TINY_OP_SQRT, x);
  }
  TinyDType dtype = tiny_dtype_promote ((TinyDType) x->dtype, (TinyDType) y->dtype);
  return power_general (self, tiny_build_cast (self, x, dtype),
                        tiny_build_cast (self, y, dtype));
}

/* The smaller is the larger of the negatives; of integers, of the reversed bits, which cannot
 * overflow and works without signs. */
TinyNode *
op_minimum (TinyBuild *self, TinyNode *x, TinyNode *y)
{
  if (x == NULL || y == NULL)
    return NULL;
  TinyDType dtype = tiny_dtype_promote ((TinyDType) x->dtype, (TinyDType) y->dtype);
  x = tiny_build_cast (self, x, dtype);
  y = tiny_build_cast (self, y, dtype);
  if (dtype == TINY_DTYPE_BOOL)
    return tiny_build_binary (self, TINY_OP_AND, x, y);
  if (!tiny_dtype_is_float (dtype))
    return tiny_build_where (self, compare (self, TINY_OP_CMPLT, x, y), x, y);
  return tiny_build_unary (self, TINY_OP_NEG,
                           tiny_build_binary (self, TINY_OP_MAX,
                                              tiny_build_unary (self, TINY_OP_NEG, x),
                                              tiny_build_unary (self, TINY_OP_NEG, y)));
}

TinyNode *
op_maximum (TinyBuild *self, TinyNode *x, TinyNode *y)
{
  if (x != NULL && y != NULL && x->dtype == TINY_DTYPE_BOOL && y->dtype == TINY_DTYPE_BOOL)
    return tiny_build_binary (self, TINY_OP_OR, x, y);
  return tiny_build_binary (self, TINY_OP_MAX, x, y);
}

TinyNode *
op_sign (TinyBuild *self, TinyNode *x)
{
  if (x == NULL)
    return NULL;
  TinyNode *zero = tiny_build_like (self, x, 0), *one = tiny_build_like (self, x, 1);
  TinyNode *positive = compare (self, TINY_OP_CMPLT, zero, x);
  if (tiny_dtype_is_unsigned (x->dtype))
    return tiny_build_where (self, positive, one, zero);
  /* Zeros keep their sign and NaNs stay; none of it has a gradient. */
  TinyNode *rest = tiny_layout_unary (self->graph, TINY_OP_DETACH, x);
  return tiny_build_where (self, positive, one,
                           tiny_build_where (self, compare (self, TINY_OP_CMPLT, x, zero),
                                             tiny_build_like (self, x, -1), rest));
}

TinyNode *
op_isinf (TinyBuild *self, TinyNode *x)
{
  if (x == NULL || !tiny_dtype_is_float (x->dtype))
    return x == NULL ? NULL : compare (self, TINY_OP_CMPNE, x, x);
  return compare (self, TINY_OP_CMPEQ, op_abs (self, x), tiny_build_like (self, x, INFINITY));
}

static TinyNode *
bits_node (TinyBuild *self, TinyOp op, TinyNode *x, TinyNode *y)
{
  if (x == NULL || y == NULL)
    return NULL;
  if (tiny_dtype_is_float (tiny_dtype_promote ((TinyDType) x->dtype, (TinyDType) y->dtype)))
    return tiny_build_fail (self, "no integer dtype holds %s and %s: cast one of them",
                            tiny_dtype_to_string ((TinyDType) x->dtype),
                            tiny_dtype_to_string ((TinyDType) y->dtype));
  return tiny_build_binary (self, op, x, y);
}

static TinyNode *
shift_node (TinyBuild *self, TinyOp op, TinyNode *x, TinyNode *y)
{
  x = numeric (self, x);
  return x == NULL
             ? NULL
             : tiny_build_binary (self, op, x, tiny_build_cast (self, y, (TinyDType) x->dtype));
}

TinyNode *
op_bitwise_not (TinyBuild *self, TinyNode *x)
{
  if (x == NULL || x->dtype == TINY_DTYPE_BOOL)
    return tiny_build_not (self, x);
  return tiny_build_binary (self, TINY_OP_XOR, x,
                            tiny_node_const_int (self->graph, (TinyDType) x->dtype, -1));
}

static TinyNode *
logical (TinyBuild *self, TinyOp op, TinyNode *x, TinyNode *y)
{
  return tiny_build_binary (self, op, tiny_build_cast (self, x, TINY_DTYPE_BOOL),
                            tiny_build_cast (self, y, TINY_DTYPE_BOOL));
}

TinyNode *
op_logical_and (TinyBuild *b, TinyNode *self, TinyNode *other)
{
  return logical (b, TINY_OP_AND, self, other);
}

TinyNode *
op_logical_or (TinyBuild *b, TinyNode *self, TinyNode *other)
{
  return logical (b, TINY_OP_OR, self, other);
}

TinyNode *
op_logical_xor (TinyBuild *b, TinyNode *self, TinyNode *other)
{
  return logical (b, TINY_OP_CMPNE, self, other);
}

TinyNode *
op_logical_not (TinyBuild *b, TinyNode *self)
{
  return tiny_build_not (b, self);
}

TinyNode *
op_bitwise_and (TinyBuild *b, TinyNode *self, TinyNode *other)
{
  return bits_node (b, TINY_OP_AND, self, other);
}

TinyNode *
op_bitwise_or (TinyBuild *b, TinyNode *self, TinyNode *other)
{
  return bits_node (b, TINY_OP_OR, self, other);
}

TinyNode *
op_bitwise_xor (TinyBuild *b, TinyNode *self, TinyNode *other)
{
  return bits_node (b, TINY_OP_XOR, self, other);
}

TinyNode *
op_lshift (TinyBuild *b, TinyNode *self, TinyNode *other)
{
  return shift_node (b, TINY_OP_SHL, self, other);
}

TinyNode *
op_rshift (TinyBuild *b, TinyNode *self, TinyNode *other)
{
  return shift_node (b, TINY_OP_SHR, self, other);
}

/* The dtype that a plain number's partner gets: its own, unless it cannot hold it. */
static TinyNode *
ready_for_number (TinyBuild *self, TinyNode *x, double value)
{
  if (!tiny_dtype_is_float (x->dtype) && value != floor (value))
    return tiny_build_float (self, x);
  return numeric (self, x);
}

TinyTensor *
tiny_tensor_add_number (TinyTensor *self, double y)
{
  TinyBuild b;
  TinyNode *node = NULL;
  if (tiny_build_begin_some (&b, "add_number", 1, &self, 0, TINY_TAKES_SYMBOLIC))
    node = add_number (&b, ready_for_number (&b, b.x[0], y), y);
  return tiny_build_end (&b, node);
}

TinyTensor *
tiny_tensor_mul_number (TinyTensor *self, double y)
{
  TinyBuild b;
  TinyNode *node = NULL;
  if (tiny_build_begin_some (&b, "mul_number", 1, &self, 0, TINY_TAKES_SYMBOLIC))
    node = mul_number (&b, ready_for_number (&b, b.x[0], y), y);
  return tiny_build_end (&b, node);
}

TinyTensor *
tiny_tensor_clamp (TinyTensor *self, double low, double high)
{
  TinyBuild b;
  TinyNode *node = NULL;
  if (tiny_build_begin_some (&b, "clamp", 1, &self, 0, TINY_TAKES_SYMBOLIC)) {
    node = b.x[0];
    if (isfinite (low)) {
      node = ready_for_number (&b, node, low);
      node = op_maximum (&b, node, tiny_build_like (&b, node, low));
    }
    if (isfinite (high)) {
      node = ready_for_number (&b, node, high);
      node = op_minimum (&b, node, tiny_build_like (&b, node, high));
    }
    if (isnan (low) || isnan (high) || low > high)
      node = tiny_build_fail (&b, "no value is between %g and %g", low, high);
  }
  return tiny_build_end (&b, node);
}

TinyNode *
op_where (TinyBuild *b, TinyNode *self, TinyNode *input, TinyNode *other)
{
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
