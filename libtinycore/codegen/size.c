/* SPDX-License-Identifier: MIT
 *
 * size.c: how large optimisations may make a kernel.
 *
 * A list comes from anywhere: a file of TINY_TUNED, the cache, a command line. Each optimisation on its own
 * is modest, and a few of them multiply to more copies than memory holds, or than a number counts. So one that makes
 * too much is refused, like any other that does not fit. */
#include "optimise.h"

enum {
  MAX_NODES = 16 * 1024, /* of the kernel with all its copies */
  MAX_LIST = 256,        /* optimisations of a list */
  MAX_PADDED = 256,      /* how many times the kernel's work padding may make */
};

/* Parts that are about to be split off. */
typedef struct {
  const TinyAxis *axis;
  TinyRangeKind kind;
  gint64 amount;
} Split;

/* True if @node is one for each lane of @lanes, a part of @origin: an access that is not to neighbours, and what combines
 * lanes. */
static gboolean
takes_lanes_apart (TinyGraph *graph,
                   const TinyNode *node,
                   const TinyOrigin *origin,
                   TinyNode *lanes)
{
  gint64 stride, weight;
  if (node->op != TINY_OP_LOAD && node->op != TINY_OP_STORE)
    return node->op == TINY_OP_REDUCE;
  return !tiny_index_stride (graph, node->sources[1], origin->range, &stride)
         || !tiny_index_stride (graph, origin->expression, lanes, &weight)
         || (stride != 0 && (stride != 1 || weight != 1));
}

/* How many times @node is there for the parts of @origin, with those of @split if that is of this origin. */
static gint64
count_parts (TinyGraph *graph, TinyNode *node, const TinyOrigin *origin, const Split *split)
{
  gint64 n = 1;
  for (guint i = 0; i < origin->inner->len && n <= MAX_NODES; i++) {
    TinyNode *inner = origin->inner->pdata[i];
    const TinyRangeKind kind = tiny_range_get_kind (inner);
    if (kind == TINY_RANGE_LANES ? takes_lanes_apart (graph, node, origin, inner)
                                 : kind != TINY_RANGE_GROUP)
      n *= tiny_range_get_extent (inner);
  }
  if (split != NULL
      && (split->kind != TINY_RANGE_LANES
          || takes_lanes_apart (graph, node, origin, split->axis->node)))
    n *= split->amount;
  return n;
}

/* How many copies @node gets, those that a REDUCE combines included; more than MAX_NODES: too many. */
static gint64
count_copies (TinyAxes *self, TinyNode *node, const Split *split)
{
  TinyGraph *graph = self->cg->graph;
  gint64 n = 1;
  for (guint i = 0; i < self->origins->len && n <= MAX_NODES; i++) {
    const TinyOrigin *origin = &g_array_index (self->origins, TinyOrigin, i);
    const Split *own = origin->range == split->axis->origin ? split : NULL;
    if ((own != NULL || origin->inner->len > 0)
        && tiny_axes_involves (graph, node, origin->range))
      n *= count_parts (graph, node, origin, own);
  }
  return n;
}

/* True if the kernel stays small enough. */
static gboolean
fits (TinyAxes *self, const Split *split)
{
  gint64 most = split->amount, sum = 0;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (self->cg->graph, &self->root, 1);
  for (guint i = 0; i < self->origins->len && most <= MAX_NODES; i++) {
    const TinyOrigin *origin = &g_array_index (self->origins, TinyOrigin, i);
    for (guint j = 0; j < origin->inner->len && most <= MAX_NODES; j++)
      most *= tiny_range_get_extent (origin->inner->pdata[j]);
  }
  if (split->amount == 1 || most * order->len <= MAX_NODES) /* no node needs to be looked at */
    return TRUE;
  /* One that is large from the start may have vectors. */
  const gint64 limit = MAX (MAX_NODES, order->len);
  for (guint i = 0; i + 1 < order->len && sum <= limit; i++)
    sum += count_copies (self, order->pdata[i], split);
  return sum <= limit;
}

/* How many times the work that padding leaves of @origin, when @axis is padded to a multiple of @multiple. */
static gint64
count_padding (const TinyOrigin *origin, const TinyAxis *axis, gint64 multiple)
{
  const gboolean is_own = origin->range == axis->origin;
  const gint64 extent = is_own ? axis->extent : origin->valid;
  const gint64 of = is_own ? multiple : origin->multiple;
  return extent > 0 && of > extent ? of / extent : 1;
}

/* True if no value of the kernel is computed many times as often when @axis is padded to a multiple of @multiple. */
static gboolean
fits_padded (TinyAxes *self, const TinyAxis *axis, gint64 multiple)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (self->cg->graph, &self->root, 1);
  for (guint i = 0; i + 1 < order->len; i++) {
    gint64 times = 1;
    for (guint o = 0; o < self->origins->len && times <= MAX_PADDED; o++) {
      const TinyOrigin *origin = &g_array_index (self->origins, TinyOrigin, o);
      const gint64 own = count_padding (origin, axis, multiple);
      if (own > 1 && tiny_axes_involves (self->cg->graph, order->pdata[i], origin->range))
        times *= MIN (own, MAX_PADDED + 1);
    }
    if (times > MAX_PADDED)
      return FALSE;
  }
  return TRUE;
}

const char *
tiny_axes_object_to_size (TinyAxes *self, TinyOpt opt, TinyRangeKind kind)
{
  if (self->cg->applied->len >= MAX_LIST)
    return "the list is too long";
  const TinyAxis *axis = tiny_axes_get (self, opt.axis);
  if (opt.kind == TINY_OPT_PAD)
    return fits_padded (self, axis, opt.amount) ? NULL
                                                : "the kernel would do many times its work";
  if (opt.kind != TINY_OPT_LANES && opt.kind != TINY_OPT_UPCAST && opt.kind != TINY_OPT_UNROLL)
    return NULL;
  const Split split = { axis, kind, opt.amount ? opt.amount : axis->extent };
  return fits (self, &split) ? NULL : "it makes too many copies";
}
