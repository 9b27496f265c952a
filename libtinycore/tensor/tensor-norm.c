/* SPDX-License-Identifier: MIT
 *
 * tensor-norm.c: normalisations: a mean taken off, divided by a spread. */
#include <math.h>

#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"

/* 1 / sqrt (x + eps) */
static TinyNode *
inverse_root (TinyBuild *b, TinyNode *x, double eps)
{
  return op_rsqrt (b, tiny_build_add (b, x, tiny_build_like (b, x, eps)));
}

/* A vector (C) seen along axis 1 of something with @rank axes. */
static TinyNode *
along_channels (TinyBuild *b, TinyNode *vector, gint64 n_channels, guint rank, const char *what)
{
  if (vector == NULL)
    return NULL;
  if (vector->shape->n != 1 || vector->shape->v[0] != n_channels) {
    g_autofree char *text = tiny_shape_to_string (vector->shape);
    return tiny_build_fail (b, "the %s is (C) = (%" G_GINT64_FORMAT ",), not %s", what,
                            n_channels, text);
  }
  gint64 dims[TINY_MAX_RANK];
  for (guint i = 0; i < rank; i++)
    dims[i] = i == 1 ? n_channels : 1;
  return tiny_build_reshape (b, vector, dims, rank);
}

/* @x times @weight plus @bias, of which either may be NULL. */
static TinyNode *
affine (TinyBuild *b, TinyNode *x, TinyNode *weight, TinyNode *bias)
{
  if (weight != NULL)
    x = tiny_build_mul (b, x, weight);
  return bias == NULL ? x : tiny_build_add (b, x, bias);
}

/* All axes of @x but @kept ones at the front and, unless @channels, that of channels. */
static guint
axes_of (const TinyNode *x, guint first, gboolean batch, gint64 *axes)
{
  guint n = 0;
  if (batch)
    axes[n++] = 0;
  for (guint i = first; i < x->shape->n; i++)
    axes[n++] = i;
  return n;
}

/* ---- by channel ---- */

/* Either both running statistics or those of the axes given; folded to one multiplication and one
 * addition for each element. */
static TinyNode *
by_channel (TinyBuild *b,
            TinyNode *x,
            TinyNode *const statistics[2],
            TinyNode *weight,
            TinyNode *bias,
            gboolean of_input,
            gboolean of_batch,
            double eps)
{
  gint64 axes[TINY_MAX_RANK];
  guint rank = x->shape->n;
  if (rank < 2) {
    g_autofree char *text = tiny_shape_to_string (x->shape);
    return tiny_build_fail (b, "takes (B, C, …), not %s", text);
  }
  gint64 n_channels = x->shape->v[1];
  TinyNode *mean = along_channels (b, statistics[0], n_channels, rank, "mean");
  TinyNode *var = along_channels (b, statistics[1], n_channels, rank, "variance");
  weight = along_channels (b, weight, n_channels, rank, "weight");
  bias = along_channels (b, bias, n_channels, rank, "bias");
  if (b->error != NULL)
    return NULL;
  if (of_input) {
    guint n = axes_of (x, 2, of_batch, axes);
    mean = tiny_build_mean (b, x, axes, n);
    var = tiny_build_var (b, x, mean, axes, n, 0);
  } else if (mean == NULL || var == NULL) {
    return tiny_build_fail (b, "without training both running_mean and running_var are wanted");
  }
  TinyNode *scale = inverse_root (b, tiny_build_float (b, var), eps);
  if (weight != NULL)
    scale = tiny_build_mul (b, scale, weight);
  TinyNode *result = tiny_build_mul (b, tiny_build_sub (b, x, mean), scale);
  return bias == NULL ? result : tiny_build_add (b, result, bias);
}

