/* SPDX-License-Identifier: MIT
 *
 * test-device.c: every case and its gradients on the default device (DEV=…) against the oracle, in
 * f64 and f32; assignments, sharing of memory, errors of reading. */
#include <math.h>
#include <string.h>

#include "../case-fails.h"
#include "../default-device.h"
#include "autograd/tiny-gradient.h"
#include "cases.h"
#include "engine/tiny-runtime.h"
#include "oracle.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

#define T(name) tiny_tensor_##name

static const Oracle no_params;

/* Whether the default device has f64, which is the one dtype that is not made of others. */
static gboolean
has_f64 (void)
{
  const char *name = tiny_runtime_get_default_device (NULL);
  g_autoptr (TinyTensor) x
      = g_object_ref_sink (T (cast) (T (arange) (TINY_DTYPE_I32, 0, 3, 1), TINY_DTYPE_F64));
  g_autoptr (GError) error = NULL;
  if (T (realize) (x, &error))
    return TRUE;
  g_assert_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED);
  g_assert_nonnull (strstr (error->message, "f64"));
  g_assert_nonnull (strstr (error->message, "compute in f32"));
  g_assert_nonnull (strstr (error->message, name));
  return FALSE;
}

static TinyTensor *
from_doubles (TinyDType dtype, const gint64 *shape, guint n_dims, const double *values, gsize n)
{
  g_autofree float *single = g_new (float, n);
  for (gsize i = 0; i < n; i++)
    single[i] = (float) values[i];
  gboolean is_double = dtype == TINY_DTYPE_F64;
  return g_object_ref_sink (T (new_from_data) (
      NULL, dtype, shape, n_dims, is_double ? (gconstpointer) values : single,
      n * (is_double ? sizeof (double) : sizeof (float))));
}

/* The oracle first: once realised, a tensor no longer knows what it was made of. */
static void
compare (const char *name, TinyTensor *tensor, double tolerance)
{
  gsize n;
  g_autoptr (GError) error = NULL;
  g_autofree double *expected = oracle_eval (&no_params, tensor, &n);
  g_autoptr (GBytes) data = T (get_data) (tensor, &error);
  if (data == NULL) {
    CASE_FAILS ("%s: %s", name, error->message);
    return;
  }
  double scale = 0;
  for (gsize i = 0; i < n; i++)
    if (isfinite (expected[i]))
      scale = MAX (scale, fabs (expected[i]));
  for (gsize i = 0; i < n; i++) {
    double found
        = tiny_tensor_decode (T (get_dtype) (tensor), g_bytes_get_data (data, NULL), i);
    if (isnan (expected[i]) ? !isnan (found)
                            : !(fabs (found - expected[i]) <= tolerance * MAX (1, scale)
                                || found == expected[i])) {
      CASE_FAILS ("%s: element %zu is %.12g on the device, %.12g by the oracle", name, i, found,
                  expected[i]);
      return;
    }
  }
}

static void
check_case (const Case *test, TinyDType dtype)
{
  TinyTensor *x[3] = { NULL }, *gradients[3];
  double tolerance = dtype == TINY_DTYPE_F64 ? 1e-11 : 2e-5;
  g_autoptr (GRand) random = g_rand_new_with_seed (g_str_hash (test->name));
  g_autoptr (GError) error = NULL;
  for (guint i = 0; i < test->n; i++) {
    guint n_dims = 0;
    gsize n = 1;
    for (; n_dims < 5 && test->shapes[i][n_dims] != 0; n_dims++)
      n *= (gsize) test->shapes[i][n_dims];
    g_autofree double *values = g_new (double, n);
    for (gsize j = 0; j < n; j++)
      values[j] = g_rand_double_range (random, test->low, test->high);
    x[i] = from_doubles (dtype, test->shapes[i], n_dims, values, n);
    g_assert_no_error (T (get_error) (x[i]));
  }
  g_autoptr (TinyTensor) y = g_object_ref_sink (test->function (x));
  g_autoptr (TinyTensor) loss = g_object_ref_sink (T (sum) (T (square) (y), NULL, 0, FALSE));
  g_assert_true (tiny_gradient (loss, x, test->n, gradients, &error));
  g_assert_no_error (error);
  for (guint i = 0; i < test->n; i++) {
    compare (test->name, gradients[i], tolerance);
    g_object_unref (gradients[i]);
  }
  compare (test->name, y, tolerance);
  for (guint i = 0; i < test->n; i++)
    g_object_unref (x[i]);
}

