/* SPDX-License-Identifier: MIT
 *
 * Proves the device: words at every place, copies within one buffer,
 * grids of every shape, numbers that launches are given, work-groups with shared memory, timing, and
 * threads that use it at once. */
#include "webgpu-harness.h"

static Rig rig;

static void
submit (const TinyCommand *commands, guint n)
{
  if (webgpu_submit (&rig, commands, n) != TINY_STATUS_OK)
    g_error ("%s", rig.error.text);
}

/* ---- memory ---- */
static TinySpan
part (TinyPluginBuffer *buffer, guint64 offset, guint64 n)
{
  return (TinySpan){ buffer, offset, n };
}

/* Every beginning and length up to 12 words, with what is around them left alone. */
static void
test_parts (void)
{
  enum { N = 23 };
  guint32 whole[N], found[N], words[12];
  for (guint i = 0; i < G_N_ELEMENTS (words); i++)
    words[i] = 200 + i;
  TinyPluginBuffer *a = webgpu_alloc (&rig, sizeof whole), *b = webgpu_alloc (&rig, 4 * N - 3);
  for (guint offset = 0; offset < 9; offset++)
    for (guint n = 0; n <= G_N_ELEMENTS (words); n++) {
      for (guint i = 0; i < N; i++)
        whole[i] = i;
      TinyCommand commands[] = {
        webgpu_copy_command (TINY_COMMAND_UPLOAD, part (a, 0, sizeof whole), whole),
        webgpu_copy_command (TINY_COMMAND_UPLOAD, part (a, 4 * offset, 4 * n), words),
        webgpu_copy_command (TINY_COMMAND_COPY, part (a, 0, sizeof whole), NULL),
        webgpu_copy_command (TINY_COMMAND_COPY, part (b, 4, 4 * n), NULL),
        webgpu_copy_command (TINY_COMMAND_DOWNLOAD, part (b, 0, sizeof whole), found),
      };
      commands[2].dst.buffer = b;
      commands[3].src = part (a, 4 * offset, 4 * n);
      submit (commands, G_N_ELEMENTS (commands));
      memcpy (whole + offset, words, 4 * n);
      memcpy (whole + 1, words, 4 * n);
      g_assert_cmpmem (found, sizeof found, whole, sizeof whole);
    }
  rig.table->free (rig.device, a);
  rig.table->free (rig.device, b);
}

static void
test_within (void)
{
  guint32 data[64], found[64];
  for (guint i = 0; i < 64; i++)
    data[i] = i;
  TinyPluginBuffer *a = webgpu_alloc (&rig, sizeof data), *none = webgpu_alloc (&rig, 0);
  TinyCommand commands[] = {
    webgpu_copy_command (TINY_COMMAND_UPLOAD, part (a, 0, sizeof data), data),
    webgpu_copy_command (TINY_COMMAND_COPY, part (a, 128, 64), NULL),
    webgpu_copy_command (TINY_COMMAND_COPY, part (a, 64, 0), NULL),
    webgpu_copy_command (TINY_COMMAND_DOWNLOAD, part (a, 0, sizeof data), found),
    webgpu_copy_command (TINY_COMMAND_DOWNLOAD, part (none, 0, 0), found),
  };
  commands[1].src = part (a, 0, 64);
  commands[2].src = part (a, 0, 0);
  submit (commands, G_N_ELEMENTS (commands));
  memcpy (data + 32, data, 64);
  g_assert_cmpmem (found, sizeof found, data, sizeof data);
  rig.table->free (rig.device, a);
  rig.table->free (rig.device, none);
}

/* More than is read back at a time. */
static void
test_large (void)
{
  const gsize n = (20 << 20) + 8;
  g_autofree guint8 *data = g_malloc (n), *found = g_malloc0 (n);
  for (gsize i = 0; i < n; i++)
    data[i] = (guint8) (i * 7 + (i >> 12));
  TinyPluginBuffer *a = webgpu_alloc (&rig, n);
  const TinyCommand commands[] = {
    webgpu_copy_command (TINY_COMMAND_UPLOAD, part (a, 0, n), data),
    webgpu_copy_command (TINY_COMMAND_DOWNLOAD, part (a, 0, n), found),
  };
  submit (commands, G_N_ELEMENTS (commands));
  g_assert_true (memcmp (data, found, n) == 0);
  rig.table->free (rig.device, a);
}

