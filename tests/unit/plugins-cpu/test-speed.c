/* SPDX-License-Identifier: MIT
 *
 * Proves that generated code keeps the vector registers full: a 6 × (4 × L) f32 register tile of a
 * matmul, from L2, prints its share of one core's FMA peak, and must hold no spill-ridden code. Also
 * prints what a launch and a compile cost. Times depend on the machine's load: only far outliers fail. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double
now_seconds (void)
{
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

enum { ROWS = 6, COLUMNS = 4 };

/* C[6][4L] = A[6][K] @ B[K][4L], with the sums in registers; repeated by the grid. */
static Program *
new_matmul_tile (unsigned lanes, unsigned n_k, unsigned n_repeats)
{
  Program *p = program_new ("matmul_tile");
  unsigned width = lanes * COLUMNS;
  p->linear.grid[0] = n_repeats;
  uint32_t c = program_param (p, TINY_DTYPE_F32, ROWS * width, TINY_PARAM_WRITE);
  uint32_t a = program_param (p, TINY_DTYPE_F32, ROWS * n_k, TINY_PARAM_READ);
  uint32_t b = program_param (p, TINY_DTYPE_F32, n_k * width, TINY_PARAM_READ);
  uint32_t zero = ADD (CONST, F32, lanes, 0), sums[ROWS][COLUMNS];
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLUMNS; j++) {
      sums[i][j] = add (p, TINY_INSTR_REGISTER, TINY_DTYPE_F32, lanes, 0, -1);
      ADD (STORE, VOID, lanes, 0, sums[i][j], zero);
    }
  uint32_t bound = ADD (CONST, I64, 1, n_k), k = ADD (RANGE, I64, 1, 0, bound);
  uint32_t row_width = ADD (CONST, I64, 1, width), row = ADD (MUL, I64, 1, 0, k, row_width);
  uint32_t y[COLUMNS];
  for (int j = 0; j < COLUMNS; j++) {
    uint32_t offset = ADD (CONST, I64, 1, j * lanes), at = ADD (ADD, I64, 1, 0, row, offset);
    y[j] = add (p, TINY_INSTR_LOAD, TINY_DTYPE_F32, lanes, 0, b, at, -1);
  }
  for (int i = 0; i < ROWS; i++) {
    uint32_t offset = ADD (CONST, I64, 1, i * n_k), at = ADD (ADD, I64, 1, 0, k, offset);
    uint32_t x = ADD (LOAD, F32, 1, 0, a, at);
    x = add (p, TINY_INSTR_VECTOR, TINY_DTYPE_F32, lanes, 0, x, -1);
    for (int j = 0; j < COLUMNS; j++) {
      uint32_t old = add (p, TINY_INSTR_LOAD, TINY_DTYPE_F32, lanes, 0, sums[i][j], -1);
      uint32_t sum = add (p, TINY_INSTR_MULACC, TINY_DTYPE_F32, lanes, 0, x, y[j], old, -1);
      ADD (STORE, VOID, lanes, 0, sums[i][j], sum);
    }
  }
  ADD (END, VOID, 1, 0, k);
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLUMNS; j++) {
      uint32_t at = ADD (CONST, I64, 1, (int64_t) i * width + j * lanes);
      uint32_t sum = add (p, TINY_INSTR_LOAD, TINY_DTYPE_F32, lanes, 0, sums[i][j], -1);
      ADD (STORE, VOID, lanes, 0, c, at, sum);
    }
  return p;
}

/* Multiply-adds in registers only: what one core can do at most. */
static double
measure_peak (unsigned lanes)
{
  enum { CHAINS = 12, N = 200000 };
  g_autofree Program *p = program_new ("peak");
  p->linear.n_variables = 1;
  uint32_t out = program_param (p, TINY_DTYPE_F32, 4096, TINY_PARAM_WRITE);
  uint32_t in = program_param (p, TINY_DTYPE_F32, 4096, TINY_PARAM_READ), chains[CHAINS];
  uint32_t zero = ADD (CONST, I64, 1, 0);
  uint32_t x = add (p, TINY_INSTR_LOAD, TINY_DTYPE_F32, lanes, 0, in, zero, -1);
  for (int i = 0; i < CHAINS; i++) {
    chains[i] = add (p, TINY_INSTR_REGISTER, TINY_DTYPE_F32, lanes, 0, -1);
    uint32_t start = add (p, TINY_INSTR_CONST, TINY_DTYPE_F32, lanes, bits_of (i), -1);
    ADD (STORE, VOID, lanes, 0, chains[i], start);
  }
  uint32_t bound = ADD (VARIABLE, I64, 1, 0), k = ADD (RANGE, I64, 1, 0, bound);
  for (int i = 0; i < CHAINS; i++) {
    uint32_t old = add (p, TINY_INSTR_LOAD, TINY_DTYPE_F32, lanes, 0, chains[i], -1);
    uint32_t next = add (p, TINY_INSTR_MULACC, TINY_DTYPE_F32, lanes, 0, old, x, x, -1);
    ADD (STORE, VOID, lanes, 0, chains[i], next);
  }
  ADD (END, VOID, 1, 0, k);
  for (int i = 0; i < CHAINS; i++) {
    uint32_t at = ADD (CONST, I64, 1, i * (int) lanes);
    uint32_t value = add (p, TINY_INSTR_LOAD, TINY_DTYPE_F32, lanes, 0, chains[i], -1);
    ADD (STORE, VOID, lanes, 0, out, at, value);
  }
  static float data[2][4096];
  Array arrays[2] = { { data[0], sizeof data[0] }, { data[1], sizeof data[1] } };
  TinyPluginProgram *program = program_build (p);
  const int64_t n = N;
  double best = 1e9;
  for (int i = 0; i < 7; i++) {
    double start = now_seconds ();
    program_run (program, arrays, 2, &n, 1, p->linear.grid);
    best = MIN (best, now_seconds () - start);
  }
  program_unload (program);
  return 2.0 * CHAINS * lanes * N / best * 1e-9;
}

