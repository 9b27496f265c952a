/* SPDX-License-Identifier: MIT
 *
 * cpu-lapack.c: which operations of linear algebra are LAPACK's, and their programs, which are the operations
 * themselves. */
#include "cpu-lapack.h"

#include <stdio.h>
#include <string.h>

/* Beyond this, sizes of working memory leave 32 bits. */
enum { LARGEST_EXTENT = 16384 };

typedef struct {
  char magic[8];
  TinyOperation operation;
} Program;
static const char magic[8] = "LAPACK1";

/* ---- what is taken ---- */

/* The operands of a kind: outputs first, 'i' for i32; axes of rows and columns, 0 for none. */
typedef struct {
  uint32_t role, row, column;
  bool is_i32;
} Operand;
enum { MAX_OPERANDS = 4 };
#define ROW    TINY_FACTOR_ROW
#define COLUMN TINY_FACTOR_COLUMN
#define LEFT   TINY_FACTOR_LEFT
#define RIGHT  TINY_FACTOR_RIGHT
#define VALUE  TINY_FACTOR_VALUE
static const struct {
  uint32_t n_operands;
  Operand operands[MAX_OPERANDS];
  double flops; /* of rows × columns × values, or × right sides */
} kinds[] = {
  [TINY_OPERATION_CHOLESKY]
  = { 2, { { TINY_ROLE_OUTPUT, ROW, COLUMN }, { TINY_ROLE_A, ROW, COLUMN } }, 0.33 },
  [TINY_OPERATION_LU] = { 4,
                          { { TINY_ROLE_OUTPUT, ROW, COLUMN },
                            { TINY_ROLE_OUTPUT2, VALUE, 0, true },
                            { TINY_ROLE_OUTPUT3, ROW, 0, true },
                            { TINY_ROLE_A, ROW, COLUMN } },
                          0.67 },
  [TINY_OPERATION_TRIANGULAR] = { 3,
                                  { { TINY_ROLE_OUTPUT, ROW, RIGHT },
                                    { TINY_ROLE_A, ROW, COLUMN },
                                    { TINY_ROLE_B, ROW, RIGHT } },
                                  1 },
  [TINY_OPERATION_QR] = { 3,
                          { { TINY_ROLE_OUTPUT, ROW, LEFT },
                            { TINY_ROLE_OUTPUT2, LEFT, COLUMN },
                            { TINY_ROLE_A, ROW, COLUMN } },
                          2.7 },
  [TINY_OPERATION_SVD] = { 4,
                           { { TINY_ROLE_OUTPUT, ROW, LEFT },
                             { TINY_ROLE_OUTPUT2, VALUE, 0 },
                             { TINY_ROLE_OUTPUT3, RIGHT, COLUMN },
                             { TINY_ROLE_A, ROW, COLUMN } },
                           21 },
  [TINY_OPERATION_EIGH] = { 3,
                            { { TINY_ROLE_OUTPUT, VALUE, 0 },
                              { TINY_ROLE_OUTPUT2, ROW, COLUMN },
                              { TINY_ROLE_A, ROW, COLUMN } },
                            9 },
};
#undef ROW
#undef COLUMN
#undef LEFT
#undef RIGHT
#undef VALUE

/* True if @view is a whole buffer of matrices by columns, one behind the other. */
static bool
is_by_columns (const TinyOperation *operation, uint32_t i, const Operand *operand)
{
  const TinyOperandView *view = &operation->operands[i];
  const int64_t *extents = operation->extents, *strides = view->strides;
  int64_t n = extents[operand->row];
  bool good = view->role == operand->role && view->buffer == i && view->offset == 0
              && view->dtype == (operand->is_i32 ? TINY_DTYPE_I32 : operation->compute_dtype)
              && strides[operand->row] == 1;
  if (operand->column != 0) {
    good = good && (extents[operand->column] == 1 || strides[operand->column] == n);
    n *= extents[operand->column];
  }
  good = good && (extents[TINY_FACTOR_BATCH] == 1 || strides[TINY_FACTOR_BATCH] == n);
  return good && n <= INT64_MAX / 16 / extents[TINY_FACTOR_BATCH]
         && view->n_elements >= (uint64_t) (n * extents[TINY_FACTOR_BATCH]);
}

