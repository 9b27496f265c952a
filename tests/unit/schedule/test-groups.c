/* SPDX-License-Identifier: MIT
 *
 * Reductions of one buffer, and groups of kernels that are one operation: recognised in any layout, to compute what
 * their kernels do, and nothing that is only alike. evaluate_schedule() compares each with its kernel. */
#include <math.h>
#include <string.h>

#include "claims.h"
#include "ir/tiny-shape.h"

enum { N_ROUNDS = 200 };

/* ---- reduction and softmax ---- */

/* A view of what is stored: what is computed is stored first, as reductions are offered of nothing else. */
static TinyNode *
add_stored_view (Test *self, const gint64 *dims, guint n)
{
  TinyNode *x = claims_add_view (self, TINY_DTYPE_F32, dims, n), *below = x;
  while (tiny_op_is_movement (below->op))
    below = below->sources[0];
  return below->op == TINY_OP_PARAM ? x
                                    : tiny_node_new (self->graph, TINY_OP_CONTIGUOUS, x->dtype,
                                                     1, 1, &x, 0, NULL, NULL);
}

static void
test_reduction (void)
{
  static const TinyOp ops[] = { TINY_OP_ADD, TINY_OP_MAX, TINY_OP_MUL };
  static const TinyInstrOp instrs[] = { TINY_INSTR_ADD, TINY_INSTR_MAX, TINY_INSTR_MUL };
  for (guint seed = 1; seed <= N_ROUNDS; seed++) {
    Test self;
    test_begin (&self, seed);
    const gint64 dims[] = { 1 + claims_pick (&self, 4), 2 + claims_pick (&self, 4),
                            2 + claims_pick (&self, 4) };
    const guint which = (guint) claims_pick (&self, 3);
    const gboolean both = claims_pick (&self, 3) == 0,
                   has_scale = which == 0 && claims_pick (&self, 2);
    TinyNode *x = add_stored_view (&self, dims, 3);
    gint64 axes[] = { claims_pick (&self, 2) + 1, 2 };
    axes[0] = both ? 1 : axes[0];
    TinyNode *value = tiny_node_reduce_axes (self.graph, x, ops[which], axes, both ? 2 : 1);
    if (has_scale)
      value = claims_apply (&self, TINY_OP_MUL, value, 0.25);
    g_autoptr (TinySchedule) schedule = claims_run (&self, &value, 1);
    const TinyOperation *found = claims_find_operation (schedule);
    g_assert_nonnull (found);
    g_assert_cmpuint (found->kind, ==, TINY_OPERATION_REDUCTION);
    g_assert_cmpuint (found->reduce, ==, instrs[which]);
    g_assert_cmpfloat (found->scale, ==, has_scale ? 0.25 : 1);
    test_end (&self);
  }
}

/* exp (scale * x - largest) / sum, as programs write it. */
static TinyNode *
make_softmax (Test *self, TinyNode *x, gint64 axis, double scale, TinyOp op)
{
  TinyGraph *graph = self->graph;
  gint64 dims[8];
  memcpy (dims, x->shape->v, x->shape->n * sizeof *dims);
  if (scale != 1)
    x = claims_apply (self, TINY_OP_MUL, x, scale);
  TinyNode *largest = tiny_node_reduce_axes (graph, x, op, &axis, 1);
  const guint n = x->shape->n;
  largest = tiny_node_expand (graph, largest, dims, n);
  TinyNode *power = tiny_node_binary (graph, TINY_OP_SUB, x, largest);
  power = tiny_node_unary (graph, TINY_OP_EXP2,
                           claims_apply (self, TINY_OP_MUL, power, 1 / G_LN2));
  TinyNode *sum = tiny_node_reduce_axes (graph, power, TINY_OP_ADD, &axis, 1);
  TinyNode *inverse = tiny_node_unary (graph, TINY_OP_RECIP, sum);
  return tiny_node_binary (graph, TINY_OP_MUL, power,
                           tiny_node_expand (graph, inverse, dims, n));
}

