/* SPDX-License-Identifier: MIT
 *
 * Proves that the LLVM renderer's casts and constants are the numbers they should be, also where the result is open. */
#include "harness.h"

#include <math.h>

#include "../case-fails.h"
#include "values.h"

/* ---- casts ---- */

static double
to_double (unsigned dtype, const void *data)
{
  Value v = { 0 };
  memcpy (&v, data, size_of (dtype));
  switch (dtype) {
  case TINY_DTYPE_BOOL:
    return v.b;
#define CASE(DTYPE, field, type)                                                               \
  case TINY_DTYPE_##DTYPE:                                                                     \
    return (double) v.field;
    INT_TYPES (CASE)
    FLOAT_TYPES (CASE)
#undef CASE
  case TINY_DTYPE_F16: {
    int exponent = v.u16 >> 10 & 31, mantissa = v.u16 & 1023;
    double r = exponent == 0    ? ldexp (mantissa, -24)
               : exponent == 31 ? (mantissa ? NAN : INFINITY)
                                : ldexp (1024 + mantissa, exponent - 25);
    return v.u16 >> 15 ? -r : r;
  }
  }
  return 0;
}

static void
from_double (unsigned dtype, double real, void *data)
{
  Value v = { 0 };
  switch (dtype) {
  case TINY_DTYPE_BOOL:
    v.b = real != 0;
    break;
#define CASE(DTYPE, field, type)                                                               \
  case TINY_DTYPE_##DTYPE:                                                                     \
    v.field = (type) real;                                                                     \
    break;
    INT_TYPES (CASE)
    FLOAT_TYPES (CASE)
#undef CASE
  case TINY_DTYPE_F16: { /* the nearest by trying, ties to even */
    double best = INFINITY;
    for (unsigned bits = 0; bits < 0x7c00; bits++) {
      uint16_t candidate = (uint16_t) (bits | (signbit (real) ? 0x8000 : 0));
      double distance = fabs (to_double (dtype, &candidate) - real);
      if (distance < best || (distance == best && !(bits & 1))) {
        best = distance;
        v.u16 = candidate;
      }
    }
    break;
  }
  }
  memcpy (data, &v, size_of (dtype));
}

/* Values that every dtype holds, and for the float dtypes fractions whose whole part it holds, in f16 too. */
static void
check_cast (unsigned from, unsigned to, unsigned lanes)
{
  enum { N = 16 };
  static const double small[N] = { 0, 1, 2, 3, 5, 17, 100, 127, 7, 1, 0, 0, 64, 99, 12, 31 };
  static const double real[N]
      = { 0,     0.5,  1.75, 2.999,    5.0001,    17.25,    100.125, 127.9,
          7.003, 1e-5, 3e-8, 0.333333, 64.031251, 99.96877, 12.1,    31.01563 };
  bool is_real = from >= TINY_DTYPE_F16;
  g_autofree Program *p = program_new ("cast");
  uint32_t out = program_param (p, to, N, TINY_PARAM_WRITE);
  uint32_t in = program_param (p, from, N, TINY_PARAM_READ);
  uint32_t bound = ADD (CONST, I64, 1, N / lanes), k = ADD (RANGE, I64, 1, 0, bound);
  uint32_t width = ADD (CONST, I64, 1, lanes), at = ADD (MUL, I64, 1, 0, k, width);
  uint32_t x = add (p, TINY_INSTR_LOAD, from, lanes, 0, in, at, -1);
  uint32_t y = add (p, TINY_INSTR_CAST, to, lanes, 0, x, -1);
  ADD (STORE, VOID, lanes, 0, out, at, y);
  ADD (END, VOID, 1, 0, k);
  uint8_t data[2][N * 8], expected[N * 8];
  for (int i = 0; i < N; i++) {
    from_double (from, is_real ? real[i] : small[i], data[1] + i * size_of (from));
    from_double (to, to_double (from, data[1] + i * size_of (from)),
                 expected + i * size_of (to));
  }
  Array arrays[2] = { { data[0], N * size_of (to) }, { data[1], N * size_of (from) } };
  TinyPluginProgram *program = program_build (p);
  program_run (program, arrays, 2, NULL, 0, one_point);
  program_unload (program);
  for (int i = 0; i < N; i++)
    if (memcmp (data[0] + i * size_of (to), expected + i * size_of (to), size_of (to)) != 0) {
      CASE_FAILS ("cast %u to %u, %u lanes, %g: %g instead of %g", from, to, lanes,
                  to_double (from, data[1] + i * size_of (from)),
                  to_double (to, data[0] + i * size_of (to)),
                  to_double (to, expected + i * size_of (to)));
      break;
    }
}

