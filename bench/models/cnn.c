/* SPDX-License-Identifier: MIT
 *
 * cnn.c: a training step, with Adam, of the network for small images that `tinycore train` uses. */
#include "bench/models/model.h"

enum { BATCH = 128, N_CLASSES = 10, SIDE = 28 };

typedef struct {
  TinyModule *net;
  TinyOptimizer *adam;
} Parts;

/* images (B, 1, Y, X) of 0 … 255 and labels (B) to the loss before the step. */
static gboolean
step (TinyTensor *const *inputs,
      guint n_inputs,
      TinyTensor **outputs,
      guint n_outputs,
      gpointer user_data,
      GError **error)
{
  const Parts *parts = ((Model *) user_data)->parts;
  g_autoptr (GPtrArray) others = tiny_module_get_buffers (parts->net);
  g_autoptr (TinyTensor) loss = g_object_ref_sink (tiny_tensor_cross_entropy (
      tiny_module_forward (parts->net, inputs[0]), inputs[1], NULL, -100, "mean", 0));
  tiny_optimizer_zero_grad (parts->adam);
  if (!tiny_tensor_backward (loss, error))
    return FALSE;
  g_ptr_array_add (others, loss);
  if (!tiny_optimizer_step (parts->adam, (TinyTensor *const *) others->pdata, others->len,
                            error))
    return FALSE;
  outputs[0] = g_steal_pointer (&loss);
  return TRUE;
}

static gboolean
set_up (Model *self, GError **error)
{
  Parts *parts = self->parts = g_new0 (Parts, 1);
  parts->net = model_own_object (self, tiny_image_classifier_new (N_CLASSES));
  g_autoptr (GPtrArray) parameters = tiny_module_get_parameters (parts->net);
  if (!model_fill_parameters (parts->net, error))
    return FALSE;
  parts->adam
      = model_own_object (self, tiny_adam_new ((TinyTensor *const *) parameters->pdata,
                                               parameters->len, 1e-3, 0.9, 0.999, 1e-8, 0));
  tiny_module_set_training (parts->net, TRUE);
  gint64 images[] = { BATCH, 1, SIDE, SIDE }, labels[] = { BATCH };
  gint32 classes[BATCH];
  for (gint32 i = 0; i < BATCH; i++)
    classes[i] = i % N_CLASSES;
  self->inputs[self->n_inputs++] = model_weight (self, "images", images, 4, 127.5, 255);
  self->inputs[self->n_inputs++]
      = model_own (self, tiny_tensor_new_from_data (NULL, TINY_DTYPE_I32, labels, 1, classes,
                                                    sizeof classes));
  self->step = step;
  return TRUE;
}

const ModelCase cnn_cases[] = {
  { "cnn-train", NULL, set_up },
  { NULL },
};
