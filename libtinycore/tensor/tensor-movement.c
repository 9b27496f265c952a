/* SPDX-License-Identifier: MIT
 *
 * tensor-movement.c: views: other shapes, orders and parts of the same elements. */
#include <string.h>

#include "ir/tiny-limit.h"
#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-layout.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

enum { MAX_BUILD_RANK = 32 };

static TinyNode *
empty_like (TinyBuild *self, TinyNode *x, double value, const gint64 *dims, guint n)
{
  TinyNode *number = tiny_build_beside (self, tiny_build_like (self, x, value), x);
  return tiny_node_broadcast (self->graph, number, dims, n);
}

static char *
shape_text (TinyBuild *self, const gint64 *dims, guint n)
{
  return tiny_shape_to_string (tiny_graph_ints (self->graph, dims, n));
}

/* ---- building blocks ---- */
TinyNode *
tiny_build_reshape (TinyBuild *self, TinyNode *x, const gint64 *dims, guint n)
{
  if (x == NULL)
    return NULL;
  return tiny_node_reshape (self->graph, x, dims, n);
}

TinyNode *
tiny_build_permute (TinyBuild *self, TinyNode *x, const gint64 *axes, guint n)
{
  return x == NULL ? NULL : tiny_node_permute (self->graph, x, axes, n);
}

TinyNode *
tiny_build_transpose (TinyBuild *self, TinyNode *x, guint a, guint b)
{
  if (x == NULL)
    return NULL;
  gint64 axes[MAX_BUILD_RANK];
  for (guint i = 0; i < x->shape->n; i++)
    axes[i] = i == a ? b : i == b ? a : i;
  return tiny_node_permute (self->graph, x, axes, x->shape->n);
}

TinyNode *
tiny_build_expand (TinyBuild *self, TinyNode *x, const gint64 *dims, guint n)
{
  if (x == NULL)
    return NULL;
  gint64 full[MAX_BUILD_RANK];
  gboolean fits = x->shape->n <= n;
  guint missing = n - x->shape->n;
  for (guint i = 0; fits && i < n; i++) {
    gint64 size = i < missing ? 1 : x->shape->v[i - missing];
    full[i] = dims[i] == -1 ? size : dims[i];
    fits = size == full[i] || size == 1;
  }
  if (!fits) {
    g_autofree char *from = tiny_shape_to_string (x->shape);
    g_autofree char *to = shape_text (self, dims, n);
    return tiny_build_fail (self, "%s does not broadcast to %s", from, to);
  }
  return tiny_node_broadcast (self->graph, x, full, n);
}

TinyNode *
tiny_build_unsqueeze (TinyBuild *self, TinyNode *x, guint axis)
{
  if (x == NULL)
    return NULL;
  gint64 dims[MAX_BUILD_RANK];
  for (guint i = 0; i <= x->shape->n; i++)
    dims[i] = i < axis ? x->shape->v[i] : i == axis ? 1 : x->shape->v[i - 1];
  return tiny_node_reshape (self->graph, x, dims, x->shape->n + 1);
}

TinyNode *
tiny_build_squeeze (TinyBuild *self, TinyNode *x, const gint64 *axes, guint n)
{
  if (x == NULL)
    return NULL;
  gint64 dims[MAX_BUILD_RANK];
  guint rank = 0;
  for (guint i = 0; i < x->shape->n; i++) {
    gboolean drop = FALSE;
    for (guint j = 0; j < n; j++)
      drop = drop || axes[j] == (gint64) i;
    if (!drop)
      dims[rank++] = x->shape->v[i];
  }
  return tiny_node_reshape (self->graph, x, dims, rank);
}

TinyNode *
tiny_build_shrink (TinyBuild *self, TinyNode *x, const gint64 *pairs)
{
  if (x == NULL)
    return NULL;
  gint64 dims[MAX_BUILD_RANK];
  for (guint i = 0; i < x->shape->n; i++) {
    gint64 begin = pairs[2 * i], end = pairs[2 * i + 1];
    if (begin < 0 || end < begin || end > x->shape->v[i]) {
      g_autofree char *text = tiny_shape_to_string (x->shape);
      return tiny_build_fail (self,
                              "%" G_GINT64_FORMAT " to %" G_GINT64_FORMAT
                              " on axis %u is outside of shape %s",
                              begin, end, i, text);
    }
    dims[i] = end - begin;
  }
  for (guint i = 0; i < x->shape->n; i++)
    if (dims[i] == 0)
      return empty_like (self, x, 0, dims, x->shape->n);
  return tiny_node_shrink (self->graph, x, pairs, x->shape->n);
}

