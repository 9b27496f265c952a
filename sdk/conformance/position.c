/* SPDX-License-Identifier: MIT
 *
 * position.c: positions in tensors, and what movements make of them, element by element. */
#include "position.h"

#include <string.h>

void
position_unravel (const TinyInts *shape, gsize i, gint64 *out)
{
  for (guint axis = shape->n; axis-- > 0;) {
    out[axis] = (gint64) (i % (gsize) shape->v[axis]);
    i /= (gsize) shape->v[axis];
  }
}

gsize
position_ravel (const TinyInts *shape, const gint64 *at)
{
  gsize i = 0;
  for (guint axis = 0; axis < shape->n; axis++)
    i = i * (gsize) shape->v[axis] + (gsize) at[axis];
  return i;
}

gboolean
position_move (const TinyNode *node, gint64 *at)
{
  const TinyInts *in = node->sources[0]->shape;
  const gint64 *v = node->ints->v;
  gint64 before[POSITION_MAX_RANK];
  memcpy (before, at, node->shape->n * sizeof *at);
  switch (node->op) {
  case TINY_OP_RESHAPE:
    position_unravel (in, position_ravel (node->shape, before), at);
    return TRUE;
  case TINY_OP_EXPAND:
    for (guint i = 0; i < in->n; i++)
      at[i] = in->v[i] == 1 ? 0 : before[i];
    return TRUE;
  case TINY_OP_PERMUTE:
    for (guint i = 0; i < in->n; i++)
      at[v[i]] = before[i];
    return TRUE;
  case TINY_OP_PAD:
    for (guint i = 0; i < in->n; i++) {
      at[i] -= v[2 * i];
      if (at[i] < 0 || at[i] >= in->v[i])
        return FALSE;
    }
    return TRUE;
  case TINY_OP_SHRINK:
    for (guint i = 0; i < in->n; i++)
      at[i] += v[2 * i];
    return TRUE;
  case TINY_OP_FLIP:
    for (guint i = 0; i < node->ints->n; i++)
      at[v[i]] = in->v[v[i]] - 1 - at[v[i]];
    return TRUE;
  case TINY_OP_SHEAR: {
    gint64 numerator = before[v[0]] * v[2] + before[v[1]] * v[3] + v[4];
    at[v[0]] = numerator / v[5];
    return numerator % v[5] == 0 && at[v[0]] >= 0 && at[v[0]] < in->v[v[0]];
  }
  default:
    g_error ("no movement %s", tiny_op_to_string ((TinyOp) node->op));
  }
}
