/* SPDX-License-Identifier: MIT
 *
 * operation-offers.c: the operations that the suite offers, one row each.
 *
 * Extents are of all sizes, as units take on some and not others: of few elements, of whole tiles, and of tiles and
 * a rest. A row's operands lie packed in the order of its axes, unless the row says otherwise. */
#include <string.h>

#include "ir/tiny-dtype.h"
#include "operation.h"

enum { MAX_ORDER = 5 };

/* How a matmul's operands lie. */
enum {
  A_TRANSPOSED = 1,
  B_TRANSPOSED = 2,
  B_SHARED = 4, /* by the whole batch */
  PADDED = 8,   /* rows are longer than what is used of them */
  FLIPPED = 16, /* A is read from its end */
  OUT_TRANSPOSED = 32,
  APART = 64, /* inputs begin behind the start of their buffers */
};
/* What follows. */
enum { BIAS_COLUMN = 1, BIAS_ROW = 2, BIAS_FULL = 4, SCALED = 8, CAUSAL = 16, MASKED = 32 };

typedef struct {
  const char *name;
  TinyOperationKind kind;
  gint64 sizes[10]; /* matmul: b m n k, and a second axis of the batch; the others: see below */
  guint layout, after;
  TinyActivation activation;
  TinyDType from, wide, to; /* f32 where it is left out */
  ConfLevel level;
  TinyInstrOp reduce;
} Row;

