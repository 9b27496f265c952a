/* SPDX-License-Identifier: MIT
 *
 * recompute.c: values that it may be better not to store at all.
 *
 * The scores of attention have an element for each pair of rows, and queries and keys one for each
 * row. Kernels that read such a value by whole rows can each compute the row at work, in memory of
 * the kernel (share.c).
 *
 *  - A value that is large, and much larger than what it is made from: memory then grows with the
 *    rows and not with their square, at the price of computing the value once for each kernel.
 *  - A value of any size that is only reduced, by reductions that wait for each other and always along
 *    the same axis: all of that becomes one kernel, which computes the value once. A gradient reads scores along the
 *    other axis as well, so small ones are stored for it.
 *
 * Here such values are found; whether the schedule without them is the better one is judged when
 * both are made (tiny-schedule.c). */
#include "schedule/plan.h"
#include "schedule/views.h"
#include "schedule/weights.h"

/* In place of an axis, or of a place in the order: none yet; and of an axis: not one alone. */
enum { NONE = -1, SEVERAL = -2 };

typedef struct {
  gboolean has_reduce;
  gboolean by_rows;    /* who reads it goes through all of it, or through some whole axes */
  int axis;            /* that all who read it reduce */
  int first, last;     /* of those that do, places in the order; NONE: none do */
  gboolean is_in_rows; /* one kernel may go through its rows */
} Info;

typedef struct {
  Plan *plan;
  GPtrArray *order; /* the last that is made of its nodes: their places are in it */
  Info *infos;
  TinyNodeMap *found;
} Search;

static Info *
get_info (Search *self, const TinyNode *node)
{
  return &self->infos[node->place];
}

static double
count_bytes (const TinyNode *node)
{
  return (double) tiny_shape_get_n_elements (node->shape)
         * (double) tiny_dtype_get_n_bytes (node->dtype);
}

static gboolean
computes (const TinyNode *node)
{
  return tiny_op_is_elementwise (node->op) || node->op == TINY_OP_REDUCE;
}

static gboolean
keeps_rows (const TinyNode *node)
{
  return node->op == TINY_OP_EXPAND || node->op == TINY_OP_PERMUTE
         || node->op == TINY_OP_RESHAPE;
}

/* The axis of @source that is reduced where @axis of @node is, or by @node. */
static int
find_axis (const TinyNode *node, const TinyNode *source, int axis)
{
  if (node->op == TINY_OP_REDUCE)
    return node->ints->n == 1 ? (int) node->ints->v[0] : SEVERAL;
  if (axis < 0)
    return SEVERAL;
  if (node->op == TINY_OP_PERMUTE)
    return (int) node->ints->v[axis];
  if (node->op == TINY_OP_RESHAPE)
    axis = view_find_axis (source->shape, node->shape, (guint) axis);
  else if (!tiny_op_is_elementwise (node->op) && node->op != TINY_OP_EXPAND)
    return SEVERAL;
  gboolean is_same
      = axis >= 0 && (guint) axis < source->shape->n
        && (node->op != TINY_OP_EXPAND || source->shape->v[axis] == node->shape->v[axis]);
  return is_same ? axis : SEVERAL;
}

static void
add_use (int *known, int use)
{
  *known = *known == NONE || *known == use ? use : SEVERAL;
}

static void
add_reductions (Info *info, int first, int last)
{
  if (first >= 0)
    info->first = info->first < 0 ? first : MIN (info->first, first);
  info->last = MAX (info->last, last);
}

/* Users before sources: what reads each node by a part or at other places than its own, and along which axis. */
static void
find_uses (Search *self)
{
  for (guint i = 0; i < self->order->len; i++) {
    self->infos[i].by_rows = TRUE;
    self->infos[i].axis = self->infos[i].first = self->infos[i].last = NONE;
  }
  for (guint r = 0; r < self->plan->n_roots; r++)
    get_info (self, self->plan->roots[r])->axis = SEVERAL;
  for (guint i = self->order->len; i-- > 0;) {
    TinyNode *node = self->order->pdata[i];
    const Info *user = &self->infos[i];
    gboolean good
        = computes (node) || node->op == TINY_OP_SINK || (keeps_rows (node) && user->by_rows);
    for (guint s = 0; s < node->n_sources; s++) {
      Info *info = get_info (self, node->sources[s]);
      info->by_rows = info->by_rows && good;
      add_use (&info->axis, find_axis (node, node->sources[s], user->axis));
      add_reductions (info, node->op == TINY_OP_REDUCE ? (int) i : user->first,
                      node->op == TINY_OP_REDUCE ? (int) i : user->last);
    }
  }
}

