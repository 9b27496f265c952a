/* SPDX-License-Identifier: MIT
 *
 * cl-program.c: kernels: source to the driver's binary, and that to a kernel again.
 *
 * compile() builds for the device that its architecture names and takes the driver's own binary, which
 * the core keeps; where that device is not there, the result is the source, and it is built when it is
 * loaded. Before either lies a ClBlob. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cl.h"

static const char magic[8] = "TINYCL1";

/* Puts the compiler's log, from its first error on, into @error. */
static TinyStatus
fail_build (
    cl_program program, cl_device_id device, cl_int code, const char *name, ClError *error)
{
  size_t size = 0;
  TinyStatus status = cl_check (error, TINY_STATUS_COMPILE, code, name);
  cl.GetProgramBuildInfo (program, device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
  char *log = calloc (1, size + 1);
  if (log != NULL)
    cl.GetProgramBuildInfo (program, device, CL_PROGRAM_BUILD_LOG, size, log, NULL);
  char *first = log != NULL ? strstr (log, "error:") : NULL;
  while (first != NULL && first > log && first[-1] != '\n')
    first--;
  if (status == TINY_STATUS_COMPILE && log != NULL && *log != '\0')
    cl_fail (error, status, "%s: %s", name, first != NULL ? first : log);
  free (log);
  return status;
}

/* A built program of the @size bytes that follow a blob. */
static TinyStatus
build (ClDevice *device,
       const ClBlob *blob,
       const char *name,
       const void *data,
       size_t size,
       cl_program *out,
       ClError *error)
{
  cl_int code, status;
  cl_program program
      = blob->is_binary
            ? cl.CreateProgramWithBinary (device->context, 1, &device->device, &size,
                                          (const unsigned char **) &data, &status, &code)
            : cl.CreateProgramWithSource (device->context, 1, (const char **) &data, &size,
                                          &code);
  CL_TRY (cl_check (error, TINY_STATUS_COMPILE, code, name));
  code = cl.BuildProgram (program, 1, &device->device, blob->options, NULL, NULL);
  *out = program;
  if (code == CL_SUCCESS)
    return TINY_STATUS_OK;
  TinyStatus answer = fail_build (program, device->device, code, name, error);
  cl.ReleaseProgram (program);
  return answer;
}

static void
fill_blob (const TinyLinear *linear, const ClArch *arch, ClBlob *out)
{
  const uint32_t *group = linear->group;
  bool shares = group[0] * group[1] * group[2] > 1;
  for (uint32_t i = 0; i < linear->n_instrs; i++)
    shares |= linear->instrs[i].op == TINY_INSTR_LOCAL;
  *out = (ClBlob){ .dev = (uint32_t) arch->dev,
                   .n_params = linear->n_params,
                   .n_variables = linear->n_variables,
                   .variable_bytes = arch->int64 ? 8 : 4,
                   .group = { group[0], group[1], group[2] },
                   .has_free_groups = arch->groups && !shares };
  memcpy (out->magic, magic, sizeof magic);
  int n = snprintf (out->options, sizeof out->options,
                    "-w -cl-std=CL1.2%s -DTINY_INT64=%d -DTINY_FP64=%d -DTINY_FP16=%d ",
                    arch->rounded ? " -cl-fp32-correctly-rounded-divide-sqrt" : "",
                    arch->int64 != 0, arch->fp64 != 0, arch->fp16 != 0);
  snprintf (out->options + n, sizeof out->options - (size_t) n,
            out->has_free_groups
                ? "-DTINY_GRID=get_global_id -DTINY_GROUP="
                : "-DTINY_GRID=get_group_id -DTINY_GROUP=reqd_work_group_size(%u,%u,%u)",
            group[0], group[1], group[2]);
  for (uint32_t i = 0; i < linear->n_params; i++)
    out->writes[i] = (linear->params[i].flags & TINY_PARAM_WRITE) != 0;
}

TinyStatus
cl_compile (const TinyCompileArgs *args, void **out, uint64_t *out_size, ClError *error)
{
  ClArch arch = { 0 };
  ClBlob blob;
  cl_program program = NULL;
  size_t size = 0;
  uint32_t i = 0;
  if (args->linear == NULL || args->source == NULL || args->linear->n_params > CL_MAX_PARAMS)
    return cl_fail (error, TINY_STATUS_INVALID, "%s: no source, or over %d buffers", args->name,
                    CL_MAX_PARAMS);
  CL_TRY (cl_arch_parse (args->arch, &arch, error));
  fill_blob (args->linear, &arch, &blob);
  cl_find_devices (NULL);
  while (i < cl_n_devices && cl_devices[i].arch.dev != arch.dev)
    i++;
  if (i < cl_n_devices) {
    CL_TRY (build (&cl_devices[i], &blob, args->name, args->source, args->source_size, &program,
                   error));
    cl.GetProgramInfo (program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL);
  }
  blob.is_binary = size > 0;
  size = size > 0 ? size : args->source_size;
  char *packed = cl_host->alloc (sizeof blob + size), *data = packed + sizeof blob;
  cl_int code = packed != NULL ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
  if (packed != NULL && blob.is_binary)
    code = cl.GetProgramInfo (program, CL_PROGRAM_BINARIES, sizeof data, &data, NULL);
  else if (packed != NULL)
    memcpy (data, args->source, size);
  if (program != NULL)
    cl.ReleaseProgram (program);
  if (code != CL_SUCCESS) {
    cl_host->free (packed);
    return cl_check (error, TINY_STATUS_COMPILE, code, args->name);
  }
  blob.hash = cl_hash (0, data, size);
  memcpy (packed, &blob, sizeof blob);
  *out = packed;
  *out_size = sizeof blob + size;
  return TINY_STATUS_OK;
}

TinyStatus
cl_program_load (ClDevice *device, const TinyProgramArgs *args, ClProgram **out, ClError *error)
{
  const ClBlob *blob = args->data;
  const size_t size = args->size - sizeof *blob;
  cl_int code = CL_OUT_OF_HOST_MEMORY;
  if (args->size <= sizeof *blob || memcmp (blob->magic, magic, sizeof magic) != 0
      || blob->hash != cl_hash (0, blob + 1, size) || args->n_params != blob->n_params
      || args->n_variables != blob->n_variables || blob->n_params > CL_MAX_PARAMS
      || memcmp (args->group, blob->group, sizeof blob->group) != 0
      || (blob->is_binary && blob->dev != (uint32_t) device->arch.dev))
    return cl_fail (error, TINY_STATUS_CORRUPT,
                    "%s: damaged, or made for another device or driver", args->name);
  cl_program program;
  CL_TRY (build (device, blob, args->name, blob + 1, size, &program, error));
  ClProgram *self = calloc (1, sizeof *self);
  if (self != NULL) {
    *self = (ClProgram){ .blob = *blob, .device = device, .program = program };
    self->kernel = cl.CreateKernel (program, args->name, &code);
    if (self->kernel != NULL)
      *out = self;
    else
      free (self);
  }
  if (code != CL_SUCCESS)
    cl.ReleaseProgram (program);
  return cl_check (error, TINY_STATUS_CORRUPT, code, args->name);
}

void
cl_program_unload (ClDevice *device, ClProgram *self)
{
  cl.ReleaseKernel (self->kernel);
  cl.ReleaseProgram (self->program);
  free (self);
}
