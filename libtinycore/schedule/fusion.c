/* SPDX-License-Identifier: MIT
 *
 * fusion.c: which values are kept in memory between kernels.
 *
 * Forward, an estimate for each node of the operations and bytes that one evaluation takes when
 * all below is fused, except where an expansion makes that plainly wasteful. Backward from the
 * roots, users before sources, each node learns in which kernels and how many times it would be
 * evaluated; it is stored when computing it again there costs more than writing it once and
 * reading it back. The first node stored on a way down is the highest: a reduction takes its
 * epilogue along. */
#include <string.h>

#include "base/tiny-stats.h"
#include "schedule/claim.h"
#include "schedule/fusion.h"
#include "schedule/weights.h"

/* Fewer are computed again rather than stored. */
enum { FEW_OPERATIONS = 8 };

static gboolean
is_recomputed (Fusion *self, const TinyNode *node)
{
  return tiny_node_map_get (&self->plan->recomputed, node) != NULL;
}

/* ---- forward ---- */
static void
add_leaf (Info *info, guint32 place, double n_bytes)
{
  for (guint i = 0; i < info->n_leaves; i++)
    if (info->leaves[i] == place)
      return;
  info->leaf_bytes += n_bytes;
  if (info->n_leaves < MAX_LEAVES)
    info->leaves[info->n_leaves++] = place;
}

/* The estimate of @source becomes part of that of @info. */
static void
add_estimate (Fusion *self, Info *info, const Info *source)
{
  if (source->is_assumed) {
    info->operations += schedule_weights.access;
    add_leaf (info, (guint) (source - self->infos), source->n_bytes);
    return;
  }
  info->operations += source->operations;
  info->depth = MAX (info->depth, source->depth);
  info->n_folds = MAX (info->n_folds, source->n_folds);
  info->has_reduce = info->has_reduce || source->has_reduce;
  if (source->n_leaves == MAX_LEAVES) {
    info->leaf_bytes = MAX (info->leaf_bytes, source->leaf_bytes);
    return;
  }
  for (guint j = 0; j < source->n_leaves; j++)
    add_leaf (info, source->leaves[j], self->infos[source->leaves[j]].n_bytes);
}

/* Whether an EXPAND of @source to @n elements is of something rather stored than computed for each
 * copy. */
static gboolean
is_better_stored (const Info *source, double n)
{
  double again = (n - source->n) * source->operations;
  return source->n < n
         && (source->has_reduce
             || again > 2 * source->n_bytes * schedule_weights.byte + schedule_weights.launch);
}

/* The value below @info's order of elements is assumed to be stored by users that come later as well. */
static void
assume_below (Fusion *self, Info *info)
{
  while (info->node->op == TINY_OP_RESHAPE || info->node->op == TINY_OP_PERMUTE
         || info->node->op == TINY_OP_FLIP)
    info = fusion_get_value (self, info, 0);
  info->is_assumed = TRUE;
}

static gboolean
has_mask (const TinyNode *node)
{
  if (node->op != TINY_OP_SHEAR)
    return node->op == TINY_OP_PAD;
  const gint64 *v = node->ints->v;
  gint64 size = node->shape->v[v[0]], steps = node->shape->v[v[1]];
  gint64 a = (size - 1) * v[2], b = (steps - 1) * v[3];
  return v[5] != 1 || v[4] + MIN (a, 0) + MIN (b, 0) < 0
         || v[4] + MAX (a, 0) + MAX (b, 0) >= node->sources[0]->shape->v[v[0]];
}

static double
count_reduced (const TinyNode *reduce)
{
  double n = 1;
  for (guint i = 0; i < reduce->ints->n; i++)
    n *= (double) reduce->sources[0]->shape->v[reduce->ints->v[i]];
  return n;
}

/* Whether RESHAPE @node does more to an index than to leave out axes of size 1. */
static gboolean
is_fold (const TinyNode *node)
{
  const TinyInts *from = node->sources[0]->shape, *to = node->shape;
  guint i = 0, j = 0;
  for (;; i++, j++) {
    while (i < from->n && from->v[i] == 1)
      i++;
    while (j < to->n && to->v[j] == 1)
      j++;
    if (i == from->n || j == to->n || from->v[i] != to->v[j])
      return i < from->n || j < to->n;
  }
}

