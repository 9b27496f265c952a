/* SPDX-License-Identifier: MIT
 *
 * test-rounds.c: sums, scans, positions of the largest and products of matrices over so many elements that a driver
 * may end their loops (TinyTarget.max_rounds), on the default device, optimised and in the order of the kernel. All
 * numbers are whole and small, so that every result is exact. */
#include <tiny.h>

#include "../default-device.h"
#include "base/tiny-env.h"
#include "engine/tiny-runtime.h"

#define T(name) tiny_tensor_##name

static gint32
element (gint64 i)
{
  return (gint32) (i * 7919 % 13) - 5;
}

static TinyTensor *
make (TinyDType dtype, const gint64 *shape, guint n_dims)
{
  gint64 n = 1;
  for (guint i = 0; i < n_dims; i++)
    n *= shape[i];
  g_autofree gint32 *values = g_new (gint32, n);
  for (gint64 i = 0; i < n; i++)
    values[i] = element (i);
  TinyTensor *whole = T (new_from_data) (NULL, TINY_DTYPE_I32, shape, n_dims, values,
                                         sizeof *values * (gsize) n);
  return T (cast) (whole, dtype);
}

/* Fails the case at the first element of @value that is not @wanted's. */
static void
check (TinyTensor *value, const gint64 *wanted, gsize n)
{
  g_autoptr (TinyTensor) owned = g_object_ref_sink (T (cast) (value, TINY_DTYPE_I32));
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) data = T (get_data) (owned, &error);
  g_assert_no_error (error);
  const gint32 *found = g_bytes_get_data (data, NULL);
  for (gsize i = 0; i < n; i++)
    if (found[i] != wanted[i])
      return g_test_fail_printf ("element %zu is %d, wanted %" G_GINT64_FORMAT, i, found[i],
                                 wanted[i]);
}

/* sum[0] of all, largest[0] where the largest is first, scan[i] of those up to i. */
static void
test_vector (gconstpointer data)
{
  const gint64 n = GPOINTER_TO_INT (data);
  g_autofree gint64 *scan = g_new (gint64, n);
  gint64 largest = 0;
  for (gint64 i = 0; i < n; i++) {
    scan[i] = element (i) + (i > 0 ? scan[i - 1] : 0);
    largest = element (i) > element (largest) ? i : largest;
  }
  check (T (sum) (make (TINY_DTYPE_I32, &n, 1), NULL, 0, FALSE), &scan[n - 1], 1);
  check (T (sum) (make (TINY_DTYPE_F32, &n, 1), NULL, 0, FALSE), &scan[n - 1], 1);
  check (T (argmax) (make (TINY_DTYPE_F32, &n, 1), 0, FALSE), &largest, 1);
  check (T (cumsum) (make (TINY_DTYPE_I32, &n, 1), 0), scan, (gsize) n);
}

/* (M, n) @ (n, N), and the sum of an (n, 2, 3) over the outer two axes, in loops one inside the other. */
static void
test_matmul (gconstpointer data)
{
  enum { M = 2, N = 3 };
  const gint64 n = GPOINTER_TO_INT (data);
  gint64 product[M * N] = { 0 }, sums[N] = { 0 };
  for (gint64 i = 0; i < M * N; i++)
    for (gint64 k = 0; k < n; k++)
      product[i] += element (i / N * n + k) * element (k * N + i % N);
  for (gint64 i = 0; i < n * 2 * N; i++)
    sums[i % N] += element (i);
  check (T (matmul) (make (TINY_DTYPE_F32, (gint64[]){ M, n }, 2),
                     make (TINY_DTYPE_F32, (gint64[]){ n, N }, 2)),
         product, M * N);
  check (T (sum) (make (TINY_DTYPE_I32, (gint64[]){ n, 2, N }, 3), (gint[]){ 0, 1 }, 2, FALSE),
         sums, N);
}

/* So many sums that none is split, of as many elements each as a variable says. */
static void
test_variable (gconstpointer data)
{
  enum { ROWS = 1025 };
  const gint64 n = GPOINTER_TO_INT (data), bound = n - 5;
  g_autoptr (TinyVariable) size = tiny_variable_new ("size", 1, n);
  g_autofree gint64 *wanted = g_new0 (gint64, ROWS);
  for (gint64 i = 0; i < bound; i++)
    wanted[0] += element (i);
  for (gint64 i = 1; i < ROWS; i++)
    wanted[i] = wanted[0] + i * bound;
  TinyTensor *x = T (reshape) (make (TINY_DTYPE_I32, &n, 1), (gint64[]){ 1, n }, 2);
  TinyTensor *rows
      = T (reshape) (T (arange) (TINY_DTYPE_I32, 0, ROWS, 1), (gint64[]){ ROWS, 1 }, 2);
  x = T (shorten) (T (contiguous) (x), 1, tiny_variable_bind (size, bound));
  check (T (sum) (T (add) (x, rows), (gint[]){ 1 }, 1, FALSE), wanted, ROWS);
}

/* The sizes are others than above: programs that were made are kept. */
static void
test_in_order (gconstpointer data)
{
  gpointer other = GINT_TO_POINTER (GPOINTER_TO_INT (data) + 1);
  tiny_env_set_int (TINY_ENV_NO_OPT, 1);
  test_vector (other);
  test_matmul (other);
  tiny_env_set_int (TINY_ENV_NO_OPT, 0);
}

int
main (int argc, char **argv)
{
  static const struct {
    const char *name;
    GTestDataFunc run;
  } tests[]
      = { { "vector", test_vector }, { "matmul", test_matmul }, { "in-order", test_in_order } };
  static const gint sizes[] = { 70001, 1200000 };
  g_test_init (&argc, &argv, NULL);
  if (skips_without_device ())
    return 0;
  for (guint i = 0; i < G_N_ELEMENTS (tests) * G_N_ELEMENTS (sizes); i++) {
    gint n = sizes[i % G_N_ELEMENTS (sizes)];
    g_autofree char *path
        = g_strdup_printf ("/tensor/rounds/%s/%d", tests[i / G_N_ELEMENTS (sizes)].name, n);
    g_test_add_data_func (path, GINT_TO_POINTER (n), tests[i / G_N_ELEMENTS (sizes)].run);
  }
  g_test_add_data_func ("/tensor/rounds/variable/70001", GINT_TO_POINTER (70001),
                        test_variable);
  return g_test_run ();
}
