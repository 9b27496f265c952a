/* SPDX-License-Identifier: MIT
 *
 * program.c: what the steps of a random program are, and how they are drawn, built and simplified.
 *
 * A row of the table is a function of a Maker, which knows the step, its sources and the device.
 * Functions that want operands of a special form (integers, broadcasting shapes, four axes) bring
 * what they are given into it, which makes chains of movement by the way. */
#include "program.h"

#include <math.h>
#include <string.h>

#include "base/tiny-float.h"
#include "ir/tiny-dtype.h"

enum { MAX_ELEMENTS = 4096, MAX_AXES = 5 };

typedef struct {
  const Step *step;
  const char *device;
  TinyTensor *x[3];
  GString *note; /* the step's numbers as they were understood */
  gboolean no_f64;
} Maker;

typedef TinyTensor *(*Make) (Maker *self);
#define T(name) tiny_tensor_##name

static const TinyDType all_dtypes[]
    = { TINY_DTYPE_F32, TINY_DTYPE_I32,  TINY_DTYPE_F32, TINY_DTYPE_F16, TINY_DTYPE_BF16,
        TINY_DTYPE_F64, TINY_DTYPE_BOOL, TINY_DTYPE_I8,  TINY_DTYPE_U8,  TINY_DTYPE_I16,
        TINY_DTYPE_U16, TINY_DTYPE_U32,  TINY_DTYPE_I64, TINY_DTYPE_U64 };
static const gint64 sizes[]
    = { 1, 2, 3, 4, 5, 7, 8, 13, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 127 };

/* ---- what a step sees ---- */
static gint64
n_elements (TinyTensor *x)
{
  return tiny_tensor_get_n_elements (x);
}

static guint
rank_of (TinyTensor *x)
{
  return tiny_tensor_get_n_dims (x);
}

static gint64
size_of (TinyTensor *x, guint axis)
{
  return tiny_tensor_get_shape (x, NULL)[axis];
}

static gboolean
is_float (TinyTensor *x)
{
  return tiny_dtype_is_float (tiny_tensor_get_dtype (x));
}

static guint
number (const Maker *self, guint i, guint below)
{
  return self->step->p[i] % MAX (below, 1);
}

static void
note_sizes (Maker *self, const gint64 *v, guint n)
{
  g_string_append (self->note, ", {");
  for (guint i = 0; i < n; i++)
    g_string_append_printf (self->note, "%s%" G_GINT64_FORMAT, i ? ", " : "", v[i]);
  g_string_append_printf (self->note, "}, %u", n);
}

static void
note_number (Maker *self, double value)
{
  g_string_append_printf (self->note, ", %.17g", value);
}

/* An axis of @x, which has some. */
static gint
axis_of (Maker *self, guint i, TinyTensor *x)
{
  gint axis = (gint) number (self, i, rank_of (x));
  note_number (self, axis);
  return axis;
}

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

/* ---- bringing operands into form; take and give floating references ---- */
static TinyTensor *
as_float (TinyTensor *x)
{
  return is_float (x) ? x : T (cast) (x, TINY_DTYPE_F32);
}

static TinyTensor *
as_integer (TinyTensor *x)
{
  return is_float (x)
             ? T (cast) (T (clamp) (x, T (scalar) (-100), T (scalar) (100)), TINY_DTYPE_I32)
             : x;
}

static TinyTensor *
flat (TinyTensor *x)
{
  return T (reshape) (x, (gint64[]){ n_elements (x) }, 1);
}

/* The elements of @x, cut off or again from the beginning, in @shape. */
static TinyTensor *
fitted (TinyTensor *x, const gint64 *shape, guint n)
{
  gint64 wanted = 1, have = n_elements (x);
  for (guint i = 0; i < n; i++)
    wanted *= shape[i];
  if (have == 0)
    return T (expand) (T (cast) (T (scalar) (1), tiny_tensor_get_dtype (x)), shape, n);
  x = flat (x);
  if (have < wanted)
    x = T (repeat) (x, (gint64[]){ (wanted + have - 1) / have }, 1);
  x = T (slice) (x, 0, 0, wanted, 1);
  return T (reshape) (x, shape, n);
}

/* @y made to broadcast with @x: of its shape, where some axes may be 1 or missing. */
static TinyTensor *
partner (Maker *self, TinyTensor *x, TinyTensor *y)
{
  gint64 shape[16];
  guint n = rank_of (x), skip = self->step->p[0] % 8 == 1 && n > 0 ? 1 : 0;
  const gint64 *whole = tiny_tensor_get_shape (x, NULL), *own = tiny_tensor_get_shape (y, NULL);
  if (rank_of (y) == n && (n == 0 || memcmp (whole, own, n * sizeof *own) == 0))
    return y;
  for (guint i = skip; i < n; i++)
    shape[i - skip] = self->step->p[1] >> i & 1 && self->step->p[1] % 3 == 0 ? 1 : whole[i];
  return fitted (y, shape, n - skip);
}

