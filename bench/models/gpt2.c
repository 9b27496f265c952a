/* SPDX-License-Identifier: MIT
 *
 * gpt2.c: GPT-2 (Radford et al. 2019): prefill of a prompt, and decoding of one token after it with
 * keys and values of the prompt kept. Matrices may be in fewer bits than f32: they are read as they
 * are and become f32 where they are multiplied.
 *
 * Letters: T tokens of a step, C rows of the cache, D width, H heads, d = D / H, V vocabulary. */
#include <math.h>

#include "bench/models/model.h"

enum { MAX_LAYERS = 12, POSITIONS = 1024, NEXT_TOKEN = 11, TOKEN_STRIDE = 37 };

/* What a matrix is kept in. */
typedef enum { IN_F32, IN_F16, IN_BF16, IN_Q8_0, IN_Q4_0 } Format;
static const TinyDType format_dtypes[]
    = { [IN_F32] = TINY_DTYPE_F32, [IN_F16] = TINY_DTYPE_F16, [IN_BF16] = TINY_DTYPE_BF16 };

typedef struct {
  gint64 vocabulary, width, n_heads, n_layers, context, prompt;
  gint64
      in_view; /* rows of the cache that decoding looks at: recorded anew every so many tokens */
  gboolean decode;
  Format format;
} Config;

/* (O, I) in the model's format. */
typedef struct {
  TinyTensor *data;
  gint64 n_out, n_in;
} Matrix;

typedef struct {
  TinyTensor *norm1_weight, *norm1_bias, *norm2_weight, *norm2_bias;
  Matrix attention_weight, project_weight, up_weight, down_weight;
  TinyTensor *attention_bias, *project_bias, *up_bias, *down_bias;
  TinyTensor *keys, *values; /* (C, D) */
} Layer;

typedef struct {
  Matrix tokens;         /* embeddings, (V, D) */
  TinyTensor *positions; /* … of places, (1024, D) */
  TinyTensor *norm_weight, *norm_bias;
  Layer layers[MAX_LAYERS];
} Parts;

static gint64
width_of (TinyTensor *x)
{
  guint n;
  const gint64 *shape = tiny_tensor_get_shape (x, &n);
  return n > 0 ? shape[n - 1] : 0;
}

/* As numbers to calculate with. */
static TinyTensor *
numbers (const Config *config, const Matrix *matrix)
{
  gint64 shape[] = { matrix->n_out, matrix->n_in };
  if (config->format < IN_Q8_0)
    return tiny_tensor_cast (matrix->data, TINY_DTYPE_F32);
  TinyQuant quant = config->format == IN_Q8_0 ? TINY_QUANT_Q8_0 : TINY_QUANT_Q4_0;
  return tiny_tensor_dequantize (matrix->data, quant, shape, 2);
}

static TinyTensor *
linear (const Config *config, TinyTensor *x, const Matrix *weight, TinyTensor *bias)
{
  return tiny_tensor_linear (x, numbers (config, weight), bias);
}

/* Columns @i * D … of (T, 3 D), as (T, D). */
static TinyTensor *
part_of (TinyTensor *qkv, gint64 i)
{
  gint64 width = width_of (qkv) / 3;
  return tiny_tensor_slice (qkv, 1, i * width, (i + 1) * width, 1);
}

/* (N, D) to (H, N, d) */
static TinyTensor *
heads (TinyTensor *x, gint64 n_heads)
{
  gint64 width = width_of (x);
  x = tiny_tensor_reshape (x, (gint64[]){ -1, n_heads, width / n_heads }, 3);
  return tiny_tensor_permute (x, (gint[]){ 1, 0, 2 }, 3);
}

/* softmax (q kᵀ / √d where @sees, else nothing) v: q (T, D), k and v (N, D), @sees (T, N). */
static TinyTensor *
attention (const Config *config, TinyTensor *q, TinyTensor *k, TinyTensor *v, TinyTensor *sees)
{
  double scale = 1 / sqrt ((double) (config->width / config->n_heads));
  TinyTensor *scores = tiny_tensor_matmul (
      heads (q, config->n_heads), tiny_tensor_transpose (heads (k, config->n_heads), 1, 2));
  scores = tiny_tensor_where (sees, tiny_tensor_mul_number (scores, scale),
                              tiny_tensor_scalar_float (-INFINITY));
  TinyTensor *mixed
      = tiny_tensor_matmul (tiny_tensor_softmax (scores, -1), heads (v, config->n_heads));
  mixed = tiny_tensor_permute (mixed, (gint[]){ 1, 0, 2 }, 3);
  return tiny_tensor_reshape (mixed, (gint64[]){ -1, config->width }, 2);
}

