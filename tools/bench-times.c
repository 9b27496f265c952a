/* SPDX-License-Identifier: MIT
 *
 * bench-times.c: warm up, then runs, alone or in turn with other programs. */
#include "tools/bench-times.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { WARM_NS = 300000000, RUN_NS = 20000000, MIN_WARM = 3, MAX_CALLS = 1000000 };

static gint64
now_ns (void)
{
  struct timespec now;
  clock_gettime (CLOCK_MONOTONIC, &now);
  return (gint64) now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Gives how many calls make a run, 0 after an error. */
static guint
warm_up (BenchCall call, gpointer data, GError **error)
{
  gint64 start = now_ns (), now;
  guint n = 0;
  do {
    if (!call (data, error))
      return 0;
    n++;
    now = now_ns ();
  } while (n < MIN_WARM || now - start < WARM_NS);
  return (guint) CLAMP ((double) RUN_NS * n / (double) (now - start), 1, MAX_CALLS);
}

/* Returns FALSE when nobody gives this program another turn. */
static gboolean
wait_for_turn (void)
{
  char line[16];
  puts ("turn");
  fflush (stdout);
  return fgets (line, sizeof line, stdin) != NULL;
}

static gboolean
time_calls (BenchCall call, gpointer data, guint n, gint64 *out_ns, GError **error)
{
  gint64 start = now_ns ();
  for (guint i = 0; i < n; i++)
    if (!call (data, error))
      return FALSE;
  *out_ns = now_ns () - start;
  return TRUE;
}

gboolean
bench_time (BenchCall call,
            gpointer data,
            guint n_runs,
            gboolean turns,
            BenchTimes *out,
            GError **error)
{
  const guint n_calls = out->n_calls = warm_up (call, data, error);
  if (n_calls == 0)
    return FALSE;
  for (out->n_runs = 0; out->n_runs < n_runs; out->n_runs++) {
    if (turns && !wait_for_turn ()) {
      g_set_error_literal (error, G_FILE_ERROR, G_FILE_ERROR_IO, "no turn was given");
      return FALSE;
    }
    gint64 ns;
    if (turns && !time_calls (call, data, n_calls, &ns, error))
      return FALSE;
    if (!time_calls (call, data, n_calls, &ns, error))
      return FALSE;
    out->ms[out->n_runs] = (double) ns / n_calls * 1e-6;
  }
  return TRUE;
}

static int
compare_doubles (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;
  return x < y ? -1 : x > y;
}

/* The number at @at of @self in order of size. */
static double
get_sorted (const BenchTimes *self, guint at)
{
  double ms[BENCH_MAX_RUNS];
  memcpy (ms, self->ms, self->n_runs * sizeof *ms);
  qsort (ms, self->n_runs, sizeof *ms, compare_doubles);
  return ms[at];
}

double
bench_times_get_median (const BenchTimes *self)
{
  return get_sorted (self, self->n_runs / 2);
}

double
bench_times_get_min (const BenchTimes *self)
{
  return get_sorted (self, 0);
}

guint64
bench_get_peak_bytes (void)
{
  struct rusage usage;
  getrusage (RUSAGE_SELF, &usage);
  return (guint64) usage.ru_maxrss * 1024;
}

void
bench_times_print (const BenchTimes *self)
{
  for (guint i = 0; i < self->n_runs; i++)
    printf ("%s%.6g", i == 0 ? "[" : ", ", self->ms[i]);
  putchar (']');
}
