# SPDX-License-Identifier: MIT
"""Selecting: results whose size depends on the data."""
import numpy
import torch

from harness import case, numbers, refuses

for shape in ((5,), (3, 4), (2, 3, 2), (0, 3), (), (1,)):
    for dtype in ("int32", "bool", "float32"):
        x = numbers(shape, -1, 2, "int32").astype(dtype)
        case("nonzero", [x], lambda x: x.nonzero(), same_dtype=False, gradient=False)
    case("masked_select", [shape, numbers(shape, dtype="bool")], lambda x, m: x.masked_select(m))
    case("masked_scatter", [shape, numbers(shape, dtype="bool"), (20,)], lambda x, m, s: x.masked_scatter(m, s))
case("nonzero", [numpy.array([0.0, -0.0, numpy.nan, 1e-40], "float32")], lambda x: x.nonzero(), same_dtype=False, gradient=False)
case("masked_select", [(3, 1), numbers((4,), dtype="bool")], lambda x, m: x.masked_select(m))
case("masked_select", [(4,), numbers((3, 1), dtype="bool")], lambda x, m: x.masked_select(m))
case("masked_scatter", [(3, 4), numbers((4,), dtype="bool"), (12,)], lambda x, m, s: x.masked_scatter(m, s))
case("masked_scatter", [(3, 4), numpy.zeros((3, 4), "bool"), (2,)], lambda x, m, s: x.masked_scatter(m, s))
refuses("masked_select", [(3,), numpy.array([1, 0, 1])], lambda x, m: x.masked_select(m))
refuses("masked_select", [(3,), numpy.ones(2, "bool")], lambda x, m: x.masked_select(m))
refuses("masked_scatter", [(3,), numpy.ones(2, "bool"), (2,)], lambda x, m, s: x.masked_scatter(m, s))
refuses("masked_scatter", [(3,), numpy.ones(3, "bool"), (2,)], lambda x, m, s: x.masked_scatter(m, s))
case("masked_scatter", [(3,), numpy.ones((2, 3), "bool"), (6,)], lambda x, m, s: x.masked_scatter(m, s))

for shape in ((9,), (3, 4), (), (0,), (200,), (2, 0)):
    for dtype in ("int32", "float32", "int64", "uint8", "bool"):
        x = numbers(shape, 0, 5, "int32").astype(dtype)
        case("unique", [x], lambda x: list(x.unique(True, True, True)),
             lambda x: list(torch.unique(x, return_inverse=True, return_counts=True)), same_dtype=False, gradient=False)
        case("unique_consecutive", [x], lambda x: list(x.unique_consecutive(True, True)),
             lambda x: list(torch.unique_consecutive(x, return_inverse=True, return_counts=True)), same_dtype=False, gradient=False)
for axis in (0, 1, -1):
    x = numbers((6, 4, 2), 0, 2, "int32")
    case("unique", [x], lambda x, a=axis: list(x.unique(True, True, True, a)),
         lambda x, a=axis: list(torch.unique(x, return_inverse=True, return_counts=True, dim=a)), same_dtype=False, gradient=False)
    case("unique_consecutive", [x], lambda x, a=axis: list(x.unique_consecutive(True, True, a)),
         lambda x, a=axis: list(torch.unique_consecutive(x, return_inverse=True, return_counts=True, dim=a)), same_dtype=False, gradient=False)
case("unique", [numpy.array([2**63 - 1, -2**63, 2**62, 2**62 + 1, 2**63 - 1])], lambda x: x.unique(), lambda x: torch.unique(x))
case("unique", [numpy.array([1, numpy.nan, 1, numpy.nan, -numpy.inf], "float32")], lambda x: x.unique(),
     lambda x: torch.tensor([-numpy.inf, 1, numpy.nan, numpy.nan]), gradient=False)  # PyTorch sorts a NaN anywhere
for options in ({}, {"return_inverse": True}, {"return_counts": True}, {"return_inverse": True, "return_counts": True}, {"dim": 0, "return_counts": True}):
    x = numbers((6, 2), 0, 2, "int32")
    case("unique", [x], lambda x, o=options: x.unique(**o), same_dtype=False, gradient=False, label=str(options))
    case("unique_consecutive", [x], lambda x, o=options: x.unique_consecutive(**o), same_dtype=False, gradient=False, label=str(options))
refuses("unique", [(3,)], lambda x: x.unique(axis=1), lambda x: torch.unique(x, dim=1))

for x, least in (([0, 1, 1, 3], 0), ([2], 5), ([], 0), ([], 3), ([4, 4, 4, 0], 2)):
    x = numpy.array(x, "int64")
    case("bincount", [x], lambda x, n=least: x.bincount(minlength=n), same_dtype=False)
    case("bincount", [x, (len(x),)], lambda x, w, n=least: x.bincount(w, n), same_dtype=False, gradient=False)
refuses("bincount", [numpy.array([-1, 2])], lambda x: x.bincount())
refuses("bincount", [numpy.array([[1, 2]])], lambda x: x.bincount())
refuses("bincount", [(3,)], lambda x: x.bincount())
refuses("bincount", [numpy.array([1, 2]), (3,)], lambda x, w: x.bincount(w))
for bins, low, high in ((10, 0, 0), (4, -1, 1), (1, 0, 2), (7, -5, 5), (3, 1, 1)):
    for shape in ((50,), (3, 4)):
        case("histc", [shape], lambda x, a=(bins, low, high): x.histc(*a), gradient=False)
case("histc", [numpy.full(3, 2, "float32")], lambda x: x.histc(4), gradient=False)
case("histc", [numpy.arange(11, dtype="float32")], lambda x: x.histc(10, 0, 10), gradient=False)
refuses("histc", [(3,)], lambda x: x.histc(0))
refuses("histc", [(3,)], lambda x: x.histc(3, 2, 1))
for x, n in (([0, 2, 1], 3), ([0, 2, 1], 5), ([[1], [0]], 2), (1, 3), ([3, 0], -1)):
    case("one_hot", [numpy.array(x)], lambda x, n=n: x.one_hot(n), lambda x, n=n: torch.nn.functional.one_hot(x, n), same_dtype=False)
refuses("one_hot", [(3,)], lambda x: x.one_hot(3), lambda x: torch.nn.functional.one_hot(x, 3))
