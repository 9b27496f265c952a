/* SPDX-License-Identifier: MIT
 *
 * What becomes how many kernels: the consequences that the cost model of fusion must have. */
#include <string.h>

#include "base/tiny-error.h"
#include "ir/tiny-shape.h"
#include "schedule/tiny-schedule.h"

#define DIMS(...) ((gint64[]){ __VA_ARGS__ }), G_N_ELEMENTS (((gint64[]){ __VA_ARGS__ }))

static TinyGraph *graph;
static guint n_params;

static TinyNode *
param (const gint64 *dims, guint n)
{
  return tiny_node_new (graph, TINY_OP_PARAM, TINY_DTYPE_F32, 1, 0, NULL, n_params++,
                        tiny_graph_ints (graph, dims, n), "CPU");
}

static TinyNode *
binary (TinyOp op, TinyNode *x, TinyNode *y)
{
  if (x->shape->n > y->shape->n && y->shape->n > 0)
    y = tiny_node_broadcast (graph, y, x->shape->v, x->shape->n);
  else if (x->shape->n == y->shape->n && x->shape->n > 0 && x->shape != y->shape)
    y = tiny_node_broadcast (graph, y, x->shape->v, x->shape->n);
  return tiny_node_binary (graph, op, x, y);
}

static TinyNode *
unary (TinyOp op, TinyNode *x)
{
  return tiny_node_unary (graph, op, x);
}

static TinyNode *
number (double value)
{
  return tiny_node_const_float (graph, TINY_DTYPE_F32, value);
}

static TinyNode *
relu (TinyNode *x)
{
  return binary (TINY_OP_MAX, x, number (0));
}

static TinyNode *
reduce (TinyOp op, TinyNode *x, const gint64 *axes, guint n)
{
  return tiny_node_reduce_axes (graph, x, op, axes, n);
}

/* (M, K) @ (K, N) */
static TinyNode *
matmul (TinyNode *x, TinyNode *y)
{
  gint64 m = x->shape->v[0], k = x->shape->v[1], n = y->shape->v[1];
  x = tiny_node_expand (graph, tiny_node_reshape (graph, x, DIMS (m, 1, k)), DIMS (m, n, k));
  y = tiny_node_permute (graph, y, DIMS (1, 0));
  y = tiny_node_expand (graph, tiny_node_reshape (graph, y, DIMS (1, n, k)), DIMS (m, n, k));
  TinyNode *sum = reduce (TINY_OP_ADD, binary (TINY_OP_MUL, x, y), DIMS (2));
  return tiny_node_reshape (graph, sum, DIMS (m, n));
}

/* x (B, C, H, W), w (O, C, K, K) → (B, O, H-K+1, W-K+1), computed as (B, Y, X, O, KY, KX, C) */
static TinyNode *
conv (TinyNode *x, TinyNode *w)
{
  gint64 B = x->shape->v[0], C = x->shape->v[1], H = x->shape->v[2], W = x->shape->v[3];
  gint64 O = w->shape->v[0], K = w->shape->v[2], Y = H - K + 1, X = W - K + 1;
  x = tiny_node_permute (graph, x, DIMS (0, 2, 3, 1));
  x = tiny_node_reshape (graph, x, DIMS (B, H, W, 1, 1, 1, C));
  x = tiny_node_expand (graph, x, DIMS (B, H, W, 1, K, K, C));
  x = tiny_node_shear (graph, x, 1, 4, 1, 1, 0, 1, Y);
  x = tiny_node_shear (graph, x, 2, 5, 1, 1, 0, 1, X);
  x = tiny_node_expand (graph, x, DIMS (B, Y, X, O, K, K, C));
  w = tiny_node_permute (graph, w, DIMS (0, 2, 3, 1));
  w = tiny_node_reshape (graph, w, DIMS (1, 1, 1, O, K, K, C));
  w = tiny_node_expand (graph, w, DIMS (B, Y, X, O, K, K, C));
  TinyNode *sum = reduce (TINY_OP_ADD, binary (TINY_OP_MUL, x, w), DIMS (4, 5, 6));
  sum = tiny_node_reshape (graph, sum, DIMS (B, Y, X, O));
  return tiny_node_permute (graph, sum, DIMS (0, 3, 1, 2));
}

