/* SPDX-License-Identifier: MIT
 *
 * heuristic-group.c: chooses optimisations for targets with work-groups.
 *
 * Many items want to be busy, and neighbours among them want to read and write neighbours in
 * memory. Where there are enough outputs each has an item of its own: the axis along which most
 * accesses are consecutive goes to the group's first axis, others to its second and third until the
 * group is full, the rest to the grid. Where there are few, or each reads a row of memory, a group
 * works on each: the loops inside, reduced or of a store of its own, are split over its items. What
 * is between has both. */
#include "heuristic.h"

enum {
  GROUP_ITEMS = 128,   /* of a group, where the target and the kernel have as many */
  ENOUGH_ITEMS = 4096, /* outputs at once: items need not share one */
  MIN_ROW = 32,        /* elements that are worth a group, however many rows there are */
  NEIGHBOURS = 16,     /* items that read one line of memory */
  MIN_SHARED = 8       /* rounds of a loop that is worth sharing */
};

static gint64
most_items (Plan *plan)
{
  return MIN ((gint64) plan->target->max_group_total, GROUP_ITEMS);
}

/* ---- which axis lies together in memory ---- */
/* How many accesses move by one along @origin, those that move by more or stand still besides. */
static double
score_axis (GArray *accesses, guint origin)
{
  double score = 0;
  for (guint i = 0; i < accesses->len; i++) {
    const Access *access = &g_array_index (accesses, Access, i);
    gint64 stride = access->uneven[origin] ? 2 : ABS (access->strides[origin]);
    score += stride == 1 ? 2 : stride == 0 ? 0.1 : -1;
  }
  return score;
}

static double
score_everywhere (Plan *plan, guint origin)
{
  double score = score_axis (plan->accesses, origin);
  for (guint i = 0; i < plan->nests->len; i++) {
    Nest *nest = &g_array_index (plan->nests, Nest, i);
    double rounds
        = (double) nest->work / (double) MAX (combinations (plan->graph, nest->reduce), 1);
    score += score_axis (nest->loads, origin) * MIN (rounds, 64);
  }
  return score;
}

/* ---- splitting ---- */
/* Into how many parts of at most @most an axis of @extent is split: all of it, a large divisor, or
 * @most after padding. */
static gint64
choose_part (gint64 extent, gint64 most)
{
  if (extent <= most)
    return extent;
  for (gint64 n = most; n > most / 2; n--)
    if (extent % n == 0)
      return n;
  return most;
}

/* Gives @n parts of the axis of @origin to items; FALSE where it has fewer or they do not fit. */
static gboolean
give_to_items (Plan *plan, guint origin, gint64 n)
{
  int at = tiny_axes_find (plan->axes, plan->origins[origin]);
  if (at < 0 || n < 2)
    return FALSE;
  const TinyAxis *axis = tiny_axes_get (plan->axes, (guint) at);
  if (axis->extent % n != 0 && !apply (plan, TINY_OPT_PAD, (guint) at, n))
    return FALSE;
  return apply (plan, TINY_OPT_GROUP, (guint) at, n);
}

static gboolean
is_shared (Plan *plan, guint origin)
{
  int at = tiny_axes_find (plan->axes, plan->origins[origin]);
  return at >= 0 && !tiny_axes_get (plan->axes, (guint) at)->is_reduce
         && tiny_axes_all_stores_depend_on (plan->axes, plan->origins[origin]);
}

/* The axis of those for which @fits says so that lies together best, or -1. */
static int
choose_axis (Plan *plan, gboolean (*fits) (Plan *plan, guint origin), gint64 least)
{
  int best = -1;
  double best_score = 0;
  for (guint i = 0; i < plan->n_origins; i++) {
    if (!fits (plan, i) || extent_of (plan, i) < least)
      continue;
    double score = score_everywhere (plan, i);
    if (best < 0 || score >= best_score) {
      best = (int) i;
      best_score = score;
    }
  }
  return best;
}

/* ---- an item for each output ---- */
/* Along the vector axis, where everything outside of reductions is consecutive or constant. */
static void
choose_lanes_along (Plan *plan, guint origin)
{
  guint at = (guint) tiny_axes_find (plan->axes, plan->origins[origin]);
  gint64 extent = extent_of (plan, origin);
  if (plan->lanes < 2 || plan->nests->len > 0 || extent % plan->lanes != 0
      || extent / plan->lanes < MIN_SHARED)
    return;
  for (guint i = 0; i < plan->accesses->len; i++) {
    const Access *access = &g_array_index (plan->accesses, Access, i);
    if (access->uneven[origin] || access->strides[origin] < 0 || access->strides[origin] > 1)
      return;
  }
  apply (plan, TINY_OPT_LANES, at, plan->lanes);
}

static void
spread_outputs (Plan *plan, gint64 n_items)
{
  int first = choose_axis (plan, is_shared, 2);
  if (first < 0)
    return;
  choose_lanes_along (plan, (guint) first);
  for (guint k = 0; k < TINY_GROUP_AXES && n_items > 1; k++) {
    int origin = first;
    for (guint i = plan->n_origins; i-- > 0 && k > 0;)
      if (is_shared (plan, i) && extent_of (plan, i) > 1 && (int) i != first
          && plan->copies[i] == 0) {
        origin = (int) i;
        break;
      }
    if (k > 0 && origin == first)
      return;
    guint at = (guint) tiny_axes_find (plan->axes, plan->origins[origin]);
    gint64 n = choose_part (tiny_axes_get (plan->axes, at)->extent,
                            MIN (n_items, (gint64) plan->target->max_group[k]));
    plan->copies[origin] = 1; /* taken */
    if (give_to_items (plan, (guint) origin, n))
      n_items /= n;
  }
}