/* 0 … n-1 as a column (n, 1) or a row (1, n) */
static TinyTensor *
counter (gint64 n, guint axis)
{
  return tiny_tensor_unsqueeze (tiny_tensor_arange (TINY_DTYPE_I32, 0, (double) n, 1),
                                (gint) axis);
}

/* Puts the T new rows into the cache, after which it holds what the prompt left and them. */
static gboolean
remember (const Config *config,
          TinyTensor *cache,
          TinyTensor *rows,
          TinyTensor *position,
          GError **error)
{
  gint64 rest = config->context - config->prompt;
  TinyTensor *value;
  if (config->decode)
    value = tiny_tensor_where (tiny_tensor_eq (counter (config->context, 1), position), rows,
                               cache);
  else
    value = tiny_tensor_pad (rows, (gint64[]){ 0, rest, 0, 0 }, 4, "constant", 0);
  return tiny_tensor_assign (cache, value, error);
}

/* x (T, D) after one layer. */
static TinyTensor *
layer_forward (const Config *config,
               Layer *layer,
               TinyTensor *x,
               TinyTensor *position,
               TinyTensor *sees,
               GError **error)
{
  g_autoptr (TinyTensor) qkv = g_object_ref_sink (
      linear (config,
              tiny_tensor_layer_norm (x, &config->width, 1, layer->norm1_weight,
                                      layer->norm1_bias, 1e-5),
              &layer->attention_weight, layer->attention_bias));
  if (!remember (config, layer->keys, part_of (qkv, 1), position, error)
      || !remember (config, layer->values, part_of (qkv, 2), position, error))
    return NULL;
  TinyTensor *k = config->decode ? tiny_tensor_slice (layer->keys, 0, 0, config->in_view, 1)
                                 : part_of (qkv, 1);
  TinyTensor *v = config->decode ? tiny_tensor_slice (layer->values, 0, 0, config->in_view, 1)
                                 : part_of (qkv, 2);
  TinyTensor *mixed = attention (config, part_of (qkv, 0), k, v, sees);
  g_autoptr (TinyTensor) middle = g_object_ref_sink (
      tiny_tensor_add (x, linear (config, mixed, &layer->project_weight, layer->project_bias)));
  TinyTensor *up
      = linear (config,
                tiny_tensor_layer_norm (middle, &config->width, 1, layer->norm2_weight,
                                        layer->norm2_bias, 1e-5),
                &layer->up_weight, layer->up_bias);
  TinyTensor *down
      = linear (config, tiny_tensor_gelu (up, "tanh"), &layer->down_weight, layer->down_bias);
  return g_object_ref_sink (tiny_tensor_add (middle, down));
}

/* tokens (T) and, for decoding, the position (1) they are at, to the scores (1, V) of what follows. */
static gboolean
forward (TinyTensor *const *inputs,
         guint n_inputs,
         TinyTensor **outputs,
         guint n_outputs,
         gpointer user_data,
         GError **error)
{
  Model *self = user_data;
  const Config *config = self->config;
  Parts *parts = self->parts;
  TinyTensor *position = config->decode ? inputs[1] : NULL;
  g_autoptr (TinyTensor) sees = g_object_ref_sink (
      config->decode
          ? tiny_tensor_le (counter (config->in_view, 0), position)
          : tiny_tensor_le (counter (config->prompt, 0), counter (config->prompt, 1)));
  TinyTensor *positions = parts->positions;
  TinyTensor *places = config->decode ? tiny_tensor_index_select (positions, 0, position)
                                      : tiny_tensor_slice (positions, 0, 0, config->prompt, 1);
  g_autoptr (TinyTensor) x = g_object_ref_sink (tiny_tensor_add (
      tiny_tensor_index_select (numbers (config, &parts->tokens), 0, inputs[0]), places));
  g_autoptr (GPtrArray) results = g_ptr_array_new ();
  for (gint64 i = 0; i < config->n_layers; i++) {
    TinyTensor *next = layer_forward (config, &parts->layers[i], x, position, sees, error);
    if (next == NULL)
      return FALSE;
    g_object_unref (x);
    x = next;
    g_ptr_array_add (results, parts->layers[i].keys);
    g_ptr_array_add (results, parts->layers[i].values);
  }
  TinyTensor *last = tiny_tensor_slice (x, 0, -1, TINY_SLICE_END, 1);
  outputs[0] = g_object_ref_sink (
      linear (config,
              tiny_tensor_layer_norm (last, &config->width, 1, parts->norm_weight,
                                      parts->norm_bias, 1e-5),
              &parts->tokens, NULL));
  g_ptr_array_add (results, outputs[0]);
  return tiny_tensor_realize_many ((TinyTensor *const *) results->pdata, results->len, error);
}

