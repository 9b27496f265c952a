/* SPDX-License-Identifier: MIT
 *
 * tiny-progress.c: a line that is written again and again. */
#include "base/tiny-progress.h"

#include <stdio.h>
#include <unistd.h>

enum { BAR = 20, TERMINAL_US = 100000, FILE_US = 1000000 };

struct _TinyProgress {
  GObject parent_instance;
  GMutex lock; /* for what follows */
  char *label, *note;
  guint64 total, done;
  gint64 start_us, shown_us; /* g_get_monotonic_time(); shown_us: 0 before the first time */
  gboolean is_shown, is_terminal, is_finished;
};

G_DEFINE_FINAL_TYPE (TinyProgress, tiny_progress, G_TYPE_OBJECT)

static void
tiny_progress_finalize (GObject *object)
{
  TinyProgress *self = TINY_PROGRESS (object);
  tiny_progress_finish (self);
  g_free (self->label);
  g_free (self->note);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (tiny_progress_parent_class)->finalize (object);
}

static void
tiny_progress_class_init (TinyProgressClass *class)
{
  G_OBJECT_CLASS (class)->finalize = tiny_progress_finalize;
}

static void
tiny_progress_init (TinyProgress *self)
{
  g_mutex_init (&self->lock);
  self->start_us = g_get_monotonic_time ();
}

TinyProgress *
tiny_progress_new (const char *label, guint64 total, TinyProgressMode mode)
{
  TinyProgress *self = g_object_new (TINY_TYPE_PROGRESS, NULL);
  self->label = g_strdup (label);
  self->total = total;
  self->is_terminal = isatty (STDERR_FILENO) == 1;
  self->is_shown
      = mode == TINY_PROGRESS_ALWAYS || (mode == TINY_PROGRESS_AUTO && self->is_terminal);
  return self;
}

static void
append_bar (GString *line, guint64 done, guint64 total)
{
  double part = MIN (1, (double) done / (double) total);
  g_string_append_printf (line, "%3.0f%% [", 100 * part);
  for (guint i = 0; i < BAR; i++)
    g_string_append_c (line, (i + 1) <= BAR * part ? '#' : ' ');
  g_string_append_printf (line, "] %" G_GUINT64_FORMAT "/%" G_GUINT64_FORMAT, done, total);
}

static void
append_time (GString *line, double seconds)
{
  guint64 whole = (guint64) MIN (seconds, 1e9);
  if (whole >= 3600)
    g_string_append_printf (line, "%" G_GUINT64_FORMAT ":%02u:%02u", whole / 3600,
                            (guint) (whole / 60 % 60), (guint) (whole % 60));
  else
    g_string_append_printf (line, "%u:%02u", (guint) (whole / 60), (guint) (whole % 60));
}

/* Under the lock. */
static char *
make_line (const TinyProgress *self, gint64 now_us)
{
  GString *line = g_string_new (self->label);
  double seconds = (double) MAX (now_us - self->start_us, 1) * 1e-6;
  double rate = (double) self->done / seconds;
  if (line->len > 0)
    g_string_append_c (line, ' ');
  if (self->total > 0)
    append_bar (line, self->done, self->total);
  else
    g_string_append_printf (line, "%" G_GUINT64_FORMAT, self->done);
  if (self->done > 0)
    g_string_append_printf (line, "  %.1f/s", rate);
  if (self->done > 0 && self->done < self->total) {
    g_string_append (line, "  ");
    append_time (line, (double) (self->total - self->done) / rate);
    g_string_append (line, " left");
  }
  if (self->note != NULL)
    g_string_append_printf (line, "  %s", self->note);
  return g_string_free (line, FALSE);
}

/* Under the lock. */
static void
show (TinyProgress *self, gboolean is_last)
{
  gint64 now_us = g_get_monotonic_time ();
  gint64 least = self->is_terminal ? TERMINAL_US : FILE_US;
  if (!self->is_shown || self->is_finished
      || (!is_last && self->shown_us != 0 && now_us - self->shown_us < least))
    return;
  g_autofree char *line = make_line (self, now_us);
  if (self->is_terminal)
    fprintf (stderr, "\r%s\033[K%s", line, is_last ? "\n" : "");
  else
    fprintf (stderr, "%s\n", line);
  fflush (stderr);
  self->shown_us = now_us;
}

void
tiny_progress_update (TinyProgress *self, guint64 done, const char *note)
{
  g_return_if_fail (TINY_IS_PROGRESS (self));
  g_mutex_lock (&self->lock);
  self->done = done;
  g_free (self->note);
  self->note = g_strdup (note);
  show (self, FALSE);
  g_mutex_unlock (&self->lock);
}

void
tiny_progress_finish (TinyProgress *self)
{
  g_return_if_fail (TINY_IS_PROGRESS (self));
  g_mutex_lock (&self->lock);
  if (self->shown_us != 0)
    show (self, TRUE);
  self->is_finished = TRUE;
  g_mutex_unlock (&self->lock);
}

char *
tiny_progress_to_string (TinyProgress *self)
{
  g_return_val_if_fail (TINY_IS_PROGRESS (self), NULL);
  g_mutex_lock (&self->lock);
  char *line = make_line (self, g_get_monotonic_time ());
  g_mutex_unlock (&self->lock);
  return line;
}
