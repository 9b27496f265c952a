/* SPDX-License-Identifier: MIT
 *
 * views.c: how movements pass one another, and elementwise operations.
 *
 * A PAD sinks to the value it pads, through EXPAND, PERMUTE, RESHAPE and SHEAR of other axes: a
 * small padded tensor may then be stored and read without conditions. A SHEAR that reads outside
 * is a PAD and a SHEAR that does not; one that divides is a dilation and a SHEAR that does not. */
#include "schedule/views.h"

#include <string.h>

enum {
  MAX_GROWTH = 4, /* a SHEAR may be padded to this multiple of the axis */
  MAX_DEPTH
  = 64, /* elementwise nodes that a movement sinks through: threads have small stacks */
  MAX_MOVES = 32 /* movements that one passes, or that are looked through */
};

int
view_find_axis (const TinyInts *from, const TinyInts *to, guint axis)
{
  gint64 before = 1, product = 1;
  if (to->v[axis] == 1)
    return -1;
  for (guint j = 0; j < axis; j++)
    before *= to->v[j];
  for (guint i = 0; i < from->n; i++) {
    if (product == before && from->v[i] == to->v[axis])
      return (int) i;
    product *= from->v[i];
  }
  return -1;
}

gboolean
view_is_constant_along (const TinyNode *x, guint axis)
{
  for (guint left = MAX_MOVES; x->shape->v[axis] != 1; left--) {
    if (left == 0 || !tiny_op_is_movement (x->op) || x->n_sources == 0)
      return FALSE;
    const TinyNode *y = x->sources[0];
    const gint64 *v = x->ints->v;
    if (x->op == TINY_OP_PERMUTE)
      axis = (guint) v[axis];
    if (x->op == TINY_OP_RESHAPE) {
      int i = view_find_axis (y->shape, x->shape, axis);
      if (i < 0)
        return FALSE;
      axis = (guint) i;
    }
    if (x->op == TINY_OP_SHEAR && (axis == v[0] || (axis == v[1] && v[3] != 0)))
      return FALSE;
    if (x->op == TINY_OP_PAD && (v[2 * axis] != 0 || v[2 * axis + 1] != 0))
      return FALSE;
    x = y;
  }
  return TRUE;
}

/* Looks through @left movements at most. */
static TinyNode *
extend (TinyGraph *graph, TinyNode *x, guint axis, gint64 size, guint left)
{
  gint64 dims[SCHEDULE_MAX_RANK], pairs[2 * SCHEDULE_MAX_RANK];
  guint n = x->shape->n;
  if (x->shape->v[axis] == size)
    return x;
  memcpy (dims, x->shape->v, n * sizeof *dims);
  dims[axis] = size;
  if (left > 0 && x->op == TINY_OP_EXPAND) {
    TinyNode *y = x->sources[0];
    if (y->shape->v[axis] != 1)
      y = extend (graph, y, axis, size, left - 1);
    return tiny_node_expand (graph, y, dims, n);
  }
  if (left > 0 && x->op == TINY_OP_PERMUTE)
    return tiny_node_permute (
        graph, extend (graph, x->sources[0], x->ints->v[axis], size, left - 1), x->ints->v, n);
  if (left > 0 && x->op == TINY_OP_RESHAPE) {
    int i = view_find_axis (x->sources[0]->shape, x->shape, axis);
    if (i >= 0)
      return tiny_node_reshape (graph, extend (graph, x->sources[0], i, size, left - 1), dims,
                                n);
  }
  if (left > 0 && x->op == TINY_OP_SHEAR && axis != x->ints->v[0]) {
    TinyNode *y = extend (graph, x->sources[0], axis, size, left - 1);
    return tiny_node_with_sources (graph, x, &y);
  }
  for (guint i = 0; i < n; i++) {
    pairs[2 * i] = 0;
    pairs[2 * i + 1] = i == axis ? 1 : x->shape->v[i];
  }
  return tiny_node_expand (graph, tiny_node_shrink (graph, x, pairs, n), dims, n);
}

TinyNode *
view_extend (TinyGraph *graph, TinyNode *x, guint axis, gint64 size)
{
  return extend (graph, x, axis, size, MAX_MOVES);
}

void
view_shear_bounds (const TinyNode *x, const gint64 *ints, gint64 *out_lo, gint64 *out_hi)
{
  gint64 a = (ints[6] - 1) * ints[2], b = (x->shape->v[ints[1]] - 1) * ints[3];
  if (ints[0] == ints[1]) /* both terms move with the new index */
    b = (ints[6] - 1) * ints[3];
  *out_lo = ints[4] + MIN (a, 0) + MIN (b, 0);
  *out_hi = ints[4] + MAX (a, 0) + MAX (b, 0);
}

