/* SPDX-License-Identifier: MIT
 *
 * Operations are recognised in any layout, compute what their kernels do, and nothing else is taken for
 * one. evaluate_schedule() compares each with its kernel. */
#include <string.h>

#include "../case-fails.h"
#include "claims.h"
#include "ir/tiny-shape.h"

enum { N_ROUNDS = 400 };

/* ---- matmul ---- */
static void
check_matmul (guint seed)
{
  Test self;
  test_begin (&self, seed);
  gint64 b = 1 + claims_pick (&self, 3), m = 1 + claims_pick (&self, 4),
         k = 2 + claims_pick (&self, 4), n = 2 + claims_pick (&self, 4);
  const TinyDType dtype = claims_pick (&self, 4) == 0   ? TINY_DTYPE_I32
                          : claims_pick (&self, 3) == 0 ? TINY_DTYPE_F16
                                                        : TINY_DTYPE_F32;
  const TinyDType wide = dtype == TINY_DTYPE_F16 ? TINY_DTYPE_F32 : dtype;
  TinyNode *x = claims_add_view (&self, dtype, (gint64[]){ b, m, k }, 3);
  TinyNode *y
      = claims_add_view (&self, dtype, (gint64[]){ claims_pick (&self, 2) ? b : 1, k, n }, 3);
  TinyNode *value = claims_multiply (&self, x, y, wide);
  const guint activation = dtype == TINY_DTYPE_I32
                               ? claims_pick (&self, 2)
                               : claims_pick (&self, TINY_ACTIVATION_GELU + 1);
  const gboolean has_scale = dtype != TINY_DTYPE_I32 && claims_pick (&self, 3) == 0;
  const gboolean has_bias = claims_pick (&self, 2);
  if (has_scale)
    value = claims_apply (&self, TINY_OP_MUL, value, 0.5);
  if (has_bias) {
    const gint64 dims[] = { claims_pick (&self, 2) ? b : 1, claims_pick (&self, 2) ? m : 1, n };
    TinyNode *bias = claims_as_cast (&self, claims_add_input (&self, dtype, dims, 3), wide);
    bias = tiny_node_expand (self.graph, bias, (gint64[]){ b, m, n }, 3);
    value = claims_pick (&self, 2) ? tiny_node_binary (self.graph, TINY_OP_ADD, value, bias)
                                   : tiny_node_binary (self.graph, TINY_OP_ADD, bias, value);
  }
  value = claims_as_cast (&self, claims_add_activation (&self, value, activation), dtype);
  g_autoptr (TinySchedule) schedule = claims_run (&self, &value, 1);
  const TinyOperation *found = claims_find_operation (schedule);
  g_assert_nonnull (found);
  g_assert_cmpuint (found->kind, ==, TINY_OPERATION_MATMUL);
  g_assert_cmpuint (found->activation, ==, activation);
  g_assert_cmpfloat (found->scale, ==, has_scale ? 0.5 : 1);
  g_assert_cmpuint (found->n_operands, ==, has_bias ? 4 : 3);
  g_assert_cmpint (found->operands[0].dtype, ==, dtype);
  g_assert_cmpint (found->compute_dtype, ==, wide);
  test_end (&self);
}

static void
test_matmul (void)
{
  for (guint seed = 1; seed <= N_ROUNDS; seed++)
    check_matmul (seed);
}

