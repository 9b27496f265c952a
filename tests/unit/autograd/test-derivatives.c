/* SPDX-License-Identifier: MIT
 *
 * test-derivatives.c: derivatives forward of every differentiable operation against central
 * differences (relative error at most 1e-5) and against reverse mode, Jacobians and Hessians of known
 * functions, gradients of what is no loss, and what wrong arguments get. */
#include <math.h>
#include <string.h>

#include "../case-fails.h"
#include "autograd/gradient-rules.h"
#include "autograd/tangent-rules.h"
#include "autograd/tiny-gradient.h"
#include "function-cases.h"
#include "tensor/tiny-grad-mode.h"
#include "tensor/tiny-tensor-operations.h"

#define T(name) tiny_tensor_##name

static TinyTensor *
only (GPtrArray *list)
{
  g_assert_cmpuint (list->len, ==, 1);
  g_assert_no_error (tiny_tensor_get_error (list->pdata[0]));
  TinyTensor *tensor = g_object_ref (list->pdata[0]);
  g_ptr_array_unref (list);
  return tensor;
}

/* f (x + step·t) - f (x - step·t), over twice the step. */
static double *
difference (Arguments *x, const Case *test, double *const *t, gsize *out_n)
{
  const double step = 1e-5;
  g_autoptr (TinyTensor) y = g_object_ref_sink (test->function (x->x));
  double *sides[2];
  for (guint side = 0; side < 2; side++) {
    double by = side == 0 ? step : -step;
    for (guint i = 0; i < x->n; i++)
      for (gint64 j = 0; j < x->n_values[i]; j++)
        x->values[i][j] += by * t[i][j];
    sides[side] = oracle_eval (&x->oracle, y, out_n);
    for (guint i = 0; i < x->n; i++)
      for (gint64 j = 0; j < x->n_values[i]; j++)
        x->values[i][j] -= by * t[i][j];
  }
  for (gsize j = 0; j < *out_n; j++)
    sides[0][j] = (sides[0][j] - sides[1][j]) / (2 * step);
  g_free (sides[1]);
  return sides[0];
}

static double
dot (const double *x, const double *y, gsize n)
{
  double sum = 0;
  for (gsize i = 0; i < n; i++)
    sum += x[i] * y[i];
  return sum;
}

/* w · (J t) is (w J) · t. */
static void
check_against_reverse (Arguments *x, const Case *test, TinyTensor *derivative, double *const *t)
{
  gsize n;
  g_autofree double *forward = oracle_eval (&x->oracle, derivative, &n);
  TinyTensor *w = g_object_ref_sink (uneven_numbers (derivative, 7));
  g_autofree double *weights = oracle_eval (&x->oracle, w, NULL);
  g_autoptr (GPtrArray) gradients
      = tiny_vjp (case_function, (gpointer) test, x->x, x->n, &w, 1, NULL);
  g_assert_cmpuint (gradients->len, ==, x->n);
  double sum = dot (forward, weights, n), other = 0;
  for (guint i = 0; i < x->n; i++) {
    g_autofree double *gradient = oracle_eval (&x->oracle, gradients->pdata[i], &n);
    g_assert_cmpuint (n, ==, x->n_values[i]);
    other += dot (gradient, t[i], n);
  }
  if (!(fabs (sum - other) <= 1e-9 * MAX (1, fabs (sum))))
    CASE_FAILS ("%s: forward %.12g, in reverse %.12g", test->name, sum, other);
  g_object_unref (w);
}

