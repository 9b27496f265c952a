/* SPDX-License-Identifier: MIT
 *
 * tiny-shape.c: what shape each op gives, and movement nodes. */
#include "ir/tiny-shape.h"

#include <string.h>

enum { MAX_RANK = 32 };

/* The shape of an elementwise op: that of the first source that has axes. */
static const TinyInts *
elementwise_shape (const TinyNode *node)
{
  const TinyInts *shape = NULL;
  for (guint i = 0; i < node->n_sources; i++) {
    const TinyInts *s = node->sources[i]->shape;
    if (s == NULL)
      return NULL;
    if (shape == NULL || shape->n == 0)
      shape = s;
    g_assert (s->n == 0 || tiny_shape_equal (s, shape));
  }
  return shape;
}

/* The sizes of the pieces together, along the axis that they are cut along. */
static const TinyInts *
unshard_shape (TinyGraph *graph, const TinyNode *node)
{
  const TinyInts *first = node->sources[0]->shape;
  gint64 dims[MAX_RANK];
  if (first == NULL || first->n > MAX_RANK || node->arg < 0 || node->arg >= (gint64) first->n)
    return first;
  memcpy (dims, first->v, first->n * sizeof (gint64));
  for (guint i = 1; i < node->n_sources; i++)
    dims[node->arg] += node->sources[i]->shape->v[node->arg];
  return tiny_graph_ints (graph, dims, first->n);
}

const TinyInts *
tiny_shape_of_node (TinyGraph *graph, const TinyNode *node)
{
  if (tiny_op_is_elementwise (node->op))
    return node->lanes > 1 ? NULL : elementwise_shape (node);
  const TinyInts *in = node->n_sources > 0 ? node->sources[0]->shape : NULL;
  const TinyInts *ints = node->ints;
  gint64 out[MAX_RANK];
  switch (node->op) {
  case TINY_OP_CONST:
  case TINY_OP_VARIABLE:
    return node->lanes > 1 ? NULL : tiny_graph_ints (graph, NULL, 0);
  case TINY_OP_PARAM:
  case TINY_OP_BUFFER:
  case TINY_OP_IOTA:
  case TINY_OP_KERNEL:
    return ints;
  case TINY_OP_CONTIGUOUS:
  case TINY_OP_DETACH:
  case TINY_OP_SLOPED:
  case TINY_OP_COPY:
  case TINY_OP_LIMIT:
  case TINY_OP_ASSIGN:
  case TINY_OP_AFTER:
    return in;
  case TINY_OP_GRADIENT:
    return node->sources[ints->v[0]]->shape;
  case TINY_OP_GATHER:
    return node->sources[1]->shape;
  case TINY_OP_UNSHARD:
    return unshard_shape (graph, node);
  default:
    break;
  }
  if (in == NULL || ints == NULL || in->n > MAX_RANK)
    return NULL;
  memcpy (out, in->v, in->n * sizeof (gint64));
  switch (node->op) {
  case TINY_OP_RESHAPE:
  case TINY_OP_EXPAND:
    return ints;
  case TINY_OP_FLIP:
    return in;
  case TINY_OP_PERMUTE:
    for (guint i = 0; i < in->n; i++)
      out[i] = in->v[ints->v[i]];
    break;
  case TINY_OP_PAD:
    for (guint i = 0; i < in->n; i++)
      out[i] += ints->v[2 * i] + ints->v[2 * i + 1];
    break;
  case TINY_OP_SHRINK:
    for (guint i = 0; i < in->n; i++)
      out[i] = ints->v[2 * i + 1] - ints->v[2 * i];
    break;
  case TINY_OP_SHEAR:
    out[ints->v[0]] = ints->v[6];
    break;
  case TINY_OP_REDUCE:
    for (guint i = 0; i < ints->n; i++)
      out[ints->v[i]] = 1;
    break;
  default:
    return NULL;
  }
  return tiny_graph_ints (graph, out, in->n);
}

gint64
tiny_shape_get_n_elements (const TinyInts *shape)
{
  gint64 n = 1;
  for (guint i = 0; i < shape->n; i++)
    n *= shape->v[i];
  return n;
}

gboolean
tiny_shape_equal (const TinyInts *a, const TinyInts *b)
{
  return a == b || (a->n == b->n && memcmp (a->v, b->v, a->n * sizeof (gint64)) == 0);
}

char *
tiny_shape_to_string (const TinyInts *shape)
{
  GString *text = g_string_new ("(");
  for (guint i = 0; i < shape->n; i++)
    g_string_append_printf (text, i ? ", %" G_GINT64_FORMAT : "%" G_GINT64_FORMAT, shape->v[i]);
  g_string_append (text, shape->n == 1 ? ",)" : ")");
  return g_string_free (text, FALSE);
}

static TinyNode *
movement (TinyGraph *graph, TinyOp op, TinyNode *x, const gint64 *v, guint n)
{
  return tiny_node_new_interned (graph, op, x->dtype, 1, 1, &x, 0,
                                 tiny_graph_ints (graph, v, n), NULL);
}