/* Of (6, 5) @ (5, 4) with bias and relu, where the second is transposed in memory: each number. */
static void
test_fields (void)
{
  Test self;
  test_begin (&self, 1);
  TinyNode *x = claims_add_input (&self, TINY_DTYPE_F32, (gint64[]){ 1, 6, 5 }, 3);
  TinyNode *y = claims_add_input (&self, TINY_DTYPE_F32, (gint64[]){ 1, 4, 5 }, 3);
  TinyNode *bias = claims_add_input (&self, TINY_DTYPE_F32, (gint64[]){ 1, 1, 4 }, 3);
  y = tiny_node_permute (self.graph, y, (gint64[]){ 0, 2, 1 }, 3);
  TinyNode *value = claims_multiply (&self, x, y, TINY_DTYPE_F32);
  bias = tiny_node_expand (self.graph, bias, (gint64[]){ 1, 6, 4 }, 3);
  value = claims_apply (&self, TINY_OP_MAX,
                        tiny_node_binary (self.graph, TINY_OP_ADD, value, bias), 0);
  g_autoptr (TinySchedule) schedule = claims_run (&self, &value, 1);
  const TinyOperation *found = claims_find_operation (schedule);
  g_assert_nonnull (found);
  const struct {
    guint role;
    gint64 m, n, k;
  } expected[] = { { TINY_ROLE_OUTPUT, 4, 1, 0 },
                   { TINY_ROLE_A, 5, 0, 1 },
                   { TINY_ROLE_B, 0, 5, 1 },
                   { TINY_ROLE_BIAS, 0, 1, 0 } };
  g_assert_cmpint (found->extents[TINY_MATMUL_M], ==, 6);
  g_assert_cmpint (found->extents[TINY_MATMUL_N], ==, 4);
  g_assert_cmpint (found->extents[TINY_MATMUL_K], ==, 5);
  g_assert_cmpuint (found->n_operands, ==, 4);
  g_assert_cmpuint (found->n_buffers, ==, 4);
  for (guint i = 0; i < found->n_operands; i++) {
    g_assert_cmpuint (found->operands[i].role, ==, expected[i].role);
    g_assert_cmpuint (found->operands[i].buffer, ==, i);
    g_assert_cmpint (found->operands[i].strides[TINY_MATMUL_M], ==, expected[i].m);
    g_assert_cmpint (found->operands[i].strides[TINY_MATMUL_N], ==, expected[i].n);
    g_assert_cmpint (found->operands[i].strides[TINY_MATMUL_K], ==, expected[i].k);
  }
  test_end (&self);
}

/* ---- convolution ---- */
typedef struct {
  gint64 b, g, o, c, n_axes; /* batch, groups, channels of one, places */
  gint64 input[2], window[2], step[2], dilation[2], padding[2], out[2];
} Shape;

/* @x seen through a window along axis @axis; the window becomes the last axis. */
static TinyNode *
add_window (Test *self, TinyNode *x, guint axis, const Shape *shape, guint i)
{
  gint64 dims[8];
  guint n = x->shape->n;
  memcpy (dims, x->shape->v, n * sizeof *dims);
  dims[n] = 1;
  x = tiny_node_reshape (self->graph, x, dims, n + 1);
  dims[n] = shape->window[i];
  x = tiny_node_expand (self->graph, x, dims, n + 1);
  return tiny_node_shear (self->graph, x, axis, n, shape->step[i], shape->dilation[i],
                          -shape->padding[i], 1, shape->out[i]);
}

static TinyNode *
convolve (Test *self, const Shape *s)
{
  TinyGraph *graph = self->graph;
  guint n = (guint) s->n_axes;
  gint64 dims[8] = { s->b, s->g * s->c, s->input[0], s->input[1] }, all[8], axes[4];
  TinyNode *x = claims_add_view (self, TINY_DTYPE_F32, dims, 2 + n);
  for (guint i = 0; i < n; i++)
    x = add_window (self, x, 2 + i, s, i);
  const gint64 of_w[] = { s->g, s->o, s->c, s->window[0], s->window[1] };
  TinyNode *w = claims_add_view (self, TINY_DTYPE_F32, of_w, 3 + n);
  /* B G O C out… window… */
  const gint64 head[] = { s->b, s->g, s->o, s->c };
  memcpy (all, head, sizeof head);
  memcpy (dims, all, sizeof head);
  dims[2] = 1;
  for (guint i = 0; i < n; i++) {
    all[4 + i] = dims[4 + i] = s->out[i];
    all[4 + n + i] = dims[4 + n + i] = s->window[i];
  }
  x = tiny_node_expand (graph, tiny_node_reshape (graph, x, dims, 4 + 2 * n), all, 4 + 2 * n);
  memcpy (dims, all, sizeof all);
  dims[0] = 1;
  for (guint i = 0; i < n; i++)
    dims[4 + i] = 1;
  w = tiny_node_expand (graph, tiny_node_reshape (graph, w, dims, 4 + 2 * n), all, 4 + 2 * n);
  axes[0] = 3;
  for (guint i = 0; i < n; i++)
    axes[1 + i] = 4 + n + i;
  TinyNode *product = tiny_node_binary (graph, TINY_OP_MUL, x, w);
  return tiny_node_reduce_axes (graph, product, TINY_OP_ADD, axes, 1 + n);
}

