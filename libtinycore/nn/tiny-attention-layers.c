/* SPDX-License-Identifier: MIT
 *
 * tiny-attention-layers.c: attention and the layers of transformers.
 *
 * Inside, batches come first. Attention is its plain formula, softmax (q kᵀ · scale + mask) v, which the
 * scheduler knows. */
#include "nn/tiny-attention-layers.h"

#include <math.h>

#include "nn/module-private.h"
#include "nn/tiny-layers.h"
#include "nn/tiny-norm-layers.h"
#include "tensor/tiny-default-float.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

static GPtrArray *
give_one (TinyTensor *result)
{
  GPtrArray *results = g_ptr_array_new ();
  g_ptr_array_add (results, result);
  return results;
}

/* ---- attention ---- */
typedef struct {
  TinyModule parent_instance;
  gint64 n, n_heads, n_in[3]; /* features of query, key and value */
  gboolean batch_first, is_packed;
} TinyMultiheadAttentionLayer;

TINY_DEFINE_LAYER (TinyMultiheadAttentionLayer, tiny_multihead_attention_layer)

/* (B, T, I) to (B, H, T, D): projection @i of query, key and value. */
static TinyTensor *
project (TinyMultiheadAttentionLayer *self, TinyTensor *x, guint i)
{
  static const char *const names[] = { "q_proj_weight", "k_proj_weight", "v_proj_weight" };
  TinyModule *module = TINY_MODULE (self);
  gint64 from = i * self->n, to = (i + 1) * self->n;
  TinyTensor *bias = tiny_module_own (module, "in_proj_bias");
  TinyTensor *weight = tiny_module_own (module, self->is_packed ? "in_proj_weight" : names[i]);
  if (self->is_packed)
    weight = tiny_tensor_slice (weight, 0, from, to, 1);
  if (bias != NULL)
    bias = tiny_tensor_slice (bias, 0, from, to, 1);
  const gint64 apart[] = { x->shape[0], x->shape[1], self->n_heads, self->n / self->n_heads };
  TinyTensor *y = tiny_tensor_reshape (tiny_tensor_linear (x, weight, bias), apart, 4);
  return tiny_tensor_permute (y, (gint[]){ 0, 2, 1, 3 }, 4);
}

/* @mask added to or taken out of scores (B, H, T, S); both are taken. */
static TinyTensor *
apply_mask (TinyMultiheadAttentionLayer *self, TinyTensor *scores, TinyTensor *mask)
{
  if (mask->n_dims == 3)
    mask = tiny_tensor_reshape (mask,
                                (gint64[]){ mask->shape[0] / self->n_heads, self->n_heads,
                                            mask->shape[1], mask->shape[2] },
                                4);
  if (tiny_tensor_get_dtype (mask) == TINY_DTYPE_BOOL)
    return tiny_tensor_where (mask, tiny_tensor_scalar_float (-INFINITY), scores);
  return tiny_tensor_add (scores, mask);
}

static gboolean
mask_fits (
    TinyMultiheadAttentionLayer *self, const TinyTensor *mask, gint64 b, gint64 t, gint64 s)
{
  const gint64 full[] = { b, self->n_heads, t, s };
  if (mask->n_dims == 3)
    return mask->shape[0] == b * self->n_heads && mask->shape[1] == t && mask->shape[2] == s;
  if (mask->n_dims != 2 && mask->n_dims != 4)
    return FALSE;
  for (guint i = 0; i < mask->n_dims; i++)
    if (mask->shape[i] != full[4 - mask->n_dims + i]
        && (mask->shape[i] != 1 || mask->n_dims == 2))
      return FALSE;
  return mask->dtype == TINY_DTYPE_BOOL || tiny_dtype_is_float (mask->dtype);
}

enum { QUERY, KEY, VALUE, MASK, PADDING, N_INPUTS };

/* (transfer floating) (nullable): what is wrong with one of the inputs. */
static TinyTensor *
find_wrong_input (TinyMultiheadAttentionLayer *self, guint i, TinyTensor *x)
{
  static const char *const names[N_INPUTS]
      = { "query", "key", "value", "mask", "padding mask" };
  if (x == NULL)
    return i >= MASK
               ? NULL
               : tiny_tensor_new_invalid ("multihead_attention: the %s is NULL", names[i]);
  if (x->error != NULL)
    return tiny_tensor_new_alias (x);
  if (i < MASK && (x->n_dims != 3 || x->shape[2] != self->n_in[i]))
    return tiny_tensor_new_invalid (
        "multihead_attention: the %s has 3 axes that end with "
        "%" G_GINT64_FORMAT ", not %u that end with %" G_GINT64_FORMAT,
        names[i], self->n_in[i], x->n_dims, x->n_dims == 0 ? 0 : x->shape[x->n_dims - 1]);
  if (i >= MASK && x->dtype != TINY_DTYPE_BOOL && !tiny_dtype_is_float (x->dtype))
    return tiny_tensor_new_invalid ("multihead_attention: a %s is of bools or floats, not %s",
                                    names[i], tiny_dtype_to_string (x->dtype));
  return NULL;
}

