/* SPDX-License-Identifier: MIT
 *
 * probe-structure.c: what loops, gates, vectors, groups and indices do. */
#include "probe.h"

#define OP(name) TINY_INSTR_##name
enum { READ = TINY_PARAM_READ, WRITE = TINY_PARAM_WRITE, N = 4096 };

/* ---- kernels ---- */
struct Kernel {
  Rewrite rewrite;
  TinyLinear linear;
};

Rewrite *
kernel_new (const char *name, uint32_t n_params)
{
  struct Kernel *self = calloc (1, sizeof *self);
  self->linear = (TinyLinear){ .struct_size = sizeof self->linear,
                               .name = name,
                               .n_params = n_params,
                               .grid = { 1, 1, 1 },
                               .group = { 1, 1, 1 } };
  self->rewrite.in = &self->linear;
  self->rewrite.params = calloc (n_params + 1, sizeof *self->rewrite.params);
  return &self->rewrite;
}

void
kernel_param (Rewrite *self, uint32_t n, unsigned dtype, uint32_t flags, uint64_t n_elements)
{
  self->params[n] = (TinyParam){ dtype, flags, n_elements };
}

TinyLinear
kernel_linear (const Rewrite *self)
{
  TinyLinear linear = *self->in;
  linear.instrs = self->instrs;
  linear.sources = self->sources;
  linear.params = self->params;
  linear.n_instrs = self->n_instrs;
  linear.n_sources = self->n_sources;
  return linear;
}

void
kernel_free (Rewrite *self)
{
  rewrite_end (self);
  free (self);
}

TinyLinear *
kernel_whole (Rewrite *self)
{
  return (TinyLinear *) self->in;
}

Value
kernel_grid (const Probe *probe, Rewrite *self, unsigned axis)
{
  return emit (self, OP (GRID), probe->target.index_dtype, 1, axis, 0, NULL);
}

Value
kernel_int (const Probe *probe, Rewrite *self, int64_t value)
{
  return emit (self, OP (CONST), probe->target.index_dtype, 1, value, 0, NULL);
}

static Value
param (Rewrite *self, uint32_t n)
{
  return emit (self, OP (PARAM), self->params[n].dtype, 1, n, 0, NULL);
}

static Value
load (Rewrite *self, Value from, Value index, unsigned lanes)
{
  return emit (self, OP (LOAD), at (self, from)->dtype, lanes, 0, 2,
               (const Value[]){ from, index });
}

static void
store (Rewrite *self, Value to, Value index, Value value)
{
  emit (self, OP (STORE), TINY_DTYPE_VOID, at (self, value)->lanes, 0, 3,
        (const Value[]){ to, index, value });
}

static Value
plus (Rewrite *self, Value a, Value b)
{
  return op2 (self, OP (ADD), a, b);
}

static Value
times (Rewrite *self, Value a, Value b)
{
  return op2 (self, OP (MUL), a, b);
}

Rewrite *
kernel_simple (const Probe *probe, const char *name, uint32_t n)
{
  Rewrite *k = kernel_new (name, 2);
  kernel_whole (k)->grid[0] = n;
  kernel_whole (k)->n_variables = 1;
  kernel_param (k, 0, TINY_DTYPE_I32, WRITE, n);
  kernel_param (k, 1, TINY_DTYPE_I32, READ, n);
  const Value out = param (k, 0), in = param (k, 1), i = kernel_grid (probe, k, 0);
  const Value variable = emit (k, OP (VARIABLE), TINY_DTYPE_I32, 1, 0, 0, NULL);
  const Value sum = plus (k, load (k, in, i, 1), variable);
  store (k, out, i, plus (k, sum, cast (k, TINY_DTYPE_I32, i)));
  return k;
}