static void
test_softmax (void)
{
  for (guint seed = 1; seed <= N_ROUNDS; seed++) {
    Test self;
    test_begin (&self, seed);
    const gint64 dims[] = { 1 + claims_pick (&self, 3), 2 + claims_pick (&self, 4),
                            2 + claims_pick (&self, 4) };
    const gint64 axis = 1 + claims_pick (&self, 2);
    const double scale = claims_pick (&self, 2) ? 0.25 : 1;
    TinyNode *x = claims_add_view (&self, TINY_DTYPE_F32, dims, 3);
    TinyNode *value = make_softmax (&self, x, axis, scale, TINY_OP_MAX);
    g_autoptr (TinySchedule) schedule = claims_run (&self, &value, 1);
    const TinyOperation *found = claims_find_operation (schedule);
    g_assert_nonnull (found);
    g_assert_cmpuint (found->kind, ==, TINY_OPERATION_SOFTMAX);
    g_assert_cmpint (found->extents[TINY_SOFTMAX_AXIS], ==, dims[axis]);
    g_assert_cmpfloat_with_epsilon (found->scale, scale, 1e-6);
    g_assert_cmpuint (found->n_operands, ==, 2);
    /* With what computes its operand, if anything does: nothing between is stored. */
    g_assert_cmpuint (schedule->n_items, <=, 2);
    test_end (&self);
  }
}

/* What is taken off is no maximum, or of another axis, or other powers are summed: none of them is one. */
static void
test_no_softmax (void)
{
  for (guint i = 0; i < 3; i++) {
    Test self;
    test_begin (&self, 1);
    const gint64 dims[] = { 3, 4, 4 }, axis = 2;
    TinyNode *x = claims_add_input (&self, TINY_DTYPE_F32, dims, 3);
    TinyNode *y = claims_add_input (&self, TINY_DTYPE_F32, dims, 3);
    TinyNode *value = make_softmax (&self, x, 2, 0.5, i == 0 ? TINY_OP_ADD : TINY_OP_MAX);
    if (i == 1)
      value = tiny_node_binary (self.graph, TINY_OP_MUL, value->sources[0],
                                make_softmax (&self, x, 1, 0.5, TINY_OP_MAX)->sources[1]);
    if (i == 2)
      value = tiny_node_binary (self.graph, TINY_OP_MUL, value->sources[0],
                                make_softmax (&self, y, axis, 0.5, TINY_OP_MAX)->sources[1]);
    g_autoptr (TinySchedule) schedule = claims_run (&self, &value, 1);
    for (guint k = 0; k < self.offered->len; k++)
      g_assert_cmpuint (g_array_index (self.offered, TinyOperation, k).kind, !=,
                        TINY_OPERATION_SOFTMAX);
    test_end (&self);
  }
}

/* ---- attention ---- */
typedef struct {
  gint64 heads, queries, keys, depth, width;
  gboolean shares_keys, has_mask, is_causal, adds_causal, scales_query;
  double scale;
  gint64 first; /* of the keys that the first query does not see */
} Attention;

static TinyNode *
expand (Test *self, TinyNode *x, gint64 heads, gint64 queries, gint64 keys)
{
  return tiny_node_expand (self->graph, x, (gint64[]){ heads, queries, keys }, 3);
}

static TinyNode *
count (Test *self, gint64 n)
{
  return tiny_node_new (self->graph, TINY_OP_IOTA, TINY_DTYPE_I32, 1, 0, NULL, 0,
                        tiny_graph_ints (self->graph, &n, 1), NULL);
}

/* Whether a key is beyond its query, by their numbers: as le() and where() write it, or the other way round. */
static TinyNode *
mask_later (
    Test *self, TinyNode *x, TinyNode *otherwise, const Attention *shape, gboolean negated)
{
  const gint64 h = shape->heads, q = shape->queries, k = shape->keys;
  TinyGraph *graph = self->graph;
  TinyNode *row = count (self, q), *column = count (self, k);
  row = tiny_node_binary (graph, TINY_OP_ADD, row,
                          tiny_node_const_int (graph, TINY_DTYPE_I32, shape->first - 1));
  row = expand (self, tiny_node_reshape (graph, row, (gint64[]){ 1, q, 1 }, 3), h, q, k);
  column = expand (self, tiny_node_reshape (graph, column, (gint64[]){ 1, 1, k }, 3), h, q, k);
  TinyNode *gate = tiny_node_binary (graph, TINY_OP_CMPLT, row, column);
  if (!negated)
    return tiny_node_where (graph, gate, otherwise, x);
  gate = tiny_node_binary (graph, TINY_OP_CMPNE, gate,
                           tiny_node_const_int (graph, TINY_DTYPE_BOOL, 1));
  return tiny_node_where (graph, gate, x, otherwise);
}

