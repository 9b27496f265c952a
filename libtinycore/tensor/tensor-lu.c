/* SPDX-License-Identifier: MIT
 *
 * tensor-lu.c: Gauss's factors with the largest of a column as pivot, and what they solve.
 *
 * A = P L U. As in tensor-linalg.c the row and column at hand are the first of what a step stores; here those that are
 * done go to the end, so that after the last step rows and columns only have to be turned back. L without its ones
 * and U lie in one matrix, as LAPACK has them. */
#include "tensor/tiny-lu.h"

#include <math.h>

#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-factor.h"
#include "tensor/tiny-matrix.h"

/* ---- the factors ---- */

/* The row of @x at which @is_pivot is, (B, 1, N). */
static TinyNode *
pick_row (TinyBuild *b, TinyNode *is_pivot, TinyNode *x)
{
  TinyNode *rows = tiny_build_where (b, is_pivot, x, tiny_build_like (b, x, 0));
  return tiny_build_store (b, tiny_build_sum (b, rows, (gint64[]){ TINY_ROW }, 1));
}

/* @x with its first row where the pivot's was, and that, @row, at the end. */
static TinyNode *
exchange (TinyBuild *b, TinyNode *is_pivot, TinyNode *x, TinyNode *row)
{
  x = tiny_build_where (b, is_pivot, tiny_matrix_first (b, x, TINY_ROW), x);
  return tiny_matrix_move_up (b, x, TINY_ROW, row);
}

/* The last @n along @axis before the others. */
static TinyNode *
turn_back (TinyBuild *b, TinyNode *x, guint axis, gint64 n)
{
  if (x == NULL || x->shape->v[axis] == n)
    return x;
  gint64 size = x->shape->v[axis];
  TinyNode *parts[] = { tiny_matrix_part (b, x, axis, size - n, size),
                        tiny_matrix_part (b, x, axis, 0, size - n) };
  return tiny_build_cat (b, parts, 2, axis);
}

/* 1 at the pivot's row: a column without numbers has the first. */
static TinyNode *
find_pivot (TinyBuild *b, TinyNode *column, TinyNode *is_done)
{
  gint64 rows[] = { TINY_ROW };
  TinyNode *found = tiny_matrix_find_pivot (b, column, is_done);
  TinyNode *at = tiny_build_iota (b, TINY_DTYPE_I32, column->shape->v[TINY_ROW]);
  at = tiny_build_reshape (b, at, (gint64[]){ 1, column->shape->v[TINY_ROW], 1 }, 3);
  TinyNode *is_first = tiny_build_binary (b, TINY_OP_CMPEQ, at, tiny_build_like (b, at, 0));
  TinyNode *is_none = tiny_build_not (b, op_any (b, found, rows, 1));
  return tiny_build_store (
      b, tiny_build_binary (b, TINY_OP_OR, found,
                            tiny_build_binary (b, TINY_OP_AND, is_none, is_first)));
}

