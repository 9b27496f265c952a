/* SPDX-License-Identifier: MIT
 *
 * test-shard.c: tensors on several devices from C: what is cut where, floating references, errors, and that devices
 * work side by side. That every operation gives what it gives on one device is tests/python/test_shard.py. */
#include <string.h>

#include "../case-fails.h"
#include "autograd/tiny-gradient.h"
#include "engine/tiny-runtime.h"
#include "ir/tiny-shard.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"
#include "tensor/tiny-tensor-shard.h"
#include "tensor/tiny-variable.h"

#define T(name) tiny_tensor_##name

static const char *const pair[] = { "REF", "REF:1", NULL };

/* 0 1 2 … of f32. */
static TinyTensor *
count_up (gint64 n, gint64 m)
{
  return T (reshape) (T (arange) (TINY_DTYPE_F32, 0, (double) (n * m), 1), (gint64[]){ n, m },
                      2);
}

static void
check_counts (TinyTensor *tensor, gint64 n, double factor)
{
  g_autoptr (GError) error = NULL;
  g_autofree float *values = g_new (float, n);
  T (copy_data) (tensor, values, (gsize) n * sizeof *values, &error);
  g_assert_no_error (error);
  for (gint64 i = 0; i < n; i++)
    g_assert_cmpfloat (values[i], ==, (float) (factor * (double) i));
}

static void
check_error (TinyTensor *tensor, TinyError code, const char *part)
{
  g_autoptr (TinyTensor) owned = g_object_ref_sink (tensor);
  g_assert_error (T (get_error) (owned), TINY_ERROR, (gint) code);
  if (strstr (T (get_error) (owned)->message, part) == NULL)
    CASE_FAILS ("%s: no %s", T (get_error) (owned)->message, part);
}

/* Five rows are three and two. */
static void
test_pieces (void)
{
  g_autoptr (TinyTensor) x = g_object_ref_sink (T (shard) (count_up (5, 3), pair, -2));
  g_assert_cmpstr (T (get_device) (x), ==, "REF;REF:1");
  g_assert_true (T (realize) (x, NULL));
  tiny_runtime_lock ();
  const TinyNode *node = tiny_tensor_get_node (x);
  g_assert_cmpint (node->op, ==, TINY_OP_UNSHARD);
  g_assert_cmpint (node->arg, ==, 0);
  for (guint i = 0; i < 2; i++) {
    g_assert_cmpint (node->sources[i]->op, ==, TINY_OP_BUFFER);
    g_assert_cmpstr (node->sources[i]->text, ==, pair[i]);
    g_assert_cmpint (node->sources[i]->shape->v[0], ==, i == 0 ? 3 : 2);
  }
  tiny_runtime_unlock ();
  check_counts (x, 15, 1);
  const float twice[] = { 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28 };
  g_assert_true (T (write_data) (x, twice, sizeof twice, NULL));
  check_counts (x, 15, 2);
  g_autoptr (TinyTensor) columns = g_object_ref_sink (T (shard) (x, pair, 1));
  check_counts (columns, 15, 2);
  g_assert_true (T (write_data) (columns, twice, sizeof twice, NULL));
  check_counts (columns, 15, 2);
  g_autoptr (TinyTensor) whole = g_object_ref_sink (T (shard) (x, pair, TINY_NO_AXIS));
  g_autoptr (TinyTensor) like = g_object_ref_sink (T (shard_like) (whole, columns));
  check_counts (like, 15, 2);
  /* As another that is seen in other shapes than it is cut in. */
  g_autoptr (TinyTensor) block = g_object_ref_sink (
      T (reshape) (T (shard) (count_up (4, 3), pair, 0), (gint64[]){ 2, 2, 3 }, 3));
  g_assert_true (T (realize) (block, NULL));
  g_autoptr (TinyTensor) as_block = g_object_ref_sink (T (shard_like) (count_up (4, 3), block));
  g_assert_true (T (realize) (as_block, NULL));
  tiny_runtime_lock ();
  node = tiny_tensor_get_node (as_block);
  g_assert_cmpint (node->op, ==, TINY_OP_UNSHARD);
  g_assert_cmpint (node->arg, ==, 0);
  tiny_runtime_unlock ();
  check_counts (as_block, 12, 1);
  double sum;
  g_autoptr (TinyTensor) total = g_object_ref_sink (T (sum) (x, NULL, 0, FALSE));
  g_assert_true (T (item) (total, &sum, NULL));
  g_assert_cmpfloat (sum, ==, 210);
}

