/* SPDX-License-Identifier: MIT
 *
 * A training step of a convolutional network schedules fast, into few kernels that do no more work
 * than they must, and a small one gives the same values scheduled as computed directly. */
#include <string.h>

#include "autograd/tiny-gradient.h"
#include "engine/tiny-runtime.h"
#include "evaluate.h"
#include "ir/tiny-shape.h"
#include "schedule/weights.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

#define T(name)   tiny_tensor_##name
#define AXES(...) ((gint[]){ __VA_ARGS__ })

enum { MAX_PARAMS = 64 };

typedef struct {
  guint n;
  TinyTensor *tensors[MAX_PARAMS]; /* by slot */
  guint n_weights;
  guint weights[MAX_PARAMS]; /* their slots */
} Network;

/* An input of the step, by slot. */
static TinyTensor *
leaf (Network *self, TinyDType dtype, const gint64 *dims, guint n)
{
  tiny_runtime_lock ();
  TinyGraph *graph = tiny_runtime_get_graph ();
  TinyNode *node = tiny_node_new (graph, TINY_OP_PARAM, dtype, 1, 0, NULL, self->n,
                                  tiny_graph_ints (graph, dims, n), "CPU");
  TinyTensor *tensor = g_object_ref_sink (tiny_tensor_new_for_node (node, "CPU"));
  tiny_runtime_unlock ();
  self->tensors[self->n++] = tensor;
  return tensor;
}

static TinyTensor *
weight (Network *self, const gint64 *dims, guint n)
{
  self->weights[self->n_weights++] = self->n;
  return leaf (self, TINY_DTYPE_F32, dims, n);
}

#define WEIGHT(...)                                                                            \
  weight (self, (gint64[]){ __VA_ARGS__ }, sizeof ((gint64[]){ __VA_ARGS__ }) / sizeof (gint64))

static TinyTensor *
conv (Network *self, TinyTensor *x, gint64 in, gint64 out, gint64 k)
{
  TinyTensor *w = WEIGHT (out, in, k, k), *b = WEIGHT (out);
  return T (relu) (T (conv2d) (x, w, b, NULL, 0, NULL, 0, NULL, 0, 1));
}

static TinyTensor *
batch_norm (Network *self, TinyTensor *x, gint64 channels)
{
  TinyTensor *w = WEIGHT (channels), *b = WEIGHT (channels);
  g_object_ref_sink (x);
  TinyTensor *mean = T (mean) (x, AXES (0, 2, 3), 3, FALSE);
  TinyTensor *var = T (var) (x, AXES (0, 2, 3), 3, 0, FALSE);
  TinyTensor *y = T (batch_norm) (x, mean, var, w, b, FALSE, 1e-5);
  g_object_ref_sink (y);
  g_object_unref (x);
  return y;
}

static TinyNode *
node_of (TinyTensor *tensor)
{
  g_autoptr (GError) error = NULL;
  TinyNode *node = tiny_tensor_get_node (tensor);
  g_assert_nonnull (node);
  return node;
}

static TinyNode *
binary (TinyOp op, TinyNode *x, TinyNode *y)
{
  return tiny_node_binary (tiny_runtime_get_graph (), op, x, y);
}

static TinyNode *
number (double value)
{
  return tiny_node_const_float (tiny_runtime_get_graph (), TINY_DTYPE_F32, value);
}

static TinyNode *
assign (TinyNode *target, TinyNode *value)
{
  TinyNode *sources[] = { target, value };
  return tiny_node_new (tiny_runtime_get_graph (), TINY_OP_ASSIGN, target->dtype, 1, 2, sources,
                        0, NULL, NULL);
}

