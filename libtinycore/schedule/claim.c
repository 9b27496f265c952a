/* SPDX-License-Identifier: MIT
 *
 * claim.c: what a unit of the device computes instead of kernels.
 *
 * Fusion would take the operands of a contraction apart and run on behind it until nobody recognises
 * it. So that what a plugin has a unit for stays whole, the graph is cut around it first, by CONTIGUOUS: above
 * each operand, and above the result with as much of its epilogue as the unit takes.
 *
 * All operands of sums of products are cut off, and the graph is made canonical. Each candidate is then
 * lowered alone, recognised and offered, with its whole epilogue first, then with less. A cut that no
 * accepted operation wants is not made: the second time only the others are. What is stored between
 * kernels is then decided around the accepted ones, whose kernels are recognised once again as they are. */
#include "schedule/claim.h"

#include "schedule/groups.h"
#include "schedule/recognise.h"
#include "schedule/work.h"

enum {
  MAX_REGION = 48,  /* nodes of an epilogue */
  MAX_INSIDE = 200, /* of all that an operation could be */
  SOFTMAX_REDUCES = 2,
  ATTENTION_REDUCES = 4,
};

typedef struct {
  Plan *plan;
  Plan scratch; /* a layout in which every cut is stored */
  GPtrArray *order;
  GPtrArray **users; /* of each node by id, or NULL */
  guint n_users;     /* ids that it has */
  TinyNodeMap is_root;
  GPtrArray *leaves;   /* by buffer of the scratch plan; NULL for inputs */
  GPtrArray *accepted; /* the nodes that operations give */
  gboolean *wanted;    /* by number of the cut: an accepted operation reads it */
  guint n_cuts;
  GPtrArray *attentions; /* AttentionGroup: what is accepted as such */
} Claims;

gboolean
schedule_has_claims (Plan *plan)
{
  const TinyScheduleOptions *options = &plan->options;
  if (options->claim == NULL)
    return FALSE;
  for (guint i = 0; i < plan->n_inputs; i++)
    if (options->claim (schedule_get_buffer (plan, i)->device, NULL, 0, options->data))
      return TRUE;
  return options->claim (plan->only_device, NULL, 0, options->data);
}

/* ---- operands ---- */
static gboolean
is_stored (const TinyNode *node)
{
  return node->op == TINY_OP_CONTIGUOUS || node->op == TINY_OP_COPY
         || node->op == TINY_OP_KERNEL || node->op == TINY_OP_PARAM;
}

static gboolean
computes (const TinyNode *node)
{
  return tiny_op_is_elementwise (node->op) || node->op == TINY_OP_REDUCE
         || node->op == TINY_OP_GATHER;
}

/* Adds the operands of @reduce that are to be stored if a unit computes it. */
static void
find_operands (TinyNode *reduce, GHashTable *out)
{
  TinyNode *product = groups_strip (reduce->sources[0]);
  if (reduce->arg != TINY_OP_ADD || product->op != TINY_OP_MUL)
    return;
  TinyNode *a = groups_strip (product->sources[0]), *b = groups_strip (product->sources[1]);
  if (a->op == TINY_OP_CONST || b->op == TINY_OP_CONST)
    return;
  if (computes (a))
    g_hash_table_add (out, a);
  if (computes (b))
    g_hash_table_add (out, b);
}

/* ---- candidates, alone ---- */
static gboolean
is_user_inside (const Claims *self, const TinyNode *node, GHashTable *region)
{
  const GPtrArray *users = self->users[node->id];
  for (guint i = 0; users != NULL && i < users->len; i++)
    if (!g_hash_table_contains (region, users->pdata[i]))
      return FALSE;
  return tiny_node_map_get (&self->is_root, node) == NULL;
}

/* Whether an epilogue may read @node beside the result: something stored, or a number. */
static gboolean
is_beside (const TinyNode *node)
{
  while (tiny_op_is_movement (node->op) || node->op == TINY_OP_CAST)
    node = node->sources[0];
  return node->op == TINY_OP_CONST || is_stored (node);
}

static gboolean
can_join_region (GHashTable *region, const TinyNode *node)
{
  if (!tiny_op_is_elementwise (node->op) && node->op != TINY_OP_RESHAPE
      && node->op != TINY_OP_PERMUTE)
    return FALSE;
  for (guint i = 0; i < node->n_sources; i++)
    if (!g_hash_table_contains (region, node->sources[i]) && !is_beside (node->sources[i]))
      return FALSE;
  return TRUE;
}

