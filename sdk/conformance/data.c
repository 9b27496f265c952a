/* SPDX-License-Identifier: MIT
 *
 * data.c: drawing numbers. */
#include "data.h"

#include <math.h>
#include <string.h>

#include "oracle.h"

const char *
conf_class_to_string (ConfClass self)
{
  static const char *const names[]
      = { "signed", "positive", "subnormal", "huge", "special", "integer", "boundary", "all" };
  return names[self];
}

/* ---- a generator that is the same everywhere: splitmix64 (Steele, Lea, Flood, 2014) ---- */
static guint64
draw (guint64 *state)
{
  guint64 z = *state += G_GUINT64_CONSTANT (0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * G_GUINT64_CONSTANT (0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * G_GUINT64_CONSTANT (0x94d049bb133111eb);
  return z ^ z >> 31;
}

static double
draw_unit (guint64 *state) /* [0, 1) */
{
  return (double) (draw (state) >> 11) * 0x1p-53;
}

static gint64
draw_below (guint64 *state, gint64 n)
{
  return (gint64) (draw (state) % (guint64) n);
}

/* ---- lists of edges ---- */
enum { MAX_EDGES = 40 };

typedef struct {
  TinyDType dtype;
  guint n;
  gint64 v[MAX_EDGES];
} Edges;

static void
add_bits (Edges *self, guint64 raw)
{
  g_assert (self->n < MAX_EDGES);
  self->v[self->n++] = conf_decode (self->dtype, &raw, 0);
}

/* @value rounded to the dtype, with either sign. */
static void
add_float (Edges *self, double value)
{
  guint64 raw = 0;
  for (guint sign = 0; sign < 2; sign++) {
    conf_encode (self->dtype, &raw, 0, conf_from_double (sign ? -value : value));
    add_bits (self, raw);
  }
}

static void
special_edges (Edges *self)
{
  double largest = conf_largest (self->dtype), least = conf_least_normal (self->dtype);
  const double values[] = { 0,     INFINITY,    1,
                            0.5,   2,           largest,
                            least, least * 0.5, (double) conf_ulp_of (self->dtype, 0) };
  for (guint i = 0; i < G_N_ELEMENTS (values); i++)
    add_float (self, values[i]);
  add_bits (self, 0), self->v[self->n - 1] = conf_from_double (NAN);
  add_bits (self, 0), self->v[self->n - 1] = conf_from_double (NAN); /* another in memory */
}

/* 1 and its neighbours, halves of units, where exponents and integers end. */
static void
boundary_edges (Edges *self)
{
  double unit = (double) conf_ulp_of (self->dtype, 1), whole = 1 / unit;
  const double values[] = { 1,
                            1 + unit,
                            1 - unit / 2,
                            unit,
                            unit / 2,
                            unit / 2 * (1 + unit),
                            whole,
                            whole - 1,
                            whole + 1 < conf_largest (self->dtype) ? whole * 2 - 1 : 3,
                            1.5,
                            2.5,
                            3,
                            G_PI / 2,
                            G_PI,
                            2147483648.0,
                            4294967296.0,
                            0x1p63,
                            1.0 / 3 };
  for (guint i = 0; i < G_N_ELEMENTS (values); i++)
    if (values[i] <= conf_largest (self->dtype))
      add_float (self, values[i]);
}

static void
integer_edges (Edges *self)
{
  const guint n_bits = 8 * (guint) tiny_dtype_get_n_bytes (self->dtype);
  const guint64 top = G_GUINT64_CONSTANT (1) << (n_bits - 1);
  const guint64 values[] = { 0, 1, 2, 3, 5, 7, 10, 16, 100, 127 };
  for (guint i = 0; i < G_N_ELEMENTS (values); i++) {
    add_bits (self, values[i]);
    if (values[i] != 0)
      add_bits (self, -values[i]);
  }
  for (guint64 near = 0; near < 3; near++)
    add_bits (self, top + near), add_bits (self, top - 1 - near);
  for (guint width = n_bits / 2; width >= 8; width /= 2) {
    add_bits (self, G_GUINT64_CONSTANT (1) << width);
    add_bits (self, (G_GUINT64_CONSTANT (1) << width) - 1);
  }
  if (n_bits < 64)
    return;
  add_bits (self, (G_GUINT64_CONSTANT (1) << 53) + 1), add_bits (self, (top >> 1) + 1);
  /* Halfway between two f32, and a bit that f64 has not. */
  const guint64 one = 1, halfway = (one << 60) + (one << 36) + 1;
  add_bits (self, halfway), add_bits (self, -halfway);
  add_bits (self, (one << 63) + (one << 39) + 1);
}

static void
fill_edges (Edges *self, ConfClass of, TinyDType dtype)
{
  self->dtype = dtype;
  if (dtype == TINY_DTYPE_BOOL)
    add_bits (self, 0), add_bits (self, 1);
  else if (!tiny_dtype_is_float (dtype))
    integer_edges (self);
  else if (of == CONF_SPECIAL)
    special_edges (self);
  else
    boundary_edges (self);
}

/* ---- drawn numbers ---- */
/* [1, 2). Half of a CAST's end in a one at any place, so that they lie halfway between two numbers of a narrower dtype. */
static double
draw_mantissa (TinyOp op, int bits, guint64 *state)
{
  const double any = 1 + draw_unit (state);
  if (op != TINY_OP_CAST || draw (state) & 1)
    return any;
  const double scale = ldexp (1, 1 + (int) draw_below (state, bits));
  return (2 * floor (any * scale / 2) + 1) / scale;
}

/* Where a CAST to a narrower dtype rounds otherwise than near 1: to one of its subnormals, or at its largest. Answers 0
 * where the dtype that was drawn is no narrower. */
static double
draw_edge (ConfClass self, TinyDType dtype, guint64 *state)
{
  static const TinyDType all[] = { TINY_DTYPE_F8E4M3, TINY_DTYPE_F8E5M2, TINY_DTYPE_F16,
                                   TINY_DTYPE_BF16, TINY_DTYPE_F32 };
  const TinyDType to = all[draw_below (state, G_N_ELEMENTS (all))];
  const int bits = (int) tiny_dtype_infos[to].mantissa_bits;
  const double sign = draw (state) & 1 ? -1 : 1, largest = conf_largest (to);
  if (bits >= (int) tiny_dtype_infos[dtype].mantissa_bits)
    return 0;
  if (self == CONF_HUGE)
    return sign
           * (largest
              + ldexp ((double) draw_below (state, 17) - 8, ilogb (largest) - bits - 3));
  return sign
         * ldexp (draw_mantissa (TINY_OP_CAST, bits + 3, state),
                  ilogb (conf_least_normal (to)) - 1 - (int) draw_below (state, bits + 1));
}

static double
draw_float (ConfClass self, TinyOp op, TinyDType dtype, guint slot, guint64 *state)
{
  const int bits = (int) tiny_dtype_infos[dtype].mantissa_bits;
  const double largest = conf_largest (dtype), sign = draw (state) & 1 ? -1 : 1;
  const double mantissa = draw_mantissa (op, bits, state);
  int top, last;
  frexp (largest, &top);
  last = ilogb (conf_least_normal (dtype));
  if (op == TINY_OP_CAST && (self == CONF_SUBNORMAL || self == CONF_HUGE) && draw (state) & 1) {
    const double edge = draw_edge (self, dtype, state);
    if (edge != 0)
      return edge;
  }
  switch (self) {
  case CONF_POSITIVE:
    return ldexp (mantissa, (int) draw_below (state, 8) - 4);
  case CONF_SUBNORMAL:
    if (draw (state) % 3 == 0) /* beside them: what brings a product or a sum there */
      return slot > 0 ? sign * ldexp (mantissa, (int) draw_below (state, 6) - 4)
                      : sign * ldexp (mantissa, last + (int) draw_below (state, 4));
    return sign * ldexp (mantissa, last - 1 - (int) draw_below (state, bits));
  case CONF_HUGE:
    return sign * ldexp (mantissa, top - 1 - (int) draw_below (state, MIN (top, 12)));
  case CONF_INTEGER:
    return sign
           * (double) draw_below (state, op == TINY_OP_MUL || op == TINY_OP_MULACC ? 4 : 12);
  default:
    /* Most near 1, some of any size at which sums still round. */
    return sign
           * ldexp (mantissa, (int) draw_below (state, draw (state) & 1 ? 6 : bits + 4) - 3);
  }
}

static guint64
draw_integer (ConfClass self, TinyDType dtype, guint64 *state)
{
  const guint n_bits = 8 * (guint) tiny_dtype_get_n_bytes (dtype);
  const guint64 all = draw (state), top = G_GUINT64_CONSTANT (1) << (n_bits - 1);
  switch (self) {
  case CONF_POSITIVE:
    return (all & (top - 1)) >> draw_below (state, n_bits);
  case CONF_HUGE: /* about either end, and the middle of what is unsigned */
    return (all & 1 ? top : 0) + (guint64) draw_below (state, 201) - 100;
  case CONF_INTEGER:
    return (guint64) (draw_below (state, 25) - 12);
  default:
    return (all >> (64 - n_bits) >> draw_below (state, n_bits))
           * (draw (state) & 1 ? 1 : -1ull);
  }
}

/* What operand @slot of @op has to be. */
static gint64
fit (TinyOp op, TinyDType dtype, guint slot, gsize i, gint64 bits)
{
  const gint64 width = 8 * (gint64) tiny_dtype_get_n_bytes (dtype);
  if (slot == 1 && (op == TINY_OP_SHL || op == TINY_OP_SHR))
    return (gint64) (i % (gsize) width);
  if (slot == 1 && (op == TINY_OP_IDIV || op == TINY_OP_MOD) && bits == 0)
    return 1;
  return bits;
}

static gint64
element_of_all (TinyDType dtype, guint slot, gsize i)
{
  const guint n_bits
      = dtype == TINY_DTYPE_BOOL ? 1 : 8 * (guint) tiny_dtype_get_n_bytes (dtype);
  guint64 raw = (i >> n_bits * slot) & ((G_GUINT64_CONSTANT (1) << n_bits) - 1);
  return conf_decode (dtype, &raw, 0);
}

/* ---- the whole ---- */
gboolean
conf_class_has (ConfClass self, TinyDType dtype, guint n_operands)
{
  gboolean is_float = tiny_dtype_is_float (dtype);
  if (self == CONF_ALL)
    return tiny_dtype_get_n_bytes (dtype) * n_operands <= 2;
  if (dtype == TINY_DTYPE_BOOL)
    return self == CONF_BOUNDARY;
  return is_float || (self != CONF_SUBNORMAL && self != CONF_SPECIAL);
}

gsize
conf_class_get_n_needed (ConfClass self, TinyDType dtype, guint n_operands)
{
  if (self == CONF_ALL)
    return (gsize) 1 << (dtype == TINY_DTYPE_BOOL
                             ? n_operands
                             : 8 * tiny_dtype_get_n_bytes (dtype) * n_operands);
  if (self != CONF_SPECIAL && self != CONF_BOUNDARY)
    return 0;
  Edges edges = { 0 };
  fill_edges (&edges, self, dtype);
  return n_operands == 1 ? edges.n : (gsize) edges.n * edges.n;
}

void
conf_data_fill (
    ConfClass self, TinyOp op, TinyDType dtype, guint slot, guint64 seed, gint64 *out, gsize n)
{
  Edges edges = { 0 };
  guint64 state = seed * 1000003 + (guint64) op * 8191 + dtype * 131 + slot * 17 + self;
  if (op == TINY_OP_WHERE && slot == 0)
    dtype = TINY_DTYPE_BOOL;
  if (self == CONF_SPECIAL || self == CONF_BOUNDARY)
    fill_edges (&edges, self, dtype);
  for (gsize i = 0; i < n; i++) {
    gint64 bits;
    guint64 raw = 0;
    gsize at = slot == 0 ? i : slot == 1 ? i / MAX (edges.n, 1) : i / 7 + i;
    if (dtype == TINY_DTYPE_BOOL && self != CONF_ALL)
      bits = draw (&state) & 1;
    else if (self == CONF_ALL)
      bits = element_of_all (dtype, slot, i);
    else if (edges.n > 0)
      bits = edges.v[at % edges.n];
    else {
      if (tiny_dtype_is_float (dtype))
        conf_encode (dtype, &raw, 0,
                     conf_from_double (draw_float (self, op, dtype, slot, &state)));
      else
        raw = draw_integer (self, dtype, &state);
      bits = conf_decode (dtype, &raw, 0);
    }
    out[i] = fit (op, dtype, slot, i, bits);
  }
}
