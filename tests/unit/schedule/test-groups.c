/* SPDX-License-Identifier: MIT
 *
 * Reductions of one buffer, and groups of kernels that are one operation: recognised in any layout, to compute what
 * their kernels do, and nothing that is only alike. evaluate_schedule() compares each with its kernel. */
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

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/schedule/groups/reduction", test_reduction);
  g_test_add_func ("/schedule/groups/softmax", test_softmax);
  g_test_add_func ("/schedule/groups/no-softmax", test_no_softmax);
  return g_test_run ();
}
