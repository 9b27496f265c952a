/* SPDX-License-Identifier: MIT
 *
 * Proves the device: buffers and copies, wrong arguments refused, grids spread over threads, several
 * threads compiling and submitting at once, and a forked child that still computes. */
#include "harness.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* out[g] = in[g] * 3 + g over blocks of 64 elements, one block a grid point. */
static TinyPluginProgram *
new_blocks (uint32_t n_blocks)
{
  g_autofree Program *p = program_new ("blocks");
  p->linear.grid[0] = n_blocks;
  uint32_t out = program_param (p, TINY_DTYPE_I32, n_blocks * 64, TINY_PARAM_WRITE);
  uint32_t in = program_param (p, TINY_DTYPE_I32, n_blocks * 64, TINY_PARAM_READ);
  uint32_t g = ADD (GRID, I64, 1, 0), width = ADD (CONST, I64, 1, 64);
  uint32_t at = ADD (MUL, I64, 1, 0, g, width), three = ADD (CONST, I32, 64, 3);
  uint32_t x = ADD (LOAD, I32, 64, 0, in, at), y = ADD (MUL, I32, 64, 0, x, three);
  uint32_t narrow = ADD (CAST, I32, 1, 0, g), splat = ADD (VECTOR, I32, 64, 0, narrow);
  uint32_t z = ADD (ADD, I32, 64, 0, y, splat);
  ADD (STORE, VOID, 64, 0, out, at, z);
  return program_build (p);
}

static void
check_blocks (TinyPluginProgram *program, uint32_t n_blocks, int seed)
{
  g_autofree int32_t *in = g_new (int32_t, n_blocks * 64),
                     *out = g_new0 (int32_t, n_blocks * 64);
  for (uint32_t i = 0; i < n_blocks * 64; i++)
    in[i] = (int32_t) i * seed;
  Array arrays[2] = { { out, n_blocks * 256 }, { in, n_blocks * 256 } };
  program_run (program, arrays, 2, NULL, 0, (uint32_t[]){ n_blocks, 1, 1 });
  for (uint32_t i = 0; i < n_blocks * 64; i++)
    g_assert_cmpint (out[i], ==, (int32_t) i * seed * 3 + (int32_t) (i / 64));
}

static void
test_grids (void)
{
  static const uint32_t sizes[] = { 1, 2, 3, 7, 64, 1000, 5000 };
  for (unsigned i = 0; i < G_N_ELEMENTS (sizes); i++) {
    TinyPluginProgram *program = new_blocks (sizes[i]);
    for (int round = 0; round < 20; round++)
      check_blocks (program, sizes[i], round + 1);
    program_unload (program);
  }
}

static gpointer
compile_and_submit (gpointer data)
{
  for (int round = 0; round < 12; round++) {
    TinyPluginProgram *program = new_blocks (500 + (uint32_t) round);
    for (int i = 0; i < 20; i++)
      check_blocks (program, 500 + (uint32_t) round, GPOINTER_TO_INT (data) + i);
    program_unload (program);
  }
  return NULL;
}

static void
test_threads (void)
{
  GThread *threads[4];
  for (int i = 0; i < 4; i++)
    threads[i] = g_thread_new ("submitter", compile_and_submit, GINT_TO_POINTER (i + 1));
  for (int i = 0; i < 4; i++)
    g_thread_join (threads[i]);
}

static void
test_fork (void)
{
  TinyPluginProgram *program = new_blocks (3000);
  check_blocks (program, 3000, 1);
  pid_t child = fork ();
  if (child == 0) {
    alarm (20);
    check_blocks (program, 3000, 2);
    program_unload (program);
    harness_close ();
    _exit (0);
  }
  int status = -1;
  waitpid (child, &status, 0);
  g_assert_cmpint (status, ==, 0);
  check_blocks (program, 3000, 3);
  program_unload (program);
}

static void
test_open_close (void)
{
  TinyPluginError error = new_error ();
  for (int i = 0; i < 20; i++) {
    TinyPluginDevice *device;
    const TinyDeviceTable *table;
    g_assert_cmpint (h.module->open ("cpu", &device, &table, &error), ==, TINY_STATUS_OK);
    table->close (device);
  }
  TinyPluginDevice *device = NULL;
  const TinyDeviceTable *table;
  g_assert_cmpint (h.module->open ("cpu:7", &device, &table, &error), ==,
                   TINY_STATUS_NO_DEVICE);
  TinyCandidate candidates[2]
      = { { .struct_size = sizeof candidates[0] }, { .struct_size = sizeof candidates[0] } };
  uint32_t n = 0;
  g_assert_cmpint (h.module->scan (NULL, &n, &error), ==, TINY_STATUS_OK);
  g_assert_cmpuint (n, ==, 1);
  n = 2;
  g_assert_cmpint (h.module->scan (candidates, &n, &error), ==, TINY_STATUS_OK);
  g_assert_cmpstr (candidates[0].id, ==, "cpu");
  TinyDeviceInfo info = { .struct_size = sizeof info };
  g_assert_cmpint (h.table->info (h.device, &info, &error), ==, TINY_STATUS_OK);
  g_assert_cmpstr (info.arch, ==, h.target.arch);
  g_assert_true (info.flags & TINY_DEVICE_HOST_MEMORY);
}

