# SPDX-License-Identifier: MIT
"""The layers there are, under PyTorch's and tinygrad's names."""
from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, overload

from ..context import no_grad
from ..errors import named_as
from ..tensor import Tensor
from .functional import bilinear, check_padding, embedding_bag, same_padding
from .layer import Layer
from .module import Module, Parameter


class Linear(Layer):
    """x @ weightᵀ + bias."""

    weight: Tensor
    bias: Tensor

    def __init__(self, in_features: int, out_features: int, bias=True, device=None, dtype=None):
        in_features, out_features, bias = index(in_features), index(out_features), bool(bias)
        self.take("linear_new", in_features, out_features, bias, device=device, dtype=dtype,
                  in_features=in_features, out_features=out_features, bias=bias)


class Embedding(Layer):
    """Rows of a table at integer positions. The row at @padding_idx is zeros at first and gets no gradient."""

    n_plain, unless = 2, {"padding_idx": (None,)}

    weight: Tensor

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int = None, max_norm: None = None, norm_type=2.0, scale_grad_by_freq=False,
                 sparse=False, device=None, dtype=None):
        if max_norm is not None or scale_grad_by_freq:
            raise NotImplementedError("Embedding: max_norm and scale_grad_by_freq are not there")
        n, size = index(num_embeddings), index(embedding_dim)
        if padding_idx is not None and not -n <= index(padding_idx) < n:
            raise ValueError(f"Embedding: there is no row {padding_idx} of {n}")
        padding_idx = None if padding_idx is None else index(padding_idx) % n
        self.take("embedding_new", n, size, device=device, dtype=dtype, num_embeddings=n, embedding_dim=size,
                  padding_idx=padding_idx)
        if padding_idx is not None:
            self.weight.assign((Tensor.arange(n) != padding_idx).unsqueeze(1).where(self.weight.detach(), 0.0))

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze=True, padding_idx: int = None) -> Self:
        """One with the rows of a tensor, which stay as they are if @freeze."""
        layer = cls(*embeddings.shape, padding_idx)
        layer.weight = embeddings.detach().requires_grad_(not freeze)
        return layer

    def forward(self, input):
        found = named_as("embedding", super().forward, input)
        if self.padding_idx is None:
            return found
        return (input == self.padding_idx).unsqueeze(-1).where(found.detach(), found)


class EmbeddingBag(Module):
    """The sum, mean or largest of rows of a table for each bag of integers: functional.embedding_bag() as a module."""

    weight: Tensor

    def __init__(self, num_embeddings: int, embedding_dim: int, max_norm: None = None, norm_type=2.0, scale_grad_by_freq=False, mode="mean",
                 sparse=False, include_last_offset=False, padding_idx: int = None, device=None, dtype=None):
        self.num_embeddings, self.embedding_dim, self.mode, self.padding_idx = index(num_embeddings), index(embedding_dim), mode, padding_idx
        self.include_last_offset, self.refused = include_last_offset, {"max_norm": max_norm, "scale_grad_by_freq": scale_grad_by_freq}
        self.weight = Parameter(Tensor.randn(num_embeddings, embedding_dim, dtype=dtype, device=device))

    def forward(self, input, offsets: Tensor = None, per_sample_weights: Tensor = None):
        return embedding_bag(input, self.weight, offsets, mode=self.mode, per_sample_weights=per_sample_weights,
                             include_last_offset=self.include_last_offset, padding_idx=self.padding_idx, **self.refused)

    def extra_repr(self):
        return f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode}" + ("" if self.padding_idx is None else f", padding_idx={self.padding_idx}")


class Dropout(Layer):
    """Zeroes elements with probability p in training mode."""

    def __init__(self, p=0.5, inplace=False):
        self.take("dropout_new", p, p=p, inplace=bool(inplace))


class PReLU(Layer):
    """x where it is positive, a slope that is learnt times x elsewhere."""

    weight: Tensor

    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None):
        self.take("prelu_new", index(num_parameters), init, device=device, dtype=dtype, num_parameters=num_parameters)


# ---- convolutions ----
def sizes_of(size, n, name):
    """One number for all directions, or one for each."""
    sizes = tuple(index(one) for one in size) if isinstance(size, (list, tuple)) else (index(size),) * n
    if len(sizes) != n:
        raise ValueError(f"{name}: {size} are not {n} sizes")
    return sizes


