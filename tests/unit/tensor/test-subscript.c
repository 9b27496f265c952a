/* SPDX-License-Identifier: MIT
 *
 * test-subscript.c: what x[…] reads and writes, against values written down here: PyTorch's. */
#include <string.h>

#include "../default-device.h"
#include "autograd/tiny-gradient.h"
#include "engine/tiny-runtime.h"
#include "ir/tiny-shape.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

#define T(name) tiny_tensor_##name
#define FIRST   TINY_SLICE_BEGIN
#define LAST    TINY_SLICE_END

/* Consumes @tensor: "(2): 3 4", or the error. */
static char *
text_of (TinyTensor *tensor)
{
  g_autoptr (TinyTensor) owned = g_object_ref_sink (tensor);
  if (T (get_error) (owned) != NULL)
    return g_strdup (T (get_error) (owned)->message);
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) data = T (get_data) (owned, &error);
  g_assert_no_error (error);
  GString *text = g_string_new ("(");
  for (guint i = 0; i < owned->n_dims; i++)
    g_string_append_printf (text, "%s%d", i > 0 ? ", " : "", (int) owned->shape[i]);
  g_string_append (text, "):");
  for (gint64 i = 0; i < T (get_n_elements) (owned); i++)
    g_string_append_printf (
        text, " %g",
        tiny_tensor_decode (owned->dtype, g_bytes_get_data (data, NULL), (gsize) i));
  return g_string_free (text, FALSE);
}

static TinyTensor *
counted (gint64 a, gint64 b, gint64 c)
{
  TinyTensor *row = T (arange) (TINY_DTYPE_F32, 0, (double) (a * b * c), 1);
  return T (contiguous) (T (reshape) (row, (gint64[]){ a, b, c }, 3));
}

/* "0 -1/2" is (2, 1); "7" without an axis is "=7"; "1 0 1?" is bool */
static TinyTensor *
parse_tensor (const char *text)
{
  gint32 values[16];
  guint n = 0, rows = 0;
  gboolean is_mask = g_str_has_suffix (text, "?");
  if (text[0] == '=')
    return T (full) (is_mask ? TINY_DTYPE_BOOL : TINY_DTYPE_I32, NULL, 0, atoi (text + 1));
  g_auto (GStrv) lines = g_strsplit (text, "/", -1);
  for (; lines[rows] != NULL; rows++) {
    g_auto (GStrv) numbers = g_strsplit (lines[rows], " ", -1);
    for (guint i = 0; numbers[i] != NULL && numbers[i][0] != '\0'; i++)
      values[n++] = atoi (numbers[i]);
  }
  gint64 dims[] = { rows, n / MAX (rows, 1) };
  TinyTensor *read = T (new_from_data) (NULL, TINY_DTYPE_I32, rows > 1 ? dims : dims + 1,
                                        rows > 1 ? 2 : 1, values, n * sizeof (gint32));
  return is_mask ? T (cast) (read, TINY_DTYPE_BOOL) : read;
}

typedef struct {
  const char *pattern;
  gint64 numbers[6];
  const char *tensors[3];
  const char *expected;
} Row;

static guint
count_numbers (const Row *row)
{
  guint n = 0;
  for (const char *c = row->pattern; *c != '\0'; c++)
    n += *c == 'i' ? 1 : *c == 's' ? 3 : 0;
  return n;
}

static guint
parse_tensors (const Row *row, TinyTensor **out)
{
  guint n = 0;
  for (; n < 3 && row->tensors[n] != NULL; n++)
    out[n] = parse_tensor (row->tensors[n]);
  return n;
}

