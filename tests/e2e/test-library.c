/* SPDX-License-Identifier: MIT
 *
 * test-library.c: a program that uses the shared library wrongly: the GError names both operands, stays
 * with what is built on it, and costs nothing; and rightly for long: memory does not grow.
 *
 * Only tiny.h is included, and only the shared library linked, as a user's program would. */
#include <string.h>
#include <tiny.h>

#include "../unit/case-fails.h"

enum { EAGER_STEPS = 5000, WARM_STEPS = 6000, N = 1000 };
#define MAX_GROWTH (1 << 20)

#define SHAPE(...)  (const gint64[]){ __VA_ARGS__ }, G_N_ELEMENTS (((gint64[]){ __VA_ARGS__ }))
#define FLOATS(...) tiny_tensor_full (TINY_DTYPE_F32, SHAPE (__VA_ARGS__), 1)
#define INTS(...)   tiny_tensor_full (TINY_DTYPE_I32, SHAPE (__VA_ARGS__), 1)

static TinyTensor *
on (const char *device, gint64 n)
{
  g_autofree float *zeros = g_new0 (float, n);
  return tiny_tensor_new_from_data (device, TINY_DTYPE_F32, &n, 1, zeros,
                                    (gsize) n * sizeof *zeros);
}

/* Takes the floating @tensor: it carries an error of @code that holds every one of the texts, and so
 * does what is built on it. */
static void
refused (TinyTensor *tensor, TinyError code, const char *const *parts)
{
  g_autoptr (TinyTensor) on_top
      = g_object_ref_sink (tiny_tensor_relu (tiny_tensor_add_number (tensor, 1)));
  g_autoptr (GError) error = NULL;
  g_assert_false (tiny_tensor_realize (on_top, &error));
  g_test_message ("%s", error->message);
  g_assert_error (error, TINY_ERROR, (int) code);
  for (; *parts != NULL; parts++)
    if (strstr (error->message, *parts) == NULL)
      CASE_FAILS ("“%s” does not hold “%s”", error->message, *parts);
  g_assert_cmpuint (strlen (error->message), <, 300);
  g_assert_false (g_str_has_suffix (error->message, "."));
  g_assert_cmpstr (tiny_tensor_get_error (on_top)->message, ==, error->message);
}
#define REFUSED(tensor, code, ...)                                                             \
  refused (tensor, TINY_ERROR_##code, (const char *const[]){ __VA_ARGS__, NULL })

static void
test_shapes (void)
{
  REFUSED (tiny_tensor_matmul (FLOATS (3, 4), FLOATS (5, 6)), INVALID, "matmul", "(3, 4)",
           "(5, 6)", "4 and 5");
  REFUSED (tiny_tensor_add (FLOATS (3, 4), FLOATS (5)), INVALID, "add", "(3, 4)", "(5,)");
  REFUSED (tiny_tensor_where (tiny_tensor_gt (FLOATS (2), FLOATS (1)), FLOATS (3), FLOATS (1)),
           INVALID, "where", "(2,)", "(3,)");
  REFUSED (tiny_tensor_reshape (FLOATS (3, 4), SHAPE (5, 2)), INVALID, "reshape", "(3, 4)",
           "(5, 2)");
  REFUSED (tiny_tensor_expand (FLOATS (3, 4), SHAPE (3, 5)), INVALID, "expand", "(3, 4)",
           "(3, 5)");
  REFUSED (tiny_tensor_permute (FLOATS (3, 4), (const gint[]){ 0, 2 }, 2), INVALID, "permute",
           "(3, 4)");
  REFUSED (tiny_tensor_sum (FLOATS (3, 4), (const gint[]){ 2 }, 1, FALSE), INVALID, "sum", "2",
           "(3, 4)");
  REFUSED (tiny_tensor_conv2d (FLOATS (1, 3, 8, 8), FLOATS (4, 2, 3, 3), NULL, NULL, 0, NULL, 0,
                               NULL, 0, 1),
           INVALID, "conv2d", "(1, 3, 8, 8)", "(4, 2, 3, 3)");
  REFUSED (tiny_tensor_conv2d (FLOATS (1, 1, 2, 2), FLOATS (1, 1, 5, 5), NULL, NULL, 0, NULL, 0,
                               NULL, 0, 1),
           INVALID, "conv2d");
  REFUSED (tiny_tensor_cross_entropy (FLOATS (4, 10), INTS (5), NULL, -100, "mean", 0), INVALID,
           "cross_entropy", "(4, 10)", "(5,)");
  REFUSED (tiny_tensor_matmul (FLOATS (3, 4), tiny_tensor_full (TINY_DTYPE_F32, NULL, 0, 1)),
           INVALID, "matmul", "(3, 4)", "()");
  TinyTensor *parts[] = { FLOATS (2, 3), FLOATS (2, 4) };
  REFUSED (tiny_tensor_cat (parts, 2, 0), INVALID, "cat", "(2, 3)", "(2, 4)");
}

static void
test_dtypes (void)
{
  REFUSED (tiny_tensor_bitwise_and (FLOATS (3), FLOATS (3)), INVALID, "bitwise_and", "f32");
  REFUSED (tiny_tensor_lshift (FLOATS (3), FLOATS (3)), INVALID, "lshift", "f32");
  REFUSED (tiny_tensor_uniform (TINY_DTYPE_I32, SHAPE (3), 0, 1), INVALID, "uniform", "i32");
  REFUSED (tiny_tensor_cross_entropy (FLOATS (4, 10), FLOATS (4), NULL, -100, "mean", 0),
           INVALID, "cross_entropy", "f32");
  REFUSED (tiny_tensor_one_hot (FLOATS (4), 3), INVALID, "one_hot", "f32");
  REFUSED (tiny_tensor_bitcast (FLOATS (3), TINY_DTYPE_F64), INVALID, "bitcast", "f32", "f64");
  REFUSED (tiny_tensor_index_select (FLOATS (4), 0, FLOATS (4)), INVALID, "index_select",
           "f32");
}

static void
test_devices (void)
{
  REFUSED (tiny_tensor_add (on ("CPU", 3), on ("REF", 3)), INVALID, "add", "CPU", "REF");
  REFUSED (on ("NOPE", 3), NO_DEVICE, "NOPE", "CPU", "REF");
  REFUSED (on ("CPU:NOPE", 3), NO_DEVICE, "NOPE", "LLVM", "CLANG");
  REFUSED (tiny_tensor_to (FLOATS (3), "NOPE"), NO_DEVICE, "NOPE", "CPU");
  REFUSED (on (":", 3), INVALID, "character 1");
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) moved = g_object_ref_sink (
      tiny_tensor_add (tiny_tensor_to (on ("CPU", 3), "REF"), on ("REF", 3)));
  g_assert_true (tiny_tensor_realize (moved, &error));
  g_assert_no_error (error);
}

