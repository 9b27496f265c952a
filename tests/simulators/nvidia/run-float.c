/* SPDX-License-Identifier: MIT
 *
 * run-float.c: arithmetic and comparisons of floating-point numbers.
 *
 * Every result is rounded once. f32 and f64 to nearest are the host's own operations; all else is computed exactly, as far
 * as rounding needs it, and rounded by ptx_pack (). NaNs that arise are the machine's one NaN. */
#include "ptx-number.h"
#include "ptx-run.h"
#include "ptx-warp.h"
#include <fenv.h>
#include <math.h>

typedef guint64 (*Element) (
    const PtxInstr *instr, PtxType type, guint64 a, guint64 b, guint64 c);

static PtxType
part_type (PtxType type)
{
  return type == PTX_f16x2 ? PTX_f16 : type == PTX_bf16x2 ? PTX_bf16 : type;
}

/* @function of each lane, and of each half of packed types. */
static void
each (PtxWarp *warp, const PtxInstr *instr, Element function)
{
  static const guint64 none[PTX_N_LANES];
  PtxType type = instr->type[0], part = part_type (type);
  const guint64 *a = ptx_source (warp, instr, 1);
  const guint64 *b = instr->n_groups > 2 ? ptx_source (warp, instr, 2) : none;
  const guint64 *c = instr->n_groups > 3 ? ptx_source (warp, instr, 3) : none;
  guint bits = ptx_types[part].bits;
  PTX_EACH_LANE (warp, lane)
  {
    guint64 result = function (instr, part, ptx_truncate (bits, a[lane]),
                               ptx_truncate (bits, b[lane]), ptx_truncate (bits, c[lane]));
    if (part != type)
      result |= function (instr, part, a[lane] >> 16 & 0xffff, b[lane] >> 16 & 0xffff,
                          c[lane] >> 16 & 0xffff)
                << 16;
    ptx_put (warp, ptx_operand (instr, 0), lane, result);
  }
}

/* ---- what all results go through ---- */

static gboolean
is_subnormal (PtxType type, guint64 bits)
{
  guint64 magnitude = type == PTX_f32 ? bits & 0x7fffffff : 0;
  return magnitude > 0 && magnitude < 0x00800000;
}

/* A subnormal f32 is zero with its sign where the instruction flushes. */
static guint64
flushed (const PtxInstr *instr, PtxType type, guint64 bits)
{
  return (instr->flags & PTX_FLAG_FTZ) && is_subnormal (type, bits) ? bits & (guint64) 1 << 31
                                                                    : bits;
}

static double
value_of (const PtxInstr *instr, PtxType type, guint64 bits)
{
  return ptx_decode (type, flushed (instr, type, bits));
}

static guint64
finished (const PtxInstr *instr, PtxType type, guint64 bits)
{
  bits = flushed (instr, type, bits);
  double value = ptx_decode (type, bits);
  if ((instr->flags & PTX_FLAG_SAT) && !(value > 0))
    return 0;
  if ((instr->flags & PTX_FLAG_SAT) && value > 1)
    return ptx_encode (type, 1, PTX_RN, FALSE);
  if ((instr->flags & PTX_FLAG_RELU) && !(value > 0))
    return isnan (value) ? ptx_nan (type) : 0;
  return isnan (value) ? ptx_nan (type) : bits;
}

static guint64
in_format (const PtxInstr *instr, PtxType type, double value)
{
  return finished (instr, type, ptx_encode (type, value, PTX_RN, FALSE));
}

static guint
round_of (const PtxInstr *instr)
{
  return instr->chosen[PTX_CLASS_ROUND] != 0 ? instr->chosen[PTX_CLASS_ROUND] : PTX_RN;
}

/* ---- f64 in modes of the host ---- */

static int
host_mode (guint round)
{
  return round == PTX_RZ   ? FE_TOWARDZERO
         : round == PTX_RM ? FE_DOWNWARD
         : round == PTX_RP ? FE_UPWARD
                           : FE_TONEAREST;
}

typedef enum { SUM, PRODUCT, FUSED, QUOTIENT, ROOT } Operation;

static double
compute_rounded (Operation operation, double a, double b, double c, guint round)
{
  volatile double x = a, y = b, z = c, result = 0;
  int before = fegetround ();
  fesetround (host_mode (round));
  switch (operation) {
  case SUM:
    result = x + y;
    break;
  case PRODUCT:
    result = x * y;
    break;
  case FUSED:
    result = fma (x, y, z);
    break;
  case QUOTIENT:
    result = x / y;
    break;
  case ROOT:
    result = sqrt (x);
    break;
  }
  fesetround (before);
  return result;
}

