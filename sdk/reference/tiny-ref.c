/* SPDX-License-Identifier: MIT
 *
 * tiny-ref.c: the reference backend, a slow and obviously right interpreter of linear programs.
 *
 * It is also the shortest complete example of a backend: this file is what each has, written
 * against one header, its kit and no library but libc. Read it from the bottom: the entry point returns the
 * module table; the module opens a device; the device has buffers, a queue and programs; a
 * renderer makes a program from a linear program. This renderer has no dialect, so compile() gets
 * the instructions themselves. It checks them and writes them down as they are, where a backend
 * for hardware would emit code; ref-program.c does that, and ref-run.c runs them. */
#include "ref.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TINY_PLUGIN_NOTE (0);

static const TinyHost *host;

/* ---- the device: memory is the host's ---- */
struct TinyPluginDevice {
  char unused;
};
struct TinyPluginQueue {
  char unused;
};

static TinyPluginDevice the_device;
static TinyPluginQueue the_queue; /* has no state, so that one serves all */

static void
device_close (TinyPluginDevice *device)
{
}

static TinyStatus
device_info (TinyPluginDevice *device, TinyDeviceInfo *out, TinyPluginError *error)
{
  TINY_TRY (TINY_CHECK_OUT (out, error));
  TINY_FILL (out, .flags = TINY_DEVICE_HOST_MEMORY, .name = "reference interpreter",
             .arch = "ref", .max_buffer_bytes = UINT64_C (1) << 40, .alignment = 8,
             .n_threads = 1);
  return TINY_STATUS_OK;
}

static TinyStatus
device_alloc (TinyPluginDevice *device,
              uint64_t n_bytes,
              TinyPluginBuffer **out,
              TinyPluginError *error)
{
  TinyPluginBuffer *buffer = malloc (sizeof *buffer);
  unsigned char *data
      = n_bytes < SIZE_MAX - 64 ? malloc ((n_bytes + 64) & ~UINT64_C (63)) : NULL;
  if (buffer == NULL || data == NULL) {
    free (buffer);
    free (data);
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY,
                      "no memory for a buffer of %" PRIu64 " bytes", n_bytes);
  }
  *buffer = (TinyPluginBuffer){ .data = data, .n_bytes = n_bytes };
  *out = buffer;
  return TINY_STATUS_OK;
}

static void
device_free (TinyPluginDevice *device, TinyPluginBuffer *buffer)
{
  if (!buffer->is_foreign)
    free (buffer->data);
  free (buffer);
}

static TinyStatus
device_import_host (TinyPluginDevice *device,
                    void *memory,
                    uint64_t n_bytes,
                    TinyPluginBuffer **out,
                    TinyPluginError *error)
{
  TinyPluginBuffer *buffer = malloc (sizeof *buffer);
  if (buffer == NULL)
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for a buffer");
  *buffer = (TinyPluginBuffer){ .data = memory, .n_bytes = n_bytes, .is_foreign = true };
  *out = buffer;
  return TINY_STATUS_OK;
}

static TinyStatus
device_map (TinyPluginDevice *device,
            TinyPluginBuffer *buffer,
            void **out,
            TinyPluginError *error)
{
  *out = buffer->data;
  return TINY_STATUS_OK;
}

static TinyStatus
queue_create (TinyPluginDevice *device, TinyPluginQueue **out, TinyPluginError *error)
{
  *out = &the_queue;
  return TINY_STATUS_OK;
}

static void
queue_destroy (TinyPluginDevice *device, TinyPluginQueue *queue)
{
}

static TinyStatus
copy (const TinyCommand *command, TinyPluginError *error)
{
  const TinySpan *dst = &command->dst, *src = &command->src;
  bool writes = command->type != TINY_COMMAND_DOWNLOAD,
       reads = command->type != TINY_COMMAND_UPLOAD;
  if ((writes && !ref_span_is_inside (dst)) || (reads && !ref_span_is_inside (src))
      || (writes && reads && dst->n_bytes != src->n_bytes)
      || (!(writes && reads) && command->host == NULL))
    return tiny_fail (error, TINY_STATUS_INVALID, "copy of spans that do not fit");
  void *to = writes ? dst->buffer->data + dst->offset : command->host;
  const void *from = reads ? src->buffer->data + src->offset : command->host;
  memcpy (to, from, writes ? dst->n_bytes : src->n_bytes);
  return TINY_STATUS_OK;
}

static TinyStatus
run (void *context, const TinyCommand *command, TinyPluginError *error)
{
  if (command->type == TINY_COMMAND_DISPATCH)
    return ref_dispatch (command, error);
  if (command->type >= TINY_COMMAND_UPLOAD && command->type <= TINY_COMMAND_COPY)
    return copy (command, error);
  return tiny_fail (error, TINY_STATUS_UNSUPPORTED, "a command of the unknown type %u",
                    command->type);
}

