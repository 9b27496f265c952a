# SPDX-License-Identifier: MIT
"""Variable: a whole number that programs on a device are given when they are launched."""
from __future__ import annotations

from .convert import as_int
from .errors import InvalidError, checked
from .library import Tiny

LEAST, MOST = -(1 << 31), (1 << 31) - 1


class Variable:
    """Variable ("n", 1, 10).bind (3) is 3 as a tensor without axes: a size or a place in x[:n], x[n], Tensor.shorten(),
    Tensor.narrow() and Tensor.shrink(), a number elsewhere. What is computed with it is compiled once for all values, and a TinyJit
    that gets it as an argument takes another value in each call."""

    def __init__(self, name: str, min: int, max: int):
        if not isinstance(name, str):
            raise TypeError(f"Variable: name: a text is wanted, not {name!r:.60}")
        min, max = as_int(min, f"Variable {name}: min"), as_int(max, f"Variable {name}: max")
        if not LEAST <= min <= max <= MOST:
            raise InvalidError(f"Variable {name}: {min} … {max} are no bounds: the least comes first, and both are numbers of 32 bits")
        self.handle = Tiny.Variable.new(name, min, max)

    @property
    def name(self) -> str:
        return self.handle.get_name()

    @property
    def min(self) -> int:
        return self.handle.get_min()

    @property
    def max(self) -> int:
        return self.handle.get_max()

    def bind(self, value: int):
        """It with that value."""
        return checked(self.handle.bind(as_int(value, f"{self.name}.bind")))

    def __repr__(self):
        return f"Variable({self.name!r}, {self.min}, {self.max})"
