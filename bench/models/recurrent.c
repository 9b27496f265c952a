/* SPDX-License-Identifier: MIT
 *
 * recurrent.c: programs whose graph is long: the gradients of an LSTM over T times (lstm-train:T), and a chain of n
 * products (chain:n). */
#include "bench/models/model.h"

enum { BATCH = 8, N_IN = 32, N_HIDDEN = 64, N_LAYERS = 2, SIDE = 4 };

/* x (B, T, I) to the mean of h², and the gradients of all weights. */
static gboolean
step_lstm (TinyTensor *const *inputs,
           guint n_inputs,
           TinyTensor **outputs,
           guint n_outputs,
           gpointer user_data,
           GError **error)
{
  TinyModule *lstm = ((Model *) user_data)->owned->pdata[0];
  g_autoptr (GPtrArray) parameters = tiny_module_get_parameters (lstm);
  g_autoptr (GPtrArray) wanted = g_ptr_array_new ();
  for (guint i = 0; i < parameters->len; i++)
    tiny_tensor_clear_grad (parameters->pdata[i]);
  g_autoptr (TinyTensor) loss = g_object_ref_sink (tiny_tensor_mean (
      tiny_tensor_square (tiny_module_forward (lstm, inputs[0])), NULL, 0, FALSE));
  if (!tiny_tensor_backward (loss, error))
    return FALSE;
  g_ptr_array_add (wanted, loss);
  for (guint i = 0; i < parameters->len; i++)
    g_ptr_array_add (wanted, tiny_tensor_get_grad (parameters->pdata[i]));
  if (!tiny_tensor_realize_many ((TinyTensor *const *) wanted->pdata, wanted->len, error))
    return FALSE;
  outputs[0] = g_steal_pointer (&loss);
  return TRUE;
}

static gboolean
set_up_lstm (Model *self, GError **error)
{
  const gint64 n_times = GPOINTER_TO_INT (self->config);
  const gint64 shape[] = { BATCH, n_times, N_IN };
  TinyModule *lstm = model_own_object (
      self, tiny_lstm_new (N_IN, N_HIDDEN, N_LAYERS, TRUE, TRUE, 0, FALSE, 0));
  g_autoptr (GPtrArray) parameters = tiny_module_get_parameters (lstm);
  self->inputs[self->n_inputs++] = model_weight (self, "x", shape, 3, 0, 1);
  self->step = step_lstm;
  return tiny_tensor_realize_many ((TinyTensor *const *) parameters->pdata, parameters->len,
                                   error);
}

/* y = tanh (y @ w), n times. */
static gboolean
step_chain (TinyTensor *const *inputs,
            guint n_inputs,
            TinyTensor **outputs,
            guint n_outputs,
            gpointer user_data,
            GError **error)
{
  const gint n = GPOINTER_TO_INT (((Model *) user_data)->config);
  g_autoptr (TinyTensor) y = g_object_ref (inputs[0]);
  for (gint i = 0; i < n; i++) {
    TinyTensor *next = g_object_ref_sink (tiny_tensor_tanh (tiny_tensor_matmul (y, inputs[1])));
    g_object_unref (y);
    y = next;
  }
  outputs[0] = g_steal_pointer (&y);
  return tiny_tensor_realize (outputs[0], error);
}

static gboolean
set_up_chain (Model *self, GError **error)
{
  const gint64 y[] = { 1, SIDE }, w[] = { SIDE, SIDE };
  self->inputs[self->n_inputs++] = model_weight (self, "y", y, 2, 0, 1);
  self->inputs[self->n_inputs++] = model_weight (self, "w", w, 2, 0, 1);
  self->step = step_chain;
  return TRUE;
}

const ModelCase recurrent_cases[] = {
  { "lstm-train:64", GINT_TO_POINTER (64), set_up_lstm },
  { "chain:100", GINT_TO_POINTER (100), set_up_chain },
  { NULL },
};

const ModelCase long_recurrent_cases[] = {
  { "lstm-train:128", GINT_TO_POINTER (128), set_up_lstm },
  { "lstm-train:256", GINT_TO_POINTER (256), set_up_lstm },
  { "lstm-train:512", GINT_TO_POINTER (512), set_up_lstm },
  { "chain:500", GINT_TO_POINTER (500), set_up_chain },
  { "chain:1000", GINT_TO_POINTER (1000), set_up_chain },
  { "chain:2000", GINT_TO_POINTER (2000), set_up_chain },
  { "chain:4000", GINT_TO_POINTER (4000), set_up_chain },
  { NULL },
};
