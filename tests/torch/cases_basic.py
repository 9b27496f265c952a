# SPDX-License-Identifier: MIT
"""Arithmetic, comparisons, rounding and reductions that every program meets first."""
import torch

from harness import case, each, numbers, refuses

PAIRS = [[(45, 65), (45, 65)], [(5,), (4, 5)], [(4, 1, 3), (2, 1)], [(), (3,)], [(), ()], [(0, 3), (1, 3)]]

for name in ("add", "sub", "mul", "maximum", "minimum"):
    each(name, PAIRS, lambda a, b, name=name: getattr(a, name)(b), lambda a, b, name=name: getattr(torch, name)(a, b))
each("div", PAIRS, lambda a, b: a / b, low=0.5)
for name in ("eq", "ne", "lt", "le", "gt", "ge"):
    each(name, PAIRS, lambda a, b, name=name: getattr(a, name)(b), gradient=False)
for name in ("neg", "abs", "square", "exp", "sin", "relu", "sigmoid", "tanh"):
    each(name, [(45, 65), (3,), (), (0,), (2, 3, 4, 5)], lambda a, name=name: getattr(a, name)(),
         lambda a, name=name: getattr(torch, name)(a))
for name in ("sqrt", "log", "log2", "rsqrt"):
    each(name, [(45, 65), (3,), (), (0,)], lambda a, name=name: getattr(a, name)(), low=0.1, high=4.0)
for axis in (None, 0, 1, -1, (0, 2)):
    for keepdim in (False, True):
        if axis is not None:
            case("sum", [(3, 4, 5)], lambda a, axis=axis, k=keepdim: a.sum(axis, keepdim=k))
            case("mean", [(3, 4, 5)], lambda a, axis=axis, k=keepdim: a.mean(axis, keepdim=k))
        else:
            case("sum", [(3, 4, 5)], lambda a: a.sum())
            case("mean", [(3, 4, 5)], lambda a: a.mean())
refuses("add", [(3, 4), (5,)], lambda a, b: a + b)
refuses("sum", [(3, 4)], lambda a: a.sum(2))
for name, shift in (("lshift", lambda a, b: a << b), ("rshift", lambda a, b: a >> b)):
    for dtype in ("int32", "int64", "int16"):
        case(name, [numbers((3, 4), -90, 90, dtype), numbers((4,), 0, 7, dtype)], shift)

# Numbers, not tensors.
each("add_number", [(3, 5), (), (0, 2)], lambda a: a.add_number(2.5), lambda a: a + 2.5)
case("add_number", [numbers((3, 4), -9, 9, "int32")], lambda a: a.add_number(-3), lambda a: a - 3)
each("mul_number", [(3, 5), (), (0, 2)], lambda a: a.mul_number(-1.25), lambda a: a * -1.25)
case("mul_number", [numbers((3, 4), -9, 9, "int64")], lambda a: a.mul_number(7), lambda a: a * 7)