USUAL = {"padding": (0, (0,), (0, 0), (0, 0, 0)), "output_padding": ((0,), (0, 0), (0, 0, 0)), "dilation": ((1,), (1, 1), (1, 1, 1)),
         "groups": (1,), "padding_mode": ("zeros",)}  # which are not worth a word


class Convolution(Layer):
    """Windows of images times weights, uniform at first over ±1 / sqrt (fan-in)."""

    n, n_plain, unless = None, 2, {**USUAL, "bias": (True,)}
    weight: Tensor
    bias: Tensor

    def __init__(self, in_channels: int, out_channels: int, kernel_size, stride=1, padding: int | Sequence[int] | str = 0, dilation=1, groups=1, bias=True,
                 padding_mode="zeros", device=None, dtype=None):
        name = type(self).__name__
        kernel_size, stride, dilation = (sizes_of(one, self.n, name) for one in (kernel_size, stride, dilation))
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(f"{name}: “{padding_mode}” is none of zeros, reflect, replicate, circular")
        if isinstance(padding, str):
            check_padding(padding, stride, name)
            around = same_padding(kernel_size, dilation) if padding == "same" else [0] * self.n
        elif isinstance(padding, (list, tuple)) and len(padding) == 2 * self.n:  # tinygrad's: both sides of each
            around = padding = tuple(map(index, padding))
        else:
            around = padding = sizes_of(padding, self.n, name)
        self.take("conv_new", self.n, index(in_channels), index(out_channels), kernel_size, stride,
                  list(around) if padding_mode == "zeros" else [0], dilation, index(groups), bool(bias), device=device,
                  dtype=dtype, in_channels=in_channels, out_channels=out_channels, kernel_size=kernel_size, stride=stride,
                  padding=padding, dilation=dilation, groups=groups, bias=bool(bias), padding_mode=padding_mode)
        if len(around) == self.n:
            around = [number for one in reversed(around) for number in (one, one)]
        self.around = list(around)

    def forward(self, x):
        if self.padding_mode != "zeros":
            x = x.pad(self.around, self.padding_mode)
        return super().forward(x)


class Conv1d(Convolution):
    """The convolution of (B, C, X)."""

    n = 1


class Conv2d(Convolution):
    """The convolution of images (B, C, Y, X)."""

    n = 2


class Conv3d(Convolution):
    """The convolution of (B, C, Z, Y, X)."""

    n = 3


class TransposedConvolution(Layer):
    """Each element spread over a window."""

    n, n_plain, unless = None, 2, {**USUAL, "bias": (True,)}
    weight: Tensor
    bias: Tensor

    def __init__(self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True,
                 dilation=1, device=None, dtype=None):
        sizes = [sizes_of(one, self.n, type(self).__name__) for one in (kernel_size, stride, padding, output_padding, dilation)]
        self.take("conv_transpose_new", self.n, index(in_channels), index(out_channels), *sizes, index(groups), bool(bias),
                  device=device, dtype=dtype, in_channels=in_channels, out_channels=out_channels, kernel_size=sizes[0],
                  stride=sizes[1], padding=sizes[2], output_padding=sizes[3], dilation=sizes[4], groups=groups, bias=bool(bias))


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
    """Each channel to mean 0 and variance 1 over the batch, or by running statistics. In a plain object, as tinygrad's programs have it,
    the batch counts in "with Tensor.train ()" only; in a Module until eval()."""

    follows, n_plain = True, 1
    weight: Tensor
    bias: Tensor
    running_mean: Tensor | None
    running_var: Tensor | None

    def __init__(self, num_features: int, eps=1e-5, affine=True, track_running_stats=True, momentum: float | None = 0.1, device=None, dtype=None):
        self.take("batch_norm_new", index(num_features), eps, -1.0 if momentum is None else momentum, bool(affine),
                  bool(track_running_stats), device=device, dtype=dtype, num_features=num_features, eps=eps, momentum=momentum,
                  affine=bool(affine), track_running_stats=bool(track_running_stats))


class BatchNorm2d(BatchNorm):
    """BatchNorm with PyTorch's order of arguments where the third is a number."""

    def __init__(self, num_features: int, eps=1e-5, *settings, **more):
        if settings and not isinstance(settings[0], bool):
            more["momentum"], settings = settings[0], settings[1:]
        super().__init__(num_features, eps, *settings, **more)