/* One step with Adam on images of @size² and @channels channels; the roots in @roots. */
static TinyNode *
make_step (Network *self, TinyGraph *graph, gint64 batch, gint64 size, gint64 channels)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) roots = g_ptr_array_new ();
  TinyTensor *grads[MAX_PARAMS];
  TinyTensor *x = leaf (self, TINY_DTYPE_F32, (gint64[]){ batch, 1, size, size }, 4);
  TinyTensor *labels = leaf (self, TINY_DTYPE_I32, (gint64[]){ batch }, 1);
  gint64 c = channels, k = size > 20 ? 5 : 3, s = size - 2 * (k - 1);
  TinyTensor *y = conv (self, x, 1, c, k);
  y = batch_norm (self, conv (self, y, c, c, k), c);
  y = T (max_pool2d) (y, (gint64[]){ 2 }, 1, NULL, 0, NULL, 0, NULL, 0, FALSE);
  s /= 2;
  if (size > 20) {
    y = conv (self, y, c, 2 * c, 3);
    y = batch_norm (self, conv (self, y, 2 * c, 2 * c, 3), 2 * c);
    y = T (max_pool2d) (y, (gint64[]){ 2 }, 1, NULL, 0, NULL, 0, NULL, 0, FALSE);
    c *= 2;
    s = (s - 4) / 2;
  }
  y = T (reshape) (y, (gint64[]){ batch, c * s * s }, 2);
  TinyTensor *w = WEIGHT (10, c * s * s), *b = WEIGHT (10);
  y = T (linear) (y, w, b);
  TinyTensor *loss = g_object_ref_sink (T (cross_entropy) (y, labels, NULL, -100, "mean", 0));
  TinyTensor *xs[MAX_PARAMS];
  for (guint i = 0; i < self->n_weights; i++)
    xs[i] = self->tensors[self->weights[i]];
  tiny_gradient (loss, xs, self->n_weights, grads, &error);
  g_assert_no_error (error);
  g_ptr_array_add (roots, node_of (loss));
  for (guint i = 0; i < self->n_weights; i++) {
    TinyNode *p = node_of (xs[i]), *g = node_of (grads[i]);
    TinyNode *m = node_of (leaf (self, TINY_DTYPE_F32, p->shape->v, p->shape->n));
    TinyNode *v = node_of (leaf (self, TINY_DTYPE_F32, p->shape->v, p->shape->n));
    TinyNode *m_new = binary (TINY_OP_ADD, binary (TINY_OP_MUL, m, number (0.9)),
                              binary (TINY_OP_MUL, g, number (0.1)));
    TinyNode *v_new = binary (TINY_OP_ADD, binary (TINY_OP_MUL, v, number (0.99)),
                              binary (TINY_OP_MUL, binary (TINY_OP_MUL, g, g), number (0.01)));
    TinyNode *root = tiny_node_unary (tiny_runtime_get_graph (), TINY_OP_SQRT,
                                      binary (TINY_OP_MAX, v_new, number (1e-6)));
    TinyNode *step = binary (TINY_OP_MUL, m_new,
                             tiny_node_unary (tiny_runtime_get_graph (), TINY_OP_RECIP, root));
    g_ptr_array_add (roots, assign (m, m_new));
    g_ptr_array_add (roots, assign (v, v_new));
    g_ptr_array_add (
        roots, assign (p, binary (TINY_OP_SUB, p, binary (TINY_OP_MUL, step, number (0.001)))));
  }
  TinyNode *sink = tiny_node_sink (tiny_runtime_get_graph (), roots->len,
                                   (TinyNode *const *) roots->pdata, NULL);
  return tiny_graph_import (graph, sink);
}

/* What temporaries need at the fullest item, wherever they lie: no plan can do with less. */
static gint64
count_needed (const TinySchedule *schedule)
{
  g_autofree gint *first = g_new (gint, schedule->n_buffers),
                  *last = g_new (gint, schedule->n_buffers);
  for (guint b = 0; b < schedule->n_buffers; b++)
    first[b] = last[b] = -1;
  for (guint i = 0; i < schedule->n_items; i++)
    for (guint j = 0; j < schedule->items[i].n_buffers; j++) {
      guint b = schedule->items[i].buffers[j];
      last[b] = (gint) i;
      first[b] = first[b] < 0 ? (gint) i : first[b];
    }
  gint64 most = 0;
  for (gint i = 0; i < (gint) schedule->n_items; i++) {
    gint64 n_bytes = 0;
    for (guint b = 0; b < schedule->n_buffers; b++)
      if (schedule->buffers[b].kind == TINY_SCHEDULE_TEMPORARY && first[b] >= 0 && first[b] <= i
          && i <= last[b])
        n_bytes += schedule->buffers[b].n_elements
                   * (gint64) tiny_dtype_get_n_bytes (schedule->buffers[b].dtype);
    most = MAX (most, n_bytes);
  }
  return most;
}

