/* SPDX-License-Identifier: MIT
 *
 * share.c: what several loops of a kernel compute alike is computed once, into memory of the kernel.
 *
 * A row's exponentials are summed by one loop and divided by another. Renaming the counter of the
 * one makes its expression that of the other: the same node. Where computing it twice costs more
 * than a store and two loads, a loop before both fills a LOCAL, from which both read. */
#include "schedule/remake.h"
#include "schedule/weights.h"
#include "schedule/work.h"

enum { MAX_LOOPS = 64 };

typedef struct {
  Plan *plan;
  TinyNode *kernel;
  GPtrArray *order;
  TinyNode *outer[MAX_LOOPS]; /* the outermost loops of all stores, those around the LOCAL */
  guint n_outer;
  TinyNode *one, *other; /* the same but for the counter … */
  TinyNode *loops[2];    /* … which is this in the one and that in the other */
  double saved;
} Share;

/* What one value of @node costs in operations that @loop repeats. */
static double
count_operations (Share *self, TinyNode *node, TinyNode *loop)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (self->plan->graph, &node, 1);
  double operations = 0;
  for (guint i = 0; i < order->len; i++) {
    TinyNode *at = order->pdata[i];
    if (!tiny_node_depends_on (self->plan->graph, at, loop))
      continue;
    if (at->op == TINY_OP_REDUCE) {
      guint n;
      TinyNode *const *ranges = tiny_node_get_ranges (self->plan->graph, at->sources[0], &n);
      double steps = 1;
      for (guint r = 0; r < n; r++)
        if (!tiny_node_depends_on (self->plan->graph, at, ranges[r]))
          steps *= (double) tiny_range_get_extent (ranges[r]);
      operations += steps;
    } else if (tiny_op_is_elementwise (at->op) && at->dtype != TINY_DTYPE_INDEX) {
      operations += schedule_get_op_cost (at->op);
    } else if (at->op == TINY_OP_LOAD) {
      operations += schedule_weights.access;
    }
  }
  return operations;
}

/* Whether @node changes with @loop and the loops outside of it only. */
static gboolean
is_of_row (Share *self, TinyNode *node, TinyNode *loop)
{
  guint n;
  TinyNode *const *ranges = tiny_node_get_ranges (self->plan->graph, node, &n);
  if (n != self->n_outer + 1)
    return FALSE;
  for (guint i = 0; i < n; i++) {
    gboolean known = ranges[i] == loop;
    for (guint j = 0; j < self->n_outer && !known; j++)
      known = ranges[i] == self->outer[j];
    if (!known)
      return FALSE;
  }
  return TRUE;
}

static gboolean
is_candidate (Share *self, TinyNode *node, TinyNode *loop)
{
  return tiny_op_is_elementwise (node->op) && node->dtype != TINY_DTYPE_INDEX
         && node->dtype != TINY_DTYPE_BOOL && is_of_row (self, node, loop);
}

/* Looks for what @a and @b both go through. */
static void
compare_loops (Share *self, GHashTable *nodes, TinyNode *a, TinyNode *b)
{
  g_auto (Remake) rename = { NULL };
  remake_init (&rename, self->plan);
  g_hash_table_insert (rename.loops, a, (gpointer) affine_range (&self->plan->affines, b));
  for (guint i = 0; i < self->order->len; i++) {
    TinyNode *node = self->order->pdata[i];
    if (!is_candidate (self, node, a))
      continue;
    TinyNode *other = remake_node (&rename, node);
    if (!g_hash_table_contains (nodes, other))
      continue;
    double saved = count_operations (self, node, a) - 3 * schedule_weights.local;
    if (saved > self->saved) {
      self->saved = saved;
      self->one = node;
      self->other = other;
      self->loops[0] = a;
      self->loops[1] = b;
    }
  }
}

/* The loops that all stores have, outermost first; of a kernel with one, those without its last. */
static void
find_outer (Share *self)
{
  TinyNode *loops[MAX_LOOPS];
  self->n_outer = schedule_list_loops (self->plan, self->kernel->sources[0], self->outer);
  for (guint i = 1; i < self->kernel->n_sources; i++) {
    guint n = schedule_list_loops (self->plan, self->kernel->sources[i], loops), same = 0;
    while (same < MIN (n, self->n_outer) && loops[same] == self->outer[same])
      same++;
    self->n_outer = same;
  }
}

static gint64
count_local_bytes (Share *self)
{
  gint64 n_bytes = 0;
  for (guint i = 0; i < self->order->len; i++) {
    TinyNode *node = self->order->pdata[i];
    if (node->op == TINY_OP_LOCAL)
      n_bytes += node->ints->v[0] * (gint64) tiny_dtype_get_n_bytes (node->dtype);
  }
  return n_bytes;
}

