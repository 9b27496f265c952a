/* SPDX-License-Identifier: MIT
 *
 * ref-harness.h: linear programs written by hand, and a way to run them on a plugin.
 *
 * A Script collects instructions; each call returns the new instruction's number. */
#pragma once

#include <dlfcn.h>
#include <glib.h>
#include <string.h>

#include "tiny-plugin.h"

#define MAX_SCRIPT 16384

typedef struct {
  TinyInstr instrs[MAX_SCRIPT];
  guint32 sources[4 * MAX_SCRIPT];
  TinyParam params[8];
  TinyLinear linear;
} Script;

static inline void
script_init (Script *self)
{
  memset (self, 0, sizeof *self);
  self->linear = (TinyLinear){ .struct_size = sizeof self->linear,
                               .name = "script",
                               .instrs = self->instrs,
                               .sources = self->sources,
                               .params = self->params,
                               .grid = { 1, 1, 1 },
                               .group = { 1, 1, 1 } };
}

static inline guint32
emit_n (Script *self,
        guint op,
        guint dtype,
        guint lanes,
        gint64 arg,
        guint n,
        const guint32 *sources)
{
  TinyLinear *linear = &self->linear;
  g_assert_cmpuint (linear->n_instrs, <, MAX_SCRIPT);
  self->instrs[linear->n_instrs] = (TinyInstr){ .op = (guint16) op,
                                                .dtype = (guint8) dtype,
                                                .lanes = (guint16) lanes,
                                                .n_sources = (guint16) n,
                                                .sources = linear->n_sources,
                                                .arg = arg };
  for (guint i = 0; i < n; i++)
    self->sources[linear->n_sources++] = sources[i];
  return linear->n_instrs++;
}

/* emit (script, ADD, F32, lanes, a, b) */
#define emit(self, op, dtype, lanes, ...)                                                      \
  emit_n (self, TINY_INSTR_##op, TINY_DTYPE_##dtype, lanes, 0,                                 \
          sizeof ((guint32[]){ __VA_ARGS__ }) / sizeof (guint32), (guint32[]){ __VA_ARGS__ })

static inline guint32
emit_arg (Script *self, guint op, guint dtype, gint64 arg)
{
  return emit_n (self, op, dtype, 1, arg, 0, NULL);
}

static inline guint32
emit_float (Script *self, guint dtype, double value)
{
  gint64 bits;
  memcpy (&bits, &value, sizeof bits);
  return emit_arg (self, TINY_INSTR_CONST, dtype, bits);
}

static inline guint32
emit_int (Script *self, guint dtype, gint64 value)
{
  return emit_arg (self, TINY_INSTR_CONST, dtype, value);
}

/* The next parameter, readable and writable. */
static inline guint32
emit_param (Script *self, guint dtype, guint64 n_elements)
{
  guint n = self->linear.n_params++;
  self->params[n] = (TinyParam){ dtype, TINY_PARAM_READ | TINY_PARAM_WRITE, n_elements };
  return emit_arg (self, TINY_INSTR_PARAM, dtype, n);
}

/* ---- the plugin under test ---- */
typedef struct {
  void *library;
  const TinyPluginModule *module;
  const TinyDeviceTable *table;
  TinyPluginDevice *device;
  TinyPluginQueue *queue;
  TinyPluginError error;
} Rig;

static void *
host_alloc (guint64 n_bytes)
{
  return g_try_malloc (n_bytes);
}

static const TinyHost rig_host = { .struct_size = sizeof (TinyHost),
                                   .abi_major = TINY_PLUGIN_ABI_MAJOR,
                                   .abi_minor = TINY_PLUGIN_ABI_MINOR,
                                   .alloc = host_alloc,
                                   .free = g_free };