/* (transfer floating) (nullable): what is wrong with the inputs. */
static TinyTensor *
find_wrong (TinyMultiheadAttentionLayer *self, TinyTensor *const v[N_INPUTS])
{
  for (guint i = 0; i < N_INPUTS; i++) {
    TinyTensor *wrong = find_wrong_input (self, i, v[i]);
    if (wrong != NULL)
      return wrong;
  }
  guint batch = self->batch_first ? 0 : 1, time = 1 - batch;
  const gint64 *q = v[QUERY]->shape, *k = v[KEY]->shape, *value = v[VALUE]->shape;
  const TinyTensor *padding = v[PADDING];
  if (q[batch] != k[batch] || q[batch] != value[batch] || k[time] != value[time])
    return tiny_tensor_new_invalid (
        "multihead_attention: %" G_GINT64_FORMAT " queries, %" G_GINT64_FORMAT
        " keys and %" G_GINT64_FORMAT " values in batches of %" G_GINT64_FORMAT
        ", %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT " do not belong together",
        q[time], k[time], value[time], q[batch], k[batch], value[batch]);
  if (v[MASK] != NULL && !mask_fits (self, v[MASK], q[batch], q[time], k[time]))
    return tiny_tensor_new_invalid ("multihead_attention: a mask is for (%" G_GINT64_FORMAT
                                    ", %" G_GINT64_FORMAT ", %" G_GINT64_FORMAT
                                    ", %" G_GINT64_FORMAT "), which one of %u axes is not",
                                    q[batch], self->n_heads, q[time], k[time], v[MASK]->n_dims);
  if (padding != NULL
      && (padding->n_dims != 2 || padding->shape[0] != q[batch]
          || padding->shape[1] != k[time]))
    return tiny_tensor_new_invalid (
        "multihead_attention: a padding mask is for (%" G_GINT64_FORMAT ", %" G_GINT64_FORMAT
        ") keys, which one of %u axes is not",
        q[batch], k[time], padding->n_dims);
  return NULL;
}

/* (B, H, T, S): how much each query attends to each key. */
static TinyTensor *
weights_of (TinyMultiheadAttentionLayer *self,
            TinyTensor *query,
            TinyTensor *key,
            TinyTensor *const v[N_INPUTS])
{
  double scale = 1 / sqrt ((double) self->n / (double) self->n_heads);
  TinyTensor *scores = tiny_tensor_matmul (query, tiny_tensor_transpose (key, -1, -2));
  scores = tiny_tensor_mul_number (scores, scale);
  if (v[MASK] != NULL)
    scores = apply_mask (self, scores, v[MASK]);
  if (v[PADDING] != NULL) {
    const gint64 shape[] = { v[PADDING]->shape[0], 1, 1, v[PADDING]->shape[1] };
    scores = apply_mask (self, scores, tiny_tensor_reshape (v[PADDING], shape, 4));
  }
  TinyTensor *weights = tiny_tensor_softmax (scores, -1);
  TinyModule *dropout = tiny_module_get_child (TINY_MODULE (self), "dropout");
  return dropout == NULL ? weights : tiny_module_forward (dropout, weights);
}

static GPtrArray *
attend (TinyMultiheadAttentionLayer *self, TinyTensor *const v[N_INPUTS])
{
  g_autoptr (GPtrArray) kept = tiny_kept_new ();
  TinyTensor *x[3];
  for (guint i = 0; i < 3; i++) {
    TinyTensor *first
        = tiny_keep (kept, self->batch_first ? tiny_tensor_new_alias (v[i])
                                             : tiny_tensor_transpose (v[i], 0, 1));
    x[i] = project (self, first, i);
  }
  TinyTensor *weights = tiny_keep (kept, weights_of (self, x[QUERY], x[KEY], v));
  TinyTensor *y
      = tiny_tensor_permute (tiny_tensor_matmul (weights, x[VALUE]), (gint[]){ 0, 2, 1, 3 }, 4);
  y = tiny_tensor_flatten (y, 2, 3);
  y = tiny_module_forward (tiny_module_get_child (TINY_MODULE (self), "out_proj"), y);
  GPtrArray *results = give_one (self->batch_first ? y : tiny_tensor_transpose (y, 0, 1));
  g_ptr_array_add (results, tiny_tensor_mean (weights, (gint[]){ 1 }, 1, FALSE));
  g_ptr_array_add (results, g_object_ref (weights));
  return results;
}