static Shape
make_shape (Test *self)
{
  Shape s = { .b = 1 + claims_pick (self, 3),
              .g = claims_pick (self, 3) == 0 ? 2 : 1,
              .o = 1 + claims_pick (self, 3),
              .c = 1 + claims_pick (self, 3),
              .n_axes = 1 + claims_pick (self, 2) };
  for (guint i = 0; i < s.n_axes; i++) {
    s.window[i] = 1 + claims_pick (self, 3);
    s.step[i] = 1 + claims_pick (self, 2);
    s.dilation[i] = 1 + claims_pick (self, 2);
    s.padding[i] = claims_pick (self, 2);
    s.out[i] = 1 + claims_pick (self, 4);
    s.input[i] = (s.out[i] - 1) * s.step[i] + (s.window[i] - 1) * s.dilation[i] + 1
                 - 2 * s.padding[i] + claims_pick (self, 2);
    s.input[i] = MAX (s.input[i], 1);
  }
  return s;
}

/* How many positions of the window along axis @i are not around the input: 0 leaves nothing of the product. */
static gint64
count_inside (const Shape *s, guint i)
{
  gint64 n = 0;
  for (gint64 y = 0; y < s->out[i]; y++)
    for (gint64 w = 0; w < s->window[i]; w++) {
      const gint64 at = y * s->step[i] + w * s->dilation[i] - s->padding[i];
      n += at >= 0 && at < s->input[i];
    }
  return n;
}

/* Every one with a window, and some without, which are matmuls, or convolutions of one place with padding. None is
 * what has nothing of its input inside; or nothing that is summed, or each element used once. */
static void
test_convolution (void)
{
  guint n_kinds[TINY_OPERATION_CONVOLUTION + 1] = { 0 }, n_windows = 0, n_missed = 0;
  for (guint seed = 1; seed <= N_ROUNDS; seed++) {
    Test self;
    test_begin (&self, seed);
    const Shape s = make_shape (&self);
    TinyNode *value = convolve (&self, &s);
    const guint activation = claims_pick (&self, 2);
    value = claims_add_activation (&self, value, activation);
    g_autoptr (TinySchedule) schedule = claims_run (&self, &value, 1);
    const TinyOperation *found = claims_find_operation (schedule);
    gboolean has_window = FALSE, is_empty = FALSE;
    for (guint i = 0; i < s.n_axes; i++) {
      has_window = has_window || s.window[i] > 1;
      is_empty = is_empty || count_inside (&s, i) == 0;
    }
    n_windows += has_window && !is_empty;
    n_missed += has_window && !is_empty && found == NULL;
    n_kinds[found != NULL ? found->kind : 0]++;
    if (found != NULL)
      g_assert_cmpuint (found->activation, ==, activation);
    test_end (&self);
  }
  const guint n_matmuls = n_kinds[TINY_OPERATION_MATMUL],
              n_convolutions = n_kinds[TINY_OPERATION_CONVOLUTION];
  g_test_message ("%u of %u with a window are none; of %u, %u are convolutions, %u matmuls, %u "
                  "nothing",
                  n_missed, n_windows, N_ROUNDS, n_convolutions, n_matmuls, n_kinds[0]);
  g_assert_cmpuint (n_missed, <=, 2);
  g_assert_cmpuint (n_kinds[0], <=, 50);
  g_assert_cmpuint (n_matmuls, >=, 20);
}

