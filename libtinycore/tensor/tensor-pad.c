/* SPDX-License-Identifier: MIT
 *
 * tensor-pad.c: more around a tensor, or less. */
#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-tensor-operations.h"

enum { MODE_CONSTANT, MODE_REFLECT, MODE_REPLICATE, MODE_CIRCULAR };

static gboolean
check_pairs (TinyBuild *b, TinyNode *x, const gint64 *pairs, guint n_pairs)
{
  guint rank = x->shape->n;
  if ((pairs != NULL && n_pairs == 2 * rank) || (n_pairs == 0 && rank == 0))
    return TRUE;
  tiny_build_fail (b, "%u numbers given, two for each of %u axes wanted",
                   pairs == NULL ? 0 : n_pairs, rank);
  return FALSE;
}

/* @n elements that continue @x before or after an axis. */
static TinyNode *
continuation (TinyBuild *b, TinyNode *x, guint axis, guint mode, gint64 n, gboolean before)
{
  gint64 size = x->shape->v[axis];
  if (mode == MODE_REFLECT)
    return tiny_build_slice (b, x, axis, before ? n : size - 2, -1, n);
  if (mode == MODE_CIRCULAR)
    return tiny_build_slice (b, x, axis, before ? size - n : 0, 1, n);
  gint64 dims[TINY_MAX_RANK];
  for (guint i = 0; i < x->shape->n; i++)
    dims[i] = i == axis ? n : x->shape->v[i];
  TinyNode *edge = tiny_build_slice (b, x, axis, before ? 0 : size - 1, 1, 1);
  return tiny_build_check_shape (b, dims, x->shape->n)
             ? tiny_build_expand (b, edge, dims, x->shape->n)
             : NULL;
}

static TinyNode *
continue_axis (TinyBuild *b, TinyNode *x, guint axis, guint mode, gint64 before, gint64 after)
{
  if (x == NULL)
    return NULL;
  gint64 size = x->shape->v[axis];
  gint64 most = mode == MODE_REFLECT    ? size - 1
                : mode == MODE_CIRCULAR ? size
                : size > 0              ? G_MAXINT64
                                        : 0;
  TinyNode *parts[3];
  guint n = 0;
  if (MAX (before, after) > MAX (most, 0))
    return tiny_build_fail (b,
                            "(%" G_GINT64_FORMAT ", %" G_GINT64_FORMAT
                            ") on axis %u of size %" G_GINT64_FORMAT
                            ": at most %" G_GINT64_FORMAT " are there to continue with",
                            before, after, axis, size, MAX (most, 0));
  if (before > 0)
    parts[n++] = continuation (b, x, axis, mode, before, TRUE);
  parts[n++] = x;
  if (after > 0)
    parts[n++] = continuation (b, x, axis, mode, after, FALSE);
  for (guint i = 0; i < n; i++)
    if (parts[i] == NULL)
      return NULL;
  return n == 1 ? x : tiny_build_cat (b, parts, n, axis);
}

TinyNode *
op_pad (TinyBuild *b,
        TinyNode *self,
        const gint64 *pairs,
        guint n_pairs,
        const char *mode,
        double value)
{
  gint64 cut[2 * TINY_MAX_RANK];
  guint which;
  if (!check_pairs (b, self, pairs, n_pairs)
      || !tiny_build_word (b, mode, "constant|reflect|replicate|circular", &which))
    return NULL;
  if (which == MODE_CONSTANT)
    return tiny_build_pad (b, self, pairs, value);
  TinyNode *x = self;
  for (guint i = 0; i < self->shape->n; i++) {
    x = continue_axis (b, x, i, which, MAX (pairs[2 * i], 0), MAX (pairs[2 * i + 1], 0));
    cut[2 * i] = MIN (pairs[2 * i], 0);
    cut[2 * i + 1] = MIN (pairs[2 * i + 1], 0);
  }
  return tiny_build_pad (b, x, cut, 0);
}

TinyNode *
op_shrink (TinyBuild *b, TinyNode *self, const gint64 *pairs, guint n_pairs)
{
  return check_pairs (b, self, pairs, n_pairs) ? tiny_build_shrink (b, self, pairs) : NULL;
}

/* What @shape adds after each axis, negative where it cuts; -1 keeps a size. */
static gboolean
differences (
    TinyBuild *b, TinyNode *x, const gint64 *shape, guint n, gboolean grows, gint64 *pairs)
{
  if (n != x->shape->n || (n > 0 && shape == NULL))
    return tiny_build_fail (b, "%u sizes given for %u axes", shape == NULL ? 0 : n, x->shape->n)
           != NULL;
  for (guint i = 0; i < n; i++) {
    gint64 size = x->shape->v[i], wanted = shape[i] == -1 ? size : shape[i];
    if (wanted < 0 || (grows ? wanted < size : wanted > size))
      return tiny_build_fail (b,
                              "axis %u has size %" G_GINT64_FORMAT
                              ", which cannot become %" G_GINT64_FORMAT,
                              i, size, wanted)
             != NULL;
    pairs[2 * i] = 0;
    pairs[2 * i + 1] = wanted - size;
  }
  return TRUE;
}

TinyNode *
op_shrink_to (TinyBuild *b, TinyNode *self, const gint64 *shape, guint n_dims)
{
  gint64 pairs[2 * TINY_MAX_RANK];
  return differences (b, self, shape, n_dims, FALSE, pairs) ? tiny_build_pad (b, self, pairs, 0)
                                                            : NULL;
}

TinyNode *
op_pad_to (TinyBuild *b, TinyNode *self, const gint64 *shape, guint n_dims, double value)
{
  gint64 pairs[2 * TINY_MAX_RANK];
  return differences (b, self, shape, n_dims, TRUE, pairs)
             ? tiny_build_pad (b, self, pairs, value)
             : NULL;
}
