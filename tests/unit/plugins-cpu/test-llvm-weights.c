/* SPDX-License-Identifier: MIT
 *
 * Proves what the LLVM renderer does for products with narrow weights: values of four bits are looked up,
 * what is read once is asked for ahead, products of short integers take one instruction, lanes are
 * chosen by one shuffle. */
#include "harness.h"

#include <stdlib.h>

static const char wide_arch[] = "x86_64,sapphirerapids", narrow_arch[] = "x86_64,haswell";

/* How often @word stands in @p's code for @arch. */
static unsigned
count_in_code (Program *p, const char *arch, const char *word)
{
  char *text = program_list (p, arch);
  unsigned n = 0;
  for (const char *at = text; (at = strstr (at, word)) != NULL; at++)
    n++;
  free (text);
  return n;
}

/* ---- tables ---- */
enum { N_BYTES = 256, L = 16 };

/* out[i] = ((bytes[i] >> shift AND mask) - 8) as f32, times scale[0]. */
static Program *
build_codes (int64_t shift, int64_t mask)
{
  Program *p = program_new ("codes");
  uint32_t out = program_param (p, TINY_DTYPE_F32, N_BYTES, TINY_PARAM_WRITE);
  uint32_t bytes = program_param (p, TINY_DTYPE_U8, N_BYTES, TINY_PARAM_READ);
  uint32_t scales = program_param (p, TINY_DTYPE_F32, 1, TINY_PARAM_READ);
  p->linear.grid[0] = N_BYTES / L;
  uint32_t grid = ADD (GRID, I64, 1, 0), width = ADD (CONST, I64, 1, L);
  uint32_t at = ADD (MUL, I64, 1, 0, grid, width), zero = ADD (CONST, I64, 1, 0);
  uint32_t byte = ADD (LOAD, U8, L, 0, bytes, at), x = ADD (CAST, I32, L, 0, byte);
  uint32_t count = ADD (CONST, I32, L, shift), low = ADD (CONST, I32, L, mask);
  uint32_t shifted = ADD (SHR, I32, L, 0, x, count);
  uint32_t code = ADD (AND, I32, L, 0, low, shifted), eight = ADD (CONST, I32, L, 8);
  uint32_t q = ADD (SUB, I32, L, 0, code, eight), real = ADD (CAST, F32, L, 0, q);
  uint32_t scale = ADD (LOAD, F32, 1, 0, scales, zero);
  uint32_t wide = ADD (VECTOR, F32, L, 0, scale);
  uint32_t weight = ADD (MUL, F32, L, 0, real, wide);
  ADD (STORE, VOID, L, 0, out, at, weight);
  return p;
}

/* Whatever the mask and the bits above it, the values are those of the formula; a mask of more bits
 * than a register has lanes for is none of this. */
static void
test_look_up (void)
{
  static const int64_t masks[] = { 15, 3, 31, 0, -1 };
  for (unsigned m = 0; m < G_N_ELEMENTS (masks); m++) {
    for (int64_t shift = 0; shift <= 4; shift += 4) {
      g_autofree Program *p = build_codes (shift, masks[m]);
      bool is_code = masks[m] >= 0 && masks[m] < L;
      g_assert_cmpuint (count_in_code (p, wide_arch, "vperm"), ==, is_code);
      g_assert_cmpuint (count_in_code (p, narrow_arch, "vperm"), ==, 0);
      float out[N_BYTES], scale = 0.3f;
      uint8_t bytes[N_BYTES];
      for (int i = 0; i < N_BYTES; i++)
        bytes[i] = (uint8_t) i;
      TinyPluginProgram *program = program_build (p);
      Array arrays[3]
          = { { out, sizeof out }, { bytes, sizeof bytes }, { &scale, sizeof scale } };
      program_run (program, arrays, 3, NULL, 0, p->linear.grid);
      for (int i = 0; i < N_BYTES; i++)
        g_assert_cmpfloat (out[i], ==, (float) ((i >> shift & masks[m]) - 8) * scale);
      program_unload (program);
    }
  }
}

