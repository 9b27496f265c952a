/* SPDX-License-Identifier: MIT
 *
 * test-nn.c: optimisers against their formulas, captured steps against plain ones, batch statistics,
 * the order of batches, and that a seed repeats a training run. */
#include <math.h>
#include <string.h>
#include <tiny.h>

#include "../case-fails.h"
#include "../default-device.h"

static TinyTensor *
variable (float value)
{
  TinyTensor *x = g_object_ref_sink (
      tiny_tensor_new_from_data (NULL, TINY_DTYPE_F32, NULL, 0, &value, sizeof value));
  tiny_tensor_set_requires_grad (x, TRUE);
  return x;
}

/* Steps along the gradient of x², which is 2x; @expected is where x is after each. */
static void
check_steps (TinyTensor *x, TinyOptimizer *optimizer, const double *expected, guint n)
{
  for (guint i = 0; i < n; i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (TinyTensor) loss = g_object_ref_sink (tiny_tensor_square (x));
    double value;
    tiny_optimizer_zero_grad (optimizer);
    g_assert_true (tiny_tensor_backward (loss, &error));
    tiny_optimizer_step (optimizer, &loss, 1, &error);
    g_assert_no_error (error);
    g_assert_true (tiny_tensor_item (x, &value, NULL));
    g_assert_cmpfloat_with_epsilon (value, expected[i], 1e-5);
  }
}

static const struct {
  double momentum, decay;
  gboolean nesterov;
} sgds[] = { { 0, 0, FALSE }, { 0.9, 0, FALSE }, { 0.9, 0.1, FALSE }, { 0.9, 0.1, TRUE } };
static const char *const sgd_names[G_N_ELEMENTS (sgds)]
    = { "plain", "momentum", "decay", "nesterov" };

static void
test_sgd (gconstpointer data)
{
  const guint k = GPOINTER_TO_UINT (data);
  if (skips_without_device ())
    return;
  double x = 3, m = 0, expected[4];
  for (guint i = 0; i < 4; i++) {
    double g = 2 * x + sgds[k].decay * x;
    m = sgds[k].momentum * m + g;
    x -= 0.1 * (sgds[k].nesterov ? g + sgds[k].momentum * m : m);
    expected[i] = x;
  }
  g_autoptr (TinyTensor) p = variable (3);
  g_autoptr (TinyOptimizer) sgd
      = tiny_sgd_new (&p, 1, 0.1, sgds[k].momentum, sgds[k].decay, sgds[k].nesterov);
  check_steps (p, sgd, expected, 4);
}

static const char *const adam_names[] = { "plain", "decay" };

static void
test_adam (gconstpointer data)
{
  if (skips_without_device ())
    return;
  double x = 3, m = 0, v = 0, decay = GPOINTER_TO_UINT (data) * 0.1, expected[5];
  for (guint i = 0; i < 5; i++) {
    double g = 2 * x;
    m = 0.9 * m + 0.1 * g;
    v = 0.99 * v + 0.01 * g * g;
    double step = m / (1 - pow (0.9, i + 1)) / (sqrt (v / (1 - pow (0.99, i + 1))) + 1e-8);
    x -= 0.1 * step + 0.1 * decay * x;
    expected[i] = x;
  }
  g_autoptr (TinyTensor) p = variable (3);
  g_autoptr (TinyOptimizer) adam = tiny_adamw_new (&p, 1, 0.1, 0.9, 0.99, 1e-8, decay);
  check_steps (p, adam, expected, 5);
}

/* outputs[0] = inputs[0] + a counter that each call moves. */
static gboolean
count_up (TinyTensor *const *inputs,
          guint n_inputs,
          TinyTensor **outputs,
          guint n_outputs,
          gpointer user_data,
          GError **error)
{
  TinyTensor *counter = user_data;
  if (!tiny_tensor_assign (counter, tiny_tensor_add_number (counter, 1), error))
    return FALSE;
  outputs[0] = g_object_ref_sink (tiny_tensor_add (inputs[0], counter));
  TinyTensor *both[] = { outputs[0], counter };
  return tiny_tensor_realize_many (both, 2, error);
}

