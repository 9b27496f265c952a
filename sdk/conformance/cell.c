/* SPDX-License-Identifier: MIT
 *
 * cell.c: one element of an operation or a reduction, from the elements it is made of.
 *
 * Operations that IEEE 754 rounds correctly give the same bits everywhere as long as their inputs
 * do, so their bound stays 0. What may differ between correct devices is the order of a sum, the
 * rounding of its products, and the last places of EXP2, LOG2 and SIN; from there on bounds are
 * carried through each operation by its derivative or by its values at the ends of the interval
 * (Higham, Accuracy and Stability of Numerical Algorithms, chapter 3). */
#include "cell.h"

#include <math.h>

#include "base/tiny-float.h"
#include "bounds.h"
#include "ir/tiny-eval.h"

#define UNKNOWN INFINITY

const TinyTarget *model_target = NULL;
gboolean model_rounds_correctly = FALSE;

static gboolean
has_flag (guint32 flag)
{
  return model_target != NULL && (model_target->flags & flag) != 0;
}

static gboolean
reassociates (void)
{
  return has_flag (TINY_TARGET_REASSOCIATES);
}

/* What @op may be off, in units of the last place, besides its rounding; sums of products are not here. */
static double
ulps_of (TinyOp op, TinyDType dtype)
{
  gboolean is_ieee = op == TINY_OP_FDIV || op == TINY_OP_RECIP || op == TINY_OP_SQRT;
  if (op == TINY_OP_MULACC || op == TINY_OP_CAST
      || (is_ieee && model_rounds_correctly && conf_is_native (model_target, op, dtype, dtype)))
    return 0;
  return conf_bound_get_ulps (op, dtype, model_target);
}

static inline double
value_of (const Cell *cell)
{
  return tiny_eval_to_double (cell->bits);
}

/* ---- formats ---- */
static int
precision_of (TinyDType dtype)
{
  return (int) tiny_dtype_infos[dtype].mantissa_bits + 1;
}

static double
least_of (TinyDType dtype) /* the smallest subnormal */
{
  return tiny_float_from_bits (dtype, 1);
}

/* A unit in the last place of @x. */
static double
ulp_of (TinyDType dtype, double x)
{
  if (x == 0 || !isfinite (x))
    return least_of (dtype);
  int exponent;
  frexp (x, &exponent);
  return MAX (ldexp (1, exponent - precision_of (dtype)), least_of (dtype));
}

Cell
cell_unknown (void)
{
  return (Cell){ 0, UNKNOWN, 0 };
}

Cell
cell_exact (gint64 bits)
{
  return (Cell){ bits, 0, 0 };
}

/* About @value, at most @bound off before it is rounded to @dtype. */
static Cell
about (TinyDType dtype, double value, double bound)
{
  Cell cell = { tiny_eval_from_double (dtype, value), bound, 0 };
  double rounded = value_of (&cell);
  if (isnan (value) || !isfinite (rounded) || !isfinite (bound))
    return cell_unknown ();
  if (!isfinite (tiny_float_round (dtype, fabs (value) + bound)))
    return cell_unknown ();
  cell.bound += ulp_of (dtype, fabs (value) + bound) + fabs (rounded - value);
  return cell;
}

/* ---- one element ---- */
static double
function_of (TinyOp op, double x)
{
  return op == TINY_OP_SQRT   ? sqrt (x)
         : op == TINY_OP_EXP2 ? exp2 (x)
         : op == TINY_OP_LOG2 ? log2 (x)
                              : trunc (x);
}

/* A monotone function at the ends of the interval; @ulps is its own error. */
static Cell
monotone (TinyOp op, TinyDType dtype, double x, double e, double ulps)
{
  double y = function_of (op, x), low = function_of (op, x - e), high = function_of (op, x + e);
  if (isnan (low) || isnan (high) || !isfinite (low + high))
    return cell_unknown ();
  return about (dtype, y,
                MAX (high - y, y - low) + ulps * ulp_of (dtype, MAX (fabs (low), fabs (high))));
}

/* An infinity or a NaN among the inputs, and a bound on another one. */
static Cell
not_finite (TinyOp op, TinyDType dtype, const double *x, const double *e, guint n)
{
  double y = op == TINY_OP_NEG ? -x[0] : NAN;
  for (guint i = 0; i < n; i++)
    if (isnan (x[i]) && op != TINY_OP_MAX)
      return reassociates () ? cell_unknown ()
                             : cell_exact (tiny_eval_from_double (dtype, NAN));
  if (op == TINY_OP_ADD)
    y = x[0] + x[1];
  else if (op == TINY_OP_SUB)
    y = x[0] - x[1];
  else if (op == TINY_OP_MUL && fabs (x[0]) > e[0] && fabs (x[1]) > e[1])
    y = x[0] * x[1];
  return isnan (y) ? cell_unknown () : cell_exact (tiny_eval_from_double (dtype, y));
}

