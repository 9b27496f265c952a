/* SPDX-License-Identifier: MIT
 *
 * probe-vendor.c: what other threads may do, how many there may be of a thing, and functions that are called seldom. */
#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

#include "probe.h"

/* ---- another thread ---- */
enum { AT_HOME = 32 };
static TinyPluginProgram
    *at_home[AT_HOME]; /* loaded by the first thread, unloaded by the other */

static void *
use_all (void *data)
{
  Probe self = *(Probe *) data;
  void *address = NULL;
  TinyPluginQueue *queue = NULL;
  unsigned char mine[64] = { 0 };
  TinyPluginBuffer *buffer = probe_alloc (&self, 1 << 16), *shared = NULL;
  if (self.table->queue_create != NULL)
    say_status (&self, "thread: queue",
                self.table->queue_create (self.device, &queue, &self.error));
  if (buffer != NULL)
    say_status (&self, "thread: upload", probe_upload (&self, buffer, 0, mine, 64));
  if (buffer != NULL && self.table->map != NULL)
    say_status (&self, "thread: map",
                self.table->map (self.device, buffer, &address, &self.error));
  if (self.table->import_host != NULL)
    say_status (&self, "thread: import",
                self.table->import_host (self.device, probe_data, 64, &shared, &self.error));
  if (shared != NULL)
    self.table->free (self.device, shared);
  Rewrite *k = kernel_simple (&self, "thread", 4);
  const TinyLinear linear = kernel_linear (k);
  TinyPluginProgram *program = probe_load (&self, &linear);
  if (program != NULL)
    self.table->program_unload (self.device, program);
  kernel_free (k);
  if (buffer != NULL)
    self.table->free (self.device, buffer);
  if (queue != NULL)
    self.table->queue_destroy (self.device, queue);
  for (unsigned i = 0; i < AT_HOME; i++)
    if (at_home[i] != NULL)
      self.table->program_unload (self.device, at_home[i]);
  return NULL;
}

/* ---- many ---- */
static void
probe_many (Probe *self)
{
  enum { BUFFERS = 1100, PROGRAMS = 140 };
  static TinyPluginBuffer *buffers[BUFFERS];
  static TinyPluginProgram *programs[PROGRAMS];
  unsigned n = 0;
  for (unsigned i = 0; i < BUFFERS; i++)
    if (self->table->alloc (self->device, 64, &buffers[i], &self->error) == TINY_STATUS_OK)
      n++;
    else
      buffers[i] = NULL;
  say ("many buffers", "%u", n);
  for (unsigned i = 0; i < BUFFERS; i++)
    if (buffers[i] != NULL)
      self->table->free (self->device, buffers[i]);
  for (unsigned i = 0; i < PROGRAMS; i++) {
    Rewrite *k = kernel_simple (self, "many_programs", 4 + i);
    const TinyLinear linear = kernel_linear (k);
    programs[i] = probe_load (self, &linear);
    kernel_free (k);
  }
  for (unsigned i = 0; i < PROGRAMS; i++)
    if (programs[i] != NULL)
      self->table->program_unload (self->device, programs[i]);
}

/* ---- disassemble() ---- */
static void
probe_disassembly (Probe *self)
{
  if (self->renderer->disassemble == NULL || self->renderer->dialect != NULL)
    return;
  void *data = NULL;
  uint64_t size = 0;
  for (unsigned n = 4; n < 6; n++) {
    Rewrite *k = kernel_simple (self, "listing", n * 1000);
    if (n == 5) { /* another program */
      const Value out = emit (k, TINY_INSTR_PARAM, TINY_DTYPE_I32, 1, 0, 0, NULL);
      const Value number = emit (k, TINY_INSTR_CONST, TINY_DTYPE_I32, 1, 1234567, 0, NULL);
      emit (k, TINY_INSTR_STORE, TINY_DTYPE_VOID, 1, 0, 3,
            (const Value[]){ out, kernel_grid (self, k, 0), number });
    }
    const TinyLinear linear = kernel_linear (k);
    const TinyCompileArgs args = { .struct_size = sizeof args,
                                   .arch = self->target.arch,
                                   .name = linear.name,
                                   .linear = &linear };
    char *text = NULL;
    if (self->renderer->compile (&args, &data, &size, &self->error) == TINY_STATUS_OK) {
      say_status (self, "disassembly",
                  self->renderer->disassemble (data, size, &text, &self->error));
      if (text != NULL)
        say ("disassembly", "%08x, strange %d", tiny_hash (0, text, strlen (text)),
             (unsigned char) text[0] >= 0x80);
      free (text);
      text = NULL;
      say_status (self, "disassembly of damage",
                  self->renderer->disassemble (data, size / 2, &text, &self->error));
      free (data);
    }
    kernel_free (k);
  }
}

