/* SPDX-License-Identifier: MIT
 *
 * pass-optimise.c: applies optimisations to a kernel's axes.
 *
 * An optimisation rewrites what a range of the kernel stands for: splitting n off range r makes it
 * outer * n + inner. The kernel itself is rebuilt once, at the end, with each range replaced by
 * its expression.
 *
 * A padded axis runs past the end of its range. Where that can be, its last block begins earlier
 * instead, over the end of the one before, and stores the same values there again. Otherwise loads
 * and stores that depend on it are gated off past the end, and what a REDUCE over it combines
 * there is the neutral element. */
#include "optimise.h"

#include <string.h>

#include "base/tiny-error.h"
#include "rewrite/tiny-bounds.h"

static void
origin_clear (gpointer data)
{
  g_ptr_array_unref (((TinyOrigin *) data)->inner);
}

static void
add_axis (TinyAxes *self, TinyNode *range, gboolean is_reduce)
{
  for (guint i = 0; i < self->axes->len; i++)
    if (tiny_axes_get (self, i)->origin == range)
      return;
  TinyAxis axis = { range, range, tiny_range_get_extent (range),
                    is_reduce ? TINY_RANGE_REDUCE : TINY_RANGE_LOOP, is_reduce };
  TinyOrigin origin = { range, range, 0, 0, g_ptr_array_new () };
  g_array_append_val (self->axes, axis);
  g_array_append_val (self->origins, origin);
  self->n_outputs += !is_reduce;
}

TinyAxes *
tiny_axes_new (TinyCodegen *cg)
{
  TinyAxes *self = g_new0 (TinyAxes, 1);
  self->cg = cg;
  self->n_numbers = tiny_codegen_count_ranges (cg->graph, cg->root);
  self->axes = g_array_new (FALSE, FALSE, sizeof (TinyAxis));
  self->origins = g_array_new (FALSE, FALSE, sizeof (TinyOrigin));
  g_array_set_clear_func (self->origins, origin_clear);
  self->stages = g_array_new (FALSE, FALSE, sizeof (TinyStage));
  self->fills = g_ptr_array_new ();
  self->stores = g_ptr_array_new ();
  self->parts = g_array_new (FALSE, FALSE, sizeof (TinyPart));
  self->locals = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  tiny_axes_set_root (self, cg->root);
  return self;
}

void
tiny_axes_set_root (TinyAxes *self, TinyNode *root)
{
  TinyGraph *graph = self->cg->graph;
  self->root = root;
  self->n_outputs = 0;
  self->n_locals = 0;
  g_array_set_size (self->axes, 0);
  g_array_set_size (self->origins, 0);
  for (guint i = 0; i < root->n_sources; i++) {
    guint n;
    g_autofree TinyNode **loops = tiny_codegen_get_loops (graph, root->sources[i], &n);
    TinyNode *memory = root->sources[i]->sources[0];
    if (memory->op == TINY_OP_LOCAL)
      self->n_locals = MAX (self->n_locals, (guint) memory->arg + 1);
    for (guint j = 0; j < n; j++)
      add_axis (self, loops[j], FALSE);
  }
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &root, 1);
  for (guint i = order->len; i-- > 0;) {
    TinyNode *node = order->pdata[i];
    for (guint s = 1; s < node->n_sources && node->op == TINY_OP_REDUCE; s++)
      add_axis (self, node->sources[s], TRUE);
  }
}

void
tiny_axes_free (TinyAxes *self)
{
  if (self == NULL)
    return;
  g_array_unref (self->axes);
  g_array_unref (self->stages);
  g_ptr_array_unref (self->fills);
  g_ptr_array_unref (self->stores);
  g_array_unref (self->parts);
  g_hash_table_unref (self->locals);
  g_array_unref (self->origins);
  g_free (self);
}

int
tiny_axes_find (TinyAxes *self, TinyNode *origin)
{
  for (guint i = 0; i < self->axes->len; i++)
    if (tiny_axes_get (self, i)->origin == origin)
      return (int) i;
  return -1;
}

TinyOrigin *
tiny_axes_find_origin (TinyAxes *self, TinyNode *range)
{
  for (guint i = 0; i < self->origins->len; i++) {
    TinyOrigin *origin = &g_array_index (self->origins, TinyOrigin, i);
    if (origin->range == range)
      return origin;
  }
  return NULL;
}

