/* SPDX-License-Identifier: MIT
 *
 * ref-runner.c: runs linear programs with work-groups on REF, which finds missing barriers. */
#include "ref-runner.h"

#include "../case-fails.h"
#include "../sdk-reference/ref-harness.h"
#include "ir/tiny-dtype.h"

static gboolean
is_ok (const Rig *rig, TinyStatus status, const char *opts)
{
  if (status != TINY_STATUS_OK)
    CASE_FAILS ("REF: %s, with \"%s\"", rig->error.text, opts);
  return status == TINY_STATUS_OK;
}

static Rig *
get_rig (void)
{
  static Rig rig;
  if (rig.library == NULL)
    rig_open (&rig, REF_PLUGIN, "ref");
  return &rig;
}

void
run_on_ref (const TinyLinear *linear,
            gpointer *buffers,
            const gint64 *variables,
            const char *opts)
{
  Rig *rig = get_rig ();
  g_autofree void *binary = NULL;
  g_autofree TinySpan *spans = g_new0 (TinySpan, linear->n_params + 1);
  TinyPluginProgram *program = NULL;
  TinyCompileArgs args
      = { .struct_size = sizeof args, .arch = "", .name = linear->name, .linear = linear };
  TinyProgramArgs load = { .struct_size = sizeof load,
                           .name = linear->name,
                           .arch = "",
                           .n_params = linear->n_params,
                           .n_variables = linear->n_variables };
  memcpy (load.group, linear->group, sizeof load.group);
  if (!is_ok (rig, rig->module->renderers->compile (&args, &binary, &load.size, &rig->error),
              opts))
    return;
  load.data = binary;
  if (!is_ok (rig, rig->table->program_load (rig->device, &load, &program, &rig->error), opts))
    return;
  void *mapped;
  for (guint i = 0; i < linear->n_params; i++) {
    const TinyParam *p = &linear->params[i];
    spans[i].n_bytes = p->n_elements * tiny_dtype_get_n_bytes (p->dtype);
    is_ok (rig,
           rig->table->alloc (rig->device, spans[i].n_bytes, &spans[i].buffer, &rig->error),
           opts);
    is_ok (rig, rig->table->map (rig->device, spans[i].buffer, &mapped, &rig->error), opts);
    memcpy (mapped, buffers[i], spans[i].n_bytes);
  }
  TinyCommand command = { .struct_size = sizeof command,
                          .type = TINY_COMMAND_DISPATCH,
                          .program = program,
                          .buffers = spans,
                          .n_buffers = linear->n_params,
                          .variables = variables,
                          .n_variables = linear->n_variables };
  memcpy (command.grid, linear->grid, sizeof command.grid);
  TinySubmit submit = { .struct_size = sizeof submit, .commands = &command, .n_commands = 1 };
  is_ok (rig, rig->table->submit (rig->device, rig->queue, &submit, &rig->error), opts);
  for (guint i = 0; i < linear->n_params; i++) {
    is_ok (rig, rig->table->map (rig->device, spans[i].buffer, &mapped, &rig->error), opts);
    memcpy (buffers[i], mapped, spans[i].n_bytes);
    rig->table->free (rig->device, spans[i].buffer);
  }
  rig->table->program_unload (rig->device, program);
}
