/* SPDX-License-Identifier: MIT
 *
 * heuristic.c: chooses optimisations from a kernel's strides and the target's numbers.
 *
 * In order: lanes (which axis becomes a vector), tile (copies in registers, so that what is loaded
 * is used more than once and the adders' latency is hidden), stage (what all tiles along an axis
 * read again is copied into the order they read it in), grid (work for threads). It asks what
 * the accesses look like along each axis, and what the target's registers, lanes and threads are:
 * it knows neither devices nor kinds of layers. What has work-groups is heuristic-group.c's.
 *
 *  - A reduction takes an output axis along which its loads are consecutive or constant; failing
 *    that a reduced one, whose lanes are combined after the loop.
 *  - A contraction is tiled over a second output axis along which its vectors do not change. A
 *    kernel with several has a vector axis for each, and the copies of that second axis in common.
 *  - Anything else takes the axis along which most accesses are consecutive; other loads are turned. */
#include "heuristic.h"

#include <string.h>

#include "rewrite/tiny-bounds.h"

/* Lanes that are not empty after merging axes, for each that was not before: less is lost again,
 * because rows of their own need fewer copies for the taps of a convolution. */
static const double MERGE_GAIN = 1.06;

static void
nest_clear (gpointer data)
{
  g_array_unref (((Nest *) data)->loads);
}

/* ---- looking ---- */
static void
add_access (Plan *plan, GArray *accesses, TinyNode *node)
{
  Access access = { .node = node };
  for (guint i = 0; i < plan->n_origins; i++)
    access.uneven[i] = !tiny_index_stride (plan->graph, node->sources[1], plan->origins[i],
                                           &access.strides[i]);
  g_array_append_val (accesses, access);
}

static gboolean
is_under (Plan *plan, TinyNode *node, Nest *nest)
{
  for (guint i = 1; i < nest->reduce->n_sources; i++)
    if (tiny_node_depends_on (plan->graph, node, nest->reduce->sources[i]))
      return TRUE;
  return FALSE;
}

static void
find_nest (Plan *plan, TinyNode *reduce)
{
  gint64 work = combinations (plan->graph, reduce->sources[0]);
  plan->work += work;
  for (guint i = 0; i < plan->nests->len; i++) {
    Nest *known = &g_array_index (plan->nests, Nest, i);
    if (known->reduce->sources[1] == reduce->sources[1]) {
      known->n_reduces++;
      return;
    }
  }
  Nest nest = { reduce, 1, work, g_array_new (FALSE, FALSE, sizeof (Access)) };
  guint at = 0;
  while (at < plan->nests->len && g_array_index (plan->nests, Nest, at).work >= work)
    at++;
  g_array_insert_val (plan->nests, at, nest);
}

static void
look (Plan *plan)
{
  guint widest = 1;
  TinyNode *root = plan->axes->root;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (plan->graph, &root, 1);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->dtype != TINY_DTYPE_INDEX)
      widest = MAX (widest, tiny_dtype_get_n_bytes (node->dtype));
    if (node->op == TINY_OP_REDUCE)
      find_nest (plan, node);
    else if (tiny_op_is_elementwise (node->op) && node->dtype != TINY_DTYPE_INDEX)
      plan->work += combinations (plan->graph, node);
    else if (node->op == TINY_OP_LOAD || node->op == TINY_OP_STORE)
      plan->work += combinations (plan->graph, node);
  }
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    gboolean found = FALSE;
    if (node->op != TINY_OP_LOAD && node->op != TINY_OP_STORE)
      continue;
    for (guint j = 0; j < plan->nests->len && !found; j++) {
      Nest *nest = &g_array_index (plan->nests, Nest, j);
      found = is_under (plan, node, nest);
      if (found)
        add_access (plan, nest->loads, node);
    }
    if (!found)
      add_access (plan, plan->accesses, node);
  }
  plan->lanes = MIN (plan->target->vector_bits / (8 * widest), plan->target->max_lanes);
  gint64 n_bytes = tiny_axes_count_local_bytes (plan->axes, NULL, 1);
  const gint64 room
      = n_bytes == 0 ? MAX_TILE_COPIES : MAX ((gint64) plan->target->local_bytes / n_bytes, 1);
  plan->most_copies = n_bytes == 0 ? room : MIN (room, MAX_LOCAL_COPIES);
  plan->most_streamed = plan->target->n_vector_registers >= STREAMED_REGISTERS
                            ? MIN (room, MAX_STREAMED_COPIES)
                            : plan->most_copies;
}

