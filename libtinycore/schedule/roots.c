/* SPDX-License-Identifier: MIT
 *
 * roots.c: a result that others read as well is stored once, as the result.
 *
 * A root is often a reduction seen in another order of axes: the gradient of a transposed operand. Its memory is in the
 * root's order, and other values read what is below that movement. Both would be stored. Here the others read the root
 * instead, through the movement undone, so that the reduction is computed where the result goes. */
#include "schedule/plan.h"

typedef struct {
  Plan *plan;
  GPtrArray *order;
  TinyNodeMap root_of; /* of a node below a root's movement: the root, a CONTIGUOUS */
  TinyNodeMap roots;   /* what such roots become */
} Roots;

/* Facts of a node, by its place in the order. */
typedef struct {
  guint n_users;
  gboolean reduces; /* a REDUCE is in its computation */
} Facts;

static gboolean
keeps_elements (const TinyNode *node)
{
  return node->op == TINY_OP_RESHAPE || node->op == TINY_OP_PERMUTE || node->op == TINY_OP_FLIP;
}

/* The value below the movement of @root that others read as well, or NULL. */
static TinyNode *
find_value (const Facts *facts, TinyNode *root)
{
  TinyNode *value = root->op == TINY_OP_CONTIGUOUS ? root->sources[0] : root;
  gboolean is_read = facts[root->place].n_users > 0;
  for (; keeps_elements (value); value = value->sources[0])
    is_read = is_read || facts[value->place].n_users > 1;
  is_read = is_read || facts[value->place].n_users > 1;
  return value != root && is_read ? value : NULL;
}

static void
find_values (Roots *self)
{
  g_autofree Facts *facts = g_new0 (Facts, self->order->len + 1);
  for (guint i = 0; i < self->order->len; i++) {
    TinyNode *node = self->order->pdata[i];
    const gboolean computes = node->op == TINY_OP_REDUCE || tiny_op_is_elementwise (node->op)
                              || tiny_op_is_movement (node->op);
    gboolean reduces = node->op == TINY_OP_REDUCE;
    for (guint s = 0; s < node->n_sources; s++) {
      Facts *source = &facts[node->sources[s]->place];
      source->n_users++;
      reduces = reduces || (computes && source->reduces);
    }
    facts[i].reduces = reduces;
  }
  for (guint r = 0; r < self->plan->n_roots; r++) {
    TinyNode *root = self->plan->roots[r], *value = find_value (facts, root);
    if (value != NULL && facts[value->place].reduces
        && tiny_node_map_get (&self->root_of, value) == NULL)
      tiny_node_map_set (&self->root_of, value, root);
  }
}

/* @x moved back from the shape of @top to that of what is below its movement. */
static TinyNode *
undo (TinyGraph *graph, TinyNode *x, const TinyNode *top)
{
  gint64 axes[SCHEDULE_MAX_RANK];
  for (; keeps_elements (top); top = top->sources[0]) {
    const TinyInts *ints = top->ints, *to = top->sources[0]->shape;
    for (guint i = 0; top->op == TINY_OP_PERMUTE && i < ints->n; i++)
      axes[ints->v[i]] = i;
    x = top->op == TINY_OP_RESHAPE   ? tiny_node_reshape (graph, x, to->v, to->n)
        : top->op == TINY_OP_PERMUTE ? tiny_node_permute (graph, x, axes, ints->n)
                                     : tiny_node_flip (graph, x, ints->v, ints->n);
  }
  return x;
}

/* @root, whose value has become @value. */
static TinyNode *
remake_root (TinyGraph *graph, TinyNode *root, TinyNode *value)
{
  g_autoptr (GPtrArray) chain = g_ptr_array_new ();
  for (TinyNode *at = root; at == root || keeps_elements (at); at = at->sources[0])
    g_ptr_array_add (chain, at);
  for (guint i = chain->len; i-- > 0;)
    value = tiny_node_with_sources (graph, chain->pdata[i], &value);
  return value;
}

static TinyNode *
remake (Roots *self, TinyNode *node, TinyNode *const *sources)
{
  TinyGraph *graph = self->plan->graph;
  TinyNode *made = tiny_node_with_sources (graph, node, sources);
  TinyNode *root = tiny_node_map_get (&self->root_of, node);
  schedule_get_device (self->plan, made);
  if (root == NULL)
    return made;
  TinyNode *stored = remake_root (graph, root, made);
  tiny_node_map_set (&self->roots, root, stored);
  made = undo (graph, stored, root->sources[0]);
  schedule_get_device (self->plan, made);
  return made;
}

void
schedule_share_roots (Plan *plan)
{
  GPtrArray *order = schedule_list_graph (plan);
  g_autoptr (GPtrArray) sources = g_ptr_array_new ();
  g_autofree guint *places = tiny_graph_list_places (order, plan->roots, plan->n_roots);
  /* Each node as those that read it see it from here on. */
  g_autofree TinyNode **made = g_new (TinyNode *, order->len + 1);
  Roots self = { .plan = plan, .order = order };
  const guint *at = places;
  find_values (&self);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    TinyNode *stored = tiny_node_map_get (&self.roots, node);
    g_ptr_array_set_size (sources, 0);
    for (guint s = 0; s < node->n_sources; s++)
      g_ptr_array_add (sources, made[*at++]);
    made[i]
        = stored != NULL ? stored : remake (&self, node, (TinyNode *const *) sources->pdata);
  }
  for (guint r = 0; r < plan->n_roots; r++)
    plan->roots[r] = made[*at++];
  tiny_node_map_clear (&self.root_of);
  tiny_node_map_clear (&self.roots);
}
