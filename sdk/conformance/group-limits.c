/* SPDX-License-Identifier: MIT
 *
 * group-limits.c: memory at its limits: too much is refused, and all that there is already goes on
 * working; beyond 32 bits sizes and offsets are what they say. */
#include <string.h>
#include <sys/resource.h>

#include "fresh.h"

enum { MARK = 64 }; /* bytes, a multiple of every unit */
#define MIB  (G_GUINT64_CONSTANT (1) << 20)
#define GIB4 (G_GUINT64_CONSTANT (1) << 32)

static TinyStatus
try_alloc (ConfRaw *raw, guint64 n_bytes, TinyPluginBuffer **out)
{
  *out = NULL;
  memset (&raw->error, 0, sizeof raw->error);
  raw->error.struct_size = sizeof raw->error;
  return raw->table->alloc (raw->device, n_bytes, out, &raw->error);
}

static gboolean
write_mark (ConfRaw *raw, TinyPluginBuffer *buffer, guint64 offset, guint64 salt)
{
  guint8 mark[MARK];
  conf_fill (mark, MARK, salt);
  return conf_raw_upload (raw, buffer, offset, mark, MARK);
}

static gboolean
check_mark (ConfRaw *raw, TinyPluginBuffer *buffer, guint64 offset, guint64 salt)
{
  guint8 mark[MARK] = { 0 };
  g_autofree char *what = g_strdup_printf ("a mark at byte %" G_GUINT64_FORMAT, offset);
  return conf_raw_download (raw, buffer, offset, mark, MARK)
         && conf_check_fill (raw->trial, mark, MARK, salt, 0, what);
}

/* ---- one that is too large ---- */
static void
run_huge (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  guint64 n_bytes = (guint64) self->args[0];
  g_autofree char *what = g_strdup_printf ("alloc of %" G_GUINT64_FORMAT " bytes", n_bytes);
  ConfRaw raw;
  TinyPluginBuffer *huge = NULL;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  TinyPluginBuffer *before = conf_raw_alloc (&raw, MARK);
  if (before != NULL && write_mark (&raw, before, 0, 1)) {
    TinyStatus status = try_alloc (&raw, n_bytes, &huge);
    conf_raw_check_failure (&raw, status, TINY_STATUS_OUT_OF_MEMORY, what);
    if (status == TINY_STATUS_OK)
      conf_raw_free (&raw, huge);
    check_mark (&raw, before, 0, 1);
  }
  conf_raw_free (&raw, before);
  conf_raw_end (&raw);
  conf_fresh_use (trial, subject);
}

/* The largest that info() allows: it is there to its last byte, or there is no memory; what others hold stays. */
static void
run_largest (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  ConfRaw raw;
  TinyPluginBuffer *buffer = NULL;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  guint64 n = raw.info->max_buffer_bytes / MARK * MARK;
  TinyPluginBuffer *before = conf_raw_alloc (&raw, MARK);
  if (before != NULL)
    write_mark (&raw, before, 0, 3);
  TinyStatus status = try_alloc (&raw, n, &buffer);
  if (status == TINY_STATUS_OK) {
    if (write_mark (&raw, buffer, 0, 1) && write_mark (&raw, buffer, n - MARK, 2)) {
      check_mark (&raw, buffer, 0, 1);
      check_mark (&raw, buffer, n - MARK, 2);
    }
    conf_raw_free (&raw, buffer);
  } else {
    conf_raw_check_failure (&raw, status, TINY_STATUS_OUT_OF_MEMORY,
                            "alloc of max_buffer_bytes");
  }
  if (before != NULL)
    check_mark (&raw, before, 0, 3);
  conf_raw_free (&raw, before);
  conf_raw_end (&raw);
  conf_fresh_use (trial, subject);
}

/* ---- beyond 32 bits ---- */
static void
run_wide (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  static const guint64 marks[]
      = { 0, MARK, MIB, GIB4 / 2 - MARK, GIB4 / 2, GIB4 - MARK, GIB4, GIB4 + MARK, GIB4 + MIB };
  ConfRaw raw;
  TinyPluginBuffer *buffer = NULL;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  TinyStatus status = try_alloc (&raw, GIB4 + 2 * MIB, &buffer);
  if (status != TINY_STATUS_OK) {
    conf_raw_check_failure (&raw, status, TINY_STATUS_OUT_OF_MEMORY,
                            "alloc of more than 4 GiB");
    conf_raw_end (&raw);
    return;
  }
  for (guint i = 0; i < G_N_ELEMENTS (marks); i++)
    write_mark (&raw, buffer, marks[i], i + 1);
  for (guint i = 0; i < G_N_ELEMENTS (marks); i++)
    check_mark (&raw, buffer, marks[i], i + 1);
  if (conf_raw_copy (&raw, buffer, GIB4 + MIB / 2, buffer, GIB4, MARK)) {
    check_mark (&raw, buffer, GIB4 + MIB / 2, 7);
    check_mark (&raw, buffer, 0, 1);
  }
  conf_raw_free (&raw, buffer);
  conf_raw_end (&raw);
}