/* ---- applying one ---- */
static TinyNode *
fresh_range (TinyAxes *self, TinyRangeKind kind, gint64 extent)
{
  if (extent == 1)
    return tiny_node_const_index (self->cg->graph, 0);
  return tiny_node_range_const (self->cg->graph, self->n_numbers++, kind, extent);
}

/* Makes @axis stand for @node of @extent; it was @replacement (over @node) before. */
static void
change_axis (
    TinyAxes *self, TinyAxis *axis, TinyNode *node, gint64 extent, TinyNode *replacement)
{
  TinyOrigin *origin = tiny_axes_find_origin (self, axis->origin);
  origin->expression = tiny_codegen_replace (self->cg->graph, origin->expression, &axis->node,
                                             &replacement, 1);
  axis->node = node;
  axis->extent = extent;
}

/* Splits @n off: the axis keeps the outer part, the inner one is returned. */
static TinyNode *
split_axis (TinyAxes *self, TinyAxis *axis, TinyRangeKind kind, gint64 n)
{
  TinyGraph *graph = self->cg->graph;
  TinyNode *outer = fresh_range (self, axis->kind, axis->extent / n);
  TinyNode *inner = kind == TINY_RANGE_GROUP && n > 1
                        ? tiny_axes_take_items (self, axis->origin, n)
                        : fresh_range (self, kind, n);
  TinyNode *scaled
      = tiny_fold_binary (graph, TINY_OP_MUL, outer, tiny_node_const_index (graph, n));
  change_axis (self, axis, outer, axis->extent / n,
               tiny_fold_binary (graph, TINY_OP_ADD, scaled, inner));
  return inner;
}

gboolean
tiny_axes_all_stores_depend_on (TinyAxes *self, TinyNode *origin)
{
  TinyNode *root = self->root;
  for (guint i = 0; i < root->n_sources; i++)
    if (!tiny_node_depends_on (self->cg->graph, root->sources[i], origin))
      return FALSE;
  return TRUE;
}

gboolean
tiny_axes_involves (TinyGraph *graph, TinyNode *node, TinyNode *range)
{
  for (guint i = 1; i < node->n_sources && node->op == TINY_OP_REDUCE; i++)
    if (node->sources[i] == range)
      return TRUE;
  return tiny_node_depends_on (graph, node, range);
}

gboolean
tiny_axes_can_have_lanes (TinyAxes *self, TinyNode *range)
{
  TinyGraph *graph = self->cg->graph;
  g_autoptr (GPtrArray) others = g_ptr_array_new ();
  for (guint i = 0; i < self->origins->len; i++) {
    TinyOrigin *origin = &g_array_index (self->origins, TinyOrigin, i);
    for (guint j = 0; j < origin->inner->len; j++)
      if (tiny_range_get_kind (origin->inner->pdata[j]) == TINY_RANGE_LANES)
        g_ptr_array_add (others, origin->range);
  }
  if (others->len == 0)
    return TRUE;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &self->root, 1);
  for (guint i = 0; i + 1 < order->len; i++) /* stores have lanes each for itself */
    if (tiny_axes_involves (graph, order->pdata[i], range))
      for (guint j = 0; j < others->len; j++)
        if (others->pdata[j] == range
            || tiny_axes_involves (graph, order->pdata[i], others->pdata[j]))
          return FALSE;
  return TRUE;
}

gboolean
tiny_axes_fit_grid (TinyAxes *self, guint i, gint64 extent)
{
  g_autoptr (GArray) extents = g_array_new (FALSE, FALSE, sizeof (gint64));
  TinyGrid unused;
  for (guint j = self->n_outputs; j-- > 0;) {
    const TinyAxis *other = tiny_axes_get (self, j);
    if (j == i)
      g_array_append_val (extents, extent);
    else if (other->kind == TINY_RANGE_GRID)
      g_array_append_val (extents, other->extent);
  }
  return tiny_grid_lay_out (self->cg->target, (gint64 *) extents->data, extents->len, &unused);
}