/* ---- to run one: parameter 0 is written, those behind it are read ---- */
static void
run_with (Probe *probe, Rewrite *k, const int64_t *variables)
{
  const TinyLinear linear = kernel_linear (k);
  TinyPluginBuffer *buffers[4] = { NULL };
  TinySpan spans[4];
  static unsigned char bytes[N * 32];
  for (uint32_t i = 0; i < linear.n_params; i++) {
    buffers[i] = probe_alloc (probe, sizeof bytes);
    for (size_t j = 0; j < sizeof bytes; j++)
      bytes[j] = 0xa5;
    for (int j = 0; i > 0 && j < N; j++)
      if (linear.params[i].dtype == TINY_DTYPE_F32)
        ((float *) bytes)[j] = (float) (j % 61) + 0.5f;
      else if (linear.params[i].dtype == TINY_DTYPE_BOOL)
        bytes[j] = j % 3 == 1;
      else
        ((int32_t *) bytes)[j] = j * 3;
    probe_upload (probe, buffers[i], 0, bytes, sizeof bytes);
    spans[i] = (TinySpan){ buffers[i], 0, sizeof bytes };
  }
  TinyPluginProgram *program = probe_load (probe, &linear);
  if (program != NULL) {
    const TinyCommand command = { .struct_size = sizeof command,
                                  .type = TINY_COMMAND_DISPATCH,
                                  .program = program,
                                  .buffers = spans,
                                  .variables = variables,
                                  .n_buffers = linear.n_params,
                                  .n_variables = linear.n_variables,
                                  .grid = { linear.grid[0], linear.grid[1], linear.grid[2] } };
    say_status (probe, linear.name, probe_submit (probe, &command, 1));
    probe_download (probe, buffers[0], 0, bytes, sizeof bytes);
    say (linear.name, "%08x", tiny_hash (0, bytes, sizeof bytes));
    probe->table->program_unload (probe->device, program);
  }
  for (uint32_t i = 0; i < linear.n_params; i++)
    probe->table->free (probe->device, buffers[i]);
  kernel_free (k);
}

void
kernel_run (const Probe *probe, Rewrite *k)
{
  run_with ((Probe *) probe, k, NULL);
}

static Rewrite *
f32_kernel (const char *name, uint32_t grid)
{
  Rewrite *k = kernel_new (name, 2);
  kernel_whole (k)->grid[0] = grid;
  kernel_param (k, 0, TINY_DTYPE_F32, WRITE, grid);
  kernel_param (k, 1, TINY_DTYPE_F32, READ, N);
  return k;
}

/* ---- elements and loops ---- */
static void
probe_copy (Probe *probe)
{
  Rewrite *k = f32_kernel ("copy", 200);
  const Value out = param (k, 0), in = param (k, 1), i = kernel_grid (probe, k, 0);
  store (k, out, i, load (k, in, i, 1));
  run_with (probe, k, NULL);
}

static void
probe_sum (Probe *probe, const char *name, int64_t rounds, int is_variable)
{
  Rewrite *k = f32_kernel (name, 3);
  const Value out = param (k, 0), in = param (k, 1), i = kernel_grid (probe, k, 0);
  const Value acc = emit (k, OP (REGISTER), TINY_DTYPE_F32, 1, 0, 0, NULL);
  const Value start
      = emit (k, OP (CONST), TINY_DTYPE_F32, 1, 0x4004000000000000, 0, NULL); /* 2.5 */
  Value bound = kernel_int (probe, k, rounds);
  kernel_whole (k)->n_variables = (uint32_t) is_variable;
  if (is_variable)
    bound = emit (k, OP (VARIABLE), at (k, bound)->dtype, 1, 0, 0, NULL);
  emit (k, OP (STORE), TINY_DTYPE_VOID, 1, 0, 2, (const Value[]){ acc, start });
  const Value loop = emit (k, OP (RANGE), at (k, bound)->dtype, 1, 0, 1, &bound);
  const Value where = op2 (k, OP (MOD), plus (k, loop, i), kernel_int (probe, k, N));
  const Value sum
      = plus (k, emit (k, OP (LOAD), TINY_DTYPE_F32, 1, 0, 1, &acc), load (k, in, where, 1));
  emit (k, OP (STORE), TINY_DTYPE_VOID, 1, 0, 2, (const Value[]){ acc, sum });
  emit (k, OP (END), TINY_DTYPE_VOID, 1, 0, 1, &loop);
  store (k, out, i, emit (k, OP (LOAD), TINY_DTYPE_F32, 1, 0, 1, &acc));
  run_with (probe, k, &rounds);
}