/* True if the way down from @info's node is long enough for one kernel and goes on to be too long: a value that several
 * read is stored before one that a single node reads. */
static gboolean
is_long_enough (const Info *info)
{
  const guint most = schedule_weights.max_depth;
  return info->depth >= most
         || (info->n_users > 1 && 10 * info->depth >= 9 * most
             && info->depth + info->height >= most);
}

/* Whether the way down from @info's node is long enough for one kernel: walks over what a kernel computes go as deep
 * as that, conditions of paddings pile up, and quotients of quotients even more. Copies that an EXPAND makes are not
 * stored for it, if that can wait. */
static gboolean
is_deep (Fusion *self, const Info *info)
{
  const TinyNode *node = info->node;
  gboolean is_long = is_long_enough (info);
  if (!is_long && info->n_folds < schedule_weights.max_folds)
    return FALSE;
  return (is_long && tiny_op_is_elementwise (node->op))
         || (tiny_op_is_movement (node->op) && info->n <= fusion_get_value (self, info, 0)->n)
         || info->depth >= 2 * schedule_weights.max_depth;
}

static void
estimate (Fusion *self, Info *info)
{
  TinyNode *node = info->node;
  gboolean computes = tiny_op_is_elementwise (node->op) || node->op == TINY_OP_REDUCE;
  for (guint i = 0; i < info->n_values; i++) {
    Info *source = fusion_get_value (self, info, i);
    if (node->op == TINY_OP_EXPAND && !source->is_assumed
        && is_better_stored (source, info->n)) {
      assume_below (self, source);
      info->operations += schedule_weights.access;
      add_leaf (info, (guint) (source - self->infos), source->n_bytes);
    } else {
      add_estimate (self, info, source);
    }
  }
  info->depth++;
  info->n_folds += node->op == TINY_OP_RESHAPE && is_fold (node);
  if (tiny_op_is_elementwise (node->op)) {
    info->operations += schedule_get_op_cost (node->op);
  } else if (node->op == TINY_OP_REDUCE) {
    info->operations = (info->operations + 1) * MAX (count_reduced (node), 1);
    info->has_reduce = TRUE;
  } else if (has_mask (node) || node->op == TINY_OP_GATHER) {
    info->operations += schedule_weights.mask;
  }
  if (is_deep (self, info))
    info->is_forced = TRUE;
  info->is_assumed = info->is_forced || node->op == TINY_OP_PARAM || node->op == TINY_OP_COPY
                     || node->op == TINY_OP_CONTIGUOUS || node->op == TINY_OP_KERNEL
                     || (computes && info->has_reduce && info->n_users > 1);
}

/* ---- backward ---- */
/* @context comes behind those that @info has. What a node was given is free once it is decided on, so there are never
 * many, and all are near. */
static void
add_context (Fusion *self, Info *info, Context context)
{
  guint at = self->free;
  if (at == 0) {
    at = self->given->len;
    g_array_set_size (self->given, at + 1);
  } else {
    self->free = g_array_index (self->given, Given, at).next;
  }
  g_array_index (self->given, Given, at) = (Given){ context, 0 };
  if (info->contexts == 0)
    info->contexts = at;
  else
    g_array_index (self->given, Given, info->last).next = at;
  info->last = at;
}

/* Takes the contexts that @info was given, one for each kernel. */
static void
take_contexts (Fusion *self, Info *info)
{
  g_array_set_size (self->contexts, 0);
  for (guint at = info->contexts; at != 0; at = g_array_index (self->given, Given, at).next) {
    const Context context = g_array_index (self->given, Given, at).context;
    const guint place = self->places[context.kernel], n = self->contexts->len;
    Context *known = place < n ? &g_array_index (self->contexts, Context, place) : NULL;
    TINY_COUNT (n_looks, 1);
    if (known == NULL || known->kernel != context.kernel) {
      self->places[context.kernel] = n;
      g_array_append_val (self->contexts, context);
      continue;
    }
    if (known->by_movement || context.by_movement)
      known->evaluations += context.evaluations;
    else
      known->evaluations = MAX (known->evaluations, context.evaluations);
    known->in_reduce = known->in_reduce || context.in_reduce;
    known->by_movement = known->by_movement || context.by_movement;
    known->repeated = known->repeated || context.repeated;
  }
  if (info->contexts != 0) {
    g_array_index (self->given, Given, info->last).next = self->free;
    self->free = info->contexts;
    info->contexts = 0;
  }
}