/* ---- making ---- */

static Matrix
matrix (Model *self, const char *layer, const char *name, gint64 rows, gint64 columns)
{
  const Config *config = self->config;
  g_autofree char *whole = g_strconcat (layer, name, NULL);
  gint64 shape[] = { rows, columns };
  g_autoptr (TinyTensor) exact = g_object_ref_sink (bench_tensor (whole, shape, 2, 0, 0.07));
  TinyTensor *data;
  if (config->format < IN_Q8_0) {
    data = g_object_ref_sink (tiny_tensor_cast (exact, format_dtypes[config->format]));
    tiny_tensor_realize (data, NULL); /* what stops it stops the model */
  } else {
    data = tiny_tensor_quantize (
        exact, config->format == IN_Q8_0 ? TINY_QUANT_Q8_0 : TINY_QUANT_Q4_0, NULL);
  }
  return (Matrix){ model_own_object (self, data), rows, columns };
}

static TinyTensor *
vector (Model *self, const char *layer, const char *name, gint64 n, double offset)
{
  g_autofree char *whole = g_strconcat (layer, name, NULL);
  return model_weight (self, whole, &n, 1, offset, 0.07);
}

static TinyTensor *
new_cache (Model *self, const Config *config)
{
  gint64 shape[] = { config->context, config->width };
  return model_own (self,
                    tiny_tensor_contiguous (tiny_tensor_zeros (TINY_DTYPE_F32, shape, 2)));
}

static void
make_layer (Model *self, Layer *layer, gint64 i)
{
  const Config *config = self->config;
  gint64 D = config->width;
  g_autofree char *at = g_strdup_printf ("h.%d.", (int) i);
  *layer = (Layer){
    .norm1_weight = vector (self, at, "norm1.weight", D, 1),
    .norm1_bias = vector (self, at, "norm1.bias", D, 0),
    .norm2_weight = vector (self, at, "norm2.weight", D, 1),
    .norm2_bias = vector (self, at, "norm2.bias", D, 0),
    .attention_weight = matrix (self, at, "attention.weight", 3 * D, D),
    .attention_bias = vector (self, at, "attention.bias", 3 * D, 0),
    .project_weight = matrix (self, at, "project.weight", D, D),
    .project_bias = vector (self, at, "project.bias", D, 0),
    .up_weight = matrix (self, at, "up.weight", 4 * D, D),
    .up_bias = vector (self, at, "up.bias", 4 * D, 0),
    .down_weight = matrix (self, at, "down.weight", D, 4 * D),
    .down_bias = vector (self, at, "down.bias", D, 0),
    .keys = new_cache (self, config),
    .values = new_cache (self, config),
  };
}

/* Runs the prompt once, which fills the caches. */
static gboolean
read_prompt (Model *self, TinyTensor *prompt, GError **error)
{
  const Config *config = self->config;
  Config prefill = *config;
  Model reader = *self;
  g_autoptr (TinyTensor) ignored = NULL;
  prefill.decode = FALSE;
  reader.config = &prefill;
  return forward (&prompt, 1, &ignored, 1, &reader, error);
}