static TinyNode *
make_attention (Test *self, const Attention *shape)
{
  const gint64 h = shape->heads, q = shape->queries, k = shape->keys, e = shape->depth;
  TinyNode *x = claims_add_view (self, TINY_DTYPE_F32, (gint64[]){ h, q, e }, 3);
  TinyNode *y = claims_add_view (self, TINY_DTYPE_F32,
                                 (gint64[]){ shape->shares_keys ? 1 : h, e, k }, 3);
  TinyNode *z = claims_add_view (self, TINY_DTYPE_F32,
                                 (gint64[]){ shape->shares_keys ? 1 : h, k, shape->width }, 3);
  if (shape->scales_query)
    x = claims_apply (self, TINY_OP_MUL, x, shape->scale);
  TinyNode *scores = claims_multiply (self, x, y, TINY_DTYPE_F32);
  if (!shape->scales_query && shape->scale != 1)
    scores = claims_apply (self, TINY_OP_MUL, scores, shape->scale);
  if (shape->has_mask) {
    const gint64 dims[] = { claims_pick (self, 2) ? h : 1, claims_pick (self, 2) ? q : 1, k };
    TinyNode *mask = claims_add_view (self, TINY_DTYPE_F32, dims, 3);
    scores = tiny_node_binary (self->graph, TINY_OP_ADD, scores, expand (self, mask, h, q, k));
  }
  TinyNode *nothing = claims_number (self, scores, -INFINITY),
           *zero = claims_number (self, scores, 0);
  if (shape->is_causal && shape->adds_causal)
    scores = tiny_node_binary (self->graph, TINY_OP_ADD, scores,
                               mask_later (self, zero, nothing, shape, claims_pick (self, 2)));
  else if (shape->is_causal)
    scores = mask_later (self, scores, nothing, shape, claims_pick (self, 2));
  return claims_multiply (self, make_softmax (self, scores, 2, 1, TINY_OP_MAX), z,
                          TINY_DTYPE_F32);
}

static Attention
draw_attention (Test *self)
{
  Attention shape = { .heads = 1 + claims_pick (self, 3),
                      .queries = 1 + claims_pick (self, 4),
                      .depth = 2 + claims_pick (self, 3),
                      .width = 1 + claims_pick (self, 4),
                      .shares_keys = claims_pick (self, 3) == 0,
                      .has_mask = claims_pick (self, 2),
                      .is_causal = claims_pick (self, 2),
                      .adds_causal = claims_pick (self, 3) == 0,
                      .scales_query = claims_pick (self, 3) == 0,
                      .scale = claims_pick (self, 2) ? 0.25 : 1 };
  const gint64 more = claims_pick (self, 3);
  shape.queries += shape.is_causal; /* of one alone no key is later */
  shape.keys = MAX (2, shape.queries + more);
  shape.first = shape.keys - shape.queries + 1;
  return shape;
}

static void
test_attention (void)
{
  for (guint seed = 1; seed <= N_ROUNDS; seed++) {
    Test self;
    test_begin (&self, seed);
    const Attention shape = draw_attention (&self);
    TinyNode *value = make_attention (&self, &shape);
    g_autoptr (TinySchedule) schedule = claims_run (&self, &value, 1);
    const TinyOperation *found = claims_find_operation (schedule);
    g_assert_nonnull (found);
    g_assert_cmpuint (found->kind, ==, TINY_OPERATION_ATTENTION);
    g_assert_cmpuint (found->flags, ==, shape.is_causal ? TINY_OPERATION_CAUSAL : 0);
    g_assert_cmpfloat_with_epsilon (found->scale, shape.scale, 1e-6);
    g_assert_cmpuint (found->n_operands, ==, shape.has_mask ? 5 : 4);
    g_assert_cmpint (found->extents[TINY_ATTENTION_KEY], ==, shape.keys);
    g_assert_cmpint (found->extents[TINY_ATTENTION_DEPTH], ==, shape.depth);
    /* With what computes an operand, if anything does: nothing between is stored. */
    g_assert_cmpuint (schedule->n_items, <=, found->n_operands);
    test_end (&self);
  }
}

