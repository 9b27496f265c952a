/* SPDX-License-Identifier: MIT
 *
 * test-custom.c: functions with gradients of their own, in both directions, batched and derived
 * again; and checkpoints: the same gradients as without, of every operation, in less memory. */
#include <math.h>

#include "../case-fails.h"
#include "autograd/tiny-custom.h"
#include "autograd/tiny-gradient.h"
#include "engine/runtime-private.h"
#include "engine/tiny-plan.h"
#include "function-cases.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

#define T(name) tiny_tensor_##name

static const double at[] = { 0.5, -1.25, 2 };
static const Oracle oracle = { 2, { at, at } };

static TinyTensor *
only (GPtrArray *list)
{
  g_assert_cmpuint (list->len, ==, 1);
  g_assert_no_error (tiny_tensor_get_error (list->pdata[0]));
  TinyTensor *tensor = g_object_ref (list->pdata[0]);
  g_ptr_array_unref (list);
  return tensor;
}

static TinyTensor *
variable (guint slot, gint64 n)
{
  return g_object_ref_sink (oracle_param (slot, TINY_DTYPE_F64, &n, 1));
}

static void
check_values (TinyTensor *tensor, guint n, const double *expected)
{
  gsize n_found;
  g_autofree double *found = oracle_eval (&oracle, tensor, &n_found);
  g_assert_cmpuint (n_found, ==, n);
  for (guint i = 0; i < n; i++)
    g_assert_cmpfloat_with_epsilon (found[i], expected[i], 1e-12);
}
#define CHECK(tensor, ...)                                                                     \
  check_values (tensor, G_N_ELEMENTS (((double[]){ __VA_ARGS__ })), (double[]){ __VA_ARGS__ })

static TinyTensor *
sum (TinyTensor *x)
{
  return T (sum) (x, NULL, 0, FALSE);
}

#define FUNCTION(name, ...)                                                                    \
  static GPtrArray *name (TinyTensor *const *x, guint n, gpointer data, GError **error)        \
  {                                                                                            \
    return tiny_tensors (__VA_ARGS__, NULL);                                                   \
  }
#define BACKWARD(name, ...)                                                                    \
  static GPtrArray *name (TinyTensor *const *g, guint n_g, TinyTensor *const *x, guint n_x,    \
                          TinyTensor *const *y, guint n_y, gpointer data, GError **error)      \
  {                                                                                            \
    return tiny_tensors (__VA_ARGS__, NULL);                                                   \
  }

/* ---- gradients of their own ---- */
FUNCTION (round_up, T (ceil) (x[0]))
BACKWARD (as_it_comes, g[0])
FUNCTION (square, T (square) (x[0]))
BACKWARD (thrice, T (mul) (g[0], T (mul) (x[0], T (scalar) (3))))
BACKWARD (limited, T (clamp) (g[0], T (scalar) (-1), T (scalar) (1)))

static GPtrArray *
custom (TinyFunction function, TinyBackwardFunction backward, TinyTensor *const *x, guint n)
{
  return tiny_custom_gradient (function, NULL, backward, NULL, NULL, x, n);
}

static void
test_gradient (void)
{
  g_autoptr (TinyTensor) x = variable (0, 3);
  g_autoptr (TinyTensor) y = only (custom (round_up, as_it_comes, &x, 1));
  CHECK (y, 1, -1, 2);
  g_autoptr (TinyTensor) gradient = only (T (gradient) (sum (T (mul) (y, x)), &x, 1, NULL));
  CHECK (gradient, 1 + at[0], -1 + at[1], 2 + at[2]);
  g_autoptr (TinyTensor) plain
      = only (T (gradient) (sum (T (mul) (T (ceil) (x), x)), &x, 1, NULL));
  CHECK (plain, 1, -1, 2);
}

