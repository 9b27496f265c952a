/* SPDX-License-Identifier: MIT
 *
 * test-optimizer.c: captured steps of every optimiser are plain ones; rates, schedules and loss scaling
 * reach into replays. Formulas are checked beside PyTorch by tests/differential/test-training.py. */
#include <math.h>
#include <string.h>
#include <tiny.h>

#include "../default-device.h"

enum { N = 6 };

static TinyTensor *
variable (void)
{
  const float values[N] = { 1, -2, 3, -4, 5, -6 };
  TinyTensor *x = g_object_ref_sink (tiny_tensor_new_from_data (
      NULL, TINY_DTYPE_F32, (gint64[]){ 3, 2 }, 2, values, sizeof values));
  tiny_tensor_set_requires_grad (x, TRUE);
  return x;
}

static TinyTensor *
number (float value)
{
  return g_object_ref_sink (
      tiny_tensor_new_from_data (NULL, TINY_DTYPE_F32, NULL, 0, &value, sizeof value));
}

static TinyOptimizer *
optimizer_new (guint kind, TinyTensor *p)
{
  switch (kind) {
  case 0:
    return tiny_sgd_new (&p, 1, 0.1, 0.9, 0.01, TRUE);
  case 1:
    return tiny_adam_new (&p, 1, 0.1, 0.9, 0.99, 1e-8, 0.01);
  case 2:
    return tiny_adamw_new (&p, 1, 0.1, 0.9, 0.99, 1e-8, 0.01);
  case 3:
    return tiny_lamb_new (&p, 1, 0.1, 0.9, 0.99, 1e-8, 0.01);
  case 4:
    return tiny_lars_new (&p, 1, 0.1, 0.9, 0.01, FALSE, 0.1);
  case 5:
    return tiny_muon_new (&p, 1, 0.1, 0.9, 0.01, 5, TRUE);
  case 6:
    return tiny_rmsprop_new (&p, 1, 0.1, 0.9, 1e-8, 0.01, 0.5, TRUE);
  case 7:
    return tiny_adagrad_new (&p, 1, 0.1, 0.1, 0.01, 0, 1e-10);
  case 8:
    return tiny_adadelta_new (&p, 1, 1, 0.9, 1e-6, 0.01);
  case 9:
    return tiny_adamax_new (&p, 1, 0.1, 0.9, 0.99, 1e-8, 0.01);
  case 10:
    return tiny_nadam_new (&p, 1, 0.1, 0.9, 0.99, 1e-8, 0.01, 0.004);
  default:
    return tiny_radam_new (&p, 1, 0.1, 0.9, 0.6, 1e-8, 0.01);
  }
}

typedef struct {
  TinyTensor *p;
  TinyOptimizer *optimizer;
  TinyGradScaler *scaler;
} Step;

/* Along the gradient of Σ x p². */
static gboolean
run_step (TinyTensor *const *inputs,
          guint n_inputs,
          TinyTensor **outputs,
          guint n_outputs,
          gpointer user_data,
          GError **error)
{
  Step *self = user_data;
  TinyTensor *loss = tiny_tensor_mul (tiny_tensor_square (self->p), inputs[0]);
  loss = tiny_tensor_sum (loss, NULL, 0, FALSE);
  if (self->scaler != NULL)
    loss = tiny_grad_scaler_scale (self->scaler, loss);
  g_autoptr (TinyTensor) held = g_object_ref_sink (loss);
  tiny_optimizer_zero_grad (self->optimizer);
  if (!tiny_tensor_backward (held, error))
    return FALSE;
  if (self->scaler != NULL
          ? !tiny_grad_scaler_step (self->scaler, self->optimizer, &held, 1, error)
                || !tiny_grad_scaler_update (self->scaler, error)
          : !tiny_optimizer_step (self->optimizer, &held, 1, error))
    return FALSE;
  outputs[0] = g_steal_pointer (&held);
  return TRUE;
}

/* Where p is after each of seven steps, whose rate halves after each. */
static void
run (guint kind, gboolean captured, float out[7][N])
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) p = variable ();
  g_autoptr (TinyOptimizer) optimizer = optimizer_new (kind, p);
  g_autoptr (TinyScheduler) scheduler = tiny_exponential_lr_new (optimizer, 0.5, &error);
  Step self = { p, optimizer, NULL };
  g_autoptr (TinyJit) jit = tiny_jit_new (run_step, &self, NULL, 1);
  for (guint i = 0; i < 7; i++) {
    g_autoptr (TinyTensor) x = number (1 + (float) i);
    TinyTensor *output = NULL;
    if (captured)
      tiny_jit_call (jit, &x, 1, &output, &error);
    else if (run_step (&x, 1, &output, 1, &self, &error))
      g_object_unref (output);
    g_assert_no_error (error);
    g_assert_true (tiny_tensor_copy_data (p, out[i], sizeof out[i], &error));
    g_assert_true (tiny_scheduler_step (scheduler, &error));
  }
  g_assert_cmpuint (tiny_jit_get_n_kernels (jit) > 0, ==, captured);
}

