/* SPDX-License-Identifier: MIT
 *
 * tiny-eval.c: the ops on bools, integers of a width, mathematical integers, and floats. */
#include "ir/tiny-eval.h"

#include <math.h>
#include <string.h>

#include "base/tiny-float.h"

static const gint64 quiet_nan = G_GINT64_CONSTANT (0x7ff8000000000000);

gint64
tiny_eval_wrap (TinyDType dtype, gint64 value)
{
  guint n_bits = 8 * tiny_dtype_get_n_bytes (dtype);
  if (dtype == TINY_DTYPE_BOOL)
    return value != 0;
  if (n_bits == 0 || n_bits >= 64)
    return value;
  if (tiny_dtype_is_signed (dtype))
    return (gint64) ((guint64) value << (64 - n_bits)) >> (64 - n_bits);
  return value & (gint64) ((G_GUINT64_CONSTANT (1) << n_bits) - 1);
}

gint64
tiny_eval_from_double (TinyDType dtype, double value)
{
  value = tiny_float_round (dtype, value);
  gint64 bits;
  memcpy (&bits, &value, sizeof bits);
  return isnan (value) ? quiet_nan : bits;
}

double
tiny_eval_to_double (gint64 bits)
{
  double value;
  memcpy (&value, &bits, sizeof value);
  return value;
}

gboolean
tiny_eval_is_canonical (TinyDType dtype, gint64 bits)
{
  if (tiny_dtype_is_float (dtype))
    return tiny_eval_from_double (dtype, tiny_eval_to_double (bits)) == bits;
  return tiny_eval_wrap (dtype, bits) == bits;
}

static gboolean
eval_bool (TinyOp op, const gint64 *a, gint64 *out)
{
  switch (op) {
  case TINY_OP_ADD:
  case TINY_OP_MAX:
  case TINY_OP_OR:
    *out = a[0] | a[1];
    return TRUE;
  case TINY_OP_MUL:
  case TINY_OP_AND:
    *out = a[0] & a[1];
    return TRUE;
  case TINY_OP_XOR:
  case TINY_OP_CMPNE:
    *out = a[0] ^ a[1];
    return TRUE;
  case TINY_OP_CMPEQ:
    *out = a[0] == a[1];
    return TRUE;
  case TINY_OP_CMPLT:
    *out = !a[0] && a[1];
    return TRUE;
  case TINY_OP_MULACC:
    *out = (a[0] & a[1]) | a[2];
    return TRUE;
  default:
    return FALSE;
  }
}

/* Bounded below by zero: sources and result are the bits of unsigned numbers. */
static gboolean
eval_unsigned_division (TinyOp op, guint64 x, guint64 y, gint64 *out)
{
  if (y == 0)
    return FALSE;
  gboolean quotient = op == TINY_OP_IDIV || op == TINY_OP_FLOORDIV;
  *out = (gint64) (quotient ? x / y : x % y);
  return TRUE;
}

static gboolean
eval_signed_division (TinyOp op, gint64 x, gint64 y, gboolean unbounded, gint64 *out)
{
  gboolean quotient = op == TINY_OP_IDIV || op == TINY_OP_FLOORDIV;
  if (y == 0)
    return FALSE;
  if (y == -1) { /* the one divisor whose quotient can leave 64 bits */
    if (unbounded && quotient && x == G_MININT64)
      return FALSE;
    *out = quotient ? (gint64) (0 - (guint64) x) : 0;
    return TRUE;
  }
  gint64 q = x / y, r = x % y;
  if ((op == TINY_OP_FLOORDIV || op == TINY_OP_FLOORMOD) && r != 0 && (r < 0) != (y < 0)) {
    q -= 1;
    r += y;
  }
  *out = quotient ? q : r;
  return TRUE;
}

/* INDEX: what leaves 64 bits has no answer. */
static gboolean
eval_index (TinyOp op, const gint64 *a, gint64 *out)
{
  gint64 product;
  switch (op) {
  case TINY_OP_NEG:
    return !__builtin_sub_overflow ((gint64) 0, a[0], out);
  case TINY_OP_ADD:
    return !__builtin_add_overflow (a[0], a[1], out);
  case TINY_OP_SUB:
    return !__builtin_sub_overflow (a[0], a[1], out);
  case TINY_OP_MUL:
    return !__builtin_mul_overflow (a[0], a[1], out);
  case TINY_OP_MULACC:
    return !__builtin_mul_overflow (a[0], a[1], &product)
           && !__builtin_add_overflow (product, a[2], out);
  case TINY_OP_SHL:
    return a[1] >= 0 && a[1] < 63
           && !__builtin_mul_overflow (a[0], G_GINT64_CONSTANT (1) << a[1], out);
  default:
    g_assert_not_reached ();
  }
}

