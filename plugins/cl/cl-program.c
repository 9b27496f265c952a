/* SPDX-License-Identifier: MIT
 *
 * cl-program.c: kernels: source to the driver's binary, and that to a kernel again.
 *
 * compile() builds for the device that its architecture names and takes the driver's own binary, which
 * the core keeps; where that device is not there, the result is the source, and it is built when it is
 * loaded. Before either lies a ClHead. */
#include "cl.h"

/* Puts the compiler's log into @error. */
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
  if (status == TINY_STATUS_COMPILE && log != NULL && *log != '\0')
    tiny_fail (error, status, "%s: %s", name, log);
  free (log);
  return status;
}

/* A built program of @size bytes. */
static TinyStatus
build (ClDevice *device,
       const ClHead *head,
       const char *name,
       const void *data,
       size_t size,
       cl_program *out,
       ClError *error)
{
  cl_int code, status;
  *out = head->is_binary
             ? cl.CreateProgramWithBinary (device->context, 1, &device->device, &size,
                                           (const unsigned char **) &data, &status, &code)
             : cl.CreateProgramWithSource (device->context, 1, (const char **) &data, &size,
                                           &code);
  TINY_TRY (cl_check (error, TINY_STATUS_COMPILE, code, name));
  code = cl.BuildProgram (*out, 1, &device->device, head->options, NULL, NULL);
  if (code == CL_SUCCESS)
    return TINY_STATUS_OK;
  TinyStatus answer = fail_build (*out, device->device, code, name, error);
  cl.ReleaseProgram (*out);
  return answer;
}

static void
fill_head (const TinyLinear *linear, const ClArch *arch, ClHead *out)
{
  const uint32_t *group = linear->group;
  bool shares = group[0] * group[1] * group[2] > 1;
  for (uint32_t i = 0; i < linear->n_instrs; i++)
    shares |= linear->instrs[i].op == TINY_INSTR_LOCAL;
  *out = (ClHead){ .dev = (uint32_t) arch->dev,
                   .variable_bytes = arch->int64 ? 8 : 4,
                   .has_free_groups = arch->groups && !shares };
  int n = snprintf (out->options, sizeof out->options,
                    "-w -cl-std=CL1.2%s -DTINY_INT64=%d -DTINY_FP64=%d -DTINY_FP16=%d ",
                    arch->rounded ? " -cl-fp32-correctly-rounded-divide-sqrt" : "",
                    arch->int64 != 0, arch->fp64 != 0, arch->fp16 != 0);
  snprintf (out->options + n, sizeof out->options - (size_t) n,
            out->has_free_groups
                ? "-DTINY_GRID=get_global_id -DTINY_GROUP="
                : "-DTINY_GRID=get_group_id -DTINY_GROUP=reqd_work_group_size(%u,%u,%u)",
            group[0], group[1], group[2]);
}

TinyStatus
cl_compile (const TinyCompileArgs *args, void **out, uint64_t *out_size, ClError *error)
{
  ClArch arch = { 0 };
  ClHead head;
  cl_program program = NULL;
  size_t size = 0;
  void *data = NULL;
  TINY_TRY (cl_arch_parse (args->arch, &arch, error));
  fill_head (args->linear, &arch, &head);
  for (uint32_t i = 0; i < cl_n_devices && program == NULL; i++)
    if (cl_devices[i].arch.dev == arch.dev && cl_devices[i].context != NULL)
      TINY_TRY (build (&cl_devices[i], &head, args->name, args->source, args->source_size,
                       &program, error));
  if (program != NULL)
    cl.GetProgramInfo (program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL);
  head.is_binary = size > 0;
  size = size > 0 ? size : args->source_size;
  TinyPacked *packed = tiny_pack (cl_host, &head, sizeof head, size, &data);
  cl_int code = packed != NULL ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
  if (packed != NULL && head.is_binary)
    code = cl.GetProgramInfo (program, CL_PROGRAM_BINARIES, sizeof data, &data, NULL);
  else if (packed != NULL)
    memcpy (data, args->source, size);
  if (program != NULL)
    cl.ReleaseProgram (program);
  if (code == CL_SUCCESS)
    tiny_pack_end (packed, size, out, out_size);
  else
    cl_host->free (packed);
  return cl_check (error, TINY_STATUS_COMPILE, code, args->name);
}

TinyStatus
cl_program_load (ClDevice *device, const TinyProgramArgs *args, ClProgram **out, ClError *error)
{
  ClProgram self = { .group = { args->group[0], args->group[1], args->group[2] } };
  const void *data = NULL;
  size_t size = 0;
  char entry[512];
  cl_int code;
  TINY_TRY (tiny_unpack (args, &self.head, sizeof self.head, &data, &size, error));
  if (self.head.is_binary && self.head.dev != (uint32_t) device->arch.dev)
    return tiny_fail (error, TINY_STATUS_CORRUPT, "%s: made for another device or driver",
                      args->name);
  TINY_TRY (build (device, &self.head, args->name, data, size, &self.program, error));
  snprintf (entry, sizeof entry, "tiny_%s", args->name);
  self.kernel = cl.CreateKernel (self.program, entry, &code);
  *out = code == CL_SUCCESS ? malloc (sizeof self) : NULL;
  if (*out != NULL)
    **out = self;
  else
    cl.ReleaseProgram (self.program);
  return *out != NULL ? TINY_STATUS_OK
                      : cl_check (error, TINY_STATUS_CORRUPT,
                                  code ? code : CL_OUT_OF_HOST_MEMORY, args->name);
}

void
cl_program_unload (ClDevice *device, ClProgram *self)
{
  cl.ReleaseKernel (self->kernel);
  cl.ReleaseProgram (self->program);
  free (self);
}
