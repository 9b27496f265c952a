/* SPDX-License-Identifier: MIT
 *
 * Random tensor programs give the same values scheduled as computed directly. */
#include <string.h>

#include "evaluate.h"
#include "ir/tiny-shape.h"
#include "schedule/weights.h"

enum { N_PROGRAMS = 1500, MAX_ELEMENTS = 3000, MAX_DIMS = 5 };

static guint n_offered;

typedef struct {
  TinyGraph *graph;
  GRand *random;
  GPtrArray *nodes, *inputs, *params;
} Program;

static int
pick (Program *self, int n)
{
  return g_rand_int_range (self->random, 0, n);
}

static TinyNode *
any (Program *self)
{
  /* Rather the newer ones: programs get deep. */
  int n = self->nodes->len, a = pick (self, n), b = pick (self, n);
  return self->nodes->pdata[MAX (a, b)];
}

static TinyNode *
add_param (Program *self)
{
  gint64 dims[4];
  guint n = pick (self, 4) + (pick (self, 8) > 0);
  n = MIN (n, 4);
  for (guint i = 0; i < n; i++)
    dims[i] = pick (self, 60) == 0 ? 0 : 1 + pick (self, 5);
  TinyDType dtype = pick (self, 5) == 0 ? TINY_DTYPE_I32 : TINY_DTYPE_F32;
  TinyNode *param
      = tiny_node_new (self->graph, TINY_OP_PARAM, dtype, 1, 0, NULL, self->inputs->len,
                       tiny_graph_ints (self->graph, dims, n), "CPU");
  Array *array = array_new (dtype, tiny_shape_get_n_elements (param->shape));
  for (gint64 k = 0; k < array->n; k++)
    if (dtype == TINY_DTYPE_F32)
      array->v[k].f = pick (self, 9) - 4;
    else
      array->v[k].i = pick (self, 9) - 4;
  g_ptr_array_add (self->inputs, array);
  g_ptr_array_add (self->params, param);
  return param;
}

static TinyNode *
make_reshape (Program *self, TinyNode *x)
{
  gint64 dims[MAX_DIMS];
  gint64 n = tiny_shape_get_n_elements (x->shape);
  guint rank = 1 + pick (self, MAX_DIMS - 1);
  if (n == 0)
    return x;
  for (guint i = 0; i < rank; i++) {
    gint64 d = i + 1 == rank ? n : 1 + pick (self, 6);
    while (n % d != 0)
      d--;
    dims[i] = d;
    n /= d;
  }
  for (guint i = 0; i < rank; i++) {
    guint j = pick (self, rank);
    gint64 d = dims[i];
    dims[i] = dims[j];
    dims[j] = d;
  }
  return tiny_node_reshape (self->graph, x, dims, rank);
}

static TinyNode *
make_movement (Program *self, TinyNode *x)
{
  gint64 v[2 * MAX_DIMS + 8];
  guint n = x->shape->n;
  const gint64 *dims = x->shape->v;
  if (n > MAX_DIMS || (n == 0 && pick (self, 2)))
    return x;
  switch (pick (self, 8)) {
  case 0:
    return make_reshape (self, x);
  case 1:
    for (guint i = 0; i < n; i++)
      v[i] = dims[i] == 1 ? 1 + pick (self, 5) : dims[i];
    return tiny_node_expand (self->graph, x, v, n);
  case 2:
    for (guint i = 0; i < n; i++)
      v[i] = i;
    for (guint i = 0; i < n; i++) {
      guint j = pick (self, n);
      gint64 a = v[i];
      v[i] = v[j];
      v[j] = a;
    }
    return tiny_node_permute (self->graph, x, v, n);
  case 3:
    for (guint i = 0; i < 2 * n; i++)
      v[i] = pick (self, 3);
    return tiny_node_pad (self->graph, x, v, n);
  case 4:
    for (guint i = 0; i < n; i++) {
      v[2 * i] = dims[i] > 1 ? pick (self, 2) : 0;
      v[2 * i + 1] = dims[i] - (dims[i] > 2 ? pick (self, 2) : 0);
    }
    return tiny_node_shrink (self->graph, x, v, n);
  case 5:
    if (n == 0)
      return x;
    v[0] = pick (self, n);
    return tiny_node_flip (self->graph, x, v, 1);
  default: { /* a window or a stride */
    if (n == 0 || n + 1 > MAX_DIMS)
      return x;
    guint p = pick (self, n);
    memcpy (v, dims, n * sizeof *v);
    v[n] = 1;
    x = tiny_node_reshape (self->graph, x, v, n + 1);
    v[n] = 1 + pick (self, 3);
    x = tiny_node_expand (self->graph, x, v, n + 1);
    gint64 size = dims[p] + pick (self, 5) - 2;
    size = MAX (1, size);
    return tiny_node_shear (self->graph, x, p, n, pick (self, 3) ? 1 : 2, pick (self, 4) - 2,
                            pick (self, 5) - 2, pick (self, 4) ? 1 : 2, size);
  }
  }
}