/* What the gradient function computes is differentiated as it stands. */
static void
test_second (void)
{
  g_autoptr (TinyTensor) x = variable (0, 3);
  g_autoptr (TinyTensor) y = only (custom (square, thrice, &x, 1));
  g_autoptr (TinyTensor) first = only (T (gradient) (sum (y), &x, 1, NULL));
  CHECK (first, 3 * at[0], 3 * at[1], 3 * at[2]);
  g_autoptr (TinyTensor) second = only (T (gradient) (sum (first), &x, 1, NULL));
  CHECK (second, 3, 3, 3);
}

/* All gradients come at once, zeros for what nobody uses; NULL: none flows on. */
FUNCTION (both_ways, T (add) (x[0], x[1]), T (sub) (x[0], x[1]))

static GPtrArray *
mixed (TinyTensor *const *g,
       guint n_g,
       TinyTensor *const *x,
       guint n_x,
       TinyTensor *const *y,
       guint n_y,
       gpointer data,
       GError **error)
{
  g_assert_cmpuint (n_g, ==, 2);
  g_assert_cmpuint (n_x, ==, 2);
  g_assert_cmpuint (n_y, ==, 2);
  *(guint *) data += 1;
  GPtrArray *list = tiny_tensors (T (add) (T (mul) (g[0], y[1]), g[1]), NULL);
  g_ptr_array_add (list, NULL);
  return list;
}

static void
test_several (void)
{
  guint n_calls = 0;
  g_autoptr (TinyTensor) a = variable (0, 3);
  g_autoptr (TinyTensor) b = g_object_ref_sink (T (arange) (TINY_DTYPE_F64, 1, 4, 1));
  TinyTensor *x[] = { a, b };
  g_autoptr (GPtrArray) y = tiny_custom_gradient (both_ways, NULL, mixed, &n_calls, NULL, x, 2);
  TinyTensor *loss = T (add) (sum (y->pdata[0]), sum (T (square) (y->pdata[1])));
  g_autoptr (GPtrArray) found = T (gradient) (loss, x, 2, NULL);
  g_assert_cmpuint (n_calls, ==, 1);
  double d[3];
  for (guint i = 0; i < 3; i++)
    d[i] = at[i] - (i + 1);
  CHECK (found->pdata[0], d[0] + 2 * d[0], d[1] + 2 * d[1], d[2] + 2 * d[2]);
  CHECK (found->pdata[1], 0, 0, 0);
  g_autoptr (GPtrArray) one = T (gradient) (sum (y->pdata[1]), x, 2, NULL);
  CHECK (one->pdata[0], 1, 1, 1);
}

/* The same tensor twice gets the gradients of both. */
FUNCTION (product, T (mul) (x[0], x[1]))
BACKWARD (one_and_two, g[0], T (mul) (g[0], T (scalar) (2)))

static void
test_twice (void)
{
  g_autoptr (TinyTensor) a = variable (0, 3);
  TinyTensor *x[] = { a, a };
  g_autoptr (TinyTensor) y = only (custom (product, one_and_two, x, 2));
  g_autoptr (TinyTensor) found = only (T (gradient) (sum (y), &a, 1, NULL));
  CHECK (found, 3, 3, 3);
}

/* Forward the gradient function is read the other way, if it is linear. */
FUNCTION (outer_square, only (custom (square, thrice, x, n)))
FUNCTION (outer_limited, only (custom (square, limited, x, n)))

static void
test_forward (void)
{
  g_autoptr (TinyTensor) x = variable (0, 3);
  g_autoptr (TinyTensor) t = g_object_ref_sink (T (arange) (TINY_DTYPE_F64, 1, 4, 1));
  g_autoptr (TinyTensor) found = only (tiny_jvp (outer_square, NULL, &x, 1, &t, 1, NULL));
  CHECK (found, 3 * at[0], 6 * at[1], 9 * at[2]);
  g_assert_only_error (
      tiny_jvp (outer_limited, NULL, &x, 1, &t, 1, NULL),
      "custom_gradient: the gradient function is not linear in the gradients that it is given, "
      "so there is no derivative forward");
  g_autoptr (TinyTensor) back = only (tiny_vjp (outer_limited, NULL, &x, 1, &t, 1, NULL));
  CHECK (back, 1, 1, 1);
}