#define F(name)   TINY_DTYPE_##name
#define ACT(name) TINY_ACTIVATION_##name
static const Row rows[] = {
  /* clang-format off */
  /* b m n k */
  { "matmul/square-16", TINY_OPERATION_MATMUL, { 1, 16, 16, 16 } },
  { "matmul/square-32", TINY_OPERATION_MATMUL, { 1, 32, 32, 32 } },
  { "matmul/square-64", TINY_OPERATION_MATMUL, { 1, 64, 64, 64 } },
  { "matmul/square-128", TINY_OPERATION_MATMUL, { 1, 128, 128, 128 } },
  { "matmul/small", TINY_OPERATION_MATMUL, { 1, 3, 2, 5 } },
  { "matmul/vector", TINY_OPERATION_MATMUL, { 1, 1, 40, 64 } },
  { "matmul/ragged", TINY_OPERATION_MATMUL, { 1, 33, 17, 29 } },
  { "matmul/ragged-deep", TINY_OPERATION_MATMUL, { 1, 20, 24, 301 } },
  { "matmul/wide", TINY_OPERATION_MATMUL, { 1, 16, 250, 48 } },
  { "matmul/transposed-a", TINY_OPERATION_MATMUL, { 1, 32, 24, 40 }, A_TRANSPOSED },
  { "matmul/transposed-b", TINY_OPERATION_MATMUL, { 1, 32, 24, 40 }, B_TRANSPOSED },
  { "matmul/transposed-both", TINY_OPERATION_MATMUL, { 1, 32, 32, 32 }, A_TRANSPOSED | B_TRANSPOSED },
  { "matmul/transposed-out", TINY_OPERATION_MATMUL, { 1, 24, 32, 32 }, OUT_TRANSPOSED },
  { "matmul/padded-rows", TINY_OPERATION_MATMUL, { 1, 32, 32, 24 }, PADDED },
  { "matmul/flipped", TINY_OPERATION_MATMUL, { 1, 16, 16, 32 }, FLIPPED },
  { "matmul/batch-2", TINY_OPERATION_MATMUL, { 2, 16, 16, 16 } },
  { "matmul/batch-5", TINY_OPERATION_MATMUL, { 5, 17, 19, 23 } },
  { "matmul/batch-shared", TINY_OPERATION_MATMUL, { 3, 16, 24, 16 }, B_SHARED },
  { "matmul/batch-transposed", TINY_OPERATION_MATMUL, { 3, 20, 16, 24 }, A_TRANSPOSED | B_TRANSPOSED },
  { "matmul/batch-of-two-axes", TINY_OPERATION_MATMUL, { 2, 16, 24, 16, 3 } },
  { "matmul/apart", TINY_OPERATION_MATMUL, { 1, 32, 24, 40 }, APART, BIAS_COLUMN },
  { "matmul/scale", TINY_OPERATION_MATMUL, { 1, 32, 16, 24 }, 0, SCALED },
  { "matmul/bias-columns", TINY_OPERATION_MATMUL, { 1, 32, 24, 24 }, 0, BIAS_COLUMN },
  { "matmul/bias-rows", TINY_OPERATION_MATMUL, { 1, 32, 24, 24 }, 0, BIAS_ROW },
  { "matmul/bias-rows-square", TINY_OPERATION_MATMUL, { 1, 24, 24, 16 }, 0, BIAS_ROW },
  { "matmul/bias-full", TINY_OPERATION_MATMUL, { 2, 16, 24, 24 }, 0, BIAS_FULL },
  { "matmul/scale-bias", TINY_OPERATION_MATMUL, { 1, 16, 24, 24 }, 0, SCALED | BIAS_COLUMN },
  { "matmul/relu", TINY_OPERATION_MATMUL, { 1, 24, 24, 24 }, 0, 0, ACT (RELU) },
  { "matmul/bias-relu", TINY_OPERATION_MATMUL, { 1, 33, 40, 24 }, 0, BIAS_COLUMN, ACT (RELU) },
  { "matmul/sigmoid", TINY_OPERATION_MATMUL, { 1, 24, 24, 16 }, 0, 0, ACT (SIGMOID) },
  { "matmul/bias-tanh", TINY_OPERATION_MATMUL, { 1, 24, 24, 16 }, 0, BIAS_COLUMN, ACT (TANH) },
  { "matmul/bias-silu", TINY_OPERATION_MATMUL, { 1, 24, 24, 16 }, 0, BIAS_COLUMN, ACT (SILU) },
  { "matmul/bias-gelu", TINY_OPERATION_MATMUL, { 1, 24, 24, 16 }, 0, BIAS_COLUMN, ACT (GELU) },
  { "matmul/f16", TINY_OPERATION_MATMUL, { 1, 32, 32, 32 }, .from = F (F16), .wide = F (F32), .to = F (F16) },
  { "matmul/f16-ragged", TINY_OPERATION_MATMUL, { 2, 17, 19, 33 }, B_TRANSPOSED, BIAS_COLUMN, ACT (RELU), F (F16), F (F32), F (F32) },
  { "matmul/bf16", TINY_OPERATION_MATMUL, { 1, 32, 32, 32 }, .from = F (BF16), .wide = F (F32), .to = F (BF16) },
  { "matmul/f64", TINY_OPERATION_MATMUL, { 1, 16, 16, 16 }, .from = F (F64), .wide = F (F64), .to = F (F64) },
  { "matmul/i8", TINY_OPERATION_MATMUL, { 1, 32, 32, 32 }, .from = F (I8), .wide = F (I32), .to = F (I32) },
  { "matmul/i32", TINY_OPERATION_MATMUL, { 1, 16, 16, 16 }, .from = F (I32), .wide = F (I32), .to = F (I32) },
  { "matmul/square-256", TINY_OPERATION_MATMUL, { 1, 256, 256, 256 }, .level = CONF_FULL },
  { "matmul/deep", TINY_OPERATION_MATMUL, { 1, 32, 32, 4099 }, .level = CONF_FULL },
  { "matmul/batch-deep", TINY_OPERATION_MATMUL, { 7, 33, 31, 257 }, A_TRANSPOSED, BIAS_FULL, ACT (RELU), .level = CONF_FULL },
  /* batch group out-channel in-channel, input, window, step, dilation, padding */
  { "convolution/window-3", TINY_OPERATION_CONVOLUTION, { 1, 1, 16, 16, 8, 3, 1, 1, 0 } },
  { "convolution/window-1", TINY_OPERATION_CONVOLUTION, { 2, 1, 16, 24, 6, 1, 1, 1, 0 } },
  { "convolution/padding", TINY_OPERATION_CONVOLUTION, { 1, 1, 16, 16, 8, 3, 1, 1, 1 } },
  { "convolution/padding-2", TINY_OPERATION_CONVOLUTION, { 1, 1, 16, 8, 6, 5, 1, 1, 2 } },
  { "convolution/cut", TINY_OPERATION_CONVOLUTION, { 1, 1, 16, 16, 9, 3, 1, 1, -1 } },
  { "convolution/apart", TINY_OPERATION_CONVOLUTION, { 1, 1, 16, 16, 8, 3, 1, 1, 1 }, APART, BIAS_COLUMN },
  { "convolution/step", TINY_OPERATION_CONVOLUTION, { 1, 1, 16, 16, 9, 3, 2, 1, 0 } },
  { "convolution/step-padding", TINY_OPERATION_CONVOLUTION, { 2, 1, 16, 16, 8, 3, 2, 1, 1 } },
  { "convolution/dilation", TINY_OPERATION_CONVOLUTION, { 1, 1, 16, 16, 9, 3, 1, 2, 0 } },
  { "convolution/dilation-padding", TINY_OPERATION_CONVOLUTION, { 1, 1, 16, 16, 8, 3, 1, 2, 2 } },
  { "convolution/batch", TINY_OPERATION_CONVOLUTION, { 3, 1, 16, 16, 6, 3, 1, 1, 1 } },
  { "convolution/groups", TINY_OPERATION_CONVOLUTION, { 2, 3, 8, 8, 6, 3, 1, 1, 1 } },
  { "convolution/depthwise", TINY_OPERATION_CONVOLUTION, { 1, 16, 1, 1, 8, 3, 1, 1, 1 } },
  { "convolution/ragged", TINY_OPERATION_CONVOLUTION, { 2, 1, 19, 5, 7, 3, 1, 1, 1 } },
  { "convolution/bias-relu", TINY_OPERATION_CONVOLUTION, { 2, 1, 16, 16, 8, 3, 1, 1, 1 }, 0, BIAS_COLUMN, ACT (RELU) },
  { "convolution/scale", TINY_OPERATION_CONVOLUTION, { 1, 1, 16, 16, 8, 3, 1, 1, 1 }, 0, SCALED },
  { "convolution/bias-sigmoid", TINY_OPERATION_CONVOLUTION, { 1, 1, 16, 16, 6, 3, 1, 1, 1 }, 0, BIAS_COLUMN, ACT (SIGMOID) },
  { "convolution/channels-last", TINY_OPERATION_CONVOLUTION, { 2, 1, 16, 16, 7, 3, 1, 1, 1 }, A_TRANSPOSED },
  { "convolution/f16", TINY_OPERATION_CONVOLUTION, { 1, 1, 16, 16, 8, 3, 1, 1, 1 }, .from = F (F16), .wide = F (F32), .to = F (F16) },
  { "convolution/i8", TINY_OPERATION_CONVOLUTION, { 1, 1, 16, 16, 8, 3, 1, 1, 1 }, .from = F (I8), .wide = F (I32), .to = F (I32) },
  /* kept kept reduced reduced; or kept kept axis */
  { "reduction/sum", TINY_OPERATION_REDUCTION, { 16, 1, 64, 1 }, .reduce = TINY_INSTR_ADD },
  { "reduction/sum-all", TINY_OPERATION_REDUCTION, { 1, 1, 1000, 1 }, .reduce = TINY_INSTR_ADD },
  { "reduction/mean", TINY_OPERATION_REDUCTION, { 7, 3, 33, 1 }, 0, SCALED, .reduce = TINY_INSTR_ADD },
  { "reduction/sum-of-columns", TINY_OPERATION_REDUCTION, { 33, 1, 65, 1 }, A_TRANSPOSED, .reduce = TINY_INSTR_ADD },
  { "reduction/sum-of-two-axes", TINY_OPERATION_REDUCTION, { 5, 4, 9, 17 }, A_TRANSPOSED, .reduce = TINY_INSTR_ADD },
  { "reduction/max", TINY_OPERATION_REDUCTION, { 16, 2, 64, 3 }, .reduce = TINY_INSTR_MAX },
  { "reduction/max-of-columns", TINY_OPERATION_REDUCTION, { 33, 1, 17, 1 }, A_TRANSPOSED, .reduce = TINY_INSTR_MAX },
  { "reduction/product", TINY_OPERATION_REDUCTION, { 9, 1, 7, 1 }, .reduce = TINY_INSTR_MUL },
  { "reduction/apart", TINY_OPERATION_REDUCTION, { 16, 1, 64, 1 }, APART, .reduce = TINY_INSTR_ADD },
  { "reduction/f16", TINY_OPERATION_REDUCTION, { 16, 1, 64, 1 }, .from = F (F16), .wide = F (F32), .to = F (F16), .reduce = TINY_INSTR_ADD },
  { "reduction/i32", TINY_OPERATION_REDUCTION, { 16, 1, 64, 1 }, .from = F (I32), .wide = F (I32), .to = F (I32), .reduce = TINY_INSTR_ADD },
  { "softmax/rows", TINY_OPERATION_SOFTMAX, { 16, 1, 64 } },
  { "softmax/ragged", TINY_OPERATION_SOFTMAX, { 3, 5, 33 } },
  { "softmax/columns", TINY_OPERATION_SOFTMAX, { 4, 16, 40 }, A_TRANSPOSED },
  { "softmax/apart", TINY_OPERATION_SOFTMAX, { 8, 8, 64 }, APART },
  { "softmax/scale", TINY_OPERATION_SOFTMAX, { 8, 8, 64 }, 0, SCALED },
  { "softmax/long", TINY_OPERATION_SOFTMAX, { 2, 1, 2049 } },
  { "softmax/f16", TINY_OPERATION_SOFTMAX, { 16, 1, 64 }, .from = F (F16), .wide = F (F32), .to = F (F16) },
  /* batch heads query key depth value */
  { "attention/square", TINY_OPERATION_ATTENTION, { 1, 2, 16, 16, 16, 16 }, 0, SCALED },
  { "attention/ragged", TINY_OPERATION_ATTENTION, { 1, 3, 7, 13, 5, 9 } },
  { "attention/one-query", TINY_OPERATION_ATTENTION, { 2, 4, 1, 33, 8, 8 }, 0, SCALED },
  { "attention/mask", TINY_OPERATION_ATTENTION, { 1, 2, 12, 17, 8, 8 }, 0, SCALED | MASKED },
  { "attention/causal", TINY_OPERATION_ATTENTION, { 1, 2, 16, 16, 8, 8 }, 0, SCALED | CAUSAL },
  { "attention/causal-more-keys", TINY_OPERATION_ATTENTION, { 2, 1, 5, 19, 8, 8 }, 0, CAUSAL },
  { "attention/mask-causal", TINY_OPERATION_ATTENTION, { 1, 2, 9, 11, 8, 8 }, 0, MASKED | CAUSAL },
  { "attention/heads-inside", TINY_OPERATION_ATTENTION, { 2, 3, 8, 8, 8, 8 }, A_TRANSPOSED, SCALED },
  { "attention/keys-transposed", TINY_OPERATION_ATTENTION, { 1, 2, 8, 12, 8, 8 }, B_TRANSPOSED, SCALED },
  { "attention/keys-shared", TINY_OPERATION_ATTENTION, { 2, 4, 8, 8, 8, 8 }, B_SHARED, SCALED },
  { "attention/apart", TINY_OPERATION_ATTENTION, { 1, 2, 16, 16, 16, 16 }, APART, SCALED },
  { "attention/f16", TINY_OPERATION_ATTENTION, { 1, 2, 16, 16, 16, 16 }, 0, SCALED, .from = F (F16), .wide = F (F32), .to = F (F16) },
  { "attention/long", TINY_OPERATION_ATTENTION, { 1, 1, 33, 257, 16, 8 }, 0, SCALED | CAUSAL, .level = CONF_FULL },
  { "convolution/everything", TINY_OPERATION_CONVOLUTION, { 3, 2, 17, 9, 15, 3, 2, 2, 3 }, 0, SCALED | BIAS_COLUMN, ACT (RELU), .level = CONF_FULL },
  /* clang-format on */
};

