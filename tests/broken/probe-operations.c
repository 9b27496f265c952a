/* SPDX-License-Identifier: MIT
 *
 * probe-operations.c: what is said of operations, and what they give. */
#include <math.h>

#include "probe.h"

enum { MOST = 1 << 16, ORDER = 5, MATRIX = ORDER * ORDER };

/* An operand that begins @margin elements into its buffer; strides of axis, stride, …, -1. */
static void
add_operand (TinyOperation *o, unsigned role, int64_t margin, const int64_t *strides)
{
  TinyOperandView *view = &o->operands[o->n_operands];
  *view = (TinyOperandView){
    .role = role, .dtype = TINY_DTYPE_F32, .buffer = o->n_operands++, .offset = margin
  };
  for (; strides[0] >= 0; strides += 2) {
    view->strides[strides[0]] = strides[1];
    view->offset -= strides[1] < 0 ? strides[1] * (o->extents[strides[0]] - 1) : 0;
  }
  view->n_elements = MOST;
  o->n_buffers = o->n_operands;
}
#define STRIDES(...) ((const int64_t[]){ __VA_ARGS__, -1 })

static TinyOperation
operation_new (unsigned kind, unsigned n_axes)
{
  TinyOperation o = { .struct_size = sizeof o,
                      .version = TINY_OPERATION_VERSION,
                      .kind = kind,
                      .n_axes = n_axes,
                      .compute_dtype = TINY_DTYPE_F32,
                      .scale = 1 };
  for (int i = 0; i < TINY_OPERATION_MAX_AXES; i++)
    o.extents[i] = 1;
  return o;
}

/* A matrix by columns, @row and @column being its axes; 0: it has no columns. */
static void
add_matrix (TinyOperation *o, unsigned role, unsigned dtype, unsigned row, unsigned column)
{
  TinyOperandView *view = &o->operands[o->n_operands];
  const int64_t rows = o->extents[row], columns = column != 0 ? o->extents[column] : 1;
  *view = (TinyOperandView){ .role = role, .dtype = dtype, .buffer = o->n_operands++ };
  view->strides[row] = 1;
  if (column != 0)
    view->strides[column] = rows;
  view->strides[TINY_FACTOR_BATCH] = rows * columns;
  view->n_elements = (uint64_t) (o->extents[TINY_FACTOR_BATCH] * rows * columns);
  o->n_buffers = o->n_operands;
}

static void
run (Probe *self, const char *name, const TinyOperation *o)
{
  static float numbers[MOST];
  TinyPluginBuffer *buffers[TINY_OPERATION_MAX_OPERANDS] = { NULL };
  TinySpan spans[TINY_OPERATION_MAX_OPERANDS];
  TinyPluginProgram *program = NULL;
  void *data = NULL;
  uint64_t size = 0;
  const TinyCompileArgs args
      = { .struct_size = sizeof args, .arch = self->target.arch, .name = name, .operation = o };
  TinyStatus status = self->renderer->compile (&args, &data, &size, &self->error);
  say_status (self, name, status);
  if (status != TINY_STATUS_OK)
    return;
  const TinyProgramArgs load = { .struct_size = sizeof load,
                                 .name = name,
                                 .arch = self->target.arch,
                                 .data = data,
                                 .size = size,
                                 .n_params = o->n_buffers,
                                 .group = { 1, 1, 1 } };
  status = self->table->program_load (self->device, &load, &program, &self->error);
  say_status (self, name, status);
  free (data);
  for (uint32_t i = 0; i < o->n_buffers; i++) {
    for (int k = 0; k < MOST; k++)
      numbers[k] = i == 0 ? -1 : (float) ((k * 7919 + (int) i) % 23 - 11);
    /* There are two matrices, the second of which has a NaN where its kind has no factors then; diagonals are large. */
    for (int k = 0; k < 2 * MATRIX && o->operands[i].role == TINY_ROLE_A
                    && o->kind >= TINY_OPERATION_CHOLESKY;
         k += ORDER + 1)
      numbers[k] = k == ORDER + 1 && o->kind == TINY_OPERATION_SVD ? NAN : 40;
    buffers[i] = probe_alloc (self, sizeof numbers);
    probe_upload (self, buffers[i], 0, numbers, sizeof numbers);
    spans[i] = (TinySpan){ buffers[i], 0, sizeof numbers };
  }
  const TinyCommand command = { .struct_size = sizeof command,
                                .type = TINY_COMMAND_DISPATCH,
                                .program = program,
                                .buffers = spans,
                                .n_buffers = o->n_buffers,
                                .grid = { 1, 1, 1 } };
  if (status == TINY_STATUS_OK)
    say_status (self, name, probe_submit (self, &command, 1));
  for (uint32_t i = 0; i < o->n_buffers && o->operands[i].role != TINY_ROLE_A; i++) {
    probe_download (self, buffers[i], 0, numbers, sizeof numbers);
    say (name, "%08x", tiny_hash (0, numbers, sizeof numbers));
  }
  for (uint32_t i = 0; i < o->n_buffers; i++)
    self->table->free (self->device, buffers[i]);
  if (status == TINY_STATUS_OK)
    self->table->program_unload (self->device, program);
}

