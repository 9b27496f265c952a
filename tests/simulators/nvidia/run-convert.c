/* SPDX-License-Identifier: MIT
 *
 * run-convert.c: mov, and cvt between all types, in all modes of rounding and saturation. */
#include "ptx-number.h"
#include "ptx-run.h"
#include "ptx-warp.h"
#include <math.h>

/* ---- mov, which also packs and unpacks ---- */

static guint64
packed (const PtxWarp *warp, const PtxInstr *instr, guint lane)
{
  guint n = ptx_n_operands (instr, 1), part = ptx_types[instr->type[0]].bits / n;
  guint64 value = 0;
  for (guint i = 0; i < n; i++)
    value |= ptx_truncate (part, ptx_lanes (warp, ptx_operand (instr, 1) + i)[lane])
             << (i * part);
  return value;
}

void
ptx_run_mov (PtxWarp *warp, const PtxInstr *instr)
{
  guint n_in = ptx_n_operands (instr, 1), n_out = ptx_n_operands (instr, 0),
        bits = ptx_types[instr->type[0]].bits;
  PTX_EACH_LANE (warp, lane)
  {
    guint64 value = n_in == 1 ? ptx_source (warp, instr, 1)[lane] : packed (warp, instr, lane);
    for (guint i = 0; i < n_out; i++)
      ptx_put (warp, ptx_operand (instr, 0) + i, lane,
               ptx_truncate (bits / n_out, value >> (i * (bits / n_out))));
  }
}

/* ---- integers ---- */

static guint64
largest (PtxType type)
{
  guint bits = ptx_types[type].bits;
  return ptx_truncate (ptx_is_signed (type) ? bits - 1 : bits, G_MAXUINT64);
}

static gint64
least (PtxType type)
{
  return ptx_is_signed (type) ? (gint64) (G_MAXUINT64 << (ptx_types[type].bits - 1)) : 0;
}

/* @value of @from, the nearest that @to has. */
static guint64
saturated (PtxType to, PtxType from, guint64 value)
{
  gboolean is_negative = ptx_is_signed (from) && (gint64) value < 0;
  if (is_negative)
    return (gint64) value < least (to) ? (guint64) least (to) : value;
  return MIN (value, largest (to));
}

static guint64
of_integer (const PtxInstr *instr, PtxType to, PtxType from, guint64 bits)
{
  guint64 value = ptx_extend (from, bits);
  return ptx_extend (to, instr->flags & PTX_FLAG_SAT ? saturated (to, from, value) : value);
}

static guint64
integer_to_float (const PtxInstr *instr, PtxType to, PtxType from, guint64 bits)
{
  guint64 value = ptx_extend (from, bits);
  gboolean is_negative = ptx_is_signed (from) && (gint64) value < 0;
  PtxExact exact = { .is_negative = is_negative, .mantissa = is_negative ? -value : value };
  guint64 result = ptx_pack (to, exact, instr->chosen[PTX_CLASS_ROUND], FALSE);
  double number = ptx_decode (to, result);
  return (instr->flags & PTX_FLAG_SAT) ? ptx_encode (to, CLAMP (number, 0, 1), PTX_RN, FALSE)
                                       : result;
}

/* ---- floating-point numbers ---- */

static double
source_value (const PtxInstr *instr, PtxType from, guint64 bits)
{
  double value = ptx_decode (from, ptx_truncate (ptx_types[from].bits, bits));
  gboolean is_flushed
      = (instr->flags & PTX_FLAG_FTZ) && from == PTX_f32 && fabs (value) < 0x1p-126;
  return is_flushed ? copysign (0.0, value) : value;
}

static double
to_integer (double value, guint round)
{
  switch (round) {
  case PTX_RNI:
    return rint (value);
  case PTX_RMI:
    return floor (value);
  case PTX_RPI:
    return ceil (value);
  default:
    return trunc (value);
  }
}

/* The integer of a NaN: 0, or the lowest bit pattern where 64 bits are on either side. */
static guint64
integer_of_nan (PtxType to, PtxType from)
{
  gboolean is_wide = from == PTX_f64 || ptx_types[to].bits == 64;
  return is_wide ? (guint64) 1 << (ptx_types[to].bits - 1) : 0;
}

static guint64
float_to_integer (const PtxInstr *instr, PtxType to, PtxType from, guint64 bits)
{
  double value = to_integer (source_value (instr, from, bits), instr->chosen[PTX_CLASS_ROUND]);
  if (isnan (value))
    return ptx_extend (to, integer_of_nan (to, from));
  if (value >= (double) largest (to))
    return ptx_extend (to, largest (to));
  if (value <= (double) least (to))
    return (guint64) least (to);
  return value < 0 ? (guint64) (gint64) value : (guint64) value;
}

