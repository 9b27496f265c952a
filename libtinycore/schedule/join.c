/* SPDX-License-Identifier: MIT
 *
 * join.c: two kernels as one.
 *
 * The loops of the first become the outermost of the second; where one kernel has a loop and the
 * other several for the same elements, the one is split. Both are made anew over the common loops
 * and the buffers of both, and a LOAD by the second at the element that the first stores in the
 * same step is the stored value itself. */
#include "schedule/join.h"

#include "schedule/known-kernels.h"
#include "schedule/remake.h"
#include "schedule/weights.h"
#include "schedule/work.h"

enum { MAX_LOOPS = 64, MAX_BUFFERS = 31 };

/* Two kernels on their way to one. */
typedef struct {
  Plan *plan;
  const guint *n_readers;
  const PlanItem *first, *second;
  guint n_buffers, n_written;
  guint buffers[MAX_BUFFERS];
  Remake one, two;
  const GPtrArray *nodes[2]; /* of the kernels of both */
  GPtrArray *stores;
} Pair;

static gboolean
writes (const PlanItem *item, guint buffer)
{
  for (guint i = 0; i < item->n_written; i++)
    if (item->buffers[i] == buffer)
      return TRUE;
  return FALSE;
}

static gboolean
reads (const PlanItem *item, guint buffer)
{
  for (guint i = item->n_written; i < item->n_buffers; i++)
    if (item->buffers[i] == buffer)
      return TRUE;
  return FALSE;
}

/* ---- buffers ---- */
static TinyNode *
make_param (Plan *plan, guint slot, guint buffer)
{
  const TinyScheduleBuffer *info = schedule_get_buffer (plan, buffer);
  return tiny_node_new (plan->graph, TINY_OP_PARAM, info->dtype, 1, 0, NULL, slot,
                        tiny_graph_ints (plan->graph, &info->n_elements, 1), NULL);
}

/* Whether nobody needs what the first kernel stores in @buffer once the second is with it. */
static gboolean
is_spent (const Pair *self, guint buffer)
{
  return schedule_get_buffer (self->plan, buffer)->kind == TINY_SCHEDULE_TEMPORARY
         && self->n_readers[buffer] == (reads (self->second, buffer) ? 1 : 0);
}

/* What is written in memory that is an input's, and the input, are one. */
static guint
find_slot (Pair *self, guint buffer)
{
  Plan *plan = self->plan;
  for (guint i = 0; i < self->n_buffers; i++) {
    guint other = self->buffers[i];
    if (other == buffer
        || (i < self->n_written && schedule_is_assigned (plan, other)
            && schedule_get_buffer (plan, other)->slot == (gint64) buffer
            && buffer < plan->n_inputs))
      return i;
  }
  return MAX_BUFFERS;
}

static gboolean
add_buffer (Pair *self, guint buffer)
{
  if (find_slot (self, buffer) < MAX_BUFFERS)
    return TRUE;
  if (self->n_buffers == MAX_BUFFERS)
    return FALSE;
  self->buffers[self->n_buffers++] = buffer;
  return TRUE;
}

/* Lists the buffers of both; a LOAD of what the first kernel writes needs none. */
static gboolean
list_buffers (Pair *self)
{
  const PlanItem *items[] = { self->first, self->second };
  for (guint k = 0; k < 2; k++)
    for (guint i = 0; i < items[k]->n_written; i++)
      if ((k == 1 || !is_spent (self, items[k]->buffers[i]))
          && !add_buffer (self, items[k]->buffers[i]))
        return FALSE;
  self->n_written = self->n_buffers;
  for (guint k = 0; k < 2; k++)
    for (guint i = items[k]->n_written; i < items[k]->n_buffers; i++)
      if ((k == 0 || !writes (self->first, items[k]->buffers[i]))
          && !add_buffer (self, items[k]->buffers[i]))
        return FALSE;
  guint most = schedule_get_machine (self->plan, self->second->device).max_buffers;
  return self->n_buffers <= MIN (schedule_weights.max_buffers + 1, most);
}

/* ---- loops ---- */
/* The loops of the store with the most, outermost first, among those of @item whose buffers @reader
 * reads, or among all. Returns how many. */
static guint
list_deepest (Plan *plan, const PlanItem *item, const PlanItem *reader, TinyNode **out)
{
  TinyNode *best = NULL;
  guint n_best = 0, n;
  gboolean best_is_read = FALSE;
  for (guint i = 0; i < item->kernel->n_sources; i++) {
    TinyNode *store = item->kernel->sources[i];
    gboolean is_read = reader != NULL && reads (reader, item->buffers[store->sources[0]->arg]);
    tiny_node_get_ranges (plan->graph, store, &n);
    if (best != NULL && (is_read == best_is_read ? n <= n_best : best_is_read))
      continue;
    best = store;
    n_best = n;
    best_is_read = is_read;
  }
  return schedule_list_loops (plan, best, out);
}

