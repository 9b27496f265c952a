/* SPDX-License-Identifier: MIT
 *
 * multi-rules.c: what becomes of each op over values on several devices.
 *
 * A rule that can work on the pieces does, and says how its result is cut; the others work on the whole
 * value on each device, which multi_fit_whole() gathers. A rule never has to apply: the last one always does. */
#include <string.h>

#include "schedule/multi.h"

enum { MAX_RANK = 32 };

/* Its node for device @at is @node over sources that are cut as @like. */
static gboolean
add_piece (Apart *self, TinyNode *node, const Multi *like, Multi *out, guint at)
{
  g_autofree TinyNode **sources = g_new (TinyNode *, node->n_sources + 1);
  for (guint i = 0; i < node->n_sources; i++)
    if ((sources[i] = multi_fit (self, node, i, like, at)) == NULL)
      return FALSE;
  out->pieces[at] = tiny_node_with_sources (self->graph, node, sources);
  return TRUE;
}

/* All sources cut as @like, which the result is as well. */
static Multi *
apply_alike (Apart *self, TinyNode *node, const Multi *like)
{
  Multi *out = multi_new_like (self, like, like->axis);
  for (guint at = 0; at < like->on->n; at++)
    if (!add_piece (self, node, like, out, at))
      return NULL;
  return out;
}

static const Multi *
find_first (Apart *self, const TinyNode *node)
{
  const Multi *found = NULL;
  for (guint i = 0; i < node->n_sources && found == NULL; i++)
    found = multi_get (self, node->sources[i]);
  return found;
}

/* ---- every device does all of it ---- */
static Multi *
rule_whole (Apart *self, TinyNode *node)
{
  const Multi like = { find_first (self, node)->on, TINY_SHARD_WHOLE, NULL };
  return apply_alike (self, node, &like);
}

/* ---- elementwise ---- */

/* What is repeated is cheaply cut otherwise: it is copied before. */
static gboolean
is_repeated (const Multi *x)
{
  return x->pieces[0]->op == TINY_OP_EXPAND;
}

/* The source that the others follow. */
static const Multi *
choose_cut (Apart *self, const TinyNode *node)
{
  const Multi *found = NULL;
  for (guint i = 0; i < node->n_sources; i++) {
    const Multi *x = multi_get (self, node->sources[i]);
    if (x != NULL && x->axis != TINY_SHARD_WHOLE
        && (found == NULL || (is_repeated (found) && !is_repeated (x))))
      found = x;
  }
  return found;
}

static Multi *
rule_elementwise (Apart *self, TinyNode *node)
{
  const Multi *cut = choose_cut (self, node);
  return cut != NULL ? apply_alike (self, node, cut) : rule_whole (self, node);
}

/* Each device's memory gets its part. */
static Multi *
rule_assign (Apart *self, TinyNode *node)
{
  const Multi *target = multi_get (self, node->sources[0]);
  return target != NULL ? apply_alike (self, node, target) : rule_whole (self, node);
}

/* The value is its first source; for the others it only waits. */
static Multi *
rule_after (Apart *self, TinyNode *node)
{
  const Multi *x = multi_get (self, node->sources[0]);
  g_autoptr (GPtrArray) sources = g_ptr_array_new ();
  Multi *out = multi_new_like (self, x, x->axis);
  for (guint at = 0; at < x->on->n; at++) {
    g_ptr_array_set_size (sources, 0);
    g_ptr_array_add (sources, x->pieces[at]);
    for (guint i = 1; i < node->n_sources; i++) {
      const Multi *before = multi_get (self, node->sources[i]);
      g_ptr_array_add (sources, before == NULL
                                    ? tiny_node_map_get (&self->singles, node->sources[i])
                                    : before->pieces[MIN (at, before->on->n - 1)]);
    }
    out->pieces[at]
        = tiny_node_new (self->graph, TINY_OP_AFTER, (TinyDType) node->dtype, 1, sources->len,
                         (TinyNode *const *) sources->pdata, node->arg, node->ints, node->text);
  }
  return out;
}

