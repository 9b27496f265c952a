/* SPDX-License-Identifier: MIT
 *
 * tensor-order.c: the elements in another order, again, or beside others'. */
#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-tensor-operations.h"

/* Distinct normalised axes out of numbers. */
static gboolean
read_axes (TinyBuild *b, TinyNode *x, const gint64 *given, guint n, gint64 *out)
{
  gint axes[TINY_MAX_RANK];
  guint n_out;
  if (n > x->shape->n)
    return tiny_build_fail (b, "%u axes named, the tensor has %u", n, x->shape->n) != NULL;
  for (guint i = 0; i < n; i++)
    axes[i] = (gint) CLAMP (given[i], G_MININT + 1, G_MAXINT);
  return n == 0 || tiny_build_axes (b, x, axes, n, out, &n_out);
}

/* ---- turning ---- */
TinyNode *
op_flipud (TinyBuild *b, TinyNode *self)
{
  if (self->shape->n < 1)
    return tiny_build_fail (b, "there is no axis to reverse");
  return tiny_node_flip (b->graph, self, (gint64[]){ 0 }, 1);
}

TinyNode *
op_fliplr (TinyBuild *b, TinyNode *self)
{
  if (self->shape->n < 2)
    return tiny_build_fail (b, "takes at least 2 axes, not %u", self->shape->n);
  return tiny_node_flip (b->graph, self, (gint64[]){ 1 }, 1);
}

TinyNode *
op_rot90 (TinyBuild *b, TinyNode *self, gint64 k, const gint64 *axes, guint n_axes)
{
  if (n_axes != 2)
    return tiny_build_fail (b, "%u axes named, a plane has 2", n_axes);
  guint quarter = (guint) (((k % 4) + 4) % 4);
  if (quarter == 0)
    return self;
  if (quarter == 2)
    return tiny_node_flip (b->graph, self, axes, 2);
  TinyNode *turned = tiny_node_flip (b->graph, self, quarter == 1 ? axes + 1 : axes, 1);
  return tiny_build_transpose (b, turned, (guint) axes[0], (guint) axes[1]);
}

TinyNode *
op_movedim (TinyBuild *b,
            TinyNode *self,
            const gint64 *source,
            guint n_source,
            const gint64 *destination,
            guint n_destination)
{
  gint64 from[TINY_MAX_RANK], to[TINY_MAX_RANK], order[TINY_MAX_RANK];
  guint32 moved = 0, filled = 0;
  if (n_source != n_destination)
    return tiny_build_fail (b, "%u axes to %u places", n_source, n_destination);
  if (!read_axes (b, self, source, n_source, from)
      || !read_axes (b, self, destination, n_destination, to))
    return NULL;
  for (guint i = 0; i < n_source; i++) {
    order[to[i]] = from[i];
    moved |= 1u << from[i];
    filled |= 1u << to[i];
  }
  for (guint place = 0, axis = 0; place < self->shape->n; place++) {
    if (filled >> place & 1)
      continue;
    while (moved >> axis & 1)
      axis++;
    order[place] = axis++;
  }
  return tiny_build_permute (b, self, order, self->shape->n);
}

/* ---- rolling ---- */

/* A part of @x twice, one after the other: only where it begins says how far, and plans leave that open
 * (engine/open-numbers.h). */
static TinyNode *
roll_axis (TinyBuild *b, TinyNode *x, guint axis, gint64 shift)
{
  gint64 size = x == NULL ? 0 : x->shape->v[axis];
  shift = size == 0 ? 0 : (shift % size + size) % size;
  if (shift == 0)
    return x;
  TinyNode *twice = tiny_build_cat (b, (TinyNode *[]){ x, x }, 2, axis);
  return tiny_build_slice (b, twice, axis, size - shift, 1, size);
}

TinyNode *
op_roll (TinyBuild *b,
         TinyNode *self,
         const gint64 *shifts,
         guint n_shifts,
         const gint64 *dims,
         guint n_dims)
{
  const TinyInts *shape = self->shape;
  if (n_dims == 0 && n_shifts == 1) {
    TinyNode *flat
        = tiny_build_reshape (b, self, (gint64[]){ tiny_shape_get_n_elements (shape) }, 1);
    return tiny_build_reshape (b, roll_axis (b, flat, 0, shifts[0]), shape->v, shape->n);
  }
  if (n_shifts == 0 || n_shifts != n_dims)
    return tiny_build_fail (b, "%u shifts for %u axes", n_shifts, n_dims);
  TinyNode *x = self;
  for (guint i = 0; i < n_dims; i++) {
    guint axis;
    if (!tiny_build_axis (b, self, (gint) CLAMP (dims[i], G_MININT + 1, G_MAXINT), &axis))
      return NULL;
    x = roll_axis (b, x, axis, shifts[i]);
  }
  return x;
}

