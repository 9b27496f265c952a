/* SPDX-License-Identifier: MIT
 *
 * program-axes.c: steps along axes: movement, picking, reductions. */
#include "program-steps.h"

/* Splits @n into sizes by the bits of @choice. */
static guint
split_size (gint64 n, guint32 choice, gint64 *out)
{
  guint rank = 0;
  while (rank < MAX_AXES - 1 && n > 1 && choice % 4 != 0) {
    gint64 divisor = 0;
    for (gint64 d = 2 + choice / 4 % 4; d <= n && divisor == 0; d++)
      if (n % d == 0)
        divisor = d;
    out[rank++] = divisor ? divisor : 1;
    n /= divisor ? divisor : 1;
    choice /= 13;
  }
  out[rank++] = n;
  return rank;
}
TinyTensor *
make_reshape (Maker *self)
{
  gint64 shape[MAX_AXES];
  guint n = split_size (n_elements (self->x[0]), self->step->p[0], shape);
  if (n_elements (self->x[0]) == 0)
    return operand_flat (self->x[0]);
  maker_note_sizes (self, shape, n);
  return T (reshape) (self->x[0], shape, n);
}

TinyTensor *
make_permute (Maker *self)
{
  gint axes[16];
  guint n = rank_of (self->x[0]);
  for (guint i = 0; i < n; i++)
    axes[i] = (gint) i;
  for (guint i = n; i > 1; i--) {
    guint j = (self->step->p[0] >> 2 * i) % i;
    gint other = axes[j];
    axes[j] = axes[i - 1];
    axes[i - 1] = other;
  }
  g_string_append (self->note, ", {");
  for (guint i = 0; i < n; i++)
    g_string_append_printf (self->note, "%s%d", i ? ", " : "", axes[i]);
  g_string_append (self->note, "}");
  return T (permute) (self->x[0], axes, n);
}

TinyTensor *
make_transpose (Maker *self)
{
  guint n = rank_of (self->x[0]);
  return n < 2 ? self->x[0] : T (transpose) (self->x[0], (gint) n - 1, (gint) n - 2);
}

/* A new axis, or one of size 1, repeated. */
TinyTensor *
make_expand (Maker *self)
{
  gint64 shape[16];
  guint n = rank_of (self->x[0]);
  gint64 times = 1 + maker_number (self, 0, 5);
  if (n >= MAX_AXES || n_elements (self->x[0]) * times > MAX_ELEMENTS)
    return self->x[0];
  gint at = (gint) maker_number (self, 1, n + 1);
  for (guint i = 0; i <= n; i++)
    shape[i] = (gint) i == at ? times : size_of (self->x[0], i - ((gint) i > at));
  maker_note_sizes (self, shape, n + 1);
  return T (expand) (T (unsqueeze) (self->x[0], at), shape, n + 1);
}

TinyTensor *
make_pad (Maker *self)
{
  gint64 pairs[32];
  guint n = rank_of (self->x[0]);
  if (n_elements (self->x[0]) > MAX_ELEMENTS / 4)
    return self->x[0];
  for (guint i = 0; i < 2 * n; i++)
    pairs[i] = (self->step->p[0] >> (i * 3 % 27) & 7) % 4 * (i < 6);
  maker_note_sizes (self, pairs, 2 * n);
  return T (pad) (self->x[0], pairs, 2 * n, "constant", maker_number (self, 1, 3) == 0 ? 1 : 0);
}

TinyTensor *
make_shrink (Maker *self)
{
  gint64 pairs[32];
  guint n = rank_of (self->x[0]);
  for (guint i = 0; i < n; i++) {
    gint64 size = size_of (self->x[0], i);
    pairs[2 * i] = (self->step->p[0] >> 4 * i & 15) % (size + 1) * (self->step->p[1] >> i & 1);
    gint64 rest = size - pairs[2 * i];
    pairs[2 * i + 1] = pairs[2 * i] + rest - (self->step->p[2] >> 4 * i & 15) % MAX (rest, 1);
  }
  maker_note_sizes (self, pairs, 2 * n);
  return T (shrink) (self->x[0], pairs, 2 * n);
}

TinyTensor *
make_flip (Maker *self)
{
  gint axes[16];
  guint n = maker_axes (self, self->x[0], axes);
  return n == 0 ? self->x[0] : T (flip) (self->x[0], axes, n);
}

TinyTensor *
make_squeeze (Maker *self)
{
  for (guint i = 0; i < rank_of (self->x[0]); i++)
    if (size_of (self->x[0], i) == 1)
      return T (squeeze) (self->x[0], (gint[]){ (gint) i }, 1);
  return self->x[0];
}

TinyTensor *
make_unsqueeze (Maker *self)
{
  guint n = rank_of (self->x[0]);
  return n >= MAX_AXES ? self->x[0]
                       : T (unsqueeze) (self->x[0], (gint) maker_number (self, 0, n + 1));
}

