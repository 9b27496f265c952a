/* SPDX-License-Identifier: MIT
 *
 * test-module.c: names, paths and state dicts of modules, kinds made by subclassing, what is moved in
 * forward and in replays of it, modes in recordings, and bad arguments. */
#include <string.h>
#include <tiny.h>

#include "../case-fails.h"
#include "../default-device.h"
#include "nn/module-private.h"

/* ---- a kind of module of this file: (x, y) to (w x + y, x), and w x for x alone ---- */
typedef struct {
  TinyModule parent_instance;
} Scaled;
typedef TinyModuleClass ScaledClass;
static GType scaled_get_type (void);
G_DEFINE_TYPE (Scaled, scaled, TINY_TYPE_MODULE)

static GPtrArray *
scaled_forward_many (TinyModule *self, GPtrArray *inputs)
{
  GPtrArray *results = g_ptr_array_new ();
  TinyTensor *y = tiny_tensor_mul (inputs->pdata[0], tiny_module_get_parameter (self, "w"));
  if (inputs->len > 1)
    y = tiny_tensor_add (y, inputs->pdata[1]);
  g_ptr_array_add (results, y);
  g_ptr_array_add (results, g_object_ref (inputs->pdata[0]));
  return results;
}

static void
scaled_class_init (ScaledClass *class)
{
  class->forward_many = scaled_forward_many;
}

static void
scaled_init (Scaled *self)
{
  g_autoptr (GError) error = NULL;
  tiny_module_add_parameter (TINY_MODULE (self), "w",
                             tiny_tensor_full (TINY_DTYPE_F32, (gint64[]){ 2 }, 1, 3), &error);
  tiny_module_add_buffer (TINY_MODULE (self), "seen",
                          tiny_tensor_zeros (TINY_DTYPE_I32, NULL, 0), TRUE, &error);
  tiny_module_add_buffer (TINY_MODULE (self), "hidden",
                          tiny_tensor_zeros (TINY_DTYPE_I32, NULL, 0), FALSE, &error);
  g_assert_no_error (error);
}

/* A kind that implements nothing. */
typedef TinyModule Empty;
typedef TinyModuleClass EmptyClass;
static GType empty_get_type (void);
G_DEFINE_TYPE (Empty, empty, TINY_TYPE_MODULE)
static void
empty_class_init (EmptyClass *class)
{
}
static void
empty_init (Empty *self)
{
}

static TinyTensor *
vector (float a, float b)
{
  const float values[] = { a, b };
  return g_object_ref_sink (tiny_tensor_new_from_data (NULL, TINY_DTYPE_F32, (gint64[]){ 2 }, 1,
                                                       values, sizeof values));
}

