/* SPDX-License-Identifier: MIT
 *
 * packing.c: copies operands of contractions into the order they are read in.
 *
 * A contraction REDUCE (ADD, MUL (load, load)) is computed for several neighbouring outputs at
 * once: along the axis with stride 1 in what it stores. An operand that lies along that axis with
 * another stride, or behind a condition, would be gathered element by element, again and again. A
 * contraction inside another REDUCE is computed for neighbours along what that goes through.
 * When each of its elements is used often enough, a small kernel first copies it to a temporary
 * that has the loops it depends on as axes, that one last.
 *
 * Neighbours along that axis may be too few for the target's vectors, as pixels of 7 × 7 are, where those along another
 * one are not: then the contraction is better stored in the other order first (layout.c). */
#include <math.h>
#include <string.h>

#include "rewrite/tiny-bounds.h"
#include "schedule/plan.h"
#include "schedule/weights.h"

enum { MAX_RANGES = 48 };

typedef struct {
  TinyNode *kernel; /* copies … */
  guint source;     /* … this buffer … */
  guint packed;     /* … to this one */
} Pack;

typedef struct {
  Plan *plan;
  TinyGraph *graph;
  GArray *packs;    /* Pack */
  GArray *items;    /* the plan's new items */
  PlanItem item;    /* the one at work */
  TinyNode *vector; /* the vector axis of the contraction at work */
} Packing;

/* An operand that wants packing. */
typedef struct {
  TinyNode *load, *vector;
} Operand;

static double
count_steps (TinyNode *const *ranges, guint n)
{
  double steps = 1;
  for (guint i = 0; i < n; i++)
    steps *= (double) tiny_range_get_extent (ranges[i]);
  return steps;
}

/* The output loop along which neighbouring elements are stored. */
static TinyNode *
find_vector_axis (Packing *self, TinyNode *store)
{
  const Affine *index = affine_read (&self->plan->affines, store->sources[1]);
  for (guint i = 0; i < index->n; i++)
    if (index->terms[i].mul == 1 && index->terms[i].atom->op == TINY_OP_RANGE)
      return index->terms[i].atom;
  return NULL;
}

/* How a contraction reads an operand along its vector axis. */
typedef enum {
  ACCESS_GOOD, /* one value, or neighbours in memory */
  ACCESS_MASKED,
  ACCESS_GATHERED,
} Access;

static Access
get_access (Packing *self, TinyNode *load)
{
  gboolean masked = load->n_sources > 2;
  if (!tiny_node_depends_on (self->graph, load, self->vector))
    return masked ? ACCESS_MASKED : ACCESS_GOOD;
  const Affine *index = affine_read (&self->plan->affines, load->sources[1]);
  for (guint i = 0; i < index->n; i++) {
    TinyNode *atom = index->terms[i].atom;
    if (atom != self->vector && tiny_node_depends_on (self->graph, atom, self->vector))
      return ACCESS_GATHERED;
  }
  if (affine_get_mul (index, self->vector) != 1)
    return ACCESS_GATHERED;
  return masked ? ACCESS_MASKED : ACCESS_GOOD;
}

/* Whether where @load reads, or whether it does, is itself read from memory. */
static gboolean
reads_position (Packing *self, TinyNode *load)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (self->graph, &load, 1);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node != load && node->op == TINY_OP_LOAD)
      return TRUE;
  }
  return FALSE;
}

/* Whether each element of a packed copy would be used often, and the copy be of decent size. */
static gboolean
is_worth_packing (Packing *self, TinyNode *load, double work)
{
  guint n;
  TinyNode *const *ranges = tiny_node_get_ranges (self->graph, load, &n);
  double n_packed = count_steps (ranges, n);
  return n <= MAX_RANGES && load->sources[0]->arg != 0 && !reads_position (self, load)
         && n_packed * (double) schedule_weights.pack_min_reuse <= work
         && n_packed
                <= schedule_weights.pack_max_growth * (double) load->sources[0]->ints->v[0];
}

static TinyNode *
make_param (Packing *self, guint slot, guint buffer)
{
  const TinyScheduleBuffer *info = schedule_get_buffer (self->plan, buffer);
  return tiny_node_new (self->graph, TINY_OP_PARAM, info->dtype, 1, 0, NULL, slot,
                        tiny_graph_ints (self->graph, &info->n_elements, 1), NULL);
}

