/* SPDX-License-Identifier: MIT
 *
 * tiny-layers.c: one kind of module each, as small final types. */
#include "nn/tiny-layers.h"

#include <math.h>

#include "tensor/tiny-tensor-operations.h"

/* A final subclass of TinyModule whose forward is camel_forward(). */
#define LAYER(Camel, lower)                                                                    \
  typedef TinyModuleClass Camel##Class;                                                        \
  static GType lower##_get_type (void);                                                        \
  G_DEFINE_TYPE (Camel, lower, TINY_TYPE_MODULE)                                               \
  static TinyTensor *lower##_forward (TinyModule *self, TinyTensor *x);                        \
  static void lower##_class_init (Camel##Class *class) { class->forward = lower##_forward; }   \
  static void lower##_init (Camel *self) {}

/* ---- linear ---- */
typedef struct {
  TinyModule parent_instance;
  TinyTensor *weight, *bias; /* owned by the base */
} TinyLinearLayer;

LAYER (TinyLinearLayer, tiny_linear_layer)

static TinyTensor *
tiny_linear_layer_forward (TinyModule *module, TinyTensor *x)
{
  TinyLinearLayer *self = (TinyLinearLayer *) module;
  return tiny_tensor_linear (x, self->weight, self->bias);
}

static TinyTensor *
add_bias (TinyModule *self, gint64 n, double fan_in)
{
  double bound = 1 / sqrt (MAX (fan_in, 1));
  return tiny_module_add_tensor (
      self, "bias", tiny_tensor_uniform (TINY_DTYPE_F32, &n, 1, -bound, bound), TRUE);
}

TinyModule *
tiny_linear_new (gint64 n_in, gint64 n_out, gboolean bias)
{
  TinyLinearLayer *self = g_object_new (tiny_linear_layer_get_type (), NULL);
  TinyModule *module = TINY_MODULE (self);
  TinyTensor *weight
      = tiny_tensor_kaiming_uniform (TINY_DTYPE_F32, (gint64[]){ n_out, n_in }, 2, sqrt (5));
  self->weight = tiny_module_add_tensor (module, "weight", weight, TRUE);
  if (bias)
    self->bias = add_bias (module, n_out, (double) n_in);
  return module;
}

/* ---- convolution ---- */
typedef struct {
  TinyModule parent_instance;
  TinyTensor *weight, *bias;
  gint64 stride, padding, groups;
} TinyConv2d;

LAYER (TinyConv2d, tiny_conv2d)

static TinyTensor *
tiny_conv2d_forward (TinyModule *module, TinyTensor *x)
{
  TinyConv2d *self = (TinyConv2d *) module;
  return tiny_tensor_conv2d (x, self->weight, self->bias, &self->stride, 1, &self->padding, 1,
                             NULL, 0, self->groups);
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
  TinyConv2d *self = g_object_new (tiny_conv2d_get_type (), NULL);
  TinyModule *module = TINY_MODULE (self);
  gint64 shape[] = { n_out, groups > 0 ? n_in / groups : n_in, kernel, kernel };
  self->stride = stride;
  self->padding = padding;
  self->groups = groups;
  self->weight = tiny_module_add_tensor (
      module, "weight", tiny_tensor_kaiming_uniform (TINY_DTYPE_F32, shape, 4, sqrt (5)), TRUE);
  if (bias)
    self->bias
        = add_bias (module, n_out, (double) shape[1] * (double) kernel * (double) kernel);
  return module;
}

/* ---- batch normalisation ---- */
typedef struct {
  TinyModule parent_instance;
  TinyTensor *weight, *bias, *mean, *var;
} TinyBatchNorm2d;

LAYER (TinyBatchNorm2d, tiny_batch_norm2d)

#define MOMENTUM 0.1
#define EPSILON  1e-5

/* running += MOMENTUM * (now - running), which waits until it is realised. What stops it stops the
 * result as well, which is made of the same statistics. */
static void
move_running (TinyTensor *running, TinyTensor *now)
{
  TinyTensor *kept = tiny_tensor_mul_number (running, 1 - MOMENTUM);
  TinyTensor *added = tiny_tensor_mul_number (tiny_tensor_detach (now), MOMENTUM);
  tiny_tensor_assign (running, tiny_tensor_add (kept, added), NULL);
}

