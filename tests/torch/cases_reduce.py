# SPDX-License-Identifier: MIT
"""Reductions and scans: over some axes or all, empty ones, ties, NaNs and sizes of several blocks."""
import math

import numpy
import tinycore
import torch
from tinycore import nn

from harness import case, each, numbers, refuses

AXES = [((3, 4, 5), 0), ((3, 4, 5), 1), ((3, 4, 5), -1), ((3, 4, 5), (0, 2)), ((7,), 0), ((2, 300), 1), ((0, 3), 1)]
HOLES = numbers((4, 6))
HOLES[1, 2] = HOLES[3, 0] = HOLES[3, 5] = math.nan
TIES = numpy.array([[1, 3, 3, 2], [0, 0, 0, 0], [5, 5, 1, 5]], dtype="float32")


def every(name, theirs, axes=AXES, lists=True, **options):
    for shape, axis in axes:
        if isinstance(axis, tuple) and not lists:
            continue
        for keepdim in (False, True):
            case(name, [shape], lambda x, a=axis, k=keepdim: getattr(x, name)(a, keepdim=k),
                 lambda x, a=axis, k=keepdim: theirs(x, a, k), **options)


every("sum", lambda x, a, k: x.sum(a, keepdim=k))
every("mean", lambda x, a, k: x.mean(a, keepdim=k))
every("nansum", lambda x, a, k: x.nansum(a, keepdim=k))
every("nanmean", lambda x, a, k: x.nanmean(a, keepdim=k))
every("prod", lambda x, a, k: x.prod(a, keepdim=k), lists=False, axes=AXES[:5])
every("max", lambda x, a, k: x.amax(a, keepdim=k))
every("min", lambda x, a, k: x.amin(a, keepdim=k))
every("logsumexp", lambda x, a, k: x.logsumexp(a, keepdim=k))
for axis in (0, 1):
    case("logsumexp", [(3, 0)], lambda x, a=axis: x.logsumexp(a), gradient=False)
every("any", lambda x, a, k: x.any(a, keepdim=k), lists=False, gradient=False)
every("all", lambda x, a, k: x.all(a, keepdim=k), lists=False, gradient=False)
every("argmax", lambda x, a, k: x.argmax(a, keepdim=k), lists=False, gradient=False, same_dtype=False)
every("argmin", lambda x, a, k: x.argmin(a, keepdim=k), lists=False, gradient=False, same_dtype=False)
every("aminmax", lambda x, a, k: (x.amin(a, keepdim=k), x.amax(a, keepdim=k)), lists=False)
for correction in (0, 1):
    for name in ("var", "std", "var_mean", "std_mean"):
        for shape, axis in AXES[:6]:
            case(name, [shape], lambda x, a=axis, c=correction, n=name: getattr(x, n)(a, c),
                 lambda x, a=axis, c=correction, n=name: getattr(torch, n)(x, a, unbiased=c == 1))
        case(name, [(3, 4)], lambda x, c=correction, n=name: getattr(x, n)(correction=c),
             lambda x, c=correction, n=name: getattr(torch, n)(x, unbiased=c == 1))
for name in ("sum", "mean", "prod", "max", "min", "any", "all", "nansum", "nanmean"):
    for shape in ((3, 4), (), (500,)):
        if name == "prod" and shape == (500,):
            continue
        case(name, [shape], lambda x, n=name: getattr(x, n)(), lambda x, n=name: getattr(torch, n)(x))
for name in ("sum", "mean", "max", "min", "nansum", "nanmean", "argmax", "argmin"):
    theirs = {"max": torch.amax, "min": torch.amin}.get(name, getattr(torch, name))
    for axis in (0, 1):
        case(name, [HOLES], lambda x, n=name, a=axis: getattr(x, n)(a), lambda x, f=theirs, a=axis: f(x, a), gradient=False,
             same_dtype=not name.startswith("arg"), label=f"NaNs {axis}")
        case(name, [TIES], lambda x, n=name, a=axis: getattr(x, n)(a), lambda x, f=theirs, a=axis: f(x, a),
             same_dtype=not name.startswith("arg"), label=f"ties {axis}")