/* ---- movement ---- */

/* The same movement of every piece, with @v for its integers. */
static TinyNode *
move (Apart *self, const TinyNode *node, TinyNode *x, const gint64 *v)
{
  return tiny_node_new (self->graph, (TinyOp) node->op, (TinyDType) node->dtype, 1, 1, &x,
                        node->arg, tiny_graph_ints (self->graph, v, node->ints->n), node->text);
}

static Multi *
move_all (Apart *self, const TinyNode *node, const Multi *x, gint64 axis)
{
  Multi *out = multi_new_like (self, x, axis);
  for (guint at = 0; at < x->on->n; at++)
    out->pieces[at] = move (self, node, x->pieces[at], node->ints->v);
  return out;
}

/* To a shape that the ints are, in which @sizes differ from piece to piece along @axis. */
static Multi *
move_to_shape (
    Apart *self, const TinyNode *node, const Multi *x, gint64 axis, const gint64 *sizes)
{
  Multi *out = multi_new_like (self, x, axis);
  gint64 dims[MAX_RANK];
  memcpy (dims, node->ints->v, node->ints->n * sizeof (gint64));
  for (guint at = 0; at < x->on->n; at++) {
    dims[axis] = sizes[at];
    out->pieces[at] = move (self, node, x->pieces[at], dims);
  }
  return out;
}

static gint64
multiply (const TinyInts *shape, guint from, guint to)
{
  gint64 n = 1;
  for (guint i = from; i < to; i++)
    n *= shape->v[i];
  return n;
}

/* An axis of the new shape that has the same elements before it, and of which each piece is a number of whole
 * rows: row-major order leaves them where they are. */
static Multi *
rule_reshape (Apart *self, TinyNode *node, const Multi *x)
{
  const TinyInts *from = node->sources[0]->shape, *to = node->shape;
  const gint64 outer = multiply (from, 0, (guint) x->axis);
  const gint64 inner = multiply (from, (guint) x->axis + 1, from->n);
  g_autofree gint64 *sizes = g_new (gint64, x->on->n);
  for (guint axis = 0; axis < to->n; axis++) {
    gint64 row = multiply (to, axis + 1, to->n);
    gboolean fits = multiply (to, 0, axis) == outer;
    for (guint at = 0; fits && at < x->on->n; at++) {
      gint64 n = x->pieces[at]->shape->v[x->axis] * inner;
      fits = row > 0 && n % row == 0;
      sizes[at] = fits ? n / row : 0;
    }
    if (fits)
      return move_to_shape (self, node, x, axis, sizes);
  }
  return rule_whole (self, node);
}

static Multi *
rule_expand (Apart *self, TinyNode *node, const Multi *x)
{
  g_autofree gint64 *sizes = g_new (gint64, x->on->n);
  if (node->sources[0]->shape->v[x->axis] != node->shape->v[x->axis])
    return rule_whole (self, node);
  for (guint at = 0; at < x->on->n; at++)
    sizes[at] = x->pieces[at]->shape->v[x->axis];
  return move_to_shape (self, node, x, x->axis, sizes);
}

static Multi *
rule_permute (Apart *self, TinyNode *node, const Multi *x)
{
  gint64 axis = 0;
  while (node->ints->v[axis] != x->axis)
    axis++;
  return move_all (self, node, x, axis);
}

/* Zeros before the first piece belong to it, those after the last to that. */
static Multi *
rule_pad (Apart *self, TinyNode *node, const Multi *x)
{
  Multi *out = multi_new_like (self, x, x->axis);
  gint64 pairs[2 * MAX_RANK];
  for (guint at = 0; at < x->on->n; at++) {
    memcpy (pairs, node->ints->v, node->ints->n * sizeof (gint64));
    if (at > 0)
      pairs[2 * x->axis] = 0;
    if (at + 1 < x->on->n)
      pairs[2 * x->axis + 1] = 0;
    out->pieces[at] = move (self, node, x->pieces[at], pairs);
  }
  return out;
}

