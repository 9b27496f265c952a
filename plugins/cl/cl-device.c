/* SPDX-License-Identifier: MIT
 *
 * cl-device.c: the device table: memory, queues, submission.
 *
 * A span is given to a kernel as a sub-buffer, made once for each part and kept with its buffer: an
 * offset as an argument would cost every kernel an addition and every launch an argument, and nothing
 * would check that a kernel stays inside. Where host and device share memory at a fine grain, buffers
 * lie in that, and map() is free. The commands of a submit that have nothing to do with each
 * other may overlap: each waits for the events of those before it that touch what it writes or write what
 * it touches. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cl.h"

enum { MAX_PARTS = 64, WINDOW = 16 }; /* sub-buffers of a buffer; commands that may overlap */

struct TinyPluginDevice {
  ClUnit *unit;
  pthread_mutex_t lock; /* of sub-buffers, and of kernels' arguments until they are enqueued */
};

typedef struct {
  cl_mem memory;
  uint64_t offset, n_bytes;
} Part;

struct TinyPluginBuffer {
  TinyPluginDevice *device;
  cl_mem memory;
  void *host; /* or NULL */
  uint64_t n_bytes;
  Part parts[MAX_PARTS];
  uint32_t n_parts, oldest;
};

struct TinyPluginQueue {
  TinyPluginDevice *device;
  cl_command_queue plain, timed; /* made when first wanted: keeping time costs some */
};

/* ---- opening ---- */
static void
device_close (TinyPluginDevice *device)
{
  pthread_mutex_destroy (&device->lock);
  free (device);
}

static TinyStatus
device_info (TinyPluginDevice *device, TinyDeviceInfo *out, TinyPluginError *error)
{
  const ClUnit *unit = device->unit;
  if (out == NULL || out->struct_size < sizeof *out)
    return cl_fail (error, TINY_STATUS_INVALID, "info: struct_size too small");
  *out = (TinyDeviceInfo){ .struct_size = sizeof *out,
                           .flags = unit->has_host_memory ? TINY_DEVICE_HOST_MEMORY : 0,
                           .memory_bytes = unit->memory_bytes,
                           .max_buffer_bytes = unit->max_buffer_bytes,
                           .alignment = unit->alignment,
                           .n_threads = (uint32_t) unit->arch.threads };
  memcpy (out->name, unit->name, sizeof out->name);
  cl_arch_to_string (&unit->arch, out->arch);
  return TINY_STATUS_OK;
}

/* ---- memory ---- */
static void
device_free (TinyPluginDevice *device, TinyPluginBuffer *buffer)
{
  for (uint32_t i = 0; i < buffer->n_parts; i++)
    cl.ReleaseMemObject (buffer->parts[i].memory);
  if (buffer->memory != NULL)
    cl.ReleaseMemObject (buffer->memory);
  if (buffer->host != NULL)
    cl.SVMFree (device->unit->context, buffer->host);
  free (buffer);
}

static TinyStatus
device_alloc (TinyPluginDevice *device,
              uint64_t n_bytes,
              TinyPluginBuffer **out,
              TinyPluginError *error)
{
  const ClUnit *unit = device->unit;
  if (n_bytes > unit->max_buffer_bytes || n_bytes > SIZE_MAX)
    return cl_fail (error, TINY_STATUS_OUT_OF_MEMORY,
                    "a buffer of %" PRIu64 " bytes, the largest has %" PRIu64, n_bytes,
                    unit->max_buffer_bytes);
  TinyPluginBuffer *buffer = calloc (1, sizeof *buffer);
  if (buffer == NULL)
    return cl_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for a buffer");
  size_t size = n_bytes > 0 ? n_bytes : 1;
  buffer->device = device;
  buffer->n_bytes = n_bytes;
  cl_bitfield flags = CL_MEM_READ_WRITE;
  if (unit->has_host_memory) {
    buffer->host = cl.SVMAlloc (unit->context, flags | CL_MEM_SVM_FINE_GRAIN_BUFFER, size,
                                unit->alignment);
    flags |= CL_MEM_USE_HOST_PTR;
  }
  cl_int code = CL_MEM_OBJECT_ALLOCATION_FAILURE;
  if (buffer->host != NULL || !unit->has_host_memory)
    buffer->memory = cl.CreateBuffer (unit->context, flags, size, buffer->host, &code);
  if (buffer->memory == NULL) {
    device_free (device, buffer);
    return cl_fail_call (error, TINY_STATUS_OUT_OF_MEMORY, code, "making a buffer");
  }
  *out = buffer;
  return TINY_STATUS_OK;
}