/* How often the source of an EXPAND is evaluated for one evaluation of each of its elements: the
 * innermost axes cost nothing, their loops are inside. */
static double
count_hoisted (const TinyNode *expand)
{
  const TinyInts *from = expand->sources[0]->shape, *to = expand->shape;
  double n = 1;
  for (guint i = to->n; i-- > 0 && (from->v[i] == 1);)
    n *= (double) to->v[i];
  return n;
}

static void
pass_contexts (Fusion *self, Info *info)
{
  TinyNode *node = info->node;
  for (guint c = 0; c < self->contexts->len; c++) {
    for (guint i = 0; i < info->n_values; i++) {
      Info *source = fusion_get_value (self, info, i);
      Context context = g_array_index (self->contexts, Context, c);
      if (is_recomputed (self, node)) { /* by rows, in memory of the kernel */
        context.evaluations = MIN (context.evaluations, info->n);
        context.repeated = FALSE;
      }
      context.by_movement
          = tiny_op_is_movement (node->op) || (node->op == TINY_OP_GATHER && i == 0);
      if (node->op == TINY_OP_GATHER && i == 1) {
        context.in_reduce
            = TRUE; /* an address that a reduction of the other source depends on */
      } else if (node->op == TINY_OP_REDUCE) {
        context.evaluations *= count_reduced (node);
        context.in_reduce = TRUE;
      } else if (node->op == TINY_OP_EXPAND) {
        context.evaluations /= MAX (count_hoisted (node), 1);
        context.repeated = context.repeated || source->n < info->n;
      } else if (tiny_op_is_elementwise (node->op) && source->node->shape->n == 0) {
        context.evaluations = MIN (context.evaluations, 1);
        context.repeated = context.repeated || info->n > 1;
      }
      add_context (self, source, context);
    }
  }
}

static gboolean
same_loops (const TinyNode *a, const TinyNode *b)
{
  if (a->ints->n != b->ints->n)
    return FALSE;
  for (guint i = 0; i < a->ints->n; i++)
    if (a->sources[0]->shape->v[a->ints->v[i]] != b->sources[0]->shape->v[b->ints->v[i]])
      return FALSE;
  return TRUE;
}

/* Whether a REDUCE may be computed inside the one kernel that wants it. */
static gboolean
can_join_kernel (Fusion *self, Info *info, const Context *context)
{
  TinyNode **signature = &g_array_index (self->signatures, TinyNode *, context->kernel);
  if (*signature == NULL)
    *signature = info->node;
  return same_loops (*signature, info->node);
}

static gboolean
costs_less_stored (const Fusion *self, Info *info)
{
  double again = 0, n_users = self->contexts->len;
  double byte = schedule_weights.byte;
  for (guint i = 0; i < self->contexts->len; i++) {
    const Context *context = &g_array_index (self->contexts, Context, i);
    again += context->evaluations * info->operations + info->leaf_bytes * byte;
  }
  double stored = info->n * info->operations + info->leaf_bytes * byte
                  + (1 + n_users) * info->n_bytes * byte + schedule_weights.launch;
  for (guint i = 0; i < self->contexts->len; i++)
    stored += g_array_index (self->contexts, Context, i).evaluations * schedule_weights.access;
  self->costs[info - self->infos] = (Costs){ stored, again };
  info->is_weighed = TRUE;
  return again > stored;
}