static void
test_matmul (void)
{
  enum { K = 256, REPEATS = 400 };
  const unsigned lanes = h.target.vector_bits / 32, width = lanes * COLUMNS;
  if (!(h.target.ops[TINY_DTYPE_F32] & TINY_INSTR_BIT (TINY_INSTR_MULACC))) {
    g_test_skip ("no fused multiply-add here");
    return;
  }
  g_autofree Program *p = new_matmul_tile (lanes, K, REPEATS);
  g_autofree float *a = g_new0 (float, ROWS *K), *b = g_new0 (float, K *width);
  g_autofree float *c = g_new0 (float, ROWS *width);
  for (unsigned i = 0; i < ROWS * K; i++)
    a[i] = (float) (i % 7) - 3;
  for (unsigned i = 0; i < K * width; i++)
    b[i] = (float) (i % 11) - 5;
  Array arrays[3] = { { c, ROWS * width * 4 }, { a, ROWS * K * 4 }, { b, K * width * 4 } };
  TinyPluginProgram *program = program_build (p);
  double best = 1e9;
  for (int i = 0; i < 9; i++) {
    double start = now_seconds ();
    program_run (program, arrays, 3, NULL, 0, p->linear.grid);
    best = MIN (best, now_seconds () - start);
  }
  program_unload (program);
  for (unsigned i = 0; i < ROWS; i++)
    for (unsigned j = 0; j < width; j++) {
      float sum = 0;
      for (unsigned k = 0; k < K; k++)
        sum += a[i * K + k] * b[k * width + j];
      g_assert_cmpfloat (c[i * width + j], ==, sum);
    }
  double gflops = 2.0 * ROWS * width * K * REPEATS / best * 1e-9, peak = measure_peak (lanes);
  g_test_message ("matmul tile %d x %u: %.1f GFLOP/s of %.1f on %u threads: %.0f %%", ROWS,
                  width, gflops, peak, h.target.n_threads, 100 * gflops / peak);
}

static void
test_launch (void)
{
  enum { N = 200000 };
  g_autofree Program *p = program_new ("tiny");
  uint32_t out = program_param (p, TINY_DTYPE_F32, 1, TINY_PARAM_WRITE);
  uint32_t zero = ADD (CONST, I64, 1, 0), one = ADD (CONST, F32, 1, bits_of (1));
  ADD (STORE, VOID, 1, 0, out, zero, one);
  TinyPluginProgram *program = program_build (p);
  TinyPluginError error = new_error ();
  TinySpan span = { NULL, 0, 4 };
  g_assert_cmpint (h.table->alloc (h.device, 4, &span.buffer, &error), ==, 0);
  TinyCommand command = { .struct_size = sizeof command,
                          .type = TINY_COMMAND_DISPATCH,
                          .program = program,
                          .buffers = &span,
                          .n_buffers = 1,
                          .grid = { 1, 1, 1 } };
  TinySubmit submit = { .struct_size = sizeof submit, .commands = &command, .n_commands = 1 };
  double best = 1e9;
  for (int round = 0; round < 5; round++) {
    double start = now_seconds ();
    for (int i = 0; i < N / 5; i++)
      h.table->submit (h.device, h.queue, &submit, &error);
    best = MIN (best, (now_seconds () - start) / (N / 5));
  }
  g_test_message ("launch of a grid of 1: %.0f ns", best * 1e9);
  g_assert_cmpfloat (best, <, 5e-6);
  /* Two points: too short to wake anybody for. */
  command.grid[0] = 2;
  p->linear.grid[0] = 2;
  h.table->program_unload (h.device, program);
  command.program = program = program_build (p);
  double start = now_seconds ();
  for (int i = 0; i < N / 5; i++)
    g_assert_cmpint (h.table->submit (h.device, h.queue, &submit, &error), ==, 0);
  g_test_message ("launch of a grid of 2: %.0f ns", (now_seconds () - start) / (N / 5) * 1e9);
  program_unload (program);
  h.table->free (h.device, span.buffer);
}

static double
compile_seconds (Program *p)
{
  double best = 1e9;
  for (int i = 0; i < 10; i++) {
    TinyPluginError error = new_error ();
    void *data;
    uint64_t size;
    double start = now_seconds ();
    g_assert_cmpint (program_compile (p, &data, &size, &error), ==, 0);
    best = MIN (best, now_seconds () - start);
    free (data);
  }
  return best;
}

static void
test_compile (void)
{
  g_autofree Program *tiny = program_new ("tiny");
  uint32_t out = program_param (tiny, TINY_DTYPE_F32, 1, TINY_PARAM_WRITE);
  Program *p = tiny;
  uint32_t zero = ADD (CONST, I64, 1, 0), one = ADD (CONST, F32, 1, bits_of (1));
  ADD (STORE, VOID, 1, 0, out, zero, one);
  g_autofree Program *tile = new_matmul_tile (16, 256, 4);
  g_test_message ("compile: tiny %.2f ms, matmul tile %.2f ms", 1e3 * compile_seconds (tiny),
                  1e3 * compile_seconds (tile));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_setenv ("TINY_THREADS", "1", FALSE);
  harness_open ();
  g_test_add_func ("/plugins-cpu/speed/matmul", test_matmul);
  g_test_add_func ("/plugins-cpu/speed/launch", test_launch);
  g_test_add_func ("/plugins-cpu/speed/compile", test_compile);
  int result = g_test_run ();
  harness_close ();
  return result;
}
