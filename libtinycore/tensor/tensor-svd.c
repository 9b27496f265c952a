/* SPDX-License-Identifier: MIT
 *
 * tensor-svd.c: singular values, by rotations of pairs of columns until all are at right angles (one-sided
 * Jacobi: Hestenes 1958; pairs of a round at once in the order of a round-robin tournament: Brent and Luk 1985).
 *
 * The number of rounds is fixed, and each is the same two kernels: the pairs are always the first column and the
 * last, the second and the last but one, and so on; then all but the first move on by one. Under the columns of A
 * are those of V, which are rotated as well. Every step has a gradient, and so has the whole. */
#include <math.h>

#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-factor.h"
#include "tensor/tiny-matrix.h"
#include "tensor/tiny-order.h"

/* Rotations that are left shrink from sweep to sweep by their square, after the first few. */
enum { N_SWEEPS = 8, N_SWEEPS_F64 = 11, LARGEST_N_ROUNDS = 4096 };

static gint64
count_rounds (const TinyNode *a, gint64 n)
{
  gint64 n_sweeps = a->dtype == TINY_DTYPE_F64 ? N_SWEEPS_F64 : N_SWEEPS;
  return n > 1 ? n_sweeps * (n + n % 2 - 1) : 0;
}

static TinyNode *
reversed_rows (TinyBuild *b, TinyNode *x)
{
  return x == NULL ? NULL : tiny_node_flip (b->graph, x, (gint64[]){ TINY_ROW }, 1);
}

/* (B, H, 1): of the first @m columns. */
static TinyNode *
dots (TinyBuild *b, TinyNode *x, TinyNode *y, gint64 m)
{
  TinyNode *product = tiny_build_mul (b, tiny_matrix_part (b, x, TINY_COLUMN, 0, m),
                                      tiny_matrix_part (b, y, TINY_COLUMN, 0, m));
  return tiny_build_sum (b, product, (gint64[]){ TINY_COLUMN }, 1);
}

/* The tangent of the smaller of the angles by which columns p and q become orthogonal: with d = |q|² - |p|² and
 * g = 2 p·q it is ±g / (|d| + sqrt (d² + g²)), the sign being d's. No quotient by g, which may be 0 and has a
 * derivative then as well. Where d and g are rounding errors the angle is near 0: it could be any, and columns of
 * equal length would be mixed in every sweep, so that they never become orthogonal to the others. */
static TinyNode *
tangents (TinyBuild *b, TinyNode *left, TinyNode *right, gint64 m)
{
  const double error = left->dtype == TINY_DTYPE_F64 ? 0x1p-47 : 0x1p-19;
  TinyNode *of_left = dots (b, left, left, m);
  TinyNode *d = tiny_build_sub (b, dots (b, right, right, m), of_left);
  TinyNode *g = tiny_build_mul_number (b, dots (b, left, right, m), 2);
  TinyNode *square = tiny_build_add (b, tiny_build_mul (b, d, d), tiny_build_mul (b, g, g));
  TinyNode *bound = tiny_build_mul_number (b, of_left, error);
  TinyNode *zero = tiny_build_like (b, d, 0), *one = tiny_build_like (b, d, 1);
  TinyNode *is_zero = tiny_build_binary (b, TINY_OP_CMPEQ, square, zero);
  TinyNode *is_error = tiny_build_less (b, square, tiny_build_mul (b, bound, bound));
  is_error = tiny_build_binary (b, TINY_OP_OR, is_error, is_zero);
  TinyNode *root = op_sqrt (b, tiny_build_where (b, is_error, one, square));
  TinyNode *is_less = tiny_build_less (b, d, zero);
  TinyNode *above = tiny_build_where (b, is_less, op_neg (b, g), g);
  TinyNode *size = tiny_build_where (b, is_less, op_neg (b, d), d);
  return tiny_build_div (b, above, tiny_build_add (b, size, root));
}

/* One round: pairs are rotated, and columns, which are rows of @x (B, N, M + N) and so lie in one piece, move to
 * their next partners. N is even. */
