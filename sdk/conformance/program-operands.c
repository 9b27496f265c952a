/* SPDX-License-Identifier: MIT
 *
 * program-operands.c: what the numbers of a step mean, and operands in the form that a function wants. */
#include "program-steps.h"

#include <string.h>

const TinyDType step_dtypes[N_STEP_DTYPES]
    = { TINY_DTYPE_F32, TINY_DTYPE_I32,  TINY_DTYPE_F32, TINY_DTYPE_F16, TINY_DTYPE_BF16,
        TINY_DTYPE_F64, TINY_DTYPE_BOOL, TINY_DTYPE_I8,  TINY_DTYPE_U8,  TINY_DTYPE_I16,
        TINY_DTYPE_U16, TINY_DTYPE_U32,  TINY_DTYPE_I64, TINY_DTYPE_U64 };
const gint64 step_sizes[N_STEP_SIZES]
    = { 1, 2, 3, 4, 5, 7, 8, 13, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 127 };

/* ---- what a step says ---- */
guint
maker_number (const Maker *self, guint i, guint below)
{
  return self->step->p[i] % MAX (below, 1);
}

void
maker_note_sizes (Maker *self, const gint64 *v, guint n)
{
  g_string_append (self->note, ", {");
  for (guint i = 0; i < n; i++)
    g_string_append_printf (self->note, "%s%" G_GINT64_FORMAT, i ? ", " : "", v[i]);
  g_string_append_printf (self->note, "}, %u", n);
}

void
maker_note_number (Maker *self, double value)
{
  g_string_append_printf (self->note, ", %.17g", value);
}

gint
maker_axis (Maker *self, guint i, TinyTensor *x)
{
  gint axis = (gint) maker_number (self, i, rank_of (x));
  maker_note_number (self, axis);
  return axis;
}

guint
maker_axes (Maker *self, TinyTensor *x, gint *out)
{
  guint n = 0;
  g_string_append (self->note, ", {");
  for (guint i = 0; i < rank_of (x); i++)
    if (self->step->p[0] >> i & 1 || (n == 0 && i + 1 == rank_of (x))) {
      out[n++] = (gint) i;
      g_string_append_printf (self->note, "%s%u", n > 1 ? ", " : "", i);
    }
  g_string_append (self->note, "}");
  return n;
}

/* ---- bringing operands into form ---- */
TinyTensor *
operand_float (TinyTensor *x)
{
  return is_float (x) ? x : T (cast) (x, TINY_DTYPE_F32);
}

TinyTensor *
operand_integer (TinyTensor *x)
{
  return is_float (x)
             ? T (cast) (T (clamp) (x, T (scalar) (-100), T (scalar) (100)), TINY_DTYPE_I32)
             : x;
}

TinyTensor *
operand_flat (TinyTensor *x)
{
  return T (reshape) (x, (gint64[]){ n_elements (x) }, 1);
}

TinyTensor *
operand_fitted (TinyTensor *x, const gint64 *shape, guint n)
{
  gint64 wanted = 1, have = n_elements (x);
  for (guint i = 0; i < n; i++)
    wanted *= shape[i];
  if (have == 0)
    return T (expand) (T (cast) (T (scalar) (1), tiny_tensor_get_dtype (x)), shape, n);
  x = operand_flat (x);
  if (have < wanted)
    x = T (repeat) (x, (gint64[]){ (wanted + have - 1) / have }, 1);
  x = T (slice) (x, 0, 0, wanted, 1);
  return T (reshape) (x, shape, n);
}

TinyTensor *
operand_partner (Maker *self, TinyTensor *x, TinyTensor *y)
{
  gint64 shape[16];
  guint n = rank_of (x), skip = self->step->p[0] % 8 == 1 && n > 0 ? 1 : 0;
  const gint64 *whole = tiny_tensor_get_shape (x, NULL), *own = tiny_tensor_get_shape (y, NULL);
  if (rank_of (y) == n && (n == 0 || memcmp (whole, own, n * sizeof *own) == 0))
    return y;
  for (guint i = skip; i < n; i++)
    shape[i - skip] = self->step->p[1] >> i & 1 && self->step->p[1] % 3 == 0 ? 1 : whole[i];
  return operand_fitted (y, shape, n - skip);
}
