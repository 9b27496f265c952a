/* SPDX-License-Identifier: MIT
 *
 * webgpu-queue.c: commands run.
 *
 * Launches are collected in one encoder and one pass and go off together; a copy ends the pass, an
 * upload or download sends off what came before it. Memory moves in words of 4 bytes: what does not
 * begin or end with one goes by way of the host. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "webgpu.h"

enum {
  MAX_LAUNCHES = 128, /* in one encoder */
  MAX_UNIFORM_BYTES = 1 << 16,
  MAX_STAGING_BYTES = 1 << 24,
  MAX_WRITE_BYTES = 1 << 26,
  MAX_GROUPS = 65535, /* along an axis; a grid goes along x, then y */
};

/* What is under way. */
typedef struct {
  TinyPluginDevice *device;
  WGPUCommandEncoder encoder;
  WGPUComputePassEncoder pass;
  bool is_timed;
  uint32_t n_launches; /* in the encoder */
  uint64_t n_uniform_bytes;
  unsigned char uniforms[MAX_UNIFORM_BYTES];
} Work;

static uint64_t
word_up (uint64_t n)
{
  return (n + 3) & ~UINT64_C (3);
}

/* ---- waiting ---- */
static void
on_done (WGPUQueueWorkDoneStatus status, WGPUStringView message, void *answer, void *unused)
{
  webgpu_answer (answer, status == WGPUQueueWorkDoneStatus_Success, NULL, message);
}

static void
on_mapped (WGPUMapAsyncStatus status, WGPUStringView message, void *answer, void *unused)
{
  webgpu_answer (answer, status == WGPUMapAsyncStatus_Success, NULL, message);
}

static TinyStatus
wait_for (TinyPluginDevice *device,
          WGPUFuture future,
          const WebgpuAnswer *answer,
          TinyPluginError *error)
{
  bool answered = webgpu_wait (device->handle, future, answer);
  if (webgpu_is_lost (device))
    return TINY_STATUS_DEVICE_LOST; /* webgpu_scope_close() says why */
  if (!answered)
    return webgpu_fail (error, TINY_STATUS_TIMEOUT, "the device did not finish in ten minutes");
  if (!answer->is_good)
    return webgpu_fail (error, TINY_STATUS_LAUNCH, "the device did not finish its work: %s",
                        answer->text);
  return TINY_STATUS_OK;
}

static TinyStatus
wait_for_queue (TinyPluginDevice *device, TinyPluginError *error)
{
  WebgpuAnswer answer = { 0 };
  const WGPUQueueWorkDoneCallbackInfo info = WEBGPU_ANSWER_MODE (on_done, &answer);
  return wait_for (device, wgpu.QueueOnSubmittedWorkDone (device->queue, info), &answer, error);
}

/* ---- sending off ---- */
static WGPUCommandEncoder
get_encoder (Work *self)
{
  if (self->encoder == NULL)
    self->encoder = wgpu.DeviceCreateCommandEncoder (self->device->handle, NULL);
  return self->encoder;
}

static void
end_pass (Work *self)
{
  if (self->pass == NULL)
    return;
  wgpu.ComputePassEncoderEnd (self->pass);
  wgpu.ComputePassEncoderRelease (self->pass);
  self->pass = NULL;
}

static void
send (Work *self)
{
  end_pass (self);
  if (self->encoder == NULL)
    return;
  if (self->n_uniform_bytes > 0)
    wgpu.QueueWriteBuffer (self->device->queue, self->device->uniforms, 0, self->uniforms,
                           self->n_uniform_bytes);
  WGPUCommandBuffer commands = wgpu.CommandEncoderFinish (self->encoder, NULL);
  wgpu.CommandEncoderRelease (self->encoder);
  if (commands != NULL) {
    if (!webgpu_is_lost (self->device))
      wgpu.QueueSubmit (self->device->queue, 1, &commands);
    wgpu.CommandBufferRelease (commands);
  }
  self->encoder = NULL;
  self->n_launches = 0;
  self->n_uniform_bytes = 0;
}

