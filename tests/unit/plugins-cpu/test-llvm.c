/* SPDX-License-Identifier: MIT
 *
 * Proves that the LLVM renderer's code does what whole programs say: masks, gates, registers, loops, branches; and
 * that mistakes are refused. What single ops and casts give is in test-llvm-ops.c and test-llvm-casts.c. */
#include "harness.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "values.h"

/* ---- a vector add with a masked tail ---- */

static void
test_add_tail (void)
{
  enum { N = 1003, L = 16 };
  g_autofree Program *p = program_new ("add_tail");
  uint32_t out = program_param (p, TINY_DTYPE_F32, N, TINY_PARAM_WRITE);
  uint32_t a = program_param (p, TINY_DTYPE_F32, N, TINY_PARAM_READ);
  uint32_t b = program_param (p, TINY_DTYPE_F32, N, TINY_PARAM_READ);
  p->linear.grid[0] = (N + L - 1) / L;
  uint32_t grid = ADD (GRID, I64, 1, 0), width = ADD (CONST, I64, 1, L);
  uint32_t at = ADD (MUL, I64, 1, 0, grid, width);
  uint32_t lanes[L];
  for (int i = 0; i < L; i++)
    lanes[i] = ADD (CONST, I64, 1, i);
  uint32_t iota = ADD (VECTOR, I64, L, 0, lanes[0], lanes[1], lanes[2], lanes[3], lanes[4],
                       lanes[5], lanes[6], lanes[7], lanes[8], lanes[9], lanes[10], lanes[11],
                       lanes[12], lanes[13], lanes[14], lanes[15]);
  uint32_t places = ADD (ADD, I64, L, 0, iota, at), n = ADD (CONST, I64, 1, N);
  uint32_t gate = ADD (CMPLT, BOOL, L, 0, places, n);
  uint32_t zero = ADD (CONST, F32, 1, bits_of (7));
  uint32_t x = ADD (LOAD, F32, L, 0, a, at, gate, zero);
  uint32_t y = ADD (LOAD, F32, L, 0, b, at, gate, zero);
  uint32_t sum = ADD (ADD, F32, L, 0, x, y);
  ADD (STORE, VOID, L, 0, out, at, sum, gate);

  float data[3][N];
  for (int i = 0; i < N; i++) {
    data[1][i] = i;
    data[2][i] = 0.5f * i;
  }
  TinyPluginProgram *program = program_build (p);
  Array arrays[3] = { { data[0], sizeof data[0] },
                      { data[1], sizeof data[1] },
                      { data[2], sizeof data[2] } };
  program_run (program, arrays, 3, NULL, 0, p->linear.grid);
  for (int i = 0; i < N; i++)
    g_assert_cmpfloat (data[0][i], ==, 1.5f * i);
  program_unload (program);
}

/* ---- sum of each row, through a register, with a variable bound ---- */

