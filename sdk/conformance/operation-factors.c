/* SPDX-License-Identifier: MIT
 *
 * operation-factors.c: what claim() accepts of linear algebra is what TinyOperationKind says.
 *
 * Nothing is compared with numbers that another library gave: factors are multiplied, and what comes of it has to be the
 * matrix; triangles, orders and signs are looked at. Each case has a batch of three, of which the second is one that has no
 * factors, or a NaN, and the others are as they would be alone. What a kind does not read is there, and large. */
#include "operation-factors.h"

#include <math.h>
#include <string.h>

#include "ir/tiny-dtype.h"
#include "oracle.h"
#include "schedule/factor.h"
#include "step.h"

enum { BATCH = 3, SPECIAL = 1, MOST_OPERANDS = 4 };

/* Sizes of a case; rows are the largest. */
typedef struct {
  const char *name;
  guint kind, flags;
  gint64 rows, columns, left, right;
} Row;

static const Row rows[] = {
  /* clang-format off */
  { "cholesky/5", TINY_OPERATION_CHOLESKY, 0, 5, 5 },
  { "cholesky/33", TINY_OPERATION_CHOLESKY, 0, 33, 33 },
  { "lu/5", TINY_OPERATION_LU, 0, 5, 5 },
  { "lu/tall", TINY_OPERATION_LU, 0, 19, 7 },
  { "lu/wide", TINY_OPERATION_LU, 0, 7, 19 },
  { "triangular/lower", TINY_OPERATION_TRIANGULAR, 0, 17, 17, 1, 5 },
  { "triangular/upper", TINY_OPERATION_TRIANGULAR, TINY_OPERATION_UPPER, 17, 17, 1, 5 },
  { "triangular/unit", TINY_OPERATION_TRIANGULAR, TINY_OPERATION_UNIT, 17, 17, 1, 5 },
  { "triangular/upper-unit", TINY_OPERATION_TRIANGULAR, TINY_OPERATION_UPPER | TINY_OPERATION_UNIT, 17, 17, 1, 1 },
  { "qr/square", TINY_OPERATION_QR, 0, 9, 9, 9 },
  { "qr/tall", TINY_OPERATION_QR, 0, 19, 7, 7 },
  { "qr/tall-whole", TINY_OPERATION_QR, 0, 19, 7, 19 },
  { "qr/wide", TINY_OPERATION_QR, 0, 7, 19, 7 },
  { "svd/square", TINY_OPERATION_SVD, 0, 9, 9, 9, 9 },
  { "svd/tall", TINY_OPERATION_SVD, 0, 19, 7, 7, 7 },
  { "svd/tall-whole", TINY_OPERATION_SVD, 0, 19, 7, 19, 7 },
  { "svd/wide", TINY_OPERATION_SVD, 0, 7, 19, 7, 7 },
  { "eigh/5", TINY_OPERATION_EIGH, 0, 5, 5 },
  { "eigh/24", TINY_OPERATION_EIGH, 0, 24, 24 },
  /* clang-format on */
};

/* One matrix of an operand, by columns. */
typedef struct {
  gint64 m, n;
  double *v;
} Matrix;

static double *
at (const Matrix *self, gint64 i, gint64 j)
{
  return &self->v[j * self->m + i];
}

typedef struct {
  ConfTrial *trial;
  const Row *row;
  TinyDType dtype;
  TinyOperation operation;
  guint n_outputs;
  gint64 shapes[MOST_OPERANDS][2]; /* rows and columns of an operand's matrix */
  guint8 *data[MOST_OPERANDS];
  Matrix x[MOST_OPERANDS]; /* of the matrix that is looked at */
  guint batch;
  double most; /* how far off a sum may be */
} Factor;

static gsize
count (const Factor *self, guint i)
{
  return (gsize) (self->shapes[i][0] * self->shapes[i][1]);
}

/* ---- what is given ---- */
static double
noise (guint64 i)
{
  guint64 x = (i + 1) * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15);
  x = (x ^ x >> 29) * G_GUINT64_CONSTANT (0x94d049bb133111eb);
  return (double) (x >> 40) / (1 << 23) - 1;
}

