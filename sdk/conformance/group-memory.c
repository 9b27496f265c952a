/* SPDX-License-Identifier: MIT
 *
 * group-memory.c: what is written to a buffer is read from it, and from nowhere else. */
#include <string.h>

#include "memory.h"
#include "scale.h"

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

/* ---- map ---- */
static gboolean
map (ConfRaw *raw, TinyPluginBuffer *buffer, guint8 **out)
{
  void *memory = NULL;
  TinyStatus status = raw->table->map (raw->device, buffer, &memory, &raw->error);
  *out = memory;
  return conf_check (raw->trial, status == TINY_STATUS_OK && memory != NULL, "map: %s: %s",
                     conf_status_to_string (status), raw->error.text);
}

/* That addresses have the alignment that info() promises. */
static void
run_alignment (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  static const guint64 sizes[] = { 1, 3, 7, 64, 100, 4095, 4097, 65537 };
  TinyPluginBuffer *buffers[G_N_ELEMENTS (sizes)] = { NULL };
  ConfRaw raw;
  guint8 *at;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  guint alignment = MAX (raw.info->alignment, 1);
  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++) {
    buffers[i] = conf_raw_alloc (&raw, sizes[i]);
    if (buffers[i] != NULL && map (&raw, buffers[i], &at))
      conf_check (trial, (guintptr) at % alignment == 0,
                  "the buffer of %" G_GUINT64_FORMAT " bytes is at %p, and info() says that "
                  "buffers are aligned to %u",
                  sizes[i], (void *) at, alignment);
  }
  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++)
    conf_raw_free (&raw, buffers[i]);
  conf_raw_end (&raw);
}

/* What the core does before the host reads mapped memory, and after it wrote. */
static gboolean
synchronise_part (
    ConfRaw *raw, TinyPluginBuffer *buffer, guint64 at, guint64 n, guint32 direction)
{
  const TinySpan span = { buffer, at, n };
  if ((raw->info->flags & TINY_DEVICE_NON_COHERENT) == 0)
    return TRUE;
  return conf_check (raw->trial,
                     raw->table->sync (raw->device, &span, direction, &raw->error)
                         == TINY_STATUS_OK,
                     "sync(): %s", raw->error.text);
}

static gboolean
synchronise (ConfRaw *raw, TinyPluginBuffer *buffer, guint64 n, guint32 direction)
{
  return synchronise_part (raw, buffer, 0, n, direction);
}

/* What is written by one way is read by the other. */

static void
run_map (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { N = 8192 };
  ConfRaw raw;
  guint8 *at, *again;
  g_autofree guint8 *data = g_malloc (N);
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  TinyPluginBuffer *buffer = conf_raw_alloc (&raw, N);
  if (buffer != NULL && map (&raw, buffer, &at) && map (&raw, buffer, &again)) {
    conf_check (trial, at == again, "map() of one buffer gives two addresses");
    conf_fill (at, N, 1);
    if (synchronise (&raw, buffer, N, TINY_SYNC_TO_DEVICE)
        && conf_raw_download (&raw, buffer, 0, data, N))
      conf_check_fill (trial, data, N, 1, 0, "a download of what was written through map()");
    conf_fill (data, N, 2);
    if (conf_raw_upload (&raw, buffer, 0, data, N)
        && synchronise (&raw, buffer, N, TINY_SYNC_TO_HOST))
      conf_check_fill (trial, at, N, 2, 0, "what map() shows of an upload");
  }
  conf_raw_free (&raw, buffer);
  conf_raw_end (&raw);
}

/* Of a part that begins and ends within lines of a cache: beside it, on its first line, the device has written
 * some bytes and the host others, which neither is to lose. */
