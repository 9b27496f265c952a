/* SPDX-License-Identifier: MIT
 *
 * test-buffer.c: buffers that come again are like new ones; what is tied to one ends with it; one that is dropped twice
 * is said and not had by two; threads hand them on, with what was written. */
#include "device/tiny-buffer.h"

#include <string.h>

#include "base/tiny-reuse.h"
#include "engine/tiny-plan.h"

static TinyDevice *
get_device (void)
{
  g_autoptr (GError) error = NULL;
  TinyDevice *device = tiny_engine_get_device ("REF", &error);
  g_assert_no_error (error);
  return device;
}

/* True if @buffer has nothing that another one had. */
static void
assert_new (TinyBuffer *buffer, gsize n_bytes)
{
  g_assert_true (tiny_buffer_get_device (buffer) == get_device ());
  g_assert_cmpuint (tiny_buffer_get_n_bytes (buffer), ==, n_bytes);
  g_assert_cmpuint (tiny_buffer_get_offset (buffer), ==, 0);
  g_assert_null (tiny_buffer_get_handle (buffer));
  g_assert_null (tiny_buffer_map (buffer));
  g_assert_false (tiny_buffer_is_recorded (buffer));
  g_assert_cmpuint (tiny_buffer_get_version (buffer), ==, 0);
  g_assert_cmpuint (tiny_buffer_get_version (buffer), ==, 0); /* it is not shared */
  g_assert_cmpuint (G_OBJECT (buffer)->ref_count, ==, 1);
}

/* More than are kept are dropped, with all that a buffer can have; what comes then has none of it. */
static void
test_again (void)
{
  enum { N = TINY_REUSE_OBJECTS + 8 };
  g_autoptr (GError) error = NULL;
  TinyBuffer *buffers[N], *views[N];
  for (guint round = 0; round < 3; round++) {
    for (guint i = 0; i < N; i++) {
      buffers[i] = tiny_buffer_new (get_device (), 100 + i);
      assert_new (buffers[i], 100 + i);
      tiny_buffer_upload (buffers[i], 0, "abcd", 4, &error);
      g_assert_no_error (error);
      views[i] = tiny_buffer_new_view (buffers[i], 2, 50);
      tiny_buffer_set_recorded (views[i]);
      tiny_buffer_share (views[i]);
      tiny_buffer_touch (views[i]);
      g_assert_cmpuint (tiny_buffer_get_version (buffers[i]), >=, 2);
    }
    for (guint i = 0; i < N; i++) {
      tiny_buffer_unref (buffers[i]); /* its view keeps it */
      g_assert_cmpmem (tiny_buffer_map (views[i]), 2, "cd", 2);
      tiny_buffer_unref (views[i]);
    }
  }
}

static void
count (gpointer data)
{
  ++*(guint *) data;
}

static void
count_weak (gpointer data, GObject *where)
{
  ++*(guint *) data;
}

static void
ignore (void)
{
}

/* A weak reference, data and a closure learn of its end, and nothing of them is at the next one. */
static void
test_tied (void)
{
  guint n_gone = 0, n_freed = 0;
  GWeakRef weak;
  TinyBuffer *buffer = tiny_buffer_new (get_device (), 8);
  g_weak_ref_init (&weak, buffer);
  tiny_buffer_unref (buffer);
  g_assert_null (g_weak_ref_get (&weak));
  g_weak_ref_clear (&weak);
  buffer = tiny_buffer_new (get_device (), 8);
  g_object_weak_ref (G_OBJECT (buffer), count_weak, &n_gone);
  tiny_buffer_unref (buffer);
  g_assert_cmpuint (n_gone, ==, 1);
  buffer = tiny_buffer_new (get_device (), 8);
  g_object_set_data_full (G_OBJECT (buffer), "data", &n_freed, count);
  tiny_buffer_unref (buffer);
  g_assert_cmpuint (n_freed, ==, 1);
  buffer = tiny_buffer_new (get_device (), 8);
  GClosure *closure = g_cclosure_new_object (ignore, G_OBJECT (buffer));
  g_closure_ref (closure);
  g_closure_sink (closure);
  tiny_buffer_unref (buffer);
  g_assert_true (closure->is_invalid);
  g_closure_unref (closure);
  buffer = tiny_buffer_new (get_device (), 8);
  assert_new (buffer, 8);
  g_assert_null (g_object_get_data (G_OBJECT (buffer), "data"));
  tiny_buffer_unref (buffer);
}

