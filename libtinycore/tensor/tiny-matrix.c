/* SPDX-License-Identifier: MIT
 *
 * tiny-matrix.c: parts of batches of matrices. */
#include "tensor/tiny-matrix.h"

#include <string.h>

#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-layout.h"

/* ---- parts of matrices ---- */
/* Elements @from up to @to along @axis. */
TinyNode *
tiny_matrix_part (TinyBuild *b, TinyNode *x, guint axis, gint64 from, gint64 to)
{
  return tiny_build_slice (b, x, axis, from, 1, to - from);
}

TinyNode *
tiny_matrix_first (TinyBuild *b, TinyNode *x, guint axis)
{
  return tiny_matrix_part (b, x, axis, 0, 1);
}

/* @x without its first along @axis, and with @last, or zeros, at the end. */
TinyNode *
tiny_matrix_move_up (TinyBuild *b, TinyNode *x, guint axis, TinyNode *last)
{
  gint64 pairs[6] = { 0 };
  if (x == NULL)
    return NULL;
  gint64 n = x->shape->v[axis];
  if (last == NULL) {
    pairs[2 * axis + 1] = 1;
    return tiny_build_pad (b, tiny_matrix_part (b, x, axis, 1, n), pairs, 0);
  }
  if (n == 1)
    return last;
  return tiny_build_cat (b, (TinyNode *[]){ tiny_matrix_part (b, x, axis, 1, n), last }, 2,
                         axis);
}

TinyNode *
tiny_matrix_transposed (TinyBuild *b, TinyNode *x)
{
  return x == NULL ? NULL : tiny_build_transpose (b, x, x->shape->n - 2, x->shape->n - 1);
}

TinyNode *
tiny_matrix_zeros (TinyBuild *b, TinyNode *like, gint64 rows, gint64 columns)
{
  return tiny_node_broadcast (b->graph, tiny_build_like (b, like, 0),
                              (gint64[]){ like->shape->v[TINY_BATCH], rows, columns }, 3);
}

TinyNode *
tiny_matrix_identity (TinyBuild *b, TinyNode *like, gint64 n)
{
  TinyNode *at = tiny_build_iota (b, TINY_DTYPE_I32, n);
  TinyNode *is_diagonal
      = tiny_build_binary (b, TINY_OP_CMPEQ, tiny_build_unsqueeze (b, at, 1), at);
  TinyNode *eye = tiny_build_cast (b, is_diagonal, (TinyDType) like->dtype);
  return tiny_build_expand (b, eye, (gint64[]){ like->shape->v[TINY_BATCH], n, n }, 3);
}

/* Row k of @x (B, K, N) moved to the right by k: what rows were before columns were moved up. */
TinyNode *
tiny_matrix_move_back (TinyBuild *b, TinyNode *x)
{
  if (x == NULL || tiny_shape_get_n_elements (x->shape) == 0)
    return x;
  return tiny_node_shear (b->graph, x, TINY_COLUMN, TINY_ROW, 1, -1, 0, 1,
                          x->shape->v[TINY_COLUMN]);
}

TinyNode *
tiny_matrix_find_pivot (TinyBuild *b, TinyNode *column, TinyNode *used)
{
  gint64 n = column->shape->v[TINY_ROW], axes[] = { TINY_ROW };
  TinyNode *size = tiny_layout_unary (b->graph, TINY_OP_DETACH, op_abs (b, column));
  size = tiny_build_where (b, used, tiny_build_like (b, size, -1), size);
  TinyNode *largest = tiny_build_reduce (b, TINY_OP_MAX, size, axes, 1);
  TinyNode *left = op_neg (b, tiny_build_iota (b, TINY_DTYPE_I32, n));
  left = tiny_build_reshape (b, left, (gint64[]){ 1, n, 1 }, 3);
  TinyNode *nobody = tiny_build_number (b, TINY_DTYPE_I32, (double) -n);
  TinyNode *is_free = tiny_build_not (b, used);
  TinyNode *is_largest = tiny_build_binary (
      b, TINY_OP_AND, tiny_build_binary (b, TINY_OP_CMPEQ, size, largest), is_free);
  TinyNode *scores = tiny_build_where (b, is_largest, left, nobody);
  TinyNode *best = tiny_build_reduce (b, TINY_OP_MAX, scores, axes, 1);
  return tiny_build_binary (b, TINY_OP_CMPEQ, left, best);
}