static void
probe_reassociation (Probe *probe)
{
  Rewrite *k = f32_kernel ("reassociation", 100);
  const Value out = param (k, 0), in = param (k, 1), i = kernel_grid (probe, k, 0),
              x = load (k, in, i, 1);
  store (k, out, i,
         plus (k, plus (k, times (k, x, number (k, x, 0.1)), number (k, x, 1e6)),
               number (k, x, -1e6)));
  run_with (probe, k, NULL);
}

static void
probe_gates (Probe *probe)
{
  Rewrite *k = f32_kernel ("gates", 40);
  const Value out = param (k, 0), in = param (k, 1), i = kernel_grid (probe, k, 0);
  const Value open = op2 (k, OP (CMPLT), i, kernel_int (probe, k, 17));
  const Value other
      = emit (k, OP (CONST), TINY_DTYPE_F32, 1, 0x4014000000000000, 0, NULL); /* 5 */
  const Value x
      = emit (k, OP (LOAD), TINY_DTYPE_F32, 1, 0, 4, (const Value[]){ in, i, open, other });
  const Value few = op2 (k, OP (CMPLT), i, kernel_int (probe, k, 30));
  emit (k, OP (STORE), TINY_DTYPE_VOID, 1, 0, 4, (const Value[]){ out, i, x, few });
  run_with (probe, k, NULL);
}

static void
probe_if (Probe *probe)
{
  Rewrite *k = f32_kernel ("if", 40);
  const Value out = param (k, 0), in = param (k, 1), i = kernel_grid (probe, k, 0);
  const Value open = op2 (k, OP (CMPLT), i, kernel_int (probe, k, 17));
  const Value block = emit (k, OP (IF), TINY_DTYPE_VOID, 1, 0, 1, &open);
  store (k, out, i, load (k, in, i, 1));
  emit (k, OP (ENDIF), TINY_DTYPE_VOID, 1, 0, 1, &block);
  run_with (probe, k, NULL);
}

/* ---- constants and variables ---- */
static void
probe_variables (Probe *probe)
{
  static const int64_t variables[3] = { -5, 70000, 1 };
  Rewrite *k = kernel_new ("variables", 1);
  kernel_whole (k)->n_variables = 3;
  kernel_param (k, 0, TINY_DTYPE_I32, WRITE, 3);
  const Value out = param (k, 0);
  for (unsigned i = 0; i < 3; i++)
    store (k, out, kernel_int (probe, k, i),
           emit (k, OP (VARIABLE), TINY_DTYPE_I32, 1, i, 0, NULL));
  run_with (probe, k, variables);
}

static void
probe_wide (Probe *probe)
{
  static const int64_t variables[2] = { -5, INT64_C (1) << 40 };
  Rewrite *k = kernel_new ("wide", 1);
  kernel_whole (k)->n_variables = 2;
  kernel_param (k, 0, TINY_DTYPE_I64, WRITE, 3);
  const Value out = param (k, 0);
  for (unsigned i = 0; i < 2; i++)
    store (k, out, kernel_int (probe, k, i),
           emit (k, OP (VARIABLE), TINY_DTYPE_I64, 1, i, 0, NULL));
  store (k, out, kernel_int (probe, k, 2),
         emit (k, OP (CONST), TINY_DTYPE_I64, 1, (INT64_C (1) << 40) + 5, 0, NULL));
  run_with (probe, k, variables);
}

