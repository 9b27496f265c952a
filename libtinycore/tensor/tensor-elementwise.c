/* SPDX-License-Identifier: MIT
 *
 * tensor-elementwise.c: arithmetic element by element.
 *
 * Each public function is one row: its name and how it is built from the IR's few ops. Rows of the
 * same form share a macro. */
#include <math.h>

#include "ir/tiny-shape.h"
#include "tensor/tiny-build.h"
#include "tensor/tiny-layout.h"
#include "tensor/tiny-tensor-math.h"

/* ---- broadcasting ---- */
static gboolean
broadcast_shape (TinyBuild *self, guint n, TinyNode *const *x, gint64 *out, guint *out_rank)
{
  guint rank = 0;
  for (guint i = 0; i < n; i++)
    rank = MAX (rank, x[i]->shape->n);
  *out_rank = rank;
  for (guint axis = 0; axis < rank; axis++) {
    out[axis] = 1;
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
      out[axis] = size;
    }
  }
  return TRUE;
}

/* An elementwise @op whose sources have the right dtypes already. */
static TinyNode *
elementwise (TinyBuild *self, TinyOp op, TinyDType dtype, guint n, TinyNode **x)
{
  gint64 shape[32];
  guint rank;
  if (!broadcast_shape (self, n, x, shape, &rank)
      || !tiny_build_check_shape (self, shape, MIN (rank, TINY_MAX_RANK)))
    return NULL;
  TinyNode *sources[3];
  for (guint i = 0; i < n; i++)
    sources[i]
        = x[i]->shape->n == 0 ? x[i] : tiny_node_broadcast (self->graph, x[i], shape, rank);
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
static TinyNode *
less_or_equal (TinyBuild *self, TinyNode *x, TinyNode *y)
{
  if (x == NULL || y == NULL)
    return NULL;
  if (!tiny_dtype_is_float (x->dtype) && !tiny_dtype_is_float (y->dtype))
    return tiny_build_not (self, compare (self, TINY_OP_CMPLT, y, x));
  return tiny_build_binary (self, TINY_OP_OR, compare (self, TINY_OP_CMPLT, x, y),
                            compare (self, TINY_OP_CMPEQ, x, y));
}

/* @op of @x taken as float. */
static TinyNode *
float_unary (TinyBuild *self, TinyOp op, TinyNode *x)
{
  return tiny_build_unary (self, op, tiny_build_float (self, x));
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
tiny_build_exp (TinyBuild *self, TinyNode *x)
{
  return tiny_build_unary (self, TINY_OP_EXP2,
                           mul_number (self, tiny_build_float (self, x), 1 / G_LN2));
}

TinyNode *
tiny_build_log (TinyBuild *self, TinyNode *x)
{
  return mul_number (self, float_unary (self, TINY_OP_LOG2, x), G_LN2);
}

TinyNode *
tiny_build_cos (TinyBuild *self, TinyNode *x)
{
  return tiny_build_unary (self, TINY_OP_SIN,
                           add_number (self, tiny_build_float (self, x), G_PI_2));
}

TinyNode *
tiny_build_sigmoid (TinyBuild *self, TinyNode *x)
{
  TinyNode *minus = float_unary (self, TINY_OP_NEG, x);
  return tiny_build_unary (self, TINY_OP_RECIP,
                           add_number (self, tiny_build_exp (self, minus), 1));
}

TinyNode *
tiny_build_tanh (TinyBuild *self, TinyNode *x)
{
  TinyNode *twice = mul_number (self, tiny_build_float (self, x), 2);
  return add_number (self, mul_number (self, tiny_build_sigmoid (self, twice), 2), -1);
}

static TinyNode *
trunc_node (TinyBuild *self, TinyNode *x)
{
  return x == NULL || !tiny_dtype_is_float (x->dtype)
             ? x
             : tiny_build_unary (self, TINY_OP_TRUNC, x);
}

TinyNode *
tiny_build_floor (TinyBuild *self, TinyNode *x)
{
  if (x == NULL || !tiny_dtype_is_float (x->dtype))
    return x;
  TinyNode *whole = trunc_node (self, x);
  return tiny_build_where (self, compare (self, TINY_OP_CMPLT, x, whole),
                           add_number (self, whole, -1), whole);
}

TinyNode *
tiny_build_abs (TinyBuild *self, TinyNode *x)
{
  if (x == NULL || tiny_dtype_is_unsigned (x->dtype) || x->dtype == TINY_DTYPE_BOOL)
    return x;
  return tiny_build_binary (self, TINY_OP_MAX, x, tiny_build_unary (self, TINY_OP_NEG, x));
}

/* ---- what each public function is ---- */
static gboolean
is_integral (TinyBuild *self, TinyNode *x)
{
  if (x == NULL || !tiny_dtype_is_float (x->dtype))
    return x != NULL;
  tiny_build_fail (self, "takes integers or bool, not %s",
                   tiny_dtype_to_string ((TinyDType) x->dtype));
  return FALSE;
}

/* Bool counts as i32 where a number is asked for. */
static TinyNode *
numeric (TinyBuild *self, TinyNode *x)
{
  return x != NULL && x->dtype == TINY_DTYPE_BOOL ? tiny_build_cast (self, x, TINY_DTYPE_I32)
                                                  : x;
}

static TinyNode *
ceil_node (TinyBuild *self, TinyNode *x)
{
  if (x == NULL || !tiny_dtype_is_float (x->dtype))
    return x;
  TinyNode *whole = trunc_node (self, x);
  return tiny_build_where (self, compare (self, TINY_OP_CMPLT, whole, x),
                           add_number (self, whole, 1), whole);
}

static TinyNode *
round_node (TinyBuild *self, TinyNode *x)
{
  if (x == NULL || !tiny_dtype_is_float (x->dtype))
    return x;
  TinyNode *below = tiny_build_floor (self, x);
  TinyNode *rest = tiny_build_sub (self, x, below);
  TinyNode *half = tiny_build_like (self, x, 0.5);
  TinyNode *halved = tiny_build_mul (self, below, half);
  TinyNode *odd = compare (self, TINY_OP_CMPNE, tiny_build_floor (self, halved), halved);
  TinyNode *tie_up
      = tiny_build_binary (self, TINY_OP_AND, compare (self, TINY_OP_CMPEQ, rest, half), odd);
  TinyNode *up
      = tiny_build_binary (self, TINY_OP_OR, compare (self, TINY_OP_CMPLT, half, rest), tie_up);
  return tiny_build_where (self, up, add_number (self, below, 1), below);
}

/* Rounded down: one less than the truncated quotient where the signs differ and a rest is left. */
static TinyNode *
idiv_node (TinyBuild *self, TinyNode *x, TinyNode *y)
{
  x = numeric (self, x);
  y = numeric (self, y);
  if (x == NULL || y == NULL)
    return NULL;
  TinyDType dtype = tiny_dtype_promote ((TinyDType) x->dtype, (TinyDType) y->dtype);
  x = tiny_build_cast (self, x, dtype);
  y = tiny_build_cast (self, y, dtype);
  if (tiny_dtype_is_float (dtype))
    return tiny_build_floor (self, tiny_build_div (self, x, y));
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

static TinyNode *
mod_node (TinyBuild *self, TinyNode *x, TinyNode *y)
{
  x = numeric (self, x);
  y = numeric (self, y);
  return tiny_build_sub (self, x, tiny_build_mul (self, y, idiv_node (self, x, y)));
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
  TinyNode *base = tiny_build_where (self, is_zero, one, tiny_build_abs (self, x));
  TinyNode *size = tiny_build_unary (
      self, TINY_OP_EXP2,
      tiny_build_mul (self, y, tiny_build_unary (self, TINY_OP_LOG2, base)));
  TinyNode *half = mul_number (self, y, 0.5);
  TinyNode *whole = compare (self, TINY_OP_CMPEQ, y, trunc_node (self, y));
  TinyNode *even = compare (self, TINY_OP_CMPEQ, half, trunc_node (self, half));
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

static TinyNode *
pow_node (TinyBuild *self, TinyNode *x, TinyNode *y)
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
static TinyNode *
minimum_node (TinyBuild *self, TinyNode *x, TinyNode *y)
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

static TinyNode *
maximum_node (TinyBuild *self, TinyNode *x, TinyNode *y)
{
  if (x != NULL && y != NULL && x->dtype == TINY_DTYPE_BOOL && y->dtype == TINY_DTYPE_BOOL)
    return tiny_build_binary (self, TINY_OP_OR, x, y);
  return tiny_build_binary (self, TINY_OP_MAX, x, y);
}

static TinyNode *
sign_node (TinyBuild *self, TinyNode *x)
{
  x = numeric (self, x);
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

static TinyNode *
gelu_node (TinyBuild *self, TinyNode *x)
{
  x = tiny_build_float (self, x);
  TinyNode *cube = tiny_build_mul (self, x, tiny_build_mul (self, x, x));
  TinyNode *inner = mul_number (
      self, tiny_build_add (self, x, mul_number (self, cube, 0.044715)), sqrt (2 / G_PI));
  /* (1 + tanh (z)) / 2 is sigmoid (2 z). */
  return tiny_build_mul (self, x, tiny_build_sigmoid (self, mul_number (self, inner, 2)));
}

static TinyNode *
isinf_node (TinyBuild *self, TinyNode *x)
{
  if (x == NULL || !tiny_dtype_is_float (x->dtype))
    return x == NULL ? NULL : compare (self, TINY_OP_CMPNE, x, x);
  return compare (self, TINY_OP_CMPEQ, tiny_build_abs (self, x),
                  tiny_build_like (self, x, INFINITY));
}

static TinyNode *
bits_node (TinyBuild *self, TinyOp op, TinyNode *x, TinyNode *y)
{
  if (!is_integral (self, x) || !is_integral (self, y))
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
  return is_integral (self, x) && is_integral (self, y) ? tiny_build_binary (
             self, op, numeric (self, x),
             tiny_build_cast (self, y, (TinyDType) numeric (self, x)->dtype))
                                                        : NULL;
}

static TinyNode *
bitwise_not_node (TinyBuild *self, TinyNode *x)
{
  if (!is_integral (self, x))
    return NULL;
  return x->dtype == TINY_DTYPE_BOOL
             ? tiny_build_not (self, x)
             : tiny_build_binary (self, TINY_OP_XOR, x,
                                  tiny_node_const_int (self->graph, (TinyDType) x->dtype, -1));
}

static TinyNode *
logical (TinyBuild *self, TinyOp op, TinyNode *x, TinyNode *y)
{
  return tiny_build_binary (self, op, tiny_build_cast (self, x, TINY_DTYPE_BOOL),
                            tiny_build_cast (self, y, TINY_DTYPE_BOOL));
}

#define UNARY(name, result)                                                                    \
  TinyTensor *tiny_tensor_##name (TinyTensor *self)                                            \
  {                                                                                            \
    TinyBuild build, *b = &build;                                                              \
    TinyNode *node = NULL;                                                                     \
    if (tiny_build_begin (b, #name, 1, &self)) {                                               \
      TinyNode *x = b->x[0];                                                                   \
      node = result;                                                                           \
    }                                                                                          \
    return tiny_build_end (b, node);                                                           \
  }
#define BINARY(name, result)                                                                   \
  TinyTensor *tiny_tensor_##name (TinyTensor *self, TinyTensor *other)                         \
  {                                                                                            \
    TinyBuild build, *b = &build;                                                              \
    TinyTensor *both[] = { self, other };                                                      \
    TinyNode *node = NULL;                                                                     \
    if (tiny_build_begin (b, #name, 2, both)) {                                                \
      TinyNode *x = b->x[0], *y = b->x[1];                                                     \
      node = result;                                                                           \
    }                                                                                          \
    return tiny_build_end (b, node);                                                           \
  }

/* clang-format off */
BINARY (add, tiny_build_add (b, x, y))
BINARY (sub, tiny_build_sub (b, numeric (b, x), numeric (b, y)))
BINARY (mul, tiny_build_mul (b, x, y))
BINARY (div, tiny_build_div (b, x, y))
BINARY (idiv, idiv_node (b, x, y))
BINARY (mod, mod_node (b, x, y))
BINARY (pow, pow_node (b, x, y))
BINARY (maximum, maximum_node (b, x, y))
BINARY (minimum, minimum_node (b, x, y))
BINARY (eq, compare (b, TINY_OP_CMPEQ, x, y))
BINARY (ne, compare (b, TINY_OP_CMPNE, x, y))
BINARY (lt, compare (b, TINY_OP_CMPLT, x, y))
BINARY (le, less_or_equal (b, x, y))
BINARY (gt, compare (b, TINY_OP_CMPLT, y, x))
BINARY (ge, less_or_equal (b, y, x))
BINARY (logical_and, logical (b, TINY_OP_AND, x, y))
BINARY (logical_or, logical (b, TINY_OP_OR, x, y))
BINARY (logical_xor, logical (b, TINY_OP_CMPNE, x, y))
BINARY (bitwise_and, bits_node (b, TINY_OP_AND, x, y))
BINARY (bitwise_or, bits_node (b, TINY_OP_OR, x, y))
BINARY (bitwise_xor, bits_node (b, TINY_OP_XOR, x, y))
BINARY (shift_left, shift_node (b, TINY_OP_SHL, x, y))
BINARY (shift_right, shift_node (b, TINY_OP_SHR, x, y))
UNARY (neg, tiny_build_unary (b, TINY_OP_NEG, numeric (b, x)))
UNARY (recip, float_unary (b, TINY_OP_RECIP, x))
UNARY (sqrt, float_unary (b, TINY_OP_SQRT, x))
UNARY (rsqrt, tiny_build_unary (b, TINY_OP_RECIP, float_unary (b, TINY_OP_SQRT, x)))
UNARY (exp, tiny_build_exp (b, x))
UNARY (exp2, float_unary (b, TINY_OP_EXP2, x))
UNARY (log, tiny_build_log (b, x))
UNARY (log2, float_unary (b, TINY_OP_LOG2, x))
UNARY (sin, float_unary (b, TINY_OP_SIN, x))
UNARY (cos, tiny_build_cos (b, x))
UNARY (tan, tiny_build_div (b, float_unary (b, TINY_OP_SIN, x), tiny_build_cos (b, x)))
UNARY (tanh, tiny_build_tanh (b, x))
UNARY (sigmoid, tiny_build_sigmoid (b, x))
UNARY (relu, maximum_node (b, x, tiny_build_like (b, x, 0)))
UNARY (gelu, gelu_node (b, x))
UNARY (silu, tiny_build_mul (b, tiny_build_float (b, x), tiny_build_sigmoid (b, x)))
UNARY (abs, tiny_build_abs (b, x))
UNARY (sign, sign_node (b, x))
UNARY (square, tiny_build_mul (b, x, x))
UNARY (floor, tiny_build_floor (b, x))
UNARY (ceil, ceil_node (b, x))
UNARY (round, round_node (b, x))
UNARY (trunc, trunc_node (b, x))
UNARY (logical_not, tiny_build_not (b, x))
UNARY (bitwise_not, bitwise_not_node (b, x))
UNARY (isnan, compare (b, TINY_OP_CMPNE, x, x))
UNARY (isinf, isinf_node (b, x))
/* clang-format on */

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
  if (tiny_build_begin (&b, "add_number", 1, &self))
    node = add_number (&b, ready_for_number (&b, b.x[0], y), y);
  return tiny_build_end (&b, node);
}

TinyTensor *
tiny_tensor_mul_number (TinyTensor *self, double y)
{
  TinyBuild b;
  TinyNode *node = NULL;
  if (tiny_build_begin (&b, "mul_number", 1, &self))
    node = mul_number (&b, ready_for_number (&b, b.x[0], y), y);
  return tiny_build_end (&b, node);
}

TinyTensor *
tiny_tensor_clamp (TinyTensor *self, double low, double high)
{
  TinyBuild b;
  TinyNode *node = NULL;
  if (tiny_build_begin (&b, "clamp", 1, &self)) {
    node = b.x[0];
    if (isfinite (low)) {
      node = ready_for_number (&b, node, low);
      node = maximum_node (&b, node, tiny_build_like (&b, node, low));
    }
    if (isfinite (high)) {
      node = ready_for_number (&b, node, high);
      node = minimum_node (&b, node, tiny_build_like (&b, node, high));
    }
    if (isnan (low) || isnan (high) || low > high)
      node = tiny_build_fail (&b, "no value is between %g and %g", low, high);
  }
  return tiny_build_end (&b, node);
}

TinyTensor *
tiny_tensor_where (TinyTensor *gate, TinyTensor *x, TinyTensor *y)
{
  TinyBuild b;
  TinyTensor *all[] = { gate, x, y };
  TinyNode *node = NULL;
  if (tiny_build_begin (&b, "where", 3, all))
    node = tiny_build_where (&b, b.x[0], b.x[1], b.x[2]);
  return tiny_build_end (&b, node);
}

TinyTensor *
tiny_tensor_cast (TinyTensor *self, TinyDType dtype)
{
  TinyBuild b;
  TinyNode *node = NULL;
  if (tiny_build_begin (&b, "cast", 1, &self))
    node = tiny_build_cast (&b, b.x[0], dtype);
  return tiny_build_end (&b, node);
}

TinyTensor *
tiny_tensor_bitcast (TinyTensor *self, TinyDType dtype)
{
  TinyBuild b;
  TinyNode *node = NULL;
  if (tiny_build_begin (&b, "bitcast", 1, &self) && tiny_build_check_dtype (&b, dtype)) {
    /* A bool is a byte of 0 or 1; what other bytes would be as bool no device agrees on. */
    TinyNode *x = b.x[0]->dtype == TINY_DTYPE_BOOL ? tiny_build_cast (&b, b.x[0], TINY_DTYPE_U8)
                                                   : b.x[0];
    TinyDType from = (TinyDType) x->dtype;
    if (b.x[0]->dtype == dtype)
      node = b.x[0];
    else if (dtype == TINY_DTYPE_BOOL)
      tiny_build_fail (&b, "no bits make a bool: compare, or cast");
    else if (tiny_dtype_get_n_bytes (from) != tiny_dtype_get_n_bytes (dtype))
      tiny_build_fail (&b, "%s and %s have different sizes", tiny_dtype_to_string (from),
                       tiny_dtype_to_string (dtype));
    else
      node = from == dtype ? x
                           : tiny_layout_elementwise (b.graph, TINY_OP_BITCAST, dtype, 1, &x);
  }
  return tiny_build_end (&b, node);
}
