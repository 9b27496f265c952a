/* SPDX-License-Identifier: MIT
 *
 * Operations are recognised in any layout, compute what their kernels do, and nothing else is taken for
 * one. evaluate_schedule() compares each with its kernel. */
#include <string.h>

#include "evaluate.h"
#include "ir/tiny-shape.h"
#include "schedule/weights.h"

enum { N_ROUNDS = 400 };

typedef struct {
  TinyGraph *graph;
  GRand *random;
  GPtrArray *inputs;
  GArray *offered;                   /* TinyOperation */
  guint n_accepted, most_activation; /* accepts only so much of an epilogue */
  gboolean takes_bias, takes_all;
} Test;

static void
test_begin (Test *self, guint seed)
{
  *self = (Test){ .graph = tiny_graph_new (),
                  .random = g_rand_new_with_seed (seed),
                  .inputs = g_ptr_array_new_with_free_func ((GDestroyNotify) array_free),
                  .offered = g_array_new (FALSE, FALSE, sizeof (TinyOperation)),
                  .most_activation = TINY_ACTIVATION_GELU,
                  .takes_bias = TRUE,
                  .takes_all = TRUE };
}

static void
test_end (Test *self)
{
  g_rand_free (self->random);
  g_ptr_array_unref (self->inputs);
  g_array_unref (self->offered);
}

static int
pick (Test *self, int n)
{
  return g_rand_int_range (self->random, 0, n);
}

/* ---- graphs ---- */
static TinyNode *
add_input (Test *self, TinyDType dtype, const gint64 *dims, guint n)
{
  TinyNode *param
      = tiny_node_new (self->graph, TINY_OP_PARAM, dtype, 1, 0, NULL, self->inputs->len,
                       tiny_graph_ints (self->graph, dims, n), "UNIT");
  Array *array = array_new (dtype, tiny_shape_get_n_elements (param->shape));
  for (gint64 k = 0; k < array->n; k++)
    if (tiny_dtype_is_float (dtype))
      array->v[k].f = pick (self, 9) - 4;
    else
      array->v[k].i = pick (self, 9) - 4;
  g_ptr_array_add (self->inputs, array);
  return param;
}

static TinyNode *
as_cast (Test *self, TinyNode *x, TinyDType dtype)
{
  return tiny_node_cast (self->graph, x, dtype);
}

/* A value of shape @dims that lies in memory in another order, flipped, cut out of a larger one, or
 * computed by something that is stored first. */
static TinyNode *
add_view (Test *self, TinyDType dtype, const gint64 *dims, guint n)
{
  gint64 order[8], back[8], stored[8], ints[16];
  for (guint i = 0; i < n; i++)
    order[i] = i;
  for (guint i = 0; i < n; i++) {
    guint j = pick (self, n);
    gint64 other = order[i];
    order[i] = order[j];
    order[j] = other;
  }
  for (guint i = 0; i < n; i++) {
    gint64 more = pick (self, 3) == 0 ? 1 + pick (self, 2) : 0;
    back[order[i]] = i;
    ints[2 * i] = more > 0 ? pick (self, (int) more + 1) : 0;
    ints[2 * i + 1] = ints[2 * i] + dims[order[i]];
    stored[i] = dims[order[i]] + more;
  }
  TinyNode *x = add_input (self, dtype, stored, n);
  if (pick (self, 3) == 0)
    x = tiny_node_unary (self->graph, TINY_OP_NEG, x);
  x = tiny_node_shrink (self->graph, x, ints, n);
  if (pick (self, 3) == 0)
    x = tiny_node_flip (self->graph, x, (gint64[]){ pick (self, n) }, 1);
  x = tiny_node_permute (self->graph, x, back, n);
  if (pick (self, 3) == 0) /* what is computed in the view's own order */
    x = tiny_node_binary (self->graph, TINY_OP_ADD, x, x);
  return x;
}

