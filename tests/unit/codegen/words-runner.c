/* SPDX-License-Identifier: MIT
 *
 * words-runner.c: linear programs over plain memory on REF, as a whole and point by point. */
#include "words-runner.h"

#include "../case-fails.h"
#include "../sdk-reference/ref-harness.h"
#include "ir/tiny-dtype.h"

static Rig rig;

void
runner_open (void)
{
  rig_open (&rig, REF_PLUGIN, "ref");
}

void
runner_close (void)
{
  rig_close (&rig);
}

TinyTarget
target_of (const char *arch)
{
  TinyTarget target = { .struct_size = sizeof target };
  if (rig.module->renderers->target (arch, &target, &rig.error) != TINY_STATUS_OK)
    g_error ("%s: %s", arch, rig.error.text);
  target.local_bytes = 1 << 20;
  return target;
}

void
memory_copy (Memory *self, const Memory *from)
{
  *self = *from;
  for (guint i = 0; i < self->n; i++)
    self->data[i] = g_memdup2 (from->data[i], from->sizes[i] + 8);
}

void
memory_clear (Memory *self)
{
  for (guint i = 0; i < self->n; i++)
    g_free (self->data[i]);
}

#define OK(call)                                                                               \
  G_STMT_START                                                                                 \
  {                                                                                            \
    if ((call) != TINY_STATUS_OK) {                                                            \
      CASE_FAILS ("%s: %s", text, rig.error.text);                                             \
      return;                                                                                  \
    }                                                                                          \
  }                                                                                            \
  G_STMT_END

void
run_linear (const TinyLinear *linear, const char *arch, Memory *memory, const char *text)
{
  g_autofree void *binary = NULL;
  TinySpan spans[MAX_BUFFERS];
  TinyPluginProgram *program = NULL;
  TinyCompileArgs args
      = { .struct_size = sizeof args, .arch = arch, .name = linear->name, .linear = linear };
  TinyProgramArgs load = {
    .struct_size = sizeof load, .name = linear->name, .arch = arch, .n_params = linear->n_params
  };
  memcpy (load.group, linear->group, sizeof load.group);
  OK (rig.module->renderers->compile (&args, &binary, &load.size, &rig.error));
  load.data = binary;
  OK (rig.table->program_load (rig.device, &load, &program, &rig.error));
  for (guint i = 0; i < memory->n; i++) {
    void *mapped;
    spans[i] = (TinySpan){ NULL, 0, memory->sizes[i] };
    OK (rig.table->alloc (rig.device, spans[i].n_bytes, &spans[i].buffer, &rig.error));
    OK (rig.table->map (rig.device, spans[i].buffer, &mapped, &rig.error));
    memcpy (mapped, memory->data[i], memory->sizes[i]);
  }
  TinyCommand command = { .struct_size = sizeof command,
                          .type = TINY_COMMAND_DISPATCH,
                          .program = program,
                          .buffers = spans,
                          .n_buffers = linear->n_params };
  memcpy (command.grid, linear->grid, sizeof command.grid);
  TinySubmit submit = { .struct_size = sizeof submit, .commands = &command, .n_commands = 1 };
  OK (rig.table->submit (rig.device, rig.queue, &submit, &rig.error));
  for (guint i = 0; i < memory->n; i++) {
    void *mapped;
    OK (rig.table->map (rig.device, spans[i].buffer, &mapped, &rig.error));
    memcpy (memory->data[i], mapped, memory->sizes[i]);
    rig.table->free (rig.device, spans[i].buffer);
  }
  rig.table->program_unload (rig.device, program);
}

/* Grid point (x, y, z) alone. */
static void
run_point (const TinyLinear *linear, const guint32 *point, Memory *memory, const char *text)
{
  g_autofree TinyInstr *instrs
      = g_memdup2 (linear->instrs, linear->n_instrs * sizeof (TinyInstr));
  TinyLinear own = *linear;
  own.instrs = instrs;
  for (guint i = 0; i < own.n_instrs; i++)
    if (instrs[i].op == TINY_INSTR_GRID) {
      instrs[i].op = TINY_INSTR_CONST;
      instrs[i].arg = point[instrs[i].arg];
    }
  for (guint i = 0; i < 3; i++)
    own.grid[i] = 1;
  run_linear (&own, "ref", memory, text);
}

void
check_points (const TinyLinear *linear,
              const Memory *before,
              const Memory *whole,
              const char *text)
{
  g_auto (Memory) joined = { { NULL } };
  memory_copy (&joined, before);
  guint32 point[3];
  for (point[2] = 0; point[2] < linear->grid[2]; point[2]++)
    for (point[1] = 0; point[1] < linear->grid[1]; point[1]++)
      for (point[0] = 0; point[0] < linear->grid[0]; point[0]++) {
        g_auto (Memory) own = { { NULL } };
        memory_copy (&own, before);
        run_point (linear, point, &own, text);
        for (guint i = 0; i < own.n; i++) {
          const gsize size = tiny_dtype_get_n_bytes (linear->params[i].dtype);
          for (gsize j = 0; j < own.sizes[i]; j += size) {
            if (memcmp (own.data[i] + j, before->data[i] + j, size) == 0)
              continue;
            if (memcmp (joined.data[i] + j, before->data[i] + j, size) != 0
                && memcmp (joined.data[i] + j, own.data[i] + j, size) != 0) {
              CASE_FAILS ("%s: two grid points write to place %zu of buffer %u", text, j / size,
                          i);
              break;
            }
            memcpy (joined.data[i] + j, own.data[i] + j, size);
          }
        }
      }
  for (guint i = 0; i < joined.n; i++)
    if (memcmp (joined.data[i], whole->data[i], joined.sizes[i]) != 0)
      CASE_FAILS ("%s: buffer %u depends on the order of the grid points", text, i);
}