/* What can be computed with each result of @reduce, in an order in which sources come first. */
static GPtrArray *
find_region (const Claims *self, TinyNode *reduce)
{
  GPtrArray *nodes = g_ptr_array_new ();
  g_autoptr (GHashTable) region = g_hash_table_new (NULL, NULL);
  g_ptr_array_add (nodes, reduce);
  g_hash_table_add (region, reduce);
  for (guint n = 0; n != nodes->len;) { /* until nothing joins any more */
    n = nodes->len;
    for (guint i = 0; i < nodes->len; i++) {
      const GPtrArray *users = self->users[((TinyNode *) nodes->pdata[i])->id];
      for (guint u = 0; users != NULL && u < users->len && nodes->len < MAX_REGION; u++)
        if (!g_hash_table_contains (region, users->pdata[u])
            && can_join_region (region, users->pdata[u])) {
          g_hash_table_add (region, users->pdata[u]);
          g_ptr_array_add (nodes, users->pdata[u]);
        }
    }
  }
  return nodes;
}

/* Whether all that is made of the result before @top is used for @top alone. */
static gboolean
is_whole (const Claims *self, GPtrArray *region, TinyNode *top)
{
  g_autoptr (GHashTable) below = g_hash_table_new (NULL, NULL);
  g_hash_table_add (below, top);
  for (guint i = region->len; i-- > 0;) {
    TinyNode *node = region->pdata[i];
    if (!g_hash_table_contains (below, node))
      continue;
    for (guint s = 0; s < node->n_sources; s++)
      if (g_ptr_array_find (region, node->sources[s], NULL))
        g_hash_table_add (below, node->sources[s]);
  }
  for (guint i = 0; i < region->len; i++)
    if (region->pdata[i] != top && g_hash_table_contains (below, region->pdata[i])
        && !is_user_inside (self, region->pdata[i], below))
      return FALSE;
  return g_hash_table_contains (below, region->pdata[0]);
}

/* Whether @top is no more than what is stored, a reduction, or so many, and what is around it. */
static gboolean
is_small (TinyNode *top, guint most_reduces)
{
  g_autoptr (GPtrArray) inside = g_ptr_array_new ();
  guint n_reduces = 0;
  g_ptr_array_add (inside, top);
  for (guint i = 0; i < inside->len; i++) {
    const TinyNode *node = inside->pdata[i];
    n_reduces += node->op == TINY_OP_REDUCE;
    if (n_reduces > most_reduces || inside->len > MAX_INSIDE)
      return FALSE;
    for (guint s = 0; s < node->n_sources && (i == 0 || !is_stored (node)); s++)
      if (!g_ptr_array_find (inside, node->sources[s], NULL))
        g_ptr_array_add (inside, node->sources[s]);
  }
  return TRUE;
}

/* Lowers @top over what is stored, and offers it. */
static gboolean
is_accepted (Claims *self, TinyNode *top, guint most_reduces)
{
  if (!is_small (top, most_reduces))
    return FALSE;
  Plan *scratch = &self->scratch;
  const char *device = schedule_get_device (self->plan, top);
  Stage stage = { .node = top,
                  .device = device != NULL ? device : self->plan->only_device,
                  .keeps_axes = TRUE };
  stage.buffer = schedule_add_buffer (scratch, TINY_SCHEDULE_TEMPORARY, top->dtype,
                                      tiny_shape_get_n_elements (top->shape), stage.device, 0);
  g_ptr_array_add (self->leaves, NULL);
  PlanItem item;
  if (!schedule_lower_stage (scratch, &stage, &item) || !schedule_offer (scratch, &item))
    return FALSE;
  for (guint i = 0; i < item.n_buffers; i++) {
    const TinyNode *leaf = self->leaves->pdata[item.buffers[i]];
    if (leaf != NULL && leaf->op == TINY_OP_CONTIGUOUS && leaf->arg > 0)
      self->wanted[leaf->arg] = TRUE;
  }
  return TRUE;
}

/* A reduction of what is stored, which nobody else reads: what else reads it would read it in the same kernel. */
static gboolean
is_plain_reduction (const Claims *self, const TinyNode *reduce)
{
  TinyNode *x = reduce->sources[0];
  for (;; x = x->sources[0]) {
    const GPtrArray *users = self->users[x->id];
    if (users == NULL || users->len != 1)
      return FALSE;
    if (is_stored (x))
      return TRUE;
    if (!tiny_op_is_movement (x->op) && x->op != TINY_OP_CAST)
      return FALSE;
  }
}