static void
test_jit (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) counter = variable (0);
  g_autoptr (TinyJit) jit = tiny_jit_new (count_up, counter, NULL, 1);
  for (guint i = 1; i <= 5; i++) {
    float value = 100.0f * (float) i;
    double found;
    g_autoptr (TinyTensor) x = g_object_ref_sink (
        tiny_tensor_new_from_data (NULL, TINY_DTYPE_F32, NULL, 0, &value, sizeof value));
    TinyTensor *output;
    tiny_jit_call (jit, &x, 1, &output, &error);
    g_assert_no_error (error);
    g_assert_true (tiny_tensor_item (output, &found, NULL));
    g_assert_cmpfloat (found, ==, value + i);
  }
  g_assert_cmpuint (tiny_jit_get_n_kernels (jit), >=, 1);
  g_autoptr (TinyTensor) other
      = g_object_ref_sink (tiny_tensor_ones (TINY_DTYPE_F32, (gint64[]){ 2 }, 1));
  g_assert_true (tiny_jit_call (jit, &other, 1, NULL, &error));
  g_assert_no_error (error);
  g_assert_false (tiny_jit_call (jit, (TinyTensor *[]){ other, other }, 2, NULL, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
}

/* outputs[0] = inputs[0] + the last of (5 w, stored), and w moves by as much as user_data says. One
 * kernel makes four numbers and the other reads one: they cannot be merged. */
typedef struct {
  TinyTensor *w;
  double step;
} Weighted;

static gboolean
add_weight (TinyTensor *const *inputs,
            guint n_inputs,
            TinyTensor **outputs,
            guint n_outputs,
            gpointer user_data,
            GError **error)
{
  Weighted *self = user_data;
  TinyTensor *stored = tiny_tensor_contiguous (tiny_tensor_mul_number (self->w, 5));
  TinyTensor *last = tiny_tensor_reshape (tiny_tensor_slice (stored, 0, 3, 4, 1), NULL, 0);
  outputs[0] = g_object_ref_sink (tiny_tensor_add (inputs[0], last));
  if (!tiny_tensor_realize (outputs[0], error) || self->step == 0)
    return self->step == 0;
  return tiny_tensor_assign (self->w, tiny_tensor_add_number (self->w, self->step), error)
         && tiny_tensor_realize (self->w, error);
}

static double
call_with (TinyJit *jit, float value)
{
  g_autoptr (GError) error = NULL;
  double found = 0;
  g_autoptr (TinyTensor) x = g_object_ref_sink (
      tiny_tensor_new_from_data (NULL, TINY_DTYPE_F32, NULL, 0, &value, sizeof value));
  TinyTensor *output;
  tiny_jit_call (jit, &x, 1, &output, &error);
  g_assert_no_error (error);
  g_assert_true (tiny_tensor_item (output, &found, NULL));
  return found;
}

static const char *const freeze_names[] = { "kept", "changed" };

/* Values that depend on nothing that changes are computed once; they are computed again when that does change, from outside
 * of the recording or within. */
static void
test_jit_freezes (gconstpointer data)
{
  if (skips_without_device ())
    return;
  const guint is_changed = GPOINTER_TO_UINT (data);
  const float twos[] = { 2, 2, 2, 2 };
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) w = g_object_ref_sink (
      tiny_tensor_new_from_data (NULL, TINY_DTYPE_F32, (gint64[]){ 4 }, 1, twos, sizeof twos));
  Weighted weighted = { w, is_changed };
  g_autoptr (TinyJit) jit = tiny_jit_new (add_weight, &weighted, NULL, 1);
  for (guint call = 0; call < 4; call++)
    g_assert_cmpfloat (call_with (jit, 1), ==, 11 + 5.0 * is_changed * call);
  g_assert_true (tiny_tensor_assign (w, tiny_tensor_add_number (w, 10), &error));
  g_assert_true (tiny_tensor_realize (w, &error));
  for (guint call = 4; call < 7; call++)
    g_assert_cmpfloat (call_with (jit, 1), ==, 61 + 5.0 * is_changed * call);
  /* Where w stays as it is, 5 w is no part of the replay. */
  g_assert_cmpint (tiny_jit_get_n_kernels (jit) > 1, ==, is_changed);
}

