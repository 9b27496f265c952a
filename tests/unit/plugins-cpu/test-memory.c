/* SPDX-License-Identifier: MIT
 *
 * Proves that stores go past the caches where, and only where, that is right: the kernel goes
 * through more memory than the last cache holds, does not read what it stores, and fills whole
 * lines at addresses that are known to be aligned; that the results are the same, and that a span
 * that begins elsewhere is refused. And of prefetches: who reads a row once asks for what comes
 * two pages later, who reads it again for the next row, where that is more than a near cache holds. */
#include "harness.h"

#include <stdlib.h>

enum { N = 4096 };

/* out[i] = in[i] + 1 in rounds of two stores of @lanes elements that are @distance apart. */
typedef struct {
  const char *name;
  unsigned lanes;
  int64_t step, distance; /* between rounds, between the two stores */
  bool is_large, is_read, is_gated;
  bool streams;
} StreamRow;

static const StreamRow stream_rows[] = {
  { "whole-lines", 16, 32, 16, true, false, false, true },
  { "halves-together", 8, 16, 8, true, false, false, true },
  { "halves-apart", 8, 8, 2048, true, false, false, false },
  { "small-kernel", 16, 32, 16, false, false, false, false },
  { "reads-its-output", 16, 32, 16, true, true, false, false },
  { "gated", 16, 32, 16, true, false, true, false },
  { "off-lines", 16, 24, 16, true, false, false, false },
};

static Program *
make_stream (const StreamRow *row, unsigned n_rounds)
{
  Program *p = program_new ("stream");
  /* What is declared decides; what is touched may be less. */
  uint64_t n = row->is_large ? h.target.cache_bytes[2] / 4 : N;
  uint32_t flags = TINY_PARAM_WRITE | (row->is_read ? TINY_PARAM_READ : 0);
  uint32_t out = program_param (p, TINY_DTYPE_F32, n, flags);
  uint32_t in = program_param (p, TINY_DTYPE_F32, n, TINY_PARAM_READ);
  p->linear.grid[0] = n_rounds;
  uint32_t point = ADD (GRID, I64, 1, 0), step = ADD (CONST, I64, 1, row->step);
  uint32_t at = ADD (MUL, I64, 1, 0, point, step);
  uint32_t further = ADD (CONST, I64, 1, row->distance);
  uint32_t places[] = { at, ADD (ADD, I64, 1, 0, at, further) };
  uint32_t one = ADD (CONST, F32, 1, bits_of (1)), zero = ADD (CONST, I64, 1, 0);
  uint32_t gate = ADD (CMPLT, BOOL, 1, 0, zero, further);
  for (unsigned i = 0; i < 2; i++) {
    uint32_t x = ADD (LOAD, F32, row->lanes, 0, in, places[i]);
    uint32_t sum = ADD (ADD, F32, row->lanes, 0, x, one);
    if (row->is_gated)
      ADD (STORE, VOID, row->lanes, 0, out, places[i], sum, gate);
    else
      ADD (STORE, VOID, row->lanes, 0, out, places[i], sum);
  }
  return p;
}

static char *
disassemble (Program *p)
{
  TinyPluginError error = new_error ();
  void *data = NULL;
  uint64_t size = 0;
  char *text = NULL;
  g_assert_cmpint (program_compile (p, &data, &size, &error), ==, TINY_STATUS_OK);
  g_assert_cmpint (h.llvm->disassemble (data, size, &text, &error), ==, TINY_STATUS_OK);
  free (data);
  return text;
}

static bool
is_x86_with_caches (void)
{
  if (g_str_has_prefix (h.target.arch, "x86_64") && h.target.cache_bytes[2] > 0)
    return true;
  g_test_skip ("no x86_64 processor whose last cache is known");
  return false;
}

