/* SPDX-License-Identifier: MIT
 *
 * record-device.c: the table of a device whose calls are recorded.
 *
 * A call is written before it is made. Things are known in the record by the number of the call that made them, so
 * handles of ours carry it. What a download gave is written when the core learns that it is there: with an asynchronous
 * device when wait() or reached() say so. Functions that give addresses of memory are left out, so
 * that all that goes in and out is seen. */
#include <string.h>

#include "device/tiny-watch.h"
#include "plugin/record-private.h"

/* Whoever adds a function to the table says here what becomes of it. */
G_STATIC_ASSERT (G_STRUCT_OFFSET (TinyDeviceTable, reserved)
                 == G_STRUCT_OFFSET (TinyDeviceTable, import_host) + sizeof (void *));

struct TinyPluginDevice {
  guint64 number;
  TinyPluginDevice *inner;
  TinyDeviceTable calls; /* of inner */
  TinyDeviceTable table; /* ours */
};

struct TinyPluginBuffer {
  guint64 number;
  TinyPluginBuffer *inner;
};

struct TinyPluginProgram {
  guint64 number;
  TinyPluginProgram *inner;
};

struct TinyPluginQueue {
  guint64 number;
  TinyPluginQueue *inner;
  GMutex lock;
  guint64 reached;
  GArray *pending; /* Download, oldest first */
};

/* Something on its way to the host. */
typedef struct {
  guint64 point, submit;
  guint command;
  const void *host;
  guint64 n_bytes;
} Download;

static void
device_close (TinyPluginDevice *self)
{
  record_call (TINY_RECORD_CLOSE, RECORD_NUMBER (self->number));
  self->calls.close (self->inner);
  g_free (self);
}

static TinyStatus
device_info (TinyPluginDevice *self, TinyDeviceInfo *out, TinyPluginError *error)
{
  const guint64 call = record_call (TINY_RECORD_INFO, RECORD_NUMBER (self->number));
  TinyStatus status = self->calls.info (self->inner, out, error);
  record_result (call, status, error, 0, status >= 0 ? record_data (out, sizeof *out) : 0);
  out->flags &= ~(guint32) (TINY_DEVICE_HOST_MEMORY | TINY_DEVICE_NON_COHERENT);
  return status;
}

/* ---- memory ---- */
static TinyStatus
device_alloc (TinyPluginDevice *self,
              uint64_t n_bytes,
              TinyPluginBuffer **out,
              TinyPluginError *error)
{
  TinyPluginBuffer *buffer = g_new0 (TinyPluginBuffer, 1);
  buffer->number
      = record_call (TINY_RECORD_ALLOC, RECORD_NUMBER (self->number), RECORD_NUMBER (n_bytes));
  TinyStatus status = self->calls.alloc (self->inner, n_bytes, &buffer->inner, error);
  record_result (buffer->number, status, error, 0, 0);
  if (status < 0 || buffer->inner == NULL) /* which the core refuses */
    g_clear_pointer (&buffer, g_free);
  *out = buffer;
  return status;
}

static void
device_free (TinyPluginDevice *self, TinyPluginBuffer *buffer)
{
  record_call (TINY_RECORD_FREE, RECORD_NUMBER (self->number), RECORD_NUMBER (buffer->number));
  self->calls.free (self->inner, buffer->inner);
  g_free (buffer);
}

/* ---- programs ---- */
static TinyStatus
program_load (TinyPluginDevice *self,
              const TinyProgramArgs *args,
              TinyPluginProgram **out,
              TinyPluginError *error)
{
  TinyPluginProgram *program = g_new0 (TinyPluginProgram, 1);
  const guint64 binary = record_data (args->data, args->size);
  program->number = record_call (
      TINY_RECORD_PROGRAM_LOAD, RECORD_NUMBER (self->number), RECORD_TEXT (args->name),
      RECORD_TEXT (args->arch), RECORD_NUMBER (binary), RECORD_NUMBER (args->n_params),
      RECORD_NUMBER (args->n_variables), RECORD_NUMBER (args->group[0]),
      RECORD_NUMBER (args->group[1]), RECORD_NUMBER (args->group[2]));
  TinyStatus status = self->calls.program_load (self->inner, args, &program->inner, error);
  record_result (program->number, status, error, 0, 0);
  if (status < 0)
    g_clear_pointer (&program, g_free);
  *out = program;
  return status;
}

static void
program_unload (TinyPluginDevice *self, TinyPluginProgram *program)
{
  record_call (TINY_RECORD_PROGRAM_UNLOAD, RECORD_NUMBER (self->number),
               RECORD_NUMBER (program->number));
  self->calls.program_unload (self->inner, program->inner);
  g_free (program);
}

