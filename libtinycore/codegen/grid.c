/* SPDX-License-Identifier: MIT
 *
 * grid.c: the kernel's axes on the grid, laid out over the axes that the target has.
 *
 * Where runs of points are one thread's they are one axis. Else the innermost is the first and the
 * next one the second, so that nothing is divided, and the rest share the third. Where an axis would
 * be longer than the target's, all points are numbered, and the number is divided over its axes. */
#include "codegen/codegen-private.h"

static gint64
most_along (const TinyTarget *target, guint axis)
{
  return target->max_grid[axis] > 0 ? MIN (target->max_grid[axis], G_MAXINT32) : G_MAXINT32;
}

/* The largest divisor of @n that is no more than @most, found from both ends: as @n divided by something, and as itself.
 * Between them, where no kernel's size is, it may be missed. */
static gint64
largest_divisor (gint64 n, gint64 most)
{
  enum { MAX_STEPS = 1 << 16 };
  const gint64 least = n / most + (n % most != 0);
  for (gint64 by = least; by <= n && by - least < MAX_STEPS; by++)
    if (n % by == 0)
      return n / by;
  for (gint64 i = MIN (most, MAX_STEPS); i > 1; i--)
    if (n % i == 0)
      return i;
  return 1;
}

gboolean
tiny_grid_lay_out (const TinyTarget *target, const gint64 *extents, guint n, TinyGrid *out)
{
  gboolean chunks = (target->flags & TINY_TARGET_GRID_CHUNKS) != 0;
  gint64 all = 1;
  *out = (TinyGrid){ .sizes = { 1, 1, 1 }, .is_numbered = chunks };
  for (guint i = 0; i < n; i++) {
    if (__builtin_mul_overflow (all, extents[i], &all))
      return FALSE;
    out->sizes[MIN (i, 2)] *= extents[i];
  }
  for (guint axis = 0; axis < 3 && !out->is_numbered; axis++)
    out->is_numbered = out->sizes[axis] > most_along (target, axis);
  for (guint axis = 0; axis < 3 && out->is_numbered; axis++) {
    out->sizes[axis] = largest_divisor (all, most_along (target, axis));
    all /= out->sizes[axis];
  }
  return !out->is_numbered || all == 1;
}

static TinyNode *
grid_node (TinyGraph *graph, guint axis, gint64 extent)
{
  if (extent == 1)
    return tiny_node_const_index (graph, 0);
  return tiny_node_new (graph, TINY_OP_GRID, TINY_DTYPE_INDEX, 1, 0, NULL, axis,
                        tiny_graph_ints (graph, &extent, 1), NULL);
}

/* @number / @below % @n, where @number is less than @end. */
static TinyNode *
take_digit (TinyGraph *graph, TinyNode *number, gint64 below, gint64 n, gint64 end)
{
  if (below > 1)
    number = tiny_node_binary (graph, TINY_OP_FLOORDIV, number,
                               tiny_node_const_index (graph, below));
  if (below * n < end)
    number
        = tiny_node_binary (graph, TINY_OP_FLOORMOD, number, tiny_node_const_index (graph, n));
  return number;
}

void
tiny_grid_get_indices (
    TinyGraph *graph, const TinyGrid *self, const gint64 *extents, guint n, TinyNode **out)
{
  TinyNode *axes[3], *number = tiny_node_const_index (graph, 0);
  gint64 below = 1;
  for (guint axis = 3; axis-- > 0;) {
    axes[axis] = grid_node (graph, axis, self->sizes[axis]);
    number = tiny_fold_binary (graph, TINY_OP_MUL, number,
                               tiny_node_const_index (graph, self->sizes[axis]));
    number = tiny_fold_binary (graph, TINY_OP_ADD, number, axes[axis]);
  }
  gint64 all = self->sizes[0] * self->sizes[1] * self->sizes[2];
  for (guint i = 0; i < n; i++) {
    if (self->is_numbered)
      out[i] = take_digit (graph, number, below, extents[i], all);
    else if (i < 2)
      out[i] = axes[i];
    else
      out[i] = take_digit (graph, axes[2], below, extents[i], self->sizes[2]);
    below *= self->is_numbered || i >= 2 ? extents[i] : 1;
  }
}
