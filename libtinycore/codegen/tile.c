/* SPDX-License-Identifier: MIT
 *
 * tile.c: the register tile of a contraction, and which of its operands are staged.
 *
 * A tile is some vectors along the vector axis times some copies along another output axis. What
 * one multiply-add in it costs is counted from the target's numbers: registers bound it, what it
 * loads is weighed by where that lies, what it computes in vain and threads that wait are added. */
#include "heuristic.h"

#include "rewrite/tiny-bounds.h"

typedef struct {
  int axis;     /* origin; -1: no second axis */
  gint64 count; /* copies along it */
  gint64 n_vectors;
  double cost;
} Tile;

/* More of the nearest cache than this share does not stay there: others use it too. */
static const double NEAR_SHARE = 0.5;
/* … and of the next one, where all panels are read again for each row of tiles. */
static const double IN_PLACE_SHARE = 0.25;

/* More than this share of it comes from the third cache for each row of tiles of a kernel with several contractions, whose
 * panels all lie where they are. */
static const double STREAM_SHARE = 0.5;

/* More rows than this share of it are gone from it before the next column of tiles. */
static const double ROWS_SHARE = 0.5;

/* Readings of an element in one panel that are worth more where it lies than in a copy. */
static const double MIN_REPEATS = 2;

/* Of which one is worth fewer copies of a panel. */
static const double MAX_IMBALANCE = 1.2;

/* What threads wait for each other when they share @n blocks, each a whole one. */
static double
imbalance (Plan *plan, gint64 n)
{
  gint64 n_threads = MAX (plan->target->n_threads, 1);
  return tiny_plan_waste (n, MIN (n_threads, n));
}

/* What one round of the loops outside reads of a panel, in bytes. */
static double
count_panel_bytes (Plan *plan, Nest *nest, const Access *access, gint64 n_lanes)
{
  double n_bytes = (double) n_lanes * (double) tiny_dtype_get_n_bytes (access->node->dtype);
  for (guint i = 1; i < nest->reduce->n_sources; i++)
    if (tiny_node_depends_on (plan->graph, access->node, nest->reduce->sources[i]))
      n_bytes *= (double) tiny_range_get_extent (nest->reduce->sources[i]);
  return n_bytes;
}

/* Whether @access is a panel's, which changes along the vector axis, or a row's. */
typedef enum { ROWS, PANELS } Kind;

static gboolean
is_kind (const Access *access, guint vector, Kind kind)
{
  return (access->strides[vector] != 0) == (kind == PANELS);
}

/* Whether only accesses of @kind change along output axis @i. */
static gboolean
has_only (Plan *plan, Nest *nest, guint vector, guint i, Kind kind)
{
  int at = tiny_axes_find (plan->axes, plan->origins[i]);
  if (at < 0 || (guint) at >= plan->axes->n_outputs)
    return FALSE;
  for (guint j = 0; j < nest->loads->len; j++) {
    const Access *access = &g_array_index (nest->loads, Access, j);
    if (!is_kind (access, vector, kind) && (access->uneven[i] || access->strides[i] != 0))
      return FALSE;
  }
  return TRUE;
}

/* How many times what @access reads for one output along @axis it reads for all of them: neighbours read the same for
 * other taps. */
static double
count_distinct_steps (Plan *plan, Nest *nest, const Access *access, int axis)
{
  double n = (double) extent_of (plan, (guint) axis);
  for (guint tap = 0; tap < plan->n_origins; tap++) {
    gint64 shift = is_reduced_by (nest, plan->origins[tap])
                       ? tiny_plan_count_shift (plan, access, axis, tap)
                       : 0;
    if (shift > 0)
      return 1 + (n - 1) * (double) shift / (double) extent_of (plan, tap);
  }
  return n;
}

/* The bytes of all panels, which a row of tiles reads, or of all rows, which a column of tiles does. */
static double
count_all (Plan *plan, Nest *nest, guint vector, Kind kind)
{
  double sum = 0;
  for (guint i = 0; i < nest->loads->len; i++) {
    const Access *access = &g_array_index (nest->loads, Access, i);
    double n_bytes = count_panel_bytes (plan, nest, access, 1);
    for (guint j = 0; j < plan->n_origins; j++)
      if ((access->uneven[j] || access->strides[j] != 0)
          && has_only (plan, nest, vector, j, kind))
        n_bytes *= count_distinct_steps (plan, nest, access, (int) j);
    sum += is_kind (access, vector, kind) ? n_bytes : 0;
  }
  return sum;
}