TinyNode *
op_batch_norm (TinyBuild *b,
               TinyNode *self,
               TinyNode *running_mean,
               TinyNode *running_var,
               TinyNode *weight,
               TinyNode *bias,
               gboolean training,
               double eps)
{
  return by_channel (b, self, (TinyNode *[]){ running_mean, running_var }, weight, bias,
                     training, TRUE, eps);
}

TinyNode *
op_instance_norm (TinyBuild *b,
                  TinyNode *self,
                  TinyNode *running_mean,
                  TinyNode *running_var,
                  TinyNode *weight,
                  TinyNode *bias,
                  gboolean use_input_stats,
                  double eps)
{
  if (use_input_stats && self->shape->n < 3)
    return tiny_build_fail (b, "takes (B, C, S…): of one element there is no spread");
  return by_channel (b, self, (TinyNode *[]){ running_mean, running_var }, weight, bias,
                     use_input_stats, FALSE, eps);
}

TinyNode *
op_group_norm (TinyBuild *b,
               TinyNode *self,
               gint64 num_groups,
               TinyNode *weight,
               TinyNode *bias,
               double eps)
{
  gint64 dims[TINY_MAX_RANK + 1], axes[TINY_MAX_RANK + 1];
  guint rank = self->shape->n;
  gint64 n_channels = rank < 2 ? 0 : self->shape->v[1];
  if (rank < 2 || num_groups < 1 || n_channels % num_groups != 0) {
    g_autofree char *text = tiny_shape_to_string (self->shape);
    return tiny_build_fail (
        b, "channels of %s, (B, C, …), do not make %" G_GINT64_FORMAT " groups", text,
        num_groups);
  }
  weight = along_channels (b, weight, n_channels, rank, "weight");
  bias = along_channels (b, bias, n_channels, rank, "bias");
  if (b->error != NULL || tiny_shape_get_n_elements (self->shape) == 0)
    return self;
  dims[0] = self->shape->v[0];
  dims[1] = num_groups;
  dims[2] = n_channels / num_groups;
  for (guint i = 2; i < rank; i++)
    dims[1 + i] = self->shape->v[i];
  TinyNode *x = tiny_build_reshape (b, self, dims, rank + 1);
  guint n = axes_of (x, 2, FALSE, axes);
  TinyNode *mean = tiny_build_mean (b, x, axes, n);
  TinyNode *scale = inverse_root (b, tiny_build_var (b, x, mean, axes, n, 0), eps);
  x = tiny_build_mul (b, tiny_build_sub (b, x, mean), scale);
  return affine (b, tiny_build_reshape (b, x, self->shape->v, rank), weight, bias);
}

/* @x, with as many elements as @like has along @axes, in the rank of that. */
static TinyNode *
along_axes (TinyBuild *b,
            TinyNode *x,
            const TinyNode *like,
            const gint64 *axes,
            guint n,
            const char *what)
{
  gint64 dims[TINY_MAX_RANK], wanted = 1;
  if (x == NULL)
    return NULL;
  for (guint i = 0; i < like->shape->n; i++)
    dims[i] = 1;
  for (guint i = 0; i < n; i++)
    wanted *= dims[axes[i]] = like->shape->v[axes[i]];
  if (tiny_shape_get_n_elements (x->shape) == wanted)
    return tiny_build_reshape (b, x, dims, like->shape->n);
  g_autofree char *text = tiny_shape_to_string (x->shape);
  return tiny_build_fail (b, "the %s has %" G_GINT64_FORMAT " elements, not %s", what, wanted,
                          text);
}

TinyNode *
op_batchnorm (TinyBuild *b,
              TinyNode *self,
              TinyNode *weight,
              TinyNode *bias,
              TinyNode *mean,
              TinyNode *invstd,
              const gint64 *axes,
              guint n_axes)
{
  weight = along_axes (b, weight, self, axes, n_axes, "weight");
  bias = along_axes (b, bias, self, axes, n_axes, "bias");
  mean = along_axes (b, mean, self, axes, n_axes, "mean");
  invstd = along_axes (b, invstd, self, axes, n_axes, "inverse deviation");
  if (b->error != NULL)
    return NULL;
  TinyNode *scale = weight == NULL ? invstd : tiny_build_mul (b, invstd, weight);
  return affine (b, tiny_build_sub (b, self, mean), scale, bias);
}

