/* SPDX-License-Identifier: MIT
 *
 * pebble.c: the driver. The chip runs one kernel at a time, so one thread gives it the commands of all queues in the order
 * in which they were submitted; a queue is a timeline of its own over it. That thread also does what the chip lacks: copies,
 * word by word, and times, by the host's clock. */
#include "pebble.h"

#include <pthread.h>
#include <signal.h>

enum { TEXT = 128 };

struct TinyPluginBuffer {
  uint32_t address, n_bytes;     /* whole lines */
  struct TinyPluginBuffer *next; /* the next higher one */
};

struct TinyPluginProgram {
  uint32_t n_steps;
  Step steps[];
};

/* A submission, with all that is needed of it once submit() has returned. */
typedef struct Job {
  struct Job *next;
  TinyPluginQueue *queue;
  uint64_t point, *out_ns;
  TinyCommand *commands;
  TinySpan *spans;
  int64_t *variables;
  uint32_t n_commands;
} Job;

struct TinyPluginQueue {
  uint64_t last, reached;
  TinyStatus failure;
  char text[TEXT];
};

struct TinyPluginDevice {
  Chip *chip;
  pthread_t thread;
  pthread_mutex_t lock; /* of all that follows */
  pthread_cond_t changed;
  TinyPluginBuffer *buffers; /* by address */
  Job *first, **end;
  bool is_lost, ends;
};

/* ---- memory ---- */
static TinyStatus
device_alloc (TinyPluginDevice *device,
              uint64_t n_bytes,
              TinyPluginBuffer **out,
              TinyPluginError *error)
{
  const uint64_t size
      = n_bytes == 0 ? CHIP_LINE : (n_bytes + CHIP_LINE - 1) / CHIP_LINE * CHIP_LINE;
  TinyPluginBuffer *buffer
      = size >= n_bytes && size <= chip_get_bytes () ? malloc (sizeof *buffer) : NULL;
  uint32_t address = 0;
  pthread_mutex_lock (&device->lock);
  TinyPluginBuffer **at = &device->buffers;
  while (*at != NULL && (*at)->address - address < size) {
    address = (*at)->address + (*at)->n_bytes;
    at = &(*at)->next;
  }
  const bool fits = buffer != NULL && chip_get_bytes () - address >= size;
  if (fits) {
    *buffer = (TinyPluginBuffer){ .address = address, .n_bytes = (uint32_t) size, .next = *at };
    *at = buffer;
  }
  pthread_mutex_unlock (&device->lock);
  *out = buffer;
  if (fits)
    return TINY_STATUS_OK;
  free (buffer);
  return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "the chip has no %llu bytes free",
                    (unsigned long long) n_bytes);
}

static void
device_free (TinyPluginDevice *device, TinyPluginBuffer *buffer)
{
  pthread_mutex_lock (&device->lock);
  TinyPluginBuffer **at = &device->buffers;
  while (*at != buffer)
    at = &(*at)->next;
  *at = buffer->next;
  pthread_mutex_unlock (&device->lock);
  free (buffer);
}

static TinyStatus
device_map (TinyPluginDevice *device,
            TinyPluginBuffer *buffer,
            void **out,
            TinyPluginError *error)
{
  *out = chip_get_window (device->chip) + buffer->address;
  return TINY_STATUS_OK;
}

/* Past the host's cache. */
static void
read_bytes (Chip *chip, uint32_t address, uint8_t *to, uint64_t n)
{
  for (uint64_t i = 0; i < n; i++) {
    const uint32_t word = chip_peek (chip, (address + (uint32_t) i) & ~3u);
    to[i] = (uint8_t) (word >> (address + i) % 4 * 8);
  }
}

static void
write_bytes (Chip *chip, uint32_t address, const uint8_t *from, uint64_t n)
{
  for (uint64_t i = 0; i < n; i++) {
    const uint32_t at = (address + (uint32_t) i) & ~3u, shift = (address + i) % 4 * 8;
    chip_poke (chip, at,
               (chip_peek (chip, at) & ~(0xffu << shift)) | (uint32_t) from[i] << shift);
  }
}