/* Bytes that are read from memory to compute @root, each buffer once. */
static double
count_leaf_bytes (Search *self, TinyNode *root)
{
  const guint32 seen = tiny_graph_begin_mark (self->plan->graph);
  g_autoptr (GPtrArray) stack = g_ptr_array_new ();
  double n_bytes = 0;
  g_ptr_array_add (stack, root);
  while (stack->len > 0) {
    TinyNode *node = g_ptr_array_steal_index (stack, stack->len - 1);
    gboolean is_leaf = node->n_sources == 0 || node->op == TINY_OP_COPY
                       || node->op == TINY_OP_KERNEL || node->op == TINY_OP_CONTIGUOUS
                       || (node != root && node->op == TINY_OP_REDUCE
                           && !tiny_node_map_get (self->found, node));
    if (is_leaf)
      n_bytes += node->op == TINY_OP_CONST ? 0 : count_bytes (node);
    for (guint s = 0; s < schedule_count_values (node) && !is_leaf; s++) {
      if (node->sources[s]->mark == seen)
        continue;
      node->sources[s]->mark = seen;
      g_ptr_array_add (stack, node->sources[s]);
    }
  }
  return n_bytes;
}

static gboolean
is_large (Search *self, TinyNode *node)
{
  return count_bytes (node) >= schedule_weights.far_bytes
         && count_bytes (node)
                >= schedule_weights.recompute_growth * count_leaf_bytes (self, node);
}

/* True if the last reduction of @info's rows is of what their first one gave, as a sum of exponentials is of the
 * maximum. Reductions that do not wait for each other need no row in memory: each has its own loops, and a product that they
 * read has its tile where it is stored. */
static gboolean
is_chain (Search *self, const Info *info)
{
  const guint32 seen = tiny_graph_begin_mark (self->plan->graph);
  g_autoptr (GPtrArray) stack = g_ptr_array_new ();
  const TinyNode *first = self->order->pdata[info->first];
  g_ptr_array_add (stack, ((TinyNode *) self->order->pdata[info->last])->sources[0]);
  while (stack->len > 0) {
    TinyNode *node = g_ptr_array_steal_index (stack, stack->len - 1);
    if (node == first)
      return TRUE;
    if (node->mark == seen || node->op == TINY_OP_REDUCE)
      continue;
    node->mark = seen;
    for (guint s = 0; s < schedule_count_values (node); s++)
      g_ptr_array_add (stack, node->sources[s]);
  }
  return FALSE;
}

/* True if one kernel may go through rows of @reduce and no other reads it. What is read again for each row has to stay
 * near, and so has the row: it lies in memory that no work-group shares. */
static gboolean
is_only_reduced (Search *self, TinyNode *reduce)
{
  const Info *info = get_info (self, reduce);
  const ScheduleMachine machine
      = schedule_get_machine (self->plan, schedule_get_device (self->plan, reduce));
  if (info->axis < 0 || info->first == info->last || machine.tile_rows == 0
      || !is_chain (self, info))
    return FALSE;
  double n_bytes
      = (double) reduce->shape->v[info->axis] * (double) tiny_dtype_get_n_bytes (reduce->dtype);
  for (guint i = 0; i < reduce->ints->n; i++)
    n_bytes *= (double) reduce->sources[0]->shape->v[reduce->ints->v[i]];
  return n_bytes <= (double) machine.near_bytes;
}

/* True if @node is such a reduction, or is made of one and only reduced along the same axis. */
static gboolean
is_in_rows (Search *self, TinyNode *node)
{
  if (node->op == TINY_OP_REDUCE)
    return is_only_reduced (self, node);
  for (guint s = 0; s < node->n_sources && get_info (self, node)->axis >= 0; s++)
    if ((computes (node) || keeps_rows (node)) && get_info (self, node->sources[s])->is_in_rows)
      return TRUE;
  return FALSE;
}

gboolean
schedule_find_recomputed (Plan *plan)
{
  gboolean any = FALSE;
  GPtrArray *order = schedule_list_graph (plan);
  Search self = { .plan = plan, .order = order, .found = &plan->recomputed };
  self.infos = g_new0 (Info, order->len + 1);
  find_uses (&self);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    Info *info = &self.infos[i];
    info->has_reduce = node->op == TINY_OP_REDUCE;
    for (guint s = 0; s < schedule_count_values (node); s++)
      info->has_reduce = info->has_reduce || get_info (&self, node->sources[s])->has_reduce;
    info->is_in_rows = info->by_rows && is_in_rows (&self, node);
    if (!computes (node) || !info->has_reduce || !info->by_rows
        || (!info->is_in_rows && !is_large (&self, node)))
      continue;
    tiny_node_map_set (&plan->recomputed, node, node);
    any = any || node->op == TINY_OP_REDUCE; /* products to be summed are never stored */
  }
  g_free (self.infos);
  if (!any)
    tiny_node_map_clear (&plan->recomputed);
  return any;
}