static void
assert_values (TinyTensor *tensor, float a, float b)
{
  float found[2] = { 0 };
  g_autoptr (GError) error = NULL;
  tiny_tensor_copy_data (tensor, found, sizeof found, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (found[0], ==, a);
  g_assert_cmpfloat (found[1], ==, b);
}

static void
assert_fails (TinyTensor *tensor, const char *text)
{
  g_autoptr (TinyTensor) owned = g_object_ref_sink (tensor);
  g_autoptr (GError) error = NULL;
  g_assert_false (tiny_tensor_realize (owned, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  if (strstr (error->message, text) == NULL)
    CASE_FAILS ("“%s” does not say “%s”", error->message, text);
}

static void
test_subclass (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (TinyModule) module = g_object_new (scaled_get_type (), NULL);
  g_autoptr (TinyTensor) x = vector (1, 2), y = vector (10, 20);
  g_autoptr (GPtrArray) both = tiny_module_call (module, (TinyTensor *[]){ x, y }, 2);
  g_assert_cmpuint (both->len, ==, 2);
  assert_values (both->pdata[0], 13, 26);
  assert_values (both->pdata[1], 1, 2);
  g_autoptr (TinyTensor) one = g_object_ref_sink (tiny_module_forward (module, x));
  assert_values (one, 3, 6);
  /* A floating input is taken; a result that is an input is an object of its own. */
  g_autoptr (TinyModule) chain = tiny_sequential_new ();
  g_autoptr (TinyTensor) same = g_object_ref_sink (tiny_module_forward (chain, x));
  g_assert_true (same != x);
  assert_values (same, 1, 2);
  g_autoptr (TinyTensor) taken
      = g_object_ref_sink (tiny_module_forward (chain, tiny_tensor_add (x, y)));
  assert_values (taken, 11, 22);
  g_autoptr (TinyModule) empty = g_object_new (empty_get_type (), NULL);
  assert_fails (tiny_module_forward (empty, x), "neither forward nor forward_many");
  g_autoptr (TinyModule) relu = tiny_activation_new ("relu");
  g_autoptr (GPtrArray) too_many = tiny_module_call (relu, (TinyTensor *[]){ x, y }, 2);
  assert_fails (g_object_ref (too_many->pdata[0]), "takes 1 input, not 2");
  g_object_unref (too_many->pdata[0]);
}

/* chain: 0 Scaled, 1 a chain of a linear layer and the same Scaled */
static TinyModule *
nested (void)
{
  TinyModule *chain = tiny_sequential_new (), *inner = tiny_sequential_new ();
  TinyModule *scaled = g_object_new (scaled_get_type (), NULL);
  tiny_sequential_append (chain, g_object_ref (scaled));
  tiny_sequential_append (inner, tiny_linear_new (2, 2, TRUE));
  tiny_sequential_append (inner, scaled);
  tiny_sequential_append (chain, inner);
  return chain;
}

static void
count (TinyModule *module, gpointer user_data)
{
  ++*(guint *) user_data;
}

static void
test_names (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (TinyModule) chain = nested ();
  g_auto (GStrv) names = tiny_module_get_parameter_names (chain);
  g_autofree char *joined = g_strjoinv (" ", names);
  g_assert_cmpstr (joined, ==, "0.w 1.0.weight 1.0.bias");
  g_auto (GStrv) buffers = tiny_module_get_buffer_names (chain);
  g_autofree char *joined_buffers = g_strjoinv (" ", buffers);
  g_assert_cmpstr (joined_buffers, ==, "0.seen 0.hidden");
  g_auto (GStrv) children = tiny_module_get_child_names (chain);
  g_assert_cmpuint (g_strv_length (children), ==, 2);
  g_assert_true (tiny_module_get_parameter (chain, "0.w")
                 == tiny_module_get_parameter (chain, "1.1.w"));
  g_assert_nonnull (tiny_module_get_buffer (chain, "1.1.seen"));
  g_assert_null (tiny_module_get_buffer (chain, "0.w"));
  g_assert_true (tiny_module_get_child (chain, "") == chain);
  static const char *const absent[]
      = { "", ".", "0", "0.", "0..w", "0.w.w", "2.w", "1.weight" };
  for (guint i = 0; i < G_N_ELEMENTS (absent); i++)
    g_assert_null (tiny_module_get_parameter (chain, absent[i]));
  guint n = 0;
  tiny_module_apply (chain, count, &n);
  g_assert_cmpuint (n, ==, 5);
  tiny_module_set_training (chain, FALSE);
  g_assert_false (tiny_module_get_training (tiny_module_get_child (chain, "1.1")));
  tiny_module_set_requires_grad (chain, FALSE);
  g_assert_false (tiny_tensor_get_requires_grad (tiny_module_get_parameter (chain, "0.w")));
}

static void
test_bad_names (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (TinyModule) chain = nested ();
  static const char *const bad[] = { NULL, "", "a.b", "0", "\xff" };
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++) {
    GError *errors[3] = { NULL };
    TinyTensor *zeros = tiny_tensor_zeros (TINY_DTYPE_F32, NULL, 0);
    g_assert_null (tiny_module_add_parameter (chain, bad[i], zeros, &errors[0]));
    zeros = tiny_tensor_zeros (TINY_DTYPE_F32, NULL, 0);
    g_assert_null (tiny_module_add_buffer (chain, bad[i], zeros, TRUE, &errors[1]));
    g_assert_null (tiny_module_add_child (chain, bad[i], tiny_sequential_new (), &errors[2]));
    for (guint k = 0; k < 3; k++) {
      g_assert_error (errors[k], TINY_ERROR, TINY_ERROR_INVALID);
      g_clear_error (&errors[k]);
    }
  }
  g_autoptr (GError) integers = NULL, null = NULL, cycle = NULL, sticky = NULL, module = NULL;
  TinyTensor *zeros = tiny_tensor_zeros (TINY_DTYPE_I32, NULL, 0);
  g_assert_null (tiny_module_add_parameter (chain, "n", zeros, &integers));
  g_assert_nonnull (strstr (integers->message, "make it a buffer"));
  g_assert_null (tiny_module_add_parameter (chain, "n", NULL, &null));
  g_assert_null (tiny_module_add_child (chain, "n", NULL, &module));
  TinyModule *inner = tiny_module_get_child (chain, "1");
  g_assert_null (tiny_module_add_child (inner, "up", g_object_ref (chain), &cycle));
  g_assert_nonnull (strstr (cycle->message, "contains"));
  zeros = tiny_tensor_zeros (TINY_DTYPE_F32, (gint64[]){ -1 }, 1);
  g_assert_null (tiny_module_add_parameter (chain, "n", zeros, &sticky));
  tiny_sequential_append (inner, g_object_ref (chain));
  g_assert_nonnull (tiny_module_get_error (inner));
  g_autoptr (TinyTensor) x = vector (1, 2);
  assert_fails (tiny_module_forward (chain, x), "contains");
  assert_fails (tiny_module_forward (chain, NULL), "NULL");
}

/* Layers of sizes that cannot be say so, and so does what they give. */
static void
test_bad_sizes (void)
{
  if (skips_without_device ())
    return;
  const gint64 big = G_MAXINT64;
  TinyModule *const bad[] = {
    tiny_linear_new (-1, 2, TRUE),
    tiny_linear_new (big, big, FALSE),
    tiny_embedding_new (3, -1),
    tiny_dropout_new (1.5),
    tiny_dropout_new (0.0 / 0.0),
    tiny_activation_new (NULL),
    tiny_prelu_new (0, 0.25),
    tiny_conv_new (2, 3, 4, (gint64[]){ 1, 2, 3 }, 3, NULL, 0, NULL, 0, NULL, 0, 1, TRUE),
    tiny_conv_new (9, 3, 4, (gint64[]){ 1 }, 1, NULL, 0, NULL, 0, NULL, 0, 1, TRUE),
    tiny_conv_transpose_new (1, 3, 4, NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0, 1, TRUE),
    tiny_conv_new (2, 3, 4, (gint64[]){ 1 }, 1, NULL, 2, NULL, 0, NULL, 0, 1, TRUE),
    tiny_conv2d_new (3, 4, 3, 1, 0, 2, TRUE),
    tiny_conv2d_new (3, 4, 0, 1, 0, 1, TRUE),
    tiny_conv2d_new (big, 4, big, 1, 0, 1, TRUE),
    tiny_conv1d_new (3, 4, 3, 0, 0, 1, 1, TRUE),
    tiny_conv1d_new (3, 4, 3, 1, -1, 1, 1, TRUE),
    tiny_batch_norm_new (-1, 1e-5, 0.1, TRUE, TRUE),
    tiny_batch_norm_new (3, 1e-5, 2, TRUE, TRUE),
    tiny_batch_norm_new (3, 0.0 / 0.0, 0.1, TRUE, TRUE),
    tiny_group_norm_new (0, 4, 1e-5, TRUE),
    tiny_group_norm_new (3, 4, 1e-5, TRUE),
    tiny_layer_norm_new (NULL, 0, 1e-5, TRUE),
    tiny_layer_norm_new ((gint64[]){ 2, -2 }, 2, 1e-5, TRUE),
    tiny_rms_norm_new (-1, 1e-5, TRUE),
    tiny_lstm_new (0, 3, 1, TRUE, TRUE, 0, FALSE, 0),
    tiny_lstm_new (3, 3, 1, TRUE, TRUE, 0, FALSE, 3),
    tiny_lstm_new (3, 3, 0, TRUE, TRUE, 0, FALSE, 0),
    tiny_gru_new (3, 3, 1, TRUE, TRUE, -1, FALSE),
    tiny_gru_cell_new (3, big, TRUE),
    tiny_multihead_attention_new (6, 4, 0, TRUE, 6, 6, TRUE),
    tiny_multihead_attention_new (6, 0, 0, TRUE, 6, 6, TRUE),
    tiny_multihead_attention_new (6, 2, 2, TRUE, 6, 6, TRUE),
    tiny_multihead_attention_new (6, 2, 0, TRUE, big, big, TRUE),
    tiny_transformer_encoder_layer_new (6, 4, 8, 0, "relu", 1e-5, TRUE, TRUE),
    tiny_transformer_decoder_layer_new (6, 2, 8, 0, "nothing", 1e-5, TRUE, TRUE),
  };
  g_autoptr (TinyTensor) x = vector (1, 2);
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++) {
    if (tiny_module_get_error (bad[i]) == NULL)
      CASE_FAILS ("layer %u has no error", i);
    else
      assert_fails (tiny_module_forward (bad[i], x), "");
    g_object_unref (bad[i]);
  }
}

/* Inputs of wrong shapes are sticky errors, never critical warnings. */
static void
test_bad_inputs (void)
{
  if (skips_without_device ())
    return;
  TinyModule *const layers[] = {
    tiny_linear_new (3, 3, TRUE),
    tiny_embedding_new (3, 3),
    tiny_conv1d_new (3, 3, 3, 1, 0, 1, 1, TRUE),
    tiny_conv2d_new (3, 3, 3, 1, 0, 1, TRUE),
    tiny_batch_norm2d_new (3),
    tiny_group_norm_new (1, 3, 1e-5, TRUE),
    tiny_layer_norm_new ((gint64[]){ 3 }, 1, 1e-5, TRUE),
    tiny_layer_norm2d_new (3, 1e-5, TRUE),
    tiny_rms_norm_new (3, 1e-5, TRUE),
    tiny_lstm_new (3, 3, 1, TRUE, TRUE, 0, FALSE, 0),
    tiny_gru_cell_new (3, 3, TRUE),
    tiny_multihead_attention_new (3, 1, 0, TRUE, 3, 3, TRUE),
    tiny_transformer_encoder_layer_new (3, 1, 3, 0, "relu", 1e-5, TRUE, TRUE),
    tiny_transformer_decoder_layer_new (3, 1, 3, 0, "relu", 1e-5, TRUE, TRUE),
  };
  g_autoptr (TinyTensor) x = vector (1, 2);
  g_autoptr (TinyTensor) scalar
      = g_object_ref_sink (tiny_tensor_full (TINY_DTYPE_F32, NULL, 0, 1));
  g_autoptr (TinyTensor) wrong
      = g_object_ref_sink (tiny_tensor_zeros (TINY_DTYPE_F32, (gint64[]){ -1 }, 1));
  for (guint i = 0; i < G_N_ELEMENTS (layers); i++) {
    assert_fails (tiny_module_forward (layers[i], x), "");
    assert_fails (tiny_module_forward (layers[i], scalar), "");
    assert_fails (tiny_module_forward (layers[i], wrong), "");
    g_autoptr (GPtrArray) none = tiny_module_call (layers[i], (TinyTensor *[]){ NULL }, 1);
    assert_fails (g_object_ref (none->pdata[0]), "");
    TinyTensor *inputs[] = { x, NULL, wrong, scalar, x };
    for (guint n = 0; n <= G_N_ELEMENTS (inputs); n++) {
      g_autoptr (GPtrArray) results = tiny_module_call (layers[i], inputs, n);
      g_assert_nonnull (tiny_tensor_get_error (results->pdata[0]));
    }
    g_object_unref (layers[i]);
  }
}

static void
test_state_dict (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (TinyModule) chain = nested (), other = nested ();
  g_autoptr (GError) error = NULL, wrong = NULL;
  g_autoptr (GHashTable) state = tiny_module_get_state_dict (chain);
  g_assert_cmpuint (g_hash_table_size (state), ==, 6); /* w and seen with both of their names */
  g_assert_false (g_hash_table_contains (state, "0.hidden"));
  TinyTensor *w = tiny_module_get_parameter (chain, "0.w");
  g_autoptr (TinyTensor) change = vector (7, 8);
  g_assert_true (tiny_tensor_assign (w, change, &error));
  g_assert_true (tiny_module_load_state_dict (other, state, TRUE, &error));
  assert_values (tiny_module_get_parameter (other, "1.1.w"), 7, 8);
  g_hash_table_remove (state, "1.0.bias");
  g_hash_table_insert (state, g_strdup ("x"), vector (1, 2));
  g_hash_table_insert (state, g_strdup ("1.0.weight"), vector (1, 2));
  g_assert_false (tiny_module_load_state_dict (other, state, TRUE, &wrong));
  g_assert_cmpstr (
      wrong->message, ==,
      "load_state_dict: missing “1.0.bias”, of another shape “1.0.weight”: (2,), not "
      "(2, 2), unexpected “x”");
  g_hash_table_remove (state, "1.0.weight");
  g_assert_true (tiny_module_load_state_dict (other, state, FALSE, &error));
  g_assert_no_error (error);
}

/* A tensor put into a module is that tensor, under the module's name for it; NULL takes it out. */
static void
test_shared_tensor (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (GError) error = NULL, wrong = NULL;
  g_autoptr (TinyModule) first = tiny_linear_new (2, 2, TRUE),
                         second = tiny_linear_new (2, 2, TRUE);
  TinyTensor *weight = tiny_module_get_parameter (first, "weight");
  g_assert_true (tiny_module_set_tensor (second, "weight", weight, &error));
  g_assert_true (tiny_module_set_tensor (second, "weight", weight, &error));
  g_assert_true (tiny_module_get_parameter (second, "weight") == weight);
  g_autoptr (TinyModule) chain = tiny_sequential_new ();
  tiny_sequential_append (chain, g_object_ref (first));
  tiny_sequential_append (chain, g_object_ref (second));
  g_autoptr (GPtrArray) parameters = tiny_module_get_parameters (chain);
  g_autoptr (GHashTable) state = tiny_module_get_state_dict (chain);
  g_assert_cmpuint (parameters->len, ==, 3);
  g_assert_cmpuint (g_hash_table_size (state), ==, 4);
  g_assert_true (tiny_module_set_tensor (chain, "1.bias", NULL, &error));
  g_assert_null (tiny_module_get_parameter (second, "bias"));
  g_assert_true (tiny_module_set_tensor (chain, "0.bias", vector (1, 2), &error));
  assert_values (tiny_module_get_parameter (first, "bias"), 1, 2);
  g_assert_no_error (error);
  g_assert_false (tiny_module_set_tensor (chain, "1.bias", vector (1, 2), &wrong));
  g_assert_cmpstr (strstr (wrong->message, "there is"), ==, "there is no tensor “1.bias”");
  g_clear_error (&wrong);
  g_assert_false (tiny_module_set_tensor (chain, "0", NULL, &wrong));
  g_clear_error (&wrong);
  g_assert_false (tiny_module_set_tensor (
      first, "bias", tiny_tensor_full (TINY_DTYPE_I32, NULL, 0, 1), &wrong));
  g_assert_nonnull (strstr (wrong->message, "a parameter is of floats, not i32"));
  assert_values (tiny_module_get_parameter (first, "bias"), 1, 2);
}

static void
test_casts (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (GError) error = NULL, wrong = NULL;
  g_autoptr (TinyModule) chain = nested ();
  g_assert_true (tiny_module_to_dtype (chain, TINY_DTYPE_F16, &error));
  g_assert_no_error (error);
  TinyTensor *w = tiny_module_get_parameter (chain, "0.w");
  g_assert_cmpint (tiny_tensor_get_dtype (w), ==, TINY_DTYPE_F16);
  g_assert_true (w == tiny_module_get_parameter (chain, "1.1.w"));
  g_assert_true (tiny_tensor_get_requires_grad (w));
  g_assert_cmpint (tiny_tensor_get_dtype (tiny_module_get_buffer (chain, "0.seen")), ==,
                   TINY_DTYPE_I32);
  g_assert_true (tiny_module_to_dtype (chain, TINY_DTYPE_F32, &error));
  assert_values (tiny_module_get_parameter (chain, "0.w"), 3, 3);
  g_assert_true (tiny_module_to (chain, NULL, &error));
  assert_values (tiny_module_get_parameter (chain, "0.w"), 3, 3);
  g_assert_false (tiny_module_to_dtype (chain, TINY_DTYPE_I32, &wrong));
  g_assert_error (wrong, TINY_ERROR, TINY_ERROR_INVALID);
  g_clear_error (&wrong);
  g_assert_false (tiny_module_to (chain, "NOTHING", &wrong));
  g_assert_nonnull (wrong);
  assert_values (tiny_module_get_parameter (chain, "0.w"), 3, 3);
}

/* A cast replaces buffers whose new values wait for a step; those that are gone are none of the next step's. */
static void
test_casts_what_waits (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyModule) net = tiny_batch_norm2d_new (2);
  g_autoptr (TinyTensor) x
      = g_object_ref_sink (tiny_tensor_full (TINY_DTYPE_F32, (gint64[]){ 4, 2, 3, 3 }, 4, 5));
  g_autoptr (TinyTensor) y = g_object_ref_sink (tiny_module_forward (net, g_object_ref (x)));
  gpointer gone = tiny_module_get_buffer (net, "running_mean");
  g_object_add_weak_pointer (gone, &gone);
  g_assert_false (tiny_tensor_is_realized (gone));
  g_assert_true (tiny_module_to_dtype (net, TINY_DTYPE_F64, &error));
  g_assert_null (gone);
  g_autoptr (TinyTensor) w = vector (1, 2);
  g_autoptr (TinyOptimizer) sgd = tiny_sgd_new (&w, 1, 1e-3, 0, 0, FALSE);
  g_autoptr (GPtrArray) moved = g_ptr_array_new ();
  tiny_module_collect_moved (moved);
  g_assert_cmpuint (moved->len, ==, 1); /* the counter, which is no float */
  g_assert_true (moved->pdata[0] == tiny_module_get_buffer (net, "num_batches_tracked"));
  g_assert_true (tiny_optimizer_step (sgd, NULL, 0, &error));
  g_assert_no_error (error);
  TinyTensor *mean = tiny_module_get_buffer (net, "running_mean");
  g_assert_cmpint (tiny_tensor_get_dtype (mean), ==, TINY_DTYPE_F64);
  double found[2];
  g_assert_true (tiny_tensor_copy_data (mean, found, sizeof found, &error));
  g_assert_cmpfloat_with_epsilon (found[0], 0.5, 1e-6);
}