static TinyNode *
turn (TinyBuild *b, TinyNode *x, gint64 m)
{
  gint64 n = x->shape->v[TINY_ROW], half = n / 2;
  x = tiny_build_store (b, x);
  TinyNode *left = tiny_matrix_part (b, x, TINY_ROW, 0, half);
  TinyNode *right = reversed_rows (b, tiny_matrix_part (b, x, TINY_ROW, half, n));
  TinyNode *t = tiny_build_store (b, tangents (b, left, right, m));
  TinyNode *cosine = op_rsqrt (b, tiny_build_add_number (b, tiny_build_mul (b, t, t), 1));
  TinyNode *p
      = tiny_build_mul (b, tiny_build_sub (b, left, tiny_build_mul (b, right, t)), cosine);
  TinyNode *q
      = tiny_build_mul (b, tiny_build_add (b, right, tiny_build_mul (b, left, t)), cosine);
  q = reversed_rows (b, q);
  if (half == 1)
    return tiny_build_cat (b, (TinyNode *[]){ p, q }, 2, TINY_ROW);
  TinyNode *parts[] = { tiny_matrix_part (b, p, TINY_ROW, 0, 1),
                        tiny_matrix_part (b, q, TINY_ROW, half - 1, half),
                        tiny_matrix_part (b, p, TINY_ROW, 1, half),
                        tiny_matrix_part (b, q, TINY_ROW, 0, half - 1) };
  return tiny_build_cat (b, parts, 4, TINY_ROW);
}

/* @a (B, M, N), which is tall, times V, whose columns are orthogonal, over V (N, N). A column of zeros makes the
 * number of columns even; after whole sweeps all columns are where they were. */
static TinyNode *
orthogonalise (TinyBuild *b, TinyNode *a)
{
  gint64 m = a->shape->v[TINY_ROW], n = a->shape->v[TINY_COLUMN], even = n + n % 2;
  gint64 n_rounds = count_rounds (a, n);
  TinyNode *wide = tiny_build_pad (b, a, (gint64[]){ 0, 0, 0, 0, 0, even - n }, 0);
  TinyNode *v = tiny_matrix_part (b, tiny_matrix_identity (b, a, even), TINY_ROW, 0, n);
  TinyNode *x = tiny_build_cat (b, (TinyNode *[]){ wide, v }, 2, TINY_ROW);
  x = tiny_matrix_transposed (b, x);
  for (gint64 i = 0; i < n_rounds && b->error == NULL; i++)
    x = turn (b, x, m);
  x = tiny_matrix_transposed (b, tiny_build_store (b, x));
  return tiny_matrix_part (b, x, TINY_COLUMN, 0, n);
}

/* @unit (B, M, N) with orthonormal columns, of which the last may be zeros, completed: to (B, M, M), or where not
 * @full only where they are zeros. What is added is no function of A, and has no gradient. */
static TinyNode *
complete (TinyBuild *b, TinyNode *unit, TinyNode *is_there, gboolean full)
{
  TinyNode *factors[2] = { NULL };
  gint64 m = unit->shape->v[TINY_ROW], n = unit->shape->v[TINY_COLUMN];
  op_qr (b, tiny_build_detach (b, tiny_build_store (b, unit)), full ? "complete" : "reduced",
         factors);
  if (factors[0] == NULL)
    return NULL;
  TinyNode *q = tiny_matrix_part (b, factors[0], TINY_COLUMN, 0, n);
  unit = tiny_build_where (b, is_there, unit, q);
  if (!full || m == n)
    return unit;
  TinyNode *rest = tiny_matrix_part (b, factors[0], TINY_COLUMN, n, m);
  return tiny_build_cat (b, (TinyNode *[]){ unit, rest }, 2, TINY_COLUMN);
}

