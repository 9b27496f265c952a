/* SPDX-License-Identifier: MIT
 *
 * Proves that factors of matrices are claimed where a LAPACK is found and by that alone: what does not fit is declined
 * with a reason, a library that is not there or lacks symbols claims nothing, of several the fastest is taken, a damaged
 * program is refused, and matrices without a factor give NaNs and leave the others of their batch alone. */
#include "harness.h"

#include <dlfcn.h>
#include <glib/gstdio.h>
#include <link.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { N = 2 };

static TinyOperandView
view_of (uint32_t role, uint32_t buffer, int64_t rows, int64_t columns, int64_t batch)
{
  TinyOperandView view = { .role = role, .dtype = TINY_DTYPE_F32, .buffer = buffer };
  view.n_elements = (uint64_t) (rows * columns * batch);
  view.strides[TINY_FACTOR_ROW] = 1;
  view.strides[TINY_FACTOR_COLUMN] = rows;
  view.strides[TINY_FACTOR_BATCH] = rows * columns;
  return view;
}

/* Square matrices. */
static TinyOperation
cholesky_of (int64_t n, int64_t batch)
{
  TinyOperation operation = { .struct_size = sizeof operation,
                              .version = TINY_OPERATION_VERSION,
                              .kind = TINY_OPERATION_CHOLESKY,
                              .n_axes = TINY_FACTOR_VALUE + 1,
                              .n_operands = 2,
                              .n_buffers = 2,
                              .compute_dtype = TINY_DTYPE_F32,
                              .scale = 1 };
  for (unsigned i = 0; i < TINY_OPERATION_MAX_AXES; i++)
    operation.extents[i] = 1;
  operation.extents[TINY_FACTOR_BATCH] = batch;
  operation.extents[TINY_FACTOR_ROW] = operation.extents[TINY_FACTOR_COLUMN]
      = operation.extents[TINY_FACTOR_VALUE] = n;
  operation.operands[0] = view_of (TINY_ROLE_OUTPUT, 0, n, n, batch);
  operation.operands[1] = view_of (TINY_ROLE_A, 1, n, n, batch);
  return operation;
}

static TinyClaim
ask (const TinyOperation *operation)
{
  TinyClaim claim = { .struct_size = sizeof claim };
  TinyPluginError error = new_error ();
  TinyStatus status = h.llvm->claim (h.target.arch, operation, &claim, &error);
  if (status < 0)
    g_assert_cmpuint (claim.verdict, ==, TINY_CLAIM_DECLINED);
  else
    g_assert_cmpint (claim.verdict == TINY_CLAIM_DECLINED, ==, claim.reason[0] != 0);
  return claim;
}

static bool
has_library (void)
{
  const TinyOperation operation = cholesky_of (8, 1);
  const TinyClaim claim = ask (&operation);
  if (claim.verdict == TINY_CLAIM_ACCEPTED)
    return true;
  g_assert_nonnull (strstr (claim.reason, "TINY_LAPACK_LIBRARY"));
  g_test_skip (claim.reason);
  return false;
}

static void
test_claims (void)
{
  if (!has_library ())
    return;
  const TinyOperation good = cholesky_of (8, 3);
  const TinyOperation small = cholesky_of (8, 1), large = cholesky_of (512, 1);
  g_assert_cmpuint (ask (&good).verdict, ==, TINY_CLAIM_ACCEPTED);
  g_assert_cmpuint (ask (&small).cost_ns, >, 0);
  g_assert_cmpuint (ask (&large).cost_ns, >, ask (&small).cost_ns);
  g_assert_cmpuint (h.llvm->claim_kinds & TINY_OPERATION_BIT (TINY_OPERATION_SVD), !=, 0);
  g_assert_cmpuint (h.llvm->claim_kinds & TINY_OPERATION_BIT (TINY_OPERATION_MATMUL), ==, 0);
#define DECLINED(change)                                                                       \
  do {                                                                                         \
    TinyOperation bad = good;                                                                  \
    change;                                                                                    \
    g_assert_cmpuint (ask (&bad).verdict, ==, TINY_CLAIM_DECLINED);                            \
  } while (0)
  DECLINED (bad.kind = TINY_OPERATION_MATMUL);
  DECLINED (bad.kind = 63);
  DECLINED (bad.kind = 1000000);
  DECLINED (bad.flags = 1u << 20);
  DECLINED (bad.version++);
  DECLINED (bad.compute_dtype = TINY_DTYPE_F16);
  DECLINED (bad.scale = 2);
  DECLINED (bad.activation = TINY_ACTIVATION_RELU);
  DECLINED (bad.extents[TINY_FACTOR_COLUMN] = 7);
  DECLINED (bad.extents[TINY_FACTOR_VALUE] = 7);
  DECLINED (bad.extents[TINY_FACTOR_ROW] = 0);
  DECLINED (bad.extents[TINY_FACTOR_BATCH] = INT64_MAX);
  DECLINED (bad.extents[TINY_FACTOR_ROW] = bad.extents[TINY_FACTOR_COLUMN]
            = bad.extents[TINY_FACTOR_VALUE] = 1 << 20);
  DECLINED (bad.n_operands = 1);
  DECLINED (bad.operands[1].strides[TINY_FACTOR_ROW] = 8;
            bad.operands[1].strides[TINY_FACTOR_COLUMN] = 1);
  DECLINED (bad.operands[1].offset = 1);
  DECLINED (bad.operands[1].n_elements--);
  DECLINED (bad.operands[1].dtype = TINY_DTYPE_I32);
  DECLINED (bad.operands[1].buffer = 0);
  DECLINED (bad.operands[1].reserved0 = 1);
#undef DECLINED
}

