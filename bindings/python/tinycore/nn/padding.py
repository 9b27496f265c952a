# SPDX-License-Identifier: MIT
"""Tensor.pad() as modules: of one number for all sides, or of two for each of the last axes, the last one first."""
from __future__ import annotations

from .module import Module


class Padding(Module):
    """More around the last @n axes."""

    n, mode = None, "constant"

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


class ConstantPad1d(Padding):
    """A number around the last axis."""

    n = 1

    def __init__(self, padding, value: float):
        super().__init__(padding)
        self.value = value

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class ConstantPad2d(ConstantPad1d):
    """A number around the last 2 axes."""

    n = 2


class ConstantPad3d(ConstantPad1d):
    """A number around the last 3 axes."""

    n = 3


class ZeroPad1d(Padding):
    """Zeros around the last axis."""

    n = 1


class ZeroPad2d(ZeroPad1d):
    """Zeros around the last 2 axes."""

    n = 2


class ZeroPad3d(ZeroPad1d):
    """Zeros around the last 3 axes."""

    n = 3


class ReflectionPad1d(Padding):
    """The elements inside, without the edge, around the last axis."""

    n, mode = 1, "reflect"


class ReflectionPad2d(ReflectionPad1d):
    """The elements inside, without the edge, around the last 2 axes."""

    n = 2


class ReflectionPad3d(ReflectionPad1d):
    """The elements inside, without the edge, around the last 3 axes."""

    n = 3


class ReplicationPad1d(Padding):
    """The edge around the last axis."""

    n, mode = 1, "replicate"


class ReplicationPad2d(ReplicationPad1d):
    """The edge around the last 2 axes."""

    n = 2


class ReplicationPad3d(ReplicationPad1d):
    """The edge around the last 3 axes."""

    n = 3


class CircularPad1d(Padding):
    """The other end around the last axis."""

    n, mode = 1, "circular"


class CircularPad2d(CircularPad1d):
    """The other end around the last 2 axes."""

    n = 2


class CircularPad3d(CircularPad1d):
    """The other end around the last 3 axes."""

    n = 3