/* A row of loops that is being cut into the digits of another. */
typedef struct {
  TinyNodeMap *out;
  TinyNode **loops;
  guint n, at;
  gint64 left;       /* of the extent of the loop at work */
  const Affine *sum; /* what stands for its outer part */
} Row;

static void
begin_loop (Row *row)
{
  row->left = row->at < row->n ? tiny_range_get_extent (row->loops[row->at]) : 1;
  row->sum = NULL;
}

static void
add_digit (AffinePool *pool, Row *row, TinyNode *digit, gint64 extent)
{
  const Affine *x = affine_range (pool, digit);
  row->sum = row->sum == NULL ? x : affine_sum (pool, row->sum, extent, x, 1, 0);
  row->left /= extent;
  if (row->left > 1)
    return;
  tiny_node_map_set (row->out, row->loops[row->at++], (gpointer) row->sum);
  begin_loop (row);
}

/* Gives all loops of the first kernel and the outermost of the second loops in common. */
static gboolean
share_loops (Pair *self, Row *a, Row *b, guint *n_numbers)
{
  AffinePool *pool = &self->plan->affines;
  begin_loop (a);
  begin_loop (b);
  while (a->at < a->n) {
    gint64 extent = MIN (a->left, b->left);
    if (b->at == b->n || a->left % extent != 0 || b->left % extent != 0)
      return FALSE;
    TinyNode *digit
        = tiny_node_range_const (pool->graph, (*n_numbers)++, TINY_RANGE_LOOP, extent);
    add_digit (pool, a, digit, extent);
    add_digit (pool, b, digit, extent);
  }
  if (b->sum == NULL)
    return TRUE;
  /* The rest of a loop whose outer part is shared. */
  gint64 rest = b->left;
  add_digit (pool, b,
             tiny_node_range_const (pool->graph, (*n_numbers)++, TINY_RANGE_LOOP, rest), rest);
  return TRUE;
}

static int
compare_numbers (gconstpointer a, gconstpointer b)
{
  guint x = tiny_range_get_number (*(TinyNode *const *) a);
  guint y = tiny_range_get_number (*(TinyNode *const *) b);
  return x < y ? -1 : x > y;
}

/* The loops of that kind among @nodes in their order. */
static GPtrArray *
list_ranges (const GPtrArray *nodes, TinyRangeKind kind)
{
  GPtrArray *ranges = g_ptr_array_new ();
  for (guint i = 0; i < nodes->len; i++) {
    TinyNode *node = nodes->pdata[i];
    if (node->op == TINY_OP_RANGE && tiny_range_get_kind (node) == kind)
      g_ptr_array_add (ranges, node);
  }
  g_ptr_array_sort (ranges, compare_numbers);
  return ranges;
}

/* Numbers the loops among a kernel's @nodes that have no place yet. */
static void
number_loops (Remake *remake, const GPtrArray *nodes, TinyRangeKind kind, guint *n_numbers)
{
  AffinePool *pool = remake->pool;
  g_autoptr (GPtrArray) ranges = list_ranges (nodes, kind);
  for (guint i = 0; i < ranges->len; i++) {
    gint64 extent = tiny_range_get_extent (ranges->pdata[i]);
    if (tiny_node_map_get (&remake->loops, ranges->pdata[i]) != NULL)
      continue;
    TinyNode *range = tiny_node_range_const (pool->graph, (*n_numbers)++, kind, extent);
    tiny_node_map_set (&remake->loops, ranges->pdata[i], (gpointer) affine_range (pool, range));
  }
}

static gboolean
match_loops (Pair *self, gboolean shares)
{
  Plan *plan = self->plan;
  TinyNode *loops[2][MAX_LOOPS];
  guint n_numbers = 0;
  Row a = { &self->one.loops, loops[0],
            list_deepest (plan, self->first, self->second, loops[0]) };
  Row b = { &self->two.loops, loops[1], list_deepest (plan, self->second, NULL, loops[1]) };
  if (shares && !share_loops (self, &a, &b, &n_numbers))
    return FALSE;
  self->nodes[0] = schedule_list_nodes (plan, self->first->kernel);
  self->nodes[1] = schedule_list_nodes (plan, self->second->kernel);
  number_loops (&self->one, self->nodes[0], TINY_RANGE_LOOP, &n_numbers);
  number_loops (&self->two, self->nodes[1], TINY_RANGE_LOOP, &n_numbers);
  number_loops (&self->one, self->nodes[0], TINY_RANGE_REDUCE, &n_numbers);
  number_loops (&self->two, self->nodes[1], TINY_RANGE_REDUCE, &n_numbers);
  return TRUE;
}