case("logsumexp", [numpy.array([[1e3, 1e3], [-1e3, -2e3], [-math.inf, -math.inf], [math.inf, 1], [math.nan, 1]], dtype="float32")],
     lambda x: x.logsumexp(1), lambda x: torch.logsumexp(x, 1), gradient=False)
for dtype in ("int32", "int64", "uint8", "int8", "bool"):
    whole = numbers((5, 40), 0 if dtype == "uint8" else -9, 9, dtype)
    for name in ("sum", "max", "min", "any", "all", "argmax", "argmin", "count_nonzero"):
        if dtype == "bool" and name.startswith("arg"):
            continue
        theirs = {"max": torch.amax, "min": torch.amin}.get(name, getattr(torch, name))
        case(name, [whole], lambda x, n=name: getattr(x, n)(1), lambda x, f=theirs: f(x, 1), same_dtype=False)
        # uint8's any() is uint8 in PyTorch
    for name in ("cumsum", "cumprod"):
        few = whole[:, :6]
        case(name, [few], lambda x, n=name: getattr(x, n)(1), lambda x, f=getattr(torch, name): f(x, 1), same_dtype=False)
    for name in ("cummax", "cummin"):
        case(name, [whole], lambda x, n=name: getattr(x, n)(1), lambda x, f=getattr(torch, name): tuple(f(x, 1)), same_dtype=False)
refuses("max", [(0, 3)], lambda x: x.max(0), lambda x: x.amax(0))
refuses("sum", [(3, 4)], lambda x: x.sum((0, 0)))
refuses("argmax", [(3,)], lambda x: x.argmax(1))

SCANS = [((5,), 0), ((3, 4), 0), ((3, 4), 1), ((2, 65), 1), ((100, 2), 0), ((2, 1100), 1), ((3,), -1), ((0, 3), 0), ((2, 3, 70), 2),
         ((1,), 0)]
for shape, axis in SCANS:
    for name in ("cumsum", "logcumsumexp"):
        case(name, [shape], lambda x, a=axis, n=name: getattr(x, n)(a), lambda x, a=axis, n=name: getattr(torch, n)(x, a))
    case("cumprod", [shape], lambda x, a=axis: x.cumprod(a), low=0.9, high=1.1,
         forward=2e-6)  # up to 1,100 products, each rounded by 6e-8
    for name in ("cummax", "cummin"):
        case(name, [shape], lambda x, a=axis, n=name: getattr(x, n)(a), lambda x, a=axis, n=name: tuple(getattr(torch, n)(x, a)),
             same_dtype=False)
for name in ("cummax", "cummin"):
    for values in (TIES, HOLES):
        case(name, [values], lambda x, n=name: getattr(x, n)(1), lambda x, n=name: tuple(getattr(torch, n)(x, 1)),
             same_dtype=False, gradient=False)
case("cumprod", [numpy.array([2, 0, 3, 0, 1], dtype="float32")], lambda x: x.cumprod(0), label="zeros")
case("cumsum", [numpy.array([1, math.inf, 2, math.nan, 3], dtype="float32")], lambda x: x.cumsum(0), gradient=False)
case("logcumsumexp", [numpy.array([-math.inf, -1e3, 1e3, 1, 2e3], dtype="float32")], lambda x: x.logcumsumexp(0), gradient=False)
refuses("cumsum", [(3,)], lambda x: x.cumsum(1))
for shape, n, axis in (((5,), 1, -1), ((5, 3), 2, 0), ((2, 4), 0, 1), ((2,), 3, 0)):
    case("diff", [shape], lambda x, n=n, a=axis: x.diff(n, a), gradient=n < shape[axis])
case("diff", [numbers((9,), dtype="bool")], lambda x: x.diff())
for name in ("softmax", "log_softmax", "softmin"):
    theirs = getattr(torch.nn.functional, name)
    for shape, axis in (((3, 4), 1), ((3, 4), 0), ((2, 3, 4), -1), ((2, 300), 1), ((3, 0), 1), ((3, 0), 0)):
        case(name, [shape], lambda x, a=axis, n=name: getattr(x, n)(a), lambda x, a=axis, f=theirs: f(x, a), low=-9, high=9)