static void
test_stream (gconstpointer data)
{
  const StreamRow *row = data;
  static float values[2][N + 64];
  if (!is_x86_with_caches ())
    return;
  const unsigned n_rounds = (unsigned) ((N / 2) / row->step);
  g_autofree Program *p = make_stream (row, n_rounds);
  char *text = disassemble (p);
  g_assert_cmpint (strstr (text, "movnt") != NULL, ==, row->streams);
  g_assert_cmpint (strstr (text, "sfence") != NULL, ==, row->streams);
  free (text);
  for (int i = 0; i < N + 64; i++) {
    values[0][i] = -1;
    values[1][i] = (float) i;
  }
  TinyPluginProgram *program = program_build (p);
  Array arrays[2] = { { values[0], sizeof values[0] }, { values[1], sizeof values[1] } };
  program_run (program, arrays, 2, NULL, 0, p->linear.grid);
  program_unload (program);
  for (unsigned i = 0; i < n_rounds; i++)
    for (unsigned j = 0; j < row->lanes; j++) {
      int64_t at = i * row->step + j;
      g_assert_cmpfloat (values[0][at], ==, (float) at + 1);
      g_assert_cmpfloat (values[0][at + row->distance], ==, (float) (at + row->distance) + 1);
    }
}

/* A socket's cache that is larger than what a thread has of it does not keep stores from going past it. */
static void
test_stream_socket (void)
{
  if (!is_x86_with_caches ())
    return;
  if (!g_test_subprocess ()) {
    g_setenv ("TINY_CPU_CACHES", ",,1G", TRUE);
    g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
    g_unsetenv ("TINY_CPU_CACHES");
    g_test_trap_assert_passed ();
    return;
  }
  g_autofree Program *p = make_stream (&stream_rows[0], 1);
  for (unsigned i = 0; i < p->linear.n_params; i++)
    p->params[i].n_elements = 5 << 20; /* 40 MiB in all */
  char *text = disassemble (p);
  g_assert_nonnull (strstr (text, "movnt"));
  free (text);
}

/* ---- prefetches ---- */

/* Each row of in is summed, its squares are summed @n_more times, and of each power of two. */
typedef struct {
  const char *name;
  unsigned n_more, n_products; /* loops that read the row again; products in each */
  int64_t gap;                 /* elements between rows */
  bool is_large;
  unsigned n_prefetches;
} PrefetchRow;

static const PrefetchRow prefetch_rows[] = {
  { "read-again", 1, 1, 0, true, 1 }, { "read-thrice", 2, 1, 0, true, 1 },
  { "read-once", 0, 1, 0, true, 1 },  { "small-kernel", 1, 20, 0, false, 0 },
  { "apart", 1, 20, 64, true, 0 },
};

enum { PREFETCH_LANES = 16, ROUNDS = 8, N_ROWS = 4 };

/* Adds the loop over a row that sums x, times itself @n_products - 1 times, to @total. */
static void
add_row_loop (Program *p, uint32_t in, uint32_t base, uint32_t total, unsigned n_products)
{
  uint32_t bound = ADD (CONST, I64, 1, ROUNDS), width = ADD (CONST, I64, 1, PREFETCH_LANES);
  uint32_t round = ADD (RANGE, I64, 1, 0, bound), at = ADD (MUL, I64, 1, 0, round, width);
  uint32_t place = ADD (ADD, I64, 1, 0, base, at);
  uint32_t x = ADD (LOAD, F32, PREFETCH_LANES, 0, in, place);
  uint32_t product = x;
  for (unsigned i = 1; i < n_products; i++)
    product = ADD (MUL, F32, PREFETCH_LANES, 0, product, x);
  uint32_t old = ADD (LOAD, F32, PREFETCH_LANES, 0, total);
  uint32_t sum = ADD (ADD, F32, PREFETCH_LANES, 0, old, product);
  ADD (STORE, VOID, PREFETCH_LANES, 0, total, sum);
  ADD (END, VOID, 1, 0, round);
}