/* ---- downloads ---- */
static void
write_download (const Download *download)
{
  char digest[33];
  tiny_record_digest (download->host, download->n_bytes, digest);
  const guint64 data = download->n_bytes <= TINY_RECORD_DATA_BYTES
                           ? record_data (download->host, download->n_bytes)
                           : 0;
  record_call (TINY_RECORD_DOWNLOADED, RECORD_NUMBER (download->submit),
               RECORD_NUMBER (download->command), RECORD_NUMBER (download->n_bytes),
               RECORD_TEXT (digest), RECORD_NUMBER (data));
}

/* All up to @point is there. */
static void
queue_note_reached (TinyPluginQueue *self, guint64 point)
{
  guint n = 0;
  g_mutex_lock (&self->lock);
  self->reached = MAX (self->reached, point);
  for (; n < self->pending->len; n++) {
    const Download *download = &g_array_index (self->pending, Download, n);
    if (download->point > self->reached)
      break;
    write_download (download);
  }
  g_array_remove_range (self->pending, 0, n);
  g_mutex_unlock (&self->lock);
}

/* @point: of the submission, 0 where all is done. */
static void
note_downloads (TinyPluginQueue *queue, const TinySubmit *submit, guint64 call, guint64 point)
{
  for (guint i = 0; i < submit->n_commands; i++) {
    const TinyCommand *command = &submit->commands[i];
    const Download download = { point, call, i, command->host, command->src.n_bytes };
    if (command->type != TINY_COMMAND_DOWNLOAD)
      continue;
    if (point == 0) {
      write_download (&download);
      continue;
    }
    g_mutex_lock (&queue->lock);
    g_array_append_val (queue->pending, download);
    g_mutex_unlock (&queue->lock);
  }
  if (queue != NULL) /* another thread may have seen it already */
    queue_note_reached (queue, 0);
}

/* ---- submissions ---- */
static TinySpan
get_inner (TinySpan span)
{
  if (span.buffer != NULL)
    span.buffer = span.buffer->inner;
  return span;
}

static TinyRecordSpan
describe (TinySpan span)
{
  return (TinyRecordSpan){ span.buffer != NULL ? span.buffer->number : 0, span.offset,
                           span.n_bytes };
}

/* The command as the device inside is given it, with @spans for its buffers; its description goes to @record. */
static TinyCommand
translate (const TinyCommand *command, TinySpan *spans, TinyVector *record)
{
  TinyCommand out = *command;
  const gboolean is_dispatch = command->type == TINY_COMMAND_DISPATCH;
  const guint n = is_dispatch ? command->n_buffers : 0;
  g_autofree TinyRecordSpan *described = g_new (TinyRecordSpan, n + 1);
  TinyRecordCommand entry = { .type = (TinyCommandType) command->type,
                              .flags = command->flags,
                              .buffers = described,
                              .n_buffers = n };
  for (guint i = 0; i < n; i++) {
    described[i] = describe (command->buffers[i]);
    spans[i] = get_inner (command->buffers[i]);
  }
  if (is_dispatch) {
    out.buffers = spans;
    out.program = command->program->inner;
    entry.program = command->program->number;
    entry.variables = command->variables;
    entry.n_variables = command->n_variables;
    memcpy (entry.grid, command->grid, sizeof entry.grid);
  } else {
    if (command->type != TINY_COMMAND_DOWNLOAD)
      entry.dst = describe (command->dst);
    if (command->type != TINY_COMMAND_UPLOAD)
      entry.src = describe (command->src);
    if (command->type == TINY_COMMAND_UPLOAD)
      entry.data = record_data (command->host, command->dst.n_bytes);
    out.dst = get_inner (command->dst);
    out.src = get_inner (command->src);
  }
  record_put_command (record, &entry);
  return out;
}

static TinyStatus
device_submit (TinyPluginDevice *self,
               TinyPluginQueue *queue,
               const TinySubmit *submit,
               TinyPluginError *error)
{
  guint n_spans = 0;
  for (guint i = 0; i < submit->n_commands; i++)
    n_spans += submit->commands[i].n_buffers;
  g_autofree TinyCommand *commands = g_try_new (TinyCommand, submit->n_commands + 1);
  g_autofree TinySpan *spans = g_try_new (TinySpan, n_spans + 1);
  g_auto (TinyVector) record = { NULL };
  TinySpan *free_spans = spans;
  if (commands == NULL || spans == NULL) {
    g_snprintf (error->text, sizeof error->text, "no memory to record %u commands",
                submit->n_commands);
    return TINY_STATUS_OUT_OF_MEMORY;
  }
  for (guint i = 0; i < submit->n_commands; i++) {
    commands[i] = translate (&submit->commands[i], free_spans, &record);
    free_spans += submit->commands[i].n_buffers;
  }
  TinySubmit inner = *submit;
  inner.commands = commands;
  record_check_whole (&record);
  const guint64 call
      = record_call (TINY_RECORD_SUBMIT, RECORD_NUMBER (self->number),
                     RECORD_NUMBER (queue != NULL ? queue->number : 0), RECORD_BYTES (&record));
  TinyStatus status
      = self->calls.submit (self->inner, queue != NULL ? queue->inner : NULL, &inner, error);
  const guint64 point = submit->out_point != NULL ? *submit->out_point : 0;
  record_result (call, status, error, point, 0);
  if (status >= 0) {
    if (point == 0 && queue != NULL) /* so is all before it */
      queue_note_reached (queue, G_MAXUINT64);
    note_downloads (queue, submit, call, point);
  }
  return status;
}

