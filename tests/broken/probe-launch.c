/* SPDX-License-Identifier: MIT
 *
 * probe-launch.c: what programs and launches do, and threads that do so at once. */
#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

#include "probe.h"

/* ---- programs ---- */
TinyPluginProgram *
probe_load (Probe *self, const TinyLinear *linear)
{
  TinyPluginProgram *program = NULL;
  void *binary = NULL;
  uint64_t size = 0;
  const TinyCompileArgs args = { .struct_size = sizeof args,
                                 .arch = self->target.arch,
                                 .name = linear->name,
                                 .linear = linear };
  TinyStatus status = self->renderer->compile (&args, &binary, &size, &self->error);
  if (status != TINY_STATUS_OK) {
    say_status (self, linear->name, status);
    return NULL;
  }
  TinyProgramArgs load = { .struct_size = sizeof load,
                           .name = linear->name,
                           .arch = self->target.arch,
                           .data = binary,
                           .size = size,
                           .n_params = linear->n_params,
                           .n_variables = linear->n_variables };
  memcpy (load.group, linear->group, sizeof load.group);
  status = self->table->program_load (self->device, &load, &program, &self->error);
  if (status != TINY_STATUS_OK)
    say_status (self, linear->name, status);
  if (binary != NULL && size > 0)
    memset (binary, 0, (size_t) size);
  free (binary);
  return status == TINY_STATUS_OK ? program : NULL;
}

static TinyCommand
launch (TinyPluginProgram *program,
        const TinySpan *spans,
        uint32_t n_buffers,
        const int64_t *variables,
        uint32_t grid)
{
  return (TinyCommand){ .struct_size = sizeof (TinyCommand),
                        .type = TINY_COMMAND_DISPATCH,
                        .program = program,
                        .buffers = spans,
                        .variables = variables,
                        .n_buffers = n_buffers,
                        .n_variables = variables != NULL,
                        .grid = { grid, 1, 1 } };
}

enum { WIDE_GRID = 70001 };

static void
probe_launches (Probe *self)
{
  Rewrite *k = kernel_simple (self, "simple", 100);
  const TinyLinear linear = kernel_linear (k);
  TinyPluginProgram *program = probe_load (self, &linear);
  const uint32_t n = 70100 * 4;
  TinyPluginBuffer *out = probe_alloc (self, n), *in = probe_alloc (self, n);
  static const int64_t first = 1000, second = -7;
  probe_fill (probe_data, n, 10);
  for (unsigned i = 0; i < n; i += 4)
    probe_data[i + 3] = 0;
  probe_upload (self, in, 0, probe_data, n);
  memset (probe_data, 0, n);
  probe_upload (self, out, 0, probe_data, n);
  if (program == NULL || out == NULL || in == NULL)
    return;
  const TinySpan spans[2] = { { out, 0, 400 }, { in, 0, 400 } };
  const TinySpan others[2] = { { out, 4096, 404 }, { in, 192, 404 } };
  uint64_t ns[2] = { 0 };
  const TinyCommand commands[2]
      = { launch (program, spans, 2, &first, 100), launch (program, others, 2, &second, 101) };
  say_status (self, "launch", probe_submit_timed (self, commands, 2, ns));
  say ("launch", "%d %d",
       ns[0] > 300 && ns[0]<UINT64_C (1000000000), ns[1]> 300 && ns[1] < UINT64_C (1000000000));
  say_bytes (self, "launch", out, n);
  /* A launch, and at once what it wrote; then a copy that has to wait. */
  unsigned char *seen = NULL;
  const TinySpan all[2] = { { out, 0, n }, { in, 0, n } };
  const TinyCommand wide = launch (program, all, 2, &second, WIDE_GRID);
  const uint64_t start = tiny_now_ns ();
  say_status (self, "wide", probe_submit_timed (self, &wide, 1, ns));
  const uint64_t took = tiny_now_ns () - start;
  say ("wide", "%d %d", ns[0] <= took, ns[0] > took / 100);
  if (self->table->map != NULL
      && self->table->map (self->device, out, (void **) &seen, &self->error) == TINY_STATUS_OK
      && seen)
    say ("early", "%08x", tiny_hash (0, seen, n));
  usleep (30000);
  say_bytes (self, "wide", out, n);
  const TinyCommand mixed[3]
      = { launch (program, spans, 2, &first, 100), command_copy (out, 8192, out, 0, 400),
          launch (program, spans, 2, &second, 100) };
  say_status (self, "mixed", probe_submit (self, mixed, 3));
  say_bytes (self, "mixed", out, n);
  self->table->program_unload (self->device, program);
  self->table->free (self->device, out);
  self->table->free (self->device, in);
  kernel_free (k);
}