static inline void
rig_open (Rig *self, const char *path, const char *id)
{
  memset (self, 0, sizeof *self);
  self->error.struct_size = sizeof self->error;
  self->library = dlopen (path, RTLD_NOW | RTLD_LOCAL);
  g_assert_nonnull (self->library);
  TinyPluginEntry entry = (TinyPluginEntry) dlsym (self->library, TINY_PLUGIN_ENTRY_SYMBOL);
  g_assert_nonnull (entry);
  self->module = entry (TINY_PLUGIN_ABI_MINOR, &self->error);
  g_assert_nonnull (self->module);
  g_assert_cmpint (self->module->init (&rig_host, &self->error), ==, TINY_STATUS_OK);
  g_assert_cmpint (self->module->open (id, &self->device, &self->table, &self->error), ==, 0);
  g_assert_cmpint (self->table->queue_create (self->device, &self->queue, &self->error), ==, 0);
}

static inline void
rig_close (Rig *self)
{
  if (self->table->queue_destroy != NULL)
    self->table->queue_destroy (self->device, self->queue);
  self->table->close (self->device);
  self->module->fini ();
  dlclose (self->library);
}

/* The binary of a script; free with g_free(). */
static inline TinyStatus
rig_compile (Rig *self, const Script *script, void **out_data, guint64 *out_size)
{
  TinyCompileArgs args = { .struct_size = sizeof args,
                           .arch = "",
                           .name = script->linear.name,
                           .linear = &script->linear };
  return self->module->renderers->compile (&args, out_data, out_size, &self->error);
}

static inline TinyStatus
rig_load (
    Rig *self, const Script *script, const void *data, guint64 size, TinyPluginProgram **out)
{
  TinyProgramArgs args = { .struct_size = sizeof args,
                           .name = script->linear.name,
                           .arch = "",
                           .data = data,
                           .size = size,
                           .n_params = script->linear.n_params,
                           .n_variables = script->linear.n_variables };
  memcpy (args.group, script->linear.group, sizeof args.group);
  return self->table->program_load (self->device, &args, out, &self->error);
}

/* Runs @script over @data: one block of memory for each parameter, read and written back. */
static inline TinyStatus
rig_run (Rig *self,
         const Script *script,
         void *const *data,
         const gsize *sizes,
         const gint64 *variables)
{
  g_autofree void *binary = NULL;
  guint64 size = 0;
  TinyPluginProgram *program = NULL;
  TinyStatus status = rig_compile (self, script, &binary, &size);
  if (status == TINY_STATUS_OK)
    status = rig_load (self, script, binary, size, &program);
  if (status != TINY_STATUS_OK)
    return status;
  guint n = script->linear.n_params;
  TinySpan spans[8] = { 0 };
  TinyCommand commands[17] = { 0 };
  for (guint i = 0; i < n; i++) {
    spans[i].n_bytes = sizes[i];
    g_assert_cmpint (
        self->table->alloc (self->device, sizes[i], &spans[i].buffer, &self->error), ==, 0);
    commands[i] = (TinyCommand){ .struct_size = sizeof (TinyCommand),
                                 .type = TINY_COMMAND_UPLOAD,
                                 .dst = spans[i],
                                 .host = data[i] };
    commands[n + 1 + i] = commands[i];
    commands[n + 1 + i].type = TINY_COMMAND_DOWNLOAD;
    commands[n + 1 + i].src = spans[i];
  }
  commands[n] = (TinyCommand){ .struct_size = sizeof (TinyCommand),
                               .type = TINY_COMMAND_DISPATCH,
                               .program = program,
                               .buffers = spans,
                               .n_buffers = n,
                               .variables = variables,
                               .n_variables = script->linear.n_variables };
  memcpy (commands[n].grid, script->linear.grid, sizeof commands[n].grid);
  TinySubmit submit
      = { .struct_size = sizeof submit, .commands = commands, .n_commands = 2 * n + 1 };
  status = self->table->submit (self->device, self->queue, &submit, &self->error);
  for (guint i = 0; i < n; i++)
    self->table->free (self->device, spans[i].buffer);
  self->table->program_unload (self->device, program);
  return status;
}