TinyTensor *
make_slice (Maker *self)
{
  if (rank_of (self->x[0]) == 0)
    return self->x[0];
  gint axis = maker_axis (self, 0, self->x[0]);
  gint64 step = 1 + maker_number (self, 1, 4), start = maker_number (self, 2, 6);
  gboolean back = maker_number (self, 3, 2);
  maker_note_number (self, back ? -1 - (double) start : (double) start),
      maker_note_number (self, back ? -(double) step : (double) step);
  return back ? T (slice) (self->x[0], axis, -1 - start, TINY_SLICE_BEGIN, -step)
              : T (slice) (self->x[0], axis, start, TINY_SLICE_END, step);
}

TinyTensor *
make_repeat (Maker *self)
{
  gint64 repeats[16], n = n_elements (self->x[0]);
  guint rank = rank_of (self->x[0]);
  for (guint i = 0; i < rank; i++) {
    repeats[i] = 1 + (self->step->p[0] >> 2 * i & 3) % 3;
    n *= repeats[i];
  }
  if (n > MAX_ELEMENTS)
    return self->x[0];
  maker_note_sizes (self, repeats, rank);
  return T (repeat) (self->x[0], repeats, rank);
}

/* Along an axis of @x, with a part of @y. */
TinyTensor *
make_cat (Maker *self)
{
  gint64 shape[16];
  guint n = rank_of (self->x[0]);
  if (n == 0 || n_elements (self->x[0]) > MAX_ELEMENTS / 2)
    return self->x[0];
  gint axis = maker_axis (self, 0, self->x[0]);
  for (guint i = 0; i < n; i++)
    shape[i] = (gint) i == axis ? 1 + maker_number (self, 1, 3) : size_of (self->x[0], i);
  TinyTensor *parts[] = { self->x[0], operand_fitted (self->x[1], shape, n), self->x[0] };
  return T (cat) (parts, 2 + maker_number (self, 2, 2), axis);
}

TinyTensor *
make_stack (Maker *self)
{
  guint n = rank_of (self->x[0]);
  if (n >= MAX_AXES || n_elements (self->x[0]) > MAX_ELEMENTS / 2)
    return self->x[0];
  const gint64 *shape = tiny_tensor_get_shape (self->x[0], NULL);
  TinyTensor *parts[] = { self->x[0], operand_fitted (self->x[1], shape, n) };
  return T (stack) (parts, 2, (gint) maker_number (self, 0, n + 1));
}

/* Positions for a whole axis. */
TinyTensor *
make_gather (Maker *self)
{
  guint n = rank_of (self->x[0]);
  if (n == 0 || n_elements (self->x[0]) > MAX_ELEMENTS / 8)
    return self->x[0];
  gint axis = maker_axis (self, 0, self->x[0]);
  gint64 size = 1 + maker_number (self, 1, 5);
  return T (index_select) (self->x[0], axis,
                           operand_fitted (operand_integer (self->x[1]), &size, 1));
}

/* Positions for each place along the others. */
TinyTensor *
make_take_along (Maker *self)
{
  gint64 shape[16];
  guint n = rank_of (self->x[0]);
  if (n == 0 || n_elements (self->x[0]) > MAX_ELEMENTS / 8)
    return self->x[0];
  gint axis = maker_axis (self, 0, self->x[0]);
  gint64 size = 1 + maker_number (self, 1, 5);
  for (guint i = 0; i < n; i++)
    shape[i] = (gint) i == axis ? size : size_of (self->x[0], i);
  return T (gather) (self->x[0], axis, operand_fitted (operand_integer (self->x[1]), shape, n));
}

TinyTensor *
make_one_hot (Maker *self)
{
  if (n_elements (self->x[0]) > MAX_ELEMENTS / 10 || rank_of (self->x[0]) >= MAX_AXES)
    return self->x[0];
  return T (one_hot) (operand_integer (self->x[0]), 1 + maker_number (self, 0, 9));
}

/* ---- reductions ---- */
TinyTensor *
make_var (Maker *self)
{
  gint axes[16];
  guint n = maker_axes (self, self->x[0], axes);
  return T (var) (self->x[0], n == 0 ? NULL : axes, n, (gint) maker_number (self, 1, 2),
                  maker_number (self, 2, 2));
}

TinyTensor *
make_arg (Maker *self)
{
  if (rank_of (self->x[0]) == 0)
    return self->x[0];
  gint axis = maker_axis (self, 0, self->x[0]);
  return maker_number (self, 1, 2) ? T (argmax) (self->x[0], axis, FALSE)
                                   : T (argmin) (self->x[0], axis, FALSE);
}

#define REDUCTION(name)                                                                        \
  TinyTensor *make_##name (Maker *self)                                                        \
  {                                                                                            \
    gint axes[16];                                                                             \
    guint n = maker_axes (self, self->x[0], axes);                                             \
    g_string_append (self->note, maker_number (self, 1, 2) ? ", keepdim" : "");                \
    return T (name) (self->x[0], n == 0 ? NULL : axes, n, maker_number (self, 1, 2));          \
  }
/* clang-format off */
REDUCTION (sum) REDUCTION (mean) REDUCTION (max) REDUCTION (min) REDUCTION (prod) REDUCTION (any) REDUCTION (all)
