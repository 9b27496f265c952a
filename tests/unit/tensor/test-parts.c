/* SPDX-License-Identifier: MIT
 *
 * test-parts.c: the bytes that putting n tensors side by side moves grow as n log n, where one kernel cannot read all; every
 * part is in its place. */
#include <tiny.h>

#include "../default-device.h"

enum { PARTS = 100, SIZE = 64 };

/* Bytes that the kernels of a stack of @n tensors in memory move. */
static double
count_bytes (guint n)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) parts = g_ptr_array_new_with_free_func (g_object_unref);
  for (guint i = 0; i < n; i++) {
    TinyTensor *part
        = tiny_tensor_contiguous (tiny_tensor_arange (TINY_DTYPE_F32, i, (double) i + SIZE, 1));
    g_ptr_array_add (parts, g_object_ref_sink (part));
    g_assert_true (tiny_tensor_realize (part, &error));
  }
  g_autoptr (TinyTensor) all
      = g_object_ref_sink (tiny_tensor_stack ((TinyTensor **) parts->pdata, n, 0));
  g_autoptr (GPtrArray) kernels = tiny_tensor_schedule (all, NULL, 0, &error);
  double n_bytes = 0;
  g_assert_no_error (error);
  for (guint i = 0; i < kernels->len; i++)
    n_bytes += (double) ((const TinyKernelInfo *) kernels->pdata[i])->n_bytes;
  g_test_message ("%u parts: %u kernels, %g bytes", n, kernels->len, n_bytes);
  return n_bytes;
}

static void
test_growth (void)
{
  const double most = 8; /* 4 × as many parts on twice the levels at most */
  if (skips_without_device ())
    return;
  g_assert_cmpfloat (count_bytes (4 * PARTS), <, most * count_bytes (PARTS));
}

/* Each part is where it belongs, however many there are and whatever their sizes. */
static void
test_places (void)
{
  g_autoptr (GError) error = NULL;
  if (skips_without_device ())
    return;
  for (guint n = 1; n < 40; n++) {
    g_autoptr (GPtrArray) parts = g_ptr_array_new ();
    gint64 n_all = 0;
    for (guint i = 0; i < n; i++) {
      const gint64 size = (5 * i) % 4; /* some have no elements */
      g_ptr_array_add (parts, tiny_tensor_arange (TINY_DTYPE_F32, (double) n_all,
                                                  (double) (n_all + size), 1));
      n_all += size;
    }
    g_autoptr (TinyTensor) all
        = g_object_ref_sink (tiny_tensor_cat ((TinyTensor **) parts->pdata, n, 0));
    g_autoptr (GBytes) bytes = tiny_tensor_get_data (all, &error);
    g_assert_no_error (error);
    const float *x = g_bytes_get_data (bytes, NULL);
    g_assert_cmpuint (g_bytes_get_size (bytes), ==, (gsize) n_all * sizeof *x);
    for (gint64 i = 0; i < n_all; i++)
      g_assert_cmpfloat (x[i], ==, (float) i);
  }
}

/* Parts without an element count along the axis all the same. */
static void
test_empty (void)
{
  const gint64 dims[] = { 0, 3 };
  for (guint n = 1; n < 40; n++) {
    g_autoptr (GPtrArray) parts = g_ptr_array_new ();
    for (guint i = 0; i < n; i++)
      g_ptr_array_add (parts, tiny_tensor_zeros (TINY_DTYPE_F32, dims, 2));
    g_autoptr (TinyTensor) all
        = g_object_ref_sink (tiny_tensor_cat ((TinyTensor **) parts->pdata, n, 1));
    const gint64 *shape = tiny_tensor_get_shape (all, NULL);
    g_assert_cmpint (shape[0], ==, 0);
    g_assert_cmpint (shape[1], ==, 3 * n);
  }
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/tensor/parts/growth", test_growth);
  g_test_add_func ("/tensor/parts/places", test_places);
  g_test_add_func ("/tensor/parts/empty", test_empty);
  return g_test_run ();
}