/* Why a value above a REDUCE is stored, or NULL: the loops of the reduction would be repeated. */
static const char *
find_reduce_reason (Fusion *self, Info *info)
{
  const Context *context = &g_array_index (self->contexts, Context, 0);
  if (self->contexts->len > 1)
    return "several kernels read what a reduction gives";
  if (context->in_reduce)
    return "it is read in the loops of another reduction";
  if (context->repeated || context->evaluations > info->n * schedule_weights.even)
    return "each element is read several times, and would be reduced again each time";
  if (info->node->op == TINY_OP_REDUCE && !can_join_kernel (self, info, context))
    return "the kernel that reads it reduces over other loops";
  return NULL;
}

/* True if a kernel that reads @info's value is long enough without it: a compiler takes more than twice the time for
 * twice the length, and a launch is little beside so much work. A value that several nodes read is stored before one
 * that a single node reads, a large one that is made of little never. */
static gboolean
is_enough (Fusion *self, const Info *info)
{
  const guint most = schedule_weights.max_length;
  const double growth = schedule_weights.recompute_growth;
  guint length = 0;
  if (info->n_bytes > MAX (growth * info->leaf_bytes, schedule_weights.far_bytes))
    return FALSE;
  for (guint i = 0; i < self->contexts->len; i++) {
    const guint kernel = g_array_index (self->contexts, Context, i).kernel;
    length = MAX (length, g_array_index (self->lengths, guint, kernel));
  }
  return tiny_op_is_elementwise (info->node->op) && info->operations >= FEW_OPERATIONS
         && (length >= most || (info->n_users > 1 && 4 * length >= 3 * most));
}

/* Counts @info's node in the kernels that evaluate it. */
static void
add_length (Fusion *self, const Info *info)
{
  for (guint i = 0; i < self->contexts->len; i++) {
    const guint kernel = g_array_index (self->contexts, Context, i).kernel;
    g_array_index (self->lengths, guint, kernel) += tiny_op_count_steps (info->node->op);
  }
}

/* Why @info's value is stored, or NULL: it is computed where it is read. */
static const char *
find_reason (Fusion *self, Info *info)
{
  TinyNode *node = info->node;
  gboolean computes = tiny_op_is_elementwise (node->op) || node->op == TINY_OP_REDUCE;
  info->is_weighed = FALSE;
  if (info->is_forced || self->contexts->len == 0)
    return info->is_forced ? "it is a result, goes to another device, or keeps a kernel small"
                           : NULL;
  if (schedule_is_claimed (node))
    return "a unit of the device gives it";
  if (node->op == TINY_OP_KERNEL)
    return "a kernel of the program gives it";
  if (node->op == TINY_OP_CONTIGUOUS || node->op == TINY_OP_COPY)
    return node->arg > 0 ? "a unit of the device reads it" : "the program asks for it";
  if (info->is_claimed)
    return NULL;
  if ((!computes && !has_mask (node)) || is_recomputed (self, node))
    return NULL;
  if (is_enough (self, info))
    return "the kernel that reads it is long enough";
  if (info->has_reduce && computes)
    return find_reduce_reason (self, info);
  if (info->leaf_bytes == 0 && info->operations < FEW_OPERATIONS)
    return NULL;
  return costs_less_stored (self, info) ? "computing it again for each reader costs more"
                                        : NULL;
}

static void
decide (Fusion *self)
{
  g_array_set_size (self->signatures, 0);
  g_array_set_size (self->lengths, 0);
  for (guint i = self->order->len; i-- > 0;) {
    Info *info = &self->infos[i];
    info->is_stored = FALSE;
    if (info->contexts == 0 && !info->is_forced)
      continue;
    take_contexts (self, info);
    info->why = find_reason (self, info);
    info->is_stored = info->why != NULL;
    if (info->is_stored) {
      TinyNode *none = NULL;
      Context own = { self->signatures->len, FALSE, FALSE, FALSE, info->n };
      g_array_append_val (self->signatures, none);
      g_array_set_size (self->lengths, self->signatures->len);
      g_array_set_size (self->contexts, 0);
      g_array_append_val (self->contexts, own);
      if (info->node->op == TINY_OP_REDUCE)
        can_join_kernel (self, info, &own);
    }
    add_length (self, info);
    pass_contexts (self, info);
  }
}

