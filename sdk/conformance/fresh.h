/* SPDX-License-Identifier: MIT
 *
 * fresh.h: for cases that want a process of their own (CONF_FRESH): opening and closing the subject,
 * and what the process looks like before and after. */
#pragma once

#include "step.h"

G_BEGIN_DECLS

/* Loads, initialises and opens, past the registry: @out gets all of @bare and backend, device and target. FALSE
 * where the trial has failed. Closed and ended by conf_fresh_close(); the file stays loaded. */
gboolean conf_fresh_open (ConfTrial *trial, const ConfSubject *bare, ConfSubject *out);
void conf_fresh_close (ConfSubject *self);

/* Uploads, runs a step (step.h), downloads, compares; makes and ends all that it needs. */
gboolean conf_fresh_use (ConfTrial *trial, const ConfSubject *subject);

/* In a child of fork(): exit() as a program would. */
G_NORETURN void conf_child_exit (int status);

/* What a process has, in numbers. */
typedef struct {
  guint n_fds, n_threads;
  gint64 rss_bytes;    /* memory that is there */
  gint64 malloc_bytes; /* handed out by malloc() */
} ConfUsage;
ConfUsage conf_usage_get (void);
/* Runs @work @n times and then again @n times, and fails where that has taken more: a descriptor or a thread, or, in two
 * more stretches as well, more than @bytes. */
void conf_check_growth (ConfTrial *trial,
                        guint n,
                        gint64 bytes,
                        gboolean (*work) (ConfTrial *trial, gpointer data),
                        gpointer data);

/* @n bytes that end where no memory follows. Free with conf_guarded_free(). */
gpointer conf_guarded_new (gsize n);
void conf_guarded_free (gpointer memory, gsize n);

G_END_DECLS