/* A buffer that is kept belongs to nobody: who drops it once more has a bug, which is said. Two users would get it. */
static void
test_twice (void)
{
  if (TINY_REUSE_OBJECTS == 0) {
    g_test_skip ("no buffer is kept: a sanitizer sees that");
    return;
  }
  TinyBuffer *buffer = tiny_buffer_new (get_device (), 8);
  tiny_buffer_unref (buffer);
  g_test_expect_message ("tinycore", G_LOG_LEVEL_CRITICAL, "*self->device != NULL*");
  tiny_buffer_unref (buffer);
  g_test_assert_expected_messages ();
  TinyBuffer *first = tiny_buffer_new (get_device (), 8),
             *second = tiny_buffer_new (get_device (), 8);
  g_assert_true (first != second);
  tiny_buffer_unref (first);
  tiny_buffer_unref (second);
}

/* ---- threads ---- */
/* A sanitizer sees a race that did no harm. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { N_ROUNDS = 1000 };
#else
enum { N_ROUNDS = 20000 };
#endif
enum { N_PLACES = 16, N_THREADS = 4, N_MINE = 24 };

static TinyBuffer *places[N_PLACES];

/* Several that this thread alone has: nobody else gets one of them. */
static void
have_some (gsize n_bytes)
{
  TinyBuffer *mine[N_MINE];
  for (guint i = 0; i < N_MINE; i++)
    mine[i] = tiny_buffer_new (get_device (), n_bytes + i);
  for (guint i = 0; i < N_MINE; i++) {
    assert_new (mine[i], n_bytes + i);
    tiny_buffer_unref (mine[i]);
  }
}

/* Exchanges buffers with other threads by places that all see: who has taken one out finds what was written last, drops
 * it and puts a new one there. Some are had by two for a while. */
static gpointer
exchange (gpointer data)
{
  guint32 random = GPOINTER_TO_UINT (data) * 2654435761u + 1;
  for (guint round = 0; round < N_ROUNDS; round++) {
    random = random * 1664525u + 1013904223u;
    const guint at = random >> 8 & (N_PLACES - 1);
    have_some (GPOINTER_TO_UINT (data) * 1000);
    const guint32 wrote = random, length = 4 + (random >> 16 & 255);
    TinyBuffer *mine = tiny_buffer_new (get_device (), 4 + length);
    assert_new (mine, 4 + length);
    tiny_buffer_upload (mine, 0, &length, 4, NULL);
    tiny_buffer_upload (mine, length, &wrote, 4, NULL);
    TinyBuffer *view = (random >> 28 & 1) != 0 ? tiny_buffer_new_view (mine, 0, 4) : NULL;
    TinyBuffer *other = g_atomic_pointer_exchange (&places[at], mine);
    if (view != NULL) {
      guint32 found = 0;
      tiny_buffer_download (view, 0, &found, 4, NULL);
      g_assert_cmpuint (found, ==, length);
      tiny_buffer_unref (view);
    }
    if (other != NULL) {
      guint32 found = 0;
      tiny_buffer_download (other, 0, &found, 4, NULL);
      g_assert_cmpuint (tiny_buffer_get_n_bytes (other), ==, 4 + found);
      tiny_buffer_unref (other);
    }
  }
  return NULL;
}

static void
test_threads (void)
{
  GThread *threads[N_THREADS];
  TinyDeviceMemory before, after;
  tiny_device_get_memory (get_device (), &before);
  for (guint i = 0; i < N_THREADS; i++)
    threads[i] = g_thread_new (NULL, exchange, GUINT_TO_POINTER (i + 1));
  for (guint i = 0; i < N_THREADS; i++)
    g_thread_join (threads[i]);
  for (guint i = 0; i < N_PLACES; i++)
    g_clear_pointer (&places[i], tiny_buffer_unref);
  tiny_device_get_memory (get_device (), &after);
  g_assert_cmpuint (after.live_bytes, ==, before.live_bytes);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/device/buffer/again", test_again);
  g_test_add_func ("/device/buffer/tied", test_tied);
  g_test_add_func ("/device/buffer/twice", test_twice);
  g_test_add_func ("/device/buffer/threads", test_threads);
  return g_test_run ();
}