/* outputs[0] = the one column of inputs[0], which takes no kernel. */
static gboolean
sum_column (TinyTensor *const *inputs,
            guint n_inputs,
            TinyTensor **outputs,
            guint n_outputs,
            gpointer user_data,
            GError **error)
{
  outputs[0] = g_object_ref_sink (tiny_tensor_sum (inputs[0], (gint[]){ 1 }, 1, FALSE));
  return tiny_tensor_realize (outputs[0], error);
}

static void
test_jit_without_kernels (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyJit) jit = tiny_jit_new (sum_column, NULL, NULL, 1);
  for (guint i = 0; i < 4; i++) {
    const float values[] = { i, i + 1, i + 2 };
    float found[3];
    g_autoptr (TinyTensor) x = g_object_ref_sink (tiny_tensor_new_from_data (
        NULL, TINY_DTYPE_F32, (gint64[]){ 3, 1 }, 2, values, sizeof values));
    TinyTensor *output;
    tiny_jit_call (jit, &x, 1, &output, &error);
    g_assert_no_error (error);
    g_assert_true (tiny_tensor_copy_data (output, found, sizeof found, NULL));
    g_assert_cmpmem (found, sizeof found, values, sizeof values);
  }
}

static TinyTensor *
make_row (const float values[4])
{
  return g_object_ref_sink (tiny_tensor_new_from_data (NULL, TINY_DTYPE_F32, (gint64[]){ 1, 4 },
                                                       2, values, 4 * sizeof *values));
}

/* outputs[0] = softmax (inputs[0]) + inputs[0] / 2 - inputs[1] */
static gboolean
mix (TinyTensor *const *inputs,
     guint n_inputs,
     TinyTensor **outputs,
     guint n_outputs,
     gpointer user_data,
     GError **error)
{
  TinyTensor *half = tiny_tensor_mul_number (inputs[0], 0.5);
  TinyTensor *sum = tiny_tensor_add (tiny_tensor_softmax (inputs[0], -1), half);
  outputs[0] = g_object_ref_sink (tiny_tensor_sub (sum, inputs[1]));
  return tiny_tensor_realize (outputs[0], error);
}

static void
assert_mixed (TinyJit *jit, guint call, TinyTensor *x, TinyTensor *y)
{
  g_autoptr (GError) error = NULL;
  float got[4], expected[4], before[4];
  g_autoptr (TinyTensor) copy = NULL;
  TinyTensor *output, *both[] = { x, y }, *direct[1];
  g_assert_true (tiny_tensor_copy_data (x, before, sizeof before, NULL));
  copy = make_row (before);
  mix ((TinyTensor *[]){ copy, y }, 2, direct, 1, NULL, &error);
  g_assert_true (tiny_tensor_copy_data (direct[0], expected, sizeof expected, NULL));
  g_object_unref (direct[0]);
  tiny_jit_call (jit, both, 2, &output, &error);
  g_assert_no_error (error);
  g_assert_true (tiny_tensor_copy_data (output, got, sizeof got, NULL));
  for (guint i = 0; i < 4; i++)
    if (!(fabsf (got[i] - expected[i]) <= 1e-6F))
      CASE_FAILS ("call %u: element %u is %g, and %g is right", call, i, (double) got[i],
                  (double) expected[i]);
}

/* Inputs may change places, be one and the same, or be what the last call gave. */
static void
test_jit_exchanges (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyJit) jit = tiny_jit_new (mix, NULL, NULL, 1);
  g_autoptr (TinyTensor) a = make_row ((float[]){ 1, 2, 3, 4 });
  g_autoptr (TinyTensor) b = make_row ((float[]){ 5, -6, 7, 1 });
  TinyTensor *output;
  for (guint i = 0; i < 4; i++)
    assert_mixed (jit, i, i % 2 ? b : a, i % 2 ? a : b);
  assert_mixed (jit, 4, a, a);
  assert_mixed (jit, 5, a, b);
  tiny_jit_call (jit, (TinyTensor *[]){ a, b }, 2, &output, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < 3; i++)
    assert_mixed (jit, 6 + i, output, b);
  assert_mixed (jit, 9, b, output);
}