static TinyTensor *
keep (TinyTensor *x)
{
  return T (reshape) (x, tiny_tensor_get_shape (x, NULL), rank_of (x));
}

/* ---- leaves ---- */
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

static TinyTensor *
make_leaf (Maker *self)
{
  const Step *step = self->step;
  TinyDType dtype = (TinyDType) step->dtype;
  gint64 shape[MAX_AXES], n = 1;
  guint rank = step->p[0] % MAX_AXES, width = (guint) tiny_dtype_get_n_bytes (dtype);
  for (guint i = 0; i < rank; i++) {
    shape[i] = sizes[(step->p[1] >> 5 * i & 31) % G_N_ELEMENTS (sizes)];
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
  note_number (self, dtype);
  g_string_append_printf (self->note, " (%s)", tiny_dtype_to_string (dtype));
  note_sizes (self, shape, rank);
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

static TinyTensor *
make_arange (Maker *self)
{
  TinyDType dtype = (TinyDType) self->step->dtype == TINY_DTYPE_BOOL
                        ? TINY_DTYPE_I32
                        : (TinyDType) self->step->dtype;
  double start = number (self, 0, 7), step = 1 + number (self, 1, 3),
         n = (double) sizes[number (self, 2, 16)];
  g_string_append_printf (self->note, ", %s", tiny_dtype_to_string (dtype));
  note_number (self, start), note_number (self, start + n * step), note_number (self, step);
  return placed (self, T (arange) (dtype, start, start + n * step, step));
}

static TinyTensor *
make_eye (Maker *self)
{
  gint64 n = sizes[number (self, 0, 12)], m = sizes[number (self, 1, 12)];
  note_number (self, (double) n), note_number (self, (double) m);
  return placed (self, T (eye) ((TinyDType) self->step->dtype, n, m));
}

static TinyTensor *
make_full (Maker *self)
{
  gint64 shape[] = { sizes[number (self, 0, 12)], sizes[number (self, 1, 8)] };
  note_sizes (self, shape, 2);
  note_number (self, number (self, 2, 5));
  return placed (self, T (full) ((TinyDType) self->step->dtype, shape, 2, number (self, 2, 5)));
}

static TinyTensor *
make_rand (Maker *self)
{
  static const TinyDType floats[]
      = { TINY_DTYPE_F32, TINY_DTYPE_F64, TINY_DTYPE_F16, TINY_DTYPE_BF16 };
  gint64 shape[] = { sizes[number (self, 0, 14)], sizes[number (self, 1, 8)] };
  TinyDType dtype = floats[number (self, 2, 4)];
  if (self->no_f64 && dtype == TINY_DTYPE_F64)
    dtype = TINY_DTYPE_F32;
  g_string_append_printf (self->note, ", %s", tiny_dtype_to_string (dtype));
  note_sizes (self, shape, 2);
  return placed (self, number (self, 3, 3) == 0 ? T (randn) (dtype, shape, 2)
                                                : T (rand) (dtype, shape, 2));
}

static TinyTensor *
make_randint (Maker *self)
{
  gint64 shape[] = { sizes[number (self, 0, 14)], sizes[number (self, 1, 8)] };
  TinyDType dtype = tiny_dtype_is_integer ((TinyDType) self->step->dtype)
                        ? (TinyDType) self->step->dtype
                        : TINY_DTYPE_I32;
  g_string_append_printf (self->note, ", %s", tiny_dtype_to_string (dtype));
  note_sizes (self, shape, 2);
  return placed (self, T (randint) (dtype, shape, 2, 0, 100));
}

/* ---- elementwise ---- */
#define UNARY(name)                                                                            \
  static TinyTensor *make_##name (Maker *self) { return T (name) (self->x[0]); }
#define BINARY(name)                                                                           \
  static TinyTensor *make_##name (Maker *self)                                                 \
  {                                                                                            \
    return T (name) (self->x[0], partner (self, self->x[0], self->x[1]));                      \
  }
#define BITS(name)                                                                             \
  static TinyTensor *make_##name (Maker *self)                                                 \
  {                                                                                            \
    return T (name) (as_integer (self->x[0]),                                                  \
                     as_integer (partner (self, self->x[0], self->x[1])));                     \
  }
/* clang-format off */
UNARY (neg) UNARY (reciprocal) UNARY (sqrt) UNARY (rsqrt) UNARY (exp) UNARY (exp2) UNARY (log) UNARY (log2)
UNARY (sin) UNARY (cos) UNARY (tan) UNARY (tanh) UNARY (sigmoid) UNARY (relu) UNARY (silu)
UNARY (abs) UNARY (sign) UNARY (square) UNARY (floor) UNARY (ceil) UNARY (round) UNARY (trunc)
UNARY (logical_not) UNARY (isnan) UNARY (isinf) UNARY (contiguous) UNARY (detach)
BINARY (add) BINARY (sub) BINARY (mul) BINARY (pow) BINARY (maximum) BINARY (minimum)
BINARY (eq) BINARY (ne) BINARY (lt) BINARY (le) BINARY (gt) BINARY (ge)
BINARY (logical_and) BINARY (logical_or) BINARY (logical_xor)
BITS (bitwise_and) BITS (bitwise_or) BITS (bitwise_xor)
    /* clang-format on */

    static TinyTensor *make_bitwise_not (Maker *self)
{
  return T (bitwise_not) (as_integer (self->x[0]));
}

static TinyTensor *
make_div (Maker *self)
{
  return T (div) (self->x[0], partner (self, self->x[0], self->x[1]), NULL);
}

static TinyTensor *
make_gelu (Maker *self)
{
  return T (gelu) (self->x[0], "tanh");
}

/* Mostly by something that is not 0. */
static TinyTensor *
divisor (Maker *self)
{
  TinyTensor *y = partner (self, self->x[0], self->x[1]);
  if (number (self, 2, 8) == 0)
    return y;
  if (is_float (y))
    return T (add_number) (T (abs) (y), 0.5);
  return T (bitwise_or) (y, T (scalar) (1));
}

static TinyTensor *
make_idiv (Maker *self)
{
  return T (floor_divide) (self->x[0], divisor (self));
}

static TinyTensor *
make_mod (Maker *self)
{
  return T (mod) (self->x[0], divisor (self));
}

/* Mostly by less than the width. */
static TinyTensor *
make_shift (Maker *self)
{
  TinyTensor *x = as_integer (self->x[0]),
             *y = as_integer (partner (self, self->x[0], self->x[1]));
  if (number (self, 2, 8) != 0)
    y = T (bitwise_and) (y, T (scalar) (7));
  return number (self, 3, 2) ? T (lshift) (x, y) : T (rshift) (x, y);
}

static TinyTensor *
make_where (Maker *self)
{
  TinyTensor *gate = partner (self, self->x[0], self->x[2]);
  return T (where) (gate, self->x[0], partner (self, self->x[0], self->x[1]));
}

static TinyTensor *
make_cast (Maker *self)
{
  g_string_append_printf (self->note, ", %s",
                          tiny_dtype_to_string ((TinyDType) self->step->dtype));
  return T (cast) (self->x[0], (TinyDType) self->step->dtype);
}

static TinyTensor *
make_bitcast (Maker *self)
{
  TinyDType from = tiny_tensor_get_dtype (self->x[0]);
  for (guint i = 0; i < G_N_ELEMENTS (all_dtypes); i++) {
    TinyDType to = all_dtypes[(i + self->step->p[0]) % G_N_ELEMENTS (all_dtypes)];
    if (to != from && to != TINY_DTYPE_BOOL && !(self->no_f64 && to == TINY_DTYPE_F64)
        && tiny_dtype_get_n_bytes (from) == tiny_dtype_get_n_bytes (to)) {
      g_string_append_printf (self->note, ", %s", tiny_dtype_to_string (to));
      return T (bitcast) (self->x[0], to);
    }
  }
  return self->x[0];
}

static double
constant (Maker *self)
{
  static const double values[] = { 0, 1, -1, 2, 3, -5, 0.5, 0.1, 16, 100, -2, 7 };
  double value = values[number (self, 4, G_N_ELEMENTS (values))];
  note_number (self, value);
  return value;
}

static TinyTensor *
make_add_number (Maker *self)
{
  return T (add_number) (self->x[0], constant (self));
}

static TinyTensor *
make_mul_number (Maker *self)
{
  return T (mul_number) (self->x[0], constant (self));
}

static TinyTensor *
make_by_number (Maker *self)
{
  TinyTensor *y = T (scalar) (constant (self));
  switch (number (self, 0, 6)) {
  case 0:
    return T (lt) (self->x[0], y);
  case 1:
    return T (maximum) (self->x[0], y);
  case 2:
    return T (mod) (self->x[0], T (scalar) (1 + number (self, 1, 9)));
  case 3:
    return T (floor_divide) (self->x[0], T (scalar) (1 + number (self, 1, 9)));
  case 4:
    return T (div) (self->x[0], T (scalar) (1 + number (self, 1, 9)), NULL);
  default:
    return T (pow) (self->x[0], T (scalar) (number (self, 1, 4)));
  }
}

static TinyTensor *
make_clamp (Maker *self)
{
  return T (clamp) (self->x[0], T (scalar) (-1.5), T (scalar) (2));
}

/* ---- movement ---- */
static TinyTensor *
make_reshape (Maker *self)
{
  gint64 shape[MAX_AXES];
  guint n = split_size (n_elements (self->x[0]), self->step->p[0], shape);
  if (n_elements (self->x[0]) == 0)
    return flat (self->x[0]);
  note_sizes (self, shape, n);
  return T (reshape) (self->x[0], shape, n);
}

static TinyTensor *
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

static TinyTensor *
make_transpose (Maker *self)
{
  guint n = rank_of (self->x[0]);
  return n < 2 ? self->x[0] : T (transpose) (self->x[0], (gint) n - 1, (gint) n - 2);
}

/* A new axis, or one of size 1, repeated. */
static TinyTensor *
make_expand (Maker *self)
{
  gint64 shape[16];
  guint n = rank_of (self->x[0]);
  gint64 times = 1 + number (self, 0, 5);
  if (n >= MAX_AXES || n_elements (self->x[0]) * times > MAX_ELEMENTS)
    return self->x[0];
  gint at = (gint) number (self, 1, n + 1);
  for (guint i = 0; i <= n; i++)
    shape[i] = (gint) i == at ? times : size_of (self->x[0], i - ((gint) i > at));
  note_sizes (self, shape, n + 1);
  return T (expand) (T (unsqueeze) (self->x[0], at), shape, n + 1);
}

static TinyTensor *
make_pad (Maker *self)
{
  gint64 pairs[32];
  guint n = rank_of (self->x[0]);
  if (n_elements (self->x[0]) > MAX_ELEMENTS / 4)
    return self->x[0];
  for (guint i = 0; i < 2 * n; i++)
    pairs[i] = (self->step->p[0] >> (i * 3 % 27) & 7) % 4 * (i < 6);
  note_sizes (self, pairs, 2 * n);
  return T (pad) (self->x[0], pairs, 2 * n, "constant", number (self, 1, 3) == 0 ? 1 : 0);
}

static TinyTensor *
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
  note_sizes (self, pairs, 2 * n);
  return T (shrink) (self->x[0], pairs, 2 * n);
}

static guint
some_axes (Maker *self, TinyTensor *x, gint *out)
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

static TinyTensor *
make_flip (Maker *self)
{
  gint axes[16];
  guint n = some_axes (self, self->x[0], axes);
  return n == 0 ? self->x[0] : T (flip) (self->x[0], axes, n);
}

static TinyTensor *
make_squeeze (Maker *self)
{
  for (guint i = 0; i < rank_of (self->x[0]); i++)
    if (size_of (self->x[0], i) == 1)
      return T (squeeze) (self->x[0], (gint[]){ (gint) i }, 1);
  return self->x[0];
}

static TinyTensor *
make_unsqueeze (Maker *self)
{
  guint n = rank_of (self->x[0]);
  return n >= MAX_AXES ? self->x[0]
                       : T (unsqueeze) (self->x[0], (gint) number (self, 0, n + 1));
}

static TinyTensor *
make_slice (Maker *self)
{
  if (rank_of (self->x[0]) == 0)
    return self->x[0];
  gint axis = axis_of (self, 0, self->x[0]);
  gint64 step = 1 + number (self, 1, 4), start = number (self, 2, 6);
  gboolean back = number (self, 3, 2);
  note_number (self, back ? -1 - (double) start : (double) start),
      note_number (self, back ? -(double) step : (double) step);
  return back ? T (slice) (self->x[0], axis, -1 - start, TINY_SLICE_BEGIN, -step)
              : T (slice) (self->x[0], axis, start, TINY_SLICE_END, step);
}

static TinyTensor *
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
  note_sizes (self, repeats, rank);
  return T (repeat) (self->x[0], repeats, rank);
}

