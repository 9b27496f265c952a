/* SPDX-License-Identifier: MIT
 *
 * share.c: what several loops of a kernel compute alike is computed once, into memory of the kernel.
 *
 * A row's exponentials are summed by one loop and divided by another. Renaming the counter of the
 * one makes its expression that of the other: the same node. Where computing it twice costs more
 * than a store and two loads, a loop before both fills a LOCAL, from which both read. So is a row
 * that the loops of a product of matrices would compute again for each of their results: another
 * such product, or what is made of a row that lies in a LOCAL already. */
#include <string.h>

#include "schedule/remake.h"
#include "schedule/row-blocks.h"
#include "schedule/weights.h"
#include "schedule/work.h"

enum { MAX_LOOPS = 64 };

/* Where a row's value is computed. */
typedef struct {
  TinyNode *node, *loop;
  double evaluations; /* of each element, in one round of the outer loops */
} Place;

/* A value that changes with one loop besides the outer ones, whatever that is called. */
typedef struct {
  TinyNode *key;    /* its expression, with one and the same name for the loop in all of them */
  GArray *places;   /* Place */
  TinyNode *store;  /* that fills a LOCAL with it already, or NULL */
  gboolean repeats; /* a REDUCE would compute it again for each of its results */
} Row;

typedef struct {
  Plan *plan;
  ScheduleMachine machine;
  TinyNode *kernel;
  GPtrArray *order, *all;     /* the nodes of the kernel; and of what is beside it */
  TinyNode *outer[MAX_LOOPS]; /* the outermost loops of all stores, those around the LOCAL */
  guint n_outer, n_numbers, n_locals;
  GHashTable *renames; /* of a loop: the Remake that gives it the common name */
  GHashTable *repeats; /* of a node: the Place's evaluations where they are more than 1 */
  GPtrArray *rows;     /* Row, in the order of the kernel */
  GHashTable *by_key;
} Share;

static void
row_free (gpointer data)
{
  g_array_unref (((Row *) data)->places);
  g_free (data);
}

static void
rename_free (gpointer data)
{
  remake_clear (data);
  g_free (data);
}

/* Ranges and LOCALs are numbered after those of @kernel and of @beside, what is computed in the same loops (or NULL). */
static void
share_init (Share *self, Plan *plan, TinyNode *kernel, TinyNode *beside, GPtrArray *order)
{
  TinyNode *all[] = { kernel, beside };
  *self = (Share){ .plan = plan, .kernel = kernel, .order = order };
  self->renames = g_hash_table_new_full (NULL, NULL, NULL, rename_free);
  self->repeats = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  self->rows = g_ptr_array_new_with_free_func (row_free);
  self->by_key = g_hash_table_new (NULL, NULL);
  self->all = tiny_graph_toposort (plan->graph, all, beside ? 2 : 1);
  for (guint i = 0; i < self->all->len; i++) {
    TinyNode *node = self->all->pdata[i];
    if (node->op == TINY_OP_RANGE)
      self->n_numbers = MAX (self->n_numbers, tiny_range_get_number (node) + 1);
    self->n_locals += node->op == TINY_OP_LOCAL;
  }
}

static void
share_clear (Share *self)
{
  g_ptr_array_unref (self->all);
  g_hash_table_unref (self->renames);
  g_hash_table_unref (self->repeats);
  g_ptr_array_unref (self->rows);
  g_hash_table_unref (self->by_key);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Share, share_clear)

static gboolean
is_outer (Share *self, const TinyNode *range)
{
  for (guint i = 0; i < self->n_outer; i++)
    if (self->outer[i] == range)
      return TRUE;
  return FALSE;
}

/* ---- what it costs ---- */
/* Steps of the loops that @node depends on and @but does not; with @outer, no matter which. */
static double
count_inner_steps (Share *self, TinyNode *node, TinyNode *but)
{
  guint n;
  TinyNode *const *ranges = tiny_node_get_ranges (self->plan->graph, node, &n);
  double steps = 1;
  for (guint i = 0; i < n; i++)
    if (but ? !tiny_node_depends_on (self->plan->graph, but, ranges[i])
            : !is_outer (self, ranges[i]))
      steps *= (double) tiny_range_get_extent (ranges[i]);
  return steps;
}

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
    if (at->op == TINY_OP_REDUCE)
      operations += count_inner_steps (self, at->sources[0], at);
    else if (tiny_op_is_elementwise (at->op) && at->dtype != TINY_DTYPE_INDEX)
      operations += schedule_get_op_cost (at->op);
    else if (at->op == TINY_OP_LOAD)
      operations += at->sources[0]->op == TINY_OP_LOCAL ? schedule_weights.local
                                                        : schedule_weights.access;
  }
  return operations;
}