static void
find_running (const char *name, TinyTensor *tensor, gboolean trainable, gpointer user_data)
{
  double *out = user_data;
  if (g_str_equal (name, "running_mean"))
    g_assert_true (tiny_tensor_item (tensor, &out[0], NULL));
  if (g_str_equal (name, "running_var"))
    g_assert_true (tiny_tensor_item (tensor, &out[1], NULL));
}

/* Mean 2.5 and unbiased variance 5/3 of 1 2 3 4, seen twice; then they are used. */
static void
test_batch_norm (void)
{
  if (skips_without_device ())
    return;
  const float values[] = { 1, 2, 3, 4 };
  g_autoptr (TinyTensor) x = g_object_ref_sink (tiny_tensor_new_from_data (
      NULL, TINY_DTYPE_F32, (gint64[]){ 2, 1, 1, 2 }, 4, values, sizeof values));
  g_autoptr (TinyModule) norm = tiny_batch_norm2d_new (1);
  double mean = 0, var = 1, found[2];
  float out[4];
  for (guint i = 0; i < 2; i++) {
    g_autoptr (TinyTensor) y = g_object_ref_sink (tiny_module_forward (norm, x));
    g_assert_true (tiny_tensor_copy_data (y, out, sizeof out, NULL));
    g_assert_cmpfloat_with_epsilon (out[3], 1.5 / sqrt (1.25 + 1e-5), 1e-5);
    mean = 0.9 * mean + 0.1 * 2.5;
    var = 0.9 * var + 0.1 * 5 / 3;
    tiny_module_visit (norm, find_running, found);
    g_assert_cmpfloat_with_epsilon (found[0], mean, 1e-6);
    g_assert_cmpfloat_with_epsilon (found[1], var, 1e-6);
  }
  tiny_module_set_training (norm, FALSE);
  g_autoptr (TinyTensor) y = g_object_ref_sink (tiny_module_forward (norm, x));
  g_assert_true (tiny_tensor_copy_data (y, out, sizeof out, NULL));
  g_assert_cmpfloat_with_epsilon (out[0], (1 - mean) / sqrt (var + 1e-5), 1e-5);
}

static TinyLoader *
loader_of (guint n, guint batch, guint64 seed)
{
  g_autofree guint8 *bytes = g_malloc (n);
  for (guint i = 0; i < n; i++)
    bytes[i] = (guint8) i;
  g_autoptr (GBytes) items = g_bytes_new (bytes, n), labels = g_bytes_new (bytes, n);
  g_autoptr (GError) error = NULL;
  TinyLoader *loader
      = tiny_loader_new (items, labels, (gint64[]){ 1 }, 1, batch, TRUE, seed, &error);
  g_assert_no_error (error);
  return loader;
}