/* ---- programs ---- */
static void *
compile (const TinyOperation *operation, uint64_t *size)
{
  TinyPluginError error = new_error ();
  TinyCompileArgs args = { .struct_size = sizeof args,
                           .arch = h.target.arch,
                           .name = "cholesky",
                           .operation = operation };
  void *data = NULL;
  if (h.llvm->compile (&args, &data, size, &error) != TINY_STATUS_OK)
    g_error ("%s", error.text);
  return data;
}

static TinyStatus
load (const void *data, uint64_t size, TinyPluginProgram **out)
{
  TinyPluginError error = new_error ();
  TinyProgramArgs args = { .struct_size = sizeof args,
                           .name = "cholesky",
                           .arch = h.target.arch,
                           .data = data,
                           .size = size,
                           .n_params = 2,
                           .group = { 1, 1, 1 } };
  return h.table->program_load (h.device, &args, out, &error);
}

static void
test_batch (void)
{
  if (!has_library ())
    return;
  enum { BATCH = 5 };
  float a[BATCH][N * N] = {
    { 4, 2, 2, 5 }, { 1, 2, 2, 1 }, { 9, 3, 3, 2 }, { NAN, 0, 0, 1 }, { 1, 0, INFINITY, 1 }
  };
  const float right[BATCH][N * N] = { { 2, 1, 0, 2 },
                                      { NAN, NAN, NAN, NAN },
                                      { 3, 1, 0, 1 },
                                      { NAN, NAN, NAN, NAN },
                                      { NAN, NAN, NAN, NAN } };
  float found[BATCH][N * N] = { { 0 } };
  TinyPluginProgram *program;
  uint64_t size;
  const TinyOperation operation = cholesky_of (N, BATCH);
  g_autofree void *data = compile (&operation, &size);
  g_assert_cmpint (load (data, size, &program), ==, TINY_STATUS_OK);
  Array arrays[] = { { found, sizeof found }, { a, sizeof a } };
  program_run (program, arrays, 2, NULL, 0, one_point);
  for (unsigned b = 0; b < BATCH; b++)
    for (unsigned i = 0; i < N * N; i++)
      g_assert_true (isnan (right[b][i]) ? isnan (found[b][i])
                                         : fabsf (found[b][i] - right[b][i]) < 1e-6f);
  h.table->program_unload (h.device, program);
}

static void
test_damaged (void)
{
  if (!has_library ())
    return;
  TinyPluginProgram *program;
  uint64_t size;
  const TinyOperation operation = cholesky_of (N, 1);
  g_autofree char *data = compile (&operation, &size);
  for (uint64_t n = 0; n < size; n += 97)
    g_assert_cmpint (load (data, n, &program), ==, TINY_STATUS_CORRUPT);
  for (uint64_t at = 0; at < size; at++) {
    data[at] ^= 0x5a;
    if (load (data, size, &program) == TINY_STATUS_OK) /* a byte of no account */
      h.table->program_unload (h.device, program);
    data[at] ^= 0x5a;
  }
  TinyOperation other = cholesky_of (N, 1);
  other.operands[1].n_elements = 1;
  memcpy (data + size - sizeof other, &other, sizeof other);
  g_assert_cmpint (load (data, size, &program), ==, TINY_STATUS_CORRUPT);
}

/* ---- other libraries ---- */
static void
test_absent (void)
{
  if (!g_test_subprocess ()) {
    g_setenv ("TINY_LAPACK_LIBRARY", "none", TRUE);
    g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
    g_unsetenv ("TINY_LAPACK_LIBRARY");
    g_test_trap_assert_passed ();
    return;
  }
  const TinyOperation operation = cholesky_of (8, 1);
  const TinyClaim claim = ask (&operation);
  g_assert_cmpuint (claim.verdict, ==, TINY_CLAIM_DECLINED);
  g_assert_nonnull (strstr (claim.reason, "TINY_LAPACK_LIBRARY"));
}