static void
test_prefetch (gconstpointer data)
{
  const PrefetchRow *row = data;
  enum { WIDTH = PREFETCH_LANES * ROUNDS };
  const int64_t stride = WIDTH + row->gap;
  if (!is_x86_with_caches ())
    return;
  g_autofree Program *p = program_new ("rows");
  uint64_t n = row->is_large ? h.target.cache_bytes[1] : N;
  uint32_t out = program_param (p, TINY_DTYPE_F32, N_ROWS * PREFETCH_LANES, TINY_PARAM_WRITE);
  uint32_t in = program_param (p, TINY_DTYPE_F32, n, TINY_PARAM_READ);
  p->linear.grid[0] = N_ROWS;
  uint32_t point = ADD (GRID, I64, 1, 0), zero = ADD (CONST, F32, PREFETCH_LANES, bits_of (0));
  uint32_t step = ADD (CONST, I64, 1, stride), width = ADD (CONST, I64, 1, PREFETCH_LANES);
  uint32_t base = ADD (MUL, I64, 1, 0, point, step);
  uint32_t total = ADD (REGISTER, F32, PREFETCH_LANES, 0);
  ADD (STORE, VOID, PREFETCH_LANES, 0, total, zero);
  for (unsigned i = 0; i <= row->n_more; i++)
    add_row_loop (p, in, base, total, row->n_products);
  uint32_t to = ADD (MUL, I64, 1, 0, point, width);
  uint32_t result = ADD (LOAD, F32, PREFETCH_LANES, 0, total);
  ADD (STORE, VOID, PREFETCH_LANES, 0, out, to, result);

  char *text = disassemble (p);
  unsigned n_prefetches = 0;
  for (const char *at = text; (at = strstr (at, "prefetch")) != NULL; at++)
    n_prefetches++;
  g_assert_cmpuint (n_prefetches, ==, row->n_prefetches);
  free (text);
  static float sums[N_ROWS * PREFETCH_LANES], values[N];
  for (int i = 0; i < N; i++)
    values[i] = i % 3 == 0 ? 1 : 0;
  TinyPluginProgram *program = program_build (p);
  Array arrays[2] = { { sums, sizeof sums }, { values, sizeof values } };
  program_run (program, arrays, 2, NULL, 0, p->linear.grid);
  program_unload (program);
  for (int i = 0; i < N_ROWS * PREFETCH_LANES; i++) {
    float expected = 0;
    for (int j = 0; j < ROUNDS; j++)
      expected += values[i / PREFETCH_LANES * stride + j * PREFETCH_LANES + i % PREFETCH_LANES];
    g_assert_cmpfloat (sums[i], ==, expected * (float) (row->n_more + 1));
  }
}

/* ---- panels ---- */

/* Each of N_ROWS panels of @n_rounds vectors is read by @n_tiles tiles, one after the other. */
typedef struct {
  const char *name;
  int64_t n_tiles, n_rounds;
  bool is_large, changes; /* more than a near cache; from one grid point to the next */
  unsigned n_prefetches;
} PanelRow;

static const PanelRow panel_rows[] = {
  { "read-by-tiles", 4, ROUNDS, true, true, 1 }, { "one-for-all", 4, ROUNDS, true, false, 0 },
  { "near", 4, ROUNDS, false, true, 0 },         { "too-large", 4, 1 << 20, true, true, 0 },
  { "many-tiles", 100, ROUNDS, true, true, 0 },
};

