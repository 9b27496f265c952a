/* SPDX-License-Identifier: MIT
 *
 * pass-canonical.c: the tensor graph in the form that fusion wants.
 *
 * What only matters before scheduling goes away (DETACH, SLOPED, an ASSIGN that is read, a COPY to where
 * the value is). A root that is a leaf or a view of one is wrapped in CONTIGUOUS: it needs memory
 * of its own, but no one else should read that.
 *
 * Movement right below a REDUCE sinks into the operands of what is reduced, so that a contraction
 * is REDUCE (ADD, MUL (view, view)); through a REDUCE of the same op it sinks too, and the two
 * become one. The gradient of a convolution with respect to its input, a sum over the window of a
 * sheared sum over channels, so becomes one contraction of a padded tensor and the weights. */
#include <string.h>

#include "schedule/plan.h"
#include "schedule/views.h"
#include "schedule/weights.h"

typedef struct {
  Plan *plan;
  TinyGraph *graph;
  TinyNodeNumbers users; /* of each node */
  TinyNodeMap relus;     /* of a node: max (node, 0) if that is in the graph */
} Canonical;

static guint
count_users (Canonical *self, const TinyNode *node)
{
  return tiny_node_numbers_get (&self->users, node);
}

/* ---- REDUCE of REDUCE ---- */
/* A value seen as @node reduced over its last @n_reduced axes, which are gone. */
typedef struct {
  TinyNode *node;
  guint n_reduced;
} Reduced;

/* @reduce with the reduced axes moved to the end. */
static Reduced
open_reduce (Canonical *self, TinyNode *reduce)
{
  TinyNode *x = reduce->sources[0];
  gint64 axes[SCHEDULE_MAX_RANK], dims[SCHEDULE_MAX_RANK];
  guint n = 0, n_kept;
  for (guint i = 0; i < x->shape->n; i++) {
    gboolean reduced = FALSE;
    for (guint j = 0; j < reduce->ints->n; j++)
      reduced = reduced || reduce->ints->v[j] == i;
    if (!reduced)
      axes[n++] = i;
  }
  n_kept = n;
  for (guint j = 0; j < reduce->ints->n; j++)
    axes[n++] = reduce->ints->v[j];
  x = view_apply (self->graph, &self->users, TINY_OP_PERMUTE, axes, n, x);
  /* Back in the kept axes' shape with the 1s: those that a movement above speaks of. */
  guint rank = reduce->shape->n;
  memcpy (dims, reduce->shape->v, rank * sizeof *dims);
  for (guint j = 0; j < reduce->ints->n; j++)
    dims[rank + j] = x->shape->v[n_kept + j];
  x = view_apply (self->graph, &self->users, TINY_OP_RESHAPE, dims, rank + reduce->ints->n, x);
  return (Reduced){ x, reduce->ints->n };
}

/* The movement @node over the leading axes of @below. */
static Reduced
move_reduced (Canonical *self, TinyNode *node, Reduced below)
{
  gint64 ints[2 * SCHEDULE_MAX_RANK];
  guint n = node->ints->n, rank = below.node->shape->n - below.n_reduced;
  memcpy (ints, node->ints->v, n * sizeof *ints);
  for (guint i = 0; i < below.n_reduced; i++) {
    gint64 size = below.node->shape->v[rank + i];
    switch (node->op) {
    case TINY_OP_RESHAPE:
    case TINY_OP_EXPAND:
      ints[n++] = size;
      break;
    case TINY_OP_PERMUTE:
      ints[n++] = rank + i;
      break;
    case TINY_OP_PAD:
    case TINY_OP_SHRINK:
      ints[n++] = 0;
      ints[n++] = node->op == TINY_OP_PAD ? 0 : size;
      break;
    default:
      break;
    }
  }
  below.node = view_apply (self->graph, &self->users, node->op, ints, n, below.node);
  return below;
}

/* Finds below @source, through movement, a REDUCE by @op that no one else uses. */
static TinyNode *
find_reduce (Canonical *self,
             TinyNode *source,
             TinyOp op,
             guint *out_n_chain,
             TinyNode **chain,
             guint n_max)
{
  guint n = 0;
  TinyNode *x = source;
  while (tiny_op_is_movement (x->op) && count_users (self, x) <= 1 && n < n_max) {
    chain[n++] = x;
    x = x->sources[0];
  }
  *out_n_chain = n;
  gboolean found = x->op == TINY_OP_REDUCE && x->arg == op && count_users (self, x) <= 1
                   && tiny_shape_get_n_elements (x->sources[0]->shape) > 0;
  return found ? x : NULL;
}