/* Why @opt does not fit, or NULL. */
static const char *
find_objection (TinyAxes *self, TinyOpt opt, TinyAxis *axis)
{
  gboolean splits = opt.kind == TINY_OPT_LANES || opt.kind == TINY_OPT_UPCAST
                    || opt.kind == TINY_OPT_UNROLL || opt.kind == TINY_OPT_SPLIT
                    || opt.kind == TINY_OPT_GROUP;
  gint64 amount = opt.amount ? opt.amount : axis->extent;
  gboolean moves
      = opt.kind == TINY_OPT_SPLIT || opt.kind == TINY_OPT_SWAP || opt.kind == TINY_OPT_PAD;
  if (opt.kind == TINY_OPT_MERGE)
    return tiny_axes_object_to_merge (self, opt);
  if (opt.kind == TINY_OPT_STAGE)
    return tiny_axes_object_to_stage (self, opt);
  for (guint i = 0; i < self->stages->len; i++)
    if (moves
        || (opt.kind == TINY_OPT_GRID
            && opt.axis >= g_array_index (self->stages, TinyStage, i).n_outside))
      return "an operand is staged outside of it";
  if (axis->kind != TINY_RANGE_LOOP && axis->kind != TINY_RANGE_REDUCE)
    return "the axis is on the grid";
  if (opt.amount < 0
      || (splits && opt.amount == 0 && opt.kind != TINY_OPT_UPCAST
          && opt.kind != TINY_OPT_GROUP))
    return "the amount is not positive";
  if (splits && opt.amount > 0 && axis->extent % opt.amount != 0)
    return "the amount does not divide the axis";
  switch (opt.kind) {
  case TINY_OPT_LANES:
    return opt.amount > self->cg->target->max_lanes ? "the target has fewer lanes"
           : !tiny_axes_fit_local (self, opt.axis, amount, TINY_RANGE_LANES)
               ? "the kernel's own memory would not fit"
           : !tiny_axes_can_have_lanes (self, axis->origin)
               ? "values have lanes along another axis"
               : NULL;
  case TINY_OPT_UPCAST:
    return axis->is_reduce      ? "the axis is reduced"
           : amount > G_MAXINT8 ? "it makes too many copies"
           : !tiny_axes_fit_local (self, opt.axis, amount, TINY_RANGE_UPCAST)
               ? "the kernel's own memory would not fit"
               : NULL;
  case TINY_OPT_UNROLL:
    return !axis->is_reduce         ? "the axis is not reduced"
           : opt.amount > G_MAXINT8 ? "it makes too many copies"
           : !tiny_axes_fit_local (self, opt.axis, amount, TINY_RANGE_UNROLL)
               ? "the kernel's own memory would not fit"
               : NULL;
  case TINY_OPT_GROUP:
    return amount > 1 ? tiny_axes_object_to_group (self, opt.axis, amount) : NULL;
  case TINY_OPT_PAD:
    return opt.amount < 1 || axis->extent > G_MAXINT64 / 4 / opt.amount
               ? "the amount is no size"
           : axis->node != axis->origin ? "the axis was split"
                                        : NULL;
  case TINY_OPT_GRID:
    return axis->is_reduce ? "the axis is reduced"
           : !tiny_axes_all_stores_depend_on (self, axis->origin)
               ? "a store does not have the axis"
           : !tiny_axes_fit_grid (self, opt.axis, axis->extent) ? "the target's grid is smaller"
                                                                : NULL;
  case TINY_OPT_SWAP: {
    if (opt.amount >= self->axes->len)
      return "there is no such axis";
    TinyAxis *other = tiny_axes_get (self, opt.amount);
    return other->is_reduce != axis->is_reduce ? "one axis is reduced and the other is not"
           : !axis->is_reduce
                   && (!tiny_axes_all_stores_depend_on (self, axis->origin)
                       || !tiny_axes_all_stores_depend_on (self, other->origin))
               ? "a store does not have the axis"
               : NULL;
  }
  default:
    return NULL;
  }
}

static void
pad_axis (TinyAxes *self, TinyAxis *axis, gint64 multiple)
{
  gint64 padded = (axis->extent + multiple - 1) / multiple * multiple;
  if (padded == axis->extent)
    return;
  tiny_axes_find_origin (self, axis->origin)->valid = axis->extent;
  tiny_axes_find_origin (self, axis->origin)->multiple = multiple;
  TinyNode *node = fresh_range (self, axis->kind, padded);
  change_axis (self, axis, node, padded, node);
}