/* (B, M, K) times (B, K, N): the sum over K of the product, as (B, M, N). */
static TinyNode *
multiply (Test *self, TinyNode *x, TinyNode *y, TinyDType wide)
{
  gint64 b = x->shape->v[0], m = x->shape->v[1], k = x->shape->v[2], n = y->shape->v[2];
  TinyGraph *graph = self->graph;
  x = tiny_node_reshape (graph, as_cast (self, x, wide), (gint64[]){ b, m, k, 1 }, 4);
  y = tiny_node_reshape (graph, as_cast (self, y, wide), (gint64[]){ y->shape->v[0], 1, k, n },
                         4);
  x = tiny_node_expand (graph, x, (gint64[]){ b, m, k, n }, 4);
  y = tiny_node_expand (graph, y, (gint64[]){ b, m, k, n }, 4);
  TinyNode *product = tiny_node_binary (graph, TINY_OP_MUL, x, y);
  product = tiny_node_reduce_axes (graph, product, TINY_OP_ADD, (gint64[]){ 2 }, 1);
  return tiny_node_reshape (graph, product, (gint64[]){ b, m, n }, 3);
}

static TinyNode *
number (Test *self, const TinyNode *like, double value)
{
  return tiny_node_const_float (self->graph, like->dtype, value);
}

static TinyNode *
apply (Test *self, TinyOp op, TinyNode *x, double value)
{
  return tiny_node_binary (self->graph, op, x, number (self, x, value));
}

static TinyNode *
add_sigmoid (Test *self, TinyNode *x)
{
  TinyNode *minus = tiny_node_unary (self->graph, TINY_OP_NEG, x);
  TinyNode *power = tiny_node_unary (self->graph, TINY_OP_EXP2,
                                     apply (self, TINY_OP_MUL, minus, 1 / G_LN2));
  return tiny_node_unary (self->graph, TINY_OP_RECIP, apply (self, TINY_OP_ADD, power, 1));
}

/* As the tensor room writes them. */
static TinyNode *
add_activation (Test *self, TinyNode *x, guint activation)
{
  TinyGraph *graph = self->graph;
  switch (activation) {
  case TINY_ACTIVATION_RELU:
    return apply (self, TINY_OP_MAX, x, 0);
  case TINY_ACTIVATION_SIGMOID:
    return add_sigmoid (self, x);
  case TINY_ACTIVATION_TANH:
    return apply (
        self, TINY_OP_ADD,
        apply (self, TINY_OP_MUL, add_sigmoid (self, apply (self, TINY_OP_MUL, x, 2)), 2), -1);
  case TINY_ACTIVATION_SILU:
    return tiny_node_binary (graph, TINY_OP_MUL, x, add_sigmoid (self, x));
  case TINY_ACTIVATION_GELU: {
    TinyNode *cube
        = tiny_node_binary (graph, TINY_OP_MUL, x, tiny_node_binary (graph, TINY_OP_MUL, x, x));
    TinyNode *inner
        = tiny_node_binary (graph, TINY_OP_ADD, x, apply (self, TINY_OP_MUL, cube, 0.044715));
    inner = apply (self, TINY_OP_MUL, inner, 0.7978845608028654);
    return tiny_node_binary (graph, TINY_OP_MUL, x,
                             add_sigmoid (self, apply (self, TINY_OP_MUL, inner, 2)));
  }
  default:
    return x;
  }
}

/* ---- running ---- */
static gboolean
offer (const char *device, const TinyOperation *operation, double own_ns, gpointer data)
{
  Test *self = data;
  g_assert_cmpstr (device, ==, "UNIT");
  if (operation == NULL)
    return TRUE;
  g_assert_cmpfloat (own_ns, >, 0);
  g_array_append_vals (self->offered, operation, 1);
  gboolean has_bias = operation->operands[operation->n_operands - 1].role == TINY_ROLE_BIAS;
  return self->takes_all && operation->activation <= self->most_activation
         && (!has_bias || self->takes_bias);
}

/* Schedules, compares all values, and returns the schedule. */
static TinySchedule *
run (Test *self, TinyNode *const *roots, guint n_roots)
{
  g_autoptr (GError) error = NULL;
  TinyNode *sink = tiny_node_sink (self->graph, n_roots, roots, "UNIT");
  const TinyScheduleOptions options = { .claim = offer, .data = self };
  g_autoptr (GPtrArray) expected = evaluate_graph (self->graph, sink, self->inputs);
  TinySchedule *schedule = tiny_schedule_new_with (self->graph, sink, &options, &error);
  g_assert_no_error (error);
  g_autoptr (GPtrArray) found = evaluate_schedule (schedule, self->inputs);
  for (guint i = 0; i < found->len; i++) {
    g_autofree char *difference = NULL;
    if (!arrays_equal (expected->pdata[i], found->pdata[i], &difference))
      g_error ("output %u: %s", i, difference);
  }
  return schedule;
}

