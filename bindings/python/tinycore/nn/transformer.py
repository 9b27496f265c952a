# SPDX-License-Identifier: MIT
"""Attention and what is made of it, with PyTorch's arguments and names of parameters.

Attention is the library's; the layers of transformers are made of modules here, so that each part can be taken out, exchanged
or shared. Masks are PyTorch's: bool, where True is what may not be attended to, or floats that are added."""
from __future__ import annotations

from copy import deepcopy
from operator import index

from ..tensor import Tensor
from .containers import ModuleList
from .functional import linear
from .init import xavier_normal_
from .layer import Layer
from .layers import Dropout, LayerNorm, Linear
from .module import Module, Parameter


def causal_mask(size: int, n_keys: int = None):
    """(size, n_keys): True where the key is later than the query."""
    return Tensor.ones(size, size if n_keys is None else n_keys, dtype="bool").triu(1)


class MultiheadAttention(Layer):
    """The result and the weights of attention, of query, key and value; of one item where they have two axes."""

    out_proj: Linear
    optional = ("in_proj_weight", "in_proj_bias")

    def __init__(self, embed_dim: int, num_heads: int, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim: int = None, vdim: int = None,
                 batch_first=False, device=None, dtype=None):
        embed_dim, num_heads = index(embed_dim), index(num_heads)
        kdim, vdim = (embed_dim if one is None else index(one) for one in (kdim, vdim))
        self.take("multihead_attention_new", embed_dim, num_heads, dropout, bool(bias), kdim, vdim, bool(batch_first),
                  embed_dim=embed_dim, num_heads=num_heads, dropout=dropout, kdim=kdim, vdim=vdim,
                  head_dim=embed_dim // num_heads, batch_first=bool(batch_first))
        out = Linear.__new__(Linear, embed_dim, embed_dim, bool(bias))
        self.adopt("out_proj", out, {"in_features": embed_dim, "out_features": embed_dim, "bias": bool(bias)})
        self.bias_k, self.bias_v = (Parameter(xavier_normal_(Tensor.empty(1, 1, embed_dim))) if add_bias_kv else None for _ in "kv")
        self.add_zero_attn = bool(add_zero_attn)
        self.to(device=device, dtype=dtype)

    def extra_repr(self):
        return ""

    def forward(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None, average_attn_weights=True,
                is_causal=False) -> tuple[Tensor, Tensor | None]:
        batch = 0 if self.batch_first else 1
        is_single = query.ndim == 2
        if is_single:
            query, key, value = (one.unsqueeze(batch) for one in (query, key, value))
            key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        if is_causal and attn_mask is None:
            attn_mask = causal_mask(query.shape[1 - batch], key.shape[1 - batch])
        attend = self.attend_to_more if self.bias_k is not None or self.add_zero_attn else self.call_many
        result, mean, each = attend(query, key, value, attn_mask, key_padding_mask)
        weights = None if not need_weights else mean if average_attn_weights else each
        if is_single:
            return result.squeeze(batch), None if weights is None else weights.squeeze(0)
        return result, weights

    def attend_to_more(self, query, key, value, attn_mask, key_padding_mask) -> tuple[Tensor, Tensor, Tensor]:
        """What the library computes, with further keys and values, which no mask hides: parameters, zeros."""
        if not self.batch_first:
            query, key, value = (one.transpose(0, 1) for one in (query, key, value))
        b, n, size = query.shape
        packed, bias = self.in_proj_weight, self.in_proj_bias
        weights = packed.chunk(3) if packed is not None else (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        q, k, v = map(linear, (query, key, value), weights, (None,) * 3 if bias is None else bias.chunk(3))
        if self.bias_k is not None:
            k, v = k.cat(self.bias_k.expand(b, 1, size), dim=1), v.cat(self.bias_v.expand(b, 1, size), dim=1)
        if self.add_zero_attn:
            k, v = k.pad((0, 0, 0, 1)), v.pad((0, 0, 0, 1))
        q, k, v = (one.reshape(b, -1, self.num_heads, self.head_dim).transpose(1, 2) for one in (q, k, v))
        scores = q @ k.transpose(-2, -1) / self.head_dim ** 0.5
        for mask, shape in ((attn_mask, (1, 1) if attn_mask is None or attn_mask.ndim == 2 else (b, self.num_heads)), (key_padding_mask, (b, 1, 1))):
            if mask is not None:
                mask = mask.where(float("-inf"), 0.0) if mask.dtype.kind == "b" else mask
                scores = scores + mask.pad((0, k.shape[2] - mask.shape[-1])).reshape(*shape, *mask.shape[-2:-1] * (len(shape) == 2), k.shape[2])
        each = scores.softmax(-1).dropout(self.dropout, training=self.training)
        result = self.out_proj((each @ v).transpose(1, 2).reshape(b, n, size))
        return result if self.batch_first else result.transpose(0, 1), each.mean(1), each


MultiHeadAttention = MultiheadAttention  # as the field writes it


def activation_of(activation: Any) -> Any:
    """A function, of its name or as it is."""
    if callable(activation):
        return activation
    if activation not in ("relu", "gelu"):
        raise ValueError(f"a transformer's activation is relu, gelu or a function, not {activation!r}")
    return getattr(Tensor, activation)


class TransformerLayer(Module):
    """What encoders' and decoders' layers share: parts, each with a norm, a dropout and what it got added."""

    attentions = ()

    def __init__(self, d_model: int, nhead: int, dim_feedforward=2048, dropout=0.1, activation: str | Callable[[Tensor], Tensor] = "relu", layer_norm_eps=1e-5,
                 batch_first=False, norm_first=False, device=None, dtype=None):
        for name in self.attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first))
        self.linear1, self.dropout, self.linear2 = Linear(d_model, dim_feedforward), Dropout(dropout), Linear(dim_feedforward, d_model)
        self.activation, self.norm_first = activation_of(activation), bool(norm_first)
        numbers = range(1, len(self.attentions) + 2)
        for i in numbers:
            setattr(self, f"norm{i}", LayerNorm(d_model, layer_norm_eps))
        for i in numbers:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.to(device=device, dtype=dtype)

    def feed_forward(self, x):
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def run(self, x, *parts):
        for i, part in enumerate(parts, 1):
            norm, dropout = getattr(self, f"norm{i}"), getattr(self, f"dropout{i}")
            x = x + dropout(part(norm(x))) if self.norm_first else norm(x + dropout(part(x)))
        return x


