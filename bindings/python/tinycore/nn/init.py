# SPDX-License-Identifier: MIT
"""Values that parameters begin with, under PyTorch's names: init.xavier_uniform_ (layer.weight)."""
from __future__ import annotations

from math import sqrt

from ..errors import explained
from ..tensor import Tensor

GAINS = {"linear": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": sqrt(2), "selu": 0.75,
         **{f"conv{kind}{n}d": 1.0 for kind in ("", "_transpose") for n in (1, 2, 3)}}


def calculate_gain(nonlinearity: str, param: float = None) -> float:
    """How much larger values are for what an activation takes away."""
    if nonlinearity == "leaky_relu":
        return sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in GAINS:
        raise ValueError(f"calculate_gain: “{nonlinearity}” is none of leaky_relu, {', '.join(GAINS)}")
    return GAINS[nonlinearity]


def fans_of(tensor) -> tuple[int, int]:
    """How many inputs each output has, and outputs each input."""
    if tensor.ndim < 2:
        raise ValueError(f"a tensor of {tensor.shape} has no inputs and outputs: two axes are the least")
    window = 1
    for size in tensor.shape[2:]:
        window *= size
    return tensor.shape[1] * window, tensor.shape[0] * window


def place(tensor, values):
    tensor.assign(values.cast(tensor.dtype).to(tensor.device))
    tensor.realize()
    return tensor


def uniform_(tensor, a=0.0, b=1.0):
    return place(tensor, Tensor.uniform(*tensor.shape, low=a, high=b))


def normal_(tensor, mean=0.0, std=1.0):
    return place(tensor, Tensor.normal(*tensor.shape, mean=mean, std=std))


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0):
    """Normal between @a and @b, by the inverse of its distribution's integral, found by halving."""
    low, high = (((Tensor([(end - mean) / std / sqrt(2)], dtype="float64").erf() + 1) / 2).item() for end in (a, b))
    wanted = Tensor.uniform(*tensor.shape, low=low, high=high, dtype="float64")
    below, above = Tensor.full(tensor.shape, a, dtype="float64"), Tensor.full(tensor.shape, b, dtype="float64")
    for _ in range(32):
        middle = ((below + above) / 2).realize()
        is_low = ((((middle - mean) / (std * sqrt(2))).erf() + 1) / 2) < wanted
        below, above = is_low.where(middle, below), is_low.where(above, middle)
        below.realize(above)
    return place(tensor, (below + above) / 2)


def constant_(tensor, val: float):
    return place(tensor, Tensor.full(tensor.shape, float(val)))


def zeros_(tensor):
    return constant_(tensor, 0.0)


def ones_(tensor):
    return constant_(tensor, 1.0)


def eye_(tensor):
    return place(tensor, Tensor.eye(*tensor.shape))


def xavier_uniform_(tensor, gain=1.0):
    """Uniform over ±gain · sqrt (6 / (fan-in + fan-out)) (Glorot and Bengio 2010)."""
    bound = gain * sqrt(6 / sum(fans_of(tensor)))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor, gain=1.0):
    """Normal with the deviation gain · sqrt (2 / (fan-in + fan-out)) (Glorot and Bengio 2010)."""
    return normal_(tensor, 0.0, gain * sqrt(2 / sum(fans_of(tensor))))


def deviation(tensor, a, mode, nonlinearity):
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"a mode is fan_in or fan_out, not {mode!r}")
    return calculate_gain(nonlinearity, a) / sqrt(fans_of(tensor)[mode == "fan_out"])


def kaiming_uniform_(tensor, a: float = 0, mode="fan_in", nonlinearity="leaky_relu"):
    """Uniform with the deviation gain / sqrt (fan) (He et al. 2015)."""
    bound = sqrt(3) * deviation(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(tensor, a: float = 0, mode="fan_in", nonlinearity="leaky_relu"):
    """Normal with the deviation gain / sqrt (fan) (He et al. 2015)."""
    return normal_(tensor, 0.0, deviation(tensor, a, mode, nonlinearity))


def orthogonal_(tensor, gain=1.0):
    """Rows, or columns if those are fewer, at right angles and of length @gain (Saxe et al. 2013)."""
    if tensor.ndim < 2:
        raise ValueError(f"orthogonal_: a tensor of at least 2 axes is wanted, not {tensor.shape}")
    rows, columns = tensor.shape[0], tensor.numel() // max(tensor.shape[0], 1)
    q, r = Tensor.randn(max(rows, columns), min(rows, columns)).qr()
    q = q * r.diagonal().sign()  # as likely as any other
    return place(tensor, (q if rows >= columns else q.transpose(0, 1)).reshape(tensor.shape) * gain)


def dirac_(tensor, groups=1):
    """The convolution that gives its input, for as many channels as there are."""
    if tensor.ndim not in (3, 4, 5) or tensor.shape[0] % groups != 0:
        raise ValueError(f"dirac_: {tensor.shape} is no weight of a convolution of {groups} groups")
    n, more = tensor.shape[0] // groups, tensor.ndim - 2
    found = Tensor.eye(n, tensor.shape[1]).repeat(groups, 1).reshape(*tensor.shape[:2], *[1] * more)
    around = [number for size in reversed(tensor.shape[2:]) for number in (size // 2, size - size // 2 - 1)]
    return place(tensor, found.pad(around))


for name, one in list(globals().items()):
    if name.endswith("_") and not name.startswith("_"):
        globals()[name] = explained(one)
del name, one