gint64
tiny_plan_largest_divisor (gint64 n, gint64 most)
{
  for (gint64 i = MIN (n, most); i > 1; i--)
    if (n % i == 0)
      return i;
  return 1;
}

/* How many lanes to use along an axis of @extent, and what share of the full vector that fills. */
static guint
choose_lanes (Plan *plan, gint64 extent, double *out_share)
{
  gboolean masked = (plan->target->flags & TINY_TARGET_MASKED) != 0;
  guint best = 1;
  *out_share = 1.0 / MAX (plan->lanes, 1);
  for (guint lanes = plan->lanes; lanes > 1; lanes /= 2) {
    gint64 padded = (extent + lanes - 1) / lanes * lanes;
    double share = (double) extent / (double) padded * lanes / plan->lanes;
    if (padded != extent)
      share *= masked ? 0.95 : 0; /* masks are not free */
    if (share > *out_share) {
      *out_share = share;
      best = lanes;
    }
  }
  return best;
}

/* Splits @lanes off the axis of @origin, after padding it to @multiple; FALSE where they do not fit. */
gboolean
tiny_plan_apply_lanes (Plan *plan, guint origin, guint lanes, gint64 multiple)
{
  guint axis = (guint) tiny_axes_find (plan->axes, plan->origins[origin]);
  if (tiny_axes_get (plan->axes, axis)->extent % multiple != 0)
    apply (plan, TINY_OPT_PAD, axis, multiple);
  return lanes == 1 || apply (plan, TINY_OPT_LANES, axis, lanes);
}

/* How good @origin is as the vector axis for @accesses; negative: some would be scalar. A store that has other loops says
 * nothing about this one. */
static double
score_accesses (GArray *accesses, guint origin, gboolean stores_matter)
{
  double score = 0;
  gboolean useful = FALSE;
  for (guint i = 0; i < accesses->len; i++) {
    Access *access = &g_array_index (accesses, Access, i);
    gboolean one = !access->uneven[origin] && access->strides[origin] == 1;
    gboolean zero = !access->uneven[origin] && access->strides[origin] == 0;
    if (access->node->op == TINY_OP_STORE) {
      if (zero)
        continue;
      score += !stores_matter ? (one ? 1 : -1) : one ? 3 : -3;
      useful = useful || one;
    } else {
      score += one ? 2 : zero ? 1 : -4;
      useful = useful || one;
    }
  }
  return useful ? score : -1;
}

static gboolean
is_constant_or_next (GArray *accesses, guint origin)
{
  for (guint i = 0; i < accesses->len; i++) {
    Access *access = &g_array_index (accesses, Access, i);
    if (access->uneven[origin] || access->strides[origin] < 0 || access->strides[origin] > 1)
      return FALSE;
  }
  return TRUE;
}

/* ---- a reduction's lanes ---- */
/* A short reduced axis of a kernel's only nest, whose rows are vectors as they lie, or -1. Combining lanes costs less
 * than a loop of single elements, if nothing else can have lanes. */
static int
find_short_rows (Plan *plan, Nest *nest, guint *out_lanes)
{
  for (guint i = 0; i < plan->n_origins && plan->nests->len == 1; i++) {
    double share;
    guint lanes = choose_lanes (plan, extent_of (plan, i), &share);
    if (is_reduced_by (nest, plan->origins[i]) && is_constant_or_next (nest->loads, i)
        && tiny_axes_can_have_lanes (plan->axes, plan->origins[i])
        && score_accesses (nest->loads, i, FALSE) > 0 && lanes >= MIN_SHORT_LANES
        && extent_of (plan, i) % lanes == 0) {
      *out_lanes = lanes;
      return (int) i;
    }
  }
  return -1;
}