static void
test_captured (void)
{
  if (skips_without_device ())
    return;
  for (guint kind = 0; kind < 12; kind++) {
    float plain[7][N], captured[7][N];
    run (kind, FALSE, plain);
    run (kind, TRUE, captured);
    for (guint i = 0; i < 7; i++)
      for (guint k = 0; k < N; k++) {
        g_assert_cmpfloat_with_epsilon (plain[i][k], captured[i][k], 1e-6);
        if (i > 0)
          g_assert_cmpfloat (plain[i][k], !=, plain[i - 1][k]);
      }
  }
}

/* Replays skip a step whose gradients are infinite, shrink the scale, and grow it after two good ones. */
static void
test_captured_scale (void)
{
  if (skips_without_device ())
    return;
  static const float inputs[] = { 1, 1, INFINITY, 1, NAN, 1, 1 };
  static const double scales[] = { 8, 16, 8, 8, 4, 4, 8 };
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) p = variable ();
  g_autoptr (TinyOptimizer) adam = tiny_adam_new (&p, 1, 0.1, 0.9, 0.99, 1e-8, 0);
  g_autoptr (TinyGradScaler) scaler = tiny_grad_scaler_new (8, 2, 0.5, 2);
  Step self = { p, adam, scaler };
  g_autoptr (TinyJit) jit = tiny_jit_new (run_step, &self, NULL, 1);
  float before[N], after[N];
  g_assert_true (tiny_tensor_copy_data (p, before, sizeof before, &error));
  for (guint i = 0; i < G_N_ELEMENTS (inputs); i++) {
    g_autoptr (TinyTensor) x = number (inputs[i]);
    double scale = 0;
    tiny_jit_call (jit, &x, 1, NULL, &error);
    g_assert_no_error (error);
    g_assert_true (tiny_tensor_copy_data (p, after, sizeof after, &error));
    g_assert_true (tiny_grad_scaler_get_scale (scaler, &scale, &error));
    g_assert_cmpfloat (scale, ==, scales[i]);
    for (guint k = 0; k < N; k++) {
      g_assert_true ((before[k] == after[k]) == !isfinite (inputs[i]));
      before[k] = after[k];
    }
  }
}

static void
check_scale (TinyGradScaler *scaler, double scale, guint n_good)
{
  g_autoptr (GError) error = NULL;
  double found = 0;
  guint n_found = 0;
  g_assert_true (tiny_grad_scaler_get_scale (scaler, &found, &error));
  g_assert_true (tiny_grad_scaler_get_n_good (scaler, &n_found, &error));
  g_assert_cmpfloat (found, ==, scale);
  g_assert_cmpuint (n_found, ==, n_good);
}