static gboolean
factorise (TinyBuild *b, TinyNode *a, TinyLu *out)
{
  gint64 batch = a->shape->v[TINY_BATCH], m = a->shape->v[TINY_ROW],
         n = a->shape->v[TINY_COLUMN], n_steps = MIN (m, n);
  if (!tiny_matrix_check_steps (b, n_steps))
    return FALSE;
  TinyNode *at = tiny_build_iota (b, TINY_DTYPE_I32, m);
  at = tiny_build_expand (b, tiny_build_reshape (b, at, (gint64[]){ 1, m, 1 }, 3),
                          (gint64[]){ batch, m, 1 }, 3);
  TinyNode *rows = at, *all = a, *zero = tiny_build_like (b, a, 0);
  TinyNode *pivots = tiny_build_cast (b, tiny_matrix_zeros (b, a, n_steps, 1), TINY_DTYPE_I32);
  TinyNode *is_done = tiny_build_cast (b, tiny_matrix_zeros (b, a, m, 1), TINY_DTYPE_BOOL);
  TinyNode *is_found = tiny_build_cast (b, tiny_matrix_zeros (b, a, 1, n), TINY_DTYPE_BOOL);
  TinyNode *yes
      = tiny_build_expand (b, tiny_build_like (b, is_done, 1), (gint64[]){ batch, 1, 1 }, 3);
  for (gint64 k = 0; k < n_steps && b->error == NULL; k++) {
    all = tiny_build_store (b, all);
    TinyNode *is_pivot = find_pivot (b, tiny_matrix_first (b, all, TINY_COLUMN), is_done);
    TinyNode *row = pick_row (b, is_pivot, all);
    TinyNode *place = tiny_build_add_number (b, pick_row (b, is_pivot, at), (double) k);
    pivots = tiny_build_store (b, tiny_matrix_move_up (b, pivots, TINY_ROW, place));
    rows = tiny_build_store (b, exchange (b, is_pivot, rows, pick_row (b, is_pivot, rows)));
    is_done = tiny_build_store (b, tiny_matrix_move_up (b, is_done, TINY_ROW, yes));
    all = exchange (b, is_pivot, all, row);
    TinyNode *column = tiny_matrix_first (b, all, TINY_COLUMN);
    TinyNode *pivot = tiny_matrix_first (b, row, TINY_COLUMN);
    TinyNode *is_zero = tiny_build_binary (b, TINY_OP_CMPEQ, pivot, zero);
    TinyNode *divisor = tiny_build_where (b, is_zero, tiny_build_like (b, a, 1), pivot);
    TinyNode *factor = tiny_build_div (b, column, divisor);
    row = tiny_build_where (b, is_found, zero, row); /* columns of L stay */
    is_found = tiny_build_store (b, tiny_matrix_move_up (b, is_found, TINY_COLUMN, yes));
    TinyNode *less = tiny_build_sub (b, all, tiny_build_mul (b, factor, row));
    all = tiny_matrix_move_up (b, tiny_build_where (b, is_done, all, less), TINY_COLUMN,
                               tiny_build_where (b, is_done, column, factor));
  }
  if (b->error != NULL)
    return FALSE;
  all = tiny_build_store (b, all);
  out->packed = turn_back (b, turn_back (b, all, TINY_ROW, n_steps), TINY_COLUMN, n_steps);
  out->pivots = tiny_build_reshape (b, pivots, (gint64[]){ batch, n_steps }, 2);
  out->rows = tiny_build_reshape (b, turn_back (b, rows, TINY_ROW, n_steps),
                                  (gint64[]){ batch, m }, 2);
  return out->rows != NULL;
}

gboolean
tiny_lu_take (TinyBuild *b, TinyNode *a, TinyLu *out)
{
  TinyNode *found[3];
  if (!tiny_factor_compute (b, TINY_OPERATION_LU, 0, &a, NULL, found))
    return FALSE;
  *out = (TinyLu){ found[0], found[1], found[2] };
  return TRUE;
}

/* ---- what is made of them ---- */
static TinyNode *
triangle (TinyBuild *b, TinyNode *x, gboolean upper)
{
  return upper ? op_triu (b, x, 0) : op_tril (b, x, -1);
}

TinyNode *
tiny_lu_permute (TinyBuild *b, TinyNode *rows, TinyNode *x)
{
  gint64 dims[] = { x->shape->v[0], x->shape->v[1], x->shape->v[2] };
  rows = tiny_build_expand (b, tiny_build_unsqueeze (b, rows, 2), dims, 3);
  return rows == NULL ? NULL : tiny_node_gather (b->graph, x, TINY_ROW, rows);
}

TinyNode *
tiny_lu_diagonal (TinyBuild *b, TinyNode *packed)
{
  gint64 batch = packed->shape->v[TINY_BATCH], n = packed->shape->v[TINY_ROW];
  TinyNode *flat = tiny_build_reshape (b, packed, (gint64[]){ batch, n * n }, 2);
  flat = tiny_build_slice (b, flat, 1, 0, n + 1, n);
  return tiny_build_reshape (b, flat, (gint64[]){ batch, n, 1 }, 3);
}

