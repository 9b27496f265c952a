/* SPDX-License-Identifier: MIT
 *
 * test-vmap.c: every operation on a whole batch against each element by itself, with the batch in
 * front, elsewhere, and twice; that every op has a rule; and what wrong arguments get. */
#include <math.h>

#include "../case-fails.h"
#include "autograd/batch-rules.h"
#include "autograd/tiny-gradient.h"
#include "function-cases.h"
#include "ir/tiny-check.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

#define T(name) tiny_tensor_##name

static const gint64 sizes[] = { 2, 3 };

/* Compares @batched, whose leading axes are @n elements of the batch, with each of these alone. */
static void
check_elements (
    Arguments *x, const Case *test, TinyTensor *batched, gint64 n, const gboolean *is_batched)
{
  Arguments one = { 0 };
  gsize n_found, n_each;
  arguments_init (&one, test, NULL, 0);
  g_autoptr (TinyTensor) y = g_object_ref_sink (test->function (one.x));
  g_autofree double *found = oracle_eval (&x->oracle, batched, &n_found);
  for (gint64 b = 0; b < n; b++) {
    Oracle oracle = { test->n, { NULL } };
    for (guint i = 0; i < test->n; i++)
      oracle.params[i] = x->values[i] + (is_batched[i] ? b * one.n_values[i] : 0);
    g_autofree double *expected = oracle_eval (&oracle, y, &n_each);
    g_assert_cmpuint (n_found, ==, n_each * (gsize) n);
    for (gsize j = 0; j < n_each; j++)
      if (!(fabs (found[b * (gint64) n_each + (gint64) j] - expected[j])
            <= 1e-12 * MAX (1, fabs (expected[j])))) {
        CASE_FAILS ("%s: element %zu of %d is %.17g, alone %.17g", test->name, j, (int) b,
                    found[b * (gint64) n_each + (gint64) j], expected[j]);
        break;
      }
  }
  arguments_clear (&one);
}

/* Those that draw, seed before that: all elements have the same numbers. */
static GPtrArray *
map_case (TinyFunction function,
          gconstpointer test,
          TinyTensor *const *inputs,
          guint n,
          const gint *in_axes,
          guint n_in_axes,
          const gint *out_axes,
          guint n_out_axes)
{
  return tiny_vmap_with_randomness (function, (gpointer) test, inputs, n, in_axes, n_in_axes,
                                    out_axes, n_out_axes, "same");
}

static TinyTensor *
only (GPtrArray *list)
{
  g_assert_cmpuint (list->len, ==, 1);
  g_assert_no_error (tiny_tensor_get_error (list->pdata[0]));
  TinyTensor *tensor = g_object_ref (list->pdata[0]);
  g_ptr_array_unref (list);
  return tensor;
}

static void
test_front (gconstpointer data)
{
  const Case *test = data;
  g_auto (Arguments) x = { 0 };
  arguments_init (&x, test, &sizes[1], 1);
  g_autoptr (TinyTensor) y
      = only (map_case (case_function, test, x.x, test->n, NULL, 0, NULL, 0));
  check_elements (&x, test, y, sizes[1], (gboolean[]){ TRUE, TRUE, TRUE });
}

/* The batch is the last axis of the first argument and of the result; other arguments have none. */
static void
test_elsewhere (gconstpointer data)
{
  const Case *test = data;
  g_auto (Arguments) x = { 0 }, plain = { 0 };
  gint axes[] = { -1, TINY_NO_AXIS, TINY_NO_AXIS }, order[8], back[8], last = -1;
  arguments_init (&x, test, &sizes[1], 1);
  arguments_init (&plain, test, NULL, 0);
  guint rank = T (get_n_dims) (x.x[0]);
  for (guint i = 0; i < rank; i++)
    order[i] = (gint) ((i + 1) % rank);
  TinyTensor *inputs[MAX_ARGUMENTS] = { NULL };
  for (guint i = 0; i < test->n; i++)
    inputs[i] = g_object_ref_sink (i == 0 ? T (permute) (x.x[0], order, rank)
                                          : T (cast) (plain.x[i], TINY_DTYPE_F64));
  g_autoptr (TinyTensor) y
      = only (map_case (case_function, test, inputs, test->n, axes, test->n, &last, 1));
  rank = T (get_n_dims) (y);
  for (guint i = 0; i < rank; i++)
    back[i] = (gint) ((i + rank - 1) % rank);
  g_autoptr (TinyTensor) front = g_object_ref_sink (T (permute) (y, back, rank));
  check_elements (&x, test, front, sizes[1], (gboolean[]){ TRUE, FALSE, FALSE });
  for (guint i = 0; i < test->n; i++)
    g_object_unref (inputs[i]);
}