/* A library, but no LAPACK: said, as it was asked for by name. */
static void
test_incomplete (void)
{
  g_setenv ("TINY_LAPACK_LIBRARY", "libm.so.6", TRUE);
  g_test_trap_subprocess ("/plugins-cpu/lapack/absent", 0, G_TEST_SUBPROCESS_DEFAULT);
  g_unsetenv ("TINY_LAPACK_LIBRARY");
  g_test_trap_assert_failed ();
  g_test_trap_assert_stderr ("*TINY_LAPACK_LIBRARY=libm.so.6: it cannot be opened*");
}

/* One with integers of 64 bits under the names of those with 32. */
static void
test_wide (void)
{
  g_setenv ("TINY_LAPACK_LIBRARY", WHOLE_LAPACK, TRUE);
  g_setenv ("WHOLE_LAPACK_IS_WIDE", "1", TRUE);
  g_test_trap_subprocess ("/plugins-cpu/lapack/absent", 0, G_TEST_SUBPROCESS_DEFAULT);
  g_unsetenv ("WHOLE_LAPACK_IS_WIDE");
  g_unsetenv ("TINY_LAPACK_LIBRARY");
  g_test_trap_assert_failed ();
  g_test_trap_assert_stderr ("*has no LAPACK with integers of 32 bits*");
}

/* Names that distributions give to libraries, from the fastest to the system's. */
static const char *const libraries[] = { "libopenblasp.so.0", "libopenblas_pthreads.so.0",
                                         "libopenblaso.so.0", "libopenblas_openmp.so.0",
                                         "libopenblas.so.0",  "libopenblas.so.3",
                                         "libmkl_rt.so.2",    "libmkl_rt.so",
                                         "liblapack.so.3" };

static int
is_wanted (struct dl_phdr_info *info, size_t size, void *wanted)
{
  return g_str_equal (info->dlpi_name, wanted);
}

/* @n libraries that do not open hide the machine's own; those after them are whole. */
static void
check_taken (const char *folder, unsigned n)
{
  for (unsigned i = 0; i < G_N_ELEMENTS (libraries); i++) {
    g_autofree char *path = g_build_filename (folder, libraries[i], NULL);
    g_unlink (path);
    if (i < n)
      g_assert_true (g_file_set_contents (path, "", 0, NULL));
    else
      g_assert_cmpint (symlink (WHOLE_LAPACK, path), ==, 0);
  }
  g_autofree char *wanted = g_build_filename (folder, libraries[n], NULL);
  g_setenv ("TINY_TEST_WANTED", wanted, TRUE);
  g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
  g_test_trap_assert_passed ();
}

static void
test_fastest (void)
{
  if (g_test_subprocess ()) {
    const TinyOperation operation = cholesky_of (8, 1);
    char *wanted = (char *) (uintptr_t) g_getenv ("TINY_TEST_WANTED");
    g_assert_cmpuint (ask (&operation).verdict, ==, TINY_CLAIM_ACCEPTED);
    g_test_message ("%s is wanted", wanted);
    g_assert_cmpint (dl_iterate_phdr (is_wanted, wanted), ==, 1);
    return;
  }
  g_autofree char *folder = g_dir_make_tmp ("tinycore-lapack-XXXXXX", NULL);
  g_autofree char *before = g_strdup (g_getenv ("LD_LIBRARY_PATH"));
  g_autofree char *after = g_strjoin (":", folder, before, NULL);
  g_autofree char *chosen = g_strdup (g_getenv ("TINY_LAPACK_LIBRARY"));
  g_unsetenv ("TINY_LAPACK_LIBRARY");
  g_setenv ("LD_LIBRARY_PATH", after, TRUE);
  for (unsigned i = 0; i < G_N_ELEMENTS (libraries); i++)
    check_taken (folder, i);
  if (chosen != NULL)
    g_setenv ("TINY_LAPACK_LIBRARY", chosen, TRUE);
  if (before != NULL)
    g_setenv ("LD_LIBRARY_PATH", before, TRUE);
  else
    g_unsetenv ("LD_LIBRARY_PATH");
  for (unsigned i = 0; i < G_N_ELEMENTS (libraries); i++) {
    g_autofree char *path = g_build_filename (folder, libraries[i], NULL);
    g_unlink (path);
  }
  g_rmdir (folder);
}

