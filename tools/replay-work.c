/* SPDX-License-Identifier: MIT
 *
 * replay-work.c: the submissions of a record, waiting for them, and what they bring to the host.
 *
 * Nothing of the record is believed: what a command names is there, and within its buffer, before it is submitted. */
#include <string.h>

#include "tools/replay-private.h"

void
replay_free_submitted (gpointer data)
{
  Submitted *submitted = data;
  for (guint i = 0; i < submitted->n; i++)
    g_free (submitted->host[i]);
  g_free (submitted->host);
  g_free (submitted->source);
  g_free (submitted);
}

/* ---- queues ---- */
gboolean
replay_step_queue (const Step *step)
{
  Player *player = replay_find_player (step);
  TinyPluginError error;
  TinyPluginQueue *handle = NULL;
  TinyStatus status = TINY_STATUS_OK;
  if (player == NULL)
    return FALSE;
  tiny_plugin_error_init (&error);
  if (player->device->table.queue_create != NULL)
    status = player->device->table.queue_create (player->device->handle, &handle, &error);
  if (status >= 0) {
    Queue *queue = g_new0 (Queue, 1);
    queue->player = player;
    queue->handle = handle;
    queue->points = g_array_new (FALSE, FALSE, sizeof (Point));
    replay_keep (step->self->queues, step->frame->call, queue);
  }
  return replay_compare_status (step, status, &error);
}

static TinyStatus
wait_for_point (Queue *queue, guint64 point, TinyPluginError *error)
{
  const TinyDevice *device = queue->player->device;
  if (point == 0 || device->table.wait == NULL)
    return TINY_STATUS_OK;
  return device->table.wait (device->handle, queue->handle, point, UINT64_MAX, error);
}

void
replay_wait_for_all (ReplayPlayer *self)
{
  GHashTableIter iter;
  gpointer data;
  TinyPluginError ignored;
  tiny_plugin_error_init (&ignored);
  g_hash_table_iter_init (&iter, self->queues);
  while (g_hash_table_iter_next (&iter, NULL, &data)) {
    Queue *queue = data;
    if (queue->points->len > 0)
      wait_for_point (queue, g_array_index (queue->points, Point, queue->points->len - 1).point,
                      &ignored);
  }
}

/* Waits for what was done when the program had waited, or seen, that @recorded was. */
gboolean
replay_step_wait (const Step *step, guint64 recorded)
{
  Queue *queue = replay_look_up (step->self->queues, step->frame->fields[1].number);
  TinyPluginError error;
  TinyStatus status = TINY_STATUS_OK;
  if (queue == NULL)
    return replay_fail (step, "there is no such queue");
  tiny_plugin_error_init (&error);
  guint64 point = 0;
  for (guint i = 0; i < queue->points->len; i++)
    if (g_array_index (queue->points, Point, i).recorded <= recorded)
      point = g_array_index (queue->points, Point, i).point;
  TinyRecordFrame result;
  const gboolean has_timed_out
      = tiny_record_get_result (step->self->options->record, step->frame->call, &result)
        && (gint64) result.fields[0].number == TINY_STATUS_TIMEOUT;
  if (has_timed_out)
    return TRUE;
  status = wait_for_point (queue, point, &error);
  return replay_compare_status (step, status, &error);
}

/* ---- submissions ---- */
static gboolean
find_span (const Step *step, const Player *player, const TinyRecordSpan *span, TinySpan *out)
{
  Buffer *buffer = replay_look_up (step->self->buffers, span->buffer);
  *out = (TinySpan){ NULL, span->offset, span->n_bytes };
  if (buffer == NULL || buffer->player != player)
    return replay_fail (step, "there is no such buffer on this device");
  const guint64 n_bytes = replay_round_up (player, buffer->n_bytes);
  if (span->offset > n_bytes || span->n_bytes > n_bytes - span->offset)
    return replay_fail (step, "a span is not within its buffer");
  out->buffer = buffer->handle;
  return TRUE;
}