static TinyStatus
device_map (TinyPluginDevice *device,
            TinyPluginBuffer *buffer,
            void **out,
            TinyPluginError *error)
{
  if (buffer->host == NULL)
    return cl_fail (error, TINY_STATUS_UNSUPPORTED,
                    "the host cannot reach the device's memory");
  *out = buffer->host;
  return TINY_STATUS_OK;
}

static bool
is_inside (TinyPluginDevice *device, const TinySpan *span)
{
  return span->buffer != NULL && span->buffer->device == device
         && span->offset <= span->buffer->n_bytes
         && span->n_bytes <= span->buffer->n_bytes - span->offset;
}

/* The memory object for @span; under the lock. */
static TinyStatus
get_part (const TinySpan *span, cl_mem *out, TinyPluginError *error)
{
  TinyPluginBuffer *buffer = span->buffer;
  *out = buffer->memory;
  if (span->offset == 0 || span->n_bytes == 0)
    return TINY_STATUS_OK;
  if (span->offset % buffer->device->unit->alignment != 0)
    return cl_fail (error, TINY_STATUS_INVALID,
                    "dispatch: offset %" PRIu64 " is no multiple of %u", span->offset,
                    buffer->device->unit->alignment);
  for (uint32_t i = 0; i < buffer->n_parts; i++)
    if (buffer->parts[i].offset == span->offset && buffer->parts[i].n_bytes == span->n_bytes) {
      *out = buffer->parts[i].memory;
      return TINY_STATUS_OK;
    }
  cl_int code;
  const cl_buffer_region region = { span->offset, span->n_bytes };
  *out = cl.CreateSubBuffer (buffer->memory, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION,
                             &region, &code);
  if (*out == NULL)
    return cl_fail_call (error, TINY_STATUS_OUT_OF_MEMORY, code, "making a sub-buffer");
  uint32_t at = buffer->n_parts < MAX_PARTS ? buffer->n_parts++ : buffer->oldest++ % MAX_PARTS;
  if (buffer->parts[at].memory != NULL) /* what runs keeps its own reference */
    cl.ReleaseMemObject (buffer->parts[at].memory);
  buffer->parts[at] = (Part){ *out, span->offset, span->n_bytes };
  return TINY_STATUS_OK;
}

/* ---- queues ---- */
static TinyStatus
make_queue (TinyPluginDevice *device,
            cl_bitfield properties,
            cl_command_queue *out,
            TinyPluginError *error)
{
  const ClUnit *unit = device->unit;
  cl_int code;
  if (*out != NULL)
    return TINY_STATUS_OK;
  if (unit->is_out_of_order)
    properties |= CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
  *out = cl.CreateCommandQueue (unit->context, unit->device, properties, &code);
  return *out != NULL ? TINY_STATUS_OK
                      : cl_fail_call (error, TINY_STATUS_DRIVER, code, "making a queue");
}

static void
queue_destroy (TinyPluginDevice *device, TinyPluginQueue *queue)
{
  if (queue->plain != NULL)
    cl.ReleaseCommandQueue (queue->plain);
  if (queue->timed != NULL)
    cl.ReleaseCommandQueue (queue->timed);
  free (queue);
}

static TinyStatus
queue_create (TinyPluginDevice *device, TinyPluginQueue **out, TinyPluginError *error)
{
  TinyPluginQueue *queue = calloc (1, sizeof *queue);
  if (queue == NULL)
    return cl_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for a queue");
  queue->device = device;
  TinyStatus status = make_queue (device, 0, &queue->plain, error);
  if (status != TINY_STATUS_OK)
    queue_destroy (device, queue);
  else
    *out = queue;
  return status;
}