static void
test_reduce (void)
{
  enum { ROWS = 37, COLUMNS = 50 };
  g_autofree Program *p = program_new ("row_sum");
  p->linear.n_variables = 1;
  p->linear.grid[0] = ROWS;
  uint32_t out = program_param (p, TINY_DTYPE_F64, ROWS, TINY_PARAM_WRITE);
  uint32_t in = program_param (p, TINY_DTYPE_F32, ROWS * COLUMNS, TINY_PARAM_READ);
  uint32_t row = ADD (GRID, I32, 1, 0), n = ADD (CONST, I32, 1, COLUMNS);
  uint32_t base = ADD (MUL, I32, 1, 0, row, n);
  uint32_t total = ADD (REGISTER, F64, 1, 0), zero = ADD (CONST, F64, 1, bits_of (0));
  ADD (STORE, VOID, 1, 0, total, zero);
  uint32_t bound = ADD (VARIABLE, I32, 1, 0);
  uint32_t k = ADD (RANGE, I32, 1, 0, bound);
  uint32_t at = ADD (ADD, I32, 1, 0, base, k);
  uint32_t x = ADD (LOAD, F32, 1, 0, in, at), wide = ADD (CAST, F64, 1, 0, x);
  uint32_t old = ADD (LOAD, F64, 1, 0, total), sum = ADD (ADD, F64, 1, 0, old, wide);
  ADD (STORE, VOID, 1, 0, total, sum);
  ADD (END, VOID, 1, 0, k);
  uint32_t result = ADD (LOAD, F64, 1, 0, total);
  ADD (STORE, VOID, 1, 0, out, row, result);
  TinyPluginProgram *program = program_build (p);

  static const int64_t bounds[] = { COLUMNS, 3, 0 };
  for (unsigned b = 0; b < G_N_ELEMENTS (bounds); b++) {
    double sums[ROWS];
    float values[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
      values[i] = (float) (i % 101) * 0.25f;
    Array arrays[2] = { { sums, sizeof sums }, { values, sizeof values } };
    program_run (program, arrays, 2, &bounds[b], 1, p->linear.grid);
    for (int i = 0; i < ROWS; i++) {
      double expected = 0;
      for (int j = 0; j < bounds[b]; j++)
        expected += values[i * COLUMNS + j];
      g_assert_cmpfloat (sums[i], ==, expected);
    }
  }
  program_unload (program);
}

/* ---- gates never touch what they hide ---- */

/* A function over the last bytes before a page that may not be touched. */
static uint8_t *
new_guarded (size_t n_bytes)
{
  size_t page = (size_t) sysconf (_SC_PAGESIZE);
  uint8_t *memory
      = mmap (NULL, page * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  g_assert_true (memory != MAP_FAILED);
  g_assert_cmpint (mprotect (memory + page, page, PROT_NONE), ==, 0);
  return memory + page - n_bytes;
}

/* Loads from and stores into 5 guarded elements with gates of 16 lanes, or one scalar gate. The
 * guarded memory is no buffer, so its address comes in as the difference of two: the index. */
static void
check_gate (unsigned dtype, unsigned lanes, bool is_scalar_gate)
{
  enum { N = 5 };
  unsigned n_bytes = size_of (dtype);
  uint8_t *guarded = new_guarded (N * n_bytes);
  TinyPluginError error = new_error ();
  TinyPluginBuffer *buffer;
  void *base;
  g_assert_cmpint (h.table->alloc (h.device, 64, &buffer, &error), ==, 0);
  g_assert_cmpint (h.table->map (h.device, buffer, &base, &error), ==, 0);

  g_autofree Program *p = program_new ("gate");
  p->linear.n_variables = 2;
  uint32_t memory = program_param (p, dtype, N, TINY_PARAM_READ | TINY_PARAM_WRITE);
  uint32_t at = ADD (VARIABLE, I64, 1, 0), n = ADD (VARIABLE, I64, 1, 1), gate;
  if (is_scalar_gate) {
    uint32_t zero = ADD (CONST, I64, 1, 0);
    gate = ADD (CMPLT, BOOL, 1, 0, zero, n);
  } else {
    uint32_t places[16];
    for (unsigned i = 0; i < 16; i++)
      places[i] = ADD (CONST, I64, 1, i);
    uint32_t iota
        = ADD (VECTOR, I64, 16, 0, places[0], places[1], places[2], places[3], places[4],
               places[5], places[6], places[7], places[8], places[9], places[10], places[11],
               places[12], places[13], places[14], places[15]);
    gate = ADD (CMPLT, BOOL, 16, 0, iota, n);
  }
  uint32_t other = add (p, TINY_INSTR_CONST, dtype, lanes, 0, -1);
  uint32_t x = add (p, TINY_INSTR_LOAD, dtype, lanes, 0, memory, at, gate, other, -1);
  ADD (STORE, VOID, lanes, 0, memory, at, x, gate);
  TinyPluginProgram *program = program_build (p);
  for (int n_open = 0; n_open <= N; n_open++) {
    if (is_scalar_gate && n_open > 0 && lanes > N)
      break;
    int64_t variables[2] = { (guarded - (uint8_t *) base) / (int64_t) n_bytes, n_open };
    if (is_scalar_gate && n_open == 0)
      variables[0] += N; /* wholly inside the forbidden page */
    TinySpan span = { buffer, 0, 64 };
    TinyCommand command = { .struct_size = sizeof command,
                            .type = TINY_COMMAND_DISPATCH,
                            .program = program,
                            .buffers = &span,
                            .variables = variables,
                            .n_buffers = 1,
                            .n_variables = 2,
                            .grid = { 1, 1, 1 } };
    TinySubmit submit = { .struct_size = sizeof submit, .commands = &command, .n_commands = 1 };
    g_assert_cmpint ((guarded - (uint8_t *) base) % (int64_t) n_bytes, ==, 0);
    g_assert_cmpint (h.table->submit (h.device, h.queue, &submit, &error), ==, 0);
  }
  program_unload (program);
  h.table->free (h.device, buffer);
  munmap (guarded + N * n_bytes - sysconf (_SC_PAGESIZE), 2 * (size_t) sysconf (_SC_PAGESIZE));
}

static void
test_gates (void)
{
  static const unsigned dtypes[]
      = { TINY_DTYPE_BOOL, TINY_DTYPE_I8, TINY_DTYPE_F16, TINY_DTYPE_F32, TINY_DTYPE_F64 };
  for (unsigned d = 0; d < G_N_ELEMENTS (dtypes); d++) {
    check_gate (dtypes[d], 16, false);
    check_gate (dtypes[d], 16, true);
    check_gate (dtypes[d], 1, true);
  }
}

/* ---- if, constants, grids of three axes, local memory ---- */

static void
test_grid_if (void)
{
  enum { X = 3, Y = 5, Z = 4 };
  g_autofree Program *p = program_new ("grid_if");
  memcpy (p->linear.grid, (uint32_t[]){ X, Y, Z }, sizeof p->linear.grid);
  uint32_t out = program_param (p, TINY_DTYPE_I32, X * Y * Z, TINY_PARAM_WRITE);
  uint32_t axis[3] = { ADD (GRID, I64, 1, 0), ADD (GRID, I64, 1, 1), ADD (GRID, I64, 1, 2) };
  uint32_t ten = ADD (CONST, I64, 1, 10), nx = ADD (CONST, I64, 1, X),
           ny = ADD (CONST, I64, 1, Y);
  uint32_t zy = ADD (MUL, I64, 1, 0, axis[2], ny), row = ADD (ADD, I64, 1, 0, zy, axis[1]);
  uint32_t rows = ADD (MUL, I64, 1, 0, row, nx), at = ADD (ADD, I64, 1, 0, rows, axis[0]);
  uint32_t z10 = ADD (MUL, I64, 1, 0, axis[2], ten), zy1 = ADD (ADD, I64, 1, 0, z10, axis[1]);
  uint32_t zy10 = ADD (MUL, I64, 1, 0, zy1, ten), code = ADD (ADD, I64, 1, 0, zy10, axis[0]);
  uint32_t local = ADD (LOCAL, I32, 1, 4), zero = ADD (CONST, I64, 1, 0);
  uint32_t value = ADD (CAST, I32, 1, 0, code);
  ADD (STORE, VOID, 1, 0, local, zero, value);
  uint32_t condition = ADD (CMPNE, BOOL, 1, 0, axis[1], zero);
  uint32_t branch = ADD (IF, VOID, 1, 0, condition);
  uint32_t again = ADD (LOAD, I32, 1, 0, local, zero);
  ADD (STORE, VOID, 1, 0, out, at, again);
  ADD (ENDIF, VOID, 1, 0, branch);
  int32_t data[Z][Y][X];
  memset (data, -1, sizeof data);
  Array array = { data, sizeof data };
  TinyPluginProgram *program = program_build (p);
  program_run (program, &array, 1, NULL, 0, p->linear.grid);
  program_unload (program);
  for (int z = 0; z < Z; z++)
    for (int y = 0; y < Y; y++)
      for (int x = 0; x < X; x++)
        g_assert_cmpint (data[z][y][x], ==, y != 0 ? z * 100 + y * 10 + x : -1);
}

/* A choice by constants of which the other lane is 0 / 0, as a gate that is false leaves it: a code
 * generator that takes such a quotient for 0 drops the choice, and stores a NaN. */
static void
test_constant_choice (void)
{
  g_autofree Program *p = program_new ("constant_choice");
  uint32_t out = program_param (p, TINY_DTYPE_F32, 2, TINY_PARAM_WRITE);
  uint32_t in = program_param (p, TINY_DTYPE_F32, 2, TINY_PARAM_READ);
  uint32_t yes = ADD (CONST, BOOL, 1, 1), no = ADD (CONST, BOOL, 1, 0);
  uint32_t chosen = ADD (VECTOR, BOOL, 2, 0, yes, no);
  uint32_t at = ADD (CONST, I64, 1, 0), next = ADD (CONST, I64, 1, 1);
  uint32_t zero = ADD (CONST, F32, 1, 0), nothing = ADD (CONST, F32, 2, 0);
  uint32_t x = ADD (LOAD, F32, 1, 0, in, at), y = ADD (LOAD, F32, 1, 0, in, next);
  uint32_t xs = ADD (VECTOR, F32, 2, 0, x, zero), ys = ADD (VECTOR, F32, 2, 0, y, zero);
  uint32_t quotient = ADD (FDIV, F32, 2, 0, xs, ys);
  uint32_t result = ADD (WHERE, F32, 2, 0, chosen, quotient, nothing);
  ADD (STORE, VOID, 2, 0, out, at, result);
  float data[2][2] = { { 7, 7 }, { 6, 4 } };
  Array arrays[2] = { { data[0], sizeof data[0] }, { data[1], sizeof data[1] } };
  TinyPluginProgram *program = program_build (p);
  program_run (program, arrays, 2, NULL, 0, one_point);
  program_unload (program);
  g_assert_cmpfloat (data[0][0], ==, 1.5f);
  g_assert_cmpfloat (data[0][1], ==, 0);
}

/* ---- mistakes are errors ---- */

static void
expect_refusal (Program *p)
{
  TinyPluginError error = new_error ();
  void *data = NULL;
  uint64_t size;
  g_assert_cmpint (program_compile (p, &data, &size, &error), <, 0);
  g_assert_cmpstr (error.text, !=, "");
  g_assert_null (data);
  g_free (p);
}

static void
test_refusals (void)
{
  Program *p = program_new ("refused");
  uint32_t x = ADD (CONST, F32, 1, 0);
  ADD (SIN, F32, 1, 0, x);
  expect_refusal (p);
  p = program_new ("refused");
  x = ADD (CONST, F32, 1, 0);
  uint32_t y = ADD (CONST, I32, 1, 0);
  ADD (ADD, F32, 1, 0, x, y);
  expect_refusal (p);
  p = program_new ("refused");
  ADD (NEG, F32, 1, 0, 5);
  expect_refusal (p);
  p = program_new ("refused");
  x = ADD (CONST, I32, 1, 3);
  ADD (RANGE, I32, 1, 0, x);
  expect_refusal (p);
  p = program_new ("refused");
  ADD (PARAM, F32, 1, 3);
  expect_refusal (p);
  p = program_new ("refused");
  ADD (CONST, F32, 65, 0);
  expect_refusal (p);
  p = program_new ("refused");
  x = ADD (CONST, F8E4M3, 1, 0); /* is only stored */
  ADD (ADD, F8E4M3, 1, 0, x, x);
  expect_refusal (p);
  p = program_new ("refused");
  x = ADD (CONST, F32, 4, 0);
  ADD (EXTRACT, F32, 1, 4, x);
  expect_refusal (p);
  p = program_new ("refused");
  x = ADD (CONST, F32, 4, 0);
  y = ADD (CONST, F32, 8, 0);
  ADD (MUL, F32, 8, 0, x, y);
  expect_refusal (p);
  p = program_new ("refused");
  p->instrs[p->linear.n_instrs++].op = 63;
  expect_refusal (p);
}

/* ---- conversions meet their inverses ---- */

/* A sum of halves in f32 that is stored as halves is one of halves: nothing is converted. */
static void
test_conversions (void)
{
  enum { N = 512, L = 16 };
  g_autofree Program *p = program_new ("sum_of_halves");
  uint32_t out = program_param (p, TINY_DTYPE_F16, N, TINY_PARAM_WRITE);
  uint32_t a = program_param (p, TINY_DTYPE_F16, N, TINY_PARAM_READ);
  uint32_t b = program_param (p, TINY_DTYPE_F16, N, TINY_PARAM_READ);
  p->linear.grid[0] = N / L;
  uint32_t grid = ADD (GRID, I64, 1, 0), width = ADD (CONST, I64, 1, L);
  uint32_t at = ADD (MUL, I64, 1, 0, grid, width);
  uint32_t x = ADD (LOAD, F16, L, 0, a, at), y = ADD (LOAD, F16, L, 0, b, at);
  uint32_t wide_x = ADD (CAST, F32, L, 0, x), wide_y = ADD (CAST, F32, L, 0, y);
  uint32_t sum = ADD (ADD, F32, L, 0, wide_x, wide_y), half = ADD (CAST, F16, L, 0, sum);
  ADD (STORE, VOID, L, 0, out, at, half);
  char *text = program_list (p, "x86_64,sapphirerapids"); /* which adds halves */
  g_assert_nonnull (strstr (text, "vaddph"));
  g_assert_null (strstr (text, "vcvt"));
  free (text);
}

/* The larger of a half and 0 is found in whole vectors, with and without AVX-512: no lane is taken out. */
static void
test_half_lanes (void)
{
  enum { N = 512, L = 16 };
  static const char *const archs[] = { "x86_64,haswell", "x86_64,skylake-avx512" };
  for (guint i = 0; i < G_N_ELEMENTS (archs); i++) {
    g_autofree Program *p = program_new ("rectified_halves");
    uint32_t out = program_param (p, TINY_DTYPE_F16, N, TINY_PARAM_WRITE);
    uint32_t a = program_param (p, TINY_DTYPE_F16, N, TINY_PARAM_READ);
    p->linear.grid[0] = N / L;
    uint32_t grid = ADD (GRID, I64, 1, 0), width = ADD (CONST, I64, 1, L);
    uint32_t zero = ADD (CONST, F32, L, 0), at = ADD (MUL, I64, 1, 0, grid, width);
    uint32_t half = ADD (LOAD, F16, L, 0, a, at), x = ADD (CAST, F32, L, 0, half);
    uint32_t is_below = ADD (CMPLT, BOOL, L, 0, x, zero);
    uint32_t larger = ADD (WHERE, F32, L, 0, is_below, zero, x);
    uint32_t result = ADD (CAST, F16, L, 0, larger);
    ADD (STORE, VOID, L, 0, out, at, result);
    char *text = program_list (p, archs[i]);
    g_assert_nonnull (strstr (text, "vcvtph2ps"));
    g_assert_null (strstr (text, "vpextrw"));
    g_assert_null (strstr (text, "comiss"));
    free (text);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  harness_open ();
  g_test_add_func ("/plugins-cpu/llvm/add-tail", test_add_tail);
  g_test_add_func ("/plugins-cpu/llvm/reduce", test_reduce);
  g_test_add_func ("/plugins-cpu/llvm/gates", test_gates);
  g_test_add_func ("/plugins-cpu/llvm/grid-if", test_grid_if);
  g_test_add_func ("/plugins-cpu/llvm/constant-choice", test_constant_choice);
  g_test_add_func ("/plugins-cpu/llvm/refusals", test_refusals);
  g_test_add_func ("/plugins-cpu/llvm/conversions", test_conversions);
  g_test_add_func ("/plugins-cpu/llvm/half-lanes", test_half_lanes);
  int result = g_test_run ();
  harness_close ();
  return result;
}
