/* SPDX-License-Identifier: MIT
 *
 * bench-times.h: how measured programs time what they measure. */
#pragma once

#include <glib.h>

/* One execution of what is measured. */
typedef gboolean (*BenchCall) (gpointer data, GError **error);

enum { BENCH_MAX_RUNS = 4096 };

typedef struct {
  double ms[BENCH_MAX_RUNS]; /* a call's time in each run, in their order */
  guint n_runs, n_calls;     /* n_calls: in each run */
} BenchTimes;

/* Times @n_runs runs of @call into @out, after calls to warm up; a run is as many calls as take 20 ms.
 * With @turns each run waits for a line on standard input, which "turn" on standard output asks for,
 * and begins with as many calls that are not timed, for caches and clocks: so bench/run lets programs
 * run by turns. */
gboolean bench_time (BenchCall call,
                     gpointer data,
                     guint n_runs,
                     gboolean turns,
                     BenchTimes *out,
                     GError **error);
double bench_times_get_median (const BenchTimes *self);
double bench_times_get_min (const BenchTimes *self);
/* Bytes of memory that this process had at most. */
guint64 bench_get_peak_bytes (void);
/* Prints the runs as a JSON array. */
void bench_times_print (const BenchTimes *self);
