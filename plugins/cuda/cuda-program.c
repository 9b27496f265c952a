/* SPDX-License-Identifier: MIT
 *
 * cuda-program.c: a cubin to a function of the driver's, and its launch. */
#include "cuda.h"

/* Refuses a program that the driver would take without a word, or fail at only when it is launched. */
static TinyStatus
check_cubin (const CudaDevice *device,
             const TinyProgramArgs *args,
             const char *entry,
             CudaError *error)
{
  NvidiaKernel kernel;
  TINY_TRY (nvidia_cubin_read (args->data, args->size, entry, &kernel, error));
  const uint32_t n_bytes = 8 * (args->n_params + args->n_variables);
  if (kernel.sm != device->arch.sm)
    return tiny_fail (error, TINY_STATUS_CORRUPT, "%s: made for sm_%u, and %s is an sm_%u",
                      args->name, kernel.sm, device->info.name, device->arch.sm);
  if (kernel.argument_bytes != n_bytes)
    return tiny_fail (error, TINY_STATUS_CORRUPT,
                      "%s: it takes %u bytes of arguments, and %u are to be given", args->name,
                      kernel.argument_bytes, n_bytes);
  return TINY_STATUS_OK;
}

/* With the context current. The driver wants the image aligned. */
static TinyStatus
load (CudaDevice *device,
      const TinyProgramArgs *args,
      const char *entry,
      CudaProgram *self,
      CudaError *error)
{
  void *image = cuda_host->alloc (args->size);
  if (image == NULL)
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "%s: no memory for its code",
                      args->name);
  memcpy (image, args->data, args->size);
  int code = cuda.ModuleLoadData (&self->module, image);
  cuda_host->free (image);
  TINY_TRY (cuda_answer (device, error, TINY_STATUS_CORRUPT, code, args->name));
  code = cuda.ModuleGetFunction (&self->function, self->module, entry);
  if (code != CUDA_SUCCESS)
    cuda.ModuleUnload (self->module);
  return cuda_answer (device, error, TINY_STATUS_CORRUPT, code, args->name);
}

TinyStatus
cuda_program_load (CudaDevice *device,
                   const TinyProgramArgs *args,
                   CudaProgram **out,
                   CudaError *error)
{
  char entry[512];
  TINY_TRY (TINY_CHECK_IN (args, 0, error));
  CudaProgram self = { .group = { args->group[0], args->group[1], args->group[2] },
                       .n_arguments = args->n_params + args->n_variables };
  const int n = snprintf (entry, sizeof entry, "tiny_kernel_%s", args->name);
  if (n < 0 || (size_t) n >= sizeof entry || self.n_arguments > NVIDIA_ARGUMENT_BYTES / 8)
    return tiny_fail (error, TINY_STATUS_CORRUPT, "%.64s: no kernel of this plugin",
                      args->name);
  TINY_TRY (check_cubin (device, args, entry, error));
  TINY_TRY (cuda_enter (device, error));
  const TinyStatus status = load (device, args, entry, &self, error);
  *out = status == TINY_STATUS_OK ? malloc (sizeof self) : NULL;
  if (*out != NULL)
    **out = self;
  else if (status == TINY_STATUS_OK)
    cuda.ModuleUnload (self.module);
  cuda_leave ();
  return status == TINY_STATUS_OK && *out == NULL
             ? tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "%s: no memory for it", args->name)
             : status;
}

void
cuda_program_unload (CudaDevice *device, CudaProgram *self)
{
  if (cuda_enter (device, NULL) == TINY_STATUS_OK) {
    cuda.ModuleUnload (self->module);
    cuda_leave ();
  }
  free (self);
}

/* Arguments lie packed, 8 bytes each: addresses, then variables. */
TinyStatus
cuda_launch (CudaDevice *device,
             CudaStream stream,
             const TinyCommand *command,
             CudaError *error)
{
  const CudaProgram *program = command->program;
  uint64_t arguments[NVIDIA_ARGUMENT_BYTES / 8];
  size_t size = 8 * (size_t) program->n_arguments;
  void *extra[] = { CUDA_LAUNCH_BUFFER, arguments, CUDA_LAUNCH_SIZE, &size, CUDA_LAUNCH_END };
  const uint32_t n = command->n_buffers, *grid = command->grid, *group = program->group;
  if (n + command->n_variables != program->n_arguments)
    return tiny_fail (error, TINY_STATUS_INVALID,
                      "a launch with %u arguments, and %u are wanted", n + command->n_variables,
                      program->n_arguments);
  for (uint32_t i = 0; i < n; i++)
    arguments[i] = command->buffers[i].buffer->memory + command->buffers[i].offset;
  for (uint32_t i = 0; i < command->n_variables; i++)
    arguments[n + i] = (uint64_t) command->variables[i];
  return cuda_answer (device, error, TINY_STATUS_LAUNCH,
                      cuda.LaunchKernel (program->function, grid[0], grid[1], grid[2], group[0],
                                         group[1], group[2], 0, stream, NULL, extra),
                      "launching a kernel");
}
