/* SPDX-License-Identifier: MIT
 *
 * asynchronous.h: makes the functions of any synchronous device asynchronous, and watches that the core
 * keeps what tiny-plugin.h promises of submissions: a thread for each queue does the work when the
 * test lets it. */
#pragma once

#include <glib.h>

#include "tiny-plugin.h"

/* Read them, and set them while nothing runs. */
typedef struct {
  gint gate;           /* how many submissions may still run; negative: any number */
  gint fail_at;        /* this submission of all, counted from 0, fails; -1: none */
  gint n_submissions;  /* that submit() took */
  gint most_in_flight; /* of one queue */
  gint n_queues;       /* made so far */
  gboolean is_lost;
  gboolean goes_back; /* gives points that do not grow */
} Asynchronous;
extern Asynchronous asynchronous;

/* The beginning: everything runs and nothing fails. */
void asynchronous_reset (void);
/* @own with other queues. */
TinyDeviceTable asynchronous_wrap (const TinyDeviceTable *own);
void asynchronous_set_gate (gint n);
/* The next submission fails, or that which comes @n after it. */
void asynchronous_fail (gint n);
/* After @ms, from another thread; join it. */
GThread *asynchronous_open_gate_later (guint ms);
/* Fails all that is not done. */
void asynchronous_lose (void);