static guint64
flushed_result (const PtxInstr *instr, PtxType to, guint64 bits)
{
  gboolean is_flushed
      = (instr->flags & PTX_FLAG_FTZ) && to == PTX_f32 && (bits & 0x7fffffff) < 0x00800000;
  return is_flushed ? bits & (guint64) 1 << 31 : bits;
}

static guint64
float_to_float (const PtxInstr *instr, PtxType to, PtxType from, guint64 bits)
{
  double value = source_value (instr, from, bits);
  guint round = instr->chosen[PTX_CLASS_ROUND];
  if (round >= PTX_RNI)
    value = to_integer (value, round);
  if (instr->flags & PTX_FLAG_SAT)
    value = value > 0 ? MIN (value, 1) : 0;
  if ((instr->flags & PTX_FLAG_RELU) && value <= 0)
    value = 0;
  guint mode = round != 0 && round < PTX_RNI ? round : PTX_RN;
  return flushed_result (
      instr, to, ptx_encode (to, value, mode, (instr->flags & PTX_FLAG_SATFINITE) != 0));
}

static guint64
convert (const PtxInstr *instr, PtxType to, PtxType from, guint64 bits)
{
  if (ptx_is_float (to))
    return ptx_is_float (from) ? float_to_float (instr, to, from, bits)
                               : integer_to_float (instr, to, from, bits);
  return ptx_is_float (from) ? float_to_integer (instr, to, from, bits)
                             : of_integer (instr, to, from, bits);
}

static PtxType
part_type (PtxType type)
{
  switch (type) {
  case PTX_f16x2:
    return PTX_f16;
  case PTX_bf16x2:
    return PTX_bf16;
  case PTX_e4m3x2:
    return PTX_e4m3;
  case PTX_e5m2x2:
    return PTX_e5m2;
  default:
    return type;
  }
}

/* The upper half from the first source, the lower from the second; or both from the halves of one. */
static guint64
convert_pair (const PtxWarp *warp, const PtxInstr *instr, guint lane)
{
  PtxType to = part_type (instr->type[0]), from = part_type (instr->type[1]);
  guint64 high = ptx_source (warp, instr, 1)[lane], low = high;
  if (ptx_n_operands (instr, 2) > 0)
    low = ptx_source (warp, instr, 2)[lane];
  else
    high >>= ptx_types[from].bits;
  guint bits = ptx_types[to].bits;
  return ptx_truncate (bits, convert (instr, to, from, low))
         | ptx_truncate (bits, convert (instr, to, from, high)) << bits;
}

void
ptx_run_cvt (PtxWarp *warp, const PtxInstr *instr)
{
  PtxType to = instr->type[0], from = instr->type[1];
  gboolean is_pair = ptx_types[to].lanes > 1 && ptx_is_float (to);
  const guint64 *a = ptx_source (warp, instr, 1);
  PTX_EACH_LANE (warp, lane)
  ptx_put (warp, ptx_operand (instr, 0), lane,
           is_pair ? convert_pair (warp, instr, lane) : convert (instr, to, from, a[lane]));
}

/* ---- addresses ---- */

static guint64
window_of (guint space)
{
  return space == PTX_SHARED  ? PTX_SHARED_WINDOW
         : space == PTX_LOCAL ? PTX_LOCAL_WINDOW
         : space == PTX_PARAM ? PTX_PARAM_WINDOW
                              : 0;
}

void
ptx_run_cvta (PtxWarp *warp, const PtxInstr *instr)
{
  guint64 window = window_of (instr->chosen[PTX_CLASS_SPACE]);
  const guint64 *a = ptx_source (warp, instr, 1);
  PTX_EACH_LANE (warp, lane)
  ptx_put (warp, ptx_operand (instr, 0), lane,
           instr->flags & PTX_FLAG_TO ? a[lane] - window : a[lane] + window);
}

void
ptx_run_isspacep (PtxWarp *warp, const PtxInstr *instr)
{
  guint64 window = window_of (instr->chosen[PTX_CLASS_SPACE]);
  const guint64 *a = ptx_source (warp, instr, 1);
  PTX_EACH_LANE (warp, lane)
  {
    gboolean is_inside
        = window != 0 ? a[lane] - window < PTX_WINDOW_BYTES : a[lane] < PTX_SHARED_WINDOW;
    ptx_put (warp, ptx_operand (instr, 0), lane, is_inside);
  }
}