static void
test_forward (gconstpointer data)
{
  const Case *test = data;
  g_auto (Arguments) x = { 0 };
  TinyTensor *tangents[MAX_ARGUMENTS];
  double *t[MAX_ARGUMENTS];
  gsize n, n_differences;
  arguments_init (&x, test, NULL, 0);
  for (guint i = 0; i < test->n; i++) {
    tangents[i] = g_object_ref_sink (uneven_numbers (x.x[i], i + 1));
    t[i] = oracle_eval (&x.oracle, tangents[i], NULL);
  }
  g_autoptr (GPtrArray) outputs = NULL;
  g_autoptr (TinyTensor) derivative = only (
      tiny_jvp (case_function, (gpointer) test, x.x, test->n, tangents, test->n, &outputs));
  g_assert_cmpuint (outputs->len, ==, 1);
  g_autofree double *found = oracle_eval (&x.oracle, derivative, &n);
  g_autofree double *expected = difference (&x, test, t, &n_differences);
  g_assert_cmpuint (n, ==, n_differences);
  for (gsize j = 0; j < n; j++)
    if (!(fabs (found[j] - expected[j]) <= 1e-5 * MAX (1, fabs (expected[j])))) {
      CASE_FAILS ("%s: derivative %zu is %.10g, by differences %.10g", test->name, j, found[j],
                  expected[j]);
      break;
    }
  check_against_reverse (&x, test, derivative, t);
  for (guint i = 0; i < test->n; i++) {
    g_object_unref (tangents[i]);
    g_free (t[i]);
  }
}

/* What has a gradient has a derivative forward, and what has none has none. */
static void
test_rules (void)
{
  for (guint op = 0; op < TINY_N_OPS; op++)
    if ((tiny_tangent_rule ((TinyOp) op) == NULL) != (tiny_gradient_rule ((TinyOp) op) == NULL))
      CASE_FAILS ("%s has a rule in one direction only", tiny_op_to_string ((TinyOp) op));
}

/* ---- Jacobians and Hessians ---- */
static const double at[] = { 0.5, -1.25, 2 };
static const Oracle oracle = { 2, { at, at } };

static void
check_values (TinyTensor *tensor, const char *shape_text, const double *expected)
{
  gsize n;
  guint rank;
  g_autofree double *found = oracle_eval (&oracle, tensor, &n);
  const gint64 *shape = T (get_shape) (tensor, &rank);
  g_autoptr (GString) text = g_string_new (NULL);
  for (guint i = 0; i < rank; i++)
    g_string_append_printf (text, i ? " %d" : "%d", (int) shape[i]);
  g_assert_cmpstr (text->str, ==, shape_text);
  for (gsize i = 0; i < n; i++)
    g_assert_cmpfloat_with_epsilon (found[i], expected[i], 1e-12);
}

static TinyTensor *
variable (guint slot, gint64 n)
{
  return g_object_ref_sink (oracle_param (slot, TINY_DTYPE_F64, &n, 1));
}

/* x² y and the sum of x: as many results as arguments, and one. */
static GPtrArray *
square_times (TinyTensor *const *x, guint n, gpointer data, GError **error)
{
  return tiny_tensors (T (mul) (T (square) (x[0]), x[1]), T (sum) (x[0], NULL, 0, FALSE), NULL);
}

static void
test_jacobian (void)
{
  g_autoptr (TinyTensor) x = variable (0, 3);
  TinyTensor *both[] = { x, x };
  g_autoptr (GPtrArray) found = tiny_jacobian (square_times, NULL, both, 2);
  g_assert_cmpuint (found->len, ==, 4);
  double by_x[9] = { 0 }, by_y[9] = { 0 };
  for (guint i = 0; i < 3; i++) {
    by_x[4 * i] = 2 * at[i] * at[i];
    by_y[4 * i] = at[i] * at[i];
  }
  check_values (found->pdata[0], "3 3", by_x);
  check_values (found->pdata[1], "3 3", by_y);
  check_values (found->pdata[2], "3", (double[]){ 1, 1, 1 });
  check_values (found->pdata[3], "3", (double[]){ 0, 0, 0 });
}