/* The gradient of conv's x: what differentiating it op by op gives. */
static TinyNode *
conv_gradient (TinyNode *dy, TinyNode *w, gint64 H)
{
  gint64 B = dy->shape->v[0], O = dy->shape->v[1], Y = dy->shape->v[2];
  gint64 C = w->shape->v[1], K = w->shape->v[2];
  dy = tiny_node_permute (graph, dy, DIMS (0, 2, 3, 1));
  dy = tiny_node_reshape (graph, dy, DIMS (B, Y, Y, O, 1, 1, 1));
  dy = tiny_node_expand (graph, dy, DIMS (B, Y, Y, O, K, K, C));
  w = tiny_node_permute (graph, w, DIMS (0, 2, 3, 1));
  w = tiny_node_reshape (graph, w, DIMS (1, 1, 1, O, K, K, C));
  w = tiny_node_expand (graph, w, DIMS (B, Y, Y, O, K, K, C));
  TinyNode *dx = reduce (TINY_OP_ADD, binary (TINY_OP_MUL, dy, w), DIMS (3));
  dx = tiny_node_shear (graph, dx, 2, 5, 1, -1, 0, 1, H);
  dx = tiny_node_shear (graph, dx, 1, 4, 1, -1, 0, 1, H);
  dx = reduce (TINY_OP_ADD, dx, DIMS (4, 5));
  dx = tiny_node_reshape (graph, dx, DIMS (B, H, H, C));
  return tiny_node_permute (graph, dx, DIMS (0, 3, 1, 2));
}

static TinyNode *
mean (TinyNode *x, const gint64 *axes, guint n)
{
  TinyNode *sum = reduce (TINY_OP_ADD, x, axes, n);
  double count = (double) tiny_shape_get_n_elements (x->shape)
                 / (double) tiny_shape_get_n_elements (sum->shape);
  return binary (TINY_OP_MUL, sum, number (1 / count));
}

static TinyNode *
normalise (TinyNode *x, const gint64 *axes, guint n)
{
  TinyNode *centred = binary (TINY_OP_SUB, x, mean (x, axes, n));
  TinyNode *variance = mean (binary (TINY_OP_MUL, centred, centred), axes, n);
  TinyNode *scale = unary (TINY_OP_RECIP,
                           unary (TINY_OP_SQRT, binary (TINY_OP_ADD, variance, number (1e-5))));
  return binary (TINY_OP_MUL, centred, scale);
}

static TinyNode *
softmax (TinyNode *x)
{
  TinyNode *shifted = binary (TINY_OP_SUB, x, reduce (TINY_OP_MAX, x, DIMS (1)));
  TinyNode *e = unary (TINY_OP_EXP2, binary (TINY_OP_MUL, shifted, number (1.442695)));
  return binary (TINY_OP_MUL, e, unary (TINY_OP_RECIP, reduce (TINY_OP_ADD, e, DIMS (1))));
}

static TinyNode *
log_softmax (TinyNode *x)
{
  TinyNode *shifted = binary (TINY_OP_SUB, x, reduce (TINY_OP_MAX, x, DIMS (1)));
  TinyNode *e = unary (TINY_OP_EXP2, binary (TINY_OP_MUL, shifted, number (1.442695)));
  TinyNode *log = unary (TINY_OP_LOG2, reduce (TINY_OP_ADD, e, DIMS (1)));
  return binary (TINY_OP_SUB, shifted, log);
}

/* ---- cases ---- */
static guint
elementwise_chain (TinyNode **roots)
{
  TinyNode *x = param (DIMS (1000, 1000)), *y = param (DIMS (1000));
  for (guint i = 0; i < 10; i++)
    x = binary (TINY_OP_MUL, binary (TINY_OP_ADD, unary (TINY_OP_EXP2, x), y), number (3));
  roots[0] = x;
  return 1;
}

static guint
reduce_epilogue (TinyNode **roots)
{
  TinyNode *x = param (DIMS (1000, 1000));
  roots[0] = relu (binary (TINY_OP_ADD, mean (binary (TINY_OP_MUL, x, x), DIMS (1)),
                           param (DIMS (1000, 1))));
  return 1;
}