/* The best axis for @nest, or -1. */
static int
choose_nest_axis (Plan *plan, Nest *nest, guint *out_lanes)
{
  int best = -1;
  double best_score = 0;
  for (guint i = 0; i < plan->n_origins; i++) {
    gboolean reduced = is_reduced_by (nest, plan->origins[i]);
    if ((!reduced && !depends (plan, nest->reduce, i)) || !is_constant_or_next (nest->loads, i))
      continue;
    if (!tiny_axes_can_have_lanes (plan->axes, plan->origins[i]))
      continue;
    double share, score = score_accesses (nest->loads, i, FALSE);
    guint lanes = choose_lanes (plan, extent_of (plan, i), &share);
    if (reduced) /* combining lanes takes a few dozen operations */
      score -= 1 + 2.0 * lanes / (double) extent_of (plan, i);
    else
      score += 0.5 * score_accesses (plan->accesses, i, FALSE);
    if (lanes > 1 && score > 0 && score * share > best_score) {
      best = (int) i;
      best_score = score * share;
      *out_lanes = lanes;
    }
  }
  return best >= 0 ? best : find_short_rows (plan, nest, out_lanes);
}

/* A loop of a few rounds, such as over the parts of a block of weights, costs more than it does. */
gint64
tiny_plan_unroll (Plan *plan, Nest *nest, gint64 most)
{
  gint64 copies = 1;
  for (guint i = 0; i < plan->axes->axes->len; i++) {
    TinyAxis *axis = tiny_axes_get (plan->axes, i);
    gint64 extent = axis->extent;
    if (axis->is_reduce && extent > 1 && extent <= most && is_reduced_by (nest, axis->origin)
        && apply (plan, TINY_OPT_UNROLL, i, extent))
      copies *= extent;
  }
  return copies;
}

/* Whether outputs along the axis of @origin have a load in common. */
static gboolean
shares_loads (Plan *plan, Nest *nest, guint origin)
{
  for (guint i = 0; i < nest->loads->len; i++) {
    Access *access = &g_array_index (nest->loads, Access, i);
    if (!access->uneven[origin] && access->strides[origin] == 0)
      return depends (plan, nest->reduce, origin);
  }
  return FALSE;
}

/* The load that each output has to itself, or NULL: what it reads comes from memory. */
static const Access *
find_stream (Plan *plan, Nest *nest)
{
  for (guint i = 0; i < nest->loads->len; i++) {
    const Access *access = &g_array_index (nest->loads, Access, i);
    gboolean changes = TRUE;
    for (guint o = 0; o < plan->n_origins && changes; o++)
      changes = extent_of (plan, o) == 1 || !depends (plan, nest->reduce, o)
                || (!access->uneven[o] && access->strides[o] > 0);
    if (changes)
      return access;
  }
  return NULL;
}

void
tiny_plan_walk_in_order (Plan *plan, const Access *stream)
{
  for (guint n = plan->axes->n_outputs; n > 1 && stream != NULL; n--)
    for (guint i = 0; i + 1 < n; i++) {
      gint64 step = stream->strides[origin_of (plan, i)];
      if (step > 0 && step < stream->strides[origin_of (plan, i + 1)])
        apply (plan, TINY_OPT_SWAP, i, i + 1);
    }
}

/* Lanes on a reduced axis: several accumulators, first along the axis itself, so that memory is
 * read as it lies, then from outputs that share loads. */