/* What only looks like it: the sums that a unit gets are none of attention, and what comes out is right. */
static void
test_no_attention (void)
{
  enum { FINITE, OFFSET, SCALED_MASK, NO_MAXIMUM, OTHER_SUM, SHARED_SCORES, N_CASES };
  for (guint i = 0; i < N_CASES; i++) {
    Test self;
    test_begin (&self, 1);
    const gint64 h = 2, n = 4;
    Attention shape = { .heads = h, .queries = n, .keys = n, .first = i == OFFSET ? 2 : 1 };
    TinyNode *x = claims_add_input (&self, TINY_DTYPE_F32, (gint64[]){ h, n, 3 }, 3);
    TinyNode *y = claims_add_input (&self, TINY_DTYPE_F32, (gint64[]){ h, 3, n }, 3);
    TinyNode *z = claims_add_input (&self, TINY_DTYPE_F32, (gint64[]){ h, n, 3 }, 3);
    TinyNode *mask = claims_add_input (&self, TINY_DTYPE_F32, (gint64[]){ h, n, n }, 3);
    TinyNode *scores = claims_multiply (&self, x, y, TINY_DTYPE_F32);
    if (i == FINITE || i == OFFSET)
      scores
          = mask_later (&self, scores,
                        claims_number (&self, scores, i == FINITE ? -2 : -INFINITY), &shape, i);
    if (i == SCALED_MASK)
      scores = claims_apply (&self, TINY_OP_MUL,
                             tiny_node_binary (self.graph, TINY_OP_ADD, scores, mask), 0.5);
    TinyNode *weights
        = make_softmax (&self, scores, 2, 1, i == NO_MAXIMUM ? TINY_OP_ADD : TINY_OP_MAX);
    if (i == OTHER_SUM)
      weights = tiny_node_binary (self.graph, TINY_OP_MUL, weights->sources[0],
                                  make_softmax (&self, mask, 2, 1, TINY_OP_MAX)->sources[1]);
    TinyNode *roots[] = { claims_multiply (&self, weights, z, TINY_DTYPE_F32), scores };
    g_autoptr (TinySchedule) schedule = claims_run (&self, roots, i == SHARED_SCORES ? 2 : 1);
    g_assert_cmpuint (self.offered->len, >, 0);
    for (guint k = 0; k < self.offered->len; k++)
      g_assert_cmpuint (g_array_index (self.offered, TinyOperation, k).kind, !=,
                        TINY_OPERATION_ATTENTION);
    test_end (&self);
  }
}

static guint
count_kind (const TinySchedule *schedule, TinyOperationKind kind)
{
  guint n = 0;
  for (guint i = 0; i < schedule->n_items; i++)
    n += schedule->items[i].operation != NULL && schedule->items[i].operation->kind == kind;
  return n;
}

/* A unit without it gets its parts; with it, one that reads what another gives. */
static void
test_attention_parts (void)
{
  for (guint takes = 0; takes < 2; takes++) {
    Test self;
    test_begin (&self, 1);
    self.without = takes ? 0 : 1u << TINY_OPERATION_ATTENTION;
    TinyNode *x = claims_add_input (&self, TINY_DTYPE_F32, (gint64[]){ 2, 5, 4 }, 3);
    for (guint i = 0; i < 2; i++) {
      TinyNode *y = claims_add_input (&self, TINY_DTYPE_F32, (gint64[]){ 2, 4, 6 }, 3);
      TinyNode *z = claims_add_input (&self, TINY_DTYPE_F32, (gint64[]){ 2, 6, 4 }, 3);
      TinyNode *scores = claims_multiply (&self, x, y, TINY_DTYPE_F32);
      x = claims_multiply (&self, make_softmax (&self, scores, 2, 0.5, TINY_OP_MAX), z,
                           TINY_DTYPE_F32);
    }
    g_autoptr (TinySchedule) schedule = claims_run (&self, &x, 1);
    g_assert_cmpuint (schedule->n_items, ==, takes ? 2 : 6);
    g_assert_cmpuint (count_kind (schedule, TINY_OPERATION_ATTENTION), ==, takes ? 2 : 0);
    g_assert_cmpuint (count_kind (schedule, TINY_OPERATION_MATMUL), ==, takes ? 0 : 4);
    g_assert_cmpuint (count_kind (schedule, TINY_OPERATION_SOFTMAX), ==, takes ? 0 : 2);
    test_end (&self);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/schedule/groups/reduction", test_reduction);
  g_test_add_func ("/schedule/groups/softmax", test_softmax);
  g_test_add_func ("/schedule/groups/no-softmax", test_no_softmax);
  g_test_add_func ("/schedule/groups/attention", test_attention);
  g_test_add_func ("/schedule/groups/no-attention", test_no_attention);
  g_test_add_func ("/schedule/groups/attention-parts", test_attention_parts);
  return g_test_run ();
}
