/* SPDX-License-Identifier: MIT
 *
 * oracle.c: operations by their definitions.
 *
 * A float result is a double and what it lost (error-free transformations: Knuth's two-sum, a product's
 * rest by fma), so that rounding to a narrower dtype happens once, of the exact number: the double is
 * first rounded to odd (Boldo, Melquiond, "When double rounding is odd", 2005). */
#include "oracle.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/tiny-float.h"

typedef __int128 Wide;
typedef unsigned __int128 WideBits;

/* ---- values ---- */
double
conf_to_double (gint64 bits)
{
  double value;
  memcpy (&value, &bits, sizeof value);
  return value;
}

gint64
conf_from_double (double value)
{
  gint64 bits;
  if (isnan (value))
    return G_GINT64_CONSTANT (0x7ff8000000000000);
  memcpy (&bits, &value, sizeof bits);
  return bits;
}

gboolean
conf_is_nan (TinyDType dtype, gint64 bits)
{
  return tiny_dtype_is_float (dtype) && isnan (conf_to_double (bits));
}

/* The lowest bits of @value as a CONST of integer @dtype. */
static gint64
wrap (TinyDType dtype, WideBits value)
{
  guint unused = 64 - 8 * (guint) tiny_dtype_get_n_bytes (dtype);
  guint64 low = (guint64) value << unused;
  if (dtype == TINY_DTYPE_BOOL)
    return value != 0;
  return tiny_dtype_is_signed (dtype) ? (gint64) low >> unused : (gint64) (low >> unused);
}

static Wide
widen (TinyDType dtype, gint64 bits)
{
  return dtype == TINY_DTYPE_U64 ? (Wide) (guint64) bits : (Wide) bits;
}

gint64
conf_decode (TinyDType dtype, gconstpointer data, gsize i)
{
  gsize n_bytes = tiny_dtype_get_n_bytes (dtype);
  guint64 raw = 0;
  memcpy (&raw, (const guint8 *) data + i * n_bytes,
          n_bytes); /* little-endian, as all targets */
  if (tiny_dtype_is_float (dtype))
    return conf_from_double (tiny_float_from_bits (dtype, raw));
  return dtype == TINY_DTYPE_BOOL ? (gint64) raw : wrap (dtype, raw);
}

void
conf_encode (TinyDType dtype, gpointer data, gsize i, gint64 bits)
{
  gsize n_bytes = tiny_dtype_get_n_bytes (dtype);
  guint64 raw = (guint64) bits;
  if (tiny_dtype_is_float (dtype))
    raw = tiny_float_to_bits (dtype, conf_to_double (bits));
  memcpy ((guint8 *) data + i * n_bytes, &raw, n_bytes);
}

char *
conf_value_to_string (TinyDType dtype, gint64 bits)
{
  if (tiny_dtype_is_float (dtype))
    return g_strdup_printf ("%.17g (%a)", conf_to_double (bits), conf_to_double (bits));
  return dtype == TINY_DTYPE_U64 ? g_strdup_printf ("%" G_GUINT64_FORMAT, (guint64) bits)
                                 : g_strdup_printf ("%" G_GINT64_FORMAT, bits);
}

/* ---- formats ---- */
static int
least_exponent (TinyDType dtype)
{
  return 2 - (1 << (tiny_dtype_infos[dtype].exponent_bits - 1));
}

double
conf_least_normal (TinyDType dtype)
{
  return ldexp (1, least_exponent (dtype));
}

long double
conf_ulp_of (TinyDType dtype, long double size)
{
  int exponent, least = least_exponent (dtype);
  frexpl (size, &exponent);
  if (size == 0 || exponent - 1 < least)
    exponent = least + 1;
  return ldexpl (1, exponent - 1 - (int) tiny_dtype_infos[dtype].mantissa_bits);
}

double
conf_largest (TinyDType dtype)
{
  const TinyDTypeInfo *info = &tiny_dtype_infos[dtype];
  guint64 infinity = ((G_GUINT64_CONSTANT (1) << info->exponent_bits) - 1)
                     << info->mantissa_bits;
  /* f8e4m3 has numbers up to one below its only NaN. */
  return tiny_float_from_bits (dtype, dtype == TINY_DTYPE_F8E4M3 ? 0x7e : infinity - 1);
}

