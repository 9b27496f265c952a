/* SPDX-License-Identifier: MIT
 *
 * tiny-layers.c: the plain layers, as small final types. */
#include "nn/tiny-layers.h"

#include <math.h>

#include "ir/tiny-shape.h"
#include "nn/module-private.h"
#include "tensor/tiny-build.h"
#include "tensor/tiny-random.h"
#include "tensor/tiny-tensor-operations.h"

/* ---- linear ---- */
typedef struct {
  TinyModule parent_instance;
} TinyLinearLayer;

TINY_DEFINE_LAYER (TinyLinearLayer, tiny_linear_layer)

static TinyTensor *
tiny_linear_layer_forward (TinyModule *self, TinyTensor *x)
{
  return tiny_tensor_linear (x, tiny_module_own (self, "weight"),
                             tiny_module_own (self, "bias"));
}

static void
tiny_linear_layer_class_init (TinyLinearLayerClass *class)
{
  class->forward = tiny_linear_layer_forward;
}

TinyModule *
tiny_linear_new (gint64 n_in, gint64 n_out, gboolean bias)
{
  TinyModule *self = g_object_new (tiny_linear_layer_get_type (), NULL);
  if (n_in < 0 || n_out < 0) {
    tiny_module_fail (self, "linear: %" G_GINT64_FORMAT " features to %" G_GINT64_FORMAT, n_in,
                      n_out);
    return self;
  }
  double bound = 1 / sqrt ((double) MAX (n_in, 1));
  tiny_module_init_parameter (self, "weight",
                              tiny_uniform_around ((gint64[]){ n_out, n_in }, 2, bound));
  if (bias)
    tiny_module_init_parameter (self, "bias", tiny_uniform_around (&n_out, 1, bound));
  return self;
}

/* ---- embedding ---- */
typedef struct {
  TinyModule parent_instance;
} TinyEmbeddingLayer;

TINY_DEFINE_LAYER (TinyEmbeddingLayer, tiny_embedding_layer)

static TinyTensor *
tiny_embedding_layer_forward (TinyModule *self, TinyTensor *x)
{
  return tiny_tensor_index_select (tiny_module_own (self, "weight"), 0, x);
}

static void
tiny_embedding_layer_class_init (TinyEmbeddingLayerClass *class)
{
  class->forward = tiny_embedding_layer_forward;
}

TinyModule *
tiny_embedding_new (gint64 n, gint64 size)
{
  TinyModule *self = g_object_new (tiny_embedding_layer_get_type (), NULL);
  gint64 shape[] = { n, size };
  if (n < 0 || size < 0)
    tiny_module_fail (self, "embedding: %" G_GINT64_FORMAT " rows of %" G_GINT64_FORMAT, n,
                      size);
  else
    tiny_module_init_parameter (self, "weight",
                                tiny_tensor_randn (tiny_get_default_float (), shape, 2));
  return self;
}

/* ---- dropout ---- */
typedef struct {
  TinyModule parent_instance;
  double p;
} TinyDropoutLayer;

TINY_DEFINE_LAYER (TinyDropoutLayer, tiny_dropout_layer)

/* @n truth values, each with probability @p, of the draw that @counter counts. Number i is threefry's first word for
 * (i, counter); the counter starts at random, which keeps layers apart. */
static TinyNode *
draw_dropped (TinyBuild *self, TinyNode *counter, gint64 n, double p)
{
  const guint32 key[2] = { 0xD20F0117u, 0x5EEDu };
  if (n > G_MAXUINT32)
    return tiny_build_fail (self, "at most 2^32 elements can be dropped from at once");
  TinyNode *words[2]
      = { tiny_build_iota (self, TINY_DTYPE_U32, n), tiny_build_expand (self, counter, &n, 1) };
  if (!tiny_random_spread (self, n, &words[0]))
    return NULL;
  tiny_build_threefry (self, key, words);
  /* 24 bits, through i32, which machines without unsigned conversions have. */
  TinyNode *bits = tiny_build_binary (self, TINY_OP_SHR, words[0],
                                      tiny_build_number (self, TINY_DTYPE_U32, 8));
  TinyNode *end = tiny_build_number (self, TINY_DTYPE_I32, MIN (ceil (ldexp (p, 24)), 1 << 24));
  return tiny_build_less (self, tiny_build_cast (self, bits, TINY_DTYPE_I32), end);
}