static GPtrArray *
tiny_multihead_attention_layer_forward_many (TinyModule *module, GPtrArray *inputs)
{
  TinyMultiheadAttentionLayer *self = (TinyMultiheadAttentionLayer *) module;
  TinyTensor *v[N_INPUTS] = { NULL };
  if (inputs->len != 1 && (inputs->len < 3 || inputs->len > N_INPUTS))
    return give_one (tiny_tensor_new_invalid ("multihead_attention: takes query, key, value "
                                              "and perhaps a mask and one of padding, or one "
                                              "for the first three, not %u inputs",
                                              inputs->len));
  for (guint i = 0; i < MAX (inputs->len, 3); i++)
    v[i] = inputs->pdata[inputs->len == 1 ? 0 : i];
  TinyTensor *wrong = find_wrong (self, v);
  return wrong != NULL ? give_one (wrong) : attend (self, v);
}

static void
tiny_multihead_attention_layer_class_init (TinyMultiheadAttentionLayerClass *class)
{
  class->forward_many = tiny_multihead_attention_layer_forward_many;
}

static TinyTensor *
glorot (gint64 rows, gint64 columns)
{
  return tiny_uniform_around ((gint64[]){ rows, columns }, 2,
                              sqrt (6.0 / MAX ((double) rows + (double) columns, 1)));
}

static void
init_projections (TinyMultiheadAttentionLayer *self, gboolean bias)
{
  TinyModule *module = TINY_MODULE (self);
  gint64 n = self->n, three_n = 3 * n;
  if (self->is_packed) {
    tiny_module_init_parameter (module, "in_proj_weight", glorot (three_n, n));
  } else {
    tiny_module_init_parameter (module, "q_proj_weight", glorot (n, n));
    tiny_module_init_parameter (module, "k_proj_weight", glorot (n, self->n_in[1]));
    tiny_module_init_parameter (module, "v_proj_weight", glorot (n, self->n_in[2]));
  }
  if (bias)
    tiny_module_init_parameter (module, "in_proj_bias",
                                tiny_tensor_zeros (tiny_get_default_float (), &three_n, 1));
  TinyModule *out = tiny_linear_new (n, n, FALSE);
  if (bias)
    tiny_module_init_parameter (out, "bias",
                                tiny_tensor_zeros (tiny_get_default_float (), &n, 1));
  tiny_module_init_child (module, "out_proj", out);
}

TinyModule *
tiny_multihead_attention_new (gint64 n,
                              gint64 n_heads,
                              double dropout,
                              gboolean bias,
                              gint64 n_key,
                              gint64 n_value,
                              gboolean batch_first)
{
  TinyMultiheadAttentionLayer *self
      = g_object_new (tiny_multihead_attention_layer_get_type (), NULL);
  TinyModule *module = TINY_MODULE (self);
  self->n = n;
  self->n_heads = n_heads;
  self->n_in[0] = n;
  self->n_in[1] = n_key;
  self->n_in[2] = n_value;
  self->batch_first = batch_first;
  self->is_packed = n_key == n && n_value == n;
  if (n < 1 || n > G_MAXINT32 || n_heads < 1 || n % n_heads != 0)
    tiny_module_fail (module,
                      "multihead_attention: %" G_GINT64_FORMAT
                      " features cannot be shared by %" G_GINT64_FORMAT " heads",
                      n, n_heads);
  else if (n_key < 1 || n_value < 1)
    tiny_module_fail (module,
                      "multihead_attention: keys of %" G_GINT64_FORMAT
                      " and values of %" G_GINT64_FORMAT " features",
                      n_key, n_value);
  else
    init_projections (self, bias);
  if (dropout != 0)
    tiny_module_init_child (module, "dropout", tiny_dropout_new (dropout));
  return module;
}

/* ---- layers of transformers ---- */
typedef struct {
  TinyModule parent_instance;
  gboolean is_decoder, norm_first;
} TinyTransformerLayer;

TINY_DEFINE_LAYER (TinyTransformerLayer, tiny_transformer_layer)

static TinyTensor *
apply_child (TinyTransformerLayer *self, const char *name, TinyTensor *x)
{
  return tiny_module_forward (tiny_module_get_child (TINY_MODULE (self), name), x);
}