static Cell
quotient (TinyOp op, TinyDType dtype, double a, double a_bound, double b, double b_bound)
{
  const double y = a / b;
  if (!(fabs (b) > b_bound))
    return cell_unknown ();
  double bound = (a_bound + fabs (y) * b_bound) / (fabs (b) - b_bound);
  return about (dtype, y, bound + ulps_of (op, dtype) * ulp_of (dtype, fabs (y) + bound));
}

static Cell
arithmetic (TinyOp op, TinyDType dtype, const double *x, const double *e, guint n)
{
  for (guint i = 0; i < n; i++)
    if (!isfinite (x[i]))
      return not_finite (op, dtype, x, e, n);
  switch (op) {
  case TINY_OP_NEG:
    return (Cell){ tiny_eval_from_double (dtype, -x[0]), e[0], 0 };
  case TINY_OP_ADD:
    return about (dtype, x[0] + x[1], e[0] + e[1]);
  case TINY_OP_SUB:
    return about (dtype, x[0] - x[1], e[0] + e[1]);
  case TINY_OP_MUL: {
    Cell cell
        = about (dtype, x[0] * x[1], fabs (x[0]) * e[1] + fabs (x[1]) * e[0] + e[0] * e[1]);
    cell.slack = ulp_of (dtype, x[0] * x[1]);
    return cell;
  }
  case TINY_OP_RECIP:
    return quotient (op, dtype, 1, 0, x[0], e[0]);
  case TINY_OP_FDIV:
    return quotient (op, dtype, x[0], e[0], x[1], e[1]);
  case TINY_OP_MAX: {
    guint larger = x[1] > x[0];
    gboolean apart = fabs (x[0] - x[1]) > e[0] + e[1];
    return (Cell){ tiny_eval_from_double (dtype, x[larger]),
                   apart ? e[larger] : MAX (e[0], e[1]), 0 };
  }
  case TINY_OP_SQRT:
    return monotone (op, dtype, x[0], e[0], ulps_of (op, dtype));
  case TINY_OP_TRUNC:
    return monotone (op, dtype, x[0], e[0], 0);
  case TINY_OP_EXP2:
  case TINY_OP_LOG2:
    return monotone (op, dtype, x[0], e[0], ulps_of (op, dtype));
  case TINY_OP_SIN:
    return about (dtype, sin (x[0]),
                  MIN (e[0], 2)
                      + ulps_of (op, dtype)
                            * ulp_of (dtype, MIN (1, fabs (sin (x[0])) + e[0])));
  default:
    return cell_unknown ();
  }
}

/* A comparison is decided when the intervals do not touch. */
static Cell
comparison (TinyOp op, const double *x, const double *e)
{
  if (!(fabs (x[0] - x[1]) > e[0] + e[1]))
    return cell_unknown ();
  return cell_exact (op == TINY_OP_CMPLT ? x[0] < x[1] : op == TINY_OP_CMPNE);
}

static Cell
converted (TinyDType to, double x, double e)
{
  if (!isfinite (x))
    return cell_unknown ();
  if (tiny_dtype_is_float (to))
    return about (to, x, e);
  gint64 ends[2], in[2] = { tiny_eval_from_double (TINY_DTYPE_F64, x - e),
                            tiny_eval_from_double (TINY_DTYPE_F64, x + e) };
  for (guint i = 0; i < 2; i++)
    if (!tiny_eval_alu (TINY_OP_CAST, TINY_DTYPE_F64, to, &in[i], 1, &ends[i]))
      return cell_unknown ();
  return ends[0] == ends[1] ? cell_exact (ends[0]) : cell_unknown ();
}

/* ---- the bits of a number that is known within bounds ---- */

/* @bits as @to; FALSE: the sign is not that of @negative, or it is no finite number. */
static gboolean
reinterpret (TinyDType from, TinyDType to, gint64 bits, gboolean negative, gint64 *out)
{
  if (!tiny_eval_alu (TINY_OP_BITCAST, from, to, &bits, 1, out))
    return FALSE;
  double value = tiny_eval_to_double (tiny_dtype_is_float (from) ? bits : *out);
  return isfinite (value) && value != 0 && (value < 0) == negative;
}

