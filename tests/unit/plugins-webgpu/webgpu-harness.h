/* SPDX-License-Identifier: MIT
 *
 * webgpu-harness.h: scripts run on the built WebGPU plugin, by the source that the core renders. */
#pragma once

#include "../../device-there.h"
#include "../sdk-reference/ref-harness.h"
#include "render/tiny-render.h"

/* Like rig_open(), on the adapter that the library lists first. */
static inline void
webgpu_open (Rig *self)
{
  TinyCandidate candidate = { .struct_size = sizeof candidate };
  guint32 n = 1;
  memset (self, 0, sizeof *self);
  self->error.struct_size = sizeof self->error;
  self->library = dlopen (WEBGPU_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  g_assert_nonnull (self->library);
  TinyPluginEntry entry = (TinyPluginEntry) dlsym (self->library, TINY_PLUGIN_ENTRY_SYMBOL);
  self->module = entry (TINY_PLUGIN_ABI_MINOR, &self->error);
  g_assert_cmpint (self->module->init (&rig_host, &self->error), ==, TINY_STATUS_OK);
  if (self->module->scan (&candidate, &n, &self->error) != TINY_STATUS_OK
      || self->module->open (candidate.id, &self->device, &self->table, &self->error) != 0)
    g_error ("%s (%s)", self->error.text, self->error.hint);
  /* lavapipe has a table for the process in a variable of its own, util_cpu_caps.L3_affinity_mask: 128 bytes that are
   * reachable as long as the driver is loaded, and lost without a name when it is not. */
  dlopen ("libvulkan_lvp.so", RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

static inline TinyStatus
webgpu_load (Rig *self, const Script *script, TinyPluginProgram **out)
{
  g_autoptr (GError) error = NULL;
  TinyDeviceInfo info = { .struct_size = sizeof info };
  const TinyRenderer *renderer = self->module->renderers;
  g_autofree char *source = tiny_render_source (&script->linear, renderer->dialect, &error);
  g_assert_no_error (error);
  g_assert_cmpint (self->table->info (self->device, &info, &self->error), ==, 0);
  const TinyCompileArgs args = { .struct_size = sizeof args,
                                 .arch = info.arch,
                                 .name = script->linear.name,
                                 .source = source,
                                 .source_size = strlen (source),
                                 .linear = &script->linear };
  void *binary = NULL;
  guint64 size = 0;
  TinyStatus status = renderer->compile (&args, &binary, &size, &self->error);
  if (status == TINY_STATUS_OK)
    status = rig_load (self, script, binary, size, out);
  g_free (binary);
  return status;
}

static inline TinyCommand
webgpu_copy_command (guint type, TinySpan span, void *host)
{
  return (TinyCommand){
    .struct_size = sizeof (TinyCommand), .type = type, .dst = span, .src = span, .host = host
  };
}

static inline TinyStatus
webgpu_submit (Rig *self, const TinyCommand *commands, guint n)
{
  const TinySubmit submit
      = { .struct_size = sizeof submit, .commands = commands, .n_commands = n };
  return self->table->submit (self->device, self->queue, &submit, &self->error);
}

static inline TinyPluginBuffer *
webgpu_alloc (Rig *self, guint64 n_bytes)
{
  TinyPluginBuffer *buffer = NULL;
  if (self->table->alloc (self->device, n_bytes, &buffer, &self->error) != TINY_STATUS_OK)
    g_error ("%s", self->error.text);
  return buffer;
}

/* As rig_run(). */
static inline TinyStatus
webgpu_run (Rig *self,
            const Script *script,
            void *const *data,
            const gsize *sizes,
            const gint64 *variables)
{
  guint n = script->linear.n_params;
  TinyPluginProgram *program = NULL;
  TinySpan spans[8] = { 0 };
  TinyCommand commands[17] = { 0 };
  TinyStatus status = webgpu_load (self, script, &program);
  if (status != TINY_STATUS_OK)
    return status;
  for (guint i = 0; i < n; i++) {
    spans[i] = (TinySpan){ webgpu_alloc (self, sizes[i]), 0, sizes[i] };
    commands[i] = webgpu_copy_command (TINY_COMMAND_UPLOAD, spans[i], data[i]);
    commands[n + 1 + i] = webgpu_copy_command (TINY_COMMAND_DOWNLOAD, spans[i], data[i]);
  }
  commands[n] = (TinyCommand){ .struct_size = sizeof (TinyCommand),
                               .type = TINY_COMMAND_DISPATCH,
                               .program = program,
                               .buffers = spans,
                               .n_buffers = n,
                               .variables = variables,
                               .n_variables = script->linear.n_variables };
  memcpy (commands[n].grid, script->linear.grid, sizeof commands[n].grid);
  status = webgpu_submit (self, commands, 2 * n + 1);
  for (guint i = 0; i < n; i++)
    self->table->free (self->device, spans[i].buffer);
  self->table->program_unload (self->device, program);
  return status;
}
