/* SPDX-License-Identifier: MIT
 *
 * program-leaves.c: steps that begin: data, sequences, random numbers. */
#include "program-steps.h"

#include <math.h>
#include <string.h>

#include "base/tiny-float.h"

static double
draw_float (GRand *random, guint kind)
{
  static const double edges[]
      = { 0, -0.0, 1, -1, INFINITY, -INFINITY, NAN, 65504, 1e-7, -3e38, 1e-40, 0.5 };
  switch (kind % 8) {
  case 0:
  case 1:
    return g_rand_int_range (random, -4, 5);
  case 2:
    return g_rand_double_range (random, 0.25, 4);
  case 3:
    return g_rand_int_range (random, 0, 8) == 0
               ? edges[g_rand_int_range (random, 0, G_N_ELEMENTS (edges))]
               : g_rand_double_range (random, -2, 2);
  default:
    return g_rand_double_range (random, -2, 2);
  }
}

static gint64
draw_integer (GRand *random, guint kind)
{
  guint64 bits = (guint64) g_rand_int (random) << 32 | g_rand_int (random);
  if (kind % 8 == 0)
    return (gint64) bits;
  if (kind % 8 == 1)
    return (gint64) (bits >> (bits & 63)) * (bits >> 40 & 1 ? 1 : -1);
  return g_rand_int_range (random, kind % 8 == 2 ? 0 : -9, 10);
}

TinyTensor *
make_leaf (Maker *self)
{
  const Step *step = self->step;
  TinyDType dtype = (TinyDType) step->dtype;
  gint64 shape[MAX_AXES], n = 1;
  guint rank = step->p[0] % MAX_AXES, width = (guint) tiny_dtype_get_n_bytes (dtype);
  for (guint i = 0; i < rank; i++) {
    shape[i] = step_sizes[(step->p[1] >> 5 * i & 31) % N_STEP_SIZES];
    if (step->p[4] % 64 == 0 && step->p[4] / 64 % rank == i)
      shape[i] = 0;
    while (n * shape[i] > 1 << step->size)
      shape[i] = (shape[i] + 1) / 2 == shape[i] ? shape[i] - 1 : (shape[i] + 1) / 2;
    n *= shape[i];
  }
  g_autoptr (GRand) random = g_rand_new_with_seed (step->p[2]);
  g_autofree guint8 *data = g_malloc0 ((gsize) n * width + 8);
  for (gint64 i = 0; i < n; i++) {
    guint64 bits = tiny_dtype_is_float (dtype)
                       ? tiny_float_to_bits (dtype, draw_float (random, step->p[3]))
                   : dtype == TINY_DTYPE_BOOL ? g_rand_int (random) & 1
                                              : (guint64) draw_integer (random, step->p[3]);
    memcpy (data + i * width, &bits, width);
  }
  maker_note_number (self, dtype);
  g_string_append_printf (self->note, " (%s)", tiny_dtype_to_string (dtype));
  maker_note_sizes (self, shape, rank);
  g_string_append_printf (self->note, ", kind %u", step->p[3] % 8);
  return T (new_from_data) (self->device, dtype, shape, rank, data, (gsize) n * width);
}

/* A value that no memory places is computed where a number in memory is. */
static TinyTensor *
placed (Maker *self, TinyTensor *x)
{
  if (self->device == NULL)
    return x;
  guint8 yes = 1;
  TinyTensor *gate = T (new_from_data) (self->device, TINY_DTYPE_BOOL, NULL, 0, &yes, 1);
  return T (where) (gate, x, T (cast) (T (scalar) (0), tiny_tensor_get_dtype (x)));
}

TinyTensor *
make_arange (Maker *self)
{
  TinyDType dtype = (TinyDType) self->step->dtype == TINY_DTYPE_BOOL
                        ? TINY_DTYPE_I32
                        : (TinyDType) self->step->dtype;
  double start = maker_number (self, 0, 7), step = 1 + maker_number (self, 1, 3),
         n = (double) step_sizes[maker_number (self, 2, 16)];
  g_string_append_printf (self->note, ", %s", tiny_dtype_to_string (dtype));
  maker_note_number (self, start), maker_note_number (self, start + n * step),
      maker_note_number (self, step);
  return placed (self, T (arange) (dtype, start, start + n * step, step));
}

TinyTensor *
make_eye (Maker *self)
{
  gint64 n = step_sizes[maker_number (self, 0, 12)], m = step_sizes[maker_number (self, 1, 12)];
  maker_note_number (self, (double) n), maker_note_number (self, (double) m);
  return placed (self, T (eye) ((TinyDType) self->step->dtype, n, m));
}

TinyTensor *
make_full (Maker *self)
{
  gint64 shape[]
      = { step_sizes[maker_number (self, 0, 12)], step_sizes[maker_number (self, 1, 8)] };
  maker_note_sizes (self, shape, 2);
  maker_note_number (self, maker_number (self, 2, 5));
  return placed (self,
                 T (full) ((TinyDType) self->step->dtype, shape, 2, maker_number (self, 2, 5)));
}

TinyTensor *
make_rand (Maker *self)
{
  static const TinyDType floats[]
      = { TINY_DTYPE_F32, TINY_DTYPE_F64, TINY_DTYPE_F16, TINY_DTYPE_BF16 };
  gint64 shape[]
      = { step_sizes[maker_number (self, 0, 14)], step_sizes[maker_number (self, 1, 8)] };
  TinyDType dtype = floats[maker_number (self, 2, 4)];
  if (self->no_f64 && dtype == TINY_DTYPE_F64)
    dtype = TINY_DTYPE_F32;
  g_string_append_printf (self->note, ", %s", tiny_dtype_to_string (dtype));
  maker_note_sizes (self, shape, 2);
  return placed (self, maker_number (self, 3, 3) == 0 ? T (randn) (dtype, shape, 2)
                                                      : T (rand) (dtype, shape, 2));
}

TinyTensor *
make_randint (Maker *self)
{
  gint64 shape[]
      = { step_sizes[maker_number (self, 0, 14)], step_sizes[maker_number (self, 1, 8)] };
  TinyDType dtype = tiny_dtype_is_integer ((TinyDType) self->step->dtype)
                        ? (TinyDType) self->step->dtype
                        : TINY_DTYPE_I32;
  g_string_append_printf (self->note, ", %s", tiny_dtype_to_string (dtype));
  maker_note_sizes (self, shape, 2);
  return placed (self, T (randint) (dtype, shape, 2, 0, 100));
}