static void
unroll_nest (Plan *plan, Nest *nest, guint reduced, guint lanes)
{
  gint64 extent = extent_of (plan, reduced);
  gint64 multiple = extent % lanes != 0 && extent >= 32 * lanes ? 4 * lanes : lanes;
  gboolean is_alone = plan->nests->len == 1 && nest->loads->len > 1;
  tiny_plan_apply_lanes (plan, reduced, lanes, multiple);
  if (is_alone)
    tiny_plan_walk_in_order (plan, find_stream (plan, nest));
  guint axis = (guint) tiny_axes_find (plan->axes, plan->origins[reduced]);
  gint64 copies = count_copies (plan, nest->reduce);
  gint64 unroll = tiny_plan_largest_divisor (tiny_axes_get (plan->axes, axis)->extent,
                                             MAX_SHORT / copies);
  if (unroll > 1 && apply (plan, TINY_OPT_UNROLL, axis, unroll))
    copies *= unroll;
  copies *= tiny_plan_unroll (plan, nest, MAX_SHORT);
  for (guint i = plan->axes->n_outputs; i-- > 0 && is_alone && copies < MAX_ROW_COPIES;) {
    guint origin = origin_of (plan, i);
    gint64 n = tiny_plan_largest_divisor (extent_of (plan, origin),
                                          MIN (MAX_ROW_COPIES / copies, MAX_SHORT));
    if (shares_loads (plan, nest, origin) && n > 1 && apply (plan, TINY_OPT_UPCAST, i, n))
      copies *= n;
  }
}

static void
choose_for_nests (Plan *plan)
{
  for (guint n = 0; n < plan->nests->len; n++) {
    Nest *nest = &g_array_index (plan->nests, Nest, n);
    guint lanes = 1;
    if (plan->vector_axis >= 0 && depends (plan, nest->reduce, plan->vector_axis))
      continue;
    int axis = choose_nest_axis (plan, nest, &lanes);
    if (axis < 0)
      continue;
    if (is_reduced_by (nest, plan->origins[axis])) {
      unroll_nest (plan, nest, (guint) axis, lanes);
    } else {
      plan->vector_axis = axis;
      tiny_plan_tile (plan, nest, (guint) axis, lanes);
    }
  }
}

/* ---- what is outside of reductions ---- */
/* A reduction over the axis has lanes of its own, or was better left without. */
static gboolean
is_free_for_lanes (Plan *plan, guint origin)
{
  if (!tiny_axes_can_have_lanes (plan->axes, plan->origins[origin]))
    return FALSE;
  for (guint i = 0; i < plan->nests->len; i++)
    if (depends (plan, g_array_index (plan->nests, Nest, i).reduce, origin))
      return FALSE;
  return TRUE;
}

/* How good lanes along @origin are for what does not lie in a loop nest of its own. */
static double
score_outside (Plan *plan, guint origin)
{
  guint axis;
  gboolean turns = tiny_plan_find_turned (plan, origin, &axis) != NULL;
  g_autoptr (GArray) accesses = g_array_new (FALSE, FALSE, sizeof (Access));
  for (guint i = 0; i < plan->accesses->len; i++) {
    Access *access = &g_array_index (plan->accesses, Access, i);
    /* A copy that is turned has vectors along both axes. */
    if (!turns || !tiny_plan_is_turned (access, origin, axis))
      g_array_append_vals (accesses, access, 1);
  }
  return score_accesses (accesses, origin, TRUE);
}

/* Copies that stores along @origin have already. */
static gint64
count_elementwise_copies (Plan *plan, guint origin)
{
  gint64 n = 1;
  for (guint i = 0; i < plan->accesses->len; i++) {
    TinyNode *node = g_array_index (plan->accesses, Access, i).node;
    if (node->op == TINY_OP_STORE && depends (plan, node, origin))
      n = MAX (n, count_copies (plan, node));
  }
  return n;
}

/* Copies of elementwise code that are worth it: of a loop that has enough to do in a round they are only more code.
 * Beside a reduction they are worth more. */
static gint64
count_worthwhile_copies (Plan *plan)
{
  gint64 n_steps = 1;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (plan->graph, &plan->axes->root, 1);
  for (guint i = 0; i < order->len && plan->nests->len == 0; i++) {
    const TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_LOAD || node->op == TINY_OP_STORE)
      n_steps++;
    else if (node->dtype != TINY_DTYPE_INDEX)
      n_steps += tiny_op_count_steps (node->op);
  }
  return CLAMP (MAX_BODY / n_steps, 1, MAX_SHORT);
}