static void
ask (Probe *self, const char *name, const TinyOperation *o)
{
  for (int time = 0; time < 3; time++) {
    TinyClaim claim = { .struct_size = sizeof claim };
    say_status (self, name, self->renderer->claim (self->target.arch, o, &claim, &self->error));
    say (name, "verdict %u, cost %llu, %s", claim.verdict, (unsigned long long) claim.cost_ns,
         claim.reason);
  }
}

static TinyOperation
new_matmul (int64_t m, int64_t n, int64_t k)
{
  TinyOperation o = operation_new (TINY_OPERATION_MATMUL, TINY_MATMUL_K + 1);
  o.extents[0] = 2, o.extents[1] = 3;
  o.extents[TINY_MATMUL_M] = m, o.extents[TINY_MATMUL_N] = n, o.extents[TINY_MATMUL_K] = k;
  add_operand (&o, TINY_ROLE_OUTPUT, 0,
               STRIDES (0, 3 * m * n, 1, m * n, TINY_MATMUL_M, n, TINY_MATMUL_N, 1));
  add_operand (&o, TINY_ROLE_A, 5,
               STRIDES (0, 3 * m * k, 1, m * k, TINY_MATMUL_M, k, TINY_MATMUL_K, 1));
  add_operand (&o, TINY_ROLE_B, 9,
               STRIDES (0, 3 * k * n, 1, k * n, TINY_MATMUL_K, -n, TINY_MATMUL_N, 1));
  return o;
}

/* Linear algebra, of two matrices of a batch. */
static void
probe_factors (Probe *self)
{
  static const struct {
    const char *name;
    unsigned kind, flags;
  } rows[]
      = { { "cholesky", TINY_OPERATION_CHOLESKY },
          { "lu", TINY_OPERATION_LU },
          { "triangular", TINY_OPERATION_TRIANGULAR },
          { "upper", TINY_OPERATION_TRIANGULAR, TINY_OPERATION_UPPER | TINY_OPERATION_UNIT },
          { "qr", TINY_OPERATION_QR },
          { "svd", TINY_OPERATION_SVD },
          { "eigh", TINY_OPERATION_EIGH } };
  enum {
    R = TINY_FACTOR_ROW,
    C = TINY_FACTOR_COLUMN,
    V = TINY_FACTOR_VALUE,
    F = TINY_DTYPE_F32
  };
  if (self->renderer->claim_kinds >> TINY_OPERATION_CHOLESKY == 0)
    return;
  for (unsigned i = 0; i < TINY_KIT_N (rows); i++) {
    TinyOperation o = operation_new (rows[i].kind, TINY_FACTOR_VALUE + 1);
    const unsigned kind = rows[i].kind;
    const int is_eigh = kind == TINY_OPERATION_EIGH, is_svd = kind == TINY_OPERATION_SVD;
    o.flags = rows[i].flags;
    for (int axis = R; axis <= V; axis++)
      o.extents[axis] = ORDER;
    o.extents[TINY_FACTOR_BATCH] = 2;
    o.extents[TINY_FACTOR_LEFT] = kind == TINY_OPERATION_QR || is_svd ? ORDER : 1;
    o.extents[TINY_FACTOR_RIGHT] = kind == TINY_OPERATION_TRIANGULAR || is_svd ? ORDER : 1;
    add_matrix (&o, TINY_ROLE_OUTPUT, F, is_eigh ? V : R,
                is_eigh                               ? 0
                : kind == TINY_OPERATION_TRIANGULAR   ? TINY_FACTOR_RIGHT
                : kind == TINY_OPERATION_QR || is_svd ? TINY_FACTOR_LEFT
                                                      : C);
    if (kind == TINY_OPERATION_LU) {
      add_matrix (&o, TINY_ROLE_OUTPUT2, TINY_DTYPE_I32, V, 0);
      add_matrix (&o, TINY_ROLE_OUTPUT3, TINY_DTYPE_I32, R, 0);
    } else if (is_svd) {
      add_matrix (&o, TINY_ROLE_OUTPUT2, F, V, 0);
      add_matrix (&o, TINY_ROLE_OUTPUT3, F, TINY_FACTOR_RIGHT, C);
    } else if (kind == TINY_OPERATION_QR || is_eigh)
      add_matrix (&o, TINY_ROLE_OUTPUT2, F, is_eigh ? R : TINY_FACTOR_LEFT, C);
    add_matrix (&o, TINY_ROLE_A, F, R, C);
    if (kind == TINY_OPERATION_TRIANGULAR)
      add_matrix (&o, TINY_ROLE_B, F, R, TINY_FACTOR_RIGHT);
    run (self, rows[i].name, &o);
  }
}