/* A scaler goes on where another one stopped, in replays as well; numbers that are none change nothing. */
static void
test_loaded_scale (void)
{
  if (skips_without_device ())
    return;
  GError *error = NULL;
  g_autoptr (TinyTensor) p = variable (), x = number (1);
  g_autoptr (TinyOptimizer) adam = tiny_adam_new (&p, 1, 0.1, 0.9, 0.99, 1e-8, 0);
  g_autoptr (TinyGradScaler) scaler = tiny_grad_scaler_new (8, 2, 0.5, 3);
  Step self = { p, adam, scaler };
  g_autoptr (TinyJit) jit = tiny_jit_new (run_step, &self, NULL, 1);
  for (guint i = 0; i < 2; i++) {
    tiny_jit_call (jit, &x, 1, NULL, &error);
    g_assert_no_error (error);
  }
  check_scale (scaler, 8, 2);
  g_assert_true (tiny_grad_scaler_load (scaler, 32, 1, 2, 0.5, 3, &error));
  check_scale (scaler, 32, 1);
  for (guint i = 0; i < 2; i++) {
    tiny_jit_call (jit, &x, 1, NULL, &error);
    g_assert_no_error (error);
  }
  check_scale (scaler, 64, 0);
  g_assert_false (tiny_grad_scaler_load (scaler, 32, 4, 2, 0.5, 3, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_false (tiny_grad_scaler_load (scaler, 32, 0, 1, 0.5, 3, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  g_clear_error (&error);
  check_scale (scaler, 64, 0);
}

/* Without parameters, gradients or devices that fit, a step is an error or nothing, never a crash. */
static void
test_nothing (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyOptimizer) none = tiny_sgd_new (NULL, 0, 0.1, 0.9, 0, FALSE);
  g_assert_true (tiny_optimizer_step (none, NULL, 0, &error));
  g_autoptr (TinyTensor) p = variable ();
  g_assert_true (tiny_optimizer_add_group (none, &p, 1, 0.1, 0, &error));
  g_assert_true (tiny_optimizer_step (none, NULL, 0, &error));
  g_assert_no_error (error);
  TinyTensor *null = NULL;
  g_autoptr (TinyOptimizer) bad = tiny_adam_new (&null, 1, 0.1, 0.9, 0.99, 1e-8, 0);
  g_assert_false (tiny_optimizer_step (bad, NULL, 0, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  g_clear_error (&error);
  g_autoptr (TinyOptimizer) worse = tiny_sgd_new (NULL, 2, 0.1, 0, 0, FALSE);
  g_assert_nonnull (strstr (tiny_optimizer_get_error (worse)->message, "none given"));
  g_autoptr (TinyTensor) norm = g_object_ref_sink (tiny_clip_grad_norm (&null, 1, 1, 2));
  double value = 1;
  g_assert_true (tiny_tensor_item (norm, &value, &error));
  g_assert_cmpfloat (value, ==, 0);
}

/* A group's settings are its own, and what a momentum needs is made when there is one. */
static void
test_settings (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (GError) error = NULL, wrong = NULL;
  g_autoptr (TinyTensor) p = variable (), q = variable ();
  g_autoptr (TinyOptimizer) sgd = tiny_sgd_new (&p, 1, 0.5, 0, 0, FALSE);
  g_assert_true (tiny_optimizer_add_group (sgd, &q, 1, 0.25, 0, &error));
  g_assert_true (tiny_optimizer_set_setting (sgd, 1, "momentum", 0.5, &error));
  g_assert_true (tiny_optimizer_set_setting (sgd, 1, "dampening", 0.25, &error));
  g_assert_true (tiny_optimizer_set_setting (sgd, 0, "lr", 0.125, &error));
  static const double wanted[2][3] = { { 0.125, 0, 0 }, { 0.25, 0.5, 0.25 } };
  static const char *const names[] = { "lr", "momentum", "dampening" };
  for (guint i = 0; i < 6; i++) {
    double value = -1;
    g_assert_true (tiny_optimizer_get_setting (sgd, i / 3, names[i % 3], &value, &error));
    g_assert_cmpfloat (value, ==, wanted[i / 3][i % 3]);
  }
  g_autoptr (GHashTable) state = tiny_optimizer_get_state_dict (sgd);
  g_assert_true (g_hash_table_contains (state, "1.0.momentum_buffer"));
  g_assert_true (g_hash_table_contains (state, "1.0.damping"));
  g_assert_false (g_hash_table_contains (state, "0.0.momentum_buffer"));
  g_assert_no_error (error);
  static const struct {
    const char *name, *text;
    double value;
  } bad[] = {
    { "momentum", "the momentum -1 is not 0 or more", -1 },
    { "momentum", "without momentum nothing", 0 },
    { "nesterov", "that looks ahead has no dampening", 1 },
    { "nesterov", "the nesterov 2 is not from 0 to 1", 2 },
    { "lr", "the learning rate nan is not 0 or more", NAN },
    { "beta1", "there is no setting “beta1”: there are lr, weight_decay, momentum", 0.5 },
    { NULL, "there is no setting “”", 0.5 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_assert_false (tiny_optimizer_set_setting (sgd, 1, bad[i].name, bad[i].value, &wrong));
    g_assert_nonnull (strstr (wrong->message, bad[i].text));
    g_clear_error (&wrong);
  }
  double value;
  g_assert_true (tiny_optimizer_get_setting (sgd, 1, "momentum", &value, &error));
  g_assert_cmpfloat (value, ==, 0.5);
  g_assert_false (tiny_optimizer_get_setting (sgd, 2, "lr", &value, &wrong));
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/optimizer/settings", test_settings);
  g_test_add_func ("/optimizer/captured", test_captured);
  g_test_add_func ("/optimizer/captured/scale", test_captured_scale);
  g_test_add_func ("/optimizer/loaded/scale", test_loaded_scale);
  g_test_add_func ("/optimizer/nothing", test_nothing);
  return g_test_run ();
}
