/* SPDX-License-Identifier: MIT
 *
 * probe-state.c: what one command, submission or failure does to those that come after it. */
#include <malloc.h>

#include "probe.h"

enum { N = 16, SIZE = 4 * N, N_BUFFERS = 4, FAR = 4096 };

typedef struct {
  Probe *probe;
  TinyPluginProgram *program;
  TinyPluginBuffer *buffers[N_BUFFERS];
} State;

/* Each word of buffer @to becomes that of buffer @from, 1 and its number. */
static TinyCommand
dispatch (const State *self, TinySpan *spans, unsigned to, unsigned from)
{
  static const int64_t one = 1;
  spans[0] = (TinySpan){ self->buffers[to], 0, SIZE };
  spans[1] = (TinySpan){ self->buffers[from], 0, SIZE };
  return (TinyCommand){ .struct_size = sizeof (TinyCommand),
                        .type = TINY_COMMAND_DISPATCH,
                        .program = self->program,
                        .buffers = spans,
                        .n_buffers = 2,
                        .variables = &one,
                        .n_variables = 1,
                        .grid = { N, 1, 1 } };
}

/* All kinds of commands in one submission, each on what the one before gave. */
static void
probe_chain (const State *self)
{
  static int32_t words[N] = { 5, 6, 7 }, found[N];
  TinySpan spans[4][2];
  const TinyCommand commands[] = {
    command_upload (self->buffers[0], 0, words, SIZE),
    dispatch (self, spans[0], 1, 0),
    dispatch (self, spans[1], 2, 1),
    command_copy (self->buffers[3], 0, self->buffers[2], 0, SIZE),
    dispatch (self, spans[2], 0, 3),
    command_copy (self->buffers[2], 0, self->buffers[0], 0, SIZE),
    dispatch (self, spans[3], 1, 2),
    command_download (self->buffers[1], 0, found, SIZE),
  };
  probe_submit (self->probe, commands, TINY_KIT_N (commands));
  say ("chain", "%08x", tiny_hash (0, found, SIZE));
  for (unsigned i = 0; i < N_BUFFERS; i++)
    say_bytes (self->probe, "of a chain", self->buffers[i], SIZE);
}

/* Two parts of one buffer, and more commands than rings have. */
static void
probe_parts (const State *self)
{
  enum { MANY = 1100 };
  static TinyCommand commands[MANY];
  TinySpan apart[2], spans[2];
  TinyCommand command = dispatch (self, apart, 0, 0);
  apart[1].offset = FAR;
  probe_submit (self->probe, &command, 1);
  say_bytes (self->probe, "two parts", self->buffers[0], SIZE);
  for (unsigned i = 0; i < MANY; i++)
    commands[i] = dispatch (self, spans, 0, 0);
  probe_submit (self->probe, commands, MANY);
  say_bytes (self->probe, "many commands", self->buffers[0], SIZE);
}

static void
probe_failures_of_all (const State *self)
{
  enum { TIMES = 40 };
  static const TinyCommand unknown = { .struct_size = sizeof unknown, .type = 77 };
  const TinyProgramArgs args = { .struct_size = sizeof args, .name = "none" };
  Probe *probe = self->probe;
  const size_t before = mallinfo2 ().uordblks;
  for (unsigned i = 0; i < TIMES; i++) {
    TinyPluginProgram *program = NULL;
    TinyPluginBuffer *buffer = NULL;
    TinyPluginError error = { .struct_size = sizeof error };
    probe_submit (probe, &unknown, 1);
    probe_upload (probe, self->buffers[0], 0, &i, sizeof i);
    probe->table->program_load (probe->device, &args, &program, &error);
    probe->table->alloc (probe->device, UINT64_MAX / 2 + 1, &buffer, &error);
  }
  say ("failures", "%d", mallinfo2 ().uordblks > before + (1 << 16));
  say_bytes (probe, "failures", self->buffers[0], SIZE);
}

void
probe_state (Probe *self)
{
  enum { N_ALLOCS = 66000 };
  Rewrite *k = kernel_simple (self, "state", N);
  const TinyLinear linear = kernel_linear (k);
  State state = { .probe = self, .program = probe_load (self, &linear) };
  probe_fill (probe_data, FAR + SIZE, 5);
  for (unsigned i = 0; i < N_BUFFERS; i++) {
    state.buffers[i] = probe_alloc (self, FAR + SIZE);
    probe_upload (self, state.buffers[i], 0, probe_data, FAR + SIZE);
  }
  if (state.program != NULL) {
    probe_chain (&state);
    probe_parts (&state);
    self->table->program_unload (self->device, state.program);
  }
  probe_failures_of_all (&state);
  for (unsigned i = 0; i < N_BUFFERS; i++)
    self->table->free (self->device, state.buffers[i]);
  for (unsigned i = 0; i < N_ALLOCS; i++) {
    TinyPluginBuffer *buffer = probe_alloc (self, SIZE);
    if (buffer == NULL)
      break;
    self->table->free (self->device, buffer);
  }
  kernel_free (k);
}