/* NULL, or why it cannot be computed. */
static const char *
find_fault (const TinyOperation *operation)
{
  const int64_t *extents = operation->extents;
  if (operation->kind >= CPU_ARRAY_SIZE (kinds)
      || (CPU_LAPACK_KINDS & TINY_OPERATION_BIT (operation->kind)) == 0)
    return "only factors of matrices are LAPACK's";
  if (operation->compute_dtype != TINY_DTYPE_F32 && operation->compute_dtype != TINY_DTYPE_F64)
    return "neither f32 nor f64";
  if (operation->scale != 1 || operation->activation != TINY_ACTIVATION_NONE)
    return "an epilogue";
  for (uint32_t i = 0; i < TINY_OPERATION_MAX_AXES; i++)
    if (extents[i] < 1 || (i != TINY_FACTOR_BATCH && extents[i] > LARGEST_EXTENT))
      return "an extent that LAPACK's integers do not hold";
  int64_t m = extents[TINY_FACTOR_ROW], n = extents[TINY_FACTOR_COLUMN], k = m < n ? m : n;
  int64_t left = extents[TINY_FACTOR_LEFT], right = extents[TINY_FACTOR_RIGHT];
  uint32_t kind = operation->kind;
  bool is_square = kind == TINY_OPERATION_CHOLESKY || kind == TINY_OPERATION_TRIANGULAR
                   || kind == TINY_OPERATION_EIGH;
  if ((is_square && m != n) || extents[TINY_FACTOR_VALUE] != k
      || (kind == TINY_OPERATION_QR && left != k && left != m)
      || (kind == TINY_OPERATION_SVD && !(left == k && right == k)
          && !(left == m && right == n)))
    return "sizes that do not fit together";
  if (operation->n_operands != kinds[kind].n_operands
      || operation->n_buffers != operation->n_operands)
    return "other operands than the kind has";
  for (uint32_t i = 0; i < operation->n_operands; i++)
    if (!is_by_columns (operation, i, &kinds[kind].operands[i]))
      return "matrices that do not lie by columns";
  return cpu_lapack_get () != NULL ? NULL : "no LAPACK was found (TINY_LAPACK_LIBRARY)";
}

uint64_t
cpu_lapack_count_bytes (const TinyOperation *operation, uint32_t i)
{
  const TinyOperandView *view = &operation->operands[i];
  return view->n_elements * (view->dtype == TINY_DTYPE_F64 ? 8 : 4);
}

/* A call, then what a fast library does of sums and products. */
static uint64_t
estimate_ns (const TinyOperation *operation)
{
  enum { CALL_NS = 2000, FLOPS_PER_NS = 16 };
  const int64_t *extents = operation->extents;
  double n = (double) extents[TINY_FACTOR_ROW] * (double) extents[TINY_FACTOR_COLUMN];
  n *= (double) extents[operation->kind == TINY_OPERATION_TRIANGULAR ? TINY_FACTOR_RIGHT
                                                                     : TINY_FACTOR_VALUE];
  double ns = CALL_NS + n * kinds[operation->kind].flops / FLOPS_PER_NS;
  return (uint64_t) (ns * (double) extents[TINY_FACTOR_BATCH]) + 1;
}

TinyStatus
cpu_lapack_claim (const char *arch,
                  const TinyOperation *operation,
                  TinyClaim *out,
                  TinyPluginError *error)
{
  TINY_TRY (TINY_CHECK_OUT (out, error));
  TINY_TRY (
      tiny_check_operation (operation, TINY_OPERATION_UPPER | TINY_OPERATION_UNIT, error));
  const char *fault = find_fault (operation);
  if (fault == NULL)
    TINY_FILL (out, .verdict = TINY_CLAIM_ACCEPTED, .cost_ns = estimate_ns (operation));
  else
    snprintf (out->reason, sizeof out->reason, "%s", fault);
  return TINY_STATUS_OK;
}

/* ---- programs ---- */
TinyStatus
cpu_lapack_compile (const TinyCompileArgs *args,
                    void **out_data,
                    uint64_t *out_size,
                    TinyPluginError *error)
{
  TINY_TRY (tiny_check_operation (args->operation, TINY_OPERATION_UPPER | TINY_OPERATION_UNIT,
                                  error));
  const char *fault = find_fault (args->operation);
  if (fault != NULL)
    return tiny_fail (error, TINY_STATUS_UNSUPPORTED, "%s: %s", args->name, fault);
  Program *program = cpu_host->alloc (sizeof *program);
  if (program == NULL)
    return tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "%s: no memory", args->name);
  memset (program, 0, sizeof *program);
  memcpy (program->magic, magic, sizeof magic);
  memcpy (&program->operation, args->operation, sizeof program->operation);
  *out_data = program;
  *out_size = sizeof *program;
  return TINY_STATUS_OK;
}

bool
cpu_lapack_is_program (const void *data, uint64_t size)
{
  return size >= sizeof magic && memcmp (data, magic, sizeof magic) == 0;
}

TinyStatus
cpu_lapack_load (const void *data,
                 uint64_t size,
                 const char *name,
                 TinyOperation *out,
                 TinyPluginError *error)
{
  Program program;
  if (size != sizeof program)
    return tiny_fail (error, TINY_STATUS_CORRUPT, "%s: a program of %llu bytes", name,
                      (unsigned long long) size);
  memcpy (&program, data, sizeof program);
  *out = program.operation;
  if (out->struct_size != sizeof *out)
    return tiny_fail (error, TINY_STATUS_CORRUPT, "%s: an operation of %u bytes", name,
                      out->struct_size);
  const char *fault = find_fault (out);
  if (fault != NULL)
    return tiny_fail (error,
                      cpu_lapack_get () != NULL ? TINY_STATUS_CORRUPT : TINY_STATUS_DRIVER,
                      "%s: %s", name, fault);
  return TINY_STATUS_OK;
}