/* ---- queues ---- */
static TinyStatus
queue_create (TinyPluginDevice *self, TinyPluginQueue **out, TinyPluginError *error)
{
  TinyPluginQueue *queue = g_new0 (TinyPluginQueue, 1);
  queue->number = record_call (TINY_RECORD_QUEUE_CREATE, RECORD_NUMBER (self->number));
  TinyStatus status = self->calls.queue_create (self->inner, &queue->inner, error);
  record_result (queue->number, status, error, 0, 0);
  if (status >= 0) {
    g_mutex_init (&queue->lock);
    queue->pending = g_array_new (FALSE, FALSE, sizeof (Download));
  } else {
    g_clear_pointer (&queue, g_free);
  }
  *out = queue;
  return status;
}

static void
queue_destroy (TinyPluginDevice *self, TinyPluginQueue *queue)
{
  record_call (TINY_RECORD_QUEUE_DESTROY, RECORD_NUMBER (self->number),
               RECORD_NUMBER (queue->number));
  self->calls.queue_destroy (self->inner, queue->inner);
  g_array_unref (queue->pending);
  g_mutex_clear (&queue->lock);
  g_free (queue);
}

static TinyStatus
queue_wait (TinyPluginDevice *self,
            TinyPluginQueue *queue,
            uint64_t point,
            uint64_t timeout_ns,
            TinyPluginError *error)
{
  const guint64 call = record_call (TINY_RECORD_WAIT, RECORD_NUMBER (self->number),
                                    RECORD_NUMBER (queue->number), RECORD_NUMBER (point),
                                    RECORD_NUMBER (timeout_ns));
  TinyStatus status = self->calls.wait (self->inner, queue->inner, point, timeout_ns, error);
  record_result (call, status, error, 0, 0);
  if (status >= 0)
    queue_note_reached (queue, point);
  return status;
}

/* Asked often; only what is new is written. */
static TinyStatus
queue_reached (TinyPluginDevice *self,
               TinyPluginQueue *queue,
               uint64_t *out_point,
               TinyPluginError *error)
{
  TinyStatus status = self->calls.reached (self->inner, queue->inner, out_point, error);
  g_mutex_lock (&queue->lock);
  const gboolean is_new = status >= 0 && *out_point > queue->reached;
  g_mutex_unlock (&queue->lock);
  if (is_new) {
    const guint64 call = record_call (TINY_RECORD_REACHED, RECORD_NUMBER (self->number),
                                      RECORD_NUMBER (queue->number));
    record_result (call, status, error, *out_point, 0);
    queue_note_reached (queue, *out_point);
  }
  return status;
}

/* ---- the device ---- */
static const TinyDeviceTable device_table = {
  .struct_size = sizeof (TinyDeviceTable),
  .close = device_close,
  .info = device_info,
  .alloc = device_alloc,
  .free = device_free,
  .queue_create = queue_create,
  .queue_destroy = queue_destroy,
  .submit = device_submit,
  .program_load = program_load,
  .program_unload = program_unload,
  .wait = queue_wait,
  .reached = queue_reached,
};

const TinyDeviceTable *
record_device (guint64 number,
               TinyWatch *watch,
               TinyPluginDevice **device,
               const TinyDeviceTable *table)
{
  TinyPluginDevice *self = g_new0 (TinyPluginDevice, 1);
  if (!tiny_device_table_copy (&self->calls, table, "", NULL)) {
    g_free (self);
    return table; /* which the core refuses, with the reason */
  }
  self->number = number;
  self->inner = *device;
  if (watch != NULL)
    tiny_watch_device (watch, &self->inner, &self->calls);
  self->table = device_table;
  if (self->calls.queue_create == NULL) {
    self->table.queue_create = NULL;
    self->table.queue_destroy = NULL;
  }
  if (self->calls.wait == NULL) {
    self->table.wait = NULL;
    self->table.reached = NULL;
  }
  *device = self;
  return &self->table;
}