/* ---- views ---- */
typedef struct {
  TinyOperation *operation;
  TinyDType dtype;
} Maker;

/* An operand that lies packed along @n axes of @order, the first outermost, each as long as @lengths says. */
static TinyOperandView *
add_operand (
    Maker *self, TinyOperandRole role, const guint *order, const gint64 *lengths, guint n)
{
  TinyOperation *operation = self->operation;
  TinyOperandView *view = &operation->operands[operation->n_operands];
  gint64 stride = 1;
  view->role = role;
  view->dtype = self->dtype;
  view->buffer = operation->n_operands++;
  for (guint i = n; i-- > 0;) {
    view->strides[order[i]] = operation->extents[order[i]] > 1 || lengths[i] > 1 ? stride : 0;
    stride *= lengths[i];
  }
  view->n_elements = (guint64) stride;
  operation->n_buffers = operation->n_operands;
  return view;
}

/* The same, of the axes' extents. */
static TinyOperandView *
add_packed (Maker *self, TinyOperandRole role, const guint *order, guint n)
{
  gint64 lengths[MAX_ORDER];
  for (guint i = 0; i < n; i++)
    lengths[i] = self->operation->extents[order[i]];
  return add_operand (self, role, order, lengths, n);
}

/* ---- kinds ---- */
static void
make_matmul (const Row *row, Maker *self)
{
  TinyOperation *out = self->operation;
  const guint b = TINY_MATMUL_BATCH, c = b + 1, m = TINY_MATMUL_M, n = TINY_MATMUL_N,
              k = TINY_MATMUL_K;
  const gint64 inner = MAX (row->sizes[4], 1);
  out->n_axes = TINY_MATMUL_K + 1;
  out->extents[b] = row->sizes[0];
  out->extents[c] = inner;
  out->extents[m] = row->sizes[1];
  out->extents[n] = row->sizes[2];
  out->extents[k] = row->sizes[3];
  self->dtype = row->to;
  add_packed (self, TINY_ROLE_OUTPUT,
              row->layout & OUT_TRANSPOSED ? (guint[]){ b, c, n, m } : (guint[]){ b, c, m, n },
              4);
  self->dtype = row->from;
  const gint64 more = row->layout & PADDED ? 7 : 0;
  TinyOperandView *a = add_operand (
      self, TINY_ROLE_A,
      row->layout & A_TRANSPOSED ? (guint[]){ b, c, k, m } : (guint[]){ b, c, m, k },
      (gint64[]){ row->sizes[0], inner, row->sizes[row->layout & A_TRANSPOSED ? 3 : 1],
                  row->sizes[row->layout & A_TRANSPOSED ? 1 : 3] + more },
      4);
  if (row->layout & FLIPPED) {
    a->offset = (gint64) a->n_elements - 1;
    for (guint i = 0; i < TINY_OPERATION_MAX_AXES; i++)
      a->strides[i] = -a->strides[i];
  }
  TinyOperandView *other = add_operand (
      self, TINY_ROLE_B,
      row->layout & B_TRANSPOSED ? (guint[]){ b, c, n, k } : (guint[]){ b, c, k, n },
      (gint64[]){ row->layout & B_SHARED ? 1 : row->sizes[0], inner,
                  row->sizes[row->layout & B_TRANSPOSED ? 2 : 3],
                  row->sizes[row->layout & B_TRANSPOSED ? 3 : 2] + more },
      4);
  if (row->layout & B_SHARED)
    other->strides[b] = 0;
  if (row->after & BIAS_COLUMN)
    add_packed (self, TINY_ROLE_BIAS, (guint[]){ n }, 1);
  else if (row->after & BIAS_ROW)
    add_packed (self, TINY_ROLE_BIAS, (guint[]){ m }, 1);
  else if (row->after & BIAS_FULL)
    add_packed (self, TINY_ROLE_BIAS, (guint[]){ b, c, m, n }, 4);
}

