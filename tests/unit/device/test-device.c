/* SPDX-License-Identifier: MIT
 *
 * test-device.c: devices, buffers, programs and queues over a toy backend in this very file.
 *
 * The toy's memory cannot be mapped, so every copy is a command; its kernel adds one to each byte of
 * its second buffer; it counts what is alive and fails on demand. */
#include <string.h>

#include "base/tiny-error.h"
#include "device/tiny-buffer.h"
#include "device/tiny-program.h"
#include "device/tiny-queue.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED
#endif

struct TinyPluginBuffer {
  guint64 n_bytes;
  guint8 *data;
};

static struct {
  gint n_devices, n_buffers, n_queues, n_programs, n_in_submit;
  guint64 n_bytes, capacity;
  gint n_overlaps;
  TinyStatus submit_status; /* answered instead of working */
} toy;
static guint32 toy_transfer_bytes; /* of the next toy that is opened */
static char the_handle;

static TinyStatus
say (TinyPluginError *error, TinyStatus status, const char *text)
{
  g_strlcpy (error->text, text, sizeof error->text);
  return status;
}

static void
toy_close (TinyPluginDevice *device)
{
  g_atomic_int_add (&toy.n_devices, -1);
}

static TinyStatus
toy_info (TinyPluginDevice *device, TinyDeviceInfo *out, TinyPluginError *error)
{
  g_strlcpy (out->name, "a toy", sizeof out->name);
  out->alignment = 16;
  out->max_buffer_bytes = 1 << 20;
  out->transfer_bytes = toy_transfer_bytes;
  return TINY_STATUS_OK;
}

static TinyStatus
toy_alloc (TinyPluginDevice *device,
           uint64_t n_bytes,
           TinyPluginBuffer **out,
           TinyPluginError *error)
{
  if (toy.n_bytes + n_bytes > toy.capacity)
    return say (error, TINY_STATUS_OUT_OF_MEMORY, "the toy is full");
  *out = g_new0 (TinyPluginBuffer, 1);
  (*out)->n_bytes = n_bytes;
  (*out)->data = g_malloc0 (n_bytes);
  toy.n_bytes += n_bytes;
  g_atomic_int_inc (&toy.n_buffers);
  return TINY_STATUS_OK;
}

static void
toy_free (TinyPluginDevice *device, TinyPluginBuffer *buffer)
{
  toy.n_bytes -= buffer->n_bytes;
  g_atomic_int_add (&toy.n_buffers, -1);
  g_free (buffer->data);
  g_free (buffer);
}

static TinyStatus
toy_queue_create (TinyPluginDevice *device, TinyPluginQueue **out, TinyPluginError *error)
{
  g_atomic_int_inc (&toy.n_queues);
  *out = NULL; /* a handle may be anything */
  return TINY_STATUS_OK;
}

static void
toy_queue_destroy (TinyPluginDevice *device, TinyPluginQueue *queue)
{
  g_atomic_int_add (&toy.n_queues, -1);
}

static void
run (const TinyCommand *command)
{
  const TinySpan *dst = &command->dst, *src = &command->src;
  if (toy_transfer_bytes != 0)
    g_assert_cmpuint (
        (dst->offset | dst->n_bytes | src->offset | src->n_bytes) % toy_transfer_bytes, ==, 0);
  if (command->type == TINY_COMMAND_UPLOAD)
    memcpy (dst->buffer->data + dst->offset, command->host, dst->n_bytes);
  if (command->type == TINY_COMMAND_DOWNLOAD)
    memcpy (command->host, src->buffer->data + src->offset, src->n_bytes);
  if (command->type == TINY_COMMAND_DISPATCH && command->n_buffers == 2)
    for (guint64 i = 0; i < command->buffers[0].n_bytes; i++)
      command->buffers[0].buffer->data[command->buffers[0].offset + i]
          = (guint8) (command->buffers[1].buffer->data[command->buffers[1].offset + i] + 1);
}

