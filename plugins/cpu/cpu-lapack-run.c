/* SPDX-License-Identifier: MIT
 *
 * cpu-lapack-run.c: calls LAPACK for each matrix of a batch.
 *
 * The pool's threads share a batch that has a matrix for each of them; smaller ones are left to the library's own
 * threads, as many as the pool has. Their number is the whole process's and others may use the library: it is
 * set back afterwards, and one operation runs at a time. OpenMP has a number for each thread that calls it: it is one
 * in the pool's threads while they share a batch. A matrix with an infinity or a NaN never reaches LAPACK,
 * whose iterations might not end: its results are NaNs, as are those of a method that reports a failure. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cpu-lapack.h"

enum { MAX_OPERANDS = 4 };

/* A batch, in the words of LAPACK: M by N, K the lesser. */
typedef struct {
  const TinyOperation *operation;
  const CpuLapackFunctions *f;
  const CpuLapack *lapack;
  char *buffers[MAX_OPERANDS];
  uint64_t n_bytes[MAX_OPERANDS]; /* of one matrix */
  size_t width;                   /* bytes of an element */
  bool is_shared;                 /* by the pool's threads */
  int m, n, k, left, right, n_work, n_iwork;
  _Atomic bool is_out_of_memory;
} Batch;

/* The memory that a thread works in. */
typedef struct {
  char *copy, *tau, *work;
  int *iwork;
} Scratch;

/* ---- numbers ---- */
static bool
is_finite (const Batch *self, const char *data)
{
  uint64_t n = (uint64_t) self->m * (uint64_t) self->n, bad = 0;
  for (uint64_t i = 0; i < n; i++)
    if (self->width == 8) {
      uint64_t bits;
      memcpy (&bits, data + i * 8, sizeof bits);
      bad |= (bits & UINT64_C (0x7ff0000000000000)) == UINT64_C (0x7ff0000000000000);
    } else {
      uint32_t bits;
      memcpy (&bits, data + i * 4, sizeof bits);
      bad |= (bits & UINT32_C (0x7f800000)) == UINT32_C (0x7f800000);
    }
  return bad == 0;
}

static void
fill_nan (const Batch *self, char *data, uint64_t n_bytes)
{
  const double wide = NAN;
  const float narrow = NAN;
  for (uint64_t i = 0; i < n_bytes; i += self->width)
    memcpy (data + i, self->width == 8 ? (const void *) &wide : &narrow, self->width);
}

/* Zeros above the diagonal of the columns of @data, of @rows rows, or below it. */
static void
clear_triangle (const Batch *self, char *data, int rows, int columns, bool above)
{
  for (int j = 0; j < columns; j++) {
    int first = above ? 0 : j + 1, end = above ? (j < rows ? j : rows) : rows;
    if (first < end)
      memset (data + ((size_t) j * (size_t) rows + (size_t) first) * self->width, 0,
              (size_t) (end - first) * self->width);
  }
}

/* ---- the methods; they return LAPACK's info ---- */
typedef int (*Method) (const Batch *self, char *const *x, const Scratch *scratch);

static int
run_cholesky (const Batch *self, char *const *x, const Scratch *scratch)
{
  int info = 0;
  memcpy (x[0], x[1], self->n_bytes[0]);
  self->f->potrf ("L", &self->n, x[0], &self->n, &info, 1);
  clear_triangle (self, x[0], self->n, self->n, true);
  return info;
}

static void
exchange (int32_t *rows, int32_t i, int32_t j)
{
  int32_t row = rows[i];
  rows[i] = rows[j];
  rows[j] = row;
}

/* A pivot of 0 is reported, and is no failure. */
static int
run_lu (const Batch *self, char *const *x, const Scratch *scratch)
{
  int info = 0;
  int32_t *pivots = (int32_t *) (void *) x[1], *rows = (int32_t *) (void *) x[2];
  memcpy (x[0], x[3], self->n_bytes[0]);
  self->f->getrf (&self->m, &self->n, x[0], &self->m, pivots, &info);
  for (int i = 0; i < self->m; i++)
    rows[i] = i;
  for (int i = 0; i < self->k; i++) {
    pivots[i] = pivots[i] < i + 1 || pivots[i] > self->m ? i : pivots[i] - 1;
    exchange (rows, i, pivots[i]);
  }
  return info < 0 ? info : 0;
}

static int
run_triangular (const Batch *self, char *const *x, const Scratch *scratch)
{
  const double one = 1;
  const float narrow_one = 1;
  const uint32_t flags = self->operation->flags;
  memcpy (x[0], x[2], self->n_bytes[0]);
  self->f->trsm ("L", flags & TINY_OPERATION_UPPER ? "U" : "L", "N",
                 flags & TINY_OPERATION_UNIT ? "U" : "N", &self->n, &self->right,
                 self->width == 8 ? (const void *) &one : &narrow_one, x[1], &self->n, x[0],
                 &self->n, 1, 1, 1, 1);
  return 0;
}