/* Element (i, j) of matrix @batch of A. */
static double
given_at (const Factor *self, guint batch, gint64 i, gint64 j)
{
  enum { NOT_READ = 777 };
  const guint64 number = (guint64) (batch * 100003 + i * 1009 + j);
  const gboolean is_special = batch == SPECIAL, is_above = j > i;
  const gint64 n = self->row->rows;
  switch (self->row->kind) {
  case TINY_OPERATION_CHOLESKY: /* diagonally dominant; the special one is not positive */
    return is_above ? NOT_READ
           : i == j ? (is_special && i == n - 1 ? -1 : (double) n)
                    : noise (number);
  case TINY_OPERATION_EIGH:
    return is_special && i == n - 1 && j == 0 ? NAN : is_above ? NOT_READ : noise (number);
  case TINY_OPERATION_TRIANGULAR:
    if (i == j)
      return self->row->flags & TINY_OPERATION_UNIT ? NOT_READ : 2 + noise (number);
    return is_above == ((self->row->flags & TINY_OPERATION_UPPER) != 0) ? noise (number) / 4
                                                                        : NOT_READ;
  case TINY_OPERATION_LU: /* in the special one all elements of the first column are as large */
    return is_special && j == 0 ? (number % 2 ? 1 : -1) : noise (number);
  default:
    return is_special && i == 0 && j == 0 ? NAN : noise (number);
  }
}

static void
encode (const Factor *self, guint operand, gsize k, double value)
{
  if (self->dtype == TINY_DTYPE_F64)
    ((double *) (gpointer) self->data[operand])[k] = value;
  else
    ((float *) (gpointer) self->data[operand])[k] = (float) value;
}

static double
decode (const Factor *self, guint operand, gsize k)
{
  if (self->operation.operands[operand].dtype == TINY_DTYPE_I32)
    return ((const gint32 *) (gpointer) self->data[operand])[k];
  return self->dtype == TINY_DTYPE_F64 ? ((const double *) (gpointer) self->data[operand])[k]
                                       : ((const float *) (gpointer) self->data[operand])[k];
}

static void
fill (Factor *self)
{
  const guint a = self->n_outputs;
  const gint64 m = self->shapes[a][0], n = self->shapes[a][1];
  for (guint b = 0; b < BATCH; b++)
    for (gint64 j = 0; j < n; j++)
      for (gint64 i = 0; i < m; i++)
        encode (self, a, b * count (self, a) + (gsize) (j * m + i), given_at (self, b, i, j));
  for (guint k = a + 1; k < self->operation.n_operands; k++)
    for (gsize e = 0; e < BATCH * count (self, k); e++)
      encode (self, k, e, noise (e + 5000000));
}

/* ---- what has to be ---- */
static gboolean
near (const Factor *self, double got, double wanted, const char *what, gint64 i, gint64 j)
{
  return conf_check (self->trial, fabs (got - wanted) <= self->most,
                     "matrix %u: %s: element (%" G_GINT64_FORMAT ", %" G_GINT64_FORMAT
                     ") is %g, and %g is right",
                     self->batch, what, i, j, got, wanted);
}

/* Sum over k of a[i, k] b[k, j], where b may be transposed. */
static double
product_at (const Matrix *a, const Matrix *b, gint64 i, gint64 j, gint64 n_sum)
{
  double sum = 0;
  for (gint64 k = 0; k < n_sum; k++)
    sum += *at (a, i, k) * *at (b, k, j);
  return sum;
}

/* Columns of @a, or rows where @by_rows, are orthonormal. */
static gboolean
check_orthonormal (const Factor *self, const Matrix *a, gboolean by_rows, const char *what)
{
  const gint64 n = by_rows ? a->m : a->n, n_sum = by_rows ? a->n : a->m;
  for (gint64 i = 0; i < n; i++)
    for (gint64 j = 0; j < n; j++) {
      double sum = 0;
      for (gint64 k = 0; k < n_sum; k++)
        sum += by_rows ? *at (a, i, k) * *at (a, j, k) : *at (a, k, i) * *at (a, k, j);
      if (!near (self, sum, i == j, what, i, j))
        return FALSE;
    }
  return TRUE;
}

