/* SPDX-License-Identifier: MIT
 *
 * streams.c: what memory allows a kernel that reads so many arrays once and writes one.
 *
 *   bench-streams ARRAYS ELEMENTS [RUNS [turns]]
 *
 * ARRAYS arrays of ELEMENTS floats are added into another, by as many threads as the process may
 * use, each on a part of its own. No library of ours takes part. With "turns" each run waits for a line. Run by run
 * the results are stored plainly and past the caches, ahead of what is read there are prefetches or none; the fastest
 * of the four ways counts, by the median of its runs, and is printed as JSON. */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { MAX_ARRAYS = 8, MAX_THREADS = 256, MAX_RUNS = 101, N_WAYS = 4, AHEAD = 512 };

typedef float Vector __attribute__ ((vector_size (64)));
enum { LANES = sizeof (Vector) / sizeof (float) };

static float *arrays[MAX_ARRAYS], *out;
static size_t n_arrays, n_elements, n_threads;
static pthread_barrier_t barrier;
static int way; /* bit 0: past the caches; bit 1: prefetches */

static void
store_past (float *to, Vector value)
{
#if defined(__x86_64__)
  for (size_t i = 0; i < sizeof value; i += 16)
    _mm_stream_ps (to + i / 4, *(__m128 *) ((char *) &value + i));
#else
  *(Vector *) to = value;
#endif
}

static void
add_part (size_t begin, size_t end)
{
  for (size_t i = begin; i < end; i += LANES) {
    Vector sum = *(const Vector *) (arrays[0] + i);
    for (size_t k = 1; k < n_arrays; k++)
      sum += *(const Vector *) (arrays[k] + i);
    for (size_t k = 0; k < n_arrays && (way & 2); k++)
      __builtin_prefetch (arrays[k] + i + AHEAD);
    if (way & 1)
      store_past (out + i, sum);
    else
      *(Vector *) (out + i) = sum;
  }
#if defined(__x86_64__)
  _mm_sfence ();
#endif
}

static void *
work (void *data)
{
  const size_t number = (size_t) (uintptr_t) data, n_vectors = n_elements / LANES;
  for (;;) {
    pthread_barrier_wait (&barrier);
    if (way < 0)
      return NULL;
    add_part (n_vectors * number / n_threads * LANES,
              n_vectors * (number + 1) / n_threads * LANES);
    pthread_barrier_wait (&barrier);
  }
}

static double
run_once (void)
{
  struct timespec start, end;
  const size_t n_vectors = n_elements / LANES;
  pthread_barrier_wait (&barrier);
  clock_gettime (CLOCK_MONOTONIC, &start);
  add_part (0, n_vectors / n_threads * LANES);
  pthread_barrier_wait (&barrier);
  clock_gettime (CLOCK_MONOTONIC, &end);
  return (double) (end.tv_sec - start.tv_sec) * 1e3
         + (double) (end.tv_nsec - start.tv_nsec) * 1e-6;
}

static int
compare (const void *a, const void *b)
{
  const double x = *(const double *) a, y = *(const double *) b;
  return (x > y) - (x < y);
}

static double
median (const double *ms, size_t n)
{
  double sorted[MAX_RUNS];
  memcpy (sorted, ms, n * sizeof *ms);
  qsort (sorted, n, sizeof *sorted, compare);
  return sorted[n / 2];
}

/* As bench/run asks for, see measure.py. */
static void
wait_for_turn (void)
{
  char line[16];
  puts ("turn");
  fflush (stdout);
  if (fgets (line, sizeof line, stdin) == NULL)
    exit (1);
}

static float *
new_array (void)
{
  const size_t huge = (size_t) 1 << 21;
  const size_t n_bytes = (n_elements * sizeof (float) + huge - 1) & ~(huge - 1);
  float *array = aligned_alloc (huge, n_bytes);
  if (array == NULL) {
    fprintf (stderr, "bench-streams: no memory\n");
    exit (1);
  }
  madvise (array, n_bytes, MADV_HUGEPAGE);
  memset (array, 0, n_bytes);
  return array;
}

int
main (int argc, char **argv)
{
  n_arrays = argc > 2 ? strtoul (argv[1], NULL, 10) : 0;
  n_elements = argc > 2 ? strtoul (argv[2], NULL, 10) / LANES * LANES : 0;
  size_t n_runs = argc > 3 ? strtoul (argv[3], NULL, 10) : 7;
  const int turns = argc > 4 && strcmp (argv[4], "turns") == 0;
  if (n_arrays < 1 || n_arrays > MAX_ARRAYS || n_elements == 0 || n_runs < 1
      || n_runs > MAX_RUNS) {
    fprintf (stderr, "usage: bench-streams ARRAYS ELEMENTS [RUNS [turns]]\n");
    return 2;
  }
  cpu_set_t processors;
  n_threads = sched_getaffinity (0, sizeof processors, &processors) == 0
                  ? (size_t) CPU_COUNT (&processors)
                  : 1;
  n_threads = n_threads > MAX_THREADS ? MAX_THREADS : n_threads;
  for (size_t k = 0; k < n_arrays; k++)
    arrays[k] = new_array ();
  out = new_array ();
  pthread_t threads[MAX_THREADS];
  pthread_barrier_init (&barrier, NULL, (unsigned) n_threads);
  for (size_t i = 1; i < n_threads; i++)
    pthread_create (&threads[i], NULL, work, (void *) (uintptr_t) i);

  double ms[N_WAYS][MAX_RUNS];
  for (size_t i = 0; i < n_runs; i++) {
    if (turns)
      wait_for_turn ();
    for (way = 0; way < N_WAYS; way++)
      ms[way][i] = run_once ();
  }
  int best = 0;
  for (int i = 1; i < N_WAYS; i++)
    if (median (ms[i], n_runs) < median (ms[best], n_runs))
      best = i;
  way = -1;
  pthread_barrier_wait (&barrier);
  for (size_t i = 1; i < n_threads; i++)
    pthread_join (threads[i], NULL);
  const double n_bytes = (double) ((n_arrays + 1) * n_elements * sizeof (float));
  printf ("{\"arrays\": %zu, \"elements\": %zu, \"threads\": %zu, \"ms_median\": %.4f, "
          "\"gb_per_s\": %.2f, \"ms\": [",
          n_arrays, n_elements, n_threads, median (ms[best], n_runs),
          n_bytes / median (ms[best], n_runs) * 1e-6);
  for (size_t i = 0; i < n_runs; i++)
    printf ("%s%.4f", i == 0 ? "" : ", ", ms[best][i]);
  puts ("]}");
  return 0;
}