/* ---- the kernel of both ---- */
static TinyNode *
find_store (const PlanItem *item, guint slot)
{
  for (guint i = 0; i < item->kernel->n_sources; i++)
    if (item->kernel->sources[i]->sources[0]->arg == slot)
      return item->kernel->sources[i];
  return NULL;
}

/* Says what the parameters of @item's kernel become. A buffer that is not stored any more still
 * needs some node until its STORE is dropped: the old one. */
static void
map_params (Pair *self, Remake *remake, const PlanItem *item, const GPtrArray *nodes)
{
  Plan *plan = self->plan;
  for (guint i = 0; i < nodes->len; i++) {
    TinyNode *param = nodes->pdata[i];
    if (param->op != TINY_OP_PARAM)
      continue;
    guint slot = find_slot (self, item->buffers[param->arg]);
    tiny_node_map_set (&remake->nodes, param,
                       slot == MAX_BUFFERS ? param
                                           : make_param (plan, slot, self->buffers[slot]));
  }
}

/* What a kernel reads from memory that it writes must be of the element it writes in that step. */
static gboolean
reads_own_stores (Pair *self, const GPtrArray *order)
{
  for (guint i = 0; i < order->len; i++) {
    TinyNode *load = order->pdata[i];
    if (load->op != TINY_OP_LOAD || load->sources[0]->arg >= self->n_written)
      continue;
    for (guint j = 0; j < self->stores->len; j++) {
      TinyNode *store = self->stores->pdata[j];
      if (store->sources[0] == load->sources[0]
          && (store->sources[1] != load->sources[1] || load->n_sources > 2))
        return FALSE;
    }
  }
  return TRUE;
}

/* True if a LOAD by the second kernel is certainly of another element than the first stores in the same step: both
 * addresses are sums of loops, which are other sums in the kernel of both. */
static gboolean
clashes (Pair *self, const TinyNode *load, const TinyNode *store)
{
  AffinePool *pool = self->one.pool;
  const Affine *from = affine_read (pool, load->sources[1]);
  const Affine *to = affine_read (pool, store->sources[1]);
  return from != NULL && to != NULL && affine_counts_only (from) && affine_counts_only (to)
         && affine_replace (pool, from, &self->two.loops)
                != affine_replace (pool, to, &self->one.loops);
}

/* The same of all that the second reads of what the first writes: mostly a look at the first of them shows that the two
 * are not to become one, before anything is made. */
static gboolean
any_clashes (Pair *self)
{
  for (guint i = 0; i < self->nodes[1]->len; i++) {
    const TinyNode *load = self->nodes[1]->pdata[i];
    if (load->op != TINY_OP_LOAD || load->sources[0]->op != TINY_OP_PARAM)
      continue;
    const guint buffer = self->second->buffers[load->sources[0]->arg];
    for (guint k = 0;
         k < self->first->n_written && (guint) load->sources[0]->arg >= self->second->n_written;
         k++)
      if (self->first->buffers[k] == buffer
          && clashes (self, load, find_store (self->first, k)))
        return TRUE;
  }
  return FALSE;
}

static gboolean
remake_stores (Pair *self)
{
  const PlanItem *first = self->first, *second = self->second;
  if (any_clashes (self))
    return FALSE;
  tiny_node_map_reserve (&self->one.nodes, self->nodes[0]->len);
  tiny_node_map_reserve (&self->two.nodes, self->nodes[1]->len);
  map_params (self, &self->one, first, self->nodes[0]);
  map_params (self, &self->two, second, self->nodes[1]);
  remake_nodes (&self->one, self->nodes[0]);
  for (guint i = 0; i < first->n_written; i++) {
    TinyNode *store = tiny_node_map_get (&self->one.nodes, find_store (first, i));
    if (!is_spent (self, first->buffers[i]))
      g_ptr_array_add (self->stores, store);
    for (guint j = second->n_written; j < second->n_buffers; j++)
      if (second->buffers[j] == first->buffers[i])
        tiny_node_map_set (&self->two.stores, make_param (self->plan, j, second->buffers[j]),
                           store);
  }
  remake_nodes (&self->two, self->nodes[1]);
  for (guint i = 0; i < second->n_written && !self->two.clashes; i++)
    g_ptr_array_add (self->stores,
                     tiny_node_map_get (&self->two.nodes, find_store (second, i)));
  return !self->two.clashes;
}