/* Numbers of one sign are in the order of their bits, or in its reverse: the ends of an interval stay ends. */
static Cell
reinterpreted (TinyDType from, TinyDType to, const Cell *in)
{
  const gboolean is_float = tiny_dtype_is_float (from);
  gint64 ends[2], bits;
  double bound = 0;
  if (is_float == tiny_dtype_is_float (to)
      || tiny_dtype_get_n_bytes (from) != tiny_dtype_get_n_bytes (to) || in->bound > 0x1p52
      || !tiny_eval_alu (TINY_OP_BITCAST, from, to, &in->bits, 1, &bits))
    return cell_unknown ();
  const double value = tiny_eval_to_double (is_float ? in->bits : bits);
  for (guint i = 0; i < 2; i++) {
    const double off = i ? in->bound : -in->bound;
    const gint64 end = is_float ? tiny_eval_from_double (from, value + off)
                                : tiny_eval_wrap (from, in->bits + (gint64) off);
    if (!reinterpret (from, to, end, value < 0, &ends[i]))
      return cell_unknown ();
    bound = MAX (bound, is_float ? fabs ((double) (ends[i] - bits))
                                 : fabs (tiny_eval_to_double (ends[i]) - value));
  }
  return bound < 0x1p52 ? (Cell){ bits, bound, 0 } : cell_unknown ();
}

/* The last bits of an integer that is known within bounds become 0, by a mask that has all others. */
static Cell
truncated (TinyDType dtype, const Cell *in)
{
  const guint which = in[0].bound == 0 ? 0 : 1;
  const gint64 all = (gint64) (~(guint64) 0 >> (64 - 8 * tiny_dtype_get_n_bytes (dtype)));
  const gint64 lost = ~in[which].bits & all, bits = in[1 - which].bits;
  const double bound = in[1 - which].bound;
  if (in[which].bound != 0 || (lost & (lost + 1)) != 0 || !(bound < 0x1p52))
    return cell_unknown ();
  const gint64 low = (bits - (gint64) bound) & ~lost, high = (bits + (gint64) bound) & ~lost,
               kept = bits & ~lost;
  return (Cell){ kept, (double) MAX (high - kept, kept - low), 0 };
}

/* Zeros of either sign are one value here, and so are NaNs: what tells them apart is not known. */
static gboolean
depends_on_form (TinyOp op, TinyDType dtype, const gint64 *args, guint n)
{
  guint at = op == TINY_OP_FDIV ? 1 : 0;
  return tiny_dtype_is_float (dtype) && at < n
         && (op == TINY_OP_FDIV || op == TINY_OP_RECIP || op == TINY_OP_BITCAST)
         && (tiny_eval_to_double (args[at]) == 0
             || (op == TINY_OP_BITCAST && isnan (tiny_eval_to_double (args[at]))));
}

/* What rounding took from @y, which is about a op b. */
static double
lost_by (TinyOp op, double a, double b, double y)
{
  if (op == TINY_OP_MUL)
    return fma (a, b, -y);
  if (op == TINY_OP_RECIP)
    return fma (y, a, -1);
  if (op == TINY_OP_FDIV)
    return fma (y, b, -a);
  double sum = a + b, of_b = sum - a;
  return (sum - y) + ((a - (sum - of_b)) + (b - of_b));
}

/* What @cell, the result of @x, is for a compiler that takes floats for real numbers: as if nothing had
 * been rounded before; where there is no such number, anything. */
static Cell
as_real (TinyOp op, TinyDType dtype, const double *x, guint n, Cell cell)
{
  double y = value_of (&cell);
  gboolean finite = isfinite (x[0]) && isfinite (x[n - 1]);
  gboolean rounds = op == TINY_OP_ADD || op == TINY_OP_SUB || op == TINY_OP_MUL
                    || op == TINY_OP_RECIP || op == TINY_OP_FDIV;
  if (!rounds || cell.bound != 0)
    return cell;
  if (isnan (y) || (finite && !isfinite (y)))
    return cell_unknown ();
  if (finite && lost_by (op, x[0], op == TINY_OP_SUB ? -x[1] : x[n - 1], y) != 0)
    cell.bound = ulp_of (dtype, y);
  return cell;
}

/* The inputs are known to the bit. */
static Cell
from_exact (TinyOp op, TinyDType from, TinyDType to, const gint64 *args, guint n)
{
  gint64 bits;
  if (depends_on_form (op, from, args, n) || !tiny_eval_alu (op, from, to, args, n, &bits))
    return cell_unknown ();
  Cell cell = cell_exact (bits);
  if (!tiny_dtype_is_float (to))
    return cell;
  double y = tiny_eval_to_double (bits);
  double ulps = ulps_of (op, to);
  if (ulps > 0 && isfinite (y) && y != 0)
    return about (to, y, ulps * ulp_of (to, y));
  if (y == 0 && op == TINY_OP_EXP2)
    cell.bound = least_of (to);
  if (op == TINY_OP_MUL) {
    /* A sum may take the product before it is rounded: one that overflowed need not be infinite. */
    double a = tiny_eval_to_double (args[0]), b = tiny_eval_to_double (args[1]);
    cell.slack = isfinite (y)                   ? fabs (fma (a, b, -y))
                 : isfinite (a) && isfinite (b) ? UNKNOWN
                                                : 0;
  }
  return cell;
}

