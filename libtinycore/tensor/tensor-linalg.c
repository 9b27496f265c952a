/* SPDX-License-Identifier: MIT
 *
 * tensor-linalg.c: factors of matrices and what they solve.
 *
 * A library of the device computes the factors where there is one (tiny-factor.h). Elsewhere each method walks over the columns. So that all steps are the same kernels, which are compiled
 * once, the column at hand is always the first: a step stores the matrix with rows and columns moved
 * up, zeros or results coming in at the end. Every step has a gradient, and so has the whole. Inside,
 * all matrices are (B, M, N). */
#include <math.h>

#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-factor.h"
#include "tensor/tiny-lu.h"
#include "tensor/tiny-matrix.h"

static TinyNode *
sum_along (TinyBuild *b, TinyNode *x, guint axis)
{
  return tiny_build_sum (b, x, (gint64[]){ axis }, 1);
}

/* ---- Cholesky: A = L Lᵀ ---- */
static TinyNode *
walk_cholesky (TinyBuild *b, TinyNode *rest)
{
  gint64 n = rest->shape->v[TINY_ROW];
  if (!tiny_matrix_check_steps (b, n))
    return NULL;
  TinyNode *columns = tiny_matrix_zeros (b, rest, n, n);
  for (gint64 k = 0; k < n && b->error == NULL; k++) {
    rest = tiny_build_store (b, rest);
    TinyNode *scale = op_rsqrt (
        b, tiny_matrix_first (b, tiny_matrix_first (b, rest, TINY_ROW), TINY_COLUMN));
    TinyNode *row = tiny_build_mul (b, tiny_matrix_first (b, rest, TINY_ROW), scale);
    TinyNode *column = tiny_build_mul (b, tiny_matrix_first (b, rest, TINY_COLUMN), scale);
    columns = tiny_build_store (b, tiny_matrix_move_up (b, columns, TINY_ROW, row));
    rest = tiny_build_sub (b, rest, tiny_build_mul (b, column, row));
    rest = tiny_matrix_move_up (b, tiny_matrix_move_up (b, rest, TINY_ROW, NULL), TINY_COLUMN,
                                NULL);
  }
  return tiny_matrix_transposed (b, tiny_matrix_move_back (b, columns));
}

TinyNode *
op_cholesky (TinyBuild *b, TinyNode *self, gboolean upper)
{
  TinyNode *a = tiny_matrix_take (b, self, TRUE), *factor;
  if (a == NULL || tiny_shape_get_n_elements (a->shape) == 0)
    return a == NULL ? NULL : self;
  a = tiny_factor_mirror (b, a, upper);
  if (!tiny_factor_compute (b, TINY_OPERATION_CHOLESKY, 0, &a, NULL, &factor))
    factor = walk_cholesky (b, a);
  return tiny_matrix_give (b, upper ? tiny_matrix_transposed (b, factor) : factor, self, 0);
}

/* ---- Gauss and Jordan's elimination, with the largest of a column as pivot ---- */
typedef struct {
  TinyNode *right; /* (B, N, M) with rows in the order of columns: A⁻¹ times what was given */
  TinyNode *pivots; /* (B, N, N): pivot k at the row it was in, column k */
} Elimination;