static void
probe_double (Probe *probe)
{
  const double tenth = 0.1;
  int64_t arg;
  memcpy (&arg, &tenth, sizeof arg);
  Rewrite *k = kernel_new ("double", 1);
  kernel_param (k, 0, TINY_DTYPE_F64, WRITE, 1);
  const Value out = param (k, 0);
  store (k, out, kernel_int (probe, k, 0),
         emit (k, OP (CONST), TINY_DTYPE_F64, 1, arg, 0, NULL));
  run_with (probe, k, NULL);
}

static void
probe_bools (Probe *probe)
{
  Rewrite *k = kernel_new ("bools", 2);
  kernel_whole (k)->grid[0] = 50;
  kernel_param (k, 0, TINY_DTYPE_BOOL, WRITE, 50);
  kernel_param (k, 1, TINY_DTYPE_BOOL, READ, 50);
  const Value out = param (k, 0), in = param (k, 1), i = kernel_grid (probe, k, 0);
  store (k, out, i, load (k, in, i, 1));
  run_with (probe, k, NULL);
}

/* ---- grids ---- */
static void
probe_grid (Probe *probe)
{
  Rewrite *k = kernel_new ("grid", 1);
  memcpy (kernel_whole (k)->grid, (const uint32_t[3]){ 3, 5, 7 }, sizeof (uint32_t[3]));
  kernel_param (k, 0, TINY_DTYPE_I32, WRITE, 105);
  const Value out = param (k, 0), x = kernel_grid (probe, k, 0), y = kernel_grid (probe, k, 1),
              z = kernel_grid (probe, k, 2);
  const Value row = plus (k, times (k, z, kernel_int (probe, k, 5)), y);
  const Value where = plus (k, times (k, row, kernel_int (probe, k, 3)), x);
  const Value what = plus (k, times (k, x, kernel_int (probe, k, 10000)),
                           plus (k, times (k, y, kernel_int (probe, k, 100)), z));
  store (k, out, where, cast (k, TINY_DTYPE_I32, what));
  run_with (probe, k, NULL);
}

static void
probe_far (Probe *probe)
{
  Rewrite *k = kernel_new ("far", 1);
  kernel_whole (k)->grid[0] = 70001;
  kernel_param (k, 0, TINY_DTYPE_U8, WRITE, 70001);
  const Value out = param (k, 0), i = kernel_grid (probe, k, 0);
  store (k, out, i, cast (k, TINY_DTYPE_U8, op2 (k, OP (MOD), i, kernel_int (probe, k, 251))));
  run_with (probe, k, NULL);
}

static void
probe_long_loop (Probe *probe)
{
  Rewrite *k = kernel_new ("long-loop", 1);
  kernel_param (k, 0, TINY_DTYPE_I32, WRITE, 1);
  const Value out = param (k, 0), bound = kernel_int (probe, k, 70000),
              zero = kernel_int (probe, k, 0);
  const Value acc = emit (k, OP (REGISTER), TINY_DTYPE_I32, 1, 0, 0, NULL);
  emit (k, OP (STORE), TINY_DTYPE_VOID, 1, 0, 2,
        (const Value[]){ acc, emit (k, OP (CONST), TINY_DTYPE_I32, 1, 7, 0, NULL) });
  const Value loop = emit (k, OP (RANGE), at (k, bound)->dtype, 1, 0, 1, &bound);
  const Value was = emit (k, OP (LOAD), TINY_DTYPE_I32, 1, 0, 1, &acc);
  const Value next
      = plus (k, times (k, was, integer (k, was, 3)), cast (k, TINY_DTYPE_I32, loop));
  emit (k, OP (STORE), TINY_DTYPE_VOID, 1, 0, 2, (const Value[]){ acc, next });
  emit (k, OP (END), TINY_DTYPE_VOID, 1, 0, 1, &loop);
  store (k, out, zero, emit (k, OP (LOAD), TINY_DTYPE_I32, 1, 0, 1, &acc));
  run_with (probe, k, NULL);
}

