/* SPDX-License-Identifier: MIT
 *
 * tiny-norm-layers.c: normalisations as modules. */
#include "nn/tiny-norm-layers.h"

#include <math.h>

#include "nn/module-private.h"
#include "tensor/tiny-default-float.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

enum { MAX_AXES = 16 };

static gboolean
check_size (TinyModule *self, const char *name, gint64 n, double epsilon)
{
  if (n < 0)
    tiny_module_fail (self, "%s: %" G_GINT64_FORMAT " channels", name, n);
  else if (!(epsilon >= 0) || isinf (epsilon))
    tiny_module_fail (self, "%s: epsilon %g is not 0 or more", name, epsilon);
  return tiny_module_get_error (self) == NULL;
}

static void
init_affine (TinyModule *self, const gint64 *shape, guint n_dims, gboolean bias)
{
  tiny_module_init_parameter (self, "weight",
                              tiny_tensor_ones (tiny_get_default_float (), shape, n_dims));
  if (bias)
    tiny_module_init_parameter (self, "bias",
                                tiny_tensor_zeros (tiny_get_default_float (), shape, n_dims));
}

/* Whether @x is (B, C, …) with @n channels; if not, *@out_wrong says so. */
static gboolean
check_channels (const char *name, TinyTensor *x, gint64 n, TinyTensor **out_wrong)
{
  if (x->error != NULL)
    *out_wrong = tiny_tensor_new_alias (x);
  else if (x->n_dims < 2 || x->shape[1] != n)
    *out_wrong = tiny_tensor_new_invalid ("%s: takes (B, C, …) with %" G_GINT64_FORMAT
                                          " channels, not %u axes with %" G_GINT64_FORMAT,
                                          name, n, x->n_dims, x->n_dims < 2 ? 0 : x->shape[1]);
  else
    return TRUE;
  return FALSE;
}

/* ---- over the batch ---- */
typedef struct {
  TinyModule parent_instance;
  gint64 n;
  double epsilon, momentum;
  gboolean track;
} TinyBatchNormLayer;

TINY_DEFINE_LAYER (TinyBatchNormLayer, tiny_batch_norm_layer)

/* running += momentum * (now - running) */
static gboolean
move_running (TinyBatchNormLayer *self,
              const char *name,
              TinyTensor *now,
              TinyTensor *momentum,
              GError **error)
{
  TinyModule *module = TINY_MODULE (self);
  TinyTensor *running = tiny_module_own (module, name), *moved;
  if (momentum == NULL)
    moved = tiny_tensor_add (tiny_tensor_mul_number (running, 1 - self->momentum),
                             tiny_tensor_mul_number (now, self->momentum));
  else
    moved
        = tiny_tensor_add (running, tiny_tensor_mul (tiny_tensor_sub (now, running), momentum));
  return tiny_module_move_buffer (module, name, moved, error);
}

static gboolean
move_statistics (TinyBatchNormLayer *self,
                 TinyTensor *mean,
                 TinyTensor *var,
                 gint64 n_values,
                 GError **error)
{
  TinyModule *module = TINY_MODULE (self);
  TinyTensor *counter = tiny_module_own (module, "num_batches_tracked");
  g_autoptr (TinyTensor) momentum = NULL;
  if (!tiny_module_move_buffer (module, "num_batches_tracked",
                                tiny_tensor_add_number (counter, 1), error))
    return FALSE;
  if (self->momentum < 0)
    momentum
        = g_object_ref_sink (tiny_tensor_reciprocal (tiny_tensor_cast (counter, mean->dtype)));
  double unbiased = (double) n_values / (double) (n_values - 1);
  g_autoptr (TinyTensor) spread = g_object_ref_sink (tiny_tensor_mul_number (var, unbiased));
  return move_running (self, "running_mean", mean, momentum, error)
         && move_running (self, "running_var", spread, momentum, error);
}

