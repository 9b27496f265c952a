/* SPDX-License-Identifier: MIT
 *
 * split-reduce.c: a reduction with few results and much to combine becomes two.
 *
 * One kernel over few outputs has nothing to spread over threads. So its outermost reduced axis is
 * split; the first kernel combines the inner part for each step of the outer one, the second the
 * outer part. The steps of a product of matrices lie one after the other, each a matrix itself.
 *
 * A contraction whose operands are larger than a cache and are read again for every tile of its
 * results (the gradient of a convolution's weight) is split as well, into steps whose operands fit:
 * then all tiles of a step find them near. What is computed row by row (recompute.c) stays whole. */
#include <string.h>

#include "schedule/claim.h"
#include "schedule/plan.h"
#include "schedule/rescale.h"
#include "schedule/weights.h"

/* The largest divisor of @extent that is at most @most, or 0 when that is too few steps. */
static gint64
find_steps (gint64 extent, gint64 most)
{
  for (gint64 steps = MIN (most, extent); steps >= schedule_weights.split_least; steps--)
    if (extent % steps == 0)
      return steps;
  return 0;
}

/* Elements behind those operands of a product that are read again and again, each counted once: a
 * matrix that meets a vector streams by, and splitting would only add to that. */
static gint64
count_operands (TinyNode *product)
{
  gint64 n_total = tiny_shape_get_n_elements (product->shape);
  gint64 n = 0;
  for (guint i = 0; product->op == TINY_OP_MUL && i < product->n_sources; i++) {
    TinyNode *operand = product->sources[i];
    while (tiny_op_is_movement (operand->op) || operand->op == TINY_OP_CAST)
      operand = operand->sources[0];
    gint64 n_elements = tiny_shape_get_n_elements (operand->shape);
    if (n_elements > 0 && n_total / n_elements >= schedule_weights.pack_min_reuse)
      n += n_elements;
  }
  return n;
}

/* A product of matrices with few results. Its steps come to lie one after the other: each is a matrix
 * that is computed in tiles. */
static gboolean
is_small_contraction (TinyNode *node)
{
  return tiny_shape_get_n_elements (node->shape) <= schedule_weights.split_max_outputs
         && count_operands (node->sources[0]) > 0;
}

static gboolean
has_variable (const TinyNode *node, guint depth)
{
  enum { MAX_DEPTH = 12 };
  if (node->op == TINY_OP_VARIABLE)
    return TRUE;
  for (guint i = 0; depth < MAX_DEPTH && i < node->n_sources; i++)
    if (has_variable (node->sources[i], depth + 1))
      return TRUE;
  return FALSE;
}

static const TinyNode *
skip_movement (const TinyNode *x)
{
  while (tiny_op_is_movement (x->op) || x->op == TINY_OP_CAST)
    x = x->sources[0];
  return x;
}

/* Whether @gate is that a counter is below a number in memory, one for each of @n results at most. */
static gboolean
is_below_number (const TinyNode *gate, gint64 n)
{
  if (gate->op != TINY_OP_CMPLT || skip_movement (gate->sources[0])->op != TINY_OP_IOTA)
    return FALSE;
  const TinyNode *number = skip_movement (gate->sources[1]);
  return number->op == TINY_OP_CONTIGUOUS && tiny_shape_get_n_elements (number->shape) <= n;
}

/* Whether how much there is to combine is known at launch, or read: one loop ends there (codegen/pass-bound.c), the
 * steps of a split one would all be made. */
static gboolean
ends_at_variable (const TinyNode *x, gint64 n_outputs)
{
  x = skip_movement (x);
  return x->op == TINY_OP_WHERE && x->sources[0]->dtype == TINY_DTYPE_BOOL
         && (has_variable (x->sources[0], 0)
             || is_below_number (skip_movement (x->sources[0]), n_outputs));
}

/* Into how many steps at most the reduction @node is worth splitting; 0: not at all. */
static gint64
most_steps (Plan *plan, TinyNode *node)
{
  TinyNode *x = node->sources[0];
  gint64 n_outputs = tiny_shape_get_n_elements (node->shape);
  gint64 n_total = tiny_shape_get_n_elements (x->shape);
  if (n_outputs == 0 || n_total < schedule_weights.split_min_total
      || n_total / n_outputs < schedule_weights.split_min_reduced
      || x->shape->n >= SCHEDULE_MAX_RANK || ends_at_variable (x, n_outputs))
    return 0;
  if (n_outputs <= schedule_weights.split_max_outputs)
    return is_small_contraction (node) ? schedule_weights.split_contraction
                                       : schedule_weights.split_most;
  if (node->arg != TINY_OP_ADD)
    return 0;
  gint64 n_operands = count_operands (x);
  gint64 near_bytes = schedule_get_machine (plan, schedule_get_device (plan, node)).near_bytes;
  gint64 n_cached = near_bytes / (gint64) tiny_dtype_get_n_bytes (x->dtype);
  /* What the steps write and read again is small beside what they save reading. */
  return MIN (n_operands / n_cached + 1, n_operands / (4 * n_outputs));
}

