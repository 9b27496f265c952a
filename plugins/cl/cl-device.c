/* SPDX-License-Identifier: MIT
 *
 * cl-device.c: the device table: memory, queues, submission.
 *
 * A span that begins inside its buffer is given to a kernel as a sub-buffer: an offset as an argument
 * would cost every kernel an addition and every launch an argument, and nothing would check that a
 * kernel stays inside. Where host and device share memory at a fine grain, buffers lie in that, and map()
 * is free. Commands of a submit may overlap: each waits for the events of those before it that wrote
 * what it touches, and one that writes what others read, for all before it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cl.h"

struct TinyPluginBuffer {
  ClDevice *device;
  cl_mem memory;
  void *host; /* or NULL */
  uint64_t n_bytes;
  uint64_t submit;         /* in which the next two mean something */
  uint32_t writer, reader; /* 1 + the last command that wrote it, that read it */
};

struct TinyPluginQueue {
  cl_command_queue queue;
  bool keeps_time; /* which costs some: not before it is asked for */
};

/* ---- memory ---- */
static void
device_free (ClDevice *device, ClBuffer *buffer)
{
  if (buffer->memory != NULL)
    cl.ReleaseMemObject (buffer->memory);
  if (buffer->host != NULL)
    cl.SVMFree (device->context, buffer->host);
  free (buffer);
}

static TinyStatus
device_alloc (ClDevice *device, uint64_t n_bytes, ClBuffer **out, ClError *error)
{
  const bool shares = (device->info.flags & TINY_DEVICE_HOST_MEMORY) != 0;
  const size_t size = n_bytes > 0 ? n_bytes : 1;
  if (n_bytes > device->info.max_buffer_bytes)
    return cl_fail (error, TINY_STATUS_OUT_OF_MEMORY,
                    "a buffer of %" PRIu64 " bytes; the device's largest has %" PRIu64, n_bytes,
                    device->info.max_buffer_bytes);
  ClBuffer *buffer = calloc (1, sizeof *buffer);
  if (buffer == NULL)
    return cl_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for a buffer");
  *buffer = (ClBuffer){ .device = device, .n_bytes = n_bytes };
  cl_int code = CL_MEM_OBJECT_ALLOCATION_FAILURE;
  if (shares)
    buffer->host
        = cl.SVMAlloc (device->context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, size,
                       device->info.alignment);
  if (!shares || buffer->host != NULL)
    buffer->memory = cl.CreateBuffer (device->context,
                                      CL_MEM_READ_WRITE | (shares ? CL_MEM_USE_HOST_PTR : 0),
                                      size, buffer->host, &code);
  if (code == CL_SUCCESS)
    *out = buffer;
  else
    device_free (device, buffer);
  return cl_check (error, TINY_STATUS_OUT_OF_MEMORY, code, "making a buffer");
}

static TinyStatus
device_map (ClDevice *device, ClBuffer *buffer, void **out, ClError *error)
{
  *out = buffer->host;
  return *out != NULL
             ? TINY_STATUS_OK
             : cl_fail (error, TINY_STATUS_UNSUPPORTED, "the host cannot reach the memory");
}

static TinyStatus
device_import (
    ClDevice *device, void *handle, ClBuffer **out, uint64_t *out_n_bytes, ClError *error)
{
  cl_context context = NULL;
  size_t size = 0;
  cl_int code = cl.GetMemObjectInfo (handle, CL_MEM_CONTEXT, sizeof context, &context, NULL);
  if (code == CL_SUCCESS && context == device->context)
    code = cl.GetMemObjectInfo (handle, CL_MEM_SIZE, sizeof size, &size, NULL);
  else if (code == CL_SUCCESS)
    code = CL_INVALID_CONTEXT;
  CL_TRY (cl_check (error, TINY_STATUS_INVALID, code, "importing a cl_mem"));
  *out = calloc (1, sizeof **out);
  if (*out == NULL)
    return cl_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for a buffer");
  **out = (ClBuffer){ .device = device, .memory = handle, .n_bytes = *out_n_bytes = size };
  return cl_check (error, TINY_STATUS_INVALID, cl.RetainMemObject (handle),
                   "importing a cl_mem");
}

static TinyStatus
device_context (ClDevice *device, void **out, ClError *error)
{
  *out = device->context;
  return TINY_STATUS_OK;
}

/* ---- queues ---- */
static TinyStatus
renew_queue (ClDevice *device, ClQueue *self, bool keeps_time, ClError *error)
{
  cl_int code;
  cl_command_queue queue = cl.CreateCommandQueue (
      device->context, device->device,
      (keeps_time ? CL_QUEUE_PROFILING_ENABLE : 0)
          | (device->is_out_of_order ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0),
      &code);
  CL_TRY (cl_check (error, TINY_STATUS_DRIVER, code, "making a queue"));
  if (self->queue != NULL)
    cl.ReleaseCommandQueue (self->queue);
  *self = (ClQueue){ queue, keeps_time };
  return TINY_STATUS_OK;
}