static TinyTensor *
tiny_batch_norm2d_forward (TinyModule *module, TinyTensor *x)
{
  TinyBatchNorm2d *self = (TinyBatchNorm2d *) module;
  if (!tiny_module_get_training (module))
    return tiny_tensor_batch_norm (x, self->mean, self->var, self->weight, self->bias, FALSE,
                                   EPSILON);
  static const gint axes[] = { 0, 2, 3 };
  g_autoptr (TinyTensor) input = g_object_ref_sink (x);
  g_autoptr (TinyTensor) mean
      = g_object_ref_sink (tiny_tensor_mean (input, axes, G_N_ELEMENTS (axes), FALSE));
  g_autoptr (TinyTensor) var
      = g_object_ref_sink (tiny_tensor_var (input, axes, G_N_ELEMENTS (axes), 0, FALSE));
  double n = (double) tiny_tensor_get_n_elements (input)
             / MAX (1.0, (double) tiny_tensor_get_n_elements (self->mean));
  move_running (self->mean, mean);
  move_running (self->var, tiny_tensor_mul_number (var, n / MAX (1.0, n - 1)));
  return tiny_tensor_batch_norm (input, mean, var, self->weight, self->bias, FALSE, EPSILON);
}

TinyModule *
tiny_batch_norm2d_new (gint64 n)
{
  TinyBatchNorm2d *self = g_object_new (tiny_batch_norm2d_get_type (), NULL);
  TinyModule *module = TINY_MODULE (self);
  const TinyDType f32 = TINY_DTYPE_F32;
  self->weight = tiny_module_add_tensor (module, "weight", tiny_tensor_ones (f32, &n, 1), TRUE);
  self->bias = tiny_module_add_tensor (module, "bias", tiny_tensor_zeros (f32, &n, 1), TRUE);
  self->mean
      = tiny_module_add_tensor (module, "running_mean", tiny_tensor_zeros (f32, &n, 1), FALSE);
  self->var
      = tiny_module_add_tensor (module, "running_var", tiny_tensor_ones (f32, &n, 1), FALSE);
  return module;
}

/* ---- embedding ---- */
typedef struct {
  TinyModule parent_instance;
  TinyTensor *weight;
} TinyEmbedding;

LAYER (TinyEmbedding, tiny_embedding)

static TinyTensor *
tiny_embedding_forward (TinyModule *module, TinyTensor *x)
{
  return tiny_tensor_index_select (((TinyEmbedding *) module)->weight, 0, x);
}

TinyModule *
tiny_embedding_new (gint64 n, gint64 size)
{
  TinyEmbedding *self = g_object_new (tiny_embedding_get_type (), NULL);
  gint64 shape[] = { n, size };
  self->weight = tiny_module_add_tensor (TINY_MODULE (self), "weight",
                                         tiny_tensor_randn (TINY_DTYPE_F32, shape, 2), TRUE);
  return TINY_MODULE (self);
}

/* ---- plain functions ---- */
typedef struct {
  TinyModule parent_instance;
  TinyModuleFunction function;
} TinyFunction;

LAYER (TinyFunction, tiny_function)

static TinyTensor *
tiny_function_forward (TinyModule *module, TinyTensor *x)
{
  return ((TinyFunction *) module)->function (x);
}

TinyModule *
tiny_function_new (TinyModuleFunction function)
{
  g_return_val_if_fail (function != NULL, NULL);
  TinyFunction *self = g_object_new (tiny_function_get_type (), NULL);
  self->function = function;
  return TINY_MODULE (self);
}

/* ---- chains ---- */
typedef struct {
  TinyModule parent_instance;
  GPtrArray *modules; /* owned by the base */
} TinySequential;

typedef TinyModuleClass TinySequentialClass;
static GType tiny_sequential_get_type (void);
G_DEFINE_TYPE (TinySequential, tiny_sequential, TINY_TYPE_MODULE)

static TinyTensor *
tiny_sequential_forward (TinyModule *module, TinyTensor *x)
{
  TinySequential *self = (TinySequential *) module;
  for (guint i = 0; i < self->modules->len; i++)
    x = tiny_module_forward (self->modules->pdata[i], x);
  return x;
}

static void
tiny_sequential_finalize (GObject *object)
{
  g_ptr_array_unref (((TinySequential *) object)->modules);
  G_OBJECT_CLASS (tiny_sequential_parent_class)->finalize (object);
}

static void
tiny_sequential_class_init (TinySequentialClass *class)
{
  class->forward = tiny_sequential_forward;
  G_OBJECT_CLASS (class)->finalize = tiny_sequential_finalize;
}

static void
tiny_sequential_init (TinySequential *self)
{
  self->modules = g_ptr_array_new ();
}

TinyModule *
tiny_sequential_new (void)
{
  return g_object_new (tiny_sequential_get_type (), NULL);
}

void
tiny_sequential_append (TinyModule *module, TinyModule *child)
{
  g_return_if_fail (G_TYPE_CHECK_INSTANCE_TYPE (module, tiny_sequential_get_type ()));
  TinySequential *self = (TinySequential *) module;
  g_autofree char *name = g_strdup_printf ("%u", self->modules->len);
  g_ptr_array_add (self->modules, tiny_module_add_child (module, name, child));
}
