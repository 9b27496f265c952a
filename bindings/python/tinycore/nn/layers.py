# SPDX-License-Identifier: MIT
"""The layers there are, under PyTorch's and tinygrad's names."""
from math import sqrt
from operator import index

from ..library import Tiny
from ..tensor import Base, Tensor
from .module import Layer, Module, Parameter


class Linear(Layer):
    """x @ weightᵀ + bias."""

    def __init__(self, in_features, out_features, bias=True):
        self.take(Tiny.linear_new(index(in_features), index(out_features), bool(bias)),
                  in_features=in_features, out_features=out_features, bias=bool(bias))


class Embedding(Layer):
    """Rows of a table at integer positions."""

    def __init__(self, num_embeddings, embedding_dim):
        self.take(Tiny.embedding_new(index(num_embeddings), index(embedding_dim)),
                  num_embeddings=num_embeddings, embedding_dim=embedding_dim)


class Dropout(Layer):
    """Zeroes elements with probability p in training mode."""

    def __init__(self, p=0.5):
        self.take(Tiny.dropout_new(p), p=p)


# ---- convolutions ----
def sizes_of(size, n, name):
    """One number for all directions, or one for each."""
    sizes = [index(one) for one in size] if isinstance(size, (list, tuple)) else [index(size)] * n
    if len(sizes) != n:
        raise ValueError(f"{name}: {size} are not {n} sizes")
    return sizes


