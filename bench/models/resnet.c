/* SPDX-License-Identifier: MIT
 *
 * resnet.c: the forward pass of ResNet-50 (He et al. 2015, with the stride in the 3×3 convolution),
 * batch-norm as in use: by stored means and variances. */
#include <math.h>

#include "bench/models/model.h"

enum { N_STAGES = 4, MAX_BLOCKS = 16, EXPANSION = 4 };

typedef struct {
  gint64 n_blocks[N_STAGES], planes[N_STAGES];
  guint n_stages;
  gint64 stem, size, n_classes; /* channels after the first convolution, side of the image */
} Config;

/* A convolution and the batch-norm after it. */
typedef struct {
  TinyTensor *weight, *norm_weight, *norm_bias, *mean, *variance;
  gint64 stride, padding;
} Unit;

typedef struct {
  Unit first, second, third, shortcut;
  gboolean has_shortcut;
} Block;

typedef struct {
  Unit stem;
  Block blocks[MAX_BLOCKS];
  guint n_blocks;
  TinyTensor *weight, *bias; /* of the classifier */
} Parts;

static TinyTensor *
unit_forward (const Unit *unit, TinyTensor *x)
{
  x = tiny_tensor_conv2d (x, unit->weight, NULL, &unit->stride, 1, &unit->padding, 1, NULL, 0,
                          1);
  return tiny_tensor_batch_norm (x, unit->mean, unit->variance, unit->norm_weight,
                                 unit->norm_bias, FALSE, 1e-5);
}

static TinyTensor *
block_forward (const Block *block, TinyTensor *x)
{
  TinyTensor *y = tiny_tensor_relu (unit_forward (&block->first, x));
  y = tiny_tensor_relu (unit_forward (&block->second, y));
  y = unit_forward (&block->third, y);
  return tiny_tensor_relu (
      tiny_tensor_add (y, block->has_shortcut ? unit_forward (&block->shortcut, x) : x));
}

/* image (1, 3, Y, X) to scores (1, K) */
static gboolean
forward (TinyTensor *const *inputs,
         guint n_inputs,
         TinyTensor **outputs,
         guint n_outputs,
         gpointer user_data,
         GError **error)
{
  const Parts *parts = ((Model *) user_data)->parts;
  TinyTensor *stem = tiny_tensor_relu (unit_forward (&parts->stem, inputs[0]));
  g_autoptr (TinyTensor) x = g_object_ref_sink (tiny_tensor_max_pool2d (
      stem, (gint64[]){ 3 }, 1, (gint64[]){ 2 }, 1, (gint64[]){ 1 }, 1, NULL, 0, FALSE));
  for (guint i = 0; i < parts->n_blocks; i++) {
    TinyTensor *next = g_object_ref_sink (block_forward (&parts->blocks[i], x));
    g_object_unref (x);
    x = next;
  }
  TinyTensor *pooled = tiny_tensor_mean (x, (gint[]){ 2, 3 }, 2, FALSE);
  outputs[0] = g_object_ref_sink (tiny_tensor_linear (pooled, parts->weight, parts->bias));
  return tiny_tensor_realize (outputs[0], error);
}

/* ---- making ---- */

static TinyTensor *
vector (Model *self, const char *at, const char *name, gint64 n, double offset, double scale)
{
  g_autofree char *whole = g_strconcat (at, name, NULL);
  return model_weight (self, whole, &n, 1, offset, scale);
}

static TinyTensor *
kernel_of (Model *self, const char *name, gint64 in, gint64 out, gint64 kernel)
{
  gint64 shape[] = { out, in, kernel, kernel };
  /* Variance 2 / fan-in keeps the size of what flows through (He et al. 2015). */
  double scale = sqrt (12 * 2 / (double) (in * kernel * kernel));
  return model_weight (self, name, shape, 4, 0, scale);
}

static Unit
make_unit (Model *self,
           const char *at,
           gint64 in,
           gint64 out,
           gint64 kernel,
           gint64 stride,
           double gain)
{
  g_autofree char *name = g_strconcat (at, ".weight", NULL);
  return (Unit){
    .weight = kernel_of (self, name, in, out, kernel),
    .norm_weight = vector (self, at, ".norm.weight", out, gain, gain / 4),
    .norm_bias = vector (self, at, ".norm.bias", out, 0, 0.2),
    .mean = vector (self, at, ".norm.mean", out, 0, 0.2),
    .variance = vector (self, at, ".norm.var", out, 1, 0.5),
    .stride = stride,
    .padding = kernel / 2,
  };
}

static void
make_block (Model *self, Block *block, guint i, gint64 in, gint64 planes, gint64 stride)
{
  g_autofree char *first = g_strdup_printf ("blocks.%u.first", i);
  g_autofree char *second = g_strdup_printf ("blocks.%u.second", i);
  g_autofree char *third = g_strdup_printf ("blocks.%u.third", i);
  g_autofree char *shortcut = g_strdup_printf ("blocks.%u.shortcut", i);
  gint64 out = planes * EXPANSION;
  block->first = make_unit (self, first, in, planes, 1, 1, 1);
  block->second = make_unit (self, second, planes, planes, 3, stride, 1);
  block->third = make_unit (self, third, planes, out, 1, 1, 0.5);
  block->has_shortcut = stride != 1 || in != out;
  if (block->has_shortcut)
    block->shortcut = make_unit (self, shortcut, in, out, 1, stride, 0.7);
}

static gboolean
set_up (Model *self, GError **error)
{
  const Config *config = self->config;
  Parts *parts = self->parts = g_new0 (Parts, 1);
  gint64 in = config->stem;
  parts->stem = make_unit (self, "stem", 3, in, 7, 2, 1);
  for (guint stage = 0; stage < config->n_stages; stage++)
    for (gint64 i = 0; i < config->n_blocks[stage]; i++) {
      gint64 stride = i == 0 && stage > 0 ? 2 : 1;
      make_block (self, &parts->blocks[parts->n_blocks], parts->n_blocks, in,
                  config->planes[stage], stride);
      parts->n_blocks++;
      in = config->planes[stage] * EXPANSION;
    }
  gint64 shape[] = { config->n_classes, in };
  parts->weight = model_weight (self, "classifier.weight", shape, 2, 0, 0.05);
  parts->bias = model_weight (self, "classifier.bias", &config->n_classes, 1, 0, 0.05);
  gint64 image[] = { 1, 3, config->size, config->size };
  self->inputs[self->n_inputs++] = model_weight (self, "image", image, 4, 0, 1);
  self->step = forward;
  return TRUE;
}

static const Config resnet50 = { { 3, 4, 6, 3 }, { 64, 128, 256, 512 }, 4, 64, 224, 1000 };
static const Config tiny = { { 2, 1 }, { 4, 6 }, 2, 8, 32, 10 };

const ModelCase resnet_cases[] = {
  { "resnet50", &resnet50, set_up, 2 * 4.089e9, 0 },
  { "resnet-tiny", &tiny, set_up },
  { NULL },
};
