/* SPDX-License-Identifier: MIT
 *
 * group-tensors.c: operations on whole tensors, from products of matrices to attention, each element within
 * the bound that its own sums and products give it.
 *
 * A dot product of K terms may be off by K units of the sum of the terms' sizes (Higham, Accuracy and Stability of
 * Numerical Algorithms, section 3.1), never by a part of the largest element of the result. Where the terms are whole
 * numbers nothing is rounded, and one that is left out shows at any K. */
#include "conformance.h"
#include "step.h"
#include "tensor-check.h"

#define T(name)   tiny_tensor_##name
#define BIT(name) TINY_DTYPE_BIT (TINY_DTYPE_##name)

typedef struct {
  const ConfSubject *subject;
  ConfClass data;
  TinyDType dtype;
  const gint64 *p;
} Maker;

typedef TinyTensor *(*Make) (const Maker *self);

static TinyTensor *
leaf_of (const Maker *self, TinyDType dtype, guint slot, guint n_dims, const gint64 *shape)
{
  ConfClass data = tiny_dtype_is_float (dtype) ? self->data : CONF_INTEGER;
  return conf_tensor_new (self->subject, data, dtype, shape, n_dims, slot);
}
#define LEAF(slot, ...)                                                                        \
  leaf_of (self, self->dtype, slot, sizeof ((gint64[]){ __VA_ARGS__ }) / sizeof (gint64),      \
           (gint64[]){ __VA_ARGS__ })

/* (M, K) (K, N), of p: M N K */
static TinyTensor *
make_matmul (const Maker *self)
{
  return T (matmul) (LEAF (0, self->p[0], self->p[2]), LEAF (1, self->p[2], self->p[1]));
}

/* (M, K) by rows of (N, K), a bias and a relu */
static TinyTensor *
make_linear (const Maker *self)
{
  TinyTensor *x = LEAF (0, self->p[0], self->p[2]), *weight = LEAF (1, self->p[1], self->p[2]);
  return T (relu) (T (linear) (x, weight, LEAF (2, self->p[1])));
}

/* (B, K, M) transposed, by (B, K, N) */
static TinyTensor *
make_batched (const Maker *self)
{
  TinyTensor *x = LEAF (0, 3, self->p[2], self->p[0]), *y = LEAF (1, 3, self->p[2], self->p[1]);
  return T (matmul) (T (transpose) (x, 1, 2), y);
}

/* p: batch, channels in, out, size; kernel 3, padding 1 */
static TinyTensor *
make_conv (const Maker *self)
{
  const gint64 *p = self->p;
  TinyTensor *x = LEAF (0, p[0], p[1], p[3], p[3] + 2), *weight = LEAF (1, p[2], p[1], 3, 3);
  return T (conv2d) (x, weight, LEAF (2, p[2]), NULL, 0, (gint64[]){ 1 }, 1, NULL, 0, 1);
}

static TinyTensor *
make_strided_conv (const Maker *self)
{
  const gint64 *p = self->p;
  TinyTensor *x = LEAF (0, p[0], p[1], p[3], p[3]), *weight = LEAF (1, p[2], p[1] / 2, 3, 3);
  return T (conv2d) (x, weight, NULL, (gint64[]){ 2 }, 1, (gint64[]){ 2 }, 1, (gint64[]){ 2 },
                     1, 2);
}

static TinyTensor *
make_pool (const Maker *self)
{
  return T (max_pool2d) (LEAF (0, 2, 3, self->p[0], self->p[0]), (gint64[]){ 3 }, 1,
                         (gint64[]){ 2 }, 1, (gint64[]){ 1 }, 1, NULL, 0, FALSE);
}