/* A, whose places are along the OUT axes; channels last where it is transposed. */
static void
add_input (const Row *row, Maker *self)
{
  const gint64 *s = row->sizes, input = s[4], wide = s[4] + 2;
  const guint b = TINY_CONVOLUTION_BATCH, g = TINY_CONVOLUTION_GROUP,
              c = TINY_CONVOLUTION_IN_CHANNEL, y = TINY_CONVOLUTION_OUT;
  if (row->layout & A_TRANSPOSED)
    add_operand (self, TINY_ROLE_A, (guint[]){ b, y, y + 1, g, c },
                 (gint64[]){ s[0], input, wide, s[1], s[3] }, 5);
  else
    add_operand (self, TINY_ROLE_A, (guint[]){ b, g, c, y, y + 1 },
                 (gint64[]){ s[0], s[1], s[3], input, wide }, 5);
}

static void
make_convolution (const Row *row, Maker *self)
{
  TinyOperation *out = self->operation;
  const gint64 *s = row->sizes;
  const guint y = TINY_CONVOLUTION_OUT, w = TINY_CONVOLUTION_WINDOW;
  out->n_axes = TINY_CONVOLUTION_WINDOW + 3;
  out->extents[TINY_CONVOLUTION_BATCH] = s[0];
  out->extents[TINY_CONVOLUTION_GROUP] = s[1];
  out->extents[TINY_CONVOLUTION_OUT_CHANNEL] = s[2];
  out->extents[TINY_CONVOLUTION_IN_CHANNEL] = s[3];
  for (guint i = 0; i < 3; i++) {
    const gboolean is_used = i < 2;
    out->window_input[i] = is_used ? s[4] + (i == 1 ? 2 : 0) : 1; /* higher than wide */
    out->window_step[i] = is_used ? s[6] : 1;
    out->window_dilation[i] = is_used ? s[7] : 1;
    out->window_padding[i] = is_used ? s[8] : 0;
    out->extents[w + i] = is_used ? (i == 1 && s[5] > 1 ? s[5] - 1 : s[5]) : 1;
    out->extents[y + i] = (out->window_input[i] + 2 * out->window_padding[i]
                           - (out->extents[w + i] - 1) * out->window_dilation[i] - 1)
                              / out->window_step[i]
                          + 1;
  }
  self->dtype = row->to;
  add_packed (self, TINY_ROLE_OUTPUT,
              (guint[]){ TINY_CONVOLUTION_BATCH, TINY_CONVOLUTION_GROUP,
                         TINY_CONVOLUTION_OUT_CHANNEL, y, y + 1 },
              5);
  self->dtype = row->from;
  add_input (row, self);
  add_packed (self, TINY_ROLE_B,
              (guint[]){ TINY_CONVOLUTION_GROUP, TINY_CONVOLUTION_OUT_CHANNEL,
                         TINY_CONVOLUTION_IN_CHANNEL, w, w + 1 },
              5);
  if (row->after & BIAS_COLUMN)
    add_packed (self, TINY_ROLE_BIAS,
                (guint[]){ TINY_CONVOLUTION_GROUP, TINY_CONVOLUTION_OUT_CHANNEL }, 2);
}

