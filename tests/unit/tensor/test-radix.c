/* SPDX-License-Identifier: MIT
 *
 * test-radix.c: long rows are sorted by digits (tensor/tiny-radix.c): elements are stored at places that were
 * counted, on targets with and without words of 64 bits. Beside a count and a stable sort in C; python/torch has
 * more dtypes. */
#include <stdlib.h>

#include "tensor/tiny-tensor-operations.h"

enum { ROWS = 64, WIDTH = 520, N = ROWS * WIDTH, BINS = 1000 };

static gint32 numbers[N];

static gboolean
skips_without_device (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) x
      = g_object_ref_sink (tiny_tensor_zeros (TINY_DTYPE_F32, (gint64[]){ 1 }, 1));
  if (tiny_tensor_realize (x, &error))
    return FALSE;
  g_test_skip (error->message);
  return TRUE;
}

static TinyTensor *
make_numbers (const gint64 *shape, guint n_dims)
{
  guint32 state = 1;
  for (guint i = 0; i < N; i++) {
    state = state * 1664525 + 1013904223;
    numbers[i] = (gint32) (state >> 8) % BINS;
  }
  return tiny_tensor_new_from_data (NULL, TINY_DTYPE_I32, shape, n_dims, numbers,
                                    sizeof numbers);
}

static GBytes *
data_of (TinyTensor *given)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) x = g_object_ref_sink (given);
  GBytes *bytes = tiny_tensor_get_data (x, &error);
  g_assert_no_error (error);
  return bytes;
}

/* Sorted by few digits, and counted by where each begins. */
static void
test_counts (void)
{
  if (skips_without_device ())
    return;
  gint32 wanted[BINS] = { 0 };
  TinyTensor *x = make_numbers ((gint64[]){ N }, 1);
  g_autoptr (GBytes) found = data_of (tiny_tensor_bincount (x, NULL, BINS));
  for (guint i = 0; i < N; i++)
    wanted[numbers[i]]++;
  g_assert_cmpmem (g_bytes_get_data (found, NULL), g_bytes_get_size (found), wanted,
                   sizeof wanted);
}

static int
compare (const void *a, const void *b)
{
  gint32 i = *(const gint32 *) a, j = *(const gint32 *) b;
  return numbers[i] != numbers[j] ? numbers[i] - numbers[j] : i - j;
}

/* Where the elements of rows come from, equal ones in the order in which they were. */
static void
test_rows (void)
{
  if (skips_without_device ())
    return;
  g_autofree gint32 *wanted = g_new (gint32, N);
  TinyTensor *x = make_numbers ((gint64[]){ ROWS, WIDTH }, 2);
  g_autoptr (GBytes) found = data_of (tiny_tensor_argsort (x, 1, FALSE, TRUE));
  for (gint32 i = 0; i < N; i++)
    wanted[i] = i;
  for (guint row = 0; row < ROWS; row++)
    qsort (wanted + row * WIDTH, WIDTH, sizeof *wanted, compare);
  for (gint32 i = 0; i < N; i++)
    wanted[i] %= WIDTH;
  g_assert_cmpmem (g_bytes_get_data (found, NULL), g_bytes_get_size (found), wanted,
                   N * sizeof *wanted);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/tensor/radix/counts", test_counts);
  g_test_add_func ("/tensor/radix/rows", test_rows);
  return g_test_run ();
}
