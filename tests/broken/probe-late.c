/* SPDX-License-Identifier: MIT
 *
 * probe-late.c: what goes wrong only after many operations, in large ones, or where one follows another. */
#include <malloc.h>
#include <stdlib.h>

#include "probe.h"

enum { N = 16 };

typedef struct {
  Probe *probe;
  TinyPluginBuffer *buffer;
  TinySpan spans[2]; /* both all of it */
} Place;

/* Adds 1 and its number to each word, or combines them by XOR. */
static void
launch (Place *self, TinyPluginProgram *program)
{
  static const int64_t one = 1;
  const TinyCommand command = { .struct_size = sizeof command,
                                .type = TINY_COMMAND_DISPATCH,
                                .program = program,
                                .buffers = self->spans,
                                .n_buffers = 2,
                                .variables = &one,
                                .n_variables = 1,
                                .grid = { N, 1, 1 } };
  probe_submit (self->probe, &command, 1);
}

static void
probe_many_loads (Place *self, TinyPluginProgram *first)
{
  Rewrite *k = kernel_simple (self->probe, "late_other", N);
  for (uint32_t i = 0; i < k->n_instrs; i++)
    if (k->instrs[i].op == TINY_INSTR_ADD)
      k->instrs[i].op = TINY_INSTR_XOR;
  const TinyLinear linear = kernel_linear (k);
  for (unsigned i = 0; i < 320; i++) {
    TinyPluginProgram *program = probe_load (self->probe, &linear);
    if (program == NULL)
      break;
    launch (self, program);
    self->probe->table->program_unload (self->probe->device, program);
  }
  say_bytes (self->probe, "many loads", self->buffer, 4 * N);
  kernel_free (k);
}

static void
probe_large (Probe *self)
{
  enum { LARGE = (1 << 20) + 64 };
  TinyPluginBuffer *buffer = probe_alloc (self, PROBE_LARGE);
  probe_fill (probe_data, PROBE_LARGE, 12);
  probe_upload (self, buffer, 0, probe_data, PROBE_LARGE);
  probe_download (self, buffer, 64, probe_back, LARGE);
  say ("large", "%d", memcmp (probe_back, probe_data + 64, LARGE) == 0);
  self->table->free (self->device, buffer);
}

void
probe_late (Probe *self)
{
  const int32_t zeros[N] = { 0 };
  Rewrite *k = kernel_simple (self, "late", N);
  const TinyLinear linear = kernel_linear (k);
  Place place = { self, probe_alloc (self, sizeof zeros), { { 0 } } };
  TinyPluginProgram *program = probe_load (self, &linear);
  place.spans[0] = place.spans[1] = (TinySpan){ place.buffer, 0, sizeof zeros };
  probe_upload (self, place.buffer, 0, zeros, sizeof zeros);
  if (program != NULL) {
    launch (&place, program);
    launch (&place, program);
    say_bytes (self, "in place", place.buffer, sizeof zeros);
    size_t before = mallinfo2 ().uordblks;
    for (unsigned i = 0; i < 2000; i++)
      launch (&place, program);
    say ("launches", "%d", mallinfo2 ().uordblks > before + (1 << 16));
    probe_many_loads (&place, program);
    self->table->program_unload (self->device, program);
  }
  probe_large (self);
  self->table->free (self->device, place.buffer);
  kernel_free (k);
}