/* Zeros above the diagonal, or below it. */
static gboolean
check_zeros (const Factor *self, const Matrix *a, gboolean above, const char *what)
{
  for (gint64 i = 0; i < a->m; i++)
    for (gint64 j = 0; j < a->n; j++)
      if ((above ? j > i : j < i)
          && !conf_check (self->trial, *at (a, i, j) == 0,
                          "matrix %u: %s: element (%" G_GINT64_FORMAT ", %" G_GINT64_FORMAT
                          ") is %g, and 0 is right",
                          self->batch, what, i, j, *at (a, i, j)))
        return FALSE;
  return TRUE;
}

static void
check_cholesky (Factor *self)
{
  const Matrix *l = &self->x[0], *a = &self->x[1];
  if (!check_zeros (self, l, TRUE, "L"))
    return;
  for (gint64 i = 0; i < l->m; i++)
    for (gint64 j = 0; j <= i; j++) {
      double sum = 0;
      for (gint64 k = 0; k <= j; k++)
        sum += *at (l, i, k) * *at (l, j, k);
      if (!near (self, sum, *at (a, i, j), "L L'", i, j)
          || !conf_check (self->trial, i != j || *at (l, i, i) > 0,
                          "matrix %u: element %" G_GINT64_FORMAT " of L's diagonal is %g",
                          self->batch, i, *at (l, i, i)))
        return;
    }
}

/* Exchanges @rows as the pivots say; FALSE where one is no row below. */
static gboolean
take_pivots (Factor *self, gint64 *order)
{
  const Matrix *pivots = &self->x[1];
  const gint64 m = self->row->rows;
  for (gint64 i = 0; i < m; i++)
    order[i] = i;
  for (gint64 k = 0; k < pivots->m; k++) {
    const gint64 p = (gint64) pivots->v[k];
    if (!conf_check (self->trial, p >= k && p < m,
                     "matrix %u: row %" G_GINT64_FORMAT " was exchanged with %" G_GINT64_FORMAT,
                     self->batch, k, p))
      return FALSE;
    const gint64 row = order[k];
    order[k] = order[p];
    order[p] = row;
  }
  return TRUE;
}

static void
check_lu (Factor *self)
{
  const Matrix *lu = &self->x[0], *a = &self->x[3];
  const gint64 m = lu->m, n = lu->n, n_values = MIN (m, n);
  g_autofree gint64 *order = g_new (gint64, m);
  if (!take_pivots (self, order))
    return;
  conf_check (self->trial, self->batch != SPECIAL || self->x[1].v[0] == 0,
              "the first of elements as large is the pivot, and it was %g", self->x[1].v[0]);
  for (gint64 i = 0; i < m; i++) {
    if (!conf_check (self->trial, self->x[2].v[i] == (double) order[i],
                     "matrix %u: row %" G_GINT64_FORMAT " is row %g of A, and by the pivots "
                     "%" G_GINT64_FORMAT,
                     self->batch, i, self->x[2].v[i], order[i]))
      return;
    for (gint64 j = 0; j < n; j++) {
      double sum = i <= j ? *at (lu, i, j) : 0;
      for (gint64 k = 0; k < MIN (i, MIN (j + 1, n_values)); k++)
        sum += *at (lu, i, k) * *at (lu, k, j);
      if (!near (self, sum, *at (a, order[i], j), "L U", i, j)
          || !conf_check (self->trial, i <= j || fabs (*at (lu, i, j)) <= 1 + self->most,
                          "matrix %u: L has %g", self->batch, *at (lu, i, j)))
        return;
    }
  }
}

static void
check_triangular (Factor *self)
{
  const Matrix *x = &self->x[0], *a = &self->x[1], *b = &self->x[2];
  const gboolean is_upper = (self->row->flags & TINY_OPERATION_UPPER) != 0,
                 is_unit = (self->row->flags & TINY_OPERATION_UNIT) != 0;
  for (gint64 i = 0; i < x->m; i++)
    for (gint64 j = 0; j < x->n; j++) {
      double sum = (is_unit ? 1 : *at (a, i, i)) * *at (x, i, j);
      for (gint64 k = is_upper ? i + 1 : 0; k < (is_upper ? x->m : i); k++)
        sum += *at (a, i, k) * *at (x, k, j);
      if (!near (self, sum, *at (b, i, j), "A X", i, j))
        return;
    }
}