/* Gives lanes to the best axis of those that are free; FALSE when there is none, or it takes none. */
static gboolean
choose_elementwise (Plan *plan)
{
  double best_score = 0, share;
  int best = -1;
  guint best_lanes = 1;
  for (guint i = 0; i < plan->n_origins; i++) {
    int axis = tiny_axes_find (plan->axes, plan->origins[i]);
    if (axis < 0 || tiny_axes_get (plan->axes, (guint) axis)->is_reduce)
      continue;
    guint lanes = choose_lanes (plan, extent_of (plan, i), &share);
    double score = is_free_for_lanes (plan, i) ? score_outside (plan, i) : 0;
    if (lanes > 1 && score > 0 && score * share > best_score) {
      best = (int) i;
      best_score = score * share;
      best_lanes = lanes;
    }
  }
  if (best < 0)
    return FALSE;
  plan->vector_axis = best;
  if (tiny_plan_turn (plan, (guint) best, best_lanes))
    return TRUE;
  gint64 extent = extent_of (plan, best);
  gint64 multiple
      = extent % best_lanes != 0 && extent >= 64 * best_lanes ? 4 * best_lanes : best_lanes;
  if (!tiny_plan_apply_lanes (plan, (guint) best, best_lanes, multiple))
    return FALSE;
  guint axis = (guint) tiny_axes_find (plan->axes, plan->origins[best]);
  gint64 copies = tiny_plan_largest_divisor (
      tiny_axes_get (plan->axes, axis)->extent,
      count_worthwhile_copies (plan) / count_elementwise_copies (plan, (guint) best));
  if (copies > 1)
    apply (plan, TINY_OPT_UPCAST, axis, copies);
  return TRUE;
}

/* ---- the grid ---- */
/* Work that all points would repeat because it does not depend on the axis must be small. */
static gboolean
can_spread (Plan *plan, TinyNode *origin)
{
  for (guint i = 0; i < plan->nests->len; i++) {
    Nest *nest = &g_array_index (plan->nests, Nest, i);
    if (!tiny_node_depends_on (plan->graph, nest->reduce, origin)
        && nest->work > plan->work / 64)
      return FALSE;
  }
  return TRUE;
}

static gboolean
has_variable (Plan *plan, TinyNode *condition)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (plan->graph, &condition, 1);
  for (guint i = 0; i < order->len; i++)
    if (((TinyNode *) order->pdata[i])->op == TINY_OP_VARIABLE)
      return TRUE;
  return FALSE;
}

/* Whether a variable says from where on along @origin nothing is stored: a loop ends there (pass-bound.c), points of
 * the grid do all of their work. */
static gboolean
ends_early (Plan *plan, TinyNode *origin)
{
  const TinyNode *sink = plan->axes->root;
  for (guint i = 0; i < sink->n_sources; i++) {
    const TinyNode *store = sink->sources[i];
    if (store->n_sources < 4 || !tiny_node_depends_on (plan->graph, store->sources[3], origin)
        || !has_variable (plan, store->sources[3]))
      return FALSE;
  }
  return sink->n_sources > 0;
}

static void
choose_grid (Plan *plan)
{
  gboolean chunks = (plan->target->flags & TINY_TARGET_GRID_CHUNKS) != 0;
  gint64 wanted = chunks ? POINTS_PER_THREAD * MAX (plan->target->n_threads, 1) : G_MAXINT64;
  gint64 points = 1;
  guint n_outside = plan->axes->n_outputs - (plan->staged >= 0 ? plan->n_inside : 0);
  for (guint i = 0; i < n_outside && points < wanted && plan->work >= MIN_GRID_FLOPS; i++) {
    TinyAxis *axis = tiny_axes_get (plan->axes, i);
    gint64 extent = axis->extent, below = plan->work / (points * extent), keep = 1;
    if (extent == 1 || !can_spread (plan, axis->origin))
      continue;
    gboolean ends = ends_early (plan, axis->origin);
    while (chunks && keep < extent && (ends || below * keep < MIN_POINT_WORK)) {
      gint64 next = keep + 1;
      while (next < extent && extent % next != 0)
        next++;
      if (points * (extent / next) < wanted)
        break;
      keep = next;
    }
    if (points * (extent / keep) > G_MAXINT32)
      continue;
    if (keep > 1 && apply (plan, TINY_OPT_SPLIT, i, keep))
      wanted = 0; /* what is inside belongs to the point */
    if (!apply (plan, TINY_OPT_GRID, i, 0))
      break;
    points *= extent / keep;
  }
  if (plan->staged >= 0)
    apply (plan, TINY_OPT_STAGE, plan->axes->n_outputs - plan->n_inside - 1, plan->staged);
}

