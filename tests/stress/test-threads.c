/* SPDX-License-Identifier: MIT
 *
 * test-threads.c: threads that each build, realise and drop their own tensors at the same time get
 * their own right results. Its other half is ThreadSanitizer (tests/sanitize.sh). */
#include "../device-there.h"
#include "base/tiny-env.h"
#include "tiny.h"

enum { N_THREADS = 2, N_ROUNDS = 60, N = 40 };

typedef struct {
  guint number;
  gboolean share; /* the same graph in every thread, or one of its own */
  TinyTensor *common;
} Worker;

/* sum over j of (i + j) * factor + j is N * i * factor + (factor + 1) * N (N - 1) / 2. */
static void
check_round (const Worker *self, guint round)
{
  g_autoptr (GError) error = NULL;
  const gint64 column[] = { N, 1 }, row[] = { 1, N };
  gint64 factor = 1 + (self->share ? round : round * N_THREADS + self->number);
  gint32 values[N], sums[N];
  for (guint i = 0; i < N; i++)
    values[i] = (gint32) i;
  g_autoptr (TinyTensor) x = g_object_ref_sink (
      tiny_tensor_new_from_data (NULL, TINY_DTYPE_I32, column, 2, values, sizeof values));
  TinyTensor *j = tiny_tensor_reshape (self->common, row, 2);
  g_object_ref_sink (j);
  TinyTensor *grid
      = tiny_tensor_add (tiny_tensor_mul_number (tiny_tensor_add (x, j), (double) factor), j);
  g_autoptr (TinyTensor) sum
      = g_object_ref_sink (tiny_tensor_sum (grid, (gint[]){ 1 }, 1, FALSE));
  g_object_unref (j);
  tiny_tensor_copy_data (sum, sums, sizeof sums, &error);
  g_assert_no_error (error);
  for (gint64 i = 0; i < N; i++)
    g_assert_cmpint (sums[i], ==, N * i * factor + (factor + 1) * N * (N - 1) / 2);
}

/* A gradient of its own: backward() of another thread must not take it. */
static void
check_gradient (const Worker *self, guint round)
{
  g_autoptr (GError) error = NULL;
  float values[N];
  for (guint i = 0; i < N; i++)
    values[i] = (float) (i + self->number);
  g_autoptr (TinyTensor) x = g_object_ref_sink (tiny_tensor_new_from_data (
      NULL, TINY_DTYPE_F32, (gint64[]){ N }, 1, values, sizeof values));
  g_autoptr (TinyTensor) loss
      = g_object_ref_sink (tiny_tensor_sum (tiny_tensor_square (x), NULL, 0, FALSE));
  TinyTensor *gradient = NULL;
  g_assert_true (tiny_gradient (loss, &x, 1, &gradient, &error));
  tiny_tensor_copy_data (gradient, values, sizeof values, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < N; i++)
    g_assert_cmpfloat (values[i], ==, 2.0f * (float) (i + self->number));
  g_object_unref (gradient);
}

static gpointer
work (gpointer data)
{
  const Worker *self = data;
  for (guint round = 0; round < N_ROUNDS; round++) {
    check_round (self, round);
    check_gradient (self, round);
  }
  return NULL;
}

static void
test_threads (gconstpointer share)
{
  Worker workers[N_THREADS];
  GThread *threads[N_THREADS];
  gint32 values[N];
  for (guint i = 0; i < N; i++)
    values[i] = (gint32) i;
  g_autoptr (TinyTensor) common = g_object_ref_sink (tiny_tensor_new_from_data (
      NULL, TINY_DTYPE_I32, (gint64[]){ N }, 1, values, sizeof values));
  for (guint i = 0; i < N_THREADS; i++) {
    workers[i] = (Worker){ i, GPOINTER_TO_INT (share), common };
    threads[i] = g_thread_new ("worker", work, &workers[i]);
  }
  for (guint i = 0; i < N_THREADS; i++)
    g_thread_join (threads[i]);
}

/* ---- recordings ---- */
static gboolean
step (TinyTensor *const *inputs,
      guint n_inputs,
      TinyTensor **outputs,
      guint n_outputs,
      gpointer user_data,
      GError **error)
{
  TinyTensor *sum = tiny_tensor_sum (tiny_tensor_mul (inputs[0], inputs[1]), NULL, 0, FALSE);
  outputs[0] = g_object_ref_sink (tiny_tensor_add_number (sum, 1));
  return tiny_tensor_realize (outputs[0], error);
}

/* A recording of its own, replayed on what this thread makes anew each time. */
static gpointer
replay (gpointer data)
{
  const Worker *self = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyJit) jit = tiny_jit_new (step, NULL, NULL, 1);
  for (guint round = 0; round < N_ROUNDS; round++) {
    gint32 values[N];
    double value;
    gint64 wanted = 1;
    for (guint i = 0; i < N; i++) {
      values[i] = (gint32) (i * (round + 1) + self->number);
      wanted += (gint64) values[i] * (gint64) i;
    }
    g_autoptr (TinyTensor) x = g_object_ref_sink (tiny_tensor_new_from_data (
        NULL, TINY_DTYPE_I32, (gint64[]){ N }, 1, values, sizeof values));
    TinyTensor *inputs[] = { x, self->common }, *output;
    tiny_jit_call (jit, inputs, 2, &output, &error);
    g_assert_no_error (error);
    g_assert_true (tiny_tensor_item (output, &value, &error));
    g_assert_cmpfloat (value, ==, (double) wanted);
  }
  return NULL;
}

static void
test_replay (void)
{
  Worker workers[N_THREADS];
  GThread *threads[N_THREADS];
  gint32 values[N];
  for (guint i = 0; i < N; i++)
    values[i] = (gint32) i;
  g_autoptr (TinyTensor) common = g_object_ref_sink (tiny_tensor_new_from_data (
      NULL, TINY_DTYPE_I32, (gint64[]){ N }, 1, values, sizeof values));
  for (guint i = 0; i < N_THREADS; i++) {
    workers[i] = (Worker){ i, TRUE, common };
    threads[i] = g_thread_new ("replayer", replay, &workers[i]);
  }
  for (guint i = 0; i < N_THREADS; i++)
    g_thread_join (threads[i]);
}

/* Both threads open the device. */
static gpointer
open_and_compute (gpointer data)
{
  double value;
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) x = g_object_ref_sink (
      tiny_tensor_sum (tiny_tensor_arange (TINY_DTYPE_I32, 0, 10, 1), NULL, 0, FALSE));
  g_assert_true (tiny_tensor_item (x, &value, &error));
  g_assert_cmpfloat (value, ==, 45);
  return NULL;
}

static void
test_open (void)
{
  GThread *threads[N_THREADS];
  for (guint i = 0; i < N_THREADS; i++)
    threads[i] = g_thread_new ("opener", open_and_compute, NULL);
  for (guint i = 0; i < N_THREADS; i++)
    g_thread_join (threads[i]);
}

int
main (int argc, char *argv[])
{
  if (!device_is_there ())
    return 0;
  g_test_init (&argc, &argv, NULL);
  tiny_env_set_int (TINY_ENV_NO_CACHE, 1);
  g_test_add_func ("/stress/threads/open", test_open); /* the first: nothing is open yet */
  g_test_add_data_func ("/stress/threads/own", GINT_TO_POINTER (FALSE), test_threads);
  g_test_add_data_func ("/stress/threads/same", GINT_TO_POINTER (TRUE), test_threads);
  g_test_add_func ("/stress/threads/replay", test_replay);
  return g_test_run ();
}