/* ---- PAD ---- */
static TinyNode *
sink_pad (TinyGraph *graph, const TinyNodeNumbers *users, const gint64 *pairs, TinyNode *x)
{
  guint n = x->shape->n;
  gint64 moved[2 * SCHEDULE_MAX_RANK] = { 0 }, dims[SCHEDULE_MAX_RANK];
  TinyNode *y = x->n_sources > 0 ? x->sources[0] : NULL;
  gboolean passes = TRUE;
  for (guint i = 0; i < n; i++)
    dims[i] = x->shape->v[i] + pairs[2 * i] + pairs[2 * i + 1];
  switch (x->op) {
  case TINY_OP_PAD:
    for (guint i = 0; i < 2 * n; i++)
      moved[i] = pairs[i] + x->ints->v[i];
    return view_apply (graph, users, TINY_OP_PAD, moved, 2 * n, y);
  case TINY_OP_EXPAND:
    for (guint i = 0; i < n; i++)
      passes = passes
               && ((pairs[2 * i] == 0 && pairs[2 * i + 1] == 0)
                   || y->shape->v[i] == x->shape->v[i]);
    if (!passes)
      break;
    return tiny_node_expand (graph, view_apply (graph, users, TINY_OP_PAD, pairs, 2 * n, y),
                             dims, n);
  case TINY_OP_PERMUTE:
    for (guint i = 0; i < n; i++)
      memcpy (moved + 2 * x->ints->v[i], pairs + 2 * i, 2 * sizeof *pairs);
    y = view_apply (graph, users, TINY_OP_PAD, moved, 2 * n, y);
    return tiny_node_permute (graph, y, x->ints->v, n);
  case TINY_OP_RESHAPE:
    for (guint i = 0; i < n && passes; i++) {
      if (pairs[2 * i] == 0 && pairs[2 * i + 1] == 0)
        continue;
      int j = view_find_axis (y->shape, x->shape, i);
      passes = j >= 0;
      if (passes)
        memcpy (moved + 2 * j, pairs + 2 * i, 2 * sizeof *pairs);
    }
    if (!passes)
      break;
    y = view_apply (graph, users, TINY_OP_PAD, moved, 2 * y->shape->n, y);
    return tiny_node_reshape (graph, y, dims, n);
  case TINY_OP_SHEAR: {
    const gint64 *v = x->ints->v;
    passes = pairs[2 * v[0]] == 0 && pairs[2 * v[0] + 1] == 0
             && (v[3] == 0 || (pairs[2 * v[1]] == 0 && pairs[2 * v[1] + 1] == 0));
    if (!passes)
      break;
    y = view_apply (graph, users, TINY_OP_PAD, pairs, 2 * n, y);
    return tiny_node_with_sources (graph, x, &y);
  }
  default:
    break;
  }
  return tiny_node_pad (graph, x, pairs, n);
}

/* ---- SHEAR ---- */
/* A SHEAR of one axis alone, a dilation or a stride, sinks as a PAD does. */
static TinyNode *
sink_stride (TinyGraph *graph, const TinyNodeNumbers *users, const gint64 *ints, TinyNode *x)
{
  gint64 v[7], dims[SCHEDULE_MAX_RANK];
  guint n = x->shape->n, p = ints[0];
  TinyNode *y = x->n_sources > 0 ? x->sources[0] : NULL;
  int axis = -1; /* of y */
  memcpy (v, ints, sizeof v);
  memcpy (dims, x->shape->v, n * sizeof *dims);
  dims[p] = v[6];
  if (x->op == TINY_OP_EXPAND && y->shape->v[p] == x->shape->v[p])
    axis = (int) p;
  else if (x->op == TINY_OP_PERMUTE)
    axis = (int) x->ints->v[p];
  else if (x->op == TINY_OP_RESHAPE)
    axis = view_find_axis (y->shape, x->shape, p);
  else if (x->op == TINY_OP_SHEAR && x->ints->v[0] != p
           && (x->ints->v[3] == 0 || x->ints->v[1] != p))
    axis = (int) p;
  if (axis < 0)
    return tiny_node_move (graph, TINY_OP_SHEAR, x, v, 7);
  v[0] = v[1] = axis;
  y = view_apply (graph, users, TINY_OP_SHEAR, v, 7, y);
  if (x->op == TINY_OP_EXPAND || x->op == TINY_OP_RESHAPE)
    return tiny_node_move (graph, x->op, y, dims, n);
  return tiny_node_move (graph, x->op, y, x->ints->v, x->ints->n);
}

