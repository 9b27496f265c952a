/* SPDX-License-Identifier: MIT
 *
 * faults-factors.c: linear algebra that was claimed, and whose factors are others than those that TinyOperationKind names:
 * results of the backend inside are changed where they lie. */
#include <math.h>
#include <pthread.h>

#include "broken.h"

enum { KEPT = 256, MOST = 4 };

/* ---- which program is which operation ---- */
static struct {
  TinyOperation operation;
  void *binary;
  uint64_t size;
  TinyPluginProgram *program;
} kept[KEPT];
static unsigned n_kept;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static TinyStatus
compile_noted (const TinyCompileArgs *args,
               void **out_data,
               uint64_t *out_size,
               TinyPluginError *error)
{
  TINY_TRY (inside.renderer->compile (args, out_data, out_size, error));
  pthread_mutex_lock (&lock);
  if (n_kept < KEPT) {
    kept[n_kept].operation = *args->operation;
    kept[n_kept].binary = malloc ((size_t) *out_size);
    memcpy (kept[n_kept].binary, *out_data, (size_t) *out_size);
    kept[n_kept++].size = *out_size;
  }
  pthread_mutex_unlock (&lock);
  return TINY_STATUS_OK;
}

static TinyStatus
load_noted (TinyPluginDevice *device,
            const TinyProgramArgs *args,
            TinyPluginProgram **out,
            TinyPluginError *error)
{
  TINY_TRY (inside.device->program_load (device, args, out, error));
  pthread_mutex_lock (&lock);
  for (unsigned i = 0; i < n_kept; i++) {
    if (kept[i].program == *out)
      kept[i].program = NULL;
    if (kept[i].size == args->size
        && memcmp (kept[i].binary, args->data, (size_t) args->size) == 0)
      kept[i].program = *out;
  }
  pthread_mutex_unlock (&lock);
  return TINY_STATUS_OK;
}

/* ---- results ---- */

/* The operands of one matrix of a batch, by columns. */
typedef struct {
  const TinyOperation *operation;
  char *data[MOST];
  int is_wide; /* f64 */
  int64_t m, n, k;
} Result;

static double
get (const Result *self, int i, int64_t at)
{
  return self->is_wide ? ((const double *) (const void *) self->data[i])[at]
                       : (double) ((const float *) (const void *) self->data[i])[at];
}

static void
put (const Result *self, int i, int64_t at, double x)
{
  if (self->is_wide)
    ((double *) (void *) self->data[i])[at] = x;
  else
    ((float *) (void *) self->data[i])[at] = (float) x;
}

static int32_t *
integers (const Result *self, int i)
{
  return (int32_t *) (void *) self->data[i];
}

static void
exchange (const Result *self, int i, int64_t a, int64_t b)
{
  const double x = get (self, i, a);
  put (self, i, a, get (self, i, b));
  put (self, i, b, x);
}

typedef int (*Change) (Result *self);

static int
change_all (TinyPluginDevice *device,
            const TinyOperation *o,
            const TinyCommand *command,
            Change change)
{
  int wrong = 0;
  Result result = { .operation = o,
                    .is_wide = o->compute_dtype == TINY_DTYPE_F64,
                    .m = o->extents[TINY_FACTOR_ROW],
                    .n = o->extents[TINY_FACTOR_COLUMN],
                    .k = o->extents[TINY_FACTOR_VALUE] };
  TinyPluginError error = { .struct_size = sizeof error };
  const uint64_t n_batch = (uint64_t) o->extents[TINY_FACTOR_BATCH];
  for (uint64_t b = 0; b < n_batch; b++) {
    for (uint32_t i = 0; i < o->n_operands && i < MOST; i++) {
      void *address = NULL;
      const TinySpan *span = &command->buffers[o->operands[i].buffer];
      if (inside.device->map (device, span->buffer, &address, &error) != TINY_STATUS_OK)
        return 0;
      const uint64_t width = o->operands[i].dtype == TINY_DTYPE_F64 ? 8 : 4;
      result.data[i]
          = (char *) address + span->offset + b * (o->operands[i].n_elements / n_batch) * width;
    }
    wrong |= change (&result);
  }
  return wrong;
}