/* Whether a panel of @n_lanes columns lies in one piece, or nearly so. */
static gboolean
is_dense (Plan *plan, Nest *nest, const Access *access, gint64 n_lanes)
{
  for (guint i = 0; i < plan->n_origins; i++)
    for (guint s = 1; s < nest->reduce->n_sources; s++)
      if (plan->origins[i] == nest->reduce->sources[s] && !access->uneven[i]
          && access->strides[i] > 0 && access->strides[i] <= 2 * n_lanes)
        return TRUE;
  return FALSE;
}

/* Whether each row of tiles reads the panels where they are: they stay in the second cache from one
 * row to the next, and need no conditions. What the rows read themselves is then read once. */
static gboolean
is_read_in_place (Plan *plan, Nest *nest, guint vector)
{
  for (guint i = 0; i < nest->loads->len; i++) {
    const Access *access = &g_array_index (nest->loads, Access, i);
    if (access->strides[vector] != 0 && access->node->n_sources > 2)
      return FALSE;
  }
  return count_all (plan, nest, vector, PANELS)
         <= IN_PLACE_SHARE * (double) plan->target->cache_bytes[1];
}

/* Bytes of the operands of all contractions that each tile along @axis reads again. */
static double
count_read_again (Plan *plan, guint axis)
{
  const int outside = tiny_axes_find (plan->axes, plan->origins[axis]);
  double sum = 0;
  for (guint n = 0; n < plan->nests->len; n++) {
    const Nest *nest = &g_array_index (plan->nests, Nest, n);
    for (guint i = 0; i < nest->loads->len; i++) {
      const Access *access = &g_array_index (nest->loads, Access, i);
      double n_bytes = (double) tiny_dtype_get_n_bytes (access->node->dtype);
      if (access->node->sources[0]->op != TINY_OP_PARAM || access->uneven[axis]
          || access->strides[axis] != 0)
        continue;
      for (guint j = 0; j < plan->n_origins; j++)
        if ((access->uneven[j] || access->strides[j] != 0)
            && tiny_axes_find (plan->axes, plan->origins[j]) > outside)
          n_bytes *= (double) extent_of (plan, j);
      sum += n_bytes;
    }
  }
  return sum;
}

/* True if panels come from the third cache for each tile along @axis: the more rows a tile has, the less often. */
static gboolean
is_streamed (Plan *plan, int axis)
{
  const double near = STREAM_SHARE * (double) plan->target->cache_bytes[1];
  return axis >= 0 && plan->nests->len > 1 && near > 0
         && plan->most_streamed > plan->most_copies
         && count_read_again (plan, (guint) axis) > near;
}

/* The reduced axis whose steps are those along output axis @axis, with a condition for both, or -1. */
static int
find_condition (Plan *plan, Nest *nest, const Access *access, int axis)
{
  for (guint tap = 0; tap < plan->n_origins && access->node->n_sources > 2; tap++)
    if (is_reduced_by (nest, plan->origins[tap])
        && depends (plan, access->node->sources[2], tap)
        && tiny_plan_count_shift (plan, access, axis, tap) > 0)
      return (int) tap;
  return -1;
}

/* Cost of one multiply-add in a tile: what is computed, plus what is loaded for it, from registers'
 * point of view near (cache_bytes[0]) or far. */