# ---- in another dtype ----
for name in ("sum", "prod", "nansum"):
    for given, wanted in (("float32", "float64"), ("int32", "float32"), ("int32", "int64"), ("uint8", "uint8"), ("bool", "int64"), ("float32", "int32"),
                          ("float16", "float32"), ("int64", "int8"), ("float32", "float16")):
        if name == "nansum" and wanted != "float64" or name == "prod" and wanted == "float16":
            continue  # PyTorch has no such
        few = numpy.abs(numbers((3, 4), 0, 9, "int32")).astype(given)
        case(name, [few], lambda x, n=name, d=wanted: getattr(x, n)(1, dtype=d), lambda x, n=name, d=wanted: getattr(x, n)(1, dtype=getattr(torch, d)),
             label=f"{given} as {wanted}", gradient=wanted == "float64" and given == "float32")
case("sum", [(3, 4)], lambda x: x.sum(dtype="float64"), lambda x: x.sum(dtype=torch.float64))
case("sum", [numbers((3, 4), 0, 2, "int32")], lambda x: x.sum(0, dtype=bool), lambda x: x.sum(0, dtype=torch.bool))
case("sum", [numpy.full(3000, 10, "float16")], lambda x: x.sum(dtype="float32"), lambda x: x.sum(dtype=torch.float32), gradient=False, label="does not overflow")
for given, wanted in (("float32", "float64"), ("int32", "float32"), ("bool", "float64"), ("uint8", "float32")):
    few = numbers((3, 4), 0, 9, "int32").astype(given)
    case("mean", [few], lambda x, d=wanted: x.mean(0, dtype=d), lambda x, d=wanted: x.mean(0, dtype=getattr(torch, d)), label=f"{given} as {wanted}",
         gradient=given == "float32")
    for name in ("cumsum", "cumprod"):
        case(name, [few], lambda x, n=name, d=wanted: getattr(x, n)(dim=1, dtype=d),
             lambda x, n=name, d=wanted: getattr(x, n)(1, dtype=getattr(torch, d)), label=f"{given} as {wanted}", gradient=given == "float32")
    for name in ("softmax", "log_softmax"):
        case(name, [few], lambda x, n=name, d=wanted: getattr(x, n)(1, dtype=d), lambda x, n=name, d=wanted: getattr(x, n)(1, dtype=getattr(torch, d)),
             label=f"{given} as {wanted}", gradient=given == "float32")
refuses("mean", [(3, 4)], lambda x: x.mean(0, dtype="int32"), lambda x: x.mean(0, dtype=torch.int32))
refuses("sum", [(3, 4)], lambda x: x.sum(0, dtype="int31"), lambda x: x.sum(0, dtype="int31"))

# ---- f16 whose squares and sums are beyond it: computed in f32, rounded once ----
TALL = numpy.array([[[60000, -60000, 500, 30000], [300, -300, 1, 200]]], "float16")
for name, function in (("var", lambda m, f, x: (x[:, 1:] * 0.5).var(2)), ("std", lambda m, f, x: x.std(2)), ("std_mean", lambda m, f, x: m.std_mean(x, 2)),
                       ("norm", lambda m, f, x: x[:, 1:].norm(dim=2)), ("norm", lambda m, f, x: x[:, 1:].norm(3, dim=2)), ("normalize", lambda m, f, x: f.normalize(x, dim=2)),
                       ("group_norm", lambda m, f, x: f.group_norm(x, 2)), ("layer_norm", lambda m, f, x: f.layer_norm(x, (4,))),
                       ("instance_norm", lambda m, f, x: f.instance_norm(x)), ("batch_norm", lambda m, f, x: f.batch_norm(x, None, None, training=True)),
                       ("cosine_similarity", lambda m, f, x: f.cosine_similarity(x, x.flip(2), 2))):
    def theirs(x, function=function):
        found = function(torch, torch.nn.functional, x.double())
        return tuple(one.to(x.dtype) for one in found) if isinstance(found, tuple) else found.to(x.dtype)
    case(name, [TALL], lambda x, function=function: function(tinycore, nn.functional, x), theirs, gradient=False)