static guint64
of_double (const PtxInstr *instr, Operation operation, double a, double b, double c)
{
  return finished (instr, PTX_f64,
                   ptx_bits_of_double (compute_rounded (operation, a, b, c, round_of (instr))));
}

/* a · b + c of formats whose products a double holds. */
static guint64
of_exact (const PtxInstr *instr, PtxType type, double a, double b, double c)
{
  double product = a * b, plain = product + c;
  if (!isfinite (plain) || plain == 0)
    return in_format (instr, type, plain);
  return finished (instr, type,
                   ptx_pack (type, ptx_exact_sum (product, c), round_of (instr), FALSE));
}

static guint64
fused (const PtxInstr *instr, PtxType type, double a, double b, double c)
{
  return type == PTX_f64 ? of_double (instr, FUSED, a, b, c) : of_exact (instr, type, a, b, c);
}

/* ---- sums and products ---- */

static guint64
add (const PtxInstr *instr, PtxType type, guint64 a, guint64 b, guint64 c)
{
  (void) c;
  double x = value_of (instr, type, a), y = value_of (instr, type, b);
  return type == PTX_f64 ? of_double (instr, SUM, x, y, 0) : of_exact (instr, type, x, 1, y);
}

static guint64
subtract (const PtxInstr *instr, PtxType type, guint64 a, guint64 b, guint64 c)
{
  (void) c;
  double x = value_of (instr, type, a), y = value_of (instr, type, b);
  return type == PTX_f64 ? of_double (instr, SUM, x, -y, 0) : of_exact (instr, type, x, 1, -y);
}

/* The zero that is added has the product's sign. */
static guint64
multiply (const PtxInstr *instr, PtxType type, guint64 a, guint64 b, guint64 c)
{
  (void) c;
  double x = value_of (instr, type, a), y = value_of (instr, type, b);
  return type == PTX_f64 ? of_double (instr, PRODUCT, x, y, 0)
                         : of_exact (instr, type, x, y, copysign (0.0, x * y));
}

static guint64
fuse (const PtxInstr *instr, PtxType type, guint64 a, guint64 b, guint64 c)
{
  return fused (instr, type, value_of (instr, type, a), value_of (instr, type, b),
                value_of (instr, type, c));
}

static gboolean
is_plain (const PtxInstr *instr)
{
  return instr->type[0] == PTX_f32 && instr->flags == 0 && round_of (instr) == PTX_RN;
}

static guint64
plain_result (float value)
{
  return isnan (value) ? 0x7fffffff : ptx_bits_of_float (value);
}

/* f32 to nearest, without more ado: what kernels mostly do. */
#define FAST(name, element, expression)                                                        \
  void ptx_run_##name (PtxWarp *warp, const PtxInstr *instr)                                   \
  {                                                                                            \
    if (!is_plain (instr)) {                                                                   \
      each (warp, instr, element);                                                             \
      return;                                                                                  \
    }                                                                                          \
    const guint64 *a = ptx_source (warp, instr, 1), *b = ptx_source (warp, instr, 2);          \
    const guint64 *c = instr->n_groups > 3 ? ptx_source (warp, instr, 3) : a;                  \
    PTX_EACH_LANE (warp, lane)                                                                 \
    {                                                                                          \
      float x = ptx_float_of (a[lane]), y = ptx_float_of (b[lane]),                            \
            z = ptx_float_of (c[lane]);                                                        \
      (void) z;                                                                                \
      ptx_put (warp, ptx_operand (instr, 0), lane, plain_result (expression));                 \
    }                                                                                          \
  }
/* clang-format off */
FAST (fadd, add, x + y)
FAST (fsub, subtract, x - y)
FAST (fmul, multiply, x * y)
FAST (fma, fuse, fmaf (x, y, z))
/* clang-format on */

/* ---- quotients and roots ---- */

/* A quotient or root of f32 numbers rounded in a mode: by a double, with a sticky bit from the remainder. */
static guint64
of_remainder (const PtxInstr *instr, double value, double remainder_sign)
{
  PtxExact exact = ptx_exact (value);
  if (remainder_sign < 0) {
    exact = ptx_exact (nextafter (value, 0));
    exact.is_more = TRUE;
  } else if (remainder_sign > 0) {
    exact.is_more = TRUE;
  }
  return finished (instr, PTX_f32, ptx_pack (PTX_f32, exact, round_of (instr), FALSE));
}

static guint64
quotient (const PtxInstr *instr, PtxType type, double x, double y)
{
  if (type == PTX_f64)
    return of_double (instr, QUOTIENT, x, y, 0);
  double value = x / y;
  if (round_of (instr) == PTX_RN || !isfinite (value) || value == 0)
    return in_format (instr, type, (float) x / (float) y);
  /* |x| against |value| · |y|: the sign of what the quotient lacks */
  return of_remainder (instr, value, -fma (fabs (value), fabs (y), -fabs (x)));
}

