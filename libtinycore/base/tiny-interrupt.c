/* SPDX-License-Identifier: MIT
 *
 * tiny-interrupt.c: asks whether a thread shall stop.
 *
 * A check may have to wait for another language's lock, so it is asked no more often than a person notices. */
#include "base/tiny-interrupt.h"

#include <gio/gio.h>

#include "base/interrupt-check.h"
#include "base/tiny-error.h"

enum { EVERY_US = 25000 };

typedef struct {
  TinyInterruptFunction check;
  gpointer data;
  GDestroyNotify destroy;
  gint64 next_us;    /* g_get_monotonic_time() of the next time that it is asked */
  gboolean is_asked; /* now: it is not asked by what it calls, and stays */
} Own;

static void
own_free (gpointer data)
{
  Own *self = data;
  if (self->destroy != NULL)
    self->destroy (self->data);
  g_free (self);
}

static GPrivate own_check = G_PRIVATE_INIT (own_free);
static gint n_pauses;

void
tiny_set_interrupt_check (TinyInterruptFunction check,
                          gpointer user_data,
                          GDestroyNotify destroy)
{
  const Own own = { check, user_data, destroy, 0, FALSE }, *before = g_private_get (&own_check);
  const gboolean is_asked = before != NULL && before->is_asked;
  if (is_asked)
    g_critical (
        "interrupt check: it replaces itself while it is asked; set another one outside of it");
  else
    g_private_replace (&own_check, check != NULL ? g_memdup2 (&own, sizeof own) : NULL);
  if ((check == NULL || is_asked) && destroy != NULL)
    destroy (user_data);
}

void
tiny_interrupt_pause (void)
{
  g_atomic_int_inc (&n_pauses);
}

void
tiny_interrupt_resume (void)
{
  g_atomic_int_add (&n_pauses, -1);
}

static gboolean
ask (gboolean is_urgent, GError **error)
{
  Own *own = g_private_get (&own_check);
  if (g_cancellable_set_error_if_cancelled (g_cancellable_get_current (), error))
    return FALSE;
  if (own == NULL || own->is_asked || g_atomic_int_get (&n_pauses) > 0)
    return TRUE;
  const gint64 now_us = g_get_monotonic_time ();
  if (now_us < own->next_us && !is_urgent)
    return TRUE;
  own->next_us = now_us + EVERY_US;
  own->is_asked = TRUE;
  const gboolean stops = own->check (own->data);
  own->is_asked = FALSE;
  if (!stops)
    return TRUE;
  g_set_error_literal (error, TINY_ERROR, TINY_ERROR_INTERRUPTED, "interrupted");
  return FALSE;
}

gboolean
tiny_interrupt_check (GError **error)
{
  return ask (FALSE, error);
}

gboolean
tiny_interrupt_check_now (GError **error)
{
  return ask (TRUE, error);
}

gboolean
tiny_interrupt_is_error (const GError *error)
{
  return g_error_matches (error, TINY_ERROR, TINY_ERROR_INTERRUPTED)
         || g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}
