/* SPDX-License-Identifier: MIT
 *
 * layout.c: in which order of its axes a stored value lies in memory.
 *
 * The order that its producer makes by itself: a REDUCE makes the order of its own axes, an
 * elementwise operation that of what it reads, and a PERMUTE between does not change it. A
 * convolution computed channels-last and then seen channels-first is stored channels-last. Roots
 * and what is copied between devices are row-major; a contraction that would have to gather its
 * operands to be so, or whose vectors would be half empty, makes a detour over a temporary. */
#include "base/tiny-stats.h"
#include "schedule/plan.h"
#include "schedule/views.h"

static guint64 find_repeated (Plan *plan, TinyNode *node);

static guint64
find_repeated_anew (Plan *plan, TinyNode *node)
{
  guint64 repeated = 0;
  if (tiny_op_is_elementwise (node->op)) {
    for (guint i = 0; i < node->n_sources; i++)
      if (node->sources[i]->shape->n > 0)
        repeated |= find_repeated (plan, node->sources[i]);
  } else if (node->op == TINY_OP_PERMUTE) {
    const guint64 below = find_repeated (plan, node->sources[0]);
    for (guint i = 0; i < node->shape->n; i++)
      repeated |= (below >> node->ints->v[i] & 1) << i;
  } else if (node->op == TINY_OP_EXPAND) {
    TinyNode *source = node->sources[0], *value = source;
    while (tiny_op_is_movement (value->op))
      value = value->sources[0];
    gboolean computed = tiny_node_map_get (&plan->recomputed, value) != NULL;
    for (guint i = 0; i < node->shape->n && computed; i++)
      repeated |= (guint64) (node->shape->v[i] != source->shape->v[i]) << i;
  }
  return repeated;
}

/* The axes of @node, as bits, along which what is not stored (recompute.c) is repeated. Each node is looked at once: a
 * value that is used twice by each of many in a row has as many ways to it as two to the power of their number. */
static guint64
find_repeated (Plan *plan, TinyNode *node)
{
  if (tiny_node_map_get (&plan->stage_of, node) != NULL)
    return 0;
  gpointer known = tiny_node_map_get (&plan->repeated, node);
  if (known != NULL)
    return GPOINTER_TO_SIZE (known) - 1;
  TINY_COUNT (n_looks, 1);
  G_STATIC_ASSERT (SCHEDULE_MAX_RANK <= 32);
  guint64 repeated = find_repeated_anew (plan, node);
  tiny_node_map_set (&plan->repeated, node, GSIZE_TO_POINTER (repeated + 1));
  return repeated;
}

/* The axes that @reduce leaves, in its own order, but those along which rows are repeated last: a
 * row is computed in the loops of the others. */
static void
find_reduce_order (Plan *plan, TinyNode *reduce, guint8 *out)
{
  guint n = reduce->shape->n, used = 0;
  const guint64 repeated
      = schedule_recomputes (plan) ? find_repeated (plan, reduce->sources[0]) : 0;
  for (guint i = 0; i < 2 * n; i++)
    if ((repeated >> (i % n) & 1) == (i >= n))
      out[used++] = (guint8) (i % n);
}

