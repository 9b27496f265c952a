/* SPDX-License-Identifier: MIT
 *
 * tensor-qr.c: Householder's factors, what they solve, and powers of matrices.
 *
 * As in tensor-linalg.c the row and column at hand are the first of what a step stores: finished rows
 * go to a matrix of their own, and zeros come in. Inside, all matrices are (B, M, N). */
#include <string.h>

#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-factor.h"
#include "tensor/tiny-matrix.h"

enum { TALL = 2 };

/* x - tau v (vᵀ x) with v (B, M, 1) and tau (B, 1, 1) */
typedef struct {
  TinyNode *v, *tau;
} Reflection;

static TinyNode *
apply (TinyBuild *b, const Reflection *self, TinyNode *x)
{
  TinyNode *dot = tiny_build_sum (b, tiny_build_mul (b, self->v, x), (gint64[]){ TINY_ROW }, 1);
  dot = tiny_build_store (b, tiny_build_mul (b, dot, self->tau));
  return tiny_build_sub (b, x, tiny_build_mul (b, self->v, dot));
}

/* The reflection that leaves zeros below the first of column 0: v is the column less
 * beta at its first, whose sign is the other one of what is there. A column of zeros stays as it is. */
static Reflection
find_reflection (TinyBuild *b, TinyNode *all)
{
  gint64 n = all->shape->v[TINY_ROW], rows[] = { TINY_ROW };
  TinyNode *column = tiny_matrix_first (b, all, TINY_COLUMN);
  TinyNode *alpha = tiny_matrix_first (b, column, TINY_ROW);
  TinyNode *zero = tiny_build_like (b, all, 0), *one = tiny_build_like (b, all, 1);
  TinyNode *is_first
      = tiny_build_binary (b, TINY_OP_CMPEQ, tiny_build_iota (b, TINY_DTYPE_I32, n),
                           tiny_build_number (b, TINY_DTYPE_I32, 0));
  is_first = tiny_build_reshape (b, is_first, (gint64[]){ 1, n, 1 }, 3);
  TinyNode *below = tiny_build_where (b, is_first, zero, column);
  TinyNode *tail = tiny_build_sum (b, tiny_build_mul (b, below, below), rows, 1);
  TinyNode *is_done = tiny_build_binary (b, TINY_OP_CMPEQ, tail, zero);
  TinyNode *square = tiny_build_add (b, tail, tiny_build_mul (b, alpha, alpha));
  TinyNode *size = op_sqrt (b, tiny_build_where (b, is_done, one, square));
  TinyNode *is_negative = tiny_build_binary (b, TINY_OP_CMPLT, alpha, zero);
  TinyNode *beta = tiny_build_where (b, is_negative, size, op_neg (b, size));
  TinyNode *v = tiny_build_sub (b, column, tiny_build_where (b, is_first, beta, zero));
  TinyNode *larger = tiny_build_where (b, is_negative, tiny_build_sub (b, size, alpha),
                                       tiny_build_add (b, size, alpha));
  TinyNode *length = tiny_build_add (b, tail, tiny_build_mul (b, larger, larger));
  TinyNode *tau = tiny_build_div (b, tiny_build_like (b, all, 2), length);
  return (Reflection){ tiny_build_store (b, v), tiny_build_where (b, is_done, zero, tau) };
}

/* @a (B, M, N) as R (B, K, N) with K the smaller of M and N, or M when @complete, and QᵀY (B, K, L) of @y (B, M, L).
 * The K reflections go to @kept, unless that is NULL. */
static gboolean
reduce (TinyBuild *b,
        TinyNode *a,
        TinyNode *y,
        gboolean complete,
        Reflection *kept,
        TinyNode **qy,
        TinyNode **r)
{
  gint64 m = a->shape->v[TINY_ROW], n = a->shape->v[TINY_COLUMN], k = MIN (m, n);
  if (y == NULL || !tiny_matrix_check_steps (b, k))
    return FALSE;
  gint64 l = y->shape->v[TINY_COLUMN];
  TinyNode *all = tiny_build_cat (b, (TinyNode *[]){ a, y }, 2, TINY_COLUMN);
  TinyNode *done = tiny_matrix_zeros (b, a, k, n + l);
  for (gint64 i = 0; i < k && b->error == NULL; i++) {
    all = tiny_build_store (b, all);
    Reflection reflection = all == NULL ? (Reflection){ NULL, NULL } : find_reflection (b, all);
    if (kept != NULL)
      kept[i] = reflection;
    all = apply (b, &reflection, all);
    done = tiny_build_store (
        b, tiny_matrix_move_up (b, done, TINY_ROW, tiny_matrix_first (b, all, TINY_ROW)));
    all = tiny_matrix_move_up (b, tiny_matrix_move_up (b, all, TINY_ROW, NULL), TINY_COLUMN,
                               NULL);
  }
  if (b->error != NULL)
    return FALSE;
  done = tiny_matrix_move_back (b, done);
  *r = tiny_matrix_part (b, done, TINY_COLUMN, 0, n);
  *qy = tiny_matrix_part (b, done, TINY_COLUMN, n, n + l);
  if (complete && m > n) {
    /* Their columns were moved up N times: those of @y are the first. */
    TinyNode *rest = tiny_matrix_part (b, all, TINY_ROW, 0, m - n);
    rest = tiny_matrix_part (b, rest, TINY_COLUMN, 0, l);
    *qy = tiny_build_cat (b, (TinyNode *[]){ *qy, rest }, 2, TINY_ROW);
    TinyNode *nothing = tiny_matrix_zeros (b, a, m - n, n);
    *r = tiny_build_cat (b, (TinyNode *[]){ *r, nothing }, 2, TINY_ROW);
  }
  return *qy != NULL;
}