/* A step with dropout and running statistics, captured: every replay drops others and moves them. */
typedef struct {
  TinyModule *net;
  TinyOptimizer *optimizer;
} Step;

static gboolean
run_step (TinyTensor *const *inputs,
          guint n_inputs,
          TinyTensor **outputs,
          guint n_outputs,
          gpointer user_data,
          GError **error)
{
  Step *self = user_data;
  g_autoptr (TinyTensor) y = g_object_ref_sink (tiny_module_forward (self->net, inputs[0]));
  g_autoptr (TinyTensor) loss = g_object_ref_sink (tiny_tensor_sum (y, NULL, 0, FALSE));
  tiny_optimizer_zero_grad (self->optimizer);
  if (!tiny_tensor_backward (loss, error)
      || !tiny_optimizer_step (self->optimizer, &y, 1, error))
    return FALSE;
  outputs[0] = g_steal_pointer (&y);
  return TRUE;
}

static void
test_captured_state (void)
{
  if (skips_without_device ())
    return;
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyModule) net = tiny_sequential_new ();
  tiny_sequential_append (net, tiny_batch_norm2d_new (2));
  tiny_sequential_append (net, tiny_dropout_new (0.5));
  g_autoptr (GPtrArray) parameters = tiny_module_get_parameters (net);
  g_autoptr (TinyOptimizer) sgd
      = tiny_sgd_new ((TinyTensor *const *) parameters->pdata, 2, 1e-3, 0, 0, FALSE);
  Step step = { net, sgd };
  g_autoptr (TinyJit) jit = tiny_jit_new (run_step, &step, NULL, 1);
  g_autoptr (TinyTensor) x = g_object_ref_sink (
      tiny_tensor_uniform (TINY_DTYPE_F32, (gint64[]){ 16, 2, 2, 4 }, 4, 0, 1));
  guint64 masks[5][4] = { 0 };
  for (guint i = 0; i < 5; i++) {
    float found[256];
    TinyTensor *output;
    tiny_jit_call (jit, &x, 1, &output, &error);
    g_assert_no_error (error);
    /* Moved with the step, not some time later. */
    g_assert_true (tiny_tensor_is_realized (tiny_module_get_buffer (net, "0.running_mean")));
    g_assert_true (tiny_tensor_copy_data (output, found, sizeof found, &error));
    for (guint k = 0; k < 256; k++)
      masks[i][k / 64] |= (guint64) (found[k] == 0) << k % 64;
    for (guint k = 0; k < i; k++)
      g_assert_true (memcmp (masks[i], masks[k], sizeof masks[i]) != 0);
  }
  g_assert_cmpuint (tiny_jit_get_n_kernels (jit), >, 0);
  gint64 seen = 0;
  TinyTensor *counter = tiny_module_get_buffer (net, "0.num_batches_tracked");
  g_assert_true (tiny_tensor_copy_data (counter, &seen, sizeof seen, &error));
  g_assert_cmpint (seen, ==, 5);
}

