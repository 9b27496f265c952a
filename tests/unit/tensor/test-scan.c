/* SPDX-License-Identifier: MIT
 *
 * test-scan.c: sums, products and largest values up to each position, of lengths around those of blocks, along each
 * axis; and what a long scan reads and writes. All numbers are whole and small, so that every result is exact. */
#include <tiny.h>

#include "../default-device.h"

#define T(name) tiny_tensor_##name

typedef enum { SUM, PRODUCT, LARGEST } Kind;

static gint32
element (Kind kind, gint64 i)
{
  return kind == PRODUCT ? (i % 3 == 0 ? -1 : 1) : (gint32) (i * 7919 % 13) - 5;
}

static gint32
combine (Kind kind, gint32 x, gint32 y)
{
  return kind == SUM ? x + y : kind == PRODUCT ? x * y : MAX (x, y);
}

static TinyTensor *
scan (Kind kind, TinyTensor *x, int axis)
{
  TinyTensor *values, *positions;
  if (kind != LARGEST)
    return kind == SUM ? T (cumsum) (x, axis) : T (cumprod) (x, axis);
  T (cummax) (x, axis, &values, &positions);
  g_object_unref (positions);
  return values;
}

/* @shape is (outer, n, inner); the axis of n is scanned. */
static void
check (Kind kind, TinyDType dtype, const gint64 *shape)
{
  gint64 n = shape[0] * shape[1] * shape[2];
  g_autofree gint32 *values = g_new (gint32, n);
  for (gint64 i = 0; i < n; i++)
    values[i] = element (kind, i);
  TinyTensor *x
      = T (new_from_data) (NULL, TINY_DTYPE_I32, shape, 3, values, sizeof *values * (gsize) n);
  g_autoptr (TinyTensor) result
      = g_object_ref_sink (T (cast) (scan (kind, T (cast) (x, dtype), 1), TINY_DTYPE_I32));
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) data = T (get_data) (result, &error);
  g_assert_no_error (error);
  const gint32 *found = g_bytes_get_data (data, NULL);
  for (gint64 i = 0; i < n; i++) {
    if (i / shape[2] % shape[1] > 0)
      values[i] = combine (kind, values[i - shape[2]], values[i]);
    if (found[i] != values[i])
      return g_test_fail_printf ("(%d, %d, %d), element %d is %d, wanted %d", (int) shape[0],
                                 (int) shape[1], (int) shape[2], (int) i, found[i], values[i]);
  }
}

static void
test_values (void)
{
  static const gint64 lengths[] = { 1, 7, 8, 16, 17, 64, 129, 520 };
  if (skips_without_device ())
    return;
  for (guint i = 0; i < G_N_ELEMENTS (lengths) * 3; i++) {
    TinyDType dtype = i % 2 == 0 ? TINY_DTYPE_F32 : TINY_DTYPE_I32;
    check (i % 3, dtype, (gint64[]){ 3, lengths[i / 3], 1 });
    check (i % 3, dtype, (gint64[]){ 1, lengths[i / 3], 20 });
  }
}

/* A long scan reads its operand twice and writes its result once. What is between is a seventh of it, written and read
 * a few times, in two kernels for each doubling of eights. */
static void
test_traffic (void)
{
  if (skips_without_device ())
    return;
  const gint64 n = 1 << 18;
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) x = g_object_ref_sink (T (empty) (TINY_DTYPE_F32, &n, 1));
  g_assert_true (T (realize) (x, &error));
  for (Kind kind = SUM; kind <= PRODUCT; kind++) {
    g_autoptr (TinyTensor) y = g_object_ref_sink (scan (kind, x, 0));
    g_autoptr (GPtrArray) kernels = T (schedule) (y, NULL, 0, &error);
    g_assert_no_error (error);
    gint64 n_bytes = 0;
    for (guint i = 0; i < kernels->len; i++)
      n_bytes += ((const TinyKernelInfo *) kernels->pdata[i])->n_bytes;
    g_assert_cmpint (n_bytes, <, 4 * 4 * n);
    g_assert_cmpuint (kernels->len, <=, 11);
  }
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/tensor/scan/values", test_values);
  g_test_add_func ("/tensor/scan/traffic", test_traffic);
  return g_test_run ();
}