static GPtrArray *
inner (TinyTensor *const *inputs, guint n, gpointer test, GError **error)
{
  return map_case (case_function, test, inputs, n, NULL, 0, NULL, 0);
}

static void
test_nested (gconstpointer data)
{
  const Case *test = data;
  g_auto (Arguments) x = { 0 };
  arguments_init (&x, test, sizes, 2);
  g_autoptr (TinyTensor) y = only (map_case (inner, test, x.x, test->n, NULL, 0, NULL, 0));
  check_elements (&x, test, y, sizes[0] * sizes[1], (gboolean[]){ TRUE, TRUE, TRUE });
}

/* Everything in a tensor graph that has sources can be batched: a new op wants a rule. */
static void
test_rules (void)
{
  for (guint op = 0; op < TINY_N_OPS; op++) {
    gboolean in_tensors = tiny_op_rules[op].stages & 1u << TINY_STAGE_TENSOR;
    gboolean has_sources = tiny_op_infos[op].most != 0 && op != TINY_OP_SINK;
    if (in_tensors && has_sources && tiny_batch_rule ((TinyOp) op) == NULL)
      CASE_FAILS ("%s has no rule for batches", tiny_op_to_string ((TinyOp) op));
  }
}

/* ---- ops that no differentiable case has ---- */
static GPtrArray *
integers (TinyTensor *const *x, guint n, gpointer data, GError **error)
{
  TinyTensor *i = g_object_ref_sink (T (cast) (x[0], TINY_DTYPE_I32));
  TinyTensor *three = g_object_ref_sink (T (full) (TINY_DTYPE_I32, NULL, 0, 3));
  GPtrArray *list = tiny_tensors (
      T (floor_divide) (i, three), T (mod) (i, three), T (bitwise_and) (i, three),
      T (bitwise_or) (i, three), T (bitwise_xor) (i, three), T (lshift) (i, three),
      T (rshift) (i, T (scalar) (1)), T (ne) (i, three), T (trunc) (x[0]),
      T (max) (i, NULL, 0, FALSE), T (add) (T (sum) (i, NULL, 0, FALSE), i), NULL);
  g_object_unref (i);
  g_object_unref (three);
  return list;
}

static void
test_integers (void)
{
  static const double values[] = { -7.5, 3, 12, 5.25, 0, -2 };
  Oracle whole = { 1, { values } };
  g_autoptr (TinyTensor) x
      = g_object_ref_sink (oracle_param (0, TINY_DTYPE_F64, (gint64[]){ 3, 2 }, 2));
  g_autoptr (TinyTensor) each
      = g_object_ref_sink (oracle_param (0, TINY_DTYPE_F64, (gint64[]){ 2 }, 1));
  g_autoptr (GPtrArray) found = tiny_vmap (integers, NULL, &x, 1, NULL, 0, NULL, 0);
  g_autoptr (GPtrArray) alone = integers (&each, 1, NULL, NULL);
  g_assert_cmpuint (found->len, ==, alone->len);
  for (guint k = 0; k < found->len; k++) {
    gsize n, n_found;
    g_autofree double *batch = oracle_eval (&whole, found->pdata[k], &n_found);
    for (guint b = 0; b < 3; b++) {
      Oracle one = { 1, { values + 2 * b } };
      g_autofree double *expected = oracle_eval (&one, alone->pdata[k], &n);
      g_assert_cmpuint (n_found, ==, 3 * n);
      for (gsize j = 0; j < n; j++)
        g_assert_cmpfloat (batch[b * n + j], ==, expected[j]);
    }
  }
}

