/* SPDX-License-Identifier: MIT
 *
 * sample.c: the driver: from the functions of tiny-plugin.h to the rings and the memory of silicon.h.
 *
 * submit() writes all commands to the ring, rings the doorbell with the next fence and returns; the fence is
 * the point on the queue's timeline, for which wait() and reached() ask the ring. Nothing is kept of what the core
 * passed. Memory that the host sees is not coherent: sync() cleans and invalidates. Read from the bottom. */
#include "tiny-sample.h"

#include "silicon.h"

struct TinyPluginProgram {
  SampleHead head;
  uint64_t code;
  uint32_t group[3];
};

struct TinyPluginQueue {
  Ring *ring;
  uint64_t fence; /* of the last submission */
};

/* A Device is the board itself, a Buffer the address of its memory. */
static Board *
board_of (Device *device)
{
  return (Board *) device;
}

static uint64_t
address_of (const Buffer *buffer)
{
  return (uint64_t) (uintptr_t) buffer;
}

/* ---- memory ---- */
static TinyStatus
device_alloc (Device *device, uint64_t n_bytes, Buffer **out, Error *error)
{
  *out = (Buffer *) (uintptr_t) board_alloc (board_of (device), n_bytes);
  return *out != NULL ? TINY_STATUS_OK
                      : tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "the board is full");
}

static void
device_free (Device *device, Buffer *buffer)
{
  board_free (board_of (device), address_of (buffer));
}

static TinyStatus
device_map (Device *device, Buffer *buffer, void **out, Error *error)
{
  *out = board_window (board_of (device), address_of (buffer));
  return *out != NULL ? TINY_STATUS_OK
                      : tiny_fail (error, TINY_STATUS_UNSUPPORTED, "the host does not see it");
}

static TinyStatus
device_sync (Device *device, const TinySpan *span, uint32_t direction, Error *error)
{
  (direction == TINY_SYNC_TO_HOST ? board_invalidate : board_clean) (
      board_of (device), address_of (span->buffer), span->offset, span->n_bytes);
  return TINY_STATUS_OK;
}

/* ---- programs ---- */
static TinyStatus
program_load (Device *device, const TinyProgramArgs *args, Program **out, Error *error)
{
  TINY_TRY (TINY_CHECK_IN (args, 0, error));
  Program *program = malloc (sizeof *program);
  const void *code = NULL;
  size_t size = 0;
  TinyStatus status = tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "%s: no memory", args->name);
  if (program != NULL)
    status = tiny_unpack (args, &program->head, sizeof program->head, &code, &size, error);
  if (status == TINY_STATUS_OK
      && (program->code = board_upload (board_of (device), code, size)) == 0)
    status = tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "%s: the board is full", args->name);
  if (status == TINY_STATUS_OK)
    memcpy (program->group, args->group, sizeof program->group);
  else
    free (program);
  *out = status == TINY_STATUS_OK ? program : NULL;
  return status;
}

static void
program_unload (Device *device, Program *program)
{
  board_free (board_of (device), program->code);
  free (program);
}

/* ---- queues ---- */
static TinyStatus
queue_create (Device *device, Queue **out, Error *error)
{
  Queue *queue = calloc (1, sizeof *queue);
  if (queue == NULL || (queue->ring = board_ring_new (board_of (device))) == NULL) {
    free (queue);
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "the board has no ring left");
  }
  *out = queue;
  return TINY_STATUS_OK;
}

static void
queue_destroy (Device *device, Queue *queue)
{
  board_ring_free (queue->ring);
  free (queue);
}

static uint64_t
place_of (const TinySpan *span)
{
  return address_of (span->buffer) + span->offset;
}

static RingCommand
translate_copy (const TinyCommand *command)
{
  const bool from_host = command->type == TINY_COMMAND_UPLOAD;
  const bool to_host = command->type == TINY_COMMAND_DOWNLOAD;
  const uint64_t memory = (uint64_t) (uintptr_t) command->host;
  return (RingCommand){ .to = to_host ? memory : place_of (&command->dst),
                        .from = from_host ? memory : place_of (&command->src),
                        .n_bytes = to_host ? command->src.n_bytes : command->dst.n_bytes };
}

static RingCommand
translate_dispatch (const TinyCommand *command)
{
  const Program *program = command->program;
  RingCommand out = { .code = program->code,
                      .n_instrs = program->head.n_instrs,
                      .n_stash = program->head.n_stash,
                      .n_buffers = command->n_buffers,
                      .n_variables = command->n_variables,
                      .variables = command->variables };
  memcpy (out.grid, command->grid, sizeof out.grid);
  memcpy (out.group, program->group, sizeof out.group);
  for (uint32_t i = 0; i < command->n_buffers; i++) {
    out.buffers[i] = place_of (&command->buffers[i]);
    out.sizes[i] = command->buffers[i].n_bytes;
  }
  return out;
}