/* x is (2, 2, 3): 0 … 11 */
static void
test_read (void)
{
  const Row rows[] = {
    { "iii", { 1, -1, -3 }, { NULL }, "(): 9" },
    { "i", { -1 }, { NULL }, "(2, 3): 6 7 8 9 10 11" },
    { "ni.i", { 0, 1 }, { NULL }, "(1, 2): 1 4" },
    { ".s", { FIRST, LAST, 2 }, { NULL }, "(2, 2, 2): 0 2 3 5 6 8 9 11" },
    { "isi", { 0, LAST, FIRST, -1, 0 }, { NULL }, "(2): 3 0" },
    { "i:s", { 0, -1, FIRST, -2 }, { NULL }, "(2, 2): 2 0 5 3" },
    { "s", { 1, 1, 1 }, { NULL }, "(0, 2, 3):" },
    { "t", { 0 }, { "1 1" }, "(2, 2, 3): 6 7 8 9 10 11 6 7 8 9 10 11" },
    { "::t", { 0 }, { "-1/0" }, "(2, 2, 2, 1): 2 0 5 3 8 6 11 9" },
    /* Neighbours stay in place, others come to the front; a number parts nothing. */
    { ":tt", { 0 }, { "0 1 1", "0 -1 0" }, "(2, 3): 0 5 3 6 11 9" },
    { "t:t", { 0 }, { "0 1 1", "0 -1 0" }, "(3, 2): 0 3 8 11 6 9" },
    { "i:t", { 1 }, { "0 2" }, "(2, 2): 6 8 9 11" },
    { "tit", { 0 }, { "0 1", "0 2" }, "(2): 0 8" },
    { "t:t", { 0 }, { "=1", "0 2" }, "(2, 2): 6 8 9 11" },
    /* Outside on either side. */
    { "t::", { 0 }, { "2 -3 -2" }, "(3, 2, 3): 0 0 0 0 0 0 0 0 0 0 0 0 0 1 2 3 4 5" },
    { "tit", { 1 }, { "0 1 2", "3 -4 0" }, "(3): 0 0 0" },
    { "t", { 0 }, { "1 0?" }, "(1, 2, 3): 0 1 2 3 4 5" },
    { ":t", { 0 }, { "0 1 0/1 0 1?" }, "(2, 3): 1 3 5 7 9 11" },
    { ":t", { 0 }, { "0 0 0/0 0 0?" }, "(2, 0):" },
    { "it", { 0 }, { "=1?" }, "(1, 2, 3): 0 1 2 3 4 5" },
    { "i", { 2 }, { NULL }, "index: index 2 is out of range for axis 0 of size 2" },
    { "iiii", { 0 }, { NULL }, "index: too many indices for shape (2, 2, 3)" },
    { "s", { 0, 1, 0 }, { NULL }, "index: step is 0" },
    { "..", { 0 }, { NULL }, "index: “..” has more than one ellipsis" },
    { "x", { 0 }, { NULL }, "index: “x” has “x”, which is none of i s : n . t v" },
    { "t", { 0 }, { NULL }, "index: “t” wants 0 numbers and 1 tensors, 0 and 0 are given" },
    { "t",
      { 0 },
      { "1 0 1?" },
      "index: a mask of shape (3,) does not fit shape (2, 2, 3) at axis 0" },
    { "tt", { 0 }, { "0 1", "0 1 0" }, "index: shapes (2,) and (3,) do not broadcast" },
  };
  if (skips_without_device ())
    return;
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    TinyTensor *tensors[3];
    guint n = parse_tensors (&rows[i], tensors);
    g_autofree char *found
        = text_of (T (index) (counted (2, 2, 3), rows[i].pattern, rows[i].numbers,
                              count_numbers (&rows[i]), tensors, n));
    g_assert_cmpstr (found, ==, rows[i].expected);
  }
}