static guint
matmul_bias_relu (TinyNode **roots)
{
  TinyNode *y = matmul (param (DIMS (512, 256)), param (DIMS (256, 128)));
  roots[0] = relu (binary (TINY_OP_ADD, y, param (DIMS (128))));
  return 1;
}

/* What follows a contraction in place is part of its kernel, whatever it reads besides. */
static guint
matmul_bias_relu_residual (TinyNode **roots)
{
  TinyNode *y = matmul (param (DIMS (512, 256)), param (DIMS (256, 128)));
  y = relu (binary (TINY_OP_ADD, y, param (DIMS (128))));
  roots[0] = binary (TINY_OP_ADD, y, param (DIMS (512, 128)));
  return 1;
}

static guint
two_matmuls (TinyNode **roots)
{
  TinyNode *y = relu (matmul (param (DIMS (512, 256)), param (DIMS (256, 128))));
  roots[0] = matmul (y, param (DIMS (128, 512)));
  return 1;
}

static guint
matmul_of_relu (TinyNode **roots)
{
  roots[0] = matmul (relu (param (DIMS (512, 256))), param (DIMS (256, 128)));
  return 1;
}

static guint
conv_bias_relu (TinyNode **roots)
{
  TinyNode *y = conv (param (DIMS (32, 16, 28, 28)), param (DIMS (32, 16, 5, 5)));
  roots[0] = relu (binary (TINY_OP_ADD, y, param (DIMS (32, 1, 1))));
  return 1;
}

static guint
two_convs (TinyNode **roots)
{
  TinyNode *y = relu (conv (param (DIMS (32, 16, 28, 28)), param (DIMS (32, 16, 5, 5))));
  roots[0] = relu (conv (y, param (DIMS (32, 32, 5, 5))));
  return 1;
}

/* The padded dy, and the contraction. */
static guint
gradient_of_conv (TinyNode **roots)
{
  roots[0]
      = conv_gradient (relu (param (DIMS (32, 32, 24, 24))), param (DIMS (32, 16, 5, 5)), 28);
  return 1;
}

static guint
softmax_rows (TinyNode **roots)
{
  roots[0] = softmax (param (DIMS (1024, 1024)));
  return 1;
}

static guint
cross_entropy (TinyNode **roots)
{
  TinyNode *x = param (DIMS (128, 10)), *y = param (DIMS (128, 10));
  TinyNode *losses = reduce (TINY_OP_ADD, binary (TINY_OP_MUL, log_softmax (x), y), DIMS (1));
  roots[0] = binary (TINY_OP_MUL, mean (losses, DIMS (0)), number (-1));
  return 1;
}

static guint
layernorm (TinyNode **roots)
{
  TinyNode *y = normalise (param (DIMS (4096, 1024)), DIMS (1));
  roots[0]
      = binary (TINY_OP_ADD, binary (TINY_OP_MUL, y, param (DIMS (1024))), param (DIMS (1024)));
  return 1;
}

static guint
batchnorm (TinyNode **roots)
{
  TinyNode *x = param (DIMS (64, 32, 24, 24));
  TinyNode *y = normalise (x, DIMS (0, 2, 3));
  roots[0] = relu (binary (TINY_OP_MUL, y, param (DIMS (1, 32, 1, 1))));
  return 1;
}

/* A cheap value with two users is computed twice. */
static guint
two_users (TinyNode **roots)
{
  TinyNode *t = binary (TINY_OP_ADD, param (DIMS (1000000)), number (1));
  roots[0] = binary (TINY_OP_MUL, t, param (DIMS (1000000)));
  roots[1] = binary (TINY_OP_MUL, t, param (DIMS (1000000)));
  return 2;
}

/* A dear one is stored. */
static guint
two_users_dear (TinyNode **roots)
{
  TinyNode *t = param (DIMS (1000000));
  for (guint i = 0; i < 8; i++)
    t = unary (TINY_OP_SIN, t);
  roots[0] = binary (TINY_OP_MUL, t, param (DIMS (1000000)));
  roots[1] = binary (TINY_OP_MUL, t, param (DIMS (1000000)));
  return 2;
}