/* What a ring's state is for the core. */
static TinyStatus
answer (const Queue *queue, BoardState state, Error *error)
{
  if (state == BOARD_OK)
    return TINY_STATUS_OK;
  if (state == BOARD_TIMEOUT)
    return tiny_fail (error, TINY_STATUS_TIMEOUT, "not done in time");
  if (state == BOARD_FAULT)
    return tiny_fail (error, TINY_STATUS_LAUNCH, "%s", board_ring_fault (queue->ring));
  tiny_fail (error, TINY_STATUS_DEVICE_LOST, "the board does not answer any more");
  return tiny_hint (TINY_STATUS_DEVICE_LOST, error, "look whether it is still in its slot");
}

static TinyStatus
device_reached (Device *device, Queue *queue, uint64_t *out_point, Error *error)
{
  BoardState state;
  *out_point = board_ring_reached (queue->ring, &state);
  return answer (queue, state, error);
}

static TinyStatus
write_command (Queue *queue, const TinyCommand *command, uint64_t *out_ns, Error *error)
{
  TINY_TRY (TINY_CHECK_IN (command, 0, error));
  if (command->type - 1u >= TINY_COMMAND_DISPATCH)
    return tiny_fail (error, TINY_STATUS_UNSUPPORTED, "a command of type %u", command->type);
  RingCommand own = command->type == TINY_COMMAND_DISPATCH ? translate_dispatch (command)
                                                           : translate_copy (command);
  own.out_ns = out_ns;
  return board_ring_write (queue->ring, &own)
             ? TINY_STATUS_OK
             : tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for a command");
}

static TinyStatus
device_submit (Device *device, Queue *queue, const TinySubmit *submit, Error *error)
{
  TINY_TRY (TINY_CHECK_IN (submit, 0, error));
  const char *at = (const char *) submit->commands;
  uint64_t reached;
  TinyStatus status = device_reached (device, queue, &reached, error);
  for (uint32_t i = 0; i < submit->n_commands && status == TINY_STATUS_OK; i++) {
    const TinyCommand *command = (const TinyCommand *) at;
    status = write_command (queue, command, submit->out_ns ? submit->out_ns + i : NULL, error);
    at += command->struct_size; /* a newer core's may be longer */
  }
  if (status == TINY_STATUS_OK) {
    board_ring_doorbell (queue->ring, ++queue->fence);
    *submit->out_point = queue->fence;
  } else
    board_ring_rewind (queue->ring);
  return status;
}

static TinyStatus
device_wait (Device *device, Queue *queue, uint64_t point, uint64_t timeout_ns, Error *error)
{
  return answer (queue, board_ring_wait (queue->ring, point, timeout_ns), error);
}

/* ---- the device ---- */
static TinyStatus
device_info (Device *device, TinyDeviceInfo *out, Error *error)
{
  TINY_TRY (TINY_CHECK_OUT (out, error));
  const bool has_windows = board_has_windows (board_of (device));
  TINY_FILL (out, .flags = has_windows ? TINY_DEVICE_HOST_MEMORY | TINY_DEVICE_NON_COHERENT : 0,
             .name = "Sample 16, simulated", .arch = "sample16",
             .memory_bytes = board_memory_bytes (board_of (device)),
             .max_buffer_bytes = (uint64_t) INT32_MAX + 1, /* indices have 32 bits */
             .alignment = 64);
  return TINY_STATUS_OK;
}

static void
device_close (Device *device)
{
  board_close (board_of (device));
}

static const TinyDeviceTable device_table = { .struct_size = sizeof device_table,
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
                                              .wait = device_wait,
                                              .reached = device_reached,
                                              .sync = device_sync };

/* ---- the module ---- */
static const TinyCandidate found = { .struct_size = sizeof found,
                                     .id = "sample",
                                     .name = "Sample 16, simulated",
                                     .device_class = TINY_CLASS_SIMULATOR };

static TinyStatus
scan (TinyCandidate *out, uint32_t *n, Error *error)
{
  return tiny_scan_copy (&found, 1, sizeof found, out, n);
}

static TinyStatus
open_device (const char *id, Device **out, const TinyDeviceTable **out_table, Error *error)
{
  TINY_TRY (tiny_check_id (&found, 1, sizeof found, id, error));
  *out = (Device *) board_open ();
  *out_table = &device_table;
  return *out != NULL ? TINY_STATUS_OK
                      : tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "the board has no memory");
}

static const TinyRenderer renderer = { .struct_size = sizeof renderer,
                                       .name = "SAMPLE",
                                       .code_version = "1",
                                       .target = tiny_sample_target,
                                       .compile = tiny_sample_compile };
TINY_KIT_MODULE (host,
                 .name = "SAMPLE",
                 .vendor = "example",
                 .version = "1.0",
                 .license = "MIT",
                 .n_renderers = 1,
                 .renderers = &renderer,
                 .scan = scan,
                 .open = open_device)