/* -1 -2 … is written into (1, 2, 3): 0 … 5. */
static void
test_write (void)
{
  const struct {
    Row row;
    gint64 n_values; /* 0: a number */
  } rows[] = {
    { { "iii", { 0, 1, -1 }, { NULL }, "(1, 2, 3): 0 1 2 3 4 -1" }, 0 },
    { { "i:s", { 0, FIRST, LAST, 2 }, { NULL }, "(1, 2, 3): -1 1 -2 -1 4 -2" }, 2 },
    { { ".s", { LAST, 0, -1 }, { NULL }, "(1, 2, 3): 0 -2 -1 3 -2 -1" }, 2 },
    { { "..s", { 1, 1, 1 }, { NULL }, "set_index: “..s” has more than one ellipsis" }, 0 },
    { { ".s", { 1, 1, 1 }, { NULL }, "(1, 2, 3): 0 1 2 3 4 5" }, 0 },
    { { ".", { 0 }, { NULL }, "(1, 2, 3): -1 -2 -3 -1 -2 -3" }, 3 },
    /* The last of equal positions; those outside are left out. */
    { { "::t", { 0 }, { "0 0 -1 3" }, "(1, 2, 3): -2 1 -3 -2 4 -3" }, 4 },
    { { "itt", { 0 }, { "0 1", "1 1" }, "(1, 2, 3): 0 -1 2 3 -2 5" }, 2 },
    { { ":t", { 0 }, { "0 1 0/1 0 1?" }, "(1, 2, 3): 0 -1 2 -2 4 -3" }, 3 },
    { { ":t", { 0 }, { "0 1 0/1 0 1?" }, "(1, 2, 3): 0 -1 2 -1 4 -1" }, 0 },
    { { ":i", { 0 }, { NULL }, "set_index: (2,) does not broadcast to (1, 3)" }, 2 },
  };
  if (skips_without_device ())
    return;
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    const Row *row = &rows[i].row;
    TinyTensor *tensors[3];
    guint n = parse_tensors (row, tensors);
    double count = (double) rows[i].n_values;
    g_autoptr (TinyTensor) x = g_object_ref_sink (counted (1, 2, 3));
    g_autoptr (TinyTensor) before = g_object_ref_sink (T (cast) (x, TINY_DTYPE_F32));
    g_autoptr (TinyTensor) all = g_object_ref_sink (T (index) (x, ".", NULL, 0, NULL, 0));
    g_autoptr (GError) error = NULL;
    TinyTensor *value
        = count == 0 ? T (scalar) (-1) : T (arange) (TINY_DTYPE_F32, -1, -1 - count, -1);
    gboolean good = T (set_index) (x, row->pattern, row->numbers, count_numbers (row), tensors,
                                   n, value, &error);
    g_assert_true (good == (error == NULL));
    g_autofree char *found = good ? text_of (x) : g_strdup (error->message);
    g_assert_cmpstr (found, ==, row->expected);
    g_autofree char *kept = text_of (before);
    g_assert_cmpstr (kept, ==, "(1, 2, 3): 0 1 2 3 4 5");
    g_autofree char *seen = text_of (all);
    g_assert_cmpstr (seen, ==, good ? row->expected : "(1, 2, 3): 0 1 2 3 4 5");
  }
}

/* What is written may be read from the same memory; a floating tensor stays one. */
static void
test_in_place (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (TinyTensor) x
      = g_object_ref_sink (T (contiguous) (T (arange) (TINY_DTYPE_F32, 0, 5, 1)));
  g_autoptr (GError) error = NULL;
  g_assert_true (T (realize) (x, &error));
  TinyTensor *part = T (index) (x, "s", (gint64[]){ 0, 4, 1 }, 3, NULL, 0);
  g_assert_true (T (set_index) (x, "s", (gint64[]){ 1, 5, 1 }, 3, NULL, 0, part, &error));
  g_autofree char *found = text_of (x);
  g_assert_cmpstr (found, ==, "(5): 0 0 1 2 3");
  TinyTensor *y = counted (1, 1, 2);
  g_assert_true (T (set_index) (y, ".i", (gint64[]){ 1 }, 1, NULL, 0, T (scalar) (7), &error));
  g_assert_true (g_object_is_floating (y));
  g_autofree char *written = text_of (y);
  g_assert_cmpstr (written, ==, "(1, 1, 2): 0 7");
}

/* (3, 2): 0 … 5, and views of it */
static void
test_views (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) x
      = g_object_ref_sink (T (reshape) (counted (1, 3, 2), (gint64[]){ 3, 2 }, 2));
  g_autoptr (TinyTensor) row
      = g_object_ref_sink (T (index) (x, "i", (gint64[]){ 1 }, 1, NULL, 0));
  g_autoptr (TinyTensor) column
      = g_object_ref_sink (T (select) (T (transpose) (x, 0, 1), 0, 1));
  g_assert_true (T (set_index) (row, "i", (gint64[]){ 1 }, 1, NULL, 0, T (scalar) (9), &error));
  g_assert_true (T (assign) (column, T (neg) (column), &error));
  const float data[] = { 7, 8 };
  g_assert_true (T (write_data) (row, data, sizeof data, &error));
  g_assert_no_error (error);
  g_autofree char *whole = text_of (x);
  g_assert_cmpstr (whole, ==, "(3, 2): 0 -1 7 8 4 -5");
  g_autofree char *part = text_of (column);
  g_assert_cmpstr (part, ==, "(3): -1 8 -5");
  const float more[] = { 1, 2, 3, 4, 5, 6 };
  g_assert_true (T (write_data) (x, more, sizeof more, &error));
  g_autofree char *anew = text_of (column);
  g_assert_cmpstr (anew, ==, "(3): 2 4 6");
  T (set_requires_grad) (row, TRUE); /* stays a view */
  g_assert_true (T (assign) (row, T (mul_number) (row, 0), &error));
  g_autofree char *left = text_of (x);
  g_assert_cmpstr (left, ==, "(3, 2): 1 2 0 0 5 6");
  g_autoptr (TinyTensor) many = g_object_ref_sink (T (expand) (column, (gint64[]){ 2, 3 }, 2));
  g_assert_false (T (assign) (many, T (mul_number) (many, 2), &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, "expanded"));
}