/* The same, where @order lists what @stores are made of. */
static guint
drop_unused (Plan *plan,
             const GPtrArray *order,
             TinyNode **stores,
             guint n_stores,
             guint *buffers,
             guint n_buffers)
{
  g_autofree TinyNode **from = g_new0 (TinyNode *, n_buffers);
  g_autofree TinyNode **to = g_new0 (TinyNode *, n_buffers);
  guint n = 0, n_moved = 0;
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_PARAM)
      from[node->arg] = node;
  }
  for (guint i = 0; i < n_buffers; i++) {
    if (from[i] == NULL)
      continue;
    buffers[n] = buffers[i];
    from[n_moved] = from[i];
    to[n_moved] = make_param (plan, n, buffers[i]);
    n_moved += n != i;
    n++;
  }
  for (guint i = 0; i < n_stores && n_moved > 0; i++)
    stores[i] = tiny_graph_substitute (plan->graph, stores[i], from, to, n_moved);
  return n;
}

guint
schedule_drop_unused (
    Plan *plan, TinyNode **stores, guint n_stores, guint *buffers, guint n_buffers)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (plan->graph, stores, n_stores);
  return drop_unused (plan, order, stores, n_stores, buffers, n_buffers);
}

static void
pair_clear (Pair *self)
{
  remake_clear (&self->one);
  remake_clear (&self->two);
  g_clear_pointer (&self->stores, g_ptr_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Pair, pair_clear)

static gboolean
join (Plan *plan,
      const guint *n_readers,
      const PlanItem *first,
      const PlanItem *second,
      gboolean shares,
      PlanItem *out_item)
{
  g_auto (Pair) self = { plan, n_readers, first, second };
  remake_init (&self.one, plan);
  remake_init (&self.two, plan);
  self.stores = g_ptr_array_new ();
  if (!list_buffers (&self) || !match_loops (&self, shares) || !remake_stores (&self))
    return FALSE;
  TinyNode **stores = (TinyNode **) self.stores->pdata;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (plan->graph, stores, self.stores->len);
  if (!reads_own_stores (&self, order))
    return FALSE;
  self.n_buffers
      = drop_unused (plan, order, stores, self.stores->len, self.buffers, self.n_buffers);
  TinyNode *kernel = tiny_node_sink (plan->graph, self.stores->len, stores, NULL);
  if (shares && !schedule_keeps_words (plan, second->device, kernel))
    return FALSE;
  *out_item = (PlanItem){
    .kind = TINY_SCHEDULE_KERNEL,
    .kernel = schedule_name_alike (plan, kernel),
    .device = second->device,
    .n_buffers = self.n_buffers,
    .n_written = self.n_written,
    .buffers = tiny_arena_copy (plan->arena, self.buffers, self.n_buffers * sizeof (guint)),
  };
  return TRUE;
}

/* ---- pairs that are alike ---- */
/* Adds @item's buffers, and of those that it writes whether they are spent, as @self has it, where it is the first. */
static void
describe_item (KernelKey *key, const Pair *self, const PlanItem *item)
{
  guint64 spent = 0;
  for (guint i = 0; i < item->n_written && item == self->first; i++)
    spent |= (guint64) is_spent (self, item->buffers[i]) << i;
  KERNEL_KEY_ADD (key, GPOINTER_TO_SIZE (item->kernel),
                  item->n_buffers | (guint64) item->n_written << 32, spent);
  for (guint i = 0; i < item->n_buffers; i++)
    kernel_key_add_buffer (key, self->plan, item->buffers[i]);
}

/* Adds all that the kernel of both depends on. */
static void
describe (KernelKey *key, const Pair *self, gboolean shares)
{
  Plan *plan = self->plan;
  KERNEL_KEY_ADD (key,
                  KERNEL_OF_PAIR | (guint64) (shares != FALSE) << 8
                      | (guint64) schedule_recomputes (plan) << 9,
                  GPOINTER_TO_SIZE (self->second->device));
  describe_item (key, self, self->first);
  describe_item (key, self, self->second);
  for (guint i = 0; i < key->buffers->len; i++) {
    const guint buffer = g_array_index (key->buffers, guint, i);
    if (schedule_is_assigned (plan, buffer))
      KERNEL_KEY_ADD (
          key, i,
          kernel_key_find_number (key, (guint) schedule_get_buffer (plan, buffer)->slot));
  }
}

gboolean
schedule_join_kernels (Plan *plan,
                       const guint *n_readers,
                       const PlanItem *first,
                       const PlanItem *second,
                       gboolean shares,
                       PlanItem *out_item)
{
  const Pair pair = { plan, n_readers, first, second };
  KernelKey *key = known_kernels_begin_key (plan->kernels);
  describe (key, &pair, shares);
  if (known_kernels_find (plan, key, out_item)) {
    out_item->device = second->device;
    return out_item->kernel != NULL;
  }
  const gboolean joins = join (plan, n_readers, first, second, shares, out_item);
  known_kernels_note (plan, key, joins ? out_item : NULL);
  return joins;
}
