/* SPDX-License-Identifier: MIT
 *
 * webgpu-program.c: WGSL becomes a pipeline. The shader's own compiler runs here, in the library. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "webgpu.h"

/* ---- the head of the source, which webgpu_compile() wrote ---- */
static TinyStatus
read_head (const TinyProgramArgs *args, TinyPluginProgram *out, TinyPluginError *error)
{
  char head[160] = "";
  const char *data = args->data;
  size_t n = args->size < sizeof head - 1 ? (size_t) args->size : sizeof head - 1;
  memcpy (head, data, n);
  char *end = strchr (head, '\n');
  if (end != NULL)
    *end = '\0';
  unsigned points, n_variables, n_params;
  if (end == NULL
      || sscanf (head, "//tiny wgsl 1 points=%u variables=%u buffers=%u", &points, &n_variables,
                 &n_params)
             != 3
      || points == 0 || n_variables != args->n_variables || n_params != args->n_params
      || n_params > MAX_BUFFERS || n_variables > MAX_VARIABLES)
    return webgpu_fail (error, TINY_STATUS_CORRUPT, "%s: is not the program it is said to be",
                        args->name);
  out->points_per_group = points;
  out->n_params = args->n_params;
  out->n_variables = n_variables;
  snprintf (out->name, sizeof out->name, "%s", args->name);
  return TINY_STATUS_OK;
}

/* ---- the library's objects ---- */
static WGPUBindGroupLayout
new_group_layout (TinyPluginDevice *device, uint32_t n, WGPUBufferBindingType type)
{
  WGPUBindGroupLayoutEntry *entries = calloc (n + 1, sizeof *entries);
  for (uint32_t i = 0; i < n && entries != NULL; i++) {
    entries[i].binding = i;
    entries[i].visibility = WGPUShaderStage_Compute;
    entries[i].buffer.type = type;
  }
  const WGPUBindGroupLayoutDescriptor descriptor = { .entryCount = n, .entries = entries };
  WGPUBindGroupLayout layout
      = entries != NULL ? wgpu.DeviceCreateBindGroupLayout (device->handle, &descriptor) : NULL;
  free (entries);
  return layout;
}

static WGPUShaderModule
new_module (TinyPluginDevice *device, const TinyProgramArgs *args)
{
  const WGPUShaderSourceWGSL source = { .chain = { .sType = WGPUSType_ShaderSourceWGSL },
                                        .code = { args->data, (size_t) args->size } };
  const WGPUShaderModuleDescriptor descriptor
      = { .nextInChain = (WGPUChainedStruct *) &source.chain,
          .label = { args->name, WGPU_STRLEN } };
  return wgpu.DeviceCreateShaderModule (device->handle, &descriptor);
}

static void
make_pipeline (TinyPluginDevice *device, TinyPluginProgram *program, WGPUShaderModule module)
{
  char entry[sizeof program->name + 16];
  snprintf (entry, sizeof entry, "tiny_kernel_%s", program->name);
  const WGPUBindGroupLayout groups[] = { program->buffers, program->variables };
  const WGPUPipelineLayoutDescriptor layout
      = { .bindGroupLayoutCount = 2, .bindGroupLayouts = groups };
  WGPUComputePipelineDescriptor descriptor
      = { .label = { program->name, WGPU_STRLEN },
          .compute = { .module = module, .entryPoint = { entry, WGPU_STRLEN } } };
  descriptor.layout = wgpu.DeviceCreatePipelineLayout (device->handle, &layout);
  if (descriptor.layout == NULL)
    return;
  program->pipeline = wgpu.DeviceCreateComputePipeline (device->handle, &descriptor);
  wgpu.PipelineLayoutRelease (descriptor.layout);
}

void
webgpu_program_unload (TinyPluginDevice *device, TinyPluginProgram *program)
{
  if (program->pipeline != NULL)
    wgpu.ComputePipelineRelease (program->pipeline);
  if (program->buffers != NULL)
    wgpu.BindGroupLayoutRelease (program->buffers);
  if (program->variables != NULL)
    wgpu.BindGroupLayoutRelease (program->variables);
  free (program);
}

/* The module first and by itself: of a pipeline made of a bad one, only that would be said. */
static TinyStatus
build (TinyPluginDevice *device,
       const TinyProgramArgs *args,
       TinyPluginProgram *program,
       TinyPluginError *error)
{
  webgpu_scope_open (device);
  WGPUShaderModule module = new_module (device, args);
  TinyStatus status = webgpu_scope_close (device, args->name, TINY_STATUS_COMPILE, error);
  if (status == TINY_STATUS_OK && module != NULL) {
    webgpu_scope_open (device);
    program->buffers
        = new_group_layout (device, program->n_params, WGPUBufferBindingType_Storage);
    program->variables
        = new_group_layout (device, program->n_variables, WGPUBufferBindingType_Uniform);
    if (program->buffers != NULL && program->variables != NULL)
      make_pipeline (device, program, module);
    status = webgpu_scope_close (device, args->name, TINY_STATUS_COMPILE, error);
  }
  if (module != NULL)
    wgpu.ShaderModuleRelease (module);
  if (status == TINY_STATUS_OK && program->pipeline == NULL)
    status = webgpu_fail (error, TINY_STATUS_COMPILE, "%s: the library gives no pipeline",
                          args->name);
  return status;
}

TinyStatus
webgpu_program_load (TinyPluginDevice *device,
                     const TinyProgramArgs *args,
                     TinyPluginProgram **out,
                     TinyPluginError *error)
{
  if (args->struct_size < sizeof *args)
    return webgpu_fail (error, TINY_STATUS_INVALID, "program arguments are too small");
  TinyPluginProgram *program = calloc (1, sizeof *program);
  if (program == NULL)
    return webgpu_fail (error, TINY_STATUS_OUT_OF_MEMORY, "out of host memory");
  TinyStatus status = read_head (args, program, error);
  if (status == TINY_STATUS_OK) {
    pthread_mutex_lock (&device->lock);
    status = build (device, args, program, error);
    pthread_mutex_unlock (&device->lock);
  }
  if (status == TINY_STATUS_OK)
    *out = program;
  else
    webgpu_program_unload (device, program);
  return status;
}