static TinyTensor *
tiny_batch_norm_layer_forward (TinyModule *module, TinyTensor *x)
{
  TinyBatchNormLayer *self = (TinyBatchNormLayer *) module;
  TinyTensor *weight = tiny_module_own (module, "weight"),
             *bias = tiny_module_own (module, "bias");
  TinyTensor *wrong;
  if (!check_channels ("batch_norm", x, self->n, &wrong))
    return wrong;
  if (self->track && !tiny_module_get_training (module))
    return tiny_tensor_batch_norm (x, tiny_module_own (module, "running_mean"),
                                   tiny_module_own (module, "running_var"), weight, bias, FALSE,
                                   self->epsilon);
  gint axes[MAX_AXES];
  for (guint i = 0; i + 1 < x->n_dims; i++)
    axes[i] = i == 0 ? 0 : (gint) i + 1;
  gint64 n_values = self->n == 0 ? 0 : tiny_tensor_get_n_elements (x) / self->n;
  if (n_values < 2 && self->n > 0)
    return tiny_tensor_new_invalid (
        "batch_norm: a channel needs 2 values or more in training, not %" G_GINT64_FORMAT,
        n_values);
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) mean
      = g_object_ref_sink (tiny_tensor_mean (x, axes, x->n_dims - 1, FALSE));
  g_autoptr (TinyTensor) var
      = g_object_ref_sink (tiny_tensor_var (x, axes, x->n_dims - 1, 0, FALSE));
  if (self->track && self->n > 0 && !move_statistics (self, mean, var, n_values, &error))
    return tiny_tensor_new_invalid ("batch_norm: %s", error->message);
  return tiny_tensor_batch_norm (x, mean, var, weight, bias, FALSE, self->epsilon);
}

static void
tiny_batch_norm_layer_class_init (TinyBatchNormLayerClass *class)
{
  class->forward = tiny_batch_norm_layer_forward;
}

TinyModule *
tiny_batch_norm_new (gint64 n, double epsilon, double momentum, gboolean affine, gboolean track)
{
  TinyBatchNormLayer *self = g_object_new (tiny_batch_norm_layer_get_type (), NULL);
  TinyModule *module = TINY_MODULE (self);
  self->n = n;
  self->epsilon = epsilon;
  self->momentum = momentum;
  self->track = track;
  if (!check_size (module, "batch_norm", n, epsilon))
    return module;
  if (!(momentum <= 1)) {
    tiny_module_fail (module, "batch_norm: the momentum %g is more than 1", momentum);
    return module;
  }
  if (affine)
    init_affine (module, &n, 1, TRUE);
  if (track) {
    tiny_module_init_buffer (module, "running_mean",
                             tiny_tensor_zeros (tiny_get_default_float (), &n, 1), TRUE);
    tiny_module_init_buffer (module, "running_var",
                             tiny_tensor_ones (tiny_get_default_float (), &n, 1), TRUE);
    tiny_module_init_buffer (module, "num_batches_tracked",
                             tiny_tensor_zeros (TINY_DTYPE_I64, NULL, 0), TRUE);
  }
  return module;
}

TinyModule *
tiny_batch_norm2d_new (gint64 n)
{
  return tiny_batch_norm_new (n, 1e-5, 0.1, TRUE, TRUE);
}

/* ---- over groups of channels ---- */
typedef struct {
  TinyModule parent_instance;
  gint64 n_groups, n;
  double epsilon;
} TinyGroupNormLayer;

TINY_DEFINE_LAYER (TinyGroupNormLayer, tiny_group_norm_layer)

static TinyTensor *
tiny_group_norm_layer_forward (TinyModule *module, TinyTensor *x)
{
  TinyGroupNormLayer *self = (TinyGroupNormLayer *) module;
  TinyTensor *wrong;
  if (!check_channels ("group_norm", x, self->n, &wrong))
    return wrong;
  return tiny_tensor_group_norm (x, self->n_groups, tiny_module_own (module, "weight"),
                                 tiny_module_own (module, "bias"), self->epsilon);
}

static void
tiny_group_norm_layer_class_init (TinyGroupNormLayerClass *class)
{
  class->forward = tiny_group_norm_layer_forward;
}

TinyModule *
tiny_group_norm_new (gint64 n_groups, gint64 n, double epsilon, gboolean affine)
{
  TinyGroupNormLayer *self = g_object_new (tiny_group_norm_layer_get_type (), NULL);
  TinyModule *module = TINY_MODULE (self);
  self->n_groups = n_groups;
  self->n = n;
  self->epsilon = epsilon;
  if (!check_size (module, "group_norm", n, epsilon))
    return module;
  if (n_groups < 1 || n % n_groups != 0)
    tiny_module_fail (module,
                      "group_norm: %" G_GINT64_FORMAT " channels do not make %" G_GINT64_FORMAT
                      " groups",
                      n, n_groups);
  else if (affine)
    init_affine (module, &n, 1, TRUE);
  return module;
}

TinyModule *
tiny_instance_norm_new (gint64 n, double epsilon, gboolean affine)
{
  return tiny_group_norm_new (MAX (n, 1), n, epsilon, affine);
}