/* The only operation in @schedule; NULL: there is none. */
static const TinyOperation *
find_operation (TinySchedule *schedule)
{
  const TinyOperation *found = NULL;
  for (guint i = 0; i < schedule->n_items; i++)
    if (schedule->items[i].operation != NULL) {
      g_assert_null (found);
      found = schedule->items[i].operation;
    }
  return found;
}

/* ---- matmul ---- */
static void
check_matmul (guint seed)
{
  Test self;
  test_begin (&self, seed);
  gint64 b = 1 + pick (&self, 3), m = 1 + pick (&self, 4), k = 2 + pick (&self, 4),
         n = 2 + pick (&self, 4);
  const TinyDType dtype = pick (&self, 4) == 0   ? TINY_DTYPE_I32
                          : pick (&self, 3) == 0 ? TINY_DTYPE_F16
                                                 : TINY_DTYPE_F32;
  const TinyDType wide = dtype == TINY_DTYPE_F16 ? TINY_DTYPE_F32 : dtype;
  TinyNode *x = add_view (&self, dtype, (gint64[]){ b, m, k }, 3);
  TinyNode *y = add_view (&self, dtype, (gint64[]){ pick (&self, 2) ? b : 1, k, n }, 3);
  TinyNode *value = multiply (&self, x, y, wide);
  const guint activation
      = dtype == TINY_DTYPE_I32 ? pick (&self, 2) : pick (&self, TINY_ACTIVATION_GELU + 1);
  const gboolean has_scale = dtype != TINY_DTYPE_I32 && pick (&self, 3) == 0;
  const gboolean has_bias = pick (&self, 2);
  if (has_scale)
    value = apply (&self, TINY_OP_MUL, value, 0.5);
  if (has_bias) {
    const gint64 dims[] = { pick (&self, 2) ? b : 1, pick (&self, 2) ? m : 1, n };
    TinyNode *bias = as_cast (&self, add_input (&self, dtype, dims, 3), wide);
    bias = tiny_node_expand (self.graph, bias, (gint64[]){ b, m, n }, 3);
    value = pick (&self, 2) ? tiny_node_binary (self.graph, TINY_OP_ADD, value, bias)
                            : tiny_node_binary (self.graph, TINY_OP_ADD, bias, value);
  }
  value = as_cast (&self, add_activation (&self, value, activation), dtype);
  g_autoptr (TinySchedule) schedule = run (&self, &value, 1);
  const TinyOperation *found = find_operation (schedule);
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
  TinyNode *x = add_input (&self, TINY_DTYPE_F32, (gint64[]){ 1, 6, 5 }, 3);
  TinyNode *y = add_input (&self, TINY_DTYPE_F32, (gint64[]){ 1, 4, 5 }, 3);
  TinyNode *bias = add_input (&self, TINY_DTYPE_F32, (gint64[]){ 1, 1, 4 }, 3);
  y = tiny_node_permute (self.graph, y, (gint64[]){ 0, 2, 1 }, 3);
  TinyNode *value = multiply (&self, x, y, TINY_DTYPE_F32);
  bias = tiny_node_expand (self.graph, bias, (gint64[]){ 1, 6, 4 }, 3);
  value
      = apply (&self, TINY_OP_MAX, tiny_node_binary (self.graph, TINY_OP_ADD, value, bias), 0);
  g_autoptr (TinySchedule) schedule = run (&self, &value, 1);
  const TinyOperation *found = find_operation (schedule);
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

/* ---- what is taken of an epilogue ---- */
static void
test_less (void)
{
  for (guint seed = 0; seed < 4; seed++) {
    Test self;
    test_begin (&self, seed);
    self.takes_bias = seed & 1;
    self.most_activation = seed & 2 ? TINY_ACTIVATION_RELU : TINY_ACTIVATION_NONE;
    TinyNode *x = add_input (&self, TINY_DTYPE_F32, (gint64[]){ 1, 6, 5 }, 3);
    TinyNode *y = add_input (&self, TINY_DTYPE_F32, (gint64[]){ 1, 5, 4 }, 3);
    TinyNode *bias = add_input (&self, TINY_DTYPE_F32, (gint64[]){ 1, 6, 4 }, 3);
    TinyNode *value = multiply (&self, x, y, TINY_DTYPE_F32);
    value = apply (&self, TINY_OP_MAX, tiny_node_binary (self.graph, TINY_OP_ADD, value, bias),
                   0);
    g_autoptr (TinySchedule) schedule = run (&self, &value, 1);
    const TinyOperation *found = find_operation (schedule);
    g_assert_nonnull (found);
    g_assert_cmpuint (found->n_operands, ==, self.takes_bias ? 4 : 3);
    g_assert_cmpuint (found->activation, ==, self.takes_bias ? self.most_activation : 0);
    g_assert_cmpuint (schedule->n_items, ==,
                      self.takes_bias && self.most_activation > 0 ? 1 : 2);
    test_end (&self);
  }
}

/* A value that is wanted before the activation as well is not lost. */
static void
test_shared (void)
{
  Test self;
  test_begin (&self, 1);
  TinyNode *x = add_input (&self, TINY_DTYPE_F32, (gint64[]){ 1, 6, 5 }, 3);
  TinyNode *y = add_input (&self, TINY_DTYPE_F32, (gint64[]){ 1, 5, 4 }, 3);
  TinyNode *value = multiply (&self, x, y, TINY_DTYPE_F32);
  TinyNode *roots[] = { apply (&self, TINY_OP_MAX, value, 0), value };
  g_autoptr (TinySchedule) schedule = run (&self, roots, 2);
  const TinyOperation *found = find_operation (schedule);
  g_assert_nonnull (found);
  g_assert_cmpuint (found->activation, ==, TINY_ACTIVATION_NONE);
  test_end (&self);
}

/* One operation reads what another one gives. */
static void
test_chain (void)
{
  Test self;
  test_begin (&self, 1);
  TinyNode *x = add_input (&self, TINY_DTYPE_F32, (gint64[]){ 1, 6, 5 }, 3);
  for (guint i = 0; i < 3; i++) {
    TinyNode *y = add_input (&self, TINY_DTYPE_F32, (gint64[]){ 1, 5, 5 }, 3);
    x = apply (&self, TINY_OP_MAX, multiply (&self, x, y, TINY_DTYPE_F32), 0);
  }
  g_autoptr (TinySchedule) schedule = run (&self, &x, 1);
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
    g_autofree char *texts[2] = { NULL };
    for (guint i = 0; i < 2; i++) {
      Test self;
      g_autoptr (GError) error = NULL;
      test_begin (&self, seed);
      self.takes_all = FALSE;
      TinyNode *x = add_view (&self, TINY_DTYPE_F32, (gint64[]){ 2, 4, 5 }, 3);
      TinyNode *y = add_view (&self, TINY_DTYPE_F32, (gint64[]){ 2, 5, 3 }, 3);
      TinyNode *value = multiply (&self, x, y, TINY_DTYPE_F32);
      value = add_activation (&self, value, pick (&self, 6));
      TinyNode *sink = tiny_node_sink (self.graph, 1, &value, "UNIT");
      const TinyScheduleOptions options = { .claim = i == 0 ? offer : NULL, .data = &self };
      g_autoptr (TinySchedule) schedule
          = tiny_schedule_new_with (self.graph, sink, &options, &error);
      g_assert_no_error (error);
      g_assert_cmpuint (self.offered->len, >=, i == 0);
      texts[i] = tiny_schedule_to_string (schedule);
      test_end (&self);
    }
    g_assert_cmpstr (texts[0], ==, texts[1]);
  }
}

