/* SPDX-License-Identifier: MIT
 *
 * remake.c: a finished kernel over other loops and other buffers.
 *
 * Addresses are read back as sums, in which each loop is replaced by a sum over new loops, so that
 * they come out as simple as if the kernel had been made with those. */
#include "schedule/remake.h"

void
remake_init (Remake *self, Plan *plan)
{
  *self = (Remake){ .pool = &plan->affines };
}

void
remake_clear (Remake *self)
{
  tiny_node_map_clear (&self->loops);
  tiny_node_map_clear (&self->nodes);
  tiny_node_map_clear (&self->stores);
}

/* The value that @load, as it was, would find in the memory that @store writes. */
static TinyNode *
forward (Remake *self, TinyNode *load, TinyNode *store, TinyNode *const *sources)
{
  TinyGraph *graph = self->pool->graph;
  if (sources[1] != store->sources[1]) {
    self->clashes = TRUE;
    return tiny_node_with_sources (graph, load, sources);
  }
  if (load->n_sources < 4)
    return store->sources[2];
  return tiny_node_where (graph, sources[2], store->sources[2], sources[3]);
}

static TinyNode *
remake_one (Remake *self, TinyNode *node)
{
  const Affine *sum = affine_read (self->pool, node);
  gboolean is_position = node->op == TINY_OP_CAST && sum != NULL;
  if (sum != NULL && !is_position)
    return affine_to_node (self->pool, affine_replace (self->pool, sum, &self->loops));
  g_autofree TinyNode **many = node->n_sources > 8 ? g_new (TinyNode *, node->n_sources) : NULL;
  TinyNode *few[8], **sources = many ? many : few;
  for (guint i = 0; i < node->n_sources; i++)
    sources[i] = tiny_node_map_get (&self->nodes, node->sources[i]);
  TinyNode *store
      = node->op == TINY_OP_LOAD ? tiny_node_map_get (&self->stores, node->sources[0]) : NULL;
  if (store != NULL)
    return forward (self, node, store, sources);
  TinyNode *made = tiny_node_with_sources (self->pool->graph, node, sources);
  if (is_position) /* read from memory: an atom of the sums that it is in */
    tiny_node_map_set (&self->loops, node, (gpointer) affine_read (self->pool, made));
  return made;
}

void
remake_nodes (Remake *self, const GPtrArray *order)
{
  for (guint i = 0; i < order->len && !self->clashes; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op != TINY_OP_SINK && tiny_node_map_get (&self->nodes, node) == NULL)
      tiny_node_map_set (&self->nodes, node, remake_one (self, node));
  }
}

TinyNode *
remake_node (Remake *self, TinyNode *root)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (self->pool->graph, &root, 1);
  remake_nodes (self, order);
  return tiny_node_map_get (&self->nodes, root);
}
