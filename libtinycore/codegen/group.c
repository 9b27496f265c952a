/* SPDX-License-Identifier: MIT
 *
 * group.c: axes over the items of a work-group.
 *
 * GROUP(axis, n) splits n off an axis and gives each part to an item of its own. A work-group has
 * up to three axes. The first to be applied is axis 0, whose items lie next to each other. Two
 * parts of one size, of which no value has both, are computed one after the other by the same
 * items: they share an axis, as do the rows' maximum, their sum and what is stored of a softmax.
 *
 *  - A STORE that does not have an axis of the group is one item's, the first along it, and so is a LOAD
 *    for it from memory that the kernel writes.
 *  - A REDUCE over items becomes what each of them combines, stored to LOCAL memory, and a REDUCE of
 *    that. Many parts are combined in two steps, the first of which the items share again.
 *  - LOCAL memory whose loops have a part belongs to that item, which has a place of its own in it.
 *
 * Barriers are no matter of this file: pass-barriers.c finds where they are needed. */
#include "optimise.h"

enum {
  MAX_AT_ONCE = 16, /* parts that one item combines by itself */
  MAX_UNROLLED = 4, /* … without a loop */
  MAX_RANGES = 24
};

/* ---- applying ---- */
/* Whether some value has a part of both axes. */
static gboolean
meet (TinyAxes *self, TinyNode *x, TinyNode *y)
{
  TinyGraph *graph = self->cg->graph;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &self->root, 1);
  for (guint i = 0; i + 1 < order->len; i++)
    if (tiny_axes_involves (graph, order->pdata[i], x)
        && tiny_axes_involves (graph, order->pdata[i], y))
      return TRUE;
  return x == y;
}

/* The axis of the group that takes @n parts of @origin; TINY_GROUP_AXES: none is left. */
static guint
find_axis (TinyAxes *self, TinyNode *origin, gint64 n)
{
  for (guint axis = 0; axis < self->n_items; axis++) {
    gboolean is_free = tiny_range_get_extent (self->items[axis]) == n;
    for (guint i = 0; i < self->parts->len && is_free; i++) {
      const TinyPart *part = &g_array_index (self->parts, TinyPart, i);
      is_free = part->axis != axis || !meet (self, part->origin, origin);
    }
    if (is_free)
      return axis;
  }
  return self->n_items;
}

static gboolean
is_inside_reduce (TinyAxes *self, TinyNode *origin)
{
  TinyGraph *graph = self->cg->graph;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &self->root, 1);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    gboolean closes = FALSE;
    for (guint s = 1; s < node->n_sources && node->op == TINY_OP_REDUCE; s++)
      closes = closes || node->sources[s] == origin;
    for (guint a = self->n_outputs; a < self->axes->len && closes; a++)
      if (tiny_node_depends_on (graph, node, tiny_axes_get (self, a)->origin))
        return TRUE;
  }
  return FALSE;
}

const char *
tiny_axes_object_to_group (TinyAxes *self, guint i, gint64 amount)
{
  const TinyTarget *target = self->cg->target;
  const TinyAxis *axis = tiny_axes_get (self, i);
  guint at = find_axis (self, axis->origin, amount);
  if (!(target->flags & TINY_TARGET_GROUPS))
    return "the target has no work-groups";
  if (at == TINY_GROUP_AXES)
    return "a work-group has three axes";
  gint64 n_items = at < self->n_items ? 1 : amount;
  for (guint j = 0; j < self->n_items; j++)
    n_items *= tiny_range_get_extent (self->items[j]);
  if (amount > target->max_group[at] || n_items > target->max_group_total)
    return "the target's work-groups are smaller";
  if (axis->is_reduce && is_inside_reduce (self, axis->origin))
    return "the reduction is inside another one";
  if (self->stages->len > 0)
    return "an operand is staged";
  return tiny_axes_fit_local (self, i, amount, TINY_RANGE_GROUP)
             ? NULL
             : "the kernel's own memory would not fit";
}