/* Ten buffers: the first is the sum of the others, each times its number. */
static void
probe_parameters (Probe *self)
{
  enum { N_PARAMS = 10 };
  Rewrite *k = kernel_new ("parameters", N_PARAMS);
  TinySpan spans[N_PARAMS];
  for (uint32_t i = 0; i < N_PARAMS; i++) {
    kernel_param (k, i, TINY_DTYPE_I32, i == 0 ? TINY_PARAM_WRITE : TINY_PARAM_READ, 16);
    spans[i] = (TinySpan){ probe_alloc (self, 64), 0, 64 };
    probe_fill (probe_data, 64, i);
    for (unsigned j = 3; j < 64; j += 4)
      probe_data[j] = 0;
    probe_upload (self, spans[i].buffer, 0, probe_data, 64);
  }
  const Value zero = kernel_int (self, k, 3);
  Value sum = emit (k, TINY_INSTR_CONST, TINY_DTYPE_I32, 1, 0, 0, NULL);
  Value out = emit (k, TINY_INSTR_PARAM, TINY_DTYPE_I32, 1, 0, 0, NULL);
  for (uint32_t i = 1; i < N_PARAMS; i++) {
    const Value in = emit (k, TINY_INSTR_PARAM, TINY_DTYPE_I32, 1, i, 0, NULL);
    const Value x
        = emit (k, TINY_INSTR_LOAD, TINY_DTYPE_I32, 1, 0, 2, (const Value[]){ in, zero });
    sum = op2 (k, TINY_INSTR_ADD, sum, op2 (k, TINY_INSTR_MUL, x, integer (k, x, i)));
  }
  emit (k, TINY_INSTR_STORE, TINY_DTYPE_VOID, 1, 0, 3, (const Value[]){ out, zero, sum });
  const TinyLinear linear = kernel_linear (k);
  TinyPluginProgram *program = probe_load (self, &linear);
  const TinyCommand command = launch (program, spans, N_PARAMS, NULL, 1);
  if (program != NULL) {
    say_status (self, "parameters", probe_submit (self, &command, 1));
    say_bytes (self, "parameters", spans[0].buffer, 64);
    self->table->program_unload (self->device, program);
  }
  for (uint32_t i = 0; i < N_PARAMS; i++)
    self->table->free (self->device, spans[i].buffer);
  kernel_free (k);
}

