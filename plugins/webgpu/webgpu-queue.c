/* SPDX-License-Identifier: MIT
 *
 * webgpu-queue.c: commands run.
 *
 * Launches are collected in one encoder and one pass and go off together; a copy ends the pass, an
 * upload or download sends off what came before it. Memory moves in words of 4 bytes, as the core was
 * told. */
#include <inttypes.h>

#include "webgpu.h"

/* What is under way. */
typedef struct {
  Device *device;
  Error *error;
  WGPUCommandEncoder encoder;
  WGPUComputePassEncoder pass;
  bool is_timed;
  uint32_t n_uniform_bytes; /* in the encoder */
  WGPUBindGroupEntry entries[MAX_BUFFERS];
} Work;

WEBGPU_ON (on_done, WGPUQueueWorkDoneStatus, 0)
WEBGPU_ON (on_mapped, WGPUMapAsyncStatus, 0)

/* ---- waiting ---- */
static TinyStatus
wait_for (Work *self, WGPUFuture future, const WebgpuAnswer *answer)
{
  webgpu_wait (self->device->handle, future, answer);
  if (webgpu_is_lost (self->device))
    return TINY_STATUS_DEVICE_LOST; /* webgpu_scope_close() says why */
  if (answer->is_good)
    return TINY_STATUS_OK;
  return tiny_fail (self->error, answer->is_done ? TINY_STATUS_LAUNCH : TINY_STATUS_TIMEOUT,
                    "the device did not finish its work: %s", answer->text);
}

static TinyStatus
wait_for_queue (Work *self)
{
  WebgpuAnswer *answer = webgpu_ask ();
  const WGPUQueueWorkDoneCallbackInfo info = WEBGPU_ASK (on_done, answer);
  return wait_for (self, wgpu.QueueOnSubmittedWorkDone (self->device->queue, info), answer);
}

/* ---- sending off ---- */
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
  const Device *device = self->device;
  end_pass (self);
  if (self->encoder == NULL)
    return;
  wgpu.QueueWriteBuffer (device->queue, device->uniforms, 0, device->numbers,
                         self->n_uniform_bytes);
  WGPUCommandBuffer commands = wgpu.CommandEncoderFinish (self->encoder, NULL);
  wgpu.CommandEncoderRelease (self->encoder);
  if (!webgpu_is_lost (self->device))
    wgpu.QueueSubmit (device->queue, 1, &commands);
  wgpu.CommandBufferRelease (commands);
  self->encoder = NULL;
  self->n_uniform_bytes = 0;
}

/* ---- memory ---- */

/* wgpu-native ends the program at what lies beyond a buffer. */
static TinyStatus
check (Work *self, const TinySpan *span)
{
  const WGPUBuffer buffer = (WGPUBuffer) span->buffer; /* NULL: one that the command has not */
  return tiny_check_span (span, buffer != NULL ? wgpu.BufferGetSize (buffer) : 0, self->error);
}

static void
copy_words (Work *self, WGPUBuffer dst, uint64_t to, WGPUBuffer src, uint64_t from, uint64_t n)
{
  end_pass (self);
  if (self->encoder == NULL)
    self->encoder = wgpu.DeviceCreateCommandEncoder (self->device->handle, NULL);
  wgpu.CommandEncoderCopyBufferToBuffer (self->encoder, src, from, dst, to, n);
}

/* What was asked for before is done by then. */
static TinyStatus
read_words (Work *self, WGPUBuffer buffer, uint64_t offset, void *out, size_t n)
{
  WGPUBuffer staging = self->device->staging;
  WebgpuAnswer *answer = webgpu_ask ();
  const WGPUBufferMapCallbackInfo info = WEBGPU_ASK (on_mapped, answer);
  copy_words (self, staging, 0, buffer, offset, n);
  send (self);
  TINY_TRY (
      wait_for (self, wgpu.BufferMapAsync (staging, WGPUMapMode_Read, 0, n, info), answer));
  const void *mapped = wgpu.BufferGetConstMappedRange (staging, 0, n);
  if (mapped != NULL)
    memcpy (out, mapped, n);
  wgpu.BufferUnmap (staging);
  return mapped != NULL
             ? TINY_STATUS_OK
             : tiny_fail (self->error, TINY_STATUS_DRIVER, "the library maps no memory");
}