static void
test_f64 (gconstpointer data)
{
  if (skips_without_device ())
    return;
  if (has_f64 ())
    check_case (data, TINY_DTYPE_F64);
  else
    g_test_skip ("the device has no f64");
}

static void
test_f32 (gconstpointer data)
{
  if (!skips_without_device ())
    check_case (data, TINY_DTYPE_F32);
}

static void
check_floats (TinyTensor *tensor, float first, float second)
{
  float found[2];
  g_autoptr (GError) error = NULL;
  T (copy_data) (tensor, found, sizeof found, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (found[0], ==, first);
  g_assert_cmpfloat (found[1], ==, second);
}

/* An assignment keeps the memory, changes no other tensor, and may use the old value. */
static void
test_assign (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) a
      = from_doubles (TINY_DTYPE_F32, (gint64[]){ 2 }, 1, (double[]){ 1, 2 }, 2);
  g_autoptr (TinyTensor) lazy = g_object_ref_sink (T (add_number) (a, 10));
  tiny_runtime_lock ();
  TinyBuffer *before = tiny_runtime_get_buffer (tiny_tensor_get_node (a));
  tiny_runtime_unlock ();
  g_assert_true (T (assign) (a, T (mul_number) (a, 3), &error));
  check_floats (a, 3, 6);
  tiny_runtime_lock ();
  g_assert_true (before == tiny_runtime_get_buffer (tiny_tensor_get_node (a)));
  tiny_runtime_unlock ();
  check_floats (lazy, 11, 12);
  for (guint i = 0; i < 3; i++)
    g_assert_true (T (assign) (a, T (add_number) (a, 1), &error));
  check_floats (a, 6, 9);
  g_assert_false (T (assign) (a, T (ones) (TINY_DTYPE_F32, (gint64[]){ 3 }, 1), &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "assign: (3,) does not fit into (2,)");
  check_floats (a, 6, 9);
}

/* Two tensors of the same expression share memory until one of them is assigned to. */
static void
test_sharing (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (TinyTensor) a = g_object_ref_sink (T (zeros) (TINY_DTYPE_F32, (gint64[]){ 2 }, 1));
  g_autoptr (TinyTensor) b = g_object_ref_sink (T (zeros) (TINY_DTYPE_F32, (gint64[]){ 2 }, 1));
  check_floats (a, 0, 0);
  check_floats (b, 0, 0);
  g_assert_true (T (assign) (a, T (add_number) (a, 1), NULL));
  check_floats (a, 1, 1);
  check_floats (b, 0, 0);
  g_autoptr (TinyTensor) c = g_object_ref_sink (T (ones) (TINY_DTYPE_F32, (gint64[]){ 2 }, 1));
  g_autoptr (TinyTensor) d = g_object_ref_sink (T (ones) (TINY_DTYPE_F32, (gint64[]){ 2 }, 1));
  T (set_requires_grad) (c, TRUE);
  T (set_requires_grad) (d, TRUE);
  g_autoptr (TinyTensor) loss = g_object_ref_sink (
      T (sum) (T (mul) (T (mul_number) (c, 2), T (square) (d)), NULL, 0, FALSE));
  g_assert_true (tiny_tensor_backward (loss, NULL));
  check_floats (T (get_grad) (c), 2, 2);
  check_floats (T (get_grad) (d), 4, 4);
}

/* An assignment that waits inside another tensor's expression happens once. */
static void
test_pending (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (TinyTensor) a
      = from_doubles (TINY_DTYPE_F32, (gint64[]){ 2 }, 1, (double[]){ 1, 2 }, 2);
  g_assert_true (T (assign) (a, T (add_number) (a, 1), NULL));
  g_autoptr (TinyTensor) user = g_object_ref_sink (T (mul_number) (a, 10));
  check_floats (user, 20, 30);
  check_floats (a, 2, 3);
  check_floats (a, 2, 3);
}

static void
test_text (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (TinyTensor) x = g_object_ref_sink (
      T (reshape) (T (arange) (TINY_DTYPE_I32, -2, 4, 1), (gint64[]){ 2, 3 }, 2));
  g_autofree char *text = T (to_string) (x);
  g_assert_cmpstr (text, ==, "[[-2, -1,  0],\n [ 1,  2,  3]]");
  g_autoptr (TinyTensor) big = g_object_ref_sink (T (arange) (TINY_DTYPE_I32, 0, 2000, 1));
  g_autofree char *shortened = T (to_string) (big);
  g_assert_cmpstr (shortened, ==, "[   0,    1,    2, ..., 1997, 1998, 1999]");
  g_autoptr (TinyTensor) empty
      = g_object_ref_sink (T (zeros) (TINY_DTYPE_F32, (gint64[]){ 0, 3 }, 2));
  g_autofree char *nothing = T (to_string) (empty);
  g_assert_cmpstr (nothing, ==, "[]");
  g_autoptr (GError) error = NULL;
  double value;
  g_assert_false (T (item) (x, &value, &error));
  g_assert_cmpstr (error->message, ==, "item: the tensor has 6 elements, not 1");
  g_clear_error (&error);
  g_assert_false (T (copy_data) (x, &value, sizeof value, &error));
  g_assert_cmpstr (error->message, ==, "copy_data: the tensor has 24 bytes, room is for 8");
}

/* Narrow dtypes and integers come back as they went in, and as the oracle computes them. */
static void
test_dtypes (void)
{
  if (skips_without_device ())
    return;
  static const TinyDType dtypes[] = { TINY_DTYPE_BOOL,   TINY_DTYPE_I8,   TINY_DTYPE_U8,
                                      TINY_DTYPE_I16,    TINY_DTYPE_U16,  TINY_DTYPE_I32,
                                      TINY_DTYPE_U32,    TINY_DTYPE_I64,  TINY_DTYPE_U64,
                                      TINY_DTYPE_F16,    TINY_DTYPE_BF16, TINY_DTYPE_F8E4M3,
                                      TINY_DTYPE_F8E5M2, TINY_DTYPE_F32,  TINY_DTYPE_F64 };
  guint n = G_N_ELEMENTS (dtypes) - !has_f64 ();
  for (guint i = 0; i < n; i++) {
    const char *name = tiny_dtype_to_string (dtypes[i]);
    TinyTensor *counted = T (arange) (TINY_DTYPE_I32, 0, 40, 1);
    g_autoptr (TinyTensor) x = g_object_ref_sink (T (cast) (counted, dtypes[i]));
    compare (name, x, 0);
    g_autoptr (TinyTensor) y
        = g_object_ref_sink (T (sum) (T (mul) (x, T (scalar) (3)), NULL, 0, FALSE));
    compare (name, y, 1e-3);
  }
}

/* Every code of the 8-bit floats, to f32 and back; f32s between and beyond them. */
static void
test_fp8 (void)
{
  if (skips_without_device ())
    return;
  static const TinyDType dtypes[] = { TINY_DTYPE_F8E4M3, TINY_DTYPE_F8E5M2 };
  for (guint i = 0; i < G_N_ELEMENTS (dtypes); i++) {
    const char *name = tiny_dtype_to_string (dtypes[i]);
    g_autoptr (TinyTensor) codes = g_object_ref_sink (
        T (contiguous) (T (bitcast) (T (arange) (TINY_DTYPE_U8, 0, 256, 1), dtypes[i])));
    g_autoptr (TinyTensor) wide = g_object_ref_sink (T (cast) (codes, TINY_DTYPE_F32));
    compare (name, wide, 0);
    TinyTensor *steps = T (sub) (T (arange) (TINY_DTYPE_F32, 0, 4000, 1), T (scalar) (2000));
    g_autoptr (TinyTensor) scaled = g_object_ref_sink (T (contiguous) (
        T (mul) (steps, T (square) (T (square) (T (mul_number) (
                            T (arange) (TINY_DTYPE_F32, 0, 4000, 1), 0.001))))));
    g_assert_true (T (realize) (scaled, NULL));
    g_autoptr (TinyTensor) rounded = g_object_ref_sink (T (cast) (scaled, dtypes[i]));
    compare (name, rounded, 0);
  }
}

/* Signs of one tensor on another's numbers, chosen or not: code generators that make one instruction of all this have
 * chosen wrong bits. */
static void
test_chosen_bits (void)
{
  enum { N = 64 };
  static const char *const ways[] = { "or, else", "xor, else", "or, then", "xor, then" };
  gint32 x[4][N], found[N];
  TinyTensor *t[4];
  if (skips_without_device ())
    return;
  for (guint i = 0; i < 4; i++) {
    for (guint k = 0; k < N; k++)
      x[i][k] = (gint32) ((i + 1) * (k + 1) * 2654435761u);
    t[i] = g_object_ref_sink (
        T (new_from_data) (NULL, TINY_DTYPE_I32, (gint64[]){ N }, 1, x[i], sizeof x[i]));
  }
  for (guint how = 0; how < 4; how++) {
    g_autoptr (GError) error = NULL;
    const double sign = G_MININT32;
    TinyTensor *is_less = T (lt) (t[2], t[3]), *turned;
    if (how & 1)
      turned = T (bitwise_xor) (
          t[0], T (bitwise_and) (T (bitwise_xor) (t[0], t[1]), T (scalar) (sign)));
    else
      turned = T (bitwise_or) (T (bitwise_and) (t[0], T (scalar) (-1 - sign)),
                               T (bitwise_and) (t[1], T (scalar) (sign)));
    g_autoptr (TinyTensor) chosen = g_object_ref_sink (
        how & 2 ? T (where) (is_less, turned, t[0]) : T (where) (is_less, t[0], turned));
    if (!T (copy_data) (chosen, found, sizeof found, &error)) {
      CASE_FAILS ("%s: %s", ways[how], error->message);
      continue;
    }
    for (guint k = 0; k < N; k++) {
      gint32 both = (x[0][k] & G_MAXINT32) | (x[1][k] & G_MININT32);
      gboolean is_turned = (x[2][k] < x[3][k]) == ((how & 2) != 0);
      if (found[k] != (is_turned ? both : x[0][k])) {
        CASE_FAILS ("%s: element %u is %08x, and %08x is right", ways[how], k, found[k],
                    is_turned ? both : x[0][k]);
        break;
      }
    }
  }
  /* The same of floats that were computed. */
  float f[2][N], turned[N];
  for (guint k = 0; k < N; k++) {
    f[0][k] = (float) x[0][k];
    f[1][k] = (float) x[1][k] * 0x1p-31f;
  }
  g_autoptr (TinyTensor) a = g_object_ref_sink (T (cast) (t[0], TINY_DTYPE_F32));
  g_autoptr (TinyTensor) b
      = g_object_ref_sink (T (mul_number) (T (cast) (t[1], TINY_DTYPE_F32), 0x1p-31));
  g_assert_true (T (realize) (a, NULL) && T (realize) (b, NULL));
  g_autoptr (TinyTensor) c = g_object_ref_sink (
      T (where) (T (lt) (t[2], t[3]), a, T (copysign) (T (mul) (a, b), a)));
  g_assert_true (T (copy_data) (c, turned, sizeof turned, NULL));
  for (guint k = 0; k < N; k++)
    g_assert_cmpfloat (turned[k], ==,
                       x[2][k] < x[3][k] ? f[0][k] : copysignf (f[0][k] * f[1][k], f[0][k]));
  for (guint i = 0; i < 4; i++)
    g_object_unref (t[i]);
}

/* Every device draws the same numbers. */
static void
test_draws (void)
{
  if (skips_without_device ())
    return;
  T (manual_seed) (7);
  g_autoptr (TinyTensor) order = g_object_ref_sink (T (randperm) (TINY_DTYPE_I32, 77));
  compare ("randperm", order, 0);
  g_autoptr (TinyTensor) bits = g_object_ref_sink (T (random_bits) ((gint64[]){ 9 }, 1));
  compare ("random_bits", bits, 0);
  TinyTensor *weights = T (full) (TINY_DTYPE_F32, (gint64[]){ 2, 9 }, 2, 0.25);
  g_autoptr (TinyTensor) some = g_object_ref_sink (T (multinomial) (weights, 5, FALSE));
  compare ("multinomial", some, 0);
}

/* Rows of halves and bytes that begin in the middle of a word, with values that a row has once. */
static void
test_odd_rows (void)
{
  if (skips_without_device ())
    return;
  static const TinyDType dtypes[] = { TINY_DTYPE_F16, TINY_DTYPE_BF16, TINY_DTYPE_F8E5M2 };
  for (guint i = 0; i < G_N_ELEMENTS (dtypes); i++) {
    const char *name = tiny_dtype_to_string (dtypes[i]);
    for (gint64 n = 32; n <= 35; n++) {
      const gint64 shape[] = { 9, n };
      TinyTensor *counted
          = T (mod) (T (arange) (TINY_DTYPE_I32, 0, (double) (9 * n), 1), T (scalar) (11));
      g_autoptr (TinyTensor) x = g_object_ref_sink (T (contiguous) (
          T (mul_number) (T (cast) (T (reshape) (counted, shape, 2), TINY_DTYPE_F32), 0.5)));
      g_assert_true (T (realize) (x, NULL));
      g_autoptr (TinyTensor) rows
          = g_object_ref_sink (T (cast) (T (softmax) (x, 1), dtypes[i]));
      compare (name, rows, 1e-2);
      g_autoptr (TinyTensor) high
          = g_object_ref_sink (T (ge) (x, T (max) (x, (gint[]){ 1 }, 1, TRUE)));
      compare (name, high, 0);
    }
  }
}

/* As many draws as anybody wants are computed together, and are those that are computed one by one: a kernel has its own
 * variables only, of which a device takes a few. */
static void
test_draws_together (void)
{
  enum { N = 200 };
  TinyTensor *all[N];
  float together[N][3], alone[3];
  g_autoptr (GError) error = NULL;
  T (manual_seed) (7);
  for (guint i = 0; i < N; i++)
    all[i] = g_object_ref_sink (T (rand) (TINY_DTYPE_F32, (gint64[]){ 3 }, 1));
  g_assert_true (T (realize_many) (all, N, &error));
  g_assert_no_error (error);
  T (manual_seed) (7);
  for (guint i = 0; i < N; i++) {
    g_assert_true (T (copy_data) (all[i], together[i], sizeof together[i], &error));
    g_object_unref (all[i]);
    g_autoptr (TinyTensor) one
        = g_object_ref_sink (T (rand) (TINY_DTYPE_F32, (gint64[]){ 3 }, 1));
    g_assert_true (T (copy_data) (one, alone, sizeof alone, &error));
    for (guint k = 0; k < G_N_ELEMENTS (alone); k++)
      g_assert_cmpfloat (alone[k], ==, together[i][k]);
    g_assert_true (i == 0 || memcmp (alone, together[i - 1], sizeof alone) != 0);
  }
  /* One result of all: more variables than one kernel takes. */
  T (manual_seed) (7);
  g_autoptr (TinyTensor) sum
      = g_object_ref_sink (T (rand) (TINY_DTYPE_F32, (gint64[]){ 3 }, 1));
  for (guint i = 1; i < N; i++) {
    TinyTensor *more = T (add) (sum, T (rand) (TINY_DTYPE_F32, (gint64[]){ 3 }, 1));
    g_object_unref (sum);
    sum = g_object_ref_sink (more);
  }
  g_assert_true (T (copy_data) (sum, alone, sizeof alone, &error));
  g_assert_no_error (error);
  for (guint k = 0; k < G_N_ELEMENTS (alone); k++) {
    double wanted = 0;
    for (guint i = 0; i < N; i++)
      wanted += (double) together[i][k];
    g_assert_cmpfloat_with_epsilon ((double) alone[k], wanted, 1e-4);
  }
}

/* The object of an argument that goes with the end of an operation may be that of a later result: nothing of the one is
 * left in the other, and an object that somebody has tied something to ends. */
static void
test_recycled (void)
{
  const gint64 large[] = { 1, 2, 1, 2, 1, 2 }, two = 2;
  g_autoptr (TinyTensor) held = g_object_ref_sink (T (ones) (TINY_DTYPE_F32, &two, 1));
  TinyTensor *variable = T (ones) (TINY_DTYPE_F32, &two, 1);
  T (set_requires_grad) (variable, TRUE);
  TinyTensor *tied = T (ones) (TINY_DTYPE_F32, &two, 1);
  gpointer weak = tied;
  g_object_add_weak_pointer (G_OBJECT (tied), &weak);
  TinyTensor *arguments[] = { T (slice) (held, 0, 0, 1, 1),
                              T (ones) (TINY_DTYPE_F64, large, 6),
                              T (scalar) (3),
                              T (scalar_float) (0.5),
                              T (reshape) (held, large, 6),
                              variable,
                              tied };
  for (guint i = 0; i < G_N_ELEMENTS (arguments); i++) {
    g_autoptr (TinyTensor) result = g_object_ref_sink (T (neg) (arguments[i]));
    g_assert_true (arguments[i] != tied || weak == NULL);
    g_autoptr (TinyTensor) next = T (zeros) (TINY_DTYPE_I32, &two, 1);
    g_assert_true (g_object_is_floating (next));
    g_object_ref_sink (next);
    g_assert_true (next != result);
    g_assert_null (T (get_error) (next));
    g_assert_null (T (get_grad) (next));
    g_assert_false (T (get_requires_grad) (next));
    g_assert_cmpuint (next->n_dims, ==, 1);
    g_assert_cmpint (next->shape[0], ==, 2);
    g_assert_true (next->weak == TINY_WEAK_NONE && !next->is_part);
    g_assert_true (next->base == NULL && next->views == NULL && next->steps == NULL);
    g_assert_cmpint (G_OBJECT (next)->ref_count, ==, 1);
  }
  g_assert_true (held->views == NULL);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  /* The oracle reads graphs, and an operation of a library is none; python/linalg compares those with kernels. */
  g_setenv ("TINY_LAPACK_LIBRARY", "none", TRUE);
  for (guint i = 0; i < n_cases; i++) {
    g_autofree char *wide = g_strdup_printf ("/tensor/device/f64/%s", cases[i].name);
    g_autofree char *narrow = g_strdup_printf ("/tensor/device/f32/%s", cases[i].name);
    if (!cases[i].is_formula)
      g_test_add_data_func (wide, &cases[i], test_f64);
    if (!g_str_equal (cases[i].name, "mulacc") && !g_str_equal (cases[i].name, "cast"))
      g_test_add_data_func (narrow, &cases[i], test_f32);
  }
  g_test_add_func ("/tensor/device/assign", test_assign);
  g_test_add_func ("/tensor/device/sharing", test_sharing);
  g_test_add_func ("/tensor/device/pending", test_pending);
  g_test_add_func ("/tensor/device/text", test_text);
  g_test_add_func ("/tensor/device/dtypes", test_dtypes);
  g_test_add_func ("/tensor/device/fp8", test_fp8);
  g_test_add_func ("/tensor/device/chosen-bits", test_chosen_bits);
  g_test_add_func ("/tensor/device/draws", test_draws);
  g_test_add_func ("/tensor/device/draws-together", test_draws_together);
  g_test_add_func ("/tensor/device/odd-rows", test_odd_rows);
  g_test_add_func ("/tensor/device/recycled", test_recycled);
  return g_test_run ();
}
