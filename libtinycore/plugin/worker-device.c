/* SPDX-License-Identifier: MIT
 *
 * worker-device.c: the table of a device that is open in a worker.
 *
 * Where the plugin's device takes memory of others (import_host), buffers are memory that both processes
 * see: map() gives it and copies to and from the host cost what they cost without a worker. On others they are the
 * plugin's own, and what is moved goes through a lane, in pieces. A submission is written into a lane with
 * the worker's addresses in it, so that the worker hands it to the plugin as it lies there. */
#include <string.h>

#include "plugin/tiny-worker.h"

/* Whoever adds a function to the table adds it here, to worker-message.h and to worker-serve.c. */
G_STATIC_ASSERT (G_STRUCT_OFFSET (TinyDeviceTable, reserved)
                 == G_STRUCT_OFFSET (TinyDeviceTable, import_host) + sizeof (void *));
G_STATIC_ASSERT (G_STRUCT_OFFSET (TinySubmit, reserved)
                 == G_STRUCT_OFFSET (TinySubmit, out_point) + sizeof (void *));

enum {
  PIECE_BYTES = 8 << 20, /* of a copy, at most; a multiple of any transfer_bytes */
};

struct TinyPluginDevice {
  TinyWorker *worker;
  TinyWorkerMemory *memory; /* NULL: buffers are the worker's alone */
  guint64 there;
  gsize alignment;
  guint32 has; /* WORKER_HAS_* */
  TinyDeviceTable table;
};

struct TinyPluginBuffer {
  guint64 there;
  TinyWorkerSpan span; /* of shared memory, or empty */
};

static TinyStatus
call (TinyPluginDevice *self,
      WorkerVerb verb,
      guint64 first,
      guint64 second,
      guint64 *out_first,
      TinyPluginError *error)
{
  guint64 numbers[WORKER_NUMBERS] = { self->there, first, second };
  TinyStatus status = tiny_worker_call (self->worker, verb, numbers, error);
  if (out_first != NULL)
    *out_first = status >= 0 ? numbers[0] : 0;
  return status;
}

/* For functions that cannot fail: after the worker's end there is nothing to do. */
static void
call_quietly (TinyPluginDevice *self, WorkerVerb verb, gconstpointer handle)
{
  TinyPluginError ignored;
  tiny_plugin_error_init (&ignored);
  if (!tiny_worker_is_lost (self->worker))
    call (self, verb, GPOINTER_TO_SIZE (handle), 0, NULL, &ignored);
}

/* ---- the device ---- */
static void
device_close (TinyPluginDevice *self)
{
  call_quietly (self, WORKER_CLOSE, NULL);
  g_clear_pointer (&self->memory, tiny_worker_memory_free);
  tiny_worker_set_device (self->worker, FALSE);
  tiny_worker_unref (self->worker);
  g_free (self);
}

static TinyStatus
device_info (TinyPluginDevice *self, TinyDeviceInfo *out, TinyPluginError *error)
{
  TinyStatus status;
  TinyWorkerLane *lane = tiny_worker_begin (self->worker, &status, error);
  if (lane == NULL)
    return status;
  WorkerHead *head = tiny_worker_lane_get_head (lane);
  head->numbers[0] = self->there;
  tiny_worker_lane_copy (lane, out, sizeof *out);
  status = tiny_worker_lane_ask (lane, WORKER_INFO, 0, error);
  if (status >= 0) {
    memcpy (out, worker_data (head), sizeof *out);
    const guint32 kinds = TINY_DEVICE_HOST_MEMORY | TINY_DEVICE_NON_COHERENT;
    const gboolean has_host_memory = (out->flags & kinds) == TINY_DEVICE_HOST_MEMORY;
    if (self->memory == NULL && has_host_memory && (self->has & WORKER_HAS_IMPORT_HOST) != 0)
      self->memory = tiny_worker_memory_new (self->worker);
    if (self->memory == NULL) /* map() cannot reach into the other process */
      out->flags &= ~kinds;
    self->alignment = MAX (out->alignment, 64);
  }
  tiny_worker_end (lane);
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
  TinyStatus status = TINY_STATUS_OK;
  if (self->memory != NULL)
    status = tiny_worker_memory_take (self->memory, n_bytes, self->alignment, &buffer->span,
                                      error);
  if (status >= 0) {
    status = call (self, WORKER_ALLOC, n_bytes, buffer->span.there, &buffer->there, error);
    if (status < 0 && self->memory != NULL)
      tiny_worker_memory_give (self->memory, &buffer->span);
  }
  if (status < 0)
    g_clear_pointer (&buffer, g_free);
  *out = buffer;
  return status;
}