static TinyStatus
queue_create (ClDevice *device, ClQueue **out, ClError *error)
{
  *out = calloc (1, sizeof **out);
  TinyStatus status = *out != NULL ? renew_queue (device, *out, false, error)
                                   : cl_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory");
  if (status != TINY_STATUS_OK)
    free (*out);
  return status;
}

static void
queue_destroy (ClDevice *device, ClQueue *self)
{
  cl.ReleaseCommandQueue (self->queue);
  free (self);
}

/* ---- submission ---- */
typedef struct {
  ClDevice *device;
  cl_command_queue queue;
  cl_event *events;   /* of all commands */
  uint32_t n;         /* commands so far */
  uint32_t n_settled; /* those that everything from here on comes after */
  cl_event after[CL_MAX_PARAMS];
  uint32_t n_after;
  bool waits_for_all;
} Run;

/* Checks a span and notes what the command has to wait for. */
static TinyStatus
use_span (Run *run, const TinySpan *span, bool writes, ClError *error)
{
  ClBuffer *buffer = span->buffer;
  if (buffer == NULL || buffer->device != run->device || span->offset > buffer->n_bytes
      || span->n_bytes > buffer->n_bytes - span->offset)
    return cl_fail (error, TINY_STATUS_INVALID, "a span that is outside its buffer");
  if (buffer->submit != run->device->n_submits)
    buffer->writer = buffer->reader = 0;
  buffer->submit = run->device->n_submits;
  run->waits_for_all |= writes && buffer->reader > run->n_settled && buffer->reader <= run->n;
  if (buffer->writer > run->n_settled && buffer->writer <= run->n)
    run->after[run->n_after++] = run->events[buffer->writer - 1];
  *(writes ? &buffer->writer : &buffer->reader) = run->n + 1;
  return TINY_STATUS_OK;
}

/* The events to wait for; NULL when there are none. */
static const cl_event *
get_after (Run *run, cl_int *out_code)
{
  *out_code = CL_SUCCESS;
  if (run->waits_for_all && run->n > run->n_settled) {
    *out_code = cl.EnqueueBarrierWithWaitList (run->queue, 0, NULL, NULL);
    run->n_settled = run->n;
    run->n_after = 0;
  }
  return run->n_after > 0 ? run->after : NULL;
}