/* Whether a device that takes subnormal numbers for zeros may do so with one of the operands, whose bounds
 * then reach to 0, or the result. */
static gboolean
may_flush (TinyOp op, TinyDType from, const double *x, double *e, guint n)
{
  gboolean any = FALSE;
  if (!has_flag (TINY_TARGET_FLUSHES_SUBNORMALS) || !tiny_dtype_is_float (from)
      || op == TINY_OP_BITCAST)
    return FALSE;
  for (guint i = 0; i < n; i++)
    if (x[i] != 0 && fabs (x[i]) < conf_least_normal (from)) {
      e[i] = MAX (e[i], fabs (x[i]));
      any = TRUE;
    }
  return any;
}

/* @cell, or 0 where that is what becomes of so small a number. */
static Cell
flushed (TinyDType dtype, Cell cell)
{
  if (!has_flag (TINY_TARGET_FLUSHES_SUBNORMALS) || !tiny_dtype_is_float (dtype)
      || value_of (&cell) == 0 || !(fabs (value_of (&cell)) < conf_least_normal (dtype)))
    return cell;
  cell.bound += conf_least_normal (dtype);
  return cell;
}

static Cell
computed (const TinyNode *node, const Cell *in, guint n)
{
  TinyOp op = (TinyOp) node->op;
  TinyDType from = (TinyDType) node->sources[n > 1 ? 1 : 0]->dtype,
            to = (TinyDType) node->dtype;
  gint64 args[3];
  double x[3], e[3], sum = 0;
  if (op == TINY_OP_WHERE) {
    if (in[0].bound != 0)
      return in[1].bits == in[2].bits && in[1].bound == 0 && in[2].bound == 0 ? in[1]
                                                                              : cell_unknown ();
    return in[in[0].bits ? 1 : 2];
  }
  for (guint i = 0; i < n; i++) {
    args[i] = in[i].bits;
    x[i] = value_of (&in[i]);
    sum += e[i] = in[i].bound;
  }
  if (may_flush (op, from, x, e, n))
    sum += 1;
  if (sum == 0) {
    Cell cell = from_exact (op, from, to, args, n);
    return reassociates () && tiny_dtype_is_float (to) ? as_real (op, to, x, n, cell) : cell;
  }
  if (isfinite (sum) && op == TINY_OP_BITCAST)
    return reinterpreted (from, to, &in[0]);
  if (isfinite (sum) && op == TINY_OP_AND && from != TINY_DTYPE_BOOL)
    return truncated (to, in);
  if (!isfinite (sum) || !tiny_dtype_is_float (from))
    return cell_unknown ();
  if (tiny_op_infos[op].op_class == TINY_OP_CLASS_COMPARE)
    return comparison (op, x, e);
  if (op == TINY_OP_CAST)
    return converted (to, x[0], e[0]);
  return arithmetic (op, to, x, e, n);
}

Cell
cell_of (const TinyNode *node, const Cell *in, guint n)
{
  Cell cell = computed (node, in, n);
  gboolean moves = node->op == TINY_OP_WHERE || node->op == TINY_OP_BITCAST;
  return moves ? cell : flushed ((TinyDType) node->dtype, cell);
}

/* ---- reductions: the cells that become one ---- */

/* The exponent of the last bit of @x. */
static int
last_bit (double x)
{
  int exponent;
  double fraction = frexp (x, &exponent);
  gint64 mantissa = (gint64) ldexp (fabs (fraction), 53);
  return exponent - 53 + __builtin_ctzll ((guint64) mantissa);
}