/* Writes the axes of @node, outermost first, in the order they lie in memory or are computed. */
static void
find_order (Plan *plan, Stage *self, TinyNode *node, guint8 *out)
{
  guint n = node->shape->n;
  Stage *stage = tiny_node_map_get (&plan->stage_of, node);
  TinyNode *source = node->n_sources > 0 ? node->sources[0] : NULL;
  guint8 below[SCHEDULE_MAX_RANK];
  for (guint i = 0; i < n; i++)
    out[i] = i;
  if (stage != NULL && stage != self) {
    for (guint i = 0; stage->order != NULL && i < n; i++)
      out[i] = stage->order->v[i];
    return;
  }
  if (tiny_op_is_elementwise (node->op)) {
    for (guint i = 0; i < node->n_sources; i++)
      if (node->sources[i]->shape->n > 0 && node->sources[i]->op != TINY_OP_EXPAND
          && node->sources[i]->op != TINY_OP_IOTA) {
        find_order (plan, self, node->sources[i], out);
        return;
      }
    return;
  }
  switch (node->op) {
  case TINY_OP_PERMUTE:
    find_order (plan, self, source, below);
    for (guint i = 0; i < n; i++)
      for (guint j = 0; j < n; j++)
        if (node->ints->v[j] == below[i])
          out[i] = j;
    return;
  case TINY_OP_RESHAPE: {
    /* Axes that the reshape keeps stay in the order they have below; it must keep all. */
    guint8 kept[SCHEDULE_MAX_RANK];
    guint n_kept = 0, n_real = 0;
    find_order (plan, self, source, below);
    for (guint i = 0; i < source->shape->n; i++)
      for (guint j = 0; j < n; j++)
        if (view_find_axis (source->shape, node->shape, j) == below[i])
          kept[n_kept++] = j;
    for (guint j = 0; j < n; j++)
      n_real += node->shape->v[j] != 1;
    if (n_kept != n_real)
      return;
    for (guint j = 0; j < n; j++)
      out[j] = node->shape->v[j] == 1 ? j : n;
    for (guint j = 0, i = 0; j < n; j++)
      if (out[j] == n)
        out[j] = kept[i++];
    return;
  }
  case TINY_OP_PAD:
  case TINY_OP_SHRINK:
  case TINY_OP_FLIP:
  case TINY_OP_SHEAR:
  case TINY_OP_EXPAND:
  case TINY_OP_CONTIGUOUS:
    find_order (plan, self, source, out);
    return;
  case TINY_OP_REDUCE:
    find_reduce_order (plan, node, out);
    return;
  default:
    return;
  }
}

/* The order of the stage's axes in @out_order, or NULL when that is row-major. */
static const TinyInts *
choose_order (Plan *plan, Stage *stage, TinyNode *node)
{
  guint8 order[SCHEDULE_MAX_RANK];
  gint64 v[SCHEDULE_MAX_RANK];
  gboolean moves = FALSE;
  if (node->op == TINY_OP_CONTIGUOUS) /* someone wants it as it is seen */
    return NULL;
  find_order (plan, stage, node, order);
  for (guint j = 0; j < node->shape->n; j++) {
    v[j] = order[j];
    moves = moves || order[j] != j;
  }
  return moves ? tiny_graph_ints (plan->graph, v, node->shape->n) : NULL;
}

/* What @stage computes goes to memory in its own order first; the stage itself then only puts it
 * in order. Returns the new stage, or NULL where the own order is the stage's. */
Stage *
schedule_detour_stage (Plan *plan, Stage *stage)
{
  TinyNode *root = stage->node;
  TinyNode *value = root->op == TINY_OP_CONTIGUOUS ? root->sources[0] : root;
  if (stage->is_copied || (value != root && tiny_node_map_get (&plan->stage_of, value) != NULL))
    return NULL;
  const TinyInts *order = choose_order (plan, stage, value);
  if (order == NULL)
    return NULL;
  Stage *detour = tiny_arena_copy (plan->arena, stage, sizeof *stage);
  detour->node = value;
  detour->order = order;
  detour->buffer
      = schedule_add_buffer (plan, TINY_SCHEDULE_TEMPORARY, value->dtype,
                             tiny_shape_get_n_elements (value->shape), stage->device, 0);
  tiny_node_map_set (&plan->stage_of, value, detour);
  if (value == root) {
    stage->node = tiny_node_new (plan->graph, TINY_OP_CONTIGUOUS, root->dtype, 1, 1, &value, 0,
                                 NULL, NULL);
    tiny_node_map_set (&plan->stage_of, stage->node, stage);
  }
  return detour;
}

void
schedule_choose_layouts (Plan *plan)
{
  g_autoptr (GHashTable) roots = g_hash_table_new (NULL, NULL);
  for (guint r = 0; r < plan->n_roots; r++)
    g_hash_table_add (roots, plan->roots[r]);
  for (guint i = 0; i < plan->stages->len; i++) {
    Stage *stage = plan->stages->pdata[i], *source;
    if (stage->node->op != TINY_OP_COPY)
      continue;
    stage->is_copied = TRUE;
    source = tiny_node_map_get (&plan->stage_of, stage->node->sources[0]);
    if (source != NULL)
      source->is_copied = TRUE;
  }
  for (guint i = 0; i < plan->stages->len; i++) {
    Stage *stage = plan->stages->pdata[i];
    if (!stage->is_copied && !g_hash_table_contains (roots, stage->node))
      stage->order = choose_order (plan, stage, stage->node);
  }
}