static void
check_qr (Factor *self)
{
  const Matrix *q = &self->x[0], *r = &self->x[1], *a = &self->x[2];
  if (!check_orthonormal (self, q, FALSE, "Q' Q") || !check_zeros (self, r, FALSE, "R"))
    return;
  for (gint64 i = 0; i < a->m; i++)
    for (gint64 j = 0; j < a->n; j++)
      if (!near (self, product_at (q, r, i, j, q->n), *at (a, i, j), "Q R", i, j))
        return;
  conf_check (self->trial, (*at (r, 0, 0) < 0) == (*at (a, 0, 0) > 0),
              "matrix %u: a reflection of a column that begins with %g begins with %g",
              self->batch, *at (a, 0, 0), *at (r, 0, 0));
}

static void
check_svd (Factor *self)
{
  const Matrix *u = &self->x[0], *s = &self->x[1], *v = &self->x[2], *a = &self->x[3];
  if (!check_orthonormal (self, u, FALSE, "U' U") || !check_orthonormal (self, v, TRUE, "V' V"))
    return;
  for (gint64 k = 0; k < s->m; k++)
    if (!conf_check (self->trial, s->v[k] >= 0 && (k == 0 || s->v[k] <= s->v[k - 1]),
                     "matrix %u: value %" G_GINT64_FORMAT " is %g, and the one before %g",
                     self->batch, k, s->v[k], k > 0 ? s->v[k - 1] : 0))
      return;
  for (gint64 i = 0; i < a->m; i++)
    for (gint64 j = 0; j < a->n; j++) {
      double sum = 0;
      for (gint64 k = 0; k < s->m; k++)
        sum += *at (u, i, k) * s->v[k] * *at (v, k, j);
      if (!near (self, sum, *at (a, i, j), "U S V'", i, j))
        return;
    }
}

static void
check_eigh (Factor *self)
{
  const Matrix *s = &self->x[0], *v = &self->x[1], *a = &self->x[2];
  if (!check_orthonormal (self, v, FALSE, "vectors"))
    return;
  for (gint64 k = 1; k < s->m; k++)
    if (!conf_check (self->trial, s->v[k] >= s->v[k - 1],
                     "matrix %u: value %" G_GINT64_FORMAT " is %g, and the one before %g",
                     self->batch, k, s->v[k], s->v[k - 1]))
      return;
  for (gint64 i = 0; i < a->m; i++)
    for (gint64 k = 0; k < s->m; k++) {
      double sum = 0;
      for (gint64 j = 0; j < a->n; j++)
        sum += (i >= j ? *at (a, i, j) : *at (a, j, i)) * *at (v, j, k);
      if (!near (self, sum, s->v[k] * *at (v, i, k), "A v", i, k))
        return;
    }
}

/* All that is a float is NaN. */
static void
check_nothing (Factor *self)
{
  for (guint i = 0; i < self->n_outputs; i++)
    for (gsize k = 0; k < count (self, i); k++)
      if (!conf_check (self->trial, isnan (self->x[i].v[k]),
                       "matrix %u, which has no such factors: element %" G_GSIZE_FORMAT
                       " of output %u is %g, and NaN is right",
                       self->batch, k, i, self->x[i].v[k]))
        return;
}

static void
check (Factor *self)
{
  static void (*const checks[]) (Factor * self) = {
    [TINY_OPERATION_CHOLESKY] = check_cholesky,
    [TINY_OPERATION_LU] = check_lu,
    [TINY_OPERATION_TRIANGULAR] = check_triangular,
    [TINY_OPERATION_QR] = check_qr,
    [TINY_OPERATION_SVD] = check_svd,
    [TINY_OPERATION_EIGH] = check_eigh,
  };
  const gboolean has_none
      = self->row->kind != TINY_OPERATION_LU && self->row->kind != TINY_OPERATION_TRIANGULAR;
  const gint64 n = MAX (self->row->rows, self->row->columns);
  self->most = 16.0 * (double) (n * n) * (self->dtype == TINY_DTYPE_F64 ? 0x1p-52 : 0x1p-23);
  for (self->batch = 0; self->batch < BATCH && !conf_has_failed (self->trial); self->batch++) {
    for (guint i = 0; i < self->operation.n_operands; i++) {
      self->x[i]
          = (Matrix){ self->shapes[i][0], self->shapes[i][1], g_new (double, count (self, i)) };
      for (gsize k = 0; k < count (self, i); k++)
        self->x[i].v[k] = decode (self, i, self->batch * count (self, i) + k);
    }
    if (self->batch == SPECIAL && has_none)
      check_nothing (self);
    else
      checks[self->row->kind](self);
    for (guint i = 0; i < self->operation.n_operands; i++)
      g_free (self->x[i].v);
  }
}