/* ---- launches ---- */

/* out[x + nx (y + ny z)] += 1 + x + 1000 y + 1000000 z */
static void
test_grid (gconstpointer data)
{
  const guint32 *grid = data;
  const guint n = grid[0] * grid[1] * grid[2];
  g_autofree Script *s = g_new (Script, 1);
  g_autofree gint32 *out = g_new0 (gint32, n);
  script_init (s);
  s->linear.name = "grid";
  memcpy (s->linear.grid, grid, sizeof s->linear.grid);
  guint32 buffer = emit_param (s, TINY_DTYPE_I32, n), axis[3], at, value;
  for (guint i = 0; i < 3; i++)
    axis[i] = emit_arg (s, TINY_INSTR_GRID, TINY_DTYPE_I32, i);
  at = emit (s, MUL, I32, 1, axis[2], emit_int (s, TINY_DTYPE_I32, grid[1]));
  at = emit (s, MUL, I32, 1, emit (s, ADD, I32, 1, at, axis[1]),
             emit_int (s, TINY_DTYPE_I32, grid[0]));
  at = emit (s, ADD, I32, 1, at, axis[0]);
  value = emit (s, ADD, I32, 1, axis[0], emit_int (s, TINY_DTYPE_I32, 1));
  value = emit (s, ADD, I32, 1, value,
                emit (s, MUL, I32, 1, axis[1], emit_int (s, TINY_DTYPE_I32, 1000)));
  value = emit (s, ADD, I32, 1, value,
                emit (s, MUL, I32, 1, axis[2], emit_int (s, TINY_DTYPE_I32, 1000000)));
  value = emit (s, ADD, I32, 1, value, emit (s, LOAD, I32, 1, buffer, at));
  emit (s, STORE, VOID, 1, buffer, at, value);
  void *const host[] = { out };
  const gsize size = n * sizeof *out;
  if (webgpu_run (&rig, s, host, &size, NULL) != TINY_STATUS_OK)
    g_error ("%s", rig.error.text);
  for (guint i = 0; i < n; i++)
    g_assert_cmpint (out[i], ==,
                     (gint32) (1 + i % grid[0] + 1000 * (i / grid[0] % grid[1])
                               + 1000000 * (i / grid[0] / grid[1])));
}

/* Hundreds of launches in one submission, each with numbers of its own: out[0] = 3 out[0] + a - b. */
static void
test_variables (void)
{
  enum { N = 400 };
  static TinyCommand commands[N + 2];
  static gint64 numbers[N][2];
  g_autofree Script *s = g_new (Script, 1);
  gint32 value = 1, expected = 1;
  script_init (s);
  s->linear.name = "variables";
  s->linear.n_variables = 2;
  guint32 buffer = emit_param (s, TINY_DTYPE_I32, 1), zero = emit_int (s, TINY_DTYPE_I32, 0);
  guint32 a = emit_arg (s, TINY_INSTR_VARIABLE, TINY_DTYPE_I32, 0);
  guint32 b = emit_arg (s, TINY_INSTR_VARIABLE, TINY_DTYPE_I32, 1);
  guint32 three = emit (s, MUL, I32, 1, emit (s, LOAD, I32, 1, buffer, zero),
                        emit_int (s, TINY_DTYPE_I32, 3));
  emit (s, STORE, VOID, 1, buffer, zero,
        emit (s, SUB, I32, 1, emit (s, ADD, I32, 1, three, a), b));
  TinyPluginProgram *program = NULL;
  g_assert_cmpint (webgpu_load (&rig, s, &program), ==, TINY_STATUS_OK);
  const TinySpan span = part (webgpu_alloc (&rig, 4), 0, 4);
  commands[0] = webgpu_copy_command (TINY_COMMAND_UPLOAD, span, &value);
  commands[N + 1] = webgpu_copy_command (TINY_COMMAND_DOWNLOAD, span, &value);
  for (gint i = 0; i < N; i++) {
    numbers[i][0] = i * 17 - 1000;
    numbers[i][1] = i % 5 == 0 ? G_MININT32 : -i;
    expected
        = (gint32) ((guint32) expected * 3 + (guint32) numbers[i][0] - (guint32) numbers[i][1]);
    commands[i + 1] = (TinyCommand){ .struct_size = sizeof (TinyCommand),
                                     .type = TINY_COMMAND_DISPATCH,
                                     .program = program,
                                     .buffers = &span,
                                     .variables = numbers[i],
                                     .n_buffers = 1,
                                     .n_variables = 2,
                                     .grid = { 1, 1, 1 } };
  }
  submit (commands, N + 2);
  g_assert_cmpint (value, ==, expected);
  rig.table->free (rig.device, span.buffer);
  rig.table->program_unload (rig.device, program);
}