static void
note_writer (Buffer *buffer, guint32 dtype, const char *writer)
{
  buffer->dtype = dtype;
  g_free (buffer->writer);
  buffer->writer = g_strdup (writer);
}

static gboolean
make_dispatch (const Step *step,
               const Player *player,
               const TinyRecordCommand *from,
               TinyCommand *out,
               TinySpan *spans)
{
  const Program *program = replay_look_up (step->self->programs, from->program);
  if (program == NULL || program->player != player)
    return replay_fail (step, "there is no such program on this device");
  if (from->n_buffers != program->n_params || from->n_variables != program->n_variables)
    return replay_fail (step, "a dispatch has not the parameters of its program");
  for (guint i = 0; i < from->n_buffers; i++)
    if (!find_span (step, player, &from->buffers[i], &spans[i]))
      return FALSE;
  for (guint i = 0; i < from->n_buffers; i++) {
    const guint32 *dtypes = program->code != NULL ? program->code->dtypes : NULL;
    if (dtypes == NULL || dtypes[i] != TINY_DTYPE_VOID)
      note_writer (replay_look_up (step->self->buffers, from->buffers[i].buffer),
                   dtypes != NULL ? dtypes[i] : TINY_DTYPE_VOID, program->name);
  }
  out->program = program->handle;
  out->buffers = spans;
  out->n_buffers = from->n_buffers;
  out->variables = from->variables;
  out->n_variables = from->n_variables;
  const gboolean is_own = program->code != NULL && program->code->has_grid;
  memcpy (out->grid, is_own ? program->code->grid : from->grid, sizeof out->grid);
  return TRUE;
}

/* Of a copy that moves @n_bytes: what devices with another unit are to move. */
static gboolean
make_copy (const Step *step,
           const Player *player,
           const TinyRecordCommand *from,
           TinyCommand *out,
           guint8 **out_host)
{
  GHashTable *buffers = step->self->buffers;
  g_autoptr (GBytes) data = NULL;
  if (from->type != TINY_COMMAND_DOWNLOAD && !find_span (step, player, &from->dst, &out->dst))
    return FALSE;
  if (from->type != TINY_COMMAND_UPLOAD && !find_span (step, player, &from->src, &out->src))
    return FALSE;
  const guint64 n = from->type == TINY_COMMAND_DOWNLOAD ? from->src.n_bytes : from->dst.n_bytes;
  if (from->type == TINY_COMMAND_COPY) {
    const Buffer *source = replay_look_up (buffers, from->src.buffer);
    if (from->src.n_bytes != n)
      return replay_fail (step, "a copy has two sizes");
    if (source != replay_look_up (buffers, from->dst.buffer))
      note_writer (replay_look_up (buffers, from->dst.buffer), source->dtype, source->writer);
    return TRUE;
  }
  const gsize padded = replay_round_up (player, n);
  *out_host = g_try_malloc0 (padded + 1);
  if (*out_host == NULL)
    return replay_fail (step, "there is no memory for what it moves");
  out->host = *out_host;
  if (from->type == TINY_COMMAND_DOWNLOAD) {
    out->src.n_bytes = padded;
    return TRUE;
  }
  if (!tiny_record_get_data (step->self->options->record, from->data, &data, step->error))
    return FALSE;
  if ((data != NULL ? g_bytes_get_size (data) : 0) != n)
    return replay_fail (step, "an upload has other data than it says");
  if (n > 0)
    memcpy (*out_host, g_bytes_get_data (data, NULL), n);
  out->dst.n_bytes = padded;
  note_writer (replay_look_up (buffers, from->dst.buffer), TINY_DTYPE_VOID, NULL);
  return TRUE;
}