static TinyStatus
download (Work *self, const TinySpan *src, char *to)
{
  for (uint64_t at = 0, n; at < src->n_bytes; at += n) {
    n = src->n_bytes - at < STAGING_BYTES ? src->n_bytes - at : STAGING_BYTES;
    TINY_TRY (
        read_words (self, (WGPUBuffer) src->buffer, src->offset + at, to + at, (size_t) n));
  }
  return TINY_STATUS_OK;
}

static void
copy (Work *self, const TinySpan *dst, const TinySpan *src)
{
  WGPUBuffer from = (WGPUBuffer) src->buffer, to = (WGPUBuffer) dst->buffer;
  if (src->n_bytes == 0)
    return;
  if (from != to) {
    copy_words (self, to, dst->offset, from, src->offset, src->n_bytes);
    return;
  } /* else by way of another: a buffer is not copied to itself */
  WGPUBuffer via = webgpu_new_buffer (self->device, src->n_bytes,
                                      WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst);
  copy_words (self, via, 0, from, src->offset, src->n_bytes);
  copy_words (self, to, dst->offset, via, 0, src->n_bytes);
  wgpu.BufferRelease (via); /* the encoder keeps it */
}

/* ---- launches ---- */
static void
bind (Work *self, uint32_t place, WGPUBindGroupLayout layout, uint32_t n)
{
  const WGPUBindGroupDescriptor descriptor
      = { .layout = layout, .entryCount = n, .entries = self->entries };
  WGPUBindGroup group = wgpu.DeviceCreateBindGroup (self->device->handle, &descriptor);
  wgpu.ComputePassEncoderSetBindGroup (self->pass, place, group, 0, NULL);
  wgpu.BindGroupRelease (group); /* the pass keeps it */
}

static TinyStatus
bind_buffers (Work *self, const TinyCommand *command)
{
  const uint64_t most = self->device->limits.maxStorageBufferBindingSize;
  const Program *program = command->program;
  for (uint32_t i = 0; i < command->n_buffers; i++) {
    const TinySpan *span = &command->buffers[i];
    TINY_TRY (check (self, span));
    if (span->n_bytes > most || span->offset % self->device->info.alignment != 0)
      return tiny_hint (tiny_fail (self->error, TINY_STATUS_UNSUPPORTED,
                                   "%s: buffer %u has %" PRIu64
                                   " bytes, the device binds no more than %" PRIu64,
                                   program->entry + strlen (WEBGPU_ENTRY), i, span->n_bytes,
                                   most),
                        self->error, "split the tensor, or use another device");
    self->entries[i] = (WGPUBindGroupEntry){ .binding = i,
                                             .buffer = (WGPUBuffer) span->buffer,
                                             .offset = span->offset,
                                             .size = span->n_bytes > 0 ? span->n_bytes : 4 };
  }
  bind (self, 0, program->buffers, command->n_buffers);
  return TINY_STATUS_OK;
}

/* Each number has a place of its own, as far from the next as places may begin. */
static void
bind_variables (Work *self, const TinyCommand *command)
{
  for (uint32_t i = 0; i < command->n_variables; i++) {
    const int32_t value = (int32_t) command->variables[i];
    memcpy (self->device->numbers + self->n_uniform_bytes, &value, sizeof value);
    self->entries[i] = (WGPUBindGroupEntry){ .binding = i,
                                             .buffer = self->device->uniforms,
                                             .offset = self->n_uniform_bytes,
                                             .size = sizeof value };
    self->n_uniform_bytes += self->device->limits.minUniformBufferOffsetAlignment;
  }
  bind (self, 1, command->program->variables, command->n_variables);
}