/* ---- until there is no more ---- */
enum { MOST_PIECES = 200, MOST_WAIT_MS = 1024 };

/* Takes pieces until one is refused; returns how many there are. */
static guint
take_all (ConfRaw *raw, guint64 piece, TinyPluginBuffer **pieces, TinyStatus *out_status)
{
  guint n = 0;
  for (*out_status = TINY_STATUS_OK; n < MOST_PIECES; n++) {
    *out_status = try_alloc (raw, piece, &pieces[n]);
    if (*out_status != TINY_STATUS_OK || !write_mark (raw, pieces[n], 0, n))
      break;
  }
  return n;
}

static void
check_pieces (ConfRaw *raw, guint64 piece, TinyPluginBuffer **pieces, guint n)
{
  for (guint i = 0; i < n && !conf_has_failed (raw->trial); i++)
    check_mark (raw, pieces[i], 0, i);
  if (n < 2 || conf_has_failed (raw->trial))
    return;
  /* A driver may take a part of what became free for itself, and its threads may give it back a little later; malloc ()
   * does not give back all of it. */
  for (guint i = n / 2; i < n; i++)
    conf_raw_free (raw, g_steal_pointer (&pieces[i]));
  TinyStatus status = try_alloc (raw, piece, &pieces[n - 1]);
  for (guint ms = 1; status == TINY_STATUS_OUT_OF_MEMORY && ms <= MOST_WAIT_MS; ms *= 2) {
    g_usleep (ms * 1000);
    status = try_alloc (raw, piece, &pieces[n - 1]);
  }
  conf_check (raw->trial, status == TINY_STATUS_OK,
              "after half of the buffers were freed, one of their size: %s: %s",
              conf_status_to_string (status), raw->error.text);
}

static gboolean
limit_address_space (guint64 more, struct rlimit *before)
{
  g_autofree char *text = NULL;
  struct rlimit now;
  if (getrlimit (RLIMIT_AS, before) != 0
      || !g_file_get_contents ("/proc/self/statm", &text, NULL, NULL))
    return FALSE;
  now = *before;
  now.rlim_cur = MIN (g_ascii_strtoull (text, NULL, 10) * 4096 + more, now.rlim_max);
  return setrlimit (RLIMIT_AS, &now) == 0;
}

/* Memory is the host's: little of it is left. */
static void
run_exhausted (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const guint64 piece = 16 * MIB;
  TinyPluginBuffer *pieces[MOST_PIECES + 1] = { NULL };
  struct rlimit before;
  TinyStatus status;
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject)
      || !conf_check (trial, limit_address_space (512 * MIB, &before), "no limit can be set"))
    return;
  guint n = take_all (&raw, piece, pieces, &status);
  g_autofree char *what = g_strdup_printf ("alloc when %u pieces are all there is", n);
  conf_raw_check_failure (&raw, status, TINY_STATUS_OUT_OF_MEMORY, what);
  check_pieces (&raw, piece, pieces, n);
  for (guint i = 0; i < n; i++)
    conf_raw_free (&raw, pieces[i]);
  setrlimit (RLIMIT_AS, &before);
  conf_raw_end (&raw);
  conf_fresh_use (trial, subject);
}

static void
list (const ConfSubject *subject, ConfList *out)
{
  const ConfCase largest = { .run = run_largest, .flags = CONF_ALONE };
  const ConfCase wide = { .run = run_wide, .flags = CONF_ALONE, .seconds = 120 };
  const ConfCase exhausted = { .run = run_exhausted, .flags = CONF_ALONE };
  if (subject->device == NULL)
    return;
  const TinyDeviceInfo *info = tiny_device_get_info (subject->device);
  /* More than max_buffer_bytes is never asked for, so that only what it allows can be tested. */
  for (guint power = 44; power < 64; power += 4) {
    guint64 n = (G_GUINT64_CONSTANT (1) << power) + (power == 60 ? 0 : 4096);
    const ConfCase huge = { .run = run_huge, .args = { (gint64) n } };
    if (info->max_buffer_bytes == 0 || n <= info->max_buffer_bytes)
      conf_list_add (out, &huge, "huge/2p%u", power);
    else
      conf_list_absent (out, "more than max_buffer_bytes", "huge/2p%u", power);
  }
  if (info->max_buffer_bytes != 0)
    conf_list_add (out, &largest, "largest");
  if (info->max_buffer_bytes == 0 || info->max_buffer_bytes >= GIB4 + 2 * MIB)
    conf_list_add (out, &wide, "beyond-32-bits");
  else
    conf_list_absent (out, "max_buffer_bytes is less than 4 GiB", "beyond-32-bits");
  if ((info->flags & TINY_DEVICE_HOST_MEMORY) != 0)
    conf_list_add (out, &exhausted, "exhausted");
  else
    conf_list_absent (out, "memory is not the host's, whose limit can be set", "exhausted");
}

const ConfGroup conf_group_limits
    = { "limits", "too much memory is refused, and what there is goes on working", list };