/* @x in zeros, or where @value is not 0, in that: the padding is found by padding a mask. */
TinyNode *
tiny_build_pad (TinyBuild *self, TinyNode *x, const gint64 *pairs, double value)
{
  if (x == NULL)
    return NULL;
  guint rank = x->shape->n;
  gint64 dims[MAX_BUILD_RANK] = { 0 }, cut[2 * MAX_BUILD_RANK], add[2 * MAX_BUILD_RANK];
  gboolean cuts = FALSE;
  for (guint i = 0; i < rank; i++) {
    gint64 before = pairs[2 * i], after = pairs[2 * i + 1], size = x->shape->v[i];
    const gint64 most = (gint64) 1 << 50;
    if (before > most || after > most || before < -size || after < -size
        || size + MIN (before, 0) + MIN (after, 0) < 0) {
      g_autofree char *text = tiny_shape_to_string (x->shape);
      return tiny_build_fail (
          self, "(%" G_GINT64_FORMAT ", %" G_GINT64_FORMAT ") on axis %u does not fit shape %s",
          before, after, i, text);
    }
    cut[2 * i] = MAX (-before, 0);
    cut[2 * i + 1] = size - MAX (-after, 0);
    cuts = cuts || before < 0 || after < 0;
    add[2 * i] = MAX (before, 0);
    add[2 * i + 1] = MAX (after, 0);
    dims[i] = size + before + after;
  }
  if (!tiny_build_check_shape (self, dims, MIN (rank, TINY_MAX_RANK)))
    return NULL;
  if (cuts)
    x = tiny_build_shrink (self, x, cut);
  if (tiny_build_is_empty (x))
    return empty_like (self, x, value, dims, rank);
  TinyNode *padded = tiny_node_pad (self->graph, x, add, rank);
  if (padded == x || value == 0)
    return padded;
  TinyNode *inside = tiny_node_broadcast (
      self->graph, tiny_build_number (self, TINY_DTYPE_BOOL, 1), x->shape->v, rank);
  inside = tiny_node_limit_like (self->graph, inside, x, 0);
  inside = tiny_node_pad (self->graph, inside, add, rank);
  return tiny_layout_where (self->graph, inside, padded, tiny_build_like (self, x, value));
}

TinyNode *
tiny_build_slice (TinyBuild *self, TinyNode *x, guint axis, gint64 start, gint64 step, gint64 n)
{
  if (x == NULL)
    return NULL;
  gint64 pairs[2 * MAX_BUILD_RANK], dims[MAX_BUILD_RANK];
  /* The part between the first and the last: where that begins is a number that plans leave open. */
  const gint64 reach = (n - 1) * step, low = MIN (start, start + reach);
  for (guint i = 0; i < x->shape->n; i++) {
    dims[i] = i == axis ? n : x->shape->v[i];
    pairs[2 * i] = i == axis ? low : 0;
    pairs[2 * i + 1] = i == axis ? low + ABS (reach) + 1 : x->shape->v[i];
  }
  if (n == 0 || tiny_build_is_empty (x))
    return empty_like (self, x, 0, dims, x->shape->n);
  x = tiny_node_shrink (self->graph, x, pairs, x->shape->n);
  if (step == 1 || n == 1)
    return x;
  if (step == -1)
    return tiny_node_flip (self->graph, x, (gint64[]){ axis }, 1);
  return tiny_node_shear (self->graph, x, axis, axis, step, 0, start - low, 1, n);
}

/* ---- parts side by side ---- */
enum { FEW_PARTS = 16, GROUP = 4 }; /* few: any kernel can read them */

/* The sum of all parts, each with zeros where the others are. */
static TinyNode *
add_parts (TinyBuild *self, TinyNode *const *x, guint n, guint axis)
{
  gint64 total = 0, at = 0, pairs[2 * MAX_BUILD_RANK] = { 0 };
  TinyNode *sum = NULL;
  for (guint i = 0; i < n; i++)
    total += x[i]->shape->v[axis];
  for (guint i = 0; i < n; i++) {
    const gint64 size = x[i]->shape->v[axis];
    pairs[2 * axis] = at;
    pairs[2 * axis + 1] = total - at - size;
    at += size;
    TinyNode *part = tiny_build_pad (self, x[i], pairs, 0);
    sum = sum == NULL ? part : tiny_build_add (self, sum, part);
  }
  return sum;
}