/* 3 groups, a window of 3 × 2, steps of 2 and 1, a dilation, padding: each number. */
static void
test_convolution_fields (void)
{
  Test self;
  test_begin (&self, 1);
  const Shape s = { .b = 2,
                    .g = 3,
                    .o = 4,
                    .c = 5,
                    .n_axes = 2,
                    .input = { 7, 9 },
                    .window = { 3, 2 },
                    .step = { 2, 1 },
                    .dilation = { 1, 2 },
                    .padding = { 1, 1 },
                    .out = { 4, 9 } };
  TinyNode *value = convolve (&self, &s);
  g_autoptr (TinySchedule) schedule = claims_run (&self, &value, 1);
  const TinyOperation *found = claims_find_operation (schedule);
  g_assert_nonnull (found);
  g_assert_cmpuint (found->kind, ==, TINY_OPERATION_CONVOLUTION);
  g_assert_cmpint (found->extents[TINY_CONVOLUTION_BATCH], ==, s.b);
  g_assert_cmpint (found->extents[TINY_CONVOLUTION_GROUP], ==, s.g);
  g_assert_cmpint (found->extents[TINY_CONVOLUTION_OUT_CHANNEL], ==, s.o);
  g_assert_cmpint (found->extents[TINY_CONVOLUTION_IN_CHANNEL], ==, s.c);
  for (guint i = 0; i < 2; i++) {
    /* Views lie in any order, so that the places may be either way round. */
    const guint at = found->extents[TINY_CONVOLUTION_WINDOW] == s.window[0] ? i : 1 - i;
    g_assert_cmpint (found->extents[TINY_CONVOLUTION_OUT + at], ==, s.out[i]);
    g_assert_cmpint (found->extents[TINY_CONVOLUTION_WINDOW + at], ==, s.window[i]);
    g_assert_cmpint (found->window_step[at], ==, s.step[i]);
    g_assert_cmpint (found->window_dilation[at], ==, s.dilation[i]);
    g_assert_cmpint (found->window_padding[at], ==, s.padding[i]);
    g_assert_cmpint (found->window_input[at], ==, s.input[i]);
  }
  test_end (&self);
}

/* ---- what is taken of an epilogue ---- */
static void
test_less (void)
{
  for (guint seed = 0; seed < 4; seed++) {
    Test self;
    test_begin (&self, seed);
    self.takes_bias = seed & 1;
    self.most_activation = seed & 2 ? TINY_ACTIVATION_RELU : TINY_ACTIVATION_NONE;
    TinyNode *x = claims_add_input (&self, TINY_DTYPE_F32, (gint64[]){ 1, 6, 5 }, 3);
    TinyNode *y = claims_add_input (&self, TINY_DTYPE_F32, (gint64[]){ 1, 5, 4 }, 3);
    TinyNode *bias = claims_add_input (&self, TINY_DTYPE_F32, (gint64[]){ 1, 6, 4 }, 3);
    TinyNode *value = claims_multiply (&self, x, y, TINY_DTYPE_F32);
    value = claims_apply (&self, TINY_OP_MAX,
                          tiny_node_binary (self.graph, TINY_OP_ADD, value, bias), 0);
    g_autoptr (TinySchedule) schedule = claims_run (&self, &value, 1);
    const TinyOperation *found = claims_find_operation (schedule);
    g_assert_nonnull (found);
    g_assert_cmpuint (found->n_operands, ==, self.takes_bias ? 4 : 3);
    g_assert_cmpuint (found->activation, ==, self.takes_bias ? self.most_activation : 0);
    g_assert_cmpuint (schedule->n_items, ==,
                      self.takes_bias && self.most_activation > 0 ? 1 : 2);
    test_end (&self);
  }
}

/* A value that is wanted before the activation as well is the operation's, and not lost. */
static void
test_shared (void)
{
  Test self;
  test_begin (&self, 1);
  TinyNode *x = claims_add_input (&self, TINY_DTYPE_F32, (gint64[]){ 1, 6, 5 }, 3);
  TinyNode *y = claims_add_input (&self, TINY_DTYPE_F32, (gint64[]){ 1, 5, 4 }, 3);
  TinyNode *bias = claims_add_input (&self, TINY_DTYPE_F32, (gint64[]){ 1, 6, 4 }, 3);
  TinyNode *value = claims_multiply (&self, x, y, TINY_DTYPE_F32);
  value = tiny_node_binary (self.graph, TINY_OP_ADD, value, bias);
  TinyNode *roots[] = { claims_apply (&self, TINY_OP_MAX, value, 0), value };
  g_autoptr (TinySchedule) schedule = claims_run (&self, roots, 2);
  const TinyOperation *found = claims_find_operation (schedule);
  g_assert_nonnull (found);
  g_assert_cmpuint (found->activation, ==, TINY_ACTIVATION_NONE);
  g_assert_cmpuint (found->n_operands, ==, 4);
  for (guint i = 0; i < self.offered->len; i++)
    g_assert_cmpuint (g_array_index (self.offered, TinyOperation, i).activation, ==,
                      TINY_ACTIVATION_NONE);
  test_end (&self);
}