/* Each group turns its 8x4 items' numbers round in shared memory. */
static void
test_groups (void)
{
  enum { ITEMS = 32, GROUPS = 50 };
  g_autofree Script *s = g_new (Script, 1);
  gint32 out[GROUPS * ITEMS];
  script_init (s);
  s->linear.name = "groups";
  s->linear.grid[0] = GROUPS / 2;
  s->linear.grid[1] = 2;
  s->linear.group[0] = 8;
  s->linear.group[1] = 4;
  guint32 buffer = emit_param (s, TINY_DTYPE_I32, GROUPS * ITEMS);
  guint32 local = emit_arg (s, TINY_INSTR_LOCAL, TINY_DTYPE_I32, ITEMS);
  guint32 x = emit_arg (s, TINY_INSTR_GROUP, TINY_DTYPE_I32, 0);
  guint32 y = emit_arg (s, TINY_INSTR_GROUP, TINY_DTYPE_I32, 1);
  guint32 item
      = emit (s, ADD, I32, 1, x, emit (s, MUL, I32, 1, y, emit_int (s, TINY_DTYPE_I32, 8)));
  guint32 group = emit (s, ADD, I32, 1, emit_arg (s, TINY_INSTR_GRID, TINY_DTYPE_I32, 0),
                        emit (s, MUL, I32, 1, emit_arg (s, TINY_INSTR_GRID, TINY_DTYPE_I32, 1),
                              emit_int (s, TINY_DTYPE_I32, GROUPS / 2)));
  guint32 at = emit (s, ADD, I32, 1, item,
                     emit (s, MUL, I32, 1, group, emit_int (s, TINY_DTYPE_I32, ITEMS)));
  emit (s, STORE, VOID, 1, local, item, emit (s, LOAD, I32, 1, buffer, at));
  emit_n (s, TINY_INSTR_BARRIER, TINY_DTYPE_VOID, 1, 0, 0, NULL);
  guint32 other = emit (s, SUB, I32, 1, emit_int (s, TINY_DTYPE_I32, ITEMS - 1), item);
  emit (s, STORE, VOID, 1, buffer, at, emit (s, LOAD, I32, 1, local, other));
  for (gint i = 0; i < GROUPS * ITEMS; i++)
    out[i] = i * i;
  void *const host[] = { out };
  const gsize size = sizeof out;
  if (webgpu_run (&rig, s, host, &size, NULL) != TINY_STATUS_OK)
    g_error ("%s", rig.error.text);
  for (gint i = 0; i < GROUPS * ITEMS; i++) {
    gint from = i / ITEMS * ITEMS + ITEMS - 1 - i % ITEMS;
    g_assert_cmpint (out[i], ==, from * from);
  }
}