static guint64
give_limit (const char *device, gpointer limit)
{
  return *(const guint64 *) limit;
}

/* Each arena keeps to @limit, or is as large as a buffer that does not; gives their bytes together. */
static gint64
check_arenas (const TinySchedule *schedule, guint64 limit)
{
  gint64 total = 0;
  for (guint a = 0; a < schedule->n_arenas; a++) {
    gint64 largest = 0;
    total += schedule->arenas[a].n_bytes;
    for (guint b = 0; b < schedule->n_buffers; b++) {
      const TinyScheduleBuffer *buffer = &schedule->buffers[b];
      if (buffer->kind == TINY_SCHEDULE_TEMPORARY && buffer->arena == a)
        largest = MAX (largest,
                       buffer->n_elements * (gint64) tiny_dtype_get_n_bytes (buffer->dtype));
    }
    g_assert_cmpint (schedule->arenas[a].n_bytes, <=,
                     MAX (limit, (guint64) largest + TINY_SPAN_ALIGNMENT));
  }
  return total;
}

static void
test_large (void)
{
  Network self = { 0 };
  g_autoptr (GError) error = NULL;
  TinyGraph *graph = tiny_graph_new ();
  tiny_runtime_lock ();
  TinyNode *sink = make_step (&self, graph, 128, 28, 32);
  tiny_runtime_unlock ();
  guint n_nodes = tiny_graph_get_n_nodes (graph);
  gint64 start = g_get_monotonic_time ();
  g_autoptr (TinySchedule) schedule = tiny_schedule_new (graph, sink, &error);
  gint64 us = g_get_monotonic_time () - start;
  g_assert_no_error (error);
  verify_schedule (schedule);
  g_autofree char *text = tiny_schedule_to_string (schedule);
  gint64 arena = schedule->n_arenas > 0 ? schedule->arenas[0].n_bytes : 0;
  g_test_message ("%u nodes in %.1f ms: %u items, %.1f MB of temporaries, %u nodes after",
                  n_nodes, us / 1e3, schedule->n_items, arena / 1e6,
                  tiny_graph_get_n_nodes (schedule->graph));
  if (g_getenv ("TINY_TEST_SHOW") != NULL)
    g_test_message ("%s", text);
  g_assert_cmpuint (schedule->n_items, <=, 130);
  gint64 needed = count_needed (schedule);
  g_test_message ("%.1f MB of temporaries are needed", needed / 1e6);
  g_assert_cmpint (needed, >, 1000000);
  g_assert_cmpint (arena, <=, needed + needed / 8);
  g_assert_cmpint (us, <=, 500000); /* generous: sanitizers and busy machines */
}

/* A gradient that is off by a hundredth is not taken for @wanted, unless that is 0. */
static void
check_bound (const Array *wanted)
{
  g_autofree char *difference = NULL;
  Array *off = array_new (wanted->dtype, wanted->n);
  gboolean is_zero = TRUE;
  for (gint64 k = 0; k < wanted->n; k++) {
    off->v[k].f = wanted->v[k].f * 1.01;
    is_zero = is_zero && wanted->v[k].f == 0;
  }
  g_assert_true (is_zero || !arrays_equal (wanted, off, &difference));
  array_free (off);
}

/* Runs @sink both ways on random inputs, with at most @limit bytes in one piece unless that is 0; returns how many items
 * the schedule has. */
