/* SPDX-License-Identifier: MIT
 *
 * memory-import.c: host memory that is somebody else's, as a buffer (import_host): it is that memory, all of it and
 * nothing beside it, while the buffer is there.
 *
 * The memory lies between zones, as far behind the start of a page as info()'s alignment allows. */
#include <string.h>

#include "fresh.h"
#include "memory.h"
#include "step.h"

enum { PAGE = 4096, ZONE = 2 * PAGE, LEAK_BYTES = 16 << 10 };

typedef struct {
  ConfRaw raw;
  guint8 *room, *memory; /* the zone before it ends where the memory begins */
  gsize n_bytes, n_room;
  TinyPluginBuffer *buffer;
} Shared;

static gboolean
import (ConfRaw *raw, guint8 *memory, gsize n_bytes, TinyPluginBuffer **out)
{
  *out = NULL;
  const TinyStatus status
      = raw->table->import_host (raw->device, memory, n_bytes, out, &raw->error);
  return conf_check (raw->trial, status == TINY_STATUS_OK,
                     "import_host() of %" G_GSIZE_FORMAT
                     " bytes %u behind the start of a page: %s: %s",
                     n_bytes, (guint) ((guintptr) memory % PAGE),
                     conf_status_to_string (status), raw->error.text)
         && conf_check (raw->trial, *out != NULL, "import_host() answers OK and NULL");
}

/* @n_bytes, @at alignments behind the start of a page. */
static gboolean
shared_begin (
    Shared *self, ConfTrial *trial, const ConfSubject *subject, guint64 at, gsize n_bytes)
{
  *self = (Shared){ 0 };
  if (!conf_raw_begin (&self->raw, trial, subject))
    return FALSE;
  const gsize alignment = MAX (MAX (self->raw.info->alignment, self->raw.unit), 8);
  self->n_bytes = conf_raw_round (&self->raw, n_bytes);
  self->n_room = self->n_bytes + 2 * ZONE + (gsize) at * alignment;
  self->room = g_malloc (self->n_room + PAGE);
  guint8 *first = self->room + (PAGE - (guintptr) self->room % PAGE) % PAGE;
  self->memory = first + ZONE + at * alignment;
  conf_fill (self->memory - ZONE, ZONE, 8);
  conf_fill (self->memory, self->n_bytes, 1);
  conf_fill (self->memory + self->n_bytes, ZONE, 9);
  return import (&self->raw, self->memory, self->n_bytes, &self->buffer);
}

static void
shared_end (Shared *self)
{
  conf_raw_free (&self->raw, self->buffer);
  conf_raw_end (&self->raw);
  g_free (self->room);
}

static gboolean
shared_check_zones (Shared *self)
{
  return conf_check_fill (self->raw.trial, self->memory - ZONE, ZONE, 8, 0,
                          "host memory before what was imported")
         && conf_check_fill (self->raw.trial, self->memory + self->n_bytes, ZONE, 9, 0,
                             "host memory behind what was imported");
}

static gboolean
synchronise (Shared *self, guint32 direction)
{
  const TinySpan span = { self->buffer, 0, self->n_bytes };
  if ((self->raw.info->flags & TINY_DEVICE_NON_COHERENT) == 0)
    return TRUE;
  return conf_check (
      self->raw.trial,
      self->raw.table->sync (self->raw.device, &span, direction, &self->raw.error)
          == TINY_STATUS_OK,
      "sync(): %s", self->raw.error.text);
}

/* ---- commands ---- */
/* The device reads at once what the host writes, and the other way round. */
static gboolean
check_transfers (Shared *self, TinyPluginBuffer *own)
{
  ConfRaw *raw = &self->raw;
  const gsize n = self->n_bytes, part = n / 3 / raw->unit * raw->unit, rest = n - 2 * part;
  g_autofree guint8 *data = g_malloc (n);
  if (!conf_raw_download (raw, self->buffer, 0, data, n)
      || !conf_check_fill (raw->trial, data, n, 1, 0, "a download of imported memory"))
    return FALSE;
  conf_fill (data, part, 2);
  if (!conf_raw_upload (raw, self->buffer, part, data, part)
      || !synchronise (self, TINY_SYNC_TO_HOST)
      || !conf_check_fill (raw->trial, self->memory, part, 1, 0, "before an upload to a part")
      || !conf_check_fill (raw->trial, self->memory + part, part, 2, 0, "an upload to a part")
      || !conf_check_fill (raw->trial, self->memory + 2 * part, rest, 1, 2 * part,
                           "behind an upload to a part"))
    return FALSE;
  conf_fill (self->memory + 2 * part, rest, 3);
  if (!synchronise (self, TINY_SYNC_TO_DEVICE)
      || !conf_raw_copy (raw, own, 0, self->buffer, 2 * part, rest)
      || !conf_raw_download (raw, own, 0, data, rest)
      || !conf_check_fill (raw->trial, data, rest, 3, 0, "a copy of what the host wrote"))
    return FALSE;
  return conf_raw_copy (raw, self->buffer, 0, own, 0, part)
         && synchronise (self, TINY_SYNC_TO_HOST)
         && conf_check_fill (raw->trial, self->memory, part, 3, 0, "a copy to imported memory");
}

/* args: alignments behind the start of a page, bytes. */
static void
run_transfers (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  Shared it;
  if (shared_begin (&it, trial, subject, (guint64) self->args[0], (gsize) self->args[1])) {
    TinyPluginBuffer *own = conf_raw_alloc (&it.raw, it.n_bytes);
    if (own != NULL && check_transfers (&it, own) && shared_check_zones (&it)) {
      g_autofree guint8 *before = g_memdup2 (it.memory, it.n_bytes);
      conf_raw_free (&it.raw, g_steal_pointer (&it.buffer));
      conf_check (trial, memcmp (before, it.memory, it.n_bytes) == 0,
                  "free() changes memory that was imported");
      shared_check_zones (&it);
    }
    conf_raw_free (&it.raw, own);
  }
  shared_end (&it);
}

