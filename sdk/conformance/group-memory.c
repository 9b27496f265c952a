/* SPDX-License-Identifier: MIT
 *
 * group-memory.c: what is written to a buffer is read from it, and from nowhere else. */
#include <string.h>

#include "raw.h"

enum { ZONE = 256 }; /* bytes on each side of what a copy is to touch */

/* ---- one buffer ---- */
static void
run_size (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  guint64 n = (guint64) self->args[0], room = conf_raw_round (&raw, n);
  g_autofree guint8 *data = g_malloc (room + 2 * ZONE), *back = g_malloc (room + 2 * ZONE);
  TinyPluginBuffer *buffer = conf_raw_alloc (&raw, n);
  conf_fill (data, room, n);
  conf_fill (back, room + 2 * ZONE, n + 1);
  if (buffer != NULL && conf_raw_upload (&raw, buffer, 0, data, room)
      && conf_raw_download (&raw, buffer, 0, back + ZONE, room)) {
    conf_check_fill (trial, back + ZONE, room, n, 0, "the buffer's bytes");
    conf_check_fill (trial, back, ZONE, n + 1, 0, "host memory before a download");
    conf_check_fill (trial, back + ZONE + room, ZONE, n + 1, ZONE + room,
                     "host memory behind a download");
  }
  conf_raw_free (&raw, buffer);
  conf_raw_end (&raw);
}

static void
run_zero (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  TinyPluginBuffer *a = conf_raw_alloc (&raw, 0), *b = conf_raw_alloc (&raw, 0);
  conf_check (trial, a == NULL || a != b, "two buffers of 0 bytes are the same");
  conf_raw_free (&raw, a);
  conf_raw_free (&raw, b);
  conf_raw_end (&raw);
}

static void
list (const ConfSubject *subject, ConfList *out)
{
  if (subject->device == NULL)
    return;
  const ConfCase zero = { .run = run_zero };
  conf_list_add (out, &zero, "zero");
  for (guint power = 0; power <= 22; power++)
    for (gint64 more = power < 2 ? 0 : -1; more <= 1; more++) {
      gint64 n = (G_GINT64_CONSTANT (1) << power) + more;
      const ConfCase size
          = { .run = run_size, .level = power % 4 == 0 ? CONF_CORE : CONF_FULL, .args = { n } };
      if (power > 1 || more == 0)
        conf_list_add (out, &size, "size/%" G_GINT64_FORMAT, n);
    }
}

const ConfGroup conf_group_memory
    = { "memory", "what is written to a buffer is read from it, and from nowhere else", list };