/* Along an axis of @x, with a part of @y. */
static TinyTensor *
make_cat (Maker *self)
{
  gint64 shape[16];
  guint n = rank_of (self->x[0]);
  if (n == 0 || n_elements (self->x[0]) > MAX_ELEMENTS / 2)
    return self->x[0];
  gint axis = axis_of (self, 0, self->x[0]);
  for (guint i = 0; i < n; i++)
    shape[i] = (gint) i == axis ? 1 + number (self, 1, 3) : size_of (self->x[0], i);
  TinyTensor *parts[] = { self->x[0], fitted (self->x[1], shape, n), self->x[0] };
  return T (cat) (parts, 2 + number (self, 2, 2), axis);
}

static TinyTensor *
make_stack (Maker *self)
{
  guint n = rank_of (self->x[0]);
  if (n >= MAX_AXES || n_elements (self->x[0]) > MAX_ELEMENTS / 2)
    return self->x[0];
  const gint64 *shape = tiny_tensor_get_shape (self->x[0], NULL);
  TinyTensor *parts[] = { self->x[0], fitted (self->x[1], shape, n) };
  return T (stack) (parts, 2, (gint) number (self, 0, n + 1));
}

/* Positions for a whole axis. */
static TinyTensor *
make_gather (Maker *self)
{
  guint n = rank_of (self->x[0]);
  if (n == 0 || n_elements (self->x[0]) > MAX_ELEMENTS / 8)
    return self->x[0];
  gint axis = axis_of (self, 0, self->x[0]);
  gint64 size = 1 + number (self, 1, 5);
  return T (index_select) (self->x[0], axis, fitted (as_integer (self->x[1]), &size, 1));
}

