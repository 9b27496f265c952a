/* SPDX-License-Identifier: MIT
 *
 * test-inspect.c: the kernels that would compute a tensor are those that do, and listing them runs none; its graph as text. */
#include <string.h>
#include <tiny.h>

#include "../default-device.h"

#define T(name) tiny_tensor_##name

static TinyTensor *
make (gint64 n)
{
  return T (arange) (TINY_DTYPE_F32, 0, (double) n, 1);
}

static void
test_schedule (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) x = g_object_ref_sink (T (contiguous) (make (4)));
  g_assert_true (T (realize) (x, &error));
  g_autoptr (TinyTensor) y = g_object_ref_sink (T (sum) (T (exp) (x), NULL, 0, FALSE));
  const guint64 before = tiny_get_counter ("kernels");
  g_autoptr (GPtrArray) kernels = T (schedule) (y, NULL, 0, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (kernels->len, ==, 1);
  g_assert_cmpuint (tiny_get_counter ("kernels"), ==, before);
  g_assert_false (T (is_realized) (y));
  const TinyKernelInfo *info = kernels->pdata[0];
  g_assert_nonnull (strstr (info->text, "exp2"));
  g_assert_nonnull (strstr (info->text, info->name));
  g_assert_nonnull (info->source);
  g_assert_cmpstr (info->device, ==, T (get_device) (x));
  g_assert_cmpint (info->n_bytes, ==, 20);
  g_assert_true (T (realize) (y, &error));
  g_assert_cmpuint (tiny_get_counter ("kernels"), ==, before + 1);
  g_autoptr (GPtrArray) none = T (schedule) (y, &x, 1, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (none->len, ==, 0);
}

static void
test_graph (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) x = g_object_ref_sink (T (contiguous) (make (4)));
  g_assert_true (T (realize) (x, &error));
  g_autoptr (TinyTensor) y = g_object_ref_sink (T (mul) (x, x));
  g_autofree char *text = T (print_graph) (y, &error);
  g_assert_no_error (error);
  g_assert_nonnull (strstr (text, "param.f32{slot=0, shape=[4]"));
  g_assert_nonnull (strstr (text, "mul.f32(%0, %0)"));
  g_assert_false (T (is_realized) (y));
  g_autoptr (TinyTensor) wrong = g_object_ref_sink (T (reshape) (x, ((gint64[]){ 3 }), 1));
  g_assert_null (T (print_graph) (wrong, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_null (T (schedule) (wrong, NULL, 0, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/tensor/inspect/schedule", test_schedule);
  g_test_add_func ("/tensor/inspect/graph", test_graph);
  return g_test_run ();
}