/* ---- what waits for what ---- */
static const TinySpan *
get_span (const TinyCommand *command, uint32_t i, bool *out_writes)
{
  if (command->type == TINY_COMMAND_DISPATCH) {
    *out_writes
        = i < command->n_buffers && (command->program->flags[i] & TINY_PARAM_WRITE) != 0;
    return i < command->n_buffers ? &command->buffers[i] : NULL;
  }
  *out_writes = i == 0 && command->type != TINY_COMMAND_DOWNLOAD;
  bool only_src = command->type == TINY_COMMAND_DOWNLOAD;
  uint32_t n = command->type == TINY_COMMAND_COPY ? 2 : 1;
  return i >= n ? NULL : i == 1 || only_src ? &command->src : &command->dst;
}

static bool
overlap (const TinySpan *a, const TinySpan *b)
{
  return a->buffer == b->buffer && a->offset < b->offset + b->n_bytes
         && b->offset < a->offset + a->n_bytes;
}

static bool
depends (const TinyCommand *later, const TinyCommand *earlier)
{
  const TinySpan *a, *b;
  bool a_writes, b_writes;
  if (later->host != NULL && earlier->host != NULL) /* two copies may share host memory */
    return true;
  for (uint32_t i = 0; (a = get_span (later, i, &a_writes)) != NULL; i++)
    for (uint32_t j = 0; (b = get_span (earlier, j, &b_writes)) != NULL; j++)
      if ((a_writes || b_writes) && overlap (a, b))
        return true;
  return false;
}

/* ---- running ---- */
typedef struct {
  TinyPluginDevice *device;
  cl_command_queue queue;
  const TinyCommand *recent[WINDOW]; /* since command first, before which there is a barrier */
  cl_event *events;                  /* of all commands */
  uint32_t first, n;                 /* n: commands so far */
} Run;

static TinyStatus
check_dispatch (TinyPluginDevice *device, const TinyCommand *command, TinyPluginError *error)
{
  const TinyPluginProgram *program = command->program;
  if (program == NULL || program->device != device)
    return cl_fail (error, TINY_STATUS_INVALID, "dispatch: no program, or another device's");
  if (command->n_buffers != program->n_params || command->n_variables != program->n_variables)
    return cl_fail (error, TINY_STATUS_INVALID,
                    "dispatch: %u buffers and %u variables, the program has %u and %u",
                    command->n_buffers, command->n_variables, program->n_params,
                    program->n_variables);
  for (uint32_t i = 0; i < command->n_buffers; i++)
    if (!is_inside (device, &command->buffers[i]))
      return cl_fail (error, TINY_STATUS_INVALID, "dispatch: buffer %u is outside its memory",
                      i);
  return TINY_STATUS_OK;
}

static TinyStatus
set_arguments (const TinyCommand *command, TinyPluginError *error)
{
  const TinyPluginProgram *program = command->program;
  cl_int code = CL_SUCCESS;
  cl_uint n = 0;
  for (uint32_t i = 0; i < command->n_buffers; i++) {
    cl_mem memory;
    TinyStatus status = get_part (&command->buffers[i], &memory, error);
    if (status != TINY_STATUS_OK)
      return status;
    code = code == CL_SUCCESS ? cl.SetKernelArg (program->kernel, n++, sizeof memory, &memory)
                              : code;
  }
  for (uint32_t i = 0; i < command->n_variables; i++) { /* the low half comes first */
    size_t size = program->has_int64 ? 8 : 4;
    code = code == CL_SUCCESS
               ? cl.SetKernelArg (program->kernel, n++, size, &command->variables[i])
               : code;
  }
  return code == CL_SUCCESS
             ? TINY_STATUS_OK
             : cl_fail_call (error, TINY_STATUS_LAUNCH, code, "setting an argument");
}