/* ---- memory ---- */
static void
probe_large (Probe *self)
{
  TinyPluginBuffer *buffer = probe_alloc (self, 2 << 20);
  void *address = NULL;
  if (self->table->map != NULL
      && self->table->map (self->device, buffer, &address, &self->error) == TINY_STATUS_OK)
    say ("large", "%d", (int) ((uintptr_t) address % 16));
  self->table->free (self->device, buffer);
  const uint64_t far = (UINT64_C (1) << 31) + 4096;
  for (uint64_t at = far; at < 5 * far; at *= 2) {
    buffer = probe_alloc (self, at + 64);
    if (buffer == NULL)
      continue;
    probe_upload (self, buffer, at, "far away", 8);
    memset (probe_back, 0, 8);
    probe_upload (self, buffer, 4096, "not here", 8);
    probe_upload (self, buffer, 8192, "not here", 8);
    probe_download (self, buffer, at, probe_back, 8);
    say ("large", "%.8s", (const char *) probe_back);
    self->table->free (self->device, buffer);
  }
}

static void
probe_context (Probe *self)
{
  void *one = NULL, *two = NULL;
  if (self->table->context == NULL)
    return;
  say_status (self, "context", self->table->context (self->device, &one, &self->error));
  say_status (self, "context", self->table->context (self->device, &two, &self->error));
  say ("context", "%d %d", one != NULL, one == two);
}

/* ---- submissions ---- */
static void
probe_behind_refused (Probe *self)
{
  TinyPluginBuffer *a = probe_alloc (self, 64);
  TinyCommand commands[]
      = { command_upload (a, 0, "first", 5), command_upload (a, 8, "never", 5),
          command_upload (a, 16, "later", 5) };
  commands[1].type = 77;
  probe_upload (self, a, 0, "................................", 32);
  say_status (self, "refused", probe_submit (self, commands, 3));
  probe_download (self, a, 16, probe_back, 5);
  say ("refused", "%.5s", (const char *) probe_back);
  self->table->free (self->device, a);
}

/* Launches that take long, and times that are all of one. */
static void
probe_times (Probe *self)
{
  enum { COMMANDS = 4, SIZE = 4 << 20 };
  static unsigned char bytes[SIZE];
  TinyPluginBuffer *a = probe_alloc (self, SIZE);
  TinyCommand commands[COMMANDS];
  uint64_t ns[COMMANDS] = { 0 }, sum = 0, n_none = 0;
  for (unsigned i = 0; i < COMMANDS; i++)
    commands[i] = command_upload (a, 0, bytes, SIZE);
  const uint64_t start = tiny_now_ns ();
  probe_submit_timed (self, commands, COMMANDS, ns);
  const uint64_t all = tiny_now_ns () - start;
  for (unsigned i = 0; i < COMMANDS; i++) {
    sum += ns[i];
    n_none += ns[i] == 0;
  }
  say ("times", "more than all %d, without one %d", sum > all + all / 2, n_none > 0);
  self->table->free (self->device, a);
}

static void
probe_lines (Probe *self)
{
  TinyPluginBuffer *a = probe_alloc (self, 1024);
  Rewrite *k = kernel_simple (self, "lines", 5);
  const TinyLinear linear = kernel_linear (k);
  TinyPluginProgram *program = probe_load (self, &linear);
  const int64_t variable = 7;
  const TinySpan spans[] = { { a, 0, 20 }, { a, 512, 20 } };
  const TinyCommand command = { .struct_size = sizeof command,
                                .type = TINY_COMMAND_DISPATCH,
                                .program = program,
                                .buffers = spans,
                                .variables = &variable,
                                .n_buffers = 2,
                                .n_variables = 1,
                                .grid = { 5, 1, 1 } };
  probe_fill (probe_data, 1024, 3);
  probe_upload (self, a, 0, probe_data, 1024);
  if (program != NULL)
    say_status (self, "lines", probe_submit (self, &command, 1));
  say_bytes (self, "lines", a, 1024);
  if (program != NULL)
    self->table->program_unload (self->device, program);
  kernel_free (k);
  self->table->free (self->device, a);
}

/* ---- before and after ---- */
void
probe_vendor_tables (Probe *self, const char *id)
{
  TinyPluginDevice *other = NULL;
  const TinyDeviceTable *table = NULL;
  if (self->module->open (id, &other, &table, &self->error) != TINY_STATUS_OK)
    return;
  say ("tables", "%u", self->table->struct_size);
  table->close (other);
  if (self->renderer->target == NULL)
    return;
  TinyTarget target = { .struct_size = sizeof target };
  say_status (self, "canonical",
              self->renderer->target (self->target.arch, &target, &self->error));
  say ("canonical", "%d", strcmp (target.arch, self->target.arch));
}

void
probe_vendor (Probe *self)
{
  pthread_t thread;
  size_t before = 0;
  for (int time = 0; time < 2; time++) {
    before = mallinfo2 ().uordblks + mallinfo2 ().hblkhd;
    Rewrite *k = kernel_simple (self, "at_home", 4);
    const TinyLinear linear = kernel_linear (k);
    for (unsigned i = 0; i < AT_HOME; i++)
      at_home[i] = probe_load (self, &linear);
    kernel_free (k);
    if (pthread_create (&thread, NULL, use_all, self) == 0)
      pthread_join (thread, NULL);
  }
  say ("thread", "loses %d", mallinfo2 ().uordblks + mallinfo2 ().hblkhd > before + 1000);
  probe_many (self);
  probe_disassembly (self);
  probe_large (self);
  probe_context (self);
  probe_behind_refused (self);
  probe_times (self);
  probe_lines (self);
}