/* The sum of groups of parts, of groups of these, and so on. In one sum of many, what a kernel cannot read at once is stored
 * as large as the whole, again and again, and each element passes every part. Groups are small, for each element passes all
 * of its own, and of one size where that can be, so that one kernel computes several. */
static TinyNode *
add_groups (TinyBuild *self, TinyNode *const *x, guint n, guint axis)
{
  g_autofree TinyNode **left = g_memdup2 (x, n * sizeof *x);
  while (n > FEW_PARTS) {
    const guint n_groups = (n + GROUP - 1) / GROUP, size = (n + n_groups - 1) / n_groups;
    guint n_made = 0;
    for (guint i = 0; i < n; i += size)
      left[n_made++] = add_parts (self, left + i, MIN (size, n - i), axis);
    n = n_made;
  }
  return add_parts (self, left, n, axis);
}

TinyNode *
tiny_build_cat (TinyBuild *self, TinyNode *const *x, guint n, guint axis)
{
  for (guint i = 0; i < n; i++)
    if (x[i] == NULL)
      return NULL;
  TinyDType dtype = (TinyDType) x[0]->dtype;
  g_autoptr (GPtrArray) parts = g_ptr_array_new ();
  for (guint i = 0; i < n; i++) {
    gboolean fits = x[i]->shape->n == x[0]->shape->n;
    for (guint j = 0; fits && j < x[0]->shape->n; j++)
      fits = j == axis || x[i]->shape->v[j] == x[0]->shape->v[j];
    if (!fits) {
      g_autofree char *a = tiny_shape_to_string (x[0]->shape);
      g_autofree char *b = tiny_shape_to_string (x[i]->shape);
      return tiny_build_fail (self, "%s and %s differ in more than axis %u", a, b, axis);
    }
    dtype = tiny_dtype_promote (dtype, (TinyDType) x[i]->dtype);
  }
  gboolean is_empty = TRUE;
  for (guint i = 0; i < n; i++)
    is_empty = is_empty && tiny_build_is_empty (x[i]);
  for (guint i = 0; i < n; i++)
    if (is_empty || !tiny_build_is_empty (x[i]) || tiny_tensor_reaches_variable (x[i]))
      g_ptr_array_add (parts, tiny_build_cast (self, x[i], dtype));
  TinyNode *const *kept = (TinyNode *const *) parts->pdata;
  return parts->len <= FEW_PARTS ? add_parts (self, kept, parts->len, axis)
                                 : add_groups (self, kept, parts->len, axis);
}

/* A number that is asked for is no size that is a variable, even where it is the largest. */
static TinyNode *
check_open (TinyBuild *self, TinyNode *x, const gint64 *shape, guint n)
{
  for (guint i = 0; x != NULL && i < n; i++)
    if (tiny_limit_get (x, i) != NULL && shape[i] != -1)
      return tiny_build_fail (self, "the size of axis %u is a variable: give it as -1", i);
  return x;
}

/* ---- public functions ---- */
TinyNode *
op_reshape (TinyBuild *self, TinyNode *x, const gint64 *shape, guint n)
{
  gint64 dims[TINY_MAX_RANK], known = 1;
  gint open = -1;
  for (guint i = 0; i < MIN (n, TINY_MAX_RANK) && shape != NULL; i++) {
    dims[i] = shape[i];
    if (shape[i] == -1 && open >= 0)
      return tiny_build_fail (self, "axes %d and %u are both -1: the size of one can be found",
                              open, i);
    if (shape[i] == -1) {
      open = (gint) i;
      dims[i] = 1;
    }
  }
  if (!tiny_build_check_shape (self, shape == NULL ? NULL : dims, n))
    return NULL;
  for (guint i = 0; i < n; i++)
    known *= dims[i];
  gint64 n_elements = tiny_shape_get_n_elements (x->shape);
  if (open >= 0 && known == 0) {
    g_autofree char *to = shape_text (self, shape, n);
    return tiny_build_fail (self, "-1 in %s could be any size", to);
  }
  if (open >= 0)
    dims[open] = n_elements / known;
  if (known * (open >= 0 ? dims[open] : 1) != n_elements) {
    g_autofree char *from = tiny_shape_to_string (x->shape);
    g_autofree char *to = shape_text (self, shape, n);
    return tiny_build_fail (self, "%s of %" G_GINT64_FORMAT " elements does not fit %s", from,
                            n_elements, to);
  }
  return check_open (self, tiny_build_reshape (self, x, dims, n), shape, n);
}