static TinyStatus
device_submit (TinyPluginDevice *device,
               TinyPluginQueue *queue,
               const TinySubmit *submit,
               TinyPluginError *error)
{
  return tiny_submit_each (submit, run, device, error);
}

static TinyStatus
program_load (TinyPluginDevice *device,
              const TinyProgramArgs *args,
              TinyPluginProgram **out,
              TinyPluginError *error)
{
  TINY_TRY (TINY_CHECK_IN (args, 0, error));
  TinyPluginProgram *program = NULL;
  TinyStatus status = ref_program_new (args->name, args->data, args->size, TINY_STATUS_CORRUPT,
                                       &program, error);
  if (status != TINY_STATUS_OK)
    return status;
  if (args->n_params != program->n_params || args->n_variables != program->n_variables
      || memcmp (args->group, program->group, sizeof program->group) != 0) {
    ref_program_free (program);
    return tiny_fail (error, TINY_STATUS_CORRUPT, "%s: is not the program it is said to be",
                      args->name);
  }
  *out = program;
  return TINY_STATUS_OK;
}

static void
program_unload (TinyPluginDevice *device, TinyPluginProgram *program)
{
  ref_program_free (program);
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
  .import_host = device_import_host,
};

/* ---- the renderer ---- */
static TinyStatus
renderer_compile (const TinyCompileArgs *args,
                  void **out_data,
                  uint64_t *out_size,
                  TinyPluginError *error)
{
  TINY_TRY (TINY_CHECK_IN (args, 0, error));
  const TinyLinear *linear = args->linear;
  TINY_TRY (TINY_CHECK_IN (linear, 0, error));
  if (linear->n_instrs > MAX_INSTRS)
    return tiny_fail (error, TINY_STATUS_COMPILE, "%s: the program is too long", linear->name);
  uint64_t size = ref_blob_size (linear);
  void *data = host->alloc (size);
  if (data == NULL)
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "%s: no memory to compile it",
                      linear->name);
  ref_blob_write (linear, data);

  /* Loading it once now tells the author of the program, not its user, what is wrong with it. */
  TinyPluginProgram *program = NULL;
  TinyStatus status
      = ref_program_new (linear->name, data, size, TINY_STATUS_COMPILE, &program, error);
  if (status != TINY_STATUS_OK) {
    host->free (data);
    return status;
  }
  ref_program_free (program);
  status = ref_check_target (args->arch, linear, error);
  if (status != TINY_STATUS_OK) {
    host->free (data);
    return status;
  }
  *out_data = data;
  *out_size = size;
  return TINY_STATUS_OK;
}

static const TinyRenderer renderers[] = { {
    .struct_size = sizeof (TinyRenderer),
    .name = "REF",
    .code_version = "1",
    .target = ref_target,
    .compile = renderer_compile,
} };

/* ---- the module ---- */
static TinyStatus
module_init (const TinyHost *given, TinyPluginError *error)
{
  host = given;
  return TINY_STATUS_OK;
}

static void
module_fini (void)
{
  host = NULL;
}

static TinyStatus
module_scan (TinyCandidate *out, uint32_t *n, TinyPluginError *error)
{
  if (*n > 0)
    TINY_TRY (TINY_CHECK_OUT (out, error));
  if (*n > 0)
    TINY_FILL (out, .id = "ref", .name = "reference interpreter",
               .device_class = TINY_CLASS_SIMULATOR);
  *n = 1;
  return TINY_STATUS_OK;
}

static TinyStatus
module_open (const char *id,
             TinyPluginDevice **out,
             const TinyDeviceTable **out_table,
             TinyPluginError *error)
{
  if (strcmp (id, "ref") != 0)
    return tiny_fail (error, TINY_STATUS_NO_DEVICE,
                      "REF has one device, \"ref\", and no \"%s\"", id);
  *out = &the_device;
  *out_table = &device_table;
  return TINY_STATUS_OK;
}

static const TinyPluginModule module = {
  .struct_size = sizeof (TinyPluginModule),
  .abi_major = TINY_PLUGIN_ABI_MAJOR,
  .abi_minor = TINY_PLUGIN_ABI_MINOR,
  .abi_minor_min = 0,
  .n_renderers = 1,
  .name = "REF",
  .vendor = "tinycore",
  .version = REF_VERSION,
  .license = "MIT",
  .renderers = renderers,
  .init = module_init,
  .fini = module_fini,
  .scan = module_scan,
  .open = module_open,
};

TINY_PLUGIN_EXPORT const TinyPluginModule *tiny_plugin_entry_1 (uint32_t host_minor,
                                                                TinyPluginError *error);

const TinyPluginModule *
tiny_plugin_entry_1 (uint32_t host_minor, TinyPluginError *error)
{
  return &module;
}
