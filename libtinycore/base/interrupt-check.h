/* SPDX-License-Identifier: MIT
 *
 * interrupt-check.h: what long work asks between its parts. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* FALSE with an error when this thread is to stop: %TINY_ERROR_INTERRUPTED, or %G_IO_ERROR_CANCELLED. Costs a look at
 * the clock. The check may wait for another language's lock: nobody who has that may wait for a lock that is held here. */
gboolean tiny_interrupt_check (GError **error);
/* Likewise, but asks each time: before a function of the program is called, which may be unable to say that it was stopped. */
gboolean tiny_interrupt_check_now (GError **error);
/* True if @error is one of these. */
gboolean tiny_interrupt_is_error (const GError *error);
/* Between them no thread's check is asked: whoever forks may hold a lock that a check waits for, and wait for the
 * thread. */
void tiny_interrupt_pause (void);
void tiny_interrupt_resume (void);

G_END_DECLS
