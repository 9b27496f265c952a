/* SPDX-License-Identifier: MIT
 *
 * tiny-bounds.h: what is known of an integer's value without running anything. */
#pragma once

#include "ir/tiny-node.h"

G_BEGIN_DECLS

/* The least and greatest value that @node, of a bool or integer dtype, can take; over all lanes.
 * Memoised on the node. A u64 whose greatest value is G_MAXINT64 may be anything above @out_min.
 * Floats and void give the whole range of gint64. */
void tiny_node_get_bounds (TinyNode *node, gint64 *out_min, gint64 *out_max);

static inline gint64
tiny_node_get_min (TinyNode *node)
{
  gint64 min, max;
  tiny_node_get_bounds (node, &min, &max);
  return min;
}
static inline gint64
tiny_node_get_max (TinyNode *node)
{
  gint64 min, max;
  tiny_node_get_bounds (node, &min, &max);
  return max;
}

/* The largest constant found to divide every value of an INDEX expression; 0 for the constant 0. */
gint64 tiny_node_get_divisor (TinyNode *node);

/* The mathematical floor(x / y) and x - y * floor(x / y), y not 0; G_MININT64 / -1 saturates. */
gint64 tiny_floor_div (gint64 x, gint64 y);
gint64 tiny_floor_mod (gint64 x, gint64 y);
gint64 tiny_gcd (gint64 x, gint64 y);

G_END_DECLS