/* ---- the pass ---- */
static void
find_claimed (Fusion *self)
{
  g_auto (TinyNodeMap) claimed = { 0 };
  schedule_find_claimed (self->order, &claimed);
  for (guint i = 0; i < self->order->len; i++)
    self->infos[i].is_claimed = tiny_node_map_get (&claimed, self->infos[i].node) != NULL;
}

static void
force_roots (Fusion *self)
{
  Plan *plan = self->plan;
  for (guint r = 0; r < plan->n_roots; r++)
    fusion_get_info (self, plan->roots[r])->is_forced = TRUE;
  for (guint i = 0; i < self->order->len; i++) {
    TinyNode *node = self->infos[i].node;
    if (node->op != TINY_OP_COPY)
      continue;
    const char *from = schedule_get_device (plan, node->sources[0]);
    if (from != NULL && from != node->text && node->sources[0]->op != TINY_OP_PARAM)
      fusion_get_info (self, node->sources[0])->is_forced = TRUE;
  }
}

static void
add_stages (Fusion *self)
{
  Plan *plan = self->plan;
  for (guint i = 0; i < self->order->len; i++) {
    TinyNode *node = self->infos[i].node;
    if (!self->infos[i].is_stored)
      continue;
    Stage *stage = tiny_arena_alloc (plan->arena, sizeof *stage);
    const char *device = schedule_get_device (plan, node);
    const Costs costs = self->infos[i].is_weighed ? self->costs[i] : (Costs){ 0, 0 };
    *stage = (Stage){ .node = node,
                      .device = device != NULL ? device : plan->only_device,
                      .buffer = SCHEDULE_NO_BUFFER,
                      .keeps_axes = schedule_is_claimed (node),
                      .why = self->infos[i].why,
                      .cost_stored = costs.stored,
                      .cost_again = costs.again };
    g_ptr_array_add (plan->stages, stage);
    tiny_node_map_set (&plan->stage_of, node, stage);
  }
}

void
schedule_choose_stages (Plan *plan)
{
  GPtrArray *order = schedule_list_graph (plan);
  Fusion self = { plan, order };
  self.infos = g_new0 (Info, order->len + 1);
  self.costs = g_new0 (Costs, order->len + 1);
  self.seen = g_new0 (guint, order->len + 1);
  self.value_places = tiny_graph_list_places (order, NULL, 0);
  self.signatures = g_array_new (FALSE, FALSE, sizeof (TinyNode *));
  self.lengths = g_array_new (FALSE, TRUE, sizeof (guint));
  self.contexts = g_array_new (FALSE, FALSE, sizeof (Context));
  self.given = g_array_new (FALSE, FALSE, sizeof (Given));
  g_array_set_size (self.given, 1);
  self.places = g_new0 (guint, order->len + 1);
  for (guint i = 0, n_places = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    Info *info = &self.infos[i];
    info->node = node;
    info->first_value = n_places;
    info->n_values = schedule_count_values (node);
    info->is_given = node->op == TINY_OP_PARAM || node->op == TINY_OP_VARIABLE;
    n_places += node->n_sources;
    info->n = (double) tiny_shape_get_n_elements (node->shape);
    info->n_bytes = info->n * (double) tiny_dtype_get_n_bytes (node->dtype);
    for (guint j = 0; j < info->n_values; j++)
      fusion_get_value (&self, info, j)->n_users++;
  }
  for (guint i = order->len; i-- > 0;)
    for (guint j = 0; j < self.infos[i].n_values; j++) {
      Info *source = fusion_get_value (&self, &self.infos[i], j);
      source->height = MAX (source->height, self.infos[i].height + 1);
    }
  find_claimed (&self);
  force_roots (&self);
  for (guint i = 0; i < order->len; i++)
    estimate (&self, &self.infos[i]);
  do
    decide (&self);
  while (fusion_limit_buffers (&self));
  add_stages (&self);
  g_array_unref (self.signatures);
  g_array_unref (self.lengths);
  g_array_unref (self.contexts);
  g_array_unref (self.given);
  g_free (self.places);
  g_free (self.costs);
  g_free (self.seen);
  g_free (self.value_places);
  g_free (self.infos);
}