/* A launch takes time, and longer when there is more to do. */
static void
test_timing (void)
{
  enum { N = 1 << 16 };
  g_autofree Script *s = g_new (Script, 1);
  TinyPluginProgram *programs[2];
  guint64 ns[3] = { 0 };
  const TinySpan span = part (webgpu_alloc (&rig, 4 * N), 0, 4 * N);
  for (guint i = 0; i < 2; i++) {
    script_init (s);
    s->linear.name = "timing";
    s->linear.grid[0] = N;
    guint32 buffer = emit_param (s, TINY_DTYPE_I32, N);
    guint32 at = emit_arg (s, TINY_INSTR_GRID, TINY_DTYPE_I32, 0);
    guint32 range = emit (s, RANGE, I32, 1, emit_int (s, TINY_DTYPE_I32, i == 0 ? 1 : 300));
    guint32 sum = emit (s, ADD, I32, 1, emit (s, LOAD, I32, 1, buffer, at), range);
    emit (s, STORE, VOID, 1, buffer, at, sum);
    emit (s, END, VOID, 1, range);
    g_assert_cmpint (webgpu_load (&rig, s, &programs[i]), ==, TINY_STATUS_OK);
  }
  TinyCommand commands[3];
  for (guint i = 0; i < 3; i++)
    commands[i] = (TinyCommand){ .struct_size = sizeof (TinyCommand),
                                 .type = TINY_COMMAND_DISPATCH,
                                 .program = programs[i / 2],
                                 .buffers = &span,
                                 .n_buffers = 1,
                                 .grid = { N, 1, 1 } };
  const TinySubmit work
      = { .struct_size = sizeof work, .commands = commands, .n_commands = 3, .out_ns = ns };
  g_assert_cmpint (rig.table->submit (rig.device, rig.queue, &work, &rig.error), ==, 0);
  g_test_message ("%" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT, ns[0],
                  ns[1], ns[2]);
  g_assert_cmpuint (ns[1], >, 0);
  g_assert_cmpuint (ns[2], >, ns[1]);
  g_assert_cmpuint (ns[2], <, 60000000000);
  rig.table->free (rig.device, span.buffer);
  rig.table->program_unload (rig.device, programs[0]);
  rig.table->program_unload (rig.device, programs[1]);
}

/* ---- threads ---- */
static gpointer
use (gpointer data)
{
  Rig own = rig;
  g_autofree Script *s = g_new (Script, 1);
  gint32 values[256];
  void *const host[] = { values };
  const gsize size = sizeof values;
  gint number = GPOINTER_TO_INT (data);
  script_init (s);
  s->linear.name = "threads";
  s->linear.grid[0] = 256;
  guint32 buffer = emit_param (s, TINY_DTYPE_I32, 256);
  guint32 at = emit_arg (s, TINY_INSTR_GRID, TINY_DTYPE_I32, 0);
  guint32 value = emit (s, MUL, I32, 1, emit (s, LOAD, I32, 1, buffer, at),
                        emit_int (s, TINY_DTYPE_I32, number));
  emit (s, STORE, VOID, 1, buffer, at, value);
  for (guint round = 0; round < 10; round++) {
    for (gint i = 0; i < 256; i++)
      values[i] = i;
    if (webgpu_run (&own, s, host, &size, NULL) != TINY_STATUS_OK)
      g_error ("%s", own.error.text);
    for (gint i = 0; i < 256; i++)
      g_assert_cmpint (values[i], ==, i * number);
  }
  return NULL;
}

static void
test_threads (void)
{
  GThread *threads[4];
  for (gint i = 0; i < 4; i++)
    threads[i] = g_thread_new ("webgpu", use, GINT_TO_POINTER (i + 2));
  for (gint i = 0; i < 4; i++)
    g_thread_join (threads[i]);
}

int
main (int argc, char **argv)
{
  static const guint32 grids[][3] = { { 1, 1, 1 },   { 63, 1, 1 },    { 5, 7, 3 },
                                      { 1, 1, 300 }, { 70000, 3, 1 }, { 1, 5000000, 1 } };
  g_test_init (&argc, &argv, NULL);
  if (!device_is_there ())
    return 0;
  webgpu_open (&rig);
  g_test_add_func ("/plugins-webgpu/device/parts", test_parts);
  g_test_add_func ("/plugins-webgpu/device/within", test_within);
  g_test_add_func ("/plugins-webgpu/device/large", test_large);
  for (guint i = 0; i < G_N_ELEMENTS (grids); i++) {
    g_autofree char *path = g_strdup_printf ("/plugins-webgpu/device/grid-%ux%ux%u",
                                             grids[i][0], grids[i][1], grids[i][2]);
    g_test_add_data_func (path, grids[i], test_grid);
  }
  g_test_add_func ("/plugins-webgpu/device/variables", test_variables);
  g_test_add_func ("/plugins-webgpu/device/groups", test_groups);
  g_test_add_func ("/plugins-webgpu/device/timing", test_timing);
  g_test_add_func ("/plugins-webgpu/device/threads", test_threads);
  int status = g_test_run ();
  rig_close (&rig);
  return status;
}
