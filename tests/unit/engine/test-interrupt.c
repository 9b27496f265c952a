/* SPDX-License-Identifier: MIT
 *
 * test-interrupt.c: a thread that computes stops when it is told to, with all tensors as they were. */
#include <gio/gio.h>

#include "tiny.h"

enum { N = 32, LENGTH = 150 };

/* Says stop when it is asked for the @stop_at-th time. */
typedef struct {
  guint n_asked, stop_at;
} Asked;

static gboolean
is_enough (gpointer data)
{
  Asked *self = data;
  return ++self->n_asked == self->stop_at;
}

/* As many kernels as it is long; nothing is computed yet. */
static TinyTensor *
make_chain (TinyTensor *from)
{
  const gint64 dims[] = { N, N };
  TinyTensor *y = tiny_tensor_ones (TINY_DTYPE_F32, dims, 2);
  for (guint i = 0; i < LENGTH; i++)
    y = tiny_tensor_matmul (y, from);
  return g_object_ref_sink (y);
}

/* In memory: a matrix that leaves one of ones as it is. */
static TinyTensor *
make_mean (void)
{
  const gint64 dims[] = { N, N };
  g_autoptr (GError) error = NULL;
  TinyTensor *x = g_object_ref_sink (
      tiny_tensor_contiguous (tiny_tensor_full (TINY_DTYPE_F32, dims, 2, 1.0 / N)));
  tiny_tensor_realize (x, &error);
  g_assert_no_error (error);
  return x;
}

static void
assert_all (TinyTensor *tensor, float expected)
{
  g_autoptr (GError) error = NULL;
  g_autofree float *values = g_new (float, N *N);
  tiny_tensor_copy_data (tensor, values, N * N * sizeof (float), &error);
  g_assert_no_error (error);
  for (guint i = 0; i < N * N; i++)
    g_assert_cmpfloat_with_epsilon (values[i], expected, 1e-4);
}

/* A long computation stops where it is told to, and can be asked for again. */
static void
test_long (void)
{
  g_autoptr (TinyTensor) x = make_mean ();
  for (guint stop_at = 1; stop_at <= 2; stop_at++) {
    g_autoptr (TinyTensor) y = make_chain (x);
    g_autoptr (GError) error = NULL;
    Asked asked = { 0, stop_at };
    tiny_set_interrupt_check (is_enough, &asked, NULL);
    g_assert_false (tiny_tensor_realize (y, &error));
    tiny_set_interrupt_check (NULL, NULL, NULL);
    g_assert_error (error, TINY_ERROR, TINY_ERROR_INTERRUPTED);
    g_assert_cmpuint (asked.n_asked, ==, stop_at);
    g_assert_false (tiny_tensor_is_realized (y));
    assert_all (y, 1);
  }
}

/* The thread's own GCancellable says the same. */
static void
test_cancellable (void)
{
  g_autoptr (TinyTensor) x = make_mean (), y = make_chain (x);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  g_cancellable_push_current (cancellable);
  g_cancellable_cancel (cancellable);
  g_assert_false (tiny_tensor_realize (y, &error));
  g_cancellable_pop_current (cancellable);
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  assert_all (y, 1);
}

static void
count_up (gpointer data)
{
  ++*(guint *) data;
}

/* @data goes when another check is set, or none is set with it. */
static void
test_destroy (void)
{
  guint n_destroyed = 0;
  tiny_set_interrupt_check (is_enough, &n_destroyed, count_up);
  g_assert_cmpuint (n_destroyed, ==, 0);
  tiny_set_interrupt_check (NULL, &n_destroyed, count_up);
  g_assert_cmpuint (n_destroyed, ==, 2);
}

int
main (int argc, char **argv)
{
  g_setenv ("DEV", "REF", FALSE);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/engine/interrupt/long", test_long);
  g_test_add_func ("/engine/interrupt/cancellable", test_cancellable);
  g_test_add_func ("/engine/interrupt/destroy", test_destroy);
  return g_test_run ();
}