static TinyNode *
merge_reduces (Canonical *self, TinyNode *reduce, TinyNode *source)
{
  enum { MAX_CHAIN = 24 };
  TinyNode *chain[MAX_CHAIN];
  gint64 axes[SCHEDULE_MAX_RANK], dims[SCHEDULE_MAX_RANK];
  guint n_chain, n = 0, rank = source->shape->n;
  TinyNode *inner = find_reduce (self, source, reduce->arg, &n_chain, chain, MAX_CHAIN);
  if (inner == NULL || inner->shape->n + inner->ints->n > SCHEDULE_MAX_RANK)
    return NULL;
  Reduced below = open_reduce (self, inner);
  for (guint i = n_chain; i-- > 0;) {
    if (chain[i]->shape->n + below.n_reduced > SCHEDULE_MAX_RANK)
      return NULL;
    below = move_reduced (self, chain[i], below);
  }
  double before
      = (double) tiny_shape_get_n_elements (inner->sources[0]->shape)
        + (double) tiny_shape_get_n_elements (source->shape)
        + schedule_weights.work_of_storing * (double) tiny_shape_get_n_elements (inner->shape);
  double after = (double) tiny_shape_get_n_elements (below.node->shape);
  if (after > before * schedule_weights.max_extra_work)
    return NULL;
  for (guint i = 0; i < reduce->ints->n; i++)
    axes[n++] = reduce->ints->v[i];
  for (guint i = 0; i < below.n_reduced; i++)
    axes[n++] = rank + i;
  TinyNode *merged = tiny_node_reduce_axes (self->graph, below.node, reduce->arg, axes, n);
  memcpy (dims, source->shape->v, rank * sizeof *dims);
  for (guint i = 0; i < reduce->ints->n; i++)
    dims[reduce->ints->v[i]] = 1;
  return tiny_node_reshape (self->graph, merged, dims, rank);
}

/* ---- movement below a REDUCE ---- */
/* @x with the movement on top of it inside its operands, where that costs nothing. */
static TinyNode *
expose (Canonical *self, TinyNode *x)
{
  g_autoptr (GPtrArray) moves = g_ptr_array_new ();
  TinyNode *y = x;
  for (; tiny_op_is_movement (y->op) && count_users (self, y) <= 1; y = y->sources[0])
    g_ptr_array_add (moves, y);
  if (!tiny_op_is_elementwise (y->op))
    return x;
  for (guint i = moves->len; i-- > 0;) {
    TinyNode *move = moves->pdata[i];
    if (y == move->sources[0] && !tiny_op_is_elementwise (y->op))
      y = move;
    else
      y = view_apply (self->graph, &self->users, move->op, move->ints->v, move->ints->n, y);
  }
  return y;
}

static TinyNode *
clean_reduce (Canonical *self, TinyNode *node, TinyNode *source)
{
  if (tiny_shape_get_n_elements (source->shape) == 0)
    return tiny_node_with_sources (self->graph, node, &source);
  source = expose (self, source);
  TinyNode *merged = merge_reduces (self, node, source);
  if (merged != NULL)
    return merged;
  return tiny_node_with_sources (self->graph, node, &source);
}

/* ---- what a rectifier's gradient reads ---- */
static gboolean
is_zero (const TinyNode *node)
{
  return node->op == TINY_OP_CONST && tiny_node_get_float (node) == 0;
}

/* 0 < x where there is max (x, 0) is 0 < max (x, 0): only one of the two need be stored. */
static TinyNode *
clean_compare (Canonical *self, TinyNode *node, TinyNode *const *sources)
{
  TinyNode *relu = tiny_node_map_get (&self->relus, node->sources[1]);
  if (relu == NULL || !is_zero (sources[0]))
    return tiny_node_with_sources (self->graph, node, sources);
  TinyNode *x = sources[1], *zero = sources[0];
  relu = tiny_node_binary (self->graph, TINY_OP_MAX,
                           relu->sources[0] == node->sources[1] ? x : zero,
                           relu->sources[0] == node->sources[1] ? zero : x);
  return tiny_node_binary (self->graph, TINY_OP_CMPLT, zero, relu);
}

static void
find_relus (Canonical *self, GPtrArray *order)
{
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_MAX && is_zero (node->sources[1]))
      tiny_node_map_set (&self->relus, node->sources[0], node);
    else if (node->op == TINY_OP_MAX && is_zero (node->sources[0]))
      tiny_node_map_set (&self->relus, node->sources[1], node);
  }
}

