/* SPDX-License-Identifier: MIT
 *
 * merge-axes.c: two neighbouring output axes become one.
 *
 * MERGE(axis, axis + 1) replaces the ranges y and x by one range p = y * extent of x + x. All
 * addresses must move along y as along that many steps of x: then each is what it was with x = p and
 * y = 0, and vectors along p go on from the end of a row to the next one. Everything else, which is
 * gates, sees y = p / extent and x = p % extent. */
#include "optimise.h"

#include "rewrite/tiny-bounds.h"
#include "rewrite/tiny-simplify.h"

static gboolean
is_access (const TinyNode *node)
{
  return node->op == TINY_OP_LOAD || node->op == TINY_OP_STORE;
}

const char *
tiny_axes_object_to_merge (TinyAxes *self, TinyOpt opt)
{
  TinyGraph *graph = self->cg->graph;
  if (opt.amount != (gint64) opt.axis + 1 || opt.amount >= self->n_outputs)
    return "it is not followed by that output axis";
  for (guint i = 0; i < self->cg->applied->len; i++)
    if (g_array_index (self->cg->applied, TinyOpt, i).kind != TINY_OPT_MERGE)
      return "something else was applied before";
  TinyNode *outer = tiny_axes_get (self, opt.axis)->origin;
  TinyNode *inner = tiny_axes_get (self, opt.axis + 1)->origin;
  if (!tiny_axes_all_stores_depend_on (self, outer)
      || !tiny_axes_all_stores_depend_on (self, inner))
    return "a store does not have the axis";
  if (tiny_range_get_extent (outer) > G_MAXINT32 / tiny_range_get_extent (inner))
    return "the axis would be too long";
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &self->root, 1);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    gint64 x, y;
    if (node->op == TINY_OP_LOCAL)
      return "there is memory inside the axis";
    if (is_access (node)
        && (!tiny_index_stride (graph, node->sources[1], inner, &x)
            || !tiny_index_stride (graph, node->sources[1], outer, &y)
            || y != x * tiny_range_get_extent (inner)))
      return "an address does not go on from the end of a row to the next";
  }
  return NULL;
}

void
tiny_axes_merge (TinyAxes *self, guint axis)
{
  TinyGraph *graph = self->cg->graph;
  g_auto (TinyNodeMap) map = { 0 };
  TinyNode *outer = tiny_axes_get (self, axis)->origin;
  TinyNode *inner = tiny_axes_get (self, axis + 1)->origin;
  gint64 extent = tiny_range_get_extent (inner);
  TinyNode *n = tiny_node_const_index (graph, extent);
  TinyNode *both = tiny_node_range_const (graph, tiny_range_get_number (outer), TINY_RANGE_LOOP,
                                          tiny_range_get_extent (outer) * extent);
  TinyNode *from[] = { outer, inner }, *flat[] = { tiny_node_const_index (graph, 0), both };
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &self->root, 1);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i], *made;
    g_autofree TinyNode **sources = g_new (TinyNode *, node->n_sources + 1);
    for (guint s = 0; s < node->n_sources; s++)
      sources[s] = tiny_node_map_get (&map, node->sources[s]);
    if (is_access (node))
      sources[1] = tiny_codegen_replace (graph, node->sources[1], from, flat, 2);
    made = node == outer   ? tiny_fold_binary (graph, TINY_OP_FLOORDIV, both, n)
           : node == inner ? tiny_fold_binary (graph, TINY_OP_FLOORMOD, both, n)
                           : tiny_fold_node (graph, node, 1, sources);
    tiny_node_map_set (&map, node, made);
  }
  tiny_axes_set_root (self, tiny_simplify (graph, tiny_node_map_get (&map, self->root)));
}
