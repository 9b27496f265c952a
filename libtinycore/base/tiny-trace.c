/* SPDX-License-Identifier: MIT
 *
 * tiny-trace.c: spans of time, written to the file that TINY_PROFILE names.
 *
 * The format is that of Chrome's trace viewer ("Trace Event Format", JSON object form, complete
 * events), which Perfetto opens. Events gather in memory and go to the file when there are many or
 * when the last time is a while ago. Each write puts the closing brackets behind them, and the next
 * one over these: the file is complete JSON whenever a program ends, also when it is killed. */
#include "base/tiny-trace.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/tiny-descriptor.h"
#include "base/tiny-env.h"

enum { FLUSH_BYTES = 1 << 16, FLUSH_NS = 500000000 };
static const char head[] = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n";
static const char tail[] = "\n]}\n";

gint tiny_trace_state = TINY_TRACE_UNKNOWN;

static GMutex lock;
static struct {
  char *path;
  int fd;
  gint64 end; /* where the next event goes */
  gboolean is_empty;
  GString *pending;
  gint64 flushed_ns;
  guint n_threads;
} trace;

/* ---- the file ---- */
static gboolean
write_at (gint64 offset, const char *data, gsize size)
{
  while (size > 0) {
    TinyFileLimit limit;
    tiny_file_limit_hold (&limit);
    gssize n = pwrite (trace.fd, data, size, offset);
    tiny_file_limit_release (&limit);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return FALSE;
    data += n;
    offset += n;
    size -= (gsize) n;
  }
  return TRUE;
}

static void
give_up (int number)
{
  g_warning ("TINY_PROFILE=%s: %s; nothing more is recorded", trace.path, g_strerror (number));
  g_atomic_int_set (&tiny_trace_state, TINY_TRACE_OFF);
}

/* What does not fit is left out, so that what is there stays complete. */
static void
flush_locked (void)
{
  if (trace.pending == NULL || trace.pending->len == 0
      || g_atomic_int_get (&tiny_trace_state) != TINY_TRACE_ON)
    return;
  gsize n = trace.pending->len;
  g_string_append (trace.pending, tail);
  if (write_at (trace.end, trace.pending->str, trace.pending->len)) {
    trace.end += (gint64) n;
  } else {
    int number = errno;
    if (ftruncate (trace.fd, trace.end) != 0 || !write_at (trace.end, tail, sizeof tail - 1))
      number = errno;
    give_up (number);
  }
  g_string_truncate (trace.pending, 0);
  trace.flushed_ns = tiny_timing_now_ns ();
}

void
tiny_trace_flush (void)
{
  if (g_atomic_int_get (&tiny_trace_state) != TINY_TRACE_ON)
    return;
  g_mutex_lock (&lock);
  flush_locked ();
  g_mutex_unlock (&lock);
}

/* The parent goes on writing; a child must not. Another thread may have held the lock, which is not in the child. */
static void
stop_in_child (void)
{
  g_mutex_init (&lock);
  g_atomic_int_set (&tiny_trace_state, TINY_TRACE_OFF);
}

/* ---- events ---- */
static void
append_text (GString *out, const char *text)
{
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  g_string_append_c (out, '"');
  for (const char *c = valid; *c != 0; c++)
    if (*c == '"' || *c == '\\')
      g_string_append_printf (out, "\\%c", *c);
    else if ((guchar) *c < ' ')
      g_string_append_printf (out, "\\u%04x", *c);
    else
      g_string_append_c (out, *c);
  g_string_append_c (out, '"');
}

static void
append_separator (void)
{
  g_string_append (trace.pending, trace.is_empty ? "" : ",\n");
  trace.is_empty = FALSE;
}

static void
append_name_of (const char *what, guint thread, const char *name)
{
  append_separator ();
  g_string_append_printf (trace.pending,
                          "{\"ph\": \"M\", \"pid\": %d, \"tid\": %u, \"name\": \"%s\", "
                          "\"args\": {\"name\": ",
                          (int) getpid (), thread, what);
  append_text (trace.pending, name);
  g_string_append (trace.pending, "}}");
}

/* This thread's number, which its first event introduces. */
static guint
get_thread (void)
{
  static __thread guint number = 0;
  if (number == 0) {
    char name[16] = "";
    number = ++trace.n_threads;
    pthread_getname_np (pthread_self (), name, sizeof name);
    append_name_of ("thread_name", number, name);
  }
  return number;
}

