/* SPDX-License-Identifier: MIT
 *
 * test-growth.c: a program that runs for long keeps its size: training steps that no TinyJit replays
 * neither gather graph nodes nor memory.
 *
 * With LeakSanitizer the whole of this file is a leak check of the public API as well. */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "../device-there.h"
#include "base/tiny-env.h"
#include "engine/tiny-executable.h"
#include "engine/tiny-runtime.h"
#include "tiny.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1 /* memory that was freed stays resident for a while */
#else
#define SANITIZED 0
#endif

enum { N_IN = 16, N_HIDDEN = 32, BATCH = 24, N_STEPS = 500, WARM_UP = 100 };

/* ---- a step of training, by hand ---- */
static TinyTensor *
random_tensor (GRand *random, const gint64 *shape, guint n_dims)
{
  gint64 n = 1;
  for (guint i = 0; i < n_dims; i++)
    n *= shape[i];
  g_autofree float *data = g_new (float, n);
  for (gint64 i = 0; i < n; i++)
    data[i] = (float) g_rand_double_range (random, -0.5, 0.5);
  return tiny_tensor_new_from_data (NULL, TINY_DTYPE_F32, shape, n_dims, data,
                                    (gsize) n * sizeof (float));
}

static double
step (TinyModule *net, TinyOptimizer *optimizer, GRand *random)
{
  double value = NAN;
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) x
      = g_object_ref_sink (random_tensor (random, (gint64[]){ BATCH, N_IN }, 2));
  TinyTensor *target = tiny_tensor_sum (tiny_tensor_square (x), (gint[]){ 1 }, 1, TRUE);
  g_autoptr (TinyTensor) loss = g_object_ref_sink (tiny_tensor_mean (
      tiny_tensor_square (tiny_tensor_sub (tiny_module_forward (net, x), target)), NULL, 0,
      FALSE));
  tiny_optimizer_zero_grad (optimizer);
  g_assert_true (tiny_tensor_backward (loss, &error));
  g_assert_true (tiny_optimizer_step (optimizer, &loss, 1, &error));
  g_assert_true (tiny_tensor_item (loss, &value, &error));
  g_assert_no_error (error);
  return value;
}

static TinyModule *
make_net (void)
{
  TinyModule *net = tiny_sequential_new ();
  tiny_sequential_append (net, tiny_linear_new (N_IN, N_HIDDEN, TRUE));
  tiny_sequential_append (net, tiny_function_new (tiny_tensor_relu));
  tiny_sequential_append (net, tiny_linear_new (N_HIDDEN, 1, TRUE));
  return net;
}

static gsize
resident_bytes (void)
{
  gsize pages = 0, ignored;
  g_autofree char *text = NULL;
  if (g_file_get_contents ("/proc/self/statm", &text, NULL, NULL))
    sscanf (text, "%" G_GSIZE_FORMAT " %" G_GSIZE_FORMAT, &ignored, &pages);
  return pages * (gsize) sysconf (_SC_PAGESIZE);
}

static guint
count_nodes (void)
{
  tiny_runtime_lock ();
  guint n = tiny_graph_get_n_nodes (tiny_runtime_get_graph ());
  tiny_runtime_unlock ();
  return n;
}

/* The loss falls, and after a while nothing grows any more. */
static void
test_steps (void)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (1);
  tiny_tensor_manual_seed (1);
  g_autoptr (TinyModule) net = make_net ();
  g_autoptr (GPtrArray) parameters = tiny_module_get_parameters (net);
  g_autoptr (TinyOptimizer) adam = tiny_adam_new ((TinyTensor *const *) parameters->pdata,
                                                  parameters->len, 3e-3, 0.9, 0.999, 1e-8, 0);
  double first = step (net, adam, random), last = first;
  guint most_nodes = 0, n_sweeps;
  gsize before = 0;
  TinyCounters counters;
  for (guint i = 1; i < N_STEPS; i++) {
    last = step (net, adam, random);
    if (i == WARM_UP) {
      before = resident_bytes ();
      most_nodes = 0;
    }
    most_nodes = MAX (most_nodes, count_nodes ());
  }
  tiny_runtime_get_counters (&counters);
  n_sweeps = (guint) counters.n_sweeps;
  gsize after = resident_bytes ();
  g_test_message ("loss %g to %g, at most %u nodes, %u sweeps, %" G_GSIZE_FORMAT
                  " to %" G_GSIZE_FORMAT " bytes, %" G_GUINT64_FORMAT " schedules",
                  first, last, most_nodes, n_sweeps, before, after, counters.n_schedules);
  g_assert_cmpfloat (last, <, first / 2);
  g_assert_cmpuint (n_sweeps, >, 0);
  g_assert_cmpuint (most_nodes, <, 20000);
  g_assert_cmpuint (counters.n_schedules, <, 50);
  if (!SANITIZED)
    g_assert_cmpuint (after, <, before + (2 << 20));
}