/* ---- over the last axes ---- */
typedef struct {
  TinyModule parent_instance;
  guint n_dims;
  gint64 shape[MAX_AXES];
  double epsilon;
  gboolean channels; /* over axis 1 of (B, C, Y, X) instead */
} TinyLayerNormLayer;

TINY_DEFINE_LAYER (TinyLayerNormLayer, tiny_layer_norm_layer)

static TinyTensor *
tiny_layer_norm_layer_forward (TinyModule *module, TinyTensor *x)
{
  TinyLayerNormLayer *self = (TinyLayerNormLayer *) module;
  TinyTensor *weight = tiny_module_own (module, "weight"),
             *bias = tiny_module_own (module, "bias");
  TinyTensor *wrong;
  if (x->error != NULL)
    return g_object_ref (x);
  if (self->channels) {
    if (!check_channels ("layer_norm2d", x, self->shape[0], &wrong))
      return wrong;
    TinyTensor *y = tiny_tensor_layer_norm (tiny_tensor_transpose (x, 1, -1), self->shape, 1,
                                            weight, bias, self->epsilon);
    return tiny_tensor_transpose (y, 1, -1);
  }
  gboolean fits = x->n_dims >= self->n_dims;
  for (guint i = 0; fits && i < self->n_dims; i++)
    fits = x->shape[x->n_dims - self->n_dims + i] == self->shape[i];
  if (!fits)
    return tiny_tensor_new_invalid (
        "layer_norm: the last axes of the input are not those of the "
        "layer, which begin with %" G_GINT64_FORMAT,
        self->shape[0]);
  return tiny_tensor_layer_norm (x, self->shape, self->n_dims, weight, bias, self->epsilon);
}

static void
tiny_layer_norm_layer_class_init (TinyLayerNormLayerClass *class)
{
  class->forward = tiny_layer_norm_layer_forward;
}

TinyModule *
tiny_layer_norm_new (const gint64 *shape, guint n_dims, double epsilon, gboolean affine)
{
  TinyLayerNormLayer *self = g_object_new (tiny_layer_norm_layer_get_type (), NULL);
  TinyModule *module = TINY_MODULE (self);
  if (n_dims < 1 || n_dims > MAX_AXES || shape == NULL) {
    tiny_module_fail (module, "layer_norm: %u axes are not 1 to %d", n_dims, MAX_AXES);
    return module;
  }
  self->n_dims = n_dims;
  self->epsilon = epsilon;
  for (guint i = 0; i < n_dims; i++) {
    self->shape[i] = shape[i];
    check_size (module, "layer_norm", shape[i], epsilon);
  }
  if (affine && tiny_module_get_error (module) == NULL)
    init_affine (module, shape, n_dims, TRUE);
  return module;
}

TinyModule *
tiny_layer_norm2d_new (gint64 n, double epsilon, gboolean affine)
{
  TinyModule *module = tiny_layer_norm_new (&n, 1, epsilon, affine);
  ((TinyLayerNormLayer *) module)->channels = TRUE;
  return module;
}

/* ---- by size ---- */
typedef struct {
  TinyModule parent_instance;
  gint64 n;
  double epsilon;
} TinyRmsNormLayer;

TINY_DEFINE_LAYER (TinyRmsNormLayer, tiny_rms_norm_layer)

static TinyTensor *
tiny_rms_norm_layer_forward (TinyModule *module, TinyTensor *x)
{
  TinyRmsNormLayer *self = (TinyRmsNormLayer *) module;
  if (x->error != NULL)
    return g_object_ref (x);
  if (x->n_dims < 1 || x->shape[x->n_dims - 1] != self->n)
    return tiny_tensor_new_invalid ("rms_norm: takes (…, %" G_GINT64_FORMAT
                                    "), not %u axes that end with %" G_GINT64_FORMAT,
                                    self->n, x->n_dims,
                                    x->n_dims < 1 ? 0 : x->shape[x->n_dims - 1]);
  return tiny_tensor_rms_norm (x, &self->n, 1, tiny_module_own (module, "weight"),
                               self->epsilon);
}

static void
tiny_rms_norm_layer_class_init (TinyRmsNormLayerClass *class)
{
  class->forward = tiny_rms_norm_layer_forward;
}

TinyModule *
tiny_rms_norm_new (gint64 n, double epsilon, gboolean affine)
{
  TinyRmsNormLayer *self = g_object_new (tiny_rms_norm_layer_get_type (), NULL);
  self->n = n;
  self->epsilon = epsilon;
  if (check_size (TINY_MODULE (self), "rms_norm", n, epsilon) && affine)
    init_affine (TINY_MODULE (self), &n, 1, FALSE);
  return TINY_MODULE (self);
}