/* Values of two codes have no table. */
static void
test_two_codes (void)
{
  g_autofree Program *p = program_new ("two_codes");
  uint32_t out = program_param (p, TINY_DTYPE_I32, L, TINY_PARAM_WRITE);
  uint32_t in = program_param (p, TINY_DTYPE_I32, L, TINY_PARAM_READ);
  uint32_t at = ADD (CONST, I64, 1, 0), x = ADD (LOAD, I32, L, 0, in, at);
  uint32_t low = ADD (CONST, I32, L, 15), four = ADD (CONST, I32, L, 4);
  uint32_t high = ADD (SHR, I32, L, 0, x, four);
  uint32_t a = ADD (AND, I32, L, 0, x, low), b = ADD (AND, I32, L, 0, high, low);
  uint32_t a1 = ADD (MUL, I32, L, 0, a, a), b1 = ADD (MUL, I32, L, 0, b, four);
  uint32_t sum = ADD (ADD, I32, L, 0, a1, b1), twice = ADD (SUB, I32, L, 0, sum, low);
  ADD (STORE, VOID, L, 0, out, at, twice);
  int32_t result[L], values[L];
  for (int i = 0; i < L; i++)
    values[i] = i * 17 + 5;
  TinyPluginProgram *program = program_build (p);
  Array arrays[2] = { { result, sizeof result }, { values, sizeof values } };
  program_run (program, arrays, 2, NULL, 0, p->linear.grid);
  for (int i = 0; i < L; i++) {
    int32_t x0 = values[i] & 15, x1 = values[i] >> 4 & 15;
    g_assert_cmpint (result[i], ==, x0 * x0 + x1 * 4 - 15);
  }
  program_unload (program);
}

/* ---- reading ahead ---- */

/* out[row] = sum over k of x[k] * w[row * K + k * step] */
static Program *
build_matvec (int64_t n_rows, int64_t n_columns, int64_t step)
{
  Program *p = program_new ("matvec");
  int64_t n_rounds = n_columns / (L * step);
  uint32_t out = program_param (p, TINY_DTYPE_F32, (uint64_t) (n_rows * L), TINY_PARAM_WRITE);
  uint32_t w
      = program_param (p, TINY_DTYPE_F32, (uint64_t) (n_rows * n_columns), TINY_PARAM_READ);
  uint32_t x = program_param (p, TINY_DTYPE_F32, (uint64_t) n_columns, TINY_PARAM_READ);
  p->linear.grid[0] = (uint32_t) n_rows;
  uint32_t row = ADD (GRID, I64, 1, 0), columns = ADD (CONST, I64, 1, n_columns);
  uint32_t base = ADD (MUL, I64, 1, 0, row, columns);
  uint32_t sum = ADD (REGISTER, F32, L, 0), zero = ADD (CONST, F32, L, bits_of (0));
  ADD (STORE, VOID, L, 0, sum, zero);
  uint32_t rounds = ADD (CONST, I64, 1, n_rounds), width = ADD (CONST, I64, 1, L * step);
  uint32_t k = ADD (RANGE, I64, 1, 0, rounds);
  uint32_t along = ADD (MUL, I64, 1, 0, width, k);
  uint32_t at = ADD (ADD, I64, 1, 0, along, base);
  uint32_t weight = ADD (LOAD, F32, L, 0, w, at), value = ADD (LOAD, F32, L, 0, x, along);
  uint32_t old = ADD (LOAD, F32, L, 0, sum);
  uint32_t next = ADD (MULACC, F32, L, 0, weight, value, old);
  ADD (STORE, VOID, L, 0, sum, next);
  ADD (END, VOID, 1, 0, k);
  uint32_t total = ADD (LOAD, F32, L, 0, sum), lanes = ADD (CONST, I64, 1, L);
  uint32_t place = ADD (MUL, I64, 1, 0, row, lanes);
  ADD (STORE, VOID, L, 0, out, place, total);
  return p;
}

