/* SPDX-License-Identifier: MIT
 *
 * cl-device.c: the device table: memory, queues, submission.
 *
 * A span that begins inside its buffer is given to a kernel as a sub-buffer: an offset as an argument
 * would cost every kernel an addition and every launch an argument, and nothing would check that a
 * kernel stays inside. Where host and device share memory at a fine grain, buffers lie in that, and map()
 * is free. Commands that may overlap all wait for the events of those before them. */
#include "cl.h"

struct TinyPluginBuffer {
  cl_mem memory;
  void *host; /* or NULL */
  uint64_t n_bytes;
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
  const cl_bitfield flags = CL_MEM_READ_WRITE | (shares ? CL_MEM_USE_HOST_PTR : 0);
  const size_t size = n_bytes > 0 ? n_bytes : 1;
  cl_int code = CL_MEM_OBJECT_ALLOCATION_FAILURE;
  ClBuffer *buffer = calloc (1, sizeof *buffer);
  if (buffer == NULL)
    return TINY_STATUS_OUT_OF_MEMORY;
  buffer->n_bytes = n_bytes;
  if (shares)
    buffer->host
        = cl.SVMAlloc (device->context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, size,
                       device->info.alignment);
  if (!shares || buffer->host != NULL)
    buffer->memory = cl.CreateBuffer (device->context, flags, size, buffer->host, &code);
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
  return *out != NULL ? TINY_STATUS_OK : TINY_STATUS_UNSUPPORTED;
}

static TinyStatus
device_import (
    ClDevice *device, void *handle, ClBuffer **out, uint64_t *out_n_bytes, ClError *error)
{
  cl_context context = NULL;
  size_t size = 0;
  cl_int code = cl.GetMemObjectInfo (handle, CL_MEM_CONTEXT, sizeof context, &context, NULL);
  if (code == CL_SUCCESS && context != device->context)
    code = CL_INVALID_CONTEXT;
  if (code == CL_SUCCESS)
    code = cl.GetMemObjectInfo (handle, CL_MEM_SIZE, sizeof size, &size, NULL);
  *out = code == CL_SUCCESS ? calloc (1, sizeof **out) : NULL;
  if (*out != NULL) {
    **out = (ClBuffer){ .memory = handle, .n_bytes = *out_n_bytes = size };
    cl.RetainMemObject (handle);
  } else if (code == CL_SUCCESS)
    code = CL_OUT_OF_HOST_MEMORY;
  return cl_check (error, TINY_STATUS_INVALID, code, "importing a cl_mem");
}

static TinyStatus
device_context (ClDevice *device, void **out, ClError *error)
{
  *out = device->context;
  return TINY_STATUS_OK;
}

/* ---- queues ---- */
static TinyStatus
queue_create (ClDevice *device, ClQueue **out, ClError *error)
{
  const cl_bitfield wanted = CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
  cl_bitfield has = 0;
  cl_int code;
  cl.GetDeviceInfo (device->device, CL_DEVICE_QUEUE_PROPERTIES, sizeof has, &has, NULL);
  *out = (ClQueue *) cl.CreateCommandQueue (device->context, device->device, has & wanted,
                                            &code);
  return cl_check (error, TINY_STATUS_DRIVER, code, "making a queue");
}

static void
queue_destroy (ClDevice *device, ClQueue *queue)
{
  cl.ReleaseCommandQueue ((cl_command_queue) queue);
}

/* ---- submission ---- */
typedef struct {
  ClDevice *device;
  cl_command_queue queue;
  cl_event *events;       /* of all commands */
  uint32_t n;             /* commands so far */
  uint32_t before, group; /* where those that may overlap begin, and those that they wait for */
} Run;