/* ---- reductions of (p0, p1, p2) over axis p3, or all ---- */
#define REDUCE(name)                                                                           \
  static TinyTensor *make_##name (const Maker *self)                                           \
  {                                                                                            \
    gint axis = (gint) self->p[3];                                                             \
    TinyTensor *x = LEAF (0, self->p[0], self->p[1], self->p[2]);                              \
    return T (name) (x, axis < 0 ? NULL : &axis, axis < 0 ? 0 : 1, FALSE);                     \
  }
REDUCE (sum)
REDUCE (mean)
REDUCE (max)
REDUCE (min)
REDUCE (any)
REDUCE (all)

/* Of numbers near 1, which do not overflow. */
static TinyTensor *
make_prod (const Maker *self)
{
  gint axis = (gint) self->p[3];
  TinyTensor *x = LEAF (0, self->p[0], self->p[1], self->p[2]);
  if (tiny_dtype_is_float (self->dtype))
    x = T (add_number) (T (mul_number) (T (sin) (x), 0.25), 1.0);
  return T (prod) (x, &axis, 1, FALSE);
}

static TinyTensor *
make_var (const Maker *self)
{
  gint axis = (gint) self->p[3];
  return T (var) (LEAF (0, self->p[0], self->p[1], self->p[2]), &axis, 1, 1, FALSE);
}

static TinyTensor *
make_argmax (const Maker *self)
{
  return T (argmax) (LEAF (0, self->p[0], self->p[1], self->p[2]), (gint) self->p[3], FALSE);
}

/* ---- composed ---- */
static TinyTensor *
make_softmax (const Maker *self)
{
  return T (softmax) (LEAF (0, self->p[0], self->p[1]), 1);
}

static TinyTensor *
make_log_softmax (const Maker *self)
{
  return T (log_softmax) (LEAF (0, self->p[0], self->p[1]), -1);
}

static TinyTensor *
make_layer_norm (const Maker *self)
{
  TinyTensor *x = LEAF (0, self->p[0], self->p[1]);
  return T (layer_norm) (x, &self->p[1], 1, LEAF (1, self->p[1]), LEAF (2, self->p[1]), 1e-5);
}

/* x / sqrt (mean (x^2)), as transformers have it */
static TinyTensor *
make_rms_norm (const Maker *self)
{
  gint last = -1;
  g_autoptr (TinyTensor) x = g_object_ref_sink (LEAF (0, self->p[0], self->p[1]));
  TinyTensor *mean = T (mean) (T (square) (x), &last, 1, TRUE);
  return T (mul) (x, T (rsqrt) (T (add_number) (mean, 1e-5)));
}

/* softmax (Q Kt / sqrt (D)) V with a causal mask; p: T D */
static TinyTensor *
make_attention (const Maker *self)
{
  const gint64 t = self->p[0], d = self->p[1];
  TinyTensor *q = LEAF (0, 2, t, d), *k = LEAF (1, 2, t, d), *v = LEAF (2, 2, t, d);
  TinyTensor *scores = T (mul_number) (T (matmul) (q, T (transpose) (k, 1, 2)), 0.125);
  TinyTensor *row
      = T (reshape) (T (arange) (TINY_DTYPE_I32, 0, (double) t, 1), (gint64[]){ t, 1 }, 2),
      *column = T (arange) (TINY_DTYPE_I32, 0, (double) t, 1);
  scores = T (where) (T (le) (column, row), scores, T (scalar) (-1e4));
  return T (matmul) (T (softmax) (scores, -1), v);
}

static TinyTensor *
make_gelu (const Maker *self)
{
  return T (gelu) (LEAF (0, self->p[0]), "tanh");
}

static TinyTensor *
make_sigmoid (const Maker *self)
{
  return T (sigmoid) (LEAF (0, self->p[0]));
}

static TinyTensor *
make_tanh (const Maker *self)
{
  return T (tanh) (LEAF (0, self->p[0]));
}