/* ---- modes in recordings ---- */
typedef struct {
  TinyModule *module;
  gboolean mode, sets_it;
  guint n_runs;
} Modal;

static gboolean
apply (TinyTensor *const *inputs,
       guint n_inputs,
       TinyTensor **outputs,
       guint n_outputs,
       gpointer user_data,
       GError **error)
{
  Modal *self = user_data;
  self->n_runs++;
  if (self->sets_it)
    tiny_module_set_training (self->module, self->mode);
  outputs[0] = g_object_ref_sink (tiny_module_forward (self->module, inputs[0]));
  return TRUE;
}

/* A function that says itself whether a module trains does not depend on what was said before; another is recorded once for
 * each mode. */
static void
test_modes (void)
{
  if (skips_without_device ())
    return;
  for (guint sets = 0; sets < 2; sets++) {
    g_autoptr (TinyModule) dropout = tiny_dropout_new (1);
    Modal modal = { .module = dropout, .sets_it = sets };
    g_autoptr (TinyJit) jit = tiny_jit_new (apply, &modal, NULL, 1);
    const float values[] = { 1, -2, 3 };
    g_autoptr (TinyTensor) x = g_object_ref_sink (tiny_tensor_new_from_data (
        NULL, TINY_DTYPE_F32, (gint64[]){ 3 }, 1, values, sizeof values));
    for (guint call = 0; call < 12; call++) {
      TinyTensor *y;
      g_autoptr (GError) error = NULL;
      tiny_module_set_training (dropout, call % 2);
      g_assert_true (tiny_jit_call (jit, &x, 1, &y, &error));
      g_assert_no_error (error);
      float got[G_N_ELEMENTS (values)];
      g_assert_true (tiny_tensor_copy_data (y, got, sizeof got, &error));
      for (guint i = 0; i < G_N_ELEMENTS (values); i++)
        g_assert_cmpfloat (got[i], ==, call % 2 && !sets ? 0 : values[i]);
    }
    g_assert_cmpuint (modal.n_runs, ==, sets ? 2 : 3);
  }
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/module/subclass", test_subclass);
  g_test_add_func ("/module/names", test_names);
  g_test_add_func ("/module/names/bad", test_bad_names);
  g_test_add_func ("/module/layers/bad-sizes", test_bad_sizes);
  g_test_add_func ("/module/layers/bad-inputs", test_bad_inputs);
  g_test_add_func ("/module/state-dict", test_state_dict);
  g_test_add_func ("/module/shared-tensor", test_shared_tensor);
  g_test_add_func ("/module/casts", test_casts);
  g_test_add_func ("/module/casts-what-waits", test_casts_what_waits);
  g_test_add_func ("/module/captured-state", test_captured_state);
  g_test_add_func ("/nn/module/modes-recorded", test_modes);
  return g_test_run ();
}