static TinyStatus
run_dispatch (Run *run, const TinyCommand *command, ClError *error)
{
  const ClProgram *program = command->program;
  cl_mem memory, parts[CL_MAX_PARAMS] = { NULL };
  size_t global[3], local[3];
  cl_int code;
  if (program == NULL || program->device != run->device
      || command->n_buffers != program->blob.n_params
      || command->n_variables != program->blob.n_variables)
    return cl_fail (error, TINY_STATUS_INVALID,
                    "dispatch: no program of this device, or not its arguments");
  for (uint32_t i = 0; i < command->n_buffers; i++)
    CL_TRY (use_span (run, &command->buffers[i], program->blob.writes[i], error));
  const cl_event *after = get_after (run, &code);
  for (uint32_t i = 0; i < command->n_buffers && code == CL_SUCCESS; i++) {
    const TinySpan *span = &command->buffers[i];
    const cl_buffer_region region = { span->offset, span->n_bytes };
    memory = span->buffer->memory;
    if (span->offset != 0 && span->n_bytes != 0)
      memory = parts[i] = cl.CreateSubBuffer (memory, CL_MEM_READ_WRITE,
                                              CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    code = code == CL_SUCCESS ? cl.SetKernelArg (program->kernel, i, sizeof memory, &memory)
                              : code;
  }
  for (uint32_t i = 0; i < command->n_variables && code == CL_SUCCESS; i++)
    code = cl.SetKernelArg (program->kernel, command->n_buffers + i,
                            program->blob.variable_bytes,
                            &command->variables[i]); /* low bytes first */
  for (int axis = 0; axis < 3; axis++) {
    local[axis] = program->blob.group[axis];
    global[axis] = (size_t) command->grid[axis] * local[axis];
  }
  if (code == CL_SUCCESS)
    code = cl.EnqueueNDRangeKernel (run->queue, program->kernel, 3, NULL, global,
                                    program->blob.has_free_groups ? NULL : local, run->n_after,
                                    after, &run->events[run->n]);
  for (uint32_t i = 0; i < command->n_buffers; i++)
    if (parts[i] != NULL) /* the command keeps what it uses */
      cl.ReleaseMemObject (parts[i]);
  return cl_check (error, TINY_STATUS_LAUNCH, code, "launching a kernel");
}

static TinyStatus
run_copy (Run *run, const TinyCommand *command, ClError *error)
{
  const TinySpan *dst = &command->dst, *src = &command->src;
  const bool writes = command->type != TINY_COMMAND_DOWNLOAD;
  const bool reads = command->type != TINY_COMMAND_UPLOAD;
  const uint64_t n_bytes = writes ? dst->n_bytes : src->n_bytes;
  cl_event *event = &run->events[run->n];
  cl_int code;
  if (reads)
    CL_TRY (use_span (run, src, false, error));
  if (writes)
    CL_TRY (use_span (run, dst, true, error));
  if (writes && reads ? src->n_bytes != n_bytes : command->host == NULL && n_bytes > 0)
    return cl_fail (error, TINY_STATUS_INVALID, "copy of spans that do not fit");
  run->waits_for_all |= n_bytes == 0 || !(writes && reads); /* host memory may be shared */
  const cl_event *after = get_after (run, &code);
  if (code == CL_SUCCESS && n_bytes == 0)
    code = cl.EnqueueBarrierWithWaitList (run->queue, 0, NULL, event);
  else if (code == CL_SUCCESS && !reads)
    code = cl.EnqueueWriteBuffer (run->queue, dst->buffer->memory, CL_FALSE, dst->offset,
                                  n_bytes, command->host, run->n_after, after, event);
  else if (code == CL_SUCCESS && !writes)
    code = cl.EnqueueReadBuffer (run->queue, src->buffer->memory, CL_FALSE, src->offset,
                                 n_bytes, command->host, run->n_after, after, event);
  else if (code == CL_SUCCESS)
    code = cl.EnqueueCopyBuffer (run->queue, src->buffer->memory, dst->buffer->memory,
                                 src->offset, dst->offset, n_bytes, run->n_after, after, event);
  return cl_check (error, TINY_STATUS_LAUNCH, code, "copying");
}

static TinyStatus
enqueue (Run *run, const TinySubmit *submit, ClError *error)
{
  const char *at = (const char *) submit->commands;
  for (; run->n < submit->n_commands; run->n++) {
    const TinyCommand *command = (const TinyCommand *) at;
    if (command->struct_size < sizeof *command || command->type < TINY_COMMAND_UPLOAD
        || command->type > TINY_COMMAND_DISPATCH)
      return cl_fail (error, TINY_STATUS_INVALID, "command %u: too short, or of no known type",
                      run->n);
    run->n_after = 0;
    run->waits_for_all = false;
    CL_TRY (command->type == TINY_COMMAND_DISPATCH ? run_dispatch (run, command, error)
                                                   : run_copy (run, command, error));
    at += command->struct_size; /* a newer core's commands are longer */
  }
  return TINY_STATUS_OK;
}

static TinyStatus
device_submit (ClDevice *device, ClQueue *queue, const TinySubmit *submit, ClError *error)
{
  cl_event few[16];
  if (submit->out_ns != NULL && !queue->keeps_time)
    CL_TRY (renew_queue (device, queue, true, error));
  Run run = { .device = device, .queue = queue->queue, .events = few };
  if (submit->n_commands > CL_ARRAY_SIZE (few))
    run.events = malloc (submit->n_commands * sizeof *run.events);
  if (run.events == NULL)
    return cl_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory to submit");
  pthread_mutex_lock (&device->lock);
  device->n_submits++;
  TinyStatus status = enqueue (&run, submit, error);
  pthread_mutex_unlock (&device->lock);
  if (status == TINY_STATUS_OK
      && run.n > 0) /* a kernel that began was right: the device failed */
    status = cl_check (error, TINY_STATUS_DEVICE_LOST, cl.WaitForEvents (run.n, run.events),
                       "waiting for the device");
  if (status != TINY_STATUS_OK)
    cl.Finish (run.queue); /* what was enqueued before uses the caller's memory */
  for (uint32_t i = 0; i < run.n; i++) {
    cl_ulong start = 0, end = 0;
    if (submit->out_ns != NULL) {
      cl.GetEventProfilingInfo (run.events[i], CL_PROFILING_COMMAND_START, 8, &start, NULL);
      cl.GetEventProfilingInfo (run.events[i], CL_PROFILING_COMMAND_END, 8, &end, NULL);
      submit->out_ns[i] = end > start ? end - start : 0;
    }
    cl.ReleaseEvent (run.events[i]);
  }
  if (run.events != few)
    free (run.events);
  return status;
}

/* ---- the rest ---- */
static TinyStatus
device_info (ClDevice *device, TinyDeviceInfo *out, ClError *error)
{
  *out = device->info;
  return TINY_STATUS_OK;
}

static void
device_close (ClDevice *device)
{
}

const TinyDeviceTable cl_device_table = {
  .struct_size = sizeof (TinyDeviceTable),
  .close = device_close,
  .info = device_info,
  .alloc = device_alloc,
  .free = device_free,
  .queue_create = queue_create,
  .queue_destroy = queue_destroy,
  .submit = device_submit,
  .program_load = cl_program_load,
  .program_unload = cl_program_unload,
  .map = device_map,
  .import = device_import,
  .context = device_context,
};