/* Two kernels of one name, one unloaded while the other stays. */
static void
probe_names (Probe *self)
{
  TinyPluginProgram *programs[2];
  Rewrite *kernels[2];
  TinyPluginBuffer *out = probe_alloc (self, 1000), *in = probe_alloc (self, 1000);
  const TinySpan spans[2] = { { out, 0, 1000 }, { in, 0, 1000 } };
  static const int64_t zero = 0;
  memset (probe_data, 0, 1000);
  probe_upload (self, in, 0, probe_data, 1000);
  for (unsigned i = 0; i < 2; i++) {
    kernels[i] = kernel_simple (self, "same", 20);
    for (uint32_t j = 0; j < kernels[i]->n_instrs && i == 1; j++)
      if (kernels[i]->instrs[j].op == TINY_INSTR_ADD)
        kernels[i]->instrs[j].op = TINY_INSTR_SUB;
    const TinyLinear linear = kernel_linear (kernels[i]);
    programs[i] = probe_load (self, &linear);
  }
  for (unsigned i = 0; i < 2 && programs[0] != NULL && programs[1] != NULL; i++) {
    const TinyCommand command = launch (programs[1], spans, 2, &zero, 20);
    memset (probe_data, 1, 1000);
    probe_upload (self, out, 0, probe_data, 1000);
    say_status (self, "names", probe_submit (self, &command, 1));
    say_bytes (self, "names", out, 1000);
    if (i == 0)
      self->table->program_unload (self->device, programs[0]);
  }
  if (programs[1] != NULL)
    self->table->program_unload (self->device, programs[1]);
  for (unsigned i = 0; i < 2; i++)
    kernel_free (kernels[i]);
  self->table->free (self->device, out);
  self->table->free (self->device, in);
}

static void
probe_damage (Probe *self)
{
  Rewrite *k = kernel_simple (self, "damaged", 8);
  const TinyLinear linear = kernel_linear (k);
  const TinyCompileArgs args = {
    .struct_size = sizeof args, .arch = self->target.arch, .name = "damaged", .linear = &linear
  };
  unsigned char *binary = NULL;
  uint64_t size = 0;
  if (self->renderer->compile (&args, (void **) &binary, &size, &self->error) != TINY_STATUS_OK
      || size == 0)
    return;
  TinyProgramArgs load = { .struct_size = sizeof load,
                           .name = "damaged",
                           .arch = self->target.arch,
                           .data = binary,
                           .size = size,
                           .n_params = 2,
                           .n_variables = 1,
                           .group = { 1, 1, 1 } };
  for (unsigned i = 0; i < 4; i++) {
    TinyPluginProgram *program = NULL;
    load.size = i == 1 ? size / 2 : i == 2 ? 0 : size;
    binary[size / 2] ^= (unsigned char) (i == 3);
    const TinyStatus status
        = self->table->program_load (self->device, &load, &program, &self->error);
    say_status (self, "damage", status);
    if (status == TINY_STATUS_OK)
      self->table->program_unload (self->device, program);
  }
  TinyLinear nonsense = linear;
  TinyInstr instr = { .op = 60, .lanes = 1 };
  void *none = NULL;
  nonsense.instrs = &instr;
  nonsense.n_instrs = 1;
  TinyCompileArgs wrong = args;
  wrong.linear = &nonsense;
  say_status (self, "nonsense", self->renderer->compile (&wrong, &none, &size, &self->error));
  free (binary);
  kernel_free (k);
}

/* More instructions than most have. */
static void
probe_long (Probe *self)
{
  Rewrite *k = kernel_simple (self, "long", 8);
  Value sum = k->n_instrs - 2;
  const TinyInstr last = *at (k, k->n_instrs - 1);
  Value s[3];
  memcpy (s, k->sources + last.sources, sizeof s);
  for (int i = 0; i < 300; i++)
    sum = op2 (k, TINY_INSTR_MUL, sum, at (k, sum)->op == TINY_INSTR_MUL ? sum : s[2]);
  with (k, &last, s, 2, sum);
  const TinyLinear linear = kernel_linear (k);
  TinyPluginProgram *program = probe_load (self, &linear);
  say ("long", "%d", program != NULL);
  if (program != NULL)
    self->table->program_unload (self->device, program);
  kernel_free (k);
}

/* What loading loses. */
static void
probe_loads (Probe *self)
{
  Rewrite *k = kernel_simple (self, "loads", 8);
  const TinyLinear linear = kernel_linear (k);
  size_t before = 0;
  for (int i = 0; i < 300; i++) {
    TinyPluginProgram *program = probe_load (self, &linear);
    if (program != NULL)
      self->table->program_unload (self->device, program);
    before = i == 10 ? mallinfo2 ().uordblks : before;
  }
  say ("loads", "%d", mallinfo2 ().uordblks > before + (1 << 16));
  kernel_free (k);
}