/* Two results, batched: one rule for both; what all share gets the sum. */
static GPtrArray *
shared (TinyTensor *const *x, guint n, gpointer data, GError **error)
{
  return tiny_custom_gradient (both_ways, NULL, mixed, data, NULL, x, n);
}

static void
test_batch (void)
{
  guint n_calls = 0;
  static const double values[] = { 1, 2, 3, 4, 5, 6 };
  Oracle pair = { 2, { values, at } };
  g_autoptr (TinyTensor) x
      = g_object_ref_sink (oracle_param (0, TINY_DTYPE_F64, (gint64[]){ 2, 3 }, 2));
  g_autoptr (TinyTensor) b = variable (1, 3);
  TinyTensor *inputs[2][2] = { { x, b }, { b, x } };
  for (guint k = 0; k < 2; k++) {
    gint axes[2] = { k == 0 ? 0 : TINY_NO_AXIS, k == 1 ? 0 : TINY_NO_AXIS };
    n_calls = 0;
    g_autoptr (GPtrArray) y = tiny_vmap (shared, &n_calls, inputs[k], 2, axes, 2, NULL, 0);
    g_assert_cmpuint (y->len, ==, 2);
    g_autoptr (TinyTensor) found = only (
        T (gradient) (T (add) (sum (y->pdata[0]), sum (y->pdata[1])), inputs[k], 1, NULL));
    g_assert_cmpuint (n_calls, ==, 1);
    gsize n;
    g_autofree double *gradient = oracle_eval (&pair, found, &n);
    g_assert_cmpuint (n, ==, k == 0 ? 6 : 3);
    for (guint i = 0; i < n; i++)
      g_assert_cmpfloat_with_epsilon (gradient[i],
                                      k == 0 ? values[i] - at[i % 3] + 1
                                             : 2 * at[i] - values[i] - values[i + 3] + 2,
                                      1e-12);
  }
}

/* The data goes when nothing is left to take a gradient of. */
static void
count_call (gpointer data)
{
  ++*(guint *) data;
}

static void
test_destroy (void)
{
  guint n_destroyed = 0;
  TinyTensor *x = variable (0, 3);
  TinyTensor *y
      = only (tiny_custom_gradient (square, NULL, thrice, &n_destroyed, count_call, &x, 1));
  tiny_runtime_lock ();
  tiny_runtime_sweep (TRUE);
  tiny_runtime_unlock ();
  g_assert_cmpuint (n_destroyed, ==, 0);
  g_object_unref (y);
  tiny_runtime_lock ();
  tiny_runtime_sweep (TRUE);
  tiny_runtime_unlock ();
  g_assert_cmpuint (n_destroyed, ==, 1);
  g_assert_only_error (
      tiny_custom_gradient (NULL, NULL, thrice, &n_destroyed, count_call, &x, 1),
      "custom_gradient: there is no function");
  g_assert_cmpuint (n_destroyed, ==, 2);
  g_object_unref (x);
}

BACKWARD (too_many, g[0], g[0])
BACKWARD (too_large, T (reshape) (g[0], (gint64[]){ 3, 1 }, 2))
BACKWARD (broken, T (reshape) (g[0], (gint64[]){ 4 }, 1))

static GPtrArray *
fail (TinyTensor *const *g,
      guint n_g,
      TinyTensor *const *x,
      guint n_x,
      TinyTensor *const *y,
      guint n_y,
      gpointer data,
      GError **error)
{
  g_set_error_literal (error, TINY_ERROR, TINY_ERROR_IO, "no more paper");
  return NULL;
}