static gboolean
eval_integer (TinyOp op, TinyDType dtype, const gint64 *a, gint64 *out)
{
  gboolean is_unsigned = tiny_dtype_is_unsigned (dtype);
  gboolean unbounded = dtype == TINY_DTYPE_INDEX;
  gint64 n_bits = 8 * (gint64) tiny_dtype_get_n_bytes (dtype);
  guint64 x = (guint64) a[0];
  switch (op) {
  case TINY_OP_NEG:
  case TINY_OP_ADD:
  case TINY_OP_SUB:
  case TINY_OP_MUL:
  case TINY_OP_MULACC:
    if (unbounded)
      return eval_index (op, a, out);
    *out = (gint64) (op == TINY_OP_NEG   ? 0 - x
                     : op == TINY_OP_ADD ? x + (guint64) a[1]
                     : op == TINY_OP_SUB ? x - (guint64) a[1]
                     : op == TINY_OP_MUL ? x * (guint64) a[1]
                                         : x * (guint64) a[1] + (guint64) a[2]);
    return TRUE;
  case TINY_OP_IDIV:
  case TINY_OP_MOD:
  case TINY_OP_FLOORDIV:
  case TINY_OP_FLOORMOD:
    if (is_unsigned)
      return eval_unsigned_division (op, x, (guint64) a[1], out);
    return eval_signed_division (op, a[0], a[1], unbounded, out);
  case TINY_OP_MAX:
    *out = is_unsigned ? (gint64) MAX (x, (guint64) a[1]) : MAX (a[0], a[1]);
    return TRUE;
  case TINY_OP_CMPLT:
    *out = is_unsigned ? x < (guint64) a[1] : a[0] < a[1];
    return TRUE;
  case TINY_OP_CMPNE:
    *out = a[0] != a[1];
    return TRUE;
  case TINY_OP_CMPEQ:
    *out = a[0] == a[1];
    return TRUE;
  case TINY_OP_AND:
    *out = a[0] & a[1];
    return TRUE;
  case TINY_OP_OR:
    *out = a[0] | a[1];
    return TRUE;
  case TINY_OP_XOR:
    *out = a[0] ^ a[1];
    return TRUE;
  case TINY_OP_SHL:
    if (unbounded)
      return eval_index (op, a, out);
    *out = (gint64) (x << (a[1] & 63));
    return a[1] >= 0 && a[1] < n_bits;
  case TINY_OP_SHR:
    *out = is_unsigned ? (gint64) (x >> (a[1] & 63)) : a[0] >> (a[1] & 63);
    return a[1] >= 0 && a[1] < n_bits;
  default:
    return FALSE;
  }
}

/* In double, then rounded to the dtype: for + - * / and the square root of formats of up to 24
 * bits that is as good as rounding once, because 53 >= 2 * 24 + 2 (Figueroa 1995). */
static gboolean
eval_float (TinyOp op, TinyDType dtype, const gint64 *args, guint n, gint64 *out)
{
  double a[3] = { 0 }, result = 0;
  for (guint i = 0; i < n; i++)
    a[i] = tiny_eval_to_double (args[i]);
  switch (op) {
  case TINY_OP_CMPLT:
    *out = a[0] < a[1];
    return TRUE;
  case TINY_OP_CMPNE:
    *out = a[0] != a[1];
    return TRUE;
  case TINY_OP_CMPEQ:
    *out = a[0] == a[1];
    return TRUE;
  case TINY_OP_NEG:
    result = -a[0];
    break;
  case TINY_OP_RECIP:
    result = 1 / a[0];
    break;
  case TINY_OP_SQRT:
    result = sqrt (a[0]);
    break;
  case TINY_OP_EXP2:
    result = exp2 (a[0]);
    break;
  case TINY_OP_LOG2:
    result = log2 (a[0]);
    break;
  case TINY_OP_SIN:
    result = sin (a[0]);
    break;
  case TINY_OP_TRUNC:
    result = trunc (a[0]);
    break;
  case TINY_OP_ADD:
    result = a[0] + a[1];
    break;
  case TINY_OP_SUB:
    result = a[0] - a[1];
    break;
  case TINY_OP_MUL:
    result = a[0] * a[1];
    break;
  case TINY_OP_FDIV:
    result = a[0] / a[1];
    break;
  case TINY_OP_MAX:
    if (isnan (a[0]) != isnan (a[1]))
      return FALSE;
    result = a[0] == a[1] && signbit (a[0]) ? a[1] : a[0] < a[1] ? a[1] : a[0];
    break;
  case TINY_OP_MULACC: {
    /* Through memory, so that no compiler contracts the two roundings of f64 into one. */
    volatile double product = tiny_float_round (dtype, a[0] * a[1]);
    result = product + a[2];
    break;
  }
  default:
    return FALSE;
  }
  *out = tiny_eval_from_double (dtype, result);
  return TRUE;
}

