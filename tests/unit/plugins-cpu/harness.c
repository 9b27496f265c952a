/* SPDX-License-Identifier: MIT
 *
 * harness.c: see harness.h. The plugin's path comes from the build (CPU_PLUGIN). */
#include "harness.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "../case-fails.h"

Harness h;
const uint32_t one_point[3] = { 1, 1, 1 };

static void *
host_alloc (uint64_t n_bytes)
{
  void *memory = NULL;
  return posix_memalign (&memory, 64, n_bytes > 0 ? n_bytes : 1) == 0 ? memory : NULL;
}

static void
host_log (int32_t level, const char *domain, const char *text)
{
}

static const TinyHost host = {
  .struct_size = sizeof host, .abi_major = 1, .alloc = host_alloc, .free = free, .log = host_log
};

TinyPluginError
new_error (void)
{
  return (TinyPluginError){ .struct_size = sizeof (TinyPluginError) };
}

void
harness_open (void)
{
  TinyPluginError error = new_error ();
  void *handle = dlopen (CPU_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL)
    g_error ("%s", dlerror ());
  TinyPluginEntry entry;
  *(void **) &entry = dlsym (handle, TINY_PLUGIN_ENTRY_SYMBOL);
  h.module = entry (0, &error);
  g_assert_cmpint (h.module->init (&host, &error), ==, TINY_STATUS_OK);
  h.llvm = &h.module->renderers[0];
  h.clang = &h.module->renderers[1];
  h.target.struct_size = sizeof h.target;
  g_assert_cmpint (h.llvm->target ("", &h.target, &error), ==, TINY_STATUS_OK);
  if (h.module->open ("cpu", &h.device, &h.table, &error) != TINY_STATUS_OK)
    g_error ("%s", error.text);
  g_assert_cmpint (h.table->queue_create (h.device, &h.queue, &error), ==, TINY_STATUS_OK);
}

void
harness_close (void)
{
  h.table->queue_destroy (h.device, h.queue);
  h.table->close (h.device);
  h.module->fini ();
}

Program *
program_new (const char *name)
{
  Program *p = g_new0 (Program, 1);
  p->linear = (TinyLinear){ .struct_size = sizeof (TinyLinear),
                            .name = name,
                            .instrs = p->instrs,
                            .sources = p->sources,
                            .params = p->params,
                            .grid = { 1, 1, 1 },
                            .group = { 1, 1, 1 } };
  return p;
}

uint32_t
add (Program *p, TinyInstrOp op, TinyDType dtype, unsigned lanes, int64_t arg, ...)
{
  TinyInstr *instr = &p->instrs[p->linear.n_instrs];
  *instr = (TinyInstr){ .op = op, .dtype = dtype, .lanes = lanes, .arg = arg };
  instr->sources = p->linear.n_sources;
  va_list list;
  va_start (list, arg);
  for (int source; (source = va_arg (list, int)) != -1; instr->n_sources++)
    p->sources[p->linear.n_sources++] = (uint32_t) source;
  va_end (list);
  g_assert_cmpuint (p->linear.n_instrs, <, G_N_ELEMENTS (p->instrs) - 1);
  return p->linear.n_instrs++;
}

uint32_t
program_param (Program *p, TinyDType dtype, uint64_t n, uint32_t flags)
{
  p->params[p->linear.n_params] = (TinyParam){ dtype, flags, n };
  return add (p, TINY_INSTR_PARAM, dtype, 1, p->linear.n_params++, -1);
}

int64_t
bits_of (double value)
{
  int64_t bits;
  memcpy (&bits, &value, sizeof bits);
  return bits;
}

TinyStatus
program_compile (Program *p, void **data, uint64_t *size, TinyPluginError *error)
{
  TinyCompileArgs args = { .struct_size = sizeof args,
                           .arch = h.target.arch,
                           .name = p->linear.name,
                           .linear = &p->linear };
  return h.llvm->compile (&args, data, size, error);
}