static void
device_free (TinyPluginDevice *self, TinyPluginBuffer *buffer)
{
  call_quietly (self, WORKER_FREE, GSIZE_TO_POINTER (buffer->there));
  if (self->memory != NULL)
    tiny_worker_memory_give (self->memory, &buffer->span);
  g_free (buffer);
}

static TinyStatus
device_map (TinyPluginDevice *self,
            TinyPluginBuffer *buffer,
            void **out,
            TinyPluginError *error)
{
  *out = buffer->span.here;
  return self->memory != NULL ? TINY_STATUS_OK : TINY_STATUS_UNSUPPORTED;
}

/* ---- queues and programs: handles are the worker's ---- */
static TinyStatus
queue_create (TinyPluginDevice *self, TinyPluginQueue **out, TinyPluginError *error)
{
  guint64 there;
  TinyStatus status = call (self, WORKER_QUEUE_CREATE, 0, 0, &there, error);
  *out = GSIZE_TO_POINTER (there);
  return status;
}

static void
queue_destroy (TinyPluginDevice *self, TinyPluginQueue *queue)
{
  call_quietly (self, WORKER_QUEUE_DESTROY, queue);
}

static TinyStatus
place_program (TinyWorkerLane *lane, const TinyProgramArgs *args, TinyPluginError *error)
{
  TinyProgramArgs there = *args;
  const guint64 name = tiny_worker_lane_copy (lane, args->name, strlen (args->name) + 1);
  const guint64 arch = tiny_worker_lane_copy (lane, args->arch, strlen (args->arch) + 1);
  const guint64 data = tiny_worker_lane_copy (lane, args->data, args->size);
  there.name = GSIZE_TO_POINTER (name);
  there.arch = GSIZE_TO_POINTER (arch);
  there.data = GSIZE_TO_POINTER (data);
  const guint64 place = tiny_worker_lane_copy (lane, &there, sizeof there);
  tiny_worker_lane_get_head (lane)->numbers[1] = place;
  return name != 0 && arch != 0 && data != 0 && place != 0 ? TINY_STATUS_OK
                                                           : tiny_worker_too_large (error);
}

static TinyStatus
program_load (TinyPluginDevice *self,
              const TinyProgramArgs *args,
              TinyPluginProgram **out,
              TinyPluginError *error)
{
  TinyStatus status;
  TinyWorkerLane *lane = tiny_worker_begin (self->worker, &status, error);
  if (lane == NULL)
    return status;
  WorkerHead *head = tiny_worker_lane_get_head (lane);
  head->numbers[0] = self->there;
  status = place_program (lane, args, error);
  if (status >= 0)
    status = tiny_worker_lane_ask (lane, WORKER_PROGRAM_LOAD, 0, error);
  if (status >= 0)
    *out = GSIZE_TO_POINTER (head->numbers[0]);
  tiny_worker_end (lane);
  return status;
}

static void
program_unload (TinyPluginDevice *self, TinyPluginProgram *program)
{
  call_quietly (self, WORKER_PROGRAM_UNLOAD, program);
}

/* ---- submissions ---- */
static gboolean
moves (const TinyCommand *command)
{
  return command->type == TINY_COMMAND_UPLOAD || command->type == TINY_COMMAND_DOWNLOAD;
}

