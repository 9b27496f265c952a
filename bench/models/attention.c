/* SPDX-License-Identifier: MIT
 *
 * attention.c: attention written as its formula, softmax (q kᵀ / √d) v, and its gradients.
 *
 * Letters: H heads, T rows, d width of a head. */
#include <math.h>

#include "bench/models/model.h"

typedef struct {
  gint64 heads, rows, width;
  gboolean backward;
} Config;

typedef struct {
  TinyTensor *q, *k, *v, *weights;
} Parts;

static TinyTensor *
formula (const Config *config, const Parts *parts)
{
  TinyTensor *scores = tiny_tensor_matmul (parts->q, tiny_tensor_transpose (parts->k, -1, -2));
  scores = tiny_tensor_mul_number (scores, 1 / sqrt ((double) config->width));
  return tiny_tensor_matmul (tiny_tensor_softmax (scores, -1), parts->v);
}

/* Forward: (1, H, T, d). Backward: the gradients of the weighted sum, (3, H, T, d). */
static gboolean
step (TinyTensor *const *inputs,
      guint n_inputs,
      TinyTensor **outputs,
      guint n_outputs,
      gpointer user_data,
      GError **error)
{
  Model *self = user_data;
  const Config *config = self->config;
  const Parts *parts = self->parts;
  TinyTensor *result = formula (config, parts);
  if (!config->backward) {
    outputs[0] = g_object_ref_sink (result);
    return tiny_tensor_realize (outputs[0], error);
  }
  TinyTensor *const from[] = { parts->q, parts->k, parts->v };
  for (guint i = 0; i < G_N_ELEMENTS (from); i++)
    tiny_tensor_clear_grad (from[i]);
  g_autoptr (TinyTensor) loss = g_object_ref_sink (
      tiny_tensor_sum (tiny_tensor_mul (result, parts->weights), NULL, 0, FALSE));
  if (!tiny_tensor_backward (loss, error))
    return FALSE;
  TinyTensor *const gradients[]
      = { tiny_tensor_get_grad (parts->q), tiny_tensor_get_grad (parts->k),
          tiny_tensor_get_grad (parts->v) };
  outputs[0] = g_object_ref_sink (tiny_tensor_cat (gradients, G_N_ELEMENTS (gradients), 0));
  return tiny_tensor_realize (outputs[0], error);
}

static gboolean
set_up (Model *self, GError **error)
{
  const Config *config = self->config;
  Parts *parts = self->parts = g_new0 (Parts, 1);
  gint64 shape[] = { 1, config->heads, config->rows, config->width };
  /* All of them inputs: a replay keeps what depends on nothing that may change. */
  self->inputs[self->n_inputs++] = parts->q = model_weight (self, "q", shape, 4, 0, 4);
  self->inputs[self->n_inputs++] = parts->k = model_weight (self, "k", shape, 4, 0, 4);
  self->inputs[self->n_inputs++] = parts->v = model_weight (self, "v", shape, 4, 0, 4);
  self->inputs[self->n_inputs++] = parts->weights
      = model_weight (self, "weights", shape, 4, 0, 1);
  tiny_tensor_set_requires_grad (parts->q, config->backward);
  tiny_tensor_set_requires_grad (parts->k, config->backward);
  tiny_tensor_set_requires_grad (parts->v, config->backward);
  self->step = step;
  return TRUE;
}

static const Config forward_1024 = { 12, 1024, 64, FALSE };
static const Config backward_1024 = { 12, 1024, 64, TRUE };
#define FLOPS (4.0 * 12 * 1024 * 1024 * 64)

const ModelCase attention_cases[] = {
  { "attention", &forward_1024, set_up, FLOPS, 0 },
  { "attention-backward", &backward_1024, set_up, 3.5 * FLOPS, 0 }, /* forward and backward */
  { NULL },
};
