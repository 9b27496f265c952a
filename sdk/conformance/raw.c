/* SPDX-License-Identifier: MIT
 *
 * raw.c: the functions of the opened device, called past the core. */
#include "raw.h"

#include <string.h>

#include "device/device-private.h"

static void
clear_error (ConfRaw *self)
{
  memset (&self->error, 0, sizeof self->error);
  self->error.struct_size = sizeof self->error;
}

const char *
conf_status_to_string (TinyStatus status)
{
  static const char *const names[]
      = { "OK",      "UNSUPPORTED", "INVALID",   "OUT_OF_MEMORY", "BUSY",
          "TIMEOUT", "PERMISSION",  "NO_DEVICE", "DRIVER",        "DEVICE_LOST",
          "COMPILE", "CORRUPT",     "LAUNCH",    "INTERNAL" };
  static _Thread_local char number[32];
  if (status <= 0 && (guint) -status < G_N_ELEMENTS (names))
    return names[-status];
  g_snprintf (number, sizeof number, "status %d", status);
  return number;
}

/* Whether @status is OK; else says so. */
static gboolean
check (ConfRaw *self, TinyStatus status, const char *what)
{
  return conf_check (self->trial, status == TINY_STATUS_OK, "%s: %s: %s", what,
                     conf_status_to_string (status),
                     self->error.text[0] ? self->error.text : "no text");
}

gboolean
conf_raw_begin (ConfRaw *self, ConfTrial *trial, const ConfSubject *subject)
{
  *self = (ConfRaw){ .trial = trial };
  if (!conf_needs (trial, subject->device, "device"))
    return FALSE;
  self->device = subject->device->handle;
  self->table = &subject->device->table;
  self->info = &subject->device->info;
  self->unit = MAX (self->info->transfer_bytes, 1);
  clear_error (self);
  return self->table->queue_create == NULL
         || check (self, self->table->queue_create (self->device, &self->queue, &self->error),
                   "queue_create");
}

void
conf_raw_end (ConfRaw *self)
{
  if (self->table != NULL && self->table->queue_destroy != NULL)
    self->table->queue_destroy (self->device, self->queue);
}

TinyStatus
conf_table_submit (const TinyDeviceTable *table,
                   TinyPluginDevice *device,
                   TinyPluginQueue *queue,
                   TinySubmit *work,
                   TinyPluginError *error)
{
  const gsize of_table = G_STRUCT_OFFSET (TinyDeviceTable, wait) + sizeof table->wait;
  const gsize of_work = G_STRUCT_OFFSET (TinySubmit, out_point) + sizeof work->out_point;
  uint64_t point = 0;
  if (table->struct_size >= of_table && table->wait != NULL && work->struct_size >= of_work)
    work->out_point = &point;
  TinyStatus status = table->submit (device, queue, work, error);
  return status >= 0 && point != 0 ? table->wait (device, queue, point, UINT64_MAX, error)
                                   : status;
}

gboolean
conf_raw_submit (ConfRaw *self, const TinyCommand *commands, guint n, const char *what)
{
  TinySubmit work = { .struct_size = sizeof work, .commands = commands, .n_commands = n };
  clear_error (self);
  return check (self,
                conf_table_submit (self->table, self->device, self->queue, &work, &self->error),
                what);
}

TinyPluginBuffer *
conf_raw_alloc (ConfRaw *self, guint64 n_bytes)
{
  TinyPluginBuffer *buffer = NULL;
  g_autofree char *what = g_strdup_printf ("alloc of %" G_GUINT64_FORMAT " bytes", n_bytes);
  clear_error (self);
  if (!check (self, self->table->alloc (self->device, n_bytes, &buffer, &self->error), what)
      || !conf_check (self->trial, buffer != NULL, "%s: OK, but the buffer is NULL", what))
    return NULL;
  return buffer;
}

TinyPluginBuffer *
conf_raw_try_alloc (ConfRaw *self, guint64 n_bytes)
{
  TinyPluginBuffer *buffer = NULL;
  clear_error (self);
  const TinyStatus status = self->table->alloc (self->device, n_bytes, &buffer, &self->error);
  return status == TINY_STATUS_OK ? buffer : NULL;
}