class BatchNorm1d(BatchNorm2d):
    """BatchNorm2d of (B, C) or (B, C, X)."""


class BatchNorm3d(BatchNorm2d):
    """BatchNorm2d of (B, C, Z, Y, X)."""


class GroupNorm(Layer):
    """Each group of channels of each item to mean 0 and variance 1."""

    n_plain = 2
    weight: Tensor
    bias: Tensor

    def __init__(self, num_groups: int, num_channels: int, eps=1e-5, affine=True, device=None, dtype=None):
        self.take("group_norm_new", index(num_groups), index(num_channels), eps, bool(affine), device=device, dtype=dtype,
                  num_groups=num_groups, num_channels=num_channels, eps=eps, affine=bool(affine))


class InstanceNorm(Layer):
    """Each channel of each item to mean 0 and variance 1."""

    n_plain = 1
    weight: Tensor
    bias: Tensor

    def __init__(self, num_features: int, eps=1e-5, affine=True, device=None, dtype=None):
        self.take("instance_norm_new", index(num_features), eps, bool(affine), device=device, dtype=dtype,
                  num_features=num_features, eps=eps, affine=bool(affine))


class InstanceNorm2d(InstanceNorm):
    """InstanceNorm with PyTorch's arguments: without weights unless @affine, in eval mode by running statistics if there are."""

    optional = ("weight", "bias")
    running_mean: Tensor | None = None
    running_var: Tensor | None = None

    def __init__(self, num_features: int, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False, device=None, dtype=None):
        super().__init__(num_features, eps, affine, device, dtype)
        affine = self.settings.pop("affine")
        self.settings.update(momentum=momentum, affine=affine, track_running_stats=bool(track_running_stats))
        if track_running_stats:
            self.settings["momentum"] = float(momentum)
            self.register_buffer("running_mean", Tensor.zeros(num_features, dtype=dtype, device=device))
            self.register_buffer("running_var", Tensor.ones(num_features, dtype=dtype, device=device))
            self.register_buffer("num_batches_tracked", Tensor(0, dtype="int64", device=device))

    def forward(self, x):
        if not self.track_running_stats:
            return super().forward(x)
        if not self.training:
            return x.batch_norm(self.running_mean, self.running_var, self.weight, self.bias, False, self.eps)
        axes = tuple(range(2, x.ndim))
        with no_grad():
            for kept, now in ((self.running_mean, x.mean(axes)), (self.running_var, x.var(axes))):  # of each item
                kept.assign(kept + (now.detach().mean(0) - kept) * self.momentum)
        return super().forward(x)


class InstanceNorm1d(InstanceNorm2d):
    """InstanceNorm2d of (B, C, X)."""


class InstanceNorm3d(InstanceNorm2d):
    """InstanceNorm2d of (B, C, Z, Y, X)."""


class LayerNorm(Layer):
    """The last axes together to mean 0 and variance 1."""

    n_plain = 1
    weight: Tensor
    bias: Tensor

    def __init__(self, normalized_shape: int | Sequence[int], eps=1e-5, elementwise_affine=True, device=None, dtype=None):
        shape = tuple(normalized_shape) if isinstance(normalized_shape, (list, tuple)) else (index(normalized_shape),)
        self.take("layer_norm_new", shape, eps, bool(elementwise_affine), device=device, dtype=dtype, normalized_shape=shape,
                  eps=eps, elementwise_affine=bool(elementwise_affine))


class LayerNorm2d(Layer):
    """The channels of each place of an image to mean 0 and variance 1."""

    n_plain = 1
    weight: Tensor
    bias: Tensor

    def __init__(self, num_channels: int, eps=1e-5, elementwise_affine=True, device=None, dtype=None):
        self.take("layer_norm2d_new", index(num_channels), eps, bool(elementwise_affine), device=device, dtype=dtype,
                  num_channels=num_channels, eps=eps, elementwise_affine=bool(elementwise_affine))


class RMSNorm(Layer):
    """Divided by the root of the mean square of the last axis."""

    n_plain = 1
    weight: Tensor

    def __init__(self, dim, eps=1e-6, elementwise_affine=True, device=None, dtype=None):
        self.take("rms_norm_new", index(dim), eps, bool(elementwise_affine), device=device, dtype=dtype, dim=dim, eps=eps,
                  elementwise_affine=bool(elementwise_affine))