TinyPluginProgram *
program_build (Program *p)
{
  TinyPluginError error = new_error ();
  void *data = NULL;
  uint64_t size = 0;
  if (program_compile (p, &data, &size, &error) != TINY_STATUS_OK) {
    CASE_FAILS ("compile %s: %s", p->linear.name, error.text);
    return NULL;
  }
  TinyProgramArgs args = { .struct_size = sizeof args,
                           .name = p->linear.name,
                           .arch = h.target.arch,
                           .data = data,
                           .size = size,
                           .n_params = p->linear.n_params,
                           .n_variables = p->linear.n_variables,
                           .group = { 1, 1, 1 } };
  TinyPluginProgram *program = NULL;
  if (g_getenv ("HARNESS_ASM") != NULL) {
    char *text = NULL;
    if (h.llvm->disassemble (data, size, &text, &error) == TINY_STATUS_OK)
      fprintf (stderr, "%s: %s\n", p->linear.name, text);
    free (text);
  }
  if (h.table->program_load (h.device, &args, &program, &error) != TINY_STATUS_OK)
    CASE_FAILS ("load %s: %s", p->linear.name, error.text);
  free (data);
  return program;
}

char *
program_list (Program *p, const char *arch)
{
  TinyPluginError error = new_error ();
  TinyCompileArgs args = {
    .struct_size = sizeof args, .arch = arch, .name = p->linear.name, .linear = &p->linear
  };
  void *data = NULL;
  uint64_t size = 0;
  char *text = NULL;
  g_assert_cmpint (h.llvm->compile (&args, &data, &size, &error), ==, TINY_STATUS_OK);
  g_assert_cmpint (h.llvm->disassemble (data, size, &text, &error), ==, TINY_STATUS_OK);
  free (data);
  return text;
}

void
program_unload (TinyPluginProgram *program)
{
  if (program != NULL)
    h.table->program_unload (h.device, program);
}

void
program_run (TinyPluginProgram *program,
             const Array *arrays,
             unsigned n,
             const int64_t *variables,
             unsigned n_variables,
             const uint32_t grid[3])
{
  TinyPluginError error = new_error ();
  TinySpan spans[16];
  TinyCommand commands[33];
  unsigned n_commands = 0;
  if (program == NULL)
    return;
  for (unsigned i = 0; i < n; i++) {
    spans[i] = (TinySpan){ NULL, 0, arrays[i].n_bytes };
    g_assert_cmpint (h.table->alloc (h.device, arrays[i].n_bytes, &spans[i].buffer, &error), ==,
                     0);
    commands[n_commands++] = (TinyCommand){ .struct_size = sizeof (TinyCommand),
                                            .type = TINY_COMMAND_UPLOAD,
                                            .dst = spans[i],
                                            .host = arrays[i].data };
  }
  commands[n_commands++] = (TinyCommand){ .struct_size = sizeof (TinyCommand),
                                          .type = TINY_COMMAND_DISPATCH,
                                          .program = program,
                                          .buffers = spans,
                                          .variables = variables,
                                          .n_buffers = n,
                                          .n_variables = n_variables,
                                          .grid = { grid[0], grid[1], grid[2] } };
  for (unsigned i = 0; i < n; i++)
    commands[n_commands++] = (TinyCommand){ .struct_size = sizeof (TinyCommand),
                                            .type = TINY_COMMAND_DOWNLOAD,
                                            .src = spans[i],
                                            .host = arrays[i].data };
  TinySubmit submit
      = { .struct_size = sizeof submit, .commands = commands, .n_commands = n_commands };
  if (h.table->submit (h.device, h.queue, &submit, &error) != TINY_STATUS_OK)
    CASE_FAILS ("submit: %s", error.text);
  for (unsigned i = 0; i < n; i++)
    h.table->free (h.device, spans[i].buffer);
}