/* ---- a group for each output ---- */
static double
score_best (Plan *plan, Nest *nest, gboolean reduced)
{
  double best = -G_MAXDOUBLE;
  for (guint o = 0; o < plan->n_origins; o++) {
    gboolean closes = FALSE;
    for (guint s = 1; s < nest->reduce->n_sources; s++)
      closes = closes || nest->reduce->sources[s] == plan->origins[o];
    if ((reduced && closes && extent_of (plan, o) >= MIN_ROW)
        || (!reduced && is_shared (plan, o)))
      best = MAX (best, score_axis (nest->loads, o));
  }
  return best;
}

/* Whether some reduction reads neighbours inside rather than for neighbouring outputs. */
static gboolean
reads_rows (Plan *plan)
{
  for (guint i = 0; i < plan->nests->len; i++) {
    Nest *nest = &g_array_index (plan->nests, Nest, i);
    if (score_best (plan, nest, TRUE) > score_best (plan, nest, FALSE))
      return TRUE;
  }
  return FALSE;
}

/* Splits what happens inside of the shared axes over @n items. */
static void
share_insides (Plan *plan, gint64 n)
{
  for (guint i = 0; i < plan->nests->len; i++) {
    Nest *nest = &g_array_index (plan->nests, Nest, i);
    int best = -1;
    double best_score = 0;
    for (guint o = 0; o < plan->n_origins; o++) {
      gboolean reduced = FALSE;
      for (guint s = 1; s < nest->reduce->n_sources; s++)
        reduced = reduced || nest->reduce->sources[s] == plan->origins[o];
      double score = reduced ? score_axis (nest->loads, o) : 0;
      if (reduced && extent_of (plan, o) >= MIN_SHARED && (best < 0 || score > best_score)) {
        best = (int) o;
        best_score = score;
      }
    }
    if (best >= 0)
      give_to_items (plan, (guint) best, MIN (n, extent_of (plan, (guint) best)));
  }
  for (guint o = 0; o < plan->n_origins; o++) {
    int at = tiny_axes_find (plan->axes, plan->origins[o]);
    if (at >= 0 && (guint) at < plan->axes->n_outputs && !is_shared (plan, o)
        && extent_of (plan, o) >= MIN_SHARED)
      give_to_items (plan, o, MIN (n, extent_of (plan, o)));
  }
}

/* Where reductions read neighbours for neighbouring outputs and not inside, some of the items go
 * along the outputs. Returns how many. */
static gint64
spread_neighbours (Plan *plan)
{
  int best = choose_axis (plan, is_shared, NEIGHBOURS);
  if (best < 0 || most_items (plan) < 2 * NEIGHBOURS || plan->target->max_group[0] < NEIGHBOURS)
    return 1;
  for (guint o = 0; o < plan->n_origins; o++)
    if (!is_shared (plan, o)
        && score_everywhere (plan, o) >= score_everywhere (plan, (guint) best))
      return 1;
  return give_to_items (plan, (guint) best, NEIGHBOURS) ? NEIGHBOURS : 1;
}

/* ---- the grid ---- */
/* Everything that all stores share; an axis for which the grid is too small keeps a loop inside. */
static void
spread_over_grid (Plan *plan)
{
  for (guint i = 0; i < plan->axes->n_outputs; i++) {
    gint64 extent = tiny_axes_get (plan->axes, i)->extent;
    if (extent == 1 || apply (plan, TINY_OPT_GRID, i, 0))
      continue;
    if (!tiny_axes_all_stores_depend_on (plan->axes, tiny_axes_get (plan->axes, i)->origin))
      continue;
    for (gint64 keep = 2; keep < extent; keep++)
      if (extent % keep == 0 && tiny_axes_fit_grid (plan->axes, i, extent / keep)
          && apply (plan, TINY_OPT_SPLIT, i, keep)) {
        apply (plan, TINY_OPT_GRID, i, 0);
        i++;
        break;
      }
  }
}

void
tiny_plan_groups (Plan *plan)
{
  gint64 n_outputs = 1, most_inside = 1;
  for (guint i = 0; i < plan->n_origins; i++)
    if (is_shared (plan, i))
      n_outputs *= extent_of (plan, i);
    else
      most_inside = MAX (most_inside, extent_of (plan, i));
  if (tiny_plan_group_tile (plan)) {
    spread_over_grid (plan);
    return;
  }
  gboolean is_enough = n_outputs >= ENOUGH_ITEMS || most_inside < MIN_SHARED;
  if (is_enough && !reads_rows (plan)) {
    spread_outputs (plan, most_items (plan));
  } else {
    gint64 most = most_items (plan) / spread_neighbours (plan), n = 1;
    most = MIN (most, (gint64) plan->target->max_group[plan->axes->n_items]);
    while (2 * n <= MIN (most, most_inside))
      n *= 2;
    share_insides (plan, n);
  }
  spread_over_grid (plan);
}