/* The part on each device of what is cut out, where each has some; else all of it on each. */
static Multi *
rule_shrink (Apart *self, TinyNode *node, const Multi *x)
{
  const gint64 from = node->ints->v[2 * x->axis], to = node->ints->v[2 * x->axis + 1];
  const guint last = x->on->n - 1;
  const gboolean all_have = from < multi_get_begin (x, 1) && to > multi_get_begin (x, last);
  Multi *others = multi_new_like (self, x, x->axis), *out;
  gint64 pairs[2 * MAX_RANK];
  for (guint at = 0; at <= last; at++) {
    memcpy (pairs, node->ints->v, node->ints->n * sizeof (gint64));
    pairs[2 * x->axis] = all_have && at == 0 ? from : 0;
    pairs[2 * x->axis + 1] = all_have && at == last ? to - multi_get_begin (x, last)
                                                    : x->pieces[at]->shape->v[x->axis];
    others->pieces[at]
        = tiny_node_shrink (self->graph, x->pieces[at], pairs, node->ints->n / 2);
  }
  if (all_have)
    return others;
  out = multi_new_like (self, x, TINY_SHARD_WHOLE);
  for (guint at = 0; at <= last; at++)
    out->pieces[at] = multi_take (self, others, x->on->names[at], from, to);
  return out;
}

/* Reversed along the axis that it is cut along, the last device's piece is the first. */
static Multi *
rule_flip (Apart *self, TinyNode *node, const Multi *x)
{
  gboolean is_along = FALSE;
  for (guint i = 0; i < node->ints->n; i++)
    is_along = is_along || node->ints->v[i] == x->axis;
  Multi *out = move_all (self, node, x, x->axis);
  for (guint at = 0; is_along && at < x->on->n; at++)
    out->pieces[at] = multi_copy (
        self, move (self, node, x->pieces[x->on->n - 1 - at], node->ints->v), x->on->names[at]);
  return out;
}

static Multi *
rule_shear (Apart *self, TinyNode *node, const Multi *x)
{
  const gint64 *v = node->ints->v;
  if (v[0] == x->axis || (v[1] == x->axis && v[3] != 0))
    return rule_whole (self, node);
  return move_all (self, node, x, x->axis);
}

/* ---- reductions ---- */

/* @x of all devices, combined on device @at, in the same order everywhere, so that all come to the same bits. */
static TinyNode *
combine_at (Apart *self, const TinyNode *node, TinyNode *const *x, const Multi *on, guint at)
{
  const char *device = on->on->names[at];
  TinyNode *all = multi_copy (self, x[0], device);
  for (guint i = 1; i < on->on->n; i++)
    all = tiny_node_binary (self->graph, (TinyOp) node->arg, all,
                            multi_copy (self, x[i], device));
  return all;
}

/* Each device combines a strip along @axis and gets the others: of n devices, 2 / n of what each would copy and 1 /
 * n of what each would combine otherwise. */
static Multi *
combine_strips (Apart *self, const TinyNode *node, const Multi *partial, guint axis)
{
  const guint n = partial->on->n;
  const gint64 size = node->shape->v[axis];
  g_autofree TinyNode **cut = g_new (TinyNode *, n);
  Multi *strips = multi_new_like (self, partial, axis);
  Multi *out = multi_new_like (self, partial, TINY_SHARD_WHOLE);
  for (guint at = 0; at < n; at++) {
    for (guint i = 0; i < n; i++)
      cut[i] = tiny_node_cut (self->graph, partial->pieces[i], axis,
                              tiny_shard_get_begin (size, n, at),
                              tiny_shard_get_begin (size, n, at + 1));
    strips->pieces[at] = combine_at (self, node, cut, partial, at);
  }
  for (guint at = 0; at < n; at++)
    out->pieces[at] = multi_get_whole (self, strips, partial->on->names[at]);
  return out;
}