/* ---- memory from and to the host ---- */
static TinyStatus
check_span (const TinySpan *span, TinyPluginError *error)
{
  if (span->buffer != NULL && span->offset <= span->buffer->n_bytes
      && span->n_bytes <= span->buffer->n_bytes - span->offset)
    return TINY_STATUS_OK;
  return webgpu_fail (error, TINY_STATUS_INVALID,
                      "bytes %" PRIu64 " to %" PRIu64 " of a buffer that has %" PRIu64,
                      span->offset, span->offset + span->n_bytes,
                      span->buffer ? span->buffer->n_bytes : 0);
}

static TinyStatus
ensure_staging (TinyPluginDevice *device, uint64_t n_bytes, TinyPluginError *error)
{
  if (device->staging_bytes >= n_bytes)
    return TINY_STATUS_OK;
  if (device->staging != NULL)
    wgpu.BufferRelease (device->staging);
  device->staging
      = webgpu_new_buffer (device, n_bytes, WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst);
  device->staging_bytes = device->staging != NULL ? n_bytes : 0;
  return device->staging != NULL
             ? TINY_STATUS_OK
             : webgpu_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory to read back through");
}

/* Whole words from @buffer: what was asked for before is done by then. */
static TinyStatus
read_words (Work *self,
            WGPUBuffer buffer,
            uint64_t offset,
            void *out,
            uint64_t skip,
            uint64_t n_bytes,
            TinyPluginError *error)
{
  TinyPluginDevice *device = self->device;
  uint64_t n_words = word_up (skip + n_bytes);
  TinyStatus status = ensure_staging (device, n_words < 4096 ? 4096 : n_words, error);
  if (status != TINY_STATUS_OK)
    return status;
  end_pass (self);
  wgpu.CommandEncoderCopyBufferToBuffer (get_encoder (self), buffer, offset, device->staging, 0,
                                         n_words);
  send (self);
  WebgpuAnswer answer = { 0 };
  const WGPUBufferMapCallbackInfo info = WEBGPU_ANSWER_MODE (on_mapped, &answer);
  status = wait_for (
      device,
      wgpu.BufferMapAsync (device->staging, WGPUMapMode_Read, 0, (size_t) n_words, info),
      &answer, error);
  if (status != TINY_STATUS_OK)
    return status;
  const char *mapped = wgpu.BufferGetConstMappedRange (device->staging, 0, (size_t) n_words);
  if (mapped != NULL)
    memcpy (out, mapped + skip, n_bytes);
  wgpu.BufferUnmap (device->staging);
  return mapped != NULL ? TINY_STATUS_OK
                        : webgpu_fail (error, TINY_STATUS_DRIVER, "the library maps no memory");
}

static TinyStatus
download (Work *self, const TinySpan *src, void *host, TinyPluginError *error)
{
  TinyStatus status = check_span (src, error);
  uint64_t offset = src->offset, left = src->n_bytes;
  char *to = host;
  while (status == TINY_STATUS_OK && left > 0) {
    uint64_t skip = offset % 4;
    uint64_t n = left < MAX_STAGING_BYTES - skip ? left : MAX_STAGING_BYTES - skip;
    status = read_words (self, src->buffer->handle, offset - skip, to, skip, n, error);
    to += n;
    offset += n;
    left -= n;
  }
  return status;
}

/* The words around the bytes are read, changed and written back. */
static TinyStatus
write_part (Work *self, const TinySpan *dst, const char *from, TinyPluginError *error)
{
  uint64_t begin = dst->offset & ~UINT64_C (3), end = word_up (dst->offset + dst->n_bytes);
  char *words = calloc (1, (size_t) (end - begin));
  if (words == NULL)
    return webgpu_fail (error, TINY_STATUS_OUT_OF_MEMORY, "out of host memory");
  WGPUBuffer buffer = dst->buffer->handle;
  TinyStatus status = read_words (self, buffer, begin, words, 0, 4, error);
  if (status == TINY_STATUS_OK && end - begin > 4)
    status = read_words (self, buffer, end - 4, words + (end - begin) - 4, 0, 4, error);
  if (status == TINY_STATUS_OK) {
    memcpy (words + (dst->offset - begin), from, dst->n_bytes);
    wgpu.QueueWriteBuffer (self->device->queue, buffer, begin, words, (size_t) (end - begin));
  }
  free (words);
  return status;
}