/* ---- products with one ---- */
/* A gradient begins with ones. */
static gboolean
is_one (const TinyNode *node)
{
  while (tiny_op_is_movement (node->op) && node->op != TINY_OP_PAD && node->op != TINY_OP_SHEAR)
    node = node->sources[0];
  return node->op == TINY_OP_CONST && node->dtype != TINY_DTYPE_BOOL
         && tiny_node_get_float (node) == 1;
}

static TinyNode *
clean_product (Canonical *self, TinyNode *node, TinyNode *const *sources)
{
  for (guint i = 0; i < 2; i++)
    if (is_one (sources[i]) && sources[1 - i]->shape == node->shape)
      return sources[1 - i];
  return tiny_node_with_sources (self->graph, node, sources);
}

/* ---- the pass ---- */
static TinyNode *
clean (Canonical *self, TinyNode *node, TinyNode *const *sources)
{
  switch (node->op) {
  case TINY_OP_DETACH:
  case TINY_OP_SLOPED:
    return sources[0];
  case TINY_OP_GRADIENT:
    return sources[node->ints->v[0]];
  case TINY_OP_ASSIGN:
    return sources[1];
  case TINY_OP_COPY:
    if (schedule_get_device (self->plan, sources[0]) == node->text)
      return sources[0];
    break;
  case TINY_OP_CONTIGUOUS:
    if (sources[0]->op == TINY_OP_CONTIGUOUS || sources[0]->op == TINY_OP_PARAM
        || sources[0]->op == TINY_OP_COPY || sources[0]->op == TINY_OP_CONST)
      return sources[0];
    break;
  case TINY_OP_KERNEL:
    return schedule_clean_custom (self->plan, node, sources);
  case TINY_OP_REDUCE:
    return clean_reduce (self, node, sources[0]);
  case TINY_OP_MUL:
    return clean_product (self, node, sources);
  case TINY_OP_CMPLT:
    return clean_compare (self, node, sources);
  case TINY_OP_SHEAR:
    if (tiny_shape_get_n_elements (sources[0]->shape) > 0
        && !tiny_op_is_elementwise (sources[0]->op))
      return view_apply (self->graph, &self->users, node->op, node->ints->v, node->ints->n,
                         sources[0]);
    break;
  default:
    break;
  }
  return tiny_node_with_sources (self->graph, node, sources);
}

void
schedule_canonicalize (Plan *plan)
{
  GPtrArray *order = schedule_list_graph (plan);
  g_autoptr (GPtrArray) sources = g_ptr_array_new ();
  g_autofree guint *places = tiny_graph_list_places (order, plan->roots, plan->n_roots);
  g_autofree TinyNode **made = g_new (TinyNode *, order->len + 1);
  g_autofree guint *users = g_new0 (guint, order->len + 1);
  const guint *at = places;
  Canonical self = { plan, plan->graph, { NULL, 0 }, { NULL, 0 } };
  find_relus (&self, order);
  for (guint i = 0; i < order->len; i++) {
    const TinyNode *node = order->pdata[i];
    for (guint j = 0; j < node->n_sources; j++)
      users[*at++]++;
  }
  for (guint r = 0; r < plan->n_roots; r++)
    users[*at++] += 2;
  at = places;
  for (guint i = 0; i < order->len && schedule_goes_on (plan, i); i++) {
    TinyNode *node = order->pdata[i];
    g_ptr_array_set_size (sources, 0);
    for (guint j = 0; j < node->n_sources; j++)
      g_ptr_array_add (sources, made[*at++]);
    TinyNode *result = made[i] = clean (&self, node, (TinyNode *const *) sources->pdata);
    schedule_get_device (plan, result); /* here its sources are known: no deep walk later */
    tiny_node_numbers_set (&self.users, result, MAX (count_users (&self, result), users[i]));
  }
  for (guint r = 0; r < plan->n_roots && plan->stopped == NULL; r++) {
    TinyNode *root = made[*at++];
    gboolean assigns = root->op == TINY_OP_KERNEL && plan->targets[r] != NULL;
    if (root->n_sources == 0 || tiny_op_is_movement (root->op) || assigns)
      root = tiny_node_new (plan->graph, TINY_OP_CONTIGUOUS, root->dtype, 1, 1, &root, 0, NULL,
                            NULL);
    plan->roots[r] = root;
  }
  tiny_node_numbers_clear (&self.users);
  tiny_node_map_clear (&self.relus);
}
