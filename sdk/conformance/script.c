/* SPDX-License-Identifier: MIT
 *
 * script.c: linear programs written by hand. */
#include "script.h"

#include <string.h>

#include "render/tiny-render.h"

/* ---- writing ---- */
void
conf_script_init (ConfScript *self, const char *name)
{
  memset (self, 0, sizeof *self);
  g_strlcpy (self->name, name, sizeof self->name);
  self->instrs = g_array_new (FALSE, TRUE, sizeof (TinyInstr));
  self->sources = g_array_new (FALSE, TRUE, sizeof (guint32));
  self->params = g_array_new (FALSE, TRUE, sizeof (TinyParam));
  self->linear = (TinyLinear){ .struct_size = sizeof self->linear,
                               .grid = { 1, 1, 1 },
                               .group = { 1, 1, 1 } };
}

void
conf_script_clear (ConfScript *self)
{
  g_clear_pointer (&self->instrs, g_array_unref);
  g_clear_pointer (&self->sources, g_array_unref);
  g_clear_pointer (&self->params, g_array_unref);
}

guint32
conf_emit (ConfScript *self,
           TinyInstrOp op,
           TinyDType dtype,
           gint64 arg,
           guint n,
           const guint32 *sources)
{
  const TinyInstr instr = { .op = (guint16) op,
                            .dtype = (guint8) dtype,
                            .lanes = 1,
                            .n_sources = (guint16) n,
                            .sources = self->sources->len,
                            .arg = arg };
  g_array_append_vals (self->sources, sources, n);
  g_array_append_val (self->instrs, instr);
  return self->instrs->len - 1;
}

guint32
conf_emit_lanes (ConfScript *self,
                 TinyInstrOp op,
                 TinyDType dtype,
                 guint lanes,
                 guint n,
                 const guint32 *sources)
{
  const guint32 at = conf_emit (self, op, dtype, 0, n, sources);
  g_array_index (self->instrs, TinyInstr, at).lanes = (guint16) lanes;
  return at;
}

guint32
conf_emit_arg (ConfScript *self, TinyInstrOp op, TinyDType dtype, gint64 arg)
{
  return conf_emit (self, op, dtype, arg, 0, NULL);
}

guint32
conf_emit_int (ConfScript *self, TinyDType dtype, gint64 value)
{
  return conf_emit_arg (self, TINY_INSTR_CONST, dtype, value);
}

guint32
conf_emit_param (ConfScript *self, TinyDType dtype, guint32 flags, guint64 n_elements)
{
  const TinyParam param = { .dtype = dtype, .flags = flags, .n_elements = n_elements };
  g_array_append_val (self->params, param);
  return conf_emit_arg (self, TINY_INSTR_PARAM, dtype, self->params->len - 1);
}

guint32
conf_emit_variable_of (ConfScript *self, TinyDType dtype)
{
  return conf_emit_arg (self, TINY_INSTR_VARIABLE, dtype, self->linear.n_variables++);
}

guint32
conf_emit_variable (ConfScript *self)
{
  return conf_emit_variable_of (self, TINY_DTYPE_I32);
}

guint32
conf_emit_index (ConfScript *self, guint axis)
{
  guint32 grid = conf_emit_arg (self, TINY_INSTR_GRID, TINY_DTYPE_I32, axis);
  if (self->linear.group[axis] == 1)
    return grid;
  guint32 group = conf_emit_arg (self, TINY_INSTR_GROUP, TINY_DTYPE_I32, axis);
  guint32 items = conf_emit_int (self, TINY_DTYPE_I32, self->linear.group[axis]);
  guint32 first = CONF_EMIT (self, MUL, I32, grid, items);
  return CONF_EMIT (self, ADD, I32, first, group);
}

void
conf_script_set_group (ConfScript *self, guint axis, guint items)
{
  self->linear.group[axis] = items;
}

void
conf_script_set_grid (ConfScript *self, guint axis, guint groups)
{
  self->linear.grid[axis] = groups;
}

/* ---- a program that takes its time ---- */
static const guint32 stir_factor = 1664525u, stir_increment = 1013904223u;