/* Whether steps of @axis would be the innermost axis of what they give, which tiles want to be one
 * of the results' own. */
static gboolean
would_be_innermost (TinyNode *node, guint axis)
{
  const TinyInts *shape = node->shape;
  for (guint i = axis + 1; i < shape->n; i++)
    if (shape->v[i] != 1)
      return FALSE;
  return count_operands (node->sources[0]) > 0;
}

static TinyNode *
split (Plan *plan, TinyNode *node)
{
  TinyGraph *graph = plan->graph;
  TinyNode *x = node->sources[0];
  gint64 most = most_steps (plan, node);
  gint64 dims[SCHEDULE_MAX_RANK + 1], axes[SCHEDULE_MAX_RANK + 1], steps = 0;
  guint rank = x->shape->n, a = 0;
  while (a < node->ints->n && (steps = find_steps (x->shape->v[node->ints->v[a]], most)) == 0)
    a++;
  if (steps == 0)
    return node;
  guint axis = node->ints->v[a];
  memcpy (dims, x->shape->v, axis * sizeof *dims);
  dims[axis] = steps;
  dims[axis + 1] = x->shape->v[axis] / steps;
  memcpy (dims + axis + 2, x->shape->v + axis + 1, (rank - axis - 1) * sizeof *dims);
  for (guint i = 0; i < node->ints->n; i++)
    axes[i] = node->ints->v[i] + (node->ints->v[i] >= axis);
  TinyNode *parts = node->arg == TINY_OP_ADD && node->ints->n == 1
                        ? schedule_rescale_parts (graph, x, dims, rank + 1, axis)
                        : NULL;
  if (parts != NULL) {
    parts = tiny_node_reduce_axes (graph, parts, TINY_OP_ADD, (gint64[]){ axis }, 1);
    return tiny_node_reshape (graph, parts, node->shape->v, node->shape->n);
  }
  x = tiny_node_reshape (graph, x, dims, rank + 1);
  if (is_small_contraction (node) || would_be_innermost (node, axis)) {
    gint64 order[SCHEDULE_MAX_RANK + 1] = { axis };
    for (guint i = 0; i < rank; i++)
      order[i + 1] = i + (i >= axis);
    for (guint i = 0; i < node->ints->n; i++)
      axes[i] += axes[i] < axis;
    x = tiny_node_permute (graph, x, order, rank + 1);
    axis = 0;
  }
  x = tiny_node_reduce_axes (graph, x, node->arg, axes, node->ints->n);
  x = tiny_node_new (graph, TINY_OP_CONTIGUOUS, x->dtype, 1, 1, &x, 0, NULL, NULL);
  x = tiny_node_reduce_axes (graph, x, node->arg, (gint64[]){ axis }, 1);
  return tiny_node_reshape (graph, x, node->shape->v, node->shape->n);
}

void
schedule_split_reduces (Plan *plan)
{
  GPtrArray *order = schedule_list_graph (plan);
  g_autoptr (GPtrArray) sources = g_ptr_array_new ();
  g_autofree guint *places = tiny_graph_list_places (order, plan->roots, plan->n_roots);
  g_autofree TinyNode **made = g_new (TinyNode *, order->len + 1);
  g_auto (TinyNodeMap) claimed = { NULL, 0 };
  const guint *at = places;
  schedule_find_claimed (order, &claimed);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    g_ptr_array_set_size (sources, 0);
    for (guint j = 0; j < node->n_sources; j++)
      g_ptr_array_add (sources, made[*at++]);
    TinyNode *result
        = tiny_node_with_sources (plan->graph, node, (TinyNode *const *) sources->pdata);
    if (result->op == TINY_OP_REDUCE && tiny_node_map_get (&claimed, node) == NULL
        && tiny_node_map_get (&plan->recomputed, result->sources[0]) == NULL)
      result = split (plan, result);
    made[i] = result;
    schedule_get_device (plan, result);
  }
  for (guint r = 0; r < plan->n_roots; r++) {
    TinyNode *root = made[*at++];
    if (tiny_op_is_movement (root->op))
      root = tiny_node_new (plan->graph, TINY_OP_CONTIGUOUS, root->dtype, 1, 1, &root, 0, NULL,
                            NULL);
    plan->roots[r] = root;
  }
}