static guint
max_pool (TinyNode **roots)
{
  TinyNode *x = tiny_node_reshape (graph, relu (param (DIMS (32, 8, 24, 24))),
                                   DIMS (32, 8, 12, 2, 12, 2));
  roots[0] = reduce (TINY_OP_MAX, x, DIMS (3, 5));
  return 1;
}

static guint
adam (TinyNode **roots)
{
  TinyNode *g = param (DIMS (100000)), *m = param (DIMS (100000)), *p = param (DIMS (100000));
  TinyNode *m_new = binary (TINY_OP_ADD, binary (TINY_OP_MUL, m, number (0.9)), g);
  TinyNode *p_new = binary (TINY_OP_SUB, p, binary (TINY_OP_MUL, m_new, number (0.01)));
  TinyNode *first[] = { m, m_new }, *second[] = { p, p_new };
  roots[0] = tiny_node_new (graph, TINY_OP_ASSIGN, TINY_DTYPE_F32, 1, 2, first, 0, NULL, NULL);
  roots[1] = tiny_node_new (graph, TINY_OP_ASSIGN, TINY_DTYPE_F32, 1, 2, second, 0, NULL, NULL);
  return 2;
}

/* Products put side by side are not computed where they are masked out. */
static guint
joined_matmuls (TinyNode **roots)
{
  TinyNode *x = matmul (param (DIMS (256, 128)), param (DIMS (128, 64)));
  TinyNode *y = matmul (param (DIMS (256, 128)), param (DIMS (128, 64)));
  x = tiny_node_pad (graph, x, (gint64[]){ 0, 0, 0, 64 }, 2);
  y = tiny_node_pad (graph, y, (gint64[]){ 0, 0, 64, 0 }, 2);
  roots[0] = binary (TINY_OP_ADD, x, y);
  return 1;
}

/* A product that is a result in another order of axes, and is read: it is stored once, as the result. */
static guint
moved_result (TinyNode **roots)
{
  joined_matmuls (roots);
  TinyNode *first = roots[0]->sources[0];
  while (first->op == TINY_OP_PAD)
    first = first->sources[0];
  roots[1] = tiny_node_permute (graph, tiny_node_reshape (graph, first, DIMS (16, 16, 64)),
                                DIMS (1, 2, 0));
  return 2;
}

/* softmax (q kᵀ) v with as many rows as make the scores large: they are not stored. */
static guint
attention (TinyNode **roots)
{
  TinyNode *q = param (DIMS (4096, 64)), *k = param (DIMS (4096, 64));
  TinyNode *scores = matmul (q, tiny_node_permute (graph, k, DIMS (1, 0)));
  roots[0] = matmul (softmax (scores), param (DIMS (4096, 64)));
  return 1;
}

/* Few rows: one kernel goes through them all the same. */
static guint
small_attention (TinyNode **roots)
{
  TinyNode *q = param (DIMS (256, 64)), *k = param (DIMS (256, 64));
  TinyNode *scores = matmul (q, tiny_node_permute (graph, k, DIMS (1, 0)));
  roots[0] = matmul (softmax (scores), param (DIMS (256, 64)));
  return 1;
}

/* Scores whose reader wants parts of rows cannot be computed by whole rows. */
static guint
sheared_scores (TinyNode **roots)
{
  TinyNode *q = param (DIMS (4096, 64)), *k = param (DIMS (4096, 64));
  TinyNode *scores = matmul (q, tiny_node_permute (graph, k, DIMS (1, 0)));
  TinyNode *top = tiny_node_shrink (graph, scores, (gint64[]){ 0, 4096, 0, 2048 }, 2);
  roots[0] = matmul (softmax (top), param (DIMS (2048, 64)));
  roots[1] = reduce (TINY_OP_MAX, scores, DIMS (0));
  return 2;
}

/* Sixty inputs are more than one kernel may have. */
static guint
many_inputs (TinyNode **roots)
{
  TinyNode *x = param (DIMS (4000));
  for (guint i = 0; i < 59; i++)
    x = binary (TINY_OP_ADD, x, param (DIMS (4000)));
  roots[0] = x;
  return 1;
}

