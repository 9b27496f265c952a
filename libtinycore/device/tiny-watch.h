/* SPDX-License-Identifier: MIT
 *
 * tiny-watch.h: in which function of which backend each thread is, to be told when the program dies there.
 *
 * Entering and leaving are two stores each, with no system call. When a deadly signal comes (SIGSEGV, SIGBUS,
 * SIGILL, SIGFPE, SIGABRT; not one that somebody sent) to a thread that is in a watched backend's function, or to
 * one that the backend started itself, a note is written to the backend's file; so it is when the backend calls
 * exit(). Then the signal does what it would have done. Signals for which the program has a handler, or gets one
 * later, are left to it, and nothing is noted then. Nothing is noted either of a thread that works for an untrusted
 * kernel, nor of one that is in no function while such a kernel runs: that death says nothing about the backend. */
#pragma once

#include "device/tiny-backend.h"
#include "device/tiny-table.h"

G_BEGIN_DECLS

/* What a note says is @head, then "function NAME\n", then "signal NUMBER\n" or "exit\n", then "end\n". @module: the
 * path of the backend's file. The first watch of a process installs the handlers. */
TinyWatch *tiny_watch_new (const char *note_path, const char *module, const char *head);
/* Nobody is in its functions any more. */
void tiny_watch_free (TinyWatch *self);

/* Where a thread is. */
typedef struct {
  TinyWatch *watch; /* NULL: nowhere */
  const char *function;
} TinyWatchPlace;

extern __thread TinyWatchPlace *tiny_watch_here __attribute__ ((tls_model ("initial-exec")));
TinyWatchPlace *tiny_watch_claim (void);

/* Before calling @function, a literal; @self may be NULL. What it returns goes to tiny_watch_leave(). */
static inline TinyWatchPlace
tiny_watch_enter (TinyWatch *self, const char *function)
{
  TinyWatchPlace *here = tiny_watch_here;
  if (self == NULL)
    return (TinyWatchPlace){ NULL, NULL };
  if (G_UNLIKELY (here == NULL))
    here = tiny_watch_claim ();
  const TinyWatchPlace before = *here;
  here->function = function;
  __atomic_signal_fence (__ATOMIC_SEQ_CST);
  here->watch = self;
  __atomic_signal_fence (__ATOMIC_SEQ_CST);
  return before;
}

static inline void
tiny_watch_leave (TinyWatch *self, TinyWatchPlace before)
{
  TinyWatchPlace *here = tiny_watch_here;
  if (self == NULL)
    return;
  __atomic_signal_fence (__ATOMIC_SEQ_CST);
  here->watch = before.watch;
  __atomic_signal_fence (__ATOMIC_SEQ_CST);
  here->function = before.function;
}

/* TRUE: until its end this thread has backends do what an untrusted kernel asks for. They nest:
 * g_auto (TinyUntrusted) untrusted = tiny_watch_begin_untrusted (tiny_node_is_untrusted (kernel)); */
typedef gboolean TinyUntrusted;
TinyUntrusted tiny_watch_begin_untrusted (gboolean is_untrusted);
void tiny_watch_end_untrusted (TinyUntrusted *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (TinyUntrusted, tiny_watch_end_untrusted)
gboolean tiny_watch_is_untrusted (void);
/* True while any thread, or work beside them, does that. */
gboolean tiny_watch_has_untrusted (void);
/* Work of such a kernel goes on beside this thread, +1, or is done, -1. */
void tiny_watch_count_untrusted (gint change);

/* Puts a table of ours before a device's, whose functions enter, call the plugin's and leave; *@handle and *@table are
 * replaced by ours, which close() frees. */
void tiny_watch_device (TinyWatch *self, TinyPluginDevice **handle, TinyDeviceTable *table);

G_END_DECLS