static gsize
count_moved (const TinyCommand *command)
{
  return command->type == TINY_COMMAND_UPLOAD ? command->dst.n_bytes : command->src.n_bytes;
}

static gsize
round_up (gsize n_bytes)
{
  return (n_bytes + 63) & ~(gsize) 63;
}

/* The room that a command takes. */
static gsize
measure (const TinyCommand *command)
{
  return sizeof *command + round_up (command->n_buffers * sizeof (TinySpan))
         + round_up (command->n_variables * sizeof (int64_t))
         + (moves (command) ? round_up (count_moved (command)) + 64 : 0);
}

static TinySpan
translate (TinySpan span)
{
  if (span.buffer != NULL)
    span.buffer = GSIZE_TO_POINTER (span.buffer->there);
  return span;
}

/* Programs submit the same again and again. What lies there already is left alone, and so stays in the caches of
 * both processors; fetching a line that the other one has written costs as much as a short kernel. */
static inline void
put (gpointer to, gconstpointer from, gsize n_bytes)
{
  if (memcmp (to, from, n_bytes) != 0)
    memcpy (to, from, n_bytes);
}

/* A command as the worker is to see it; there is room. Of one that moves data, @out_here is where they lie. */
static void
place_command (TinyWorkerLane *lane,
               const TinyCommand *command,
               TinyCommand *out,
               guint8 **out_here)
{
  guint64 there;
  TinyCommand placed = *command;
  placed.dst = translate (command->dst);
  placed.src = translate (command->src);
  if (command->n_buffers > 0) {
    TinySpan *spans
        = tiny_worker_lane_place (lane, command->n_buffers * sizeof *spans, 16, &there);
    for (guint i = 0; i < command->n_buffers; i++) {
      const TinySpan span = translate (command->buffers[i]);
      put (&spans[i], &span, sizeof span);
    }
    placed.buffers = GSIZE_TO_POINTER (there);
  }
  if (command->n_variables > 0) {
    const gsize n_bytes = command->n_variables * sizeof (int64_t);
    put (tiny_worker_lane_place (lane, n_bytes, 16, &there), command->variables, n_bytes);
    placed.variables = GSIZE_TO_POINTER (there);
  }
  if (moves (command)) {
    *out_here = tiny_worker_lane_place (lane, count_moved (command), 64, &there);
    placed.host = GSIZE_TO_POINTER (there);
    if (command->type == TINY_COMMAND_UPLOAD)
      memcpy (*out_here, command->host, command->dst.n_bytes);
  }
  put (out, &placed, sizeof placed);
}

/* Places @n commands. *@out_downloads is where what is downloaded will lie, by command; NULL if nothing is. FALSE: there
 * is no memory. */
static gboolean
place_commands (TinyWorkerLane *lane,
                const TinyCommand *commands,
                guint n,
                TinyCommand *out,
                guint8 ***out_downloads)
{
  for (guint i = 0; i < n; i++) {
    guint8 *here = NULL;
    place_command (lane, &commands[i], &out[i], &here);
    if (commands[i].type != TINY_COMMAND_DOWNLOAD)
      continue;
    if (*out_downloads == NULL && (*out_downloads = g_try_new0 (guint8 *, n)) == NULL)
      return FALSE;
    (*out_downloads)[i] = here;
  }
  return TRUE;
}

static void
fetch (const TinyCommand *commands, guint n, guint8 *const *downloads)
{
  for (guint i = 0; downloads != NULL && i < n; i++)
    if (downloads[i] != NULL)
      memcpy (commands[i].host, downloads[i], commands[i].src.n_bytes);
}

/* A submission on its way, in parts. */
typedef struct {
  TinyPluginDevice *device;
  TinyPluginQueue *queue;
  TinyWorkerLane *lane;
  TinyPluginError *error;
  guint64 point;      /* of its last part; 0: none */
  gboolean is_broken; /* the work of a part failed; its point says so */
} Submission;