void
conf_raw_free (ConfRaw *self, TinyPluginBuffer *buffer)
{
  if (buffer != NULL)
    self->table->free (self->device, buffer);
}

gboolean
conf_raw_upload (
    ConfRaw *self, TinyPluginBuffer *to, guint64 offset, const void *data, guint64 n_bytes)
{
  const TinyCommand command = { .struct_size = sizeof command,
                                .type = TINY_COMMAND_UPLOAD,
                                .dst = { to, offset, n_bytes },
                                .host = (void *) data };
  return conf_raw_submit (self, &command, 1, "upload");
}

gboolean
conf_raw_download (
    ConfRaw *self, TinyPluginBuffer *from, guint64 offset, void *data, guint64 n_bytes)
{
  const TinyCommand command = { .struct_size = sizeof command,
                                .type = TINY_COMMAND_DOWNLOAD,
                                .src = { from, offset, n_bytes },
                                .host = data };
  return conf_raw_submit (self, &command, 1, "download");
}

gboolean
conf_raw_copy (ConfRaw *self,
               TinyPluginBuffer *to,
               guint64 to_offset,
               TinyPluginBuffer *from,
               guint64 from_offset,
               guint64 n_bytes)
{
  const TinyCommand command = { .struct_size = sizeof command,
                                .type = TINY_COMMAND_COPY,
                                .dst = { to, to_offset, n_bytes },
                                .src = { from, from_offset, n_bytes } };
  return conf_raw_submit (self, &command, 1, "copy");
}

gboolean
conf_raw_check_failure (ConfRaw *self, TinyStatus status, TinyStatus wanted, const char *what)
{
  gboolean ended = memchr (self->error.text, 0, sizeof self->error.text) != NULL
                   && memchr (self->error.hint, 0, sizeof self->error.hint) != NULL;
  return conf_check (self->trial, status == wanted, "%s: %s, and %s was to be expected", what,
                     conf_status_to_string (status), conf_status_to_string (wanted))
         && conf_check (self->trial, ended, "%s: the error's text or hint has no NUL", what)
         && conf_check (self->trial, self->error.text[0] != 0, "%s: the error has no text",
                        what)
         && conf_check (self->trial, g_utf8_validate (self->error.text, -1, NULL),
                        "%s: the error's text is no UTF-8", what);
}

guint64
conf_raw_round (const ConfRaw *self, guint64 n_bytes)
{
  return (n_bytes + self->unit - 1) / self->unit * self->unit;
}

/* ---- bytes ---- */
static guint8
byte_at (guint64 salt, guint64 i)
{
  guint64 x = (i + 1) * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15)
              ^ (salt * G_GUINT64_CONSTANT (0xbf58476d1ce4e5b9));
  x ^= x >> 29;
  return (guint8) ((x * G_GUINT64_CONSTANT (0x94d049bb133111eb)) >> 56);
}

void
conf_fill (guint8 *data, gsize n_bytes, guint64 salt)
{
  for (gsize i = 0; i < n_bytes; i++)
    data[i] = byte_at (salt, i);
}

gboolean
conf_check_fill (ConfTrial *trial,
                 const guint8 *data,
                 gsize n_bytes,
                 guint64 salt,
                 guint64 first,
                 const char *what)
{
  gsize n_wrong = 0, where = 0;
  for (gsize i = n_bytes; i-- > 0;)
    if (data[i] != byte_at (salt, first + i)) {
      n_wrong++;
      where = i;
    }
  if (n_wrong == 0)
    return TRUE; /* of no bytes there is none to quote */
  return conf_check (trial, FALSE,
                     "%s: %" G_GSIZE_FORMAT " of %" G_GSIZE_FORMAT
                     " bytes are wrong, the first is byte %" G_GSIZE_FORMAT
                     ": 0x%02x, not 0x%02x",
                     what, n_wrong, n_bytes, where, data[where], byte_at (salt, first + where));
}