/* Tensors made and dropped unrealised are swept too, though nothing is ever realised. */
static void
test_dropped (void)
{
  g_autoptr (TinyTensor) x
      = g_object_ref_sink (tiny_tensor_ones (TINY_DTYPE_F32, (gint64[]){ 8 }, 1));
  g_assert_true (tiny_tensor_realize (x, NULL));
  guint most = 0;
  for (guint i = 0; i < 20000; i++) {
    g_object_unref (
        g_object_ref_sink (tiny_tensor_add_number (tiny_tensor_mul_number (x, i), 1)));
    most = MAX (most, count_nodes ());
  }
  g_test_message ("at most %u nodes", most);
  g_assert_cmpuint (most, <, 20000);
}

/* ---- shapes ---- */
enum { N_SHAPES = 1300, N_FULL = 1050, MOST_PLANS = 512, PATIENCE_S = 60 };

/* One kernel of its own. */
static void
check_shape (guint n)
{
  g_autoptr (GError) error = NULL;
  g_autofree float *values = g_new (float, n);
  const gint64 size = n;
  for (guint i = 0; i < n; i++)
    values[i] = (float) i;
  g_autoptr (TinyTensor) x = g_object_ref_sink (
      tiny_tensor_new_from_data (NULL, TINY_DTYPE_F32, &size, 1, values, n * sizeof (float)));
  g_autoptr (TinyTensor) square = g_object_ref_sink (tiny_tensor_square (x));
  g_assert_true (tiny_tensor_copy_data (square, values, n * sizeof (float), &error));
  g_assert_no_error (error);
  g_assert_cmpfloat (values[n - 1], ==, (n - 1) * (n - 1));
}

static gboolean
square_sum (TinyTensor *const *inputs,
            guint n,
            TinyTensor **outputs,
            guint n_outputs,
            gpointer data,
            GError **error)
{
  outputs[0]
      = g_object_ref_sink (tiny_tensor_sum (tiny_tensor_square (inputs[0]), NULL, 0, FALSE));
  return tiny_tensor_realize (outputs[0], error);
}

static void
replay (TinyJit *jit, TinyTensor *in)
{
  double value = NAN;
  TinyTensor *out = NULL;
  g_autoptr (GError) error = NULL;
  g_assert_true (tiny_jit_call (jit, &in, 1, &out, &error));
  g_assert_true (tiny_tensor_item (out, &value, &error));
  g_assert_no_error (error);
  g_assert_cmpfloat (value, ==, 4 * 1777);
}

/* Shapes that do not come again leave nothing: neither their plans nor what was loaded for them. A recording keeps what
 * it runs, and a shape that does come again is computed again. */
static void
test_shapes (void)
{
  const char *device = g_getenv ("DEV");
  if (device != NULL && !g_str_has_prefix (device, "CPU")
      && !g_str_has_prefix (device, "REF")) {
    g_test_skip ("a driver keeps of a program what it likes");
    return;
  }
  g_autoptr (TinyJit) jit = tiny_jit_new (square_sum, NULL, NULL, 1);
  g_autoptr (TinyTensor) in
      = g_object_ref_sink (tiny_tensor_full (TINY_DTYPE_F32, (gint64[]){ 1777 }, 1, 2));
  const gint64 begin = g_get_monotonic_time ();
  const guint n_before = tiny_executables_count ();
  gsize before = 0;
  for (guint i = 0; i < 4; i++)
    replay (jit, in);
  for (guint i = 0; i < N_SHAPES; i++) {
    check_shape (i + 1);
    if (i == N_FULL)
      before = resident_bytes ();
    if (i < N_FULL && g_get_monotonic_time () - begin > PATIENCE_S * G_USEC_PER_SEC) {
      g_test_skip ("so many kernels take more than a minute to compile");
      return;
    }
  }
  const gsize after = resident_bytes ();
  g_test_message ("%u programs, then %u; %" G_GSIZE_FORMAT " to %" G_GSIZE_FORMAT " bytes",
                  n_before, tiny_executables_count (), before, after);
  g_assert_cmpuint (tiny_executables_count (), <=, n_before + MOST_PLANS + TINY_MAX_SPARES + 8);
  if (!SANITIZED)
    g_assert_cmpuint (after, <, before + (1 << 20));
  replay (jit, in);
  check_shape (3);
}

