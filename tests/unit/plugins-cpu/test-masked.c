/* SPDX-License-Identifier: MIT
 *
 * Proves that masked accesses outside of a buffer cost the same wherever it lies, beside pages that are not
 * there as well; and that only those which may lie far outside pay for that. */
#include "harness.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { LANES = 16, N = 1 << 16 };
static const char wide_arch[] = "x86_64,skylake-avx512", narrow_arch[] = "x86_64,haswell";

static uint32_t
constant (Program *p, int64_t value)
{
  return ADD (CONST, I64, 1, value);
}

/* True for each lane of which the place, @at and on, is in a buffer of @n elements. */
static uint32_t
add_gate (Program *p, uint32_t at, int64_t n)
{
  uint32_t lanes[LANES];
  for (int i = 0; i < LANES; i++)
    lanes[i] = constant (p, i);
  uint32_t iota = add (p, TINY_INSTR_VECTOR, TINY_DTYPE_I64, LANES, 0, -1);
  for (int i = 0; i < LANES; i++)
    p->sources[p->linear.n_sources++] = lanes[i];
  p->instrs[iota].n_sources = LANES;
  uint32_t places = ADD (ADD, I64, LANES, 0, iota, at);
  uint32_t is_before = ADD (CMPLT, BOOL, LANES, 0, places, constant (p, 0));
  uint32_t is_inside = ADD (CMPLT, BOOL, LANES, 0, places, constant (p, n));
  uint32_t yes = ADD (CONST, BOOL, 1, 1);
  uint32_t is_after = ADD (CMPNE, BOOL, LANES, 0, is_before, yes);
  return ADD (AND, BOOL, LANES, 0, is_inside, is_after);
}

/* ---- time ---- */

/* out[i] = in[i - shift], or out[i - shift] = in[i], for all i of which both are there: as many of the masked accesses
 * are outside as inside. */
typedef struct {
  const char *name;
  bool is_store;
  int64_t shift;
} TimeRow;

static const TimeRow time_rows[] = {
  { "loads-before", false, N },
  { "loads-behind", false, 0 },
  { "stores-before", true, N },
  { "stores-behind", true, 0 },
};

static Program *
make_shifted (const TimeRow *row)
{
  Program *p = program_new ("shifted");
  p->linear.grid[0] = 2 * N / LANES;
  uint32_t out = program_param (p, TINY_DTYPE_F32, row->is_store ? N : 2 * N, TINY_PARAM_WRITE);
  uint32_t in = program_param (p, TINY_DTYPE_F32, row->is_store ? 2 * N : N, TINY_PARAM_READ);
  uint32_t point = ADD (GRID, I64, 1, 0), at = ADD (MUL, I64, 1, 0, point, constant (p, LANES));
  uint32_t masked = ADD (ADD, I64, 1, 0, at, constant (p, -row->shift));
  uint32_t gate = add_gate (p, masked, N);
  if (row->is_store) {
    uint32_t x = ADD (LOAD, F32, LANES, 0, in, at);
    ADD (STORE, VOID, LANES, 0, out, masked, x, gate);
  } else {
    uint32_t zero = ADD (CONST, F32, 1, 0),
             x = ADD (LOAD, F32, LANES, 0, in, masked, gate, zero);
    ADD (STORE, VOID, LANES, 0, out, at, x);
  }
  return p;
}

/* @n_bytes that can be used, between as many on either side that can or cannot. */
static void *
new_place (size_t n_bytes, bool has_neighbours)
{
  uint8_t *place
      = mmap (NULL, 3 * n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  g_assert_true (place != MAP_FAILED);
  memset (place, 0, 3 * n_bytes);
  for (int i = 0; i < 3 && !has_neighbours; i += 2)
    g_assert_cmpint (mprotect (place + i * n_bytes, n_bytes, PROT_NONE), ==, 0);
  return place + n_bytes;
}

static int64_t
launch_ns (TinyPluginProgram *program, const TinySpan *spans, const Program *p)
{
  TinyPluginError error = new_error ();
  TinyCommand command = { .struct_size = sizeof command,
                          .type = TINY_COMMAND_DISPATCH,
                          .program = program,
                          .buffers = spans,
                          .n_buffers = 2,
                          .grid = { p->linear.grid[0], 1, 1 } };
  TinySubmit submit = { .struct_size = sizeof submit, .commands = &command, .n_commands = 1 };
  struct timespec begin, end;
  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &begin);
  g_assert_cmpint (h.table->submit (h.device, h.queue, &submit, &error), ==, TINY_STATUS_OK);
  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &end);
  return (end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec;
}