class TransformerEncoderLayer(TransformerLayer):
    """Self-attention and two linear layers."""

    attentions = ("self_attn",)

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        def attend(x):
            return self.self_attn(x, x, x, src_key_padding_mask, False, src_mask, is_causal=is_causal)[0]
        return self.run(src, attend, self.feed_forward)


class TransformerDecoderLayer(TransformerLayer):
    """Self-attention, attention to an encoder's result, and two linear layers."""

    attentions = ("self_attn", "multihead_attn")

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None,
                tgt_is_causal=False, memory_is_causal=False):
        def attend(x):
            return self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal)[0]

        def attend_memory(x):
            return self.multihead_attn(x, memory, memory, memory_key_padding_mask, False, memory_mask,
                                       is_causal=memory_is_causal)[0]
        return self.run(tgt, attend, attend_memory, self.feed_forward)


class Stack(Module):
    """Copies of a layer one after the other, and a norm."""

    def __init__(self, layer: Module, num_layers: int, norm: Module = None):
        self.layers = ModuleList([deepcopy(layer) for _ in range(index(num_layers))])
        self.num_layers, self.norm = num_layers, norm

    def run(self, x, *others, **more):
        for layer in self.layers:
            x = layer(x, *others, **more)
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(Stack):
    """Copies of a TransformerEncoderLayer one after the other, and a norm."""

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module = None, enable_nested_tensor=False, mask_check=True):
        super().__init__(encoder_layer, num_layers, norm)

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=False):
        return self.run(src, mask, src_key_padding_mask, is_causal=bool(is_causal))


class TransformerDecoder(Stack):
    """Copies of a TransformerDecoderLayer one after the other, and a norm."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module = None):
        super().__init__(decoder_layer, num_layers, norm)

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None,
                tgt_is_causal=False, memory_is_causal=False):
        return self.run(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                        tgt_is_causal=bool(tgt_is_causal), memory_is_causal=bool(memory_is_causal))


class Transformer(Module):
    """An encoder and a decoder (Vaswani et al. 2017)."""

    def __init__(self, d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048, dropout=0.1,
                 activation: str | Callable[[Tensor], Tensor] = "relu", custom_encoder: Module = None, custom_decoder: Module = None, layer_norm_eps=1e-5, batch_first=False,
                 norm_first=False, device=None, dtype=None):
        numbers = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, device, dtype)

        def stack(kind, layer, n):
            return kind(layer(*numbers), n, LayerNorm(d_model, layer_norm_eps, device=device, dtype=dtype))
        self.encoder = custom_encoder or stack(TransformerEncoder, TransformerEncoderLayer, num_encoder_layers)
        self.decoder = custom_decoder or stack(TransformerDecoder, TransformerDecoderLayer, num_decoder_layers)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, bool(batch_first)
        for one in self.parameters():
            if one.ndim > 1:
                one.assign(Tensor.glorot_uniform(*one.shape, dtype=one.dtype, device=one.device))

    def forward(self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, src_key_padding_mask=None,
                tgt_key_padding_mask=None, memory_key_padding_mask=None, src_is_causal=False, tgt_is_causal=False,
                memory_is_causal=False):
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, tgt_is_causal,
                            memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device=None):
        """(sz, sz): minus infinity where the key is later than the query, 0 elsewhere."""
        return Tensor.full((sz, sz), float("-inf"), device=device).triu(1)