/* @a (B, N, N), @right (B, N, M) or NULL. A pivot of 0 leaves the row as it is. */
static gboolean
eliminate (TinyBuild *b, TinyNode *a, TinyNode *right, Elimination *out)
{
  gint64 n = a->shape->v[TINY_ROW], m = right == NULL ? 0 : right->shape->v[TINY_COLUMN];
  if (!tiny_matrix_check_steps (b, n))
    return FALSE;
  TinyNode *all
      = right == NULL ? a : tiny_build_cat (b, (TinyNode *[]){ a, right }, 2, TINY_COLUMN);
  TinyNode *used = tiny_build_cast (b, tiny_matrix_zeros (b, a, n, 1), TINY_DTYPE_BOOL);
  TinyNode *zero = tiny_build_like (b, a, 0), *one = tiny_build_like (b, a, 1);
  for (gint64 k = 0; k < n && b->error == NULL; k++) {
    all = tiny_build_store (b, all);
    TinyNode *column = tiny_matrix_first (b, all, TINY_COLUMN);
    TinyNode *is_pivot = tiny_build_store (b, tiny_matrix_find_pivot (b, column, used));
    TinyNode *row = tiny_build_store (
        b, sum_along (b, tiny_build_where (b, is_pivot, all, zero), TINY_ROW));
    TinyNode *pivot = tiny_matrix_first (b, row, TINY_COLUMN);
    TinyNode *divisor
        = tiny_build_where (b, tiny_build_binary (b, TINY_OP_CMPEQ, pivot, zero), one, pivot);
    used = tiny_build_store (b, tiny_build_binary (b, TINY_OP_OR, used, is_pivot));
    TinyNode *factor
        = tiny_build_sub (b, column, tiny_build_cast (b, is_pivot, (TinyDType) a->dtype));
    all = tiny_build_sub (b, all, tiny_build_mul (b, factor, tiny_build_div (b, row, divisor)));
    all = tiny_matrix_move_up (b, all, TINY_COLUMN,
                               tiny_build_where (b, is_pivot, pivot, zero));
  }
  if (b->error != NULL)
    return FALSE;
  all = tiny_build_store (b, all);
  out->pivots = tiny_matrix_part (b, all, TINY_COLUMN, m, m + n);
  out->right = NULL;
  if (right == NULL)
    return TRUE;
  TinyNode *place = tiny_build_cast (b, tiny_build_binary (b, TINY_OP_CMPNE, out->pivots, zero),
                                     (TinyDType) a->dtype);
  TinyNode *solved = tiny_build_matmul (b, tiny_matrix_transposed (b, place),
                                        tiny_matrix_part (b, all, TINY_COLUMN, 0, m));
  /* A column without a pivot: there is no solution, or there are many. */
  TinyNode *is_singular
      = tiny_build_binary (b, TINY_OP_CMPEQ, sum_along (b, place, TINY_ROW), zero);
  is_singular = op_any (b, is_singular, (gint64[]){ TINY_ROW, TINY_COLUMN }, 2);
  out->right = tiny_build_where (b, is_singular, tiny_build_like (b, a, NAN), solved);
  return out->right != NULL;
}

/* (B, N, 1): pivot k. */
static TinyNode *
pivots_of (TinyBuild *b, const Elimination *self)
{
  return tiny_matrix_transposed (b, sum_along (b, self->pivots, TINY_ROW));
}

/* 1 or -1, (B, 1, 1): whether the rows of pivots are an even permutation, by counting inversions. */
static TinyNode *
parity (TinyBuild *b, const Elimination *self)
{
  gint64 n = self->pivots->shape->v[TINY_ROW];
  TinyNode *at = tiny_build_iota (b, TINY_DTYPE_I32, n);
  TinyNode *row = tiny_build_reshape (b, at, (gint64[]){ n, 1 }, 2);
  TinyNode *is_here = tiny_build_binary (b, TINY_OP_CMPNE, self->pivots,
                                         tiny_build_like (b, self->pivots, 0));
  TinyNode *zero = tiny_build_number (b, TINY_DTYPE_I32, 0);
  TinyNode *place
      = tiny_build_store (b, sum_along (b, tiny_build_where (b, is_here, row, zero), TINY_ROW));
  TinyNode *is_inverted = tiny_build_binary (
      b, TINY_OP_AND,
      tiny_build_binary (b, TINY_OP_CMPLT, place, tiny_matrix_transposed (b, place)),
      tiny_build_binary (b, TINY_OP_CMPLT, row, at));
  TinyNode *count = tiny_build_sum (b, is_inverted, (gint64[]){ TINY_ROW, TINY_COLUMN }, 2);
  TinyNode *odd = tiny_build_binary (b, TINY_OP_AND, count, tiny_build_like (b, count, 1));
  return tiny_build_cast (
      b, tiny_build_sub (b, tiny_build_like (b, count, 1), tiny_build_mul_number (b, odd, 2)),
      (TinyDType) self->pivots->dtype);
}