/* The first columns of the product of @n reflections, the last one first: it has zeros where the others were before
 * it, so that each adds a row and a column. (B, M, N) */
static TinyNode *
first_columns (TinyBuild *b, TinyNode *like, const Reflection *reflections, gint64 n)
{
  gint64 m = like->shape->v[TINY_ROW];
  TinyNode *corner = tiny_matrix_part (b, tiny_matrix_identity (b, like, m), TINY_COLUMN, 0, 1);
  TinyNode *x = tiny_matrix_zeros (b, like, m, n);
  corner = tiny_build_pad (b, corner, (gint64[]){ 0, 0, 0, 0, 0, n - 1 }, 0);
  for (gint64 i = n - 1; i >= 0 && b->error == NULL; i--) {
    x = tiny_matrix_part (b, tiny_matrix_part (b, x, TINY_ROW, 0, m - 1), TINY_COLUMN, 0,
                          n - 1);
    if (n > 1)
      x = tiny_build_pad (b, x, (gint64[]){ 0, 0, 1, 0, 1, 0 }, 0);
    x = n > 1 ? tiny_build_add (b, x, corner) : corner;
    x = apply (b, &reflections[i], tiny_build_store (b, x));
  }
  return x;
}

/* By a library. Columns of Q beyond those of @a have a gradient as kernels alone. */
static gboolean
take_factors (TinyBuild *b, TinyNode *a, gboolean complete, TinyNode **q, TinyNode **r)
{
  gint64 m = a->shape->v[TINY_ROW], n = a->shape->v[TINY_COLUMN];
  TinyNode *both[2];
  if ((complete && m > n)
      || !tiny_factor_compute (b, TINY_OPERATION_QR, 0, &a, &(TinyFactorSizes){ MIN (m, n), 0 },
                               both))
    return FALSE;
  *q = both[0];
  *r = both[1];
  return TRUE;
}

/* … and Q (B, M, K) itself. */
static gboolean
factorise (TinyBuild *b, TinyNode *a, gboolean complete, TinyNode **q, TinyNode **r)
{
  gint64 m = a->shape->v[TINY_ROW], n = a->shape->v[TINY_COLUMN];
  if (take_factors (b, a, complete, q, r))
    return TRUE;
  if (b->error != NULL)
    return FALSE;
  if (!complete && m > TALL * n && tiny_matrix_check_steps (b, n)) {
    /* All of the M columns would be many more than are asked for. */
    g_autofree Reflection *kept = g_new0 (Reflection, (gsize) n);
    TinyNode *nothing, *none = tiny_matrix_zeros (b, a, m, 1);
    if (!reduce (b, a, none, FALSE, kept, &nothing, r))
      return FALSE;
    *q = first_columns (b, a, kept, n);
    return *q != NULL;
  }
  TinyNode *eye = tiny_matrix_identity (b, a, m);
  if (!reduce (b, a, eye, complete, NULL, q, r))
    return FALSE;
  *q = tiny_matrix_transposed (b, *q);
  return *q != NULL;
}

void
op_qr (TinyBuild *b, TinyNode *self, const char *mode, TinyNode **out)
{
  guint complete;
  TinyNode *a = tiny_matrix_take (b, self, FALSE);
  if (a == NULL || !tiny_build_word (b, mode, "reduced|complete", &complete))
    return;
  gint64 m = a->shape->v[TINY_ROW], n = a->shape->v[TINY_COLUMN];
  gint64 k = complete ? m : MIN (m, n);
  if (tiny_shape_get_n_elements (a->shape) == 0) {
    TinyNode *q = k == 0 ? tiny_matrix_zeros (b, a, m, k) : tiny_matrix_identity (b, a, m);
    out[0] = tiny_matrix_give (b, q, self, 0);
    out[1] = tiny_matrix_give (b, tiny_matrix_zeros (b, a, k, n), self, 0);
  } else if (factorise (b, a, complete == 1, &out[0], &out[1])) {
    out[0] = tiny_matrix_give (b, out[0], self, 0);
    out[1] = tiny_matrix_give (b, out[1], self, 0);
  }
}