static void
test_casts (void)
{
  bool has_f16 = (h.target.ops[TINY_DTYPE_F16] & TINY_INSTR_BIT (TINY_INSTR_CAST)) != 0;
  for (unsigned from = TINY_DTYPE_BOOL; from <= TINY_DTYPE_F64; from++)
    for (unsigned to = TINY_DTYPE_BOOL; to <= TINY_DTYPE_F64; to++) {
      bool is_skipped = false;
      for (unsigned dtype = TINY_DTYPE_F8E4M3; dtype <= TINY_DTYPE_BF16; dtype++)
        is_skipped
            = is_skipped
              || ((from == dtype || to == dtype) && (dtype != TINY_DTYPE_F16 || !has_f16));
      if (is_skipped)
        continue;
      check_cast (from, to, 1);
      check_cast (from, to, 16);
    }
}

/* ---- what is beyond the dtype ---- */

static void
test_cast_out_of_range (void)
{
  static const float values[16]
      = { NAN,   INFINITY, -INFINITY, 1e20f, -1e20f, -1,    3e9f,  -3e9f,
          5e18f, 2e19f,    1e-30f,    -0.0f, 256,    65536, 1e38f, -1e38f };
  for (unsigned to = TINY_DTYPE_BOOL; to <= TINY_DTYPE_U64; to++) {
    g_autofree Program *p = program_new ("out_of_range");
    uint32_t out = program_param (p, to, 16, TINY_PARAM_WRITE);
    uint32_t in = program_param (p, TINY_DTYPE_F32, 16, TINY_PARAM_READ);
    uint32_t zero = ADD (CONST, I64, 1, 0), x = ADD (LOAD, F32, 16, 0, in, zero);
    uint32_t y = add (p, TINY_INSTR_CAST, to, 16, 0, x, -1);
    /* The same value must be seen twice: y ^ y is 0 whatever y is. */
    uint32_t same = add (p, TINY_INSTR_XOR, to, 16, 0, y, y, -1);
    ADD (STORE, VOID, 16, 0, out, zero, same);
    uint8_t data[128], expected[128] = { 0 };
    float copy[16];
    memcpy (copy, values, sizeof copy);
    Array arrays[2] = { { data, 16 * size_of (to) }, { copy, sizeof copy } };
    TinyPluginProgram *program = program_build (p);
    program_run (program, arrays, 2, NULL, 0, one_point);
    program_unload (program);
    g_assert_cmpmem (data, 16 * size_of (to), expected, 16 * size_of (to));
  }
}

/* ---- constants of 16 bits ---- */

static void
test_16_bit_constants (void)
{
  static const struct {
    double value;
    uint16_t f16, bf16;
  } cases[] = { { 1.0, 0x3c00, 0x3f80 },
                { -2.0, 0xc000, 0xc000 },
                { 65504, 0x7bff, 0x4780 },
                { 65520, 0x7c00, 0x4780 },
                { 65519.9, 0x7bff, 0x4780 },
                { 6e-8, 0x0001, 0x3381 },
                { 2.9802322387695312e-8, 0x0000, 0x3300 },
                { INFINITY, 0x7c00, 0x7f80 },
                { 1.00048828125, 0x3c00, 0x3f80 },
                { 1.00146484375, 0x3c02, 0x3f80 },
                { 3.3961775292304601e38, 0x7c00, 0x7f80 } };
  for (unsigned i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree Program *p = program_new ("constants");
    uint32_t f = program_param (p, TINY_DTYPE_F16, 1, TINY_PARAM_WRITE);
    uint32_t b = program_param (p, TINY_DTYPE_BF16, 1, TINY_PARAM_WRITE);
    uint32_t zero = ADD (CONST, I64, 1, 0), x = ADD (CONST, F16, 1, bits_of (cases[i].value));
    uint32_t y = ADD (CONST, BF16, 1, bits_of (cases[i].value));
    ADD (STORE, VOID, 1, 0, f, zero, x);
    ADD (STORE, VOID, 1, 0, b, zero, y);
    uint16_t data[2] = { 0, 0 };
    Array arrays[2] = { { &data[0], 2 }, { &data[1], 2 } };
    TinyPluginProgram *program = program_build (p);
    program_run (program, arrays, 2, NULL, 0, one_point);
    program_unload (program);
    g_assert_cmphex (data[0], ==, cases[i].f16);
    g_assert_cmphex (data[1], ==, cases[i].bf16);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  harness_open ();
  g_test_add_func ("/plugins-cpu/llvm-casts/casts", test_casts);
  g_test_add_func ("/plugins-cpu/llvm-casts/cast-out-of-range", test_cast_out_of_range);
  g_test_add_func ("/plugins-cpu/llvm-casts/16-bit-constants", test_16_bit_constants);
  int result = g_test_run ();
  harness_close ();
  return result;
}
