/* SPDX-License-Identifier: MIT
 *
 * tensor-conv.c: convolutions and pooling of images.
 *
 * Users see (B, C, Y, X); inside, channels come last, which is how results are stored. Windows are
 * views: a new axis for the tap is repeated and sheared, so that position y and tap k read row
 * y * stride + k * dilation. A convolution is then a product and a sum over taps and channels. */
#include <math.h>

#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-layout.h"
#include "tensor/tiny-tensor-operations.h"

/* (B, C, Y, X) as (B, Y, X, C). */
static TinyNode *
channels_last (TinyBuild *self, TinyNode *x)
{
  return tiny_build_permute (self, x, (gint64[]){ 0, 2, 3, 1 }, 4);
}

static TinyNode *
channels_second (TinyBuild *self, TinyNode *x)
{
  return tiny_build_permute (self, x, (gint64[]){ 0, 3, 1, 2 }, 4);
}

typedef struct {
  gint64 kernel[2], stride, padding, dilation; /* kernel: rows, columns */
  gint64 out[2];                               /* positions per direction */
} Window;

static gboolean
check_image (TinyBuild *self, TinyNode *x, Window *window)
{
  g_autofree char *text = tiny_shape_to_string (x->shape);
  if (x->shape->n != 4)
    return tiny_build_fail (self, "images are (B, C, Y, X), not %s", text) != NULL;
  const gint64 most = 1 << 24;
  if (window->stride < 1 || window->dilation < 1 || window->padding < 0 || window->stride > most
      || window->dilation > most || window->padding > most)
    return tiny_build_fail (self,
                            "stride %" G_GINT64_FORMAT ", dilation %" G_GINT64_FORMAT
                            " and padding %" G_GINT64_FORMAT " do not make windows",
                            window->stride, window->dilation, window->padding)
           != NULL;
  for (guint i = 0; i < 2; i++) {
    gint64 size = x->shape->v[2 + i] + 2 * window->padding;
    if (window->kernel[i] < 1 || window->kernel[i] > most
        || size < window->dilation * (window->kernel[i] - 1) + 1)
      return tiny_build_fail (self,
                              "a window of %" G_GINT64_FORMAT " with dilation %" G_GINT64_FORMAT
                              " and padding %" G_GINT64_FORMAT " does not fit %s",
                              window->kernel[i], window->dilation, window->padding, text)
             != NULL;
    window->out[i]
        = (size - window->dilation * (window->kernel[i] - 1) - 1) / window->stride + 1;
  }
  return TRUE;
}

/* The windows of @x, which has the rows on axis 1 and the columns on axis 2, and size 1 on axes 3
 * and 4, where the taps go. */
static TinyNode *
windows (TinyBuild *self, TinyNode *x, const Window *window)
{
  gint64 dims[16], pairs[32] = { 0 };
  for (guint i = 0; i < 2; i++)
    pairs[2 * (1 + i)] = pairs[2 * (1 + i) + 1] = window->padding;
  x = tiny_build_pad (self, x, pairs, 0);
  if (x == NULL)
    return NULL;
  for (guint i = 0; i < x->shape->n; i++)
    dims[i] = x->shape->v[i];
  dims[3] = window->kernel[0];
  dims[4] = window->kernel[1];
  x = tiny_node_expand (self->graph, x, dims, x->shape->n);
  for (guint i = 0; i < 2; i++)
    x = tiny_node_shear (self->graph, x, 1 + i, 3 + i, window->stride, window->dilation, 0, 1,
                         window->out[i]);
  return x;
}

/* x (B, Y, X, 1, 1, C/G, G, 1) windows to (B, Y', X', KY, KX, C/G, G, 1), times
 * w (1, 1, 1, KY, KX, C/G, G, O/G), summed over KY, KX and C/G. */
static TinyNode *
conv_node (TinyBuild *self, TinyNode *x, TinyNode *w, Window *window, gint64 groups)
{
  g_autofree char *x_text = tiny_shape_to_string (x->shape);
  g_autofree char *w_text = tiny_shape_to_string (w->shape);
  if (w->shape->n != 4)
    return tiny_build_fail (self, "a weight is (O, C, KY, KX), not %s", w_text);
  window->kernel[0] = w->shape->v[2];
  window->kernel[1] = w->shape->v[3];
  if (!check_image (self, x, window))
    return NULL;
  gint64 out = w->shape->v[0], in = w->shape->v[1], batch = x->shape->v[0];
  if (groups < 1 || groups > out || out % groups != 0 || x->shape->v[1] % groups != 0
      || x->shape->v[1] / groups != in)
    return tiny_build_fail (self,
                            "channels of %s and %s do not fit for %" G_GINT64_FORMAT " groups",
                            x_text, w_text, groups);
  TinyDType dtype = tiny_dtype_promote ((TinyDType) x->dtype, (TinyDType) w->dtype);
  TinyDType wide = tiny_dtype_is_float (dtype) && tiny_dtype_get_n_bytes (dtype) < 4
                       ? TINY_DTYPE_F32
                       : dtype;
  if (tiny_shape_get_n_elements (x->shape) == 0 || tiny_shape_get_n_elements (w->shape) == 0)
    return tiny_node_broadcast (self->graph, tiny_build_number (self, dtype, 0),
                                (gint64[]){ batch, out, window->out[0], window->out[1] }, 4);
  x = channels_last (self, tiny_build_cast (self, x, wide));
  gint64 apart[] = { batch, x->shape->v[1], x->shape->v[2], groups, in };
  x = tiny_build_transpose (self, tiny_build_reshape (self, x, apart, 5), 3, 4);
  x = tiny_build_reshape (self, x, (gint64[]){ batch, apart[1], apart[2], 1, 1, in, groups, 1 },
                          8);
  x = windows (self, x, window);
  /* (O, C/G, KY, KX) in memory as (KY, KX, C/G, O): what the inner loop reads is consecutive. */
  w = tiny_build_permute (self, tiny_build_cast (self, w, wide), (gint64[]){ 2, 3, 1, 0 }, 4);
  w = tiny_node_new (self->graph, TINY_OP_CONTIGUOUS, wide, 1, 1, &w, 0, NULL, NULL);
  w = tiny_build_reshape (
      self, w,
      (gint64[]){ 1, 1, 1, window->kernel[0], window->kernel[1], in, groups, out / groups }, 8);
  TinyNode *sum = tiny_build_sum (self, tiny_build_mul (self, x, w), (gint64[]){ 3, 4, 5 }, 3);
  sum = tiny_build_reshape (self, sum, (gint64[]){ batch, window->out[0], window->out[1], out },
                            4);
  return wide == dtype ? sum : tiny_build_cast (self, sum, dtype);
}

