/* SPDX-License-Identifier: MIT
 *
 * cl-program.c: kernels: source to the driver's binary, and that to a kernel again.
 *
 * compile() builds for the device that its architecture names and takes the driver's own binary, which
 * the core keeps; where that device is not there, the result is the source, and it is built when it is
 * loaded. Before either lies a ClBlob, which says how the kernel is launched. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cl.h"

typedef struct {
  char magic[8];
  uint32_t dev, checksum; /* of what follows the head */
  uint32_t is_binary, is_rounded, has_int64, has_free_groups;
  uint32_t n_params, n_variables, group[3], reserved;
  uint8_t flags[CL_MAX_PARAMS];
} ClBlob;
static const char magic[8] = "TINYCL1";

static uint32_t
sum (const uint8_t *data, size_t n)
{
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < n; i++)
    hash = (hash ^ data[i]) * 16777619u;
  return hash;
}

static ClUnit *
find_unit (uint64_t dev)
{
  for (uint32_t i = 0; i < cl_count_units (); i++)
    if (cl_get_unit (i)->arch.dev == dev)
      return cl_get_unit (i);
  return NULL;
}

/* The compiler's log from its first error on. */
static TinyStatus
fail_build (const ClUnit *unit,
            cl_program program,
            cl_int code,
            const char *name,
            TinyPluginError *error)
{
  size_t size = 0;
  cl.GetProgramBuildInfo (program, unit->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
  char *log = calloc (1, size + 1);
  if (log != NULL)
    cl.GetProgramBuildInfo (program, unit->device, CL_PROGRAM_BUILD_LOG, size, log, NULL);
  TinyStatus status = cl_fail_call (error, TINY_STATUS_COMPILE, code, name);
  if (log != NULL && *log != '\0' && status == TINY_STATUS_COMPILE) {
    char *first = strstr (log, "error:");
    while (first != NULL && first > log && first[-1] != '\n')
      first--;
    cl_fail (error, status, "%s does not build: %s", name, first != NULL ? first : log);
  }
  free (log);
  return status;
}

static TinyStatus
build (const ClUnit *unit,
       const ClBlob *blob,
       cl_program program,
       const char *name,
       TinyPluginError *error)
{
  const char *options = blob->is_rounded
                            ? "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt"
                            : "-cl-std=CL1.2";
  cl_int code = cl.BuildProgram (program, 1, &unit->device, options, NULL, NULL);
  return code == CL_SUCCESS ? TINY_STATUS_OK : fail_build (unit, program, code, name, error);
}

/* ---- compiling ---- */
static void
fill_blob (const TinyLinear *linear, const ClArch *arch, ClBlob *out)
{
  bool shares = false;
  for (uint32_t i = 0; i < linear->n_instrs; i++)
    shares |= linear->instrs[i].op == TINY_INSTR_LOCAL
              || linear->instrs[i].op == TINY_INSTR_BARRIER;
  *out = (ClBlob){ .dev = (uint32_t) arch->dev,
                   .is_rounded = CL_HAS (arch, ROUNDED),
                   .has_int64 = CL_HAS (arch, INT64),
                   .n_params = linear->n_params,
                   .n_variables = linear->n_variables };
  memcpy (out->magic, magic, sizeof magic);
  memcpy (out->group, linear->group, sizeof out->group);
  out->has_free_groups = CL_HAS (arch, GROUPS) && !shares
                         && linear->group[0] * linear->group[1] * linear->group[2] == 1;
  for (uint32_t i = 0; i < linear->n_params; i++)
    out->flags[i] = (uint8_t) linear->params[i].flags;
}

/* What stands before the core's source, in which nothing depends on the architecture. */
static char *
write_source (const TinyCompileArgs *args,
              const ClArch *arch,
              const ClBlob *blob,
              size_t *out_size)
{
  char head[512];
  int n = snprintf (head, sizeof head,
                    "#define TINY_FP16 %d\n#define TINY_FP64 %d\n#define TINY_INT64 %d\n"
                    "#define TINY_GRID %s\n#define TINY_GROUP ",
                    CL_HAS (arch, FP16), CL_HAS (arch, FP64), CL_HAS (arch, INT64),
                    blob->has_free_groups ? "get_global_id" : "get_group_id");
  if (!blob->has_free_groups)
    n += snprintf (head + n, sizeof head - (size_t) n,
                   "__attribute__ ((reqd_work_group_size (%u, %u, %u)))", blob->group[0],
                   blob->group[1], blob->group[2]);
  n += snprintf (head + n, sizeof head - (size_t) n, "\n");
  *out_size = (size_t) n + args->source_size;
  char *text = malloc (*out_size + 1);
  if (text != NULL) {
    memcpy (text, head, (size_t) n);
    memcpy (text + n, args->source, args->source_size + 1);
  }
  return text;
}

static TinyStatus
finish (ClBlob *blob,
        const void *data,
        size_t size,
        void **out_data,
        uint64_t *out_size,
        TinyPluginError *error)
{
  uint8_t *out = cl_host->alloc (sizeof *blob + size);
  if (out == NULL)
    return cl_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for a program");
  blob->checksum = sum (data, size);
  memcpy (out, blob, sizeof *blob);
  memcpy (out + sizeof *blob, data, size);
  *out_data = out;
  *out_size = sizeof *blob + size;
  return TINY_STATUS_OK;
}

/* Builds @source and takes the binary, which the caller frees; without one the source serves. */
static TinyStatus
build_binary (const ClUnit *unit,
              ClBlob *blob,
              const char *name,
              char **source,
              size_t *size,
              TinyPluginError *error)
{
  cl_int code;
  cl_program program
      = cl.CreateProgramWithSource (unit->context, 1, (const char **) source, size, &code);
  if (program == NULL)
    return cl_fail_call (error, TINY_STATUS_COMPILE, code, name);
  TinyStatus status = build (unit, blob, program, name, error);
  size_t n = 0;
  if (status == TINY_STATUS_OK)
    cl.GetProgramInfo (program, CL_PROGRAM_BINARY_SIZES, sizeof n, &n, NULL);
  char *binary = n > 0 ? malloc (n) : NULL;
  if (binary != NULL
      && cl.GetProgramInfo (program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL)
             == CL_SUCCESS) {
    free (*source);
    *source = binary;
    *size = n;
    blob->is_binary = 1;
  } else
    free (binary);
  cl.ReleaseProgram (program);
  return status;
}

TinyStatus
cl_compile (const TinyCompileArgs *args,
            void **out_data,
            uint64_t *out_size,
            TinyPluginError *error)
{
  if (args->linear == NULL || args->source == NULL)
    return cl_fail (error, TINY_STATUS_INVALID, "compile: no source");
  if (args->linear->n_params > CL_MAX_PARAMS || args->linear->n_variables > CL_MAX_VARIABLES)
    return cl_fail (error, TINY_STATUS_COMPILE,
                    "%s has %u buffers and %u variables, %d and %d are the most", args->name,
                    args->linear->n_params, args->linear->n_variables, CL_MAX_PARAMS,
                    CL_MAX_VARIABLES);
  ClArch arch;
  TinyStatus status = cl_arch_parse (args->arch, &(ClArch){ 0 }, &arch, error);
  if (status != TINY_STATUS_OK)
    return status;
  ClBlob blob;
  fill_blob (args->linear, &arch, &blob);
  size_t size;
  char *source = write_source (args, &arch, &blob, &size);
  if (source == NULL)
    return cl_fail (error, TINY_STATUS_OUT_OF_MEMORY, "%s: no memory to compile it",
                    args->name);
  const ClUnit *unit = cl_find_units (NULL) == TINY_STATUS_OK ? find_unit (arch.dev) : NULL;
  if (unit != NULL)
    status = build_binary (unit, &blob, args->name, &source, &size, error);
  if (status == TINY_STATUS_OK)
    status = finish (&blob, source, size, out_data, out_size, error);
  free (source);
  return status;
}

/* ---- loading ---- */
static TinyStatus
check_blob (const ClUnit *unit,
            const TinyProgramArgs *args,
            const ClBlob **out,
            TinyPluginError *error)
{
  const ClBlob *blob = args->data;
  if (args->struct_size < sizeof *args || args->data == NULL || args->size <= sizeof *blob
      || memcmp (blob->magic, magic, sizeof magic) != 0 || blob->n_params > CL_MAX_PARAMS
      || blob->n_variables > CL_MAX_VARIABLES
      || blob->checksum != sum ((const uint8_t *) (blob + 1), args->size - sizeof *blob))
    return cl_fail (error, TINY_STATUS_CORRUPT, "%s: damaged, or no OpenCL program of ours",
                    args->name);
  if (args->n_params != blob->n_params || args->n_variables != blob->n_variables
      || memcmp (args->group, blob->group, sizeof blob->group) != 0)
    return cl_fail (error, TINY_STATUS_CORRUPT, "%s: is not the program it is said to be",
                    args->name);
  if (blob->is_binary && blob->dev != unit->arch.dev)
    return cl_fail (error, TINY_STATUS_CORRUPT, "%s: was made for another device or driver",
                    args->name);
  *out = blob;
  return TINY_STATUS_OK;
}

static cl_program
make_program (const ClUnit *unit, const ClBlob *blob, size_t size, cl_int *out_code)
{
  const unsigned char *data = (const unsigned char *) (blob + 1);
  if (!blob->is_binary)
    return cl.CreateProgramWithSource (unit->context, 1, (const char **) &data, &size,
                                       out_code);
  cl_int status;
  return cl.CreateProgramWithBinary (unit->context, 1, &unit->device, &size, &data, &status,
                                     out_code);
}

TinyStatus
cl_program_load (const ClUnit *unit,
                 const TinyProgramArgs *args,
                 TinyPluginProgram **out,
                 TinyPluginError *error)
{
  const ClBlob *blob = NULL;
  TinyStatus status = check_blob (unit, args, &blob, error);
  if (status != TINY_STATUS_OK)
    return status;
  TinyPluginProgram *self = calloc (1, sizeof *self);
  if (self == NULL)
    return cl_fail (error, TINY_STATUS_OUT_OF_MEMORY, "%s: no memory to load it", args->name);
  self->n_params = blob->n_params;
  self->n_variables = blob->n_variables;
  self->has_free_groups = blob->has_free_groups;
  self->has_int64 = blob->has_int64;
  memcpy (self->group, blob->group, sizeof self->group);
  memcpy (self->flags, blob->flags, sizeof self->flags);
  cl_int code = CL_SUCCESS;
  self->program = make_program (unit, blob, args->size - sizeof *blob, &code);
  if (self->program == NULL)
    status = cl_fail_call (error, TINY_STATUS_CORRUPT, code, args->name);
  else
    status = build (unit, blob, self->program, args->name, error);
  if (status == TINY_STATUS_OK) {
    self->kernel = cl.CreateKernel (self->program, args->name, &code);
    if (self->kernel == NULL)
      status = cl_fail_call (error, TINY_STATUS_CORRUPT, code, args->name);
  }
  if (status == TINY_STATUS_OK)
    *out = self;
  else
    cl_program_unload (self);
  return status;
}

void
cl_program_unload (TinyPluginProgram *self)
{
  if (self->kernel != NULL)
    cl.ReleaseKernel (self->kernel);
  if (self->program != NULL)
    cl.ReleaseProgram (self->program);
  free (self);
}