static TinyStatus
launch (Work *self, const TinyCommand *command)
{
  const Program *program = command->program;
  const WGPULimits *limits = &self->device->limits;
  const uint32_t most = limits->maxComputeWorkgroupsPerDimension; /* along x, then y */
  const double points = (double) command->grid[0] * command->grid[1] * command->grid[2];
  const double groups = points / program->points_per_group;
  if (points > UINT32_MAX || groups > (double) most * most)
    return tiny_fail (self->error, TINY_STATUS_UNSUPPORTED,
                      "%s: a grid of %.0f points is too large",
                      program->entry + strlen (WEBGPU_ENTRY), points);
  const uint32_t n_groups = ((uint32_t) points - 1) / program->points_per_group + 1;
  const uint32_t x = n_groups < most ? n_groups : most;
  if (self->n_uniform_bytes + MAX_VARIABLES * limits->minUniformBufferOffsetAlignment
      > MAX_UNIFORM_BYTES)
    send (self);
  const WGPUPassTimestampWrites ticks
      = { .querySet = self->device->queries, .endOfPassWriteIndex = 1 };
  const WGPUComputePassDescriptor descriptor
      = { .timestampWrites = self->is_timed && ticks.querySet != NULL ? &ticks : NULL };
  if (self->encoder == NULL)
    self->encoder = wgpu.DeviceCreateCommandEncoder (self->device->handle, NULL);
  if (self->pass == NULL)
    self->pass = wgpu.CommandEncoderBeginComputePass (self->encoder, &descriptor);
  wgpu.ComputePassEncoderSetPipeline (self->pass, program->pipeline);
  TINY_TRY (bind_buffers (self, command));
  bind_variables (self, command);
  wgpu.ComputePassEncoderDispatchWorkgroups (self->pass, x, (n_groups - 1) / x + 1, 1);
  return TINY_STATUS_OK;
}

/* ---- a submission ---- */
static TinyStatus
run (Work *self, const TinyCommand *command)
{
  TINY_TRY (check (self, &command->dst));
  TINY_TRY (check (self, &command->src));
  if (command->type == TINY_COMMAND_DISPATCH)
    return launch (self, command);
  if (command->type == TINY_COMMAND_DOWNLOAD)
    return download (self, &command->src, command->host);
  if (command->type == TINY_COMMAND_COPY) {
    copy (self, &command->dst, &command->src);
    return TINY_STATUS_OK;
  }
  if (command->type != TINY_COMMAND_UPLOAD)
    return tiny_fail (self->error, TINY_STATUS_UNSUPPORTED, "command %u", command->type);
  send (self);
  wgpu.QueueWriteBuffer (self->device->queue, (WGPUBuffer) command->dst.buffer,
                         command->dst.offset, command->host, command->dst.n_bytes);
  return TINY_STATUS_OK;
}

/* Waits for a command by itself. A launch is timed on the device where that can. */
static TinyStatus
measure (Work *self, const TinyCommand *command, uint64_t start, uint64_t *out_ns)
{
  const Device *device = self->device;
  const double period
      = wgpu.QueueGetTimestampPeriod != NULL ? wgpu.QueueGetTimestampPeriod (device->queue) : 1;
  uint64_t ticks[2];
  if (command->type != TINY_COMMAND_DISPATCH || device->queries == NULL) {
    send (self);
    TINY_TRY (wait_for_queue (self));
    *out_ns = tiny_now_ns () - start;
    return TINY_STATUS_OK;
  }
  end_pass (self);
  wgpu.CommandEncoderResolveQuerySet (self->encoder, device->queries, 0, 2, device->ticks, 0);
  TINY_TRY (read_words (self, device->ticks, 0, ticks, sizeof ticks));
  *out_ns = ticks[1] < ticks[0] ? 0 : (uint64_t) ((double) (ticks[1] - ticks[0]) * period);
  return TINY_STATUS_OK;
}

static TinyStatus
run_all (Work *self, const TinySubmit *submit)
{
  const TinyCommand *command = submit->commands;
  for (uint32_t i = 0; i < submit->n_commands; i++) {
    const uint64_t start = self->is_timed ? tiny_now_ns () : 0;
    TINY_TRY (TINY_CHECK_IN (command, TINY_COMMAND_OVERLAPS, self->error));
    TINY_TRY (run (self, command));
    if (self->is_timed)
      TINY_TRY (measure (self, command, start, &submit->out_ns[i]));
    command = (const TinyCommand *) ((const char *) command + command->struct_size);
  }
  send (self);
  return wait_for_queue (self);
}

TinyStatus
webgpu_submit (Device *device, TinyPluginQueue *queue, const TinySubmit *submit, Error *error)
{
  TINY_TRY (TINY_CHECK_IN (submit, 0, error));
  Work work = { .device = device, .error = error, .is_timed = submit->out_ns != NULL };
  webgpu_scope_open (device);
  TinyStatus status = run_all (&work, submit);
  send (&work); /* what came before a command that failed */
  return webgpu_scope_close (device, "running commands", TINY_STATUS_LAUNCH, status, error);
}