/* Positions for each place along the others. */
static TinyTensor *
make_take_along (Maker *self)
{
  gint64 shape[16];
  guint n = rank_of (self->x[0]);
  if (n == 0 || n_elements (self->x[0]) > MAX_ELEMENTS / 8)
    return self->x[0];
  gint axis = axis_of (self, 0, self->x[0]);
  gint64 size = 1 + number (self, 1, 5);
  for (guint i = 0; i < n; i++)
    shape[i] = (gint) i == axis ? size : size_of (self->x[0], i);
  return T (gather) (self->x[0], axis, fitted (as_integer (self->x[1]), shape, n));
}

static TinyTensor *
make_one_hot (Maker *self)
{
  if (n_elements (self->x[0]) > MAX_ELEMENTS / 10 || rank_of (self->x[0]) >= MAX_AXES)
    return self->x[0];
  return T (one_hot) (as_integer (self->x[0]), 1 + number (self, 0, 9));
}

/* ---- reductions ---- */
#define REDUCTION(name)                                                                        \
  static TinyTensor *make_##name (Maker *self)                                                 \
  {                                                                                            \
    gint axes[16];                                                                             \
    guint n = some_axes (self, self->x[0], axes);                                              \
    g_string_append (self->note, number (self, 1, 2) ? ", keepdim" : "");                      \
    return T (name) (self->x[0], n == 0 ? NULL : axes, n, number (self, 1, 2));                \
  }