/* What is saved by computing @row once. */
static double
count_saved (Share *self, const Row *row)
{
  double evaluations = 0;
  const Place *first = &g_array_index (row->places, Place, 0);
  for (guint i = 0; i < row->places->len; i++)
    evaluations += g_array_index (row->places, Place, i).evaluations;
  if (row->places->len == 1 && !row->repeats)
    return 0;
  return (evaluations - 1) * count_operations (self, first->node, first->loop)
         - (evaluations + (row->store == NULL)) * schedule_weights.local;
}

/* ---- rows ---- */
/* The loop that @node changes with besides all of the outer ones; NULL: it is not so. */
static TinyNode *
find_row_loop (Share *self, TinyNode *node)
{
  guint n, n_outer = 0;
  TinyNode *loop = NULL, *const *ranges = tiny_node_get_ranges (self->plan->graph, node, &n);
  gboolean computes = tiny_op_is_elementwise (node->op) || node->op == TINY_OP_REDUCE;
  if (!computes || node->dtype == TINY_DTYPE_INDEX || node->dtype == TINY_DTYPE_BOOL
      || n != self->n_outer + 1)
    return NULL;
  for (guint i = 0; i < n; i++)
    if (is_outer (self, ranges[i]))
      n_outer++;
    else
      loop = ranges[i];
  return n_outer == self->n_outer ? loop : NULL;
}

static TinyNode *
rename_loop (Share *self, TinyNode *node, TinyNode *loop)
{
  Remake *rename = g_hash_table_lookup (self->renames, loop);
  if (rename == NULL) {
    TinyNode *name = tiny_node_range_const (self->plan->graph, self->n_numbers, TINY_RANGE_LOOP,
                                            tiny_range_get_extent (loop));
    rename = g_new (Remake, 1);
    remake_init (rename, self->plan);
    tiny_node_map_set (&rename->loops, loop,
                       (gpointer) affine_range (&self->plan->affines, name));
    g_hash_table_insert (self->renames, loop, rename);
  }
  return remake_node (rename, node);
}

/* The loops of a REDUCE stand inside those that its result depends on: so often they go through
 * the rows in it. */
static void
find_repeats (Share *self)
{
  TinyGraph *graph = self->plan->graph;
  for (guint i = 0; i < self->order->len; i++) {
    TinyNode *reduce = self->order->pdata[i];
    if (reduce->op != TINY_OP_REDUCE)
      continue;
    double steps = count_inner_steps (self, reduce, NULL);
    g_autoptr (GPtrArray) inside = tiny_graph_toposort (graph, reduce->sources, 1);
    for (guint j = 0; j < inside->len && steps > 1; j++) {
      TinyNode *loop = find_row_loop (self, inside->pdata[j]);
      gboolean own = FALSE;
      for (guint s = 1; s < reduce->n_sources; s++)
        own = own || reduce->sources[s] == loop;
      double *known = own ? g_hash_table_lookup (self->repeats, inside->pdata[j]) : NULL;
      if (own && (known == NULL || *known < steps))
        g_hash_table_insert (self->repeats, inside->pdata[j], g_memdup2 (&steps, sizeof steps));
    }
  }
}

/* The STORE that fills a LOCAL with @node along @loop, or NULL. */
static TinyNode *
find_fill (Share *self, TinyNode *node, TinyNode *loop)
{
  for (guint i = 0; i < self->kernel->n_sources; i++) {
    TinyNode *store = self->kernel->sources[i];
    if (store->sources[0]->op == TINY_OP_LOCAL && store->sources[1] == loop
        && store->sources[2] == node && store->sources[0]->n_sources == self->n_outer)
      return store;
  }
  return NULL;
}

static void
add_place (Share *self, TinyNode *node, TinyNode *loop)
{
  TinyNode *key = rename_loop (self, node, loop);
  Row *row = g_hash_table_lookup (self->by_key, key);
  if (row == NULL) {
    row = g_new0 (Row, 1);
    row->key = key;
    row->places = g_array_new (FALSE, FALSE, sizeof (Place));
    g_hash_table_insert (self->by_key, key, row);
    g_ptr_array_add (self->rows, row);
  }
  const double *repeats = g_hash_table_lookup (self->repeats, node);
  Place place = { node, loop, repeats ? *repeats : 1 };
  TinyNode *store = find_fill (self, node, loop);
  if (store != NULL)
    row->store = store;
  row->repeats = row->repeats || repeats != NULL;
  g_array_append_val (row->places, place);
}

/* Whether something may be computed along @loop that is computed elsewhere, too: there is another
 * loop as long among @loops, or what goes along it is repeated. */
