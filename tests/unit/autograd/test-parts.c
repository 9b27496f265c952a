/* SPDX-License-Identifier: MIT
 *
 * test-parts.c: the gradient of a value that is read slice by slice is every slice's in its place, and the bytes that
 * putting n of them together moves grow as n log n. */
#include <tiny.h>

#include "../default-device.h"

enum { SLICES = 64, SIZE = 64, FEW = 16 }; /* few: each is a part of one sum */

/* The sum of (t x[from .. from + size])² for slices t of a row of @n values, @step apart, each of them stored if @stores. */
static TinyTensor *
sum_slices (TinyTensor *x, gint64 n, gint64 size, gint64 step, gboolean stores)
{
  TinyTensor *sum = tiny_tensor_scalar (0);
  for (gint64 from = 0, t = 1; from + size <= n; from += step, t++) {
    TinyTensor *slice = tiny_tensor_mul (tiny_tensor_slice (x, 0, from, from + size, 1),
                                         tiny_tensor_scalar (t));
    TinyTensor *square = tiny_tensor_mul (slice, slice);
    square = stores ? tiny_tensor_contiguous (square) : square;
    sum = tiny_tensor_add (sum, tiny_tensor_sum (square, NULL, 0, FALSE));
  }
  return g_object_ref_sink (sum);
}

static TinyTensor *
make_input (gint64 n, GError **error)
{
  TinyTensor *x = g_object_ref_sink (
      tiny_tensor_contiguous (tiny_tensor_arange (TINY_DTYPE_F32, 0, (double) n, 1)));
  tiny_tensor_realize (x, error);
  tiny_tensor_set_requires_grad (x, TRUE);
  return x;
}

/* Slices that touch, have gaps between them, and overlap: x gets 2 t² x of each slice t that it is in. */
static void
test_places (void)
{
  static const gint64 cases[][2] = { { 3, 3 }, { 2, 5 }, { 5, 2 }, { 4, 1 }, { 1, 1 } };
  if (skips_without_device ())
    return;
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    const gint64 n = 150, size = cases[i][0], step = cases[i][1];
    g_autoptr (GError) error = NULL;
    g_autoptr (TinyTensor) x = make_input (n, &error);
    g_autoptr (TinyTensor) sum = sum_slices (x, n, size, step, TRUE);
    g_assert_true (tiny_tensor_backward (sum, &error));
    g_autoptr (GBytes) bytes = tiny_tensor_get_data (tiny_tensor_get_grad (x), &error);
    g_assert_no_error (error);
    const float *found = g_bytes_get_data (bytes, NULL);
    for (gint64 k = 0; k < n; k++) {
      double expected = 0;
      for (gint64 from = 0, t = 1; from + size <= n; from += step, t++)
        if (k >= from && k < from + size)
          expected += 2.0 * (double) (t * t * k);
      g_assert_cmpfloat (ABS (found[k] - expected), <=, 1e-6 * expected);
    }
  }
}

/* The kernels of the gradient of @n slices, and the bytes that they move. */
static guint
count_kernels (gint64 n, gboolean stores, double *out_bytes)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) x = make_input (n * SIZE, &error);
  g_autoptr (TinyTensor) sum = sum_slices (x, n * SIZE, SIZE, SIZE, stores);
  g_assert_true (tiny_tensor_backward (sum, &error));
  g_autoptr (GPtrArray) kernels
      = tiny_tensor_schedule (tiny_tensor_get_grad (x), NULL, 0, &error);
  *out_bytes = 0;
  g_assert_no_error (error);
  for (guint i = 0; i < kernels->len; i++)
    *out_bytes += (double) ((const TinyKernelInfo *) kernels->pdata[i])->n_bytes;
  g_test_message ("%d slices: %u kernels, %g bytes", (int) n, kernels->len, *out_bytes);
  return kernels->len;
}

static void
test_growth (void)
{
  const double most = 8; /* 4 × as many slices on twice the levels at most */
  double few = 0, many = 0;
  if (skips_without_device ())
    return;
  count_kernels (SLICES, TRUE, &few);
  count_kernels (4 * SLICES, TRUE, &many);
  g_assert_cmpfloat (many, <, most * few);
}

/* Slices that are computed in few operations are few kernels, and move few bytes: each is read and written on two levels
 * at most beside its own. */
static void
test_cheap (void)
{
  if (skips_without_device ())
    return;
  for (gint64 n = FEW + 1; n <= SLICES; n++) {
    double n_bytes = 0;
    g_assert_cmpuint (count_kernels (n, FALSE, &n_bytes), <=, 4);
    g_assert_cmpfloat (n_bytes, <=, 6.0 * sizeof (float) * SIZE * (double) n);
  }
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/autograd/parts/places", test_places);
  g_test_add_func ("/autograd/parts/growth", test_growth);
  g_test_add_func ("/autograd/parts/cheap", test_cheap);
  return g_test_run ();
}