static TinyNode *
unmask_shear (TinyGraph *graph, const TinyNodeNumbers *users, const gint64 *ints, TinyNode *x)
{
  gint64 v[7], lo, hi, pairs[2 * SCHEDULE_MAX_RANK] = { 0 };
  guint p = ints[0];
  gint64 size = x->shape->v[p];
  memcpy (v, ints, sizeof v);
  view_shear_bounds (x, v, &lo, &hi);
  if (v[6] == 0 || size == 0)
    return tiny_node_move (graph, TINY_OP_SHEAR, x, v, 7);
  if (v[3] == 0)
    return sink_stride (graph, users, v, x);
  gint64 spread = (size - 1) * v[5] + 1; /* the axis's size after a dilation */
  gint64 before = MAX (0, -lo), after = MAX (0, hi + 1 - spread);
  if (before + after + spread > MAX_GROWTH * v[5] * size + 8)
    return tiny_node_move (graph, TINY_OP_SHEAR, x, v, 7);
  if (v[5] > 1) {
    x = view_apply (graph, users, TINY_OP_SHEAR, (gint64[]){ p, p, 1, 0, 0, v[5], spread }, 7,
                    x);
    v[5] = 1;
  }
  pairs[2 * p] = before;
  pairs[2 * p + 1] = after;
  v[4] += before;
  if (before + after > 0)
    x = view_apply (graph, users, TINY_OP_PAD, pairs, 2 * x->shape->n, x);
  return tiny_node_move (graph, TINY_OP_SHEAR, x, v, 7);
}

/* ---- elementwise ---- */
static gboolean
is_masked (TinyOp op, const gint64 *ints, const TinyNode *x)
{
  gint64 lo, hi;
  if (op != TINY_OP_SHEAR)
    return op == TINY_OP_PAD;
  view_shear_bounds (x, ints, &lo, &hi);
  return ints[5] != 1 || lo < 0 || hi >= x->shape->v[ints[0]];
}

/* Whether @s can do without the mask of a PAD or SHEAR: then it is returned in the new size. */
static TinyNode *
extend_for (TinyGraph *graph, TinyOp op, const gint64 *ints, TinyNode *s)
{
  if (op == TINY_OP_SHEAR) {
    if (!view_is_constant_along (s, ints[0]))
      return NULL;
    return view_extend (graph, s, ints[0], ints[6]);
  }
  for (guint i = 0; i < s->shape->n; i++) {
    gint64 grows = ints[2 * i] + ints[2 * i + 1];
    if (grows == 0)
      continue;
    if (!view_is_constant_along (s, i))
      return NULL;
    s = view_extend (graph, s, i, s->shape->v[i] + grows);
  }
  return s;
}

/* The elementwise @x over moved operands, or NULL when that is something else. */
static TinyNode *
move_operands (TinyGraph *graph,
               const TinyNodeNumbers *users,
               TinyOp op,
               const gint64 *ints,
               guint n,
               TinyNode *x)
{
  gboolean masked = is_masked (op, ints, x);
  TinyNode *moved[4];
  gboolean one_masked = FALSE;
  if (tiny_node_numbers_get (users, x) > 1 || x->n_sources > 4)
    return NULL;
  if (masked && x->op != TINY_OP_MUL && x->op != TINY_OP_CAST)
    return NULL;
  for (guint i = 0; i < x->n_sources; i++) {
    TinyNode *s = x->sources[i];
    if (s->shape->n == 0) {
      moved[i] = s;
      continue;
    }
    moved[i] = masked ? extend_for (graph, op, ints, s) : NULL;
    if (moved[i] == NULL) {
      moved[i] = view_apply (graph, users, op, ints, n, s);
      one_masked = TRUE;
    }
  }
  if (masked && !one_masked)
    return NULL;
  return tiny_node_with_sources (graph, x, moved);
}

/* Elementwise nodes and movements that the one at hand has sunk through. */
static _Thread_local guint depth, n_moves;

static TinyNode *
apply_to_movement (TinyGraph *graph,
                   const TinyNodeNumbers *users,
                   TinyOp op,
                   const gint64 *ints,
                   guint n,
                   TinyNode *x)
{
  if (op == TINY_OP_PAD)
    return sink_pad (graph, users, ints, x);
  if (op == TINY_OP_SHEAR)
    return unmask_shear (graph, users, ints, x);
  if (op == TINY_OP_PERMUTE && x->op == TINY_OP_EXPAND) {
    gint64 dims[SCHEDULE_MAX_RANK];
    for (guint i = 0; i < n; i++)
      dims[i] = x->shape->v[ints[i]];
    return tiny_node_expand (graph, view_apply (graph, users, op, ints, n, x->sources[0]), dims,
                             n);
  }
  return tiny_node_move (graph, op, x, ints, n);
}

TinyNode *
view_apply (TinyGraph *graph,
            const TinyNodeNumbers *users,
            TinyOp op,
            const gint64 *ints,
            guint n,
            TinyNode *x)
{
  if (tiny_op_is_elementwise (x->op) && x->shape->n > 0 && depth < MAX_DEPTH) {
    depth++;
    TinyNode *moved = move_operands (graph, users, op, ints, n, x);
    depth--;
    if (moved != NULL)
      return moved;
  }
  if (n_moves == MAX_MOVES)
    return tiny_node_move (graph, op, x, ints, n);
  n_moves++;
  TinyNode *moved = apply_to_movement (graph, users, op, ints, n, x);
  n_moves--;
  return moved;
}