/* The stated range of the approximate quotient: beyond 2^126 the result is 0. */
static guint64
divide (const PtxInstr *instr, PtxType type, guint64 a, guint64 b, guint64 c)
{
  (void) c;
  double x = value_of (instr, type, a), y = value_of (instr, type, b);
  if ((instr->flags & PTX_FLAG_APPROX) && fabs (y) > 0x1p126 && isfinite (y))
    return isinf (x) ? ptx_nan (type)
                     : in_format (instr, type, copysign (0.0, x) * copysign (1.0, y));
  return quotient (instr, type, x, y);
}

static guint64
invert (const PtxInstr *instr, PtxType type, guint64 a, guint64 b, guint64 c)
{
  (void) b, (void) c;
  return quotient (instr, type, 1, value_of (instr, type, a));
}

static guint64
root (const PtxInstr *instr, PtxType type, guint64 a, guint64 b, guint64 c)
{
  (void) b, (void) c;
  double x = value_of (instr, type, a), value = sqrt (x);
  if (type == PTX_f64)
    return of_double (instr, ROOT, x, 0, 0);
  if (round_of (instr) == PTX_RN || !isfinite (value) || value == 0)
    return in_format (instr, type, sqrtf ((float) x));
  return of_remainder (instr, value, -fma (value, value, -x));
}

static guint64
inverse_root (const PtxInstr *instr, PtxType type, guint64 a, guint64 b, guint64 c)
{
  (void) b, (void) c;
  return in_format (instr, type, 1 / sqrt (value_of (instr, type, a)));
}

/* ---- functions, within the errors that PTX states ---- */

#define FUNCTION(name, expression)                                                             \
  static guint64 name (const PtxInstr *instr, PtxType type, guint64 a, guint64 b, guint64 c)   \
  {                                                                                            \
    (void) b, (void) c;                                                                        \
    double x = value_of (instr, type, a);                                                      \
    return in_format (instr, type, (expression));                                              \
  }
/* clang-format off */
FUNCTION (power, exp2 (x))
FUNCTION (logarithm, log2 (x))
FUNCTION (sine, sin (x))
FUNCTION (cosine, cos (x))
FUNCTION (tangent, tanh (x))
/* clang-format on */

/* ---- choices and signs ---- */

static guint64
chosen_of (const PtxInstr *instr, PtxType type, guint64 a, guint64 b, gboolean is_larger)
{
  double x = value_of (instr, type, a), y = value_of (instr, type, b);
  if (isnan (x) && isnan (y))
    return ptx_nan (type);
  if (isnan (x) || isnan (y))
    return instr->flags & PTX_FLAG_NAN ? ptx_nan (type)
                                       : flushed (instr, type, isnan (x) ? b : a);
  gboolean is_first = x == y ? (signbit (x) != 0) != is_larger : is_larger ? x > y : x < y;
  return flushed (instr, type, is_first ? a : b);
}

static guint64
smaller (const PtxInstr *instr, PtxType type, guint64 a, guint64 b, guint64 c)
{
  (void) c;
  return chosen_of (instr, type, a, b, FALSE);
}

static guint64
larger (const PtxInstr *instr, PtxType type, guint64 a, guint64 b, guint64 c)
{
  (void) c;
  return chosen_of (instr, type, a, b, TRUE);
}

static guint64
sign_bit (PtxType type)
{
  return (guint64) 1 << (ptx_types[type].bits - 1);
}

static guint64
absolute (const PtxInstr *instr, PtxType type, guint64 a, guint64 b, guint64 c)
{
  (void) b, (void) c;
  return flushed (instr, type, a & ~sign_bit (type));
}

static guint64
negative (const PtxInstr *instr, PtxType type, guint64 a, guint64 b, guint64 c)
{
  (void) b, (void) c;
  return flushed (instr, type, a ^ sign_bit (type));
}

/* The sign of the first, the magnitude of the second. */
static guint64
with_sign (const PtxInstr *instr, PtxType type, guint64 a, guint64 b, guint64 c)
{
  (void) instr, (void) c;
  return (a & sign_bit (type)) | (b & ~sign_bit (type));
}

#define EACH(name, element)                                                                    \
  void ptx_run_##name (PtxWarp *warp, const PtxInstr *instr) { each (warp, instr, element); }
/* clang-format off */
EACH (fdiv, divide)
EACH (rcp, invert)
EACH (sqrt, root)
EACH (rsqrt, inverse_root)
EACH (ex2, power)
EACH (lg2, logarithm)
EACH (sin, sine)
EACH (cos, cosine)
EACH (tanh, tangent)
EACH (fmin, smaller)
EACH (fmax, larger)
EACH (fabs, absolute)
EACH (fneg, negative)
EACH (copysign, with_sign)
/* clang-format on */

