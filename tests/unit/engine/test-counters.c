/* SPDX-License-Identifier: MIT
 *
 * test-counters.c: what is computed is counted, by name, until counting begins anew. */
#include <math.h>

#include "base/tiny-stats.h"
#include "engine/tiny-counters.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor.h"

static void
test_count (void)
{
  g_autoptr (GError) error = NULL;
  tiny_reset_counters ();
  g_assert_cmpuint (tiny_get_counter ("kernels"), ==, 0);
  g_autoptr (TinyTensor) x = g_object_ref_sink (tiny_tensor_arange (TINY_DTYPE_F32, 0, 64, 1));
  g_autoptr (TinyTensor) y
      = g_object_ref_sink (tiny_tensor_square (tiny_tensor_add_number (x, 0.5)));
  g_assert_true (tiny_tensor_realize (y, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (tiny_get_counter ("kernels"), >=, 1);
  g_assert_cmpuint (tiny_get_counter ("flops"), >=, 64);
  g_assert_cmpuint (tiny_get_counter ("bytes"), >=, 64 * 4);
  g_assert_cmpuint (tiny_get_counter ("schedules"), >=, 1);
  g_assert_cmpuint (tiny_get_counter ("ns-run"), >, 0);
  tiny_reset_counters ();
  for (const char *const *name
       = (const char *const[]){ "kernels", "flops", "bytes", "ns-run", NULL };
       *name != NULL; name++)
    g_assert_cmpuint (tiny_get_counter (*name), ==, 0);
}

/* The graphs that a chain of @n products, whose kernels are the same, takes to realise. */
static guint64
count_graphs (guint n)
{
  g_autoptr (GError) error = NULL;
  TinyStats before, work;
  const gint64 size = 4, shape[] = { size, size };
  g_autoptr (TinyTensor) w
      = g_object_ref_sink (tiny_tensor_full (TINY_DTYPE_F32, shape, 2, 0.5));
  g_assert_true (tiny_tensor_realize (w, &error));
  TinyTensor *y = tiny_tensor_arange (TINY_DTYPE_F32, 0, size, 1);
  for (guint i = 0; i < n; i++)
    y = tiny_tensor_sin (tiny_tensor_matmul (y, w));
  g_autoptr (TinyTensor) all = g_object_ref_sink (y);
  tiny_stats_get (&before);
  g_assert_true (tiny_tensor_realize (all, &error));
  g_assert_no_error (error);
  tiny_stats_since (&before, &work);
  return work.n_graphs;
}

/* A kernel that a plan runs many times is looked up once. */
static void
test_same (void)
{
  tiny_reset_counters ();
  count_graphs (3);
  g_assert_cmpuint (count_graphs (10), ==, count_graphs (20));
  g_assert_cmpuint (tiny_get_counter ("kernels"), >=, 33);
}

/* The nodes that are listed where @n values wait, each made of the one before, and memory changes that all are made of. */
static guint64
count_listed (guint n)
{
  g_autoptr (GError) error = NULL;
  TinyStats before, work;
  const gint64 size = 2;
  g_autoptr (GPtrArray) waiting = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (TinyTensor) w
      = g_object_ref_sink (tiny_tensor_full (TINY_DTYPE_F32, &size, 1, 0.5));
  g_assert_true (
      tiny_tensor_assign (w, tiny_tensor_full (TINY_DTYPE_F32, &size, 1, 1), &error));
  g_assert_true (tiny_tensor_realize (w, &error));
  g_ptr_array_add (waiting, g_object_ref (w));
  for (guint i = 0; i < n; i++)
    g_ptr_array_add (waiting,
                     g_object_ref_sink (tiny_tensor_sin (waiting->pdata[waiting->len - 1])));
  g_assert_true (
      tiny_tensor_assign (w, tiny_tensor_full (TINY_DTYPE_F32, &size, 1, 9), &error));
  tiny_stats_get (&before);
  g_assert_true (tiny_tensor_realize (w, &error));
  tiny_stats_since (&before, &work);
  double last;
  g_assert_true (
      tiny_tensor_item (tiny_tensor_max (waiting->pdata[n], NULL, 0, FALSE), &last, &error));
  double expected = 1; /* of the memory as it was */
  for (guint i = 0; i < n; i++)
    expected = sin (expected);
  g_assert_cmpfloat_with_epsilon (last, expected, 1e-4);
  return work.n_listed;
}

/* Each value that waits is looked at once. */
static void
test_listed (void)
{
  enum { FEW = 100, MANY = 400, MOST_FOR_EACH = 16 };
  const guint64 few = count_listed (FEW), many = count_listed (MANY);
  g_assert_cmpuint (many, <, few + (MANY - FEW) * MOST_FOR_EACH);
}

static void
test_unknown (void)
{
  g_assert_cmpuint (tiny_get_counter ("no such"), ==, 0);
  g_assert_cmpuint (tiny_get_counter (NULL), ==, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/engine/counters/count", test_count);
  g_test_add_func ("/engine/counters/listed", test_listed);
  g_test_add_func ("/engine/counters/same", test_same);
  g_test_add_func ("/engine/counters/unknown", test_unknown);
  return g_test_run ();
}