/* In the memory of Q where that has a column for each of A, else in that of R. */
static int
run_qr (const Batch *self, char *const *x, const Scratch *scratch)
{
  int info = 0;
  const bool is_wide = self->n > self->left;
  char *in = is_wide ? x[1] : x[0];
  const size_t column = (size_t) self->m * self->width;
  memcpy (in, x[2], self->n_bytes[2]);
  self->f->geqrf (&self->m, &self->n, in, &self->m, scratch->tau, scratch->work, &self->n_work,
                  &info);
  if (info != 0)
    return info;
  if (is_wide)
    memcpy (x[0], x[1], (size_t) self->left * column);
  else
    for (int j = 0; j < self->n; j++)
      memcpy (x[1] + (size_t) j * (size_t) self->left * self->width, x[0] + (size_t) j * column,
              (size_t) self->left * self->width);
  clear_triangle (self, x[1], self->left, self->n, false);
  self->f->orgqr (&self->m, &self->left, &self->k, x[0], &self->m, scratch->tau, scratch->work,
                  &self->n_work, &info);
  return info;
}

static int
run_svd (const Batch *self, char *const *x, const Scratch *scratch)
{
  int info = 0;
  const bool is_full = self->left == self->m && self->right == self->n;
  memcpy (scratch->copy, x[3], self->n_bytes[3]);
  self->f->gesdd (is_full ? "A" : "S", &self->m, &self->n, scratch->copy, &self->m, x[1], x[0],
                  &self->m, x[2], &self->right, scratch->work, &self->n_work, scratch->iwork,
                  &info, 1);
  return info;
}

static int
run_eigh (const Batch *self, char *const *x, const Scratch *scratch)
{
  int info = 0;
  memcpy (x[1], x[2], self->n_bytes[1]);
  self->f->syevd ("V", "L", &self->n, x[1], &self->n, x[0], scratch->work, &self->n_work,
                  scratch->iwork, &self->n_iwork, &info, 1, 1);
  return info;
}

static const struct {
  Method run;
  bool wants_copy, takes_any; /* takes_any: what is not finite as well, by its arithmetic */
  uint32_t input;             /* the operand that is A */
} methods[] = {
  [TINY_OPERATION_CHOLESKY] = { run_cholesky, .input = 1 },
  [TINY_OPERATION_LU] = { run_lu, .input = 3 },
  [TINY_OPERATION_TRIANGULAR] = { run_triangular, .takes_any = true, .input = 1 },
  [TINY_OPERATION_QR] = { run_qr, .input = 2 },
  [TINY_OPERATION_SVD] = { run_svd, .wants_copy = true, .input = 3 },
  [TINY_OPERATION_EIGH] = { run_eigh, .input = 2 },
};

/* ---- working memory ---- */
static int
read_size (const Batch *self, const char *work)
{
  double wide;
  float narrow;
  memcpy (&wide, work, sizeof wide);
  memcpy (&narrow, work, sizeof narrow);
  /* An f32 may have been rounded down. */
  return 1 + (int) (self->width == 8 ? wide : (double) narrow * (1 + 0x1p-20));
}

/* Asks LAPACK how much it wants to work in. */
static void
find_sizes (Batch *self)
{
  const int ask = -1;
  int info = 0, other = 0, iwork[1] = { 0 };
  _Alignas(8) char work[8] = { 0 }, x[8] = { 0 };
  self->n_work = self->n_iwork = 1;
  switch (self->operation->kind) {
  case TINY_OPERATION_QR:
    self->f->geqrf (&self->m, &self->n, x, &self->m, x, work, &ask, &info);
    self->n_work = read_size (self, work);
    self->f->orgqr (&self->m, &self->left, &self->k, x, &self->m, x, work, &ask, &info);
    other = read_size (self, work);
    self->n_work = self->n_work > other ? self->n_work : other;
    break;
  case TINY_OPERATION_SVD:
    self->n_iwork = 8 * self->k;
    self->f->gesdd (self->left == self->m && self->right == self->n ? "A" : "S", &self->m,
                    &self->n, x, &self->m, x, x, &self->m, x, &self->right, work, &ask, iwork,
                    &info, 1);
    self->n_work = read_size (self, work);
    break;
  case TINY_OPERATION_EIGH:
    self->f->syevd ("V", "L", &self->n, x, &self->n, x, work, &ask, iwork, &ask, &info, 1, 1);
    self->n_work = read_size (self, work);
    self->n_iwork = iwork[0] > 1 ? iwork[0] : 1;
    break;
  default:
    break;
  }
}