static TinyNode *
make_reduce (Program *self, TinyNode *x)
{
  static const TinyOp ops[] = { TINY_OP_ADD, TINY_OP_ADD, TINY_OP_MAX, TINY_OP_MUL };
  gint64 axes[MAX_DIMS];
  guint n = 0;
  if (x->shape->n > MAX_DIMS)
    return x;
  for (guint i = 0; i < x->shape->n; i++)
    if (pick (self, 2))
      axes[n++] = i;
  TinyOp op = ops[pick (self, 4)];
  return tiny_node_reduce_axes (self->graph, x, op, axes, n);
}

/* @y in the dtype and shape of @x, if it can be. */
static TinyNode *
fit (Program *self, TinyNode *y, TinyNode *x)
{
  if (y->shape->n > 0 && !tiny_shape_equal (y->shape, x->shape)) {
    if (tiny_shape_get_n_elements (y->shape) == tiny_shape_get_n_elements (x->shape))
      y = tiny_node_reshape (self->graph, y, x->shape->v, x->shape->n);
    else if (x->shape->n > 0 && y->shape->v[0] == x->shape->v[0] && y->shape->n > 0
             && tiny_shape_get_n_elements (y->shape) > 0) {
      gint64 dims[32], axes[32];
      for (guint i = 0; i < y->shape->n; i++)
        axes[i] = i;
      y = tiny_node_reduce_axes (self->graph, y, TINY_OP_ADD, axes + 1, y->shape->n - 1);
      for (guint i = 0; i < x->shape->n; i++)
        dims[i] = i == 0 ? x->shape->v[0] : 1;
      y = tiny_node_reshape (self->graph, y, dims, x->shape->n);
      y = tiny_node_expand (self->graph, y, x->shape->v, x->shape->n);
    } else
      y = tiny_node_const_int (self->graph, y->dtype, pick (self, 5) - 2);
  }
  return tiny_node_cast (self->graph, y, x->dtype);
}

static TinyNode *
make_elementwise (Program *self, TinyNode *x)
{
  static const TinyOp ops[] = { TINY_OP_ADD, TINY_OP_SUB, TINY_OP_MUL, TINY_OP_MAX };
  TinyNode *y = fit (self, any (self), x);
  switch (pick (self, 8)) {
  case 0:
    return tiny_node_unary (self->graph, TINY_OP_NEG, x);
  case 1:
    return tiny_node_cast (self->graph, x,
                           x->dtype == TINY_DTYPE_F32 ? TINY_DTYPE_I32 : TINY_DTYPE_F32);
  case 2: {
    TinyNode *gate = tiny_node_binary (self->graph, TINY_OP_CMPLT, x, y);
    if (gate->shape != x->shape)
      return x;
    return tiny_node_where (self->graph, gate, y,
                            tiny_node_const_int (self->graph, x->dtype, 1 + pick (self, 3)));
  }
  case 3:
    if (x->shape->n == 1 && x->shape->v[0] > 0) {
      TinyNode *iota = tiny_node_new (self->graph, TINY_OP_IOTA, TINY_DTYPE_I32, 1, 0, NULL, 0,
                                      x->shape, NULL);
      return tiny_node_binary (self->graph, TINY_OP_ADD, x,
                               tiny_node_cast (self->graph, iota, x->dtype));
    }
    return x;
  default:
    return tiny_node_binary (self->graph, ops[pick (self, 4)], x, y);
  }
}