/* ---- positions ---- */
static TinyTensor *
positions (const Maker *self, gint64 n, gint64 m, gint64 below)
{
  TinyTensor *x = T (arange) (TINY_DTYPE_I32, 0, (double) (n * m), 1);
  x = T (mod) (T (mul) (x, T (scalar) (7919)), T (scalar) ((double) below));
  TinyTensor *zero = leaf_of (self, TINY_DTYPE_I32, 3, 1, (gint64[]){ 1 });
  return T (add) (T (reshape) (x, (gint64[]){ n, m }, 2), T (mul) (zero, T (scalar) (0)));
}

static TinyTensor *
make_gather (const Maker *self)
{
  TinyTensor *x = LEAF (0, self->p[0], self->p[1]);
  return T (index_select) (
      x, 0, T (reshape) (positions (self, 1, 77, self->p[0]), (gint64[]){ 77 }, 1));
}

static TinyTensor *
make_take (const Maker *self)
{
  TinyTensor *x = LEAF (0, self->p[0], self->p[1]);
  return T (gather) (x, 1, positions (self, self->p[0], 19, self->p[1]));
}

/* Sums into rows that positions name: out[r] = sum of x[i] with at[i] = r */
static TinyTensor *
make_scatter (const Maker *self)
{
  const gint64 n = self->p[0], rows = 11;
  TinyTensor *at = T (reshape) (positions (self, 1, n, rows), (gint64[]){ n }, 1);
  TinyTensor *hot = T (cast) (T (one_hot) (at, rows), self->dtype);
  return T (matmul) (T (transpose) (hot, 0, 1), LEAF (0, n, self->p[1]));
}

static TinyTensor *
make_moved (const Maker *self)
{
  TinyTensor *x = LEAF (0, self->p[0], self->p[1], self->p[2]);
  x = T (permute) (x, (gint[]){ 2, 0, 1 }, 3);
  x = T (flip) (x, (gint[]){ 1 }, 1);
  x = T (pad) (x, (gint64[]){ 1, 2, 0, 3, 2, 1 }, 6, "constant", 5);
  return T (slice) (x, 2, 1, self->p[1] + 2, 2);
}

/* ---- the table ---- */
#define FLOATS (BIT (F16) | BIT (BF16) | BIT (F32) | BIT (F64))
#define WIDE   (BIT (F32) | BIT (F64))
#define INTEGERS                                                                               \
  (BIT (I8) | BIT (U8) | BIT (I16) | BIT (U16) | BIT (I32) | BIT (U32) | BIT (I64) | BIT (U64))
#define SIGNED   (1u << CONF_SIGNED)
#define POSITIVE (1u << CONF_POSITIVE)
#define INTEGER  (1u << CONF_INTEGER)
#define HUGE_    (1u << CONF_HUGE)
#define DRAWN    (SIGNED | POSITIVE | INTEGER)