gboolean
tiny_axes_apply (TinyAxes *self, TinyOpt opt, GError **error)
{
  static const TinyRangeKind kinds[TINY_N_OPTS] = { [TINY_OPT_LANES] = TINY_RANGE_LANES,
                                                    [TINY_OPT_UPCAST] = TINY_RANGE_UPCAST,
                                                    [TINY_OPT_UNROLL] = TINY_RANGE_UNROLL,
                                                    [TINY_OPT_GROUP] = TINY_RANGE_GROUP };
  gboolean known = (guint) opt.kind < TINY_N_OPTS, exists = opt.axis < self->axes->len;
  TinyAxis *axis = exists ? tiny_axes_get (self, opt.axis) : NULL;
  const char *why = !known    ? "there is no such kind"
                    : !exists ? "there is no such axis"
                              : find_objection (self, opt, axis);
  if (why == NULL)
    why = tiny_axes_object_to_size (self, opt, kinds[opt.kind]);
  if (why != NULL) {
    g_autofree char *text = known ? tiny_opts_to_string (&opt, 1) : g_strdup ("optimisation");
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "%s: %s", text, why);
    return FALSE;
  }
  if (opt.kind == TINY_OPT_MERGE) {
    tiny_axes_merge (self, opt.axis);
  } else if (opt.kind == TINY_OPT_PAD) {
    pad_axis (self, axis, opt.amount);
  } else if (opt.kind == TINY_OPT_GRID) {
    axis->kind = TINY_RANGE_GRID;
  } else if (opt.kind == TINY_OPT_STAGE) {
    TinyStage stage = tiny_axes_get_stage (self, opt);
    g_array_append_val (self->stages, stage);
  } else if (opt.kind == TINY_OPT_SWAP) {
    TinyAxis *other = tiny_axes_get (self, opt.amount), saved = *axis;
    *axis = *other;
    *other = saved;
  } else if (opt.kind == TINY_OPT_SPLIT) {
    TinyAxis inner = *axis;
    inner.node = split_axis (self, axis, axis->kind, opt.amount);
    inner.extent = opt.amount;
    self->n_outputs += !axis->is_reduce;
    g_array_insert_val (self->axes, opt.axis + 1, inner);
  } else {
    gint64 amount = opt.amount ? opt.amount : axis->extent;
    TinyNode *inner = split_axis (self, axis, kinds[opt.kind], amount);
    if (amount > 1)
      g_ptr_array_add (tiny_axes_find_origin (self, axis->origin)->inner, inner);
  }
  g_array_append_val (self->cg->applied, opt);
  return TRUE;
}

/* ---- the kernel over them ---- */
/* Gives every remaining axis a range whose number is its place, so that loops nest in that order. */
static void
number_axes (TinyAxes *self)
{
  for (guint i = 0; i < self->axes->len; i++) {
    TinyAxis *axis = tiny_axes_get (self, i);
    TinyNode *node = axis->extent == 1
                         ? tiny_node_const_index (self->cg->graph, 0)
                         : tiny_node_range_const (self->cg->graph, i + self->n_numbers,
                                                  axis->kind, axis->extent);
    change_axis (self, axis, node, axis->extent, node);
  }
  self->n_numbers += self->axes->len;
}

/* @made reads what the kernel's @load read: from a copy, if it is staged. */
static TinyNode *
stage_load (TinyAxes *self, TinyNode *load, TinyNode *made)
{
  for (guint i = 0; i < self->stages->len; i++) {
    const TinyStage *stage = &g_array_index (self->stages, TinyStage, i);
    if (stage->load == load)
      return tiny_axes_stage (self, stage, made);
  }
  return made;
}

static TinyNode *
collect_stores (TinyAxes *self)
{
  TinyGraph *graph = self->cg->graph;
  for (guint i = 0; i < self->fills->len; i++)
    tiny_axes_insert_fill (graph, self->stores, self->fills->pdata[i]);
  return tiny_node_sink (graph, self->stores->len, (TinyNode *const *) self->stores->pdata,
                         self->root->text);
}

/* Of the kernel's @order, the STORE that node @i is made for first. */
static TinyNode *
store_of (GPtrArray *order, guint i)
{
  while (((TinyNode *) order->pdata[i])->op != TINY_OP_STORE)
    i++;
  return order->pdata[i];
}

/* Whether storing an element twice, at other lanes, changes nothing: no address takes the range
 * apart, and nothing is read that is written. */