void
probe_operations (Probe *self)
{
  if (self->renderer->claim == NULL)
    return;
  probe_factors (self);
  TinyOperation o = new_matmul (20, 20, 20);
  ask (self, "matmul", &o);
  run (self, "matmul", &o);
  add_operand (&o, TINY_ROLE_BIAS, 3, STRIDES (TINY_MATMUL_N, 1));
  o.scale = 0.5;
  run (self, "epilogue", &o);
  o.activation = TINY_ACTIVATION_RELU;
  run (self, "epilogue", &o);
  o.struct_size += 64;
  struct {
    TinyOperation operation;
    uint64_t more[8];
  } longer = { .operation = o };
  ask (self, "longer", &longer.operation);
  o.struct_size -= 64;
  o.activation = TINY_ACTIVATION_GELU;
  ask (self, "gelu", &o);
  o.activation = 77;
  ask (self, "unknown", &o);
  o = new_matmul (8, 8, 300);
  run (self, "long", &o);
  o = operation_new (TINY_OPERATION_SOFTMAX, TINY_SOFTMAX_AXIS + 1);
  o.extents[0] = 5, o.extents[TINY_SOFTMAX_AXIS] = 37;
  add_operand (&o, TINY_ROLE_OUTPUT, 0, STRIDES (0, 37, TINY_SOFTMAX_AXIS, 1));
  add_operand (&o, TINY_ROLE_A, 0, STRIDES (0, 37, TINY_SOFTMAX_AXIS, 1));
  run (self, "softmax", &o);
  o = operation_new (TINY_OPERATION_CONVOLUTION, TINY_CONVOLUTION_WINDOW + 3);
  o.extents[TINY_CONVOLUTION_GROUP] = 2, o.extents[TINY_CONVOLUTION_OUT_CHANNEL] = 8;
  o.extents[TINY_CONVOLUTION_IN_CHANNEL] = 4, o.extents[TINY_CONVOLUTION_OUT] = 9;
  o.extents[TINY_CONVOLUTION_WINDOW] = 3;
  for (int i = 0; i < 3; i++)
    o.window_input[i] = o.window_step[i] = o.window_dilation[i] = 1;
  o.window_input[0] = 20, o.window_step[0] = 2, o.window_dilation[0] = 2,
  o.window_padding[0] = 1;
  add_operand (&o, TINY_ROLE_OUTPUT, 0,
               STRIDES (TINY_CONVOLUTION_GROUP, 72, TINY_CONVOLUTION_OUT_CHANNEL, 9,
                        TINY_CONVOLUTION_OUT, 1));
  add_operand (&o, TINY_ROLE_A, 0,
               STRIDES (TINY_CONVOLUTION_GROUP, 80, TINY_CONVOLUTION_IN_CHANNEL, 20,
                        TINY_CONVOLUTION_OUT, 1));
  add_operand (&o, TINY_ROLE_B, 0,
               STRIDES (TINY_CONVOLUTION_GROUP, 96, TINY_CONVOLUTION_OUT_CHANNEL, 12,
                        TINY_CONVOLUTION_IN_CHANNEL, 3, TINY_CONVOLUTION_WINDOW, 1));
  ask (self, "convolution", &o);
  run (self, "convolution", &o);
  o.window_padding[0] = -1;
  o.extents[TINY_CONVOLUTION_OUT] = 7;
  run (self, "cut", &o);
}
