/* SPDX-License-Identifier: MIT
 *
 * factor-gradients.c: gradients of factors of matrices, by formulas on the factors (Giles 2008; Walter and Lehmann
 * 2010; Seeger et al. 2017).
 *
 * X' is X transposed, gX the gradient of a result X, NULL where it is 0. Every formula is linear in those and is made
 * of operations that have gradients. Where two values are equal the vectors of both are any, and a quotient by
 * their difference counts as 0: what is a function of the matrix does not depend on it. */
#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-factor.h"
#include "tensor/tiny-lu.h"
#include "tensor/tiny-matrix.h"

enum { MAX_NODES = 3 };

typedef struct {
  TinyBuild *b;
  guint flags;
  TinyNode *g[MAX_NODES], *y[MAX_NODES], *x[MAX_NODES]; /* of outputs; outputs; inputs */
} Rule;

/* ---- words ---- */
static TinyNode *
add (Rule *self, TinyNode *x, TinyNode *y)
{
  return x == NULL ? y : y == NULL ? x : tiny_build_add (self->b, x, y);
}

static TinyNode *
sub (Rule *self, TinyNode *x, TinyNode *y)
{
  return y == NULL ? x : x == NULL ? op_neg (self->b, y) : tiny_build_sub (self->b, x, y);
}

static TinyNode *
mul (Rule *self, TinyNode *x, TinyNode *y)
{
  return x == NULL || y == NULL ? NULL : tiny_build_mul (self->b, x, y);
}

static TinyNode *
turn (Rule *self, TinyNode *x)
{
  return tiny_matrix_transposed (self->b, x);
}

static TinyNode *
product (Rule *self, TinyNode *x, TinyNode *y)
{
  return x == NULL || y == NULL ? NULL
                                : tiny_build_store (self->b, tiny_build_matmul (self->b, x, y));
}

/* X of @a X = @y, @a triangular; and of X @a = @y. */
static TinyNode *
left_solve (Rule *self, TinyNode *a, TinyNode *y, gboolean upper, gboolean unit)
{
  return y == NULL ? NULL : op_solve_triangular (self->b, a, y, upper, TRUE, unit);
}

static TinyNode *
right_solve (Rule *self, TinyNode *a, TinyNode *y, gboolean upper, gboolean unit)
{
  return y == NULL ? NULL : op_solve_triangular (self->b, a, y, upper, FALSE, unit);
}

static TinyNode *
upper_of (Rule *self, TinyNode *x)
{
  return x == NULL ? NULL : op_triu (self->b, x, 0);
}

/* Below the diagonal. */
static TinyNode *
lower_of (Rule *self, TinyNode *x)
{
  return x == NULL ? NULL : op_tril (self->b, x, -1);
}

static TinyNode *
part (Rule *self, TinyNode *x, guint axis, gint64 from, gint64 to)
{
  return x == NULL ? NULL : tiny_matrix_part (self->b, x, axis, from, to);
}

/* 1 / @x, 0 where @x is 0. */
static TinyNode *
inverse (Rule *self, TinyNode *x)
{
  TinyBuild *b = self->b;
  TinyNode *one = tiny_build_like (b, x, 1), *zero = tiny_build_like (b, x, 0);
  TinyNode *is_zero = tiny_build_binary (b, TINY_OP_CMPEQ, x, zero);
  x = tiny_build_div (b, one, tiny_build_where (b, is_zero, one, x));
  return tiny_build_where (b, is_zero, zero, x);
}

/* The matrices (B, N, N) with @values (B, N) on their diagonals. */
static TinyNode *
diagonal_of (Rule *self, TinyNode *values)
{
  return values == NULL ? NULL
                        : mul (self, tiny_build_unsqueeze (self->b, values, 1),
                               tiny_matrix_identity (self->b, values, values->shape->v[1]));
}

/* ---- the rules: each sets out[k] for input k ---- */
typedef void (*FindGradients) (Rule *self, TinyNode **out);

/* A = L L': S = L'^-1 F (L' gL) L^-1, F half of the diagonal and all below; gA is S, whose symmetric
 * part A's mirror image takes. */
