/* SPDX-License-Identifier: MIT
 *
 * tiny-timing.h: where time goes: stretches of work with a name, for whoever watches.
 *
 * A stretch is marked once, where the work is done, and serves everyone who wants to know of it
 * (totals by pass, traces, benchmarks). While nobody watches, a mark costs one load and a branch.
 *
 *   TINY_TIMED ("codegen", passes[i].name);   lasts until the end of the block
 *
 * Spans of one thread nest. The category says which part of the core is at work. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct {
  const char *category, *name; /* valid during the call of a watcher only */
  gint64 start_ns, end_ns;     /* CLOCK_MONOTONIC */
  gint64 cpu_ns;               /* what this thread ran in it, in nanoseconds */
} TinyTiming;

/* Called at the end of each span, on its thread, by several threads at once. */
typedef void (*TinyTimingFunc) (const TinyTiming *timing, gpointer data);

/* Up to four watch at once; FALSE when there is no room. */
gboolean tiny_timing_watch (TinyTimingFunc func, gpointer data);
/* It is not called any more when this returns. */
void tiny_timing_unwatch (TinyTimingFunc func, gpointer data);

/* How many watch; see TINY_TIMED. */
extern gint tiny_timing_n_watchers;

void tiny_timing_start (TinyTiming *self, const char *category, const char *name);
void tiny_timing_finish (TinyTiming *self);

static inline TinyTiming
tiny_timing_begin (const char *category, const char *name)
{
  TinyTiming self;
  self.category = NULL;
  if (G_UNLIKELY (g_atomic_int_get (&tiny_timing_n_watchers) > 0))
    tiny_timing_start (&self, category, name);
  return self;
}

/* Ends it before its block does; once. */
static inline void
tiny_timing_end (TinyTiming *self)
{
  if (G_UNLIKELY (self->category != NULL))
    tiny_timing_finish (self);
}

#define TINY_TIMED(category, name)                                                             \
  __attribute__ ((cleanup (tiny_timing_end))) TinyTiming G_PASTE (tiny_timing_, __LINE__)      \
      = tiny_timing_begin (category, name)

/* Nanoseconds of CLOCK_MONOTONIC. */
gint64 tiny_timing_now_ns (void);

G_END_DECLS
