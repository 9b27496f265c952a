/* SPDX-License-Identifier: MIT
 *
 * cpu-pool.c: spreads the grid points of one launch over worker threads.
 *
 * There is no lock. A launch takes the pool by setting `taken` (a second launch at the same time runs
 * on its own thread instead), writes the job, and opens it by setting OPEN in `state`. A worker enters
 * an open job by counting itself in `state`, takes chunks of points until there are none, and counts
 * itself out. The launcher works too, then clears OPEN, so that nobody enters any more, and waits
 * until all who entered have left. A worker that was never woken is never waited for. Workers without
 * a job spin for a while and then sleep on `sequence`.
 *
 * The grid is in as many parts as there are threads. A thread begins with the part of its own number,
 * so that launches over the same memory find it in the caches of the same processors, and when that
 * is done helps the others with theirs.
 *
 * After fork() a child has no workers; a page that the kernel wipes there says so, and launches run
 * on the caller. */
#include "cpu.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
  STATE_OPEN = 1u << 31,
  STATE_WAITED = 1u << 30, /* the launcher sleeps on `state` */
  STATE_COUNT = STATE_WAITED - 1,
};
enum {
  SPINS_BEFORE_SLEEP = 4000,    /* of a worker: about 60 µs */
  SPINS_BEFORE_WAITING = 20000, /* of the launcher */
  CHUNKS_PER_THREAD = 8
};

typedef struct {
  CpuPool *pool;
  pthread_t thread;
  unsigned number; /* from 1; 0 is who launches */
} Worker;

/* A share of the grid, and how far it is done. */
typedef struct {
  _Alignas(64) _Atomic int64_t next;
  int64_t end, n_chunk;
} Part;

struct CpuPool {
  unsigned n_threads; /* with the caller */
  unsigned n_workers;
  Worker *workers;
  volatile uint32_t *is_parent; /* 1; 0 in a forked child */

  /* The job; written while it is closed and nobody is inside. */
  CpuKernel kernel;
  void **buffers;
  const int64_t *variables;
  Part *parts; /* by thread */

  _Alignas(64) atomic_uint taken;
  _Alignas(64) atomic_uint state;
  _Alignas(64) atomic_uint sequence; /* grows with every job, and to stop */
  atomic_uint n_sleeping;
  atomic_uint is_stopping;
};