TinyNode *
tiny_axes_take_items (TinyAxes *self, TinyNode *origin, gint64 n)
{
  TinyPart part = { origin, find_axis (self, origin, n) };
  if (part.axis == self->n_items)
    self->items[self->n_items++]
        = tiny_node_range_const (self->cg->graph, self->n_numbers++, TINY_RANGE_GROUP, n);
  g_array_append_val (self->parts, part);
  return self->items[part.axis];
}

/* ---- reductions over items ---- */
/* How the parts lie in memory: copies, items along the last axes fastest, lanes. */
static guint
place_of (TinyNode *range)
{
  TinyRangeKind kind = tiny_range_get_kind (range);
  guint number = tiny_range_get_number (range);
  return kind == TINY_RANGE_LANES   ? 2u << 28
         : kind == TINY_RANGE_GROUP ? (1u << 28) + (1u << 28) - 1 - number
                                    : number;
}

typedef struct {
  TinyNode *ranges[MAX_RANGES], *loops[MAX_RANGES]; /* of the place in memory; around it */
  guint n, n_loops;
} Place;

/* The loops that the REDUCE is in, up to the innermost that changes it: all that come before in the
 * store it is for. */
static void
find_loops (TinyAxes *self, TinyNode *value, TinyNode *store, Place *out)
{
  TinyGraph *graph = self->cg->graph;
  guint end = 0;
  for (guint i = 0; i < self->n_outputs; i++)
    if (tiny_node_depends_on (graph, value, tiny_axes_get (self, i)->node))
      end = i + 1;
  for (guint i = 0; i < end; i++) {
    TinyAxis *axis = tiny_axes_get (self, i);
    if (axis->node->op == TINY_OP_RANGE && tiny_node_depends_on (graph, store, axis->origin)
        && out->n_loops < MAX_RANGES)
      out->loops[out->n_loops++] = axis->node;
  }
}

static void
find_place (TinyAxes *self, TinyNode *value, TinyNode *store, Place *out)
{
  guint n;
  TinyNode *const *ranges = tiny_node_get_ranges (self->cg->graph, value, &n);
  *out = (Place){ .n = 0 };
  find_loops (self, value, store, out);
  for (guint i = 0; i < n; i++) {
    TinyRangeKind kind = tiny_range_get_kind (ranges[i]);
    if (kind != TINY_RANGE_GROUP && kind != TINY_RANGE_UPCAST && kind != TINY_RANGE_LANES)
      continue;
    g_assert (out->n < MAX_RANGES);
    guint at = out->n++;
    for (; at > 0 && place_of (out->ranges[at - 1]) > place_of (ranges[i]); at--)
      out->ranges[at] = out->ranges[at - 1];
    out->ranges[at] = ranges[i];
  }
}

/* Stores @value at @index of @n elements, @gate or NULL saying whether, and returns the memory. */
static TinyNode *
store_parts (
    TinyAxes *self, TinyNode *value, TinyNode *index, TinyNode *gate, const Place *place)
{
  TinyGraph *graph = self->cg->graph;
  gint64 n = 1;
  for (guint i = 0; i < place->n; i++)
    n *= tiny_range_get_extent (place->ranges[i]);
  TinyNode *memory
      = tiny_node_new (graph, TINY_OP_LOCAL, value->dtype, 1, place->n_loops, place->loops,
                       self->n_locals++, tiny_graph_ints (graph, &n, 1), NULL);
  TinyNode *sources[] = { memory, index, value, gate };
  TinyNode *store = tiny_node_new (graph, TINY_OP_STORE, TINY_DTYPE_VOID, 1, gate ? 4 : 3,
                                   sources, 0, NULL, NULL);
  g_ptr_array_add (self->fills, tiny_axes_gate_items (self, store));
  return memory;
}