static guint
iota (TinyNode **roots)
{
  TinyNode *i = tiny_node_new (graph, TINY_OP_IOTA, TINY_DTYPE_F32, 1, 0, NULL, 0,
                               tiny_graph_ints (graph, DIMS (10)), NULL);
  TinyNode *labels = param (DIMS (128, 1));
  TinyNode *row = tiny_node_broadcast (graph, i, DIMS (128, 10));
  roots[0] = tiny_node_binary (graph, TINY_OP_CMPEQ, row,
                               tiny_node_expand (graph, labels, DIMS (128, 10)));
  return 1;
}

/* Rows of a table, scaled, plus those of another: reads where tokens say, in the kernel that adds. */
static guint
embedding (TinyNode **roots)
{
  TinyNode *tokens = tiny_node_new (graph, TINY_OP_PARAM, TINY_DTYPE_I32, 1, 0, NULL,
                                    n_params++, tiny_graph_ints (graph, DIMS (128, 1)), "CPU");
  TinyNode *at = tiny_node_expand (graph, tokens, DIMS (128, 768));
  TinyNode *table = binary (TINY_OP_MUL, param (DIMS (50257, 768)), number (2));
  TinyNode *rows = tiny_node_gather (graph, table, 0, at);
  roots[0] = relu (binary (TINY_OP_ADD, rows, param (DIMS (128, 768))));
  return 1;
}

/* A product of which few rows are wanted, and those alone are computed. */
static guint
gather_of_matmul (TinyNode **roots)
{
  TinyNode *tokens = tiny_node_new (graph, TINY_OP_PARAM, TINY_DTYPE_I32, 1, 0, NULL,
                                    n_params++, tiny_graph_ints (graph, DIMS (4, 1)), "CPU");
  TinyNode *product = matmul (param (DIMS (4096, 64)), param (DIMS (64, 32)));
  roots[0]
      = tiny_node_gather (graph, product, 0, tiny_node_expand (graph, tokens, DIMS (4, 32)));
  return 1;
}

static const struct {
  const char *name;
  guint (*make) (TinyNode **roots);
  guint least, most; /* kernels */
  const char *last;  /* its name */
} cases[] = {
  { "elementwise-chain", elementwise_chain, 1, 1, "exp_add_1000_1000" },
  { "reduce-epilogue", reduce_epilogue, 1, 1, "mul_sum_add_relu_1000_r1000" },
  { "matmul-bias-relu", matmul_bias_relu, 1, 1, "linear_relu_512_128_r256" },
  { "matmul-bias-relu-residual", matmul_bias_relu_residual, 1, 1,
    "linear_relu_add_512_128_r256" },
  { "two-matmuls", two_matmuls, 2, 2, "matmul_512_512_r128" },
  { "matmul-of-relu", matmul_of_relu, 2, 2, "matmul_512_128_r256" },
  { "conv-bias-relu", conv_bias_relu, 1, 1, "conv_relu_32_32_24_24_r5_5_16" },
  { "two-convs", two_convs, 2, 3, "copy_32_32_400" },
  { "gradient-of-conv", gradient_of_conv, 2, 3, "conv_32_16_28_28_r5_5_32" },
  { "softmax", softmax_rows, 1, 1, "softmax_1024_1024_r1024_1024" },
  { "cross-entropy", cross_entropy, 1, 4, "sub_dot_r128_10" },
  { "layernorm", layernorm, 1, 1, "norm_4096_1024_r1024_1024" },
  { "batchnorm", batchnorm, 3, 5, "sub_mul_relu_64_32_576" },
  { "two-users", two_users, 1, 1, "mul_1000000_x2" },
  { "two-users-dear", two_users_dear, 1, 1, "sin_mul_1000000_x2" },
  { "max-pool", max_pool, 1, 1, "relu_max_3072_12_r2_2" },
  { "adam", adam, 1, 1, "add_sub_100000_x2" },
  { "joined-matmuls", joined_matmuls, 3, 3, "add_256_128" },
  { "moved-result", moved_result, 3, 3, "add_16_16_128" },
  { "attention", attention, 1, 1, "attention_dot_4096_8_16_32_r64_512_512_8_8" },
  { "small-attention", small_attention, 1, 1, "attention_256_8_32_r64_256_256_256" },
  { "sheared-scores", sheared_scores, 4, 6, "matmul_4096_64_r2048" },
  { "many-inputs", many_inputs, 2, 4, "add_4000" },
  { "iota", iota, 1, 1, "equal_128_10" },
  { "embedding", embedding, 1, 1, "gather_add_relu_128_768" },
  { "gather-of-matmul", gather_of_matmul, 1, 1, "gather_matmul_4_32_r64" },
};