void
conf_script_init_stir (ConfScript *self, guint n)
{
  conf_script_init (self, "stir");
  conf_script_set_grid (self, 0, n);
  guint32 out = conf_emit_param (self, TINY_DTYPE_U32, TINY_PARAM_WRITE, n);
  guint32 in = conf_emit_param (self, TINY_DTYPE_U32, TINY_PARAM_READ, n);
  guint32 rounds = conf_emit_variable (self), i = conf_emit_index (self, 0);
  guint32 x = conf_emit_arg (self, TINY_INSTR_REGISTER, TINY_DTYPE_U32, 0);
  guint32 first = CONF_EMIT (self, LOAD, U32, in, i);
  guint32 factor = conf_emit_int (self, TINY_DTYPE_U32, stir_factor);
  guint32 increment = conf_emit_int (self, TINY_DTYPE_U32, stir_increment);
  CONF_EMIT (self, STORE, VOID, x, first);
  guint32 round = CONF_EMIT (self, RANGE, I32, rounds);
  guint32 now = CONF_EMIT (self, LOAD, U32, x);
  guint32 product = CONF_EMIT (self, MUL, U32, now, factor);
  guint32 sum = CONF_EMIT (self, ADD, U32, product, increment);
  CONF_EMIT (self, STORE, VOID, x, sum);
  CONF_EMIT (self, END, VOID, round);
  guint32 last = CONF_EMIT (self, LOAD, U32, x);
  CONF_EMIT (self, STORE, VOID, out, i, last);
}

/* x -> a * x + c, @rounds times, by squaring. */
guint32
conf_stir (guint32 x, guint32 rounds)
{
  guint32 a = stir_factor, c = stir_increment;
  for (; rounds > 0; rounds >>= 1) {
    if (rounds & 1)
      x = a * x + c;
    c = a * c + c;
    a *= a;
  }
  return x;
}

const TinyLinear *
conf_script_get (ConfScript *self)
{
  self->linear.name = self->name;
  self->linear.instrs = (const TinyInstr *) (gconstpointer) self->instrs->data;
  self->linear.sources = (const guint32 *) (gconstpointer) self->sources->data;
  self->linear.params = (const TinyParam *) (gconstpointer) self->params->data;
  self->linear.n_instrs = self->instrs->len;
  self->linear.n_sources = self->sources->len;
  self->linear.n_params = self->params->len;
  return &self->linear;
}

/* ---- running ---- */
GBytes *
conf_linear_compile (const TinyRenderer *renderer,
                     const TinyTarget *target,
                     const char *device,
                     const TinyLinear *linear,
                     GError **error)
{
  g_autofree char *source = NULL;
  if (renderer->dialect != NULL) {
    source = tiny_render_source (linear, renderer->dialect, error);
    if (source == NULL)
      return NULL;
  }
  const TinyCompileArgs args = { .struct_size = sizeof args,
                                 .arch = target->arch,
                                 .name = linear->name,
                                 .source = source,
                                 .source_size = source ? strlen (source) : 0,
                                 .linear = linear };
  return tiny_renderer_compile (renderer, device, &args, error);
}

TinyStatus
conf_raw_load (ConfRaw *self,
               const TinyTarget *target,
               const TinyLinear *linear,
               const void *data,
               gsize size,
               TinyPluginProgram **out)
{
  TinyProgramArgs args = { .struct_size = sizeof args,
                           .name = linear->name,
                           .arch = target->arch,
                           .data = data,
                           .size = size,
                           .n_params = linear->n_params,
                           .n_variables = linear->n_variables };
  memcpy (args.group, linear->group, sizeof args.group);
  *out = NULL;
  memset (&self->error, 0, sizeof self->error);
  self->error.struct_size = sizeof self->error;
  return self->table->program_load (self->device, &args, out, &self->error);
}

TinyPluginProgram *
conf_raw_build (ConfRaw *self, const ConfSubject *subject, ConfScript *script)
{
  g_autoptr (GError) error = NULL;
  const TinyLinear *linear = conf_script_get (script);
  TinyPluginProgram *program = NULL;
  g_autoptr (GBytes) binary
      = conf_linear_compile (tiny_device_get_renderer (subject->device), subject->target,
                             tiny_device_get_name (subject->device), linear, &error);
  if (binary == NULL) {
    conf_check_error (self->trial, g_steal_pointer (&error), linear->name);
    return NULL;
  }
  gsize size;
  const void *data = g_bytes_get_data (binary, &size);
  TinyStatus status = conf_raw_load (self, subject->target, linear, data, size, &program);
  conf_check (self->trial, status == TINY_STATUS_OK, "program_load of %s: %s: %s", linear->name,
              conf_status_to_string (status), self->error.text);
  return status == TINY_STATUS_OK ? program : NULL;
}

void
conf_raw_unload (ConfRaw *self, TinyPluginProgram *program)
{
  if (program != NULL)
    self->table->program_unload (self->device, program);
}

TinyCommand
conf_dispatch (TinyPluginProgram *program,
               const TinyLinear *linear,
               const TinySpan *spans,
               const gint64 *variables)
{
  return (TinyCommand){ .struct_size = sizeof (TinyCommand),
                        .type = TINY_COMMAND_DISPATCH,
                        .program = program,
                        .buffers = spans,
                        .n_buffers = linear->n_params,
                        .variables = variables,
                        .n_variables = linear->n_variables,
                        .grid = { linear->grid[0], linear->grid[1], linear->grid[2] } };
}