static gboolean
may_share (Share *self, TinyNode *loop, GPtrArray *loops)
{
  guint n = 0;
  for (guint i = 0; i < loops->len; i++)
    n += tiny_range_get_extent (loops->pdata[i]) == tiny_range_get_extent (loop);
  return n > 1 || g_hash_table_size (self->repeats) > 0;
}

static void
find_places (Share *self)
{
  g_autoptr (GPtrArray) all = g_ptr_array_new (); /* the loops of rows, each once */
  g_autofree TinyNode **loops = g_new (TinyNode *, self->order->len + 1);
  for (guint i = 0; i < self->order->len; i++) {
    loops[i] = find_row_loop (self, self->order->pdata[i]);
    if (loops[i] != NULL && !g_ptr_array_find (all, loops[i], NULL))
      g_ptr_array_add (all, loops[i]);
  }
  for (guint i = 0; i < self->order->len; i++)
    if (loops[i] != NULL && may_share (self, loops[i], all))
      add_place (self, self->order->pdata[i], loops[i]);
}

/* The loops that all stores have, outermost first; @out_same, whether they have no others. */
static void
find_outer (Share *self, gboolean *out_same)
{
  TinyNode *loops[MAX_LOOPS];
  self->n_outer = schedule_list_loops (self->plan, self->kernel->sources[0], self->outer);
  *out_same = TRUE;
  for (guint i = 1; i < self->kernel->n_sources; i++) {
    guint n = schedule_list_loops (self->plan, self->kernel->sources[i], loops), same = 0;
    while (same < MIN (n, self->n_outer) && loops[same] == self->outer[same])
      same++;
    *out_same = *out_same && same == n && same == self->n_outer;
    self->n_outer = same;
  }
}

/* What the target cannot store takes a word. */
static gint64
count_element_bytes (const Share *self, TinyDType dtype)
{
  return schedule_stores_in_words (&self->machine, dtype)
             ? 4
             : (gint64) tiny_dtype_get_n_bytes (dtype);
}

static gint64
count_local_bytes (Share *self)
{
  gint64 n_bytes = 0;
  for (guint i = 0; i < self->all->len; i++) {
    TinyNode *node = self->all->pdata[i];
    if (node->op == TINY_OP_LOCAL)
      n_bytes += (node->ints->v[0] * count_element_bytes (self, node->dtype) + 63) & ~63;
  }
  return n_bytes;
}

/* The row worth sharing most with the outer loops around; NULL: there is none. */
static Row *
find_shared (Share *self)
{
  gint64 most = schedule_recomputes (self->plan) ? self->machine.large_local_bytes
                                                 : self->machine.local_bytes;
  most -= count_local_bytes (self);
  Row *best = NULL;
  double best_saved = 0;
  g_hash_table_remove_all (self->repeats);
  g_hash_table_remove_all (self->by_key);
  g_ptr_array_set_size (self->rows, 0);
  if (schedule_recomputes (self->plan))
    find_repeats (self);
  find_places (self);
  for (guint i = 0; i < self->rows->len; i++) {
    Row *row = self->rows->pdata[i];
    const Place *first = &g_array_index (row->places, Place, 0);
    gint64 n_bytes = row->store ? 0
                                : tiny_range_get_extent (first->loop)
                                      * count_element_bytes (self, row->key->dtype);
    double saved = n_bytes <= most ? count_saved (self, row) : 0;
    if (saved > best_saved && (row->store == NULL || row->places->len > 1)) {
      best = row;
      best_saved = saved;
    }
  }
  return best;
}

/* ---- sharing ---- */
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

static TinyNode *
fill_local (Share *self, const Row *row)
{
  TinyGraph *graph = self->plan->graph;
  gint64 extent = tiny_range_get_extent (g_array_index (row->places, Place, 0).loop);
  TinyNode *loop = tiny_node_range_const (graph, self->n_numbers, TINY_RANGE_LOOP, extent);
  TinyNode *local
      = tiny_node_new (graph, TINY_OP_LOCAL, row->key->dtype, 1, self->n_outer, self->outer,
                       self->n_locals, tiny_graph_ints (graph, &extent, 1), NULL);
  TinyNode *sources[] = { local, loop, row->key };
  return tiny_node_new (graph, TINY_OP_STORE, TINY_DTYPE_VOID, 1, 3, sources, 0, NULL, NULL);
}

