/* SPDX-License-Identifier: MIT
 *
 * heuristic-window.c: reductions over a few taps that neighbours have in common, as in a depthwise convolution, a pool
 * or the blocks of a scan.
 *
 * Each output reads as much as it computes, so no tile of a contraction helps. All taps become copies: their
 * weights stay in registers, and the conditions at the ends of rows are known. Neighbours along a second axis
 * read the same rows for other taps, and are copies beside each other that load each row once. Where the vectors' axis
 * alone moves the window, neighbours along another one have its conditions in common. */
#include "heuristic.h"

typedef struct {
  int axis; /* origin; -1: no second axis */
  gint64 count, n_vectors;
  double cost; /* of one vector of outputs; 0: none was tried */
} Window;

/* The taps of @nest, or 0 where they are too many to become copies. */
static gint64
count_taps (Plan *plan, Nest *nest)
{
  gint64 n = 1;
  for (guint i = 0; i < plan->n_origins; i++)
    if (is_reduced_by (nest, plan->origins[i]))
      n = MIN (n, MAX_WINDOW) * MIN (extent_of (plan, i), MAX_WINDOW + 1);
  return n <= MAX_WINDOW ? n : 0;
}

gint64
tiny_plan_count_shift (Plan *plan, const Access *access, int axis, guint tap)
{
  if (axis < 0 || access->uneven[axis] || access->uneven[tap] || access->strides[tap] <= 0
      || access->strides[axis] <= 0 || access->strides[axis] % access->strides[tap] != 0)
    return 0;
  gint64 shift = access->strides[axis] / access->strides[tap];
  return shift < extent_of (plan, tap) ? shift : 0;
}

/* The loads of @access for @count outputs along @axis. */
static gint64
count_loads (Plan *plan, Nest *nest, const Access *access, int axis, gint64 count)
{
  gint64 n = 1;
  gboolean shared = FALSE;
  for (guint i = 0; i < plan->n_origins; i++) {
    if (!is_reduced_by (nest, plan->origins[i]) || !depends (plan, access->node, i))
      continue;
    gint64 shift = shared ? 0 : tiny_plan_count_shift (plan, access, axis, i);
    n *= extent_of (plan, i) + (count - 1) * shift;
    shared = shared || shift > 0;
  }
  return shared || axis < 0 || !depends (plan, access->node, (guint) axis) ? n : n * count;
}

/* Operations for each vector of outputs. A condition along a row costs as much as its load, and nothing where copies
 * are whole rows: it is known. */
static double
count_operations (Plan *plan, Nest *nest, guint vector, gint64 n, const Window *window)
{
  double n_outputs = (double) (window->n_vectors * window->count);
  double sum = n_outputs * (double) (nest->n_reduces * count_taps (plan, nest)) / 2 + n_outputs;
  for (guint i = 0; i < nest->loads->len; i++) {
    const Access *access = &g_array_index (nest->loads, Access, i);
    gboolean conditional = window->n_vectors < n && access->node->n_sources > 2
                           && depends (plan, access->node->sources[2], vector);
    double loads = (double) count_loads (plan, nest, access, window->axis, window->count);
    sum += loads * (conditional ? 2 : 1)
           * (double) (depends (plan, access->node, vector) ? window->n_vectors : 1);
  }
  return sum / n_outputs;
}

static void
try_axis (Plan *plan, Nest *nest, guint vector, guint lanes, int axis, Window *best)
{
  gint64 n = (extent_of (plan, vector) + lanes - 1) / lanes;
  gint64 rows = axis >= 0 ? extent_of (plan, (guint) axis) : 1;
  gint64 most = MIN (MAX_WINDOW_COPIES / count_taps (plan, nest),
                     MAX (plan->target->n_vector_registers, 8) - 2);
  for (gint64 nv = 1; nv <= MIN (n, MAX_WINDOW_VECTORS); nv++)
    for (gint64 count = 1; count <= MIN (rows, plan->most_copies); count++) {
      Window window = { axis, count, nv, 0 };
      if (nv * count * nest->n_reduces > most)
        break;
      window.cost = count_operations (plan, nest, vector, n, &window) * tiny_plan_waste (n, nv)
                    * tiny_plan_waste (rows, count);
      if (best->cost == 0 || window.cost < best->cost)
        *best = window;
    }
}

/* TRUE if neighbours along @axis read the same for other taps. */
static gboolean
is_shifted (Plan *plan, Nest *nest, guint axis)
{
  for (guint i = 0; i < nest->loads->len; i++)
    for (guint tap = 0; tap < plan->n_origins; tap++)
      if (is_reduced_by (nest, plan->origins[tap])
          && tiny_plan_count_shift (plan, &g_array_index (nest->loads, Access, i), (int) axis,
                                    tap)
                 > 0)
        return TRUE;
  return FALSE;
}

/* True if a load of @nest has a condition that depends on the vectors' axis. */
static gboolean
is_conditional (Plan *plan, Nest *nest, guint vector, int but)
{
  for (guint i = 0; i < nest->loads->len; i++) {
    const TinyNode *load = g_array_index (nest->loads, Access, i).node;
    if (load->n_sources > 2 && depends (plan, load->sources[2], vector)
        && (but < 0 || !depends (plan, load->sources[2], (guint) but)))
      return TRUE;
  }
  return FALSE;
}

/* Gives copies to an output axis, the innermost besides @vector, along which conditions are the same. */
static void
share_conditions (Plan *plan, Nest *nest, guint vector, gint64 n_taps)
{
  for (guint i = plan->axes->n_outputs; i-- > 0;) {
    const guint origin = origin_of (plan, i);
    const gint64 most = MIN (MIN (MAX_APART, plan->most_copies), MAX_WINDOW_COPIES / n_taps);
    if (origin == vector || !depends (plan, nest->reduce, origin)
        || !is_conditional (plan, nest, vector, (int) origin))
      continue;
    const gint64 n = tiny_plan_largest_divisor (extent_of (plan, origin), most);
    if (n > 1 && apply (plan, TINY_OPT_UPCAST, i, n))
      plan->copies[origin] = n;
    return;
  }
}

gboolean
tiny_plan_window (Plan *plan, Nest *nest, guint vector, guint lanes)
{
  Window best = { -1, 1, 1, 0 };
  gboolean overlaps = is_shifted (plan, nest, vector);
  if (count_taps (plan, nest) == 0 || plan->most_copies < MAX_TILE_COPIES)
    return FALSE;
  for (guint i = plan->axes->n_outputs; i-- > 0;)
    if (i != vector && is_shifted (plan, nest, i)) {
      try_axis (plan, nest, vector, lanes, (int) i, &best);
      overlaps = TRUE;
    }
  if (overlaps)
    try_axis (plan, nest, vector, lanes, -1, &best);
  if (best.cost == 0)
    return FALSE;
  tiny_plan_apply_lanes (plan, vector, lanes, lanes * best.n_vectors);
  if (best.n_vectors > 1)
    apply (plan, TINY_OPT_UPCAST, vector, best.n_vectors);
  if (best.count > 1) {
    plan->copies[best.axis] = best.count;
    if (extent_of (plan, (guint) best.axis) % best.count != 0)
      apply (plan, TINY_OPT_PAD, (guint) best.axis, best.count);
    apply (plan, TINY_OPT_UPCAST, (guint) best.axis, best.count);
  }
  if (best.count == 1 && best.n_vectors == 1)
    share_conditions (plan, nest, vector, count_taps (plan, nest));
  tiny_plan_unroll (plan, nest, MAX_WINDOW);
  return TRUE;
}