/* @sum + @rest, where @rest is below half a unit in the last place of @sum, rounded to @dtype. */
static gint64
round_once (TinyDType dtype, double sum, double rest)
{
  guint64 bits;
  memcpy (&bits, &sum, sizeof bits);
  if (dtype == TINY_DTYPE_F64 || !isfinite (sum))
    return conf_from_double (tiny_float_round (dtype, sum));
  if (rest != 0 && (bits & 1) == 0)
    sum = nextafter (sum, rest > 0 ? INFINITY : -INFINITY);
  return conf_from_double (tiny_float_round (dtype, sum));
}

/* What @sum, that is @a + @b rounded, lost. */
static double
lost_by_sum (double a, double b, double sum)
{
  double of_b = sum - a;
  return isfinite (sum) ? (a - (sum - of_b)) + (b - of_b) : 0;
}

/* ---- results ---- */
static void
set_exact (ConfTruth *out, gint64 bits)
{
  *out = (ConfTruth){ CONF_TRUTH_EXACT, bits, bits, 0 };
}

/* Of finite operands. */
static void
set_real (ConfTruth *out, TinyDType dtype, double sum, double rest)
{
  gint64 bits = round_once (dtype, sum, rest);
  *out = (ConfTruth){ CONF_TRUTH_REAL, bits, bits, (long double) sum + rest };
  if (sum == 0 || !isfinite (sum))
    out->kind = CONF_TRUTH_EXACT;
}

static void
set_function (ConfTruth *out, TinyDType dtype, long double value)
{
  double near = (double) value;
  if (!isfinite (value) || value == 0) {
    set_exact (out, round_once (dtype, near, 0));
    return;
  }
  set_real (out, dtype, near, isfinite (near) ? (double) (value - near) : 0);
  out->kind = CONF_TRUTH_REAL;
  out->value = value;
}

static void
mulacc (ConfTruth *out, TinyDType dtype, double a, double b, double c)
{
  volatile double product = a * b; /* exact in the narrower dtypes; kept from being fused */
  double sum = product + c;
  if (dtype == TINY_DTYPE_F64)
    set_real (out, dtype, fma (a, b, c), 0);
  else
    set_real (out, dtype, sum, lost_by_sum (product, c, sum));
  double first = tiny_float_round (dtype, product), twice = first + c;
  out->other = round_once (dtype, twice, lost_by_sum (first, c, twice));
  if (out->kind == CONF_TRUTH_REAL && dtype == TINY_DTYPE_F64)
    out->value = (long double) product + c + fma (a, b, -product);
}

static void
largest (ConfTruth *out, double a, double b)
{
  set_exact (out, conf_from_double (a > b || isnan (b) ? a : b));
  if (isnan (a) || isnan (b))
    out->other = conf_from_double (NAN);
  else if (a == b)
    out->other = conf_from_double (a);
}

static void
of_floats (ConfTruth *out, TinyOp op, TinyDType dtype, double a, double b, double c)
{
  volatile double result;
  switch (op) {
  case TINY_OP_NEG:
    set_real (out, dtype, -a, 0);
    return;
  case TINY_OP_TRUNC:
    set_exact (out, conf_from_double (trunc (a)));
    return;
  case TINY_OP_MAX:
    largest (out, a, b);
    return;
  case TINY_OP_SUB:
    b = -b;
    G_GNUC_FALLTHROUGH;
  case TINY_OP_ADD:
    result = a + b;
    set_real (out, dtype, result, lost_by_sum (a, b, result));
    return;
  case TINY_OP_MUL:
    result = a * b;
    set_real (out, dtype, result, isfinite (result) ? fma (a, b, -result) : 0);
    return;
  case TINY_OP_RECIP:
    b = a, a = 1;
    G_GNUC_FALLTHROUGH;
  case TINY_OP_FDIV:
    result = a / b;
    set_real (out, dtype, result,
              isfinite (result) && isfinite (b) ? fma (-result, b, a) / b : 0);
    return;
  case TINY_OP_SQRT:
    result = sqrt (a);
    set_real (out, dtype, result,
              isfinite (result) && result != 0 ? fma (-result, result, a) / (2 * result) : 0);
    return;
  case TINY_OP_MULACC:
    mulacc (out, dtype, a, b, c);
    return;
  case TINY_OP_EXP2:
    set_function (out, dtype, exp2l (a));
    return;
  case TINY_OP_LOG2:
    set_function (out, dtype, log2l (a));
    return;
  case TINY_OP_SIN:
    set_function (out, dtype, sinl (a));
    return;
  default:
    return;
  }
}