static TinyStatus
run_dispatch (Run *run,
              const TinyCommand *command,
              uint32_t n,
              const cl_event *after,
              TinyPluginError *error)
{
  const TinyPluginProgram *program = command->program;
  TinyStatus status = check_dispatch (run->device, command, error);
  if (status != TINY_STATUS_OK)
    return status;
  size_t global[3], local[3];
  for (int axis = 0; axis < 3; axis++) {
    local[axis] = program->group[axis];
    global[axis] = (size_t) command->grid[axis] * local[axis];
  }
  pthread_mutex_lock (&run->device->lock);
  status = set_arguments (command, error);
  if (status == TINY_STATUS_OK) {
    cl_int code = cl.EnqueueNDRangeKernel (run->queue, program->kernel, 3, NULL, global,
                                           program->has_free_groups ? NULL : local, n,
                                           n > 0 ? after : NULL, &run->events[run->n]);
    if (code != CL_SUCCESS)
      status = cl_fail_call (error, TINY_STATUS_LAUNCH, code, "launching a kernel");
  }
  pthread_mutex_unlock (&run->device->lock);
  return status;
}

static TinyStatus
run_copy (Run *run,
          const TinyCommand *command,
          uint32_t n,
          const cl_event *after,
          TinyPluginError *error)
{
  const TinySpan *dst = &command->dst, *src = &command->src;
  bool writes = command->type != TINY_COMMAND_DOWNLOAD,
       reads = command->type != TINY_COMMAND_UPLOAD;
  uint64_t n_bytes = writes ? dst->n_bytes : src->n_bytes;
  if ((writes && !is_inside (run->device, dst)) || (reads && !is_inside (run->device, src))
      || (writes && reads && src->n_bytes != n_bytes)
      || (!(writes && reads) && command->host == NULL))
    return cl_fail (error, TINY_STATUS_INVALID, "copy of spans that do not fit");
  cl_event *event = &run->events[run->n];
  after = n > 0 ? after : NULL;
  cl_int code;
  if (n_bytes == 0)
    code = cl.EnqueueBarrierWithWaitList (run->queue, n, after, event);
  else if (!reads)
    code = cl.EnqueueWriteBuffer (run->queue, dst->buffer->memory, CL_FALSE, dst->offset,
                                  n_bytes, command->host, n, after, event);
  else if (!writes)
    code = cl.EnqueueReadBuffer (run->queue, src->buffer->memory, CL_FALSE, src->offset,
                                 n_bytes, command->host, n, after, event);
  else
    code = cl.EnqueueCopyBuffer (run->queue, src->buffer->memory, dst->buffer->memory,
                                 src->offset, dst->offset, n_bytes, n, after, event);
  return code == CL_SUCCESS ? TINY_STATUS_OK
                            : cl_fail_call (error, TINY_STATUS_LAUNCH, code, "copying");
}

static TinyStatus
run_command (Run *run, const TinyCommand *command, TinyPluginError *error)
{
  cl_event after[WINDOW];
  uint32_t n = 0;
  if (command->type == 0 || command->type > TINY_COMMAND_DISPATCH)
    return cl_fail (error, TINY_STATUS_UNSUPPORTED, "no command of type %u", command->type);
  if (run->device->unit->is_out_of_order) {
    if (run->n - run->first == WINDOW) {
      cl_int code = cl.EnqueueBarrierWithWaitList (run->queue, 0, NULL, NULL);
      if (code != CL_SUCCESS)
        return cl_fail_call (error, TINY_STATUS_LAUNCH, code, "ordering commands");
      run->first = run->n;
    }
    for (uint32_t i = run->first; i < run->n; i++)
      if (depends (command, run->recent[i - run->first]))
        after[n++] = run->events[i];
    run->recent[run->n - run->first] = command;
  }
  return command->type == TINY_COMMAND_DISPATCH ? run_dispatch (run, command, n, after, error)
                                                : run_copy (run, command, n, after, error);
}