/* Transposed: the reduced axes, or the softmax's, are outermost. */
static void
make_reduction (const Row *row, Maker *self)
{
  TinyOperation *out = self->operation;
  const gboolean is_softmax = row->kind == TINY_OPERATION_SOFTMAX;
  const guint axes[] = { 0, 1, 4, 5 }, n = is_softmax ? 3 : 4; /* of both kinds */
  out->n_axes = is_softmax ? TINY_SOFTMAX_AXIS + 1 : TINY_REDUCTION_REDUCED + 4;
  out->reduce = row->reduce;
  for (guint i = 0; i < n; i++)
    out->extents[axes[i]] = row->sizes[i];
  const guint turned[] = { axes[2], axes[3], axes[0], axes[1] },
              turned_softmax[] = { axes[2], axes[0], axes[1] };
  const guint *order = !(row->layout & A_TRANSPOSED) ? axes
                       : is_softmax                  ? turned_softmax
                                                     : turned;
  self->dtype = row->to;
  add_packed (self, TINY_ROLE_OUTPUT, is_softmax ? order : axes, is_softmax ? n : 2);
  self->dtype = row->from;
  add_packed (self, TINY_ROLE_A, order, n);
}

/* Heads inside where A is transposed: as a product with the weights of all heads leaves them. Keys and values are
 * the same for all heads where B is shared, and keys lie by depth where it is transposed. */