# ---- recurrent ----
class Recurrent(Layer):
    """Results and states at the end, from inputs and states at the start."""

    make, optional, n_plain = None, (), 2
    unless = {"num_layers": (1,), "bias": (True,), "batch_first": (False,), "dropout": (0,), "bidirectional": (False,), "nonlinearity": ("tanh",),
              "proj_size": (0,)}

    def __init__(self, input_size: int, hidden_size: int, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False,
                 device=None, dtype=None):
        self.take(self.make, index(input_size), index(hidden_size), index(num_layers), bool(bias), bool(batch_first), dropout,
                  bool(bidirectional), device=device, dtype=dtype, input_size=input_size, hidden_size=hidden_size,
                  num_layers=num_layers, bias=bool(bias), batch_first=bool(batch_first), dropout=dropout,
                  bidirectional=bool(bidirectional))

    if TYPE_CHECKING:
        @overload
        def __call__(self, x: Tensor, state: Tensor | None = ...) -> tuple[Tensor, Tensor]: ...
        @overload
        def __call__(self, x: PackedSequence, state: Tensor | None = ...) -> tuple[PackedSequence, Tensor]: ...

    def forward(self, x: Any, state: Any = None) -> Any:
        states = () if state is None else (state,)
        y, h = self.call_packed(x, states) if hasattr(x, "batch_sizes") else self.call_many(x, *states)
        return y, h

    def flatten_parameters(self):
        """Nothing: there is no other form."""

    def call_packed(self, x, states):
        """The result, packed as well, for a PackedSequence: it is computed padded, and what is behind the ends is left out."""
        from .utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence
        padded, lengths = pad_packed_sequence(x, self.batch_first)
        if not states:
            n, width = self.num_layers * (1 + self.bidirectional), padded.shape[0 if self.batch_first else 1]
            features = [self.settings.get("proj_size") or self.hidden_size, self.hidden_size]
            states = [padded.new_zeros((n, width, one)) for one in features[:1 + isinstance(self, LSTM)]]
        y, *states = self.call_many(padded, *states, lengths.to(padded.get_device()))
        packed = pack_padded_sequence(y, lengths, self.batch_first, x.sorted_indices is None)
        return PackedSequence(packed.data, x.batch_sizes, x.sorted_indices, x.unsorted_indices), *states


class LSTM(Recurrent):
    """Long short-term memory: y, (h, c) of x, or of x, (h, c)."""

    def __init__(self, input_size: int, hidden_size: int, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False,
                 proj_size=0, device=None, dtype=None):
        self.take("lstm_new", index(input_size), index(hidden_size), index(num_layers), bool(bias), bool(batch_first), dropout,
                  bool(bidirectional), index(proj_size), device=device, dtype=dtype, input_size=input_size, hidden_size=hidden_size,
                  proj_size=proj_size, num_layers=num_layers, bias=bool(bias), batch_first=bool(batch_first), dropout=dropout,
                  bidirectional=bool(bidirectional))

    if TYPE_CHECKING:
        @overload
        def __call__(self, x: Tensor, state: tuple[Tensor, Tensor] | None = ...) -> tuple[Tensor, tuple[Tensor, Tensor]]: ...
        @overload
        def __call__(self, x: PackedSequence, state: tuple[Tensor, Tensor] | None = ...) -> tuple[PackedSequence, tuple[Tensor, Tensor]]: ...

    def forward(self, x: Any, state: tuple[Tensor, Tensor] = None) -> Any:
        y, h, c = self.call_packed(x, state or ()) if hasattr(x, "batch_sizes") else self.call_many(x, *(state or ()))
        return y, (h, c)


class GRU(Recurrent):
    """Gated recurrent units: y, h of x, or of x, h."""

    make = "gru_new"


class RNN(Recurrent):
    """Plain recurrence: y, h of x, or of x, h."""

    def __init__(self, input_size: int, hidden_size: int, num_layers=1, nonlinearity="tanh", bias=True, batch_first=False, dropout=0.0,
                 bidirectional=False, device=None, dtype=None):
        self.take("rnn_new", index(input_size), index(hidden_size), index(num_layers), nonlinearity, bool(bias), bool(batch_first),
                  dropout, bool(bidirectional), device=device, dtype=dtype, input_size=input_size, hidden_size=hidden_size,
                  num_layers=num_layers, nonlinearity=nonlinearity, bias=bool(bias), batch_first=bool(batch_first), dropout=dropout,
                  bidirectional=bool(bidirectional))