/* ---- threads: each with its own queue, buffers and numbers ---- */
typedef struct {
  Probe probe;
  TinyPluginProgram *shared; /* or NULL: each loads its own */
  unsigned number, n_wrong, n_failed;
} Worker;
static pthread_barrier_t barrier;

static void *
work (void *given)
{
  Worker *self = given;
  Probe *probe = &self->probe;
  TinyPluginBuffer *out = NULL, *in = NULL;
  const int64_t variable = self->number * 1000;
  int32_t numbers[16];
  const int is_odd = self->number % 2 && self->shared == NULL;
  Rewrite *k = kernel_simple (probe, is_odd ? "odd" : "even", 16);
  for (uint32_t i = 0; i < k->n_instrs && is_odd; i++)
    if (k->instrs[i].op == TINY_INSTR_ADD)
      k->instrs[i].op = TINY_INSTR_SUB;
  const TinyLinear linear = kernel_linear (k);
  pthread_barrier_wait (&barrier);
  TinyPluginProgram *program
      = self->shared != NULL ? self->shared : probe_load (probe, &linear);
  if (probe->table->queue_create != NULL
      && probe->table->queue_create (probe->device, &probe->queue, &probe->error)
             != TINY_STATUS_OK)
    self->n_failed++;
  if (probe->table->alloc (probe->device, 64, &out, &probe->error) != TINY_STATUS_OK
      || probe->table->alloc (probe->device, 64, &in, &probe->error) != TINY_STATUS_OK
      || program == NULL)
    return NULL;
  const TinySpan spans[2] = { { out, 0, 64 }, { in, 0, 64 } };
  memset (numbers, 0, sizeof numbers);
  self->n_failed += probe_upload (probe, in, 0, numbers, 64) != TINY_STATUS_OK;
  for (unsigned round = 0; round < 40; round++) {
    const TinyCommand command = launch (program, spans, 2, &variable, 16);
    pthread_barrier_wait (&barrier);
    self->n_failed += probe_submit (probe, &command, 1) != TINY_STATUS_OK;
    self->n_failed += probe_download (probe, out, 0, numbers, 64) != TINY_STATUS_OK;
    for (int i = 0; i < 16; i++)
      self->n_wrong += numbers[i] != (is_odd ? -variable - i : variable + i);
    memset (numbers, 0, sizeof numbers);
    self->n_failed += probe_upload (probe, out, 0, numbers, 64) != TINY_STATUS_OK;
  }
  return NULL;
}

static void
probe_threads (Probe *self, const char *name, TinyPluginProgram *shared)
{
  enum { N = 4 };
  pthread_t threads[N];
  Worker workers[N] = { 0 };
  pthread_barrier_init (&barrier, NULL, N);
  for (unsigned i = 0; i < N; i++) {
    workers[i].probe = *self;
    workers[i].number = i + 1;
    workers[i].shared = shared;
    pthread_create (&threads[i], NULL, work, &workers[i]);
  }
  for (unsigned i = 0; i < N; i++)
    pthread_join (threads[i], NULL);
  for (unsigned i = 0; i < N; i++)
    say (name, "%d %d", workers[i].n_wrong == 0, workers[i].n_failed == 0);
}

void
probe_programs (Probe *self)
{
  probe_launches (self);
  probe_parameters (self);
  probe_names (self);
  probe_damage (self);
  probe_long (self);
  probe_loads (self);
  probe_threads (self, "threads", NULL);
  Rewrite *k = kernel_simple (self, "shared", 16);
  const TinyLinear linear = kernel_linear (k);
  TinyPluginProgram *program = probe_load (self, &linear);
  if (program != NULL)
    probe_threads (self, "one program", program);
  kernel_free (k);
}
