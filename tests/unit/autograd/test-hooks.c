/* SPDX-License-Identifier: MIT
 *
 * test-hooks.c: hooks see the gradient of all uses of a variable, and of later uses of what is computed; what they give goes
 * on; they go when they are removed, or what they are for does. Whether a tensor is made of another. Products in narrow floats. */
#include <string.h>
#include <tiny.h>

#include "../default-device.h"

#define T(name)          tiny_tensor_##name
#define OWN(name, value) g_autoptr (TinyTensor) name = g_object_ref_sink (value)

typedef struct {
  double factor, seen;
  guint n_calls, n_gone;
} Note;

static double
read_value (TinyTensor *tensor)
{
  g_autoptr (GError) error = NULL;
  double value = 0;
  T (item) (tensor, &value, &error);
  g_assert_no_error (error);
  return value;
}

static TinyTensor *
variable (float value)
{
  TinyTensor *x = g_object_ref_sink (
      tiny_tensor_new_from_data (NULL, TINY_DTYPE_F32, NULL, 0, &value, sizeof value));
  tiny_tensor_set_requires_grad (x, TRUE);
  return x;
}

/* Times the factor; 0: as it is; -1: it fails; -2: what it gives does not fit. */
static TinyTensor *
hook (TinyTensor *gradient, gpointer user_data, GError **error)
{
  Note *note = user_data;
  note->n_calls++;
  note->seen = read_value (gradient);
  if (note->factor == -1)
    g_set_error_literal (error, TINY_ERROR, TINY_ERROR_IO, "no more paper");
  if (note->factor == -2)
    return g_object_ref_sink (T (unsqueeze) (gradient, 0));
  return note->factor > 0 ? T (mul_number) (gradient, note->factor) : NULL;
}

static void
count_gone (gpointer user_data)
{
  ((Note *) user_data)->n_gone++;
}

