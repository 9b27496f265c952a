/* SPDX-License-Identifier: MIT
 *
 * sample.c: a backend as a vendor's package has it, outside of the tree.
 *
 * It has host memory and runs nothing: what is tested with it is how it is built against the
 * installed header, packaged, found and removed. */
#include <tiny-plugin-kit.h>

struct TinyPluginBuffer {
  uint64_t n_bytes;
  _Alignas(64) char data[];
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
  out->flags = TINY_DEVICE_HOST_MEMORY | TINY_DEVICE_RUNS_NOTHING;
  snprintf (out->name, sizeof out->name, "sample accelerator");
  snprintf (out->arch, sizeof out->arch, "sample");
  out->alignment = 64;
  return TINY_STATUS_OK;
}

static TinyStatus
alloc (TinyPluginDevice *device,
       uint64_t n_bytes,
       TinyPluginBuffer **out,
       TinyPluginError *error)
{
  uint64_t size = (sizeof **out + n_bytes + 63) / 64 * 64;
  *out = size > n_bytes ? aligned_alloc (64, size) : NULL;
  if (*out == NULL)
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "out of host memory");
  (*out)->n_bytes = n_bytes;
  return TINY_STATUS_OK;
}

static void
free_buffer (TinyPluginDevice *device, TinyPluginBuffer *buffer)
{
  free (buffer);
}

static TinyStatus
submit (TinyPluginDevice *device,
        TinyPluginQueue *queue,
        const TinySubmit *work,
        TinyPluginError *error)
{
  for (uint32_t i = 0; i < work->n_commands; i++) {
    const TinyCommand *command = &work->commands[i];
    const TinySpan *dst = &command->dst, *src = &command->src;
    if (command->type == TINY_COMMAND_UPLOAD)
      memcpy (dst->buffer->data + dst->offset, command->host, dst->n_bytes);
    else if (command->type == TINY_COMMAND_DOWNLOAD)
      memcpy (command->host, src->buffer->data + src->offset, src->n_bytes);
    else if (command->type == TINY_COMMAND_COPY)
      memcpy (dst->buffer->data + dst->offset, src->buffer->data + src->offset, src->n_bytes);
  }
  return TINY_STATUS_OK;
}

static TinyStatus
program_load (TinyPluginDevice *device,
              const TinyProgramArgs *args,
              TinyPluginProgram **out,
              TinyPluginError *error)
{
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
};

/* ---- module ---- */
static TinyStatus
scan (TinyCandidate *out, uint32_t *n, TinyPluginError *error)
{
  if (*n > 0) {
    snprintf (out->id, sizeof out->id, "sample");
    snprintf (out->name, sizeof out->name, "sample accelerator");
    out->device_class = TINY_CLASS_NPU;
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

TINY_KIT_MODULE (sample_host,
                 .flags = TINY_MODULE_ANY_RENDERER,
                 .name = "SAMPLE",
                 .vendor = "Example Devices",
                 .version = SAMPLE_VERSION,
                 .license = "MIT",
                 .scan = scan,
                 .open = open_device)