/* Lines that lie in the span whole go through the cache. The first and the last line may hold bytes of others, which a
 * write-back or an invalidation would lose: of them the span's own bytes are moved past the cache. */
static TinyStatus
device_sync (TinyPluginDevice *device,
             const TinySpan *span,
             uint32_t direction,
             TinyPluginError *error)
{
  Chip *chip = device->chip;
  uint8_t *window = chip_get_window (chip);
  const uint32_t begin = span->buffer->address + (uint32_t) span->offset;
  const uint32_t end = begin + (uint32_t) span->n_bytes;
  uint32_t first = (begin + CHIP_LINE - 1) / CHIP_LINE * CHIP_LINE,
           last = end / CHIP_LINE * CHIP_LINE;
  if (first > last)
    first = last = end;
  if (direction == TINY_SYNC_TO_HOST) {
    read_bytes (chip, begin, window + begin, first - begin);
    chip_invalidate (chip, first, last - first);
    read_bytes (chip, last, window + last, end - last);
  } else {
    write_bytes (chip, begin, window + begin, first - begin);
    chip_write_back (chip, first, last - first);
    write_bytes (chip, last, window + last, end - last);
  }
  return TINY_STATUS_OK;
}

/* ---- programs ---- */
static TinyStatus
program_load (TinyPluginDevice *device,
              const TinyProgramArgs *args,
              TinyPluginProgram **out,
              TinyPluginError *error)
{
  TINY_TRY (TINY_CHECK_IN (args, 0, error));
  Head head = { 0 };
  const void *steps = NULL;
  size_t size = 0;
  TINY_TRY (tiny_check_arch (args->arch, "pebble1", error));
  TINY_TRY (tiny_unpack (args, &head, sizeof head, &steps, &size, error));
  if (size != head.n_steps * sizeof (Step))
    return tiny_fail (error, TINY_STATUS_CORRUPT, "%s: cut off", args->name);
  TinyPluginProgram *program = malloc (sizeof *program + size);
  if (program == NULL)
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "%s: no memory", args->name);
  program->n_steps = head.n_steps;
  memcpy (program->steps, steps, size);
  *out = program;
  return TINY_STATUS_OK;
}

static void
program_unload (TinyPluginDevice *device, TinyPluginProgram *program)
{
  free (program);
}

/* ---- the thread that has the chip ---- */
static uint32_t
place_of (const TinySpan *span)
{
  return span->buffer->address + (uint32_t) span->offset;
}

static ChipState
dispatch (Chip *chip, const TinyCommand *command)
{
  Run run = { .steps = command->program->steps, .n_steps = command->program->n_steps };
  memcpy (run.grid, command->grid, sizeof run.grid);
  for (uint32_t i = 0; i < command->n_buffers; i++) {
    run.addresses[i] = place_of (&command->buffers[i]);
    run.sizes[i] = (uint32_t) command->buffers[i].n_bytes;
  }
  memcpy (run.variables, command->variables, command->n_variables * sizeof *run.variables);
  return chip_run (chip, &run);
}

static ChipState
execute (Chip *chip, const TinyCommand *command)
{
  uint8_t bytes[256];
  switch (command->type) {
  case TINY_COMMAND_UPLOAD:
    write_bytes (chip, place_of (&command->dst), command->host, command->dst.n_bytes);
    break;
  case TINY_COMMAND_DOWNLOAD:
    read_bytes (chip, place_of (&command->src), command->host, command->src.n_bytes);
    break;
  case TINY_COMMAND_COPY:
    for (uint64_t i = 0, n; i < command->dst.n_bytes; i += n) {
      n = command->dst.n_bytes - i < sizeof bytes ? command->dst.n_bytes - i : sizeof bytes;
      read_bytes (chip, place_of (&command->src) + (uint32_t) i, bytes, n);
      write_bytes (chip, place_of (&command->dst) + (uint32_t) i, bytes, n);
    }
    break;
  default:
    return dispatch (chip, command);
  }
  return CHIP_DONE;
}

