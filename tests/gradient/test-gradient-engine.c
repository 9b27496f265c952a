/* SPDX-License-Identifier: MIT
 *
 * test-gradient-engine.c: gradients as a device computes them, against central differences of what
 * the same device computes, in f64: scheduling, lowering and the rules together.
 *
 * The cases are the one list of unit/tensor/cases.c. unit/autograd proves the rules alone, without
 * a device. The device is the default one (DEV=). */
#include <math.h>
#include <string.h>

#include "../device-there.h"
#include "../unit/tensor/cases.h"
#include "base/tiny-env.h"
#include "tiny.h"

enum { MAX_INPUTS = 3 };
#define STEP      1e-5
#define TOLERANCE 1e-5
/* Smaller gradients than this are compared as if they were this large: differences of values
 * around 1 are good to 2^-53 / STEP, about 1e-11. */
#define LEAST 1e-3

typedef struct {
  const Case *test;
  double *values[MAX_INPUTS];
  gint64 n[MAX_INPUTS];
  guint rank[MAX_INPUTS];
} Point;

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
      self->values[i][j] = g_rand_double_range (random, test->low, test->high);
  }
}

static void
point_clear (Point *self)
{
  for (guint i = 0; i < self->test->n; i++)
    g_free (self->values[i]);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Point, point_clear)

/* sum (f (x) * weights), with weights that make every element count differently, and the inputs in
 * memory. */
static TinyTensor *
make_loss (const Point *self, TinyTensor **out_x)
{
  const Case *test = self->test;
  for (guint i = 0; i < test->n; i++)
    out_x[i] = g_object_ref_sink (
        tiny_tensor_new_from_data (NULL, TINY_DTYPE_F64, test->shapes[i], self->rank[i],
                                   self->values[i], (gsize) self->n[i] * sizeof (double)));
  g_autoptr (TinyTensor) y = g_object_ref_sink (test->function (out_x));
  g_assert_no_error (tiny_tensor_get_error (y));
  double n = (double) tiny_tensor_get_n_elements (y);
  TinyTensor *weights = tiny_tensor_add_number (
      tiny_tensor_sin (tiny_tensor_arange (TINY_DTYPE_F64, 1, n + 1, 1)), 1.5);
  TinyTensor *flat = tiny_tensor_reshape (y, (gint64[]){ -1 }, 1);
  return g_object_ref_sink (tiny_tensor_sum (tiny_tensor_mul (flat, weights), NULL, 0, FALSE));
}

static double
loss_at (const Point *self)
{
  TinyTensor *x[MAX_INPUTS];
  double value;
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) loss = make_loss (self, x);
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

static void
test_case (gconstpointer data)
{
  g_auto (Point) point = { 0 };
  TinyTensor *x[MAX_INPUTS], *gradients[MAX_INPUTS];
  g_autoptr (GError) error = NULL;
  point_init (&point, data);
  guint n = point.test->n;
  g_autoptr (TinyTensor) loss = make_loss (&point, x);
  g_assert_true (tiny_gradient (loss, x, n, gradients, &error));
  g_assert_true (tiny_tensor_realize_many (gradients, n, &error));
  for (guint i = 0; i < n; i++) {
    gsize n_bytes = (gsize) point.n[i] * sizeof (double);
    g_autofree double *analytic = g_malloc (n_bytes);
    g_assert_true (tiny_tensor_copy_data (gradients[i], analytic, n_bytes, &error));
    for (gint64 j = 0; j < point.n[i]; j++) {
      double numeric = difference (&point, i, j);
      if (!(fabs (analytic[j] - numeric) <= TOLERANCE * MAX (fabs (numeric), LEAST)))
        g_error ("%s: d/dx%u[%" G_GINT64_FORMAT "] is %.12g, by differences %.12g",
                 point.test->name, i, j, analytic[j], numeric);
    }
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
  for (guint i = 0; i < n_cases; i++) {
    g_autofree char *path = g_strdup_printf ("/gradient/engine/%s", cases[i].name);
    g_test_add_data_func (path, &cases[i], test_case);
  }
  return g_test_run ();
}