static gboolean
is_candidate (const Claims *self, const TinyNode *node)
{
  if (node->op != TINY_OP_REDUCE || tiny_shape_get_n_elements (node->sources[0]->shape) == 0)
    return FALSE;
  return (node->arg == TINY_OP_ADD && node->sources[0]->op == TINY_OP_MUL)
         || is_plain_reduction (self, node);
}

/* Offers what @reduce gives with as much of what follows as is taken. */
static void
try_candidate (Claims *self, TinyNode *reduce)
{
  g_autoptr (GPtrArray) region = find_region (self, reduce);
  for (guint i = region->len; i-- > 0;) {
    TinyNode *top = region->pdata[i];
    if (tiny_op_is_movement (top->op) || !is_whole (self, region, top)
        || !is_accepted (self, top, 1))
      continue;
    g_ptr_array_add (self->accepted, top);
    return;
  }
}

/* ---- the scratch layout ---- */
static void
store_cuts (Claims *self)
{
  Plan *plan = self->plan, *scratch = &self->scratch;
  schedule_plan_init (scratch, plan->graph, plan->arena, &plan->options);
  scratch->n_inputs = plan->n_inputs;
  scratch->only_device = plan->only_device;
  g_array_append_vals (scratch->buffers, plan->buffers->data, plan->n_inputs);
  for (guint i = 0; i < plan->n_inputs; i++)
    g_ptr_array_add (self->leaves, NULL);
  for (guint i = 0; i < self->order->len; i++) {
    TinyNode *node = self->order->pdata[i];
    if (!is_stored (node) || node->op == TINY_OP_PARAM)
      continue;
    const char *device = schedule_get_device (plan, node);
    Stage *stage = tiny_arena_alloc (plan->arena, sizeof *stage);
    *stage = (Stage){ .node = node, .device = device != NULL ? device : plan->only_device };
    stage->buffer
        = schedule_add_buffer (scratch, TINY_SCHEDULE_TEMPORARY, node->dtype,
                               tiny_shape_get_n_elements (node->shape), stage->device, 0);
    tiny_node_map_set (&scratch->stage_of, node, stage);
    g_ptr_array_add (self->leaves, node);
  }
}

static void
find_users (Claims *self)
{
  self->n_users = tiny_graph_get_n_nodes (self->plan->graph) + 1;
  self->users = g_new0 (GPtrArray *, self->n_users);
  for (guint i = 0; i < self->order->len; i++) {
    TinyNode *node = self->order->pdata[i];
    for (guint s = 0; s < node->n_sources; s++) {
      GPtrArray **users = &self->users[node->sources[s]->id];
      if (*users == NULL)
        *users = g_ptr_array_new ();
      g_ptr_array_add (*users, node);
    }
  }
  for (guint r = 0; r < self->plan->n_roots; r++)
    tiny_node_map_set (&self->is_root, self->plan->roots[r], self);
}

/* The plan's graph with every cut stored, in which what is asked about is lowered. */
static void
begin_offers (Claims *self)
{
  Plan *plan = self->plan;
  self->order = tiny_graph_toposort (plan->graph, plan->roots, plan->n_roots);
  self->leaves = g_ptr_array_new ();
  find_users (self);
  store_cuts (self);
}

static void
end_offers (Claims *self)
{
  for (guint i = 0; i < self->n_users; i++)
    g_clear_pointer (&self->users[i], g_ptr_array_unref);
  g_clear_pointer (&self->users, g_free);
  tiny_node_map_clear (&self->is_root);
  self->is_root = (TinyNodeMap){ 0 };
  g_clear_pointer (&self->order, g_ptr_array_unref);
  g_clear_pointer (&self->leaves, g_ptr_array_unref);
  schedule_plan_clear (&self->scratch);
}

/* Offers all candidates of the plan's graph. */
static void
offer_candidates (Claims *self)
{
  g_auto (TinyNodeMap) claimed = { 0 };
  begin_offers (self);
  schedule_find_claimed (self->order, &claimed);
  for (guint i = 0; i < self->order->len; i++) {
    TinyNode *node = self->order->pdata[i];
    if (tiny_node_map_get (&claimed, node) != NULL)
      continue;
    if (is_candidate (self, node))
      try_candidate (self, node);
    else if (groups_is_softmax (node) && is_accepted (self, node, SOFTMAX_REDUCES))
      g_ptr_array_add (self->accepted, node);
  }
  end_offers (self);
}

/* ---- the pass ---- */