class Cell(Layer):
    """One time of a recurrent layer."""

    make, optional, n_plain, unless = None, (), 2, Recurrent.unless

    def __init__(self, input_size: int, hidden_size: int, bias=True, device=None, dtype=None):
        self.take(self.make, index(input_size), index(hidden_size), bool(bias), device=device, dtype=dtype,
                  input_size=input_size, hidden_size=hidden_size, bias=bool(bias))


class LSTMCell(Cell):
    """One time of an LSTM: h, c of x, or of x, (h, c)."""

    make = "lstm_cell_new"

    def forward(self, x, state: tuple[Tensor, Tensor] = None) -> tuple[Tensor, Tensor]:
        h, c = self.call_many(x, *(state or ()))
        return h, c


class GRUCell(Cell):
    """One time of a GRU: h of x, or of x, h."""

    make = "gru_cell_new"

    def forward(self, x, state: Tensor = None):
        return self.call_many(x, *(() if state is None else (state,)))[0]


class RNNCell(Cell):
    """One time of an RNN: h of x, or of x, h."""

    def __init__(self, input_size: int, hidden_size: int, bias=True, nonlinearity="tanh", device=None, dtype=None):
        self.take("rnn_cell_new", index(input_size), index(hidden_size), bool(bias), nonlinearity, device=device, dtype=dtype,
                  input_size=input_size, hidden_size=hidden_size, bias=bool(bias), nonlinearity=nonlinearity)

    forward = GRUCell.forward


class Bilinear(Module):
    """x1ᵀ weight x2 + bias for each of the output's features."""

    weight: Tensor
    bias: Tensor

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias=True, device=None, dtype=None):
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        bound = 1 / index(in1_features) ** 0.5
        draw = lambda *shape: Parameter(Tensor.uniform(*shape, low=-bound, high=bound, dtype=dtype, device=device))  # noqa: E731
        self.weight = draw(out_features, in1_features, in2_features)
        self.bias = draw(out_features) if bias else None

    def forward(self, input1, input2):
        return bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self):
        return f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Identity(Module):
    """Gives its input."""

    def __init__(self, *ignored, **more):
        pass

    def forward(self, x: Any) -> Any:
        return x


# ---- layers that know their first size from the first input ----
class Lazy(Module):
    """A layer whose first argument is the size of an axis of its first input: it is that layer from then on."""

    becomes: Any = None
    axis = 1
    is_unready = True

    def __init_subclass__(cls, becomes: type[Module], axis=1, **more):
        super().__init_subclass__(**more)
        cls.becomes, cls.axis = becomes, axis

    def __init__(self, *arguments: Any, **more: Any):
        vars(self).update(made_with=(arguments, more), later=[])

    def __call__(self, input) -> Any:
        arguments, more = self.made_with
        kind, n, later = self.becomes, input.shape[self.axis], vars(self).pop("later")
        self.__class__ = kind
        object.__setattr__(self, "made_with", ((n, *arguments), more))
        kind.__init__(self, n, *arguments, **more)
        for make in later:
            self.replace_tensors(make)
        return self(input)

    def __getattr__(self, name):
        raise AttributeError(f"{type(self).__name__} has no {name} before its first call, which makes it {self.becomes.__name__}", name=name, obj=self)

    def has_uninitialized_params(self) -> bool:
        """True: it was not called yet."""
        return True


class LazyLinear(Lazy, becomes=Linear, axis=-1):
    """Linear (out_features, …)."""


class LazyConv1d(Lazy, becomes=Conv1d):
    """Conv1d (out_channels, kernel_size, …)."""


class LazyConv2d(Lazy, becomes=Conv2d):
    """Conv2d (out_channels, kernel_size, …)."""


class LazyConvTranspose2d(Lazy, becomes=ConvTranspose2d):
    """ConvTranspose2d (out_channels, kernel_size, …)."""


class LazyBatchNorm1d(Lazy, becomes=BatchNorm1d):
    """BatchNorm1d (…)."""


class LazyBatchNorm2d(Lazy, becomes=BatchNorm2d):
    """BatchNorm2d (…)."""