static gboolean
can_overlap (TinyAxes *self, TinyNode *range)
{
  TinyGraph *graph = self->cg->graph;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &self->root, 1);
  gint64 stride;
  if (!(self->cg->target->flags & TINY_TARGET_UNALIGNED)
      || !tiny_axes_all_stores_depend_on (self, range))
    return FALSE;
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op != TINY_OP_LOAD && node->op != TINY_OP_STORE)
      continue;
    if (!tiny_index_stride (graph, node->sources[1], range, &stride))
      return FALSE;
    gboolean may_alias = node->op == TINY_OP_LOAD && node->sources[0]->op == TINY_OP_PARAM;
    for (guint s = 0; s < self->root->n_sources && may_alias; s++)
      if (self->root->sources[s]->sources[0] == node->sources[0])
        return FALSE;
  }
  return TRUE;
}

/* Makes blocks of the padded range begin where the last one still fits: in range = block + rest,
 * block becomes min (block, valid - multiple). */
static void
overlap_blocks (TinyAxes *self, TinyOrigin *origin)
{
  TinyGraph *graph = self->cg->graph;
  guint n, n_inside = 0;
  TinyNode *const *ranges = tiny_node_get_ranges (graph, origin->expression, &n);
  g_autofree TinyNode **inside = g_new (TinyNode *, n + 1);
  g_autofree TinyNode **zeros = g_new (TinyNode *, n + 1);
  gint64 stride, n_covered = 1;
  if (origin->valid < origin->multiple || !can_overlap (self, origin->range))
    return;
  for (guint i = 0; i < n; i++)
    if (!tiny_index_stride (graph, origin->expression, ranges[i], &stride))
      return;
    else if (stride < origin->multiple) {
      n_covered *= tiny_range_get_extent (ranges[i]);
      zeros[n_inside] = tiny_node_const_index (graph, 0);
      inside[n_inside++] = ranges[i];
    }
  if (n_covered != origin->multiple)
    return;
  TinyNode *block = tiny_codegen_replace (graph, origin->expression, inside, zeros, n_inside);
  TinyNode *last = tiny_node_const_index (graph, origin->multiple - origin->valid);
  TinyNode *minus_one = tiny_node_const_index (graph, -1);
  TinyNode *negative = tiny_fold_binary (graph, TINY_OP_MUL, block, minus_one);
  TinyNode *begin = tiny_fold_binary (
      graph, TINY_OP_MUL, tiny_fold_binary (graph, TINY_OP_MAX, negative, last), minus_one);
  TinyNode *zero = tiny_node_const_index (graph, 0), *rest = origin->expression;
  for (guint i = 0; i < n; i++)
    if (tiny_index_stride (graph, block, ranges[i], &stride) && stride != 0)
      rest = tiny_codegen_replace (graph, rest, &ranges[i], &zero, 1);
  origin->expression = tiny_fold_binary (graph, TINY_OP_ADD, begin, rest);
  origin->valid = 0;
}

/* The gates of @node's padded ranges among those for which @closed says so, and'ed to @gate. */
static TinyNode *
add_gates (TinyAxes *self, TinyNode *gate, TinyNode *const *ranges, guint n)
{
  TinyGraph *graph = self->cg->graph;
  for (guint i = 0; i < n; i++) {
    TinyOrigin *origin = tiny_axes_find_origin (self, ranges[i]);
    if (origin == NULL || origin->valid == 0)
      continue;
    TinyNode *valid = tiny_fold_binary (graph, TINY_OP_CMPLT, origin->expression,
                                        tiny_node_const_index (graph, origin->valid));
    gate = gate ? tiny_fold_binary (graph, TINY_OP_AND, gate, valid) : valid;
  }
  return gate;
}

static TinyNode *
rebuild_access (TinyAxes *self, TinyNode *node, TinyNode **sources)
{
  TinyGraph *graph = self->cg->graph;
  tiny_axes_move_local (self, node->sources[0], sources);
  guint n_ranges, at = node->op == TINY_OP_LOAD ? 2 : 3;
  TinyNode *const *ranges = tiny_node_get_ranges (graph, node, &n_ranges);
  TinyNode *given = node->n_sources > at ? sources[at] : NULL;
  if (node->op == TINY_OP_LOAD && sources[0]->ints != NULL && sources[0]->ints->n > 0) {
    /* What stays inside the buffer needs no gate: nobody uses the value. */
    gint64 lowest, highest;
    tiny_node_get_bounds (sources[1], &lowest, &highest);
    if (lowest >= 0 && highest < sources[0]->ints->v[0])
      return tiny_fold_node (graph, node, 1, sources);
  }
  sources[at] = add_gates (self, given, ranges, n_ranges);
  if (sources[at] == given)
    return tiny_fold_node (graph, node, 1, sources);
  if (given == NULL && at == 2)
    sources[3] = tiny_node_const_int (graph, node->dtype, 0);
  TinyNode *gated
      = tiny_node_new (graph, node->op, node->dtype, 1, 4, sources, node->arg, NULL, NULL);
  return tiny_fold_node (graph, gated, 1, sources);
}

