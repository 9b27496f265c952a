/* SPDX-License-Identifier: MIT
 *
 * bounds.c: a result against its bound. */
#include "bounds.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef struct {
  TinyOp op;
  double f64, f32, f16, small, made, made_f64;
  int least, most;
} Row;

static const Row rows[] = {
#define CONF_BOUND(op, f64, f32, f16, small, made, made_f64, least, most)                      \
  { TINY_OP_##op, f64, f32, f16, small, made, made_f64, least, most },
#include "bounds.def"
#undef CONF_BOUND
};

static const Row *
find_row (TinyOp op)
{
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    if (rows[i].op == op)
      return &rows[i];
  return NULL;
}

static gboolean
is_small_float (TinyDType dtype)
{
  return tiny_dtype_is_float (dtype) && dtype != TINY_DTYPE_F32 && dtype != TINY_DTYPE_F64;
}

static gboolean
declares (const TinyTarget *target, TinyOp op, TinyDType dtype)
{
  return (target->ops[dtype] & TINY_INSTR_BIT (tiny_op_infos[op].instr)) != 0;
}

gboolean
conf_is_native (const TinyTarget *target, TinyOp op, TinyDType from, TinyDType to)
{
  if (target == NULL)
    return TRUE;
  if (op != TINY_OP_CAST)
    return declares (target, op, from);
  gboolean from_f32_only
      = is_small_float (from) && (target->dtypes_compute & TINY_DTYPE_BIT (from)) == 0;
  gboolean to_f32_only
      = is_small_float (to) && (target->dtypes_compute & TINY_DTYPE_BIT (to)) == 0;
  return declares (target, op, from) && declares (target, op, to)
         && (!from_f32_only || to == TINY_DTYPE_F32)
         && (!to_f32_only || from == TINY_DTYPE_F32);
}

double
conf_bound_get_ulps (TinyOp op, TinyDType dtype, const TinyTarget *target)
{
  const Row *row = find_row (op);
  if (row == NULL || !tiny_dtype_is_float (dtype))
    return 0;
  gboolean is_made = !conf_is_native (target, op, dtype, dtype);
  switch (dtype) {
  case TINY_DTYPE_F64:
    return is_made ? row->made_f64 : row->f64;
  case TINY_DTYPE_F32:
    return is_made ? row->made : row->f32;
  case TINY_DTYPE_F16:
    return row->f16;
  default:
    return row->small;
  }
}

/* ---- one result ---- */
static gboolean
is_same (TinyDType dtype, gint64 a, gint64 b)
{
  return a == b || (conf_is_nan (dtype, a) && conf_is_nan (dtype, b));
}

/* Whether floats are computed, and not only moved. */
static gboolean
computes (const ConfOperation *self)
{
  return (tiny_dtype_is_float (self->from) || tiny_dtype_is_float (self->to))
         && self->op != TINY_OP_WHERE && self->op != TINY_OP_BITCAST;
}

static gboolean
is_rounding (TinyOp op)
{
  return op == TINY_OP_ADD || op == TINY_OP_SUB || op == TINY_OP_MUL || op == TINY_OP_RECIP
         || op == TINY_OP_FDIV || op == TINY_OP_MULACC;
}

/* An infinity or a NaN that comes of numbers, or a NaN of anything. */
static gboolean
arises (const ConfOperation *self, const ConfTruth *truth)
{
  double result = conf_to_double (truth->bits);
  gboolean finite = TRUE;
  for (guint i = 0; i < self->n; i++)
    finite &= isfinite (conf_to_double (self->args[i])) != 0;
  return isnan (result) || (finite && !isfinite (result));
}

/* Distance of @got from what it is, in units of the last place; an infinity counts as the first number
 * beyond the largest. */
static double
distance (TinyDType dtype, const ConfTruth *truth, gint64 got)
{
  long double value
      = truth->kind == CONF_TRUTH_REAL ? truth->value : conf_to_double (truth->bits);
  long double found = conf_to_double (got), beyond = conf_largest (dtype);
  if (isnan (found) || !isfinite (value))
    return INFINITY;
  beyond += conf_ulp_of (dtype, beyond);
  if (isinf (found))
    found = found > 0 ? beyond : -beyond;
  return (double) (fabsl (found - value) / conf_ulp_of (dtype, fabsl (value)));
}

static gboolean
is_beyond_made_range (const ConfOperation *self, const TinyTarget *target)
{
  const Row *row = find_row (self->op);
  if (row == NULL || row->least == row->most
      || conf_is_native (target, self->op, self->from, self->to) || is_small_float (self->from))
    return FALSE;
  double size = fabs (conf_to_double (self->args[self->n - 1]));
  return isfinite (size) && size != 0
         && (size < ldexp (1, row->least) || size > ldexp (1, row->most));
}

/* As if no operand could be taken for a zero. */
static void
judge_plainly (const ConfOperation *self,
               const TinyTarget *target,
               gint64 got,
               ConfJudgement *out)
{
  conf_oracle (self->op, self->from, self->to, self->args, self->n, &out->truth);
  const ConfTruth *truth = &out->truth;
  gboolean any_order = target != NULL && (target->flags & TINY_TARGET_REASSOCIATES) != 0;
  out->ulps = 0;
  if (truth->kind == CONF_TRUTH_ANY || is_beyond_made_range (self, target)) {
    out->verdict = CONF_UNSPECIFIED;
    return;
  }
  out->verdict = CONF_RIGHT;
  gboolean is_float = tiny_dtype_is_float (self->to);
  gboolean is_same_bits
      = is_same (self->to, got, truth->bits) || is_same (self->to, got, truth->other);
  if (is_same_bits && (truth->kind != CONF_TRUTH_REAL || out->most == 0))
    return;
  out->ulps = is_float ? distance (self->to, truth, got) : INFINITY;
  if (is_same_bits) {
    if (!isfinite (conf_to_double (got)))
      out->ulps = 0;
    return;
  }
  if (any_order && is_float && is_rounding (self->op) && arises (self, truth))
    out->verdict = CONF_UNSPECIFIED;
  else if (any_order && is_float && out->ulps == 0)
    return;
  else if (truth->kind != CONF_TRUTH_REAL || out->most == 0
           || !(out->ulps <= out->most + (double) (CONF_ORACLE_ERROR * 0x1p54L)))
    out->verdict = CONF_WRONG;
}

static gboolean
is_subnormal (TinyDType dtype, gint64 bits)
{
  double size = fabs (conf_to_double (bits));
  return tiny_dtype_is_float (dtype) && size != 0 && size < conf_least_normal (dtype);
}

/* Whether the zero @got stands for a subnormal number, or for a quotient by what has a subnormal
 * reciprocal. */
static gboolean
is_flushed_result (const ConfOperation *self, const ConfTruth *truth)
{
  if (self->op == TINY_OP_FDIV
      && fabs (conf_to_double (self->args[1])) * conf_least_normal (self->to) > 1)
    return TRUE;
  return truth->kind == CONF_TRUTH_REAL && fabsl (truth->value) < conf_least_normal (self->to);
}

static void
judge_flushing (const ConfOperation *self,
                const TinyTarget *target,
                gint64 got,
                ConfJudgement *out)
{
  const ConfJudgement plain = *out;
  for (guint which = 0; which < 1u << self->n; which++) {
    ConfOperation flushed = *self;
    gboolean differs = FALSE, applies = TRUE;
    for (guint i = 0; i < self->n; i++)
      if (which >> i & 1) {
        applies &= is_subnormal (self->from, self->args[i]);
        flushed.args[i] = conf_from_double (copysign (0, conf_to_double (self->args[i])));
        differs = TRUE;
      }
    if (!applies)
      continue;
    if (differs)
      judge_plainly (&flushed, target, got, out);
    if (out->verdict == CONF_WRONG && tiny_dtype_is_float (self->to)
        && conf_to_double (got) == 0 && is_flushed_result (&flushed, &out->truth))
      out->verdict = CONF_RIGHT;
    if (out->verdict != CONF_WRONG) {
      out->truth = plain.truth, out->ulps = 0, out->flushed = TRUE;
      return;
    }
  }
  *out = plain;
}

void
conf_judge (const ConfOperation *self, const TinyTarget *target, gint64 got, ConfJudgement *out)
{
  *out = (ConfJudgement){ .most = self->op == TINY_OP_CAST
                                      ? 0
                                      : conf_bound_get_ulps (self->op, self->to, target) };
  judge_plainly (self, target, got, out);
  if (out->verdict == CONF_WRONG && target != NULL && computes (self)
      && (target->flags & TINY_TARGET_FLUSHES_SUBNORMALS) != 0)
    judge_flushing (self, target, got, out);
}