/* Outer product: more results than arguments, so columns are fewer. */
static GPtrArray *
outer (TinyTensor *const *x, guint n, gpointer data, GError **error)
{
  TinyTensor *column = T (reshape) (x[0], (gint64[]){ 3, 1 }, 2);
  return tiny_tensors (T (mul) (column, T (reshape) (x[0], (gint64[]){ 1, 3 }, 2)), NULL);
}

static void
test_jacobian_forward (void)
{
  g_autoptr (TinyTensor) x = variable (0, 3);
  g_autoptr (TinyTensor) found = only (tiny_jacobian (outer, NULL, &x, 1));
  double expected[27];
  for (guint i = 0; i < 27; i++) {
    guint a = i / 9, b = i / 3 % 3, c = i % 3;
    expected[i] = (a == c ? at[b] : 0) + (b == c ? at[a] : 0);
  }
  check_values (found, "3 3 3", expected);
}

/* x₀ x₁² + x₂ y₀, with derivatives by x and y. */
static GPtrArray *
polynomial (TinyTensor *const *x, guint n, gpointer data, GError **error)
{
  TinyTensor *parts[3];
  for (gint64 i = 0; i < 3; i++)
    parts[i] = T (shrink) (x[0], (gint64[]){ i, i + 1 }, 2);
  TinyTensor *first = T (mul) (parts[0], T (square) (parts[1]));
  return tiny_tensors (T (add) (first, T (mul) (parts[2], x[1])), NULL);
}

static void
test_hessian (void)
{
  g_autoptr (TinyTensor) x = variable (0, 3);
  g_autoptr (TinyTensor) y = variable (1, 1);
  TinyTensor *both[] = { x, y };
  g_autoptr (GPtrArray) found = tiny_hessian (polynomial, NULL, both, 2);
  g_assert_cmpuint (found->len, ==, 4);
  double a = 2 * at[1], b = 2 * at[0];
  check_values (found->pdata[0], "3 3", (double[]){ 0, a, 0, a, b, 0, 0, 0, 0 });
  check_values (found->pdata[1], "3 1", (double[]){ 0, 0, 1 });
  check_values (found->pdata[2], "1 3", (double[]){ 0, 0, 1 });
  check_values (found->pdata[3], "1 1", (double[]){ 0 });
}

/* A derivative of a derivative, with a variable from outside: d/dx of x dy/dx at y = x³ is 9 x². */
static GPtrArray *
cube (TinyTensor *const *x, guint n, gpointer data, GError **error)
{
  return tiny_tensors (T (mul) (T (square) (x[0]), x[0]), NULL);
}

static GPtrArray *
slope_times (TinyTensor *const *x, guint n, gpointer data, GError **error)
{
  TinyTensor *one = g_object_ref_sink (T (ones) (TINY_DTYPE_F64, (gint64[]){ 3 }, 1));
  GPtrArray *slope = tiny_jvp (cube, NULL, x, 1, &one, 1, NULL);
  GPtrArray *result = tiny_tensors (T (mul) (x[0], slope->pdata[0]), NULL);
  g_ptr_array_unref (slope);
  g_object_unref (one);
  return result;
}

static void
test_nested (void)
{
  g_autoptr (TinyTensor) x = variable (0, 3);
  g_autoptr (TinyTensor) one
      = g_object_ref_sink (T (ones) (TINY_DTYPE_F64, (gint64[]){ 3 }, 1));
  g_autoptr (TinyTensor) found = only (tiny_jvp (slope_times, NULL, &x, 1, &one, 1, NULL));
  double expected[3];
  for (guint i = 0; i < 3; i++)
    expected[i] = 9 * at[i] * at[i];
  check_values (found, "3", expected);
  g_autoptr (TinyTensor) back = only (tiny_vjp (slope_times, NULL, &x, 1, &one, 1, NULL));
  check_values (back, "3", expected);
}

static void
test_empty (void)
{
  g_autoptr (TinyTensor) none
      = g_object_ref_sink (T (zeros) (TINY_DTYPE_F64, (gint64[]){ 0 }, 1));
  g_autoptr (TinyTensor) found = only (tiny_jacobian (cube, NULL, &none, 1));
  check_values (found, "0 0", NULL);
}