/* clang-format off */
REDUCTION (sum) REDUCTION (mean) REDUCTION (max) REDUCTION (min) REDUCTION (prod) REDUCTION (any) REDUCTION (all)
    /* clang-format on */

    static TinyTensor *make_var (Maker *self)
{
  gint axes[16];
  guint n = some_axes (self, self->x[0], axes);
  return T (var) (self->x[0], n == 0 ? NULL : axes, n, (gint) number (self, 1, 2),
                  number (self, 2, 2));
}

static TinyTensor *
make_arg (Maker *self)
{
  if (rank_of (self->x[0]) == 0)
    return self->x[0];
  gint axis = axis_of (self, 0, self->x[0]);
  return number (self, 1, 2) ? T (argmax) (self->x[0], axis, FALSE)
                             : T (argmin) (self->x[0], axis, FALSE);
}

/* ---- products and networks ---- */

/* (…, M, K) @ (…, K, N), the right side possibly a transposed (…, N, K). */
static TinyTensor *
make_matmul (Maker *self)
{
  gint64 shape[3], n = sizes[number (self, 0, 13)];
  guint rank = rank_of (self->x[0]);
  if (rank == 0)
    return self->x[0];
  gint64 k = size_of (self->x[0], rank - 1);
  if (n_elements (self->x[0]) * n > 4 * MAX_ELEMENTS || k * n > MAX_ELEMENTS)
    n = 1;
  gboolean transposed = number (self, 1, 2), batched = number (self, 2, 3) == 0 && rank == 3;
  guint at = 0;
  if (batched)
    shape[at++] = size_of (self->x[0], 0);
  shape[at++] = transposed ? n : k;
  shape[at++] = transposed ? k : n;
  note_sizes (self, shape, at);
  TinyTensor *y = fitted (self->x[1], shape, at);
  return T (matmul) (self->x[0], transposed ? T (transpose) (y, -1, -2) : y);
}

/* As a batch of images. */
static TinyTensor *
images (Maker *self, gint64 *out_channels)
{
  static const gint64 shapes[][4] = { { 1, 1, 5, 7 }, { 2, 3, 6, 6 },  { 1, 4, 8, 5 },
                                      { 3, 2, 4, 9 }, { 1, 2, 16, 3 }, { 2, 4, 5, 5 } };
  guint i = number (self, 0, G_N_ELEMENTS (shapes));
  *out_channels = shapes[i][1];
  note_sizes (self, shapes[i], 4);
  return fitted (self->x[0], shapes[i], 4);
}

static TinyTensor *
make_conv2d (Maker *self)
{
  gint64 channels;
  TinyTensor *x = images (self, &channels);
  gint64 groups = number (self, 1, 3) == 0 && channels % 2 == 0 ? 2 : 1;
  gint64 shape[] = { groups * (1 + number (self, 2, 3)), channels / groups,
                     1 + number (self, 3, 3), 1 + number (self, 4, 3) };
  gint64 stride = 1 + self->step->p[5] % 2, padding = self->step->p[5] / 2 % 3,
         dilation = 1 + self->step->p[5] / 8 % 8 / 7;
  note_sizes (self, shape, 4);
  note_number (self, (double) stride), note_number (self, (double) padding),
      note_number (self, (double) dilation), note_number (self, (double) groups);
  return T (conv2d) (x, fitted (self->x[1], shape, 4), NULL, &stride, 1, &padding, 1, &dilation,
                     1, groups);
}