/* x / (1 - p) where a random number is at least p. */
static TinyTensor *
drop (TinyTensor *tensor, TinyTensor *counter, double p)
{
  TinyBuild b;
  TinyNode *node = NULL;
  TinyTensor *both[] = { tensor, counter };
  if (tiny_build_begin (&b, "dropout", 2, both)) {
    node = tiny_build_float (&b, b.x[0]);
    if (!tiny_build_is_empty (node)) {
      const TinyInts *shape = node->shape;
      TinyNode *dropped = draw_dropped (&b, b.x[1], tiny_shape_get_n_elements (shape), p);
      dropped = tiny_build_reshape (&b, dropped, shape->v, shape->n);
      TinyNode *zero = tiny_build_like (&b, node, 0);
      node = tiny_build_mul (&b, node, tiny_build_like (&b, node, p < 1 ? 1 / (1 - p) : 0));
      node = tiny_build_where (&b, dropped, zero, node);
    }
  }
  return tiny_build_end (&b, node);
}

static TinyTensor *
tiny_dropout_layer_forward (TinyModule *module, TinyTensor *x)
{
  TinyDropoutLayer *self = (TinyDropoutLayer *) module;
  g_autoptr (GError) error = NULL;
  if (self->p == 0 || !tiny_module_get_training (module))
    return g_object_ref (x);
  TinyTensor *counter = tiny_module_own (module, "counter");
  g_autoptr (TinyTensor) result = g_object_ref_sink (drop (x, counter, self->p));
  tiny_module_move_buffer (module, "counter", tiny_tensor_add_number (counter, 1), &error);
  return error == NULL ? g_steal_pointer (&result)
                       : tiny_tensor_new_invalid ("dropout: %s", error->message);
}

static void
tiny_dropout_layer_class_init (TinyDropoutLayerClass *class)
{
  class->forward = tiny_dropout_layer_forward;
}

TinyModule *
tiny_dropout_new (double p)
{
  TinyDropoutLayer *self = g_object_new (tiny_dropout_layer_get_type (), NULL);
  const gint64 one = 1;
  self->p = p;
  if (!(p >= 0 && p <= 1))
    tiny_module_fail (TINY_MODULE (self), "dropout: the probability %g is not from 0 to 1", p);
  else if (p > 0)
    tiny_module_init_buffer (TINY_MODULE (self), "counter",
                             tiny_tensor_randint (TINY_DTYPE_U32, &one, 1, 0, (gint64) 1 << 32),
                             FALSE);
  return TINY_MODULE (self);
}

/* ---- activations ---- */
typedef struct {
  TinyModule parent_instance;
  TinyModuleFunction function;
} TinyActivationLayer;

TINY_DEFINE_LAYER (TinyActivationLayer, tiny_activation_layer)

/* Functions of one tensor that have more arguments, with PyTorch's defaults. */
#define WITH_DEFAULTS(name, call)                                                              \
  static TinyTensor *name##_of (TinyTensor *x) { return call; }
/* clang-format off */
WITH_DEFAULTS (celu, tiny_tensor_celu (x, 1))
WITH_DEFAULTS (elu, tiny_tensor_elu (x, 1))
WITH_DEFAULTS (gelu, tiny_tensor_gelu (x, "none"))
WITH_DEFAULTS (gelu_tanh, tiny_tensor_gelu (x, "tanh"))
WITH_DEFAULTS (glu, tiny_tensor_glu (x, -1))
WITH_DEFAULTS (hardshrink, tiny_tensor_hardshrink (x, 0.5))
WITH_DEFAULTS (hardtanh, tiny_tensor_hardtanh (x, -1, 1))
WITH_DEFAULTS (leaky_relu, tiny_tensor_leaky_relu (x, 0.01))
WITH_DEFAULTS (log_softmax, tiny_tensor_log_softmax (x, -1))
WITH_DEFAULTS (softmax, tiny_tensor_softmax (x, -1))
WITH_DEFAULTS (softplus, tiny_tensor_softplus (x, 1, 20))
WITH_DEFAULTS (softshrink, tiny_tensor_softshrink (x, 0.5))
/* clang-format on */