/* Small results are copied to each device whole: fewer copies. */
static Multi *
combine (Apart *self, const TinyNode *node, const Multi *partial)
{
  const guint n = partial->on->n;
  Multi *out = multi_new_like (self, partial, TINY_SHARD_WHOLE);
  gboolean is_large
      = tiny_shape_get_n_elements (node->shape) >= schedule_weights.strip_elements && n > 2;
  for (guint axis = 0; is_large && axis < node->shape->n; axis++)
    if (node->shape->v[axis] >= n)
      return combine_strips (self, node, partial, axis);
  for (guint at = 0; at < n; at++)
    out->pieces[at] = combine_at (self, node, partial->pieces, partial, at);
  return out;
}

static Multi *
rule_reduce (Apart *self, TinyNode *node, const Multi *x)
{
  gboolean is_along = FALSE;
  for (guint i = 0; i < node->ints->n; i++)
    is_along = is_along || node->ints->v[i] == x->axis;
  Multi *partial = move_all (self, node, x, x->axis);
  return is_along ? combine (self, node, partial) : partial;
}

/* ---- positions ---- */

/* Positions are looked up piece by piece, each in all of the axis that they are in. */
static Multi *
rule_gather (Apart *self, TinyNode *node)
{
  const Multi *x = multi_get (self, node->sources[0]), *at = multi_get (self, node->sources[1]);
  const Multi *cut = at != NULL && at->axis != TINY_SHARD_WHOLE ? at : x;
  if (cut == NULL || cut->axis == TINY_SHARD_WHOLE || (cut == x && x->axis == node->arg))
    return rule_whole (self, node);
  if (cut->axis != node->arg)
    return apply_alike (self, node, cut);
  Multi *out = multi_new_like (self, cut, cut->axis);
  for (guint i = 0; i < cut->on->n; i++) {
    TinyNode *sources[] = { multi_fit_whole (self, node, 0, cut->on, i), cut->pieces[i] };
    if (sources[0] == NULL)
      return NULL;
    out->pieces[i] = tiny_node_with_sources (self->graph, node, sources);
  }
  return out;
}

/* ---- which rule ---- */
static Multi *
apply_movement (Apart *self, TinyNode *node, const Multi *x)
{
  if (x->axis == TINY_SHARD_WHOLE)
    return rule_whole (self, node);
  switch (node->op) {
  case TINY_OP_RESHAPE:
    return rule_reshape (self, node, x);
  case TINY_OP_EXPAND:
    return rule_expand (self, node, x);
  case TINY_OP_PERMUTE:
    return rule_permute (self, node, x);
  case TINY_OP_PAD:
    return rule_pad (self, node, x);
  case TINY_OP_SHRINK:
    return rule_shrink (self, node, x);
  case TINY_OP_FLIP:
    return rule_flip (self, node, x);
  case TINY_OP_SHEAR:
    return rule_shear (self, node, x);
  case TINY_OP_REDUCE:
    return rule_reduce (self, node, x);
  default:
    return rule_whole (self, node);
  }
}

Multi *
multi_apply_rule (Apart *self, TinyNode *node)
{
  if (tiny_op_is_elementwise ((TinyOp) node->op))
    return rule_elementwise (self, node);
  if (tiny_op_is_movement ((TinyOp) node->op) || node->op == TINY_OP_REDUCE)
    return apply_movement (self, node, multi_get (self, node->sources[0]));
  switch (node->op) {
  case TINY_OP_CONTIGUOUS:
  case TINY_OP_DETACH:
  case TINY_OP_SLOPED:
    return rule_elementwise (self, node);
  case TINY_OP_ASSIGN:
    return rule_assign (self, node);
  case TINY_OP_AFTER:
    return rule_after (self, node);
  case TINY_OP_GATHER:
    return rule_gather (self, node);
  default:
    return rule_whole (self, node);
  }
}