/* Tiles that read a panel ask for the next one, where there is one that is not near and two of them are. */
static void
test_panels (gconstpointer data)
{
  const PanelRow *row = data;
  if (!is_x86_with_caches ())
    return;
  g_autofree Program *p = program_new ("panels");
  uint64_t n = h.target.cache_bytes[1] / (row->is_large ? 1 : 8);
  uint32_t out = program_param (p, TINY_DTYPE_F32, N_ROWS * PREFETCH_LANES, TINY_PARAM_WRITE);
  uint32_t in = program_param (p, TINY_DTYPE_F32, n, TINY_PARAM_READ);
  p->linear.grid[0] = N_ROWS;
  uint32_t point = ADD (GRID, I64, 1, 0), zero = ADD (CONST, F32, PREFETCH_LANES, bits_of (0));
  uint32_t size = ADD (CONST, I64, 1, row->changes ? row->n_rounds * PREFETCH_LANES : 0);
  uint32_t width = ADD (CONST, I64, 1, PREFETCH_LANES),
           n_tiles = ADD (CONST, I64, 1, row->n_tiles);
  uint32_t bound = ADD (CONST, I64, 1, row->n_rounds);
  uint32_t base = ADD (MUL, I64, 1, 0, point, size);
  uint32_t total = ADD (REGISTER, F32, PREFETCH_LANES, 0);
  ADD (STORE, VOID, PREFETCH_LANES, 0, total, zero);
  uint32_t tile = ADD (RANGE, I64, 1, 0, n_tiles);
  uint32_t round = ADD (RANGE, I64, 1, 0, bound), at = ADD (MUL, I64, 1, 0, round, width);
  uint32_t place = ADD (ADD, I64, 1, 0, base, at);
  uint32_t x = ADD (LOAD, F32, PREFETCH_LANES, 0, in, place);
  uint32_t old = ADD (LOAD, F32, PREFETCH_LANES, 0, total);
  uint32_t sum = ADD (ADD, F32, PREFETCH_LANES, 0, old, x);
  ADD (STORE, VOID, PREFETCH_LANES, 0, total, sum);
  ADD (END, VOID, 1, 0, round);
  ADD (END, VOID, 1, 0, tile);
  uint32_t to = ADD (MUL, I64, 1, 0, point, width);
  uint32_t result = ADD (LOAD, F32, PREFETCH_LANES, 0, total);
  ADD (STORE, VOID, PREFETCH_LANES, 0, out, to, result);
  char *text = disassemble (p);
  unsigned n_prefetches = 0;
  for (const char *word = text; (word = strstr (word, "prefetch")) != NULL; word++)
    n_prefetches++;
  free (text);
  g_assert_cmpuint (n_prefetches, ==, row->n_prefetches);
}

/* ---- what both rely on ---- */

static void
test_aligned_spans (void)
{
  TinyPluginError error = new_error ();
  g_autofree Program *p = make_stream (&stream_rows[0], 1);
  TinyPluginProgram *program = program_build (p);
  TinySpan spans[2] = { { NULL, 4, 4096 }, { NULL, 0, 4096 } };
  for (int i = 0; i < 2; i++)
    g_assert_cmpint (h.table->alloc (h.device, 8192, &spans[i].buffer, &error), ==, 0);
  TinyCommand command = { .struct_size = sizeof command,
                          .type = TINY_COMMAND_DISPATCH,
                          .program = program,
                          .buffers = spans,
                          .n_buffers = 2,
                          .grid = { 1, 1, 1 } };
  TinySubmit submit = { .struct_size = sizeof submit, .commands = &command, .n_commands = 1 };
  g_assert_cmpint (h.table->submit (h.device, h.queue, &submit, &error), ==,
                   TINY_STATUS_INVALID);
  g_assert_nonnull (strstr (error.text, "aligned"));
  spans[0].offset = 64;
  g_assert_cmpint (h.table->submit (h.device, h.queue, &submit, &error), ==, TINY_STATUS_OK);
  for (int i = 0; i < 2; i++)
    h.table->free (h.device, spans[i].buffer);
  program_unload (program);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  harness_open ();
  for (unsigned i = 0; i < G_N_ELEMENTS (stream_rows); i++) {
    g_autofree char *path
        = g_strdup_printf ("/plugins-cpu/memory/stream-%s", stream_rows[i].name);
    g_test_add_data_func (path, &stream_rows[i], test_stream);
  }
  g_test_add_func ("/plugins-cpu/memory/stream-socket", test_stream_socket);
  for (unsigned i = 0; i < G_N_ELEMENTS (prefetch_rows); i++) {
    g_autofree char *path
        = g_strdup_printf ("/plugins-cpu/memory/prefetch-%s", prefetch_rows[i].name);
    g_test_add_data_func (path, &prefetch_rows[i], test_prefetch);
  }
  for (unsigned i = 0; i < G_N_ELEMENTS (panel_rows); i++) {
    g_autofree char *path
        = g_strdup_printf ("/plugins-cpu/memory/panels-%s", panel_rows[i].name);
    g_test_add_data_func (path, &panel_rows[i], test_panels);
  }
  g_test_add_func ("/plugins-cpu/memory/aligned-spans", test_aligned_spans);
  int status = g_test_run ();
  harness_close ();
  return status;
}