/* Every item once an epoch, in an order that seed and epoch decide. */
static void
test_loader (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (TinyLoader) loader = loader_of (32, 8, 5);
  guint8 orders[3][32];
  for (guint round = 0; round < 3; round++) {
    guint32 seen = 0;
    tiny_loader_start_epoch (loader, round == 1);
    TinyTensor *x, *y;
    for (guint i = 0; tiny_loader_next (loader, &x, &y); i++) {
      guint8 labels[8];
      g_assert_true (tiny_tensor_copy_data (x, orders[round] + 8 * i, 8, NULL));
      g_assert_true (tiny_tensor_copy_data (y, labels, 8, NULL));
      g_assert_cmpmem (labels, 8, orders[round] + 8 * i, 8);
      g_object_unref (x);
      g_object_unref (y);
    }
    for (guint i = 0; i < 32; i++)
      seen |= 1u << orders[round][i];
    g_assert_cmphex (seen, ==, 0xffffffff);
  }
  g_assert_cmpmem (orders[0], 32, orders[2], 32);
  g_assert_true (memcmp (orders[0], orders[1], 32) != 0);
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) three = g_bytes_new ("abc", 3);
  g_assert_null (tiny_loader_new (three, three, (gint64[]){ 1 }, 1, 4, TRUE, 0, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
}

static TinyModule *
small_net (void)
{
  TinyModule *net = tiny_sequential_new ();
  tiny_sequential_append (net, tiny_linear_new (1, 8, TRUE));
  tiny_sequential_append (net, tiny_function_new (tiny_tensor_relu));
  tiny_sequential_append (net, tiny_linear_new (8, 2, TRUE));
  return net;
}

/* A separable problem is learnt, plain and replayed alike, and the same again. */
static void
test_training (void)
{
  if (skips_without_device ())
    return;
  double losses[2][40];
  for (guint run = 0; run < 2; run++) {
    tiny_tensor_manual_seed (3);
    g_autoptr (TinyModule) net = small_net ();
    g_autoptr (GPtrArray) parameters = tiny_module_get_parameters (net);
    g_assert_cmpuint (parameters->len, ==, 4);
    g_autoptr (TinyOptimizer) adam = tiny_adam_new ((TinyTensor *const *) parameters->pdata,
                                                    parameters->len, 0.05, 0.9, 0.999, 1e-8, 0);
    g_autoptr (TinyTrainer) trainer = tiny_trainer_new (net, adam);
    const float xs[] = { -2, -1, 1, 2 };
    const guint8 ys[] = { 0, 0, 1, 1 };
    g_autoptr (TinyTensor) y = g_object_ref_sink (
        tiny_tensor_new_from_data (NULL, TINY_DTYPE_U8, (gint64[]){ 4 }, 1, ys, sizeof ys));
    for (guint i = 0; i < 40; i++) {
      g_autoptr (GError) error = NULL;
      g_autoptr (TinyTensor) x = g_object_ref_sink (tiny_tensor_new_from_data (
          NULL, TINY_DTYPE_F32, (gint64[]){ 4, 1 }, 2, xs, sizeof xs));
      tiny_trainer_step (trainer, x, y, &losses[run][i], &error);
      g_assert_no_error (error);
    }
    g_assert_cmpfloat (losses[run][39], <, 0.5 * losses[run][0]);
  }
  for (guint i = 0; i < 40; i++)
    g_assert_cmpfloat (losses[0][i], ==, losses[1][i]);
}

/* @n items, the last of them labelled wrongly, in batches of eight: every item that is given counts once. */
static void
check_accuracy (TinyTrainer *trainer, guint n, gboolean drop_last, double want)
{
  g_autoptr (GError) error = NULL;
  float xs[64];
  guint8 ys[64];
  for (guint i = 0; i < n; i++) {
    xs[i] = i % 3 == 0 ? 1 : -1;
    ys[i] = (i % 3 == 0) != (i == n - 1);
  }
  g_autoptr (GBytes) x = g_bytes_new (xs, n * sizeof *xs), y = g_bytes_new (ys, n);
  g_autoptr (TinyLoader) loader = tiny_loader_new_empty (n, 8, &error);
  tiny_loader_add_array (loader, TINY_DTYPE_F32, (gint64[]){ 1 }, 1, x, &error);
  tiny_loader_add_array (loader, TINY_DTYPE_U8, NULL, 0, y, &error);
  tiny_loader_set_shuffle (loader, FALSE, 0);
  tiny_loader_set_drop_last (loader, drop_last);
  double accuracy = -1;
  if (!tiny_trainer_evaluate (trainer, loader, &accuracy, &error))
    CASE_FAILS ("%u items: %s", n, error->message);
  else if (!(fabs (accuracy - want) <= 1e-12))
    CASE_FAILS ("of %u items %g are right, and should be %g", n, accuracy, want);
}

static void
test_evaluation (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyModule) net = tiny_sequential_new ();
  tiny_sequential_append (net, tiny_linear_new (1, 2, FALSE));
  tiny_sequential_append (net, tiny_dropout_new (0.9));
  const float weight[] = { -1, 1 };
  g_assert_true (tiny_module_set_tensor (net, "0.weight",
                                         tiny_tensor_new_from_data (NULL, TINY_DTYPE_F32,
                                                                    (gint64[]){ 2, 1 }, 2,
                                                                    weight, sizeof weight),
                                         &error));
  g_autoptr (GPtrArray) parameters = tiny_module_get_parameters (net);
  g_autoptr (TinyOptimizer) sgd
      = tiny_sgd_new ((TinyTensor *const *) parameters->pdata, 1, 0.1, 0, 0, FALSE);
  g_autoptr (TinyTrainer) trainer = tiny_trainer_new (net, sgd);
  for (guint training = 0; training < 2; training++) {
    tiny_module_set_training (net, training);
    tiny_module_set_training (tiny_module_get_child (net, "0"), !training);
    check_accuracy (trainer, 10, FALSE, 0.9);
    check_accuracy (trainer, 36, FALSE, 35.0 / 36); /* replays, then four */
    check_accuracy (trainer, 5, FALSE, 0.8);
    check_accuracy (trainer, 10, TRUE, 1);
    check_accuracy (trainer, 32, TRUE, 31.0 / 32);
    g_assert_cmpint (tiny_module_get_training (net), ==, training);
    g_assert_cmpint (tiny_module_get_training (tiny_module_get_child (net, "0")), ==,
                     !training);
    g_assert_cmpint (tiny_module_get_training (tiny_module_get_child (net, "1")), ==, training);
  }
}