static void
run_sync_part (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { N = 4096, OF_DEVICE = 960, OF_HOST = 984, BESIDE = 16, FROM = 1000, PART = 500 };
  ConfRaw raw;
  guint8 *at;
  g_autofree guint8 *data = g_malloc (N);
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  TinyPluginBuffer *buffer = conf_raw_alloc (&raw, N);
  conf_fill (data, N, 1);
  gboolean good = buffer != NULL && map (&raw, buffer, &at)
                  && conf_raw_upload (&raw, buffer, 0, data, N)
                  && synchronise (&raw, buffer, N, TINY_SYNC_TO_HOST);
  conf_fill (data, BESIDE, 2);
  if (good && conf_raw_upload (&raw, buffer, OF_DEVICE, data, BESIDE)) {
    conf_fill (at + OF_HOST, BESIDE, 3);
    conf_fill (at + FROM, PART, 4);
    if (synchronise_part (&raw, buffer, FROM, PART, TINY_SYNC_TO_DEVICE)
        && conf_raw_download (&raw, buffer, 0, data, N)) {
      conf_check_fill (trial, data + FROM, PART, 4, 0, "a part given to the device");
      conf_check_fill (trial, data + OF_DEVICE, BESIDE, 2, 0,
                       "what the device wrote beside it");
    }
    conf_fill (data, PART, 5);
    if (conf_raw_upload (&raw, buffer, FROM, data, PART)
        && synchronise_part (&raw, buffer, FROM, PART, TINY_SYNC_TO_HOST)) {
      conf_check_fill (trial, at + FROM, PART, 5, 0, "a part given to the host");
      conf_check_fill (trial, at + OF_HOST, BESIDE, 3, 0, "what the host wrote beside it");
    }
  }
  conf_raw_free (&raw, buffer);
  conf_raw_end (&raw);
}

/* ---- red zones around copies ---- */
enum { WHOLE = 4096 }; /* units */

typedef struct {
  guint to, from, n; /* in units */
} Part;

static const Part parts[] = {
  { 0, 0, 1 },       { 1, 0, 1 },       { 0, 1, 1 },    { 1, 3, 5 },
  { 3, 1, 63 },      { 63, 65, 64 },    { 64, 0, 127 }, { 255, 257, 256 },
  { 1000, 17, 999 }, { 4095, 4094, 1 }, { 1, 2, 4000 }, { 2049, 0, 2047 },
};

/* That buffer @salt holds its own bytes, except @n units from @to on, which are of @other. */
static void
check_zones (ConfRaw *raw,
             TinyPluginBuffer *buffer,
             guint64 salt,
             guint64 to,
             guint64 n,
             guint64 other,
             guint64 other_first,
             const char *what)
{
  gsize size = (gsize) WHOLE * raw->unit;
  g_autofree guint8 *back = g_malloc (size);
  g_autofree char *before = g_strconcat (what, ", before it", NULL);
  g_autofree char *behind = g_strconcat (what, ", behind it", NULL);
  if (!conf_raw_download (raw, buffer, 0, back, size))
    return;
  conf_check_fill (raw->trial, back, to, salt, 0, before);
  conf_check_fill (raw->trial, back + to, n, other, other_first, what);
  conf_check_fill (raw->trial, back + to + n, size - to - n, salt, to + n, behind);
}

static TinyPluginBuffer *
new_filled (ConfRaw *raw, guint64 salt)
{
  gsize size = (gsize) WHOLE * raw->unit;
  g_autofree guint8 *data = g_malloc (size);
  TinyPluginBuffer *buffer = conf_raw_alloc (raw, size);
  conf_fill (data, size, salt);
  if (buffer != NULL)
    conf_raw_upload (raw, buffer, 0, data, size);
  return buffer;
}

static void
run_upload_part (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const Part *part = self->data;
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  guint64 to = part->to * raw.unit, n = part->n * raw.unit;
  g_autofree guint8 *data = g_malloc (n + ZONE);
  TinyPluginBuffer *buffer = new_filled (&raw, 1);
  conf_fill (data, n, 2);
  if (buffer != NULL && conf_raw_upload (&raw, buffer, to, data, n))
    check_zones (&raw, buffer, 1, to, n, 2, 0, "an upload to a part");
  conf_raw_free (&raw, buffer);
  conf_raw_end (&raw);
}

static void
run_download_part (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const Part *part = self->data;
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  guint64 from = part->from * raw.unit, n = part->n * raw.unit;
  g_autofree guint8 *data = g_malloc (n + 2 * ZONE);
  TinyPluginBuffer *buffer = new_filled (&raw, 1);
  conf_fill (data, n + 2 * ZONE, 3);
  if (buffer != NULL && conf_raw_download (&raw, buffer, from, data + ZONE, n)) {
    conf_check_fill (trial, data, ZONE, 3, 0, "host memory before a download");
    conf_check_fill (trial, data + ZONE, n, 1, from, "a download of a part");
    conf_check_fill (trial, data + ZONE + n, ZONE, 3, ZONE + n,
                     "host memory behind a download");
  }
  conf_raw_free (&raw, buffer);
  conf_raw_end (&raw);
}