static TinyNode *
combine_parts (TinyAxes *self,
               TinyOp op,
               TinyNode *memory,
               TinyNode *index,
               TinyNode *const *loops,
               guint n)
{
  TinyGraph *graph = self->cg->graph;
  TinyNode *sources[TINY_GROUP_AXES + 1], *at[] = { memory, index };
  sources[0] = tiny_node_new (graph, TINY_OP_LOAD, memory->dtype, 1, 2, at, 0, NULL, NULL);
  for (guint i = 0; i < n; i++)
    sources[i + 1] = loops[i];
  return tiny_node_new (graph, TINY_OP_REDUCE, memory->dtype, 1, n + 1, sources, op, NULL,
                        NULL);
}

static TinyNode *
fresh_loop (TinyAxes *self, gint64 n)
{
  return tiny_node_range_const (self->cg->graph, self->n_numbers++,
                                n <= MAX_UNROLLED ? TINY_RANGE_UNROLL : TINY_RANGE_REDUCE, n);
}

/* How many of @n parts are left for the second step; @n: there is only one. */
static gint64
count_left (gint64 n)
{
  gint64 steps = 1;
  for (gint64 i = 2; i * i <= n && n > MAX_AT_ONCE; i++)
    if (n % i == 0)
      steps = i;
  return n / steps;
}

TinyNode *
tiny_axes_combine_items (TinyAxes *self,
                         TinyOp op,
                         TinyNode *value,
                         TinyNode *store,
                         TinyNode *const *items,
                         guint n)
{
  TinyGraph *graph = self->cg->graph;
  TinyNode *loops[TINY_GROUP_AXES], *item = items[0];
  gint64 extent = tiny_range_get_extent (item), left = extent;
  if (n == 1 && tiny_node_depends_on (graph, value, item))
    left = count_left (extent);
  Place place;
  find_place (self, value, store, &place);
  TinyNode *index = tiny_axes_flatten (self, place.ranges, place.n, 1);
  TinyNode *memory = store_parts (self, value, index, NULL, &place);
  for (guint i = 0; i < n; i++)
    loops[i] = fresh_loop (self, n == 1 ? left : tiny_range_get_extent (items[i]));
  if (left < extent) {
    /* The first items combine every so manieth part, the others the same in vain. */
    TinyNode *first = tiny_node_const_index (graph, left),
             *step = fresh_loop (self, extent / left);
    TinyNode *own = tiny_fold_binary (graph, TINY_OP_FLOORMOD, item, first);
    TinyNode *from = tiny_axes_add_scaled (graph, own, step, left);
    value = combine_parts (self, op, memory,
                           tiny_codegen_replace (graph, index, &item, &from, 1), &step, 1);
    for (guint i = 0; i < place.n; i++)
      place.ranges[i] = place.ranges[i] == item ? loops[0] : place.ranges[i];
    index = tiny_axes_flatten (self, place.ranges, place.n, 1);
    memory = store_parts (self, value, tiny_codegen_replace (graph, index, loops, &item, 1),
                          tiny_fold_binary (graph, TINY_OP_CMPLT, item, first), &place);
    return combine_parts (self, op, memory, index, loops, 1);
  }
  return combine_parts (self, op, memory, tiny_codegen_replace (graph, index, items, loops, n),
                        loops, n);
}

/* ---- how much memory that takes ---- */
/* Whether a REDUCE over @origin is one over items, or would be one over @more as well. */
static gboolean
is_over_items (TinyAxes *self, const TinyNode *reduce, const TinyNode *more)
{
  for (guint s = 1; s < reduce->n_sources; s++) {
    if (reduce->sources[s] == more)
      return TRUE;
    for (guint i = 0; i < self->parts->len; i++)
      if (g_array_index (self->parts, TinyPart, i).origin == reduce->sources[s])
        return TRUE;
  }
  return FALSE;
}