static TinyTensor *
make_pool (Maker *self)
{
  gint64 channels, kernel = 1 + number (self, 1, 3), stride = number (self, 2, 3);
  gint64 padding = number (self, 3, (guint) kernel / 2 + 1);
  TinyTensor *x = images (self, &channels);
  note_number (self, (double) kernel), note_number (self, (double) stride),
      note_number (self, (double) padding);
  return number (self, 4, 2)
             ? T (max_pool2d) (x, &kernel, 1, &stride, 1, &padding, 1, NULL, 0, FALSE)
             : T (avg_pool2d) (x, &kernel, 1, &stride, 1, &padding, 1, FALSE, TRUE, 0);
}

static TinyTensor *
make_softmax (Maker *self)
{
  if (rank_of (self->x[0]) == 0)
    return self->x[0];
  gint axis = axis_of (self, 0, self->x[0]);
  return number (self, 1, 2) ? T (softmax) (self->x[0], axis)
                             : T (log_softmax) (self->x[0], axis);
}

static TinyTensor *
make_layer_norm (Maker *self)
{
  if (rank_of (self->x[0]) == 0)
    return self->x[0];
  gint64 width = size_of (self->x[0], rank_of (self->x[0]) - 1);
  return T (layer_norm) (self->x[0], &width, 1, NULL, NULL, 1e-3);
}

static TinyTensor *
make_cross_entropy (Maker *self)
{
  if (rank_of (self->x[0]) != 2)
    return self->x[0];
  gint64 n = size_of (self->x[0], 0);
  TinyTensor *labels = T (mod) (as_integer (fitted (self->x[1], &n, 1)),
                                T (scalar) ((double) MAX (size_of (self->x[0], 1), 1)));
  return T (cross_entropy) (as_float (self->x[0]), labels, NULL, -100, "mean", 0);
}

/* The gradient of the sum of squares of the first with respect to the second. */
static TinyTensor *
make_gradient (Maker *self)
{
  if (!is_float (self->x[0]) || !is_float (self->x[1]))
    return self->x[0];
  TinyTensor *loss = g_object_ref_sink (T (sum) (T (square) (self->x[0]), NULL, 0, FALSE)),
             *gradient = NULL;
  gboolean good = tiny_gradient (loss, &self->x[1], 1, &gradient, NULL);
  g_object_unref (loss);
  if (!good)
    return self->x[0];
  TinyTensor *result = keep (gradient);
  g_object_unref (gradient);
  return result;
}

/* The first in memory of its own, then overwritten. */
static TinyTensor *
make_assign (Maker *self)
{
  TinyTensor *x = g_object_ref_sink (T (contiguous) (self->x[0]));
  TinyTensor *y = partner (self, x, self->x[1]);
  const gint64 *shape = tiny_tensor_get_shape (x, NULL);
  y = T (cast) (T (expand) (y, shape, rank_of (x)), tiny_tensor_get_dtype (x));
  if (number (self, 2, 2))
    tiny_tensor_set_requires_grad (x, TRUE);
  TinyTensor *before = g_object_ref_sink (T (add) (x, x));
  if (tiny_tensor_assign (x, y, NULL) && number (self, 3, 2))
    tiny_tensor_assign (x, T (cast) (T (maximum) (x, before), tiny_tensor_get_dtype (x)), NULL);
  TinyTensor *result = keep (x);
  g_object_unref (before);
  g_object_unref (x);
  return result;
}