/* An assist in every access outside makes it more than 30 times as long. */
static void
test_time (gconstpointer data)
{
  enum { TURNS = 9, MOST = 10 };
  const TimeRow *row = data;
  TinyPluginError error = new_error ();
  g_autofree Program *p = make_shifted (row);
  TinyPluginProgram *program = program_build (p);
  int64_t best[2] = { INT64_MAX, INT64_MAX };
  TinySpan spans[2][2];
  float *places[2][2];
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++) {
      const size_t n_bytes = p->params[j].n_elements * sizeof (float);
      places[i][j] = new_place (n_bytes, i == 0);
      spans[i][j] = (TinySpan){ NULL, 0, n_bytes };
      g_assert_cmpint (
          h.table->import_host (h.device, places[i][j], n_bytes, &spans[i][j].buffer, &error),
          ==, 0);
      for (uint64_t k = 0; j == 1 && k < p->params[1].n_elements; k++)
        places[i][1][k] = (float) k + 1;
    }
  for (int turn = 0; turn < 2 * TURNS; turn++) {
    int64_t ns = launch_ns (program, spans[turn % 2], p);
    best[turn % 2] = MIN (best[turn % 2], ns);
  }
  g_test_message ("%s: %.1f us with neighbours, %.1f without", row->name,
                  (double) best[0] * 1e-3, (double) best[1] * 1e-3);
  g_assert_cmpint (best[1], <, MOST * best[0]);
  for (int64_t k = 0; k < 2 * N; k++) {
    const int64_t masked = k - row->shift, is_inside = masked >= 0 && masked < N;
    if (!row->is_store)
      g_assert_cmpfloat (places[1][0][k], ==, is_inside ? (float) masked + 1 : 0);
    else if (is_inside)
      g_assert_cmpfloat (places[1][0][masked], ==, (float) k + 1);
  }
  program_unload (program);
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++) {
      h.table->free (h.device, spans[i][j].buffer);
      munmap ((uint8_t *) places[i][j] - spans[i][j].n_bytes, 3 * spans[i][j].n_bytes);
    }
}

/* ---- who pays ---- */

/* A sum of masked loads at the index @make gives, from @n elements. */
typedef struct {
  const char *name;
  uint32_t (*make) (Program *p, uint32_t round);
  int64_t n;
  bool is_local, goes_to_scratch;
} IndexRow;

enum { ROUNDS = 1 << 10, PAGE = 4096 / sizeof (float) };

static uint32_t
make_vectors (Program *p, uint32_t round)
{
  return ADD (MUL, I64, 1, 0, round, constant (p, LANES));
}

static uint32_t
make_before (Program *p, uint32_t round)
{
  return ADD (ADD, I64, 1, 0, make_vectors (p, round), constant (p, -PAGE - 1));
}

static uint32_t
make_near (Program *p, uint32_t round)
{
  return ADD (ADD, I64, 1, 0, make_vectors (p, round), constant (p, -PAGE));
}

static uint32_t
make_behind (Program *p, uint32_t round)
{
  return ADD (ADD, I64, 1, 0, make_vectors (p, round), constant (p, PAGE + 1));
}

static uint32_t
make_backwards (Program *p, uint32_t round)
{
  uint32_t negative = ADD (MUL, I64, 1, 0, round, constant (p, -LANES));
  return ADD (ADD, I64, 1, 0, negative, constant (p, (ROUNDS - 1) * LANES));
}

static uint32_t
make_bounded (Program *p, uint32_t round)
{
  uint32_t at = ADD (MAX, I64, 1, 0, make_before (p, round), constant (p, 0));
  uint32_t is_less = ADD (CMPLT, BOOL, 1, 0, round, constant (p, 7));
  return ADD (WHERE, I64, 1, 0, is_less, at, make_vectors (p, round));
}

static uint32_t
make_divided (Program *p, uint32_t round)
{
  uint32_t row = ADD (IDIV, I64, 1, 0, round, constant (p, 8));
  uint32_t column = ADD (MOD, I64, 1, 0, round, constant (p, 8));
  uint32_t narrow = ADD (CAST, I32, 1, 0, row), wide = ADD (CAST, I64, 1, 0, narrow);
  uint32_t difference = ADD (SUB, I64, 1, 0, wide, column);
  return ADD (MUL, I64, 1, 0, difference, constant (p, LANES));
}