/* The canonical graph of @roots with @cuts, and what is accepted in it. */
static void
cut_and_offer (Claims *self, TinyNode *const *roots, GHashTable *cuts)
{
  g_ptr_array_set_size (self->accepted, 0);
  claim_cut_roots (self->plan, roots, cuts);
  schedule_canonicalize (self->plan);
  claim_share_cuts (self->plan);
  offer_candidates (self);
}

static gboolean
drop_unwanted (gpointer node, gpointer number, gpointer wanted)
{
  const gint i = GPOINTER_TO_INT (number);
  return i != SCHEDULE_CLAIMED && !((const gboolean *) wanted)[i];
}

static void
add_cut (Claims *self, GHashTable *cuts, TinyNode *node)
{
  if (!g_hash_table_contains (cuts, node))
    g_hash_table_insert (cuts, node, GINT_TO_POINTER (++self->n_cuts));
}

/* ---- attention ---- */

/* Whether what is between its sums is used for nothing else, such as its gradient. */
static gboolean
is_alone (const Claims *self, const AttentionGroup *group)
{
  GHashTableIter iter;
  gpointer node;
  g_hash_table_iter_init (&iter, group->inside);
  while (g_hash_table_iter_next (&iter, &node, NULL))
    if (node != group->top && !is_user_inside (self, node, group->inside))
      return FALSE;
  return TRUE;
}

static void
find_attentions (Claims *self, GPtrArray *order)
{
  for (guint i = 0; i < order->len; i++) {
    AttentionGroup *group = groups_find_attention (order->pdata[i]);
    if (group != NULL)
      g_ptr_array_add (self->attentions, group);
  }
  if (self->attentions->len == 0)
    return;
  begin_offers (self);
  for (guint i = self->attentions->len; i-- > 0;)
    if (!is_alone (self, self->attentions->pdata[i]))
      g_ptr_array_remove_index (self->attentions, i);
  end_offers (self);
}

/* Offers what may be attention with its operands stored; keeps of it what is accepted. */
static void
offer_attentions (Claims *self, TinyNode *const *roots)
{
  g_autoptr (GHashTable) cuts = g_hash_table_new (NULL, NULL);
  for (guint i = 0; i < self->attentions->len; i++) /* these have the first numbers */
    add_cut (self, cuts, ((AttentionGroup *) self->attentions->pdata[i])->top);
  for (guint i = 0; i < self->attentions->len; i++) {
    const AttentionGroup *group = self->attentions->pdata[i];
    for (guint k = 0; k < group->operands->len; k++)
      if (computes (group->operands->pdata[k]))
        add_cut (self, cuts, group->operands->pdata[k]);
  }
  self->wanted = g_new0 (gboolean, self->n_cuts + 1);
  g_autofree gboolean *taken = g_new0 (gboolean, self->n_cuts + 1);
  claim_cut_roots (self->plan, roots, cuts);
  schedule_canonicalize (self->plan);
  claim_share_cuts (self->plan);
  begin_offers (self);
  for (guint i = 0; i < self->order->len; i++) {
    const TinyNode *node = self->order->pdata[i];
    if (node->op == TINY_OP_CONTIGUOUS && node->arg > 0 && node->arg <= self->attentions->len)
      taken[node->arg] = is_accepted (self, node->sources[0], ATTENTION_REDUCES);
  }
  end_offers (self);
  for (guint i = self->attentions->len; i-- > 0;) {
    const AttentionGroup *group = self->attentions->pdata[i];
    if (!taken[GPOINTER_TO_INT (g_hash_table_lookup (cuts, group->top))])
      g_ptr_array_remove_index (self->attentions, i);
  }
  g_clear_pointer (&self->wanted, g_free);
  self->n_cuts = 0;
}

/* What is computed and would be an operand, of all that is in no attention. */
static void
find_all_operands (const Claims *self, const GPtrArray *order, GHashTable *out)
{
  g_autoptr (GHashTable) inside = g_hash_table_new (NULL, NULL);
  for (guint i = 0; i < self->attentions->len; i++) {
    const AttentionGroup *group = self->attentions->pdata[i];
    GHashTableIter iter;
    gpointer node;
    g_hash_table_iter_init (&iter, group->inside);
    while (g_hash_table_iter_next (&iter, &node, NULL))
      g_hash_table_add (inside, node);
    for (guint k = 0; k < group->operands->len; k++)
      if (computes (group->operands->pdata[k]))
        g_hash_table_add (out, group->operands->pdata[k]);
  }
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (g_hash_table_contains (inside, node))
      continue;
    if (node->op == TINY_OP_REDUCE)
      find_operands (node, out);
    else if (groups_is_softmax (node) && computes (groups_get_softmax_operand (node)))
      g_hash_table_add (out, groups_get_softmax_operand (node));
  }
}

