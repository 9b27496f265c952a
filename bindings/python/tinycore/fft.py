# SPDX-License-Identifier: MIT
"""torch.fft's names. There is no complex dtype: complex numbers are pairs along a last axis of size 2, as of PyTorch's
view_as_real(), and axes do not count that one."""
from __future__ import annotations

from .errors import InvalidError, explain_all
from .tensor import Tensor


def along(method):
    """A transform along one axis."""
    def transform(input, n: int = None, dim=-1, norm: str = None):
        if n is not None and n < 1:
            raise InvalidError(f"{method.__name__}: {n} numbers")
        return method(input, 0 if n is None else n, dim, norm or "backward")
    transform.__name__ = transform.__qualname__ = method.__name__
    transform.__doc__ = method.__doc__
    return transform


fft, ifft, rfft, irfft = (along(getattr(Tensor, name)) for name in ("fft", "ifft", "rfft", "irfft"))


def sized(input, s, dim, rank):
    """Axes of a transform, and how long each is made."""
    if dim is None:
        dim = range(rank) if s is None else range(rank - len(s), rank)
    dim = [one % rank for one in dim]
    return dim, [None] * len(dim) if s is None else list(s)


def several(one, name):
    def transform(input, s: Sequence[int] = None, dim: Sequence[int] = None, norm: str = None):
        for axis, n in zip(*sized(input, s, dim, input.ndim - 1)):
            input = one(input, n, axis, norm)
        return input
    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"{one.__name__}() along each axis of @dim, which are made as long as @s says."
    return transform


fftn, ifftn = several(fft, "fftn"), several(ifft, "ifftn")


def rfftn(input, s: Sequence[int] = None, dim: Sequence[int] = None, norm: str = None):
    """rfft() along the last axis of @dim, fft() along the others."""
    axes, sizes = sized(input, s, dim, input.ndim)
    found = rfft(input, sizes[-1], axes[-1], norm)
    return fftn(found, sizes[:-1], axes[:-1], norm) if axes[:-1] else found


def irfftn(input, s: Sequence[int] = None, dim: Sequence[int] = None, norm: str = None):
    """ifft() along the axes of @dim but the last, irfft() along that."""
    axes, sizes = sized(input, s, dim, input.ndim - 1)
    input = ifftn(input, sizes[:-1], axes[:-1], norm) if axes[:-1] else input
    return irfft(input, sizes[-1], axes[-1], norm)


def fft2(input, s: Sequence[int] = None, dim: Sequence[int] = (-2, -1), norm: str = None):
    """fftn() along two axes."""
    return fftn(input, s, dim, norm)


def ifft2(input, s: Sequence[int] = None, dim: Sequence[int] = (-2, -1), norm: str = None):
    """ifftn() along two axes."""
    return ifftn(input, s, dim, norm)


def rfft2(input, s: Sequence[int] = None, dim: Sequence[int] = (-2, -1), norm: str = None):
    """rfftn() along two axes."""
    return rfftn(input, s, dim, norm)


def irfft2(input, s: Sequence[int] = None, dim: Sequence[int] = (-2, -1), norm: str = None):
    """irfftn() along two axes."""
    return irfftn(input, s, dim, norm)


def shifted(input, dim, sign):
    axes = list(range(input.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    return input.roll([(input.shape[axis] + (sign < 0)) // 2 for axis in axes], axes)


def fftshift(input, dim: int | Sequence[int] = None):
    """Frequency 0 in the middle of @dim, of all axes if that is None. Of pairs the axes are to be named: dim=0."""
    return shifted(input, dim, 1)


def ifftshift(input, dim: int | Sequence[int] = None):
    """What fftshift() did, undone."""
    return shifted(input, dim, -1)


def fftfreq(n, d=1.0, *, dtype=None, device=None):
    """The frequencies of fft() of @n samples at distances of @d."""
    return (Tensor.arange(n, dtype="int32", device=device) + n // 2).mod(n).sub(n // 2).cast(Tensor.zeros(0, dtype=dtype).dtype) / (n * d)


def rfftfreq(n, d=1.0, *, dtype=None, device=None):
    """The frequencies of rfft() of @n samples at distances of @d."""
    return Tensor.arange(n // 2 + 1, dtype=Tensor.zeros(0, dtype=dtype).dtype, device=device) / (n * d)


explain_all(globals())