static guint
compare (Network *self, TinyGraph *graph, TinyNode *sink, guint64 limit)
{
  const TinyScheduleOptions options = { .find_limit = give_limit, .data = &limit };
  g_autoptr (GError) error = NULL;
  g_autoptr (GRand) random = g_rand_new_with_seed (7);
  g_autoptr (GPtrArray) inputs = g_ptr_array_new_with_free_func ((GDestroyNotify) array_free);
  for (guint i = 0; i < self->n; i++) {
    TinyNode *node = node_of (self->tensors[i]);
    Array *array = array_new (node->dtype, tiny_shape_get_n_elements (node->shape));
    for (gint64 k = 0; k < array->n; k++)
      if (node->dtype == TINY_DTYPE_F32)
        array->v[k].f = g_rand_double_range (random, -1, 1);
      else
        array->v[k].i = g_rand_int_range (random, 0, 10);
    g_ptr_array_add (inputs, array);
  }
  g_autoptr (GPtrArray) expected = evaluate_graph (graph, sink, inputs);
  g_autoptr (TinySchedule) schedule = tiny_schedule_new_with (graph, sink, &options, &error);
  g_assert_no_error (error);
  if (limit > 0)
    check_arenas (schedule, limit);
  if (g_getenv ("TINY_TEST_SHOW") != NULL) {
    g_autofree char *text = tiny_schedule_to_string (schedule);
    g_test_message ("%s", text);
  }
  g_autoptr (GPtrArray) found = evaluate_schedule (schedule, inputs);
  for (guint i = 0; i < found->len; i++) {
    g_autofree char *difference = NULL;
    if (!arrays_equal (expected->pdata[i], found->pdata[i], &difference)) {
      g_test_message ("output %u: %s", i, difference);
      g_test_fail ();
    }
    if (((Array *) expected->pdata[i])->dtype == TINY_DTYPE_F32)
      check_bound (expected->pdata[i]);
  }
  return schedule->n_items;
}

/* A device of 64 MiB that has 31 in one piece trains with batches of 128. */
static void
test_small_device (void)
{
  Network self = { 0 };
  guint64 limit = 31 << 20;
  const TinyScheduleOptions options = { .find_limit = give_limit, .data = &limit };
  g_autoptr (GError) error = NULL;
  TinyGraph *graph = tiny_graph_new ();
  tiny_runtime_lock ();
  TinyNode *sink = make_step (&self, graph, 128, 28, 32);
  tiny_runtime_unlock ();
  g_autoptr (TinySchedule) schedule = tiny_schedule_new_with (graph, sink, &options, &error);
  g_assert_no_error (error);
  const gint64 total = check_arenas (schedule, limit), needed = count_needed (schedule);
  g_assert_cmpuint (schedule->n_arenas, ==, 2);
  g_assert_cmpint (total, <=, needed + needed / 8);
}

/* With launches free, a small step is scheduled like a large one. */
static ScheduleWeights
begin_small (gboolean large)
{
  ScheduleWeights old = schedule_weights;
  if (large) {
    schedule_weights.launch = 0;
    schedule_weights.split_max_outputs = 20;
    schedule_weights.split_min_reduced = schedule_weights.split_min_total = 16;
    schedule_weights.split_least = 2;
    schedule_weights.pack_min_work = 16;
    schedule_weights.pack_min_reuse = 2;
    schedule_weights.pack_block = 2;
  }
  return old;
}

/* All values of a small step, in f64 arithmetic on both sides. */
static void
test_small (gconstpointer large)
{
  Network self = { 0 };
  ScheduleWeights old = begin_small (large != NULL);
  TinyGraph *graph = tiny_graph_new ();
  tiny_runtime_lock ();
  TinyNode *sink = make_step (&self, graph, 2, 8, 2);
  tiny_runtime_unlock ();
  compare (&self, graph, sink, 0);
  schedule_weights = old;
}

/* A device that has no large pieces of memory. */
static void
test_pieces (void)
{
  static const guint64 limits[] = { 1, 1 << 10, 4 << 10, 16 << 10, 1 << 30 };
  for (guint i = 0; i < G_N_ELEMENTS (limits); i++) {
    Network self = { 0 };
    TinyGraph *graph = tiny_graph_new ();
    tiny_runtime_lock ();
    TinyNode *sink = make_step (&self, graph, 2, 8, 2);
    tiny_runtime_unlock ();
    compare (&self, graph, sink, limits[i]);
  }
}