static void
make_attention (const Row *row, Maker *self)
{
  TinyOperation *out = self->operation;
  const guint b = 0, h = 1, q = TINY_ATTENTION_QUERY, k = TINY_ATTENTION_KEY,
              e = TINY_ATTENTION_DEPTH, d = TINY_ATTENTION_VALUE;
  const guint axes[] = { b, h, q, k, e, d };
  const gboolean is_inside = (row->layout & A_TRANSPOSED) != 0,
                 is_shared = (row->layout & B_SHARED) != 0;
  out->n_axes = TINY_ATTENTION_VALUE + 1;
  out->flags = row->after & CAUSAL ? TINY_OPERATION_CAUSAL : 0;
  for (guint i = 0; i < G_N_ELEMENTS (axes); i++)
    out->extents[axes[i]] = row->sizes[i];
  self->dtype = row->to;
  add_packed (self, TINY_ROLE_OUTPUT,
              is_inside ? (guint[]){ b, q, h, d } : (guint[]){ b, h, q, d }, 4);
  self->dtype = row->from;
  add_packed (self, TINY_ROLE_A, is_inside ? (guint[]){ b, q, h, e } : (guint[]){ b, h, q, e },
              4);
  const guint *of_keys = row->layout & B_TRANSPOSED ? (guint[]){ b, h, e, k }
                         : is_inside                ? (guint[]){ b, k, h, e }
                                                    : (guint[]){ b, h, k, e };
  if (is_shared)
    add_packed (self, TINY_ROLE_B, (guint[]){ b, k, e }, 3);
  else
    add_packed (self, TINY_ROLE_B, of_keys, 4);
  if (row->after & MASKED)
    add_packed (self, TINY_ROLE_MASK, (guint[]){ q, k }, 2);
  if (is_shared)
    add_packed (self, TINY_ROLE_B2, (guint[]){ b, k, d }, 3);
  else
    add_packed (self, TINY_ROLE_B2,
                is_inside ? (guint[]){ b, k, h, d } : (guint[]){ b, h, k, d }, 4);
}

