/* SPDX-License-Identifier: MIT
 *
 * test-timeline.c: work that goes on after it was submitted, and memory that is not coherent.
 *
 * On the toy of toy-timeline.c; ../asynchronous.c also watches that the core frees nothing that is in use. */
#include <string.h>

#include "../asynchronous.h"
#include "base/tiny-error.h"
#include "device/tiny-buffer.h"
#include "device/tiny-program.h"
#include "device/tiny-queue.h"
#include "toy-timeline.h"

enum { N = 64 };

/* A buffer of bytes that are all @value. */
static TinyBuffer *
new_buffer (TinyDevice *device, guint8 value)
{
  guint8 bytes[N];
  TinyBuffer *buffer = tiny_buffer_new (device, N);
  memset (bytes, value, N);
  g_assert_true (tiny_buffer_upload (buffer, 0, bytes, N, NULL));
  return buffer;
}

static gboolean
check_buffer (gpointer data, GError **error)
{
  return tiny_buffer_check (data, error);
}

/* The engine's way with a kernel: @to becomes @from and one. */
static gboolean
enqueue_increment (TinyBuffer *to, TinyBuffer *from, guint64 *out_point, GError **error)
{
  TinySpan spans[] = { tiny_buffer_get_span (to), tiny_buffer_get_span (from) };
  TinyCommand command = { .struct_size = sizeof command,
                          .type = TINY_COMMAND_DISPATCH,
                          .buffers = spans,
                          .n_buffers = 2 };
  TinyQueue *queue = tiny_device_get_queue (tiny_buffer_get_device (to));
  const TinyWork work = { &command, 1, NULL, check_buffer, from };
  gboolean good = tiny_queue_enqueue (queue, &work, out_point, error);
  memset (spans, 0xff, sizeof spans); /* nothing of it is needed any more */
  memset (&command, 0xff, sizeof command);
  if (good && *out_point != 0) {
    tiny_buffer_mark (from, *out_point, FALSE);
    tiny_buffer_mark (to, *out_point, TRUE);
  }
  return good;
}

