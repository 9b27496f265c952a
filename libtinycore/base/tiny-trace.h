/* SPDX-License-Identifier: MIT
 *
 * tiny-trace.h: spans of time, written to the file that TINY_PROFILE names.
 *
 * It watches all that tiny-timing.h marks. Where more is to be said than a name:
 *
 *   gint64 start = tiny_trace_begin ();
 *   …
 *   tiny_trace_end (start, "copy", "copy", args, G_N_ELEMENTS (args));
 *
 * Off, which is where TINY_PROFILE is unset, that costs a load and a comparison and records nothing. */
#pragma once

#include "base/tiny-timing.h"

G_BEGIN_DECLS

/* A value that goes with a span: a text, or where that is NULL a number. */
typedef struct {
  const char *key, *text;
  double number;
} TinyTraceArg;

/* Adds a span of this thread. Spans of one thread nest or follow one another. */
void tiny_trace_add (gint64 start_ns,
                     gint64 end_ns,
                     const char *category,
                     const char *name,
                     const TinyTraceArg *args,
                     guint n_args);

/* Writes what is still in memory; happens by itself now and then, and when the program exits. */
void tiny_trace_flush (void);

/* ---- the fast way out ---- */
enum { TINY_TRACE_UNKNOWN = -1, TINY_TRACE_OFF = 0, TINY_TRACE_ON = 1 };
extern gint tiny_trace_state;
/* Reads TINY_PROFILE, the first time; marks made before that are missed. Returns whether it is on. */
gboolean tiny_trace_open (void);

static inline gboolean
tiny_trace_is_on (void)
{
  return G_UNLIKELY (g_atomic_int_get (&tiny_trace_state) != TINY_TRACE_OFF)
         && tiny_trace_open ();
}

/* When it starts, or 0 when nothing is recorded. */
static inline gint64
tiny_trace_begin (void)
{
  return tiny_trace_is_on () ? tiny_timing_now_ns () : 0;
}

static inline void
tiny_trace_end (gint64 start_ns,
                const char *category,
                const char *name,
                const TinyTraceArg *args,
                guint n_args)
{
  if (G_UNLIKELY (start_ns != 0))
    tiny_trace_add (start_ns, tiny_timing_now_ns (), category, name, args, n_args);
}

G_END_DECLS