/* One operation reads what another one gives. */
static void
test_chain (void)
{
  Test self;
  test_begin (&self, 1);
  TinyNode *x = claims_add_input (&self, TINY_DTYPE_F32, (gint64[]){ 1, 6, 5 }, 3);
  for (guint i = 0; i < 3; i++) {
    TinyNode *y = claims_add_input (&self, TINY_DTYPE_F32, (gint64[]){ 1, 5, 5 }, 3);
    x = claims_apply (&self, TINY_OP_MAX, claims_multiply (&self, x, y, TINY_DTYPE_F32), 0);
  }
  g_autoptr (TinySchedule) schedule = claims_run (&self, &x, 1);
  g_assert_cmpuint (schedule->n_items, ==, 3);
  for (guint i = 0; i < 3; i++) {
    g_assert_nonnull (schedule->items[i].operation);
    g_assert_cmpuint (schedule->items[i].operation->activation, ==, TINY_ACTIVATION_RELU);
  }
  test_end (&self);
}

/* A unit that takes nothing changes nothing. */
static void
test_declined (void)
{
  for (guint seed = 1; seed <= 40; seed++) {
    char *texts[2] = { NULL };
    for (guint i = 0; i < 2; i++) {
      Test self;
      g_autoptr (GError) error = NULL;
      test_begin (&self, seed);
      self.takes_all = FALSE;
      TinyNode *x = claims_add_view (&self, TINY_DTYPE_F32, (gint64[]){ 2, 4, 5 }, 3);
      TinyNode *y = claims_add_view (&self, TINY_DTYPE_F32, (gint64[]){ 2, 5, 3 }, 3);
      TinyNode *value = claims_multiply (&self, x, y, TINY_DTYPE_F32);
      value = claims_add_activation (&self, value, claims_pick (&self, 6));
      TinyNode *sink = tiny_node_sink (self.graph, 1, &value, "UNIT");
      const TinyScheduleOptions options
          = { .claim = i == 0 ? claims_offer : NULL, .data = &self };
      g_autoptr (TinySchedule) schedule
          = tiny_schedule_new_with (self.graph, sink, &options, &error);
      g_assert_no_error (error);
      g_assert_cmpuint (self.offered->len, >=, i == 0);
      texts[i] = tiny_schedule_to_string (schedule);
      test_end (&self);
    }
    g_assert_cmpstr (texts[0], ==, texts[1]);
    g_free (texts[0]);
    g_free (texts[1]);
  }
}

/* ---- what is alike ---- */
static TinyNode *
make_pair (Test *self, TinyNode **out_y)
{
  TinyNode *x = claims_add_input (self, TINY_DTYPE_F32, (gint64[]){ 3, 4, 5 }, 3);
  *out_y = claims_add_input (self, TINY_DTYPE_F32, (gint64[]){ 3, 4, 5 }, 3);
  return x;
}

static TinyNode *
sum (Test *self, TinyNode *x, gint64 axis)
{
  return tiny_node_reduce_axes (self->graph, x, TINY_OP_ADD, &axis, 1);
}

/* Products of rows with rows of the same number: sums of products, but of no matrices. */
static TinyNode *
make_dots (Test *self)
{
  TinyNode *y, *x = make_pair (self, &y);
  return sum (self, tiny_node_binary (self->graph, TINY_OP_MUL, x, y), 2);
}

/* As in the gradient of a normalisation: sums of products by channel, over all other axes. */
static TinyNode *
make_channel_sums (Test *self)
{
  TinyNode *y, *x = make_pair (self, &y);
  return tiny_node_reduce_axes (self->graph, tiny_node_binary (self->graph, TINY_OP_MUL, x, y),
                                TINY_OP_ADD, (gint64[]){ 0, 2 }, 2);
}

static TinyNode *
make_squares (Test *self)
{
  TinyNode *x = claims_add_input (self, TINY_DTYPE_F32, (gint64[]){ 3, 4, 5 }, 3);
  return sum (self, tiny_node_binary (self->graph, TINY_OP_MUL, x, x), 1);
}