/* ---- over the last axes ---- */

/* That @x ends with @shape, @weight and @bias are of it, and which axes those are. */
static gboolean
take_last (TinyBuild *b,
           TinyNode *x,
           const gint64 *shape,
           guint n,
           TinyNode *const *scales,
           gint64 *axes)
{
  guint rank = x->shape->n;
  gboolean fits = shape != NULL && n > 0 && n <= rank;
  for (guint i = 0; fits && i < n; i++) {
    axes[i] = rank - n + i;
    fits = shape[i] == x->shape->v[axes[i]];
  }
  g_autofree char *text = tiny_shape_to_string (x->shape);
  if (!fits) {
    g_autofree char *wanted = tiny_shape_to_string (
        tiny_graph_ints (b->graph, shape, shape == NULL ? 0 : MIN (n, TINY_MAX_RANK)));
    tiny_build_fail (b, "%s does not end with the normalised shape %s", text, wanted);
    return FALSE;
  }
  for (guint k = 0; k < 2; k++) {
    gboolean is_same = scales[k] == NULL || scales[k]->shape->n == n;
    for (guint i = 0; is_same && scales[k] != NULL && i < n; i++)
      is_same = scales[k]->shape->v[i] == shape[i];
    if (!is_same) {
      g_autofree char *found = tiny_shape_to_string (scales[k]->shape);
      tiny_build_fail (b, "the %s is of the normalised shape, the end of %s, not %s",
                       k == 0 ? "weight" : "bias", text, found);
      return FALSE;
    }
  }
  return TRUE;
}

TinyNode *
op_layer_norm (TinyBuild *b,
               TinyNode *self,
               const gint64 *normalized_shape,
               guint n_dims,
               TinyNode *weight,
               TinyNode *bias,
               double eps)
{
  gint64 axes[TINY_MAX_RANK];
  if (!take_last (b, self, normalized_shape, n_dims, (TinyNode *[]){ weight, bias }, axes))
    return NULL;
  TinyNode *mean = tiny_build_mean (b, self, axes, n_dims);
  TinyNode *scale = inverse_root (b, tiny_build_var (b, self, mean, axes, n_dims, 0), eps);
  return affine (b, tiny_build_mul (b, tiny_build_sub (b, self, mean), scale), weight, bias);
}

TinyNode *
op_rms_norm (TinyBuild *b,
             TinyNode *self,
             const gint64 *normalized_shape,
             guint n_dims,
             TinyNode *weight,
             double eps)
{
  gint64 axes[TINY_MAX_RANK];
  if (!take_last (b, self, normalized_shape, n_dims, (TinyNode *[]){ weight, NULL }, axes))
    return NULL;
  if (eps == 0)
    eps = self->dtype == TINY_DTYPE_F64 ? 0x1p-52 : 0x1p-23;
  TinyNode *mean = tiny_build_mean (b, tiny_build_mul (b, self, self), axes, n_dims);
  return affine (b, tiny_build_mul (b, self, inverse_root (b, mean, eps)), weight, NULL);
}

/* ---- by neighbours, and by length ---- */