static void
run_copy_part (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const Part *part = self->data;
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  guint64 to = part->to * raw.unit, from = part->from * raw.unit, n = part->n * raw.unit;
  TinyPluginBuffer *a = new_filled (&raw, 1), *b = new_filled (&raw, 2);
  if (a != NULL && b != NULL && conf_raw_copy (&raw, a, to, b, from, n)) {
    check_zones (&raw, a, 1, to, n, 2, from, "a copy to a part");
    check_zones (&raw, b, 2, 0, 0, 2, 0, "the source of a copy");
  }
  conf_raw_free (&raw, a);
  conf_raw_free (&raw, b);
  conf_raw_end (&raw);
}

/* Within one buffer, where the parts do not overlap. */
static void
run_copy_inside (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  guint64 quarter = (guint64) WHOLE / 4 * raw.unit;
  TinyPluginBuffer *a = new_filled (&raw, 1);
  if (a != NULL && conf_raw_copy (&raw, a, 3 * quarter, a, quarter, quarter))
    check_zones (&raw, a, 1, 3 * quarter, quarter, 1, quarter, "a copy within a buffer");
  conf_raw_free (&raw, a);
  conf_raw_end (&raw);
}

/* Beyond 16 bits: offsets of their own, sizes that are no whole pages. In units. */
static void
run_far (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { FAR = 70001, LONG = 66001 };
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  const guint64 far = (guint64) FAR * raw.unit, n = (guint64) LONG * raw.unit, size = far + n;
  g_autofree guint8 *data = g_malloc (size);
  TinyPluginBuffer *a = conf_raw_alloc (&raw, size), *b = conf_raw_alloc (&raw, size);
  conf_fill (data, size, 1);
  if (!conf_has_failed (trial) && conf_raw_upload (&raw, a, 0, data, size)
      && conf_raw_upload (&raw, b, 0, data, size)) {
    conf_fill (data, n, 2);
    if (conf_raw_upload (&raw, a, far, data, n) && conf_raw_copy (&raw, b, 0, a, far, n)
        && conf_raw_copy (&raw, b, far, a, 0, n) && conf_raw_download (&raw, a, far, data, n)) {
      conf_check_fill (trial, data, n, 2, 0, "what was uploaded far behind");
      if (conf_raw_download (&raw, b, 0, data, size)) {
        conf_check_fill (trial, data, n, 2, 0, "a copy from far behind");
        conf_check_fill (trial, data + n, far - n, 1, n, "what lies between copies");
        conf_check_fill (trial, data + far, n, 1, 0, "a copy to far behind");
      }
    }
  }
  conf_raw_free (&raw, a);
  conf_raw_free (&raw, b);
  conf_raw_end (&raw);
}

/* Transfers and copies of no bytes are no failure, and touch nothing. */
static void
run_nothing (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  guint8 none = 0x5a;
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  TinyPluginBuffer *a = new_filled (&raw, 1), *b = new_filled (&raw, 2);
  if (a != NULL && b != NULL && conf_raw_upload (&raw, a, 0, &none, 0)
      && conf_raw_copy (&raw, a, 0, b, 0, 0) && conf_raw_copy (&raw, a, 0, a, 0, 0)
      && conf_raw_download (&raw, a, 0, &none, 0)) {
    check_zones (&raw, a, 1, 0, 0, 1, 0, "copies of no bytes");
    conf_check (trial, none == 0x5a, "a download of no bytes writes one");
  }
  conf_raw_free (&raw, a);
  conf_raw_free (&raw, b);
  conf_raw_end (&raw);
}

/* ---- many ---- */
/* Buffers of all sizes at once; every third is freed and made anew, and the others keep what they
 * had. */