/* X of L U X = @y. */
static TinyNode *
substitute (TinyBuild *b, TinyNode *packed, TinyNode *y)
{
  y = op_solve_triangular (b, packed, y, FALSE, TRUE, TRUE);
  return y == NULL ? NULL : op_solve_triangular (b, packed, y, TRUE, TRUE, FALSE);
}

TinyNode *
tiny_lu_solve (TinyBuild *b, const TinyLu *self, TinyNode *y)
{
  TinyNode *zero = tiny_build_like (b, self->packed, 0);
  TinyNode *x = substitute (b, self->packed, y);
  TinyNode *is_zero
      = tiny_build_binary (b, TINY_OP_CMPEQ, tiny_lu_diagonal (b, self->packed), zero);
  TinyNode *is_singular = op_any (b, is_zero, (gint64[]){ TINY_ROW, TINY_COLUMN }, 2);
  return x == NULL ? NULL : tiny_build_where (b, is_singular, tiny_build_like (b, x, NAN), x);
}

/* (B, M, M): 1 where row p of A is row i of L U. */
static TinyNode *
permutation (TinyBuild *b, TinyNode *rows, const TinyNode *like)
{
  gint64 m = rows->shape->v[1];
  TinyNode *at = tiny_build_reshape (b, tiny_build_iota (b, TINY_DTYPE_I32, m),
                                     (gint64[]){ 1, m, 1 }, 3);
  TinyNode *is_it = tiny_build_binary (b, TINY_OP_CMPEQ, at, tiny_build_unsqueeze (b, rows, 1));
  return tiny_build_cast (b, is_it, (TinyDType) like->dtype);
}

TinyNode *
tiny_lu_permutation (TinyBuild *b, const TinyLu *self)
{
  return permutation (b, self->rows, self->packed);
}

TinyNode *
tiny_lu_parity (TinyBuild *b, const TinyLu *self)
{
  gint64 last[] = { 1 };
  TinyNode *at = tiny_build_iota (b, TINY_DTYPE_I32, self->pivots->shape->v[1]);
  TinyNode *is_exchanged = tiny_build_binary (b, TINY_OP_CMPNE, self->pivots, at);
  TinyNode *count = tiny_build_sum (b, is_exchanged, last, 1);
  TinyNode *odd = tiny_build_binary (b, TINY_OP_AND, count, tiny_build_like (b, count, 1));
  TinyNode *sign
      = tiny_build_sub (b, tiny_build_like (b, count, 1), tiny_build_mul_number (b, odd, 2));
  sign = tiny_build_cast (b, sign, (TinyDType) self->packed->dtype);
  return tiny_build_unsqueeze (b, sign, 2);
}

static gboolean
find_factors (TinyBuild *b, TinyNode *self, TinyLu *out)
{
  TinyNode *a = tiny_matrix_take (b, self, FALSE);
  if (a == NULL)
    return FALSE;
  if (tiny_shape_get_n_elements (a->shape) == 0)
    return tiny_build_fail (b, "the matrices have no elements") != NULL;
  return tiny_lu_take (b, a, out) || (b->error == NULL && factorise (b, a, out));
}

void
op_lu (TinyBuild *b, TinyNode *self, TinyNode **out)
{
  TinyLu lu;
  if (!find_factors (b, self, &lu))
    return;
  gint64 m = lu.packed->shape->v[TINY_ROW], n = lu.packed->shape->v[TINY_COLUMN];
  gint64 k = MIN (m, n);
  TinyNode *eye
      = tiny_matrix_part (b, tiny_matrix_identity (b, lu.packed, m), TINY_COLUMN, 0, k);
  TinyNode *lower = triangle (b, tiny_matrix_part (b, lu.packed, TINY_COLUMN, 0, k), FALSE);
  out[0] = tiny_matrix_give (b, permutation (b, lu.rows, lu.packed), self, 0);
  out[1] = tiny_matrix_give (b, tiny_build_add (b, lower, eye), self, 0);
  out[2] = tiny_matrix_give (
      b, triangle (b, tiny_matrix_part (b, lu.packed, TINY_ROW, 0, k), TRUE), self, 0);
}

