/* SPDX-License-Identifier: MIT
 *
 * test-gradient-engine.c: gradients as a device computes them, against central differences of what
 * the same device computes, in f64: scheduling, lowering and the rules together. A device without f64
 * computes its gradients in f32; the differences, which f32 is too coarse for, are then REF's.
 *
 * The cases are the one list of unit/tensor/cases.def. unit/autograd proves the rules alone, without
 * a device. The device is the default one (DEV=). */
#include <math.h>
#include <string.h>

#include "../device-there.h"
#include "../unit/case-fails.h"
#include "../unit/tensor/cases.h"
#include "base/tiny-env.h"
#include "engine/tiny-plan.h"
#include "engine/tiny-runtime.h"
#include "tiny.h"

enum { MAX_INPUTS = 3 };
#define STEP      1e-5
#define TOLERANCE 1e-5
/* Smaller gradients than this are compared as if they were this large: differences of values
 * around 1 are good to 2^-53 / STEP, about 1e-11. */
#define LEAST 1e-3
/* In f32, of the largest gradient of an input or of 1: sums cancel, and round to 2^-24 of their parts. */
#define TOLERANCE_F32 2e-5

static TinyDType device_dtype = TINY_DTYPE_F64;

typedef struct {
  const Case *test;
  double *values[MAX_INPUTS];
  gint64 n[MAX_INPUTS];
  guint rank[MAX_INPUTS];
} Point;

/* @value as the device has it. */
static double
to_device (double value)
{
  return device_dtype == TINY_DTYPE_F64 ? value : (double) (float) value;
}

static void
point_init (Point *self, const Case *test)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (g_str_hash (test->name));
  *self = (Point){ .test = test };
  for (guint i = 0; i < test->n; i++) {
    self->n[i] = 1;
    while (self->rank[i] < G_N_ELEMENTS (test->shapes[i])
           && test->shapes[i][self->rank[i]] != 0)
      self->n[i] *= test->shapes[i][self->rank[i]++];
    self->values[i] = g_new (double, self->n[i]);
    for (gint64 j = 0; j < self->n[i]; j++)
      self->values[i][j] = to_device (g_rand_double_range (random, test->low, test->high));
  }
}

static void
point_clear (Point *self)
{
  for (guint i = 0; i < self->test->n; i++)
    g_free (self->values[i]);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Point, point_clear)

static TinyTensor *
make_input (const Point *self, guint i, const char *device, TinyDType dtype)
{
  gsize n = (gsize) self->n[i];
  g_autofree float *single = g_new (float, n);
  for (gsize j = 0; j < n; j++)
    single[j] = (float) self->values[i][j];
  gboolean is_double = dtype == TINY_DTYPE_F64;
  return g_object_ref_sink (
      tiny_tensor_new_from_data (device, dtype, self->test->shapes[i], self->rank[i],
                                 is_double ? (gconstpointer) self->values[i] : single,
                                 n * tiny_dtype_get_n_bytes (dtype)));
}

/* sum (f (x) * weights), with weights that make every element count differently, and the inputs in
 * memory. */
static TinyTensor *
make_loss (const Point *self, const char *device, TinyDType dtype, TinyTensor **out_x)
{
  const Case *test = self->test;
  for (guint i = 0; i < test->n; i++)
    out_x[i] = make_input (self, i, device, dtype);
  g_autoptr (TinyTensor) y = g_object_ref_sink (test->function (out_x));
  g_assert_no_error (tiny_tensor_get_error (y));
  double n = (double) tiny_tensor_get_n_elements (y);
  TinyTensor *weights
      = tiny_tensor_add_number (tiny_tensor_sin (tiny_tensor_arange (dtype, 1, n + 1, 1)), 1.5);
  TinyTensor *flat = tiny_tensor_reshape (y, (gint64[]){ -1 }, 1);
  return g_object_ref_sink (tiny_tensor_sum (tiny_tensor_mul (flat, weights), NULL, 0, FALSE));
}