/* The value worth sharing most with @n_outer loops around; FALSE: there is none. */
static gboolean
find_shared (Share *self, guint n_outer)
{
  g_autoptr (GHashTable) nodes = g_hash_table_new (NULL, NULL);
  g_autoptr (GPtrArray) ranges = g_ptr_array_new ();
  gint64 most = schedule_weights.local_bytes - count_local_bytes (self);
  self->n_outer = n_outer;
  for (guint i = 0; i < self->order->len; i++) {
    TinyNode *node = self->order->pdata[i];
    gboolean is_outer = FALSE;
    g_hash_table_add (nodes, node);
    for (guint j = 0; j < n_outer; j++)
      is_outer = is_outer || node == self->outer[j];
    if (node->op == TINY_OP_RANGE && !is_outer
        && tiny_range_get_extent (node) * (gint64) sizeof (double) <= most)
      g_ptr_array_add (ranges, node);
  }
  for (guint i = 0; i < ranges->len; i++)
    for (guint j = 0; j < ranges->len; j++)
      if (i != j && tiny_range_get_kind (ranges->pdata[i]) == TINY_RANGE_REDUCE
          && tiny_range_get_extent (ranges->pdata[i])
                 == tiny_range_get_extent (ranges->pdata[j]))
        compare_loops (self, nodes, ranges->pdata[i], ranges->pdata[j]);
  return self->one != NULL;
}

static TinyNode *
load_local (Share *self, TinyNode *local, TinyNode *loop)
{
  TinyNode *sources[] = { local, loop };
  return tiny_node_new (self->plan->graph, TINY_OP_LOAD, local->dtype, 1, 2, sources, 0, NULL,
                        NULL);
}

/* After all of @kernel's stores that fill what @store reads. */
static gint
find_place (TinyGraph *graph, TinyNode *kernel, TinyNode *store)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &store, 1);
  for (guint i = kernel->n_sources; i-- > 0;) {
    TinyNode *memory = kernel->sources[i]->sources[0];
    if (memory->op == TINY_OP_LOCAL && g_ptr_array_find (order, memory, NULL))
      return (gint) i + 1;
  }
  return 0;
}

/* Fills a LOCAL with the value first; it is read in all places. */
static TinyNode *
share_value (Share *self)
{
  TinyGraph *graph = self->plan->graph;
  guint n_numbers = 0, n_locals = 0;
  for (guint i = 0; i < self->order->len; i++) {
    TinyNode *node = self->order->pdata[i];
    if (node->op == TINY_OP_RANGE)
      n_numbers = MAX (n_numbers, tiny_range_get_number (node) + 1);
    n_locals += node->op == TINY_OP_LOCAL;
  }
  gint64 extent = tiny_range_get_extent (self->loops[0]);
  TinyNode *loop = tiny_node_range_const (graph, n_numbers, TINY_RANGE_LOOP, extent);
  TinyNode *local
      = tiny_node_new (graph, TINY_OP_LOCAL, self->one->dtype, 1, self->n_outer, self->outer,
                       n_locals, tiny_graph_ints (graph, &extent, 1), NULL);
  g_auto (Remake) rename = { NULL };
  remake_init (&rename, self->plan);
  g_hash_table_insert (rename.loops, self->loops[0],
                       (gpointer) affine_range (&self->plan->affines, loop));
  TinyNode *fill[] = { local, loop, remake_node (&rename, self->one) };
  TinyNode *from[] = { self->one, self->other };
  TinyNode *to[]
      = { load_local (self, local, self->loops[0]), load_local (self, local, self->loops[1]) };
  TinyNode *kernel = tiny_graph_substitute (graph, self->kernel, from, to, 2);
  TinyNode *store
      = tiny_node_new (graph, TINY_OP_STORE, TINY_DTYPE_VOID, 1, 3, fill, 0, NULL, NULL);
  g_autoptr (GPtrArray) stores = g_ptr_array_new ();
  for (guint i = 0; i < kernel->n_sources; i++)
    g_ptr_array_add (stores, kernel->sources[i]);
  g_ptr_array_insert (stores, find_place (graph, kernel, store), store);
  return tiny_node_sink (graph, stores->len, (TinyNode *const *) stores->pdata, kernel->text);
}

/* @kernel with one value more that is computed once, or NULL. */
static TinyNode *
share_once (Plan *plan, TinyNode *kernel)
{
  Share self = { .plan = plan, .kernel = kernel };
  g_autoptr (GPtrArray) order = tiny_graph_toposort (plan->graph, &kernel, 1);
  guint n_reduces = 0;
  for (guint i = 0; i < order->len; i++)
    n_reduces += ((TinyNode *) order->pdata[i])->op == TINY_OP_REDUCE;
  if (n_reduces == 0)
    return NULL;
  self.order = order;
  find_outer (&self);
  guint n_outer = self.n_outer;
  gboolean found
      = find_shared (&self, n_outer)
        || (kernel->n_sources == 1 && n_outer > 0 && find_shared (&self, n_outer - 1));
  return found ? share_value (&self) : NULL;
}

void
schedule_share_values (Plan *plan, PlanItem *item)
{
  TinyNode *kernel = item->kernel;
  while ((kernel = share_once (plan, kernel)) != NULL)
    item->kernel = kernel;
}
