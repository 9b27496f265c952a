/* SPDX-License-Identifier: MIT
 *
 * sample.c: a backend that computes what it claims and leaves the rest to the processor.
 *
 * The core asks claim() about each operation that it recognises. What is accepted comes to compile(), whose binary
 * is the description itself; program_load() gets it back, and submit() runs it. TINY_MODULE_BESIDE_HOST says that
 * all other kernels are made and run by another backend, on the memory that map() gives. */
#include "tiny-sample.h"

extern const TinyHost *tiny_sample_host; /* what init() was given; see the end */

struct TinyPluginProgram {
  TinyOperation operation;
};

/* ---- code ---- */
static TinyStatus
claim (const char *arch, const TinyOperation *operation, TinyClaim *out, TinyPluginError *error)
{
  TINY_TRY (TINY_CHECK_OUT (out, error));
  TINY_TRY (tiny_check_operation (operation, SAMPLE_FLAGS, error));
  tiny_sample_claim (operation, out);
  return TINY_STATUS_OK;
}

static TinyStatus
compile (const TinyCompileArgs *args,
         void **out_data,
         uint64_t *out_size,
         TinyPluginError *error)
{
  TINY_TRY (TINY_CHECK_IN (args, 0, error));
  if (args->operation == NULL)
    return tiny_fail (error, TINY_STATUS_UNSUPPORTED,
                      "%s: no operation, and the unit runs no kernels", args->name);
  TINY_TRY (tiny_check_operation (args->operation, SAMPLE_FLAGS, error));
  void *none;
  TinyOperation operation = { .struct_size = sizeof operation };
  tiny_fill_struct (&operation, args->operation, args->operation->struct_size);
  TinyPacked *packed = tiny_pack (tiny_sample_host, &operation, sizeof operation, 0, &none);
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
  TINY_TRY (TINY_CHECK_IN (args, 0, error));
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

/* ---- work: memory is the host's ---- */
static TinyStatus
run (void *device, const TinyCommand *command, TinyPluginError *error)
{
  void *memory[TINY_OPERATION_MAX_OPERANDS];
  if (command->type != TINY_COMMAND_DISPATCH)
    return tiny_host_copy (command, error);
  for (uint32_t i = 0; i < command->n_buffers; i++)
    memory[i] = tiny_host_bytes (&command->buffers[i]);
  tiny_sample_run (&command->program->operation, memory);
  return TINY_STATUS_OK;
}

static TinyStatus
submit (TinyPluginDevice *device,
        TinyPluginQueue *queue,
        const TinySubmit *work,
        TinyPluginError *error)
{
  return tiny_submit_each (work, run, device, error);
}

/* ---- the device and the module ---- */
static TinyStatus
info (TinyPluginDevice *device, TinyDeviceInfo *out, TinyPluginError *error)
{
  TINY_TRY (TINY_CHECK_OUT (out, error));
  TINY_FILL (out, .flags = TINY_DEVICE_HOST_MEMORY, .name = "a matrix unit of 16 x 16, made up",
             .arch = "units,tile=16", .alignment = 64, .n_threads = 1);
  return TINY_STATUS_OK;
}

static void
close_device (TinyPluginDevice *device)
{
}

static const TinyDeviceTable table = { .struct_size = sizeof table,
                                       .close = close_device,
                                       .info = info,
                                       .alloc = tiny_host_alloc,
                                       .free = tiny_host_free,
                                       .submit = submit,
                                       .program_load = program_load,
                                       .program_unload = program_unload,
                                       .map = tiny_host_map,
                                       .import_host = tiny_host_import };

static const TinyCandidate found = { .struct_size = sizeof found,
                                     .id = "unit",
                                     .name = "a matrix unit",
                                     .device_class = TINY_CLASS_SIMULATOR };

static TinyStatus
scan (TinyCandidate *out, uint32_t *n, TinyPluginError *error)
{
  return tiny_scan_copy (&found, 1, sizeof found, out, n);
}

static TinyStatus
open_device (const char *id,
             TinyPluginDevice **out,
             const TinyDeviceTable **out_table,
             TinyPluginError *error)
{
  TINY_TRY (tiny_check_id (&found, 1, sizeof found, id, error));
  *out = (TinyPluginDevice *) &table;
  *out_table = &table;
  return TINY_STATUS_OK;
}

static const TinyRenderer renderer = { .struct_size = sizeof renderer,
                                       .flags = TINY_RENDERER_CLAIMS_ONLY,
                                       .name = "SAMPLE",
                                       .code_version = "1.0",
                                       .compile = compile,
                                       .claim = claim };

TINY_KIT_MODULE (tiny_sample_host,
                 .flags = TINY_MODULE_BESIDE_HOST,
                 .name = "SAMPLE",
                 .vendor = "example",
                 .version = "1.0",
                 .license = "MIT",
                 .n_renderers = 1,
                 .renderers = &renderer,
                 .scan = scan,
                 .open = open_device)