static gboolean
set_up (Model *self, GError **error)
{
  const Config *config = self->config;
  Parts *parts = self->parts = g_new0 (Parts, 1);
  parts->tokens = matrix (self, "", "tokens", config->vocabulary, config->width);
  parts->positions
      = model_weight (self, "positions", (gint64[]){ POSITIONS, config->width }, 2, 0, 0.07);
  parts->norm_weight = vector (self, "", "norm.weight", config->width, 1);
  parts->norm_bias = vector (self, "", "norm.bias", config->width, 0);
  for (gint64 i = 0; i < config->n_layers; i++)
    make_layer (self, &parts->layers[i], i);
  g_autofree gint32 *ids = g_new (gint32, config->prompt);
  for (gint64 i = 0; i < config->prompt; i++)
    ids[i] = (gint32) (i * TOKEN_STRIDE % config->vocabulary);
  TinyTensor *prompt
      = model_own (self, tiny_tensor_new_from_data (NULL, TINY_DTYPE_I32, &config->prompt, 1,
                                                    ids, sizeof *ids * (gsize) config->prompt));
  self->step = forward;
  self->inputs[self->n_inputs++] = prompt;
  if (!config->decode)
    return TRUE;
  gint32 next = NEXT_TOKEN, position = (gint32) config->prompt;
  self->inputs[0]
      = model_own (self, tiny_tensor_new_from_data (NULL, TINY_DTYPE_I32, (gint64[]){ 1 }, 1,
                                                    &next, sizeof next));
  self->inputs[self->n_inputs++]
      = model_own (self, tiny_tensor_new_from_data (NULL, TINY_DTYPE_I32, (gint64[]){ 1 }, 1,
                                                    &position, sizeof position));
  return read_prompt (self, prompt, error);
}

#define SMALL(format)                                                                          \
  {                                                                                            \
    101, 64, 4, 2, 16, 7, 12, TRUE, format                                                     \
  }
static const Config small_f32 = SMALL (IN_F32), small_f16 = SMALL (IN_F16),
                    small_bf16 = SMALL (IN_BF16), small_q8_0 = SMALL (IN_Q8_0),
                    small_q4_0 = SMALL (IN_Q4_0);
#define DECODE_124M(format)                                                                    \
  {                                                                                            \
    50257, 768, 12, 12, 256, 128, 192, TRUE, format                                            \
  }
static const Config decode_124m = DECODE_124M (IN_F32), decode_f16 = DECODE_124M (IN_F16),
                    decode_bf16 = DECODE_124M (IN_BF16), decode_q8_0 = DECODE_124M (IN_Q8_0),
                    decode_q4_0 = DECODE_124M (IN_Q4_0);
static const Config prefill_124m = { 50257, 768, 12, 12, 256, 128, 192, FALSE, IN_F32 };
static const Config prefill_tiny = { 101, 24, 3, 2, 16, 7, 12, FALSE, IN_F32 };
static const Config decode_tiny = { 101, 24, 3, 2, 16, 7, 12, TRUE, IN_F32 };

const ModelCase gpt2_cases[] = {
  { "gpt2-prefill", &prefill_124m, set_up, 2 * 85.0e6 * 128 + 2 * 38.6e6, 0 },
  { "gpt2-decode", &decode_124m, set_up, 2 * 124.4e6, 4 * 124.4e6 },
  { "gpt2-decode:f16", &decode_f16, set_up, 2 * 124.4e6, 2 * 124.4e6 },
  { "gpt2-decode:bf16", &decode_bf16, set_up, 2 * 124.4e6, 2 * 124.4e6 },
  { "gpt2-decode:q8_0", &decode_q8_0, set_up, 2 * 124.4e6, 34.0 / 32 * 124.4e6 },
  { "gpt2-decode:q4_0", &decode_q4_0, set_up, 2 * 124.4e6, 18.0 / 32 * 124.4e6 },
  { "gpt2-small-decode", &small_f32, set_up },
  { "gpt2-small-decode:f16", &small_f16, set_up },
  { "gpt2-small-decode:bf16", &small_bf16, set_up },
  { "gpt2-small-decode:q8_0", &small_q8_0, set_up },
  { "gpt2-small-decode:q4_0", &small_q4_0, set_up },
  { "gpt2-tiny-prefill", &prefill_tiny, set_up },
  { "gpt2-tiny-decode", &decode_tiny, set_up },
  { NULL },
};