/* The load's loops in order of their numbers, the vector axis last. */
static guint
list_ranges (Packing *self, TinyNode *load, TinyNode **out)
{
  guint n, used = 0;
  TinyNode *const *ranges = tiny_node_get_ranges (self->graph, load, &n);
  gboolean has_vector = FALSE;
  for (guint i = 0; i < n; i++) {
    guint j = used;
    if (ranges[i] == self->vector) {
      has_vector = TRUE;
      continue;
    }
    for (; j > 0 && tiny_range_get_number (out[j - 1]) > tiny_range_get_number (ranges[i]); j--)
      out[j] = out[j - 1];
    out[j] = ranges[i];
    used++;
  }
  if (has_vector)
    out[used++] = self->vector;
  return used;
}

static TinyNode *
flatten (Packing *self, TinyNode *const *ranges, guint n)
{
  AffinePool *pool = &self->plan->affines;
  const Affine *flat = affine_const (pool, 0);
  for (guint i = 0; i < n; i++)
    flat = affine_sum (pool, flat, tiny_range_get_extent (ranges[i]),
                       affine_range (pool, ranges[i]), 1, 0);
  return affine_to_node (pool, flat);
}

/* The buffer that holds what @load reads, packed; makes the kernel unless there is one. */
static guint
get_packed (Packing *self, TinyNode *load, TinyNode *const *ranges, guint n)
{
  TinyNode *from[MAX_RANGES + 1], *to[MAX_RANGES + 1];
  guint source = self->item.buffers[load->sources[0]->arg];
  for (guint i = 0; i < n; i++) {
    gint64 extent = tiny_range_get_extent (ranges[i]);
    from[i] = ranges[i];
    to[i] = tiny_node_range_const (self->graph, i, TINY_RANGE_LOOP, extent);
  }
  guint packed = schedule_add_buffer (self->plan, TINY_SCHEDULE_TEMPORARY, load->dtype,
                                      (gint64) count_steps (ranges, n), self->item.device, 0);
  from[n] = load->sources[0];
  to[n] = make_param (self, 1, source);
  TinyNode *sources[] = { make_param (self, 0, packed), flatten (self, to, n),
                          tiny_graph_substitute (self->graph, load, from, to, n + 1) };
  TinyNode *store = tiny_node_new (self->graph, TINY_OP_STORE, TINY_DTYPE_VOID, 1, 3, sources,
                                   0, NULL, NULL);
  Pack pack = { tiny_node_sink (self->graph, 1, &store, NULL), source, packed };
  for (guint i = 0; i < self->packs->len; i++) {
    const Pack *known = &g_array_index (self->packs, Pack, i);
    if (known->kernel == pack.kernel && known->source == source)
      return known->packed;
  }
  guint buffers[] = { packed, source };
  PlanItem item = { .kind = TINY_SCHEDULE_KERNEL,
                    .kernel = pack.kernel,
                    .device = self->item.device,
                    .n_buffers = 2,
                    .n_written = 1,
                    .buffers = tiny_arena_copy (self->plan->arena, buffers, sizeof buffers) };
  g_array_append_val (self->packs, pack);
  g_array_append_val (self->items, item);
  return packed;
}

/* Reads a packed copy in place of @load. */
static void
pack_load (Packing *self, TinyNode *load)
{
  PlanItem *item = &self->item;
  TinyNode *ranges[MAX_RANGES];
  gboolean old_is_used = FALSE;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (self->graph, &item->kernel, 1);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    old_is_used
        = old_is_used
          || (node->op == TINY_OP_LOAD && node != load && node->sources[0] == load->sources[0]);
  }
  if (old_is_used
      && item->n_buffers >= schedule_get_machine (self->plan, item->device).max_buffers)
    return; /* no room for both */
  guint n = list_ranges (self, load, ranges), old_slot = load->sources[0]->arg;
  guint packed = get_packed (self, load, ranges, n), slot = item->n_buffers;
  guint *buffers = tiny_arena_alloc (self->plan->arena, (item->n_buffers + 1) * sizeof (guint));
  memcpy (buffers, item->buffers, item->n_buffers * sizeof (guint));
  if (!old_is_used)
    slot = old_slot;
  else
    item->n_buffers++;
  buffers[slot] = packed;
  item->buffers = buffers;
  TinyNode *sources[] = { make_param (self, slot, packed), flatten (self, ranges, n) };
  TinyNode *replacement
      = tiny_node_new (self->graph, TINY_OP_LOAD, load->dtype, 1, 2, sources, 0, NULL, NULL);
  item->kernel = tiny_graph_substitute (self->graph, item->kernel, &load, &replacement, 1);
}