/* ---- with other transforms ---- */
static GPtrArray *
cube_sum (TinyTensor *const *x, guint n, gpointer data, GError **error)
{
  TinyTensor *cubes = T (mul) (T (square) (x[0]), x[0]);
  return tiny_tensors (T (sum) (cubes, NULL, 0, FALSE), NULL);
}

static GPtrArray *
gradient_of_cubes (TinyTensor *const *x, guint n, gpointer data, GError **error)
{
  return tiny_vjp (cube_sum, NULL, x, n, NULL, 0, NULL);
}

static GPtrArray *
hessian_of_cubes (TinyTensor *const *x, guint n, gpointer data, GError **error)
{
  return tiny_hessian (cube_sum, NULL, x, n);
}

static void
test_derivatives (void)
{
  static const double values[] = { 1, 2, 3, -4, 5, 6 };
  Oracle oracle = { 1, { values } };
  g_autoptr (TinyTensor) x
      = g_object_ref_sink (oracle_param (0, TINY_DTYPE_F64, (gint64[]){ 3, 2 }, 2));
  g_autoptr (TinyTensor) first
      = only (tiny_vmap (gradient_of_cubes, NULL, &x, 1, NULL, 0, NULL, 0));
  g_autoptr (TinyTensor) second
      = only (tiny_vmap (hessian_of_cubes, NULL, &x, 1, NULL, 0, NULL, 0));
  g_autofree double *gradients = oracle_eval (&oracle, first, NULL);
  g_autofree double *hessians = oracle_eval (&oracle, second, NULL);
  for (guint i = 0; i < 6; i++)
    g_assert_cmpfloat (gradients[i], ==, 3 * values[i] * values[i]);
  for (guint i = 0; i < 12; i++)
    g_assert_cmpfloat (hessians[i], ==, i / 2 % 2 == i % 2 ? 6 * values[i / 2] : 0);
}

/* What does not depend on the batch may have no axis for it. */
static GPtrArray *
with_constant (TinyTensor *const *x, guint n, gpointer data, GError **error)
{
  return tiny_tensors (T (square) (x[0]), T (arange) (TINY_DTYPE_F64, 0, 2, 1), NULL);
}

static void
check_shape (TinyTensor *tensor, const char *expected)
{
  guint rank;
  const gint64 *shape = T (get_shape) (tensor, &rank);
  g_autoptr (GString) text = g_string_new (NULL);
  for (guint i = 0; i < rank; i++)
    g_string_append_printf (text, i ? " %d" : "%d", (int) shape[i]);
  g_assert_cmpstr (text->str, ==, expected);
}

static void
test_out_axes (void)
{
  g_autoptr (TinyTensor) x
      = g_object_ref_sink (oracle_param (0, TINY_DTYPE_F64, (gint64[]){ 3, 4, 5 }, 3));
  gint in = 1, out[] = { 2, TINY_NO_AXIS };
  g_autoptr (GPtrArray) found = tiny_vmap (with_constant, NULL, &x, 1, &in, 1, out, 2);
  g_assert_cmpuint (found->len, ==, 2);
  check_shape (found->pdata[0], "3 5 4");
  check_shape (found->pdata[1], "2");
  g_autoptr (GPtrArray) spread = tiny_vmap (with_constant, NULL, &x, 1, &in, 1, NULL, 0);
  check_shape (spread->pdata[0], "4 3 5");
  check_shape (spread->pdata[1], "4 2");
  out[0] = TINY_NO_AXIS;
  g_assert_only_error (tiny_vmap (with_constant, NULL, &x, 1, &in, 1, out, 2),
                       "vmap: result 0 has no axis for the batch, and depends on it");
  g_assert_only_error (tiny_vmap (with_constant, NULL, &x, 1, &in, 1, out, 1),
                       "vmap: 1 axes are given for 2 results");
  out[0] = 3;
  g_assert_only_error (tiny_vmap (with_constant, NULL, &x, 1, &in, 1, out, 2),
                       "vmap: batched result 0 of 3 axes has no axis 3");
}

/* ---- wrong arguments ---- */
static GPtrArray *
identity (TinyTensor *const *x, guint n, gpointer data, GError **error)
{
  return tiny_tensors (x[0], NULL);
}