static TinyStatus
toy_submit (TinyPluginDevice *device,
            TinyPluginQueue *queue,
            const TinySubmit *work,
            TinyPluginError *error)
{
  if (toy.submit_status != TINY_STATUS_OK)
    return say (error, toy.submit_status, "as told");
  if (g_atomic_int_add (&toy.n_in_submit, 1) != 0)
    g_atomic_int_inc (&toy.n_overlaps);
  for (uint32_t i = 0; i < work->n_commands; i++) {
    g_usleep (1); /* long enough for another thread to come in, were it let in */
    run (&work->commands[i]);
    if (work->out_ns != NULL)
      work->out_ns[i] = 7;
  }
  g_atomic_int_add (&toy.n_in_submit, -1);
  return TINY_STATUS_OK;
}

static TinyStatus
toy_load (TinyPluginDevice *device,
          const TinyProgramArgs *args,
          TinyPluginProgram **out,
          TinyPluginError *error)
{
  if (args->size != 4 || memcmp (args->data, "code", 4) != 0)
    return say (error, TINY_STATUS_CORRUPT, "no code");
  g_atomic_int_inc (&toy.n_programs);
  *out = (TinyPluginProgram *) &the_handle;
  return TINY_STATUS_OK;
}

static void
toy_unload (TinyPluginDevice *device, TinyPluginProgram *program)
{
  g_atomic_int_add (&toy.n_programs, -1);
}

static const TinyDeviceTable toy_table = {
  /* an older plugin, from before map() was there */
  .struct_size = G_STRUCT_OFFSET (TinyDeviceTable, map),
  .close = toy_close,
  .info = toy_info,
  .alloc = toy_alloc,
  .free = toy_free,
  .queue_create = toy_queue_create,
  .queue_destroy = toy_queue_destroy,
  .submit = toy_submit,
  .program_load = toy_load,
  .program_unload = toy_unload,
};

static TinyStatus
toy_target (const char *arch, TinyTarget *out, TinyPluginError *error)
{
  if (g_str_equal (arch, "wrong"))
    return say (error, TINY_STATUS_UNSUPPORTED, "no such thing");
  g_strlcpy (out->arch, arch[0] ? arch : "toy1", sizeof out->arch);
  out->index_dtype = TINY_DTYPE_I32;
  out->dtypes_storage = TINY_DTYPE_BIT (TINY_DTYPE_U8) | TINY_DTYPE_BIT (TINY_DTYPE_I32)
                        | TINY_DTYPE_BIT (TINY_DTYPE_U32);
  out->max_lanes = out->max_params = 1;
  out->max_grid[0] = out->max_grid[1] = out->max_grid[2] = 1;
  if (g_str_equal (arch, "reserved"))
    out->reserved[6] = 1;
  if (g_str_equal (arch, "endless"))
    memset (out->arch, 'x', sizeof out->arch);
  return TINY_STATUS_OK;
}

static TinyStatus
toy_compile (const TinyCompileArgs *args, void **data, uint64_t *size, TinyPluginError *error)
{
  return say (error, TINY_STATUS_COMPILE, "line 1: no");
}

static const TinyRenderer toy_renderer = { .struct_size = sizeof toy_renderer,
                                           .name = "TOYC",
                                           .target = toy_target,
                                           .compile = toy_compile };

static TinyStatus
toy_init (const TinyHost *host, TinyPluginError *error)
{
  void *memory = host->alloc (10);
  g_assert_cmpuint ((guintptr) memory % 64, ==, 0);
  host->free (memory);
  return TINY_STATUS_OK;
}

static void
toy_fini (void)
{
}

static TinyStatus
toy_scan (TinyCandidate *out, uint32_t *n, TinyPluginError *error)
{
  *n = 0;
  return TINY_STATUS_OK;
}

static TinyStatus
toy_open (const char *id,
          TinyPluginDevice **out,
          const TinyDeviceTable **table,
          TinyPluginError *error)
{
  if (!g_str_equal (id, "toy"))
    return say (error, TINY_STATUS_NO_DEVICE, "gone");
  g_atomic_int_inc (&toy.n_devices);
  *out = NULL;
  *table = &toy_table;
  return TINY_STATUS_OK;
}