/* The axis of @reduce: the store's, or that of the REDUCE in which it stands. */
static TinyNode *
choose_vector (Packing *self, GPtrArray *order, TinyNode *store, TinyNode *reduce)
{
  for (guint i = 0; i < order->len; i++) {
    TinyNode *outside = order->pdata[i];
    TinyNode *last = outside->n_sources ? outside->sources[outside->n_sources - 1] : NULL;
    if (outside->op == TINY_OP_REDUCE && outside != reduce
        && tiny_node_depends_on (self->graph, reduce, last))
      return last;
  }
  return find_vector_axis (self, store);
}

static gboolean
has_operand (GArray *operands, TinyNode *load)
{
  for (guint i = 0; i < operands->len; i++)
    if (g_array_index (operands, Operand, i).load == load)
      return TRUE;
  return FALSE;
}

/* How many products the contraction @node sums up; 0: it is none, or too small to copy anything for. */
static double
count_products (Packing *self, const TinyNode *node)
{
  guint n;
  if (node->op != TINY_OP_REDUCE || node->arg != TINY_OP_ADD
      || node->sources[0]->op != TINY_OP_MUL)
    return 0;
  TinyNode *const *ranges = tiny_node_get_ranges (self->graph, node->sources[0], &n);
  const double n_products = count_steps (ranges, n);
  return n_products < (double) schedule_weights.pack_min_work ? 0 : n_products;
}

/* The loads of contractions in the item's kernel that want packing; in @out_gathers, whether
 * there are some that want it and should not have it. */
static GArray *
find_operands (Packing *self, gboolean *out_gathers)
{
  GArray *operands = g_array_new (FALSE, FALSE, sizeof (Operand));
  TinyNode *store = self->item.kernel->sources[0];
  *out_gathers = FALSE;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (self->graph, &store, 1);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    const double work = count_products (self, node);
    if (work == 0 || (self->vector = choose_vector (self, order, store, node)) == NULL)
      continue;
    for (guint j = 0; j < 2; j++) {
      TinyNode *load = node->sources[0]->sources[j];
      while (load->op == TINY_OP_CAST)
        load = load->sources[0];
      Access access = load->op == TINY_OP_LOAD ? get_access (self, load) : ACCESS_GOOD;
      if (access == ACCESS_GOOD || has_operand (operands, load))
        continue;
      if (is_worth_packing (self, load, work))
        g_array_append_val (operands, ((Operand){ load, self->vector }));
      else if (access == ACCESS_GATHERED)
        *out_gathers = TRUE;
    }
  }
  return operands;
}

/* True if packing does not help. */
static gboolean
gathers_operand (Plan *plan, const PlanItem *item)
{
  Packing self = { plan, plan->graph, NULL, NULL, *item };
  gboolean gathers = FALSE;
  g_autoptr (GArray) operands = find_operands (&self, &gathers);
  return gathers;
}

/* True if both factors of @product have @axis where they have the vector axis. */
static gboolean
goes_along (Packing *self, TinyNode *product, TinyNode *axis)
{
  for (guint s = 0; s < 2; s++)
    if (tiny_node_depends_on (self->graph, product->sources[s], axis)
        != tiny_node_depends_on (self->graph, product->sources[s], self->vector))
      return FALSE;
  return TRUE;
}

/* Elements that vectors along the vector axis go through: rows that follow each other are one. */
static gint64
count_row (Packing *self, const Affine *index, TinyNode *product)
{
  gint64 n = tiny_range_get_extent (self->vector);
  for (guint i = 0; i < index->n; i++)
    if (index->terms[i].mul == n && index->terms[i].atom->op == TINY_OP_RANGE
        && tiny_range_get_extent (index->terms[i].atom) > 1
        && goes_along (self, product, index->terms[i].atom)) {
      n *= tiny_range_get_extent (index->terms[i].atom);
      i = G_MAXUINT; /* from the beginning */
    }
  return n;
}