static void
test_case (gconstpointer data)
{
  guint c = GPOINTER_TO_UINT (data), n_kernels = 0;
  TinyNode *roots[4];
  g_autoptr (GError) error = NULL;
  graph = tiny_graph_new ();
  n_params = 0;
  guint n = cases[c].make (roots);
  g_autoptr (TinySchedule) schedule
      = tiny_schedule_new (graph, tiny_node_sink (graph, n, roots, NULL), &error);
  g_assert_no_error (error);
  g_autofree char *text = tiny_schedule_to_string (schedule);
  for (guint i = 0; i < schedule->n_items; i++) {
    g_assert_cmpuint (schedule->items[i].n_buffers, <=, 32);
    const TinyScheduleItem *item = &schedule->items[i];
    /* Copies of operands for contractions are not counted. */
    if (!g_str_has_prefix (item->kernel->text, "copy_")
        || schedule->buffers[item->buffers[0]].kind != TINY_SCHEDULE_TEMPORARY)
      n_kernels++;
  }
  if (n_kernels < cases[c].least || n_kernels > cases[c].most || g_test_verbose ())
    g_test_message ("%u kernels, expected %u to %u:\n%s", n_kernels, cases[c].least,
                    cases[c].most, text);
  g_assert_cmpuint (n_kernels, >=, cases[c].least);
  g_assert_cmpuint (n_kernels, <=, cases[c].most);
  g_assert_cmpstr (schedule->items[schedule->n_items - 1].kernel->text, ==, cases[c].last);
}

/* The same graph twice gives the same text. */
static void
test_deterministic (void)
{
  char *texts[2] = { NULL, NULL };
  for (guint i = 0; i < 2; i++) {
    TinyNode *roots[4];
    graph = tiny_graph_new ();
    n_params = 0;
    guint n = gradient_of_conv (roots);
    g_autoptr (TinySchedule) schedule
        = tiny_schedule_new (graph, tiny_node_sink (graph, n, roots, NULL), NULL);
    texts[i] = tiny_schedule_to_string (schedule);
  }
  g_assert_cmpstr (texts[0], ==, texts[1]);
  g_free (texts[0]);
  g_free (texts[1]);
}

static void
test_mixed_devices (void)
{
  g_autoptr (GError) error = NULL;
  graph = tiny_graph_new ();
  const TinyInts *shape = tiny_graph_ints (graph, DIMS (4));
  TinyNode *x
      = tiny_node_new (graph, TINY_OP_PARAM, TINY_DTYPE_F32, 1, 0, NULL, 0, shape, "CPU");
  TinyNode *y
      = tiny_node_new (graph, TINY_OP_PARAM, TINY_DTYPE_F32, 1, 0, NULL, 1, shape, "REF");
  TinyNode *sum = tiny_node_binary (graph, TINY_OP_ADD, x, y);
  g_assert_null (tiny_schedule_new (graph, tiny_node_sink (graph, 1, &sum, NULL), &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, "CPU"));
  g_assert_nonnull (strstr (error->message, "REF"));
}