/* ---- every kind of object, every way to fail ---- */
static gboolean
double_it (TinyTensor *const *inputs,
           guint n,
           TinyTensor **outputs,
           guint n_outputs,
           gpointer data,
           GError **error)
{
  outputs[0] = g_object_ref_sink (tiny_tensor_mul_number (inputs[0], 2));
  return tiny_tensor_realize (outputs[0], error);
}

static void
drop_unused (void)
{
  const gint64 shape[] = { 3, 4 };
  g_object_unref (g_object_ref_sink (tiny_tensor_rand (TINY_DTYPE_F32, shape, 2)));
  g_object_unref (tiny_tensor_zeros (TINY_DTYPE_F32, shape, 2)); /* floating still */
  g_autoptr (TinyTensor) x = g_object_ref_sink (tiny_tensor_randn (TINY_DTYPE_F16, shape, 2));
  g_autofree char *text = tiny_tensor_to_string (x);
  g_assert_nonnull (strchr (text, '['));
  g_autoptr (GBytes) bytes = tiny_tensor_get_data (x, NULL);
  g_assert_cmpuint (g_bytes_get_size (bytes), ==, 24);
}

static void
drop_errors (void)
{
  g_autoptr (GError) error = NULL;
  TinyTensor *a = tiny_tensor_ones (TINY_DTYPE_F32, (gint64[]){ 3, 4 }, 2);
  TinyTensor *b = tiny_tensor_ones (TINY_DTYPE_F32, (gint64[]){ 5, 6 }, 2);
  g_autoptr (TinyTensor) wrong = g_object_ref_sink (
      tiny_tensor_relu (tiny_tensor_add_number (tiny_tensor_matmul (a, b), 1)));
  g_assert_false (tiny_tensor_realize (wrong, &error));
  g_clear_error (&error);
  g_autofree char *text = tiny_tensor_to_string (wrong);
  g_assert_false (tiny_tensor_backward (wrong, &error));
  g_clear_error (&error);
  g_autoptr (TinyTensor) nowhere = g_object_ref_sink (
      tiny_tensor_new_from_data ("NONESUCH", TINY_DTYPE_U8, (gint64[]){ 1 }, 1, "x", 1));
  g_assert_nonnull (tiny_tensor_get_error (nowhere));
  g_autoptr (TinyTensor) x = g_object_ref_sink (tiny_tensor_zeros (TINY_DTYPE_I32, NULL, 0));
  g_assert_false (tiny_tensor_assign (x, wrong, &error));
}

static void
drop_jit (void)
{
  TinyJit *jit = tiny_jit_new (double_it, NULL, NULL, 1);
  for (guint i = 0; i < 5; i++) {
    float value = (float) i;
    double result = 0;
    TinyTensor *out = NULL;
    g_autoptr (GError) error = NULL;
    g_autoptr (TinyTensor) in = g_object_ref_sink (tiny_tensor_new_from_data (
        NULL, TINY_DTYPE_F32, (gint64[]){ 1 }, 1, &value, sizeof value));
    g_assert_true (tiny_jit_call (jit, &in, 1, &out, &error));
    g_assert_true (tiny_tensor_item (out, &result, &error));
    g_assert_cmpfloat (result, ==, 2 * i);
  }
  g_object_unref (jit);
}

static void
drop_networks (void)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (2);
  g_autoptr (TinyModule) net = make_net (), unused = tiny_image_classifier_new (10);
  g_autoptr (GPtrArray) parameters = tiny_module_get_parameters (net);
  g_autoptr (TinyOptimizer) sgd = tiny_sgd_new ((TinyTensor *const *) parameters->pdata,
                                                parameters->len, 1e-3, 0.9, 1e-4, TRUE);
  step (net, sgd, random);
  step (net, sgd, random);
  g_autoptr (TinyTrainer) trainer = tiny_trainer_new (net, sgd);
}

static void
test_drop (void)
{
  for (guint i = 0; i < 3; i++) {
    drop_unused ();
    drop_errors ();
    drop_jit ();
    drop_networks ();
  }
}

int
main (int argc, char *argv[])
{
  if (!device_is_there ())
    return 0;
  g_test_init (&argc, &argv, NULL);
  tiny_env_set_int (TINY_ENV_NO_CACHE, 1);
  g_test_add_func ("/stress/growth/drop", test_drop);
  g_test_add_func ("/stress/growth/steps", test_steps);
  g_test_add_func ("/stress/growth/dropped", test_dropped);
  g_test_add_func ("/stress/growth/shapes", test_shapes);
  return g_test_run ();
}
