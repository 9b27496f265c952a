/* SPDX-License-Identifier: MIT
 *
 * corpus-models.c: the models of bench/models, each as a plain step and captured; those that only go forward also with
 * the gradients of their weights. */
#include "bench/models/model.h"
#include "replay.h"

static const ModelCase *const all_models[]
    = { attention_cases, gpt2_cases,         resnet_cases,
        cnn_cases,       resnet_train_cases, recurrent_cases };

static gboolean
set_up (Model *self, const ModelCase *what, GError **error)
{
  *self = (Model){ .config = what->config,
                   .owned = g_ptr_array_new_with_free_func (g_object_unref) };
  return what->set_up (self, error);
}

/* The second step, which finds what the first one made. */
static gboolean
run_plain (gconstpointer data, GError **error)
{
  Model model;
  gboolean good = set_up (&model, data, error);
  replay_begin ();
  for (guint i = 0; good && i < 2; i++) {
    g_autoptr (TinyTensor) out = NULL;
    replay_begin_launches ();
    good = model.step (model.inputs, model.n_inputs, &out, 1, &model, error);
  }
  return good;
}

static gboolean
replay (TinyJitFunction step, Model *model, GError **error)
{
  TinyTensor *out;
  TinyJit *jit = tiny_jit_new (step, model, NULL, 1);
  if (!tiny_jit_call (jit, model->inputs, model->n_inputs, &out, error))
    return FALSE;
  replay_begin ();
  if (!tiny_jit_call (jit, model->inputs, model->n_inputs, &out, error))
    return FALSE;
  replay_begin_launches ();
  return tiny_jit_call (jit, model->inputs, model->n_inputs, &out, error);
}

/* The schedules of the second call, which is recorded, and the launches of the third, which is a replay. */
static gboolean
run_captured (gconstpointer data, GError **error)
{
  Model model;
  return set_up (&model, data, error) && replay (model.step, &model, error);
}

/* ---- gradients ---- */
static gboolean
is_weight (TinyTensor *tensor, const Model *model)
{
  for (guint i = 0; i < model->n_inputs; i++)
    if (model->inputs[i] == tensor)
      return FALSE;
  return tiny_dtype_is_float (tiny_tensor_get_dtype (tensor));
}

/* Lets gradients flow to all weights. */
static gboolean
set_up_gradients (Model *self, const ModelCase *what, GError **error)
{
  if (!set_up (self, what, error))
    return FALSE;
  for (guint i = 0; i < self->owned->len; i++)
    if (is_weight (self->owned->pdata[i], self))
      tiny_tensor_set_requires_grad (self->owned->pdata[i], TRUE);
  return TRUE;
}

/* A step, then the gradients of the sum of its squares, which are realised together. */
static gboolean
step_backward (TinyTensor *const *inputs,
               guint n_inputs,
               TinyTensor **outputs,
               guint n_outputs,
               gpointer user_data,
               GError **error)
{
  Model *self = user_data;
  g_autoptr (TinyTensor) result = NULL;
  g_autoptr (GPtrArray) gradients = g_ptr_array_new ();
  for (guint i = 0; i < self->owned->len; i++)
    tiny_tensor_clear_grad (self->owned->pdata[i]);
  if (!self->step (inputs, n_inputs, &result, 1, self, error))
    return FALSE;
  g_autoptr (TinyTensor) loss
      = g_object_ref_sink (tiny_tensor_sum (tiny_tensor_square (result), NULL, 0, FALSE));
  if (!tiny_tensor_backward (loss, error))
    return FALSE;
  g_ptr_array_add (gradients, loss);
  for (guint i = 0; i < self->owned->len; i++)
    if (tiny_tensor_get_grad (self->owned->pdata[i]) != NULL)
      g_ptr_array_add (gradients, tiny_tensor_get_grad (self->owned->pdata[i]));
  outputs[0] = g_object_ref (loss);
  return tiny_tensor_realize_many ((TinyTensor *const *) gradients->pdata, gradients->len,
                                   error);
}

static gboolean
run_backward (gconstpointer data, GError **error)
{
  Model model;
  g_autoptr (TinyTensor) out = NULL;
  gboolean good = set_up_gradients (&model, data, error);
  replay_begin ();
  return good && step_backward (model.inputs, model.n_inputs, &out, 1, &model, error);
}

static gboolean
run_backward_captured (gconstpointer data, GError **error)
{
  Model model;
  return set_up_gradients (&model, data, error) && replay (step_backward, &model, error);
}

/* Models of f32 that give no gradients by themselves and write no state. */
static const char *const forward_only[] = { "resnet50", "resnet-tiny", "gpt2-prefill", NULL };

/* Whose weights take a second to be put into blocks: one target is enough beside the small ones. */
static const char *const slow[] = { "gpt2-decode:q8_0", "gpt2-decode:q4_0", NULL };

/* The targets of model @name; NULL: all. What a network in narrow floats is made of is in other models too. */
static const char *
choose_targets (const char *name)
{
  if (g_str_has_prefix (name, "resnet-train"))
    return "haswell sapphirerapids";
  return g_strv_contains (slow, name) ? "sapphirerapids" : NULL;
}

void
replay_add_models (GArray *cases)
{
  for (guint i = 0; i < G_N_ELEMENTS (all_models); i++)
    for (const ModelCase *at = all_models[i]; at->name != NULL; at++) {
      const char *targets = choose_targets (at->name);
      replay_add (cases, run_plain, at, "%s/plain", at->name)->targets = targets;
      replay_add (cases, run_captured, at, "%s/captured", at->name)->targets = targets;
      if (!g_strv_contains (forward_only, at->name))
        continue;
      replay_add (cases, run_backward, at, "%s/backward-plain", at->name);
      replay_add (cases, run_backward_captured, at, "%s/backward-captured", at->name);
    }
}
