/* SPDX-License-Identifier: MIT
 *
 * program-networks.c: steps that are many operations: products, networks, gradients, assignments. */
#include "program-steps.h"

static TinyTensor *
keep (TinyTensor *x)
{
  return T (reshape) (x, tiny_tensor_get_shape (x, NULL), rank_of (x));
}

/* (…, M, K) @ (…, K, N), the right side possibly a transposed (…, N, K). */
TinyTensor *
make_matmul (Maker *self)
{
  gint64 shape[3], n = step_sizes[maker_number (self, 0, 13)];
  guint rank = rank_of (self->x[0]);
  if (rank == 0)
    return self->x[0];
  gint64 k = size_of (self->x[0], rank - 1);
  if (n_elements (self->x[0]) * n > 4 * MAX_ELEMENTS || k * n > MAX_ELEMENTS)
    n = 1;
  gboolean transposed = maker_number (self, 1, 2),
           batched = maker_number (self, 2, 3) == 0 && rank == 3;
  guint at = 0;
  if (batched)
    shape[at++] = size_of (self->x[0], 0);
  shape[at++] = transposed ? n : k;
  shape[at++] = transposed ? k : n;
  maker_note_sizes (self, shape, at);
  TinyTensor *y = operand_fitted (self->x[1], shape, at);
  return T (matmul) (self->x[0], transposed ? T (transpose) (y, -1, -2) : y);
}

/* As a batch of images. */
static TinyTensor *
images (Maker *self, gint64 *out_channels)
{
  static const gint64 shapes[][4] = { { 1, 1, 5, 7 }, { 2, 3, 6, 6 },  { 1, 4, 8, 5 },
                                      { 3, 2, 4, 9 }, { 1, 2, 16, 3 }, { 2, 4, 5, 5 } };
  guint i = maker_number (self, 0, G_N_ELEMENTS (shapes));
  *out_channels = shapes[i][1];
  maker_note_sizes (self, shapes[i], 4);
  return operand_fitted (self->x[0], shapes[i], 4);
}

TinyTensor *
make_conv2d (Maker *self)
{
  gint64 channels;
  TinyTensor *x = images (self, &channels);
  gint64 groups = maker_number (self, 1, 3) == 0 && channels % 2 == 0 ? 2 : 1;
  gint64 shape[] = { groups * (1 + maker_number (self, 2, 3)), channels / groups,
                     1 + maker_number (self, 3, 3), 1 + maker_number (self, 4, 3) };
  gint64 stride = 1 + self->step->p[5] % 2, padding = self->step->p[5] / 2 % 3,
         dilation = 1 + self->step->p[5] / 8 % 8 / 7;
  maker_note_sizes (self, shape, 4);
  maker_note_number (self, (double) stride), maker_note_number (self, (double) padding),
      maker_note_number (self, (double) dilation), maker_note_number (self, (double) groups);
  return T (conv2d) (x, operand_fitted (self->x[1], shape, 4), NULL, &stride, 1, &padding, 1,
                     &dilation, 1, groups);
}

TinyTensor *
make_pool (Maker *self)
{
  gint64 channels, kernel = 1 + maker_number (self, 1, 3), stride = maker_number (self, 2, 3);
  gint64 padding = maker_number (self, 3, (guint) kernel / 2 + 1);
  TinyTensor *x = images (self, &channels);
  maker_note_number (self, (double) kernel), maker_note_number (self, (double) stride),
      maker_note_number (self, (double) padding);
  return maker_number (self, 4, 2)
             ? T (max_pool2d) (x, &kernel, 1, &stride, 1, &padding, 1, NULL, 0, FALSE)
             : T (avg_pool2d) (x, &kernel, 1, &stride, 1, &padding, 1, FALSE, TRUE, 0);
}

TinyTensor *
make_softmax (Maker *self)
{
  if (rank_of (self->x[0]) == 0)
    return self->x[0];
  gint axis = maker_axis (self, 0, self->x[0]);
  return maker_number (self, 1, 2) ? T (softmax) (self->x[0], axis)
                                   : T (log_softmax) (self->x[0], axis);
}

TinyTensor *
make_layer_norm (Maker *self)
{
  if (rank_of (self->x[0]) == 0)
    return self->x[0];
  gint64 width = size_of (self->x[0], rank_of (self->x[0]) - 1);
  return T (layer_norm) (self->x[0], &width, 1, NULL, NULL, 1e-3);
}

TinyTensor *
make_cross_entropy (Maker *self)
{
  if (rank_of (self->x[0]) != 2)
    return self->x[0];
  gint64 n = size_of (self->x[0], 0);
  TinyTensor *labels = T (mod) (operand_integer (operand_fitted (self->x[1], &n, 1)),
                                T (scalar) ((double) MAX (size_of (self->x[0], 1), 1)));
  return T (cross_entropy) (operand_float (self->x[0]), labels, NULL, -100, "mean", 0);
}

/* The gradient of the sum of squares of the first with respect to the second. */
TinyTensor *
make_gradient (Maker *self)
{
  if (!is_float (self->x[0]) || !is_float (self->x[1]))
    return self->x[0];
  TinyTensor *loss = g_object_ref_sink (T (sum) (T (square) (self->x[0]), NULL, 0, FALSE)),
             *gradient = NULL;
  gboolean good = tiny_gradient (loss, &self->x[1], 1, &gradient, NULL);
  g_object_unref (loss);
  if (!good)
    return self->x[0];
  TinyTensor *result = keep (gradient);
  g_object_unref (gradient);
  return result;
}

/* The first in memory of its own, then overwritten. */
TinyTensor *
make_assign (Maker *self)
{
  TinyTensor *x = g_object_ref_sink (T (contiguous) (self->x[0]));
  TinyTensor *y = operand_partner (self, x, self->x[1]);
  const gint64 *shape = tiny_tensor_get_shape (x, NULL);
  y = T (cast) (T (expand) (y, shape, rank_of (x)), tiny_tensor_get_dtype (x));
  if (maker_number (self, 2, 2))
    tiny_tensor_set_requires_grad (x, TRUE);
  TinyTensor *before = g_object_ref_sink (T (add) (x, x));
  if (tiny_tensor_assign (x, y, NULL) && maker_number (self, 3, 2))
    tiny_tensor_assign (x, T (cast) (T (maximum) (x, before), tiny_tensor_get_dtype (x)), NULL);
  TinyTensor *result = keep (x);
  g_object_unref (before);
  g_object_unref (x);
  return result;
}
