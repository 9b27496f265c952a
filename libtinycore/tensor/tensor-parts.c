/* SPDX-License-Identifier: MIT
 *
 * tensor-parts.c: parts of a tensor: pieces, diagonals, triangles, windows. */
#include "ir/tiny-limit.h"
#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-part.h"
#include "tensor/tiny-positions.h"
#include "tensor/tiny-tensor-operations.h"

/* ---- along one axis ---- */
TinyNode *
op_select (TinyBuild *b, TinyNode *self, guint axis, gint64 index)
{
  gint64 size = self->shape->v[axis];
  if (tiny_limit_get (self, axis) != NULL) {
    TinyPart part;
    TinyNode *place = tiny_node_const_int (b->graph, TINY_DTYPE_I64, index);
    return tiny_part_find_one (b, self, axis, place, &part) ? tiny_build_squeeze (
               b, tiny_part_read (b, self, axis, &part), (gint64[]){ axis }, 1)
                                                            : NULL;
  }
  if (index < -size || index >= size)
    return tiny_build_fail (
        b, "index %" G_GINT64_FORMAT " is out of range for axis %u of size %" G_GINT64_FORMAT,
        index, axis, size);
  TinyNode *part = tiny_build_slice (b, self, axis, index < 0 ? index + size : index, 1, 1);
  return tiny_build_squeeze (b, part, (gint64[]){ axis }, 1);
}

void
op_unbind (TinyBuild *b, TinyNode *self, guint axis, GPtrArray *out)
{
  if (!tiny_build_check_number (b, self, axis)
      || !tiny_build_check_n_results (b, self->shape->v[axis]))
    return;
  for (gint64 i = 0; i < self->shape->v[axis]; i++)
    g_ptr_array_add (out, op_select (b, self, axis, i));
}

/* Pieces of @size along @axis, the last with what is left. */
static void
split_evenly (TinyBuild *b, TinyNode *x, guint axis, gint64 size, GPtrArray *out)
{
  gint64 whole = x->shape->v[axis];
  if (!tiny_build_check_n_results (b, whole > 0 ? (whole - 1) / size + 1 : 1))
    return;
  for (gint64 at = 0; at < whole; at += MIN (size, whole - at))
    g_ptr_array_add (out, tiny_build_slice (b, x, axis, at, 1, MIN (size, whole - at)));
  if (whole == 0)
    g_ptr_array_add (out, x);
}

void
op_split (TinyBuild *b,
          TinyNode *self,
          const gint64 *sizes,
          guint n_sizes,
          guint axis,
          GPtrArray *out)
{
  gint64 whole = self->shape->v[axis], at = 0;
  gboolean fits = n_sizes > 0 && sizes != NULL;
  if (!tiny_build_check_number (b, self, axis))
    return;
  if (fits && n_sizes == 1 && sizes[0] > 0) {
    split_evenly (b, self, axis, sizes[0], out);
    return;
  }
  for (guint i = 0; fits && i < n_sizes; i++) {
    fits = sizes[i] >= 0 && sizes[i] <= whole - at;
    if (fits)
      g_ptr_array_add (out, tiny_build_slice (b, self, axis, at, 1, sizes[i]));
    at += fits ? sizes[i] : 0;
  }
  if (!fits || at != whole) {
    g_autofree char *given = tiny_shape_to_string (tiny_graph_ints (b->graph, sizes, n_sizes));
    tiny_build_fail (b, "pieces of %s do not make up axis %u of %" G_GINT64_FORMAT, given, axis,
                     whole);
  }
}

void
op_chunk (TinyBuild *b, TinyNode *self, gint64 chunks, guint axis, GPtrArray *out)
{
  gint64 size = self->shape->v[axis];
  if (!tiny_build_check_number (b, self, axis))
    return;
  if (chunks <= 0)
    tiny_build_fail (b, "%" G_GINT64_FORMAT " chunks, at least 1 is possible", chunks);
  else if (!tiny_build_check_n_results (b, size > 0 ? 1 : chunks))
    return;
  else if (size > 0)
    split_evenly (b, self, axis, (size - 1) / chunks + 1, out);
  else /* PyTorch gives as many empty ones as asked for */
    for (gint64 i = 0; i < chunks; i++)
      g_ptr_array_add (out, self);
}

/* (…, N, …) to (…, W, …, size): EXPAND of a new axis k, then element w * step + k. */
TinyNode *
op_unfold (TinyBuild *b, TinyNode *self, guint axis, gint64 size, gint64 step)
{
  gint64 dims[TINY_MAX_RANK + 2]; /* with the axis of blocks that scans have */
  guint rank = self->shape->n;
  gint64 whole = self->shape->v[axis];
  if (size < 0 || size > whole || step < 1)
    return tiny_build_fail (b,
                            "windows of %" G_GINT64_FORMAT " every %" G_GINT64_FORMAT
                            " do not fit axis %u of size %" G_GINT64_FORMAT,
                            size, step, axis, whole);
  for (guint i = 0; i < rank; i++)
    dims[i] = self->shape->v[i];
  dims[rank] = size;
  gint64 n = (whole - size) / step + 1;
  TinyNode *x = tiny_build_unsqueeze (b, self, rank);
  gboolean is_empty = size == 0 || tiny_shape_get_n_elements (self->shape) == 0;
  if (is_empty || !tiny_build_check_shape (b, dims, MIN (rank + 1, TINY_MAX_RANK))) {
    dims[axis] = n;
    TinyNode *zero = tiny_build_beside (b, tiny_build_like (b, self, 0), self);
    return tiny_node_broadcast (b->graph, zero, dims, rank + 1);
  }
  x = tiny_build_expand (b, x, dims, rank + 1);
  return tiny_node_shear (b->graph, x, axis, rank, step, 1, 0, 1, n);
}

