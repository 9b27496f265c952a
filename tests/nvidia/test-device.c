/* SPDX-License-Identifier: MIT
 *
 * test-device.c: the CUDA backend through its tables, on the simulated GPU: a thread's context is left as it was, a
 * child of fork () is told that it has no device, transfers within a submission see one another, more is under way than
 * the pinned ring holds, and waiting has an end. */
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nvidia-harness.h"

static const TinyPluginModule *module;
static const TinyDeviceTable *table;
static TinyPluginDevice *device;
static TinyPluginQueue *queue;
static TinyPluginError error = { .struct_size = sizeof error };
#define OK(call)                                                                               \
  if ((call) != TINY_STATUS_OK)                                                                \
  g_error ("%s: %s", #call, error.text)

static void
open_device (void)
{
  void *library = dlopen (CUDA_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  TinyPluginEntry entry = NULL;
  *(void **) &entry = library != NULL ? dlsym (library, TINY_PLUGIN_ENTRY_SYMBOL) : NULL;
  if (entry == NULL)
    g_error ("%s", dlerror ());
  module = entry (0, &error);
  OK (module->init (&test_host, &error));
  OK (module->open ("cuda-0", &device, &table, &error));
  OK (table->queue_create (device, &queue, &error));
}

static TinyPluginBuffer *
new_buffer (gsize n_bytes)
{
  TinyPluginBuffer *buffer;
  OK (table->alloc (device, n_bytes, &buffer, &error));
  return buffer;
}

static TinyCommand
upload (TinyPluginBuffer *buffer, void *host, gsize n_bytes)
{
  return (TinyCommand){ .struct_size = sizeof (TinyCommand),
                        .type = TINY_COMMAND_UPLOAD,
                        .dst = { buffer, 0, n_bytes },
                        .host = host };
}

static TinyCommand
download (TinyPluginBuffer *buffer, void *host, gsize n_bytes)
{
  return (TinyCommand){ .struct_size = sizeof (TinyCommand),
                        .type = TINY_COMMAND_DOWNLOAD,
                        .src = { buffer, 0, n_bytes },
                        .host = host };
}

static guint64
submit (const TinyCommand *commands, guint n)
{
  uint64_t point = 0;
  const TinySubmit work = {
    .struct_size = sizeof work, .commands = commands, .n_commands = n, .out_point = &point
  };
  OK (table->submit (device, queue, &work, &error));
  return point;
}

/* ---- tests ---- */
typedef int (*GetCurrent) (void **);

static void
test_context (void)
{
  void *library = dlopen (g_getenv ("TINY_CUDA_LIBRARY"), RTLD_NOW | RTLD_LOCAL),
       *context = &error;
  GetCurrent get = NULL;
  *(void **) &get = dlsym (library, "cuCtxGetCurrent");
  TinyPluginBuffer *buffer = new_buffer (64);
  char host[64] = { 0 };
  const TinyCommand commands[] = { upload (buffer, host, sizeof host) };
  const guint64 point = submit (commands, 1);
  OK (table->wait (device, queue, point, UINT64_MAX, &error));
  table->free (device, buffer);
  g_assert_cmpint (get (&context), ==, 0);
  g_assert_null (context);
}

static void
test_fork (void)
{
  TinyPluginBuffer *buffer = new_buffer (64);
  const pid_t child = fork ();
  if (child == 0) {
    TinyPluginBuffer *other = NULL;
    const TinyStatus status = table->alloc (device, 64, &other, &error);
    table->free (device, buffer);
    table->close (device);
    _exit (status == TINY_STATUS_DRIVER && strstr (error.text, "before fork ()") != NULL ? 0
                                                                                         : 1);
  }
  int status = 0;
  g_assert_cmpint (waitpid (child, &status, 0), ==, child);
  g_assert_cmpint (status, ==, 0);
  table->free (device, buffer);
}

/* Bytes that were downloaded are uploaded again by the next command, at once and with an overlap. */
static void
test_through_host (void)
{
  enum { N = 5000 };
  guint8 a[N], b[N], host[2 * N] = { 0 };
  for (guint i = 0; i < N; i++)
    a[i] = (guint8) g_test_rand_int ();
  TinyPluginBuffer *first = new_buffer (N), *second = new_buffer (N);
  const TinyCommand commands[] = { upload (first, a, N), download (first, host + N / 2, N),
                                   upload (second, host + N / 2, N), download (second, b, N) };
  const guint64 point = submit (commands, G_N_ELEMENTS (commands));
  OK (table->wait (device, queue, point, UINT64_MAX, &error));
  g_assert_cmpmem (a, N, host + N / 2, N);
  g_assert_cmpmem (a, N, b, N);
  table->free (device, first);
  table->free (device, second);
}

/* Forty submissions of three MiB there and back: the ring holds eight. Points are reached in order. */
static void
test_many (void)
{
  enum { N = 3 << 20, N_SUBMITS = 40 };
  g_autofree guint8 *in = g_malloc (N + N_SUBMITS), *out = g_malloc0 ((gsize) N * N_SUBMITS);
  TinyPluginBuffer *buffer = new_buffer (N);
  guint64 points[N_SUBMITS], last = 0, reached = 0;
  for (gsize i = 0; i < N + N_SUBMITS; i++)
    in[i] = (guint8) (i * 2654435761u >> 13);
  for (guint i = 0; i < N_SUBMITS; i++) {
    const TinyCommand commands[]
        = { upload (buffer, in + i, N), download (buffer, out + (gsize) N * i, N) };
    points[i] = submit (commands, 2);
    OK (table->reached (device, queue, &reached, &error));
    g_assert_cmpuint (reached, >=, last);
    last = reached;
  }
  OK (table->wait (device, queue, points[N_SUBMITS - 1], UINT64_MAX, &error));
  for (guint i = 0; i < N_SUBMITS; i++)
    g_assert_true (memcmp (out + (gsize) N * i, in + i, N) == 0);
  table->free (device, buffer);
}

/* A look answers at once, and a wait with a limit when that is over, with work that goes on. */
static void
test_limits (void)
{
  enum { N = 6 << 20 };
  g_autofree guint8 *host = g_malloc0 (N);
  TinyPluginBuffer *buffer = new_buffer (N);
  const TinyCommand commands[] = { upload (buffer, host, N) };
  guint n_early = 0;
  for (guint i = 0; i < 20; i++) {
    const guint64 point = submit (commands, 1);
    const TinyStatus status = table->wait (device, queue, point, i % 2 * 1000, &error);
    g_assert_true (status == TINY_STATUS_OK || status == TINY_STATUS_TIMEOUT);
    n_early += status == TINY_STATUS_TIMEOUT;
    OK (table->wait (device, queue, point, G_GUINT64_CONSTANT (60000000000), &error));
    g_assert_cmpint (table->wait (device, queue, point, 0, &error), ==, TINY_STATUS_OK);
  }
  g_assert_cmpuint (n_early, >, 0);
  table->free (device, buffer);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  open_device ();
  g_test_add_func ("/nvidia/device/context", test_context);
  g_test_add_func ("/nvidia/device/fork", test_fork);
  g_test_add_func ("/nvidia/device/through-host", test_through_host);
  g_test_add_func ("/nvidia/device/many", test_many);
  g_test_add_func ("/nvidia/device/limits", test_limits);
  const int status = g_test_run ();
  table->queue_destroy (device, queue);
  table->close (device);
  return status;
}