static const struct {
  const char *name;
  TinyModuleFunction function;
} activations[] = {
  { "celu", celu_of },
  { "elu", elu_of },
  { "gelu", gelu_of },
  { "gelu_tanh", gelu_tanh_of },
  { "glu", glu_of },
  { "hardshrink", hardshrink_of },
  { "hardsigmoid", tiny_tensor_hardsigmoid },
  { "hardswish", tiny_tensor_hardswish },
  { "hardtanh", hardtanh_of },
  { "leaky_relu", leaky_relu_of },
  { "log_softmax", log_softmax_of },
  { "logsigmoid", tiny_tensor_logsigmoid },
  { "mish", tiny_tensor_mish },
  { "quick_gelu", tiny_tensor_quick_gelu },
  { "relu", tiny_tensor_relu },
  { "relu6", tiny_tensor_relu6 },
  { "selu", tiny_tensor_selu },
  { "sigmoid", tiny_tensor_sigmoid },
  { "silu", tiny_tensor_silu },
  { "softmax", softmax_of },
  { "softplus", softplus_of },
  { "softshrink", softshrink_of },
  { "softsign", tiny_tensor_softsign },
  { "tanh", tiny_tensor_tanh },
};

static TinyTensor *
tiny_activation_layer_forward (TinyModule *module, TinyTensor *x)
{
  return ((TinyActivationLayer *) module)->function (x);
}

static void
tiny_activation_layer_class_init (TinyActivationLayerClass *class)
{
  class->forward = tiny_activation_layer_forward;
}

const char *const *
tiny_activation_list (void)
{
  static const char *names[G_N_ELEMENTS (activations) + 1];
  static gsize is_made;
  if (g_once_init_enter (&is_made)) {
    for (guint i = 0; i < G_N_ELEMENTS (activations); i++)
      names[i] = activations[i].name;
    g_once_init_leave (&is_made, 1);
  }
  return names;
}

TinyModule *
tiny_activation_new (const char *name)
{
  TinyActivationLayer *self = g_object_new (tiny_activation_layer_get_type (), NULL);
  for (guint i = 0; i < G_N_ELEMENTS (activations); i++)
    if (g_strcmp0 (name, activations[i].name) == 0)
      self->function = activations[i].function;
  if (self->function == NULL) {
    g_autofree char *known = g_strjoinv (", ", (char **) tiny_activation_list ());
    tiny_module_fail (TINY_MODULE (self), "activation: “%s” is none of %s", name ? name : "",
                      known);
  }
  return TINY_MODULE (self);
}

/* ---- a rectifier whose slope is learnt ---- */
typedef struct {
  TinyModule parent_instance;
} TinyPreluLayer;

TINY_DEFINE_LAYER (TinyPreluLayer, tiny_prelu_layer)

static TinyTensor *
tiny_prelu_layer_forward (TinyModule *self, TinyTensor *x)
{
  return tiny_tensor_prelu (x, tiny_module_own (self, "weight"));
}

static void
tiny_prelu_layer_class_init (TinyPreluLayerClass *class)
{
  class->forward = tiny_prelu_layer_forward;
}

TinyModule *
tiny_prelu_new (gint64 n, double slope)
{
  TinyModule *self = g_object_new (tiny_prelu_layer_get_type (), NULL);
  if (n < 1)
    tiny_module_fail (self, "prelu: %" G_GINT64_FORMAT " slopes", n);
  else
    tiny_module_init_parameter (self, "weight",
                                tiny_tensor_full (tiny_get_default_float (), &n, 1, slope));
  return self;
}

/* ---- shapes ---- */
typedef struct {
  TinyModule parent_instance;
  gint start, end;
} TinyFlattenLayer;

TINY_DEFINE_LAYER (TinyFlattenLayer, tiny_flatten_layer)

static TinyTensor *
tiny_flatten_layer_forward (TinyModule *module, TinyTensor *x)
{
  TinyFlattenLayer *self = (TinyFlattenLayer *) module;
  return tiny_tensor_flatten (x, self->start, self->end);
}

static void
tiny_flatten_layer_class_init (TinyFlattenLayerClass *class)
{
  class->forward = tiny_flatten_layer_forward;
}