TinyNode *
op_permute (TinyBuild *b, TinyNode *self, const gint64 *axes, guint n_axes)
{
  if (n_axes != self->shape->n)
    return tiny_build_fail (b, "%u axes named, the tensor has %u", n_axes, self->shape->n);
  return tiny_build_permute (b, self, axes, n_axes);
}

TinyNode *
op_transpose (TinyBuild *b, TinyNode *self, guint dim0, guint dim1)
{
  return tiny_build_transpose (b, self, dim0, dim1);
}

TinyNode *
op_expand (TinyBuild *b, TinyNode *self, const gint64 *shape, guint n_dims)
{
  gint64 checked[TINY_MAX_RANK];
  for (guint i = 0; i < MIN (n_dims, TINY_MAX_RANK) && shape != NULL; i++)
    checked[i] = shape[i] == -1 ? 1 : shape[i];
  for (guint i = 0; shape != NULL && i + self->shape->n < n_dims; i++)
    if (shape[i] == -1)
      return tiny_build_fail (b, "axis %u is a new one: it takes a size, not -1", i);
  if (!tiny_build_check_shape (b, shape == NULL ? NULL : checked, n_dims))
    return NULL;
  return check_open (b, tiny_build_expand (b, self, shape, n_dims), shape, n_dims);
}

TinyNode *
op_flip (TinyBuild *b, TinyNode *self, const gint64 *axes, guint n_axes)
{
  return tiny_node_flip (b->graph, self, axes, n_axes);
}

TinyNode *
op_squeeze (TinyBuild *b, TinyNode *self, const gint64 *axes, guint n_axes)
{
  gint64 ones[TINY_MAX_RANK];
  guint n = 0;
  for (guint i = 0; i < n_axes; i++)
    if (self->shape->v[axes[i]] == 1)
      ones[n++] = axes[i];
  return n == 0 ? self : tiny_build_squeeze (b, self, ones, n);
}

/* Where a new axis among @rank others goes. */
static gboolean
new_axis (TinyBuild *b, gint64 dim, gint64 rank, guint *out_axis)
{
  *out_axis = (guint) (dim < 0 ? dim + rank + 1 : dim);
  if (dim >= -rank - 1 && dim <= rank)
    return TRUE;
  tiny_build_fail (
      b, "axis %" G_GINT64_FORMAT " is outside of %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT,
      dim, -rank - 1, rank);
  return FALSE;
}

TinyNode *
op_unsqueeze (TinyBuild *b, TinyNode *self, gint64 dim)
{
  guint at;
  return new_axis (b, dim, self->shape->n, &at) ? tiny_build_unsqueeze (b, self, at) : NULL;
}

TinyNode *
op_flatten (TinyBuild *b, TinyNode *self, gint64 start_dim, gint64 end_dim)
{
  guint first, last, n = 0;
  gint64 dims[TINY_MAX_RANK + 1];
  if (self->shape->n == 0)
    return tiny_build_reshape (b, self, (gint64[]){ 1 }, 1);
  if (!tiny_build_axis (b, self, (gint) CLAMP (start_dim, G_MININT, G_MAXINT), &first)
      || !tiny_build_axis (b, self, (gint) CLAMP (end_dim, G_MININT, G_MAXINT), &last))
    return NULL;
  if (first > last)
    return tiny_build_fail (b, "axis %u comes after axis %u", first, last);
  for (guint i = 0; i < self->shape->n; i++)
    if (i > first && i <= last)
      dims[n - 1] *= self->shape->v[i];
    else
      dims[n++] = self->shape->v[i];
  return tiny_build_reshape (b, self, dims, n);
}

/* As Python's slice.indices(): from the end when negative, then into reach. */
gboolean
tiny_build_slice_bounds (
    TinyBuild *self, gint64 size, gint64 *start, gint64 stop, gint64 step, gint64 *out_n)
{
  *out_n = 0;
  if (step == 0 || step == G_MININT64)
    return tiny_build_fail (self, "step is %s", step == 0 ? "0" : "too far below 0") != NULL;
  gint64 lowest = step > 0 ? 0 : -1, highest = step > 0 ? size : size - 1;
  if (*start < 0)
    *start = *start < -size ? lowest : *start + size;
  *start = CLAMP (*start, lowest, highest);
  if (stop < 0)
    stop = stop < -size ? lowest : stop + size;
  stop = CLAMP (stop, lowest, highest);
  gint64 span = step > 0 ? stop - *start : *start - stop;
  *out_n = span <= 0 ? 0 : (span - 1) / (step > 0 ? step : -step) + 1;
  return TRUE;
}