static TinyStatus
upload (Work *self, const TinySpan *dst, const char *from, TinyPluginError *error)
{
  TinyStatus status = check_span (dst, error);
  if (status != TINY_STATUS_OK || dst->n_bytes == 0)
    return status;
  send (self);
  TinySpan part = *dst;
  if (part.offset % 4 == 0)
    while (part.n_bytes >= 4) {
      uint64_t n = part.n_bytes & ~UINT64_C (3);
      n = n < MAX_WRITE_BYTES ? n : MAX_WRITE_BYTES;
      wgpu.QueueWriteBuffer (self->device->queue, part.buffer->handle, part.offset, from,
                             (size_t) n);
      from += n;
      part.offset += n;
      part.n_bytes -= n;
    }
  return part.n_bytes > 0 ? write_part (self, &part, from, error) : TINY_STATUS_OK;
}

static TinyStatus
copy (Work *self, const TinySpan *dst, const TinySpan *src, TinyPluginError *error)
{
  TinyStatus status = check_span (dst, error);
  if (status == TINY_STATUS_OK)
    status = check_span (src, error);
  if (status != TINY_STATUS_OK || src->n_bytes == 0)
    return status;
  if (dst->n_bytes != src->n_bytes)
    return webgpu_fail (error, TINY_STATUS_INVALID, "copy of spans of different sizes");
  if (dst->buffer != src->buffer && (dst->offset | src->offset | src->n_bytes) % 4 == 0) {
    end_pass (self);
    wgpu.CommandEncoderCopyBufferToBuffer (get_encoder (self), src->buffer->handle, src->offset,
                                           dst->buffer->handle, dst->offset, src->n_bytes);
    return TINY_STATUS_OK;
  }
  char *host = malloc ((size_t) src->n_bytes);
  if (host == NULL)
    return webgpu_fail (error, TINY_STATUS_OUT_OF_MEMORY, "out of host memory");
  status = download (self, src, host, error);
  if (status == TINY_STATUS_OK)
    status = upload (self, dst, host, error);
  free (host);
  return status;
}

/* ---- launches ---- */
static TinyStatus
check_launch (Work *self, const TinyCommand *command, TinyPluginError *error)
{
  const TinyPluginProgram *program = command->program;
  const WGPULimits *limits = &self->device->limits;
  if (command->n_buffers != program->n_params || command->n_variables != program->n_variables)
    return webgpu_fail (error, TINY_STATUS_INVALID,
                        "%s: %u buffers and %u numbers for %u and %u", program->name,
                        command->n_buffers, command->n_variables, program->n_params,
                        program->n_variables);
  for (uint32_t i = 0; i < command->n_buffers; i++) {
    const TinySpan *span = &command->buffers[i];
    TinyStatus status = check_span (span, error);
    if (status != TINY_STATUS_OK)
      return status;
    if (span->n_bytes > limits->maxStorageBufferBindingSize)
      return webgpu_fail (error, TINY_STATUS_UNSUPPORTED,
                          "%s: buffer %u has %" PRIu64 " bytes, the device binds no more than "
                          "%" PRIu64 " at a time",
                          program->name, i, span->n_bytes, limits->maxStorageBufferBindingSize);
    if (span->offset % limits->minStorageBufferOffsetAlignment != 0)
      return webgpu_fail (
          error, TINY_STATUS_INVALID,
          "%s: buffer %u begins at byte %" PRIu64 ", which is no multiple of %u", program->name,
          i, span->offset, limits->minStorageBufferOffsetAlignment);
  }
  for (uint32_t i = 0; i < command->n_variables; i++)
    if (command->variables[i] < INT32_MIN || command->variables[i] > INT32_MAX)
      return webgpu_fail (error, TINY_STATUS_INVALID, "%s: %" PRId64 " has more than 32 bits",
                          program->name, command->variables[i]);
  return TINY_STATUS_OK;
}