static void
try_tile (Plan *plan, Nest *nest, guint vector, guint lanes, int other, Tile *best)
{
  gint64 n = (extent_of (plan, vector) + lanes - 1) / lanes;
  gint64 rows = other >= 0 ? extent_of (plan, other) : 1;
  gint64 registers = MAX (plan->target->n_vector_registers, 8);
  gint64 n_steps = nest->work / MAX (combinations (plan->graph, nest->reduce), 1);
  gint64 blocks_outside
      = combinations (plan->graph, nest->reduce) / (extent_of (plan, vector) * rows);
  double near = NEAR_SHARE * (double) plan->target->cache_bytes[0],
         vector_bytes = plan->target->vector_bits / 8.0;
  gboolean in_place = is_read_in_place (plan, nest, vector);
  double all_panels = count_all (plan, nest, vector, PANELS);
  /* Rows that each column of tiles brings from the third cache or memory: a cycle or so an element. */
  gboolean rows_stream = !in_place
                         && count_all (plan, nest, vector, ROWS)
                                > ROWS_SHARE * (double) plan->target->cache_bytes[1];
  guint n_vector = 0, n_other = 0, n_branches = 0;
  for (guint i = 0; i < nest->loads->len; i++) {
    Access *access = &g_array_index (nest->loads, Access, i);
    if (access->strides[vector] != 0)
      n_vector++;
    else
      n_other++;
    n_branches += access->strides[vector] == 0 && access->node->n_sources > 2
                  && find_condition (plan, nest, access, other) < 0;
    if (other >= 0 && access->strides[vector] != 0
        && (access->uneven[other] || access->strides[other] != 0))
      return;
  }
  gint64 fixed = other >= 0 ? plan->copies[other] : 0; /* by a tile of another nest */
  const gboolean streams = is_streamed (plan, other);
  const gint64 most = streams ? plan->most_streamed : plan->most_copies;
  for (gint64 nv = 1; nv <= MIN (n, 4); nv++) {
    for (gint64 count = MAX (fixed, 1); count <= (fixed ? fixed : MIN (rows, most)); count++) {
      if (nv * count * nest->n_reduces + nv * n_vector + 1 > registers)
        break;
      double again = in_place ? all_panels : (double) (n_steps * nv) * vector_bytes;
      double far = again > near ? 1 : 0;
      double n_products = (double) (nv * count * nest->n_reduces);
      double per_step = MAX (n_products / 2.0, 4.0) + 0.25 * (nv * n_vector + count * n_other)
                        + (far + streams) * nv * n_vector + (rows_stream ? count * n_other : 0)
                        + (double) (count * n_branches);
      double cost
          = per_step / n_products * tiny_plan_waste (n, nv) * tiny_plan_waste (rows, count);
      if (other >= 0 && rows >= STAGE_MIN_TILES * count)
        cost *= imbalance (
            plan, blocks_outside * (in_place ? (rows + count - 1) / count : (n + nv - 1) / nv));
      if (best->cost == 0 || cost < best->cost)
        *best = (Tile){ other, count, nv, cost };
    }
  }
}

/* Whether @access changes along the vector axis and is the same for all copies of the tile. */
static gboolean
is_panel (const Access *access, const Tile *tile, guint vector)
{
  return access->node->op == TINY_OP_LOAD && access->node->sources[0]->op == TINY_OP_PARAM
         && access->strides[vector] == 1 && !access->uneven[vector]
         && !access->uneven[tile->axis] && access->strides[tile->axis] == 0;
}

gint64
tiny_plan_count_readers (Plan *plan, const Access *access, guint vector)
{
  gint64 n = 1;
  for (guint i = 0; i < plan->n_origins; i++) {
    int at = tiny_axes_find (plan->axes, plan->origins[i]);
    if (i != vector && at >= 0 && (guint) at < plan->axes->n_outputs && !access->uneven[i]
        && access->strides[i] == 0)
      n *= extent_of (plan, i);
  }
  return n;
}

/* Makes the axis of @origin the innermost of the outputs. */
static gboolean
move_inside (Plan *plan, guint origin)
{
  guint at = (guint) tiny_axes_find (plan->axes, plan->origins[origin]);
  for (; at + 1 < plan->axes->n_outputs; at++)
    if (!apply (plan, TINY_OPT_SWAP, at, at + 1))
      return FALSE;
  plan->n_inside++;
  return TRUE;
}

/* Moves the axes along which @access stays where it is to the inside, so that one copy serves them
 * all; an axis that the threads need to share the work stays outside. The tile's own comes last. */
