/* SPDX-License-Identifier: MIT
 *
 * webgpu-program.c: WGSL becomes a pipeline. The shader's own compiler runs here, in the library. */
#include "webgpu.h"

static WGPUBindGroupLayout
new_layout (Device *device, uint32_t n, WGPUBufferBindingType type)
{
  WGPUBindGroupLayoutEntry entries[MAX_BUFFERS] = { 0 };
  for (uint32_t i = 0; i < n; i++) {
    entries[i].binding = i;
    entries[i].visibility = WGPUShaderStage_Compute;
    entries[i].buffer.type = type;
  }
  const WGPUBindGroupLayoutDescriptor descriptor = { .entryCount = n, .entries = entries };
  return wgpu.DeviceCreateBindGroupLayout (device->handle, &descriptor);
}

static void
fill (Device *device, const TinyProgramArgs *args, Program *out)
{
  snprintf (out->entry, sizeof out->entry, WEBGPU_ENTRY "%s", args->name);
  WGPUShaderSourceWGSL source = { .chain = { .sType = WGPUSType_ShaderSourceWGSL },
                                  .code = { args->data, (size_t) args->size } };
  const WGPUShaderModuleDescriptor module
      = { .nextInChain = &source.chain, .label = { args->name, WGPU_STRLEN } };
  out->points_per_group = webgpu_points (args->group);
  out->buffers = new_layout (device, args->n_params, WGPUBufferBindingType_Storage);
  out->variables = new_layout (device, args->n_variables, WGPUBufferBindingType_Uniform);
  const WGPUBindGroupLayout groups[] = { out->buffers, out->variables };
  const WGPUPipelineLayoutDescriptor layout
      = { .bindGroupLayoutCount = 2, .bindGroupLayouts = groups };
  const WGPUComputePipelineDescriptor descriptor
      = { .label = { out->entry, WGPU_STRLEN },
          .layout = wgpu.DeviceCreatePipelineLayout (device->handle, &layout),
          .compute = { .module = wgpu.DeviceCreateShaderModule (device->handle, &module),
                       .entryPoint = { out->entry, WGPU_STRLEN } } };
  out->pipeline = wgpu.DeviceCreateComputePipeline (device->handle, &descriptor);
  wgpu.ShaderModuleRelease (descriptor.compute.module);
  wgpu.PipelineLayoutRelease (descriptor.layout);
}

void
webgpu_program_unload (Device *device, Program *self)
{
  wgpu.ComputePipelineRelease (self->pipeline);
  wgpu.BindGroupLayoutRelease (self->buffers);
  wgpu.BindGroupLayoutRelease (self->variables);
  free (self);
}

/* What the core renders is ASCII; implementations have ended the process over bytes that are no text. */
static int
is_text (const char *data, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (data[i] != '\n' && data[i] != '\t' && (data[i] < ' ' || data[i] > '~'))
      return 0;
  return 1;
}

/* Of a shader and a pipeline that are both refused, a scope keeps the first complaint: the shader's. WGSL asks for no
 * newline at its end, but a program without one has been cut. */
TinyStatus
webgpu_program_load (Device *device, const TinyProgramArgs *args, Program **out, Error *error)
{
  TINY_TRY (TINY_CHECK_IN (args, 0, error));
  char head[80];
  const char *text = args->data;
  const size_t n
      = (size_t) snprintf (head, sizeof head, WEBGPU_HEAD, webgpu_points (args->group),
                           args->n_variables, args->n_params);
  if (args->size < n || memcmp (text, head, n) != 0 || text[args->size - 1] != '\n'
      || !is_text (text, (size_t) args->size))
    return tiny_fail (error, TINY_STATUS_CORRUPT, "%s: is not the program it is said to be",
                      args->name);
  *out = calloc (1, sizeof **out);
  if (*out == NULL)
    return TINY_STATUS_OUT_OF_MEMORY;
  webgpu_scope_open (device);
  fill (device, args, *out);
  TinyStatus status
      = webgpu_scope_close (device, args->name, TINY_STATUS_COMPILE, TINY_STATUS_OK, error);
  if (status != TINY_STATUS_OK)
    webgpu_program_unload (device, *out);
  return status;
}
