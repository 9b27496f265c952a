/* SPDX-License-Identifier: MIT
 *
 * Proves that stores go past the caches where, and only where, that is right: the kernel goes
 * through more memory than the last cache holds, does not read what it stores, and fills whole
 * lines at addresses that are known to be aligned; that the results are the same, and that a span
 * that begins elsewhere is refused. */
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
  g_test_add_func ("/plugins-cpu/memory/aligned-spans", test_aligned_spans);
  int status = g_test_run ();
  harness_close ();
  return status;
}