/* ---- launches ---- */
/* Twice, on numbers that the host writes where the first launch's were. args: as above. */
static void
run_launches (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  gsize offsets[TINY_OPERATION_MAX_OPERANDS], size = 0;
  g_auto (ConfStep) step = { 0 };
  Shared it;
  if (!conf_step_init (&step, trial, subject))
    return;
  for (guint i = 0; i < step.n_buffers; i++) {
    offsets[i] = size += TINY_SPAN_ALIGNMENT;
    size += step.n_bytes[i];
    size = (size + TINY_SPAN_ALIGNMENT - 1) / TINY_SPAN_ALIGNMENT * TINY_SPAN_ALIGNMENT;
  }
  if (shared_begin (&it, trial, subject, (guint64) self->args[0],
                    MAX (size, (gsize) self->args[1]))) {
    TinyPluginProgram *program = conf_step_build (&step, &it.raw);
    TinySpan spans[TINY_OPERATION_MAX_OPERANDS];
    for (guint64 salt = 1; salt < 3 && program != NULL && !conf_has_failed (trial); salt++) {
      for (guint i = 0; i < step.n_buffers; i++) {
        /* Those that are read lie at the end. */
        const gsize shift = i > 0 ? it.n_bytes - size : 0;
        spans[i] = (TinySpan){ it.buffer,
                               offsets[i] + shift / TINY_SPAN_ALIGNMENT * TINY_SPAN_ALIGNMENT,
                               step.n_bytes[i] };
        conf_step_fill (&step, i, salt, it.memory + spans[i].offset);
      }
      const TinyCommand command = conf_step_dispatch (&step, program, spans);
      if (synchronise (&it, TINY_SYNC_TO_DEVICE)
          && conf_raw_submit (&it.raw, &command, 1, "a dispatch on imported memory")
          && synchronise (&it, TINY_SYNC_TO_HOST))
        conf_step_check (&step, trial, it.memory + spans[0].offset, salt,
                         "a launch on imported memory");
    }
    conf_raw_unload (&it.raw, program);
    if (!conf_has_failed (trial))
      shared_check_zones (&it);
  }
  shared_end (&it);
}

/* ---- many ---- */
/* Two at once, and the same memory again after it was freed. */
static void
run_again (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { N = 20000, TIMES = 4 };
  Shared one, two;
  g_autofree guint8 *data = g_malloc (N + 64);
  gboolean good = shared_begin (&one, trial, subject, 0, N);
  if (shared_begin (&two, trial, subject, 1, N) && good)
    for (guint i = 0; i < TIMES && !conf_has_failed (trial); i++) {
      conf_fill (data, one.n_bytes, 20 + i);
      if (conf_raw_upload (&one.raw, one.buffer, 0, data, one.n_bytes)
          && synchronise (&one, TINY_SYNC_TO_HOST)) {
        conf_check_fill (trial, one.memory, one.n_bytes, 20 + i, 0, "the first of two imports");
        conf_check_fill (trial, two.memory, two.n_bytes, 1, 0, "the second of two imports");
      }
      conf_raw_free (&one.raw, g_steal_pointer (&one.buffer));
      if (!conf_has_failed (trial))
        import (&one.raw, one.memory, one.n_bytes, &one.buffer);
    }
  shared_end (&two);
  shared_end (&one);
}

static gboolean
import_once (ConfTrial *trial, gpointer data)
{
  Shared *self = data;
  TinyPluginBuffer *buffer = NULL;
  const gboolean good = import (&self->raw, self->memory, self->n_bytes, &buffer);
  conf_raw_free (&self->raw, buffer);
  return good;
}

static void
run_growth (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { N = 4096, TIMES = 2000 };
  Shared it;
  if (shared_begin (&it, trial, subject, 0, N)) {
    conf_raw_free (&it.raw, g_steal_pointer (&it.buffer));
    conf_check_growth (trial, TIMES, LEAK_BYTES, import_once, &it);
  }
  shared_end (&it);
}

void
conf_list_import (const ConfSubject *subject, ConfList *out)
{
  static const struct {
    const char *name;
    guint at;
    gsize n_bytes;
  } places[] = { { "page", 0, PAGE },
                 { "pages", 0, 5 * PAGE },
                 { "part", 1, 20001 },
                 { "large", 3, (1 << 20) + 12345 } };
  const TinyDeviceTable *table = tiny_device_get_table (subject->device);
  const ConfCase again = { .run = run_again }, growth = { .run = run_growth };
  if (table->import_host == NULL
      || (tiny_device_get_info (subject->device)->flags & TINY_DEVICE_HOST_MEMORY) == 0) {
    conf_list_absent (out, "the device has no import_host()", "import");
    return;
  }
  for (guint i = 0; i < G_N_ELEMENTS (places); i++) {
    const ConfCase transfers
        = { .run = run_transfers, .args = { places[i].at, (gint64) places[i].n_bytes } };
    const ConfCase launches
        = { .run = run_launches, .args = { places[i].at, (gint64) places[i].n_bytes } };
    conf_list_add (out, &transfers, "import/transfers-%s", places[i].name);
    conf_list_add (out, &launches, "import/launches-%s", places[i].name);
  }
  conf_list_add (out, &again, "import/again");
  conf_list_add (out, &growth, "import/growth");
}