/* ---- what is alike ---- */
static TinyNode *
make_pair (Test *self, TinyNode **out_y)
{
  TinyNode *x = add_input (self, TINY_DTYPE_F32, (gint64[]){ 3, 4, 5 }, 3);
  *out_y = add_input (self, TINY_DTYPE_F32, (gint64[]){ 3, 4, 5 }, 3);
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

static TinyNode *
make_squares (Test *self)
{
  TinyNode *x = add_input (self, TINY_DTYPE_F32, (gint64[]){ 3, 4, 5 }, 3);
  return sum (self, tiny_node_binary (self->graph, TINY_OP_MUL, x, x), 1);
}

/* As matmul, with another op, or with more below the sum. */
static TinyNode *
make_like_matmul (Test *self, TinyOp reduce, TinyOp op, gboolean adds)
{
  TinyNode *x = add_input (self, TINY_DTYPE_F32, (gint64[]){ 4, 5, 1 }, 3);
  TinyNode *y = add_input (self, TINY_DTYPE_F32, (gint64[]){ 1, 5, 6 }, 3);
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
  TinyNode *x = add_input (self, TINY_DTYPE_F32, (gint64[]){ 1, 4, 5 }, 3);
  TinyNode *y = add_input (self, TINY_DTYPE_F32, (gint64[]){ 1, 7, 6 }, 3);
  x = tiny_node_pad (self->graph, x, (gint64[]){ 0, 0, 0, 0, 1, 1 }, 3);
  return multiply (self, x, y, TINY_DTYPE_F32);
}

/* One loop that is summed is of one operand alone. */
static TinyNode *
make_summed_twice (Test *self)
{
  TinyNode *x = add_input (self, TINY_DTYPE_F32, (gint64[]){ 4, 5, 3, 1 }, 4);
  TinyNode *y = add_input (self, TINY_DTYPE_F32, (gint64[]){ 1, 5, 1, 6 }, 4);
  x = tiny_node_expand (self->graph, x, (gint64[]){ 4, 5, 3, 6 }, 4);
  y = tiny_node_expand (self->graph, y, (gint64[]){ 4, 5, 3, 6 }, 4);
  return tiny_node_reduce_axes (self->graph, tiny_node_binary (self->graph, TINY_OP_MUL, x, y),
                                TINY_OP_ADD, (gint64[]){ 1, 2 }, 2);
}

static void
test_alike (void)
{
  static TinyNode *(*const makers[]) (Test * self)
      = { make_dots,       make_squares, make_sum_of_sums, make_max_product,
          make_more_below, make_padded,  make_summed_twice };
  for (guint i = 0; i < G_N_ELEMENTS (makers); i++) {
    Test self;
    test_begin (&self, i);
    TinyNode *value = makers[i](&self);
    g_autoptr (TinySchedule) schedule = run (&self, &value, 1);
    for (guint j = 0; j < self.offered->len; j++)
      g_assert_cmpuint (g_array_index (self.offered, TinyOperation, j).kind, !=,
                        TINY_OPERATION_MATMUL);
    test_end (&self);
  }
}

/* An activation with another constant is not that activation. */
static void
test_other_activation (void)
{
  Test self;
  test_begin (&self, 1);
  TinyNode *x = add_input (&self, TINY_DTYPE_F32, (gint64[]){ 1, 6, 5 }, 3);
  TinyNode *y = add_input (&self, TINY_DTYPE_F32, (gint64[]){ 1, 5, 4 }, 3);
  TinyNode *value = multiply (&self, x, y, TINY_DTYPE_F32);
  TinyNode *leaky = tiny_node_binary (self.graph, TINY_OP_MAX, value,
                                      apply (&self, TINY_OP_MUL, value, 0.125));
  g_autoptr (TinySchedule) schedule = run (&self, &leaky, 1);
  const TinyOperation *found = find_operation (schedule);
  g_assert_nonnull (found);
  g_assert_cmpuint (found->activation, ==, TINY_ACTIVATION_NONE);
  g_assert_cmpfloat (found->scale, ==, 1);
  test_end (&self);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/schedule/claims/matmul", test_matmul);
  g_test_add_func ("/schedule/claims/fields", test_fields);
  g_test_add_func ("/schedule/claims/less", test_less);
  g_test_add_func ("/schedule/claims/shared", test_shared);
  g_test_add_func ("/schedule/claims/chain", test_chain);
  g_test_add_func ("/schedule/claims/declined", test_declined);
  g_test_add_func ("/schedule/claims/alike", test_alike);
  g_test_add_func ("/schedule/claims/other-activation", test_other_activation);
  return g_test_run ();
}