/* ---- comparisons ---- */

static gboolean
is_of_class (guint mode, double value, gboolean is_small)
{
  switch (mode) {
  case PTX_MODE_finite:
    return isfinite (value);
  case PTX_MODE_infinite:
    return isinf (value);
  case PTX_MODE_number:
    return !isnan (value);
  case PTX_MODE_notanumber:
    return isnan (value);
  case PTX_MODE_normal:
    return isfinite (value) && value != 0 && !is_small;
  default:
    return is_small;
  }
}

void
ptx_run_testp (PtxWarp *warp, const PtxInstr *instr)
{
  const guint64 *a = ptx_source (warp, instr, 1);
  PtxType type = instr->type[0];
  PTX_EACH_LANE (warp, lane)
  {
    double value = ptx_decode (type, a[lane]);
    gboolean is_small = value != 0 && fabs (value) < (type == PTX_f32 ? 0x1p-126 : 0x1p-1022);
    ptx_put (warp, ptx_operand (instr, 0), lane,
             is_of_class (instr->chosen[PTX_CLASS_MODE], value, is_small));
  }
}

/* Relations are false of a NaN, those that end in u are true. */
static gboolean
compare (guint relation, double x, double y)
{
  gboolean is_unordered = isnan (x) || isnan (y);
  switch (relation) {
  case PTX_EQ:
    return x == y;
  case PTX_NE:
    return !is_unordered && x != y;
  case PTX_LT:
    return x < y;
  case PTX_LE:
    return x <= y;
  case PTX_GT:
    return x > y;
  case PTX_GE:
    return x >= y;
  case PTX_EQU:
    return is_unordered || x == y;
  case PTX_NEU:
    return x != y;
  case PTX_LTU:
    return is_unordered || x < y;
  case PTX_LEU:
    return is_unordered || x <= y;
  case PTX_GTU:
    return is_unordered || x > y;
  case PTX_GEU:
    return is_unordered || x >= y;
  case PTX_NUM:
    return !is_unordered;
  default:
    return is_unordered;
  }
}

static gboolean
joined (const PtxWarp *warp, const PtxInstr *instr, guint group, guint lane, gboolean is_true)
{
  if (ptx_n_operands (instr, group) == 0)
    return is_true;
  gboolean other = ptx_is_true (warp, ptx_operand (instr, group), lane);
  guint how = instr->chosen[PTX_CLASS_BOOL];
  return how == PTX_OR    ? is_true || other
         : how == PTX_XOR ? is_true != other
                          : is_true && other;
}

static gboolean
compare_bits (const PtxInstr *instr, PtxType type, guint64 a, guint64 b)
{
  return compare (instr->chosen[PTX_CLASS_COMPARE], value_of (instr, type, a),
                  value_of (instr, type, b));
}

/* The second predicate of packed types is that of the upper half. */
void
ptx_run_fsetp (PtxWarp *warp, const PtxInstr *instr)
{
  const guint64 *a = ptx_source (warp, instr, 2), *b = ptx_source (warp, instr, 3);
  PtxType type = instr->type[0], part = part_type (type);
  PTX_EACH_LANE (warp, lane)
  {
    gboolean first = compare_bits (instr, part, a[lane], b[lane]);
    gboolean second
        = part == type ? !first : compare_bits (instr, part, a[lane] >> 16, b[lane] >> 16);
    first = joined (warp, instr, 4, lane, first);
    second = joined (warp, instr, 4, lane, second);
    ptx_put (warp, ptx_operand (instr, 0), lane, first);
    ptx_put (warp, ptx_operand (instr, 1), lane, second);
  }
}

static guint64
yes_of (PtxType type)
{
  return ptx_is_float (type) ? ptx_encode (type, 1, PTX_RN, FALSE) : G_MAXUINT32;
}

void
ptx_run_fset (PtxWarp *warp, const PtxInstr *instr)
{
  const guint64 *a = ptx_source (warp, instr, 1), *b = ptx_source (warp, instr, 2);
  PtxType from = instr->type[1], part = part_type (from), to = part_type (instr->type[0]);
  PTX_EACH_LANE (warp, lane)
  {
    guint64 result = joined (warp, instr, 3, lane, compare_bits (instr, part, a[lane], b[lane]))
                         ? yes_of (to)
                         : 0;
    if (part != from)
      result = (result & 0xffff)
               | (joined (warp, instr, 3, lane,
                          compare_bits (instr, part, a[lane] >> 16, b[lane] >> 16))
                      ? yes_of (to) & 0xffff
                      : 0)
                     << 16;
    ptx_put (warp, ptx_operand (instr, 0), lane, result);
  }
}