void
op_lu_factor (TinyBuild *b, TinyNode *self, TinyNode **out)
{
  TinyLu lu;
  gint64 dims[TINY_MAX_RANK];
  if (!find_factors (b, self, &lu))
    return;
  guint rank = self->shape->n;
  for (guint i = 0; i + 2 < rank; i++)
    dims[i] = self->shape->v[i];
  dims[rank - 2] = lu.pivots->shape->v[1];
  out[0] = tiny_matrix_give (b, lu.packed, self, 0);
  out[1] = tiny_build_reshape (b, tiny_build_add_number (b, lu.pivots, 1), dims, rank - 1);
}

/* ---- solving ---- */

/* The order of rows after exchanges of row k with row pivots[k]: (B, N) of (B, N, 1). */
static TinyNode *
find_order (TinyBuild *b, TinyNode *pivots)
{
  gint64 batch = pivots->shape->v[TINY_BATCH], n = pivots->shape->v[TINY_ROW];
  TinyNode *at = tiny_build_reshape (b, tiny_build_iota (b, TINY_DTYPE_I32, n),
                                     (gint64[]){ 1, n, 1 }, 3);
  TinyNode *rows = tiny_build_expand (b, at, (gint64[]){ batch, n, 1 }, 3);
  if (!tiny_matrix_check_steps (b, n))
    return NULL;
  for (gint64 k = 0; k < n && b->error == NULL; k++) {
    rows = tiny_build_store (b, rows);
    TinyNode *place = tiny_matrix_part (b, pivots, TINY_ROW, k, k + 1);
    TinyNode *here = tiny_matrix_part (b, rows, TINY_ROW, k, k + 1);
    TinyNode *there = tiny_node_gather (b->graph, rows, TINY_ROW, place);
    TinyNode *is_here = tiny_build_binary (b, TINY_OP_CMPEQ, at,
                                           tiny_node_const_int (b->graph, TINY_DTYPE_I32, k));
    TinyNode *is_there = tiny_build_binary (b, TINY_OP_CMPEQ, at, place);
    rows = tiny_build_where (b, is_there, here, rows);
    rows = tiny_build_where (b, is_here, there, rows);
  }
  return tiny_build_reshape (b, tiny_build_store (b, rows), (gint64[]){ batch, n }, 2);
}

TinyNode *
op_lu_solve (TinyBuild *b, TinyNode *self, TinyNode *pivots, TinyNode *right)
{
  TinyNode *both[2];
  gboolean is_vector;
  gint64 dims[TINY_MAX_RANK];
  guint rank = self->shape->n;
  self = tiny_build_float (b, self);
  right = tiny_build_float (b, right);
  if (tiny_matrix_take (b, self, TRUE) == NULL
      || !tiny_matrix_take_both (b, self, right, both, &is_vector))
    return NULL;
  TinyNode *packed = tiny_matrix_take (b, both[0], TRUE),
           *y = tiny_matrix_take (b, both[1], FALSE);
  if (tiny_dtype_is_float (pivots->dtype) || pivots->shape->n + 1 != rank)
    return tiny_build_fail (b, "the pivots are integers (…, N), as lu_factor() gives them");
  for (guint i = 0; i + 1 < both[0]->shape->n; i++)
    dims[i] = both[0]->shape->v[i];
  pivots = tiny_build_expand (b, pivots, dims, both[0]->shape->n - 1);
  if (packed == NULL || y == NULL || pivots == NULL)
    return NULL;
  if (tiny_shape_get_n_elements (y->shape) > 0) {
    gint64 batch = packed->shape->v[TINY_BATCH], n = packed->shape->v[TINY_ROW];
    pivots = tiny_build_cast (b, pivots, TINY_DTYPE_I32);
    pivots = tiny_build_add_number (
        b, tiny_build_reshape (b, pivots, (gint64[]){ batch, n, 1 }, 3), -1);
    TinyNode *rows = find_order (b, tiny_build_store (b, pivots));
    y = rows == NULL ? NULL : substitute (b, packed, tiny_lu_permute (b, rows, y));
  }
  return tiny_matrix_give (b, y, both[1], is_vector ? 1 : 0);
}