/* An integer as a double that a second rounding to at most 51 bits cannot round wrongly: what
 * does not fit is rounded to odd (Boldo and Melquiond 2008). */
static double
integer_to_double (TinyDType dtype, gint64 value, TinyDType target)
{
  gboolean is_unsigned = tiny_dtype_is_unsigned (dtype);
  if (target == TINY_DTYPE_F64)
    return is_unsigned ? (double) (guint64) value : (double) value;
  gboolean negative = !is_unsigned && value < 0;
  guint64 magnitude = negative ? 0 - (guint64) value : (guint64) value;
  guint shift = 0;
  while (magnitude >> shift >> 53 != 0)
    shift++;
  guint64 lost = magnitude & ((G_GUINT64_CONSTANT (1) << shift) - 1);
  double result = ldexp ((double) (magnitude >> shift | (lost != 0)), (int) shift);
  return negative ? -result : result;
}

static gboolean
double_to_integer (double value, TinyDType target, gint64 *out)
{
  value = trunc (value);
  guint n_bits = target == TINY_DTYPE_INDEX ? 64 : 8 * tiny_dtype_get_n_bytes (target);
  gboolean is_unsigned = tiny_dtype_is_unsigned (target);
  double limit = ldexp (1, (int) n_bits - (is_unsigned ? 0 : 1));
  /* Written so that a NaN fails. */
  if (!(value < limit && value >= (is_unsigned ? 0 : -limit)))
    return FALSE;
  *out = is_unsigned ? (gint64) (guint64) value : (gint64) value;
  return TRUE;
}

static gboolean
eval_cast (TinyDType from, TinyDType to, gint64 x, gint64 *out)
{
  gboolean from_float = tiny_dtype_is_float (from);
  if (tiny_dtype_is_float (to)) {
    double value = from_float ? tiny_eval_to_double (x) : integer_to_double (from, x, to);
    *out = tiny_eval_from_double (to, value);
    return TRUE;
  }
  if (to == TINY_DTYPE_BOOL) {
    *out = from_float ? tiny_eval_to_double (x) != 0 : x != 0;
    return TRUE;
  }
  if (from_float)
    return double_to_integer (tiny_eval_to_double (x), to, out);
  if (from == TINY_DTYPE_U64 && to == TINY_DTYPE_INDEX && x < 0)
    return FALSE;
  *out = tiny_eval_wrap (to, x);
  return TRUE;
}

static gboolean
eval_bitcast (TinyDType from, TinyDType to, gint64 x, gint64 *out)
{
  gsize n_bytes = tiny_dtype_get_n_bytes (from);
  if (from == TINY_DTYPE_INDEX || to == TINY_DTYPE_INDEX
      || n_bytes != tiny_dtype_get_n_bytes (to))
    return FALSE;
  guint64 bits = (guint64) x;
  if (tiny_dtype_is_float (from))
    bits = tiny_float_to_bits (from, tiny_eval_to_double (x));
  if (tiny_dtype_is_float (to)) {
    guint64 mask = n_bytes == 8 ? G_MAXUINT64 : (G_GUINT64_CONSTANT (1) << 8 * n_bytes) - 1;
    double value = tiny_float_from_bits (to, bits);
    *out = tiny_eval_from_double (to, value);
    /* A NaN's other payloads have no encoding. */
    return tiny_float_to_bits (to, value) == (bits & mask);
  }
  *out = tiny_eval_wrap (to, (gint64) bits);
  return to != TINY_DTYPE_BOOL || bits <= 1;
}

gboolean
tiny_eval_alu (
    TinyOp op, TinyDType dtype, TinyDType out_dtype, const gint64 *args, guint n, gint64 *out)
{
  g_return_val_if_fail (tiny_op_is_elementwise (op), FALSE);
  g_return_val_if_fail ((int) n == tiny_op_infos[op].least, FALSE);
  gint64 result = 0;
  gboolean defined;
  if (dtype == TINY_DTYPE_VOID || out_dtype == TINY_DTYPE_VOID)
    return FALSE;
  if (op == TINY_OP_CAST)
    return eval_cast (dtype, out_dtype, args[0], out);
  if (op == TINY_OP_BITCAST)
    return eval_bitcast (dtype, out_dtype, args[0], out);
  if (op == TINY_OP_WHERE) {
    *out = args[0] != 0 ? args[1] : args[2];
    return TRUE;
  }
  if (dtype == TINY_DTYPE_BOOL)
    defined = eval_bool (op, args, &result);
  else if (tiny_dtype_is_float (dtype))
    defined = eval_float (op, dtype, args, n, &result);
  else
    defined = eval_integer (op, dtype, args, &result);
  if (!defined)
    return FALSE;
  *out = tiny_dtype_is_float (out_dtype) ? result : tiny_eval_wrap (out_dtype, result);
  return TRUE;
}