static WGPUBindGroup
bind_buffers (Work *self, const TinyCommand *command)
{
  WGPUBindGroupEntry entries[MAX_BUFFERS] = { 0 };
  for (uint32_t i = 0; i < command->n_buffers; i++) {
    const TinySpan *span = &command->buffers[i];
    entries[i].binding = i;
    entries[i].buffer = span->buffer->handle;
    entries[i].offset = span->offset;
    entries[i].size = span->n_bytes < 4 ? 4 : word_up (span->n_bytes);
  }
  const WGPUBindGroupDescriptor descriptor = { .layout = command->program->buffers,
                                               .entryCount = command->n_buffers,
                                               .entries = entries };
  return wgpu.DeviceCreateBindGroup (self->device->handle, &descriptor);
}

/* Each number has a place of its own, as far from the next as places may begin. */
static WGPUBindGroup
bind_variables (Work *self, const TinyCommand *command)
{
  WGPUBindGroupEntry entries[MAX_VARIABLES] = { 0 };
  const uint32_t step = self->device->limits.minUniformBufferOffsetAlignment;
  for (uint32_t i = 0; i < command->n_variables; i++) {
    int32_t value = (int32_t) command->variables[i];
    memcpy (self->uniforms + self->n_uniform_bytes, &value, sizeof value);
    entries[i].binding = i;
    entries[i].buffer = self->device->uniforms;
    entries[i].offset = self->n_uniform_bytes;
    entries[i].size = sizeof value;
    self->n_uniform_bytes += step;
  }
  const WGPUBindGroupDescriptor descriptor = { .layout = command->program->variables,
                                               .entryCount = command->n_variables,
                                               .entries = entries };
  return wgpu.DeviceCreateBindGroup (self->device->handle, &descriptor);
}

static void
set_group (Work *self, uint32_t place, WGPUBindGroup group)
{
  if (group == NULL)
    return;
  wgpu.ComputePassEncoderSetBindGroup (self->pass, place, group, 0, NULL);
  wgpu.BindGroupRelease (group); /* the pass keeps it */
}

static void
begin_pass (Work *self)
{
  const WGPUPassTimestampWrites ticks
      = { .querySet = self->device->queries, .endOfPassWriteIndex = 1 };
  const WGPUComputePassDescriptor descriptor
      = { .timestampWrites = self->is_timed && ticks.querySet != NULL ? &ticks : NULL };
  self->pass = wgpu.CommandEncoderBeginComputePass (get_encoder (self), &descriptor);
}

static TinyStatus
launch (Work *self, const TinyCommand *command, TinyPluginError *error)
{
  const TinyPluginProgram *program = command->program;
  const uint32_t step = self->device->limits.minUniformBufferOffsetAlignment;
  TinyStatus status = check_launch (self, command, error);
  if (status != TINY_STATUS_OK)
    return status;
  if (self->n_launches == MAX_LAUNCHES
      || self->n_uniform_bytes + (uint64_t) command->n_variables * step > MAX_UNIFORM_BYTES)
    send (self);
  double points = (double) command->grid[0] * command->grid[1] * command->grid[2];
  if (points > UINT32_MAX)
    return webgpu_fail (error, TINY_STATUS_UNSUPPORTED,
                        "%s: a grid of %.0f points is too large", program->name, points);
  uint32_t n_points = command->grid[0] * command->grid[1] * command->grid[2];
  uint32_t n_groups = (n_points - 1) / program->points_per_group + 1;
  uint32_t x = n_groups < MAX_GROUPS ? n_groups : MAX_GROUPS;
  if (self->pass == NULL)
    begin_pass (self);
  wgpu.ComputePassEncoderSetPipeline (self->pass, program->pipeline);
  set_group (self, 0, bind_buffers (self, command));
  set_group (self, 1, bind_variables (self, command));
  wgpu.ComputePassEncoderDispatchWorkgroups (self->pass, x, (n_groups - 1) / x + 1, 1);
  self->n_launches++;
  return TINY_STATUS_OK;
}