gint64
tiny_axes_count_part_bytes (TinyAxes *self, TinyNode *origin, gint64 amount, TinyRangeKind kind)
{
  TinyGraph *graph = self->cg->graph;
  gboolean is_group = kind == TINY_RANGE_GROUP;
  gint64 n_items
      = is_group && origin != NULL && find_axis (self, origin, amount) == self->n_items ? amount
                                                                                        : 1;
  gint64 sum = 0;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &self->root, 1);
  for (guint i = 0; i < self->n_items; i++)
    n_items *= tiny_range_get_extent (self->items[i]);
  for (guint i = 0; i < order->len && n_items > 1; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op != TINY_OP_REDUCE || !is_over_items (self, node, is_group ? origin : NULL))
      continue;
    gint64 n = n_items * (gint64) tiny_dtype_get_n_bytes (node->dtype);
    for (guint o = 0; o < self->origins->len; o++) {
      const TinyOrigin *other = &g_array_index (self->origins, TinyOrigin, o);
      if (!tiny_node_depends_on (graph, node, other->range))
        continue;
      n *= other->range == origin && !is_group ? amount : 1;
      for (guint j = 0; j < other->inner->len; j++)
        if (tiny_range_get_kind (other->inner->pdata[j]) != TINY_RANGE_GROUP)
          n *= tiny_range_get_extent (other->inner->pdata[j]);
    }
    sum += 2 * ((n + 63) & ~G_GINT64_CONSTANT (63)); /* of both steps */
  }
  return sum;
}

/* ---- stores ---- */
static gboolean
is_stored (TinyAxes *self, const TinyNode *memory)
{
  for (guint i = 0; i < self->root->n_sources; i++)
    if (memory->op == TINY_OP_PARAM && self->root->sources[i]->sources[0] == memory)
      return TRUE;
  return FALSE;
}

/* @value for a store by the items that pass @gate: the others do not read what these write. */
static TinyNode *
gate_loads (TinyAxes *self, TinyNode *value, TinyNode *gate)
{
  TinyGraph *graph = self->cg->graph;
  g_autoptr (GPtrArray) loads = g_ptr_array_new (), gated = g_ptr_array_new ();
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &value, 1);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *load = order->pdata[i];
    if (load->op != TINY_OP_LOAD || !is_stored (self, load->sources[0]))
      continue;
    gboolean has_gate = load->n_sources > 2;
    TinyNode *sources[]
        = { load->sources[0], load->sources[1],
            has_gate ? tiny_fold_binary (graph, TINY_OP_AND, load->sources[2], gate) : gate,
            has_gate ? load->sources[3] : tiny_node_const_int (graph, load->dtype, 0) };
    g_ptr_array_add (loads, load);
    g_ptr_array_add (gated, tiny_node_new (graph, TINY_OP_LOAD, load->dtype, load->lanes, 4,
                                           sources, load->arg, NULL, NULL));
  }
  if (loads->len == 0)
    return value;
  return tiny_graph_substitute (graph, value, (TinyNode *const *) loads->pdata,
                                (TinyNode *const *) gated->pdata, loads->len);
}

TinyNode *
tiny_axes_gate_items (TinyAxes *self, TinyNode *store)
{
  TinyGraph *graph = self->cg->graph;
  TinyNode *sources[4], *gate = store->n_sources > 3 ? store->sources[3] : NULL, *items = NULL;
  for (guint i = 0; i < self->n_items; i++) {
    if (tiny_node_depends_on (graph, store, self->items[i]))
      continue;
    TinyNode *first = tiny_fold_binary (graph, TINY_OP_CMPLT, self->items[i],
                                        tiny_node_const_index (graph, 1));
    gate = gate ? tiny_fold_binary (graph, TINY_OP_AND, gate, first) : first;
    items = items ? tiny_fold_binary (graph, TINY_OP_AND, items, first) : first;
  }
  for (guint i = 0; i < 3; i++)
    sources[i] = store->sources[i];
  sources[2] = items ? gate_loads (self, sources[2], items) : sources[2];
  sources[3] = gate;
  return tiny_node_new (graph, TINY_OP_STORE, TINY_DTYPE_VOID, 1, gate ? 4 : 3, sources,
                        store->arg, NULL, NULL);
}
