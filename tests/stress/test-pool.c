/* SPDX-License-Identifier: MIT
 *
 * test-pool.c: every grid point of every launch runs once, whatever the grids, from however many
 * threads, with however many workers; workers run where TINY_AFFINITY says; what the variables
 * say wrongly is refused. Its other half is ThreadSanitizer (tests/sanitize.sh). */
#include <glib.h>
#include <sched.h>
#include <string.h>

#include "plugins/cpu/cpu.h"

enum { MAX_POINTS = 5000, N_LAUNCHES = 1500 };

/* buffers[0]: a counter for each point, plain memory: the launch orders it. variables[0]: how long
 * a point takes. */
static void
count_points (void **buffers, const int64_t *variables, int64_t begin, int64_t end)
{
  uint32_t *counts = buffers[0];
  for (int64_t i = begin; i < end; i++) {
    counts[i]++;
    for (volatile int64_t spin = 0; spin < variables[0]; spin++)
      ;
  }
}

static CpuPool *
new_pool (const CpuThreads *threads)
{
  CpuPool *pool = NULL;
  TinyPluginError error = { .struct_size = sizeof error };
  TinyStatus status = cpu_pool_new (threads, &pool, &error);
  g_assert_cmpstr (error.text, ==, "");
  g_assert_cmpint (status, ==, TINY_STATUS_OK);
  g_assert_cmpuint (cpu_pool_get_n_threads (pool), ==, threads->n_threads);
  return pool;
}

typedef struct {
  CpuPool *pool;
  guint32 seed;
  guint n_launches;
} Launcher;

static gpointer
launch_at_random (gpointer data)
{
  const Launcher *self = data;
  g_autoptr (GRand) rand = g_rand_new_with_seed (self->seed);
  g_autofree uint32_t *counts = g_new0 (uint32_t, MAX_POINTS);
  g_autofree uint32_t *expected = g_new0 (uint32_t, MAX_POINTS);
  void *buffers[] = { counts };
  for (guint i = 0; i < self->n_launches; i++) {
    gboolean large = g_rand_int_range (rand, 0, 8) == 0;
    gint n = g_rand_int_range (rand, 0, large ? MAX_POINTS : 12);
    const int64_t spins = g_rand_int_range (rand, 0, large ? 20 : 400);
    cpu_pool_run (self->pool, count_points, buffers, &spins, n);
    for (gint k = 0; k < n; k++)
      expected[k]++;
    g_assert_true (memcmp (counts, expected, (gsize) n * sizeof *counts) == 0);
    if (g_rand_int_range (rand, 0, 300) == 0)
      g_usleep (1000); /* workers fall asleep */
  }
  g_assert_cmpmem (counts, MAX_POINTS * sizeof *counts, expected,
                   MAX_POINTS * sizeof *expected);
  return NULL;
}

static void
test_grids (void)
{
  for (unsigned n = 1; n <= 8; n = n < 3 ? n + 1 : n * 2) {
    CpuPool *pool = new_pool (&(CpuThreads){ .n_threads = n });
    Launcher launcher = { pool, 100 + n, N_LAUNCHES };
    launch_at_random (&launcher);
    cpu_pool_free (pool);
  }
}

/* A launch while the pool serves another runs on its own thread. */
static void
test_launchers (void)
{
  CpuPool *pool = new_pool (&(CpuThreads){ .n_threads = 3 });
  Launcher launchers[3];
  GThread *started[3];
  for (guint i = 0; i < 3; i++) {
    launchers[i] = (Launcher){ pool, 200 + i, N_LAUNCHES / 3 };
    started[i] = g_thread_new ("launcher", launch_at_random, &launchers[i]);
  }
  for (guint i = 0; i < 3; i++)
    g_thread_join (started[i]);
  cpu_pool_free (pool);
}

/* ---- places ---- */

/* buffers[0]: the processor that each point ran on. */
static void
note_processor (void **buffers, const int64_t *variables, int64_t begin, int64_t end)
{
  int *processors = buffers[0];
  const gint64 until = g_get_monotonic_time () + 300; /* long enough for all to come */
  while (g_get_monotonic_time () < until)
    ;
  for (int64_t i = begin; i < end; i++)
    processors[i] = sched_getcpu ();
}

static CpuThreads
read_threads (const char *n, const char *affinity, TinyStatus wanted)
{
  CpuThreads threads;
  TinyPluginError error = { .struct_size = sizeof error };
  g_setenv ("TINY_THREADS", n, TRUE);
  g_setenv ("TINY_AFFINITY", affinity, TRUE);
  g_assert_cmpint (cpu_threads_read (&threads, &error), ==, wanted);
  if (wanted != TINY_STATUS_OK)
    g_assert_true (strstr (error.text, "TINY_") == error.text);
  return threads;
}