static void
of_cholesky (Rule *self, TinyNode **out)
{
  TinyNode *l = self->y[0], *half = product (self, turn (self, l), self->g[0]);
  half = sub (self, op_tril (self->b, half, 0),
              tiny_build_mul_number (
                  self->b,
                  mul (self, half, tiny_matrix_identity (self->b, l, l->shape->v[TINY_ROW])),
                  0.5));
  half = left_solve (self, turn (self, l), half, TRUE, FALSE);
  out[0] = right_solve (self, l, half, FALSE, FALSE);
}

/* A = P L U, L1 and U1 the square parts of L (M, K) and U (K, N), L2 and U2 the rest:
 * gA1 = P L1'^-1 (below (L1' gL1 - gU2 U2') + above (gU1 U1' - L2' gL2)) U1'^-1, and beside it P L1'^-1 gU2, below it
 * P gL2 U1'^-1. */
static void
of_lu (Rule *self, TinyNode **out)
{
  TinyBuild *b = self->b;
  TinyNode *packed = self->y[0], *g = self->g[0];
  gint64 m = packed->shape->v[TINY_ROW], n = packed->shape->v[TINY_COLUMN], k = MIN (m, n);
  TinyNode *square = part (self, part (self, packed, TINY_ROW, 0, k), TINY_COLUMN, 0, k);
  TinyNode *of_square = part (self, part (self, g, TINY_ROW, 0, k), TINY_COLUMN, 0, k);
  TinyNode *l = add (self, lower_of (self, square), tiny_matrix_identity (b, square, k));
  TinyNode *u = upper_of (self, square);
  TinyNode *below = product (self, turn (self, l), lower_of (self, of_square));
  TinyNode *above = product (self, upper_of (self, of_square), turn (self, u));
  TinyNode *more = NULL;
  if (n > k) {
    more = part (self, g, TINY_COLUMN, k, n);
    below = sub (self, below,
                 product (self, more, turn (self, part (self, packed, TINY_COLUMN, k, n))));
  } else if (m > k) {
    more = part (self, g, TINY_ROW, k, m);
    above = sub (self, above,
                 product (self, turn (self, part (self, packed, TINY_ROW, k, m)), more));
  }
  TinyNode *found = add (self, lower_of (self, below), upper_of (self, above));
  found = right_solve (self, turn (self, u), found, FALSE, FALSE);
  if (m > k)
    found = tiny_build_cat (
        b,
        (TinyNode *[]){ left_solve (self, turn (self, l), found, TRUE, TRUE),
                        right_solve (self, turn (self, u), more, FALSE, FALSE) },
        2, TINY_ROW);
  else if (n > k)
    found = left_solve (self, turn (self, l),
                        tiny_build_cat (b, (TinyNode *[]){ found, more }, 2, TINY_COLUMN), TRUE,
                        TRUE);
  else
    found = left_solve (self, turn (self, l), found, TRUE, TRUE);
  const TinyLu lu = { packed, NULL, self->x[1] };
  out[0] = product (self, tiny_lu_permutation (b, &lu), found);
}

/* T X = B: gB = T'^-1 gX, gT = -gB X' where T has elements. */
static void
of_triangular (Rule *self, TinyNode **out)
{
  gboolean upper = (self->flags & TINY_OPERATION_UPPER) != 0;
  gboolean unit = (self->flags & TINY_OPERATION_UNIT) != 0;
  out[1] = left_solve (self, turn (self, self->x[0]), self->g[0], !upper, unit);
  TinyNode *found = op_neg (self->b, product (self, out[1], turn (self, self->y[0])));
  out[0] = upper ? op_triu (self->b, found, unit) : op_tril (self->b, found, unit ? -1 : 0);
}

/* Square or tall A = Q R: M = R gR' - gQ' Q; gA = (gQ + Q (M's lower triangle and its mirror image)) R'^-1. */
static TinyNode *
of_tall_qr (Rule *self, TinyNode *q, TinyNode *r, TinyNode *gq, TinyNode *gr)
{
  TinyNode *m
      = sub (self, product (self, r, turn (self, gr)), product (self, turn (self, gq), q));
  if (m == NULL)
    return NULL;
  TinyNode *mirrored = add (self, op_tril (self->b, m, 0), turn (self, lower_of (self, m)));
  TinyNode *found = add (self, gq, product (self, q, mirrored));
  return right_solve (self, turn (self, r), found, FALSE, FALSE);
}