class Convolution(Module):
    """Windows of images times weights, uniform at first over ±1 / sqrt (fan-in)."""

    n, is_transposed = None, False

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, *settings, **more):
        self.make(in_channels, out_channels, kernel_size, stride, padding, *settings, **more)

    def make_weights(self, shape, n_out, bias):
        fan_in = 1
        for size in shape[1:]:
            fan_in *= size
        bound = 1 / sqrt(fan_in) if fan_in > 0 else 0
        self.weight = Parameter(Tensor.uniform(*shape, low=-bound, high=bound))
        self.bias = Parameter(Tensor.uniform(n_out, low=-bound, high=bound)) if bias else None

    def check_groups(self, in_channels, out_channels, groups):
        name = type(self).__name__
        in_channels, out_channels, groups = index(in_channels), index(out_channels), index(groups)
        if groups < 1 or in_channels % groups != 0 or out_channels % groups != 0:
            raise ValueError(f"{name}: {groups} groups do not divide {in_channels} and {out_channels} channels")
        return in_channels, out_channels, groups

    def make(self, in_channels, out_channels, kernel_size, stride, padding, dilation=1, groups=1, bias=True):
        in_channels, out_channels, self.groups = self.check_groups(in_channels, out_channels, groups)
        self.kernel_size = tuple(sizes_of(kernel_size, self.n, type(self).__name__))
        if padding == "same":
            steps = sizes_of(dilation, self.n, type(self).__name__)
            if stride not in (1, (1,) * self.n):
                raise ValueError(f"{type(self).__name__}: padding of the same size wants a stride of 1, not {stride}")
            padding = []
            for size, step in reversed(list(zip(self.kernel_size, steps))):
                padding += [step * (size - 1) // 2, step * (size - 1) - step * (size - 1) // 2]
        self.stride, self.padding, self.dilation = stride, 0 if padding == "valid" else padding, dilation
        self.make_weights((out_channels, in_channels // self.groups, *self.kernel_size), out_channels, bias)

    def forward(self, x):
        function = getattr(x, f"conv{self.n}d")
        return function(self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

    def __repr__(self):
        return f"{type(self).__name__}(weight={self.weight.shape}, stride={self.stride}, padding={self.padding})"


class Conv1d(Convolution):
    """The convolution of (B, C, X)."""

    n = 1


class Conv2d(Convolution):
    """The convolution of images (B, C, Y, X)."""

    n = 2


class Conv3d(Convolution):
    """The convolution of (B, C, Z, Y, X)."""

    n = 3


class TransposedConvolution(Convolution):
    """Each element spread over a window."""

    def make(self, in_channels, out_channels, kernel_size, stride, padding, output_padding=0, groups=1, bias=True, dilation=1):
        in_channels, out_channels, self.groups = self.check_groups(in_channels, out_channels, groups)
        self.kernel_size = tuple(sizes_of(kernel_size, self.n, type(self).__name__))
        self.stride, self.padding, self.output_padding, self.dilation = stride, padding, output_padding, dilation
        self.make_weights((in_channels, out_channels // self.groups, *self.kernel_size), out_channels, bias)

    def forward(self, x):
        function = getattr(x, f"conv_transpose{self.n}d")
        return function(self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation)


class ConvTranspose1d(TransposedConvolution):
    """The transposed convolution of (B, C, X)."""

    n = 1


class ConvTranspose2d(TransposedConvolution):
    """The transposed convolution of images (B, C, Y, X)."""

    n = 2


class ConvTranspose3d(TransposedConvolution):
    """The transposed convolution of (B, C, Z, Y, X)."""

    n = 3


# ---- norms ----
class BatchNorm(Layer):
    """Each channel to mean 0 and variance 1 over the batch, or by running statistics."""

    def __init__(self, num_features, eps=1e-5, affine=True, track_running_stats=True, momentum=0.1):
        self.take(Tiny.batch_norm_new(index(num_features), eps, momentum, bool(affine), bool(track_running_stats)),
                  num_features=num_features, eps=eps)


class BatchNorm2d(BatchNorm):
    """BatchNorm with PyTorch's order of arguments where the third is a number."""

    def __init__(self, num_features, eps=1e-5, *settings, **more):
        if settings and not isinstance(settings[0], bool):
            more["momentum"], settings = settings[0], settings[1:]
        super().__init__(num_features, eps, *settings, **more)


BatchNorm1d = BatchNorm3d = BatchNorm2d


class GroupNorm(Layer):
    """Each group of channels of each item to mean 0 and variance 1."""

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True):
        self.take(Tiny.group_norm_new(index(num_groups), index(num_channels), eps, bool(affine)), num_groups=num_groups,
                  num_channels=num_channels)


class InstanceNorm(Layer):
    """Each channel of each item to mean 0 and variance 1."""

    def __init__(self, num_features, eps=1e-5, affine=True):
        self.take(Tiny.instance_norm_new(index(num_features), eps, bool(affine)), num_features=num_features)


class LayerNorm(Layer):
    """The last axes together to mean 0 and variance 1."""

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True):
        shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
        self.take(Tiny.layer_norm_new(shape, eps, bool(elementwise_affine)), normalized_shape=tuple(shape))


class LayerNorm2d(Layer):
    """The channels of each place of an image to mean 0 and variance 1."""

    def __init__(self, num_channels, eps=1e-5, elementwise_affine=True):
        self.take(Tiny.layer_norm2d_new(index(num_channels), eps, bool(elementwise_affine)), num_channels=num_channels)


class RMSNorm(Layer):
    """Divided by the root of the mean square of the last axis."""

    def __init__(self, dim, eps=1e-6, elementwise_affine=True):
        self.take(Tiny.rms_norm_new(index(dim), eps, bool(elementwise_affine)), dim=dim)


# ---- recurrent ----
class Recurrent(Layer):
    """Results and states at the end, from inputs and states at the start."""

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False):
        self.take(getattr(Tiny, self.make)(index(input_size), index(hidden_size), index(num_layers), bool(bias), bool(batch_first),
                                  dropout, bool(bidirectional)), input_size=input_size, hidden_size=hidden_size)


class LSTM(Recurrent):
    """Long short-term memory: y, (h, c) of x, or of x, (h, c)."""

    make = "lstm_new"

    def forward(self, x, state=None):
        y, h, c = self.call_many(x, *(state or ()))
        return y, (h, c)


class GRU(Recurrent):
    """Gated recurrent units: y, h of x, or of x, h."""

    make = "gru_new"

    def forward(self, x, state=None):
        y, h = self.call_many(x, *(() if state is None else (state,)))
        return y, h


class LSTMCell(Layer):
    """One time of an LSTM: h, c of x, or of x, (h, c)."""

    def __init__(self, input_size, hidden_size, bias=True):
        self.take(Tiny.lstm_cell_new(index(input_size), index(hidden_size), bool(bias)), input_size=input_size,
                  hidden_size=hidden_size)

    def forward(self, x, state=None):
        h, c = self.call_many(x, *(state or ()))
        return h, c


class GRUCell(Layer):
    """One time of a GRU: h of x, or of x, h."""

    def __init__(self, input_size, hidden_size, bias=True):
        self.take(Tiny.gru_cell_new(index(input_size), index(hidden_size), bool(bias)), input_size=input_size,
                  hidden_size=hidden_size)

    def forward(self, x, state=None):
        return self.call_many(x, *(() if state is None else (state,)))[0]


# ---- attention ----
class MultiheadAttention(Layer):
    """The result and the weights of attention, of query, key and value."""

    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, kdim=None, vdim=None, batch_first=False):
        embed_dim = index(embed_dim)
        self.take(Tiny.multihead_attention_new(embed_dim, index(num_heads), dropout, bool(bias), index(kdim or embed_dim),
                                               index(vdim or embed_dim), bool(batch_first)),
                  embed_dim=embed_dim, num_heads=num_heads)

    def forward(self, query, key, value, attn_mask=None):
        result, weights = self.call_many(query, key, value, *(() if attn_mask is None else (attn_mask,)))
        return result, weights


class TransformerLayer(Layer):
    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation="relu", layer_norm_eps=1e-5,
                 batch_first=False, norm_first=False):
        self.take(getattr(Tiny, self.make)(index(d_model), index(nhead), index(dim_feedforward), dropout, activation, layer_norm_eps,
                                  bool(batch_first), bool(norm_first)), d_model=d_model, nhead=nhead)


class TransformerEncoderLayer(TransformerLayer):
    """Self-attention and two linear layers."""

    make = "transformer_encoder_layer_new"

    def forward(self, src, src_mask=None):
        return self.call_many(src, *(() if src_mask is None else (src_mask,)))[0]


class TransformerDecoderLayer(TransformerLayer):
    """Self-attention, attention to an encoder's result, and two linear layers."""

    make = "transformer_decoder_layer_new"

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None):
        if memory_mask is not None and tgt_mask is None:
            raise NotImplementedError("TransformerDecoderLayer: a mask for memory alone")
        masks = [mask for mask in (tgt_mask, memory_mask) if mask is not None]
        return self.call_many(tgt, memory, *masks)[0]