static void
test_affinity (void)
{
  cpu_set_t allowed, here, now;
  g_assert_cmpint (sched_getaffinity (0, sizeof allowed, &allowed), ==, 0);
  int processors[2], n = 0;
  for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
    if (CPU_ISSET (i, &allowed))
      processors[n++] = i;
  if (n < 2) {
    g_test_skip ("one processor");
    return;
  }
  /* The launcher is kept on the first; so points elsewhere are the workers'. */
  CPU_ZERO (&here);
  CPU_SET (processors[0], &here);
  g_assert_cmpint (sched_setaffinity (0, sizeof here, &here), ==, 0);
  for (int place = 0; place < 2; place++) {
    g_autofree char *list = g_strdup_printf ("%d,%d", processors[0], processors[place]);
    const CpuThreads threads = read_threads ("", list, TINY_STATUS_OK);
    g_assert_cmpuint (threads.n_threads, ==, 2);
    CpuPool *pool = new_pool (&threads);
    int seen[64];
    void *buffers[] = { seen };
    guint n_elsewhere = 0;
    for (guint i = 0; i < 10; i++) {
      cpu_pool_run (pool, note_processor, buffers, NULL, 64);
      for (guint k = 0; k < 64; k++) {
        g_assert_true (seen[k] == processors[0] || seen[k] == processors[place]);
        n_elsewhere += seen[k] != processors[0];
      }
    }
    g_assert_true (place == 0 ? n_elsewhere == 0 : n_elsewhere > 0);
    cpu_pool_free (pool);
  }
  g_assert_cmpint (sched_getaffinity (0, sizeof now, &now), ==, 0);
  g_assert_true (CPU_EQUAL (&here, &now));
  g_assert_cmpint (sched_setaffinity (0, sizeof allowed, &allowed), ==, 0);
}

static void
test_variables (void)
{
  cpu_set_t allowed;
  g_assert_cmpint (sched_getaffinity (0, sizeof allowed, &allowed), ==, 0);
  int first = 0;
  while (!CPU_ISSET (first, &allowed))
    first++;
  g_autofree char *one = g_strdup_printf ("%d", first);
  g_autofree char *range = g_strdup_printf ("%d-%d,%d", first, first, first);
  const unsigned all = read_threads ("", "", TINY_STATUS_OK).n_threads;
  g_assert_cmpuint (all, ==, (unsigned) CPU_COUNT (&allowed));
  g_assert_cmpuint (read_threads ("0", "", TINY_STATUS_OK).n_threads, ==, all);
  g_assert_cmpuint (read_threads ("5", "", TINY_STATUS_OK).n_threads, ==, 5);
  g_assert_cmpuint (read_threads ("99999", "", TINY_STATUS_OK).n_threads, ==, CPU_MAX_THREADS);
  g_assert_cmpuint (read_threads ("", one, TINY_STATUS_OK).n_threads, ==, 1);
  g_assert_cmpuint (read_threads ("", range, TINY_STATUS_OK).n_processors, ==, 2);
  g_assert_cmpuint (read_threads ("3", one, TINY_STATUS_OK).n_threads, ==, 3);
  static const char *const wrong[]
      = { ",", "0-", "-1", "1-0", "a", "0 1", "0,", "1024", "0x1", "99999999999999999999" };
  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++)
    read_threads ("", wrong[i], TINY_STATUS_INVALID);
  const CpuThreads nowhere = read_threads ("2", "1023", TINY_STATUS_OK);
  CpuPool *pool = NULL;
  TinyPluginError error = { .struct_size = sizeof error };
  g_assert_cmpint (cpu_pool_new (&nowhere, &pool, &error), ==, TINY_STATUS_INVALID);
  g_assert_cmpstr (error.text, ==,
                   "TINY_AFFINITY: processor 1023 is none this process may use");
  static const char *const no_number[] = { "two", "-1", "2x", "99999999999999999999" };
  for (guint i = 0; i < G_N_ELEMENTS (no_number); i++)
    g_assert_cmpuint (read_threads (no_number[i], "", TINY_STATUS_OK).n_threads, ==, all);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/stress/pool/grids", test_grids);
  g_test_add_func ("/stress/pool/launchers", test_launchers);
  g_test_add_func ("/stress/pool/affinity", test_affinity);
  g_test_add_func ("/stress/pool/variables", test_variables);
  return g_test_run ();
}