static gboolean
has_dims (TinyNode *x, const gint64 *dims, guint n)
{
  return x->shape->n == n && (n == 0 || memcmp (x->shape->v, dims, n * sizeof (gint64)) == 0);
}

TinyNode *
tiny_node_reshape (TinyGraph *graph, TinyNode *x, const gint64 *dims, guint n)
{
  while (x->op == TINY_OP_RESHAPE)
    x = x->sources[0];
  return has_dims (x, dims, n) ? x : movement (graph, TINY_OP_RESHAPE, x, dims, n);
}

TinyNode *
tiny_node_expand (TinyGraph *graph, TinyNode *x, const gint64 *dims, guint n)
{
  while (x->op == TINY_OP_EXPAND)
    x = x->sources[0];
  return has_dims (x, dims, n) ? x : movement (graph, TINY_OP_EXPAND, x, dims, n);
}

TinyNode *
tiny_node_permute (TinyGraph *graph, TinyNode *x, const gint64 *axes, guint n)
{
  gint64 merged[MAX_RANK];
  gboolean same = TRUE;
  for (guint i = 0; i < n; i++)
    merged[i] = x->op == TINY_OP_PERMUTE ? x->ints->v[axes[i]] : axes[i];
  if (x->op == TINY_OP_PERMUTE)
    x = x->sources[0];
  for (guint i = 0; i < n; i++)
    same = same && merged[i] == (gint64) i;
  return same ? x : movement (graph, TINY_OP_PERMUTE, x, merged, n);
}

TinyNode *
tiny_node_pad (TinyGraph *graph, TinyNode *x, const gint64 *pairs, guint n)
{
  gboolean same = TRUE;
  for (guint i = 0; i < 2 * n; i++)
    same = same && pairs[i] == 0;
  return same ? x : movement (graph, TINY_OP_PAD, x, pairs, 2 * n);
}

TinyNode *
tiny_node_shrink (TinyGraph *graph, TinyNode *x, const gint64 *pairs, guint n)
{
  gboolean same = TRUE;
  for (guint i = 0; i < n; i++)
    same = same && pairs[2 * i] == 0 && pairs[2 * i + 1] == x->shape->v[i];
  return same ? x : movement (graph, TINY_OP_SHRINK, x, pairs, 2 * n);
}

TinyNode *
tiny_node_flip (TinyGraph *graph, TinyNode *x, const gint64 *axes, guint n)
{
  return n == 0 ? x : movement (graph, TINY_OP_FLIP, x, axes, n);
}

TinyNode *
tiny_node_shear (TinyGraph *graph,
                 TinyNode *x,
                 guint p,
                 guint k,
                 gint64 mul,
                 gint64 step,
                 gint64 offset,
                 gint64 divisor,
                 gint64 size)
{
  if (mul == 1 && step == 0 && offset == 0 && divisor == 1 && size == x->shape->v[p])
    return x;
  return movement (graph, TINY_OP_SHEAR, x,
                   (gint64[]){ p, k, mul, step, offset, divisor, size }, 7);
}

TinyNode *
tiny_node_move (TinyGraph *graph, TinyOp op, TinyNode *x, const gint64 *ints, guint n)
{
  switch (op) {
  case TINY_OP_RESHAPE:
    return tiny_node_reshape (graph, x, ints, n);
  case TINY_OP_EXPAND:
    return tiny_node_expand (graph, x, ints, n);
  case TINY_OP_PERMUTE:
    return tiny_node_permute (graph, x, ints, n);
  case TINY_OP_PAD:
    return tiny_node_pad (graph, x, ints, n / 2);
  case TINY_OP_SHRINK:
    return tiny_node_shrink (graph, x, ints, n / 2);
  case TINY_OP_FLIP:
    return tiny_node_flip (graph, x, ints, n);
  default:
    return tiny_node_shear (graph, x, (guint) ints[0], (guint) ints[1], ints[2], ints[3],
                            ints[4], ints[5], ints[6]);
  }
}

TinyNode *
tiny_node_gather (TinyGraph *graph, TinyNode *x, guint axis, TinyNode *positions)
{
  TinyNode *sources[] = { x, positions };
  return tiny_node_new (graph, TINY_OP_GATHER, x->dtype, 1, 2, sources, axis, NULL, NULL);
}

TinyNode *
tiny_node_reduce_axes (TinyGraph *graph, TinyNode *x, TinyOp op, const gint64 *axes, guint n)
{
  if (n == 0)
    return x;
  return tiny_node_new_interned (graph, TINY_OP_REDUCE, x->dtype, 1, 1, &x, op,
                                 tiny_graph_ints (graph, axes, n), NULL);
}

TinyNode *
tiny_node_broadcast (TinyGraph *graph, TinyNode *x, const gint64 *dims, guint n)
{
  gint64 padded[MAX_RANK];
  guint rank = x->shape->n;
  for (guint i = 0; i < n; i++)
    padded[i] = i + rank < n ? 1 : x->shape->v[i + rank - n];
  return tiny_node_expand (graph, tiny_node_reshape (graph, x, padded, n), dims, n);
}