/* The mean of squares over @size channels around each is that of a window over them. */
TinyNode *
op_local_response_norm (
    TinyBuild *b, TinyNode *self, gint64 size, double alpha, double beta, double k)
{
  gint64 dims[TINY_MAX_RANK + 1], pairs[2 * TINY_MAX_RANK + 2] = { 0 };
  guint rank = self->shape->n;
  if (rank < 2 || size < 1 || size > 1 << 24) {
    g_autofree char *text = tiny_shape_to_string (self->shape);
    return tiny_build_fail (b, "%" G_GINT64_FORMAT " channels of %s, (B, C, …), are no window",
                            size, text);
  }
  if (tiny_shape_get_n_elements (self->shape) == 0)
    return self;
  pairs[2] = size / 2;
  pairs[3] = (size - 1) / 2;
  TinyNode *square = tiny_build_pad (b, tiny_build_mul (b, self, self), pairs, 0);
  square = tiny_build_unsqueeze (b, square, 2);
  if (square == NULL)
    return NULL;
  for (guint i = 0; i <= rank; i++)
    dims[i] = i == 2 ? size : square->shape->v[i];
  if (!tiny_build_check_shape (b, dims, MIN (rank + 1, TINY_MAX_RANK)))
    return NULL;
  square = tiny_build_expand (b, square, dims, rank + 1);
  square = tiny_node_shear (b->graph, square, 1, 2, 1, 1, 0, 1, self->shape->v[1]);
  gint64 axis[] = { 2 };
  TinyNode *mean = tiny_build_squeeze (b, tiny_build_mean (b, square, axis, 1), axis, 1);
  mean = tiny_build_mul (b, mean, tiny_build_like (b, mean, alpha));
  mean = tiny_build_add (b, mean, tiny_build_like (b, mean, k));
  return tiny_build_div (b, self, op_pow (b, mean, tiny_build_like (b, mean, beta)));
}

/* |x|^p; what is 0 has no gradient. */
static TinyNode *
power_of_size (TinyBuild *b, TinyNode *x, double p)
{
  if (p == 2)
    return tiny_build_mul (b, x, x);
  TinyNode *is_zero = tiny_build_binary (b, TINY_OP_CMPEQ, x, tiny_build_like (b, x, 0));
  TinyNode *size = tiny_build_where (b, is_zero, tiny_build_like (b, x, 1), op_abs (b, x));
  return tiny_build_where (b, is_zero, tiny_build_like (b, x, p < 0 ? INFINITY : 0),
                           op_pow (b, size, tiny_build_like (b, x, p)));
}

/* (Σ |x|^p)^(1/p). Where that is 0 no root is taken of it: the gradient there is 0. */
TinyNode *
op_norm (TinyBuild *b, TinyNode *self, double p, const gint64 *axes, guint n_axes)
{
  TinyNode *zero = tiny_build_like (b, self, 0), *one = tiny_build_like (b, self, 1);
  if (isnan (p))
    return tiny_build_fail (b, "p is not a number");
  if (p == INFINITY)
    return op_max (b, op_abs (b, self), axes, n_axes);
  if (p == -INFINITY)
    return op_min (b, op_abs (b, self), axes, n_axes);
  if (p == 1)
    return op_sum (b, op_abs (b, self), axes, n_axes);
  if (p == 0) {
    TinyNode *counts = tiny_build_binary (b, TINY_OP_CMPNE, self, zero);
    counts = tiny_build_cast (b, counts, (TinyDType) self->dtype);
    return op_sum (b, tiny_build_sloped (b, counts, self, zero), axes, n_axes);
  }
  TinyNode *root = tiny_build_like (b, self, 1 / p);
  TinyNode *sum = op_sum (b, power_of_size (b, self, p), axes, n_axes);
  if (p == 2)
    return tiny_build_root (b, sum);
  if (p < 0)
    return op_pow (b, sum, root);
  TinyNode *is_zero = tiny_build_binary (b, TINY_OP_CMPEQ, sum, zero);
  TinyNode *safe = tiny_build_where (b, is_zero, one, sum);
  return tiny_build_where (b, is_zero, zero, op_pow (b, safe, root));
}

TinyNode *
op_normalize (TinyBuild *b, TinyNode *self, double p, guint axis, double eps)
{
  TinyNode *norm = op_norm (b, self, p, (gint64[]){ axis }, 1);
  return tiny_build_div (b, self, op_maximum (b, norm, tiny_build_like (b, norm, eps)));
}