/* Rows that tokens say; only those that were read learn. */
static void
test_embedding (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyModule) layer = tiny_embedding_new (6, 2);
  g_autoptr (GPtrArray) parameters = tiny_module_get_parameters (layer);
  g_assert_cmpuint (parameters->len, ==, 1);
  TinyTensor *weight = parameters->pdata[0];
  float before[6][2], rows[4][2], after[6][2];
  g_assert_true (tiny_tensor_copy_data (weight, before, sizeof before, &error));
  const guint16 at[] = { 5, 1, 6, 5 };
  g_autoptr (TinyTensor) tokens = g_object_ref_sink (
      tiny_tensor_new_from_data (NULL, TINY_DTYPE_U16, (gint64[]){ 2, 2 }, 2, at, sizeof at));
  g_autoptr (TinyTensor) y = g_object_ref_sink (tiny_module_forward (layer, tokens));
  g_autoptr (TinyTensor) loss = g_object_ref_sink (tiny_tensor_sum (y, NULL, 0, FALSE));
  g_assert_true (tiny_tensor_backward (loss, &error));
  g_autoptr (TinyOptimizer) sgd = tiny_sgd_new (&weight, 1, 0.5, 0, 0, FALSE);
  g_assert_true (tiny_tensor_copy_data (y, rows, sizeof rows, &error));
  g_assert_true (tiny_optimizer_step (sgd, NULL, 0, &error));
  g_assert_true (tiny_tensor_copy_data (weight, after, sizeof after, &error));
  g_assert_no_error (error);
  for (guint i = 0; i < 4; i++)
    for (guint k = 0; k < 2; k++)
      g_assert_cmpfloat (rows[i][k], ==, at[i] < 6 ? before[at[i]][k] : 0);
  for (guint v = 0; v < 6; v++)
    for (guint k = 0; k < 2; k++)
      g_assert_cmpfloat (after[v][k], ==, before[v][k] - 0.5f * (v == 5 ? 2 : v == 1));
}

static const TinyDType floats[] = { TINY_DTYPE_F64, TINY_DTYPE_BF16, TINY_DTYPE_F32 };
static const char *const float_names[G_N_ELEMENTS (floats)] = { "f64", "bf16", "f32" };

