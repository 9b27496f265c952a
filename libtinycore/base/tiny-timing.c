/* SPDX-License-Identifier: MIT
 *
 * tiny-timing.c: who watches, and the clocks. */
#include "base/tiny-timing.h"

#include <time.h>

enum { MAX_WATCHERS = 4 };

gint tiny_timing_n_watchers;

static GRWLock lock;
static struct {
  TinyTimingFunc func;
  gpointer data;
} watchers[MAX_WATCHERS];

static gint64
read_clock (clockid_t clock)
{
  struct timespec now;
  clock_gettime (clock, &now);
  return (gint64) now.tv_sec * 1000000000 + now.tv_nsec;
}

gint64
tiny_timing_now_ns (void)
{
  return read_clock (CLOCK_MONOTONIC);
}

gboolean
tiny_timing_watch (TinyTimingFunc func, gpointer data)
{
  g_rw_lock_writer_lock (&lock);
  guint n = (guint) tiny_timing_n_watchers;
  if (n < MAX_WATCHERS) {
    watchers[n].func = func;
    watchers[n].data = data;
    g_atomic_int_set (&tiny_timing_n_watchers, (gint) n + 1);
  }
  g_rw_lock_writer_unlock (&lock);
  return n < MAX_WATCHERS;
}

void
tiny_timing_unwatch (TinyTimingFunc func, gpointer data)
{
  g_rw_lock_writer_lock (&lock);
  guint n = (guint) tiny_timing_n_watchers;
  for (guint i = 0; i < n; i++)
    if (watchers[i].func == func && watchers[i].data == data) {
      watchers[i] = watchers[n - 1];
      g_atomic_int_set (&tiny_timing_n_watchers, (gint) n - 1);
      break;
    }
  g_rw_lock_writer_unlock (&lock);
}

void
tiny_timing_start (TinyTiming *self, const char *category, const char *name)
{
  self->category = category;
  self->name = name;
  self->start_ns = tiny_timing_now_ns ();
  self->cpu_ns = read_clock (CLOCK_THREAD_CPUTIME_ID);
}

void
tiny_timing_finish (TinyTiming *self)
{
  self->end_ns = tiny_timing_now_ns ();
  self->cpu_ns = read_clock (CLOCK_THREAD_CPUTIME_ID) - self->cpu_ns;
  g_rw_lock_reader_lock (&lock);
  for (gint i = 0; i < tiny_timing_n_watchers; i++)
    watchers[i].func (self, watchers[i].data);
  g_rw_lock_reader_unlock (&lock);
  self->category = NULL;
}