static const TinyPluginModule toy_module = {
  .struct_size = sizeof toy_module,
  .abi_major = TINY_PLUGIN_ABI_MAJOR,
  .n_renderers = 1,
  .name = "TOY",
  .renderers = &toy_renderer,
  .init = toy_init,
  .fini = toy_fini,
  .scan = toy_scan,
  .open = toy_open,
};

static TinyDevice *
open_toy (const char *id, const char *renderer, const char *arch, GError **error)
{
  g_autoptr (TinyBackend) backend = tiny_backend_new (&toy_module, NULL, NULL);
  const TinyDeviceOptions options
      = { .name = "TOY", .id = id, .renderer = renderer, .arch = arch };
  memset (&toy, 0, sizeof toy);
  toy.capacity = 1 << 22;
  return tiny_device_new (backend, &options, error);
}

static void
assert_all_gone (void)
{
  g_assert_cmpint (toy.n_devices, ==, 0);
  g_assert_cmpint (toy.n_buffers, ==, 0);
  g_assert_cmpint (toy.n_queues, ==, 0);
  g_assert_cmpint (toy.n_programs, ==, 0);
}

/* Upload, run, download, through views, and everything is given back. */
static void
test_whole (void)
{
  g_autoptr (GError) error = NULL;
  TinyDevice *device = open_toy ("toy", NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (tiny_device_get_arch (device), ==, "toy1");
  g_autofree char *name = NULL;
  g_object_get (device, "name", &name, NULL);
  g_assert_cmpstr (name, ==, "TOY");
  TinyBuffer *in = tiny_buffer_new (device, 100), *out = tiny_buffer_new (device, 100);
  TinyBuffer *view = tiny_buffer_new_view (out, 10, 50),
             *part = tiny_buffer_new_view (view, 5, 4);
  g_assert_null (tiny_buffer_get_handle (out));
  g_assert_true (tiny_buffer_upload (in, 0, "abcd", 4, &error));
  g_assert_true (tiny_buffer_ensure (part, &error));
  g_assert_true (tiny_buffer_get_handle (part) == tiny_buffer_get_handle (out));
  g_assert_cmpuint (tiny_buffer_get_offset (part), ==, 15);
  g_assert_null (tiny_buffer_map (part));
  g_autoptr (GBytes) blob = g_bytes_new_static ("code", 4);
  const guint32 group[3] = { 1, 1, 1 };
  TinyProgram *program = tiny_program_new (device, "inc", blob, 2, 0, group, &error);
  g_assert_no_error (error);
  TinySpan spans[] = { tiny_buffer_get_span (part), { tiny_buffer_get_handle (in), 0, 4 } };
  TinyCommand command = { .struct_size = sizeof command,
                          .type = TINY_COMMAND_DISPATCH,
                          .program = tiny_program_get_handle (program),
                          .buffers = spans,
                          .n_buffers = 2,
                          .grid = { 1, 1, 1 } };
  guint64 ns = 0;
  g_assert_true (tiny_device_submit (device, &command, 1, &ns, &error));
  g_assert_cmpuint (ns, ==, 7);
  char got[5] = "";
  g_assert_true (tiny_buffer_download (out, 15, got, 4, &error));
  g_assert_cmpstr (got, ==, "bcde");
  g_autoptr (TinyQueue) queue = tiny_queue_new (device, &error);
  g_assert_true (tiny_queue_submit (queue, &command, 1, NULL, &error));
  g_assert_false (tiny_buffer_upload (view, 48, got, 3, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  g_clear_object (&queue);
  g_object_unref (device);
  tiny_buffer_unref (out);
  tiny_buffer_unref (view);
  g_object_unref (program);
  tiny_buffer_unref (in);
  g_assert_cmpint (toy.n_devices, ==, 1);
  tiny_buffer_unref (part);
  assert_all_gone ();
}

/* Every beginning and length on a device that moves words: what lies around them is left alone. */
static void
test_parts (void)
{
  enum { N = 24 };
  g_autoptr (GError) error = NULL;
  guint8 expected[N], found[N], got[12], bytes[12];
  toy_transfer_bytes = 3;
  g_assert_null (open_toy ("toy", NULL, NULL, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_PLUGIN);
  g_clear_error (&error);
  toy_transfer_bytes = 4;
  TinyDevice *device = open_toy ("toy", NULL, NULL, &error);
  TinyBuffer *buffer = tiny_buffer_new (device, N - 1);
  TinyBuffer *view = tiny_buffer_new_view (buffer, 2, N - 3);
  for (guint i = 0; i < sizeof bytes; i++)
    bytes[i] = (guint8) (200 + i);
  for (guint offset = 0; offset < 9; offset++)
    for (guint n = 0; n <= sizeof bytes; n++) {
      for (guint i = 0; i < N; i++)
        expected[i] = (guint8) i;
      g_assert_true (tiny_buffer_upload (buffer, 0, expected, N - 1, &error));
      g_assert_true (tiny_buffer_upload (view, offset, bytes, n, &error));
      memcpy (expected + 2 + offset, bytes, n);
      g_assert_true (tiny_buffer_download (buffer, 0, found, N - 1, &error));
      g_assert_cmpmem (found, N - 1, expected, N - 1);
      g_assert_true (tiny_buffer_download (view, offset, got, n, &error));
      g_assert_cmpmem (got, n, bytes, n);
    }
  toy.submit_status = TINY_STATUS_LAUNCH;
  g_assert_false (tiny_buffer_upload (view, 1, bytes, 1, &error));
  g_clear_error (&error);
  toy.submit_status = TINY_STATUS_OK;
  toy_transfer_bytes = 0;
  g_object_unref (device);
  tiny_buffer_unref (view);
  tiny_buffer_unref (buffer);
  assert_all_gone ();
}

/* Threads write every other byte of the same words; none of them is lost. */
static struct {
  TinyBuffer *buffer;
  gint n_threads;
} shared;

static gpointer
write_bytes (gpointer unused)
{
  const guint first = (guint) g_atomic_int_add (&shared.n_threads, 1);
  for (guint8 round = 1; round <= 100; round++)
    for (guint i = first; i < 8; i += 4) {
      guint8 found = 0;
      g_assert_true (tiny_buffer_upload (shared.buffer, i, &round, 1, NULL));
      g_assert_true (tiny_buffer_download (shared.buffer, i, &found, 1, NULL));
      g_assert_cmpuint (found, ==, round);
    }
  return NULL;
}

static void
test_neighbours (void)
{
  toy_transfer_bytes = 4;
  TinyDevice *device = open_toy ("toy", NULL, NULL, NULL);
  shared.buffer = tiny_buffer_new (device, 8);
  GThread *threads[4];
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new (NULL, write_bytes, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
  toy_transfer_bytes = 0;
  tiny_buffer_unref (shared.buffer);
  g_object_unref (device);
  assert_all_gone ();
}

static void
test_opening (void)
{
  const struct {
    const char *id, *renderer, *arch;
    TinyError code;
    const char *message;
  } cases[] = {
    { "gone", "", "", TINY_ERROR_NO_DEVICE, "TOY: open: gone" },
    { "toy", "NOPE", "", TINY_ERROR_NO_DEVICE,
      "TOY: backend TOY has no renderer “NOPE”; it has: TOYC" },
    { "toy", "", "wrong", TINY_ERROR_UNSUPPORTED,
      "TOY: renderer TOYC: architecture “wrong”: no such thing" },
    { "toy", "", "reserved", TINY_ERROR_PLUGIN,
      "TOY: renderer TOYC: architecture “reserved”: the target has reserved bits set "
      "(byte 664), which this core does not know" },
    { "toy", "", "endless", TINY_ERROR_PLUGIN,
      "TOY: renderer TOYC: architecture “endless”: the target's arch is endless" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    g_assert_null (open_toy (cases[i].id, cases[i].renderer, cases[i].arch, &error));
    g_assert_error (error, TINY_ERROR, (gint) cases[i].code);
    g_assert_cmpstr (error->message, ==, cases[i].message);
    assert_all_gone ();
  }
}

/* What is freed is used again; a full device gets its pool back; statistics add up. */
static void
test_pool (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyDevice) device = open_toy ("toy", NULL, NULL, &error);
  TinyDeviceMemory memory;
  for (guint i = 0; i < 100; i++) {
    g_autoptr (TinyBuffer) buffer = tiny_buffer_new (device, 1000);
    g_assert_true (tiny_buffer_ensure (buffer, &error));
  }
  tiny_device_get_memory (device, &memory);
  g_assert_cmpuint (memory.n_allocations, ==, 1);
  g_assert_cmpuint (memory.n_reuses, ==, 99);
  g_assert_cmpuint (memory.live_bytes, ==, 0);
  g_assert_cmpuint (memory.peak_bytes, ==, 1024);
  g_assert_cmpuint (memory.pooled_bytes, ==, 1024);
  toy.capacity = toy.n_bytes + 100; /* only what waits can make room */
  g_autoptr (TinyBuffer) other = tiny_buffer_new (device, 300);
  g_assert_true (tiny_buffer_ensure (other, &error));
  tiny_device_get_memory (device, &memory);
  g_assert_cmpuint (memory.pooled_bytes, ==, 0);
  g_autoptr (TinyBuffer) large = tiny_buffer_new (device, 5000);
  g_assert_false (tiny_buffer_ensure (large, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_OUT_OF_MEMORY);
  g_assert_nonnull (strstr (error->message, "the toy is full"));
  g_clear_error (&error);
  g_autoptr (TinyBuffer) huge = tiny_buffer_new (device, (1 << 20) + 1);
  g_assert_false (tiny_buffer_ensure (huge, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_OUT_OF_MEMORY);
  g_assert_nonnull (strstr (error->message, "limit"));
  g_clear_error (&error);
  g_autoptr (TinyBuffer) nothing = tiny_buffer_new (device, 0);
  toy.capacity = 1 << 20;
  g_assert_true (tiny_buffer_ensure (nothing, &error));
  g_assert_true (tiny_buffer_upload (nothing, 0, NULL, 0, &error));
}

/* An ordinary failure passes; a lost device stays lost, fails fast, and lets go of everything. */
static void
test_lost (void)
{
  g_autoptr (GError) error = NULL;
  TinyDevice *device = open_toy ("toy", NULL, NULL, &error);
  TinyBuffer *buffer = tiny_buffer_new (device, 10);
  TinyCommand none = { .struct_size = sizeof none };
  g_assert_true (tiny_buffer_ensure (buffer, &error));
  toy.submit_status = TINY_STATUS_LAUNCH;
  g_assert_false (tiny_device_submit (device, &none, 1, NULL, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_LAUNCH);
  g_assert_cmpstr (error->message, ==, "TOY: running commands: as told");
  g_clear_error (&error);
  toy.submit_status = TINY_STATUS_OK;
  g_assert_true (tiny_device_submit (device, &none, 1, NULL, &error));
  toy.submit_status = TINY_STATUS_DEVICE_LOST;
  g_assert_false (tiny_device_submit (device, &none, 1, NULL, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_DEVICE_LOST);
  g_clear_error (&error);
  toy.submit_status = TINY_STATUS_OK; /* the toy would work again; the device stays lost */
  g_assert_true (tiny_device_is_lost (device));
  g_autoptr (GBytes) blob = g_bytes_new_static ("code", 4);
  const guint32 group[3] = { 1, 1, 1 };
  TinyBuffer *later = tiny_buffer_new (device, 10);
  for (guint i = 0; i < 5; i++) {
    gboolean worked = i == 0   ? tiny_device_submit (device, &none, 1, NULL, &error)
                      : i == 1 ? tiny_buffer_upload (buffer, 0, "x", 1, &error)
                      : i == 2 ? tiny_buffer_ensure (later, &error)
                      : i == 3
                          ? tiny_program_new (device, "p", blob, 0, 0, group, &error) != NULL
                          : tiny_queue_new (device, &error) != NULL;
    g_assert_false (worked);
    g_assert_error (error, TINY_ERROR, TINY_ERROR_DEVICE_LOST);
    g_clear_error (&error);
  }
  tiny_buffer_unref (later);
  tiny_buffer_unref (buffer);
  g_object_unref (device);
  assert_all_gone ();
}

static void
test_code (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyDevice) device = open_toy ("toy", NULL, NULL, &error);
  TinyCompileArgs args = { .struct_size = sizeof args, .name = "k" };
  g_autoptr (GBytes) blob = g_bytes_new_static ("bad", 3);
  const guint32 group[3] = { 1, 1, 1 };
  g_assert_null (tiny_device_compile (device, &args, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_COMPILE);
  g_assert_cmpstr (error->message, ==, "TOY: compile: line 1: no");
  g_clear_error (&error);
  g_assert_null (tiny_device_disassemble (device, blob, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED);
  g_clear_error (&error);
  g_assert_null (tiny_program_new (device, "p", blob, 0, 0, group, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_FORMAT);
  g_assert_cmpstr (error->message, ==, "TOY: loading program p: no code");
}

static gpointer
use_device (gpointer data)
{
  TinyDevice *device = data;
  for (guint i = 0; i < 500; i++) {
    guint8 value = (guint8) i, got = 0;
    g_autoptr (TinyBuffer) buffer = tiny_buffer_new (device, 1 + i % 3 * 300);
    g_assert_true (tiny_buffer_upload (buffer, 0, &value, 1, NULL));
    g_assert_true (tiny_buffer_download (buffer, 0, &got, 1, NULL));
    g_assert_cmpuint (got, ==, value);
  }
  return NULL;
}

/* A queue sees one thread at a time, whoever submits. Allocation is left to one thread: the toy's
 * counters are plain. */
static void
test_threads (void)
{
  g_autoptr (TinyDevice) device = open_toy ("toy", NULL, NULL, NULL);
  for (guint i = 0; i < 3; i++) { /* enough blocks for all threads to live on the pool */
    g_autoptr (GPtrArray) held = g_ptr_array_new_with_free_func (g_object_unref);
    for (guint j = 0; j < 8; j++) {
      TinyBuffer *buffer = tiny_buffer_new (device, 1 + i * 300);
      g_assert_true (tiny_buffer_ensure (buffer, NULL));
      g_ptr_array_add (held, buffer);
    }
  }
  GThread *threads[4];
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("user", use_device, device);
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
  g_assert_cmpint (toy.n_overlaps, ==, 0);
}

/* What the core adds to a submit: under 200 ns, measured as the best of many rounds. The machine may be busy: some
 * hundred rounds until one is good enough. Sanitizers' calls cost what they cost. */
static void
test_overhead (void)
{
  g_autoptr (TinyDevice) device = open_toy ("toy", NULL, NULL, NULL);
  gint64 best = G_MAXINT64;
  for (guint round = 0; round < 20 || (best / 10 >= 200 && round < 400); round++) {
    gint64 begin = g_get_monotonic_time ();
    for (guint i = 0; i < 10000; i++)
      tiny_device_submit (device, NULL, 0, NULL, NULL);
    best = MIN (best, g_get_monotonic_time () - begin);
  }
  g_test_message ("%.0f ns for each submit, the toy's part included", (double) best / 10);
#ifndef IS_SANITIZED
  g_assert_cmpint (best / 10, <, 200);
#endif
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/device/whole", test_whole);
  g_test_add_func ("/device/parts", test_parts);
  g_test_add_func ("/device/neighbours", test_neighbours);
  g_test_add_func ("/device/opening", test_opening);
  g_test_add_func ("/device/pool", test_pool);
  g_test_add_func ("/device/lost", test_lost);
  g_test_add_func ("/device/code", test_code);
  g_test_add_func ("/device/threads", test_threads);
  g_test_add_func ("/device/overhead", test_overhead);
  return g_test_run ();
}