/* Until all is done; what went wrong on the way shows here. */
static TinyStatus
finish (Run *run, uint64_t *out_ns, TinyPluginError *error)
{
  if (run->n == 0)
    return TINY_STATUS_OK;
  cl_int code = cl.WaitForEvents (run->n, run->events);
  if (code != CL_SUCCESS) {
    cl.Finish (run->queue);
    bool is_lost = code == CL_OUT_OF_RESOURCES || code == CL_INVALID_COMMAND_QUEUE;
    return cl_fail_call (error, is_lost ? TINY_STATUS_DEVICE_LOST : TINY_STATUS_LAUNCH, code,
                         "waiting for the device");
  }
  for (uint32_t i = 0; out_ns != NULL && i < run->n; i++) {
    cl_ulong start = 0, end = 0;
    cl.GetEventProfilingInfo (run->events[i], CL_PROFILING_COMMAND_START, sizeof start, &start,
                              NULL);
    cl.GetEventProfilingInfo (run->events[i], CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
    out_ns[i] = end > start ? end - start : 0;
  }
  return TINY_STATUS_OK;
}

static TinyStatus
device_submit (TinyPluginDevice *device,
               TinyPluginQueue *queue,
               const TinySubmit *submit,
               TinyPluginError *error)
{
  if (submit == NULL || submit->struct_size < sizeof *submit || queue->device != device)
    return cl_fail (error, TINY_STATUS_INVALID, "submit: incomplete arguments");
  cl_command_queue *to = submit->out_ns != NULL ? &queue->timed : &queue->plain;
  TinyStatus status
      = make_queue (device, submit->out_ns != NULL ? CL_QUEUE_PROFILING_ENABLE : 0, to, error);
  if (status != TINY_STATUS_OK)
    return status;
  cl_event few[WINDOW];
  Run run = { .device = device, .queue = *to, .events = few };
  if (submit->n_commands > WINDOW)
    run.events = malloc (submit->n_commands * sizeof *run.events);
  if (run.events == NULL)
    return cl_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory to submit");
  const char *at = (const char *) submit->commands;
  for (uint32_t i = 0; i < submit->n_commands && status == TINY_STATUS_OK; i++) {
    const TinyCommand *command = (const TinyCommand *) at;
    if (command->struct_size < sizeof *command)
      status = cl_fail (error, TINY_STATUS_INVALID, "submit: command %u is too short", i);
    else
      status = run_command (&run, command, error);
    run.n += status == TINY_STATUS_OK;
    at += command->struct_size; /* a newer core's commands are longer */
  }
  if (status == TINY_STATUS_OK)
    status = finish (&run, submit->out_ns, error);
  else
    cl.Finish (run.queue); /* what was enqueued before uses the caller's memory */
  for (uint32_t i = 0; i < run.n; i++)
    cl.ReleaseEvent (run.events[i]);
  if (run.events != few)
    free (run.events);
  return status;
}

/* ---- programs ---- */
static TinyStatus
program_load (TinyPluginDevice *device,
              const TinyProgramArgs *args,
              TinyPluginProgram **out,
              TinyPluginError *error)
{
  TinyStatus status = cl_program_load (device->unit, args, out, error);
  if (status == TINY_STATUS_OK)
    (*out)->device = device;
  return status;
}

static void
program_unload (TinyPluginDevice *device, TinyPluginProgram *program)
{
  cl_program_unload (program);
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
};

TinyStatus
cl_open (const char *id,
         TinyPluginDevice **out,
         const TinyDeviceTable **out_table,
         TinyPluginError *error)
{
  TinyStatus status = cl_find_units (error);
  if (status != TINY_STATUS_OK)
    return status;
  for (uint32_t i = 0; i < cl_count_units (); i++) {
    if (strcmp (cl_get_unit (i)->id, id) != 0)
      continue;
    TinyPluginDevice *device = calloc (1, sizeof *device);
    if (device == NULL)
      return cl_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for the device");
    device->unit = cl_get_unit (i);
    pthread_mutex_init (&device->lock, NULL);
    *out = device;
    *out_table = &device_table;
    return TINY_STATUS_OK;
  }
  return cl_fail (error, TINY_STATUS_NO_DEVICE, "no OpenCL device '%s'", id);
}