static void
test_errors (void)
{
  g_autoptr (TinyTensor) x = variable (0, 3);
  static const struct {
    TinyBackwardFunction backward;
    const char *message;
  } rows[] = {
    { too_many, "custom_gradient: 2 gradients came for 1 inputs" },
    { too_large, "custom_gradient: gradient 0 is (3, 1) of f64, not (3,) of f64" },
    { broken, "reshape: (3,) of 3 elements does not fit (4,)" },
    { fail, "no more paper" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (TinyTensor) y = only (custom (square, rows[i].backward, &x, 1));
    g_assert_only_error (T (gradient) (sum (y), &x, 1, NULL), rows[i].message);
  }
  g_assert_only_error (custom (square, NULL, &x, 1),
                       "custom_gradient: there is no gradient function");
  g_assert_only_error (tiny_checkpoint (NULL, NULL, &x, 1), "checkpoint: there is no function");
  g_assert_only_error (tiny_checkpoint (square, NULL, NULL, 1),
                       "checkpoint: input 0 is no tensor");
}

/* ---- checkpoints ---- */
static GPtrArray *
case_in_checkpoint (TinyTensor *const *x, guint n, gpointer test, GError **error)
{
  return tiny_checkpoint (case_function, test, x, n);
}

static void
check_alike (Arguments *x, const char *what, GPtrArray *a, GPtrArray *b)
{
  g_assert_cmpuint (a->len, ==, b->len);
  for (guint i = 0; i < a->len; i++) {
    gsize n, n_other;
    g_autofree double *one = oracle_eval (&x->oracle, a->pdata[i], &n);
    g_autofree double *other = oracle_eval (&x->oracle, b->pdata[i], &n_other);
    g_assert_cmpuint (n, ==, n_other);
    for (gsize j = 0; j < n; j++)
      if (!(fabs (one[j] - other[j]) <= 1e-12 * MAX (1, fabs (other[j])))) {
        CASE_FAILS ("%s %u, element %zu: %.17g with a checkpoint, %.17g without", what, i, j,
                    one[j], other[j]);
        break;
      }
  }
  g_ptr_array_unref (a);
  g_ptr_array_unref (b);
}

/* The gradient of the squared gradients. */
static GPtrArray *
second_order (TinyFunction function, const Case *test, Arguments *x)
{
  g_autoptr (TinyTensor) y = only (function (x->x, x->n, (gpointer) test, NULL));
  TinyTensor *loss = sum (T (mul) (y, uneven_numbers (y, 1)));
  g_autoptr (GPtrArray) first = T (gradient) (loss, x->x, x->n, NULL);
  TinyTensor *squares = NULL;
  for (guint i = 0; i < first->len; i++) {
    TinyTensor *part = sum (T (square) (first->pdata[i]));
    squares = squares == NULL ? part : T (add) (squares, part);
  }
  return T (gradient) (squares, x->x, x->n, NULL);
}

static void
test_checkpoint (gconstpointer data)
{
  const Case *test = data;
  g_auto (Arguments) x = { 0 };
  arguments_init (&x, test, NULL, 0);
  g_autoptr (TinyTensor) y = g_object_ref_sink (test->function (x.x));
  g_autoptr (TinyTensor) w = g_object_ref_sink (uneven_numbers (y, 1));
  gpointer pass = (gpointer) test;
  check_alike (&x, test->name, case_in_checkpoint (x.x, x.n, pass, NULL),
               case_function (x.x, x.n, pass, NULL));
  check_alike (&x, test->name, tiny_vjp (case_in_checkpoint, pass, x.x, x.n, &w, 1, NULL),
               tiny_vjp (case_function, pass, x.x, x.n, &w, 1, NULL));
  check_alike (&x, test->name, tiny_jvp (case_in_checkpoint, pass, x.x, x.n, x.x, x.n, NULL),
               tiny_jvp (case_function, pass, x.x, x.n, x.x, x.n, NULL));
  check_alike (&x, test->name, second_order (case_in_checkpoint, test, &x),
               second_order (case_function, test, &x));
}

/* What the function uses beside its arguments gets its gradient, once, also through others of it. */
FUNCTION (with_captured,
          T (mul) (T (sin) (T (mul) (x[0], ((TinyTensor **) data)[0])),
                   ((TinyTensor **) data)[1]))

static void
test_captured (void)
{
  g_autoptr (TinyTensor) x = variable (0, 3);
  g_autoptr (TinyTensor) w = variable (1, 3);
  g_autoptr (TinyTensor) square_of_w = g_object_ref_sink (T (square) (w));
  TinyTensor *captured[] = { w, square_of_w };
  g_autoptr (TinyTensor) y = only (tiny_checkpoint (with_captured, captured, &x, 1));
  g_autoptr (TinyTensor) found = only (T (gradient) (sum (y), &w, 1, NULL));
  double expected[3];
  for (guint i = 0; i < 3; i++) /* sin (x w) w²; here x and w have the same values */
    expected[i] = at[i] * cos (at[i] * at[i]) * at[i] * at[i] + sin (at[i] * at[i]) * 2 * at[i];
  check_values (found, 3, expected);
}

/* The same argument twice. */
static void
test_checkpoint_twice (void)
{
  g_autoptr (TinyTensor) a = variable (0, 3);
  TinyTensor *x[] = { a, a };
  g_autoptr (TinyTensor) y = only (tiny_checkpoint (product, NULL, x, 2));
  g_autoptr (TinyTensor) found = only (T (gradient) (sum (T (square) (y)), &a, 1, NULL));
  CHECK (found, 4 * pow (at[0], 3), 4 * pow (at[1], 3), 4 * pow (at[2], 3));
}

/* ---- memory ---- */
enum { N_BLOCKS = 6, N_LAYERS = 4, WIDTH = 64 };

static GPtrArray *
block (TinyTensor *const *x, guint n, gpointer weights, GError **error)
{
  TinyTensor *y = x[0];
  for (guint i = 0; i < N_LAYERS; i++)
    y = T (tanh) (T (matmul) (y, ((TinyTensor **) weights)[i]));
  return tiny_tensors (y, NULL);
}

static void
add_temporaries (const TinySchedule *schedule, const GArray *verdicts, gpointer n_bytes)
{
  for (guint i = 0; i < schedule->n_arenas; i++)
    *(gint64 *) n_bytes += schedule->arenas[i].n_bytes;
}

/* The gradients of all weights, realised; and the temporary memory of that. */
static GPtrArray *
train (gboolean checkpoints, TinyTensor *x, TinyTensor **weights, gint64 *out_n_bytes)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) y = g_object_ref (x);
  *out_n_bytes = 0;
  for (guint i = 0; i < N_BLOCKS; i++) {
    GPtrArray *next = checkpoints ? tiny_checkpoint (block, weights + i * N_LAYERS, &y, 1)
                                  : block (&y, 1, weights + i * N_LAYERS, NULL);
    g_object_unref (y);
    y = only (next);
  }
  GPtrArray *found = T (gradient) (sum (T (square) (y)), weights, N_BLOCKS * N_LAYERS, NULL);
  tiny_plan_set_watcher (add_temporaries, out_n_bytes);
  tiny_tensor_realize_many ((TinyTensor *const *) found->pdata, found->len, &error);
  tiny_plan_set_watcher (NULL, NULL);
  g_assert_no_error (error);
  return found;
}