/* A contraction of two matrices made of @x and another. */
static TinyNode *
make_matmul (Program *self, TinyNode *x, TinyNode *y)
{
  gint64 a = tiny_shape_get_n_elements (x->shape), b = tiny_shape_get_n_elements (y->shape);
  gint64 k = 1 + pick (self, 5);
  if (a == 0 || b == 0)
    return x;
  while (a % k != 0 || b % k != 0)
    k--;
  gint64 m = a / k, n = b / k;
  if (m * k * n > MAX_ELEMENTS)
    return x;
  x = tiny_node_reshape (self->graph, x, (gint64[]){ m, k, 1 }, 3);
  y = tiny_node_reshape (self->graph, tiny_node_cast (self->graph, y, x->dtype),
                         (gint64[]){ 1, k, n }, 3);
  x = tiny_node_expand (self->graph, x, (gint64[]){ m, k, n }, 3);
  y = tiny_node_expand (self->graph, y, (gint64[]){ m, k, n }, 3);
  TinyNode *product = tiny_node_binary (self->graph, TINY_OP_MUL, x, y);
  return tiny_node_reduce_axes (self->graph, product, TINY_OP_ADD, (gint64[]){ 1 }, 1);
}

/* Elements of @x at positions that another value says, some of them outside. */
static TinyNode *
make_gather (Program *self, TinyNode *x, TinyNode *y)
{
  gint64 dims[32];
  guint n = x->shape->n;
  if (n == 0 || tiny_shape_get_n_elements (x->shape) > MAX_ELEMENTS / 4)
    return x;
  guint axis = pick (self, n);
  for (guint i = 0; i < n; i++)
    dims[i] = i == axis ? 1 + (gint64) pick (self, 4) : x->shape->v[i];
  gint64 size = 1;
  for (guint i = 0; i < n; i++)
    size *= dims[i];
  y = tiny_node_cast (self->graph, y, TINY_DTYPE_I32);
  if (y->shape->n > 0 && tiny_shape_get_n_elements (y->shape) == size)
    y = tiny_node_reshape (self->graph, y, dims, n);
  else
    y = tiny_node_broadcast (
        self->graph,
        tiny_node_new (self->graph, TINY_OP_IOTA, TINY_DTYPE_I32, 1, 0, NULL, 0,
                       tiny_graph_ints (self->graph, dims + n - 1, 1), NULL),
        dims, n);
  return tiny_node_gather (self->graph, x, axis, y);
}

static TinyNode *
make_step (Program *self)
{
  TinyNode *x = any (self);
  switch (pick (self, 11)) {
  case 10:
    return make_gather (self, x, any (self));
  case 0:
  case 1:
    return make_reduce (self, x);
  case 2:
  case 3:
  case 4:
  case 5:
    return make_movement (self, x);
  case 6:
    if (pick (self, 2))
      return make_matmul (self, x, any (self));
    return tiny_node_new (self->graph, pick (self, 2) ? TINY_OP_CONTIGUOUS : TINY_OP_DETACH,
                          x->dtype, 1, 1, &x, 0, NULL, NULL);
  default:
    return make_elementwise (self, x);
  }
}

static TinyNode *
make_program (Program *self)
{
  TinyNode *roots[8];
  guint n_roots = 0, n_steps = 2 + pick (self, 16);
  for (int i = 1 + pick (self, 3); i > 0; i--)
    g_ptr_array_add (self->nodes, add_param (self));
  for (guint i = 0; i < n_steps; i++) {
    TinyNode *x = make_step (self);
    if (tiny_shape_get_n_elements (x->shape) <= MAX_ELEMENTS && x->shape->n <= 8)
      g_ptr_array_add (self->nodes, x);
  }
  roots[n_roots++] = self->nodes->pdata[self->nodes->len - 1];
  while (n_roots < 3 && pick (self, 2))
    roots[n_roots++] = any (self);
  /* Assign to some inputs what has their size. */
  for (guint p = 0; p < self->params->len; p++) {
    TinyNode *param = self->params->pdata[p], *value = any (self);
    if (pick (self, 2)
        || tiny_shape_get_n_elements (value->shape) != tiny_shape_get_n_elements (param->shape))
      continue;
    value = tiny_node_cast (
        self->graph, tiny_node_reshape (self->graph, value, param->shape->v, param->shape->n),
        param->dtype);
    TinyNode *sources[] = { param, value };
    roots[n_roots++] = tiny_node_new (self->graph, TINY_OP_ASSIGN, param->dtype, 1, 2, sources,
                                      0, NULL, NULL);
  }
  return tiny_node_sink (self->graph, n_roots, roots, NULL);
}

