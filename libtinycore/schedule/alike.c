/* SPDX-License-Identifier: MIT
 *
 * alike.c: equal reductions of a kernel become the same node.
 *
 * The counter of a reduction may have any name. Here those of REDUCEs at the same height over the
 * tree below get the same, by their place in it, so that two that combine the same values are one,
 * and what several of them go through can be recognised. One never has the name of another inside
 * it, as that is lower. */
#include "schedule/remake.h"

/* What all REDUCEs of @height call their counter at @place if it has this extent. */
typedef struct {
  guint height, place;
  TinyNode *range;
} Counter;

typedef struct {
  Plan *plan;
  TinyNodeMap made, heights;
  GArray *counters; /* Counter */
  guint n_numbers;  /* that ranges have */
} Alike;

/* How many REDUCEs lie one in another in @node, what LOCALs are filled with aside. */
static guint
get_height (Alike *self, const TinyNode *node)
{
  return GPOINTER_TO_UINT (tiny_node_map_get (&self->heights, node));
}

static guint
find_height (Alike *self, const TinyNode *node)
{
  guint height = 0;
  for (guint s = 0; s < node->n_sources; s++)
    height = MAX (height, get_height (self, node->sources[s]));
  return height + (node->op == TINY_OP_REDUCE);
}

static TinyNode *
get_counter (Alike *self, guint height, guint place, gint64 extent)
{
  for (guint i = 0; i < self->counters->len; i++) {
    const Counter *known = &g_array_index (self->counters, Counter, i);
    if (known->height == height && known->place == place
        && tiny_range_get_extent (known->range) == extent)
      return known->range;
  }
  TinyNode *range
      = tiny_node_range_const (self->plan->graph, self->n_numbers++, TINY_RANGE_REDUCE, extent);
  g_array_append_val (self->counters, ((Counter){ height, place, range }));
  return range;
}

/* @reduce, as it was, of @value. */
static TinyNode *
name_counters (Alike *self, TinyNode *reduce, TinyNode *value, guint height)
{
  TinyGraph *graph = self->plan->graph;
  g_auto (Remake) rename = { NULL };
  remake_init (&rename, self->plan);
  g_autofree TinyNode **sources = g_new (TinyNode *, reduce->n_sources);
  for (guint s = 1; s < reduce->n_sources; s++) {
    sources[s] = get_counter (self, height, s, tiny_range_get_extent (reduce->sources[s]));
    tiny_node_map_set (&rename.loops, reduce->sources[s],
                       (gpointer) affine_range (&self->plan->affines, sources[s]));
  }
  sources[0] = remake_node (&rename, value);
  return tiny_node_with_sources (graph, reduce, sources);
}

static TinyNode *
make (Alike *self, TinyNode *node)
{
  g_autofree TinyNode **sources = g_new (TinyNode *, node->n_sources + 1);
  if (node->op == TINY_OP_REDUCE)
    return name_counters (self, node, tiny_node_map_get (&self->made, node->sources[0]),
                          get_height (self, node));
  for (guint s = 0; s < node->n_sources; s++)
    sources[s] = tiny_node_map_get (&self->made, node->sources[s]);
  return node->n_sources ? tiny_node_with_sources (self->plan->graph, node, sources) : node;
}

TinyNode *
schedule_name_alike (Plan *plan, TinyNode *kernel)
{
  if (!schedule_recomputes (plan)) /* no REDUCE stands in the loops of another */
    return kernel;
  Alike self = { .plan = plan };
  g_autoptr (GPtrArray) order = tiny_graph_toposort (plan->graph, &kernel, 1);
  guint n_reduces = 0;
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    tiny_node_map_set (&self.heights, node, GUINT_TO_POINTER (find_height (&self, node)));
    if (node->op == TINY_OP_RANGE)
      self.n_numbers = MAX (self.n_numbers, tiny_range_get_number (node) + 1);
    n_reduces += node->op == TINY_OP_REDUCE;
  }
  self.counters = g_array_new (FALSE, FALSE, sizeof (Counter));
  for (guint i = 0; i < order->len && n_reduces > 1; i++)
    tiny_node_map_set (&self.made, order->pdata[i], make (&self, order->pdata[i]));
  TinyNode *result = n_reduces > 1 ? tiny_node_map_get (&self.made, kernel) : kernel;
  g_array_unref (self.counters);
  tiny_node_map_clear (&self.made);
  tiny_node_map_clear (&self.heights);
  return result;
}