/* ---- the table ---- */
static const struct {
  const char *name;
  Make make;
  guint n, weight;
} rows[] = {
#define ROW(name, n, weight)                                                                   \
  {                                                                                            \
#name, make_##name, n, weight                                                              \
  }
  ROW (leaf, 0, 0), /* the first */
  ROW (arange, 0, 3),      ROW (eye, 0, 1),
  ROW (full, 0, 2),        ROW (rand, 0, 3),
  ROW (randint, 0, 2),     ROW (neg, 1, 1),
  ROW (reciprocal, 1, 1),  ROW (sqrt, 1, 1),
  ROW (rsqrt, 1, 1),       ROW (exp, 1, 1),
  ROW (exp2, 1, 1),        ROW (log, 1, 1),
  ROW (log2, 1, 1),        ROW (sin, 1, 1),
  ROW (cos, 1, 1),         ROW (tan, 1, 1),
  ROW (tanh, 1, 1),        ROW (sigmoid, 1, 1),
  ROW (relu, 1, 2),        ROW (gelu, 1, 1),
  ROW (silu, 1, 1),        ROW (abs, 1, 1),
  ROW (sign, 1, 1),        ROW (square, 1, 1),
  ROW (floor, 1, 1),       ROW (ceil, 1, 1),
  ROW (round, 1, 1),       ROW (trunc, 1, 1),
  ROW (logical_not, 1, 1), ROW (isnan, 1, 1),
  ROW (isinf, 1, 1),       ROW (bitwise_not, 1, 1),
  ROW (contiguous, 1, 2),  ROW (detach, 1, 1),
  ROW (add, 2, 4),         ROW (sub, 2, 2),
  ROW (mul, 2, 4),         ROW (div, 2, 2),
  ROW (pow, 2, 1),         ROW (maximum, 2, 1),
  ROW (minimum, 2, 1),     ROW (eq, 2, 1),
  ROW (ne, 2, 1),          ROW (lt, 2, 1),
  ROW (le, 2, 1),          ROW (gt, 2, 1),
  ROW (ge, 2, 1),          ROW (logical_and, 2, 1),
  ROW (logical_or, 2, 1),  ROW (logical_xor, 2, 1),
  ROW (bitwise_and, 2, 1), ROW (bitwise_or, 2, 1),
  ROW (bitwise_xor, 2, 1), ROW (idiv, 2, 1),
  ROW (mod, 2, 1),         ROW (shift, 2, 1),
  ROW (where, 3, 3),       ROW (cast, 1, 6),
  ROW (bitcast, 1, 1),     ROW (add_number, 1, 2),
  ROW (mul_number, 1, 2),  ROW (by_number, 1, 2),
  ROW (clamp, 1, 1),       ROW (reshape, 1, 8),
  ROW (permute, 1, 5),     ROW (transpose, 1, 3),
  ROW (expand, 1, 4),      ROW (pad, 1, 5),
  ROW (shrink, 1, 4),      ROW (flip, 1, 3),
  ROW (squeeze, 1, 1),     ROW (unsqueeze, 1, 1),
  ROW (slice, 1, 5),       ROW (repeat, 1, 2),
  ROW (cat, 2, 4),         ROW (stack, 2, 2),
  ROW (gather, 2, 3),      ROW (take_along, 2, 3),
  ROW (one_hot, 1, 2),     ROW (sum, 1, 8),
  ROW (mean, 1, 2),        ROW (max, 1, 3),
  ROW (min, 1, 2),         ROW (prod, 1, 1),
  ROW (any, 1, 1),         ROW (all, 1, 1),
  ROW (var, 1, 1),         ROW (arg, 1, 2),
  ROW (matmul, 2, 8),      ROW (conv2d, 2, 5),
  ROW (pool, 1, 3),        ROW (softmax, 1, 3),
  ROW (layer_norm, 1, 1),  ROW (cross_entropy, 2, 1),
  ROW (gradient, 2, 6),    ROW (assign, 2, 3),
};

static guint
draw_op (GRand *random)
{
  guint total = 0, at = 0;
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    total += rows[i].weight;
  guint left = (guint) g_rand_int_range (random, 0, (gint) total);
  while (left >= rows[at].weight)
    left -= rows[at++].weight;
  return at;
}

void
program_generate (Program *self, guint64 seed)
{
  guint32 seeds[] = { (guint32) seed, (guint32) (seed >> 32) };
  g_autoptr (GRand) random = g_rand_new_with_seed_array (seeds, 2);
  guint n_leaves = 1 + g_rand_int_range (random, 0, 3);
  *self = (Program){ .n = n_leaves + 1 + (guint) g_rand_int_range (random, 0, 8),
                     .one_by_one = g_rand_int_range (random, 0, 4) == 0 };
  /* Most programs are about few dtypes. */
  TinyDType favourite = all_dtypes[g_rand_int_range (random, 0, G_N_ELEMENTS (all_dtypes))];
  gboolean mixed = g_rand_int_range (random, 0, 3) == 0;
  gboolean large
      = g_rand_int_range (random, 0, 8) == 0; /* what the optimiser tiles and unrolls */
  for (guint i = 0; i < self->n; i++) {
    Step *step = &self->steps[i];
    step->op = (guint8) (i < n_leaves ? 0 : draw_op (random));
    step->size = (guint8) (large ? 12 : g_rand_int_range (random, 2, 11));
    step->dtype
        = (guint8) (mixed || (i >= n_leaves && g_rand_int_range (random, 0, 2))
                        ? all_dtypes[g_rand_int_range (random, 0, G_N_ELEMENTS (all_dtypes))]
                        : favourite);
    for (guint j = 0; j < G_N_ELEMENTS (step->from); j++)
      step->from[j] = (guint8) (i == 0 ? 0
                                : g_rand_int_range (random, 0, 3) == 0
                                    ? (guint) g_rand_int_range (random, 0, (gint) i)
                                    : i - 1);
    /* Operands of one op are seldom the same value. */
    if (i > 0)
      step->from[1] = (guint8) g_rand_int_range (random, 0, (gint) i);
    for (guint j = 0; j < STEP_N_NUMBERS; j++)
      step->p[j] = g_rand_int (random);
  }
}