static double
loss_at (const Point *self)
{
  TinyTensor *x[MAX_INPUTS];
  double value;
  g_autoptr (GError) error = NULL;
  const char *device = device_dtype == TINY_DTYPE_F64 ? NULL : "REF";
  g_autoptr (TinyTensor) loss = make_loss (self, device, TINY_DTYPE_F64, x);
  tiny_tensor_item (loss, &value, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < self->test->n; i++)
    g_object_unref (x[i]);
  return value;
}

static double
difference (const Point *self, guint i, gint64 j)
{
  double at = self->values[i][j];
  self->values[i][j] = at + STEP;
  double above = loss_at (self);
  self->values[i][j] = at - STEP;
  double below = loss_at (self);
  self->values[i][j] = at;
  return (above - below) / (2 * STEP);
}

static double
read_element (TinyTensor *tensor, gint64 j)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) data = tiny_tensor_get_data (tensor, &error);
  g_assert_no_error (error);
  gconstpointer values = g_bytes_get_data (data, NULL);
  return device_dtype == TINY_DTYPE_F64 ? ((const double *) values)[j]
                                        : (double) ((const float *) values)[j];
}

static void
check_input (const Point *point, guint i, TinyTensor *gradient)
{
  g_autofree double *numeric = g_new (double, point->n[i]);
  double largest = 1;
  for (gint64 j = 0; j < point->n[i]; j++) {
    numeric[j] = difference (point, i, j);
    largest = MAX (largest, fabs (numeric[j]));
  }
  for (gint64 j = 0; j < point->n[i]; j++) {
    double found = read_element (gradient, j);
    double allowed = device_dtype == TINY_DTYPE_F64 ? TOLERANCE * MAX (fabs (numeric[j]), LEAST)
                                                    : TOLERANCE_F32 * largest;
    if (!(fabs (found - numeric[j]) <= allowed)) {
      CASE_FAILS ("%s: d/dx%u[%" G_GINT64_FORMAT "] is %.12g, by differences %.12g",
                  point->test->name, i, j, found, numeric[j]);
      return;
    }
  }
}

static void
test_case (gconstpointer data)
{
  g_auto (Point) point = { 0 };
  TinyTensor *x[MAX_INPUTS], *gradients[MAX_INPUTS];
  g_autoptr (GError) error = NULL;
  point_init (&point, data);
  guint n = point.test->n;
  g_autoptr (TinyTensor) loss = make_loss (&point, NULL, device_dtype, x);
  g_assert_true (tiny_gradient (loss, x, n, gradients, &error));
  g_assert_true (tiny_tensor_realize_many (gradients, n, &error));
  for (guint i = 0; i < n; i++) {
    check_input (&point, i, gradients[i]);
    g_object_unref (gradients[i]);
    g_object_unref (x[i]);
  }
}

int
main (int argc, char *argv[])
{
  if (!device_is_there ())
    return 0;
  g_test_init (&argc, &argv, NULL);
  tiny_env_set_int (TINY_ENV_NO_CACHE, 1);
  g_autoptr (GError) error = NULL;
  TinyDevice *device = tiny_engine_get_device (tiny_runtime_get_default_device (NULL), &error);
  g_assert_no_error (error);
  if (!(tiny_device_get_target (device)->dtypes_compute & TINY_DTYPE_BIT (TINY_DTYPE_F64)))
    device_dtype = TINY_DTYPE_F32;
  for (guint i = 0; i < n_cases; i++) {
    /* Two are of f64 alone. */
    if (device_dtype == TINY_DTYPE_F32
        && (g_str_equal (cases[i].name, "mulacc") || g_str_equal (cases[i].name, "cast")))
      continue;
    g_autofree char *path = g_strdup_printf ("/gradient/engine/%s", cases[i].name);
    g_test_add_data_func (path, &cases[i], test_case);
  }
  return g_test_run ();
}