/* ---- gradients of what is no loss ---- */
static void
test_seeds (void)
{
  g_autoptr (TinyTensor) x = variable (0, 3);
  g_autoptr (TinyTensor) y = g_object_ref_sink (T (square) (x));
  g_autoptr (TinyTensor) seed = g_object_ref_sink (T (arange) (TINY_DTYPE_F64, 1, 4, 1));
  g_autoptr (TinyTensor) found = only (tiny_tensor_gradient (y, &x, 1, seed));
  double expected[3];
  for (guint i = 0; i < 3; i++)
    expected[i] = 2 * at[i] * (i + 1);
  check_values (found, "3", expected);
  T (set_requires_grad) (x, TRUE);
  g_autoptr (GError) error = NULL;
  g_assert_true (tiny_tensor_backward_with (y, seed, &error));
  check_values (T (get_grad) (x), "3", expected);
  g_assert_only_error (tiny_tensor_gradient (y, &x, 1, NULL),
                       "gradient: the loss is one float, not (3,) of f64: take its sum() or "
                       "mean(), or give a gradient");
  g_assert_only_error (tiny_tensor_gradient (y, &x, 1, T (ones) (TINY_DTYPE_F32, NULL, 0)),
                       "gradient: a gradient of () of f32 is given for (3,) of f64");
  g_assert_only_error (tiny_tensor_gradient (y, (TinyTensor *[]){ NULL }, 1, seed),
                       "gradient: x 0 is no tensor");
  g_assert_only_error (tiny_tensor_gradient (NULL, &x, 1, seed),
                       "gradient: output 0 is no tensor");
}

/* Nothing flows through what was made while gradients were disabled. */
static void
test_disabled (void)
{
  g_autoptr (TinyTensor) x = variable (0, 3);
  g_assert_true (tiny_set_grad_enabled (FALSE));
  g_assert_false (tiny_is_grad_enabled ());
  g_autoptr (TinyTensor) fixed = g_object_ref_sink (T (square) (x));
  g_assert_false (tiny_set_grad_enabled (TRUE));
  g_autoptr (TinyTensor) loss
      = g_object_ref_sink (T (sum) (T (mul) (fixed, x), NULL, 0, FALSE));
  g_autoptr (TinyTensor) found = only (tiny_tensor_gradient (loss, &x, 1, NULL));
  check_values (found, "3", (double[]){ at[0] * at[0], at[1] * at[1], at[2] * at[2] });
}

/* ---- wrong arguments ---- */
static GPtrArray *
return_nothing (TinyTensor *const *x, guint n, gpointer data, GError **error)
{
  return NULL;
}

static GPtrArray *
fail (TinyTensor *const *x, guint n, gpointer data, GError **error)
{
  g_set_error_literal (error, TINY_ERROR, TINY_ERROR_IO, "no more paper");
  return NULL;
}

static GPtrArray *
return_broken (TinyTensor *const *x, guint n, gpointer data, GError **error)
{
  return tiny_tensors (T (reshape) (x[0], (gint64[]){ 7 }, 1), NULL);
}

static GPtrArray *
return_null (TinyTensor *const *x, guint n, gpointer data, GError **error)
{
  GPtrArray *list = tiny_tensors (x[0], NULL);
  g_ptr_array_add (list, NULL);
  return list;
}

static GPtrArray *
keep (TinyTensor *const *x, guint n, gpointer data, GError **error)
{
  TinyTensor **kept = data;
  if (*kept == NULL)
    *kept = g_object_ref (x[0]);
  return tiny_tensors (*kept, NULL);
}

static GPtrArray *
count (TinyTensor *const *x, guint n, gpointer data, GError **error)
{
  return tiny_tensors (T (cast) (x[0], TINY_DTYPE_I32), NULL);
}

