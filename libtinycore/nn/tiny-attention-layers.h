/* SPDX-License-Identifier: MIT
 *
 * tiny-attention-layers.h: attention and transformers (Vaswani et al. 2017). */
#pragma once

#include "nn/tiny-module.h"

G_BEGIN_DECLS

/**
 * tiny_multihead_attention_new:
 * @n: features, a multiple of @n_heads
 * @n_heads: how many heads share them
 * @dropout: the part of the weights of attention that is dropped in training mode
 * @bias: whether projections have biases
 * @n_key: features of keys, such as @n
 * @n_value: features of values, such as @n
 * @batch_first: whether inputs are (B, T, E) instead of (T, B, E)
 *
 * tiny_module_call() takes query, key and value; a mask as a fourth: bool, where %TRUE is what may not be
 * attended to, or floats that are added to the scores; (T, S), (B·H, T, S), or (B, H, T, S) with 1 for
 * an axis that does not matter; and one of padded keys as a fifth, of the same kind, (B, S). Masks may be %NULL. It
 * gives the result, the weights of attention as the mean over heads (B, T, S), and those of each head (B, H, T, S).
 * tiny_module_forward() is self-attention.
 *
 * Tensors: "in_proj_weight" (3E, E), or "q_proj_weight" (E, E), "k_proj_weight" (E, @n_key) and
 * "v_proj_weight" (E, @n_value) where sizes differ, uniform as Glorot and Bengio (2010) say; "in_proj_bias"
 * (3E), zeros; a linear layer "out_proj", whose bias is zeros.
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_multihead_attention_new (gint64 n,
                                                   gint64 n_heads,
                                                   double dropout,
                                                   gboolean bias,
                                                   gint64 n_key,
                                                   gint64 n_value,
                                                   gboolean batch_first);

/**
 * tiny_transformer_encoder_layer_new:
 * @n: features, a multiple of @n_heads
 * @n_heads: heads of attention
 * @n_feedforward: features between the two linear layers
 * @dropout: the part that is dropped in training mode
 * @activation: what is between the linear layers: "relu" (tiny_activation_new())
 * @epsilon: of the normalisations: 1e-5
 * @batch_first: whether inputs are (B, T, E) instead of (T, B, E)
 * @norm_first: whether normalisations come before attention and linear layers, not after
 *
 * Self-attention and two linear layers, each with what it got added and a layer normalisation.
 * tiny_module_call() takes x, then the masks of tiny_multihead_attention_new(): one of x, one of padded x. Modules:
 * "self_attn", "linear1", "linear2", "norm1", "norm2".
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_transformer_encoder_layer_new (gint64 n,
                                                         gint64 n_heads,
                                                         gint64 n_feedforward,
                                                         double dropout,
                                                         const char *activation,
                                                         double epsilon,
                                                         gboolean batch_first,
                                                         gboolean norm_first);

/**
 * tiny_transformer_decoder_layer_new:
 * @n: features, a multiple of @n_heads
 * @n_heads: heads of attention
 * @n_feedforward: features between the two linear layers
 * @dropout: the part that is dropped in training mode
 * @activation: what is between the linear layers: "relu" (tiny_activation_new())
 * @epsilon: of the normalisations: 1e-5
 * @batch_first: whether inputs are (B, T, E) instead of (T, B, E)
 * @norm_first: whether normalisations come before attention and linear layers, not after
 *
 * As tiny_transformer_encoder_layer_new(), with attention to the encoder's result between the two.
 * tiny_module_call() takes x and that result, then a mask for x and one for the result, then one of padded x and one of
 * what is padded in the result, where %NULL is none.
 * Modules: "self_attn", "multihead_attn", "linear1", "linear2", "norm1", "norm2", "norm3".
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_transformer_decoder_layer_new (gint64 n,
                                                         gint64 n_heads,
                                                         gint64 n_feedforward,
                                                         double dropout,
                                                         const char *activation,
                                                         double epsilon,
                                                         gboolean batch_first,
                                                         gboolean norm_first);

/**
 * tiny_transformer_stack_new:
 * @norm: (transfer full) (nullable): what is applied to the result, such as a layer normalisation
 *
 * An encoder or a decoder: layers one after the other, empty at first (tiny_transformer_stack_append()). Each takes
 * the result of the one before and the same other inputs. Modules: "layers", with a number for each,
 * and "norm".
 *
 * Returns: (transfer full): a module
 *
 * Since: 0.1
 */
TINY_API TinyModule *tiny_transformer_stack_new (TinyModule *norm);

/**
 * tiny_transformer_stack_append:
 * @self: what tiny_transformer_stack_new() made
 * @layer: (transfer full): the next layer
 *
 * What cannot be appended, such as @self or %NULL, makes @self fail when it is applied; so does appending to a
 * module of another kind.
 *
 * Since: 0.1
 */
TINY_API void tiny_transformer_stack_append (TinyModule *self, TinyModule *layer);

G_END_DECLS
