/* SPDX-License-Identifier: MIT
 *
 * tiny-layout.c: hoists permutations over elementwise operations and reductions. */
#include "tensor/tiny-layout.h"

#include "ir/tiny-shape.h"

enum { MAX_RANK = 32, MAX_SOURCES = 3, MAX_CHAIN = 16 };

/* The permutation that all sources of full size share, or NULL. Repeated values (EXPAND) have no
 * order in memory worth keeping: they follow the others. */
static const TinyInts *
common_permutation (guint n, TinyNode *const *sources)
{
  const TinyInts *common = NULL;
  for (guint i = 0; i < n; i++) {
    const TinyNode *source = sources[i];
    if (source->shape->n == 0 || source->op == TINY_OP_EXPAND)
      continue;
    if (source->op != TINY_OP_PERMUTE || (common != NULL && common != source->ints))
      return NULL;
    common = source->ints;
  }
  return common;
}

static void
invert (const TinyInts *permutation, gint64 *out)
{
  for (guint i = 0; i < permutation->n; i++)
    out[permutation->v[i]] = i;
}

TinyNode *
tiny_layout_elementwise (
    TinyGraph *graph, TinyOp op, TinyDType dtype, guint n, TinyNode *const *sources)
{
  const TinyInts *permutation = common_permutation (n, sources);
  if (permutation == NULL)
    return tiny_node_new (graph, op, dtype, 1, n, sources, 0, NULL, NULL);
  gint64 inverse[MAX_RANK];
  TinyNode *moved[MAX_SOURCES];
  g_assert (n <= MAX_SOURCES);
  invert (permutation, inverse);
  for (guint i = 0; i < n; i++)
    moved[i] = sources[i]->shape->n == 0
                   ? sources[i]
                   : tiny_node_permute (graph, sources[i], inverse, permutation->n);
  /* Not by way of this function: EXPANDs have become permuted, their order is not to be hoisted. */
  TinyNode *result = tiny_node_new (graph, op, dtype, 1, n, moved, 0, NULL, NULL);
  return tiny_node_permute (graph, result, permutation->v, permutation->n);
}

/* Floats narrower than f32 lose too much when many of them are added up. */
static gboolean
accumulates_wider (const TinyNode *x, TinyOp op)
{
  return op != TINY_OP_MAX && tiny_dtype_is_float (x->dtype)
         && tiny_dtype_get_n_bytes (x->dtype) < 4;
}

static TinyNode *
reduce_in_order (TinyGraph *graph, TinyNode *x, TinyOp op, const gint64 *axes, guint n)
{
  if (x->op != TINY_OP_PERMUTE)
    return tiny_node_reduce_axes (graph, x, op, axes, n);
  gint64 moved[MAX_RANK];
  const TinyInts *permutation = x->ints;
  for (guint i = 0; i < n; i++)
    moved[i] = permutation->v[axes[i]];
  TinyNode *result = reduce_in_order (graph, x->sources[0], op, moved, n);
  return tiny_node_permute (graph, result, permutation->v, permutation->n);
}

TinyNode *
tiny_layout_reduce (TinyGraph *graph, TinyNode *x, TinyOp op, const gint64 *axes, guint n_axes)
{
  gint64 kept[MAX_RANK];
  guint n = 0;
  for (guint i = 0; i < n_axes; i++)
    if (x->shape->v[axes[i]] != 1)
      kept[n++] = axes[i];
  if (n == 0)
    return x;
  if (!accumulates_wider (x, op))
    return reduce_in_order (graph, x, op, kept, n);
  TinyNode *wide = tiny_layout_cast (graph, x, TINY_DTYPE_F32);
  TinyNode *sum = reduce_in_order (graph, wide, op, kept, n);
  return tiny_layout_cast (graph, sum, (TinyDType) x->dtype);
}

static gboolean
has_axis (const gint64 *axes, guint n, gint64 axis)
{
  for (guint i = 0; i < n; i++)
    if (axes[i] == axis)
      return TRUE;
  return FALSE;
}

TinyNode *
tiny_layout_reduce_windows (TinyGraph *graph, TinyNode *x, const gint64 *axes, guint n_axes)
{
  TinyNode *shears[MAX_CHAIN];
  guint n_shears = 0;
  TinyNode *inner = x;
  while (inner->op == TINY_OP_SHEAR && n_shears < MAX_CHAIN) {
    shears[n_shears++] = inner;
    inner = inner->sources[0];
  }
  gboolean merges = n_shears > 0 && inner->op == TINY_OP_REDUCE && inner->arg == TINY_OP_ADD;
  for (guint i = 0; merges && i < inner->ints->n; i++) {
    merges = !has_axis (axes, n_axes, inner->ints->v[i]);
    for (guint j = 0; merges && j < n_shears; j++)
      merges = shears[j]->ints->v[0] != inner->ints->v[i]
               && (shears[j]->ints->v[3] == 0 || shears[j]->ints->v[1] != inner->ints->v[i]);
  }
  if (!merges)
    return tiny_layout_reduce (graph, x, TINY_OP_ADD, axes, n_axes);
  gint64 all[MAX_RANK];
  guint n = 0;
  for (guint i = 0; i < n_axes; i++)
    all[n++] = axes[i];
  for (guint i = 0; i < inner->ints->n; i++)
    all[n++] = inner->ints->v[i];
  TinyNode *moved = inner->sources[0];
  while (n_shears-- > 0)
    moved = tiny_node_with_sources (graph, shears[n_shears], &moved);
  return tiny_layout_reduce (graph, moved, TINY_OP_ADD, all, n);
}