#define RESULT(name)                                                                           \
  static int name##_change (Result *r);                                                        \
  SUBMIT (name)                                                                                \
  {                                                                                            \
    TINY_TRY (inside.device->submit (device, queue, submit, error));                           \
    for (uint32_t c = 0; c < submit->n_commands; c++)                                          \
      for (unsigned i = 0; launches (&submit->commands[c]) && i < n_kept; i++)                 \
        if (kept[i].program == submit->commands[c].program                                     \
            && change_all (device, &kept[i].operation, &submit->commands[c], name##_change))   \
          broken_note ();                                                                      \
    return TINY_STATUS_OK;                                                                     \
  }                                                                                            \
  static int name##_change (Result *r)
#define OF(kind_name) (r->operation->kind == TINY_OPERATION_##kind_name)

RESULT (triangle_left)
{
  for (int64_t j = 1; OF (CHOLESKY) && j < r->n; j++)
    for (int64_t i = 0; i < j; i++)
      put (r, 0, j * r->m + i, get (r, 1, j * r->m + i));
  return OF (CHOLESKY);
}

/* L D with D's elements 1 and -1 is a factor as well. */
RESULT (column_negative)
{
  for (int64_t i = 0; OF (CHOLESKY) && i < r->m; i++)
    put (r, 0, i, -get (r, 0, i));
  return OF (CHOLESKY);
}

RESULT (pivots_from_1)
{
  for (int64_t i = 0; OF (LU) && i < r->k; i++)
    integers (r, 1)[i]++;
  return OF (LU);
}

RESULT (rows_in_order)
{
  for (int64_t i = 0; OF (LU) && i < r->m; i++)
    integers (r, 2)[i] = (int32_t) i;
  return OF (LU);
}

/* Which row comes where, turned around. */
RESULT (rows_inverse)
{
  int32_t rows[256];
  if (!OF (LU) || r->m > 256)
    return 0;
  for (int64_t i = 0; i < r->m; i++)
    rows[integers (r, 2)[i]] = (int32_t) i;
  memcpy (integers (r, 2), rows, (size_t) r->m * sizeof *rows);
  return 1;
}

RESULT (qr_positive)
{
  const int64_t left = r->operation->extents[TINY_FACTOR_LEFT];
  for (int64_t k = 0; OF (QR) && k < r->k; k++) {
    if (!(get (r, 1, k * left + k) < 0))
      continue;
    for (int64_t i = 0; i < r->m; i++)
      put (r, 0, k * r->m + i, -get (r, 0, k * r->m + i));
    for (int64_t j = 0; j < r->n; j++)
      put (r, 1, j * left + k, -get (r, 1, j * left + k));
  }
  return OF (QR);
}

RESULT (qr_reflectors)
{
  const int64_t left = r->operation->extents[TINY_FACTOR_LEFT];
  for (int64_t j = 0; OF (QR) && j < r->n; j++)
    for (int64_t i = j + 1; i < left; i++)
      put (r, 1, j * left + i, 0.25);
  return OF (QR);
}

RESULT (svd_ascending)
{
  const int64_t right = r->operation->extents[TINY_FACTOR_RIGHT];
  for (int64_t k = 0; OF (SVD) && k < r->k / 2; k++) {
    const int64_t other = r->k - 1 - k;
    exchange (r, 1, k, other);
    for (int64_t i = 0; i < r->m; i++)
      exchange (r, 0, k * r->m + i, other * r->m + i);
    for (int64_t j = 0; j < r->n; j++)
      exchange (r, 2, j * right + k, j * right + other);
  }
  return OF (SVD);
}

RESULT (svd_negative)
{
  for (int64_t i = 0; OF (SVD) && i < r->m; i++)
    put (r, 0, i, -get (r, 0, i));
  if (OF (SVD))
    put (r, 1, 0, -get (r, 1, 0));
  return OF (SVD);
}

/* V in the place of V'. */
RESULT (svd_transposed)
{
  const int64_t right = r->operation->extents[TINY_FACTOR_RIGHT];
  for (int64_t i = 0; OF (SVD) && right == r->n && i < r->n; i++)
    for (int64_t j = 0; j < i; j++)
      exchange (r, 2, i * right + j, j * right + i);
  return OF (SVD) && right == r->n;
}

RESULT (eigh_descending)
{
  for (int64_t k = 0; OF (EIGH) && k < r->n / 2; k++) {
    exchange (r, 0, k, r->n - 1 - k);
    for (int64_t i = 0; i < r->m; i++)
      exchange (r, 1, k * r->m + i, (r->n - 1 - k) * r->m + i);
  }
  return OF (EIGH);
}

RESULT (eigh_unscaled)
{
  for (int64_t i = 0; OF (EIGH) && i < r->m * r->n; i++)
    put (r, 1, i, 2 * get (r, 1, i));
  return OF (EIGH);
}

RESULT (nothing_is_0)
{
  int wrong = 0;
  for (uint32_t o = 0; o < 3 && r->operation->operands[o].role != TINY_ROLE_A; o++) {
    const TinyOperandView *view = &r->operation->operands[o];
    const int64_t n = (int64_t) view->n_elements / r->operation->extents[TINY_FACTOR_BATCH];
    for (int64_t i = 0; view->dtype != TINY_DTYPE_I32 && i < n; i++)
      if (isnan (get (r, (int) o, i))) {
        put (r, (int) o, i, 0);
        wrong = 1;
      }
  }
  return wrong;
}

/* One that has none spoils the next of its batch. */
RESULT (neighbour_spoilt)
{
  static _Thread_local int was_nan;
  const int is_nan = isnan (get (r, 0, 0));
  if (was_nan && !is_nan)
    put (r, 0, 0, NAN);
  const int wrong = was_nan && !is_nan;
  was_nan = is_nan;
  return wrong;
}

/* ---- operations ---- */
#define OPERATION(name, place, value)                                                          \
  static TinyStatus name (const TinyCompileArgs *args, void **out_data, uint64_t *out_size,    \
                          TinyPluginError *error)                                              \
  {                                                                                            \
    TinyOperation operation = *args->operation;                                                \
    TinyCompileArgs wrong = *args;                                                             \
    if (operation.place != (value))                                                            \
      broken_note ();                                                                          \
    operation.place = (value);                                                                 \
    wrong.operation = &operation;                                                              \
    return inside.renderer->compile (&wrong, out_data, out_size, error);                       \
  }
OPERATION (upper_lost, flags, args->operation->flags & ~(uint32_t) TINY_OPERATION_UPPER)
OPERATION (unit_lost, flags, args->operation->flags & ~(uint32_t) TINY_OPERATION_UNIT)
OPERATION (first_of_batch, extents[TINY_FACTOR_BATCH], 1)

#define AROUND .around = "CPU", .is_of_operations = 1, .cases = "operations/factor/*"
#define ROW(row_name, function, row_what, row_seen)                                            \
  {                                                                                            \
    row_name, row_what, row_seen, AROUND, .renderer = { .compile = compile_noted },            \
                                          .device                                              \
                                          = {.program_load = load_noted,                       \
                                             .submit = function }                              \
  }
#define COMPILED(row_name, function, row_what, row_seen)                                       \
  {                                                                                            \
    row_name, row_what, row_seen, AROUND, .renderer = {.compile = function }                   \
  }

static const Fault rows[] = {
  /* clang-format off */
  ROW ("cholesky-triangle", triangle_left, "what is above the diagonal of a CHOLESKY is A's", "routines that leave the other triangle"),
  ROW ("cholesky-negative", column_negative, "the diagonal of a CHOLESKY may be negative", "a root with either sign"),
  ROW ("lu-pivots-from-1", pivots_from_1, "pivots of LU count from 1", "Fortran"),
  ROW ("lu-rows-in-order", rows_in_order, "the rows of LU are in order whatever the pivots are", "an output that is not filled"),
  ROW ("lu-rows-inverse", rows_inverse, "the rows of LU say where they went, not whence", "permutations turned around"),
  ROW ("qr-positive", qr_positive, "the diagonal of R is positive", "another convention than LAPACK's"),
  ROW ("qr-reflectors", qr_reflectors, "reflectors lie below the diagonal of R", "routines that leave them there"),
  ROW ("svd-ascending", svd_ascending, "singular values ascend", "eigenvalues of A' A in their order"),
  ROW ("svd-negative", svd_negative, "a singular value is negative", "signs that are not moved into U"),
  ROW ("svd-transposed", svd_transposed, "V stands for V'", "another convention than LAPACK's"),
  ROW ("eigh-descending", eigh_descending, "eigenvalues descend", "singular values in their order"),
  ROW ("eigh-unscaled", eigh_unscaled, "eigenvectors are not of length 1", "vectors that are scaled by their largest element"),
  ROW ("factor-none-is-0", nothing_is_0, "a matrix without factors gives zeros", "outputs that are cleared"),
  ROW ("factor-neighbour", neighbour_spoilt, "a matrix without factors spoils the next", "one flag for a batch"),
  COMPILED ("triangular-upper-lost", upper_lost, "TRIANGULAR always reads the lower triangle", "an argument that is not passed"),
  COMPILED ("triangular-unit-lost", unit_lost, "TRIANGULAR always divides by the diagonal", "an argument that is not passed"),
  COMPILED ("factor-batch-of-1", first_of_batch, "only the first matrix of a batch is computed", "libraries without batches"),
  /* clang-format on */
};
FAULT_TABLE (faults_factors);