static uint32_t
make_variable (Program *p, uint32_t round)
{
  p->linear.n_variables = 1;
  uint32_t more = ADD (VARIABLE, I64, 1, 0);
  return ADD (ADD, I64, 1, 0, make_vectors (p, round), more);
}

static const IndexRow index_rows[] = {
  { "inside", make_vectors, ROUNDS *LANES, false, false },
  { "before", make_before, ROUNDS *LANES, false, true },
  { "page-before", make_near, ROUNDS *LANES, false, false },
  { "behind", make_behind, ROUNDS *LANES, false, true },
  { "backwards", make_backwards, ROUNDS *LANES, false, false },
  { "bounded", make_bounded, ROUNDS *LANES, false, false },
  { "divided", make_divided, ROUNDS *LANES, false, false },
  { "divided-outside", make_divided, ROUNDS *LANES / 32 + 1, false, true },
  { "variable", make_variable, ROUNDS *LANES, false, true },
  { "large-share", make_near, N, false, true },
  { "small-share", make_near, 16 * N, false, false },
  { "local", make_before, ROUNDS *LANES, true, false },
};

static char *
list_loads (const IndexRow *row, unsigned dtype, const char *arch)
{
  g_autofree Program *p = program_new ("masked");
  uint32_t out = program_param (p, dtype, LANES, TINY_PARAM_WRITE);
  uint32_t in = program_param (p, dtype, (uint64_t) row->n, TINY_PARAM_READ);
  if (row->is_local)
    in = add (p, TINY_INSTR_LOCAL, dtype, 1, row->n, -1);
  uint32_t total = add (p, TINY_INSTR_REGISTER, dtype, LANES, 0, -1);
  uint32_t zero = add (p, TINY_INSTR_CONST, dtype, LANES, 0, -1);
  ADD (STORE, VOID, LANES, 0, total, zero);
  uint32_t round = ADD (RANGE, I64, 1, 0, constant (p, ROUNDS)), at = row->make (p, round);
  uint32_t x
      = add (p, TINY_INSTR_LOAD, dtype, LANES, 0, in, at, add_gate (p, at, row->n), zero, -1);
  uint32_t old = add (p, TINY_INSTR_LOAD, dtype, LANES, 0, total, -1);
  ADD (STORE, VOID, LANES, 0, total, add (p, TINY_INSTR_ADD, dtype, LANES, 0, old, x, -1));
  ADD (END, VOID, 1, 0, round);
  ADD (STORE, VOID, LANES, 0, out, constant (p, 0),
       add (p, TINY_INSTR_LOAD, dtype, LANES, 0, total, -1));
  return program_list (p, arch);
}

static void
test_index (gconstpointer data)
{
  const IndexRow *row = data;
  for (int i = 0; i < 2; i++) {
    char *text = list_loads (row, TINY_DTYPE_F32, i == 0 ? wide_arch : narrow_arch);
    g_assert_cmpint (strstr (text, i == 0 ? "kortest" : "movmsk") != NULL, ==,
                     row->goes_to_scratch);
    free (text);
  }
}

/* Haswell has no masked accesses of bytes: LLVM goes around each lane that is off. */
static void
test_bytes (void)
{
  const IndexRow row = { .make = make_variable, .n = ROUNDS * LANES };
  for (int i = 0; i < 2; i++) {
    char *text = list_loads (&row, TINY_DTYPE_I8, i == 0 ? wide_arch : narrow_arch);
    g_assert_cmpint (strstr (text, "cmov") != NULL, ==, i == 0);
    free (text);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_setenv ("TINY_THREADS", "1", TRUE); /* a launch runs on the thread whose time is taken */
  harness_open ();
  for (unsigned i = 0; i < G_N_ELEMENTS (time_rows); i++) {
    g_autofree char *path = g_strdup_printf ("/plugins-cpu/masked/time-%s", time_rows[i].name);
    g_test_add_data_func (path, &time_rows[i], test_time);
  }
  for (unsigned i = 0; i < G_N_ELEMENTS (index_rows); i++) {
    g_autofree char *path
        = g_strdup_printf ("/plugins-cpu/masked/index-%s", index_rows[i].name);
    g_test_add_data_func (path, &index_rows[i], test_index);
  }
  g_test_add_func ("/plugins-cpu/masked/bytes", test_bytes);
  int status = g_test_run ();
  harness_close ();
  return status;
}