/* A wide A is (X Y) = Q (U V): X as above with gQ + Y gV' for gQ, gY = Q gV. */
static void
of_qr (Rule *self, TinyNode **out)
{
  TinyNode *q = self->y[0], *r = self->y[1], *gq = self->g[0], *gr = self->g[1];
  gint64 k = r->shape->v[TINY_ROW], n = r->shape->v[TINY_COLUMN];
  if (n <= k) {
    out[0] = of_tall_qr (self, q, r, gq, gr);
    return;
  }
  TinyNode *gv = part (self, gr, TINY_COLUMN, k, n);
  gq = add (self, gq,
            product (self, part (self, self->x[0], TINY_COLUMN, k, n), turn (self, gv)));
  TinyNode *gx = of_tall_qr (self, q, part (self, r, TINY_COLUMN, 0, k), gq,
                             part (self, gr, TINY_COLUMN, 0, k));
  TinyNode *gy = product (self, q, gv);
  if (gy == NULL && gx != NULL)
    gy = tiny_matrix_zeros (self->b, gx, gx->shape->v[TINY_ROW], n - k);
  if (gx != NULL)
    out[0] = tiny_build_cat (self->b, (TinyNode *[]){ gx, gy }, 2, TINY_COLUMN);
}

/* X - X' of X = U' gU. */
static TinyNode *
skew_of (Rule *self, TinyNode *u, TinyNode *gu)
{
  TinyNode *x = product (self, turn (self, u), gu);
  return x == NULL ? NULL : sub (self, x, turn (self, x));
}

/* The part of @gu that is at right angles to @u, over the values. */
static TinyNode *
outside_of (Rule *self, TinyNode *u, TinyNode *gu, TinyNode *over)
{
  if (gu == NULL || u->shape->v[TINY_ROW] == u->shape->v[TINY_COLUMN])
    return NULL;
  TinyNode *rest = sub (self, gu, product (self, u, product (self, turn (self, u), gu)));
  return mul (self, rest, over);
}

/* A = U S V', E[i,j] = S[j]² - S[i]²: gA = U ((U' gU - gU' U) / E S + S (V' gV - gV' V) / E + gS) V'
 * + (1 - U U') gU S^-1 V' + U S^-1 gV' (1 - V V'). */
static void
of_svd (Rule *self, TinyNode **out)
{
  TinyBuild *b = self->b;
  gint64 k = self->y[1]->shape->v[1];
  TinyNode *u = part (self, self->y[0], TINY_COLUMN, 0, k);
  TinyNode *gu = part (self, self->g[0], TINY_COLUMN, 0, k);
  TinyNode *vt = part (self, self->y[2], TINY_ROW, 0, k), *v = turn (self, vt);
  TinyNode *gv = turn (self, part (self, self->g[2], TINY_ROW, 0, k));
  TinyNode *row = tiny_build_unsqueeze (b, self->y[1], 1),
           *column = tiny_build_unsqueeze (b, self->y[1], 2);
  TinyNode *e = inverse (
      self, mul (self, tiny_build_sub (b, row, column), tiny_build_add (b, row, column)));
  TinyNode *inside = mul (self, mul (self, skew_of (self, u, gu), e), row);
  inside = add (self, inside, mul (self, mul (self, skew_of (self, v, gv), e), column));
  inside = add (self, inside, diagonal_of (self, self->g[1]));
  TinyNode *over = inverse (self, row);
  TinyNode *left = add (self, product (self, u, inside), outside_of (self, u, gu, over));
  TinyNode *right = outside_of (self, v, gv, over);
  out[0] = add (self, product (self, left, vt), product (self, u, turn (self, right)));
}

