/* SPDX-License-Identifier: MIT
 *
 * compile-cases.c: a training step of the Fashion-MNIST network and a forward pass of ResNet-50,
 * on tensors whose values do not matter. */
#include "bench/compile-cases.h"

/* ---- training step ---- */
enum { BATCH = 128, N_CLASSES = 10, NET = 0, ADAM, IMAGES, LABELS };

static gboolean
set_up_training (GPtrArray *owned, GError **error)
{
  gint32 labels[BATCH];
  for (gint32 i = 0; i < BATCH; i++)
    labels[i] = i % N_CLASSES;
  TinyModule *net = tiny_image_classifier_new (N_CLASSES);
  tiny_module_set_training (net, TRUE);
  g_autoptr (GPtrArray) parameters = tiny_module_get_parameters (net);
  g_ptr_array_add (owned, net);
  g_ptr_array_add (owned, tiny_adam_new ((TinyTensor *const *) parameters->pdata,
                                         parameters->len, 1e-3, 0.9, 0.999, 1e-8, 0));
  TinyTensor *x = g_object_ref_sink (
      tiny_tensor_empty (TINY_DTYPE_F32, (gint64[]){ BATCH, 1, 28, 28 }, 4));
  g_ptr_array_add (owned, x);
  TinyTensor *y = g_object_ref_sink (tiny_tensor_new_from_data (
      NULL, TINY_DTYPE_I32, (gint64[]){ BATCH }, 1, labels, sizeof labels));
  g_ptr_array_add (owned, y);
  return tiny_tensor_realize (x, error) && tiny_tensor_realize (y, error);
}

static gboolean
train (GPtrArray *owned, GError **error)
{
  g_autoptr (GPtrArray) others = tiny_module_get_state (owned->pdata[NET]);
  g_autoptr (TinyTensor) loss = g_object_ref_sink (tiny_tensor_cross_entropy (
      tiny_module_forward (owned->pdata[NET], owned->pdata[IMAGES]), owned->pdata[LABELS]));
  double value;
  if (!tiny_tensor_backward (loss, error))
    return FALSE;
  g_ptr_array_add (others, loss);
  return tiny_optimizer_step (owned->pdata[ADAM], (TinyTensor *const *) others->pdata,
                              others->len, error)
         && tiny_tensor_item (loss, &value, error);
}

/* ---- ResNet-50 ---- */

/* Walks the network in one order, making tensors the first time and using them afterwards. */
typedef struct {
  GPtrArray *owned;
  guint next;
  gboolean making;
} Weights;

static TinyTensor *
next_weight (Weights *weights, const gint64 *shape, guint n_dims)
{
  if (weights->making)
    g_ptr_array_add (weights->owned,
                     g_object_ref_sink (tiny_tensor_empty (TINY_DTYPE_F32, shape, n_dims)));
  return weights->owned->pdata[weights->next++];
}

/* A convolution and the normalisation of what comes out. */
static TinyTensor *
conv (Weights *weights, TinyTensor *x, gint64 n_in, gint64 n_out, gint64 kernel, gint64 stride)
{
  TinyTensor *w = next_weight (weights, (gint64[]){ n_out, n_in, kernel, kernel }, 4);
  TinyTensor *norm[4];
  for (guint i = 0; i < 4; i++)
    norm[i] = next_weight (weights, &n_out, 1);
  return tiny_tensor_batch_norm (tiny_tensor_conv2d (x, w, NULL, stride, kernel / 2, 1, 1),
                                 norm[0], norm[1], norm[2], norm[3], 1e-5);
}

static TinyTensor *
bottleneck (Weights *weights, TinyTensor *x, gint64 n_in, gint64 width, gint64 stride)
{
  gint64 n_out = 4 * width;
  g_autoptr (TinyTensor) in = g_object_ref_sink (x);
  TinyTensor *out = tiny_tensor_relu (conv (weights, in, n_in, width, 1, 1));
  out = tiny_tensor_relu (conv (weights, out, width, width, 3, stride));
  out = conv (weights, out, width, n_out, 1, 1);
  if (n_in == n_out)
    return tiny_tensor_relu (tiny_tensor_add (out, in));
  return tiny_tensor_relu (tiny_tensor_add (out, conv (weights, in, n_in, n_out, 1, stride)));
}

static TinyTensor *
resnet (Weights *weights)
{
  static const gint64 depths[] = { 3, 4, 6, 3 };
  gint64 n = 64;
  TinyTensor *x = next_weight (weights, (gint64[]){ 1, 3, 224, 224 }, 4);
  x = tiny_tensor_relu (conv (weights, x, 3, n, 7, 2));
  x = tiny_tensor_max_pool2d (x, 3, 2, 1);
  for (guint s = 0; s < G_N_ELEMENTS (depths); s++)
    for (gint64 i = 0; i < depths[s]; i++) {
      gint64 width = (gint64) 64 << s;
      x = bottleneck (weights, x, n, width, i == 0 && s > 0 ? 2 : 1);
      n = 4 * width;
    }
  x = tiny_tensor_mean (x, (gint[]){ 2, 3 }, 2, FALSE);
  TinyTensor *w = next_weight (weights, (gint64[]){ 1000, n }, 2);
  return tiny_tensor_linear (x, w, next_weight (weights, (gint64[]){ 1000 }, 1));
}

static gboolean
set_up_resnet (GPtrArray *owned, GError **error)
{
  Weights weights = { owned, 0, TRUE };
  g_object_unref (g_object_ref_sink (resnet (&weights)));
  for (guint i = 0; i < owned->len; i++)
    if (!tiny_tensor_realize (owned->pdata[i], error))
      return FALSE;
  return TRUE;
}

static gboolean
run_resnet (GPtrArray *owned, GError **error)
{
  Weights weights = { owned, 0, FALSE };
  g_autoptr (TinyTensor) out = g_object_ref_sink (resnet (&weights));
  return tiny_tensor_realize (out, error);
}

const CompileCase compile_cases[] = {
  { "training-step", set_up_training, train },
  { "resnet50", set_up_resnet, run_resnet },
  { NULL },
};