/* clang-format off */
static const struct {
  const char *name;
  Make make;
  TinyInstrOp op; /* that its worst error is kept under */
  guint32 dtypes, classes;
  ConfLevel level;
  gint64 p[4];
} rows[] = {
#define MATMUL(level, dtypes, m, n, k) \
  { "matmul-" #m "x" #n "x" #k, make_matmul, TINY_INSTR_MULACC, dtypes, DRAWN, CONF_##level, { m, n, k } },
  MATMUL (CORE, FLOATS | INTEGERS, 5, 7, 1) MATMUL (CORE, FLOATS, 5, 7, 2) MATMUL (CORE, FLOATS | BIT (I32), 5, 7, 33)
  MATMUL (FULL, FLOATS, 1, 1, 3) MATMUL (FULL, FLOATS, 3, 5, 7) MATMUL (FULL, FLOATS, 13, 17, 16)
  MATMUL (CORE, FLOATS | BIT (I32) | BIT (I64) | BIT (I8), 17, 33, 127) MATMUL (FULL, FLOATS, 4, 3, 1000)
  MATMUL (CORE, WIDE | BIT (I32), 4, 3, 4096) MATMUL (CORE, BIT (F32), 64, 64, 64) MATMUL (CORE, BIT (F32), 65, 63, 129)
  MATMUL (CORE, BIT (F32) | BIT (F16), 1, 301, 257) MATMUL (CORE, BIT (F32), 301, 1, 257)
  MATMUL (FULL, BIT (F32) | BIT (BF16), 128, 96, 100) MATMUL (FULL, BIT (F32), 256, 32, 200) MATMUL (FULL, WIDE | BIT (BF16), 2, 2, 9999)
  { "linear", make_linear, TINY_INSTR_MULACC, FLOATS, DRAWN, CONF_CORE, { 19, 23, 65 } },
  { "batched", make_batched, TINY_INSTR_MULACC, FLOATS | BIT (I32), DRAWN, CONF_CORE, { 9, 13, 31 } },
  { "conv", make_conv, TINY_INSTR_MULACC, FLOATS | BIT (I32), DRAWN, CONF_CORE, { 2, 5, 7, 11 } },
  { "conv-1x16", make_conv, TINY_INSTR_MULACC, FLOATS, DRAWN, CONF_FULL, { 3, 1, 16, 14 } },
  { "conv-strided", make_strided_conv, TINY_INSTR_MULACC, FLOATS, DRAWN, CONF_FULL, { 2, 4, 6, 13 } },
  { "max-pool", make_pool, TINY_INSTR_MAX, FLOATS, DRAWN, CONF_CORE, { 13 } },
#define REDUCTION(level, name, op, dtypes, classes, a, b, c, axis) \
  { #name "-" #a "x" #b "x" #c "-axis" #axis, make_##name, TINY_INSTR_##op, dtypes, classes, CONF_##level, { a, b, c, axis } },
#define REDUCTIONS(name, op, dtypes, classes) \
  REDUCTION (CORE, name, op, dtypes, classes, 7, 13, 37, 2) REDUCTION (FULL, name, op, dtypes, classes, 7, 13, 37, 1) \
  REDUCTION (FULL, name, op, dtypes, classes, 301, 3, 5, 0) REDUCTION (FULL, name, op, dtypes, classes, 3, 1, 4097, 2)
  REDUCTIONS (sum, ADD, FLOATS | INTEGERS, DRAWN) REDUCTION (CORE, sum, ADD, WIDE | BIT (BF16) | BIT (I32), DRAWN, 3, 100, 333, -1)
  REDUCTION (CORE, sum, ADD, BIT (F32) | BIT (I32), DRAWN, 1, 1, 65537, -1)
  REDUCTIONS (mean, ADD, FLOATS, DRAWN) REDUCTIONS (max, MAX, FLOATS | INTEGERS, DRAWN | HUGE_) REDUCTION (CORE, max, MAX, BIT (F32) | BIT (U32), DRAWN, 3, 7, 333, -1)
  REDUCTIONS (min, MAX, FLOATS | INTEGERS, DRAWN | HUGE_) REDUCTION (CORE, prod, MUL, WIDE | INTEGERS, DRAWN, 7, 13, 37, 2) REDUCTION (FULL, prod, MUL, WIDE | INTEGERS, DRAWN, 61, 3, 5, 0)
  REDUCTIONS (any, OR, INTEGERS, INTEGER) REDUCTIONS (all, AND, INTEGERS, INTEGER) REDUCTIONS (var, ADD, WIDE, SIGNED | POSITIVE)
  REDUCTIONS (argmax, MAX, WIDE | BIT (I32), SIGNED | INTEGER)
  { "softmax", make_softmax, TINY_INSTR_EXP2, FLOATS, DRAWN, CONF_CORE, { 13, 67 } },
  { "softmax-long", make_softmax, TINY_INSTR_EXP2, BIT (F32), SIGNED | POSITIVE, CONF_FULL, { 3, 5001 } },
  { "log-softmax", make_log_softmax, TINY_INSTR_LOG2, WIDE, SIGNED | POSITIVE, CONF_FULL, { 13, 67 } },
  { "layer-norm", make_layer_norm, TINY_INSTR_SQRT, WIDE | BIT (F16), SIGNED | POSITIVE, CONF_CORE, { 13, 97 } },
  { "rms-norm", make_rms_norm, TINY_INSTR_SQRT, WIDE | BIT (BF16), SIGNED | POSITIVE, CONF_CORE, { 13, 97 } },
  { "attention", make_attention, TINY_INSTR_MULACC, WIDE | BIT (F16), POSITIVE | INTEGER, CONF_CORE, { 19, 24 } },
  { "gelu", make_gelu, TINY_INSTR_MUL, FLOATS, SIGNED | POSITIVE, CONF_CORE, { 999 } },
  { "sigmoid", make_sigmoid, TINY_INSTR_EXP2, FLOATS, SIGNED | POSITIVE, CONF_CORE, { 999 } },
  { "tanh", make_tanh, TINY_INSTR_EXP2, FLOATS, POSITIVE, CONF_CORE, { 999 } },
  { "gather", make_gather, TINY_INSTR_LOAD, FLOATS | INTEGERS, SIGNED | INTEGER, CONF_CORE, { 31, 17 } },
  { "take", make_take, TINY_INSTR_LOAD, FLOATS | BIT (I32), SIGNED | INTEGER, CONF_CORE, { 31, 17 } },
  { "scatter", make_scatter, TINY_INSTR_STORE, FLOATS | BIT (I32), DRAWN, CONF_CORE, { 101, 17 } },
  { "moved", make_moved, TINY_INSTR_STORE, FLOATS | INTEGERS, SIGNED | INTEGER, CONF_CORE, { 5, 9, 7 } },
};
/* clang-format on */

static void
run (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const Maker maker = { subject, (ConfClass) self->args[2], (TinyDType) self->args[1],
                        rows[self->args[0]].p };
  conf_tensor_check (trial, subject, rows[self->args[0]].make (&maker), rows[self->args[0]].op);
}

/* Integers have one class of these, whatever a row says of floats. */
static gboolean
is_wanted (const ConfSubject *subject, guint row, TinyDType dtype, ConfClass data)
{
  /* What may be claimed; all else is another device's. */
  if (conf_only_claims (subject)
      && ((dtype != TINY_DTYPE_F32 && dtype != TINY_DTYPE_F16)
          || (rows[row].op != TINY_INSTR_MULACC && rows[row].op != TINY_INSTR_ADD
              && rows[row].op != TINY_INSTR_EXP2)))
    return FALSE;
  if (!tiny_dtype_is_float (dtype))
    return data == CONF_INTEGER;
  return (rows[row].classes >> data & 1) != 0;
}

static void
list (const ConfSubject *subject, ConfList *out)
{
  if (subject->target == NULL)
    return;
  for (guint row = 0; row < G_N_ELEMENTS (rows); row++)
    for (TinyDType dtype = TINY_DTYPE_I8; dtype <= TINY_DTYPE_F64; dtype++) {
      if (!(rows[row].dtypes >> dtype & 1))
        continue;
      if (dtype == TINY_DTYPE_F64 && !(subject->target->dtypes_compute & BIT (F64))) {
        conf_list_absent (out, "the device does not compute with f64", "%s/f64",
                          rows[row].name);
        continue;
      }
      for (ConfClass data = 0; data < CONF_ALL; data++) {
        const ConfCase self
            = { .run = run, .level = rows[row].level, .args = { row, dtype, data } };
        if (is_wanted (subject, row, dtype, data))
          conf_list_add (out, &self, "%s/%s/%s", rows[row].name, tiny_dtype_to_string (dtype),
                         conf_class_to_string (data));
      }
    }
}

const ConfGroup conf_group_tensors
    = { "tensors", "products, sums and what is made of them, each element within its own bound",
        list };
