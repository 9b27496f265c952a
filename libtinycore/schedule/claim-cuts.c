/* SPDX-License-Identifier: MIT
 *
 * claim-cuts.c: cuts in a graph, which keep together what a unit computes in one: CONTIGUOUS, with a number. */
#include "schedule/claim.h"

static TinyNode *
make_cut (TinyGraph *graph, TinyNode *x, gint64 number)
{
  return tiny_node_new (graph, TINY_OP_CONTIGUOUS, x->dtype, 1, 1, &x, number, NULL, NULL);
}

void
claim_cut_roots (Plan *plan, TinyNode *const *roots, GHashTable *cuts)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (plan->graph, roots, plan->n_roots);
  g_autoptr (GPtrArray) list = g_ptr_array_new ();
  g_auto (TinyNodeMap) map = { 0 };
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i], *result = node;
    gpointer number;
    g_ptr_array_set_size (list, 0);
    for (guint j = 0; j < node->n_sources; j++)
      g_ptr_array_add (list, tiny_node_map_get (&map, node->sources[j]));
    TinyNode *const *sources = (TinyNode *const *) list->pdata;
    if (node->op == TINY_OP_CONTIGUOUS && sources[0]->op == TINY_OP_CONTIGUOUS)
      result = sources[0];
    else if (node->n_sources > 0)
      result = tiny_node_with_sources (plan->graph, node, sources);
    if (g_hash_table_lookup_extended (cuts, node, NULL, &number)
        && result->op != TINY_OP_CONTIGUOUS)
      result = make_cut (plan->graph, result, GPOINTER_TO_INT (number));
    tiny_node_map_set (&map, node, result);
    schedule_get_device (plan, result);
  }
  for (guint r = 0; r < plan->n_roots; r++)
    plan->roots[r] = tiny_node_map_get (&map, roots[r]);
}

void
claim_share_cuts (Plan *plan)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (plan->graph, plan->roots, plan->n_roots);
  g_autoptr (GHashTable) cuts = g_hash_table_new (NULL, NULL);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_CONTIGUOUS && node->arg > 0)
      g_hash_table_insert (cuts, node->sources[0], GINT_TO_POINTER (node->arg));
  }
  g_autofree TinyNode **roots = g_memdup2 (plan->roots, plan->n_roots * sizeof (TinyNode *));
  claim_cut_roots (plan, roots, cuts);
}

/* Whether the shapes of @x and @y differ by axes of extent 1 alone. */
static gboolean
has_same_axes (const TinyNode *x, const TinyNode *y)
{
  guint i = 0, j = 0;
  while (i < x->shape->n || j < y->shape->n) {
    if (i < x->shape->n && x->shape->v[i] == 1)
      i++;
    else if (j < y->shape->n && y->shape->v[j] == 1)
      j++;
    else if (i == x->shape->n || j == y->shape->n || x->shape->v[i++] != y->shape->v[j++])
      return FALSE;
  }
  return TRUE;
}

/* How many nodes and roots read each node, by id. */
static guint *
count_users (Plan *plan)
{
  guint *n = g_new0 (guint, tiny_graph_get_n_nodes (plan->graph) + 1);
  g_autoptr (GPtrArray) order = tiny_graph_toposort (plan->graph, plan->roots, plan->n_roots);
  for (guint i = 0; i < order->len; i++) {
    const TinyNode *node = order->pdata[i];
    for (guint s = 0; s < node->n_sources; s++)
      n[node->sources[s]->id]++;
  }
  for (guint r = 0; r < plan->n_roots; r++)
    n[plan->roots[r]->id]++;
  return n;
}

void
claim_lift_roots (Plan *plan)
{
  g_autofree guint *n_users = count_users (plan);
  for (guint r = 0; r < plan->n_roots; r++) {
    TinyNode *root = plan->roots[r], *x = root;
    while (n_users[x->id] == 1
           && (x->op == TINY_OP_RESHAPE
               || (x->op == TINY_OP_CONTIGUOUS && !schedule_is_claimed (x))))
      x = x->sources[0];
    if (x == root || n_users[x->id] != 1 || !schedule_is_claimed (x)
        || !has_same_axes (x, root))
      continue;
    x = tiny_node_reshape (plan->graph, x->sources[0], root->shape->v, root->shape->n);
    plan->roots[r] = make_cut (plan->graph, x, SCHEDULE_CLAIMED);
    schedule_get_device (plan, plan->roots[r]);
  }
}