# ---- containers ----
class Sequential(Module):
    """Modules and functions one after the other."""

    def __init__(self, *modules):
        if len(modules) == 1 and isinstance(modules[0], (list, tuple)):
            modules = modules[0]
        self.n = 0
        for one in modules:
            self.append(one)

    def append(self, module):
        if not callable(module):
            raise TypeError(f"Sequential: {type(module).__name__} cannot be called")
        setattr(self, str(self.n), module)
        self.n += 1
        return self

    def __iter__(self):
        return (getattr(self, str(i)) for i in range(self.n))

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return list(self)[i]

    def forward(self, x):
        for one in self:
            x = one(x)
        return x


class ModuleList(Module):
    """Modules by number."""

    def __init__(self, modules=()):
        self.n = 0
        for one in modules:
            self.append(one)

    append, __iter__, __len__, __getitem__ = Sequential.append, Sequential.__iter__, Sequential.__len__, Sequential.__getitem__


# ---- functions as modules ----
def function_module(name, method, *names, **defaults):
    """A module without parameters that calls a tensor's method."""
    def initialise(self, *given, **more):
        if len(given) > len(names):
            raise TypeError(f"{name} takes {len(names)} arguments, not {len(given)}")
        unknown = set(more) - set(names) - {"inplace"}
        if unknown:
            raise TypeError(f"{name} has no argument {sorted(unknown)[0]}")
        self.settings = {**defaults, **dict(zip(names, given)), **{key: value for key, value in more.items() if key in names}}

    def forward(self, *inputs):
        return getattr(inputs[0], method)(*inputs[1:], **self.settings)

    def describe(self):
        return f"{name}({', '.join(f'{key}={value}' for key, value in self.settings.items())})"

    return type(name, (Module,), {"__init__": initialise, "forward": forward, "__repr__": describe,
                                  "__doc__": f"Tensor.{method}() as a module.", "__module__": __name__})


FUNCTIONS = {
    "ReLU": ("relu",), "Sigmoid": ("sigmoid",), "Tanh": ("tanh",), "SiLU": ("silu",), "Softplus": ("softplus",),
    "ReLU6": ("relu6",), "Hardswish": ("hardswish",), "Hardsigmoid": ("hardsigmoid",), "Mish": ("mish",), "ELU": ("elu", "alpha"),
    "LeakyReLU": ("leaky_relu", "negative_slope"), "GELU": ("gelu", "approximate"), "SELU": ("selu",), "CELU": ("celu", "alpha"),
    "Softsign": ("softsign",), "LogSigmoid": ("logsigmoid",),
    "Softmax": ("softmax", "dim"), "LogSoftmax": ("log_softmax", "dim"), "Flatten": ("flatten", "start_dim", "end_dim"),
    "MaxPool1d": ("max_pool1d", "kernel_size", "stride", "padding", "dilation"),
    "MaxPool2d": ("max_pool2d", "kernel_size", "stride", "padding", "dilation"),
    "AvgPool1d": ("avg_pool1d", "kernel_size", "stride", "padding"),
    "AvgPool2d": ("avg_pool2d", "kernel_size", "stride", "padding"),
    "AdaptiveAvgPool2d": ("adaptive_avg_pool2d", "output_size"), "AdaptiveMaxPool2d": ("adaptive_max_pool2d", "output_size"),
    "Unflatten": ("unflatten", "dim", "sizes"),
    "CrossEntropyLoss": ("cross_entropy", "weight", "ignore_index", "reduction", "label_smoothing"),
    "NLLLoss": ("nll_loss", "weight", "ignore_index", "reduction"), "MSELoss": ("mse_loss", "reduction"),
    "L1Loss": ("l1_loss", "reduction"), "SmoothL1Loss": ("smooth_l1_loss", "reduction", "beta"),
    "HuberLoss": ("huber_loss", "reduction", "delta"), "KLDivLoss": ("kl_div", "reduction", "log_target"),
    "BCELoss": ("binary_crossentropy", "weight", "reduction"),
    "BCEWithLogitsLoss": ("binary_crossentropy_logits", "weight", "reduction", "pos_weight"),
}
DEFAULTS = {"Flatten": {"start_dim": 1}}
for name, (method, *names) in FUNCTIONS.items():
    if hasattr(Tensor, method):
        globals()[name] = function_module(name, method, *names, **DEFAULTS.get(name, {}))
del name, method, names


class Identity(Module):
    """Gives its input."""

    def __init__(self, *ignored, **more):
        pass

    def forward(self, x):
        return x