/* What a layer is applied to; masks may be NULL. */
typedef struct {
  TinyTensor *x, *memory;
  TinyTensor *masks[2], *paddings[2]; /* of x and of the encoder's result */
} Inputs;

/* Attention of @x to @other; %NULL: to itself. */
static TinyTensor *
attend_with (TinyTransformerLayer *self,
             const char *name,
             TinyTensor *x,
             TinyTensor *other,
             TinyTensor *mask,
             TinyTensor *padding)
{
  TinyModule *child = tiny_module_get_child (TINY_MODULE (self), name);
  g_autoptr (TinyTensor) query = g_object_ref_sink (x);
  TinyTensor *inputs[N_INPUTS]
      = { query, other ? other : query, other ? other : query, mask, padding };
  g_autoptr (GPtrArray) results = tiny_module_call (child, inputs, N_INPUTS);
  return tiny_tensor_new_alias (results->pdata[0]);
}

static TinyTensor *
feed_forward (TinyTransformerLayer *self, TinyTensor *x)
{
  x = apply_child (self, "activation", apply_child (self, "linear1", x));
  return apply_child (self, "linear2", apply_child (self, "dropout", x));
}

/* Part 0 attends to itself, 1 to the encoder's result, 2 is linear. */
static TinyTensor *
apply_part (TinyTransformerLayer *self, guint part, TinyTensor *x, const Inputs *in)
{
  static const char *const names[] = { "self_attn", "multihead_attn" };
  if (part == 2)
    return feed_forward (self, x);
  return attend_with (self, names[part], x, part == 0 ? NULL : in->memory, in->masks[part],
                      in->paddings[part]);
}

/* x + dropout (part (norm (x))), or norm (x + dropout (part (x))) */
static TinyTensor *
apply_with_rest (
    TinyTransformerLayer *self, guint part, guint n, TinyTensor *x, const Inputs *in)
{
  g_autofree char *norm = g_strdup_printf ("norm%u", n);
  g_autofree char *dropout = g_strdup_printf ("dropout%u", n);
  TinyTensor *y = self->norm_first ? apply_child (self, norm, x) : x;
  y = tiny_tensor_add (x, apply_child (self, dropout, apply_part (self, part, y, in)));
  return self->norm_first ? y : apply_child (self, norm, y);
}

static GPtrArray *
tiny_transformer_layer_forward_many (TinyModule *module, GPtrArray *inputs)
{
  TinyTransformerLayer *self = (TinyTransformerLayer *) module;
  guint n_attentions = self->is_decoder ? 2 : 1, most = 3 * n_attentions;
  Inputs in = { NULL };
  if (inputs->len < n_attentions || inputs->len > most || inputs->pdata[0] == NULL
      || inputs->pdata[n_attentions - 1] == NULL)
    return give_one (
        tiny_tensor_new_invalid ("transformer layer: takes %u tensors and up to %u "
                                 "masks, not %u inputs",
                                 n_attentions, most - n_attentions, inputs->len));
  in.x = inputs->pdata[0];
  in.memory = inputs->pdata[n_attentions - 1];
  for (guint i = n_attentions; i < inputs->len; i++) {
    guint which = (i - n_attentions) % n_attentions;
    *(i < 2 * n_attentions ? &in.masks[which] : &in.paddings[which]) = inputs->pdata[i];
  }
  g_autoptr (GPtrArray) kept = tiny_kept_new ();
  TinyTensor *x = in.x;
  for (guint part = 0, n = 1; part < 3; part++)
    if (part != 1 || self->is_decoder)
      x = tiny_keep (kept, apply_with_rest (self, part, n++, x, &in));
  return give_one (g_object_ref (x));
}

static void
tiny_transformer_layer_class_init (TinyTransformerLayerClass *class)
{
  class->forward_many = tiny_transformer_layer_forward_many;
}

typedef struct {
  gint64 n, n_heads, n_feedforward;
  double dropout, epsilon;
  const char *activation;
  gboolean batch_first;
} Sizes;