static TinyTensor *
uneven_matrix (double first)
{
  TinyTensor *angles = T (arange) (TINY_DTYPE_F32, first, first + WIDTH * WIDTH, 1);
  TinyTensor *flat = T (mul) (T (sin) (angles), T (scalar) (0.2));
  TinyTensor *matrix = g_object_ref_sink (T (reshape) (flat, (gint64[]){ WIDTH, WIDTH }, 2));
  g_assert_true (tiny_tensor_realize (matrix, NULL));
  return matrix;
}

static void
test_memory (void)
{
  TinyTensor *weights[N_BLOCKS * N_LAYERS];
  gint64 n_plain, n_less;
  for (guint i = 0; i < G_N_ELEMENTS (weights); i++)
    weights[i] = uneven_matrix (7 * i);
  g_autoptr (TinyTensor) x = uneven_matrix (3);
  g_autoptr (GPtrArray) plain = train (FALSE, x, weights, &n_plain);
  g_autoptr (GPtrArray) less = train (TRUE, x, weights, &n_less);
  g_test_message ("temporary memory: %" G_GINT64_FORMAT
                  " bytes, with checkpoints %" G_GINT64_FORMAT,
                  n_plain, n_less);
  /* Without, the results of all layers but the last are there when the gradient begins; with, those
   * of the blocks and of the layers of one, which are stored in up to three forms. */
  g_assert_cmpint (n_plain, >=, (N_BLOCKS * N_LAYERS - 1) * WIDTH * WIDTH * 4);
  g_assert_cmpint (n_less, <=, (N_BLOCKS + 3 * N_LAYERS) * WIDTH * WIDTH * 4);
  for (guint i = 0; i < G_N_ELEMENTS (weights); i++) {
    g_autoptr (GBytes) a = tiny_tensor_get_data (plain->pdata[i], NULL);
    g_autoptr (GBytes) b = tiny_tensor_get_data (less->pdata[i], NULL);
    const float *one = g_bytes_get_data (a, NULL), *other = g_bytes_get_data (b, NULL);
    for (guint j = 0; j < WIDTH * WIDTH; j++)
      g_assert_cmpfloat_with_epsilon (one[j], other[j], 1e-5 * MAX (1, fabsf (other[j])));
    g_object_unref (weights[i]);
  }
}