TinyModule *
tiny_flatten_new (gint start, gint end)
{
  TinyFlattenLayer *self = g_object_new (tiny_flatten_layer_get_type (), NULL);
  self->start = start;
  self->end = end;
  return TINY_MODULE (self);
}

/* ---- pooling ---- */
typedef struct {
  TinyModule parent_instance;
  gboolean largest;
  gint64 kernel, stride, padding;
} TinyPool2dLayer;

TINY_DEFINE_LAYER (TinyPool2dLayer, tiny_pool2d_layer)

static TinyTensor *
tiny_pool2d_layer_forward (TinyModule *module, TinyTensor *x)
{
  TinyPool2dLayer *self = (TinyPool2dLayer *) module;
  const gint64 *stride = self->stride == 0 ? &self->kernel : &self->stride;
  return self->largest ? tiny_tensor_max_pool2d (x, &self->kernel, 1, stride, 1, &self->padding,
                                                 1, NULL, 0, FALSE)
                       : tiny_tensor_avg_pool2d (x, &self->kernel, 1, stride, 1, &self->padding,
                                                 1, FALSE, TRUE, 0);
}

static void
tiny_pool2d_layer_class_init (TinyPool2dLayerClass *class)
{
  class->forward = tiny_pool2d_layer_forward;
}

static TinyModule *
pool_new (gboolean largest, gint64 kernel, gint64 stride, gint64 padding)
{
  TinyPool2dLayer *self = g_object_new (tiny_pool2d_layer_get_type (), NULL);
  self->largest = largest;
  self->kernel = kernel;
  self->stride = stride;
  self->padding = padding;
  return TINY_MODULE (self);
}

TinyModule *
tiny_max_pool2d_new (gint64 kernel, gint64 stride, gint64 padding)
{
  return pool_new (TRUE, kernel, stride, padding);
}

TinyModule *
tiny_avg_pool2d_new (gint64 kernel, gint64 stride, gint64 padding)
{
  return pool_new (FALSE, kernel, stride, padding);
}

/* ---- plain functions ---- */
typedef struct {
  TinyModule parent_instance;
  TinyModuleFunction function;
} TinyFunctionLayer;

TINY_DEFINE_LAYER (TinyFunctionLayer, tiny_function_layer)

static TinyTensor *
tiny_function_layer_forward (TinyModule *module, TinyTensor *x)
{
  return ((TinyFunctionLayer *) module)->function (x);
}

static void
tiny_function_layer_class_init (TinyFunctionLayerClass *class)
{
  class->forward = tiny_function_layer_forward;
}

TinyModule *
tiny_function_new (TinyModuleFunction function)
{
  TinyFunctionLayer *self = g_object_new (tiny_function_layer_get_type (), NULL);
  self->function = function;
  if (function == NULL)
    tiny_module_fail (TINY_MODULE (self), "function: there is no function");
  return TINY_MODULE (self);
}

/* ---- chains ---- */
typedef struct {
  TinyModule parent_instance;
} TinySequentialLayer;

TINY_DEFINE_LAYER (TinySequentialLayer, tiny_sequential_layer)

static TinyTensor *
tiny_sequential_layer_forward (TinyModule *self, TinyTensor *x)
{
  GArray *entries = tiny_module_get_entries (self);
  g_autoptr (TinyTensor) at = g_object_ref (x);
  for (guint i = 0; i < entries->len; i++) {
    TinyModule *child = g_array_index (entries, TinyEntry, i).child;
    TinyTensor *next = child == NULL ? NULL : tiny_module_forward (child, at);
    if (next != NULL) {
      g_object_unref (at);
      at = g_object_ref_sink (next);
    }
  }
  return g_steal_pointer (&at);
}

static void
tiny_sequential_layer_class_init (TinySequentialLayerClass *class)
{
  class->forward = tiny_sequential_layer_forward;
}

TinyModule *
tiny_sequential_new (void)
{
  return g_object_new (tiny_sequential_layer_get_type (), NULL);
}

void
tiny_sequential_append (TinyModule *self, TinyModule *module)
{
  if (!tiny_module_can_append (self, tiny_sequential_layer_get_type (), module))
    return;
  g_autofree char *name = g_strdup_printf ("%u", tiny_module_get_entries (self)->len);
  tiny_module_init_child (self, name, module);
}