static TinyModule *
layer_new (const Sizes *sizes, gboolean is_decoder, gboolean norm_first)
{
  TinyTransformerLayer *self = g_object_new (tiny_transformer_layer_get_type (), NULL);
  TinyModule *module = TINY_MODULE (self);
  static const char *const attention_names[] = { "self_attn", "multihead_attn" };
  gint64 n = sizes->n;
  self->is_decoder = is_decoder;
  self->norm_first = norm_first;
  for (guint i = 0; i < (is_decoder ? 2u : 1u); i++)
    tiny_module_init_child (module, attention_names[i],
                            tiny_multihead_attention_new (n, sizes->n_heads, sizes->dropout,
                                                          TRUE, n, n, sizes->batch_first));
  tiny_module_init_child (module, "linear1", tiny_linear_new (n, sizes->n_feedforward, TRUE));
  tiny_module_init_child (module, "activation", tiny_activation_new (sizes->activation));
  tiny_module_init_child (module, "dropout", tiny_dropout_new (sizes->dropout));
  tiny_module_init_child (module, "linear2", tiny_linear_new (sizes->n_feedforward, n, TRUE));
  for (guint i = 1; i <= (is_decoder ? 3u : 2u); i++) {
    g_autofree char *norm = g_strdup_printf ("norm%u", i);
    g_autofree char *dropout = g_strdup_printf ("dropout%u", i);
    tiny_module_init_child (module, norm, tiny_layer_norm_new (&n, 1, sizes->epsilon, TRUE));
    tiny_module_init_child (module, dropout, tiny_dropout_new (sizes->dropout));
  }
  return module;
}

TinyModule *
tiny_transformer_encoder_layer_new (gint64 n,
                                    gint64 n_heads,
                                    gint64 n_feedforward,
                                    double dropout,
                                    const char *activation,
                                    double epsilon,
                                    gboolean batch_first,
                                    gboolean norm_first)
{
  const Sizes sizes = { n, n_heads, n_feedforward, dropout, epsilon, activation, batch_first };
  return layer_new (&sizes, FALSE, norm_first);
}

TinyModule *
tiny_transformer_decoder_layer_new (gint64 n,
                                    gint64 n_heads,
                                    gint64 n_feedforward,
                                    double dropout,
                                    const char *activation,
                                    double epsilon,
                                    gboolean batch_first,
                                    gboolean norm_first)
{
  const Sizes sizes = { n, n_heads, n_feedforward, dropout, epsilon, activation, batch_first };
  return layer_new (&sizes, TRUE, norm_first);
}

/* ---- encoders and decoders ---- */
typedef struct {
  TinyModule parent_instance;
} TinyTransformerStackLayer;

TINY_DEFINE_LAYER (TinyTransformerStackLayer, tiny_transformer_stack_layer)

static GPtrArray *
tiny_transformer_stack_layer_forward_many (TinyModule *self, GPtrArray *inputs)
{
  GArray *layers = tiny_module_get_entries (tiny_module_get_child (self, "layers"));
  TinyModule *norm = tiny_module_get_child (self, "norm");
  if (inputs->len < 1 || inputs->pdata[0] == NULL)
    return give_one (tiny_tensor_new_invalid ("transformer stack: the first input is NULL"));
  g_autoptr (GPtrArray) kept = tiny_kept_new ();
  g_autofree TinyTensor **v = g_memdup2 (inputs->pdata, inputs->len * sizeof *inputs->pdata);
  for (guint i = 0; i < layers->len; i++) {
    TinyModule *layer = g_array_index (layers, TinyEntry, i).child;
    g_autoptr (GPtrArray) results = tiny_module_call (layer, v, inputs->len);
    v[0] = tiny_keep (kept, tiny_tensor_new_alias (results->pdata[0]));
  }
  return give_one (norm == NULL ? g_object_ref (v[0]) : tiny_module_forward (norm, v[0]));
}

static void
tiny_transformer_stack_layer_class_init (TinyTransformerStackLayerClass *class)
{
  class->forward_many = tiny_transformer_stack_layer_forward_many;
}

TinyModule *
tiny_transformer_stack_new (TinyModule *norm)
{
  TinyModule *self = g_object_new (tiny_transformer_stack_layer_get_type (), NULL);
  tiny_module_init_child (self, "layers", tiny_sequential_new ());
  if (norm != NULL)
    tiny_module_init_child (self, "norm", norm);
  return self;
}

void
tiny_transformer_stack_append (TinyModule *self, TinyModule *layer)
{
  if (!tiny_module_can_append (self, tiny_transformer_stack_layer_get_type (), layer))
    return;
  TinyModule *layers = tiny_module_get_child (self, "layers");
  if (layer == self) {
    tiny_module_fail (self, "transformer stack: it cannot be part of itself");
    g_object_unref (layer);
    return;
  }
  tiny_sequential_append (layers, layer);
  const GError *wrong = tiny_module_get_error (layers);
  if (wrong != NULL)
    tiny_module_fail (self, "%s", wrong->message);
}
