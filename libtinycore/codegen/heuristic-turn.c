/* SPDX-License-Identifier: MIT
 *
 * heuristic-turn.c: copies that read along one axis and store along another, in squares.
 *
 * A square has the lanes of a vector along both. Its rows are read as they lie, turned in registers
 * (turn.c) and stored as they lie. Axes that are a little shorter than the lanes, such as the taps of
 * a convolution's weight, are worth it too: part of each square is in vain. */
#include "heuristic.h"

gboolean
tiny_plan_is_turned (const Access *access, guint origin, guint axis)
{
  return access->node->op == TINY_OP_LOAD && access->node->n_sources == 2
         && !access->uneven[axis] && access->strides[axis] == 1 && !access->uneven[origin]
         && access->strides[origin] != 0 && access->strides[origin] != 1;
}

/* Squares of more than this along their rows, for each that is wanted, are not worth turning. */
static const double MAX_TURNED_WASTE = 1.99;

static gboolean
fills_squares (Plan *plan, guint axis)
{
  return tiny_plan_waste (extent_of (plan, axis), MIN (plan->lanes, MAX_TURNED))
         <= MAX_TURNED_WASTE;
}

const Access *
tiny_plan_find_turned (Plan *plan, guint origin, guint *out_axis)
{
  gboolean can = plan->nests->len == 0 && plan->axes->root->n_sources == 1
                 && extent_of (plan, origin) >= MAX_TURNED
                 && (plan->target->flags & TINY_TARGET_UNALIGNED);
  for (guint axis = 0; axis < plan->n_origins && can; axis++)
    for (guint i = 0; i < plan->accesses->len && fills_squares (plan, axis); i++) {
      const Access *access = &g_array_index (plan->accesses, Access, i);
      if (tiny_plan_is_turned (access, origin, axis)) {
        *out_axis = axis;
        return access;
      }
    }
  return NULL;
}

gboolean
tiny_plan_turn (Plan *plan, guint origin, guint lanes)
{
  guint axis;
  const Access *turned = tiny_plan_find_turned (plan, origin, &axis);
  if (turned == NULL)
    return FALSE;
  lanes = MIN (lanes, MAX_TURNED);
  if (!tiny_plan_apply_lanes (plan, origin, lanes, lanes))
    return FALSE;
  guint at = (guint) tiny_axes_find (plan->axes, plan->origins[axis]);
  gboolean fits = tiny_axes_get (plan->axes, at)->extent % lanes == 0;
  if (!fits)
    apply (plan, TINY_OPT_PAD, at, lanes);
  if (!apply (plan, TINY_OPT_UPCAST, at, lanes))
    return FALSE;
  if (!fits)
    tiny_plan_walk_in_order (plan, turned);
  return TRUE;
}
