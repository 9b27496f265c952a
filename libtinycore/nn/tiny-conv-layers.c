/* SPDX-License-Identifier: MIT
 *
 * tiny-conv-layers.c: convolutions and their transposes as modules. */
#include "nn/tiny-conv-layers.h"

#include <math.h>

#include "nn/module-private.h"
#include "tensor/tiny-tensor-operations.h"

enum { MAX_DIRECTIONS = 5 };

/* Numbers of each direction, or of both sides of each. */
typedef struct {
  gint64 v[2 * MAX_DIRECTIONS];
  guint n;
} Sizes;

typedef struct {
  TinyModule parent_instance;
  guint n_dims;
  gboolean is_transpose;
  Sizes kernel, stride, padding, output_padding, dilation;
  gint64 groups;
} TinyConvLayer;

TINY_DEFINE_LAYER (TinyConvLayer, tiny_conv_layer)

static TinyTensor *
tiny_conv_layer_forward (TinyModule *module, TinyTensor *x)
{
  TinyConvLayer *self = (TinyConvLayer *) module;
  TinyTensor *weight = tiny_module_own (module, "weight"),
             *bias = tiny_module_own (module, "bias");
  const Sizes *stride = &self->stride, *padding = &self->padding, *more = &self->output_padding,
              *dilation = &self->dilation;
  if (self->is_transpose)
    return tiny_tensor_conv_transpose2d (x, weight, bias, stride->v, stride->n, padding->v,
                                         padding->n, more->v, more->n, self->groups,
                                         dilation->v, dilation->n);
  return tiny_tensor_conv2d (x, weight, bias, stride->v, stride->n, padding->v, padding->n,
                             dilation->v, dilation->n, self->groups);
}

static void
tiny_conv_layer_class_init (TinyConvLayerClass *class)
{
  class->forward = tiny_conv_layer_forward;
}

/* One number for each direction: @given, or @least where there is none. Of padding there may be two. */
static void
spread (TinyConvLayer *self,
        const char *what,
        const gint64 *given,
        guint n_given,
        gint64 least,
        Sizes *out)
{
  TinyModule *module = TINY_MODULE (self);
  gboolean is_both_sides
      = out == &self->padding && !self->is_transpose && n_given == 2 * self->n_dims;
  if (given == NULL && n_given > 0)
    tiny_module_fail (module, "conv: %u numbers of %s wanted, none given", n_given, what);
  else if (n_given > 1 && n_given != self->n_dims && !is_both_sides)
    tiny_module_fail (module, "conv: there are %u numbers of %s for %u directions", n_given,
                      what, self->n_dims);
  out->n = is_both_sides ? n_given : self->n_dims;
  for (guint i = 0; i < out->n && tiny_module_get_error (module) == NULL; i++) {
    gint64 value = n_given == 0 ? least : given[n_given == 1 ? 0 : i];
    if (value < least || value > G_MAXINT32)
      tiny_module_fail (module, "conv: a %s of %" G_GINT64_FORMAT " is not possible", what,
                        value);
    out->v[i] = value;
  }
}

static gboolean
check_channels (TinyConvLayer *self, gint64 n_in, gint64 n_out)
{
  TinyModule *module = TINY_MODULE (self);
  if (n_in < 0 || n_out < 0)
    tiny_module_fail (module, "conv: %" G_GINT64_FORMAT " channels to %" G_GINT64_FORMAT, n_in,
                      n_out);
  else if (self->groups < 1 || n_in % self->groups != 0 || n_out % self->groups != 0)
    tiny_module_fail (module,
                      "conv: %" G_GINT64_FORMAT " channels to %" G_GINT64_FORMAT
                      " do not make %" G_GINT64_FORMAT " groups",
                      n_in, n_out, self->groups);
  return tiny_module_get_error (module) == NULL;
}