/* Gradients of convolutions with strides, padding, dilation and groups. */
static void
test_windows (gconstpointer large)
{
  static const gint64 settings[][4] = { /* stride, padding, dilation, groups */
                                        { 1, 1, 1, 1 },
                                        { 2, 1, 1, 1 },
                                        { 2, 0, 1, 2 },
                                        { 1, 2, 2, 1 },
                                        { 3, 1, 1, 1 }
  };
  ScheduleWeights old = begin_small (large != NULL);
  for (guint i = 0; i < G_N_ELEMENTS (settings); i++) {
    const gint64 *v = settings[i];
    g_autoptr (GError) error = NULL;
    Network network = { 0 }, *self = &network;
    TinyGraph *graph = tiny_graph_new ();
    TinyTensor *grads[3];
    TinyNode *roots[3];
    TinyTensor *x = WEIGHT (2, 4, 7, 7), *w = WEIGHT (4, 4 / v[3], 3, 3),
               *u = WEIGHT (2, 4, 2, 2);
    tiny_runtime_lock ();
    TinyTensor *y = T (relu) (T (conv2d) (x, w, NULL, &v[0], 1, &v[1], 1, &v[2], 1, v[3]));
    y = T (max_pool2d) (T (conv2d) (y, u, NULL, NULL, 0, (gint64[]){ 1 }, 1, NULL, 0, 1),
                        (gint64[]){ 2 }, 1, (gint64[]){ 1 }, 1, NULL, 0, NULL, 0, FALSE);
    TinyTensor *loss = g_object_ref_sink (T (sum) (T (square) (y), NULL, 0, FALSE));
    tiny_gradient (loss, (TinyTensor *[]){ x, w, u }, 3, grads, &error);
    g_assert_no_error (error);
    for (guint r = 0; r < 3; r++)
      roots[r] = node_of (grads[r]);
    TinyNode *sink
        = tiny_graph_import (graph, tiny_node_sink (tiny_runtime_get_graph (), 3, roots, NULL));
    tiny_runtime_unlock ();
    g_assert_cmpuint (compare (self, graph, sink, 0), <=, 40);
  }
  schedule_weights = old;
}

/* The gradients of softmax (q kᵀ) v in H heads, each of them and all in one. Bytes of temporaries. */
static gint64
schedule_attention (gint64 rows)
{
  enum { H = 4, D = 64, KERNELS = 7 };
  Network network = { 0 }, *self = &network;
  TinyTensor *grads[3], *inputs[3];
  TinyNode *roots[4];
  g_autoptr (GError) error = NULL;
  for (guint i = 0; i < 3; i++)
    inputs[i] = WEIGHT (H, rows, D);
  TinyTensor *seed = leaf (self, TINY_DTYPE_F32, (gint64[]){ H, rows, D }, 3);
  tiny_runtime_lock ();
  TinyTensor *scores = T (matmul) (inputs[0], T (transpose) (inputs[1], -1, -2));
  TinyTensor *y = T (matmul) (T (softmax) (scores, -1), inputs[2]);
  g_autoptr (TinyTensor) loss = g_object_ref_sink (T (sum) (T (mul) (y, seed), NULL, 0, FALSE));
  tiny_gradient (loss, inputs, 3, grads, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < 3; i++)
    roots[i] = node_of (grads[i]);
  roots[3] = node_of (T (cat) (grads, 3, 0));
  TinyGraph *graph = tiny_graph_new ();
  TinyNode *sink
      = tiny_graph_import (graph, tiny_node_sink (tiny_runtime_get_graph (), 4, roots, NULL));
  tiny_runtime_unlock ();
  g_autoptr (TinySchedule) schedule = tiny_schedule_new (graph, sink, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (schedule->n_items, <=, KERNELS);
  return schedule->arenas[0].n_bytes;
}

/* Scores are stored nowhere: memory grows with the rows and not with their square. */
static void
test_attention (void)
{
  gint64 n_bytes = schedule_attention (2048);
  g_assert_cmpint (schedule_attention (4096), <=, 2 * n_bytes);
  g_assert_cmpint (schedule_attention (16384), <=, 8 * n_bytes);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/schedule/training/large", test_large);
  g_test_add_func ("/schedule/training/attention", test_attention);
  g_test_add_data_func ("/schedule/training/small", NULL, test_small);
  g_test_add_data_func ("/schedule/training/small-as-large", "", test_small);
  g_test_add_func ("/schedule/training/pieces", test_pieces);
  g_test_add_func ("/schedule/training/small-device", test_small_device);
  g_test_add_data_func ("/schedule/training/windows", NULL, test_windows);
  g_test_add_data_func ("/schedule/training/windows-as-large", "", test_windows);
  return g_test_run ();
}
