/* SPDX-License-Identifier: MIT
 *
 * test-index.c: reads at positions that are data: every dtype of positions, those outside, sizes of
 * 0, tables and positions that are computed, on the default device (DEV=…) against the oracle. */
#include <math.h>
#include <string.h>

#include "../case-fails.h"
#include "../default-device.h"
#include "autograd/tiny-gradient.h"
#include "oracle.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

#define T(name) tiny_tensor_##name
#define SIZES(...)                                                                             \
  (gint64[]) { __VA_ARGS__ }

static const Oracle no_params;

/* Consumes @tensor. The oracle first: once realised, it no longer knows what it was made of. */
static void
check (const char *name, TinyTensor *tensor)
{
  g_autoptr (TinyTensor) owned = g_object_ref_sink (tensor);
  gsize n;
  g_autoptr (GError) error = NULL;
  if (T (get_error) (owned) != NULL) {
    CASE_FAILS ("%s: %s", name, T (get_error) (owned)->message);
    return;
  }
  g_autofree double *expected = oracle_eval (&no_params, owned, &n);
  g_autoptr (GBytes) data = T (get_data) (owned, &error);
  if (data == NULL) {
    CASE_FAILS ("%s: %s", name, error->message);
    return;
  }
  for (gsize i = 0; i < n; i++) {
    double found = tiny_tensor_decode (T (get_dtype) (owned), g_bytes_get_data (data, NULL), i);
    if (!(fabs (found - expected[i]) <= 1e-5)) {
      CASE_FAILS ("%s: element %zu is %g on the device, %g by the oracle", name, i, found,
                  expected[i]);
      return;
    }
  }
}

/* (rows, columns) of 1, 2, 3 …: none is 0 */
static TinyTensor *
table (gint64 rows, gint64 columns)
{
  double n = (double) (rows * columns);
  TinyTensor *counted = T (arange) (TINY_DTYPE_F32, 1, n + 1, 1);
  return T (contiguous) (T (reshape) (counted, SIZES (rows, columns), 2));
}

static TinyTensor *
positions (TinyDType dtype, const void *data, gint64 n)
{
  gsize size = (gsize) n * tiny_dtype_get_n_bytes (dtype);
  return T (new_from_data) (NULL, dtype, &n, 1, data, size);
}

/* Positions inside, below and beyond; one that is inside again when cut to 32 bits. */
static void
test_dtypes (void)
{
  if (skips_without_device ())
    return;
  const gint8 i8[] = { 3, 0, -1, 127, -128, 6, 7 };
  const guint8 u8[] = { 3, 0, 255, 7, 6 };
  const gint16 i16[] = { 6, 7, -32768, 32767, 1 };
  const guint16 u16[] = { 6, 7, 65535, 0 };
  const gint32 i32[] = { 5, -1, 7, G_MININT32, G_MAXINT32, 0 };
  const guint32 u32[] = { 5, G_MAXUINT32, 0x80000001u, 6 };
  const gint64 i64[] = { 5, G_MININT64, G_MAXINT64, (gint64) 1 << 32, -((gint64) 1 << 32), 2 };
  const guint64 u64[] = { 5, G_MAXUINT64, (guint64) 1 << 63, (guint64) 1 << 32, 3 };
#define ROW(dtype, v)                                                                          \
  {                                                                                            \
    TINY_DTYPE_##dtype, v, G_N_ELEMENTS (v)                                                    \
  }
  const struct {
    TinyDType dtype;
    const void *data;
    gint64 n;
  } rows[] = { ROW (I8, i8),   ROW (U8, u8),   ROW (I16, i16), ROW (U16, u16),
               ROW (I32, i32), ROW (U32, u32), ROW (I64, i64), ROW (U64, u64) };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    const char *name = tiny_dtype_to_string (rows[i].dtype);
    TinyTensor *at = positions (rows[i].dtype, rows[i].data, rows[i].n);
    check (name, T (index_select) (table (7, 20), 0, at));
    at = positions (rows[i].dtype, rows[i].data, rows[i].n);
    check (name, T (index_select) (table (3, 7), 1, at));
    /* More rows than an 8-bit position reaches. */
    at = positions (rows[i].dtype, rows[i].data, rows[i].n);
    check (name, T (index_select) (table (300, 2), 0, at));
  }
}

static void
test_empty (void)
{
  if (skips_without_device ())
    return;
  const gint32 at[] = { 0, 1, -1 };
  check ("no rows", T (index_select) (T (zeros) (TINY_DTYPE_F32, SIZES (0, 4), 2), 0,
                                      positions (TINY_DTYPE_I32, at, 3)));
  check ("no columns", T (index_select) (T (zeros) (TINY_DTYPE_F32, SIZES (4, 0), 2), 0,
                                         positions (TINY_DTYPE_I32, at, 3)));
  check ("no positions",
         T (index_select) (table (4, 4), 0, T (zeros) (TINY_DTYPE_I32, SIZES (0), 1)));
  check ("one of one", T (index_select) (table (1, 5), 0, positions (TINY_DTYPE_I32, at, 3)));
  /* Constants know that they are inside. */
  check ("constants",
         T (index_select) (table (4, 3), 0, T (full) (TINY_DTYPE_I32, SIZES (2), 1, 3)));
  check ("from the end",
         T (index_select) (table (4, 3), 0, T (full) (TINY_DTYPE_I32, SIZES (2), 1, -4)));
}