/* The least squares of tall matrices; of wide ones the shortest solution, by the factors of Aᵀ. */
TinyNode *
op_lstsq (TinyBuild *b, TinyNode *self, TinyNode *right)
{
  TinyNode *both[2], *q, *r;
  gboolean is_vector;
  if (tiny_matrix_take (b, self, FALSE) == NULL || right->shape->n < 2)
    return tiny_build_fail (b, "the right side is (…, M, K)");
  if (!tiny_matrix_take_both (b, self, right, both, &is_vector))
    return NULL;
  TinyNode *a = tiny_matrix_take (b, both[0], FALSE), *y = tiny_matrix_take (b, both[1], FALSE);
  if (a == NULL || y == NULL)
    return NULL;
  gint64 m = a->shape->v[TINY_ROW], n = a->shape->v[TINY_COLUMN];
  if (m == 0 || n == 0 || tiny_shape_get_n_elements (y->shape) == 0)
    return tiny_matrix_give (b, tiny_matrix_zeros (b, y, n, y->shape->v[TINY_COLUMN]), both[1],
                             0);
  TinyNode *x = NULL;
  if (m >= n && take_factors (b, a, FALSE, &q, &r))
    x = op_solve_triangular (b, r, tiny_build_matmul (b, tiny_matrix_transposed (b, q), y),
                             TRUE, TRUE, FALSE);
  else if (b->error == NULL && m >= n && reduce (b, a, y, FALSE, NULL, &q, &r))
    x = op_solve_triangular (b, r, q, TRUE, TRUE, FALSE);
  else if (m < n && factorise (b, tiny_matrix_transposed (b, a), FALSE, &q, &r))
    x = tiny_build_matmul (
        b, q, op_solve_triangular (b, tiny_matrix_transposed (b, r), y, FALSE, TRUE, FALSE));
  if (x == NULL)
    return NULL;
  return tiny_matrix_give (b, x, both[1], 0);
}

/* ---- powers and square roots ---- */
TinyNode *
op_matrix_power (TinyBuild *b, TinyNode *self, gint64 n)
{
  TinyNode *a = tiny_matrix_take (b, self, TRUE), *result = NULL;
  if (a == NULL || n == G_MININT64)
    return a == NULL ? NULL : tiny_build_fail (b, "the power is too far below 0");
  if (n == 0)
    return tiny_matrix_give (b, tiny_matrix_identity (b, a, a->shape->v[TINY_ROW]), self, 0);
  if (n < 0)
    a = op_inv (b, a);
  guint64 left = n < 0 ? (guint64) -n : (guint64) n;
  for (; left > 0; left >>= 1) {
    if (left & 1)
      result = result == NULL ? a : tiny_build_store (b, tiny_build_matmul (b, result, a));
    if (left > 1)
      a = tiny_build_store (b, tiny_build_matmul (b, a, a));
  }
  return tiny_matrix_give (b, result, self, 0);
}

/* X := p0 X + p1 (X Xᵀ) X + p2 (X Xᵀ)² X …, whose singular values go to 1. */
TinyNode *
op_newton_schulz (TinyBuild *b,
                  TinyNode *self,
                  gint64 steps,
                  const double *params,
                  guint n_params,
                  double eps)
{
  static const double usual[] = { 2, -1.5, 0.5 };
  TinyNode *x = tiny_matrix_take (b, self, FALSE);
  if (x == NULL || steps < 0 || steps > 1000)
    return x == NULL ? NULL : tiny_build_fail (b, "the steps are 0 to 1000");
  if (params == NULL || n_params == 0) {
    params = usual;
    n_params = G_N_ELEMENTS (usual);
  }
  gboolean is_tall = x->shape->v[TINY_ROW] > x->shape->v[TINY_COLUMN];
  TinyNode *size = op_norm (b, x, 2, (gint64[]){ TINY_ROW, TINY_COLUMN }, 2);
  x = tiny_build_div (b, x, tiny_build_add (b, size, tiny_build_like (b, size, eps)));
  x = is_tall ? tiny_matrix_transposed (b, x) : x;
  for (gint64 i = 0; i < steps && b->error == NULL; i++) {
    x = tiny_build_store (b, x);
    TinyNode *square
        = tiny_build_store (b, tiny_build_matmul (b, x, tiny_matrix_transposed (b, x)));
    TinyNode *power = x, *sum = NULL;
    for (guint k = 0; k < n_params; k++) {
      TinyNode *part = tiny_build_mul (b, power, tiny_build_like (b, power, params[k]));
      sum = sum == NULL ? part : tiny_build_add (b, sum, part);
      if (k + 1 < n_params)
        power = tiny_build_store (b, tiny_build_matmul (b, square, power));
    }
    x = sum;
  }
  return tiny_matrix_give (b, is_tall ? tiny_matrix_transposed (b, x) : x, self, 0);
}