/* Assignments one after the other, each reading what the last one wrote, are a kernel for a few of them, and what was
 * computed or copied meanwhile is what it was. */
static void
test_many (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (GError) error = NULL;
  TinyCounters before, after;
  g_autoptr (TinyTensor) x = g_object_ref_sink (
      T (contiguous) (T (add_number) (T (zeros) (TINY_DTYPE_F32, (gint64[]){ 12 }, 1), 0)));
  g_assert_true (T (realize) (x, &error));
  g_autoptr (TinyTensor) sums = NULL, copy = NULL;
  tiny_runtime_get_counters (&before);
  for (gint64 i = 1; i < 12; i++) {
    TinyTensor *last = T (index) (x, "i", (gint64[]){ i - 1 }, 1, NULL, 0);
    g_assert_true (
        T (set_index) (x, "i", (gint64[]){ i }, 1, NULL, 0, T (add_number) (last, 1), &error));
    if (i == 3)
      sums = g_object_ref_sink (T (mul_number) (x, 2));
  }
  g_assert_true (T (realize) (x, &error));
  tiny_runtime_get_counters (&after);
  g_assert_cmpuint (after.n_kernels - before.n_kernels, <=, 6);
  g_autofree char *found = text_of (x);
  g_assert_cmpstr (found, ==, "(12): 0 1 2 3 4 5 6 7 8 9 10 11");
  g_autofree char *kept = text_of (sums);
  g_assert_cmpstr (kept, ==, "(12): 0 2 4 6 0 0 0 0 0 0 0 0");
  for (guint i = 0; i < 3; i++) { /* a copy of what waits is the same expression */
    g_assert_true (T (set_index) (x, "i", (gint64[]){ i }, 1, NULL, 0, T (scalar) (9), &error));
    if (i == 0)
      copy = g_object_ref_sink (T (cast) (x, TINY_DTYPE_F32));
  }
  g_autofree char *copied = text_of (copy);
  g_assert_cmpstr (copied, ==, "(12): 9 1 2 3 4 5 6 7 8 9 10 11");
  g_autofree char *end = text_of (x);
  g_assert_cmpstr (end, ==, "(12): 9 9 9 3 4 5 6 7 8 9 10 11");
}

/* A number at one place after another takes one kernel's time, whatever place and number, of one axis or two; and so
 * does reading them. */
static void
test_loop (void)
{
  enum { N = 200 };
  if (skips_without_device ())
    return;
  g_autoptr (GError) error = NULL;
  TinyCounters before, after;
  g_autoptr (TinyTensor) x = g_object_ref_sink (
      T (contiguous) (T (add_number) (T (zeros) (TINY_DTYPE_F32, (gint64[]){ N }, 1), 0)));
  g_autoptr (TinyTensor) y = g_object_ref_sink (T (contiguous) (
      T (add_number) (T (zeros) (TINY_DTYPE_F32, (gint64[]){ N / 8, 8 }, 2), 0)));
  tiny_runtime_get_counters (&before);
  for (gint64 i = 0; i < N; i++) {
    const gint64 at[] = { i / 8, i % 8 };
    g_assert_true (T (set_index) (x, "i", &i, 1, NULL, 0, T (scalar) ((double) i), &error));
    g_assert_true (
        T (set_index) (y, "ii", at, 2, NULL, 0, T (scalar) ((double) i / 2), &error));
  }
  for (gint64 i = 0; i < N; i++) {
    const gint64 at[] = { i / 8, i % 8 };
    double number;
    g_autoptr (TinyTensor) a = g_object_ref_sink (T (index) (x, "i", &i, 1, NULL, 0));
    g_autoptr (TinyTensor) b = g_object_ref_sink (T (index) (y, "ii", at, 2, NULL, 0));
    g_assert_true (T (item) (a, &number, &error));
    g_assert_cmpfloat (number, ==, (double) i);
    g_assert_true (T (item) (b, &number, &error));
    g_assert_cmpfloat (number, ==, (double) i / 2);
  }
  tiny_runtime_get_counters (&after);
  g_assert_cmpuint (after.n_schedules - before.n_schedules, <=, 40);
}

