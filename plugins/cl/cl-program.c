/* SPDX-License-Identifier: MIT
 *
 * cl-program.c: kernels: source to the driver's binary, and that to a kernel again.
 *
 * compile() builds for the device that its architecture names and takes the driver's own binary, which
 * the core keeps; where that device is not there, the result is the source, and it is built when it is
 * loaded. Before either lies a ClHead. */
#include "cl.h"

/* Makes self->program of @size bytes and builds it. Of a source, @brief has the driver read few declarations. */
static cl_int
create (ClDevice *device, ClProgram *self, const void *data, size_t size, bool brief)
{
  cl_int code, status;
  char options[sizeof self->head.options + 32];
  const char *texts[] = { brief ? cl_builtins : "", data };
  snprintf (options, sizeof options, "%s%s", brief ? cl_builtins_option : "",
            self->head.options);
  self->program
      = self->head.is_binary
            ? cl.CreateProgramWithBinary (device->context, 1, &device->device, &size,
                                          (const unsigned char **) &data, &status, &code)
            : cl.CreateProgramWithSource (device->context, 2, texts,
                                          (size_t[]){ strlen (texts[0]), size }, &code);
  return code == CL_SUCCESS
             ? cl.BuildProgram (self->program, 1, &device->device, options, NULL, NULL)
             : code;
}

/* Makes self->program; @error gets the compiler's log. */
static TinyStatus
build (ClDevice *device,
       ClProgram *self,
       const char *name,
       const void *data,
       size_t size,
       ClError *error)
{
  cl_int code = CL_BUILD_PROGRAM_FAILURE;
  for (int brief = device->is_pocl && !self->head.is_binary; brief >= 0; brief--) {
    code = create (device, self, data, size, brief);
    if (code == CL_SUCCESS)
      return TINY_STATUS_OK;
    if (brief && self->program != NULL)
      cl.ReleaseProgram (self->program);
  }
  TinyStatus answer = cl_check (error, TINY_STATUS_COMPILE, code, name);
  if (self->program == NULL)
    return answer;
  cl.GetProgramBuildInfo (self->program, device->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
  char *log = calloc (1, size + 1);
  if (log != NULL)
    cl.GetProgramBuildInfo (self->program, device->device, CL_PROGRAM_BUILD_LOG, size, log,
                            NULL);
  if (answer == TINY_STATUS_COMPILE && log != NULL && *log != '\0')
    tiny_fail (error, answer, "%s: %s", name, log);
  free (log);
  cl.ReleaseProgram (self->program);
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
  ClProgram self = { 0 };
  size_t size = 0;
  void *data;
  TINY_TRY (TINY_CHECK_IN (args, 0, error));
  TINY_TRY (TINY_CHECK_IN (args->linear, 0, error));
  TINY_TRY (tiny_arch_parse (CL_ARCH, args->arch, NULL, (uint64_t *) &arch, error));
  fill_head (args->linear, &arch, &self.head);
  for (ClDevice *i = cl_devices; i < cl_devices + cl_n_devices && self.program == NULL; i++)
    if (i->arch.dev == arch.dev && i->context != NULL)
      TINY_TRY (build (i, &self, args->name, args->source, args->source_size, error));
  if (self.program != NULL)
    cl.GetProgramInfo (self.program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL);
  self.head.is_binary = size > 0;
  size = size > 0 ? size : args->source_size;
  TinyPacked *packed = tiny_pack (cl_host, &self.head, sizeof self.head, size, &data);
  cl_int code = packed != NULL ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
  if (packed != NULL && self.head.is_binary)
    code = cl.GetProgramInfo (self.program, CL_PROGRAM_BINARIES, sizeof data, &data, NULL);
  else if (packed != NULL)
    memcpy (data, args->source, size);
  if (self.program != NULL)
    cl.ReleaseProgram (self.program);
  if (code == CL_SUCCESS)
    tiny_pack_end (packed, size, out, out_size);
  else
    cl_host->free (packed);
  return cl_check (error, TINY_STATUS_COMPILE, code, args->name);
}

TinyStatus
cl_program_load (ClDevice *device, const TinyProgramArgs *args, ClProgram **out, ClError *error)
{
  TINY_TRY (TINY_CHECK_IN (args, 0, error));
  ClProgram self = { .group = { args->group[0], args->group[1], args->group[2] } };
  const void *data = NULL;
  size_t size = 0;
  TINY_TRY (tiny_unpack (args, &self.head, sizeof self.head, &data, &size, error));
  if (self.head.is_binary && self.head.dev != (uint32_t) device->arch.dev)
    return tiny_fail (error, TINY_STATUS_CORRUPT, "%s: made for another device", args->name);
  TINY_TRY (build (device, &self, args->name, data, size, error));
  *out = malloc (sizeof self);
  cl_int code = *out != NULL ? cl.CreateKernelsInProgram (self.program, 1, &self.kernel, NULL)
                             : CL_OUT_OF_HOST_MEMORY;
  if (code == CL_SUCCESS)
    **out = self;
  else {
    cl.ReleaseProgram (self.program);
    free (*out);
  }
  return cl_check (error, TINY_STATUS_CORRUPT, code, args->name);
}

void
cl_program_unload (ClDevice *device, ClProgram *self)
{
  cl.ReleaseKernel (self->kernel);
  cl.ReleaseProgram (self->program);
  free (self);
}