/* (B, N, 1), and 1 or -1, (B, 1, 1), by which their product is the determinant. */
static gboolean
find_pivots (TinyBuild *b, TinyNode *a, TinyNode **pivots, TinyNode **out_parity)
{
  Elimination done;
  TinyLu lu;
  gboolean is_taken = tiny_lu_take (b, a, &lu);
  if (!is_taken && (b->error != NULL || !eliminate (b, a, NULL, &done)))
    return FALSE;
  *pivots = is_taken ? tiny_lu_diagonal (b, lu.packed) : pivots_of (b, &done);
  *out_parity = is_taken ? tiny_lu_parity (b, &lu) : parity (b, &done);
  return *out_parity != NULL;
}

TinyNode *
op_det (TinyBuild *b, TinyNode *self)
{
  TinyNode *a = tiny_matrix_take (b, self, TRUE);
  if (a == NULL)
    return NULL;
  if (a->shape->v[TINY_ROW] == 0)
    return tiny_matrix_give (b,
                             tiny_build_expand (b, tiny_build_like (b, a, 1),
                                                (gint64[]){ a->shape->v[TINY_BATCH], 1, 1 }, 3),
                             self, 2);
  if (a->shape->v[TINY_BATCH] == 0)
    return tiny_matrix_give (b, tiny_matrix_zeros (b, a, 1, 1), self, 2);
  TinyNode *pivots, *even;
  if (!find_pivots (b, a, &pivots, &even))
    return NULL;
  TinyNode *product = op_prod (b, pivots, (gint64[]){ TINY_ROW }, 1);
  return tiny_matrix_give (b, tiny_build_mul (b, product, even), self, 2);
}

void
op_slogdet (TinyBuild *b, TinyNode *self, TinyNode **out)
{
  TinyNode *pivots, *even;
  gint64 rows[] = { TINY_ROW };
  TinyNode *a = tiny_matrix_take (b, self, TRUE);
  if (a == NULL)
    return;
  if (tiny_shape_get_n_elements (a->shape) == 0) {
    TinyNode *nothing = tiny_matrix_give (b, tiny_matrix_zeros (b, a, 1, 1), self, 2);
    out[0]
        = nothing == NULL ? NULL : tiny_build_add (b, nothing, tiny_build_like (b, nothing, 1));
    out[1] = nothing;
    return;
  }
  if (!find_pivots (b, a, &pivots, &even))
    return;
  TinyNode *sign = op_prod (b, op_sign (b, pivots), rows, 1);
  out[0] = tiny_matrix_give (b, tiny_build_mul (b, sign, even), self, 2);
  out[1] = tiny_matrix_give (b, tiny_build_sum (b, op_log (b, op_abs (b, pivots)), rows, 1),
                             self, 2);
}

/* ---- solving ---- */

static TinyNode *
give_solution (TinyBuild *b, TinyNode *x, const TinyNode *like, gboolean is_vector)
{
  return tiny_matrix_give (b, x, like, is_vector ? 1 : 0);
}

/* X of A X = Y, or A's inverse where there is no Y. */
static TinyNode *
solve (TinyBuild *b, TinyNode *a, TinyNode *y)
{
  Elimination done;
  TinyLu lu;
  if (!tiny_lu_take (b, a, &lu)) {
    TinyNode *right = y != NULL ? y : tiny_matrix_identity (b, a, a->shape->v[TINY_ROW]);
    return b->error == NULL && eliminate (b, a, right, &done) ? done.right : NULL;
  }
  TinyNode *right = y != NULL ? tiny_lu_permute (b, lu.rows, y)
                              : tiny_matrix_transposed (b, tiny_lu_permutation (b, &lu));
  TinyNode *x = tiny_lu_solve (b, &lu, right);
  tiny_factor_set_rule (b, y != NULL ? TINY_RULE_SOLVE : TINY_RULE_INV, 1, &x,
                        y != NULL ? 2 : 1, (TinyNode *[]){ a, y });
  return x;
}