/* As matmul, with another op, or with more below the sum. */
static TinyNode *
make_like_matmul (Test *self, TinyOp reduce, TinyOp op, gboolean adds)
{
  TinyNode *x = claims_add_input (self, TINY_DTYPE_F32, (gint64[]){ 4, 5, 1 }, 3);
  TinyNode *y = claims_add_input (self, TINY_DTYPE_F32, (gint64[]){ 1, 5, 6 }, 3);
  x = tiny_node_expand (self->graph, x, (gint64[]){ 4, 5, 6 }, 3);
  y = tiny_node_expand (self->graph, y, (gint64[]){ 4, 5, 6 }, 3);
  TinyNode *product = tiny_node_binary (self->graph, op, x, y);
  if (adds)
    product = tiny_node_binary (self->graph, TINY_OP_ADD, product, x);
  return tiny_node_reduce_axes (self->graph, product, reduce, (gint64[]){ 1 }, 1);
}

static TinyNode *
make_sum_of_sums (Test *self)
{
  return make_like_matmul (self, TINY_OP_ADD, TINY_OP_ADD, FALSE);
}

static TinyNode *
make_max_product (Test *self)
{
  return make_like_matmul (self, TINY_OP_MAX, TINY_OP_MUL, FALSE);
}

static TinyNode *
make_more_below (Test *self)
{
  return make_like_matmul (self, TINY_OP_ADD, TINY_OP_MUL, TRUE);
}

/* Sums of products of what is only partly there: zeros are added around. */
static TinyNode *
make_padded (Test *self)
{
  TinyNode *x = claims_add_input (self, TINY_DTYPE_F32, (gint64[]){ 1, 4, 5 }, 3);
  TinyNode *y = claims_add_input (self, TINY_DTYPE_F32, (gint64[]){ 1, 7, 6 }, 3);
  x = tiny_node_pad (self->graph, x, (gint64[]){ 0, 0, 0, 0, 1, 1 }, 3);
  return claims_multiply (self, x, y, TINY_DTYPE_F32);
}

/* What is summed is of one operand alone. */
static TinyNode *
make_summed_once (Test *self)
{
  TinyNode *x = claims_add_input (self, TINY_DTYPE_F32, (gint64[]){ 4, 1, 1 }, 3);
  TinyNode *y = claims_add_input (self, TINY_DTYPE_F32, (gint64[]){ 1, 5, 6 }, 3);
  x = tiny_node_expand (self->graph, x, (gint64[]){ 4, 5, 6 }, 3);
  y = tiny_node_expand (self->graph, y, (gint64[]){ 4, 5, 6 }, 3);
  return sum (self, tiny_node_binary (self->graph, TINY_OP_MUL, x, y), 1);
}

/* One loop that is summed is of one operand alone. */
static TinyNode *
make_summed_twice (Test *self)
{
  TinyNode *x = claims_add_input (self, TINY_DTYPE_F32, (gint64[]){ 4, 5, 3, 1 }, 4);
  TinyNode *y = claims_add_input (self, TINY_DTYPE_F32, (gint64[]){ 1, 5, 1, 6 }, 4);
  x = tiny_node_expand (self->graph, x, (gint64[]){ 4, 5, 3, 6 }, 4);
  y = tiny_node_expand (self->graph, y, (gint64[]){ 4, 5, 3, 6 }, 4);
  return tiny_node_reduce_axes (self->graph, tiny_node_binary (self->graph, TINY_OP_MUL, x, y),
                                TINY_OP_ADD, (gint64[]){ 1, 2 }, 2);
}

static void
test_alike (void)
{
  static TinyNode *(*const makers[]) (Test * self)
      = { make_dots,       make_summed_once, make_channel_sums,
          make_squares,    make_sum_of_sums, make_max_product,
          make_more_below, make_padded,      make_summed_twice };
  for (guint i = 0; i < G_N_ELEMENTS (makers); i++) {
    Test self;
    test_begin (&self, i);
    TinyNode *value = makers[i](&self);
    g_autoptr (TinySchedule) schedule = claims_run (&self, &value, 1);
    for (guint j = 0; j < self.offered->len; j++) {
      guint kind = g_array_index (self.offered, TinyOperation, j).kind;
      g_assert_cmpuint (kind, !=, TINY_OPERATION_MATMUL);
      /* A product with padding is a convolution with a window that is as long as what it is in. */
      g_assert_true (kind != TINY_OPERATION_CONVOLUTION || makers[i] == make_padded);
    }
    test_end (&self);
  }
}

