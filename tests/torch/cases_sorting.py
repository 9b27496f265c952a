# SPDX-License-Identifier: MIT
"""Sorting: elements in order, the greatest, lookups in what is sorted."""
import numpy
import torch

from harness import case, each, numbers, refuses

SHAPES = [((1,), 0), ((2,), 0), ((7,), 0), ((32,), 0), ((33,), 0), ((65, 3), 0), ((3, 70), -1), ((2, 100, 2), 1), ((4, 0), 1), ((0, 4), 1),
          ((300,), 0), ((2, 3, 5), 0)]
SPECIAL = numpy.array([3, numpy.nan, -numpy.inf, 0.0, -0.0, numpy.inf, 1, numpy.nan, -5, 3, 1e-45, -1e-40] * 4, dtype="float32")


def fields(result):
    """The elements of a result by their names."""
    values, indices = result
    assert result.values is values and result.indices is indices, "names are of other elements"
    return result.values, result.indices


for down in (False, True):
    for shape, axis in SHAPES:
        case("sort", [shape], lambda x, a=axis, d=down: x.sort(a, d), lambda x, a=axis, d=down: x.sort(dim=a, descending=d, stable=True),
             same_dtype=False)
        # Few values: equal ones keep their order.
        for dtype in ("int32", "float32"):
            case("sort", [numbers(shape, 0, 5, "int32").astype(dtype)], lambda x, a=axis, d=down: x.sort(dim=a, descending=d, stable=True),
                 same_dtype=False, gradient=False)
            case("argsort", [numbers(shape, 0, 5, "int32").astype(dtype)], lambda x, a=axis, d=down: x.argsort(a, descending=d),
                 lambda x, a=axis, d=down: x.sort(dim=a, descending=d, stable=True)[1], same_dtype=False, gradient=False)
    for dtype in ("float64", "int64", "uint8", "int8", "int16", "bool", "float16"):
        x = numbers((2, 50), 0 if dtype == "uint8" else -99, 99, dtype)
        case("sort", [x], lambda x, d=down: x.sort(-1, d), lambda x, d=down: x.sort(dim=-1, descending=d, stable=True), same_dtype=False,
             gradient=False)
    case("sort", [SPECIAL], lambda x, d=down: x.sort(0, d), lambda x, d=down: x.sort(dim=0, descending=d, stable=True), same_dtype=False,
         gradient=False)
    case("sort", [SPECIAL.astype("float64")], lambda x, d=down: x.sort(0, d)[0], lambda x, d=down: x.sort(dim=0, descending=d)[0],
         gradient=False)
