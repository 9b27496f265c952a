/* SPDX-License-Identifier: MIT
 *
 * faults-late.c: what goes wrong only after many operations of a kind, in large ones, or where one follows another. */
#include <pthread.h>

#include "broken.h"

#define OP(name) TINY_INSTR_##name

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- launches ---- */

/* The launch before, if nothing else was submitted since. */
enum { MOST = 16 };
static _Thread_local struct {
  const void *program; /* NULL: something else was */
  TinySpan buffers[MOST];
  int64_t variables[MOST];
} before;

static int
is_again (const TinyCommand *command)
{
  int same = before.program == command->program;
  for (uint32_t i = 0; i < command->n_buffers && same; i++)
    same = command->buffers[i].buffer == before.buffers[i].buffer
           && command->buffers[i].offset == before.buffers[i].offset;
  for (uint32_t i = 0; i < command->n_variables && same; i++)
    same = command->variables[i] == before.variables[i];
  return same;
}

/* The second of two equal launches sees what the first saw: it stores the same once more, as if it were not there. */
EDIT (second_sees_first)
{
  if (command->type != TINY_COMMAND_DISPATCH || command->n_buffers > MOST
      || command->n_variables > MOST || command->n_buffers == 0) {
    before.program = NULL;
    return 0;
  }
  if (is_again (command)) {
    const TinySpan nothing = { command->buffers[0].buffer, 0, 0 };
    *command = (TinyCommand){
      .struct_size = sizeof *command, .type = TINY_COMMAND_COPY, .dst = nothing, .src = nothing
    };
    before.program = NULL;
    return 1;
  }
  before.program = command->program;
  for (uint32_t i = 0; i < command->n_buffers; i++)
    before.buffers[i] = command->buffers[i];
  for (uint32_t i = 0; i < command->n_variables; i++)
    before.variables[i] = command->variables[i];
  return 0;
}

SUBMIT (leaks_at_times)
{
  enum { LAUNCHES = 1000, LOST = 1 << 16 };
  static unsigned n_launches;
  for (uint32_t i = 0; i < submit->n_commands; i++)
    if (submit->commands[i].type == TINY_COMMAND_DISPATCH
        && __atomic_add_fetch (&n_launches, 1, __ATOMIC_RELAXED) % LAUNCHES == 0) {
      char *volatile lost = malloc (LOST);
      if (lost != NULL)
        memset (lost, 1, LOST);
      broken_note ();
    }
  return inside.device->submit (device, queue, submit, error);
}

/* ---- transfers ---- */
EDIT (large_download_from_start)
{
  const TinySpan *src = &command->src;
  const int wrong
      = command->type == TINY_COMMAND_DOWNLOAD && src->n_bytes > 1 << 20 && src->offset > 0;
  command->src.offset = wrong ? 0 : src->offset;
  return wrong;
}

/* ---- programs ---- */
static struct {
  TinyPluginDevice *device;
  TinyPluginProgram *program; /* the first that was loaded; NULL: it is gone */
  unsigned n_loads, n_users;
} first;

static TinyStatus
load_first_at_300 (TinyPluginDevice *device,
                   const TinyProgramArgs *args,
                   TinyPluginProgram **out,
                   TinyPluginError *error)
{
  enum { WRONG = 300 };
  TinyStatus status = TINY_STATUS_OK;
  pthread_mutex_lock (&lock);
  if (first.device != device || first.program == NULL)
    first.n_loads = 0;
  if (first.n_loads + 1 == WRONG) {
    broken_note ();
    *out = first.program;
    first.n_users++;
  } else
    status = inside.device->program_load (device, args, out, error);
  if (status == TINY_STATUS_OK && ++first.n_loads == 1) {
    first.device = device;
    first.program = *out;
    first.n_users = 1;
  }
  pthread_mutex_unlock (&lock);
  return status;
}

static void
unload_with_last_user (TinyPluginDevice *device, TinyPluginProgram *program)
{
  pthread_mutex_lock (&lock);
  const int is_first = first.device == device && program == first.program,
            is_last = !is_first || --first.n_users == 0;
  if (is_first && is_last)
    first.program = NULL;
  pthread_mutex_unlock (&lock);
  if (is_last)
    inside.device->program_unload (device, program);
}

/* ---- bits ---- */
static Value
nan_canonical (Rewrite *r, const TinyInstr *instr, const Value *s)
{
  if (!is_data (r, instr, s, OP (BITCAST), BIT (F32)) || instr->dtype != TINY_DTYPE_I32)
    return KEEP;
  const Value out = same (r, instr, s);
  return choose (r, is_nan (r, s[0]), integer (r, out, 0x7fc00000), out);
}

static const Fault rows[] = {
  /* clang-format off */
  { "in-place-stale", "a launch that equals the one before it reads what that one read", "caches that are not written back between launches", .device = { .submit = second_sees_first }, .cases = "order/in-place/*" },
  { "leak-launches", "64 KiB are lost every 1000 launches", "blocks of arguments that are never given back", .device = { .submit = leaks_at_times }, .cases = "lifecycle/objects/*" },
  { "download-large-offset", "downloads of more than 1 MiB ignore their offset", "another path for what staging does not hold", .device = { .submit = large_download_from_start }, .cases = "memory/large/download/*" },
  { "load-300th-is-first", "the 300th program_load() gives the first program", "a table of fixed size that wraps around", .device = { .program_load = load_first_at_300, .program_unload = unload_with_last_user }, .cases = "lifecycle/objects/*" },
  { "bitcast-quiets-nan", "BITCAST of f32 to i32 gives every NaN the same bits", "floats that move through a unit that makes NaNs canonical", .rewrite = nan_canonical, .cases = "exec/bits/*" },
  /* clang-format on */
};
FAULT_TABLE (faults_late);