/* Takes what the seed says of what is recognised. */
static gboolean
claim (const char *device, const TinyOperation *operation, double own_ns, gpointer data)
{
  guint share = *(const guint *) data;
  if (operation == NULL)
    return TRUE;
  n_offered++;
  return share == 0 || (operation->activation + operation->n_operands) % share != 0;
}

static void
run_program_with (guint seed, const TinyScheduleOptions *options)
{
  Program self = { .graph = tiny_graph_new (), .random = g_rand_new_with_seed (seed) };
  self.nodes = g_ptr_array_new ();
  self.params = g_ptr_array_new ();
  self.inputs = g_ptr_array_new_with_free_func ((GDestroyNotify) array_free);
  TinyNode *sink = make_program (&self);
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) expected = evaluate_graph (self.graph, sink, self.inputs);
  g_autoptr (TinySchedule) schedule
      = tiny_schedule_new_with (self.graph, sink, options, &error);
  g_assert_no_error (error);
  g_autoptr (GPtrArray) found = evaluate_schedule (schedule, self.inputs);
  g_assert_cmpuint (found->len, ==, expected->len);
  for (guint i = 0; i < found->len; i++) {
    g_autofree char *difference = NULL;
    if (!arrays_equal (expected->pdata[i], found->pdata[i], &difference)) {
      g_test_message ("seed %u, output %u: %s", seed, i, difference);
      g_test_fail ();
      break;
    }
  }
  g_ptr_array_unref (self.nodes);
  g_ptr_array_unref (self.params);
  g_ptr_array_unref (self.inputs);
  g_rand_free (self.random);
}

static void
run_program (guint seed)
{
  run_program_with (seed, NULL);
}

/* With launches free and small limits, small tensors are stored, split and packed as large ones. */
static void
test_large_programs (void)
{
  const char *only = g_getenv ("TINY_TEST_SEED");
  ScheduleWeights old = schedule_weights;
  schedule_weights.max_buffers = 4;
  schedule_weights.max_extra_work = 100;
  schedule_weights.split_max_outputs = 20;
  schedule_weights.split_min_reduced = schedule_weights.split_min_total = 4;
  schedule_weights.split_least = 2;
  schedule_weights.pack_min_reuse = schedule_weights.pack_min_work = 2;
  schedule_weights.pack_max_growth = 100;
  schedule_weights.far_bytes = 0;
  schedule_weights.pack_block = 2;
  for (guint seed = 1; seed <= N_PROGRAMS; seed++) {
    static const double launches[] = { 0, 20, 200 };
    schedule_weights.launch = launches[seed % 3];
    schedule_weights.workers = seed % 4 == 0 ? 1 : 16;
    schedule_weights.local = seed % 2;
    schedule_weights.byte = seed % 5 < 3 ? 0.1 : 2;
    schedule_weights.max_depth = seed % 7 == 0 ? 2 : 200;
    schedule_weights.recompute_growth = seed % 3 == 0 ? 2 : 0;
    schedule_weights.far_byte = seed % 11 == 0 ? 2 : 1e6;
    if (only == NULL || g_ascii_strtoull (only, NULL, 10) == seed)
      run_program (seed);
  }
  schedule_weights = old;
}

static void
test_programs (void)
{
  const char *only = g_getenv ("TINY_TEST_SEED");
  if (only != NULL) {
    run_program (g_ascii_strtoull (only, NULL, 10));
    return;
  }
  for (guint seed = 1; seed <= N_PROGRAMS; seed++)
    run_program (seed);
}

/* Units that take some of what is recognised; evaluate_schedule() compares each with its kernel. */
static void
test_claims (void)
{
  const char *only = g_getenv ("TINY_TEST_SEED");
  n_offered = 0;
  for (guint seed = 1; seed <= N_PROGRAMS; seed++) {
    guint share = seed % 4;
    const TinyScheduleOptions options = { .claim = claim, .data = &share };
    if (only == NULL || g_ascii_strtoull (only, NULL, 10) == seed)
      run_program_with (seed, &options);
  }
  if (only == NULL)
    g_assert_cmpuint (n_offered, >, 100);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/schedule/random/programs", test_programs);
  g_test_add_func ("/schedule/random/large-programs", test_large_programs);
  g_test_add_func ("/schedule/random/claims", test_claims);
  return g_test_run ();
}