static ChipState
execute_all (Chip *chip, const Job *job)
{
  ChipState state = CHIP_DONE;
  for (uint32_t i = 0; i < job->n_commands && state == CHIP_DONE; i++) {
    const uint64_t start = job->out_ns != NULL ? tiny_now_ns () : 0;
    state = execute (chip, &job->commands[i]);
    if (job->out_ns != NULL)
      job->out_ns[i] = tiny_now_ns () - start;
  }
  return state;
}

static void
job_free (Job *job)
{
  free (job->commands);
  free (job->spans);
  free (job->variables);
  free (job);
}

/* Under the lock: what became of the first job. */
static void
end_job (TinyPluginDevice *device, ChipState state)
{
  Job *job = device->first;
  TinyPluginQueue *queue = job->queue;
  if (state == CHIP_GONE) {
    device->is_lost = true;
    chip_let_go (device->chip); /* the next open() may come before close() */
  } else if (state == CHIP_FAULT) {
    queue->failure = TINY_STATUS_LAUNCH;
    snprintf (queue->text, sizeof queue->text, "a kernel left its memory");
  } else if (queue->failure == TINY_STATUS_OK && !device->is_lost)
    queue->reached = job->point;
  device->first = job->next;
  if (device->first == NULL)
    device->end = &device->first;
  job_free (job);
  pthread_cond_broadcast (&device->changed);
}

static void *
serve (void *data)
{
  TinyPluginDevice *device = data;
  pthread_mutex_lock (&device->lock);
  for (;;) {
    while (device->first == NULL && !device->ends)
      pthread_cond_wait (&device->changed, &device->lock);
    Job *job = device->first;
    if (job == NULL)
      break;
    ChipState state = CHIP_DONE;
    if (job->queue->failure == TINY_STATUS_OK && !device->is_lost) {
      pthread_mutex_unlock (&device->lock);
      state = execute_all (device->chip, job);
      pthread_mutex_lock (&device->lock);
    }
    end_job (device, state);
  }
  pthread_mutex_unlock (&device->lock);
  return NULL;
}

/* ---- queues ---- */
static TinyStatus
queue_create (TinyPluginDevice *device, TinyPluginQueue **out, TinyPluginError *error)
{
  *out = calloc (1, sizeof **out);
  return *out != NULL ? TINY_STATUS_OK
                      : tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for a queue");
}

/* A broken queue may have jobs that are not to run: they go first. */
static void
queue_destroy (TinyPluginDevice *device, TinyPluginQueue *queue)
{
  pthread_mutex_lock (&device->lock);
  for (;;) {
    const Job *job = device->first;
    while (job != NULL && job->queue != queue)
      job = job->next;
    if (job == NULL)
      break;
    pthread_cond_wait (&device->changed, &device->lock);
  }
  pthread_mutex_unlock (&device->lock);
  free (queue);
}

/* Under the lock: what a queue that goes on no more answers. */
static TinyStatus
check_queue (TinyPluginDevice *device, const TinyPluginQueue *queue, TinyPluginError *error)
{
  if (device->is_lost) {
    tiny_fail (error, TINY_STATUS_DEVICE_LOST, "the chip does not answer");
    return tiny_hint (TINY_STATUS_DEVICE_LOST, error, "switch it off and on");
  }
  return queue->failure == TINY_STATUS_OK
             ? TINY_STATUS_OK
             : tiny_fail (error, queue->failure, "%s", queue->text);
}