static void
check_float (const char *layer, const char *what, TinyTensor *tensor, TinyDType dtype)
{
  if (tiny_tensor_get_dtype (tensor) != dtype)
    CASE_FAILS ("%s: %s is of %s", layer, what,
                tiny_dtype_to_string (tiny_tensor_get_dtype (tensor)));
}

/* The tensors of @layer, and what it makes of @x where that is no NULL. */
static void
check_layer (TinyModule *layer, TinyTensor *x, TinyDType dtype)
{
  const char *type = G_OBJECT_TYPE_NAME (layer);
  g_assert_no_error (tiny_module_get_error (layer));
  g_autoptr (GHashTable) tensors = tiny_module_get_state_dict (layer);
  GHashTableIter at;
  gpointer name, tensor;
  g_hash_table_iter_init (&at, tensors);
  while (g_hash_table_iter_next (&at, &name, &tensor))
    if (g_strcmp0 (name, "num_batches_tracked") != 0)
      check_float (type, name, tensor, dtype);
  if (x == NULL)
    return;
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) y = g_object_ref_sink (tiny_module_forward (layer, x));
  /* A device may lack f64. */
  if (!tiny_tensor_realize (y, &error)
      && (dtype != TINY_DTYPE_F64 || strstr (error->message, "f64") == NULL))
    CASE_FAILS ("%s: %s", type, error->message);
  check_float (type, "the result", y, dtype);
}

/* Layers' tensors have the default float, as what they are made of has; and so has what they make. */
static void
test_default_float (gconstpointer data)
{
  enum { N_MADE = 6 }; /* layers that take (8, 8) */
  const TinyDType dtype = floats[GPOINTER_TO_UINT (data)];
  g_autoptr (GError) error = NULL;
  g_assert_true (tiny_set_default_float (dtype, &error));
  TinyModule *layers[] = {
    tiny_linear_new (8, 8, TRUE),
    tiny_prelu_new (8, 0.25),
    tiny_batch_norm_new (8, 1e-5, -1, TRUE, TRUE),
    tiny_group_norm_new (2, 8, 1e-5, TRUE),
    tiny_layer_norm_new ((gint64[]){ 8 }, 1, 1e-5, TRUE),
    tiny_rms_norm_new (8, 1e-6, TRUE),
    tiny_embedding_new (8, 8),
    tiny_conv2d_new (4, 6, 3, 2, 1, 2, TRUE),
    tiny_multihead_attention_new (8, 2, 0, TRUE, 8, 8, TRUE),
    tiny_lstm_new (8, 4, 1, TRUE, TRUE, 0, FALSE, 0),
  };
  g_autoptr (TinyTensor) x
      = g_object_ref_sink (tiny_tensor_ones (dtype, (gint64[]){ 8, 8 }, 2));
  for (guint i = 0; i < G_N_ELEMENTS (layers); i++) {
    g_autoptr (TinyModule) layer = layers[i];
    check_layer (layer, i < N_MADE ? x : NULL, dtype);
  }
  g_assert_true (tiny_set_default_float (TINY_DTYPE_F32, &error));
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  add_row_tests ("/nn/optimizer/sgd", sgd_names, G_N_ELEMENTS (sgds), test_sgd);
  add_row_tests ("/nn/optimizer/adam", adam_names, G_N_ELEMENTS (adam_names), test_adam);
  g_test_add_func ("/nn/jit", test_jit);
  g_test_add_func ("/nn/jit/exchanges", test_jit_exchanges);
  add_row_tests ("/nn/jit/freezes", freeze_names, G_N_ELEMENTS (freeze_names),
                 test_jit_freezes);
  g_test_add_func ("/nn/jit/without-kernels", test_jit_without_kernels);
  g_test_add_func ("/nn/batch-norm", test_batch_norm);
  g_test_add_func ("/nn/embedding", test_embedding);
  add_row_tests ("/nn/default-float", float_names, G_N_ELEMENTS (floats), test_default_float);
  g_test_add_func ("/nn/loader", test_loader);
  g_test_add_func ("/nn/training", test_training);
  g_test_add_func ("/nn/evaluation", test_evaluation);
  return g_test_run ();
}
