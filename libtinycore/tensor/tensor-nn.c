/* SPDX-License-Identifier: MIT
 *
 * tensor-nn.c: softmax, losses, normalisations. */
#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-layout.h"
#include "tensor/tiny-tensor-operations.h"

/* x - max (x) has the same softmax and cannot overflow; the shift has no gradient. */
static TinyNode *
shifted (TinyBuild *self, TinyNode *x, guint axis)
{
  TinyNode *largest = tiny_build_reduce (self, TINY_OP_MAX, x, (gint64[]){ axis }, 1);
  if (largest == NULL)
    return NULL;
  return tiny_build_sub (self, x, tiny_layout_unary (self->graph, TINY_OP_DETACH, largest));
}

TinyNode *
tiny_build_log_softmax (TinyBuild *self, TinyNode *x, guint axis)
{
  x = shifted (self, tiny_build_float (self, x), axis);
  TinyNode *sum = tiny_build_sum (self, op_exp (self, x), (gint64[]){ axis }, 1);
  return tiny_build_sub (self, x, op_log (self, sum));
}

TinyNode *
op_softmax (TinyBuild *b, TinyNode *self, guint axis)
{
  TinyNode *x = op_exp (b, shifted (b, self, axis));
  TinyNode *sum = tiny_build_sum (b, x, (gint64[]){ axis }, 1);
  return tiny_build_mul (b, x, tiny_build_unary (b, TINY_OP_RECIP, sum));
}

TinyNode *
op_log_softmax (TinyBuild *b, TinyNode *self, guint axis)
{
  return tiny_build_log_softmax (b, self, axis);
}

/* x (B, K): mean over B of log (sum (exp (x - m))) - (x - m)[label] */
TinyTensor *
tiny_tensor_cross_entropy (TinyTensor *self, TinyTensor *labels)
{
  TinyBuild b;
  TinyTensor *both[] = { self, labels };
  TinyNode *node = NULL;
  if (!tiny_build_begin (&b, "cross_entropy", 2, both))
    return tiny_build_end (&b, NULL);
  TinyNode *x = b.x[0], *y = b.x[1];
  g_autofree char *x_text = tiny_shape_to_string (x->shape);
  g_autofree char *y_text = tiny_shape_to_string (y->shape);
  if (x->shape->n != 2 || y->shape->n != 1 || x->shape->v[0] != y->shape->v[0]) {
    tiny_build_fail (&b, "scores are (B, K) and labels (B), not %s and %s", x_text, y_text);
  } else if (!tiny_dtype_is_integer (y->dtype)) {
    tiny_build_fail (&b, "labels are integers, not %s",
                     tiny_dtype_to_string ((TinyDType) y->dtype));
  } else {
    TinyNode *scores = tiny_build_log_softmax (&b, x, 1);
    TinyNode *is_label = tiny_build_one_hot (&b, y, x->shape->v[1]);
    TinyNode *picked = tiny_build_where (&b, is_label, scores, tiny_build_like (&b, scores, 0));
    TinyNode *sum = tiny_build_sum (&b, picked, (gint64[]){ 0, 1 }, 2);
    double scale = -1.0 / (double) MAX (x->shape->v[0], 1);
    node = sum == NULL ? NULL : tiny_build_mul (&b, sum, tiny_build_like (&b, sum, scale));
    node = tiny_build_squeeze (&b, node, (gint64[]){ 0, 1 }, 2);
  }
  return tiny_build_end (&b, node);
}

/* ---- normalisation ---- */

/* A vector (C) seen along axis 1 of something with @rank axes. */
static TinyNode *
along_channels (
    TinyBuild *self, TinyNode *vector, gint64 n_channels, guint rank, const char *what)
{
  if (vector->shape->n != 1 || vector->shape->v[0] != n_channels) {
    g_autofree char *text = tiny_shape_to_string (vector->shape);
    return tiny_build_fail (self, "the %s is (C) = (%" G_GINT64_FORMAT ",), not %s", what,
                            n_channels, text);
  }
  gint64 dims[TINY_MAX_RANK];
  for (guint i = 0; i < rank; i++)
    dims[i] = i == 1 ? n_channels : 1;
  return tiny_build_reshape (self, vector, dims, rank);
}