/* Numbers are known before anything is computed. */
static void
test_known (void)
{
  const struct {
    TinyTensor *at;
    int outside;
  } rows[] = { { T (full) (TINY_DTYPE_I32, SIZES (2), 1, 4), 4 },
               { T (full) (TINY_DTYPE_I64, SIZES (2), 1, -5), -5 } };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (TinyTensor) at = g_object_ref_sink (rows[i].at);
    g_autoptr (TinyTensor) refused = g_object_ref_sink (
        T (index_select) (T (zeros) (TINY_DTYPE_F32, SIZES (4, 3), 2), 0, at));
    g_autofree char *message = g_strdup_printf (
        "index_select: position %d is outside of axis 0, whose size is 4", rows[i].outside);
    const GError *error = T (get_error) (refused);
    if (g_strcmp0 (error != NULL ? error->message : NULL, message) != 0)
      CASE_FAILS ("“%s”, not “%s”", error != NULL ? error->message : "no error", message);
  }
}

static void
test_shapes (void)
{
  if (skips_without_device ())
    return;
  const guint8 at[] = { 2, 0, 1, 1, 2, 9 };
  TinyTensor *square = T (reshape) (positions (TINY_DTYPE_U8, at, 6), SIZES (2, 3), 2);
  check ("two axes", T (index_select) (table (3, 4), 0, square));
  check ("a number",
         T (index_select) (table (3, 4), -1, T (full) (TINY_DTYPE_I32, NULL, 0, 2)));
  square = T (reshape) (positions (TINY_DTYPE_U8, at, 6), SIZES (2, 3), 2);
  check ("along", T (gather) (table (4, 3), 0, square));
  TinyTensor *column = T (reshape) (positions (TINY_DTYPE_U8, at, 6), SIZES (6, 1), 2);
  check ("labels", T (gather) (table (6, 3), 1, column));
  g_autoptr (TinyTensor) refused
      = g_object_ref_sink (T (gather) (table (6, 3), 1, positions (TINY_DTYPE_U8, at, 6)));
  g_assert_cmpstr (
      T (get_error) (refused)->message, ==,
      "gather: indices of shape (6,) do not fit a tensor of shape (6, 3) along axis 1");
}

/* Neighbours are computed in the same kernel, on both sides of the read. */
static void
test_fused (void)
{
  if (skips_without_device ())
    return;
  const gint32 at[] = { 4, 0, 4, -2, 3 };
  TinyTensor *doubled = T (mul_number) (table (5, 33), 2);
  TinyTensor *moved = T (add_number) (positions (TINY_DTYPE_I32, at, 5), 1);
  check ("fused", T (relu) (T (sub) (T (index_select) (doubled, 0, moved), table (5, 33))));
  TinyTensor *scores = T (matmul) (table (6, 4), table (4, 3));
  check ("of a product", T (index_select) (scores, 0, positions (TINY_DTYPE_I32, at, 5)));
  TinyTensor *best = T (argmax) (T (mod) (table (4, 7), T (scalar) (5)), 1, FALSE);
  check ("by argmax", T (index_select) (table (7, 3), 0, best));
  TinyTensor *once = T (index_select) (table (5, 5), 0, positions (TINY_DTYPE_I32, at, 5));
  check ("twice", T (index_select) (once, 1, positions (TINY_DTYPE_I32, at, 5)));
  TinyTensor *rows = T (index_select) (table (5, 64), 0, positions (TINY_DTYPE_I32, at, 5));
  check ("summed", T (sum) (rows, (gint[]){ 1 }, 1, FALSE));
}

static void
check_gradient (const char *name, gint64 rows, gint64 columns, const gint32 *at, gint64 n)
{
  g_autoptr (TinyTensor) x = g_object_ref_sink (table (rows, columns));
  g_autoptr (GError) error = NULL;
  g_assert_true (T (realize) (x, &error));
  TinyTensor *read = T (index_select) (x, 0, positions (TINY_DTYPE_I32, at, n));
  g_autoptr (TinyTensor) loss = g_object_ref_sink (T (sum) (T (square) (read), NULL, 0, FALSE));
  TinyTensor *gradient;
  g_assert_true (tiny_gradient (loss, &x, 1, &gradient, &error));
  check (name, gradient);
}