static gboolean
any_moves (const TinyCommand *commands, guint n)
{
  for (guint i = 0; i < n; i++)
    if (moves (&commands[i]))
      return TRUE;
  return FALSE;
}

/* Runs @n commands that fit into the lane. What lies in the lane is needed no longer when this returns: the worker
 * waits for what is moved and for times. It waits for all but the last part, too, which is all that the core counts. */
static TinyStatus
submit_some (
    Submission *self, const TinyCommand *commands, guint n, guint64 *out_ns, gboolean is_last)
{
  TinyWorkerLane *lane = self->lane;
  WorkerHead *head = tiny_worker_lane_get_head (lane);
  guint64 submit_there, commands_there, ns_there = 0;
  g_autofree guint8 **downloads = NULL;
  tiny_worker_lane_reset (lane);
  TinySubmit *submit = tiny_worker_lane_place (lane, sizeof *submit, 64, &submit_there);
  TinyCommand *placed = tiny_worker_lane_place (lane, n * sizeof *placed, 64, &commands_there);
  guint64 *ns
      = out_ns == NULL ? NULL : tiny_worker_lane_place (lane, n * sizeof *ns, 64, &ns_there);
  if (!place_commands (lane, commands, n, placed, &downloads)) {
    g_snprintf (self->error->text, sizeof self->error->text, "no memory for %u commands", n);
    return TINY_STATUS_OUT_OF_MEMORY;
  }
  const TinySubmit wanted = { .struct_size = sizeof wanted,
                              .commands = GSIZE_TO_POINTER (commands_there),
                              .n_commands = n,
                              .out_ns = GSIZE_TO_POINTER (ns_there) };
  put (submit, &wanted, sizeof wanted);
  if (ns != NULL)
    memset (ns, 0, n * sizeof *ns);
  head->numbers[0] = self->device->there;
  head->numbers[1] = GPOINTER_TO_SIZE (self->queue);
  head->numbers[2] = submit_there;
  head->numbers[3] = !is_last || ns != NULL || any_moves (commands, n);
  TinyStatus status = tiny_worker_lane_ask (lane, WORKER_SUBMIT, 0, self->error);
  if (status < 0)
    return status;
  self->point = head->numbers[0];
  self->is_broken = head->numbers[1] != 0;
  if (self->is_broken)
    return status;
  fetch (commands, n, downloads);
  if (ns != NULL)
    memcpy (out_ns, ns, n * sizeof *ns);
  return status;
}

/* A copy to or from the host that is too large for one request. */
static TinyStatus
submit_pieces (Submission *self, const TinyCommand *command, guint64 *out_ns)
{
  const gsize n_bytes = count_moved (command);
  TinyStatus status = TINY_STATUS_OK;
  guint64 total_ns = 0;
  for (gsize at = 0; at < n_bytes && status >= 0 && !self->is_broken; at += PIECE_BYTES) {
    TinyCommand piece = *command;
    TinySpan *span = command->type == TINY_COMMAND_UPLOAD ? &piece.dst : &piece.src;
    guint64 ns = 0;
    span->offset += at;
    span->n_bytes = MIN (n_bytes - at, PIECE_BYTES);
    piece.host = (guint8 *) command->host + at;
    status = submit_some (self, &piece, 1, out_ns != NULL ? &ns : NULL, TRUE);
    total_ns += ns;
  }
  if (out_ns != NULL)
    *out_ns = total_ns;
  return status;
}

/* How many of @n commands fit into a lane at once; 0: the first is to go in pieces, or does not. */
static guint
count_fitting (const TinyCommand *commands, guint n)
{
  const gsize room = WORKER_ROOM - 4096;
  gsize used = 0;
  for (guint i = 0; i < n; i++) {
    used += measure (&commands[i]) + sizeof (guint64);
    if (used > room || (moves (&commands[i]) && count_moved (&commands[i]) > PIECE_BYTES))
      return i;
  }
  return n;
}