/* What cannot be scheduled says why; nothing to do is no error. */
static void
test_bad_roots (void)
{
  g_autoptr (GError) error = NULL;
  graph = tiny_graph_new ();
  g_autoptr (TinySchedule) empty
      = tiny_schedule_new (graph, tiny_node_sink (graph, 0, NULL, NULL), &error);
  g_assert_no_error (error);
  g_assert_cmpuint (empty->n_items, ==, 0);

  graph = tiny_graph_new ();
  n_params = 0;
  TinyNode *x = param (DIMS (4)), *y = param (DIMS (5));
  TinyNode *sources[] = { x, y };
  TinyNode *root
      = tiny_node_new (graph, TINY_OP_ASSIGN, TINY_DTYPE_F32, 1, 2, sources, 0, NULL, NULL);
  g_assert_null (tiny_schedule_new (graph, tiny_node_sink (graph, 1, &root, NULL), &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  g_clear_error (&error);

  graph = tiny_graph_new ();
  n_params = 0;
  x = param (DIMS (4));
  TinyNode *roots[2], *first[] = { x, unary (TINY_OP_NEG, x) },
                      *second[] = { x, unary (TINY_OP_SQRT, x) };
  roots[0] = tiny_node_new (graph, TINY_OP_ASSIGN, TINY_DTYPE_F32, 1, 2, first, 0, NULL, NULL);
  roots[1] = tiny_node_new (graph, TINY_OP_ASSIGN, TINY_DTYPE_F32, 1, 2, second, 0, NULL, NULL);
  g_assert_null (tiny_schedule_new (graph, tiny_node_sink (graph, 2, roots, NULL), &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, "twice"));
}

/* A copy between devices stores what it takes, and what follows runs where it went. */
static void
test_copy (void)
{
  g_autoptr (GError) error = NULL;
  graph = tiny_graph_new ();
  const TinyInts *shape = tiny_graph_ints (graph, DIMS (4));
  TinyNode *x
      = tiny_node_new (graph, TINY_OP_PARAM, TINY_DTYPE_F32, 1, 0, NULL, 0, shape, "CPU");
  TinyNode *y = unary (TINY_OP_NEG, x);
  y = tiny_node_new (graph, TINY_OP_COPY, TINY_DTYPE_F32, 1, 1, &y, 0, NULL, "REF");
  y = unary (TINY_OP_EXP2, y);
  g_autoptr (TinySchedule) schedule
      = tiny_schedule_new (graph, tiny_node_sink (graph, 1, &y, NULL), &error);
  g_assert_no_error (error);
  g_assert_cmpuint (schedule->n_items, ==, 3);
  g_assert_cmpuint (schedule->n_arenas, ==, 2);
  g_assert_cmpstr (schedule->items[0].device, ==, "CPU");
  g_assert_cmpint (schedule->items[1].kind, ==, TINY_SCHEDULE_COPY);
  g_assert_cmpstr (schedule->items[1].device, ==, "REF");
  g_assert_cmpstr (schedule->items[2].device, ==, "REF");
}

/* Chains of a hundred thousand operations, without and with what reads another device's name, and
 * expressions whose paths are too many to count. */
static void
test_deep (void)
{
  enum { N = 100000, N_DOUBLINGS = 200 };
  g_autoptr (GError) error = NULL;
  graph = tiny_graph_new ();
  n_params = 0;
  TinyNode *x = param (DIMS (8, 4)),
           *y = tiny_node_new (graph, TINY_OP_IOTA, TINY_DTYPE_F32, 1, 0, NULL, 0,
                               tiny_graph_ints (graph, DIMS (32)), NULL);
  x = tiny_node_new (graph, TINY_OP_DETACH, TINY_DTYPE_F32, 1, 1, &x, 0, NULL, NULL);
  for (guint i = 0; i < N; i++)
    x = binary (i % 2 ? TINY_OP_ADD : TINY_OP_MUL, x, number (i % 7));
  for (guint i = 0; i < N_DOUBLINGS; i++)
    y = binary (TINY_OP_ADD, y, binary (TINY_OP_MUL, y, y));
  x = reduce (TINY_OP_ADD, tiny_node_permute (graph, x, DIMS (1, 0)), DIMS (0));
  TinyNode *roots[] = { x, y };
  g_autoptr (TinySchedule) schedule
      = tiny_schedule_new (graph, tiny_node_sink (graph, 2, roots, NULL), &error);
  g_assert_no_error (error);
  g_autofree char *text = tiny_schedule_to_string (schedule);
  g_assert_cmpuint (schedule->n_items, <, N / 50);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *path = g_strconcat ("/schedule/fusion/", cases[i].name, NULL);
    g_test_add_data_func (path, GUINT_TO_POINTER (i), test_case);
  }
  g_test_add_func ("/schedule/deterministic", test_deterministic);
  g_test_add_func ("/schedule/mixed-devices", test_mixed_devices);
  g_test_add_func ("/schedule/bad-roots", test_bad_roots);
  g_test_add_func ("/schedule/copy", test_copy);
  g_test_add_func ("/schedule/deep", test_deep);
  return g_test_run ();
}