static void
test_in_place (void)
{
  TinyTensor *floating = count_up (4, 2);
  g_assert_true (T (shard_) (floating, pair, 0, NULL));
  g_assert_true (g_object_is_floating (floating));
  g_autoptr (TinyTensor) x = g_object_ref_sink (floating);
  g_assert_cmpstr (T (get_device) (x), ==, "REF;REF:1");
  T (set_requires_grad) (x, TRUE);
  g_autoptr (TinyTensor) loss = g_object_ref_sink (T (sum) (T (mul) (x, x), NULL, 0, FALSE));
  g_assert_true (T (backward) (loss, NULL));
  g_assert_cmpstr (T (get_device) (T (get_grad) (x)), ==, "REF;REF:1");
  check_counts (T (get_grad) (x), 8, 2);
  g_assert_true (T (assign) (x, T (mul_number) (x, 3), NULL));
  check_counts (x, 8, 3);
  g_assert_true (T (to_) (x, "REF:2", NULL));
  g_assert_cmpstr (T (get_device) (x), ==, "REF:2");
  g_assert_cmpstr (T (get_device) (T (get_grad) (x)), ==, "REF:2");
  g_assert_true (T (get_requires_grad) (x));
  check_counts (x, 8, 3);
  check_counts (T (get_grad) (x), 8, 2);
}

/* Sizes that are variables, along the axis of the cut and another one. */
static void
test_variables (void)
{
  for (gint axis = 0; axis < 2; axis++) {
    g_autoptr (TinyVariable) n = tiny_variable_new ("n", 1, 4);
    g_autoptr (TinyTensor) one = g_object_ref_sink (count_up (4, 4));
    g_autoptr (TinyTensor) two = g_object_ref_sink (T (shard) (one, pair, 0));
    TinyTensor *const sides[] = { one, two };
    for (gint64 value = 1; value <= 4; value++) {
      double sums[2] = { 0 };
      float first[16], second[16];
      for (guint i = 0; i < 2; i++) {
        g_autoptr (TinyTensor) part
            = g_object_ref_sink (T (shorten) (sides[i], axis, tiny_variable_bind (n, value)));
        g_autoptr (TinyTensor) more = g_object_ref_sink (T (mul_number) (part, 3));
        g_autoptr (TinyTensor) total = g_object_ref_sink (T (sum) (more, NULL, 0, FALSE));
        g_assert_true (T (item) (total, &sums[i], NULL));
        g_assert_true (T (copy_data) (more, i == 0 ? first : second,
                                      (gsize) value * 4 * sizeof (float), NULL));
      }
      g_assert_cmpfloat (sums[0], ==, sums[1]);
      g_assert_cmpmem (first, (gsize) value * 16, second, (gsize) value * 16);
    }
  }
  g_autoptr (TinyVariable) n = tiny_variable_new ("n", 1, 4);
  check_error (T (shard) (T (shorten) (count_up (4, 4), 0, tiny_variable_bind (n, 2)), pair, 1),
               TINY_ERROR_INVALID, "a variable");
  check_error (
      T (to) (T (shorten) (count_up (4, 4), 0, tiny_variable_bind (n, 2)), "REF;REF:1"),
      TINY_ERROR_INVALID, "one device only");
}

static void
test_errors (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) x = g_object_ref_sink (count_up (3, 2));
  check_error (T (shard) (x, NULL, 0), TINY_ERROR_INVALID, "no device is given");
  check_error (T (shard) (x, (const char *const[]){ NULL }, 0), TINY_ERROR_INVALID,
               "no device");
  check_error (T (shard) (x, (const char *const[]){ "REF", "", NULL }, 0), TINY_ERROR_INVALID,
               "without a name");
  check_error (T (shard) (x, (const char *const[]){ "REF", "REF:0", NULL }, 0),
               TINY_ERROR_INVALID, "REF is there twice");
  check_error (T (shard) (x, (const char *const[]){ "REF:0-3", NULL }, 0), TINY_ERROR_INVALID,
               "axis 0 of shape (3, 2) has no part for each of REF;REF:1;REF:2;REF:3");
  check_error (T (shard) (x, pair, 2), TINY_ERROR_INVALID, "axis 2 is outside");
  check_error (T (shard) (NULL, pair, 0), TINY_ERROR_INVALID, "no tensor");
  check_error (T (shard_like) (x, NULL), TINY_ERROR_INVALID, "no tensor");
  check_error (T (shard_like) (NULL, x), TINY_ERROR_INVALID, "no tensor");
  check_error (T (to) (x, "REF:64"), TINY_ERROR_NO_DEVICE, "the same again up to REF:63");
  check_error (T (to) (x, "REF;"), TINY_ERROR_INVALID, "without a name");
  check_error (T (to) (x, ""), TINY_ERROR_INVALID, "without a name");
  check_error (T (shard) (T (sub) (x, count_up (2, 2)), pair, 0), TINY_ERROR_INVALID, "sub");
  check_error (T (add) (T (shard) (x, pair, 0), T (to) (x, "REF")), TINY_ERROR_INVALID,
               "arguments are on REF;REF:1 and on REF");
  g_assert_false (T (shard_) (x, pair, 5, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_false (T (shard_) (x, NULL, 0, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  check_counts (x, 6, 1);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/tensor/shard/pieces", test_pieces);
  g_test_add_func ("/tensor/shard/in-place", test_in_place);
  g_test_add_func ("/tensor/shard/variables", test_variables);
  g_test_add_func ("/tensor/shard/errors", test_errors);
  return g_test_run ();
}