/* ---- taking and giving ---- */

/* Every column is a step of some ten nodes. */
enum { LARGEST_N_STEPS = 4096 };

gboolean
tiny_matrix_check_steps (TinyBuild *b, gint64 n)
{
  if (n > LARGEST_N_STEPS)
    tiny_build_fail (b,
                     "%" G_GINT64_FORMAT " columns, one by one, are too many: %d are possible",
                     n, LARGEST_N_STEPS);
  return n <= LARGEST_N_STEPS;
}

/* (…, M, N) as (B, M, N); narrow floats as f32. */
TinyNode *
tiny_matrix_take (TinyBuild *b, TinyNode *x, gboolean square)
{
  guint rank = x->shape->n;
  const gint64 *v = x->shape->v;
  if (rank < 2 || (square && v[rank - 1] != v[rank - 2])) {
    g_autofree char *text = tiny_shape_to_string (x->shape);
    return tiny_build_fail (b, "takes %s, not %s",
                            square ? "square matrices (…, N, N)" : "matrices (…, M, N)", text);
  }
  gint64 batch = 1;
  for (guint i = 0; i + 2 < rank; i++)
    batch *= v[i];
  if (tiny_dtype_get_n_bytes ((TinyDType) x->dtype) < 4)
    x = tiny_build_cast (b, x, TINY_DTYPE_F32);
  return tiny_build_reshape (b, x, (gint64[]){ batch, v[rank - 2], v[rank - 1] }, 3);
}

/* @x (B, M, N) with the leading axes and dtype of @like; @drop of its last axes, of size 1, go. */
TinyNode *
tiny_matrix_give (TinyBuild *b, TinyNode *x, const TinyNode *like, guint drop)
{
  gint64 dims[TINY_MAX_RANK];
  guint rank = like->shape->n;
  if (x == NULL)
    return NULL;
  memcpy (dims, like->shape->v, (rank - 2) * sizeof *dims);
  dims[rank - 2] = x->shape->v[TINY_ROW];
  dims[rank - 1] = x->shape->v[TINY_COLUMN];
  return tiny_build_cast (b, tiny_build_reshape (b, x, dims, rank - drop),
                          (TinyDType) like->dtype);
}

/* A and B of equal batches, B as (B, N, M); whether B was a vector. */
gboolean
tiny_matrix_take_both (
    TinyBuild *b, TinyNode *x, TinyNode *y, TinyNode **out, gboolean *is_vector)
{
  gint64 dims[TINY_MAX_RANK];
  guint rank = x->shape->n;
  *is_vector = y->shape->n == 1 || (y->shape->n + 1 == rank && rank > 2);
  if (y->shape->n + 1 == rank && rank > 2)
    for (guint i = 0; i + 1 < rank; i++)
      *is_vector = *is_vector && y->shape->v[i] == x->shape->v[i];
  if (*is_vector)
    y = tiny_build_unsqueeze (b, y, y->shape->n);
  TinyDType dtype = tiny_dtype_promote ((TinyDType) x->dtype, (TinyDType) y->dtype);
  g_autofree char *x_text = tiny_shape_to_string (x->shape);
  g_autofree char *y_text = tiny_shape_to_string (y->shape);
  if (rank < 2 || y->shape->n < 2 || x->shape->v[rank - 2] != y->shape->v[y->shape->n - 2]) {
    tiny_build_fail (b, "%s and a right side of %s do not have equally many rows", x_text,
                     y_text);
    return FALSE;
  }
  rank = MAX (rank, y->shape->n);
  TinyNode *const both[] = { x, y };
  for (guint k = 0; k < 2; k++) {
    const TinyInts *shape = both[k]->shape, *other = both[1 - k]->shape;
    for (guint i = 0; i < rank; i++) {
      gint64 size = i + shape->n < rank ? 1 : shape->v[i + shape->n - rank];
      gint64 wanted = i + other->n < rank ? 1 : other->v[i + other->n - rank];
      if (i + 2 < rank && size != wanted && size != 1 && wanted != 1) {
        tiny_build_fail (b, "the batches of %s and %s do not broadcast", x_text, y_text);
        return FALSE;
      }
      dims[i] = i + 2 >= rank || size != 1 ? size : wanted;
    }
    out[k] = tiny_build_expand (b, tiny_build_cast (b, both[k], dtype), dims, rank);
    if (out[k] == NULL)
      return FALSE;
  }
  return TRUE;
}