static TinyStatus
check_command (const TinyCommand *command, TinyPluginError *error)
{
  TINY_TRY (TINY_CHECK_IN (command, 0, error));
  if (command->type - 1u >= TINY_COMMAND_DISPATCH)
    return tiny_fail (error, TINY_STATUS_UNSUPPORTED, "a command of type %u", command->type);
  if (command->n_buffers > CHIP_BUFFERS || command->n_variables > CHIP_VARIABLES)
    return tiny_fail (error, TINY_STATUS_UNSUPPORTED,
                      "a launch with %u buffers and %u variables", command->n_buffers,
                      command->n_variables);
  return TINY_STATUS_OK;
}

/* Copies a submission, whose commands, spans and variables are the caller's again when submit() returns. */
static TinyStatus
job_new (const TinySubmit *submit, Job **out, TinyPluginError *error)
{
  size_t n_spans = 0, n_variables = 0;
  const char *at = (const char *) submit->commands;
  for (uint32_t i = 0; i < submit->n_commands; i++) {
    const TinyCommand *command = (const TinyCommand *) at;
    TINY_TRY (check_command (command, error));
    n_spans += command->n_buffers;
    n_variables += command->n_variables;
    at += command->struct_size;
  }
  Job *job = calloc (1, sizeof *job);
  if (job == NULL)
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for a submission");
  job->commands = calloc (submit->n_commands + 1u, sizeof *job->commands);
  job->spans = calloc (n_spans + 1, sizeof *job->spans);
  job->variables = calloc (n_variables + 1, sizeof *job->variables);
  if (job->commands == NULL || job->spans == NULL || job->variables == NULL) {
    job_free (job);
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for a submission");
  }
  job->n_commands = submit->n_commands;
  job->out_ns = submit->out_ns;
  at = (const char *) submit->commands;
  n_spans = n_variables = 0;
  for (uint32_t i = 0; i < submit->n_commands; i++) {
    TinyCommand *own = &job->commands[i];
    *own = *(const TinyCommand *) at;
    at += own->struct_size; /* a newer core's may be longer */
    if (own->n_buffers > 0)
      memcpy (&job->spans[n_spans], own->buffers, own->n_buffers * sizeof *own->buffers);
    if (own->n_variables > 0)
      memcpy (&job->variables[n_variables], own->variables,
              own->n_variables * sizeof *own->variables);
    own->buffers = &job->spans[n_spans];
    own->variables = &job->variables[n_variables];
    n_spans += own->n_buffers;
    n_variables += own->n_variables;
  }
  *out = job;
  return TINY_STATUS_OK;
}

static TinyStatus
device_submit (TinyPluginDevice *device,
               TinyPluginQueue *queue,
               const TinySubmit *submit,
               TinyPluginError *error)
{
  TINY_TRY (TINY_CHECK_IN (submit, 0, error));
  Job *job = NULL;
  TINY_TRY (job_new (submit, &job, error));
  pthread_mutex_lock (&device->lock);
  const TinyStatus status = check_queue (device, queue, error);
  if (status == TINY_STATUS_OK) {
    job->queue = queue;
    job->point = *submit->out_point = ++queue->last;
    *device->end = job;
    device->end = &job->next;
    pthread_cond_broadcast (&device->changed);
  } else
    job_free (job);
  pthread_mutex_unlock (&device->lock);
  return status;
}

static TinyStatus
device_wait (TinyPluginDevice *device,
             TinyPluginQueue *queue,
             uint64_t point,
             uint64_t timeout_ns,
             TinyPluginError *error)
{
  const uint64_t now = tiny_now_ns (),
                 end = timeout_ns < UINT64_MAX - now ? now + timeout_ns : UINT64_MAX;
  const struct timespec until = { (time_t) (end / 1000000000u), (long) (end % 1000000000u) };
  TinyStatus status = TINY_STATUS_OK;
  int code = 0;
  pthread_mutex_lock (&device->lock);
  while (queue->reached < point
         && (status = check_queue (device, queue, error)) == TINY_STATUS_OK && code == 0)
    code = end == UINT64_MAX ? pthread_cond_wait (&device->changed, &device->lock)
                             : pthread_cond_timedwait (&device->changed, &device->lock, &until);
  if (queue->reached >= point)
    status = TINY_STATUS_OK;
  else if (status == TINY_STATUS_OK)
    status = tiny_fail (error, TINY_STATUS_TIMEOUT, "not done in time");
  pthread_mutex_unlock (&device->lock);
  return status;
}