static void
futex_wait (atomic_uint *word, unsigned value)
{
  syscall (SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void
futex_wake (atomic_uint *word, int n)
{
  syscall (SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

static inline void
pause_briefly (void)
{
#if defined(__x86_64__)
  __builtin_ia32_pause ();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* ---- the work ---- */

/* Cuts the grid; while nobody is inside. */
static void
cut (CpuPool *pool, int64_t n_points)
{
  const int64_t n = pool->n_threads, most = n_points / n, rest = n_points % n;
  int64_t begin = 0;
  for (int64_t i = 0; i < n; i++) {
    Part *part = &pool->parts[i];
    int64_t n_here = most + (i < rest);
    part->end = begin + n_here;
    part->n_chunk
        = n_here > CHUNKS_PER_THREAD ? (n_here + CHUNKS_PER_THREAD - 1) / CHUNKS_PER_THREAD : 1;
    atomic_store_explicit (&part->next, begin, memory_order_relaxed);
    begin = part->end;
  }
}

/* Works until there is nothing left to begin; returns how many points it did. */
static int64_t
take_chunks (CpuPool *pool, unsigned thread)
{
  int64_t n_done = 0;
  for (unsigned i = 0; i < pool->n_threads; i++, thread++) {
    Part *part = &pool->parts[thread < pool->n_threads ? thread : thread - pool->n_threads];
    const int64_t n_chunk = part->n_chunk;
    while (atomic_load_explicit (&part->next, memory_order_relaxed) < part->end) {
      int64_t begin = atomic_fetch_add_explicit (&part->next, n_chunk, memory_order_relaxed);
      if (begin >= part->end)
        break;
      int64_t end = part->end - begin < n_chunk ? part->end : begin + n_chunk;
      pool->kernel (pool->buffers, pool->variables, begin, end);
      n_done += end - begin;
    }
  }
  return n_done;
}

static bool
enter_job (CpuPool *pool)
{
  unsigned state = atomic_load_explicit (&pool->state, memory_order_relaxed);
  while (state & STATE_OPEN)
    if (atomic_compare_exchange_weak_explicit (&pool->state, &state, state + 1,
                                               memory_order_acquire, memory_order_relaxed))
      return true;
  return false;
}

static void
leave_job (CpuPool *pool)
{
  unsigned before = atomic_fetch_sub_explicit (&pool->state, 1, memory_order_release);
  if ((before & STATE_COUNT) == 1 && (before & STATE_WAITED))
    futex_wake (&pool->state, 1);
}

/* Returns when `sequence` is no longer @seen. */
static void
wait_for_job (CpuPool *pool, unsigned seen)
{
  for (int i = 0; i < SPINS_BEFORE_SLEEP; i++) {
    if (atomic_load_explicit (&pool->sequence, memory_order_acquire) != seen)
      return;
    pause_briefly ();
  }
  atomic_fetch_add (&pool->n_sleeping, 1);
  while (atomic_load (&pool->sequence) == seen)
    futex_wait (&pool->sequence, seen);
  atomic_fetch_sub (&pool->n_sleeping, 1);
}

static void *
run_worker (void *data)
{
  Worker *worker = data;
  CpuPool *pool = worker->pool;
  char name[16];
  snprintf (name, sizeof name, "tiny-cpu/%u", worker->number % 10000);
  pthread_setname_np (pthread_self (), name);
  unsigned seen = 0;
  while (!atomic_load_explicit (&pool->is_stopping, memory_order_acquire)) {
    wait_for_job (pool, seen);
    seen = atomic_load_explicit (&pool->sequence, memory_order_acquire);
    if (enter_job (pool)) {
      take_chunks (pool, worker->number);
      leave_job (pool);
    }
  }
  return NULL;
}

static void
close_job (CpuPool *pool)
{
  unsigned state
      = atomic_fetch_and_explicit (&pool->state, ~(unsigned) STATE_OPEN, memory_order_acquire);
  for (int i = 0; i < SPINS_BEFORE_WAITING && (state & STATE_COUNT) != 0; i++) {
    pause_briefly ();
    state = atomic_load_explicit (&pool->state, memory_order_acquire);
  }
  if ((state & STATE_COUNT) == 0)
    return;
  state = atomic_fetch_or_explicit (&pool->state, STATE_WAITED, memory_order_acquire)
          | STATE_WAITED;
  while ((state & STATE_COUNT) != 0) {
    futex_wait (&pool->state, state);
    state = atomic_load_explicit (&pool->state, memory_order_acquire);
  }
  atomic_fetch_and_explicit (&pool->state, ~(unsigned) STATE_WAITED, memory_order_relaxed);
}

static uint64_t
run_alone (CpuKernel kernel, void **buffers, const int64_t *variables, int64_t n_points)
{
  uint64_t start = tiny_now_ns ();
  kernel (buffers, variables, 0, n_points);
  uint64_t ps = (tiny_now_ns () - start) * 1000 / (uint64_t) (n_points > 0 ? n_points : 1);
  return ps > 0 ? ps : 1;
}

uint64_t
cpu_pool_run (
    CpuPool *pool, CpuKernel kernel, void **buffers, const int64_t *variables, int64_t n_points)
{
  if (n_points < 2 || pool == NULL || pool->n_workers == 0 || *pool->is_parent == 0
      || atomic_exchange_explicit (&pool->taken, 1, memory_order_acquire) != 0)
    return run_alone (kernel, buffers, variables, n_points);
  pool->kernel = kernel;
  pool->buffers = buffers;
  pool->variables = variables;
  cut (pool, n_points);
  atomic_fetch_or_explicit (&pool->state, STATE_OPEN, memory_order_release);
  atomic_fetch_add (&pool->sequence, 1);
  unsigned n_sleeping = atomic_load (&pool->n_sleeping);
  if (n_sleeping > 0)
    futex_wake (&pool->sequence,
                n_points - 1 < (int64_t) n_sleeping ? (int) n_points - 1 : INT_MAX);

  uint64_t start = tiny_now_ns ();
  int64_t n_done = take_chunks (pool, 0);
  uint64_t ns = tiny_now_ns () - start;
  close_job (pool);
  atomic_store_explicit (&pool->taken, 0, memory_order_release);
  return n_done > 0 ? ns * 1000 / (uint64_t) n_done : 0;
}

/* ---- life ---- */

static TinyStatus
start_worker (Worker *worker, const CpuThreads *threads, TinyPluginError *error)
{
  const bool is_bound = threads->n_processors > 0;
  const unsigned processor
      = is_bound ? threads->processors[worker->number % threads->n_processors] : 0;
  cpu_set_t place;
  CPU_ZERO (&place);
  CPU_SET (processor, &place);
  pthread_attr_t attributes;
  int status = pthread_attr_init (&attributes);
  if (status == 0) {
    if (is_bound)
      status = pthread_attr_setaffinity_np (&attributes, sizeof place, &place);
    if (status == 0)
      status = pthread_create (&worker->thread, &attributes, run_worker, worker);
    pthread_attr_destroy (&attributes);
  }
  return status == 0 ? TINY_STATUS_OK
         : is_bound && status == EINVAL
             ? tiny_fail (error, TINY_STATUS_INVALID,
                          "TINY_AFFINITY: processor %u is none this process may use", processor)
             : tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "cannot start worker thread %u: %s",
                          worker->number, strerror (status));
}

/* Starts as many as the system gives; only a wrong place is an error. */
static TinyStatus
start_workers (CpuPool *pool, const CpuThreads *threads, TinyPluginError *error)
{
  TinyStatus status = TINY_STATUS_OK;
  /* Signals are the program's business: none is delivered to a worker. */
  sigset_t all, before;
  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &before);
  unsigned n_workers = 0;
  for (unsigned i = 0; i + 1 < pool->n_threads; i++) {
    Worker *worker = &pool->workers[n_workers];
    *worker = (Worker){ .pool = pool, .number = i + 1 };
    status = start_worker (worker, threads, error);
    if (status != TINY_STATUS_OK)
      break;
    n_workers++;
  }
  pthread_sigmask (SIG_SETMASK, &before, NULL);
  pool->n_workers = n_workers;
  return status == TINY_STATUS_INVALID ? status : TINY_STATUS_OK;
}

TinyStatus
cpu_pool_new (const CpuThreads *threads, CpuPool **out, TinyPluginError *error)
{
  CpuPool *pool = NULL;
  if (posix_memalign ((void **) &pool, 64, sizeof *pool) != 0)
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for the worker threads");
  *pool = (CpuPool){ .n_threads = threads->n_threads > 0 ? threads->n_threads : 1 };
  pool->workers = calloc (pool->n_threads, sizeof *pool->workers);
  if (posix_memalign ((void **) &pool->parts, 64, pool->n_threads * sizeof *pool->parts) != 0)
    pool->parts = NULL;
  uint32_t *page
      = mmap (NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pool->is_parent = page != MAP_FAILED ? page : NULL;
  if (pool->workers == NULL || pool->parts == NULL || page == MAP_FAILED) {
    cpu_pool_free (pool);
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for %u worker threads",
                      threads->n_threads);
  }
  *page = 1;
  if (madvise (page, 4096, MADV_WIPEONFORK) != 0)
    pool->n_threads = 1; /* a kernel before 4.14 cannot tell a child: no workers */
  TinyStatus status = start_workers (pool, threads, error);
  if (status == TINY_STATUS_OK)
    *out = pool;
  else
    cpu_pool_free (pool);
  return status;
}

void
cpu_pool_free (CpuPool *pool)
{
  if (pool == NULL)
    return;
  if (pool->is_parent != NULL && *pool->is_parent != 0) {
    atomic_store_explicit (&pool->is_stopping, 1, memory_order_release);
    atomic_fetch_add (&pool->sequence, 1);
    futex_wake (&pool->sequence, INT_MAX);
    for (unsigned i = 0; i < pool->n_workers; i++)
      pthread_join (pool->workers[i].thread, NULL);
  }
  if (pool->is_parent != NULL)
    munmap ((void *) pool->is_parent, 4096);
  free (pool->parts);
  free (pool->workers);
  free (pool);
}

unsigned
cpu_pool_get_n_threads (const CpuPool *pool)
{
  return pool != NULL ? pool->n_workers + 1 : 1;
}