/* Equal positions add up, those outside leave nothing; few rows read of a large table, all read. */
static void
test_gradient (void)
{
  if (skips_without_device ())
    return;
  const gint32 at[] = { 7, 2, 7, -1, 7, 19, 20, 2 };
  check_gradient ("few of many", 20, 48, at, 8);
  check_gradient ("many of few", 2, 48, at, 8);
  check_gradient ("narrow", 20, 1, at, 8);
  check_gradient ("one", 20, 3, at, 1);
  check_gradient ("none", 20, 3, at, 0);
}

/* ---- so many positions that they are sorted (tensor/tiny-positions.c) ---- */
enum { PLACES = 60000, MANY = 300 };

/* Some twice and more often, in no order, some outside. */
static void
fill_many (gint32 *at, float *weights)
{
  for (gint32 i = 0; i < MANY; i++) {
    at[i] = i % 50 == 7 ? PLACES : i % 50 == 8 ? -PLACES - 1 : i * 7919 % 90 * 661;
    weights[i] = (float) (i % 11 - 3);
  }
}

/* Consumes @tensor, which has a number for each place. */
static void
check_places (const char *name, TinyTensor *tensor, const double *expected)
{
  g_autoptr (TinyTensor) owned = g_object_ref_sink (tensor);
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) data = T (get_data) (owned, &error);
  g_assert_no_error (error);
  const float *found = g_bytes_get_data (data, NULL);
  g_assert_cmpint (T (get_n_elements) (owned), ==, PLACES);
  for (guint i = 0; i < PLACES; i++)
    if (found[i] != expected[i]) {
      CASE_FAILS ("%s: place %u has %g, not %g", name, i, found[i], expected[i]);
      return;
    }
}

static void
test_many (void)
{
  if (skips_without_device ())
    return;
  gint32 at[MANY];
  float weights[MANY];
  fill_many (at, weights);
  g_autofree double *sums = g_new0 (double, PLACES), *last = g_new0 (double, PLACES);
  for (guint i = 0; i < MANY; i++)
    if (at[i] >= 0 && at[i] < PLACES) {
      sums[at[i]] += weights[i];
      last[at[i]] = weights[i];
    }
  for (guint put = 0; put < 2; put++) {
    TinyTensor *zeros = T (zeros) (TINY_DTYPE_F32, SIZES (PLACES), 1);
    TinyTensor *index = positions (TINY_DTYPE_I32, at, MANY);
    TinyTensor *w = positions (TINY_DTYPE_F32, weights, MANY);
    check_places (put ? "put" : "sums",
                  put ? T (index_copy) (zeros, 0, index, w)
                      : T (index_add) (zeros, 0, index, w, 1),
                  put ? last : sums);
  }
}

/* The sum of w x² at the positions: 2 x s, and of the squares of that 8 x s², s being the sum of w there. */
static void
test_many_gradients (void)
{
  if (skips_without_device ())
    return;
  gint32 at[MANY];
  float weights[MANY];
  fill_many (at, weights);
  g_autofree double *once = g_new0 (double, PLACES), *twice = g_new0 (double, PLACES);
  for (guint i = 0; i < MANY; i++)
    if (at[i] >= 0 && at[i] < PLACES)
      once[at[i]] += weights[i];
  for (guint i = 0; i < PLACES; i++) {
    double x = i % 4;
    twice[i] = 8 * x * once[i] * once[i];
    once[i] *= 2 * x;
  }
  TinyTensor *count = T (arange) (TINY_DTYPE_F32, 0, PLACES, 1);
  g_autoptr (TinyTensor) x = g_object_ref_sink (T (mod) (count, T (scalar) (4)));
  g_autoptr (GError) error = NULL;
  g_assert_true (T (realize) (x, &error));
  TinyTensor *read = T (index_select) (x, 0, positions (TINY_DTYPE_I32, at, MANY));
  TinyTensor *parts = T (mul) (T (square) (read), positions (TINY_DTYPE_F32, weights, MANY));
  g_autoptr (TinyTensor) loss = g_object_ref_sink (T (sum) (parts, NULL, 0, FALSE));
  TinyTensor *first, *second;
  g_assert_true (tiny_gradient (loss, &x, 1, &first, &error));
  g_autoptr (TinyTensor) squares
      = g_object_ref_sink (T (sum) (T (square) (first), NULL, 0, FALSE));
  g_assert_true (tiny_gradient (squares, &x, 1, &second, &error));
  check_places ("gradient", first, once);
  check_places ("of the gradient", second, twice);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/tensor/index/dtypes", test_dtypes);
  g_test_add_func ("/tensor/index/empty", test_empty);
  g_test_add_func ("/tensor/index/known", test_known);
  g_test_add_func ("/tensor/index/shapes", test_shapes);
  g_test_add_func ("/tensor/index/fused", test_fused);
  g_test_add_func ("/tensor/index/gradient", test_gradient);
  g_test_add_func ("/tensor/index/many", test_many);
  g_test_add_func ("/tensor/index/many-gradients", test_many_gradients);
  return g_test_run ();
}
