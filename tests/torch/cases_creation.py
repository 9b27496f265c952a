# SPDX-License-Identifier: MIT
"""Tensors from nothing but numbers, and changes of dtype."""
import numpy
import torch

from harness import case, each, numbers, refuses
from tinycore import Tensor, dtypes

DTYPES = "float32 float16 float64 int8 int16 int32 int64 uint8 bool".split()


def like_theirs(name):
    return {"dtype": getattr(torch, name)}


def like_ours(name):
    return {"dtype": getattr(dtypes, name)}


for shape in ((), (0,), (3,), (2, 0, 3), (4, 5)):
    for name in ("zeros", "ones"):
        for dtype in DTYPES:
            case(name, [], lambda n=name, s=shape, d=dtype: getattr(Tensor, n)(s, **like_ours(d)),
                 lambda n=name, s=shape, d=dtype: getattr(torch, n)(s, **like_theirs(d)), label=f"{shape} {dtype}")
        case(name + "_like", [shape], lambda x, n=name: getattr(x, n + "_like")(), lambda x, n=name: getattr(torch, n + "_like")(x), gradient=False)
        case(name + "_like", [shape], lambda x, n=name: getattr(x, n + "_like")(dtype=dtypes.int16),
             lambda x, n=name: getattr(torch, n + "_like")(x, dtype=torch.int16), gradient=False)
    for value, dtype in ((2.5, "float32"), (-3, "int32"), (300.0, "float16"), (1e300, "float64"), (float("nan"), "float32"), (True, "bool"), (2**62, "int64")):
        case("full", [], lambda s=shape, v=value, d=dtype: Tensor.full(s, v, **like_ours(d)),
             lambda s=shape, v=value, d=dtype: torch.full(s, v, **like_theirs(d)), label=f"{shape} {value} {dtype}")
    case("full_like", [shape], lambda x: x.full_like(7), lambda x: torch.full_like(x, 7), gradient=False)
for bounds in ((5,), (0,), (2, 7), (7, 2, -1), (0, 10, 3), (10, 0, -4), (-3, 3, 1)):
    case("arange", [], lambda b=bounds: Tensor.arange(*b, dtype=dtypes.int32), lambda b=bounds: torch.arange(*b, dtype=torch.int32), label=str(bounds))
    case("arange", [], lambda b=bounds: Tensor.arange(*b, dtype=dtypes.float32), lambda b=bounds: torch.arange(*b, dtype=torch.float32), label=f"{bounds} f32")
for bounds in ((0.5, 3.0, 0.5), (1.0,), (-1.0, 1.0, 0.125), (0.0, 1.0, 0.3)):
    case("arange", [], lambda b=bounds: Tensor.arange(*b), lambda b=bounds: torch.arange(*b), label=str(bounds))
for bounds in ((0, 1, 5), (-2, 3, 1), (3, -3, 7), (1, 1, 4), (0, 10, 0), (0, 1, 2)):
    case("linspace", [], lambda b=bounds: Tensor.linspace(*b), lambda b=bounds: torch.linspace(*b), label=str(bounds))
    case("linspace", [], lambda b=bounds: Tensor.linspace(*b, dtype=dtypes.float64), lambda b=bounds: torch.linspace(*b, dtype=torch.float64), label=f"{bounds} f64")
for sizes in ((1,), (0,), (4,), (3, 5), (5, 3), (0, 3)):
    case("eye", [], lambda s=sizes: Tensor.eye(*s), lambda s=sizes: torch.eye(*s), label=str(sizes))
    case("eye", [], lambda s=sizes: Tensor.eye(*s, dtype=dtypes.int64), lambda s=sizes: torch.eye(*s, dtype=torch.int64), label=f"{sizes} i64")
refuses("zeros", [], lambda: Tensor.zeros(-1), lambda: torch.zeros(-1))
refuses("eye", [], lambda: Tensor.eye(-1), lambda: torch.eye(-1))
refuses("linspace", [], lambda: Tensor.linspace(0, 1, -1), lambda: torch.linspace(0, 1, -1))

# Values that every dtype has; what is outside of an integer dtype is unspecified in PyTorch, and in docs/dtypes.md here.
for to in DTYPES:
    for of in DTYPES:
        values = numbers((3, 4), 0, 5, of, 3)
        case("cast", [values], lambda x, d=to: x.cast(getattr(dtypes, d)), lambda x, d=to: x.to(getattr(torch, d)),
             gradient=of == "float32" and to in ("float32", "float64"), label=f"{of} to {to}")
for values in (numpy.array([0.1, -1.5, 1 + 2**-8, 1 + 3 * 2**-8, 3e38, 1e-40, float("nan"), float("-inf")], "float32"), numbers((3, 5))):
    case("bfloat16", [values], lambda x: x.bfloat16().float(), lambda x: x.float().bfloat16().double(), gradient=False, same_dtype=False)
each("bitcast", [numbers((3, 4)), numbers((2, 0)), numpy.array([0.0, -0.0, 1.0, -1.0], "float32")],
     lambda x: x.bitcast(dtypes.int32), lambda x: x.float().view(torch.int32), gradient=False)
case("bitcast", [numbers((3, 4), -100, 100, "int16")], lambda x: x.bitcast(dtypes.float16), lambda x: x.view(torch.float16), gradient=False)


def newton_schulz(x, steps=5, factors=(2, -1.5, 0.5), eps=1e-7):
    x = x / (torch.linalg.matrix_norm(x, keepdim=True) + eps)
    for _ in range(steps):
        a, part, sum = x @ x.mT, x, 0
        for factor in factors:
            sum, part = sum + factor * part, a @ part
        x = sum
    return x


case("newton_schulz", [(3, 5)], lambda x: x.newton_schulz(), newton_schulz)
case("newton_schulz", [(2, 4, 4)], lambda x: x.newton_schulz(3, params=(3.4445, -4.775, 2.0315)),
     lambda x: newton_schulz(x, 3, (3.4445, -4.775, 2.0315)))
refuses("newton_schulz", [(3,)], lambda x: x.newton_schulz(), newton_schulz)
