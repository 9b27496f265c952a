/* SPDX-License-Identifier: MIT
 *
 * callbacks.c: functions that do what is asked of them, and others that do not, see things.h. */
#include "things.h"

#include <math.h>

static GPtrArray *
fail (GError **error)
{
  g_set_error_literal (error, TINY_ERROR, TINY_ERROR_INVALID, "the function refuses");
  return NULL;
}

static GPtrArray *
give_inputs (TinyTensor *const *inputs, guint n, gpointer user_data, GError **error)
{
  GPtrArray *list = g_ptr_array_new_with_free_func (g_object_unref);
  for (guint i = 0; i < n; i++)
    g_ptr_array_add (list, g_object_ref (inputs[i]));
  return list;
}

static GPtrArray *
give_squares (TinyTensor *const *inputs, guint n, gpointer user_data, GError **error)
{
  return n == 0 ? fail (error)
                : tiny_tensors (tiny_tensor_sum (tiny_tensor_mul (inputs[0], inputs[n - 1]),
                                                 NULL, 0, FALSE),
                                NULL);
}

static GPtrArray *
give_nothing (TinyTensor *const *inputs, guint n, gpointer user_data, GError **error)
{
  return NULL;
}

static GPtrArray *
give_null (TinyTensor *const *inputs, guint n, gpointer user_data, GError **error)
{
  GPtrArray *list = g_ptr_array_new ();
  g_ptr_array_add (list, NULL);
  return list;
}

static GPtrArray *
give_error (TinyTensor *const *inputs, guint n, gpointer user_data, GError **error)
{
  return fail (error);
}

static GPtrArray *
give_value (TinyTensor *const *inputs, guint n, gpointer user_data, GError **error)
{
  double value = 0;
  return n > 0 && !tiny_tensor_item (inputs[0], &value, error)
             ? NULL
             : tiny_tensors (tiny_tensor_scalar (value), NULL);
}

TinyFunction
chance_tiny_function (Chance *c)
{
  static const TinyFunction some[] = { NULL,         give_inputs, give_squares, give_squares,
                                       give_nothing, give_null,   give_error,   give_value };
  guint i = chance_int (c, G_N_ELEMENTS (some));
  g_string_append_printf (c->text, "function %u, ", i);
  return some[i];
}

#define BACKWARD(name, body)                                                                   \
  static GPtrArray *name (TinyTensor *const *gradients, guint n_gradients,                     \
                          TinyTensor *const *inputs, guint n_inputs,                           \
                          TinyTensor *const *outputs, guint n_outputs, gpointer user_data,     \
                          GError **error)                                                      \
  {                                                                                            \
    return body;                                                                               \
  }
BACKWARD (backward_inputs, give_inputs (inputs, n_inputs, NULL, error))
BACKWARD (backward_gradients, give_inputs (gradients, n_gradients, NULL, error))
BACKWARD (backward_null, give_null (inputs, n_inputs, NULL, error))
BACKWARD (backward_nothing, NULL)
BACKWARD (backward_error, fail (error))

TinyBackwardFunction
chance_tiny_backward_function (Chance *c)
{
  static const TinyBackwardFunction some[]
      = { NULL,          backward_inputs,  backward_gradients,
          backward_null, backward_nothing, backward_error };
  guint i = chance_int (c, G_N_ELEMENTS (some));
  g_string_append_printf (c->text, "backward %u, ", i);
  return some[i];
}

static TinyTensor *
hook_nothing (TinyTensor *gradient, gpointer user_data, GError **error)
{
  return NULL;
}

static TinyTensor *
hook_sum (TinyTensor *gradient, gpointer user_data, GError **error)
{
  return g_object_ref_sink (tiny_tensor_sum (gradient, NULL, 0, FALSE));
}

static TinyTensor *
hook_twice (TinyTensor *gradient, gpointer user_data, GError **error)
{
  return g_object_ref_sink (tiny_tensor_add (gradient, gradient));
}

static TinyTensor *
hook_error (TinyTensor *gradient, gpointer user_data, GError **error)
{
  fail (error);
  return NULL;
}

TinyGradientHook
chance_tiny_gradient_hook (Chance *c)
{
  static const TinyGradientHook some[]
      = { NULL, hook_nothing, hook_sum, hook_twice, hook_error };
  guint i = chance_int (c, G_N_ELEMENTS (some));
  g_string_append_printf (c->text, "hook %u, ", i);
  return some[i];
}