static gboolean
move_readers_inside (Plan *plan, const Access *access, guint vector, const Tile *tile)
{
  gint64 n_threads = MAX (plan->target->n_threads, 1), outside = 1;
  for (guint i = 0; i < plan->axes->n_outputs; i++)
    if (tiny_axes_get (plan->axes, i)->origin != plan->origins[tile->axis])
      outside *= tiny_axes_get (plan->axes, i)->extent;
  for (guint i = 0; i < plan->n_origins; i++) {
    gboolean reads
        = (int) i != tile->axis && i != vector && !access->uneven[i] && access->strides[i] == 0;
    int at = tiny_axes_find (plan->axes, plan->origins[i]);
    if (!reads || at < 0 || (guint) at >= plan->axes->n_outputs)
      continue;
    gint64 left = outside / tiny_axes_get (plan->axes, (guint) at)->extent;
    if (left < n_threads || imbalance (plan, left) > MAX_IMBALANCE)
      continue;
    if (!move_inside (plan, i))
      return FALSE;
    outside = left;
  }
  return move_inside (plan, (guint) tile->axis);
}

/* The next axis that @nest reduces with a step of more than @after in @access, by origin; -1: none. */
static int
find_next_step (Plan *plan, Nest *nest, const Access *access, gint64 after)
{
  int next = -1;
  for (guint i = 0; i < plan->n_origins; i++)
    if (is_reduced_by (nest, plan->origins[i]) && !access->uneven[i]
        && access->strides[i] > after
        && (next < 0 || access->strides[i] < access->strides[next]))
      next = (int) i;
  return next;
}

/* Bytes that a panel of @n_lanes columns is read from: steps that stay in a run of neighbours read some of it again. */
static double
count_distinct_bytes (Plan *plan, Nest *nest, const Access *access, gint64 n_lanes)
{
  gint64 run = n_lanes, n_runs = 1, step = 0;
  for (guint i = 0; i < plan->n_origins; i++)
    n_runs *= is_reduced_by (nest, plan->origins[i]) && access->uneven[i] ? extent_of (plan, i)
                                                                          : 1;
  for (int i; (i = find_next_step (plan, nest, access, step)) >= 0;) {
    step = access->strides[i];
    if (step <= run)
      run += step * (extent_of (plan, (guint) i) - 1);
    else
      n_runs *= extent_of (plan, (guint) i);
  }
  return (double) (run * n_runs) * (double) tiny_dtype_get_n_bytes (access->node->dtype);
}

/* True if a copy of the panel would hold its elements several times and be larger than what it is made of. Its
 * conditions are to be in registers beside the tile, where a target has no others for them. */
static gboolean
is_repeated (Plan *plan,
             Nest *nest,
             const Access *access,
             guint vector,
             const Tile *tile,
             gint64 n_lanes)
{
  gint64 n_masks = access->node->n_sources > 2 ? tile->n_vectors : 0;
  double distinct = count_distinct_bytes (plan, nest, access, n_lanes);
  return tile->n_vectors * (tile->count * nest->n_reduces + 1) + 1 + n_masks
             <= (gint64) plan->target->n_vector_registers
         && distinct * MIN_REPEATS <= count_panel_bytes (plan, nest, access, n_lanes)
         && distinct <= IN_PLACE_SHARE * (double) plan->target->cache_bytes[1]
         && !tiny_axes_has_window (plan->axes, access->node, plan->origins[vector]);
}

/* A panel that all tiles along an axis read, and that lies in memory with gaps, is copied first: the
 * axes along which it is read become the innermost, the copy is made outside of them. Where panels
 * are read in place, all of them are read for a tile before the next one's rows. The taps of a
 * convolution whose rows are one axis are read where they are: a copy would be some times as large. */
static void
stage_panels (Plan *plan, Nest *nest, guint vector, guint lanes, const Tile *tile)
{
  TinyAxes *axes = plan->axes;
  gint64 n_lanes = lanes * tile->n_vectors;
  double most
      = MIN ((double) plan->target->local_bytes, (double) plan->target->cache_bytes[1] / 2);
  if (tile->axis < 0 || plan->nests->len != 1 || axes->n_outputs < 2)
    return;
  if (is_read_in_place (plan, nest, vector)) {
    if (tiny_axes_find (axes, plan->origins[vector])
        < tiny_axes_find (axes, plan->origins[tile->axis]))
      move_inside (plan, vector);
    return;
  }
  for (guint i = 0; i < nest->loads->len; i++) {
    Access *access = &g_array_index (nest->loads, Access, i);
    gboolean dense = is_dense (plan, nest, access, n_lanes) && access->node->n_sources == 2;
    double n_bytes = count_panel_bytes (plan, nest, access, n_lanes);
    if (!is_panel (access, tile, vector) || (n_bytes > most && !dense)
        || tiny_plan_count_readers (plan, access, vector) < STAGE_MIN_TILES * tile->count)
      continue;
    gint64 operand = 0;
    while (tiny_axes_find_operand (axes, operand) != access->node)
      operand++;
    if (move_readers_inside (plan, access, vector, tile) && !dense
        && !is_repeated (plan, nest, access, vector, tile, n_lanes))
      plan->staged = operand;
    return;
  }
}