static guint
add_hook (TinyTensor *tensor, Note *note)
{
  g_autoptr (GError) error = NULL;
  guint id = T (add_gradient_hook) (tensor, hook, note, count_gone, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (id, >, 0);
  return id;
}

static void
check_backward (TinyTensor *loss, TinyTensor *x, double expected)
{
  g_autoptr (GError) error = NULL;
  T (clear_grad) (x);
  T (backward) (loss, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (read_value (T (get_grad) (x)), ==, expected);
}

static void
test_variable (void)
{
  if (skips_without_device ())
    return;
  Note note = { 10 };
  g_autoptr (TinyTensor) x = variable (3);
  OWN (loss, T (square) (x));
  guint id = add_hook (x, &note); /* after the use */
  check_backward (loss, x, 60);
  g_assert_cmpfloat (note.seen, ==, 6);
  g_assert_cmpuint (note.n_calls, ==, 1);
  g_assert_true (T (remove_gradient_hook) (x, id));
  g_assert_false (T (remove_gradient_hook) (x, id));
  g_assert_cmpuint (note.n_gone, ==, 1);
  check_backward (loss, x, 6);
  g_assert_cmpuint (note.n_calls, ==, 1);
}

static void
test_computed (void)
{
  if (skips_without_device ())
    return;
  Note first = { 10 }, second = { 0 };
  g_autoptr (TinyTensor) x = variable (3);
  TinyTensor *y = g_object_ref_sink (T (square) (x));
  OWN (before, T (mul_number) (y, 2));
  add_hook (y, &first);
  add_hook (y, &second);
  OWN (after, T (mul_number) (y, 5));
  check_backward (before, x, 12);
  g_assert_cmpuint (first.n_calls + second.n_calls, ==, 0);
  g_clear_object (&y);
  check_backward (after, x, 300);
  g_assert_cmpfloat (first.seen, ==, 5);
  g_assert_cmpfloat (second.seen, ==, 50); /* what the first gave */
  g_assert_cmpfloat (read_value (after), ==, 45);
}

/* A tensor realised between two hooks has its uses before and after seen once by each. */
static void
test_realised (void)
{
  if (skips_without_device ())
    return;
  Note first = { 10 }, second = { 0 };
  g_autoptr (TinyTensor) x = variable (3);
  OWN (y, T (square) (x));
  guint id = add_hook (y, &first);
  OWN (before, T (mul_number) (y, 2));
  read_value (y);
  add_hook (y, &second);
  OWN (after, T (mul_number) (y, 5));
  OWN (loss, T (add) (before, after));
  check_backward (loss, x, 420);
  g_assert_cmpuint (first.n_calls, ==, 1);
  g_assert_cmpfloat (second.seen, ==, 70);
  g_assert_true (T (remove_gradient_hook) (y, id));
  check_backward (loss, x, 42);
}

static void
test_errors (void)
{
  if (skips_without_device ())
    return;
  Note note = { -1 };
  g_autoptr (TinyTensor) x = variable (3);
  OWN (plain, T (ones) (TINY_DTYPE_F32, NULL, 0));
  GError *error = NULL;
  g_assert_cmpuint (T (add_gradient_hook) (plain, hook, &note, count_gone, &error), ==, 0);
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  g_assert_cmpuint (note.n_gone, ==, 1);
  g_clear_error (&error);
  guint id = add_hook (x, &note);
  OWN (loss, T (square) (x));
  g_assert_false (T (backward) (loss, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_IO);
  g_clear_error (&error);
  note.factor = -2;
  g_assert_false (T (backward) (loss, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, "another shape"));
  g_clear_error (&error);
  g_assert_null (T (get_grad) (x));
  T (remove_gradient_hook) (x, id);
  check_backward (loss, x, 6);
}

static void
test_gone (void)
{
  if (skips_without_device ())
    return;
  Note note = { 2 };
  TinyTensor *x = variable (3);
  add_hook (x, &note);
  g_object_unref (x);
  g_assert_cmpuint (note.n_gone, ==, 1);
}

/* A hook that removes one, which may be itself, and reads its own data after that. */
typedef struct {
  Note note;
  TinyTensor *tensor;
  guint removes;
  guint *n_gone;
} Remover;

static TinyTensor *
remove_one (TinyTensor *gradient, gpointer user_data, GError **error)
{
  Remover *self = user_data;
  g_assert_true (T (remove_gradient_hook) (self->tensor, self->removes));
  g_assert_cmpuint (*self->n_gone, ==, 0);
  return hook (gradient, &self->note, error);
}

static void
remover_free (gpointer user_data)
{
  Remover *self = user_data;
  (*self->n_gone)++;
  g_free (self);
}

static Remover *
add_remover (TinyTensor *tensor, guint *n_gone, guint *out_id)
{
  g_autoptr (GError) error = NULL;
  Remover self = { { 10 }, tensor, 0, n_gone }, *data = g_memdup2 (&self, sizeof self);
  *out_id = T (add_gradient_hook) (tensor, remove_one, data, remover_free, &error);
  g_assert_no_error (error);
  return data;
}

/* The data of a hook last until it returns, also where it removes itself: of a variable, and of what is computed. */
static void
test_removes_itself (void)
{
  if (skips_without_device ())
    return;
  guint n_gone = 0, id;
  g_autoptr (TinyTensor) x = variable (3);
  Remover *own = add_remover (x, &n_gone, &id);
  own->removes = id;
  OWN (loss, T (square) (x));
  check_backward (loss, x, 60);
  g_assert_cmpuint (n_gone, ==, 1);
  check_backward (loss, x, 6);
  OWN (y, T (square) (x));
  n_gone = 0;
  own = add_remover (y, &n_gone, &id);
  own->removes = id;
  OWN (after, T (mul_number) (y, 5));
  check_backward (after, x, 300);
  g_assert_cmpuint (n_gone, ==, 1);
  check_backward (after, x, 30);
}

/* A hook that another removes before its turn is not called. */
static void
test_removes_other (void)
{
  if (skips_without_device ())
    return;
  guint n_gone = 0, id;
  Note other = { 2 };
  g_autoptr (TinyTensor) x = variable (3);
  Remover *first = add_remover (x, &n_gone, &id);
  first->removes = add_hook (x, &other);
  OWN (loss, T (square) (x));
  check_backward (loss, x, 60);
  g_assert_cmpuint (other.n_calls, ==, 0);
  g_assert_cmpuint (other.n_gone, ==, 1);
  g_assert_true (T (remove_gradient_hook) (x, id));
  g_assert_cmpuint (n_gone, ==, 1);
}

static void
test_depends (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (TinyTensor) x = variable (3), y = variable (4);
  OWN (both, T (mul) (x, y));
  OWN (cut, T (mul) (T (detach) (x), y));
  g_assert_true (T (depends_on) (both, x));
  g_assert_true (T (depends_on) (cut, y));
  g_assert_false (T (depends_on) (cut, x));
  g_assert_false (T (depends_on) (x, both));
  read_value (both);
  g_assert_true (T (depends_on) (both, x));
}

static TinyDType
find_dtype (TinyTensor *tensor)
{
  OWN (owned, tensor);
  g_assert_no_error (T (get_error) (owned));
  return T (get_dtype) (owned);
}

static void
test_autocast (void)
{
  if (skips_without_device ())
    return;
  GError *error = NULL;
  OWN (x, T (ones) (TINY_DTYPE_F32, ((gint64[]){ 2, 2 }), 2));
  OWN (wide, T (ones) (TINY_DTYPE_F64, ((gint64[]){ 2, 2 }), 2));
  OWN (narrow, T (cast) (x, TINY_DTYPE_F16));
  g_assert_cmpint (tiny_get_autocast (), ==, TINY_DTYPE_VOID);
  g_assert_cmpint (find_dtype (T (matmul) (narrow, narrow)), ==, TINY_DTYPE_F16);
  g_assert_true (tiny_set_autocast (TINY_DTYPE_BF16, &error));
  g_assert_cmpint (find_dtype (T (matmul) (x, x)), ==, TINY_DTYPE_BF16);
  g_assert_cmpint (find_dtype (T (matmul) (narrow, x)), ==, TINY_DTYPE_BF16);
  g_assert_cmpint (find_dtype (T (matmul) (wide, wide)), ==, TINY_DTYPE_F64);
  g_assert_cmpint (find_dtype (T (exp) (narrow)), ==, TINY_DTYPE_F32);
  g_assert_cmpint (find_dtype (T (mul) (narrow, narrow)), ==, TINY_DTYPE_F16);
  g_assert_false (tiny_set_autocast (TINY_DTYPE_F32, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_cmpint (tiny_get_autocast (), ==, TINY_DTYPE_BF16);
  g_assert_true (tiny_set_autocast (TINY_DTYPE_VOID, &error));
  g_assert_cmpint (find_dtype (T (matmul) (x, x)), ==, TINY_DTYPE_F32);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name, function) g_test_add_func ("/autograd/hooks/" name, function)
  ADD ("variable", test_variable);
  ADD ("computed", test_computed);
  ADD ("realised", test_realised);
  ADD ("errors", test_errors);
  ADD ("gone", test_gone);
  ADD ("removes-itself", test_removes_itself);
  ADD ("removes-other", test_removes_other);
  ADD ("depends", test_depends);
  ADD ("autocast", test_autocast);
  return g_test_run ();
}