/* Every so many elements take one plan, wherever they begin, forward and backward. */
static void
test_steps (void)
{
  enum { N = 200, LENGTH = 20 };
  static const gint64 steps[] = { 3, -1, -4 };
  if (skips_without_device ())
    return;
  g_autoptr (GError) error = NULL;
  TinyCounters before, after;
  g_autoptr (TinyTensor) x
      = g_object_ref_sink (T (contiguous) (T (arange) (TINY_DTYPE_F32, 0, N, 1)));
  g_assert_true (T (realize) (x, &error));
  for (guint k = 0; k < G_N_ELEMENTS (steps); k++) {
    const gint64 reach = (LENGTH - 1) * steps[k];
    tiny_runtime_get_counters (&before);
    for (gint64 i = 0; i < 60; i++) {
      const gint64 first = 100 - 30 + i - reach / 2;
      const gint64 part[] = { first, first + reach + (reach > 0 ? 1 : -1), steps[k] };
      g_autoptr (TinyTensor) sum
          = g_object_ref_sink (T (sum) (T (index) (x, "s", part, 3, NULL, 0), NULL, 0, FALSE));
      double found;
      g_assert_true (T (item) (sum, &found, &error));
      g_assert_cmpfloat (found, ==, (double) (LENGTH * (2 * first + reach)) / 2);
    }
    tiny_runtime_get_counters (&after);
    g_assert_cmpuint (after.n_schedules - before.n_schedules, <=, 8);
  }
}

/* How far a tensor is rolled takes one plan, along one axis, along two, and with gradients. */
static void
test_roll (void)
{
  enum { N = 60 };
  static const gint64 axes[] = { 0, 1 };
  if (skips_without_device ())
    return;
  g_autoptr (GError) error = NULL;
  TinyCounters before, after;
  g_autoptr (TinyTensor) x = g_object_ref_sink (T (contiguous) (
      T (reshape) (T (arange) (TINY_DTYPE_F32, 0, N * N, 1), (gint64[]){ N, N }, 2)));
  g_assert_true (T (realize) (x, &error));
  T (set_requires_grad) (x, TRUE);
  for (guint n_axes = 0; n_axes <= 2; n_axes++) {
    tiny_runtime_get_counters (&before);
    for (gint64 i = 1; i < N; i++) {
      const gint64 by[] = { i, -i };
      g_autoptr (TinyTensor) y
          = g_object_ref_sink (T (roll) (x, by, MAX (n_axes, 1), axes, n_axes));
      g_autoptr (TinyTensor) sum = g_object_ref_sink (T (sum) (T (mul) (y, x), NULL, 0, FALSE));
      float found[N * N];
      T (clear_grad) (x);
      g_assert_true (T (copy_data) (y, found, sizeof found, &error));
      const gint64 row = N - i, column = n_axes == 2 ? i : 0;
      g_assert_cmpfloat (found[0], ==, n_axes == 0 ? N * N - i : row * N + column);
      g_assert_true (T (backward) (sum, &error));
      /* what came from here, and what is here: of the first element both its neighbours */
      g_autoptr (GBytes) data = T (get_data) (T (get_grad) (x), &error);
      g_assert_no_error (error);
      const float *grad = g_bytes_get_data (data, NULL);
      const gint64 back = i * N + (n_axes == 2 ? N - i : 0);
      g_assert_cmpfloat (grad[0], ==, found[0] + (n_axes == 0 ? i : back));
    }
    tiny_runtime_get_counters (&after);
    g_assert_cmpuint (after.n_schedules - before.n_schedules, <=, 8);
  }
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/tensor/subscript/read", test_read);
  g_test_add_func ("/tensor/subscript/write", test_write);
  g_test_add_func ("/tensor/subscript/in-place", test_in_place);
  g_test_add_func ("/tensor/subscript/views", test_views);
  g_test_add_func ("/tensor/subscript/many", test_many);
  g_test_add_func ("/tensor/subscript/loop", test_loop);
  g_test_add_func ("/tensor/subscript/steps", test_steps);
  g_test_add_func ("/tensor/subscript/roll", test_roll);
  return g_test_run ();
}
