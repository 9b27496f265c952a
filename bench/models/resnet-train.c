/* SPDX-License-Identifier: MIT
 *
 * resnet-train.c: a training step, with momentum, of a small residual network (He et al. 2015) for images of 32 × 32: the
 * largest of 3 × 3 after the first convolution, then three stages of one block. In f32, in a narrower float, or in f32 with
 * products in a narrower one. */
#include "bench/models/model.h"

enum { BATCH = 64, SIDE = 32, N_CLASSES = 10, N_STAGES = 3, N_PLANES = 16 };

typedef struct {
  TinyDType dtype, autocast;
} Config;

/* A convolution and the batch-norm after it. */
typedef struct {
  TinyModule *conv, *norm;
} Unit;

typedef struct {
  Unit stem, first[N_STAGES], second[N_STAGES],
      shortcut[N_STAGES];       /* the first stage has no shortcut */
  TinyModule *classifier, *all; /* all parts, in a chain that is never run */
  TinyOptimizer *sgd;
} Parts;

static TinyTensor *
unit_forward (const Unit *unit, TinyTensor *x)
{
  return tiny_module_forward (unit->norm, tiny_module_forward (unit->conv, x));
}

/* images (B, 3, Y, X) to scores (B, K) */
static TinyTensor *
forward (const Parts *parts, TinyTensor *images)
{
  TinyTensor *stem = tiny_tensor_relu (unit_forward (&parts->stem, images));
  g_autoptr (TinyTensor) x = g_object_ref_sink (tiny_tensor_max_pool2d (
      stem, (gint64[]){ 3 }, 1, (gint64[]){ 2 }, 1, (gint64[]){ 1 }, 1, NULL, 0, FALSE));
  for (guint i = 0; i < N_STAGES; i++) {
    TinyTensor *y = tiny_tensor_relu (unit_forward (&parts->first[i], x));
    y = unit_forward (&parts->second[i], y);
    y = tiny_tensor_add (y, i > 0 ? unit_forward (&parts->shortcut[i], x) : x);
    TinyTensor *next = g_object_ref_sink (tiny_tensor_relu (y));
    g_object_unref (x);
    x = next;
  }
  TinyTensor *pooled = tiny_tensor_mean (x, (gint[]){ 2, 3 }, 2, FALSE);
  return tiny_module_forward (parts->classifier, pooled);
}

/* images (B, 3, Y, X) and labels (B) to the loss before the step. */
static gboolean
step (TinyTensor *const *inputs,
      guint n_inputs,
      TinyTensor **outputs,
      guint n_outputs,
      gpointer user_data,
      GError **error)
{
  const Model *self = user_data;
  const Config *config = self->config;
  const Parts *parts = self->parts;
  if (!tiny_set_autocast (config->autocast, error))
    return FALSE;
  TinyTensor *scores = forward (parts, inputs[0]);
  g_autoptr (TinyTensor) loss = g_object_ref_sink (
      tiny_tensor_cross_entropy (scores, inputs[1], NULL, -100, "mean", 0));
  tiny_set_autocast (TINY_DTYPE_VOID, NULL);
  g_autoptr (GPtrArray) others = tiny_module_get_buffers (parts->all);
  g_ptr_array_add (others, loss);
  tiny_optimizer_zero_grad (parts->sgd);
  if (!tiny_tensor_backward (loss, error)
      || !tiny_optimizer_step (parts->sgd, (TinyTensor *const *) others->pdata, others->len,
                               error))
    return FALSE;
  outputs[0] = g_steal_pointer (&loss);
  return TRUE;
}

/* ---- making ---- */
static TinyModule *
append (const Parts *parts, TinyModule *module)
{
  tiny_sequential_append (parts->all, module);
  return module;
}

static Unit
make_unit (const Parts *parts, gint64 in, gint64 out, gint64 kernel, gint64 stride)
{
  TinyModule *conv = tiny_conv2d_new (in, out, kernel, stride, kernel / 2, 1, FALSE);
  return (Unit){ append (parts, conv), append (parts, tiny_batch_norm2d_new (out)) };
}

static gboolean
set_up (Model *self, GError **error)
{
  const Config *config = self->config;
  Parts *parts = self->parts = g_new0 (Parts, 1);
  gint64 in = N_PLANES;
  parts->all = model_own_object (self, tiny_sequential_new ());
  parts->stem = make_unit (parts, 3, in, 3, 1);
  for (guint i = 0; i < N_STAGES; i++) {
    gint64 out = (gint64) N_PLANES << i, stride = i > 0 ? 2 : 1;
    parts->first[i] = make_unit (parts, in, out, 3, stride);
    parts->second[i] = make_unit (parts, out, out, 3, 1);
    if (i > 0)
      parts->shortcut[i] = make_unit (parts, in, out, 1, stride);
    in = out;
  }
  parts->classifier = append (parts, tiny_linear_new (in, N_CLASSES, TRUE));
  tiny_module_set_training (parts->all, TRUE);
  if (!model_fill_parameters (parts->all, error)
      || !tiny_module_to_dtype (parts->all, config->dtype, error))
    return FALSE;
  g_autoptr (GPtrArray) parameters = tiny_module_get_parameters (parts->all);
  parts->sgd = model_own_object (self, tiny_sgd_new ((TinyTensor *const *) parameters->pdata,
                                                     parameters->len, 0.01, 0.9, 0, FALSE));
  gint64 images[] = { BATCH, 3, SIDE, SIDE }, labels[] = { BATCH };
  gint32 classes[BATCH];
  for (gint32 i = 0; i < BATCH; i++)
    classes[i] = i % N_CLASSES;
  self->inputs[self->n_inputs++] = model_own (
      self, tiny_tensor_cast (model_weight (self, "images", images, 4, 0, 2), config->dtype));
  self->inputs[self->n_inputs++]
      = model_own (self, tiny_tensor_new_from_data (NULL, TINY_DTYPE_I32, labels, 1, classes,
                                                    sizeof classes));
  self->step = step;
  return tiny_tensor_realize (self->inputs[0], error);
}

static const Config f32 = { TINY_DTYPE_F32, TINY_DTYPE_VOID };
static const Config bf16 = { TINY_DTYPE_BF16, TINY_DTYPE_VOID };
static const Config f16 = { TINY_DTYPE_F16, TINY_DTYPE_VOID };
static const Config autocast_bf16 = { TINY_DTYPE_F32, TINY_DTYPE_BF16 };
static const Config autocast_f16 = { TINY_DTYPE_F32, TINY_DTYPE_F16 };

const ModelCase resnet_train_cases[] = {
  { "resnet-train", &f32, set_up },
  { "resnet-train:bf16", &bf16, set_up },
  { "resnet-train:f16", &f16, set_up },
  { "resnet-train:autocast-bf16", &autocast_bf16, set_up },
  { "resnet-train:autocast-f16", &autocast_f16, set_up },
  { NULL },
};