static Cell
sum_of (TinyDType dtype, const Cell *x, gsize n)
{
  long double sum = 0, size = 0, bound = 0, slack = 0;
  int quantum = G_MAXINT;
  gboolean positive = FALSE, negative = FALSE, nan = FALSE, rounded = FALSE;
  for (gsize i = 0; i < n; i++) {
    double v = value_of (&x[i]);
    bound += x[i].bound;
    slack += x[i].slack;
    nan |= isnan (v);
    positive |= isinf (v) && v > 0;
    negative |= isinf (v) && v < 0;
    if (!isfinite (v))
      continue;
    sum += v;
    size += x[i].size != 0 ? x[i].size : fabs (v);
    rounded |= x[i].slack != 0 && x[i].size == 0;
    if (x[i].size != 0)
      quantum = MIN (quantum, x[i].quantum);
    else if (v != 0)
      quantum = MIN (quantum, last_bit (v));
  }
  if (!isfinite ((double) (bound + slack)))
    return cell_unknown ();
  if (nan || (positive && negative))
    return reassociates () ? cell_unknown () : cell_exact (tiny_eval_from_double (dtype, NAN));
  if (!isfinite (tiny_float_round (dtype, (double) (size + bound + slack) * (1 + 1e-3))))
    return cell_unknown ();
  if (positive || negative)
    return cell_exact (tiny_eval_from_double (dtype, positive ? INFINITY : -INFINITY));
  if (quantum == G_MAXINT && bound + slack == 0)
    return cell_exact (0);
  const double unit = ldexp (1, -precision_of (dtype));
  /* Every partial sum is a multiple of the quantum that fits: no order rounds. */
  if (bound == 0 && !rounded && (double) size <= ldexp (1, quantum + precision_of (dtype)))
    return (Cell){ tiny_eval_from_double (dtype, (double) sum), 0,
                   (double) (size * (n + 1) * unit), (double) size, quantum };
  bound += slack;
  double total = (double) (bound + (size + bound) * (n + 1) * unit);
  return about (dtype, (double) sum, total + (double) n * least_of (dtype));
}

static Cell
product_of (TinyDType dtype, const Cell *x, gsize n)
{
  double product = 1, high = 1, low = 1, relative = 0, unit = ldexp (1, -precision_of (dtype));
  int n_bits = 0;
  gboolean precise = TRUE;
  for (gsize i = 0; i < n; i++) {
    double v = value_of (&x[i]);
    if (!isfinite (v) || (v == 0 && x[i].bound != 0) || (v != 0 && fabs (v) <= x[i].bound))
      return cell_unknown ();
    product *= v;
    if (v == 0)
      continue;
    int exponent;
    frexp (v, &exponent);
    n_bits += exponent - last_bit (v);
    high *= MAX (fabs (v) + x[i].bound, 1);
    low *= MIN (fabs (v) - x[i].bound, 1);
    relative += log1p (x[i].bound / fabs (v)) + unit;
    precise = precise && x[i].bound == 0 && (x[i].slack == 0 || x[i].size != 0);
  }
  if (!isfinite (tiny_float_round (dtype, high * 2))
      || low < ldexp (least_of (dtype), precision_of (dtype) + 1))
    return cell_unknown ();
  if (precise && (n_bits <= precision_of (dtype) || product == 0))
    return cell_exact (tiny_eval_from_double (dtype, product));
  return about (dtype, product, fabs (product) * expm1 (relative));
}

static Cell
largest_of (TinyDType dtype, const Cell *x, gsize n)
{
  Cell best = x[0];
  for (gsize i = 0; i < n; i++) {
    if (isnan (value_of (&x[i])) || isinf (x[i].bound))
      return cell_unknown ();
    if (i == 0)
      continue;
    double v[] = { value_of (&best), value_of (&x[i]) };
    double e[] = { best.bound, x[i].bound };
    gboolean finite = isfinite (v[0]) && isfinite (v[1]);
    best = finite ? arithmetic (TINY_OP_MAX, dtype, v, e, 2) : v[0] < v[1] ? x[i] : best;
  }
  return best;
}

Cell
cell_reduce (TinyOp op, TinyDType dtype, const Cell *x, gsize n)
{
  if (tiny_dtype_is_float (dtype))
    return op == TINY_OP_ADD   ? sum_of (dtype, x, n)
           : op == TINY_OP_MUL ? product_of (dtype, x, n)
                               : largest_of (dtype, x, n);
  gint64 both[2] = { x[0].bits, 0 };
  for (gsize i = 0; i < n; i++) {
    if (x[i].bound != 0)
      return cell_unknown ();
    both[1] = x[i].bits;
    if (i > 0)
      tiny_eval_alu (op, dtype, dtype, both, 2, &both[0]);
  }
  return cell_exact (both[0]);
}

gboolean
model_admits (TinyDType dtype, const Cell *cell, gint64 bits)
{
  if (isinf (cell->bound) || cell->bits == bits)
    return TRUE;
  if (!tiny_dtype_is_float (dtype))
    return fabs ((double) (bits - cell->bits)) <= cell->bound;
  return fabs (tiny_eval_to_double (bits) - value_of (cell)) <= cell->bound;
}