TinyTensor *
tiny_tensor_conv2d (TinyTensor *self,
                    TinyTensor *weight,
                    TinyTensor *bias,
                    gint64 stride,
                    gint64 padding,
                    gint64 dilation,
                    gint64 groups)
{
  TinyBuild b;
  TinyTensor *all[] = { self, weight, bias };
  TinyNode *node = NULL;
  Window window = { .stride = stride, .padding = padding, .dilation = dilation };
  if (tiny_build_begin (&b, "conv2d", bias == NULL ? 2 : 3, all)) {
    gint64 out = b.x[1]->shape->n > 0 ? b.x[1]->shape->v[0] : 0;
    if (bias != NULL && (b.x[2]->shape->n != 1 || b.x[2]->shape->v[0] != out)) {
      g_autofree char *text = tiny_shape_to_string (b.x[2]->shape);
      tiny_build_fail (&b, "a bias is (O) = (%" G_GINT64_FORMAT ",), not %s", out, text);
    } else {
      node = conv_node (&b, b.x[0], b.x[1], &window, groups);
      if (bias != NULL && node != NULL && node->shape->n == 4
          && tiny_shape_get_n_elements (node->shape) > 0)
        node = tiny_build_add (&b, node, b.x[2]);
      if (node != NULL && tiny_shape_get_n_elements (node->shape) > 0)
        node = channels_second (&b, node);
    }
  }
  return tiny_build_end (&b, node);
}

/* ---- pooling ---- */

/* (B, Y, X, C) as windows (B, Y', X', KY, KX, C). Windows side by side are a reshape. */
static TinyNode *
pool_windows (TinyBuild *self, TinyNode *x, const Window *window, gint64 out_axes[2])
{
  gint64 k = window->kernel[0];
  const gint64 *in = x->shape->v;
  if (window->stride == k && window->padding == 0) {
    gint64 pairs[] = { 0, in[0], 0, window->out[0] * k, 0, window->out[1] * k, 0, in[3] };
    x = tiny_build_shrink (self, x, pairs);
    out_axes[0] = 2;
    out_axes[1] = 4;
    return tiny_build_reshape (
        self, x, (gint64[]){ in[0], window->out[0], k, window->out[1], k, in[3] }, 6);
  }
  out_axes[0] = 3;
  out_axes[1] = 4;
  x = tiny_build_reshape (self, x, (gint64[]){ in[0], in[1], in[2], 1, 1, in[3] }, 6);
  return windows (self, x, window);
}

static TinyTensor *
pool (const char *name,
      gboolean largest,
      TinyTensor *tensor,
      gint64 kernel,
      gint64 stride,
      gint64 padding)
{
  TinyBuild b;
  TinyNode *node = NULL;
  Window window = { .kernel = { kernel, kernel },
                    .stride = stride == 0 ? kernel : stride,
                    .padding = padding,
                    .dilation = 1 };
  if (tiny_build_begin (&b, name, 1, &tensor) && check_image (&b, b.x[0], &window)) {
    TinyNode *x = b.x[0];
    if (padding > kernel / 2) {
      tiny_build_fail (&b,
                       "padding %" G_GINT64_FORMAT " is more than half of %" G_GINT64_FORMAT,
                       padding, kernel);
    } else if (tiny_shape_get_n_elements (x->shape) == 0) {
      node = tiny_node_broadcast (
          b.graph, tiny_build_like (&b, x, 0),
          (gint64[]){ x->shape->v[0], x->shape->v[1], window.out[0], window.out[1] }, 4);
    } else {
      gint64 axes[2];
      x = channels_last (&b, largest ? x : tiny_build_float (&b, x));
      if (largest && padding > 0) {
        double lowest = tiny_dtype_is_float (x->dtype)
                            ? -INFINITY
                            : (double) tiny_dtype_get_min ((TinyDType) x->dtype);
        x = tiny_build_pad (&b, x, (gint64[]){ 0, 0, padding, padding, padding, padding, 0, 0 },
                            lowest);
        window.padding = 0;
      }
      x = pool_windows (&b, x, &window, axes);
      node = largest ? tiny_build_reduce (&b, TINY_OP_MAX, x, axes, 2)
                     : tiny_build_mean (&b, x, axes, 2);
      node = channels_second (&b, tiny_build_squeeze (&b, node, axes, 2));
    }
  }
  return tiny_build_end (&b, node);
}

TinyTensor *
tiny_tensor_max_pool2d (TinyTensor *self, gint64 kernel, gint64 stride, gint64 padding)
{
  return pool ("max_pool2d", TRUE, self, kernel, stride, padding);
}

TinyTensor *
tiny_tensor_avg_pool2d (TinyTensor *self, gint64 kernel, gint64 stride, gint64 padding)
{
  return pool ("avg_pool2d", FALSE, self, kernel, stride, padding);
}