/* Fills a LOCAL with the value first, unless one is; it is read in all other places. */
static TinyNode *
share_row (Share *self, const Row *row)
{
  TinyGraph *graph = self->plan->graph;
  TinyNode *store = row->store ? row->store : fill_local (self, row);
  g_autoptr (GPtrArray) from = g_ptr_array_new ();
  g_autoptr (GPtrArray) to = g_ptr_array_new ();
  for (guint i = 0; i < row->places->len; i++) {
    const Place *place = &g_array_index (row->places, Place, i);
    if (row->store != NULL && place->node == store->sources[2])
      continue;
    g_ptr_array_add (from, place->node);
    g_ptr_array_add (to, load_local (self, store->sources[0], place->loop));
  }
  TinyNode *kernel = tiny_graph_substitute (graph, self->kernel, (TinyNode **) from->pdata,
                                            (TinyNode **) to->pdata, from->len);
  if (row->store != NULL)
    return kernel;
  g_autoptr (GPtrArray) stores = g_ptr_array_new ();
  for (guint i = 0; i < kernel->n_sources; i++)
    g_ptr_array_add (stores, kernel->sources[i]);
  g_ptr_array_insert (stores, find_place (graph, kernel, store), store);
  return tiny_node_sink (graph, stores->len, (TinyNode *const *) stores->pdata, NULL);
}

/* @kernel with one value more that is computed once, or NULL. */
static TinyNode *
share_once (Plan *plan, const char *device, TinyNode *kernel, TinyNode *beside)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (plan->graph, &kernel, 1);
  guint n_reduces = 0;
  gboolean same;
  for (guint i = 0; i < order->len; i++)
    n_reduces += ((TinyNode *) order->pdata[i])->op == TINY_OP_REDUCE;
  if (n_reduces == 0)
    return NULL;
  g_auto (Share) self = { NULL };
  share_init (&self, plan, kernel, beside, order);
  self.machine = schedule_get_machine (plan, device);
  find_outer (&self, &same);
  Row *row = find_shared (&self);
  if (row == NULL && same && self.n_outer > 0) {
    self.n_outer--; /* what the innermost loop goes through may be a row as well */
    row = find_shared (&self);
  }
  TinyNode *shared = row ? share_row (&self, row) : NULL;
  return shared != NULL && schedule_keeps_words (plan, device, shared) ? shared : NULL;
}

/* Whether no REDUCE stands in loops of another that would do it again without need. */
static gboolean
is_whole (Plan *plan, TinyNode *kernel)
{
  if (!schedule_recomputes (plan))
    return TRUE;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (plan->graph, &kernel, 1);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *outside = order->pdata[i];
    if (outside->op != TINY_OP_REDUCE)
      continue;
    g_autoptr (GPtrArray) inside = tiny_graph_toposort (plan->graph, outside->sources, 1);
    for (guint j = 0; j < inside->len; j++) {
      TinyNode *reduce = inside->pdata[j];
      guint n;
      TinyNode *const *ranges = tiny_node_get_ranges (plan->graph, outside, &n);
      gboolean moves = FALSE;
      for (guint s = 1; s < outside->n_sources && reduce->op == TINY_OP_REDUCE; s++)
        moves = moves || tiny_node_depends_on (plan->graph, reduce, outside->sources[s]);
      for (guint r = 0; r < n && moves; r++)
        if (!tiny_node_depends_on (plan->graph, reduce, ranges[r]))
          return FALSE;
    }
  }
  return TRUE;
}

static TinyNode *
share_all (Plan *plan, const char *device, TinyNode *kernel, TinyNode *beside)
{
  for (TinyNode *next = kernel; next != NULL; next = share_once (plan, device, kernel, beside))
    kernel = next;
  return kernel;
}

/* One after the other in the loops that they share. */
static TinyNode *
join_stores (TinyGraph *graph, TinyNode *first, TinyNode *second)
{
  guint n = first->n_sources + second->n_sources;
  g_autofree TinyNode **stores = g_new (TinyNode *, n);
  memcpy (stores, first->sources, first->n_sources * sizeof *stores);
  memcpy (stores + first->n_sources, second->sources, second->n_sources * sizeof *stores);
  return tiny_node_sink (graph, n, stores, second->text);
}

gboolean
schedule_share_values (Plan *plan, PlanItem *item)
{
  TinyNode *parts = NULL, *kernel = NULL;
  if (schedule_recomputes (plan))
    kernel = schedule_block_rows (plan, item->device, item->kernel, &parts);
  if (kernel == NULL) {
    item->kernel = share_all (plan, item->device, item->kernel, NULL);
    return is_whole (plan, item->kernel);
  }
  parts = share_all (plan, item->device, parts, kernel);
  kernel = share_all (plan, item->device, kernel, parts);
  item->kernel = join_stores (plan->graph, parts, kernel);
  return is_whole (plan, parts) && is_whole (plan, kernel);
}