/* Sub-buffers are kept by the command once it is enqueued. */
static cl_int
dispatch (Run *run, const TinyCommand *command, uint32_t n_after, const cl_event *after)
{
  const ClProgram *program = command->program;
  const uint32_t n = command->n_buffers;
  cl_mem parts[CL_MAX_PARAMS] = { NULL };
  size_t global[3];
  cl_int code = CL_SUCCESS;
  for (int axis = 0; axis < 3; axis++)
    global[axis] = command->grid[axis] * program->group[axis];
  pthread_mutex_lock (&run->device->lock);
  for (uint32_t i = 0; i < n && code == CL_SUCCESS; i++) {
    const TinySpan *span = &command->buffers[i];
    const cl_buffer_region region = { span->offset, span->n_bytes };
    cl_mem memory = span->buffer->memory;
    if (span->offset != 0 && span->n_bytes != 0)
      memory = parts[i] = cl.CreateSubBuffer (memory, CL_MEM_READ_WRITE,
                                              CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    if (code == CL_SUCCESS)
      code = cl.SetKernelArg (program->kernel, i, sizeof memory, &memory);
  }
  for (uint32_t i = 0; i < command->n_variables && code == CL_SUCCESS; i++)
    code = cl.SetKernelArg (program->kernel, n + i, program->head.variable_bytes,
                            &command->variables[i]); /* low bytes first */
  if (code == CL_SUCCESS)
    code = cl.EnqueueNDRangeKernel (run->queue, program->kernel, 3, NULL, global,
                                    program->head.has_free_groups ? NULL : program->group,
                                    n_after, after, &run->events[run->n]);
  pthread_mutex_unlock (&run->device->lock);
  for (uint32_t i = 0; i < n; i++)
    if (parts[i] != NULL)
      cl.ReleaseMemObject (parts[i]);
  return code;
}

static TinyStatus
enqueue (Run *run, const TinyCommand *command, ClError *error)
{
  const TinySpan *dst = &command->dst, *src = &command->src;
  const uint32_t type = command->type, n_after = run->group - run->before;
  const size_t n_bytes = type == TINY_COMMAND_DOWNLOAD ? src->n_bytes : dst->n_bytes;
  const cl_event *after = n_after > 0 ? run->events + run->before : NULL;
  cl_event *event = &run->events[run->n];
  cl_int code;
  if (type < TINY_COMMAND_UPLOAD || type > TINY_COMMAND_DISPATCH)
    return tiny_fail (error, TINY_STATUS_UNSUPPORTED, "a command of unknown type %u", type);
  if (type == TINY_COMMAND_DISPATCH)
    code = dispatch (run, command, n_after, after);
  else if (n_bytes == 0)
    code = cl.EnqueueBarrierWithWaitList (run->queue, n_after, after, event);
  else if (type == TINY_COMMAND_UPLOAD)
    code = cl.EnqueueWriteBuffer (run->queue, dst->buffer->memory, CL_FALSE, dst->offset,
                                  n_bytes, command->host, n_after, after, event);
  else if (type == TINY_COMMAND_DOWNLOAD)
    code = cl.EnqueueReadBuffer (run->queue, src->buffer->memory, CL_FALSE, src->offset,
                                 n_bytes, command->host, n_after, after, event);
  else
    code = cl.EnqueueCopyBuffer (run->queue, src->buffer->memory, dst->buffer->memory,
                                 src->offset, dst->offset, n_bytes, n_after, after, event);
  return cl_check (error, TINY_STATUS_LAUNCH, code,
                   type == TINY_COMMAND_DISPATCH ? "launching a kernel" : "copying");
}

static TinyStatus
enqueue_all (Run *run, const TinySubmit *submit, ClError *error)
{
  const char *at = (const char *) submit->commands;
  for (; run->n < submit->n_commands; run->n++) {
    const TinyCommand *command = (const TinyCommand *) at;
    TINY_TRY (TINY_CHECK_IN (command, TINY_COMMAND_OVERLAPS, error));
    if ((command->flags & TINY_COMMAND_OVERLAPS) == 0) {
      run->before = run->group;
      run->group = run->n;
    }
    TINY_TRY (enqueue (run, command, error));
    at += command->struct_size; /* a newer core's commands are longer */
  }
  /* a kernel that began was right: the device failed */
  return run->n == 0
             ? TINY_STATUS_OK
             : cl_check (error, TINY_STATUS_DEVICE_LOST, cl.WaitForEvents (run->n, run->events),
                         "waiting for the device");
}

static TinyStatus
device_submit (ClDevice *device, ClQueue *queue, const TinySubmit *submit, ClError *error)
{
  Run run = { .device = device, .queue = (cl_command_queue) queue };
  TINY_TRY (TINY_CHECK_IN (submit, 0, error));
  run.events = malloc ((submit->n_commands + 1) * sizeof *run.events);
  if (run.events == NULL)
    return TINY_STATUS_OUT_OF_MEMORY;
  TinyStatus status = enqueue_all (&run, submit, error);
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
  free (run.events);
  return status;
}

/* ---- the rest ---- */
static TinyStatus
device_info (ClDevice *device, TinyDeviceInfo *out, ClError *error)
{
  TINY_TRY (TINY_CHECK_OUT (out, error));
  tiny_fill_struct (out, &device->info, sizeof *out);
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