/* An activation with another constant is not that activation. */
static void
test_other_activation (void)
{
  Test self;
  test_begin (&self, 1);
  TinyNode *x = claims_add_input (&self, TINY_DTYPE_F32, (gint64[]){ 1, 6, 5 }, 3);
  TinyNode *y = claims_add_input (&self, TINY_DTYPE_F32, (gint64[]){ 1, 5, 4 }, 3);
  TinyNode *value = claims_multiply (&self, x, y, TINY_DTYPE_F32);
  TinyNode *leaky = tiny_node_binary (self.graph, TINY_OP_MAX, value,
                                      claims_apply (&self, TINY_OP_MUL, value, 0.125));
  g_autoptr (TinySchedule) schedule = claims_run (&self, &leaky, 1);
  const TinyOperation *found = claims_find_operation (schedule);
  g_assert_nonnull (found);
  g_assert_cmpuint (found->activation, ==, TINY_ACTIVATION_NONE);
  g_assert_cmpfloat (found->scale, ==, 1);
  test_end (&self);
}

/* Beside kernels of the program, and after what has to come first: two products of matrices, with one
 * added in between. */
static TinyNode *
multiply_twice (Test *self, TinyNode *x, TinyNode *y, gboolean by_kernel)
{
  static const char code[] = "%y = param.f32{slot=0, shape=[36]}\n"
                             "%x = param.f32{slot=1, shape=[36]}\n"
                             "%i = range.index{number=0, kind=loop}(36)\n"
                             "sink(store(%y, %i, add.f32(load.f32(%x, %i), 1.0)))\n";
  TinyGraph *graph = self->graph;
  TinyNode *product = claims_multiply (self, x, y, TINY_DTYPE_F32);
  TinyNode *more = tiny_node_binary (graph, TINY_OP_ADD, product,
                                     tiny_node_const_float (graph, TINY_DTYPE_F32, 1));
  if (by_kernel) {
    more = tiny_node_new (graph, TINY_OP_KERNEL, TINY_DTYPE_F32, 1, 1, &product, 0,
                          product->shape, code);
    y = tiny_node_new (graph, TINY_OP_AFTER, TINY_DTYPE_F32, 1, 2, (TinyNode *[]){ y, product },
                       0, NULL, NULL);
  }
  return claims_multiply (self, more, y, TINY_DTYPE_F32);
}

static void
test_custom (void)
{
  Test self;
  test_begin (&self, 1);
  TinyNode *x = claims_add_input (&self, TINY_DTYPE_F32, (gint64[]){ 1, 6, 6 }, 3);
  TinyNode *y = claims_add_input (&self, TINY_DTYPE_F32, (gint64[]){ 1, 6, 6 }, 3);
  TinyNode *plain = multiply_twice (&self, x, y, FALSE);
  TinyNode *with_kernel = multiply_twice (&self, x, y, TRUE);
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) expected = evaluate_graph (
      self.graph, tiny_node_sink (self.graph, 1, &plain, "UNIT"), self.inputs);
  const TinyScheduleOptions options = { .claim = claims_offer, .data = &self };
  g_autoptr (TinySchedule) schedule = tiny_schedule_new_with (
      self.graph, tiny_node_sink (self.graph, 1, &with_kernel, "UNIT"), &options, &error);
  g_assert_no_error (error);
  g_autoptr (GPtrArray) found = evaluate_schedule (schedule, self.inputs);
  g_autofree char *difference = NULL;
  if (!arrays_equal (expected->pdata[0], found->pdata[0], &difference))
    CASE_FAILS ("%s", difference);
  guint n_claimed = 0;
  for (guint i = 0; i < schedule->n_items; i++)
    n_claimed += schedule->items[i].operation != NULL;
  g_assert_cmpuint (n_claimed, >=, 1);
  test_end (&self);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/schedule/claims/matmul", test_matmul);
  g_test_add_func ("/schedule/claims/fields", test_fields);
  g_test_add_func ("/schedule/claims/convolution", test_convolution);
  g_test_add_func ("/schedule/claims/convolution/fields", test_convolution_fields);
  g_test_add_func ("/schedule/claims/less", test_less);
  g_test_add_func ("/schedule/claims/shared", test_shared);
  g_test_add_func ("/schedule/claims/chain", test_chain);
  g_test_add_func ("/schedule/claims/declined", test_declined);
  g_test_add_func ("/schedule/claims/alike", test_alike);
  g_test_add_func ("/schedule/claims/custom", test_custom);
  g_test_add_func ("/schedule/claims/other-activation", test_other_activation);
  return g_test_run ();
}