/* ---- the operation ---- */
static gboolean
make (const Row *row, TinyDType dtype, TinyOperation *out)
{
  const gint64 extents[FACTOR_N_EXTENTS]
      = { BATCH, row->rows, row->columns, MAX (row->left, 1), MAX (row->right, 1), 1 };
  return factor_init (out, row->kind, row->flags, dtype, extents);
}

/* args: the row, the dtype. */
static void
run_factor (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  TinyPluginBuffer *buffers[TINY_OPERATION_MAX_OPERANDS] = { NULL };
  TinySpan spans[TINY_OPERATION_MAX_OPERANDS];
  Factor it
      = { .trial = trial, .row = &rows[self->args[0]], .dtype = (TinyDType) self->args[1] };
  TinyClaim claim;
  ConfRaw raw;
  if (!conf_check (trial, make (it.row, it.dtype, &it.operation), "no such operation")
      || !conf_claim (trial, subject, &it.operation, &claim)
      || !conf_check (trial, claim.verdict == TINY_CLAIM_ACCEPTED,
                      "claim() accepted it before, and declines it now: %s", claim.reason)
      || !conf_raw_begin (&raw, trial, subject))
    return;
  it.n_outputs = factor_count_outputs (&it.operation);
  ConfStep step;
  conf_step_init_for (&step, subject, &it.operation);
  TinyPluginProgram *program = conf_step_build (&step, &raw);
  gboolean good = program != NULL && conf_step_alloc (&step, &raw, buffers);
  for (guint i = 0; i < it.operation.n_operands; i++) {
    gint64 dims[FACTOR_MAX_RANK];
    const guint rank = factor_get_shape (&it.operation, i, dims);
    it.shapes[i][0] = dims[rank - 1];
    it.shapes[i][1] = rank > 2 ? dims[1] : 1;
    it.data[i] = g_malloc0 (conf_raw_round (&raw, step.n_bytes[i]));
  }
  fill (&it);
  for (guint i = 0; i < it.operation.n_operands && good; i++)
    good = conf_raw_upload (&raw, buffers[i], 0, it.data[i],
                            conf_raw_round (&raw, step.n_bytes[i]));
  conf_step_get_spans (&step, buffers, spans);
  const TinyCommand command = conf_step_dispatch (&step, program, spans);
  good = good && conf_raw_submit (&raw, &command, 1, "dispatch of what was accepted");
  for (guint i = 0; i < it.n_outputs && good; i++)
    good = conf_raw_download (&raw, buffers[i], 0, it.data[i],
                              conf_raw_round (&raw, step.n_bytes[i]));
  if (good)
    check (&it);
  for (guint i = 0; i < it.operation.n_operands; i++)
    g_free (it.data[i]);
  conf_step_free (&step, &raw, buffers);
  conf_raw_unload (&raw, program);
  conf_step_clear (&step);
  conf_raw_end (&raw);
}

void
conf_list_factors (const ConfSubject *subject, ConfList *out)
{
  static const TinyDType dtypes[] = { TINY_DTYPE_F32, TINY_DTYPE_F64 };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    for (guint d = 0; d < G_N_ELEMENTS (dtypes); d++) {
      const ConfCase self = { .run = run_factor, .args = { i, dtypes[d] } };
      const char *dtype = tiny_dtype_to_string (dtypes[d]);
      TinyOperation operation;
      TinyClaim claim = { 0 };
      if (tiny_device_claims_kind (subject->device, rows[i].kind)
          && make (&rows[i], dtypes[d], &operation))
        tiny_device_claim (subject->device, &operation, &claim);
      g_autofree char *reason = g_utf8_make_valid (claim.reason, -1);
      if (claim.verdict == TINY_CLAIM_ACCEPTED)
        conf_list_add (out, &self, "factor/%s-%s", rows[i].name, dtype);
      else
        conf_list_absent (out, reason[0] ? reason : "the renderer is not asked about it",
                          "factor/%s-%s", rows[i].name, dtype);
    }
}