static TinyStatus
device_submit (TinyPluginDevice *self,
               TinyPluginQueue *queue,
               const TinySubmit *submit,
               TinyPluginError *error)
{
  const TinyCommand *commands = submit->commands;
  const guint n = submit->n_commands;
  TinyStatus status;
  TinyWorkerLane *lane = tiny_worker_begin (self->worker, &status, error);
  if (lane == NULL)
    return status;
  Submission whole = { self, queue, lane, error, 0, FALSE };
  guint first = 0;
  do {
    guint64 *ns = submit->out_ns != NULL ? submit->out_ns + first : NULL;
    guint n_fitting = count_fitting (commands + first, n - first);
    if (n_fitting > 0 || n == 0)
      status = submit_some (&whole, commands + first, n_fitting, ns, first + n_fitting == n);
    else if (moves (&commands[first])) {
      n_fitting = 1;
      status = submit_pieces (&whole, &commands[first], ns);
    } else
      status = tiny_worker_too_large (error);
    first += n_fitting;
  } while (first < n && status >= 0 && !whole.is_broken);
  tiny_worker_end (lane);
  if (status >= 0 && submit->out_point != NULL)
    *submit->out_point = whole.point;
  return status;
}

/* ---- timelines ---- */
static TinyStatus
queue_wait (TinyPluginDevice *self,
            TinyPluginQueue *queue,
            uint64_t point,
            uint64_t timeout_ns,
            TinyPluginError *error)
{
  guint64 numbers[WORKER_NUMBERS]
      = { self->there, GPOINTER_TO_SIZE (queue), point, timeout_ns };
  return tiny_worker_call (self->worker, WORKER_WAIT, numbers, error);
}

static TinyStatus
queue_reached (TinyPluginDevice *self,
               TinyPluginQueue *queue,
               uint64_t *out_point,
               TinyPluginError *error)
{
  guint64 numbers[WORKER_NUMBERS] = { self->there, GPOINTER_TO_SIZE (queue) };
  TinyStatus status = tiny_worker_call (self->worker, WORKER_REACHED, numbers, error);
  *out_point
      = tiny_worker_is_lost (self->worker) ? 0 : numbers[0]; /* of a broken queue as well */
  return status;
}

/* ---- opening ---- */
static TinyStatus
open_there (TinyPluginDevice *self, const char *id, TinyPluginError *error)
{
  TinyStatus status;
  TinyWorkerLane *lane = tiny_worker_begin (self->worker, &status, error);
  if (lane == NULL)
    return status;
  WorkerHead *head = tiny_worker_lane_get_head (lane);
  tiny_worker_lane_copy (lane, id, strlen (id) + 1);
  status = tiny_worker_lane_ask (lane, WORKER_OPEN, 0, error);
  self->there = head->numbers[0];
  self->has = (guint32) head->numbers[1];
  tiny_worker_end (lane);
  return status;
}

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
  .map = device_map,
  .wait = queue_wait,
  .reached = queue_reached,
};

TinyStatus
tiny_worker_open_device (TinyWorker *worker,
                         const char *id,
                         TinyPluginDevice **out,
                         const TinyDeviceTable **out_table,
                         TinyPluginError *error)
{
  TinyPluginDevice *self = g_new0 (TinyPluginDevice, 1);
  self->worker = worker;
  self->alignment = 64;
  self->table = device_table;
  TinyStatus status = open_there (self, id, error);
  if (status < 0) {
    tiny_worker_set_device (worker, FALSE);
    tiny_worker_unref (worker);
    g_free (self);
    return status;
  }
  if ((self->has & WORKER_HAS_QUEUES) == 0) {
    self->table.queue_create = NULL;
    self->table.queue_destroy = NULL;
  }
  if ((self->has & WORKER_HAS_TIMELINE) == 0) {
    self->table.wait = NULL;
    self->table.reached = NULL;
  }
  *out = self;
  *out_table = &self->table;
  return status;
}