/* Each input lies in the middle of a buffer that is longer. */
static void
move_apart (TinyOperation *operation)
{
  for (guint i = 1; i < operation->n_operands; i++) {
    const gint64 before = 5 + 2 * (gint64) i;
    operation->operands[i].offset += before;
    operation->operands[i].n_elements += (guint64) before + 3;
  }
}

guint
conf_offers_count (void)
{
  return G_N_ELEMENTS (rows);
}

void
conf_offers_get (guint i, ConfOffer *out)
{
  Row row = rows[i];
  if (row.from == TINY_DTYPE_VOID)
    row.from = row.wide = row.to = TINY_DTYPE_F32;
  *out = (ConfOffer){ .name = row.name, .level = row.level };
  TinyOperation *operation = &out->operation;
  Maker maker = { .operation = operation };
  operation->struct_size = sizeof *operation;
  operation->version = TINY_OPERATION_VERSION;
  operation->kind = row.kind;
  operation->compute_dtype = row.wide;
  operation->activation = row.activation;
  operation->scale = row.after & SCALED ? 0.375 : 1;
  for (guint axis = 0; axis < TINY_OPERATION_MAX_AXES; axis++)
    operation->extents[axis] = 1;
  switch (row.kind) {
  case TINY_OPERATION_MATMUL:
    make_matmul (&row, &maker);
    break;
  case TINY_OPERATION_REDUCTION:
  case TINY_OPERATION_SOFTMAX:
    make_reduction (&row, &maker);
    break;
  case TINY_OPERATION_ATTENTION:
    make_attention (&row, &maker);
    break;
  default:
    make_convolution (&row, &maker);
    break;
  }
  if (row.layout & APART)
    move_apart (operation);
}
