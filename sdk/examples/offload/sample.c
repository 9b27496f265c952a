/* SPDX-License-Identifier: MIT
 *
 * sample.c: a backend that computes what it claims and leaves the rest to the processor.
 *
 * The core asks claim() about each operation that it recognises. What is accepted comes to compile(), whose binary is the
 * description itself; program_load() gets it back, and submit() runs it. TINY_MODULE_BESIDE_HOST says that all other kernels are
 * made and run by another backend, on the memory that map() gives. */
#include "sample.h"

enum { ALIGNMENT = 64 }; /* what the processor's backend asks of memory it is to work on */

extern const TinyHost *sample_host; /* what init() was given; see the end */

struct TinyPluginBuffer {
  unsigned char *data;
  uint64_t n_bytes;
};
struct TinyPluginProgram {
  TinyOperation operation;
};

/* ---- code ---- */
static TinyStatus
claim (const char *arch, const TinyOperation *operation, TinyClaim *out, TinyPluginError *error)
{
  sample_claim (operation, out);
  return TINY_STATUS_OK;
}

static TinyStatus
compile (const TinyCompileArgs *args,
         void **out_data,
         uint64_t *out_size,
         TinyPluginError *error)
{
  void *none;
  TinyPacked *packed
      = tiny_pack (sample_host, args->operation, sizeof *args->operation, 0, &none);
  if (packed == NULL)
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "%s: no memory", args->name);
  tiny_pack_end (packed, 0, out_data, out_size);
  return TINY_STATUS_OK;
}

static TinyStatus
program_load (TinyPluginDevice *device,
              const TinyProgramArgs *args,
              TinyPluginProgram **out,
              TinyPluginError *error)
{
  const void *none;
  size_t size;
  TinyPluginProgram *program = calloc (1, sizeof *program);
  if (program == NULL)
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "%s: no memory", args->name);
  TinyStatus status
      = tiny_unpack (args, &program->operation, sizeof program->operation, &none, &size, error);
  if (status != TINY_STATUS_OK)
    free (program);
  else
    *out = program;
  return status;
}

static void
program_unload (TinyPluginDevice *device, TinyPluginProgram *program)
{
  free (program);
}

/* ---- memory ---- */
static TinyStatus
alloc (TinyPluginDevice *device,
       uint64_t n_bytes,
       TinyPluginBuffer **out,
       TinyPluginError *error)
{
  TinyPluginBuffer *buffer = calloc (1, sizeof *buffer);
  void *data = NULL;
  if (buffer == NULL || n_bytes > INT64_MAX
      || posix_memalign (&data, ALIGNMENT, n_bytes / ALIGNMENT * ALIGNMENT + ALIGNMENT) != 0) {
    free (buffer);
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for a buffer of %llu bytes",
                      (unsigned long long) n_bytes);
  }
  *buffer = (TinyPluginBuffer){ data, n_bytes };
  *out = buffer;
  return TINY_STATUS_OK;
}

static void
free_buffer (TinyPluginDevice *device, TinyPluginBuffer *buffer)
{
  free (buffer->data);
  free (buffer);
}

static TinyStatus
map (TinyPluginDevice *device, TinyPluginBuffer *buffer, void **out, TinyPluginError *error)
{
  *out = buffer->data;
  return TINY_STATUS_OK;
}

/* ---- work ---- */
static TinyStatus
dispatch (const TinyCommand *command, TinyPluginError *error)
{
  void *memory[TINY_OPERATION_MAX_OPERANDS];
  const TinyOperation *operation = &command->program->operation;
  if (command->n_buffers != operation->n_buffers)
    return tiny_fail (error, TINY_STATUS_INVALID, "%u buffers for an operation of %u",
                      command->n_buffers, operation->n_buffers);
  for (uint32_t i = 0; i < command->n_buffers; i++) {
    const TinySpan *span = &command->buffers[i];
    TINY_TRY (tiny_check_span (span, span->buffer->n_bytes, error));
    memory[i] = span->buffer->data + span->offset;
  }
  sample_run (operation, memory);
  return TINY_STATUS_OK;
}

static TinyStatus
run (const TinyCommand *command, TinyPluginError *error)
{
  const TinySpan *dst = &command->dst, *src = &command->src;
  if (command->type == TINY_COMMAND_DISPATCH)
    return dispatch (command, error);
  if (command->type != TINY_COMMAND_DOWNLOAD)
    TINY_TRY (tiny_check_span (dst, dst->buffer->n_bytes, error));
  if (command->type != TINY_COMMAND_UPLOAD)
    TINY_TRY (tiny_check_span (src, src->buffer->n_bytes, error));
  if (command->type == TINY_COMMAND_UPLOAD)
    memcpy (dst->buffer->data + dst->offset, command->host, dst->n_bytes);
  else if (command->type == TINY_COMMAND_DOWNLOAD)
    memcpy (command->host, src->buffer->data + src->offset, src->n_bytes);
  else
    memcpy (dst->buffer->data + dst->offset, src->buffer->data + src->offset, src->n_bytes);
  return TINY_STATUS_OK;
}

static TinyStatus
submit (TinyPluginDevice *device,
        TinyPluginQueue *queue,
        const TinySubmit *work,
        TinyPluginError *error)
{
  const char *at = (const char *) work->commands;
  for (uint32_t i = 0; i < work->n_commands; i++) {
    const TinyCommand *command = (const TinyCommand *) at;
    const uint64_t start = tiny_now_ns ();
    TINY_TRY (run (command, error));
    if (work->out_ns != NULL)
      work->out_ns[i] = tiny_now_ns () - start;
    at += command->struct_size; /* a newer core's commands are longer */
  }
  return TINY_STATUS_OK;
}

/* ---- the device and the module ---- */
static int the_device;

static TinyStatus
info (TinyPluginDevice *device, TinyDeviceInfo *out, TinyPluginError *error)
{
  *out = (TinyDeviceInfo){ .struct_size = sizeof *out,
                           .flags = TINY_DEVICE_HOST_MEMORY,
                           .name = "a matrix unit of 16 x 16, made up",
                           .arch = "units,tile=16",
                           .alignment = ALIGNMENT,
                           .n_threads = 1 };
  return TINY_STATUS_OK;
}

static void
close_device (TinyPluginDevice *device)
{
}

static const TinyDeviceTable table = { .struct_size = sizeof table,
                                       .close = close_device,
                                       .info = info,
                                       .alloc = alloc,
                                       .free = free_buffer,
                                       .submit = submit,
                                       .program_load = program_load,
                                       .program_unload = program_unload,
                                       .map = map };

static TinyStatus
scan (TinyCandidate *out, uint32_t *n, TinyPluginError *error)
{
  static const TinyCandidate unit
      = { .id = "unit", .name = "a matrix unit", .device_class = TINY_CLASS_SIMULATOR };
  return tiny_scan_copy (&unit, 1, sizeof unit, out, n);
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

static const TinyRenderer renderer = { .struct_size = sizeof renderer,
                                       .flags = TINY_RENDERER_CLAIMS_ONLY,
                                       .name = "SAMPLE",
                                       .code_version = "1.0",
                                       .compile = compile,
                                       .claim = claim };

TINY_KIT_MODULE (sample_host,
                 .flags = TINY_MODULE_BESIDE_HOST,
                 .name = "SAMPLE",
                 .vendor = "example",
                 .version = "1.0",
                 .license = "MIT",
                 .n_renderers = 1,
                 .renderers = &renderer,
                 .scan = scan,
                 .open = open_device)