/* The rest of making a layer whose numbers are set. */
static TinyModule *
init_weights (TinyConvLayer *self, gint64 n_in, gint64 n_out, gboolean bias)
{
  TinyModule *module = TINY_MODULE (self);
  if (!check_channels (self, n_in, n_out))
    return module;
  gint64 shape[2 + MAX_DIRECTIONS] = { self->is_transpose ? n_in : n_out,
                                       (self->is_transpose ? n_out : n_in) / self->groups };
  double fan_in = (double) shape[1];
  for (guint i = 0; i < self->n_dims; i++) {
    shape[2 + i] = self->kernel.v[i];
    fan_in *= (double) self->kernel.v[i];
  }
  double bound = 1 / sqrt (MAX (fan_in, 1));
  tiny_module_init_parameter (module, "weight",
                              tiny_uniform_around (shape, 2 + self->n_dims, bound));
  if (bias)
    tiny_module_init_parameter (module, "bias", tiny_uniform_around (&n_out, 1, bound));
  return module;
}

static TinyConvLayer *
layer_new (
    guint n_dims, gboolean is_transpose, gint64 groups, const gint64 *kernel, guint n_kernel)
{
  TinyConvLayer *self = g_object_new (tiny_conv_layer_get_type (), NULL);
  self->is_transpose = is_transpose;
  self->groups = groups;
  if (n_dims < 1 || n_dims > MAX_DIRECTIONS || n_kernel < 1) {
    tiny_module_fail (TINY_MODULE (self), "conv: %u directions with %u sides of a kernel",
                      n_dims, n_kernel);
    return self;
  }
  self->n_dims = n_dims;
  spread (self, "kernel", kernel, n_kernel, 1, &self->kernel);
  return self;
}

TinyModule *
tiny_conv_new (guint n_dims,
               gint64 n_in,
               gint64 n_out,
               const gint64 *kernel,
               guint n_kernel,
               const gint64 *stride,
               guint n_stride,
               const gint64 *padding,
               guint n_padding,
               const gint64 *dilation,
               guint n_dilation,
               gint64 groups,
               gboolean bias)
{
  TinyConvLayer *self = layer_new (n_dims, FALSE, groups, kernel, n_kernel);
  spread (self, "stride", stride, n_stride, 1, &self->stride);
  spread (self, "padding", padding, n_padding, 0, &self->padding);
  spread (self, "dilation", dilation, n_dilation, 1, &self->dilation);
  return init_weights (self, n_in, n_out, bias);
}

TinyModule *
tiny_conv1d_new (gint64 n_in,
                 gint64 n_out,
                 gint64 kernel,
                 gint64 stride,
                 gint64 padding,
                 gint64 dilation,
                 gint64 groups,
                 gboolean bias)
{
  return tiny_conv_new (1, n_in, n_out, &kernel, 1, &stride, 1, &padding, 1, &dilation, 1,
                        groups, bias);
}

TinyModule *
tiny_conv2d_new (gint64 n_in,
                 gint64 n_out,
                 gint64 kernel,
                 gint64 stride,
                 gint64 padding,
                 gint64 groups,
                 gboolean bias)
{
  return tiny_conv_new (2, n_in, n_out, &kernel, 1, &stride, 1, &padding, 1, NULL, 0, groups,
                        bias);
}

TinyModule *
tiny_conv_transpose_new (guint n_dims,
                         gint64 n_in,
                         gint64 n_out,
                         const gint64 *kernel,
                         guint n_kernel,
                         const gint64 *stride,
                         guint n_stride,
                         const gint64 *padding,
                         guint n_padding,
                         const gint64 *output_padding,
                         guint n_output_padding,
                         const gint64 *dilation,
                         guint n_dilation,
                         gint64 groups,
                         gboolean bias)
{
  TinyConvLayer *self = layer_new (n_dims, TRUE, groups, kernel, n_kernel);
  spread (self, "stride", stride, n_stride, 1, &self->stride);
  spread (self, "padding", padding, n_padding, 0, &self->padding);
  spread (self, "output padding", output_padding, n_output_padding, 0, &self->output_padding);
  spread (self, "dilation", dilation, n_dilation, 1, &self->dilation);
  return init_weights (self, n_in, n_out, bias);
}