static GPtrArray *
read_value (TinyTensor *const *x, guint n, gpointer data, GError **error)
{
  double value;
  g_autoptr (TinyTensor) sum = g_object_ref_sink (T (sum) (x[0], NULL, 0, FALSE));
  g_assert_false (T (item) (sum, &value, error));
  return NULL;
}

/* As tiny_tensor_assign() makes it where there is a device. */
static GPtrArray *
assign_outside (TinyTensor *const *x, guint n, gpointer outside, GError **error)
{
  tiny_runtime_lock ();
  TinyNode *sources[] = { tiny_tensor_get_node (outside), tiny_tensor_get_node (x[0]) };
  TinyTensor *result
      = tiny_tensor_new_for_node (tiny_node_new (tiny_runtime_get_graph (), TINY_OP_ASSIGN,
                                                 TINY_DTYPE_F64, 1, 2, sources, 0, NULL, NULL),
                                  NULL);
  tiny_runtime_unlock ();
  return tiny_tensors (result, NULL);
}

static void
test_errors (void)
{
  g_autoptr (TinyTensor) x
      = g_object_ref_sink (oracle_param (0, TINY_DTYPE_F64, (gint64[]){ 3, 2 }, 2));
  g_autoptr (TinyTensor) y
      = g_object_ref_sink (oracle_param (0, TINY_DTYPE_F64, (gint64[]){ 4 }, 1));
  g_autoptr (TinyTensor) number = g_object_ref_sink (T (scalar) (1));
  gint none = TINY_NO_AXIS, far = 2;
  TinyTensor *both[] = { x, y };
#define CHECK(text, ...) g_assert_only_error (tiny_vmap (__VA_ARGS__), text)
  CHECK ("vmap: there is no function", NULL, NULL, &x, 1, NULL, 0, NULL, 0);
  CHECK ("vmap: input 0 is no tensor", identity, NULL, NULL, 1, NULL, 0, NULL, 0);
  CHECK ("vmap: input 0 has a batch of 3, input 1 one of 4", identity, NULL, both, 2, NULL, 0,
         NULL, 0);
  CHECK ("vmap: input 0 of 2 axes has no axis 2", identity, NULL, &x, 1, &far, 1, NULL, 0);
  CHECK ("vmap: input 0 of 0 axes has no axis 0", identity, NULL, &number, 1, NULL, 0, NULL, 0);
  CHECK ("vmap: no input has an axis that is the batch's", identity, NULL, &x, 1, &none, 1,
         NULL, 0);
  CHECK ("vmap: 1 axes are given for 2 inputs", identity, NULL, both, 2, &none, 1, NULL, 0);
  g_autoptr (TinyTensor) row
      = g_object_ref_sink (oracle_param (1, TINY_DTYPE_F64, (gint64[]){ 2 }, 1));
  CHECK ("vmap: assign: the memory of one tensor cannot become the values of a batch",
         assign_outside, row, &x, 1, NULL, 0, NULL, 0);
#undef CHECK
  g_autoptr (GPtrArray) read = tiny_vmap (read_value, NULL, &x, 1, NULL, 0, NULL, 0);
  g_assert_true (g_str_has_prefix (tiny_tensor_get_error (read->pdata[0])->message,
                                   "realize: the value depends on an argument of a function"));
}

int
main (int argc, char *argv[])
{
  static const struct {
    const char *name;
    GTestDataFunc function;
  } kinds[]
      = { { "front", test_front }, { "elsewhere", test_elsewhere }, { "nested", test_nested } };
  g_test_init (&argc, &argv, NULL);
  for (guint k = 0; k < G_N_ELEMENTS (kinds); k++)
    for (guint i = 0; i < n_cases; i++) {
      g_autofree char *path
          = g_strdup_printf ("/autograd/vmap/%s/%s", kinds[k].name, cases[i].name);
      g_test_add_data_func (path, &cases[i], kinds[k].function);
    }
#define ADD(name, function) g_test_add_func ("/autograd/vmap/" name, function)
  ADD ("rules", test_rules);
  ADD ("integers", test_integers);
  ADD ("derivatives", test_derivatives);
  ADD ("out-axes", test_out_axes);
  ADD ("errors", test_errors);
  return g_test_run ();
}