/* Sizes that no machine has: an error, not a crash, and the next computation works. */
static void
test_too_large (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) huge = g_object_ref_sink (tiny_tensor_contiguous (
      tiny_tensor_full (TINY_DTYPE_F64, SHAPE (1 << 20, 1 << 20, 64), 1)));
  g_assert_false (tiny_tensor_realize (huge, &error));
  g_test_message ("%s", error->message);
  g_clear_error (&error);
  g_autoptr (TinyTensor) wrong = g_object_ref_sink (
      tiny_tensor_full (TINY_DTYPE_F32, SHAPE (G_MAXINT64, G_MAXINT64), 1));
  g_assert_false (tiny_tensor_realize (wrong, &error));
  g_test_message ("%s", error->message);
  g_clear_error (&error);
  g_autoptr (TinyTensor) small = g_object_ref_sink (tiny_tensor_add (FLOATS (3), FLOATS (3)));
  g_assert_true (tiny_tensor_realize (small, &error));
}

static void
test_reading (void)
{
  double value;
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) many = g_object_ref_sink (FLOATS (3, 4));
  g_assert_false (tiny_tensor_item (many, &value, &error));
  g_test_message ("%s", error->message);
  g_assert_nonnull (strstr (error->message, "12 elements"));
  g_clear_error (&error);
  g_autoptr (TinyTensor) other = g_object_ref_sink (FLOATS (3));
  g_assert_true (tiny_tensor_realize (many, NULL));
  g_assert_false (tiny_tensor_assign (many, other, &error));
  g_test_message ("%s", error->message);
  g_assert_nonnull (strstr (error->message, "(3, 4)"));
  g_assert_nonnull (strstr (error->message, "(3,)"));
}

static gint64
resident_bytes (void)
{
  g_autofree char *text = NULL;
  g_assert_true (g_file_get_contents ("/proc/self/status", &text, NULL, NULL));
  const char *line = strstr (text, "VmRSS:");
  return line ? g_ascii_strtoll (line + strlen ("VmRSS:"), NULL, 10) << 10 : 0;
}

/* Sums and refusals, each built, realised and dropped. The graph is swept only when it has grown, so the first
 * thousands count as warming up. */
static void
test_no_growth (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) a = g_object_ref_sink (on (NULL, N));
  g_autoptr (TinyTensor) b = g_object_ref_sink (on (NULL, N));
  gint64 before = 0;
  for (guint i = 0; i < EAGER_STEPS + WARM_STEPS; i++) {
    g_autoptr (TinyTensor) c = g_object_ref_sink (tiny_tensor_add (a, b));
    g_autoptr (TinyTensor) bad
        = g_object_ref_sink (tiny_tensor_matmul (FLOATS (3, 4), FLOATS (5)));
    g_assert_true (tiny_tensor_realize (c, &error));
    g_assert_false (tiny_tensor_realize (bad, NULL));
    if (i == WARM_STEPS)
      before = resident_bytes ();
  }
  gint64 growth = resident_bytes () - before;
  g_test_message ("%d steps grew by %" G_GINT64_FORMAT " bytes", EAGER_STEPS, growth);
  if (g_getenv ("TINY_E2E_SANITIZED") == NULL)
    g_assert_cmpint (growth, <, MAX_GROWTH);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/e2e/library/shapes", test_shapes);
  g_test_add_func ("/e2e/library/dtypes", test_dtypes);
  g_test_add_func ("/e2e/library/devices", test_devices);
  g_test_add_func ("/e2e/library/too-large", test_too_large);
  g_test_add_func ("/e2e/library/reading", test_reading);
  g_test_add_func ("/e2e/library/no-growth", test_no_growth);
  return g_test_run ();
}