static TinyStatus
device_reached (TinyPluginDevice *device,
                TinyPluginQueue *queue,
                uint64_t *out_point,
                TinyPluginError *error)
{
  pthread_mutex_lock (&device->lock);
  *out_point = queue->reached;
  const TinyStatus status = check_queue (device, queue, error);
  pthread_mutex_unlock (&device->lock);
  return status;
}

/* ---- the device ---- */
static TinyStatus
device_info (TinyPluginDevice *device, TinyDeviceInfo *out, TinyPluginError *error)
{
  TINY_TRY (TINY_CHECK_OUT (out, error));
  TINY_FILL (out, .flags = TINY_DEVICE_HOST_MEMORY | TINY_DEVICE_NON_COHERENT, .name = "Pebble",
             .arch = "pebble1", .memory_bytes = chip_get_bytes (),
             .max_buffer_bytes = chip_get_bytes () / 2, .alignment = CHIP_LINE);
  return TINY_STATUS_OK;
}

static void
device_close (TinyPluginDevice *device)
{
  pthread_mutex_lock (&device->lock);
  device->ends = true;
  pthread_cond_broadcast (&device->changed);
  pthread_mutex_unlock (&device->lock);
  pthread_join (device->thread, NULL);
  pthread_mutex_destroy (&device->lock);
  pthread_cond_destroy (&device->changed);
  chip_close (device->chip);
  free (device);
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
                                     .id = "pebble",
                                     .name = "Pebble",
                                     .device_class = TINY_CLASS_SIMULATOR };

static TinyStatus
scan (TinyCandidate *out, uint32_t *n, TinyPluginError *error)
{
  return tiny_scan_copy (&found, 1, sizeof found, out, n);
}

/* Signals are the program's affair. */
static bool
start_thread (TinyPluginDevice *device)
{
  sigset_t all, before;
  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &before);
  const int code = pthread_create (&device->thread, NULL, serve, device);
  pthread_sigmask (SIG_SETMASK, &before, NULL);
  return code == 0;
}

static TinyStatus
open_device (const char *id,
             TinyPluginDevice **out,
             const TinyDeviceTable **out_table,
             TinyPluginError *error)
{
  TINY_TRY (tiny_check_id (&found, 1, sizeof found, id, error));
  Chip *chip = chip_open ();
  if (chip == NULL) {
    tiny_fail (error, TINY_STATUS_BUSY,
               "the chip is in use by another program, or opened twice by this one");
    return tiny_hint (TINY_STATUS_BUSY, error,
                      "end the other program; fuser /tmp/chip.lock names it");
  }
  TinyPluginDevice *device = calloc (1, sizeof *device);
  pthread_condattr_t clock;
  if (device != NULL) {
    device->chip = chip;
    device->end = &device->first;
    pthread_mutex_init (&device->lock, NULL);
    pthread_condattr_init (&clock);
    pthread_condattr_setclock (&clock, CLOCK_MONOTONIC);
    pthread_cond_init (&device->changed, &clock);
    pthread_condattr_destroy (&clock);
  }
  if (device == NULL || !start_thread (device)) {
    chip_close (chip);
    free (device);
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for a device");
  }
  *out = device;
  *out_table = &device_table;
  return TINY_STATUS_OK;
}

static const TinyRenderer renderer = { .struct_size = sizeof renderer,
                                       .name = "PEBBLE",
                                       .code_version = "1",
                                       .target = pebble_target,
                                       .compile = pebble_compile };
TINY_KIT_MODULE (host,
                 .name = "PEBBLE",
                 .vendor = "example",
                 .version = "1.0",
                 .license = "MIT",
                 .n_renderers = 1,
                 .renderers = &renderer,
                 .scan = scan,
                 .open = open_device)