/* ---- a submission ---- */
static TinyStatus
run (Work *self, const TinyCommand *command, TinyPluginError *error)
{
  switch (command->type) {
  case TINY_COMMAND_UPLOAD:
    return upload (self, &command->dst, command->host, error);
  case TINY_COMMAND_DOWNLOAD:
    return download (self, &command->src, command->host, error);
  case TINY_COMMAND_COPY:
    return copy (self, &command->dst, &command->src, error);
  case TINY_COMMAND_DISPATCH:
    return launch (self, command, error);
  default:
    return webgpu_fail (error, TINY_STATUS_UNSUPPORTED, "a command of unknown type %u",
                        command->type);
  }
}

/* Waits for a command by itself. A launch is timed on the device where that can. */
static TinyStatus
measure (Work *self,
         const TinyCommand *command,
         uint64_t start,
         uint64_t *out_ns,
         TinyPluginError *error)
{
  TinyPluginDevice *device = self->device;
  uint64_t ticks[2];
  if (command->type != TINY_COMMAND_DISPATCH || device->queries == NULL) {
    send (self);
    TinyStatus status = wait_for_queue (device, error);
    *out_ns = webgpu_now_ns () - start;
    return status;
  }
  end_pass (self);
  wgpu.CommandEncoderResolveQuerySet (self->encoder, device->queries, 0, 2, device->ticks, 0);
  TinyStatus status = read_words (self, device->ticks, 0, ticks, 0, sizeof ticks, error);
  if (status == TINY_STATUS_OK)
    *out_ns = (uint64_t) ((double) (ticks[1] - ticks[0]) * device->ns_per_tick);
  return status;
}

static TinyStatus
run_all (Work *self, const TinySubmit *submit, TinyPluginError *error)
{
  const char *at = (const char *) submit->commands;
  TinyStatus status = TINY_STATUS_OK;
  for (uint32_t i = 0; i < submit->n_commands && status == TINY_STATUS_OK; i++) {
    const TinyCommand *command = (const TinyCommand *) at;
    uint64_t start = self->is_timed ? webgpu_now_ns () : 0;
    if (command->struct_size < sizeof *command)
      return webgpu_fail (error, TINY_STATUS_INVALID, "command %u is too small", i);
    status = run (self, command, error);
    if (status == TINY_STATUS_OK && self->is_timed)
      status = measure (self, command, start, &submit->out_ns[i], error);
    at += command->struct_size;
  }
  send (self);
  return status;
}

TinyStatus
webgpu_submit (TinyPluginDevice *device,
               TinyPluginQueue *queue,
               const TinySubmit *submit,
               TinyPluginError *error)
{
  if (submit->struct_size < sizeof *submit)
    return webgpu_fail (error, TINY_STATUS_INVALID, "submit is too small");
  pthread_mutex_lock (&device->lock);
  Work work = { .device = device, .is_timed = submit->out_ns != NULL };
  webgpu_scope_open (device);
  if (device->uniforms == NULL)
    device->uniforms = webgpu_new_buffer (device, MAX_UNIFORM_BYTES,
                                          WGPUBufferUsage_Uniform | WGPUBufferUsage_CopyDst);
  TinyStatus status = run_all (&work, submit, error);
  if (status == TINY_STATUS_OK)
    status = wait_for_queue (device, error);
  TinyStatus said = webgpu_scope_close (device, "running commands", TINY_STATUS_LAUNCH, error);
  pthread_mutex_unlock (&device->lock);
  return said != TINY_STATUS_OK ? said : status;
}
