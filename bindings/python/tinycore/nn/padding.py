# SPDX-License-Identifier: MIT
"""Tensor.pad() as modules: of one number for all sides, or of two for each of the last axes, the last one first."""
from __future__ import annotations

from .module import Module


class Padding(Module):
    """More around the last @n axes."""

    n, mode = None, "constant"

    def __init_subclass__(cls, n=None, mode=None, **more):
        super().__init_subclass__(**more)
        cls.n, cls.mode = n or cls.n, mode or cls.mode

    def __init__(self, padding):
        self.padding = tuple(padding) if isinstance(padding, (list, tuple)) else (padding,) * (2 * self.n)
        self.value = 0.0
        if len(self.padding) != 2 * self.n:
            raise ValueError(f"{type(self).__name__}: {padding} are not {2 * self.n} numbers")

    def forward(self, input):
        if input.ndim not in (self.n + 1, self.n + 2):
            raise ValueError(f"{type(self).__name__}: a tensor of {self.n + 1} or {self.n + 2} axes is wanted, not {input.shape}")
        return input.pad(self.padding, self.mode, self.value)

    def extra_repr(self):
        return f"{self.padding}"


class ConstantPad1d(Padding, n=1):
    """A number around the last axis."""

    def __init__(self, padding, value: float):
        super().__init__(padding)
        self.value = value

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class ConstantPad2d(ConstantPad1d, n=2):
    """A number around the last 2 axes."""


class ConstantPad3d(ConstantPad1d, n=3):
    """A number around the last 3 axes."""


class ZeroPad1d(Padding, n=1):
    """Zeros around the last axis."""


class ZeroPad2d(ZeroPad1d, n=2):
    """Zeros around the last 2 axes."""


class ZeroPad3d(ZeroPad1d, n=3):
    """Zeros around the last 3 axes."""


class ReflectionPad1d(Padding, n=1, mode="reflect"):
    """The elements inside, without the edge, around the last axis."""


class ReflectionPad2d(ReflectionPad1d, n=2):
    """The elements inside, without the edge, around the last 2 axes."""


class ReflectionPad3d(ReflectionPad1d, n=3):
    """The elements inside, without the edge, around the last 3 axes."""


class ReplicationPad1d(Padding, n=1, mode="replicate"):
    """The edge around the last axis."""


class ReplicationPad2d(ReplicationPad1d, n=2):
    """The edge around the last 2 axes."""


class ReplicationPad3d(ReplicationPad1d, n=3):
    """The edge around the last 3 axes."""


class CircularPad1d(Padding, n=1, mode="circular"):
    """The other end around the last axis."""


class CircularPad2d(CircularPad1d, n=2):
    """The other end around the last 2 axes."""


class CircularPad3d(CircularPad1d, n=3):
    """The other end around the last 3 axes."""
