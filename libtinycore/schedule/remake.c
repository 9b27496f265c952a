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
  *self = (Remake){ .pool = &plan->affines,
                    .loops = g_hash_table_new (NULL, NULL),
                    .nodes = g_hash_table_new (NULL, NULL),
                    .stores = g_hash_table_new (NULL, NULL) };
}

void
remake_clear (Remake *self)
{
  g_clear_pointer (&self->loops, g_hash_table_unref);
  g_clear_pointer (&self->nodes, g_hash_table_unref);
  g_clear_pointer (&self->stores, g_hash_table_unref);
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
    return affine_to_node (self->pool, affine_replace (self->pool, sum, self->loops));
  g_autofree TinyNode **many = node->n_sources > 8 ? g_new (TinyNode *, node->n_sources) : NULL;
  TinyNode *few[8], **sources = many ? many : few;
  for (guint i = 0; i < node->n_sources; i++)
    sources[i] = g_hash_table_lookup (self->nodes, node->sources[i]);
  TinyNode *store
      = node->op == TINY_OP_LOAD ? g_hash_table_lookup (self->stores, node->sources[0]) : NULL;
  if (store != NULL)
    return forward (self, node, store, sources);
  TinyNode *made = tiny_node_with_sources (self->pool->graph, node, sources);
  if (is_position) /* read from memory: an atom of the sums that it is in */
    g_hash_table_insert (self->loops, node, (gpointer) affine_read (self->pool, made));
  return made;
}

TinyNode *
remake_node (Remake *self, TinyNode *root)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (self->pool->graph, &root, 1);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (g_hash_table_lookup (self->nodes, node) == NULL)
      g_hash_table_insert (self->nodes, node, remake_one (self, node));
  }
  return g_hash_table_lookup (self->nodes, root);
}
