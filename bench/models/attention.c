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

static TinyTensor *
formula (const Config *config, TinyTensor *q, TinyTensor *k, TinyTensor *v)
{
  TinyTensor *scores = tiny_tensor_matmul (q, tiny_tensor_transpose (k, -1, -2));
  scores = tiny_tensor_mul_number (scores, 1 / sqrt ((double) config->width));
  return tiny_tensor_matmul (tiny_tensor_softmax (scores, -1), v);
}

/* Of q, k, v and weights, all inputs, as what does not change is not computed again. Forward: (1, H, T, d).
 * Backward: the gradients of the weighted sum, (3, H, T, d). */
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
  TinyTensor *result = formula (config, inputs[0], inputs[1], inputs[2]);
  if (!config->backward) {
    outputs[0] = g_object_ref_sink (result);
    return tiny_tensor_realize (outputs[0], error);
  }
  for (guint i = 0; i < 3; i++)
    tiny_tensor_clear_grad (inputs[i]);
  g_autoptr (TinyTensor) loss = g_object_ref_sink (
      tiny_tensor_sum (tiny_tensor_mul (result, inputs[3]), NULL, 0, FALSE));
  if (!tiny_tensor_backward (loss, error))
    return FALSE;
  TinyTensor *const gradients[]
      = { tiny_tensor_get_grad (inputs[0]), tiny_tensor_get_grad (inputs[1]),
          tiny_tensor_get_grad (inputs[2]) };
  outputs[0] = g_object_ref_sink (tiny_tensor_cat (gradients, G_N_ELEMENTS (gradients), 0));
  return tiny_tensor_realize (outputs[0], error);
}

static gboolean
set_up (Model *self, GError **error)
{
  const Config *config = self->config;
  static const char *const names[] = { "q", "k", "v", "weights" };
  gint64 shape[] = { 1, config->heads, config->rows, config->width };
  for (guint i = 0; i < (config->backward ? 4 : 3); i++) {
    self->inputs[i] = model_weight (self, names[i], shape, 4, 0, i < 3 ? 4 : 1);
    tiny_tensor_set_requires_grad (self->inputs[i], config->backward && i < 3);
    self->n_inputs++;
  }
  self->step = step;
  return TRUE;
}

static const Config forward_1024 = { 12, 1024, 64, FALSE };
static const Config forward_4096 = { 12, 4096, 64, FALSE };
static const Config backward_1024 = { 12, 1024, 64, TRUE };
static const Config backward_4096 = { 12, 4096, 64, TRUE };
#define FLOPS(rows) (4.0 * 12 * (rows) * (rows) *64)

/* Forward and backward is three and a half times forward. */
const ModelCase attention_cases[] = {
  { "attention", &forward_1024, set_up, FLOPS (1024), 0 },
  { "attention:4096", &forward_4096, set_up, FLOPS (4096), 0 },
  { "attention-backward", &backward_1024, set_up, 3.5 * FLOPS (1024), 0 },
  { "attention-backward:4096", &backward_4096, set_up, 3.5 * FLOPS (4096), 0 },
  { NULL },
};