TinyNode *
op_solve (TinyBuild *b, TinyNode *self, TinyNode *right)
{
  TinyNode *both[2];
  gboolean is_vector;
  if (tiny_matrix_take (b, self, TRUE) == NULL
      || !tiny_matrix_take_both (b, self, right, both, &is_vector))
    return NULL;
  TinyNode *a = tiny_matrix_take (b, both[0], TRUE), *y = tiny_matrix_take (b, both[1], FALSE);
  if (a == NULL || y == NULL)
    return NULL;
  if (tiny_shape_get_n_elements (y->shape) == 0)
    return give_solution (b, y, both[1], is_vector);
  return give_solution (b, solve (b, a, y), both[1], is_vector);
}

TinyNode *
op_inv (TinyBuild *b, TinyNode *self)
{
  TinyNode *a = tiny_matrix_take (b, self, TRUE);
  if (a == NULL || tiny_shape_get_n_elements (a->shape) == 0)
    return a == NULL ? NULL : self;
  return tiny_matrix_give (b, solve (b, a, NULL), self, 0);
}

/* X of A X = Y with A lower triangular: what is known goes to the end of Y's rows. */
static TinyNode *
substitute (TinyBuild *b, TinyNode *a, TinyNode *y, gboolean unit)
{
  gint64 n = a->shape->v[TINY_ROW];
  if (!tiny_matrix_check_steps (b, n))
    return NULL;
  for (gint64 k = 0; k < n && b->error == NULL; k++) {
    a = tiny_build_store (b, a);
    y = tiny_build_store (b, y);
    TinyNode *x = tiny_matrix_first (b, y, TINY_ROW);
    if (!unit)
      x = tiny_build_div (
          b, x, tiny_matrix_first (b, tiny_matrix_first (b, a, TINY_ROW), TINY_COLUMN));
    TinyNode *below
        = tiny_build_sub (b, y, tiny_build_mul (b, tiny_matrix_first (b, a, TINY_COLUMN), x));
    y = tiny_matrix_move_up (b, below, TINY_ROW, x);
    a = tiny_matrix_move_up (b, tiny_matrix_move_up (b, a, TINY_ROW, NULL), TINY_COLUMN, NULL);
  }
  return y;
}

static TinyNode *
flipped (TinyBuild *b, TinyNode *x, gboolean columns)
{
  return x == NULL ? NULL
                   : tiny_node_flip (b->graph, x, (gint64[]){ TINY_ROW, TINY_COLUMN },
                                     columns ? 2 : 1);
}

static TinyNode *
solve_triangle (TinyBuild *b, TinyNode *a, TinyNode *y, gboolean upper, gboolean unit)
{
  guint flags = (upper ? TINY_OPERATION_UPPER : 0) | (unit ? TINY_OPERATION_UNIT : 0);
  TinyNode *both[] = { a, y }, *x = NULL;
  if (tiny_factor_compute (b, TINY_OPERATION_TRIANGULAR, flags, both, NULL, &x)
      || b->error != NULL)
    return x;
  if (!upper)
    return substitute (b, a, y, unit);
  return flipped (b, substitute (b, flipped (b, a, TRUE), flipped (b, y, FALSE), unit), FALSE);
}

TinyNode *
op_solve_triangular (TinyBuild *b,
                     TinyNode *self,
                     TinyNode *right,
                     gboolean upper,
                     gboolean left,
                     gboolean unitriangular)
{
  TinyNode *both[2];
  gboolean is_vector;
  if (tiny_matrix_take (b, self, TRUE) == NULL || right == NULL || right->shape->n < 2)
    return tiny_build_fail (b, "the right side is (…, N, M)");
  if (!left) {
    self = tiny_matrix_transposed (b, self);
    right = tiny_matrix_transposed (b, right);
    upper = !upper;
  }
  if (!tiny_matrix_take_both (b, self, right, both, &is_vector))
    return NULL;
  TinyNode *a = tiny_matrix_take (b, both[0], TRUE), *y = tiny_matrix_take (b, both[1], FALSE);
  if (a == NULL || y == NULL)
    return NULL;
  if (tiny_shape_get_n_elements (y->shape) > 0)
    y = solve_triangle (b, a, y, upper, unitriangular);
  y = give_solution (b, y, both[1], is_vector);
  return left ? y : tiny_matrix_transposed (b, y);
}