/* Folded to one multiplication and one addition for each element. */
static TinyNode *
batch_norm_node (TinyBuild *self, TinyNode *const v[5], double epsilon)
{
  static const char *const names[] = { "input", "mean", "variance", "weight", "bias" };
  TinyNode *x = tiny_build_float (self, v[0]), *along[5] = { NULL };
  g_autofree char *text = tiny_shape_to_string (x->shape);
  if (x->shape->n < 2)
    return tiny_build_fail (self, "takes (B, C, …), not %s", text);
  for (guint i = 1; i < 5; i++) {
    if (v[i] == NULL)
      continue;
    along[i] = along_channels (self, v[i], x->shape->v[1], x->shape->n, names[i]);
    if (along[i] == NULL)
      return NULL;
  }
  TinyNode *variance = tiny_build_float (self, along[2]);
  TinyNode *scale = tiny_build_unary (
      self, TINY_OP_RECIP,
      tiny_build_unary (
          self, TINY_OP_SQRT,
          tiny_build_add (self, variance, tiny_build_like (self, variance, epsilon))));
  if (along[3] != NULL)
    scale = tiny_build_mul (self, scale, along[3]);
  TinyNode *result = tiny_build_mul (self, tiny_build_sub (self, x, along[1]), scale);
  return along[4] == NULL ? result : tiny_build_add (self, result, along[4]);
}

TinyTensor *
tiny_tensor_batch_norm (TinyTensor *self,
                        TinyTensor *weight,
                        TinyTensor *bias,
                        TinyTensor *mean,
                        TinyTensor *var,
                        double epsilon)
{
  TinyBuild b;
  TinyTensor *all[5] = { self, mean, var };
  guint n = 3, weight_at = weight != NULL ? n++ : 0, bias_at = bias != NULL ? n++ : 0;
  TinyNode *node = NULL;
  if (weight != NULL)
    all[weight_at] = weight;
  if (bias != NULL)
    all[bias_at] = bias;
  if (tiny_build_begin (&b, "batch_norm", n, all)) {
    TinyNode *v[5] = { b.x[0], b.x[1], b.x[2], weight ? b.x[weight_at] : NULL,
                       bias ? b.x[bias_at] : NULL };
    node = batch_norm_node (&b, v, epsilon);
  }
  return tiny_build_end (&b, node);
}

TinyTensor *
tiny_tensor_layer_norm (
    TinyTensor *self, gint64 n_axes, TinyTensor *weight, TinyTensor *bias, double epsilon)
{
  TinyBuild b;
  TinyTensor *all[3] = { self };
  guint n = 1, weight_at = weight != NULL ? n++ : 0, bias_at = bias != NULL ? n++ : 0;
  TinyNode *node = NULL;
  if (weight != NULL)
    all[weight_at] = weight;
  if (bias != NULL)
    all[bias_at] = bias;
  if (!tiny_build_begin (&b, "layer_norm", n, all))
    return tiny_build_end (&b, NULL);
  TinyNode *x = tiny_build_float (&b, b.x[0]);
  if (n_axes < 1 || n_axes > x->shape->n) {
    tiny_build_fail (&b, "%" G_GINT64_FORMAT " axes of %u cannot be normalised together",
                     n_axes, x->shape->n);
  } else {
    gint64 axes[TINY_MAX_RANK];
    guint n_last = (guint) n_axes;
    for (guint i = 0; i < n_last; i++)
      axes[i] = x->shape->n - n_last + i;
    TinyNode *mean = tiny_build_mean (&b, x, axes, n_last);
    TinyNode *variance = tiny_build_var (&b, x, mean, axes, n_last, 0);
    TinyNode *scale = tiny_build_unary (
        &b, TINY_OP_RECIP,
        tiny_build_unary (
            &b, TINY_OP_SQRT,
            tiny_build_add (&b, variance, tiny_build_like (&b, variance, epsilon))));
    node = tiny_build_mul (&b, tiny_build_sub (&b, x, mean), scale);
    if (weight != NULL)
      node = tiny_build_mul (&b, node, b.x[weight_at]);
    if (bias != NULL)
      node = tiny_build_add (&b, node, b.x[bias_at]);
    if (node != NULL && !tiny_shape_equal (node->shape, x->shape))
      node = tiny_build_fail (&b, "weight or bias is larger than the axes normalised");
  }
  return tiny_build_end (&b, node);
}