static void
test_errors (void)
{
  g_autoptr (TinyTensor) x = variable (0, 3);
  g_autoptr (TinyTensor) one = variable (0, 1);
  g_autoptr (TinyTensor) whole
      = g_object_ref_sink (T (ones) (TINY_DTYPE_I32, (gint64[]){ 3 }, 1));
#define CHECK(text, function, inputs, n, tangents, n_tangents)                                 \
  g_assert_only_error (tiny_jvp (function, NULL, inputs, n, tangents, n_tangents, NULL), text)
  CHECK ("jvp: there is no function", NULL, &x, 1, &x, 1);
  CHECK ("jvp: input 0 is no tensor", cube, NULL, 1, &x, 1);
  CHECK ("jvp: input 0 is of i32, which has no derivative", cube, &whole, 1, &whole, 1);
  CHECK ("jvp: 0 tangents are given, not 1", cube, &x, 1, NULL, 0);
  CHECK ("jvp: tangent 0 is (1,) of f64, not (3,) of f64", cube, &x, 1, &one, 1);
  CHECK ("jvp: tangent 0 is no tensor", cube, &x, 1, (TinyTensor *[]){ NULL }, 1);
  CHECK ("jvp: the function returned nothing, and no error", return_nothing, &x, 1, &x, 1);
  CHECK ("no more paper", fail, &x, 1, &x, 1);
  CHECK ("reshape: (3,) of 3 elements does not fit (7,)", return_broken, &x, 1, &x, 1);
  CHECK ("jvp: result 1 of the function is no tensor", return_null, &x, 1, &x, 1);
#undef CHECK
  g_assert_only_error (
      tiny_vjp (square_times, NULL, (TinyTensor *[]){ x, x }, 2, NULL, 0, NULL),
      "vjp: the function does not give one float");
  g_assert_only_error (tiny_vjp (count, NULL, &x, 1, &whole, 1, NULL),
                       "vjp: result 0 is of i32, which has no derivative");
  g_assert_only_error (tiny_jacobian (count, NULL, &x, 1),
                       "jacobian: result 0 is of i32, which has no derivative");
  g_assert_only_error (tiny_hessian (cube, NULL, &x, 1),
                       "hessian: the function does not give one float");
  g_autoptr (GPtrArray) outputs = NULL;
  g_ptr_array_unref (tiny_jvp (fail, NULL, &x, 1, &x, 1, &outputs));
  g_assert_cmpuint (outputs->len, ==, 1);
  g_assert_nonnull (tiny_tensor_get_error (outputs->pdata[0]));
}

/* An argument has no value, and none outside of its call. */
static void
test_placeholders (void)
{
  g_autoptr (TinyTensor) x = variable (0, 3);
  g_autoptr (TinyTensor) kept = NULL;
  g_ptr_array_unref (tiny_jvp (keep, &kept, &x, 1, &x, 1, NULL));
  g_assert_only_error (tiny_jvp (keep, &kept, &x, 1, &x, 1, NULL),
                       "jvp: result 0 is made of an argument of another call, which is over");
  g_autoptr (GError) error = NULL;
  g_assert_false (tiny_tensor_realize (kept, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < n_cases; i++) {
    g_autofree char *path = g_strdup_printf ("/autograd/derivatives/forward/%s", cases[i].name);
    g_test_add_data_func (path, &cases[i], test_forward);
  }
#define ADD(name, function) g_test_add_func ("/autograd/derivatives/" name, function)
  ADD ("rules", test_rules);
  ADD ("jacobian", test_jacobian);
  ADD ("jacobian-forward", test_jacobian_forward);
  ADD ("hessian", test_hessian);
  ADD ("nested", test_nested);
  ADD ("empty", test_empty);
  ADD ("seeds", test_seeds);
  ADD ("disabled", test_disabled);
  ADD ("errors", test_errors);
  ADD ("placeholders", test_placeholders);
  return g_test_run ();
}