TinyNode *
op_unflatten (TinyBuild *b, TinyNode *self, guint axis, const gint64 *sizes, guint n_sizes)
{
  gint64 dims[2 * TINY_MAX_RANK];
  guint n = 0;
  if (n_sizes == 0 || n_sizes > TINY_MAX_RANK || sizes == NULL)
    return tiny_build_fail (b, "%u sizes given, 1 to %d wanted", n_sizes, TINY_MAX_RANK);
  /* One that is open follows from this axis alone, not from others, which may be empty. */
  TinyNode *one = tiny_build_iota (b, TINY_DTYPE_I32, self->shape->v[axis]);
  one = op_reshape (b, one, sizes, n_sizes);
  if (one == NULL)
    return NULL;
  for (guint i = 0; i < self->shape->n; i++) {
    if (i != axis)
      dims[n++] = self->shape->v[i];
    for (guint j = 0; i == axis && j < n_sizes; j++)
      dims[n++] = one->shape->v[j];
  }
  return tiny_build_check_shape (b, dims, n) ? tiny_build_reshape (b, self, dims, n) : NULL;
}

TinyNode *
op_slice (TinyBuild *b, TinyNode *self, guint axis, gint64 start, gint64 stop, gint64 step)
{
  gint64 n;
  if (tiny_limit_get (self, axis) != NULL && (start < 0 || stop < 0 || step < 0))
    return tiny_build_fail (
        b, "the size of axis %u is a variable: positions do not count from its end", axis);
  if (!tiny_build_slice_bounds (b, self->shape->v[axis], &start, stop, step, &n))
    return NULL;
  return tiny_build_slice (b, self, axis, start, step, n);
}

TinyNode *
op_repeat (TinyBuild *self, TinyNode *x, const gint64 *repeats, guint n)
{
  gint64 apart[2 * TINY_MAX_RANK], spread[2 * TINY_MAX_RANK], dims[TINY_MAX_RANK];
  if (n > TINY_MAX_RANK || n < x->shape->n || repeats == NULL)
    return tiny_build_fail (self, "%u counts given, %u to %d wanted", n, x->shape->n,
                            TINY_MAX_RANK);
  /* The counts are sizes too. */
  if (!tiny_build_check_shape (self, repeats, n))
    return NULL;
  for (guint i = 0; i < n; i++) {
    gint64 size = i < n - x->shape->n ? 1 : x->shape->v[i - (n - x->shape->n)];
    apart[2 * i] = 1;
    apart[2 * i + 1] = spread[2 * i + 1] = size;
    spread[2 * i] = repeats[i];
    if (size > 0 && repeats[i] > G_MAXINT64 / size)
      return tiny_build_fail (self, "more than 2^48 elements are not possible");
    dims[i] = size * repeats[i];
  }
  if (!tiny_build_check_shape (self, dims, n))
    return NULL;
  x = tiny_build_reshape (self, x, apart, 2 * n);
  x = tiny_build_expand (self, x, spread, 2 * n);
  return tiny_build_reshape (self, x, dims, n);
}

/* As in PyTorch a vector of nothing goes with any shape. */
TinyNode *
op_cat (TinyBuild *b, TinyNode *const *tensors, guint n_tensors, guint axis)
{
  g_autofree TinyNode **kept = g_new (TinyNode *, n_tensors);
  guint n = 0;
  for (guint i = 0; i < n_tensors; i++)
    if (tensors[i]->shape->n != 1 || tensors[i]->shape->v[0] > 0)
      kept[n++] = tensors[i];
  return n == 0 ? tiny_build_cat (b, tensors, n_tensors, axis)
                : tiny_build_cat (b, kept, n, axis);
}

TinyNode *
op_stack (TinyBuild *b, TinyNode *const *tensors, guint n_tensors, gint64 dim)
{
  guint at;
  if (n_tensors == 0)
    return tiny_build_fail (b, "nothing to put together");
  if (!new_axis (b, dim, tensors[0]->shape->n, &at))
    return NULL;
  g_autofree TinyNode **raised = g_new (TinyNode *, n_tensors);
  for (guint i = 0; i < n_tensors; i++) {
    if (!tiny_shape_equal (tensors[i]->shape, tensors[0]->shape)) {
      g_autofree char *first = tiny_shape_to_string (tensors[0]->shape);
      g_autofree char *other = tiny_shape_to_string (tensors[i]->shape);
      return tiny_build_fail (b, "tensor %u is %s, the first %s", i, other, first);
    }
    raised[i] = tiny_build_unsqueeze (b, tensors[i], at);
  }
  return tiny_build_cat (b, raised, n_tensors, at);
}