static guint64
increment (TinyBuffer *to, TinyBuffer *from)
{
  g_autoptr (GError) error = NULL;
  guint64 point = 0;
  enqueue_increment (to, from, &point, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (point, >, 0);
  return point;
}

static void
assert_value (TinyBuffer *buffer, guint8 value)
{
  g_autoptr (GError) error = NULL;
  guint8 bytes[N];
  tiny_buffer_download (buffer, 0, bytes, N, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < N; i++)
    g_assert_cmpuint (bytes[i], ==, value);
}

static void
assert_failed (TinyBuffer *buffer)
{
  g_autoptr (GError) error = NULL;
  guint8 bytes[N];
  g_assert_false (tiny_buffer_download (buffer, 0, bytes, N, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_LAUNCH);
  g_assert_cmpstr (error->message, ==, "TOY: running commands: a kernel failed");
}

/* ---- the tests ---- */

/* Submitting does not wait, looking and waiting do as they are told, reading waits by itself. */
static void
test_overlap (void)
{
  g_autoptr (GError) error = NULL;
  TinyDevice *device = open_toy ();
  TinyQueue *queue = tiny_device_get_queue (device);
  TinyBuffer *a = new_buffer (device, 1), *b = new_buffer (device, 0);
  g_assert_true (tiny_device_is_asynchronous (device));
  asynchronous_set_gate (0);
  guint64 first = increment (b, a), second = increment (b, b);
  g_assert_cmpuint (second, >, first);
  for (guint i = 0; i < 2; i++) {
    g_assert_false (tiny_queue_wait (queue, second, i * 1000000, &error));
    g_assert_error (error, TINY_ERROR, TINY_ERROR_TIMEOUT);
    g_assert_cmpstr (error->message, ==, "TOY: waiting for commands: took too long");
    g_clear_error (&error);
  }
  asynchronous_set_gate (1);
  g_assert_true (tiny_queue_wait (queue, first, G_MAXUINT64, &error));
  g_assert_false (tiny_queue_wait (queue, second, 0, NULL));
  GThread *gate = asynchronous_open_gate_later (20);
  assert_value (b, 3);
  g_thread_join (gate);
  g_assert_true (tiny_queue_wait (queue, second, 0, &error));
  g_assert_true (tiny_device_wait (device, &error));
  guint64 ns = 0;
  TinyCommand none = { .struct_size = sizeof none };
  g_assert_true (tiny_device_submit (device, &none, 1, &ns, &error));
  g_assert_cmpuint (ns, ==, 7);
  tiny_buffer_unref (a);
  tiny_buffer_unref (b);
  g_object_unref (device);
  g_assert_cmpint (toy.n_buffers, ==, 0);
}

/* The host overwrites what a kernel still reads after that kernel only. */
static void
test_overwrite (void)
{
  TinyDevice *device = open_toy ();
  TinyBuffer *a = new_buffer (device, 1), *b = new_buffer (device, 0);
  const guint8 bytes[N] = { 0 };
  asynchronous_set_gate (0);
  increment (b, a);
  GThread *gate = asynchronous_open_gate_later (20);
  g_assert_true (tiny_buffer_upload (a, 0, bytes, N, NULL));
  g_thread_join (gate);
  assert_value (b, 2);
  assert_value (a, 0);
  tiny_buffer_unref (a);
  tiny_buffer_unref (b);
  g_object_unref (device);
}

/* A failure is reported for what it spoilt, each time and to everyone, and for nothing else. */
static void
test_failure (void)
{
  g_autoptr (GError) error = NULL;
  TinyDevice *device = open_toy ();
  TinyBuffer *buffers[5];
  guint64 point;
  for (guint i = 0; i < G_N_ELEMENTS (buffers); i++)
    buffers[i] = new_buffer (device, 1);
  gint n_queues = asynchronous.n_queues;
  asynchronous_set_gate (0);
  asynchronous_fail (1);
  increment (buffers[1], buffers[0]);
  guint64 failed = increment (buffers[2], buffers[1]);
  increment (buffers[3], buffers[2]);
  asynchronous_set_gate (-1);
  assert_value (buffers[1], 2); /* before it */
  assert_failed (buffers[2]);
  assert_failed (buffers[3]); /* behind it */
  assert_failed (buffers[2]);
  assert_value (buffers[1], 2);
  assert_value (buffers[0], 1); /* only read */
  assert_value (buffers[4], 1);
  g_assert_false (tiny_queue_wait (tiny_device_get_queue (device), failed, 0, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_LAUNCH);
  g_clear_error (&error);
  /* Going on takes another queue; what was spoilt stays so, and spoils no more. */
  increment (buffers[4], buffers[0]);
  g_assert_cmpint (asynchronous.n_queues, ==, n_queues + 1);
  assert_value (buffers[4], 2);
  assert_failed (buffers[3]);
  g_assert_false (enqueue_increment (buffers[4], buffers[3], &point, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_LAUNCH);
  g_clear_error (&error);
  assert_value (buffers[4], 2);
  /* Until it is written again: whole by the host, or by a kernel. */
  const guint8 bytes[N] = { 0 };
  g_assert_true (tiny_buffer_upload (buffers[3], 0, bytes, N / 2, NULL));
  assert_failed (buffers[3]);
  g_assert_true (tiny_buffer_upload (buffers[3], 0, bytes, N, NULL));
  assert_value (buffers[3], 0);
  increment (buffers[2], buffers[3]);
  assert_value (buffers[2], 1);
  /* Or the memory is another buffer's. */
  asynchronous_fail (0);
  increment (buffers[2], buffers[3]);
  assert_failed (buffers[2]);
  TinyPluginBuffer *handle = tiny_buffer_get_handle (buffers[2]);
  guint8 any[N];
  tiny_buffer_unref (buffers[2]);
  buffers[2] = tiny_buffer_new (device, N);
  g_assert_true (tiny_buffer_ensure (buffers[2], NULL));
  g_assert_true (tiny_buffer_get_handle (buffers[2]) == handle);
  g_assert_true (tiny_buffer_download (buffers[2], 0, any, N, NULL));
  for (guint i = 0; i < G_N_ELEMENTS (buffers); i++)
    tiny_buffer_unref (buffers[i]);
  g_object_unref (device);
}

/* A failure that nobody has waited for fails the next submission, which does not run, and no other. */
static void
test_failure_on_submit (void)
{
  g_autoptr (GError) error = NULL;
  TinyDevice *device = open_toy ();
  TinyBuffer *a = new_buffer (device, 1), *b = new_buffer (device, 1),
             *c = new_buffer (device, 9);
  guint64 point = 0;
  asynchronous_fail (0);
  increment (b, a);
  for (guint i = 0; i < 1000 && error == NULL; i++) { /* it takes a moment to fail */
    g_usleep (1000);
    enqueue_increment (b, a, &point, &error);
  }
  g_assert_error (error, TINY_ERROR, TINY_ERROR_LAUNCH);
  g_clear_error (&error);
  assert_failed (b);
  increment (c, a);
  assert_value (c, 2);
  /* Very many failures are all remembered. */
  for (guint i = 0; i < 200; i++) {
    asynchronous_fail (0);
    point = increment (b, a);
    g_assert_false (tiny_queue_wait (tiny_device_get_queue (device), point, G_MAXUINT64, NULL));
    assert_failed (b);
  }
  increment (c, c);
  assert_value (c, 3);
  assert_failed (b);
  tiny_buffer_unref (a);
  tiny_buffer_unref (b);
  tiny_buffer_unref (c);
  g_object_unref (device);
}

static gpointer
wait_and_expect_lost (gpointer data)
{
  g_autoptr (GError) error = NULL;
  TinyQueue *queue = tiny_device_get_queue (data);
  g_assert_false (tiny_queue_wait (queue, tiny_queue_get_last (queue), G_MAXUINT64, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_DEVICE_LOST);
  return NULL;
}

/* Whoever waits for a device that is lost wakes up; everything can be let go of. */
static void
test_lost (void)
{
  g_autoptr (GError) error = NULL;
  TinyDevice *device = open_toy ();
  TinyBuffer *a = new_buffer (device, 1), *b = new_buffer (device, 1);
  g_autoptr (GBytes) blob = g_bytes_new_static ("code", 4);
  const guint32 group[3] = { 1, 1, 1 };
  TinyProgram *program = tiny_program_new (device, "p", blob, 0, 0, group, NULL);
  GThread *threads[3];
  asynchronous_set_gate (0);
  increment (b, a);
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("waits", wait_and_expect_lost, device);
  g_usleep (20000);
  asynchronous_lose ();
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
  g_assert_true (tiny_device_is_lost (device));
  guint64 point;
  g_assert_false (enqueue_increment (b, a, &point, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_DEVICE_LOST);
  g_clear_error (&error);
  guint8 byte;
  g_assert_false (tiny_buffer_download (b, 0, &byte, 1, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_DEVICE_LOST);
  g_object_unref (program);
  tiny_buffer_unref (a);
  tiny_buffer_unref (b);
  g_object_unref (device);
  g_assert_cmpint (toy.n_buffers, ==, 0);
}

/* Memory that is in use is used again at once by what comes behind, and freed when it is not any more. */
static void
test_free (void)
{
  TinyDevice *device = open_toy ();
  TinyBuffer *a = new_buffer (device, 1), *b = new_buffer (device, 1);
  g_autoptr (GBytes) blob = g_bytes_new_static ("code", 4);
  const guint32 group[3] = { 1, 1, 1 };
  TinyProgram *program = tiny_program_new (device, "p", blob, 0, 0, group, NULL);
  asynchronous_set_gate (0);
  increment (b, a);
  TinyPluginBuffer *handle = tiny_buffer_get_handle (b);
  tiny_buffer_unref (b);
  b = tiny_buffer_new (device, N);
  g_assert_true (tiny_buffer_ensure (b, NULL));
  g_assert_true (tiny_buffer_get_handle (b) == handle);
  increment (b, a);
  increment (b, b);
  tiny_buffer_unref (b);
  GThread *gate = asynchronous_open_gate_later (20);
  tiny_device_trim (device); /* the helper looks whether it is in use */
  g_assert_cmpint (toy.n_buffers, ==, 1);
  g_thread_join (gate);
  asynchronous_set_gate (0);
  increment (a, a);
  gate = asynchronous_open_gate_later (20);
  g_object_unref (program);
  g_thread_join (gate);
  asynchronous_set_gate (0);
  increment (a, a);
  gate = asynchronous_open_gate_later (20);
  tiny_buffer_unref (a);
  g_object_unref (device); /* everything, with work to be done */
  g_thread_join (gate);
  g_assert_cmpint (toy.n_buffers, ==, 0);
}

static gpointer
use_device (gpointer data)
{
  TinyDevice *device = data;
  TinyBuffer *own[2] = { new_buffer (device, 0), new_buffer (device, 0) };
  for (guint round = 0; round < 40; round++) {
    g_autoptr (TinyBuffer) fresh = new_buffer (device, (guint8) round);
    for (guint i = 0; i < 10; i++)
      increment (own[i % 2], i == 0 ? fresh : own[1 - i % 2]);
    g_clear_object (&fresh);
    assert_value (own[1], (guint8) (round + 10));
  }
  tiny_buffer_unref (own[0]);
  tiny_buffer_unref (own[1]);
  return NULL;
}

/* Threads get their own results, others wait while one submits, and no more is in flight than was said. */
static void
test_threads (void)
{
  TinyDevice *device = open_toy ();
  GThread *threads[4];
  toy.run_us = 20;
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("user", use_device, device);
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
  TinyBuffer *a = new_buffer (device, 0);
  for (guint i = 0; i < 4 * TINY_MAX_IN_FLIGHT; i++)
    increment (a, a);
  assert_value (a, 0); /* 256 times */
  g_assert_cmpint (asynchronous.most_in_flight, ==, TINY_MAX_IN_FLIGHT);
  tiny_buffer_unref (a);
  g_object_unref (device);
}

static gpointer
fail_often (gpointer data)
{
  TinyBuffer *a = ((TinyBuffer **) data)[0], *b = ((TinyBuffer **) data)[1];
  guint n_good = 0;
  for (guint i = 0; i < 300; i++) {
    guint64 point;
    guint8 bytes[N] = { 0 };
    if (i % 7 == 0)
      asynchronous_fail (0);
    gboolean good
        = enqueue_increment (b, a, &point, NULL) && tiny_buffer_download (b, 0, bytes, N, NULL);
    n_good += good;
    if (good)
      g_assert_cmpuint (bytes[N - 1], ==, 2); /* never what was not computed */
    memset (bytes, 0, N);
    while (!tiny_buffer_upload (b, 0, bytes, N, NULL)) /* the failure may be its own */
      ;
  }
  return GUINT_TO_POINTER (n_good);
}

/* Failures among threads: each is told of its own, and good work is done all the same. */
static void
test_failing_threads (void)
{
  TinyDevice *device = open_toy ();
  GThread *threads[4];
  TinyBuffer *buffers[8];
  for (guint i = 0; i < G_N_ELEMENTS (buffers); i++)
    buffers[i] = new_buffer (device, 1);
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("user", fail_often, &buffers[2 * i]);
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    g_assert_cmpuint (GPOINTER_TO_UINT (g_thread_join (threads[i])), >, 30);
  for (guint i = 0; i < G_N_ELEMENTS (buffers); i++)
    tiny_buffer_unref (buffers[i]);
  g_assert_false (tiny_device_is_lost (device));
  g_object_unref (device);
}

/* Parts of mapped memory, back and forth between views that only sync() brings together. */
static void
test_non_coherent (void)
{
  asynchronous_reset ();
  memset (&toy, 0, sizeof toy);
  toy.flags = TINY_DEVICE_HOST_MEMORY | TINY_DEVICE_NON_COHERENT;
  TinyDevice *device = try_toy (NULL);
  TinyBuffer *a = new_buffer (device, 1), *b = new_buffer (device, 1);
  increment (b, a);
  assert_value (b, 2);
  TinyBuffer *view = tiny_buffer_new_view (a, 10, 20);
  g_assert_true (tiny_buffer_upload (view, 5, "xyz", 3, NULL));
  increment (b, a);
  guint8 bytes[3];
  g_assert_true (tiny_buffer_download (b, 15, bytes, 3, NULL));
  g_assert_cmpmem (bytes, 3, "yz{", 3);
  g_assert_true (tiny_buffer_download (b, 14, bytes, 1, NULL));
  g_assert_cmpuint (bytes[0], ==, 2);
  tiny_buffer_unref (view);
  tiny_buffer_unref (a);
  tiny_buffer_unref (b);
  g_object_unref (device);
  /* Memory that is coherent costs no calls. */
  toy.flags = TINY_DEVICE_HOST_MEMORY;
  toy.n_syncs = 0;
  device = try_toy (NULL);
  a = new_buffer (device, 1);
  assert_value (a, 1);
  g_assert_cmpint (toy.n_syncs, ==, 0);
  tiny_buffer_unref (a);
  g_object_unref (device);
}

/* Half of what belongs together refuses the device; points that do not grow end its use. */
static void
test_laws (void)
{
  const struct {
    gboolean *flag;
    const char *message;
  } cases[] = {
    { &toy.lacks_reached, "TOY: the device table lacks the required slot reached" },
    { &toy.lacks_queues, "TOY: the device table lacks the required slot queue_create" },
    { &toy.lacks_sync,
      "TOY: its memory is not coherent, and the device table lacks the slot sync" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    asynchronous_reset ();
    memset (&toy, 0, sizeof toy);
    toy.flags = TINY_DEVICE_HOST_MEMORY | TINY_DEVICE_NON_COHERENT;
    *cases[i].flag = TRUE;
    g_assert_null (try_toy (&error));
    g_assert_error (error, TINY_ERROR, TINY_ERROR_PLUGIN);
    g_assert_cmpstr (error->message, ==, cases[i].message);
  }
  g_autoptr (GError) error = NULL;
  TinyDevice *device = open_toy ();
  TinyBuffer *a = new_buffer (device, 1);
  guint64 point;
  asynchronous.goes_back = TRUE;
  increment (a, a);
  g_assert_false (enqueue_increment (a, a, &point, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_PLUGIN);
  g_assert_cmpstr (error->message, ==,
                   "TOY: running commands: the plugin gave point 1 after 1; the device is not "
                   "used any more");
  g_assert_true (tiny_device_is_lost (device));
  tiny_buffer_unref (a); /* which it may still be using: it stays where it is */
  g_object_unref (device);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/device/timeline/overlap", test_overlap);
  g_test_add_func ("/device/timeline/overwrite", test_overwrite);
  g_test_add_func ("/device/timeline/failure", test_failure);
  g_test_add_func ("/device/timeline/failure-on-submit", test_failure_on_submit);
  g_test_add_func ("/device/timeline/lost", test_lost);
  g_test_add_func ("/device/timeline/free", test_free);
  g_test_add_func ("/device/timeline/threads", test_threads);
  g_test_add_func ("/device/timeline/failing-threads", test_failing_threads);
  g_test_add_func ("/device/timeline/non-coherent", test_non_coherent);
  g_test_add_func ("/device/timeline/laws", test_laws);
  return g_test_run ();
}
