/* SPDX-License-Identifier: MIT
 *
 * pass-canonical.c: the tensor graph in the form that fusion wants.
 *
 * What only matters before scheduling goes away (DETACH, an ASSIGN that is read, a COPY to where
 * the value is). A root that is a leaf or a view of one is wrapped in CONTIGUOUS: it needs memory
 * of its own, but no one else should read that. */
#include "schedule/plan.h"

static TinyNode *
clean (Plan *plan, TinyNode *node, TinyNode *const *sources)
{
  switch (node->op) {
  case TINY_OP_DETACH:
    return sources[0];
  case TINY_OP_ASSIGN:
    return sources[1];
  case TINY_OP_COPY:
    if (schedule_get_device (plan, sources[0]) == node->text)
      return sources[0];
    break;
  case TINY_OP_CONTIGUOUS:
    if (sources[0]->op == TINY_OP_CONTIGUOUS || sources[0]->op == TINY_OP_PARAM
        || sources[0]->op == TINY_OP_COPY || sources[0]->op == TINY_OP_CONST)
      return sources[0];
    break;
  default:
    break;
  }
  return tiny_node_with_sources (plan->graph, node, sources);
}

void
schedule_canonicalize (Plan *plan)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (plan->graph, plan->roots, plan->n_roots);
  g_auto (TinyNodeMap) map = { NULL, 0 };
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i], *sources[4];
    for (guint j = 0; j < node->n_sources; j++)
      sources[j] = tiny_node_map_get (&map, node->sources[j]);
    tiny_node_map_set (&map, node, clean (plan, node, sources));
  }
  for (guint r = 0; r < plan->n_roots; r++) {
    TinyNode *root = tiny_node_map_get (&map, plan->roots[r]);
    if (root->n_sources == 0 || tiny_op_is_movement (root->op))
      root = tiny_node_new (plan->graph, TINY_OP_CONTIGUOUS, root->dtype, 1, 1, &root, 0, NULL,
                            NULL);
    plan->roots[r] = root;
  }
}