/* ---- stored gradients ---- */
static void
test_contiguous (void)
{
  g_autoptr (TinyTensor) x = variable (0, 3);
  g_autoptr (TinyTensor) y
      = g_object_ref_sink (T (square) (tiny_tensor_contiguous_backward (x)));
  g_autoptr (TinyTensor) found = only (T (gradient) (sum (y), &x, 1, NULL));
  CHECK (found, 2 * at[0], 2 * at[1], 2 * at[2]);
  tiny_runtime_lock ();
  TinyNode *root = tiny_tensor_get_node (found);
  g_assert_cmpint (root->op, ==, TINY_OP_GRADIENT); /* which its own gradient is stored for */
  g_assert_cmpint (root->sources[0]->op, ==, TINY_OP_CONTIGUOUS);
  tiny_runtime_unlock ();
  g_autoptr (TinyTensor) second
      = only (T (gradient) (sum (g_object_ref_sink (T (square) (found))), &x, 1, NULL));
  CHECK (second, 8 * at[0], 8 * at[1], 8 * at[2]);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < n_cases; i++) {
    g_autofree char *path = g_strdup_printf ("/autograd/custom/checkpoint/%s", cases[i].name);
    g_test_add_data_func (path, &cases[i], test_checkpoint);
  }
#define ADD(name, function) g_test_add_func ("/autograd/custom/" name, function)
  ADD ("gradient", test_gradient);
  ADD ("second", test_second);
  ADD ("several", test_several);
  ADD ("twice", test_twice);
  ADD ("forward", test_forward);
  ADD ("batch", test_batch);
  ADD ("destroy", test_destroy);
  ADD ("errors", test_errors);
  ADD ("captured", test_captured);
  ADD ("checkpoint-twice", test_checkpoint_twice);
  ADD ("memory", test_memory);
  ADD ("contiguous", test_contiguous);
  return g_test_run ();
}