#define JIT(name, body)                                                                        \
  static gboolean name (TinyTensor *const *inputs, guint n, TinyTensor **outputs,              \
                        guint n_outputs, gpointer user_data, GError **error)                   \
  {                                                                                            \
    body                                                                                       \
  }
JIT (jit_sums, {
  for (guint i = 0; i < n_outputs; i++)
    outputs[i] = g_object_ref_sink (n == 0 ? tiny_tensor_scalar (1)
                                           : tiny_tensor_add_number (inputs[i % n], i));
  return tiny_tensor_realize_many (outputs, n_outputs, error);
})
JIT (jit_lazy, {
  for (guint i = 0; i < n_outputs; i++)
    outputs[i] = g_object_ref_sink (n == 0 ? tiny_tensor_full (TINY_DTYPE_F32, NULL, 0, 1)
                                           : tiny_tensor_neg (inputs[0]));
  return TRUE;
})
JIT (jit_inputs, {
  for (guint i = 0; i < MIN (n, n_outputs); i++)
    outputs[i] = g_object_ref (inputs[i]);
  return TRUE;
})
JIT (jit_nothing, { return TRUE; })
JIT (jit_silence, { return FALSE; })
JIT (jit_error, {
  fail (error);
  return FALSE;
})

TinyJitFunction
chance_tiny_jit_function (Chance *c)
{
  static const TinyJitFunction some[]
      = { jit_sums, jit_sums, jit_lazy, jit_inputs, jit_nothing, jit_silence, jit_error, NULL };
  guint i = chance_int (c, G_N_ELEMENTS (some));
  g_string_append_printf (c->text, "jit function %u, ", i);
  return some[i];
}

static GBytes *
item_bytes (guint64 index, gpointer user_data, GError **error)
{
  return g_bytes_new ("12345678", index == 3 ? 3 : 8);
}

static GBytes *
item_nothing (guint64 index, gpointer user_data, GError **error)
{
  return NULL;
}

static GBytes *
item_error (guint64 index, gpointer user_data, GError **error)
{
  return (GBytes *) fail (error);
}

TinyItemFunction
chance_tiny_item_function (Chance *c)
{
  return (
      (TinyItemFunction[]){ NULL, item_bytes, item_nothing, item_error })[chance_int (c, 4)];
}

static double
rate_falls (guint64 epoch, gpointer user_data)
{
  return 1 / (1 + (double) epoch);
}

static double
rate_nan (guint64 epoch, gpointer user_data)
{
  return NAN;
}

static double
rate_below (guint64 epoch, gpointer user_data)
{
  return epoch == 0 ? 1 : -1;
}

static gboolean
stop_never (gpointer user_data)
{
  return FALSE;
}

static gboolean
stop_in_turns (gpointer user_data)
{
  static guint n;
  return ++n % 2 == 0;
}

TinyInterruptFunction
chance_tiny_interrupt_function (Chance *c)
{
  return ((TinyInterruptFunction[]){ NULL, stop_never, stop_in_turns })[chance_int (c, 3)];
}

TinyRateFunction
chance_tiny_rate_function (Chance *c)
{
  return ((TinyRateFunction[]){ NULL, rate_falls, rate_nan, rate_below })[chance_int (c, 4)];
}

static TinyTensor *
forward_nothing (TinyTensor *x)
{
  return NULL;
}

static TinyTensor *
forward_wrong (TinyTensor *x)
{
  return tiny_tensor_matmul (x, tiny_tensor_full (TINY_DTYPE_F32, (gint64[]){ 7, 7 }, 2, 1));
}

TinyModuleFunction
chance_tiny_module_function (Chance *c)
{
  return ((TinyModuleFunction[]){ NULL, tiny_tensor_relu, forward_nothing,
                                  forward_wrong })[chance_int (c, 4)];
}

static void
visit_nothing (const char *name, TinyTensor *tensor, gboolean trainable, gpointer user_data)
{
}

TinyModuleVisitor
chance_tiny_module_visitor (Chance *c)
{
  return chance_int (c, 3) == 0 ? NULL : visit_nothing;
}

static void
apply_training (TinyModule *module, gpointer user_data)
{
  tiny_module_set_training (module, !tiny_module_get_training (module));
}

TinyModuleCallback
chance_tiny_module_callback (Chance *c)
{
  return chance_int (c, 3) == 0 ? NULL : apply_training;
}