/* The longest axis of @index that only the factor without the vector axis has. */
static gint64
count_column (Packing *self, const Affine *index, TinyNode *product)
{
  gint64 most = 1;
  for (guint i = 0; i < index->n; i++) {
    TinyNode *axis = index->terms[i].atom;
    gboolean is_other = axis->op == TINY_OP_RANGE;
    for (guint s = 0; s < 2 && is_other; s++)
      is_other = tiny_node_depends_on (self->graph, product->sources[s], axis)
                 != tiny_node_depends_on (self->graph, product->sources[s], self->vector);
    if (is_other)
      most = MAX (most, tiny_range_get_extent (axis));
  }
  return most;
}

/* The cost of one of @n elements of a row in a tile with two vectors, or in one with a single one, which loads more for
 * each product. */
static double
get_row_cost (gint64 n, double lanes)
{
  double one = ceil ((double) n / lanes) * lanes,
         two = ceil ((double) n / (2 * lanes)) * 2 * lanes;
  return MIN (schedule_weights.narrow_tile * one, two) / (double) n;
}

/* True if vectors along another axis cost less. */
static gboolean
wastes_lanes (Plan *plan, const PlanItem *item)
{
  Packing self = { plan, plan->graph, NULL, NULL, *item };
  ScheduleMachine machine = schedule_get_machine (plan, item->device);
  TinyNode *store = item->kernel->sources[0];
  const Affine *index = affine_read (&plan->affines, store->sources[1]);
  double saved = 0, n_bytes = tiny_dtype_get_n_bytes (store->sources[2]->dtype);
  if (machine.tile_rows == 0 || index == NULL
      || (self.vector = find_vector_axis (&self, store)) == NULL)
    return FALSE;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (plan->graph, &store, 1);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    const double work = count_products (&self, node);
    if (work == 0)
      continue;
    TinyNode *product = node->sources[0];
    double row = get_row_cost (count_row (&self, index, product), machine.lanes);
    double column = get_row_cost (count_column (&self, index, product), machine.lanes);
    saved += work * (row - column);
  }
  guint n_axes;
  TinyNode *const *axes = tiny_node_get_ranges (plan->graph, store, &n_axes);
  /* Written and read once more, across memory. */
  return saved > 4 * n_bytes * count_steps (axes, n_axes) * schedule_weights.byte
                     + schedule_weights.launch;
}

gboolean
schedule_wants_detour (Plan *plan, const PlanItem *item)
{
  typedef struct {
    const char *device;
    gboolean wants;
  } Verdict;
  const Verdict *known = tiny_node_map_get (&plan->detours, item->kernel);
  if (known != NULL && known->device == item->device)
    return known->wants;
  const Verdict now
      = { item->device, gathers_operand (plan, item) || wastes_lanes (plan, item) };
  tiny_node_map_set (&plan->detours, item->kernel,
                     tiny_arena_copy (plan->arena, &now, sizeof now));
  return now.wants;
}

void
schedule_pack_operands (Plan *plan)
{
  Packing self = { plan, plan->graph };
  self.packs = g_array_new (FALSE, FALSE, sizeof (Pack));
  self.items = g_array_new (FALSE, FALSE, sizeof (PlanItem));
  for (guint i = 0; i < plan->items->len; i++) {
    self.item = g_array_index (plan->items, PlanItem, i);
    if (self.item.kind == TINY_SCHEDULE_KERNEL && self.item.operation == NULL) {
      gboolean gathers;
      g_autoptr (GArray) operands = find_operands (&self, &gathers);
      for (guint j = 0; j < operands->len; j++) {
        self.vector = g_array_index (operands, Operand, j).vector;
        pack_load (&self, g_array_index (operands, Operand, j).load);
      }
    }
    g_array_append_val (self.items, self.item);
  }
  g_array_unref (self.packs);
  g_array_unref (plan->items);
  plan->items = self.items;
}