static void
of_integers (ConfTruth *out, TinyOp op, TinyDType dtype, const gint64 *args, const Wide *x)
{
  gboolean is_bool = dtype == TINY_DTYPE_BOOL;
  Wide result = 0;
  switch (op) {
  case TINY_OP_NEG:
    result = -x[0];
    break;
  case TINY_OP_ADD: /* on bools: or, since 1 + 1 is not 0 */
    result = x[0] + x[1];
    break;
  case TINY_OP_SUB:
    result = x[0] - x[1];
    break;
  case TINY_OP_MUL:
    result = (Wide) ((WideBits) x[0] * (WideBits) x[1]);
    break;
  case TINY_OP_MULACC:
    result = (Wide) ((WideBits) x[0] * (WideBits) x[1] + (WideBits) x[2]);
    break;
  case TINY_OP_MAX:
    result = MAX (x[0], x[1]);
    break;
  case TINY_OP_AND:
    result = args[0] & args[1];
    break;
  case TINY_OP_OR:
    result = args[0] | args[1];
    break;
  case TINY_OP_XOR:
    result = args[0] ^ args[1];
    break;
  case TINY_OP_IDIV:
  case TINY_OP_MOD:
    if (x[1] == 0)
      return;
    result = op == TINY_OP_IDIV ? x[0] / x[1] : x[0] % x[1];
    break;
  case TINY_OP_SHL:
  case TINY_OP_SHR:
    if (x[1] < 0 || x[1] >= 8 * (Wide) tiny_dtype_get_n_bytes (dtype))
      return;
    result = op == TINY_OP_SHL ? (Wide) ((WideBits) x[0] << x[1]) : x[0] >> x[1];
    break;
  default:
    return;
  }
  set_exact (out, is_bool ? result != 0 : wrap (dtype, (WideBits) result));
}

static void
compare (ConfTruth *out, TinyOp op, TinyDType dtype, const gint64 *args, const Wide *x)
{
  gboolean less = x[0] < x[1], same = x[0] == x[1];
  if (tiny_dtype_is_float (dtype)) {
    double a = conf_to_double (args[0]), b = conf_to_double (args[1]);
    less = a < b, same = a == b;
  }
  set_exact (out, op == TINY_OP_CMPLT ? less : op == TINY_OP_CMPEQ ? same : !same);
}

static void
cast (ConfTruth *out, TinyDType from, TinyDType to, gint64 bits)
{
  if (!tiny_dtype_is_float (from)) {
    Wide x = widen (from, bits);
    if (!tiny_dtype_is_float (to)) {
      set_exact (out, to == TINY_DTYPE_BOOL ? x != 0 : wrap (to, (WideBits) x));
      return;
    }
    double near = (double) x;
    set_real (out, to, near, (double) (x - (Wide) near));
    return;
  }
  double x = conf_to_double (bits);
  if (to == TINY_DTYPE_BOOL) {
    set_exact (out, x != 0);
  } else if (tiny_dtype_is_float (to)) {
    set_real (out, to, x, 0);
  } else if (fabs (x) < 0x1p100) {
    Wide whole = (Wide) x;
    gint64 result = wrap (to, (WideBits) whole);
    if (widen (to, result) == whole)
      set_exact (out, result);
  }
}

static void
bitcast (ConfTruth *out, TinyDType from, TinyDType to, gint64 bits)
{
  guint64 raw = 0;
  if (conf_is_nan (from, bits)) /* which one it was is not known */
    return;
  conf_encode (from, &raw, 0, bits);
  set_exact (out, conf_decode (to, &raw, 0));
}

void
conf_oracle (
    TinyOp op, TinyDType from, TinyDType to, const gint64 *args, guint n, ConfTruth *out)
{
  gboolean is_float = tiny_dtype_is_float (from);
  double v[3] = { 0 };
  Wide x[3] = { 0 };
  for (guint i = 0; i < n; i++) {
    v[i] = conf_to_double (args[i]);
    x[i] = is_float ? 0 : widen (from, args[i]);
  }
  *out = (ConfTruth){ CONF_TRUTH_ANY, 0, 0, 0 };
  if (op == TINY_OP_CAST)
    cast (out, from, to, args[0]);
  else if (op == TINY_OP_BITCAST)
    bitcast (out, from, to, args[0]);
  else if (op == TINY_OP_WHERE)
    set_exact (out, args[args[0] ? 1 : 2]);
  else if (tiny_op_infos[op].op_class == TINY_OP_CLASS_COMPARE)
    compare (out, op, from, args, x);
  else if (is_float)
    of_floats (out, op, to, v[0], v[1], v[2]);
  else
    of_integers (out, op, from, args, x);
}