/* U (B, M, M or N), S (B, 1, N) and V (B, N, N) of @a (B, M, N) with M >= N > 0. */
static void
decompose (TinyBuild *b, TinyNode *a, gboolean full, TinyNode **out)
{
  gint64 batch = a->shape->v[TINY_BATCH], m = a->shape->v[TINY_ROW],
         n = a->shape->v[TINY_COLUMN];
  TinyNode *zero = tiny_build_like (b, a, 0), *one = tiny_build_like (b, a, 1);
  /* Squares of squares neither overflow nor vanish in numbers up to 1. */
  TinyNode *scale = tiny_build_detach (
      b, op_max (b, op_abs (b, a), (gint64[]){ TINY_ROW, TINY_COLUMN }, 2));
  scale = tiny_build_where (b, tiny_build_binary (b, TINY_OP_CMPEQ, scale, zero), one, scale);
  TinyNode *x = orthogonalise (b, tiny_build_div (b, a, tiny_build_store (b, scale)));
  TinyNode *columns = tiny_matrix_part (b, x, TINY_ROW, 0, m);
  TinyNode *squares
      = tiny_build_sum (b, tiny_build_mul (b, columns, columns), (gint64[]){ TINY_ROW }, 1);
  TinyNode *is_zero = tiny_build_binary (b, TINY_OP_CMPEQ, squares, zero);
  TinyNode *sizes = tiny_build_where (b, is_zero, zero,
                                      op_sqrt (b, tiny_build_where (b, is_zero, one, squares)));
  TinyNode *order = tiny_build_order (b, tiny_build_store (b, sizes), TINY_COLUMN, n, TRUE);
  if (order == NULL)
    return;
  sizes = op_gather (b, sizes, TINY_COLUMN, order);
  order = tiny_build_expand (b, order, (gint64[]){ batch, m + n, n }, 3);
  x = tiny_build_store (b, op_gather (b, x, TINY_COLUMN, order));
  sizes = tiny_build_store (b, sizes);
  /* A column that is rounding errors has no direction of its own. */
  double least = (double) n * (a->dtype == TINY_DTYPE_F64 ? 0x1p-52 : 0x1p-23);
  TinyNode *largest = tiny_matrix_first (b, sizes, TINY_COLUMN);
  TinyNode *is_there = tiny_build_less (b, tiny_build_mul_number (b, largest, least), sizes);
  TinyNode *divisor = tiny_build_where (b, is_there, sizes, one);
  TinyNode *unit = tiny_build_div (b, tiny_matrix_part (b, x, TINY_ROW, 0, m), divisor);
  unit = tiny_build_where (b, is_there, unit, zero);
  out[0] = complete (b, unit, is_there, full);
  out[1] = tiny_build_mul (b, sizes, scale);
  out[2] = tiny_matrix_part (b, x, TINY_ROW, m, m + n);
}

/* Without elements. */
static void
decompose_nothing (TinyBuild *b, TinyNode *a, gboolean full, TinyNode **out)
{
  gint64 m = a->shape->v[TINY_ROW], n = a->shape->v[TINY_COLUMN], k = MIN (m, n);
  out[0] = full ? tiny_matrix_identity (b, a, m) : tiny_matrix_zeros (b, a, m, k);
  out[1] = tiny_matrix_zeros (b, a, 1, k);
  out[2] = full ? tiny_matrix_identity (b, a, n) : tiny_matrix_zeros (b, a, n, k);
}

/* By a library: U, S (B, K) and Vᵀ. */
static gboolean
take_svd (TinyBuild *b, TinyNode *a, gboolean full, TinyNode **out)
{
  gint64 m = a->shape->v[TINY_ROW], n = a->shape->v[TINY_COLUMN], k = MIN (m, n);
  return tiny_factor_compute (b, TINY_OPERATION_SVD, 0, &a,
                              &(TinyFactorSizes){ full ? m : k, full ? n : k }, out);
}