static void
test_memory (void)
{
  static const uint64_t sizes[] = { 0, 1, 63, 64, 4097, 1 << 21, (5 << 20) + 3 };
  TinyPluginError error = new_error ();
  for (unsigned i = 0; i < G_N_ELEMENTS (sizes); i++) {
    TinyPluginBuffer *buffer;
    void *address;
    g_assert_cmpint (h.table->alloc (h.device, sizes[i], &buffer, &error), ==, TINY_STATUS_OK);
    g_assert_cmpint (h.table->map (h.device, buffer, &address, &error), ==, TINY_STATUS_OK);
    g_assert_cmpuint ((uintptr_t) address % 64, ==, 0);
    memset (address, 1, sizes[i]);
    h.table->free (h.device, buffer);
  }
  static const uint64_t too_much[] = { UINT64_MAX, INT64_MAX, UINT64_C (1) << 50 };
  for (unsigned i = 0; i < G_N_ELEMENTS (too_much); i++) {
    TinyPluginBuffer *buffer;
    g_assert_cmpint (h.table->alloc (h.device, too_much[i], &buffer, &error), ==,
                     TINY_STATUS_OUT_OF_MEMORY);
    g_assert_cmpstr (error.text, !=, "");
  }
}

static TinyStatus
submit_one (TinyCommand command)
{
  TinyPluginError error = new_error ();
  uint64_t ns = 0;
  command.struct_size = sizeof command;
  TinySubmit submit
      = { .struct_size = sizeof submit, .commands = &command, .n_commands = 1, .out_ns = &ns };
  return h.table->submit (h.device, h.queue, &submit, &error);
}

static void
test_wrong_arguments (void)
{
  TinyPluginError error = new_error ();
  TinyPluginBuffer *small, *large;
  TinyPluginProgram *program = new_blocks (2);
  h.table->alloc (h.device, 64, &small, &error);
  h.table->alloc (h.device, 512, &large, &error);
  char host[512] = { 0 };
#define REFUSED(...)                                                                           \
  g_assert_cmpint (submit_one ((TinyCommand){ __VA_ARGS__ }), ==, TINY_STATUS_INVALID)
#define SPAN(buffer, at, n) (TinySpan){ buffer, at, n }
  g_assert_cmpint (submit_one ((TinyCommand){ .type = 9 }), ==, TINY_STATUS_UNSUPPORTED);
  REFUSED (.type = TINY_COMMAND_UPLOAD, .dst = SPAN (small, 0, 65), .host = host);
  REFUSED (.type = TINY_COMMAND_UPLOAD, .dst = SPAN (small, 65, 0), .host = host);
  REFUSED (.type = TINY_COMMAND_UPLOAD, .dst = SPAN (small, UINT64_MAX, 2), .host = host);
  REFUSED (.type = TINY_COMMAND_UPLOAD, .dst = SPAN (small, 0, 64));
  REFUSED (.type = TINY_COMMAND_DOWNLOAD, .src = SPAN (NULL, 0, 4), .host = host);
  REFUSED (.type = TINY_COMMAND_COPY, .dst = SPAN (small, 0, 8), .src = SPAN (large, 0, 9));
  TinySpan spans[2] = { SPAN (large, 0, 512), SPAN (large, 0, 512) };
  REFUSED (.type = TINY_COMMAND_DISPATCH, .buffers = spans, .n_buffers = 2,
           .grid = { 2, 1, 1 });
  REFUSED (.type = TINY_COMMAND_DISPATCH, .program = program, .buffers = spans, .n_buffers = 1,
           .grid = { 2, 1, 1 });
  REFUSED (.type = TINY_COMMAND_DISPATCH, .program = program, .buffers = spans, .n_buffers = 2,
           .n_variables = 1, .grid = { 2, 1, 1 });
  REFUSED (.type = TINY_COMMAND_DISPATCH, .program = program, .buffers = spans, .n_buffers = 2,
           .grid = { 2, 2, 1 });
  spans[1].n_bytes = 513;
  REFUSED (.type = TINY_COMMAND_DISPATCH, .program = program, .buffers = spans, .n_buffers = 2,
           .grid = { 2, 1, 1 });
  spans[1].n_bytes = 512;
  g_assert_cmpint (submit_one ((TinyCommand){ .type = TINY_COMMAND_DISPATCH,
                                              .program = program,
                                              .buffers = spans,
                                              .n_buffers = 2,
                                              .grid = { 2, 1, 1 } }),
                   ==, TINY_STATUS_OK);
  h.table->free (h.device, small);
  h.table->free (h.device, large);
  program_unload (program);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_setenv ("TINY_THREADS", "3", TRUE);
  harness_open ();
  g_test_add_func ("/plugins-cpu/device/open-close", test_open_close);
  g_test_add_func ("/plugins-cpu/device/memory", test_memory);
  g_test_add_func ("/plugins-cpu/device/wrong-arguments", test_wrong_arguments);
  g_test_add_func ("/plugins-cpu/device/grids", test_grids);
  g_test_add_func ("/plugins-cpu/device/threads", test_threads);
  g_test_add_func ("/plugins-cpu/device/fork", test_fork);
  int result = g_test_run ();
  harness_close ();
  return result;
}