static bool
scratch_init (Scratch *self, const Batch *batch)
{
  const bool wants_copy = methods[batch->operation->kind].wants_copy;
  const size_t m = (size_t) batch->m, n = (size_t) batch->n;
  *self = (Scratch){ .copy = wants_copy ? malloc (m * n * batch->width) : NULL,
                     .tau = malloc ((size_t) batch->k * batch->width),
                     .work = malloc ((size_t) batch->n_work * batch->width),
                     .iwork = malloc ((size_t) batch->n_iwork * sizeof (int)) };
  return (self->copy != NULL || !wants_copy) && self->tau != NULL && self->work != NULL
         && self->iwork != NULL;
}

static void
scratch_clear (Scratch *self)
{
  free (self->copy);
  free (self->tau);
  free (self->work);
  free (self->iwork);
}

/* ---- batches ---- */

/* The order of rows stays an order. */
static void
give_nans (const Batch *self, char *const *x)
{
  for (uint32_t i = 0; i < methods[self->operation->kind].input; i++) {
    if (self->operation->operands[i].dtype != TINY_DTYPE_I32) {
      fill_nan (self, x[i], self->n_bytes[i]);
      continue;
    }
    for (uint64_t k = 0; k < self->n_bytes[i] / sizeof (int32_t); k++) {
      const int32_t number = (int32_t) k;
      memcpy (x[i] + k * sizeof number, &number, sizeof number);
    }
  }
}

/* A CpuKernel, whose variables are the batch: matrices @begin up to @end. */
static void
run_some (void **buffers, const int64_t *variables, int64_t begin, int64_t end)
{
  Batch *self = (Batch *) (void *) (uintptr_t) variables[0];
  const uint32_t kind = self->operation->kind;
  const bool is_alone = self->is_shared && self->lapack->set_own_threads != NULL;
  const int before = is_alone ? self->lapack->get_own_threads () : 0;
  Scratch scratch;
  if (!scratch_init (&scratch, self)) {
    self->is_out_of_memory = true;
    scratch_clear (&scratch);
    return;
  }
  if (is_alone)
    self->lapack->set_own_threads (1);
  for (int64_t i = begin; i < end; i++) {
    char *x[MAX_OPERANDS] = { NULL };
    for (uint32_t k = 0; k < self->operation->n_operands; k++)
      x[k] = self->buffers[k] + (uint64_t) i * self->n_bytes[k];
    if ((!methods[kind].takes_any && !is_finite (self, x[methods[kind].input]))
        || methods[kind].run (self, x, &scratch) != 0)
      give_nans (self, x);
  }
  if (is_alone)
    self->lapack->set_own_threads (before);
  scratch_clear (&scratch);
}

static void
batch_init (Batch *self,
            const CpuLapack *lapack,
            const TinyOperation *operation,
            void *const *buffers)
{
  const int64_t *extents = operation->extents;
  *self = (Batch){ .operation = operation,
                   .lapack = lapack,
                   .f = operation->compute_dtype == TINY_DTYPE_F64 ? &lapack->of_f64
                                                                   : &lapack->of_f32,
                   .width = operation->compute_dtype == TINY_DTYPE_F64 ? 8 : 4,
                   .m = (int) extents[TINY_FACTOR_ROW],
                   .n = (int) extents[TINY_FACTOR_COLUMN],
                   .k = (int) extents[TINY_FACTOR_VALUE],
                   .left = (int) extents[TINY_FACTOR_LEFT],
                   .right = (int) extents[TINY_FACTOR_RIGHT] };
  for (uint32_t i = 0; i < operation->n_operands; i++) {
    self->buffers[i] = buffers[i];
    self->n_bytes[i]
        = cpu_lapack_count_bytes (operation, i) / (uint64_t) extents[TINY_FACTOR_BATCH];
  }
  find_sizes (self);
}

TinyStatus
cpu_lapack_run (CpuPool *pool,
                const TinyOperation *operation,
                void *const *buffers,
                TinyPluginError *error)
{
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  const CpuLapack *lapack = cpu_lapack_get ();
  const int64_t n = operation->extents[TINY_FACTOR_BATCH];
  const int n_threads = (int) cpu_pool_get_n_threads (pool);
  const bool is_shared = n >= n_threads;
  Batch batch;
  batch_init (&batch, lapack, operation, buffers);
  batch.is_shared = is_shared;
  const int64_t variables[] = { (int64_t) (uintptr_t) &batch };
  pthread_mutex_lock (&lock);
  const int before = lapack->get_threads != NULL ? lapack->get_threads () : 0;
  const int wanted = is_shared ? 1 : n_threads;
  if (lapack->set_threads != NULL && before != wanted)
    lapack->set_threads (wanted);
  if (is_shared && n > 1)
    cpu_pool_run (pool, run_some, NULL, variables, n);
  else
    run_some (NULL, variables, 0, n);
  if (lapack->set_threads != NULL && before != wanted)
    lapack->set_threads (before);
  pthread_mutex_unlock (&lock);
  if (batch.is_out_of_memory)
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for LAPACK to work in");
  return TINY_STATUS_OK;
}