static void
run_many (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { MOST = 9000 };
  /* A small memory gets as many as fit, with room for what an allocator needs beside each. */
  const gsize fitting
      = conf_scale_to_memory (subject->device, (gsize) self->args[0], MOST, MOST);
  const guint n = (guint) fitting - (fitting % 7 == 0);
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  g_autofree TinyPluginBuffer **buffers = g_new0 (TinyPluginBuffer *, n);
  g_autofree guint8 *data = g_malloc (MOST + 64);
  for (guint round = 0; round < 2 && !conf_has_failed (trial); round++)
    for (guint i = 0; i < n && !conf_has_failed (trial); i++) {
      guint64 size = 1 + i * 7919u % MOST;
      if (round == 1 && i % 3 != 0)
        continue;
      conf_raw_free (&raw, buffers[i]);
      buffers[i] = conf_raw_alloc (&raw, size);
      conf_fill (data, conf_raw_round (&raw, size), i + round);
      if (buffers[i] != NULL)
        conf_raw_upload (&raw, buffers[i], 0, data, conf_raw_round (&raw, size));
    }
  for (guint i = 0; i < n && !conf_has_failed (trial); i++) {
    guint64 size = conf_raw_round (&raw, 1 + i * 7919u % MOST);
    if (conf_raw_download (&raw, buffers[i], 0, data, size))
      conf_check_fill (trial, data, size, i + (i % 3 == 0), 0, "one of many buffers");
  }
  for (guint i = 0; i < n; i++)
    conf_raw_free (&raw, buffers[(i * 7 + 3) % n]); /* n is no multiple of 7 */
  conf_raw_end (&raw);
}

/* ---- lists ---- */
static void
list_parts (ConfList *out)
{
  static const struct {
    const char *name;
    ConfRun run;
  } kinds[] = { { "upload", run_upload_part },
                { "download", run_download_part },
                { "copy", run_copy_part } };
  for (guint k = 0; k < G_N_ELEMENTS (kinds); k++)
    for (guint i = 0; i < G_N_ELEMENTS (parts); i++) {
      const ConfCase it = { .run = kinds[k].run, .data = &parts[i] };
      conf_list_add (out, &it, "%s/to%u-from%u-n%u", kinds[k].name, parts[i].to, parts[i].from,
                     parts[i].n);
    }
}

static void
list_sizes (ConfList *out)
{
  for (guint power = 0; power <= 22; power++)
    for (gint64 more = power < 2 ? 0 : -1; more <= 1; more++) {
      gint64 n = (G_GINT64_CONSTANT (1) << power) + more;
      const ConfCase size
          = { .run = run_size, .level = power % 4 == 0 ? CONF_CORE : CONF_FULL, .args = { n } };
      if (power > 1 || more == 0)
        conf_list_add (out, &size, "size/%" G_GINT64_FORMAT, n);
    }
}

static void
list (const ConfSubject *subject, ConfList *out)
{
  const ConfCase zero = { .run = run_zero }, inside = { .run = run_copy_inside };
  const ConfCase few = { .run = run_many, .args = { 200 } };
  const ConfCase more = { .run = run_many, .args = { 2000 } };
  const ConfCase many = { .run = run_many, .level = CONF_FULL, .args = { 5000 } };
  const ConfCase alignment = { .run = run_alignment }, mapped = { .run = run_map };
  const ConfCase far = { .run = run_far }, nothing = { .run = run_nothing };
  const ConfCase part = { .run = run_sync_part };
  if (subject->device == NULL)
    return;
  conf_list_add (out, &zero, "zero");
  list_sizes (out);
  list_parts (out);
  conf_list_add (out, &inside, "copy/inside");
  conf_list_add (out, &far, "copy/far");
  conf_list_add (out, &nothing, "copy/nothing");
  conf_list_large (out);
  conf_list_add (out, &few, "many/200");
  conf_list_add (out, &more, "crowd/2000");
  conf_list_add (out, &many, "many/5000");
  /* A map() need not work where the flag is not. */
  const TinyDeviceInfo *info = tiny_device_get_info (subject->device);
  const gboolean is_mapped = (info->flags & TINY_DEVICE_HOST_MEMORY) != 0;
  if (is_mapped) {
    conf_list_add (out, &alignment, "map/alignment");
    conf_list_add (out, &mapped, "map/coherent");
  } else {
    conf_list_absent (out, "the device has not TINY_DEVICE_HOST_MEMORY", "map/alignment");
    conf_list_absent (out, "the device has not TINY_DEVICE_HOST_MEMORY", "map/coherent");
  }
  if (is_mapped && (info->flags & TINY_DEVICE_NON_COHERENT) != 0 && info->transfer_bytes <= 4)
    conf_list_add (out, &part, "map/sync-part");
  else
    conf_list_absent (out, "memory is not mapped or coherent, or transfers are of many bytes",
                      "map/sync-part");
  conf_list_import (subject, out);
}

const ConfGroup conf_group_memory
    = { "memory", "what is written to a buffer is read from it, and from nowhere else", list };