/* The matrix is read once, from one end to the other; the vector by every row. */
static void
test_ahead (void)
{
  g_autofree Program *large = build_matvec (512, 1024, 1);
  g_assert_cmpuint (count_in_code (large, wide_arch, "prefetch"), ==, 1);
  g_assert_cmpuint (count_in_code (large, narrow_arch, "prefetch"), >=, 1);
  g_autofree Program *small = build_matvec (4, 1024, 1); /* stays in a cache */
  g_assert_cmpuint (count_in_code (small, wide_arch, "prefetch"), ==, 0);
  g_autofree Program *jumps = build_matvec (512, 4096, 64);
  g_assert_cmpuint (count_in_code (jumps, wide_arch, "prefetch"), ==, 0);
  g_autofree Program *again = build_matvec (512, 1024, 1);
  again->linear.grid[1] = 2; /* all of it is read twice */
  g_assert_cmpuint (count_in_code (again, wide_arch, "prefetch"), ==, 0);
}

/* ---- products of short integers ---- */

/* out[0 … L-1] = sum over k of x[k * L + i] * y[k * L + i], as i32. */
static Program *
build_dot (unsigned dtype, unsigned lanes, int64_t n_rounds)
{
  Program *p = program_new ("dot");
  uint64_t n = (uint64_t) n_rounds * lanes;
  uint32_t out = program_param (p, TINY_DTYPE_I32, lanes, TINY_PARAM_WRITE);
  uint32_t x = program_param (p, dtype, n, TINY_PARAM_READ);
  uint32_t y = program_param (p, dtype, n, TINY_PARAM_READ);
  uint32_t sum = ADD (REGISTER, I32, lanes, 0), zero = ADD (CONST, I32, lanes, 0);
  ADD (STORE, VOID, lanes, 0, sum, zero);
  uint32_t rounds = ADD (CONST, I64, 1, n_rounds), width = ADD (CONST, I64, 1, lanes);
  uint32_t k = ADD (RANGE, I64, 1, 0, rounds), at = ADD (MUL, I64, 1, 0, k, width);
  uint32_t a = add (p, TINY_INSTR_LOAD, dtype, lanes, 0, x, at, -1);
  uint32_t b = add (p, TINY_INSTR_LOAD, dtype, lanes, 0, y, at, -1);
  uint32_t wide_a = ADD (CAST, I32, lanes, 0, a), wide_b = ADD (CAST, I32, lanes, 0, b);
  uint32_t product = ADD (MUL, I32, lanes, 0, wide_a, wide_b);
  uint32_t old = ADD (LOAD, I32, lanes, 0, sum);
  uint32_t next = ADD (ADD, I32, lanes, 0, product, old);
  ADD (STORE, VOID, lanes, 0, sum, next);
  ADD (END, VOID, 1, 0, k);
  uint32_t total = ADD (LOAD, I32, lanes, 0, sum), start = ADD (CONST, I64, 1, 0);
  ADD (STORE, VOID, lanes, 0, out, start, total);
  return p;
}