void
schedule_claim_operations (Plan *plan)
{
  g_autofree TinyNode **roots = g_memdup2 (plan->roots, plan->n_roots * sizeof (TinyNode *));
  g_autoptr (GPtrArray) order = tiny_graph_toposort (plan->graph, roots, plan->n_roots);
  g_autoptr (GHashTable) operands = g_hash_table_new (NULL, NULL);
  g_autoptr (GHashTable) cuts = g_hash_table_new (NULL, NULL);
  g_autoptr (GPtrArray) accepted = g_ptr_array_new ();
  g_autoptr (GPtrArray) attentions
      = g_ptr_array_new_with_free_func ((GDestroyNotify) groups_free_attention);
  Claims self = { .plan = plan, .accepted = accepted, .attentions = attentions };
  find_attentions (&self, order);
  if (attentions->len > 0)
    offer_attentions (&self, roots);
  find_all_operands (&self, order, operands);
  for (guint i = 0; i < order->len; i++) /* in an order that is the same each time */
    if (g_hash_table_contains (operands, order->pdata[i]))
      add_cut (&self, cuts, order->pdata[i]);
  g_autofree gboolean *wanted = self.wanted = g_new0 (gboolean, self.n_cuts + 1);
  for (guint i = 0; i < attentions->len; i++) {
    const AttentionGroup *group = attentions->pdata[i];
    for (guint k = 0; k < group->operands->len; k++)
      wanted[GPOINTER_TO_INT (g_hash_table_lookup (cuts, group->operands->pdata[k]))] = TRUE;
  }
  for (guint i = 0; i < attentions->len; i++)
    g_hash_table_insert (cuts, ((AttentionGroup *) attentions->pdata[i])->top,
                         GINT_TO_POINTER (SCHEDULE_CLAIMED));
  cut_and_offer (&self, roots, cuts);
  if (g_hash_table_foreach_remove (cuts, drop_unwanted, wanted) > 0)
    cut_and_offer (&self, roots, cuts);
  g_hash_table_remove_all (cuts);
  for (guint i = 0; i < accepted->len; i++)
    g_hash_table_insert (cuts, accepted->pdata[i], GINT_TO_POINTER (SCHEDULE_CLAIMED));
  g_autofree TinyNode **canonical
      = g_memdup2 (plan->roots, plan->n_roots * sizeof (TinyNode *));
  claim_cut_roots (plan, canonical, cuts);
  claim_lift_roots (plan);
}

void
schedule_find_claimed (const GPtrArray *order, TinyNodeMap *out)
{
  for (guint i = order->len; i-- > 0;) {
    TinyNode *node = order->pdata[i];
    gboolean is_inside = tiny_node_map_get (out, node) != NULL;
    if ((is_inside && is_stored (node)) || (!is_inside && !schedule_is_claimed (node)))
      continue;
    for (guint s = 0; s < node->n_sources; s++)
      if (!is_stored (node->sources[s]))
        tiny_node_map_set (out, node->sources[s], node);
  }
}

const TinyOperation *
schedule_offer (Plan *plan, const PlanItem *item)
{
  TinyOperation operation;
  const TinyScheduleOptions *options = &plan->options;
  if (!schedule_recognise (plan->graph, &plan->affines, item->kernel, &operation))
    return NULL;
  /* What a kernel of several reductions computes again and again it would compute once. */
  PlanItem shared = *item;
  if (operation.kind >= TINY_OPERATION_SOFTMAX)
    schedule_share_values (plan, &shared);
  KernelWork work = schedule_measure_kernel (plan, &shared);
  double lanes = schedule_get_machine (plan, item->device).lanes;
  double ns = schedule_get_time (&work) / (lanes * schedule_weights.steps_per_ns);
  if (!options->claim (item->device, &operation, ns, options->data))
    return NULL;
  return tiny_arena_copy (plan->arena, &operation, sizeof operation);
}

void
schedule_mark_claims (Plan *plan)
{
  for (guint i = 0; i < plan->items->len; i++) {
    PlanItem *item = &g_array_index (plan->items, PlanItem, i);
    if (item->kind == TINY_SCHEDULE_KERNEL && item->stage != NULL
        && schedule_is_claimed (item->stage->node))
      item->operation = schedule_offer (plan, item);
  }
}