/* ---- axes ---- */
/* A nest's vectors along short rows leave lanes empty: where a row goes on into the next one in
 * memory, both axes become one. */
static gboolean
merge_short_rows (Plan *plan)
{
  guint lanes = 1;
  Nest *nest = plan->nests->len > 0 ? &g_array_index (plan->nests, Nest, 0) : NULL;
  if (nest == NULL || !(plan->target->flags & TINY_TARGET_MASKED))
    return FALSE;
  int vector = choose_nest_axis (plan, nest, &lanes);
  int at = vector >= 0 ? tiny_axes_find (plan->axes, plan->origins[vector]) : 0;
  if (at < 1 || (guint) at >= plan->axes->n_outputs)
    return FALSE;
  for (guint i = 0; i < nest->loads->len; i++) {
    const Access *access = &g_array_index (nest->loads, Access, i);
    if (access->strides[vector] != 0
        && tiny_plan_count_readers (plan, access, (guint) vector) < MERGE_MIN_READERS)
      return FALSE;
  }
  gint64 n = extent_of (plan, (guint) vector);
  gint64 merged = n * tiny_axes_get (plan->axes, (guint) at - 1)->extent;
  return tiny_plan_waste (n, plan->lanes) > MERGE_GAIN * tiny_plan_waste (merged, plan->lanes)
         && apply (plan, TINY_OPT_MERGE, (guint) at - 1, at);
}

static void
plan_clear (Plan *plan)
{
  g_clear_pointer (&plan->accesses, g_array_unref);
  g_clear_pointer (&plan->nests, g_array_unref);
}

static void
plan_init (Plan *plan, TinyAxes *axes)
{
  *plan = (Plan){ .axes = axes,
                  .graph = axes->cg->graph,
                  .target = axes->cg->target,
                  .n_origins = axes->axes->len,
                  .vector_axis = -1,
                  .staged = -1 };
  plan->accesses = g_array_new (FALSE, FALSE, sizeof (Access));
  plan->nests = g_array_new (FALSE, FALSE, sizeof (Nest));
  g_array_set_clear_func (plan->nests, nest_clear);
  for (guint i = 0; i < plan->n_origins; i++)
    plan->origins[i] = tiny_axes_get (axes, i)->origin;
  look (plan);
}

/* A thread that runs many grid points by itself has no use for items. */
static gboolean
has_groups (const TinyTarget *target)
{
  return (target->flags & TINY_TARGET_GROUPS) && !(target->flags & TINY_TARGET_GRID_CHUNKS)
         && target->max_group_total > 1;
}

void
tiny_axes_optimise (TinyAxes *axes)
{
  Plan plan;
  if (axes->axes->len == 0 || axes->axes->len > MAX_AXES)
    return;
  plan_init (&plan, axes);
  if (has_groups (plan.target)) {
    tiny_plan_groups (&plan);
    plan_clear (&plan);
    return;
  }
  while (plan.lanes > 1 && merge_short_rows (&plan)) {
    plan_clear (&plan);
    plan_init (&plan, axes);
  }
  if (plan.lanes > 1) {
    choose_for_nests (&plan);
    while (choose_elementwise (&plan))
      ; /* the stores of a kernel may have loops of their own */
  } else if (plan.target->max_lanes <= 1 && plan.target->n_vector_registers >= MIN_SCALARS)
    tiny_plan_tile_scalars (&plan);
  choose_grid (&plan);
  plan_clear (&plan);
}