/* Copies of rows beside each other know the conditions at the ends of rows where the steps along them are copies too:
 * most hold, and loads of one number each are no branches. */
static void
unroll_conditions (Plan *plan, Nest *nest, guint vector, const Tile *tile)
{
  for (guint i = 0; i < nest->loads->len; i++) {
    const Access *access = &g_array_index (nest->loads, Access, i);
    int tap
        = is_kind (access, vector, ROWS) ? find_condition (plan, nest, access, tile->axis) : -1;
    if (tap >= 0
        && tile->count * tile->n_vectors * extent_of (plan, (guint) tap) <= MAX_WINDOW_COPIES) {
      apply (plan, TINY_OPT_UNROLL, (guint) tiny_axes_find (plan->axes, plan->origins[tap]),
             extent_of (plan, (guint) tap));
      return;
    }
  }
}

void
tiny_plan_tile (Plan *plan, Nest *nest, guint vector, guint lanes)
{
  Tile best = { -1, 1, 1, 0 };
  gboolean has_copies = count_copies (plan, nest->reduce) > 1;
  if (!has_copies)
    try_tile (plan, nest, vector, lanes, -1, &best);
  /* Inner axes first: of equal tiles the one whose loads lie closest together is taken. */
  for (guint i = plan->axes->n_outputs; i-- > 0;)
    if (i != vector && depends (plan, nest->reduce, i) && (!has_copies || plan->copies[i] > 1))
      try_tile (plan, nest, vector, lanes, (int) i, &best);
  if (best.count == 1 && lanes > 1 && !has_copies
      && tiny_plan_window (plan, nest, vector, lanes))
    return;
  tiny_plan_apply_lanes (plan, vector, lanes, lanes * (guint) best.n_vectors);
  if (best.axis >= 0 && best.count > 1 && !has_copies) {
    plan->copies[best.axis] = best.count;
    if (extent_of (plan, best.axis) % best.count != 0)
      apply (plan, TINY_OPT_PAD, best.axis, best.count);
    apply (plan, TINY_OPT_UPCAST, best.axis, best.count);
  }
  /* Last, so that its copies are next to each other: what is broadcast to them dies at once. */
  if (best.n_vectors > 1)
    apply (plan, TINY_OPT_UPCAST, vector, best.n_vectors);
  if (best.count > 1 && !has_copies)
    unroll_conditions (plan, nest, vector, &best);
  stage_panels (plan, nest, vector, lanes, &best);
}

/* The innermost output axis along which outputs of @nest have a load in common, by origin; -1: none. */
static int
find_shared (Plan *plan, Nest *nest)
{
  for (guint at = plan->axes->n_outputs; at-- > 0;) {
    const guint origin = origin_of (plan, at);
    for (guint i = 0; i < nest->loads->len && depends (plan, nest->reduce, origin); i++) {
      const Access *access = &g_array_index (nest->loads, Access, i);
      if (!access->uneven[origin] && access->strides[origin] == 0)
        return (int) origin;
    }
  }
  return -1;
}

void
tiny_plan_tile_scalars (Plan *plan)
{
  for (guint n = 0; n < plan->nests->len; n++) {
    Nest *nest = &g_array_index (plan->nests, Nest, n);
    const int axis = find_shared (plan, nest);
    if (axis < 0 || (plan->vector_axis >= 0 && depends (plan, nest->reduce, plan->vector_axis)))
      continue;
    plan->vector_axis = axis;
    tiny_plan_tile (plan, nest, (guint) axis, 1);
  }
}