/* A V = V S, E[i,j] = S[j] - S[i]: gA = V (gS + V' gV / E) V'. */
static void
of_eigh (Rule *self, TinyNode **out)
{
  TinyBuild *b = self->b;
  TinyNode *v = self->y[1];
  TinyNode *e = tiny_build_sub (b, tiny_build_unsqueeze (b, self->y[0], 1),
                                tiny_build_unsqueeze (b, self->y[0], 2));
  TinyNode *inside = mul (self, product (self, turn (self, v), self->g[1]), inverse (self, e));
  inside = add (self, inside, diagonal_of (self, self->g[0]));
  out[0] = product (self, product (self, v, inside), turn (self, v));
}

/* A X = B: gB = A'^-1 gX, gA = -gB X'. */
static void
of_solve (Rule *self, TinyNode **out)
{
  out[1] = op_solve (self->b, turn (self, self->x[0]), self->g[0]);
  out[0] = op_neg (self->b, product (self, out[1], turn (self, self->y[0])));
}

/* X = A^-1: gA = -X' gX X'. */
static void
of_inv (Rule *self, TinyNode **out)
{
  TinyNode *x = turn (self, self->y[0]);
  out[0] = op_neg (self->b, product (self, product (self, x, self->g[0]), x));
}

/* S is A's triangle and its mirror image: gA = (gS + gS') / 2. */
static void
of_mirror (Rule *self, TinyNode **out)
{
  TinyNode *g = self->g[0];
  out[0] = tiny_build_mul_number (self->b, add (self, g, turn (self, g)), 0.5);
}

/* ---- the frame ---- */

/* With one axis before those of a matrix, or with @is_vector of a row of numbers. */
static TinyNode *
with_one_batch (TinyBuild *b, TinyNode *x, gboolean is_vector)
{
  guint n = is_vector ? 1 : 2;
  gint64 dims[3] = { 1 };
  if (x == NULL)
    return NULL;
  for (guint i = 0; i < x->shape->n - n; i++)
    dims[0] *= x->shape->v[i];
  for (guint i = 0; i < n; i++)
    dims[1 + i] = x->shape->v[x->shape->n - n + i];
  return tiny_build_reshape (b, x, dims, 1 + n);
}

static const struct {
  FindGradients find;
  guint values, order; /* 1 + number of the output, of the input, that is a vector; 0: none */
} rules[] = {
  { of_cholesky }, { of_lu, 0, 2 }, { of_triangular }, { of_qr }, { of_svd, 2 }, { of_eigh, 1 },
};

gboolean
tiny_factor_find_gradients (TinyGraph *graph,
                            const char *device,
                            gint64 rule,
                            const TinyFactorCall *call,
                            TinyNode **out,
                            GError **error)
{
  TinyBuild b = { .name = "gradient", .graph = graph, .device = device };
  guint row = (guint) (rule - TINY_RULE_FACTOR) / TINY_RULE_FACTOR_FLAGS;
  guint values = rule < TINY_RULE_SOLVE ? rules[row].values : 0;
  guint order = rule < TINY_RULE_SOLVE ? rules[row].order : 0;
  gboolean is_zero = TRUE;
  Rule self = { .b = &b, .flags = (guint) (rule - TINY_RULE_FACTOR) % TINY_RULE_FACTOR_FLAGS };
  for (guint i = 0; i < call->n_outputs; i++) {
    self.g[i] = with_one_batch (&b, call->gradients[i], i + 1 == values);
    self.y[i] = with_one_batch (&b, call->outputs[i], i + 1 == values);
    is_zero = is_zero && self.g[i] == NULL;
  }
  for (guint i = 0; i < call->n_inputs; i++) {
    self.x[i] = with_one_batch (&b, call->inputs[i], i + 1 == order);
    out[i] = NULL;
  }
  if (is_zero)
    return TRUE;
  FindGradients find = rule == TINY_RULE_SOLVE    ? of_solve
                       : rule == TINY_RULE_INV    ? of_inv
                       : rule == TINY_RULE_MIRROR ? of_mirror
                                                  : rules[row].find;
  find (&self, out);
  for (guint i = 0; i < call->n_inputs; i++)
    if (out[i] != NULL)
      out[i] = tiny_build_reshape (&b, out[i], call->inputs[i]->shape->v,
                                   call->inputs[i]->shape->n);
  if (b.error != NULL)
    g_propagate_error (error, b.error);
  return b.error == NULL;
}