/* One command after the other, each waited for and, if it runs a kernel, looked at. */
static gboolean
submit_singly (const Step *step,
               Player *player,
               Queue *queue,
               TinyCommand *commands,
               TinyStatus *out_status,
               TinyPluginError *error)
{
  const TinyDevice *device = player->device;
  TinyRecordField field = step->frame->fields[2];
  TinyRecordCommand from;
  *out_status = TINY_STATUS_OK;
  for (guint i = 0; tiny_record_next_command (&field, &from) && *out_status >= 0; i++) {
    guint64 point = 0;
    commands[i].flags = 0;
    const TinySubmit work = { .struct_size = sizeof work,
                              .commands = &commands[i],
                              .n_commands = 1,
                              .out_point = device->table.wait ? &point : NULL };
    *out_status = device->table.submit (device->handle, queue != NULL ? queue->handle : NULL,
                                        &work, error);
    if (*out_status >= 0 && queue != NULL)
      *out_status = wait_for_point (queue, point, error);
    if (*out_status >= 0 && from.type == TINY_COMMAND_DISPATCH
        && !replay_note_written (step, player, i, &from, &commands[i]))
      return FALSE;
  }
  return TRUE;
}

/* Makes the commands and submits them; the data of what is moved stay in @submitted. */
static gboolean
submit (const Step *step,
        Player *player,
        Queue *queue,
        Submitted *submitted,
        TinyStatus *out_status,
        TinyPluginError *error)
{
  TinyRecordField field = step->frame->fields[2];
  TinyRecordCommand command;
  gsize n = 0, n_spans = 0;
  while (tiny_record_next_command (&field, &command)) {
    n++;
    n_spans += command.n_buffers;
  }
  g_autofree TinyCommand *commands = g_new0 (TinyCommand, n + 1);
  g_autofree TinySpan *spans = g_new0 (TinySpan, n_spans + 1);
  TinySpan *free_spans = spans;
  submitted->n = n;
  submitted->host = g_new0 (guint8 *, n + 1);
  submitted->source = g_new0 (TinyRecordSpan, n + 1);
  field = step->frame->fields[2];
  for (gsize i = 0; tiny_record_next_command (&field, &command); i++) {
    commands[i] = (TinyCommand){ .struct_size = sizeof *commands,
                                 .type = command.type,
                                 .flags = player->is_foreign ? 0 : command.flags };
    if (!(command.type == TINY_COMMAND_DISPATCH
              ? make_dispatch (step, player, &command, &commands[i], free_spans)
              : make_copy (step, player, &command, &commands[i], &submitted->host[i])))
      return FALSE;
    free_spans += command.n_buffers;
    if (command.type != TINY_COMMAND_DOWNLOAD)
      continue;
    submitted->source[i] = command.src;
    submitted->n_downloads++;
  }
  if (step->self->options->written != NULL)
    return submit_singly (step, player, queue, commands, out_status, error);
  const TinyDevice *device = player->device;
  const TinySubmit work = { .struct_size = sizeof work,
                            .commands = commands,
                            .n_commands = (guint32) n,
                            .out_point = device->table.wait ? &submitted->point : NULL };
  *out_status = device->table.submit (device->handle, queue != NULL ? queue->handle : NULL,
                                      &work, error);
  return TRUE;
}

gboolean
replay_step_submit (const Step *step)
{
  Player *player = replay_find_player (step);
  TinyPluginError error;
  TinyStatus status;
  TinyRecordFrame result;
  if (player == NULL)
    return FALSE;
  const guint64 number = step->frame->fields[1].number;
  Queue *queue = replay_look_up (step->self->queues, number);
  if ((number != 0 && (queue == NULL || queue->player != player))
      || (number == 0 && player->device->table.queue_create != NULL && !player->is_foreign))
    return replay_fail (step, "there is no such queue on this device");
  tiny_plugin_error_init (&error);
  Submitted *submitted = g_new0 (Submitted, 1);
  submitted->player = player;
  submitted->queue = number;
  if (!submit (step, player, queue, submitted, &status, &error)) {
    replay_free_submitted (submitted);
    return FALSE;
  }
  replay_keep (step->self->submitted, step->frame->call, submitted);
  const guint64 own_point = submitted->point;
  const gboolean is_done = own_point == 0 && submitted->n_downloads == 0;
  if (is_done) /* what it moved is not needed any more */
    g_hash_table_remove (step->self->submitted, &step->frame->call);
  const gboolean has_result
      = tiny_record_get_result (step->self->options->record, step->frame->call, &result);
  const guint64 recorded = has_result ? result.fields[3].number : 0;
  const Point point = { recorded, own_point };
  if (status >= 0 && queue != NULL)
    g_array_append_val (queue->points, point);
  if (status >= 0 && recorded == 0 && queue != NULL) /* it was done when submit() returned */
    status = wait_for_point (queue, own_point, &error);
  return replay_compare_status (step, status, &error);
}