void
op_svd (TinyBuild *b, TinyNode *self, gboolean full_matrices, TinyNode **out)
{
  TinyNode *a = tiny_matrix_take (b, self, FALSE), *parts[3] = { NULL };
  if (a == NULL)
    return;
  gint64 m = a->shape->v[TINY_ROW], n = a->shape->v[TINY_COLUMN];
  gboolean is_tall = m >= n;
  if (take_svd (b, a, full_matrices, parts)) {
    out[0] = tiny_matrix_give (b, parts[0], self, 0);
    out[1] = tiny_matrix_give (b, tiny_build_unsqueeze (b, parts[1], 2), self, 1);
    out[2] = tiny_matrix_give (b, parts[2], self, 0);
    return;
  }
  if (count_rounds (a, MIN (m, n)) > LARGEST_N_ROUNDS) {
    tiny_build_fail (b,
                     "%" G_GINT64_FORMAT " columns take %" G_GINT64_FORMAT
                     " rounds of rotations, at most %d are possible",
                     MIN (m, n), count_rounds (a, MIN (m, n)), LARGEST_N_ROUNDS);
    return;
  }
  if (tiny_shape_get_n_elements (a->shape) == 0)
    decompose_nothing (b, a, full_matrices, parts);
  else
    decompose (b, is_tall ? a : tiny_matrix_transposed (b, a), full_matrices, parts);
  if (!is_tall && tiny_shape_get_n_elements (a->shape) > 0) {
    TinyNode *u = parts[0];
    parts[0] = parts[2];
    parts[2] = u;
  }
  out[0] = tiny_matrix_give (b, parts[0], self, 0);
  out[1] = tiny_matrix_give (b, tiny_matrix_transposed (b, parts[1]), self, 1);
  out[2] = tiny_matrix_give (b, tiny_matrix_transposed (b, parts[2]), self, 0);
}

/* ---- symmetric matrices ---- */

/* (B, 1, N): v·A v / v·v of the columns v of @vectors (B, N, N). An error of v changes it by its square alone. */
static TinyNode *
quotients (TinyBuild *b, TinyNode *a, TinyNode *vectors)
{
  const gint64 axis[] = { TINY_ROW };
  TinyNode *products = tiny_build_mul (b, vectors, tiny_build_matmul (b, a, vectors));
  TinyNode *squares = tiny_build_mul (b, vectors, vectors);
  return tiny_build_div (b, tiny_build_sum (b, products, axis, 1),
                         tiny_build_sum (b, squares, axis, 1));
}

/* The vectors are the singular vectors of A + |A|, whose eigenvalues are at least 0. Their singular values less |A|
 * would have the rounding errors of all rotations, and of numbers as large as that sum. */
static void
walk_eigh (TinyBuild *b, TinyNode *a, TinyNode **out)
{
  TinyNode *parts[3] = { NULL };
  gint64 both[] = { TINY_ROW, TINY_COLUMN };
  TinyNode *size = op_norm (b, tiny_build_detach (b, a), 2, both, 2);
  size = tiny_build_store (b, size);
  TinyNode *eye = tiny_matrix_identity (b, a, a->shape->v[TINY_ROW]);
  op_svd (b, tiny_build_add (b, a, tiny_build_mul (b, size, eye)), FALSE, parts);
  if (parts[0] == NULL)
    return;
  TinyNode *vectors = tiny_build_store (b, parts[0]);
  TinyNode *values = tiny_build_store (b, quotients (b, a, vectors));
  TinyNode *order = tiny_build_order (b, values, TINY_COLUMN, a->shape->v[TINY_COLUMN], FALSE);
  if (order == NULL)
    return;
  out[0] = tiny_matrix_transposed (b, op_gather (b, values, TINY_COLUMN, order));
  order = tiny_build_expand (b, order, a->shape->v, 3);
  out[1] = op_gather (b, vectors, TINY_COLUMN, order);
}

void
op_eigh (TinyBuild *b, TinyNode *self, gboolean upper, TinyNode **out)
{
  TinyNode *a = tiny_matrix_take (b, self, TRUE), *parts[2] = { NULL };
  if (a == NULL)
    return;
  if (tiny_shape_get_n_elements (a->shape) == 0) {
    out[0] = tiny_matrix_give (b, tiny_matrix_zeros (b, a, a->shape->v[TINY_ROW], 1), self, 1);
    out[1] = self;
    return;
  }
  a = tiny_factor_mirror (b, a, upper);
  if (tiny_factor_compute (b, TINY_OPERATION_EIGH, 0, &a, NULL, parts))
    parts[0] = tiny_build_unsqueeze (b, parts[0], 2);
  else if (b->error == NULL)
    walk_eigh (b, a, parts);
  out[0] = tiny_matrix_give (b, parts[0], self, 1);
  out[1] = tiny_matrix_give (b, parts[1], self, 0);
}
