/* SPDX-License-Identifier: MIT
 *
 * null-plugin.c: the backend that compiles for anything and runs nothing.
 *
 * It has host memory, takes every binary and skips every dispatch, so that kernels can be compiled
 * for hardware that is not there (DEV=NULL:CUDA:sm_90) and the core's own costs be measured. The
 * core gives no values of what a dispatch was to write: the device says that it runs nothing. */
#include "tiny-plugin-kit.h"

enum { ALIGNMENT = 64 };

struct TinyPluginBuffer {
  void *
      memory; /* as calloc() gave it, so that large buffers cost nothing before they are used */
  char *data;
};

static char the_device, the_program;

/* ---- device ---- */
static void
close_device (TinyPluginDevice *device)
{
}

static TinyStatus
info (TinyPluginDevice *device, TinyDeviceInfo *out, TinyPluginError *error)
{
  TINY_TRY (TINY_CHECK_OUT (out, error));
  out->flags = TINY_DEVICE_HOST_MEMORY | TINY_DEVICE_RUNS_NOTHING;
  snprintf (out->name, sizeof out->name, "compiles and never runs");
  snprintf (out->arch, sizeof out->arch, "null");
  out->alignment = ALIGNMENT;
  out->n_threads = 1;
  return TINY_STATUS_OK;
}

static TinyStatus
alloc (TinyPluginDevice *device,
       uint64_t n_bytes,
       TinyPluginBuffer **out,
       TinyPluginError *error)
{
  TinyPluginBuffer *buffer = malloc (sizeof *buffer);
  void *memory = n_bytes <= SIZE_MAX - ALIGNMENT ? calloc (1, n_bytes + ALIGNMENT) : NULL;
  if (buffer == NULL || memory == NULL) {
    free (buffer);
    free (memory);
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "out of host memory");
  }
  buffer->memory = memory;
  buffer->data = (char *) (((uintptr_t) memory + ALIGNMENT - 1) & ~(uintptr_t) (ALIGNMENT - 1));
  *out = buffer;
  return TINY_STATUS_OK;
}

static void
free_buffer (TinyPluginDevice *device, TinyPluginBuffer *buffer)
{
  free (buffer->memory);
  free (buffer);
}

static TinyStatus
map (TinyPluginDevice *device, TinyPluginBuffer *buffer, void **out, TinyPluginError *error)
{
  *out = buffer->data;
  return TINY_STATUS_OK;
}

static TinyStatus
import_host (TinyPluginDevice *device,
             void *memory,
             uint64_t n_bytes,
             TinyPluginBuffer **out,
             TinyPluginError *error)
{
  TinyPluginBuffer *buffer = calloc (1, sizeof *buffer);
  if (buffer == NULL)
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "out of host memory");
  buffer->data = memory;
  *out = buffer;
  return TINY_STATUS_OK;
}

static TinyStatus
run (void *context, const TinyCommand *command, TinyPluginError *error)
{
  const TinySpan *dst = &command->dst, *src = &command->src;
  switch (command->type) {
  case TINY_COMMAND_UPLOAD:
    memcpy (dst->buffer->data + dst->offset, command->host, dst->n_bytes);
    return TINY_STATUS_OK;
  case TINY_COMMAND_DOWNLOAD:
    memcpy (command->host, src->buffer->data + src->offset, src->n_bytes);
    return TINY_STATUS_OK;
  case TINY_COMMAND_COPY:
    memcpy (dst->buffer->data + dst->offset, src->buffer->data + src->offset, src->n_bytes);
    return TINY_STATUS_OK;
  case TINY_COMMAND_DISPATCH:
    return TINY_STATUS_OK;
  default:
    return tiny_fail (error, TINY_STATUS_UNSUPPORTED, "unknown command");
  }
}

static TinyStatus
submit (TinyPluginDevice *device,
        TinyPluginQueue *queue,
        const TinySubmit *work,
        TinyPluginError *error)
{
  return tiny_submit_each (work, run, device, error);
}

static TinyStatus
program_load (TinyPluginDevice *device,
              const TinyProgramArgs *args,
              TinyPluginProgram **out,
              TinyPluginError *error)
{
  TINY_TRY (TINY_CHECK_IN (args, 0, error));
  *out = (TinyPluginProgram *) &the_program;
  return TINY_STATUS_OK;
}

static void
program_unload (TinyPluginDevice *device, TinyPluginProgram *program)
{
}

static const TinyDeviceTable table = {
  .struct_size = sizeof table,
  .close = close_device,
  .info = info,
  .alloc = alloc,
  .free = free_buffer,
  .submit = submit,
  .program_load = program_load,
  .program_unload = program_unload,
  .map = map,
  .import_host = import_host,
};

/* ---- module ---- */
static TinyStatus
scan (TinyCandidate *out, uint32_t *n, TinyPluginError *error)
{
  if (*n > 0) {
    TINY_TRY (TINY_CHECK_OUT (out, error));
    snprintf (out->id, sizeof out->id, "null");
    snprintf (out->name, sizeof out->name, "compiles and never runs");
    out->device_class = TINY_CLASS_SIMULATOR;
  }
  *n = 1;
  return TINY_STATUS_OK;
}

static TinyStatus
open_device (const char *id,
             TinyPluginDevice **out,
             const TinyDeviceTable **out_table,
             TinyPluginError *error)
{
  *out = (TinyPluginDevice *) &the_device;
  *out_table = &table;
  return TINY_STATUS_OK;
}

TINY_KIT_MODULE (null_host,
                 .flags = TINY_MODULE_ANY_RENDERER,
                 .name = "NULL",
                 .vendor = "tinycore",
                 .version = NULL_VERSION,
                 .license = "MIT",
                 .scan = scan,
                 .open = open_device)