/* ---- vectors ---- */
static void
probe_vectors (Probe *probe)
{
  enum { LANES = 4 };
  if (probe->target.max_lanes < LANES)
    return;
  Rewrite *k = f32_kernel ("vectors", 30);
  kernel_param (k, 0, TINY_DTYPE_F32, WRITE, 30 * 2 * LANES);
  const Value out = param (k, 0), in = param (k, 1), i = kernel_grid (probe, k, 0);
  const int is_unaligned = (probe->target.flags & TINY_TARGET_UNALIGNED) != 0;
  const Value first = times (k, i, kernel_int (probe, k, LANES));
  const Value x = load (k, in, plus (k, first, kernel_int (probe, k, is_unaligned)), LANES);
  Value s[LANES];
  for (unsigned l = 0; l < LANES; l++) {
    const Value e = emit (k, OP (EXTRACT), TINY_DTYPE_F32, 1, l, 1, &x);
    s[l] = times (k, e, number (k, e, l + 1));
  }
  const Value y = emit (k, OP (VECTOR), TINY_DTYPE_F32, LANES, 0, LANES, s);
  const Value less = op2 (k, OP (CMPLT), x, number (k, x, 30));
  const Value row = times (k, i, kernel_int (probe, k, 2 * LANES));
  store (k, out, row, choose (k, less, y, op1 (k, OP (NEG), x)));
  const Value behind = plus (k, row, kernel_int (probe, k, LANES));
  if (probe->target.flags & TINY_TARGET_MASKED) {
    const Value z = emit (k, OP (LOAD), TINY_DTYPE_F32, LANES, 0, 4,
                          (const Value[]){ in, first, less, number (k, x, 9) });
    emit (k, OP (STORE), TINY_DTYPE_VOID, LANES, 0, 4,
          (const Value[]){ out, behind, z, op2 (k, OP (CMPLT), number (k, x, 12), x) });
  }
  run_with (probe, k, NULL);
}

/* ---- groups ---- */
static void
probe_groups (Probe *probe)
{
  enum { X = 8, Y = 4 };
  if ((probe->target.flags & TINY_TARGET_GROUPS) == 0)
    return;
  Rewrite *k = f32_kernel ("groups", 3);
  memcpy (kernel_whole (k)->group, (const uint32_t[3]){ X, Y, 1 }, sizeof (uint32_t[3]));
  kernel_param (k, 0, TINY_DTYPE_F32, WRITE, 3 * X * Y);
  const Value out = param (k, 0), in = param (k, 1), group = kernel_grid (probe, k, 0);
  const unsigned dtype = at (k, group)->dtype;
  const Value local = emit (k, OP (LOCAL), TINY_DTYPE_F32, 1, X * Y, 0, NULL);
  const Value x = emit (k, OP (GROUP), dtype, 1, 0, 0, NULL),
              y = emit (k, OP (GROUP), dtype, 1, 1, 0, NULL);
  const Value item = plus (k, times (k, y, kernel_int (probe, k, X)), x),
              n = kernel_int (probe, k, X * Y);
  const Value first = times (k, group, n);
  store (k, local, item, load (k, in, plus (k, first, item), 1));
  emit (k, OP (BARRIER), TINY_DTYPE_VOID, 1, 0, 0, NULL);
  const Value mirror = op2 (k, OP (SUB), kernel_int (probe, k, X * Y - 1), item);
  const Value sum = plus (k, load (k, local, mirror, 1), cast (k, TINY_DTYPE_F32, x));
  store (k, out, plus (k, first, item), sum);
  run_with (probe, k, NULL);
}

void
probe_structure (Probe *probe)
{
  probe_copy (probe);
  probe_sum (probe, "sum-37", 37, 0);
  probe_sum (probe, "sum-64", 64, 0);
  probe_sum (probe, "sum-none", 0, 1);
  probe_sum (probe, "sum-variable", 11, 1);
  probe_reassociation (probe);
  probe_gates (probe);
  probe_if (probe);
  probe_variables (probe);
  probe_wide (probe);
  probe_double (probe);
  probe_bools (probe);
  probe_grid (probe);
  probe_far (probe);
  probe_long_loop (probe);
  probe_vectors (probe);
  probe_groups (probe);
}