/* ---- diagonals ---- */

/* The axes of a matrix among others, moved to the end. */
static TinyNode *
matrices_last (TinyBuild *b, TinyNode *x, guint rows, guint columns)
{
  gint64 order[TINY_MAX_RANK];
  guint n = 0;
  for (guint i = 0; i < x->shape->n; i++)
    if (i != rows && i != columns)
      order[n++] = i;
  order[n++] = rows;
  order[n++] = columns;
  return tiny_build_permute (b, x, order, n);
}

/* Element (r, c) where c - r is @offset: columns sheared by rows, of which one is taken. */
TinyNode *
op_diagonal (TinyBuild *b, TinyNode *self, gint64 offset, guint dim1, guint dim2)
{
  if (dim1 == dim2)
    return tiny_build_fail (b, "axis %u twice: a diagonal has two", dim1);
  TinyNode *x = matrices_last (b, self, dim1, dim2);
  guint rank = x->shape->n, rows = rank - 2, columns = rank - 1;
  gint64 n_rows = x->shape->v[rows], n_columns = x->shape->v[columns];
  gint64 at = CLAMP (offset, -n_rows, n_columns), first = MAX (-at, 0);
  gint64 n = MAX (MIN (n_rows - first, n_columns - MAX (at, 0)), 0);
  x = tiny_build_slice (b, x, rows, n == 0 ? 0 : first, 1, n);
  if (n > 0 && x != NULL && tiny_shape_get_n_elements (x->shape) > 0)
    x = tiny_node_shear (b->graph, x, columns, rows, 1, 1, MAX (at, 0), 1, 1);
  else
    x = tiny_build_slice (b, x, columns, 0, 1, MIN (n_columns, 1));
  return tiny_build_squeeze (b, x, (gint64[]){ columns }, 1);
}

/* (N) to (N + |offset|, N + |offset|): element c - r - offset of an axis of size 1, which is there
 * on the diagonal only. */
static TinyNode *
diagonal_matrix (TinyBuild *b, TinyNode *x, gint64 offset)
{
  gint64 n = x->shape->v[0];
  gint64 distance = offset < 0 ? -MAX (offset, -G_MAXINT32) : MIN (offset, G_MAXINT32);
  gint64 dims[] = { n + distance, n + distance };
  if (!tiny_build_check_shape (b, dims, 2))
    return NULL;
  if (n == 0)
    return tiny_node_broadcast (b->graph, tiny_build_beside (b, tiny_build_like (b, x, 0), x),
                                dims, 2);
  gint64 pairs[] = { MAX (-offset, 0), MAX (offset, 0), 0, 0 };
  x = tiny_build_pad (b, tiny_build_unsqueeze (b, x, 1), pairs, 0);
  return x == NULL ? NULL : tiny_node_shear (b->graph, x, 1, 0, 1, -1, -offset, 1, dims[1]);
}

TinyNode *
op_diag (TinyBuild *b, TinyNode *self, gint64 diagonal)
{
  if (self->shape->n == 1)
    return diagonal_matrix (b, self, diagonal);
  if (self->shape->n == 2)
    return op_diagonal (b, self, diagonal, 0, 1);
  return tiny_build_fail (b, "takes a vector or a matrix, not %u axes", self->shape->n);
}

/* ---- triangles ---- */

/* c - r of the last two axes, from which @diagonal is taken. */
static TinyNode *
keep_where (TinyBuild *b, TinyNode *x, gint64 diagonal, gboolean upper)
{
  guint rank = x->shape->n;
  if (rank < 2)
    return tiny_build_fail (b, "takes matrices, not %u axes", rank);
  gint64 n_rows = x->shape->v[rank - 2], n_columns = x->shape->v[rank - 1];
  gboolean wide = MAX (n_rows, n_columns) >= G_MAXINT32 / 2;
  TinyDType dtype = wide ? TINY_DTYPE_I64 : TINY_DTYPE_I32;
  diagonal = CLAMP (diagonal, -n_rows, n_columns);
  TinyNode *row = tiny_build_count_along (b, dtype, 0, n_rows, 2);
  TinyNode *column = tiny_build_count_along (b, dtype, 1, n_columns, 2);
  row = tiny_build_add (b, row, tiny_node_const_int (b->graph, dtype, diagonal));
  TinyNode *keep = upper ? op_le (b, row, column) : op_le (b, column, row);
  return tiny_build_where (b, keep, x, tiny_build_like (b, x, 0));
}

TinyNode *
op_triu (TinyBuild *b, TinyNode *self, gint64 diagonal)
{
  return keep_where (b, self, diagonal, TRUE);
}

TinyNode *
op_tril (TinyBuild *b, TinyNode *self, gint64 diagonal)
{
  return keep_where (b, self, diagonal, FALSE);
}