/* ---- again ---- */
TinyNode *
op_tile (TinyBuild *b, TinyNode *self, const gint64 *repeats, guint n_repeats)
{
  gint64 all[TINY_MAX_RANK];
  guint rank = self->shape->n, missing = rank > n_repeats ? rank - n_repeats : 0;
  if (n_repeats > TINY_MAX_RANK || (n_repeats > 0 && repeats == NULL))
    return tiny_build_fail (b, "%u counts given, at most %d are possible", n_repeats,
                            TINY_MAX_RANK);
  for (guint i = 0; i < missing + n_repeats; i++)
    all[i] = i < missing ? 1 : repeats[i - missing];
  return op_repeat (b, self, all, missing + n_repeats);
}

TinyNode *
op_repeat_interleave (TinyBuild *b, TinyNode *self, gint64 repeats, guint axis)
{
  gint64 dims[TINY_MAX_RANK + 1];
  guint rank = self->shape->n;
  if (repeats < 0)
    return tiny_build_fail (b, "%" G_GINT64_FORMAT " repeats", repeats);
  for (guint i = 0; i <= rank; i++)
    dims[i] = i <= axis ? self->shape->v[i] : i == axis + 1 ? repeats : self->shape->v[i - 1];
  TinyNode *x = tiny_build_unsqueeze (b, self, axis + 1);
  if (repeats > 0 && dims[axis] > G_MAXINT64 / repeats)
    return tiny_build_fail (b, "more than 2^48 elements are not possible");
  x = tiny_build_expand (b, x, dims, rank + 1);
  for (guint i = 0; i < rank; i++)
    dims[i] = i == axis ? self->shape->v[i] * repeats : self->shape->v[i];
  return tiny_build_check_shape (b, dims, rank) ? tiny_build_reshape (b, x, dims, rank) : NULL;
}

/* ---- beside others ---- */

/* Every tensor with at least @rank axes: a vector becomes a row, and a matrix with @deep one layer. */
static TinyNode *
stack_raised (TinyBuild *b, TinyNode *const *x, guint n, guint rank, guint axis)
{
  if (n == 0)
    return tiny_build_fail (b, "nothing to put together");
  g_autofree TinyNode **raised = g_new (TinyNode *, n);
  for (guint i = 0; i < n; i++) {
    raised[i] = x[i];
    while (raised[i] != NULL && raised[i]->shape->n < rank) {
      guint have = raised[i]->shape->n;
      raised[i] = tiny_build_unsqueeze (b, raised[i], have == 2 || have == 0 ? have : 0);
    }
    if (raised[i] == NULL)
      return NULL;
  }
  guint own = axis < raised[0]->shape->n ? axis : 0;
  return tiny_build_cat (b, raised, n, own);
}

TinyNode *
op_hstack (TinyBuild *b, TinyNode *const *tensors, guint n_tensors)
{
  return stack_raised (b, tensors, n_tensors, 1, 1);
}

TinyNode *
op_vstack (TinyBuild *b, TinyNode *const *tensors, guint n_tensors)
{
  return stack_raised (b, tensors, n_tensors, 2, 0);
}

TinyNode *
op_dstack (TinyBuild *b, TinyNode *const *tensors, guint n_tensors)
{
  return stack_raised (b, tensors, n_tensors, 3, 2);
}

void
op_meshgrid (TinyBuild *b,
             TinyNode *const *tensors,
             guint n_tensors,
             const char *indexing,
             GPtrArray *out)
{
  gint64 dims[TINY_MAX_RANK];
  guint is_xy;
  if (!tiny_build_word (b, indexing, "ij|xy", &is_xy))
    return;
  if (n_tensors > TINY_MAX_RANK) {
    tiny_build_fail (b, "%u axes, at most %d are possible", n_tensors, TINY_MAX_RANK);
    return;
  }
  gboolean swaps = is_xy && n_tensors > 1;
  for (guint i = 0; i < n_tensors; i++) {
    if (tensors[i]->shape->n > 1) {
      tiny_build_fail (b, "takes vectors, tensor %u has %u axes", i, tensors[i]->shape->n);
      return;
    }
    dims[swaps && i < 2 ? 1 - i : i] = tiny_shape_get_n_elements (tensors[i]->shape);
  }
  if (!tiny_build_check_shape (b, dims, n_tensors))
    return;
  for (guint i = 0; i < n_tensors; i++) {
    guint axis = swaps && i < 2 ? 1 - i : i;
    gint64 own[TINY_MAX_RANK];
    for (guint j = 0; j < n_tensors; j++)
      own[j] = j == axis ? dims[j] : 1;
    TinyNode *x = tiny_build_reshape (b, tensors[i], own, n_tensors);
    g_ptr_array_add (out, tiny_build_expand (b, x, dims, n_tensors));
  }
}