static void
describe (const Program *self, guint i, const char *note, TinyTensor *value, GString *text)
{
  const Step *step = &self->steps[i];
  g_string_append_printf (text, "  t%u = %s (", i, rows[step->op].name);
  for (guint j = 0; j < rows[step->op].n; j++)
    g_string_append_printf (text, "%st%u", j ? ", " : "", step->from[j]);
  g_string_append_printf (text, "%s);  // %s (",
                          rows[step->op].n == 0 && *note ? note + 2 : note,
                          tiny_dtype_to_string (tiny_tensor_get_dtype (value)));
  for (guint j = 0; j < rank_of (value); j++)
    g_string_append_printf (text, "%s%" G_GINT64_FORMAT, j ? ", " : "", size_of (value, j));
  g_string_append_printf (text, ")%s\n", program_is_output (self, i) ? ", output" : "");
}

void
program_build (const Program *self, const char *device, TinyTensor **out, GString *text)
{
  tiny_tensor_manual_seed (7);
  for (guint i = 0; i < self->n; i++) {
    Step own = self->steps[i];
    const Step *step = &own;
    g_autoptr (GString) note = g_string_new (NULL);
    if (self->no_f64 && own.dtype == TINY_DTYPE_F64)
      own.dtype = TINY_DTYPE_F32;
    Maker maker = { .step = step, .device = device, .note = note, .no_f64 = self->no_f64 };
    for (guint j = 0; i > 0 && j < G_N_ELEMENTS (maker.x); j++)
      maker.x[j] = out[step->from[j]];
    out[i] = g_object_ref_sink (rows[step->op].make (&maker));
    if (tiny_tensor_get_error (out[i]) != NULL || n_elements (out[i]) > 4 * MAX_ELEMENTS) {
      if (text != NULL)
        g_string_append_printf (text, "  // %s\n",
                                tiny_tensor_get_error (out[i])
                                    ? tiny_tensor_get_error (out[i])->message
                                    : "too large");
      g_object_unref (out[i]);
      out[i] = g_object_ref (i == 0 ? NULL : maker.x[0]);
    }
    if (text != NULL)
      describe (self, i, note->str, out[i], text);
  }
}

void
program_clear (const Program *self, TinyTensor **values)
{
  for (guint i = 0; i < self->n; i++)
    g_clear_object (&values[i]);
}

gboolean
program_is_output (const Program *self, guint i)
{
  for (guint k = i + 1; k < self->n; k++)
    for (guint j = 0; j < rows[self->steps[k].op].n; j++)
      if (self->steps[k].from[j] == i)
        return FALSE;
  return TRUE;
}

/* ---- simplifying ---- */

/* Without step @at, whose users take its first source. */
static gboolean
without (const Program *self, guint at, Program *out)
{
  if (self->n < 2)
    return FALSE;
  *out = *self;
  guint instead = self->steps[at].from[0];
  if (at == 0 || rows[self->steps[at].op].n == 0) {
    for (guint k = at + 1; k < self->n; k++)
      for (guint j = 0; j < rows[self->steps[k].op].n; j++)
        if (self->steps[k].from[j] == at)
          return FALSE;
    instead = 0;
  }
  for (guint k = at + 1; k < self->n; k++) {
    out->steps[k - 1] = self->steps[k];
    for (guint j = 0; j < 3; j++) {
      guint from = self->steps[k].from[j];
      from = from == at ? instead : from;
      out->steps[k - 1].from[j] = (guint8) (from > at ? from - 1 : from);
    }
  }
  out->n--;
  return out->steps[0].op == 0;
}

enum { WAYS_A_STEP = 16 };

gboolean
program_simplify (const Program *self, guint i, Program *out)
{
  if (i < self->n && without (self, self->n - 1 - i, out))
    return TRUE;
  *out = *self;
  if (i < self->n)
    return TRUE; /* the same again: a way that is none */
  i -= self->n;
  if (i >= self->n * WAYS_A_STEP)
    return FALSE;
  Step *step = &out->steps[i / WAYS_A_STEP];
  guint way = i % WAYS_A_STEP;
  if (way < 3 && rows[step->op].n > way && step->from[way] > 0)
    step->from[way] = 0;
  else if (way == 3 && step->op != 0 && rows[step->op].n < 2)
    step->op = 0, step->size = 4;
  else if (way == 4 && step->size > 0)
    step->size--;
  else if (way == 5 && step->dtype != TINY_DTYPE_F32)
    step->dtype = TINY_DTYPE_F32;
  else if (way == 6 && step->op == 0 && step->p[3] % 8 != 1)
    step->p[3] = 1;
  else if (way == 7 && step->op == 0 && step->p[0] % MAX_AXES > 1)
    step->p[0] = step->p[0] % MAX_AXES - 1;
  else if (way >= 10 && step->p[way - 10] > 0)
    step->p[way - 10] = way - 10 == 0 && step->op == 0 ? step->p[0]
                        : step->p[way - 10] / 2 < 64   ? 0
                                                       : step->p[way - 10] % 64;
  else if (way == 8 && out->one_by_one)
    out->one_by_one = FALSE;
  else if (way == 9 && step->op == 0 && step->size > 4)
    step->size = 4;
  return TRUE;
}
