/* SPDX-License-Identifier: MIT
 *
 * test-timing.c: whoever watches is told of every stretch, nested ones first, and of none before
 * or after. */
#include "base/tiny-timing.h"

enum { N_THREADS = 3, N_EACH = 200 };

typedef struct {
  guint n;
  GString *names;
  gint64 last_end_ns, busy_ns;
} Seen;

static void
on_timing (const TinyTiming *timing, gpointer data)
{
  Seen *seen = data;
  g_assert_cmpstr (timing->category, ==, "test");
  g_assert_cmpint (timing->start_ns, <=, timing->end_ns);
  g_assert_cmpint (timing->end_ns, >=, seen->last_end_ns);
  g_assert_cmpint (timing->cpu_ns, >=, 0);
  seen->last_end_ns = timing->end_ns;
  seen->busy_ns += timing->cpu_ns;
  g_string_append_printf (seen->names, "%s ", timing->name);
  seen->n++;
}

static void
nest (void)
{
  TINY_TIMED ("test", "outer");
  for (guint i = 0; i < 2; i++) {
    TINY_TIMED ("test", "inner");
  }
  TinyTiming early = tiny_timing_begin ("test", "early");
  tiny_timing_end (&early);
  tiny_timing_end (&early);
}

static void
test_nested (void)
{
  g_autoptr (GString) names = g_string_new (NULL);
  Seen seen = { .names = names }, other = { .names = names };
  nest ();
  g_assert_true (tiny_timing_watch (on_timing, &seen));
  nest ();
  tiny_timing_unwatch (on_timing, &other); /* not one that watches */
  g_assert_cmpstr (names->str, ==, "inner inner early outer ");
  tiny_timing_unwatch (on_timing, &seen);
  nest ();
  g_assert_cmpuint (seen.n, ==, 4);
}

/* Work is counted on the thread that does it; sleeping is not work. */
static void
test_clocks (void)
{
  g_autoptr (GString) names = g_string_new (NULL);
  Seen seen = { .names = names };
  g_assert_true (tiny_timing_watch (on_timing, &seen));
  gint64 start = tiny_timing_now_ns ();
  {
    TINY_TIMED ("test", "sleep");
    g_usleep (20000);
  }
  g_assert_cmpint (seen.last_end_ns - start, >=, 20000000);
  g_assert_cmpint (seen.busy_ns, <, 10000000);
  tiny_timing_unwatch (on_timing, &seen);
}

static void
on_count (const TinyTiming *timing, gpointer data)
{
  g_atomic_int_inc ((gint *) data);
}

static gpointer
time_some (gpointer unused)
{
  for (guint i = 0; i < N_EACH; i++) {
    TINY_TIMED ("test", "thread");
  }
  return NULL;
}

static void
test_threads (void)
{
  gint counts[2] = { 0, 0 };
  GThread *threads[N_THREADS];
  g_assert_true (tiny_timing_watch (on_count, &counts[0]));
  g_assert_true (tiny_timing_watch (on_count, &counts[1]));
  for (guint i = 0; i < N_THREADS; i++)
    threads[i] = g_thread_new ("time", time_some, NULL);
  for (guint i = 0; i < N_THREADS; i++)
    g_thread_join (threads[i]);
  tiny_timing_unwatch (on_count, &counts[0]);
  time_some (NULL);
  tiny_timing_unwatch (on_count, &counts[1]);
  g_assert_cmpint (counts[0], ==, N_THREADS * N_EACH);
  g_assert_cmpint (counts[1], ==, (N_THREADS + 1) * N_EACH);
}

/* There is room for a few only, and room that is given back serves again. */
static void
test_room (void)
{
  gint counts[16] = { 0 };
  guint n = 0;
  while (n < G_N_ELEMENTS (counts) && tiny_timing_watch (on_count, &counts[n]))
    n++;
  g_assert_cmpuint (n, ==, 4);
  tiny_timing_unwatch (on_count, &counts[0]);
  g_assert_true (tiny_timing_watch (on_count, &counts[0]));
  for (guint i = 0; i < n; i++)
    tiny_timing_unwatch (on_count, &counts[i]);
  g_assert_cmpint (tiny_timing_n_watchers, ==, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/base/timing/nested", test_nested);
  g_test_add_func ("/base/timing/clocks", test_clocks);
  g_test_add_func ("/base/timing/threads", test_threads);
  g_test_add_func ("/base/timing/room", test_room);
  return g_test_run ();
}