#define CHECK_DOT(DTYPE, type, lanes)                                                          \
  do {                                                                                         \
    enum { ROUNDS = 37, N = ROUNDS * lanes };                                                  \
    static const int64_t edges[] = { INT16_MIN, INT16_MAX, INT8_MIN, INT8_MAX, -1, 0, 1 };     \
    g_autofree Program *p = build_dot (TINY_DTYPE_##DTYPE, lanes, ROUNDS);                     \
    type x[N], y[N];                                                                           \
    int32_t out[lanes], expected[lanes] = { 0 };                                               \
    for (int i = 0; i < N; i++) {                                                              \
      x[i] = (type) (i % 3 == 0 ? edges[i % 7] : g_test_rand_int ());                          \
      y[i] = (type) (i % 5 == 0 ? edges[i / 5 % 7] : g_test_rand_int ());                      \
      uint32_t product = (uint32_t) ((int64_t) x[i] * y[i]);                                   \
      expected[i % lanes] = (int32_t) ((uint32_t) expected[i % lanes] + product);              \
    }                                                                                          \
    TinyPluginProgram *program = program_build (p);                                            \
    Array arrays[3] = { { out, sizeof out }, { x, sizeof x }, { y, sizeof y } };               \
    program_run (program, arrays, 3, NULL, 0, p->linear.grid);                                 \
    g_assert_cmpmem (out, sizeof out, expected, sizeof expected);                              \
    program_unload (program);                                                                  \
  } while (0)

/* Integers that 16 bits hold are multiplied and added by one instruction where there is one. */
static void
test_dot (void)
{
  CHECK_DOT (I8, int8_t, 16);
  CHECK_DOT (U8, uint8_t, 16);
  CHECK_DOT (I16, int16_t, 16);
  CHECK_DOT (U16, uint16_t, 16);
  CHECK_DOT (I8, int8_t, 8);
  CHECK_DOT (I16, int16_t, 4);
  CHECK_DOT (I16, int16_t, 2);
  g_autofree Program *wide = build_dot (TINY_DTYPE_I8, 16, 64);
  g_assert_cmpuint (count_in_code (wide, wide_arch, "vpdpwssd"), ==, 1);
  g_assert_cmpuint (count_in_code (wide, wide_arch, "vpmulld"), ==, 0);
  g_autofree Program *narrow = build_dot (TINY_DTYPE_I16, 8, 64);
  g_assert_cmpuint (count_in_code (narrow, narrow_arch, "vpmaddwd"), ==, 1);
  g_autofree Program *too_wide = build_dot (TINY_DTYPE_U16, 16, 64);
  g_assert_cmpuint (count_in_code (too_wide, wide_arch, "vpmulld"), ==, 1);
}

/* ---- shuffles ---- */
static void
test_shuffle (void)
{
  g_autofree Program *p = program_new ("turned");
  uint32_t out = program_param (p, TINY_DTYPE_F32, 4, TINY_PARAM_WRITE);
  uint32_t in = program_param (p, TINY_DTYPE_F32, L, TINY_PARAM_READ);
  uint32_t at = ADD (CONST, I64, 1, 0), x = ADD (LOAD, F32, L, 0, in, at);
  uint32_t a = ADD (EXTRACT, F32, 1, 15, x), b = ADD (EXTRACT, F32, 1, 2, x);
  uint32_t c = ADD (EXTRACT, F32, 1, 2, x), d = ADD (EXTRACT, F32, 1, 7, x);
  uint32_t turned = ADD (VECTOR, F32, 4, 0, a, b, c, d);
  ADD (STORE, VOID, 4, 0, out, at, turned);
  float result[4], values[L];
  for (int i = 0; i < L; i++)
    values[i] = (float) i;
  TinyPluginProgram *program = program_build (p);
  Array arrays[2] = { { result, sizeof result }, { values, sizeof values } };
  program_run (program, arrays, 2, NULL, 0, p->linear.grid);
  static const float expected[4] = { 15, 2, 2, 7 };
  g_assert_cmpmem (result, sizeof result, expected, sizeof expected);
  program_unload (program);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  harness_open ();
  g_test_add_func ("/plugins-cpu/llvm-weights/look-up", test_look_up);
  g_test_add_func ("/plugins-cpu/llvm-weights/two-codes", test_two_codes);
  g_test_add_func ("/plugins-cpu/llvm-weights/ahead", test_ahead);
  g_test_add_func ("/plugins-cpu/llvm-weights/dot", test_dot);
  g_test_add_func ("/plugins-cpu/llvm-weights/shuffle", test_shuffle);
  int result = g_test_run ();
  harness_close ();
  return result;
}