/* ---- what came back ---- */

static gboolean
compare_download (const Step *step, const Submitted *submitted)
{
  const TinyRecordField *fields = step->frame->fields;
  const guint64 n_bytes = fields[2].number;
  const guint8 *found = submitted->host[fields[1].number];
  const TinyRecordSpan *source = &submitted->source[fields[1].number];
  const Buffer *buffer = replay_look_up (step->self->buffers, source->buffer);
  const guint32 dtype = buffer != NULL ? buffer->dtype : TINY_DTYPE_VOID;
  g_autoptr (GBytes) expected = NULL;
  char digest[33];
  if (n_bytes != source->n_bytes)
    return replay_fail (step, "what came back has another size than was asked for");
  if (!tiny_record_get_data (step->self->options->record, fields[4].number, &expected,
                             step->error))
    return FALSE;
  if (expected != NULL && g_bytes_get_size (expected) != n_bytes)
    return replay_fail (step, "what came back has other data than it says");
  tiny_record_digest (found, n_bytes, digest);
  step->self->n_compared++;
  if (strcmp (digest, fields[3].bytes) == 0)
    return TRUE;
  const double given = step->self->options->tolerance;
  const double tolerance
      = given >= 0 ? given
        : submitted->player->is_foreign || step->self->options->written != NULL
            ? replay_get_tolerance (dtype)
            : 0;
  ReplayDifference *difference = step->difference;
  if (expected == NULL) { /* too large to be kept: only that they differ is known */
    if (tolerance > 0) {
      step->self->n_compared--;
      return TRUE;
    }
    difference->expected = g_strdup (fields[3].bytes);
    difference->found = g_strdup (digest);
  } else if (replay_compare (dtype, tolerance, g_bytes_get_data (expected, NULL), found,
                             n_bytes, difference)) {
    return TRUE;
  }
  difference->kernel = g_strdup (buffer != NULL ? buffer->writer : NULL);
  difference->function = "download";
  return FALSE;
}

gboolean
replay_step_downloaded (const Step *step)
{
  const TinyRecordField *fields = step->frame->fields;
  Submitted *submitted = replay_look_up (step->self->submitted, fields[0].number);
  TinyPluginError error;
  if (submitted == NULL || fields[1].number >= submitted->n
      || submitted->host[fields[1].number] == NULL
      || submitted->source[fields[1].number].buffer == 0)
    return replay_fail (step, "no download of that number was submitted");
  step->difference->call = fields[0].number;
  step->difference->command = (guint) fields[1].number;
  step->difference->buffer = submitted->source[fields[1].number].buffer;
  tiny_plugin_error_init (&error);
  Queue *queue = replay_look_up (step->self->queues, submitted->queue);
  if (queue != NULL && wait_for_point (queue, submitted->point, &error) < 0) {
    step->difference->function = "download";
    step->difference->expected = g_strdup ("ok");
    step->difference->found = g_strdup (error.text);
    return FALSE;
  }
  const gboolean same = compare_download (step, submitted);
  g_clear_pointer (&submitted->host[fields[1].number], g_free);
  if (--submitted->n_downloads == 0)
    g_hash_table_remove (step->self->submitted, &fields[0].number);
  return same;
}
