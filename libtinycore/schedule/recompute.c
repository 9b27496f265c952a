/* SPDX-License-Identifier: MIT
 *
 * recompute.c: values that are so much larger than what they are made from that it may be better
 * not to store them at all.
 *
 * The scores of attention have an element for each pair of rows, and queries and keys one for each
 * row. Kernels that read such a value by whole rows can each compute the row at work, in memory of
 * the kernel (share.c): then memory grows with the rows and not with their square, at the price of
 * computing the value once for each of those kernels. Here such values are found; whether the
 * schedule without them is the better one is judged when both are made (tiny-schedule.c). */
#include "schedule/plan.h"
#include "schedule/weights.h"

typedef struct {
  gboolean has_reduce;
  gboolean by_rows;  /* who reads it goes through all of it, or through some whole axes */
  double leaf_bytes; /* of what is stored below it */
} Info;

typedef struct {
  GPtrArray *order;
  Info *infos;
  guint *position; /* of each node id in order */
  TinyNodeMap *found;
} Search;

static Info *
get_info (Search *self, const TinyNode *node)
{
  return &self->infos[self->position[node->id]];
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

/* Users before sources: what reads each node by a part or at other places than its own. */
static void
find_uses (Search *self)
{
  for (guint i = 0; i < self->order->len; i++)
    self->infos[i].by_rows = TRUE;
  for (guint i = self->order->len; i-- > 0;) {
    TinyNode *node = self->order->pdata[i];
    gboolean good = computes (node) || node->op == TINY_OP_SINK
                    || (keeps_rows (node) && self->infos[i].by_rows);
    for (guint s = 0; s < node->n_sources && !good; s++)
      get_info (self, node->sources[s])->by_rows = FALSE;
  }
}

/* Bytes that are read from memory to compute @root, each buffer once. */
static double
count_leaf_bytes (Search *self, TinyNode *root)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);
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
    for (guint s = 0; s < schedule_count_values (node) && !is_leaf; s++)
      if (g_hash_table_add (seen, node->sources[s]))
        g_ptr_array_add (stack, node->sources[s]);
  }
  return n_bytes;
}

gboolean
schedule_find_recomputed (Plan *plan)
{
  gboolean any = FALSE;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (plan->graph, plan->roots, plan->n_roots);
  Search self = { .order = order, .found = &plan->recomputed };
  self.infos = g_new0 (Info, order->len + 1);
  self.position = g_new0 (guint, tiny_graph_get_n_nodes (plan->graph) + 1);
  for (guint i = 0; i < order->len; i++)
    self.position[((TinyNode *) order->pdata[i])->id] = i;
  find_uses (&self);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    Info *info = &self.infos[i];
    info->has_reduce = node->op == TINY_OP_REDUCE;
    for (guint s = 0; s < schedule_count_values (node); s++)
      info->has_reduce = info->has_reduce || get_info (&self, node->sources[s])->has_reduce;
    if (!computes (node) || !info->has_reduce || !info->by_rows
        || count_bytes (node) < schedule_weights.recompute_bytes
        || count_bytes (node)
               < schedule_weights.recompute_growth * count_leaf_bytes (&self, node))
      continue;
    tiny_node_map_set (&plan->recomputed, node, node);
    any = any || node->op == TINY_OP_REDUCE; /* products to be summed are never stored */
  }
  g_free (self.infos);
  g_free (self.position);
  if (!any)
    tiny_node_map_clear (&plan->recomputed);
  return any;
}