/* The processor that the library computes for: the user's word, or else one with AVX2 where there is AVX2. */
static void
check_core (const char *word, const char *core)
{
  if (word != NULL)
    g_setenv ("OPENBLAS_CORETYPE", word, TRUE);
  else
    g_unsetenv ("OPENBLAS_CORETYPE");
  g_setenv ("TINY_TEST_WANTED", core, TRUE);
  g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
  g_test_trap_assert_passed ();
}

static void
test_processor (void)
{
  if (!g_test_subprocess ()) {
    const bool is_newer
        = strstr (h.target.arch, "avx2") != NULL && strstr (h.target.arch, "fma") != NULL;
    g_setenv ("TINY_LAPACK_LIBRARY", WHOLE_LAPACK, TRUE);
    check_core (NULL, is_newer ? "Haswell" : "Prescott");
    check_core ("Zen", "Zen");
    check_core ("Prescott", "Prescott");
    g_unsetenv ("OPENBLAS_CORETYPE");
    g_unsetenv ("TINY_LAPACK_LIBRARY");
    return;
  }
  const TinyOperation operation = cholesky_of (8, 1);
  g_autofree char *before = g_strdup (g_getenv ("OPENBLAS_CORETYPE"));
  g_assert_cmpuint (ask (&operation).verdict, ==, TINY_CLAIM_ACCEPTED);
  g_assert_cmpstr (g_getenv ("OPENBLAS_CORETYPE"), ==, before);
  void *library = dlopen (WHOLE_LAPACK, RTLD_NOW | RTLD_NOLOAD);
  g_assert_nonnull (library);
  void *address = dlsym (library, "openblas_get_corename");
  char *(*get_core) (void);
  g_assert_nonnull (address);
  memcpy (&get_core, &address, sizeof address);
  g_assert_cmpstr (get_core (), ==, g_getenv ("TINY_TEST_WANTED"));
  dlclose (library);
}

/* The most threads that a call of the library might use for a batch of @n matrices. */
static int
count_threads (_Atomic int *most, int64_t n)
{
  TinyPluginProgram *program;
  uint64_t size;
  const TinyOperation operation = cholesky_of (N, n);
  const uint64_t n_bytes = (uint64_t) n * N * N * sizeof (float);
  g_autofree void *data = compile (&operation, &size);
  g_autofree float *a = g_malloc0 (n_bytes), *found = g_malloc0 (n_bytes);
  g_assert_cmpint (load (data, size, &program), ==, TINY_STATUS_OK);
  Array arrays[] = { { found, n_bytes }, { a, n_bytes } };
  *most = 0;
  program_run (program, arrays, 2, NULL, 0, one_point);
  h.table->program_unload (h.device, program);
  return *most;
}

/* Those of a library with OpenMP: one for a matrix of a batch that our threads share, and theirs again afterwards. */
static void
test_threads (void)
{
  if (!g_test_subprocess ()) {
    g_autofree char *threads = g_strdup (g_getenv ("TINY_THREADS"));
    g_setenv ("TINY_THREADS", "2", TRUE);
    g_setenv ("TINY_LAPACK_LIBRARY", WHOLE_LAPACK, TRUE);
    g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
    g_unsetenv ("TINY_LAPACK_LIBRARY");
    g_unsetenv ("TINY_THREADS");
    if (threads != NULL)
      g_setenv ("TINY_THREADS", threads, TRUE);
    g_test_trap_assert_passed ();
    return;
  }
  void *library = dlopen (WHOLE_LAPACK, RTLD_NOW | RTLD_LOCAL);
  g_assert_nonnull (library);
  _Atomic int *most = dlsym (library, "whole_lapack_threads");
  g_assert_nonnull (most);
  g_assert_cmpint (count_threads (most, 1000), ==, 1);
  g_assert_cmpint (count_threads (most, 1), ==, 7);
  dlclose (library);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  harness_open ();
  g_test_add_func ("/plugins-cpu/lapack/claims", test_claims);
  g_test_add_func ("/plugins-cpu/lapack/batch", test_batch);
  g_test_add_func ("/plugins-cpu/lapack/damaged", test_damaged);
  g_test_add_func ("/plugins-cpu/lapack/absent", test_absent);
  g_test_add_func ("/plugins-cpu/lapack/incomplete", test_incomplete);
  g_test_add_func ("/plugins-cpu/lapack/wide", test_wide);
  g_test_add_func ("/plugins-cpu/lapack/fastest", test_fastest);
  g_test_add_func ("/plugins-cpu/lapack/processor", test_processor);
  g_test_add_func ("/plugins-cpu/lapack/threads", test_threads);
  int result = g_test_run ();
  harness_close ();
  return result;
}