wide = numpy.array([0, -1, 2**62, -2**63, 2**63 - 1, 2**31, -2**31, 2**32 + 1] * 6, dtype="int64")
case("sort", [wide], lambda x: x.sort()[0], lambda x: x.sort()[0])
case("sort", [numbers((3000,))], lambda x: x.sort(), same_dtype=False, gradient=False)
case("msort", [(7, 3)], lambda x: x.msort())
case("msort", [(40,)], lambda x: x.msort())
refuses("sort", [(3, 4)], lambda x: x.sort(2))
for shape, axis in SHAPES:
    n = torch.zeros(shape).shape[axis]
    for k in sorted({0, 1, min(3, n), n}):
        for largest in (True, False):
            if 0 in shape and k > n:
                continue
            case("topk", [shape], lambda x, k=k, a=axis, g=largest: x.topk(k, a, g), same_dtype=False)
    for k in sorted({1, n // 2 + 1, n}):
        if 0 < k <= n and 0 not in shape:
            for keep in (False, True):
                case("kthvalue", [shape], lambda x, k=k, a=axis, p=keep: x.kthvalue(k, a, p), same_dtype=False)
    if 0 not in shape:
        case("median", [shape], lambda x, a=axis: x.median(a), same_dtype=False)
        case("median", [shape], lambda x, a=axis: x.median(a, True), same_dtype=False)
case("topk", [numbers((2, 1000))], lambda x: x.topk(5), same_dtype=False)
case("median", [numpy.array([[3, 1, numpy.nan, 2], [4, 1, 3, 2]], "float32")], lambda x: x.median(1), same_dtype=False, gradient=False)
case("median", [numbers((3, 5), 0, 100, "int32")], lambda x: x.median(1), same_dtype=False)
each("median", [(5,), (3, 4), (2, 3, 5), ()], lambda x: x.median())
case("median", [numpy.array([[3, numpy.nan], [1, 2]], "float32")], lambda x: x.median(), gradient=False)
case("median", [numbers((3, 4), 0, 100, "int32")], lambda x: x.median())
for name in ("sort", "topk", "kthvalue", "median", "cummax", "cummin"):
    given = {"topk": (2,), "kthvalue": (2,)}.get(name, ())
    case(name, [(3, 5)], lambda x, n=name, a=given: fields(getattr(x, n)(*a, dim=1)), lambda x, n=name, a=given: fields(getattr(x, n)(*a, dim=1)),
         same_dtype=False, label="by name")
refuses("topk", [(3,)], lambda x: x.topk(4))
refuses("topk", [(3,)], lambda x: x.topk(-1))
refuses("kthvalue", [(3,)], lambda x: x.kthvalue(0))
refuses("kthvalue", [(3,)], lambda x: x.kthvalue(4))

# ---- lookups ----
for n in (1, 2, 7, 8, 33):
    row = numpy.sort(numbers((n,), 0, n, "int32")).astype("float32")
    for right in (False, True):
        for values in ((5,), (2, 3), (), (0,)):
            sought = numpy.round(numbers(values, -1, n + 1)).astype("float32") if values != (0,) else numbers(values)
            case("searchsorted", [row, sought], lambda s, v, r=right: s.searchsorted(v, r),
                 lambda s, v, r=right: torch.searchsorted(s, v, right=r), same_dtype=False, gradient=False)
            case("bucketize", [sought, row], lambda v, s, r=right: v.bucketize(s, r),
                 lambda v, s, r=right: torch.bucketize(v, s, right=r), same_dtype=False, gradient=False)
for right in (False, True):
    case("searchsorted", [numpy.sort(numbers((2, 3, 6)), -1), (2, 3, 4)], lambda s, v, r=right: s.searchsorted(v, r),
         lambda s, v, r=right: torch.searchsorted(s, v, right=r), same_dtype=False, gradient=False)
    case("searchsorted", [numpy.sort(SPECIAL), SPECIAL[numpy.abs(SPECIAL) != numpy.inf]], lambda s, v, r=right: s.searchsorted(v, r),
         lambda s, v, r=right: torch.searchsorted(s, v, right=r), same_dtype=False, gradient=False)
case("searchsorted", [(3, 9), (3, 4)], lambda s, v: s.searchsorted(v, sorter=s.argsort()),
     lambda s, v: torch.searchsorted(s, v, sorter=s.argsort()), same_dtype=False, gradient=False)
refuses("searchsorted", [(2, 3), (3, 3)], lambda s, v: s.searchsorted(v), torch.searchsorted)
refuses("bucketize", [(2,), (2, 2)], lambda v, s: v.bucketize(s), torch.bucketize)
for shape, tests in (((5,), (3,)), ((4, 5), (2, 2)), ((3,), (0,)), ((50,), (100,)), ((), (1,))):
    for invert in (False, True):
        case("isin", [numbers(shape, 0, 9, "int32"), numbers(tests, 0, 9, "int32")], lambda x, t, v=invert: x.isin(t, v),
             lambda x, t, v=invert: torch.isin(x, t, invert=v))
case("isin", [numbers((40,), 0, 50, "int32").astype("float32"), numbers((60,), 0, 50, "int32").astype("float32")], lambda x, t: x.isin(t), torch.isin,
     gradient=False)

# Rows that are sorted by their digits: ties, signs, parts of chunks, wide keys.
for shape, axis, dtype in [((33000,), 0, "float32"), ((600, 60), 0, "int32"), ((64, 520), 1, "int64")]:
    x = numbers(shape, -200, 200, "int32").astype(dtype)
    down = dtype == "int32"
    case("sort", [x], lambda x, a=axis, d=down: x.sort(a, d), lambda x, a=axis, d=down: x.sort(dim=a, descending=d, stable=True),
         same_dtype=False, gradient=False)
case("sort", [numpy.tile(SPECIAL, 635)], lambda x: x.sort(), lambda x: x.sort(stable=True), same_dtype=False, gradient=False)
case("sort", [numpy.tile(wide, 700)[:33280].reshape(64, 520)], lambda x: x.sort(), lambda x: x.sort(stable=True), same_dtype=False)
case("topk", [(64, 520)], lambda x: x.topk(300), same_dtype=False)
# Few of long rows: chunks that begin early, ties over chunks, an element by its number.
for dtype in ("float32", "int64"):
    for spread in (5, 2000) if dtype == "float32" else (2000,):
        x = numbers((64, 1003), -spread, spread, "int32").astype(dtype)
        for largest in (True, False):
            case("topk", [x], lambda x, g=largest: x.topk(6, 1, g), lambda x, g=largest: tuple(part[:, :6] for part in
                 x.sort(dim=1, descending=g, stable=True)), same_dtype=False, gradient=False)
        for k in (1, 500, 1003):
            case("kthvalue", [x], lambda x, k=k: x.kthvalue(k), lambda x, k=k: tuple(part[:, k - 1] for part in x.sort(dim=1, stable=True)),
                 same_dtype=False, gradient=False)
case("median", [(40, 1000)], lambda x: x.median(1), same_dtype=False)
case("topk", [(40000,)], lambda x: x.topk(7), same_dtype=False)
