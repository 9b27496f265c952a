/* SPDX-License-Identifier: MIT
 *
 * program-elementwise.c: steps whose elements are each made of the elements at the same place. */
#include "program-steps.h"

/* ---- of a form of their own ---- */
TinyTensor *
make_bitwise_not (Maker *self)
{
  return T (bitwise_not) (operand_integer (self->x[0]));
}

TinyTensor *
make_div (Maker *self)
{
  return T (div) (self->x[0], operand_partner (self, self->x[0], self->x[1]), NULL);
}

TinyTensor *
make_gelu (Maker *self)
{
  return T (gelu) (self->x[0], "tanh");
}

/* Mostly by something that is not 0. */
static TinyTensor *
divisor (Maker *self)
{
  TinyTensor *y = operand_partner (self, self->x[0], self->x[1]);
  if (maker_number (self, 2, 8) == 0)
    return y;
  if (is_float (y))
    return T (add_number) (T (abs) (y), 0.5);
  return T (bitwise_or) (y, T (scalar) (1));
}

TinyTensor *
make_idiv (Maker *self)
{
  return T (floor_divide) (self->x[0], divisor (self));
}

TinyTensor *
make_mod (Maker *self)
{
  return T (mod) (self->x[0], divisor (self));
}

/* Mostly by less than the width. */
TinyTensor *
make_shift (Maker *self)
{
  TinyTensor *x = operand_integer (self->x[0]),
             *y = operand_integer (operand_partner (self, self->x[0], self->x[1]));
  if (maker_number (self, 2, 8) != 0)
    y = T (bitwise_and) (y, T (scalar) (7));
  return maker_number (self, 3, 2) ? T (lshift) (x, y) : T (rshift) (x, y);
}

TinyTensor *
make_where (Maker *self)
{
  TinyTensor *gate = operand_partner (self, self->x[0], self->x[2]);
  return T (where) (gate, self->x[0], operand_partner (self, self->x[0], self->x[1]));
}

TinyTensor *
make_cast (Maker *self)
{
  g_string_append_printf (self->note, ", %s",
                          tiny_dtype_to_string ((TinyDType) self->step->dtype));
  return T (cast) (self->x[0], (TinyDType) self->step->dtype);
}

TinyTensor *
make_bitcast (Maker *self)
{
  TinyDType from = tiny_tensor_get_dtype (self->x[0]);
  for (guint i = 0; i < N_STEP_DTYPES; i++) {
    TinyDType to = step_dtypes[(i + self->step->p[0]) % N_STEP_DTYPES];
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
  double value = values[maker_number (self, 4, G_N_ELEMENTS (values))];
  maker_note_number (self, value);
  return value;
}

TinyTensor *
make_add_number (Maker *self)
{
  return T (add_number) (self->x[0], constant (self));
}

TinyTensor *
make_mul_number (Maker *self)
{
  return T (mul_number) (self->x[0], constant (self));
}

TinyTensor *
make_by_number (Maker *self)
{
  TinyTensor *y = T (scalar) (constant (self));
  switch (maker_number (self, 0, 6)) {
  case 0:
    return T (lt) (self->x[0], y);
  case 1:
    return T (maximum) (self->x[0], y);
  case 2:
    return T (mod) (self->x[0], T (scalar) (1 + maker_number (self, 1, 9)));
  case 3:
    return T (floor_divide) (self->x[0], T (scalar) (1 + maker_number (self, 1, 9)));
  case 4:
    return T (div) (self->x[0], T (scalar) (1 + maker_number (self, 1, 9)), NULL);
  default:
    return T (pow) (self->x[0], T (scalar) (maker_number (self, 1, 4)));
  }
}

TinyTensor *
make_clamp (Maker *self)
{
  return T (clamp) (self->x[0], T (scalar) (-1.5), T (scalar) (2));
}

/* ---- operations as they are ---- */
#define UNARY(name)                                                                            \
  TinyTensor *make_##name (Maker *self) { return T (name) (self->x[0]); }
#define BINARY(name)                                                                           \
  TinyTensor *make_##name (Maker *self)                                                        \
  {                                                                                            \
    return T (name) (self->x[0], operand_partner (self, self->x[0], self->x[1]));              \
  }
#define BITS(name)                                                                             \
  TinyTensor *make_##name (Maker *self)                                                        \
  {                                                                                            \
    return T (name) (operand_integer (self->x[0]),                                             \
                     operand_integer (operand_partner (self, self->x[0], self->x[1])));        \
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