static void
append_args (const TinyTraceArg *args, guint n_args)
{
  char number[G_ASCII_DTOSTR_BUF_SIZE];
  for (guint i = 0; i < n_args; i++) {
    g_string_append (trace.pending, i > 0 ? ", " : "");
    append_text (trace.pending, args[i].key);
    g_string_append (trace.pending, ": ");
    if (args[i].text != NULL)
      append_text (trace.pending, args[i].text);
    else
      g_string_append (trace.pending,
                       g_ascii_formatd (number, sizeof number, "%.6g",
                                        isfinite (args[i].number) ? args[i].number : 0));
  }
}

void
tiny_trace_add (gint64 start_ns,
                gint64 end_ns,
                const char *category,
                const char *name,
                const TinyTraceArg *args,
                guint n_args)
{
  gint64 ns = MAX (end_ns - start_ns, 0);
  if (g_atomic_int_get (&tiny_trace_state) != TINY_TRACE_ON)
    return;
  g_mutex_lock (&lock);
  if (g_atomic_int_get (&tiny_trace_state) == TINY_TRACE_ON) {
    guint thread = get_thread ();
    append_separator ();
    g_string_append_printf (trace.pending,
                            "{\"ph\": \"X\", \"pid\": %d, \"tid\": %u, \"cat\": \"%s\", "
                            "\"ts\": %" G_GINT64_FORMAT ".%03d, \"dur\": %" G_GINT64_FORMAT
                            ".%03d, \"name\": ",
                            (int) getpid (), thread, category, start_ns / 1000,
                            (int) (start_ns % 1000), ns / 1000, (int) (ns % 1000));
    append_text (trace.pending, name);
    g_string_append (trace.pending, ", \"args\": {");
    append_args (args, n_args);
    g_string_append (trace.pending, "}}");
    if (trace.pending->len > FLUSH_BYTES || end_ns - trace.flushed_ns > FLUSH_NS)
      flush_locked ();
  }
  g_mutex_unlock (&lock);
}

static void
add_timing (const TinyTiming *timing, gpointer unused)
{
  tiny_trace_add (timing->start_ns, timing->end_ns, timing->category, timing->name, NULL, 0);
}

/* ---- opening ---- */

/* @text with the process's number for %p. */
static char *
expand_path (const char *text)
{
  g_auto (GStrv) parts = g_strsplit (text, "%p", -1);
  g_autofree char *number = g_strdup_printf ("%d", (int) getpid ());
  return g_strjoinv (number, parts);
}

static gint
open_file (void)
{
  const char *text = tiny_env_get_text (TINY_ENV_PROFILE);
  if (text == NULL)
    return TINY_TRACE_OFF;
  trace.path = expand_path (text);
  /* A FIFO is not waited for. */
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  trace.fd = open (trace.path, flags, 0666);
  if (trace.fd < 0 || !write_at (0, head, sizeof head - 1)
      || !write_at (sizeof head - 1, tail, sizeof tail - 1)) {
    g_warning ("TINY_PROFILE=%s: %s; nothing is recorded", trace.path, g_strerror (errno));
    return TINY_TRACE_OFF;
  }
  trace.end = sizeof head - 1;
  trace.is_empty = TRUE;
  trace.pending = g_string_new (NULL);
  trace.flushed_ns = tiny_timing_now_ns ();
  append_name_of ("process_name", 0, g_get_prgname () ? g_get_prgname () : "tinycore");
  atexit (tiny_trace_flush);
  pthread_atfork (NULL, NULL, stop_in_child);
  return TINY_TRACE_ON;
}

gboolean
tiny_trace_open (void)
{
  gint state = g_atomic_int_get (&tiny_trace_state);
  if (G_LIKELY (state != TINY_TRACE_UNKNOWN))
    return state == TINY_TRACE_ON;
  g_mutex_lock (&lock);
  if (g_atomic_int_get (&tiny_trace_state) == TINY_TRACE_UNKNOWN) {
    g_atomic_int_set (&tiny_trace_state, open_file ());
    if (tiny_trace_state == TINY_TRACE_ON)
      tiny_timing_watch (add_timing, NULL);
  }
  state = g_atomic_int_get (&tiny_trace_state);
  g_mutex_unlock (&lock);
  return state == TINY_TRACE_ON;
}