static TinyNode *
rebuild_reduce (TinyAxes *self, TinyNode *node, TinyNode *value, TinyNode *store)
{
  TinyGraph *graph = self->cg->graph;
  TinyNode *items[TINY_GROUP_AXES];
  guint n_items = 0;
  g_autoptr (GPtrArray) sources = g_ptr_array_new ();
  TinyNode *gate = add_gates (self, NULL, node->sources + 1, node->n_sources - 1);
  if (gate != NULL)
    value = tiny_node_where (graph, gate, value,
                             tiny_reduce_identity (graph, node->arg, node->dtype, 1));
  g_ptr_array_add (sources, value);
  for (guint i = 0; i < self->axes->len; i++)
    for (guint s = 1; s < node->n_sources; s++)
      if (tiny_axes_get (self, i)->origin == node->sources[s]
          && tiny_axes_get (self, i)->node->op == TINY_OP_RANGE)
        g_ptr_array_add (sources, tiny_axes_get (self, i)->node);
  for (guint s = 1; s < node->n_sources; s++) {
    GPtrArray *inner = tiny_axes_find_origin (self, node->sources[s])->inner;
    for (guint i = 0; i < inner->len; i++)
      if (tiny_range_get_kind (inner->pdata[i]) == TINY_RANGE_GROUP)
        items[n_items++] = inner->pdata[i];
      else
        g_ptr_array_add (sources, inner->pdata[i]);
  }
  if (sources->len > 1 || n_items == 0)
    value = tiny_node_new (graph, TINY_OP_REDUCE, node->dtype, 1, sources->len,
                           (TinyNode *const *) sources->pdata, node->arg, NULL, NULL);
  return n_items > 0 ? tiny_axes_combine_items (self, node->arg, value, store, items, n_items)
                     : value;
}

TinyNode *
tiny_axes_build (TinyAxes *self)
{
  TinyGraph *graph = self->cg->graph;
  g_auto (TinyNodeMap) map = { 0 };
  number_axes (self);
  for (guint i = 0; i < self->origins->len; i++)
    overlap_blocks (self, &g_array_index (self->origins, TinyOrigin, i));
  for (guint i = 0; i < self->root->n_sources; i++) {
    TinyNode *store = self->root->sources[i];
    if (store->sources[0]->op == TINY_OP_LOCAL)
      tiny_axes_grow_local (self, store->sources[0]);
  }
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &self->root, 1);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i], *made;
    g_autofree TinyNode **many
        = node->n_sources > 6 ? g_new (TinyNode *, node->n_sources) : NULL;
    TinyNode *few[6], **sources = many ? many : few;
    for (guint s = 0; s < node->n_sources; s++)
      sources[s] = tiny_node_map_get (&map, node->sources[s]);
    if (node->op == TINY_OP_RANGE)
      made = tiny_axes_find_origin (self, node)->expression;
    else if (node->op == TINY_OP_REDUCE)
      made = rebuild_reduce (self, node, sources[0], store_of (order, i));
    else if (node->op == TINY_OP_LOAD || node->op == TINY_OP_STORE)
      made = stage_load (self, node, rebuild_access (self, node, sources));
    else
      made = tiny_fold_node (graph, node, 1, sources);
    tiny_node_map_set (&map, node, made);
    if (node->op == TINY_OP_STORE)
      g_ptr_array_add (self->stores, tiny_axes_gate_items (self, made));
  }
  return collect_stores (self);
}

gboolean
tiny_pass_optimise (TinyCodegen *cg, GError **error)
{
  g_autoptr (TinyAxes) axes = tiny_axes_new (cg);
  for (guint i = 0; i < cg->n_opts; i++)
    if (!tiny_axes_apply (axes, cg->opts[i], error))
      return FALSE;
  if (cg->heuristic)
    tiny_axes_optimise (axes);
  if (cg->applied->len > 0)
    cg->root = tiny_axes_build (axes);
  return TRUE;
}
